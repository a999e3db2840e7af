//! Replaces loads from program-scope variables that hold only zeros.
//!
//! LLVM's SPIR-V target fills memory by copies from such a variable, which would be loads from
//! memory for every work-item.

use super::expand_memcopy;
use crate::analysis::cfg::Cfg;
use crate::edit::rewrite::{rewrite, InstEdit};
use crate::error::Result;
use crate::ir::entity::{GlobalId, PrimaryMap, SecondaryMap, Value};
use crate::ir::function::Function;
use crate::ir::module::Global;
use crate::ir::op::Op;
use crate::ir::types::Type;

/// Returns the pointers into variables that are zero, if there are any.
fn pointers(func: &Function, zero: impl Fn(GlobalId) -> bool) -> Option<SecondaryMap<Value, bool>> {
    let mut found = SecondaryMap::new();
    let mut any = false;
    for &block in Cfg::new(func).rpo() {
        for &inst in &func.blocks[block].insts {
            let data = &func.insts[inst];
            let into = match data.op {
                Op::GlobalAddr(id) => zero(id),
                Op::PtrAdd | Op::SpaceCast => data.args.first().is_some_and(|&base| found[base]),
                _ => false,
            };
            for &result in data.results.iter().filter(|_| into) {
                found[result] = true;
                any = true;
            }
        }
    }
    any.then_some(found)
}

/// Returns the results of loads that the pass takes for zero.
pub fn zeros(func: &Function, globals: &PrimaryMap<GlobalId, Global>) -> Vec<Value> {
    let zero = |id| globals.get(id).is_some_and(Global::is_zero);
    let from_zero = pointers(func, zero).unwrap_or_default();
    let loads = func.layout_insts().filter(|&&inst| {
        let data = &func.insts[inst];
        let load = matches!(
            data.op,
            Op::Load {
                volatile: false,
                ..
            }
        );
        load && data.args.first().is_some_and(|&from| from_zero[from])
    });
    loads
        .flat_map(|&inst| func.insts[inst].results.clone())
        .collect()
}

/// Runs the pass. `globals`: the module's variables. Returns true if anything changed.
pub fn run(func: &mut Function, globals: &PrimaryMap<GlobalId, Global>) -> Result<bool> {
    // Of a large module most kernels reach few variables: only those are looked at.
    let zero = |id| globals.get(id).is_some_and(Global::is_zero);
    let Some(from_zero) = pointers(func, zero) else {
        return Ok(false);
    };
    let mut changed = false;
    rewrite(func, |r, inst| {
        let data = r.data(inst);
        match (data.op, data.args.as_slice()) {
            (Op::MemCopy { size, align }, &[to, from]) if from_zero[from] => {
                expand_memcopy::copy(r, to, None, size, align);
            }
            (
                Op::Load {
                    volatile: false, ..
                },
                &[from],
            ) if from_zero[from] => {
                let is_number = |&v: &Value| !matches!(r.func.ty(v), Type::Ptr(_) | Type::Handle);
                if !data.results.iter().all(is_number) {
                    return Ok(InstEdit::Keep);
                }
                for &result in &data.results {
                    let zero = r.konst(r.func.ty(result), 0);
                    r.replace(result, zero);
                }
            }
            _ => return Ok(InstEdit::Keep),
        }
        changed = true;
        Ok(InstEdit::Remove)
    })?;
    Ok(changed)
}
