//! Lays out program-scope variables in one buffer, and computes their addresses.
//!
//! All variables in `global` and `constant` memory lie in one buffer of the program and device,
//! constants and variables in order of their ids, each at its alignment. The first 16 bytes stay
//! unused, so that no variable has the offset zero. `local` variables are left to `lower_local`.

use crate::edit::rewrite::{rewrite, InstEdit};
use crate::error::{LowerError, Result};
use crate::interface::{Implicit, ProgramGlobals, Relocation};
use crate::ir::entity::GlobalId;
use crate::ir::function::{Function, Linkage};
use crate::ir::module::{Global, Module};
use crate::ir::op::Op;
use crate::ir::types::{Space, Type};
use rustc_hash::FxHashMap;

/// The largest buffer in bytes, so that offsets stay well within 32 bits.
const MAX_SIZE: u64 = 1 << 31;

/// The offsets of the variables.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Layout {
    offsets: FxHashMap<GlobalId, u64>,
    size: u64,
}

impl Layout {
    /// Returns the offset of a variable.
    pub fn offset(&self, global: GlobalId) -> Option<u64> {
        self.offsets.get(&global).copied()
    }
}

fn in_buffer(global: &Global) -> bool {
    matches!(global.space, Some(Space::Global | Space::Constant))
        && global.linkage != Linkage::Import
}

/// Lays out the variables of a module.
pub fn layout(module: &Module) -> Result<Layout> {
    let mut layout = Layout {
        offsets: FxHashMap::default(),
        size: 16,
    };
    for (id, global) in module.globals.iter().filter(|(_, g)| in_buffer(g)) {
        let align = u64::from(global.placement()).next_power_of_two();
        let offset = layout.size.next_multiple_of(align);
        layout.size = offset
            .checked_add(global.size.max(1))
            .filter(|&end| end <= MAX_SIZE)
            .ok_or_else(|| LowerError::unsupported("more than 2 GiB of program-scope variables"))?;
        layout.offsets.insert(id, offset);
    }
    if layout.offsets.is_empty() {
        layout.size = 0;
    }
    Ok(layout)
}

/// Returns the initial contents of the buffer.
pub fn contents(module: &Module) -> Result<ProgramGlobals> {
    let layout = layout(module)?;
    let mut globals = ProgramGlobals {
        data: vec![0; layout.size as usize],
        ..Default::default()
    };
    for (id, global) in module.globals.iter() {
        let Some(offset) = layout.offset(id) else {
            continue;
        };
        if global.space == Some(Space::Global) {
            globals.writable_size += global.size;
        }
        let damaged = || LowerError::invalid(format!("initialiser of variable `{}`", global.name));
        if let Some(init) = &global.init {
            let start = offset as usize;
            let len = init.len().min(global.size as usize);
            let target = globals
                .data
                .get_mut(start..start + len)
                .ok_or_else(damaged)?;
            target.copy_from_slice(init.get(..len).ok_or_else(damaged)?);
        }
        for reloc in &global.relocs {
            if reloc
                .offset
                .checked_add(8)
                .is_none_or(|end| end > global.size)
            {
                return Err(damaged());
            }
            let target = layout.offset(reloc.target).ok_or_else(|| {
                LowerError::unsupported(format!(
                    "variable `{}` holds a pointer to local memory",
                    global.name
                ))
            })?;
            let target = target.wrapping_add(reloc.addend);
            if target > layout.size {
                return Err(damaged());
            }
            globals.relocations.push(Relocation {
                offset: offset + reloc.offset,
                target,
            });
        }
    }
    Ok(globals)
}

/// Runs the pass.
pub fn run(func: &mut Function, module: &Module, layout: &Layout) -> Result<()> {
    rewrite(func, |r, inst| {
        let Op::GlobalAddr(id) = r.func.insts[inst].op else {
            return Ok(InstEdit::Keep);
        };
        let global = module
            .globals
            .get(id)
            .ok_or_else(|| LowerError::internal(format!("unknown variable {id}")))?;
        if global.space == Some(Space::Local) {
            return Ok(InstEdit::Keep);
        }
        let Some(offset) = layout.offset(id) else {
            return Err(LowerError::Undefined {
                function: None,
                name: global.name.clone(),
            });
        };
        let ty = r.func.insts[inst]
            .results
            .first()
            .map_or(Type::Ptr(Space::Constant), |&v| r.func.ty(v));
        let base = r.op(Op::Implicit(Implicit::ProgramGlobals, 0), [], Type::I64);
        let base = r.op(Op::IntToPtr, [base], ty);
        let address = r.offset(base, offset);
        Ok(r.replace_result(inst, address))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::module::GlobalReloc;

    #[test]
    fn pointers_between_variables() {
        let mut module = Module::default();
        let table = module.globals.push(Global {
            space: Some(Space::Constant),
            size: 3,
            align: 1,
            init: Some(vec![1, 2, 3]),
            ..Default::default()
        });
        module.globals.push(Global {
            space: Some(Space::Local),
            size: 64,
            align: 16,
            ..Default::default()
        });
        module.globals.push(Global {
            space: Some(Space::Global),
            size: 8,
            align: 8,
            init: Some(vec![0; 8]),
            relocs: vec![GlobalReloc {
                offset: 0,
                target: table,
                addend: 2,
            }],
            ..Default::default()
        });
        let globals = contents(&module).unwrap();
        assert_eq!(globals.data.len(), 32);
        assert_eq!(&globals.data[16..19], &[1, 2, 3]);
        assert_eq!(
            globals.relocations,
            [Relocation {
                offset: 24,
                target: 18
            }]
        );
        assert_eq!(globals.writable_size, 8);
    }
}
