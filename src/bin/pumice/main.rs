//! The `pumice` command: shows the devices, runs programs on Pumice alone, compiles kernels to look at the result.

mod compile;
mod info;
mod run;

use std::process::ExitCode;

const HELP: &str = "\
usage:
  pumice info                         the devices, and why there are none
  pumice run PROGRAM [ARGS...]        runs a program that sees Pumice alone
  pumice compile FILE [--emit spirv|kir|vulkan|reflection|check] [--kernel NAME] [--device N] [-o OUT] [-- OPTIONS...]
                                      FILE: OpenCL C (.cl), SPIR-V (.spv); OPTIONS as for clBuildProgram
  pumice cache [clear]                where the compile cache is and what it holds; empties it
";

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    let command = args.next().map(|a| a.to_string_lossy().into_owned());
    let rest: Vec<_> = args.collect();
    let result = match command.as_deref() {
        Some("info") => info::info(),
        Some("run") => run::run(&rest),
        Some("compile") => compile::compile(&rest),
        Some("cache") => info::cache(rest.first().is_some_and(|a| a == "clear")),
        Some("help" | "--help" | "-h") => {
            print!("{HELP}");
            Ok(())
        }
        _ => Err(HELP.trim_end().to_owned()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}
