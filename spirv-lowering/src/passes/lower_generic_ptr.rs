//! Resolves generic pointers to address spaces.
//!
//! Runs after inlining. A dataflow finds for each generic pointer the set of spaces that it may
//! point into, starting from the casts and going through additions, selections, block parameters. A
//! pointer that was loaded from memory or made from an integer may point into `global`, and into
//! any space from which a generic pointer of this function is stored or turned into an integer.
//!
//! A pointer with one space becomes a pointer into that space and costs nothing. One with several
//! becomes a *tagged* 64-bit integer: the two top bits name the space ([`TAG_LOCAL`],
//! [`TAG_PRIVATE`], otherwise global), the others are the address there; accesses through it branch
//! on the tag. Tagged form is also the representation of generic pointers in memory and as
//! integers; for global ones it is the plain address.

use crate::edit::rewrite::{rewrite_with_terms, InstEdit, Rewriter};
use crate::error::{LowerError, Result};
use crate::ir::entity::{Inst, SecondaryMap, Value};
use crate::ir::function::{Edge, Function, InstData, Terminator};
use crate::ir::op::{IntCond, Op};
use crate::ir::types::{Space, Type};

/// Tag of a pointer into local memory.
pub const TAG_LOCAL: u64 = 1 << 62;
/// Tag of a pointer into private memory.
pub const TAG_PRIVATE: u64 = 2 << 62;
const TAG_MASK: u64 = 3 << 62;

const GENERIC: Type = Type::Ptr(Space::Generic);

/// A set of spaces.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Spaces(u8);

impl Spaces {
    const GLOBAL: Self = Self(1);
    fn of(space: Space) -> Self {
        match space {
            Space::Global | Space::Constant => Self(1),
            Space::Local => Self(2),
            Space::Private => Self(4),
            Space::Generic => Self(0),
        }
    }
    /// Returns the spaces with their tags, global last.
    fn list(self) -> Vec<(Space, u64)> {
        [
            (4, Space::Private, TAG_PRIVATE),
            (2, Space::Local, TAG_LOCAL),
            (1, Space::Global, 0),
        ]
        .into_iter()
        .filter(|(bit, ..)| self.0 & bit != 0)
        .map(|(_, space, tag)| (space, tag))
        .collect()
    }
    /// Returns the type that represents a pointer with this set.
    fn ty(self) -> Type {
        match self.0 {
            0 | 1 => Type::Ptr(Space::Global),
            2 => Type::Ptr(Space::Local),
            4 => Type::Ptr(Space::Private),
            _ => Type::I64,
        }
    }
}

fn tag_of(space: Space) -> u64 {
    match space {
        Space::Local => TAG_LOCAL,
        Space::Private => TAG_PRIVATE,
        _ => 0,
    }
}

/// Computes the set of each generic pointer.
fn infer(func: &Function) -> SecondaryMap<Value, Spaces> {
    let mut sets: SecondaryMap<Value, Spaces> = SecondaryMap::new();
    let mut anything = Spaces::GLOBAL;
    loop {
        let mut changed = false;
        let mut join = |sets: &mut SecondaryMap<Value, Spaces>, value: Value, set: Spaces| {
            if sets[value].0 | set.0 != sets[value].0 {
                sets[value].0 |= set.0;
                changed = true;
            }
        };
        let mut escaping = anything;
        for &block in &func.layout {
            for &inst in &func.blocks[block].insts {
                let data = &func.insts[inst];
                // What leaves the dataflow.
                let leaves = match data.op {
                    Op::Store { .. }
                    | Op::AtomicStore { .. }
                    | Op::AtomicRmw { .. }
                    | Op::AtomicCmpXchg { .. } => data.args.get(1..).unwrap_or_default(),
                    Op::PtrToInt | Op::Bitcast | Op::Group(..) | Op::Printf(_) => &data.args[..],
                    _ => &[],
                };
                for &v in leaves.iter().filter(|&&v| func.ty(v) == GENERIC) {
                    escaping.0 |= sets[v].0;
                }
                for &result in data.results.iter().filter(|&&v| func.ty(v) == GENERIC) {
                    let set = match data.op {
                        Op::Const(_) | Op::Undef => Spaces(0),
                        Op::SpaceCast => match data.args.first().map(|&v| (v, func.ty(v))) {
                            Some((v, GENERIC)) => sets[v],
                            Some((_, Type::Ptr(space))) => Spaces::of(space),
                            _ => anything,
                        },
                        Op::PtrAdd => data.args.first().map_or(anything, |&v| sets[v]),
                        Op::Select => {
                            Spaces(data.args.iter().skip(1).fold(0, |set, &v| set | sets[v].0))
                        }
                        _ => anything,
                    };
                    join(&mut sets, result, set);
                }
            }
            for target in func.blocks[block].term.targets() {
                for (&param, &arg) in func.blocks[target.block].params.iter().zip(&target.args) {
                    if func.ty(param) == GENERIC {
                        let set = sets[arg];
                        join(&mut sets, param, set);
                    }
                }
            }
        }
        if escaping != anything {
            anything = escaping;
            changed = true;
        }
        if !changed {
            return sets;
        }
    }
}

/// Returns the generic pointers with the spaces that they may point into: bit 0 global, 1 local,
/// 2 private, as the numbers of their tags.
pub fn spaces(func: &Function) -> Vec<(Value, u8)> {
    if !func.values.values().any(|v| v.ty == GENERIC) {
        return Vec::new();
    }
    let sets = infer(func);
    let generic = func.values.keys().filter(|&v| func.ty(v) == GENERIC);
    generic.map(|v| (v, sets[v].0)).collect()
}

/// Returns true if the pointer is into a variable, so that it is not null.
pub fn is_object(func: &Function, mut pointer: Value) -> bool {
    while let Some(inst) = func.def_inst(pointer) {
        let data = &func.insts[inst];
        match (data.op, data.args.first()) {
            (Op::Alloca { .. } | Op::GlobalAddr(_), _) => return true,
            (Op::PtrAdd, Some(&from)) => pointer = from,
            _ => return false,
        }
    }
    false
}

/// Converts a value to the type that its user needs: between concrete and tagged form, and null of
/// any type.
fn coerce(r: &mut Rewriter, value: Value, want: Type) -> Value {
    let value = r.resolve(value);
    let have = r.func.ty(value);
    if have == want {
        return value;
    }
    if let Some(bits) = r.func.as_const(value) {
        return r.konst(want, bits);
    }
    match (have, want) {
        (Type::Ptr(space), Type::I64) => {
            let bits = r.op(Op::PtrToInt, [value], Type::I64);
            let tag = tag_of(space);
            if tag == 0 {
                return bits;
            }
            let tagged = r.with_const(Op::Or, bits, tag);
            if is_object(r.func, value) {
                return tagged;
            }
            // Null is null in every space.
            let null = r.icmp_const(IntCond::Eq, bits, 0);
            let zero = r.konst(Type::I64, 0);
            r.select(null, zero, tagged)
        }
        (Type::I64, Type::Ptr(space)) => untag(r, value, space),
        // Undefined values and unreachable code: any pointer will do.
        _ => r.konst(want, 0),
    }
}

/// Returns the concrete pointer in a tagged one whose space is known.
fn untag(r: &mut Rewriter, tagged: Value, space: Space) -> Value {
    let bits = match tag_of(space) {
        0 => tagged,
        _ => r.with_const(Op::And, tagged, !TAG_MASK),
    };
    r.op(Op::IntToPtr, [bits], Type::Ptr(space))
}

/// Computes a Bool: whether a tagged pointer points into that space.
fn has_tag(r: &mut Rewriter, tagged: Value, space: Space) -> Value {
    let tag = r.with_const(Op::And, tagged, TAG_MASK);
    r.icmp_const(IntCond::Eq, tag, tag_of(space))
}

/// Emits a memory access through tagged pointers in operands `which`: one copy of it for each
/// space.
fn dispatch(
    r: &mut Rewriter,
    data: &InstData,
    which: &[usize],
    spaces: &dyn Fn(Value) -> Spaces,
) -> Result<Vec<Value>> {
    let Some((&operand, rest)) = which.split_first() else {
        let types: Vec<Type> = data.results.iter().map(|&v| r.func.ty(v)).collect();
        return Ok(r.many(data.op, data.args.iter().copied(), &types).to_vec());
    };
    let types: Vec<Type> = data.results.iter().map(|&v| r.func.ty(v)).collect();
    let tagged = data.args[operand];
    let list = spaces(tagged).list();
    let done = r.new_block(&types);
    let bits = r.resolve(tagged);
    for (i, &(space, _)) in list.iter().enumerate() {
        let last = i + 1 == list.len();
        let next = r.new_block(&[]);
        if !last {
            let this = r.new_block(&[]);
            let is = has_tag(r, bits, space);
            r.end_block(
                Terminator::Branch(is, Edge::new(this), Edge::new(next)),
                this,
            );
        }
        let mut copy = data.clone();
        copy.args[operand] = untag(r, bits, space);
        let results = dispatch(r, &copy, rest, spaces)?;
        r.jump(done, &results, if last { done } else { next });
    }
    Ok(r.params(done))
}

/// Runs the pass.
pub fn run(func: &mut Function) -> Result<()> {
    if !func.values.values().any(|v| v.ty == GENERIC) {
        return Ok(());
    }
    let sets = infer(func);
    let generic: Vec<Value> = func
        .values
        .iter()
        .filter(|(_, v)| v.ty == GENERIC)
        .map(|(v, _)| v)
        .collect();
    let mut was_generic: SecondaryMap<Value, bool> = SecondaryMap::new();
    for v in generic {
        was_generic[v] = true;
        func.values[v].ty = sets[v].ty();
    }
    // Kernels cannot have generic parameters, but a function lowered by itself might.
    func.params
        .iter_mut()
        .filter(|ty| **ty == GENERIC)
        .for_each(|ty| *ty = Type::Ptr(Space::Global));
    let spaces = |v: Value| sets[v];
    rewrite_with_terms(
        func,
        |r, inst| lower(r, inst, &was_generic, &spaces),
        |r, term| {
            // Arguments of blocks in the form of their parameters.
            for target in term.targets_mut() {
                for i in 0..target.args.len() {
                    let Some(&param) = r.func.blocks[target.block].params.get(i) else {
                        continue;
                    };
                    if was_generic[param] {
                        let want = r.func.ty(param);
                        target.args[i] = coerce(r, target.args[i], want);
                    }
                }
            }
            Ok(())
        },
    )
}

fn lower(
    r: &mut Rewriter,
    inst: Inst,
    was_generic: &SecondaryMap<Value, bool>,
    spaces: &dyn Fn(Value) -> Spaces,
) -> Result<InstEdit> {
    let data = r.data(inst);
    let involved = data
        .args
        .iter()
        .chain(&data.results)
        .any(|&v| was_generic[v]);
    if !involved {
        return Ok(InstEdit::Keep);
    }
    let result_ty = data.results.first().map(|&v| r.func.ty(v));
    let first = data.args.first().map(|&v| r.resolve(v));
    match (data.op, first, result_ty) {
        (Op::Const(_) | Op::Undef, ..) => Ok(InstEdit::Keep),
        (Op::SpaceCast, Some(source), Some(to)) => {
            let from = r.func.ty(source);
            let value = if was_generic[data.results[0]] {
                coerce(r, source, to)
            } else {
                match (from, to) {
                    (Type::I64, Type::Ptr(space)) => {
                        let holds = has_tag(r, source, space);
                        let pointer = untag(r, source, space);
                        let null = r.konst(to, 0);
                        r.select(holds, pointer, null)
                    }
                    (Type::Ptr(a), Type::Ptr(b)) if a == b => source,
                    // `constant` is reached like `global`.
                    (Type::Ptr(Space::Global), Type::Ptr(Space::Constant)) => {
                        let bits = r.op(Op::PtrToInt, [source], Type::I64);
                        r.op(Op::IntToPtr, [bits], to)
                    }
                    _ => r.konst(to, 0),
                }
            };
            Ok(r.replace_result(inst, value))
        }
        (Op::PtrIsIn(space), Some(source), _) => {
            let value = match r.func.ty(source) {
                Type::I64 => has_tag(r, source, space),
                ty => r.konst(Type::Bool, u64::from(ty == Type::Ptr(space))),
            };
            Ok(r.replace_result(inst, value))
        }
        (Op::PtrAdd, Some(base), Some(to)) => {
            let base = coerce(r, base, to);
            let op = if to == Type::I64 {
                Op::IAdd
            } else {
                Op::PtrAdd
            };
            let value = r.op(op, [base, data.args[1]], to);
            Ok(r.replace_result(inst, value))
        }
        (Op::Select, _, Some(to)) => {
            let yes = coerce(r, data.args[1], to);
            let no = coerce(r, data.args[2], to);
            let value = r.op(Op::Select, [data.args[0], yes, no], to);
            Ok(r.replace_result(inst, value))
        }
        (Op::ICmp(cond), Some(a), _) => {
            let b = r.resolve(data.args[1]);
            let (a_ty, b_ty) = (r.func.ty(a), r.func.ty(b));
            let (a, b) = if a_ty == b_ty {
                (a, b)
            } else if r.func.as_const(a).is_some() {
                (coerce(r, a, b_ty), b)
            } else if r.func.as_const(b).is_some() {
                (a, coerce(r, b, a_ty))
            } else {
                (coerce(r, a, Type::I64), coerce(r, b, Type::I64))
            };
            let value = r.icmp(cond, a, b);
            Ok(r.replace_result(inst, value))
        }
        (Op::PtrToInt, Some(source), _) => {
            let value = coerce(r, source, Type::I64);
            Ok(r.replace_result(inst, value))
        }
        (Op::IntToPtr, Some(source), Some(to)) => {
            let value = if to == Type::I64 {
                source
            } else {
                untag(r, source, to.space().unwrap_or(Space::Global))
            };
            Ok(r.replace_result(inst, value))
        }
        (
            Op::Load { .. }
            | Op::Store { .. }
            | Op::MemCopy { .. }
            | Op::AtomicLoad { .. }
            | Op::AtomicStore { .. }
            | Op::AtomicRmw { .. }
            | Op::AtomicCmpXchg { .. },
            ..,
        ) => {
            let mut data = data;
            let pointers = if matches!(data.op, Op::MemCopy { .. }) {
                2
            } else {
                1
            };
            let mut tagged = Vec::new();
            for i in 0..data.args.len() {
                let original = data.args[i];
                let value = r.resolve(original);
                if i < pointers {
                    if was_generic[original] && r.func.ty(value) == Type::I64 {
                        tagged.push(i);
                    } else {
                        data.args[i] = value;
                    }
                } else if was_generic[original] {
                    // In memory: tagged, which is the plain address for global ones.
                    data.args[i] = match r.func.ty(value) {
                        Type::Ptr(Space::Global) => value,
                        _ => coerce(r, value, Type::I64),
                    };
                }
            }
            // All values of one access have one type.
            let values = data.args.get(pointers..).unwrap_or_default().to_vec();
            if values.iter().any(|&v| r.func.ty(v) == Type::I64) {
                for (i, &v) in values.iter().enumerate() {
                    if r.func.ty(v).is_ptr() {
                        data.args[pointers + i] = coerce(r, v, Type::I64);
                    }
                }
            }
            let wanted: Vec<Type> = data.results.iter().map(|&v| r.func.ty(v)).collect();
            if wanted.windows(2).any(|w| w[0] != w[1]) {
                return Err(LowerError::unsupported(
                    "a vector of generic pointers into different spaces",
                ));
            }
            let single = |v: &Value| {
                let ty = r.func.ty(*v);
                was_generic[*v] && matches!(ty, Type::Ptr(Space::Local | Space::Private))
            };
            if data.results.iter().any(single) {
                return Err(LowerError::internal(
                    "a loaded generic pointer cannot have a single local space",
                ));
            }
            let results = dispatch(r, &data, &tagged, spaces)?;
            for (&old, new) in data.results.iter().zip(results) {
                r.replace(old, new);
            }
            Ok(InstEdit::Remove)
        }
        (Op::Bitcast, Some(source), Some(to)) => {
            let value = coerce(r, source, to);
            Ok(r.replace_result(inst, value))
        }
        // Pointers are integers there but for strings, which are read where they lie.
        (Op::Printf(_), ..) => {
            let resolved = data.args.iter().map(|&v| (v, r.resolve(v)));
            let mut generic = resolved.filter(|(v, _)| was_generic[*v]);
            if generic.all(|(_, v)| r.func.ty(v).is_ptr()) {
                return Ok(InstEdit::Keep);
            }
            Err(LowerError::unsupported(
                "printf: a %s argument in the generic address space",
            ))
        }
        (op, ..) => Err(LowerError::unsupported(format!(
            "{op:?} of generic pointers"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(align: u32) -> Op {
        Op::Load {
            align,
            volatile: false,
        }
    }

    #[test]
    fn one_space_costs_nothing() {
        let global = Type::Ptr(Space::Global);
        let mut f = Function {
            params: vec![global],
            ..Default::default()
        };
        let entry = f.add_block();
        let a = f.add_param(entry, global);
        let g = f.append1(entry, Op::SpaceCast, [a], GENERIC);
        let eight = f.append_const(entry, Type::I64, 8);
        let p = f.append1(entry, Op::PtrAdd, [g, eight], GENERIC);
        f.append1(entry, load(4), [p], Type::I32);
        f.blocks[entry].term = Terminator::Return(Default::default());
        run(&mut f).unwrap();
        assert_eq!(f.layout.len(), 1);
        let last = *f.blocks[entry].insts.last().unwrap();
        assert_eq!(f.ty(f.insts[last].args[0]), global);
    }

    #[test]
    fn pointers_of_one_space_are_loaded_through_generic_ones() {
        let (global, local) = (Type::Ptr(Space::Global), Type::Ptr(Space::Local));
        let mut f = Function {
            params: vec![global],
            ..Default::default()
        };
        let entry = f.add_block();
        let a = f.add_param(entry, global);
        let g = f.append1(entry, Op::SpaceCast, [a], GENERIC);
        let loaded = f.append1(entry, load(8), [g], local);
        f.append1(entry, load(4), [loaded], Type::I32);
        f.blocks[entry].term = Terminator::Return(Default::default());
        run(&mut f).unwrap();
        let loads: Vec<Type> = f.blocks[entry]
            .insts
            .iter()
            .map(|&inst| &f.insts[inst])
            .filter(|data| matches!(data.op, Op::Load { .. }))
            .map(|data| f.ty(data.args[0]))
            .collect();
        assert_eq!(loads, [global, local]);
    }

    #[test]
    fn two_spaces_branch() {
        let (global, local) = (Type::Ptr(Space::Global), Type::Ptr(Space::Local));
        let mut f = Function {
            params: vec![global, local],
            ..Default::default()
        };
        let entry = f.add_block();
        let (a, b) = (f.add_param(entry, global), f.add_param(entry, local));
        let (ga, gb) = (
            f.append1(entry, Op::SpaceCast, [a], GENERIC),
            f.append1(entry, Op::SpaceCast, [b], GENERIC),
        );
        let yes = f.append_const(entry, Type::Bool, 1);
        let p = f.append1(entry, Op::Select, [yes, ga, gb], GENERIC);
        let x = f.append1(entry, load(4), [p], Type::I32);
        f.append(
            entry,
            Op::Store {
                align: 4,
                volatile: false,
            },
            [a, x],
            &[],
        );
        f.blocks[entry].term = Terminator::Return(Default::default());
        run(&mut f).unwrap();
        assert_eq!(f.layout.len(), 4);
        for block in &f.layout {
            for &inst in &f.blocks[*block].insts {
                if matches!(f.insts[inst].op, Op::Load { .. }) {
                    assert!(matches!(
                        f.ty(f.insts[inst].args[0]),
                        Type::Ptr(Space::Global | Space::Local)
                    ));
                }
            }
        }
        // The stored value is the parameter of the joining block.
        let joined = *f.layout.last().unwrap();
        assert_eq!(f.blocks[joined].params.len(), 1);
    }
}
