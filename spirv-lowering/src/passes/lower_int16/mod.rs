//! Lowers integers of 8 and 16 bits to 32, and halves to their bits, for targets that compute with
//! words alone, or keep nothing smaller in memory.
//!
//! A small value becomes a word whose upper bits are zero. Memory is accessed by words where
//! accesses are aligned to them (`memory`); else by elements where the target has storage of that
//! width, and where it has not by the word around, of which a store exchanges a part by two atomic
//! operations, as other work-items may store to the rest. Arrays of a work-item get a word for each
//! element, those of a work-group are packed into words.
//!
//! Such a target loads, stores and converts `half`, and does not compute with it. The device converts
//! where it is exact (`Target::unpacks_halves`, `Target::packs_halves`), else integers do.

mod memory;

use crate::analysis::cfg::Cfg;
use crate::edit::rewrite::{rewrite, InstEdit, Rewriter};
use crate::error::{LowerError, Result};
use crate::ir::entity::{Inst, Value, Var};
use crate::ir::function::{Function, InstData, Storage};
use crate::ir::op::{IntCond, Op};
use crate::ir::print::raw_inst;
use crate::ir::types::Type;
use crate::ir::verify::rules::Rule;
use crate::passes::structurize::switches;
use crate::passes::{self, dce};
use crate::target::Target;
use rustc_hash::FxHashMap;

/// Returns true if a function has values that the target has not.
pub fn applies(func: &Function, target: &Target) -> bool {
    let param = |&value: &Value| lowers(target, func.ty(value));
    let blocks = func.layout.iter().map(|&block| &func.blocks[block]);
    func.vars.values().any(|var| lowers(target, var.elem))
        || func
            .layout_insts()
            .any(|&inst| func.insts[inst].results.iter().any(param))
        || blocks.flat_map(|block| &block.params).any(param)
}

/// Returns true for the types whose values become words.
fn lowers(target: &Target, ty: Type) -> bool {
    match ty {
        Type::I8 => !target.small_ints || !target.has_storage(1),
        Type::I16 => !target.small_ints || !target.has_storage(2),
        Type::F16 => !target.fp16.supported,
        _ => false,
    }
}

/// Runs the pass, and the clean-up after it. That may compute with what was loaded before it is
/// extended, which makes a second round necessary.
pub fn run(func: &mut Function, target: &Target) -> Result<()> {
    lower(func, target)?;
    passes::clean(func);
    if !target.small_ints && Rule::NoInt16.check(func).is_err() {
        lower(func, target)?;
        dce::run(func);
    }
    Ok(())
}

fn lower(func: &mut Function, target: &Target) -> Result<()> {
    switches::run(func);
    // Definitions come before their uses.
    func.layout = Cfg::new(func).rpo().to_vec();
    let mut lower = Lower {
        target,
        params: FxHashMap::default(),
        arrays: FxHashMap::default(),
    };
    for block in func.layout.clone() {
        for param in func.blocks[block].params.clone() {
            let ty = func.ty(param);
            if lower.is_small(ty) {
                lower.params.insert(param, ty);
                func.values[param].ty = Type::I32;
            }
        }
    }
    lower.widen_arrays(func);
    rewrite(func, |r, inst| lower.inst(r, inst))
}

/// The element of an array that became one of words.
#[derive(Clone, Copy)]
struct Element {
    ty: Type,
    lanes: u32,
    storage: Storage,
}

struct Lower<'t> {
    target: &'t Target,
    /// The types that parameters of blocks had.
    params: FxHashMap<Value, Type>,
    arrays: FxHashMap<Var, Element>,
}

impl Lower<'_> {
    fn is_small(&self, ty: Type) -> bool {
        lowers(self.target, ty)
    }

    /// Returns the type that a value had.
    fn ty(&self, r: &Rewriter, value: Value) -> Type {
        let param = self.params.get(&value).copied();
        param.unwrap_or_else(|| r.func.ty(value))
    }

    /// Returns a value as a word, extended, whatever integer it is.
    fn extended(&self, r: &mut Rewriter, value: Value, signed: bool) -> Value {
        let ty = self.ty(r, value);
        let word = r.resolve(value);
        match (ty, signed) {
            (Type::I32, _) => word,
            (Type::I64, _) => r.op(Op::Trunc, [word], Type::I32),
            (ty, true) if self.is_small(ty) => sign_extend(r, word, ty),
            (ty, false) if self.is_small(ty) => word,
            (_, true) => r.op(Op::SExt, [word], Type::I32),
            (_, false) => r.op(Op::ZExt, [word], Type::I32),
        }
    }

    fn widen_arrays(&mut self, func: &mut Function) {
        let vars: Vec<Var> = func.vars.keys().collect();
        for var in vars {
            let data = &mut func.vars[var];
            if !self.is_small(data.elem) {
                continue;
            }
            let element = Element {
                ty: data.elem,
                lanes: data.lanes,
                storage: data.storage,
            };
            if data.storage == Storage::Workgroup {
                let bytes = u64::from(data.len.fixed) * u64::from(data.elem_size());
                data.len.fixed = u32::try_from(bytes.div_ceil(4)).unwrap_or(u32::MAX);
            }
            (data.elem, data.lanes) = (Type::I32, 1);
            self.arrays.insert(var, element);
        }
    }

    fn inst(&mut self, r: &mut Rewriter, inst: Inst) -> Result<InstEdit> {
        let data = r.data(inst);
        if let Some(edit) = self.array(r, &data)? {
            return Ok(edit);
        }
        let small_result = |&v: &Value| self.is_small(r.func.ty(v));
        let small_arg = |&v: &Value| self.is_small(self.ty(r, v));
        let results = data.results.iter().any(small_result);
        if !results && !data.args.iter().any(small_arg) {
            return Ok(InstEdit::Keep);
        }
        match data.op {
            Op::Load { .. } => return self.load(r, &data),
            Op::Store { .. } => return self.store(r, &data),
            _ => {}
        }
        let (&[result], Some(value)) = (data.results.as_slice(), self.value(r, &data)) else {
            let mut values = data.args.iter().chain(&data.results);
            return Err(match values.any(|&v| self.ty(r, v) == Type::F16) {
                true => LowerError::unsupported("arithmetic of `half` on this device"),
                false => LowerError::internal(format!("small: {}", raw_inst(r.func, inst))),
            });
        };
        r.replace(result, value);
        Ok(InstEdit::Remove)
    }

    /// Returns what an instruction that is not about memory computes.
    fn value(&self, r: &mut Rewriter, data: &InstData) -> Option<Value> {
        let to = r.func.ty(*data.results.first()?);
        let Some(&a) = data.args.first() else {
            return match data.op {
                Op::Const(bits) => Some(r.konst(Type::I32, bits)),
                Op::Undef => {
                    let word = r.op(Op::Undef, [], Type::I32);
                    Some(r.with_const(Op::And, word, to.mask()))
                }
                _ => None,
            };
        };
        let from = self.ty(r, a);
        let b = data.args.get(1).copied();
        let word = match data.op {
            Op::IAdd | Op::ISub | Op::IMul | Op::Shl | Op::LShr | Op::UDiv | Op::URem => {
                let (a, b) = (r.resolve(a), r.resolve(b?));
                r.same(data.op, [a, b])
            }
            Op::And | Op::Or | Op::Xor | Op::UMin | Op::UMax => {
                let (a, b) = (r.resolve(a), r.resolve(b?));
                return Some(r.same(data.op, [a, b]));
            }
            Op::SDiv | Op::SRem | Op::SMin | Op::SMax => {
                let (a, b) = (self.extended(r, a, true), self.extended(r, b?, true));
                r.same(data.op, [a, b])
            }
            Op::AShr => {
                let (a, b) = (self.extended(r, a, true), r.resolve(b?));
                r.same(Op::AShr, [a, b])
            }
            Op::INeg | Op::Not => {
                let a = r.resolve(a);
                r.same(data.op, [a])
            }
            Op::FNeg | Op::FAbs if to == Type::F16 => {
                let a = r.resolve(a);
                return Some(match data.op {
                    Op::FNeg => r.with_const(Op::Xor, a, 0x8000),
                    _ => r.with_const(Op::And, a, 0x7fff),
                });
            }
            Op::ICmp(cond) => {
                use IntCond::{Sge, Sgt, Sle, Slt};
                let signed = matches!(cond, Slt | Sle | Sgt | Sge);
                let (a, b) = (self.extended(r, a, signed), self.extended(r, b?, signed));
                return Some(r.icmp(cond, a, b));
            }
            Op::Select => {
                let (yes, no) = (r.resolve(b?), r.resolve(*data.args.get(2)?));
                return Some(r.select(a, yes, no));
            }
            Op::ZExt | Op::SExt => {
                let word = self.extended(r, a, data.op == Op::SExt);
                match to {
                    Type::I32 => return Some(word),
                    Type::I64 => return Some(r.op(data.op, [word], to)),
                    _ if !self.is_small(to) => return Some(r.op(Op::Trunc, [word], to)),
                    _ => word,
                }
            }
            Op::Trunc => self.extended(r, a, false),
            Op::Bitcast => match (self.is_small(from), self.is_small(to)) {
                (true, true) => return Some(r.resolve(a)),
                (true, false) => {
                    let a = r.resolve(a);
                    let bits = r.op(Op::Trunc, [a], to.as_int()?);
                    return match to.is_int() {
                        true => Some(bits),
                        false => Some(r.op(Op::Bitcast, [bits], to)),
                    };
                }
                _ => {
                    let int = from.as_int()?;
                    let bits = match int == from {
                        true => a,
                        false => r.op(Op::Bitcast, [a], int),
                    };
                    return Some(r.op(Op::ZExt, [bits], Type::I32));
                }
            },
            Op::SToF(_) | Op::UToF(_) if !self.is_small(to) => {
                let word = self.extended(r, a, matches!(data.op, Op::SToF(_)));
                return Some(r.op(data.op, [word], to));
            }
            Op::FToS { .. } | Op::FToU { .. } if !self.is_small(from) => {
                r.op(data.op, [a], Type::I32)
            }
            Op::FConv(rounding) if from == Type::F16 => {
                let a = r.resolve(a);
                let float = match self.target.unpacks_halves {
                    true => r.op(Op::UnpackHalf, [a], Type::F32),
                    false => of_half(r, a),
                };
                return Some(match to {
                    Type::F32 => float,
                    _ => r.op(Op::FConv(rounding), [float], to),
                });
            }
            // Where the device does not, `lower_convert` has left no such conversion.
            Op::FConv(_) if from == Type::F32 && self.target.packs_halves => {
                return Some(r.op(Op::PackHalf, [a], Type::I32));
            }
            _ => return None,
        };
        Some(r.with_const(Op::And, word, to.mask()))
    }
}

/// Extends a word whose value has the sign bit of a narrower type.
fn sign_extend(r: &mut Rewriter, word: Value, ty: Type) -> Value {
    let rest = u64::from(32 - ty.bits());
    let top = r.with_const(Op::Shl, word, rest);
    r.with_const(Op::AShr, top, rest)
}

/// Converts the bits of a half to `float`, which is exact.
fn of_half(r: &mut Rewriter, half: Value) -> Value {
    const INFINITY: u64 = 0x7c00 << 13;
    let bits = r.with_const(Op::And, half, 0x7fff);
    let bits = r.with_const(Op::Shl, bits, 13);
    // Another bias of the exponent; infinities and NaN keep the greatest.
    let number = r.with_const(Op::IAdd, bits, (127 - 15) << 23);
    let special = r.with_const(Op::IAdd, bits, (255 - 31) << 23);
    let is_special = r.icmp_const(IntCond::Uge, bits, INFINITY);
    let large = r.select(is_special, special, number);
    // Subnormal halves: the fraction behind 2^-14, less 2^-14.
    let small = r.with_const(Op::IAdd, bits, (127 - 14) << 23);
    let small = r.op(Op::Bitcast, [small], Type::F32);
    let first = r.konst(Type::F32, (127 - 14) << 23);
    let small = r.same(Op::FSub, [small, first]);
    let small = r.op(Op::Bitcast, [small], Type::I32);
    let is_small = r.icmp_const(IntCond::Ult, bits, 1 << 23);
    let bits = r.select(is_small, small, large);
    let sign = r.with_const(Op::And, half, 0x8000);
    let sign = r.with_const(Op::Shl, sign, 16);
    let bits = r.same(Op::Or, [bits, sign]);
    r.op(Op::Bitcast, [bits], Type::F32)
}
