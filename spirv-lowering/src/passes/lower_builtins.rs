//! Replaces calls of built-in functions by native operations where the target's are precise enough.
//!
//! Runs before inlining, on calls by (mangled) name. The remaining calls go to the built-in
//! library.
//!
//! - `fma`: only where the target's is fused. Without double precision the software of the library
//!   is another one, and libclc's own functions of doubles, which call it hundreds of times, get
//!   one that is rounded nearly once.
//! - `sqrt`: where it is correctly rounded; in single precision OpenCL grants 3 ulp unless
//!   -cl-fp32-correctly-rounded-divide-sqrt, which the Vulkan instruction meets.
//! - `native_*`: always where there are such instructions; precision is up to the implementation.
//! - Half precision `sqrt` and `rsqrt` by way of a wider type.
//! - With unsafe math, the functions whose precision meets the bounds of -cl-fast-relaxed-math:
//!   exponentials and logarithms only where the target's were measured to.
//!
//! Division must be correctly rounded in half and double precision, and with
//! -cl-fp32-correctly-rounded-divide-sqrt in single precision too. Where the target's is not, it
//! goes by way of a wider type whose division is, or else to a function of the library
//! ([`Helper`]). Where subnormals are flushed, the divisor is scaled, since its reciprocal may be
//! one.

use crate::edit::rewrite::{rewrite, InstEdit, Rewriter};
use crate::error::Result;
use crate::ir::entity::{Entity, FuncId, Value};
use crate::ir::function::{FpFlags, Function, Linkage};
use crate::ir::op::{FloatCond, NativeFn, Op, Rounding};
use crate::ir::types::Type;
use crate::options::Options;
use crate::quirks::CodeQuirk;
use crate::target::Target;

/// The replacements that are allowed in a function.
#[derive(Debug, Clone, Copy)]
pub struct Config {
    correct_rounding: bool,
    unsafe_math: bool,
    /// The number of the first helper, or `None` without a library to take them from.
    helpers: Option<usize>,
    /// Set for libclc's functions that do not depend on the rounding of `fma` in double precision.
    near_fma: bool,
}

/// The functions of libclc whose results must be exact.
const EXACT: [&str; 3] = ["fmod", "remainder", "remquo"];

impl Config {
    /// Creates the configuration of a build from its options. Helpers will be functions from number
    /// `first_helper` on.
    pub fn new(options: &Options, first_helper: usize) -> Self {
        Self {
            correct_rounding: options.correctly_rounded_divide_sqrt,
            unsafe_math: options.unsafe_math,
            helpers: options.library.map(|_| first_helper),
            near_fma: false,
        }
    }

    /// Returns the configuration for one function.
    pub fn of(self, func: &Function, options: &Options) -> Self {
        let of_libclc = func.linkage == Linkage::LinkOnce
            && options.library.is_some_and(|l| l.is_libclc(&func.name));
        let plain = demangle(&func.name).map_or("", |(name, _)| name);
        let exact = EXACT.contains(&plain.trim_start_matches("__clc_"));
        // The bounds of -cl-fast-relaxed-math are wider than those of these functions, but for exponentials.
        let half = func.linkage == Linkage::LinkOnce
            && plain.starts_with("half_")
            && !plain.starts_with("half_exp");
        Self {
            near_fma: of_libclc && !exact,
            unsafe_math: self.unsafe_math && !half,
            ..self
        }
    }

    fn helper(self, helper: Helper) -> Option<FuncId> {
        Some(FuncId::new(self.helpers? + helper as usize))
    }
}

/// A function of the library that replaces an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Helper {
    /// Correctly rounded division in single precision.
    Divide32,
    /// Correctly rounded division in double precision.
    Divide64,
    /// Fused multiply-add in single precision that needs no double precision.
    Fma32,
    /// Multiply-add in double precision that is nearly rounded once.
    NearFma64,
}

impl Helper {
    /// All helpers, in the order of their numbers.
    pub const ALL: [Self; 4] = [Self::Divide32, Self::Divide64, Self::Fma32, Self::NearFma64];

    /// Returns an import of the function.
    pub fn import(self) -> Function {
        let (name, ty, arity) = match self {
            Self::Divide32 => ("_Z15__pumice_divideff", Type::F32, 2),
            Self::Divide64 => ("_Z15__pumice_dividedd", Type::F64, 2),
            Self::Fma32 => ("_Z12__pumice_fmafff", Type::F32, 3),
            Self::NearFma64 => ("_Z17__pumice_fma_nearddd", Type::F64, 3),
        };
        Function {
            name: name.to_owned(),
            linkage: Linkage::Import,
            params: vec![ty; arity],
            results: vec![ty],
            ..Function::default()
        }
    }
}

/// Splits `_Z3sinf` into `sin` and `f`: the plain name and the letters of the parameters.
fn demangle(name: &str) -> Option<(&str, &str)> {
    let rest = name.strip_prefix("_Z")?;
    let digits = rest.find(|c: char| !c.is_ascii_digit())?;
    let length: usize = rest.get(..digits)?.parse().ok()?;
    let rest = rest.get(digits..)?;
    Some((rest.get(..length)?, rest.get(length..)?))
}

const LOG2_E: u32 = 0x3fb8_aa3b;
const LOG2_10: u32 = 0x4054_9a78;
const LN_2: u32 = 0x3f31_7218;
const LOG10_2: u32 = 0x3e9a_209b;
const ONE: u32 = 0x3f80_0000;

struct F32<'a, 'f>(&'a mut Rewriter<'f>);

impl F32<'_, '_> {
    fn native(&mut self, f: NativeFn, args: &[Value]) -> Value {
        self.0.op(Op::FNative(f), args.iter().copied(), Type::F32)
    }
    fn scaled(&mut self, x: Value, by: u32) -> Value {
        self.0.with_const(Op::FMul, x, by.into())
    }
    fn one(&mut self) -> Value {
        self.0.konst(Type::F32, ONE.into())
    }
    fn function(&mut self, name: &str, x: &[Value]) -> Option<Value> {
        use NativeFn::*;
        Some(match (name, x) {
            ("sin", _) => self.native(Sin, x),
            ("cos", _) => self.native(Cos, x),
            ("tan", _) => {
                let (s, c) = (self.native(Sin, x), self.native(Cos, x));
                self.0.same(Op::FDiv, [s, c])
            }
            ("exp2", _) => self.native(Exp2, x),
            ("exp", &[x]) => {
                let x = self.scaled(x, LOG2_E);
                self.native(Exp2, &[x])
            }
            ("exp10", &[x]) => {
                let x = self.scaled(x, LOG2_10);
                self.native(Exp2, &[x])
            }
            ("log2", _) => self.native(Log2, x),
            ("log", _) => {
                let y = self.native(Log2, x);
                self.scaled(y, LN_2)
            }
            ("log10", _) => {
                let y = self.native(Log2, x);
                self.scaled(y, LOG10_2)
            }
            ("powr", &[x, y]) => {
                let log = self.native(Log2, &[x]);
                let product = self.0.same(Op::FMul, [y, log]);
                self.native(Exp2, &[product])
            }
            ("divide", &[x, y]) => self.0.same(Op::FDiv, [x, y]),
            ("recip", &[x]) => {
                let one = self.one();
                self.0.same(Op::FDiv, [one, x])
            }
            ("rsqrt", _) => self.native(Rsqrt, x),
            ("sqrt", _) => self.native(Sqrt, x),
            _ => return None,
        })
    }
}

fn native(
    r: &mut Rewriter,
    name: &str,
    letters: &str,
    x: &[Value],
    target: &Target,
    config: Config,
) -> Option<Value> {
    // The library's way to the dot products of bytes.
    let dot = match (name, x) {
        ("__pumice_dot_ss", &[a, b]) => Some((Op::SDot4, [a, b])),
        ("__pumice_dot_uu", &[a, b]) => Some((Op::UDot4, [a, b])),
        ("__pumice_dot_su", &[a, b]) => Some((Op::SUDot4, [a, b])),
        ("__pumice_dot_us", &[a, b]) => Some((Op::SUDot4, [b, a])),
        _ => None,
    };
    if let Some((op, args)) = dot {
        let fits = args.iter().all(|&v| r.func.ty(v) == Type::I32);
        return fits.then(|| r.op(op, args, Type::I32));
    }
    let (ty, caps) = match letters.strip_prefix("Dh") {
        Some(_) => (Type::F16, target.fp16),
        None if letters.starts_with('f') => (Type::F32, target.fp32),
        None if letters.starts_with('d') => (Type::F64, target.fp64),
        None => return None,
    };
    if !x.iter().all(|&v| r.func.ty(v) == ty) {
        return None;
    }
    match name {
        // Questions of the library.
        "__pumice_has_fma" => return Some(r.konst(Type::I32, caps.fused_fma.into())),
        "__pumice_fused" if x.len() == 3 => return Some(r.op(Op::Fma, x.iter().copied(), ty)),
        "fma" if caps.fused_fma && x.len() == 3 => {
            return Some(r.op(Op::Fma, x.iter().copied(), ty))
        }
        "fma" if ty == Type::F32 && !target.fp64.supported && x.len() == 3 => {
            let helper = config.helper(Helper::Fma32)?;
            return Some(r.op(Op::Call(helper), x.iter().copied(), ty));
        }
        "fma" if ty == Type::F64 && config.near_fma && x.len() == 3 => {
            let helper = config.helper(Helper::NearFma64)?;
            return Some(r.op(Op::Call(helper), x.iter().copied(), ty));
        }
        "sqrt" if ty != Type::F16 && caps.exact_sqrt => {
            return Some(r.op(Op::FSqrt, x.iter().copied(), ty))
        }
        "sqrt" | "rsqrt" if ty == Type::F16 => {
            // Single precision has more than twice the bits: rounding twice is harmless.
            let y = if name == "sqrt" && !target.fp32.exact_sqrt && target.fp64.exact_sqrt {
                let wide = r.op(Op::FConv(Rounding::Rte), x.iter().copied(), Type::F64);
                r.same(Op::FSqrt, [wide])
            } else {
                let wide = r.op(Op::FConv(Rounding::Rte), x.iter().copied(), Type::F32);
                let f = if name == "sqrt" {
                    NativeFn::Sqrt
                } else {
                    NativeFn::Rsqrt
                };
                F32(r).native(f, &[wide])
            };
            return Some(r.op(Op::FConv(Rounding::Rte), [y], ty));
        }
        "sqrt" if ty == Type::F32 && config.correct_rounding && target.fp64.exact_sqrt => {
            let wide = r.op(Op::FConv(Rounding::Rte), x.iter().copied(), Type::F64);
            let root = r.same(Op::FSqrt, [wide]);
            return Some(r.op(Op::FConv(Rounding::Rte), [root], ty));
        }
        _ => {}
    }
    if ty != Type::F32 {
        return None;
    }
    // A processor has no instructions for these: the library's are vectors, the C library's are not.
    let plain = name
        .strip_prefix("native_")
        .or_else(|| name.strip_prefix("half_"))
        .unwrap_or(name);
    let transcendental = matches!(
        plain,
        "sin" | "cos" | "tan" | "exp" | "exp2" | "exp10" | "log" | "log2" | "log10" | "powr"
    );
    if target.native && transcendental {
        return None;
    }
    match name {
        "sqrt" if !config.correct_rounding => F32(r).function("sqrt", x),
        // Scaled, see `divide_scaled`.
        "half_recip" | "half_divide" if !caps.keeps_denormals() => None,
        "rsqrt" | "half_sqrt" | "half_rsqrt" | "half_recip" | "half_divide" | "half_exp2" => {
            F32(r).function(name.strip_prefix("half_").unwrap_or(name), x)
        }
        "exp" | "exp2" if config.unsafe_math && !target.good_exp2 => None,
        "log" | "log2" | "log10" if config.unsafe_math && !target.good_log2 => None,
        "sin" | "cos" | "tan" | "exp" | "exp2" | "exp10" | "log" | "log2" | "log10" | "powr"
            if config.unsafe_math =>
        {
            F32(r).function(name, x)
        }
        _ => F32(r).function(name.strip_prefix("native_")?, x),
    }
}

/// The bits of 2^96, and below those of 2^-32.
const LARGE: u64 = 0x6f80_0000;
const SCALE: u64 = 0x2f80_0000;

/// Emits a single-precision division with a scaled divisor, where the reciprocal of a large number
/// is flushed to zero.
fn divide_scaled(r: &mut Rewriter, x: Value, y: Value) -> Value {
    let magnitude = r.same(Op::FAbs, [y]);
    let large = r.konst(Type::F32, LARGE);
    let is_large = r.fcmp(FloatCond::Ogt, magnitude, large);
    let (scale, one) = (r.konst(Type::F32, SCALE), r.konst(Type::F32, ONE.into()));
    let scale = r.select(is_large, scale, one);
    let divisor = r.same(Op::FMul, [y, scale]);
    let quotient = r.same(Op::FDiv, [x, divisor]);
    r.same(Op::FMul, [quotient, scale])
}

/// Replaces a division that must be correctly rounded, on a target whose own is not.
fn divide(r: &mut Rewriter, x: Value, y: Value, target: &Target, config: Config) -> Option<Value> {
    let ty = r.func.ty(x);
    let helper = match ty {
        Type::F16 if !target.fp16.exact_div => Helper::Divide32,
        Type::F32 if !target.fp32.exact_div && config.correct_rounding => Helper::Divide32,
        Type::F64 if !target.fp64.exact_div => Helper::Divide64,
        Type::F32 if !target.fp32.keeps_denormals() => return Some(divide_scaled(r, x, y)),
        _ => return None,
    };
    // A quotient rounded to more than twice the bits can be rounded again.
    let through = [(Type::F32, target.fp32), (Type::F64, target.fp64)];
    let wide = through
        .into_iter()
        .find(|(wide, caps)| wide.bits() > ty.bits() && caps.supported && caps.exact_div);
    if wide.is_none() && ty != Type::F16 {
        let helper = config.helper(helper)?;
        return Some(r.op(Op::Call(helper), [x, y], ty));
    }
    let via = wide.map_or(Type::F32, |(wide, _)| wide);
    let wide_x = r.op(Op::FConv(Rounding::Rte), [x], via);
    let wide_y = r.op(Op::FConv(Rounding::Rte), [y], via);
    let quotient = match wide {
        Some(_) => r.same(Op::FDiv, [wide_x, wide_y]),
        None => r.op(Op::Call(config.helper(helper)?), [wide_x, wide_y], via),
    };
    Some(r.op(Op::FConv(Rounding::Rte), [quotient], ty))
}

/// Runs the pass. `name` returns the name of an imported or library function.
pub fn run(
    func: &mut Function,
    name: &dyn Fn(FuncId) -> Option<String>,
    target: &Target,
    config: Config,
) -> Result<()> {
    rewrite(func, |r, inst| {
        if r.func.insts[inst].op == Op::FDiv && !r.func.insts[inst].fp.has(FpFlags::ARCP) {
            let &[x, y] = r.data(inst).args.as_slice() else {
                return Ok(InstEdit::Keep);
            };
            let (x, y) = (r.resolve(x), r.resolve(y));
            return Ok(match divide(r, x, y, target, config) {
                Some(value) => r.replace_result(inst, value),
                None => InstEdit::Keep,
            });
        }
        let Op::Call(callee) = r.func.insts[inst].op else {
            return Ok(InstEdit::Keep);
        };
        let Some(name) = name(callee) else {
            return Ok(InstEdit::Keep);
        };
        if name == "__clc_fp32_subnormals_supported" {
            let value = r.konst(Type::Bool, target.fp32.keeps_denormals().into());
            return Ok(r.replace_result(inst, value));
        }
        let Some((plain, letters)) = demangle(&name) else {
            return Ok(InstEdit::Keep);
        };
        let known = match plain {
            "pumice_device_filters" => Some(target.device_filters),
            "pumice_checks_images" => Some(target.checks_images),
            "pumice_saturates_nan" => Some(target.quirks.has(CodeQuirk::NanTexels)),
            _ => None,
        };
        if let Some(known) = known {
            let value = r.konst(Type::I32, known.into());
            return Ok(r.replace_result(inst, value));
        }
        let args: Vec<Value> = r.data(inst).args.iter().map(|&v| r.resolve(v)).collect();
        match native(r, plain, letters, &args, target, config) {
            Some(value) => Ok(r.replace_result(inst, value)),
            None => Ok(InstEdit::Keep),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::{run, Config};
    use crate::ir::entity::{Entity, FuncId};
    use crate::ir::parse::parse_module;
    use crate::ir::print::raw;
    use crate::target::{FloatCaps, Target};

    #[test]
    fn demangling() {
        assert_eq!(super::demangle("_Z3sinf"), Some(("sin", "f")));
        assert_eq!(
            super::demangle("_Z11native_sqrtDh"),
            Some(("native_sqrt", "Dh"))
        );
        assert_eq!(super::demangle("_Z99sinf"), None);
        assert_eq!(super::demangle("sinf"), None);
    }

    fn lowered(ty: &str, correct_rounding: bool, change: impl Fn(&mut Target)) -> String {
        let text = format!(
            "func fn0 \"f\" ({ty}, {ty}) -> ({ty}) {{\nblock0(v0: {ty}, v1: {ty}):\n  v2 = fdiv v0, v1 : {ty}\n  \
             return v2\n}}\n"
        );
        let mut module = parse_module(&text).expect("parse");
        let mut target = Target::full();
        change(&mut target);
        let config = Config {
            correct_rounding,
            unsafe_math: false,
            helpers: Some(7),
            near_fma: false,
        };
        let func = &mut module.functions[FuncId::new(0)];
        run(func, &|_| None, &target, config).expect("run");
        let text = raw(func).to_string();
        text
    }

    #[test]
    fn divisors_are_scaled_where_subnormals_are_flushed() {
        let flushed = lowered("f32", false, |t| {
            t.fp32.denormals = false;
            t.fp32.denorm_preserve = false;
        });
        assert_eq!(flushed.matches("fmul").count(), 2, "{flushed}");
        assert_eq!(flushed.matches("fdiv").count(), 1, "{flushed}");
        assert!(!lowered("f32", false, |_| ()).contains("fmul"));
    }

    #[test]
    fn fma_of_doubles_is_the_devices_the_near_or_the_exact_one() {
        let lowered = |near_fma: bool, fused: bool| {
            let text = "func fn0 \"_Z3fmaddd\" import (f64, f64, f64) -> (f64)\n\
                        func fn1 \"f\" (f64) -> (f64) {\nblock0(v0: f64):\n  v1 = call.fn0 v0, v0, v0 : f64\n  \
                        return v1\n}\n";
            let mut module = parse_module(text).expect("parse");
            let mut target = Target::full();
            target.fp64.fused_fma = fused;
            let config = Config {
                correct_rounding: false,
                unsafe_math: false,
                helpers: Some(7),
                near_fma,
            };
            let func = &mut module.functions[FuncId::new(1)];
            let name = |id: FuncId| (id.index() == 0).then(|| "_Z3fmaddd".to_owned());
            run(func, &name, &target, config).expect("run");
            let text = raw(func).to_string();
            text
        };
        for near in [false, true] {
            assert!(lowered(near, true).contains("= fma v0"));
        }
        assert!(lowered(true, false).contains("call.fn10"));
        assert!(lowered(false, false).contains("call.fn0 "));
    }

    #[test]
    fn inexact_division_goes_another_way() {
        let inexact = |caps: &mut FloatCaps| caps.exact_div = false;
        // Good enough, or not asked for.
        assert!(lowered("f32", true, |_| ()).contains("fdiv"));
        assert!(!lowered("f32", false, |t| inexact(&mut t.fp32)).contains("f64"));
        let wide = lowered("f32", true, |t| inexact(&mut t.fp32));
        assert!(wide.contains("fdiv") && wide.contains("f64"), "{wide}");
        let called = lowered("f32", true, |t| {
            inexact(&mut t.fp32);
            t.fp64 = FloatCaps::NONE;
        });
        assert!(called.contains("call.fn7"), "{called}");
        let double = lowered("f64", false, |t| inexact(&mut t.fp64));
        assert!(double.contains("call.fn8"), "{double}");
        let half = lowered("f16", false, |t| {
            inexact(&mut t.fp16);
            inexact(&mut t.fp32);
            inexact(&mut t.fp64);
        });
        assert!(half.contains("call.fn7"), "{half}");
        assert!(half.contains("f32"), "{half}");
    }
}
