//! The memory of a device queue, with the records that kernels write. `spirv_lowering::device_queue` has the layout and says
//! who writes what.
//!
//! Records are *found* by whoever looks, since those of several launches lie among one another. A record is *read* at once
//! where the host sees what kernels write in its order; elsewhere by the one that it is for, when the launch that wrote it
//! has ended, and until then nothing behind it goes.
//!
//! Kernels may write anything there, as to any memory: what is read is checked, and numbers that cannot be are taken for
//! the end of what there is.

use super::words::{MainUser, Words};
use super::{Device, Result};
use crate::util::lock::{rank, Mutex};
use smallvec::SmallVec;
use spirv_lowering::device_queue::{queue, record};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering};

/// A record, decoded.
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
    /// The captures of the block.
    pub captured: SmallVec<[u8; 64]>,
    /// Bytes that it takes of the queue until it is launched.
    pub size: u32,
}

/// A record that was found in a queue, and is there until [`QueueMemory::read`] or [`QueueMemory::forget`].
pub struct Found {
    /// The number of the launch that wrote it.
    pub launch: u64,
    position: u32,
    size: u32,
    kind: u32,
    /// Read already.
    record: Option<Record>,
}

/// A piece of the ring.
struct Piece {
    position: u32,
    size: u32,
    /// Nothing in it is wanted any more.
    over: bool,
}

/// How far records have been taken.
struct Taking {
    /// Where the next one to be found begins.
    next: u32,
    /// The records that were found and not forgotten, from the head on.
    pieces: VecDeque<Piece>,
}

/// The memory of a device queue.
pub struct QueueMemory {
    words: Words,
    ring: Words,
    /// Bytes of the ring.
    size: u32,
    /// The host sees what kernels write in their order, so that a record whose last word is there is there.
    ordered: bool,
    taking: Mutex<Taking, { rank::ENQUEUED_BY_KERNELS }>,
    /// Bytes of records that were read and not launched.
    waiting: parking_lot::Mutex<u32>,
}

/// Returns the count at which a queue begins, so that records of an earlier queue in the same
/// memory are not taken for its own.
fn beginning() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    NEXT.fetch_add(0x9e37_79b0, Ordering::Relaxed)
}

impl QueueMemory {
    /// Creates an empty queue for records of `limit` bytes together, at most [`queue::MOST`].
    pub fn new(device: &dyn Device, limit: u32) -> Result<Self> {
        let size = queue::ring(limit);
        let words = Words::new(device, queue::SIZE, MainUser::Device)?.cleared();
        let ring = Words::new(device, size as usize, MainUser::Host)?;
        let next = beginning();
        words.set(queue::LAST, size - 1);
        words.set(queue::LIMIT, limit);
        words.set_long(queue::RING, ring.memory.address());
        words.set(queue::TAIL, next);
        words.set(queue::HEAD, next);
        Ok(Self {
            words,
            ring,
            size,
            ordered: device.caps().ordered_writes,
            taking: Mutex::new(Taking {
                next,
                pieces: VecDeque::new(),
            }),
            waiting: Default::default(),
        })
    }

    /// Returns the device address.
    pub fn address(&self) -> u64 {
        self.words.memory.address()
    }

    /// Finds the records that are in the queue now, each once. Their launches may still be running.
    /// Records after one that is being written are not found before it is complete: then its
    /// position is returned.
    pub fn find(&self, mut with: impl FnMut(Found)) -> Option<u32> {
        let mut taking = self.taking.lock();
        let tail = self.words.word(queue::TAIL).load(Ordering::Acquire);
        let mut stuck = None;
        while taking.next != tail {
            let position = taking.next;
            let at = self.at(position);
            let word = self.ring.word(at + record::KIND).load(Ordering::Acquire);
            let kind = word & 15;
            let size = self.ring.get(at + record::SIZE);
            let launch = match kind {
                record::PADDING => 0,
                _ => self.ring.get_long(at + record::LAUNCH),
            };
            let written = word & !15 == position
                && (record::KERNEL..=record::PADDING).contains(&kind)
                && self.ring.get(at + record::CHECK) == record::check(word, size, launch);
            if !written {
                stuck = Some(position);
                break;
            }
            let least = match kind {
                record::PADDING => 16,
                _ => record::BODY as u32,
            };
            if size < least || size % 16 != 0 || size > self.size - at as u32 {
                Self::lose(&mut taking, tail);
                break;
            }
            taking.next = position.wrapping_add(size);
            let mut over = kind == record::PADDING;
            if !over {
                let mut found = Found {
                    launch,
                    position,
                    size,
                    kind,
                    record: None,
                };
                if self.ordered {
                    found.record = self.record(&found);
                    // One that makes no sense is none.
                    over = true;
                    self.wait(found.record.as_ref().map_or(0, |record| record.size));
                }
                if !self.ordered || found.record.is_some() {
                    with(found);
                }
            }
            taking.pieces.push_back(Piece {
                position,
                size,
                over,
            });
        }
        self.give_back(&mut taking);
        stuck
    }

    /// Reads a record that was found. The launch that wrote it must have ended. It counts in the
    /// queue until [`QueueMemory::free`]. Returns `None` if it makes no sense.
    pub fn read(&self, mut found: Found) -> Option<Record> {
        if let Some(record) = found.record.take() {
            return Some(record);
        }
        let record = self.record(&found);
        self.wait(record.as_ref().map_or(0, |record| record.size));
        self.leave(found.position);
        record
    }

    /// Discards a record that was found.
    pub fn forget(&self, found: Found) {
        match found.record {
            Some(record) => self.free(record.size),
            None => self.leave(found.position),
        }
    }

    /// Skips the record at a position that will never be complete, if it is the next one. It and
    /// all records after it are lost.
    pub fn skip(&self, position: u32) {
        let mut taking = self.taking.lock();
        if taking.next == position {
            let tail = self.words.word(queue::TAIL).load(Ordering::Acquire);
            Self::lose(&mut taking, tail);
            self.give_back(&mut taking);
        }
    }

    /// Frees the bytes of a record that is launched or discarded.
    pub fn free(&self, size: u32) {
        let mut waiting = self.waiting.lock();
        *waiting = waiting.wrapping_sub(size);
        self.words.set(queue::WAITING, *waiting);
    }

    fn at(&self, position: u32) -> usize {
        (position & (self.size - 1)) as usize
    }

    /// Adds to the bytes that wait, before the head moves. Kernels add the two, and must never find
    /// less than there is.
    fn wait(&self, size: u32) {
        let mut waiting = self.waiting.lock();
        *waiting = waiting.wrapping_add(size);
        self.words.set(queue::WAITING, *waiting);
    }

    fn lose(taking: &mut Taking, tail: u32) {
        crate::log!(
            Error,
            "a device queue was overwritten; its records are lost"
        );
        taking.pieces.push_back(Piece {
            position: taking.next,
            size: tail.wrapping_sub(taking.next),
            over: true,
        });
        taking.next = tail;
    }

    fn leave(&self, position: u32) {
        let mut taking = self.taking.lock();
        // They are in the order of the count, which may go round.
        let first = taking.pieces.front().map_or(0, |piece| piece.position);
        let found = taking
            .pieces
            .binary_search_by_key(&position.wrapping_sub(first), |piece| {
                piece.position.wrapping_sub(first)
            });
        if let Some(piece) = found.ok().and_then(|at| taking.pieces.get_mut(at)) {
            piece.over = true;
        }
        self.give_back(&mut taking);
    }

    /// Moves the head over records that are no longer needed.
    fn give_back(&self, taking: &mut Taking) {
        let mut head = None;
        while let Some(piece) = taking.pieces.front().filter(|piece| piece.over) {
            head = Some(piece.position.wrapping_add(piece.size));
            taking.pieces.pop_front();
        }
        if let Some(head) = head {
            self.words.word(queue::HEAD).store(head, Ordering::Release);
        }
    }

    fn record(&self, found: &Found) -> Option<Record> {
        let w = &self.ring;
        let (place, size) = (self.at(found.position), found.size);
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
            kind: found.kind,
            launch: found.launch,
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::fake::{FakeDevice, Reach};

    fn new_queue(limit: u32, ordered: bool) -> QueueMemory {
        let fake = FakeDevice::new(Reach::Cached);
        let mut queue = QueueMemory::new(fake.as_ref(), limit).unwrap();
        queue.ordered = ordered;
        queue
    }

    /// Reserves the place of a record, as kernels do.
    fn reserve(queue: &QueueMemory, size: u32) -> Option<u32> {
        let w = &queue.words;
        let (tail, head) = (w.get(queue::TAIL), w.get(queue::HEAD));
        let left = queue.size - queue.at(tail) as u32;
        let padding = if size > left { left } else { 0 };
        let used = tail.wrapping_sub(head);
        if used + w.get(queue::WAITING) + size > w.get(queue::LIMIT)
            || used + padding + size > queue.size
        {
            return None;
        }
        w.set(queue::TAIL, tail.wrapping_add(padding + size));
        if padding > 0 {
            queue.ring.set(queue.at(tail) + record::SIZE, padding);
            hand_over(queue, tail, record::PADDING, 0);
        }
        let position = tail.wrapping_add(padding);
        queue.ring.set(queue.at(position) + record::SIZE, size);
        queue.ring.set(queue.at(position) + record::KIND, position);
        Some(position)
    }

    fn hand_over(queue: &QueueMemory, position: u32, kind: u32, launch: u64) {
        let (w, at) = (&queue.ring, queue.at(position));
        let check = record::check(position | kind, w.get(at + record::SIZE), launch);
        w.set(at + record::CHECK, check);
        w.set(at + record::KIND, position | kind);
    }

    fn size_of(captured: &[u8]) -> u32 {
        (record::captured(0, 0) + captured.len()).next_multiple_of(16) as u32
    }

    /// Writes a record at its position.
    fn write(queue: &QueueMemory, position: u32, number: u64, captured: &[u8]) {
        let (w, at) = (&queue.ring, queue.at(position));
        for word in (8..record::BODY).step_by(4) {
            w.set(at + word, 0);
        }
        w.set_long(at + record::LAUNCH, number);
        w.set(at + record::CAPTURED, captured.len() as u32);
        for (word, bytes) in captured.chunks(4).enumerate() {
            let mut four = [0; 4];
            four[..bytes.len()].copy_from_slice(bytes);
            w.set(at + record::BODY + 4 * word, u32::from_ne_bytes(four));
        }
        hand_over(queue, position, record::KERNEL, number);
    }

    fn put(queue: &QueueMemory, number: u64, captured: &[u8]) -> bool {
        let place = reserve(queue, size_of(captured));
        place.is_some_and(|position| {
            write(queue, position, number, captured);
            true
        })
    }

    fn find(queue: &QueueMemory) -> (Vec<Found>, Option<u32>) {
        let mut all = Vec::new();
        let stuck = queue.find(|found| all.push(found));
        (all, stuck)
    }

    /// Whatever their lengths, all records come out once, in order and whole; the queue is full as long as they wait.
    #[test]
    fn records_go_round() {
        for ordered in [true, false] {
            let queue = new_queue(3000, ordered);
            let mut next = 0u64;
            let mut expected = 0u64;
            for round in 0..500 {
                let mut put_now = 0;
                loop {
                    let captured: Vec<u8> =
                        (0..(next * 7 % 300)).map(|n| (n + next) as u8).collect();
                    if !put(&queue, next, &captured) {
                        break;
                    }
                    next += 1;
                    put_now += 1;
                }
                assert!(put_now > 2, "round {round}: {put_now}");
                let (found, stuck) = find(&queue);
                assert_eq!(stuck, None);
                assert_eq!(found.len() as u64, next - expected);
                assert!(find(&queue).0.is_empty(), "each once");
                let taken: Vec<Record> = found.into_iter().filter_map(|f| queue.read(f)).collect();
                assert!(!put(&queue, next, &[0; 2700]), "they wait");
                for record in taken {
                    assert_eq!(record.launch, expected);
                    let captured = (0..(expected * 7 % 300)).map(|n| (n + expected) as u8);
                    assert!(record.captured.iter().copied().eq(captured));
                    queue.free(record.size);
                    expected += 1;
                }
                assert!(queue.taking.lock().pieces.is_empty());
            }
            assert!(expected > 2000);
        }
    }

    /// Checks that a record which is still being written is not read, nor the record that was in
    /// its place before.
    #[test]
    fn unfinished_records_stay() {
        for ordered in [true, false] {
            let queue = new_queue(2048, ordered);
            for _ in 0..100 {
                assert!(put(&queue, 1, &[1; 16]));
                let (found, stuck) = find(&queue);
                assert_eq!((found.len(), stuck), (1, None));
                found.into_iter().for_each(|found| queue.forget(found));
            }
            // A place is reserved, where a record lay that was taken long ago; another one is written behind it.
            let place = reserve(&queue, 144).unwrap();
            assert!(put(&queue, 2, &[]));
            let (found, stuck) = find(&queue);
            assert_eq!((found.len(), stuck), (0, Some(place)));
            // Its last word has come, but not what was written before.
            write(&queue, place, 3, &[]);
            let launch = queue.at(place) + record::LAUNCH;
            queue.ring.set(launch, 1);
            assert_eq!(find(&queue).1, Some(place));
            queue.ring.set(launch, 3);
            let (found, stuck) = find(&queue);
            let launches: Vec<u64> = found.iter().map(|found| found.launch).collect();
            assert_eq!((launches.as_slice(), stuck), (&[3u64, 2][..], None));
        }
    }

    /// A record that nobody reads yet holds up the room behind it, and nothing else.
    #[test]
    fn records_are_read_in_any_order() {
        let queue = new_queue(4096, false);
        for number in 1..=3 {
            assert!(put(&queue, number, &[number as u8; 8]));
        }
        let (mut found, _) = find(&queue);
        let head = queue.words.get(queue::HEAD);
        let read = |found: Found| queue.read(found).map(|record| record.captured.to_vec());
        assert_eq!(read(found.remove(1)), Some(vec![2; 8]));
        assert_eq!(queue.words.get(queue::HEAD), head);
        assert!(put(&queue, 4, &[]));
        queue.forget(found.remove(0));
        let moved = queue.words.get(queue::HEAD).wrapping_sub(head);
        assert_eq!(moved, 2 * size_of(&[0; 8]));
        assert_eq!(read(found.remove(0)), Some(vec![3; 8]));
        assert_eq!(find(&queue).0.len(), 1);
    }

    /// A record that will never be written is given up with what lies behind it, once.
    #[test]
    fn lost_records_are_skipped() {
        let queue = new_queue(4096, false);
        assert!(put(&queue, 1, &[]));
        let place = reserve(&queue, 160).unwrap();
        assert!(put(&queue, 2, &[]));
        let (mut found, stuck) = find(&queue);
        assert_eq!((found.len(), stuck), (1, Some(place)));
        queue.skip(place);
        assert!(put(&queue, 3, &[]));
        queue.skip(place);
        let (next, stuck) = find(&queue);
        assert_eq!((next.len(), stuck), (1, None));
        assert_eq!(next[0].launch, 3);
        queue.forget(found.remove(0));
        let used = queue.words.get(queue::TAIL) - queue.words.get(queue::HEAD);
        assert_eq!(used, size_of(&[]));
    }
}
