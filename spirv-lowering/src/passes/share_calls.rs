//! Inlining, with one copy of large functions.
//!
//! Everything must become one function. Where inlining every call would make it too large (cryptographic kernels call
//! block functions of thousands of instructions from dozens of places, and drivers take minutes over millions of
//! instructions), a large function gets *one* copy in the kernel that all its call sites share: they jump to it with
//! their arguments and their number, and it jumps back by a switch on the number.
//!
//! The price is that every value which lives across a call travels through the shared code. With many values and calls
//! the result is larger than with everything inlined: which of the two is kept is decided when both are there (see
//! `pipeline`). Each call is an iteration of a loop around the shared code, too, which matters to drivers that count them.
//!
//! 1. Functions to share are chosen by the instructions saved, until the estimate is within [`Limits::budget`].
//! 2. Everything else is inlined.
//! 3. Private memory behind pointer parameters of shared functions that is only accessed at constant offsets is passed
//!    by value, in and out, so that arrays of the callers can still become values.
//! 4. The copies are placed, the calls become jumps, SSA form is repaired.
//!
//! Work-items in different calls may meet in shared code, so nothing is shared that could hold or come before a
//! barrier or another collective operation; and which image it is must be known, so nothing is shared that is given one.
//! Whatever does not fit these rules is inlined as usual.

use super::inline::{callees, flatten, flatten_but, with_body};
use super::{clean, expand_memcopy};
use crate::analysis::iterations;
use crate::edit::rewrite::{rewrite, Action};
use crate::edit::{flow, repair_ssa};
use crate::error::Result;
use crate::ir::compact::{compact, CopyMap};
use crate::ir::entity::{Block, Entity, FuncId, Inst, Value};
use crate::ir::function::{Function, Target, Terminator, ValueDef, Values};
use crate::ir::module::Module;
use crate::ir::op::{Effect, Op};
use crate::ir::types::{Space, Type};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

/// When functions are shared. All are numbers of instructions, as read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// From so many on functions are shared.
    pub budget: u64,
    /// Beyond so many inlining everything is not even tried.
    pub most: u64,
    /// The smallest function worth sharing.
    pub min_size: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            budget: 60_000,
            most: 4_000_000,
            min_size: 600,
        }
    }
}

const PRIVATE: Type = Type::Ptr(Space::Private);

/// The call graph below a kernel with sizes.
struct Graph {
    /// Callees before callers; the kernel last.
    order: Vec<FuncId>,
    own: FxHashMap<FuncId, u64>,
    calls: FxHashMap<FuncId, Vec<(FuncId, u64)>>,
    convergent: FxHashSet<FuncId>,
}

impl Graph {
    fn new(module: &Module, kernel: FuncId) -> Result<Self> {
        let mut graph = Self {
            order: Vec::new(),
            own: FxHashMap::default(),
            calls: FxHashMap::default(),
            convergent: FxHashSet::default(),
        };
        // Depth first; recursion is found by the inliner, here it must only end.
        let mut seen = FxHashSet::default();
        seen.insert(kernel);
        let mut stack = vec![(kernel, callees(module, kernel)?, 0)];
        while let Some((id, list, next)) = stack.last_mut() {
            if let Some(&callee) = list.get(*next) {
                *next += 1;
                if seen.insert(callee) {
                    let list = callees(module, callee)?;
                    stack.push((callee, list, 0));
                }
                continue;
            }
            let id = *id;
            stack.pop();
            let func = &module.functions[id];
            if func.params.contains(&Type::Handle) {
                graph.convergent.insert(id);
            }
            let mut own = 0;
            let mut counts: FxHashMap<FuncId, u64> = FxHashMap::default();
            for &block in &func.layout {
                own += func.blocks[block].insts.len() as u64;
                for &inst in &func.blocks[block].insts {
                    match func.insts[inst].op {
                        Op::Call(callee) => {
                            let callee = with_body(module, callee, Some(func))?;
                            *counts.entry(callee).or_default() += 1;
                            if graph.convergent.contains(&callee) {
                                graph.convergent.insert(id);
                            }
                        }
                        op if op.effect() == Effect::Convergent => {
                            graph.convergent.insert(id);
                        }
                        _ => {}
                    }
                }
            }
            let mut counts: Vec<_> = counts.into_iter().collect();
            counts.sort();
            graph.own.insert(id, own);
            graph.calls.insert(id, counts);
            graph.order.push(id);
        }
        Ok(graph)
    }

    /// Size with everything inlined but the shared functions, and how often each function is copied.
    fn measure(
        &self,
        shared: &FxHashSet<FuncId>,
    ) -> (FxHashMap<FuncId, u64>, FxHashMap<FuncId, u64>) {
        let mut size: FxHashMap<FuncId, u64> = FxHashMap::default();
        for id in &self.order {
            let mut total = self.own[id];
            for (callee, n) in &self.calls[id] {
                if !shared.contains(callee) {
                    let inner = size.get(callee).copied().unwrap_or(0);
                    total = total.saturating_add(inner.saturating_mul(*n));
                }
            }
            size.insert(*id, total);
        }
        let mut copies: FxHashMap<FuncId, u64> = FxHashMap::default();
        for (i, id) in self.order.iter().rev().enumerate() {
            let mine = match (i, shared.contains(id)) {
                (0, _) | (_, true) => 1,
                _ => copies.get(id).copied().unwrap_or(0),
            };
            // For a shared function: its call sites, though it has one copy.
            for (callee, n) in &self.calls[id] {
                let entry = copies.entry(*callee).or_default();
                *entry = entry.saturating_add(mine.saturating_mul(*n));
            }
        }
        (size, copies)
    }

    fn inlined_size(&self, kernel: FuncId) -> u64 {
        let (size, _) = self.measure(&FxHashSet::default());
        size.get(&kernel).copied().unwrap_or(0)
    }

    fn choose(&self, limits: &Limits) -> FxHashSet<FuncId> {
        let mut shared = FxHashSet::default();
        let Some(&kernel) = self.order.last() else {
            return shared;
        };
        for _ in 0..64 {
            let (size, copies) = self.measure(&shared);
            let total = size[&kernel] + shared.iter().map(|id| size[id]).sum::<u64>();
            if total <= limits.budget {
                break;
            }
            let saved = |id: &FuncId| {
                let n = copies.get(id).copied().unwrap_or(0);
                size[id].saturating_mul(n.saturating_sub(1))
            };
            let best = self
                .order
                .iter()
                .filter(|id| **id != kernel && !shared.contains(*id))
                .filter(|id| !self.convergent.contains(*id) && size[*id] >= limits.min_size)
                .max_by_key(|id| (saved(id), id.index()));
            match best {
                Some(&best) if saved(&best) > total / 32 => shared.insert(best),
                _ => break,
            };
        }
        shared
    }
}

/// A kernel as one function without calls.
pub struct OneFunction {
    /// With everything inlined. None: that would be far too large, and there is the other form.
    pub inlined: Option<Function>,
    /// With large functions shared. None: there are none, or they cannot be.
    pub shared: Option<Shared>,
}

/// The form with shared functions.
pub struct Shared {
    /// The function.
    pub func: Function,
    /// Iterations in a run of it, as far as loops have a known end: the way through shared code is one, too.
    pub iterations: u64,
}

/// The kernel as one function without calls.
pub fn run(module: &Module, kernel: FuncId) -> Result<OneFunction> {
    run_within(module, kernel, &Limits::default())
}

/// The same with other limits.
pub fn run_within(module: &Module, kernel: FuncId, limits: &Limits) -> Result<OneFunction> {
    let kernel = with_body(module, kernel, None)?;
    let graph = Graph::new(module, kernel)?;
    let chosen = graph.choose(limits);
    let shared = match chosen.is_empty() {
        true => None,
        false => with_shared(module, kernel, &graph, &chosen)?,
    };
    let inlined = match &shared {
        Some(_) if graph.inlined_size(kernel) > limits.most => None,
        _ => Some(flatten(module, kernel, &mut clean)?),
    };
    Ok(OneFunction { inlined, shared })
}

fn with_shared(
    module: &Module,
    kernel: FuncId,
    graph: &Graph,
    shared: &FxHashSet<FuncId>,
) -> Result<Option<Shared>> {
    let mut bodies = flatten_but(module, kernel, shared, &mut clean)?;
    bodies.retain(|id, _| *id == kernel || shared.contains(id));
    let order: Vec<FuncId> = graph
        .order
        .iter()
        .copied()
        .filter(|id| shared.contains(id))
        .collect();
    Ok(share(bodies, kernel, &order))
}

/// A part of the memory behind a pointer parameter.
#[derive(Debug, Clone, Copy)]
struct Slot {
    ty: Type,
    written: bool,
    /// What all accesses say of its alignment.
    align: u32,
}

type Slots = BTreeMap<u64, Slot>;

fn slots_end(slots: &Slots) -> u64 {
    slots
        .iter()
        .map(|(at, s)| at + u64::from(s.ty.size()))
        .max()
        .unwrap_or(0)
}

/// Where a pointer comes from: a value that is no addition, and the constant added to it.
fn base(func: &Function, mut pointer: Value) -> Option<(Value, u64)> {
    let mut offset = 0u64;
    loop {
        let Some(inst) = func.def_inst(pointer) else {
            return Some((pointer, offset));
        };
        let data = &func.insts[inst];
        match (data.op, &data.args[..]) {
            (Op::PtrAdd, &[from, by]) => {
                offset = offset.wrapping_add(func.as_const(by)?);
                pointer = from;
            }
            _ => return Some((pointer, offset)),
        }
    }
}

/// Private pointers that leave the sight of this pass.
fn has_escapes(func: &Function) -> bool {
    let is_private = |v: &Value| func.ty(*v) == PRIVATE;
    func.layout.iter().any(|&block| {
        func.blocks[block].insts.iter().any(|&inst| {
            let data = &func.insts[inst];
            match data.op {
                Op::Store { .. } | Op::AtomicStore { .. } => {
                    data.args.iter().skip(1).any(is_private)
                }
                Op::PtrToInt | Op::SpaceCast | Op::Bitcast => data.args.iter().any(is_private),
                Op::Load { .. } | Op::IntToPtr => data.results.iter().any(is_private),
                _ => false,
            }
        })
    })
}

/// The accesses through one parameter, if all are loads and stores at constant offsets that agree in type.
fn slots_of(func: &Function, param: Value) -> Option<Slots> {
    let mut slots = Slots::new();
    let mut derived: FxHashSet<Value> = FxHashSet::default();
    derived.insert(param);
    for &block in &func.layout {
        for &inst in &func.blocks[block].insts {
            for &result in &func.insts[inst].results {
                if func.ty(result) == PRIVATE && base(func, result).is_none_or(|b| b.0 == param) {
                    base(func, result)?;
                    derived.insert(result);
                }
            }
        }
    }
    for &block in &func.layout {
        for &inst in &func.blocks[block].insts {
            let data = &func.insts[inst];
            let uses = data.args.iter().filter(|v| derived.contains(v)).count();
            if uses == 0 {
                continue;
            }
            let (values, written, align) = match data.op {
                Op::PtrAdd => continue,
                Op::Load {
                    volatile: false,
                    align,
                } => (&data.results[..], false, align),
                Op::Store {
                    volatile: false,
                    align,
                } if uses == 1 => (data.args.get(1..)?, true, align),
                _ => return None,
            };
            let (_, mut at) = base(func, *data.args.first()?)?;
            let first = at;
            for &v in values {
                let ty = func.ty(v);
                if at > 1 << 16 || ty.is_ptr() {
                    return None;
                }
                let align = match at - first {
                    0 => align,
                    behind => align.min(1 << behind.trailing_zeros().min(4)),
                };
                let slot = slots.entry(at).or_insert(Slot { ty, written, align });
                if slot.ty.size() != ty.size() {
                    return None;
                }
                slot.written |= written;
                slot.align = slot.align.min(align);
                at += u64::from(ty.size());
            }
        }
        let mut leaves = false;
        func.blocks[block]
            .term
            .for_each_use(|v| leaves |= derived.contains(&v));
        if leaves {
            return None;
        }
    }
    let disjoint = slots
        .iter()
        .zip(slots.iter().skip(1))
        .all(|((at, slot), (next, _))| at + u64::from(slot.ty.size()) <= *next);
    (disjoint && slots.len() <= 256).then_some(slots)
}

/// Parameters of a shared function: those passed by value have their slots.
type Plan = Vec<Option<Slots>>;

/// Passes the slots by value in the function itself.
fn rewrite_callee(func: &mut Function, plan: &Plan) -> Option<()> {
    let entry = func.entry()?;
    let old = std::mem::take(&mut func.blocks[entry].params);
    let mut head: Vec<Inst> = Vec::new();
    let mut params = Vec::new();
    let mut outputs: Vec<(Value, Type, u32)> = Vec::new();
    let mut renamed: FxHashMap<Value, Value> = FxHashMap::default();
    let push = |func: &mut Function, ty: Type, params: &mut Vec<Type>, renamed: Option<Value>| {
        params.push(ty);
        match renamed {
            Some(value) => {
                let index = func.blocks[entry].params.len() as u32;
                func.values[value].def = ValueDef::Param(entry, index);
                func.blocks[entry].params.push(value);
                value
            }
            None => func.add_param(entry, ty),
        }
    };
    for (&param, slots) in old.iter().zip(plan) {
        let Some(slots) = slots else {
            let ty = func.ty(param);
            push(func, ty, &mut params, Some(param));
            continue;
        };
        let size = slots_end(slots).max(1) as u32;
        let memory = func.make_inst(Op::Alloca { size, align: 16 }, [], &[PRIVATE]);
        head.push(memory);
        let memory = func.insts[memory].results[0];
        renamed.insert(param, memory);
        for (&at, slot) in slots {
            let value = push(func, slot.ty, &mut params, None);
            let by = func.make_inst(Op::Const(at), [], &[Type::I64]);
            let by_value = func.insts[by].results[0];
            let address = func.make_inst(Op::PtrAdd, [memory, by_value], &[PRIVATE]);
            let address_value = func.insts[address].results[0];
            let store = Op::Store {
                align: slot_align(at),
                volatile: false,
            };
            let store = func.make_inst(store, [address_value, value], &[]);
            head.extend([by, address, store]);
            if slot.written {
                outputs.push((address_value, slot.ty, slot_align(at)));
            }
        }
    }
    func.params = params;
    func.results.extend(outputs.iter().map(|o| o.1));
    func.blocks[entry].insts.splice(0..0, head);
    func.map_uses(|v| renamed.get(&v).copied().unwrap_or(v));
    for block in func.layout.clone() {
        if let Terminator::Return(mut values) = func.blocks[block].term.clone() {
            for &(address, ty, align) in &outputs {
                // The entry dominates everything, so the addresses are at hand.
                let op = Op::Load {
                    align,
                    volatile: false,
                };
                values.push(func.append1(block, op, [address], ty));
            }
            func.blocks[block].term = Terminator::Return(values);
        }
    }
    Some(())
}

/// Alignment of a slot in an aggregate aligned to 16 bytes (natural at most).
fn slot_align(at: u64) -> u32 {
    if at == 0 {
        16
    } else {
        1 << at.trailing_zeros().min(4)
    }
}

/// May the memory behind two arguments of a call overlap?
fn overlap(func: &Function, a: (Value, Option<&Slots>), b: (Value, Option<&Slots>)) -> bool {
    let written = |s: Option<&Slots>| s.is_none_or(|s| s.values().any(|s| s.written));
    if !written(a.1) && !written(b.1) {
        return false;
    }
    let (Some((base_a, at_a)), Some((base_b, at_b))) = (base(func, a.0), base(func, b.0)) else {
        return true;
    };
    let known = |v: Value| match func.def_inst(v) {
        Some(inst) => matches!(func.insts[inst].op, Op::Alloca { .. }),
        // Parameters of a shared function do not overlap: that is checked where it is called.
        None => {
            matches!(func.values[v].def, ValueDef::Param(block, _) if Some(block) == func.entry())
        }
    };
    if !known(base_a) || !known(base_b) {
        return true;
    }
    if base_a != base_b {
        return false;
    }
    let range = |at: u64, slots: Option<&Slots>| match slots {
        Some(slots) => Some((at + slots.keys().next()?, at + slots_end(slots))),
        None => Some((0, u64::MAX)),
    };
    match (range(at_a, a.1), range(at_b, b.1)) {
        (Some((a0, a1)), Some((b0, b1))) => a0 < b1 && b0 < a1,
        // No accesses at all.
        _ => false,
    }
}

/// Passes the slots by value at the calls in another function. None: the call does not allow it.
fn rewrite_caller(func: &mut Function, callee: FuncId, plan: &Plan) -> Option<()> {
    // Check first.
    for &block in &func.layout {
        for &inst in &func.blocks[block].insts {
            let data = &func.insts[inst];
            if data.op != Op::Call(callee) {
                continue;
            }
            if data.args.len() != plan.len() {
                return None;
            }
            let pointers: Vec<(Value, Option<&Slots>)> = data
                .args
                .iter()
                .zip(plan)
                .filter(|(v, _)| func.ty(**v) == PRIVATE)
                .map(|(v, s)| (*v, s.as_ref()))
                .collect();
            for (i, &a) in pointers.iter().enumerate() {
                if pointers[i + 1..].iter().any(|&b| overlap(func, a, b)) {
                    return None;
                }
                let Some(slots) = a.1 else { continue };
                let (from, at) = base(func, a.0)?;
                if let Some(Op::Alloca { size, .. }) = func.def_inst(from).map(|i| func.insts[i].op)
                {
                    if at.checked_add(slots_end(slots))? > u64::from(size) {
                        return None;
                    }
                }
            }
        }
    }
    rewrite(func, |r, inst| {
        let data = r.data(inst);
        if data.op != Op::Call(callee) {
            return Ok(Action::Keep);
        }
        let mut args = Vec::new();
        let mut outputs = Vec::new();
        for (&arg, slots) in data.args.iter().zip(plan) {
            let Some(slots) = slots else {
                args.push(arg);
                continue;
            };
            for (&at, slot) in slots {
                let address = r.offset(arg, at);
                let align = slot.align;
                args.push(r.op(
                    Op::Load {
                        align,
                        volatile: false,
                    },
                    [address],
                    slot.ty,
                ));
                if slot.written {
                    outputs.push((address, slot.ty, align));
                }
            }
        }
        let mut types: Vec<Type> = data.results.iter().map(|&v| r.func.ty(v)).collect();
        types.extend(outputs.iter().map(|o| o.1));
        let results = r.many(Op::Call(callee), args, &types);
        for (&old, &new) in data.results.iter().zip(&results) {
            r.replace(old, new);
        }
        for (&(address, _, align), &value) in outputs.iter().zip(&results[data.results.len()..]) {
            r.inst(
                Op::Store {
                    align,
                    volatile: false,
                },
                [address, value],
                &[],
            );
        }
        Ok(Action::Remove)
    })
    .ok()
}

/// Joins the bodies. `order`: the shared functions, callees first. None: it cannot be done.
fn share(
    mut bodies: FxHashMap<FuncId, Function>,
    kernel: FuncId,
    order: &[FuncId],
) -> Option<Shared> {
    for body in bodies.values_mut() {
        expand_memcopy::run(body).ok()?;
    }
    clean(bodies.get_mut(&kernel)?);
    if bodies.values().any(has_escapes) {
        return None;
    }
    for &id in order {
        let mut func = bodies.remove(&id)?;
        clean(&mut func);
        let params = func.blocks[func.entry()?].params.clone();
        let plan: Plan = params
            .iter()
            .map(|&p| {
                if func.ty(p) == PRIVATE {
                    slots_of(&func, p)
                } else {
                    None
                }
            })
            .collect();
        rewrite_callee(&mut func, &plan)?;
        clean(&mut func);
        for other in bodies.values_mut() {
            rewrite_caller(other, id, &plan)?;
        }
        bodies.insert(id, compact(&func));
    }
    let mut func = bodies.remove(&kernel)?;
    clean(&mut func);
    let mut counts: FxHashMap<FuncId, u64> = FxHashMap::default();
    for id in order {
        let count = iterations::with_calls(bodies.get(id)?, &counts);
        counts.insert(*id, count);
    }
    let iterations = iterations::with_calls(&func, &counts);
    let mut func = compact(&func);
    hoist(&mut func);
    let mut placed: FxHashMap<FuncId, Placed> = FxHashMap::default();
    for id in order {
        let body = bodies.get_mut(id)?;
        hoist(body);
        let copy = place(&mut func, body)?;
        placed.insert(*id, copy);
    }
    jump(&mut func, &placed)?;
    flow::drop_unreachable(&mut func);
    if meets_convergent(&func, &placed) {
        return None;
    }
    repair_ssa::run(&mut func);
    Some(Shared { func, iterations })
}

/// The one copy of a shared function.
struct Placed {
    entry: Block,
    /// Takes the results; ends in the switch.
    exit: Block,
    /// The number of the call.
    selector: Value,
}

/// Copies a body into the kernel, its blocks not yet entered from anywhere.
fn place(func: &mut Function, body: &Function) -> Option<Placed> {
    let mut map = CopyMap::new(body);
    let first = func.insts.len();
    let body_entry = body.entry()?;
    for &from in &body.layout {
        let to = func.add_block();
        map.set_block(from, to);
        for &param in &body.blocks[from].params {
            let new = func.add_param(to, body.values[param].ty);
            map.set_value(param, new);
        }
        map.copy_insts(body, from, func, to);
    }
    map.fix_operands(func, first);
    let exit = func.add_block();
    for &ty in &body.results {
        func.add_param(exit, ty);
    }
    for &from in &body.layout {
        let to = map.block(from);
        func.blocks[to].term = match map.term(&body.blocks[from].term) {
            Terminator::Return(args) => Terminator::Jump(Target { block: exit, args }),
            term => term,
        };
    }
    // Private memory belongs to the entry block of the kernel, and so does what needs nothing else.
    let entry = map.block(body_entry);
    let mut free: FxHashSet<Value> = FxHashSet::default();
    let (allocas, rest): (Vec<Inst>, Vec<Inst>) = std::mem::take(&mut func.blocks[entry].insts)
        .into_iter()
        .partition(|&i| {
            let data = &func.insts[i];
            let cheap = match data.op {
                Op::Const(_)
                | Op::Undef
                | Op::GlobalAddr(_)
                | Op::Builtin(_)
                | Op::Alloca { .. } => true,
                Op::PtrAdd => data.args.iter().all(|v| free.contains(v)),
                _ => false,
            };
            if cheap {
                free.extend(data.results.iter().copied());
            }
            cheap
        });
    func.blocks[entry].insts = rest;
    let kernel_entry = func.entry()?;
    func.blocks[kernel_entry].insts.splice(0..0, allocas);
    let selector = func.add_param(entry, Type::I32);
    Some(Placed {
        entry,
        exit,
        selector,
    })
}

/// Moves to the entry block what depends on nothing but it: constants, addresses within private memory. It would have
/// to travel through the shared code otherwise.
fn hoist(func: &mut Function) {
    let Some(entry) = func.entry() else { return };
    let mut at_entry: FxHashSet<Value> = func.blocks[entry].params.iter().copied().collect();
    let mut moved = Vec::new();
    for block in crate::analysis::cfg::Cfg::new(func).rpo().to_vec() {
        let insts = std::mem::take(&mut func.blocks[block].insts);
        let mut rest = Vec::with_capacity(insts.len());
        for inst in insts {
            let data = &func.insts[inst];
            let cheap = match data.op {
                Op::Const(_)
                | Op::Undef
                | Op::GlobalAddr(_)
                | Op::Builtin(_)
                | Op::Alloca { .. } => true,
                Op::PtrAdd => data.args.iter().all(|v| at_entry.contains(v)),
                _ => false,
            };
            if cheap {
                at_entry.extend(data.results.iter().copied());
                moved.push(inst);
            } else {
                rest.push(inst);
            }
        }
        func.blocks[block].insts = rest;
    }
    func.blocks[entry].insts.splice(0..0, moved);
}

/// Makes jumps of all calls.
fn jump(func: &mut Function, placed: &FxHashMap<FuncId, Placed>) -> Option<()> {
    let mut returns: FxHashMap<FuncId, Vec<Block>> = FxHashMap::default();
    let mut renamed: FxHashMap<Value, Value> = FxHashMap::default();
    let mut layout = Vec::new();
    for block in std::mem::take(&mut func.layout) {
        layout.push(block);
        let mut at = block;
        let insts = std::mem::take(&mut func.blocks[block].insts);
        let term = std::mem::take(&mut func.blocks[block].term);
        for inst in insts {
            let Op::Call(callee) = func.insts[inst].op else {
                func.blocks[at].insts.push(inst);
                continue;
            };
            let target = placed.get(&callee)?;
            let list = returns.entry(callee).or_default();
            let number = func.append_const(at, Type::I32, list.len() as u64);
            let cont = func.blocks.push(Default::default());
            layout.push(cont);
            list.push(cont);
            let data = func.insts[inst].clone();
            let mut args: Values = data.args.clone();
            args.push(number);
            func.blocks[at].term = Terminator::Jump(Target {
                block: target.entry,
                args,
            });
            for &result in &data.results {
                let new = func.add_param(cont, func.ty(result));
                renamed.insert(result, new);
            }
            at = cont;
        }
        func.blocks[at].term = term;
    }
    func.layout = layout;
    let mut ids: Vec<FuncId> = returns.keys().copied().collect();
    ids.sort();
    for id in ids {
        let (target, conts) = (placed.get(&id)?, &returns[&id]);
        let values = &func.blocks[target.exit].params;
        let to = |&block: &Block| Target {
            block,
            args: values.iter().copied().collect(),
        };
        let (last, others) = conts.split_last()?;
        let cases: Vec<(u64, Target)> = others
            .iter()
            .enumerate()
            .map(|(i, b)| (i as u64, to(b)))
            .collect();
        let term = match cases.is_empty() {
            true => Terminator::Jump(to(last)),
            false => Terminator::Switch(target.selector, cases, to(last)),
        };
        func.blocks[target.exit].term = term;
    }
    func.map_uses(|v| renamed.get(&v).copied().unwrap_or(v));
    Some(())
}

/// Is a collective operation reachable from shared code?
fn meets_convergent(func: &Function, placed: &FxHashMap<FuncId, Placed>) -> bool {
    let mut seen: FxHashSet<Block> = placed.values().map(|p| p.entry).collect();
    let mut work: Vec<Block> = seen.iter().copied().collect();
    while let Some(block) = work.pop() {
        let convergent = |i: &Inst| func.insts[*i].op.effect() == Effect::Convergent;
        if func.blocks[block].insts.iter().any(convergent) {
            return true;
        }
        for target in func.blocks[block].term.targets() {
            if seen.insert(target.block) {
                work.push(target.block);
            }
        }
    }
    false
}
