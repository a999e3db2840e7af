//! `pumice manual` and `pumice completions`: what packages of Pumice install beside the command, made from the same description
//! of its arguments that reads them.

use clap::{value_parser, Arg, ArgMatches, Command};
use clap_complete::Shell;
use clap_mangen::roff::{bold, italic, roman, Inline, Roff};
use clap_mangen::Man;
use pumice_runtime::util::config;
use std::io::{self, Write};

/// Returns both commands.
pub fn commands() -> [Command; 2] {
    let manual = Command::new("manual").about("Writes the manual page, for man");
    let completions = Command::new("completions")
        .about("Writes the completions of this command for a shell")
        .arg(
            Arg::new("SHELL")
                .required(true)
                .value_parser(value_parser!(Shell))
                .help("The shell"),
        );
    [manual, completions]
}

/// Writes the manual page.
pub fn manual() -> Result<(), String> {
    super::print(write_page)
}

/// Writes the completions for a shell.
pub fn completions(matches: &ArgMatches) -> Result<(), String> {
    let shell = matches.get_one::<Shell>("SHELL").ok_or("which shell?")?;
    let mut text = Vec::new();
    clap_complete::generate(*shell, &mut super::commands(), "pumice", &mut text);
    super::print(|out| out.write_all(&text))
}

/// Files that matter to users, and what they are.
const FILES: [(&str, &str); 2] = [
    (
        "/etc/OpenCL/vendors/pumice.icd",
        "tells OpenCL loaders where libpumice.so is",
    ),
    (
        "$XDG_CACHE_HOME/pumice, ~/.cache/pumice",
        "the compile cache; it can be deleted at any time",
    ),
];

/// Returns all commands on one page: they are few.
fn write_page(out: &mut dyn Write) -> io::Result<()> {
    let mut command = super::commands();
    command.build();
    let man = Man::new(command.clone());
    man.render_title(out)?;
    man.render_name_section(out)?;
    man.render_synopsis_section(out)?;
    let mut page = Roff::new();
    page.control("SH", ["DESCRIPTION"]);
    page.text([roman(
        "Pumice is an OpenCL driver. Programs use it through the OpenCL loader and need nothing of this command, which shows \
         the devices, runs programs that see no other driver, and shows what becomes of kernels.",
    )]);
    page.control("SH", ["COMMANDS"]);
    for command in command.get_subcommands() {
        describe(&mut page, command, "pumice");
    }
    page.control("SH", ["ENVIRONMENT"]);
    page.text([roman("The driver reads these in every program.")]);
    for (name, meaning) in config::VARIABLES {
        page.control("TP", []);
        page.text([bold(*name)]);
        page.text(marked(meaning));
    }
    page.control("TP", []);
    page.text([bold("PUMICE_LIB")]);
    page.text(marked(
        "for `pumice run`: the libpumice.so to use; default: that of this installation",
    ));
    page.control("SH", ["FILES"]);
    for (path, meaning) in FILES {
        page.control("TP", []);
        page.text([italic(path)]);
        page.text([roman(meaning)]);
    }
    page.control("SH", ["EXIT STATUS"]);
    page.text([roman(
        "0, or 1 after a failure, 2 for wrong arguments; of pumice run that of the program.",
    )]);
    page.control("SH", ["SEE ALSO"]);
    page.text([
        bold("clinfo"),
        roman("(1), "),
        bold("clang"),
        roman("(1), "),
        bold("vulkaninfo"),
        roman("(1)"),
    ]);
    page.to_writer(out)
}

/// Adds a command, its arguments and the commands below it to the page. `help` needs no
/// description.
fn describe(page: &mut Roff, command: &Command, parent: &str) {
    if command.get_name() == "help" {
        return;
    }
    let name = format!("{parent} {}", command.get_name());
    let usage = command.clone().render_usage().to_string();
    let usage = usage.strip_prefix("Usage: ").unwrap_or(&usage).to_owned();
    page.control("SS", [name.as_str()]);
    page.text([bold(usage)]);
    page.control("PP", []);
    let about = command.get_about().map(|about| about.to_string());
    page.text([roman(about.unwrap_or_default() + ".")]);
    for argument in command.get_arguments() {
        if argument.get_id() == "help" {
            continue;
        }
        page.control("TP", []);
        let written = argument.to_string();
        page.text([bold(written)]);
        let help = argument.get_help().map(|help| help.to_string());
        let mut help = help.unwrap_or_default();
        let values = argument.get_possible_values();
        let values: Vec<_> = values.iter().map(|value| value.get_name()).collect();
        if !values.is_empty() {
            help += &format!(": {}", values.join(", "));
        }
        if let [default] = argument.get_default_values() {
            help += &format!("; default: {}", default.to_string_lossy());
        }
        page.text(marked(&help));
    }
    for below in command.get_subcommands() {
        describe(page, below, &name);
    }
}

/// Splits a text at backticks; the words between them become bold.
fn marked(text: &str) -> Vec<Inline> {
    let parts = text.split('`').enumerate();
    parts
        .filter(|(_, part)| !part.is_empty())
        .map(|(index, part)| match index % 2 {
            0 => roman(part),
            _ => bold(part),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nothing that a user can say is missing from the page.
    #[test]
    fn the_manual_has_all_commands_arguments_and_variables() {
        fn names(command: &Command, found: &mut Vec<String>) {
            for below in command.get_subcommands() {
                found.push(below.get_name().to_owned());
                let long = below.get_arguments().filter_map(Arg::get_long);
                found.extend(long.map(|name| format!("--{name}")));
                names(below, found);
            }
        }
        let mut page = Vec::new();
        write_page(&mut page).unwrap();
        let page = String::from_utf8(page).unwrap().replace('\\', "");
        let mut wanted = Vec::new();
        names(&super::super::commands(), &mut wanted);
        assert!(wanted.iter().any(|name| name == "--emit"), "{wanted:?}");
        wanted.extend(config::VARIABLES.iter().map(|(name, _)| (*name).to_owned()));
        for name in wanted {
            assert!(page.contains(&name), "{name} is missing:\n{page}");
        }
        assert!(!page.contains('`'), "{page}");
    }

    #[test]
    fn completions_know_the_commands() {
        for shell in [Shell::Bash, Shell::Fish, Shell::Zsh] {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut super::super::commands(), "pumice", &mut text);
            let text = String::from_utf8(text).unwrap();
            for word in ["compile", "reflection", "completions"] {
                assert!(text.contains(word), "{shell}: {word}");
            }
        }
    }
}
