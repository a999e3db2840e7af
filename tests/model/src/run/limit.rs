//! A limit of this process's memory, for as long as a program runs.

/// Puts the limit back when it is dropped.
#[cfg(target_os = "linux")]
pub struct Limit(libc::rlimit);

#[cfg(target_os = "linux")]
impl Limit {
    /// So many bytes more than the process has.
    pub fn new(more: u64) -> Self {
        let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
        let pages = text
            .split(' ')
            .next()
            .and_then(|word| word.parse::<u64>().ok());
        let bytes = pages.expect("a number of pages") * 4096 + more;
        let mut before = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        // SAFETY: structures that live across the calls.
        unsafe {
            libc::getrlimit(libc::RLIMIT_AS, &mut before);
            let limit = libc::rlimit {
                rlim_cur: bytes.min(before.rlim_max),
                ..before
            };
            libc::setrlimit(libc::RLIMIT_AS, &limit);
        }
        Self(before)
    }
}

#[cfg(target_os = "linux")]
impl Drop for Limit {
    fn drop(&mut self) {
        // SAFETY: a structure that lives across the call.
        unsafe { libc::setrlimit(libc::RLIMIT_AS, &self.0) };
    }
}

/// Other systems: none.
#[cfg(not(target_os = "linux"))]
pub struct Limit;

#[cfg(not(target_os = "linux"))]
impl Limit {
    /// None.
    pub fn new(_: u64) -> Self {
        Self
    }
}
