//! Moves the release of a lock into the loop that waits for the lock.
//!
//! The usual lock of programs for GPUs is released by the work-item that holds it before any other
//! continues:
//!
//! ```text
//! while (!done)
//!     if (cmpxchg(lock, 0, 1) == 0) { ...; xchg(lock, 0); done = true; }
//! ```
//!
//! LLVM makes a loop of it that ends where the lock was taken, and the protected code follows the
//! loop. Work-items that run in step leave a loop when the last of them does: the one that holds
//! the lock waits for those that wait for it. So everything up to the last write to the memory that
//! the loop polls becomes part of the loop again, by an edge back to its head that is never taken.

use crate::analysis::cfg::Cfg;
use crate::analysis::control_flow::ControlFlow;
use crate::analysis::dom::DomTree;
use crate::analysis::loops::{LoopForest, LoopId};
use crate::analysis::waits::{self, Looking};
use crate::ir::entity::{Block, GlobalId, Inst, Value};
use crate::ir::function::{Edge, Function, Terminator};
use crate::ir::op::{Effect, HwVar, IntCond, Op};
use crate::ir::types::Type;
use rustc_hash::FxHashSet;

/// The most loops that are changed.
const MOST: usize = 64;

/// Runs the pass. Returns true if anything changed.
pub fn run(func: &mut Function, looking: &Looking) -> bool {
    let mut changed = 0;
    while changed < MOST {
        let Some(release) = find(func, looking) else {
            break;
        };
        apply(func, &release);
        changed += 1;
    }
    changed > 0
}

/// The last write that ends the wait of others in a loop.
struct Release {
    header: Block,
    block: Block,
    /// The number of instructions of the block up to the write.
    count: usize,
}

/// The object that an address points into.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Root {
    Value(Value),
    Global(GlobalId),
}

fn root(func: &Function, mut address: Value) -> Root {
    while let Some(inst) = func.def_inst(address) {
        let data = &func.insts[inst];
        match (data.op, data.args.first()) {
            (Op::GlobalAddr(id), _) => return Root::Global(id),
            (Op::PtrAdd | Op::Bitcast | Op::SpaceCast | Op::IntToPtr | Op::PtrToInt, Some(&of)) => {
                address = of;
            }
            _ => break,
        }
    }
    Root::Value(address)
}

fn find(func: &Function, looking: &Looking) -> Option<Release> {
    let flow = ControlFlow::new(func);
    let waiting = waits::waiting_loops(func, &flow, looking);
    if waiting.is_empty() {
        return None;
    }
    let post = DomTree::new_post(&flow.cfg);
    let found = Search {
        func,
        cfg: &flow.cfg,
        dom: flow.dom(),
        post: &post,
        forest: flow.loops(),
    };
    waiting.iter().find_map(|&id| found.release(id))
}

struct Search<'a> {
    func: &'a Function,
    cfg: &'a Cfg,
    dom: &'a DomTree,
    post: &'a DomTree,
    forest: &'a LoopForest,
}

impl Search<'_> {
    /// Returns the last write after a loop to the memory that it polls, or `None` if there is none
    /// before work-items converge or the paths part.
    fn release(&self, id: LoopId) -> Option<Release> {
        let forest = self.forest;
        let found = &forest.loops[id];
        let looked_at = self.looked_at(&found.blocks);
        let leads = |&&block: &&Block| {
            self.cfg
                .succs(block)
                .iter()
                .any(|&to| !forest.contains(id, to))
        };
        let ends = found.blocks.iter().filter(leads);
        let mut exits = ends.flat_map(|&end| self.cfg.succs(end));
        exits.find_map(|&exit| {
            let of_loop = |&before: &Block| forest.contains(id, before);
            let outside = !forest.contains(id, exit);
            let (block, count) = (outside && self.cfg.preds(exit).iter().all(of_loop))
                .then(|| self.last_write(id, exit, &looked_at))??;
            Some(Release {
                header: found.header,
                block,
                count,
            })
        })
    }

    /// Returns the objects that a loop polls. An object is left out if the loop changes it by a
    /// compare-and-exchange with a value that it has just read: a work-item that fails there waits
    /// for no other.
    fn looked_at(&self, blocks: &[Block]) -> FxHashSet<Root> {
        let insts = || {
            blocks
                .iter()
                .flat_map(|&block| &self.func.blocks[block].insts)
        };
        let params = blocks
            .iter()
            .flat_map(|&block| &self.func.blocks[block].params);
        let results = insts().flat_map(|&inst| &self.func.insts[inst].results);
        let made: FxHashSet<Value> = results.chain(params).copied().collect();
        let place = |&inst: &Inst| Some(root(self.func, *self.func.insts[inst].args.first()?));
        let retries = |&&inst: &&Inst| {
            let data = &self.func.insts[inst];
            matches!(data.op, Op::AtomicCmpXchg { .. })
                && data.args.get(1).is_some_and(|expected| {
                    made.contains(expected) && self.func.as_const(*expected).is_none()
                })
        };
        let retried: FxHashSet<Root> = insts().filter(retries).filter_map(place).collect();
        let looks = insts().filter(|&&inst| is_look(self.func.insts[inst].op));
        let places = looks.filter_map(place);
        places.filter(|place| !retried.contains(place)).collect()
    }

    /// Returns the last write to one of the roots on the paths from the exit of a loop, and how many
    /// instructions precede it in its block. Another loop is on a path as a whole: what is in it
    /// may have a barrier between two iterations.
    fn last_write(
        &self,
        id: LoopId,
        from: Block,
        roots: &FxHashSet<Root>,
    ) -> Option<(Block, usize)> {
        if self.is_in_other_loop(id, from) {
            return None;
        }
        let mut last = None;
        let mut block = from;
        loop {
            for (number, &inst) in self.func.blocks[block].insts.iter().enumerate() {
                if self.is_convergent(inst) {
                    return last;
                }
                if self.writes(inst, roots) {
                    last = Some((block, number + 1));
                }
            }
            let Some(mut next) = self.post.idom(block) else {
                return last;
            };
            while self.is_in_other_loop(id, next) {
                let Some(after) = self.post.idom(next) else {
                    return last;
                };
                next = after;
            }
            let Some(between) = self.between(block, next, from) else {
                return last;
            };
            let mut insts = between.iter().flat_map(|&b| &self.func.blocks[b].insts);
            if insts.clone().any(|&inst| self.is_convergent(inst)) {
                return last;
            }
            if insts.any(|&inst| self.writes(inst, roots)) {
                last = Some((next, 0));
            }
            block = next;
        }
    }

    /// Returns true if a block is in a loop that the header of a loop is not in.
    fn is_in_other_loop(&self, id: LoopId, block: Block) -> bool {
        let header = self.forest.loops[id].header;
        let innermost = self.forest.innermost(block);
        innermost.is_some_and(|innermost| !self.forest.contains(innermost, header))
    }

    /// Returns the blocks on the paths from one to its post-dominator, or `None` if `top` does not
    /// dominate all of them.
    fn between(&self, from: Block, to: Block, top: Block) -> Option<FxHashSet<Block>> {
        let mut seen = FxHashSet::default();
        let mut stack = self.cfg.succs(from).to_vec();
        while let Some(block) = stack.pop() {
            if block == to || !seen.insert(block) {
                continue;
            }
            if !self.dom.dominates(top, block) {
                return None;
            }
            stack.extend(self.cfg.succs(block));
        }
        self.dom.strictly_dominates(top, to).then_some(seen)
    }

    fn is_convergent(&self, inst: Inst) -> bool {
        self.func.insts[inst].op.effect() == Effect::Convergent
    }

    fn writes(&self, inst: Inst, roots: &FxHashSet<Root>) -> bool {
        let data = &self.func.insts[inst];
        let writes = matches!(
            data.op,
            Op::Store { .. }
                | Op::AtomicStore { .. }
                | Op::AtomicRmw { .. }
                | Op::AtomicCmpXchg { .. }
        );
        let address = data.args.first().filter(|_| writes);
        address.is_some_and(|&address| roots.contains(&root(self.func, address)))
    }
}

/// Returns true if the operation reads what others may have written.
fn is_look(op: Op) -> bool {
    matches!(
        op,
        Op::AtomicLoad { .. }
            | Op::AtomicRmw { .. }
            | Op::AtomicCmpXchg { .. }
            | Op::Load { volatile: true, .. }
    )
}

fn apply(func: &mut Function, release: &Release) {
    let rest = func.add_block();
    func.blocks[rest].insts = func.blocks[release.block].insts.split_off(release.count);
    func.blocks[rest].term = std::mem::replace(
        &mut func.blocks[release.block].term,
        Terminator::Unreachable,
    );
    // There is a work-group, but no pass or driver knows it.
    let groups = func.append1(
        release.block,
        Op::Hw(HwVar::NumWorkgroups(0)),
        [],
        Type::I32,
    );
    let none = func.append_const(release.block, Type::I32, 0);
    let never = func.append1(
        release.block,
        Op::ICmp(IntCond::Eq),
        [groups, none],
        Type::Bool,
    );
    let back = Edge::with(
        release.header,
        func.blocks[release.header].params.iter().copied(),
    );
    func.blocks[release.block].term = Terminator::Branch(never, back, Edge::new(rest));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::parse::parse_function;
    use crate::ir::print::raw;

    fn changed(blocks: &str) -> Option<String> {
        let text = format!(
            "func fn0 \"f\" (ptr.global, i32, ptr.global) -> () {{\nblock0(v0: ptr.global, v1: i32, v2: ptr.global):\n{blocks}}}\n"
        );
        let mut func = parse_function(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        run(&mut func, &Looking::default()).then(|| raw(&func).to_string())
    }

    const TAKEN: &str = "  v3 = const 1 : i32\n  v4 = const 0 : i32\n  jump block1\nblock1:\n  \
        v5 = atomic_cmp_xchg.device.relaxed v0, v4, v3 : i32\n  v6 = icmp.eq v5, v4 : bool\n  br v6, block2, block1\nblock2:\n";

    /// A loop after the lock that has a barrier, and takes the lock again, stays out of the first loop.
    #[test]
    fn loops_with_barriers_are_not_taken_in() {
        let text = changed(&format!(
            "{TAKEN}  v7 = atomic_rmw.xchg.device.relaxed v0, v4 : i32\n  jump block3\nblock3:\n  jump block4\nblock4:\n  \
             v8 = atomic_cmp_xchg.device.relaxed v0, v4, v3 : i32\n  v9 = icmp.eq v8, v4 : bool\n  br v9, block5, block4\n\
             block5:\n  v10 = atomic_rmw.xchg.device.relaxed v0, v4 : i32\n  jump block6\nblock6:\n  \
             barrier.work_group.work_group.acq_rel.l\n  v11 = load.align4 v2 : i32\n  v12 = icmp.eq v11, v4 : bool\n  \
             br v12, block3, block7\nblock7:\n  return\n"
        ));
        let text = text.expect("two locks");
        let edges = text.matches(", block1, ").count() + text.matches(", block4, ").count();
        assert_eq!(edges, 2, "{text}");
        let (_, after) = text.split_once("block5:").expect("the second release");
        assert!(!after.contains("block1"), "{text}");
    }

    #[test]
    fn locks_are_released_within_the_loop() {
        let text = changed(&format!(
            "{TAKEN}  store.align4 v2, v1\n  v7 = atomic_rmw.xchg.device.relaxed v0, v4 : i32\n  store.align4 v2, v3\n  return\n"
        ));
        let text = text.expect("a lock");
        let (before, after) = text
            .split_once("xchg.device.relaxed v0, v4 : i32\n")
            .expect("a release");
        assert!(before.contains("store.align4 v2, v1"), "{text}");
        assert!(
            after.contains("num_workgroups") && after.contains("block1"),
            "{text}"
        );
        assert!(after.contains("store.align4 v2, v3"), "{text}");
        // Once.
        assert!(
            !run(
                &mut parse_function(&text).expect("a function"),
                &Looking::default()
            ),
            "{text}"
        );
    }

    #[test]
    fn a_release_on_one_of_two_ways_is_within_the_loop() {
        let text = changed(&format!(
            "{TAKEN}  v8 = icmp.eq v1, v3 : bool\n  br v8, block3, block4\nblock3:\n  \
             v7 = atomic_rmw.xchg.device.relaxed v0, v4 : i32\n  jump block4\nblock4:\n  store.align4 v2, v3\n  return\n"
        ));
        let text = text.expect("a lock");
        let (_, after) = text.split_once("block4:\n").expect("where they meet");
        assert!(after.trim_start().contains("num_workgroups"), "{text}");
    }

    #[test]
    fn loops_elsewhere_may_have_two_entries() {
        let text = changed(&format!(
            "{TAKEN}  v7 = atomic_rmw.xchg.device.relaxed v0, v4 : i32\n  v8 = icmp.eq v1, v3 : bool\n  br v8, block3, block4\n\
             block3:\n  br v8, block4, block5\nblock4:\n  br v8, block3, block5\nblock5:\n  return\n"
        ));
        let text = text.expect("a lock");
        let (_, after) = text
            .split_once("xchg.device.relaxed v0, v4 : i32\n")
            .expect("a release");
        assert!(after.contains("num_workgroups"), "{text}");
    }

    /// Checks an addition of floats by compare-and-exchange, and another retry loop.
    #[test]
    fn loops_that_retry_stay() {
        let add = |block: u32, value: u32, next: u32| {
            let (old, new, got, same) = (value, value + 1, value + 2, value + 3);
            format!(
                "block{block}:\n  v{old} = load.align4.volatile v0 : i32\n  v{new} = iadd v{old}, v1 : i32\n  \
                 v{got} = atomic_cmp_xchg.device.relaxed v0, v{old}, v{new} : i32\n  \
                 v{same} = icmp.eq v{got}, v{old} : bool\n  br v{same}, block{next}, block{block}\n"
            )
        };
        let text = format!(
            "  jump block1\n{}{}block3:\n  return\n",
            add(1, 3, 2),
            add(2, 7, 3)
        );
        assert_eq!(changed(&text), None);
    }

    #[test]
    fn other_loops_stay() {
        // Nothing is written for those that wait, or only after all work-items have met.
        for rest in [
            "  store.align4 v2, v3\n  return\n",
            "  barrier.work_group.work_group.acq_rel.l\n  v7 = atomic_rmw.xchg.device.relaxed v0, v4 : i32\n  return\n",
        ] {
            assert_eq!(changed(&format!("{TAKEN}{rest}")), None, "{rest}");
        }
    }
}
