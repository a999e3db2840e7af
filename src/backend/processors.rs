//! The processors that a device runs on, where it can be divided among them (OpenCL API specification, section 4.3).

use crate::util::affinity;
use std::path::Path;

/// Something that processors share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Domain {
    Numa,
    L4,
    L3,
    L2,
    L1,
}

impl Domain {
    /// From the widest to the narrowest: the order in which CL_DEVICE_AFFINITY_DOMAIN_NEXT_PARTITIONABLE tries them.
    pub const ALL: [Self; 5] = [Self::Numa, Self::L4, Self::L3, Self::L2, Self::L1];

    fn level(self) -> Option<u32> {
        match self {
            Self::Numa => None,
            Self::L4 => Some(4),
            Self::L3 => Some(3),
            Self::L2 => Some(2),
            Self::L1 => Some(1),
        }
    }
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Processor {
    /// Its number in the operating system.
    pub number: u32,
    /// For each of [`Domain::ALL`] the processors that it shares that with, as the system writes them; None: not known.
    pub shares: [Option<String>; 5],
}

/// Returns the processors that this process may use, in the order of their numbers. Returns `None`
/// where the system does not report them.
pub fn here() -> Vec<Processor> {
    let root = Path::new("/sys/devices/system");
    affinity::of_process()
        .iter()
        .map(|&number| Processor {
            number,
            shares: Domain::ALL.map(|domain| shared(root, number, domain)),
        })
        .collect()
}

fn shared(root: &Path, number: u32, domain: Domain) -> Option<String> {
    let cpu = root.join(format!("cpu/cpu{number}"));
    let text = |path: &Path| Some(std::fs::read_to_string(path).ok()?.trim().to_owned());
    let entries = |path: &Path| std::fs::read_dir(path).ok();
    let Some(level) = domain.level() else {
        let node = entries(&cpu)?.flatten().find_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let digits = name.strip_prefix("node")?;
            digits.parse::<u32>().ok().map(|_| name)
        });
        return node;
    };
    entries(&cpu.join("cache"))?.flatten().find_map(|entry| {
        let at = entry.path();
        let same = text(&at.join("level"))? == level.to_string();
        let is_data = text(&at.join("type"))? != "Instruction";
        (same && is_data).then(|| text(&at.join("shared_cpu_list")))?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_says() {
        let root = std::env::temp_dir().join(format!("pumice-cpus-{}", std::process::id()));
        let cache = |index: u32, level: &str, kind: &str, list: &str| {
            let at = root.join(format!("cpu/cpu3/cache/index{index}"));
            std::fs::create_dir_all(&at).expect("a folder");
            for (name, text) in [("level", level), ("type", kind), ("shared_cpu_list", list)] {
                std::fs::write(at.join(name), format!("{text}\n")).expect("a file");
            }
        };
        cache(0, "1", "Instruction", "9");
        cache(1, "1", "Data", "2-3");
        cache(2, "2", "Unified", "0-3");
        std::fs::create_dir_all(root.join("cpu/cpu3/node1")).expect("a folder");
        let of = |domain| shared(&root, 3, domain);
        assert_eq!(of(Domain::L1).as_deref(), Some("2-3"));
        assert_eq!(of(Domain::L2).as_deref(), Some("0-3"));
        assert_eq!(of(Domain::L3), None);
        assert_eq!(of(Domain::Numa).as_deref(), Some("node1"));
        assert_eq!(shared(&root, 4, Domain::L1), None);
        let _ = std::fs::remove_dir_all(&root);
    }
}
