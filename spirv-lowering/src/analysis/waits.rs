//! Whether a work-item may wait for what another one does: a lock, a counter that somebody else counts up, a flag.
//!
//! It can wait nowhere but in a loop, by looking at memory again and again: with atomic operations, or with volatile loads,
//! which the compiler leaves in the loop. So a kernel may wait when what such an operation gave decides whether a loop ends: by
//! the condition of an edge out of it, or by whether the work-item comes to that edge. Work-items that run in step, as those
//! of a sub-group may, can wait for one another for ever; OpenCL promises them nothing else, but work-groups of one work-item
//! that an application asks for run each on their own everywhere.
//!
//! What goes through global memory without an atomic operation is not followed: nobody has promised that it comes from others.

use super::cfg::Cfg;
use super::control_flow::ControlFlow;
use super::joins::Joins;
use super::loops::LoopId;
use crate::ir::entity::{Block, FuncId, SecondaryMap, Value};
use crate::ir::function::{Function, Terminator};
use crate::ir::op::Op;
use crate::ir::types::{Space, Type};
use rustc_hash::FxHashSet;

/// The functions in which a work-item looks at what others may have written.
pub type Looking = FxHashSet<FuncId>;

/// Returns those of some functions in which a work-item looks at what others may have written.
pub fn looking<'a>(functions: impl Iterator<Item = (FuncId, &'a Function)>) -> Looking {
    let functions: Vec<_> = functions.collect();
    let mut looking = Looking::default();
    loop {
        let before = looking.len();
        for &(id, func) in &functions {
            let mut insts = func.layout_insts();
            if insts.any(|&inst| looks(func.insts[inst].op, &looking)) {
                looking.insert(id);
            }
        }
        if looking.len() == before {
            return looking;
        }
    }
}

/// Returns true if an operation may give what others have written.
fn looks(op: Op, looking: &Looking) -> bool {
    match op {
        Op::AtomicLoad { .. } | Op::AtomicRmw { .. } | Op::AtomicCmpXchg { .. } => true,
        Op::Load { volatile, .. } => volatile,
        Op::Call(id) => looking.contains(&id),
        _ => false,
    }
}

/// Returns true if a work-item may wait for another one.
pub fn may_wait(func: &Function, looking: &Looking) -> bool {
    let mut insts = func.layout_insts();
    if !insts.any(|&inst| looks(func.insts[inst].op, looking)) {
        return false;
    }
    let flow = ControlFlow::new(func);
    let forest = flow.loops();
    if forest.loops.is_empty() && forest.is_reducible() {
        return false;
    }
    if !forest.is_reducible() {
        return !Seen::new(func, &flow.cfg, looking).branches.is_empty();
    }
    !waiting_loops(func, &flow, looking).is_empty()
}

/// Returns the natural loops in which a work-item may wait.
pub fn waiting_loops(func: &Function, flow: &ControlFlow, looking: &Looking) -> Vec<LoopId> {
    let (cfg, forest) = (&flow.cfg, flow.loops());
    if forest.loops.is_empty() {
        return Vec::new();
    }
    let seen = Seen::new(func, cfg, looking);
    let decides = |block: Block| seen.branches.iter().any(|branch| branch.block == block);
    let waits = |&id: &LoopId| {
        let within = |block: Block| forest.contains(id, block);
        let leaves = |block: Block| cfg.succs(block).iter().any(|&to| !within(to));
        let mut ends = forest.loops[id]
            .blocks
            .iter()
            .filter(|&&block| leaves(block));
        ends.any(|&end| {
            let mut inside = seen.branches.iter().filter(|branch| within(branch.block));
            decides(end) || inside.any(|branch| branch.joins.between(end))
        })
    };
    forest.loops.keys().filter(waits).collect()
}

/// A branch whose condition depends on other work-items.
struct Branch {
    block: Block,
    joins: Joins,
}

/// The values and branches that depend on what other work-items may have written.
struct Seen {
    values: SecondaryMap<Value, bool>,
    branches: Vec<Branch>,
    /// Set if private memory depends on other work-items too.
    private: bool,
}

impl Seen {
    fn new(func: &Function, cfg: &Cfg, looking: &Looking) -> Self {
        let mut seen = Self {
            values: SecondaryMap::new(),
            branches: Vec::new(),
            private: false,
        };
        while seen.follow(func, looking) | seen.branch(func, cfg) {}
        seen
    }

    fn mark(&mut self, value: Value) -> bool {
        let new = !self.values[value];
        self.values[value] = true;
        new
    }

    /// Propagates from operands to results, once through all blocks. Returns true if anything was
    /// new.
    fn follow(&mut self, func: &Function, looking: &Looking) -> bool {
        let mut new = false;
        for &block in &func.layout {
            let conditional = self
                .branches
                .iter()
                .any(|branch| branch.joins.between(block));
            for &inst in &func.blocks[block].insts {
                let data = &func.insts[inst];
                let known = data.args.iter().any(|&arg| self.values[arg]);
                let private = || {
                    let place = data.args.first().map(|&place| func.ty(place));
                    matches!(place, Some(Type::Ptr(Space::Private | Space::Generic)))
                };
                let again = matches!(data.op, Op::Load { .. }) && self.private && private();
                if looks(data.op, looking) || again || known {
                    for &result in &data.results {
                        new |= self.mark(result);
                    }
                }
                // By value, or by whether it is done.
                if (known || conditional) && !self.private && data.results.is_empty() && private() {
                    self.private = true;
                    new = true;
                }
            }
            for edge in func.blocks[block].term.targets() {
                for (&param, &arg) in func.blocks[edge.block].params.iter().zip(&edge.args) {
                    if self.values[arg] {
                        new |= self.mark(param);
                    }
                }
            }
        }
        new
    }

    /// Propagates from conditions to what depends on the path taken. Returns true if anything was
    /// new.
    fn branch(&mut self, func: &Function, cfg: &Cfg) -> bool {
        let mut new = false;
        for &block in cfg.rpo() {
            let (Terminator::Branch(value, ..) | Terminator::Switch(value, ..)) =
                &func.blocks[block].term
            else {
                continue;
            };
            let known = self.branches.iter().any(|branch| branch.block == block);
            if known || !self.values[*value] {
                continue;
            }
            let joins = Joins::new(cfg, block);
            for &join in joins.blocks() {
                for &param in &func.blocks[join].params {
                    self.mark(param);
                }
            }
            self.branches.push(Branch { block, joins });
            new = true;
        }
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::parse::parse_function;

    fn of(blocks: &str) -> bool {
        let text = format!(
            "func fn0 \"f\" (ptr.global, i32) -> () {{\nblock0(v0: ptr.global, v1: i32):\n{blocks}}}\n"
        );
        let func = parse_function(&text).expect("the text of a function");
        may_wait(&func, &Looking::default())
    }

    #[test]
    fn locks_wait() {
        let lock = "
  v2 = const 0 : i32
  jump block1
block1:
  v3 = atomic_rmw.xchg.device.relaxed v0, v1 : i32
  v4 = icmp.ne v3, v2 : bool
  br v4, block1, block2
block2:
  return
";
        assert!(of(lock));
        assert!(!of(&lock.replace("br v4, block1, block2", "jump block2")));
        let load = lock.replace(
            "atomic_rmw.xchg.device.relaxed v0, v1",
            "load.align4.volatile v0",
        );
        assert!(of(&load));
        assert!(!of(&load.replace(".volatile", "")));
    }

    #[test]
    fn counting_does_not_wait() {
        let histogram = "
  v2 = const 0 : i32
  jump block1(v2)
block1(v5: i32):
  v3 = atomic_rmw.xchg.device.relaxed v0, v5 : i32
  v6 = iadd v5, v1 : i32
  v4 = icmp.ult v6, v1 : bool
  br v4, block1(v6), block2
block2:
  return
";
        assert!(!of(histogram));
        assert!(of(&histogram.replace("iadd v5, v1", "iadd v5, v3")));
    }

    /// Checks a result that only decides what one iteration does, as programs count and record what
    /// they find.
    #[test]
    fn what_is_found_is_noted_without_waiting() {
        let noted = "
  v2 = const 0 : i32
  v10 = const 0 : i64
  v11 = ptr_add v0, v10 : ptr.global
  jump block1(v2)
block1(v5: i32):
  v3 = atomic_rmw.add.device.relaxed v0, v5 : i32
  v7 = icmp.eq v3, v2 : bool
  br v7, block2(v2), block4(v2)
block2(v8: i32):
  store.align4 v11, v8
  v9 = iadd v8, v1 : i32
  v13 = icmp.ult v9, v1 : bool
  br v13, block2(v9), block4(v9)
block4(v12: i32):
  v6 = iadd v5, v1 : i32
  v4 = icmp.ult v6, v1 : bool
  br v4, block1(v6), block5
block5:
  return
";
        assert!(!of(noted));
        // What the ways bring along decides.
        assert!(of(&noted.replace("icmp.ult v6, v1", "icmp.ult v12, v1")));
        assert!(of(&noted.replace("icmp.ult v9, v1", "icmp.ult v3, v9")));
    }

    /// Checks a loop exit that only work-items reach which hold the lock.
    #[test]
    fn exits_after_a_lock_wait() {
        let tried = "
  v2 = const 0 : i32
  jump block1
block1:
  v3 = atomic_rmw.xchg.device.relaxed v0, v1 : i32
  v4 = icmp.ne v3, v2 : bool
  br v4, block1, block2
block2:
  v5 = icmp.ult v1, v2 : bool
  br v5, block1, block3
block3:
  return
";
        assert!(of(tried));
        let after = tried
            .replace("br v4, block1, block2", "br v4, block4, block2")
            .replace("br v5, block1, block3", "br v5, block4, block3")
            .replace("block3:\n", "block4:\n  jump block1\nblock3:\n");
        assert!(of(&after));
    }

    /// Checks paths back to the header that differ, and values carried by private memory.
    #[test]
    fn ways_of_going_on_wait() {
        let again = "
  v2 = const 0 : i32
  jump block1(v2)
block1(v5: i32):
  v7 = icmp.ult v5, v1 : bool
  br v7, block2, block4
block2:
  v3 = atomic_rmw.xchg.device.relaxed v0, v1 : i32
  v4 = icmp.ne v3, v2 : bool
  br v4, block1(v5), block3
block3:
  v6 = iadd v5, v1 : i32
  jump block1(v6)
block4:
  return
";
        assert!(of(again));
        let noted = "
  v2 = const 0 : i32
  v8 = alloca.size4.align4 : ptr.private
  store.align4 v8, v2
  jump block1
block1:
  v3 = atomic_rmw.xchg.device.relaxed v0, v1 : i32
  v4 = icmp.ne v3, v2 : bool
  br v4, block3, block2
block2:
  store.align4 v8, v1
  jump block3
block3:
  v5 = load.align4 v8 : i32
  v6 = icmp.eq v5, v2 : bool
  br v6, block1, block4
block4:
  return
";
        assert!(of(noted));
        assert!(!of(&noted.replace("load.align4 v8", "load.align4 v0")));
    }
}
