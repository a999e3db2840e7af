//! Ranges that are free, of a whole that is dealt out in pieces.

/// The free ranges, in order, none touching another.
#[derive(Debug, Default)]
pub struct Ranges(Vec<(u64, u64)>);

impl Ranges {
    /// Returns all of `size` bytes is free.
    pub fn whole(size: u64) -> Self {
        Self(vec![(0, size)])
    }

    /// Takes `size` bytes at a multiple of `align`, counted from address `base`.
    pub fn take(&mut self, base: u64, size: u64, align: u64) -> Option<u64> {
        let place = |&(begin, end): &(u64, u64)| {
            let at = (base + begin).checked_next_multiple_of(align)? - base;
            (at.checked_add(size)? <= end).then_some(at)
        };
        let (index, at) = self
            .0
            .iter()
            .enumerate()
            .find_map(|(index, range)| Some((index, place(range)?)))?;
        let (begin, end) = self.0.remove(index);
        if at + size < end {
            self.0.insert(index, (at + size, end));
        }
        if begin < at {
            self.0.insert(index, (begin, at));
        }
        Some(at)
    }

    /// Returns a range that was taken.
    pub fn give(&mut self, begin: u64, size: u64) {
        let mut end = begin + size;
        let index = self.0.partition_point(|range| range.0 < begin);
        if let Some(next) = self.0.get(index).copied().filter(|next| next.0 == end) {
            end = next.1;
            self.0.remove(index);
        }
        if let Some(before) = index.checked_sub(1).and_then(|at| self.0.get_mut(at)) {
            if before.1 == begin {
                before.1 = end;
                return;
            }
        }
        self.0.insert(index, (begin, end));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_join_again() {
        let mut free = Ranges::whole(1000);
        let a = free.take(0, 100, 1).unwrap();
        let b = free.take(0, 100, 256).unwrap();
        let c = free.take(0, 600, 4).unwrap();
        assert_eq!((a, b, c), (0, 256, 356));
        assert_eq!(free.take(0, 100, 1), Some(100));
        assert_eq!(free.take(0, 100, 1), None);
        free.give(b, 100);
        free.give(a, 100);
        free.give(100, 100);
        free.give(c, 600);
        assert_eq!(free.0, vec![(0, 1000)]);
        assert_eq!(free.take(0x1100, 10, 0x1000), None);
        assert_eq!(free.take(0xf00, 10, 0x1000), Some(0x100));
    }
}
