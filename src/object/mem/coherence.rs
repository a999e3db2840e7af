//! Which memories of a context have the newest bytes of a memory object, range by range.
//!
//! Ranges matter: two devices may write two sub-buffers of one buffer, or two rectangles, at the same time, and a device
//! that reads a few bytes does not need all in its memory. Neighbouring ranges that agree are one, so an object that is used as a
//! whole has one.

use crate::backend::image::ImageRegion;
use crate::error::ClResult;
use crate::object::memories::MemoryIndex;
use crate::util::lock::{rank, Mutex};
use smallvec::SmallVec;
use std::iter::once;
use std::ops::Range;

/// Rows of bytes that lie one behind the other: a rectangle of a buffer, or a box of an image over one.
#[derive(Debug, Clone, Copy)]
pub struct Rows {
    /// Where the first begins.
    pub first: u64,
    /// Bytes of each.
    pub bytes: u64,
    /// Rows of a slice; 0 is 1.
    pub rows: u64,
    /// From row to row, `bytes` at least.
    pub row_pitch: u64,
    /// Slices; 0 is 1.
    pub slices: u64,
    /// From slice to slice, the rows of one at least.
    pub slice_pitch: u64,
}

impl From<Range<u64>> for Rows {
    fn from(range: Range<u64>) -> Self {
        Self {
            first: range.start,
            bytes: range.end.saturating_sub(range.start),
            rows: 1,
            row_pitch: 0,
            slices: 1,
            slice_pitch: 0,
        }
    }
}

impl Rows {
    /// Returns the rows, in ascending order.
    pub fn ranges(self) -> impl Iterator<Item = Range<u64>> + Clone {
        (0..self.slices.max(1)).flat_map(move |slice| {
            let slice = self.first + slice * self.slice_pitch;
            (0..self.rows.max(1)).map(move |row| {
                let at = slice + row * self.row_pitch;
                at..at + self.bytes
            })
        })
    }
}

/// A part of a memory object.
#[derive(Debug, Clone)]
pub enum Part {
    /// Rows of bytes that count from the start of the object.
    Rows(Rows),
    /// All of it, whatever it is.
    All,
    /// A range of bytes, or all of an image.
    Bytes(Range<u64>),
    /// A box of an image.
    Box(ImageRegion),
}

/// The use that a command makes of a range of a memory object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Touch {
    /// Reads it.
    Read,
    /// Writes it, or a part of it, and may read it before.
    Modify,
    /// Writes every byte of it without reading one.
    Overwrite,
}

/// The memories that have the newest bytes, in ascending order. Empty: what the object was made with is the newest.
type Holders = SmallVec<[MemoryIndex; 4]>;

/// Which memories have the newest bytes, for every byte.
#[derive(Debug)]
pub struct CurrentCopies {
    /// Ends of ranges, ascending, with what holds up to there from the end before.
    spans: Vec<(u64, Holders)>,
}

impl CurrentCopies {
    /// Creates the state of a new object of `size` bytes.
    pub fn new(size: u64) -> Self {
        Self {
            spans: vec![(size, Holders::new())],
        }
    }

    /// Returns the parts of a range with what holds in each.
    fn of(&self, range: Range<u64>) -> impl Iterator<Item = (Range<u64>, &Holders)> + '_ {
        let first = self.spans.partition_point(|(end, _)| *end <= range.start);
        let spans = self.spans.get(first..).unwrap_or_default();
        let begins = once(range.start).chain(spans.iter().map(|(end, _)| *end));
        begins
            .zip(spans)
            .take_while(move |(begin, _)| *begin < range.end)
            .map(move |(begin, (end, holders))| (begin..(*end).min(range.end), holders))
    }

    /// Changes what holds in each of some ranges, which are in ascending order and do not overlap.
    fn change_all(
        &mut self,
        ranges: impl Iterator<Item = Range<u64>> + Clone,
        change: impl Fn(&Holders) -> Holders,
    ) {
        // Whole objects and what has not changed are the usual cases.
        let same = |range: Range<u64>| {
            range.is_empty() || self.of(range).all(|(_, now)| change(now) == *now)
        };
        if ranges.clone().all(same) {
            return;
        }
        let mut new: Vec<(u64, Holders)> = Vec::with_capacity(self.spans.len() + 2);
        let mut add = |end: u64, holders: Holders| match new.last_mut() {
            Some(before) if before.1 == holders => before.0 = end,
            _ => new.push((end, holders)),
        };
        let mut spans = std::mem::take(&mut self.spans).into_iter().peekable();
        let mut at = 0;
        for range in ranges {
            debug_assert!(at <= range.start, "the ranges ascend");
            while let Some((end, holders)) = spans.next_if(|(end, _)| *end <= range.start) {
                add(end, holders);
                at = end;
            }
            if at < range.start {
                let Some((_, holders)) = spans.peek() else {
                    break;
                };
                add(range.start, holders.clone());
                at = range.start;
            }
            while let Some((end, holders)) = spans.next_if(|(end, _)| *end <= range.end) {
                add(end, change(&holders));
                at = end;
            }
            if at < range.end {
                let Some((_, holders)) = spans.peek() else {
                    break;
                };
                add(range.end, change(holders));
                at = range.end;
            }
        }
        spans.for_each(|(end, holders)| add(end, holders));
        self.spans = new;
    }

    /// Marks ranges of a memory as used, as for [`Self::change_all`]: written ranges are up to date
    /// in that memory alone.
    pub fn mark(
        &mut self,
        ranges: impl Iterator<Item = Range<u64>> + Clone,
        memory: MemoryIndex,
        touch: Touch,
    ) {
        self.change_all(ranges, |holders| {
            let mut holders = holders.clone();
            if touch != Touch::Read {
                holders.clear();
            }
            if let Err(place) = holders.binary_search(&memory) {
                holders.insert(place, memory);
            }
            holders
        });
    }

    /// Returns the parts of rows that a memory lacks, with a memory that has them; `None`: the
    /// initial contents of the object. Bytes between rows belong to a part where the same holds for
    /// them: one large transfer takes less time than many.
    pub fn missing(
        &self,
        rows: Rows,
        memory: MemoryIndex,
    ) -> Vec<(Range<u64>, Option<MemoryIndex>)> {
        let mut parts: Vec<(Range<u64>, &Holders)> = Vec::new();
        for row in rows.ranges() {
            for (part, holders) in self.of(row) {
                if holders.contains(&memory) {
                    continue;
                }
                match parts.last_mut() {
                    Some((last, of))
                        if *of == holders
                            && self.of(last.end..part.start).all(|(_, h)| h == holders) =>
                    {
                        last.end = part.end;
                    }
                    _ => parts.push((part, holders)),
                }
            }
        }
        let source = |(part, holders): (Range<u64>, &Holders)| (part, holders.first().copied());
        parts.into_iter().map(source).collect()
    }

    /// Returns true if some bytes are still those that the object was made with.
    pub fn any_initial(&self) -> bool {
        self.spans.iter().any(|(_, holders)| holders.is_empty())
    }
}

/// The contents that an object was made with, as long as some of them are the newest.
pub enum Initial {
    /// Nothing.
    Nothing,
    /// Bytes of our own.
    Bytes(Vec<u8>),
    /// The application's memory (CL_MEM_USE_HOST_PTR).
    Application,
}

/// Where the newest contents of an object are, in a context with several memories.
pub struct Contents(Mutex<(CurrentCopies, Initial), { rank::COHERENCE }>);

impl Contents {
    /// Returns those of a new object.
    pub fn new(size: u64, initial: Initial) -> Self {
        Self(Mutex::new((CurrentCopies::new(size), initial)))
    }

    /// Returns true if [`Contents::prepare`] has nothing to migrate, nor anybody to wait for.
    pub fn is_prepared(
        &self,
        mut parts: impl Iterator<Item = Rows>,
        memory: MemoryIndex,
        touch: Touch,
    ) -> bool {
        let Some(state) = self.0.try_lock() else {
            return false;
        };
        touch == Touch::Overwrite || parts.all(|rows| state.0.missing(rows, memory).is_empty())
    }

    /// Makes rows in a memory the newest, before a command that uses them so is encoded. What is written is the newest there
    /// alone. `migrate` copies a part to the memory, from another or what the object was made with, and waits for devices.
    pub fn prepare(
        &self,
        parts: impl Iterator<Item = Rows>,
        memory: MemoryIndex,
        touch: Touch,
        migrate: impl Fn(Range<u64>, Option<MemoryIndex>, &Initial) -> ClResult,
    ) -> ClResult {
        let mut state = self.0.lock();
        let (copies, initial) = &mut *state;
        for rows in parts {
            if touch != Touch::Overwrite {
                for (part, source) in copies.missing(rows, memory) {
                    migrate(part, source, initial)?;
                }
            }
            copies.mark(rows.ranges(), memory, touch);
        }
        if !matches!(initial, Initial::Nothing) && !copies.any_initial() {
            *initial = Initial::Nothing;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(number: usize) -> MemoryIndex {
        MemoryIndex::for_tests(number)
    }

    fn holders(numbers: &[usize]) -> Holders {
        numbers.iter().copied().map(memory).collect()
    }

    impl CurrentCopies {
        fn set(&mut self, range: Range<u64>, numbers: &[usize]) {
            self.change_all(once(range), |_| holders(numbers));
        }

        fn read(&mut self, range: Range<u64>, number: usize) {
            self.mark(once(range), memory(number), Touch::Read);
        }

        fn are(&self, range: Range<u64>, expected: &[(Range<u64>, &[usize])]) {
            let seen: Vec<_> = self.of(range).collect();
            let expected: Vec<_> = expected
                .iter()
                .map(|(range, numbers)| (range.clone(), holders(numbers)))
                .collect();
            let expected: Vec<_> = expected.iter().map(|(r, h)| (r.clone(), h)).collect();
            assert_eq!(seen, expected);
        }
    }

    #[test]
    fn ranges_split_and_join() {
        let mut copies = CurrentCopies::new(100);
        copies.set(20..40, &[0]);
        copies.set(40..60, &[1]);
        copies.are(
            0..100,
            &[(0..20, &[]), (20..40, &[0]), (40..60, &[1]), (60..100, &[])],
        );
        copies.are(30..70, &[(30..40, &[0]), (40..60, &[1]), (60..70, &[])]);
        copies.read(30..50, 2);
        copies.are(
            0..100,
            &[
                (0..20, &[]),
                (20..30, &[0]),
                (30..40, &[0, 2]),
                (40..50, &[1, 2]),
                (50..60, &[1]),
                (60..100, &[]),
            ],
        );
        copies.set(20..60, &[]);
        copies.are(0..100, &[(0..100, &[])]);
        assert!(copies.any_initial());
        copies.set(0..100, &[1]);
        assert!(!copies.any_initial());
        copies.set(0..1, &[0]);
        copies.set(99..100, &[0]);
        copies.are(0..100, &[(0..1, &[0]), (1..99, &[1]), (99..100, &[0])]);
        assert_eq!(copies.of(50..50).count(), 0);
    }

    #[test]
    fn rows_become_current_and_stale() {
        let mut copies = CurrentCopies::new(100);
        let column = |first| Rows {
            first,
            bytes: 4,
            rows: 3,
            row_pitch: 10,
            slices: 2,
            slice_pitch: 40,
        };
        let left: Vec<_> = column(1).ranges().collect();
        assert_eq!(left, [1..5, 11..15, 21..25, 41..45, 51..55, 61..65]);
        copies.mark(column(1).ranges(), memory(0), Touch::Overwrite);
        copies.mark(column(5).ranges(), memory(1), Touch::Modify);
        copies.are(
            0..30,
            &[
                (0..1, &[]),
                (1..5, &[0]),
                (5..9, &[1]),
                (9..11, &[]),
                (11..15, &[0]),
                (15..19, &[1]),
                (19..21, &[]),
                (21..25, &[0]),
                (25..29, &[1]),
                (29..30, &[]),
            ],
        );
        // Every row of the other memory is a part of its own; what nobody has written is migrated as one.
        assert!(copies.missing(column(1), memory(0)).is_empty());
        assert_eq!(copies.missing(column(5), memory(0)).len(), 6);
        let mut copies = CurrentCopies::new(100);
        let of = |copies: &CurrentCopies, number| copies.missing(column(1), memory(number));
        assert_eq!(of(&copies, 0), [(1..65, None)]);
        copies.set(0..30, &[0]);
        assert_eq!(of(&copies, 0), [(41..65, None)]);
        assert_eq!(of(&copies, 1), [(1..25, Some(memory(0))), (41..65, None)]);
    }

    /// With as many memories as there may be: none is taken for another.
    #[test]
    fn agrees_with_a_byte_by_byte_model() {
        let mut state = 0x9e37_79b9u64;
        let mut next = |below: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % below
        };
        for memories in [3, 130] {
            let (mut copies, mut model) = (CurrentCopies::new(64), vec![Holders::new(); 64]);
            for _ in 0..5000 {
                let begin = next(64);
                let end = begin + 1 + next(64 - begin);
                let user = memory(next(memories) as usize);
                let touch = match next(2) {
                    0 => Touch::Modify,
                    _ => Touch::Read,
                };
                copies.mark(once(begin..end), user, touch);
                for byte in &mut model[begin as usize..end as usize] {
                    if touch == Touch::Modify {
                        byte.clear();
                    }
                    byte.push(user);
                    byte.sort_unstable();
                    byte.dedup();
                }
                let mut seen = Vec::new();
                for (range, holders) in copies.of(0..64) {
                    seen.extend(range.map(|_| holders.clone()));
                }
                assert_eq!(seen, model);
                let joined = copies.spans.windows(2).all(|pair| pair[0].1 != pair[1].1);
                assert!(joined, "neighbours that agree are one");
            }
        }
    }
}
