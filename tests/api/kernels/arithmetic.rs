//! Tests of computation: scalars, vectors, structures, control flow, and types narrower than a
//! word.

use super::*;
use spirv_lowering::fused::Fused;

/// Runs `kernel` over `n` work-items with one output and the given inputs.
fn map_kernel<A: Plain, R: Plain>(
    setup: &Setup,
    source: &str,
    input: &[A],
    out_each: usize,
) -> Vec<R> {
    let kernel = setup.kernel_of(source, "f");
    let a = setup.buffer_of(input);
    let count = input.len();
    let out = setup.buffer(count * out_each * size_of::<R>());
    kernel.set_buffer(0, &a).set_buffer(1, &out);
    setup.run(&kernel, &[count], None);
    setup.read(&out, count * out_each)
}

#[test]
fn integer_arithmetic() {
    let setup = Setup::new();
    let mut random = Random(77);
    let input: Vec<[u64; 2]> = (0..256)
        .map(|i| {
            let bits = |r: &mut Random| {
                let wide = (r.next(1 << 30) as u64) << 34
                    ^ (r.next(1 << 30) as u64) << 15
                    ^ r.next(1 << 30) as u64;
                wide >> (i % 64)
            };
            [bits(&mut random), bits(&mut random) | 1]
        })
        .collect();
    let out: Vec<u64> = map_kernel(
        &setup,
        "kernel void f(global ulong2 *in, global ulong *out) {
             size_t i = get_global_id(0);
             ulong a = in[i].x, b = in[i].y;
             long sa = (long)a, sb = (long)b;
             global ulong *o = out + i * 16;
             o[0] = a + b; o[1] = a - b; o[2] = a * b; o[3] = a / b; o[4] = a % b;
             o[5] = sa / sb; o[6] = sa % sb; o[7] = mul_hi(a, b);
             o[8] = a << (b & 63); o[9] = a >> (b & 63); o[10] = sa >> (b & 63);
             o[11] = popcount(a) * 100 + clz(a);
             o[12] = rotate(a, b); o[13] = sa < sb; o[14] = a < b;
             o[15] = (ulong)(uchar)a + (ulong)(long)(char)b + (ushort)a * (short)b;
         }",
        &input,
        16,
    );
    for (index, [a, b]) in input.iter().copied().enumerate() {
        let (sa, sb) = (a as i64, b as i64);
        let small = i64::from(a as u8)
            + i64::from(b as i8)
            + i64::from(i32::from(a as u16) * i32::from(b as i16));
        let expected = [
            a.wrapping_add(b),
            a.wrapping_sub(b),
            a.wrapping_mul(b),
            a / b,
            a % b,
            sa.wrapping_div(sb) as u64,
            sa.wrapping_rem(sb) as u64,
            ((u128::from(a) * u128::from(b)) >> 64) as u64,
            a << (b & 63),
            a >> (b & 63),
            (sa >> (b & 63)) as u64,
            u64::from(a.count_ones() * 100 + a.leading_zeros()),
            a.rotate_left((b & 63) as u32),
            u64::from(sa < sb),
            u64::from(a < b),
            small as u64,
        ];
        assert_eq!(
            out[index * 16..index * 16 + 16],
            expected,
            "a {a:#x} b {b:#x}"
        );
    }
}

#[test]
fn float_arithmetic() {
    let setup = Setup::new();
    let mut random = Random(5);
    let input: Vec<[f32; 2]> = (0..512)
        .map(|_| {
            let value = |r: &mut Random| (r.next(2_000_001) as f32 - 1e6) / 1000.0;
            [value(&mut random), value(&mut random)]
        })
        .collect();
    let out: Vec<f32> = map_kernel(
        &setup,
        "kernel void f(global float2 *in, global float *out) {
             size_t i = get_global_id(0);
             float a = in[i].x, b = in[i].y;
             global float *o = out + i * 8;
             o[0] = a + b; o[1] = a * b; o[2] = fmin(a, b); o[3] = floor(a); o[4] = fabs(b); o[5] = (float)(int)a;
             o[6] = a / b; o[7] = sqrt(fabs(a));
         }",
        &input,
        8,
    );
    for (index, [a, b]) in input.iter().copied().enumerate() {
        let o = &out[index * 8..index * 8 + 8];
        assert_eq!(
            o[..6],
            [a + b, a * b, a.min(b), a.floor(), b.abs(), a.trunc()],
            "a {a} b {b}"
        );
        let close = |x: f32, y: f32, ulps: f32| (x - y).abs() <= ulps * f32::EPSILON * y.abs();
        assert!(b == 0.0 || close(o[6], a / b, 2.5), "{a} / {b}: {}", o[6]);
        assert!(close(o[7], a.abs().sqrt(), 3.0), "sqrt {a}: {}", o[7]);
    }
}

#[test]
fn double_arithmetic() {
    let setup = Setup::new();
    if info_value!(
        u64,
        clGetDeviceInfo(setup.device),
        CL_DEVICE_DOUBLE_FP_CONFIG
    ) == 0
    {
        return pumice_tests::left_out("no double precision");
    }
    let input: Vec<[f64; 2]> = (0..256)
        .map(|i| [f64::from(i) * 1.1 - 100.0, 3.7 / f64::from(i + 1)])
        .collect();
    let out: Vec<f64> = map_kernel(
        &setup,
        "#pragma OPENCL EXTENSION cl_khr_fp64 : enable
         kernel void f(global double2 *in, global double *out) {
             size_t i = get_global_id(0);
             double a = in[i].x, b = in[i].y;
             global double *o = out + i * 6;
             o[0] = a + b; o[1] = a * b; o[2] = a / b; o[3] = sqrt(fabs(a)); o[4] = fma(a, b, 1.0); o[5] = (double)(long)a;
         }",
        &input,
        6,
    );
    for (index, [a, b]) in input.iter().copied().enumerate() {
        let expected = [
            a + b,
            a * b,
            a / b,
            a.abs().sqrt(),
            a.fused(b, 1.0),
            a.trunc(),
        ];
        assert_eq!(out[index * 6..index * 6 + 6], expected, "a {a} b {b}");
    }
}

#[test]
fn vectors_and_structures() {
    let setup = Setup::new();
    // A device need not have doubles.
    let (number, bytes) = match setup.has_doubles() {
        true => ("double", 4321.75f64.to_ne_bytes()),
        false => ("long", 4321i64.to_ne_bytes()),
    };
    let source = "
        typedef struct { char c; short s; int3 v; long l; float f[3]; } Inner;
        typedef struct { Inner in[2]; uchar16 bytes; NUMBER d; } Outer;
        kernel void f(global int *out, int4 a, Outer s, char3 c, float2 g, ushort8 w) {
            out[0] = a.x + a.y * 10 + a.z * 100 + a.w * 1000;
            out[1] = s.in[0].c; out[2] = s.in[0].s; out[3] = s.in[0].v.y; out[4] = (int)s.in[1].l;
            out[5] = (int)s.in[1].f[2]; out[6] = s.bytes.sf; out[7] = (int)s.d;
            out[8] = c.x * c.y * c.z; out[9] = (int)(g.x * g.y);
            out[10] = w.s0 + w.s7;
            out[11] = sizeof(Outer);
            out[12] = dot(convert_float4(a), (float4)(1, 1, 1, 1));
            int8 wide = (int8)(a, a.wzyx);
            out[13] = wide.s4; out[14] = wide.even.y; out[15] = any(a > 3) * 2 + all(a > 0);
        }";
    let kernel = setup.kernel_of(&source.replace("NUMBER", number), "f");
    let out = setup.buffer_of(&[0i32; 16]);
    // Inner: c 0, s 2, v 16..32, l 32, f 40..52, size 64. Outer: in 0..128, bytes 128..144, d 144, size 160.
    let mut outer = [0u8; 160];
    outer[0] = -5i8 as u8;
    outer[2..4].copy_from_slice(&(-300i16).to_ne_bytes());
    outer[20..24].copy_from_slice(&77i32.to_ne_bytes());
    outer[64 + 32..64 + 40].copy_from_slice(&123_456i64.to_ne_bytes());
    outer[64 + 48..64 + 52].copy_from_slice(&9.5f32.to_ne_bytes());
    outer[143] = 200;
    outer[144..152].copy_from_slice(&bytes);
    kernel
        .set_buffer(0, &out)
        .set(1, [1i32, 2, 3, 4])
        .set(2, outer)
        .set(3, [2u8, 3, 7, 0])
        .set(4, [2.5f32, 4.0])
        .set(5, [1u16, 0, 0, 0, 0, 0, 0, 1000]);
    setup.run(&kernel, &[1], None);
    let expected = [
        4321, -5, -300, 77, 123_456, 9, 200, 4321, 42, 10, 1001, 160, 10, 4, 3, 3,
    ];
    assert_eq!(setup.read::<i32>(&out, 16), expected);
}

#[test]
fn half_floats_in_memory() {
    let setup = Setup::new();
    let input: Vec<f32> = (0..64).map(|i| i as f32 * 0.5 - 7.0).collect();
    let out: Vec<f32> = map_kernel(
        &setup,
        "kernel void f(global float *in, global float *out) {
             size_t i = get_global_id(0);
             local ushort bits[64];
             local half *h = (local half *)bits;
             vstore_half(in[i], 0, h);
             out[i] = vload_half(0, h) * 2;
         }",
        &input[..1],
        1,
    );
    assert_eq!(out, [input[0] * 2.0]);
}

#[test]
fn control_flow() {
    let setup = Setup::new();
    let input: Vec<u32> = (1..=512).collect();
    let out: Vec<u32> = map_kernel(
        &setup,
        "uint collatz(ulong n) {
             uint steps = 0;
             while (n != 1) {
                 if (steps > 1000) return 0;
                 n = (n & 1) ? 3 * n + 1 : n / 2;
                 ++steps;
             }
             return steps;
         }
         kernel void f(global uint *in, global uint *out) {
             size_t i = get_global_id(0);
             uint n = in[i], r = 0;
             switch (n % 5) {
                 case 0: r = collatz(n); break;
                 case 1: for (uint k = 0; k < n; ++k) { if (k % 3 == 0) continue; if (k > 100) break; r += k; } break;
                 case 2: r = n * 2; // falls through
                 case 3: r += 7; break;
                 default: { uint a = 0, b = 1; do { uint t = a + b; a = b; b = t; } while (b < n); r = b; }
             }
             out[i] = r;
         }",
        &input,
        1,
    );
    let model = |n: u32| match n % 5 {
        0 => {
            let (mut v, mut steps) = (u64::from(n), 0);
            while v != 1 {
                v = if v & 1 == 1 { 3 * v + 1 } else { v / 2 };
                steps += 1;
            }
            steps
        }
        1 => (0..n)
            .filter(|k| k % 3 != 0)
            .take_while(|k| *k <= 100)
            .sum(),
        2 => n * 2 + 7,
        3 => 7,
        _ => {
            let (mut a, mut b) = (0, 1);
            loop {
                (a, b) = (b, a + b);
                if b >= n {
                    break b;
                }
            }
        }
    };
    let expected: Vec<u32> = input.iter().map(|n| model(*n)).collect();
    assert_eq!(out, expected);
}

#[test]
fn private_arrays_and_constant_tables() {
    let setup = Setup::new();
    let input: Vec<u32> = (0..256).map(|i| i * 7919).collect();
    let out: Vec<u32> = map_kernel(
        &setup,
        "constant uint table[8] = { 3, 1, 4, 1, 5, 9, 2, 6 };
         kernel void f(global uint *in, global uint *out) {
             size_t i = get_global_id(0);
             uint digits[10];
             for (int d = 0; d < 10; ++d) digits[d] = 0;
             uint n = in[i];
             do { digits[n % 10] += table[n & 7]; n /= 10; } while (n);
             uint r = 0;
             for (int d = 0; d < 10; ++d) r = r * 7 + digits[d];
             out[i] = r;
         }",
        &input,
        1,
    );
    let table = [3u32, 1, 4, 1, 5, 9, 2, 6];
    for (n, got) in input.iter().zip(out) {
        let (mut rest, mut digits) = (*n, [0u32; 10]);
        loop {
            digits[(rest % 10) as usize] += table[(rest & 7) as usize];
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        let expected = digits
            .iter()
            .fold(0u32, |r, d| r.wrapping_mul(7).wrapping_add(*d));
        assert_eq!(got, expected, "{n}");
    }
}

/// Vectors of narrow elements, which are loaded and stored by words where they are aligned: every element arrives.
#[test]
fn narrow_vectors() {
    let setup = Setup::new();
    let mut random = Random(77);
    let bytes = random.bytes(4096);
    for (element, size) in [("char", 1), ("short", 2)] {
        for lanes in [2usize, 3, 4, 8, 16] {
            // Backwards, so that lanes which change places show; `shift` elements off the alignment of the vector.
            let reverse: Vec<String> = (0..lanes).rev().map(|i| format!("v.s{i:x}")).collect();
            let reverse = reverse.join(", ");
            let program = setup.build(&format!(
                "kernel void aligned({element}{lanes} global *in, {element}{lanes} global *out) {{
                     size_t i = get_global_id(0);
                     {element}{lanes} v = in[i];
                     out[i] = ({element}{lanes})({reverse}); }}
                 kernel void packed({element} global *in, {element} global *out, int shift) {{
                     size_t i = get_global_id(0);
                     {element}{lanes} v = vload{lanes}(i, in + shift);
                     vstore{lanes}(({element}{lanes})({reverse}), i, out + shift); }}"
            ));
            let (count, vector) = (16, lanes.next_power_of_two() * size);
            let source = setup.buffer_of(&bytes);
            let target = setup.buffer(4096);
            let kernel = setup.kernel(&program, "aligned");
            kernel.set_buffer(0, &source).set_buffer(1, &target);
            setup.run(&kernel, &[count], None);
            let got: Vec<u8> = setup.read(&target, count * vector);
            for i in 0..count {
                for lane in 0..lanes {
                    let (to, from) = (
                        i * vector + lane * size,
                        i * vector + (lanes - 1 - lane) * size,
                    );
                    assert_eq!(
                        got[to..to + size],
                        bytes[from..from + size],
                        "{element}{lanes}, vector {i}, lane {lane}"
                    );
                }
            }
            for shift in 0..4 {
                let kernel = setup.kernel(&program, "packed");
                kernel.set_buffer(0, &source).set_buffer(1, &target);
                kernel.set(2, shift as i32);
                setup.run(&kernel, &[count], None);
                let got: Vec<u8> = setup.read(&target, (count * lanes + shift) * size);
                for i in 0..count {
                    for lane in 0..lanes {
                        let to = (shift + i * lanes + lane) * size;
                        let from = (shift + i * lanes + lanes - 1 - lane) * size;
                        assert_eq!(
                            got[to..to + size],
                            bytes[from..from + size],
                            "{element}{lanes} at {shift}, vector {i}, lane {lane}"
                        );
                    }
                }
            }
        }
    }
}
