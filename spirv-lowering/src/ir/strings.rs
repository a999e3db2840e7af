//! Strings that a pointer is known to point to, for printf.

use super::entity::{GlobalId, PrimaryMap, Value};
use super::function::Function;
use super::module::Global;
use super::op::Op;
use super::types::Space;

/// The text that C libraries print for a string that is a null pointer.
pub const NULL: &[u8] = b"(null)";

/// The variables of a module.
pub type Globals = PrimaryMap<GlobalId, Global>;

/// Returns the variable and byte offset that a pointer is known to point to.
fn constant_address(func: &Function, pointer: Value) -> Option<(GlobalId, u64)> {
    let mut pointer = pointer;
    let mut offset = 0u64;
    for _ in 0..64 {
        let inst = &func.insts[func.def_inst(pointer)?];
        match inst.op {
            Op::GlobalAddr(global) => return Some((global, offset)),
            Op::SpaceCast => pointer = *inst.args.first()?,
            Op::PtrAdd => {
                offset = offset.wrapping_add(func.as_const(*inst.args.get(1)?)?);
                pointer = *inst.args.first()?;
            }
            _ => return None,
        }
    }
    None
}

/// Returns the string at a pointer into the initial data of a variable, without the terminating
/// zero.
pub fn constant_string(func: &Function, globals: &Globals, pointer: Value) -> Option<Vec<u8>> {
    let (global, offset) = constant_address(func, pointer)?;
    let global = globals.get(global)?;
    let Some(init) = &global.init else {
        return (offset < global.size).then(Vec::new);
    };
    let bytes = init.get(usize::try_from(offset).ok()?..)?;
    Some(bytes.iter().copied().take_while(|&b| b != 0).collect())
}

/// Returns the text that `%s` prints for a pointer, where it is known: a string, or [`NULL`] for a
/// null pointer.
pub fn shown_string(func: &Function, globals: &Globals, pointer: Value) -> Option<Vec<u8>> {
    let mut bare = pointer;
    while let Some(data) = func.def_inst(bare).map(|inst| &func.insts[inst]) {
        match (data.op, data.args.first()) {
            (Op::SpaceCast | Op::IntToPtr, Some(&inner)) => bare = inner,
            _ => break,
        }
    }
    match func.as_const(bare) {
        Some(0) => Some(NULL.to_vec()),
        _ => {
            let (global, _) = constant_address(func, pointer)?;
            let fixed = globals.get(global)?.space == Some(Space::Constant);
            fixed.then(|| constant_string(func, globals, pointer))?
        }
    }
}
