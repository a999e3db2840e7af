//! Memory: whole vectors where addresses are affine, one access where they are uniform, else gathers and scatters; atomics
//! lane by lane.

use super::slots::Lanes;
use super::{Context, Emitter, Mask};
use crate::error::{LowerError, Result};
use crate::ir::entity::{Inst, Value};
use crate::ir::op::{GroupArith, IntCond, Op, Order, RmwOp};
use crate::ir::types::{Space, Type};
use crate::native::llvm::{self, LlvmType, Operand, Rmw};
use crate::native::strides::{Class, Reach};
use crate::quirks::CodeQuirk;

/// Values that are interleaved in memory are taken apart up to so many.
const MOST_INTERLEAVED: usize = 4;

/// An atomic operation that reads and writes.
#[derive(Clone, Copy)]
struct Update {
    op: RmwOp,
    order: llvm::Order,
}

/// Returns the alignment that part number `part` of consecutive parts of `size` bytes has, if the
/// first is aligned to `align`.
fn part_align(align: u32, size: u64, part: usize) -> u32 {
    match part {
        0 => align,
        _ => align.min(1 << (part as u64 * size).trailing_zeros()),
    }
}

impl Emitter<'_> {
    /// Writes an instruction on memory.
    pub(super) fn memory(&mut self, inst: Inst, cx: &Context) -> Result<()> {
        let func = self.func;
        let data = &func.insts[inst];
        let (args, results) = (&data.args, &data.results);
        let result = results.first().copied();
        match data.op {
            Op::Load { align, volatile } => self.load(args[0], results, align, volatile, cx),
            Op::Store { align, volatile } => self.store(args[0], &args[1..], align, volatile, cx),
            Op::VarLoad(var) => self.array_load(var, args[0], results[0], cx),
            Op::VarStore(var) => self.array_store(var, args[0], args[1], cx),
            // The work-items of a group run in one thread: nobody else sees their local memory.
            Op::AtomicLoad { .. } if self.is_local(args[0]) => {
                let align = func.ty(results[0]).size();
                self.load(args[0], results, align, true, cx)
            }
            Op::AtomicStore { .. } if self.is_local(args[0]) => {
                let align = func.ty(args[1]).size();
                self.store(args[0], &args[1..], align, true, cx)
            }
            Op::AtomicRmw { op, .. } if self.is_local(args[0]) => {
                self.own_rmw(op, args[0], args[1], result, cx)
            }
            Op::AtomicCmpXchg { .. } if self.is_local(args[0]) => {
                let align = func.ty(args[1]).size();
                self.each_lane(&args[..3], result, cx, |this, a| {
                    let llvm = &mut this.llvm;
                    let old = llvm.load(a[1].ty(), &a[0], align);
                    let same = llvm.icmp(IntCond::Eq, &old, &a[1]);
                    let new = llvm.select(&same, &a[2], &old);
                    llvm.store(&new, &a[0], align);
                    Ok(Some(old))
                })
            }
            Op::AtomicRmw { op, order, .. } => {
                let order = ordering(order, true, true);
                let update = Update { op, order };
                let found = match associative(op).is_some() {
                    true if self.is_uniform(args[0], cx) => {
                        self.one_rmw(update, args, result.is_some(), cx)?
                    }
                    true if self.may_alias(args[0], cx) => {
                        self.rmw_that_may_alias(update, args, result, cx)?
                    }
                    _ => self.rmw_of_each(update, args, result, cx)?,
                };
                self.define_if(result, found, cx);
                Ok(())
            }
            Op::AtomicLoad { order, .. } => {
                let ty = func.ty(results[0]);
                let order = ordering(order, true, false);
                self.each_lane(&args[..1], result, cx, |this, a| {
                    let llvm = &mut this.llvm;
                    Ok(Some(llvm.atomic_load(ty.into(), &a[0], order, ty.size())))
                })
            }
            Op::AtomicStore { order, .. } => {
                let align = func.ty(args[1]).size();
                let order = ordering(order, false, true);
                self.each_lane(&args[..2], None, cx, |this, a| {
                    this.llvm.atomic_store(&a[1], &a[0], order, align);
                    Ok(None)
                })
            }
            Op::AtomicCmpXchg { order, .. } => {
                let align = func.ty(args[1]).size();
                let orders = (ordering(order, true, true), ordering(order, true, false));
                let found = self.each_lane_locked(&args[..3], result, cx, |this, a| {
                    let (llvm, values) = (&mut this.llvm, (&a[1], &a[2]));
                    Ok(Some(llvm.compare_exchange(&a[0], values, orders, align)))
                })?;
                self.define_if(result, found, cx);
                Ok(())
            }
            _ => Err(LowerError::internal("not an access")),
        }
    }

    fn is_local(&self, address: Value) -> bool {
        self.func.ty(address) == Type::Ptr(Space::Local)
    }

    /// Emits an atomic operation on memory that no other thread accesses, as a load and a store.
    fn own_rmw(
        &mut self,
        op: RmwOp,
        address: Value,
        value: Value,
        result: Option<Value>,
        cx: &Context,
    ) -> Result<()> {
        let align = self.func.ty(value).size();
        self.each_lane(&[address, value], result, cx, |this, a| {
            let old = this.llvm.load(a[1].ty(), &a[0], align);
            let new = match op {
                RmwOp::Xchg => a[1].clone(),
                RmwOp::Sub => this.llvm.sub(&old, &a[1]),
                RmwOp::FAdd => this.combine(GroupArith::FAdd, &old, &a[1]),
                RmwOp::FMin => this.combine(GroupArith::FMin, &old, &a[1]),
                RmwOp::FMax => this.combine(GroupArith::FMax, &old, &a[1]),
                _ => {
                    let arith = associative(op).unwrap_or(GroupArith::IAdd);
                    this.combine(arith, &old, &a[1])
                }
            };
            this.llvm.store(&new, &a[0], align);
            Ok(Some(old))
        })
    }

    /// Emits one atomic operation at the address that all lanes have, with their operands combined.
    /// Returns the old value for each lane, as if the lanes had run one after the other, if the
    /// result is used.
    fn one_rmw(
        &mut self,
        Update { op, order }: Update,
        args: &[Value],
        wanted: bool,
        cx: &Context,
    ) -> Result<Option<Operand>> {
        let arith = associative(op).unwrap_or(GroupArith::IAdd);
        let ty = self.func.ty(args[1]);
        let at = self.scalar(args[0], cx)?;
        let value = self.vector(args[1], cx)?;
        let all = self.reduce_lanes(arith, ty, &value, cx);
        let old = self.llvm.atomic_rmw(rmw(op), &at, &all, order, ty.size());
        if !wanted {
            return Ok(None);
        }
        let before = self.scan_lanes(arith, ty, &value, cx);
        let old = self.splat(&old);
        Ok(Some(match op {
            RmwOp::Sub => self.llvm.sub(&old, &before),
            _ => self.combine(arith, &old, &before),
        }))
    }

    /// Emits an atomic operation of each lane at its own address.
    fn rmw_of_each(
        &mut self,
        Update { op, order }: Update,
        args: &[Value],
        result: Option<Value>,
        cx: &Context,
    ) -> Result<Option<Operand>> {
        let align = self.func.ty(args[1]).size();
        self.each_lane_locked(&args[..2], result, cx, |this, a| {
            let llvm = &mut this.llvm;
            Ok(Some(llvm.atomic_rmw(rmw(op), &a[0], &a[1], order, align)))
        })
    }

    /// Returns true if several lanes may have the same address.
    fn may_alias(&self, value: Value, cx: &Context) -> bool {
        self.shape.lanes > 1 && !matches!(self.reach(value, cx), Reach::Strided(_))
    }

    /// Emits an atomic operation that tests at run time whether all lanes have the same address.
    /// Counters that all work-items share are the usual case, and the test takes far less than one
    /// locked operation.
    fn rmw_that_may_alias(
        &mut self,
        update: Update,
        args: &[Value],
        result: Option<Value>,
        cx: &Context,
    ) -> Result<Option<Operand>> {
        let addresses = self.vector(args[0], cx)?;
        // Emitted here, before the branch.
        self.vector(args[1], cx)?;
        let first = self.scalar(args[0], cx)?;
        let first = self.splat(&first);
        let mut differ = self.llvm.icmp(IntCond::Ne, &addresses, &first);
        if let Some(mask) = &cx.mask {
            differ = self.llvm.and(&differ, mask);
        }
        let same = self.none(&differ);
        let [one, each, one_end, each_end, after] = [(); 5].map(|()| self.llvm.label());
        self.llvm.branch(&same, one, each);
        self.llvm.begin(one);
        let of_one = self.one_rmw(update, args, result.is_some(), cx)?;
        self.llvm.jump(one_end);
        self.llvm.begin(one_end);
        self.llvm.jump(after);
        self.llvm.begin(each);
        let of_each = self.rmw_of_each(update, args, result, cx)?;
        self.llvm.jump(each_end);
        self.llvm.begin(each_end);
        self.llvm.jump(after);
        self.llvm.begin(after);
        let (Some(of_one), Some(of_each)) = (of_one, of_each) else {
            return Ok(None);
        };
        let incoming = [(&of_one, one_end), (&of_each, each_end)];
        Ok(Some(self.llvm.phi(of_one.ty(), &incoming)))
    }

    /// Returns an address, or a vector of addresses, advanced by a number of bytes.
    pub(super) fn bytes_after(&mut self, address: &Operand, bytes: u64) -> Operand {
        if bytes == 0 {
            return address.clone();
        }
        let by = Operand::constant(LlvmType::I64.like(address.ty()), bytes);
        self.llvm.offset(address, &by)
    }

    /// Returns true if `n` elements of each lane, whose addresses have that stride, are to be accessed as one vector.
    fn is_row(&self, stride: i64, n: usize, ty: Type, cx: &Context) -> bool {
        stride == (n as u64 * u64::from(ty.size())) as i64
            && n <= MOST_INTERLEAVED
            && !(cx.mask.is_some() && self.loops_over_lanes(ty.size(), true))
    }

    fn load(
        &mut self,
        address: Value,
        results: &[Value],
        align: u32,
        volatile: bool,
        cx: &Context,
    ) -> Result<()> {
        let Some(&first) = results.first() else {
            return Ok(());
        };
        let ty = self.func.ty(first);
        let size = u64::from(ty.size());
        let align = sure(align, ty);
        let n = results.len();
        match self.reach(address, cx) {
            Reach::Same => {
                let at = self.scalar(address, cx)?;
                for (i, &result) in results.iter().enumerate() {
                    let at = self.bytes_after(&at, i as u64 * size);
                    let (ty, align) = (ty.into(), part_align(align, size, i));
                    let loaded = match volatile {
                        true => self.llvm.load_volatile(ty, &at, align),
                        false => self.llvm.load(ty, &at, align),
                    };
                    let lanes = match self.classes.of(result) {
                        Class::Uniform => Lanes::Same(loaded),
                        _ => Lanes::each(self.splat(&loaded)),
                    };
                    self.define(result, lanes, cx);
                }
            }
            Reach::Strided(stride) if self.is_row(stride, n, ty, cx) => {
                let at = self.anchored(address, stride, cx)?;
                let parts = self.load_interleaved(ty, &at, n, align, cx);
                for (&result, part) in results.iter().zip(parts) {
                    self.define(result, Lanes::each(part), cx);
                }
            }
            _ => {
                let at = self.vector(address, cx)?;
                for (i, &result) in results.iter().enumerate() {
                    let at = self.bytes_after(&at, i as u64 * size);
                    let loaded = self.gather(ty, &at, part_align(align, size, i), cx);
                    self.define(result, Lanes::each(loaded), cx);
                }
            }
        }
        Ok(())
    }

    /// Loads an element for each active lane from its address; others get 0.
    pub(super) fn gather(&mut self, ty: Type, at: &Operand, align: u32, cx: &Context) -> Operand {
        let (mask, size, ty) = (self.mask_vector(&cx.mask), ty.size(), self.vec(ty));
        if self.loops_over_lanes(size, false) {
            return self.gather_in_loop(ty, at, &mask, align);
        }
        let has_instruction = self.shape.gathers && size >= 4;
        let (at, mask, align) = match cx.mask {
            Some(_) if !has_instruction => {
                let zeros = self.llvm.zero_bytes();
                self.with_all_lanes(at, &mask, &zeros, align.min(size))
            }
            _ => (at.clone(), mask, align),
        };
        let name = format_args!("llvm.masked.gather.{}.{}", ty.suffix(), at.ty().suffix());
        let others = Operand::constant(ty, 0);
        self.llvm
            .call(name, ty, &[&at, &Operand::i32(align), &mask, &others])
    }

    /// Stores the value of each active lane to its address, in the order of the lanes.
    pub(super) fn scatter(&mut self, at: &Operand, value: &Operand, align: u32, cx: &Context) {
        let (mask, size) = (self.mask_vector(&cx.mask), value.ty().element().bytes());
        if self.loops_over_lanes(size, false) {
            return self.scatter_in_loop(at, value, &mask, align);
        }
        let has_instruction = self.shape.scatters() && size >= 4;
        let (at, mask, align) = match cx.mask {
            Some(_) if !has_instruction => {
                let ignored = self.llvm.ignored_bytes();
                self.with_all_lanes(at, &mask, &ignored, align.min(size))
            }
            _ => (at.clone(), mask, align),
        };
        let (ty, ptrs) = (value.ty().suffix(), at.ty().suffix());
        let args = [value, &at, &Operand::i32(align), &mask];
        self.llvm
            .call_void(format_args!("llvm.masked.scatter.{ty}.{ptrs}"), &args);
    }

    /// Returns addresses, mask and alignment of an access by all lanes, in which inactive ones
    /// access `others`: for a masked one LLVM would emit a branch for each lane, and hundreds of
    /// them take it seconds.
    fn with_all_lanes(
        &mut self,
        at: &Operand,
        mask: &Operand,
        others: &Operand,
        align: u32,
    ) -> (Operand, Operand, u32) {
        let others = self.llvm.splat(others, self.shape.lanes);
        let at = self.llvm.select(mask, at, &others);
        (at, self.splat_const(LlvmType::BIT, 1), align)
    }

    /// Returns the mask with each lane `n` times.
    fn repeated_mask(&mut self, n: u32, cx: &Context) -> Mask {
        let mask = cx.mask.clone()?;
        if n == 1 {
            return Some(mask);
        }
        let order = (0..self.shape.lanes * n).map(|i| i / n);
        let poison = Operand::poison(mask.ty());
        Some(self.llvm.shuffle(&mask, &poison, order))
    }

    fn load_interleaved(
        &mut self,
        ty: Type,
        at: &Operand,
        n: usize,
        align: u32,
        cx: &Context,
    ) -> Vec<Operand> {
        let (n, lanes) = (n as u32, self.shape.lanes);
        let ty = LlvmType::from(ty).vector(lanes * n);
        let all = match self.repeated_mask(n, cx) {
            None => self.llvm.load(ty, at, align),
            Some(mask) => {
                let name = format_args!("llvm.masked.load.{}.p0", ty.suffix());
                let others = Operand::constant(ty, 0);
                let args = [at, &Operand::i32(align), &mask, &others];
                let loaded = self.llvm.call(name, ty, &args);
                match self.shape.quirks.has(CodeQuirk::MovedLoads) {
                    true => self.llvm.freeze(&loaded),
                    false => loaded,
                }
            }
        };
        self.llvm.deinterleave(all, n)
    }

    fn store_interleaved(&mut self, at: &Operand, values: Vec<Operand>, align: u32, cx: &Context) {
        let n = values.len() as u32;
        let all = self.llvm.interleave(&values);
        match self.repeated_mask(n, cx) {
            None => self.llvm.store(&all, at, align),
            Some(mask) => {
                let name = format_args!("llvm.masked.store.{}.p0", all.ty().suffix());
                let args = [&all, at, &Operand::i32(align), &mask];
                self.llvm.call_void(name, &args);
            }
        }
    }

    fn store(
        &mut self,
        address: Value,
        values: &[Value],
        align: u32,
        volatile: bool,
        cx: &Context,
    ) -> Result<()> {
        let Some(&first) = values.first() else {
            return Ok(());
        };
        let ty = self.func.ty(first);
        let size = u64::from(ty.size());
        let align = sure(align, ty);
        let n = values.len();
        match self.reach(address, cx) {
            Reach::Same => {
                let at = self.scalar(address, cx)?;
                for (i, &value) in values.iter().enumerate() {
                    let one = self.last(value, cx)?;
                    let at = self.bytes_after(&at, i as u64 * size);
                    let align = part_align(align, size, i);
                    match volatile {
                        true => self.llvm.store_volatile(&one, &at, align),
                        false => self.llvm.store(&one, &at, align),
                    }
                }
            }
            Reach::Strided(stride) if self.is_row(stride, n, ty, cx) => {
                let at = self.anchored(address, stride, cx)?;
                let values = values.iter().map(|&v| self.vector(v, cx));
                let values = values.collect::<Result<Vec<_>>>()?;
                self.store_interleaved(&at, values, align, cx);
            }
            _ => {
                let at = self.vector(address, cx)?;
                for (i, &value) in values.iter().enumerate() {
                    let value = self.vector(value, cx)?;
                    let at = self.bytes_after(&at, i as u64 * size);
                    self.scatter(&at, &value, part_align(align, size, i), cx);
                }
            }
        }
        Ok(())
    }
}

/// Returns the alignment to rely on, in bytes. Memory that the application passes to be used in
/// place may be aligned for its elements only, and wide vectors are as fast without the alignment.
fn sure(align: u32, ty: Type) -> u32 {
    align.min(ty.size())
}

/// Returns the operation that combines the operands of several successive atomics, if there is one.
fn associative(op: RmwOp) -> Option<GroupArith> {
    Some(match op {
        RmwOp::Add | RmwOp::Sub => GroupArith::IAdd,
        RmwOp::And => GroupArith::And,
        RmwOp::Or => GroupArith::Or,
        RmwOp::Xor => GroupArith::Xor,
        RmwOp::SMin => GroupArith::SMin,
        RmwOp::SMax => GroupArith::SMax,
        RmwOp::UMin => GroupArith::UMin,
        RmwOp::UMax => GroupArith::UMax,
        _ => return None,
    })
}

fn rmw(op: RmwOp) -> Rmw {
    match op {
        RmwOp::Xchg => Rmw::Xchg,
        RmwOp::Add => Rmw::Add,
        RmwOp::Sub => Rmw::Sub,
        RmwOp::And => Rmw::And,
        RmwOp::Or => Rmw::Or,
        RmwOp::Xor => Rmw::Xor,
        RmwOp::SMin => Rmw::Min,
        RmwOp::SMax => Rmw::Max,
        RmwOp::UMin => Rmw::UMin,
        RmwOp::UMax => Rmw::UMax,
        RmwOp::FAdd => Rmw::FAdd,
        RmwOp::FMin => Rmw::FMin,
        RmwOp::FMax => Rmw::FMax,
    }
}

/// Returns a memory order as one that LLVM accepts: loads cannot release and stores cannot acquire.
fn ordering(order: Order, reads: bool, writes: bool) -> llvm::Order {
    match order {
        Order::SeqCst => llvm::Order::SeqCst,
        Order::AcqRel if reads && writes => llvm::Order::AcqRel,
        Order::Acquire | Order::AcqRel if reads => llvm::Order::Acquire,
        Order::Release | Order::AcqRel if writes => llvm::Order::Release,
        _ => llvm::Order::Monotonic,
    }
}
