//! Compiles many kernels with AMD's compiler, without hardware: Mesa's RADV makes devices of any chip family
//! (`RADV_FORCE_FAMILY`) that compile pipelines and can do nothing else.
//!
//! ```text
//! pipelines [--expect FILE [--bless]] [--family NAME]... PATH...
//! ```
//! PATH: modules of OpenCL SPIR-V, or folders with such (as `PUMICE_DUMP` writes them). Fails if a pipeline is not made. With
//! `--expect`, and where the driver's version is that of the file, also if a kernel takes more registers than it says, or spills more:
//! `--bless` writes what there is now.

mod maker;
mod stats;

use stats::{Expected, Totals};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

/// A generation each: wave64 of the first GCN that is still made for, RDNA 1 or 2, RDNA 3.
const FAMILIES: [&str; 3] = ["POLARIS10", "NAVI21", "NAVI31"];
/// Bytes of a module in a folder at most: ACO of Mesa 22.3 takes more than 12 GB for some kernels of larger ones, which have many private
/// arrays that are indexed at run time.
const LARGEST: u64 = 40_000;
const MANIFESTS: [&str; 2] = ["/usr/share/vulkan/icd.d", "/etc/vulkan/icd.d"];

#[derive(Default)]
struct Args {
    families: Vec<String>,
    expect: Option<PathBuf>,
    bless: bool,
    make: bool,
    paths: Vec<PathBuf>,
}

fn arguments() -> Result<Args, String> {
    let mut args = Args::default();
    let mut list = std::env::args().skip(1);
    while let Some(word) = list.next() {
        let mut value = || list.next().ok_or_else(|| format!("{word} needs a value"));
        match word.as_str() {
            "--family" => args.families.push(value()?),
            "--expect" => args.expect = Some(value()?.into()),
            "--bless" => args.bless = true,
            "--make" => args.make = true,
            _ if word.starts_with('-') => return Err(format!("unknown option {word}")),
            _ => args.paths.push(word.into()),
        }
    }
    if args.families.is_empty() {
        args.families = FAMILIES.map(str::to_owned).to_vec();
    }
    match args.paths.is_empty() {
        true => Err("which modules?".into()),
        false => Ok(args),
    }
}

/// The modules at some paths: of folders those that are not too large and not lowered already.
fn modules(paths: &[PathBuf]) -> Result<Vec<PathBuf>, String> {
    let mut list = Vec::new();
    let mut large = 0;
    for path in paths {
        if !path.is_dir() {
            list.push(path.clone());
            continue;
        }
        let entries = std::fs::read_dir(path).map_err(|e| format!("{}: {e}", path.display()))?;
        for path in entries.flatten().map(|entry| entry.path()) {
            let name = path.to_string_lossy();
            if !name.ends_with(".spv") || name.ends_with(".vk.spv") {
                continue;
            }
            match path.metadata() {
                Ok(data) if data.len() <= LARGEST => list.push(path),
                _ => large += 1,
            }
        }
    }
    if large > 0 {
        println!("{large} modules of more than {LARGEST} bytes are left out");
    }
    list.sort();
    Ok(list)
}

fn manifest() -> Option<PathBuf> {
    let folders = MANIFESTS
        .iter()
        .filter_map(|folder| Path::new(folder).read_dir().ok());
    let mut found = folders
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with("radeon_icd") && name.ends_with(".json")
        });
    found.next()
}

/// Returns the output of the process that makes the pipelines for a family of chips.
fn make(chip: &str, manifest: &Path, modules: &[PathBuf]) -> Result<String, String> {
    let program = std::env::current_exe().map_err(|e| e.to_string())?;
    let output = Command::new(program)
        .arg("--make")
        .args(modules)
        .env("RADV_FORCE_FAMILY", chip)
        .env("RADV_DEBUG", "shaderstats,nocache")
        .env("VK_DRIVER_FILES", manifest)
        .env("VK_ICD_FILENAMES", manifest)
        .env("PUMICE_VALIDATION", "0")
        .env("PUMICE_CACHE_DIR", "")
        .stdin(Stdio::null())
        .output()
        .map_err(|e| e.to_string())?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() {
        return Ok(text);
    }
    let last = text.lines().rev().take(5).collect::<Vec<_>>().join("\n");
    Err(format!("{chip}: {} after\n{last}", output.status))
}

fn run() -> Result<bool, String> {
    let args = arguments()?;
    if args.make {
        return maker::run(&args.paths).map(|()| true);
    }
    let manifest = manifest().ok_or("no RADV (Debian: mesa-vulkan-drivers)")?;
    let modules = modules(&args.paths)?;
    let mut right = true;
    let mut now = Expected::default();
    // Each family's compiler runs on one processor.
    let made = std::thread::scope(|scope| {
        let (manifest, modules) = (&manifest, &modules);
        let families = args.families.iter();
        let makers: Vec<_> = families
            .map(|chip| scope.spawn(move || make(chip, manifest, modules)))
            .collect();
        makers
            .into_iter()
            .map(|maker| maker.join().map_err(|_| "a thread panicked".to_string())?)
            .collect::<Result<Vec<String>, String>>()
    })?;
    for (chip, text) in args.families.iter().zip(&made) {
        let (driver, kernels, failures) = stats::parse(text)?;
        let totals = Totals::of(&kernels);
        println!(
            "{chip}: {} pipelines, {} failures, {totals}",
            kernels.len(),
            failures.len()
        );
        for failure in &failures {
            println!("  {failure}");
        }
        right &= failures.is_empty() && !kernels.is_empty();
        now.add(&driver, chip, kernels);
    }
    let Some(path) = &args.expect else {
        return Ok(right);
    };
    if args.bless {
        std::fs::write(path, now.to_string()).map_err(|e| format!("{}: {e}", path.display()))?;
        return Ok(right);
    }
    let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let worse = now.worse_than(&Expected::parse(&text)?)?;
    for line in &worse {
        println!("  {line}");
    }
    Ok(right && worse.is_empty())
}

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("pipelines: {error}");
            ExitCode::FAILURE
        }
    }
}
