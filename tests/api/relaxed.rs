//! Options that trade accuracy for time keep what is determined.

use pumice_tests::Setup;

/// Work-items: several vectors, and a part of one.
const ITEMS: usize = 75;

const OPTIONS: [&str; 4] = [
    "",
    "-cl-unsafe-math-optimizations",
    "-cl-fast-relaxed-math",
    "-cl-mad-enable -cl-no-signed-zeros -cl-unsafe-math-optimizations",
];

/// A function of the host.
type Wanted<T> = fn(T) -> T;

/// Returns what expressions of `x` give: for each the results of all work-items.
fn run(setup: &Setup, expressions: &[&str], options: &str, input: &[f32]) -> Vec<Vec<f32>> {
    let mut source = String::from(
        "kernel void k(global float *out, global const float *in) {
             size_t i = get_global_id(0), n = get_global_size(0);
             float x = in[i];
             int sign = 5;\n",
    );
    for (number, expression) in expressions.iter().enumerate() {
        source += &format!("out[n * {number} + i] = {expression};\n");
    }
    let built = setup.try_build(&(source + "}"), options);
    let program = built.unwrap_or_else(|log| panic!("{options}: {log}"));
    let kernel = setup.kernel(&program, "k");
    let input: Vec<f32> = (0..ITEMS).map(|i| input[i % input.len()]).collect();
    let count = ITEMS * expressions.len();
    let (out, values) = (setup.buffer(count * 4), setup.buffer_of(&input));
    kernel.set_buffer(0, &out).set_buffer(1, &values);
    setup.run(&kernel, &[ITEMS], None);
    let all = setup.read::<f32>(&out, count);
    all.chunks(ITEMS).map(<[f32]>::to_vec).collect()
}

/// The activation functions of neural networks count on it.
#[test]
fn quotients_of_infinities_and_zeros() {
    let setup = Setup::new();
    let input = [-100f32, 0.0, f32::INFINITY, 1.0, -3.0, 1e30, 2e-30, 1e5];
    let cases: [(&str, Wanted<f32>); 9] = [
        ("1.0f / x", |x| 1.0 / x),
        ("3.0f / (x * 2.0f)", |x| 3.0 / (x * 2.0)),
        ("native_recip(x)", |x| 1.0 / x),
        ("native_divide(2.0f, x)", |x| 2.0 / x),
        ("half_recip(x)", |x| 1.0 / x),
        ("1.0f / (1.0f + exp(-x))", |x| 1.0 / (1.0 + (-x).exp())),
        ("1.0f / (1.0f + native_exp(-x))", |x| {
            1.0 / (1.0 + (-x).exp())
        }),
        ("x / (1.0f + exp(-x))", |x| x / (1.0 + (-x).exp())),
        ("x / 0.0f", |x| x / 0.0),
    ];
    for options in OPTIONS {
        // The last is of a program that says that numbers are finite, and then divides by zero.
        let count = cases.len() - usize::from(options.contains("relaxed"));
        let expressions: Vec<&str> = cases[..count].iter().map(|case| case.0).collect();
        let all = run(&setup, &expressions, options, &input);
        for (got, (expression, wanted)) in all.iter().zip(&cases) {
            for (i, &got) in got.iter().enumerate() {
                let x = input[i % input.len()];
                let want = wanted(x);
                // The sign of a zero may go with these options, and subnormal numbers on some devices.
                let fits = got == want
                    || got.is_nan() && want.is_nan()
                    || got.is_infinite() && want.is_infinite() && x == 0.0
                    || (got - want).abs() <= want.abs() * 1e-3 + 1e-30;
                assert!(fits, "{options} {expression}: {x} gives {got}, not {want}");
            }
        }
    }
}

/// Their bounds of 8192 ulp hold with every option: the wider ones are for the functions that have no `half_`.
#[test]
fn functions_of_half_precision_keep_their_bounds() {
    let setup = Setup::new();
    let cases: [(&str, Wanted<f64>); 5] = [
        ("half_powr(x, 65000.0f)", |x| x.powf(65000.0)),
        ("half_log2(x)", f64::log2),
        ("half_log(x)", f64::ln),
        ("half_sin(x)", f64::sin),
        ("half_exp10(x)", |x| 10f64.powf(x)),
    ];
    let input = [
        0.999_999_94f32,
        1.000_000_1,
        0.998_565_1,
        1.0005,
        3.25,
        1e-6,
        20.25,
    ];
    let expressions = cases.map(|case| case.0);
    for options in OPTIONS {
        let all = run(&setup, &expressions, options, &input);
        for (got, (expression, wanted)) in all.iter().zip(&cases) {
            for (i, &got) in got.iter().enumerate() {
                let x = input[i % input.len()];
                let want = wanted(x.into());
                // Below the normal numbers an ulp is that of the least of them.
                let least = f64::from(f32::MIN_POSITIVE);
                let error = (f64::from(got) - want).abs() / want.abs().max(least);
                let fits = error <= 8192.0 / f64::from(1 << 24)
                    || f64::from(got) == f64::from(want as f32);
                assert!(fits, "{options} {expression}: {x} gives {got}, not {want}");
            }
        }
    }
}

/// Near its pole at zero the logarithm of the gamma function is that of the reciprocal.
#[test]
fn the_logarithm_of_gamma_near_zero() {
    let setup = Setup::new();
    let input: Vec<f32> = (-125..-18)
        .flat_map(|exponent| [1f32, -1.0].map(|sign| sign * 1.3 * 2f32.powi(exponent)))
        .collect();
    for inputs in input.chunks(ITEMS) {
        let all = run(
            &setup,
            &["lgamma(x)", "lgamma_r(x, &sign)", "sign"],
            "",
            inputs,
        );
        for (i, x) in inputs.iter().enumerate() {
            let [got, with_sign, sign] = [0, 1, 2].map(|number: usize| all[number][i]);
            assert_eq!((with_sign, sign), (got, x.signum()), "{x:e}");
            let want = -f64::from(x.abs()).ln();
            // Some devices flush what is subnormal.
            let flushed = x.abs() < f32::MIN_POSITIVE && got.is_infinite();
            let error = (f64::from(got) - want).abs() / want;
            assert!(error < 1e-6 || flushed, "{x:e} gives {got}, not {want}");
        }
    }
}
