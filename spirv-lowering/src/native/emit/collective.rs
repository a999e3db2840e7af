//! Operations of sub-groups: a pack is one, its lanes are in registers.

use super::slots::Lanes;
use super::{Context, Emitter};
use crate::error::{LowerError, Result};
use crate::ir::entity::Inst;
use crate::ir::function::FpFlags;
use crate::ir::op::{FloatCond, GroupArith as G, GroupOp, IntCond};
use crate::ir::types::Type;
use crate::native::llvm::{Binary, Cast, LlvmType, Operand};

impl Emitter<'_> {
    /// Writes one.
    pub(super) fn collective(&mut self, op: GroupOp, inst: Inst, cx: &Context) -> Result<()> {
        let func = self.func;
        let data = &func.insts[inst];
        let (args, results) = (&data.args, &data.results);
        let active = self.mask_vector(&cx.mask);
        let lanes = match op {
            GroupOp::Any => {
                let value = self.vector(args[0], cx)?;
                let on = self.llvm.and(&value, &active);
                Lanes::Same(self.any(&on))
            }
            GroupOp::All => {
                let value = self.vector(args[0], cx)?;
                let ones = self.splat_const(LlvmType::BIT, 1);
                let off = self.llvm.xor(&value, &ones);
                let off = self.llvm.and(&off, &active);
                Lanes::Same(self.none(&off))
            }
            GroupOp::AllEqual => {
                let value = self.vector(args[0], cx)?;
                let lane = self.first_lane(&cx.mask);
                let first = self.llvm.extract(&value, &lane);
                let all = self.splat(&first);
                let differs = if value.ty().is_float() {
                    let strict = FpFlags::default();
                    self.llvm.fcmp(FloatCond::Une, strict, &value, &all)
                } else {
                    self.llvm.icmp(IntCond::Ne, &value, &all)
                };
                let differs = self.llvm.and(&differs, &active);
                Lanes::Same(self.none(&differs))
            }
            GroupOp::Elect => {
                let lane = self.first_lane(&cx.mask);
                let none = self.splat_const(LlvmType::BIT, 0);
                Lanes::each(self.llvm.insert(&none, &Operand::bit(true), &lane))
            }
            GroupOp::Ballot => {
                let value = self.vector(args[0], cx)?;
                let on = self.llvm.and(&value, &active);
                let bits = self.mask_bits(&Some(on));
                for (i, &result) in results.iter().enumerate() {
                    let word = match (i, self.shape.lanes) {
                        (0 | 1, 64) => {
                            let by = Operand::i64(32 * i as u64);
                            let part = self.llvm.binary(Binary::LShr, &bits, &by);
                            self.llvm.cast(Cast::Trunc, &part, LlvmType::I32)
                        }
                        (0, _) => self.llvm.widened(&bits, LlvmType::I32),
                        _ => Operand::i32(0),
                    };
                    self.define(result, Lanes::Same(word), cx);
                }
                return Ok(());
            }
            GroupOp::Shuffle | GroupOp::Broadcast => {
                let value = self.vector(args[0], cx)?;
                let lane = self.vector(args[1], cx)?;
                Lanes::each(self.shuffle(&value, lane))
            }
            GroupOp::Reduce(arith) => {
                let value = self.vector(args[0], cx)?;
                Lanes::Same(self.reduce_lanes(arith, func.ty(args[0]), &value, cx))
            }
            GroupOp::ClusteredReduce(arith) => {
                let size = args
                    .get(1)
                    .and_then(|&v| func.as_const(v))
                    .filter(|size| size.is_power_of_two())
                    .ok_or_else(|| LowerError::unsupported("clusters of unknown size"))?;
                let value = self.vector(args[0], cx)?;
                let mut value = self.or_identity(arith, func.ty(args[0]), &value, cx);
                let poison = Operand::poison(value.ty());
                let mut by = 1;
                while by < self.shape.lanes.min(size as u32) {
                    let order = (0..self.shape.lanes).map(|lane| lane ^ by);
                    let other = self.llvm.shuffle(&value, &poison, order);
                    value = self.combine(arith, &value, &other);
                    by *= 2;
                }
                Lanes::each(value)
            }
            GroupOp::InclusiveScan(arith) | GroupOp::ExclusiveScan(arith) => {
                let ty = func.ty(args[0]);
                let value = self.vector(args[0], cx)?;
                let value = self.or_identity(arith, ty, &value, cx);
                let exclusive = matches!(op, GroupOp::ExclusiveScan(_));
                Lanes::each(self.scan(arith, ty, value, exclusive))
            }
            _ => return Err(LowerError::unsupported(format!("{op:?} on the processor"))),
        };
        self.define(results[0], lanes, cx);
        Ok(())
    }

    /// Returns the values of other lanes, by number.
    fn shuffle(&mut self, value: &Operand, lanes: Operand) -> Operand {
        let ty = value.ty();
        let place = self.llvm.slot(ty);
        // Truth values are bits in memory: by bytes.
        if ty.element() == LlvmType::BIT {
            let bytes = self.vec(Type::I8);
            let wide = self.llvm.cast(Cast::ZExt, value, bytes);
            let moved = self.shuffle(&wide, lanes);
            return self.llvm.cast(Cast::Trunc, &moved, ty);
        }
        self.llvm.put(value, &place);
        let most = Operand::constant(lanes.ty(), u64::from(self.shape.lanes - 1));
        let lanes = self.llvm.and(&lanes, &most);
        let at = self.llvm.widened(&lanes, self.vec(Type::I64));
        let mut result = Operand::poison(ty);
        for lane in 0..self.shape.lanes {
            let lane = Operand::i64(lane.into());
            let from = self.llvm.extract(&at, &lane);
            let one = self.llvm.get_element(&place, &from);
            result = self.llvm.insert(&result, &one, &lane);
        }
        result
    }

    /// Returns the value in active lanes, and the identity of the operation in others.
    fn or_identity(&mut self, arith: G, ty: Type, value: &Operand, cx: &Context) -> Operand {
        let Some(mask) = &cx.mask else {
            return value.clone();
        };
        let start = self.splat_const(ty, identity(arith, ty));
        self.llvm.select(mask, value, &start)
    }

    /// Returns the operation of a reduction on two values.
    pub(super) fn combine(&mut self, arith: G, a: &Operand, b: &Operand) -> Operand {
        let plain = match arith {
            G::IAdd => Binary::Add,
            G::IMul => Binary::Mul,
            G::FAdd => Binary::FAdd,
            G::FMul => Binary::FMul,
            G::And | G::LogicalAnd => Binary::And,
            G::Or | G::LogicalOr => Binary::Or,
            G::Xor | G::LogicalXor => Binary::Xor,
            G::SMin => return self.llvm.intrinsic("smin", &[a, b]),
            G::SMax => return self.llvm.intrinsic("smax", &[a, b]),
            G::UMin => return self.llvm.intrinsic("umin", &[a, b]),
            G::UMax => return self.llvm.intrinsic("umax", &[a, b]),
            G::FMin | G::FMax => return self.float_extreme(arith == G::FMin, a, b),
        };
        self.llvm.binary(plain, a, b)
    }

    /// Combines the values of the lanes that run.
    pub(super) fn reduce_lanes(
        &mut self,
        arith: G,
        ty: Type,
        value: &Operand,
        cx: &Context,
    ) -> Operand {
        let value = self.or_identity(arith, ty, value, cx);
        self.reduce(arith, value)
    }

    /// Combines, for each lane, the values of the active lanes before it.
    pub(super) fn scan_lanes(
        &mut self,
        arith: G,
        ty: Type,
        value: &Operand,
        cx: &Context,
    ) -> Operand {
        let value = self.or_identity(arith, ty, value, cx);
        self.scan(arith, ty, value, true)
    }

    fn scan(&mut self, arith: G, ty: Type, mut value: Operand, exclusive: bool) -> Operand {
        let lanes = self.shape.lanes;
        let start = self.splat_const(ty, identity(arith, ty));
        let moved = |this: &mut Self, value: &Operand, by: u32| {
            let from = |lane| if lane >= by { lane - by } else { lanes + lane };
            this.llvm.shuffle(value, &start, (0..lanes).map(from))
        };
        if exclusive {
            value = moved(self, &value, 1);
        }
        let mut by = 1;
        while by < lanes {
            let before = moved(self, &value, by);
            value = self.combine(arith, &before, &value);
            by *= 2;
        }
        value
    }

    fn reduce(&mut self, arith: G, value: Operand) -> Operand {
        let name = match arith {
            G::IAdd => "add",
            G::IMul => "mul",
            G::And | G::LogicalAnd => "and",
            G::Or | G::LogicalOr => "or",
            G::Xor | G::LogicalXor => "xor",
            G::SMin => "smin",
            G::SMax => "smax",
            G::UMin => "umin",
            G::UMax => "umax",
            G::FMin | G::FMax | G::FAdd | G::FMul => return self.reduce_by_halves(arith, value),
        };
        let ty = value.ty();
        let name = format_args!("llvm.vector.reduce.{name}.{}", ty.suffix());
        self.llvm.call(name, ty.element(), &[&value])
    }

    fn reduce_by_halves(&mut self, arith: G, mut value: Operand) -> Operand {
        let lanes = self.shape.lanes;
        let poison = Operand::poison(value.ty());
        let mut width = lanes;
        while width > 1 {
            let half = width / 2;
            let from = |lane| if lane < half { lane + half } else { lane };
            let other = self.llvm.shuffle(&value, &poison, (0..lanes).map(from));
            value = self.combine(arith, &value, &other);
            width = half;
        }
        self.llvm.extract(&value, &Operand::i64(0))
    }
}

/// Returns the identity element of a reduction.
fn identity(arith: G, ty: Type) -> u64 {
    let sign = 1u64 << (ty.bits() - 1);
    let infinity = match ty {
        Type::F16 => 0x7c00,
        Type::F32 => 0x7f80_0000,
        _ => 0x7ff0_0000_0000_0000,
    };
    let one = match ty {
        Type::F16 => 0x3c00,
        Type::F32 => 0x3f80_0000,
        _ => 0x3ff0_0000_0000_0000,
    };
    match arith {
        G::IAdd | G::Or | G::Xor | G::LogicalOr | G::LogicalXor | G::UMax => 0,
        // -0 + x is x, whatever the sign of x.
        G::FAdd => sign,
        G::IMul | G::LogicalAnd => 1,
        G::FMul => one,
        G::And | G::UMin => ty.mask(),
        G::SMin => sign - 1,
        G::SMax => sign,
        G::FMin => infinity,
        G::FMax => infinity | sign,
    }
}
