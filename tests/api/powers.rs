//! Powers of doubles within the specification's 16 ulp, where they are next to the largest and smallest numbers: there
//! y log(x) has to be known to ten more bits than a double has. What they should be comes from products in two parts.

use super::buffers::Random;
use pumice_tests::sys::*;
use pumice_tests::{info_value, Setup};
use spirv_lowering::fused::Fused;

const COUNT: usize = 1 << 16;

const SOURCE: &str = r#"
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
kernel void powers(global double *x, global int *n, global double *y, global double *r)
{
    size_t i = get_global_id(0), all = get_global_size(0);
    r[i] = pow(x[i], y[i]);
    r[i + all] = powr(x[i], y[i]);
    // Whole powers have both operands whole or none.
    r[i + 2 * all] = y[i] == n[i] ? pown(x[i], n[i]) : pow(x[i], y[i]);
}
"#;

/// `pow`, then `powr`, then `pown` of all operands.
fn powers(setup: &Setup, bases: &[f64], wholes: &[i32], exponents: &[f64]) -> Vec<f64> {
    let kernel = setup.kernel_of(SOURCE, "powers");
    let (x, n) = (setup.buffer_of(bases), setup.buffer_of(wholes));
    let (y, results) = (
        setup.buffer_of(exponents),
        setup.buffer(3 * 8 * bases.len()),
    );
    kernel
        .set_buffer(0, &x)
        .set_buffer(1, &n)
        .set_buffer(2, &y)
        .set_buffer(3, &results);
    setup.run(&kernel, &[bases.len()], None);
    setup.read(&results, 3 * bases.len())
}

/// A product in two parts.
fn product(a: (f64, f64), b: (f64, f64)) -> (f64, f64) {
    let high = a.0 * b.0;
    let low = a.0.fused(b.0, -high) + (a.0 * b.1 + a.1 * b.0);
    let sum = high + low;
    (sum, low - (sum - high))
}

/// x^n, rounded, and at most one unit off.
fn power(x: f64, n: u32) -> f64 {
    let (mut square, mut result) = ((x, 0.0), (1.0, 0.0));
    for bit in 0..=n.ilog2() {
        if bit > 0 {
            square = product(square, square);
        }
        if n >> bit & 1 != 0 {
            result = product(result, square);
        }
    }
    result.0
}

#[test]
fn next_to_the_largest_and_smallest_numbers() {
    let setup = Setup::new();
    if !setup.has_doubles() {
        return pumice_tests::left_out("no double precision");
    }
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let mut unit = || random.next(1 << 30) as f64 / (1u64 << 30) as f64;
    let (mut bases, mut wholes, mut exponents, mut want) = (vec![], vec![], vec![], vec![]);
    while bases.len() < COUNT {
        let quarters = bases.len() % 2 == 0;
        // The fourth power of a number of 13 bits is exact, and its n/4th power the n-th of that number.
        let base = match quarters {
            true => ((0.85 + 0.34 * unit()) * 4096.0).round() / 4096.0,
            false => 0.5 + 1.5 * (unit() + unit() / (1u64 << 30) as f64),
        };
        let most = (200.0 + 506.0 * unit()) / base.ln().abs();
        if !(1.0..1e6).contains(&most) {
            continue;
        }
        let n = most as u32;
        bases.push(if quarters { base.powi(4) } else { base });
        wholes.push(n as i32);
        exponents.push(f64::from(n) / if quarters { 4.0 } else { 1.0 });
        want.push(power(base, n));
    }
    let got = powers(&setup, &bases, &wholes, &exponents);
    let mut most = 0;
    for (i, got) in got.iter().enumerate() {
        let at = i % COUNT;
        // Results are positive and finite: their bits are in the order of their values.
        let off = got.to_bits().abs_diff(want[at].to_bits());
        assert!(
            off <= 16,
            "{:?}^{:?} is {:?}, and was {got:?}: {off} ulp",
            bases[at],
            exponents[at],
            want[at],
        );
        most = most.max(off);
    }
    eprintln!("at most {most} ulp");
}

/// Where y log2(e) is no number, and where the result is one whatever y is.
#[test]
fn exponents_as_large_as_can_be() {
    let setup = Setup::new();
    let d = setup.device;
    if !setup.has_doubles() {
        return pumice_tests::left_out("no double precision");
    }
    let (least, most) = (1.0 - f64::EPSILON / 2.0, f64::MAX);
    let cases = [
        (1.0, most, 1.0),
        (1.0, -most, 1.0),
        (1.0, 1e300, 1.0),
        (1.0 + f64::EPSILON, most, f64::INFINITY),
        (1.0 + f64::EPSILON, -most, 0.0),
        (least, most, 0.0),
        (least, -most, f64::INFINITY),
        (2.0, most, f64::INFINITY),
        (2.0, -most, 0.0),
        (most, most, f64::INFINITY),
        (f64::MIN_POSITIVE, most, 0.0),
        (2.0, f64::MIN_POSITIVE, 1.0),
        (most, f64::from_bits(1), 1.0),
        (0.0, 1e300, 0.0),
        (f64::INFINITY, -1e300, 0.0),
        (f64::from_bits(1), -1.0, f64::INFINITY),
        (f64::from_bits(1), 1.0, f64::from_bits(1)),
    ];
    let bases = cases.map(|case| case.0);
    let exponents = cases.map(|case| case.1);
    let got = powers(&setup, &bases, &cases.map(|_| 0), &exponents);
    let config = info_value!(u64, clGetDeviceInfo(d), CL_DEVICE_DOUBLE_FP_CONFIG);
    for (i, got) in got.iter().enumerate() {
        let (x, y, want) = cases[i % cases.len()];
        let small = x.is_subnormal() || want.is_subnormal();
        if small && config & CL_FP_DENORM == 0 {
            continue;
        }
        assert_eq!(*got, want, "{x:?}^{y:?}");
    }
}
