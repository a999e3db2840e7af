//! executors: generated kernels on the devices of the back ends, against the interpreter of KIR.
//!
//! ```text
//! executors [--device TEXT] [--first SEED] [--count N] [--seconds S] [--keep-going] [--no-shrink] [--trace FOLDER]
//!           [--module FILE [--items N]] [--operations] [--alone]
//! ```
//! TEXT is a word of `PUMICE_DEVICES`: `cpu`, or a part of the name of a Vulkan device. Each kernel is lowered for the device
//! as the runtime would, launched, and what it leaves in its buffers must have the interpreter's bits, as far as those are
//! known. It ends after that many kernels or seconds, or when the device is lost; `--trace`, for devices that
//! hang, tells how far each kernel is and writes it there. `--module` puts a
//! module of KIR in place of the kernel, with its arguments and its ND-range, or one work-group of N work-items.
//! `PUMICE_CPU_WIDTH` chooses other vectors. `--alone` makes work-groups of one work-item of all: few, then many.
//! On the processor functions stay functions in every second pair of kernels.
//! `--operations` compares every operation on numbers in place of kernels, each seed with other operands.

mod launch;
mod operations;

use launch::{run, Trace};
use pumice_runtime::backend::{self, Device};
use spirv_lowering::interp::NdRange;
use spirv_lowering::ir::function::FpFlags;
use spirv_lowering::ir::op::Op as Kir;
use spirv_lowering::ir::parse::parse_module;
use spirv_lowering_testing::generate::{generate, Case};
use spirv_lowering_testing::prove::{is_open, wanted};
use spirv_lowering_testing::shrink::shrink;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

struct Args {
    device: String,
    first: u64,
    count: u64,
    seconds: f64,
    keep_going: bool,
    shrink: bool,
    trace: Option<PathBuf>,
    module: Option<PathBuf>,
    items: Option<u32>,
    operations: bool,
    alone: bool,
}

fn arguments() -> Result<Args, String> {
    let mut args = Args {
        device: "cpu".to_owned(),
        first: 0,
        count: 1000,
        seconds: f64::INFINITY,
        keep_going: false,
        shrink: true,
        trace: None,
        module: None,
        items: None,
        operations: false,
        alone: false,
    };
    let mut list = std::env::args().skip(1);
    while let Some(word) = list.next() {
        let mut value = || list.next().ok_or_else(|| format!("{word} needs a value"));
        let number = |text: String| text.parse::<u64>().map_err(|e| format!("{text}: {e}"));
        match word.as_str() {
            "--device" => args.device = value()?,
            "--first" => args.first = number(value()?)?,
            "--count" => args.count = number(value()?)?,
            "--seconds" => {
                let text = value()?;
                args.seconds = text.parse().map_err(|e| format!("{text}: {e}"))?;
            }
            "--trace" => args.trace = Some(value()?.into()),
            "--module" => args.module = Some(value()?.into()),
            "--items" => args.items = Some(number(value()?)? as u32),
            "--operations" => args.operations = true,
            "--alone" => args.alone = true,
            "--keep-going" => args.keep_going = true,
            "--no-shrink" => args.shrink = false,
            _ => return Err(format!("unknown argument {word}")),
        }
    }
    Ok(args)
}

/// As the device can be compared. Without the flags that promise neither NaN nor infinity: where that is broken, LLVM has a
/// value spread that is none (`x & 0` has one no more), the interpreter one that is open. Without remainders of floats where
/// they are instructions of Vulkan, which are not exact: what is read from SPIR-V calls a function of the library instead.
fn comparable(mut case: Case, device: &dyn Device) -> Case {
    let native = device.target().native;
    for (_, func) in case.module.functions.iter_mut() {
        for (_, inst) in func.insts.iter_mut() {
            inst.fp.0 &= !(FpFlags::NNAN | FpFlags::NINF);
            if inst.op == Kir::FRem && !native {
                inst.op = Kir::FSub;
            }
        }
    }
    case
}

/// The outcome of a kernel.
enum Verdict {
    Same,
    /// The kernel has no defined result, or the device does not support it.
    Left(String),
    Wrong(String),
}

/// The eight bytes from there on, or those there are.
fn eight(bytes: &[u8], from: usize) -> &[u8] {
    let rest = bytes.get(from..).unwrap_or_default();
    &rest[..rest.len().min(8)]
}

fn check(device: &Arc<dyn Device>, case: &Case, one_copy: bool, trace: &Trace) -> Verdict {
    let lanes = device.target().subgroup_size;
    let wanted = match wanted(case, lanes) {
        Ok(wanted) => wanted,
        Err(why) => return Verdict::Left(why.rsplit(": ").next().unwrap_or("").to_owned()),
    };
    match run(device, case, one_copy, trace) {
        Ok(got) => {
            for (i, ((wanted, unknown), buffer)) in wanted.buffers.iter().zip(&got).enumerate() {
                for (at, want) in wanted.iter().enumerate() {
                    let bits = !unknown.get(at).copied().unwrap_or(0);
                    let got = buffer.get(at);
                    if got.is_none_or(|got| (got ^ want) & bits != 0) {
                        let word = at & !7;
                        return Verdict::Wrong(format!(
                            "buffer {i} at {at}: {got:02x?} in place of {want:02x}; from {word}: {:02x?} in place of {:02x?}",
                            eight(buffer, word),
                            eight(wanted, word),
                        ));
                    }
                }
            }
            Verdict::Same
        }
        Err(why) if why.contains("nsupported") => Verdict::Left(why),
        Err(why) => Verdict::Wrong(why),
    }
}

fn main() -> Result<(), String> {
    let args = arguments()?;
    let devices = backend::enumerate(std::slice::from_ref(&args.device));
    let wanted = args.device.to_lowercase();
    let device = devices
        .into_iter()
        .find(|device| match wanted.as_str() {
            "cpu" => device.target().native,
            _ => device.caps().name.to_lowercase().contains(&wanted),
        })
        .ok_or("no such device")?;
    println!(
        "{}, sub-groups of {}",
        device.caps().name,
        device.target().subgroup_size
    );
    if args.operations {
        let mut count = operations::Count::default();
        for seed in args.first..args.first + args.count {
            operations::compare(&device, seed, &mut count)?;
        }
        return count.finish();
    }
    let start = Instant::now();
    let (mut same, mut wrong) = (0u64, 0u64);
    let mut left: BTreeMap<String, u64> = BTreeMap::new();
    for seed in args.first..args.first + args.count {
        if start.elapsed().as_secs_f64() > args.seconds {
            break;
        }
        let mut case = generate(seed);
        if let Some(path) = &args.module {
            let text = std::fs::read_to_string(path)
                .map_err(|error| format!("{}: {error}", path.display()))?;
            case.module = parse_module(&text).map_err(|error| error.to_string())?;
            if let Some(items) = args.items {
                case.range = NdRange {
                    global: [items, 1, 1],
                    local: [items, 1, 1],
                    ..case.range
                };
            }
        }
        if args.alone {
            case.range.local = [1; 3];
            if seed % 2 == 0 {
                case.range.global = case.range.global.map(|n| n.min(2));
                case.range.global[2] = 1;
            }
        }
        let case = comparable(case, device.as_ref());
        let one_copy = device.target().native && seed % 4 > 1;
        let trace = Trace(args.trace.as_deref().map(|dir| (dir, seed)));
        trace.note("begins");
        trace.file("kernel.kir", case.module.to_string().as_bytes());
        match check(&device, &case, one_copy, &trace) {
            Verdict::Same => same += 1,
            Verdict::Left(why) => *left.entry(why).or_default() += 1,
            Verdict::Wrong(_) if is_open(&case, device.target().subgroup_size) => {
                *left
                    .entry("known bits depend on unknown ones".to_owned())
                    .or_default() += 1;
            }
            Verdict::Wrong(what) => {
                wrong += 1;
                println!("seed {seed}: {what}\n{:?}", case.range);
                if what.contains("device lost") {
                    break;
                }
                if args.shrink {
                    let small = shrink(&case, &|case| {
                        matches!(
                            check(&device, case, one_copy, &Trace(None)),
                            Verdict::Wrong(_)
                        ) && !is_open(case, device.target().subgroup_size)
                    });
                    println!("{:?}\n{}", small.range, small.module);
                    if let Verdict::Wrong(what) = check(&device, &small, one_copy, &Trace(None)) {
                        println!("{what}");
                    }
                }
                if !args.keep_going {
                    break;
                }
            }
        }
    }
    let took = start.elapsed().as_secs_f64();
    println!(
        "{same} kernels the same, {wrong} wrong, in {took:.1} s ({:.1} a second); left out: {left:?}",
        (same + wrong) as f64 / took
    );
    match wrong {
        0 => Ok(()),
        n => Err(format!("{n} kernels differ")),
    }
}
