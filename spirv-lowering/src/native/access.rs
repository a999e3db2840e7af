//! Memory: whole vectors where addresses are affine, one access where they are uniform, else gathers and scatters; atomics
//! lane by lane.

use super::classes::Class;
use super::flow::{Context, Emitter};
use super::ops::Form;
use super::text::{scalar, suffix};
use crate::error::{LowerError, Result};
use crate::ir::entity::{Inst, Value, Var};
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
                self.one_rmw(op, &tail, args, results.first().copied(), cx)
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
                let ty = func.ty(args[1]);
                let tail = ordering(scope, order, true, true);
                let name = rmw(op);
                self.each_lane(
                    &[args[0], args[1]],
                    results.first().copied(),
                    cx,
                    |this, a| {
                        Ok(this.text.def(&format!(
                            "atomicrmw {name} ptr {}, {} {} {tail}, align {}",
                            a[0],
                            scalar(ty),
                            a[1],
                            ty.size()
                        )))
                    },
                )
            }
            Op::AtomicCmpXchg { scope, order } => {
                let ty = func.ty(args[1]);
                let tail = ordering(scope, order, true, true);
                let failed = match order {
                    Order::Relaxed | Order::Release => "monotonic",
                    Order::Acquire | Order::AcqRel => "acquire",
                    Order::SeqCst => "seq_cst",
                };
                self.each_lane(&args[..3], results.first().copied(), cx, |this, a| {
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
                })
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

    /// All lanes on one address: one operation with what they have together.
    fn one_rmw(
        &mut self,
        op: RmwOp,
        tail: &str,
        args: &[Value],
        result: Option<Value>,
        cx: &mut Context,
    ) -> Result<()> {
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
        if let Some(result) = result {
            // What each lane would have found.
            let before = self.scan_lanes(arith, ty, &value, cx)?;
            let old = self.splat(ty, &old);
            let found = if op == RmwOp::Sub {
                self.text.def(&format!("sub {vec} {old}, {before}"))
            } else {
                self.combine(arith, ty, Form::Vector, &old, &before)?
            };
            self.define(result, None, Some(found), cx);
        }
        Ok(())
    }

    /// An address `bytes` behind.
    fn behind(&mut self, address: &str, bytes: u64) -> String {
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
        match self.class(address, cx) {
            Class::Uniform => {
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
                        self.define(result, Some(loaded), None, cx);
                    } else {
                        let all = self.splat(ty, &loaded);
                        self.define(result, None, Some(all), cx);
                    }
                }
                Ok(())
            }
            Class::Affine { stride, .. }
                if stride == (n as u64 * size) as i64 && n <= MOST_INTERLEAVED =>
            {
                let at = self.anchored(address, cx)?;
                let parts = self.load_interleaved(ty, &at, n, align, cx);
                for (&result, part) in results.iter().zip(parts) {
                    self.define(result, None, Some(part), cx);
                }
                Ok(())
            }
            _ => {
                let at = self.vector(address, cx)?;
                for (i, &result) in results.iter().enumerate() {
                    let at = self.vector_behind(&at, i as u64 * size);
                    let loaded = self.gather(ty, &at, part(i), cx);
                    self.define(result, None, Some(loaded), cx);
                }
                Ok(())
            }
        }
    }

    fn mask_of(&mut self, cx: &Context) -> String {
        self.mask_vector(&cx.mask)
    }

    fn gather(&mut self, ty: Type, at: &str, align: u32, cx: &Context) -> String {
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

    fn scatter(&mut self, ty: Type, at: &str, value: &str, align: u32, cx: &Context) {
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
        match self.class(address, cx) {
            Class::Uniform => {
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
            Class::Affine { stride, .. }
                if stride == (n as u64 * size) as i64 && n <= MOST_INTERLEAVED =>
            {
                let at = self.anchored(address, cx)?;
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

    /// What the last lane that runs has: lanes write to one place in their order.
    fn last(&mut self, value: Value, cx: &Context) -> Result<String> {
        if self.is_uniform(value, cx) {
            return self.scalar(value, cx);
        }
        let vector = self.vector(value, cx)?;
        let lane = match &cx.mask {
            None => (self.lanes - 1).to_string(),
            Some(_) => {
                let n = self.lanes;
                let bits = self.mask_bits(&cx.mask);
                self.declare(format!("declare i{n} @llvm.ctlz.i{n}(i{n}, i1)"));
                let zeros = self
                    .text
                    .def(&format!("call i{n} @llvm.ctlz.i{n}(i{n} {bits}, i1 true)"));
                let lane = self.text.def(&format!("sub i{n} {}, {zeros}", n - 1));
                if n == 64 {
                    lane
                } else {
                    self.text.def(&format!("zext i{n} {lane} to i64"))
                }
            }
        };
        let ty = self.vec(self.func.ty(value));
        Ok(self
            .text
            .def(&format!("extractelement {ty} {vector}, i64 {lane}")))
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

    /// Does something lane by lane, with the operands of each; once, if they are the same and nothing comes back.
    pub fn each_lane(
        &mut self,
        args: &[Value],
        result: Option<Value>,
        cx: &mut Context,
        body: impl FnOnce(&mut Self, &[String]) -> Result<String>,
    ) -> Result<()> {
        let w = self.lanes;
        let mut operands = Vec::new();
        for &arg in args {
            let ty = self.func.ty(arg);
            operands.push(if self.is_uniform(arg, cx) {
                (ty, self.scalar(arg, cx)?, true)
            } else {
                (ty, self.vector(arg, cx)?, false)
            });
        }
        let bits = self.mask_bits(&cx.mask);
        let slot = result.map(|r| {
            let ty = self.vec(self.func.ty(r));
            self.alloca(&ty)
        });
        let (before, again, after) = (self.text.label(), self.text.label(), self.text.label());
        self.text.jump(&before);
        self.text.begin(&before);
        self.text.jump(&again);
        self.text.begin(&again);
        let left = self.text.name();
        let rest = self.text.name();
        // The loop's body is one block but for what `body` adds: the edge back comes from `latch`.
        let latch = self.text.label();
        self.text.line(&format!(
            "{left} = phi i{w} [ {bits}, %{before} ], [ {rest}, %{latch} ]"
        ));
        self.declare(format!("declare i{w} @llvm.cttz.i{w}(i{w}, i1)"));
        let lane = self
            .text
            .def(&format!("call i{w} @llvm.cttz.i{w}(i{w} {left}, i1 true)"));
        let lane = if w == 64 {
            lane
        } else {
            self.text.def(&format!("zext i{w} {lane} to i64"))
        };
        let mut one = Vec::new();
        for (ty, value, uniform) in &operands {
            one.push(if *uniform {
                value.clone()
            } else {
                let vec = self.vec(*ty);
                self.text
                    .def(&format!("extractelement {vec} {value}, i64 {lane}"))
            });
        }
        let made = body(self, &one)?;
        if let (Some(slot), Some(result)) = (&slot, result) {
            let ty = scalar(self.func.ty(result));
            let at = self
                .text
                .def(&format!("getelementptr {ty}, ptr {slot}, i64 {lane}"));
            self.text
                .line(&format!("store {ty} {made}, ptr {at}, align 1"));
        }
        self.text.jump(&latch);
        self.text.begin(&latch);
        let less = self.text.def(&format!("sub i{w} {left}, 1"));
        self.text.line(&format!("{rest} = and i{w} {left}, {less}"));
        let more = self.text.def(&format!("icmp ne i{w} {rest}, 0"));
        self.text.branch(&more, &again, &after);
        self.text.begin(&after);
        if let (Some(slot), Some(result)) = (slot, result) {
            let ty = self.vec(self.func.ty(result));
            let loaded = self.text.def(&format!("load {ty}, ptr {slot}, align 64"));
            self.define(result, None, Some(loaded), cx);
        }
        Ok(())
    }

    // --- variables of a work-item: element after element, each for all lanes

    fn array(&mut self, var: Var) -> Result<String> {
        if let Some(frame) = &self.frame {
            let offset = frame[var];
            let base = self.ids.frame.clone();
            return Ok(self
                .text
                .def(&format!("getelementptr i8, ptr {base}, i64 {offset}")));
        }
        if let Some(name) = &self.arrays[var] {
            return Ok(name.clone());
        }
        let data = &self.func.vars[var];
        let ty = format!("[{} x {}]", data.len.fixed.max(1), self.vec(data.elem));
        let name = self.alloca(&ty);
        self.arrays[var] = Some(name.clone());
        Ok(name)
    }

    fn array_load(
        &mut self,
        var: Var,
        index: Value,
        result: Value,
        cx: &mut Context,
    ) -> Result<()> {
        let elem = self.func.vars[var].elem;
        let base = self.array(var)?;
        if self.region.uniform[var] {
            let loaded = self
                .text
                .def(&format!("load {}, ptr {base}, align 8", scalar(elem)));
            self.define(result, Some(loaded), None, cx);
            return Ok(());
        }
        let loaded = if self.is_uniform(index, cx) {
            let at = self.element(elem, &base, index, cx)?;
            let vec = self.vec(elem);
            self.text.def(&format!(
                "load {vec}, ptr {at}, align {}",
                self.element_align(elem)
            ))
        } else {
            let at = self.elements(elem, &base, index, cx)?;
            self.gather(elem, &at, elem.size(), cx)
        };
        self.define(result, None, Some(loaded), cx);
        Ok(())
    }

    fn array_store(
        &mut self,
        var: Var,
        index: Value,
        value: Value,
        cx: &mut Context,
    ) -> Result<()> {
        let elem = self.func.vars[var].elem;
        let base = self.array(var)?;
        if self.region.uniform[var] {
            // An affine value is told by its first lane, which runs wherever there is a barrier.
            let one = match self.class(value, cx) {
                Class::Affine { .. } => self.anchored(value, cx)?,
                _ => self.scalar(value, cx)?,
            };
            self.text.line(&format!(
                "store {} {one}, ptr {base}, align 8",
                scalar(elem)
            ));
            return Ok(());
        }
        let vector = self.vector(value, cx)?;
        if !self.is_uniform(index, cx) {
            let at = self.elements(elem, &base, index, cx)?;
            self.scatter(elem, &at, &vector, elem.size(), cx);
            return Ok(());
        }
        let at = self.element(elem, &base, index, cx)?;
        let (vec, align) = (self.vec(elem), self.element_align(elem));
        let vector = match &cx.mask {
            None => vector,
            // The place is ours: no other lane writes in between.
            Some(mask) => {
                let vector = self.apart(value, vector);
                let old = self
                    .text
                    .def(&format!("load {vec}, ptr {at}, align {align}"));
                let masks = self.mask_type();
                self.text.def(&format!(
                    "select {masks} {mask}, {vec} {vector}, {vec} {old}"
                ))
            }
        };
        self.text
            .line(&format!("store {vec} {vector}, ptr {at}, align {align}"));
        Ok(())
    }

    fn element_align(&self, elem: Type) -> u32 {
        (self.lanes * elem.size()).min(64)
    }

    fn element(&mut self, elem: Type, base: &str, index: Value, cx: &Context) -> Result<String> {
        let index = self.scalar(index, cx)?;
        let index = self.text.def(&format!("zext i32 {index} to i64"));
        let vec = self.vec(elem);
        Ok(self
            .text
            .def(&format!("getelementptr {vec}, ptr {base}, i64 {index}")))
    }

    fn elements(&mut self, elem: Type, base: &str, index: Value, cx: &Context) -> Result<String> {
        let index = self.vector(index, cx)?;
        let vec = self.vec(Type::I32);
        let by = self.splat_const(Type::I32, u64::from(self.lanes));
        let row = self.text.def(&format!("mul {vec} {index}, {by}"));
        let own = self.lanes_const(Type::I32, |lane| lane);
        let at = self.text.def(&format!("add {vec} {row}, {own}"));
        let wide = self.vec(Type::I64);
        let at = self.text.def(&format!("zext {vec} {at} to {wide}"));
        Ok(self.text.def(&format!(
            "getelementptr {}, ptr {base}, {wide} {at}",
            scalar(elem)
        )))
    }

    // --- images

    /// Reads or writes texels by the runtime's functions.
    pub fn texel(&mut self, inst: Inst, cx: &mut Context) -> Result<()> {
        let func = self.func;
        let data = &func.insts[inst];
        let w = self.lanes;
        let bindings = self.launch_field(super::layout::BINDINGS, "ptr");
        let descriptor = |this: &mut Self, binding: u32| {
            let offset = u64::from(binding) * u64::from(super::layout::DESCRIPTOR);
            this.invariant(&format!("getelementptr i8, ptr {bindings}, i64 {offset}"))
        };
        let bits = match &cx.mask {
            None => (u64::MAX >> (64 - w)).to_string(),
            Some(_) => {
                let bits = self.mask_bits(&cx.mask);
                if w == 64 {
                    bits
                } else {
                    self.text.def(&format!("zext i{w} {bits} to i64"))
                }
            }
        };
        let (name, mut args) = match data.op {
            Op::TexelFetch(slot) | Op::TexelLoad(slot) => {
                let d = descriptor(self, slot.binding);
                ("pumice_texel_load", vec![d])
            }
            Op::TexelStore(slot) => {
                let d = descriptor(self, slot.binding);
                ("pumice_texel_store", vec![d])
            }
            Op::TexelFilter { image, sampler } => {
                let (i, s) = (descriptor(self, image.binding), descriptor(self, sampler));
                ("pumice_texel_filter", vec![i, s])
            }
            _ => return Err(LowerError::internal("not a texel")),
        };
        let memory = |this: &mut Self, n: usize| {
            let ty = format!("[{n} x <{w} x i32>]");
            this.alloca(&ty)
        };
        let mut operands = data.args.iter();
        for _ in 0..3 {
            let Some(&value) = operands.next() else {
                return Err(LowerError::internal("coordinates of a texel"));
            };
            let place = memory(self, 1);
            let vector = self.vector(value, cx)?;
            let vec = self.vec(func.ty(value));
            self.text
                .line(&format!("store {vec} {vector}, ptr {place}, align 64"));
            args.push(place);
        }
        let texels = memory(self, 4);
        for (i, &value) in operands.enumerate() {
            let vector = self.vector(value, cx)?;
            let vec = self.vec(func.ty(value));
            let at = self.behind(&texels, i as u64 * u64::from(w) * 4);
            self.text
                .line(&format!("store {vec} {vector}, ptr {at}, align 4"));
        }
        args.push(texels.clone());
        let descriptors = args.len() - 4;
        let mut types = vec!["ptr"; descriptors];
        types.extend(["i32", "i64", "ptr", "ptr", "ptr", "ptr"]);
        self.declare(format!("declare void @{name}({})", types.join(", ")));
        let mut list: Vec<String> = args[..descriptors]
            .iter()
            .map(|a| format!("ptr {a}"))
            .collect();
        list.push(format!("i32 {w}"));
        list.push(format!("i64 {bits}"));
        list.extend(args[descriptors..].iter().map(|a| format!("ptr {a}")));
        self.text
            .line(&format!("call void @{name}({})", list.join(", ")));
        for (i, &result) in data.results.iter().enumerate() {
            let vec = self.ty(Form::Vector, func.ty(result));
            let at = self.behind(&texels, i as u64 * u64::from(w) * 4);
            let loaded = self.text.def(&format!("load {vec}, ptr {at}, align 4"));
            self.define(result, None, Some(loaded), cx);
        }
        Ok(())
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
