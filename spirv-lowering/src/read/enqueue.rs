//! Makes what kernels enqueue: ND-ranges, and the records of kernels and markers in the memory of a
//! device queue, which has the layout of [`crate::device_queue`]. The library makes a record in
//! three steps, between which operands are copied into it.

use super::body::{bad, unsupported, Body};
use crate::device_queue::record;
use crate::error::{LowerError, Result};
use crate::ir::entity::Value;
use crate::ir::function::{Edge, Terminator, Values};
use crate::ir::op::{IntCond, Op};
use crate::ir::types::{Space, Type};

/// An ND-range: dimensions, then offset, global and local size.
pub(super) struct Range {
    pub dims: Value,
    pub sizes: [Value; 9],
}

/// The operands of an enqueue, by ids.
pub(super) struct Enqueue<'i> {
    pub queue: u32,
    pub flags: u32,
    pub range: u32,
    /// The number of events, their list, and where to store the new one.
    pub events: Option<(u32, u32, u32)>,
    pub block: u64,
    pub captured: u32,
    pub size: Size,
    pub locals: Locals<'i>,
}

/// The number of bytes that a block captured.
pub(super) enum Size {
    Id(u32),
    /// The number is in the first word of the captures.
    InBlock,
}

/// The sizes of the local arguments of a block.
pub(super) enum Locals<'i> {
    /// One operand for each size: an integer, or a pointer to a 64-bit one.
    Each(&'i [u32]),
    /// The number of sizes, and a pointer to them, 64 bits each.
    List(u32, u32),
}

/// A record to be made in the queue's memory.
struct Record {
    queue: Value,
    range: Range,
    count: Value,
    waits: Option<Value>,
    event: Option<Value>,
    size: Value,
    number: Value,
    empty: Value,
    marker: Value,
    kind: u32,
    block: u64,
    flags: Value,
}

fn one(value: Value) -> Values {
    [value].into_iter().collect()
}

impl Body<'_, '_> {
    /// Returns the sizes of one operand of OpBuildNDRange or `ndrange_*D`: a number, an array, or a
    /// pointer to one.
    fn sizes(&mut self, id: u32, dims: Option<usize>) -> Result<Values> {
        let values = self.value(id)?;
        let (&[value], Some(dims)) = (values.as_slice(), dims) else {
            let mut sizes = Values::new();
            for value in values {
                sizes.push(self.to_i64(value, false)?);
            }
            return Ok(sizes);
        };
        if self.f.ty(value).is_int() {
            return Ok(one(self.to_i64(value, false)?));
        }
        let (align, volatile) = (8, false);
        let (pointer, _) = self.pointer(id)?;
        let types = vec![Type::I64; dims];
        Ok(self.ins_many(Op::Load { align, volatile }, &[pointer], &types))
    }

    /// Returns the scalars of an ND-range. In unused dimensions the offset is 0, and the sizes are
    /// 1 (the local one 0 if there is none).
    pub(super) fn build_range(
        &mut self,
        global: u32,
        local: Option<u32>,
        offset: Option<u32>,
    ) -> Result<Values> {
        let global = self.sizes(global, None)?;
        let mut rest = Vec::new();
        for id in [local, offset] {
            rest.push(match id {
                Some(id) => self.sizes(id, None)?,
                None => Values::new(),
            });
        }
        self.range_of(&global, &rest[0], &rest[1])
    }

    fn range_of(&mut self, global: &[Value], local: &[Value], offset: &[Value]) -> Result<Values> {
        let dims = global.len();
        let fits = |list: &[Value]| list.is_empty() || list.len() == dims;
        if !(1..=3).contains(&dims) || !fits(local) || !fits(offset) {
            return bad("the sizes of an ND-range are not one to three numbers each");
        }
        let (zero, unit) = (self.constant(Type::I64, 0), self.constant(Type::I64, 1));
        let extend = |list: &[Value], rest: Value| {
            [0, 1, 2].map(|axis| list.get(axis).copied().unwrap_or(rest))
        };
        let global = extend(global, unit);
        let offset = extend(offset, zero);
        let local = match local.first() {
            Some(&first) => {
                let given = self.ins(Op::ICmp(IntCond::Ne), &[first, zero], Type::Bool);
                let rest = self.select(given, unit, zero);
                extend(local, rest)
            }
            None => [zero; 3],
        };
        let dims = self.constant(Type::I32, dims as u64);
        let all = [offset, global, local].into_iter().flatten();
        Ok(std::iter::once(dims).chain(all).collect())
    }

    /// Translates `ndrange_*D`, which stores its result to memory.
    pub(super) fn range_at(
        &mut self,
        to: u32,
        dims: usize,
        global: u32,
        local: Option<u32>,
        offset: Option<u32>,
    ) -> Result<()> {
        let global = self.sizes(global, Some(dims))?;
        let mut rest = Vec::new();
        for id in [local, offset] {
            rest.push(match id {
                Some(id) => self.sizes(id, Some(dims))?,
                None => Values::new(),
            });
        }
        let values = self.range_of(&global, &rest[0], &rest[1])?;
        let (to, _) = self.pointer(to)?;
        let volatile = false;
        for (number, &value) in values.iter().enumerate() {
            let (offset, align) = match number {
                0 => (0, 4),
                _ => (8 * number as i64, 8),
            };
            let at = self.offset(to, offset);
            self.effect(Op::Store { align, volatile }, &[at, value]);
        }
        Ok(())
    }

    /// Returns the ND-range that an operand is or points to.
    pub(super) fn range(&mut self, id: u32) -> Result<Range> {
        let values = self.value(id)?;
        let values = match values.as_slice() {
            &[pointer] if self.f.ty(pointer).is_ptr() => {
                let volatile = false;
                let load = |align| Op::Load { align, volatile };
                let mut values = one(self.ins(load(4), &[pointer], Type::I32));
                for number in 1..10 {
                    let at = self.offset(pointer, 8 * number);
                    values.push(self.ins(load(8), &[at], Type::I64));
                }
                values
            }
            _ => values,
        };
        let wrong = || LowerError::invalid("the operand is not an ND-range");
        let (&dims, sizes) = values.split_first().ok_or_else(wrong)?;
        let sizes: [Value; 9] = sizes.try_into().map_err(|_| wrong())?;
        if self.f.ty(dims) != Type::I32 || sizes.iter().any(|&v| self.f.ty(v) != Type::I64) {
            return Err(wrong());
        }
        Ok(Range { dims, sizes })
    }

    /// Computes whether a pointer is not null, as a number. For a pointer to a variable it is the
    /// constant 1, so that the address need not exist.
    fn is_set(&mut self, pointer: Value) -> Value {
        let mut base = pointer;
        while let Some(inst) = self.f.def_inst(base) {
            let data = &self.f.insts[inst];
            match (data.op, data.args.first()) {
                (Op::Alloca { .. } | Op::GlobalAddr(_), _) => return self.constant(Type::I32, 1),
                (Op::SpaceCast | Op::PtrAdd, Some(&next)) => base = next,
                _ => break,
            }
        }
        let address = match self.f.ty(pointer).is_ptr() {
            true => self.ins(Op::PtrToInt, &[pointer], Type::I64),
            false => pointer,
        };
        let zero = self.constant(Type::I64, 0);
        let set = self.ins(Op::ICmp(IntCond::Ne), &[address, zero], Type::Bool);
        self.ins(Op::ZExt, &[set], Type::I32)
    }

    /// Returns true if an operand is certainly the null pointer.
    fn is_null(&mut self, id: u32) -> Result<bool> {
        let value = self.scalar(id)?;
        Ok(self.f.as_const(value) == Some(0))
    }

    pub(super) fn enqueue(&mut self, e: &Enqueue<'_>) -> Result<Value> {
        let queue = self.device_queue(e.queue)?;
        let flags = self.scalar_of(e.flags, Type::I32)?;
        let range = self.range(e.range)?;
        let (captured, _) = self.pointer(e.captured)?;
        let size = match e.size {
            Size::Id(id) => self.scalar_of(id, Type::I32)?,
            Size::InBlock => {
                let (align, volatile) = (4, false);
                self.ins(Op::Load { align, volatile }, &[captured], Type::I32)
            }
        };
        let mut locals = Values::new();
        let number = match e.locals {
            Locals::Each(ids) => {
                for &id in ids {
                    let value = self.scalar(id)?;
                    let value = match self.f.ty(value).is_ptr() {
                        true => {
                            let (align, volatile) = (8, false);
                            self.ins(Op::Load { align, volatile }, &[value], Type::I64)
                        }
                        false => self.to_i64(value, false)?,
                    };
                    locals.push(self.size_of_local(value));
                }
                self.constant(Type::I32, ids.len() as u64)
            }
            Locals::List(number, list) => {
                let number = self.scalar_of(number, Type::I32)?;
                let (list, _) = self.pointer(list)?;
                let Some(known) = self.f.as_const(number).filter(|&n| n <= 1024) else {
                    return unsupported("a number of local arguments that is not a constant");
                };
                for index in 0..known {
                    let at = self.offset(list, 8 * index as i64);
                    let (align, volatile) = (8, false);
                    let value = self.ins(Op::Load { align, volatile }, &[at], Type::I64);
                    locals.push(self.size_of_local(value));
                }
                number
            }
        };
        let zero = self.constant(Type::I32, 0);
        let mut empty = zero;
        for &local in &locals {
            let none = self.ins(Op::ICmp(IntCond::Eq), &[local, zero], Type::Bool);
            let none = self.ins(Op::ZExt, &[none], Type::I32);
            empty = self.ins(Op::Or, &[empty, none], Type::I32);
        }
        let (count, waits, event) = self.events(e.events)?;
        let record = Record {
            queue,
            range,
            count,
            waits,
            event,
            size,
            number,
            empty,
            marker: zero,
            kind: record::KERNEL,
            block: e.block,
            flags,
        };
        self.put_record(&record, |body, place| {
            let volatile = false;
            let eight = body.constant(Type::I64, 8);
            let count = body.to_i64(count, false)?;
            let after = body.ins(Op::IMul, &[count, eight], Type::I64);
            let first = body.offset(place, record::BODY as i64);
            let first = body.ins(Op::PtrAdd, &[first, after], Type::Ptr(Space::Global));
            for (index, &local) in locals.iter().enumerate() {
                let at = body.offset(first, 4 * index as i64);
                let align = 4;
                body.effect(Op::Store { align, volatile }, &[at, local]);
            }
            let to = body.call_one(
                "__pumice_enqueue_captured",
                &[place],
                Type::Ptr(Space::Global),
            )?;
            match body.f.as_const(size) {
                Some(0) => {}
                Some(size) => {
                    let align = if size.is_multiple_of(8) { 8 } else { 4 };
                    let align = if size.is_multiple_of(4) { align } else { 1 };
                    body.effect(Op::MemCopy { size, align }, &[to, captured]);
                }
                None => {
                    let size = body.to_i64(size, false)?;
                    body.copy_loop(to, captured, size)?;
                }
            }
            Ok(())
        })
    }

    /// Converts a size of local memory to 32 bits. Larger sizes become the largest number, which
    /// exceeds the limit of every device.
    fn size_of_local(&mut self, value: Value) -> Value {
        let most = self.constant(Type::I64, 0xffff_ff00);
        let large = self.ins(Op::ICmp(IntCond::Ugt), &[value, most], Type::Bool);
        let value = self.select(large, most, value);
        self.ins(Op::Trunc, &[value], Type::I32)
    }

    /// Returns the number of an enqueue's events, their list, and the address for the new event. A
    /// list or address is `None` if the pointer is certainly null.
    fn events(
        &mut self,
        events: Option<(u32, u32, u32)>,
    ) -> Result<(Value, Option<Value>, Option<Value>)> {
        let Some((count, list, event)) = events else {
            return Ok((self.constant(Type::I32, 0), None, None));
        };
        let count = self.scalar_of(count, Type::I32)?;
        let list = match self.is_null(list)? {
            true => None,
            false => Some(self.pointer(list)?.0),
        };
        let event = match self.is_null(event)? {
            true => None,
            false => Some(self.pointer(event)?.0),
        };
        Ok((count, list, event))
    }

    pub(super) fn enqueue_marker(
        &mut self,
        queue: u32,
        count: u32,
        list: u32,
        event: u32,
    ) -> Result<Value> {
        let queue = self.device_queue(queue)?;
        let (count, waits, event) = self.events(Some((count, list, event)))?;
        let zero = self.constant(Type::I32, 0);
        let none = self.constant(Type::I64, 0);
        let range = Range {
            dims: zero,
            sizes: [none; 9],
        };
        let record = Record {
            queue,
            range,
            count,
            waits,
            event,
            size: zero,
            number: zero,
            empty: zero,
            marker: self.constant(Type::I32, 1),
            kind: record::MARKER,
            block: 0,
            flags: zero,
        };
        self.put_record(&record, |_, _| Ok(()))
    }

    /// Creates a record, whose body `fill` adds to. Returns the result of `enqueue_kernel`.
    fn put_record(
        &mut self,
        r: &Record,
        fill: impl FnOnce(&mut Self, Value) -> Result<()>,
    ) -> Result<Value> {
        let volatile = false;
        let state = self.enqueue_state();
        let none = self.constant(Type::I32, 0);
        let has_list = match r.waits {
            Some(list) => self.is_set(list),
            None => none,
        };
        let mut args = vec![state, r.queue, r.range.dims];
        args.extend(r.range.sizes);
        args.extend([r.count, has_list, r.size, r.number, r.empty, r.marker]);
        let begun = self.call_one("__pumice_enqueue_begin", &args, Type::I64)?;
        let (inner, after) = (self.new_block(), self.new_block());
        let result = self.f.add_param(after, Type::I32);
        let with = |value: Value| Edge::with(after, one(value));
        let zero = self.constant(Type::I64, 0);
        let good = self.ins(Op::ICmp(IntCond::Sge), &[begun, zero], Type::Bool);
        let error = self.ins(Op::Trunc, &[begun], Type::I32);
        let branch = Terminator::Branch(good, Edge::new(inner), with(error));
        self.end_block(branch, inner);
        let place = self.ins(Op::IntToPtr, &[begun], Type::Ptr(Space::Global));
        if let Some(list) = r.waits {
            let to = self.offset(place, record::BODY as i64);
            let count = self.to_i64(r.count, false)?;
            let step = self.constant(Type::I64, 1);
            self.counted_loop(zero, count, step, |body, index| {
                let align = 8;
                let from = body.element(list, index, 8)?;
                let event = body.ins(Op::Load { align, volatile }, &[from], Type::I64);
                let to = body.element(to, index, 8)?;
                body.effect(Op::Store { align, volatile }, &[to, event]);
                Ok(())
            })?;
        }
        fill(self, place)?;
        let wants_event = match r.event {
            Some(event) => self.is_set(event),
            None => none,
        };
        let block = self.constant(Type::I64, r.block);
        let kind = self.constant(Type::I32, r.kind.into());
        let args = [state, r.queue, place, block, r.flags, kind, wants_event];
        let ended = self.call_one("__pumice_enqueue_end", &args, Type::I64)?;
        let good = self.ins(Op::ICmp(IntCond::Sge), &[ended, zero], Type::Bool);
        let error = self.ins(Op::Trunc, &[ended], Type::I32);
        let status = self.select(good, none, error);
        if let Some(event) = r.event {
            let (store, done) = (self.new_block(), self.new_block());
            let wanted = self.ins(Op::ICmp(IntCond::Ne), &[wants_event, none], Type::Bool);
            let stores = self.ins(Op::And, &[good, wanted], Type::Bool);
            let branch = Terminator::Branch(stores, Edge::new(store), Edge::new(done));
            self.end_block(branch, store);
            let align = 8;
            self.effect(Op::Store { align, volatile }, &[event, ended]);
            self.end_block(Terminator::Jump(Edge::new(done)), done);
        }
        self.end_block(Terminator::Jump(with(status)), after);
        Ok(result)
    }
}
