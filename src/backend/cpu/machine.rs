//! The properties of the machine: its vectors, processors, memory and names.

use crate::backend::machine;
use crate::backend::processors::{self, Processor};

/// See the module.
#[derive(Debug, Clone)]
pub struct Machine {
    /// CL_DEVICE_NAME.
    pub name: String,
    /// CL_DEVICE_VENDOR.
    pub vendor: String,
    /// Its PCI vendor id.
    pub vendor_id: u32,
    /// Threads that run at the same time: what affinity and control groups leave.
    pub cores: usize,
    /// Their numbers and what they share, where the system tells: as many as `cores`.
    pub processors: Vec<Processor>,
    /// Bits of a vector.
    pub width: u32,
    /// The features that decide which code runs here.
    pub features: String,
    /// Bytes of memory, those of a control group if it has less.
    pub memory: u64,
    /// Bytes of the largest cache.
    pub cache: u64,
    /// The highest clock.
    pub clock_mhz: u32,
}

impl Machine {
    /// Returns the machine that this process runs on.
    pub fn here() -> Self {
        let Report {
            vendor,
            model,
            flags,
            memory,
        } = system::report();
        let (vendor, vendor_id) = match vendor.as_deref() {
            Some("GenuineIntel") => ("Intel", 0x8086),
            Some("AuthenticAMD") => ("AMD", 0x1022),
            Some("HygonGenuine") => ("Hygon", 0x1d94),
            _ if cfg!(target_arch = "aarch64") => ("ARM", 0x13b5),
            _ => ("Unknown", 0),
        };
        let model = model.unwrap_or_else(|| std::env::consts::ARCH.to_owned());
        let most = widest();
        let asked = crate::util::config::get().cpu_width;
        Self {
            name: model.clone(),
            vendor: vendor.to_owned(),
            vendor_id,
            cores: crate::util::cores(),
            processors: {
                let mut all = processors::here();
                all.truncate(crate::util::cores());
                all
            },
            width: asked.map_or(most, |asked| asked.clamp(128, most)),
            features: format!("{model} {flags} {asked:?}"),
            memory,
            cache: machine::processor_cache().unwrap_or(0),
            clock_mhz: machine::processor_clock().unwrap_or(machine::NOMINAL_CLOCK),
        }
    }

    /// Returns the number of work-items of a pack: as many as a vector has 32-bit elements.
    pub fn lanes(&self) -> u32 {
        match self.width {
            512.. => 16,
            256..512 => 8,
            _ => 4,
        }
    }
}

/// Returns the bits of the widest vectors that are worth using.
fn widest() -> u32 {
    #[cfg(target_arch = "x86_64")]
    {
        if std::arch::is_x86_feature_detected!("avx512f")
            && std::arch::is_x86_feature_detected!("avx512bw")
            && std::arch::is_x86_feature_detected!("avx512dq")
            && std::arch::is_x86_feature_detected!("avx512vl")
        {
            return 512;
        }
        if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma")
        {
            return 256;
        }
    }
    128
}

/// The properties of the machine that the operating system or the processor reports.
struct Report {
    /// The vendor of the processor, in twelve letters.
    vendor: Option<String>,
    /// The processor's name.
    model: Option<String>,
    /// The processor's features, in any form that differs where they do.
    flags: String,
    /// Bytes of memory.
    memory: u64,
}

#[cfg(not(windows))]
mod system {
    use super::Report;

    pub fn report() -> Report {
        let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let field = |name: &str| {
            let line = info
                .lines()
                .find(|line| line.split(':').next().is_some_and(|key| key.trim() == name))?;
            Some(line.split_once(':')?.1.trim().to_owned())
        };
        Report {
            vendor: field("vendor_id"),
            model: field("model name"),
            flags: field("flags")
                .or_else(|| field("Features"))
                .unwrap_or_default(),
            memory: memory(),
        }
    }

    /// Returns the bytes of memory.
    fn memory() -> u64 {
        let info = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let total = info
            .lines()
            .find_map(|line| line.strip_prefix("MemTotal:"))
            .and_then(|rest| rest.trim().strip_suffix("kB"))
            .and_then(|kib| kib.trim().parse::<u64>().ok())
            .map_or(1 << 30, |kib| kib << 10);
        let limits = [
            "/sys/fs/cgroup/memory.max",
            "/sys/fs/cgroup/memory/memory.limit_in_bytes",
        ];
        let limit = limits
            .iter()
            .filter_map(|path| {
                std::fs::read_to_string(path)
                    .ok()?
                    .trim()
                    .parse::<u64>()
                    .ok()
            })
            .min();
        limit.map_or(total, |limit| limit.min(total))
    }
}

#[cfg(windows)]
mod system {
    use super::Report;
    use crate::util::win32;

    pub fn report() -> Report {
        let mut report = processor();
        // SAFETY: numbers alone.
        let mut status: win32::MemoryStatus = unsafe { std::mem::zeroed() };
        status.length = size_of::<win32::MemoryStatus>() as u32;
        // SAFETY: a structure of the size that it says.
        if unsafe { win32::GlobalMemoryStatusEx(&mut status) } != 0 {
            report.memory = status.total_physical;
        }
        report
    }

    /// Returns the properties that the processor reports.
    #[cfg(target_arch = "x86_64")]
    fn processor() -> Report {
        use std::arch::x86_64::{__cpuid_count, CpuidResult};
        let text = |words: &[u32]| {
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            let text = String::from_utf8_lossy(&bytes);
            let text = text.trim_matches(|c: char| c == '\0' || c.is_whitespace());
            (!text.is_empty()).then(|| text.to_owned())
        };
        // Every processor of this architecture has the instruction; leaves that it lacks are those of another, or zeros.
        let leaf = |number: u32, part: u32| __cpuid_count(number, part);
        let all = |CpuidResult { eax, ebx, ecx, edx }| [eax, ebx, ecx, edx];
        let first = leaf(0, 0);
        let names = if leaf(0x8000_0000, 0).eax >= 0x8000_0004 {
            [0x8000_0002, 0x8000_0003, 0x8000_0004]
                .map(|number| all(leaf(number, 0)))
                .concat()
        } else {
            Vec::new()
        };
        let mut version = leaf(1, 0);
        // The number of the processor that this runs on.
        version.ebx &= 0x00ff_ffff;
        Report {
            vendor: text(&[first.ebx, first.edx, first.ecx]),
            model: text(&names),
            flags: format!(
                "{:x?} {:x?} {:x?}",
                all(version),
                all(leaf(7, 0)),
                all(leaf(7, 1))
            ),
            memory: 1 << 30,
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn processor() -> Report {
        Report {
            vendor: None,
            model: std::env::var("PROCESSOR_IDENTIFIER").ok(),
            flags: String::new(),
            memory: 1 << 30,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_here() {
        let machine = Machine::here();
        assert!(machine.cores > 0 && machine.memory >= 1 << 26);
        assert!(matches!(machine.lanes(), 4 | 8 | 16));
        assert!(machine.width >= 32 * machine.lanes());
    }
}
