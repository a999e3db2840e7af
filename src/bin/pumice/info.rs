//! `pumice info` and `pumice cache`.

use super::absent;
use pumice_runtime::backend::caps::DeviceKind;
use pumice_runtime::compile::{native, store::entries, toolchain};
use pumice_runtime::handle::Ref;
use pumice_runtime::object::device::Device;
use pumice_runtime::object::platform::Platform;
use pumice_runtime::util::config;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Prints devices and compiler; with `all`, everything that a device says of itself.
pub fn info(all: bool) -> Result<(), String> {
    super::print(|out| write_info(out, all))
}

fn write_info(out: &mut dyn Write, all: bool) -> io::Result<()> {
    let platform = Platform::open();
    let devices = &platform.devices;
    for (index, device) in devices.iter().enumerate() {
        write_summary(out, index, device)?;
        if all {
            write_details(out, device)?;
        }
    }
    if devices.is_empty() {
        writeln!(out, "no device is offered")?;
    }
    let names: Vec<&str> = devices.iter().map(|d| d.caps().name.as_str()).collect();
    for absent in absent::report(&names).absent {
        writeln!(out, "not offered: {}", absent.name)?;
        writeln!(out, "  because {}", absent.reason)?;
        writeln!(out, "  -> {}", absent.remedy)?;
    }
    match toolchain::get() {
        Some(toolchain) => writeln!(out, "compiler: {}", toolchain.identity),
        None => {
            writeln!(out, "compiler: none; OpenCL C programs cannot be built")?;
            writeln!(out, "  -> {}", super::doctor::INSTALL_CLANG)
        }
    }
}

/// Returns a size as people say it.
fn size(bytes: u64) -> String {
    match bytes >> 20 {
        0..10_240 => format!("{} MiB", bytes >> 20),
        _ => format!("{:.0} GiB", bytes as f64 / (1u64 << 30) as f64),
    }
}

fn write_summary(out: &mut dyn Write, index: usize, device: &Ref<Device>) -> io::Result<()> {
    let caps = device.caps();
    let native = device.backend.target().native;
    let kind = match caps.kind {
        DeviceKind::Cpu if native => "processor, without Vulkan",
        DeviceKind::Cpu => "software, through Vulkan",
        DeviceKind::Gpu if caps.unified_memory => "GPU with the host's memory, through Vulkan",
        DeviceKind::Gpu => "GPU, through Vulkan",
        DeviceKind::Accelerator => "accelerator, through Vulkan",
    };
    let (major, minor) = device.features.version();
    writeln!(out, "device {index}: {}", caps.name)?;
    writeln!(
        out,
        "  kind            {kind}; OpenCL {major}.{minor}, {} compute units",
        caps.compute_units
    )?;
    writeln!(
        out,
        "  memory          {}, one buffer up to {}; {} KiB local",
        size(caps.global_mem_size),
        size(caps.max_alloc_size),
        caps.local_mem_size >> 10
    )?;
    let has = [
        (caps.fp16, "half"),
        (caps.fp64, "double"),
        (caps.int64_atomics, "64-bit atomics"),
        (device.svm_capabilities() != 0, "shared virtual memory"),
        (caps.subgroup_size > 1, "sub-groups"),
    ];
    let (has, lacks): (Vec<_>, Vec<_>) = has.into_iter().partition(|(has, _)| *has);
    let names = |list: Vec<(bool, &'static str)>| {
        let names: Vec<_> = list.into_iter().map(|(_, name)| name).collect();
        names.join(", ")
    };
    writeln!(out, "  has             {}", names(has))?;
    if !lacks.is_empty() {
        writeln!(out, "  lacks           {}", names(lacks))?;
    }
    writeln!(out, "  driver          {}", caps.driver_version)
}

fn write_details(out: &mut dyn Write, device: &Ref<Device>) -> io::Result<()> {
    let caps = device.caps();
    writeln!(
        out,
        "  vendor          {} ({:#x})",
        caps.vendor, caps.vendor_id
    )?;
    writeln!(
        out,
        "  work-group      up to {} work-items, sub-groups of {}",
        caps.max_work_group_size, caps.subgroup_size
    )?;
    let quirks = match device.backend.target().native {
        true => native::quirks(caps.driver_uuid),
        false => caps.quirks.clone(),
    };
    let of_compiler = toolchain::get().map_or(Vec::new(), |tools| tools.quirks.names());
    let quirks = [quirks, of_compiler].concat();
    writeln!(out, "  quirks          {}", quirks.join(" "))?;
    let names = |list: Vec<(&'static str, (u32, u32, u32))>| {
        let names: Vec<_> = list.into_iter().map(|(name, _)| name).collect();
        names.join(" ")
    };
    let features = &device.features;
    writeln!(out, "  extensions      {}", names(features.extensions()))?;
    writeln!(
        out,
        "  OpenCL C        {}",
        names(features.opencl_c_features())
    )
}

/// Shows or empties the compile cache.
pub fn cache(clear: bool) -> Result<(), String> {
    let Some(dir) = &config::get().cache_dir else {
        return super::print(|out| {
            writeln!(
                out,
                "no cache (PUMICE_CACHE_DIR is empty, or there is no home directory)"
            )
        });
    };
    let kinds: Vec<(&str, PathBuf)> = entries::KINDS.map(|kind| (kind, dir.join(kind))).into();
    if clear {
        for (_, dir) in &kinds {
            match std::fs::remove_dir_all(dir) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(format!("cannot remove {}: {error}", dir.display()));
                }
                _ => {}
            }
        }
    }
    super::print(|out| {
        writeln!(out, "{}", dir.display())?;
        for (kind, dir) in &kinds {
            let (files, bytes) = contents(dir);
            writeln!(out, "  {kind:8} {files} entries, {} KiB", bytes >> 10)?;
        }
        Ok(())
    })
}

fn contents(dir: &Path) -> (usize, u64) {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .filter_map(|e| e.metadata().ok())
        .fold((0, 0), |(files, bytes), m| (files + 1, bytes + m.len()))
}
