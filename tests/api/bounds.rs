//! The results of built-in functions and their allowed errors: the tables of section 7.4 of the
//! OpenCL C specification ("Relative error as ULPs") for single precision of the full profile and
//! for double precision. References are in double precision: the C library's, or made of them.

use spirv_lowering::fused::Fused;
use std::f64::consts::{LN_10, LN_2, PI};
use Bound::{Exact, Fused as OnceOrTwice, Ulp, Within};
use Reference::{One, Three, Two};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Precision {
    Single,
    Double,
}

impl Precision {
    /// The number of the type that is nearest.
    pub fn round(self, x: f64) -> f64 {
        match self {
            Self::Single => f64::from(x as f32),
            Self::Double => x,
        }
    }

    /// How many units of the last place there are from what should be to what is. As section 7.4 has it, the unit at a power
    /// of two is that of the numbers below, and there is none smaller than the least number.
    pub fn ulps(self, got: f64, want: f64) -> f64 {
        if got == want {
            return 0.0;
        }
        let (digits, least) = match self {
            Self::Single => (24, -126),
            Self::Double => (53, -1022),
        };
        let below = want.abs().to_bits().saturating_sub(1);
        let exponent = ((below >> 52) as i32 - 1023).max(least);
        (got - want).abs() / f64::from(exponent + 1 - digits).exp2()
    }
}

/// How far off a result may be.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Bound {
    /// Correctly rounded, or without anything to round.
    Exact,
    /// Units of the last place.
    Ulp(f64),
    /// So much, whatever the result.
    Within(f64),
    /// x * y + z: rounded once, or the product and the sum.
    Fused,
}

pub enum Reference {
    One(fn(f64) -> f64),
    Two(fn(f64, f64) -> f64),
    Three(fn(f64, f64, f64) -> f64),
}

pub struct Function {
    pub name: &'static str,
    single: Bound,
    double: Bound,
    /// How far off the reference may be in double precision, in units of the last place.
    off: f64,
    reference: Reference,
}

impl Function {
    pub fn named(name: &str) -> &'static Self {
        let mut all = FUNCTIONS.iter();
        all.find(|f| f.name == name)
            .unwrap_or_else(|| panic!("no reference of {name}"))
    }

    pub fn operands(&self) -> usize {
        match self.reference {
            One(_) => 1,
            Two(_) => 2,
            Three(_) => 3,
        }
    }

    /// Returns the reference for as many operands as it has.
    pub fn want(&self, [x, y, z]: [f64; 3]) -> f64 {
        match self.reference {
            One(f) => f(x),
            Two(f) => f(x, y),
            Three(f) => f(x, y, z),
        }
    }

    /// The specification's, and what the reference may be off.
    pub fn bound(&self, precision: Precision) -> Bound {
        match (precision, self.single, self.double) {
            // A unit of a double is 2^-29 of one of a float.
            (Precision::Single, Ulp(ulp), _) => Ulp(ulp + self.off * 2f64.powi(-29)),
            (Precision::Double, _, Ulp(ulp)) => Ulp(ulp + self.off),
            (Precision::Single, bound, _) | (Precision::Double, _, bound) => bound,
        }
    }

    /// Whether the result may be this.
    pub fn admits(&self, precision: Precision, x: [f64; 3], got: f64) -> bool {
        self.admits_within(self.bound(precision), precision, x, got)
    }

    /// The same with another bound.
    pub fn admits_within(&self, bound: Bound, to: Precision, x: [f64; 3], got: f64) -> bool {
        let want = self.want(x);
        if want.is_nan() || got.is_nan() {
            return want.is_nan() && got.is_nan();
        }
        match bound {
            Exact => got == to.round(want),
            Ulp(ulp) => to.ulps(got, want) <= ulp,
            Within(most) => (got - want).abs() <= most,
            OnceOrTwice => {
                let product = to.round(x[0] * x[1]);
                got == to.round(want) || got == to.round(product + x[2])
            }
        }
    }
}

/// With the same bound in both precisions.
const fn both(name: &'static str, bound: Bound, off: f64, reference: Reference) -> Function {
    Function {
        name,
        single: bound,
        double: bound,
        off,
        reference,
    }
}

/// In units of the last place, and how many of double precision the reference may be off.
const fn ulp(name: &'static str, ulp: f64, off: f64, reference: Reference) -> Function {
    both(name, Ulp(ulp), off, reference)
}

/// Correctly rounded in both.
const fn exact(name: &'static str, reference: Reference) -> Function {
    both(name, Exact, 0.0, reference)
}

/// Correctly rounded in double precision alone.
const fn rounded(name: &'static str, single: f64, reference: Reference) -> Function {
    Function {
        name,
        single: Ulp(single),
        double: Exact,
        off: 0.0,
        reference,
    }
}

/// Creates a function with an absolute error bound: the specification's in single precision, and in double precision, for
/// which it has none, a stricter one.
const fn absolute(name: &'static str, single: f64, double: f64, reference: Reference) -> Function {
    Function {
        name,
        single: Within(single),
        double: Within(double),
        off: 0.0,
        reference,
    }
}

/// By the names of OpenCL C.
#[rustfmt::skip]
const FUNCTIONS: &[Function] = &[
    ulp("acos", 4.0, 1.0, One(f64::acos)),
    ulp("acosh", 4.0, 3.0, One(acosh)),
    ulp("acospi", 5.0, 3.0, One(|x| x.acos() / PI)),
    ulp("asin", 4.0, 1.0, One(f64::asin)),
    ulp("asinh", 4.0, 3.0, One(asinh)),
    ulp("asinpi", 5.0, 3.0, One(|x| x.asin() / PI)),
    ulp("atan", 5.0, 1.0, One(f64::atan)),
    ulp("atan2", 6.0, 1.0, Two(f64::atan2)),
    ulp("atan2pi", 6.0, 3.0, Two(|y, x| y.atan2(x) / PI)),
    ulp("atanh", 5.0, 3.0, One(atanh)),
    ulp("atanpi", 5.0, 3.0, One(|x| x.atan() / PI)),
    ulp("cbrt", 2.0, 4.0, One(f64::cbrt)),
    exact("ceil", One(f64::ceil)),
    exact("clamp", Three(|x, low, high| x.max(low).min(high))),
    exact("copysign", Two(f64::copysign)),
    ulp("cos", 4.0, 1.0, One(f64::cos)),
    ulp("cosh", 4.0, 3.0, One(f64::cosh)),
    ulp("cospi", 4.0, 3.0, One(cospi)),
    ulp("degrees", 2.0, 1.0, One(|x| x * (180.0 / PI))),
    rounded("divide", 2.5, Two(|x, y| x / y)),
    ulp("erf", 16.0, 2.0, One(|x| erf(x))),
    ulp("erfc", 16.0, 6.0, One(|x| erfc(x))),
    ulp("exp", 3.0, 1.0, One(f64::exp)),
    ulp("exp10", 3.0, 2.0, One(exp10)),
    ulp("exp2", 3.0, 1.0, One(f64::exp2)),
    ulp("expm1", 3.0, 2.0, One(f64::exp_m1)),
    exact("fabs", One(f64::abs)),
    exact("fdim", Two(|x, y| if x > y { x - y } else { 0.0 })),
    exact("floor", One(f64::floor)),
    exact("fma", Three(|x, y, z| x.fused(y, z))),
    exact("fmax", Two(f64::max)),
    exact("fmin", Two(f64::min)),
    exact("fmod", Two(|x, y| x % y)),
    ulp("hypot", 4.0, 1.0, Two(f64::hypot)),
    // Of any error. What is asked are all but the last digits of the type.
    absolute("lgamma", 1e-6, 1e-14, One(|x| lgamma(x))),
    ulp("log", 3.0, 1.0, One(f64::ln)),
    ulp("log10", 3.0, 2.0, One(f64::log10)),
    ulp("log1p", 2.0, 2.0, One(f64::ln_1p)),
    ulp("log2", 3.0, 2.0, One(f64::log2)),
    exact("logb", One(|x| (x.abs().to_bits() >> 52) as f64 - 1023.0)),
    // Of any error in double precision: the same is asked there.
    both("mad", OnceOrTwice, 0.0, Three(|x, y, z| x.fused(y, z))),
    exact("max", Two(|x, y| if x < y { y } else { x })),
    exact("maxmag", Two(|x, y| match x.abs() - y.abs() {
        0.0 => x.max(y),
        more if more > 0.0 => x,
        _ => y,
    })),
    exact("min", Two(|x, y| if y < x { y } else { x })),
    exact("minmag", Two(|x, y| match x.abs() - y.abs() {
        0.0 => x.min(y),
        more if more > 0.0 => y,
        _ => x,
    })),
    // Implementation-defined in double precision. What is asked there are the roundings of the formula, of operands of about 1.
    absolute("mix", 1e-3, 1e-15, Three(|x, y, part| x + (y - x) * part)),
    ulp("pow", 16.0, 1.0, Two(f64::powf)),
    ulp("pown", 16.0, 1.0, Two(f64::powf)),
    ulp("powr", 16.0, 1.0, Two(|x, y| if x < 0.0 { f64::NAN } else { x.powf(y) })),
    ulp("radians", 2.0, 1.0, One(|x| x * (PI / 180.0))),
    rounded("recip", 2.5, One(f64::recip)),
    exact("remainder", Two(|x, y| remainder(x, y))),
    exact("rint", One(f64::round_ties_even)),
    // Of positive numbers.
    ulp("rootn", 16.0, 2.0, Two(|x, n| x.powf(1.0 / n))),
    exact("round", One(f64::round)),
    ulp("rsqrt", 2.0, 1.0, One(|x| 1.0 / x.sqrt())),
    exact("sign", One(|x| if x == 0.0 { x } else { x.signum() })),
    ulp("sin", 4.0, 1.0, One(f64::sin)),
    ulp("sinh", 4.0, 3.0, One(f64::sinh)),
    ulp("sinpi", 4.0, 3.0, One(sinpi)),
    // Implementation-defined in double precision.
    absolute("smoothstep", 1e-5, 1e-15, Three(|low, high, x| {
        let part = ((x - low) / (high - low)).clamp(0.0, 1.0);
        part * part * (3.0 - 2.0 * part)
    })),
    rounded("sqrt", 3.0, One(f64::sqrt)),
    exact("step", Two(|edge, x| if x < edge { 0.0 } else { 1.0 })),
    ulp("tan", 5.0, 2.0, One(f64::tan)),
    ulp("tanh", 5.0, 3.0, One(f64::tanh)),
    ulp("tanpi", 6.0, 6.0, One(tanpi)),
    ulp("tgamma", 16.0, 12.0, One(|x| tgamma(x))),
    exact("trunc", One(f64::trunc)),
];

// SAFETY: functions of numbers, of the C library that the standard library stands on.
unsafe extern "C" {
    safe fn erf(x: f64) -> f64;
    safe fn erfc(x: f64) -> f64;
    safe fn lgamma(x: f64) -> f64;
    safe fn remainder(x: f64, y: f64) -> f64;
    safe fn tgamma(x: f64) -> f64;
}

fn acosh(x: f64) -> f64 {
    let t = x - 1.0;
    (t + (2.0 * t + t * t).sqrt()).ln_1p()
}

fn asinh(x: f64) -> f64 {
    let a = x.abs();
    match a {
        // The C library's own way, which Rust's loses digits of next to 0 and beyond the root of the largest.
        a if a < 0.5 => (a + a * a / (1.0 + (a * a + 1.0).sqrt())).ln_1p(),
        a if a < 1e100 => (a + (a * a + 1.0).sqrt()).ln(),
        a => a.ln() + LN_2,
    }
    .copysign(x)
}

fn atanh(x: f64) -> f64 {
    let a = x.abs();
    (0.5 * (2.0 * a / (1.0 - a)).ln_1p()).copysign(x)
}

/// 10^x by the whole part of x, whose power is rounded once, and the rest.
fn exp10(x: f64) -> f64 {
    let whole = x.round();
    10f64.powf(whole) * ((x - whole) * LN_10).exp()
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

/// tan(pi x), with the signs of its poles that section 7.5.1 gives.
fn tanpi(x: f64) -> f64 {
    match cospi(x) {
        0.0 if x.floor() % 2.0 == 0.0 => f64::INFINITY,
        0.0 => f64::NEG_INFINITY,
        cosine => sinpi(x) / cosine,
    }
}
