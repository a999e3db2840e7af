//! Arithmetic, comparison, conversion, bits.

use super::{Data, Il};
use pumice_tests::Setup;

#[test]
fn carries_and_long_products() {
    let setup = Setup::new();
    let il = Il::new(
        "%a = in u32x2 0
         %b = in u32x2 1
         %add = OpIAddCarry %two %a %b
         %sum = OpCompositeExtract %u32x2 %add 0
         %carry = OpCompositeExtract %u32x2 %add 1
         out 0 u32x2 %sum
         out 1 u32x2 %carry
         %sub = OpISubBorrow %two %a %b
         %diff = OpCompositeExtract %u32x2 %sub 0
         %borrow = OpCompositeExtract %u32x2 %sub 1
         out 2 u32x2 %diff
         out 3 u32x2 %borrow
         %umul = OpUMulExtended %two %a %b
         %ulow = OpCompositeExtract %u32x2 %umul 0
         %uhigh = OpCompositeExtract %u32x2 %umul 1
         out 4 u32x2 %ulow
         out 5 u32x2 %uhigh
         %c = in u64 2
         %d = in u64 3
         %smul = OpSMulExtended %wide %c %d
         %slow = OpCompositeExtract %u64 %smul 0
         %shigh = OpCompositeExtract %u64 %smul 1
         out 6 u64 %slow
         out 7 u64 %shigh
         %e = in u8 4
         %small = OpUMulExtended %byte %e %e
         %bhigh = OpCompositeExtract %u8 %small 1
         out 8 u8 %bhigh",
    )
    .with(
        "%two = OpTypeStruct %u32x2 %u32x2\n%wide = OpTypeStruct %u64 %u64\n\
         %byte = OpTypeStruct %u8 %u8",
    );
    let input = Data::new()
        .put(0, &[0xffff_ffffu32, 7])
        .put(1, &[2u32, 9])
        .put(2, &[-5i64])
        .put(3, &[i64::MAX])
        .put(4, &[200u8]);
    let out = il.run(&setup, &input);
    assert_eq!(out.get::<u32, 2>(0), [1, 16]);
    assert_eq!(out.get::<u32, 2>(1), [1, 0]);
    assert_eq!(out.get::<u32, 2>(2), [0xffff_fffd, 0xffff_fffe]);
    assert_eq!(out.get::<u32, 2>(3), [0, 1]);
    assert_eq!(out.get::<u32, 2>(4), [0xffff_fffe, 63]);
    assert_eq!(out.get::<u32, 2>(5), [1, 0]);
    let product = -5i128 * i128::from(i64::MAX);
    assert_eq!(out.one::<i64>(6), product as i64);
    assert_eq!(out.one::<i64>(7), (product >> 64) as i64);
    assert_eq!(out.one::<u8>(8), ((200 * 200) >> 8) as u8);
}

#[test]
fn remainders() {
    let setup = Setup::new();
    let il = Il::new(
        "%a = in u32x4 0
         %b = in u32x4 1
         %smod = OpSMod %u32x4 %a %b
         %srem = OpSRem %u32x4 %a %b
         %umod = OpUMod %u32x4 %a %b
         out 0 u32x4 %smod
         out 1 u32x4 %srem
         out 2 u32x4 %umod
         %f = in f32x4 2
         %g = in f32x4 3
         %fmod = OpFMod %f32x4 %f %g
         %frem = OpFRem %f32x4 %f %g
         out 3 f32x4 %fmod
         out 4 f32x4 %frem
         %s = in u16 4
         %t = in u16 5
         %m = OpSMod %u16 %s %t
         out 5 u16 %m
         %large = in f32x4 6
         %small = in f32x4 7
         %rest = OpFRem %f32x4 %large %small
         out 6 f32x4 %rest",
    );
    // Their quotients have more bits than a float.
    let large = [1e30f32, -16777215.0, 8388609.0, 1e38];
    let small = [3.0f32, 0.7, -0.3, 1e-3];
    let a = [-7i32, 7, -7, 8];
    let b = [3i32, -3, -3, 3];
    let input = Data::new()
        .put(0, &a)
        .put(1, &b)
        .put(2, &[5.5f32, -5.5, 5.5, -6.0])
        .put(3, &[2.0f32, 2.0, -2.0, -2.0])
        .put(4, &[-9i16])
        .put(5, &[4i16])
        .put(6, &large)
        .put(7, &small);
    let out = il.run(&setup, &input);
    let exact: [f32; 4] = std::array::from_fn(|i| large[i] % small[i]);
    assert_eq!(out.get::<f32, 4>(6), exact);
    assert_eq!(out.get::<i32, 4>(0), [2, -2, -1, 2]);
    assert_eq!(out.get::<i32, 4>(1), [-1, 1, -1, 2]);
    let unsigned: [u32; 4] = std::array::from_fn(|i| a[i] as u32 % b[i] as u32);
    assert_eq!(out.get::<u32, 4>(2), unsigned);
    assert_eq!(out.get::<f32, 4>(3), [1.5, 0.5, -0.5, 0.0]);
    assert_eq!(out.get::<f32, 4>(4), [1.5, -1.5, 1.5, 0.0]);
    assert_eq!(out.one::<i16>(5), 3);
}

/// All comparisons of floats, with NaN on one side and on none.
#[test]
fn float_comparisons() {
    let setup = Setup::new();
    type Compare = fn(f32, f32) -> bool;
    let unordered: Compare = |a, b| a.is_nan() || b.is_nan();
    let cases: [(&str, Compare); 16] = [
        ("OpFOrdEqual", |a, b| a == b),
        ("OpFUnordEqual", |a, b| a == b || a.is_nan() || b.is_nan()),
        ("OpFOrdNotEqual", |a, b| {
            a.partial_cmp(&b).is_some_and(|o| o.is_ne())
        }),
        ("OpFUnordNotEqual", |a, b| a != b),
        ("OpFOrdLessThan", |a, b| a < b),
        ("OpFUnordLessThan", |a, b| a < b || a.is_nan() || b.is_nan()),
        ("OpFOrdGreaterThan", |a, b| a > b),
        ("OpFUnordGreaterThan", |a, b| {
            a > b || a.is_nan() || b.is_nan()
        }),
        ("OpFOrdLessThanEqual", |a, b| a <= b),
        ("OpFUnordLessThanEqual", |a, b| {
            a <= b || a.is_nan() || b.is_nan()
        }),
        ("OpFOrdGreaterThanEqual", |a, b| a >= b),
        ("OpFUnordGreaterThanEqual", |a, b| {
            a >= b || a.is_nan() || b.is_nan()
        }),
        ("OpLessOrGreater", |a, b| {
            a.partial_cmp(&b).is_some_and(|o| o.is_ne())
        }),
        ("OpOrdered", |a, b| !a.is_nan() && !b.is_nan()),
        ("OpUnordered", unordered),
        ("OpFOrdEqual", |a, b| a == b),
    ];
    let x = [1.0f32, 2.0, f32::NAN, 3.0];
    let y = [2.0f32, 2.0, 1.0, f32::NEG_INFINITY];
    let mut body = "%a = in f32x4 0\n%b = in f32x4 1\n".to_owned();
    for (i, (op, _)) in cases.iter().enumerate() {
        body += &format!(
            "%c{i} = {op} %boolx4 %a %b\n%s{i} = OpSelect %u32x4 %c{i} %ones %zeros\nout {i} u32x4 %s{i}\n"
        );
    }
    // OpLessOrGreater is gone from 1.6.
    let il = Il::new(&body).with(
        "%ones = OpConstantComposite %u32x4 %u32_1 %u32_1 %u32_1 %u32_1\n%zeros = OpConstantNull %u32x4",
    );
    let mut words = il.words();
    words[1] = 0x1_0500;
    let program = super::build(&setup, &words).expect("builds");
    let input = Data::new().put(0, &x).put(1, &y);
    let out = super::run_program(&setup, &program, &input, 1);
    for (i, (op, expected)) in cases.iter().enumerate() {
        let want: [u32; 4] = std::array::from_fn(|n| expected(x[n], y[n]).into());
        assert_eq!(out.get::<u32, 4>(i), want, "{op}");
    }
}

#[test]
fn float_classes() {
    let setup = Setup::new();
    let ops = [
        "OpIsNan",
        "OpIsInf",
        "OpIsFinite",
        "OpIsNormal",
        "OpSignBitSet",
    ];
    let mut body = "%a = in f32x8 0\n%d = in f64x4 1\n".to_owned();
    for (i, op) in ops.iter().enumerate() {
        let j = i + 8;
        body += &format!(
            "%c{i} = {op} %boolx8 %a\n%s{i} = OpSelect %u32x8 %c{i} %ones %zeros\nout {i} u32x8 %s{i}\n\
             %e{i} = {op} %boolx4 %d\n%t{i} = OpSelect %u32x4 %e{i} %ones4 %zeros4\nout {j} u32x4 %t{i}\n"
        );
    }
    let eight = ["%u32_1"; 8].join(" ");
    let four = ["%u32_1"; 4].join(" ");
    let il = Il::new(&body).with(&format!(
        "%ones = OpConstantComposite %u32x8 {eight}\n%zeros = OpConstantNull %u32x8\n\
         %ones4 = OpConstantComposite %u32x4 {four}\n%zeros4 = OpConstantNull %u32x4"
    ));
    if il.lacks_floats(&setup) {
        return;
    }
    let x = [
        0.0f32,
        -0.0,
        f32::from_bits(0x8000_0001),
        f32::MIN_POSITIVE,
        -1.5,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
    ];
    let y = [1.0f64, -f64::from_bits(1), f64::NEG_INFINITY, f64::NAN];
    let input = Data::new().put(0, &x).put(1, &y);
    let out = il.run(&setup, &input);
    let classes: [fn(f64, bool) -> bool; 5] = [
        |v, _| v.is_nan(),
        |v, _| v.is_infinite(),
        |v, _| v.is_finite(),
        |_, normal| normal,
        |v, _| v.is_sign_negative(),
    ];
    for (i, class) in classes.iter().enumerate() {
        let want: [u32; 8] = std::array::from_fn(|n| class(x[n].into(), x[n].is_normal()).into());
        assert_eq!(out.get::<u32, 8>(i), want, "{} of float", ops[i]);
        let want: [u32; 4] = std::array::from_fn(|n| class(y[n], y[n].is_normal()).into());
        assert_eq!(out.get::<u32, 4>(i + 8), want, "{} of double", ops[i]);
    }
}

#[test]
fn conversions_with_decorations() {
    let setup = Setup::new();
    let il = Il::new(
        "%f = in f32x4 0
         %sat8 = OpConvertFToU %u8x4 %f
         out 0 u8x4 %sat8
         %ssat = OpConvertFToS %u16x4 %f
         out 1 u16x4 %ssat
         %up = OpConvertFToS %u32x4 %f
         out 2 u32x4 %up
         %n = in u64 1
         %near = OpConvertUToF %f32 %n
         %zero = OpConvertUToF %f32 %n
         %high = OpConvertSToF %f32 %n
         out 3 f32 %near
         out 4 f32 %zero
         out 5 f32 %high
         %wide = in u32x4 2
         %us = OpSatConvertUToS %u8x4 %wide
         %su = OpSatConvertSToU %u8x4 %wide
         out 6 u8x4 %us
         out 7 u8x4 %su
         %uu = OpUConvert %u8x4 %wide
         %ss = OpSConvert %u8x4 %wide
         out 8 u8x4 %uu
         out 9 u8x4 %ss
         %d = in f64 3
         %down = OpFConvert %f32 %d
         %tozero = OpFConvert %f32 %d
         out 10 f32 %down
         out 11 f32 %tozero",
    )
    .decorated(
        "OpDecorate %sat8 SaturatedConversion
         OpDecorate %sat8 FPRoundingMode RTE
         OpDecorate %ssat SaturatedConversion
         OpDecorate %up FPRoundingMode RTP
         OpDecorate %zero FPRoundingMode RTZ
         OpDecorate %high FPRoundingMode RTP
         OpDecorate %uu SaturatedConversion
         OpDecorate %ss SaturatedConversion
         OpDecorate %down FPRoundingMode RTN
         OpDecorate %tozero FPRoundingMode RTZ",
    );
    if il.lacks_floats(&setup) {
        return;
    }
    let third = 1.0f64 / 3.0;
    let input = Data::new()
        .put(0, &[2.5f32, -1.0, 300.0, 1.25])
        .put(1, &[0x0100_0003u64])
        .put(2, &[200u32, 0xffff_fff0, 100, 70000])
        .put(3, &[third]);
    let out = il.run(&setup, &input);
    assert_eq!(out.get::<u8, 4>(0), [2, 0, 255, 1]);
    assert_eq!(out.get::<i16, 4>(1), [2, -1, 300, 1]);
    assert_eq!(out.get::<i32, 4>(2), [3, -1, 300, 2]);
    assert_eq!(out.one::<f32>(3), 16777220.0);
    assert_eq!(out.one::<f32>(4), 16777218.0);
    assert_eq!(out.one::<f32>(5), 16777220.0);
    assert_eq!(out.get::<i8, 4>(6), [127, 127, 100, 127]);
    assert_eq!(out.get::<u8, 4>(7), [200, 0, 100, 255]);
    assert_eq!(out.get::<u8, 4>(8), [200, 255, 100, 255]);
    assert_eq!(out.get::<i8, 4>(9), [127, -16, 100, 127]);
    assert_eq!(out.one::<u32>(10), 0x3eaa_aaaa);
    assert_eq!(out.one::<u32>(11), 0x3eaa_aaaa);
}

#[test]
fn bit_instructions() {
    let setup = Setup::new();
    let il = Il::new(
        "%a = in u32 0
         %b = in u32 1
         %off = in u32 2
         %n = in u32 3
         %ins = OpBitFieldInsert %u32 %a %b %off %n
         %sx = OpBitFieldSExtract %u32 %a %off %n
         %ux = OpBitFieldUExtract %u32 %a %off %n
         %none = OpBitFieldInsert %u32 %a %b %off %u32_0
         %all = OpBitFieldInsert %u32 %a %b %u32_0 %u32_32
         %empty = OpBitFieldUExtract %u32 %a %u32_32 %u32_0
         out 0 u32 %ins
         out 1 u32 %sx
         out 2 u32 %ux
         out 3 u32 %none
         out 4 u32 %all
         out 5 u32 %empty
         %r = in u8x4 4
         %rev = OpBitReverse %u8x4 %r
         %cnt = OpBitCount %u8x4 %r
         out 6 u8x4 %rev
         out 7 u8x4 %cnt
         %q = in u64 5
         %rq = OpBitReverse %u64 %q
         %cq = OpBitCount %u64 %q
         out 8 u64 %rq
         out 9 u64 %cq
         %u = OpBitFieldUExtract %u64 %q %off %n
         out 10 u64 %u",
    )
    .needs("BitInstructions SPV_KHR_bit_instructions");
    let a = 0xdead_beefu32;
    let q = 0x8123_4567_89ab_cdefu64;
    let input = Data::new()
        .put(0, &[a])
        .put(1, &[0x5u32])
        .put(2, &[12u32])
        .put(3, &[8u32])
        .put(4, &[1u8, 2, 0xf0, 0xff])
        .put(5, &[q]);
    let out = il.run(&setup, &input);
    assert_eq!(out.one::<u32>(0), a & !0xf_f000 | 5 << 12);
    let field = a >> 12 & 0xff;
    assert_eq!(out.one::<u32>(1), field as u8 as i8 as i32 as u32);
    assert_eq!(out.one::<u32>(2), field);
    assert_eq!(out.one::<u32>(3), a);
    assert_eq!(out.one::<u32>(4), 5);
    assert_eq!(out.one::<u32>(5), 0);
    assert_eq!(out.get::<u8, 4>(6), [0x80, 0x40, 0x0f, 0xff]);
    assert_eq!(out.get::<u8, 4>(7), [1, 1, 4, 8]);
    assert_eq!(out.one::<u64>(8), q.reverse_bits());
    assert_eq!(out.one::<u64>(9), u64::from(q.count_ones()));
    assert_eq!(out.one::<u64>(10), q >> 12 & 0xff);
}

#[test]
fn integer_dot_products() {
    let setup = Setup::new();
    let il = Il::new(
        "%a = in u8x4 0
         %b = in u8x4 1
         %pa = in u32 0
         %pb = in u32 1
         %acc = in u32 2
         %s = OpSDot %u32 %a %b
         %u = OpUDot %u32 %a %b
         %su = OpSUDot %u32 %a %b
         %ps = OpSDot %u32 %pa %pb PackedVectorFormat4x8Bit
         %us = OpUDotAccSat %u32 %a %b %acc
         %ss = OpSDotAccSat %u32 %pa %pb %acc PackedVectorFormat4x8Bit
         %w = OpUDot %u64 %a %b
         %h = OpSDot %u16 %a %b
         out 0 u32 %s
         out 1 u32 %u
         out 2 u32 %su
         out 3 u32 %ps
         out 4 u32 %us
         out 5 u32 %ss
         out 6 u64 %w
         out 7 u16 %h",
    )
    .needs(
        "DotProduct DotProductInput4x8Bit DotProductInput4x8BitPacked SPV_KHR_integer_dot_product",
    );
    let (a, b) = ([-1i8, 2, -3, 100], [5i8, -6, 7, 90]);
    let input = Data::new().put(0, &a).put(1, &b).put(2, &[0xffff_fff0u32]);
    let out = il.run(&setup, &input);
    let sum = |f: fn(i8, i8) -> i64| -> i64 { (0..4).map(|i| f(a[i], b[i])).sum() };
    let s = sum(|x, y| i64::from(x) * i64::from(y));
    let u = sum(|x, y| i64::from(x as u8) * i64::from(y as u8));
    let su = sum(|x, y| i64::from(x) * i64::from(y as u8));
    assert_eq!(out.one::<i32>(0), s as i32);
    assert_eq!(out.one::<u32>(1), u as u32);
    assert_eq!(out.one::<i32>(2), su as i32);
    assert_eq!(out.one::<i32>(3), s as i32);
    assert_eq!(out.one::<u32>(4), u32::MAX);
    assert_eq!(out.one::<i32>(5), s as i32 - 16);
    assert_eq!(out.one::<u64>(6), u as u64);
    assert_eq!(out.one::<i16>(7), s as i16);
}

/// Vectors by dynamic index, shuffles, and the instructions on whole vectors.
#[test]
fn vectors() {
    let setup = Setup::new();
    let il = Il::new(
        "%v = in f32x4 0
         %i = in u64 1
         %x = OpVectorExtractDynamic %f32 %v %i
         out 0 f32 %x
         %w = OpVectorInsertDynamic %f32x4 %v %x %u32_0
         out 1 f32x4 %w
         %b = in u8x16 2
         %i8 = in u8 3
         %y = OpVectorExtractDynamic %u8 %b %i8
         out 2 u8 %y
         %c = OpVectorInsertDynamic %u8x16 %b %y %u32_15
         out 3 u8x16 %c
         %s = OpVectorShuffle %f32x8 %v %w 7 0 4 3 0xFFFFFFFF 1 1 6
         out 4 f32x8 %s
         %d = OpDot %f32 %v %w
         out 5 f32 %d
         %t = OpVectorTimesScalar %f32x4 %v %x
         out 6 f32x4 %t
         %cmp = OpFOrdGreaterThan %boolx4 %v %t
         %any = OpAny %bool %cmp
         %all = OpAll %bool %cmp
         out 7 bool %any
         out 8 bool %all
         %eq = OpLogicalEqual %bool %any %all
         %ne = OpLogicalNotEqual %bool %any %all
         out 9 bool %eq
         out 10 bool %ne
         %lo = OpCompositeExtract %f32 %v 1
         %three = OpCompositeConstruct %f32x3 %x %lo %lo
         %four = OpCompositeConstruct %f32x4 %three %lo
         out 11 f32x4 %four
         %bits = OpBitcast %u64x2 %v
         out 12 u64x2 %bits
         %bytes = OpBitcast %u8x16 %v
         out 13 u8x16 %bytes",
    );
    let v = [1.0f32, -2.0, 3.0, 4.5];
    let bytes: [u8; 16] = std::array::from_fn(|i| i as u8 * 3);
    let input = Data::new()
        .put(0, &v)
        .put(1, &[2u64])
        .put(2, &bytes)
        .put(3, &[11u8]);
    let out = il.run(&setup, &input);
    assert_eq!(out.one::<f32>(0), 3.0);
    assert_eq!(out.get::<f32, 4>(1), [3.0, -2.0, 3.0, 4.5]);
    assert_eq!(out.one::<u8>(2), 33);
    let mut changed = bytes;
    changed[15] = 33;
    assert_eq!(out.get::<u8, 16>(3), changed);
    let s = out.get::<f32, 8>(4);
    assert_eq!(
        [s[0], s[1], s[2], s[3], s[5], s[6], s[7]],
        [4.5, 1.0, 3.0, 4.5, -2.0, -2.0, 3.0]
    );
    assert_eq!(out.one::<f32>(5), 3.0 + 4.0 + 9.0 + 20.25);
    assert_eq!(out.get::<f32, 4>(6), [3.0, -6.0, 9.0, 13.5]);
    let flags: Vec<u32> = (7..11).map(|i| out.one(i)).collect();
    assert_eq!(flags, [1, 0, 0, 1]);
    assert_eq!(out.get::<f32, 4>(11), [3.0, -2.0, -2.0, -2.0]);
    let words: [u32; 4] = v.map(f32::to_bits);
    assert_eq!(out.get::<u32, 4>(12), words);
    assert_eq!(out.get::<u32, 4>(13), words);
}

/// Checks that a number stays rounded when it is widened again.
#[test]
fn narrower_numbers_round() {
    let setup = Setup::new();
    let il = Il::new(
        "%int = in u32 0
         %short = in u16 1
         %signed = OpConvertSToF %f16 %int
         %unsigned = OpConvertUToF %f16 %int
         %narrow = OpConvertUToF %f16 %short
         %a = OpFConvert %f32 %signed
         %b = OpFConvert %f32 %unsigned
         %c = OpFConvert %f32 %narrow
         %long = in u64 2
         %float = OpConvertUToF %f32 %long
         %d = OpFConvert %f64 %float
         %double = in f64 3
         %single = OpFConvert %f32 %double
         %e = OpFConvert %f64 %single
         out 0 f32 %a
         out 1 f32 %b
         out 2 f32 %c
         out 3 f64 %d
         out 4 f64 %e",
    )
    .needs("Float16");
    if il.lacks_floats(&setup) {
        return;
    }
    let rounded = [
        (2049u32, 2048.0f32),
        (4101, 4100.0),
        (65519, 65504.0),
        (65520, f32::INFINITY),
    ];
    for (int, as_half) in rounded {
        let long = u64::from(int) << 20 | 1;
        let double = 1.0 + f64::EPSILON * f64::from(int);
        let data = Data::new().put(0, &[int]).put(1, &[int as u16]);
        let data = data.put(2, &[long]).put(3, &[double]);
        let out = il.run(&setup, &data);
        for place in 0..3 {
            assert_eq!(out.one::<f32>(place), as_half, "{int}");
        }
        assert_eq!(out.one::<f64>(3), f64::from(long as f32), "{int}");
        assert_eq!(out.one::<f64>(4), f64::from(double as f32), "{int}");
    }
}

/// Few bits, far beyond the largest half: LLVM takes `(float)(half)x` for `(float)x`.
#[test]
fn integers_beyond_halfs() {
    let setup = Setup::new();
    let il = Il::new(
        "%byte = in u8 0
         %int = OpUConvert %u32 %byte
         %shifted = OpShiftLeftLogical %u32 %int %u32_24
         %signed = OpConvertSToF %f16 %shifted
         %unsigned = OpConvertUToF %f16 %shifted
         %long = OpUConvert %u64 %byte
         %far = OpShiftLeftLogical %u64 %long %u64_40
         %wide = OpConvertSToF %f16 %far
         %a = OpFConvert %f32 %signed
         %b = OpFConvert %f32 %unsigned
         %c = OpFConvert %f64 %wide
         out 0 f32 %a
         out 1 f32 %b
         out 2 f64 %c",
    )
    .needs("Float16");
    if il.lacks_floats(&setup) {
        return;
    }
    for byte in [0u8, 1, 0x80] {
        let out = il.run(&setup, &Data::new().put(0, &[byte]));
        let far = if byte == 0 { 0.0 } else { f32::INFINITY };
        let signed = if byte == 0x80 { -far } else { far };
        assert_eq!(out.one::<f32>(0), signed, "{byte}");
        assert_eq!(out.one::<f32>(1), far, "{byte}");
        assert_eq!(out.one::<f64>(2), f64::from(far), "{byte}");
    }
}
