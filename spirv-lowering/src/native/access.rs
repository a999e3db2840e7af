//! Memory: whole vectors where addresses are affine, one access where they are uniform, else gathers and scatters; atomics
//! lane by lane.

use super::emitter::{Context, Emitter};
use super::ops::Form;
use super::slots::Lanes;
use super::strides::{Class, Reach};
use super::text::{scalar, suffix};
use crate::error::{LowerError, Result};
use crate::ir::entity::{Inst, Value};
use crate::ir::op::{GroupArith, Op, Order, RmwOp, Scope};
use crate::ir::types::{Space, Type};

/// Values that are interleaved in memory are taken apart up to so many.
const MOST_INTERLEAVED: usize = 4;

impl Emitter<'_> {
    /// Writes an instruction on memory.
    pub fn memory(&mut self, inst: Inst, cx: &mut Context) -> Result<()> {
        let func = self.func;
        let data = &func.insts[inst];
        let (args, results) = (&data.args, &data.results);
        match data.op {
            Op::Load { align, volatile } => self.load(args[0], results, align, volatile, cx),
            Op::Store { align, volatile } => self.store(args[0], &args[1..], align, volatile, cx),
            Op::MemCopy { size, align } => self.copy(args[0], args[1], size, align, cx),
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
                self.own_rmw(op, args[0], args[1], results.first().copied(), cx)
            }
            Op::AtomicCmpXchg { .. } if self.is_local(args[0]) => {
                let ty = func.ty(args[1]);
                let s = scalar(ty);
                self.each_lane(&args[..3], results.first().copied(), cx, |this, a| {
                    let align = ty.size();
                    let old = this
                        .text
                        .def(&format!("load {s}, ptr {}, align {align}", a[0]));
                    let same = this.text.def(&format!("icmp eq {s} {old}, {}", a[1]));
                    let new = this
                        .text
                        .def(&format!("select i1 {same}, {s} {}, {s} {old}", a[2]));
                    this.text
                        .line(&format!("store {s} {new}, ptr {}, align {align}", a[0]));
                    Ok(old)
                })
            }
            Op::AtomicRmw { op, scope, order }
                if associative(op).is_some() && self.is_uniform(args[0], cx) =>
            {
                let tail = ordering(scope, order, true, true);
                let result = results.first().copied();
                let found = self.one_rmw(op, &tail, args, result.is_some(), cx)?;
                self.define_if(result, found, cx);
                Ok(())
            }
            Op::AtomicLoad { scope, order } => {
                let ty = func.ty(results[0]);
                let tail = ordering(scope, order, true, false);
                self.each_lane(&[args[0]], Some(results[0]), cx, |this, a| {
                    Ok(this.text.def(&format!(
                        "load atomic {}, ptr {} {tail}, align {}",
                        scalar(ty),
                        a[0],
                        ty.size()
                    )))
                })
            }
            Op::AtomicStore { scope, order } => {
                let ty = func.ty(args[1]);
                let tail = ordering(scope, order, false, true);
                self.each_lane(&[args[0], args[1]], None, cx, |this, a| {
                    this.text.line(&format!(
                        "store atomic {} {}, ptr {} {tail}, align {}",
                        scalar(ty),
                        a[1],
                        a[0],
                        ty.size()
                    ));
                    Ok(String::new())
                })
            }
            Op::AtomicRmw { op, scope, order } => {
                let tail = ordering(scope, order, true, true);
                let result = results.first().copied();
                let found = if associative(op).is_some() && self.may_meet(args[0], cx) {
                    self.rmw_that_may_meet(op, &tail, args, result, cx)?
                } else {
                    self.rmw_of_each(op, &tail, args, result, cx)?
                };
                self.define_if(result, found, cx);
                Ok(())
            }
            Op::AtomicCmpXchg { scope, order } => {
                let ty = func.ty(args[1]);
                let tail = ordering(scope, order, true, true);
                let failed = match order {
                    Order::Relaxed | Order::Release => "monotonic",
                    Order::Acquire | Order::AcqRel => "acquire",
                    Order::SeqCst => "seq_cst",
                };
                let result = results.first().copied();
                let found = self.each_lane_locked(&args[..3], result, cx, |this, a| {
                    let s = scalar(ty);
                    let pair = this.text.def(&format!(
                        "cmpxchg ptr {}, {s} {}, {s} {} {tail} {failed}, align {}",
                        a[0],
                        a[1],
                        a[2],
                        ty.size()
                    ));
                    Ok(this
                        .text
                        .def(&format!("extractvalue {{ {s}, i1 }} {pair}, 0")))
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

    /// An atomic operation on memory that no other thread sees.
    fn own_rmw(
        &mut self,
        op: RmwOp,
        address: Value,
        value: Value,
        result: Option<Value>,
        cx: &mut Context,
    ) -> Result<()> {
        let ty = self.func.ty(value);
        let s = scalar(ty);
        self.each_lane(&[address, value], result, cx, |this, a| {
            let align = ty.size();
            let old = this
                .text
                .def(&format!("load {s}, ptr {}, align {align}", a[0]));
            let new = match op {
                RmwOp::Xchg => a[1].clone(),
                RmwOp::Sub => this.text.def(&format!("sub {s} {old}, {}", a[1])),
                RmwOp::FAdd => this.text.def(&format!("fadd {s} {old}, {}", a[1])),
                RmwOp::FMin => this.float_extreme(Form::Scalar, ty, true, &old, &a[1]),
                RmwOp::FMax => this.float_extreme(Form::Scalar, ty, false, &old, &a[1]),
                _ => {
                    let arith = associative(op).unwrap_or(GroupArith::IAdd);
                    this.combine(arith, ty, Form::Scalar, &old, &a[1])?
                }
            };
            this.text
                .line(&format!("store {s} {new}, ptr {}, align {align}", a[0]));
            Ok(old)
        })
    }

    /// All lanes on one address: one operation with what they have together. Returns what each lane would have found, if that
    /// is wanted.
    fn one_rmw(
        &mut self,
        op: RmwOp,
        tail: &str,
        args: &[Value],
        wanted: bool,
        cx: &Context,
    ) -> Result<Option<String>> {
        let arith = associative(op).unwrap_or(GroupArith::IAdd);
        let ty = self.func.ty(args[1]);
        let (s, vec) = (scalar(ty), self.vec(ty));
        let at = self.scalar(args[0], cx)?;
        let value = self.vector(args[1], cx)?;
        let all = self.reduce_lanes(arith, ty, &value, cx)?;
        let name = rmw(op);
        let old = self.text.def(&format!(
            "atomicrmw {name} ptr {at}, {s} {all} {tail}, align {}",
            ty.size()
        ));
        if !wanted {
            return Ok(None);
        }
        let before = self.scan_lanes(arith, ty, &value, cx)?;
        let old = self.splat(ty, &old);
        Ok(Some(if op == RmwOp::Sub {
            self.text.def(&format!("sub {vec} {old}, {before}"))
        } else {
            self.combine(arith, ty, Form::Vector, &old, &before)?
        }))
    }

    /// Each lane on an address of its own.
    fn rmw_of_each(
        &mut self,
        op: RmwOp,
        tail: &str,
        args: &[Value],
        result: Option<Value>,
        cx: &Context,
    ) -> Result<Option<String>> {
        let ty = self.func.ty(args[1]);
        let (name, s, align) = (rmw(op), scalar(ty), ty.size());
        self.each_lane_locked(&args[..2], result, cx, |this, a| {
            Ok(this.text.def(&format!(
                "atomicrmw {name} ptr {}, {s} {} {tail}, align {align}",
                a[0], a[1]
            )))
        })
    }

    /// Whether lanes may have the same of a value that is not known to be uniform.
    fn may_meet(&self, value: Value, cx: &Context) -> bool {
        self.lanes > 1 && !matches!(self.reach(value, cx), Reach::Strided(_))
    }

    /// Whether the addresses are all the same shows when it runs: counters that everybody shares are the usual case, and to ask
    /// takes far less than one locked operation.
    fn rmw_that_may_meet(
        &mut self,
        op: RmwOp,
        tail: &str,
        args: &[Value],
        result: Option<Value>,
        cx: &Context,
    ) -> Result<Option<String>> {
        let ptr = self.func.ty(args[0]);
        let (ptrs, masks) = (self.vec(ptr), self.mask_type());
        let addresses = self.vector(args[0], cx)?;
        // Written here, where both ways come from.
        self.vector(args[1], cx)?;
        let first = self.scalar(args[0], cx)?;
        let first = self.splat(ptr, &first);
        let mut differ = self
            .text
            .def(&format!("icmp ne {ptrs} {addresses}, {first}"));
        if let Some(mask) = &cx.mask {
            differ = self.text.def(&format!("and {masks} {differ}, {mask}"));
        }
        let bits = self.mask_bits(&Some(differ));
        let meet = self.text.def(&format!("icmp eq i{} {bits}, 0", self.lanes));
        let [one, each, one_end, each_end, after] = [(); 5].map(|()| self.text.label());
        self.text.branch(&meet, &one, &each);
        self.text.begin(&one);
        let of_one = self.one_rmw(op, tail, args, result.is_some(), cx)?;
        self.text.jump(&one_end);
        self.text.begin(&one_end);
        self.text.jump(&after);
        self.text.begin(&each);
        let of_each = self.rmw_of_each(op, tail, args, result, cx)?;
        self.text.jump(&each_end);
        self.text.begin(&each_end);
        self.text.jump(&after);
        self.text.begin(&after);
        let (Some(of_one), Some(of_each)) = (of_one, of_each) else {
            return Ok(None);
        };
        let vec = self.vec(self.func.ty(args[1]));
        Ok(Some(self.text.def(&format!(
            "phi {vec} [ {of_one}, %{one_end} ], [ {of_each}, %{each_end} ]"
        ))))
    }

    /// An address `bytes` behind.
    pub fn behind(&mut self, address: &str, bytes: u64) -> String {
        if bytes == 0 {
            return address.to_owned();
        }
        self.text
            .def(&format!("getelementptr i8, ptr {address}, i64 {bytes}"))
    }

    fn vector_behind(&mut self, addresses: &str, bytes: u64) -> String {
        if bytes == 0 {
            return addresses.to_owned();
        }
        let ptrs = self.vec(Type::Ptr(Space::Global));
        let steps = self.vec(Type::I64);
        let by = self.splat_const(Type::I64, bytes);
        self.text.def(&format!(
            "getelementptr i8, {ptrs} {addresses}, {steps} {by}"
        ))
    }

    fn load(
        &mut self,
        address: Value,
        results: &[Value],
        align: u32,
        volatile: bool,
        cx: &mut Context,
    ) -> Result<()> {
        let Some(&first) = results.first() else {
            return Ok(());
        };
        let ty = self.func.ty(first);
        let size = u64::from(ty.size());
        let align = sure(align, ty);
        let n = results.len();
        let part = |i: usize| -> u32 {
            if i == 0 {
                align
            } else {
                align.min(1 << (i as u64 * size).trailing_zeros())
            }
        };
        match self.reach(address, cx) {
            Reach::Same => {
                let at = self.scalar(address, cx)?;
                let v = if volatile { "volatile " } else { "" };
                for (i, &result) in results.iter().enumerate() {
                    let at = self.behind(&at, i as u64 * size);
                    let loaded = self.text.def(&format!(
                        "load {v}{}, ptr {at}, align {}",
                        scalar(ty),
                        part(i)
                    ));
                    if self.classes.of(result) == Class::Uniform {
                        self.define(result, Lanes::Same(loaded), cx);
                    } else {
                        let all = self.splat(ty, &loaded);
                        self.define(result, Lanes::each(all), cx);
                    }
                }
                Ok(())
            }
            Reach::Strided(stride)
                if stride == (n as u64 * size) as i64 && n <= MOST_INTERLEAVED =>
            {
                let at = self.anchored(address, stride, cx)?;
                let parts = self.load_interleaved(ty, &at, n, align, cx);
                for (&result, part) in results.iter().zip(parts) {
                    self.define(result, Lanes::each(part), cx);
                }
                Ok(())
            }
            _ => {
                let at = self.vector(address, cx)?;
                for (i, &result) in results.iter().enumerate() {
                    let at = self.vector_behind(&at, i as u64 * size);
                    let loaded = self.gather(ty, &at, part(i), cx);
                    self.define(result, Lanes::each(loaded), cx);
                }
                Ok(())
            }
        }
    }

    fn mask_of(&mut self, cx: &Context) -> String {
        self.mask_vector(&cx.mask)
    }

    pub fn gather(&mut self, ty: Type, at: &str, align: u32, cx: &Context) -> String {
        let (vec, ptrs, masks) = (
            self.vec(ty),
            self.vec(Type::Ptr(Space::Global)),
            self.mask_type(),
        );
        let w = self.lanes;
        let name = format!("llvm.masked.gather.v{w}{}.v{w}p0", suffix(ty));
        self.declare(format!(
            "declare {vec} @{name}({ptrs}, i32, {masks}, {vec})"
        ));
        let mask = self.mask_of(cx);
        self.text.def(&format!(
            "call {vec} @{name}({ptrs} {at}, i32 {align}, {masks} {mask}, {vec} zeroinitializer)"
        ))
    }

    pub fn scatter(&mut self, ty: Type, at: &str, value: &str, align: u32, cx: &Context) {
        let (vec, ptrs, masks) = (
            self.vec(ty),
            self.vec(Type::Ptr(Space::Global)),
            self.mask_type(),
        );
        let w = self.lanes;
        let name = format!("llvm.masked.scatter.v{w}{}.v{w}p0", suffix(ty));
        self.declare(format!("declare void @{name}({vec}, {ptrs}, i32, {masks})"));
        let mask = self.mask_of(cx);
        self.text.line(&format!(
            "call void @{name}({vec} {value}, {ptrs} {at}, i32 {align}, {masks} {mask})"
        ));
    }

    /// The mask with each lane `n` times.
    fn repeated_mask(&mut self, n: usize, cx: &Context) -> Option<String> {
        let mask = cx.mask.clone()?;
        if n == 1 {
            return Some(mask);
        }
        let masks = self.mask_type();
        let wide = self.lanes as usize * n;
        let order: Vec<String> = (0..wide).map(|i| format!("i32 {}", i / n)).collect();
        Some(self.text.def(&format!(
            "shufflevector {masks} {mask}, {masks} poison, <{wide} x i32> <{}>",
            order.join(", ")
        )))
    }

    fn load_interleaved(
        &mut self,
        ty: Type,
        at: &str,
        n: usize,
        align: u32,
        cx: &Context,
    ) -> Vec<String> {
        let wide = self.lanes as usize * n;
        let vec = format!("<{wide} x {}>", scalar(ty));
        let all = match self.repeated_mask(n, cx) {
            None => self
                .text
                .def(&format!("load {vec}, ptr {at}, align {align}")),
            Some(mask) => {
                let name = format!("llvm.masked.load.v{wide}{}.p0", suffix(ty));
                self.declare(format!(
                    "declare {vec} @{name}(ptr, i32, <{wide} x i1>, {vec})"
                ));
                self.text.def(&format!(
                    "call {vec} @{name}(ptr {at}, i32 {align}, <{wide} x i1> {mask}, {vec} zeroinitializer)"
                ))
            }
        };
        if n == 1 {
            return vec![all];
        }
        (0..n)
            .map(|i| {
                let order: Vec<String> = (0..self.lanes as usize)
                    .map(|lane| format!("i32 {}", lane * n + i))
                    .collect();
                self.text.def(&format!(
                    "shufflevector {vec} {all}, {vec} poison, <{} x i32> <{}>",
                    self.lanes,
                    order.join(", ")
                ))
            })
            .collect()
    }

    fn store_interleaved(
        &mut self,
        ty: Type,
        at: &str,
        values: Vec<String>,
        align: u32,
        cx: &Context,
    ) {
        let n = values.len();
        let lanes = self.lanes as usize;
        let mut parts = values;
        let mut width = lanes;
        // Pairs are put together until there is one; a number that is no power of two is filled up.
        while !parts.len().is_power_of_two() {
            parts.push("poison".to_owned());
        }
        let padded = parts.len();
        while parts.len() > 1 {
            let vec = format!("<{width} x {}>", scalar(ty));
            let order: Vec<String> = (0..2 * width).map(|i| format!("i32 {i}")).collect();
            let order = order.join(", ");
            parts = parts
                .chunks(2)
                .map(|pair| {
                    self.text.def(&format!(
                        "shufflevector {vec} {}, {vec} {}, <{} x i32> <{order}>",
                        pair[0],
                        pair[1],
                        2 * width
                    ))
                })
                .collect();
            width *= 2;
        }
        let wide = lanes * n;
        let vec = format!("<{wide} x {}>", scalar(ty));
        let mut all = parts.remove(0);
        if n > 1 {
            let from = format!("<{} x {}>", lanes * padded, scalar(ty));
            let order: Vec<String> = (0..wide)
                .map(|i| format!("i32 {}", (i % n) * lanes + i / n))
                .collect();
            all = self.text.def(&format!(
                "shufflevector {from} {all}, {from} poison, <{wide} x i32> <{}>",
                order.join(", ")
            ));
        }
        match self.repeated_mask(n, cx) {
            None => self
                .text
                .line(&format!("store {vec} {all}, ptr {at}, align {align}")),
            Some(mask) => {
                let name = format!("llvm.masked.store.v{wide}{}.p0", suffix(ty));
                self.declare(format!(
                    "declare void @{name}({vec}, ptr, i32, <{wide} x i1>)"
                ));
                self.text.line(&format!(
                    "call void @{name}({vec} {all}, ptr {at}, i32 {align}, <{wide} x i1> {mask})"
                ));
            }
        }
    }

    fn store(
        &mut self,
        address: Value,
        values: &[Value],
        align: u32,
        volatile: bool,
        cx: &mut Context,
    ) -> Result<()> {
        let Some(&first) = values.first() else {
            return Ok(());
        };
        let ty = self.func.ty(first);
        let size = u64::from(ty.size());
        let align = sure(align, ty);
        let n = values.len();
        let part = |i: usize| -> u32 {
            if i == 0 {
                align
            } else {
                align.min(1 << (i as u64 * size).trailing_zeros())
            }
        };
        match self.reach(address, cx) {
            Reach::Same => {
                let at = self.scalar(address, cx)?;
                let v = if volatile { "volatile " } else { "" };
                for (i, &value) in values.iter().enumerate() {
                    let one = self.last(value, cx)?;
                    let at = self.behind(&at, i as u64 * size);
                    self.text.line(&format!(
                        "store {v}{} {one}, ptr {at}, align {}",
                        scalar(ty),
                        part(i)
                    ));
                }
                Ok(())
            }
            Reach::Strided(stride)
                if stride == (n as u64 * size) as i64 && n <= MOST_INTERLEAVED =>
            {
                let at = self.anchored(address, stride, cx)?;
                let values: Vec<String> = values
                    .iter()
                    .map(|&v| self.vector(v, cx))
                    .collect::<Result<_>>()?;
                self.store_interleaved(ty, &at, values, align, cx);
                Ok(())
            }
            _ => {
                let at = self.vector(address, cx)?;
                for (i, &value) in values.iter().enumerate() {
                    let value = self.vector(value, cx)?;
                    let at = self.vector_behind(&at, i as u64 * size);
                    self.scatter(ty, &at, &value, part(i), cx);
                }
                Ok(())
            }
        }
    }

    fn copy(
        &mut self,
        to: Value,
        from: Value,
        size: u64,
        align: u32,
        cx: &mut Context,
    ) -> Result<()> {
        self.declare("declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)".to_owned());
        let align = align.min(8);
        self.each_lane(&[to, from], None, cx, |this, a| {
            this.text.line(&format!(
                "call void @llvm.memcpy.p0.p0.i64(ptr align {align} {}, ptr align {align} {}, i64 {size}, i1 false)",
                a[0], a[1]
            ));
            Ok(String::new())
        })
    }
}

/// Memory that the application gives to be used in place is aligned for the elements that programs access it by at best, and
/// wide vectors are no slower where they could be aligned and do not say so.
fn sure(align: u32, ty: Type) -> u32 {
    align.min(ty.size())
}

/// What several operations in a row come to, if that is one operation.
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

fn rmw(op: RmwOp) -> &'static str {
    match op {
        RmwOp::Xchg => "xchg",
        RmwOp::Add => "add",
        RmwOp::Sub => "sub",
        RmwOp::And => "and",
        RmwOp::Or => "or",
        RmwOp::Xor => "xor",
        RmwOp::SMin => "min",
        RmwOp::SMax => "max",
        RmwOp::UMin => "umin",
        RmwOp::UMax => "umax",
        RmwOp::FAdd => "fadd",
        RmwOp::FMin => "fmin",
        RmwOp::FMax => "fmax",
    }
}

/// An order as LLVM has it; loads cannot release and stores cannot acquire.
fn ordering(scope: Scope, order: Order, reads: bool, writes: bool) -> String {
    let order = match order {
        Order::SeqCst => "seq_cst",
        Order::AcqRel if reads && writes => "acq_rel",
        Order::Acquire | Order::AcqRel if reads => "acquire",
        Order::Release | Order::AcqRel if writes => "release",
        _ => "monotonic",
    };
    let _ = scope;
    order.to_owned()
}
