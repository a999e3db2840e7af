//! Work of commands that the host does, as plain data: copies and fills of memory that no device needs to see.

use smallvec::{smallvec, SmallVec};
use std::ops::Range;

/// The work of a command that the host does, once everything before it is done.
pub trait HostWork: Send + Sync {
    /// Runs the work. Called once.
    fn run(&self);
    /// Returns the memory of the application that it writes or reads; empty: none that other
    /// commands touch.
    fn touches(&self) -> SmallVec<[Range<usize>; 4]> {
        SmallVec::new()
    }
}

/// A copy within host memory.
pub struct HostCopy {
    dst: usize,
    src: usize,
    size: usize,
}

impl HostCopy {
    /// Creates a copy of `size` bytes. Source and destination must not overlap.
    ///
    /// # Safety
    /// `size` bytes must be readable from `src` and writable from `dst` on until the command has completed.
    pub unsafe fn new(dst: usize, src: usize, size: usize) -> Self {
        Self { dst, src, size }
    }
}

impl HostWork for HostCopy {
    fn run(&self) {
        // SAFETY: as promised to `new`.
        unsafe { crate::util::copy::copy(self.src, self.dst, self.size) };
    }

    fn touches(&self) -> SmallVec<[Range<usize>; 4]> {
        let range = |at: usize| at..at.wrapping_add(self.size);
        smallvec![range(self.dst), range(self.src)]
    }
}

/// A fill of host memory with a pattern.
pub struct HostFill {
    at: usize,
    size: usize,
    pattern: Vec<u8>,
}

impl HostFill {
    /// Creates a fill of `size` bytes, a multiple of the pattern's size.
    ///
    /// # Safety
    /// `size` bytes must be writable from `at` on until the command has completed.
    pub unsafe fn new(at: usize, size: usize, pattern: &[u8]) -> Self {
        Self {
            at,
            size,
            pattern: pattern.to_vec(),
        }
    }
}

impl HostWork for HostFill {
    fn run(&self) {
        // SAFETY: as promised to `new`.
        let bytes = unsafe { std::slice::from_raw_parts_mut(self.at as *mut u8, self.size) };
        for piece in bytes.chunks_exact_mut(self.pattern.len().max(1)) {
            piece.copy_from_slice(&self.pattern);
        }
    }

    fn touches(&self) -> SmallVec<[Range<usize>; 4]> {
        smallvec![self.at..self.at.wrapping_add(self.size)]
    }
}
