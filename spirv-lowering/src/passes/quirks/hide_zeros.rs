//! Zeros that floats are multiplied by, divided by or added to are no constants any more, for llvmpipe: its code generator takes
//! `x * 0` and `0 / x` for 0, `x + 0` for x and `x / 0` for anything, whatever x is, so that infinities, NaN and signs of zeros
//! are lost (`lp_build_mul`, `lp_build_div`, `lp_build_add`; what SignedZeroInfNanPreserve and NoContraction say does not reach
//! them).
//!
//! Only a zero without a sign is known there as one. `x - 0` is x in any case; `0 - x` becomes an addition, and so does `x - -0`,
//! of a zero whose sign is gone by then. A product by `-0` is taken for a zero without a sign by what NIR knows of ranges, which then
//! leaves an `fabs` of it out. And a choice between one and a zero of the other sign (`select`, or ways that meet), or integers
//! with their bits, is a conversion of the condition for it, which gives a zero of the same sign. So it is for NVIDIA's compiler.
//!
//! Once the driver has unrolled a loop, what the loop begins with is a constant in its first iteration, and a counter in each: so a
//! zero that a loop begins with is hidden, too, and so is a counter that becomes a float.

use crate::analysis::cfg::Cfg;
use crate::analysis::dom::DomTree;
use crate::analysis::loops::LoopForest;
use crate::edit::rewrite::{rewrite, Action, Rewriter};
use crate::edit::unknown_zero::{hide, unknown_zero};
use crate::error::Result;
use crate::ir::entity::{Inst, Value};
use crate::ir::function::{FpFlags, Function, InstData};
use crate::ir::op::Op;
use crate::ir::types::Type;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

/// Which zeros are hidden.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Zeros {
    /// Those that are chosen, or else one of the other sign.
    Chosen,
    /// Those of arithmetic, too.
    All,
}

/// Runs the pass, when no constants will be found any more. Returns whether anything changed.
pub fn run(func: &mut Function, which: Zeros) -> Result<bool> {
    let found: FxHashSet<Inst> = (func.layout.iter())
        .flat_map(|&block| func.blocks[block].insts.iter().copied())
        .filter(|&inst| which == Zeros::All || func.insts[inst].op == Op::Select)
        .filter(|&inst| operands(&func.insts[inst]).any(|at| is_zero(func, inst, at)))
        .collect();
    let mut brought = brought(func);
    let mut counted = FxHashSet::default();
    if which == Zeros::All {
        let loops = Loops::new(func);
        brought.extend(loops.zeros.iter().map(|&zero| (zero, zero)));
        counted = loops.conversions(func);
    }
    if found.is_empty() && brought.is_empty() && counted.is_empty() {
        return Ok(false);
    }
    rewrite(func, |r, inst| {
        let data = &r.func.insts[inst];
        if let (Some(&value), &Op::Const(bits)) = (data.results.first(), &data.op) {
            if let Some(hides) = brought.get_mut(&value) {
                *hides = hidden(r, r.func.ty(value), bits);
            }
        }
        if counted.contains(&inst) {
            let counter = r.resolve(r.func.insts[inst].args[0]);
            r.func.insts[inst].args[0] = hide(r, counter);
        }
        if !found.contains(&inst) {
            return Ok(Action::Keep);
        }
        for at in operands(&r.func.insts[inst]) {
            if is_zero(r.func, inst, at) {
                let arg = r.func.insts[inst].args[at];
                let (ty, bits) = (r.func.ty(arg), r.func.as_const(arg).unwrap_or(0));
                let zero = hidden(r, ty, bits);
                r.func.insts[inst].args[at] = zero;
            }
        }
        Ok(Action::Keep)
    })?;
    if !brought.is_empty() {
        bring(func, &brought);
    }
    Ok(true)
}

/// One and a zero of the other sign, or integers with their bits.
fn are_apart(ty: Type, one: u64, zero: u64) -> bool {
    let plus = match ty {
        Type::F16 | Type::I16 => 0x3c00,
        Type::F32 | Type::I32 => 0x3f80_0000,
        Type::F64 | Type::I64 => 0x3ff0_0000_0000_0000,
        _ => return false,
    };
    let sign = 1u64 << (ty.bits() - 1);
    (one & !sign, zero & !sign) == (plus, 0) && (one ^ zero) & sign != 0
}

/// Zeros that edges bring where others bring one of the other sign; for each, later, what hides it.
fn brought(func: &Function) -> FxHashMap<Value, Value> {
    let mut constants: FxHashMap<Value, SmallVec<[(Value, u64); 2]>> = FxHashMap::default();
    for &block in &func.layout {
        for edge in func.blocks[block].term.targets() {
            for (&param, &arg) in func.blocks[edge.block].params.iter().zip(&edge.args) {
                if let Some(bits) = func.as_const(arg) {
                    constants.entry(param).or_default().push((arg, bits));
                }
            }
        }
    }
    let mut found = FxHashMap::default();
    for (param, known) in constants {
        let ty = func.ty(param);
        let apart = |zero: u64| known.iter().any(|&(_, one)| are_apart(ty, one, zero));
        let zeros = known.iter().filter(|&&(_, zero)| apart(zero));
        found.extend(zeros.map(|&(value, _)| (value, value)));
    }
    found
}

/// What the driver may know once it has unrolled a loop.
struct Loops {
    /// Zeros without a sign that floats begin with.
    zeros: Vec<Value>,
    /// Integers that begin as constants.
    counters: FxHashSet<Value>,
}

impl Loops {
    fn new(func: &Function) -> Self {
        let cfg = Cfg::new(func);
        let forest = LoopForest::new(&cfg, &DomTree::new(&cfg));
        let (mut zeros, mut counters) = (Vec::new(), FxHashSet::default());
        for &block in &func.layout {
            for edge in func.blocks[block].term.targets() {
                if forest.headed_by(edge.block).is_none() {
                    continue;
                }
                for (&param, &arg) in func.blocks[edge.block].params.iter().zip(&edge.args) {
                    match func.as_const(arg) {
                        Some(0) if func.ty(arg).is_float() => zeros.push(arg),
                        Some(_) if func.ty(arg).is_int() => _ = counters.insert(param),
                        _ => {}
                    }
                }
            }
        }
        Self { zeros, counters }
    }

    /// The conversions to floats of counters, and of those with a constant more, or made longer.
    fn conversions(&self, func: &Function) -> FxHashSet<Inst> {
        let is_counter = |mut value: Value| loop {
            if self.counters.contains(&value) {
                return true;
            }
            let Some(inst) = func.def_inst(value).map(|inst| &func.insts[inst]) else {
                return false;
            };
            value = match (&inst.op, inst.args.as_slice()) {
                (Op::SExt | Op::ZExt | Op::Trunc, &[arg]) => arg,
                (Op::IAdd | Op::ISub, &[a, b]) if func.as_const(b).is_some() => a,
                (Op::IAdd | Op::ISub, &[a, b]) if func.as_const(a).is_some() => b,
                _ => return false,
            };
        };
        (func.layout.iter())
            .flat_map(|&block| func.blocks[block].insts.iter().copied())
            .filter(|&inst| matches!(func.insts[inst].op, Op::SToF(_) | Op::UToF(_)))
            .filter(|&inst| func.insts[inst].args.iter().any(|&arg| is_counter(arg)))
            .collect()
    }
}

/// Edges bring what hides the zeros.
fn bring(func: &mut Function, hides: &FxHashMap<Value, Value>) {
    for block in func.layout.clone() {
        for edge in func.blocks[block].term.targets_mut() {
            for arg in &mut edge.args {
                *arg = hides.get(arg).copied().unwrap_or(*arg);
            }
        }
    }
}

/// The operands of which a zero may be taken for one that settles the result, where the result then is another.
fn operands(data: &InstData) -> std::ops::Range<usize> {
    let unsigned = data.fp.has(FpFlags::NSZ);
    match data.op {
        Op::FMul if !(unsigned && data.fp.has(FpFlags::NNAN)) => 0..2,
        Op::FAdd if !unsigned => 0..2,
        Op::FSub if !unsigned => 0..2,
        Op::FDiv => 0..2,
        Op::Fma => 0..3,
        Op::Select => 1..3,
        _ => 0..0,
    }
}

fn is_zero(func: &Function, inst: Inst, at: usize) -> bool {
    let data = &func.insts[inst];
    let Some(&arg) = data.args.get(at) else {
        return false;
    };
    let Some(bits) = func.as_const(arg) else {
        return false;
    };
    let negative = bits == 1 << (func.ty(arg).bits() - 1);
    match data.op {
        Op::FSub if at == 1 => negative,
        Op::FMul => bits == 0 || negative,
        Op::Fma => bits == 0 || negative && at < 2,
        Op::Select => func
            .as_const(data.args[3 - at])
            .is_some_and(|other| are_apart(func.ty(arg), other, bits)),
        _ => bits == 0,
    }
}

/// A zero with the bits of that constant.
fn hidden(r: &mut Rewriter, ty: Type, bits: u64) -> Value {
    let word = match ty.bits() {
        16 => Type::I16,
        32 => Type::I32,
        _ => Type::I64,
    };
    let mut zero = unknown_zero(r, word);
    if bits != 0 {
        zero = r.with_const(Op::Or, zero, bits);
    }
    if word == ty {
        return zero;
    }
    r.op(Op::Bitcast, [zero], ty)
}
