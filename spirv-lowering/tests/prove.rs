//! Generated kernels do the same before and after every pass (`testing`).
//!
//! `cargo test` proves a few hundred; `PROVE_COUNT=100000 PROVE_FIRST=7 cargo test --release --test prove -- --ignored` as
//! many as the environment says. `prove-tool` does the same and makes what it finds smaller.

use spirv_lowering::interp::{self, Arg, Error, Memory, NdRange, Options, Scalar};
use spirv_lowering::ir::parse::parse_module;
use spirv_lowering::ir::verify::verify_module;
use spirv_lowering_testing::generate::{generate, Kind};
use spirv_lowering_testing::operations::{signatures, Operations, NUMBERS};
use spirv_lowering_testing::prove::{prove, targets, Depth, Verdict};
use spirv_lowering_testing::shrink::shrink;

fn prove_seeds(first: u64, count: u64, depth: Depth) {
    let all = targets().len() as u64;
    let mut discarded = 0;
    for seed in first..first + count {
        let case = generate(seed);
        let mask = 1 << (seed % all);
        match prove(&case, mask, depth) {
            Verdict::Proved(_) => {}
            Verdict::Discarded(_) => discarded += 1,
            Verdict::Wrong(difference) => {
                let fails = |case: &_| match prove(case, mask, Depth::Every) {
                    Verdict::Wrong(other) => other.pass == difference.pass,
                    _ => false,
                };
                let small = shrink(&case, &fails);
                panic!(
                    "seed {seed}, target {}, pass {}: {}\n{:?}\n{}",
                    difference.target, difference.pass, difference.what, small.range, small.module
                );
            }
        }
    }
    assert!(
        discarded * 4 < count,
        "{discarded} of {count} are discarded"
    );
}

#[test]
fn passes_keep_what_kernels_do() {
    let count = if cfg!(debug_assertions) { 20 } else { 100 };
    prove_seeds(0, count, Depth::Every);
}

/// Seeds that showed a fault once, in what is emitted, as they do here: shared code that came back to a call that never ends;
/// copies of memory that took more steps than a run may; the sign of a value that may be a NaN, and the other bits of a negated
/// one, which the interpreter took for known; more printf than its buffer held; what is promised not to be infinite and may be,
/// in sign or size, which it took for known; a loop at the beginning of another, made one with it, and its barrier then in each
/// copy of an unrolled body.
const FOUND: &[u64] = &[
    9_008_281,
    30_010_206,
    32_012_548,
    1_200_863_969,
    1_200_033_941,
    2_000_655_592,
    2_000_763_213,
    2_100_499_217,
    8_310_134_623,
    8_320_570_565,
];

#[test]
fn what_was_wrong_once_is_right() {
    let all = (1 << targets().len()) - 1;
    for &seed in FOUND {
        let verdict = prove(&generate(seed), all, Depth::Last);
        assert!(
            !matches!(verdict, Verdict::Wrong(_)),
            "seed {seed}: {verdict:?}"
        );
    }
}

/// A pointer that is null or not, by a NaN where there is none: the interpreter took its cast to a generic one for known.
#[test]
fn what_nobody_knows_is_set_aside() {
    let verdict = prove(&generate(1_200_718_066), 1, Depth::Every);
    assert!(matches!(verdict, Verdict::Discarded(_)));
}

/// Special operands, which kernels by chance seldom have: emulated conversions and widths go wrong there.
#[test]
fn operations_survive_every_pass() {
    for ty in NUMBERS {
        let operations = Operations::new(ty, signatures(ty), 2, 1);
        let all = (1 << targets().len()) - 1;
        match prove(&operations.case, all, Depth::Every) {
            Verdict::Proved(count) => assert!(count > 60, "{ty:?}: {count} functions"),
            other => panic!("{ty:?}: {other:?}"),
        }
    }
}

#[test]
#[ignore = "as long as it is told to"]
fn many() {
    let number = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
    let (first, count) = (number("PROVE_FIRST"), number("PROVE_COUNT"));
    prove_seeds(first.unwrap_or(0), count.unwrap_or(10_000), Depth::Last);
}

#[test]
fn a_seed_makes_one_kernel() {
    for seed in 0..20 {
        let (a, b) = (generate(seed), generate(seed));
        assert_eq!(a.module.to_string(), b.module.to_string());
        assert_eq!((a.range, a.args, a.buffers), (b.range, b.args, b.buffers));
    }
    let kinds: Vec<Kind> = (0..40).map(|seed| generate(seed).kind).collect();
    for kind in [Kind::Plain, Kind::Local, Kind::Collective] {
        assert!(kinds.contains(&kind));
    }
}

/// Checks that a module is the same after it was printed and parsed.
#[test]
fn generated_modules_round_trip() {
    for seed in 0..40 {
        let module = generate(seed).module;
        verify_module(&module).unwrap();
        let text = module.to_string();
        assert_eq!(parse_module(&text).unwrap().to_string(), text);
    }
}

const KERNEL: &str = r#"
global @0 "l" local size 64 align 4
kernel "k" fn0 {
  pointer global "out" "" global none
}
func fn0 "k" export (ptr.global) -> () {
block0(v0: ptr.global):
  v1 = builtin.local_id.0 : i64
  v2 = const 4 : i64
  v3 = imul v1, v2 : i64
  v4 = global_addr @0 : ptr.local
  v5 = ptr_add v4, v3 : ptr.local
  v6 = trunc v1 : i32
  store.align4 v5, v6
  barrier.work_group.work_group.acq_rel.l
  v7 = const 3 : i64
  v8 = isub v7, v1 : i64
  v9 = imul v8, v2 : i64
  v10 = ptr_add v4, v9 : ptr.local
  v11 = load.align4 v10 : i32
  v12 = builtin.global_id.0 : i64
  v13 = imul v12, v2 : i64
  v14 = ptr_add v0, v13 : ptr.global
  store.align4 v14, v11
  return
}
"#;

/// Runs the kernel of a text with 8 work-items in groups of four and one buffer of 32 bytes.
fn run(text: &str) -> Result<Vec<u8>, Error> {
    let module = parse_module(text).unwrap();
    verify_module(&module).unwrap();
    let mut memory = Memory::new();
    let out = memory.add(vec![0xee; 32], 128);
    let range = NdRange::linear(8, 4);
    let args = [Arg::Pointer(out)];
    interp::run(
        &module,
        "k",
        &range,
        &args,
        &mut memory,
        &Options::default(),
    )?;
    Ok(memory.region(out).unwrap().bytes.clone())
}

#[test]
fn work_items_meet_at_barriers() {
    let got = run(KERNEL).unwrap();
    let words: Vec<u8> = got.into_iter().step_by(4).collect();
    assert_eq!(words, [3, 2, 1, 0, 3, 2, 1, 0]);
}

#[test]
fn what_goes_wrong_is_said() {
    // Beyond the end.
    let text = KERNEL.replace("v2 = const 4", "v2 = const 8");
    assert!(matches!(run(&text), Err(Error::Access { .. })));
    // Never written before it is an address.
    let text = KERNEL.replace("  store.align4 v5, v6\n", "").replace(
        "  v12 = builtin.global_id.0 : i64",
        "  v15 = load.align4 v5 : i32\n  v12 = zext v15 : i64",
    );
    assert!(matches!(run(&text), Err(Error::Unknown { .. })));
    // Some do not come to the barrier.
    let text = KERNEL.replace(
        "  barrier",
        "  v20 = const 2 : i64\n  v21 = icmp.ult v1, v20 : bool\n  br v21, block1, block2\nblock2:\n  \
         return\nblock1:\n  barrier",
    );
    assert!(matches!(run(&text), Err(Error::Divergence(_))), "{text}");
    // No end.
    let text = KERNEL.replace("  return", "  jump block1\nblock1:\n  jump block1");
    assert_eq!(run(&text), Err(Error::Steps));
}

#[test]
fn functions_are_called_by_themselves() {
    let module = parse_module(
        "func fn0 \"f\" (i32, i32) -> (i32) {\nblock0(v0: i32, v1: i32):\n  v2 = udiv v0, v1 : i32\n  return v2\n}\n",
    )
    .unwrap();
    let call = |a: u64, b: u64| {
        let id = module.functions.keys().next().unwrap();
        let args = [Scalar::known(a), Scalar::known(b)];
        interp::call(&module, id, &args, &mut Memory::new(), &Options::default())
    };
    assert_eq!(call(7, 2).unwrap(), [Scalar::known(3)]);
    assert_eq!(call(7, 0).unwrap()[0].unknown, 0xffff_ffff);
}
