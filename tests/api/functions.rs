//! Built-in functions of `float` and `double` on operands that are dense where results are hard: next to the largest and
//! smallest numbers, to 1, to zeros of the function. Within the specification's bounds of what the C library says in double
//! precision ([`super::bounds`]), which is a few units off itself where results are doubles.

use super::bounds::{Bound, Function, Precision};
use super::buffers::Random;
use super::numerics::keeps_subnormals;
use pumice_tests::Setup;
use std::f64::consts::{LN_10, LN_2};

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
    /// Returns an operand of an exponential, with results to the ends of the range.
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

/// Functions and their operands. `pow` and what else takes two use both.
#[rustfmt::skip]
const DRAWS: [(&str, fn(&mut Draw) -> (f64, f64)); 36] = [
    ("exp", |d| (d.exponent(1.0 / LN_2), 1.0)),
    ("exp2", |d| (d.exponent(1.0), 1.0)),
    ("exp10", |d| (d.exponent(LN_10 / LN_2), 1.0)),
    ("expm1", |d| (d.exponent(1.0 / LN_2), 1.0)),
    ("log", |d| (d.positive(), 1.0)),
    ("log2", |d| (d.positive(), 1.0)),
    ("log10", |d| (d.positive(), 1.0)),
    ("log1p", |d| (d.positive() - 1.0, 1.0)),
    ("sin", |d| (d.angle(), 1.0)),
    ("cos", |d| (d.angle(), 1.0)),
    ("tan", |d| (d.angle(), 1.0)),
    ("asin", |d| (d.between(-1.0, 1.0), 1.0)),
    ("acos", |d| (d.between(-1.0, 1.0), 1.0)),
    ("atan", |d| (d.spread(-30.0, 30.0), 1.0)),
    ("sinh", |d| (d.exponent(1.0 / LN_2), 1.0)),
    ("cosh", |d| (d.exponent(1.0 / LN_2), 1.0)),
    ("tanh", |d| (d.between(-20.0, 20.0), 1.0)),
    ("asinh", |d| (d.spread(-30.0, d.most - 1.0), 1.0)),
    ("acosh", |d| (1.0 + d.spread(-20.0, 30.0).abs(), 1.0)),
    ("atanh", |d| (d.between(-1.0, 1.0), 1.0)),
    ("cbrt", |d| (d.spread(1.0 - d.most, d.most), 1.0)),
    ("erf", |d| (d.between(-6.0, 6.0), 1.0)),
    ("erfc", |d| (d.between(-5.0, 9.0), 1.0)),
    ("tgamma", |d| (d.between(-20.0, 0.2 * d.most.min(170.0)), 1.0)),
    ("pow", |d| d.power()),
    ("powr", |d| d.power()),
    ("hypot", |d| {
        let (low, high) = (2.0 - d.most, d.most - 2.0);
        let x = d.spread(low, high);
        (x, x * d.spread(-3.0, 1.0))
    }),
    ("atan2", |d| (d.spread(-20.0, 20.0), d.spread(-20.0, 20.0))),
    ("rsqrt", |d| (d.positive(), 1.0)),
    ("sinpi", |d| (d.between(-9.0, 9.0), 1.0)),
    ("cospi", |d| (d.between(-9.0, 9.0), 1.0)),
    ("tanpi", |d| (d.between(-9.0, 9.0), 1.0)),
    ("asinpi", |d| (d.between(-1.0, 1.0), 1.0)),
    ("acospi", |d| (d.between(-1.0, 1.0), 1.0)),
    ("atanpi", |d| (d.spread(-20.0, 30.0), 1.0)),
    ("atan2pi", |d| (d.spread(-20.0, 20.0), d.spread(-20.0, 20.0))),
];

fn check(setup: &Setup, precision: Precision) {
    let single = precision == Precision::Single;
    let (ty, most) = match single {
        true => ("float", 127.0),
        false => ("double", 1023.0),
    };
    let mut source = format!("typedef {ty} T;\n");
    if !single {
        source += "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n";
    }
    for (name, _) in &DRAWS {
        let args = match Function::named(name).operands() {
            1 => "x[i]",
            _ => "x[i], y[i]",
        };
        source += &format!(
            "kernel void k_{name}(global T *x, global T *y, global T *r) {{ size_t i = get_global_id(0); r[i] = {name}({args}); }}\n"
        );
    }
    let program = setup.build(&source);
    let flushes = single && !keeps_subnormals(setup);
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for (name, draw_one) in &DRAWS {
        let function = Function::named(name);
        let mut draw = Draw {
            random: &mut random,
            most,
        };
        let operands: Vec<(f64, f64)> = (0..COUNT)
            .map(|_| draw_one(&mut draw))
            .map(|(x, y)| (precision.round(x), precision.round(y)))
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
        let kernel = setup.kernel(&program, &format!("k_{name}"));
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
        let Bound::Ulp(allowed) = function.bound(precision) else {
            panic!("{name} has a bound in no units of the last place");
        };
        // An operand that is subnormal may be zero where such numbers are not kept.
        let flushed = |x: f64| match flushes && f64::abs(x) < (1.0 - most).exp2() {
            true => 0f64.copysign(x),
            false => x,
        };
        let mut worst = (0.0, 0);
        for (i, &(x, y)) in operands.iter().enumerate() {
            let want = function.want([x, y, 0.0]);
            // Subnormal results may be zeros; what overflows here may do so a unit earlier there.
            let size = want.abs();
            if !(size > (2.0 - most).exp2() && size < most.exp2()) {
                continue;
            }
            let other = function.want([flushed(x), flushed(y), 0.0]);
            let off = (precision.ulps(got[i], want)).min(precision.ulps(got[i], other));
            if off.is_nan() || off > worst.0 {
                worst = (off, i);
            }
        }
        let (off, at) = worst;
        let (x, y) = operands[at];
        assert!(
            off <= allowed,
            "{ty} {name}({x:?}, {y:?}) is {:?}, and was {:?}: {off} ulp, {allowed} are allowed",
            function.want([x, y, 0.0]),
            got[at],
        );
        eprintln!("{ty} {name}: {off:.2} of {allowed}");
    }
}

#[test]
fn single_precision_within_bounds() {
    check(&Setup::new(), Precision::Single);
}

#[test]
fn double_precision_within_bounds() {
    let setup = Setup::new();
    if !setup.has_doubles() {
        return pumice_tests::left_out("no double precision");
    }
    check(&setup, Precision::Double);
}
