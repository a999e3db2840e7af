//! Which devices of a context have the newest bytes of a memory object, range by range.
//!
//! Ranges matter: two devices may write two sub-buffers of one buffer at the same time, and a device that reads a few
//! bytes need not be brought all. Neighbouring ranges that agree are one, so an object that is used as a whole has one.

use std::ops::Range;

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

    /// Changes what holds in a range.
    pub fn change(&mut self, range: Range<u64>, change: impl Fn(u64) -> u64) {
        if range.start >= range.end {
            return;
        }
        // Whole objects and what has not changed are the usual cases.
        if self.of(range.clone()).all(|(_, now)| change(now) == now) {
            return;
        }
        let first = self.spans.partition_point(|(end, _)| *end <= range.start);
        let last = self.spans.partition_point(|(end, _)| *end < range.end);
        let mut new: Vec<(u64, u64)> = Vec::new();
        let mut add = |end: u64, devices: u64| match new.last_mut() {
            Some(before) if before.1 == devices => before.0 = end,
            _ => new.push((end, devices)),
        };
        // From the neighbour before to the one behind, so that they join.
        let from = first.saturating_sub(1);
        let to = (last + 2).min(self.spans.len());
        let begin = from
            .checked_sub(1)
            .and_then(|at| self.spans.get(at))
            .map_or(0, |span| span.0);
        let mut at = begin;
        for (end, devices) in self.spans.get(from..to).unwrap_or_default() {
            let (inside_from, inside_to) = (range.start.clamp(at, *end), range.end.clamp(at, *end));
            if at < inside_from {
                add(inside_from, *devices);
            }
            if inside_from < inside_to {
                add(inside_to, change(*devices));
            }
            if inside_to < *end {
                add(*end, *devices);
            }
            at = *end;
        }
        self.spans.splice(from..to, new);
    }

    /// Some bytes are still those that the object was made with.
    pub fn any_initial(&self) -> bool {
        self.spans.iter().any(|(_, devices)| *devices == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
