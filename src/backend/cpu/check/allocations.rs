//! The allocations of all devices, by address.

use crate::util::lock::{rank, Mutex};
use std::collections::BTreeMap;

/// A piece of memory that an object stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allocation {
    /// Address of the first byte.
    pub base: u64,
    /// Bytes, as asked for.
    pub size: u64,
    /// Set if it is a part of the application's own memory.
    pub imported: bool,
}

/// The same address can be imported several times.
static ALL: Mutex<BTreeMap<(u64, u64), (Allocation, usize)>, { rank::CHECKED_MEMORY }> =
    Mutex::new(BTreeMap::new());

/// Adds an allocation.
pub fn add(new: Allocation) {
    let mut all = ALL.lock();
    let entry = all.entry((new.base, new.size)).or_insert((new, 0));
    entry.1 += 1;
}

/// Removes an allocation.
pub fn remove(base: u64, size: u64) {
    let mut all = ALL.lock();
    if let Some((_, count)) = all.get_mut(&(base, size)) {
        *count -= 1;
        if *count == 0 {
            all.remove(&(base, size));
        }
    }
}

/// Returns the memory that holds an address: the largest, if several do.
pub fn holding(address: u64) -> Option<Allocation> {
    let all = ALL.lock();
    let below = all.range(..=(address, u64::MAX)).map(|(_, (one, _))| *one);
    let holds = below.filter(|one| address - one.base < one.size);
    holds.max_by_key(|one| one.size)
}

/// Returns the memory that ends last before an address, and what begins first past it.
pub fn around(address: u64) -> (Option<Allocation>, Option<Allocation>) {
    let all = ALL.lock();
    let before = all.range(..=(address, u64::MAX)).map(|(_, (one, _))| *one);
    let before = before.filter(|one| one.base + one.size <= address);
    let after = all.range((address, u64::MAX)..).map(|(_, (one, _))| *one);
    (
        before.max_by_key(|one| one.base + one.size),
        { after }.next(),
    )
}

/// The parts of memory that a launch was given by its arguments, where it can reach nothing else: its buffers and
/// sub-buffers. Those that overlap count as one, since a pointer does not tell which of them it comes from.
#[derive(Debug, Default)]
pub struct Given {
    /// Begin and end, in order.
    parts: Vec<(u64, u64)>,
}

impl Given {
    /// Creates the list of these parts, by begin and end. If it is empty, the launch may access all
    /// memory.
    pub fn new(parts: &[(u64, u64)]) -> Self {
        let mut sorted = parts.to_vec();
        sorted.sort_unstable();
        let mut merged: Vec<(u64, u64)> = Vec::new();
        for (begin, end) in sorted {
            match merged.last_mut() {
                Some(last) if begin < last.1 => last.1 = last.1.max(end),
                _ => merged.push((begin, end)),
            }
        }
        Self { parts: merged }
    }

    /// Returns the parts of an allocation that the launch was given. There are none if it was
    /// reached in another way.
    fn of(&self, whole: Allocation) -> impl Iterator<Item = Allocation> + '_ {
        let end = whole.base + whole.size;
        let within = move |&&(first, last): &&(u64, u64)| first >= whole.base && last <= end;
        self.parts
            .iter()
            .filter(within)
            .map(move |&(first, last)| Allocation {
                base: first,
                size: last - first,
                ..whole
            })
    }

    /// Returns the part of an allocation around an address that the launch may access.
    pub fn around(&self, whole: Allocation, address: u64) -> Option<Allocation> {
        let mut parts = self.of(whole).peekable();
        if parts.peek().is_none() {
            return Some(whole);
        }
        parts.find(|part| (part.base..part.base + part.size).contains(&address))
    }

    /// Returns the part of an allocation that is nearest to an address outside of all parts.
    pub fn nearest(&self, whole: Allocation, address: u64) -> Option<Allocation> {
        self.of(whole).min_by_key(|part| {
            let past = address.saturating_sub(part.base + part.size);
            past.max(part.base.saturating_sub(address))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_an_allocation() {
        let whole = Allocation {
            base: 1000,
            size: 1000,
            imported: false,
        };
        let part = |base, size| Allocation {
            base,
            size,
            ..whole
        };
        let given = Given::new(&[(1500, 1600), (1000, 1100), (1050, 1200), (1600, 1650)]);
        assert_eq!(given.around(whole, 1199), Some(part(1000, 200)));
        assert_eq!(given.around(whole, 1200), None);
        assert_eq!(given.nearest(whole, 1201), Some(part(1000, 200)));
        assert_eq!(given.nearest(whole, 1499), Some(part(1500, 100)));
        // Neighbours are two.
        assert_eq!(given.around(whole, 1600), Some(part(1600, 50)));
        // What nothing is known of is whole.
        let other = part(5000, 10);
        assert_eq!(given.around(other, 5003), Some(other));
        assert_eq!(Given::default().around(whole, 1200), Some(whole));
    }

    #[test]
    fn found_by_address() {
        // Addresses that no allocation of another test has.
        let at = 1 << 60;
        let one = |base, size| Allocation {
            base,
            size,
            imported: true,
        };
        for memory in [
            one(at, 100),
            one(at, 100),
            one(at + 200, 50),
            one(at + 210, 10),
        ] {
            add(memory);
        }
        assert_eq!(holding(at + 99), Some(one(at, 100)));
        assert_eq!(holding(at + 100), None);
        assert_eq!(holding(at + 215), Some(one(at + 200, 50)));
        assert_eq!(
            around(at + 150),
            (Some(one(at, 100)), Some(one(at + 200, 50)))
        );
        remove(at, 100);
        assert_eq!(holding(at), Some(one(at, 100)));
        remove(at, 100);
        assert_eq!(holding(at), None);
        remove(at + 200, 50);
        remove(at + 210, 10);
    }
}
