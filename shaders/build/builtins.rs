//! The built-in library: libclc's SPIR-V as the distribution ships it, and ours, compiled from `builtins/*.cl`.
//!
//! Environment: `PUMICE_LIBCLC` names libclc's `spirv64-mesa3d-.spv`; `PUMICE_CLANG` names the clang to use (with
//! `PUMICE_LLVM_SPIRV`, if it has no SPIR-V target of its own).

use std::path::{Path, PathBuf};
use std::process::Command;

type Error = Box<dyn std::error::Error>;

/// Newest first.
const CLANG_VERSIONS: std::ops::RangeInclusive<u32> = 14..=30;
/// The first clang whose own SPIR-V target serves.
const FIRST_WITH_SPIRV: u32 = 20;

/// Writes `libclc.spv` and `builtins.spv` to the output folder.
pub fn build(out: &Path) -> Result<(), Error> {
    println!("cargo::rerun-if-changed=builtins");
    for name in ["PUMICE_LIBCLC", "PUMICE_CLANG", "PUMICE_LLVM_SPIRV"] {
        println!("cargo::rerun-if-env-changed={name}");
    }
    let libclc = find_libclc()?;
    println!("cargo::rerun-if-changed={}", libclc.display());
    let words = std::fs::read(&libclc)?;
    check(&words, &libclc)?;
    std::fs::write(out.join("libclc.spv"), words)?;
    compile(out)
}

fn check(words: &[u8], path: &Path) -> Result<(), Error> {
    if words.len() % 4 == 0 && words.starts_with(&0x0723_0203u32.to_le_bytes()) {
        Ok(())
    } else {
        Err(format!("{} is not a little-endian SPIR-V module", path.display()).into())
    }
}

fn find_libclc() -> Result<PathBuf, Error> {
    if let Some(path) = std::env::var_os("PUMICE_LIBCLC") {
        return Ok(path.into());
    }
    ["/usr/lib/clc", "/usr/share/clc", "/usr/local/share/clc", "/usr/lib64/clc"]
        .iter()
        .map(|folder| Path::new(folder).join("spirv64-mesa3d-.spv"))
        .find(|path| path.is_file())
        .ok_or_else(|| {
            "libclc's SPIR-V library spirv64-mesa3d-.spv was not found in /usr/lib/clc or /usr/share/clc.\n\
             Install it (Debian and Ubuntu: `apt install libclc-15`; Fedora: libclc; Arch: libclc), or set \
             PUMICE_LIBCLC to its path."
                .into()
        })
}

/// A compiler, and the translator it needs if it has no SPIR-V target of its own.
struct Toolchain {
    clang: PathBuf,
    translator: Option<PathBuf>,
}

fn runs(program: &Path) -> bool {
    Command::new(program)
        .arg("--version")
        .output()
        .is_ok_and(|out| out.status.success())
}

/// The major version that a clang reports.
fn version_of(clang: &Path) -> Option<u32> {
    let out = Command::new(clang).arg("--version").output().ok()?;
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    text.split("version ")
        .nth(1)?
        .split('.')
        .next()?
        .parse()
        .ok()
}

fn toolchains() -> Vec<Toolchain> {
    if let Some(clang) = std::env::var_os("PUMICE_CLANG") {
        let translator = std::env::var_os("PUMICE_LLVM_SPIRV").map(PathBuf::from);
        return vec![Toolchain {
            clang: clang.into(),
            translator,
        }];
    }
    let mut found = Vec::new();
    for version in CLANG_VERSIONS.rev() {
        let clang = PathBuf::from(format!("clang-{version}"));
        if !runs(&clang) {
            continue;
        }
        if version >= FIRST_WITH_SPIRV {
            found.push(Toolchain {
                clang,
                translator: None,
            });
        } else {
            let translator = PathBuf::from(format!("llvm-spirv-{version}"));
            if runs(&translator) {
                found.push(Toolchain {
                    clang,
                    translator: Some(translator),
                });
            }
        }
    }
    let plain = PathBuf::from("clang");
    match version_of(&plain) {
        Some(version) if version >= FIRST_WITH_SPIRV => found.push(Toolchain {
            clang: plain,
            translator: None,
        }),
        Some(_) if runs(Path::new("llvm-spirv")) => {
            found.push(Toolchain {
                clang: plain,
                translator: Some("llvm-spirv".into()),
            });
        }
        _ => {}
    }
    found
}

fn run(command: &mut Command) -> Result<(), Error> {
    let out = command.output().map_err(|e| format!("{command:?}: {e}"))?;
    if out.status.success() {
        return Ok(());
    }
    Err(format!(
        "{command:?}: {}\n{}",
        out.status,
        String::from_utf8_lossy(&out.stderr)
    )
    .into())
}

fn compile_with(tools: &Toolchain, out: &Path) -> Result<(), Error> {
    let target = out.join("builtins.spv");
    // Without the default header: see builtins/common.h.
    let clang = || {
        let mut clang = Command::new(&tools.clang);
        clang.args([
            "-cc1",
            "-ffp-contract=off",
            "-fno-builtin",
            "-cl-std=CL3.0",
            "-O2",
            "builtins/library.cl",
        ]);
        clang
    };
    match &tools.translator {
        None => run(clang()
            .args(["-triple", "spirv64", "-emit-obj"])
            // Else LLVM compares with 0.0 what is written as a comparison of bits, which some devices flush.
            .arg("-fdenormal-fp-math=dynamic,dynamic")
            // LLVM finds a reversal of bits in what is written as one.
            .args(["-mllvm", "-spirv-ext=+SPV_KHR_bit_instructions", "-o"])
            .arg(&target))?,
        Some(translator) => {
            let bitcode = out.join("builtins.bc");
            let translate = |extra: &[&str]| -> Result<(), Error> {
                let mut clang = clang();
                if version_of(&tools.clang).is_some_and(|v| v == 15 || v == 16) {
                    clang.arg("-no-opaque-pointers");
                }
                run(clang
                    .args(extra)
                    .args(["-triple", "spir64", "-emit-llvm-bc", "-o"])
                    .arg(&bitcode))?;
                run(Command::new(translator)
                    .arg(&bitcode)
                    .arg("-o")
                    .arg(&target))
            };
            // Optimised code may have instructions that the translator does not know (freeze).
            translate(&[]).or_else(|_| translate(&["-disable-llvm-passes"]))?;
        }
    }
    let words = std::fs::read(&target)?;
    check(&words, &target)?;
    if let Some(call) = library_call(&words) {
        return Err(format!(
            "{} makes a call of {call}, which nothing defines",
            tools.clang.display()
        )
        .into());
    }
    Ok(())
}

/// The start of the name of an atomic that a compiler left to a run-time library: programs that use what calls it would not
/// build (builtins/atomic.h has those that serve).
fn library_call(module: &[u8]) -> Option<&'static str> {
    ["__opencl_atomic_", "__atomic_", "__sync_"]
        .into_iter()
        .find(|call| {
            module
                .windows(call.len())
                .any(|bytes| bytes == call.as_bytes())
        })
}

fn compile(out: &Path) -> Result<(), Error> {
    let mut errors = String::new();
    for tools in toolchains() {
        match compile_with(&tools, out) {
            Ok(()) => return Ok(()),
            Err(error) => errors.push_str(&format!("\n{error}")),
        }
    }
    Err(format!(
        "no toolchain could compile shaders/builtins/library.cl to SPIR-V. Install clang 20 or newer (Debian: clang-22), \
         or clang and llvm-spirv of one version (Debian 12: clang-15 and llvm-spirv-15), or set PUMICE_CLANG (and \
         PUMICE_LLVM_SPIRV).{errors}"
    )
    .into())
}
