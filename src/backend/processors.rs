//! The processors that a device runs on, where it can be divided among them (OpenCL API specification, section 4.3).

#[cfg(windows)]
use crate::util::win32;
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

/// The processors that this process may use, in the order of their numbers. None where the system does not tell.
pub fn here() -> Vec<Processor> {
    let root = Path::new("/sys/devices/system");
    allowed()
        .into_iter()
        .map(|number| Processor {
            number,
            shares: Domain::ALL.map(|domain| shared(root, number, domain)),
        })
        .collect()
}

/// The numbers that the process's affinity leaves.
#[cfg(target_os = "linux")]
fn allowed() -> Vec<u32> {
    // SAFETY: a set of bits, for which zeros are a value.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the set is as large as is said.
    let got = unsafe { libc::sched_getaffinity(0, std::mem::size_of_val(&set), &mut set) };
    if got != 0 {
        return Vec::new();
    }
    (0..libc::CPU_SETSIZE as usize)
        // SAFETY: within the set.
        .filter(|&number| unsafe { libc::CPU_ISSET(number, &set) })
        .map(|number| number as u32)
        .collect()
}

/// The same. Of the process's group of processors, which has 64 at most.
#[cfg(windows)]
fn allowed() -> Vec<u32> {
    let (mut mine, mut all) = (0usize, 0usize);
    // SAFETY: places for the answers.
    let got =
        unsafe { win32::GetProcessAffinityMask(win32::GetCurrentProcess(), &mut mine, &mut all) };
    let mask = if got == 0 { 0 } else { mine };
    (0..usize::BITS)
        .filter(|&number| mask >> number & 1 == 1)
        .collect()
}

#[cfg(not(any(target_os = "linux", windows)))]
fn allowed() -> Vec<u32> {
    Vec::new()
}

/// The calling thread is to run on these processors alone. What the system does not allow is left as it is.
#[cfg(target_os = "linux")]
pub fn stay_on(numbers: &[u32]) {
    // SAFETY: a set of bits, for which zeros are a value.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    for &number in numbers {
        if (number as usize) < libc::CPU_SETSIZE as usize {
            // SAFETY: within the set.
            unsafe { libc::CPU_SET(number as usize, &mut set) };
        }
    }
    // SAFETY: the set is as large as is said.
    let done = unsafe { libc::sched_setaffinity(0, std::mem::size_of_val(&set), &set) };
    if done != 0 {
        crate::log!(Warn, "a thread cannot be kept on processors {numbers:?}");
    }
}

/// As above.
#[cfg(windows)]
pub fn stay_on(numbers: &[u32]) {
    let bit = |&number: &u32| 1usize.checked_shl(number).unwrap_or(0);
    let mask = numbers.iter().map(bit).fold(0, |all, bit| all | bit);
    // SAFETY: the calling thread.
    if unsafe { win32::SetThreadAffinityMask(win32::GetCurrentThread(), mask) } == 0 {
        crate::log!(Warn, "a thread cannot be kept on processors {numbers:?}");
    }
}

/// As above.
#[cfg(not(any(target_os = "linux", windows)))]
pub fn stay_on(_numbers: &[u32]) {}

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

    #[test]
    #[cfg(target_os = "linux")]
    fn a_thread_stays_where_it_is_told() {
        let all = here();
        let Some(last) = all.last().map(|p| p.number) else {
            panic!("no processor");
        };
        let seen = std::thread::spawn(move || {
            stay_on(&[last]);
            here()
        });
        let seen = seen.join().expect("a thread");
        assert_eq!(seen.iter().map(|p| p.number).collect::<Vec<_>>(), [last]);
    }
}
