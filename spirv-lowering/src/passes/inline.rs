//! Inlines every call, bottom-up, so that a kernel becomes one function.
//!
//! Each function that the kernel reaches is flattened once, cleaned once, and then copied to its callers: the work is
//! linear in the size of the result. A callee's entry block is spliced into the calling block (it has no
//! predecessors), and where the callee returns in one place only the caller goes on in that very block. Allocas move
//! to the entry block of the caller.

use crate::error::{LowerError, Result};
use crate::ir::compact::{compact, CopyMap};
use crate::ir::entity::{Block, FuncId, Inst};
use crate::ir::function::{Edge, Function, Terminator, Values};
use crate::ir::module::Module;
use crate::ir::op::Op;
use crate::ir::subst::Subst;
use rustc_hash::{FxHashMap, FxHashSet};

/// The most instructions of one flattened function.
const MAX_INSTS: usize = 8_000_000;

/// Inlines everything into the kernel's function, in place.
pub fn run(module: &mut Module, kernel: FuncId) -> Result<()> {
    let func = flatten(module, kernel, usize::MAX, &mut super::clean)?;
    let lost = || LowerError::internal("inlining lost the kernel");
    module.functions[kernel] = func.ok_or_else(lost)?;
    Ok(())
}

/// Returns the function without calls, each callee passed through `clean` before it is copied.
/// Returns `None` if a function would exceed `most` instructions.
///
/// # Errors
///
/// Recursion is unsupported, and a call to a function without body is an undefined symbol.
pub fn flatten(
    module: &Module,
    kernel: FuncId,
    most: usize,
    clean: &mut dyn FnMut(&mut Function) -> bool,
) -> Result<Option<Function>> {
    let mut done = flatten_but(module, kernel, &FxHashSet::default(), most, clean)?;
    Ok(done.remove(&with_body(module, kernel, None)?))
}

/// Flattens the kernel and every function that it reaches, except that calls of the functions in
/// `keep` stay. Stops without the kernel where a function would exceed `most` instructions.
pub fn flatten_but(
    module: &Module,
    kernel: FuncId,
    keep: &FxHashSet<FuncId>,
    most: usize,
    clean: &mut dyn FnMut(&mut Function) -> bool,
) -> Result<FxHashMap<FuncId, Function>> {
    let mut done: FxHashMap<FuncId, Function> = FxHashMap::default();
    let mut active: FxHashMap<FuncId, ()> = FxHashMap::default();
    // (function, its callees, how many were looked at)
    let mut stack: Vec<(FuncId, Vec<FuncId>, usize)> = Vec::new();
    let kernel = with_body(module, kernel, None)?;
    active.insert(kernel, ());
    stack.push((kernel, callees(module, kernel)?, 0));
    while let Some((id, list, next)) = stack.last_mut() {
        let id = *id;
        if let Some(&callee) = list.get(*next) {
            *next += 1;
            if active.contains_key(&callee) {
                return Err(LowerError::unsupported("recursive calls")
                    .in_function(&module.functions[callee].name));
            }
            if !done.contains_key(&callee) {
                active.insert(callee, ());
                let list = callees(module, callee)?;
                stack.push((callee, list, 0));
            }
            continue;
        }
        stack.pop();
        active.remove(&id);
        let source = &module.functions[id];
        if expanded_size(module, source, &done)? > most {
            break;
        }
        let mut func = expand(module, source, &done, keep)?;
        if !stack.is_empty() {
            clean(&mut func);
            func = compact(&func);
        }
        done.insert(id, func);
    }
    Ok(done)
}

/// Returns the function itself or, for an import, the definition of that name.
pub(super) fn with_body(module: &Module, id: FuncId, caller: Option<&Function>) -> Result<FuncId> {
    let in_caller = |e: LowerError| match caller {
        Some(caller) => e.in_function(&caller.name),
        None => e,
    };
    let func = module
        .functions
        .get(id)
        .ok_or_else(|| in_caller(LowerError::internal(format!("call of missing {id}"))))?;
    if !func.layout.is_empty() {
        return Ok(id);
    }
    module
        .by_name
        .get(&func.name)
        .copied()
        .filter(|&d| {
            module
                .functions
                .get(d)
                .is_some_and(|f| !f.layout.is_empty())
        })
        .ok_or_else(|| {
            in_caller(LowerError::Undefined {
                function: None,
                name: func.name.clone(),
            })
        })
}

/// Returns the functions that a function calls, one for each call.
pub(super) fn callees(module: &Module, id: FuncId) -> Result<Vec<FuncId>> {
    let func = &module.functions[id];
    let mut list = Vec::new();
    for &block in &func.layout {
        for &inst in &func.blocks[block].insts {
            if let Op::Call(callee) = func.insts[inst].op {
                list.push(with_body(module, callee, Some(func))?);
            }
        }
    }
    list.sort();
    list.dedup();
    Ok(list)
}

/// Returns the number of instructions of a function with its calls replaced by the bodies in
/// `done`. Calls of other functions stay.
fn expanded_size(
    module: &Module,
    source: &Function,
    done: &FxHashMap<FuncId, Function>,
) -> Result<usize> {
    let mut size = source.insts.len();
    for &block in &source.layout {
        for &inst in &source.blocks[block].insts {
            if let Op::Call(callee) = source.insts[inst].op {
                let callee = done.get(&with_body(module, callee, Some(source))?);
                size = size.saturating_add(callee.map_or(0, |body| body.insts.len()));
            }
        }
    }
    Ok(size)
}

/// Copies `source` with its calls replaced by the bodies in `done`.
fn expand(
    module: &Module,
    source: &Function,
    done: &FxHashMap<FuncId, Function>,
    keep: &FxHashSet<FuncId>,
) -> Result<Function> {
    let mut func = source.clone();
    let Some(entry) = func.entry() else {
        return Ok(func);
    };
    let mut subst = Subst::new();
    let mut allocas: Vec<Inst> = Vec::new();
    let mut layout = Vec::new();
    for first in std::mem::take(&mut func.layout) {
        layout.push(first);
        let has_call = func.blocks[first]
            .insts
            .iter()
            .any(|&i| matches!(func.insts[i].op, Op::Call(_)));
        if !has_call {
            continue;
        }
        let term = std::mem::take(&mut func.blocks[first].term);
        let mut block = first;
        for inst in std::mem::take(&mut func.blocks[first].insts) {
            let Op::Call(callee) = func.insts[inst].op else {
                func.blocks[block].insts.push(inst);
                continue;
            };
            let callee = with_body(module, callee, Some(source))?;
            if keep.contains(&callee) {
                func.insts[inst].op = Op::Call(callee);
                func.blocks[block].insts.push(inst);
                continue;
            }
            let body = done
                .get(&callee)
                .ok_or_else(|| LowerError::internal("callee is not flattened yet"))?;
            block = splice(
                &mut func,
                block,
                inst,
                body,
                &mut subst,
                &mut allocas,
                &mut layout,
            )
            .map_err(|e| e.in_function(&source.name))?;
            if func.insts.len() > MAX_INSTS {
                return Err(LowerError::unsupported(format!(
                    "more than {MAX_INSTS} instructions after inlining"
                ))
                .in_function(&source.name));
            }
        }
        func.blocks[block].term = term;
    }
    func.layout = layout;
    if !allocas.is_empty() {
        let insts = &mut func.blocks[entry].insts;
        insts.splice(0..0, allocas);
    }
    subst.apply(&mut func);
    Ok(func)
}

/// Copies `body` to the end of `block` in place of the call. Returns the block in which the caller
/// continues.
fn splice(
    func: &mut Function,
    block: Block,
    call: Inst,
    body: &Function,
    subst: &mut Subst,
    allocas: &mut Vec<Inst>,
    layout: &mut Vec<Block>,
) -> Result<Block> {
    let mut map = CopyMap::new(body);
    let first = func.insts.len();
    let entry = body
        .entry()
        .ok_or_else(|| LowerError::internal("call of a function without body"))?;
    let args = func.insts[call].args.clone();
    let results = func.insts[call].results.clone();
    let params = &body.blocks[entry].params;
    if params.len() != args.len() || results.len() != body.results.len() {
        return Err(LowerError::invalid(format!(
            "call of `{}` with {} arguments for {} parameters",
            body.name,
            args.len(),
            params.len()
        )));
    }
    for (&param, &arg) in params.iter().zip(&args) {
        map.set_value(param, arg);
    }
    // The copy of the entry is the calling block itself.
    let old_len = func.blocks[block].insts.len();
    map.set_block(entry, block);
    map.copy_insts(body, entry, func, block);
    // Allocas leave it.
    let copied = func.blocks[block].insts.split_off(old_len);
    for inst in copied {
        if matches!(func.insts[inst].op, Op::Alloca { .. }) {
            allocas.push(inst);
        } else {
            func.blocks[block].insts.push(inst);
        }
    }
    for &from in body.layout.iter().skip(1) {
        let to = func.blocks.push(Default::default());
        layout.push(to);
        map.set_block(from, to);
        for &param in &body.blocks[from].params {
            let new = func.add_param(to, body.values[param].ty);
            map.set_value(param, new);
        }
        map.copy_insts(body, from, func, to);
    }
    map.fix_operands(func, first);
    let line = func.insts[call].line;
    for i in first..func.insts.len() {
        let data = &mut func.insts[crate::ir::entity::Entity::new(i)]
            as &mut crate::ir::function::InstData;
        if line != 0 && data.line == 0 {
            data.line = line;
        }
    }

    let mut returns: Vec<(Block, Values)> = Vec::new();
    for &from in &body.layout {
        let to = map.block(from);
        match map.term(&body.blocks[from].term) {
            Terminator::Return(values) => returns.push((to, values)),
            term => func.blocks[to].term = term,
        }
    }
    if let [(at, values)] = &returns[..] {
        for (&result, &value) in results.iter().zip(values) {
            subst.set(result, value);
        }
        return Ok(*at);
    }
    let cont = func.blocks.push(Default::default());
    layout.push(cont);
    for &result in &results {
        let ty = func.ty(result);
        let param = func.add_param(cont, ty);
        subst.set(result, param);
    }
    for (at, values) in returns {
        func.blocks[at].term = Terminator::Jump(Edge::with(cont, values));
    }
    Ok(cont)
}
