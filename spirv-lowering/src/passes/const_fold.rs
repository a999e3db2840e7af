//! Folds operations on constants and simplifies algebraically, in one walk in reverse postorder.
//!
//! Constants, `undef` and addresses of module-level variables are gathered at the start of the entry block, one of
//! each. Canonical forms, on which other passes may rely: the constant of a commutative operation is the second
//! operand; `isub x, c` is `iadd x, -c`; multiplication and unsigned division by a power of two are shifts; a
//! constant offset is the outermost `ptr_add` of a chain. Floating point is changed only where the result is the
//! same to the bit (the payload of NaN aside), or where the flags of the instruction allow it.

use crate::analysis::cfg::Cfg;
use crate::ir::entity::{Inst, Value};
use crate::ir::fold::fold;
use crate::ir::function::{FpFlags, Function, Terminator, Values};
use crate::ir::op::{FloatCond, IntCond, Op};
use crate::ir::subst::Subst;
use crate::ir::types::{Space, Type};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// Rewrites of one instruction in place.
const MAX_STEPS: usize = 12;

/// Runs the pass. True if the function changed.
pub fn run(func: &mut Function) -> bool {
    let Some(entry) = func.entry() else {
        return false;
    };
    let cfg = Cfg::new(func);
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
    for &block in cfg.rpo() {
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

/// What becomes of an instruction.
enum Action {
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
    /// Moves a constant to the head, or replaces it by the one that is there.
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

    /// A new instruction before the one at hand, simplified itself.
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

    /// The operation and operands that make a value.
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
                Action::Keep => break,
                Action::Value(value) => {
                    self.subst.set(result, value);
                    self.changed = true;
                    return;
                }
                Action::Rewrite(op, args) => {
                    self.func.insts[inst].op = op;
                    self.func.insts[inst].args = args;
                    self.changed = true;
                }
            }
        }
        self.out.push(inst);
    }

    /// Switches on a value that was widened or offset are left to the source compiler; only constants that no case
    /// can have are dropped elsewhere. Here: switch on `zext` becomes a switch on its operand.
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

    fn simplify(&mut self, inst: Inst, ty: Type) -> Action {
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
            _ => Action::Keep,
        }
    }

    fn unary(&mut self, op: Op, _fp: FpFlags, ty: Type, a: Value) -> Action {
        let from = self.func.ty(a);
        let Some((inner, inner_args)) = self.def(a) else {
            return match op {
                Op::Bitcast | Op::SpaceCast if from == ty => Action::Value(a),
                _ => Action::Keep,
            };
        };
        let Some(&x) = inner_args.first() else {
            return match op {
                Op::Bitcast | Op::SpaceCast if from == ty => Action::Value(a),
                _ => Action::Keep,
            };
        };
        let y = inner_args.get(1).copied();
        let xt = self.func.ty(x);
        let one = |op, x| Action::Rewrite(op, Values::from_slice(&[x]));
        let two = |op, x, y| Action::Rewrite(op, Values::from_slice(&[x, y]));
        match (op, inner) {
            (Op::Bitcast | Op::SpaceCast, _) if from == ty => Action::Value(a),
            (Op::Not, Op::Not) | (Op::INeg, Op::INeg) | (Op::FNeg, Op::FNeg) => Action::Value(x),
            (Op::BitReverse, Op::BitReverse) => Action::Value(x),
            (Op::FAbs, Op::FAbs) => Action::Value(a),
            (Op::FAbs, Op::FNeg) => one(Op::FAbs, x),
            (Op::INeg, Op::ISub) => match y {
                Some(y) => two(Op::ISub, y, x),
                None => Action::Keep,
            },
            (Op::Not, Op::ICmp(cond)) => match y {
                Some(y) => two(Op::ICmp(invert(cond)), x, y),
                None => Action::Keep,
            },
            (Op::Not, Op::FCmp(cond)) => match y {
                Some(y) => two(Op::FCmp(invert_float(cond)), x, y),
                None => Action::Keep,
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
            (Op::Bitcast, Op::Bitcast) if xt == ty => Action::Value(x),
            (Op::Bitcast, Op::Bitcast) => one(Op::Bitcast, x),
            (Op::PtrToInt, Op::IntToPtr) => Action::Value(x),
            (Op::IntToPtr, Op::PtrToInt) if xt == ty => Action::Value(x),
            (Op::SpaceCast, Op::SpaceCast) if xt == ty && from == Type::Ptr(Space::Generic) => {
                Action::Value(x)
            }
            (Op::PtrIsIn(space), Op::SpaceCast)
                if xt.space().is_some_and(|s| s != Space::Generic)
                    && from == Type::Ptr(Space::Generic) =>
            {
                // A null pointer may be said to be anywhere.
                let holds = xt.space() == Some(space);
                Action::Value(self.constant(Type::Bool, holds.into()))
            }
            (Op::PtrIsIn(_), Op::PtrAdd) => one(op, x),
            (Op::Trunc, Op::Trunc) => one(Op::Trunc, x),
            (Op::Trunc, Op::ZExt | Op::SExt) => {
                if xt == ty {
                    Action::Value(x)
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
                None => Action::Keep,
            },
            (Op::Trunc, Op::Shl) => match y.and_then(|y| self.c(y)) {
                Some(amount) if amount < u64::from(ty.bits()) => match self.narrowed(x, ty) {
                    Some(x) => {
                        let x = self.make_narrow(x, ty);
                        let amount = self.constant(ty, amount);
                        two(Op::Shl, x, amount)
                    }
                    None => Action::Keep,
                },
                _ => Action::Keep,
            },
            (Op::ZExt, Op::ZExt) | (Op::SExt, Op::SExt) => one(op, x),
            (Op::SExt, Op::ZExt) => one(Op::ZExt, x),
            (Op::ZExt, Op::Trunc) if xt == ty => {
                let mask = self.constant(ty, from.mask());
                two(Op::And, x, mask)
            }
            (Op::SToF(r) | Op::UToF(r), Op::ZExt) if xt.is_int() => one(Op::UToF(r), x),
            (Op::SToF(_), Op::SExt) if xt.is_int() => one(op, x),
            (Op::FConv(_), Op::FConv(_)) if xt == ty && from.bits() > xt.bits() => Action::Value(x),
            _ => Action::Keep,
        }
    }

    /// What a value is when cut to `ty`, if that costs nothing.
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

    /// Truncated arithmetic on widened values is arithmetic of the narrow type.
    fn narrow(&mut self, op: Op, ty: Type, x: Value, y: Value) -> Action {
        let (Some(x), Some(y)) = (self.narrowed(x, ty), self.narrowed(y, ty)) else {
            return Action::Keep;
        };
        let x = self.make_narrow(x, ty);
        let y = self.make_narrow(y, ty);
        Action::Rewrite(op, Values::from_slice(&[x, y]))
    }

    fn int2(&mut self, op: Op, ty: Type, a: Value, b: Value) -> Action {
        let bits = u64::from(ty.bits());
        let mask = ty.mask();
        let (ca, cb) = (self.c(a), self.c(b));
        let two = |op, x, y| Action::Rewrite(op, Values::from_slice(&[x, y]));
        let one = |op, x| Action::Rewrite(op, Values::from_slice(&[x]));
        if ca.is_some() && cb.is_none() && op.is_commutative() {
            return two(op, b, a);
        }
        if a == b {
            match op {
                Op::ISub | Op::Xor => return Action::Value(self.constant(ty, 0)),
                Op::And | Op::Or | Op::SMin | Op::SMax | Op::UMin | Op::UMax => {
                    return Action::Value(a)
                }
                _ => {}
            }
        }
        if ca == Some(0) && matches!(op, Op::Shl | Op::LShr | Op::AShr | Op::UDiv | Op::URem) {
            return Action::Value(a);
        }
        if let Some(action) = self.of_widened(op, ty, a, b) {
            return action;
        }
        if op == Op::ISub && ca == Some(0) {
            return one(Op::INeg, b);
        }
        let Some(k) = cb else {
            if op == Op::Or {
                if let Some(action) = self.join_parts(ty, a, b) {
                    return action;
                }
            }
            return match (op, self.def(a), self.def(b)) {
                (Op::IAdd, _, Some((Op::INeg, args))) => two(Op::ISub, a, args[0]),
                (Op::IAdd, Some((Op::INeg, args)), _) => two(Op::ISub, b, args[0]),
                (Op::ISub, _, Some((Op::INeg, args))) => two(Op::IAdd, a, args[0]),
                (Op::ISub, Some((Op::IAdd, args)), _) if args[0] == b => Action::Value(args[1]),
                (Op::ISub, Some((Op::IAdd, args)), _) if args[1] == b => Action::Value(args[0]),
                (Op::IAdd, Some((Op::ISub, args)), _) if args[1] == b => Action::Value(args[0]),
                (Op::IAdd, _, Some((Op::ISub, args))) if args[1] == a => Action::Value(args[0]),
                _ => Action::Keep,
            };
        };
        // The second operand is the constant k.
        match op {
            Op::ISub => {
                let k = self.constant(ty, k.wrapping_neg());
                return two(Op::IAdd, a, k);
            }
            Op::IAdd | Op::Or | Op::Xor | Op::Shl | Op::LShr | Op::AShr if k == 0 => {
                return Action::Value(a)
            }
            Op::And | Op::IMul | Op::UMulHi if k == 0 => return Action::Value(b),
            Op::And if k == mask => return Action::Value(a),
            Op::Or if k == mask => return Action::Value(b),
            Op::Xor if k == mask => return one(Op::Not, a),
            Op::IMul | Op::UDiv | Op::SDiv if k == 1 => return Action::Value(a),
            Op::URem | Op::SRem if k == 1 => return Action::Value(self.constant(ty, 0)),
            Op::IMul if k == mask => return one(Op::INeg, a),
            Op::IMul if k.is_power_of_two() => {
                let amount = self.constant(ty, k.trailing_zeros().into());
                return two(Op::Shl, a, amount);
            }
            Op::UDiv if k.is_power_of_two() => {
                let amount = self.constant(ty, k.trailing_zeros().into());
                return two(Op::LShr, a, amount);
            }
            Op::URem if k.is_power_of_two() => {
                let low = self.constant(ty, k - 1);
                return two(Op::And, a, low);
            }
            Op::UMin if k == 0 => return Action::Value(b),
            Op::UMin if k == mask => return Action::Value(a),
            Op::UMax if k == 0 => return Action::Value(a),
            Op::UMax if k == mask => return Action::Value(b),
            _ => {}
        }
        // Chains: (x op c) op k.
        let Some((inner, args)) = self.def(a) else {
            return Action::Keep;
        };
        let Some(&x) = args.first() else {
            return Action::Keep;
        };
        if let (Op::And, Op::ZExt) = (op, inner) {
            // The mask keeps all that the extension left.
            let low = self.func.ty(x).mask();
            if k & low == low {
                return Action::Value(a);
            }
        }
        let Some(c) = args.get(1).and_then(|&v| self.c(v)) else {
            return Action::Keep;
        };
        // Masks that keep all that a shift left.
        if (op, inner) == (Op::And, Op::LShr) && c < bits && (mask >> c) & !k == 0
            || (op, inner) == (Op::And, Op::Shl) && c < bits && (mask << c) & mask & !k == 0
        {
            return Action::Value(a);
        }
        let (op, k) = match (op, inner) {
            (Op::IAdd, Op::IAdd) => (op, c.wrapping_add(k)),
            (Op::IMul, Op::IMul) => (op, c.wrapping_mul(k)),
            (Op::IMul, Op::Shl) if c < bits => (op, k << c),
            (Op::Shl, Op::IMul) if k < bits => (Op::IMul, c << k),
            (Op::And, Op::And) => (op, c & k),
            (Op::Or, Op::Or) => (op, c | k),
            (Op::Xor, Op::Xor) => (op, c ^ k),
            (Op::Shl, Op::Shl) | (Op::LShr, Op::LShr) if c < bits && k < bits => {
                if c + k >= bits {
                    return Action::Value(self.constant(ty, 0));
                }
                (op, c + k)
            }
            (Op::AShr, Op::AShr) if c < bits && k < bits => (op, (c + k).min(bits - 1)),
            (Op::LShr, Op::Shl) if c == k && k < bits => (Op::And, mask >> k),
            (Op::Shl, Op::LShr) if c == k && k < bits => (Op::And, mask << k),
            (Op::Xor, Op::Not) => (Op::Xor, !k),
            _ => return Action::Keep,
        };
        let k = self.constant(ty, k);
        two(op, x, k)
    }

    /// A value as `(x >> shift) & mask`, where a negative shift goes left.
    fn part(&self, ty: Type, value: Value) -> Part {
        let mut steps: SmallVec<[(Op, u64); 6]> = SmallVec::new();
        let mut x = value;
        while steps.len() < 6 {
            let Some((op @ (Op::And | Op::Shl | Op::LShr), args)) = self.def(x) else {
                break;
            };
            let Some(k) = self.c(args[1]) else { break };
            if op != Op::And && k >= u64::from(ty.bits()) {
                break;
            }
            steps.push((op, k));
            x = args[0];
        }
        let mut part = Part {
            x,
            shift: 0,
            mask: ty.mask(),
        };
        for (op, k) in steps.into_iter().rev() {
            match op {
                Op::And => part.mask &= k,
                Op::Shl => {
                    part.shift -= k as i64;
                    part.mask = part.mask << k & ty.mask();
                }
                _ => {
                    part.shift += k as i64;
                    part.mask >>= k;
                }
            }
        }
        part
    }

    /// `or` of two parts of one value, both where they were relative to one another, is one part.
    fn join_parts(&mut self, ty: Type, a: Value, b: Value) -> Option<Action> {
        let (p, q) = (self.part(ty, a), self.part(ty, b));
        if p.x != q.x || p.shift != q.shift || p.shift.unsigned_abs() >= u64::from(ty.bits()) {
            return None;
        }
        let mask = p.mask | q.mask;
        let amount = p.shift.unsigned_abs();
        let (moved, all) = if p.shift > 0 {
            let k = self.constant(ty, amount);
            (self.emit(Op::LShr, &[p.x, k], ty), ty.mask() >> amount)
        } else if p.shift < 0 {
            let k = self.constant(ty, amount);
            (
                self.emit(Op::Shl, &[p.x, k], ty),
                ty.mask() << amount & ty.mask(),
            )
        } else {
            (p.x, ty.mask())
        };
        if all & !mask == 0 {
            return Some(Action::Value(moved));
        }
        let mask = self.constant(ty, mask);
        Some(Action::Rewrite(Op::And, Values::from_slice(&[moved, mask])))
    }

    /// Operations on zero-extended values that are as well done before the extension.
    fn of_widened(&mut self, op: Op, ty: Type, a: Value, b: Value) -> Option<Action> {
        // The operand that is an extension gives the narrow type; the other is one too, or a constant that fits.
        let extended = |v: Value| match self.def(v) {
            Some((Op::ZExt, args)) => Some((args[0], self.func.ty(args[0]))),
            _ => None,
        };
        let (x, y) = (extended(a), extended(b));
        let from = x.or(y)?.1;
        if from == Type::Bool {
            return None;
        }
        let narrow = |v: Value, known: Option<(Value, Type)>| match (known, self.c(v)) {
            (Some((inner, t)), _) => (t == from).then_some(Ok(inner)),
            (None, Some(k)) => (k & !from.mask() == 0).then_some(Err(k)),
            _ => None,
        };
        let two = |op, x, y| Some(Action::Rewrite(op, Values::from_slice(&[x, y])));
        match op {
            Op::LShr | Op::AShr => {
                let (inner, k) = (x?.0, self.c(b)?);
                if k >= u64::from(ty.bits()) {
                    return None;
                }
                if k >= u64::from(from.bits()) {
                    return Some(Action::Value(self.constant(ty, 0)));
                }
                let k = self.constant(from, k);
                let value = self.emit(Op::LShr, &[inner, k], from);
                return Some(Action::Rewrite(Op::ZExt, Values::from_slice(&[value])));
            }
            Op::And if x.is_some() && self.c(b).is_some() => {
                let (inner, k) = (x?.0, self.c(b)?);
                let k = self.constant(from, k);
                let value = self.emit(Op::And, &[inner, k], from);
                return Some(Action::Rewrite(Op::ZExt, Values::from_slice(&[value])));
            }
            Op::SDiv | Op::SRem | Op::SMin | Op::SMax => {
                if narrow(a, x).is_none() || narrow(b, y).is_none() {
                    return None;
                }
                // Neither is negative.
                if self
                    .c(a)
                    .or(self.c(b))
                    .is_some_and(|k| k >> (ty.bits() - 1) != 0)
                {
                    return None;
                }
                let unsigned = match op {
                    Op::SDiv => Op::UDiv,
                    Op::SRem => Op::URem,
                    Op::SMin => Op::UMin,
                    _ => Op::UMax,
                };
                return two(unsigned, a, b);
            }
            Op::UDiv | Op::URem | Op::And | Op::Or | Op::Xor | Op::UMin | Op::UMax => {}
            _ => return None,
        }
        let (x, y) = (narrow(a, x)?, narrow(b, y)?);
        let x = x.unwrap_or_else(|k| self.constant(from, k));
        let y = y.unwrap_or_else(|k| self.constant(from, k));
        let value = self.emit(op, &[x, y], from);
        Some(Action::Rewrite(Op::ZExt, Values::from_slice(&[value])))
    }

    fn icmp(&mut self, cond: IntCond, a: Value, b: Value) -> Action {
        let ty = self.func.ty(a);
        let two = |cond, x, y| Action::Rewrite(Op::ICmp(cond), Values::from_slice(&[x, y]));
        let one = |op, x| Action::Rewrite(op, Values::from_slice(&[x]));
        if self.c(a).is_some() && self.c(b).is_none() {
            return two(swap(cond), b, a);
        }
        if a == b {
            use IntCond::*;
            let holds = matches!(cond, Eq | Sle | Sge | Ule | Uge);
            return Action::Value(self.constant(Type::Bool, holds.into()));
        }
        let (da, db) = (self.def(a), self.def(b));
        // Both widened alike.
        if let (Some((x @ (Op::ZExt | Op::SExt), ax)), Some((y, ay))) = (da, db) {
            let (p, q) = (ax[0], ay.first().copied());
            if let Some(q) = q.filter(|&q| x == y && self.func.ty(q) == self.func.ty(p)) {
                if self.func.ty(p) != Type::Bool {
                    return two(if x == Op::ZExt { unsigned(cond) } else { cond }, p, q);
                }
            }
        }
        let Some(k) = self.c(b) else {
            return Action::Keep;
        };
        if ty == Type::Bool {
            return match (cond, k) {
                (IntCond::Eq, 1) | (IntCond::Ne, 0) => Action::Value(a),
                _ => one(Op::Not, a),
            };
        }
        match (cond, k) {
            (IntCond::Ult, 0) => return Action::Value(self.constant(Type::Bool, 0)),
            (IntCond::Uge, 0) => return Action::Value(self.constant(Type::Bool, 1)),
            (IntCond::Ult, 1) | (IntCond::Ule, 0) => {
                let zero = self.constant(ty, 0);
                return two(IntCond::Eq, a, zero);
            }
            (IntCond::Uge, 1) | (IntCond::Ugt, 0) => {
                let zero = self.constant(ty, 0);
                return two(IntCond::Ne, a, zero);
            }
            _ => {}
        }
        let equality = matches!(cond, IntCond::Eq | IntCond::Ne);
        let Some((inner, args)) = da else {
            return Action::Keep;
        };
        let Some(&x) = args.first() else {
            return Action::Keep;
        };
        let y = args.get(1).copied();
        let z = args.get(2).copied();
        let xt = self.func.ty(x);
        match inner {
            Op::ZExt if xt == Type::Bool => {
                // 0 or 1 compared with k.
                let at = |n| crate::ir::fold::int_compare(cond, ty, n, k);
                match (at(0), at(1)) {
                    (false, true) => Action::Value(x),
                    (true, false) => one(Op::Not, x),
                    (always, _) => Action::Value(self.constant(Type::Bool, always.into())),
                }
            }
            Op::SExt if xt == Type::Bool => {
                let at = |n| crate::ir::fold::int_compare(cond, ty, n, k);
                match (at(0), at(ty.mask())) {
                    (false, true) => Action::Value(x),
                    (true, false) => one(Op::Not, x),
                    (always, _) => Action::Value(self.constant(Type::Bool, always.into())),
                }
            }
            Op::ZExt if k & !xt.mask() == 0 => {
                let k = self.constant(xt, k);
                two(unsigned(cond), x, k)
            }
            Op::SExt => {
                let shift = 64 - xt.bits();
                let wide = ((k << shift) as i64 >> shift) as u64 & ty.mask();
                if wide != k {
                    return Action::Keep;
                }
                let k = self.constant(xt, k);
                two(cond, x, k)
            }
            Op::IAdd if equality => match y.and_then(|y| self.c(y)) {
                Some(c) => {
                    let k = self.constant(ty, k.wrapping_sub(c));
                    two(cond, x, k)
                }
                None => Action::Keep,
            },
            Op::Xor if equality => match y.and_then(|y| self.c(y)) {
                Some(c) => {
                    let k = self.constant(ty, k ^ c);
                    two(cond, x, k)
                }
                None if k == 0 => match y {
                    Some(y) => two(cond, x, y),
                    None => Action::Keep,
                },
                None => Action::Keep,
            },
            Op::ISub if equality && k == 0 => match y {
                Some(y) => two(cond, x, y),
                None => Action::Keep,
            },
            Op::Select => {
                let arms = (y.and_then(|v| self.c(v)), z.and_then(|v| self.c(v)));
                let (Some(t), Some(f)) = arms else {
                    return Action::Keep;
                };
                let at = |n| crate::ir::fold::int_compare(cond, ty, n, k);
                match (at(t), at(f)) {
                    (true, false) => Action::Value(x),
                    (false, true) => one(Op::Not, x),
                    (always, _) => Action::Value(self.constant(Type::Bool, always.into())),
                }
            }
            _ => Action::Keep,
        }
    }

    fn fcmp(&mut self, cond: FloatCond, a: Value, b: Value) -> Action {
        if self.c(a).is_some() && self.c(b).is_none() {
            let args = Values::from_slice(&[b, a]);
            return Action::Rewrite(Op::FCmp(swap_float(cond)), args);
        }
        Action::Keep
    }

    fn select(&mut self, ty: Type, c: Value, a: Value, b: Value) -> Action {
        let args = |list: &[Value]| Values::from_slice(list);
        if let Some(bits) = self.c(c) {
            return Action::Value(if bits & 1 != 0 { a } else { b });
        }
        if a == b || self.is_undef(b) {
            return Action::Value(a);
        }
        if self.is_undef(a) {
            return Action::Value(b);
        }
        if let Some((Op::Not, inner)) = self.def(c) {
            let inner = inner[0];
            return Action::Rewrite(Op::Select, args(&[inner, b, a]));
        }
        let (ca, cb) = (self.c(a), self.c(b));
        if ty == Type::Bool {
            return match (ca, cb) {
                (Some(1), Some(0)) => Action::Value(c),
                (Some(0), Some(1)) => Action::Rewrite(Op::Not, args(&[c])),
                (Some(1), _) => Action::Rewrite(Op::Or, args(&[c, b])),
                (_, Some(0)) => Action::Rewrite(Op::And, args(&[c, a])),
                _ => Action::Keep,
            };
        }
        if ty.is_int() {
            match (ca, cb) {
                (Some(1), Some(0)) => return Action::Rewrite(Op::ZExt, args(&[c])),
                (Some(m), Some(0)) if m == ty.mask() => {
                    return Action::Rewrite(Op::SExt, args(&[c]))
                }
                _ => {}
            }
        }
        // An arm that selects by the same condition.
        if let Some((Op::Select, inner)) = self.def(a) {
            if inner[0] == c {
                return Action::Rewrite(Op::Select, args(&[c, inner[1], b]));
            }
        }
        if let Some((Op::Select, inner)) = self.def(b) {
            if inner[0] == c {
                return Action::Rewrite(Op::Select, args(&[c, a, inner[2]]));
            }
        }
        Action::Keep
    }

    fn ptr_add(&mut self, ty: Type, p: Value, offset: Value) -> Action {
        let two = |x, y| Action::Rewrite(Op::PtrAdd, Values::from_slice(&[x, y]));
        let k = self.c(offset);
        if k == Some(0) {
            return Action::Value(p);
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
        Action::Keep
    }

    fn float2(&mut self, op: Op, fp: FpFlags, ty: Type, a: Value, b: Value) -> Action {
        let two = |op, x, y| Action::Rewrite(op, Values::from_slice(&[x, y]));
        let one = |op, x| Action::Rewrite(op, Values::from_slice(&[x]));
        if self.c(a).is_some() && self.c(b).is_none() && op.is_commutative() {
            return two(op, b, a);
        }
        let (number_one, sign) = match ty {
            Type::F16 => (0x3c00, 0x8000),
            Type::F32 => (0x3f80_0000, 0x8000_0000),
            _ => (0x3ff0_0000_0000_0000, 1 << 63),
        };
        match (op, self.c(b)) {
            (Op::FMul | Op::FDiv, Some(k)) if k == number_one => return Action::Value(a),
            (Op::FMul | Op::FDiv, Some(k)) if k == number_one | sign => return one(Op::FNeg, a),
            (Op::FSub, Some(0)) => return Action::Value(a),
            (Op::FAdd, Some(k)) if k == sign => return Action::Value(a),
            (Op::FAdd, Some(0)) | (Op::FSub, Some(_))
                if fp.has(FpFlags::NSZ) && self.c(b).is_some_and(|k| k & !sign == 0) =>
            {
                return Action::Value(a);
            }
            (Op::FMul, Some(0)) if fp.has(FpFlags::NNAN | FpFlags::NSZ) => {
                return Action::Value(b);
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
            (Op::FMin | Op::FMax, ..) if a == b => Action::Value(a),
            _ => Action::Keep,
        }
    }

    /// 1 / k where that is a power of two and both are normal, or where the flags allow it.
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

/// Some bits of a value, moved.
struct Part {
    x: Value,
    shift: i64,
    mask: u64,
}

/// A value of a narrower type.
enum Narrow {
    Const(u64),
    Extend(Op, Value),
    Cut(Value),
}

/// The condition that holds when this one does not.
fn invert(cond: IntCond) -> IntCond {
    use IntCond::*;
    match cond {
        Eq => Ne,
        Ne => Eq,
        Slt => Sge,
        Sle => Sgt,
        Sgt => Sle,
        Sge => Slt,
        Ult => Uge,
        Ule => Ugt,
        Ugt => Ule,
        Uge => Ult,
    }
}

/// The condition on swapped operands.
fn swap(cond: IntCond) -> IntCond {
    use IntCond::*;
    match cond {
        Eq => Eq,
        Ne => Ne,
        Slt => Sgt,
        Sle => Sge,
        Sgt => Slt,
        Sge => Sle,
        Ult => Ugt,
        Ule => Uge,
        Ugt => Ult,
        Uge => Ule,
    }
}

/// The condition on zero-extended operands, put to the narrow ones.
fn unsigned(cond: IntCond) -> IntCond {
    use IntCond::*;
    match cond {
        Slt => Ult,
        Sle => Ule,
        Sgt => Ugt,
        Sge => Uge,
        other => other,
    }
}

fn invert_float(cond: FloatCond) -> FloatCond {
    use FloatCond::*;
    match cond {
        Oeq => Une,
        One => Ueq,
        Olt => Uge,
        Ole => Ugt,
        Ogt => Ule,
        Oge => Ult,
        Ord => Uno,
        Ueq => One,
        Une => Oeq,
        Ult => Oge,
        Ule => Ogt,
        Ugt => Ole,
        Uge => Olt,
        Uno => Ord,
    }
}

fn swap_float(cond: FloatCond) -> FloatCond {
    use FloatCond::*;
    match cond {
        Olt => Ogt,
        Ole => Oge,
        Ogt => Olt,
        Oge => Ole,
        Ult => Ugt,
        Ule => Uge,
        Ugt => Ult,
        Uge => Ule,
        other => other,
    }
}
