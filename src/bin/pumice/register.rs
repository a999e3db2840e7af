//! `pumice register` and `pumice unregister`: on Windows loaders find drivers in the registry.

use super::doctor::{good, wrong, Finding, Health};
use super::run::{library, LIBRARY};
use clap::{Arg, ArgAction, ArgMatches, Command};
use pumice_runtime::util::registry::{self, Hive};
use std::path::Path;

fn user() -> Arg {
    Arg::new("user")
        .long("user")
        .action(ArgAction::SetTrue)
        .help("For this user alone, which takes no administrator; only newer loaders look there")
}

/// Returns both commands.
pub fn commands() -> [Command; 2] {
    [
        Command::new("register")
            .about("Has OpenCL loaders find Pumice: writes its library into the registry")
            .arg(user()),
        Command::new("unregister")
            .about("Takes Pumice out of the registry")
            .arg(user()),
    ]
}

fn hive(matches: &ArgMatches) -> Hive {
    if matches.get_flag("user") {
        Hive::User
    } else {
        Hive::Machine
    }
}

fn is_ours(library: &str) -> bool {
    let name = Path::new(library).file_name();
    name.is_some_and(|name| name.eq_ignore_ascii_case(LIBRARY))
}

fn failed(hive: Hive, error: &std::io::Error) -> String {
    let remedy = match hive {
        Hive::Machine => " (an administrator can; or use --user)",
        Hive::User => "",
    };
    format!("cannot write to {}: {error}{remedy}", hive.name())
}

/// Registers the library next to this executable, and no other of its name.
pub fn register(matches: &ArgMatches) -> Result<(), String> {
    let hive = hive(matches);
    let library = library()?;
    // As programs write paths, without the mark of those that `canonicalize` gives.
    let path = library.to_string_lossy();
    let path = path.strip_prefix(r"\\?\").unwrap_or(&path).to_owned();
    for other in registry::list(hive).iter().filter(|other| is_ours(other)) {
        registry::remove(hive, other).map_err(|error| failed(hive, &error))?;
    }
    registry::add(hive, path.as_ref()).map_err(|error| failed(hive, &error))?;
    super::print(|out| writeln!(out, "{}: {path}", hive.name()))
}

/// Removes every library of that name from the registry.
pub fn unregister(matches: &ArgMatches) -> Result<(), String> {
    let hive = hive(matches);
    let ours = registry::list(hive)
        .into_iter()
        .filter(|other| is_ours(other));
    for library in ours {
        registry::remove(hive, &library).map_err(|error| failed(hive, &error))?;
        super::print(|out| writeln!(out, "{}: no longer {library}", hive.name()))?;
    }
    Ok(())
}

/// Reports whether the driver is registered.
pub fn finding() -> Finding {
    let all = [Hive::Machine, Hive::User].map(|hive| (hive, registry::list(hive)));
    let ours = all.iter().find_map(|(hive, list)| {
        let library = list.iter().find(|library| is_ours(library))?;
        Some((hive, library))
    });
    match ours {
        Some((hive, library)) if Path::new(library).is_file() => {
            good(format!("{}: {library}", hive.name()))
        }
        Some((hive, library)) => wrong(
            Health::Bad,
            format!("{}: {library} is not there", hive.name()),
            "use `pumice register`",
        ),
        None => wrong(
            Health::Lacking,
            "Pumice is not registered",
            "use `pumice register`, or `pumice run`",
        ),
    }
}
