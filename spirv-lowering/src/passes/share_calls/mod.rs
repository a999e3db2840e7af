//! Inlines calls, with one copy of large functions.
//!
//! Where the target has calls, large functions stay functions ([`keep`]). Elsewhere everything must
//! become one function. Where inlining every call would make it too large
//! (cryptographic kernels call block functions of thousands of instructions from dozens of places,
//! and drivers take minutes over millions of instructions), a large function gets *one* copy in the
//! kernel that all its call sites share: they jump to it with their arguments and their number, and
//! it jumps back by a switch on the number.
//!
//! The price is that every value which is live across a call passes through the shared code. With
//! many values and calls the result is larger than with everything inlined: which of the two is
//! kept is decided when both are there (see `pipeline`). Each call is an iteration of a loop around
//! the shared code, too, which matters to drivers that count them.
//!
//! 1. Functions to share are chosen by the instructions saved, until the estimate is within
//!    [`Limits::budget`], and beyond that where it pays: a call of a shared function is not free.
//! 2. Where any has generic pointers as parameters, there are copies of it for the spaces of the
//!    arguments ([`spaces`]), and the choice is made once more.
//! 3. Everything else is inlined.
//! 4. Private memory behind pointer parameters of shared functions that is only accessed at
//!    constant offsets is passed by value, in and out, so that arrays of the callers can still become
//!    values.
//! 5. Where there are very many calls, the values that live across them share parameters ([`carry`]).
//! 6. The copies are placed, the calls become jumps, SSA form is repaired.
//!
//! Work-items in different calls may meet in shared code, so nothing is shared that could contain
//! or precede a barrier or another collective operation. Images must be known at compile time, so
//! no function is shared that takes one. Whatever does not fit these rules is inlined as usual.

mod addressed;
mod by_value;
mod carry;
mod choose;
mod keep;
mod spaces;

pub use by_value::alias_sets;
pub use choose::Limits;

use super::inline::{flatten, flatten_but, with_body};
use super::{clean, expand_memcopy};
use crate::edit::{flow, repair_ssa};
use crate::error::Result;
use crate::ir::compact::{compact, CopyMap};
use crate::ir::entity::{Block, FuncId, Inst, Value};
use crate::ir::function::{Edge, Function, Terminator, Values};
use crate::ir::module::Module;
use crate::ir::op::{Effect, Op};
use crate::ir::types::Type;
use choose::{Form, Graph};
use rustc_hash::{FxHashMap, FxHashSet};

/// A kernel and the functions that it calls.
#[derive(Debug, Clone, Default)]
pub struct WithCallees {
    /// The kernel.
    pub kernel: Function,
    /// The functions, callees before callers, by the numbers that calls have for them.
    pub callees: Vec<(FuncId, Function)>,
}

impl WithCallees {
    /// Creates a kernel without calls.
    pub fn none(kernel: Function) -> Self {
        Self {
            kernel,
            callees: Vec::new(),
        }
    }

    fn size(&self) -> usize {
        let callees = self.callees.iter().map(|(_, func)| func.insts.len());
        self.kernel.insts.len() + callees.sum::<usize>()
    }
}

/// A kernel in up to two forms.
pub struct Forms {
    /// The form with everything inlined, or `None` if it would be far larger than the other form.
    pub inlined: Option<Function>,
    /// The form with one copy of large functions, or `None` if there are none or there cannot be
    /// one.
    pub divided: Option<WithCallees>,
}

/// The factor by which the inlined form may exceed the shared form in size before the clean-up of
/// the whole makes it smaller. It is chosen up to twice the size.
const TIMES_AS_LARGE: usize = 8;

/// The factor by which the clean-up of functions may make the inlined form smaller than it is as
/// read. It is not tried where it would have to be more.
const TIMES_CLEANED: usize = 16;

/// Makes a kernel of its functions, within limits. `keeps`: the target has calls, which large
/// functions are kept for; where that is impossible, and on other targets, they are shared.
pub fn run(module: &Module, kernel: FuncId, limits: &Limits, keeps: bool) -> Result<Forms> {
    let kernel = with_body(module, kernel, None)?;
    let graph = Graph::new(module, kernel, Form::Shared)?;
    let kept = match keeps {
        true => keep::run(module, kernel, limits)?,
        false => None,
    };
    let divided = match kept {
        Some(kept) => Some(kept),
        None => shared(module, kernel, &graph, limits)?.map(WithCallees::none),
    };
    let most = match &divided {
        Some(divided) => limits.most.max(divided.size() * TIMES_AS_LARGE),
        None => usize::MAX,
    };
    let inlined = match graph.inlined_size() > most.saturating_mul(TIMES_CLEANED) as u64 {
        true => None,
        false => flatten(module, kernel, most, &mut clean)?,
    };
    Ok(Forms { inlined, divided })
}

fn shared(
    module: &Module,
    kernel: FuncId,
    graph: &Graph,
    limits: &Limits,
) -> Result<Option<Function>> {
    let chosen = graph.choose(limits);
    if chosen.is_empty() {
        return Ok(None);
    }
    if !spaces::concerns(module, &graph.order) {
        return with_shared(module, kernel, graph, &chosen, limits);
    }
    let module = spaces::specialise(module, kernel)?;
    let graph = Graph::new(&module, kernel, Form::Shared)?;
    match graph.choose(limits) {
        chosen if chosen.is_empty() => Ok(None),
        chosen => with_shared(&module, kernel, &graph, &chosen, limits),
    }
}

fn with_shared(
    module: &Module,
    kernel: FuncId,
    graph: &Graph,
    shared: &FxHashSet<FuncId>,
    limits: &Limits,
) -> Result<Option<Function>> {
    let mut bodies = flatten_but(module, kernel, shared, usize::MAX, &mut clean)?;
    bodies.retain(|id, _| *id == kernel || shared.contains(id));
    let order: Vec<FuncId> = graph
        .order
        .iter()
        .copied()
        .filter(|id| shared.contains(id))
        .collect();
    Ok(share(bodies, kernel, &order, limits))
}

/// Joins the bodies. `order`: the shared functions, callees first. Returns `None` if that is
/// impossible.
fn share(
    mut bodies: FxHashMap<FuncId, Function>,
    kernel: FuncId,
    order: &[FuncId],
    limits: &Limits,
) -> Option<Function> {
    for body in bodies.values_mut() {
        expand_memcopy::run(body).ok()?;
    }
    clean(bodies.get_mut(&kernel)?);
    if bodies.values().any(by_value::has_escapes) {
        return None;
    }
    for &id in order {
        let mut func = bodies.remove(&id)?;
        clean(&mut func);
        let plan = by_value::plan(&func)?;
        by_value::rewrite_callee(&mut func, &plan)?;
        clean(&mut func);
        for other in bodies.values_mut() {
            by_value::rewrite_caller(other, id, &plan)?;
        }
        bodies.insert(id, compact(&func));
    }
    let func = bodies.get_mut(&kernel)?;
    clean(func);
    *func = compact(func);
    bodies.values_mut().for_each(hoist);
    carry::run(&mut bodies, kernel, order, limits.calls_squared)?;
    let mut func = bodies.remove(&kernel)?;
    let mut placed: FxHashMap<FuncId, Placed> = FxHashMap::default();
    for id in order {
        let copy = place(&mut func, bodies.get(id)?)?;
        placed.insert(*id, copy);
    }
    jump(&mut func, &placed)?;
    flow::drop_unreachable(&mut func);
    if reaches_convergent(&func, &placed) {
        return None;
    }
    repair_ssa::run(&mut func);
    Some(func)
}

/// The copy of a shared function.
struct Placed {
    entry: Block,
    /// The block that takes the results and ends in the switch.
    exit: Block,
    /// The number of the call.
    selector: Value,
}

/// Copies a body into the kernel, with no edge to it yet.
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
            Terminator::Return(args) => Terminator::Jump(Edge::with(exit, args)),
            term => term,
        };
    }
    // Private memory belongs to the entry block of the kernel, and so does what needs nothing else.
    let entry = map.block(body_entry);
    let free = goes_to_entry(func, entry);
    let (allocas, rest): (Vec<Inst>, Vec<Inst>) = std::mem::take(&mut func.blocks[entry].insts)
        .into_iter()
        .partition(|&i| func.insts[i].results.iter().any(|v| free.contains(v)));
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

/// Returns the values of the entry block of a shared function that need nothing else, and so go to
/// the entry block of the kernel.
fn goes_to_entry(func: &Function, entry: Block) -> FxHashSet<Value> {
    let mut free: FxHashSet<Value> = FxHashSet::default();
    for &inst in &func.blocks[entry].insts {
        if needs_nothing_else(func, inst, &free) {
            free.extend(func.insts[inst].results.iter().copied());
        }
    }
    free
}

/// Returns true for a constant, an address of memory, a built-in variable, and an offset from
/// `known` values.
fn needs_nothing_else(func: &Function, inst: Inst, known: &FxHashSet<Value>) -> bool {
    let data = &func.insts[inst];
    match data.op {
        Op::Const(_) | Op::Undef | Op::GlobalAddr(_) | Op::Builtin(_) | Op::Alloca { .. } => true,
        Op::PtrAdd => data.args.iter().all(|v| known.contains(v)),
        _ => false,
    }
}

/// Hoists constants and addresses within private memory to the entry block. Otherwise they would
/// have to pass through the shared code.
fn hoist(func: &mut Function) {
    let Some(entry) = func.entry() else { return };
    let mut at_entry: FxHashSet<Value> = func.blocks[entry].params.iter().copied().collect();
    let mut moved = Vec::new();
    for block in crate::analysis::cfg::Cfg::new(func).rpo().to_vec() {
        let insts = std::mem::take(&mut func.blocks[block].insts);
        let mut rest = Vec::with_capacity(insts.len());
        for inst in insts {
            if needs_nothing_else(func, inst, &at_entry) {
                at_entry.extend(func.insts[inst].results.iter().copied());
                moved.push(inst);
            } else {
                rest.push(inst);
            }
        }
        func.blocks[block].insts = rest;
    }
    func.blocks[entry].insts.splice(0..0, moved);
}

/// A call that became a jump.
struct Jumped {
    /// The block that it jumps from.
    from: Block,
    callee: FuncId,
    /// The number by which the shared code returns to it.
    number: u64,
    /// The block that it returns to.
    cont: Block,
}

/// Replaces all calls by jumps.
fn jump(func: &mut Function, placed: &FxHashMap<FuncId, Placed>) -> Option<()> {
    let mut calls: Vec<Jumped> = Vec::new();
    let mut counts: FxHashMap<FuncId, u64> = FxHashMap::default();
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
            let count = counts.entry(callee).or_default();
            let number = *count;
            *count += 1;
            let selector = func.append_const(at, Type::I32, number);
            let cont = func.blocks.push(Default::default());
            layout.push(cont);
            calls.push(Jumped {
                from: at,
                callee,
                number,
                cont,
            });
            let data = func.insts[inst].clone();
            let mut args: Values = data.args.clone();
            args.push(selector);
            func.blocks[at].term = Terminator::Jump(Edge::with(target.entry, args));
            for &result in &data.results {
                let new = func.add_param(cont, func.ty(result));
                renamed.insert(result, new);
            }
            at = cont;
        }
        func.blocks[at].term = term;
    }
    func.layout = layout;
    keep_returning(func, placed, &mut calls);
    for (id, target) in placed {
        let values = &func.blocks[target.exit].params;
        let mut cases: Vec<(u64, Edge)> = calls
            .iter()
            .filter(|call| call.callee == *id)
            .map(|call| (call.number, Edge::with(call.cont, values.iter().copied())))
            .collect();
        func.blocks[target.exit].term = match (cases.pop(), cases.is_empty()) {
            (None, _) => Terminator::Unreachable,
            (Some((_, last)), true) => Terminator::Jump(last),
            (Some((_, last)), false) => Terminator::Switch(target.selector, cases, last),
        };
    }
    func.map_uses(|v| renamed.get(&v).copied().unwrap_or(v));
    Some(())
}

/// Keeps only the calls that return: the call itself is reachable, and the end of its callee, too.
/// The code after a call that never returns is dropped; if a switch of shared code led into the
/// rest of that function, values of the dropped code would have no definition there.
fn keep_returning(func: &Function, placed: &FxHashMap<FuncId, Placed>, calls: &mut Vec<Jumped>) {
    let mut seen: FxHashSet<Block> = FxHashSet::default();
    let mut work: Vec<Block> = func.entry().into_iter().collect();
    let mut open = std::mem::take(calls);
    while !work.is_empty() {
        while let Some(block) = work.pop() {
            if seen.insert(block) {
                let targets = func.blocks[block].term.targets();
                work.extend(targets.iter().map(|t| t.block));
            }
        }
        let returns = |call: &Jumped| {
            let exit = placed.get(&call.callee).map(|p| p.exit);
            seen.contains(&call.from) && exit.is_some_and(|exit| seen.contains(&exit))
        };
        let (back, rest): (Vec<_>, Vec<_>) = open.into_iter().partition(returns);
        open = rest;
        work.extend(back.iter().map(|call| call.cont));
        calls.extend(back);
    }
    calls.sort_by_key(|call| (call.callee, call.number));
}

/// Returns true if a collective operation is reachable from shared code.
fn reaches_convergent(func: &Function, placed: &FxHashMap<FuncId, Placed>) -> bool {
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
