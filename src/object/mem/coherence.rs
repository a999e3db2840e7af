//! Which devices of a context have the newest bytes of a memory object, range by range.
//!
//! Ranges matter: two devices may write two sub-buffers of one buffer, or two rectangles, at the same time, and a device
//! that reads a few bytes need not be brought all. Neighbouring ranges that agree are one, so an object that is used as a
//! whole has one.

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
    /// The rows, in ascending order.
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

/// What a command does with a range of a memory object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Touch {
    /// Reads it.
    Read,
    /// Writes it, or a part of it, and may read it before.
    Modify,
    /// Writes every byte of it without reading one.
    Overwrite,
}

/// Bit per device that has the newest bytes, for every byte. No bit: what the object was made with is the newest.
#[derive(Debug)]
pub struct Newest {
    /// Ends of ranges, ascending, with what holds up to there from the end before.
    spans: Vec<(u64, u64)>,
}

impl Newest {
    /// Of a new object.
    pub fn new(size: u64) -> Self {
        Self {
            spans: vec![(size, 0)],
        }
    }

    /// The parts of a range with what holds in each.
    pub fn of(&self, range: Range<u64>) -> impl Iterator<Item = (Range<u64>, u64)> + '_ {
        let first = self.spans.partition_point(|(end, _)| *end <= range.start);
        let mut begin = range.start;
        let spans = self.spans.get(first..).unwrap_or_default().iter();
        spans
            .take_while({
                let limit = range.end;
                let mut from = range.start;
                move |(end, _)| {
                    let inside = from < limit;
                    from = *end;
                    inside
                }
            })
            .map(move |(end, devices)| {
                let end = (*end).min(range.end);
                let part = begin..end;
                begin = end;
                (part, *devices)
            })
    }

    /// Changes what holds in each of some ranges, which are in ascending order and do not overlap.
    fn change_all(
        &mut self,
        ranges: impl Iterator<Item = Range<u64>> + Clone,
        change: impl Fn(u64) -> u64,
    ) {
        // Whole objects and what has not changed are the usual cases.
        let same = |range: Range<u64>| {
            range.is_empty() || self.of(range).all(|(_, now)| change(now) == now)
        };
        if ranges.clone().all(same) {
            return;
        }
        let mut new: Vec<(u64, u64)> = Vec::with_capacity(self.spans.len() + 2);
        let mut add = |end: u64, devices: u64| match new.last_mut() {
            Some(before) if before.1 == devices => before.0 = end,
            _ => new.push((end, devices)),
        };
        let mut spans = self.spans.iter().copied().peekable();
        let mut at = 0;
        for range in ranges {
            debug_assert!(at <= range.start, "the ranges ascend");
            while let Some((end, devices)) = spans.next_if(|(end, _)| *end <= range.start) {
                add(end, devices);
                at = end;
            }
            if at < range.start {
                let Some((_, devices)) = spans.peek() else {
                    break;
                };
                add(range.start, *devices);
                at = range.start;
            }
            while let Some((end, devices)) = spans.next_if(|(end, _)| *end <= range.end) {
                add(end, change(devices));
                at = end;
            }
            if at < range.end {
                let Some((_, devices)) = spans.peek() else {
                    break;
                };
                add(range.end, change(*devices));
                at = range.end;
            }
        }
        spans.for_each(|(end, devices)| add(end, devices));
        self.spans = new;
    }

    /// Notes that a device with this bit uses ranges so, as for [`Self::change_all`]: what it writes it has alone.
    pub fn mark(
        &mut self,
        ranges: impl Iterator<Item = Range<u64>> + Clone,
        bit: u64,
        touch: Touch,
    ) {
        let keep = if touch == Touch::Read { u64::MAX } else { 0 };
        self.change_all(ranges, |devices| devices & keep | bit);
    }

    /// The parts that a device with this bit lacks of rows, with what has them. What lies between rows belongs to a part
    /// where the same holds for it: one large transfer takes less time than many.
    pub fn missing(&self, rows: Rows, bit: u64) -> Vec<(Range<u64>, u64)> {
        let mut parts: Vec<(Range<u64>, u64)> = Vec::new();
        for row in rows.ranges() {
            for (part, devices) in self.of(row) {
                if devices & bit != 0 {
                    continue;
                }
                match parts.last_mut() {
                    Some((last, of))
                        if *of == devices
                            && self.of(last.end..part.start).all(|(_, d)| d == devices) =>
                    {
                        last.end = part.end;
                    }
                    _ => parts.push((part, devices)),
                }
            }
        }
        parts
    }

    /// Some bytes are still those that the object was made with.
    pub fn any_initial(&self) -> bool {
        self.spans.iter().any(|(_, devices)| *devices == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Newest {
        fn change(&mut self, range: Range<u64>, change: impl Fn(u64) -> u64) {
            self.change_all(std::iter::once(range), change);
        }
    }

    #[test]
    fn ranges_split_and_join() {
        let mut newest = Newest::new(100);
        newest.change(20..40, |_| 1);
        newest.change(40..60, |_| 2);
        assert_eq!(newest.spans, [(20, 0), (40, 1), (60, 2), (100, 0)]);
        let seen: Vec<_> = newest.of(30..70).collect();
        assert_eq!(seen, [(30..40, 1), (40..60, 2), (60..70, 0)]);
        newest.change(30..50, |devices| devices | 4);
        assert_eq!(
            newest.spans,
            [(20, 0), (30, 1), (40, 5), (50, 6), (60, 2), (100, 0)]
        );
        newest.change(20..60, |_| 0);
        assert_eq!(newest.spans, [(100, 0)]);
        assert!(newest.any_initial());
        newest.change(0..100, |_| 2);
        assert!(!newest.any_initial());
        newest.change(0..1, |_| 1);
        newest.change(99..100, |_| 1);
        assert_eq!(newest.spans, [(1, 1), (99, 2), (100, 1)]);
        assert_eq!(newest.of(50..50).count(), 0);
    }

    #[test]
    fn rows_are_marked_and_brought() {
        let mut newest = Newest::new(100);
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
        newest.change_all(column(1).ranges(), |_| 1);
        newest.change_all(column(5).ranges(), |_| 2);
        let seen: Vec<_> = newest.of(0..30).collect();
        let expected = [
            (0..1, 0),
            (1..5, 1),
            (5..9, 2),
            (9..11, 0),
            (11..15, 1),
            (15..19, 2),
            (19..21, 0),
            (21..25, 1),
            (25..29, 2),
            (29..30, 0),
        ];
        assert_eq!(seen, expected);
        // Every row of the other device is a part of its own; what nobody has written is brought together.
        assert!(newest.missing(column(1), 1).is_empty());
        assert_eq!(newest.missing(column(5), 1).len(), 6);
        let mut newest = Newest::new(100);
        assert_eq!(newest.missing(column(1), 1), [(1..65, 0)]);
        newest.change(0..30, |_| 1);
        assert_eq!(newest.missing(column(1), 1), [(41..65, 0)]);
        assert_eq!(newest.missing(column(1), 2), [(1..25, 1), (41..65, 0)]);
    }

    #[test]
    fn agrees_with_a_byte_by_byte_model() {
        let mut state = 0x9e37_79b9u64;
        let mut next = |below: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % below
        };
        let (mut newest, mut model) = (Newest::new(64), vec![0u64; 64]);
        for _ in 0..5000 {
            let begin = next(64);
            let end = begin + 1 + next(64 - begin);
            let bit = 1 << next(3);
            let only = next(2) == 0;
            let change = |now: u64| if only { bit } else { now | bit };
            newest.change(begin..end, change);
            for byte in &mut model[begin as usize..end as usize] {
                *byte = change(*byte);
            }
            let mut seen = Vec::new();
            for (range, devices) in newest.of(0..64) {
                seen.extend(range.map(|_| devices));
            }
            assert_eq!(seen, model);
            let joined = newest.spans.windows(2).all(|pair| pair[0].1 != pair[1].1);
            assert!(joined, "neighbours that agree are one");
        }
    }
}
