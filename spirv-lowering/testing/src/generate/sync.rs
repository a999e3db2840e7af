//! Generates synchronisation: barriers, collective operations, atomics; and printf.

use super::body::{Body, KnownValue};
use super::{Kind, MOST_ITEMS, SLOT_BYTES};
use spirv_lowering::ir::entity::Value;
use spirv_lowering::ir::function::{Edge, Terminator};
use spirv_lowering::ir::module::PrintfArg;
use spirv_lowering::ir::op::{Fences, GroupArith, GroupOp, IntCond, Op, Order, RmwOp, Scope};
use spirv_lowering::ir::types::{Space, Type};

const NUMBERS: [Type; 2] = [Type::I32, Type::I64];

impl Body<'_> {
    fn barrier(&mut self) {
        let op = Op::Barrier {
            exec: Scope::WorkGroup,
            mem: Scope::WorkGroup,
            order: Order::AcqRel,
            fences: Fences {
                global: true,
                local: true,
                image: false,
            },
        };
        self.func.append(self.block, op, [], &[]);
    }

    /// Generates something that the whole work-group does, where all of it is.
    pub fn meeting(&mut self) {
        let collective = self.gen.kind == Kind::Collective;
        match self.below(6) {
            0 | 1 => self.exchange(),
            2 => self.counter_atomics(),
            3 | 4 if collective => self.group_op(),
            5 if collective => self.sub_group_op(),
            3 => self.barrier(),
            _ => self.exchange(),
        }
    }

    /// Makes each work-item write to its slot, then read another's.
    fn exchange(&mut self) {
        let (Some(index), Some(items)) = (self.local_index, self.local_items) else {
            return;
        };
        let mut bases = self.locals.clone();
        // The slots of the group in `share` do not lie together: the own one only.
        bases.retain(|&b| self.func.ty(b) == Type::Ptr(Space::Local));
        if bases.is_empty() {
            return;
        }
        let base = self.gen.rng.pick(&bases);
        let ty = self.gen.rng.pick(&super::SCALARS);
        let at = self.below((SLOT_BYTES / ty.size()) as usize) as u32 * ty.size();
        let value = self.plain(ty);
        let own = self.indexed(base, index, SLOT_BYTES);
        let place = self.offset(own, at);
        self.put(place, &[value], ty.size());
        self.barrier();
        let by = self.value(Type::I64);
        let mask = self.konst(Type::I64, 31);
        let by = self.op(Op::And, &[by, mask], Type::I64);
        let other = self.op(Op::IAdd, &[index, by], Type::I64);
        let other = self.op(Op::URem, &[other, items], Type::I64);
        let theirs = self.indexed(base, other, SLOT_BYTES);
        let ty = self.gen.rng.pick(&super::SCALARS);
        let at = self.below((SLOT_BYTES / ty.size()) as usize) as u32 * ty.size();
        let place = self.offset(theirs, at);
        let value = self.get(place, ty, ty.size());
        self.barrier();
        self.known.push(KnownValue {
            value,
            ty,
            uniform: false,
        });
    }

    /// Generates atomics on a word of local memory after the slots, between barriers.
    fn counter_atomics(&mut self) {
        let (Some(index), Some(id)) = (self.local_index, self.gen.local) else {
            return;
        };
        let base = self.op(Op::GlobalAddr(id), &[], Type::Ptr(Space::Local));
        let ty = self.gen.rng.pick(&NUMBERS);
        let word = self.below(2) as u32 * 8;
        let at = self.offset(base, MOST_ITEMS * SLOT_BYTES + word);
        let first = self.konst(Type::I64, 0);
        let is_first = self.op(Op::ICmp(IntCond::Eq), &[index, first], Type::Bool);
        let (init, go) = (self.func.add_block(), self.func.add_block());
        self.func.blocks[self.block].term =
            Terminator::Branch(is_first, Edge::new(init), Edge::new(go));
        self.block = init;
        let start = self.constant(ty);
        self.put(at, &[start], ty.size());
        self.func.blocks[init].term = Terminator::Jump(Edge::new(go));
        self.block = go;
        self.barrier();
        let value = self.value(ty);
        self.modify(at, value, ty, Scope::WorkGroup);
        self.barrier();
        let value = self.get(at, ty, ty.size());
        self.barrier();
        self.known.push(KnownValue {
            value,
            ty,
            uniform: true,
        });
    }

    /// Generates an atomic whose result is unused, of an operation that does not depend on order.
    fn modify(&mut self, at: Value, value: Value, ty: Type, scope: Scope) -> Value {
        let op = self.gen.rng.pick(&[
            RmwOp::Add,
            RmwOp::Sub,
            RmwOp::And,
            RmwOp::Or,
            RmwOp::Xor,
            RmwOp::SMin,
            RmwOp::SMax,
            RmwOp::UMin,
            RmwOp::UMax,
        ]);
        let op = Op::AtomicRmw {
            op,
            scope,
            order: Order::Relaxed,
        };
        self.op(op, &[at, value], ty)
    }

    /// Generates an atomic on a counter of all work-items: each counter takes one operation.
    pub fn shared_atomic(&mut self) {
        let Some(base) = self.counters else { return };
        let ops = [
            (RmwOp::Add, Type::I32),
            (RmwOp::Or, Type::I32),
            (RmwOp::And, Type::I32),
            (RmwOp::Xor, Type::I32),
            (RmwOp::SMin, Type::I32),
            (RmwOp::UMax, Type::I32),
            (RmwOp::Add, Type::I64),
            (RmwOp::SMax, Type::I64),
        ];
        let which = self.below(ops.len());
        let (op, ty) = ops[which];
        let at = self.offset(base, which as u32 * 8);
        let value = self.value(ty);
        let op = Op::AtomicRmw {
            op,
            scope: Scope::Device,
            order: Order::Relaxed,
        };
        self.op(op, &[at, value], ty);
    }

    /// Generates atomics on memory of this work-item alone, so that the old value is known.
    pub fn own_atomic(&mut self) {
        let ty = self.gen.rng.pick(&NUMBERS);
        let fit: Vec<_> = self
            .objects
            .iter()
            .filter(|o| o.writable && o.align >= ty.size() && o.size >= 16)
            .filter(|o| matches!(self.func.ty(o.at), Type::Ptr(Space::Global | Space::Local)))
            .copied()
            .collect();
        if fit.is_empty() {
            return self.assign();
        }
        let object = self.gen.rng.pick(&fit);
        let at = self.below((object.size / ty.size()) as usize) as u32 * ty.size();
        let at = self.offset(object.at, at);
        let value = self.value(ty);
        let (scope, order) = (Scope::WorkGroup, Order::Relaxed);
        let old = match self.below(5) {
            0 => {
                let loaded = self.op(Op::AtomicLoad { scope, order }, &[at], ty);
                let other = self.value(ty);
                let c = self.condition(false);
                let expected = self.op(Op::Select, &[c, loaded, other], ty);
                let op = Op::AtomicCmpXchg { scope, order };
                self.op(op, &[at, expected, value], ty)
            }
            1 => {
                self.func.append(
                    self.block,
                    Op::AtomicStore { scope, order },
                    [at, value],
                    &[],
                );
                return;
            }
            2 => {
                let op = Op::AtomicRmw {
                    op: RmwOp::Xchg,
                    scope,
                    order,
                };
                self.op(op, &[at, value], ty)
            }
            _ => self.modify(at, value, ty, scope),
        };
        self.known.push(KnownValue {
            value: old,
            ty,
            uniform: false,
        });
    }

    fn arith(&mut self, ty: Type) -> GroupArith {
        use GroupArith::*;
        if ty.is_float() {
            return self.gen.rng.pick(&[FMin, FMax]);
        }
        self.gen
            .rng
            .pick(&[IAdd, IMul, SMin, UMin, SMax, UMax, And, Or, Xor])
    }

    fn number(&mut self) -> Type {
        self.gen.rng.pick(&[
            Type::I32,
            Type::I64,
            Type::I8,
            Type::I16,
            Type::I32,
            Type::I64,
        ])
    }

    /// Generates a collective operation of the work-group.
    fn group_op(&mut self) {
        let ty = self.number();
        let arith = self.arith(ty);
        let (op, ty, uniform) = match self.below(6) {
            0 => (GroupOp::All, Type::Bool, true),
            1 => (GroupOp::Any, Type::Bool, true),
            2 => (GroupOp::Reduce(arith), ty, true),
            3 => (GroupOp::InclusiveScan(arith), ty, false),
            4 => (GroupOp::ExclusiveScan(arith), ty, false),
            _ => (GroupOp::Broadcast, ty, true),
        };
        let value = self.value(ty);
        let mut args = vec![value];
        if op == GroupOp::Broadcast {
            for dim in 0..3 {
                let which = self.uniform(Type::I64);
                let size = self.op(
                    Op::Builtin(spirv_lowering::ir::op::Builtin::LocalSize(dim)),
                    &[],
                    Type::I64,
                );
                args.push(self.op(Op::URem, &[which, size], Type::I64));
            }
        }
        let value = self.op(Op::Group(op, Scope::WorkGroup), &args, ty);
        self.known.push(KnownValue { value, ty, uniform });
    }

    /// Generates a collective operation of the sub-group.
    fn sub_group_op(&mut self) {
        let scope = Scope::SubGroup;
        let ty = self.number();
        let arith = self.arith(ty);
        let lane = |body: &mut Self| {
            let size = body.op(
                Op::Builtin(spirv_lowering::ir::op::Builtin::SubGroupSize),
                &[],
                Type::I32,
            );
            let which = body.value(Type::I32);
            body.op(Op::URem, &[which, size], Type::I32)
        };
        let (op, args, ty) = match self.below(10) {
            0 => (GroupOp::All, vec![self.condition(false)], Type::Bool),
            1 => (GroupOp::Any, vec![self.condition(false)], Type::Bool),
            2 => (GroupOp::Reduce(arith), vec![self.value(ty)], ty),
            3 => (GroupOp::InclusiveScan(arith), vec![self.value(ty)], ty),
            4 => (GroupOp::ExclusiveScan(arith), vec![self.value(ty)], ty),
            5 | 6 => {
                let value = self.value(ty);
                (GroupOp::Shuffle, vec![value, lane(self)], ty)
            }
            7 => (GroupOp::Elect, vec![], Type::Bool),
            8 => {
                let value = self.value(ty);
                let size = self.gen.rng.pick(&[1, 2, 4]);
                let size = self.konst(Type::I32, size);
                let ty_size = match ty {
                    Type::I32 => size,
                    _ => {
                        let op = GroupOp::Reduce(arith);
                        let value = self.op(Op::Group(op, scope), &[value], ty);
                        self.known.push(KnownValue {
                            value,
                            ty,
                            uniform: false,
                        });
                        return;
                    }
                };
                (GroupOp::ClusteredReduce(arith), vec![value, ty_size], ty)
            }
            _ => {
                let op = Op::Group(GroupOp::Ballot, scope);
                let vote = self.condition(false);
                let inst = self.func.append(self.block, op, [vote], &[Type::I32; 4]);
                let value = self.func.insts[inst].results[0];
                self.known.push(KnownValue {
                    value,
                    ty: Type::I32,
                    uniform: false,
                });
                return;
            }
        };
        let value = self.op(Op::Group(op, scope), &args, ty);
        self.known.push(KnownValue {
            value,
            ty,
            uniform: false,
        });
    }

    pub fn printf(&mut self) {
        let index = self.gen.printf_site();
        let site = self.gen.module.printfs[index as usize].clone();
        let mut args = Vec::new();
        for arg in &site.args {
            if let PrintfArg::Value { ty, lanes } = arg {
                for _ in 0..*lanes {
                    args.push(self.value(*ty));
                }
            }
        }
        self.op(Op::Printf(index), &args, Type::I32);
    }
}
