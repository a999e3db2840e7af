//! A kernel in pieces: what a pack runs from the beginning or a barrier to the next barrier or the end.
//!
//! Each piece is a function of its own, with all that can be reached without passing a barrier, and gives the number of the
//! piece to go on with. Values that are needed behind a barrier are stored in front of it, in variables that lie in the
//! pack's frame: one for all lanes if they are uniform or affine. What can be computed again is not stored.

use super::classes::{is_invariant, Classes};
use super::strides::Class;
use super::tree::Tree;
use super::{Packing, Region};
use crate::analysis::live;
use crate::edit::flow::drop_unreachable;
use crate::edit::{repair_ssa, slots};
use crate::error::{LowerError, Result};
use crate::ir::compact::compact;
use crate::ir::entity::{Block, Inst, SecondaryMap, Value, Var};
use crate::ir::function::{BlockData, Edge, Function, Terminator, ValueDef};
use crate::ir::op::{Effect, HwVar, Op, Scope};
use crate::ir::types::Type;
use crate::passes::{clean, structurize};
use rustc_hash::{FxHashMap, FxHashSet};

/// Operations that are computed again rather than stored, for one value.
const MOST_AGAIN: usize = 12;

fn is_barrier(func: &Function, inst: Inst) -> bool {
    matches!(
        func.insts[inst].op,
        Op::Barrier {
            exec: Scope::WorkGroup | Scope::Device | Scope::AllDevices,
            ..
        }
    )
}

/// Cuts a kernel at its barriers.
pub fn split(func: &Function, packing: Packing) -> Result<Vec<Region>> {
    let mut whole = func.clone();
    structurize::run(&mut whole)?;
    let has_barrier = whole
        .layout
        .iter()
        .any(|&b| whole.blocks[b].insts.iter().any(|&i| is_barrier(&whole, i)));
    let whole = Region::whole(whole);
    if !has_barrier {
        return Ok(vec![whole]);
    }
    let tree = Tree::new(&whole.func)?;
    let classes = Classes::new(&whole, &tree, packing);
    let func = Function {
        structure: None,
        ..whole.func
    };
    Cutter::new(func, classes).run()
}

struct Cutter {
    func: Function,
    classes: Classes,
    uniform: SecondaryMap<Var, bool>,
    vars: FxHashMap<Value, Var>,
    /// Blocks that end with a barrier, and where it goes on.
    barriers: Vec<(Block, Block)>,
}

impl Cutter {
    fn new(func: Function, classes: Classes) -> Self {
        Self {
            func,
            classes,
            uniform: SecondaryMap::new(),
            vars: FxHashMap::default(),
            barriers: Vec::new(),
        }
    }

    fn run(mut self) -> Result<Vec<Region>> {
        self.cut_blocks();
        let live = live::at_beginnings(&self.func);
        let mut kept: Vec<Vec<Value>> = Vec::new();
        for &(_, next) in &self.barriers.clone() {
            let mut values: Vec<Value> = live[next].iter().copied().collect();
            values.sort();
            // What is computed again from what is stored needs no place.
            values.retain(|&v| self.again(v).is_none());
            for &value in &values {
                self.var(value);
            }
            kept.push(values);
        }
        let Some(entry) = self.func.entry() else {
            return Err(LowerError::internal("a kernel without blocks"));
        };
        let mut regions = vec![self.region(entry, &[], &[], &kept)?];
        for (i, &(_, next)) in self.barriers.clone().iter().enumerate() {
            let mut all: Vec<Value> = live[next].iter().copied().collect();
            all.sort();
            regions.push(self.region(next, &all, &kept[i], &kept)?);
        }
        Ok(regions)
    }

    /// Ends blocks at their barriers.
    fn cut_blocks(&mut self) {
        let mut work: Vec<Block> = self.func.layout.clone();
        while let Some(block) = work.pop() {
            let insts = &self.func.blocks[block].insts;
            let Some(at) = insts.iter().position(|&i| is_barrier(&self.func, i)) else {
                continue;
            };
            let rest = self.func.blocks[block].insts.split_off(at + 1);
            self.func.blocks[block].insts.pop();
            let term = std::mem::take(&mut self.func.blocks[block].term);
            let next = self.func.blocks.push(BlockData {
                params: Vec::new(),
                insts: rest,
                term,
            });
            self.func.layout.push(next);
            self.func.blocks[block].term = Terminator::Jump(Edge::new(next));
            self.barriers.push((block, next));
            work.push(next);
        }
    }

    /// Returns the instructions that compute a value from nothing, in order, if they are few.
    fn again(&self, value: Value) -> Option<Vec<Inst>> {
        let mut order = Vec::new();
        let mut seen = FxHashSet::default();
        self.again_into(value, &mut order, &mut seen)
            .then_some(order)
    }

    fn again_into(&self, value: Value, order: &mut Vec<Inst>, seen: &mut FxHashSet<Inst>) -> bool {
        let func = &self.func;
        let Some(inst) = func.def_inst(value) else {
            // Parameters of the kernel are there everywhere.
            return matches!(func.values[value].def, ValueDef::Param(b, _) if Some(b) == func.entry());
        };
        if !seen.insert(inst) {
            return true;
        }
        let data = &func.insts[inst];
        if seen.len() > MOST_AGAIN {
            return false;
        }
        if !is_invariant(data.op) {
            let slow = matches!(
                data.op,
                Op::SDiv | Op::UDiv | Op::SRem | Op::URem | Op::FRem | Op::FDiv | Op::FSqrt
            );
            if data.op.effect() != Effect::Pure || slow || matches!(data.op, Op::Alloca { .. }) {
                return false;
            }
        }
        if !data.args.iter().all(|&a| self.again_into(a, order, seen)) {
            return false;
        }
        order.push(inst);
        true
    }

    /// Returns the class of a value at any place.
    fn class(&self, value: Value) -> Class {
        match self.classes.escaping.contains(&value) {
            true => Class::Varying,
            false => self.classes.of(value),
        }
    }

    /// Returns the place of a value in the frame.
    fn var(&mut self, value: Value) -> Var {
        if let Some(&var) = self.vars.get(&value) {
            return var;
        }
        let elem = match self.func.ty(value) {
            Type::Bool => Type::I8,
            Type::Ptr(_) | Type::Handle => Type::I64,
            other => other,
        };
        let var = slots::add(&mut self.func, elem);
        self.uniform[var] = self.class(value) != Class::Varying;
        self.vars.insert(value, var);
        var
    }

    fn region(
        &self,
        entry: Block,
        live: &[Value],
        stored: &[Value],
        kept: &[Vec<Value>],
    ) -> Result<Region> {
        let mut func = self.func.clone();
        let first = func.entry().unwrap_or(entry);
        let ends: FxHashMap<Block, usize> = self
            .barriers
            .iter()
            .enumerate()
            .map(|(i, &(block, _))| (block, i))
            .collect();
        func.results = vec![Type::I32];
        // Stores in front of barriers.
        let mut stores: Vec<(Inst, Value)> = Vec::new();
        for (&block, &i) in &ends {
            for &value in &kept[i] {
                if let Some(store) = self.store(&mut func, block, value) {
                    stores.push((store, value));
                }
            }
            let number = func.append_const(block, Type::I32, i as u64 + 1);
            func.blocks[block].term = Terminator::Return([number].into_iter().collect());
        }
        for block in func.layout.clone() {
            if matches!(func.blocks[block].term, Terminator::Return(_))
                && !ends.contains_key(&block)
            {
                let number = func.append_const(block, Type::I32, 0);
                func.blocks[block].term = Terminator::Return([number].into_iter().collect());
            }
        }
        if entry != first || !live.is_empty() {
            let params: Vec<Value> = func.blocks[first].params.clone();
            let start = func.blocks.push(BlockData::default());
            func.layout.retain(|&b| b != start);
            func.layout.insert(0, start);
            let mut new: FxHashMap<Value, Value> = FxHashMap::default();
            for &param in &params {
                let ty = func.ty(param);
                let copy = func.add_param(start, ty);
                new.insert(param, copy);
            }
            for &value in stored {
                let loaded = self.load(&mut func, start, value);
                new.insert(value, loaded);
            }
            for &value in live {
                self.repeat(&mut func, start, value, &mut new);
            }
            func.blocks[start].term = Terminator::Jump(Edge::new(entry));
            drop_unreachable(&mut func);
            let pairs: Vec<(Value, Value)> = live
                .iter()
                .chain(&params)
                .filter_map(|&v| Some((v, *new.get(&v)?)))
                .collect();
            repair_ssa::bring_in(&mut func, &pairs);
            // What has not changed lies there already.
            let same: FxHashSet<Value> = new.values().copied().collect();
            let needless: FxHashSet<Inst> = stores
                .iter()
                .filter(|&&(store, value)| {
                    let now = func.insts[store].args.get(1).copied();
                    now.is_some_and(|v| {
                        let v = through(&func, v);
                        same.contains(&v) && new.get(&value) == Some(&v)
                    })
                })
                .map(|&(store, _)| store)
                .collect();
            for block in func.layout.clone() {
                func.blocks[block].insts.retain(|i| !needless.contains(i));
            }
        } else {
            drop_unreachable(&mut func);
        }
        clean(&mut func);
        let mut func = compact(&func);
        structurize::run(&mut func)?;
        Ok(Region {
            func,
            uniform: self.uniform.clone(),
            varying: Vec::new(),
        })
    }

    fn store(&self, func: &mut Function, block: Block, value: Value) -> Option<Inst> {
        let var = *self.vars.get(&value)?;
        let elem = func.vars[var].elem;
        let zero = func.append_const(block, Type::I32, 0);
        let stored = slots::to_memory(func, block, value, elem);
        Some(func.append(block, Op::VarStore(var), [zero, stored], &[]))
    }

    fn load(&self, func: &mut Function, block: Block, value: Value) -> Value {
        let Some(&var) = self.vars.get(&value) else {
            return value;
        };
        let ty = func.ty(value);
        let elem = func.vars[var].elem;
        let zero = func.append_const(block, Type::I32, 0);
        let mut loaded = func.append1(block, Op::VarLoad(var), [zero], elem);
        if let (true, Class::Affine(stride)) = (self.uniform[var], self.class(value)) {
            let lane = func.append1(block, Op::Hw(HwVar::SubgroupInvocationId), [], Type::I32);
            let lane = match elem.bits().cmp(&32) {
                std::cmp::Ordering::Less => func.append1(block, Op::Trunc, [lane], elem),
                std::cmp::Ordering::Equal => lane,
                std::cmp::Ordering::Greater => func.append1(block, Op::ZExt, [lane], elem),
            };
            let by = func.append_const(block, elem, stride as u64);
            let steps = func.append1(block, Op::IMul, [lane, by], elem);
            loaded = func.append1(block, Op::IAdd, [loaded, steps], elem);
        }
        slots::from_memory(func, block, loaded, ty)
    }

    /// Computes a value again.
    fn repeat(
        &self,
        func: &mut Function,
        block: Block,
        value: Value,
        new: &mut FxHashMap<Value, Value>,
    ) {
        if new.contains_key(&value) {
            return;
        }
        let Some(order) = self.again(value) else {
            return;
        };
        for inst in order {
            let data = self.func.insts[inst].clone();
            let result = data.results[0];
            if new.contains_key(&result) {
                continue;
            }
            let args: Vec<Value> = data
                .args
                .iter()
                .map(|a| new.get(a).copied().unwrap_or(*a))
                .collect();
            let types: Vec<Type> = data.results.iter().map(|&r| func.ty(r)).collect();
            let copy = func.append(block, data.op, args, &types);
            func.insts[copy].fp = data.fp;
            for (&old, &made) in data.results.iter().zip(&func.insts[copy].results.clone()) {
                new.insert(old, made);
            }
        }
    }
}

/// Returns the value that a store converts.
fn through(func: &Function, value: Value) -> Value {
    match func.def_inst(value) {
        Some(inst) if matches!(func.insts[inst].op, Op::PtrToInt) => func.insts[inst].args[0],
        Some(inst)
            if func.insts[inst].op == Op::ZExt
                && func.ty(func.insts[inst].args[0]) == Type::Bool =>
        {
            func.insts[inst].args[0]
        }
        _ => value,
    }
}
