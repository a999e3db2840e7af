//! Finds the compilers: clang with a SPIR-V target of its own, or clang with llvm-spirv. They are
//! looked for once a process: first one that is packed beside this library, then those of the
//! system, newest first; `PUMICE_CLANG` and `PUMICE_LLVM_SPIRV` override.
//!
//! clang may be within Zig (`zig`), whose distribution has it in one file that needs no library: as
//! `zig -cc1` it is clang's compiler, as `zig clang` its driver.

use crate::quirks::{Quirks, Vendor};
use crate::util::{config, files, library};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Once, OnceLock};

/// The programs that compile OpenCL C to SPIR-V.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Toolchain {
    /// The compiler.
    pub clang: PathBuf,
    /// The translator, for a clang whose SPIR-V target is missing or too young.
    pub llvm_spirv: Option<PathBuf>,
    /// A name for both executables in their present version: part of cache keys.
    pub identity: String,
    /// The quirks of the compilers on the way to SPIR-V.
    pub quirks: Quirks,
}

/// The newest clang whose versioned name is tried.
const NEWEST: u32 = 40;
/// The first clang whose own SPIR-V target is good enough.
const FIRST_OWN_TARGET: u32 = 20;
/// The oldest clang tried together with llvm-spirv.
const OLDEST: u32 = 13;

/// The paths of a compiler that is packed with this library, relative to its directory. Its headers
/// are in `compiler/lib/clang/VERSION/include`, where it looks by itself.
#[cfg(unix)]
const CARRIED: [&str; 2] = ["compiler/bin/clang", "compiler/bin/zig"];
#[cfg(windows)]
const CARRIED: [&str; 2] = ["compiler/bin/clang.exe", "compiler/bin/zig.exe"];

impl Toolchain {
    /// Returns the command of clang's driver, without arguments.
    pub fn driver(&self) -> Command {
        let mut driver = Command::new(&self.clang);
        if self
            .clang
            .file_name()
            .is_some_and(|name| name == "zig" || name == "zig.exe")
        {
            driver.arg("clang");
        }
        driver
    }
}

/// Returns the toolchain of this process, if there is one. A missing one is looked for again: a
/// disk may be unavailable for a while.
pub fn get() -> Option<&'static Toolchain> {
    static FOUND: OnceLock<Toolchain> = OnceLock::new();
    static MISSED: Once = Once::new();
    if let Some(found) = FOUND.get() {
        return Some(found);
    }
    let Some(found) = find(carried(library::own_path().as_deref()), &search_path()) else {
        MISSED.call_once(|| {
            crate::log!(
                Error,
                "no OpenCL C compiler: install clang {FIRST_OWN_TARGET} or newer, or clang and llvm-spirv of one \
                 version (or set PUMICE_CLANG)"
            );
        });
        return None;
    };
    Some(FOUND.get_or_init(|| {
        crate::log!(Info, "compiler: {}", found.identity);
        found
    }))
}

/// Returns the message for a missing toolchain, one line.
pub fn missing() -> String {
    match &config::get().clang {
        Some(path) => format!(
            "the compiler that PUMICE_CLANG names cannot be looked at: {}\n",
            path.display()
        ),
        None => "no OpenCL C compiler was found: install clang 20 or newer (Debian package clang-22), or clang-15 \
                 with llvm-spirv-15, or set PUMICE_CLANG\n"
            .to_owned(),
    }
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

/// Returns the compiler that is packed with a library.
fn carried(library: Option<&Path>) -> Option<PathBuf> {
    let dir = library?.canonicalize().ok()?;
    let dir = dir.parent()?;
    let mut places = CARRIED.iter().map(|place| dir.join(place));
    places.find(|place| system::is_executable(place))
}

fn find(carried: Option<PathBuf>, dirs: &[PathBuf]) -> Option<Toolchain> {
    let config = config::get();
    if let Some(clang) = &config.clang {
        return make(clang.clone(), config.llvm_spirv.clone());
    }
    if let Some(clang) = carried {
        return make(clang, None);
    }
    let versioned = |name: &str, version: u32| system::versioned(dirs, name, version);
    let own = (FIRST_OWN_TARGET..=NEWEST)
        .rev()
        .find_map(|v| versioned("clang", v));
    if let Some(clang) = own.or_else(|| system::unversioned(dirs)) {
        return make(clang, None);
    }
    (OLDEST..FIRST_OWN_TARGET)
        .rev()
        .find_map(|v| make(versioned("clang", v)?, Some(versioned("llvm-spirv", v)?)))
}

/// Creates a toolchain. Returns `None` if the state of its files cannot be read at the moment,
/// without which cache entries might be mistaken for those of another compiler.
fn make(clang: PathBuf, llvm_spirv: Option<PathBuf>) -> Option<Toolchain> {
    let mut identity = files::stamp(&clang).ok()?;
    if let Some(tool) = &llvm_spirv {
        identity += " + ";
        identity += &files::stamp(tool).ok()?;
    }
    let vendor = match llvm_spirv {
        Some(_) => Vendor::Translator,
        None => Vendor::SpirvTarget,
    };
    // A version that the name does not say is taken for the oldest.
    let name = clang.file_stem().and_then(|name| name.to_str());
    let digits = name.and_then(|name| name.rsplit_once('-')?.1.parse().ok());
    let quirks = Quirks::of(vendor, [digits.unwrap_or(0), 0, 0]);
    Some(Toolchain {
        clang,
        llvm_spirv,
        identity,
        quirks,
    })
}

/// Where compilers are and how they are called.
#[cfg(unix)]
mod system {
    use std::os::unix::fs::PermissionsExt;
    use std::path::{Path, PathBuf};

    /// Returns the directories besides those of PATH.
    pub fn usual_places() -> Vec<PathBuf> {
        ["/usr/bin", "/usr/local/bin"].map(PathBuf::from).into()
    }

    /// Returns the program of that version.
    pub fn versioned(dirs: &[PathBuf], name: &str, version: u32) -> Option<PathBuf> {
        let suffixed = dirs.iter().map(|d| d.join(format!("{name}-{version}")));
        let private = PathBuf::from(format!("/usr/lib/llvm-{version}/bin/{name}"));
        suffixed.chain([private]).find(|p| is_executable(p))
    }

    /// Returns nothing: a clang whose name does not contain its version is not used.
    pub fn unversioned(_dirs: &[PathBuf]) -> Option<PathBuf> {
        None
    }

    /// Returns true if there is a program at the path.
    pub fn is_executable(path: &Path) -> bool {
        std::fs::metadata(path).is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
    }
}

/// Where compilers are and how they are called.
#[cfg(windows)]
mod system {
    use super::super::{native, process};
    use crate::util::library;
    use std::path::{Path, PathBuf};
    use std::process::Command;

    /// Returns the directories besides those of PATH: that of this library, and those of LLVM's
    /// installer.
    pub fn usual_places() -> Vec<PathBuf> {
        let own = library::own_path().and_then(|path| Some(path.parent()?.to_owned()));
        let programs = std::env::var_os("ProgramFiles").map(PathBuf::from);
        let llvm = programs.map(|programs| programs.join("LLVM").join("bin"));
        own.into_iter().chain(llvm).collect()
    }

    /// Returns the program of that version.
    pub fn versioned(dirs: &[PathBuf], name: &str, version: u32) -> Option<PathBuf> {
        let mut all = dirs.iter().map(|d| d.join(format!("{name}-{version}.exe")));
        all.find(|p| p.is_file())
    }

    /// Returns a clang that is new enough: LLVM's installer puts no version into the name.
    pub fn unversioned(dirs: &[PathBuf]) -> Option<PathBuf> {
        let mut all = dirs.iter().map(|d| d.join("clang.exe"));
        all.find(|p| p.is_file() && version_of(p) >= super::FIRST_OWN_TARGET)
    }

    /// Returns true if there is a program at the path.
    pub fn is_executable(path: &Path) -> bool {
        path.is_file()
    }

    /// Returns the first number of a compiler's version, or 0 if it reports none.
    fn version_of(clang: &Path) -> u32 {
        let mut command = Command::new(clang);
        command.arg("--version");
        let finished = process::run_alone(command, &[]);
        let text = finished.map(|finished| finished.stdout).unwrap_or_default();
        native::version_in(&String::from_utf8_lossy(&text))[0]
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    /// Checks that a compiler beside the library precedes those of the system, and that the driver
    /// within Zig has a name.
    #[test]
    fn compilers_that_are_carried() {
        use std::os::unix::fs::PermissionsExt;
        let dir = std::env::temp_dir().join(format!("pumice-carried-{}", std::process::id()));
        let bin = dir.join("compiler/bin");
        std::fs::create_dir_all(&bin).unwrap();
        let library = dir.join("libpumice.so");
        std::fs::write(&library, "").unwrap();
        let real = dir.canonicalize().unwrap();
        let program = |name: &str, mode| {
            std::fs::write(bin.join(name), "").unwrap();
            std::fs::set_permissions(bin.join(name), PermissionsExt::from_mode(mode)).unwrap();
        };
        assert_eq!(carried(None), None);
        assert_eq!(carried(Some(&library)), None);
        program("zig", 0o644);
        assert_eq!(carried(Some(&library)), None);
        program("zig", 0o755);
        let zig = real.join("compiler/bin/zig");
        assert_eq!(carried(Some(&library)), Some(zig.clone()));
        if config::get().clang.is_none() {
            assert_eq!(
                find(carried(Some(&library)), &search_path()),
                make(zig.clone(), None)
            );
        }
        let driver = make(zig, None).unwrap().driver();
        assert_eq!(driver.get_args().collect::<Vec<_>>(), ["clang"]);
        program("clang", 0o755);
        let clang = real.join("compiler/bin/clang");
        assert_eq!(carried(Some(&library)), Some(clang.clone()));
        assert_eq!(make(clang, None).unwrap().driver().get_args().count(), 0);
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
