//! Work-items under [`Watch`](super::watch::Watch): their accesses are recorded, and wrong ones
//! have no effect.

use super::error::{Error, Fault};
use super::happens::Atomic;
use super::inst::InstRun;
use super::item::Item;
use super::launch::Machine;
use super::memory::OWN;
use super::scalar::Scalar;
use super::watch::{Fact, Finding, Shared, Touch, WorkItem, Wrong};
use crate::interface::Implicit;
use crate::ir::entity::{Entity, Var};
use crate::ir::function::{Function, Storage, Terminator, ValueDef};
use crate::ir::op::Op;
use crate::ir::types::{Space, Type};

impl Machine<'_> {
    /// Returns the ids of a work-item with linear local id `index` of the group `groups_back`
    /// before the current one.
    fn work_item(&self, index: u32, groups_back: u32) -> WorkItem {
        let (size, count) = (self.dispatch.local, self.dispatch.groups);
        let at = |index: u32, size: [u32; 3]| {
            let [x, y] = [size[0].max(1), size[1].max(1)];
            [index % x, index / x % y, index / x / y]
        };
        let linear = (self.group[2] * count[1] + self.group[1]) * count[0] + self.group[0];
        let (local, group) = (at(index, size), at(linear.wrapping_sub(groups_back), count));
        let base = |d: usize| {
            let pushed = self.pushed(Implicit::GlobalBase, d as u8, Type::I32);
            pushed.map_or_else(|| self.wide_base(d as u8), |value| value.bits)
        };
        WorkItem {
            global: [0, 1, 2].map(|d| {
                let within = u64::from(group[d]) * u64::from(size[d]) + u64::from(local[d]);
                base(d).wrapping_add(within)
            }),
            local,
            group,
        }
    }

    /// Reports an error of a work-item where it is.
    pub fn wrong(&mut self, item: &Item, fact: Fact) {
        let Some(frame) = item.frames.last() else {
            return;
        };
        let inst = frame.func.blocks[frame.block].insts.get(frame.pc);
        // The end of a block has no line of its own: that of what decides.
        let line = match (inst, &frame.func.blocks[frame.block].insts.last()) {
            (Some(&inst), _) | (None, Some(&inst)) => frame.func.insts[inst].line,
            _ => 0,
        };
        let place = (
            frame.func as *const Function as usize,
            frame.block.index() as u32,
            frame.pc as u32,
        );
        let who = self.work_item(item.place.index, 0);
        let other = fact.other.and_then(|rival| {
            let (index, back) = self.watch.as_ref()?.who(rival.item);
            Some((self.work_item(index, back), rival.line))
        });
        if let Some(watch) = &mut self.watch {
            let make = || Finding {
                wrong: fact.wrong,
                function: frame.func.name.clone(),
                line,
                item: who,
                other,
                space: fact.space,
                at: fact.at,
                pixel: fact.pixel,
                note: fact.note.to_owned(),
                times: 1,
            };
            watch.note(place, make, fact.wrong);
        }
    }

    /// Returns the global id of a dispatch's first work-item in a kernel for launches beyond 32
    /// bits, or 0 if the launch does not pass it.
    fn wide_base(&self, dim: u8) -> u64 {
        let word = |which| {
            let pushed = self.pushed(which, dim, Type::I32);
            pushed.map_or(0, |value| value.bits)
        };
        let wide = |low, high| word(low) | word(high) << 32;
        let group = wide(Implicit::GroupOffset, Implicit::GroupOffsetHigh);
        let first = group.wrapping_mul(word(Implicit::EnqueuedLocalSize));
        wide(Implicit::GlobalOffset, Implicit::GlobalOffsetHigh).wrapping_add(first)
    }

    /// Returns an implicit argument that the argument block holds.
    pub fn pushed(&self, which: Implicit, component: u8, ty: Type) -> Option<Scalar> {
        let &(_, offset) = self.pushed.iter().find(|(other, _)| *other == which)?;
        let at = offset as usize + 4 * usize::from(component);
        self.arg_block.read(at, ty.size() as usize)
    }
}

impl InstRun<'_, '_, '_> {
    /// Reports an error, if its kind is checked.
    pub(super) fn note(&mut self, fact: Fact) {
        let watch = self.machine.watch.as_ref();
        if watch.is_some_and(|watch| watch.checks.memory) {
            self.machine.wrong(self.item, fact);
        }
    }

    /// Copies the memory of an access from its source, if that has not been done.
    pub(super) fn bring(&mut self, space: Space, address: u64, size: u32) {
        let machine = &mut *self.machine;
        let Some(source) = &mut machine.source else {
            return;
        };
        let near = matches!(space, Space::Local | Space::Private);
        if near || size == 0 || machine.memory.check(address, size.into()).is_ok() {
            return;
        }
        let last = address.saturating_add(u64::from(size) - 1);
        for at in [address, last] {
            if machine.memory.check(at, 1).is_err() {
                if let Some((base, bytes)) = source.piece(at) {
                    machine.memory.add_at(base, bytes);
                }
            }
        }
        let whole = source.buffer(address);
        if whole.is_some_and(|(base, size)| last - base < size) {
            machine.memory.join(address);
        }
    }

    /// Reports a wrong access. Returns an error if the run cannot continue.
    pub(super) fn forgive(
        &mut self,
        fault: Fault,
        space: Option<Space>,
        writes: bool,
    ) -> Result<(), Error> {
        if self.machine.watch.is_none() {
            return Err(self.fault(space)(fault));
        }
        let (wrong, at) = match fault {
            Fault::Outside { address, size } => {
                let wrong = if writes {
                    Wrong::WriteOutside
                } else {
                    Wrong::ReadOutside
                };
                (wrong, Some((address, size)))
            }
            Fault::Unaligned { address, align } => {
                (Wrong::Misaligned { align }, Some((address, 0)))
            }
            Fault::ReadOnly { address } => (Wrong::ReadOnly, Some((address, 0))),
            Fault::Index { index, len } => (Wrong::Index { index, len }, None),
        };
        self.note(Fact {
            space,
            at,
            ..Fact::new(wrong)
        });
        Ok(())
    }

    /// Reports a value that was never written and leaves the work-group. A copied value may contain
    /// unwritten padding of a structure, so only a wholly unwritten one counts there.
    pub(super) fn gives_away(&mut self, space: Space, address: u64, ty: Type, value: Scalar) {
        let unknown = value.unknown & ty.mask();
        let own = matches!(space, Space::Local | Space::Private) || address >= OWN;
        if unknown == 0 || own || (unknown != ty.mask() && self.is_copied()) {
            return;
        }
        self.note(Fact {
            space: Some(space),
            at: Some((address, ty.size().into())),
            ..Fact::new(Wrong::NeverWritten)
        });
    }

    /// Records a read or a write; `same` says that a write does not change the memory.
    pub(super) fn touch(&mut self, space: Space, address: u64, ty: Type, writes: bool, same: bool) {
        let of = match space {
            Space::Private | Space::Constant => return,
            Space::Global if address >= OWN => return,
            Space::Local => Shared::Local,
            _ => Shared::Global,
        };
        let at = (address, ty.size().into());
        if let Some(race) = self.races(of, at, writes, same) {
            let (space, at) = (Some(space), Some(at));
            self.machine.wrong(self.item, Fact { space, at, ..race });
        }
    }

    /// Records an atomic operation, which may order accesses to other memory.
    pub(super) fn synchronises(&mut self, space: Space, address: u64, writes: bool) {
        let Some(watch) = &mut self.machine.watch else {
            return;
        };
        let (order, scope, reads) = match self.data.op {
            Op::AtomicStore { order, scope } => (order, scope, false),
            Op::AtomicLoad { order, scope }
            | Op::AtomicRmw { order, scope, .. }
            | Op::AtomicCmpXchg { order, scope } => (order, scope, true),
            _ => return,
        };
        let of = match space {
            Space::Private => return,
            Space::Local => Shared::Local,
            _ => Shared::Global,
        };
        let atomic = Atomic {
            space: of as usize,
            address,
            reads,
            writes,
            order,
            scope,
        };
        watch.atomic(self.item.place.index, &atomic);
    }

    /// Records an access and reports the race that it makes.
    pub(super) fn races(
        &mut self,
        of: Shared,
        (address, size): (u64, u64),
        writes: bool,
        same: bool,
    ) -> Option<Fact<'static>> {
        let watch = self.machine.watch.as_mut()?;
        if !watch.checks.races {
            return None;
        }
        let rival = watch.touch(&Touch {
            of,
            address,
            size,
            index: self.item.place.index,
            line: self.data.line,
            writes,
            atomic: self.atomic,
            same,
        })?;
        let wrong = Wrong::Race {
            writes,
            wrote: rival.wrote,
        };
        Some(Fact {
            other: Some(rival),
            ..Fact::new(wrong)
        })
    }

    /// Returns true if the stored value is the result of a load. Structures are copied with their
    /// padding.
    fn is_copied(&self) -> bool {
        let Some(frame) = self.item.frames.last() else {
            return false;
        };
        if matches!(self.data.op, Op::MemCopy { .. }) {
            return true;
        }
        let stored = self
            .data
            .args
            .get(1)
            .and_then(|&v| frame.func.values.get(v));
        let Some(ValueDef::Result(inst, _)) = stored.map(|value| value.def) else {
            return false;
        };
        matches!(frame.func.insts[inst].op, Op::Load { .. } | Op::VarLoad(_))
    }

    /// Records an access to an element of an array.
    pub(super) fn watch_array(
        &mut self,
        var: Var,
        offset: usize,
        ty: Type,
        old: Scalar,
        new: Option<Scalar>,
    ) {
        let func = (self.item.frames.last()).map_or(self.machine.func, |frame| frame.func);
        let shared = func.vars[var].storage == Storage::Workgroup;
        let space = if shared { Space::Local } else { Space::Private };
        // Arrays have no addresses; they lie above all memory.
        let address = 1 << 63 | (var.index() as u64) << 32 | offset as u64;
        let stores = matches!(self.data.op, Op::VarStore(_) | Op::VarAtomicStore { .. });
        self.atomic = !matches!(self.data.op, Op::VarLoad(_) | Op::VarStore(_));
        if !stores {
            self.touch(space, address, ty, false, false);
        }
        if let Some(new) = new {
            let same = old.is_known() && old.bits == new.bits & ty.mask();
            self.touch(space, address, ty, true, same);
        }
    }
}

impl<'a> Item<'a> {
    /// Reports a branch that depends on values that were never written.
    pub fn watch_end(&mut self, machine: &mut Machine<'a>) {
        let Some(frame) = self.frames.last() else {
            return;
        };
        let decides = match &frame.func.blocks[frame.block].term {
            Terminator::Branch(value, ..) => Some((*value, "the condition of a branch")),
            Terminator::Switch(value, ..) => Some((*value, "the value of a switch")),
            _ => None,
        };
        let memory = machine.watch.as_ref().is_some_and(|w| w.checks.memory);
        if let Some((value, what)) = decides.filter(|_| memory) {
            if !frame.value(value).is_known() {
                machine.wrong(self, Fact::new(Wrong::Undetermined(what)));
            }
        }
    }
}
