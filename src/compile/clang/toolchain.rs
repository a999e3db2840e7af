//! Finds the compilers: clang with a SPIR-V target of its own, or clang with llvm-spirv. Looked for once a process,
//! newest first; `PUMICE_CLANG` and `PUMICE_LLVM_SPIRV` override.

use crate::util::{config, files};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
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
    for fixed in ["/usr/bin", "/usr/local/bin"] {
        if !dirs.iter().any(|d| d == Path::new(fixed)) {
            dirs.push(fixed.into());
        }
    }
    dirs
}

fn find(dirs: &[PathBuf]) -> Option<Toolchain> {
    let config = config::get();
    if let Some(clang) = &config.clang {
        return Some(make(clang.clone(), config.llvm_spirv.clone()));
    }
    let versioned = |name: &str, version: u32| {
        let suffixed = dirs.iter().map(|d| d.join(format!("{name}-{version}")));
        let private = PathBuf::from(format!("/usr/lib/llvm-{version}/bin/{name}"));
        suffixed.chain([private]).find(|p| is_executable(p))
    };
    let own = (FIRST_OWN_TARGET..=NEWEST)
        .rev()
        .find_map(|v| versioned("clang", v));
    if let Some(clang) = own {
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

fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}
