//! Emits accesses to memory: device addresses, arrays, atomics and barriers.

use super::body::Emitter;
use super::writer::{push, Id};
use crate::error::{LowerError, Result};
use crate::interface::{Implicit, SPEC_GUARD};
use crate::ir::entity::{Inst, Value, Var};
use crate::ir::function::Storage;
use crate::ir::op::{Fences, Op, Order, RmwOp, Scope};
use crate::ir::types::{Space, Type};
use crate::quirks::CodeQuirk::{FencesWait, LongWords};
use smallvec::SmallVec;
use spirv::{Capability, MemoryAccess, MemorySemantics, Op as S, Scope as VkScope, StorageClass};

/// The widest single access, in bytes.
const MAX_ACCESS: u32 = 16;

/// One access of a load or store: some of its lanes.
struct PartialAccess {
    lanes: u32,
    /// The type of an accessed component: an element, or a word (of 32 or 64 bits) of several
    /// narrower elements.
    unit: Type,
    units: u32,
}

impl PartialAccess {
    /// Returns the next part of an access that has `left` lanes left. `long`: one word of 64 bits
    /// is better than two of 32.
    fn next(left: u32, elem: Type, align: u32, long: bool) -> Self {
        let size = elem.size();
        if long && size <= 4 && align >= 8 && left * size >= 8 {
            let units = lanes(left * size / 8, 8, align);
            return Self {
                lanes: units * 8 / size,
                unit: Type::I64,
                units,
            };
        }
        if size < 4 && align >= 4 && left * size >= 4 {
            let units = lanes(left * size / 4, 4, align);
            return Self {
                lanes: units * 4 / size,
                unit: Type::I32,
                units,
            };
        }
        let units = lanes(left, size, align);
        Self {
            lanes: units,
            unit: elem,
            units,
        }
    }
}

/// Returns the number of elements that one access covers.
fn lanes(left: u32, size: u32, align: u32) -> u32 {
    let mut lanes = left.min(4).min((MAX_ACCESS / size).max(1));
    while lanes > 1 && (lanes * size).next_power_of_two() > align {
        lanes -= 1;
    }
    lanes
}

/// Returns the alignment of the address `offset` bytes after an address aligned to `align`.
fn align_at(align: u32, offset: u32) -> u32 {
    if offset == 0 {
        align
    } else {
        align.min(1 << offset.trailing_zeros())
    }
}

fn order_bits(order: Order) -> MemorySemantics {
    let (acquire, release) = (
        MemorySemantics::MAKE_VISIBLE,
        MemorySemantics::MAKE_AVAILABLE,
    );
    match order {
        Order::Relaxed => MemorySemantics::empty(),
        Order::Acquire => MemorySemantics::ACQUIRE | acquire,
        Order::Release => MemorySemantics::RELEASE | release,
        Order::AcqRel | Order::SeqCst => MemorySemantics::ACQUIRE_RELEASE | acquire | release,
    }
}

/// Returns the semantics of an atomic: ordered ones order all memory that work-items share.
fn atomic_bits(order: Order) -> u32 {
    if order == Order::Relaxed {
        return 0;
    }
    (order_bits(order) | MemorySemantics::UNIFORM_MEMORY | MemorySemantics::WORKGROUP_MEMORY).bits()
}

fn fence_bits(order: Order, fences: Fences) -> u32 {
    let mut storage = MemorySemantics::empty();
    if fences.global {
        storage |= MemorySemantics::UNIFORM_MEMORY;
    }
    if fences.local {
        storage |= MemorySemantics::WORKGROUP_MEMORY;
    }
    if fences.image {
        storage |= MemorySemantics::IMAGE_MEMORY;
    }
    if storage.is_empty() || order == Order::Relaxed {
        return 0;
    }
    (order_bits(order) | storage).bits()
}

/// A location that an atomic accesses.
struct AtomicTarget {
    pointer: Id,
    elem: Type,
    /// The number of lanes, where the element of the array is a vector.
    lanes: u32,
    local: bool,
    volatile: bool,
}

impl AtomicTarget {
    /// Returns the scope of a volatile array.
    fn volatile(&self) -> Option<Scope> {
        self.volatile.then_some(Scope::WorkGroup)
    }
}

/// The way in which memory is accessed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    /// No other work-item writes what is loaded, or reads what is stored.
    Private,
    Load,
    Store,
}

impl Access {
    /// Returns this kind of access if the memory is shared, and a private one otherwise.
    fn of_shared(self, shared: bool) -> Self {
        if shared {
            self
        } else {
            Self::Private
        }
    }
}

/// Memory operands: the mask, and its operands.
type Operands = SmallVec<[u32; 3]>;

impl Emitter<'_> {
    /// Returns the semantics of an atomic, as a constant.
    fn atomic_bits(&mut self, order: Order) -> Id {
        let bits = if self.target.quirks.has(FencesWait) {
            0
        } else {
            atomic_bits(order)
        };
        self.w.u32(bits)
    }

    /// Returns a memory scope, as a constant.
    fn scope(&mut self, scope: Scope) -> Id {
        let scope = match scope {
            Scope::AllDevices | Scope::Device if self.target.memory_model_device_scope => {
                self.w.cap(Capability::VulkanMemoryModelDeviceScope);
                VkScope::Device
            }
            Scope::AllDevices | Scope::Device => VkScope::QueueFamily,
            Scope::WorkGroup => VkScope::Workgroup,
            Scope::SubGroup => VkScope::Subgroup,
            Scope::WorkItem => VkScope::Invocation,
        };
        self.w.u32(scope as u32)
    }

    fn storage_caps(&mut self, elem: Type) {
        match elem.size() {
            1 => self.w.cap(Capability::StorageBuffer8BitAccess),
            2 => self.w.cap(Capability::StorageBuffer16BitAccess),
            _ => {}
        }
    }

    /// Returns a pointer to `lanes` of `elem` at an address plus a constant.
    fn physical(&mut self, address: Id, offset: u32, elem: Type, lanes: u32) -> Id {
        self.storage_caps(elem);
        let address = self.advanced(address, offset);
        let pointee = self.w.vec(elem, lanes);
        let ty = self.w.pointer(StorageClass::PhysicalStorageBuffer, pointee);
        let convert = match self.target.int64 {
            true => S::ConvertUToPtr,
            false => S::Bitcast,
        };
        self.op(convert, ty, &[address])
    }

    /// Returns an address plus a constant. An address is a 64-bit integer, or a vector of two words
    /// where there is no such integer.
    fn advanced(&mut self, address: Id, offset: u32) -> Id {
        if offset == 0 {
            return address;
        }
        if self.target.int64 {
            let long = self.w.ty(Type::I64);
            let offset = self.w.constant(Type::I64, offset.into());
            return self.op(S::IAdd, long, &[address, offset]);
        }
        let (word, truth) = (self.w.ty(Type::I32), self.w.ty(Type::Bool));
        let (offset, zero, one) = (self.w.u32(offset), self.w.u32(0), self.w.u32(1));
        let low = self.op(S::CompositeExtract, word, &[address, 0]);
        let high = self.op(S::CompositeExtract, word, &[address, 1]);
        let low = self.op(S::IAdd, word, &[low, offset]);
        let carry = self.op(S::ULessThan, truth, &[low, offset]);
        let carry = self.op(S::Select, word, &[carry, one, zero]);
        let high = self.op(S::IAdd, word, &[high, carry]);
        let pair = self.w.vec(Type::I32, 2);
        self.op(S::CompositeConstruct, pair, &[low, high])
    }

    /// Returns a pointer to an element of an array.
    fn element(&mut self, var: Var, index: Value) -> Result<AtomicTarget> {
        let data = self
            .func
            .vars
            .get(var)
            .ok_or_else(|| LowerError::internal("no such array"))?;
        let local = data.storage == Storage::Workgroup;
        let class = if local {
            StorageClass::Workgroup
        } else {
            StorageClass::Function
        };
        let (elem, lanes, volatile) = (data.elem, data.lanes, data.volatile);
        let explicit = data.alias.is_some() && local;
        let ty = self.w.vec(elem, lanes);
        let ty = self.w.pointer(class, ty);
        let base = self.var_ids[var];
        let index = self.value(index);
        let pointer = if explicit {
            let zero = self.w.u32(0);
            self.op(S::AccessChain, ty, &[base, zero, index])
        } else {
            self.op(S::AccessChain, ty, &[base, index])
        };
        Ok(AtomicTarget {
            pointer,
            elem,
            lanes,
            local,
            volatile,
        })
    }

    /// Returns the memory operands of an access. `volatile` holds the scope that shares the memory:
    /// other work-items read what a volatile store writes, and a volatile load reads what they
    /// wrote, though nothing orders the two. Locks of OpenCL 1.x rely on it. `Volatile` alone would
    /// let a cache answer.
    fn access_operands(&mut self, align: u32, volatile: Option<Scope>, access: Access) -> Operands {
        let mut mask = MemoryAccess::empty();
        let mut operands = Operands::new();
        operands.push(0);
        if align != 0 {
            mask |= MemoryAccess::ALIGNED;
            operands.push(align);
        }
        if volatile.is_some() {
            mask |= MemoryAccess::VOLATILE;
        }
        if access != Access::Private {
            mask |= MemoryAccess::NON_PRIVATE_POINTER;
            if let Some(scope) = volatile.filter(|_| !self.target.quirks.has(FencesWait)) {
                mask |= if access == Access::Store {
                    MemoryAccess::MAKE_POINTER_AVAILABLE
                } else {
                    MemoryAccess::MAKE_POINTER_VISIBLE
                };
                operands.push(self.scope(scope));
            }
        }
        if mask.is_empty() {
            operands.clear();
        } else {
            operands[0] = mask.bits();
        }
        operands
    }

    fn address_of(&mut self, inst: Inst) -> Result<(Id, bool)> {
        let pointer = self.func.insts[inst]
            .args
            .first()
            .copied()
            .ok_or_else(|| self.unsupported(inst))?;
        let space = self.func.ty(pointer).space();
        if matches!(space, Some(Space::Local | Space::Private)) {
            return Err(self.unsupported(inst));
        }
        Ok((self.value(pointer), space != Some(Space::Constant)))
    }

    fn check_elem(&self, inst: Inst, ty: Type, align: u32) -> Result<u32> {
        if ty == Type::Bool || ty == Type::Handle {
            return Err(self.unsupported(inst));
        }
        let align = if align == 0 {
            ty.size()
        } else {
            1 << align.trailing_zeros()
        };
        if align < ty.size() {
            return Err(LowerError::internal(format!(
                "{inst}: an access to {ty:?} aligned to {align} only"
            )));
        }
        Ok(align)
    }

    pub(super) fn memory(&mut self, inst: Inst) -> Result<()> {
        let data = &self.func.insts[inst];
        let first_result = data.results.first().copied();
        match data.op {
            Op::Load { align, volatile } => {
                let (address, shared) = self.address_of(inst)?;
                self.load(inst, address, align, volatile, shared)
            }
            Op::Store { align, volatile } => {
                let (address, _) = self.address_of(inst)?;
                let values = &data.args[1..];
                let Some(&first) = values.first() else {
                    return Ok(());
                };
                let elem = self.func.ty(first);
                let align = self.check_elem(inst, elem, align)?;
                let mut at = 0;
                while at < values.len() {
                    let offset = at as u32 * elem.size();
                    let align = align_at(align, offset);
                    let left = (values.len() - at) as u32;
                    let part =
                        PartialAccess::next(left, elem, align, self.target.quirks.has(LongWords));
                    let lanes = &values[at..at + part.lanes as usize];
                    let ids: Vec<Id> = lanes.iter().map(|&v| self.value(v)).collect();
                    let value = self.gather(&part, elem, &ids);
                    let pointer = self.physical(address, offset, part.unit, part.units);
                    let volatile = volatile.then_some(Scope::Device);
                    let operands = self.access_operands(align, volatile, Access::Store);
                    let mut words = vec![pointer, value];
                    words.extend(operands);
                    push(&mut self.code, S::Store, &words);
                    at += part.lanes as usize;
                }
                Ok(())
            }
            Op::VarLoad(var) => {
                let place = self.element(var, data.args[0])?;
                let result = first_result.ok_or_else(|| self.unsupported(inst))?;
                let ty = self.w.vec(place.elem, place.lanes);
                let id = match place.lanes {
                    1 => self.value(result),
                    _ => self.w.id(),
                };
                let access = Access::Load.of_shared(place.local);
                let operands = self.access_operands(0, place.volatile(), access);
                let mut words = vec![place.pointer];
                words.extend(operands);
                self.op_to(S::Load, ty, id, &words);
                if place.lanes > 1 {
                    let scalar = self.w.ty(place.elem);
                    for (lane, &result) in data.results.iter().enumerate() {
                        let value = self.value(result);
                        self.op_to(S::CompositeExtract, scalar, value, &[id, lane as u32]);
                    }
                }
                Ok(())
            }
            Op::VarStore(var) => {
                let place = self.element(var, data.args[0])?;
                let lanes: Vec<Id> = data.args[1..].iter().map(|&v| self.value(v)).collect();
                let value = match lanes[..] {
                    [value] => value,
                    _ => {
                        let ty = self.w.vec(place.elem, place.lanes);
                        self.op(S::CompositeConstruct, ty, &lanes)
                    }
                };
                let access = Access::Store.of_shared(place.local);
                let operands = self.access_operands(0, place.volatile(), access);
                let mut words = vec![place.pointer, value];
                words.extend(operands);
                push(&mut self.code, S::Store, &words);
                Ok(())
            }
            Op::AtomicLoad { scope, order } | Op::VarAtomicLoad { scope, order, .. } => {
                let result = first_result.ok_or_else(|| self.unsupported(inst))?;
                let place = self.atomic_place(inst, self.func.ty(result))?;
                let order = match order {
                    Order::Release => Order::Relaxed,
                    Order::AcqRel | Order::SeqCst => Order::Acquire,
                    other => other,
                };
                let (scope, bits) = (self.scope(scope), self.atomic_bits(order));
                let ty = self.w.ty(place.elem);
                // Without an order only a read-modify-write is sure to stay where it is.
                let id = if self.target.quirks.has(FencesWait) {
                    let zero = self.w.constant(place.elem, 0);
                    self.op(S::AtomicOr, ty, &[place.pointer, scope, bits, zero])
                } else {
                    self.op(S::AtomicLoad, ty, &[place.pointer, scope, bits])
                };
                self.atomic_result(result, place.elem, id);
                Ok(())
            }
            Op::AtomicStore { scope, order } | Op::VarAtomicStore { scope, order, .. } => {
                let place = self.atomic_place(inst, self.func.ty(data.args[1]))?;
                let order = match order {
                    Order::Acquire => Order::Relaxed,
                    Order::AcqRel | Order::SeqCst => Order::Release,
                    other => other,
                };
                let value = self.atomic_operand(data.args[1], place.elem);
                let operands = [
                    place.pointer,
                    self.scope(scope),
                    self.atomic_bits(order),
                    value,
                ];
                if self.target.quirks.has(FencesWait) {
                    let ty = self.w.ty(place.elem);
                    self.op(S::AtomicExchange, ty, &operands);
                } else {
                    push(&mut self.code, S::AtomicStore, &operands);
                }
                Ok(())
            }
            Op::AtomicRmw { op, scope, order }
            | Op::VarRmw {
                op, scope, order, ..
            } => {
                let result = first_result.ok_or_else(|| self.unsupported(inst))?;
                let ty = self.func.ty(result);
                let spelling = match op {
                    RmwOp::Xchg => S::AtomicExchange,
                    RmwOp::Add => S::AtomicIAdd,
                    RmwOp::Sub => S::AtomicISub,
                    RmwOp::And => S::AtomicAnd,
                    RmwOp::Or => S::AtomicOr,
                    RmwOp::Xor => S::AtomicXor,
                    RmwOp::SMin => S::AtomicSMin,
                    RmwOp::SMax => S::AtomicSMax,
                    RmwOp::UMin => S::AtomicUMin,
                    RmwOp::UMax => S::AtomicUMax,
                    RmwOp::FAdd if ty == Type::F32 => S::AtomicFAddEXT,
                    RmwOp::FAdd | RmwOp::FMin | RmwOp::FMax => return Err(self.unsupported(inst)),
                };
                let add = op == RmwOp::FAdd;
                if add {
                    self.w.cap(Capability::AtomicFloat32AddEXT);
                    self.w.extension("SPV_EXT_shader_atomic_float_add");
                }
                let place = self.atomic_place_as(inst, ty, add)?;
                let value = self.atomic_operand(data.args[1], place.elem);
                let elem = self.w.ty(place.elem);
                let operands = [
                    place.pointer,
                    self.scope(scope),
                    self.atomic_bits(order),
                    value,
                ];
                let id = self.op(spelling, elem, &operands);
                self.atomic_result(result, place.elem, id);
                Ok(())
            }
            Op::AtomicCmpXchg { scope, order } | Op::VarCmpXchg { scope, order, .. } => {
                let result = first_result.ok_or_else(|| self.unsupported(inst))?;
                let place = self.atomic_place(inst, self.func.ty(result))?;
                let expected = self.atomic_operand(data.args[1], place.elem);
                let desired = self.atomic_operand(data.args[2], place.elem);
                let unequal = match order {
                    Order::Relaxed | Order::Release => Order::Relaxed,
                    _ => Order::Acquire,
                };
                let elem = self.w.ty(place.elem);
                let operands = [
                    place.pointer,
                    self.scope(scope),
                    self.atomic_bits(order),
                    self.atomic_bits(unequal),
                    desired,
                    expected,
                ];
                let id = self.op(S::AtomicCompareExchange, elem, &operands);
                self.atomic_result(result, place.elem, id);
                Ok(())
            }
            Op::Barrier {
                exec,
                mem,
                order,
                fences,
            } => {
                let exec = match exec {
                    Scope::WorkGroup => VkScope::Workgroup,
                    // Its lanes are one vector, and a fence would wait for the work-group.
                    Scope::SubGroup if self.target.quirks.has(FencesWait) => return Ok(()),
                    Scope::SubGroup => VkScope::Subgroup,
                    Scope::WorkItem => return Ok(()),
                    Scope::Device | Scope::AllDevices => return Err(self.unsupported(inst)),
                };
                // An execution barrier is of use only if it orders something: Relaxed means no memory order.
                let bits = fence_bits(order, fences);
                let operands = [self.w.u32(exec as u32), self.scope(mem), self.w.u32(bits)];
                push(&mut self.code, S::ControlBarrier, &operands);
                self.w.converge();
                Ok(())
            }
            Op::Fence { mem, order, fences } => {
                let bits = fence_bits(order, fences);
                if bits != 0 && mem != Scope::WorkItem && !self.target.quirks.has(FencesWait) {
                    let operands = [self.scope(mem), self.w.u32(bits)];
                    push(&mut self.code, S::MemoryBarrier, &operands);
                }
                Ok(())
            }
            Op::Implicit(which, component) => {
                let result = first_result.ok_or_else(|| self.unsupported(inst))?;
                let offset = self.implicit_offset(which)?;
                let size = self.func.ty(result).size();
                let id =
                    self.push_load(offset + u32::from(component) * size, self.func.ty(result))?;
                self.define(result, id);
                Ok(())
            }
            Op::ArgLoad(offset) => {
                let Some(result) = first_result else {
                    return Ok(());
                };
                let elem = self.func.ty(result);
                if self.interface.args_in_buffer {
                    let base = self.implicit_offset(Implicit::ArgBuffer)?;
                    let base = self.push_address(base)?;
                    let address = self.advanced(base, offset);
                    return self.load(inst, address, align_at(16, offset), false, false);
                }
                for (i, &result) in data.results.iter().enumerate() {
                    let id = self.push_load(offset + i as u32 * elem.size(), elem)?;
                    self.define(result, id);
                }
                Ok(())
            }
            Op::SpecSize(spec_id) => {
                let result = first_result.ok_or_else(|| self.unsupported(inst))?;
                let default = match spec_id {
                    SPEC_GUARD => 0,
                    _ => 16,
                };
                let id = self.w.spec(spec_id, default);
                self.define(result, id);
                Ok(())
            }
            _ => Err(self.unsupported(inst)),
        }
    }

    fn load(
        &mut self,
        inst: Inst,
        address: Id,
        align: u32,
        volatile: bool,
        shared: bool,
    ) -> Result<()> {
        let results = &self.func.insts[inst].results;
        let Some(&first) = results.first() else {
            return Ok(());
        };
        let elem = self.func.ty(first);
        let align = self.check_elem(inst, elem, align)?;
        let mut at = 0;
        while at < results.len() {
            let offset = at as u32 * elem.size();
            let align = align_at(align, offset);
            let left = (results.len() - at) as u32;
            let part = PartialAccess::next(left, elem, align, self.target.quirks.has(LongWords));
            let pointer = self.physical(address, offset, part.unit, part.units);
            let ty = self.w.vec(part.unit, part.units);
            let access = Access::Load.of_shared(shared);
            let volatile = volatile.then_some(Scope::Device);
            let operands = self.access_operands(align, volatile, access);
            let mut words = vec![pointer];
            words.extend(operands);
            let lanes = &results[at..at + part.lanes as usize];
            let id = if part.lanes == 1 {
                self.value(lanes[0])
            } else {
                self.w.id()
            };
            self.op_to(S::Load, ty, id, &words);
            let per_unit = part.lanes / part.units;
            for (unit, lanes) in lanes.chunks(per_unit as usize).enumerate() {
                let mut word = id;
                if part.units > 1 {
                    let unit_ty = self.w.ty(part.unit);
                    word = match per_unit {
                        1 => self.value(lanes[0]),
                        _ => self.w.id(),
                    };
                    self.op_to(S::CompositeExtract, unit_ty, word, &[id, unit as u32]);
                }
                if per_unit > 1 {
                    self.split(word, part.unit, elem, lanes);
                }
            }
            at += part.lanes as usize;
        }
        Ok(())
    }

    /// Splits a word into its elements.
    fn split(&mut self, word: Id, unit: Type, elem: Type, lanes: &[Value]) {
        let (half, most) = (Type::I32, 4 / elem.size());
        let (ty, count) = match unit {
            Type::I64 if elem.size() < 4 => (half, 2),
            _ => (elem, lanes.len() as u32),
        };
        let parts = self.w.vec(ty, count);
        let parts = self.op(S::Bitcast, parts, &[word]);
        let scalar = self.w.ty(ty);
        if count == lanes.len() as u32 && ty == elem {
            for (k, &lane) in lanes.iter().enumerate() {
                let value = self.value(lane);
                self.op_to(S::CompositeExtract, scalar, value, &[parts, k as u32]);
            }
            return;
        }
        for (k, lanes) in lanes.chunks(most as usize).enumerate() {
            let word = self.op(S::CompositeExtract, scalar, &[parts, k as u32]);
            self.split(word, half, elem, lanes);
        }
    }

    /// Returns a word of these elements.
    fn join(&mut self, unit: Type, elem: Type, lanes: &[Id]) -> Id {
        let (ty, parts) = match unit {
            Type::I64 if elem.size() < 4 => {
                let halves = lanes.chunks(4 / elem.size() as usize);
                let halves = halves.map(|half| self.join(Type::I32, elem, half));
                (Type::I32, halves.collect())
            }
            _ => (elem, lanes.to_vec()),
        };
        let small = self.w.vec(ty, parts.len() as u32);
        let small = self.op(S::CompositeConstruct, small, &parts);
        let word = self.w.ty(unit);
        self.op(S::Bitcast, word, &[small])
    }

    /// Returns the value to store for the lanes of a part.
    fn gather(&mut self, part: &PartialAccess, elem: Type, lanes: &[Id]) -> Id {
        let per_unit = (part.lanes / part.units) as usize;
        let mut units = Vec::with_capacity(part.units as usize);
        for group in lanes.chunks(per_unit) {
            if per_unit == 1 {
                units.push(group[0]);
                continue;
            }
            units.push(self.join(part.unit, elem, group));
        }
        if units.len() == 1 {
            return units[0];
        }
        let ty = self.w.vec(part.unit, part.units);
        self.op(S::CompositeConstruct, ty, &units)
    }

    // --- atomics

    fn atomic_place(&mut self, inst: Inst, ty: Type) -> Result<AtomicTarget> {
        self.atomic_place_as(inst, ty, false)
    }

    /// Returns the location that an atomic accesses: an integer, unless `float`.
    fn atomic_place_as(&mut self, inst: Inst, ty: Type, float: bool) -> Result<AtomicTarget> {
        let elem = if float {
            ty
        } else {
            ty.as_int().ok_or_else(|| self.unsupported(inst))?
        };
        if elem.size() < 4 {
            return Err(self.unsupported(inst));
        }
        if elem == Type::I64 {
            self.w.cap(Capability::Int64Atomics);
        }
        let data = &self.func.insts[inst];
        let place = match data.op {
            Op::VarRmw { var, .. }
            | Op::VarCmpXchg { var, .. }
            | Op::VarAtomicLoad { var, .. }
            | Op::VarAtomicStore { var, .. } => {
                let place = self.element(var, data.args[0])?;
                if place.elem != elem || place.lanes != 1 || !place.local {
                    return Err(LowerError::internal(format!(
                        "{inst}: an atomic on the wrong kind of array"
                    )));
                }
                place
            }
            _ => {
                let (address, _) = self.address_of(inst)?;
                let pointer = self.physical(address, 0, elem, 1);
                AtomicTarget {
                    pointer,
                    elem,
                    lanes: 1,
                    local: false,
                    volatile: false,
                }
            }
        };
        Ok(place)
    }

    fn atomic_operand(&mut self, value: Value, elem: Type) -> Id {
        let id = self.value(value);
        let from = self.func.ty(value);
        if from.is_float() == elem.is_float() {
            return id;
        }
        let ty = self.w.ty(elem);
        self.op(S::Bitcast, ty, &[id])
    }

    fn atomic_result(&mut self, result: Value, elem: Type, id: Id) {
        let to = self.func.ty(result);
        if to.is_float() == elem.is_float() {
            self.define(result, id);
        } else {
            let ty = self.w.ty(to);
            let wanted = self.value(result);
            self.op_to(S::Bitcast, ty, wanted, &[id]);
        }
    }
}
