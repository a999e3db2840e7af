//! OpenCL C, section 6, in unusual and legal ways: the kernels of `language.cl` on numbers without a pattern.
//!
//! What they must write stands here as a hash of it. Pocl writes the same, as far as it knows the functions; the rest
//! (`half`, bit fields, dot products) was computed by hand.

use pumice_tests::{Buffer, Setup};

/// Words of the buffers.
const WORDS: usize = 16384;

/// Kernel, extensions that it needs, and the hash of what it writes.
const KERNELS: &[(&str, &str, u64)] = &[
    ("literals", "cl_khr_fp64", 0x0d2c_f990_ba65_29e9),
    ("reinterpretation", "cl_khr_fp64", 0x3606_e65b_5b78_cd9f),
    ("halves_of_vectors", "", 0xa45b_1e5f_c37f_0201),
    ("swizzled_targets", "", 0xfb44_fa57_2ce9_5174),
    ("shuffles", "", 0xa0d8_caa8_14a2_7960),
    ("half_in_memory", "cl_khr_fp64", 0x5289_5628_9888_8fd8),
    ("conversions", "cl_khr_fp64", 0xefe0_2fa5_1868_1870),
    (
        "conversions_of_half",
        "cl_khr_fp16 cl_khr_fp64",
        0x927d_6c54_aaf2_d255,
    ),
    ("integer_functions", "", 0x073a_ba36_854e_df22),
    ("unions", "cl_khr_fp64", 0x1178_cab3_6540_56ab),
    ("jumps", "", 0x45a3_97e7_48b9_ad10),
    ("switches", "", 0x45bd_d0a8_eba6_53e7),
    ("program_scope", "", 0x39d7_68bd_2a03_81c7),
    ("operators", "cl_khr_fp64", 0xc68b_14dd_c585_c5cd),
    ("exact_functions", "", 0x0852_9dbe_9afe_ce3f),
    ("atomics", "", 0xa7ef_933b_0386_77a7),
    (
        "bit_fields",
        "cl_khr_extended_bit_ops",
        0x20f3_ee61_68fb_570c,
    ),
    (
        "dot_products",
        "cl_khr_integer_dot_product",
        0x404b_7514_6df5_981d,
    ),
    ("structures", "", 0xe43b_1007_f3e5_68f0),
    ("loops", "", 0xad2c_4efc_14d7_c2b4),
    ("sizes", "cl_khr_fp64", 0xd5ad_327f_c79d_8e81),
];

/// Half of the words have no pattern, then come floats of many sizes.
fn input() -> Vec<u32> {
    let mut state = 12345u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state
    };
    let mut words: Vec<u32> = (0..WORDS)
        .map(|_| {
            let x = next();
            x ^ x >> 13
        })
        .collect();
    for word in &mut words[WORDS / 2..WORDS / 4 * 3] {
        let x = next();
        let float = ((x >> 4) as i32 - (1 << 27)) as f32 / 1i32.wrapping_shl(x & 31) as f32;
        *word = float.to_bits();
    }
    words
}

/// FNV-1a.
fn hash(words: &[u32]) -> u64 {
    let bytes = words.iter().flat_map(|word| word.to_le_bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    })
}

#[test]
fn unusual_ways() {
    let setup = Setup::new();
    let mut parts = include_str!("language.cl").split("\n//== ");
    let common = parts.next().expect("what all kernels have");
    let sources: Vec<(&str, &str)> = parts.filter_map(|part| part.split_once('\n')).collect();
    assert_eq!(sources.len(), KERNELS.len());
    let input = input();
    let mut wrong = Vec::new();
    for (&(name, needed, expected), (title, source)) in KERNELS.iter().zip(sources) {
        assert_eq!(name, title);
        if !needed
            .split_whitespace()
            .all(|name| setup.has_extension(name))
        {
            pumice_tests::left_out(&format!("{name}: not all of {needed}"));
            continue;
        }
        let program = match setup.try_build(&format!("{common}\n{source}"), "-cl-std=CL3.0") {
            Ok(program) => program,
            Err(log) => panic!("{name}: {log}"),
        };
        let kernel = setup.kernel(&program, name);
        let (from, to) = (
            setup.buffer_of(&input),
            setup.buffer_of(&vec![0xcdcd_cdcdu32; WORDS]),
        );
        kernel.set_buffer(0, &from).set_buffer(1, &to);
        setup.run(&kernel, &[16], Some(&[16]));
        // Beyond these are structures with their padding.
        let written = setup.read::<u32>(&to, WORDS / 2);
        let found = hash(&written);
        if found != expected {
            wrong.push(format!("{name}: {found:#x}, {:x?}", &written[..64]));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// NAN is a constant expression of type float (OpenCL C, "Math Constants").
#[test]
fn constant_nan() {
    let setup = Setup::new();
    let program = setup.build(
        "constant float table[] = { NAN, 1.0f, -NAN };
         kernel void f(global float *out) {
             constant float own = NAN;
             size_t i = get_global_id(0);
             out[i] = i < 3 ? table[i] : own * 2.0f;
         }",
    );
    let kernel = setup.kernel(&program, "f");
    let out = setup.buffer(16);
    kernel.set_buffer(0, &out);
    setup.run(&kernel, &[4], None);
    let got = setup.read::<f32>(&out, 4);
    assert_eq!(
        got.iter().map(|x| x.is_nan()).collect::<Vec<_>>(),
        [true, false, true, true]
    );
}

/// A division by zero, and the least integer divided by -1, have an unspecified result and no other effect (OpenCL C,
/// "Arithmetic Operators").
#[test]
fn divisions_by_zero() {
    let setup = Setup::new();
    let program = setup.build(
        "int quotient(int sum, int n) { int q = sum / n; return n ? q : 5; }
         kernel void f(global int *out, int n, int least, int minus) {
             int i = get_global_id(0);
             out[i * 8] = quotient(i, n);
             out[i * 8 + 1] = quotient(i, 0);
             uint q = 100u / (uint)n;
             out[i * 8 + 2] = n == 0;
             int r = i % n;
             if (n == 0) out[i * 8 + 3] = 3;
             q += least / minus;
             out[i * 8 + 4] = least == INT_MIN && minus == -1 ? 6 : q;
             int4 v = (int4)(i) / (int4)(n, 1, n, 2);
             out[i * 8 + 5] = v.y + 2 * v.w;
             int sum = 0;
             for (int j = 0; j < 3; j++) sum += (j ? i / j : 0) + i / j * (j != 0);
             out[i * 8 + 6] = sum;
             out[i * 8 + 7] = q + r + v.x == 12345 ? 1 : 7;
         }",
    );
    let kernel = setup.kernel(&program, "f");
    let out = setup.buffer(256);
    kernel.set_buffer(0, &out);
    kernel.set(1, 0i32).set(2, i32::MIN).set(3, -1i32);
    setup.run(&kernel, &[8], None);
    let got = setup.read::<i32>(&out, 64);
    for (i, got) in (0..).zip(got.chunks(8)) {
        let sum = 2 * (i + i / 2);
        let products = i + 2 * (i / 2);
        assert_eq!(got, [5, 5, 1, 3, 6, products, sum, 7], "work-item {i}");
    }
}

/// The library of C is no part of OpenCL C: functions of its names are the program's own.
#[test]
fn names_of_the_c_library() {
    let setup = Setup::new();
    let program = setup.build(
        "float sqrtf(float x) { return x + 1; }
         float sinf(float x) { return 42; }
         float powf(float x, float y) { return x - y; }
         float fabsf(float x) { return -2; }
         int ffs(int x) { return 99; }
         int isdigit(int x) { return 5; }
         int strlen(const char *text) { return 13; }
         global int *malloc(global int *pool, int n) { return pool + n; }
         kernel void f(global int *out, float v) {
             char text[4] = \"abc\";
             global int *own = malloc(out, 7);
             *own = 77;
             out[0] = sqrtf(4.0f);
             out[1] = sinf(0.0f);
             out[2] = powf(v, 2.0f) * 100;
             out[3] = fabsf(v);
             out[4] = ffs(8);
             out[5] = isdigit('z');
             out[6] = strlen(text);
         }",
    );
    let kernel = setup.kernel(&program, "f");
    let out = setup.buffer(32);
    kernel.set_buffer(0, &out).set(1, 2.5f32);
    setup.run(&kernel, &[1], None);
    assert_eq!(setup.read::<i32>(&out, 8), [5, 42, 50, -2, 99, 5, 13, 77]);
}

/// Comparing exchanges of floats compare bits (OpenCL C, "Atomic Functions").
#[test]
fn exchanges_of_floats() {
    let setup = Setup::new();
    let source = "
        kernel void f(global uint *out, volatile global atomic_TYPE *p, global TYPE *values) {
            TYPE expected = values[0];
            out[0] = atomic_compare_exchange_strong(p, &expected, values[1]);
            out[1] = atomic_compare_exchange_strong(p, &expected, values[2]);
            out[2] = expected == values[1];
            while (!atomic_compare_exchange_weak_explicit(p, &expected, values[2],
                       memory_order_relaxed, memory_order_relaxed, memory_scope_device));
            expected = values[3];
            out[3] = atomic_compare_exchange_strong(p, &expected, values[0]);
            out[4] = isnan(expected);
        }";
    let check = |ty: &str, bytes: usize, values: &Buffer| {
        let program = setup.try_build(&source.replace("TYPE", ty), "-cl-std=CL3.0");
        let program = program.unwrap_or_else(|log| panic!("{ty}: {log}"));
        let kernel = setup.kernel(&program, "f");
        let (out, found) = (setup.buffer(20), setup.buffer_of(&vec![0u8; bytes]));
        kernel
            .set_buffer(0, &out)
            .set_buffer(1, &found)
            .set_buffer(2, values);
        setup.run(&kernel, &[1], None);
        // -0.0 is not +0.0, and a NaN is itself.
        assert_eq!(setup.read::<u32>(&out, 5), [1, 0, 1, 0, 1], "{ty}");
    };
    check(
        "float",
        4,
        &setup.buffer_of(&[0f32, 2.5, f32::NAN, -f32::NAN]),
    );
    let int64 = setup.has_extension("cl_khr_int64_base_atomics");
    match int64 && setup.has_extension("cl_khr_fp64") {
        true => check(
            "double",
            8,
            &setup.buffer_of(&[0f64, 2.5, f64::NAN, -f64::NAN]),
        ),
        false => pumice_tests::left_out("no atomics on double"),
    }
}
