//! The `pumice` command: shows the devices, runs programs on Pumice alone, compiles kernels to look at the result.

mod absent;
mod bench;
mod compile;
mod doctor;
mod info;
mod manual;
#[cfg(windows)]
mod register;
mod run;

use clap::{Arg, ArgAction, ArgMatches, Command};
use std::io::{self, Write};
use std::process::ExitCode;

fn commands() -> Command {
    let info = Command::new("info")
        .about("Shows the devices, and why others are not offered")
        .arg(Arg::new("all").long("all").action(ArgAction::SetTrue).help(
            "Extensions, features of OpenCL C, quirks and the rest of what a device says of itself",
        ));
    let doctor = Command::new("doctor").about(
        "Says what OpenCL programs need of this machine, what is missing, and what to do about it",
    );
    let cache = Command::new("cache")
        .about("Shows where the compile cache is and what it holds")
        .subcommand(Command::new("clear").about("Empties it"));
    let all = Command::new("pumice")
        .about("OpenCL on Vulkan devices and on the processor")
        .version(env!("CARGO_PKG_VERSION"))
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommands([
            info,
            doctor,
            bench::command(),
            run::command(),
            compile::command(),
            cache,
        ])
        .subcommands(manual::commands());
    #[cfg(windows)]
    let all = all.subcommands(register::commands());
    all
}

/// Returns the value of an argument, as text.
fn text(matches: &ArgMatches, name: &str) -> Option<String> {
    matches.get_one::<String>(name).cloned()
}

/// Returns an argument without a name before it.
fn operand(name: &'static str) -> Arg {
    Arg::new(name).value_name(name)
}

/// Writes to standard output. Whoever reads may stop before the end, which is no failure.
fn print(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), String> {
    let mut out = io::stdout().lock();
    match write(&mut out).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(format!("cannot write the output: {error}"))
        }
        _ => Ok(()),
    }
}

/// Writes to standard error, which may be closed.
fn complain(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}

fn main() -> ExitCode {
    let matches = commands().get_matches();
    let result = match matches.subcommand() {
        Some(("info", matches)) => info::info(matches.get_flag("all")),
        Some(("doctor", _)) => doctor::doctor(),
        Some(("bench", matches)) => bench::bench(matches),
        Some(("run", matches)) => run::run(matches),
        Some(("compile", matches)) => compile::compile(matches),
        Some(("cache", matches)) => info::cache(matches.subcommand_name() == Some("clear")),
        #[cfg(windows)]
        Some(("register", matches)) => register::register(matches),
        #[cfg(windows)]
        Some(("unregister", matches)) => register::unregister(matches),
        Some(("manual", _)) => manual::manual(),
        Some(("completions", matches)) => manual::completions(matches),
        _ => Err("no such command".into()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            complain(&format!("{message}\n"));
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::error::ErrorKind;

    #[test]
    fn the_commands_are_consistent() {
        commands().debug_assert();
    }

    #[test]
    fn help_is_no_error() {
        for line in [
            &["pumice", "--help"][..],
            &["pumice", "compile", "--help"],
            &["pumice", "run", "--help"],
        ] {
            let error = commands().try_get_matches_from(line).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::DisplayHelp, "{line:?}");
            assert_eq!(error.exit_code(), 0);
        }
        let wrong = commands().try_get_matches_from(["pumice", "--halp"]);
        assert_eq!(wrong.unwrap_err().kind(), ErrorKind::UnknownArgument);
    }

    /// Checks that arguments after the program are passed to it.
    #[test]
    fn arguments_of_programs_are_theirs() {
        let line = ["pumice", "run", "program", "--help", "-x", "--", "y"];
        let matches = commands().try_get_matches_from(line).unwrap();
        let (_, matches) = matches.subcommand().unwrap();
        let words: Vec<_> = matches
            .get_many::<std::ffi::OsString>("PROGRAM")
            .unwrap()
            .collect();
        assert_eq!(words, ["program", "--help", "-x", "--", "y"]);
        let line = [
            "pumice", "compile", "a.cl", "--emit", "kir", "--", "-D", "A=1", "-w",
        ];
        let matches = commands().try_get_matches_from(line).unwrap();
        let (_, matches) = matches.subcommand().unwrap();
        let words: Vec<_> = matches.get_many::<String>("OPTIONS").unwrap().collect();
        assert_eq!(words, ["-D", "A=1", "-w"]);
    }
}
