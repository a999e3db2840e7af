//! Kernels that were compiled wrongly once, each with its cause. What finds their like are generated kernels; these stay.

use pumice_tests::{Plain, Program, Setup};

/// Returns what a kernel `k(global *out, global *in)` leaves in `out`, for `items` work-items in
/// one group.
fn run<T: Plain + Default + Clone>(
    source: &str,
    options: &str,
    input: &[T],
    count: usize,
    items: usize,
) -> Vec<T> {
    let setup = Setup::new();
    let program: Program = setup
        .try_build(source, options)
        .unwrap_or_else(|log| panic!("{log}"));
    let kernel = setup.kernel(&program, "k");
    let out = setup.buffer_of(&vec![T::default(); count]);
    let input = setup.buffer_of(input);
    kernel.set_buffer(0, &out).set_buffer(1, &input);
    setup.enqueue(&kernel, &[items], Some(&[items]));
    setup.read(&out, count)
}

/// The join of a diamond was counted as having one way in less than it has, and the other way vanished.
#[test]
fn joins_of_nested_diamonds() {
    let by_prefetch = "
        uint f(uint x, uint k, uint q, uint y, global uint *o) {
          uint w = y;
          if ((k & 1) == 0) { if (q) prefetch(o + x * 3, 1); else prefetch(o + x * 5, 1); }
          else if (k & 2) goto Z;
          w = x * 7 + 3;
        Z: return w;
        }
        kernel void k(global uint *o, global uint *in) {
          uint g = get_global_id(0);
          o[g] = f(in[0] + g, g, in[1], in[2], o);
        }";
    let by_calls = "
        __attribute__((noinline)) uint foo(uint x) { return x * 3 + 1; }
        __attribute__((noinline)) uint bar(uint x) { return x * 5 + 7; }
        uint f(uint x, uint k, uint q, uint y) {
          uint w = y;
          if ((k & 1) == 0) { if (q) foo(x); else bar(x); }
          else if (k & 2) goto Z;
          w = x * 7 + 3;
        Z: return w;
        }
        kernel void k(global uint *o, global uint *in) {
          uint g = get_global_id(0);
          o[g] = f(in[0] + g, g, in[1], in[2]);
        }";
    let by_variable = by_calls
        .replace("foo(x); else bar(x);", "v = x * 3; else v = x * 5;")
        .replace("uint w = y;", "volatile uint v; uint w = y;");
    for (source, options) in [
        (by_prefetch, ""),
        (by_calls, "-cl-opt-disable"),
        (&*by_variable, ""),
    ] {
        let out = run(source, options, &[10u32, 1, 99], 4, 4);
        assert_eq!(out, [73, 80, 87, 99], "{options}");
    }
}

/// A null pointer to local or private memory got the tag of its space and was null no more.
#[test]
fn null_pointers_are_null_in_every_space() {
    let source = "
        kernel void k(global uint *o, global uint *in) {
          local int lm[4];
          int pa[4];
          lm[0] = in[2]; pa[0] = in[3];
          local int *lp = in[0] == 5 ? lm : 0;
          int *pp = in[1] == 7 ? pa : 0;
          int *g = in[2] ? (int *)lp : (int *)pp;
          o[0] = g == 0;
          o[1] = g ? *g : 1;
        }";
    for options in ["", "-cl-opt-disable"] {
        let options = format!("-cl-std=CL3.0 {options}");
        assert_eq!(run(source, &options, &[0u32, 0, 3, 1], 2, 1), [1, 1]);
        // The first variable of its memory is not null.
        assert_eq!(run(source, &options, &[5u32, 7, 3, 1], 2, 1), [0, 3]);
        assert_eq!(run(source, &options, &[5u32, 7, 0, 6], 2, 1), [0, 6]);
    }
    let source = "
        kernel void k(global uint *o, global uint *in) {
          local int lm[4];
          int pa[4];
          lm[0] = in[2];
          for (int i = 0; i < 4; i++) pa[i] = in[i];
          local int *lp = in[0] == 5 ? lm : 0;
          int *pp = 0;
          if (in[1] == 7) pp = pa;
          int *g = in[3] == 1 ? (int *)lp : (int *)pp;
          int *h = in[3] == 1 ? (int *)pp : (int *)lp;
          o[0] = g == 0; o[1] = h == 0; o[2] = g ? 1 : 2; o[3] = to_local(g) == 0; o[4] = g == h;
          o[5] = (in[0] != 5 ? (int *)lp : (int *)pa) == 0; o[6] = lp == 0;
        }";
    let out = run(source, "-cl-std=CL3.0", &[0u32, 0, 3, 1], 7, 1);
    assert_eq!(out, [1, 1, 2, 1, 1, 1, 1]);
}

/// A loop was taken to end when its counter passes the end, which it steps over and wraps around.
#[test]
fn counters_that_wrap_around() {
    let source = "
        kernel void k(global uint *o, global uint *in) {
          int i = 0;
          uint n = 0;
          while (i < 0x7f000000) { n++; i = (int)((uint)i + 0x400014F8u); n ^= in[n & 7] & 1; }
          o[0] = n;
        }";
    assert_eq!(run(source, "", &[0u32; 8], 1, 1), [196_905]);
}

/// Parts of packed structures, passed by value, were loaded as if they were aligned to their size.
#[test]
fn parts_of_packed_structures_are_not_aligned() {
    let source = "
        typedef struct { ushort v[17]; } In;
        typedef struct { ushort pad; In in; } S;
        kernel void k(global uint *o, S s) {
          In t = s.in;
          uint i = get_global_id(0);
          t.v[i & 15] ^= 0x1111;
          o[i] = t.v[(i * 7) % 17];
        }";
    let setup = Setup::new();
    let kernel = setup.kernel_of(source, "k");
    let out = setup.buffer_of(&[0u32; 32]);
    let values: [u16; 18] = std::array::from_fn(|index| 100 + index as u16);
    kernel.set_buffer(0, &out).set(1, values);
    setup.run(&kernel, &[32], None);
    let expected: Vec<u32> = (0..32)
        .map(|i: usize| {
            let mut v: Vec<u32> = values[1..].iter().map(|&v| v.into()).collect();
            v[i & 15] ^= 0x1111;
            v[(i * 7) % 17]
        })
        .collect();
    assert_eq!(setup.read::<u32>(&out, 32), expected);
}

/// Clang 22 leaves truncations out before masks, whose operands are wider than their result then.
#[test]
fn masks_of_wider_values() {
    let source = "kernel void k(global ulong *o, global ulong *a) { ulong x = a[0]; o[0] = (uint)(ushort)x; }";
    for options in ["", "-cl-opt-disable"] {
        let out = run(source, options, &[0x1234_5678_9abc_def0u64], 1, 1);
        assert_eq!(out, [0xdef0]);
    }
}

/// The same, with operands computed from others that were truncated.
#[test]
fn masks_of_computed_values() {
    let source = "
        kernel void k(global ulong *out, global const uint *in) {
          uint gid = (uint)(get_global_id(0));
          ulong v0 = in[(gid * 8 + 49) & 255] + ((ulong)in[(gid + 0) & 255] << 0);
          ulong v1 = in[7] + ((ulong)in[(gid + 1) & 255] << 0);
          ulong v2 = in[5] + ((ulong)in[1] << 0);
          for (uint i3 = 0; i3 < 2u + (in[1] & 1u); i3++) {
            { v1 ^= (ulong)sub_group_broadcast_first((uint)(v0 * 3u)); }
            v1 += i3 * (gid & 3u);
          }
          v2 ^= (ulong)work_group_scan_exclusive_add((int)(v1));
          out[gid] = v0 * 31u + v1 * 7u + v2;
        }";
    const ITEMS: usize = 16;
    // All work-items have the same v0, whatever sub-groups they are in.
    let v0 = 0x1_4000_0003u64;
    let mut input: Vec<u32> = (0..256u32)
        .map(|i| i.wrapping_mul(0x9e37_79b9) >> 1 | 1 << 31)
        .collect();
    for item in 0..ITEMS {
        input[item * 8 + 49] = (v0 - u64::from(input[item])) as u32;
    }
    let word = |at: usize| u64::from(input[at]);
    let mut scanned = 0i32;
    let expected: Vec<u64> = (0..ITEMS)
        .map(|item| {
            let mut v1 = word(7) + word(item + 1);
            for i in 0..2 + (word(1) & 1) {
                v1 ^= u64::from((v0 * 3) as u32);
                v1 += i * (item as u64 & 3);
            }
            let v2 = (word(5) + word(1)) ^ scanned as u64;
            scanned = scanned.wrapping_add(v1 as i32);
            (v0 * 31).wrapping_add(v1.wrapping_mul(7)).wrapping_add(v2)
        })
        .collect();
    let setup = Setup::new();
    if !crate::collectives::has_subgroups(&setup) {
        return pumice_tests::left_out("the device has no sub-groups");
    }
    for options in ["", "-cl-opt-disable"] {
        let options = format!("-cl-std=CL3.0 {options}");
        let program: Program = setup
            .try_build(source, &options)
            .unwrap_or_else(|log| panic!("{log}"));
        let kernel = setup.kernel(&program, "k");
        let (out, input) = (setup.buffer_of(&[0u64; ITEMS]), setup.buffer_of(&input));
        kernel.set_buffer(0, &out).set_buffer(1, &input);
        setup.enqueue(&kernel, &[ITEMS], Some(&[ITEMS]));
        assert_eq!(setup.read::<u64>(&out, ITEMS), expected, "{options}");
    }
}

/// Plain data that shares a union with a pointer to local or private memory lost its upper half.
#[test]
fn data_beside_pointers_in_unions() {
    for space in ["local", "private"] {
        let source = format!(
            "typedef struct {{ ulong tag; union {{ {space} int *p; ulong x; }} u; }} V;
             kernel void k(global V *o, global const V *in) {{
               size_t i = get_global_id(0);
               {space} int l[4];
               l[i & 3] = 7;
               V v = in[i];
               if (v.tag == 5) {{ v.u.p = l + (i & 3); v.tag = *v.u.p; }}
               o[i] = v;
             }}"
        );
        for options in ["", "-cl-opt-disable"] {
            let mut input: Vec<u64> = (0..4)
                .flat_map(|i| [1, 0x1234_5678_0000_0010 + i])
                .collect();
            let out = run(&source, options, &input, 8, 4);
            assert_eq!(out, input, "{space} {options}");
            // And the pointer is one.
            input[4] = 5;
            let out = run(&source, options, &input, 8, 4);
            assert_eq!(out[4], 7, "{space} {options}");
            assert_eq!((&out[..4], &out[6..]), (&input[..4], &input[6..]));
        }
    }
}

/// A function that calls share took and gave parts of a packed structure with the alignment of their size.
#[test]
fn shared_functions_take_packed_structures() {
    let source = include_str!("kernels/packed.cl");
    let input: [u32; 64] = [
        0x3ceb3ffd, 0x97b75092, 0x8b529b4a, 0x21636369, 0x5eb561a4, 0xea7b5bf5, 0x9a9a80fd,
        0x795b929e, 0xa02f34a6, 0x94b2b8fd, 0x10c67fd9, 0x9b08923d, 0x035efa25, 0xe8a8529f,
        0xd6645fa9, 0x781f9c58, 0x42650644, 0x8d0038ec, 0x3bfd1d33, 0x31162427, 0xfee29476,
        0xb7970386, 0x78633074, 0x8a7d43b5, 0xd6225675, 0x8cb4a0d7, 0x79f248b0, 0x65aa9c82,
        0xa399f82a, 0xdc6bf1e1, 0x268ecc45, 0x3b5f3d86, 0xa2863a7f, 0x26d0b944, 0xde383784,
        0xed038db4, 0x85ef3430, 0x63d2e490, 0xbdc2ae99, 0x03e0a813, 0xabe19f58, 0xc6f8da3e,
        0x10645d51, 0x28ce6f24, 0xc21b6092, 0xf51e8722, 0x97524d6a, 0x0af438d2, 0x4d1fe09f,
        0xc7b317d9, 0x07f062ce, 0xd2d58443, 0xdd933160, 0x44f9794c, 0x79061596, 0x98418117,
        0xb804d820, 0xeb8f624f, 0xe0f9e038, 0x633a50ee, 0xb6d13089, 0xc9c18070, 0xebcd1f5e,
        0x6d4b9adb,
    ];
    let out = run(source, "-cl-std=CL1.2", &input, 1, 1);
    assert_eq!(out, [0x6846_94da]);
}

/// A part of a word that only some lanes write: LLVM mixed up the operands of one instruction (quirk `merged-bits`).
#[test]
fn bits_of_some_lanes() {
    let source = "
        kernel void k(global uint *o, global uint *in) {
          uint i = get_global_id(0), c = in[i] & 7;
          if (c > 3) {
            uint a[8];
            for (int n = 0; n < 8; n++) a[n] = in[i + n];
            global uchar *bytes = (global uchar *)in + i * 4;
            uchar b = bytes[4] * bytes[8];
            if (bytes[12] > 77) {
              ((uchar *)a)[4] = b;
              a[c] += b;
            }
            o[i] = a[1] + a[c ^ 5];
          }
        }";
    let input: Vec<u32> = (1..72u32)
        .map(|i| i.wrapping_mul(0x9e37_79b9) >> 3)
        .collect();
    let expected: Vec<u32> = (0..60)
        .map(|i| {
            let mut a = input[i..i + 8].to_vec();
            let c = a[0] as usize & 7;
            if c <= 3 {
                return 0;
            }
            let b = a[1].wrapping_mul(a[2]) & 0xff;
            if a[3] & 0xff > 77 {
                a[1] = a[1] & !0xff | b;
                a[c] = a[c].wrapping_add(b);
            }
            a[1].wrapping_add(a[c ^ 5])
        })
        .collect();
    // The last vector of the group is filled in part.
    assert_eq!(run(source, "", &input, 60, 60), expected);
}

/// The difference of unsigned integers of which one is known to be larger (quirk
/// `absolute-differences`).
#[test]
fn absolute_differences() {
    let forms = [
        "abs_diff(a, b)",
        "max(a, b) - min(a, b)",
        "a > b ? a - b : b - a",
    ];
    for form in forms {
        let source = format!(
            "kernel void k(global ulong *o, global uint *in) {{
               size_t i = get_global_id(0);
               ulong a = in[i] >= 7, b = ~(ulong)in[get_group_id(0)];
               o[i] = {form};
             }}"
        );
        let setup = Setup::new();
        let program: Program = setup
            .try_build(&source, "")
            .unwrap_or_else(|log| panic!("{log}"));
        let kernel = setup.kernel(&program, "k");
        let (out, input) = (setup.buffer_of(&[0u64; 2]), setup.buffer_of(&[0u32, 9]));
        kernel.set_buffer(0, &out).set_buffer(1, &input);
        setup.enqueue(&kernel, &[2], Some(&[2]));
        let found: Vec<u64> = setup.read(&out, 2);
        assert_eq!(found, [u64::MAX, u64::MAX - 1], "{form}");
    }
}

/// A value that is loaded before its place is written, and used behind a barrier (quirk
/// `moved-loads`).
#[test]
fn values_loaded_before_a_store() {
    let source = "
        kernel void k(global ulong *o, global ulong *in) {
          size_t i = get_global_id(0);
          local ulong all[1];
          ulong before = in[i];
          o[i + 35] = 0;
          in[i] += 1;
          if (get_local_id(0) == 0) all[0] = in[i];
          barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
          o[i] = before * (i + 1) + all[0];
        }";
    let input: Vec<u64> = (0..35).map(|i| i * 10).collect();
    let out: Vec<u64> = run(source, "", &input, 70, 35);
    let expected: Vec<u64> = (0..35).map(|i| i * 10 * (i + 1) + 1).collect();
    assert_eq!(out[..35], expected);
}

/// Work-items that go on with a loop by different edges met different copies of its barriers (quirk
/// `threaded-loops`).
#[test]
fn loops_with_several_ways_back() {
    let source = include_str!("../programs/kept/threaded_loops.cl");
    let input: Vec<u64> = (0..20).map(|i| [3, 7, 0, 7][i % 4]).collect();
    let mut expected = vec![7u64; 20];
    for _ in 0..3 {
        let all = expected.clone();
        for (i, x) in expected.iter_mut().enumerate() {
            *x = *x * 31 + all[(i + 1) % 20] + i as u64;
        }
    }
    let out: Vec<u64> = run(source, "-cl-std=CL3.0", &input, 20, 20);
    assert_eq!(out, expected);
}

/// Lanes that an iteration did not reach divided by what they did not have, which was 0 (SIGFPE).
#[test]
fn divisors_of_lanes_that_are_not_there() {
    let source = "
        kernel void k(global ulong *o, global ulong *in) {
          ulong i = get_global_id(0), x = 1;
          int left = 5;
          do {
            if (i == 7) x = 1 + (ulong)(int)(short)in[0];
            else o[i + 4 + in[i] / (x | 1) % 4] = 0;
            x = i / (x | 1);
          } while ((uint)x && --left > 0);
          o[i] = x;
        }";
    let input: Vec<u64> = (0..3).collect();
    let out: Vec<u64> = run(source, "-cl-std=CL1.2", &input, 12, 3);
    assert_eq!(out[..3], [0, 1, 0]);
}

/// The bits of a comparison as a half: LLVM had no instruction for it, and the kernel was not built (quirk `halves-of-masks`).
#[test]
fn comparisons_as_halves() {
    if !Setup::new().has_extension("cl_khr_fp16") {
        return pumice_tests::left_out("no cl_khr_fp16");
    }
    let source = "
        #pragma OPENCL EXTENSION cl_khr_fp16 : enable
        kernel void k(global uint *o, global float *in) {
          uint i = get_global_id(0);
          half one = as_half((ushort)(in[0] < 2.0f ? 0x3c00 : 0)), least = as_half((ushort)(in[1] != 5.0f));
          o[i] = as_ushort(one) + i + (least > (half)0.0f) + (as_half((ushort)((in[i] > 7.0f) << 14)) > one);
        }";
    let input = [1.0f32, 6.0, 7.0, 8.0, 9.0];
    let bits: Vec<f32> = run(source, "", &input, 5, 5);
    let found: Vec<u32> = bits.iter().map(|value| value.to_bits()).collect();
    assert_eq!(found, [0x3c01, 0x3c02, 0x3c03, 0x3c05, 0x3c06]);
}

/// Words were written into a private buffer of bytes at any place in it, as programs for processors do, and went to the word
/// that the place is in.
#[test]
fn words_at_any_place_of_a_buffer_of_bytes() {
    let source = "
        typedef struct { uint length; uchar bytes[64]; ulong end; } buffer;
        void append(buffer *b, const uchar *from, uint length) {
          ulong *to = (ulong *)(b->bytes + b->length);
          const ulong *words = (const ulong *)from;
          for (uint i = 0; i < length; i += 8) *to++ = *words++;
          b->length += length;
        }
        kernel void k(global uint *o, global uint *in) {
          buffer b;
          uchar text[16];
          b.length = 0;
          for (int i = 0; i < 16; i++) text[i] = in[i % 4] + i;
          for (int i = 0; i < 64; i++) b.bytes[i] = 0;
          append(&b, text, in[0]);
          append(&b, text, in[1]);
          append(&b, text, in[2]);
          for (uint i = 0; i < 32; i++) o[i] = b.bytes[i];
        }";
    let lengths = [3u32, 11, 6, 40];
    let text: Vec<u32> = (0..16).map(|i| lengths[i % 4] + i as u32).collect();
    let mut expected: Vec<u32> = [3, 11, 6]
        .iter()
        .flat_map(|&n| text[..n].to_vec())
        .collect();
    // What the last of the words brought with it.
    expected.extend(&text[6..8]);
    let out = run(source, "", &lengths, 32, 1);
    assert_eq!(out[..22], expected);
}

/// A truncation between two other conversions was lost (quirk `lost-truncations`): a store wrote 8 bytes in place of 4, and
/// what was computed with a value that is too wide was not valid SPIR-V.
#[test]
fn conversions_that_follow_one_another() {
    let stores = [
        "o[2] = (ushort)(ulong)(ushort)(short)((uint)n * (uint)16UL);",
        "o[2] = (ulong)(ushort)n;",
        "ushort p = n; o[2] = (uint)(ushort)(ulong)p;",
        "ulong p = n; o[2] = (uchar)p;",
        "uchar p = n; o[2] = (uchar)(long)p;",
        "ushort p = n; o[2] = (uint)(ushort)(long)p << in[1];",
        "uchar v = n; o[2] = (long)(uint)(v >= (uchar)(long)(uchar)(char)in[2]) * 2;",
    ];
    let expected = [0x4560, 0x3456, 0x3456, 0x56, 0x56, 0x68ac, 2];
    for options in ["", "-cl-opt-disable", "-cl-opt-disable -g"] {
        for (store, expected) in stores.iter().zip(expected) {
            let source = format!(
                "kernel void k(global uint *o, global uint *in) {{
                     uint n = in[0];
                     o[0] = o[1] = o[3] = 7;
                     if (n) {{ {store} }}
                 }}"
            );
            let out = run(&source, options, &[0x0012_3456u32, 1, 3], 4, 1);
            assert_eq!(out, [7, 7, expected, 7], "{options}: {store}");
        }
    }
}

/// Accesses through a pointer that may be null had an alignment of 0, and were not built (quirk `cut-alignments`).
#[test]
fn pointers_that_may_be_null() {
    let source = "
        struct S { int a; char b[3]; };
        kernel void k(global int *o, global int *in) {
            int *q = (int *)0;
            struct S *s = (struct S *)0, t;
            t.a = in[0];
            if (in[0]) { *q = 5; *s = t; }
            float x = 6;
            float *y = 0;
            if (in[1]) y = &x;
            y[0] += 1;
            o[0] = (int)x;
        }";
    for options in ["-cl-std=CL3.0", "-cl-std=CL3.0 -cl-opt-disable"] {
        assert_eq!(run(source, options, &[0, 1], 1, 1), [7], "{options}");
    }
}

/// An index that two shifts cut to few bits was taken for one whose neighbours never wrap around within a vector.
#[test]
fn indices_of_few_bits() {
    for (bits, kind) in [(24, "int"), (16, "int"), (24, "uint")] {
        let source = format!(
            "kernel void k(global uint *o, global uint *in) {{
                 uint g = get_global_id(0) * (in[0] + 7);
                 o[get_global_id(0)] = in[40000 + ((({kind})(g + 100) << {bits}) >> {bits})];
             }}"
        );
        let input: Vec<u32> = (0..80000).collect();
        let expected: Vec<u32> = (0..320u32)
            .map(|item| {
                let g = (item * 7 + 100) << bits;
                let index = if kind == "int" {
                    g as i32 >> bits
                } else {
                    (g >> bits) as i32
                };
                (40000 + index) as u32
            })
            .collect();
        for options in ["", "-cl-opt-disable"] {
            let out = run(&source, options, &input, 320, 320);
            assert_eq!(out, expected, "{kind} {bits} {options}");
        }
    }
}

/// The least size of an array (`static`), and that of what a reference refers to, became the greatest of the argument's memory.
#[test]
fn known_sizes_are_no_limits() {
    let c = "kernel void k(global int o[static 2], global int in[static 2]) {
                 o[get_global_id(0)] = in[get_global_id(0)] + 1;
             }";
    let cxx = "kernel void k(global int *o, const global int &in) { o[get_global_id(0)] = in + get_global_id(0); }";
    for options in ["", "-cl-opt-disable"] {
        assert_eq!(run(c, options, &[1, 2, 3, 4], 4, 4), [2, 3, 4, 5]);
        let options = format!("-cl-std=CLC++2021 {options}");
        assert_eq!(run(cxx, &options, &[1, 2, 3, 4], 4, 4), [1, 2, 3, 4]);
    }
}
