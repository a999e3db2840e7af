//! Lowers private memory that was not promoted to values to arrays in Function storage (see
//! `byte_arrays`).

use super::byte_arrays::{self, ByteArrayPlan, Name, Size, Variable};
use crate::error::Result;
use crate::ir::function::{Function, Storage};
use crate::ir::op::Op;
use crate::ir::types::{Space, Type};

/// Runs the pass. Returns the bytes of private memory.
pub fn run(func: &mut Function) -> Result<u32> {
    let mut variables = Vec::new();
    let mut any = false;
    for &block in &func.layout {
        any |= func.blocks[block]
            .params
            .iter()
            .any(|&v| func.ty(v) == Type::Ptr(Space::Private));
        for &inst in &func.blocks[block].insts {
            let data = &func.insts[inst];
            any |= data
                .results
                .iter()
                .any(|&v| func.ty(v) == Type::Ptr(Space::Private));
            if let (Op::Alloca { size, align }, Some(&v)) = (data.op, data.results.first()) {
                variables.push(Variable {
                    name: Name::Value(v),
                    size: Size::Fixed(size),
                    align,
                });
            }
        }
    }
    if !any {
        return Ok(0);
    }
    byte_arrays::run(
        func,
        ByteArrayPlan {
            space: Space::Private,
            storage: Storage::Function,
            variables,
            explicit_layout: false,
        },
    )
}
