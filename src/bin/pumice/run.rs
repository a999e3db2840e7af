//! `pumice run`: replaces this process by the program, with an environment in which OpenCL loaders find Pumice alone.
//!
//! Both loaders (ocl-icd and Khronos') take OCL_ICD_VENDORS as a directory of `.icd` files, so one is made that holds
//! the path of the library next to this executable. On Windows Khronos' loader takes OCL_ICD_FILENAMES, a list of libraries,
//! and there is a new process, whose end is ours: it sees Pumice first, and what is registered besides.

use clap::{ArgMatches, Command};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command as Process;

/// Returns the arguments of the command.
pub fn command() -> Command {
    Command::new("run")
        .about("Runs a program that sees Pumice alone")
        .arg(
            super::operand("PROGRAM")
                .required(true)
                .num_args(1..)
                .trailing_var_arg(true)
                .allow_hyphen_values(true)
                .value_parser(clap::value_parser!(OsString))
                .help("The program and its arguments"),
        )
}

/// Runs a program; returns only when that fails.
pub fn run(matches: &ArgMatches) -> Result<(), String> {
    let words = matches.get_many::<OsString>("PROGRAM");
    let mut args = words.into_iter().flatten();
    let program = args.next().ok_or("which program?")?;
    let library = library()?;
    let mut process = Process::new(program);
    process.args(args).env_remove("OPENCL_VENDOR_PATH");
    let error = become_it(&mut process, &library)?;
    Err(format!("cannot run {}: {error}", program.to_string_lossy()))
}

/// Runs a program in place of this process. Returns only when that fails.
#[cfg(unix)]
fn become_it(process: &mut Process, library: &Path) -> Result<std::io::Error, String> {
    use std::os::unix::process::CommandExt;
    let vendors = vendors(library).map_err(|e| format!("cannot write an .icd file: {e}"))?;
    process
        .env("OCL_ICD_VENDORS", vendors)
        .env_remove("OCL_ICD_FILENAMES");
    Ok(process.exec())
}

/// Runs a program and ends with its status. Returns only when it cannot be started.
#[cfg(not(unix))]
fn become_it(process: &mut Process, library: &Path) -> Result<std::io::Error, String> {
    process.env("OCL_ICD_FILENAMES", library);
    match process.status() {
        Ok(status) => std::process::exit(status.code().unwrap_or(1)),
        Err(error) => Ok(error),
    }
}

/// The library's name.
pub const LIBRARY: &str = if cfg!(windows) {
    "pumice.dll"
} else {
    "libpumice.so"
};

/// Where the library may be, from the directory of this executable: of a build, and of installations of several kinds.
const PLACES: &[&str] = &[
    ".",
    "../lib",
    "../lib64",
    "../lib/pumice",
    "../lib64/pumice",
    #[cfg(target_arch = "x86_64")]
    "../lib/x86_64-linux-gnu/pumice",
    #[cfg(target_arch = "aarch64")]
    "../lib/aarch64-linux-gnu/pumice",
];

/// Returns the library: PUMICE_LIB, or that of this build or installation.
pub fn library() -> Result<PathBuf, String> {
    if let Some(path) = std::env::var_os("PUMICE_LIB") {
        return Ok(PathBuf::from(path));
    }
    let own = std::env::current_exe()
        .and_then(|p| p.canonicalize())
        .map_err(|e| e.to_string())?;
    let dir = own.parent().unwrap_or(Path::new("."));
    let mut places = PLACES.iter().map(|place| dir.join(place).join(LIBRARY));
    let found = places.find_map(|p| p.canonicalize().ok());
    found.ok_or_else(|| {
        format!(
            "{LIBRARY} is neither beside {} nor in a lib directory next to that: set PUMICE_LIB",
            own.display()
        )
    })
}

/// Creates a directory with one `.icd` file, under a name of this user's. It is written at each
/// call, since the library may have moved.
#[cfg(unix)]
fn vendors(library: &Path) -> std::io::Result<PathBuf> {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    library.hash(&mut hasher);
    let base = pumice_runtime::util::config::get()
        .cache_dir
        .clone()
        .unwrap_or_else(std::env::temp_dir);
    let dir = base.join(format!("icd-{:016x}", hasher.finish()));
    std::fs::create_dir_all(&dir)?;
    let temporary = dir.join(format!(".{}", std::process::id()));
    std::fs::write(&temporary, format!("{}\n", library.display()))?;
    std::fs::rename(&temporary, dir.join("pumice.icd"))?;
    Ok(dir)
}
