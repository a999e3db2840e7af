//! Generates random places in memory, and statements that store there.

use super::body::{Body, KnownValue, Object};
use super::SCALARS;
use spirv_lowering::ir::entity::Value;
use spirv_lowering::ir::op::{FloatCond, Op};
use spirv_lowering::ir::types::{Space, Type};

impl Body<'_> {
    /// Returns an object of at least `size` bytes.
    pub fn object(&mut self, size: u32, write: bool, uniform: bool) -> Option<Object> {
        let fit = |o: &&Object| o.size >= size && (o.writable || !write) && (o.uniform || !uniform);
        let fitting: Vec<Object> = self.objects.iter().filter(fit).copied().collect();
        (!fitting.is_empty()).then(|| self.gen.rng.pick(&fitting))
    }

    /// Returns the address of `size` bytes in some object, and the alignment that an access may
    /// claim.
    pub fn place(&mut self, size: u32, write: bool, uniform: bool) -> Option<(Value, u32)> {
        if !uniform && !self.pointers.is_empty() && size <= 16 && self.one_in(8) {
            let (slot, space) = self.gen.rng.pick(&self.pointers.clone());
            let at = self.get(slot, Type::Ptr(space), 8);
            let room = (16 - size) / 4;
            let by = self.below(room as usize + 1) as u32 * 4;
            return Some((self.offset(at, by), 4));
        }
        let object = self.object(size, write, uniform)?;
        Some(self.within(object, size, uniform))
    }

    /// Returns an address in an object, and the alignment that an access may claim.
    pub fn within(&mut self, object: Object, size: u32, uniform: bool) -> (Value, u32) {
        let room = object.size - size;
        let unit = match self.below(6) {
            0 => 1,
            1 => 2,
            _ => size.next_power_of_two().min(16),
        };
        if room >= unit && self.one_in(3) {
            return self.dynamic(object, room, unit, uniform);
        }
        let by = self.below((room / unit) as usize + 1) as u32 * unit;
        let align = claimed(object.align, by);
        let align = if self.one_in(6) { 1 } else { align };
        if by == 0 && self.one_in(2) {
            return (object.at, align);
        }
        if by > 1 && self.one_in(4) {
            let first = self.below(by as usize) as u32;
            let at = self.offset(object.at, first);
            return (self.offset(at, by - first), align);
        }
        (self.offset(object.at, by), align)
    }

    /// Returns an index that is known at run time only, and is a multiple of `unit`.
    fn dynamic(&mut self, object: Object, room: u32, unit: u32, uniform: bool) -> (Value, u32) {
        // Indices 0 to mask are all within.
        let count = room / unit + 1;
        let mask = u64::from((count + 1).next_power_of_two() / 2 - 1);
        let shift = u64::from(unit.trailing_zeros());
        let value = |body: &mut Self, ty| {
            if uniform {
                body.uniform(ty)
            } else {
                body.value(ty)
            }
        };
        let by = match self.below(4) {
            0 => {
                // 64 bits throughout.
                let x = value(self, Type::I64);
                let m = self.konst(Type::I64, mask);
                let x = self.op(Op::And, &[x, m], Type::I64);
                let stride = self.konst(Type::I64, unit.into());
                self.op(Op::IMul, &[x, stride], Type::I64)
            }
            1 => {
                let x = value(self, Type::I32);
                let m = self.konst(Type::I32, mask);
                let x = self.op(Op::And, &[x, m], Type::I32);
                let op = self.gen.rng.pick(&[Op::ZExt, Op::SExt]);
                let x = self.op(op, &[x], Type::I64);
                let s = self.konst(Type::I64, shift);
                self.op(Op::Shl, &[x, s], Type::I64)
            }
            2 => {
                // The high bits leave by the shift.
                let x = value(self, Type::I32);
                let high = if shift == 0 {
                    0
                } else {
                    u64::from(u32::MAX) << (32 - shift)
                };
                let m = self.konst(Type::I32, mask | high);
                let x = self.op(Op::And, &[x, m], Type::I32);
                let s = self.konst(Type::I32, shift);
                let x = self.op(Op::Shl, &[x, s], Type::I32);
                self.op(Op::ZExt, &[x], Type::I64)
            }
            _ => {
                let x = value(self, Type::I8);
                let m = self.konst(Type::I8, mask & 0x7f);
                let x = self.op(Op::And, &[x, m], Type::I8);
                let x = self.op(Op::ZExt, &[x], Type::I64);
                let stride = self.konst(Type::I64, unit.into());
                self.op(Op::IMul, &[x, stride], Type::I64)
            }
        };
        let ty = self.func.ty(object.at);
        let mut at = self.op(Op::PtrAdd, &[object.at, by], ty);
        let mut align = object.align.min(unit);
        let most = mask as u32 * unit;
        if room > most && self.one_in(3) {
            let more = self.below((room - most) as usize + 1) as u32;
            at = self.offset(at, more);
            align = claimed(align, more);
        }
        (at, align)
    }

    /// Stores to a variable.
    pub fn assign(&mut self) {
        let variables = self.variables.clone();
        let variable = self.gen.rng.pick(&variables);
        if variable.uniform && self.divergent {
            return;
        }
        let value = if variable.uniform {
            self.uniform(variable.ty)
        } else {
            self.value(variable.ty)
        };
        self.put(variable.at, &[value], variable.ty.size());
    }

    /// Keeps a value for later statements.
    pub fn keep(&mut self) {
        let ty = match self.below(6) {
            0 => Type::Bool,
            _ => self.gen.rng.pick(&SCALARS),
        };
        let uniform = self.one_in(3);
        let value = if uniform {
            self.uniform(ty)
        } else {
            self.value(ty)
        };
        self.known.push(KnownValue { value, ty, uniform });
    }

    /// Generates a value to be read back as another type: seldom a NaN, whose bits are unspecified.
    pub fn plain(&mut self, ty: Type) -> Value {
        let value = self.value(ty);
        if !ty.is_float() || self.one_in(40) {
            return value;
        }
        let ordered = self.op(Op::FCmp(FloatCond::Ord), &[value, value], Type::Bool);
        let zero = self.konst(ty, 0);
        self.op(Op::Select, &[ordered, value, zero], ty)
    }

    pub fn store_somewhere(&mut self) {
        let ty = self.gen.rng.pick(&SCALARS);
        let value = self.plain(ty);
        if let Some((at, align)) = self.place(ty.size(), true, false) {
            self.put(at, &[value], align);
        }
    }

    /// Generates a load or a store of a vector.
    pub fn vector(&mut self) {
        let ty = self.gen.rng.pick(&SCALARS);
        let count = self.gen.rng.pick(&[2usize, 3, 4, 8, 16]);
        let size = ty.size() * count as u32;
        if self.one_in(2) {
            let Some((at, align)) = self.place(size, false, false) else {
                return;
            };
            let op = Op::Load {
                align,
                volatile: false,
            };
            let inst = self.func.append(self.block, op, [at], &vec![ty; count]);
            for value in self.func.insts[inst].results.clone() {
                if self.one_in(2) {
                    self.known.push(KnownValue {
                        value,
                        ty,
                        uniform: false,
                    });
                }
            }
            return;
        }
        let values: Vec<Value> = (0..count).map(|_| self.value_shallow(ty)).collect();
        if let Some((at, align)) = self.place(size, true, false) {
            self.put(at, &values, align);
        }
    }

    fn value_shallow(&mut self, ty: Type) -> Value {
        if self.one_in(3) {
            return self.constant(ty);
        }
        self.plain(ty)
    }

    /// Generates a copy between two objects.
    pub fn copy(&mut self) {
        let size = self.gen.rng.pick(&[4u32, 8, 12, 16, 7, 16, 24, 40, 63]);
        let Some(to) = self.object(size, true, false) else {
            return;
        };
        let Some(from) = self.object(size, false, false) else {
            return;
        };
        // The own slot of `share` is one object; so are all others.
        if to.at == from.at {
            return;
        }
        // Parameters of functions may lead to one place.
        if !self.is_kernel {
            let local = |o: &Object| {
                matches!(
                    self.func.values[o.at].def,
                    spirv_lowering::ir::function::ValueDef::Result(..)
                )
            };
            if !local(&to) || !local(&from) {
                return;
            }
        }
        let (to, a) = self.within(to, size, false);
        let (from, b) = self.within(from, size, false);
        let most = self.gen.rng.pick(&[16, 16, 4, 2, 1]);
        let op = Op::MemCopy {
            size: size.into(),
            align: a.min(b).min(most),
        };
        self.func.append(self.block, op, [to, from], &[]);
    }

    /// Returns a copy of an object's 16 bytes, to be passed by value.
    pub fn by_value(&mut self) -> Value {
        let copy = self.alloca(16, 8);
        let source = self.object(16, false, false);
        match source {
            Some(object) => {
                let align = object.align.min(8);
                let op = Op::MemCopy { size: 16, align };
                self.func.append(self.block, op, [copy, object.at], &[]);
            }
            None => {
                let zero = self.konst(Type::I64, 0);
                self.put(copy, &[zero, zero], 8);
            }
        }
        copy
    }

    /// Returns an object in private memory of at least 16 bytes, aligned to 4.
    pub fn private_object(&mut self) -> Option<Value> {
        let fit = |o: &&Object| {
            o.size >= 16
                && o.align >= 4
                && o.writable
                && self.func.ty(o.at) == Type::Ptr(Space::Private)
        };
        let fitting: Vec<Value> = self.objects.iter().filter(fit).map(|o| o.at).collect();
        (!fitting.is_empty()).then(|| self.gen.rng.pick(&fitting))
    }
}

/// Returns the known alignment at offset `by` of an object.
fn claimed(align: u32, by: u32) -> u32 {
    match by {
        0 => align.min(16),
        by => align.min(1 << by.trailing_zeros()).min(16),
    }
}
