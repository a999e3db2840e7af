//! Keeps values of a work-item in variables of one element.

use crate::ir::entity::{Block, Value, Var};
use crate::ir::function::{Function, Storage, VarData, VarLen};
use crate::ir::op::{IntCond, Op};
use crate::ir::types::Type;

/// Adds a variable of one element.
pub fn add(func: &mut Function, elem: Type) -> Var {
    func.vars.push(VarData {
        storage: Storage::Function,
        elem,
        lanes: 1,
        volatile: false,
        len: VarLen {
            fixed: 1,
            spec: Vec::new(),
        },
        alias: None,
    })
}

/// Converts a value to the type of the variable that keeps it: a truth value to any integer, a pointer to I64, others to
/// themselves. Appends to the block.
pub fn to_memory(func: &mut Function, block: Block, value: Value, elem: Type) -> Value {
    match func.ty(value) {
        Type::Bool => func.append1(block, Op::ZExt, [value], elem),
        Type::Ptr(_) => func.append1(block, Op::PtrToInt, [value], elem),
        _ => value,
    }
}

/// Converts what [`to_memory`] returned back to the value's type. Appends to the block.
pub fn from_memory(func: &mut Function, block: Block, stored: Value, ty: Type) -> Value {
    match ty {
        Type::Bool => {
            let zero = func.append_const(block, func.ty(stored), 0);
            func.append1(block, Op::ICmp(IntCond::Ne), [stored, zero], ty)
        }
        Type::Ptr(_) => func.append1(block, Op::IntToPtr, [stored], ty),
        _ => stored,
    }
}
