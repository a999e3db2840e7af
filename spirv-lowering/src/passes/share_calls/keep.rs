//! Keeps large functions as functions that are called, for targets that have calls.
//!
//! A function that is kept takes and returns numbers and addresses: private memory behind its
//! parameters is passed by value, as for shared functions, or gets an address ([`addressed`]).
//! Functions that print, in which a work-item may wait, and those of what work-items do together are
//! inlined.

use super::choose::{Form, Graph};
use super::{addressed, by_value, spaces, Limits, WithCallees};
use crate::analysis::control_flow::ControlFlow;
use crate::analysis::waits::{self, Looking};
use crate::error::Result;
use crate::ir::compact::compact;
use crate::ir::entity::FuncId;
use crate::ir::function::Function;
use crate::ir::module::Module;
use crate::ir::op::Op;
use crate::ir::types::{Space, Type};
use crate::passes::inline::flatten_but;
use crate::passes::{clean, expand_memcopy};
use rustc_hash::{FxHashMap, FxHashSet};

/// The size of a kernel, as read, from which on functions are kept.
const BUDGET: u64 = 20_000;

/// How often functions are chosen: those that do not fit are left out the next time.
const MOST_TRIES: usize = 4;

/// Returns the kernel with the functions that are kept, or `None` if there are none.
pub(super) fn run(module: &Module, kernel: FuncId, limits: &Limits) -> Result<Option<WithCallees>> {
    let mut graph = Graph::new(module, kernel, Form::Called)?;
    if graph.inlined_size() <= limits.budget.min(BUDGET) {
        return Ok(None);
    }
    let specialised;
    let mut module = module;
    if spaces::concerns(module, &graph.order) {
        specialised = spaces::specialise(module, kernel)?;
        module = &specialised;
        graph = Graph::new(module, kernel, Form::Called)?;
    }
    for _ in 0..MOST_TRIES {
        let kept = graph.keep(limits);
        let mut bodies = flatten_but(module, kernel, &kept, limits.most * 10, &mut clean)?;
        // One of the functions is too large all the same.
        if kept.is_empty() || !bodies.contains_key(&kernel) {
            return Ok(None);
        }
        bodies.retain(|id, _| *id == kernel || kept.contains(id));
        let order = graph.order.iter().copied().filter(|id| kept.contains(id));
        let order: Vec<FuncId> = order.collect();
        let looking = waits::looking(bodies.iter().map(|(id, func)| (*id, func)));
        let mut unfit: Vec<FuncId> = polling(bodies.get(&kernel), &looking);
        unfit.extend(order.iter().filter(|&id| {
            let func = bodies.get(id);
            func.is_some_and(|func| asks_of_pointers(func) || waits::may_wait(func, &looking))
        }));
        if unfit.is_empty() {
            return Ok(pass_memory(bodies, kernel, &order));
        }
        unfit.into_iter().for_each(|id| graph.exclude(id));
    }
    Ok(None)
}

/// Returns the functions by which the kernel looks at what others have written, in loops in which a
/// work-item may wait: what it looks at must be known there (`release_locks`).
fn polling(kernel: Option<&Function>, looking: &Looking) -> Vec<FuncId> {
    let Some(func) = kernel else {
        return Vec::new();
    };
    let flow = ControlFlow::new(func);
    let loops = waits::waiting_loops(func, &flow, looking);
    let blocks = loops.iter().flat_map(|&id| &flow.loops().loops[id].blocks);
    let insts = blocks.flat_map(|&block| &func.blocks[block].insts);
    let calls = insts.filter_map(|&inst| match func.insts[inst].op {
        Op::Call(id) if looking.contains(&id) => Some(id),
        _ => None,
    });
    calls.collect()
}

/// Passes private memory by value where that is possible, else by its address. `order`: the
/// functions that are kept, callees first. Returns `None` if they cannot be kept.
fn pass_memory(
    mut bodies: FxHashMap<FuncId, Function>,
    kernel: FuncId,
    order: &[FuncId],
) -> Option<WithCallees> {
    for body in bodies.values_mut() {
        expand_memcopy::run(body).ok()?;
        clean(body);
    }
    let mut overlapping = FxHashSet::default();
    let mut bodies = loop {
        match pass_by_value(bodies.clone(), order, &overlapping)? {
            Ok(done) => break done,
            Err(id) => overlapping.insert(id),
        };
    };
    clean(bodies.get_mut(&kernel)?);
    addressed::run(&mut bodies, kernel)?;
    let kernel = compact(&bodies.remove(&kernel)?);
    let callees = order
        .iter()
        .map(|&id| Some((id, compact(&bodies.remove(&id)?))));
    Some(WithCallees {
        kernel,
        callees: callees.collect::<Option<_>>()?,
    })
}

/// Passes private memory by value where that is possible. The parameters of functions other than
/// those in `overlapping` count as pointers to memory that does not overlap; returns the function,
/// as `Err`, for which that was relied on and turns out to be unknown where it is called.
fn pass_by_value(
    mut bodies: FxHashMap<FuncId, Function>,
    order: &[FuncId],
    overlapping: &FxHashSet<FuncId>,
) -> Option<Result<FxHashMap<FuncId, Function>, FuncId>> {
    let mut relied = FxHashSet::default();
    for &id in order {
        let mut func = bodies.remove(&id)?;
        clean(&mut func);
        let plan = by_value::plan(&func)?;
        let fits = |(caller, func): (&FuncId, &Function)| {
            by_value::fits_caller(func, id, &plan, !overlapping.contains(caller))
        };
        if bodies.iter().all(fits) {
            by_value::rewrite_callee(&mut func, &plan)?;
            for (&caller, other) in &mut bodies {
                if !by_value::fits_caller(other, id, &plan, false) {
                    relied.insert(caller);
                }
                by_value::rewrite_caller(other, id, &plan)?;
            }
            clean(&mut func);
        } else if relied.contains(&id) {
            return Some(Err(id));
        }
        bodies.insert(id, func);
    }
    Some(Ok(bodies))
}

/// Returns true if pointers to private memory or generic ones become data or were data, so that it is
/// only known within one function what they point to.
fn asks_of_pointers(func: &Function) -> bool {
    if by_value::has_escapes(func) {
        return true;
    }
    let generic = Type::Ptr(Space::Generic);
    let mut insts = func.layout_insts();
    insts.any(|&inst| {
        let data = &func.insts[inst];
        let shown = match data.op {
            Op::Store { .. } | Op::AtomicStore { .. } => data.args.get(1..).unwrap_or_default(),
            Op::AtomicRmw { .. } | Op::AtomicCmpXchg { .. } => &data.args,
            Op::PtrToInt | Op::Bitcast | Op::Group(..) | Op::Call(_) => &data.args,
            Op::PtrIsIn(_) => return true,
            Op::Load { .. } | Op::IntToPtr => &data.results,
            _ => &[][..],
        };
        shown.iter().any(|&value| func.ty(value) == generic)
    })
}
