//! How often loops with computed bounds run. NVIDIA's compiler ends some of them early (see `unsigned_compares`). Comparisons of numbers of
//! 32 bits with counters of 64, and loops whose bounds are constants, which Mesa's gets wrong (see `divided_trip_counts`).

use pumice_tests::sys::cl_uint;
use pumice_tests::{Kernel, Setup};

/// The header of a loop over `i`, with `n` and `m`, and the same: the first value, whether to go on, the step.
type Shape = (
    &'static str,
    fn(i64, i64) -> i64,
    fn(i64, i64, i64) -> bool,
    i64,
);

const SHAPES: &[Shape] = &[
    ("i = n; i > -n; i -= 2", |n, _| n, |i, n, _| i > -n, -2),
    ("i = n; i > -n; i--", |n, _| n, |i, n, _| i > -n, -1),
    ("i = n; i >= -n; i -= 3", |n, _| n, |i, n, _| i >= -n, -3),
    ("i = n; i > -m; i -= 2", |n, _| n, |i, _, m| i > -m, -2),
    ("i = n; -m < i; i -= 2", |n, _| n, |i, _, m| -m < i, -2),
    ("i = n; -i < m; i--", |n, _| n, |i, _, m| -i < m, -1),
    ("i = n; !(i <= -m); i--", |n, _| n, |i, _, m| i > -m, -1),
    (
        "i = n + 1; i > -n; i -= 2",
        |n, _| n + 1,
        |i, n, _| i > -n,
        -2,
    ),
    (
        "i = n + m; i > -n; i -= 5",
        |n, m| n + m,
        |i, n, _| i > -n,
        -5,
    ),
    ("i = 0; i > -n; i--", |_, _| 0, |i, n, _| i > -n, -1),
    ("i = -m; i < n; i++", |_, m| -m, |i, n, _| i < n, 1),
    ("i = -m; i <= n; i += 2", |_, m| -m, |i, n, _| i <= n, 2),
    (
        "i = -2 * m; i < -n; i += 2",
        |_, m| -2 * m,
        |i, n, _| i < -n,
        2,
    ),
    (
        "i = -3 * n; i < -(n + m); i++",
        |n, _| -3 * n,
        |i, n, m| i < -(n + m),
        1,
    ),
    (
        "i = n; i > -(n + m); i--",
        |n, _| n,
        |i, n, m| i > -(n + m),
        -1,
    ),
    (
        "i = n; i > -(n * 3); i -= 2",
        |n, _| n,
        |i, n, _| i > -(n * 3),
        -2,
    ),
    (
        "i = n; i > -(n >> 1); i--",
        |n, _| n,
        |i, n, _| i > -(n >> 1),
        -1,
    ),
    ("i = n; i > -n / 2; i--", |n, _| n, |i, n, _| i > -n / 2, -1),
    (
        "i = n; i > (-n & ~3); i -= 2",
        |n, _| n,
        |i, n, _| i > (-n & !3),
        -2,
    ),
    (
        "i = n; i > max(-n, -m - 7); i--",
        |n, _| n,
        |i, n, m| i > (-n).max(-m - 7),
        -1,
    ),
    (
        "i = n; i > min(-n, -m); i--",
        |n, _| n,
        |i, n, m| i > (-n).min(-m),
        -1,
    ),
    (
        "i = n; i > (m > 5 ? -n : -m); i--",
        |n, _| n,
        |i, n, _| i > -n,
        -1,
    ),
    (
        "i = n; i > 3 - n; i -= 2",
        |n, _| n,
        |i, n, _| i > 3 - n,
        -2,
    ),
    ("i = n; i > ~n; i -= 2", |n, _| n, |i, n, _| i > !n, -2),
    (
        "i = n; i > n - 2 * m; i -= 2",
        |n, _| n,
        |i, n, m| i > n - 2 * m,
        -2,
    ),
    (
        "i = n; i > -2 * n; i -= 2",
        |n, _| n,
        |i, n, _| i > -2 * n,
        -2,
    ),
    ("i = n; i < 3 * n; i += 2", |n, _| n, |i, n, _| i < 3 * n, 2),
    ("i = n; i != -n; i -= 2", |n, _| n, |i, n, _| i != -n, -2),
    ("i = n; i > n / 2; i--", |n, _| n, |i, n, _| i > n / 2, -1),
];

/// The bytes of a number of the type.
fn size_of(ty: &str) -> usize {
    match ty {
        "long" | "ulong" => 8,
        "int" | "uint" => 4,
        _ => 2,
    }
}

/// A kernel that runs a loop with the header.
fn source(ty: &str, number: usize, header: &str, parameters: &str) -> String {
    format!(
        "kernel void k{number}(global {ty} *p{parameters}) {{
            {ty} i, sum = 0, mix = 0;
            for ({header}) {{ sum += i * i; mix = (mix << 1) ^ i; }}
            p[0] = sum; p[1] = mix;
        }}\n"
    )
}

/// Sets an argument of that many bytes.
fn set(kernel: &Kernel, index: cl_uint, value: i64, size: usize) {
    match size {
        8 => kernel.set(index, value),
        4 => kernel.set(index, value as i32),
        _ => kernel.set(index, value as i16),
    };
}

/// Returns the kernel's results for a loop: sum and mix.
fn results(first: i64, goes_on: impl Fn(i64) -> bool, step: i64) -> [i64; 2] {
    let (mut sum, mut mix, mut i) = (0i64, 0i64, first);
    while goes_on(i) {
        sum = sum.wrapping_add(i * i);
        mix = (mix << 1) ^ i;
        i += step;
    }
    [sum, mix]
}

#[test]
fn loops_run_as_often_as_they_should() {
    let setup = Setup::new();
    for ty in ["long", "int", "short"] {
        let kernels: String = SHAPES
            .iter()
            .enumerate()
            .map(|(number, (header, ..))| source(ty, number, header, &format!(", {ty} n, {ty} m")))
            // A loop within a loop, a bound from memory.
            .chain([format!(
                "kernel void nest(global {ty} *p) {{
                    {ty} sum = 0, n = p[0];
                    for ({ty} y = n; y > -n; y--)
                        for ({ty} x = y; x > -y; x--) sum = (sum << 1) ^ (x * y);
                    p[1] = sum;
                }}\n"
            )])
            .collect();
        let wrap = |v: i64| match ty {
            "long" => v,
            "int" => i64::from(v as i32),
            _ => i64::from(v as i16),
        };
        for options in ["", "-cl-opt-disable"] {
            let program = match setup.try_build(&kernels, options) {
                Ok(program) => program,
                Err(log) => panic!("{options}: {log}"),
            };
            let buffer = setup.buffer(16);
            let read = || match ty {
                "long" => setup.read::<i64>(&buffer, 2),
                "int" => setup
                    .read::<i32>(&buffer, 2)
                    .iter()
                    .map(|&v| v.into())
                    .collect(),
                _ => setup
                    .read::<i16>(&buffer, 2)
                    .iter()
                    .map(|&v| v.into())
                    .collect(),
            };
            for (number, (header, first, goes_on, step)) in SHAPES.iter().enumerate() {
                let kernel = setup.kernel(&program, &format!("k{number}"));
                kernel.set_buffer(0, &buffer);
                for n in [1i64, 2, 3, 11, 50, 501] {
                    set(&kernel, 1, n, size_of(ty));
                    set(&kernel, 2, n, size_of(ty));
                    setup.run(&kernel, &[1], None);
                    let right = results(first(n, n), |i| goes_on(i, n, n), *step).map(wrap);
                    assert_eq!(read(), right, "{ty} {header}, n {n}, {options}");
                }
            }
            let kernel = setup.kernel(&program, "nest");
            for n in [1i64, 4, 40] {
                match ty {
                    "long" => setup.write(&buffer, &[n]),
                    "int" => setup.write(&buffer, &[n as i32]),
                    _ => setup.write(&buffer, &[n as i16]),
                }
                kernel.set_buffer(0, &buffer);
                setup.run(&kernel, &[1], None);
                let mut sum = 0i64;
                for y in (1 - n..=n).rev() {
                    for x in (1 - y..=y).rev() {
                        sum = (sum << 1) ^ (x * y);
                    }
                }
                assert_eq!(read()[1], wrap(sum), "{ty}, nest of {n}, {options}");
            }
        }
    }
}

/// The header of a loop of positive numbers over `i`, with `n`, and the same: the first value, whether to go on, the step.
type Steps = (
    &'static str,
    fn(i64) -> i64,
    fn(i64, i64) -> bool,
    fn(i64) -> i64,
);

const STEPS: &[Steps] = &[
    (
        "i = 9 * n + 4; i > n; i -= n",
        |n| 9 * n + 4,
        |i, n| i > n,
        |n| -n,
    ),
    (
        "i = 9 * n + 4; n < i; i -= n",
        |n| 9 * n + 4,
        |i, n| i > n,
        |n| -n,
    ),
    (
        "i = 9 * n + 4; i >= n; i -= n",
        |n| 9 * n + 4,
        |i, n| i >= n,
        |n| -n,
    ),
    (
        "i = 9 * n + 4; i > n + 3; i -= n + 3",
        |n| 9 * n + 4,
        |i, n| i > n + 3,
        |n| -n - 3,
    ),
    (
        "i = 9 * n + 4; !(i < n); i = i - n",
        |n| 9 * n + 4,
        |i, n| i >= n,
        |n| -n,
    ),
    (
        "i = 9 * n; i != 0; i -= n",
        |n| 9 * n,
        |i, _| i != 0,
        |n| -n,
    ),
    ("i = 9 * n; i; i -= n", |n| 9 * n, |i, _| i != 0, |n| -n),
    ("i = 0; i < 9 * n; i += n", |_| 0, |i, n| i < 9 * n, |n| n),
    (
        "i = n; i <= 9 * n; i += n + 1",
        |n| n,
        |i, n| i <= 9 * n,
        |n| n + 1,
    ),
    (
        "i = 64 * n + 5; i > 63; i -= 64",
        |n| 64 * n + 5,
        |i, _| i > 63,
        |_| -64,
    ),
    ("i = n; i--;", |n| n - 1, |i, _| i >= 0, |_| -1),
    ("i = n; i > 0; i--", |n| n, |i, _| i > 0, |_| -1),
];

/// As programs take a message apart, a block at a time.
#[test]
fn loops_with_computed_steps() {
    let setup = Setup::new();
    for ty in ["long", "ulong", "int", "uint", "short", "ushort"] {
        let kernels: String = STEPS
            .iter()
            .enumerate()
            .map(|(number, (header, ..))| source(ty, number, header, &format!(", {ty} n")))
            .collect();
        let size = size_of(ty);
        for options in ["", "-cl-opt-disable"] {
            let program = setup.try_build(&kernels, options).expect("it builds");
            let buffer = setup.buffer(16);
            for (number, (header, first, goes_on, step)) in STEPS.iter().enumerate() {
                let kernel = setup.kernel(&program, &format!("k{number}"));
                kernel.set_buffer(0, &buffer);
                for n in [1i64, 3, 16, 125] {
                    set(&kernel, 1, n, size);
                    setup.run(&kernel, &[1], None);
                    let right: Vec<u8> = results(first(n), |i| goes_on(i, n), step(n))
                        .iter()
                        .flat_map(|value| value.to_le_bytes()[..size].to_vec())
                        .collect();
                    let seen = setup.read::<u8>(&buffer, 2 * size);
                    assert_eq!(seen, right, "{ty} {header}, n {n}, {options}");
                }
            }
        }
    }
}

#[test]
fn extended_numbers() {
    let setup = Setup::new();
    let kernel = setup.kernel_of(
        "kernel void k(global const int *x, global uint *r) {
             size_t i = get_global_id(0);
             long sum = x[i] + x[i + 5];
             // Counters that are constants when the driver has unrolled the loop.
             __attribute__((opencl_unroll_hint(1)))
             for (long n = -1; n < 3; n++)
                 r[i * 4 + n + 1] = (n < sum) | (n <= sum) << 1 | (n > sum) << 2 | (n >= sum) << 3;
         }",
        "k",
    );
    let x = [0, 1, -2, 7, i32::MIN, 0, 0, 1, -7, 0];
    let (numbers, results) = (setup.buffer_of(&x), setup.buffer(5 * 4 * 4));
    kernel.set_buffer(0, &numbers).set_buffer(1, &results);
    setup.run(&kernel, &[5], None);
    let wanted = (0..5).flat_map(|i| {
        (-1..3).map(move |n| {
            let sum = x[i] + x[i + 5];
            let all = [n < sum, n <= sum, n > sum, n >= sum];
            (0..4).map(|bit| u32::from(all[bit]) << bit).sum()
        })
    });
    assert_eq!(
        setup.read::<u32>(&results, 20),
        wanted.collect::<Vec<u32>>()
    );
}

/// Type and header of a loop, and how often it runs.
const CONSTANT: &[(&str, &str, u32)] = &[
    ("uchar", "i = 252; i > 137; i += 27", 1),
    ("short", "i = 32760; i > 32000; i += 3", 3),
    ("uint", "i = 0xfffffff0; i > 0x80000000; i += 5", 4),
    ("int", "i = 0; i != (-2147483647 - 1); i--", 40),
    ("long", "i = 5; i > LONG_MIN + 5; i--", 40),
    ("float", "i = 0; i < 3.0f; i += 0.3f", 11),
    ("float", "i = 0; i < 2.5f; i += 0.1f", 26),
    ("float", "i = 1; i > 0.0f; i -= 0.25f", 4),
    ("double", "i = 0; i < 1.0; i += 0.1", 11),
    ("double", "i = 1; i > 0.0; i -= 0.1", 11),
    ("int", "i = 0; i < 7; i += 2", 4),
];

#[test]
fn constant_trip_counts() {
    let setup = Setup::new();
    let doubles = setup.has_extension("cl_khr_fp64");
    if !doubles {
        pumice_tests::left_out("no double precision");
    }
    let loops: Vec<_> = (CONSTANT.iter().copied())
        .filter(|&(ty, ..)| doubles || ty != "double")
        .collect();
    let source: String = (loops.iter().enumerate())
        .map(|(number, (ty, header, _))| {
            format!(
                "kernel void k{number}(global volatile uint *r) {{
                     {ty} i;
                     __attribute__((opencl_unroll_hint(1)))
                     for ({header}) {{
                         r[0] += 1;
                         if (r[0] == 40)
                             break;
                     }}
                 }}"
            )
        })
        .collect();
    for options in ["", "-cl-opt-disable"] {
        let program = setup.try_build(&source, options).expect("it builds");
        for (number, &(ty, header, count)) in loops.iter().enumerate() {
            let kernel = setup.kernel(&program, &format!("k{number}"));
            let buffer = setup.buffer_of(&[0u32]);
            kernel.set_buffer(0, &buffer);
            setup.run(&kernel, &[1], None);
            let seen = setup.read::<u32>(&buffer, 1);
            assert_eq!(seen, [count], "{ty} {header}, {options}");
        }
    }
}
