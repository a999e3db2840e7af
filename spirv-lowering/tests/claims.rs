//! The vectoriser's claims about the lanes of packs, and what other analyses claim, hold for every value of generated
//! kernels, in every execution.
//!
//! `CLAIMS_FIRST=7 CLAIMS_COUNT=100000 cargo test --release --test claims -- --ignored` checks as many, each as it is
//! emitted and in one stage by lot.

use spirv_lowering::claims::{alias_set, Bound, Claim, Claims, FalseClaim};
use spirv_lowering::interface::KernelInterface;
use spirv_lowering::interp::{self, run_claimed, Lowered, NdRange, Options as RunOptions};
use spirv_lowering::ir::module::Module;
use spirv_lowering::ir::parse::parse_module;
use spirv_lowering::native::{self, Packing};
use spirv_lowering::options::{Options, ZeroedMemory};
use spirv_lowering::program::Program;
use spirv_lowering::target::Target;
use spirv_lowering_testing::claims::{ClaimedStages, FalseAfter, Which};
use spirv_lowering_testing::generate::{generate, Case, CaseArg, Kind};
use spirv_lowering_testing::prove::targets;
use spirv_lowering_testing::shrink::shrink;
use std::collections::BTreeMap;

/// Lanes of packs: 128, 256 and 512 bits.
const LANES: [u32; 3] = [4, 8, 16];

/// The result of a kernel.
#[derive(Debug)]
enum Checked {
    /// All claims hold, of so many functions that are called too.
    Hold(usize),
    /// A kernel that cannot be made for the processor, or has no defined result.
    Left(String),
    False(FalseClaim),
}

/// A kernel lowered for packs, with what is claimed of it.
struct Claimed {
    module: Module,
    interface: KernelInterface,
    pieces: Vec<Claims>,
    packing: Packing,
}

/// `keeps`: functions that are called twice stay functions, and memory is zeroed.
fn claimed(case: &Case, lanes: u32, keeps: bool) -> Result<Claimed, String> {
    let target = Target {
        subgroup_size: lanes,
        ..Target::processor(lanes)
    };
    let program = Program::from_module(case.module.clone());
    // Counters keep their 64 bits, so that something is claimed of them.
    let mut options = Options {
        skip: &["narrow_params"],
        one_copy_from: keeps.then_some(1),
        zeroed: ZeroedMemory {
            local: keeps,
            private: keeps,
        },
        ..Options::default()
    };
    let lowered = program.lower("k", &target, &mut options);
    let lowered = lowered.map_err(|error| error.to_string())?;
    let module = parse_module(&lowered.kir).map_err(|error| error.to_string())?;
    let range = &case.range;
    // A smaller last work-group is packed by its own size: in the order that suits all.
    let whole = (0..3).all(|d| range.global[d] % range.local[d].max(1) == 0);
    let packing = match whole {
        true => Packing::of(
            range.local,
            lowered.interface.lanes,
            lowered.interface.uses_subgroups,
        ),
        false => Packing::Linear,
    };
    let pieces = native::claims(&module, packing).map_err(|error| error.to_string())?;
    Ok(Claimed {
        module,
        interface: lowered.interface,
        pieces,
        packing,
    })
}

fn check(case: &Case, (lanes, keeps): (u32, bool)) -> Checked {
    let mut called = 0;
    let found = claimed(case, lanes, keeps).and_then(|it| {
        called = it
            .pieces
            .iter()
            .filter(|piece| piece.callee.is_some())
            .count();
        run(case, &it).map_err(|e| e.to_string())
    });
    match found.map(|found| found.into_iter().next()) {
        Ok(Some(found)) => Checked::False(found),
        Ok(None) => Checked::Hold(called),
        Err(why) => Checked::Left(why),
    }
}

fn run(case: &Case, claimed: &Claimed) -> Result<Vec<FalseClaim>, interp::Error> {
    let (mut memory, args, _) = case.memory()?;
    let missing = || interp::Error::Invalid("no kernel".into());
    let lowered = Lowered {
        module: &claimed.module,
        kernel: case.module.kernels.first().ok_or_else(missing)?,
        func: &claimed.pieces.first().ok_or_else(missing)?.func,
        interface: &claimed.interface,
        guard: false,
    };
    let claims = (claimed.pieces.as_slice(), claimed.packing.order());
    let options = RunOptions {
        strict: true,
        subgroup_size: claimed.interface.lanes,
        ..Default::default()
    };
    run_claimed(&lowered, claims, &case.range, &args, &mut memory, &options)
}

fn check_seeds(first: u64, count: u64) {
    let (mut held, mut called, mut left) = (0u64, 0, Vec::new());
    for seed in first..first + count {
        let case = generate(seed);
        let how = (LANES[(seed % 3) as usize], seed % 2 == 1);
        match check(&case, how) {
            Checked::Hold(functions) => {
                held += 1;
                called += functions;
            }
            Checked::Left(why) => left.push(why),
            Checked::False(found) => {
                let fails = |case: &_| matches!(check(case, how), Checked::False(_));
                let small = shrink(&case, &fails);
                let again = check(&small, how);
                panic!(
                    "seed {seed}, lanes and whether functions stay {how:?}, after {held} kernels: {found}\n{:?}\n{}\n{again:?}",
                    small.range, small.module
                );
            }
        }
    }
    println!(
        "all claims of {held} kernels and {called} functions hold; not checked: {}",
        left.len()
    );
    assert!(called as u64 * 10 > count, "{called} functions were called");
    assert!((left.len() as u64) * 3 < count, "not checked: {left:#?}");
}

/// The targets of the passes: processors, and those of `prove` for Vulkan.
fn all_targets() -> Vec<(&'static str, Target)> {
    let mut all = targets();
    all.push(("processor", Target::processor(8)));
    all
}

/// Returns the first false claim of a pass about a kernel.
fn check_stages(case: &Case, target: &Target, which: Which) -> Result<Option<FalseAfter>, String> {
    let stages = ClaimedStages::new(case, target, which)?;
    let found = stages.check(case).map_err(|error| error.to_string())?;
    Ok(found.into_iter().next())
}

/// `by_lot`: one stage of each kernel.
fn check_stages_of_seeds(first: u64, count: u64, by_lot: bool) {
    let all = all_targets();
    let mut left = Vec::new();
    for seed in first..first + count {
        let case = generate(seed);
        let (name, target) = &all[(seed % all.len() as u64) as usize];
        let which = match by_lot {
            true => Which::One(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32),
            false => Which::All,
        };
        match check_stages(&case, target, which) {
            Ok(None) => {}
            Ok(Some((pass, found))) => {
                let fails =
                    |case: &_| matches!(check_stages(case, target, Which::All), Ok(Some(_)));
                let small = shrink(&case, &fails);
                let again = check_stages(&small, target, Which::All);
                panic!(
                    "seed {seed}, {name}, after {pass}: {found}\n{:?}\n{}\n{again:?}",
                    small.range, small.module
                );
            }
            Err(why) => left.push(format!("{seed}: {why}")),
        }
    }
    println!(
        "claims of passes hold; not checked: {} of {count}",
        left.len()
    );
    assert!((left.len() as u64) * 4 < count, "not checked: {left:#?}");
}

#[test]
fn claims_of_passes_hold_in_generated_kernels() {
    let count = if cfg!(debug_assertions) { 14 } else { 42 };
    check_stages_of_seeds(0, count, false);
    check_stages_of_seeds(0, 4 * count, true);
}

#[test]
fn claims_hold_in_generated_kernels() {
    let count = if cfg!(debug_assertions) { 60 } else { 200 };
    check_seeds(0, count);
}

/// Each claim of an id is made false in turn: of data, then of an address that is made of it.
#[test]
fn false_claims_are_found() {
    let (mut found, mut of_addresses) = (0, 0);
    for seed in 0..12 {
        let case = generate(seed);
        let Ok(mut it) = claimed(&case, 4, seed % 2 == 1) else {
            continue;
        };
        if !matches!(run(&case, &it), Ok(found) if found.is_empty()) {
            continue;
        }
        for piece in &mut it.pieces {
            for claim in piece.reach.values_mut() {
                *claim = match *claim {
                    Claim::Same => Claim::Stride(4),
                    Claim::Stride(stride) => Claim::Stride(stride + 1),
                    each => each,
                };
            }
        }
        let wrong = run(&case, &it).unwrap_or_default();
        of_addresses += wrong
            .iter()
            .filter(|c| c.analysis.contains("reach"))
            .count();
        for piece in &mut it.pieces {
            for value in piece.func.values.keys() {
                if piece.data[value] == Some(Claim::Stride(1)) {
                    piece.data[value] = Some(Claim::Same);
                }
            }
        }
        let wrong = run(&case, &it).unwrap_or_default();
        found += wrong.iter().filter(|c| c.claim == Claim::Same).count();
    }
    assert!(found > 1 && of_addresses > 1, "{found}, {of_addresses}");
}

/// A kernel with two loops: of a number of iterations that is known, and of one that is extended from 32 bits.
const COUNTERS: &str = "kernel \"k\" fn0 {
  pointer global \"out\" \"ulong*\" global none
}
func fn0 \"k\" export (ptr.global) -> () {
block0(v0: ptr.global):
  v1 = const 0 : i64
  v2 = const 1 : i64
  v3 = const 7 : i64
  v4 = load.align4 v0 : i32
  v5 = zext v4 : i64
  jump block1(v1, v1)
block1(v6: i64, v7: i64):
  v8 = imul v7, v3 : i64
  v9 = iadd v8, v5 : i64
  v10 = iadd v6, v2 : i64
  v11 = icmp.ult v10, v3 : bool
  br v11, block1(v10, v9), block2(v1, v9)
block2(v12: i64, v13: i64):
  v14 = imul v13, v3 : i64
  v15 = iadd v14, v12 : i64
  v16 = iadd v12, v2 : i64
  v17 = icmp.ult v16, v5 : bool
  br v17, block2(v16, v15), block3
block3:
  v18 = builtin.global_id.0 : i64
  v19 = const 8 : i64
  v20 = imul v18, v19 : i64
  v21 = iadd v20, v19 : i64
  v22 = ptr_add v0, v21 : ptr.global
  store.align8 v22, v15
  return
}
";

fn counters() -> Case {
    let mut buffer = vec![0u8; 9 * 8];
    buffer[0] = 5;
    Case {
        module: parse_module(COUNTERS).unwrap(),
        range: NdRange::linear(8, 8),
        args: vec![CaseArg::Buffer(0)],
        buffers: vec![buffer],
        kind: Kind::Plain,
    }
}

/// A kernel whose work-items count up one by one, as long as another has counted in between: those of
/// a pack do not run together, and the interpreter runs one after the other.
const TURNS: &str = "kernel \"k\" fn0 {
  pointer global \"p\" \"uint*\" global none
}
func fn0 \"k\" export (ptr.global) -> () {
block0(v0: ptr.global):
  v1 = const 1 : i32
  jump block1
block1:
  v2 = load.align4 v0 : i32
  v3 = iadd v2, v1 : i32
  v4 = atomic_cmp_xchg.device.relaxed v0, v2, v3 : i32
  v5 = icmp.eq v4, v2 : bool
  br v5, block2, block1
block2:
  return
}
";

#[test]
fn work_items_that_wait_are_not_compared() {
    let case = Case {
        module: parse_module(TURNS).unwrap(),
        buffers: vec![vec![0; 4]],
        ..counters()
    };
    let it = claimed(&case, 4, false).unwrap();
    assert_eq!(run(&case, &it).unwrap(), []);
}

/// Makes bounds false; those that hold of any number stay.
fn falsify(pieces: &mut [Claims]) {
    for piece in pieces {
        for (bound, _) in piece.bounds.values_mut().flatten() {
            *bound = match *bound {
                Bound::Multiple(of) => Bound::Multiple(of << 12),
                _ => Bound::AtMost(0),
            };
        }
        piece.repeats.values_mut().for_each(|most| *most /= 2);
    }
}

#[test]
fn false_bounds_are_found() {
    let case = counters();
    let mut it = claimed(&case, 4, false).unwrap();
    assert_eq!(run(&case, &it).unwrap(), []);
    falsify(&mut it.pieces);
    let wrong = run(&case, &it).unwrap();
    for analysis in ["alignment", "narrow_induction", "iterations"] {
        let analysis = format!("analysis::{analysis}");
        assert!(
            wrong.iter().any(|claim| claim.analysis == analysis),
            "{analysis}: {wrong:?}"
        );
    }
}

/// A function that passes its pointers to another.
const OUTER: &str = "func fn2 \"outer\" (ptr.private, ptr.private) -> (i32) {
block0(v0: ptr.private, v1: ptr.private):
  v2 = call.fn1 v0, v1 : i32
  v3 = call.fn1 v0, v1 : i32
  v4 = iadd v2, v3 : i32
  return v4
}
";

/// Returns a kernel that calls a function with two pointers, which writes through the first and then
/// reads through the second. `nested`: another function is between them. `second`: the second pointer.
fn calls(nested: bool, second: &str) -> Case {
    let (callee, outer) = if nested { ("fn2", OUTER) } else { ("fn1", "") };
    let text = format!(
        "kernel \"k\" fn0 {{
  pointer global \"out\" \"uint*\" global none
}}
func fn0 \"k\" export (ptr.global) -> () {{
block0(v0: ptr.global):
  v1 = alloca.size4.align4 : ptr.private
  v2 = alloca.size4.align4 : ptr.private
  v3 = const 5 : i32
  store.align4 v1, v3
  store.align4 v2, v3
  v4 = call.{callee} v1, {second} : i32
  v5 = call.{callee} v1, {second} : i32
  v6 = iadd v4, v5 : i32
  store.align4 v0, v6
  return
}}
func fn1 \"inner\" (ptr.private, ptr.private) -> (i32) {{
block0(v0: ptr.private, v1: ptr.private):
  v2 = load.align4 v1 : i32
  v3 = const 1 : i32
  v4 = iadd v2, v3 : i32
  store.align4 v0, v4
  v5 = load.align4 v1 : i32
  v6 = load.align4 v0 : i32
  v7 = iadd v5, v6 : i32
  return v7
}}
{outer}"
    );
    Case {
        module: parse_module(&text).unwrap(),
        range: NdRange::linear(1, 1),
        args: vec![CaseArg::Buffer(0)],
        buffers: vec![vec![0; 4]],
        kind: Kind::Plain,
    }
}

/// Returns what a kernel writes to its first buffer, as read and lowered with functions that stay
/// functions.
fn written(case: &Case) -> [Vec<u8>; 2] {
    let first = |memory: &interp::Memory, at| memory.region(at).unwrap().bytes.clone();
    let (mut memory, args, buffers) = case.memory().unwrap();
    let options = RunOptions::default();
    interp::run(&case.module, "k", &case.range, &args, &mut memory, &options).unwrap();
    let read = first(&memory, buffers[0]);
    let it = claimed(case, 4, true).unwrap();
    let (mut memory, args, buffers) = case.memory().unwrap();
    let lowered = Lowered {
        module: &it.module,
        kernel: &case.module.kernels[0],
        func: &it.pieces[0].func,
        interface: &it.interface,
        guard: false,
    };
    let claims = (it.pieces.as_slice(), it.packing.order());
    run_claimed(&lowered, claims, &case.range, &args, &mut memory, &options).unwrap();
    [read, first(&memory, buffers[0])]
}

/// Parameters of functions that stay functions may point to the same memory.
#[test]
fn what_two_parameters_point_to_is_one_variable() {
    for (nested, second, result) in [
        (false, "v2", 2 * 11),
        (false, "v1", 2 * (6 + 7)),
        (true, "v2", 4 * 11),
        (true, "v1", 2 * (6 + 7 + 8 + 9)),
    ] {
        let case = calls(nested, second);
        let [read, lowered] = written(&case);
        assert_eq!(read, u32::to_le_bytes(result), "{second}");
        assert_eq!(lowered, read, "{second}");
        let stages = ClaimedStages::new(&case, &Target::full(), Which::All).unwrap();
        assert_eq!(stages.check(&case).unwrap(), [], "{second}");
    }
}

/// Makes the claims of passes false: each access has alias sets of its own, what is not null is null,
/// what is extended by its sign is so from one bit, pointers are into other spaces.
fn falsify_stages(stages: &mut ClaimedStages) {
    for piece in stages.stages.iter_mut().flat_map(|stage| &mut stage.pieces) {
        for (number, access) in piece.accesses.values_mut().flatten().enumerate() {
            for (sets, _) in &mut access.sets {
                *sets = alias_set(number as u32);
            }
            access.args = access.args.map(|args| args << 1);
        }
        for (bound, _) in piece.bounds.values_mut().flatten() {
            *bound = match *bound {
                Bound::AtMost(0) => Bound::NotNull,
                Bound::Spaces(spaces) => Bound::Spaces(!spaces),
                _ => Bound::AtMost(0),
            };
        }
    }
}

/// Each analysis of a pass is found that claims what is false.
#[test]
fn false_claims_of_passes_are_found() {
    let all = all_targets();
    let mut found: BTreeMap<&str, usize> = BTreeMap::new();
    for seed in 0..21 {
        let case = match seed {
            0 => calls(false, "v2"),
            _ => generate(seed),
        };
        let (_, target) = &all[(seed % all.len() as u64) as usize];
        let Ok(mut stages) = ClaimedStages::new(&case, target, Which::All) else {
            continue;
        };
        falsify_stages(&mut stages);
        for (_, claim) in stages.check(&case).unwrap_or_default() {
            *found.entry(claim.analysis).or_default() += 1;
        }
    }
    for analysis in [
        "analysis::alignment",
        "analysis::alloca",
        "analysis::arg_access",
        "passes::byte_arrays",
        "passes::cse",
        "passes::dce",
        "passes::fold_constant_loads",
        "passes::lower_builtin_vars",
        "passes::lower_generic_ptr",
        "passes::narrow_params",
        "passes::share_calls",
    ] {
        assert!(found.contains_key(analysis), "{analysis}: {found:?}");
    }
}

#[test]
#[ignore = "as many as CLAIMS_COUNT says"]
fn many() {
    let number = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
    let first = number("CLAIMS_FIRST").unwrap_or(0);
    let count = number("CLAIMS_COUNT").unwrap_or(10_000);
    check_seeds(first, count);
    check_stages_of_seeds(first, count, true);
}
