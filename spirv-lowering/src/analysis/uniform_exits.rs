//! Finds the loops with a uniform exit: work-items that enter them together leave them in the same
//! iteration, if they run in step.
//!
//! A value is uniform if it is computed from arguments, sizes and constants alone, along loops of
//! this kind. Loads may diverge, and so may parameters of blocks where divergent paths meet.

use super::cfg::Cfg;
use super::dom::DomTree;
use super::loops::{LoopForest, LoopId};
use crate::ir::entity::{Block, SecondaryMap, Value};
use crate::ir::function::{Function, Terminator};
use crate::ir::op::{Effect, HwVar, Op};
use rustc_hash::FxHashSet;

/// Returns the headers of the loops with a uniform exit. Control flow must be reducible.
pub fn headers(func: &Function, cfg: &Cfg, dom: &DomTree) -> FxHashSet<Block> {
    let forest = LoopForest::new(cfg, dom);
    let mut state = Divergence {
        func,
        homes: SecondaryMap::new(),
        differs: FxHashSet::default(),
        divergent_exits: FxHashSet::default(),
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
    let Divergence {
        forest,
        divergent_exits,
        ..
    } = state;
    let loops = forest.loops.iter();
    loops
        .filter(|(id, _)| !divergent_exits.contains(id))
        .map(|(_, lp)| lp.header)
        .collect()
}

struct Divergence<'f> {
    func: &'f Function,
    forest: LoopForest,
    /// The innermost loop around the definition of a value.
    homes: SecondaryMap<Value, Option<LoopId>>,
    /// The divergent values. The set only grows.
    differs: FxHashSet<Value>,
    /// The loops without a uniform exit. The set only grows.
    divergent_exits: FxHashSet<LoopId>,
}

impl Divergence<'_> {
    /// Returns true if a value may be divergent where a block uses it.
    fn differs(&self, value: Value, block: Block) -> bool {
        let mut at = self.homes[value];
        while let Some(l) = at.filter(|&l| !self.forest.contains(l, block)) {
            if self.divergent_exits.contains(&l) {
                return true;
            }
            at = self.forest.loops[l].parent;
        }
        self.differs.contains(&value)
    }

    /// Goes through the function once. Returns true if it found a divergent value or loop.
    fn step(&mut self, cfg: &Cfg, dom: &DomTree) -> bool {
        let before = (self.differs.len(), self.divergent_exits.len());
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
        before != (self.differs.len(), self.divergent_exits.len())
    }

    /// Marks the parameters of a block that are divergent: those of a header if an edge passes a
    /// divergent value, others if the edges pass different values.
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

    /// Marks the loops that an edge from the block leaves divergently. An exit is uniform if every
    /// iteration reaches it and its condition is uniform.
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
                self.divergent_exits.insert(l);
            }
            at = lp.parent;
        }
    }
}

/// Returns true if the operation's result may differ between work-items even for uniform operands.
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
