//! Every instruction of OpenCL.std.

use super::{Data, Il};
use crate::bounds::{Bound, Function, Precision};
use pumice_tests::Setup;
use std::fmt::Write;

/// Instructions on floats and doubles, each held against the function of OpenCL C that has its name.
#[rustfmt::skip]
const ELEMENTARY: &[&str] = &[
    "acos", "acosh", "acospi", "asin", "asinh", "asinpi", "atan", "atan2", "atan2pi", "atanh", "atanpi", "cbrt", "ceil",
    "copysign", "cos", "cosh", "cospi", "degrees", "erf", "erfc", "exp", "exp10", "exp2", "expm1", "fabs", "fclamp", "fdim",
    "floor", "fma", "fmax", "fmax_common", "fmin", "fmin_common", "fmod", "hypot", "lgamma", "log", "log10", "log1p",
    "log2", "logb", "mad", "maxmag", "minmag", "mix", "pow", "powr", "radians", "remainder", "rint", "round", "rsqrt",
    "sign", "sin", "sinh", "sinpi", "sqrt", "step", "tan", "tanh", "tanpi", "tgamma", "trunc",
];

/// On floats alone, with the prefixes `half_` and `native_`.
const ROUGH: &[&str] = &[
    "cos", "divide", "exp", "exp10", "exp2", "log", "log10", "log2", "powr", "recip", "rsqrt",
    "sin", "sqrt", "tan",
];

/// Functions that the specification defines in the same way, except for NaN operands and for how
/// often mad rounds.
const SAME_RESULT: &[[&str; 2]] = &[
    ["fmax", "fmax_common"],
    ["fmin", "fmin_common"],
    ["fma", "mad"],
];

/// A half_ function is within so many units of the last place. The error of a native_ function is implementation-defined:
/// the same is asked of it.
const ROUGHLY: Bound = Bound::Ulp(8192.0);

/// Operands by how many a function takes. What is defined of some of them alone is NaN elsewhere.
const UNARY: [[f64; 3]; 7] = [
    [0.375, 0.0, 0.0],
    [-0.6875, 0.0, 0.0],
    [0.8125, 0.0, 0.0],
    [1.375, 0.0, 0.0],
    [2.5, 0.0, 0.0],
    [-2.5, 0.0, 0.0],
    [3.25, 0.0, 0.0],
];
/// Each is the larger once, by its value and by its magnitude.
const BINARY: [[f64; 3]; 6] = [
    [0.375, 1.375, 0.0],
    [-1.5, 3.0, 0.0],
    [5.5, -2.0, 0.0],
    [2.25, 0.625, 0.0],
    [-0.75, -2.5, 0.0],
    [-7.25, 1.5, 0.0],
];
/// The second is not above the third, and the third between 0 and 1: clamp and mix are undefined of others. Of the last but
/// one a float's product has to be rounded, of the last a double's.
const TERNARY: [[f64; 3]; 5] = [
    [0.375, -1.375, 0.25],
    [-2.5, -0.5, 0.75],
    [0.125, -1.5, 0.625],
    [1.0 + TINY, -0.5 - TINY / 2.0, 0.5 + TINY],
    [1.0 + TINIER, -0.5 - TINIER / 2.0, 0.5 + TINIER],
];
/// 2^-12 and 2^-27, whose squares are half a unit of a float and of a double above 1.
const TINY: f64 = 1.0 / 4096.0;
const TINIER: f64 = f32::EPSILON as f64 / 16.0;

/// An instruction and what it gives.
struct Instruction {
    name: String,
    function: &'static Function,
    /// Other than that of the function.
    bound: Option<Bound>,
}

impl Instruction {
    fn new(name: &str) -> Self {
        let rough = (name.strip_prefix("half_")).or_else(|| name.strip_prefix("native_"));
        let function = match name {
            "fclamp" => "clamp",
            "fmax_common" => "max",
            "fmin_common" => "min",
            _ => rough.unwrap_or(name),
        };
        Self {
            name: name.to_owned(),
            function: Function::named(function),
            bound: rough.map(|_| ROUGHLY),
        }
    }

    fn points(&self) -> &'static [[f64; 3]] {
        match self.function.operands() {
            1 => &UNARY,
            2 => &BINARY,
            _ => &TERNARY,
        }
    }

    /// Whether it may give this of a point.
    fn admits(&self, precision: Precision, point: [f64; 3], got: f64) -> bool {
        let point = point.map(|x| precision.round(x));
        match self.bound {
            // Rough functions need not tell what is no operand of theirs.
            Some(_) if self.function.want(point).is_nan() => true,
            Some(bound) => self.function.admits_within(bound, precision, point, got),
            None => self.function.admits(precision, point, got),
        }
    }
}

fn elementary() -> Vec<Instruction> {
    ELEMENTARY
        .iter()
        .map(|name| Instruction::new(name))
        .collect()
}

fn rough() -> Vec<Instruction> {
    let names = |name: &&str| {
        ["half_", "native_"].map(|prefix| Instruction::new(&format!("{prefix}{name}")))
    };
    ROUGH.iter().flat_map(names).collect()
}

/// Runs instructions with the same number of operands on vectors of two floats, and on doubles.
#[track_caller]
fn elementwise(setup: &Setup, instructions: &[&Instruction], double: bool) {
    for part in instructions.chunks(30) {
        let (operands, points) = (part[0].function.operands(), part[0].points());
        let mut body = String::new();
        for i in 0..operands {
            let _ = writeln!(body, "%f{i} = in f32x2 {i}");
            if double {
                let _ = writeln!(body, "%d{i} = in f64 {}", i + 3);
            }
        }
        let list =
            |letter: char| -> String { (0..operands).map(|n| format!(" %{letter}{n}")).collect() };
        for (i, Instruction { name, .. }) in part.iter().enumerate() {
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
        let il = Il::new(&body);
        let program =
            super::build(setup, &il.words()).unwrap_or_else(|log| panic!("{log}\n{}", il.text()));
        // Each point in both components, and the components differ.
        for (i, &point) in points.iter().enumerate() {
            let pair = [point, points[(i + 1) % points.len()]];
            let mut input = Data::new();
            for n in 0..operands {
                input = input
                    .put(n, &pair.map(|x| x[n] as f32))
                    .put(n + 3, &[point[n]]);
            }
            let out = super::run_program(setup, &program, &input, 1);
            for (i, instruction) in part.iter().enumerate() {
                let check = |precision: Precision, x: [f64; 3], got: f64| {
                    let want = instruction.function.want(x.map(|x| precision.round(x)));
                    let bound = instruction
                        .bound
                        .unwrap_or(instruction.function.bound(precision));
                    assert!(
                        instruction.admits(precision, x, got),
                        "{} of {:?}: {got:?}, not {want:?}: {:.2} units of the last place in {precision:?}, {bound:?}",
                        instruction.name,
                        &x[..operands],
                        precision.ulps(got, want),
                    );
                };
                for (x, got) in pair.into_iter().zip(out.get::<f32, 2>(i)) {
                    check(Precision::Single, x, got.into());
                }
                if double {
                    check(Precision::Double, point, out.one(i + 30));
                }
            }
        }
    }
}

/// Instructions with one operand, with two, with three.
fn by_operands(all: &[Instruction]) -> [Vec<&Instruction>; 3] {
    [1, 2, 3].map(|n| all.iter().filter(|x| x.function.operands() == n).collect())
}

#[test]
fn elementary_functions() {
    let setup = Setup::new();
    for (all, double) in [(elementary(), setup.has_doubles()), (rough(), false)] {
        for list in by_operands(&all).iter().filter(|list| !list.is_empty()) {
            elementwise(&setup, list, double);
        }
    }
}

/// Checks that no instruction gives the results of another with as many operands, so that
/// `elementary_functions` distinguishes them.
#[test]
fn elementary_functions_differ() {
    let same = |a: &Instruction, b: &Instruction| {
        let pair = [a.name.as_str(), &b.name];
        let listed = |[c, d]: &[&str; 2]| pair == [*c, d] || pair == [*d, c];
        a.function.name == b.function.name || SAME_RESULT.iter().any(listed)
    };
    for all in [elementary(), rough()] {
        for list in by_operands(&all) {
            for (a, b) in list.iter().flat_map(|a| list.iter().map(move |b| (a, b))) {
                if same(a, b) {
                    continue;
                }
                for precision in [Precision::Single, Precision::Double] {
                    let distinguished = a.points().iter().any(|&x| {
                        let other = b.function.want(x.map(|x| precision.round(x)));
                        !a.admits(precision, x, precision.round(other))
                    });
                    assert!(
                        distinguished,
                        "{} may be {} in {precision:?}",
                        a.name, b.name
                    );
                }
            }
        }
    }
}

/// Tests functions with operands or results of other types.
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
         %w = in f32x2 3
         %fr = OpExtInst %f32x2 %cl fract %w %fp
         %fl = OpLoad %f32x2 %fp
         out 5 f32x2 %fr
         out 6 f32x2 %fl
         %mo = OpExtInst %f32x2 %cl modf %w %fp
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
    let w = [-2.25f32, 0.75];
    let input = Data::new()
        .put(0, &x)
        .put(1, &[3u32, 2])
        .put(2, &y)
        .put(3, &w);
    let out = il.run(&setup, &input);
    let near = |slot: usize, name: &str, operands: [[f64; 2]; 3]| {
        let function = Function::named(name);
        for (i, got) in out.get::<f32, 2>(slot).into_iter().enumerate() {
            let at = operands.map(|x| x[i]);
            let good = function.admits(Precision::Single, at, got.into());
            assert!(
                good,
                "{name} of {at:?}: {got:?}, not {:?}",
                function.want(at)
            );
        }
    };
    let (zero, single) = ([0.0; 2], x.map(f64::from));
    assert_eq!(out.get::<f32, 2>(0), [22.0, 3.0]);
    near(1, "pown", [single, [3.0, 2.0], zero]);
    near(2, "rootn", [single, [3.0, 2.0], zero]);
    assert_eq!(out.get::<i32, 2>(3), [1, -1]);
    assert_eq!(out.get::<u32, 2>(4), [0x7fc0_0003, 0x7fc0_0002]);
    assert_eq!(out.get::<f32, 2>(5), [0.75, 0.75]);
    assert_eq!(out.get::<f32, 2>(6), [-3.0, 0.0]);
    assert_eq!(out.get::<f32, 2>(7), [-0.25, 0.75]);
    assert_eq!(out.get::<f32, 2>(8), [-2.0, 0.0]);
    near(9, "sin", [single, zero, zero]);
    near(10, "cos", [single, zero, zero]);
    assert_eq!(out.get::<f32, 2>(11), [0.6875, 0.75]);
    assert_eq!(out.get::<i32, 2>(12), [2, 0]);
    near(13, "lgamma", [single, zero, zero]);
    assert_eq!(out.get::<i32, 2>(14), [1, 1]);
    assert_eq!(out.get::<f32, 2>(15), [0.75, -0.25]);
    assert_eq!(out.get::<i32, 2>(16).map(|q| q & 7), [1, 2]);
    assert_eq!(out.get::<u32, 2>(17), x.map(|x| x.to_bits() - 1));
    near(18, "smoothstep", [zero, [10.0; 2], y.map(f64::from)]);
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
    // As section 7.4 has them, of vectors of 4 and 3 numbers.
    let close = |slot: usize, expected: &[f64], ulp: f64| {
        for (i, want) in expected.iter().enumerate() {
            let got = out.get::<f32, 3>(slot)[i];
            let off = Precision::Single.ulps(got.into(), *want);
            assert!(off <= ulp, "slot {slot}: {got}, not {want}: {off:.2} ulp");
        }
    };
    let length = (16f64 + 25.0 + 36.0 + 36.0).sqrt();
    close(3, &[length], 2.75 + 0.5 * 4.0);
    close(4, &[27f64.sqrt()], 2.5 + 2.0 * 3.0);
    close(5, &[length], 8191.5 + 4.0);
    close(6, &[27f64.sqrt()], 8191.5 + 2.0 * 3.0);
    let normal = y.map(|y| f64::from(y) / 77f64.sqrt());
    close(7, &normal, 2.0 + 3.0);
    close(8, &normal, 8192.0 + 3.0);
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
