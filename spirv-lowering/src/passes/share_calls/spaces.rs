//! Copies functions for the spaces of their generic pointer parameters.
//!
//! From OpenCL C 2.0 on a plain pointer is generic, so that private memory behind a parameter of a
//! function is passed as a generic pointer: only its caller knows what it points to, and nothing
//! could be shared. This pass walks functions from the kernel on, callers first. Generic pointers
//! that come from one space alone become pointers into that space, and a call with such an argument
//! goes to a copy of its function with parameters of those types. A pointer that may be of several
//! spaces, or comes from memory, stays generic;
//! [`lower_generic_ptr`](crate::passes::lower_generic_ptr) lowers it once everything is one
//! function.

use crate::edit::rewrite::{rewrite_with_terms, InstEdit, Rewriter};
use crate::error::Result;
use crate::ir::entity::{FuncId, Inst, SecondaryMap, Value};
use crate::ir::function::{Function, Terminator, ValueData, ValueDef};
use crate::ir::module::Module;
use crate::ir::op::Op;
use crate::ir::types::{Space, Type};
use crate::passes::inline::with_body;
use rustc_hash::{FxHashMap, FxHashSet};

const GENERIC: Type = Type::Ptr(Space::Generic);

/// The most copies of one function.
const MOST_COPIES: u32 = 6;

/// The known origin of a generic pointer.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum Origin {
    /// No origin yet: null, or undefined.
    #[default]
    None,
    /// One space alone.
    One(Space),
    /// Several spaces, or an unknown one.
    Any,
}

impl Origin {
    fn of(ty: Type) -> Self {
        match ty {
            Type::Ptr(space @ (Space::Global | Space::Local | Space::Private)) => Self::One(space),
            _ => Self::Any,
        }
    }

    fn join(self, other: Self) -> Self {
        match (self, other) {
            (Self::None, origin) | (origin, Self::None) => origin,
            (a, b) if a == b => a,
            _ => Self::Any,
        }
    }
}

/// Computes the origins of the generic pointers of a function.
fn origins(func: &Function) -> SecondaryMap<Value, Origin> {
    let mut origins: SecondaryMap<Value, Origin> = SecondaryMap::new();
    if let Some(entry) = func.entry() {
        for &param in &func.blocks[entry].params {
            origins[param] = Origin::Any;
        }
    }
    loop {
        let mut changed = false;
        let mut join = |origins: &mut SecondaryMap<Value, Origin>, value: Value, origin: Origin| {
            let joined = origins[value].join(origin);
            changed |= joined != origins[value];
            origins[value] = joined;
        };
        for &block in &func.layout {
            for &inst in &func.blocks[block].insts {
                let data = &func.insts[inst];
                for &result in data.results.iter().filter(|&&v| func.ty(v) == GENERIC) {
                    let origin = match (data.op, data.args.as_slice()) {
                        (Op::Const(0) | Op::Undef, _) => Origin::None,
                        (Op::SpaceCast, &[from]) if func.ty(from) != GENERIC => {
                            Origin::of(func.ty(from))
                        }
                        (Op::SpaceCast | Op::PtrAdd, &[from, ..]) => origins[from],
                        (Op::Select, &[_, yes, no]) => origins[yes].join(origins[no]),
                        _ => Origin::Any,
                    };
                    join(&mut origins, result, origin);
                }
            }
            for target in func.blocks[block].term.targets() {
                for (&param, &arg) in func.blocks[target.block].params.iter().zip(&target.args) {
                    if func.ty(param) == GENERIC {
                        let origin = origins[arg];
                        join(&mut origins, param, origin);
                    }
                }
            }
        }
        if !changed {
            return origins;
        }
    }
}

/// Casts a pointer to the type that its user needs.
fn coerce(r: &mut Rewriter, value: Value, want: Type) -> Value {
    let value = r.resolve(value);
    match r.func.ty(value) {
        have if have == want || !have.is_ptr() || !want.is_ptr() => value,
        _ if r.func.as_const(value) == Some(0) => r.konst(want, 0),
        _ => r.op(Op::SpaceCast, [value], want),
    }
}

/// Returns, for a call and the types of its arguments, the callee and the types of its parameters.
type Resolve<'a> = dyn FnMut(FuncId, &[Type]) -> Result<(FuncId, Vec<Type>)> + 'a;

/// Makes generic pointers that come from one space pointers into that space.
fn narrow(func: &mut Function, resolve: &mut Resolve) -> Result<()> {
    let origins = origins(func);
    let mut was_generic: SecondaryMap<Value, bool> = SecondaryMap::new();
    for (value, data) in func.values.iter_mut() {
        if data.ty == GENERIC {
            was_generic[value] = true;
            if let Origin::One(space) = origins[value] {
                data.ty = Type::Ptr(space);
            }
        }
    }
    rewrite_with_terms(
        func,
        |r, inst| step(r, inst, &was_generic, resolve),
        |r, term| {
            if let Terminator::Return(values) = term {
                let wanted = r.func.results.clone();
                for (value, want) in values.iter_mut().zip(wanted) {
                    *value = coerce(r, *value, want);
                }
            }
            for target in term.targets_mut() {
                for (value, param) in target.args.iter_mut().zip(r.params(target.block)) {
                    let want = r.func.ty(param);
                    *value = coerce(r, *value, want);
                }
            }
            Ok(())
        },
    )
}

fn step(
    r: &mut Rewriter,
    inst: Inst,
    was_generic: &SecondaryMap<Value, bool>,
    resolve: &mut Resolve,
) -> Result<InstEdit> {
    let data = r.data(inst);
    let is_call = matches!(data.op, Op::Call(_));
    if !is_call
        && !data
            .args
            .iter()
            .chain(&data.results)
            .any(|&v| was_generic[v])
    {
        return Ok(InstEdit::Keep);
    }
    let args: Vec<Value> = data.args.iter().map(|&v| r.resolve(v)).collect();
    let types: Vec<Type> = args.iter().map(|&v| r.func.ty(v)).collect();
    let result = data.results.first().map(|&v| r.func.ty(v));
    // As it was, for those that look at the bits of a pointer.
    let before = |v: Value| was_generic[v].then_some(GENERIC);
    let mut op = data.op;
    let wanted: Vec<Option<Type>> = match (data.op, result) {
        (Op::SpaceCast, Some(to)) if types.first() == Some(&to) => {
            return Ok(r.replace_result(inst, args[0]));
        }
        (Op::SpaceCast, Some(Type::Ptr(Space::Local | Space::Private)))
            if types.first() != Some(&GENERIC) && was_generic[data.args[0]] =>
        {
            // It points elsewhere.
            let null = r.konst(r.func.ty(data.results[0]), 0);
            return Ok(r.replace_result(inst, null));
        }
        (Op::PtrIsIn(space), _) if types.first() != Some(&GENERIC) => {
            let is = types.first() == Some(&Type::Ptr(space));
            let is = r.konst(Type::Bool, is.into());
            return Ok(r.replace_result(inst, is));
        }
        (Op::PtrAdd, Some(to)) => vec![Some(to), None],
        (Op::Select, Some(to)) => vec![None, Some(to), Some(to)],
        (Op::ICmp(_), _) => {
            let null = |v: Value| r.func.as_const(v) == Some(0);
            let want = match *types.as_slice() {
                [a, b] if a == b || null(args[1]) => a,
                [_, b] if null(args[0]) => b,
                _ => GENERIC,
            };
            vec![Some(want); 2]
        }
        // Any address will do.
        (Op::MemCopy { .. } | Op::Load { .. } | Op::AtomicLoad { .. }, _) => {
            return Ok(InstEdit::Keep)
        }
        (
            Op::Store { .. }
            | Op::AtomicStore { .. }
            | Op::AtomicRmw { .. }
            | Op::AtomicCmpXchg { .. },
            _,
        ) => {
            let stored = data.args.iter().skip(1).map(|&v| before(v));
            [None].into_iter().chain(stored).collect()
        }
        (Op::Call(callee), _) => {
            let (callee, params) = resolve(callee, &types)?;
            op = Op::Call(callee);
            params.into_iter().map(Some).collect()
        }
        _ => data.args.iter().map(|&v| before(v)).collect(),
    };
    let mut new = data.args;
    for (i, (want, arg)) in wanted.into_iter().zip(args).enumerate() {
        if let Some(want) = want {
            new[i] = coerce(r, arg, want);
        }
    }
    let inst = &mut r.func.insts[inst];
    (inst.op, inst.args) = (op, new);
    Ok(InstEdit::Keep)
}

/// Copies a function with parameters of these types: generic ones may become pointers into a space.
fn copy_for(func: &Function, params: &[Type]) -> Function {
    let mut func = func.clone();
    let Some(entry) = func.entry() else {
        return func;
    };
    let mut casts = Vec::new();
    for (i, &ty) in params.iter().enumerate() {
        let old = func.blocks[entry].params[i];
        if func.ty(old) == ty {
            continue;
        }
        // The old value is the cast of the new parameter.
        let new = func.values.push(ValueData {
            ty,
            def: ValueDef::Param(entry, i as u32),
        });
        func.blocks[entry].params[i] = new;
        let cast = func.make_inst(Op::SpaceCast, [new], &[]);
        func.insts[cast].results.push(old);
        func.values[old].def = ValueDef::Result(cast, 0);
        casts.push(cast);
    }
    func.params = params.to_vec();
    func.blocks[entry].insts.splice(0..0, casts);
    func
}

/// Returns true if a function that a kernel reaches has a generic parameter.
pub(super) fn concerns(module: &Module, reached: &[FuncId]) -> bool {
    let generic = |id: &FuncId| module.functions[*id].params.contains(&GENERIC);
    reached.iter().any(generic)
}

/// Returns the module with copies of functions for the spaces of their arguments, as the kernel
/// calls them.
pub(super) fn specialise(module: &Module, kernel: FuncId) -> Result<Module> {
    let mut module = module.clone();
    let mut copies: FxHashMap<(FuncId, Vec<Type>), FuncId> = FxHashMap::default();
    let mut counts: FxHashMap<FuncId, u32> = FxHashMap::default();
    let mut seen: FxHashSet<FuncId> = FxHashSet::default();
    let mut work = vec![kernel];
    while let Some(id) = work.pop() {
        if !seen.insert(id) {
            continue;
        }
        let mut func = module.functions[id].clone();
        let mut called = Vec::new();
        let result = narrow(&mut func, &mut |callee, types| {
            let body = with_body(&module, callee, None)?;
            let params = module.functions[body].params.clone();
            let special = |(&param, &ty): (&Type, &Type)| match (param, Origin::of(ty)) {
                (GENERIC, Origin::One(_)) => ty,
                _ => param,
            };
            let wanted: Vec<Type> = params.iter().zip(types).map(special).collect();
            let key = (body, wanted.clone());
            if wanted == params {
                called.push(body);
                return Ok((callee, params));
            }
            let copy = match copies.get(&key) {
                Some(&copy) => copy,
                None => {
                    let count = counts.entry(body).or_default();
                    if *count >= MOST_COPIES {
                        called.push(body);
                        return Ok((callee, params));
                    }
                    *count += 1;
                    let copy = copy_for(&module.functions[body], &wanted);
                    let copy = module.functions.push(copy);
                    copies.insert(key, copy);
                    copy
                }
            };
            called.push(copy);
            Ok((copy, wanted))
        });
        result?;
        module.functions[id] = func;
        work.extend(called);
    }
    Ok(module)
}
