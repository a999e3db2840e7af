//! Expands 16-bit atomics to loops around a compare-and-exchange of the 32 bits around them, which
//! leave the other half unchanged.
//!
//! Vulkan has none of 16 bits without extensions, and those have no minimum on integers and no
//! compare-and-exchange. A load is one of the whole word. Atomics on private memory are left alone
//! (`lower_private` makes plain code of them). Runs before `lower_atomic`, to which the words are
//! like any other, and before local memory becomes arrays.
//!
//! Work-items of a sub-group that exchange the same half do it as a chain: one of them stores the
//! last one's value, and each of the others gets the value of the one before it. Otherwise a
//! thousand work-items that exchange one half all the time fail a thousand times each, which takes
//! seconds.

use super::lower_atomic::{combine, until_exchanged};
use crate::edit::rewrite::{rewrite, InstEdit, Rewriter};
use crate::error::{LowerError, Result};
use crate::ir::entity::Value;
use crate::ir::function::{Edge, Function, InstData, Terminator};
use crate::ir::op::{Fences, GroupOp, HwVar, IntCond, Op, Order, RmwOp, Scope};
use crate::ir::types::{Space, Type};
use crate::target::Target;

/// Returns the type of a 16-bit atomic on memory that is not private.
fn half_type(func: &Function, data: &InstData) -> Option<Type> {
    let value = match data.op {
        Op::AtomicLoad { .. } => data.results.first(),
        Op::AtomicStore { .. } | Op::AtomicRmw { .. } | Op::AtomicCmpXchg { .. } => {
            data.args.get(1)
        }
        _ => None,
    };
    let (ty, pointer) = (func.ty(*value?), func.ty(*data.args.first()?));
    (ty.size() == 2 && pointer.space() != Some(Space::Private)).then_some(ty)
}

/// Moves a value to the lower half of a word.
fn to_word(r: &mut Rewriter, value: Value) -> Value {
    let int = match r.func.ty(value) {
        Type::I16 => value,
        _ => r.op(Op::Bitcast, [value], Type::I16),
    };
    r.op(Op::ZExt, [int], Type::I32)
}

/// Returns the half in the lower part of a word.
fn from_word(r: &mut Rewriter, word: Value, ty: Type) -> Value {
    let part = r.op(Op::Trunc, [word], Type::I16);
    match ty {
        Type::I16 => part,
        _ => r.op(Op::Bitcast, [part], ty),
    }
}

/// A shared exchange of the work-items of a sub-group.
struct Chain {
    /// Bool: this work-item exchanges in memory.
    acts: Value,
    /// The value that it stores.
    puts: Value,
    /// The old value for a work-item that does not exchange in memory.
    before: Value,
}

impl Chain {
    /// Emits the chain of the active work-items, in sub-groups of at most 32: the first exchanges
    /// in memory, if all have the same address.
    fn new(r: &mut Rewriter, address: Value, value: Value) -> Self {
        let ballot = |r: &mut Rewriter, yes: Value| {
            let ballot = Op::Group(GroupOp::Ballot, Scope::SubGroup);
            r.many(ballot, [yes], &[Type::I32; 4])[0]
        };
        let shuffle = Op::Group(GroupOp::Shuffle, Scope::SubGroup);
        let yes = r.konst(Type::Bool, 1);
        let here = ballot(r, yes);
        let lane = r.op(Op::Hw(HwVar::SubgroupInvocationId), [], Type::I32);
        let first = r.same(Op::Ctz, [here]);
        let high = r.with_const(Op::LShr, address, 32);
        let mut same = yes;
        for part in [address, high] {
            let part = r.op(Op::Trunc, [part], Type::I32);
            let firsts = r.op(shuffle, [part, first], Type::I32);
            let equal = r.icmp(IntCond::Eq, part, firsts);
            same = r.op(Op::And, [same, equal], Type::Bool);
        }
        let all = Op::Group(GroupOp::All, Scope::SubGroup);
        let same_address = r.op(all, [same], Type::Bool);
        let bit = r.konst(Type::I32, 1);
        let bit = r.same(Op::Shl, [bit, lane]);
        let below = r.with_const(Op::IAdd, bit, u32::MAX.into());
        let below = r.same(Op::And, [here, below]);
        let leads = r.icmp_const(IntCond::Eq, below, 0);
        let last_of = |r: &mut Rewriter, lanes: Value| {
            let zeros = r.same(Op::Clz, [lanes]);
            let top = r.konst(Type::I32, 31);
            let last = r.same(Op::ISub, [top, zeros]);
            r.with_const(Op::And, last, 31)
        };
        let ty = r.func.ty(value);
        let word = to_word(r, value);
        let [before, newest] = [below, here].map(|lanes| {
            let lane = last_of(r, lanes);
            let word = r.op(shuffle, [word, lane], Type::I32);
            from_word(r, word, ty)
        });
        let differs = r.op(Op::Not, [same_address], Type::Bool);
        Self {
            acts: r.op(Op::Or, [differs, leads], Type::Bool),
            puts: r.select(same_address, newest, value),
            before,
        }
    }
}

/// Runs the pass. Returns true if there was a 16-bit atomic.
pub fn run(func: &mut Function, target: &Target) -> Result<bool> {
    let chained = target.has_subgroups() && target.subgroup_size <= 32;
    let mut changed = false;
    rewrite(func, |r, inst| {
        let data = r.data(inst);
        let Some(ty) = half_type(r.func, &data) else {
            return Ok(InstEdit::Keep);
        };
        changed = true;
        let operand = |r: &mut Rewriter, i: usize| {
            let value = data.args.get(i).map(|&value| r.resolve(value));
            value.ok_or_else(|| LowerError::internal("an atomic without an operand"))
        };
        let pointer = operand(r, 0)?;
        let address = r.op(Op::PtrToInt, [pointer], Type::I64);
        let upper = r.with_const(Op::And, address, 2);
        let back = r.op(Op::INeg, [upper], Type::I64);
        let word = r.same(Op::PtrAdd, [pointer, back]);
        let upper = r.op(Op::Trunc, [upper], Type::I32);
        let by = r.with_const(Op::Shl, upper, 3);
        let half = |r: &mut Rewriter, whole: Value| {
            let part = r.same(Op::LShr, [whole, by]);
            from_word(r, part, ty)
        };
        let (scope, order) = match data.op {
            Op::AtomicLoad { scope, order } => {
                let whole = r.op(Op::AtomicLoad { scope, order }, [word], Type::I32);
                let value = half(r, whole);
                return Ok(r.replace_result(inst, value));
            }
            Op::AtomicStore { scope, order }
            | Op::AtomicRmw { scope, order, .. }
            | Op::AtomicCmpXchg { scope, order } => (scope, order),
            _ => return Err(LowerError::internal("not an atomic")),
        };
        let mut value = operand(r, 1)?;
        // One work-item stands for others: what they did before comes before what it does.
        let fence = (order != Order::Relaxed).then_some(Op::Fence {
            mem: scope,
            order,
            fences: Fences {
                global: true,
                local: true,
                image: true,
            },
        });
        let exchanges = matches!(
            data.op,
            Op::AtomicRmw {
                op: RmwOp::Xchg,
                ..
            }
        );
        let shared = (exchanges && chained).then(|| {
            if let Some(fence) = fence {
                r.many(fence, [], &[]);
            }
            let chain = Chain::new(r, address, value);
            value = chain.puts;
            let (act, done) = (r.new_block(&[]), r.new_block(&[ty]));
            let others = Edge::with(done, [chain.before]);
            r.end_block(Terminator::Branch(chain.acts, Edge::new(act), others), act);
            done
        });
        let replacement = match data.op {
            Op::AtomicCmpXchg { .. } => operand(r, 2)?,
            _ => value,
        };
        let load = Op::AtomicLoad {
            scope,
            order: Order::Relaxed,
        };
        let first = r.op(load, [word], Type::I32);
        let exchange = Op::AtomicCmpXchg { scope, order };
        let old = until_exchanged(r, exchange, word, first, |r, expected| {
            let old = half(r, expected);
            let new = match data.op {
                Op::AtomicRmw { op, .. } => combine(r, op, old, value),
                Op::AtomicCmpXchg { .. } => {
                    let same = r.icmp(IntCond::Eq, old, value);
                    r.select(same, replacement, old)
                }
                _ => value,
            };
            let new = to_word(r, new);
            let new = r.same(Op::Shl, [new, by]);
            let ones = r.konst(Type::I32, u16::MAX.into());
            let hole = r.same(Op::Shl, [ones, by]);
            let keep = r.same(Op::Not, [hole]);
            let kept = r.same(Op::And, [expected, keep]);
            (old, r.same(Op::Or, [kept, new]))
        });
        let old = match shared {
            Some(done) => {
                r.jump(done, &[old], done);
                if let Some(fence) = fence {
                    r.many(fence, [], &[]);
                }
                r.params(done)[0]
            }
            None => old,
        };
        match data.results.is_empty() {
            true => Ok(InstEdit::Remove),
            false => Ok(r.replace_result(inst, old)),
        }
    })?;
    Ok(changed)
}
