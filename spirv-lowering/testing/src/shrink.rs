//! Reduces a kernel that shows a fault, as long as it still shows it.

use super::generate::Case;
use spirv_lowering::ir::entity::Entity;
use spirv_lowering::ir::function::{Function, Terminator};
use spirv_lowering::ir::op::Op;
use spirv_lowering::ir::types::Type;
use spirv_lowering::ir::verify::verify_module;
use spirv_lowering::passes;

/// The most attempts.
const MOST_TRIES: usize = 6000;

struct Shrink<'f> {
    best: Case,
    fails: &'f dyn Fn(&Case) -> bool,
    tries: usize,
}

impl Shrink<'_> {
    /// Applies a change, and keeps it if the case still fails. Returns true if it was kept.
    fn take(&mut self, change: impl FnOnce(&mut Case)) -> bool {
        if self.tries >= MOST_TRIES {
            return false;
        }
        self.tries += 1;
        let mut smaller = self.best.clone();
        change(&mut smaller);
        if verify_module(&smaller.module).is_err() || !(self.fails)(&smaller) {
            return false;
        }
        self.best = smaller;
        true
    }

    fn functions(&self) -> impl Iterator<Item = spirv_lowering::ir::entity::FuncId> + use<> {
        (0..self.best.module.functions.len()).map(Entity::new)
    }

    /// Tries all reductions once. Returns true if the case became smaller.
    fn round(&mut self) -> bool {
        let mut any = false;
        for id in self.functions() {
            // Branches become jumps.
            for block in self.best.module.functions[id].layout.clone() {
                let count = match &self.best.module.functions[id].blocks[block].term {
                    Terminator::Jump(_) => 0,
                    term => term.targets().len(),
                };
                for choice in 0..count {
                    let done = self.take(|case| {
                        let func = &mut case.module.functions[id];
                        let target = func.blocks[block]
                            .term
                            .targets()
                            .get(choice)
                            .map(|&t| t.clone());
                        if let Some(target) = target {
                            func.blocks[block].term = Terminator::Jump(target);
                            tidy(func);
                        }
                    });
                    any |= done;
                    if done {
                        break;
                    }
                }
            }
            // Instructions go, many at once first; results become zero.
            for part in [16usize, 4, 1] {
                for block in self.best.module.functions[id]
                    .layout
                    .clone()
                    .into_iter()
                    .rev()
                {
                    let Some(data) = self.best.module.functions[id].blocks.get(block) else {
                        continue;
                    };
                    let mut end = data.insts.len();
                    while end > 0 {
                        let start = end.saturating_sub(part);
                        any |= self.take(|case| {
                            let func = &mut case.module.functions[id];
                            remove(func, block, start, end);
                        });
                        end = start;
                    }
                }
            }
            let unused = |func: &Function| {
                let mut func = func.clone();
                passes::dce::run(&mut func).then_some(func)
            };
            if let Some(func) = unused(&self.best.module.functions[id]) {
                any |= self.take(|case| case.module.functions[id] = func);
            }
        }
        for dim in 0..3 {
            any |= self.best.range.global[dim] > 1
                && self.take(|case| {
                    case.range.global[dim] = 1;
                    case.range.local[dim] = 1;
                });
            any |= self.best.range.global[dim] > self.best.range.local[dim]
                && self.take(|case| case.range.global[dim] = case.range.local[dim]);
            any |= self.best.range.offset[dim] > 0 && self.take(|case| case.range.offset[dim] = 0);
        }
        any
    }
}

/// Removes unreachable blocks.
fn tidy(func: &mut Function) {
    let cfg = spirv_lowering::analysis::cfg::Cfg::new(func);
    spirv_lowering::analysis::cfg::remove_unreachable(func, &cfg);
}

/// Removes instructions from a block; their results become zero.
fn remove(func: &mut Function, block: spirv_lowering::ir::entity::Block, start: usize, end: usize) {
    let insts = func.blocks[block].insts.clone();
    let mut kept = Vec::new();
    for (i, &inst) in insts.iter().enumerate() {
        let data = &func.insts[inst];
        let plain = matches!(data.op, Op::Const(0) | Op::Alloca { .. });
        if i < start || i >= end || plain {
            kept.push(inst);
            continue;
        }
        for value in func.insts[inst].results.clone() {
            let ty = func.ty(value);
            if ty == Type::Handle {
                continue;
            }
            let zero = func.make_inst(Op::Const(0), [], &[]);
            func.insts[zero].results.push(value);
            func.values[value].def = spirv_lowering::ir::function::ValueDef::Result(zero, 0);
            kept.push(zero);
        }
    }
    func.blocks[block].insts = kept;
}

/// Returns the smallest case found for which `fails` still holds.
pub fn shrink(case: &Case, fails: &dyn Fn(&Case) -> bool) -> Case {
    let mut shrink = Shrink {
        best: case.clone(),
        fails,
        tries: 0,
    };
    while shrink.round() {}
    for (_, func) in shrink.best.module.functions.iter_mut() {
        *func = spirv_lowering::ir::compact::compact(func);
    }
    shrink.best
}
