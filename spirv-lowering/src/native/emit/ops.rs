//! Instructions that only compute: for one lane or for all of them at once.

use super::launch::LOCAL;
use super::packs::OWN;
use super::slots::Lanes;
use super::{Context, Emitter};
use crate::error::{LowerError, Result};
use crate::ir::entity::Inst;
use crate::ir::function::{FpFlags, InstData};
use crate::ir::op::{Effect, FloatCond, NativeFn, Op, Order, Rounding, Scope};
use crate::ir::types::Type;
use crate::native::llvm::{self, Binary, Cast, LlvmType, Operand};
use crate::native::strides::{Class, Reach};
use crate::quirks::CodeQuirk;

impl Emitter<'_> {
    /// Writes an instruction.
    pub(super) fn instruction(&mut self, inst: Inst, cx: &Context) -> Result<()> {
        let func = self.func;
        let data = &func.insts[inst];
        match data.op {
            Op::Const(_) => Ok(()),
            Op::Undef => {
                let zero = Operand::constant(self.ty(data.results[0]), 0);
                self.define(data.results[0], Lanes::Same(zero), cx);
                Ok(())
            }
            Op::Hw(var) => self.hw(var, data.results[0], cx),
            Op::Own { offset, size } => {
                let start = self.variables.own.saturating_add(offset);
                let first = self.llvm.offset(&OWN, &Operand::i64(start.into()));
                let all = self.spread(&first, size.into());
                self.define(data.results[0], Lanes::Affine { first, all }, cx);
                Ok(())
            }
            Op::Implicit(which, i) => self.implicit(which, i, data.results[0], cx),
            Op::ArgLoad(offset) => {
                for (i, &result) in data.results.iter().enumerate() {
                    let ty = func.ty(result);
                    let at = offset + ty.size() * i as u32;
                    let value = self.push(at, ty.into());
                    self.define(result, Lanes::Same(value), cx);
                }
                Ok(())
            }
            Op::GlobalAddr(id) => {
                let offset = self.launch.locals.offsets[id];
                let address = self.fixed(&LOCAL, offset.into());
                self.define(data.results[0], Lanes::Same(address), cx);
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
            Op::TexelFetch(_) | Op::TexelLoad(_) | Op::TexelStore(_) => self.texel(inst, cx),
            Op::Group(op, _) => self.collective(op, inst, cx),
            Op::Call(id) => self.call(id, inst, cx),
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
                let name = format_args!("llvm.readcyclecounter");
                let ticks = self.llvm.call(name, LlvmType::I64, &[]);
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
            Order::Acquire => llvm::Order::Acquire,
            Order::Release => llvm::Order::Release,
            Order::AcqRel => llvm::Order::AcqRel,
            Order::SeqCst => llvm::Order::SeqCst,
        };
        // The work-items of a group run in one thread.
        let alone = !matches!(mem, Scope::AllDevices | Scope::Device);
        self.llvm.fence(order, alone);
    }

    fn pure(&mut self, data: &InstData, cx: &Context) -> Result<()> {
        let result = data.results[0];
        let class = self.classes.of(result);
        // Of a uniform result all operands are, but for differences of affine ones.
        let mut first = None;
        if class != Class::Varying || self.reach(result, cx) != Reach::Scattered {
            let args = data.args.iter().map(|&arg| self.of_lane_0(arg, cx));
            let args = args.collect::<Result<Vec<_>>>()?;
            first = Some(self.compute(data, &args)?);
        }
        let lanes = match (class, first) {
            (Class::Uniform, Some(one)) => Lanes::Same(one),
            (Class::Affine(stride), Some(first)) => {
                let all = self.spread(&first, stride);
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

    fn pure_vector(&mut self, data: &InstData, cx: &Context) -> Result<Operand> {
        match data.op {
            // Addresses with one base, as gathers like them.
            Op::PtrAdd => {
                let offsets = self.vector(data.args[1], cx)?;
                let base = match self.is_uniform(data.args[0], cx) {
                    true => self.scalar(data.args[0], cx)?,
                    false => self.vector(data.args[0], cx)?,
                };
                Ok(self.llvm.offset(&base, &offsets))
            }
            Op::Select if self.is_uniform(data.args[0], cx) => {
                let cond = self.scalar(data.args[0], cx)?;
                let a = self.vector(data.args[1], cx)?;
                let b = self.vector(data.args[2], cx)?;
                Ok(self.llvm.select(&cond, &a, &b))
            }
            _ => {
                let args = data.args.iter().map(|&arg| self.vector(arg, cx));
                let args = args.collect::<Result<Vec<_>>>()?;
                self.compute(data, &args)
            }
        }
    }

    /// Writes the operation of an instruction on operands of one lane or of all.
    fn compute(&mut self, data: &InstData, args: &[Operand]) -> Result<Operand> {
        let unsupported = || LowerError::unsupported(format!("{:?} on the processor", data.op));
        let ty = self.func.ty(data.results[0]);
        let [a, rest @ ..] = args else {
            return Err(unsupported());
        };
        let b = rest.first().unwrap_or(a);
        let to = LlvmType::from(ty).like(a.ty());
        let (from, bits) = (a.ty().bits(), ty.bits());
        let number = |bits| Operand::constant(to, bits & ty.mask());
        let binary = match data.op {
            Op::IAdd => Some(Binary::Add),
            Op::ISub => Some(Binary::Sub),
            Op::IMul => Some(Binary::Mul),
            Op::And => Some(Binary::And),
            Op::Or => Some(Binary::Or),
            Op::Xor => Some(Binary::Xor),
            Op::FAdd => Some(Binary::FAdd),
            Op::FSub => Some(Binary::FSub),
            Op::FMul => Some(Binary::FMul),
            Op::FDiv => Some(Binary::FDiv),
            Op::FRem => Some(Binary::FRem),
            _ => None,
        };
        if let Some(op) = binary {
            return Ok(self.llvm.binary_with(op, data.fp, a, b));
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
            let args: Vec<&Operand> = args.iter().collect();
            return Ok(self.llvm.intrinsic(intrinsic, &args));
        }
        let cast = match data.op {
            Op::ZExt => Some(Cast::ZExt),
            Op::SExt => Some(Cast::SExt),
            Op::Trunc => Some(Cast::Trunc),
            Op::FConv(Rounding::Rte) if from > bits => Some(Cast::FpTrunc),
            Op::FConv(_) if from < bits => Some(Cast::FpExt),
            Op::SToF(Rounding::Rte) => Some(Cast::SiToFp),
            Op::UToF(Rounding::Rte) => Some(Cast::UiToFp),
            Op::PtrToInt => Some(Cast::PtrToInt),
            Op::IntToPtr => Some(Cast::IntToPtr),
            _ => None,
        };
        if let Some(cast) = cast {
            return Ok(self.llvm.cast(cast, a, to));
        }
        Ok(match data.op {
            Op::FMin | Op::FMax => self.float_extreme(data.op == Op::FMin, a, b),
            Op::Shl | Op::LShr | Op::AShr => {
                let op = match data.op {
                    Op::Shl => Binary::Shl,
                    Op::LShr => Binary::LShr,
                    _ => Binary::AShr,
                };
                let most = u64::from(bits - 1);
                let by = match self.func.as_const(data.args[1]) {
                    Some(by) => number(by & most),
                    None => self.llvm.and(b, &number(most)),
                };
                self.llvm.binary(op, a, &by)
            }
            Op::INeg => self.llvm.sub(&number(0), a),
            Op::Not => self.llvm.xor(a, &number(u64::MAX)),
            Op::SDiv | Op::UDiv | Op::SRem | Op::URem => self.divide(data, ty, a, b),
            Op::SMulHi | Op::UMulHi => {
                let extend = match data.op {
                    Op::SMulHi => Cast::SExt,
                    _ => Cast::ZExt,
                };
                let wide = LlvmType::int(bits * 2).like(to);
                let a = self.llvm.cast(extend, a, wide);
                let b = self.llvm.cast(extend, b, wide);
                let product = self.llvm.mul(&a, &b);
                let by = Operand::constant(wide, bits.into());
                let high = self.llvm.binary(Binary::LShr, &product, &by);
                self.llvm.cast(Cast::Trunc, &high, to)
            }
            Op::Clz => self.llvm.zeros("ctlz", a, false),
            Op::Ctz => self.llvm.zeros("cttz", a, false),
            Op::FNeg => self.llvm.fneg(data.fp, a),
            Op::FNative(NativeFn::Rsqrt) => {
                let root = self.llvm.intrinsic("sqrt", &[a]);
                self.llvm.binary(Binary::FDiv, &number(one(ty)), &root)
            }
            Op::ICmp(cond) => self.llvm.icmp(cond, a, b),
            Op::FCmp(cond) => self.llvm.fcmp(cond, data.fp, a, b),
            Op::Select => {
                let [_, yes, no] = args else {
                    return Err(unsupported());
                };
                let (mut yes, mut no) = (yes.clone(), no.clone());
                if a.ty().is_vector() {
                    yes = self.fenced(data.args[1], yes);
                    no = self.fenced(data.args[2], no);
                }
                self.llvm.select(a, &yes, &no)
            }
            Op::FConv(Rounding::Rte) | Op::SpaceCast => a.clone(),
            Op::FToS {
                rounding: Rounding::Rtz,
                sat: false,
            } => {
                let value = self.llvm.cast(Cast::FpToSi, a, to);
                self.llvm.freeze(&value)
            }
            Op::FToU {
                rounding: Rounding::Rtz,
                sat: false,
            } => {
                let value = self.llvm.cast(Cast::FpToUi, a, to);
                self.llvm.freeze(&value)
            }
            Op::Bitcast if a.ty() == to => a.clone(),
            Op::Bitcast => {
                let mut value = a.clone();
                if self.shape.quirks.has(CodeQuirk::HalvesOfMasks)
                    && a.ty() == LlvmType::I16
                    && to == LlvmType::HALF
                {
                    value = self.llvm.in_register(a);
                }
                self.llvm.cast(Cast::Bitcast, &value, to)
            }
            Op::PtrAdd => self.llvm.offset(a, b),
            Op::Join => {
                let wide = LlvmType::I64.like(to);
                let low = self.llvm.cast(Cast::ZExt, a, wide);
                let high = self.llvm.cast(Cast::ZExt, b, wide);
                let half = Operand::constant(wide, 32);
                let high = self.llvm.binary(Binary::Shl, &high, &half);
                let word = self.llvm.or(&low, &high);
                let cast = match to.is_float() {
                    true => Cast::Bitcast,
                    false => Cast::IntToPtr,
                };
                self.llvm.cast(cast, &word, to)
            }
            Op::Low | Op::High => {
                let wide = LlvmType::I64.like(to);
                let mut word = self.llvm.cast(Cast::Bitcast, a, wide);
                if data.op == Op::High {
                    let half = Operand::constant(wide, 32);
                    word = self.llvm.binary(Binary::LShr, &word, &half);
                }
                self.llvm.cast(Cast::Trunc, &word, to)
            }
            Op::SpecSize(_) => {
                return Err(LowerError::unsupported("sizes of local arguments"));
            }
            _ => return Err(unsupported()),
        })
    }

    /// Returns the smaller (`least`) or larger of two numbers; where one is a NaN, the other.
    pub(super) fn float_extreme(&mut self, least: bool, a: &Operand, b: &Operand) -> Operand {
        let (llvm, strict) = (&mut self.llvm, FpFlags::default());
        let cond = match least {
            true => FloatCond::Olt,
            false => FloatCond::Ogt,
        };
        let first = llvm.fcmp(cond, strict, a, b);
        let nan = llvm.fcmp(FloatCond::Uno, strict, b, b);
        let first = llvm.or(&first, &nan);
        llvm.select(&first, a, b)
    }

    /// Emits a division that never traps. Vectors of up to 32 bits are divided as floats.
    fn divide(&mut self, data: &InstData, ty: Type, a: &Operand, b: &Operand) -> Operand {
        let signed = matches!(data.op, Op::SDiv | Op::SRem);
        let remainder = matches!(data.op, Op::SRem | Op::URem);
        let op = match data.op {
            Op::SDiv => Binary::SDiv,
            Op::UDiv => Binary::UDiv,
            Op::SRem => Binary::SRem,
            _ => Binary::URem,
        };
        let (llvm, to, bits) = (&mut self.llvm, a.ty(), ty.bits());
        let by = self.func.as_const(data.args[1]);
        let is_total = by.is_some_and(|by| by != 0 && by != ty.mask());
        if to.is_vector() && bits <= 32 && !is_total {
            // The quotient of integers of n bits, rounded to more than 2n, cannot reach the next integer.
            let float = if bits == 32 { Type::F64 } else { Type::F32 };
            let float = LlvmType::from(float).like(to);
            let (there, back) = match signed {
                true => (Cast::SiToFp, Cast::FpToSi),
                false => (Cast::UiToFp, Cast::FpToUi),
            };
            let x = llvm.cast(there, a, float);
            let y = llvm.cast(there, b, float);
            let q = llvm.binary(Binary::FDiv, &x, &y);
            // Through 32 bits: what is out of range is unspecified, but must not be undefined.
            let q = llvm.cast(back, &q, LlvmType::I32.like(to));
            let mut q = llvm.freeze(&q);
            if bits < 32 {
                q = llvm.cast(Cast::Trunc, &q, to);
            }
            if !remainder {
                return q;
            }
            let product = llvm.mul(&q, b);
            return llvm.sub(a, &product);
        }
        llvm.divide(op, a, b)
    }
}

/// Returns the bits of 1.
fn one(ty: Type) -> u64 {
    match ty {
        Type::F16 => 0x3c00,
        Type::F32 => 0x3f80_0000,
        _ => 0x3ff0_0000_0000_0000,
    }
}
