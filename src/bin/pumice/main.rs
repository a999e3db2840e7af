//! The `pumice` command: shows the devices, runs programs on Pumice alone, compiles kernels to look at the result.

mod compile;
mod info;
mod run;

use clap::{Arg, ArgMatches, Command};
use std::process::ExitCode;

fn commands() -> Command {
    let info = Command::new("info").about("Shows the devices, or why there are none");
    let cache = Command::new("cache")
        .about("Shows where the compile cache is and what it holds")
        .subcommand(Command::new("clear").about("Empties it"));
    Command::new("pumice")
        .about("OpenCL layered on Vulkan")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommands([info, run::command(), compile::command(), cache])
}

/// The value of an argument, as text.
fn text(matches: &ArgMatches, name: &str) -> Option<String> {
    matches.get_one::<String>(name).cloned()
}

/// An argument without a name before it.
fn operand(name: &'static str) -> Arg {
    Arg::new(name).value_name(name)
}

fn main() -> ExitCode {
    let matches = commands().get_matches();
    let result = match matches.subcommand() {
        Some(("info", _)) => info::info(),
        Some(("run", matches)) => run::run(matches),
        Some(("compile", matches)) => compile::compile(matches),
        Some(("cache", matches)) => info::cache(matches.subcommand_name() == Some("clear")),
        _ => Err("no such command".into()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
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

    /// What belongs to the program that is run is none of ours.
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
