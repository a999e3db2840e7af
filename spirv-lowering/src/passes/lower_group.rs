//! Lowers collective operations to those that the target has.
//!
//! *Sub-groups.* OpenCL's partition the work-group in the order of linear local ids, all but the
//! last of them full. A kernel that uses them is dispatched with a linear work-group (see [`uses`]
//! and `lower_builtin_vars`), whose sub-groups Vulkan's drivers form in that order. This pass keeps
//! `elect`, votes, `ballot`, `shuffle` with an index below the size of the sub-group, and the
//! reductions and scans that the target has. The others become sums over the active lanes, one by
//! one: right in any control flow and for any number of lanes.
//!
//! *Work-groups.* Each sub-group reduces its own part, the first of its work-items stores the
//! result to local memory, and each work-item sums up the parts that concern it.

use crate::edit::rewrite::{rewrite, InstEdit, Rewriter};
use crate::error::{LowerError, Result};
use crate::ir::entity::{GlobalId, PrimaryMap, Value};
use crate::ir::function::{Edge, Function, Terminator};
use crate::ir::module::Global;
use crate::ir::op::{Builtin, Fences, GroupArith as G, GroupOp, IntCond, Op, Order, Scope};
use crate::ir::types::{Space, Type};
use crate::target::{subgroup, Target};

/// The most work-items of a work-group.
const MOST_ITEMS: u64 = 2048;
/// The most work-items of a work-group on processors.
const MOST_ITEMS_NATIVE: u64 = 4096;

/// Returns true if a kernel has operations that need sub-groups, and so a linear work-group.
pub fn uses(func: &Function) -> bool {
    let op = |op: Op| match op {
        Op::Group(..) => true,
        Op::Barrier { exec, .. } => exec == Scope::SubGroup,
        Op::Builtin(builtin) => builtin.is_of_sub_groups(),
        _ => false,
    };
    func.layout_insts().any(|&inst| op(func.insts[inst].op))
}

/// Returns the identity element of a group operation as bits of `ty`.
pub(super) fn identity(a: G, ty: Type) -> u64 {
    let sign = 1u64 << (ty.bits() - 1);
    let infinity = match ty {
        Type::F16 => 0x7c00,
        Type::F32 => 0x7f80_0000,
        _ => 0x7ff0_0000_0000_0000,
    };
    match a {
        G::IAdd | G::FAdd | G::Or | G::Xor | G::LogicalOr | G::LogicalXor | G::UMax => 0,
        G::IMul | G::LogicalAnd => 1,
        G::FMul => match ty {
            Type::F16 => 0x3c00,
            Type::F32 => 0x3f80_0000,
            _ => 0x3ff0_0000_0000_0000,
        },
        G::SMin => ty.mask() >> 1,
        G::UMin | G::And => ty.mask(),
        G::FMin => infinity,
        G::SMax => sign,
        G::FMax => infinity | sign,
    }
}

/// Applies operation `a` to two values.
pub(super) fn combine(r: &mut Rewriter, a: G, x: Value, y: Value) -> Value {
    r.same(a.operation(), [x, y])
}

/// Returns true if the target has reductions and scans of the type, or reductions of clusters.
pub(super) fn has_arithmetic(target: &Target, ty: Type, cluster: bool) -> bool {
    let needed = if cluster {
        subgroup::CLUSTERED
    } else {
        subgroup::ARITHMETIC
    };
    let plain = matches!(ty, Type::I32 | Type::F32) || target.subgroup_extended_types;
    target.subgroup_ops & needed != 0 && plain && ty != Type::Bool
}

/// The lanes that a reduction or scan includes, as seen from one of them.
#[derive(Clone, Copy)]
pub(super) enum Range {
    All,
    UpTo,
    Before,
    Cluster(u64),
}

struct Lower<'t> {
    target: &'t Target,
    /// The local memory for one 32-bit and one 64-bit value of each sub-group.
    scratch: [Option<GlobalId>; 2],
    next: usize,
}

impl Lower<'_> {
    fn size(&self) -> u64 {
        u64::from(self.target.subgroup_size)
    }

    fn lane(&self, r: &mut Rewriter) -> Value {
        r.op(Op::Builtin(Builtin::SubGroupLocalId), [], Type::I32)
    }

    /// Returns the value of another lane. `lane` is taken modulo the size of the sub-group.
    fn shuffle(&self, r: &mut Rewriter, x: Value, lane: Value) -> Value {
        let lane = match r.func.as_const(lane) {
            Some(bits) => r.konst(Type::I32, bits % self.size()),
            None => r.with_const(Op::And, lane, self.size() - 1),
        };
        self.through(r, x, |r, x| {
            r.op(
                Op::Group(GroupOp::Shuffle, Scope::SubGroup),
                [x, lane],
                r.func.ty(x),
            )
        })
    }

    /// Applies an operation that only moves 32-bit values between lanes to one of any type.
    fn through(
        &self,
        r: &mut Rewriter,
        x: Value,
        mut f: impl FnMut(&mut Rewriter, Value) -> Value,
    ) -> Value {
        let ty = r.func.ty(x);
        match ty {
            Type::I32 | Type::F32 => f(r, x),
            Type::Bool => {
                let wide = r.op(Op::ZExt, [x], Type::I32);
                let y = f(r, wide);
                r.icmp_const(IntCond::Ne, y, 0)
            }
            _ if self.target.subgroup_extended_types && !ty.is_ptr() => f(r, x),
            Type::I8 | Type::I16 => {
                let wide = r.op(Op::ZExt, [x], Type::I32);
                let y = f(r, wide);
                r.op(Op::Trunc, [y], ty)
            }
            Type::I64 => {
                let low = r.op(Op::Trunc, [x], Type::I32);
                let high = r.with_const(Op::LShr, x, 32);
                let high = r.op(Op::Trunc, [high], Type::I32);
                let (low, high) = (f(r, low), f(r, high));
                let (low, high) = (
                    r.op(Op::ZExt, [low], Type::I64),
                    r.op(Op::ZExt, [high], Type::I64),
                );
                let high = r.with_const(Op::Shl, high, 32);
                r.same(Op::Or, [low, high])
            }
            Type::Ptr(_) => {
                let bits = r.op(Op::PtrToInt, [x], Type::I64);
                let y = self.through(r, bits, f);
                r.op(Op::IntToPtr, [y], ty)
            }
            _ => {
                let int = ty.as_int().unwrap_or(Type::I64);
                let bits = r.op(Op::Bitcast, [x], int);
                let y = self.through(r, bits, f);
                r.op(Op::Bitcast, [y], ty)
            }
        }
    }

    /// Emits a reduction or scan over the active lanes of the sub-group.
    fn arith(&self, r: &mut Rewriter, a: G, x: Value, range: Range) -> Value {
        let ty = r.func.ty(x);
        if ty == Type::Bool {
            // As integers of one bit.
            let wide = r.op(Op::ZExt, [x], Type::I32);
            let a = match a {
                G::LogicalAnd | G::And => G::And,
                G::LogicalOr | G::Or => G::Or,
                _ => G::Xor,
            };
            let y = self.arith(r, a, wide, range);
            return r.icmp_const(IntCond::Ne, y, 0);
        }
        let (op, cluster) = match range {
            Range::All => (GroupOp::Reduce(a), None),
            Range::UpTo => (GroupOp::InclusiveScan(a), None),
            Range::Before => (GroupOp::ExclusiveScan(a), None),
            Range::Cluster(n) if n >= self.size() => return self.arith(r, a, x, Range::All),
            Range::Cluster(n) => (GroupOp::ClusteredReduce(a), Some(n)),
        };
        if has_arithmetic(self.target, ty, cluster.is_some()) {
            let mut args = vec![x];
            args.extend(cluster.map(|n| r.konst(Type::I32, n)));
            return r.op(Op::Group(op, Scope::SubGroup), args, ty);
        }
        self.by_lanes(r, a, x, range)
    }

    /// Emits a reduction or scan lane by lane, without the target's own.
    fn by_lanes(&self, r: &mut Rewriter, a: G, x: Value, range: Range) -> Value {
        let ty = r.func.ty(x);
        let yes = r.konst(Type::Bool, 1);
        let words = r.many(
            Op::Group(GroupOp::Ballot, Scope::SubGroup),
            [yes],
            &[Type::I32; 4],
        );
        let own = self.lane(r);
        let mut sum = r.konst(ty, identity(a, ty));
        for lane in 0..self.size() {
            let number = r.konst(Type::I32, lane);
            let other = self.shuffle(r, x, number);
            let Some(&word) = words.get(lane as usize / 32) else {
                break;
            };
            let bit = r.with_const(Op::And, word, 1 << (lane % 32));
            let mut counts = r.icmp_const(IntCond::Ne, bit, 0);
            let near = match range {
                Range::All => None,
                Range::UpTo => Some(r.icmp(IntCond::Ule, number, own)),
                Range::Before => Some(r.icmp(IntCond::Ult, number, own)),
                Range::Cluster(n) => {
                    let first = r.with_const(Op::And, own, !(n - 1));
                    Some(r.icmp_const(IntCond::Eq, first, lane & !(n - 1)))
                }
            };
            if let Some(near) = near {
                counts = r.same(Op::And, [counts, near]);
            }
            let next = combine(r, a, sum, other);
            sum = r.select(counts, next, sum);
        }
        sum
    }

    fn barrier(&self, r: &mut Rewriter) {
        let op = Op::Barrier {
            exec: Scope::WorkGroup,
            mem: Scope::WorkGroup,
            order: Order::AcqRel,
            fences: Fences {
                global: false,
                local: true,
                image: false,
            },
        };
        r.inst(op, [], &[]);
    }

    /// Returns the type in which values of a type are stored in local memory, and the variable with
    /// room for one of each sub-group.
    fn memory(&mut self, r: &mut Rewriter, ty: Type) -> (Type, Value) {
        let wide = ty.bits() == 64;
        let id = *self.scratch[usize::from(wide)].get_or_insert_with(|| {
            self.next += 1;
            crate::ir::entity::Entity::new(self.next - 1)
        });
        let pointer = r.op(Op::GlobalAddr(id), [], Type::Ptr(Space::Local));
        (if wide { Type::I64 } else { Type::I32 }, pointer)
    }

    fn slot(&self, r: &mut Rewriter, memory: Type, pointer: Value, index: Value) -> Value {
        let index = r.op(Op::ZExt, [index], Type::I64);
        let offset = r.with_const(Op::IMul, index, memory.size().into());
        r.same(Op::PtrAdd, [pointer, offset])
    }

    fn store(&self, r: &mut Rewriter, memory: Type, at: Value, x: Value) {
        let ty = r.func.ty(x);
        let mut x = match ty.as_int() {
            _ if ty.is_ptr() => r.op(Op::PtrToInt, [x], Type::I64),
            Some(int) if int != ty => r.op(Op::Bitcast, [x], int),
            _ => x,
        };
        if r.func.ty(x) != memory {
            x = r.op(Op::ZExt, [x], memory);
        }
        let align = memory.size();
        let volatile = false;
        r.inst(Op::Store { align, volatile }, [at, x], &[]);
    }

    fn load(&self, r: &mut Rewriter, memory: Type, at: Value, ty: Type) -> Value {
        let align = memory.size();
        let volatile = false;
        let mut x = r.op(Op::Load { align, volatile }, [at], memory);
        if ty == Type::Bool {
            return r.icmp_const(IntCond::Ne, x, 0);
        }
        if ty.is_ptr() {
            return r.op(Op::IntToPtr, [x], ty);
        }
        let int = ty.as_int().unwrap_or(memory);
        if int != memory {
            x = r.op(Op::Trunc, [x], int);
        }
        if int != ty {
            x = r.op(Op::Bitcast, [x], ty);
        }
        x
    }

    /// Emits `then` for the work-items with a true condition.
    fn when(&self, r: &mut Rewriter, cond: Value, then: impl FnOnce(&mut Rewriter)) {
        let (inner, after) = (r.new_block(&[]), r.new_block(&[]));
        r.end_block(
            Terminator::Branch(cond, Edge::new(inner), Edge::new(after)),
            inner,
        );
        then(r);
        r.jump(after, &[], after);
    }

    /// Stores a value of each sub-group to local memory, where all work-items of the group can read
    /// it afterwards.
    fn leave(&mut self, r: &mut Rewriter, part: Value) -> (Type, Value) {
        let (memory, pointer) = self.memory(r, r.func.ty(part));
        // The operation before may still be reading.
        self.barrier(r);
        let lane = self.lane(r);
        let first = r.icmp_const(IntCond::Eq, lane, 0);
        let id = r.op(Op::Builtin(Builtin::SubGroupId), [], Type::I32);
        self.when(r, first, |r| {
            let at = self.slot(r, memory, pointer, id);
            self.store(r, memory, at, part);
        });
        self.barrier(r);
        (memory, pointer)
    }

    /// Emits the sum of the values that the sub-groups below `end` have stored.
    fn sum(
        &self,
        r: &mut Rewriter,
        a: G,
        ty: Type,
        (memory, pointer): (Type, Value),
        end: Value,
    ) -> Value {
        let head = r.new_block(&[Type::I32, ty]);
        let (inner, after) = (r.new_block(&[]), r.new_block(&[]));
        let zero = r.konst(Type::I32, 0);
        let start = r.konst(ty, identity(a, ty));
        r.jump(head, &[zero, start], head);
        let params = r.params(head);
        let (index, sum) = (params[0], params[1]);
        let more = r.icmp(IntCond::Ult, index, end);
        r.end_block(
            Terminator::Branch(more, Edge::new(inner), Edge::new(after)),
            inner,
        );
        let at = self.slot(r, memory, pointer, index);
        let part = self.load(r, memory, at, ty);
        let next = combine(r, a, sum, part);
        let index = r.with_const(Op::IAdd, index, 1);
        r.jump(head, &[index, next], after);
        sum
    }

    fn work_group(&mut self, r: &mut Rewriter, a: G, x: Value, range: Range) -> Value {
        let ty = r.func.ty(x);
        if ty == Type::Bool {
            let wide = r.op(Op::ZExt, [x], Type::I32);
            let a = match a {
                G::LogicalAnd | G::And => G::And,
                G::LogicalOr | G::Or => G::Or,
                _ => G::Xor,
            };
            let y = self.work_group(r, a, wide, range);
            return r.icmp_const(IntCond::Ne, y, 0);
        }
        let part = self.arith(r, a, x, Range::All);
        let near = match range {
            Range::UpTo | Range::Before => Some(self.arith(r, a, x, range)),
            _ => None,
        };
        let memory = self.leave(r, part);
        match near {
            None => {
                let count = r.op(Op::Builtin(Builtin::NumSubGroups), [], Type::I32);
                self.sum(r, a, ty, memory, count)
            }
            Some(near) => {
                let own = r.op(Op::Builtin(Builtin::SubGroupId), [], Type::I32);
                let before = self.sum(r, a, ty, memory, own);
                combine(r, a, before, near)
            }
        }
    }

    /// Emits a broadcast of the value of the work-item with these local ids.
    fn broadcast(&mut self, r: &mut Rewriter, x: Value, ids: &[Value]) -> Value {
        let ty = r.func.ty(x);
        let mut here: Option<Value> = None;
        for (dim, &id) in ids.iter().enumerate().take(3) {
            let own = r.op(Op::Builtin(Builtin::LocalId(dim as u8)), [], Type::I64);
            let same = r.icmp(IntCond::Eq, own, id);
            here = Some(match here {
                Some(here) => r.same(Op::And, [here, same]),
                None => same,
            });
        }
        let Some(here) = here else { return x };
        let (memory, pointer) = self.memory(r, ty);
        self.barrier(r);
        self.when(r, here, |r| self.store(r, memory, pointer, x));
        self.barrier(r);
        self.load(r, memory, pointer, ty)
    }

    fn group(
        &mut self,
        r: &mut Rewriter,
        op: GroupOp,
        scope: Scope,
        args: &[Value],
    ) -> Result<Option<Value>> {
        let few = || LowerError::internal("too few operands");
        let at = |i: usize| args.get(i).copied().ok_or_else(few);
        if scope == Scope::WorkGroup {
            let x = at(0)?;
            let (a, range) = match op {
                GroupOp::All => (G::LogicalAnd, Range::All),
                GroupOp::Any => (G::LogicalOr, Range::All),
                GroupOp::Reduce(a) => (a, Range::All),
                GroupOp::InclusiveScan(a) => (a, Range::UpTo),
                GroupOp::ExclusiveScan(a) => (a, Range::Before),
                GroupOp::Broadcast => {
                    return Ok(Some(self.broadcast(
                        r,
                        x,
                        args.get(1..).unwrap_or_default(),
                    )))
                }
                _ => return Err(LowerError::unsupported(format!("{op:?} of a work-group"))),
            };
            return Ok(Some(self.work_group(r, a, x, range)));
        }
        Ok(Some(match op {
            GroupOp::Elect | GroupOp::All | GroupOp::Any | GroupOp::Ballot => return Ok(None),
            GroupOp::AllEqual => {
                // All have the value of one of them.
                let x = at(0)?;
                let first = self.first(r, x);
                let same = match r.func.ty(x) {
                    ty if ty.is_float() => r.fcmp(crate::ir::op::FloatCond::Oeq, x, first),
                    _ => r.icmp(IntCond::Eq, x, first),
                };
                r.op(Op::Group(GroupOp::All, Scope::SubGroup), [same], Type::Bool)
            }
            GroupOp::Broadcast | GroupOp::Shuffle => self.shuffle(r, at(0)?, at(1)?),
            GroupOp::ShuffleXor | GroupOp::ShuffleUp | GroupOp::ShuffleDown | GroupOp::Rotate => {
                let own = self.lane(r);
                let op = match op {
                    GroupOp::ShuffleXor => Op::Xor,
                    GroupOp::ShuffleUp => Op::ISub,
                    _ => Op::IAdd,
                };
                let mut lane = r.same(op, [own, at(1)?]);
                let cluster = args.get(2).and_then(|&v| r.func.as_const(v));
                if let Some(n) = cluster.filter(|n| n.is_power_of_two() && *n < self.size()) {
                    let first = r.with_const(Op::And, own, !(n - 1));
                    let rest = r.with_const(Op::And, lane, n - 1);
                    lane = r.same(Op::Or, [first, rest]);
                }
                self.shuffle(r, at(0)?, lane)
            }
            GroupOp::Reduce(a) => self.arith(r, a, at(0)?, Range::All),
            GroupOp::InclusiveScan(a) => self.arith(r, a, at(0)?, Range::UpTo),
            GroupOp::ExclusiveScan(a) => self.arith(r, a, at(0)?, Range::Before),
            GroupOp::ClusteredReduce(a) => {
                let size = r.func.as_const(at(1)?).unwrap_or(0);
                if !size.is_power_of_two() {
                    return Err(LowerError::invalid(format!("the cluster size {size}")));
                }
                self.arith(r, a, at(0)?, Range::Cluster(size))
            }
        }))
    }

    /// Returns the value of the first active lane.
    fn first(&self, r: &mut Rewriter, x: Value) -> Value {
        let yes = r.konst(Type::Bool, 1);
        let words = r.many(
            Op::Group(GroupOp::Ballot, Scope::SubGroup),
            [yes],
            &[Type::I32; 4],
        );
        let mut lane = r.konst(Type::I32, 0);
        for (i, &word) in words.iter().enumerate().rev() {
            let bit = r.same(Op::Ctz, [word]);
            let bit = r.with_const(Op::IAdd, bit, i as u64 * 32);
            let some = r.icmp_const(IntCond::Ne, word, 0);
            lane = r.select(some, bit, lane);
        }
        self.shuffle(r, x, lane)
    }
}

/// Runs the pass. Adds the local memory that it needs to the module's variables.
pub fn run(
    func: &mut Function,
    globals: &mut PrimaryMap<GlobalId, Global>,
    target: &Target,
) -> Result<()> {
    let size = target.subgroup_size;
    if !target.has_subgroups() {
        return Err(LowerError::unsupported(
            "sub-groups and work-group collective functions",
        ));
    }
    let mut lower = Lower {
        target,
        scratch: [None; 2],
        next: globals.len(),
    };
    rewrite(func, |r, inst| {
        let Op::Group(op, scope) = r.func.insts[inst].op else {
            return Ok(InstEdit::Keep);
        };
        let args: Vec<Value> = r.data(inst).args.iter().map(|&v| r.resolve(v)).collect();
        match lower.group(r, op, scope, &args)? {
            Some(value) => Ok(r.replace_result(inst, value)),
            None => Ok(InstEdit::Keep),
        }
    })?;
    let mut made: Vec<(GlobalId, u64)> = lower
        .scratch
        .iter()
        .zip([4, 8])
        .filter_map(|(id, bytes)| id.map(|id| (id, bytes)))
        .collect();
    made.sort_unstable();
    let most = if target.native {
        MOST_ITEMS_NATIVE
    } else {
        MOST_ITEMS
    };
    for (_, bytes) in made {
        globals.push(Global {
            space: Some(Space::Local),
            size: most.div_ceil(u64::from(size)) * bytes,
            align: bytes as u32,
            ..Global::default()
        });
    }
    Ok(())
}
