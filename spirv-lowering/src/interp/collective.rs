//! Executes barriers and collective operations for the work-items that have reached them.

use super::error::Error;
use super::eval::eval;
use super::item::Item;
use super::launch::Machine;
use super::scalar::Scalar;
use crate::ir::function::FpFlags;
use crate::ir::op::{GroupArith as G, GroupOp, Op, Scope};
use crate::ir::types::Type;

fn combine(arith: G, ty: Type, a: Scalar, b: Scalar, noise: u64) -> Scalar {
    let op = arith.operation();
    eval(op, FpFlags::default(), &[ty, ty], &[a, b], ty, noise)
}

/// Returns the identity of an operation, which an exclusive scan begins with.
fn identity(arith: G, ty: Type) -> u64 {
    let sign = 1u64 << (ty.bits() - 1);
    let (infinity, one) = match ty {
        Type::F16 => (0x7c00, 0x3c00),
        Type::F32 => (0x7f80_0000, 0x3f80_0000),
        _ => (0x7ff0_0000_0000_0000, 0x3ff0_0000_0000_0000),
    };
    match arith {
        G::IAdd | G::FAdd | G::Or | G::Xor | G::LogicalOr | G::LogicalXor | G::UMax => 0,
        G::IMul | G::LogicalAnd => 1,
        G::FMul => one,
        G::SMin => ty.mask() >> 1,
        G::UMin | G::And => ty.mask(),
        G::FMin => infinity,
        G::SMax => sign,
        G::FMax => infinity | sign,
    }
}

/// Executes the operation that all of `items` wait for, and resumes them.
pub(super) fn run<'a>(machine: &mut Machine<'a>, items: &mut [&mut Item<'a>]) -> Result<(), Error> {
    let Some(data) = items.first().and_then(|item| item.waiting_for()) else {
        return Err(Error::invalid("nobody waits"));
    };
    let (op, scope) = match data.op {
        Op::Barrier { exec, fences, .. } => {
            if let Some(watch) = &mut machine.watch {
                match exec {
                    Scope::SubGroup => {
                        let all: Vec<u32> = items.iter().map(|item| item.place.index).collect();
                        watch.sub_barrier(&all, fences);
                    }
                    _ => watch.group_barrier(fences),
                }
            }
            items.iter_mut().for_each(|item| item.go_on(&[]));
            return Ok(());
        }
        Op::Group(op, scope) => (op, scope),
        _ => return Err(Error::invalid("a wait for nothing")),
    };
    let args: Vec<Vec<Scalar>> = items.iter().map(|item| item.waiting_args()).collect();
    let ty = items
        .first()
        .and_then(|item| item.waiting_type())
        .unwrap_or(Type::Bool);
    let lanes = machine.options.subgroup_size;
    let lane = |item: &Item| match scope {
        Scope::SubGroup => item.place.index % lanes,
        _ => item.place.index,
    };
    let ids: Vec<u32> = items.iter().map(|item| lane(item)).collect();
    let value = |i: usize| {
        args.get(i)
            .and_then(|a| a.first())
            .copied()
            .unwrap_or_default()
    };
    let noise = machine.noise();
    let nothing = Scalar::unknown(ty, noise);
    let of_lane = |id: u64| {
        let at = ids.iter().position(|&l| u64::from(l) == id);
        at.map_or(nothing, value)
    };
    let any_unknown = (0..items.len()).any(|i| value(i).unknown != 0);
    let vote = |holds: bool| Scalar {
        bits: holds.into(),
        unknown: any_unknown.into(),
    };
    let count = items.len();
    for (i, item) in items.iter_mut().enumerate() {
        let id = ids.get(i).copied().unwrap_or(0);
        let second = args.get(i).and_then(|a| a.get(1)).copied();
        let second = second.unwrap_or_default();
        let from = |id: u64| {
            let mut value = of_lane(id);
            if second.unknown != 0 {
                value.unknown = ty.mask();
            }
            value
        };
        let fold = |arith: G, start: Option<Scalar>, takes: &dyn Fn(u32) -> bool| {
            let mut sum = start;
            for (j, &other) in ids.iter().enumerate() {
                if takes(other) {
                    let next = value(j);
                    sum = Some(sum.map_or(next, |sum| combine(arith, ty, sum, next, noise)));
                }
            }
            sum.unwrap_or(nothing)
        };
        let result = match op {
            GroupOp::All => vote((0..count).all(|j| value(j).bits & 1 != 0)),
            GroupOp::Any => vote((0..count).any(|j| value(j).bits & 1 != 0)),
            GroupOp::AllEqual => vote((0..count).all(|j| value(j).bits == value(0).bits)),
            GroupOp::Elect => Scalar::known((i == 0).into()),
            GroupOp::Broadcast if scope == Scope::SubGroup => from(second.bits),
            GroupOp::Broadcast => {
                let at = args.get(i).map_or(&[][..], |a| a.get(1..).unwrap_or(&[]));
                let size = machine.dispatch.local;
                let mut index = 0u64;
                for (dim, part) in at.iter().enumerate().take(3).rev() {
                    let size = size.get(dim).copied().unwrap_or(1);
                    index = index.wrapping_mul(size.into()).wrapping_add(part.bits);
                }
                let mut value = of_lane(index);
                if at.iter().any(|part| part.unknown != 0) {
                    value.unknown = ty.mask();
                }
                value
            }
            GroupOp::Reduce(arith) => fold(arith, None, &|_| true),
            GroupOp::InclusiveScan(arith) => fold(arith, None, &|other| other <= id),
            GroupOp::ExclusiveScan(arith) => {
                let start = Scalar::known(identity(arith, ty));
                if id == ids.first().copied().unwrap_or(0) {
                    start
                } else {
                    fold(arith, None, &|other| other < id)
                }
            }
            GroupOp::ClusteredReduce(arith) => {
                let size = (second.bits as u32).max(1);
                fold(arith, None, &|other| other / size == id / size)
            }
            GroupOp::Ballot => {
                let mut words = [Scalar::default(); 4];
                for (j, &other) in ids.iter().enumerate() {
                    let vote = value(j);
                    let (word, bit) = (other as usize / 32, other % 32);
                    if let Some(word) = words.get_mut(word) {
                        word.bits |= (vote.bits & 1) << bit;
                        word.unknown |= (vote.unknown & 1) << bit;
                    }
                }
                item.go_on(&words);
                continue;
            }
            GroupOp::Shuffle => from(second.bits),
            GroupOp::ShuffleXor => from(u64::from(id) ^ second.bits),
            GroupOp::ShuffleUp => from(u64::from(id).wrapping_sub(second.bits)),
            GroupOp::ShuffleDown => from(u64::from(id).wrapping_add(second.bits)),
            GroupOp::Rotate => {
                let cluster = args.get(i).and_then(|a| a.get(2)).map(|v| v.bits);
                let size = cluster.unwrap_or(lanes.into()).max(1);
                let id = u64::from(id);
                from(id / size * size + (id % size).wrapping_add(second.bits) % size)
            }
        };
        item.go_on(&[result]);
    }
    Ok(())
}
