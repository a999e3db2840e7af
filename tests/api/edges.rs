//! Built-ins at zeros, infinities, NaN and the ends of their range, where the specification or the limits of functions
//! leave no choice.

use super::buffers::Random;
use pumice_tests::sys::*;
use pumice_tests::{info_value, Plain, Setup};

fn run<A: Plain, R: Plain + Default + Clone>(
    setup: &Setup,
    source: &str,
    input: &[A],
    count: usize,
    items: usize,
) -> Vec<R> {
    let program = setup
        .try_build(source, "-cl-std=CL3.0")
        .unwrap_or_else(|log| panic!("{log}"));
    let kernel = setup.kernel(&program, "k");
    let out = setup.buffer_of(&vec![R::default(); count]);
    let input = setup.buffer_of(input);
    kernel.set_buffer(0, &out).set_buffer(1, &input);
    setup.enqueue(&kernel, &[items], None);
    setup.read(&out, count)
}

#[test]
fn mad_sat_of_long() {
    let setup = Setup::new();
    let mut random = Random(0x1357_9bdf_0246_8ace);
    let special = [
        0,
        1,
        -1,
        3,
        -5,
        i64::MAX,
        i64::MIN,
        i64::MAX - 1,
        i64::MIN + 1,
        1 << 32,
    ];
    let mut values = Vec::new();
    for a in special {
        for b in special {
            for c in special {
                values.extend([a, b, c]);
            }
        }
    }
    for _ in 0..3000 {
        let any = (random.next(1 << 30) as i64) << 34 ^ random.next(1 << 30) as i64;
        values.push(any >> random.next(64));
    }
    let count = values.len() / 3;
    let source = "kernel void k(global long4 *o, global long *i) {
        size_t g = get_global_id(0);
        long a = i[3 * g], b = i[3 * g + 1], c = i[3 * g + 2];
        o[g] = (long4)(mad_sat(a, b, c), as_long(mad_sat(as_ulong(a), as_ulong(b), as_ulong(c))),
                       mad_sat((long2)(b, a), (long2)(a), (long2)(c)));
    }";
    let got: Vec<i64> = run(&setup, source, &values, 4 * count, count);
    for (n, abc) in values.chunks_exact(3).enumerate() {
        let [a, b, c] = [abc[0], abc[1], abc[2]];
        let clamp = |value: i128| value.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
        let signed = clamp(i128::from(a) * i128::from(b) + i128::from(c));
        let unsigned = u128::from(a as u64) * u128::from(b as u64) + u128::from(c as u64);
        let unsigned = unsigned.min(u64::MAX.into()) as i64;
        let squared = clamp(i128::from(a) * i128::from(a) + i128::from(c));
        let expected = [signed, unsigned, signed, squared];
        assert_eq!(got[4 * n..4 * n + 4], expected, "mad_sat of {a}, {b}, {c}");
    }
}

const NAN: &str = "nan";

/// Arguments, expression of `a` and `b` (and `n`, an int that is written through a pointer), result as text.
fn check(setup: &Setup, ty: &str, cases: &[(f64, f64, &str, &str)]) {
    // What is passed and written: doubles for these alone, as a device need not have them.
    let double = ty == "double";
    let passed = if double { "double" } else { "float" };
    for &(a, b, expression, expected) in cases {
        let source = format!(
            "#pragma OPENCL EXTENSION cl_khr_fp16 : enable
            kernel void k(global {passed} *o, global {passed} *in) {{
                {ty} a = ({ty})in[0], b = ({ty})in[1]; int n = 77; {ty} f = 0;
                {ty} r = {expression};
                o[0] = r;
            }}"
        );
        let got = match double {
            true => run::<f64, f64>(setup, &source, &[a, b], 1, 1)[0],
            false => run::<f32, f32>(setup, &source, &[a as f32, b as f32], 1, 1)[0].into(),
        };
        let text = match got {
            value if value.is_nan() => NAN.to_owned(),
            value => format!("{value:?}"),
        };
        assert_eq!(
            text, expected,
            "{expression} in {ty} with a = {a:?}, b = {b:?}"
        );
    }
}

#[test]
fn zeros_infinities_and_nan() {
    let setup = Setup::new();
    let inf = f64::INFINITY;
    let all = [
        (-0.0, 0.0, "fract(a, &f)", "-0.0"),
        (0.0, 0.0, "fract(a, &f)", "0.0"),
        (inf, 0.0, "fract(a, &f)", "0.0"),
        (-inf, 0.0, "fract(a, &f)", "-0.0"),
        (-inf, 0.0, "(fract(a, &f), f)", "-inf"),
        (f64::NAN, 0.0, "fract(a, &f)", NAN),
        (-2.25, 0.0, "fract(a, &f)", "0.75"),
        (-2.25, 0.0, "(fract(a, &f), f)", "-3.0"),
        (0.0, 0.0, "(lgamma_r(a, &n), n)", "0.0"),
        (-0.0, 0.0, "(lgamma_r(a, &n), n)", "0.0"),
        (-3.0, 0.0, "(lgamma_r(a, &n), n)", "0.0"),
        (-3.0, 0.0, "lgamma_r(a, &n)", "inf"),
        (-2.5, 0.0, "(lgamma_r(a, &n), n)", "-1.0"),
        (-1.5, 0.0, "(lgamma_r(a, &n), n)", "1.0"),
        (2.0, 0.0, "(lgamma_r(a, &n), n)", "1.0"),
        (-inf, 0.0, "lgamma_r(a, &n)", "inf"),
        (-inf, 0.0, "lgamma(a)", "inf"),
        (inf, 0.0, "lgamma(a)", "inf"),
        (f64::NAN, 0.0, "lgamma(a)", NAN),
        (-0.0, 0.0, "atanh(a)", "-0.0"),
        (-0.0, 0.0, "log1p(a)", "-0.0"),
        (0.0, 0.0, "atanh(a)", "0.0"),
        (f64::NAN, 0.0, "normalize(a)", NAN),
        (-3.0, 0.0, "normalize(a)", "-1.0"),
        (inf, 0.0, "normalize(a)", "1.0"),
        (0.0, 0.0, "normalize(a)", "0.0"),
    ];
    check(&setup, "float", &all);
    let d = setup.device;
    if setup.has_doubles() {
        check(&setup, "double", &all);
    } else {
        pumice_tests::left_out("no double precision");
    }
    if info_value!(u64, clGetDeviceInfo(d), CL_DEVICE_HALF_FP_CONFIG) != 0 {
        check(&setup, "half", &all);
        let vectors = [
            (40000.0, 0.0, "length((half2)(b, a))", "40000.0"),
            (30000.0, 0.0, "length((half4)(a, a, a, a))", "60000.0"),
            (
                40000.0,
                10000.0,
                "distance((half2)(a, 1), (half2)(b, 1))",
                "30000.0",
            ),
            (inf, 2.0, "normalize((half4)(a, b, 0, 0)).x", "1.0"),
            (inf, 2.0, "normalize((half4)(a, b, 0, 0)).y", "0.0"),
            (-inf, 2.0, "normalize((half3)(b, a, b)).y", "-1.0"),
            (inf, f64::NAN, "normalize((half2)(a, b)).x", NAN),
            (300.0, 400.0, "normalize((half2)(a, b)).y", "0.7998046875"),
        ];
        check(&setup, "half", &vectors);
    } else {
        pumice_tests::left_out("no half precision");
    }
}
