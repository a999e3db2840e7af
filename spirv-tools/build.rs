// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiles the validator and the assembler of SPIRV-Tools, whose sources the crate `spirv-tools-sys` carries. That crate would
//! compile each file by itself, and the optimiser as well, which is two thirds of it and which nothing here calls: minutes, most of
//! them for the same headers again and again. Here several files are one translation unit.

use std::env;
use std::error::Error;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Units that share the files where it is optimised.
const UNITS: usize = 8;
/// Where it is not, and most of the time goes to the headers.
const FEW_UNITS: usize = 2;

/// Files that are a unit each: they have a name that another file uses for something else.
const ALONE: [&str; 1] = ["validate_ray_tracing_reorder.cpp"];

/// Files that the validator and the assembler have no use for.
const UNUSED: [&str; 6] = [
    "mimalloc.cpp",
    "pch_source.cpp",
    "spirv_fuzzer_options.cpp",
    "spirv_optimizer_options.cpp",
    "spirv_reducer_options.cpp",
    "timer.cpp",
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=build.rs");
    // Clippy links nothing. What a build script made for it is not used for a build, so all would be compiled twice.
    println!("cargo:rerun-if-env-changed=CLIPPY_ARGS");
    if env::var_os("CLIPPY_ARGS").is_some() {
        return Ok(());
    }
    let tools = sources()?;
    let mut files = Vec::new();
    for folder in ["source/val", "source/util", "source"] {
        files.append(&mut cpp_files(&tools.join("spirv-tools").join(folder))?);
    }
    let (alone, mut merged): (Vec<PathBuf>, Vec<PathBuf>) =
        files.into_iter().partition(|file| is_one_of(file, &ALONE));
    merged.sort();
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("no OUT_DIR")?);
    // As the profile says, but no more than -O2.
    let optimisation = env::var("OPT_LEVEL")?.parse().unwrap_or(2).min(2);
    let shared = if optimisation < 2 { FEW_UNITS } else { UNITS };
    let mut units = alone;
    for (number, files) in merged.chunks(merged.len().div_ceil(shared)).enumerate() {
        let mut text = String::new();
        for file in files {
            writeln!(
                text,
                "#include {:?}",
                file.to_str().ok_or("a path that is no Unicode")?
            )?;
        }
        let unit = out.join(format!("unit{number}.cpp"));
        fs::write(&unit, text)?;
        units.push(unit);
    }
    let mut build = cc::Build::new();
    build
        .cpp(true)
        .std("c++17")
        .opt_level(optimisation)
        .debug(false)
        .warnings(false);
    for folder in [
        "spirv-tools",
        "spirv-tools/include",
        "generated",
        "spirv-headers/include",
        "spirv-headers/include/spirv/unified1",
    ] {
        build.include(tools.join(folder));
    }
    build
        .flag_if_supported("-fno-exceptions")
        .flag_if_supported("-fno-rtti");
    build
        .define("SPIRV_CHECK_CONTEXT", None)
        .define(system()?, None);
    build.files(units).compile("pumice-spirv-tools");
    Ok(())
}

/// SPIRV-Tools' name for the system that is built for.
fn system() -> Result<&'static str, Box<dyn Error>> {
    match env::var("CARGO_CFG_TARGET_OS")?.as_str() {
        "linux" => Ok("SPIRV_LINUX"),
        "windows" => Ok("SPIRV_WINDOWS"),
        "macos" => Ok("SPIRV_MAC"),
        "android" => Ok("SPIRV_ANDROID"),
        "freebsd" => Ok("SPIRV_FREEBSD"),
        other => Err(format!("SPIRV-Tools do not know {other}").into()),
    }
}

fn is_one_of(file: &Path, names: &[&str]) -> bool {
    file.file_name()
        .is_some_and(|name| names.iter().any(|&one| name == one))
}

fn cpp_files(folder: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "cpp")
            && !is_one_of(&path, &UNUSED)
        {
            files.push(path);
        }
    }
    Ok(files)
}

/// Where the sources of `spirv-tools-sys` are: a cache of Cargo's, or a folder of a distribution. Cargo is asked, first without the
/// network: what is built here is there, but crates of other purposes may not be.
fn sources() -> Result<PathBuf, Box<dyn Error>> {
    let mut messages = String::new();
    for offline in [true, false] {
        let mut cargo = Command::new(env::var_os("CARGO").ok_or("no CARGO")?);
        cargo.args([
            "metadata",
            "--format-version",
            "1",
            "--locked",
            "--filter-platform",
        ]);
        cargo
            .arg(env::var("TARGET")?)
            .current_dir(env::var_os("CARGO_MANIFEST_DIR").ok_or("no CARGO_MANIFEST_DIR")?);
        if offline {
            cargo.arg("--offline");
        }
        let output = cargo.output()?;
        let text = String::from_utf8(output.stdout)?;
        if let Some(manifest) = manifest_of(&text, "spirv-tools-sys") {
            return Ok(manifest
                .parent()
                .ok_or("a manifest without a folder")?
                .to_owned());
        }
        messages = String::from_utf8_lossy(&output.stderr).into_owned();
    }
    Err(format!("cargo metadata does not know where spirv-tools-sys is: {messages}").into())
}

/// `manifest_path` of a package in what `cargo metadata` prints.
fn manifest_of(metadata: &str, package: &str) -> Option<PathBuf> {
    const KEY: &str = "\"manifest_path\":\"";
    let (_, rest) = metadata.split_once(&format!("{{\"name\":\"{package}\",\"version\":"))?;
    let (path, _) = rest.split_once(KEY)?.1.split_once('"')?;
    Some(PathBuf::from(path.replace("\\\\", "\\")))
}
