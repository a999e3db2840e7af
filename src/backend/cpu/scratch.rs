//! Memory of a thread for the work-group that it runs: local memory and the frames of packs.

use std::cell::Cell;
use std::ptr::NonNull;

/// Alignment of both.
const ALIGN: usize = 128;
/// More than this is not kept for the next launch.
const MOST_KEPT: usize = 16 << 20;

#[derive(Default)]
struct Scratch {
    base: Option<NonNull<u8>>,
    size: usize,
}

impl Scratch {
    fn layout(size: usize) -> Option<std::alloc::Layout> {
        std::alloc::Layout::from_size_align(size, 4096).ok()
    }

    fn free(&mut self) {
        if let (Some(base), Some(layout)) = (self.base.take(), Self::layout(self.size)) {
            // SAFETY: allocated with this layout, freed once.
            unsafe { std::alloc::dealloc(base.as_ptr(), layout) };
        }
        self.size = 0;
    }

    fn grow(&mut self, size: usize) -> Option<*mut u8> {
        if self.size < size || self.base.is_none() {
            self.free();
            let size = size.max(64 << 10).next_multiple_of(4096);
            // SAFETY: the size is not zero.
            let base = unsafe { std::alloc::alloc(Self::layout(size)?) };
            self.base = NonNull::new(base);
            self.size = size;
        }
        self.base.map(NonNull::as_ptr)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        self.free();
    }
}

thread_local! {
    static SCRATCH: Cell<Scratch> = const { Cell::new(Scratch { base: None, size: 0 }) };
}

/// Calls `f` with local memory and frames of these sizes, contents undefined. Returns false if
/// there is no memory, as a line in the log says, and `f` was not called.
#[must_use]
pub fn with(local: usize, frames: usize, f: impl FnOnce(*mut u8, *mut u8)) -> bool {
    let start = local.next_multiple_of(ALIGN) + ALIGN;
    // A thread whose values are gone already, as destructors and handlers of `exit` find it, has memory for this call alone.
    let mut scratch = SCRATCH.try_with(Cell::take).unwrap_or_default();
    let Some(base) = scratch.grow(start + frames + ALIGN) else {
        crate::log!(
            Error,
            "no memory for a work-group: {} bytes",
            start + frames
        );
        return false;
    };
    f(base, base.wrapping_add(start));
    if scratch.size <= MOST_KEPT {
        let _ = SCRATCH.try_with(|kept| kept.set(scratch));
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_said() {
        assert!(with(100, 200, |local, frames| assert!(frames > local)));
        assert!(!with(usize::MAX >> 2, 0, |_, _| panic!(
            "no memory is that large"
        )));
        assert!(with(0, 0, |_, _| ()));
    }
}
