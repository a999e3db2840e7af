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

/// The bits of a word of a set of processors.
#[cfg(target_os = "linux")]
const BITS: usize = usize::BITS as usize;

/// Returns the processors that a thread may use; 0 is the calling one.
///
/// The system refuses sets with fewer bits than it has processors, of which `cpu_set_t` has 1024.
#[cfg(target_os = "linux")]
fn of_thread(thread: libc::pid_t) -> Vec<u32> {
    let mut set = vec![0usize; size_of::<libc::cpu_set_t>() / size_of::<usize>()];
    // SAFETY: the set is as large as is said.
    while unsafe {
        libc::sched_getaffinity(thread, size_of_val(&*set), set.as_mut_ptr().cast()) != 0
    } {
        let error = std::io::Error::last_os_error().raw_os_error();
        if error != Some(libc::EINVAL) || set.len() * BITS > MOST_PROCESSORS {
            return Vec::new();
        }
        set = vec![0; set.len() * 2];
    }
    let is_in = |number: &usize| set[number / BITS] >> (number % BITS) & 1 == 1;
    let numbers = (0..set.len() * BITS).filter(is_in);
    numbers.map(|number| number as u32).collect()
}

/// A set of more bits is not tried: no Linux has as many processors.
#[cfg(target_os = "linux")]
const MOST_PROCESSORS: usize = 1 << 20;

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
    let words = numbers
        .iter()
        .max()
        .map_or(0, |&last| last as usize / BITS + 1);
    let mut set = vec![0usize; words];
    for &number in numbers {
        set[number as usize / BITS] |= 1 << (number as usize % BITS);
    }
    // SAFETY: the set is as large as is said.
    unsafe { libc::sched_setaffinity(0, size_of_val(&*set), set.as_ptr().cast()) == 0 }
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

    #[test]
    fn processors_may_have_any_number() {
        let thread = std::thread::spawn(|| {
            let first = of_thread(0)[0];
            // No machine has the second, which the system leaves out.
            assert!(stay_on(&[first, 1_000_000]));
            assert_eq!(of_thread(0), [first]);
            assert!(!stay_on(&[1_000_000]));
        });
        thread.join().expect("a thread");
    }
}
