//! Folds operations on constants and simplifies algebraically, in one walk in reverse postorder.
//!
//! Constants, `undef` and addresses of module-level variables are gathered at the start of the entry block, one of
//! each. Canonical forms, on which other passes may rely: the constant of a commutative operation is the second
//! operand; `isub x, c` is `iadd x, -c`; multiplication and unsigned division by a power of two are shifts; a
//! constant offset is the outermost `ptr_add` of a chain. Floating point is changed only where the result is the
//! same to the bit (the payload of NaN aside), or where the flags of the instruction allow it.

mod compare;
mod int;

use compare::{invert, invert_float};

use crate::analysis::control_flow::Analyses;
use crate::ir::entity::{Inst, Value};
use crate::ir::fold::fold;
use crate::ir::function::{FpFlags, Function, Terminator, Values};
use crate::ir::op::Op;
use crate::ir::subst::Subst;
use crate::ir::types::{Space, Type};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// The most rewrites of one instruction.
const MAX_STEPS: usize = 12;

/// Runs the pass. Returns true if the function changed.
pub fn run(func: &mut Function, analyses: &mut Analyses) -> bool {
    let Some(entry) = func.entry() else {
        return false;
    };
    let flow = analyses.control_flow(func);
    let mut this = Folder {
        func,
        subst: Subst::new(),
        pool: FxHashMap::default(),
        head: Vec::new(),
        out: Vec::new(),
        changed: false,
    };
    // Constants that stand at the start of the entry already stay there.
    let insts = std::mem::take(&mut this.func.blocks[entry].insts);
    let lead = insts
        .iter()
        .take_while(|&&i| is_pooled(this.func.insts[i].op))
        .count();
    for &inst in &insts[..lead] {
        this.pool_inst(inst);
    }
    this.changed = this.head.len() != lead;
    this.func.blocks[entry].insts = insts[lead..].to_vec();
    for &block in flow.cfg.rpo() {
        let insts = std::mem::take(&mut this.func.blocks[block].insts);
        this.out = Vec::with_capacity(insts.len());
        for inst in insts {
            this.inst(inst);
        }
        this.func.blocks[block].insts = std::mem::take(&mut this.out);
        let mut term = std::mem::take(&mut this.func.blocks[block].term);
        term.map_uses(|v| this.subst.get(v));
        this.switch(&mut term);
        this.func.blocks[block].term = term;
    }
    let Folder {
        head,
        mut subst,
        changed,
        ..
    } = this;
    func.blocks[entry].insts.splice(0..0, head);
    // Arguments of back edges and code that was not walked.
    subst.apply(func);
    changed
}

fn is_pooled(op: Op) -> bool {
    matches!(op, Op::Const(_) | Op::Undef | Op::GlobalAddr(_))
}

/// The change to an instruction.
enum FoldResult {
    Keep,
    Value(Value),
    Rewrite(Op, Values),
}

struct Folder<'a> {
    func: &'a mut Function,
    subst: Subst,
    pool: FxHashMap<(Op, Type), Value>,
    head: Vec<Inst>,
    out: Vec<Inst>,
    changed: bool,
}

impl Folder<'_> {
    /// Moves a constant to the entry block, or replaces it by the equal one that is there.
    fn pool_inst(&mut self, inst: Inst) -> bool {
        let Some(&value) = self.func.insts[inst].results.first() else {
            return false;
        };
        let key = (self.func.insts[inst].op, self.func.ty(value));
        match self.pool.get(&key) {
            Some(&old) => {
                self.subst.set(value, old);
                false
            }
            None => {
                self.pool.insert(key, value);
                self.head.push(inst);
                true
            }
        }
    }

    fn constant(&mut self, ty: Type, bits: u64) -> Value {
        let op = Op::Const(bits & ty.mask());
        if let Some(&value) = self.pool.get(&(op, ty)) {
            return value;
        }
        let inst = self.func.make_inst(op, [], &[ty]);
        let value = self.func.insts[inst].results[0];
        self.pool.insert((op, ty), value);
        self.head.push(inst);
        value
    }

    /// Emits an instruction before the current one, simplified itself.
    fn emit(&mut self, op: Op, args: &[Value], ty: Type) -> Value {
        let inst = self.func.make_inst(op, args.iter().copied(), &[ty]);
        let value = self.func.insts[inst].results[0];
        if let Some(bits) = self.fold_inst(inst, ty) {
            return self.constant(ty, bits);
        }
        self.out.push(inst);
        value
    }

    fn c(&self, value: Value) -> Option<u64> {
        self.func.as_const(value)
    }

    /// Returns the operation and operands that define a value.
    fn def(&self, value: Value) -> Option<(Op, &Values)> {
        let data = &self.func.insts[self.func.def_inst(value)?];
        (data.results.len() == 1).then_some((data.op, &data.args))
    }

    fn is_undef(&self, value: Value) -> bool {
        self.def(value).is_some_and(|(op, _)| op == Op::Undef)
    }

    fn fold_inst(&self, inst: Inst, result: Type) -> Option<u64> {
        let data = &self.func.insts[inst];
        let mut types: SmallVec<[Type; 4]> = SmallVec::new();
        let mut bits: SmallVec<[u64; 4]> = SmallVec::new();
        for &arg in &data.args {
            bits.push(self.c(arg)?);
            types.push(self.func.ty(arg));
        }
        fold(data.op, data.fp, &types, &bits, result)
    }

    fn inst(&mut self, inst: Inst) {
        if is_pooled(self.func.insts[inst].op) {
            self.pool_inst(inst);
            self.changed = true;
            return;
        }
        let mut args = std::mem::take(&mut self.func.insts[inst].args);
        args.iter_mut().for_each(|v| *v = self.subst.get(*v));
        self.func.insts[inst].args = args;
        let result = match self.func.insts[inst].results[..] {
            [result] => result,
            _ => {
                self.out.push(inst);
                return;
            }
        };
        let ty = self.func.ty(result);
        for _ in 0..MAX_STEPS {
            if let Some(bits) = self.fold_inst(inst, ty) {
                let value = self.constant(ty, bits);
                self.subst.set(result, value);
                self.changed = true;
                return;
            }
            match self.simplify(inst, ty) {
                FoldResult::Keep => break,
                FoldResult::Value(value) => {
                    self.subst.set(result, value);
                    self.changed = true;
                    return;
                }
                FoldResult::Rewrite(op, args) => {
                    self.func.insts[inst].op = op;
                    self.func.insts[inst].args = args;
                    self.changed = true;
                }
            }
        }
        self.out.push(inst);
    }

    /// Turns a switch on a zero-extended value into a switch on the narrow one. Switches on values
    /// that were widened in other ways or offset stay.
    fn switch(&mut self, term: &mut Terminator) {
        let Terminator::Switch(value, cases, _) = term else {
            return;
        };
        let inner = match self.def(*value) {
            Some((Op::ZExt, args)) => args[0],
            _ => return,
        };
        let ty = self.func.ty(inner);
        if ty.is_int() && cases.iter().all(|(k, _)| k & !ty.mask() == 0) {
            *value = inner;
            self.changed = true;
        }
    }

    fn simplify(&mut self, inst: Inst, ty: Type) -> FoldResult {
        let data = &self.func.insts[inst];
        let (op, fp) = (data.op, data.fp);
        let args = data.args.clone();
        match (op, &args[..]) {
            (Op::Select, &[c, a, b]) => self.select(ty, c, a, b),
            (Op::ICmp(cond), &[a, b]) => self.icmp(cond, a, b),
            (Op::FCmp(cond), &[a, b]) => self.fcmp(cond, a, b),
            (Op::PtrAdd, &[p, o]) => self.ptr_add(ty, p, o),
            (_, &[a, b]) if ty.is_float() => self.float2(op, fp, ty, a, b),
            (_, &[a, b]) if ty.is_int() || ty == Type::Bool => self.int2(op, ty, a, b),
            (_, &[a]) => self.unary(op, fp, ty, a),
            _ => FoldResult::Keep,
        }
    }

    fn unary(&mut self, op: Op, _fp: FpFlags, ty: Type, a: Value) -> FoldResult {
        let from = self.func.ty(a);
        let Some((inner, inner_args)) = self.def(a) else {
            return match op {
                Op::Bitcast | Op::SpaceCast if from == ty => FoldResult::Value(a),
                _ => FoldResult::Keep,
            };
        };
        let Some(&x) = inner_args.first() else {
            return match op {
                Op::Bitcast | Op::SpaceCast if from == ty => FoldResult::Value(a),
                _ => FoldResult::Keep,
            };
        };
        let y = inner_args.get(1).copied();
        let xt = self.func.ty(x);
        let one = |op, x| FoldResult::Rewrite(op, Values::from_slice(&[x]));
        let two = |op, x, y| FoldResult::Rewrite(op, Values::from_slice(&[x, y]));
        match (op, inner) {
            (Op::Bitcast | Op::SpaceCast, _) if from == ty => FoldResult::Value(a),
            (Op::Not, Op::Not) | (Op::INeg, Op::INeg) | (Op::FNeg, Op::FNeg) => {
                FoldResult::Value(x)
            }
            (Op::BitReverse, Op::BitReverse) => FoldResult::Value(x),
            (Op::FAbs, Op::FAbs) => FoldResult::Value(a),
            (Op::FAbs, Op::FNeg) => one(Op::FAbs, x),
            (Op::INeg, Op::ISub) => match y {
                Some(y) => two(Op::ISub, y, x),
                None => FoldResult::Keep,
            },
            (Op::Not, Op::ICmp(cond)) => match y {
                Some(y) => two(Op::ICmp(invert(cond)), x, y),
                None => FoldResult::Keep,
            },
            (Op::Not, Op::FCmp(cond)) => match y {
                Some(y) => two(Op::FCmp(invert_float(cond)), x, y),
                None => FoldResult::Keep,
            },
            // LLVM writes the clearing of a sign bit so; a device that flushes subnormals would flush here.
            (Op::Bitcast, Op::FAbs | Op::FNeg) if ty.is_int() => {
                let bits = self.emit(Op::Bitcast, &[x], ty);
                let sign = 1u64 << (ty.bits() - 1);
                if inner == Op::FAbs {
                    let mask = self.constant(ty, !sign & ty.mask());
                    two(Op::And, bits, mask)
                } else {
                    let mask = self.constant(ty, sign);
                    two(Op::Xor, bits, mask)
                }
            }
            (Op::Bitcast, Op::Bitcast) if xt == ty => FoldResult::Value(x),
            (Op::Bitcast, Op::Bitcast) => one(Op::Bitcast, x),
            (Op::PtrToInt, Op::IntToPtr) => FoldResult::Value(x),
            (Op::ImageNumber, Op::ImageAt(_)) | (Op::ImageAt(_), Op::ImageNumber) => {
                FoldResult::Value(x)
            }
            (Op::SamplerWord, Op::SamplerAt) => one(Op::Trunc, x),
            (Op::IntToPtr, Op::PtrToInt) if xt == ty => FoldResult::Value(x),
            (Op::SpaceCast, Op::SpaceCast) if xt == ty && from == Type::Ptr(Space::Generic) => {
                FoldResult::Value(x)
            }
            (Op::PtrIsIn(space), Op::SpaceCast)
                if xt.space().is_some_and(|s| s != Space::Generic)
                    && from == Type::Ptr(Space::Generic) =>
            {
                // A null pointer may be said to be anywhere.
                let holds = xt.space() == Some(space);
                FoldResult::Value(self.constant(Type::Bool, holds.into()))
            }
            (Op::PtrIsIn(_), Op::PtrAdd) => one(op, x),
            (Op::Trunc, Op::Trunc) => one(Op::Trunc, x),
            (Op::Trunc, Op::ZExt | Op::SExt) => {
                if xt == ty {
                    FoldResult::Value(x)
                } else if xt.bits() < ty.bits() {
                    one(inner, x)
                } else {
                    one(Op::Trunc, x)
                }
            }
            (Op::Trunc, Op::And)
                if y.and_then(|y| self.c(y))
                    .is_some_and(|m| m & ty.mask() == ty.mask()) =>
            {
                one(Op::Trunc, x)
            }
            (Op::Trunc, Op::IAdd | Op::ISub | Op::IMul | Op::And | Op::Or | Op::Xor) => match y {
                Some(y) => self.narrow(inner, ty, x, y),
                None => FoldResult::Keep,
            },
            (Op::Trunc, Op::Shl) => match y.and_then(|y| self.c(y)) {
                Some(amount) if amount < u64::from(ty.bits()) => match self.narrowed(x, ty) {
                    Some(x) => {
                        let x = self.make_narrow(x, ty);
                        let amount = self.constant(ty, amount);
                        two(Op::Shl, x, amount)
                    }
                    None => FoldResult::Keep,
                },
                _ => FoldResult::Keep,
            },
            (Op::ZExt, Op::ZExt) | (Op::SExt, Op::SExt) => one(op, x),
            (Op::SExt, Op::ZExt) => one(Op::ZExt, x),
            (Op::ZExt, Op::Trunc) if xt == ty => {
                let mask = self.constant(ty, from.mask());
                two(Op::And, x, mask)
            }
            (Op::SToF(r) | Op::UToF(r), Op::ZExt) if xt.is_int() => one(Op::UToF(r), x),
            (Op::SToF(_), Op::SExt) if xt.is_int() => one(op, x),
            (Op::FConv(_), Op::FConv(_)) if xt == ty && from.bits() > xt.bits() => {
                FoldResult::Value(x)
            }
            _ => FoldResult::Keep,
        }
    }

    /// Returns a value truncated to `ty`, if that needs no instruction.
    fn narrowed(&self, value: Value, ty: Type) -> Option<Narrow> {
        if let Some(bits) = self.c(value) {
            return Some(Narrow::Const(bits));
        }
        match self.def(value)? {
            (op @ (Op::ZExt | Op::SExt), args) => {
                let from = self.func.ty(args[0]);
                (from.bits() <= ty.bits()).then_some(Narrow::Extend(op, args[0]))
            }
            (Op::And, args) => {
                let keeps = self.c(args[1]).is_some_and(|k| k & ty.mask() == ty.mask());
                keeps.then_some(Narrow::Cut(args[0]))
            }
            _ => None,
        }
    }

    fn make_narrow(&mut self, narrow: Narrow, ty: Type) -> Value {
        match narrow {
            Narrow::Const(bits) => self.constant(ty, bits),
            Narrow::Extend(_, x) if self.func.ty(x) == ty => x,
            Narrow::Extend(op, x) => self.emit(op, &[x], ty),
            Narrow::Cut(x) => self.emit(Op::Trunc, &[x], ty),
        }
    }

    /// Narrows arithmetic on extended values whose result is truncated.
    fn narrow(&mut self, op: Op, ty: Type, x: Value, y: Value) -> FoldResult {
        let (Some(x), Some(y)) = (self.narrowed(x, ty), self.narrowed(y, ty)) else {
            return FoldResult::Keep;
        };
        let x = self.make_narrow(x, ty);
        let y = self.make_narrow(y, ty);
        FoldResult::Rewrite(op, Values::from_slice(&[x, y]))
    }

    fn ptr_add(&mut self, ty: Type, p: Value, offset: Value) -> FoldResult {
        let two = |x, y| FoldResult::Rewrite(Op::PtrAdd, Values::from_slice(&[x, y]));
        let k = self.c(offset);
        if k == Some(0) {
            return FoldResult::Value(p);
        }
        if let Some((Op::PtrAdd, inner)) = self.def(p) {
            let (base, first) = (inner[0], inner[1]);
            match (self.c(first), k) {
                (Some(c), Some(k)) => {
                    let sum = self.constant(Type::I64, c.wrapping_add(k));
                    return two(base, sum);
                }
                (Some(_), None) => {
                    // The constant goes outside.
                    let varying = self.emit(Op::PtrAdd, &[base, offset], ty);
                    return two(varying, first);
                }
                _ => {}
            }
        }
        if k.is_none() {
            if let Some((Op::IAdd, inner)) = self.def(offset) {
                let (x, c) = (inner[0], inner[1]);
                if self.c(c).is_some() {
                    let varying = self.emit(Op::PtrAdd, &[p, x], ty);
                    return two(varying, c);
                }
            }
        }
        FoldResult::Keep
    }

    fn float2(&mut self, op: Op, fp: FpFlags, ty: Type, a: Value, b: Value) -> FoldResult {
        let two = |op, x, y| FoldResult::Rewrite(op, Values::from_slice(&[x, y]));
        let one = |op, x| FoldResult::Rewrite(op, Values::from_slice(&[x]));
        if self.c(a).is_some() && self.c(b).is_none() && op.is_commutative() {
            return two(op, b, a);
        }
        let (number_one, sign) = match ty {
            Type::F16 => (0x3c00, 0x8000),
            Type::F32 => (0x3f80_0000, 0x8000_0000),
            _ => (0x3ff0_0000_0000_0000, 1 << 63),
        };
        match (op, self.c(b)) {
            (Op::FMul | Op::FDiv, Some(k)) if k == number_one => return FoldResult::Value(a),
            (Op::FMul | Op::FDiv, Some(k)) if k == number_one | sign => return one(Op::FNeg, a),
            (Op::FSub, Some(0)) => return FoldResult::Value(a),
            (Op::FAdd, Some(k)) if k == sign => return FoldResult::Value(a),
            (Op::FAdd, Some(0)) | (Op::FSub, Some(_))
                if fp.has(FpFlags::NSZ) && self.c(b).is_some_and(|k| k & !sign == 0) =>
            {
                return FoldResult::Value(a);
            }
            (Op::FMul, Some(0)) if fp.has(FpFlags::NNAN | FpFlags::NSZ) => {
                return FoldResult::Value(b);
            }
            (Op::FDiv, Some(k)) => {
                let exact = self.reciprocal(ty, k, fp.has(FpFlags::ARCP));
                if let Some(r) = exact {
                    let r = self.constant(ty, r);
                    return two(Op::FMul, a, r);
                }
            }
            _ => {}
        }
        match (op, self.def(a), self.def(b)) {
            (Op::FAdd, _, Some((Op::FNeg, inner))) => two(Op::FSub, a, inner[0]),
            (Op::FAdd, Some((Op::FNeg, inner)), _) => two(Op::FSub, b, inner[0]),
            (Op::FSub, _, Some((Op::FNeg, inner))) => two(Op::FAdd, a, inner[0]),
            (Op::FMul | Op::FDiv, Some((Op::FNeg, x)), Some((Op::FNeg, y))) => two(op, x[0], y[0]),
            (Op::FMin | Op::FMax, ..) if a == b => FoldResult::Value(a),
            _ => FoldResult::Keep,
        }
    }

    /// Returns 1 / k if that is a power of two and both are normal, or if `any` allows rounding.
    fn reciprocal(&self, ty: Type, k: u64, any: bool) -> Option<u64> {
        let one = match ty {
            Type::F16 => 0x3c00u64,
            Type::F32 => 0x3f80_0000,
            _ => 0x3ff0_0000_0000_0000,
        };
        let r = fold(Op::FDiv, FpFlags::default(), &[ty, ty], &[one, k], ty)?;
        let (fraction, exponent) = match ty {
            Type::F16 => (0x3ff, 0x7c00),
            Type::F32 => (0x7f_ffff, 0x7f80_0000),
            _ => (0xf_ffff_ffff_ffff, 0x7ff0_0000_0000_0000),
        };
        let normal = |x: u64| x & exponent != 0 && x & exponent != exponent;
        let power = k & fraction == 0;
        (normal(k) && normal(r) && (power || any)).then_some(r)
    }
}

/// A value of a narrower type.
enum Narrow {
    Const(u64),
    Extend(Op, Value),
    Cut(Value),
}
