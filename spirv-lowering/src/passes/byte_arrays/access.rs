//! Lowers accesses: to whole elements, to several, to parts of one, and atomics.

use super::Lower;
use crate::error::{LowerError, Result};
use crate::ir::entity::{Entity, Value, Var};
use crate::ir::function::{Function, InstData, Storage, ValueDef};
use crate::ir::op::{FloatCond, IntCond, Op, Order, RmwOp, Scope};
use crate::ir::types::Type;
use smallvec::SmallVec;

impl Lower<'_> {
    /// Replaces an access to a class of arrays.
    pub(super) fn access(&mut self, data: &InstData, class: usize) -> Result<()> {
        let at = data.args[0];
        if self.classes[class].lanes > 1 {
            return self.whole_vector(data, class);
        }
        match data.op {
            Op::Load { align, .. } => {
                let (ty, _) = accessed(self.func, data)?;
                let align = align_of(align, ty);
                for (i, &result) in data.results.iter().enumerate() {
                    let value = self.read(class, at, i as u32 * ty.size(), ty, align);
                    self.rename(value, result);
                }
            }
            Op::Store { align, .. } => {
                let (ty, _) = accessed(self.func, data)?;
                let align = align_of(align, ty);
                for (i, &value) in data.args[1..].iter().enumerate() {
                    self.write(class, at, i as u32 * ty.size(), value, ty, align);
                }
            }
            _ if self.plan.storage == Storage::Function => self.plain_atomic(data, class)?,
            _ => self.atomic(data, class)?,
        }
        Ok(())
    }

    /// Lowers a load or store of one element that is a vector.
    fn whole_vector(&mut self, data: &InstData, class: usize) -> Result<()> {
        let (ty, lanes) = accessed(self.func, data)?;
        let var = self.array(class, self.classes[class].elem.unwrap_or(Type::I32));
        let elem = self.func.vars[var].elem;
        if lanes != self.func.vars[var].lanes || ty.size() != elem.size() {
            return Err(LowerError::internal("an access to a part of a vector"));
        }
        let size = lanes * ty.size();
        let index = self.index(data.args[0], 0, size, size);
        if let Op::Store { .. } = data.op {
            let mut args: SmallVec<[Value; 5]> = SmallVec::new();
            args.push(index);
            for &value in &data.args[1..] {
                args.push(self.cast(value, elem));
            }
            self.inst(Op::VarStore(var), &args, &[]);
            return Ok(());
        }
        let types: SmallVec<[Type; 4]> = data.results.iter().map(|_| elem).collect();
        let inst = self.inst(Op::VarLoad(var), &[index], &types);
        for (i, &result) in data.results.iter().enumerate() {
            if ty == elem {
                self.func.insts[inst].results[i] = result;
                self.func.values[result].def = ValueDef::Result(inst, i as u32);
            } else {
                let value = self.func.insts[inst].results[i];
                self.define(result, Op::Bitcast, &[value], ty);
            }
        }
        Ok(())
    }

    /// Makes `to` another name of a value that was just made.
    fn rename(&mut self, value: Value, to: Value) {
        let ty = self.func.ty(value);
        if let Some(inst) = self.func.def_inst(value) {
            if self.out.last() == Some(&inst) && self.func.insts[inst].results.len() == 1 {
                self.func.insts[inst].results[0] = to;
                self.func.values[to].def = ValueDef::Result(inst, 0);
                self.func.values[to].ty = ty;
                return;
            }
        }
        self.define(to, Op::Bitcast, &[value], ty);
    }

    /// Returns the width of the pieces of an access, and the element width and array for them.
    fn pieces(&mut self, class: usize, ty: Type, align: u32) -> (u32, u32, Var) {
        let unit = ty.size().min(align);
        let width = if self.plan.explicit_layout {
            unit
        } else {
            self.classes[class].width
        };
        let elem = if self.plan.explicit_layout {
            Type::int(width * 8)
        } else {
            self.classes[class].elem
        };
        let var = self.array(class, elem.unwrap_or(Type::I32));
        (unit.min(width), width, var)
    }

    fn index(&mut self, at: Value, offset: u32, width: u32, piece: u32) -> Value {
        let by = width.trailing_zeros();
        if piece == width {
            let mut exact = true;
            let index = match self.scaled(at, by, 0, &mut exact) {
                Some(index) if exact => index,
                Some(index) => {
                    let mask = self.konst(Type::I32, u64::from(u32::MAX >> by));
                    self.op(Op::And, &[index, mask], Type::I32)
                }
                None => self.shift(Op::LShr, at, by),
            };
            self.add(index, offset >> by)
        } else {
            let byte = self.add(at, offset);
            self.shift(Op::LShr, byte, by)
        }
    }

    /// Divides a byte offset by the width of an element, where the division is seen to be exact.
    /// The result is right but for its highest `by` bits. Those bits are right too if the
    /// arithmetic was narrowed from 64 bits by this pass, because offsets within an array only
    /// overflow 64 bits. Otherwise `exact` becomes false, as bits may have been lost at the top of
    /// a 32-bit value.
    fn scaled(&mut self, at: Value, by: u32, depth: u32, exact: &mut bool) -> Option<Value> {
        if by == 0 {
            return Some(at);
        }
        let inst = self.func.def_inst(at)?;
        let data = self.func.insts[inst].clone();
        let ours = inst.index() >= self.first_own;
        let amount = data.args.get(1).and_then(|&v| self.func.as_const(v));
        let whole = |bits: u64| bits % (1 << by) == 0;
        let down = |bits: u64| (bits as u32 as i32 >> by) as u32 as u64;
        match data.op {
            Op::Const(bits) if whole(bits) => Some(self.konst(Type::I32, down(bits))),
            Op::Shl => {
                let left = u32::try_from(amount?).ok()?.checked_sub(by)?;
                *exact &= ours;
                Some(self.shift(Op::Shl, data.args[0], left))
            }
            Op::IMul if amount.is_some_and(whole) => {
                *exact &= ours;
                let factor = self.konst(Type::I32, down(amount?));
                Some(self.op(Op::IMul, &[data.args[0], factor], Type::I32))
            }
            Op::IAdd | Op::ISub if depth < 6 => {
                let a = self.scaled(data.args[0], by, depth + 1, exact)?;
                let b = self.scaled(data.args[1], by, depth + 1, exact)?;
                *exact &= ours;
                Some(self.op(data.op, &[a, b], Type::I32))
            }
            _ => None,
        }
    }

    /// Computes the bit position of a piece in its element.
    fn bit(&mut self, at: Value, offset: u32, width: u32, ty: Type) -> Value {
        let byte = self.add(at, offset);
        let mask = self.konst(Type::I32, u64::from(width - 1));
        let byte = self.op(Op::And, &[byte, mask], Type::I32);
        let bit = self.shift(Op::Shl, byte, 3);
        self.cast(bit, ty)
    }

    fn read(&mut self, class: usize, at: Value, offset: u32, ty: Type, align: u32) -> Value {
        let (piece, width, var) = self.pieces(class, ty, align);
        let elem = self.func.vars[var].elem;
        let whole = ty.as_int().unwrap_or(Type::I32);
        let part = Type::int(piece * 8).unwrap_or(Type::I32);
        let mut value: Option<Value> = None;
        for k in (0..ty.size()).step_by(piece as usize) {
            let index = self.index(at, offset + k, width, piece);
            let mut v = self.op(Op::VarLoad(var), &[index], elem);
            if piece < width {
                let bit = self.bit(at, offset + k, width, elem);
                v = self.op(Op::LShr, &[v, bit], elem);
                v = self.cast(v, part);
            }
            if piece == ty.size() {
                value = Some(v);
                break;
            }
            v = self.cast(v, part);
            v = self.cast(v, whole);
            v = self.shift(Op::Shl, v, k * 8);
            value = Some(match value {
                Some(sum) => self.op(Op::Or, &[sum, v], whole),
                None => v,
            });
        }
        let value = match value {
            Some(v) => v,
            None => self.op(Op::Undef, &[], whole),
        };
        if ty.is_ptr() {
            self.op(Op::IntToPtr, &[value], ty)
        } else {
            self.cast(value, ty)
        }
    }

    fn write(&mut self, class: usize, at: Value, offset: u32, value: Value, ty: Type, align: u32) {
        let (piece, width, var) = self.pieces(class, ty, align);
        let elem = self.func.vars[var].elem;
        let part = Type::int(piece * 8).unwrap_or(Type::I32);
        let mut value = value;
        if ty.is_ptr() {
            value = self.op(Op::PtrToInt, &[value], Type::I64);
        }
        if piece < ty.size() {
            value = self.cast(value, ty.as_int().unwrap_or(Type::I32));
        }
        for k in (0..ty.size()).step_by(piece as usize) {
            let mut v = value;
            if piece < ty.size() {
                v = self.shift(Op::LShr, v, k * 8);
                v = self.cast(v, part);
            }
            let index = self.index(at, offset + k, width, piece);
            if piece == width {
                v = self.cast(v, elem);
                self.inst(Op::VarStore(var), &[index, v], &[]);
                continue;
            }
            let bit = self.bit(at, offset + k, width, elem);
            let ones = self.konst(elem, part.mask());
            let hole = self.op(Op::Shl, &[ones, bit], elem);
            let keep = self.op(Op::Not, &[hole], elem);
            v = self.cast(v, part);
            v = self.cast(v, elem);
            v = self.op(Op::Shl, &[v, bit], elem);
            if self.plan.storage == Storage::Workgroup {
                for (op, operand) in [(RmwOp::And, keep), (RmwOp::Or, v)] {
                    let op = Op::VarRmw {
                        var,
                        op,
                        scope: Scope::WorkGroup,
                        order: Order::Relaxed,
                    };
                    self.inst(op, &[index, operand], &[elem]);
                }
            } else {
                let old = self.op(Op::VarLoad(var), &[index], elem);
                let old = self.op(Op::And, &[old, keep], elem);
                let new = self.op(Op::Or, &[old, v], elem);
                self.inst(Op::VarStore(var), &[index, new], &[]);
            }
        }
    }

    /// Lowers an atomic on shared memory.
    fn atomic(&mut self, data: &InstData, class: usize) -> Result<()> {
        let (ty, _) = accessed(self.func, data)?;
        let float = matches!(
            data.op,
            Op::AtomicRmw {
                op: RmwOp::FAdd,
                ..
            }
        );
        let width = if self.plan.explicit_layout {
            ty.size()
        } else {
            self.classes[class].width
        };
        if width != ty.size() {
            return Err(LowerError::unsupported(
                "atomics of different widths on the same local memory",
            ));
        }
        let elem = if float {
            ty
        } else {
            ty.as_int().unwrap_or(Type::I32)
        };
        let var = self.array(class, elem);
        let index = self.shift(Op::LShr, data.args[0], width.trailing_zeros());
        let op = match data.op {
            Op::AtomicLoad { scope, order } => Op::VarAtomicLoad { var, scope, order },
            Op::AtomicStore { scope, order } => Op::VarAtomicStore { var, scope, order },
            Op::AtomicRmw { op, scope, order } => Op::VarRmw {
                var,
                op,
                scope,
                order,
            },
            Op::AtomicCmpXchg { scope, order } => Op::VarCmpXchg { var, scope, order },
            _ => return Err(LowerError::internal("not an atomic")),
        };
        let mut args: SmallVec<[Value; 4]> = SmallVec::new();
        args.push(index);
        for &v in &data.args[1..] {
            args.push(if self.func.ty(v).is_ptr() {
                self.op(Op::PtrToInt, &[v], Type::I64)
            } else {
                v
            });
        }
        match data.results.first() {
            None => {
                self.inst(op, &args, &[]);
            }
            Some(&result) if self.func.ty(result).is_ptr() => {
                let bits = self.op(op, &args, Type::I64);
                let ty = self.func.ty(result);
                self.define(result, Op::IntToPtr, &[bits], ty);
            }
            Some(&result) => {
                let ty = self.func.ty(result);
                self.define(result, op, &args, ty);
            }
        }
        Ok(())
    }

    /// Lowers an atomic on private memory to plain accesses.
    fn plain_atomic(&mut self, data: &InstData, class: usize) -> Result<()> {
        let (ty, _) = accessed(self.func, data)?;
        let at = data.args[0];
        let size = ty.size();
        if let Op::AtomicStore { .. } = data.op {
            self.write(class, at, 0, data.args[1], ty, size);
            return Ok(());
        }
        let old = self.read(class, at, 0, ty, size);
        if let Some(&result) = data.results.first() {
            self.rename(old, result);
        }
        let old = data.results.first().copied().unwrap_or(old);
        let new = match data.op {
            Op::AtomicRmw { op, .. } => {
                let operand = data.args[1];
                let pick = |this: &mut Self, cond: Op| {
                    let c = this.op(cond, &[old, operand], Type::Bool);
                    this.op(Op::Select, &[c, old, operand], ty)
                };
                match op {
                    RmwOp::Xchg => operand,
                    RmwOp::Add => self.op(Op::IAdd, &[old, operand], ty),
                    RmwOp::Sub => self.op(Op::ISub, &[old, operand], ty),
                    RmwOp::And => self.op(Op::And, &[old, operand], ty),
                    RmwOp::Or => self.op(Op::Or, &[old, operand], ty),
                    RmwOp::Xor => self.op(Op::Xor, &[old, operand], ty),
                    RmwOp::FAdd => self.op(Op::FAdd, &[old, operand], ty),
                    RmwOp::SMin => pick(self, Op::ICmp(IntCond::Slt)),
                    RmwOp::SMax => pick(self, Op::ICmp(IntCond::Sgt)),
                    RmwOp::UMin => pick(self, Op::ICmp(IntCond::Ult)),
                    RmwOp::UMax => pick(self, Op::ICmp(IntCond::Ugt)),
                    RmwOp::FMin => pick(self, Op::FCmp(FloatCond::Olt)),
                    RmwOp::FMax => pick(self, Op::FCmp(FloatCond::Ogt)),
                }
            }
            Op::AtomicCmpXchg { .. } => {
                let same = self.op(Op::ICmp(IntCond::Eq), &[old, data.args[1]], Type::Bool);
                self.op(Op::Select, &[same, data.args[2], old], ty)
            }
            _ => return Ok(()),
        };
        self.write(class, at, 0, new, ty, size);
        Ok(())
    }
}

/// Returns true if the operation accesses memory through its first operand.
pub(super) fn is_access(op: Op) -> bool {
    matches!(
        op,
        Op::Load { .. }
            | Op::Store { .. }
            | Op::AtomicLoad { .. }
            | Op::AtomicStore { .. }
            | Op::AtomicRmw { .. }
            | Op::AtomicCmpXchg { .. }
    )
}

/// Returns the type and the number of the values that an access moves.
pub(super) fn accessed(func: &Function, data: &InstData) -> Result<(Type, u32)> {
    let values = if data.results.is_empty() {
        data.args.get(1..).unwrap_or_default()
    } else {
        &data.results
    };
    let first = values
        .first()
        .ok_or_else(|| LowerError::internal("an access of nothing"))?;
    let ty = func.ty(*first);
    if ty == Type::Bool || ty == Type::Handle {
        return Err(LowerError::internal(format!(
            "a value of type {ty:?} in memory"
        )));
    }
    let lanes = if matches!(data.op, Op::Load { .. } | Op::Store { .. }) {
        values.len() as u32
    } else {
        1
    };
    Ok((ty, lanes))
}

/// Returns the alignment of an access, in bytes, which is that of its type if it has none.
pub(super) fn align_of(align: u32, ty: Type) -> u32 {
    if align == 0 {
        ty.size()
    } else {
        1 << align.trailing_zeros()
    }
}
