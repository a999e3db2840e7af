//! Translates calls of OpenCL C built-ins that compilers leave as calls of undefined functions with
//! mangled names: conversions, atomics, fences, address-space queries, built-in variables. The
//! mangled name holds what SPIR-V types lose (above all which integers are signed), so they are
//! translated here and not in a library.

use super::body::{bad, Body};
use super::builtin::out_of_range;
use super::types::{Kind, TyId};
use super::words::Instruction;
use crate::error::Result;
use crate::ir::entity::Value;
use crate::ir::function::Values;
use crate::ir::op::{Fences, GroupArith, GroupOp, IntCond, Op, Order, RmwOp, Rounding, Scope};
use crate::ir::types::{Space, Type};
use spirv::BuiltIn;

/// Splits a mangled name into the function's name and the codes of its parameters.
fn demangle(name: &str) -> Option<(&str, &str)> {
    let rest = name.strip_prefix("_Z")?;
    let digits = rest.find(|c: char| !c.is_ascii_digit())?;
    let len: usize = rest.get(..digits)?.parse().ok()?;
    let rest = rest.get(digits..)?;
    Some((rest.get(..len)?, rest.get(len..)?))
}

/// A scalar type as OpenCL C names it.
#[derive(Clone, Copy)]
struct Scalar {
    ty: Type,
    signed: bool,
}

fn scalar_by_name(name: &str) -> Option<Scalar> {
    let (ty, signed) = match name {
        "char" => (Type::I8, true),
        "uchar" => (Type::I8, false),
        "short" => (Type::I16, true),
        "ushort" => (Type::I16, false),
        "int" => (Type::I32, true),
        "uint" => (Type::I32, false),
        "long" => (Type::I64, true),
        "ulong" => (Type::I64, false),
        "half" => (Type::F16, true),
        "float" => (Type::F32, true),
        "double" => (Type::F64, true),
        _ => return None,
    };
    Some(Scalar { ty, signed })
}

/// Returns the scalar type of the first parameter in mangled form, its vector and pointer parts
/// skipped.
fn scalar_by_code(mut code: &str) -> Option<Scalar> {
    loop {
        let next = ["P", "V", "K", "U7_Atomic"]
            .iter()
            .find_map(|p| code.strip_prefix(p));
        let next = next.or_else(|| code.strip_prefix("U3AS").and_then(|c| c.get(1..)));
        let next = next.or_else(|| {
            let rest = code.strip_prefix("Dv")?;
            rest.get(rest.find('_')? + 1..)
        });
        match next {
            Some(next) => code = next,
            None => break,
        }
    }
    let (ty, signed) = match code.as_bytes() {
        [b'D', b'h', ..] => (Type::F16, true),
        [b'c' | b'a', ..] => (Type::I8, true),
        [b'h', ..] => (Type::I8, false),
        [b's', ..] => (Type::I16, true),
        [b't', ..] => (Type::I16, false),
        [b'i', ..] => (Type::I32, true),
        [b'j', ..] => (Type::I32, false),
        [b'l', ..] => (Type::I64, true),
        [b'm', ..] => (Type::I64, false),
        [b'f', ..] => (Type::F32, true),
        [b'd', ..] => (Type::F64, true),
        _ => return None,
    };
    Some(Scalar { ty, signed })
}

/// Returns the number of components of the first parameter in mangled form.
fn lanes_by_code(code: &str) -> u32 {
    let digits = code.find("Dv").and_then(|at| code.get(at + 2..));
    let digits = digits.and_then(|d| d.get(..d.find('_')?));
    digits
        .and_then(|d| d.parse().ok())
        .filter(|n| (1..=16).contains(n))
        .unwrap_or(1)
}

/// Parses what follows `convert_` in `convert_T[n][_sat][_rtx]`: destination, saturation, rounding.
fn conversion(name: &str) -> Option<(Scalar, bool, Option<Rounding>)> {
    let mut parts = name.split('_');
    let to = scalar_by_name(parts.next()?.trim_end_matches(|c: char| c.is_ascii_digit()))?;
    let (mut sat, mut rounding) = (false, None);
    for part in parts {
        match part {
            "sat" => sat = true,
            "rte" => rounding = Some(Rounding::Rte),
            "rtz" => rounding = Some(Rounding::Rtz),
            "rtp" => rounding = Some(Rounding::Rtp),
            "rtn" => rounding = Some(Rounding::Rtn),
            _ => return None,
        }
    }
    Some((to, sat, rounding))
}

/// Returns the work-group operation of a function that compilers do not know
/// (cl_khr_work_group_uniform_arithmetic), and whether the operand is a truth value. `name` is
/// without its prefix.
fn collective(name: &str, scalar: Scalar) -> Option<(GroupOp, bool)> {
    let kinds: [(&str, fn(GroupArith) -> GroupOp); 3] = [
        ("reduce_", GroupOp::Reduce),
        ("scan_inclusive_", GroupOp::InclusiveScan),
        ("scan_exclusive_", GroupOp::ExclusiveScan),
    ];
    let (rest, kind) = kinds
        .iter()
        .find_map(|&(prefix, kind)| Some((name.strip_prefix(prefix)?, kind)))?;
    let arith = match rest {
        "mul" if scalar.ty.is_float() => GroupArith::FMul,
        _ if scalar.ty.is_float() => return None,
        "mul" => GroupArith::IMul,
        "and" => GroupArith::And,
        "or" => GroupArith::Or,
        "xor" => GroupArith::Xor,
        "logical_and" => GroupArith::LogicalAnd,
        "logical_or" => GroupArith::LogicalOr,
        "logical_xor" => GroupArith::LogicalXor,
        _ => return None,
    };
    Some((kind(arith), rest.starts_with("logical_")))
}

/// Returns the built-in variable that a work-item function returns.
fn work_item_variable(name: &str) -> Option<BuiltIn> {
    Some(match name {
        "get_work_dim" => BuiltIn::WorkDim,
        "get_global_size" => BuiltIn::GlobalSize,
        "get_global_id" => BuiltIn::GlobalInvocationId,
        "get_local_size" => BuiltIn::WorkgroupSize,
        "get_enqueued_local_size" => BuiltIn::EnqueuedWorkgroupSize,
        "get_local_id" => BuiltIn::LocalInvocationId,
        "get_num_groups" => BuiltIn::NumWorkgroups,
        "get_group_id" => BuiltIn::WorkgroupId,
        "get_global_offset" => BuiltIn::GlobalOffset,
        "get_global_linear_id" => BuiltIn::GlobalLinearId,
        "get_local_linear_id" => BuiltIn::LocalInvocationIndex,
        _ => return None,
    })
}

fn rmw(name: &str, scalar: Scalar) -> Option<RmwOp> {
    let float = scalar.ty.is_float();
    Some(match name {
        "add" if float => RmwOp::FAdd,
        "min" if float => RmwOp::FMin,
        "max" if float => RmwOp::FMax,
        "xchg" | "exchange" => RmwOp::Xchg,
        _ if float => return None,
        "add" | "inc" => RmwOp::Add,
        "sub" | "dec" => RmwOp::Sub,
        "min" if scalar.signed => RmwOp::SMin,
        "min" => RmwOp::UMin,
        "max" if scalar.signed => RmwOp::SMax,
        "max" => RmwOp::UMax,
        "and" => RmwOp::And,
        "or" => RmwOp::Or,
        "xor" => RmwOp::Xor,
        _ => return None,
    })
}

impl Body<'_, '_> {
    /// Translates a call of an undefined function, if its name is that of a built-in known here.
    pub(super) fn builtin_call(
        &mut self,
        name: &str,
        inst: &Instruction,
        ty: TyId,
        id: u32,
    ) -> Result<bool> {
        if name.contains("__spirv_BuiltIn") {
            return self.builtin_variable_call(name, inst, ty, id);
        }
        if self.device_queue_call(name, inst, ty, id)? {
            return Ok(true);
        }
        let (base, code) = demangle(name).unwrap_or((name, ""));
        let base = base.strip_prefix("pumice_").unwrap_or(base);
        if let Some(which) = work_item_variable(base) {
            return self.variable_call(which as u32, inst, ty, id);
        }
        let args = inst.rest(3);
        if base.contains("image_") || base.contains("_image") {
            return self.image_call(base, inst, ty, id);
        }
        if let Some(rest) = base.strip_prefix("convert_") {
            if let (Some((to, sat, rounding)), Some(from), [arg]) =
                (conversion(rest), scalar_by_code(code), args)
            {
                self.convert_call(ty, id, *arg, from, to, sat, rounding)?;
                return Ok(true);
            }
        }
        if let Some(rest) = base
            .strip_prefix("atomic_")
            .or_else(|| base.strip_prefix("atom_"))
        {
            if let Some(scalar) = scalar_by_code(code) {
                return self.atomic_call(rest, scalar, args, ty, id, base.starts_with("atomic_"));
            }
        }
        if let (Some(rest), &[value]) = (base.strip_prefix("work_group_"), args) {
            if let Some((group, logical)) = scalar_by_code(code).and_then(|s| collective(rest, s)) {
                self.collective_call(ty, id, value, group, logical)?;
                return Ok(true);
            }
        }
        match (base, args) {
            (
                "async_work_group_copy" | "async_work_group_strided_copy",
                &[to, from, count, ref rest @ ..],
            ) => {
                let (stride, event) = match *rest {
                    [event] => (None, event),
                    [stride, event] => (Some(stride), event),
                    _ => return Ok(false),
                };
                let Some(scalar) = scalar_by_code(code) else {
                    return Ok(false);
                };
                let n = lanes_by_code(code).next_power_of_two();
                let size = scalar.ty.size() * n;
                let element = Some((scalar.ty, n));
                self.group_copy(to, from, count, stride, size.into(), size, element)?;
                let event = self.value(event)?;
                self.set(id, ty, event)?;
            }
            ("vloada_half3", &[offset, pointer]) => {
                let (pointer, _) = self.pointer(pointer)?;
                let offset = self.scalar(offset)?;
                let offset = self.to_i64(offset, false)?;
                let address = self.element(pointer, offset, 8)?;
                let load = Op::Load {
                    align: 8,
                    volatile: false,
                };
                let halves = self.ins_many(load, &[address], &[Type::F16; 3]);
                let mut out = Values::new();
                for half in halves {
                    out.push(self.ins(Op::FConv(Rounding::Rte), &[half], Type::F32));
                }
                self.set(id, ty, out)?;
            }
            ("mem_fence" | "read_mem_fence" | "write_mem_fence", &[flags]) => {
                let order = match base {
                    "read_mem_fence" => Order::Acquire,
                    "write_mem_fence" => Order::Release,
                    _ => Order::AcqRel,
                };
                let fences = self.fence_flags(flags);
                self.effect(
                    Op::Fence {
                        mem: Scope::WorkGroup,
                        order,
                        fences,
                    },
                    &[],
                );
            }
            ("sub_group_barrier" | "barrier" | "work_group_barrier", &[flags, ref scope @ ..]) => {
                let exec = if base == "sub_group_barrier" {
                    Scope::SubGroup
                } else {
                    Scope::WorkGroup
                };
                let mem = match scope {
                    [] => exec,
                    [scope, ..] => self.c11_scope(*scope),
                };
                let fences = self.fence_flags(flags);
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
            ("clock_read_device" | "clock_read_hilo_device", &[]) => {
                self.clock(ty, id, Scope::Device)?;
            }
            ("clock_read_work_group" | "clock_read_hilo_work_group", &[]) => {
                self.clock(ty, id, Scope::WorkGroup)?;
            }
            ("clock_read_sub_group" | "clock_read_hilo_sub_group", &[]) => {
                self.clock(ty, id, Scope::SubGroup)?;
            }
            (name, &[value])
                if name.starts_with("intel_convert_bfloat16")
                    || name.starts_with("intel_convert_as_bfloat16") =>
            {
                self.bfloat16_conversion(ty, id, value)?;
            }
            ("null_reserve_id", &[]) => {
                let none = self.constant(Type::I64, u64::MAX);
                self.set(id, ty, [none].into_iter().collect())?;
            }
            ("get_fence", &[pointer]) => {
                let (pointer, space) = self.pointer(pointer)?;
                let (local, global) = (self.constant(Type::I32, 1), self.constant(Type::I32, 2));
                let zero = self.constant(Type::I32, 0);
                let value = match space {
                    Space::Generic => {
                        let is_local = self.ins(Op::PtrIsIn(Space::Local), &[pointer], Type::Bool);
                        let is_global =
                            self.ins(Op::PtrIsIn(Space::Global), &[pointer], Type::Bool);
                        let rest = self.select(is_global, global, zero);
                        self.select(is_local, local, rest)
                    }
                    Space::Local => local,
                    Space::Global | Space::Constant => global,
                    Space::Private => zero,
                };
                self.set(id, ty, [value].into_iter().collect())?;
            }
            (
                "__to_global" | "__to_local" | "__to_private" | "to_global" | "to_local"
                | "to_private",
                &[pointer],
            ) => {
                let (pointer, _) = self.pointer(pointer)?;
                let Some(to @ Type::Ptr(_)) = self.p.types.scalar(ty) else {
                    return Ok(false);
                };
                let value = self.space_cast(pointer, to)?;
                self.set(id, ty, [value].into_iter().collect())?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn collective_call(
        &mut self,
        ty: TyId,
        id: u32,
        value: u32,
        group: GroupOp,
        logical: bool,
    ) -> Result<()> {
        let mut value = self.scalar(value)?;
        let scalar = self.f.ty(value);
        if logical {
            value = self.to_bool(value);
        }
        let operand = self.f.ty(value);
        let mut result = self.ins(Op::Group(group, Scope::WorkGroup), &[value], operand);
        if logical {
            result = self.ins(Op::ZExt, &[result], scalar);
        }
        self.set(id, ty, [result].into_iter().collect())
    }

    #[allow(clippy::too_many_arguments)]
    fn convert_call(
        &mut self,
        ty: TyId,
        id: u32,
        arg: u32,
        from: Scalar,
        to: Scalar,
        sat: bool,
        rounding: Option<Rounding>,
    ) -> Result<()> {
        let (_, n) = self.vector_of(ty)?;
        let args = self.lanes(arg, from.ty, n)?;
        let near = rounding.unwrap_or(Rounding::Rte);
        let mut out = Values::with_capacity(n);
        for x in args {
            out.push(match (from.ty.is_float(), to.ty.is_float()) {
                (true, true) if from.ty == to.ty => x,
                (true, true) => self.ins(Op::FConv(near), &[x], to.ty),
                (true, false) => {
                    let rounding = rounding.unwrap_or(Rounding::Rtz);
                    let op = if to.signed {
                        Op::FToS { rounding, sat }
                    } else {
                        Op::FToU { rounding, sat }
                    };
                    self.ins(op, &[x], to.ty)
                }
                (false, true) => self.ins(
                    if from.signed {
                        Op::SToF(near)
                    } else {
                        Op::UToF(near)
                    },
                    &[x],
                    to.ty,
                ),
                (false, false) if !sat => self.resize(x, to.ty, from.signed),
                (false, false) => match (from.signed, to.signed) {
                    (true, true) => self.clamp_signed(x, to.ty),
                    (true, false) => self.sat_signed_to_unsigned(x, to.ty),
                    (false, true) => self.sat_unsigned_to_signed(x, to.ty),
                    (false, false) => self.clamp_unsigned(x, to.ty),
                },
            });
        }
        self.set(id, ty, out)
    }

    /// Returns the value of a `cl_mem_fence_flags` operand.
    fn fence_flags(&mut self, id: u32) -> Fences {
        let flags = self.const_bits(id).unwrap_or(7);
        Fences {
            local: flags & 1 != 0,
            global: flags & 2 != 0,
            image: flags & 4 != 0,
        }
    }

    /// Returns the value of a `memory_scope` operand.
    fn c11_scope(&mut self, id: u32) -> Scope {
        match self.const_bits(id) {
            Some(0) => Scope::WorkItem,
            Some(1) => Scope::WorkGroup,
            Some(3) => Scope::AllDevices,
            Some(4) => Scope::SubGroup,
            _ => Scope::Device,
        }
    }

    /// Returns the value of a `memory_order` operand.
    fn c11_order(&mut self, id: u32) -> Order {
        match self.const_bits(id) {
            Some(0) => Order::Relaxed,
            Some(1 | 2) => Order::Acquire,
            Some(3) => Order::Release,
            Some(4) => Order::AcqRel,
            _ => Order::SeqCst,
        }
    }

    /// Translates a call of an atomic function, `name` being without its prefix. Returns false if
    /// the function is not known.
    fn atomic_call(
        &mut self,
        name: &str,
        scalar: Scalar,
        args: &[u32],
        ty: TyId,
        id: u32,
        c11: bool,
    ) -> Result<bool> {
        let name = name.strip_suffix("_explicit").unwrap_or(name);
        let (fetch, name) = match name.strip_prefix("fetch_") {
            Some(rest) => (true, rest),
            None => (false, name),
        };
        let (first, rest) = match args {
            [first, rest @ ..] => (*first, rest),
            [] => return Ok(false),
        };
        let int = scalar.ty.as_int().unwrap_or(Type::I32);
        // Operands of value type come first, then the order(s) and the scope.
        let values = match name {
            "load" | "inc" | "dec" | "flag_test_and_set" | "flag_clear" => 0,
            "cmpxchg" | "compare_exchange_strong" | "compare_exchange_weak" => 2,
            _ => 1,
        };
        let Some(tail) = rest.get(values..) else {
            return Ok(false);
        };
        let orders = if name.starts_with("compare_exchange") {
            2
        } else {
            1
        };
        let new_style = c11
            && (fetch
                || name.starts_with("compare_")
                || name.starts_with("flag_")
                || matches!(name, "load" | "store" | "init" | "exchange"));
        let order = match tail.first() {
            Some(&order) => self.c11_order(order),
            None if new_style => Order::SeqCst,
            None => Order::Relaxed,
        };
        let scope = match tail.get(orders) {
            Some(&scope) => self.c11_scope(scope),
            None => Scope::Device,
        };
        let (pointer, _) = self.pointer(first)?;
        let void = matches!(self.p.types.get(ty).kind, Kind::Void);
        let result: Option<Value> = match (name, rest) {
            ("init", &[value, ..]) => {
                let value = self.scalar_of(value, scalar.ty)?;
                let align = scalar.ty.size();
                self.effect(
                    Op::Store {
                        align,
                        volatile: false,
                    },
                    &[pointer, value],
                );
                None
            }
            ("store", &[value, ..]) => {
                let value = self.scalar_of(value, scalar.ty)?;
                let value = self.cast_scalar(value, int)?;
                self.effect(Op::AtomicStore { scope, order }, &[pointer, value]);
                None
            }
            ("load", _) => {
                let value = self.ins(Op::AtomicLoad { scope, order }, &[pointer], int);
                Some(self.cast_scalar(value, scalar.ty)?)
            }
            ("flag_clear", _) => {
                let zero = self.constant(Type::I32, 0);
                self.effect(Op::AtomicStore { scope, order }, &[pointer, zero]);
                None
            }
            ("flag_test_and_set", _) => {
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
                Some(self.to_bool(old))
            }
            ("cmpxchg", &[expected, desired, ..]) => {
                let (expected, desired) = (
                    self.scalar_of(expected, scalar.ty)?,
                    self.scalar_of(desired, scalar.ty)?,
                );
                let (expected, desired) = (
                    self.cast_scalar(expected, int)?,
                    self.cast_scalar(desired, int)?,
                );
                let old = self.ins(
                    Op::AtomicCmpXchg { scope, order },
                    &[pointer, expected, desired],
                    int,
                );
                Some(self.cast_scalar(old, scalar.ty)?)
            }
            ("compare_exchange_strong" | "compare_exchange_weak", &[expected, desired, ..]) => {
                let (memory, _) = self.pointer(expected)?;
                let desired = self.scalar_of(desired, scalar.ty)?;
                let desired = self.cast_scalar(desired, int)?;
                let align = int.size();
                let expected = self.ins(
                    Op::Load {
                        align,
                        volatile: false,
                    },
                    &[memory],
                    int,
                );
                let old = self.ins(
                    Op::AtomicCmpXchg { scope, order },
                    &[pointer, expected, desired],
                    int,
                );
                // Where it fails the old value goes to memory; where it succeeds that is what lies there.
                self.effect(
                    Op::Store {
                        align,
                        volatile: false,
                    },
                    &[memory, old],
                );
                Some(self.ins(Op::ICmp(IntCond::Eq), &[old, expected], Type::Bool))
            }
            _ => {
                let Some(op) = rmw(name, scalar) else {
                    return Ok(false);
                };
                let float = matches!(op, RmwOp::FAdd | RmwOp::FMin | RmwOp::FMax);
                let memory = if float { scalar.ty } else { int };
                let value = match (name, rest) {
                    ("inc" | "dec", _) => self.constant(memory, 1),
                    (_, &[value, ..]) => {
                        let value = self.scalar(value)?;
                        // ptrdiff_t operands of pointer-sized atomics and the like.
                        let value = self.resize(value, scalar.ty, true);
                        if self.f.ty(value) != scalar.ty {
                            return bad("its operand has the wrong type");
                        }
                        self.cast_scalar(value, memory)?
                    }
                    _ => return Ok(false),
                };
                let old = self.ins(
                    Op::AtomicRmw { op, scope, order },
                    &[pointer, value],
                    memory,
                );
                Some(self.cast_scalar(old, scalar.ty)?)
            }
        };
        match result {
            Some(value) if !void => self.set(id, ty, [value].into_iter().collect())?,
            _ => {}
        }
        Ok(true)
    }

    /// Translates a call of a function that returns a built-in variable.
    fn builtin_variable_call(
        &mut self,
        name: &str,
        inst: &Instruction,
        ty: TyId,
        id: u32,
    ) -> Result<bool> {
        let start = name.find("__spirv_BuiltIn").unwrap_or(0) + "__spirv_BuiltIn".len();
        let rest = name.get(start..).unwrap_or("");
        let end = rest
            .find(|c: char| !c.is_ascii_alphabetic())
            .unwrap_or(rest.len());
        let text = rest.get(..end).unwrap_or("");
        let by_name = |name: &str| name.parse::<BuiltIn>().ok().map(|b| b as u32);
        let which = by_name(text).or_else(|| by_name(text.trim_end_matches(['i', 'v', 'j', 'm'])));
        match which {
            Some(which) => self.variable_call(which, inst, ty, id),
            None => Ok(false),
        }
    }

    /// Translates a call that returns a component of a built-in variable.
    fn variable_call(&mut self, which: u32, inst: &Instruction, ty: TyId, id: u32) -> Result<bool> {
        let components = self.builtin_components(which)?;
        let value = match inst.words.get(3) {
            Some(&index) => {
                let index = self.scalar(index)?;
                self.pick(&components, index, out_of_range(which))?
            }
            None => match components.first() {
                Some(&value) => value,
                None => return Ok(false),
            },
        };
        self.set(id, ty, [value].into_iter().collect())?;
        Ok(true)
    }
}
