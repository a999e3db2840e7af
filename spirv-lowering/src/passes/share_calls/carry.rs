//! Carries the values that live across calls of a shared function in as few of its parameters as
//! one call needs.
//!
//! Left to the repair of SSA form, each value that lives across a call becomes a parameter of the
//! shared code of its own, and all other calls pass something undefined for it: with many calls
//! the arguments grow with their square (of a path tracer's kernel of 440,000 instructions, 22
//! million). Here the values of different calls share parameters, and the shared function returns
//! what it got. That costs what is known of them, as a parameter is uniform only if the values of
//! all calls are, so it is done only where there would be too many arguments otherwise.
//!
//! Pointers to memory of the kernel's own keep parameters of their own, so that it stays known what
//! they point to.

use super::goes_to_entry;
use crate::analysis::cfg::Cfg;
use crate::edit::repair_ssa;
use crate::ir::entity::{Block, Entity, FuncId, Inst, SecondaryMap, Value};
use crate::ir::function::{Edge, Function, Terminator};
use crate::ir::op::Op;
use crate::ir::types::{Space, Type};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

/// A call of a shared function in a block of its own.
struct Site {
    caller: FuncId,
    block: Block,
    callee: FuncId,
    /// The values that live across it, each with the block that defines it.
    values: Vec<(Value, Block)>,
}

/// Runs the pass on the kernel and the shared functions if the sum of the squares of the numbers of
/// calls of each exceeds `most`. `order`: the shared functions, callees before callers.
pub fn run(
    bodies: &mut FxHashMap<FuncId, Function>,
    kernel: FuncId,
    order: &[FuncId],
    most: usize,
) -> Option<()> {
    let mut calls: FxHashMap<FuncId, usize> = FxHashMap::default();
    for func in bodies.values() {
        for &inst in func.layout_insts() {
            if let Op::Call(callee) = func.insts[inst].op {
                *calls.entry(callee).or_default() += 1;
            }
        }
    }
    if calls.values().map(|n| n * n).sum::<usize>() <= most {
        return Some(());
    }
    let mut carried: FxHashMap<FuncId, BTreeMap<Type, usize>> = FxHashMap::default();
    let mut all: Vec<Site> = Vec::new();
    for id in std::iter::once(&kernel).chain(order.iter().rev()) {
        let func = bodies.get_mut(id)?;
        if let Some(types) = carried.get(id) {
            pass_through(func, types);
        }
        isolate_calls(func);
        for site in sites(func, *id, *id == kernel) {
            let mut counts: BTreeMap<Type, usize> = BTreeMap::new();
            for &(value, _) in &site.values {
                *counts.entry(func.ty(value)).or_default() += 1;
            }
            let most = carried.entry(site.callee).or_default();
            for (ty, n) in counts {
                let most = most.entry(ty).or_default();
                *most = n.max(*most);
            }
            all.push(site);
        }
    }
    for (id, func) in bodies {
        let own = all.iter().filter(|site| site.caller == *id);
        extend_calls(func, own, &carried);
    }
    Some(())
}

/// Puts each call into a block of its own, between the one before it and the one after it.
fn isolate_calls(func: &mut Function) {
    let mut layout = Vec::new();
    for first in std::mem::take(&mut func.layout) {
        layout.push(first);
        if !func.blocks[first].insts.iter().any(|&i| is_call(func, i)) {
            continue;
        }
        let term = std::mem::take(&mut func.blocks[first].term);
        let mut at = first;
        let mut next = |func: &mut Function, at: Block| {
            let block = func.blocks.push(Default::default());
            layout.push(block);
            func.blocks[at].term = Terminator::Jump(Edge::new(block));
            block
        };
        for inst in std::mem::take(&mut func.blocks[first].insts) {
            if is_call(func, inst) {
                let block = next(func, at);
                func.blocks[block].insts.push(inst);
                at = next(func, block);
            } else {
                func.blocks[at].insts.push(inst);
            }
        }
        func.blocks[at].term = term;
    }
    func.layout = layout;
}

fn is_call(func: &Function, inst: Inst) -> bool {
    matches!(func.insts[inst].op, Op::Call(_))
}

/// Gives the function parameters of these types, which it returns as they are.
fn pass_through(func: &mut Function, types: &BTreeMap<Type, usize>) {
    let Some(entry) = func.entry() else { return };
    let types = types
        .iter()
        .flat_map(|(&ty, &n)| std::iter::repeat_n(ty, n));
    let mut added = Vec::new();
    for ty in types {
        added.push(func.add_param(entry, ty));
        func.results.push(ty);
    }
    for i in 0..func.layout.len() {
        let block = func.layout[i];
        if let Terminator::Return(values) = &mut func.blocks[block].term {
            values.extend(added.iter().copied());
        }
    }
}

/// Finds the calls with the values that live across them and do not lie in the kernel's entry
/// block, where they reach everything.
fn sites(func: &Function, caller: FuncId, is_kernel: bool) -> Vec<Site> {
    let cfg = Cfg::new(func);
    let mut home: SecondaryMap<Value, Option<Block>> = SecondaryMap::new();
    let mut across: FxHashMap<Block, Site> = FxHashMap::default();
    for &block in cfg.rpo() {
        let data = &func.blocks[block];
        for &param in &data.params {
            home[param] = Some(block);
        }
        for &inst in &data.insts {
            for &result in &func.insts[inst].results {
                home[result] = Some(block);
            }
            if let Op::Call(callee) = func.insts[inst].op {
                let values = Vec::new();
                across.insert(
                    block,
                    Site {
                        caller,
                        block,
                        callee,
                        values,
                    },
                );
            }
        }
    }
    let entry = func.entry();
    let mut uses: SecondaryMap<Value, Vec<Block>> = SecondaryMap::new();
    let mut used: Vec<Value> = Vec::new();
    for &block in cfg.rpo() {
        let mut note = |value: Value| {
            if home[value] == Some(block) || uses[value].last() == Some(&block) {
                return;
            }
            if uses[value].is_empty() {
                used.push(value);
            }
            uses[value].push(block);
        };
        for &inst in &func.blocks[block].insts {
            func.insts[inst].args.iter().for_each(|&v| note(v));
        }
        func.blocks[block].term.for_each_use(note);
    }
    used.sort_unstable();
    let at_entry = match entry.filter(|_| !is_kernel) {
        Some(entry) => goes_to_entry(func, entry),
        None => FxHashSet::default(),
    };
    let mut seen: SecondaryMap<Block, Option<Value>> = SecondaryMap::new();
    for value in used {
        let Some(def) = home[value] else { continue };
        let reaches_all = match is_kernel {
            true => Some(def) == entry,
            false => at_entry.contains(&value),
        };
        if reaches_all || keeps_own(func.ty(value)) {
            continue;
        }
        let mut work = std::mem::take(&mut uses[value]);
        while let Some(block) = work.pop() {
            if seen[block].replace(value) == Some(value) {
                continue;
            }
            // The value is live at the beginning of the block.
            for &pred in cfg.preds(block) {
                if pred == def {
                    continue;
                }
                if let Some(site) = across.get_mut(&pred) {
                    if site.values.last() != Some(&(value, def)) {
                        site.values.push((value, def));
                    }
                }
                work.push(pred);
            }
        }
    }
    let mut list: Vec<Site> = across.into_values().collect();
    list.sort_unstable_by_key(|site| site.block.index());
    list
}

/// Returns true for a value of which it must stay known what it is.
fn keeps_own(ty: Type) -> bool {
    let anywhere = matches!(ty.space(), Some(Space::Global | Space::Constant));
    ty == Type::Handle || ty.is_ptr() && !anywhere
}

/// Passes the values that live across the calls of a function to these and takes them back.
fn extend_calls<'a>(
    func: &mut Function,
    own: impl Iterator<Item = &'a Site>,
    carried: &FxHashMap<FuncId, BTreeMap<Type, usize>>,
) {
    let Some(entry) = func.entry() else { return };
    let mut undefs: FxHashMap<Type, Value> = FxHashMap::default();
    // The values with their definitions, the first of which is the value itself.
    let mut groups: BTreeMap<Value, Vec<(Block, Value)>> = BTreeMap::new();
    for site in own {
        let Some(&call) = func.blocks[site.block].insts.first() else {
            continue;
        };
        for (&ty, &n) in carried.get(&site.callee).into_iter().flatten() {
            let of_type = site.values.iter().filter(|(v, _)| func.ty(*v) == ty);
            let values: Vec<(Value, Block)> = of_type.copied().collect();
            for i in 0..n {
                let arg = values.get(i).map_or_else(
                    || *undefs.entry(ty).or_insert_with(|| undef(func, entry, ty)),
                    |(value, _)| *value,
                );
                func.insts[call].args.push(arg);
                let result = func.add_result(call, ty);
                if let Some(&(value, def)) = values.get(i) {
                    let group = groups.entry(value).or_insert_with(|| vec![(def, value)]);
                    group.push((site.block, result));
                }
            }
        }
    }
    let groups: Vec<_> = groups.into_values().collect();
    repair_ssa::redefine(func, &groups);
}

fn undef(func: &mut Function, block: Block, ty: Type) -> Value {
    let inst = func.make_inst(Op::Undef, [], &[ty]);
    func.blocks[block].insts.insert(0, inst);
    func.insts[inst].results[0]
}
