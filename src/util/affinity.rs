//! The processors that threads may run on.

#[cfg(windows)]
use super::win32;
use std::sync::OnceLock;

/// Returns the processors of the process: all that any of its threads may use, as it was when this
/// was first asked, which is when the devices are made. Empty where the system does not say.
///
/// On Linux a process has no affinity of its own. The thread that asks may be kept to one processor for reasons of the
/// application, and so may be the first, whose affinity is taken for the process's: what all of them leave is it.
pub fn of_process() -> &'static [u32] {
    static NUMBERS: OnceLock<Vec<u32>> = OnceLock::new();
    NUMBERS.get_or_init(of_all_threads)
}

#[cfg(target_os = "linux")]
fn of_all_threads() -> Vec<u32> {
    let mut all = of_thread(0);
    let threads = std::fs::read_dir("/proc/self/task");
    for entry in threads.into_iter().flatten().flatten() {
        let number = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok());
        all.extend(number.map(of_thread).unwrap_or_default());
    }
    all.sort_unstable();
    all.dedup();
    all
}

/// Returns the processors that a thread may use; 0 is the calling one.
#[cfg(target_os = "linux")]
fn of_thread(thread: libc::pid_t) -> Vec<u32> {
    // SAFETY: a set of bits, for which zeros are a value.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the set is as large as is said.
    let got = unsafe { libc::sched_getaffinity(thread, std::mem::size_of_val(&set), &mut set) };
    if got != 0 {
        return Vec::new();
    }
    (0..libc::CPU_SETSIZE as usize)
        // SAFETY: within the set.
        .filter(|&number| unsafe { libc::CPU_ISSET(number, &set) })
        .map(|number| number as u32)
        .collect()
}

/// Returns the same. Of the process's group of processors, which has 64 at most.
#[cfg(windows)]
fn of_all_threads() -> Vec<u32> {
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
fn of_all_threads() -> Vec<u32> {
    Vec::new()
}

/// Keeps the calling thread to these processors. Returns false if the system does not allow it, and
/// nothing changes.
#[cfg(target_os = "linux")]
pub fn stay_on(numbers: &[u32]) -> bool {
    // SAFETY: a set of bits, for which zeros are a value.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    for &number in numbers {
        if (number as usize) < libc::CPU_SETSIZE as usize {
            // SAFETY: within the set.
            unsafe { libc::CPU_SET(number as usize, &mut set) };
        }
    }
    // SAFETY: the set is as large as is said.
    unsafe { libc::sched_setaffinity(0, std::mem::size_of_val(&set), &set) == 0 }
}

/// Restricts the thread to these processors. Returns false on failure.
#[cfg(windows)]
pub fn stay_on(numbers: &[u32]) -> bool {
    let bit = |&number: &u32| 1usize.checked_shl(number).unwrap_or(0);
    let mask = numbers.iter().map(bit).fold(0, |all, bit| all | bit);
    // SAFETY: the calling thread.
    unsafe { win32::SetThreadAffinityMask(win32::GetCurrentThread(), mask) != 0 }
}

/// Returns false, as this system has no affinity.
#[cfg(not(any(target_os = "linux", windows)))]
pub fn stay_on(_numbers: &[u32]) -> bool {
    true
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_thread_stays_where_it_was_put() {
        let all = of_thread(0);
        let last = *all.last().expect("a processor");
        let thread = std::thread::spawn(move || {
            assert!(stay_on(&[last]));
            // The process has not lost the others.
            (of_thread(0), of_all_threads())
        });
        let (own, process) = thread.join().expect("a thread");
        assert_eq!(own, [last]);
        assert!(all.iter().all(|number| process.contains(number)));
    }
}
