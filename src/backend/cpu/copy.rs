//! Copies and fills of memory.

use super::pool::{Pool, Shared};
use crate::backend::BufferCopy;
use std::sync::Arc;

/// The bytes from which on several threads copy or fill. Each gets one piece: the C library writes
/// past the caches from some megabytes on.
const PARALLEL: u64 = 8 << 20;

/// The multiple of which pieces are, in bytes.
const PIECE: u64 = 4096;

/// The source of the bytes that are written.
enum Source<'a> {
    /// The bytes at an address.
    Memory(*const u8),
    /// A pattern, over and over, whose length divides [`PIECE`].
    Pattern(&'a [u8]),
}

/// A copy or a fill that threads share.
struct Pieces<'a> {
    source: Source<'a>,
    to: *mut u8,
    bytes: u64,
    piece: u64,
}

// SAFETY: what they point to may be accessed by this operation alone, and no byte by two pieces.
unsafe impl Send for Pieces<'_> {}
// SAFETY: as above.
unsafe impl Sync for Pieces<'_> {}

/// Returns true if several threads are to share a copy or a fill.
fn pays(pool: &Pool, bytes: u64) -> bool {
    bytes >= PARALLEL && pool.cores() > 1
}

/// Writes one piece in each thread of a pool.
fn share(pool: &Arc<Pool>, source: Source<'_>, to: *mut u8, bytes: u64) {
    let cores = pool.cores() as u64;
    let pieces = Pieces {
        source,
        to,
        bytes,
        piece: bytes.div_ceil(cores).next_multiple_of(PIECE),
    };
    pool.run_shared(&pieces, cores, 1);
}

impl Shared for Pieces<'_> {
    fn run(&self, first: u64, count: u64) {
        let begin = (first * self.piece).min(self.bytes);
        let end = ((first + count) * self.piece).min(self.bytes);
        let (at, bytes) = (begin as usize, (end - begin) as usize);
        let to = self.to.wrapping_add(at);
        match self.source {
            // SAFETY: within the two ranges, which do not meet.
            Source::Memory(from) => unsafe {
                std::ptr::copy_nonoverlapping(from.add(at), to, bytes);
            },
            // SAFETY: within the range.
            Source::Pattern(pattern) => unsafe { fill_piece(to, bytes, pattern) },
        }
    }
}

/// Copies a region.
///
/// # Safety
/// All rows must lie within memory that is valid on either side, and nothing else may access it meanwhile.
pub unsafe fn copy(pool: &Arc<Pool>, from: *const u8, to: *mut u8, region: &BufferCopy) {
    let r = region;
    if r.rows == 1 && r.slices == 1 && pays(pool, r.bytes) {
        let from = from.wrapping_add(r.src_offset as usize);
        let to = to.wrapping_add(r.dst_offset as usize);
        if (from as u64).abs_diff(to as u64) >= r.bytes {
            return share(pool, Source::Memory(from), to, r.bytes);
        }
    }
    for slice in 0..r.slices {
        for row in 0..r.rows {
            let src = r.src_offset + slice * r.src_slice_pitch + row * r.src_row_pitch;
            let dst = r.dst_offset + slice * r.dst_slice_pitch + row * r.dst_row_pitch;
            // SAFETY: as the caller promises. Rows of one piece of memory may touch in ways the runtime allows.
            unsafe {
                std::ptr::copy(
                    from.wrapping_add(src as usize),
                    to.wrapping_add(dst as usize),
                    r.bytes as usize,
                );
            }
        }
    }
}

/// Fills `size` bytes with a pattern, over and over.
///
/// # Safety
/// The bytes must be valid for writes, and nothing else may access them meanwhile.
pub unsafe fn fill(pool: &Arc<Pool>, to: *mut u8, size: u64, pattern: &[u8]) {
    let divides = !pattern.is_empty() && (PIECE as usize).is_multiple_of(pattern.len());
    if divides && pays(pool, size) {
        return share(pool, Source::Pattern(pattern), to, size);
    }
    // SAFETY: as the caller promises.
    unsafe { fill_piece(to, size as usize, pattern) };
}

/// Fills `size` bytes in this thread.
///
/// # Safety
/// As of [`fill`].
unsafe fn fill_piece(to: *mut u8, size: usize, pattern: &[u8]) {
    if let Some(&first) = pattern
        .first()
        .filter(|&&b| pattern.iter().all(|&p| p == b))
    {
        // SAFETY: as the caller promises.
        unsafe { std::ptr::write_bytes(to, first, size) };
        return;
    }
    // A block of the pattern that stays in the cache, then that block: on whole cache lines, since it is read again and again.
    #[repr(align(64))]
    struct Block([u8; PIECE as usize]);
    let Block(ref mut block) = Block([0; PIECE as usize]);
    let unit = pattern.len().clamp(1, block.len());
    let whole = block.len() / unit * unit;
    for piece in block[..whole].chunks_exact_mut(unit) {
        piece.copy_from_slice(&pattern[..unit]);
    }
    let mut at = 0;
    while at < size {
        let bytes = whole.min(size - at);
        // SAFETY: as the caller promises; the block is ours.
        unsafe { std::ptr::copy_nonoverlapping(block.as_ptr(), to.wrapping_add(at), bytes) };
        at += bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fills_and_copies() {
        let pool = Pool::new(2);
        // Large ones are filled by two threads, with a last piece that is shorter.
        let large = PARALLEL as usize + 128;
        for unit in [1usize, 2, 4, 8, 12, 16, 128] {
            let pattern: Vec<u8> = (1..=unit as u8).collect();
            for size in [unit * 100, large / unit * unit] {
                let mut memory = vec![0u8; size + 1];
                // SAFETY: all but the last byte.
                unsafe { fill(&pool, memory.as_mut_ptr(), size as u64, &pattern) };
                assert!(memory[..size].chunks(unit).all(|piece| piece == pattern));
                assert_eq!(memory[size], 0);
            }
        }
        let from: Vec<u8> = (0..64).collect();
        let mut to = vec![0u8; 64];
        let region = BufferCopy {
            src_offset: 1,
            dst_offset: 2,
            bytes: 3,
            rows: 2,
            slices: 2,
            src_row_pitch: 8,
            src_slice_pitch: 16,
            dst_row_pitch: 4,
            dst_slice_pitch: 20,
        };
        // SAFETY: the last byte read is 1 + 16 + 8 + 3, the last written 2 + 20 + 4 + 3.
        unsafe { copy(&pool, from.as_ptr(), to.as_mut_ptr(), &region) };
        assert_eq!(to[2..5], [1, 2, 3]);
        assert_eq!(to[6..9], [9, 10, 11]);
        assert_eq!(to[22..25], [17, 18, 19]);
        assert_eq!(to[26..29], [25, 26, 27]);
        assert_eq!(to[9..22], [0; 13]);
        // By two threads, with a last piece that is shorter.
        let bytes = PARALLEL + 4097;
        let from: Vec<u8> = (0..bytes).map(|i| (i % 251) as u8).collect();
        let mut to = vec![0u8; bytes as usize + 1];
        let region = BufferCopy {
            src_offset: 0,
            dst_offset: 1,
            bytes,
            rows: 1,
            slices: 1,
            ..region
        };
        // SAFETY: both are that long.
        unsafe { copy(&pool, from.as_ptr(), to.as_mut_ptr(), &region) };
        assert!(to[1..] == from[..] && to[0] == 0);
        pool.close();
    }
}
