//! prove-tool: runs generated kernels through all passes.
//!
//! ```text
//! prove-tool [--first SEED] [--count N] [--targets MASK] [--every] [--keep-going] [--no-shrink] [--print]
//! ```
//! Each kernel is proved for the targets whose bits are set in the mask (by default one after the other, by seed).
//! `--every` looks at the function after every pass, else that is done where the last one is wrong. A difference is
//! printed with its seed, the pass and the smallest kernel that still shows it.

use spirv_lowering_testing::generate::{generate, Case};
use spirv_lowering_testing::prove::{prove, targets, Depth, Verdict};
use spirv_lowering_testing::shrink::shrink;
use std::collections::BTreeMap;
use std::time::Instant;

struct Args {
    first: u64,
    count: u64,
    targets: Option<u32>,
    depth: Depth,
    keep_going: bool,
    shrink: bool,
    print: bool,
}

fn arguments() -> Result<Args, String> {
    let mut args = Args {
        first: 0,
        count: 1000,
        targets: None,
        depth: Depth::Last,
        keep_going: false,
        shrink: true,
        print: false,
    };
    let mut list = std::env::args().skip(1);
    while let Some(word) = list.next() {
        let mut number = || {
            let value = list.next().ok_or_else(|| format!("{word} needs a value"))?;
            value.parse::<u64>().map_err(|e| format!("{word}: {e}"))
        };
        match word.as_str() {
            "--first" => args.first = number()?,
            "--count" => args.count = number()?,
            "--targets" => args.targets = Some(number()? as u32),
            "--every" => args.depth = Depth::Every,
            "--keep-going" => args.keep_going = true,
            "--no-shrink" => args.shrink = false,
            "--print" => args.print = true,
            _ => return Err(format!("unknown argument {word}")),
        }
    }
    Ok(args)
}

fn main() -> Result<(), String> {
    let args = arguments()?;
    let start = Instant::now();
    let (mut runs, mut discarded, mut wrong) = (0u64, 0u64, 0u64);
    let mut reasons: BTreeMap<String, u64> = BTreeMap::new();
    let mut passes: BTreeMap<String, u64> = BTreeMap::new();
    let all = targets().len() as u64;
    for seed in args.first..args.first + args.count {
        let case = generate(seed);
        if args.print {
            println!("{}", case.module);
        }
        let mask = args.targets.unwrap_or(1 << (seed % all));
        match prove(&case, mask, args.depth) {
            Verdict::Proved(count) => runs += u64::from(count),
            Verdict::Discarded(why) => {
                discarded += 1;
                if args.print {
                    println!("{seed}: {why}");
                }
                let why = why.rsplit(": ").next().unwrap_or("").to_owned();
                *reasons.entry(why).or_default() += 1;
            }
            Verdict::Wrong(difference) => {
                wrong += 1;
                *passes.entry(difference.pass.clone()).or_default() += 1;
                println!(
                    "seed {seed}, target {}, pass {}: {}",
                    difference.target, difference.pass, difference.what
                );
                if args.shrink {
                    let same = |case: &Case| match prove(case, mask, Depth::Every) {
                        Verdict::Wrong(other) => other.pass == difference.pass,
                        _ => false,
                    };
                    let small = shrink(&case, &same);
                    println!("{:?}\n{}", small.range, small.module);
                    if let Verdict::Wrong(d) = prove(&small, mask, Depth::Every) {
                        println!("{}", d.what);
                        if args.print {
                            println!("{}", d.functions.join("\nbecame\n"));
                        }
                    }
                }
                if !args.keep_going {
                    break;
                }
            }
        }
        if (seed + 1) % 10_000 == 0 {
            println!("{} kernels, {wrong} wrong", seed + 1 - args.first);
        }
    }
    let took = start.elapsed().as_secs_f64();
    println!(
        "{} kernels in {took:.1} s ({:.1} a second), {runs} functions run, {discarded} discarded, {wrong} wrong",
        args.count,
        args.count as f64 / took
    );
    println!("discarded: {reasons:?}");
    println!("wrong: {passes:?}");
    match wrong {
        0 => Ok(()),
        n => Err(format!("{n} kernels differ")),
    }
}
