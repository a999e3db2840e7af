//! Arithmetic to the last bit: built-in functions whose results are determined, against the host's arithmetic, on
//! random bit patterns (subnormals, zeros, infinities and NaN among them).
//!
//! The software division and fused multiply-add are called by their names in the built-in library, so that they are
//! tested on devices that have no need of them.

use super::bounds::{Function, Precision};
use super::buffers::Random;
use pumice_tests::sys::*;
use pumice_tests::{info_value, Plain, Setup};
use spirv_lowering::fused::Fused;

const COUNT: usize = 1 << 15;

const SOURCE: &str = r#"
#define OVERLOAD __attribute__((overloadable))
float OVERLOAD __pumice_divide(float, float);
float OVERLOAD __pumice_fma(float, float, float);
#define I size_t i = get_global_id(0)
kernel void divide_software(global float *a, global float *b, global float *r) { I; r[i] = __pumice_divide(a[i], b[i]); }
kernel void divide_exact(global float *a, global float *b, global float *r) { I; r[i] = a[i] / b[i]; }
kernel void root_exact(global float *a, global float *b, global float *r) { I; r[i] = sqrt(a[i]); }
kernel void fma_software(global float *a, global float *b, global float *r) { I; r[i] = __pumice_fma(a[i], b[i], b[i ^ 1]); }
kernel void fma_exact(global float *a, global float *b, global float *r) { I; r[i] = fma(a[i], b[i], b[i ^ 1]); }
kernel void fmod_exact(global float *a, global float *b, global float *r) { I; r[i] = fmod(a[i], b[i]); }
kernel void remainder_exact(global float *a, global float *b, global float *r) { I; r[i] = remainder(a[i], b[i]); }
kernel void scale_exact(global float *a, global float *b, global float *r) { I; r[i] = ldexp(a[i], as_int(b[i]) >> 22); }
"#;

const SOURCE_DOUBLE: &str = r#"
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
double __attribute__((overloadable)) __pumice_divide(double, double);
double __attribute__((overloadable)) __pumice_fma_near(double, double, double);
#define I size_t i = get_global_id(0)
kernel void divide_software(global double *a, global double *b, global double *r) { I; r[i] = __pumice_divide(a[i], b[i]); }
kernel void divide_exact(global double *a, global double *b, global double *r) { I; r[i] = a[i] / b[i]; }
kernel void fma_exact(global double *a, global double *b, global double *r) { I; r[i] = fma(a[i], b[i], b[i ^ 1]); }
kernel void fmod_exact(global double *a, global double *b, global double *r) { I; r[i] = fmod(a[i], b[i]); }
kernel void fma_near(global double *a, global double *b, global double *r) { I; r[i] = __pumice_fma_near(a[i], b[i], b[i ^ 1]); }
"#;

/// Bit patterns: half of them anything, the others near one another, so that quotients and sums are interesting.
fn patterns(random: &mut Random, bits: u32, fraction: u32) -> Vec<u64> {
    let mut word = |bits: u32| {
        (random.next(1 << 30) as u64) << 34 >> (64 - bits) | random.next(1 << 30) as u64
    };
    let exponents = (1u64 << (bits - 1 - fraction)) - 1;
    (0..COUNT)
        .map(|index| {
            let any = word(bits) & (u64::MAX >> (64 - bits));
            let low = any & ((1 << fraction) - 1);
            match index % 8 {
                0..=3 => any,
                // Close to one, small and large.
                4 | 5 => (exponents / 2 + any % 3) << fraction | low,
                6 => (any % 30) << fraction | low,
                _ => [
                    0,
                    1,
                    exponents << fraction,
                    1 << fraction,
                    (1 << fraction) - 1,
                ][any as usize % 5],
            }
        })
        .collect()
}

/// Runs a kernel on all pairs and calls `check` with operands (the third is the neighbour's second) and result.
fn compare<T: Plain + Copy + PartialEq + std::fmt::Debug>(
    setup: &Setup,
    program: &pumice_tests::Program,
    name: &str,
    (a, b): (&[T], &[T]),
    same: fn(T, T) -> bool,
    want: &dyn Fn(T, T, T) -> T,
) {
    let kernel = setup.kernel(program, name);
    let (first, second) = (setup.buffer_of(a), setup.buffer_of(b));
    let result = setup.buffer(std::mem::size_of_val(a));
    kernel
        .set_buffer(0, &first)
        .set_buffer(1, &second)
        .set_buffer(2, &result);
    setup.run(&kernel, &[COUNT], None);
    let got = setup.read::<T>(&result, COUNT);
    let mut wrong = 0;
    for (i, &found) in got.iter().enumerate() {
        let (x, y, z) = (a[i], b[i], b[i ^ 1]);
        let expected = want(x, y, z);
        if !same(found, expected) {
            wrong += 1;
            if wrong < 5 {
                eprintln!("{name}({x:?}, {y:?}, {z:?}) = {found:?}, not {expected:?}");
            }
        }
    }
    assert_eq!(wrong, 0, "{name}: {wrong} of {COUNT} are wrong");
}

fn same32(a: f32, b: f32) -> bool {
    a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan()
}

fn same64(a: f64, b: f64) -> bool {
    a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan()
}

/// x - n y, n the nearest whole number to x / y, ties to even: exact, by the remainder of twice the divisor.
fn remainder(x: f64, y: f64) -> f64 {
    if y.is_infinite() && x.is_finite() {
        return x;
    }
    let (a, b) = (x.abs(), y.abs());
    // Both operands were floats: these are exact.
    let mut r = a % (2.0 * b);
    if 2.0 * r > b {
        r -= b;
        if 2.0 * r >= b {
            r -= b;
        }
    }
    let r = if x.is_sign_negative() { -r } else { r };
    if r == 0.0 {
        0f64.copysign(x)
    } else {
        r
    }
}

/// x * 2^n rounded once, for n that fits in few steps.
fn scaled(x: f64, n: i32) -> f64 {
    let steps = n.clamp(-400, 400);
    // Exact in double precision for every float; the caller rounds.
    x * 2f64.powi(steps / 2) * 2f64.powi(steps - steps / 2)
}

/// Whether subnormal floats are no zeros.
pub fn keeps_subnormals(setup: &Setup) -> bool {
    let d = setup.device;
    info_value!(u64, clGetDeviceInfo(d), CL_DEVICE_SINGLE_FP_CONFIG) & CL_FP_DENORM != 0
}

#[test]
fn single_precision() {
    let setup = Setup::new();
    let mut random = Random(0x1234_5678_9abc_def1);
    let mut floats = || -> Vec<f32> {
        patterns(&mut random, 32, 23)
            .into_iter()
            .map(|bits| f32::from_bits(bits as u32))
            .collect()
    };
    let (a, b) = (floats(), floats());
    let operands = (a.as_slice(), b.as_slice());
    let program = setup
        .try_build(SOURCE, "-cl-fp32-correctly-rounded-divide-sqrt")
        .expect("build");
    let run = |name: &str, want: &dyn Fn(f32, f32, f32) -> f32| {
        compare(&setup, &program, name, operands, same32, want);
    };
    run("divide_software", &|x, y, _| x / y);
    run("fmod_exact", &|x, y, _| x % y);
    run("remainder_exact", &|x, y, _| {
        remainder(x.into(), y.into()) as f32
    });
    run("scale_exact", &|x, y, _| {
        scaled(x.into(), y.to_bits() as i32 >> 22) as f32
    });
    if keeps_subnormals(&setup) {
        run("fma_software", &|x, y, z| x.fused(y, z));
        run("divide_exact", &|x, y, _| x / y);
        run("root_exact", &|x, _, _| x.sqrt());
        run("fma_exact", &|x, y, z| x.fused(y, z));
    }
}

#[test]
fn double_precision() {
    let setup = Setup::new();
    if !setup.has_doubles() {
        return pumice_tests::left_out("no double precision");
    }
    let mut random = Random(0x1234_5678_9abc_def1);
    let doubles = |random: &mut Random| -> Vec<f64> {
        patterns(random, 64, 52)
            .into_iter()
            .map(f64::from_bits)
            .collect()
    };
    let (a, b) = (doubles(&mut random), doubles(&mut random));
    let operands = (a.as_slice(), b.as_slice());
    let program = setup.build(SOURCE_DOUBLE);
    let run = |name: &str, want: &dyn Fn(f64, f64, f64) -> f64| {
        compare(&setup, &program, name, operands, same64, want);
    };
    run("divide_software", &|x, y, _| x / y);
    run("divide_exact", &|x, y, _| x / y);
    run("fma_exact", &|x, y, z| x.fused(y, z));

    run("fmod_exact", &|x, y, _| x % y);

    // Addends that are near the product, its rounding error, tiny or huge beside it; results around the smallest normal number.
    for round in 0..16 {
        let (mut a, mut b) = (doubles(&mut random), doubles(&mut random));
        for i in (0..COUNT).step_by(2) {
            let bits = b[i + 1].to_bits();
            let sign = 1f64.copysign(b[i + 1]);
            if round % 2 == 0 {
                // Sparse significands, so that sums are halfway between two numbers.
                let ones = u64::MAX << (bits % 53);
                a[i] = f64::from_bits(a[i].to_bits() & ones);
                b[i] = f64::from_bits(b[i].to_bits() & (ones ^ (1 << 30)));
            }
            if round % 4 > 1 {
                let exponent = (bits >> 20) % 2040;
                let fraction = |x: f64| x.to_bits() & ((1 << 52) - 1);
                a[i] = f64::from_bits(fraction(a[i]) | exponent << 52);
                let other = (1024u64 + (bits >> 40) % 120).saturating_sub(exponent + 60);
                b[i] = f64::from_bits(fraction(b[i]) | other.min(2046) << 52);
            }
            let product = a[i] * b[i];
            let near = f64::from_bits(product.to_bits().wrapping_add(bits % 5).wrapping_sub(2));
            let power = 2f64.powi((bits >> 10) as i32 % 120 - 60);
            b[i + 1] = match bits >> 53 & 7 {
                0 => -product,
                1 => -a[i].fused(b[i], -product),
                2 => near.copysign(sign),
                3 => sign * product * power,
                4 => sign * 2f64.powi(-1022) * power,
                5 => f64::from_bits(bits & ((1 << 53) - 1)).copysign(sign),
                _ => b[i + 1],
            };
        }
        let operands = (a.as_slice(), b.as_slice());
        compare(
            &setup,
            &program,
            "fma_exact",
            operands,
            same64,
            &|x, y, z| x.fused(y, z),
        );
    }

    // The nearly exact one, where products are neither tiny nor huge: differences show once in 2^50 cases. Error terms of
    // products, and sums that cancel, come out exactly.
    let near = |random: &mut Random| -> Vec<f64> {
        let unit = |bits: u64| f64::from_bits(1023 << 52 | bits >> 12 | bits << 63);
        patterns(random, 64, 52)
            .into_iter()
            .map(|bits| unit(bits) * 2f64.powi((bits >> 54) as i32 % 41 - 20))
            .collect()
    };
    let (a, mut b) = (near(&mut random), near(&mut random));
    for i in (0..COUNT).step_by(4) {
        b[i + 1] = -a[i] * b[i];
    }
    compare(
        &setup,
        &program,
        "fma_near",
        (&a, &b),
        same64,
        &|x, y, z| x.fused(y, z),
    );
}

/// Values that the specification fixes (section 7.5.1), and a few of the gamma function and of erfc, within its bounds.
#[test]
fn fixed_values() {
    let setup = Setup::new();
    let kernel = setup.kernel_of(
        "kernel void k(global const float *x, global float *r) {
             r[0] = sinpi(x[0]); r[1] = sinpi(-x[0]); r[2] = cospi(x[1]); r[3] = tanpi(x[0]); r[4] = tanpi(x[2]);
             r[5] = tanpi(x[1]); r[6] = tanpi(x[1] + 1.0f); r[7] = tgamma(x[2] + 3.0f); r[8] = tgamma(x[1]);
             r[9] = erfc(x[2] * 4.0f); r[10] = tgamma(-x[1]); r[11] = exp2(x[2] * -70.0f); r[12] = tgamma(x[2] * 0.0f); }",
        "k",
    );
    let x = setup.buffer_of(&[1f32, 0.5, 2.0]);
    let r = setup.buffer(13 * 4);
    kernel.set_buffer(0, &x).set_buffer(1, &r);
    setup.run(&kernel, &[1], None);
    let got = setup.read::<f32>(&r, 13);
    let mut want = [
        0.0,
        -0.0,
        0.0,
        -0.0,
        0.0,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
        f32::NAN,
        f32::NAN,
        f32::NAN,
        2f64.powi(-140) as f32,
        f32::INFINITY,
    ];
    if !keeps_subnormals(&setup) {
        want[11] = got[11];
    }
    let bounded = [
        ("tgamma", 5.0),
        ("tgamma", 0.5),
        ("erfc", 8.0),
        ("tgamma", -0.5),
    ];
    for (i, (&got, want)) in got.iter().zip(want).enumerate() {
        let Some((name, x)) = i.checked_sub(7).and_then(|i| bounded.get(i)) else {
            assert_eq!(got.to_bits(), want.to_bits(), "{i}: {got:e}, not {want:e}");
            continue;
        };
        let (function, x) = (Function::named(name), [*x, 0.0, 0.0]);
        let good = function.admits(Precision::Single, x, got.into());
        assert!(good, "{i}: {got:e}, not {:e}", function.want(x));
    }
}

/// Contraction is the only freedom that a compiler has by default (section 7.4): sums keep their order, so that the errors
/// of sums and products can be computed, and library functions that do so are exact.
#[test]
fn sums_keep_their_order() {
    let setup = Setup::new();
    let kernel = setup.kernel_of(
        "kernel void k(global const float *x, global float *r) {
             float a = x[0], b = x[1], c = x[2];
             float sum = a + b, part = sum - a;
             r[0] = b - part;
             float product = mad(a, c, b);
             r[1] = mad(a, c, -product) + b;
             r[2] = fma(a, c, -(a * c + b));
             r[3] = pown(x[3], 1); r[4] = pown(x[3], 2); r[5] = pow(x[4], 1.0f); r[6] = powr(x[4], 2.0f);
             r[7] = rootn(x[4], 3); }",
        "k",
    );
    let values = [1f32, 1e-9, 3.0, -9.223_372e18, 9.223_372e18];
    let x = setup.buffer_of(&values);
    let r = setup.buffer(8 * 4);
    kernel.set_buffer(0, &x).set_buffer(1, &r);
    setup.run(&kernel, &[1], None);
    let got = setup.read::<f32>(&r, 8);
    let big = 9.223_372e18f32;
    assert_eq!(got[..3], [1e-9, 1e-9, 0.0], "{got:?}");
    let want = [-big, big * big, big, big * big, 2_097_152.0];
    for (i, (got, want)) in got[3..].iter().zip(want).enumerate() {
        let ulps = (got.to_bits() as i64 - want.to_bits() as i64).abs();
        assert!(ulps <= 16, "{i}: {got:e}, not {want:e}");
    }
}

/// Checks that zeros are not folded: the other operand may be infinite, NaN or a zero with a sign.
#[test]
fn constant_zeros() {
    let setup = Setup::new();
    let kernel_of = |ty: &str, bits: &str| {
        let source = format!(
            "kernel void k(global const {ty} *in, global {ty} *r) {{
                 size_t i = get_global_id(0);
                 {ty} x = in[i], zero = 0;
                 r += i * 21;
                 r[0] = x * zero; r[1] = zero * x; r[2] = x + zero; r[3] = zero + x;
                 r[4] = zero - x; r[5] = fma(x, zero, x); r[6] = fma(x, ({ty})1, zero); r[7] = zero / x; r[8] = x / zero; r[9] = x - -zero;
                 r[10] = fabs(x * -zero); r[11] = fma(x, -zero, -zero);
                 r[12] = x < 0 ? zero : -({ty})1; r[13] = x < 0 ? -zero : ({ty})1;
                 r[14] = x < 0 ? ({ty})1 : -zero;
                 {bits} one = as_{bits}(({ty})1), sign = as_{bits}(-zero);
                 r[15] = popcount(x < 0 ? sign : one); r[16] = popcount(x < 0 ? ({bits})0 : one | sign);
                 {ty} product = 0;
                 __attribute__((opencl_unroll_hint(1))) for (int n = 0; n < 2; n++) {{ product = product * x; r[17 + n] = product; }}
                 __attribute__((opencl_unroll_hint(1))) for (int n = 0; n < 2; n++) r[19 + n] = x * ({ty})n; }}"
        );
        setup.kernel_of(&source, "k")
    };
    macro_rules! check {
        ($ty:ident) => {
            let xs: [$ty; 7] = [
                0.0,
                -0.0,
                1.0,
                -1.0,
                $ty::INFINITY,
                -$ty::INFINITY,
                $ty::NAN,
            ];
            let kernel = match size_of::<$ty>() {
                4 => kernel_of("float", "int"),
                _ => kernel_of("double", "long"),
            };
            let x = setup.buffer_of(&xs);
            let r = setup.buffer(7 * 21 * size_of::<$ty>());
            kernel.set_buffer(0, &x).set_buffer(1, &r);
            setup.run(&kernel, &[7], None);
            for (x, got) in xs.iter().zip(setup.read::<$ty>(&r, 147).chunks(21)) {
                // Computed here with a zero that no constant tells.
                let (x, zero) = (*x, std::hint::black_box(0.0));
                let want = [
                    x * zero,
                    zero * x,
                    x + zero,
                    zero + x,
                    zero - x,
                    x * zero + x,
                    x + zero,
                    zero / x,
                    x / zero,
                    x + zero,
                    (x * -zero).abs(),
                    x * -zero - zero,
                    if x < 0.0 { zero } else { -1.0 },
                    if x < 0.0 { -zero } else { 1.0 },
                    if x < 0.0 { 1.0 } else { -zero },
                    if x < 0.0 {
                        1.0
                    } else {
                        (1.0 as $ty).to_bits().count_ones() as $ty
                    },
                    if x < 0.0 {
                        0.0
                    } else {
                        (-1.0 as $ty).to_bits().count_ones() as $ty
                    },
                    zero * x,
                    zero * x * x,
                    x * zero,
                    x,
                ];
                for (i, (got, want)) in got.iter().zip(want).enumerate() {
                    assert!(
                        got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan(),
                        "{i} of {x}: {got:?} in place of {want:?}"
                    );
                }
            }
        };
    }
    check!(f32);
    if !setup.has_doubles() {
        return pumice_tests::left_out("no double precision");
    }
    check!(f64);
}

/// Functions that keep the sign of zero (C99, Annex F) keep that of a double's.
#[test]
fn minus_zero_of_double_precision() {
    let setup = Setup::new();
    if !setup.has_doubles() {
        return pumice_tests::left_out("no double precision");
    }
    let kernel = setup.kernel_of(
        "kernel void k(global const double2 *x, global double2 *r) {
             r[0] = atanpi(x[0]); r[1] = asinpi(x[0]); r[2] = tanpi(x[0]); r[3] = sinpi(x[0]);
             r[4] = sin(x[0]); r[5] = tan(x[0]); r[6] = atan(x[0]); r[7] = expm1(x[0]); r[8] = erf(x[0]); }",
        "k",
    );
    let x = setup.buffer_of(&[-0f64, 0.0]);
    let r = setup.buffer(18 * 8);
    kernel.set_buffer(0, &x).set_buffer(1, &r);
    setup.run(&kernel, &[1], None);
    for (i, got) in setup.read::<f64>(&r, 18).into_iter().enumerate() {
        let want = if i % 2 == 0 { -0f64 } else { 0.0 };
        assert_eq!(got.to_bits(), want.to_bits(), "{i}: {got:e}");
    }
}

#[test]
fn divisions_of_negative_integers() {
    // Vulkan promises nothing of remainders of negative numbers: they are made of divisions, at every width.
    let setup = Setup::new();
    for (ty, lanes) in [("char", 16), ("short", 16), ("int", 16), ("long", 16)] {
        let source = format!(
            "kernel void f(global long *out, global const {ty} *a, global const {ty} *b) {{
                 int i = get_global_id(0);
                 out[i] = a[i] / b[i]; out[{lanes} + i] = a[i] % b[i];
             }}
             kernel void v(global long *out, global const {ty}4 *a, global const {ty}4 *b) {{
                 int i = get_global_id(0);
                 vstore4(convert_long4(a[i] / b[i]), i, out);
                 vstore4(convert_long4(a[i] % b[i]), i, out + {lanes});
             }}"
        );
        let program = setup.build(&source);
        let a: [i64; 16] = [
            -7, 7, -7, 7, -128, 127, -1, 0, -100, 100, -99, 6, -6, 1, -127, 120,
        ];
        let b: [i64; 16] = [
            3, -3, -3, 3, 7, -128, 2, -5, -1, -1, 10, -6, 6, -9, -128, -11,
        ];
        let pack = |values: &[i64; 16]| -> Vec<u8> {
            let width = match ty {
                "char" => 1,
                "short" => 2,
                "int" => 4,
                _ => 8,
            };
            values
                .iter()
                .flat_map(|v| v.to_le_bytes()[..width].to_vec())
                .collect()
        };
        let (left, right) = (setup.buffer_of(&pack(&a)), setup.buffer_of(&pack(&b)));
        let expected: Vec<i64> = (0..16)
            .map(|i| a[i] / b[i])
            .chain((0..16).map(|i| a[i] % b[i]))
            .collect();
        for (name, items) in [("f", 16), ("v", 4)] {
            let out = setup.buffer(32 * 8);
            let kernel = setup.kernel(&program, name);
            kernel
                .set_buffer(0, &out)
                .set_buffer(1, &left)
                .set_buffer(2, &right);
            setup.run(&kernel, &[items], None);
            assert_eq!(setup.read::<i64>(&out, 32), expected, "{ty} {name}");
        }
    }
}

const CONVERSIONS: &str = r#"
#define I size_t i = get_global_id(0)
kernel void rte(global double *x, global float *r) { I; r[i] = convert_float_rte(x[i]); }
kernel void rtz(global double *x, global float *r) { I; r[i] = convert_float_rtz(x[i]); }
kernel void rtp(global double *x, global float *r) { I; r[i] = convert_float_rtp(x[i]); }
kernel void rtn(global double *x, global float *r) { I; r[i] = convert_float_rtn(x[i]); }
"#;

/// To nearest and in each direction, subnormal floats above all: where those are flushed, they are right or zero.
#[test]
fn doubles_to_floats() {
    let setup = Setup::new();
    if !setup.has_doubles() {
        return pumice_tests::left_out("no double precision");
    }
    let keeps = keeps_subnormals(&setup);
    let mut random = Random(0x2345_6789_abcd_ef12);
    // Between floats, near them, and halfway, from the smallest on.
    let doubles: Vec<f64> = patterns(&mut random, 64, 52)
        .into_iter()
        .enumerate()
        .map(|(index, bits)| {
            if index % 8 == 0 {
                return f64::from_bits(bits);
            }
            let float = f32::from_bits(bits as u32 & 0x80ff_ffff);
            let next = f32::from_bits(float.to_bits() + 1);
            let part = [0.0, 0.25, 0.5, 0.75, 1e-8][index % 5];
            f64::from(float) + (f64::from(next) - f64::from(float)) * part
        })
        .collect();
    let program = setup.build(CONVERSIONS);
    let mut wrong = String::new();
    for (name, way) in [("rte", 0), ("rtz", 1), ("rtp", 2), ("rtn", 3)] {
        let kernel = setup.kernel(&program, name);
        let (from, to) = (setup.buffer_of(&doubles), setup.buffer(4 * COUNT));
        kernel.set_buffer(0, &from).set_buffer(1, &to);
        setup.run(&kernel, &[COUNT], None);
        let got = setup.read::<f32>(&to, COUNT);
        let differ = |(&x, &found): &(&f64, &f32)| {
            let expected = narrowed(x, way);
            !same32(expected, found) && (keeps || !expected.is_subnormal() || found != 0.0)
        };
        let all: Vec<_> = doubles.iter().zip(&got).filter(differ).collect();
        for (&x, &found) in all.iter().take(4) {
            let expected = narrowed(x, way);
            wrong += &format!(
                "{name}({x:e}) = {found:e}, not {expected:e}; {} are wrong\n",
                all.len()
            );
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// To nearest, towards zero, up, or down.
fn narrowed(x: f64, way: u32) -> f32 {
    let nearest = x as f32;
    let back = f64::from(nearest);
    let is_wrong = match way {
        1 => back.abs() > x.abs(),
        2 => back < x,
        3 => back > x,
        _ => false,
    };
    match (is_wrong, way) {
        (false, _) => nearest,
        (true, 2) => nearest.next_up(),
        (true, 3) => nearest.next_down(),
        (true, _) if x < 0.0 => nearest.next_up(),
        (true, _) => nearest.next_down(),
    }
}
