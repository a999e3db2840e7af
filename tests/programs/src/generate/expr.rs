//! Expressions of integers; conversions between all types of numbers.

use super::Gen;
use crate::ast::*;
use crate::types::{Scalar, Type};

const ARITHMETIC: [Binary; 7] = [
    Binary::Add,
    Binary::Sub,
    Binary::Mul,
    Binary::And,
    Binary::Or,
    Binary::Xor,
    Binary::Add,
];
const TESTS: [Binary; 6] = [
    Binary::Eq,
    Binary::Ne,
    Binary::Lt,
    Binary::Le,
    Binary::Gt,
    Binary::Ge,
];

impl Gen {
    /// A number of a type.
    pub(super) fn number(&mut self, ty: &Type, depth: usize) -> Expr {
        match ty {
            Type::Num(scalar, _) if scalar.is_float() => self.float(ty, depth),
            Type::Num(scalar, 1) => self.int(*scalar, depth),
            _ => self.vector(ty, depth),
        }
    }

    /// A constant; those near an end of the range are likelier than others.
    pub(super) fn constant(&mut self, scalar: Scalar) -> Expr {
        let bits = scalar.bits();
        let value = match self.below(10) {
            0..=4 => self.below(17) as u64,
            5 => (self.below(17) as u64).wrapping_neg(),
            6 => 1 << self.below(bits as usize),
            7 => scalar.mask() >> self.below(bits as usize),
            8 => (1 << (bits - 1)) - self.below(3) as u64,
            _ => self.rng.bits(),
        };
        Expr::number(scalar, value)
    }

    /// Converts a number to another type.
    pub(super) fn convert(&mut self, e: Expr, to: &Type) -> Expr {
        if e.ty == *to {
            return e;
        }
        let (from, scalar) = (e.ty.element(), to.element());
        match (e.ty.lanes(), to.lanes()) {
            (1, 1) => match (from.is_float(), scalar.is_float()) {
                (true, false) => self.float_to_int(e, scalar),
                (false, true) => {
                    // Promoted, so that the mask is of its type.
                    let small = Expr::binary(Binary::And, e, Expr::int(15));
                    small.to(scalar)
                }
                (false, false) if self.percent(15) => {
                    let sat = self.percent(50);
                    Expr::new(to.clone(), Kind::Convert(Box::new(e), sat))
                }
                _ => e.to(scalar),
            },
            (1, _) => {
                let e = self.convert(e, &Type::scalar(scalar));
                e.cast(to)
            }
            (lanes, 1) => {
                let lane = self.below(lanes) as u8;
                let lane = Expr::new(Type::scalar(from), Kind::Lanes(Box::new(e), vec![lane]));
                self.convert(lane, to)
            }
            (a, b) if a == b => {
                if scalar.is_float() && !from.is_float() {
                    let mask = Expr::number(from, 15).cast(&e.ty);
                    let small = Expr::binary(Binary::And, e, mask);
                    return Expr::new(to.clone(), Kind::Convert(Box::new(small), false));
                }
                // Of a float that is negative an unsigned integer is not defined.
                let sat = from.is_float() || self.percent(30);
                let bits = from.bits() == scalar.bits();
                if bits && !from.is_float() && !scalar.is_float() && self.percent(50) {
                    return Expr::new(to.clone(), Kind::As(Box::new(e)));
                }
                let sat = sat && !scalar.is_float();
                Expr::new(to.clone(), Kind::Convert(Box::new(e), sat))
            }
            (a, b) => {
                let lanes: Vec<u8> = (0..b).map(|_| self.below(a) as u8).collect();
                let ty = Type::Num(from, b as u8);
                let e = Expr::new(ty, Kind::Lanes(Box::new(e), lanes));
                self.convert(e, to)
            }
        }
    }

    /// An integer.
    pub(super) fn int(&mut self, scalar: Scalar, depth: usize) -> Expr {
        if depth == 0 {
            return self.int_leaf(scalar);
        }
        let deep = depth - 1;
        let ty = Type::scalar(scalar);
        match self.below(20) {
            0..=5 => {
                let op = self.pick(&ARITHMETIC);
                self.wrapped(op, scalar, deep)
            }
            6 | 7 => {
                let op = self.pick(&[Binary::Shl, Binary::Shr, Binary::Shr]);
                let a = self.int(scalar, deep);
                let by = if self.percent(60) {
                    Expr::int(self.below(scalar.bits() as usize) as i64)
                } else {
                    self.int(Scalar::Int, deep.min(1))
                };
                Expr::binary(op, a, by).to(scalar)
            }
            // Narrowed by two shifts.
            8 => {
                let wide = self.pick(&[Scalar::Int, Scalar::Uint, Scalar::Long]);
                let by = self.pick(&[8, 16, 24]);
                let a = self.int(wide, deep);
                let up = Expr::binary(Binary::Shl, a, Expr::int(by));
                Expr::binary(Binary::Shr, up, Expr::int(by)).to(scalar)
            }
            // Types are mixed, as the operator cannot overflow.
            9 => {
                let op = self.pick(&[Binary::And, Binary::Or, Binary::Xor]);
                let (a, b) = (self.int_type(), self.int_type());
                let (a, b) = (self.int(a, deep), self.int(b, deep));
                Expr::binary(op, a, b).to(scalar)
            }
            10 | 11 => self.test(deep).to(scalar),
            12 | 13 => {
                let test = self.test(deep);
                let (a, b) = (self.int(scalar, deep), self.int(scalar, deep));
                let kind = Kind::Choice(Box::new(test), Box::new(a), Box::new(b));
                // The operands are promoted.
                Expr::new(Type::scalar(scalar.promoted()), kind).to(scalar)
            }
            14 if self.may("chains") && self.percent(50) => self.chain(scalar, deep),
            14 => {
                let other = self.int_type();
                let e = self.int(other, deep);
                self.convert(e, &ty)
            }
            15 => self.division(scalar, deep),
            16 | 17 => self.function(&ty, deep),
            18 => self.from_vector(scalar, deep),
            _ => {
                let a = self.int(scalar, deep);
                if self.percent(50) || scalar.is_signed() {
                    return Expr::new(
                        Type::scalar(scalar.promoted()),
                        Kind::Unary(Unary::Not, Box::new(a)),
                    )
                    .to(scalar);
                }
                let a = a.to(scalar.common(Scalar::Uint));
                Expr::new(a.ty.clone(), Kind::Unary(Unary::Neg, Box::new(a))).to(scalar)
            }
        }
    }

    /// An operator on integers that may overflow, done on unsigned ones.
    fn wrapped(&mut self, op: Binary, scalar: Scalar, depth: usize) -> Expr {
        let (a, b) = (self.int(scalar, depth), self.int(scalar, depth));
        let overflows = matches!(op, Binary::Add | Binary::Sub | Binary::Mul);
        let small = scalar.bits() < 32 && !(op == Binary::Mul && scalar.bits() == 16);
        if !overflows || small || !scalar.is_signed() && scalar.bits() >= 32 {
            return Expr::binary(op, a, b).to(scalar);
        }
        let wide = if scalar.bits() == 64 {
            Scalar::Ulong
        } else {
            Scalar::Uint
        };
        Expr::binary(op, a.to(wide), b.to(wide)).to(scalar)
    }

    fn division(&mut self, scalar: Scalar, depth: usize) -> Expr {
        if self.percent(30) {
            let ty = scalar.promoted();
            let (a, c) = (self.int(ty, depth), self.int(ty, depth.min(1)));
            let mask = self.pick(&[1, 3, u64::MAX]);
            let few = self.int(ty, depth.min(1));
            let b = Expr::binary(Binary::And, few, Expr::number(ty, mask)).to(ty);
            let args = vec![a.to(ty), b, c.to(ty)];
            return Expr::new(Type::scalar(ty), Kind::Pure(Pure::Quotient, args)).to(scalar);
        }
        let op = self.pick(&[Binary::Div, Binary::Rem]);
        let a = self.int(scalar, depth);
        let b = self.int(scalar, depth.min(1));
        let divisor = if scalar.is_signed() {
            let few = Expr::binary(Binary::And, b, Expr::number(scalar, 31));
            Expr::binary(Binary::Add, few, Expr::number(scalar, 1))
        } else {
            Expr::binary(Binary::Or, b, Expr::number(scalar, 1))
        };
        Expr::binary(op, a, divisor).to(scalar)
    }

    /// A truth value, as an int.
    pub(super) fn test(&mut self, depth: usize) -> Expr {
        match self.below(10) {
            0 if depth > 0 => {
                let op = self.pick(&[Binary::Both, Binary::Either]);
                let (a, b) = (self.test(depth - 1), self.test(depth - 1));
                Expr::binary(op, a, b)
            }
            1 if depth > 0 => {
                let a = self.test(depth - 1);
                Expr::new(
                    Type::scalar(Scalar::Int),
                    Kind::Unary(Unary::Zero, Box::new(a)),
                )
            }
            2 if self.style.floats => {
                let ty = Type::scalar(self.float_type());
                let (a, b) = (self.float(&ty, depth.min(1)), self.float(&ty, 0));
                let op = self.pick(&TESTS);
                Expr::binary(op, a, b)
            }
            // One of some values, which compilers make a switch of.
            3 | 4 if self.may("labels") => {
                let scalar = self.int_type();
                let e = self.int_leaf(scalar);
                let (mut test, count) = (None, 2 + self.below(3));
                for _ in 0..count {
                    let value = Expr::number(scalar, self.below(9) as u64);
                    let is = Expr::binary(Binary::Eq, e.clone(), value);
                    test = Some(match test {
                        None => is,
                        Some(before) => Expr::binary(Binary::Either, before, is),
                    });
                }
                test.unwrap_or_else(|| Expr::int(1))
            }
            5 | 6 => {
                // Likelier to be either than a comparison with anything.
                let e = self.int(Scalar::Uint, depth);
                let mask = self.pick(&[1u64, 3, 3, 7, 12]);
                let few = Expr::binary(Binary::And, e, Expr::number(Scalar::Uint, mask));
                let op = self.pick(&[Binary::Eq, Binary::Ne]);
                Expr::binary(op, few, Expr::number(Scalar::Uint, 0))
            }
            _ => {
                let scalar = self.int_type();
                let (a, b) = (self.int(scalar, depth), self.int(scalar, depth.min(1)));
                let op = self.pick(&TESTS);
                Expr::binary(op, a, b)
            }
        }
    }

    /// Returns an affine function of the work-item's id, which may wrap around in a narrower type on the way.
    pub(super) fn affine(&mut self, scalar: Scalar) -> Expr {
        if !self.may("wrap") {
            return self.int_leaf(scalar);
        }
        let mut e = match (self.in_kernel, self.item) {
            (true, _) if self.percent(60) => {
                let dim = self.below(self.program.range.dims) as u8;
                let query = self.pick(&[Query::GlobalId, Query::GlobalId, Query::LocalId]);
                Expr::query(query, dim)
            }
            (true, Some(item)) => self.get(item),
            _ => return self.int_leaf(scalar),
        };
        for _ in 0..1 + self.below(2) {
            let of = self.pick(&[
                Scalar::Uint,
                Scalar::Uint,
                Scalar::Ulong,
                Scalar::Ushort,
                Scalar::Uchar,
            ]);
            let op = self.pick(&[Binary::Add, Binary::Add, Binary::Sub, Binary::Mul]);
            let by = self.below(if op == Binary::Mul { 6 } else { 40 }) as u64;
            let wide = if of == Scalar::Ulong {
                of
            } else {
                Scalar::Uint
            };
            e = Expr::binary(op, e.to(wide), Expr::number(wide, by)).to(of);
            if self.percent(20) {
                e = e.to(of.signed());
            }
        }
        e.to(scalar)
    }

    /// A value that goes through several types.
    fn chain(&mut self, scalar: Scalar, depth: usize) -> Expr {
        let first = self.int_type();
        let mut e = self.int(first, depth);
        for _ in 0..1 + self.below(4) {
            e = e.to(self.int_type());
        }
        e.to(scalar)
    }

    fn int_leaf(&mut self, scalar: Scalar) -> Expr {
        if self.percent(20) {
            return self.constant(scalar);
        }
        if self.in_kernel && self.may("wrap") && self.percent(8) {
            return self.affine(scalar);
        }
        if self.in_kernel && self.percent(25) {
            return self.query(scalar);
        }
        for _ in 0..2 {
            if let Some(place) = self.some_place(false) {
                let e = place.load();
                return self.convert(e, &Type::scalar(scalar));
            }
        }
        self.constant(scalar)
    }

    fn query(&mut self, scalar: Scalar) -> Expr {
        let dims = self.program.range.dims;
        let dim = if self.percent(85) {
            self.below(dims)
        } else {
            self.below(3)
        } as u8;
        let mut list = vec![
            Query::GlobalId,
            Query::GlobalId,
            Query::GlobalId,
            Query::LocalId,
            Query::LocalId,
            Query::GroupId,
            Query::GlobalSize,
            Query::LocalSize,
            Query::GlobalOffset,
            Query::NumGroups,
            Query::WorkDim,
        ];
        if self.style.standard >= 20 {
            list.extend([
                Query::GlobalLinearId,
                Query::LocalLinearId,
                Query::EnqueuedLocalSize,
            ]);
        }
        if self.style.sub_groups {
            list.extend([
                Query::SubGroupId,
                Query::SubGroupLocalId,
                Query::SubGroupSize,
            ]);
            list.extend([Query::NumSubGroups, Query::MaxSubGroupSize]);
        }
        let query = self.pick(&list);
        let dim = if query.signature().1 { dim } else { 0 };
        Expr::query(query, dim).to(scalar)
    }

    /// A built-in function of integers of a type, scalar or vector.
    fn function(&mut self, ty: &Type, depth: usize) -> Expr {
        let Type::Num(scalar, lanes) = *ty else {
            return self.constant(Scalar::Int);
        };
        let f = self.pick(&[
            Pure::AddSat,
            Pure::SubSat,
            Pure::Hadd,
            Pure::Rhadd,
            Pure::Clz,
            Pure::Popcount,
            Pure::Rotate,
            Pure::MulHi,
            Pure::Max,
            Pure::Min,
            Pure::Bitselect,
            Pure::Abs,
            Pure::AbsDiff,
            Pure::Select,
            Pure::Ctz,
        ]);
        let since = match f {
            Pure::Ctz => 20,
            Pure::Popcount => 12,
            _ => 10,
        };
        if self.style.standard < since {
            return self.number(ty, depth);
        }
        let mut args = vec![self.number(ty, depth)];
        if !matches!(f, Pure::Clz | Pure::Ctz | Pure::Popcount | Pure::Abs) {
            args.push(self.number(ty, depth.min(1)));
        }
        if f == Pure::Bitselect {
            args.push(self.number(ty, depth.min(1)));
        }
        if f == Pure::Select {
            let which = if self.percent(50) {
                scalar.signed()
            } else {
                scalar.unsigned()
            };
            args.push(self.number(&Type::Num(which, lanes), depth.min(1)));
        }
        // These are unsigned, whatever their operands are.
        let unsigned = matches!(f, Pure::Abs | Pure::AbsDiff);
        let result = if unsigned {
            Type::Num(scalar.unsigned(), lanes)
        } else {
            ty.clone()
        };
        let e = Expr::new(result, Kind::Pure(f, args));
        if lanes == 1 || e.ty == *ty {
            return e.cast(ty);
        }
        Expr::new(ty.clone(), Kind::As(Box::new(e)))
    }

    /// A scalar out of a vector.
    fn from_vector(&mut self, scalar: Scalar, depth: usize) -> Expr {
        let lanes = self.pick(&[2u8, 3, 4, 8, 16]);
        if self.percent(30) {
            let of = self.pick(&[Scalar::Char, Scalar::Short, Scalar::Int, Scalar::Long]);
            let v = self.vector(&Type::Num(of, lanes), depth.min(1));
            let f = self.pick(&[Pure::Any, Pure::All]);
            return Expr::new(Type::scalar(Scalar::Int), Kind::Pure(f, vec![v])).to(scalar);
        }
        let v = self.vector(&Type::Num(scalar, lanes), depth.min(1));
        self.convert(v, &Type::scalar(scalar))
    }

    /// A vector of integers.
    pub(super) fn vector(&mut self, ty: &Type, depth: usize) -> Expr {
        let Type::Num(scalar, lanes) = *ty else {
            return self.constant(Scalar::Int);
        };
        let deep = depth.saturating_sub(1);
        let choice = if depth == 0 {
            self.below(4)
        } else {
            self.below(11)
        };
        match choice {
            0 | 1 => {
                for _ in 0..4 {
                    if let Some(place) = self.some_place(false) {
                        let e = place.load();
                        return self.convert(e, ty);
                    }
                }
                self.int_leaf(scalar).cast(ty)
            }
            2 => {
                // Of parts.
                let mut parts = Vec::new();
                let mut left = lanes;
                while left > 0 {
                    let part = self.pick(&[1u8, 1, 2, 4]);
                    let part = if part < left { part } else { 1 };
                    let of = Type::Num(scalar, part);
                    parts.push(match part {
                        1 => self.int_leaf(scalar),
                        _ => self.vector(&of, 0),
                    });
                    left -= part;
                }
                Expr::new(ty.clone(), Kind::Build(parts))
            }
            3 => self.int_leaf(scalar).cast(ty),
            4..=6 => {
                let unsigned = Type::Num(scalar.unsigned(), lanes);
                let op = self.pick(&ARITHMETIC);
                let (a, b) = (self.vector(&unsigned, deep), self.vector(&unsigned, deep));
                let e = Expr::binary(op, a, b);
                if scalar.is_signed() {
                    return Expr::new(ty.clone(), Kind::As(Box::new(e)));
                }
                e
            }
            7 => {
                // The truth values of a comparison.
                let of = if self.percent(50) {
                    scalar.signed()
                } else {
                    scalar.unsigned()
                };
                let of = Type::Num(of, lanes);
                let (a, b) = (self.vector(&of, deep), self.vector(&of, 0));
                let op = self.pick(&TESTS);
                let e = Expr::binary(op, a, b);
                if e.ty == *ty {
                    return e;
                }
                Expr::new(ty.clone(), Kind::As(Box::new(e)))
            }
            8 => self.function(ty, deep),
            9 => {
                let from = self.pick(&[2u8, 4, 8, 16]);
                let v = self.vector(&Type::Num(scalar, from), deep);
                if lanes == 3 || self.percent(60) {
                    return self.convert(v, ty);
                }
                let mask = Type::Num(scalar.unsigned(), lanes);
                let mask = self.vector(&mask, 0);
                Expr::new(ty.clone(), Kind::Pure(Pure::Shuffle, vec![v, mask]))
            }
            _ => {
                let op = self.pick(&[Binary::Shl, Binary::Shr]);
                let (a, b) = (self.vector(ty, deep), self.vector(ty, 0));
                Expr::binary(op, a, b)
            }
        }
    }
}
