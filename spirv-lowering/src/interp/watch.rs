//! Detects errors of a kernel and reports them without ending the run: accesses outside of memory
//! or misaligned, use of values that were never written, data races, barriers that not all
//! work-items reach (OpenCL C, sections 6.5 and 6.15.8; the memory model in section 3.3.6 of the
//! OpenCL API).
//!
//! Races are found by what orders accesses, not by the order of the run. Two accesses to a byte of
//! which one writes are a race, unless both are atomic, or one work-item does both, or a barrier of
//! their work-group (or sub-group) that orders the memory lies between them, or release and acquire
//! order them ([`super::happens`]). For each byte the last write is recorded, the last read, and
//! the oldest read that nothing has ordered before later accesses. Writes that do not change a byte
//! are not reported as races with other writes: many programs set a flag from many work-items.
//! Texels of images are bytes of a space of their own, which barriers order by a flag of its own.

use super::happens::{Atomic, HappensBefore, Position};
use super::images::View;
use crate::ir::op::{Fences, Order, Scope};
use crate::ir::types::Space;
use rustc_hash::FxHashMap;

/// The kinds of errors to report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Checks {
    /// Accesses outside of memory, misaligned ones, and use of what was never written.
    pub memory: bool,
    /// Data races within and between work-groups.
    pub races: bool,
    /// Barriers that not all work-items reach.
    pub barriers: bool,
}

/// An error of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Wrong {
    /// A read of bytes that are in no variable or buffer, or of a texel outside of its image.
    ReadOutside,
    /// A write of bytes that are in no variable or buffer, or of a texel outside of its image.
    /// Memory is unchanged.
    WriteOutside,
    /// An address that is less aligned than its type requires.
    Misaligned {
        /// The required alignment in bytes.
        align: u64,
    },
    /// A write of constant memory, which is unchanged.
    ReadOnly,
    /// An index beyond the end of an array.
    Index {
        /// The index.
        index: u64,
        /// The number of elements of the array.
        len: u64,
    },
    /// A value leaves the work-group that was never written, or depends on one that was not.
    NeverWritten,
    /// The named decision depends on a value that was never written.
    Undetermined(&'static str),
    /// A data race: another work-item accesses the same byte, and nothing orders the two.
    Race {
        /// Set if this access writes.
        writes: bool,
        /// Set if the other access wrote.
        wrote: bool,
    },
    /// A barrier that not all work-items of a group or sub-group reach. The rest of the group was
    /// not run.
    Barrier,
}

/// A work-item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WorkItem {
    /// Global id, offset included.
    pub global: [u64; 3],
    /// Local id.
    pub local: [u32; 3],
    /// Number of the work-group in the launch.
    pub group: [u32; 3],
}

/// A texel position of an image, inside of it or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pixel {
    /// Binding of the image.
    pub binding: u32,
    /// Coordinates.
    pub at: [i32; 3],
    /// The image.
    pub view: View,
}

/// An error, recorded the first time that an instruction makes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The kind of error.
    pub wrong: Wrong,
    /// The name of the function.
    pub function: String,
    /// Source line, 0 where the build had no `-g`.
    pub line: u32,
    /// The work-item that made it.
    pub item: WorkItem,
    /// The other work-item of a race, and the source line of its access (0: not known).
    pub other: Option<(WorkItem, u32)>,
    /// The address space.
    pub space: Option<Space>,
    /// The address and the number of bytes of the access.
    pub at: Option<(u64, u64)>,
    /// The texel, for an access to an image.
    pub pixel: Option<Pixel>,
    /// Further explanation, or empty.
    pub note: String,
    /// The number of times that it happened.
    pub times: u64,
}

/// A recorded access to a byte, or none where `item` is 0.
#[derive(Debug, Clone, Copy, Default)]
struct Access {
    /// The linear number of the work-item in the launch, from 1.
    item: u32,
    /// The barriers that the work-group had passed, counted over all groups.
    group: u32,
    /// The barriers that the sub-group had passed.
    sub: u32,
    /// The releases of the work-item.
    releases: u32,
    /// The source line.
    line: u32,
    atomic: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct Byte {
    write: Access,
    last: Access,
    oldest: Access,
}

const PAGE: u64 = 64;

/// The recorded accesses to a space.
#[derive(Debug, Default)]
struct Shadow {
    pages: FxHashMap<u64, Box<[Byte; PAGE as usize]>>,
    /// The number of barriers of the work-group that ordered the space.
    barriers: u32,
}

/// A memory whose accesses are recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shared {
    Global = 0,
    Local = 1,
    Image = 2,
}

/// An access to be checked by [`Watch::touch`].
#[derive(Debug, Clone, Copy)]
pub(super) struct Touch {
    pub of: Shared,
    pub address: u64,
    pub size: u64,
    /// Linear local id of the work-item.
    pub index: u32,
    /// Source line.
    pub line: u32,
    pub writes: bool,
    pub atomic: bool,
    /// Set if a write does not change the memory.
    pub same: bool,
}

/// The other access of a race.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rival {
    /// The number of the work-item in the launch, from 1.
    pub item: u32,
    /// Source line.
    pub line: u32,
    pub wrote: bool,
}

impl Rival {
    fn new(access: &Access, wrote: bool) -> Self {
        Self {
            item: access.item,
            line: access.line,
            wrote,
        }
    }
}

/// An error with what is known about it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fact<'a> {
    pub wrong: Wrong,
    pub space: Option<Space>,
    pub at: Option<(u64, u64)>,
    pub pixel: Option<Pixel>,
    pub other: Option<Rival>,
    pub note: &'a str,
}

impl Fact<'_> {
    /// Creates an error of which only the kind is known.
    pub fn new(wrong: Wrong) -> Self {
        Self {
            wrong,
            space: None,
            at: None,
            pixel: None,
            other: None,
            note: "",
        }
    }
}

/// Returns the numbers in the launch of a work-item's group and sub-group.
fn groups_of(item: u32, items: u32, lanes: u32) -> (u32, u32) {
    let (group, local) = ((item - 1) / items, (item - 1) % items);
    (group, group * items.div_ceil(lanes) + local / lanes)
}

/// The recorded accesses and errors of a run.
#[derive(Debug)]
pub(super) struct Watch {
    pub checks: Checks,
    pub findings: Vec<Finding>,
    /// Maps place and kind of an error to its finding.
    known: FxHashMap<(usize, u32, u32, std::mem::Discriminant<Wrong>), usize>,
    global: Shadow,
    local: Shadow,
    images: Shadow,
    /// The happens-before order from release and acquire.
    order: HappensBefore,
    /// The number of sub-group barriers that each work-item of the group has passed.
    subs: Vec<u32>,
    /// The work-items of a group, those of a sub-group, and the number of the group's first
    /// work-item.
    items: u32,
    lanes: u32,
    first: u32,
    started: bool,
}

impl Watch {
    pub fn new(checks: Checks, items: u32, lanes: u32) -> Self {
        Self {
            checks,
            findings: Vec::new(),
            known: FxHashMap::default(),
            global: Shadow::default(),
            local: Shadow::default(),
            images: Shadow::default(),
            order: HappensBefore::default(),
            subs: vec![0; items as usize],
            items: items.max(1),
            lanes: lanes.max(1),
            first: 0,
            started: false,
        }
    }

    /// Begins the next work-group.
    pub fn begin_group(&mut self) {
        if self.started {
            self.first = self.first.wrapping_add(self.items);
        }
        self.started = true;
        self.local.pages.clear();
        self.group_barrier(Fences {
            global: true,
            local: true,
            image: true,
        });
        self.order.begin_group(self.items);
    }

    /// Records that all work-items have passed a barrier.
    pub fn group_barrier(&mut self, fences: Fences) {
        self.order.group_barrier(fences);
        for (ordered, shadow) in [
            (fences.global, &mut self.global),
            (fences.local, &mut self.local),
            (fences.image, &mut self.images),
        ] {
            shadow.barriers = shadow.barriers.wrapping_add(ordered.into());
        }
    }

    /// Records that these work-items have passed a barrier of their sub-group.
    pub fn sub_barrier(&mut self, indices: &[u32], fences: Fences) {
        self.order.sub_group_barrier(indices, fences);
        for &index in indices {
            if let Some(count) = self.subs.get_mut(index as usize) {
                *count = count.wrapping_add(1);
            }
        }
    }

    /// Returns the position of a work-item of the group in its program order.
    fn position(&self, index: u32) -> Position {
        let item = self.first.wrapping_add(index).wrapping_add(1);
        let (group, sub_group) = groups_of(item, self.items, self.lanes);
        Position {
            item,
            sub_group,
            group,
            releases: self.order.releases(index),
            sub_barriers: self.subs.get(index as usize).copied().unwrap_or(0),
            barriers: [
                self.global.barriers,
                self.local.barriers,
                self.images.barriers,
            ],
        }
    }

    /// Records an atomic operation of a work-item.
    pub fn atomic(&mut self, index: u32, atomic: &Atomic) {
        if self.checks.races {
            let by = self.position(index);
            self.order.atomic(index, &by, atomic);
        }
    }

    /// Records a fence of a work-item.
    pub fn fence(&mut self, index: u32, order: Order, scope: Scope, fences: Fences) {
        if self.checks.races {
            let by = self.position(index);
            self.order.fence(index, &by, order, scope, fences);
        }
    }

    /// Returns the linear local id of a work-item, and how many groups before the current one its
    /// group is.
    pub fn who(&self, item: u32) -> (u32, u32) {
        let back = self.first + self.items - 1 - (item - 1);
        let local = (item - 1) % self.items;
        (local, back / self.items)
    }

    /// Records an access. Returns the other access if the two are a race.
    pub fn touch(&mut self, touch: &Touch) -> Option<Rival> {
        let sub = self.subs.get(touch.index as usize).copied().unwrap_or(0);
        let (items, lanes, order) = (self.items, self.lanes, &self.order);
        let shadow = match touch.of {
            Shared::Global => &mut self.global,
            Shared::Local => &mut self.local,
            Shared::Image => &mut self.images,
        };
        let now = Access {
            item: self.first.wrapping_add(touch.index).wrapping_add(1),
            group: shadow.barriers,
            sub,
            releases: order.releases(touch.index),
            line: touch.line,
            atomic: touch.atomic,
        };
        let unordered = |old: &Access| {
            if old.item == 0 || old.item == now.item || old.atomic && now.atomic {
                return false;
            }
            let [of_old, of_now] = [old, &now].map(|one| groups_of(one.item, items, lanes));
            let same_sub_group = of_old == of_now;
            let passed_barrier = of_old.0 == of_now.0
                && (old.group != now.group || same_sub_group && old.sub != now.sub);
            let position = || Position {
                item: old.item,
                group: of_old.0,
                sub_group: of_old.1,
                releases: old.releases,
                sub_barriers: old.sub,
                barriers: [old.group; 3],
            };
            !passed_barrier && !order.knows(touch.index, touch.of as usize, &position())
        };
        let mut race = None;
        for address in touch.address..touch.address.saturating_add(touch.size) {
            let page = shadow
                .pages
                .entry(address / PAGE)
                .or_insert_with(|| Box::new([Byte::default(); PAGE as usize]));
            let Some(byte) = page.get_mut((address % PAGE) as usize) else {
                continue;
            };
            if race.is_none() && unordered(&byte.write) && !(touch.writes && touch.same) {
                race = Some(Rival::new(&byte.write, true));
            }
            if touch.writes {
                for read in [&byte.last, &byte.oldest] {
                    if race.is_none() && unordered(read) && !touch.same {
                        race = Some(Rival::new(read, false));
                    }
                }
                byte.write = now;
            } else {
                if !unordered(&byte.oldest) {
                    byte.oldest = now;
                }
                byte.last = now;
            }
        }
        race
    }

    /// Records an error at a place of the code.
    pub fn note(
        &mut self,
        place: (usize, u32, u32),
        finding: impl FnOnce() -> Finding,
        wrong: Wrong,
    ) {
        let key = (place.0, place.1, place.2, std::mem::discriminant(&wrong));
        if let Some(found) = self.known.get(&key).and_then(|&i| self.findings.get_mut(i)) {
            found.times += 1;
            return;
        }
        self.known.insert(key, self.findings.len());
        self.findings.push(finding());
    }
}
