//! Memory that kernels and the runtime share for device queues: the records of a queue, the events of a device, what a launch
//! knows. `spirv_lowering::device_queue` has the layout and says who writes what.
//!
//! Kernels may write anything there, as to any memory: what is read is checked, and numbers that cannot be are taken for
//! the end of what there is.

use super::{Device, Memory, Placement, Result};
use parking_lot::Mutex;
use smallvec::SmallVec;
use spirv_lowering::device_queue::{event, events, queue, record};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Mapped memory, in words that others write too.
struct Words {
    memory: Arc<dyn Memory>,
    base: NonNull<u8>,
    size: usize,
}

// SAFETY: the memory is mapped as long as it lives, and is only reached by atomic operations.
unsafe impl Send for Words {}
// SAFETY: as above.
unsafe impl Sync for Words {}

impl Words {
    fn new(device: &dyn Device, size: usize) -> Result<Self> {
        let memory = device.allocate(size as u64, Placement::HostRead)?;
        let base = memory.mapped().ok_or_else(|| {
            super::DeviceError::Unsupported("memory of a device queue that is not mapped".into())
        })?;
        Ok(Self { memory, base, size })
    }

    /// The 32 bits at a place, a multiple of 4; a word of their own where there is no such place.
    fn word(&self, at: usize) -> &AtomicU32 {
        static NOWHERE: AtomicU32 = AtomicU32::new(0);
        if at % 4 != 0 || at.saturating_add(4) > self.size {
            return &NOWHERE;
        }
        // SAFETY: within the mapping, which is at least 256-byte aligned.
        unsafe { AtomicU32::from_ptr(self.base.as_ptr().add(at).cast()) }
    }

    fn get(&self, at: usize) -> u32 {
        self.word(at).load(Ordering::Relaxed)
    }

    fn set(&self, at: usize, value: u32) {
        self.word(at).store(value, Ordering::Relaxed);
    }

    fn get_long(&self, at: usize) -> u64 {
        u64::from(self.get(at)) | u64::from(self.get(at + 4)) << 32
    }

    fn set_long(&self, at: usize, value: u64) {
        self.set(at, value as u32);
        self.set(at + 4, (value >> 32) as u32);
    }
}

/// What a record says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// One of the kinds of [`record`].
    pub kind: u32,
    /// The number of the launch that wrote it.
    pub launch: u64,
    /// The number of the block.
    pub block: u64,
    /// kernel_enqueue_flags_t
    pub flags: u32,
    /// Dimensions of the ND-range.
    pub dims: u32,
    /// Offset, global size, local size.
    pub range: [u64; 9],
    /// The event, 0: none.
    pub event: u64,
    /// The wait list.
    pub waits: SmallVec<[u64; 2]>,
    /// Sizes of arguments in local memory, in bytes.
    pub locals: SmallVec<[u32; 2]>,
    /// What the block captured.
    pub captured: SmallVec<[u8; 64]>,
    /// Bytes that it takes of the queue until it is launched.
    pub size: u32,
}

/// The memory of a device queue.
pub struct QueueMemory {
    words: Words,
    ring: u32,
    /// One thread takes records at a time.
    taking: Mutex<()>,
}

impl QueueMemory {
    /// An empty queue for so many bytes of records, at most [`queue::MOST`].
    pub fn new(device: &dyn Device, limit: u32) -> Result<Self> {
        let ring = queue::ring(limit);
        let words = Words::new(device, queue::RING + ring as usize)?;
        for at in (0..queue::RING).step_by(4) {
            words.set(at, 0);
        }
        words.set(queue::LAST, ring - 1);
        words.set(queue::LIMIT, limit);
        Ok(Self {
            words,
            ring,
            taking: Mutex::new(()),
        })
    }

    /// Its device address.
    pub fn address(&self) -> u64 {
        self.words.memory.address()
    }

    /// Takes all records that there are now. Each is in the queue until [`QueueMemory::free`].
    ///
    /// Work-items that are under way may be writing some of them, which is soon over; no longer than the patience is waited
    /// for that. What comes after such a record is not taken before it.
    pub fn take(&self, patience: Duration, mut with: impl FnMut(Record)) {
        let _one = self.taking.lock();
        let w = &self.words;
        let mut head = w.get(queue::HEAD);
        let tail = w.word(queue::TAIL).load(Ordering::Acquire);
        let mut since: Option<Instant> = None;
        while head != tail {
            let at = (head & (self.ring - 1)) as usize;
            let place = queue::RING + at;
            let kind = w.word(place + record::KIND).load(Ordering::Acquire);
            let known = record::KERNEL..=record::PADDING;
            if kind & !15 != head || !known.contains(&(kind & 15)) {
                if since.get_or_insert_with(Instant::now).elapsed() >= patience {
                    break;
                }
                std::thread::yield_now();
                continue;
            }
            since = None;
            let size = w.get(place + record::SIZE);
            let least = if kind & 15 == record::PADDING {
                16
            } else {
                record::BODY as u32
            };
            if size < least || size % 16 != 0 || size > self.ring - at as u32 {
                crate::log!(
                    Error,
                    "a device queue was overwritten; its records are lost"
                );
                head = tail;
                break;
            }
            if kind & 15 != record::PADDING {
                if let Some(found) = self.record(place, kind & 15, size) {
                    // Before the head moves: the kernels that add both up must not find less than there is.
                    w.word(queue::WAITING).fetch_add(size, Ordering::AcqRel);
                    with(found);
                }
            }
            head = head.wrapping_add(size);
            w.word(queue::HEAD).store(head, Ordering::Release);
        }
        w.word(queue::HEAD).store(head, Ordering::Release);
    }

    fn record(&self, place: usize, kind: u32, size: u32) -> Option<Record> {
        let w = &self.words;
        let count = |at| w.get(place + at) as usize;
        let (waits, locals) = (count(record::WAITS), count(record::LOCALS));
        let captured = count(record::CAPTURED);
        let fits = waits <= size as usize / 8 && locals <= size as usize / 4;
        let first = fits.then(|| record::captured(waits, locals))?;
        if first.checked_add(captured)? > size as usize {
            return None;
        }
        let mut range = [0; 9];
        for (number, size) in range.iter_mut().enumerate() {
            *size = w.get_long(place + record::RANGE + 8 * number);
        }
        let after_waits = place + record::BODY + 8 * waits;
        let bytes = (0..captured.div_ceil(4))
            .flat_map(|word| w.get(place + first + 4 * word).to_ne_bytes())
            .take(captured);
        Some(Record {
            kind,
            launch: w.get_long(place + record::LAUNCH),
            block: w.get_long(place + record::BLOCK),
            flags: w.get(place + record::FLAGS),
            dims: w.get(place + record::DIMS),
            range,
            event: w.get_long(place + record::EVENT),
            waits: (0..waits)
                .map(|number| w.get_long(place + record::BODY + 8 * number))
                .collect(),
            locals: (0..locals)
                .map(|number| w.get(after_waits + 4 * number))
                .collect(),
            captured: bytes.collect(),
            size,
        })
    }

    /// A record that was taken is launched, or will never be.
    pub fn free(&self, size: u32) {
        self.words
            .word(queue::WAITING)
            .fetch_sub(size, Ordering::AcqRel);
    }
}

/// Execution status of a command that was submitted.
const SUBMITTED: i32 = 2;

/// The events of a device.
pub struct EventsMemory {
    words: Words,
    count: u32,
}

impl EventsMemory {
    /// So many events, a power of two, all free.
    pub fn new(device: &dyn Device, count: u32) -> Result<Self> {
        let size = events::FIRST + count as usize * event::SIZE;
        let words = Words::new(device, size)?;
        for at in (0..size).step_by(4) {
            words.set(at, 0);
        }
        words.set(events::COUNT, count);
        Ok(Self { words, count })
    }

    /// Its device address.
    pub fn address(&self) -> u64 {
        self.words.memory.address()
    }

    /// Where an event is in the memory, if there is one at that address.
    fn place(&self, address: u64) -> Option<usize> {
        let first = self.address() + events::FIRST as u64;
        let at = address.checked_sub(first)?;
        let size = event::SIZE as u64;
        (at.is_multiple_of(size) && at / size < u64::from(self.count))
            .then(|| events::FIRST + at as usize)
    }

    /// The status of an event: above 0 it is not complete, below 0 it has failed. What is no event has failed.
    pub fn status(&self, address: u64) -> i32 {
        match self.place(address) {
            Some(at) => self.words.word(at + event::STATUS).load(Ordering::Acquire) as i32,
            None => -1,
        }
    }

    /// Its status will be set by a kernel, and not by the runtime.
    pub fn is_user(&self, address: u64) -> bool {
        self.place(address)
            .is_some_and(|at| self.words.get(at + event::KIND) == event::USER)
    }

    /// A command is over: its times in nanoseconds, from its start to its end and to that of its children.
    pub fn complete(&self, address: u64, status: i32, times: [u64; 2]) {
        let Some(at) = self.place(address) else {
            return;
        };
        self.words.set_long(at + event::TIMES, times[0]);
        self.words.set_long(at + event::TIMES + 8, times[1]);
        let status = status.min(SUBMITTED) as u32;
        let place = self.words.word(at + event::STATUS);
        place.store(status, Ordering::Release);
    }

    /// The times of a complete command.
    pub fn times(&self, address: u64) -> [u64; 2] {
        self.place(address).map_or([0; 2], |at| {
            [0, 8].map(|next| self.words.get_long(at + event::TIMES + next))
        })
    }

    /// One reference less.
    pub fn release(&self, address: u64) {
        if let Some(at) = self.place(address) {
            let references = self.words.word(at + event::REFERENCES);
            // A kernel may have released too often.
            let _ =
                references.fetch_update(Ordering::AcqRel, Ordering::Acquire, |n| n.checked_sub(1));
        }
    }
}

/// Writes to memory at an address that a kernel gave, the times of an event.
///
/// On devices whose addresses are not the host's it cannot be done from here: false.
pub fn write_times(device: &dyn Device, address: u64, times: [u64; 2]) -> bool {
    if !device.caps().svm.system || address == 0 || address % 8 != 0 {
        return false;
    }
    for (number, time) in times.into_iter().enumerate() {
        let place = address as usize + 8 * number;
        // SAFETY: the kernel vouches for the memory, as for what it writes itself; device and host share addresses.
        unsafe { AtomicU64::from_ptr(place as *mut u64) }.store(time, Ordering::Relaxed);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::fake::{FakeDevice, Reach};

    /// Writes a record as kernels do.
    fn put(queue: &QueueMemory, number: u64, captured: &[u8]) -> bool {
        let w = &queue.words;
        let size = (record::captured(0, 0) + captured.len()).next_multiple_of(16) as u32;
        let (tail, head) = (w.get(queue::TAIL), w.get(queue::HEAD));
        let at = tail & (queue.ring - 1);
        let padding = if size > queue.ring - at {
            queue.ring - at
        } else {
            0
        };
        let used = tail.wrapping_sub(head);
        if used + w.get(queue::WAITING) + size > w.get(queue::LIMIT)
            || used + padding + size > queue.ring
        {
            return false;
        }
        let mut place = queue::RING + at as usize;
        if padding > 0 {
            w.set(place + record::SIZE, padding);
            w.set(place + record::KIND, tail | record::PADDING);
            place = queue::RING;
        }
        for at in (8..record::BODY).step_by(4) {
            w.set(place + at, 0);
        }
        w.set(place + record::SIZE, size);
        w.set_long(place + record::LAUNCH, number);
        w.set(place + record::CAPTURED, captured.len() as u32);
        for (word, bytes) in captured.chunks(4).enumerate() {
            let mut four = [0; 4];
            four[..bytes.len()].copy_from_slice(bytes);
            w.set(place + record::BODY + 4 * word, u32::from_ne_bytes(four));
        }
        w.set(queue::TAIL, tail.wrapping_add(padding + size));
        w.set(
            place + record::KIND,
            tail.wrapping_add(padding) | record::KERNEL,
        );
        true
    }

    /// Whatever their lengths, all records come out once, in order and whole; the queue is full as long as they wait.
    #[test]
    fn records_go_round() {
        let fake = FakeDevice::new(Reach::Cached);
        let queue = QueueMemory::new(fake.as_ref(), 3000).unwrap();
        let mut next = 0u64;
        let mut expected = 0u64;
        for round in 0..500 {
            let mut put_now = 0;
            loop {
                let captured: Vec<u8> = (0..(next * 7 % 300)).map(|n| (n + next) as u8).collect();
                if !put(&queue, next, &captured) {
                    break;
                }
                next += 1;
                put_now += 1;
            }
            assert!(put_now > 2, "round {round}: {put_now}");
            let mut taken = Vec::new();
            queue.take(Duration::ZERO, |record| taken.push(record));
            assert_eq!(taken.len() as u64, next - expected);
            assert!(!put(&queue, next, &[0; 2700]), "they wait");
            for record in taken {
                assert_eq!(record.launch, expected);
                let captured = (0..(expected * 7 % 300)).map(|n| (n + expected) as u8);
                assert!(record.captured.iter().copied().eq(captured));
                queue.free(record.size);
                expected += 1;
            }
        }
        assert!(expected > 2000);
    }

    /// What is being written is left, and what lay there before is not taken for it.
    #[test]
    fn unfinished_records_stay() {
        let fake = FakeDevice::new(Reach::Cached);
        let queue = QueueMemory::new(fake.as_ref(), 2048).unwrap();
        let all = |queue: &QueueMemory| {
            let mut count = 0;
            queue.take(Duration::ZERO, |record| {
                count += 1;
                queue.free(record.size);
            });
            count
        };
        for _ in 0..100 {
            assert!(put(&queue, 1, &[1; 16]));
            assert_eq!(all(&queue), 1);
        }
        // A place is reserved, where a record lay that was taken long ago.
        let tail = queue.words.get(queue::TAIL);
        queue.words.set(queue::TAIL, tail.wrapping_add(144));
        assert_eq!(all(&queue), 0);
    }

    #[test]
    fn events_are_told_from_what_is_none() {
        let fake = FakeDevice::new(Reach::Cached);
        let events = EventsMemory::new(fake.as_ref(), 4).unwrap();
        let first = events.address() + events::FIRST as u64;
        assert!(events.place(first).is_some() && events.place(first + 192).is_some());
        for wrong in [0, first - 64, first + 8, first + 256] {
            assert!(events.place(wrong).is_none(), "{wrong}");
            assert!(events.status(wrong) < 0);
            events.release(wrong);
        }
        events.complete(first, 0, [3, 4]);
        assert_eq!((events.status(first), events.times(first)), (0, [3, 4]));
        events.release(first);
        assert_eq!(events.words.get(events::FIRST), 0);
    }
}
