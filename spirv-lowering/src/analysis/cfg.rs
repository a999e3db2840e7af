//! The control-flow graph: successors, predecessors and reverse postorder of the blocks that the entry reaches.
//!
//! Edges are listed once each time they occur: a branch whose two targets are one block gives that block twice as
//! successor, and the branching block twice as predecessor. Unreachable blocks have no edges here, not even to
//! reachable ones.

use crate::ir::entity::{Block, Entity};
use crate::ir::function::Function;

const NONE: u32 = u32::MAX;

/// A list of blocks for each block, in one allocation.
#[derive(Debug, Clone, Default)]
struct Lists {
    start: Vec<u32>,
    items: Vec<Block>,
}

impl Lists {
    fn get(&self, block: Block) -> &[Block] {
        let i = block.index();
        match (self.start.get(i), self.start.get(i + 1)) {
            (Some(&a), Some(&b)) => &self.items[a as usize..b as usize],
            _ => &[],
        }
    }
}

/// The control-flow graph of a function.
#[derive(Debug, Clone)]
pub struct Cfg {
    succs: Lists,
    preds: Lists,
    /// For each entry of `preds`, the number of the target in the predecessor's terminator.
    numbers: Vec<u32>,
    rpo: Vec<Block>,
    index: Vec<u32>,
}

impl Cfg {
    /// Computes the graph of a function.
    pub fn new(func: &Function) -> Self {
        let n = func.blocks.len();
        let mut succs = Lists {
            start: Vec::with_capacity(n + 1),
            items: Vec::new(),
        };
        for block in func.blocks.values() {
            succs.start.push(succs.items.len() as u32);
            succs
                .items
                .extend(block.term.targets().iter().map(|t| t.block));
        }
        succs.start.push(succs.items.len() as u32);

        // Postorder with an explicit stack of (block, next successor).
        let mut index = vec![NONE; n];
        let mut rpo = Vec::new();
        let mut stack: Vec<(Block, usize)> = Vec::new();
        if let Some(entry) = func.entry() {
            index[entry.index()] = 0;
            stack.push((entry, 0));
        }
        while let Some((block, next)) = stack.last_mut() {
            // Successors are taken last to first, so that the order resembles the source order.
            let list = succs.get(*block);
            if *next < list.len() {
                let succ = list[list.len() - 1 - *next];
                *next += 1;
                if index[succ.index()] == NONE {
                    index[succ.index()] = 0;
                    stack.push((succ, 0));
                }
            } else {
                rpo.push(*block);
                stack.pop();
            }
        }
        rpo.reverse();
        for (i, block) in rpo.iter().enumerate() {
            index[block.index()] = i as u32;
        }

        let mut start = vec![0u32; n + 1];
        for &block in &rpo {
            for succ in succs.get(block) {
                start[succ.index() + 1] += 1;
            }
        }
        for i in 0..n {
            start[i + 1] += start[i];
        }
        let mut fill = start.clone();
        let mut items = vec![Block::new(0); start[n] as usize];
        let mut numbers = vec![0u32; start[n] as usize];
        for &block in &rpo {
            for (number, succ) in succs.get(block).iter().enumerate() {
                let slot = &mut fill[succ.index()];
                items[*slot as usize] = block;
                numbers[*slot as usize] = number as u32;
                *slot += 1;
            }
        }
        Self {
            succs,
            preds: Lists { start, items },
            numbers,
            rpo,
            index,
        }
    }

    /// Returns true if this is the graph of the function as it is now.
    pub fn is_of(&self, func: &Function) -> bool {
        self.succs.start.len() == func.blocks.len() + 1
            && self.rpo.first().copied() == func.entry()
            && func.blocks.iter().all(|(block, data)| {
                let targets = data.term.targets();
                let targets = targets.iter().map(|target| target.block);
                targets.eq(self.succs.get(block).iter().copied())
            })
    }

    /// Returns the successors of a block, one an edge, in the order of its terminator.
    pub fn succs(&self, block: Block) -> &[Block] {
        self.succs.get(block)
    }
    /// Returns the reachable predecessors of a block, one an edge.
    pub fn preds(&self, block: Block) -> &[Block] {
        self.preds.get(block)
    }
    /// Returns the reachable predecessors, each with the number of the target that leads to the
    /// block, one an edge ([`Terminator::target`]). This finds the edges of a long switch without a
    /// scan of its targets.
    ///
    /// [`Terminator::target`]: crate::ir::function::Terminator::target
    pub fn pred_edges(&self, block: Block) -> impl Iterator<Item = (Block, usize)> + '_ {
        let first = self.preds.start.get(block.index()).copied().unwrap_or(0) as usize;
        let numbers = self.numbers.get(first..).unwrap_or_default();
        let pairs = self.preds(block).iter().zip(numbers);
        pairs.map(|(&pred, &number)| (pred, number as usize))
    }
    /// Returns the only predecessor, if a single edge enters the block.
    pub fn single_pred(&self, block: Block) -> Option<Block> {
        match self.preds(block) {
            [pred] => Some(*pred),
            _ => None,
        }
    }
    /// Returns the reachable blocks in reverse postorder, the entry first.
    pub fn rpo(&self) -> &[Block] {
        &self.rpo
    }
    /// Returns the position of a block in [`Cfg::rpo`].
    pub fn rpo_index(&self, block: Block) -> Option<usize> {
        self.index
            .get(block.index())
            .filter(|&&i| i != NONE)
            .map(|&i| i as usize)
    }
    /// Returns true if the entry reaches the block.
    pub fn is_reachable(&self, block: Block) -> bool {
        self.rpo_index(block).is_some()
    }
    /// Returns the number of reachable blocks.
    pub fn len(&self) -> usize {
        self.rpo.len()
    }
    /// Returns true if the function has no body.
    pub fn is_empty(&self) -> bool {
        self.rpo.is_empty()
    }
}

/// Removes unreachable blocks from the layout. Returns true if there were any.
pub fn remove_unreachable(func: &mut Function, cfg: &Cfg) -> bool {
    let before = func.layout.len();
    func.layout.retain(|&b| cfg.is_reachable(b));
    func.layout.len() != before
}
