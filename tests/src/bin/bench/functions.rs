//! One function of each element, in single and double precision.

use super::single::Bench;
use super::work::{expect, Figure, Ready, Rig};
use pumice_tests::client::{Plain, Result};

const SOURCE: &str = include_str!("functions.cl");

/// A number that the functions take.
pub trait Number: Plain + Default + Clone + Into<f64> {
    /// Its name in kernels.
    const NAME: &'static str;
    /// Relative error of which a result may be 16.
    const UNIT: f64;
    /// The nearest.
    fn of(value: f64) -> Self;
}

impl Number for f32 {
    const NAME: &'static str = "float";
    const UNIT: f64 = f32::EPSILON as f64;
    fn of(value: f64) -> Self {
        value as Self
    }
}

impl Number for f64 {
    const NAME: &'static str = "double";
    const UNIT: f64 = f64::EPSILON;
    fn of(value: f64) -> Self {
        value
    }
}

/// The function of that name.
pub fn function<T: Number>(rig: &Rig, name: &str) -> Result<Option<Ready>> {
    if T::NAME == "double" && !rig.device.has_fp64() {
        return Ok(None);
    }
    let count = rig.pick(1 << 20, 1 << 25);
    let input: Vec<T> = (0..count)
        .map(|i| T::of(0.01 + (i % 99991) as f64 * 1e-4))
        .collect();
    let bench = Bench::new(rig, SOURCE, &format!("{}_{name}", T::NAME))?
        .with(&vec![T::default(); count])?
        .with(&input)?;
    let got: Vec<T> = bench.first((&[count], &[]), 0, count)?;
    let near = |(got, x): (&T, &T)| {
        let want = on_host(name, (*x).into());
        // 16 units in the last place, the most that any of them may be off.
        let size = match name {
            // Near a zero, by the argument.
            "sin" | "cos" => want.abs().max(1e-4),
            _ => want.abs(),
        };
        let got: f64 = (*got).into();
        (got - want).abs() <= 16.0 * T::UNIT * size + 1e-36
    };
    expect(got.iter().zip(&input).step_by(61).all(near), "the function")?;
    let figure = Figure::Giga(count as f64, "Gop/s");
    Ok(Some(bench.ready([count], None, figure)))
}

fn on_host(name: &str, x: f64) -> f64 {
    match name {
        "sin" => x.sin(),
        "cos" => x.cos(),
        "exp" => x.exp(),
        "log" => x.ln(),
        "pow" => x.powf(1.7),
        "tanh" => x.tanh(),
        _ => erf(x),
    }
}

/// For x > 0, by its series, and by its continued fraction where that is short.
fn erf(x: f64) -> f64 {
    let scale = std::f64::consts::FRAC_2_SQRT_PI;
    if x > 3.0 {
        let fraction = (1..=60)
            .rev()
            .fold(0.0, |below, k| f64::from(k) / 2.0 / (x + below));
        return 1.0 - (-x * x).exp() * scale / 2.0 / (x + fraction);
    }
    let (mut term, mut sum) = (x, x);
    for n in 1..120 {
        term *= 2.0 * x * x / f64::from(2 * n + 1);
        sum += term;
    }
    sum * scale * (-x * x).exp()
}
