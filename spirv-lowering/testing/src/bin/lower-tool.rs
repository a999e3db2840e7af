//! lower-tool: look at what the compiler does.
//!
//! ```text
//! lower-tool INPUT [--target full|lavapipe|weak|native4|native8|native16] [--kernel NAME] [--emit kir|linked|passes|vulkan|llvm|llvm-tails|llvm-linear|llvm-groups|reflection|times]
//!            [--pass NAME]... [--skip NAME]... [--limit N] [-o FILE] [--libclc FILE --builtins FILE] [--unsafe-math]
//! ```
//! INPUT is OpenCL SPIR-V (.spv) or textual KIR (.kir). `kir`: as read. `linked`: with the built-in functions it
//! needs. `passes`: every pass's result. `--pass` runs just these on every function and prints them. `--limit` leaves out all
//! passes that can be left out but the first N runs, to find by bisection the one that does harm. The default is to lower
//! all kernels, verify after each pass and report.

use spirv_lowering::ir::function::Function;
use spirv_lowering::ir::parse::parse_module;
use spirv_lowering::native::{self, Packing, Shape};
use spirv_lowering::passes;
use spirv_lowering::target::Target;
use spirv_lowering::{BuiltinLibrary, LinkOptions, Options, Program, ReadOptions};
use std::error::Error;
use std::path::Path;

type Res<T> = Result<T, Box<dyn Error>>;

fn words(path: &Path) -> Res<Vec<u32>> {
    let bytes = std::fs::read(path).map_err(|e| format!("{}: {e}", path.display()))?;
    Ok(bytes
        .as_chunks()
        .0
        .iter()
        .map(|c| u32::from_le_bytes(*c))
        .collect())
}

#[derive(Default)]
struct Args {
    input: String,
    target: String,
    kernel: Option<String>,
    emit: String,
    passes: Vec<String>,
    skip: Vec<String>,
    limit: Option<usize>,
    output: Option<String>,
    libclc: String,
    builtins: String,
    unsafe_math: bool,
}

fn arguments() -> Res<Args> {
    let mut args = Args {
        target: "full".into(),
        emit: "check".into(),
        libclc: std::env::var("LOWER_LIBCLC")
            .unwrap_or_else(|_| "/usr/lib/clc/spirv64-mesa3d-.spv".into()),
        builtins: std::env::var("LOWER_BUILTINS").unwrap_or_default(),
        ..Default::default()
    };
    let mut list = std::env::args().skip(1);
    while let Some(word) = list.next() {
        let mut value = || list.next().ok_or_else(|| format!("{word} needs a value"));
        match word.as_str() {
            "--target" => args.target = value()?,
            "--kernel" => args.kernel = Some(value()?),
            "--emit" => args.emit = value()?,
            "--pass" => args.passes.push(value()?),
            "--skip" => args.skip.push(value()?),
            "--limit" => args.limit = Some(value()?.parse()?),
            "--libclc" => args.libclc = value()?,
            "--builtins" => args.builtins = value()?,
            "--unsafe-math" => args.unsafe_math = true,
            "-o" => args.output = Some(value()?),
            _ if word.starts_with('-') => return Err(format!("unknown option {word}").into()),
            _ => args.input = word,
        }
    }
    if args.input.is_empty() {
        return Err(
            "usage: lower-tool INPUT [--emit kir|linked|passes|vulkan|llvm|llvm-tails|llvm-linear|llvm-groups|reflection|times] [-o FILE]"
                .into(),
        );
    }
    Ok(args)
}

/// Runs a clean-up pass, or one that needs only the function and the target.
fn run_pass(name: &str, func: &mut Function, target: &Target) -> Res<()> {
    if let Some(pass) = passes::CLEAN_UP.iter().find(|pass| pass.name == name) {
        (pass.run)(func, &mut Default::default());
        return Ok(());
    }
    match name {
        "lower_builtin_vars" => {
            let lanes = passes::lower_group::uses(func).then_some(target.subgroup_size);
            let linear = passes::lower_builtin_vars::Arrangement {
                lanes,
                linear: true,
            };
            passes::lower_builtin_vars::run(func, linear)?;
        }
        "lower_generic_ptr" => passes::lower_generic_ptr::run(func)?,
        "lower_convert" => passes::lower_convert::run(func, target)?,
        "structurize" => passes::structurize::run(func)?,
        _ => return Err(format!("unknown pass {name}").into()),
    }
    Ok(())
}

fn main() -> Res<()> {
    let args = arguments()?;
    let input = Path::new(&args.input);
    let target = match args.target.as_str() {
        "full" => Target::full(),
        "lavapipe" => Target::lavapipe(),
        "weak" => Target::weak(),
        "native4" => Target::processor(4),
        "native8" => Target::processor(8),
        "native16" => Target::processor(16),
        other => return Err(format!("unknown target {other}").into()),
    };
    let read = std::time::Instant::now();
    let program = if input.extension().is_some_and(|e| e == "kir") {
        Program::from_module(parse_module(&std::fs::read_to_string(input)?)?)
    } else {
        Program::read(&words(input)?, &ReadOptions::default())?
    };
    let read = read.elapsed();
    if args.emit == "kir" {
        println!("{}", program.module());
        return Ok(());
    }
    if !args.passes.is_empty() {
        let mut module = program.module().clone();
        let ids: Vec<_> = module.functions.keys().collect();
        for id in ids {
            for pass in &args.passes {
                run_pass(pass, &mut module.functions[id], &target)?;
            }
        }
        println!("{module}");
        return Ok(());
    }
    let mut library = None;
    let program = if args.builtins.is_empty() {
        program
    } else {
        let library = &*library.insert(BuiltinLibrary::new(
            &words(Path::new(&args.libclc))?,
            &words(Path::new(&args.builtins))?,
        )?);
        let link = std::time::Instant::now();
        let options = LinkOptions {
            library: Some(library),
            ..Default::default()
        };
        let program = Program::link(&[&program], &options)?;
        if args.emit == "times" {
            println!("{:>12.1?} read\n{:>12.1?} link", read, link.elapsed());
        }
        program
    };
    if args.emit == "linked" {
        println!("{}", program.module());
        return Ok(());
    }
    let kernels = program.kernels();
    let mut failed = 0;
    for kernel in kernels
        .iter()
        .filter(|k| args.kernel.as_ref().is_none_or(|name| *name == k.name))
    {
        let mut timings = Vec::new();
        let mut dump = |pass: &str, func: &Function| {
            println!("// after {pass}\n{}", spirv_lowering::ir::print::raw(func));
        };
        let skip: Vec<&str> = args.skip.iter().map(String::as_str).collect();
        let mut options = Options {
            verify: args.emit != "times",
            unsafe_math: args.unsafe_math,
            skip: &skip,
            limit: args.limit,
            library: library.as_ref(),
            timings: Some(&mut timings),
            ..Default::default()
        };
        if args.emit == "passes" {
            options.dump = Some(&mut dump);
        }
        let start = std::time::Instant::now();
        let result = program.lower(&kernel.name, &target, &mut options);
        let took = start.elapsed();
        match result {
            Ok(lowered) => match args.emit.as_str() {
                "reflection" => println!("{:#?}", lowered.interface),
                "llvm" | "llvm-tails" | "llvm-linear" | "llvm-groups" | "llvm-alone" => {
                    let packing = match args.emit.as_str() {
                        "llvm" => Packing::Rows,
                        "llvm-tails" => Packing::Tails,
                        "llvm-groups" => Packing::Groups,
                        "llvm-alone" => Packing::Alone,
                        _ => Packing::Linear,
                    };
                    let module = spirv_lowering::ir::parse::parse_module(&lowered.kir)?;
                    let implicit = &lowered.interface.implicit;
                    let shape = Shape {
                        lanes: lowered.interface.lanes,
                        width: target.subgroup_size,
                        packing,
                        quirks: Default::default(),
                        gathers: true,
                        stack: native::Stack::Whole,
                    };
                    let text = native::emit(&module, implicit, shape)?;
                    match &args.output {
                        Some(path) => std::fs::write(path, text)?,
                        None => print!("{text}"),
                    }
                }
                "times" => {
                    println!(
                        "{took:>12.1?} {} ({} words)",
                        kernel.name,
                        lowered.words.len()
                    );
                    timings.sort_by_key(|(_, t)| std::cmp::Reverse(*t));
                    timings
                        .iter()
                        .for_each(|(name, took)| println!("{took:>16.1?} {name}"));
                }
                "check" => {
                    println!(
                        "ok {} ({} words, {took:.1?})",
                        kernel.name,
                        lowered.words.len()
                    );
                    write(&args, &lowered.words)?;
                }
                _ => write(&args, &lowered.words)?,
            },
            Err(error) => {
                failed += 1;
                println!("FAILED {}: {error}", kernel.name);
            }
        }
    }
    if failed > 0 {
        Err(format!("{failed} kernels failed").into())
    } else {
        Ok(())
    }
}

fn write(args: &Args, words: &[u32]) -> Res<()> {
    if let Some(path) = &args.output {
        std::fs::write(
            path,
            words
                .iter()
                .flat_map(|w| w.to_le_bytes())
                .collect::<Vec<u8>>(),
        )?;
    }
    Ok(())
}
