//! Work-groups of one work-item, side by side in the lanes of a pack.
//!
//! Programs that ask for a processor often take groups of one work-item; one of them fills one lane. Where nothing tells
//! groups in a pack from groups one after the other, a pack is a piece of a row of groups instead: local ids are zeros, sizes
//! ones, barriers nothing, local variables are the work-item's own, and the group's number is what differs from lane to lane.

use crate::analysis::waits::{looking, may_wait};
use crate::ir::entity::{Entity, FuncId, Value};
use crate::ir::function::{Function, Storage};
use crate::ir::module::Module;
use crate::ir::op::{HwVar, Op, Scope};
use crate::ir::types::{Space, Type};
use crate::passes::{byte_arrays, clean, lower_local, zero_memory};

/// Returns the function of a kernel whose result is the same when groups of one work-item run in step, its local variables in private
/// memory. Returns `None` if it has local arguments, shows others the addresses of its local memory or asks something of them, or waits
/// for what another group does (with a lock, say), which may be in the same pack.
pub fn independent_groups(module: &Module) -> Option<Function> {
    let kernel = module.kernels.first()?;
    let func = module.functions.get(kernel.func)?;
    let entry = func.entry()?;
    if !func.blocks[entry].params.is_empty() || !is_independent(func) {
        return None;
    }
    if !others(module, kernel.func).all(|(_, other)| is_independent(other)) {
        return None;
    }
    let mut func = func.clone();
    let locals = lower_local::variables(&func, &module.globals);
    if !locals.is_empty() {
        let plan = byte_arrays::ByteArrayPlan {
            space: Space::Local,
            storage: Storage::Function,
            variables: locals,
            explicit_layout: false,
        };
        let others = func.vars.len();
        byte_arrays::run(&mut func, plan).ok()?;
        if kernel.attributes.zero_local {
            zero_memory::run(&mut func, |var, _| var.index() >= others);
        }
    }
    let looking = looking(others(module, kernel.func));
    (!may_wait(&func, &looking)).then_some(func)
}

/// Returns the functions that the kernel calls.
fn others(module: &Module, kernel: FuncId) -> impl Iterator<Item = (FuncId, &Function)> {
    let functions = module.functions.iter();
    functions.filter(move |&(id, _)| id != kernel)
}

/// Returns a kernel in which ids and sizes are those of groups of one work-item.
pub fn of_one_item(mut func: Function) -> Function {
    for &block in &func.layout {
        let insts = std::mem::take(&mut func.blocks[block].insts);
        func.blocks[block].insts = insts
            .into_iter()
            .filter(|&inst| {
                let op = &mut func.insts[inst].op;
                match *op {
                    Op::Barrier {
                        mem: mem @ (Scope::Device | Scope::AllDevices),
                        order,
                        fences,
                        ..
                    } => *op = Op::Fence { mem, order, fences },
                    Op::Barrier { .. } => return false,
                    Op::Hw(HwVar::LocalInvocationId(_) | HwVar::LocalInvocationIndex) => {
                        *op = Op::Const(0);
                    }
                    Op::Hw(HwVar::WorkgroupSize(_)) => *op = Op::Const(1),
                    _ => {}
                }
                true
            })
            .collect();
    }
    clean(&mut func);
    func
}

/// Returns true if work-items do not communicate: local memory could as well be private.
fn is_independent(func: &Function) -> bool {
    let is_local = |value: &Value| func.ty(*value) == Type::Ptr(Space::Local);
    let mut insts = func.layout_insts();
    insts.all(|&inst| {
        let data = &func.insts[inst];
        match data.op {
            Op::Group(..) => false,
            Op::Hw(var) => !matches!(
                var,
                HwVar::SubgroupSize
                    | HwVar::SubgroupInvocationId
                    | HwVar::SubgroupId
                    | HwVar::NumSubgroups
            ),
            Op::GlobalAddr(_) => data.results.iter().all(is_local),
            Op::PtrAdd | Op::Select | Op::Load { .. } | Op::Undef => true,
            Op::Store { .. } => !data.args.iter().skip(1).any(is_local),
            _ => !data.args.iter().chain(&data.results).any(is_local),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::parse::parse_module;

    /// Returns a kernel with a local variable whose address is used as in `uses`.
    fn kernel(uses: &str) -> Option<Function> {
        let text = format!(
            "global @0 \"row\" local size 64 align 4\nkernel \"f\" fn0 {{\n}}\nfunc fn0 \"f\" export () -> () {{\n\
             block0:\n  v0 = global_addr @0 : ptr.local\n  v1 = const 1 : i32\n  v2 = const 8 : i64\n{uses}  return\n}}\n"
        );
        independent_groups(&parse_module(&text).unwrap_or_else(|error| panic!("{error}\n{text}")))
    }

    #[test]
    fn local_memory_becomes_the_work_items_own() {
        let func = kernel(
            "  v3 = ptr_add v0, v2 : ptr.local\n  store.align4 v3, v1\n  v4 = load.align4 v0 : i32\n  store.align4 v0, v4\n",
        );
        let func = func.expect("nobody else is asked");
        let mut insts = func.layout_insts();
        assert!(insts.all(|&inst| !matches!(func.insts[inst].op, Op::GlobalAddr(_))));
        assert_eq!(func.vars.len(), 1);
    }

    #[test]
    fn addresses_that_are_shown_stay() {
        for uses in [
            "  v3 = ptr_to_int v0 : i64\n",
            "  v3 = space_cast v0 : ptr.generic\n",
            "  store.align8 v0, v0\n",
            "  v3 = atomic_rmw.add.device.relaxed v0, v1 : i32\n",
        ] {
            assert!(kernel(uses).is_none(), "{uses}");
        }
    }
}
