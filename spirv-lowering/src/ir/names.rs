//! The spelling of operations and their immediates in textual KIR, shared by `print` and `parse`.
//!
//! An operation is one word: its mnemonic and its immediates joined by dots (`atomic_rmw.add.device.relaxed`). Two
//! have an immediate of their own behind the word: `const 4` and `global_addr @1`.

use super::entity::{Entity, FuncId, GlobalId, Var};
use super::op::{
    Builtin, Fences, FloatCond, GroupArith, GroupOp, HwVar, ImageProperty, ImageSlot, ImageType,
    IntCond, NativeFn, Op, Order, RmwOp, Rounding, Scope, Texel,
};
use super::types::{Space, Type};
use crate::interface::{AccessQualifier, ImageDim, Implicit};

/// A small enumeration with a spelling for each value.
pub trait Name: Copy + PartialEq + 'static {
    /// All values with their spelling.
    const NAMES: &'static [(Self, &'static str)];
    /// Returns the spelling.
    fn name(self) -> &'static str {
        Self::NAMES
            .iter()
            .find(|(v, _)| *v == self)
            .map_or("?", |(_, n)| n)
    }
    /// Returns the value of a spelling.
    fn from_name(name: &str) -> Option<Self> {
        Self::NAMES
            .iter()
            .find(|(_, n)| *n == name)
            .map(|(v, _)| *v)
    }
}

macro_rules! names {
    ($ty:ident { $($variant:ident $(($arg:expr))? $name:literal),* $(,)? }) => {
        impl Name for $ty {
            const NAMES: &'static [(Self, &'static str)] = &[$(($ty::$variant $(($arg))?, $name)),*];
        }
    };
}

names!(IntCond {
    Eq "eq", Ne "ne", Slt "slt", Sle "sle", Sgt "sgt", Sge "sge", Ult "ult", Ule "ule", Ugt "ugt", Uge "uge",
});
names!(FloatCond {
    Oeq "oeq", One "one", Olt "olt", Ole "ole", Ogt "ogt", Oge "oge", Ord "ord", Ueq "ueq", Une "une", Ult "ult",
    Ule "ule", Ugt "ugt", Uge "uge", Uno "uno",
});
names!(Rounding { Rte "rte", Rtz "rtz", Rtp "rtp", Rtn "rtn" });
names!(RmwOp {
    Xchg "xchg", Add "add", Sub "sub", And "and", Or "or", Xor "xor", SMin "smin", SMax "smax", UMin "umin",
    UMax "umax", FAdd "fadd", FMin "fmin", FMax "fmax",
});
names!(Order { Relaxed "relaxed", Acquire "acquire", Release "release", AcqRel "acq_rel", SeqCst "seq_cst" });
names!(Scope {
    AllDevices "all_devices", Device "device", WorkGroup "work_group", SubGroup "sub_group", WorkItem "work_item",
});
names!(Space { Global "global", Constant "constant", Local "local", Private "private", Generic "generic" });
names!(NativeFn {
    Sin "sin", Cos "cos", Exp2 "exp2", Log2 "log2", Rsqrt "rsqrt", Sqrt "sqrt", Fma "fma", Pow "pow",
});
names!(GroupArith {
    IAdd "iadd", FAdd "fadd", IMul "imul", FMul "fmul", SMin "smin", UMin "umin", FMin "fmin", SMax "smax",
    UMax "umax", FMax "fmax", And "and", Or "or", Xor "xor", LogicalAnd "land", LogicalOr "lor", LogicalXor "lxor",
});
names!(Builtin {
    GlobalId(0) "global_id.0", GlobalId(1) "global_id.1", GlobalId(2) "global_id.2",
    GlobalSize(0) "global_size.0", GlobalSize(1) "global_size.1", GlobalSize(2) "global_size.2",
    GlobalOffset(0) "global_offset.0", GlobalOffset(1) "global_offset.1", GlobalOffset(2) "global_offset.2",
    LocalId(0) "local_id.0", LocalId(1) "local_id.1", LocalId(2) "local_id.2",
    LocalSize(0) "local_size.0", LocalSize(1) "local_size.1", LocalSize(2) "local_size.2",
    EnqueuedLocalSize(0) "enqueued_local_size.0", EnqueuedLocalSize(1) "enqueued_local_size.1",
    EnqueuedLocalSize(2) "enqueued_local_size.2",
    GroupId(0) "group_id.0", GroupId(1) "group_id.1", GroupId(2) "group_id.2",
    NumGroups(0) "num_groups.0", NumGroups(1) "num_groups.1", NumGroups(2) "num_groups.2",
    WorkDim "work_dim", GlobalLinearId "global_linear_id", LocalLinearId "local_linear_id",
    SubGroupSize "sub_group_size", SubGroupMaxSize "sub_group_max_size", NumSubGroups "num_sub_groups",
    NumEnqueuedSubGroups "num_enqueued_sub_groups", SubGroupId "sub_group_id", SubGroupLocalId "sub_group_local_id",
});
names!(HwVar {
    LocalInvocationId(0) "local_invocation_id.0", LocalInvocationId(1) "local_invocation_id.1",
    LocalInvocationId(2) "local_invocation_id.2",
    WorkgroupId(0) "workgroup_id.0", WorkgroupId(1) "workgroup_id.1", WorkgroupId(2) "workgroup_id.2",
    NumWorkgroups(0) "num_workgroups.0", NumWorkgroups(1) "num_workgroups.1", NumWorkgroups(2) "num_workgroups.2",
    WorkgroupSize(0) "workgroup_size.0", WorkgroupSize(1) "workgroup_size.1", WorkgroupSize(2) "workgroup_size.2",
    LocalInvocationIndex "local_invocation_index", SubgroupSize "subgroup_size",
    SubgroupInvocationId "subgroup_invocation_id", SubgroupId "subgroup_id", NumSubgroups "num_subgroups",
});
names!(Implicit {
    ArgBuffer "arg_buffer", ProgramGlobals "program_globals", PrintfBuffer "printf_buffer",
    EnqueueState "enqueue_state",
    GlobalOffset "global_offset", GlobalSize "global_size", NumGroups "num_groups",
    EnqueuedLocalSize "enqueued_local_size", GroupOffset "group_offset", GlobalBase "global_base", GlobalEnd "global_end",
    WorkDim "work_dim",
    GlobalOffsetHigh "global_offset_high", GlobalSizeHigh "global_size_high", GroupOffsetHigh "group_offset_high",
});

names!(Texel {
    Float "float", Signed "int", Unsigned "uint", Raw "raw",
});
names!(ImageProperty {
    Width "width", Height "height", Depth "depth", ArraySize "array_size", DataType "data_type", Order "order",
    MipLevels "mip_levels", Flags "flags",
});

impl Name for Type {
    const NAMES: &'static [(Self, &'static str)] = &[
        (Type::Bool, "bool"),
        (Type::I8, "i8"),
        (Type::I16, "i16"),
        (Type::I32, "i32"),
        (Type::I64, "i64"),
        (Type::F16, "f16"),
        (Type::F32, "f32"),
        (Type::F64, "f64"),
        (Type::Ptr(Space::Global), "ptr.global"),
        (Type::Ptr(Space::Constant), "ptr.constant"),
        (Type::Ptr(Space::Local), "ptr.local"),
        (Type::Ptr(Space::Private), "ptr.private"),
        (Type::Ptr(Space::Generic), "ptr.generic"),
        (Type::Handle, "handle"),
    ];
}

/// Operations without immediates.
impl Name for Op {
    const NAMES: &'static [(Self, &'static str)] = &[
        (Op::Undef, "undef"),
        (Op::IAdd, "iadd"),
        (Op::ISub, "isub"),
        (Op::IMul, "imul"),
        (Op::SDiv, "sdiv"),
        (Op::UDiv, "udiv"),
        (Op::SRem, "srem"),
        (Op::URem, "urem"),
        (Op::SMulHi, "smul_hi"),
        (Op::UMulHi, "umul_hi"),
        (Op::And, "and"),
        (Op::Or, "or"),
        (Op::Xor, "xor"),
        (Op::Shl, "shl"),
        (Op::LShr, "lshr"),
        (Op::AShr, "ashr"),
        (Op::SMin, "smin"),
        (Op::SMax, "smax"),
        (Op::UMin, "umin"),
        (Op::UMax, "umax"),
        (Op::INeg, "ineg"),
        (Op::Not, "not"),
        (Op::Clz, "clz"),
        (Op::Ctz, "ctz"),
        (Op::Popcount, "popcount"),
        (Op::BitReverse, "bit_reverse"),
        (Op::SDot4, "sdot4"),
        (Op::UDot4, "udot4"),
        (Op::SUDot4, "sudot4"),
        (Op::FAdd, "fadd"),
        (Op::FSub, "fsub"),
        (Op::FMul, "fmul"),
        (Op::FDiv, "fdiv"),
        (Op::FRem, "frem"),
        (Op::FNeg, "fneg"),
        (Op::FAbs, "fabs"),
        (Op::FCopySign, "fcopysign"),
        (Op::FMin, "fmin"),
        (Op::FMax, "fmax"),
        (Op::Fma, "fma"),
        (Op::FSqrt, "fsqrt"),
        (Op::FFloor, "ffloor"),
        (Op::FCeil, "fceil"),
        (Op::FTrunc, "ftrunc"),
        (Op::FRoundEven, "fround_even"),
        (Op::Select, "select"),
        (Op::ZExt, "zext"),
        (Op::SExt, "sext"),
        (Op::Trunc, "trunc"),
        (Op::Bitcast, "bitcast"),
        (Op::PtrToInt, "ptr_to_int"),
        (Op::IntToPtr, "int_to_ptr"),
        (Op::Join, "join"),
        (Op::Low, "low"),
        (Op::High, "high"),
        (Op::UnpackHalf, "unpack_half"),
        (Op::PackHalf, "pack_half"),
        (Op::SpaceCast, "space_cast"),
        (Op::PtrAdd, "ptr_add"),
        (Op::SamplerWord, "sampler_word"),
        (Op::ImageNumber, "image_number"),
        (Op::SamplerAt, "sampler_at"),
        (Op::ImageFilter, "image_filter"),
    ];
}

impl Name for GroupOp {
    const NAMES: &'static [(Self, &'static str)] = &[
        (GroupOp::All, "all"),
        (GroupOp::Any, "any"),
        (GroupOp::AllEqual, "all_equal"),
        (GroupOp::Elect, "elect"),
        (GroupOp::Broadcast, "broadcast"),
        (GroupOp::Ballot, "ballot"),
        (GroupOp::Shuffle, "shuffle"),
        (GroupOp::ShuffleXor, "shuffle_xor"),
        (GroupOp::ShuffleUp, "shuffle_up"),
        (GroupOp::ShuffleDown, "shuffle_down"),
        (GroupOp::Rotate, "rotate"),
    ];
}

fn group_op_text(op: GroupOp) -> String {
    match op {
        GroupOp::Reduce(a) => format!("reduce.{}", a.name()),
        GroupOp::InclusiveScan(a) => format!("inclusive_scan.{}", a.name()),
        GroupOp::ExclusiveScan(a) => format!("exclusive_scan.{}", a.name()),
        GroupOp::ClusteredReduce(a) => format!("clustered_reduce.{}", a.name()),
        other => other.name().to_owned(),
    }
}

fn parse_group_op(text: &str) -> Option<GroupOp> {
    if let Some(op) = GroupOp::from_name(text) {
        return Some(op);
    }
    let (kind, arith) = text.split_once('.')?;
    let arith = GroupArith::from_name(arith)?;
    Some(match kind {
        "reduce" => GroupOp::Reduce(arith),
        "inclusive_scan" => GroupOp::InclusiveScan(arith),
        "exclusive_scan" => GroupOp::ExclusiveScan(arith),
        "clustered_reduce" => GroupOp::ClusteredReduce(arith),
        _ => return None,
    })
}

fn fences_text(f: Fences) -> String {
    let mut s = String::new();
    for (set, letter) in [(f.global, 'g'), (f.local, 'l'), (f.image, 'i')] {
        if set {
            s.push(letter);
        }
    }
    if s.is_empty() {
        s.push('0');
    }
    s
}

fn parse_fences(text: &str) -> Option<Fences> {
    if text.is_empty() || text != "0" && !text.chars().all(|c| "gli".contains(c)) {
        return None;
    }
    let has = |c| text.contains(c);
    Some(Fences {
        global: has('g'),
        local: has('l'),
        image: has('i'),
    })
}

fn slot_text(s: ImageSlot) -> String {
    format!("{}.{}.{}", s.binding, s.dim.name(), s.texel.name())
}

/// Returns the word of an operation.
pub fn op_text(op: Op) -> String {
    let sync = |scope: Scope, order: Order| format!("{}.{}", scope.name(), order.name());
    let volatile = |v: bool| if v { ".volatile" } else { "" };
    let sat = |v: bool| if v { ".sat" } else { "" };
    match op {
        Op::Const(_) => "const".into(),
        Op::GlobalAddr(_) => "global_addr".into(),
        Op::FNative(f) => format!("native.{}", f.name()),
        Op::ICmp(c) => format!("icmp.{}", c.name()),
        Op::FCmp(c) => format!("fcmp.{}", c.name()),
        Op::FConv(r) => format!("fconv.{}", r.name()),
        Op::SToF(r) => format!("stof.{}", r.name()),
        Op::UToF(r) => format!("utof.{}", r.name()),
        Op::FToS { rounding, sat: s } => format!("ftos.{}{}", rounding.name(), sat(s)),
        Op::FToU { rounding, sat: s } => format!("ftou.{}{}", rounding.name(), sat(s)),
        Op::PtrIsIn(s) => format!("ptr_is_in.{}", s.name()),
        Op::Alloca { size, align } => format!("alloca.size{size}.align{align}"),
        Op::Load { align, volatile: v } => format!("load.align{align}{}", volatile(v)),
        Op::Store { align, volatile: v } => format!("store.align{align}{}", volatile(v)),
        Op::MemCopy { size, align } => format!("mem_copy.size{size}.align{align}"),
        Op::AtomicLoad { scope, order } => format!("atomic_load.{}", sync(scope, order)),
        Op::AtomicStore { scope, order } => format!("atomic_store.{}", sync(scope, order)),
        Op::AtomicRmw { op, scope, order } => {
            format!("atomic_rmw.{}.{}", op.name(), sync(scope, order))
        }
        Op::AtomicCmpXchg { scope, order } => format!("atomic_cmp_xchg.{}", sync(scope, order)),
        Op::VarLoad(v) => format!("var_load.{v}"),
        Op::VarStore(v) => format!("var_store.{v}"),
        Op::VarRmw {
            var,
            op,
            scope,
            order,
        } => format!("var_rmw.{var}.{}.{}", op.name(), sync(scope, order)),
        Op::VarCmpXchg { var, scope, order } => {
            format!("var_cmp_xchg.{var}.{}", sync(scope, order))
        }
        Op::VarAtomicLoad { var, scope, order } => {
            format!("var_atomic_load.{var}.{}", sync(scope, order))
        }
        Op::VarAtomicStore { var, scope, order } => {
            format!("var_atomic_store.{var}.{}", sync(scope, order))
        }
        Op::Barrier {
            exec,
            mem,
            order,
            fences,
        } => {
            format!(
                "barrier.{}.{}.{}",
                exec.name(),
                sync(mem, order),
                fences_text(fences)
            )
        }
        Op::Fence { mem, order, fences } => {
            format!("fence.{}.{}", sync(mem, order), fences_text(fences))
        }
        Op::Clock(scope) => format!("clock.{}", scope.name()),
        Op::Group(op, scope) => format!("group.{}.{}", scope.name(), group_op_text(op)),
        Op::Builtin(b) => format!("builtin.{}", b.name()),
        Op::Hw(h) => format!("hw.{}", h.name()),
        Op::Implicit(i, component) => format!("implicit.{}.{component}", i.name()),
        Op::ArgLoad(offset) => format!("arg_load.{offset}"),
        Op::Own { offset, size } => format!("own.{offset}.{size}"),
        Op::SpecSize(id) => format!("spec_size.{id}"),
        Op::ImageRead(t) => format!("image_read.{}", t.name()),
        Op::ImageWrite(t) => format!("image_write.{}", t.name()),
        Op::ImageQuery(p) => format!("image_query.{}", p.name()),
        Op::ImageAt(ImageType { dim, depth, access }) => {
            let depth = if depth { ".depth" } else { "" };
            format!("image_at.{}.{}{depth}", dim.name(), access.name())
        }
        Op::TexelFetch(s) => format!("texel_fetch.{}", slot_text(s)),
        Op::TexelFilter { image, sampler } => {
            format!("texel_filter.{}.{sampler}", slot_text(image))
        }
        Op::TexelLoad(s) => format!("texel_load.{}", slot_text(s)),
        Op::TexelStore(s) => format!("texel_store.{}", slot_text(s)),
        Op::Call(f) => format!("call.{f}"),
        Op::Printf(site) => format!("printf.{site}"),
        simple => simple.name().to_owned(),
    }
}

/// Parses the word of an operation; `const` and `global_addr` get a zero immediate.
pub(crate) fn parse_op(text: &str) -> Option<Op> {
    let (head, rest) = text.split_once('.').unwrap_or((text, ""));
    if rest.is_empty() {
        return match head {
            "const" => Some(Op::Const(0)),
            "global_addr" => Some(Op::GlobalAddr(GlobalId::new(0))),
            _ => Op::from_name(head),
        };
    }
    let parts: Vec<&str> = rest.split('.').collect();
    let number = |i: usize, prefix: &str| parts.get(i)?.strip_prefix(prefix)?.parse::<u32>().ok();
    let scope = |i: usize| Scope::from_name(parts.get(i)?);
    let order = |i: usize| Order::from_name(parts.get(i)?);
    let rounding = || Rounding::from_name(parts.first()?);
    let rmw = |i: usize| RmwOp::from_name(parts.get(i)?);
    let var = || number(0, "var").map(|n| Var::new(n as usize));
    let flag = |i: usize, word: &str| match parts.get(i) {
        None => Some(false),
        Some(p) if *p == word => Some(true),
        Some(_) => None,
    };
    let arity = |n: usize| (parts.len() == n).then_some(());
    let slot = || match parts.as_slice() {
        [binding, dim, texel, ..] => Some(ImageSlot {
            binding: binding.parse().ok()?,
            dim: ImageDim::from_name(dim)?,
            texel: Texel::from_name(texel)?,
        }),
        _ => None,
    };
    Some(match head {
        "native" => Op::FNative(NativeFn::from_name(rest)?),
        "icmp" => Op::ICmp(IntCond::from_name(rest)?),
        "fcmp" => Op::FCmp(FloatCond::from_name(rest)?),
        "fconv" => Op::FConv(Rounding::from_name(rest)?),
        "stof" => Op::SToF(Rounding::from_name(rest)?),
        "utof" => Op::UToF(Rounding::from_name(rest)?),
        "ftos" => Op::FToS {
            rounding: rounding()?,
            sat: flag(1, "sat")?,
        },
        "ftou" => Op::FToU {
            rounding: rounding()?,
            sat: flag(1, "sat")?,
        },
        "ptr_is_in" => Op::PtrIsIn(Space::from_name(rest)?),
        "alloca" => {
            arity(2)?;
            Op::Alloca {
                size: number(0, "size")?,
                align: number(1, "align")?,
            }
        }
        "load" => Op::Load {
            align: number(0, "align")?,
            volatile: flag(1, "volatile")?,
        },
        "store" => Op::Store {
            align: number(0, "align")?,
            volatile: flag(1, "volatile")?,
        },
        "mem_copy" => {
            arity(2)?;
            let size = parts.first()?.strip_prefix("size")?.parse().ok()?;
            Op::MemCopy {
                size,
                align: number(1, "align")?,
            }
        }
        "atomic_load" => Op::AtomicLoad {
            scope: scope(0)?,
            order: order(1)?,
        },
        "atomic_store" => Op::AtomicStore {
            scope: scope(0)?,
            order: order(1)?,
        },
        "atomic_rmw" => Op::AtomicRmw {
            op: rmw(0)?,
            scope: scope(1)?,
            order: order(2)?,
        },
        "atomic_cmp_xchg" => Op::AtomicCmpXchg {
            scope: scope(0)?,
            order: order(1)?,
        },
        "var_load" => Op::VarLoad(var()?),
        "var_store" => Op::VarStore(var()?),
        "var_rmw" => Op::VarRmw {
            var: var()?,
            op: rmw(1)?,
            scope: scope(2)?,
            order: order(3)?,
        },
        "var_cmp_xchg" => Op::VarCmpXchg {
            var: var()?,
            scope: scope(1)?,
            order: order(2)?,
        },
        "var_atomic_load" => Op::VarAtomicLoad {
            var: var()?,
            scope: scope(1)?,
            order: order(2)?,
        },
        "var_atomic_store" => Op::VarAtomicStore {
            var: var()?,
            scope: scope(1)?,
            order: order(2)?,
        },
        "barrier" => {
            arity(4)?;
            Op::Barrier {
                exec: scope(0)?,
                mem: scope(1)?,
                order: order(2)?,
                fences: parse_fences(parts.get(3)?)?,
            }
        }
        "fence" => {
            arity(3)?;
            Op::Fence {
                mem: scope(0)?,
                order: order(1)?,
                fences: parse_fences(parts.get(2)?)?,
            }
        }
        "group" => {
            let (scope, op) = rest.split_once('.')?;
            Op::Group(parse_group_op(op)?, Scope::from_name(scope)?)
        }
        "clock" => Op::Clock(Scope::from_name(rest)?),
        "builtin" => Op::Builtin(Builtin::from_name(rest)?),
        "hw" => Op::Hw(HwVar::from_name(rest)?),
        "implicit" => {
            arity(2)?;
            Op::Implicit(
                Implicit::from_name(parts.first()?)?,
                parts.get(1)?.parse().ok()?,
            )
        }
        "arg_load" => Op::ArgLoad(rest.parse().ok()?),
        "own" => {
            arity(2)?;
            Op::Own {
                offset: parts.first()?.parse().ok()?,
                size: parts.get(1)?.parse().ok()?,
            }
        }
        "spec_size" => Op::SpecSize(rest.parse().ok()?),
        "image_read" => Op::ImageRead(Texel::from_name(rest)?),
        "image_write" => Op::ImageWrite(Texel::from_name(rest)?),
        "image_query" => Op::ImageQuery(ImageProperty::from_name(rest)?),
        "image_at" => Op::ImageAt(ImageType {
            dim: ImageDim::from_name(parts.first()?)?,
            access: AccessQualifier::from_name(parts.get(1)?)?,
            depth: flag(2, "depth")?,
        }),
        "texel_filter" => {
            arity(4)?;
            Op::TexelFilter {
                image: slot()?,
                sampler: parts.get(3)?.parse().ok()?,
            }
        }
        "texel_fetch" | "texel_load" | "texel_store" => {
            arity(3)?;
            match head {
                "texel_fetch" => Op::TexelFetch(slot()?),
                "texel_load" => Op::TexelLoad(slot()?),
                _ => Op::TexelStore(slot()?),
            }
        }
        "call" => Op::Call(FuncId::new(
            rest.strip_prefix("fn")?.parse::<u32>().ok()? as usize
        )),
        "printf" => Op::Printf(rest.parse().ok()?),
        _ => return None,
    })
}
