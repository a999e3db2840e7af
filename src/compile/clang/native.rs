//! clang as the code generator of processors: LLVM's IR to an object file for this machine.

use super::process;
use super::toolchain::{self, Toolchain};
use crate::compile::words::BuildFailure;
use crate::quirks::{Maker, Quirks};
use std::process::Command;
use std::sync::OnceLock;

/// What clang's driver tells.
#[derive(Default)]
struct Told {
    /// Its version; zeros: it does not tell.
    version: [u32; 3],
    /// What it would pass on for this very machine: processor and features, as arguments. Empty: it does not tell.
    processor: Vec<String>,
}

/// The same for all calls. One that could not tell, for want of memory or the like, is asked again.
fn told(toolchain: &Toolchain) -> &'static Told {
    static TOLD: OnceLock<Told> = OnceLock::new();
    static NOTHING: Told = Told {
        version: [0; 3],
        processor: Vec::new(),
    };
    if let Some(told) = TOLD.get() {
        return told;
    }
    let told = ask(toolchain);
    if told.processor.is_empty() {
        return &NOTHING;
    }
    TOLD.get_or_init(|| told)
}

fn ask(toolchain: &Toolchain) -> Told {
    let mut driver = toolchain.driver();
    let nothing = if cfg!(windows) { "NUL" } else { "/dev/null" };
    let native = if cfg!(target_arch = "aarch64") {
        "-mcpu=native"
    } else {
        "-march=native"
    };
    driver.args([native, "-###", "-c", "-x", "ir", nothing, "-o", nothing]);
    let Ok(finished) = process::run(driver, &[]) else {
        return Told::default();
    };
    let version = version_in(&finished.diagnostics);
    let line = finished
        .diagnostics
        .lines()
        .find(|line| line.contains("\"-cc1\""))
        .unwrap_or_default();
    let words: Vec<&str> = line
        .split_whitespace()
        .map(|word| word.trim_matches('"'))
        .collect();
    let mut processor = Vec::new();
    for pair in words.windows(2) {
        if matches!(pair[0], "-target-cpu" | "-tune-cpu" | "-target-feature") {
            processor.extend([pair[0].to_owned(), pair[1].to_owned()]);
        }
    }
    Told { version, processor }
}

/// The version in `Debian clang version 22.1.8 (1~deb12u1)`.
pub fn version_in(text: &str) -> [u32; 3] {
    let mut version = [0; 3];
    let number = text.split("clang version ").nth(1).unwrap_or_default();
    let number = number
        .split(|c: char| !c.is_ascii_digit() && c != '.')
        .next();
    for (place, part) in version
        .iter_mut()
        .zip(number.unwrap_or_default().split('.'))
    {
        *place = part.parse().unwrap_or(0);
    }
    version
}

/// What the compiler gets wrong.
pub fn quirks(toolchain: &Toolchain) -> Quirks {
    Quirks::of(Maker::Clang, told(toolchain).version)
}

/// Arguments that say for which processor code is made, with vectors of `lanes` 32-bit elements.
fn processor(toolchain: &Toolchain, lanes: u32) -> Vec<String> {
    let told = &told(toolchain).processor;
    let narrower = cfg!(target_arch = "x86_64")
        && told.iter().any(|word| match lanes {
            0..8 => word == "+avx2",
            8..16 => word == "+avx512f",
            _ => false,
        });
    if !told.is_empty() && !narrower {
        return told.clone();
    }
    let cpu = match (std::env::consts::ARCH, lanes) {
        ("x86_64", 16..) => "x86-64-v4",
        ("x86_64", 8..) => "x86-64-v3",
        ("x86_64", _) => "x86-64-v2",
        _ => "generic",
    };
    vec!["-target-cpu".to_owned(), cpu.to_owned()]
}

/// Names what decides the code: part of cache keys.
pub fn identity(toolchain: &Toolchain, lanes: u32) -> String {
    format!(
        "{} {}",
        toolchain.identity,
        processor(toolchain, lanes).join(" ")
    )
}

/// Lines of LLVM's IR from which on it is compiled for time. Its scheduler of instructions takes the square of the length of
/// a block, and most of what `-O3` does beyond `-O1` takes more than in proportion: 62,000 lines that hash words take 65 s
/// with all of it and 15 s without.
const LARGE: usize = 40_000;

/// Compiles LLVM's IR in text to an object file: of ELF on every system, since the loader is ours.
pub fn object(toolchain: &Toolchain, text: &str, lanes: u32) -> Result<Vec<u8>, BuildFailure> {
    let triple = if cfg!(target_arch = "aarch64") {
        "aarch64-unknown-linux-gnu"
    } else {
        "x86_64-unknown-linux-gnu"
    };
    let mut clang = Command::new(&toolchain.clang);
    clang.args([
        "-cc1",
        "-disable-free",
        "-disable-llvm-verifier",
        "-triple",
        triple,
    ]);
    clang.args(match text.lines().count() {
        0..=LARGE => &["-O3"][..],
        _ => &["-O1", "-mllvm", "-enable-misched=false"],
    });
    clang.args(["-emit-obj", "-mrelocation-model", "pic", "-pic-level", "2"]);
    clang.args(["-Wno-override-module", "-ffp-contract=on"]);
    clang.args(processor(toolchain, lanes));
    clang.args(super::command::FROM_IR);
    match process::run(clang, text.as_bytes()) {
        Ok(finished) if finished.success => Ok(finished.stdout),
        Ok(finished) => Err(BuildFailure(finished.diagnostics)),
        Err(error) => Err(BuildFailure(format!("cannot run clang: {error}\n"))),
    }
}

/// The compiler, or why there is none.
pub fn compiler() -> Result<&'static Toolchain, BuildFailure> {
    toolchain::get().ok_or_else(|| BuildFailure(toolchain::missing()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read() {
        assert_eq!(
            version_in("Debian clang version 22.1.8 (1~deb12u1)\nTarget: x"),
            [22, 1, 8]
        );
        assert_eq!(
            version_in("clang version 23.0.0git (https://x)"),
            [23, 0, 0]
        );
        assert_eq!(version_in("gcc"), [0; 3]);
    }
}
