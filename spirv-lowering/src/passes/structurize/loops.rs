//! Step 2: makes loops canonical, inner ones first.

use crate::analysis::control_flow::ControlFlow;
use crate::edit::flow::Edit;
use crate::error::Result;
use crate::ir::entity::{Block, Entity, SecondaryMap};
use crate::ir::function::{Edge, Terminator, Values};
use crate::ir::op::Effect;
use rustc_hash::FxHashMap;

/// The most blocks, and the most instructions in all, that a loop absorbs to unite its exits. Small
/// blocks, such as `return x + 1`, do not count.
const ABSORB_BLOCKS: usize = 24;
const ABSORB_INSTS: usize = 256;
const SMALL_BLOCK: usize = 6;

/// A loop.
pub(super) struct StructuredLoop {
    pub(super) header: Block,
    pub(super) parent: Option<usize>,
    pub(super) depth: u32,
    /// The blocks in this loop and in no inner one.
    pub(super) own: Vec<Block>,
    pub(super) children: Vec<usize>,
    pub(super) merge: Block,
    pub(super) cont: Block,
}

/// All loops.
pub(super) struct Loops {
    pub(super) all: Vec<StructuredLoop>,
    /// The innermost loop of a block.
    pub(super) of: SecondaryMap<Block, Option<usize>>,
    pub(super) headed: SecondaryMap<Block, Option<usize>>,
    pub(super) rpo: SecondaryMap<Block, u32>,
}

impl Loops {
    /// Finds the loops of a reducible function.
    pub(super) fn find(edit: &Edit) -> Self {
        let flow = ControlFlow::new(edit.func);
        let forest = flow.loops();
        let mut this = Self {
            all: Vec::new(),
            of: SecondaryMap::new(),
            headed: SecondaryMap::new(),
            rpo: SecondaryMap::new(),
        };
        for (id, l) in forest.loops.iter() {
            let parent = l.parent.map(|p| p.index());
            this.headed[l.header] = Some(id.index());
            this.all.push(StructuredLoop {
                header: l.header,
                parent,
                depth: l.depth,
                own: Vec::new(),
                children: Vec::new(),
                merge: l.header,
                cont: l.header,
            });
            if let Some(parent) = parent {
                this.all[parent].children.push(id.index());
            }
        }
        for (i, &block) in flow.cfg.rpo().iter().enumerate() {
            this.rpo[block] = i as u32;
            let of = forest.innermost(block).map(|l| l.index());
            this.assign(block, of);
        }
        this
    }

    /// Puts a block into a loop, or in none.
    pub(super) fn assign(&mut self, block: Block, to: Option<usize>) {
        self.of[block] = to;
        if let Some(l) = to {
            self.all[l].own.push(block);
        }
    }

    /// Returns true if a block is in a loop or in one within it.
    pub(super) fn contains(&self, l: usize, block: Block) -> bool {
        let mut at = self.of[block];
        while let Some(i) = at {
            if i == l {
                return true;
            }
            if self.all[i].depth <= self.all[l].depth {
                return false;
            }
            at = self.all[i].parent;
        }
        false
    }

    /// Returns all blocks of a loop, inner loops included.
    pub(super) fn blocks(&self, l: usize) -> Vec<Block> {
        let mut out = Vec::new();
        let mut work = vec![l];
        while let Some(l) = work.pop() {
            // A block taken in by another loop since is still listed.
            out.extend(
                self.all[l]
                    .own
                    .iter()
                    .copied()
                    .filter(|&b| self.of[b] == Some(l)),
            );
            work.extend(&self.all[l].children);
        }
        out
    }

    /// Gives every loop a preheader, one latch and one merge block.
    pub(super) fn canonicalize(&mut self, edit: &mut Edit, exit: Option<Block>) -> Result<()> {
        self.preheaders(edit);
        for l in (0..self.all.len()).rev() {
            self.canonical_loop(edit, l, exit)?;
        }
        Ok(())
    }

    /// Makes every header have a single entering jump, from a preheader.
    fn preheaders(&mut self, edit: &mut Edit) {
        let mut entries: Vec<Vec<(Block, usize)>> = vec![Vec::new(); self.all.len()];
        for &block in &edit.func.layout {
            for (i, target) in edit.func.blocks[block]
                .term
                .targets()
                .into_iter()
                .enumerate()
            {
                if let Some(l) = self.headed[target.block] {
                    if !self.contains(l, block) {
                        entries[l].push((block, i));
                    }
                }
            }
        }
        for (l, edges) in entries.into_iter().enumerate() {
            if let [(block, _)] = edges.as_slice() {
                if matches!(edit.func.blocks[*block].term, Terminator::Jump(_)) {
                    continue;
                }
            }
            let header = self.all[l].header;
            let pre = edit.forwarder(header);
            self.rpo[pre] = self.rpo[header];
            self.assign(pre, self.all[l].parent);
            for (block, i) in edges {
                let args = edit.func.blocks[block].term.targets()[i].args.clone();
                edit.retarget(block, i, Edge::with(pre, args));
            }
        }
    }

    fn canonical_loop(&mut self, edit: &mut Edit, l: usize, exit: Option<Block>) -> Result<()> {
        let header = self.all[l].header;
        let parent = self.all[l].parent;
        let blocks = self.blocks(l);

        // One latch.
        let latch = edit.forwarder(header);
        self.assign(latch, Some(l));
        self.all[l].cont = latch;
        for &block in &blocks {
            self.redirect(
                edit,
                block,
                |t| t.block == header,
                |_, t| Edge::with(latch, t.args),
            );
        }

        // Exits; bare returns stay inside when there are others.
        let mut targets: FxHashMap<Block, u32> = FxHashMap::default();
        for &block in &blocks {
            for target in edit.func.blocks[block].term.targets() {
                if !self.contains(l, target.block) {
                    *targets.entry(target.block).or_default() += 1;
                }
            }
        }
        let mut blocks = blocks;
        for block in self.absorb(edit, l, targets.clone(), exit) {
            targets.remove(&block);
            for target in edit.func.blocks[block].term.targets() {
                *targets.entry(target.block).or_default() += 1;
            }
            self.assign(block, Some(l));
            blocks.push(block);
        }
        targets.retain(|&t, _| !self.contains(l, t));
        if let Some(exit) = exit {
            if targets.len() > 1 && targets.contains_key(&exit) {
                for &block in &blocks {
                    self.return_here(edit, block, exit);
                }
                targets.remove(&exit);
            }
        }

        // One merge block.
        let mut list: Vec<Block> = targets.keys().copied().collect();
        list.sort_by_key(|&b| (self.rpo[b], b));
        let merge = match list.as_slice() {
            [] => edit.func.add_block(),
            &[target] => {
                let own = self.of[target] == parent
                    && self.headed[target].is_none()
                    && Some(target) != exit
                    && edit.edges_in[target] == targets[&target];
                if own {
                    target
                } else {
                    let merge = edit.forwarder(target);
                    for &block in &blocks {
                        self.redirect(
                            edit,
                            block,
                            |t| t.block == target,
                            |_, t| Edge::with(merge, t.args),
                        );
                    }
                    merge
                }
            }
            _ => {
                let dispatch = edit.dispatch(&list);
                for &block in &blocks {
                    self.redirect(
                        edit,
                        block,
                        |t| targets.contains_key(&t.block),
                        |edit, t| edit.via(&dispatch, t),
                    );
                }
                edit.end_dispatch(&dispatch);
                dispatch.block
            }
        };
        if list.first() != Some(&merge) {
            self.rpo[merge] = list.first().map_or(self.rpo[header], |&t| self.rpo[t]);
            self.assign(merge, parent);
        }
        self.all[l].merge = merge;

        // A header that does nothing else, unless it is the whole loop.
        let bare = match &edit.func.blocks[header].term {
            Terminator::Jump(t) => t.block != merge && t.block != latch,
            Terminator::Branch(_, a, b) => {
                (a.block == latch && b.block == merge) || (a.block == merge && b.block == latch)
            }
            _ => false,
        };
        if !bare {
            let body = edit.func.add_block();
            self.assign(body, Some(l));
            let insts = std::mem::take(&mut edit.func.blocks[header].insts);
            edit.func.blocks[body].insts = insts;
            let term = std::mem::replace(
                &mut edit.func.blocks[header].term,
                Terminator::Jump(Edge::new(body)),
            );
            edit.func.blocks[body].term = term;
            edit.edges_in[body] += 1;
        }
        Ok(())
    }

    /// Redirects edges (see [`Edit::redirect`]); new blocks are in the same loop.
    fn redirect(
        &mut self,
        edit: &mut Edit,
        block: Block,
        wanted: impl Fn(&Edge) -> bool,
        new: impl FnMut(&mut Edit, Edge) -> Edge,
    ) {
        for made in edit.redirect(block, wanted, new) {
            self.assign(made, self.of[block]);
        }
    }

    /// Replaces jumps of a block to the return block by returns.
    fn return_here(&mut self, edit: &mut Edit, block: Block, exit: Block) {
        if let Terminator::Jump(target) = edit.func.blocks[block].term.clone() {
            if target.block == exit {
                edit.set_term(block, Terminator::Return(target.args));
            }
            return;
        }
        let of = self.of[block];
        let mut made: FxHashMap<Values, Block> = FxHashMap::default();
        let mut new_blocks = Vec::new();
        self.redirect(
            edit,
            block,
            |t| t.block == exit,
            |edit, t| {
                let hop = *made.entry(t.args.clone()).or_insert_with(|| {
                    let hop = edit.func.add_block();
                    edit.set_term(hop, Terminator::Return(t.args.clone()));
                    new_blocks.push(hop);
                    hop
                });
                Edge::new(hop)
            },
        );
        for hop in new_blocks {
            self.assign(hop, of);
        }
    }

    /// Finds the exit blocks that the loop absorbs so that it has fewer exit targets.
    fn absorb(
        &self,
        edit: &Edit,
        l: usize,
        mut targets: FxHashMap<Block, u32>,
        exit: Option<Block>,
    ) -> Vec<Block> {
        let parent = self.all[l].parent;
        let count = |t: &FxHashMap<Block, u32>| t.keys().filter(|&&b| Some(b) != exit).count();
        let mut best = count(&targets);
        let mut best_len = 0;
        let mut taken: Vec<Block> = Vec::new();
        let (mut large, mut insts) = (0, 0);
        while best > 1 && large < ABSORB_BLOCKS {
            let next = targets
                .iter()
                .filter(|&(&b, &edges)| {
                    Some(b) != exit
                        && self.of[b] == parent
                        && self.headed[b].is_none()
                        && edit.edges_in[b] == edges
                        && !edit.func.blocks[b]
                            .insts
                            .iter()
                            .any(|&i| edit.func.insts[i].op.effect() == Effect::Convergent)
                })
                .map(|(&b, _)| b)
                .min_by_key(|&b| (self.rpo[b], b));
            let Some(block) = next else { break };
            let length = edit.func.blocks[block].insts.len();
            if length > SMALL_BLOCK {
                large += 1;
                insts += length;
            }
            if insts > ABSORB_INSTS {
                break;
            }
            targets.remove(&block);
            taken.push(block);
            for target in edit.func.blocks[block].term.targets() {
                *targets.entry(target.block).or_default() += 1;
            }
            if count(&targets) < best {
                best = count(&targets);
                best_len = taken.len();
            }
        }
        taken.truncate(best_len);
        taken
    }
}
