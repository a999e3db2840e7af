//! Generates operations of sub-groups, at the end of a kernel: of each kind, where all work-items
//! are, where some lanes are, and where some sub-groups are.
//!
//! Every other eight seeds have these in kernels with collective operations ([`size`]), most of
//! which require a size of sub-groups. They draw random numbers of their own, so that they do not
//! change the rest of a kernel.

use super::body::Body;
use super::{OUT_BYTES, SLOT_BYTES};
use crate::rng::Rng;
use spirv_lowering::ir::entity::Value;
use spirv_lowering::ir::function::{Edge, Terminator};
use spirv_lowering::ir::op::{Builtin, Fences, GroupArith, GroupOp, IntCond, Op, Order, Scope};
use spirv_lowering::ir::types::{Space, Type};

/// The results of a kernel's operations, in the first bytes of a work-item's part of `out`.
const RESULTS: u32 = 8;

/// Returns the size of sub-groups that the kernel of a seed requires, if it has statements of this
/// file.
pub(super) fn size(seed: u64) -> Option<Option<u32>> {
    let sizes = [None, Some(4), Some(8), Some(16)];
    (seed >> 3 & 1 == 1).then(|| sizes[Rng::new(seed ^ 0x5eed).below(4)])
}

/// The work-items that an operation is generated for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reached {
    All,
    SomeLanes,
    SomeSubGroups,
    /// Each sub-group as often as its number says.
    Repeatedly,
}

impl Body<'_> {
    /// Generates operations of sub-groups, and stores of their results.
    pub(super) fn sub_groups(&mut self, mut rng: Rng) {
        let out = self.func.entry().and_then(|entry| {
            let params = &self.func.blocks[entry].params;
            params.first().copied()
        });
        let (Some(out), Some(index)) = (out, self.global_index) else {
            return;
        };
        let own = self.indexed(out, index, OUT_BYTES);
        for k in 0..RESULTS {
            let place = self.offset(own, k * 8);
            let zero = self.konst(Type::I64, 0);
            self.store_long(place, zero);
            use Reached::*;
            let reached = rng.pick(&[All, SomeLanes, SomeLanes, SomeSubGroups, Repeatedly]);
            self.reached(&mut rng, reached, place);
        }
    }

    fn store_long(&mut self, place: Value, value: Value) {
        let store = Op::Store {
            align: 8,
            volatile: false,
        };
        self.func.append(self.block, store, [place, value], &[]);
    }

    fn sub_group_builtin(&mut self, builtin: Builtin) -> Value {
        self.op(Op::Builtin(builtin), &[], Type::I32)
    }

    /// Generates an operation for some work-items, each of which adds the result to what is at
    /// `place`.
    fn reached(&mut self, rng: &mut Rng, reached: Reached, place: Value) {
        let uniform = reached != Reached::SomeLanes;
        if reached == Reached::All {
            return self.add_operation(rng, uniform, place);
        }
        let builtin = match uniform {
            true => Builtin::SubGroupId,
            false => Builtin::SubGroupLocalId,
        };
        let number = self.sub_group_builtin(builtin);
        let (inner, after) = (self.func.add_block(), self.func.add_block());
        if reached == Reached::Repeatedly {
            let limit = self.konst(Type::I32, 3);
            let times = self.op(Op::UMin, &[number, limit], Type::I32);
            let head = self.func.add_block();
            let counter = self.func.add_param(head, Type::I32);
            let zero = self.konst(Type::I32, 0);
            let edge = |value| Edge::with(head, [value]);
            self.func.blocks[self.block].term = Terminator::Jump(edge(zero));
            self.block = head;
            let more = self.op(Op::ICmp(IntCond::Ult), &[counter, times], Type::Bool);
            self.func.blocks[head].term =
                Terminator::Branch(more, Edge::new(inner), Edge::new(after));
            self.block = inner;
            self.add_operation(rng, uniform, place);
            let one = self.konst(Type::I32, 1);
            let next = self.op(Op::IAdd, &[counter, one], Type::I32);
            self.func.blocks[self.block].term = Terminator::Jump(edge(next));
        } else {
            let mask = self.konst(Type::I32, rng.pick(&[1, 2, 3, 4, 5]));
            let bits = self.op(Op::And, &[number, mask], Type::I32);
            let zero = self.konst(Type::I32, 0);
            let cond = rng.pick(&[IntCond::Eq, IntCond::Ne]);
            let some = self.op(Op::ICmp(cond), &[bits, zero], Type::Bool);
            let other = self.func.add_block();
            self.func.blocks[self.block].term =
                Terminator::Branch(some, Edge::new(inner), Edge::new(other));
            self.block = inner;
            self.add_operation(rng, uniform, place);
            self.func.blocks[self.block].term = Terminator::Jump(Edge::new(after));
            self.block = other;
            if rng.one_in(2) {
                self.add_operation(rng, uniform, place);
            }
            self.func.blocks[self.block].term = Terminator::Jump(Edge::new(after));
        }
        self.block = after;
    }

    /// Generates an operation, and adds its result to what is at `place`.
    fn add_operation(&mut self, rng: &mut Rng, uniform: bool, place: Value) {
        let result = match rng.below(6) {
            0 if uniform => self.through_memory(rng),
            _ => self.operation(rng),
        };
        let Some(result) = result else { return };
        let wide = match self.func.ty(result) {
            Type::I64 => result,
            _ => self.op(Op::ZExt, &[result], Type::I64),
        };
        let load = Op::Load {
            align: 8,
            volatile: false,
        };
        let sum = self.op(load, &[place], Type::I64);
        let odd = self.konst(Type::I64, 0x1_0001_0003);
        let sum = self.op(Op::IMul, &[sum, odd], Type::I64);
        let sum = self.op(Op::IAdd, &[sum, wide], Type::I64);
        self.store_long(place, sum);
    }

    /// Makes each work-item write to its slot of local memory, then read that of another one of
    /// its sub-group, all of which is here.
    fn through_memory(&mut self, rng: &mut Rng) -> Option<Value> {
        let index = self.local_index?;
        let mut bases = self.locals.clone();
        bases.retain(|&base| self.func.ty(base) == Type::Ptr(Space::Local));
        let base = *bases.first()?;
        let barrier = Op::Barrier {
            exec: Scope::SubGroup,
            mem: Scope::SubGroup,
            order: Order::AcqRel,
            fences: Fences {
                global: false,
                local: true,
                image: false,
            },
        };
        let access = |this: &mut Self, index: Value| this.indexed(base, index, SLOT_BYTES);
        let own = access(self, index);
        let value = self.value(Type::I32);
        let volatile = false;
        let store = Op::Store { align: 4, volatile };
        self.func.append(self.block, store, [own, value], &[]);
        self.func.append(self.block, barrier, [], &[]);
        let lane = self.sub_group_builtin(Builtin::SubGroupLocalId);
        let other = self.other_lane(rng);
        let by = self.op(Op::ISub, &[other, lane], Type::I32);
        let by = self.op(Op::SExt, &[by], Type::I64);
        let theirs = self.op(Op::IAdd, &[index, by], Type::I64);
        let theirs = access(self, theirs);
        let value = self.op(Op::Load { align: 4, volatile }, &[theirs], Type::I32);
        self.func.append(self.block, barrier, [], &[]);
        Some(value)
    }

    /// Returns the number of a lane of the sub-group.
    fn other_lane(&mut self, rng: &mut Rng) -> Value {
        let size = self.sub_group_builtin(Builtin::SubGroupSize);
        let lane = self.sub_group_builtin(Builtin::SubGroupLocalId);
        let by = self.konst(Type::I32, rng.below(20) as u64);
        let other = self.op(Op::IAdd, &[lane, by], Type::I32);
        self.op(Op::URem, &[other, size], Type::I32)
    }

    /// Generates an operation of the active work-items of a sub-group.
    fn operation(&mut self, rng: &mut Rng) -> Option<Value> {
        use GroupArith::*;
        let number = [Type::I32, Type::I64, Type::I8, Type::I16, Type::I32];
        let ty = rng.pick(&number);
        let (ty, arith) = match rng.one_in(4) {
            true => {
                let list = [LogicalAnd, LogicalOr, LogicalXor];
                (Type::Bool, rng.pick(&list))
            }
            false => {
                let list = [IAdd, IMul, SMin, UMin, SMax, UMax, And, Or, Xor];
                (ty, rng.pick(&list))
            }
        };
        let any = rng.pick(&[ty, Type::F32, Type::F64, Type::F16]);
        let distance = |this: &mut Self, rng: &mut Rng| {
            let number = rng.below(5) as u64;
            this.konst(Type::I32, number)
        };
        let (op, args, ty) = match rng.below(14) {
            0 => (GroupOp::All, vec![self.value(Type::Bool)], Type::Bool),
            1 => (GroupOp::Any, vec![self.value(Type::Bool)], Type::Bool),
            2 => {
                // Often the same in all.
                let value = self.value(Type::I32);
                let one = self.konst(Type::I32, 1);
                let value = self.op(Op::And, &[value, one], Type::I32);
                (GroupOp::AllEqual, vec![value], Type::Bool)
            }
            3 => (GroupOp::Elect, vec![], Type::Bool),
            4 => {
                let vote = self.value(Type::Bool);
                let ballot = Op::Group(GroupOp::Ballot, Scope::SubGroup);
                let inst = self
                    .func
                    .append(self.block, ballot, [vote], &[Type::I32; 4]);
                let words = self.func.insts[inst].results.clone();
                let [a, b, c, d] = words[..] else { return None };
                let rest = self.op(Op::Or, &[b, c], Type::I32);
                let rest = self.op(Op::Or, &[rest, d], Type::I32);
                return Some(self.op(Op::Xor, &[a, rest], Type::I32));
            }
            5 => {
                let lane = self.konst(Type::I32, rng.below(4) as u64);
                (GroupOp::Broadcast, vec![self.value(any), lane], any)
            }
            6 => {
                let value = self.value(any);
                (GroupOp::Shuffle, vec![value, self.other_lane(rng)], any)
            }
            7 => {
                let by = distance(self, rng);
                (GroupOp::ShuffleXor, vec![self.value(any), by], any)
            }
            8 => {
                let by = distance(self, rng);
                let op = rng.pick(&[GroupOp::ShuffleUp, GroupOp::ShuffleDown]);
                (op, vec![self.value(any), by], any)
            }
            9 => {
                let mut args = vec![self.value(any), distance(self, rng)];
                if rng.one_in(2) {
                    args.push(self.konst(Type::I32, rng.pick(&[1, 2, 4])));
                }
                (GroupOp::Rotate, args, any)
            }
            10 => (GroupOp::Reduce(arith), vec![self.value(ty)], ty),
            11 => (GroupOp::InclusiveScan(arith), vec![self.value(ty)], ty),
            12 => (GroupOp::ExclusiveScan(arith), vec![self.value(ty)], ty),
            _ => {
                let size = self.konst(Type::I32, rng.pick(&[1, 2, 4]));
                (
                    GroupOp::ClusteredReduce(arith),
                    vec![self.value(ty), size],
                    ty,
                )
            }
        };
        let result = self.op(Op::Group(op, Scope::SubGroup), &args, ty);
        if !ty.is_float() {
            return Some(result);
        }
        // Of a NaN more than the sign is open.
        let nan = self.op(
            Op::FCmp(spirv_lowering::ir::op::FloatCond::Une),
            &[result; 2],
            Type::Bool,
        );
        let int = ty.as_int()?;
        let zero = self.konst(int, 0);
        let bits = self.op(Op::Bitcast, &[result], int);
        Some(self.op(Op::Select, &[nan, zero, bits], int))
    }
}
