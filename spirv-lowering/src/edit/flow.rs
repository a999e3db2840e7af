//! Edits control flow, for the passes that restructure it.
//!
//! A *dispatch* is a block with a selector parameter (the index of the target block) and the
//! parameters of several targets: a jump to it passes the selector of its target, with arguments for
//! that target and undefined values for the others. The parameters stand side by side, so that what
//! is the same for all work-items stays so, until they are many: then the targets share them.

use crate::ir::entity::{Block, Entity, Inst, SecondaryMap, Value};
use crate::ir::function::{Edge, Function, Terminator, Values};
use crate::ir::op::{IntCond, Op};
use crate::ir::types::Type;
use rustc_hash::FxHashMap;

/// The most parameters of a dispatch whose targets have parameters of their own. A switch of which
/// many cases fall through has a dispatch after each case, to all that follow.
const MOST_SEPARATE: usize = 12;

/// A block that several targets share; see the module description.
#[derive(Debug, Clone)]
pub struct DispatchBlock {
    /// The block.
    pub block: Block,
    /// The targets, each with the positions of its parameters among those of the block.
    pub targets: Vec<(Block, Vec<usize>)>,
}

impl DispatchBlock {
    /// Returns the positions of a target's parameters among those of the block.
    pub fn slots(&self, target: Block) -> Option<&[usize]> {
        let found = self.targets.iter().find(|(t, _)| *t == target);
        found.map(|(_, slots)| slots.as_slice())
    }
}

/// A function being edited.
pub struct Edit<'f> {
    /// The function.
    pub func: &'f mut Function,
    entry: Block,
    consts: FxHashMap<(Type, u64), Value>,
    undefs: FxHashMap<Type, Value>,
    prologue: Vec<Inst>,
    /// The number of edges into each block. [`Edit::set_term`] and [`Edit::retarget`] keep it up to
    /// date.
    pub edges_in: SecondaryMap<Block, u32>,
}

impl<'f> Edit<'f> {
    /// Starts editing. All blocks of the layout must be reachable.
    pub fn new(func: &'f mut Function, entry: Block) -> Self {
        let mut edges_in: SecondaryMap<Block, u32> = SecondaryMap::new();
        for &block in &func.layout {
            for target in func.blocks[block].term.targets() {
                edges_in[target.block] += 1;
            }
        }
        Self {
            func,
            entry,
            consts: FxHashMap::default(),
            undefs: FxHashMap::default(),
            prologue: Vec::new(),
            edges_in,
        }
    }

    /// Returns a constant, defined at the start of the function.
    pub fn constant(&mut self, ty: Type, bits: u64) -> Value {
        if let Some(&value) = self.consts.get(&(ty, bits)) {
            return value;
        }
        let inst = self.func.make_inst(Op::Const(bits & ty.mask()), [], &[ty]);
        self.prologue.push(inst);
        let value = self.func.insts[inst].results[0];
        self.consts.insert((ty, bits), value);
        value
    }

    /// Returns an undefined value, defined at the start of the function.
    pub fn undef(&mut self, ty: Type) -> Value {
        if let Some(&value) = self.undefs.get(&ty) {
            return value;
        }
        let inst = self.func.make_inst(Op::Undef, [], &[ty]);
        self.prologue.push(inst);
        let value = self.func.insts[inst].results[0];
        self.undefs.insert(ty, value);
        value
    }

    /// Inserts the new constants.
    pub fn finish(mut self) {
        let entry = self.entry;
        let rest = std::mem::take(&mut self.func.blocks[entry].insts);
        self.prologue.extend(rest);
        self.func.blocks[entry].insts = std::mem::take(&mut self.prologue);
    }

    /// Replaces a terminator.
    pub fn set_term(&mut self, block: Block, term: Terminator) {
        for target in self.func.blocks[block].term.targets() {
            self.edges_in[target.block] = self.edges_in[target.block].saturating_sub(1);
        }
        for target in term.targets() {
            self.edges_in[target.block] += 1;
        }
        self.func.blocks[block].term = term;
    }

    /// Replaces target number `index` of a terminator.
    pub fn retarget(&mut self, block: Block, index: usize, new: Edge) {
        let mut term = std::mem::take(&mut self.func.blocks[block].term);
        if let Some(target) = term.targets_mut().into_iter().nth(index) {
            self.edges_in[target.block] = self.edges_in[target.block].saturating_sub(1);
            self.edges_in[new.block] += 1;
            *target = new;
        }
        self.func.blocks[block].term = term;
    }

    /// Adds a block with parameters of the types of `like`'s.
    pub fn block_like(&mut self, like: Block) -> Block {
        let types: Vec<Type> = self.func.blocks[like]
            .params
            .iter()
            .map(|&p| self.func.ty(p))
            .collect();
        let block = self.func.add_block();
        for ty in types {
            self.func.add_param(block, ty);
        }
        block
    }

    /// Adds a block that takes the parameters of `to` and jumps there with them.
    pub fn forwarder(&mut self, to: Block) -> Block {
        let block = self.block_like(to);
        let args = Values::from_slice(&self.func.blocks[block].params);
        self.set_term(block, Terminator::Jump(Edge::with(to, args)));
        block
    }

    /// Adds a dispatch block, without terminator.
    pub fn dispatch(&mut self, targets: &[Block]) -> DispatchBlock {
        let block = self.func.add_block();
        self.func.add_param(block, Type::I32);
        let params_of = |func: &Function, target: Block| -> Vec<Type> {
            let params = func.blocks[target].params.iter();
            params.map(|&param| func.ty(param)).collect()
        };
        let counts = targets.iter().map(|&t| self.func.blocks[t].params.len());
        let are_shared = counts.sum::<usize>() > MOST_SEPARATE;
        let mut shared: FxHashMap<Type, Vec<usize>> = FxHashMap::default();
        let mut slots = Vec::with_capacity(targets.len());
        for &target in targets {
            let mut used: FxHashMap<Type, usize> = FxHashMap::default();
            let mut own = Vec::new();
            for ty in params_of(self.func, target) {
                let of_type = shared.entry(ty).or_default();
                let number = used.entry(ty).or_default();
                let slot = match of_type.get(*number) {
                    Some(&slot) if are_shared => slot,
                    _ => {
                        of_type.push(self.func.blocks[block].params.len());
                        self.func.add_param(block, ty);
                        self.func.blocks[block].params.len() - 1
                    }
                };
                *number += 1;
                own.push(slot);
            }
            slots.push((target, own));
        }
        DispatchBlock {
            block,
            targets: slots,
        }
    }

    /// Returns the edge to a dispatch that leads to `to`.
    pub fn via(&mut self, dispatch: &DispatchBlock, to: Edge) -> Edge {
        let mut args = self.undefined_args(dispatch);
        args[0] = self.constant(Type::I32, to.block.index() as u64);
        let slots = dispatch.slots(to.block).unwrap_or_default();
        for (&slot, &arg) in slots.iter().zip(&to.args) {
            args[slot] = arg;
        }
        Edge::with(dispatch.block, args)
    }

    fn undefined_args(&mut self, dispatch: &DispatchBlock) -> Values {
        let params = self.func.blocks[dispatch.block].params.clone();
        let undefined = |&param| self.undef(self.func.ty(param));
        params.iter().map(undefined).collect()
    }

    /// Returns the edge from one dispatch to another that keeps the selector.
    pub fn forward(&mut self, from: &DispatchBlock, to: &DispatchBlock) -> Edge {
        let have = self.func.blocks[from.block].params.clone();
        let mut args = self.undefined_args(to);
        args[0] = have[0];
        for (target, slots) in &to.targets {
            let Some(given) = from.slots(*target) else {
                continue;
            };
            for (&slot, &given) in slots.iter().zip(given) {
                let (before, given) = (args[slot], have[given]);
                args[slot] = match before == given || self.is_undef(before) {
                    true => given,
                    // They share it here alone.
                    false => {
                        let chosen = self.is_selected(from, *target);
                        let ty = self.func.ty(given);
                        let operands = [chosen, given, before];
                        self.func.append1(from.block, Op::Select, operands, ty)
                    }
                };
            }
        }
        Edge::with(to.block, args)
    }

    /// Returns the edge from a dispatch to a target, with the arguments that the dispatch received.
    pub fn unpack(&self, dispatch: &DispatchBlock, target: Block) -> Edge {
        let params = &self.func.blocks[dispatch.block].params;
        let slots = dispatch.slots(target).unwrap_or_default();
        let args: Values = slots.iter().map(|&slot| params[slot]).collect();
        Edge::with(target, args)
    }

    /// Ends a dispatch with a branch or switch to all its targets.
    pub fn end_dispatch(&mut self, dispatch: &DispatchBlock) {
        let selector = self.func.blocks[dispatch.block].params[0];
        let mut targets: Vec<Edge> = dispatch
            .targets
            .iter()
            .map(|(t, _)| self.unpack(dispatch, *t))
            .collect();
        let Some(last) = targets.pop() else { return };
        let term = match targets.len() {
            0 => Terminator::Jump(last),
            1 => {
                let first = targets.remove(0);
                let cond = self.is_selected(dispatch, first.block);
                Terminator::Branch(cond, first, last)
            }
            _ => Terminator::Switch(
                selector,
                targets
                    .into_iter()
                    .map(|t| (t.block.index() as u64, t))
                    .collect(),
                last,
            ),
        };
        self.set_term(dispatch.block, term);
    }

    /// Computes in a dispatch whether `target` is selected.
    pub fn is_selected(&mut self, dispatch: &DispatchBlock, target: Block) -> Value {
        let selector = self.func.blocks[dispatch.block].params[0];
        let id = self.constant(Type::I32, target.index() as u64);
        self.func.append1(
            dispatch.block,
            Op::ICmp(IntCond::Eq),
            [selector, id],
            Type::Bool,
        )
    }

    fn is_undef(&self, value: Value) -> bool {
        self.func
            .def_inst(value)
            .is_some_and(|i| matches!(self.func.insts[i].op, Op::Undef))
    }

    /// Redirects the edges of a block that satisfy a condition. Returns new blocks.
    pub fn redirect(
        &mut self,
        block: Block,
        wanted: impl Fn(&Edge) -> bool,
        mut new: impl FnMut(&mut Self, Edge) -> Edge,
    ) -> Vec<Block> {
        let targets = self.func.blocks[block].term.targets();
        let targets: Vec<Edge> = targets.into_iter().cloned().collect();
        let mut touched = false;
        for (i, target) in targets.into_iter().enumerate() {
            if wanted(&target) {
                let target = new(self, target);
                self.retarget(block, i, target);
                touched = true;
            }
        }
        if touched {
            self.split_duplicates(block)
        } else {
            Vec::new()
        }
    }

    /// Splits edges so that all edges from a block to one target pass the same arguments, and a
    /// branch has two different targets. Returns new blocks.
    pub fn split_duplicates(&mut self, block: Block) -> Vec<Block> {
        let mut made = Vec::new();
        match self.func.blocks[block].term.clone() {
            Terminator::Branch(cond, a, b) if a.block == b.block => {
                let mut args = Values::new();
                for (&x, &y) in a.args.iter().zip(&b.args) {
                    args.push(if x == y || self.is_undef(y) {
                        x
                    } else if self.is_undef(x) {
                        y
                    } else {
                        let ty = self.func.ty(x);
                        self.func.append1(block, Op::Select, [cond, x, y], ty)
                    });
                }
                self.set_term(block, Terminator::Jump(Edge::with(a.block, args)));
            }
            Terminator::Switch(_, cases, default) => {
                if cases.is_empty() {
                    self.set_term(block, Terminator::Jump(default));
                    return made;
                }
                let mut first: FxHashMap<Block, Values> = FxHashMap::default();
                let targets: Vec<Edge> =
                    cases.into_iter().map(|(_, t)| t).chain([default]).collect();
                for (i, target) in targets.into_iter().enumerate() {
                    match first.get(&target.block) {
                        Some(args) if *args != target.args => {
                            let hop = self.func.add_block();
                            self.set_term(hop, Terminator::Jump(target));
                            self.retarget(block, i, Edge::new(hop));
                            made.push(hop);
                        }
                        Some(_) => {}
                        None => {
                            first.insert(target.block, target.args);
                        }
                    }
                }
            }
            _ => {}
        }
        made
    }
}

/// Removes unreachable blocks from the layout, and orders the others in reverse postorder.
pub fn drop_unreachable(func: &mut Function) {
    let cfg = crate::analysis::cfg::Cfg::new(func);
    func.layout = cfg.rpo().to_vec();
}
