//! Read-modify-write operations.

use super::eval::eval;
use super::scalar::Scalar;
use crate::ir::function::FpFlags;
use crate::ir::op::{Op, RmwOp};
use crate::ir::types::Type;

/// Returns the value that a read-modify-write operation stores.
pub(super) fn modify(op: RmwOp, ty: Type, old: Scalar, operand: Scalar, noise: u64) -> Scalar {
    let pure = match op {
        RmwOp::Xchg => return operand,
        RmwOp::Add => Op::IAdd,
        RmwOp::Sub => Op::ISub,
        RmwOp::And => Op::And,
        RmwOp::Or => Op::Or,
        RmwOp::Xor => Op::Xor,
        RmwOp::SMin => Op::SMin,
        RmwOp::SMax => Op::SMax,
        RmwOp::UMin => Op::UMin,
        RmwOp::UMax => Op::UMax,
        RmwOp::FAdd => Op::FAdd,
        RmwOp::FMin => Op::FMin,
        RmwOp::FMax => Op::FMax,
    };
    let fp = FpFlags::default();
    eval(pure, fp, &[ty, ty], &[old, operand], ty, noise)
}
