//! Keeps in memory what a loop computes for the code after it. Stores are made by active work-items alone.
//!
//! SwiftShader computes the values of a loop again for work-items that have left it, as long as others of their vector go on. Since
//! Mesa 25 llvmpipe jumps over branches that no work-item takes, and so over what they compute, even if the only way out of the loop
//! is in one: the LLVM IR that uses it after the loop is invalid.
//!
//! A phi node of the merge block would do, but the optimisers of both (that of SPIR-V Tools, and NIR's) remove those of one
//! predecessor, and variables whose index they know, even volatile ones.

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

/// The values that are kept in memory.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum LoopValues {
    /// Every value that is used after the loop.
    All,
    /// The values of branches: of blocks that not every iteration of the loop executes.
    OfBranches,
}

/// Runs the pass, after `structurize`. Returns true if anything changed.
pub fn run(func: &mut Function, kept: LoopValues) -> bool {
    let definitions = Definitions::new(func, kept);
    if !definitions.are_used_after_loops(func) {
        return false;
    }
    let mut index = None;
    at_start(func, |r| index = Some(opaque_zero(r, Type::I32)));
    let Some(index) = index else { return false };
    let mut keeper = Keeper {
        func,
        index,
        definitions,
        vars: FxHashMap::default(),
        loads: FxHashMap::default(),
    };
    keeper.replace_uses();
    keeper.store();
    true
}

struct Loop {
    header: Block,
    merge: Block,
    cont: Block,
}

/// The values of loops that may be kept.
struct Definitions {
    dom: DomTree,
    /// Outer before inner.
    loops: Vec<Loop>,
    /// The innermost loop after which each value is kept.
    loop_of: FxHashMap<Value, usize>,
}

impl Definitions {
    fn new(func: &Function, kept: LoopValues) -> Self {
        let dom = DomTree::new(&Cfg::new(func));
        let mut definitions = Self {
            dom,
            loops: Vec::new(),
            loop_of: FxHashMap::default(),
        };
        let Some(structure) = &func.structure else {
            return definitions;
        };
        for &header in definitions.dom.preorder() {
            if let Some(Merge::Loop { merge, cont }) = structure.merges[header] {
                definitions.loops.push(Loop {
                    header,
                    merge,
                    cont,
                });
            }
        }
        for &block in definitions.dom.preorder() {
            let is_left = |&index: &usize| {
                let every_iteration = || {
                    definitions
                        .dom
                        .dominates(block, definitions.loops[index].cont)
                };
                definitions.is_inside(index, block)
                    && (kept == LoopValues::All || !every_iteration())
            };
            let count = definitions.loops.len();
            let Some(innermost) = (0..count).rev().find(is_left) else {
                continue;
            };
            let data = &func.blocks[block];
            let results = data
                .insts
                .iter()
                .flat_map(|&inst| &func.insts[inst].results);
            for &value in data.params.iter().chain(results) {
                if func.as_const(value).is_none() {
                    definitions.loop_of.insert(value, innermost);
                }
            }
        }
        definitions
    }

    fn is_inside(&self, index: usize, block: Block) -> bool {
        let &Loop { header, merge, .. } = &self.loops[index];
        self.dom.dominates(header, block) && !self.dom.dominates(merge, block)
    }

    /// Returns true if the block is after the value's loop.
    fn is_used_after(&self, block: Block, value: Value) -> bool {
        self.loop_of
            .get(&value)
            .is_some_and(|&index| !self.is_inside(index, block))
    }

    fn are_used_after_loops(&self, func: &Function) -> bool {
        func.layout.iter().any(|&block| {
            let data = &func.blocks[block];
            let mut args = data.insts.iter().flat_map(|&inst| &func.insts[inst].args);
            let mut any = args.any(|&arg| self.is_used_after(block, arg));
            data.term
                .for_each_use(|value| any |= self.is_used_after(block, value));
            any
        })
    }
}

struct Keeper<'f> {
    func: &'f mut Function,
    /// A zero.
    index: Value,
    definitions: Definitions,
    /// The memory of each value that is kept.
    vars: FxHashMap<Value, Var>,
    /// The kept values that the current block has loaded.
    loads: FxHashMap<Value, Value>,
}

impl Keeper<'_> {
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
        if !self.definitions.is_used_after(block, value) {
            return value;
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
