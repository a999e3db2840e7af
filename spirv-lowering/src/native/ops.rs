//! Instructions that only compute: for one lane or for all of them at once.

use super::emitter::{Context, Emitter};
use super::layout;
use super::optimization_barrier::in_register;
use super::slots::Lanes;
use super::strides::{Class, Reach};
use super::text::{scalar, suffix};
use super::Packing;
use crate::error::{LowerError, Result};
use crate::interface::Implicit;
use crate::ir::entity::{Inst, Value};
use crate::ir::function::{FpFlags, InstData};
use crate::ir::op::{Effect, FloatCond, HwVar, IntCond, NativeFn, Op, Order, Rounding, Scope};
use crate::ir::types::{Space, Type};

/// One lane, or all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// One value.
    Scalar,
    /// One in each lane.
    Vector,
}

impl Emitter<'_> {
    /// A type in a form.
    pub fn ty(&self, form: Form, ty: Type) -> String {
        match form {
            Form::Scalar => scalar(ty).to_owned(),
            Form::Vector => self.vec(ty),
        }
    }

    /// A constant in a form.
    pub fn number(&self, form: Form, ty: Type, bits: u64) -> String {
        match form {
            Form::Scalar => super::text::constant(ty, bits & ty.mask()),
            Form::Vector => self.splat_const(ty, bits & ty.mask()),
        }
    }

    /// The end of the name of an intrinsic.
    fn suffix(&self, form: Form, ty: Type) -> String {
        match form {
            Form::Scalar => suffix(ty).to_owned(),
            Form::Vector => format!("v{}{}", self.lanes, suffix(ty)),
        }
    }

    /// Calls an intrinsic whose operands and result are of one type.
    pub fn intrinsic(&mut self, form: Form, name: &str, ty: Type, args: &[&str]) -> String {
        let t = self.ty(form, ty);
        let full = format!("llvm.{name}.{}", self.suffix(form, ty));
        let types = vec![t.as_str(); args.len()].join(", ");
        self.declare(format!("declare {t} @{full}({types})"));
        let args: Vec<String> = args.iter().map(|a| format!("{t} {a}")).collect();
        self.text
            .def(&format!("call {t} @{full}({})", args.join(", ")))
    }

    /// The same with a flag behind.
    fn counted(&mut self, form: Form, name: &str, ty: Type, arg: &str) -> String {
        let t = self.ty(form, ty);
        let full = format!("llvm.{name}.{}", self.suffix(form, ty));
        self.declare(format!("declare {t} @{full}({t}, i1)"));
        self.text
            .def(&format!("call {t} @{full}({t} {arg}, i1 false)"))
    }

    /// Writes an instruction.
    pub fn instruction(&mut self, inst: Inst, cx: &mut Context) -> Result<()> {
        let func = self.func;
        let data = &func.insts[inst];
        match data.op {
            Op::Const(_) => Ok(()),
            Op::Undef => {
                let ty = func.ty(data.results[0]);
                let zero = self.number(Form::Scalar, ty, 0);
                self.define(data.results[0], Lanes::Same(zero), cx);
                Ok(())
            }
            Op::Hw(var) => self.hw(var, data.results[0], cx),
            Op::Implicit(which, i) => self.implicit(which, i, data.results[0], cx),
            Op::ArgLoad(offset) => {
                for (i, &result) in data.results.iter().enumerate() {
                    let ty = func.ty(result);
                    let at = offset + ty.size() * i as u32;
                    let name = self.push(at, ty);
                    self.define(result, Lanes::Same(name), cx);
                }
                Ok(())
            }
            Op::GlobalAddr(id) => {
                let offset = self.locals.offsets[id];
                let name = self.invariant(&format!("getelementptr i8, ptr %local, i64 {offset}"));
                self.define(data.results[0], Lanes::Same(name), cx);
                Ok(())
            }
            Op::Load { .. }
            | Op::Store { .. }
            | Op::MemCopy { .. }
            | Op::AtomicLoad { .. }
            | Op::AtomicStore { .. }
            | Op::AtomicRmw { .. }
            | Op::AtomicCmpXchg { .. }
            | Op::VarLoad(_)
            | Op::VarStore(_) => self.memory(inst, cx),
            Op::TexelFetch(_) | Op::TexelLoad(_) | Op::TexelStore(_) | Op::TexelFilter { .. } => {
                self.texel(inst, cx)
            }
            Op::Group(op, _) => self.collective(op, inst, cx),
            Op::Fence { mem, order, .. } => {
                self.fence(mem, order);
                Ok(())
            }
            // Those of work-groups are ends of regions.
            Op::Barrier { mem, order, .. } => {
                self.fence(mem, order);
                Ok(())
            }
            Op::Clock(_) => {
                self.declare("declare i64 @llvm.readcyclecounter()".to_owned());
                let ticks = self.text.def("call i64 @llvm.readcyclecounter()");
                self.define(data.results[0], Lanes::Same(ticks), cx);
                Ok(())
            }
            op if op.effect() == Effect::Pure && data.results.len() == 1 => self.pure(data, cx),
            _ => Err(LowerError::unsupported(format!(
                "{:?} on the processor",
                data.op
            ))),
        }
    }

    fn fence(&mut self, mem: Scope, order: Order) {
        let order = match order {
            Order::Relaxed => return,
            Order::Acquire => "acquire",
            Order::Release => "release",
            Order::AcqRel => "acq_rel",
            Order::SeqCst => "seq_cst",
        };
        // The work-items of a group run in one thread.
        let scope = match mem {
            Scope::AllDevices | Scope::Device => "",
            _ => "syncscope(\"singlethread\") ",
        };
        self.text.line(&format!("fence {scope}{order}"));
    }

    /// A value of the push constants.
    fn push(&mut self, offset: u32, ty: Type) -> String {
        let block = self.launch_field(layout::PUSH, "ptr");
        let at = self.invariant(&format!("getelementptr i8, ptr {block}, i64 {offset}"));
        let align = 1u32 << offset.trailing_zeros().min(ty.size().trailing_zeros());
        self.invariant(&format!(
            "load {}, ptr {at}, align {align}, !invariant.load !0",
            scalar(ty)
        ))
    }

    /// A field of the launch.
    pub fn launch_field(&mut self, offset: u32, ty: &str) -> String {
        let at = self.invariant(&format!("getelementptr i8, ptr %launch, i64 {offset}"));
        self.invariant(&format!("load {ty}, ptr {at}, align 4, !invariant.load !0"))
    }

    fn implicit(
        &mut self,
        which: Implicit,
        component: u8,
        result: Value,
        cx: &Context,
    ) -> Result<()> {
        let Some(&(_, offset)) = self.ids.implicit.iter().find(|&&(other, _)| other == which)
        else {
            return Err(LowerError::internal("an implicit argument without a place"));
        };
        let ty = self.func.ty(result);
        let name = self.push(offset + u32::from(component) * 4, ty);
        self.define(result, Lanes::Same(name), cx);
        Ok(())
    }

    fn hw(&mut self, var: HwVar, result: Value, cx: &Context) -> Result<()> {
        let ids = self.ids.clone();
        let at = |d: u8, of: &[String; 3]| {
            of.get(usize::from(d))
                .cloned()
                .ok_or_else(|| LowerError::internal("a dimension above 2"))
        };
        let stride_one = |this: &mut Self, base: String| {
            let all = this.spread(Type::I32, &base, 1);
            Lanes::Affine { first: base, all }
        };
        let lanes = match var {
            HwVar::LocalInvocationId(d) if self.packing == Packing::Linear => {
                Lanes::each(at(d, &ids.local)?)
            }
            HwVar::LocalInvocationId(0) => stride_one(self, ids.local[0].clone()),
            HwVar::LocalInvocationId(d) => Lanes::Same(at(d, &ids.local)?),
            HwVar::WorkgroupId(0) if self.packing == Packing::Groups => {
                stride_one(self, ids.group[0].clone())
            }
            HwVar::WorkgroupId(d) => Lanes::Same(at(d, &ids.group)?),
            HwVar::NumWorkgroups(d) => {
                let field = self.launch_field(layout::GROUPS + 4 * u32::from(d.min(2)), "i32");
                Lanes::Same(field)
            }
            HwVar::WorkgroupSize(d) => {
                let field = self.launch_field(layout::LOCAL_SIZE + 4 * u32::from(d.min(2)), "i32");
                Lanes::Same(field)
            }
            HwVar::LocalInvocationIndex => stride_one(self, ids.index.clone()),
            HwVar::SubgroupSize => Lanes::Same(self.lanes.to_string()),
            HwVar::SubgroupInvocationId => stride_one(self, "0".to_owned()),
            HwVar::SubgroupId => Lanes::Same(ids.pack.clone()),
            HwVar::NumSubgroups => {
                let field = self.launch_field(layout::PACKS, "i32");
                Lanes::Same(field)
            }
        };
        self.define(result, lanes, cx);
        Ok(())
    }

    fn pure(&mut self, data: &InstData, cx: &mut Context) -> Result<()> {
        let result = data.results[0];
        let class = self.classes.of(result);
        // Of a uniform result all operands are, but for differences of affine ones.
        let mut first = None;
        if class != Class::Varying || self.reach(result, cx) != Reach::Scattered {
            let mut args = Vec::with_capacity(data.args.len());
            for &arg in &data.args {
                args.push(self.of_lane_0(arg, cx)?);
            }
            first = Some(self.compute(data, Form::Scalar, &args)?);
        }
        let lanes = match (class, first) {
            (Class::Uniform, Some(one)) => Lanes::Same(one),
            (Class::Affine(stride), Some(first)) => {
                let all = self.spread(self.func.ty(result), &first, stride);
                Lanes::Affine { first, all }
            }
            (_, first) => {
                let all = self.pure_vector(data, cx)?;
                Lanes::Each { all, first }
            }
        };
        self.define(result, lanes, cx);
        Ok(())
    }

    fn pure_vector(&mut self, data: &InstData, cx: &mut Context) -> Result<String> {
        match data.op {
            Op::PtrAdd => self.vector_offset(data, cx),
            Op::Select if self.is_uniform(data.args[0], cx) => {
                let cond = self.scalar(data.args[0], cx)?;
                let (a, b) = (
                    self.vector(data.args[1], cx)?,
                    self.vector(data.args[2], cx)?,
                );
                let ty = self.vec(self.func.ty(data.results[0]));
                Ok(self
                    .text
                    .def(&format!("select i1 {cond}, {ty} {a}, {ty} {b}")))
            }
            _ => {
                let mut args = Vec::with_capacity(data.args.len());
                for &arg in &data.args {
                    args.push(self.vector(arg, cx)?);
                }
                self.compute(data, Form::Vector, &args)
            }
        }
    }

    /// Addresses with one base, as gathers like them.
    fn vector_offset(&mut self, data: &InstData, cx: &Context) -> Result<String> {
        let offsets = self.vector(data.args[1], cx)?;
        let vec = self.vec(Type::I64);
        if self.is_uniform(data.args[0], cx) {
            let base = self.scalar(data.args[0], cx)?;
            return Ok(self
                .text
                .def(&format!("getelementptr i8, ptr {base}, {vec} {offsets}")));
        }
        let base = self.vector(data.args[0], cx)?;
        let ptrs = self.vec(Type::Ptr(Space::Global));
        Ok(self
            .text
            .def(&format!("getelementptr i8, {ptrs} {base}, {vec} {offsets}")))
    }

    /// Writes the operation of an instruction on operands in a form.
    fn compute(&mut self, data: &InstData, form: Form, args: &[String]) -> Result<String> {
        let func = self.func;
        let ty = func.ty(data.results[0]);
        let t = self.ty(form, ty);
        let from = data.args.first().map_or(ty, |&a| func.ty(a));
        let ft = self.ty(form, from);
        let fp = flags(data.fp);
        let arg = |i: usize| args.get(i).map_or("", String::as_str);
        let (a, b) = (arg(0), arg(1));
        let plain = match data.op {
            Op::IAdd => "add",
            Op::ISub => "sub",
            Op::IMul => "mul",
            Op::And => "and",
            Op::Or => "or",
            Op::Xor => "xor",
            _ => "",
        };
        if !plain.is_empty() {
            return Ok(self.text.def(&format!("{plain} {t} {a}, {b}")));
        }
        let float = match data.op {
            Op::FAdd => "fadd",
            Op::FSub => "fsub",
            Op::FMul => "fmul",
            Op::FDiv => "fdiv",
            Op::FRem => "frem",
            _ => "",
        };
        if !float.is_empty() {
            return Ok(self.text.def(&format!("{float}{fp} {t} {a}, {b}")));
        }
        let intrinsic = match data.op {
            Op::SMin => "smin",
            Op::SMax => "smax",
            Op::UMin => "umin",
            Op::UMax => "umax",
            Op::Popcount => "ctpop",
            Op::BitReverse => "bitreverse",
            Op::FAbs => "fabs",
            Op::FCopySign => "copysign",
            Op::Fma | Op::FNative(NativeFn::Fma) => "fma",
            Op::FSqrt | Op::FNative(NativeFn::Sqrt) => "sqrt",
            Op::FFloor => "floor",
            Op::FCeil => "ceil",
            Op::FTrunc => "trunc",
            Op::FRoundEven => "roundeven",
            Op::FNative(NativeFn::Sin) => "sin",
            Op::FNative(NativeFn::Cos) => "cos",
            Op::FNative(NativeFn::Exp2) => "exp2",
            Op::FNative(NativeFn::Log2) => "log2",
            Op::FNative(NativeFn::Pow) => "pow",
            _ => "",
        };
        if !intrinsic.is_empty() {
            let args: Vec<&str> = args.iter().map(String::as_str).collect();
            return Ok(self.intrinsic(form, intrinsic, ty, &args));
        }
        if let Op::FMin | Op::FMax = data.op {
            return Ok(self.float_extreme(form, ty, data.op == Op::FMin, a, b));
        }
        let line = match data.op {
            Op::Shl | Op::LShr | Op::AShr => {
                let op = match data.op {
                    Op::Shl => "shl",
                    Op::LShr => "lshr",
                    _ => "ashr",
                };
                let by = match func.as_const(data.args[1]) {
                    Some(bits) => self.number(form, ty, bits & u64::from(ty.bits() - 1)),
                    None => {
                        let mask = self.number(form, ty, u64::from(ty.bits() - 1));
                        self.text.def(&format!("and {t} {b}, {mask}"))
                    }
                };
                format!("{op} {t} {a}, {by}")
            }
            Op::INeg => {
                let zero = self.number(form, ty, 0);
                format!("sub {t} {zero}, {a}")
            }
            Op::Not => {
                let ones = self.number(form, ty, u64::MAX);
                format!("xor {t} {a}, {ones}")
            }
            Op::SDiv | Op::UDiv | Op::SRem | Op::URem => return self.divide(data, form, ty, a, b),
            Op::SMulHi | Op::UMulHi => {
                let extend = if data.op == Op::SMulHi {
                    "sext"
                } else {
                    "zext"
                };
                let bits = ty.bits();
                let wide = match form {
                    Form::Scalar => format!("i{}", bits * 2),
                    Form::Vector => format!("<{} x i{}>", self.lanes, bits * 2),
                };
                let a = self.text.def(&format!("{extend} {t} {a} to {wide}"));
                let b = self.text.def(&format!("{extend} {t} {b} to {wide}"));
                let product = self.text.def(&format!("mul {wide} {a}, {b}"));
                let by = match form {
                    Form::Scalar => bits.to_string(),
                    Form::Vector => {
                        let one = format!("i{} {bits}", bits * 2);
                        format!("<{}>", vec![one; self.lanes as usize].join(", "))
                    }
                };
                let high = self.text.def(&format!("lshr {wide} {product}, {by}"));
                format!("trunc {wide} {high} to {t}")
            }
            Op::Clz => return Ok(self.counted(form, "ctlz", ty, a)),
            Op::Ctz => return Ok(self.counted(form, "cttz", ty, a)),
            Op::FNeg => format!("fneg{fp} {t} {a}"),
            Op::FNative(NativeFn::Rsqrt) => {
                let root = self.intrinsic(form, "sqrt", ty, &[a]);
                let one = self.number(form, ty, one(ty));
                format!("fdiv {t} {one}, {root}")
            }
            Op::ICmp(cond) => format!("icmp {} {ft} {a}, {b}", int_cond(cond)),
            Op::FCmp(cond) => format!("fcmp{fp} {} {ft} {a}, {b}", float_cond(cond)),
            Op::Select => {
                let c = self.ty(form, Type::Bool);
                let (mut b, mut other) = (b.to_owned(), arg(2).to_owned());
                if form == Form::Vector {
                    b = self.fenced(data.args[1], b);
                    other = self.fenced(data.args[2], other);
                }
                format!("select {c} {a}, {t} {b}, {t} {other}")
            }
            Op::ZExt => format!("zext {ft} {a} to {t}"),
            Op::SExt => format!("sext {ft} {a} to {t}"),
            Op::Trunc => format!("trunc {ft} {a} to {t}"),
            Op::FConv(Rounding::Rte) if from.bits() == ty.bits() => return Ok(a.to_owned()),
            Op::FConv(Rounding::Rte) if from.bits() > ty.bits() => {
                format!("fptrunc {ft} {a} to {t}")
            }
            Op::FConv(_) if from.bits() < ty.bits() => format!("fpext {ft} {a} to {t}"),
            Op::SToF(Rounding::Rte) => format!("sitofp {ft} {a} to {t}"),
            Op::UToF(Rounding::Rte) => format!("uitofp {ft} {a} to {t}"),
            Op::FToS {
                rounding: Rounding::Rtz,
                sat: false,
            } => {
                let v = self.text.def(&format!("fptosi {ft} {a} to {t}"));
                format!("freeze {t} {v}")
            }
            Op::FToU {
                rounding: Rounding::Rtz,
                sat: false,
            } => {
                let v = self.text.def(&format!("fptoui {ft} {a} to {t}"));
                format!("freeze {t} {v}")
            }
            Op::PtrToInt => format!("ptrtoint {ft} {a} to {t}"),
            Op::IntToPtr => format!("inttoptr {ft} {a} to {t}"),
            Op::SpaceCast => return Ok(a.to_owned()),
            Op::Bitcast if scalar(from) == scalar(ty) => return Ok(a.to_owned()),
            Op::Bitcast if self.halves_apart && ft == "i16" && t == "half" => {
                let bits = self.text.def(&in_register("i16", a));
                format!("bitcast i16 {bits} to half")
            }
            Op::Bitcast => format!("bitcast {ft} {a} to {t}"),
            Op::PtrAdd => format!(
                "getelementptr i8, {ft} {a}, {} {b}",
                self.ty(form, Type::I64)
            ),
            Op::SpecSize(_) => {
                return Err(LowerError::unsupported("sizes of local arguments"));
            }
            _ => {
                return Err(LowerError::unsupported(format!(
                    "{:?} on the processor",
                    data.op
                )))
            }
        };
        Ok(self.text.def(&line))
    }

    /// The smaller or larger of two; where one is no number, the other.
    pub fn float_extreme(&mut self, form: Form, ty: Type, least: bool, a: &str, b: &str) -> String {
        let (t, bools) = (self.ty(form, ty), self.ty(form, Type::Bool));
        let cond = if least { "olt" } else { "ogt" };
        let first = self.text.def(&format!("fcmp {cond} {t} {a}, {b}"));
        let nan = self.text.def(&format!("fcmp uno {t} {b}, {b}"));
        let first = self.text.def(&format!("or {bools} {first}, {nan}"));
        self.text
            .def(&format!("select {bools} {first}, {t} {a}, {t} {b}"))
    }

    /// Division: nothing traps, and vectors of up to 32 bits go by way of floats.
    fn divide(
        &mut self,
        data: &InstData,
        form: Form,
        ty: Type,
        a: &str,
        b: &str,
    ) -> Result<String> {
        let signed = matches!(data.op, Op::SDiv | Op::SRem);
        let remainder = matches!(data.op, Op::SRem | Op::URem);
        let t = self.ty(form, ty);
        let name = match data.op {
            Op::SDiv => "sdiv",
            Op::UDiv => "udiv",
            Op::SRem => "srem",
            _ => "urem",
        };
        let safe = self
            .func
            .as_const(data.args[1])
            .is_some_and(|bits| bits != 0 && bits != ty.mask());
        if safe {
            return Ok(self.text.def(&format!("{name} {t} {a}, {b}")));
        }
        if form == Form::Vector && ty.bits() <= 32 {
            // The quotient of integers of n bits, rounded to more than 2n, cannot reach the next integer.
            let float = if ty.bits() == 32 {
                Type::F64
            } else {
                Type::F32
            };
            let f = self.vec(float);
            let (to, back) = if signed {
                ("sitofp", "fptosi")
            } else {
                ("uitofp", "fptoui")
            };
            let x = self.text.def(&format!("{to} {t} {a} to {f}"));
            let y = self.text.def(&format!("{to} {t} {b} to {f}"));
            let q = self.text.def(&format!("fdiv {f} {x}, {y}"));
            // Through 32 bits: what is out of range is unspecified, but must not be undefined.
            let wide = self.vec(Type::I32);
            let q = self.text.def(&format!("{back} {f} {q} to {wide}"));
            let mut q = self.text.def(&format!("freeze {wide} {q}"));
            if ty.bits() < 32 {
                q = self.text.def(&format!("trunc {wide} {q} to {t}"));
            }
            if !remainder {
                return Ok(q);
            }
            let product = self.text.def(&format!("mul {t} {q}, {b}"));
            return Ok(self.text.def(&format!("sub {t} {a}, {product}")));
        }
        let bools = self.ty(form, Type::Bool);
        let (zero, one) = (self.number(form, ty, 0), self.number(form, ty, 1));
        let mut bad = self.text.def(&format!("icmp eq {t} {b}, {zero}"));
        if signed {
            let ones = self.number(form, ty, u64::MAX);
            let least = self.number(form, ty, 1 << (ty.bits() - 1));
            let minus = self.text.def(&format!("icmp eq {t} {b}, {ones}"));
            let lowest = self.text.def(&format!("icmp eq {t} {a}, {least}"));
            let both = self.text.def(&format!("and {bools} {minus}, {lowest}"));
            bad = self.text.def(&format!("or {bools} {bad}, {both}"));
        }
        let by = self
            .text
            .def(&format!("select {bools} {bad}, {t} {one}, {t} {b}"));
        Ok(self.text.def(&format!("{name} {t} {a}, {by}")))
    }
}

/// The bits of 1.
fn one(ty: Type) -> u64 {
    match ty {
        Type::F16 => 0x3c00,
        Type::F32 => 0x3f80_0000,
        _ => 0x3ff0_0000_0000_0000,
    }
}

fn flags(fp: FpFlags) -> String {
    let mut out = String::new();
    for (flag, name) in [
        (FpFlags::NNAN, " nnan"),
        (FpFlags::NINF, " ninf"),
        (FpFlags::NSZ, " nsz"),
        (FpFlags::ARCP, " arcp"),
        (FpFlags::CONTRACT, " contract"),
        (FpFlags::REASSOC, " reassoc"),
    ] {
        if fp.has(flag) {
            out.push_str(name);
        }
    }
    out
}

fn int_cond(cond: IntCond) -> &'static str {
    match cond {
        IntCond::Eq => "eq",
        IntCond::Ne => "ne",
        IntCond::Slt => "slt",
        IntCond::Sle => "sle",
        IntCond::Sgt => "sgt",
        IntCond::Sge => "sge",
        IntCond::Ult => "ult",
        IntCond::Ule => "ule",
        IntCond::Ugt => "ugt",
        IntCond::Uge => "uge",
    }
}

fn float_cond(cond: FloatCond) -> &'static str {
    match cond {
        FloatCond::Oeq => "oeq",
        FloatCond::One => "one",
        FloatCond::Olt => "olt",
        FloatCond::Ole => "ole",
        FloatCond::Ogt => "ogt",
        FloatCond::Oge => "oge",
        FloatCond::Ord => "ord",
        FloatCond::Ueq => "ueq",
        FloatCond::Une => "une",
        FloatCond::Ult => "ult",
        FloatCond::Ule => "ule",
        FloatCond::Ugt => "ugt",
        FloatCond::Uge => "uge",
        FloatCond::Uno => "uno",
    }
}
