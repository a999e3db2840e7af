//! Removes instructions without effect whose results are unused, block parameters (with the
//! arguments passed for them) that only feed one another, and stores to private memory that is
//! never read.
//!
//! Mark and sweep: everything is dead until an effect, a branch or a return needs it, so cycles of
//! dead block parameters go too.

use crate::claims::alias_set;
use crate::ir::entity::{Block, Entity, Inst, SecondaryMap, Value};
use crate::ir::function::{Function, ValueDef};
use crate::ir::op::Op;
use crate::ir::types::Space;

/// Runs the pass. Returns true if the function changed.
pub fn run(func: &mut Function) -> bool {
    let Some(entry) = func.entry() else {
        return false;
    };
    let write_only = write_only_allocas(func);
    let mut live_inst = vec![false; func.insts.len()];
    let mut live_value = vec![false; func.values.len()];
    let mut work: Vec<Value> = Vec::new();

    // For each block the edges that lead there: a predecessor and the number of its target.
    let mut edges: SecondaryMap<Block, Vec<(Block, usize)>> = SecondaryMap::new();
    for &block in &func.layout {
        for (number, target) in func.blocks[block].term.targets().iter().enumerate() {
            edges[target.block].push((block, number));
        }
    }
    let need = |v: Value, live: &mut Vec<bool>, work: &mut Vec<Value>| {
        if !std::mem::replace(&mut live[v.index()], true) {
            work.push(v);
        }
    };
    for &block in &func.layout {
        let data = &func.blocks[block];
        for &inst in &data.insts {
            let data = &func.insts[inst];
            if data.op.is_removable() || stores_unread(func, &write_only, inst) {
                continue;
            }
            live_inst[inst.index()] = true;
            for &arg in &data.args {
                need(arg, &mut live_value, &mut work);
            }
        }
        use crate::ir::function::Terminator::*;
        match &data.term {
            Branch(v, ..) | Switch(v, ..) => need(*v, &mut live_value, &mut work),
            Return(values) => values
                .iter()
                .for_each(|&v| need(v, &mut live_value, &mut work)),
            Jump(_) | Unreachable => {}
        }
    }
    for &param in &func.blocks[entry].params {
        live_value[param.index()] = true;
    }
    while let Some(value) = work.pop() {
        match func.values[value].def {
            ValueDef::Result(inst, _) => {
                if !std::mem::replace(&mut live_inst[inst.index()], true) {
                    for &arg in &func.insts[inst].args {
                        need(arg, &mut live_value, &mut work);
                    }
                }
            }
            ValueDef::Param(block, index) => {
                for &(pred, number) in &edges[block] {
                    let target = func.blocks[pred].term.target(number);
                    if let Some(&arg) = target.and_then(|t| t.args.get(index as usize)) {
                        need(arg, &mut live_value, &mut work);
                    }
                }
            }
        }
    }

    let mut changed = false;
    for i in 0..func.layout.len() {
        let block = func.layout[i];
        let data = &mut func.blocks[block];
        let before = data.insts.len();
        data.insts.retain(|inst| live_inst[inst.index()]);
        changed |= data.insts.len() != before;
        if data.params.iter().all(|p| live_value[p.index()]) {
            continue;
        }
        changed = true;
        let keep: Vec<bool> = data.params.iter().map(|p| live_value[p.index()]).collect();
        data.params.retain(|p| live_value[p.index()]);
        for (i, &param) in data.params.iter().enumerate() {
            func.values[param].def = ValueDef::Param(block, i as u32);
        }
        for &(pred, number) in &edges[block] {
            if let Some(target) = func.blocks[pred].term.target_mut(number) {
                let mut flags = keep.iter();
                target
                    .args
                    .retain(|_| flags.next().copied().unwrap_or(true));
            }
        }
    }
    changed
}

/// Returns the alias sets of the memory at an address, as a bit each: what is only stored to is read
/// through no address of another set.
pub fn alias_sets(func: &Function) -> impl Fn(Value) -> u64 + use<'_> {
    let write_only = write_only_allocas(func);
    move |address| match alloca_root(func, address) {
        Some(root) if write_only[root.index()] => alias_set(root.index() as u32 + 1),
        _ => alias_set(0),
    }
}

/// Finds the allocas that are only stored to: no load, no other use of their address or of one
/// derived from it by an offset.
fn write_only_allocas(func: &Function) -> Vec<bool> {
    let mut is_candidate = vec![false; func.insts.len()];
    let mut any = false;
    for &block in func.layout.first().iter().copied() {
        for &inst in &func.blocks[block].insts {
            if matches!(func.insts[inst].op, Op::Alloca { .. }) {
                is_candidate[inst.index()] = true;
                any = true;
            }
        }
    }
    if !any {
        return is_candidate;
    }
    for &block in &func.layout {
        let data = &func.blocks[block];
        for &inst in &data.insts {
            let data = &func.insts[inst];
            let address_only =
                matches!(data.op, Op::PtrAdd | Op::Store { .. } | Op::MemCopy { .. })
                    || is_private_cast(func, inst);
            for (i, &arg) in data.args.iter().enumerate() {
                if i == 0 && address_only {
                    continue;
                }
                if let Some(root) = alloca_root(func, arg) {
                    is_candidate[root.index()] = false;
                }
            }
        }
        data.term.for_each_use(|v| {
            if let Some(root) = alloca_root(func, v) {
                is_candidate[root.index()] = false;
            }
        });
    }
    is_candidate
}

fn is_private_cast(func: &Function, inst: Inst) -> bool {
    let data = &func.insts[inst];
    data.op == Op::SpaceCast
        && data.results.first().is_some_and(|&r| {
            matches!(
                func.ty(r).space(),
                Some(Space::Generic) | Some(Space::Private)
            )
        })
}

/// Returns the alloca that an address is derived from by offsets and casts.
fn alloca_root(func: &Function, value: Value) -> Option<Inst> {
    let mut value = value;
    func.ty(value).space()?;
    loop {
        let inst = func.def_inst(value)?;
        match func.insts[inst].op {
            Op::Alloca { .. } => return Some(inst),
            Op::PtrAdd => value = *func.insts[inst].args.first()?,
            Op::SpaceCast if is_private_cast(func, inst) => {
                value = *func.insts[inst].args.first()?
            }
            _ => return None,
        }
    }
}

fn stores_unread(func: &Function, write_only: &[bool], inst: Inst) -> bool {
    let data = &func.insts[inst];
    matches!(data.op, Op::Store { .. } | Op::MemCopy { .. })
        && data
            .args
            .first()
            .and_then(|&p| alloca_root(func, p))
            .is_some_and(|root| write_only[root.index()])
}
