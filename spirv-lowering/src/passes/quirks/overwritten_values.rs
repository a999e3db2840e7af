//! Keeps in memory what a loop computes for the code after it: SwiftShader computes the values of a loop again for work-items that
//! have left it, as long as others of their vector go on. Stores are made by active work-items alone.
//!
//! A phi node of the merge block would do, but SwiftShader's optimiser (that of SPIR-V Tools) removes those of one predecessor, and
//! variables whose index it knows, even volatile ones.

use crate::analysis::cfg::Cfg;
use crate::analysis::dom::DomTree;
use crate::edit::opaque::opaque_zero;
use crate::edit::rewrite::at_start;
use crate::ir::entity::{Block, Inst, SecondaryMap, Value, Var};
use crate::ir::function::{Function, Merge, Storage, VarData, VarLen};
use crate::ir::op::{IntCond, Op};
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
        before: Vec::new(),
    };
    keeper.find_definitions();
    keeper.replace_uses();
    keeper.store();
    !keeper.vars.is_empty()
}

struct Keeper<'f> {
    func: &'f mut Function,
    /// A zero.
    index: Value,
    dom: DomTree,
    /// The header and the merge block of each loop, outer before inner.
    loops: Vec<(Block, Block)>,
    /// The block of each value, and the innermost loop that computes it.
    defined: FxHashMap<Value, (Block, usize)>,
    /// The memory of each value that is kept.
    vars: FxHashMap<Value, Var>,
    /// The kept values that the current block has loaded.
    loads: FxHashMap<Value, Value>,
    /// The instructions that load them.
    before: Vec<Inst>,
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
                    self.defined.insert(value, (block, innermost));
                }
            }
        }
    }

    fn replace_uses(&mut self) {
        for block in self.func.layout.clone() {
            self.loads.clear();
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
            let mut all = take(&mut self.before);
            all.extend(insts);
            self.func.blocks[block].insts = all;
        }
    }

    /// Returns the value itself, or in a block after its loop what was kept of it.
    fn used(&mut self, block: Block, value: Value) -> Value {
        match self.defined.get(&value) {
            Some(&(_, index)) if !self.is_inside(index, block) => {}
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
            self.before(Op::Join, words, ty)
        } else {
            let stored = stored_type(ty);
            let var = *self.vars.entry(value).or_insert_with(|| {
                self.func.vars.push(VarData {
                    storage: Storage::Function,
                    elem: stored,
                    lanes: 1,
                    volatile: false,
                    len: VarLen {
                        fixed: 1,
                        spec: Vec::new(),
                    },
                    alias: None,
                })
            });
            let loaded = self.before(Op::VarLoad(var), [self.index], stored);
            match ty {
                Type::Bool => {
                    let zero = self.before(Op::Const(0), [], Type::I32);
                    self.before(Op::ICmp(IntCond::Ne), [loaded, zero], ty)
                }
                Type::Ptr(_) => self.before(Op::IntToPtr, [loaded], ty),
                _ => loaded,
            }
        };
        self.loads.insert(value, loaded);
        loaded
    }

    fn before(&mut self, op: Op, args: impl IntoIterator<Item = Value>, ty: Type) -> Value {
        let inst = self.func.make_inst(op, args, &[ty]);
        self.before.push(inst);
        self.func.insts[inst].results[0]
    }

    /// Stores the values that are kept where they are computed.
    fn store(&mut self) {
        let mut kept: SecondaryMap<Block, Vec<Value>> = SecondaryMap::new();
        for &value in self.vars.keys() {
            kept[self.defined[&value].0].push(value);
        }
        for block in self.func.layout.clone() {
            if kept[block].is_empty() {
                continue;
            }
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
        let ty = self.func.ty(value);
        let stored = match ty {
            Type::Bool => self.func.append1(block, Op::ZExt, [value], Type::I32),
            Type::Ptr(_) => self.func.append1(block, Op::PtrToInt, [value], Type::I64),
            _ => value,
        };
        self.func
            .append(block, Op::VarStore(var), [self.index, stored], &[]);
    }
}

/// Returns the type that a value has in memory.
fn stored_type(ty: Type) -> Type {
    match ty {
        Type::Bool => Type::I32,
        Type::Ptr(_) => Type::I64,
        ty => ty,
    }
}
