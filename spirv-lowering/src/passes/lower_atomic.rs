//! Atomics that the target does not have become loops around a compare-and-exchange of the integer of that width.
//!
//! Floating-point add where there is no instruction for it, floating-point minimum and maximum always. Runs before
//! `lower_local`; atomics on private memory are left alone (`lower_private` makes plain code of them).

use super::rewrite::{rewrite, Action, Rewriter};
use crate::error::{LowerError, Result};
use crate::ir::entity::Value;
use crate::ir::function::{Function, Target as Edge, Terminator};
use crate::ir::op::{FloatCond, IntCond, Op, Order, RmwOp};
use crate::ir::types::{Space, Type};
use crate::target::Target;

/// Emits `op` on plain values: what a read-modify-write stores.
pub fn combine(r: &mut Rewriter, op: RmwOp, old: Value, operand: Value) -> Value {
    let pick = |r: &mut Rewriter, cond: Value| r.select(cond, old, operand);
    match op {
        RmwOp::Xchg => operand,
        RmwOp::Add => r.same(Op::IAdd, [old, operand]),
        RmwOp::Sub => r.same(Op::ISub, [old, operand]),
        RmwOp::And => r.same(Op::And, [old, operand]),
        RmwOp::Or => r.same(Op::Or, [old, operand]),
        RmwOp::Xor => r.same(Op::Xor, [old, operand]),
        RmwOp::SMin => {
            let c = r.icmp(IntCond::Slt, old, operand);
            pick(r, c)
        }
        RmwOp::SMax => {
            let c = r.icmp(IntCond::Sgt, old, operand);
            pick(r, c)
        }
        RmwOp::UMin => {
            let c = r.icmp(IntCond::Ult, old, operand);
            pick(r, c)
        }
        RmwOp::UMax => {
            let c = r.icmp(IntCond::Ugt, old, operand);
            pick(r, c)
        }
        RmwOp::FAdd => r.same(Op::FAdd, [old, operand]),
        RmwOp::FMin | RmwOp::FMax => {
            let cond = if op == RmwOp::FMin {
                FloatCond::Olt
            } else {
                FloatCond::Ogt
            };
            let better = r.fcmp(cond, old, operand);
            let nan = r.fcmp(FloatCond::Uno, operand, operand);
            let c = r.op(Op::Or, [better, nan], Type::Bool);
            pick(r, c)
        }
    }
}

/// Runs the pass.
pub fn run(func: &mut Function, target: &Target) -> Result<()> {
    rewrite(func, |r, inst| {
        let data = r.data(inst);
        let Op::AtomicRmw { op, scope, order } = data.op else {
            return Ok(Action::Keep);
        };
        let (pointer, operand) = match *data.args.as_slice() {
            [pointer, operand] => (pointer, operand),
            _ => return Ok(Action::Keep),
        };
        let ty = r.func.ty(operand);
        let space = r.func.ty(pointer).space().unwrap_or(Space::Global);
        let native = match op {
            // Local arrays have elements of one type; those of floats only with an explicit layout.
            RmwOp::FAdd if space == Space::Local => {
                ty == Type::F32
                    && target.float32_atomic_add_local
                    && target.workgroup_explicit_layout
            }
            RmwOp::FAdd => ty == Type::F32 && target.float32_atomic_add_global,
            RmwOp::FMin | RmwOp::FMax => false,
            _ => true,
        };
        if native || space == Space::Private {
            return Ok(Action::Keep);
        }
        let int = ty
            .as_int()
            .ok_or_else(|| LowerError::internal("an atomic on a truth value"))?;
        let first = r.op(
            Op::AtomicLoad {
                scope,
                order: Order::Relaxed,
            },
            [pointer],
            int,
        );
        let body = r.new_block(&[int]);
        let done = r.new_block(&[]);
        r.jump(body, &[first], body);
        let expected = r.params(body)[0];
        let old = r.op(Op::Bitcast, [expected], ty);
        let new = combine(r, op, old, operand);
        let new = r.op(Op::Bitcast, [new], int);
        let seen = r.op(
            Op::AtomicCmpXchg { scope, order },
            [pointer, expected, new],
            int,
        );
        let same = r.icmp(IntCond::Eq, seen, expected);
        let again = Edge {
            block: body,
            args: [seen].into_iter().collect(),
        };
        r.end_block(Terminator::Branch(same, Edge::new(done), again), done);
        // The expected value is what was there.
        Ok(r.replace_result(inst, old))
    })
}
