//! What a kernel must not do, noted instead of ending the run: accesses outside of memory or misaligned, use of what was
//! never written, data races, barriers that not all reach (OpenCL C, sections 6.5 and 6.15.8; the memory model in section
//! 3.3.6 of the OpenCL API).
//!
//! Races are found by what orders, not by the order of the run: two accesses to a byte of which one writes are a race unless
//! both are atomic, or a work-item does both, or a barrier of their work-group (or sub-group) that orders the memory lies
//! between them, or release and acquire order them ([`super::happens`]). Of the accesses to a byte the last write is remembered, the last read, and the oldest
//! read that nothing has ordered before what follows. Writes that leave what is there are not called races with
//! other writes: many programs set a flag from many work-items. Texels of images are bytes of a space of their own, which
//! barriers order by a flag of its own.

use super::happens::{Atomic, HappensBefore, Position};
use super::images::View;
use crate::ir::op::{Fences, Order, Scope};
use crate::ir::types::Space;
use rustc_hash::FxHashMap;

/// What to look for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Checks {
    /// Accesses outside of memory, misaligned ones, and use of what was never written.
    pub memory: bool,
    /// Data races within and between work-groups.
    pub races: bool,
    /// Barriers that not all work-items reach.
    pub barriers: bool,
}

/// What was wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Wrong {
    /// Bytes were read that are in no variable or buffer, or a texel that is not in its image.
    ReadOutside,
    /// Bytes were written that are in no variable or buffer, or a texel that is not in its image. Memory is as before.
    WriteOutside,
    /// An address is less aligned than its type asks for.
    Misaligned {
        /// Bytes.
        align: u64,
    },
    /// Constant memory was written. It is as before.
    ReadOnly,
    /// An index was beyond the end of an array of so many elements.
    Index {
        /// The index.
        index: u64,
        /// Elements.
        len: u64,
    },
    /// What leaves the work-group was never written, or comes of what was not.
    NeverWritten,
    /// What is named depends on a value that was never written.
    Undetermined(&'static str),
    /// Another work-item accesses the same byte, and nothing orders the two.
    Race {
        /// This access writes.
        writes: bool,
        /// The other wrote.
        wrote: bool,
    },
    /// The work-items of a group or sub-group do not come to a barrier together. The rest of the group was not run.
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

/// A place of an image, in it or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pixel {
    /// Binding of the image.
    pub binding: u32,
    /// Coordinates.
    pub at: [i32; 3],
    /// The image.
    pub view: View,
}

/// Something wrong, the first time that an instruction did it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What.
    pub wrong: Wrong,
    /// Function.
    pub function: String,
    /// Source line, 0 where the build had no `-g`.
    pub line: u32,
    /// Who did it.
    pub item: WorkItem,
    /// With whom, of a race, and the source line there (0: not known).
    pub other: Option<(WorkItem, u32)>,
    /// The memory.
    pub space: Option<Space>,
    /// Address and number of bytes of the access.
    pub at: Option<(u64, u64)>,
    /// The same of an access to an image.
    pub pixel: Option<Pixel>,
    /// More about it, or nothing.
    pub note: String,
    /// How often it happened.
    pub times: u64,
}

/// An access to a byte; `item` 0: none.
#[derive(Debug, Clone, Copy, Default)]
struct Access {
    /// Linear number in the launch, from 1.
    item: u32,
    /// Barriers of the work-group that had been passed, counted over all groups.
    group: u32,
    /// Barriers of the sub-group.
    sub: u32,
    /// Releases of the work-item.
    releases: u32,
    /// Source line.
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

/// What was accessed in a space.
#[derive(Debug, Default)]
struct Shadow {
    pages: FxHashMap<u64, Box<[Byte; PAGE as usize]>>,
    /// Barriers of the work-group that ordered it.
    barriers: u32,
}

/// Memory whose accesses are remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shared {
    Global = 0,
    Local = 1,
    Image = 2,
}

/// An access as [`Watch::touch`] gets it.
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
    /// It writes what is there.
    pub same: bool,
}

/// The other access of a race.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rival {
    /// Number of the work-item, from 1.
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

/// Something wrong, and what is known of it.
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
    /// Nothing but that it is.
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

/// The group and the sub-group of a work-item, each by its number in the launch.
fn groups_of(item: u32, items: u32, lanes: u32) -> (u32, u32) {
    let (group, local) = ((item - 1) / items, (item - 1) % items);
    (group, group * items.div_ceil(lanes) + local / lanes)
}

/// What is known during a run.
#[derive(Debug)]
pub(super) struct Watch {
    pub checks: Checks,
    pub findings: Vec<Finding>,
    /// Findings by place and kind.
    known: FxHashMap<(usize, u32, u32, std::mem::Discriminant<Wrong>), usize>,
    global: Shadow,
    local: Shadow,
    images: Shadow,
    /// The order that release and acquire give.
    order: HappensBefore,
    /// Barriers of sub-groups that each work-item of the group has passed.
    subs: Vec<u32>,
    /// Work-items of a group, of a sub-group, and the number of the first work-item of the group.
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

    /// The next work-group begins.
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

    /// All work-items have passed a barrier.
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

    /// These work-items have passed a barrier of their sub-group.
    pub fn sub_barrier(&mut self, indices: &[u32], fences: Fences) {
        self.order.sub_group_barrier(indices, fences);
        for &index in indices {
            if let Some(count) = self.subs.get_mut(index as usize) {
                *count = count.wrapping_add(1);
            }
        }
    }

    /// Where a work-item of the group is.
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

    /// A work-item has done an atomic operation.
    pub fn atomic(&mut self, index: u32, atomic: &Atomic) {
        if self.checks.races {
            let by = self.position(index);
            self.order.atomic(index, &by, atomic);
        }
    }

    /// A work-item has passed a fence.
    pub fn fence(&mut self, index: u32, order: Order, scope: Scope, fences: Fences) {
        if self.checks.races {
            let by = self.position(index);
            self.order.fence(index, &by, order, scope, fences);
        }
    }

    /// Linear local id, and how many groups before the current one, of an access.
    pub fn who(&self, item: u32) -> (u32, u32) {
        let back = self.first + self.items - 1 - (item - 1);
        let local = (item - 1) % self.items;
        (local, back / self.items)
    }

    /// Notes an access. The other access with which it is a race.
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
        let apart = |old: &Access| {
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
            if race.is_none() && apart(&byte.write) && !(touch.writes && touch.same) {
                race = Some(Rival::new(&byte.write, true));
            }
            if touch.writes {
                for read in [&byte.last, &byte.oldest] {
                    if race.is_none() && apart(read) && !touch.same {
                        race = Some(Rival::new(read, false));
                    }
                }
                byte.write = now;
            } else {
                if !apart(&byte.oldest) {
                    byte.oldest = now;
                }
                byte.last = now;
            }
        }
        race
    }

    /// Notes something wrong that was done at a place of the code.
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
