//! Built-in functions of `float` and `double` on operands that are dense where results are hard: next to the largest and
//! smallest numbers, to 1, to zeros of the function. Within the specification's bounds (section 7.4) of what the C library
//! says in double precision, which is a few units off itself where results are doubles.

use super::buffers::Random;
use super::numerics::keeps_subnormals;
use pumice_tests::Setup;
use std::f64::consts::{LN_10, LN_2, PI};

const COUNT: usize = 1 << 14;

/// Numbers at random.
struct Draw<'a> {
    random: &'a mut Random,
    /// The exponent of the largest numbers of the type.
    most: f64,
}

impl Draw<'_> {
    /// Below 1.
    fn unit(&mut self) -> f64 {
        const ONE: usize = 1 << 30;
        (self.random.next(ONE) as f64 + self.random.next(ONE) as f64 / ONE as f64) / ONE as f64
    }
    fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }
    /// With exponents between those, of either sign.
    fn spread(&mut self, low: f64, high: f64) -> f64 {
        let sign = if self.random.next(2) == 0 { 1.0 } else { -1.0 };
        sign * self.between(low, high).exp2()
    }
    /// One of three: next to 1, of any size, one in whose neighbourhood logarithms are small.
    fn positive(&mut self) -> f64 {
        match self.random.next(3) {
            0 => self.between(0.5, 2.0),
            1 => 1.0 + self.spread(-20.0, -2.0),
            _ => self.spread(1.0 - self.most, self.most).abs(),
        }
    }
    /// What an exponential takes, with results to the ends of the range.
    fn exponent(&mut self, of: f64) -> f64 {
        let all = (self.most - 1.0) / of;
        match self.random.next(3) {
            0 => self.between(-1.0, 1.0),
            _ => self.between(-all, all),
        }
    }
    fn angle(&mut self) -> f64 {
        match self.random.next(3) {
            0 => self.between(-50.0, 50.0),
            1 => self.spread(-30.0, 10.0),
            _ => self.spread(10.0, self.most),
        }
    }
    /// A base and its exponent, whose power is of any size.
    fn power(&mut self) -> (f64, f64) {
        let base = match self.random.next(2) {
            0 => self.between(0.5, 2.0),
            _ => self.spread(-30.0, 30.0).abs(),
        };
        let size = self.between(1.0 - self.most, self.most);
        (base, size / base.log2())
    }
}

struct Function {
    name: &'static str,
    /// What is allowed, and how far off the C library may be in double precision, in units of the last place.
    ulp: (f64, f64),
    draw: fn(&mut Draw) -> (f64, f64),
    want: fn(f64, f64) -> f64,
}

// SAFETY: functions of numbers, of the C library that the standard library stands on.
unsafe extern "C" {
    safe fn erf(x: f64) -> f64;
    safe fn erfc(x: f64) -> f64;
    safe fn tgamma(x: f64) -> f64;
}

/// sin(pi x): what is left of x beyond its half-way points is exact.
fn sinpi(x: f64) -> f64 {
    let whole = x.round();
    let value = match x - whole {
        rest if rest.abs() <= 0.25 => (PI * rest).sin(),
        rest => (PI * (0.5 - rest.abs())).cos().copysign(rest),
    };
    if whole % 2.0 == 0.0 {
        value
    } else {
        -value
    }
}

/// cos(pi x).
fn cospi(x: f64) -> f64 {
    let whole = x.round();
    let rest = (x - whole).abs();
    let value = match rest {
        rest if rest <= 0.25 => (PI * rest).cos(),
        rest => (PI * (0.5 - rest)).sin(),
    };
    if whole % 2.0 == 0.0 {
        value
    } else {
        -value
    }
}

macro_rules! function {
    ($name:literal, $ulp:literal, $off:literal, |$d:ident| $x:expr, |$a:ident| $want:expr) => {
        Function {
            name: $name,
            ulp: ($ulp, $off),
            draw: |$d| ($x, 1.0),
            want: |$a, _| $want,
        }
    };
    ($name:literal, $ulp:literal, $off:literal, |$d:ident| $x:expr, |$a:ident, $b:ident| $want:expr) => {
        Function {
            name: $name,
            ulp: ($ulp, $off),
            draw: |$d| $x,
            want: |$a, $b| $want,
        }
    };
}

const FUNCTIONS: [Function; 36] = [
    function!("exp", 3.0, 1.0, |d| d.exponent(1.0 / LN_2), |x| x.exp()),
    function!("exp2", 3.0, 1.0, |d| d.exponent(1.0), |x| x.exp2()),
    function!("exp10", 3.0, 2.0, |d| d.exponent(LN_10 / LN_2), |x| {
        // 10^x by the whole part of x, whose power is rounded once, and the rest.
        let whole = x.round();
        10f64.powf(whole) * ((x - whole) * LN_10).exp()
    }),
    function!("expm1", 3.0, 2.0, |d| d.exponent(1.0 / LN_2), |x| x
        .exp_m1()),
    function!("log", 3.0, 1.0, |d| d.positive(), |x| x.ln()),
    function!("log2", 3.0, 2.0, |d| d.positive(), |x| x.log2()),
    function!("log10", 3.0, 2.0, |d| d.positive(), |x| x.log10()),
    function!("log1p", 2.0, 2.0, |d| d.positive() - 1.0, |x| x.ln_1p()),
    function!("sin", 4.0, 1.0, |d| d.angle(), |x| x.sin()),
    function!("cos", 4.0, 1.0, |d| d.angle(), |x| x.cos()),
    function!("tan", 5.0, 2.0, |d| d.angle(), |x| x.tan()),
    function!("asin", 4.0, 1.0, |d| d.between(-1.0, 1.0), |x| x.asin()),
    function!("acos", 4.0, 1.0, |d| d.between(-1.0, 1.0), |x| x.acos()),
    function!("atan", 5.0, 1.0, |d| d.spread(-30.0, 30.0), |x| x.atan()),
    function!("sinh", 4.0, 3.0, |d| d.exponent(1.0 / LN_2), |x| x.sinh()),
    function!("cosh", 4.0, 3.0, |d| d.exponent(1.0 / LN_2), |x| x.cosh()),
    function!("tanh", 5.0, 3.0, |d| d.between(-20.0, 20.0), |x| x.tanh()),
    function!("asinh", 4.0, 3.0, |d| d.spread(-30.0, d.most - 1.0), |x| {
        let a = x.abs();
        match a {
            // The C library's own way, which Rust's loses digits of next to 0 and beyond the root of the largest.
            a if a < 0.5 => (a + a * a / (1.0 + (a * a + 1.0).sqrt())).ln_1p(),
            a if a < 1e100 => (a + (a * a + 1.0).sqrt()).ln(),
            a => a.ln() + LN_2,
        }
        .copysign(x)
    }),
    function!(
        "acosh",
        4.0,
        3.0,
        |d| 1.0 + d.spread(-20.0, 30.0).abs(),
        |x| {
            let t = x - 1.0;
            (t + (2.0 * t + t * t).sqrt()).ln_1p()
        }
    ),
    function!("atanh", 5.0, 3.0, |d| d.between(-1.0, 1.0), |x| {
        let a = x.abs();
        (0.5 * (2.0 * a / (1.0 - a)).ln_1p()).copysign(x)
    }),
    function!("cbrt", 2.0, 4.0, |d| d.spread(1.0 - d.most, d.most), |x| x
        .cbrt()),
    function!("erf", 16.0, 2.0, |d| d.between(-6.0, 6.0), |x| erf(x)),
    function!("erfc", 16.0, 6.0, |d| d.between(-5.0, 9.0), |x| erfc(x)),
    function!(
        "tgamma",
        16.0,
        12.0,
        |d| d.between(-20.0, 0.2 * d.most.min(170.0)),
        |x| tgamma(x)
    ),
    function!("pow", 16.0, 1.0, |d| d.power(), |x, y| x.powf(y)),
    function!("powr", 16.0, 1.0, |d| d.power(), |x, y| x.powf(y)),
    function!(
        "hypot",
        4.0,
        1.0,
        |d| {
            let (low, high) = (2.0 - d.most, d.most - 2.0);
            let x = d.spread(low, high);
            (x, x * d.spread(-3.0, 1.0))
        },
        |x, y| x.hypot(y)
    ),
    function!(
        "atan2",
        6.0,
        1.0,
        |d| (d.spread(-20.0, 20.0), d.spread(-20.0, 20.0)),
        |x, y| x.atan2(y)
    ),
    function!("rsqrt", 2.0, 1.0, |d| d.positive(), |x| 1.0 / x.sqrt()),
    function!("sinpi", 4.0, 3.0, |d| d.between(-9.0, 9.0), |x| sinpi(x)),
    function!("cospi", 4.0, 3.0, |d| d.between(-9.0, 9.0), |x| cospi(x)),
    function!("tanpi", 6.0, 6.0, |d| d.between(-9.0, 9.0), |x| sinpi(x)
        / cospi(x)),
    function!("asinpi", 5.0, 3.0, |d| d.between(-1.0, 1.0), |x| x.asin()
        / PI),
    function!("acospi", 5.0, 3.0, |d| d.between(-1.0, 1.0), |x| x.acos()
        / PI),
    function!("atanpi", 5.0, 3.0, |d| d.spread(-20.0, 30.0), |x| x.atan()
        / PI),
    function!(
        "atan2pi",
        6.0,
        3.0,
        |d| (d.spread(-20.0, 20.0), d.spread(-20.0, 20.0)),
        |x, y| x.atan2(y) / PI
    ),
];

/// How many units of the last place there are between them. `digits`: of the type's significand.
fn distance(got: f64, want: f64, digits: i32) -> f64 {
    let exponent = (want.to_bits() >> 52 & 0x7ff) as i32 - 1023;
    let unit = 2f64.powi(exponent / 2 - digits) * 2f64.powi(exponent - exponent / 2 + 1);
    (got - want).abs() / unit
}

fn check(setup: &Setup, single: bool) {
    let (ty, most, digits) = match single {
        true => ("float", 127.0, 24),
        false => ("double", 1023.0, 53),
    };
    let mut source = format!("typedef {ty} T;\n");
    if !single {
        source += "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n";
    }
    for function in &FUNCTIONS {
        let name = function.name;
        let args = match name {
            "pow" | "powr" | "hypot" | "atan2" | "atan2pi" => "x[i], y[i]",
            _ => "x[i]",
        };
        source += &format!(
            "kernel void k_{name}(global T *x, global T *y, global T *r) {{ size_t i = get_global_id(0); r[i] = {name}({args}); }}\n"
        );
    }
    let program = setup.build(&source);
    let flushes = single && !keeps_subnormals(setup);
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for function in &FUNCTIONS {
        let mut draw = Draw {
            random: &mut random,
            most,
        };
        let to = |x: f64| if single { f64::from(x as f32) } else { x };
        let operands: Vec<(f64, f64)> = (0..COUNT)
            .map(|_| (function.draw)(&mut draw))
            .map(|(x, y)| (to(x), to(y)))
            .collect();
        let column = |of: fn(&(f64, f64)) -> f64| {
            let all = operands.iter().map(of);
            match single {
                true => setup.buffer_of(&all.map(|x| x as f32).collect::<Vec<_>>()),
                false => setup.buffer_of(&all.collect::<Vec<_>>()),
            }
        };
        let (x, y) = (column(|pair| pair.0), column(|pair| pair.1));
        let result = setup.buffer(COUNT * 8);
        let kernel = setup.kernel(&program, &format!("k_{}", function.name));
        kernel
            .set_buffer(0, &x)
            .set_buffer(1, &y)
            .set_buffer(2, &result);
        setup.run(&kernel, &[COUNT], None);
        let got: Vec<f64> = match single {
            true => (setup.read::<f32>(&result, COUNT).iter())
                .map(|&x| f64::from(x))
                .collect(),
            false => setup.read::<f64>(&result, COUNT),
        };
        let allowed = function.ulp.0 + if single { 0.01 } else { function.ulp.1 };
        // An operand that is subnormal may be zero where such numbers are not kept.
        let flushed = |x: f64| match flushes && f64::abs(x) < (1.0 - most).exp2() {
            true => 0f64.copysign(x),
            false => x,
        };
        let mut worst = (0.0, 0);
        for (i, &(x, y)) in operands.iter().enumerate() {
            let want = (function.want)(x, y);
            // Subnormal results may be zeros; what overflows here may do so a unit earlier there.
            let size = want.abs();
            if !(size > (2.0 - most).exp2() && size < most.exp2()) {
                continue;
            }
            let other = (function.want)(flushed(x), flushed(y));
            let off = distance(got[i], want, digits).min(distance(got[i], other, digits));
            if off.is_nan() || off > worst.0 {
                worst = (off, i);
            }
        }
        let (off, at) = worst;
        assert!(
            off <= allowed,
            "{ty} {}{:?} is {:?}, and was {:?}: {off} ulp, {allowed} are allowed",
            function.name,
            operands[at],
            (function.want)(operands[at].0, operands[at].1),
            got[at],
        );
        eprintln!("{ty} {}: {off:.2} of {allowed}", function.name);
    }
}

#[test]
fn single_precision_within_bounds() {
    check(&Setup::new(), true);
}

#[test]
fn double_precision_within_bounds() {
    let setup = Setup::new();
    if !setup.has_doubles() {
        return pumice_tests::left_out("no double precision");
    }
    check(&setup, false);
}
