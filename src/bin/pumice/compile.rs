//! `pumice compile`: shows what becomes of a kernel.

use pumice_runtime::compile::{self, builtin_library, executable, BuildOptions, Language, Stage};
use pumice_runtime::features::Features;
use pumice_runtime::object::platform::Platform;
use spirv_lowering::target::Target;
use spirv_lowering::{LinkOptions, Options, Program};
use std::ffi::OsString;
use std::io::Write;
use std::sync::Arc;

/// What to print.
#[derive(Clone, Copy, PartialEq)]
enum Emit {
    Spirv,
    Kir,
    Vulkan,
    Reflection,
    /// Nothing but a line for each kernel, whose Vulkan SPIR-V was validated.
    Check,
}

struct Arguments {
    file: String,
    emit: Emit,
    kernel: Option<String>,
    device: Option<usize>,
    out: Option<String>,
    options: String,
}

fn parse(args: &[OsString]) -> Result<Arguments, String> {
    let mut parsed = Arguments {
        file: String::new(),
        emit: Emit::Reflection,
        kernel: None,
        device: None,
        out: None,
        options: String::new(),
    };
    let mut args = args.iter().map(|a| a.to_string_lossy().into_owned());
    while let Some(arg) = args.next() {
        let mut operand = || args.next().ok_or_else(|| format!("{arg} needs a value"));
        match arg.as_str() {
            "--emit" => {
                parsed.emit = match operand()?.as_str() {
                    "spirv" => Emit::Spirv,
                    "kir" => Emit::Kir,
                    "vulkan" => Emit::Vulkan,
                    "reflection" => Emit::Reflection,
                    "check" => Emit::Check,
                    other => {
                        return Err(format!(
                            "--emit {other}: one of spirv, kir, vulkan, reflection, check"
                        ))
                    }
                }
            }
            "--kernel" => parsed.kernel = Some(operand()?),
            "--device" => {
                parsed.device = Some(operand()?.parse().map_err(|_| "--device takes a number")?)
            }
            "-o" => parsed.out = Some(operand()?),
            "--" => parsed.options = args.by_ref().collect::<Vec<_>>().join(" "),
            _ if parsed.file.is_empty() && !arg.starts_with('-') => parsed.file = arg,
            _ => return Err(format!("unexpected argument {arg}")),
        }
    }
    if parsed.file.is_empty() {
        return Err("pumice compile: which file?".into());
    }
    Ok(parsed)
}

/// The device to compile for; without one, a device that has everything.
fn target(index: Option<usize>) -> Result<(Target, Language), String> {
    let platform = Platform::open();
    match (platform.devices().get(index.unwrap_or(0)), index) {
        (Some(device), _) => Ok((device.backend().target().clone(), device.language().clone())),
        (None, Some(index)) => Err(format!("there is no device {index}")),
        (None, None) => {
            let target = Target::full();
            let caps = pumice_runtime::backend::Caps {
                fp16: true,
                fp64: true,
                ..Default::default()
            };
            let language = Features::new(&caps, &target).language();
            Ok((target, language))
        }
    }
}

/// Compiles a file and writes what was asked for.
pub fn compile(args: &[OsString]) -> Result<(), String> {
    let args = parse(args)?;
    let (target, language) = target(args.device)?;
    let options = BuildOptions::parse(&args.options, Stage::Build)?;
    let bytes = std::fs::read(&args.file).map_err(|e| format!("cannot read {}: {e}", args.file))?;
    let module = match compile::to_words(&bytes) {
        Some(words) => {
            // What clCreateProgramWithIL would say. Dumps of compiled sources may break rules that only others' SPIR-V
            // has to keep, so it goes on all the same.
            let checked = compile::checked(&words).unwrap_or_else(|what| {
                eprintln!("{}: invalid SPIR-V: {what}", args.file);
                words
            });
            Arc::new(checked)
        }
        None => {
            let source = String::from_utf8(bytes)
                .map_err(|_| format!("{} is neither text nor SPIR-V", args.file))?;
            let (module, log) = compile::compile_source(&source, &[], &options, &language);
            eprint!("{log}");
            module.ok_or("compilation failed")?
        }
    };
    let out = |bytes: &[u8]| write(args.out.as_deref(), bytes);
    if args.emit == Emit::Spirv {
        return out(&compile::to_bytes(&module));
    }
    let programs = executable::read_all(&[module], &[]).map_err(|f| f.0)?;
    let programs: Vec<&Program> = programs.iter().collect();
    let library = builtin_library::get()?;
    let link = LinkOptions {
        allow_undefined: args.emit == Emit::Kir,
        library: Some(library),
    };
    let program = Program::link(&programs, &link).map_err(|e| e.to_string())?;
    if args.emit == Emit::Kir {
        return out(format!("{}", program.module()).as_bytes());
    }
    for kernel in program.kernels() {
        if args
            .kernel
            .as_ref()
            .is_some_and(|wanted| *wanted != kernel.name)
        {
            continue;
        }
        let mut options = Options {
            correctly_rounded_divide_sqrt: options.correctly_rounded_divide_sqrt,
            denorms_are_zero: options.denorms_are_zero,
            unsafe_math: options.unsafe_math || options.fast_relaxed_math,
            library: Some(library),
            ..Options::default()
        };
        let lowered = program.lower(&kernel.name, &target, &mut options);
        let lowered = lowered.map_err(|e| format!("kernel {}: {e}", kernel.name))?;
        match args.emit {
            Emit::Check => {
                compile::validate_vulkan(&lowered.words)
                    .map_err(|e| format!("kernel {}: {e}", kernel.name))?;
                println!("{}: {} words", kernel.name, lowered.words.len());
            }
            Emit::Reflection => out(format!("{:#?}\n", lowered.interface).as_bytes())?,
            // One module: the kernel named, or the first.
            _ => return out(&compile::to_bytes(&lowered.words)),
        }
    }
    Ok(())
}

fn write(path: Option<&str>, bytes: &[u8]) -> Result<(), String> {
    match path {
        Some(path) => std::fs::write(path, bytes).map_err(|e| format!("cannot write {path}: {e}")),
        None => std::io::stdout()
            .write_all(bytes)
            .map_err(|e| e.to_string()),
    }
}
