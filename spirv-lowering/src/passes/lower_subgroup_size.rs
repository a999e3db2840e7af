//! Emulates sub-groups of fewer work-items than those of the device.
//!
//! A kernel may require a size of sub-groups (`intel_reqd_sub_group_size`, SPIR-V's SubgroupSize)
//! below the smallest of the device. Its sub-groups are then parts of the device's: with 32 lanes
//! and a required size of 8, lanes 0 to 7 are one, lanes 8 to 15 the next. Work-groups are linear
//! (see `lower_group`), so parts partition them in the order of linear local ids.
//!
//! The pass replaces built-in variables and operations of sub-groups by those of the device's
//! sub-groups. Work-group operations stay, as `lower_group` makes them of sub-groups of any size.
//! Parts of one sub-group may be in different control flow. Each operation of the device takes the
//! lanes that are active, so lanes of another part are either there, and left out by what is
//! computed here, or missing:
//!
//! - ballots are shifted and masked to the part; votes and all operations on Bool are made of them;
//! - shuffles take a lane of the own part;
//! - reductions are the device's clustered ones where it has them;
//! - scans, and the other reductions, go from each lane to the active lane before it, then to the
//!   one before those that are summed up there, and so on ([`Parts::scan`]);
//! - a barrier must not wait for lanes of another part ([`Parts::barrier`]).

use super::lower_group::{combine, has_arithmetic, identity, Range};
use crate::edit::rewrite::{rewrite, InstEdit, Rewriter};
use crate::error::{LowerError, Result};
use crate::interface::KernelAttributes;
use crate::ir::entity::Value;
use crate::ir::function::{Edge, Function, Terminator};
use crate::ir::op::{Builtin, FloatCond, GroupArith as G, GroupOp, IntCond, Op, Order, Scope};
use crate::ir::types::Type;
use crate::target::Target;

/// The largest size that is emulated: a ballot of a part is one word.
const LARGEST: u64 = 32;
/// A bit in a link of [`Parts::scan`] beyond the number of any lane: there is no lane before.
const NONE: u64 = 0x100;

/// Returns true if a kernel requires sub-groups of another size than the target's.
pub fn applies(attributes: &KernelAttributes, target: &Target) -> bool {
    let required = attributes.required_sub_group_size;
    required.is_some_and(|size| size != target.subgroup_size)
}

struct Parts<'t> {
    target: &'t Target,
    /// The lanes of a part, a power of two.
    size: u64,
}

impl Parts<'_> {
    /// Returns the number of lanes of the device's sub-group.
    fn all_lanes(&self) -> u64 {
        self.target.subgroup_size.into()
    }

    /// Emits the lane in the device's sub-group.
    fn lane(&self, r: &mut Rewriter) -> Value {
        r.op(Op::Builtin(Builtin::SubGroupLocalId), [], Type::I32)
    }

    /// Emits the first lane of the cluster of `n` lanes around a lane.
    fn first(&self, r: &mut Rewriter, lane: Value, n: u64) -> Value {
        r.with_const(Op::And, lane, !(n - 1))
    }

    /// Emits the value of a lane of the device's sub-group.
    fn value_of(&self, r: &mut Rewriter, x: Value, lane: Value) -> Value {
        r.same(Op::Group(GroupOp::Shuffle, Scope::SubGroup), [x, lane])
    }

    /// Emits a ballot of the cluster of `n` lanes around this one, its first lane in bit 0.
    fn ballot(&self, r: &mut Rewriter, vote: Value, n: u64) -> Value {
        let ballot = Op::Group(GroupOp::Ballot, Scope::SubGroup);
        let words = r.many(ballot, [vote], &[Type::I32; 4]);
        let lane = self.lane(r);
        let mut word = words[0];
        for (i, &other) in (1..self.all_lanes() / 32).zip(words.iter().skip(1)) {
            let number = r.with_const(Op::LShr, lane, 5);
            let here = r.icmp_const(IntCond::Eq, number, i);
            word = r.select(here, other, word);
        }
        if n == 32 {
            return word;
        }
        let first = r.with_const(Op::And, lane, 31 & !(n - 1));
        let bits = r.same(Op::LShr, [word, first]);
        r.with_const(Op::And, bits, (1 << n) - 1)
    }

    /// Emits a ballot of the active lanes of the cluster of `n` lanes around this one.
    fn active(&self, r: &mut Rewriter, n: u64) -> Value {
        let yes = r.konst(Type::Bool, 1);
        self.ballot(r, yes, n)
    }

    /// Emits the bit of this lane in a ballot of `n` lanes.
    fn bit(&self, r: &mut Rewriter, n: u64) -> Value {
        let lane = self.lane(r);
        let inside = r.with_const(Op::And, lane, n - 1);
        let one = r.konst(Type::I32, 1);
        r.same(Op::Shl, [one, inside])
    }

    /// Emits the lanes of a ballot of `n` lanes that are before this one.
    fn before(&self, r: &mut Rewriter, ballot: Value, n: u64) -> Value {
        let bit = self.bit(r, n);
        let mask = r.with_const(Op::IAdd, bit, u32::MAX.into());
        r.same(Op::And, [ballot, mask])
    }

    /// Emits the lane of the highest bit of a ballot of the `n` lanes around this one.
    fn highest(&self, r: &mut Rewriter, ballot: Value, n: u64) -> Value {
        let zeros = r.same(Op::Clz, [ballot]);
        let top = r.konst(Type::I32, 31);
        let inside = r.same(Op::ISub, [top, zeros]);
        self.around(r, inside, n)
    }

    /// Emits the lane of the cluster of `n` lanes around this one with a number modulo `n`.
    fn around(&self, r: &mut Rewriter, number: Value, n: u64) -> Value {
        let lane = self.lane(r);
        let first = self.first(r, lane, n);
        let inside = r.with_const(Op::And, number, n - 1);
        r.same(Op::Or, [first, inside])
    }

    /// Emits a reduction or scan of Bools over the active lanes of the cluster of `n` lanes.
    fn vote(&self, r: &mut Rewriter, a: G, x: Value, range: Range, n: u64) -> Value {
        let all = matches!(a, G::And | G::LogicalAnd);
        let x = if all { r.same(Op::Not, [x]) } else { x };
        let mut votes = self.ballot(r, x, n);
        if !matches!(range, Range::All) {
            let mut bit = self.bit(r, n);
            if matches!(range, Range::UpTo) {
                bit = r.with_const(Op::Shl, bit, 1);
            }
            let mask = r.with_const(Op::IAdd, bit, u32::MAX.into());
            votes = r.same(Op::And, [votes, mask]);
        }
        match a {
            _ if all => r.icmp_const(IntCond::Eq, votes, 0),
            G::Or | G::LogicalOr => r.icmp_const(IntCond::Ne, votes, 0),
            _ => {
                let count = r.same(Op::Popcount, [votes]);
                let odd = r.with_const(Op::And, count, 1);
                r.icmp_const(IntCond::Ne, odd, 0)
            }
        }
    }

    /// Emits a reduction or scan over the active lanes of the cluster of `n` lanes.
    ///
    /// Each lane has a sum, at first its own value, and a link to the active lane before those that
    /// are in the sum. It adds the sum of that lane and takes its link, which doubles the lanes of
    /// the sum. A lane without one before it links to itself, so only active lanes are read.
    fn scan(&self, r: &mut Rewriter, a: G, x: Value, range: Range, n: u64) -> Value {
        let ty = r.func.ty(x);
        let active = self.active(r, n);
        let before = self.before(r, active, n);
        let is_first = r.icmp_const(IntCond::Eq, before, 0);
        let lane = self.lane(r);
        let itself = r.with_const(Op::Or, lane, NONE);
        let previous = self.highest(r, before, n);
        let previous = r.select(is_first, itself, previous);
        let (mut sum, mut link) = (x, previous);
        for step in 0..n.ilog2() {
            let mut other = r.with_const(Op::And, link, self.all_lanes() - 1);
            if step > 0 {
                link = self.value_of(r, link, other);
                other = r.with_const(Op::And, link, self.all_lanes() - 1);
            }
            let others = self.value_of(r, sum, other);
            let more = combine(r, a, others, sum);
            let none = r.with_const(Op::And, link, NONE);
            let done = r.icmp_const(IntCond::Ne, none, 0);
            sum = r.select(done, sum, more);
        }
        match range {
            Range::UpTo => sum,
            Range::Before => {
                let other = r.with_const(Op::And, previous, self.all_lanes() - 1);
                let others = self.value_of(r, sum, other);
                let start = r.konst(ty, identity(a, ty));
                r.select(is_first, start, others)
            }
            _ => {
                let last = self.highest(r, active, n);
                self.value_of(r, sum, last)
            }
        }
    }

    /// Emits a reduction or scan over the active lanes of the cluster of `n` lanes.
    fn arith(&self, r: &mut Rewriter, a: G, x: Value, range: Range, n: u64) -> Value {
        let ty = r.func.ty(x);
        if ty == Type::Bool {
            return self.vote(r, a, x, range, n);
        }
        if matches!(range, Range::All) && has_arithmetic(self.target, ty, true) {
            let size = r.konst(Type::I32, n);
            let reduce = Op::Group(GroupOp::ClusteredReduce(a), Scope::SubGroup);
            return r.same(reduce, [x, size]);
        }
        self.scan(r, a, x, range, n)
    }

    /// Emits a barrier of the active lanes.
    ///
    /// The device's barrier may wait for all lanes of its sub-group, while those of another part
    /// never come to it. A ballot is of the active lanes, wherever the others are, and no lane goes
    /// on before all of them have voted. Memory accesses are ordered by a fence before the ballot
    /// and one behind it. The latter depends on the result, so that drivers do not remove the
    /// ballot.
    fn barrier(&self, r: &mut Rewriter, order: Order, fence: Op) {
        // Without memory to order nobody can tell whether work-items have waited.
        if order == Order::Relaxed {
            return;
        }
        r.inst(fence, [], &[]);
        let active = self.active(r, self.size);
        let bit = self.bit(r, self.size);
        let own = r.same(Op::And, [active, bit]);
        let is_active = r.icmp_const(IntCond::Ne, own, 0);
        let (inner, after) = (r.new_block(&[]), r.new_block(&[]));
        let (to_inner, to_after) = (Edge::new(inner), Edge::new(after));
        r.end_block(Terminator::Branch(is_active, to_inner, to_after), inner);
        r.inst(fence, [], &[]);
        r.jump(after, &[], after);
    }

    /// Emits the number of parts that so many work-items have.
    fn count(&self, r: &mut Rewriter, items: Value) -> Value {
        let sum = r.with_const(Op::IAdd, items, self.size - 1);
        r.with_const(Op::UDiv, sum, self.size)
    }

    /// Emits the value of a built-in variable, if it is one of sub-groups.
    fn builtin(&self, r: &mut Rewriter, builtin: Builtin) -> Option<Value> {
        let narrow = |r: &mut Rewriter, builtin: Builtin| {
            let wide = r.op(Op::Builtin(builtin), [], Type::I64);
            r.op(Op::Trunc, [wide], Type::I32)
        };
        let items = |r: &mut Rewriter, size: fn(u8) -> Builtin| {
            let [x, y, z] = [0, 1, 2].map(|dim| narrow(r, size(dim)));
            let plane = r.same(Op::IMul, [x, y]);
            r.same(Op::IMul, [plane, z])
        };
        Some(match builtin {
            Builtin::SubGroupMaxSize => r.konst(Type::I32, self.size),
            Builtin::SubGroupSize => {
                let items = items(r, Builtin::LocalSize);
                let index = narrow(r, Builtin::LocalLinearId);
                let before = self.first(r, index, self.size);
                let left = r.same(Op::ISub, [items, before]);
                let most = r.konst(Type::I32, self.size);
                r.same(Op::UMin, [left, most])
            }
            Builtin::NumSubGroups => {
                let items = items(r, Builtin::LocalSize);
                self.count(r, items)
            }
            Builtin::NumEnqueuedSubGroups => {
                let items = items(r, Builtin::EnqueuedLocalSize);
                self.count(r, items)
            }
            Builtin::SubGroupId => {
                let index = narrow(r, Builtin::LocalLinearId);
                r.with_const(Op::UDiv, index, self.size)
            }
            Builtin::SubGroupLocalId => {
                let lane = self.lane(r);
                r.with_const(Op::And, lane, self.size - 1)
            }
            _ => return None,
        })
    }

    /// Emits an operation of a sub-group, and returns its result.
    fn group(&self, r: &mut Rewriter, op: GroupOp, args: &[Value]) -> Result<Value> {
        let few = || LowerError::internal("too few operands");
        let at = |i: usize| args.get(i).copied().ok_or_else(few);
        let size = self.size;
        Ok(match op {
            GroupOp::Elect => {
                let active = self.active(r, size);
                let before = self.before(r, active, size);
                r.icmp_const(IntCond::Eq, before, 0)
            }
            GroupOp::All => self.vote(r, G::LogicalAnd, at(0)?, Range::All, size),
            GroupOp::Any => self.vote(r, G::LogicalOr, at(0)?, Range::All, size),
            GroupOp::AllEqual => {
                // All have the value of one of them.
                let x = at(0)?;
                let active = self.active(r, size);
                let last = self.highest(r, active, size);
                let other = self.value_of(r, x, last);
                let same = match r.func.ty(x).is_float() {
                    true => r.fcmp(FloatCond::Oeq, x, other),
                    false => r.icmp(IntCond::Eq, x, other),
                };
                self.vote(r, G::LogicalAnd, same, Range::All, size)
            }
            GroupOp::Broadcast | GroupOp::Shuffle => {
                let lane = self.around(r, at(1)?, size);
                self.value_of(r, at(0)?, lane)
            }
            GroupOp::ShuffleXor | GroupOp::ShuffleUp | GroupOp::ShuffleDown | GroupOp::Rotate => {
                let op = match op {
                    GroupOp::ShuffleXor => Op::Xor,
                    GroupOp::ShuffleUp => Op::ISub,
                    _ => Op::IAdd,
                };
                let cluster = args.get(2).and_then(|&n| r.func.as_const(n));
                let cluster = cluster.filter(|n| n.is_power_of_two() && *n < size);
                let lane = self.lane(r);
                let number = r.same(op, [lane, at(1)?]);
                let lane = self.around(r, number, cluster.unwrap_or(size));
                self.value_of(r, at(0)?, lane)
            }
            GroupOp::Reduce(a) => self.arith(r, a, at(0)?, Range::All, size),
            GroupOp::InclusiveScan(a) => self.arith(r, a, at(0)?, Range::UpTo, size),
            GroupOp::ExclusiveScan(a) => self.arith(r, a, at(0)?, Range::Before, size),
            GroupOp::ClusteredReduce(a) => {
                let n = r.func.as_const(at(1)?).unwrap_or(0);
                if !n.is_power_of_two() {
                    return Err(LowerError::invalid(format!("the cluster size {n}")));
                }
                self.arith(r, a, at(0)?, Range::All, n.min(size))
            }
            // It has several results.
            GroupOp::Ballot => return Err(LowerError::internal("a ballot by itself")),
        })
    }
}

/// Runs the pass on a kernel to which it [`applies`].
pub fn run(func: &mut Function, attributes: &KernelAttributes, target: &Target) -> Result<()> {
    let size = attributes.sub_group_size(target.subgroup_size);
    let parts = Parts {
        target,
        size: size.into(),
    };
    let possible = size.is_power_of_two() && size < target.subgroup_size && parts.size <= LARGEST;
    if !possible || !target.has_subgroups() {
        return Err(LowerError::unsupported(format!(
            "sub-groups of {size} work-items"
        )));
    }
    rewrite(func, |r, inst| {
        let data = r.data(inst);
        let args: Vec<Value> = data.args.iter().map(|&v| r.resolve(v)).collect();
        match data.op {
            Op::Builtin(builtin) => Ok(match parts.builtin(r, builtin) {
                Some(value) => r.replace_result(inst, value),
                None => InstEdit::Keep,
            }),
            Op::Barrier {
                exec: Scope::SubGroup,
                mem,
                order,
                fences,
            } => {
                parts.barrier(r, order, Op::Fence { mem, order, fences });
                Ok(InstEdit::Remove)
            }
            Op::Group(GroupOp::Ballot, Scope::SubGroup) => {
                let vote = args.first().copied();
                let vote = vote.ok_or_else(|| LowerError::internal("a ballot of nothing"))?;
                let word = parts.ballot(r, vote, parts.size);
                let zero = r.konst(Type::I32, 0);
                for (i, &old) in data.results.iter().enumerate() {
                    r.replace(old, if i == 0 { word } else { zero });
                }
                Ok(InstEdit::Remove)
            }
            Op::Group(op, Scope::SubGroup) => {
                let value = parts.group(r, op, &args)?;
                Ok(r.replace_result(inst, value))
            }
            _ => Ok(InstEdit::Keep),
        }
    })
}
