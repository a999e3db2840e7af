//! `pumice info` and `pumice cache`.

use pumice_runtime::compile::{native, store::entries, toolchain};
use pumice_runtime::object::platform::Platform;
use pumice_runtime::util::config;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Prints devices and compiler.
pub fn info() -> Result<(), String> {
    super::print(write_info)
}

fn write_info(out: &mut dyn Write) -> io::Result<()> {
    let platform = Platform::open();
    for (index, device) in platform.devices().iter().enumerate() {
        let caps = device.caps();
        writeln!(out, "device {index}: {}", caps.name)?;
        writeln!(
            out,
            "  vendor          {} ({:#x})",
            caps.vendor, caps.vendor_id
        )?;
        writeln!(out, "  driver          {}", caps.driver_version)?;
        writeln!(
            out,
            "  kind            {:?}, {} compute units",
            caps.kind, caps.compute_units
        )?;
        writeln!(
            out,
            "  global memory   {} MiB, one buffer up to {} MiB",
            caps.global_mem_size >> 20,
            caps.max_alloc_size >> 20
        )?;
        writeln!(out, "  local memory    {} KiB", caps.local_mem_size >> 10)?;
        writeln!(
            out,
            "  work-group      up to {} work-items, sub-groups of {}",
            caps.max_work_group_size, caps.subgroup_size
        )?;
        let quirks = match device.backend().target().native {
            true => native::quirks(),
            false => caps.quirks.clone(),
        };
        writeln!(out, "  quirks          {}", quirks.join(" "))?;
        let names: Vec<_> = device
            .features()
            .extensions()
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        writeln!(out, "  extensions      {}", names.join(" "))?;
        let names: Vec<_> = device
            .features()
            .opencl_c_features()
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        writeln!(out, "  OpenCL C        {}", names.join(" "))?;
    }
    if platform.devices().is_empty() {
        writeln!(out, "no device: no Vulkan loader, no Vulkan device with the required features, or PUMICE_DEVICES excludes all")?;
        writeln!(out, "(PUMICE_LOG=info tells which)")?;
    }
    match toolchain::get() {
        Some(toolchain) => writeln!(out, "compiler: {}", toolchain.identity),
        None => writeln!(out, "compiler: none; OpenCL C programs cannot be built"),
    }
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
