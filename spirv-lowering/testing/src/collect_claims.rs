//! Collects the claims of the analyses that passes rely on, for a function in any stage of
//! lowering, as the next pass finds it.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use spirv_lowering::analysis::alloca::Addresses;
use spirv_lowering::analysis::arg_access;
use spirv_lowering::analysis::cfg::Cfg;
use spirv_lowering::analysis::dom::DomTree;
use spirv_lowering::analysis::loops::LoopForest;
use spirv_lowering::claims::{alias_set, AccessClaims, Bound, Claims};
use spirv_lowering::ir::entity::{FuncId, Value};
use spirv_lowering::ir::function::{Function, InstData};
use spirv_lowering::ir::module::Module;
use spirv_lowering::ir::op::Op;
use spirv_lowering::ir::types::Space;
use spirv_lowering::passes::claims::bound;
use spirv_lowering::passes::{
    byte_arrays, cse, dce, fold_constant_loads, lower_builtin_vars, lower_generic_ptr, share_calls,
};

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
