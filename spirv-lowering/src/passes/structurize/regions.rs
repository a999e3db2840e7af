//! Step 4: gives acyclic regions their merge blocks, up the dominator tree.

use super::loops::Loops;
use crate::analysis::cfg::Cfg;
use crate::analysis::dom::DomTree;
use crate::edit::flow::{DispatchBlock, Edit};
use crate::error::{LowerError, Result};
use crate::ir::entity::{Block, Entity, SecondaryMap};
use crate::ir::function::{Edge, Merge, Terminator, Values};
use rustc_hash::{FxHashMap, FxHashSet};

/// The exit of a structured region: by the jump that ends a block, or from a dispatch without
/// terminator.
enum Exit {
    Jump(Block, Block),
    Dispatch(DispatchBlock),
}

impl Exit {
    fn targets(&self) -> Vec<Block> {
        match self {
            Self::Jump(_, target) => vec![*target],
            Self::Dispatch(d) => d.targets.iter().map(|(t, _)| *t).collect(),
        }
    }
}

/// The place where the exits of a branch's arms meet.
enum Meeting {
    /// A block that is the target, or jumps there.
    Block(Block, Block),
    /// At a dispatch.
    Dispatch(DispatchBlock),
    /// No place, because no arm continues.
    Never(Block),
}

impl Meeting {
    fn block(&self) -> Block {
        match self {
            Self::Block(b, _) | Self::Never(b) => *b,
            Self::Dispatch(d) => d.block,
        }
    }
}

/// The state of step 4.
pub(super) struct Regions<'a, 'f> {
    edit: &'a mut Edit<'f>,
    loops: &'a Loops,
    exit: Option<Block>,
    rpo: Vec<Block>,
    position: SecondaryMap<Block, u32>,
    /// The continue target of each loop.
    conts: Vec<Block>,
    is_latch: SecondaryMap<Block, bool>,
    is_join: SecondaryMap<Block, bool>,
    /// Joins by immediate dominator, in order.
    joins: SecondaryMap<Block, Vec<Block>>,
    idom: SecondaryMap<Block, Option<Block>>,
    exits: Vec<Option<Exit>>,
    consumed: SecondaryMap<Block, bool>,
    merges: SecondaryMap<Block, Option<Merge>>,
}

impl<'a, 'f> Regions<'a, 'f> {
    /// Begins with a function whose loops are canonical.
    pub(super) fn new(edit: &'a mut Edit<'f>, loops: &'a Loops, exit: Option<Block>) -> Self {
        let cfg = Cfg::new(edit.func);
        let dom = DomTree::new(&cfg);
        let mut position = SecondaryMap::new();
        let mut is_latch = SecondaryMap::new();
        let mut is_merge: SecondaryMap<Block, bool> = SecondaryMap::new();
        for l in &loops.all {
            is_latch[l.cont] = true;
            is_merge[l.merge] = true;
        }
        let mut is_join: SecondaryMap<Block, bool> = SecondaryMap::new();
        let mut joins: SecondaryMap<Block, Vec<Block>> = SecondaryMap::new();
        let mut idom = SecondaryMap::new();
        for (i, &block) in cfg.rpo().iter().enumerate() {
            position[block] = i as u32;
            idom[block] = dom.idom(block);
            let special = is_latch[block]
                || is_merge[block]
                || Some(block) == exit
                || loops.headed[block].is_some();
            let preds = cfg.preds(block);
            if !special && preds.iter().any(|p| Some(p) != preds.first()) {
                is_join[block] = true;
                if let Some(up) = dom.idom(block) {
                    joins[up].push(block);
                }
            }
        }
        let count = edit.func.blocks.len();
        Self {
            edit,
            loops,
            exit,
            rpo: cfg.rpo().to_vec(),
            position,
            conts: loops.all.iter().map(|l| l.cont).collect(),
            is_latch,
            is_join,
            joins,
            idom,
            exits: (0..count).map(|_| None).collect(),
            consumed: SecondaryMap::new(),
            merges: SecondaryMap::new(),
        }
    }

    /// Structures all regions. Returns the merges of their headers.
    pub(super) fn run(mut self) -> Result<SecondaryMap<Block, Option<Merge>>> {
        for l in &self.loops.all {
            self.merges[l.header] = Some(Merge::Loop {
                merge: l.merge,
                cont: l.cont,
            });
        }
        for block in std::mem::take(&mut self.rpo).into_iter().rev() {
            if !self.is_latch[block] {
                let exit = self.node(block)?;
                self.set_exit(block, exit);
            }
        }
        Ok(self.merges)
    }

    fn set_exit(&mut self, block: Block, exit: Option<Exit>) {
        if let Some(slot) = self.exits.get_mut(block.index()) {
            *slot = exit;
        }
    }

    /// Removes and returns the exit of the code that begins with a block; for a header, the exit of
    /// what follows the loop.
    fn take_exit(&mut self, block: Block) -> Option<Exit> {
        let at = match self.loops.headed[block] {
            Some(l) => self.loops.all[l].merge,
            None => block,
        };
        self.exits.get_mut(at.index()).and_then(Option::take)
    }

    /// Returns true if the block can be reached by a jump from any depth within the region of
    /// `from`.
    fn is_free(&self, from: Block, target: Block) -> bool {
        if Some(target) == self.exit {
            return true;
        }
        match self.loops.of[from] {
            Some(l) => target == self.conts[l] || target == self.loops.all[l].merge,
            None => false,
        }
    }

    fn node(&mut self, block: Block) -> Result<Option<Exit>> {
        match self.edit.func.blocks[block].term.clone() {
            Terminator::Return(_) | Terminator::Unreachable => Ok(None),
            Terminator::Jump(target) => {
                let to = target.block;
                if self.is_join[to] || self.is_free(block, to) {
                    Ok(Some(Exit::Jump(block, to)))
                } else {
                    Ok(self.take_exit(to))
                }
            }
            Terminator::Branch(_, a, b) => {
                if a.block != b.block
                    && Some(a.block) != self.exit
                    && Some(b.block) != self.exit
                    && self.is_free(block, a.block)
                    && self.is_free(block, b.block)
                {
                    return Ok(None);
                }
                self.selection(block)
            }
            Terminator::Switch(..) => self.selection(block),
        }
    }

    fn selection(&mut self, block: Block) -> Result<Option<Exit>> {
        let targets: Vec<Edge> = self.edit.func.blocks[block]
            .term
            .targets()
            .into_iter()
            .cloned()
            .collect();
        let is_switch = matches!(self.edit.func.blocks[block].term, Terminator::Switch(..));
        let mut direct: Vec<Block> = Vec::new();
        let mut arms: Vec<(Block, Option<Exit>)> = Vec::new();
        let mut seen: FxHashSet<Block> = FxHashSet::default();
        for target in &targets {
            let to = target.block;
            if seen.insert(to) {
                if self.is_join[to] || self.is_free(block, to) {
                    direct.push(to);
                } else {
                    let exit = self.take_exit(to);
                    arms.push((to, exit));
                }
            }
        }
        let mut all: Vec<Block> = direct.clone();
        for (_, exit) in &arms {
            all.extend(exit.iter().flat_map(Exit::targets));
        }
        all.sort_by_key(|&b| (self.position[b], b));
        all.dedup();

        // Whether one arm leaves, and the other goes on or has left, too.
        let leaves = !is_switch && (all.len() > 1 || arms.iter().any(|(_, exit)| exit.is_none()));
        // `if (c) break;`: the other arm simply goes on.
        if leaves && direct.len() == 1 && arms.len() == 1 && self.is_free(block, direct[0]) {
            let (next, exit) = arms.remove(0);
            self.leave(block, direct[0]);
            self.merges[block] = Some(Merge::Selection { merge: next });
            return self.follow(block, exit);
        }

        // `if (c) { found = 1; break; }`: so does it here.
        if leaves && direct.is_empty() && arms.len() == 2 {
            if let Some(at) = arms.iter().position(|(_, exit)| self.leaves(block, exit)) {
                let (_, left) = arms.remove(at);
                if let Some(Exit::Jump(from, to)) = left {
                    self.leave(from, to);
                }
                let (next, exit) = arms.remove(0);
                self.merges[block] = Some(Merge::Selection { merge: next });
                return self.follow(block, exit);
            }
        }

        let wanted = self.wanted(block, all);
        let meeting = self.meet(
            block,
            &wanted,
            arms.into_iter().filter_map(|(_, exit)| exit).collect(),
        );
        // The block's own edges to what is not an arm.
        let mut hops: FxHashMap<Block, Block> = FxHashMap::default();
        for (i, target) in targets.iter().enumerate() {
            let to = target.block;
            if !direct.contains(&to) {
                continue;
            }
            let met = wanted.contains(&to);
            let new = match &meeting {
                _ if !met && Some(to) != self.exit => target.clone(),
                _ if !met => Edge::new(self.return_block(target.args.clone())),
                Meeting::Block(at, _) => Edge::with(*at, target.args.clone()),
                Meeting::Dispatch(d) => self.edit.via(d, target.clone()),
                Meeting::Never(_) => target.clone(),
            };
            let plain = met && matches!(meeting, Meeting::Block(..));
            if !is_switch || plain {
                self.edit.retarget(block, i, new);
            } else {
                // A case must be a block of the construct, and all edges to the merge block must agree.
                let hop = match hops.get(&to) {
                    Some(&hop) => hop,
                    None => {
                        let hop = if Some(to) == self.exit && !met {
                            new.block
                        } else {
                            let hop = self.edit.func.add_block();
                            self.edit.set_term(hop, Terminator::Jump(new));
                            hop
                        };
                        hops.insert(to, hop);
                        hop
                    }
                };
                self.edit.retarget(block, i, Edge::new(hop));
            }
        }
        if !is_switch {
            self.edit.split_duplicates(block);
        }
        if !matches!(self.edit.func.blocks[block].term, Terminator::Jump(_)) {
            self.merges[block] = Some(Merge::Selection {
                merge: meeting.block(),
            });
        }
        let exit = self.after(meeting);
        self.follow(block, exit)
    }

    /// Returns true if an arm of a block ends with a jump out of the innermost loop or a return.
    fn leaves(&self, block: Block, exit: &Option<Exit>) -> bool {
        let &Some(Exit::Jump(_, to)) = exit else {
            return false;
        };
        self.is_free(block, to) && !self.is_latch[to]
    }

    /// Returns the targets of a construct that its merge block must dispatch to; the others are
    /// free and stay direct.
    fn wanted(&mut self, from: Block, all: Vec<Block>) -> Vec<Block> {
        if all.len() < 2 {
            return all;
        }
        let mut bound: Vec<Block> = all
            .iter()
            .copied()
            .filter(|&t| !self.is_free(from, t))
            .collect();
        if bound.len() > 1 {
            if let Some(at) = bound.iter().position(|&t| self.promote(t)) {
                bound.remove(at);
            }
        }
        if !bound.is_empty() {
            return bound;
        }
        let cont = all.iter().copied().find(|&t| self.is_latch[t]);
        cont.or(all.first().copied()).into_iter().collect()
    }

    /// Makes the only predecessor of the latch the continue target itself, so that it is free: the
    /// increment of a loop that several places `continue` to. Returns true if that was possible.
    fn promote(&mut self, block: Block) -> bool {
        let Some(l) = self.loops.of[block] else {
            return false;
        };
        let (latch, merge) = (self.conts[l], self.loops.all[l].merge);
        if !self.is_join[block] || self.edit.edges_in[latch] != 1 {
            return false;
        }
        let targets: Vec<Edge> = self.edit.func.blocks[block]
            .term
            .targets()
            .into_iter()
            .cloned()
            .collect();
        let Some(at) = targets.iter().position(|t| t.block == latch) else {
            return false;
        };
        if targets.iter().any(|t| t.block != latch && t.block != merge) {
            return false;
        }
        let header = self.loops.all[l].header;
        // The latch passes on its parameters, and values that dominate it.
        let Terminator::Jump(mut back) = self.edit.func.blocks[latch].term.clone() else {
            return false;
        };
        for arg in &mut back.args {
            let param = self.edit.func.blocks[latch]
                .params
                .iter()
                .position(|p| p == arg);
            if let Some(&given) = param.and_then(|i| targets[at].args.get(i)) {
                *arg = given;
            }
        }
        self.edit.retarget(block, at, back);
        self.conts[l] = block;
        self.is_latch[block] = true;
        self.consumed[block] = true;
        self.take_exit(block);
        self.merges[header] = Some(Merge::Loop { merge, cont: block });
        true
    }

    /// Makes the merge block of the construct below `root` for the targets, and redirects the exits
    /// of the arms there.
    fn meet(&mut self, root: Block, wanted: &[Block], exits: Vec<Exit>) -> Meeting {
        let meeting = match wanted {
            [] => Meeting::Never(self.edit.func.add_block()),
            &[target] => {
                if self.is_join[target] && !self.is_latch[target] && self.idom[target] == Some(root)
                {
                    Meeting::Block(target, target)
                } else {
                    Meeting::Block(self.edit.forwarder(target), target)
                }
            }
            _ => Meeting::Dispatch(self.edit.dispatch(wanted)),
        };
        for exit in exits {
            match exit {
                Exit::Jump(from, to) => {
                    let Terminator::Jump(target) = self.edit.func.blocks[from].term.clone() else {
                        continue;
                    };
                    if wanted.contains(&to) {
                        let new = match &meeting {
                            Meeting::Block(at, _) => Edge::with(*at, target.args),
                            Meeting::Dispatch(d) => self.edit.via(d, target),
                            Meeting::Never(_) => continue,
                        };
                        self.edit.set_term(from, Terminator::Jump(new));
                    } else if Some(to) == self.exit {
                        self.edit.set_term(from, Terminator::Return(target.args));
                    }
                }
                Exit::Dispatch(from) => {
                    if let Meeting::Dispatch(d) = &meeting {
                        let new = self.edit.forward(&from, d);
                        self.edit.set_term(from.block, Terminator::Jump(new));
                    }
                }
            }
        }
        meeting
    }

    /// Returns the exit of the code from a merge block.
    fn after(&mut self, meeting: Meeting) -> Option<Exit> {
        match meeting {
            Meeting::Never(_) => None,
            Meeting::Block(at, target) if at == target => {
                self.consumed[target] = true;
                self.take_exit(target)
            }
            Meeting::Block(at, target) => Some(Exit::Jump(at, target)),
            Meeting::Dispatch(d) => Some(Exit::Dispatch(d)),
        }
    }

    /// Appends the joins of a block, in order, to the code that begins with it.
    fn follow(&mut self, root: Block, mut exit: Option<Exit>) -> Result<Option<Exit>> {
        for join in std::mem::take(&mut self.joins[root]) {
            if self.consumed[join] {
                continue;
            }
            exit = match exit {
                Some(Exit::Jump(_, to)) if to == join => self.take_exit(join),
                Some(Exit::Dispatch(d)) if d.slots(join).is_some() => self.guarded(root, d, join),
                _ => {
                    return Err(LowerError::internal(format!(
                        "structurize: nothing leads to {join} below {root}"
                    )))
                }
            };
            self.consumed[join] = true;
        }
        Ok(exit)
    }

    /// Enters the join after a dispatch, if the selector selects it.
    fn guarded(&mut self, root: Block, dispatch: DispatchBlock, join: Block) -> Option<Exit> {
        let rest: Vec<Block> = dispatch
            .targets
            .iter()
            .map(|(t, _)| *t)
            .filter(|&t| t != join)
            .collect();
        let arm = self.take_exit(join);
        let mut all = rest.clone();
        all.extend(arm.iter().flat_map(Exit::targets));
        all.sort_by_key(|&b| (self.position[b], b));
        all.dedup();
        let wanted = self.wanted(root, all);
        let meeting = self.meet(root, &wanted, arm.into_iter().collect());
        let cond = self.edit.is_selected(&dispatch, join);
        let yes = self.edit.unpack(&dispatch, join);
        let no = match &meeting {
            Meeting::Block(at, target) => {
                Edge::with(*at, self.edit.unpack(&dispatch, *target).args)
            }
            Meeting::Dispatch(d) => self.edit.forward(&dispatch, d),
            Meeting::Never(at) => Edge::new(*at),
        };
        self.edit
            .set_term(dispatch.block, Terminator::Branch(cond, yes, no));
        self.merges[dispatch.block] = Some(Merge::Selection {
            merge: meeting.block(),
        });
        self.after(meeting)
    }

    /// Makes the edges of a branch to a free target free jumps.
    fn leave(&mut self, block: Block, to: Block) {
        if Some(to) != self.exit {
            return;
        }
        let targets: Vec<Edge> = self.edit.func.blocks[block]
            .term
            .targets()
            .into_iter()
            .cloned()
            .collect();
        for (i, target) in targets.into_iter().enumerate() {
            if target.block == to {
                let hop = self.return_block(target.args);
                self.edit.retarget(block, i, Edge::new(hop));
            }
        }
    }

    fn return_block(&mut self, args: Values) -> Block {
        let block = self.edit.func.add_block();
        self.edit.set_term(block, Terminator::Return(args));
        block
    }
}
