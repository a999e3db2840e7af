//! Collects the claims of the analyses that passes rely on, in a form that the interpreter checks.
//!
//! [`of`] does so for a function in any stage of lowering, as the next pass finds it; [`bound`]
//! adds those that stay true in what back ends get.

use super::{
    byte_arrays, cse, dce, fold_constant_loads, lower_builtin_vars, lower_generic_ptr,
    narrow_params, share_calls,
};
use crate::analysis::alignment::Alignments;
use crate::analysis::alloca::Addresses;
use crate::analysis::arg_access;
use crate::analysis::cfg::Cfg;
use crate::analysis::dom::DomTree;
use crate::analysis::iterations;
use crate::analysis::loops::LoopForest;
use crate::analysis::narrow_induction;
use crate::claims::{alias_set, AccessClaims, Bound, Claims};
use crate::ir::entity::{FuncId, Value};
use crate::ir::function::{Function, InstData};
use crate::ir::module::Module;
use crate::ir::op::Op;
use crate::ir::types::Space;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// The highest value of 32 bits.
const LOW: u64 = u32::MAX as u64;

/// Returns the claims about the kernel of a module and about the functions that it may call. `wide`:
/// ids may have more than 32 bits.
pub fn of_module(module: &Module, kernel: FuncId, wide: bool) -> Vec<Claims> {
    let mut pieces = Vec::new();
    for (id, func) in module.functions.iter() {
        if func.layout.is_empty() {
            continue;
        }
        let mut claims = of_part(func, module, wide);
        if let Some(sets) = share_calls::alias_sets(module, (kernel, id)) {
            let sets: &dyn Fn(Value) -> u64 = &sets;
            alias(&mut claims, func, &[(sets, "passes::share_calls")]);
        }
        if id == kernel {
            pieces.insert(0, claims);
        } else {
            claims.callee = Some(id);
            pieces.push(claims);
        }
    }
    pieces
}

/// Returns the claims about a kernel without calls, in any stage. `wide`: ids may have more than 32
/// bits.
pub fn of(func: &Function, module: &Module, wide: bool) -> Claims {
    let mut claims = of_part(func, module, wide);
    for (value, spaces) in lower_generic_ptr::spaces(func) {
        let bound = (Bound::Spaces(spaces), "passes::lower_generic_ptr");
        claim(&mut claims.bounds, func, value, bound);
    }
    let [private, local] =
        [Space::Private, Space::Local].map(|space| byte_arrays::alias_sets(func, space));
    let of_arrays = |address| private[address] | local[address];
    alias(&mut claims, func, &[(&of_arrays, "passes::byte_arrays")]);
    claims
}

/// Adds a claim about a value that is no constant.
fn claim(
    bounds: &mut FxHashMap<Value, Vec<(Bound, &'static str)>>,
    func: &Function,
    value: Value,
    bound: (Bound, &'static str),
) {
    if func.as_const(value).is_none() {
        bounds.entry(value).or_default().push(bound);
    }
}

/// Returns the claims about a function that may be called, or call others.
fn of_part(func: &Function, module: &Module, wide: bool) -> Claims {
    let mut claims = Claims::new(func.clone());
    bound(&mut claims, func, module);
    let cfg = Cfg::new(func);
    let mut claim = |value, bound, analysis| {
        claim(&mut claims.bounds, func, value, (bound, analysis));
    };
    for (value, bits) in fold_constant_loads::known(func, &module.globals) {
        claim(value, Bound::Is(bits), "passes::fold_constant_loads");
    }
    for &inst in func.layout_insts() {
        let data = &func.insts[inst];
        let narrow = matches!(data.op, Op::Builtin(b) if !wide && lower_builtin_vars::is_narrow(b));
        for &value in &data.results {
            if func.ty(value).is_ptr() && lower_generic_ptr::is_object(func, value) {
                claim(value, Bound::NotNull, "passes::lower_generic_ptr");
            }
            if narrow {
                claim(value, Bound::AtMost(LOW), "passes::lower_builtin_vars");
            }
        }
    }
    let forest = LoopForest::new(&cfg, &DomTree::new(&cfg));
    for &block in cfg.rpo() {
        let mut at = forest.innermost(block);
        while let Some(id) = at {
            claims.loops[block].insert(0, forest.loops[id].header);
            at = forest.loops[id].parent;
        }
    }
    let roots = Addresses::new(func, &cfg, true);
    let of_roots = |address| alias_set(roots.alloca(address).map_or(0, |(n, _)| n as u32 + 1));
    let (of_cse, of_dce) = (cse::alias_sets(func), dce::alias_sets(func));
    alias(
        &mut claims,
        func,
        &[
            (&of_roots, "analysis::alloca"),
            (&of_cse, "passes::cse"),
            (&of_dce, "passes::dce"),
        ],
    );
    claims
}

/// Adds the claims about values of each work-item, and about loops.
pub fn bound(claims: &mut Claims, func: &Function, module: &Module) {
    let Claims {
        bounds, repeats, ..
    } = claims;
    let cfg = Cfg::new(func);
    let mut claim = |value, bound, analysis| claim(bounds, func, value, (bound, analysis));
    let aligned = |id| module.globals.get(id).map_or(1, |global| global.align);
    let alignments = Alignments::new(func, &[], aligned);
    for &block in cfg.rpo() {
        let insts = &func.blocks[block].insts;
        let results = insts.iter().flat_map(|&inst| &func.insts[inst].results);
        for &value in func.blocks[block].params.iter().chain(results) {
            let of = alignments.of(value);
            if of > 1 {
                claim(value, Bound::Multiple(of), "analysis::alignment");
            }
        }
    }
    for counter in narrow_induction::within_32_bits(func, &cfg) {
        let results = &func.insts[counter.next].results;
        for &value in results.iter().chain([&counter.param]) {
            claim(value, Bound::AtMost(LOW), "analysis::narrow_induction");
        }
    }
    let [zero, sign] = narrow_params::narrow(func, &cfg);
    for (values, bound) in [(zero, Bound::AtMost(LOW)), (sign, Bound::SignExtended)] {
        for value in values {
            claim(value, bound, "passes::narrow_params");
        }
    }
    let forest = LoopForest::new(&cfg, &DomTree::new(&cfg));
    for lp in forest.loops.values().filter(|_| forest.is_reducible()) {
        if let Some(most) = iterations::trips(func, lp) {
            repeats.insert(lp.header, most);
        }
    }
}

/// Adds the claims about the arguments whose memory a kernel accesses: it has its parameters yet.
pub fn add_arguments(claims: &mut Claims) {
    let func = &claims.func;
    let sources = arg_access::sources(func);
    for &inst in func.layout_insts() {
        let data = &func.insts[inst];
        for (operand, size, writes) in accessed(func, data) {
            let address = data.args[operand];
            let space = func.ty(address).space();
            let local = matches!(space, Some(Space::Local | Space::Private));
            if local || sources[address] & arg_access::UNKNOWN != 0 {
                continue;
            }
            let access = AccessClaims {
                operand,
                size,
                writes,
                sets: Vec::new(),
                args: Some(sources[address]),
            };
            claims.accesses.entry(inst).or_default().push(access);
        }
    }
}

/// An analysis that gives the alias sets of addresses, with its name.
type Aliases<'a> = (&'a dyn Fn(Value) -> u64, &'static str);

/// Adds the claims about the memory that accesses have in common.
fn alias(claims: &mut Claims, func: &Function, analyses: &[Aliases]) {
    for &inst in func.layout_insts() {
        let data = &func.insts[inst];
        for (operand, size, writes) in accessed(func, data) {
            let address = data.args[operand];
            if matches!(
                func.ty(address).space(),
                Some(Space::Global | Space::Constant)
            ) {
                continue;
            }
            let sets = analyses.iter().map(|(sets, name)| (sets(address), *name));
            let sets: Vec<_> = sets.filter(|&(sets, _)| sets != 0).collect();
            if sets.is_empty() {
                continue;
            }
            let access = AccessClaims {
                operand,
                size,
                writes,
                sets,
                args: None,
            };
            claims.accesses.entry(inst).or_default().push(access);
        }
    }
}

/// Returns the operands through which an instruction accesses memory, each with the number of bytes
/// and whether it writes.
fn accessed(func: &Function, data: &InstData) -> SmallVec<[(usize, u64, bool); 2]> {
    let bytes = |values: &[Value]| values.iter().map(|&v| u64::from(func.ty(v).size())).sum();
    let stored = || bytes(data.args.get(1..2).unwrap_or_default());
    let mut list = SmallVec::new();
    match data.op {
        Op::Load { .. } | Op::AtomicLoad { .. } => list.push((0, bytes(&data.results), false)),
        Op::Store { .. } => list.push((0, bytes(data.args.get(1..).unwrap_or_default()), true)),
        Op::AtomicStore { .. } | Op::AtomicRmw { .. } | Op::AtomicCmpXchg { .. } => {
            list.push((0, stored(), true));
        }
        Op::MemCopy { size, .. } => list.extend([(0, size, true), (1, size, false)]),
        _ => {}
    }
    list
}
