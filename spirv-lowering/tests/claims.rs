//! The vectoriser's claims about the lanes of packs hold for every value of generated kernels, in every execution.
//!
//! `CLAIMS_FIRST=7 CLAIMS_COUNT=100000 cargo test --release --test claims -- --ignored` checks as many.

use spirv_lowering::claims::{Claim, Claims, FalseClaim};
use spirv_lowering::interface::KernelInterface;
use spirv_lowering::interp::{self, run_claimed, Lowered, Options as RunOptions};
use spirv_lowering::ir::module::Module;
use spirv_lowering::ir::parse::parse_module;
use spirv_lowering::native::{self, Packing};
use spirv_lowering::options::Options;
use spirv_lowering::program::Program;
use spirv_lowering::target::Target;
use spirv_lowering::testing::generate::{generate, Case};
use spirv_lowering::testing::shrink::shrink;

/// Lanes of packs: 128, 256 and 512 bits.
const LANES: [u32; 3] = [4, 8, 16];

/// The result of a kernel.
#[derive(Debug)]
enum Checked {
    /// All claims hold.
    Hold,
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

fn claimed(case: &Case, lanes: u32) -> Result<Claimed, String> {
    let target = Target {
        subgroup_size: lanes,
        ..Target::processor(lanes)
    };
    let program = Program::from_module(case.module.clone());
    let lowered = program.lower("k", &target, &mut Options::default());
    let lowered = lowered.map_err(|error| error.to_string())?;
    let module = parse_module(&lowered.kir).map_err(|error| error.to_string())?;
    let range = &case.range;
    // A smaller last work-group is packed by its own size: in the order that suits all.
    let whole = (0..3).all(|d| range.global[d] % range.local[d].max(1) == 0);
    let packing = match whole {
        true => Packing::of(range.local, lanes, lowered.interface.uses_subgroups),
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

fn check(case: &Case, lanes: u32) -> Checked {
    let found =
        claimed(case, lanes).and_then(|it| run(case, &it, lanes).map_err(|e| e.to_string()));
    match found.map(|found| found.into_iter().next()) {
        Ok(Some(found)) => Checked::False(found),
        Ok(None) => Checked::Hold,
        Err(why) => Checked::Left(why),
    }
}

fn run(case: &Case, claimed: &Claimed, lanes: u32) -> Result<Vec<FalseClaim>, interp::Error> {
    let (mut memory, args, _) = case.memory()?;
    let missing = || interp::Error::Invalid("no kernel".into());
    let lowered = Lowered {
        module: &claimed.module,
        kernel: case.module.kernels.first().ok_or_else(missing)?,
        func: &claimed.pieces.first().ok_or_else(missing)?.func,
        interface: &claimed.interface,
        guard: false,
        resume: 0,
    };
    let claims = (claimed.pieces.as_slice(), claimed.packing.order());
    let options = RunOptions {
        strict: false,
        subgroup_size: lanes,
        ..Default::default()
    };
    run_claimed(&lowered, claims, &case.range, &args, &mut memory, &options)
}

fn check_seeds(first: u64, count: u64) {
    let (mut held, mut left) = (0u64, Vec::new());
    for seed in first..first + count {
        let case = generate(seed);
        let lanes = LANES[(seed % 3) as usize];
        match check(&case, lanes) {
            Checked::Hold => held += 1,
            Checked::Left(why) => left.push(why),
            Checked::False(found) => {
                let fails = |case: &_| matches!(check(case, lanes), Checked::False(_));
                let small = shrink(&case, &fails);
                let again = check(&small, lanes);
                panic!(
                    "seed {seed}, packs of {lanes}, after {held} kernels: {found}\n{:?}\n{}\n{again:?}",
                    small.range, small.module
                );
            }
        }
    }
    assert!((left.len() as u64) * 3 < count, "not checked: {left:#?}");
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
        let Ok(mut it) = claimed(&case, 4) else {
            continue;
        };
        if !matches!(run(&case, &it, 4), Ok(found) if found.is_empty()) {
            continue;
        }
        for piece in &mut it.pieces {
            for claim in piece.reach.values_mut() {
                *claim = match *claim {
                    Claim::Same => Claim::Stride(4),
                    Claim::Stride(stride) => Claim::Stride(stride + 1),
                };
            }
        }
        let wrong = run(&case, &it, 4).unwrap_or_default();
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
        let wrong = run(&case, &it, 4).unwrap_or_default();
        found += wrong.iter().filter(|c| c.claim == Claim::Same).count();
    }
    assert!(found > 1 && of_addresses > 1, "{found}, {of_addresses}");
}

#[test]
#[ignore = "as many as CLAIMS_COUNT says"]
fn many() {
    let number = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
    let (first, count) = (number("CLAIMS_FIRST"), number("CLAIMS_COUNT"));
    check_seeds(first.unwrap_or(0), count.unwrap_or(10_000));
}
