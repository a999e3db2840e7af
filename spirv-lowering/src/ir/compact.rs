//! Copies function bodies: into another function (inlining), or into fresh arenas without the
//! remains of deleted code.

use super::entity::{Block, Entity, Value};
use super::function::{Edge, Function, Structure, Terminator, ValueDef};

const NONE: u32 = u32::MAX;

/// The new names of the blocks and values of a copied body.
pub struct CopyMap {
    values: Vec<u32>,
    blocks: Vec<u32>,
}

impl CopyMap {
    /// Creates an empty map for the entities of `source`.
    pub fn new(source: &Function) -> Self {
        Self {
            values: vec![NONE; source.values.len()],
            blocks: vec![NONE; source.blocks.len()],
        }
    }
    /// Returns the copy of a value. A value that was not copied keeps its name, which only invalid
    /// code uses.
    pub fn value(&self, value: Value) -> Value {
        match self.values.get(value.index()) {
            Some(&n) if n != NONE => Value::new(n as usize),
            _ => value,
        }
    }
    /// Returns the copy of a block.
    pub fn block(&self, block: Block) -> Block {
        match self.blocks.get(block.index()) {
            Some(&n) if n != NONE => Block::new(n as usize),
            _ => block,
        }
    }
    /// Records the copy of a value.
    pub fn set_value(&mut self, from: Value, to: Value) {
        if let Some(slot) = self.values.get_mut(from.index()) {
            *slot = to.index() as u32;
        }
    }
    /// Records the copy of a block.
    pub fn set_block(&mut self, from: Block, to: Block) {
        if let Some(slot) = self.blocks.get_mut(from.index()) {
            *slot = to.index() as u32;
        }
    }
    /// Returns the copy of a jump target.
    pub fn target(&self, target: &Edge) -> Edge {
        Edge::with(
            self.block(target.block),
            target.args.iter().map(|&v| self.value(v)),
        )
    }
    /// Returns the copy of a terminator.
    pub fn term(&self, term: &Terminator) -> Terminator {
        match term {
            Terminator::Jump(t) => Terminator::Jump(self.target(t)),
            Terminator::Branch(v, a, b) => {
                Terminator::Branch(self.value(*v), self.target(a), self.target(b))
            }
            Terminator::Switch(v, cases, default) => Terminator::Switch(
                self.value(*v),
                cases.iter().map(|(k, t)| (*k, self.target(t))).collect(),
                self.target(default),
            ),
            Terminator::Return(values) => {
                Terminator::Return(values.iter().map(|&v| self.value(v)).collect())
            }
            Terminator::Unreachable => Terminator::Unreachable,
        }
    }
    /// Copies the instructions of a block and appends them to `to`, with the operands of the
    /// source. [`CopyMap::fix_operands`] must follow once all blocks are copied.
    pub fn copy_insts(&mut self, source: &Function, from: Block, func: &mut Function, to: Block) {
        let insts = &source.blocks[from].insts;
        func.blocks[to].insts.reserve(insts.len());
        for &inst in insts {
            let mut data = source.insts[inst].clone();
            let copy = super::entity::Inst::new(func.insts.len());
            for (i, result) in data.results.iter_mut().enumerate() {
                let new = func.values.push(super::function::ValueData {
                    ty: source.values[*result].ty,
                    def: ValueDef::Result(copy, i as u32),
                });
                self.set_value(*result, new);
                *result = new;
            }
            func.insts.push(data);
            func.blocks[to].insts.push(copy);
        }
    }
    /// Renames the operands of instructions `first..` of `func`, which are copies.
    pub fn fix_operands(&self, func: &mut Function, first: usize) {
        for i in first..func.insts.len() {
            let data = &mut func.insts[super::entity::Inst::new(i)];
            data.args.iter_mut().for_each(|v| *v = self.value(*v));
        }
    }
}

/// Returns a copy of the function whose arenas hold only what the layout does, in layout order.
pub fn compact(source: &Function) -> Function {
    let mut func = Function {
        name: source.name.clone(),
        linkage: source.linkage,
        params: source.params.clone(),
        results: source.results.clone(),
        vars: source.vars.clone(),
        keeps_unwritten: source.keeps_unwritten,
        zeroed: source.zeroed,
        ..Function::default()
    };
    let mut map = CopyMap::new(source);
    for &block in &source.layout {
        let copy = func.add_block();
        map.set_block(block, copy);
        for &param in &source.blocks[block].params {
            let new = func.add_param(copy, source.values[param].ty);
            map.set_value(param, new);
        }
        map.copy_insts(source, block, &mut func, copy);
    }
    map.fix_operands(&mut func, 0);
    for &block in &source.layout {
        func.blocks[map.block(block)].term = map.term(&source.blocks[block].term);
    }
    if let Some(structure) = &source.structure {
        let mut copy = Structure::default();
        for &block in &source.layout {
            copy.merges[map.block(block)] = structure.merges[block].map(|m| match m {
                super::function::Merge::Selection { merge } => super::function::Merge::Selection {
                    merge: map.block(merge),
                },
                super::function::Merge::Loop { merge, cont } => super::function::Merge::Loop {
                    merge: map.block(merge),
                    cont: map.block(cont),
                },
            });
        }
        func.structure = Some(copy);
    }
    func
}
