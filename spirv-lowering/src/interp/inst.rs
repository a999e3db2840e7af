//! Executes the instructions of a work-item.

use super::arrays::{Arrays, Local, MOST_BYTES};
use super::atomic::modify;
use super::concrete::concrete;
use super::error::{Error, Fault};
use super::eval::eval;
use super::item::{Item, ItemState, Scalars};
use super::launch::Machine;
use super::memory::{Memory, Region, OWN};
use super::printf;
use super::scalar::Scalar;
use super::spaces;
use super::watch::{Fact, Wrong};
use crate::ir::entity::{Entity, Value, Var};
use crate::ir::function::{InstData, Storage};
use crate::ir::op::Op;
use crate::ir::types::{Space, Type};
use smallvec::SmallVec;

impl<'a> Item<'a> {
    /// Runs until the work-item has ended or waits.
    pub fn run(
        &mut self,
        machine: &mut Machine<'a>,
        local: &mut Local,
        arrays: &Arrays,
    ) -> Result<(), Error> {
        loop {
            machine.steps += 1;
            if machine.steps > machine.options.steps {
                return Err(Error::Steps);
            }
            let Some(frame) = self.frames.last_mut() else {
                self.state = ItemState::Done;
                return Ok(());
            };
            let Some(data) = frame.inst() else {
                if let Some(claims) = &mut machine.claims {
                    let mut used = Vec::new();
                    let term = &frame.func.blocks[frame.block].term;
                    term.for_each_use(|v| used.push((v, frame.value(v))));
                    claims.ends(&self.place, frame.block, &used);
                }
                let depth = self.frames.len();
                self.end_block(machine)?;
                if self.frames.len() == depth {
                    self.enters(machine);
                }
                if self.frames.is_empty() {
                    self.state = ItemState::Done;
                    return Ok(());
                }
                continue;
            };
            let mut args: Scalars = data.args.iter().map(|&v| frame.value(v)).collect();
            let at = (frame.block, frame.pc);
            if let Some(claims) = &mut machine.claims {
                claims.does(&self.place, at, data, &args);
                claims.stores(&self.place, at, data, &mut args);
            }
            if let Op::Barrier { .. } | Op::Group(..) = data.op {
                self.state = ItemState::Waiting;
                return Ok(());
            }
            if let Op::Call(id) = data.op {
                self.call(machine, id, &args)?;
                continue;
            }
            let mut step = InstRun {
                machine: &mut *machine,
                local: &mut *local,
                arrays,
                item: &mut *self,
                data,
                args: &args,
                atomic: false,
            };
            let results = step.run()?;
            if let Some(claims) = &mut machine.claims {
                claims.has_done(&self.place, data, &results);
            }
            if let Some(frame) = self.frames.last_mut() {
                for (&value, &result) in data.results.iter().zip(&results) {
                    frame.set(value, result);
                }
                frame.pc += 1;
            }
        }
    }
}

/// The execution of one instruction that does not wait.
pub(super) struct InstRun<'s, 'm, 'a> {
    pub machine: &'s mut Machine<'m>,
    pub local: &'s mut Local,
    pub arrays: &'s Arrays,
    pub item: &'s mut Item<'a>,
    pub data: &'s InstData,
    pub args: &'s [Scalar],
    /// Set if its accesses are atomic.
    pub atomic: bool,
}

impl InstRun<'_, '_, '_> {
    /// Returns function, block and instruction for messages.
    pub(super) fn place(&self) -> String {
        self.item.location()
    }

    /// Returns what makes an error of a fault in memory at this instruction.
    pub(super) fn fault(&self, space: Option<Space>) -> impl FnOnce(Fault) -> Error {
        let place = self.place();
        move |fault| Error::Access {
            fault,
            space,
            place,
        }
    }

    fn ty(&self, value: Value) -> Type {
        let frame = self.item.frames.last();
        frame
            .and_then(|f| f.func.values.get(value))
            .map_or(Type::I32, |v| v.ty)
    }

    /// Returns an operand.
    pub(super) fn arg(&self, index: usize) -> Scalar {
        self.args.get(index).copied().unwrap_or_default()
    }

    fn arg_ty(&self, index: usize) -> Type {
        self.data.args.get(index).map_or(Type::I32, |&v| self.ty(v))
    }

    fn result_ty(&self) -> Type {
        self.data.results.first().map_or(Type::I32, |&v| self.ty(v))
    }

    /// Returns the bits of a value that must be known, because control flow or an address depends
    /// on it.
    pub(super) fn decided(&mut self, value: Scalar, what: &'static str) -> Result<u64, Error> {
        if !value.is_known() {
            self.note(Fact::new(Wrong::Undetermined(what)));
        }
        if self.machine.options.strict && !value.is_known() {
            let place = self.place();
            return Err(Error::Unknown { what, place });
        }
        Ok(value.bits)
    }

    /// Returns the memory and the address there that an operand points to.
    fn address(&mut self, index: usize) -> Result<(Space, u64), Error> {
        let bits = self.decided(self.arg(index), "an address")?;
        let space = self.arg_ty(index).space().unwrap_or(Space::Global);
        Ok(spaces::place(space, bits))
    }

    fn memory(&mut self, space: Space) -> &mut Memory {
        match space {
            Space::Local => &mut self.local.memory,
            Space::Private => &mut self.item.private,
            _ => self.machine.memory,
        }
    }

    fn aligned(&mut self, space: Space, address: u64, align: u64) -> Result<(), Error> {
        if align > 1 && address % align != 0 {
            let fault = Fault::Unaligned { address, align };
            return self.forgive(fault, Some(space), false);
        }
        Ok(())
    }

    fn read(&mut self, space: Space, address: u64, ty: Type) -> Result<Scalar, Error> {
        self.bring(space, address, ty.size());
        match self.memory(space).read(address, ty.size()) {
            Ok(value) => {
                self.touch(space, address, ty, false, false);
                Ok(value)
            }
            Err(fault) => {
                self.forgive(fault, Some(space), false)?;
                Ok(Scalar::known(0))
            }
        }
    }

    fn write(&mut self, space: Space, at: u64, ty: Type, value: Scalar) -> Result<(), Error> {
        if space == Space::Constant {
            let fault = Fault::ReadOnly { address: at };
            return self.forgive(fault, Some(space), true);
        }
        self.bring(space, at, ty.size());
        if self.machine.watch.is_some() {
            self.gives_away(space, at, ty, value);
            let old = self.memory(space).read(at, ty.size());
            let same = old.is_ok_and(|old| old.is_known() && old.bits == value.bits & ty.mask());
            if old.is_ok() {
                self.touch(space, at, ty, true, same);
            }
        }
        match self.memory(space).write(at, ty.size(), value) {
            Ok(()) => Ok(()),
            Err(fault) => self.forgive(fault, Some(space), true),
        }
    }

    /// Returns the region and the byte offset of the first lane of an array element, or `None`
    /// beyond the array's end.
    fn element(&mut self, var: Var) -> Result<Option<(&mut Region, usize, Type)>, Error> {
        let index = self.decided(self.arg(0), "an index")?;
        let none = || Error::invalid("no such array");
        let frame = self.item.frames.last().ok_or_else(none)?;
        let at = var.index();
        let data = frame.func.vars.get(var).ok_or_else(none)?;
        let arrays = match &frame.arrays {
            Some((arrays, _)) => arrays,
            None => self.arrays,
        };
        let len = arrays.len.get(at).copied().ok_or_else(none)?;
        let region = arrays.of.get(at).copied().unwrap_or(usize::MAX);
        if index >= len {
            self.forgive(Fault::Index { index, len }, None, false)?;
            return Ok(None);
        }
        let item = &mut *self.item;
        let own = item
            .frames
            .last_mut()
            .and_then(|frame| frame.arrays.as_mut());
        let regions = match (data.storage, own) {
            (Storage::Workgroup, _) => &mut self.local.arrays,
            (Storage::Function, Some((_, regions))) => regions,
            (Storage::Function, None) => &mut item.arrays,
        };
        let region = regions.get_mut(region).ok_or_else(none)?;
        let offset = index as usize * data.elem_size() as usize;
        Ok(Some((region, offset, data.elem)))
    }

    /// Reads an array element of one lane, and writes the value that `change` returns. Returns the
    /// old value.
    fn update(
        &mut self,
        var: Var,
        change: impl FnOnce(Scalar, Type) -> Option<Scalar>,
    ) -> Result<Scalar, Error> {
        self.update_lane(var, 0, change)
    }

    /// Does the same as [`Self::update`] for lane number `lane` of an element.
    fn update_lane(
        &mut self,
        var: Var,
        lane: usize,
        change: impl FnOnce(Scalar, Type) -> Option<Scalar>,
    ) -> Result<Scalar, Error> {
        let Some((region, offset, ty)) = self.element(var)? else {
            return Ok(Scalar::known(0));
        };
        let size = ty.size() as usize;
        let offset = offset + lane * size;
        let outside = || Error::invalid("an array is shorter than it says");
        let old = region.read(offset, size).ok_or_else(outside)?;
        let new = change(old, ty);
        if let Some(new) = new {
            region.write(offset, size, new).ok_or_else(outside)?;
        }
        if self.machine.watch.is_some() {
            self.watch_array(var, offset, ty, old, new);
        }
        Ok(old)
    }

    /// Loads the value at the address operand and stores the one that `change` returns for it.
    /// Returns the old value.
    fn update_memory(
        &mut self,
        ty: Type,
        change: impl Fn(Scalar, Type) -> Option<Scalar>,
    ) -> Result<Scalar, Error> {
        let (space, address) = self.address(0)?;
        self.aligned(space, address, ty.size().into())?;
        self.atomic = true;
        loop {
            self.refresh(space, address, ty);
            let old = self.read(space, address, ty)?;
            let new = change(old, ty);
            if let Some(new) = new {
                self.write(space, address, ty, new)?;
                if !self.exchange(space, address, ty, new) {
                    continue;
                }
            }
            self.synchronises(space, address, new.is_some());
            return Ok(old);
        }
    }

    /// Updates the run's copy of a value in memory that others change.
    fn refresh(&mut self, space: Space, address: u64, ty: Type) {
        if space != Space::Global {
            return;
        }
        self.bring(space, address, ty.size());
        let machine = &mut *self.machine;
        let source = machine.source.as_mut();
        if let Some(bits) = source.and_then(|source| source.refresh(address, ty.size())) {
            // It is there, as a piece was brought.
            let _ = (machine.memory).write(address, ty.size(), Scalar::known(bits));
        }
    }

    /// Writes a value to memory that others change. Returns false if they have changed it since
    /// [`Self::refresh`].
    fn exchange(&mut self, space: Space, address: u64, ty: Type, new: Scalar) -> bool {
        let source = self.machine.source.as_mut();
        match source.filter(|_| space == Space::Global) {
            Some(source) => source.exchange(address, ty.size(), new.bits & ty.mask()),
            None => true,
        }
    }

    /// Executes the instruction. Returns its results.
    pub(super) fn run(&mut self) -> Result<SmallVec<[Scalar; 2]>, Error> {
        let one = |value: Scalar| -> SmallVec<[Scalar; 2]> { SmallVec::from_slice(&[value]) };
        let none = SmallVec::new();
        let (a, b) = (self.arg(0), self.arg(1));
        Ok(match self.data.op {
            Op::Const(bits) => one(Scalar::known(bits)),
            // Not a matter of memory; vectors of three have a fourth element that is one.
            Op::Undef if self.machine.watch.is_some() => { self.data.results.iter() }
                .map(|_| Scalar::known(0))
                .collect(),
            Op::Undef => {
                let noise = self.machine.noise();
                let types = self.data.results.iter().map(|&v| self.ty(v));
                types.map(|ty| Scalar::unknown(ty, noise)).collect()
            }
            Op::GlobalAddr(id) => one(Scalar::known(self.global(id)?)),
            Op::SpaceCast => {
                let from = self.arg_ty(0).space().unwrap_or(Space::Global);
                let to = self.result_ty().space().unwrap_or(Space::Global);
                one(spaces::cast(a, from, to))
            }
            Op::PtrIsIn(space) => one(spaces::is_in(a, self.arg_ty(0).space(), space)),
            Op::Alloca { size, align } => {
                self.item.private_bytes += u64::from(size);
                if self.item.private_bytes > MOST_BYTES {
                    return Err(Error::invalid("too much private memory"));
                }
                let noise = self.machine.noise();
                let memory = &mut self.item.private;
                one(Scalar::known(memory.add_fresh(
                    size.into(),
                    align.into(),
                    noise,
                )))
            }
            Op::Load { align, .. } => {
                let (space, mut at) = self.address(0)?;
                self.aligned(space, at, align.into())?;
                let ty = self.result_ty();
                let mut results = none;
                for _ in 0..self.data.results.len() {
                    results.push(self.read(space, at, ty)?);
                    at = at.wrapping_add(ty.size().into());
                }
                results
            }
            Op::Store { align, .. } => {
                let (space, mut at) = self.address(0)?;
                self.aligned(space, at, align.into())?;
                let ty = self.arg_ty(1);
                for &value in self.args.iter().skip(1) {
                    self.write(space, at, ty, value)?;
                    at = at.wrapping_add(ty.size().into());
                }
                none
            }
            Op::MemCopy { size, align } => {
                self.copy(size, align.into())?;
                none
            }
            Op::AtomicLoad { .. } => {
                let ty = self.result_ty();
                one(self.update_memory(ty, |_, _| None)?)
            }
            Op::AtomicStore { .. } => {
                self.update_memory(self.arg_ty(1), |_, _| Some(b))?;
                none
            }
            Op::AtomicRmw { op, .. } => {
                let noise = self.machine.noise();
                let ty = self.result_ty();
                one(self.update_memory(ty, |old, ty| Some(modify(op, ty, old, b, noise)))?)
            }
            Op::AtomicCmpXchg { .. } => {
                let expected = self.decided(b, "what an exchange expects")?;
                let desired = self.arg(2);
                let ty = self.result_ty();
                one(self.update_memory(ty, |old, _| (old.bits == expected).then_some(desired))?)
            }
            Op::VarLoad(var) | Op::VarAtomicLoad { var, .. } => {
                let mut results = none;
                for lane in 0..self.data.results.len() {
                    results.push(self.update_lane(var, lane, |_, _| None)?);
                }
                results
            }
            Op::VarStore(var) | Op::VarAtomicStore { var, .. } => {
                for lane in 0..self.data.args.len() - 1 {
                    let value = self.arg(lane + 1);
                    self.update_lane(var, lane, |_, _| Some(value))?;
                }
                none
            }
            Op::VarRmw { var, op, .. } => {
                let noise = self.machine.noise();
                one(self.update(var, |old, ty| Some(modify(op, ty, old, b, noise)))?)
            }
            Op::VarCmpXchg { var, .. } => {
                let expected = self.decided(b, "what an exchange expects")?;
                let desired = self.arg(2);
                one(self.update(var, |old, _| (old.bits == expected).then_some(desired))?)
            }
            Op::Fence { mem, order, fences } => {
                if let Some(watch) = &mut self.machine.watch {
                    watch.fence(self.item.place.index, order, mem, fences);
                }
                none
            }
            Op::Clock(_) => {
                let ticks = self.machine.steps;
                one(Scalar::unknown(Type::I64, ticks))
            }
            Op::Builtin(which) => one(Scalar::known(self.machine.builtin(which, &self.item.place))),
            Op::Hw(which) => one(Scalar::known(self.machine.hw(which, &self.item.place))),
            Op::Implicit(which, component) => {
                let ty = self.result_ty();
                let pushed = self.machine.pushed(which, component, ty);
                let value = match pushed {
                    Some(value) => Some(value.bits),
                    None => self.machine.implicit(which, component),
                };
                let half = ty == Type::I32 && which.is_address() && component == 1;
                let value = value.map(|bits| if half { bits >> 32 } else { bits & ty.mask() });
                let missing = || Error::invalid(format!("{which:?} was not supplied"));
                one(Scalar::known(value.ok_or_else(missing)?))
            }
            Op::Own { offset, size } => {
                let items: u32 = self.machine.dispatch.local.iter().product();
                let bytes = u64::from(size) * u64::from(items);
                if bytes > MOST_BYTES {
                    return Err(Error::invalid("too much memory of a work-item's own"));
                }
                let noise = self.machine.noise();
                self.machine.memory.add_own(bytes, noise);
                let start = u64::from(size) * u64::from(self.item.place.index);
                one(Scalar::known(OWN + start + u64::from(offset)))
            }
            Op::ArgLoad(offset) => {
                let mut at = offset as usize;
                let ty = self.result_ty();
                let mut results = none;
                for _ in 0..self.data.results.len() {
                    let value = self.machine.arg_block.read(at, ty.size() as usize);
                    results.push(value.ok_or_else(|| Error::Access {
                        fault: Fault::Outside {
                            address: at as u64,
                            size: ty.size().into(),
                        },
                        space: None,
                        place: self.place(),
                    })?);
                    at += ty.size() as usize;
                }
                results
            }
            Op::SpecSize(id) => {
                let value = self.machine.specs.get(&id);
                let missing = || Error::invalid(format!("no specialisation constant {id}"));
                one(Scalar::known((*value.ok_or_else(missing)?).into()))
            }
            Op::Printf(index) => one(self.printf(index)?),
            Op::TexelFetch(slot) | Op::TexelLoad(slot) => {
                let texel = match self.machine.images {
                    Some(_) => self.read_texel(slot.binding)?,
                    None => {
                        let picture = self.picture_at(slot.binding)?;
                        self.read_picture(&picture, 0)?
                    }
                };
                texel.into_iter().collect()
            }
            Op::TexelStore(slot) => {
                if self.machine.images.is_some() {
                    self.write_texel(slot.binding)?;
                } else {
                    let picture = self.picture_at(slot.binding)?;
                    self.write_picture(&picture, 0)?;
                }
                none
            }
            Op::ImageRead(_) => {
                let picture = self.picture()?;
                self.read_picture(&picture, 1)?.into_iter().collect()
            }
            Op::ImageWrite(_) => {
                let picture = self.picture()?;
                self.write_picture(&picture, 1)?;
                none
            }
            Op::ImageQuery(property) => {
                let word = self.picture()?.property(property);
                one(Scalar::known(word.into()))
            }
            Op::ImageFilter
            | Op::SamplerWord
            | Op::ImageNumber
            | Op::ImageAt(_)
            | Op::SamplerAt
            | Op::TexelFilter { .. } => {
                return Err(Error::NotInterpreted(self.place()));
            }
            op => {
                let types: SmallVec<[Type; 4]> =
                    self.data.args.iter().map(|&v| self.ty(v)).collect();
                let ty = self.result_ty();
                if self.machine.watch.is_some() {
                    return Ok(one(concrete(op, &types, self.args, ty)));
                }
                let noise = self.machine.noise();
                one(eval(op, self.data.fp, &types, self.args, ty, noise))
            }
        })
    }

    fn global(&mut self, id: crate::ir::entity::GlobalId) -> Result<u64, Error> {
        let module = self.machine.module;
        let space = module.globals.get(id).and_then(|g| g.space);
        if matches!(space, Some(Space::Local) | None) {
            return self.local.global(self.machine, id);
        }
        let base = self.machine.memory.globals();
        let offset = self.machine.global_offset(id)?;
        base.map(|base| base.wrapping_add(offset))
            .ok_or_else(|| Error::invalid("program-scope variables that are not in memory"))
    }

    fn copy(&mut self, size: u64, align: u64) -> Result<(), Error> {
        let (to_space, to) = self.address(0)?;
        let (from_space, from) = self.address(1)?;
        self.aligned(to_space, to, align)?;
        self.aligned(from_space, from, align)?;
        for (space, address) in [(from_space, from), (to_space, to)] {
            if self.machine.watch.is_some() {
                break;
            }
            if let Err(fault) = self.memory(space).check(address, size) {
                return Err(self.fault(Some(space))(fault));
            }
        }
        for i in 0..size {
            let byte = self.read(from_space, from.wrapping_add(i), Type::I8)?;
            self.write(to_space, to.wrapping_add(i), Type::I8, byte)?;
        }
        Ok(())
    }

    fn printf(&mut self, index: u32) -> Result<Scalar, Error> {
        let module = self.machine.module;
        let site = module
            .printfs
            .get(index as usize)
            .ok_or_else(|| Error::invalid("no such printf site"))?;
        let space = self
            .data
            .args
            .iter()
            .find_map(|&v| self.ty(v).space())
            .unwrap_or(Space::Constant);
        let memory = match space {
            Space::Local => &self.local.memory,
            Space::Private => &self.item.private,
            _ => &*self.machine.memory,
        };
        let text = |address: u64| {
            let bytes = (0..256).map_while(|i| memory.read(address.wrapping_add(i), 1).ok());
            let bytes = bytes.map(|value| value.bits as u8);
            bytes.take_while(|&byte| byte != 0).collect()
        };
        let record = printf::record(index, site, self.args, text);
        self.machine.printf.push(record);
        Ok(Scalar::known(0))
    }
}
