//! `pumice doctor`: what OpenCL programs need of this machine, what of it is there, and what to do about the rest. Ends with
//! exit status 1 where no device of Pumice works.

use super::absent;
use pumice_runtime::command;
use pumice_runtime::compile::toolchain;
use pumice_runtime::error::ClResult;
use pumice_runtime::handle::Ref;
use pumice_runtime::object::context::Context;
use pumice_runtime::object::device::Device;
use pumice_runtime::object::platform::Platform;
use pumice_runtime::object::program;
use pumice_runtime::queue::Queue;
use pumice_runtime::util::{config, library};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

/// How a thing stands.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Health {
    Good,
    /// Something does not work without it; the rest does.
    Lacking,
    Bad,
}

/// One line of the report.
pub(super) struct Finding {
    state: Health,
    what: String,
    /// The remedy.
    remedy: Option<String>,
}

pub(super) fn good(what: impl Into<String>) -> Finding {
    Finding {
        state: Health::Good,
        what: what.into(),
        remedy: None,
    }
}

pub(super) fn wrong(state: Health, what: impl Into<String>, remedy: impl Into<String>) -> Finding {
    Finding {
        state,
        what: what.into(),
        remedy: Some(remedy.into()),
    }
}

/// Prints the report.
pub fn doctor() -> Result<(), String> {
    let platform = Platform::open();
    let devices = &platform.devices;
    let tried: Vec<(&Ref<Device>, ClResult)> = devices
        .iter()
        .map(|device| (device, run_kernel(device)))
        .collect();
    let parts = [
        ("OpenCL loader", loader()),
        ("Vulkan", vulkan_devices(devices)),
        ("compiler", compiler()),
        (
            "compile cache",
            vec![cache(config::get().cache_dir.as_deref())],
        ),
        ("devices", tried_devices(&tried)),
    ];
    super::print(|out| write_parts(out, &parts))?;
    match tried.iter().any(|(_, result)| result.is_ok()) {
        true => Ok(()),
        false => Err("no device of Pumice works".to_owned()),
    }
}

fn write_parts(out: &mut dyn Write, parts: &[(&str, Vec<Finding>)]) -> io::Result<()> {
    for (name, findings) in parts {
        writeln!(out, "{name}")?;
        for finding in findings {
            let word = match finding.state {
                Health::Good => "ok     ",
                Health::Lacking => "lacking",
                Health::Bad => "BAD    ",
            };
            writeln!(out, "  {word} {}", finding.what)?;
            if let Some(remedy) = &finding.remedy {
                writeln!(out, "          -> {remedy}")?;
            }
        }
    }
    Ok(())
}

/// Checks that programs can load an OpenCL loader, and that it finds this driver.
#[cfg(windows)]
fn loader() -> Vec<Finding> {
    let first = match library::load("OpenCL.dll") {
        Ok(()) => good("OpenCL.dll"),
        Err(error) => wrong(
            Health::Bad,
            error,
            "put Khronos' loader (OpenCL.dll) beside the program, or install a driver that brings it",
        ),
    };
    vec![first, super::register::finding()]
}

/// Checks that programs can load an OpenCL loader, and that it finds this driver.
#[cfg(not(windows))]
fn loader() -> Vec<Finding> {
    let first = match library::load("libOpenCL.so.1") {
        Ok(()) => good("libOpenCL.so.1"),
        Err(error) => wrong(
            Health::Bad,
            error,
            "install an OpenCL loader (Debian: ocl-icd-libopencl1, Fedora and Arch: ocl-icd)",
        ),
    };
    let place = std::env::var_os("OCL_ICD_VENDORS").filter(|place| !place.is_empty());
    let place = place.map_or_else(|| PathBuf::from("/etc/OpenCL/vendors"), PathBuf::from);
    let mut findings = vec![first];
    findings.extend(vendors(&place, library::load));
    findings.extend(python_environment());
    findings
}

/// Warns, where Pumice was installed by pip, that PyOpenCL's own loader reads another file.
#[cfg(not(windows))]
fn python_environment() -> Option<Finding> {
    let library = super::run::library().ok()?;
    let icd = library.parent()?.join("../pyopencl/.libs/pumice.icd");
    let icd = icd.canonicalize().ok()?;
    Some(good(format!(
        "{}, for PyOpenCL of this environment",
        icd.display()
    )))
}

/// Checks the `.icd` files at a path, a directory or one file. Drivers of other vendors are named,
/// and not loaded.
#[cfg_attr(windows, allow(dead_code, reason = "vendors are in the registry"))]
fn vendors(place: &Path, load: impl Fn(&str) -> Result<(), String>) -> Vec<Finding> {
    let mut files: Vec<PathBuf> = match std::fs::read_dir(place) {
        Ok(entries) => entries.flatten().map(|entry| entry.path()).collect(),
        Err(_) if place.is_file() => vec![place.to_owned()],
        Err(error) => {
            let what = format!("{}: {error}", place.display());
            return vec![wrong(Health::Bad, what, installing(place))];
        }
    };
    files.retain(|file| file.extension().is_some_and(|ending| ending == "icd"));
    files.sort();
    let mut findings = Vec::new();
    let mut ours = false;
    for file in files {
        let shown = file.display();
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        let Some(name) = text.lines().next().map(str::trim).filter(|n| !n.is_empty()) else {
            let remedy = "its first line has to be the path of a driver's library";
            findings.push(wrong(
                Health::Lacking,
                format!("{shown} names nothing"),
                remedy,
            ));
            continue;
        };
        if Path::new(name).file_name() != Some("libpumice.so".as_ref()) {
            findings.push(good(format!("{shown}: {name} (another driver)")));
            continue;
        }
        match load(name) {
            Ok(()) => {
                ours = true;
                findings.push(good(format!("{shown}: {name}")));
            }
            Err(error) => {
                let what = format!("{shown}: {error}");
                findings.push(wrong(Health::Bad, what, installing(place)));
            }
        }
    }
    if !ours {
        let what = format!("nothing at {} leads to Pumice", place.display());
        findings.push(wrong(Health::Lacking, what, installing(place)));
    }
    findings
}

#[cfg_attr(windows, allow(dead_code, reason = "vendors are in the registry"))]
fn installing(place: &Path) -> String {
    match super::run::library() {
        Ok(library) => format!(
            "write a file {}/pumice.icd with the line {}; or use `pumice run`",
            place.display(),
            library.display()
        ),
        Err(error) => error,
    }
}

/// Reports the Vulkan devices, and why some of them are not offered.
fn vulkan_devices(offered: &[Ref<Device>]) -> Vec<Finding> {
    let names: Vec<&str> = offered.iter().map(|d| d.caps().name.as_str()).collect();
    let report = absent::report(&names);
    let mut findings: Vec<Finding> = report.vulkan.into_iter().map(good).collect();
    findings.extend(
        report
            .absent
            .into_iter()
            .map(|absent| match absent.on_purpose {
                true => Finding {
                    state: Health::Good,
                    what: format!("{}, not offered: {}", absent.name, absent.reason),
                    remedy: Some(absent.remedy),
                },
                false => {
                    let what = format!("{} is left out: {}", absent.name, absent.reason);
                    wrong(Health::Lacking, what, absent.remedy)
                }
            }),
    );
    findings
}

/// The remedy for a missing compiler.
pub const INSTALL_CLANG: &str =
    "install clang 20 or newer (Debian 12: clang-22), or clang and llvm-spirv of one version";

/// Returns the compilers, which are run.
fn compiler() -> Vec<Finding> {
    let Some(found) = toolchain::get() else {
        return vec![wrong(Health::Bad, "no clang", INSTALL_CLANG)];
    };
    let mut findings = vec![program_version(&found.clang, found.driver())];
    if let Some(tool) = &found.llvm_spirv {
        findings.push(program_version(tool, Command::new(tool)));
    }
    findings
}

/// Returns the version that a program reports of itself.
fn program_version(path: &Path, mut command: Command) -> Finding {
    let shown = path.display();
    match command.arg("--version").output() {
        Ok(output) if output.status.success() => {
            let text = String::from_utf8_lossy(&output.stdout);
            let line = text.lines().map(str::trim).find(|line| !line.is_empty());
            good(format!("{shown}: {}", line.unwrap_or_default()))
        }
        Ok(output) => {
            let error = String::from_utf8_lossy(&output.stderr);
            let what = format!("{shown} --version: {}: {}", output.status, error.trim());
            wrong(Health::Bad, what, INSTALL_CLANG)
        }
        Err(error) => wrong(Health::Bad, format!("{shown}: {error}"), INSTALL_CLANG),
    }
}

/// Checks that compiled kernels can be cached.
fn cache(dir: Option<&Path>) -> Finding {
    let Some(dir) = dir else {
        return wrong(
            Health::Lacking,
            "none: every run compiles all kernels again",
            "set PUMICE_CACHE_DIR to a directory, or HOME",
        );
    };
    let shown = dir.display();
    let probe = dir.join(format!(".doctor-{}", std::process::id()));
    let written = std::fs::create_dir_all(dir)
        .and_then(|()| std::fs::write(&probe, "x"))
        .and_then(|()| std::fs::remove_file(&probe));
    match written {
        Ok(()) => good(format!("{shown} can be written")),
        Err(error) => wrong(
            Health::Lacking,
            format!("{shown}: {error}: every run compiles all kernels again"),
            "make it writable for this user, or set PUMICE_CACHE_DIR to another directory",
        ),
    }
}

fn tried_devices(tried: &[(&Ref<Device>, ClResult)]) -> Vec<Finding> {
    if tried.is_empty() {
        let what = "none is offered";
        let remedy = "see above; or PUMICE_DEVICES, if set, excludes all that there are";
        return vec![wrong(Health::Bad, what, remedy)];
    }
    let findings = tried.iter().map(|(device, result)| {
        let name = &device.caps().name;
        match result {
            Ok(()) => good(format!("{name}: compiled and ran a kernel")),
            Err(error) => {
                let what = format!("{name}: {error}");
                wrong(Health::Bad, what, "see above; PUMICE_LOG=info says more")
            }
        }
    });
    findings.collect()
}

/// Compiles a kernel for a device and runs it. The compile cache may know it, but not what runs.
fn run_kernel(device: &Ref<Device>) -> ClResult {
    let context = Context::new(vec![device.clone()], Vec::new(), None, std::ptr::null_mut())?;
    let queue = Queue::new(&context, device, Vec::new())?;
    // Of its own each time, so that a compiler that is gone shows in spite of the cache.
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let source = format!(
        "kernel void examined(int n) {{ local int seen; seen = n + {}; barrier(CLK_LOCAL_MEM_FENCE); }}",
        now.map_or(0, |now| now.subsec_nanos())
    );
    let program = program::with_source(&context, source);
    program.build(None, "", None)?;
    let kernel = program.create_kernel("examined")?;
    kernel.set_arg(0, 4, Some(&1i32.to_le_bytes()))?;
    let target = &queue.target;
    let kind = pumice_runtime::cl::CL_COMMAND_TASK;
    let range = command::kernel::task();
    let command = command::kernel::launch(target, &kernel, &range, kind)?;
    queue.enqueue(command, &[], false, false)?;
    queue.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn icd_files_are_followed() {
        let dir = std::env::temp_dir().join(format!("pumice-doctor-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let load = |name: &str| match name {
            "/good/libpumice.so" => Ok(()),
            "/gone/libpumice.so" => Err("no such file".to_owned()),
            other => panic!("{other} was loaded"),
        };
        let states = || -> Vec<Health> {
            let findings = vendors(&dir, load);
            findings.iter().map(|finding| finding.state).collect()
        };
        // Nothing there, nothing in it, another's: none of them leads to us.
        assert!(states() == [Health::Lacking]);
        std::fs::write(dir.join("a.icd"), "\n").unwrap();
        std::fs::write(dir.join("b.icd"), "/other/libother.so\n").unwrap();
        std::fs::write(dir.join("not one"), "/good/libpumice.so\n").unwrap();
        assert!(states() == [Health::Lacking, Health::Good, Health::Lacking]);
        std::fs::write(dir.join("c.icd"), "/gone/libpumice.so\n").unwrap();
        assert!(states()[2..] == [Health::Bad, Health::Lacking]);
        std::fs::write(dir.join("c.icd"), "/good/libpumice.so\n").unwrap();
        assert!(states()[2..] == [Health::Good]);
        std::fs::remove_dir_all(&dir).unwrap();
        assert!(states() == [Health::Bad]);
    }
}
