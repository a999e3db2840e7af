//! Passes private memory behind pointer parameters of shared functions by value: in, and out where
//! it is written.
//!
//! All accesses must be at constant offsets; each of the places that they access is a *part*. The
//! function gets memory of its own, filled from parameters at its start and read back where it
//! returns; the callers load before the call and store after it.

use crate::claims::alias_set;
use crate::edit::rewrite::{rewrite, InstEdit};
use crate::ir::entity::{FuncId, Inst, Value};
use crate::ir::function::{Function, Terminator, ValueDef};
use crate::ir::module::Module;
use crate::ir::op::Op;
use crate::ir::types::{Space, Type};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

const PRIVATE: Type = Type::Ptr(Space::Private);

/// A part of the memory behind a pointer parameter.
#[derive(Debug, Clone, Copy)]
struct PointeePart {
    ty: Type,
    written: bool,
    /// The least alignment that its accesses claim.
    align: u32,
}

/// The parts behind a parameter by their offsets.
type PointeeParts = BTreeMap<u64, PointeePart>;

fn parts_end(parts: &PointeeParts) -> u64 {
    parts
        .iter()
        .map(|(at, s)| at + u64::from(s.ty.size()))
        .max()
        .unwrap_or(0)
}

/// Returns the value that a pointer is derived from by additions, and the constant added to it.
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

/// Returns true if a private pointer escapes the analysis of this pass.
pub(super) fn has_escapes(func: &Function) -> bool {
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

/// Returns the accesses through one parameter, if all are loads and stores at constant offsets that
/// agree in type.
fn parts_of(func: &Function, param: Value) -> Option<PointeeParts> {
    let mut parts = PointeeParts::new();
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
                    offset => align.min(1 << offset.trailing_zeros().min(4)),
                };
                let part = parts
                    .entry(at)
                    .or_insert(PointeePart { ty, written, align });
                if part.ty.size() != ty.size() {
                    return None;
                }
                part.written |= written;
                part.align = part.align.min(align);
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
    let disjoint = parts
        .iter()
        .zip(parts.iter().skip(1))
        .all(|((at, part), (next, _))| at + u64::from(part.ty.size()) <= *next);
    (disjoint && parts.len() <= 256).then_some(parts)
}

/// The parameters of a shared function; those passed by value have their parts.
pub(super) struct ByValueParams(Vec<Option<PointeeParts>>);

/// Returns which parameters of a function can be passed by value.
pub(super) fn plan(func: &Function) -> Option<ByValueParams> {
    let params = &func.blocks[func.entry()?].params;
    let parts = |&p: &Value| match func.ty(p) {
        PRIVATE => parts_of(func, p),
        _ => None,
    };
    Some(ByValueParams(params.iter().map(parts).collect()))
}

/// Returns the alias sets of the memory at an address in a function that the kernel calls, as a bit
/// each, if some of its parameters can be passed by value: each of those has one.
pub fn alias_sets(
    module: &Module,
    (kernel, id): (FuncId, FuncId),
) -> Option<impl Fn(Value) -> u64 + use<'_>> {
    let func = module.functions.get(id)?;
    let plan = plan(func)?;
    let fits = |(caller, func): (FuncId, &Function)| {
        func.layout.is_empty() || fits_caller(func, id, &plan, caller == kernel)
    };
    let passed = plan.0.iter().any(Option::is_some)
        && !module.functions.values().any(has_escapes)
        && module.functions.iter().all(fits);
    let entry = func.entry().filter(|_| passed)?;
    let params = func.blocks[entry].params.clone();
    Some(move |mut address| {
        while let Some(inst) = func.def_inst(address) {
            match (func.insts[inst].op, func.insts[inst].args.first()) {
                (Op::PtrAdd, Some(&from)) => address = from,
                _ => break,
            }
        }
        let by_value =
            |&(&param, parts): &(&Value, &Option<_>)| param == address && parts.is_some();
        let number = params.iter().zip(&plan.0).position(|pair| by_value(&pair));
        alias_set(number.map_or(0, |number| number as u32 + 1))
    })
}

/// Rewrites the shared function to take and return the parts by value.
pub(super) fn rewrite_callee(func: &mut Function, plan: &ByValueParams) -> Option<()> {
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
    for (&param, parts) in old.iter().zip(&plan.0) {
        let Some(parts) = parts else {
            let ty = func.ty(param);
            push(func, ty, &mut params, Some(param));
            continue;
        };
        let size = parts_end(parts).max(1) as u32;
        let memory = func.make_inst(Op::Alloca { size, align: 16 }, [], &[PRIVATE]);
        head.push(memory);
        let memory = func.insts[memory].results[0];
        renamed.insert(param, memory);
        for (&at, part) in parts {
            let value = push(func, part.ty, &mut params, None);
            let by = func.make_inst(Op::Const(at), [], &[Type::I64]);
            let by_value = func.insts[by].results[0];
            let address = func.make_inst(Op::PtrAdd, [memory, by_value], &[PRIVATE]);
            let address_value = func.insts[address].results[0];
            let store = Op::Store {
                align: part_align(at),
                volatile: false,
            };
            let store = func.make_inst(store, [address_value, value], &[]);
            head.extend([by, address, store]);
            if part.written {
                outputs.push((address_value, part.ty, part_align(at)));
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

/// Returns the alignment of a part in an aggregate aligned to 16 bytes (natural at most).
fn part_align(at: u64) -> u32 {
    if at == 0 {
        16
    } else {
        1 << at.trailing_zeros().min(4)
    }
}

/// Returns true if the memory that two arguments of a call point to may overlap and the callee may
/// write to it. `distinct`: the parameters of the caller point to memory that does not.
fn overlap(
    func: &Function,
    distinct: bool,
    a: (Value, Option<&PointeeParts>),
    b: (Value, Option<&PointeeParts>),
) -> bool {
    let written = |s: Option<&PointeeParts>| s.is_none_or(|s| s.values().any(|s| s.written));
    if !written(a.1) && !written(b.1) {
        return false;
    }
    let (Some((base_a, at_a)), Some((base_b, at_b))) = (base(func, a.0), base(func, b.0)) else {
        return true;
    };
    let known = |v: Value| match func.def_inst(v) {
        Some(inst) => matches!(func.insts[inst].op, Op::Alloca { .. }),
        None => {
            distinct
                && matches!(func.values[v].def, ValueDef::Param(block, _) if Some(block) == func.entry())
        }
    };
    if base_a != base_b {
        return !known(base_a) || !known(base_b);
    }
    let range = |at: u64, parts: Option<&PointeeParts>| match parts {
        Some(parts) => Some((at + parts.keys().next()?, at + parts_end(parts))),
        None => Some((0, u64::MAX)),
    };
    match (range(at_a, a.1), range(at_b, b.1)) {
        (Some((a0, a1)), Some((b0, b1))) => a0 < b1 && b0 < a1,
        // No accesses at all.
        _ => false,
    }
}

/// Returns true if the parts can be passed by value at the calls in another function. `distinct`:
/// its own parameters point to memory that does not overlap.
pub(super) fn fits_caller(
    func: &Function,
    callee: FuncId,
    plan: &ByValueParams,
    distinct: bool,
) -> bool {
    check_caller(func, callee, plan, distinct).is_some()
}

fn check_caller(
    func: &Function,
    callee: FuncId,
    plan: &ByValueParams,
    distinct: bool,
) -> Option<()> {
    for &block in &func.layout {
        for &inst in &func.blocks[block].insts {
            let data = &func.insts[inst];
            if data.op != Op::Call(callee) {
                continue;
            }
            if data.args.len() != plan.0.len() {
                return None;
            }
            let pointers: Vec<(Value, Option<&PointeeParts>)> = data
                .args
                .iter()
                .zip(&plan.0)
                .filter(|(v, _)| func.ty(**v) == PRIVATE)
                .map(|(v, s)| (*v, s.as_ref()))
                .collect();
            for (i, &a) in pointers.iter().enumerate() {
                if pointers[i + 1..]
                    .iter()
                    .any(|&b| overlap(func, distinct, a, b))
                {
                    return None;
                }
                let Some(parts) = a.1 else { continue };
                let (from, at) = base(func, a.0)?;
                if let Some(Op::Alloca { size, .. }) = func.def_inst(from).map(|i| func.insts[i].op)
                {
                    if at.checked_add(parts_end(parts))? > u64::from(size) {
                        return None;
                    }
                }
            }
        }
    }
    Some(())
}

/// Passes the parts by value at the calls in another function, whose parameters point to memory that
/// does not overlap: where it is called that is checked in turn. Returns `None` if that is impossible at
/// a call.
pub(super) fn rewrite_caller(
    func: &mut Function,
    callee: FuncId,
    plan: &ByValueParams,
) -> Option<()> {
    check_caller(func, callee, plan, true)?;
    rewrite(func, |r, inst| {
        let data = r.data(inst);
        if data.op != Op::Call(callee) {
            return Ok(InstEdit::Keep);
        }
        let mut args = Vec::new();
        let mut outputs = Vec::new();
        for (&arg, parts) in data.args.iter().zip(&plan.0) {
            let Some(parts) = parts else {
                args.push(arg);
                continue;
            };
            for (&at, part) in parts {
                let address = r.offset(arg, at);
                let align = part.align;
                args.push(r.op(
                    Op::Load {
                        align,
                        volatile: false,
                    },
                    [address],
                    part.ty,
                ));
                if part.written {
                    outputs.push((address, part.ty, align));
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
        Ok(InstEdit::Remove)
    })
    .ok()
}
