//! The build script of the runtime: makes the library that the compile server preloads into clang
//! (`preload.rs`), for `mod.rs` to include. Where that fails, or on other systems than Linux, the
//! file is empty, and there is no server.

use std::path::PathBuf;
use std::process::Command;

const SOURCE: &str = "src/compile/clang/server/preload.rs";
const PARTS: &str = "src/compile/clang/server/preload";

fn main() {
    println!("cargo::rerun-if-changed={SOURCE}");
    println!("cargo::rerun-if-changed={PARTS}");
    println!("cargo::rerun-if-changed=src/compile/clang/server/build.rs");
    let var = |name: &str| std::env::var(name).unwrap_or_default();
    let library = PathBuf::from(var("OUT_DIR")).join("preload.so");
    let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    rustc.args(["--edition=2021", "-Copt-level=s", "-Cpanic=abort"]);
    rustc.args(["-Cstrip=symbols", "--target", &var("TARGET")]);
    if let Some(linker) = std::env::var_os("RUSTC_LINKER") {
        let mut option = std::ffi::OsString::from("-Clinker=");
        option.push(linker);
        rustc.arg(option);
    }
    rustc.arg("-o").arg(&library).arg(SOURCE);
    let linux =
        var("CARGO_CFG_TARGET_OS") == "linux" && var("CARGO_CFG_TARGET_POINTER_WIDTH") == "64";
    if !linux || !rustc.status().is_ok_and(|status| status.success()) {
        if linux {
            println!("cargo::warning=no compile server: {SOURCE} does not compile");
        }
        if let Err(error) = std::fs::write(&library, []) {
            println!("cargo::error=cannot write {}: {error}", library.display());
        }
    }
}
