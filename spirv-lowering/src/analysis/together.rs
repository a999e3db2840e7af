//! The loops that the work-items which entered them together leave together too: in the same iteration, if they run in step.
//!
//! A value is taken to be the same for all if it is made of arguments, sizes and constants alone, along loops of this kind.
//! What is loaded may differ, and what different ways bring to a block.

use super::cfg::Cfg;
use super::dom::DomTree;
use super::loops::{LoopForest, LoopId};
use crate::ir::entity::{Block, SecondaryMap, Value};
use crate::ir::function::{Function, Terminator};
use crate::ir::op::{Effect, HwVar, Op};
use rustc_hash::FxHashSet;

/// The headers of such loops. Control flow must be reducible.
pub fn headers(func: &Function, cfg: &Cfg, dom: &DomTree) -> FxHashSet<Block> {
    let forest = LoopForest::new(cfg, dom);
    let mut state = Divergence {
        func,
        homes: SecondaryMap::new(),
        differs: FxHashSet::default(),
        apart: FxHashSet::default(),
        forest,
    };
    for &block in cfg.rpo() {
        let home = state.forest.innermost(block);
        let data = &func.blocks[block];
        let results = data.insts.iter().flat_map(|&i| &func.insts[i].results);
        for &value in data.params.iter().chain(results) {
            state.homes[value] = home;
        }
    }
    while state.step(cfg, dom) {}
    let Divergence { forest, apart, .. } = state;
    let loops = forest.loops.iter();
    loops
        .filter(|(id, _)| !apart.contains(id))
        .map(|(_, lp)| lp.header)
        .collect()
}

struct Divergence<'f> {
    func: &'f Function,
    forest: LoopForest,
    /// The innermost loop around the definition of a value.
    homes: SecondaryMap<Value, Option<LoopId>>,
    /// Values that work-items may have different ones of. Grows.
    differs: FxHashSet<Value>,
    /// Loops that they may leave at different times. Grows.
    apart: FxHashSet<LoopId>,
}

impl Divergence<'_> {
    /// Whether work-items may see different values in a block.
    fn differs(&self, value: Value, block: Block) -> bool {
        let mut at = self.homes[value];
        while let Some(l) = at.filter(|&l| !self.forest.contains(l, block)) {
            if self.apart.contains(&l) {
                return true;
            }
            at = self.forest.loops[l].parent;
        }
        self.differs.contains(&value)
    }

    /// Goes through the function once. Whether anything was found out.
    fn step(&mut self, cfg: &Cfg, dom: &DomTree) -> bool {
        let before = (self.differs.len(), self.apart.len());
        for &block in cfg.rpo() {
            self.params(cfg, block);
            for &inst in &self.func.blocks[block].insts {
                let data = &self.func.insts[inst];
                let own = data.op.effect() != Effect::Pure || is_of_item(data.op);
                if own || data.args.iter().any(|&arg| self.differs(arg, block)) {
                    self.differs.extend(data.results.iter().copied());
                }
            }
            self.exits(dom, block);
        }
        before != (self.differs.len(), self.apart.len())
    }

    /// A header's parameters are the same if all that is brought is; others, if one value is brought.
    fn params(&mut self, cfg: &Cfg, block: Block) {
        let heads = self.forest.headed_by(block).is_some();
        for (i, &param) in self.func.blocks[block].params.iter().enumerate() {
            let mut first = None;
            let mut differs = cfg.preds(block).is_empty();
            for &pred in cfg.preds(block) {
                for edge in self.func.blocks[pred].term.targets() {
                    if let (true, Some(&arg)) = (edge.block == block, edge.args.get(i)) {
                        differs |= self.differs(arg, pred);
                        differs |= !heads && *first.get_or_insert(arg) != arg;
                    }
                }
            }
            if differs {
                self.differs.insert(param);
            }
        }
    }

    /// Of the loops that an edge from here leaves, work-items leave those together that it leaves in every iteration on one
    /// condition.
    fn exits(&mut self, dom: &DomTree, block: Block) {
        let term = &self.func.blocks[block].term;
        let condition = match term {
            Terminator::Branch(value, ..) | Terminator::Switch(value, ..) => {
                self.differs(*value, block)
            }
            _ => false,
        };
        let innermost = self.forest.innermost(block);
        let mut at = innermost;
        while let Some(l) = at {
            let lp = &self.forest.loops[l];
            let leaves = (term.targets().iter()).any(|t| !self.forest.contains(l, t.block));
            let always = lp.latches.iter().all(|&latch| dom.dominates(block, latch));
            if leaves && (condition || !always || innermost != Some(l)) {
                self.apart.insert(l);
            }
            at = lp.parent;
        }
    }
}

/// It is different for each work-item, or may be.
fn is_of_item(op: Op) -> bool {
    match op {
        Op::Undef | Op::Builtin(_) => true,
        Op::Hw(var) => !matches!(
            var,
            HwVar::WorkgroupId(_) | HwVar::NumWorkgroups(_) | HwVar::WorkgroupSize(_)
        ),
        _ => false,
    }
}
