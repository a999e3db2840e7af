//! Calls of built-in functions become native operations where the target's are good enough.
//!
//! Runs before inlining, on calls by (mangled) name. What is left goes to the built-in library.
//!
//! - `fma`: only where the target's is fused.
//! - `sqrt`: where it is correctly rounded; in single precision OpenCL grants 3 ulp unless
//!   -cl-fp32-correctly-rounded-divide-sqrt, which the Vulkan instruction meets.
//! - `native_*`: always; precision is up to the implementation.
//! - Half precision `sqrt` and `rsqrt` by way of single precision.
//! - With unsafe math, the functions whose Vulkan precision meets the bounds of -cl-fast-relaxed-math.

use super::rewrite::{rewrite, Action, Rewriter};
use crate::error::Result;
use crate::ir::entity::{FuncId, Value};
use crate::ir::function::Function;
use crate::ir::op::{NativeFn, Op, Rounding};
use crate::ir::types::Type;
use crate::program::Options;
use crate::target::Target;

/// What may be replaced.
#[derive(Debug, Clone, Copy)]
pub struct Config {
    correct_sqrt: bool,
    unsafe_math: bool,
}

impl Config {
    /// From the options of the build.
    pub fn new(options: &Options) -> Self {
        Self {
            correct_sqrt: options.correctly_rounded_divide_sqrt,
            unsafe_math: options.unsafe_math,
        }
    }
}

/// `sin`, 'f' of `_Z3sinf`: the plain name and the letters of the parameters.
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
        "fma" if caps.fused_fma && x.len() == 3 => {
            return Some(r.op(Op::Fma, x.iter().copied(), ty))
        }
        "sqrt" if ty != Type::F16 && caps.exact_sqrt => {
            return Some(r.op(Op::FSqrt, x.iter().copied(), ty))
        }
        "sqrt" | "rsqrt" if ty == Type::F16 => {
            // Single precision has more than twice the bits: rounding twice is harmless.
            let wide = r.op(Op::FConv(Rounding::Rte), x.iter().copied(), Type::F32);
            let f = if name == "sqrt" {
                NativeFn::Sqrt
            } else {
                NativeFn::Rsqrt
            };
            let y = F32(r).native(f, &[wide]);
            return Some(r.op(Op::FConv(Rounding::Rte), [y], ty));
        }
        _ => {}
    }
    if ty != Type::F32 {
        return None;
    }
    match name {
        "sqrt" if !config.correct_sqrt => F32(r).function("sqrt", x),
        "rsqrt" | "half_sqrt" | "half_rsqrt" | "half_recip" | "half_divide" | "half_exp2"
        | "half_log2" => F32(r).function(name.strip_prefix("half_").unwrap_or(name), x),
        "sin" | "cos" | "tan" | "exp" | "exp2" | "exp10" | "log" | "log2" | "log10" | "powr"
            if config.unsafe_math =>
        {
            F32(r).function(name, x)
        }
        _ => F32(r).function(name.strip_prefix("native_")?, x),
    }
}

/// Runs the pass. `name` gives the name of an imported or library function.
pub fn run(
    func: &mut Function,
    name: &dyn Fn(FuncId) -> Option<String>,
    target: &Target,
    config: Config,
) -> Result<()> {
    rewrite(func, |r, inst| {
        let Op::Call(callee) = r.func.insts[inst].op else {
            return Ok(Action::Keep);
        };
        let Some(name) = name(callee) else {
            return Ok(Action::Keep);
        };
        let Some((plain, letters)) = demangle(&name) else {
            return Ok(Action::Keep);
        };
        let args: Vec<Value> = r.data(inst).args.iter().map(|&v| r.resolve(v)).collect();
        match native(r, plain, letters, &args, target, config) {
            Some(value) => Ok(r.replace_result(inst, value)),
            None => Ok(Action::Keep),
        }
    })
}

#[cfg(test)]
mod tests {
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
}
