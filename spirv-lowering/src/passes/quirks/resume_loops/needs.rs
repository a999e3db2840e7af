//! Finds what a loop needs to resume: the values that are live at its check and cannot be
//! recomputed. They are kept in variables, so that the block that restores them need not dominate
//! their uses.

use super::emit::{stored, variable, Emit};
use crate::analysis::live;
use crate::ir::entity::{Block, Inst, Value};
use crate::ir::function::{Function, Values};
use crate::ir::op::Effect;
use rustc_hash::FxHashMap;

/// Values that a work-item stores, at most.
const MAX_VALUES: usize = 32;

/// The values that the loops need to resume.
pub(super) struct Needs {
    /// For each loop the values beside the parameters of its check.
    pub kept: Vec<Vec<Value>>,
    /// The variables that those are kept in.
    pub variables: FxHashMap<Value, Value>,
    /// The most values that one loop needs, its parameters included.
    pub most: usize,
}

impl Needs {
    /// Finds it and puts the values into variables; what can be computed anew is, in the first block. None: a loop needs too
    /// much, or what cannot be stored.
    pub fn new(func: &mut Function, checks: &[Block], first: Block) -> Option<Self> {
        let mut home: FxHashMap<Inst, Block> = FxHashMap::default();
        for &block in &func.layout {
            home.extend(func.blocks[block].insts.iter().map(|&inst| (inst, block)));
        }
        let live = live::at_beginnings(func);
        let mut needs = Self {
            kept: Vec::new(),
            variables: FxHashMap::default(),
            most: 0,
        };
        for &check in checks {
            let mut set: Vec<Value> = live[check].iter().copied().collect();
            set.sort_unstable();
            let mut kept = Vec::new();
            for value in set {
                if !hoist(func, value, first, &mut home) {
                    stored(func.ty(value))?;
                    kept.push(value);
                }
            }
            let params = &func.blocks[check].params;
            if params.iter().any(|&v| stored(func.ty(v)).is_none()) {
                return None;
            }
            needs.kept.push(kept);
        }
        // What one loop could not have moved may have been moved for another.
        for (kept, &check) in needs.kept.iter_mut().zip(checks) {
            let moved = |v: Value| {
                let inst = func.def_inst(v);
                inst.and_then(|inst| home.get(&inst)) == Some(&first)
            };
            kept.retain(|&v| !moved(v));
            needs.most = needs.most.max(kept.len() + func.blocks[check].params.len());
        }
        if needs.most > MAX_VALUES {
            return None;
        }
        for &value in needs.kept.iter().flatten() {
            let variables = &mut needs.variables;
            variables
                .entry(value)
                .or_insert_with(|| variable(func, first));
        }
        demote(func, &needs.variables, first);
        Some(needs)
    }
}

/// Moves a value's computation, as far as it depends on nothing but itself, to the first block.
fn hoist(
    func: &mut Function,
    value: Value,
    first: Block,
    home: &mut FxHashMap<Inst, Block>,
) -> bool {
    fn movable(
        func: &Function,
        value: Value,
        first: Block,
        home: &FxHashMap<Inst, Block>,
        depth: u32,
    ) -> bool {
        let Some(inst) = func.def_inst(value) else {
            return false;
        };
        let data = &func.insts[inst];
        home.get(&inst) == Some(&first)
            || (depth < 16
                && data.op.effect() == Effect::Pure
                && data
                    .args
                    .iter()
                    .all(|&arg| movable(func, arg, first, home, depth + 1)))
    }
    fn moved(func: &mut Function, value: Value, first: Block, home: &mut FxHashMap<Inst, Block>) {
        let Some(inst) = func.def_inst(value) else {
            return;
        };
        let Some(block) = home.insert(inst, first).filter(|&block| block != first) else {
            return;
        };
        for arg in func.insts[inst].args.clone() {
            moved(func, arg, first, home);
        }
        func.blocks[block].insts.retain(|&i| i != inst);
        func.blocks[first].insts.push(inst);
    }
    let can = movable(func, value, first, home, 0);
    if can {
        moved(func, value, first, home);
    }
    can
}

/// Keeps values in variables: a store after each definition, a load before each use.
fn demote(func: &mut Function, variables: &FxHashMap<Value, Value>, except: Block) {
    for block in func.layout.clone() {
        if block == except {
            continue;
        }
        let insts = std::mem::take(&mut func.blocks[block].insts);
        let params = func.blocks[block].params.clone();
        let mut e = Emit {
            func,
            out: Vec::with_capacity(insts.len()),
        };
        let put = |e: &mut Emit, value: Value| {
            if let Some(&variable) = variables.get(&value) {
                let packed = e.pack(value);
                e.store(variable, packed);
            }
        };
        let get = |e: &mut Emit, value: Value| match variables.get(&value) {
            Some(&variable) => {
                let ty = e.func.ty(value);
                let loaded = e.load(variable, stored(ty).unwrap_or(ty));
                e.unpack(loaded, ty)
            }
            None => value,
        };
        for param in params {
            put(&mut e, param);
        }
        for inst in insts {
            let args: Values = e.func.insts[inst].args.clone();
            let args: Values = args.into_iter().map(|v| get(&mut e, v)).collect();
            e.func.insts[inst].args = args;
            e.out.push(inst);
            for result in e.func.insts[inst].results.clone() {
                put(&mut e, result);
            }
        }
        let mut term = std::mem::take(&mut e.func.blocks[block].term);
        term.map_uses(|v| get(&mut e, v));
        e.func.blocks[block].term = term;
        e.finish(block);
    }
}
