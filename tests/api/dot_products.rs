//! Dot products of integers, those of ARM's extensions, too, and extended bit operations.

use super::buffers::Random;
use pumice_tests::Setup;

#[test]
fn bit_operations_and_dot_products() {
    let setup = Setup::new();
    let mut random = Random(9);
    let input: Vec<u32> = (0..4 * 64)
        .map(|_| (random.next(1 << 16) << 16 | random.next(1 << 16)) as u32)
        .collect();
    let program = setup.build(
        "kernel void f(global const uint4 *in, global int *out) {
             size_t i = get_global_id(0);
             uint4 v = in[i];
             global int *o = out + i * 12;
             uint at = v.z % 24, n = v.w % 9;
             o[0] = bitfield_insert(v.x, v.y, at, n); o[1] = bitfield_extract_unsigned(v.x, at, n);
             o[2] = bitfield_extract_signed(v.x, at, n); o[3] = bit_reverse(v.x);
             o[4] = bit_reverse((ushort)v.y); o[5] = bitfield_insert((uchar)v.x, (uchar)v.y, 3, n % 5);
             o[6] = dot_4x8packed_ss_int(v.x, v.y); o[7] = dot_4x8packed_uu_uint(v.x, v.y);
             o[8] = dot_4x8packed_su_int(v.x, v.y); o[9] = dot_acc_sat_4x8packed_ss_int(v.x, v.y, (int)v.z);
             o[10] = dot_acc_sat(as_uchar4(v.x), as_uchar4(v.y), v.z);
             o[11] = dot_acc_sat(as_uchar4(v.x), as_char4(v.y), (int)v.z);
         }",
    );
    let kernel = setup.kernel(&program, "f");
    let a = setup.buffer_of(&input);
    let out = setup.buffer(64 * 12 * 4);
    kernel.set_buffer(0, &a).set_buffer(1, &out);
    setup.run(&kernel, &[64], None);
    let got = setup.read::<i32>(&out, 64 * 12);
    for (v, o) in input.chunks(4).zip(got.chunks(12)) {
        let (x, y, z, w) = (v[0], v[1], v[2], v[3]);
        let (at, n) = (z % 24, w % 9);
        let mask = ((1u64 << n) - 1) as u32;
        let signed = |v: u32, n: u32| {
            if n == 0 {
                0
            } else {
                ((v << (32 - n)) as i32) >> (32 - n)
            }
        };
        let (s, u) = (
            |v: u32| v.to_le_bytes().map(|b| i64::from(b as i8)),
            |v: u32| v.to_le_bytes().map(i64::from),
        );
        let dot = |a: [i64; 4], b: [i64; 4]| a.iter().zip(b).map(|(a, b)| a * b).sum::<i64>();
        let sat = |v: i64| v.clamp(i32::MIN.into(), i32::MAX.into()) as i32;
        let small = ((1u32 << (n % 5)) - 1) << 3;
        let expected = [
            (x & !(mask << at) | (y & mask) << at) as i32,
            (x >> at & mask) as i32,
            signed(x >> at & mask, n),
            x.reverse_bits() as i32,
            (y as u16).reverse_bits().into(),
            ((x & !small | y << 3 & small) & 0xff) as i32,
            dot(s(x), s(y)) as i32,
            dot(u(x), u(y)) as i32,
            dot(s(x), u(y)) as i32,
            sat(dot(s(x), s(y)) + i64::from(z as i32)),
            (dot(u(x), u(y)) + i64::from(z)).min(u32::MAX.into()) as u32 as i32,
            sat(dot(u(x), s(y)) + i64::from(z as i32)),
        ];
        assert_eq!(o, expected, "{v:x?}");
    }
}

#[test]
fn arm_dot_products() {
    let setup = Setup::new();
    let mut random = Random(11);
    let mut input: Vec<u32> = (0..3 * 64)
        .map(|_| (random.next(1 << 16) << 16 | random.next(1 << 16)) as u32)
        .collect();
    // The sums that saturate, or wrap around.
    let most = [0xffff_ffff, 0x8080_8080, 0x7f7f_7f7f, 0x8000_8000, 0];
    for (at, word) in input.iter_mut().take(75).enumerate() {
        *word = most[(at / 3 * (at % 3 + 1) + at) % 5];
    }
    let program = setup.build(
        "#if !defined(cl_arm_integer_dot_product_int8) || !defined(cl_arm_integer_dot_product_accumulate_int8) || \\
            !defined(cl_arm_integer_dot_product_accumulate_int16) || \\
            !defined(cl_arm_integer_dot_product_accumulate_saturate_int8)
         #error no macro
         #endif
         #pragma OPENCL EXTENSION cl_arm_integer_dot_product_int8 : enable
         kernel void f(global const uint *in, global int *out) {
             size_t i = get_global_id(0);
             uint x = in[i * 3], y = in[i * 3 + 1], z = in[i * 3 + 2];
             global int *o = out + i * 8;
             o[0] = arm_dot(as_char4(x), as_char4(y)); o[1] = arm_dot(as_uchar4(x), as_uchar4(y));
             o[2] = arm_dot_acc(as_char4(x), as_char4(y), as_int(z));
             o[3] = arm_dot_acc(as_uchar4(x), as_uchar4(y), z);
             o[4] = arm_dot_acc(as_short2(x), as_short2(y), as_int(z));
             o[5] = arm_dot_acc(as_ushort2(x), as_ushort2(y), z);
             o[6] = arm_dot_acc_sat(as_char4(x), as_char4(y), as_int(z));
             o[7] = arm_dot_acc_sat(as_uchar4(x), as_uchar4(y), z);
         }",
    );
    let kernel = setup.kernel(&program, "f");
    let (from, out) = (setup.buffer_of(&input), setup.buffer(64 * 8 * 4));
    kernel.set_buffer(0, &from).set_buffer(1, &out);
    setup.run(&kernel, &[64], None);
    let got = setup.read::<i32>(&out, 64 * 8);
    for (v, o) in input.chunks(3).zip(got.chunks(8)) {
        let dot = |lanes: &dyn Fn(u32) -> Vec<i64>| -> i64 {
            (lanes(v[0]).iter().zip(lanes(v[1])))
                .map(|(a, b)| a * b)
                .sum()
        };
        let signed = dot(&|w| w.to_le_bytes().map(|b| i64::from(b as i8)).to_vec());
        let unsigned = dot(&|w| w.to_le_bytes().map(i64::from).to_vec());
        let shorts = dot(&|w| vec![i64::from(w as i16), i64::from((w >> 16) as i16)]);
        let halves = dot(&|w| vec![i64::from(w & 0xffff), i64::from(w >> 16)]);
        let (z, plus) = (i64::from(v[2]), i64::from(v[2] as i32));
        let expected = [
            signed as i32,
            unsigned as i32,
            (signed + plus) as i32,
            (unsigned + z) as i32,
            (shorts + plus) as i32,
            (halves + z) as i32,
            (signed + plus).clamp(i32::MIN.into(), i32::MAX.into()) as i32,
            (unsigned + z).min(u32::MAX.into()) as u32 as i32,
        ];
        assert_eq!(o, expected, "{v:x?}");
    }
    let wrong = "kernel void f(global int *o) { *o = arm_dot((short4)(1), (short4)(2)); }";
    assert!(setup.try_build(wrong, "").is_err());
}
