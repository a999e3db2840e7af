//! Every instruction of OpenCL.std.

use super::{Data, Il};
use pumice_tests::Setup;
use std::fmt::Write;

/// Of x = 0.375 (acosh: 1.375).
#[rustfmt::skip]
const UNARY: &[(&str, f64)] = &[
    ("acos", 1.1863995522992576),
    ("asin", 0.3843967744956391),
    ("atan", 0.35877067027057225),
    ("asinh", 0.36672460423013675),
    ("atanh", 0.3942286801821351),
    ("cos", 0.9305076219123143),
    ("cosh", 1.0711403467045868),
    ("exp", 1.4549914146182013),
    ("exp2", 1.2968395546510096),
    ("expm1", 0.45499141461820136),
    ("log", -0.9808292530117262),
    ("log2", -1.415037499278844),
    ("log10", -0.42596873227228116),
    ("log1p", 0.3184537311185346),
    ("sin", 0.36627252908604757),
    ("sinh", 0.38385106791361456),
    ("sqrt", 0.6123724356957945),
    ("tan", 0.39362657592563277),
    ("tanh", 0.35835739835078595),
    ("erf", 0.4041169094348223),
    ("erfc", 0.5958830905651777),
    ("lgamma", 0.8630739822706475),
    ("acosh", 0.8410193220114457),
    ("acospi", 0.37764270646087694),
    ("asinpi", 0.12235729353912313),
    ("atanpi", 0.11420025121990815),
    ("cospi", 0.38268343236508984),
    ("sinpi", 0.9238795325112867),
    ("tanpi", 2.414213562373095),
    ("cbrt", 0.7211247851537042),
    ("exp10", 2.371373705661655),
    ("tgamma", 2.370436184416601),
    ("logb", -2.0),
    ("rsqrt", 1.632993161855452),
    ("fabs", 0.375),
    ("floor", 0.0),
    ("ceil", 1.0),
    ("rint", 0.0),
    ("round", 0.0),
    ("trunc", 0.0),
    ("degrees", 21.48591731740587),
    ("radians", 0.006544984694978736),
    ("sign", 1.0),
];

/// The same, less exact.
#[rustfmt::skip]
const ROUGH: &[(&str, f64)] = &[
    ("half_cos", 0.9305076219123143),
    ("native_cos", 0.9305076219123143),
    ("half_exp", 1.4549914146182013),
    ("native_exp", 1.4549914146182013),
    ("half_exp2", 1.2968395546510096),
    ("native_exp2", 1.2968395546510096),
    ("half_exp10", 2.371373705661655),
    ("native_exp10", 2.371373705661655),
    ("half_log", -0.9808292530117262),
    ("native_log", -0.9808292530117262),
    ("half_log2", -1.415037499278844),
    ("native_log2", -1.415037499278844),
    ("half_log10", -0.42596873227228116),
    ("native_log10", -0.42596873227228116),
    ("half_rsqrt", 1.632993161855452),
    ("native_rsqrt", 1.632993161855452),
    ("half_sin", 0.36627252908604757),
    ("native_sin", 0.36627252908604757),
    ("half_sqrt", 0.6123724356957945),
    ("native_sqrt", 0.6123724356957945),
    ("half_tan", 0.39362657592563277),
    ("native_tan", 0.39362657592563277),
    ("half_recip", 2.6666666666666665),
    ("native_recip", 2.6666666666666665),
];

/// Of x and y = 1.375.
#[rustfmt::skip]
const BINARY: &[(&str, f64)] = &[
    ("atan2", 0.2662520491509254),
    ("atan2pi", 0.08475065946143209),
    ("copysign", 0.375),
    ("fdim", 0.0),
    ("fmax", 1.375),
    ("fmin", 0.375),
    ("fmod", 0.375),
    ("hypot", 1.4252192813739224),
    ("maxmag", 1.375),
    ("minmag", 0.375),
    ("pow", 0.2595930093935005),
    ("powr", 0.2595930093935005),
    ("remainder", 0.375),
    ("fmax_common", 1.375),
    ("fmin_common", 0.375),
    ("step", 1.0),
];

#[rustfmt::skip]
const ROUGH_BINARY: &[(&str, f64)] = &[
    ("half_divide", 0.2727272727272727),
    ("half_powr", 0.2595930093935005),
    ("native_divide", 0.2727272727272727),
    ("native_powr", 0.2595930093935005),
];

/// Of x, y and 0.25.
#[rustfmt::skip]
const TERNARY: &[(&str, f64)] = &[
    ("fma", 0.765625),
    ("mad", 0.765625),
    ("mix", 0.625),
    ("fclamp", 0.25),
];
/// Instructions of so many operands on vectors of `float` and on `double`s; results within a tolerance.
#[track_caller]
fn elementwise(
    setup: &Setup,
    table: &[(&str, f64)],
    operands: usize,
    tolerance: f64,
    double: bool,
) {
    for part in table.chunks(30) {
        let mut body = String::new();
        for i in 0..3 {
            let _ = writeln!(body, "%f{i} = in f32x2 {i}\n%d{i} = in f64 {}", i + 3);
        }
        for (i, (name, _)) in part.iter().enumerate() {
            let first = if *name == "acosh" { 1 } else { 0 };
            let list = |letter: char| -> String {
                (first..first + operands)
                    .map(|n| format!(" %{letter}{n}"))
                    .collect()
            };
            let _ = writeln!(
                body,
                "%r{i} = OpExtInst %f32x2 %cl {name}{}\nout {i} f32x2 %r{i}",
                list('f')
            );
            if double {
                let slot = i + 30;
                let _ = writeln!(
                    body,
                    "%s{i} = OpExtInst %f64 %cl {name}{}\nout {slot} f64 %s{i}",
                    list('d')
                );
            }
        }
        let mut input = Data::new();
        for (i, value) in [0.375f64, 1.375, 0.25].into_iter().enumerate() {
            input = input.put(i, &[value as f32; 2]).put(i + 3, &[value]);
        }
        let out = Il::new(&body).run(setup, &input);
        for (i, (name, expected)) in part.iter().enumerate() {
            let near = |got: f64, tolerance: f64| {
                (got - expected).abs() <= tolerance * expected.abs().max(1e-3)
            };
            let got = out.get::<f32, 2>(i);
            assert!(
                got.iter().all(|&v| near(v.into(), tolerance)),
                "{name}: {got:?}, not {expected}"
            );
            if double {
                let got = out.one::<f64>(i + 30);
                assert!(near(got, 1e-13), "{name}: {got}, not {expected}");
            }
        }
    }
}

#[test]
fn elementary_functions() {
    let setup = Setup::new();
    elementwise(&setup, UNARY, 1, 2e-6, true);
    elementwise(&setup, ROUGH, 1, 1e-3, false);
    elementwise(&setup, BINARY, 2, 2e-6, true);
    elementwise(&setup, ROUGH_BINARY, 2, 1e-3, false);
    elementwise(&setup, TERNARY, 3, 1e-6, true);
}

/// Those with operands or results of other types.
#[test]
fn mixed_functions() {
    let setup = Setup::new();
    let il = Il::new(
        "%x = in f32x2 0
         %n = in u32x2 1
         %ld = OpExtInst %f32x2 %cl ldexp %x %n
         out 0 f32x2 %ld
         %pn = OpExtInst %f32x2 %cl pown %x %n
         out 1 f32x2 %pn
         %rn = OpExtInst %f32x2 %cl rootn %x %n
         out 2 f32x2 %rn
         %il = OpExtInst %u32x2 %cl ilogb %x
         out 3 u32x2 %il
         %na = OpExtInst %f32x2 %cl nan %n
         out 4 f32x2 %na
         %fp = OpVariable %p_f32x2 Function
         %np = OpVariable %p_u32x2 Function
         %fr = OpExtInst %f32x2 %cl fract %x %fp
         %fl = OpLoad %f32x2 %fp
         out 5 f32x2 %fr
         out 6 f32x2 %fl
         %mo = OpExtInst %f32x2 %cl modf %x %fp
         %mi = OpLoad %f32x2 %fp
         out 7 f32x2 %mo
         out 8 f32x2 %mi
         %si = OpExtInst %f32x2 %cl sincos %x %fp
         %co = OpLoad %f32x2 %fp
         out 9 f32x2 %si
         out 10 f32x2 %co
         %fx = OpExtInst %f32x2 %cl frexp %x %np
         %ex = OpLoad %u32x2 %np
         out 11 f32x2 %fx
         out 12 u32x2 %ex
         %lg = OpExtInst %f32x2 %cl lgamma_r %x %np
         %sg = OpLoad %u32x2 %np
         out 13 f32x2 %lg
         out 14 u32x2 %sg
         %y = in f32x2 2
         %rq = OpExtInst %f32x2 %cl remquo %x %y %np
         %qu = OpLoad %u32x2 %np
         out 15 f32x2 %rq
         out 16 u32x2 %qu
         %nx = OpExtInst %f32x2 %cl nextafter %x %y
         out 17 f32x2 %nx
         %ss = OpExtInst %f32x2 %cl smoothstep %e0 %e1 %y
         out 18 f32x2 %ss",
    )
    .with(
        "%zero = OpConstant %f32 0\n%ten = OpConstant %f32 10
         %e0 = OpConstantComposite %f32x2 %zero %zero\n%e1 = OpConstantComposite %f32x2 %ten %ten",
    );
    let x = [2.75f32, 0.75];
    let y = [2.0f32, 0.5];
    let input = Data::new().put(0, &x).put(1, &[3u32, 2]).put(2, &y);
    let out = il.run(&setup, &input);
    let near = |slot: usize, expected: [f32; 2]| {
        let got = out.get::<f32, 2>(slot);
        let good = (0..2).all(|i| (got[i] - expected[i]).abs() <= 3e-6 * expected[i].abs());
        assert!(good, "slot {slot}: {got:?}, not {expected:?}");
    };
    near(0, [22.0, 3.0]);
    near(1, [2.75 * 2.75 * 2.75, 0.5625]);
    near(2, [2.75f32.powf(1.0 / 3.0), 0.75f32.sqrt()]);
    assert_eq!(out.get::<i32, 2>(3), [1, -1]);
    assert_eq!(out.get::<u32, 2>(4), [0x7fc0_0003, 0x7fc0_0002]);
    near(5, [0.75, 0.75]);
    near(6, [2.0, 0.0]);
    near(7, [0.75, 0.75]);
    near(8, [2.0, 0.0]);
    near(9, x.map(f32::sin));
    near(10, x.map(f32::cos));
    near(11, [0.6875, 0.75]);
    assert_eq!(out.get::<i32, 2>(12), [2, 0]);
    near(13, [0.475_214_66, 0.203_280_95]);
    assert_eq!(out.get::<i32, 2>(14), [1, 1]);
    near(15, [0.75, -0.25]);
    assert_eq!(out.get::<i32, 2>(16).map(|q| q & 7), [1, 2]);
    assert_eq!(out.one::<u32>(17), x[0].to_bits() - 1);
    let smooth = |t: f32| t * t * (3.0 - 2.0 * t);
    near(18, [smooth(0.2), smooth(0.05)]);
}

/// Integer functions, of 8, 32 and 64 bits.
#[test]
fn integer_functions() {
    let setup = Setup::new();
    type Function = fn(i128, i128, i128, u32) -> i128;
    // Operands are sign-extended for s_, zero-extended for u_ and others; the result is cut.
    let table: &[(&str, usize, Function)] = &[
        ("s_abs", 1, |a, _, _, _| a.abs()),
        ("u_abs", 1, |a, _, _, _| a),
        ("s_abs_diff", 2, |a, b, _, _| (a - b).abs()),
        ("u_abs_diff", 2, |a, b, _, _| (a - b).abs()),
        ("s_add_sat", 2, |a, b, _, n| clamp_signed(a + b, n)),
        ("u_add_sat", 2, |a, b, _, n| (a + b).min((1 << n) - 1)),
        ("s_sub_sat", 2, |a, b, _, n| clamp_signed(a - b, n)),
        ("u_sub_sat", 2, |a, b, _, _| (a - b).max(0)),
        ("s_hadd", 2, |a, b, _, _| (a + b) >> 1),
        ("u_hadd", 2, |a, b, _, _| (a + b) >> 1),
        ("s_rhadd", 2, |a, b, _, _| (a + b + 1) >> 1),
        ("u_rhadd", 2, |a, b, _, _| (a + b + 1) >> 1),
        ("s_clamp", 3, |a, b, c, _| a.max(b).min(c)),
        ("u_clamp", 3, |a, b, c, _| a.max(b).min(c)),
        ("clz", 1, |a, _, _, n| (a.leading_zeros() + n) as i128 - 128),
        ("ctz", 1, |a, _, _, n| a.trailing_zeros().min(n) as i128),
        ("popcount", 1, |a, _, _, _| a.count_ones().into()),
        ("s_mad_hi", 3, |a, b, c, n| ((a * b) >> n) + c),
        ("u_mad_hi", 3, |a, b, c, n| {
            ((a as u128 * b as u128) >> n) as i128 + c
        }),
        ("s_mad_sat", 3, |a, b, c, n| clamp_signed(a * b + c, n)),
        ("s_max", 2, |a, b, _, _| a.max(b)),
        ("u_max", 2, |a, b, _, _| a.max(b)),
        ("s_min", 2, |a, b, _, _| a.min(b)),
        ("u_min", 2, |a, b, _, _| a.min(b)),
        ("s_mul_hi", 2, |a, b, _, n| (a * b) >> n),
        ("u_mul_hi", 2, |a, b, _, n| {
            ((a as u128 * b as u128) >> n) as i128
        }),
        ("rotate", 2, |a, b, _, n| {
            let by = (b as u32) % n;
            a << by | if by == 0 { 0 } else { a >> (n - by) }
        }),
    ];
    fn clamp_signed(v: i128, n: u32) -> i128 {
        v.clamp(-(1 << (n - 1)), (1 << (n - 1)) - 1)
    }
    let values: [[u64; 3]; 2] = [
        [0xffff_ffff_ffff_fff9, 100, 101],
        [0x70, 0x7fff_ffff_ffff_ff51, 90],
    ];
    for bits in [8u32, 32, 64] {
        let ty = format!("u{bits}x2");
        let mut body = String::new();
        for i in 0..3 {
            let _ = writeln!(body, "%v{i} = in {ty} {i}");
        }
        for (i, (name, count, _)) in table.iter().enumerate() {
            let list: String = (0..*count).map(|n| format!(" %v{n}")).collect();
            let _ = writeln!(
                body,
                "%r{i} = OpExtInst %{ty} %cl {name}{list}\nout {i} {ty} %r{i}"
            );
        }
        let bytes = bits as usize / 8;
        let mut input = Data::new();
        for (lane, operands) in values.iter().enumerate() {
            for (i, value) in operands.iter().enumerate() {
                let at = i * super::SLOT + lane * bytes;
                input.0[at..at + bytes].copy_from_slice(&value.to_le_bytes()[..bytes]);
            }
        }
        let out = Il::new(&body).run(&setup, &input);
        for (i, (name, _, function)) in table.iter().enumerate() {
            for (lane, operands) in values.iter().enumerate() {
                let extend = |v: u64| {
                    let v = i128::from(v) & ((1 << bits) - 1);
                    if name.starts_with("s_") && v >> (bits - 1) != 0 {
                        v - (1 << bits)
                    } else {
                        v
                    }
                };
                let [a, b, c] = operands.map(extend);
                let expected = function(a, b, c, bits) as u64 & (u64::MAX >> (64 - bits));
                let at = i * super::SLOT + lane * bytes;
                let mut got = [0u8; 8];
                got[..bytes].copy_from_slice(&out.0[at..at + bytes]);
                assert_eq!(
                    u64::from_le_bytes(got),
                    expected,
                    "{name}, {bits} bits, component {lane}"
                );
            }
        }
    }
}

#[test]
fn other_integer_functions() {
    let setup = Setup::new();
    let il = Il::new(
        "%a = in u32x2 0
         %b = in u32x2 1
         %c = in u32x2 2
         %m = OpExtInst %u32x2 %cl s_mad24 %a %b %c
         out 0 u32x2 %m
         %n = OpExtInst %u32x2 %cl u_mul24 %a %b
         out 1 u32x2 %n
         %o = OpExtInst %u32x2 %cl u_mad24 %a %b %c
         out 2 u32x2 %o
         %q = OpExtInst %u32x2 %cl s_mul24 %a %b
         out 3 u32x2 %q
         %s = in u16x2 3
         %u = OpExtInst %u32x2 %cl u_upsample %s %s
         out 4 u32x2 %u
         %v = OpExtInst %u32x2 %cl s_upsample %s %s
         out 5 u32x2 %v
         %w = OpExtInst %u32x2 %cl u_mad_sat %a %b %c
         out 6 u32x2 %w
         %l = in u64 4
         %z = OpExtInst %u64 %cl u_mad_sat %l %l %l
         out 7 u64 %z
         %bs = OpExtInst %u32x2 %cl bitselect %a %b %c
         out 8 u32x2 %bs
         %se = OpExtInst %u32x2 %cl select %a %b %c
         out 9 u32x2 %se
         %f = in f32 5
         %fs = OpExtInst %f32 %cl select %f %one %u32_2
         out 10 f32 %fs
         %fb = OpExtInst %f32 %cl bitselect %f %one %one
         out 11 f32 %fb",
    )
    .with("%one = OpConstant %f32 1");
    let (a, b, c) = ([1000u32, 0x7f_ffff], [2000u32, 3], [0xf000_0000u32, 17]);
    let input = Data::new()
        .put(0, &a)
        .put(1, &b)
        .put(2, &c)
        .put(3, &[0x8001u16, 2])
        .put(4, &[1u64 << 33])
        .put(5, &[2.5f32]);
    let out = il.run(&setup, &input);
    let of =
        |f: fn(u32, u32, u32) -> u32| -> [u32; 2] { std::array::from_fn(|i| f(a[i], b[i], c[i])) };
    assert_eq!(out.get::<u32, 2>(0), of(|a, b, c| (a * b).wrapping_add(c)));
    assert_eq!(out.get::<u32, 2>(1), of(|a, b, _| a * b));
    assert_eq!(out.get::<u32, 2>(2), of(|a, b, c| (a * b).wrapping_add(c)));
    assert_eq!(out.get::<u32, 2>(3), of(|a, b, _| a * b));
    assert_eq!(out.get::<u32, 2>(4), [0x8001_8001, 0x0002_0002]);
    assert_eq!(out.get::<u32, 2>(5), [0x8001_8001, 0x0002_0002]);
    assert_eq!(
        out.get::<u32, 2>(6),
        of(|a, b, c| (a * b).saturating_add(c))
    );
    assert_eq!(out.one::<u64>(7), u64::MAX);
    assert_eq!(out.get::<u32, 2>(8), of(|a, b, c| a & !c | b & c));
    assert_eq!(
        out.get::<u32, 2>(9),
        of(|a, b, c| if (c as i32) < 0 { b } else { a })
    );
    assert_eq!(out.one::<f32>(10), 1.0);
    let mask = 1f32.to_bits();
    assert_eq!(out.one::<u32>(11), 2.5f32.to_bits() & !mask | mask);
}

/// The module of `vectors_in_memory`.
pub(super) fn in_memory() -> Il {
    Il::new(
        "%p = OpBitcast %g_f32 %in
         %in16 = OpInBoundsPtrAccessChain %g_u8 %in %u64_128
         %h = OpBitcast %g_f16 %in16
         %o = OpInBoundsPtrAccessChain %g_u8 %out %u64_256
         %oh = OpBitcast %g_f16 %o
         %of = OpBitcast %g_f32 %out
         %v = OpExtInst %f32x3 %cl vloadn %u64_1 %p 3
         %st = OpExtInst %void %cl vstoren %v %u64_2 %of
         %x = OpExtInst %f32 %cl vload_half %u64_1 %h
         out 1 f32 %x
         %y = OpExtInst %f32x3 %cl vload_halfn %u64_1 %h 3
         %y4 = OpVectorShuffle %f32x4 %y %y 0 1 2 2
         %z = OpExtInst %f32x3 %cl vloada_halfn %u64_1 %h 3
         %s0 = OpExtInst %void %cl vstore_half %x %u64_0 %oh
         %s1 = OpExtInst %void %cl vstore_half_r %third %u64_1 %oh RTP
         %s2 = OpExtInst %void %cl vstore_halfn %y %u64_1 %oh
         %s3 = OpExtInst %void %cl vstorea_halfn %z %u64_2 %oh
         %s4 = OpExtInst %void %cl vstore_halfn_r %pair %u64_6 %oh RTZ
         %s5 = OpExtInst %void %cl vstorea_halfn_r %pair %u64_7 %oh RTN
         %pf = OpExtInst %void %cl prefetch %p %u64_4
         %len = OpExtInst %f32 %cl length %y4
         %dis = OpExtInst %f32 %cl distance %v %y
         %flen = OpExtInst %f32 %cl fast_length %y4
         %fdis = OpExtInst %f32 %cl fast_distance %v %y
         out 3 f32 %len
         out 4 f32 %dis
         out 5 f32 %flen
         out 6 f32 %fdis
         %nor = OpExtInst %f32x3 %cl normalize %y
         %fnor = OpExtInst %f32x3 %cl fast_normalize %y
         out 7 f32x3 %nor
         out 8 f32x3 %fnor
         %cr = OpExtInst %f32x3 %cl cross %v %y
         out 9 f32x3 %cr
         %mask = in u32x4 2
         %sh = OpExtInst %f32x4 %cl shuffle %y4 %mask
         out 10 f32x4 %sh
         %sh2 = OpExtInst %f32x4 %cl shuffle2 %y4 %sh %mask
         out 11 f32x4 %sh2",
    )
    .needs("Float16")
    .with(
        "%third = OpConstant %f32 0.33333334
         %pair = OpConstantComposite %f32x2 %third %third",
    )
}

/// Vector loads and stores, geometry, shuffles.
#[test]
fn vectors_in_memory() {
    let setup = Setup::new();
    let il = in_memory();
    // Halves 1, 2, 3 ... 8.
    let halves = [
        0x3c00u16, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600, 0x4700, 0x4800,
    ];
    let input = Data::new()
        .put(0, &[0f32, 0.0, 0.0, 1.0, 2.0, 3.0])
        .put(1, &halves)
        .put(2, &[3u32, 6, 1, 0xffff_fff4]);
    let out = il.run(&setup, &input);
    let floats: [f32; 9] = out.get(0);
    assert_eq!(floats[6..9], [1.0, 2.0, 3.0]);
    assert_eq!(out.one::<f32>(1), 2.0);
    let stored: [u16; 16] = out.get(2);
    assert_eq!(stored[0], 0x4000);
    assert_eq!(stored[1], 0x3556);
    assert_eq!(stored[3..6], [0x4400, 0x4500, 0x4600]);
    assert_eq!(stored[8..11], [0x4500, 0x4600, 0x4700]);
    assert_eq!(stored[12..16], [0x3555, 0x3555, 0x3555, 0x3555]);
    let (y, v) = ([4f32, 5.0, 6.0], [1f32, 2.0, 3.0]);
    let close = |slot: usize, expected: f32, tolerance: f32| {
        let got = out.one::<f32>(slot);
        assert!(
            (got - expected).abs() <= tolerance,
            "slot {slot}: {got}, not {expected}"
        );
    };
    let length = (16f32 + 25.0 + 36.0 + 36.0).sqrt();
    close(3, length, 1e-5);
    close(4, 27f32.sqrt(), 1e-5);
    close(5, length, 1e-2);
    close(6, 27f32.sqrt(), 1e-2);
    let norm = 77f32.sqrt();
    for (slot, tolerance) in [(7, 1e-6), (8, 1e-2)] {
        let got = out.get::<f32, 3>(slot);
        assert!(
            (0..3).all(|i| (got[i] - y[i] / norm).abs() <= tolerance),
            "{got:?}"
        );
    }
    assert_eq!(
        out.get::<f32, 3>(9),
        [
            v[1] * y[2] - v[2] * y[1],
            v[2] * y[0] - v[0] * y[2],
            v[0] * y[1] - v[1] * y[0]
        ]
    );
    assert_eq!(out.get::<f32, 4>(10), [6.0, 6.0, 5.0, 4.0]);
    assert_eq!(out.get::<f32, 4>(11), [6.0, 5.0, 5.0, 6.0]);
}
