//! Keeps in memory what a loop computes for the code after it: SwiftShader computes the values of a loop again for work-items that
//! have left it, as long as others of their vector go on. Stores are made by active work-items alone.
//!
//! A phi node of the merge block would do, but SwiftShader's optimiser (that of SPIR-V Tools) removes those of one predecessor, and
//! variables whose index it knows, even volatile ones.

use crate::analysis::cfg::Cfg;
use crate::analysis::dom::DomTree;
use crate::edit::opaque::opaque_zero;
use crate::edit::rewrite::at_start;
use crate::edit::slots;
use crate::ir::entity::{Block, Value, Var};
use crate::ir::function::{Function, Merge};
use crate::ir::op::Op;
use crate::ir::types::Type;
use rustc_hash::FxHashMap;
use std::mem::take;

/// Runs the pass, after `structurize`. Returns true if anything changed.
pub fn run(func: &mut Function) -> bool {
    let Some(structure) = &func.structure else {
        return false;
    };
    let dom = DomTree::new(&Cfg::new(func));
    let mut loops = Vec::new();
    for &header in dom.preorder() {
        if let Some(Merge::Loop { merge, .. }) = structure.merges[header] {
            loops.push((header, merge));
        }
    }
    if loops.is_empty() {
        return false;
    }
    let mut index = None;
    at_start(func, |r| index = Some(opaque_zero(r, Type::I32)));
    let Some(index) = index else { return false };
    let mut keeper = Keeper {
        func,
        index,
        dom,
        loops,
        defined: FxHashMap::default(),
        vars: FxHashMap::default(),
        loads: FxHashMap::default(),
    };
    keeper.find_definitions();
    keeper.replace_uses();
    keeper.store();
    true
}

struct Keeper<'f> {
    func: &'f mut Function,
    /// A zero.
    index: Value,
    dom: DomTree,
    /// The header and the merge block of each loop, outer before inner.
    loops: Vec<(Block, Block)>,
    /// The innermost loop that computes each value.
    defined: FxHashMap<Value, usize>,
    /// The memory of each value that is kept.
    vars: FxHashMap<Value, Var>,
    /// The kept values that the current block has loaded.
    loads: FxHashMap<Value, Value>,
}

impl Keeper<'_> {
    fn is_inside(&self, index: usize, block: Block) -> bool {
        let (header, merge) = self.loops[index];
        self.dom.dominates(header, block) && !self.dom.dominates(merge, block)
    }

    fn find_definitions(&mut self) {
        for &block in self.dom.preorder() {
            let innermost = (0..self.loops.len())
                .rev()
                .find(|&index| self.is_inside(index, block));
            let Some(innermost) = innermost else { continue };
            let data = &self.func.blocks[block];
            let results = data
                .insts
                .iter()
                .flat_map(|&inst| &self.func.insts[inst].results);
            for &value in data.params.iter().chain(results) {
                if self.func.as_const(value).is_none() {
                    self.defined.insert(value, innermost);
                }
            }
        }
    }

    fn replace_uses(&mut self) {
        for block in self.func.layout.clone() {
            self.loads.clear();
            // What is loaded is appended to the block without them.
            let insts = take(&mut self.func.blocks[block].insts);
            for &inst in &insts {
                let mut args = take(&mut self.func.insts[inst].args);
                args.iter_mut()
                    .for_each(|arg| *arg = self.used(block, *arg));
                self.func.insts[inst].args = args;
            }
            let mut term = take(&mut self.func.blocks[block].term);
            term.map_uses(|value| self.used(block, value));
            self.func.blocks[block].term = term;
            self.func.blocks[block].insts.extend(insts);
        }
    }

    /// Returns the value itself, or in a block after its loop what was kept of it.
    fn used(&mut self, block: Block, value: Value) -> Value {
        match self.defined.get(&value) {
            Some(&index) if !self.is_inside(index, block) => {}
            _ => return value,
        }
        if let Some(&loaded) = self.loads.get(&value) {
            return loaded;
        }
        let ty = self.func.ty(value);
        let joined = self.func.def_inst(value).map(|inst| &self.func.insts[inst]);
        let joined = joined
            .filter(|data| data.op == Op::Join)
            .map(|data| data.args.clone());
        let loaded = if let Some(words) = joined {
            let words: Vec<Value> = words
                .into_iter()
                .map(|word| self.used(block, word))
                .collect();
            self.func.append1(block, Op::Join, words, ty)
        } else {
            let elem = match ty {
                Type::Bool => Type::I32,
                Type::Ptr(_) => Type::I64,
                ty => ty,
            };
            let var = *self
                .vars
                .entry(value)
                .or_insert_with(|| slots::add(self.func, elem));
            let stored = self
                .func
                .append1(block, Op::VarLoad(var), [self.index], elem);
            slots::from_memory(self.func, block, stored, ty)
        };
        self.loads.insert(value, loaded);
        loaded
    }

    /// Stores the values that are kept where they are computed.
    fn store(&mut self) {
        for block in self.func.layout.clone() {
            let insts = take(&mut self.func.blocks[block].insts);
            for value in self.func.blocks[block].params.clone() {
                self.store_value(block, value);
            }
            for inst in insts {
                self.func.blocks[block].insts.push(inst);
                for value in self.func.insts[inst].results.clone() {
                    self.store_value(block, value);
                }
            }
        }
    }

    fn store_value(&mut self, block: Block, value: Value) {
        let Some(&var) = self.vars.get(&value) else {
            return;
        };
        let elem = self.func.vars[var].elem;
        let stored = slots::to_memory(self.func, block, value, elem);
        self.func
            .append(block, Op::VarStore(var), [self.index, stored], &[]);
    }
}
