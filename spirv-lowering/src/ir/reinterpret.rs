//! Reinterprets values of one type as another type of the same size.

use super::entity::{Inst, Value};
use super::function::Function;
use super::op::Op;
use super::types::Type;

/// Makes instructions that reinterpret a value as another type of its size, and pushes them to
/// `out`. Neither type may be Bool or Handle, unless they are the same.
pub fn reinterpret(func: &mut Function, out: &mut Vec<Inst>, value: Value, to: Type) -> Value {
    let from = func.ty(value);
    if from == to {
        return value;
    }
    let mut emit = |func: &mut Function, op, value, ty| {
        let inst = func.make_inst(op, [value], &[ty]);
        out.push(inst);
        func.insts[inst].results[0]
    };
    let mut value = value;
    if from.is_ptr() {
        value = emit(func, Op::PtrToInt, value, Type::I64);
    }
    if to.is_ptr() {
        if func.ty(value) != Type::I64 {
            value = emit(func, Op::Bitcast, value, Type::I64);
        }
        value = emit(func, Op::IntToPtr, value, to);
    } else if func.ty(value) != to {
        value = emit(func, Op::Bitcast, value, to);
    }
    value
}
