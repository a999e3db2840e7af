//! Translates atomics, barriers, fences, group operations, asynchronous copies.

use super::body::{bad, unsupported, Body};
use super::types::TyId;
use super::words::Instruction;
use crate::error::Result;
use crate::ir::entity::Value;
use crate::ir::function::Values;
use crate::ir::op::{Builtin, Fences, GroupArith as G, GroupOp, IntCond, Op, Order, RmwOp, Scope};
use crate::ir::types::Type;
use spirv::Op as S;

/// Returns the read-modify-write operation of an instruction with one operand value.
fn rmw(op: S) -> Option<RmwOp> {
    Some(match op {
        S::AtomicExchange => RmwOp::Xchg,
        S::AtomicIAdd | S::AtomicIIncrement => RmwOp::Add,
        S::AtomicISub | S::AtomicIDecrement => RmwOp::Sub,
        S::AtomicSMin => RmwOp::SMin,
        S::AtomicUMin => RmwOp::UMin,
        S::AtomicSMax => RmwOp::SMax,
        S::AtomicUMax => RmwOp::UMax,
        S::AtomicAnd => RmwOp::And,
        S::AtomicOr => RmwOp::Or,
        S::AtomicXor => RmwOp::Xor,
        S::AtomicFAddEXT => RmwOp::FAdd,
        S::AtomicFMinEXT => RmwOp::FMin,
        S::AtomicFMaxEXT => RmwOp::FMax,
        _ => return None,
    })
}

/// Returns the arithmetic of a reduction or scan, and whether its operands are Bool.
fn arith(op: S) -> Option<G> {
    Some(match op {
        S::GroupIAdd | S::GroupNonUniformIAdd => G::IAdd,
        S::GroupFAdd | S::GroupNonUniformFAdd => G::FAdd,
        S::GroupNonUniformIMul | S::GroupIMulKHR => G::IMul,
        S::GroupNonUniformFMul | S::GroupFMulKHR => G::FMul,
        S::GroupFMin | S::GroupNonUniformFMin => G::FMin,
        S::GroupUMin | S::GroupNonUniformUMin => G::UMin,
        S::GroupSMin | S::GroupNonUniformSMin => G::SMin,
        S::GroupFMax | S::GroupNonUniformFMax => G::FMax,
        S::GroupUMax | S::GroupNonUniformUMax => G::UMax,
        S::GroupSMax | S::GroupNonUniformSMax => G::SMax,
        S::GroupNonUniformBitwiseAnd | S::GroupBitwiseAndKHR => G::And,
        S::GroupNonUniformBitwiseOr | S::GroupBitwiseOrKHR => G::Or,
        S::GroupNonUniformBitwiseXor | S::GroupBitwiseXorKHR => G::Xor,
        S::GroupNonUniformLogicalAnd | S::GroupLogicalAndKHR => G::LogicalAnd,
        S::GroupNonUniformLogicalOr | S::GroupLogicalOrKHR => G::LogicalOr,
        S::GroupNonUniformLogicalXor | S::GroupLogicalXorKHR => G::LogicalXor,
        _ => return None,
    })
}

fn order_of(semantics: u64) -> Order {
    match semantics {
        s if s & 0x10 != 0 => Order::SeqCst,
        s if s & 0x8 != 0 || s & 6 == 6 => Order::AcqRel,
        s if s & 0x4 != 0 => Order::Release,
        s if s & 0x2 != 0 => Order::Acquire,
        _ => Order::Relaxed,
    }
}

fn fences_of(semantics: u64) -> Fences {
    Fences {
        global: semantics & 0x240 != 0,
        local: semantics & 0x100 != 0,
        image: semantics & 0x800 != 0,
    }
}

fn one(value: Value) -> Values {
    [value].into_iter().collect()
}

impl Body<'_, '_> {
    /// Reads the clock of a scope, as one integer of 64 bits or as its halves.
    pub(super) fn clock(&mut self, ty: TyId, id: u32, scope: Scope) -> Result<()> {
        let (scalar, n) = self.vector_of(ty)?;
        let ticks = self.ins(Op::Clock(scope), &[], Type::I64);
        let mut values = Values::new();
        match (scalar, n) {
            (Type::I64, 1) => values.push(ticks),
            (Type::I32, 2) => {
                values.push(self.resize(ticks, Type::I32, false));
                let by = self.constant(Type::I64, 32);
                let high = self.ins(Op::LShr, &[ticks, by], Type::I64);
                values.push(self.resize(high, Type::I32, false));
            }
            _ => return bad("its result is neither one of 64 bits nor two of 32"),
        }
        self.set(id, ty, values)
    }

    /// Returns the value of a scope operand, or the scope of the device if it is not constant.
    fn scope(&mut self, id: u32) -> Result<Scope> {
        Ok(match self.const_bits(id) {
            Some(0) => Scope::AllDevices,
            Some(1) | None => Scope::Device,
            Some(2) => Scope::WorkGroup,
            Some(3) => Scope::SubGroup,
            Some(4) => Scope::WorkItem,
            Some(5) if self.p.llvm_backend => Scope::Device,
            Some(s) => return bad(format!("scope {s}")),
        })
    }

    /// Returns the scope and order of an atomic. LLVM's target gives the atomics of OpenCL 1 the
    /// scope of a work-group where the device is meant; a wider scope is always correct.
    fn atomic_scope(&mut self, pointer: Value, scope: u32, order: u32) -> Result<(Scope, Order)> {
        let (scope, order) = (self.scope(scope)?, self.order(order));
        let local = self.f.ty(pointer) == Type::Ptr(crate::ir::types::Space::Local);
        let narrow = !matches!(scope, Scope::AllDevices | Scope::Device);
        Ok((
            if narrow && order == Order::Relaxed && !local {
                Scope::Device
            } else {
                scope
            },
            order,
        ))
    }

    fn order(&mut self, id: u32) -> Order {
        self.const_bits(id).map_or(Order::SeqCst, order_of)
    }

    /// Reads an atomic or group instruction, or a barrier. Returns false for others.
    pub(super) fn sync_inst(&mut self, inst: &Instruction, op: S) -> Result<bool> {
        match op {
            S::AtomicLoad => {
                let (ty, id) = self.result(inst)?;
                let (scalar, _) = self.vector_of(ty)?;
                let (pointer, _) = self.pointer(inst.word(2)?)?;
                let (mut scope, mut order) =
                    self.atomic_scope(pointer, inst.word(3)?, inst.word(4)?)?;
                // LLVM's target puts the numbers of memory_order and memory_scope in the place of scope and semantics.
                if self.p.llvm_backend {
                    (scope, order) = (Scope::Device, Order::SeqCst);
                }
                let int = self.atomic_int(scalar)?;
                let value = self.ins(Op::AtomicLoad { scope, order }, &[pointer], int);
                let value = self.cast_scalar(value, scalar)?;
                self.set(id, ty, one(value))?;
            }
            S::AtomicStore => {
                let (pointer, _) = self.pointer(inst.word(0)?)?;
                let (scope, order) = self.atomic_scope(pointer, inst.word(1)?, inst.word(2)?)?;
                let value = self.scalar(inst.word(3)?)?;
                let int = self.atomic_int(self.f.ty(value))?;
                let value = self.cast_scalar(value, int)?;
                self.effect(Op::AtomicStore { scope, order }, &[pointer, value]);
            }
            S::AtomicFlagTestAndSet => {
                let (ty, id) = self.result(inst)?;
                let (pointer, _) = self.pointer(inst.word(2)?)?;
                let (scope, order) = self.atomic_scope(pointer, inst.word(3)?, inst.word(4)?)?;
                let set = self.constant(Type::I32, 1);
                let old = self.ins(
                    Op::AtomicRmw {
                        op: RmwOp::Xchg,
                        scope,
                        order,
                    },
                    &[pointer, set],
                    Type::I32,
                );
                let value = self.to_bool(old);
                self.set(id, ty, one(value))?;
            }
            S::AtomicFlagClear => {
                let (pointer, _) = self.pointer(inst.word(0)?)?;
                let (scope, order) = self.atomic_scope(pointer, inst.word(1)?, inst.word(2)?)?;
                let zero = self.constant(Type::I32, 0);
                self.effect(Op::AtomicStore { scope, order }, &[pointer, zero]);
            }
            S::AtomicCompareExchange | S::AtomicCompareExchangeWeak => {
                let (ty, id) = self.result(inst)?;
                let (scalar, _) = self.vector_of(ty)?;
                let (pointer, _) = self.pointer(inst.word(2)?)?;
                let (scope, order) = self.atomic_scope(pointer, inst.word(3)?, inst.word(4)?)?;
                let int = self.atomic_int(scalar)?;
                let desired = self.scalar_of(inst.word(6)?, scalar)?;
                let expected = self.scalar_of(inst.word(7)?, scalar)?;
                let (expected, desired) = (
                    self.cast_scalar(expected, int)?,
                    self.cast_scalar(desired, int)?,
                );
                let old = self.ins(
                    Op::AtomicCmpXchg { scope, order },
                    &[pointer, expected, desired],
                    int,
                );
                let old = self.cast_scalar(old, scalar)?;
                self.set(id, ty, one(old))?;
            }
            S::ControlBarrier => {
                let exec = self.scope(inst.word(0)?)?;
                let mem = self.scope(inst.word(1)?)?;
                let semantics = self.const_bits(inst.word(2)?).unwrap_or(0x310);
                if !matches!(exec, Scope::WorkGroup | Scope::SubGroup) {
                    return unsupported("a barrier for more than a work-group");
                }
                let (order, fences) = (order_of(semantics), fences_of(semantics));
                self.effect(
                    Op::Barrier {
                        exec,
                        mem,
                        order,
                        fences,
                    },
                    &[],
                );
            }
            S::MemoryBarrier => {
                let mem = self.scope(inst.word(0)?)?;
                let semantics = self.const_bits(inst.word(1)?).unwrap_or(0x310);
                let (order, fences) = (order_of(semantics), fences_of(semantics));
                self.effect(Op::Fence { mem, order, fences }, &[]);
            }
            S::ReadClockKHR => {
                let (ty, id) = self.result(inst)?;
                let scope = self.scope(inst.word(2)?)?;
                self.clock(ty, id, scope)?;
            }
            S::GroupAsyncCopy => self.async_copy(inst)?,
            S::UntypedGroupAsyncCopyKHR => {
                let (ty, id) = self.result(inst)?;
                let Some(size) = self.const_bits(inst.word(5)?).filter(|&size| size > 0) else {
                    return bad("the size of an element is not a constant above zero");
                };
                let (align, _) = self.copy_access(inst, 9, 1)?;
                let (to, from) = (inst.word(3)?, inst.word(4)?);
                let (count, stride) = (inst.word(6)?, Some(inst.word(7)?));
                self.group_copy(to, from, count, stride, size, align, None)?;
                let event = self.value(inst.word(8)?)?;
                self.set(id, ty, event)?;
            }
            S::GroupWaitEvents => {
                let fences = Fences {
                    global: true,
                    local: true,
                    image: false,
                };
                let (exec, mem) = (Scope::WorkGroup, Scope::WorkGroup);
                self.effect(
                    Op::Barrier {
                        exec,
                        mem,
                        order: Order::AcqRel,
                        fences,
                    },
                    &[],
                );
            }
            _ => {
                if let Some(kind) = rmw(op) {
                    self.rmw_inst(inst, op, kind)?;
                    return Ok(true);
                }
                return self.group_inst(inst, op);
            }
        }
        Ok(true)
    }

    /// Returns the integer type that holds an atomic of some type.
    fn atomic_int(&self, ty: Type) -> Result<Type> {
        match ty.as_int() {
            Some(int) if ty != Type::Handle => Ok(int),
            _ => bad("an atomic of that type"),
        }
    }

    fn rmw_inst(&mut self, inst: &Instruction, op: S, kind: RmwOp) -> Result<()> {
        let (ty, id) = self.result(inst)?;
        let (scalar, _) = self.vector_of(ty)?;
        let (pointer, _) = self.pointer(inst.word(2)?)?;
        let (scope, order) = self.atomic_scope(pointer, inst.word(3)?, inst.word(4)?)?;
        let float = matches!(kind, RmwOp::FAdd | RmwOp::FMin | RmwOp::FMax);
        let memory = if float {
            scalar
        } else {
            self.atomic_int(scalar)?
        };
        if float && !scalar.is_float() || kind != RmwOp::Xchg && !float && !scalar.is_int() {
            return bad("its result type does not fit");
        }
        let value = match op {
            S::AtomicIIncrement | S::AtomicIDecrement => self.constant(scalar, 1),
            _ => self.scalar_of(inst.word(5)?, scalar)?,
        };
        let value = self.cast_scalar(value, memory)?;
        let old = self.ins(
            Op::AtomicRmw {
                op: kind,
                scope,
                order,
            },
            &[pointer, value],
            memory,
        );
        let old = self.cast_scalar(old, scalar)?;
        self.set(id, ty, one(old))
    }

    /// Returns the scope of a group operation, or an error if it is neither work-group nor sub-group.
    pub(super) fn group_scope(&mut self, id: u32) -> Result<Scope> {
        match self.scope(id)? {
            scope @ (Scope::WorkGroup | Scope::SubGroup) => Ok(scope),
            _ => unsupported("a group operation of that scope"),
        }
    }

    /// Applies a group operation to each component of a value.
    fn group_lanes(
        &mut self,
        inst: &Instruction,
        op: GroupOp,
        scope: Scope,
        value: u32,
        extra: &[Value],
    ) -> Result<()> {
        let (ty, id) = self.result(inst)?;
        let (values, scalar) = self.uniform(value)?;
        let mut out = Values::new();
        for v in values {
            let mut args = vec![v];
            args.extend(extra);
            out.push(self.ins(Op::Group(op, scope), &args, scalar));
        }
        self.set(id, ty, out)
    }

    fn index32(&mut self, id: u32) -> Result<Value> {
        let value = self.scalar(id)?;
        if !self.f.ty(value).is_int() {
            return bad(format!("%{id} is not an integer"));
        }
        Ok(self.resize(value, Type::I32, false))
    }

    fn group_inst(&mut self, inst: &Instruction, op: S) -> Result<bool> {
        if let Some(kind) = arith(op) {
            let scope = self.group_scope(inst.word(2)?)?;
            let (_, scalar) = self.uniform(inst.word(4)?)?;
            let fits = match kind {
                G::FAdd | G::FMul | G::FMin | G::FMax => scalar.is_float(),
                G::LogicalAnd | G::LogicalOr | G::LogicalXor => scalar == Type::Bool,
                _ => scalar.is_int(),
            };
            if !fits {
                return bad("its operand has the wrong type");
            }
            let (group, extra) = match inst.word(3)? {
                0 => (GroupOp::Reduce(kind), None),
                1 => (GroupOp::InclusiveScan(kind), None),
                2 => (GroupOp::ExclusiveScan(kind), None),
                3 => {
                    let size = inst.word(5)?;
                    let Some(size) = self.const_bits(size) else {
                        return bad("the cluster size is not constant");
                    };
                    (
                        GroupOp::ClusteredReduce(kind),
                        Some(self.constant(Type::I32, size)),
                    )
                }
                other => return unsupported(format!("group operation {other}")),
            };
            self.group_lanes(inst, group, scope, inst.word(4)?, extra.as_slice())?;
            return Ok(true);
        }
        match op {
            S::GroupAll | S::GroupAny | S::GroupNonUniformAll | S::GroupNonUniformAny => {
                let scope = self.group_scope(inst.word(2)?)?;
                let group = if matches!(op, S::GroupAll | S::GroupNonUniformAll) {
                    GroupOp::All
                } else {
                    GroupOp::Any
                };
                let (_, scalar) = self.uniform(inst.word(3)?)?;
                if scalar != Type::Bool {
                    return bad("its operand is not Bool");
                }
                self.group_lanes(inst, group, scope, inst.word(3)?, &[])?;
            }
            S::SubgroupAllKHR | S::SubgroupAnyKHR => {
                let group = if op == S::SubgroupAllKHR {
                    GroupOp::All
                } else {
                    GroupOp::Any
                };
                self.group_lanes(inst, group, Scope::SubGroup, inst.word(2)?, &[])?;
            }
            S::GroupNonUniformAllEqual => {
                let (ty, id) = self.result(inst)?;
                let scope = self.group_scope(inst.word(2)?)?;
                let (values, _) = self.uniform(inst.word(3)?)?;
                let mut all = None;
                for v in values {
                    let same = self.ins(Op::Group(GroupOp::AllEqual, scope), &[v], Type::Bool);
                    all = Some(match all {
                        Some(a) => self.ins(Op::And, &[a, same], Type::Bool),
                        None => same,
                    });
                }
                let Some(value) = all else {
                    return bad("an empty vector");
                };
                self.set(id, ty, one(value))?;
            }
            S::GroupNonUniformElect => {
                let (ty, id) = self.result(inst)?;
                let scope = self.group_scope(inst.word(2)?)?;
                let value = self.ins(Op::Group(GroupOp::Elect, scope), &[], Type::Bool);
                self.set(id, ty, one(value))?;
            }
            S::GroupBroadcast => {
                let scope = self.group_scope(inst.word(2)?)?;
                let (ids, _) = self.uniform(inst.word(4)?)?;
                let mut extra = Values::new();
                if scope == Scope::SubGroup {
                    extra.push(self.index32(inst.word(4)?)?);
                } else {
                    for v in ids.into_iter().take(3) {
                        extra.push(self.to_i64(v, false)?);
                    }
                    while extra.len() < 3 {
                        extra.push(self.constant(Type::I64, 0));
                    }
                }
                self.group_lanes(inst, GroupOp::Broadcast, scope, inst.word(3)?, &extra)?;
            }
            S::GroupNonUniformBroadcast => {
                let scope = self.group_scope(inst.word(2)?)?;
                let lane = self.index32(inst.word(4)?)?;
                self.group_lanes(inst, GroupOp::Broadcast, scope, inst.word(3)?, &[lane])?;
            }
            S::GroupNonUniformBroadcastFirst | S::SubgroupFirstInvocationKHR => {
                let (scope, value) = match op {
                    S::SubgroupFirstInvocationKHR => (Scope::SubGroup, inst.word(2)?),
                    _ => (self.group_scope(inst.word(2)?)?, inst.word(3)?),
                };
                let yes = self.constant(Type::Bool, 1);
                let words =
                    self.ins_many(Op::Group(GroupOp::Ballot, scope), &[yes], &[Type::I32; 4]);
                let first = self.find_bit(&words, false);
                self.group_lanes(inst, GroupOp::Shuffle, scope, value, &[first])?;
            }
            S::GroupNonUniformBallot | S::SubgroupBallotKHR => {
                let (ty, id) = self.result(inst)?;
                let (scope, value) = match op {
                    S::SubgroupBallotKHR => (Scope::SubGroup, inst.word(2)?),
                    _ => (self.group_scope(inst.word(2)?)?, inst.word(3)?),
                };
                let value = self.scalar_of(value, Type::Bool)?;
                let words =
                    self.ins_many(Op::Group(GroupOp::Ballot, scope), &[value], &[Type::I32; 4]);
                self.set(id, ty, words)?;
            }
            S::GroupNonUniformInverseBallot | S::GroupNonUniformBallotBitExtract => {
                let (ty, id) = self.result(inst)?;
                let words = self.lanes(inst.word(3)?, Type::I32, 4)?;
                let lane = if op == S::GroupNonUniformInverseBallot {
                    self.lane_id()
                } else {
                    self.index32(inst.word(4)?)?
                };
                let (five, mask) = (self.constant(Type::I32, 5), self.constant(Type::I32, 31));
                let word = self.ins(Op::LShr, &[lane, five], Type::I32);
                let word = self.pick(&words, word, None)?;
                let bit = self.ins(Op::And, &[lane, mask], Type::I32);
                let bits = self.ins(Op::LShr, &[word, bit], Type::I32);
                let one_bit = self.constant(Type::I32, 1);
                let bits = self.ins(Op::And, &[bits, one_bit], Type::I32);
                let value = self.to_bool(bits);
                self.set(id, ty, one(value))?;
            }
            S::GroupNonUniformBallotBitCount => {
                let (ty, id) = self.result(inst)?;
                let operation = inst.word(3)?;
                let words = self.lanes(inst.word(4)?, Type::I32, 4)?;
                let limit = match operation {
                    0 => self.max_subgroup_size(),
                    1 => {
                        let (lane, next) = (self.lane_id(), self.constant(Type::I32, 1));
                        self.ins(Op::IAdd, &[lane, next], Type::I32)
                    }
                    2 => self.lane_id(),
                    other => return unsupported(format!("group operation {other}")),
                };
                let mut sum = self.constant(Type::I32, 0);
                for (i, &word) in words.iter().enumerate() {
                    let mask = self.bits_below(limit, i as u64);
                    let bits = self.ins(Op::And, &[word, mask], Type::I32);
                    let count = self.ins(Op::Popcount, &[bits], Type::I32);
                    sum = self.ins(Op::IAdd, &[sum, count], Type::I32);
                }
                self.set(id, ty, one(sum))?;
            }
            S::GroupNonUniformBallotFindLSB | S::GroupNonUniformBallotFindMSB => {
                let (ty, id) = self.result(inst)?;
                let mut words = self.lanes(inst.word(3)?, Type::I32, 4)?;
                // Only the bits of lanes that a sub-group can have count.
                let size = self.max_subgroup_size();
                for (i, word) in words.iter_mut().enumerate() {
                    let mask = self.bits_below(size, i as u64);
                    *word = self.ins(Op::And, &[*word, mask], Type::I32);
                }
                let value = self.find_bit(&words, op == S::GroupNonUniformBallotFindMSB);
                self.set(id, ty, one(value))?;
            }
            S::GroupNonUniformShuffle
            | S::GroupNonUniformShuffleXor
            | S::GroupNonUniformShuffleUp
            | S::GroupNonUniformShuffleDown => {
                let group = match op {
                    S::GroupNonUniformShuffle => GroupOp::Shuffle,
                    S::GroupNonUniformShuffleXor => GroupOp::ShuffleXor,
                    S::GroupNonUniformShuffleUp => GroupOp::ShuffleUp,
                    _ => GroupOp::ShuffleDown,
                };
                let scope = self.group_scope(inst.word(2)?)?;
                let lane = self.index32(inst.word(4)?)?;
                self.group_lanes(inst, group, scope, inst.word(3)?, &[lane])?;
            }
            S::GroupNonUniformRotateKHR => {
                let scope = self.group_scope(inst.word(2)?)?;
                let mut extra = Values::new();
                extra.push(self.index32(inst.word(4)?)?);
                if let Some(&cluster) = inst.words.get(5) {
                    let Some(size) = self.const_bits(cluster) else {
                        return bad("the cluster size is not constant");
                    };
                    extra.push(self.constant(Type::I32, size));
                }
                self.group_lanes(inst, GroupOp::Rotate, scope, inst.word(3)?, &extra)?;
            }
            S::SubgroupShuffleINTEL | S::SubgroupShuffleXorINTEL => {
                let group = if op == S::SubgroupShuffleINTEL {
                    GroupOp::Shuffle
                } else {
                    GroupOp::ShuffleXor
                };
                let lane = self.index32(inst.word(3)?)?;
                self.group_lanes(inst, group, Scope::SubGroup, inst.word(2)?, &[lane])?;
            }
            S::SubgroupShuffleDownINTEL | S::SubgroupShuffleUpINTEL => {
                self.shuffle_of_two(inst, op == S::SubgroupShuffleDownINTEL)?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Translates a shuffle of SPV_INTEL_subgroups by a distance in the values of two sub-groups
    /// side by side: downwards in the first operand and then the second, or upwards in the second
    /// and then the first.
    fn shuffle_of_two(&mut self, inst: &Instruction, down: bool) -> Result<()> {
        let (ty, id) = self.result(inst)?;
        let (first, scalar) = self.uniform(inst.word(2)?)?;
        let (second, other) = self.uniform(inst.word(3)?)?;
        if scalar != other || first.len() != second.len() {
            return bad("its operands have different types");
        }
        let delta = self.index32(inst.word(4)?)?;
        let own = self.lane_id();
        let size = self.max_subgroup_size();
        let one = self.constant(Type::I32, 1);
        let mask = self.ins(Op::ISub, &[size, one], Type::I32);
        let op = if down { Op::IAdd } else { Op::ISub };
        let place = self.ins(op, &[own, delta], Type::I32);
        let (low, high) = if down { (place, size) } else { (own, delta) };
        let in_first = self.ins(Op::ICmp(IntCond::Ult), &[low, high], Type::Bool);
        // Sizes are powers of two.
        let lane = self.ins(Op::And, &[place, mask], Type::I32);
        let mut out = Values::new();
        let shuffle = Op::Group(GroupOp::Shuffle, Scope::SubGroup);
        for (a, b) in first.into_iter().zip(second) {
            let a = self.ins(shuffle, &[a, lane], scalar);
            let b = self.ins(shuffle, &[b, lane], scalar);
            out.push(self.select(in_first, a, b));
        }
        self.set(id, ty, out)
    }

    /// Emits the size of full sub-groups.
    pub(super) fn max_subgroup_size(&mut self) -> Value {
        self.cached_builtin(u32::MAX, Op::Builtin(Builtin::SubGroupMaxSize), Type::I32)
    }

    /// Emits the number of the work-item in its sub-group.
    pub(super) fn lane_id(&mut self) -> Value {
        let key = (spirv::BuiltIn::SubgroupLocalInvocationId as u32) << 2;
        self.cached_builtin(key, Op::Builtin(Builtin::SubGroupLocalId), Type::I32)
    }

    /// Computes the number of the first or last set bit in a list of words.
    fn find_bit(&mut self, words: &[Value], last: bool) -> Value {
        let mut result = self.constant(Type::I32, 0);
        let zero = result;
        let numbered: Vec<(usize, Value)> = words.iter().copied().enumerate().collect();
        let ordered: Vec<_> = if last {
            numbered
        } else {
            numbered.into_iter().rev().collect()
        };
        for (i, word) in ordered {
            let bit = if last {
                let top = self.constant(Type::I32, 31);
                let zeros = self.ins(Op::Clz, &[word], Type::I32);
                self.ins(Op::ISub, &[top, zeros], Type::I32)
            } else {
                self.ins(Op::Ctz, &[word], Type::I32)
            };
            let base = self.constant(Type::I32, i as u64 * 32);
            let bit = self.ins(Op::IAdd, &[bit, base], Type::I32);
            let some = self.ins(Op::ICmp(IntCond::Ne), &[word, zero], Type::Bool);
            result = self.select(some, bit, result);
        }
        result
    }

    fn async_copy(&mut self, inst: &Instruction) -> Result<()> {
        let (ty, id) = self.result(inst)?;
        let (to, from) = (inst.word(3)?, inst.word(4)?);
        let mut data = self.pointee(self.type_of(to)?)?;
        // LLVM's target may give the pointers the type of a whole array.
        while let super::types::Kind::Array { elem, .. } = self.p.types.get(data).kind {
            data = elem;
        }
        let (size, align) = (self.p.types.get(data).size, self.p.types.get(data).align);
        let element = match self.p.types.vector(data) {
            Some((scalar, n)) if scalar != Type::Bool => Some((scalar, n.next_power_of_two())),
            _ => None,
        };
        let (count, stride) = (inst.word(5)?, Some(inst.word(6)?));
        self.group_copy(to, from, count, stride, size, align, element)?;
        let event = self.value(inst.word(7)?)?;
        self.set(id, ty, event)
    }

    /// Copies memory as a group: every work-item copies its share, and waiting for the event is a
    /// barrier. `element` holds the scalar type and count of an element that consists of equal
    /// scalars.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn group_copy(
        &mut self,
        to: u32,
        from: u32,
        count: u32,
        stride: Option<u32>,
        size: u64,
        align: u32,
        element: Option<(Type, u32)>,
    ) -> Result<()> {
        let (to, to_space) = self.pointer(to)?;
        let (from, _) = self.pointer(from)?;
        let count = self.scalar(count)?;
        let count = self.to_i64(count, false)?;
        let stride = match stride {
            Some(id) => {
                let stride = self.scalar(id)?;
                Some(self.to_i64(stride, false)?)
            }
            None => None,
        };
        let local = to_space == crate::ir::types::Space::Local;
        let start = self.ins(Op::Builtin(Builtin::LocalLinearId), &[], Type::I64);
        let mut step = None;
        for i in 0..3 {
            let n = self.ins(Op::Builtin(Builtin::LocalSize(i)), &[], Type::I64);
            step = Some(match step {
                Some(s) => self.ins(Op::IMul, &[s, n], Type::I64),
                None => n,
            });
        }
        let Some(step) = step else {
            return bad("no dimension");
        };
        self.counted_loop(start, count, step, |b, i| {
            let far = match stride {
                Some(stride) => b.ins(Op::IMul, &[i, stride], Type::I64),
                None => i,
            };
            // The stride is that of the global side.
            let (a, z) = if local { (i, far) } else { (far, i) };
            let target = b.element(to, a, size)?;
            let source = b.element(from, z, size)?;
            match element {
                Some((scalar, n)) => {
                    let types = vec![scalar; n as usize];
                    let load = Op::Load {
                        align,
                        volatile: false,
                    };
                    let mut args = vec![target];
                    args.extend(b.ins_many(load, &[source], &types));
                    let store = Op::Store {
                        align,
                        volatile: false,
                    };
                    b.effect(store, &args);
                }
                None => b.effect(Op::MemCopy { size, align }, &[target, source]),
            }
            Ok(())
        })
    }
}
