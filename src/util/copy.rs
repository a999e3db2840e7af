//! Copies of large pieces of host memory by several threads: one thread reaches a fraction of what memory and bus can do.
//!
//! The helpers start at the first large copy and stay. A copy is cut into parts; the caller does parts itself, those too that
//! no helper comes to, and waits for what is under way.

use crossbeam_channel::{Receiver, Sender};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// Below this a copy is not worth cutting.
const LEAST: usize = 1 << 20;
/// Bytes of a part at least.
const PART: usize = 256 << 10;
/// Threads that copy at most, the caller included.
const THREADS: usize = 4;
/// Parts for each of them.
const SHARES: usize = 4;

struct CopyJob {
    src: usize,
    dst: usize,
    size: usize,
    left: Arc<AtomicUsize>,
}

fn work(parts: &Receiver<CopyJob>) {
    for part in parts {
        work_one(&part);
    }
}

fn work_one(part: &CopyJob) {
    // SAFETY: whoever sent the part waits until it is done and vouches for both ranges till then.
    unsafe { std::ptr::copy_nonoverlapping(part.src as *const u8, part.dst as *mut u8, part.size) };
    part.left.fetch_sub(1, Ordering::Release);
}

struct Helpers {
    sender: Sender<CopyJob>,
    /// For the caller, who helps.
    receiver: Receiver<CopyJob>,
    threads: usize,
}

fn helpers() -> Option<&'static Helpers> {
    static HELPERS: OnceLock<Option<Helpers>> = OnceLock::new();
    HELPERS
        .get_or_init(|| {
            let wanted = super::cores().min(THREADS).saturating_sub(1);
            let (sender, receiver) = crossbeam_channel::unbounded::<CopyJob>();
            let started = (0..wanted)
                .filter(|_| {
                    let receiver = receiver.clone();
                    super::thread::spawn("pumice-copy", move || work(&receiver)).is_ok()
                })
                .count();
            (started > 0).then_some(Helpers {
                sender,
                receiver,
                threads: started,
            })
        })
        .as_ref()
}

/// Copies `size` bytes.
///
/// # Safety
/// `src` must be readable and `dst` writable for `size` bytes. They may overlap.
pub unsafe fn copy(src: usize, dst: usize, size: usize) {
    let overlap = src < dst.wrapping_add(size) && dst < src.wrapping_add(size);
    let helpers = if size < LEAST || overlap {
        None
    } else {
        helpers()
    };
    let Some(helpers) = helpers else {
        // SAFETY: the caller vouches for both ranges.
        unsafe { std::ptr::copy(src as *const u8, dst as *mut u8, size) };
        return;
    };
    let shares = (helpers.threads + 1) * SHARES;
    let part = size.div_ceil(shares).max(PART).next_multiple_of(4096);
    let left = Arc::new(AtomicUsize::new(0));
    let mut at = part;
    while at < size {
        let length = part.min(size - at);
        left.fetch_add(1, Ordering::Relaxed);
        let job = CopyJob {
            src: src + at,
            dst: dst + at,
            size: length,
            left: left.clone(),
        };
        if let Err(refused) = helpers.sender.send(job) {
            work_one(&refused.0);
        }
        at += length;
    }
    // SAFETY: the first part of both ranges.
    unsafe { std::ptr::copy_nonoverlapping(src as *const u8, dst as *mut u8, part.min(size)) };
    // Helpers may have no core.
    while let Ok(other) = helpers.receiver.try_recv() {
        work_one(&other);
    }
    let mut spins = 0u32;
    while left.load(Ordering::Acquire) > 0 {
        spins += 1;
        if spins < 20_000 {
            std::hint::spin_loop();
        } else {
            std::thread::yield_now();
        }
    }
}

/// Copies `size` bytes from memory that the processor does not cache (a device's memory, mapped).
///
/// Plain loads from such memory go over the bus one at a time, and a cache line takes several. Streaming loads fetch a line
/// at once, and several lines are under way together.
///
/// # Safety
/// `src` must be readable and `dst` writable for `size` bytes. They may overlap.
pub unsafe fn copy_uncached(src: usize, dst: usize, size: usize) {
    let overlap = src < dst.wrapping_add(size) && dst < src.wrapping_add(size);
    #[cfg(target_arch = "x86_64")]
    if !overlap && std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has the instructions; the caller vouches for both ranges.
        unsafe { streaming(src, dst, size) };
        return;
    }
    let _ = overlap;
    // SAFETY: the caller vouches for both ranges.
    unsafe { std::ptr::copy(src as *const u8, dst as *mut u8, size) };
}

/// Copies with streaming loads.
///
/// # Safety
/// As [`copy_uncached`], of ranges that do not overlap, on a processor with AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn streaming(src: usize, dst: usize, size: usize) {
    use std::arch::x86_64::{
        __m256i, _mm256_setzero_si256, _mm256_storeu_si256, _mm256_stream_load_si256, _mm_mfence,
    };
    const VECTOR: usize = size_of::<__m256i>();
    /// Vectors fetched before the first is used: four lines.
    const AT_ONCE: usize = 8;
    let plain = |at: usize, size: usize| {
        // SAFETY: a part of both ranges.
        unsafe {
            std::ptr::copy_nonoverlapping((src + at) as *const u8, (dst + at) as *mut u8, size)
        };
    };
    let head = (src.next_multiple_of(64) - src).min(size);
    plain(0, head);
    let mut at = head;
    // Lines that streaming loads before have left behind are dropped.
    _mm_mfence();
    while size - at >= AT_ONCE * VECTOR {
        let mut vectors = [_mm256_setzero_si256(); AT_ONCE];
        for (number, vector) in vectors.iter_mut().enumerate() {
            // SAFETY: within the source, and aligned: `src + at` is a multiple of 64.
            *vector =
                unsafe { _mm256_stream_load_si256((src + at + number * VECTOR) as *const __m256i) };
        }
        for (number, vector) in vectors.into_iter().enumerate() {
            // SAFETY: within the destination.
            unsafe { _mm256_storeu_si256((dst + at + number * VECTOR) as *mut __m256i, vector) };
        }
        at += AT_ONCE * VECTOR;
    }
    plain(at, size - at);
}

#[cfg(test)]
mod tests {
    #[test]
    fn uncached() {
        let src: Vec<u8> = (0..3000u32).map(|n| (n * 31 % 251) as u8).collect();
        for begin in [0, 1, 63, 64] {
            for size in [0, 1, 64, 255, 256, 257, 1024, 2900] {
                let mut dst = vec![0u8; size + 1];
                // SAFETY: both vectors have that many bytes from there on.
                unsafe {
                    super::copy_uncached(
                        src.as_ptr() as usize + begin,
                        dst.as_mut_ptr() as usize,
                        size,
                    )
                };
                assert!(dst[..size] == src[begin..begin + size] && dst[size] == 0);
            }
        }
    }

    #[test]
    fn every_byte_arrives() {
        for size in [0, 1, 4095, 1 << 20, (1 << 20) + 1, (5 << 20) + 777] {
            let src: Vec<u8> = (0..size).map(|n| (n * 31 % 251) as u8).collect();
            let mut dst = vec![0u8; size];
            // SAFETY: both vectors have `size` bytes.
            unsafe { super::copy(src.as_ptr() as usize, dst.as_mut_ptr() as usize, size) };
            assert!(src == dst, "{size}");
        }
    }
}
