//! Whether a work-item may wait for what another one does: a lock, a counter that somebody else counts up, a flag.
//!
//! It can wait nowhere but in a loop, by looking at memory again and again: with atomic operations, or with volatile loads,
//! which the compiler leaves in the loop. So a kernel may wait when a branch within a loop depends on what such an operation
//! gave. Work-items that run in step, as those of a sub-group may, can wait for one another for ever; OpenCL promises
//! them nothing else, but work-groups of one work-item that an application asks for run each on their own everywhere.

use super::cfg::Cfg;
use super::dom::DomTree;
use super::loops::LoopForest;
use crate::ir::entity::{SecondaryMap, Value};
use crate::ir::function::{Function, Terminator};
use crate::ir::op::Op;

/// May a work-item wait? Runs on an inlined function; a call that is left counts as an operation that looks at memory.
pub fn may_wait(func: &Function) -> bool {
    let cfg = Cfg::new(func);
    let forest = LoopForest::new(&cfg, &DomTree::new(&cfg));
    if forest.loops.is_empty() && forest.is_reducible() {
        return false;
    }
    let seen = from_others(func);
    func.layout.iter().any(|&block| {
        let repeats = forest.innermost(block).is_some() || !forest.is_reducible();
        let decides = match &func.blocks[block].term {
            Terminator::Branch(value, ..) | Terminator::Switch(value, ..) => seen[*value],
            _ => false,
        };
        repeats && decides
    })
}

/// The values that depend on what others may have written meanwhile.
fn from_others(func: &Function) -> SecondaryMap<Value, bool> {
    let mut seen: SecondaryMap<Value, bool> = SecondaryMap::new();
    let mut changed = true;
    while changed {
        changed = false;
        let mut mark = |seen: &mut SecondaryMap<Value, bool>, value: Value| {
            changed |= !seen[value];
            seen[value] = true;
        };
        for &block in &func.layout {
            for &inst in &func.blocks[block].insts {
                let data = &func.insts[inst];
                let looks = matches!(
                    data.op,
                    Op::AtomicLoad { .. }
                        | Op::AtomicRmw { .. }
                        | Op::AtomicCmpXchg { .. }
                        | Op::Load { volatile: true, .. }
                        | Op::Call(_)
                );
                if looks || data.args.iter().any(|&arg| seen[arg]) {
                    for &result in &data.results {
                        mark(&mut seen, result);
                    }
                }
            }
            for edge in func.blocks[block].term.targets() {
                for (&param, &arg) in func.blocks[edge.block].params.iter().zip(&edge.args) {
                    if seen[arg] {
                        mark(&mut seen, param);
                    }
                }
            }
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::parse::parse_function;

    fn of(blocks: &str) -> bool {
        let text = format!(
            "func fn0 \"f\" (ptr.global, i32) -> () {{\nblock0(v0: ptr.global, v1: i32):\n{blocks}}}\n"
        );
        may_wait(&parse_function(&text).expect("the text of a function"))
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
}
