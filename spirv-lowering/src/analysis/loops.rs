//! The forest of natural loops, and the edges that make a graph irreducible.
//!
//! A natural loop is given by its header: the blocks that reach a latch (the source of an edge back to the header)
//! without passing the header. A retreating edge whose target does not dominate its source belongs to no natural
//! loop and is recorded as irreducible.

use super::cfg::Cfg;
use super::dom::DomTree;
use crate::ir::entity::{Block, Entity, PrimaryMap, SecondaryMap};

/// A loop of a [`LoopForest`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct LoopId(u32);

impl Entity for LoopId {
    fn new(index: usize) -> Self {
        Self(index as u32)
    }
    fn index(self) -> usize {
        self.0 as usize
    }
}

/// A natural loop.
#[derive(Debug, Clone)]
pub struct Loop {
    /// The block that dominates the others.
    pub header: Block,
    /// The innermost loop around it.
    pub parent: Option<LoopId>,
    /// 1 for an outermost loop.
    pub depth: u32,
    /// Sources of the back edges, one an edge.
    pub latches: Vec<Block>,
    /// All blocks, those of inner loops included, in reverse postorder (the header first).
    pub blocks: Vec<Block>,
}

/// All loops of a function.
#[derive(Debug, Clone)]
pub struct LoopForest {
    /// The loops, outer before inner.
    pub loops: PrimaryMap<LoopId, Loop>,
    /// The retreating edges into blocks that do not dominate their source.
    pub irreducible: Vec<(Block, Block)>,
    innermost: SecondaryMap<Block, Option<LoopId>>,
}

impl LoopForest {
    /// Finds the loops of a graph.
    pub fn new(cfg: &Cfg, dom: &DomTree) -> Self {
        let mut irreducible = Vec::new();
        let mut loops: PrimaryMap<LoopId, Loop> = PrimaryMap::new();
        let position = |b: Block| cfg.rpo_index(b).unwrap_or(0);
        for &block in cfg.rpo() {
            let mut latches = Vec::new();
            for &pred in cfg.preds(block) {
                if dom.dominates(block, pred) {
                    latches.push(pred);
                } else if position(pred) >= position(block) {
                    irreducible.push((pred, block));
                }
            }
            if !latches.is_empty() {
                loops.push(Loop {
                    header: block,
                    parent: None,
                    depth: 0,
                    latches,
                    blocks: Vec::new(),
                });
            }
        }
        // Inner loops first: headers come in reverse postorder, so from the back. A block that has a loop already
        // stands for the outermost loop found around it so far.
        let mut innermost: SecondaryMap<Block, Option<LoopId>> = SecondaryMap::new();
        let mut stack = Vec::new();
        for id in loops.keys().rev().collect::<Vec<_>>() {
            let header = loops[id].header;
            stack.extend(loops[id].latches.iter().copied());
            while let Some(block) = stack.pop() {
                let Some(mut inner) = innermost[block] else {
                    innermost[block] = Some(id);
                    if block != header {
                        stack.extend(cfg.preds(block).iter().copied());
                    }
                    continue;
                };
                while let Some(outer) = loops[inner].parent {
                    inner = outer;
                }
                if inner != id {
                    loops[inner].parent = Some(id);
                    let head = loops[inner].header;
                    stack.extend(cfg.preds(head).iter().copied());
                }
            }
            innermost[header].get_or_insert(id);
        }
        for id in loops.keys().collect::<Vec<_>>() {
            loops[id].depth = loops[id].parent.map_or(0, |p| loops[p].depth) + 1;
        }
        for &block in cfg.rpo() {
            let mut at = innermost[block];
            while let Some(id) = at {
                loops[id].blocks.push(block);
                at = loops[id].parent;
            }
        }
        Self {
            loops,
            irreducible,
            innermost,
        }
    }

    /// Returns true if every cycle is a natural loop.
    pub fn is_reducible(&self) -> bool {
        self.irreducible.is_empty()
    }
    /// Returns the innermost loop around a block.
    pub fn innermost(&self, block: Block) -> Option<LoopId> {
        self.innermost[block]
    }
    /// Returns the number of loops around a block.
    pub fn depth(&self, block: Block) -> u32 {
        self.innermost[block].map_or(0, |l| self.loops[l].depth)
    }
    /// Returns the loop whose header is the block.
    pub fn headed_by(&self, block: Block) -> Option<LoopId> {
        self.innermost[block].filter(|&l| self.loops[l].header == block)
    }
    /// Returns true if the block is in the loop.
    pub fn contains(&self, id: LoopId, block: Block) -> bool {
        let mut at = self.innermost[block];
        while let Some(l) = at {
            if l == id {
                return true;
            }
            at = self.loops[l].parent;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::function::{Edge, Function, Terminator};
    use crate::ir::types::Type;

    fn forest(edges: &[&[usize]]) -> LoopForest {
        let mut func = Function::default();
        let blocks: Vec<Block> = edges.iter().map(|_| func.add_block()).collect();
        for (i, succs) in edges.iter().enumerate() {
            let t = |n: usize| Edge::new(blocks[n]);
            func.blocks[blocks[i]].term = match **succs {
                [a] => Terminator::Jump(t(a)),
                [a, b] => {
                    let v = func.append_const(blocks[i], Type::Bool, 0);
                    Terminator::Branch(v, t(a), t(b))
                }
                _ => Terminator::Return(Default::default()),
            };
        }
        let cfg = Cfg::new(&func);
        LoopForest::new(&cfg, &DomTree::new(&cfg))
    }

    #[test]
    fn nested_loops() {
        // 0 -> 1 (outer) -> 2 (inner) -> 2, 3 -> 1, 4
        let f = forest(&[&[1], &[2], &[2, 3], &[1, 4], &[]]);
        let b = Block::new;
        assert!(f.is_reducible());
        assert_eq!(f.loops.len(), 2);
        assert_eq!([0, 1, 2, 3, 4].map(|i| f.depth(b(i))), [0, 1, 2, 1, 0]);
        let outer = f.headed_by(b(1)).unwrap();
        assert_eq!(f.loops[outer].blocks, [b(1), b(2), b(3)]);
        let inner = f.headed_by(b(2)).unwrap();
        assert_eq!(f.loops[inner].parent, Some(outer));
        assert!(f.contains(outer, b(2)) && !f.contains(inner, b(3)));
    }

    #[test]
    fn two_entries_are_irreducible() {
        let f = forest(&[&[1, 2], &[2], &[1, 3], &[]]);
        assert!(!f.is_reducible());
        assert_eq!(f.irreducible.len(), 1);
    }
}
