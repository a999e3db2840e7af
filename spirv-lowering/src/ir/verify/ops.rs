//! The rules for operands and results of each operation.

use crate::interface::Implicit;
use crate::ir::entity::{FuncId, GlobalId, Var};
use crate::ir::function::{Function, Storage};
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

/// Checks for `n` operands and `m` results.
fn arity(args: &[Type], results: &[Type], n: usize, m: usize) -> Check {
    if args.len() != n {
        return Err(format!("has {} operands, should have {n}", args.len()));
    }
    if results.len() != m {
        return Err(format!("has {} results, should have {m}", results.len()));
    }
    Ok(())
}

/// Returns the type that all operands and the result must have in common.
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

/// Checks an operation whose operands and result have one type that `is` accepts.
fn numbers(args: &[Type], results: &[Type], n: usize, is: fn(Type) -> bool, what: &str) -> Check {
    want(is(same(args, results, n)?), what)
}

fn integers(args: &[Type], results: &[Type], n: usize) -> Check {
    numbers(args, results, n, Type::is_int, "not of an integer type")
}

fn bits(args: &[Type], results: &[Type], n: usize) -> Check {
    let is = |ty: Type| ty.is_int() || ty == Type::Bool;
    numbers(args, results, n, is, "not of an integer type or bool")
}

fn floats(args: &[Type], results: &[Type], n: usize) -> Check {
    numbers(args, results, n, Type::is_float, "not of a float type")
}

fn integer_comparison(cond: IntCond, args: &[Type], results: &[Type]) -> Check {
    arity(args, results, 2, 1)?;
    let ty = one_type(args)?;
    want(results[0] == Type::Bool, "result is no bool")?;
    let equality = matches!(cond, IntCond::Eq | IntCond::Ne);
    want(
        ty.is_int() || ty.is_ptr() || equality && matches!(ty, Type::Bool | Type::Handle),
        "operands cannot be compared so",
    )
}

fn float_comparison(args: &[Type], results: &[Type]) -> Check {
    arity(args, results, 2, 1)?;
    want(results[0] == Type::Bool, "result is no bool")?;
    want(one_type(args)?.is_float(), "not of a float type")
}

fn selection(args: &[Type], results: &[Type]) -> Check {
    arity(args, results, 3, 1)?;
    want(args[0] == Type::Bool, "condition is no bool")?;
    want(
        args[1] == results[0] && args[2] == results[0],
        "operands and result differ in type",
    )
}

/// Checks a conversion: one operand and one result, of types that `ok` accepts.
fn conversion(args: &[Type], results: &[Type], ok: fn(Type, Type) -> bool, what: &str) -> Check {
    arity(args, results, 1, 1)?;
    want(ok(args[0], results[0]), what)
}

fn extension(args: &[Type], results: &[Type]) -> Check {
    conversion(
        args,
        results,
        |from, _| from.is_int() || from == Type::Bool,
        "operand is no integer or bool",
    )?;
    want(
        results[0].is_int() && results[0].bits() > args[0].bits(),
        "result is no wider integer",
    )
}

/// Checks that the first operand is an address.
fn pointer(args: &[Type]) -> Check {
    want(
        args.first().is_some_and(|t| t.is_ptr()),
        "address is no pointer",
    )
}

/// Checks that all types are one that memory can hold.
fn in_memory(types: &[Type]) -> Check {
    want(one_type(types)? != Type::Bool, "type cannot be in memory")
}

/// Checks an atomic access: an address, `n` operands of the accessed type, and perhaps a result of
/// it.
fn atomic(args: &[Type], results: &[Type], n: usize) -> Check {
    arity(args, results, n + 1, 1)?;
    pointer(args)?;
    in_memory(results)?;
    want(
        args[1..].iter().all(|&ty| ty == results[0]),
        "operands and result differ in type",
    )
}

/// Checks an access to an array of a lowered kernel: an index, then `n` values and `m` results of
/// the element type, or as many for each lane. Only loads and stores may access elements of several
/// lanes.
fn element(
    func: &Function,
    var: Var,
    args: &[Type],
    results: &[Type],
    (n, m): (usize, usize),
) -> Check {
    let Some(data) = func.vars.get(var) else {
        return Err(format!("missing {var}"));
    };
    let lanes = data.lanes as usize;
    let lanes_fit = match data.storage {
        Storage::Workgroup => matches!(lanes, 1 | 2 | 4) && data.elem_size() <= 16,
        Storage::Function => lanes == 1,
    };
    want(lanes_fit, "elements of so many lanes")?;
    want(lanes == 1 || n + m == 1, "an atomic on several lanes")?;
    arity(args, results, n * lanes + 1, m * lanes)?;
    want(args[0] == Type::I32, "index is no i32")?;
    let mut values = args[1..].iter().chain(results);
    want(
        values.all(|&ty| ty == data.elem),
        "a value is not of the element type",
    )
}

/// Checks for no operand and one result of a type.
fn given(args: &[Type], results: &[Type], ty: Type, what: &str) -> Check {
    arity(args, results, 0, 1)?;
    want(results[0] == ty, what)
}

fn global_addr(module: Option<&Module>, id: GlobalId, args: &[Type], results: &[Type]) -> Check {
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

fn implicit(which: Implicit, component: u8, args: &[Type], results: &[Type]) -> Check {
    let words = results.first() == Some(&Type::I32);
    let (ty, count) = match which {
        Implicit::ArgBuffer
        | Implicit::ProgramGlobals
        | Implicit::PrintfBuffer
        | Implicit::EnqueueState
            if !words =>
        {
            (Type::I64, 1)
        }
        other => (Type::I32, other.size() / 4),
    };
    given(
        args,
        results,
        ty,
        "not of the type of the implicit argument",
    )?;
    want(u32::from(component) < count, "no such component")
}

fn call(module: Option<&Module>, id: FuncId, args: &[Type], results: &[Type]) -> Check {
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

fn printf(module: Option<&Module>, site: u32, args: &[Type], results: &[Type]) -> Check {
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

/// Checks the operands and results of one instruction.
pub(super) fn check(
    module: Option<&Module>,
    func: &Function,
    op: Op,
    args: &[Type],
    results: &[Type],
) -> Check {
    use Op::*;
    let scalar = |t: Type| t.is_int() || t.is_float();
    match op {
        Const(bits) => {
            arity(args, results, 0, 1)?;
            want(
                bits & !results[0].mask() == 0,
                "constant has bits beyond its type",
            )
        }
        Undef => arity(args, results, 0, 1),
        GlobalAddr(id) => global_addr(module, id, args, results),
        IAdd | ISub | IMul | SDiv | UDiv | SRem | URem | SMulHi | UMulHi | Shl | LShr | AShr
        | SMin | SMax | UMin | UMax => integers(args, results, 2),
        And | Or | Xor => bits(args, results, 2),
        Not => bits(args, results, 1),
        SDot4 | UDot4 | SUDot4 => want(same(args, results, 2)? == Type::I32, "not of type i32"),
        INeg | Clz | Ctz | Popcount | BitReverse => integers(args, results, 1),
        FAdd | FSub | FMul | FDiv | FRem | FCopySign | FMin | FMax => floats(args, results, 2),
        FNeg | FAbs | FSqrt | FFloor | FCeil | FTrunc | FRoundEven => floats(args, results, 1),
        Fma => floats(args, results, 3),
        FNative(f) => match f {
            NativeFn::Fma => floats(args, results, 3),
            NativeFn::Pow => floats(args, results, 2),
            _ => floats(args, results, 1),
        },
        ICmp(cond) => integer_comparison(cond, args, results),
        FCmp(_) => float_comparison(args, results),
        Select => selection(args, results),
        ZExt | SExt => extension(args, results),
        Trunc => conversion(
            args,
            results,
            |from, to| from.is_int() && to.is_int() && to.bits() < from.bits(),
            "not from an integer to a narrower one",
        ),
        FConv(_) => conversion(
            args,
            results,
            |from, to| from.is_float() && to.is_float() && from != to,
            "not between two float types",
        ),
        SToF(_) | UToF(_) => conversion(
            args,
            results,
            |from, to| from.is_int() && to.is_float(),
            "not from an integer to a float",
        ),
        FToS { .. } | FToU { .. } => conversion(
            args,
            results,
            |from, to| from.is_float() && to.is_int(),
            "not from a float to an integer",
        ),
        Bitcast => {
            arity(args, results, 1, 1)?;
            want(
                scalar(args[0]) && scalar(results[0]) && args[0].bits() == results[0].bits(),
                "not between numbers of one width",
            )
        }
        PtrToInt => conversion(
            args,
            results,
            |from, to| from.is_ptr() && to == Type::I64,
            "not from a pointer to i64",
        ),
        IntToPtr => conversion(
            args,
            results,
            |from, to| from == Type::I64 && to.is_ptr(),
            "not from i64 to a pointer",
        ),
        Join => {
            arity(args, results, 2, 1)?;
            want(
                args == [Type::I32; 2]
                    && matches!(
                        results[0],
                        Type::Ptr(Space::Global | Space::Constant) | Type::F64
                    ),
                "not from two i32 to a pointer to global memory or f64",
            )
        }
        Low | High => conversion(
            args,
            results,
            |from, to| from == Type::F64 && to == Type::I32,
            "not from f64 to i32",
        ),
        UnpackHalf => conversion(
            args,
            results,
            |from, to| from == Type::I32 && to == Type::F32,
            "not from i32 to f32",
        ),
        PackHalf => conversion(
            args,
            results,
            |from, to| from == Type::F32 && to == Type::I32,
            "not from f32 to i32",
        ),
        SpaceCast => conversion(
            args,
            results,
            |from, to| from.is_ptr() && to.is_ptr(),
            "not between pointers",
        ),
        PtrIsIn(_) => conversion(
            args,
            results,
            |from, to| from.is_ptr() && to == Type::Bool,
            "not from a pointer to bool",
        ),
        PtrAdd => {
            arity(args, results, 2, 1)?;
            pointer(args)?;
            want(
                args[0] == results[0] && args[1] == Type::I64,
                "not pointer, i64 to the same pointer type",
            )
        }
        Alloca { align, .. } => {
            alignment(align)?;
            let private = Type::Ptr(Space::Private);
            given(args, results, private, "result is no ptr.private")
        }
        Load { align, .. } => {
            arity(args, results, 1, results.len())?;
            pointer(args)?;
            alignment(align)?;
            in_memory(results)
        }
        Store { align, .. } => {
            arity(args, results, args.len(), 0)?;
            pointer(args)?;
            alignment(align)?;
            in_memory(args.get(1..).unwrap_or_default())
        }
        MemCopy { align, .. } => {
            arity(args, results, 2, 0)?;
            alignment(align)?;
            want(
                args[0].is_ptr() && args[1].is_ptr(),
                "address is no pointer",
            )
        }
        AtomicLoad { .. } => atomic(args, results, 0),
        AtomicStore { .. } => {
            arity(args, results, 2, 0)?;
            pointer(args)?;
            in_memory(&args[1..])
        }
        AtomicRmw { .. } => {
            atomic(args, results, 1)?;
            want(scalar(results[0]), "not a number")
        }
        AtomicCmpXchg { .. } => atomic(args, results, 2),
        VarLoad(var) | VarAtomicLoad { var, .. } => element(func, var, args, results, (0, 1)),
        VarStore(var) | VarAtomicStore { var, .. } => element(func, var, args, results, (1, 0)),
        VarRmw { var, .. } => element(func, var, args, results, (1, 1)),
        VarCmpXchg { var, .. } => element(func, var, args, results, (2, 1)),
        Barrier { .. } | Fence { .. } => arity(args, results, 0, 0),
        Clock(_) => given(args, results, Type::I64, "result is no i64"),
        Group(op, scope) => check_group(op, scope, args, results),
        Builtin(builtin) => given(
            args,
            results,
            builtin_type(builtin),
            "not of the type of the built-in variable",
        ),
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
        ImageNumber => {
            arity(args, results, 1, 1)?;
            want(args[0] == Type::Handle, "no image")?;
            want(results[0] == Type::I64, "result is no i64")
        }
        ImageAt(_) => {
            arity(args, results, 1, 1)?;
            want(args[0] == Type::I64, "no number")?;
            want(results[0] == Type::Handle, "result is no image")
        }
        SamplerAt => {
            arity(args, results, 1, 1)?;
            want(args[0] == Type::I64, "no number")?;
            want(results[0] == Type::Handle, "result is no sampler")
        }
        TexelFetch(slot) | TexelLoad(slot) => {
            arity(args, results, 3, 4)?;
            texel_access(args, &[], results, slot.texel)
        }
        TexelStore(slot) => {
            arity(args, results, 7, 0)?;
            texel_access(&args[..3], &args[3..], &[], slot.texel)
        }
        Hw(_) | SpecSize(_) => given(args, results, Type::I32, "result is no i32"),
        Own { .. } => given(
            args,
            results,
            Type::Ptr(Space::Global),
            "result is no ptr.global",
        ),
        Implicit(which, component) => implicit(which, component, args, results),
        ArgLoad(_) => {
            arity(args, results, 0, results.len())?;
            one_type(results).map(|_| ())
        }
        Call(id) => call(module, id, args, results),
        Printf(site) => printf(module, site, args, results),
    }
}

/// Checks an access to an image: coordinates, components written and components read.
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

/// Returns the type of an OpenCL built-in variable.
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
