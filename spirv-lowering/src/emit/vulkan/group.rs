//! Emits collective operations of a sub-group (`OpGroupNonUniform*`, only those that `lower_group`
//! leaves), clocks and packed dot products.

use super::body::Emitter;
use super::writer::Id;
use crate::error::{LowerError, Result};
use crate::ir::entity::Inst;
use crate::ir::op::{GroupArith, GroupOp, Op, Scope};
use crate::ir::types::Type;
use spirv::{Capability, GroupOperation, Op as S, PackedVectorFormat, Scope as VkScope};

fn arith(op: GroupArith) -> S {
    match op {
        GroupArith::IAdd => S::GroupNonUniformIAdd,
        GroupArith::FAdd => S::GroupNonUniformFAdd,
        GroupArith::IMul => S::GroupNonUniformIMul,
        GroupArith::FMul => S::GroupNonUniformFMul,
        GroupArith::SMin => S::GroupNonUniformSMin,
        GroupArith::UMin => S::GroupNonUniformUMin,
        GroupArith::FMin => S::GroupNonUniformFMin,
        GroupArith::SMax => S::GroupNonUniformSMax,
        GroupArith::UMax => S::GroupNonUniformUMax,
        GroupArith::FMax => S::GroupNonUniformFMax,
        GroupArith::And => S::GroupNonUniformBitwiseAnd,
        GroupArith::Or => S::GroupNonUniformBitwiseOr,
        GroupArith::Xor => S::GroupNonUniformBitwiseXor,
        GroupArith::LogicalAnd => S::GroupNonUniformLogicalAnd,
        GroupArith::LogicalOr => S::GroupNonUniformLogicalOr,
        GroupArith::LogicalXor => S::GroupNonUniformLogicalXor,
    }
}

impl Emitter<'_> {
    /// Emits a dot product of four bytes.
    pub(super) fn dot4(&mut self, inst: Inst) -> Result<()> {
        let data = &self.func.insts[inst];
        let spelling = match data.op {
            Op::SDot4 => S::SDot,
            Op::UDot4 => S::UDot,
            _ => S::SUDot,
        };
        let (Some(&result), &[a, b]) = (data.results.first(), data.args.as_slice()) else {
            return Err(self.unsupported(inst));
        };
        self.w.cap(Capability::DotProduct);
        self.w.cap(Capability::DotProductInput4x8BitPacked);
        self.w.extension("SPV_KHR_integer_dot_product");
        let (ty, id) = (self.w.ty(Type::I32), self.value(result));
        let format = PackedVectorFormat::PackedVectorFormat4x8Bit as u32;
        let operands = [self.value(a), self.value(b), format];
        self.op_to(spelling, ty, id, &operands);
        Ok(())
    }

    /// Emits a read of the clock at a scope.
    pub(super) fn clock(&mut self, inst: Inst, scope: Scope) -> Result<()> {
        let scope = match scope {
            Scope::SubGroup if self.target.clock_subgroup => VkScope::Subgroup,
            Scope::Device | Scope::AllDevices if self.target.clock_device => VkScope::Device,
            _ => return Err(self.unsupported(inst)),
        };
        let result = self.func.insts[inst].results.first().copied();
        let result = result.ok_or_else(|| self.unsupported(inst))?;
        self.w.cap(Capability::ShaderClockKHR);
        self.w.extension("SPV_KHR_shader_clock");
        let (ty, id) = (self.w.ty(Type::I64), self.value(result));
        let scope = self.w.u32(scope as u32);
        self.op_to(S::ReadClockKHR, ty, id, &[scope]);
        Ok(())
    }

    /// Emits an operation of a sub-group; others are lowered before.
    pub(super) fn group(&mut self, inst: Inst, op: GroupOp, scope: Scope) -> Result<()> {
        if scope != Scope::SubGroup {
            return Err(LowerError::unsupported(format!(
                "{op:?} at {scope:?} scope"
            )));
        }
        let data = &self.func.insts[inst];
        let result = data
            .results
            .first()
            .copied()
            .ok_or_else(|| self.unsupported(inst))?;
        let kind = self.func.ty(result);
        let ty = self.w.ty(kind);
        let args: Vec<Id> = data.args.iter().map(|&v| self.value(v)).collect();
        let at = |i: usize| {
            args.get(i)
                .copied()
                .ok_or_else(|| LowerError::internal("too few operands"))
        };
        let scope = self.w.u32(VkScope::Subgroup as u32);
        self.w.converge();
        self.w.cap(Capability::GroupNonUniform);
        let (cap, spelling, operands) = match op {
            GroupOp::Elect => (
                Capability::GroupNonUniform,
                S::GroupNonUniformElect,
                vec![scope],
            ),
            GroupOp::All => (
                Capability::GroupNonUniformVote,
                S::GroupNonUniformAll,
                vec![scope, at(0)?],
            ),
            GroupOp::Any => (
                Capability::GroupNonUniformVote,
                S::GroupNonUniformAny,
                vec![scope, at(0)?],
            ),
            GroupOp::Shuffle => (
                Capability::GroupNonUniformShuffle,
                S::GroupNonUniformShuffle,
                vec![scope, at(0)?, at(1)?],
            ),
            GroupOp::Reduce(a) | GroupOp::InclusiveScan(a) | GroupOp::ExclusiveScan(a) => {
                let how = match op {
                    GroupOp::Reduce(_) => GroupOperation::Reduce,
                    GroupOp::InclusiveScan(_) => GroupOperation::InclusiveScan,
                    _ => GroupOperation::ExclusiveScan,
                };
                (
                    Capability::GroupNonUniformArithmetic,
                    arith(a),
                    vec![scope, how as u32, at(0)?],
                )
            }
            GroupOp::ClusteredReduce(a) => (
                Capability::GroupNonUniformClustered,
                arith(a),
                vec![
                    scope,
                    GroupOperation::ClusteredReduce as u32,
                    at(0)?,
                    at(1)?,
                ],
            ),
            GroupOp::Ballot => {
                self.w.cap(Capability::GroupNonUniformBallot);
                let vec = self.w.vec(Type::I32, 4);
                let mask = self.op(S::GroupNonUniformBallot, vec, &[scope, at(0)?]);
                for (i, &part) in data.results.iter().enumerate().take(4) {
                    let id = self.value(part);
                    self.op_to(S::CompositeExtract, ty, id, &[mask, i as u32]);
                }
                return Ok(());
            }
            // `lower_group` makes these of others.
            GroupOp::AllEqual
            | GroupOp::Broadcast
            | GroupOp::ShuffleXor
            | GroupOp::ShuffleUp
            | GroupOp::ShuffleDown
            | GroupOp::Rotate => return Err(self.unsupported(inst)),
        };
        self.w.cap(cap);
        let id = self.value(result);
        self.op_to(spelling, ty, id, &operands);
        Ok(())
    }
}
