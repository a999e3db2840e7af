//! What memory there is, by address.

use parking_lot::Mutex;
use std::collections::BTreeMap;

/// A piece of memory that an object stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allocation {
    /// Address of the first byte.
    pub base: u64,
    /// Bytes, as asked for.
    pub size: u64,
    /// It is the application's, among other memory of it.
    pub imported: bool,
}

/// The same address can be imported several times.
static ALL: Mutex<BTreeMap<(u64, u64), (Allocation, usize)>> = Mutex::new(BTreeMap::new());

/// There is new memory.
pub fn add(new: Allocation) {
    let mut all = ALL.lock();
    let entry = all.entry((new.base, new.size)).or_insert((new, 0));
    entry.1 += 1;
}

/// It is gone.
pub fn remove(base: u64, size: u64) {
    let mut all = ALL.lock();
    if let Some((_, count)) = all.get_mut(&(base, size)) {
        *count -= 1;
        if *count == 0 {
            all.remove(&(base, size));
        }
    }
}

/// The memory that holds an address: the largest, if several do.
pub fn holding(address: u64) -> Option<Allocation> {
    let all = ALL.lock();
    let below = all.range(..=(address, u64::MAX)).map(|(_, (one, _))| *one);
    let holds = below.filter(|one| address - one.base < one.size);
    holds.max_by_key(|one| one.size)
}

/// The memory that ends last before an address, and what begins first behind it.
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

#[cfg(test)]
mod tests {
    use super::*;

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
