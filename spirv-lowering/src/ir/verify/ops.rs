//! The rules for operands and results of each operation.

use crate::interface::Implicit;
use crate::ir::function::Function;
use crate::ir::module::{Module, PrintfArg};
use crate::ir::op::{Builtin, GroupOp, IntCond, NativeFn, Op, Scope, Texel};
use crate::ir::types::{Space, Type};

pub(super) type Check = Result<(), String>;

fn want(ok: bool, what: &str) -> Check {
    if ok {
        Ok(())
    } else {
        Err(what.into())
    }
}

/// `n` operands and `m` results.
fn arity(args: &[Type], results: &[Type], n: usize, m: usize) -> Check {
    if args.len() != n {
        return Err(format!("has {} operands, should have {n}", args.len()));
    }
    if results.len() != m {
        return Err(format!("has {} results, should have {m}", results.len()));
    }
    Ok(())
}

/// The type that all operands and the result have.
fn same(args: &[Type], results: &[Type], n: usize) -> Result<Type, String> {
    arity(args, results, n, 1)?;
    let ty = results[0];
    want(
        args.iter().all(|&a| a == ty),
        "operands and result differ in type",
    )?;
    Ok(ty)
}

fn one_type(types: &[Type]) -> Result<Type, String> {
    let first = *types.first().ok_or("has no value")?;
    want(types.iter().all(|&t| t == first), "values differ in type")?;
    Ok(first)
}

fn alignment(align: u32) -> Check {
    want(align.is_power_of_two(), "alignment is no power of two")
}

/// The rules for operands and results of one instruction.
pub(super) fn check(
    module: Option<&Module>,
    func: &Function,
    op: Op,
    args: &[Type],
    results: &[Type],
) -> Check {
    use Op::*;
    let scalar = |t: Type| t.is_int() || t.is_float();
    let memory = |t: Type| t != Type::Bool;
    let var_elem = |var| match func.vars.get(var) {
        Some(data) => Ok(data.elem),
        None => Err(format!("missing {var}")),
    };
    let index = |args: &[Type]| want(args.first() == Some(&Type::I32), "index is no i32");
    let pointer = |args: &[Type]| {
        want(
            args.first().is_some_and(|t| t.is_ptr()),
            "address is no pointer",
        )
    };
    match op {
        Const(bits) => {
            arity(args, results, 0, 1)?;
            want(
                bits & !results[0].mask() == 0,
                "constant has bits beyond its type",
            )
        }
        Undef => arity(args, results, 0, 1),
        GlobalAddr(id) => {
            arity(args, results, 0, 1)?;
            want(results[0].is_ptr(), "result is no pointer")?;
            let Some(module) = module else { return Ok(()) };
            let global = module
                .globals
                .get(id)
                .ok_or_else(|| format!("missing {id}"))?;
            want(
                global.space.is_none() || global.space == results[0].space(),
                "pointer into another space",
            )
        }
        IAdd | ISub | IMul | SDiv | UDiv | SRem | URem | SMulHi | UMulHi | Shl | LShr | AShr
        | SMin | SMax | UMin | UMax => {
            want(same(args, results, 2)?.is_int(), "not of an integer type")
        }
        And | Or | Xor => {
            let ty = same(args, results, 2)?;
            want(
                ty.is_int() || ty == Type::Bool,
                "not of an integer type or bool",
            )
        }
        Not => {
            let ty = same(args, results, 1)?;
            want(
                ty.is_int() || ty == Type::Bool,
                "not of an integer type or bool",
            )
        }
        SDot4 | UDot4 | SUDot4 => want(same(args, results, 2)? == Type::I32, "not of type i32"),
        INeg | Clz | Ctz | Popcount | BitReverse => {
            want(same(args, results, 1)?.is_int(), "not of an integer type")
        }
        FAdd | FSub | FMul | FDiv | FRem | FCopySign | FMin | FMax => {
            want(same(args, results, 2)?.is_float(), "not of a float type")
        }
        FNeg | FAbs | FSqrt | FFloor | FCeil | FTrunc | FRoundEven => {
            want(same(args, results, 1)?.is_float(), "not of a float type")
        }
        Fma => want(same(args, results, 3)?.is_float(), "not of a float type"),
        FNative(f) => {
            let n = match f {
                NativeFn::Fma => 3,
                NativeFn::Pow => 2,
                _ => 1,
            };
            want(same(args, results, n)?.is_float(), "not of a float type")
        }
        ICmp(cond) => {
            arity(args, results, 2, 1)?;
            let ty = one_type(args)?;
            want(results[0] == Type::Bool, "result is no bool")?;
            let equality = matches!(cond, IntCond::Eq | IntCond::Ne);
            want(
                ty.is_int() || ty.is_ptr() || equality && matches!(ty, Type::Bool | Type::Handle),
                "operands cannot be compared so",
            )
        }
        FCmp(_) => {
            arity(args, results, 2, 1)?;
            want(results[0] == Type::Bool, "result is no bool")?;
            want(one_type(args)?.is_float(), "not of a float type")
        }
        Select => {
            arity(args, results, 3, 1)?;
            want(args[0] == Type::Bool, "condition is no bool")?;
            want(
                args[1] == results[0] && args[2] == results[0],
                "operands and result differ in type",
            )
        }
        ZExt | SExt => {
            arity(args, results, 1, 1)?;
            let from = args[0];
            want(
                from.is_int() || from == Type::Bool,
                "operand is no integer or bool",
            )?;
            want(
                results[0].is_int() && results[0].bits() > from.bits(),
                "result is no wider integer",
            )
        }
        Trunc => {
            arity(args, results, 1, 1)?;
            want(
                args[0].is_int() && results[0].is_int() && results[0].bits() < args[0].bits(),
                "not from an integer to a narrower one",
            )
        }
        FConv(_) => {
            arity(args, results, 1, 1)?;
            want(
                args[0].is_float() && results[0].is_float() && args[0] != results[0],
                "not between two float types",
            )
        }
        SToF(_) | UToF(_) => {
            arity(args, results, 1, 1)?;
            want(
                args[0].is_int() && results[0].is_float(),
                "not from an integer to a float",
            )
        }
        FToS { .. } | FToU { .. } => {
            arity(args, results, 1, 1)?;
            want(
                args[0].is_float() && results[0].is_int(),
                "not from a float to an integer",
            )
        }
        Bitcast => {
            arity(args, results, 1, 1)?;
            want(
                scalar(args[0]) && scalar(results[0]) && args[0].bits() == results[0].bits(),
                "not between numbers of one width",
            )
        }
        PtrToInt => {
            arity(args, results, 1, 1)?;
            want(
                args[0].is_ptr() && results[0] == Type::I64,
                "not from a pointer to i64",
            )
        }
        IntToPtr => {
            arity(args, results, 1, 1)?;
            want(
                args[0] == Type::I64 && results[0].is_ptr(),
                "not from i64 to a pointer",
            )
        }
        SpaceCast => {
            arity(args, results, 1, 1)?;
            want(
                args[0].is_ptr() && results[0].is_ptr(),
                "not between pointers",
            )
        }
        PtrIsIn(_) => {
            arity(args, results, 1, 1)?;
            want(
                args[0].is_ptr() && results[0] == Type::Bool,
                "not from a pointer to bool",
            )
        }
        PtrAdd => {
            arity(args, results, 2, 1)?;
            pointer(args)?;
            want(
                args[0] == results[0] && args[1] == Type::I64,
                "not pointer, i64 to the same pointer type",
            )
        }
        Alloca { align, .. } => {
            arity(args, results, 0, 1)?;
            alignment(align)?;
            want(
                results[0] == Type::Ptr(Space::Private),
                "result is no ptr.private",
            )
        }
        Load { align, .. } => {
            arity(args, results, 1, results.len())?;
            pointer(args)?;
            alignment(align)?;
            want(memory(one_type(results)?), "type cannot be in memory")
        }
        Store { align, .. } => {
            arity(args, results, args.len(), 0)?;
            pointer(args)?;
            alignment(align)?;
            want(
                memory(one_type(args.get(1..).unwrap_or_default())?),
                "type cannot be in memory",
            )
        }
        MemCopy { align, .. } => {
            arity(args, results, 2, 0)?;
            alignment(align)?;
            want(
                args[0].is_ptr() && args[1].is_ptr(),
                "address is no pointer",
            )
        }
        AtomicLoad { .. } => {
            arity(args, results, 1, 1)?;
            pointer(args)?;
            want(memory(results[0]), "type cannot be in memory")
        }
        AtomicStore { .. } => {
            arity(args, results, 2, 0)?;
            pointer(args)?;
            want(memory(args[1]), "type cannot be in memory")
        }
        AtomicRmw { .. } => {
            arity(args, results, 2, 1)?;
            pointer(args)?;
            want(
                scalar(results[0]) && args[1] == results[0],
                "operand and result differ in type",
            )
        }
        AtomicCmpXchg { .. } => {
            arity(args, results, 3, 1)?;
            pointer(args)?;
            want(
                memory(results[0]) && args[1] == results[0] && args[2] == results[0],
                "operands and result differ in type",
            )
        }
        VarLoad(var) | VarAtomicLoad { var, .. } => {
            arity(args, results, 1, 1)?;
            index(args)?;
            want(
                results[0] == var_elem(var)?,
                "result is not of the element type",
            )
        }
        VarStore(var) | VarAtomicStore { var, .. } => {
            arity(args, results, 2, 0)?;
            index(args)?;
            want(
                args[1] == var_elem(var)?,
                "value is not of the element type",
            )
        }
        VarRmw { var, .. } => {
            arity(args, results, 2, 1)?;
            index(args)?;
            let elem = var_elem(var)?;
            want(
                args[1] == elem && results[0] == elem,
                "not of the element type",
            )
        }
        VarCmpXchg { var, .. } => {
            arity(args, results, 3, 1)?;
            index(args)?;
            let elem = var_elem(var)?;
            want(
                args[1] == elem && args[2] == elem && results[0] == elem,
                "not of the element type",
            )
        }
        Barrier { .. } | Fence { .. } => arity(args, results, 0, 0),
        Clock(_) => {
            arity(args, results, 0, 1)?;
            want(results[0] == Type::I64, "result is no i64")
        }
        Group(op, scope) => check_group(op, scope, args, results),
        Builtin(builtin) => {
            arity(args, results, 0, 1)?;
            want(
                results[0] == builtin_type(builtin),
                "not of the type of the built-in variable",
            )
        }
        ImageRead(texel) => {
            arity(args, results, 4, 4)?;
            want(args[0] == Type::Handle, "no image")?;
            texel_access(&args[1..], &[], results, texel)
        }
        ImageWrite(texel) => {
            arity(args, results, 8, 0)?;
            want(args[0] == Type::Handle, "no image")?;
            texel_access(&args[1..4], &args[4..], &[], texel)
        }
        ImageFilter => {
            arity(args, results, 5, 4)?;
            want(args[..2] == [Type::Handle; 2], "no image and sampler")?;
            want(args[2..] == [Type::F32; 3], "coordinates are no f32")?;
            texel_access(&[], &[], results, Texel::Float)
        }
        TexelFilter { image, .. } => {
            arity(args, results, 3, 4)?;
            want(args == [Type::F32; 3], "coordinates are no f32")?;
            texel_access(&[], &[], results, image.texel)
        }
        ImageQuery(_) | SamplerWord => {
            arity(args, results, 1, 1)?;
            want(args[0] == Type::Handle, "no image or sampler")?;
            want(results[0] == Type::I32, "result is no i32")
        }
        TexelFetch(slot) | TexelLoad(slot) => {
            arity(args, results, 3, 4)?;
            texel_access(args, &[], results, slot.texel)
        }
        TexelStore(slot) => {
            arity(args, results, 7, 0)?;
            texel_access(&args[..3], &args[3..], &[], slot.texel)
        }
        Hw(_) | SpecSize(_) => {
            arity(args, results, 0, 1)?;
            want(results[0] == Type::I32, "result is no i32")
        }
        Implicit(implicit, component) => {
            arity(args, results, 0, 1)?;
            let (ty, count) = match implicit {
                self::Implicit::ArgBuffer
                | self::Implicit::ProgramGlobals
                | self::Implicit::PrintfBuffer
                | self::Implicit::ResumeState => (Type::I64, 1),
                other => (Type::I32, other.size() / 4),
            };
            want(results[0] == ty, "not of the type of the implicit argument")?;
            want(u32::from(component) < count, "no such component")
        }
        ArgLoad(_) => {
            arity(args, results, 0, results.len())?;
            one_type(results).map(|_| ())
        }
        Call(id) => {
            let Some(module) = module else { return Ok(()) };
            let callee = module
                .functions
                .get(id)
                .ok_or_else(|| format!("missing {id}"))?;
            want(
                args == callee.params,
                "operands differ from the parameters of the function",
            )?;
            want(
                results == callee.results,
                "results differ from those of the function",
            )
        }
        Printf(site) => {
            arity(args, results, args.len(), 1)?;
            want(results[0] == Type::I32, "result is no i32")?;
            let Some(module) = module else { return Ok(()) };
            let site = module
                .printfs
                .get(site as usize)
                .ok_or("missing printf site")?;
            let mut expect = Vec::new();
            for arg in &site.args {
                match arg {
                    PrintfArg::Value { ty, lanes } => {
                        expect.extend(std::iter::repeat_n(*ty, *lanes as usize));
                    }
                    PrintfArg::Text(_) => {}
                    PrintfArg::String => {
                        let have = args.get(expect.len()).copied();
                        expect.extend(have.filter(|ty| ty.is_ptr()));
                    }
                }
            }
            want(
                args == expect,
                "operands differ from those of the printf site",
            )
        }
    }
}

/// Coordinates, components written and components read of an access to an image.
fn texel_access(at: &[Type], written: &[Type], read: &[Type], texel: Texel) -> Check {
    want(
        at.iter().all(|&ty| ty == Type::I32),
        "coordinates are no i32",
    )?;
    let ty = texel.component();
    want(
        written.iter().chain(read).all(|&t| t == ty),
        "components of the wrong type",
    )
}

/// The type of an OpenCL built-in variable.
fn builtin_type(builtin: Builtin) -> Type {
    use Builtin::*;
    match builtin {
        WorkDim | SubGroupSize | SubGroupMaxSize | NumSubGroups | NumEnqueuedSubGroups
        | SubGroupId | SubGroupLocalId => Type::I32,
        _ => Type::I64,
    }
}

fn check_group(op: GroupOp, scope: Scope, args: &[Type], results: &[Type]) -> Check {
    want(
        matches!(scope, Scope::WorkGroup | Scope::SubGroup),
        "scope is neither work-group nor sub-group",
    )?;
    let value = |n: usize| -> Check {
        arity(args, results, n, 1)?;
        want(args[0] == results[0], "operand and result differ in type")
    };
    match op {
        GroupOp::All | GroupOp::Any => {
            value(1)?;
            want(results[0] == Type::Bool, "not of type bool")
        }
        GroupOp::AllEqual => {
            arity(args, results, 1, 1)?;
            want(results[0] == Type::Bool, "result is no bool")
        }
        GroupOp::Elect => {
            arity(args, results, 0, 1)?;
            want(results[0] == Type::Bool, "result is no bool")
        }
        GroupOp::Broadcast => {
            want(
                args.len() >= 2 && results.len() == 1,
                "needs a value and an id",
            )?;
            want(args[0] == results[0], "operand and result differ in type")
        }
        GroupOp::Reduce(_) | GroupOp::InclusiveScan(_) | GroupOp::ExclusiveScan(_) => value(1),
        GroupOp::ClusteredReduce(_) => value(2),
        GroupOp::Ballot => {
            arity(args, results, 1, 4)?;
            want(
                args[0] == Type::Bool && results.iter().all(|&t| t == Type::I32),
                "not from bool to four i32",
            )
        }
        GroupOp::Shuffle | GroupOp::ShuffleXor | GroupOp::ShuffleUp | GroupOp::ShuffleDown => {
            value(2)?;
            want(args[1] == Type::I32, "lane is no i32")
        }
        GroupOp::Rotate => {
            value(args.len().clamp(2, 3))?;
            want(
                args.iter().skip(1).all(|&t| t == Type::I32),
                "delta or cluster size is no i32",
            )
        }
    }
}
