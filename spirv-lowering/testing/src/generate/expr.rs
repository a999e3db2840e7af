//! Generates random expressions.

use super::body::{Body, KnownValue};
use spirv_lowering::ir::entity::Value;
use spirv_lowering::ir::function::FpFlags;
use spirv_lowering::ir::op::{Builtin, FloatCond, IntCond, Op, Rounding};
use spirv_lowering::ir::types::Type;

const INTS: [Type; 4] = [Type::I8, Type::I16, Type::I32, Type::I64];
const FLOATS: [Type; 3] = [Type::F16, Type::F32, Type::F64];
const CONDITIONS: [IntCond; 10] = [
    IntCond::Eq,
    IntCond::Ne,
    IntCond::Slt,
    IntCond::Sle,
    IntCond::Sgt,
    IntCond::Sge,
    IntCond::Ult,
    IntCond::Ule,
    IntCond::Ugt,
    IntCond::Uge,
];
const FLOAT_CONDITIONS: [FloatCond; 14] = [
    FloatCond::Oeq,
    FloatCond::One,
    FloatCond::Olt,
    FloatCond::Ole,
    FloatCond::Ogt,
    FloatCond::Oge,
    FloatCond::Ord,
    FloatCond::Ueq,
    FloatCond::Une,
    FloatCond::Ult,
    FloatCond::Ule,
    FloatCond::Ugt,
    FloatCond::Uge,
    FloatCond::Uno,
];
const ROUNDINGS: [Rounding; 4] = [Rounding::Rte, Rounding::Rtz, Rounding::Rtp, Rounding::Rtn];

impl Body<'_> {
    /// Returns the bits of an interesting constant.
    fn constant_bits(&mut self, ty: Type) -> u64 {
        let bits = ty.bits();
        let value = match ty {
            Type::Bool => self.gen.rng.bits() & 1,
            Type::F16 => self.gen.rng.pick(&[
                0, 0x8000, 0x3c00, 0xbc00, 0x7c00, 0xfc00, 0x7e00, 0x0001, 0x7bff, 0x4248, 0x3800,
            ]),
            Type::F32 => {
                let number = (self.below(64) as f32 * 0.5 - 8.0).to_bits();
                self.gen.rng.pick(&[
                    0,
                    0x8000_0000,
                    0x3f80_0000,
                    0x7f80_0000,
                    0xff80_0000,
                    0x7fc0_0000,
                    1,
                    0x7f7f_ffff,
                    0x4b00_0000,
                    0x4f00_0000,
                    number.into(),
                    number.into(),
                    number.into(),
                ])
            }
            Type::F64 => {
                let number = (self.below(64) as f64 * 0.5 - 8.0).to_bits();
                self.gen.rng.pick(&[
                    0,
                    1 << 63,
                    0x3ff0_0000_0000_0000,
                    0x7ff0_0000_0000_0000,
                    0x7ff8_0000_0000_0000,
                    1,
                    0x43e0_0000_0000_0000,
                    0x4330_0000_0000_0001,
                    0x3fe0_0000_0000_0000,
                    number,
                    number,
                    number,
                ])
            }
            _ => match self.below(8) {
                0 => 0,
                1 => 1,
                2 => u64::MAX,
                3 => 1 << self.below(bits as usize),
                4 => (1u64 << self.below(bits as usize)).wrapping_sub(1),
                5 => 1 << (bits - 1),
                6 => self.gen.rng.bits(),
                _ => self.below(40) as u64,
            },
        };
        value & ty.mask()
    }

    pub fn constant(&mut self, ty: Type) -> Value {
        let bits = self.constant_bits(ty);
        self.konst(ty, bits)
    }

    /// Returns a constant integer, sometimes one that is known at run time only.
    pub fn opaque(&mut self, ty: Type, bits: u64) -> Value {
        let value = self.konst(ty, bits);
        let Some(zero) = self.zero.filter(|_| ty.is_int() && self.gen.rng.one_in(2)) else {
            return value;
        };
        let zero = match ty {
            Type::I64 => zero,
            ty => self.op(Op::Trunc, &[zero], ty),
        };
        self.op(Op::IAdd, &[value, zero], ty)
    }

    pub fn get(&mut self, at: Value, ty: Type, align: u32) -> Value {
        let volatile = self.one_in(24);
        self.op(Op::Load { align, volatile }, &[at], ty)
    }

    /// Generates a value of a type.
    pub fn value(&mut self, ty: Type) -> Value {
        self.value_of(ty, false, 2)
    }

    /// Generates a value that is the same in all work-items of the group.
    pub fn uniform(&mut self, ty: Type) -> Value {
        self.value_of(ty, true, 2)
    }

    pub fn condition(&mut self, uniform: bool) -> Value {
        self.value_of(Type::Bool, uniform, 2)
    }

    /// Returns an existing value.
    fn leaf(&mut self, ty: Type, uniform: bool) -> Value {
        match self.below(6) {
            0 => self.constant(ty),
            1 | 2 => {
                let fit = |k: &&KnownValue| k.ty == ty && (k.uniform || !uniform);
                let fitting: Vec<Value> = self.known.iter().filter(fit).map(|k| k.value).collect();
                if fitting.is_empty() {
                    return self.loaded(ty, uniform);
                }
                self.gen.rng.pick(&fitting)
            }
            3 | 4 => {
                let fitting: Vec<Value> = self
                    .variables
                    .iter()
                    .filter(|v| v.ty == ty && (v.uniform || !uniform))
                    .map(|v| v.at)
                    .collect();
                if fitting.is_empty() {
                    return self.loaded(ty, uniform);
                }
                let at = self.gen.rng.pick(&fitting);
                self.get(at, ty, ty.size())
            }
            _ => self.loaded(ty, uniform),
        }
    }

    fn loaded(&mut self, ty: Type, uniform: bool) -> Value {
        if ty == Type::Bool {
            return self.constant(ty);
        }
        match self.place(ty.size(), false, uniform) {
            Some((at, align)) => self.get(at, ty, align),
            None => self.constant(ty),
        }
    }

    fn value_of(&mut self, ty: Type, uniform: bool, depth: usize) -> Value {
        if depth == 0 || self.one_in(5) {
            if ty == Type::Bool {
                return self.comparison(uniform, 0);
            }
            return self.leaf(ty, uniform);
        }
        let depth = depth - 1;
        if self.one_in(10) {
            let c = self.value_of(Type::Bool, uniform, depth);
            let a = self.value_of(ty, uniform, depth);
            let b = self.value_of(ty, uniform, depth);
            return self.op(Op::Select, &[c, a, b], ty);
        }
        match ty {
            Type::Bool => self.truth(uniform, depth),
            ty if ty.is_float() => self.float(ty, uniform, depth),
            ty => self.int(ty, uniform, depth),
        }
    }

    fn comparison(&mut self, uniform: bool, depth: usize) -> Value {
        if self.one_in(3) {
            let ty = self.gen.rng.pick(&FLOATS);
            let a = self.value_of(ty, uniform, depth);
            let b = self.value_of(ty, uniform, depth);
            let op = Op::FCmp(self.gen.rng.pick(&FLOAT_CONDITIONS));
            return self.op(op, &[a, b], Type::Bool);
        }
        let ty = self.gen.rng.pick(&INTS);
        let a = self.value_of(ty, uniform, depth);
        let b = if self.one_in(3) {
            self.constant(ty)
        } else {
            self.value_of(ty, uniform, depth)
        };
        let op = Op::ICmp(self.gen.rng.pick(&CONDITIONS));
        self.op(op, &[a, b], Type::Bool)
    }

    fn truth(&mut self, uniform: bool, depth: usize) -> Value {
        match self.below(8) {
            0 => {
                let a = self.value_of(Type::Bool, uniform, depth);
                self.op(Op::Not, &[a], Type::Bool)
            }
            1 | 2 => {
                let a = self.value_of(Type::Bool, uniform, depth);
                let b = self.value_of(Type::Bool, uniform, depth);
                let op = self.gen.rng.pick(&[
                    Op::And,
                    Op::Or,
                    Op::Xor,
                    Op::ICmp(IntCond::Eq),
                    Op::ICmp(IntCond::Ne),
                ]);
                self.op(op, &[a, b], Type::Bool)
            }
            _ => self.comparison(uniform, depth),
        }
    }

    /// Reads a built-in variable: one that is uniform but not constant, or any.
    fn builtin(&mut self, uniform: bool) -> Value {
        let d = self.below(3) as u8;
        let mut list = vec![Builtin::GlobalSize(d), Builtin::GlobalOffset(d)];
        if !uniform {
            list.extend([Builtin::GlobalId(d), Builtin::GlobalLinearId]);
        }
        if self.gen.kind != super::Kind::Plain {
            list.extend([
                Builtin::LocalSize(d),
                Builtin::EnqueuedLocalSize(d),
                Builtin::GroupId(d),
                Builtin::NumGroups(d),
            ]);
            if !uniform {
                list.extend([Builtin::LocalId(d), Builtin::LocalLinearId]);
            }
        }
        let which = self.gen.rng.pick(&list);
        self.op(Op::Builtin(which), &[], Type::I64)
    }

    fn lane(&mut self, uniform: bool) -> Option<Value> {
        if self.gen.kind != super::Kind::Collective || uniform {
            return None;
        }
        let which = self.gen.rng.pick(&[
            Builtin::SubGroupSize,
            Builtin::SubGroupMaxSize,
            Builtin::NumSubGroups,
            Builtin::NumEnqueuedSubGroups,
            Builtin::SubGroupId,
            Builtin::SubGroupLocalId,
            Builtin::WorkDim,
        ]);
        Some(self.op(Op::Builtin(which), &[], Type::I32))
    }

    fn int(&mut self, ty: Type, uniform: bool, depth: usize) -> Value {
        match self.below(24) {
            0..=2 => {
                // From another width.
                let from =
                    self.gen
                        .rng
                        .pick(&[Type::Bool, Type::I8, Type::I16, Type::I32, Type::I64]);
                if from == ty {
                    return self.value_of(ty, uniform, depth);
                }
                let a = self.value_of(from, uniform, depth);
                let op = if from.bits() > ty.bits() {
                    Op::Trunc
                } else {
                    self.gen.rng.pick(&[Op::ZExt, Op::SExt])
                };
                self.op(op, &[a], ty)
            }
            3 => {
                let from = self.gen.rng.pick(&FLOATS);
                let a = self.value_of(from, uniform, depth);
                let rounding = self.gen.rng.pick(&ROUNDINGS);
                let sat = !self.one_in(60);
                let op = if self.one_in(2) {
                    Op::FToS { rounding, sat }
                } else {
                    Op::FToU { rounding, sat }
                };
                self.op(op, &[a], ty)
            }
            4 => {
                let Some(from) = Type::float(ty.bits()) else {
                    return self.value_of(ty, uniform, depth);
                };
                // The bits of a NaN are open.
                let a = self.value_of(from, uniform, depth);
                let ordered = self.op(Op::FCmp(FloatCond::Ord), &[a, a], Type::Bool);
                let zero = self.konst(from, 0);
                let a = self.op(Op::Select, &[ordered, a, zero], from);
                self.op(Op::Bitcast, &[a], ty)
            }
            5 | 6 => {
                let a = self.value_of(ty, uniform, depth);
                let op = self.gen.rng.pick(&[
                    Op::INeg,
                    Op::Not,
                    Op::Clz,
                    Op::Ctz,
                    Op::Popcount,
                    Op::BitReverse,
                ]);
                self.op(op, &[a], ty)
            }
            7 | 8 => {
                let a = self.value_of(ty, uniform, depth);
                let by = if self.one_in(2) {
                    let by = self.below(ty.bits() as usize) as u64;
                    self.konst(ty, by)
                } else {
                    let by = self.value_of(ty, uniform, depth);
                    let mask = self.konst(ty, u64::from(ty.bits()) - 1);
                    self.op(Op::And, &[by, mask], ty)
                };
                let op = self.gen.rng.pick(&[Op::Shl, Op::LShr, Op::AShr]);
                self.op(op, &[a, by], ty)
            }
            9 => {
                let a = self.value_of(ty, uniform, depth);
                let mut b = self.value_of(ty, uniform, depth);
                if !self.one_in(80) {
                    // Neither 0 nor -1.
                    let mask = self.konst(ty, ty.mask() >> 1);
                    b = self.op(Op::And, &[b, mask], ty);
                    let one = self.konst(ty, 1);
                    b = self.op(Op::Or, &[b, one], ty);
                }
                if self.one_in(3) {
                    let bits = [1, 2, 3, 7, 8, 10, 100, 64][self.below(8)];
                    b = self.konst(ty, bits);
                }
                let op = self.gen.rng.pick(&[Op::SDiv, Op::UDiv, Op::SRem, Op::URem]);
                self.op(op, &[a, b], ty)
            }
            10 if ty == Type::I32 => {
                let a = self.value_of(ty, uniform, depth);
                let b = self.value_of(ty, uniform, depth);
                let op = self.gen.rng.pick(&[Op::SDot4, Op::UDot4, Op::SUDot4]);
                self.op(op, &[a, b], ty)
            }
            11 if ty == Type::I64 => self.builtin(uniform),
            12 if ty == Type::I32 => match self.lane(uniform) {
                Some(lane) => lane,
                None => self.leaf(ty, uniform),
            },
            13 => {
                // Shifts there and back, masks and fields.
                let a = self.value_of(ty, uniform, depth);
                let by = self.below(ty.bits() as usize) as u64;
                let by = self.konst(ty, by);
                let there = self.gen.rng.pick(&[Op::Shl, Op::LShr, Op::AShr]);
                let back = self.gen.rng.pick(&[Op::Shl, Op::LShr, Op::AShr]);
                let a = self.op(there, &[a, by], ty);
                self.op(back, &[a, by], ty)
            }
            _ => {
                let a = self.value_of(ty, uniform, depth);
                let b = if self.one_in(3) {
                    self.constant(ty)
                } else {
                    self.value_of(ty, uniform, depth)
                };
                let op = self.gen.rng.pick(&[
                    Op::IAdd,
                    Op::IAdd,
                    Op::ISub,
                    Op::IMul,
                    Op::And,
                    Op::Or,
                    Op::Xor,
                    Op::SMin,
                    Op::SMax,
                    Op::UMin,
                    Op::UMax,
                    Op::SMulHi,
                    Op::UMulHi,
                ]);
                if self.one_in(2) {
                    self.op(op, &[a, b], ty)
                } else {
                    self.op(op, &[b, a], ty)
                }
            }
        }
    }

    fn float(&mut self, ty: Type, uniform: bool, depth: usize) -> Value {
        let fp = match self.below(60) {
            0 => FpFlags::NSZ,
            1 => FpFlags::NNAN | FpFlags::NSZ,
            2 => FpFlags::NINF,
            _ => 0,
        };
        match self.below(16) {
            0 | 1 => {
                let from = self.gen.rng.pick(&INTS);
                let a = self.value_of(from, uniform, depth);
                let rounding = self.gen.rng.pick(&ROUNDINGS);
                let op = if self.one_in(2) {
                    Op::SToF(rounding)
                } else {
                    Op::UToF(rounding)
                };
                self.op(op, &[a], ty)
            }
            2 | 3 => {
                let from = self.gen.rng.pick(&FLOATS);
                let a = self.value_of(from, uniform, depth);
                if from == ty {
                    return self.op(Op::FNeg, &[a], ty);
                }
                let rounding = self.gen.rng.pick(&ROUNDINGS);
                self.op(Op::FConv(rounding), &[a], ty)
            }
            4 => {
                let Some(from) = Type::int(ty.bits()) else {
                    return self.leaf(ty, uniform);
                };
                let a = self.value_of(from, uniform, depth);
                self.op(Op::Bitcast, &[a], ty)
            }
            5 => {
                let a = self.value_of(ty, uniform, depth);
                let op = self
                    .gen
                    .rng
                    .pick(&[Op::FFloor, Op::FCeil, Op::FTrunc, Op::FRoundEven]);
                self.op(op, &[a], ty)
            }
            6 => {
                let a = self.value_of(ty, uniform, depth);
                let op = self.gen.rng.pick(&[Op::FNeg, Op::FAbs]);
                self.op(op, &[a], ty)
            }
            7 => {
                // Small whole numbers, for which fusing makes no difference.
                let parts = [(); 3].map(|()| {
                    let x = self.value_of(Type::I32, uniform, depth.min(1));
                    let mask = self.konst(Type::I32, 15);
                    let x = self.op(Op::And, &[x, mask], Type::I32);
                    self.op(Op::SToF(Rounding::Rte), &[x], ty)
                });
                let [a, b, c] = parts;
                let product = self.op_fp(Op::FMul, &[a, b], ty, FpFlags::CONTRACT);
                let op = self.gen.rng.pick(&[Op::FAdd, Op::FSub]);
                if self.one_in(2) {
                    self.op_fp(op, &[product, c], ty, FpFlags::CONTRACT)
                } else {
                    self.op_fp(op, &[c, product], ty, FpFlags::CONTRACT)
                }
            }
            _ => {
                let a = self.value_of(ty, uniform, depth);
                let b = if self.one_in(3) {
                    self.constant(ty)
                } else {
                    self.value_of(ty, uniform, depth)
                };
                let op = self.gen.rng.pick(&[
                    Op::FAdd,
                    Op::FAdd,
                    Op::FSub,
                    Op::FMul,
                    Op::FMul,
                    Op::FDiv,
                    Op::FRem,
                    Op::FMin,
                    Op::FMax,
                    Op::FCopySign,
                ]);
                self.op_fp(op, &[a, b], ty, fp)
            }
        }
    }
}
