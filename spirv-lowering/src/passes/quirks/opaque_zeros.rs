//! Makes constant zeros opaque where floats are multiplied by them, divided by them or added to them.
//!
//! llvmpipe's code generator folds `x * 0` and `0 / x` to 0, `x + 0` to x and `x / 0` to anything, whatever x is, so that infinities,
//! NaN and signs of zeros are lost (`lp_build_mul`, `lp_build_div`, `lp_build_add`). SignedZeroInfNanPreserve and NoContraction do
//! not reach them.
//!
//! The driver recognises only a zero without a sign. `x - 0` is x in any case; `0 - x` becomes an addition, and so does `x - -0`, of a zero
//! that has lost its sign by then. NIR's range analysis takes a product by `-0` for a zero without a sign and removes an `fabs` of
//! it. A choice between one and a zero of the other sign (`select`, or paths that join), or integers with their bits, becomes a
//! conversion of the condition, which gives a zero of the same sign. NVIDIA's compiler does the same.
//!
//! The driver may find more constants than this compiler: the other value of a choice or path that it knows is never taken, the
//! values of an induction variable in a loop that it has unrolled, and a stored value where the kernel loads it. So zeros that are
//! chosen, passed to block parameters or stored are made opaque, too, and so is what is converted to a float and computed from
//! induction variables and the contents of private arrays alone.

use crate::analysis::control_flow::ControlFlow;
use crate::edit::opaque::{opaque, opaque_const, opaque_zero};
use crate::edit::rewrite::{rewrite, InstEdit, Rewriter};
use crate::error::Result;
use crate::ir::entity::{Inst, Value};
use crate::ir::function::{FpFlags, Function, InstData, Storage};
use crate::ir::op::{Effect, Op};
use crate::ir::types::Type;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

/// The zeros that become opaque.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Zeros {
    /// Zeros of which a selection or branch chooses one, or else a number of the other sign.
    Chosen,
    /// Zeros of arithmetic, too.
    All,
}

/// Runs the pass, after the last folding of constants. Returns true if anything changed.
pub fn run(func: &mut Function, which: Zeros) -> Result<bool> {
    let insts = || func.layout_insts().copied();
    let width = insts().filter_map(|inst| settled_width(func, inst)).min();
    let floats = Floats::new(func, width.filter(|_| which == Zeros::All));
    let all = floats.width.is_some();
    let found: FxHashSet<Inst> = insts()
        .filter(|&inst| all || func.insts[inst].op == Op::Select)
        .filter(|&inst| operands(&func.insts[inst]).any(|at| is_zero(func, inst, at, &floats)))
        .collect();
    let PassedZeros { params, mut zeros } = PassedZeros::new(func, &floats);
    let predictable = if all {
        conversions(func)
    } else {
        FxHashSet::default()
    };
    if found.is_empty() && params.is_empty() && predictable.is_empty() {
        return Ok(false);
    }
    rewrite(func, |r, inst| {
        let data = &r.func.insts[inst];
        if let (Some(&value), &Op::Const(bits)) = (data.results.first(), &data.op) {
            if let Some(opaque) = zeros.get_mut(&value) {
                *opaque = opaque_const(r, r.func.ty(value), bits);
            }
        }
        if predictable.contains(&inst) {
            let counter = r.resolve(r.func.insts[inst].args[0]);
            r.func.insts[inst].args[0] = opaque(r, counter);
        }
        if !found.contains(&inst) {
            return Ok(InstEdit::Keep);
        }
        for at in operands(&r.func.insts[inst]) {
            if is_zero(r.func, inst, at, &floats) {
                let arg = r.func.insts[inst].args[at];
                let (ty, bits) = (r.func.ty(arg), r.func.as_const(arg).unwrap_or(0));
                let zero = if floats.are_parts(ty) {
                    opaque_parts(r, ty, bits)
                } else {
                    opaque_const(r, ty, bits)
                };
                r.func.insts[inst].args[at] = zero;
            }
        }
        Ok(InstEdit::Keep)
    })?;
    pass_opaque(func, &params, &zeros);
    Ok(true)
}

/// Values of which every zero becomes opaque: none in a kernel that computes no floats.
struct Floats {
    /// Bits of the narrowest float that is computed.
    width: Option<u32>,
    /// Integers with the bits of floats.
    bits: FxHashSet<Value>,
}

impl Floats {
    fn new(func: &Function, width: Option<u32>) -> Self {
        let mut bits = FxHashSet::default();
        if width.is_some() {
            let insts = func.layout_insts();
            let casts = insts.map(|&inst| &func.insts[inst]).filter(|data| {
                data.op == Op::Bitcast && data.results.iter().any(|&to| func.ty(to).is_float())
            });
            bits.extend(casts.flat_map(|data| data.args.iter().copied()));
        }
        Self { width, bits }
    }

    fn has(&self, func: &Function, value: Value) -> bool {
        self.width.is_some() && (func.ty(value).is_float() || self.bits.contains(&value))
    }

    /// Returns true if an integer may have the bits of several floats.
    fn are_parts(&self, ty: Type) -> bool {
        ty.is_int() && self.width.is_some_and(|width| ty.bits() > width)
    }

    /// Returns true if a stored value may be loaded as several narrower floats, one of which is a
    /// zero.
    fn has_zero(&self, ty: Type, bits: u64) -> bool {
        let Some(width) = self.width else {
            return false;
        };
        if !self.are_parts(ty) {
            return is_zero_bits(ty, bits);
        }
        let parts = (0..ty.bits()).step_by(width as usize).map(|at| bits >> at);
        let sign = 1u64 << (width - 1);
        parts.into_iter().any(|part| part & (sign - 1) == 0)
    }
}

/// Returns true if the values are one and a zero of the other sign, or integers with their bits.
fn differ_in_sign(ty: Type, one: u64, zero: u64) -> bool {
    let plus = match ty {
        Type::F16 | Type::I16 => 0x3c00,
        Type::F32 | Type::I32 => 0x3f80_0000,
        Type::F64 | Type::I64 => 0x3ff0_0000_0000_0000,
        _ => return false,
    };
    let sign = 1u64 << (ty.bits() - 1);
    (one & !sign, zero & !sign) == (plus, 0) && (one ^ zero) & sign != 0
}

/// The zeros that edges pass to block parameters.
struct PassedZeros {
    /// The parameters whose zeros become opaque.
    params: FxHashSet<Value>,
    /// The zeros, each with the opaque value that replaces it, once that is made.
    zeros: FxHashMap<Value, Value>,
}

impl PassedZeros {
    /// Finds the zeros of floats, and zeros where another edge passes a one of the other sign.
    fn new(func: &Function, floats: &Floats) -> Self {
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
        let (mut params, mut zeros) = (FxHashSet::default(), FxHashMap::default());
        for (param, known) in constants {
            let ty = func.ty(param);
            let becomes_opaque = |zero: u64| {
                let signs_differ = known.iter().any(|&(_, one)| differ_in_sign(ty, one, zero));
                signs_differ || floats.has(func, param) && is_zero_bits(ty, zero)
            };
            for &(value, _) in known.iter().filter(|&&(_, zero)| becomes_opaque(zero)) {
                params.insert(param);
                zeros.insert(value, value);
            }
        }
        Self { params, zeros }
    }
}

/// Returns the conversions to floats of induction variables that begin as a constant, of the contents of private arrays, and of
/// values computed from these and constants alone.
fn conversions(func: &Function) -> FxHashSet<Inst> {
    let predictable = predictable(func);
    func.layout_insts()
        .copied()
        .filter(|&inst| becomes_float(func, inst))
        .filter(|&inst| is_known(func, &predictable, func.insts[inst].args[0]))
        .collect()
}

/// Returns the values that are computed from induction variables, constants and the contents of private arrays alone, without the
/// constants.
fn predictable(func: &Function) -> FxHashSet<Value> {
    let flow = ControlFlow::new(func);
    let forest = flow.loops();
    let mut passed: FxHashMap<Value, SmallVec<[Value; 4]>> = FxHashMap::default();
    for &block in &func.layout {
        for edge in func.blocks[block].term.targets() {
            for (&param, &arg) in func.blocks[edge.block].params.iter().zip(&edge.args) {
                passed.entry(param).or_default().push(arg);
            }
        }
    }
    let mut predictable = FxHashSet::default();
    let mut size = usize::MAX;
    while predictable.len() != size {
        size = predictable.len();
        for &block in &func.layout {
            let is_header = forest.headed_by(block).is_some();
            for &param in &func.blocks[block].params {
                let known = |&arg: &Value| is_known(func, &predictable, arg);
                let brings = passed.get(&param).is_some_and(|args| match is_header {
                    true => func.ty(param).is_int() && args.iter().any(known),
                    false => args.iter().all(known),
                });
                if brings {
                    predictable.insert(param);
                }
            }
            for &inst in &func.blocks[block].insts {
                let data = &func.insts[inst];
                let computed = match data.op {
                    Op::VarLoad(var) => func.vars[var].storage == Storage::Function,
                    _ => !data.args.is_empty() && data.op.effect() == Effect::Pure,
                };
                if computed
                    && data
                        .args
                        .iter()
                        .all(|&arg| is_known(func, &predictable, arg))
                {
                    predictable.extend(&data.results);
                }
            }
        }
    }
    predictable
}

fn is_known(func: &Function, predictable: &FxHashSet<Value>, value: Value) -> bool {
    predictable.contains(&value) || func.as_const(value).is_some()
}

/// Returns true if an instruction makes a float of an integer. Zeros that an array holds whole are made opaque where they are
/// stored.
fn becomes_float(func: &Function, inst: Inst) -> bool {
    let data = &func.insts[inst];
    let is = |value: Value, of: fn(Type) -> bool| of(func.ty(value));
    match data.op {
        Op::SToF(_) | Op::UToF(_) => true,
        Op::Bitcast => {
            let loaded = (func.def_inst(data.args[0]))
                .is_some_and(|from| matches!(func.insts[from].op, Op::VarLoad(_)));
            is(data.args[0], Type::is_int) && is(data.results[0], Type::is_float) && !loaded
        }
        _ => false,
    }
}

/// Passes the opaque values in place of the zeros along the edges.
fn pass_opaque(func: &mut Function, params: &FxHashSet<Value>, zeros: &FxHashMap<Value, Value>) {
    for block in func.layout.clone() {
        let mut term = std::mem::take(&mut func.blocks[block].term);
        for edge in term.targets_mut() {
            for (param, arg) in func.blocks[edge.block].params.iter().zip(&mut edge.args) {
                if params.contains(param) {
                    *arg = zeros.get(arg).copied().unwrap_or(*arg);
                }
            }
        }
        func.blocks[block].term = term;
    }
}

/// Returns the operands by whose zeros a driver may fold the instruction to a wrong result.
fn operands(data: &InstData) -> std::ops::Range<usize> {
    let unsigned = data.fp.has(FpFlags::NSZ);
    match data.op {
        Op::FMul if !(unsigned && data.fp.has(FpFlags::NNAN)) => 0..2,
        Op::FAdd if !unsigned => 0..2,
        Op::FSub if !unsigned => 0..2,
        Op::FDiv => 0..2,
        Op::Fma => 0..3,
        Op::Select => 1..3,
        Op::Store { .. } | Op::VarStore(_) => 1..data.args.len(),
        _ => 0..0,
    }
}

/// Returns the width of the result, if a driver may fold the instruction by a zero among its operands.
fn settled_width(func: &Function, inst: Inst) -> Option<u32> {
    let data = &func.insts[inst];
    let computes = matches!(data.op, Op::FMul | Op::FAdd | Op::FSub | Op::FDiv | Op::Fma);
    let may_be = computes && !operands(data).is_empty();
    (data.results.first().filter(|_| may_be)).map(|&result| func.ty(result).bits())
}

/// Returns an integer of which every part of 16 bits or more is opaque.
fn opaque_parts(r: &mut Rewriter, ty: Type, bits: u64) -> Value {
    let zero = opaque_zero(r, ty);
    let zeros = r.with_const(Op::IMul, zero, 0x0001_0001_0001_0001 & ty.mask());
    r.with_const(Op::Or, zeros, bits)
}

fn is_zero_bits(ty: Type, bits: u64) -> bool {
    bits == 0 || bits == 1 << (ty.bits() - 1)
}

fn is_zero(func: &Function, inst: Inst, at: usize, floats: &Floats) -> bool {
    let data = &func.insts[inst];
    let Some(&arg) = data.args.get(at) else {
        return false;
    };
    let Some(bits) = func.as_const(arg) else {
        return false;
    };
    let ty = func.ty(arg);
    let zero = is_zero_bits(ty, bits);
    match data.op {
        Op::Store { .. } | Op::VarStore(_) => !ty.is_ptr() && floats.has_zero(ty, bits),
        Op::FSub if at == 1 => zero && bits != 0,
        Op::FMul => zero,
        Op::Fma => bits == 0 || zero && at < 2,
        Op::Select => {
            let of_float = data.results.iter().any(|&result| floats.has(func, result));
            let other = func.as_const(data.args[3 - at]);
            zero && of_float || other.is_some_and(|other| differ_in_sign(ty, other, bits))
        }
        _ => bits == 0,
    }
}
