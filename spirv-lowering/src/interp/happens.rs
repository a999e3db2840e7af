//! The order that release and acquire establish (the memory model in section 3.3.6 of the OpenCL
//! API): which accesses of other work-items happen before an access, beside those that barriers
//! order ([`super::watch`]).
//!
//! A release appends an entry to the *log* of the atomic object that it writes. The entry holds
//! which accesses it covers, and what its work-item knew. An acquire that reads the object learns
//! the log up to that point. So the knowledge of a work-item is a length for each log, and an
//! access is known if an entry within one of them covers it. An entry covers the earlier accesses
//! of its work-item, and those of its sub-group or group before the last barrier. A
//! read-modify-write keeps the log of an object, as part of the release sequence; a plain atomic
//! write begins another.
//!
//! Fences do the same for the atomic operations around them: later writes publish what a release
//! fence covers, and an acquire fence learns what earlier reads have seen. A release is visible in
//! its scope alone. What a work-item learns concerns the memory that the operation is on, or that
//! the fence names.

use crate::ir::op::{Fences, Order, Scope};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::rc::Rc;

/// The number of memories that are ordered separately: global memory, local memory and images.
pub(super) const SPACES: usize = 3;

/// The number of logs beyond which a work-item is taken to know everything.
const MOST_LOGS: usize = 4096;

impl Order {
    fn acquires(self) -> bool {
        matches!(self, Self::Acquire | Self::AcqRel | Self::SeqCst)
    }

    fn releases(self) -> bool {
        matches!(self, Self::Release | Self::AcqRel | Self::SeqCst)
    }
}

fn named(fences: Fences) -> [bool; SPACES] {
    [fences.global, fences.local, fences.image]
}

/// A position in the program order of a work-item: later accesses have higher counts.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Position {
    /// The number of the work-item in the launch, that of its sub-group and that of its group.
    pub item: u32,
    pub sub_group: u32,
    pub group: u32,
    /// The releases of the work-item so far.
    pub releases: u32,
    /// The barriers of the sub-group so far.
    pub sub_barriers: u32,
    /// The barriers of the group so far that ordered each memory.
    pub barriers: [u32; SPACES],
}

/// The length known of each log.
#[derive(Debug, Clone, Default)]
struct KnownLengths {
    logs: FxHashMap<usize, u32>,
    everything: bool,
}

impl KnownLengths {
    fn learn(&mut self, log: usize, length: u32) {
        let known = self.logs.entry(log).or_default();
        *known = length.max(*known);
        self.everything |= self.logs.len() > MOST_LOGS;
    }

    fn join(&mut self, other: &Self) {
        self.everything |= other.everything;
        for (&log, &length) in &other.logs {
            self.learn(log, length);
        }
    }
}

/// A memory, and the work-item, sub-group or group whose accesses to it an entry covers.
type Whose = (usize, Who);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Who {
    Item(u32),
    SubGroup(u32),
    Group(u32),
}

/// The releases through an atomic object, in order.
#[derive(Debug, Default)]
struct Log {
    length: u32,
    /// For each entry its position in the log, and the count below which it covers accesses. Both
    /// rise.
    covers: FxHashMap<Whose, SmallVec<[(u32, u32); 1]>>,
    /// The union of what the releasing work-items knew.
    known: [KnownLengths; SPACES],
}

impl Log {
    fn add(&mut self, release: &Release) {
        let at = &release.position;
        for (space, known) in release.known.iter().enumerate() {
            let Some(known) = known else { continue };
            for (who, count) in [
                (Who::Item(at.item), at.releases),
                (Who::SubGroup(at.sub_group), at.sub_barriers),
                (Who::Group(at.group), at.barriers[space]),
            ] {
                let covers = self.covers.entry((space, who)).or_default();
                if covers.last().is_none_or(|&(_, last)| last < count) {
                    covers.push((self.length, count));
                }
            }
            self.known[space].join(known);
        }
        self.length += 1;
    }

    /// Returns true if one of the first `length` entries covers an access.
    fn covers(&self, length: u32, space: usize, access: &Position) -> bool {
        [
            (Who::Item(access.item), access.releases),
            (Who::SubGroup(access.sub_group), access.sub_barriers),
            (Who::Group(access.group), access.barriers[space]),
        ]
        .into_iter()
        .any(|(who, count)| {
            let covers = self.covers.get(&(space, who));
            let within = covers.and_then(|covers| {
                let end = covers.partition_point(|&(before, _)| before < length);
                covers.get(..end)?.last()
            });
            within.is_some_and(|&(_, covered)| covered > count)
        })
    }
}

/// A release, with what the work-item knew of each memory that it orders.
#[derive(Debug, Clone)]
struct Release {
    position: Position,
    scope: Scope,
    known: [Option<Rc<KnownLengths>>; SPACES],
}

/// The part of an atomic object's releases that one scope sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Reach {
    All,
    Group(u32),
    SubGroup(u32),
}

impl Reach {
    fn in_scope(scope: Scope, by: &Position) -> Option<Self> {
        match scope {
            Scope::AllDevices | Scope::Device => Some(Self::All),
            Scope::WorkGroup => Some(Self::Group(by.group)),
            Scope::SubGroup => Some(Self::SubGroup(by.sub_group)),
            Scope::WorkItem => None,
        }
    }

    fn all(by: &Position) -> [Self; 3] {
        [
            Self::All,
            Self::Group(by.group),
            Self::SubGroup(by.sub_group),
        ]
    }
}

/// The order as one work-item of the running group knows it.
#[derive(Debug, Default)]
struct ItemOrder {
    releases: u32,
    known: [KnownLengths; SPACES],
    /// The release of a fence, for the atomic writes to come.
    fenced: Option<Release>,
    /// The logs that atomic reads have seen, for the fences to come.
    seen: [KnownLengths; SPACES],
}

/// An atomic operation that may order others.
#[derive(Debug, Clone, Copy)]
pub(super) struct Atomic {
    /// The memory in which the object is, and its address.
    pub space: usize,
    pub address: u64,
    pub reads: bool,
    pub writes: bool,
    pub order: Order,
    pub scope: Scope,
}

/// The happens-before order of a run so far.
#[derive(Debug, Default)]
pub(super) struct HappensBefore {
    logs: Vec<Log>,
    /// The number of each object's log, and the work-item that began it.
    objects: FxHashMap<(usize, u64, Reach), (usize, u32)>,
    items: Vec<ItemOrder>,
    /// The part that all work-items of the group know.
    group: [KnownLengths; SPACES],
}

impl HappensBefore {
    /// Begins a group of `items` work-items, which know nothing and have new local memory.
    pub fn begin_group(&mut self, items: u32) {
        self.objects.retain(|&(space, ..), _| space != 1);
        self.items.clear();
        self.items.resize_with(items as usize, ItemOrder::default);
        self.group = Default::default();
    }

    /// Returns how many releases a work-item has executed.
    pub fn releases(&self, index: u32) -> u32 {
        self.items
            .get(index as usize)
            .map_or(0, |item| item.releases)
    }

    fn release(
        &mut self,
        index: u32,
        scope: Scope,
        spaces: [bool; SPACES],
        by: &Position,
    ) -> Option<Release> {
        let group = &self.group;
        let item = self.items.get_mut(index as usize)?;
        item.releases += 1;
        let known = [0, 1, 2].map(|space| {
            spaces[space].then(|| {
                let mut known = item.known[space].clone();
                known.join(&group[space]);
                Rc::new(known)
            })
        });
        let position = Position {
            releases: item.releases,
            ..*by
        };
        Some(Release {
            position,
            scope,
            known,
        })
    }

    /// Records an atomic operation of a work-item.
    pub fn atomic(&mut self, index: u32, by: &Position, atomic: &Atomic) {
        let Atomic {
            space,
            address,
            order,
            ..
        } = *atomic;
        let key = |seen| (space, address, seen);
        if atomic.reads {
            for seen in Reach::all(by) {
                let Some(&(log, _)) = self.objects.get(&key(seen)) else {
                    continue;
                };
                let (Some(item), Some(read)) =
                    (self.items.get_mut(index as usize), self.logs.get(log))
                else {
                    continue;
                };
                for other in 0..SPACES {
                    let now = order.acquires() && other == space;
                    let to = if now { &mut item.known } else { &mut item.seen };
                    to[other].learn(log, read.length);
                    to[other].join(&read.known[other]);
                }
            }
        }
        if !atomic.writes {
            return;
        }
        if !atomic.reads {
            // Whoever reads this does not read what others have released.
            for seen in Reach::all(by) {
                if self
                    .objects
                    .get(&key(seen))
                    .is_some_and(|&(_, began)| began != by.item)
                {
                    self.objects.remove(&key(seen));
                }
            }
        }
        let fenced = self
            .items
            .get(index as usize)
            .and_then(|item| item.fenced.clone());
        let mut own = [false; SPACES];
        own[space] = order.releases();
        let released = own[space]
            .then(|| self.release(index, atomic.scope, own, by))
            .flatten();
        for release in [fenced, released].into_iter().flatten() {
            let Some(seen) = Reach::in_scope(release.scope, by) else {
                continue;
            };
            let next = self.logs.len();
            let (log, _) = *self.objects.entry(key(seen)).or_insert((next, by.item));
            if log == next {
                self.logs.push(Log::default());
            }
            if let Some(log) = self.logs.get_mut(log) {
                log.add(&release);
            }
        }
    }

    /// Records a fence of a work-item.
    pub fn fence(&mut self, index: u32, by: &Position, order: Order, scope: Scope, fences: Fences) {
        let spaces = named(fences);
        if let Some(item) = self
            .items
            .get_mut(index as usize)
            .filter(|_| order.acquires())
        {
            for space in (0..SPACES).filter(|&space| spaces[space]) {
                item.known[space].join(&std::mem::take(&mut item.seen[space]));
            }
        }
        if order.releases() {
            let release = self.release(index, scope, spaces, by);
            if let Some(item) = self.items.get_mut(index as usize) {
                item.fenced = release;
            }
        }
    }

    /// Records that these work-items have passed a barrier of their sub-group.
    pub fn sub_group_barrier(&mut self, indices: &[u32], fences: Fences) {
        let spaces = named(fences);
        for space in (0..SPACES).filter(|&space| spaces[space]) {
            let mut all = KnownLengths::default();
            for &index in indices {
                if let Some(item) = self.items.get_mut(index as usize) {
                    all.join(&item.known[space]);
                    all.join(&std::mem::take(&mut item.seen[space]));
                }
            }
            for &index in indices {
                if let Some(item) = self.items.get_mut(index as usize) {
                    item.known[space].clone_from(&all);
                }
            }
        }
    }

    /// Records that all work-items of the group have passed a barrier.
    pub fn group_barrier(&mut self, fences: Fences) {
        let spaces = named(fences);
        for space in (0..SPACES).filter(|&space| spaces[space]) {
            for item in &mut self.items {
                self.group[space].join(&std::mem::take(&mut item.known[space]));
                self.group[space].join(&std::mem::take(&mut item.seen[space]));
            }
        }
    }

    /// Returns true if an access happens before the next operation of a work-item of the group.
    pub fn knows(&self, index: u32, space: usize, access: &Position) -> bool {
        let own = self
            .items
            .get(index as usize)
            .map(|item| &item.known[space]);
        own.into_iter().chain([&self.group[space]]).any(|known| {
            known.everything
                || known.logs.iter().any(|(&log, &length)| {
                    { self.logs.get(log) }.is_some_and(|log| log.covers(length, space, access))
                })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Fences = Fences {
        global: true,
        local: true,
        image: true,
    };

    /// Work-items 1 and 2 of group 0, and 3 and 4 of group 1, in sub-groups of one.
    struct World(HappensBefore);

    impl World {
        fn new() -> Self {
            let mut order = HappensBefore::default();
            // One group after the other would forget what the first knows.
            order.begin_group(4);
            Self(order)
        }

        fn at(&self, item: u32) -> Position {
            Position {
                item,
                sub_group: item,
                group: (item - 1) / 2,
                releases: self.0.releases(item - 1),
                ..Position::default()
            }
        }

        fn atomic(&mut self, item: u32, (reads, writes): (bool, bool), order: Order, scope: Scope) {
            let atomic = Atomic {
                space: 0,
                address: 64,
                reads,
                writes,
                order,
                scope,
            };
            self.0.atomic(item - 1, &self.at(item), &atomic);
        }

        fn fence(&mut self, item: u32, order: Order, scope: Scope) {
            self.0.fence(item - 1, &self.at(item), order, scope, ALL);
        }

        fn knows(&self, item: u32, access: &Position) -> bool {
            self.0.knows(item - 1, 0, access)
        }
    }

    const LOAD: (bool, bool) = (true, false);
    const STORE: (bool, bool) = (false, true);
    const CHANGE: (bool, bool) = (true, true);

    #[test]
    fn release_and_acquire() {
        for (store, load, ordered) in [
            (Order::Release, Order::Acquire, true),
            (Order::SeqCst, Order::SeqCst, true),
            (Order::Relaxed, Order::Acquire, false),
            (Order::Release, Order::Relaxed, false),
        ] {
            let mut world = World::new();
            let before = world.at(1);
            world.atomic(1, STORE, store, Scope::Device);
            let after = world.at(1);
            world.atomic(3, LOAD, load, Scope::Device);
            assert_eq!(world.knows(3, &before), ordered, "{store:?} {load:?}");
            let released = store != Order::Relaxed;
            assert!(!released || !world.knows(3, &after), "what comes later");
            assert!(!world.knows(4, &before), "another work-item");
        }
    }

    #[test]
    fn scopes() {
        for (scope, by_mate, by_other) in [
            (Scope::AllDevices, true, true),
            (Scope::Device, true, true),
            (Scope::WorkGroup, true, false),
            (Scope::SubGroup, false, false),
        ] {
            let mut world = World::new();
            let before = world.at(1);
            world.atomic(1, STORE, Order::Release, scope);
            world.atomic(2, LOAD, Order::Acquire, scope);
            world.atomic(3, LOAD, Order::Acquire, scope);
            assert_eq!(world.knows(2, &before), by_mate, "{scope:?}");
            assert_eq!(world.knows(3, &before), by_other, "{scope:?}");
        }
    }

    #[test]
    fn release_sequences() {
        let mut world = World::new();
        let first = world.at(1);
        world.atomic(1, STORE, Order::Release, Scope::Device);
        // What is only changed goes on, without being released itself.
        let second = world.at(2);
        world.atomic(2, CHANGE, Order::Relaxed, Scope::Device);
        world.atomic(3, LOAD, Order::Acquire, Scope::Device);
        assert!(world.knows(3, &first) && !world.knows(3, &second));
        // A store ends it.
        world.atomic(2, STORE, Order::Relaxed, Scope::Device);
        world.atomic(4, LOAD, Order::Acquire, Scope::Device);
        assert!(!world.knows(4, &first));
    }

    #[test]
    fn knowledge_is_passed_on() {
        let mut world = World::new();
        let first = world.at(1);
        for (item, address) in [(1, 64), (2, 64), (2, 128), (3, 128)] {
            let atomic = Atomic {
                space: 0,
                address,
                reads: true,
                writes: true,
                order: Order::AcqRel,
                scope: Scope::Device,
            };
            world.0.atomic(item - 1, &world.at(item), &atomic);
        }
        assert!(world.knows(3, &first));
    }

    #[test]
    fn fences_order_what_is_around_them() {
        for (release, acquire, ordered) in [
            (true, true, true),
            (false, true, false),
            (true, false, false),
        ] {
            let mut world = World::new();
            let before = world.at(1);
            if release {
                world.fence(1, Order::Release, Scope::Device);
            }
            world.atomic(1, STORE, Order::Relaxed, Scope::Device);
            world.atomic(3, LOAD, Order::Relaxed, Scope::Device);
            if acquire {
                world.fence(3, Order::Acquire, Scope::Device);
            }
            assert_eq!(world.knows(3, &before), ordered);
        }
    }

    /// Checks that after a barrier a work-item releases what others of its group did before it.
    #[test]
    fn barriers_before_a_release() {
        let mut world = World::new();
        let before = world.at(2);
        let mut by = world.at(1);
        by.barriers = [1; SPACES];
        let atomic = Atomic {
            space: 0,
            address: 64,
            reads: false,
            writes: true,
            order: Order::Release,
            scope: Scope::Device,
        };
        world.0.atomic(0, &by, &atomic);
        world.atomic(3, LOAD, Order::Acquire, Scope::Device);
        assert!(world.knows(3, &before));
        assert!(!world.knows(4, &before));
        world.0.group_barrier(ALL);
        assert!(world.knows(4, &before));
    }
}
