//! Lowers local memory to arrays in Workgroup storage (see `byte_arrays`).
//!
//! Local memory is local variables (`GlobalAddr`) and local pointer parameters. The parameters are
//! removed, and their sizes come from specialisation constants.

use super::byte_arrays::{self, ByteArrayPlan, Name, Size, Variable};
use crate::error::Result;
use crate::ir::entity::{GlobalId, PrimaryMap, Value};
use crate::ir::function::{Function, Storage};
use crate::ir::module::Global;
use crate::ir::op::Op;
use crate::ir::types::{Space, Type};
use crate::target::Target;
use rustc_hash::FxHashSet;

/// The properties of a kernel's local memory that the runtime needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LocalInfo {
    /// Bytes of local memory, local arguments not included.
    pub static_bytes: u32,
}

/// Runs the pass. `spec_ids` holds for each local pointer parameter of the function, in order, the
/// specialisation constant with its size.
pub fn run(
    func: &mut Function,
    globals: &PrimaryMap<GlobalId, Global>,
    spec_ids: &[u32],
    target: &Target,
) -> Result<LocalInfo> {
    let mut variables = variables(func, globals);
    let local = |value: &Value| func.ty(*value) == Type::Ptr(Space::Local);
    let mut any = (func.layout_insts()).any(|&inst| func.insts[inst].results.iter().any(local));
    let mut ids = spec_ids.iter();
    if let Some(entry) = func.entry() {
        for &param in &func.blocks[entry].params {
            if func.ty(param) == Type::Ptr(Space::Local) {
                any = true;
                if let Some(&id) = ids.next() {
                    variables.push(Variable {
                        name: Name::Value(param),
                        size: Size::Spec(id),
                        align: 16,
                    });
                }
            }
        }
    }
    if !any {
        return Ok(LocalInfo::default());
    }
    let plan = ByteArrayPlan {
        space: Space::Local,
        storage: Storage::Workgroup,
        variables,
        explicit_layout: target.workgroup_explicit_layout,
    };
    let static_bytes = byte_arrays::run(func, plan)?;
    Ok(LocalInfo { static_bytes })
}

/// Returns the local variables that a function refers to.
pub fn variables(func: &Function, globals: &PrimaryMap<GlobalId, Global>) -> Vec<Variable> {
    let mut variables = Vec::new();
    let mut seen: FxHashSet<GlobalId> = FxHashSet::default();
    for &block in &func.layout {
        for &inst in &func.blocks[block].insts {
            let Op::GlobalAddr(id) = func.insts[inst].op else {
                continue;
            };
            let Some(global) = globals.get(id) else {
                continue;
            };
            if global.space == Some(Space::Local) && seen.insert(id) {
                let size = u32::try_from(global.size).unwrap_or(u32::MAX / 2);
                variables.push(Variable {
                    name: Name::Global(id),
                    size: Size::Fixed(size),
                    align: global.align,
                });
            }
        }
    }
    variables
}
