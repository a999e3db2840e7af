//! `pumice info` and `pumice cache`.

use pumice_runtime::compile::toolchain;
use pumice_runtime::object::platform::Platform;
use pumice_runtime::util::config;
use std::path::Path;

/// Prints devices and compiler.
pub fn info() -> Result<(), String> {
    let platform = Platform::open();
    for (index, device) in platform.devices().iter().enumerate() {
        let caps = device.caps();
        println!("device {index}: {}", caps.name);
        println!("  vendor          {} ({:#x})", caps.vendor, caps.vendor_id);
        println!("  driver          {}", caps.driver_version);
        println!(
            "  kind            {:?}, {} compute units",
            caps.kind, caps.compute_units
        );
        println!(
            "  global memory   {} MiB, one buffer up to {} MiB",
            caps.global_mem_size >> 20,
            caps.max_alloc_size >> 20
        );
        println!("  local memory    {} KiB", caps.local_mem_size >> 10);
        println!(
            "  work-group      up to {} work-items, sub-groups of {}",
            caps.max_work_group_size, caps.subgroup_size
        );
        println!("  quirks          {}", caps.quirks.join(" "));
        let names: Vec<_> = device
            .features()
            .extensions()
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        println!("  extensions      {}", names.join(" "));
        let names: Vec<_> = device
            .features()
            .opencl_c_features()
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        println!("  OpenCL C        {}", names.join(" "));
    }
    if platform.devices().is_empty() {
        println!("no device: no Vulkan loader, no Vulkan device with the required features, or PUMICE_DEVICES excludes all");
        println!("(PUMICE_LOG=info tells which)");
    }
    match toolchain::get() {
        Some(toolchain) => println!("compiler: {}", toolchain.identity),
        None => println!("compiler: none; OpenCL C programs cannot be built"),
    }
    Ok(())
}

/// Shows or empties the compile cache.
pub fn cache(clear: bool) -> Result<(), String> {
    let Some(dir) = &config::get().cache_dir else {
        println!("no cache (PUMICE_CACHE_DIR is empty, or there is no home directory)");
        return Ok(());
    };
    println!("{}", dir.display());
    for kind in ["spv", "ir", "unit", "vk", "pipeline"] {
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
        println!("  {kind:8} {files} entries, {} KiB", bytes >> 10);
    }
    Ok(())
}

fn contents(dir: &Path) -> (usize, u64) {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .filter_map(|e| e.metadata().ok())
        .fold((0, 0), |(files, bytes), m| (files + 1, bytes + m.len()))
}
