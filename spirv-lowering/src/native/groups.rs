//! Work-groups of one work-item, side by side in the lanes of a pack.
//!
//! Programs that ask for a processor often take groups of one work-item; one of them fills one lane. Where nothing tells
//! groups in a pack from groups one after the other, a pack is a piece of a row of groups instead: local ids are zeros, sizes
//! ones, barriers nothing, and the group's number is what differs from lane to lane.

use crate::analysis::waits::may_wait;
use crate::ir::function::Function;
use crate::ir::module::Module;
use crate::ir::op::{HwVar, Op};
use crate::passes::clean;

/// The kernel does the same when groups of one work-item run in step: it has no memory of a group and asks nothing of the
/// others, nor does it wait for what another group does (with a lock, say), which may be in the same pack.
pub fn can_be_packed(module: &Module) -> bool {
    let kernel = module.kernels.first();
    let Some(func) = kernel.and_then(|kernel| module.functions.get(kernel.func)) else {
        return false;
    };
    let apart = |op: &Op| match op {
        Op::GlobalAddr(_) | Op::Group(..) => false,
        Op::Hw(var) => !matches!(
            var,
            HwVar::SubgroupSize
                | HwVar::SubgroupInvocationId
                | HwVar::SubgroupId
                | HwVar::NumSubgroups
        ),
        _ => true,
    };
    let mut blocks = func.layout.iter();
    func.entry()
        .is_some_and(|entry| func.blocks[entry].params.is_empty())
        && blocks.all(|&block| {
            let insts = &func.blocks[block].insts;
            insts.iter().all(|&inst| apart(&func.insts[inst].op))
        })
        && !may_wait(func)
}

/// Of such a kernel, with what is known of groups of one work-item.
pub fn of_one_item(func: &Function) -> Function {
    let mut func = func.clone();
    for &block in &func.layout {
        let insts = std::mem::take(&mut func.blocks[block].insts);
        func.blocks[block].insts = insts
            .into_iter()
            .filter(|&inst| {
                let op = &mut func.insts[inst].op;
                match op {
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
