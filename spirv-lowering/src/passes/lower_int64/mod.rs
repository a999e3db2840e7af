//! Lowers 64-bit integers and pointers to pairs of 32-bit integers, for targets without the former.
//!
//! Runs when divisions of such integers are other operations (`lower_division`), memory of the work-group and of the work-item is
//! arrays, and the only pointers left are device addresses. Every value of 64 bits becomes two, the low half first, block parameters
//! and arguments of edges included. An access gets its address by [`Op::Join`], which the
//! emitter makes a vector of two words. Doubles stay what they are. An access to memory of 64-bit values becomes one of twice
//! as many words.
//!
//! - `pair`: arithmetic, comparisons, shifts.
//! - `convert`: from and to floats.

mod convert;
mod pair;

use crate::analysis::cfg::Cfg;
use crate::edit::rewrite::{rewrite_with_terms, InstEdit, Rewriter};
use crate::error::{LowerError, Result};
use crate::ir::entity::{Inst, Value, Var};
use crate::ir::function::{Function, InstData, Terminator, ValueDef, Values};
use crate::ir::op::Op;
use crate::ir::print::raw_inst;
use crate::ir::types::{Space, Type};
use crate::passes::structurize::switches;
use pair::Pair;
use rustc_hash::FxHashMap;
use std::cell::RefCell;

/// Runs the pass.
pub fn run(func: &mut Function) -> Result<()> {
    switches::run(func);
    // Definitions come before their uses, but for arguments of back edges.
    func.layout = Cfg::new(func).rpo().to_vec();
    let mut lower = Lower {
        lanes: split_arrays(func),
        ..Lower::default()
    };
    lower.split_params(func);
    let lower = RefCell::new(lower);
    rewrite_with_terms(
        func,
        |r, inst| lower.borrow_mut().inst(r, inst),
        |_, term| {
            lower.borrow().terminator(term);
            Ok(())
        },
    )
}

/// Returns true for the types that become pairs.
fn is_wide(ty: Type) -> bool {
    matches!(ty, Type::I64 | Type::Ptr(_))
}

/// Makes arrays of 64-bit integers arrays of words. Returns for each the lanes of an element.
fn split_arrays(func: &mut Function) -> FxHashMap<Var, u32> {
    let mut lanes = FxHashMap::default();
    let vars: Vec<Var> = func.vars.keys().collect();
    for var in vars {
        let data = &mut func.vars[var];
        if data.elem == Type::I64 {
            lanes.insert(var, data.lanes);
            data.elem = Type::I32;
            data.len.fixed *= 2 * data.lanes;
            data.lanes = 1;
        }
    }
    lanes
}

#[derive(Default)]
struct Lower {
    /// The halves of each value of 64 bits.
    pairs: FxHashMap<Value, Pair>,
    /// The lanes of an element of each array that had 64-bit elements.
    lanes: FxHashMap<Var, u32>,
}

impl Lower {
    fn split_params(&mut self, func: &mut Function) {
        for block in func.layout.clone() {
            for param in std::mem::take(&mut func.blocks[block].params) {
                let ty = func.ty(param);
                if is_wide(ty) {
                    let low = func.add_param(block, Type::I32);
                    let high = func.add_param(block, Type::I32);
                    self.pairs.insert(param, Pair { low, high });
                    continue;
                }
                let index = func.blocks[block].params.len() as u32;
                func.values[param].def = ValueDef::Param(block, index);
                func.blocks[block].params.push(param);
            }
        }
    }

    fn pair(&self, value: Value) -> Result<Pair> {
        let pair = self.pairs.get(&value).copied();
        pair.ok_or_else(|| LowerError::internal(format!("{value} was not split")))
    }

    /// Returns operand `index` of an instruction as a pair.
    fn arg(&self, data: &InstData, index: usize) -> Result<Pair> {
        let arg = data.args.get(index).copied();
        self.pair(arg.ok_or_else(|| LowerError::internal("too few operands"))?)
    }

    fn both(&self, data: &InstData) -> Result<(Pair, Pair)> {
        Ok((self.arg(data, 0)?, self.arg(data, 1)?))
    }

    /// Makes arguments of edges pairs.
    fn terminator(&self, term: &mut Terminator) {
        for edge in term.targets_mut() {
            let mut args = Values::new();
            for &arg in &edge.args {
                match self.pairs.get(&arg) {
                    Some(pair) => args.extend([pair.low, pair.high]),
                    None => args.push(arg),
                }
            }
            edge.args = args;
        }
    }

    fn inst(&mut self, r: &mut Rewriter, inst: Inst) -> Result<InstEdit> {
        let data = r.data(inst);
        let wide_args = data.args.iter().any(|&v| is_wide(r.func.ty(v)));
        let wide_results = data.results.iter().any(|&v| is_wide(r.func.ty(v)));
        if let Some(edit) = self.array(r, &data)? {
            return Ok(edit);
        }
        if let (Op::FCopySign, &[x, y]) = (data.op, data.args.as_slice()) {
            if r.func.ty(x) == Type::F64 {
                let value = convert::copy_sign(r, x, y);
                return Ok(r.replace_result(inst, value));
            }
        }
        if !wide_args && !wide_results {
            return Ok(InstEdit::Keep);
        }
        match data.op {
            Op::Load { .. }
            | Op::Store { .. }
            | Op::AtomicLoad { .. }
            | Op::AtomicStore { .. }
            | Op::AtomicRmw { .. }
            | Op::AtomicCmpXchg { .. } => return self.access(r, inst, &data),
            Op::ArgLoad(offset) => {
                let words = vec![Type::I32; 2 * data.results.len()];
                let words = r.many(Op::ArgLoad(offset), [], &words);
                self.define_words(&data.results, &words);
                return Ok(InstEdit::Remove);
            }
            _ => {}
        }
        let &[result] = data.results.as_slice() else {
            return Err(odd_inst(r, inst));
        };
        if wide_results {
            let pair = self.wide(r, &data)?;
            let pair = pair.ok_or_else(|| odd_inst(r, inst))?;
            self.pairs.insert(result, pair);
            return Ok(InstEdit::Remove);
        }
        let a = self.arg(&data, 0);
        let ty = r.func.ty(result);
        let value = match data.op {
            Op::ICmp(cond) => pair::compare(r, cond, a?, self.arg(&data, 1)?),
            Op::Bitcast => {
                let Pair { low, high } = a?;
                r.op(Op::Join, [low, high], ty)
            }
            Op::Trunc if ty == Type::I32 => a?.low,
            Op::Trunc => r.op(Op::Trunc, [a?.low], ty),
            Op::SToF(_) => convert::to_float(r, a?, ty, true),
            Op::UToF(_) => convert::to_float(r, a?, ty, false),
            _ => return Err(odd_inst(r, inst)),
        };
        Ok(r.replace_result(inst, value))
    }

    /// Returns the result of an instruction with a result of 64 bits. Returns `None` for those that
    /// other passes lower.
    fn wide(&mut self, r: &mut Rewriter, data: &InstData) -> Result<Option<Pair>> {
        Ok(Some(match data.op {
            Op::Const(bits) => Pair::konst(r, bits),
            Op::Undef => Pair {
                low: r.op(Op::Undef, [], Type::I32),
                high: r.op(Op::Undef, [], Type::I32),
            },
            Op::Implicit(which, component) => {
                let mut half = |k| r.op(Op::Implicit(which, 2 * component + k), [], Type::I32);
                Pair {
                    low: half(0),
                    high: half(1),
                }
            }
            Op::PtrToInt | Op::IntToPtr | Op::SpaceCast => self.arg(data, 0)?,
            Op::Bitcast => match data.args.as_slice() {
                &[double] if r.func.ty(double) == Type::F64 => Pair {
                    low: r.op(Op::Low, [double], Type::I32),
                    high: r.op(Op::High, [double], Type::I32),
                },
                _ => self.arg(data, 0)?,
            },
            Op::IAdd | Op::PtrAdd => {
                let (a, b) = self.both(data)?;
                pair::add(r, a, b)
            }
            Op::ISub => {
                let (a, b) = self.both(data)?;
                pair::sub(r, a, b)
            }
            Op::IMul => {
                let (a, b) = self.both(data)?;
                pair::mul(r, a, b)
            }
            Op::INeg => {
                let a = self.arg(data, 0)?;
                pair::neg(r, a)
            }
            Op::And | Op::Or | Op::Xor => {
                let (a, b) = self.both(data)?;
                Pair {
                    low: r.same(data.op, [a.low, b.low]),
                    high: r.same(data.op, [a.high, b.high]),
                }
            }
            Op::Not => {
                let a = self.arg(data, 0)?;
                Pair {
                    low: r.same(Op::Not, [a.low]),
                    high: r.same(Op::Not, [a.high]),
                }
            }
            Op::Shl | Op::LShr | Op::AShr => {
                let (a, by) = self.both(data)?;
                pair::shift(r, data.op, a, by.low)
            }
            Op::SMin | Op::SMax | Op::UMin | Op::UMax => {
                let (a, b) = self.both(data)?;
                pair::extreme(r, data.op, a, b)
            }
            Op::Select => {
                let &[cond, ..] = data.args.as_slice() else {
                    return Ok(None);
                };
                let (yes, no) = (self.arg(data, 1)?, self.arg(data, 2)?);
                pair::select(r, cond, yes, no)
            }
            Op::ZExt | Op::SExt | Op::FToS { .. } | Op::FToU { .. } => {
                let &[from] = data.args.as_slice() else {
                    return Ok(None);
                };
                match data.op {
                    Op::ZExt => pair::extend(r, from, false),
                    Op::SExt => pair::extend(r, from, true),
                    Op::FToS { .. } => convert::of_float(r, from, true),
                    _ => convert::of_float(r, from, false),
                }
            }
            _ => return Ok(None),
        }))
    }

    /// Makes pairs of words the values of results.
    fn define_words(&mut self, results: &[Value], words: &[Value]) {
        for (&result, words) in results.iter().zip(words.chunks(2)) {
            if let &[low, high] = words {
                self.pairs.insert(result, Pair { low, high });
            }
        }
    }

    /// Returns the values of 64 bits as words.
    fn words(&self, values: &[Value]) -> Result<Vec<Value>> {
        let mut words = Vec::with_capacity(2 * values.len());
        for &value in values {
            let pair = self.pair(value)?;
            words.extend([pair.low, pair.high]);
        }
        Ok(words)
    }

    /// Rewrites an access by address.
    fn access(&mut self, r: &mut Rewriter, inst: Inst, data: &InstData) -> Result<InstEdit> {
        let (Some(&pointer), at) = (data.args.first(), self.arg(data, 0)?) else {
            return Err(odd_inst(r, inst));
        };
        let ty = r.func.ty(pointer);
        if !matches!(ty, Type::Ptr(Space::Global | Space::Constant)) {
            return Err(odd_inst(r, inst));
        }
        let address = r.op(Op::Join, [at.low, at.high], ty);
        let rest = data.args.get(1..).unwrap_or_default();
        let wide = |v: &Value| is_wide(r.func.ty(*v));
        if !rest.iter().chain(&data.results).any(wide) {
            if let Some(pointer) = r.func.insts[inst].args.first_mut() {
                *pointer = address;
            }
            return Ok(InstEdit::Keep);
        }
        let natural = |align: u32| if align == 0 { 8 } else { align };
        match data.op {
            Op::Load { align, volatile } => {
                let op = Op::Load {
                    align: natural(align),
                    volatile,
                };
                let types = vec![Type::I32; 2 * data.results.len()];
                let words = r.many(op, [address], &types);
                self.define_words(&data.results, &words);
            }
            Op::Store { align, volatile } => {
                let op = Op::Store {
                    align: natural(align),
                    volatile,
                };
                let words = self.words(rest)?;
                r.inst(op, [address].into_iter().chain(words), &[]);
            }
            _ => {
                return Err(LowerError::unsupported(
                    "64-bit atomics on a device without 64-bit integers",
                ))
            }
        }
        Ok(InstEdit::Remove)
    }

    /// Rewrites an access to an array that had 64-bit elements.
    fn array(&mut self, r: &mut Rewriter, data: &InstData) -> Result<Option<InstEdit>> {
        let (Op::VarLoad(var)
        | Op::VarStore(var)
        | Op::VarRmw { var, .. }
        | Op::VarCmpXchg { var, .. }
        | Op::VarAtomicLoad { var, .. }
        | Op::VarAtomicStore { var, .. }) = data.op
        else {
            return Ok(None);
        };
        let (Some(&lanes), Some((&index, values))) =
            (self.lanes.get(&var), data.args.split_first())
        else {
            return Ok(None);
        };
        let first = r.with_const(Op::IMul, index, u64::from(2 * lanes));
        match data.op {
            Op::VarLoad(_) => {
                let mut words = Vec::new();
                for k in 0..2 * u64::from(lanes) {
                    let at = r.with_const(Op::IAdd, first, k);
                    words.push(r.op(Op::VarLoad(var), [at], Type::I32));
                }
                self.define_words(&data.results, &words);
            }
            Op::VarStore(_) => {
                for (k, word) in self.words(values)?.into_iter().enumerate() {
                    let at = r.with_const(Op::IAdd, first, k as u64);
                    r.inst(Op::VarStore(var), [at, word], &[]);
                }
            }
            _ => {
                return Err(LowerError::unsupported(
                    "64-bit atomics on a device without 64-bit integers",
                ))
            }
        }
        Ok(Some(InstEdit::Remove))
    }
}

fn odd_inst(r: &Rewriter, inst: Inst) -> LowerError {
    LowerError::internal(format!("64 bits: {}", raw_inst(r.func, inst)))
}
