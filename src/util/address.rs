//! Reserved ranges of the process's address space.

use super::pages;
use std::ptr::NonNull;

/// Granularity of reservations in bytes.
pub const PAGE: u64 = 4096;

/// A range of addresses that nothing else in the process gets, with plain memory behind it. Pages that nobody touches
/// take no memory.
#[derive(Debug)]
pub struct Reservation {
    base: usize,
    size: usize,
}

impl Reservation {
    /// Reserves exactly this range; `None` if a part of it is in use, or cannot be had.
    pub fn at(base: u64, size: u64) -> Option<Self> {
        let granule = pages::GRANULE as u64;
        if base == 0 || !base.is_multiple_of(granule) || !size.is_multiple_of(PAGE) || size == 0 {
            return None;
        }
        let (base, size) = (usize::try_from(base).ok()?, usize::try_from(size).ok()?);
        base.checked_add(size)?;
        pages::map_at(base, size)?;
        Some(Self { base, size })
    }

    /// Returns the first byte.
    pub fn pointer(&self) -> Option<NonNull<u8>> {
        NonNull::new(self.base as *mut u8)
    }

    /// Releases the range without unmapping it: its new mapping has another owner.
    pub fn hand_over(self) {
        std::mem::forget(self);
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if let Some(base) = self.pointer() {
            // SAFETY: the range is ours, and who used it holds this.
            unsafe { pages::unmap(base, self.size) };
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_taken_once() {
        let base = 0x5a5a_0000_0000u64;
        let first = Reservation::at(base, 4 * PAGE).expect("a free range");
        assert_eq!(first.pointer().map(|p| p.as_ptr() as u64), Some(base));
        assert!(Reservation::at(base + PAGE, PAGE).is_none());
        assert!(Reservation::at(base + 5, PAGE).is_none(), "no page");
        // SAFETY: reserved above, readable and writable.
        unsafe {
            let last = (base + 4 * PAGE - 1) as *mut u8;
            assert_eq!(last.read(), 0);
            last.write(7);
        }
        drop(first);
        assert!(Reservation::at(base + PAGE, PAGE).is_some());
    }
}
