//! The properties of processors and cards that the operating system reports and Vulkan does not.
//! Missing ones are left out.

use std::path::Path;

fn number(path: impl AsRef<Path>) -> Option<u32> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// The clock in MHz of devices whose own cannot be found out. Programs multiply it by the compute units, and leave out a
/// device where the product is zero (BOINC).
pub const NOMINAL_CLOCK: u32 = 1000;

/// Returns the processor's highest clock in MHz.
pub fn processor_clock() -> Option<u32> {
    let configured = || {
        let khz = number("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq")?;
        Some(khz / 1000)
    };
    let current = || {
        let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
        let line = text.lines().find(|line| line.starts_with("cpu MHz"))?;
        let mhz: f32 = line.split(':').nth(1)?.trim().parse().ok()?;
        Some(mhz as u32)
    };
    configured().or_else(current).filter(|&mhz| mhz > 0)
}

/// Returns the processor's largest cache, in bytes.
pub fn processor_cache() -> Option<u64> {
    let caches = std::fs::read_dir("/sys/devices/system/cpu/cpu0/cache").ok()?;
    caches
        .flatten()
        .filter_map(|cache| std::fs::read_to_string(cache.path().join("size")).ok())
        .filter_map(|text| {
            let kib = text.trim().strip_suffix('K')?;
            kib.parse::<u64>().ok()?.checked_mul(1024)
        })
        .max()
}

/// Returns the highest clock of a card in MHz, by its domain, bus, device and function, as amdgpu,
/// i915 and xe report it.
pub fn card_clock([domain, bus, device, function]: [u32; 4]) -> Option<u32> {
    let name = format!("{domain:04x}:{bus:02x}:{device:02x}.{function}");
    clock_in(&Path::new("/sys/bus/pci/devices").join(name))
}

fn clock_in(card: &Path) -> Option<u32> {
    if let Ok(levels) = std::fs::read_to_string(card.join("pp_dpm_sclk")) {
        // "1: 2100Mhz *", the highest last.
        let mhz = |line: &str| {
            let digits = line.split(':').nth(1)?.trim();
            let end = digits.find(|c: char| !c.is_ascii_digit())?;
            digits.get(..end)?.parse().ok()
        };
        return levels.lines().filter_map(mhz).max();
    }
    if let Some(mhz) = number(card.join("tile0/gt0/freq0/max_freq")) {
        return Some(mhz);
    }
    let cards = std::fs::read_dir(card.join("drm")).ok()?;
    let clocks = cards
        .flatten()
        .filter_map(|entry| number(entry.path().join("gt_max_freq_mhz")));
    clocks.max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_of_cards() {
        let root = std::env::temp_dir().join(format!("pumice-card-{}", std::process::id()));
        let intel = root.join("intel/drm/card0");
        let amd = root.join("amd");
        std::fs::create_dir_all(&intel).expect("a folder");
        std::fs::create_dir_all(&amd).expect("a folder");
        std::fs::write(intel.join("gt_max_freq_mhz"), "1450\n").expect("a file");
        std::fs::write(amd.join("pp_dpm_sclk"), "0: 500Mhz\n1: 2100Mhz *\n").expect("a file");
        assert_eq!(clock_in(&root.join("intel")), Some(1450));
        assert_eq!(clock_in(&amd), Some(2100));
        assert_eq!(clock_in(&root.join("none")), None);
        let _ = std::fs::remove_dir_all(&root);
    }
}
