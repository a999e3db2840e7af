//! Finds the compilers: clang with a SPIR-V target of its own, or clang with llvm-spirv. Looked for once a process,
//! newest first; `PUMICE_CLANG` and `PUMICE_LLVM_SPIRV` override.

use crate::util::{config, files};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::OnceLock;

/// How OpenCL C becomes SPIR-V.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Toolchain {
    /// The compiler.
    pub clang: PathBuf,
    /// The translator, for a clang whose SPIR-V target is missing or too young.
    pub llvm_spirv: Option<PathBuf>,
    /// Names both executables in their present version: part of cache keys.
    pub identity: String,
}

/// The newest clang whose versioned name is tried.
const NEWEST: u32 = 40;
/// The first clang whose own SPIR-V target is good enough.
const FIRST_OWN_TARGET: u32 = 20;
/// The oldest clang tried together with llvm-spirv.
const OLDEST: u32 = 13;

/// The toolchain of this process, if there is one.
pub fn get() -> Option<&'static Toolchain> {
    static FOUND: OnceLock<Option<Toolchain>> = OnceLock::new();
    FOUND
        .get_or_init(|| {
            let found = find(&search_path());
            match &found {
                Some(t) => crate::log!(Info, "compiler: {}", t.identity),
                None => crate::log!(
                    Error,
                    "no OpenCL C compiler: install clang {FIRST_OWN_TARGET} or newer, or clang and llvm-spirv of one \
                     version (or set PUMICE_CLANG)"
                ),
            }
            found
        })
        .as_ref()
}

fn search_path() -> Vec<PathBuf> {
    let path: OsString = std::env::var_os("PATH").unwrap_or_default();
    let mut dirs: Vec<PathBuf> = std::env::split_paths(&path)
        .filter(|d| !d.as_os_str().is_empty())
        .collect();
    for usual in system::usual_places() {
        if !dirs.contains(&usual) {
            dirs.push(usual);
        }
    }
    dirs
}

fn find(dirs: &[PathBuf]) -> Option<Toolchain> {
    let config = config::get();
    if let Some(clang) = &config.clang {
        return Some(make(clang.clone(), config.llvm_spirv.clone()));
    }
    let versioned = |name: &str, version: u32| system::versioned(dirs, name, version);
    let own = (FIRST_OWN_TARGET..=NEWEST)
        .rev()
        .find_map(|v| versioned("clang", v));
    if let Some(clang) = own.or_else(|| system::unversioned(dirs)) {
        return Some(make(clang, None));
    }
    (OLDEST..FIRST_OWN_TARGET).rev().find_map(|v| {
        Some(make(
            versioned("clang", v)?,
            Some(versioned("llvm-spirv", v)?),
        ))
    })
}

fn make(clang: PathBuf, llvm_spirv: Option<PathBuf>) -> Toolchain {
    let mut identity = files::stamp(&clang);
    if let Some(tool) = &llvm_spirv {
        identity += " + ";
        identity += &files::stamp(tool);
    }
    Toolchain {
        clang,
        llvm_spirv,
        identity,
    }
}

/// Where compilers are and how they are called.
#[cfg(unix)]
mod system {
    use std::os::unix::fs::PermissionsExt;
    use std::path::{Path, PathBuf};

    /// Besides those of PATH.
    pub fn usual_places() -> Vec<PathBuf> {
        ["/usr/bin", "/usr/local/bin"].map(PathBuf::from).into()
    }

    /// The program of that version.
    pub fn versioned(dirs: &[PathBuf], name: &str, version: u32) -> Option<PathBuf> {
        let suffixed = dirs.iter().map(|d| d.join(format!("{name}-{version}")));
        let private = PathBuf::from(format!("/usr/lib/llvm-{version}/bin/{name}"));
        suffixed.chain([private]).find(|p| is_executable(p))
    }

    /// A clang whose name does not say its version is not taken.
    pub fn unversioned(_dirs: &[PathBuf]) -> Option<PathBuf> {
        None
    }

    fn is_executable(path: &Path) -> bool {
        std::fs::metadata(path).is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
    }
}

/// Where compilers are and how they are called.
#[cfg(windows)]
mod system {
    use super::super::{native, process};
    use crate::util::library;
    use std::path::PathBuf;
    use std::process::Command;

    /// Besides those of PATH: beside this library, and where LLVM's installer puts it.
    pub fn usual_places() -> Vec<PathBuf> {
        let own = library::own_path().and_then(|path| Some(path.parent()?.to_owned()));
        let programs = std::env::var_os("ProgramFiles").map(PathBuf::from);
        let llvm = programs.map(|programs| programs.join("LLVM").join("bin"));
        own.into_iter().chain(llvm).collect()
    }

    /// The program of that version.
    pub fn versioned(dirs: &[PathBuf], name: &str, version: u32) -> Option<PathBuf> {
        let mut all = dirs.iter().map(|d| d.join(format!("{name}-{version}.exe")));
        all.find(|p| p.is_file())
    }

    /// LLVM's installer puts no version into the name: a clang that is new enough.
    pub fn unversioned(dirs: &[PathBuf]) -> Option<PathBuf> {
        let mut all = dirs.iter().map(|d| d.join("clang.exe"));
        all.find(|p| p.is_file() && version_of(p) >= super::FIRST_OWN_TARGET)
    }

    /// The first number of a compiler's version; 0: it does not tell.
    fn version_of(clang: &std::path::Path) -> u32 {
        let mut command = Command::new(clang);
        command.arg("--version");
        let told = process::run_alone(command, &[]);
        let text = told.map(|told| told.stdout).unwrap_or_default();
        native::version_in(&String::from_utf8_lossy(&text))[0]
    }
}
