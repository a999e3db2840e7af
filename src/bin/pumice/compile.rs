//! `pumice compile`: shows what becomes of a kernel.

use super::{operand, text};
use clap::{Arg, ArgMatches, Command};
use pumice_runtime::compile::{
    self, builtin_library, executable, BuildCall, BuildOptions, Language,
};
use pumice_runtime::features::Features;
use pumice_runtime::object::platform::Platform;
use spirv_lowering::target::Target;
use spirv_lowering::{LinkOptions, Program};
use std::sync::Arc;

/// The form of output.
#[derive(Clone, Copy, PartialEq)]
enum Emit {
    Spirv,
    Kir,
    Vulkan,
    Reflection,
    /// Nothing but a line for each kernel, whose Vulkan SPIR-V was validated.
    Check,
}

/// The words for it.
const EMITS: [(&str, Emit); 5] = [
    ("spirv", Emit::Spirv),
    ("kir", Emit::Kir),
    ("vulkan", Emit::Vulkan),
    ("reflection", Emit::Reflection),
    ("check", Emit::Check),
];

struct Arguments {
    file: String,
    emit: Emit,
    kernel: Option<String>,
    device: Option<usize>,
    out: Option<String>,
    options: String,
}

/// Returns the arguments of the command.
pub fn command() -> Command {
    let option = |name: &'static str| Arg::new(name).long(name);
    Command::new("compile")
        .about("Shows what becomes of a kernel")
        .arg(operand("FILE").required(true).help("OpenCL C, or SPIR-V"))
        .arg(
            option("emit")
                .value_name("WHAT")
                .value_parser(EMITS.map(|(name, _)| name))
                .default_value("reflection")
                .help("What to write"),
        )
        .arg(
            option("kernel")
                .value_name("NAME")
                .help("Of this kernel alone"),
        )
        .arg(
            option("device")
                .value_name("N")
                .value_parser(clap::value_parser!(usize))
                .help("For this device, counted as `pumice info` does"),
        )
        .arg(
            Arg::new("out")
                .short('o')
                .value_name("OUT")
                .help("The file to write"),
        )
        .arg(
            operand("OPTIONS")
                .last(true)
                .num_args(0..)
                .help("Options as for clBuildProgram"),
        )
}

fn parse(matches: &ArgMatches) -> Arguments {
    let emit = text(matches, "emit").unwrap_or_default();
    let emit = EMITS.iter().find(|(name, _)| *name == emit);
    let options = matches.get_many::<String>("OPTIONS").into_iter().flatten();
    let options: Vec<&str> = options.map(String::as_str).collect();
    Arguments {
        file: text(matches, "FILE").unwrap_or_default(),
        emit: emit.map_or(Emit::Reflection, |(_, emit)| *emit),
        kernel: text(matches, "kernel"),
        device: matches.get_one("device").copied(),
        out: text(matches, "out"),
        options: options.join(" "),
    }
}

/// Returns the compiler's messages with the name of the file.
fn named(log: &str, file: &str) -> String {
    let called = format!("{}:", compile::clang::FILE_NAME);
    let from = format!("from {called}");
    let lines = log
        .split_inclusive('\n')
        .map(|line| match line.strip_prefix(&called) {
            Some(rest) => format!("{file}:{rest}"),
            None => line.replacen(&from, &format!("from {file}:"), 1),
        });
    lines.collect()
}

/// Returns the device to compile for; without an index, a device that has everything. With
/// `vulkan`, and the processor as the first device, its language is compiled for a device that has
/// everything.
fn target(index: Option<usize>, vulkan: bool) -> Result<(Target, Language), String> {
    let platform = Platform::open();
    match (platform.devices.get(index.unwrap_or(0)), index) {
        (Some(device), _) => {
            let target = device.backend.target();
            let target = match (target.native && vulkan, index) {
                (false, _) => target.clone(),
                (true, None) => Target::full(),
                (true, Some(index)) => {
                    return Err(format!("device {index} takes no Vulkan SPIR-V"))
                }
            };
            Ok((target, device.language.clone()))
        }
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

/// Compiles a file and writes the requested output.
pub fn compile(matches: &ArgMatches) -> Result<(), String> {
    let args = parse(matches);
    let vulkan = matches!(args.emit, Emit::Vulkan | Emit::Check);
    let (target, language) = target(args.device, vulkan)?;
    let mut options = BuildOptions::parse(&args.options, BuildCall::Build)?;
    // SPIR-V says of a pointer at most how it is used; what the source calls its type is kept on demand.
    options.kernel_arg_info |= args.emit == Emit::Reflection;
    let bytes = std::fs::read(&args.file).map_err(|e| format!("cannot read {}: {e}", args.file))?;
    let module = match compile::to_words(&bytes) {
        Some(words) => {
            // What clCreateProgramWithIL would say. Dumps of compiled sources may break rules that only others' SPIR-V
            // has to keep, so it goes on all the same.
            let checked = compile::checked(&words).unwrap_or_else(|what| {
                super::complain(&format!("{}: invalid SPIR-V: {what}\n", args.file));
                words
            });
            Arc::new(checked)
        }
        None => {
            let source = String::from_utf8(bytes)
                .map_err(|_| format!("{} is neither text nor SPIR-V", args.file))?;
            let (module, log) = compile::compile_source(&source, &[], &options, &language);
            super::complain(&named(&log, &args.file));
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
        let lowered = compile::lower(&program, &kernel.name, &target, &options, library);
        let lowered = lowered.map_err(|e| format!("kernel {}: {e}", kernel.name))?;
        match args.emit {
            Emit::Check => {
                compile::validate_vulkan(&lowered.words)
                    .map_err(|e| format!("kernel {}: {e}", kernel.name))?;
                let line = format!("{}: {} words\n", kernel.name, lowered.words.len());
                super::print(|out| out.write_all(line.as_bytes()))?;
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
        None => super::print(|out| out.write_all(bytes)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_the_file() {
        let log = "program.cl:1:2: error: program.cl: x\nIn file included from program.cl:1:\nmy program.cl:\n";
        let said = "dir/k.cl:1:2: error: program.cl: x\nIn file included from dir/k.cl:1:\nmy program.cl:\n";
        assert_eq!(named(log, "dir/k.cl"), said);
    }
}
