//! Any control-flow graph to the structured control flow of SPIR-V.
//!
//! Sets [`Function::structure`] and the order of the layout. No instruction is ever duplicated (only bare returns
//! are); where structure lacks a path, a selector parameter carries the choice through a dispatch (see `flow`).
//!
//! # Steps
//! 1. Returns are unified into one bare block; the graph is made reducible.
//! 2. Loops become canonical, inner ones first: a preheader; a header that does nothing but enter the body; one
//!    latch, the continue target, that does nothing but jump back; one merge block. A loop with several exit targets
//!    first takes in those exit blocks that lead to a common place anyway (the `found = 1; break;` of a source
//!    loop), unless they hold barriers; what is left shares a dispatch as merge block.
//! 3. SSA form is repaired.
//! 4. What is left in a loop body (inner loops count as one node) is acyclic. It is walked up its dominator tree. The
//!    blocks that a branch dominates and that have one predecessor are its *arms*; those with several are *joins*.
//!    Each arm, structured already, has at most one exit: a jump, or a dispatch when it has several targets. All
//!    exits of all arms meet in the merge block: the first join itself if it is the only target. Otherwise a
//!    dispatch, after which the joins follow in order, each guarded by a test of the selector.
//!
//!    The latch and the merge block of the innermost loop and the return block are *free* targets: they can be
//!    reached by a jump from any depth. They are used that way only where a dispatch would be needed otherwise, since
//!    work-items that meet again early stay together.
//!
//! Definitions keep dominating their uses in step 4: a join is only entered from blocks below its dominator, and its
//! arguments travel through the dispatches.

use super::flow::{drop_unreachable, Dispatch, Edit};
use super::{make_reducible, repair_ssa};
use crate::analysis::cfg::Cfg;
use crate::analysis::dom::DomTree;
use crate::analysis::loops::LoopForest;
use crate::error::{LowerError, Result};
use crate::ir::entity::{Block, Entity, SecondaryMap};
use crate::ir::function::{Function, Merge, Structure, Target, Terminator, Values};
use crate::ir::op::{Effect, IntCond, Op};
use crate::ir::types::Type;
use rustc_hash::{FxHashMap, FxHashSet};

/// Most blocks, and most instructions in all, that a loop takes in to unite its exits.
const ABSORB_BLOCKS: usize = 24;
const ABSORB_INSTS: usize = 256;

/// Runs the pass.
pub fn run(func: &mut Function) -> Result<()> {
    func.structure = None;
    let Some(entry) = func.entry() else {
        return Ok(());
    };
    drop_unreachable(func);
    let entry = fresh_entry(func, entry);
    narrow_switches(func);

    let mut edit = Edit::new(func, entry);
    for block in edit.func.layout.clone() {
        edit.split_duplicates(block);
    }
    let exit = unify_returns(&mut edit);
    drop_unreachable(edit.func);
    make_reducible::run(&mut edit);
    drop_unreachable(edit.func);
    let mut loops = Loops::find(&edit);
    loops.canonicalize(&mut edit, exit)?;
    edit.finish();
    drop_unreachable(func);
    repair_ssa::run(func);

    let mut edit = Edit::new(func, entry);
    let merges = Regions::new(&mut edit, &loops, exit).run()?;
    if let Some(exit) = exit {
        fold_return(&mut edit, exit);
    }
    edit.finish();
    func.layout = order(func, &merges);
    func.structure = Some(Structure { merges });
    Ok(())
}

/// The entry block must not be a jump target.
fn fresh_entry(func: &mut Function, old: Block) -> Block {
    let targeted = func
        .layout
        .iter()
        .any(|&b| func.blocks[b].term.targets().iter().any(|t| t.block == old));
    if !targeted {
        return old;
    }
    let new = func.add_block();
    let types: Vec<Type> = func.blocks[old]
        .params
        .iter()
        .map(|&p| func.ty(p))
        .collect();
    let args: Values = types
        .into_iter()
        .map(|ty| func.add_param(new, ty))
        .collect();
    func.blocks[new].term = Terminator::Jump(Target { block: old, args });
    func.layout.pop();
    func.layout.insert(0, new);
    new
}

/// Switches on integers that are not 32 bits wide are switches on 32 bits; a switch with one case is a branch.
fn narrow_switches(func: &mut Function) {
    for block in func.layout.clone() {
        let Terminator::Switch(value, cases, default) = func.blocks[block].term.clone() else {
            continue;
        };
        let ty = func.ty(value);
        if let [(bits, target)] = cases.as_slice() {
            let constant = func.append_const(block, ty, *bits);
            let cond = func.append1(block, Op::ICmp(IntCond::Eq), [value, constant], Type::Bool);
            func.blocks[block].term = Terminator::Branch(cond, target.clone(), default);
            continue;
        }
        match ty {
            Type::I8 | Type::I16 => {
                let wide = func.append1(block, Op::ZExt, [value], Type::I32);
                func.blocks[block].term = Terminator::Switch(wide, cases, default);
            }
            Type::I64 => {
                // A 32-bit value that no case has stands for all that does not fit.
                let fits = |bits: u64| bits as i64 == i64::from(bits as i32);
                let (small, large): (Vec<_>, Vec<_>) =
                    cases.into_iter().partition(|&(bits, _)| fits(bits));
                let taken: FxHashSet<u32> = small.iter().map(|&(bits, _)| bits as u32).collect();
                let Some(free) = (0..=u32::MAX).rev().find(|v| !taken.contains(v)) else {
                    continue;
                };
                let mut at = block;
                for (bits, target) in large {
                    let next = func.add_block();
                    let constant = func.append_const(at, ty, bits);
                    let cond =
                        func.append1(at, Op::ICmp(IntCond::Eq), [value, constant], Type::Bool);
                    func.blocks[at].term = Terminator::Branch(cond, target, Target::new(next));
                    at = next;
                }
                let low = func.append1(at, Op::Trunc, [value], Type::I32);
                let back = func.append1(at, Op::SExt, [low], Type::I64);
                let same = func.append1(at, Op::ICmp(IntCond::Eq), [back, value], Type::Bool);
                let other = func.append_const(at, Type::I32, free.into());
                let narrow = func.append1(at, Op::Select, [same, low, other], Type::I32);
                let cases = small
                    .into_iter()
                    .map(|(bits, t)| (bits & 0xffff_ffff, t))
                    .collect();
                func.blocks[at].term = Terminator::Switch(narrow, cases, default);
            }
            _ => {}
        }
    }
}

/// Makes all returns jumps to one block with nothing but a return.
fn unify_returns(edit: &mut Edit) -> Option<Block> {
    let returns: Vec<Block> = edit
        .func
        .layout
        .iter()
        .copied()
        .filter(|&b| matches!(edit.func.blocks[b].term, Terminator::Return(_)))
        .collect();
    if returns.is_empty() {
        return None;
    }
    let exit = edit.func.add_block();
    let types = edit.func.results.clone();
    let params: Values = types
        .into_iter()
        .map(|ty| edit.func.add_param(exit, ty))
        .collect();
    edit.set_term(exit, Terminator::Return(params));
    for block in returns {
        if let Terminator::Return(args) = edit.func.blocks[block].term.clone() {
            edit.set_term(block, Terminator::Jump(Target { block: exit, args }));
        }
    }
    Some(exit)
}

/// Puts the return back where it came from if there is only one place.
fn fold_return(edit: &mut Edit, exit: Block) {
    if edit.edges_in[exit] != 1 {
        return;
    }
    for block in edit.func.layout.clone() {
        if let Terminator::Jump(target) = edit.func.blocks[block].term.clone() {
            if target.block == exit {
                edit.set_term(block, Terminator::Return(target.args));
                return;
            }
        }
    }
}

/// Reverse postorder with merge blocks and continue targets after what comes before them.
fn order(func: &Function, merges: &SecondaryMap<Block, Option<Merge>>) -> Vec<Block> {
    let Some(entry) = func.entry() else {
        return Vec::new();
    };
    let mut seen: SecondaryMap<Block, bool> = SecondaryMap::new();
    let mut post = Vec::with_capacity(func.layout.len());
    let next = |block: Block| -> Vec<Block> {
        // Popped from the end: the merge block is visited first and so comes last.
        let mut list: Vec<Block> = func.blocks[block]
            .term
            .targets()
            .iter()
            .map(|t| t.block)
            .collect();
        match merges[block] {
            Some(Merge::Selection { merge }) => list.push(merge),
            Some(Merge::Loop { merge, cont }) => list.extend([cont, merge]),
            None => {}
        }
        list
    };
    seen[entry] = true;
    let mut walk = vec![(entry, next(entry))];
    while let Some((block, rest)) = walk.last_mut() {
        match rest.pop() {
            Some(s) if seen[s] => {}
            Some(s) => {
                seen[s] = true;
                let list = next(s);
                walk.push((s, list));
            }
            None => {
                post.push(*block);
                walk.pop();
            }
        }
    }
    post.reverse();
    post
}

/// A loop.
struct Loop {
    header: Block,
    parent: Option<usize>,
    depth: u32,
    /// Blocks in this loop and in no inner one.
    own: Vec<Block>,
    children: Vec<usize>,
    merge: Block,
    cont: Block,
}

/// All loops.
struct Loops {
    all: Vec<Loop>,
    /// The innermost loop of a block.
    of: SecondaryMap<Block, Option<usize>>,
    headed: SecondaryMap<Block, Option<usize>>,
    rpo: SecondaryMap<Block, u32>,
}

impl Loops {
    fn find(edit: &Edit) -> Self {
        let cfg = Cfg::new(edit.func);
        let dom = DomTree::new(&cfg);
        let forest = LoopForest::new(&cfg, &dom);
        let mut this = Self {
            all: Vec::new(),
            of: SecondaryMap::new(),
            headed: SecondaryMap::new(),
            rpo: SecondaryMap::new(),
        };
        for (id, l) in forest.loops.iter() {
            let parent = l.parent.map(|p| p.index());
            this.headed[l.header] = Some(id.index());
            this.all.push(Loop {
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
        for (i, &block) in cfg.rpo().iter().enumerate() {
            this.rpo[block] = i as u32;
            let of = forest.innermost(block).map(|l| l.index());
            this.assign(block, of);
        }
        this
    }

    fn assign(&mut self, block: Block, to: Option<usize>) {
        self.of[block] = to;
        if let Some(l) = to {
            self.all[l].own.push(block);
        }
    }

    fn contains(&self, l: usize, block: Block) -> bool {
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

    /// All blocks of a loop, inner loops included.
    fn blocks(&self, l: usize) -> Vec<Block> {
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

    fn canonicalize(&mut self, edit: &mut Edit, exit: Option<Block>) -> Result<()> {
        self.preheaders(edit);
        for l in (0..self.all.len()).rev() {
            self.canonical_loop(edit, l, exit)?;
        }
        Ok(())
    }

    /// Every header is entered by one jump.
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
                edit.retarget(block, i, Target { block: pre, args });
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
                |_, t| Target {
                    block: latch,
                    args: t.args,
                },
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
                            |_, t| Target {
                                block: merge,
                                args: t.args,
                            },
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
                Terminator::Jump(Target::new(body)),
            );
            edit.func.blocks[body].term = term;
            edit.edges_in[body] += 1;
        }
        Ok(())
    }

    /// Sends the edges of a block that satisfy a condition elsewhere.
    fn redirect(
        &mut self,
        edit: &mut Edit,
        block: Block,
        wanted: impl Fn(&Target) -> bool,
        mut new: impl FnMut(&mut Edit, Target) -> Target,
    ) {
        let targets: Vec<Target> = edit.func.blocks[block]
            .term
            .targets()
            .into_iter()
            .cloned()
            .collect();
        let mut touched = false;
        for (i, target) in targets.into_iter().enumerate() {
            if wanted(&target) {
                let target = new(edit, target);
                edit.retarget(block, i, target);
                touched = true;
            }
        }
        if touched {
            for made in edit.split_duplicates(block) {
                self.assign(made, self.of[block]);
            }
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
                Target::new(hop)
            },
        );
        for hop in new_blocks {
            self.assign(hop, of);
        }
    }

    /// Exit blocks that the loop takes in so that it has fewer exit targets.
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
        let mut insts = 0;
        while best > 1 && taken.len() < ABSORB_BLOCKS {
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
            insts += edit.func.blocks[block].insts.len();
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

/// How control leaves a structured piece of code: by the jump that ends a block, or from a dispatch without
/// terminator.
enum Exit {
    Jump(Block, Block),
    Dispatch(Dispatch),
}

impl Exit {
    fn targets(&self) -> Vec<Block> {
        match self {
            Self::Jump(_, target) => vec![*target],
            Self::Dispatch(d) => d.targets.iter().map(|&(t, _)| t).collect(),
        }
    }
}

/// Where the exits of the arms of a branch meet.
enum Meeting {
    /// At a block that is the target, or jumps there.
    Block(Block, Block),
    /// At a dispatch.
    Dispatch(Dispatch),
    /// They do not: no arm goes on.
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

/// Step 4.
struct Regions<'a, 'f> {
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
    fn new(edit: &'a mut Edit<'f>, loops: &'a Loops, exit: Option<Block>) -> Self {
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

    fn run(mut self) -> Result<SecondaryMap<Block, Option<Merge>>> {
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

    /// The exit of the code that begins with a block: for a header, of what follows the loop.
    fn take_exit(&mut self, block: Block) -> Option<Exit> {
        let at = match self.loops.headed[block] {
            Some(l) => self.loops.all[l].merge,
            None => block,
        };
        self.exits.get_mut(at.index()).and_then(Option::take)
    }

    /// Can the block be reached by a jump from any depth within the region of `from`?
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
        let targets: Vec<Target> = self.edit.func.blocks[block]
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

        // `if (c) break;`: the other arm simply goes on.
        if all.len() > 1
            && !is_switch
            && direct.len() == 1
            && arms.len() == 1
            && self.is_free(block, direct[0])
        {
            let (next, exit) = arms.remove(0);
            self.leave(block, direct[0]);
            self.merges[block] = Some(Merge::Selection { merge: next });
            return self.follow(block, exit);
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
                _ if !met => Target::new(self.return_block(target.args.clone())),
                Meeting::Block(at, _) => Target {
                    block: *at,
                    args: target.args.clone(),
                },
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
                self.edit.retarget(block, i, Target::new(hop));
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

    /// Which of the targets of a construct meet in its merge block; the others are free and stay direct.
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

    /// Makes the one block that the latch is entered from the continue target itself, so that it is free: the
    /// increment of a loop that several places `continue` to.
    fn promote(&mut self, block: Block) -> bool {
        let Some(l) = self.loops.of[block] else {
            return false;
        };
        let (latch, merge) = (self.conts[l], self.loops.all[l].merge);
        if !self.is_join[block] || self.edit.edges_in[latch] != 1 {
            return false;
        }
        let targets: Vec<Target> = self.edit.func.blocks[block]
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

    /// Makes the merge block of the construct below `root` for the targets, and sends the exits of the arms there.
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
                            Meeting::Block(at, _) => Target {
                                block: *at,
                                args: target.args,
                            },
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

    /// How control goes on from a merge block.
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
                Some(Exit::Dispatch(d)) if d.slot(join).is_some() => self.guarded(root, d, join),
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

    /// After a dispatch: the join if it is selected.
    fn guarded(&mut self, root: Block, dispatch: Dispatch, join: Block) -> Option<Exit> {
        let rest: Vec<Block> = dispatch
            .targets
            .iter()
            .map(|&(t, _)| t)
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
            Meeting::Block(at, target) => Target {
                block: *at,
                args: self.edit.unpack(&dispatch, *target).args,
            },
            Meeting::Dispatch(d) => self.edit.forward(&dispatch, d),
            Meeting::Never(at) => Target::new(*at),
        };
        self.edit
            .set_term(dispatch.block, Terminator::Branch(cond, yes, no));
        self.merges[dispatch.block] = Some(Merge::Selection {
            merge: meeting.block(),
        });
        self.after(meeting)
    }

    /// Turns the edges of a branch to a free target that is not met into what a free jump is.
    fn leave(&mut self, block: Block, to: Block) {
        if Some(to) != self.exit {
            return;
        }
        let targets: Vec<Target> = self.edit.func.blocks[block]
            .term
            .targets()
            .into_iter()
            .cloned()
            .collect();
        for (i, target) in targets.into_iter().enumerate() {
            if target.block == to {
                let hop = self.return_block(target.args);
                self.edit.retarget(block, i, Target::new(hop));
            }
        }
    }

    fn return_block(&mut self, args: Values) -> Block {
        let block = self.edit.func.add_block();
        self.edit.set_term(block, Terminator::Return(args));
        block
    }
}
