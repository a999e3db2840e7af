//! `pumice info` and `pumice cache`.

use pumice_runtime::compile::{native, store::entries, toolchain};
use pumice_runtime::object::platform::Platform;
use pumice_runtime::util::config;
use std::io::Write as _;
use std::path::Path;

/// Prints devices and compiler.
pub fn info() -> Result<(), String> {
    // Whoever reads may stop before the end.
    let mut out = std::io::stdout().lock();
    let platform = Platform::open();
    for (index, device) in platform.devices().iter().enumerate() {
        let caps = device.caps();
        let _ = writeln!(out, "device {index}: {}", caps.name);
        let _ = writeln!(
            out,
            "  vendor          {} ({:#x})",
            caps.vendor, caps.vendor_id
        );
        let _ = writeln!(out, "  driver          {}", caps.driver_version);
        let _ = writeln!(
            out,
            "  kind            {:?}, {} compute units",
            caps.kind, caps.compute_units
        );
        let _ = writeln!(
            out,
            "  global memory   {} MiB, one buffer up to {} MiB",
            caps.global_mem_size >> 20,
            caps.max_alloc_size >> 20
        );
        let _ = writeln!(out, "  local memory    {} KiB", caps.local_mem_size >> 10);
        let _ = writeln!(
            out,
            "  work-group      up to {} work-items, sub-groups of {}",
            caps.max_work_group_size, caps.subgroup_size
        );
        let quirks = match device.backend().target().native {
            true => native::quirks(),
            false => caps.quirks.clone(),
        };
        let _ = writeln!(out, "  quirks          {}", quirks.join(" "));
        let names: Vec<_> = device
            .features()
            .extensions()
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        let _ = writeln!(out, "  extensions      {}", names.join(" "));
        let names: Vec<_> = device
            .features()
            .opencl_c_features()
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        let _ = writeln!(out, "  OpenCL C        {}", names.join(" "));
    }
    if platform.devices().is_empty() {
        let _ = writeln!(out, "no device: no Vulkan loader, no Vulkan device with the required features, or PUMICE_DEVICES excludes all");
        let _ = writeln!(out, "(PUMICE_LOG=info tells which)");
    }
    let _ = match toolchain::get() {
        Some(toolchain) => writeln!(out, "compiler: {}", toolchain.identity),
        None => writeln!(out, "compiler: none; OpenCL C programs cannot be built"),
    };
    Ok(())
}

/// Shows or empties the compile cache.
pub fn cache(clear: bool) -> Result<(), String> {
    let mut out = std::io::stdout().lock();
    let Some(dir) = &config::get().cache_dir else {
        let _ = writeln!(
            out,
            "no cache (PUMICE_CACHE_DIR is empty, or there is no home directory)"
        );
        return Ok(());
    };
    let _ = writeln!(out, "{}", dir.display());
    for kind in entries::KINDS {
        let dir = dir.join(kind);
        if clear {
            match std::fs::remove_dir_all(&dir) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(format!("cannot remove {}: {error}", dir.display()));
                }
                _ => {}
            }
        }
        let (files, bytes) = contents(&dir);
        let _ = writeln!(out, "  {kind:8} {files} entries, {} KiB", bytes >> 10);
    }
    Ok(())
}

fn contents(dir: &Path) -> (usize, u64) {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .filter_map(|e| e.metadata().ok())
        .fold((0, 0), |(files, bytes), m| (files + 1, bytes + m.len()))
}
