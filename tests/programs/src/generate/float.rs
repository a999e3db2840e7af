//! Floats: whole numbers so small that no operation rounds, in whatever order and precision a device computes.

use super::Gen;
use crate::ast::*;
use crate::types::{Scalar, Type};

/// The largest magnitude of a variable.
pub const LEAF: u32 = 16;
/// The largest magnitude of an expression, which half represents exactly.
const MOST: u32 = 1000;

impl Gen {
    /// A float of a type, scalar or vector, not larger than [`LEAF`].
    pub(super) fn float(&mut self, ty: &Type, depth: usize) -> Expr {
        let (e, bound) = self.float_bounded(ty, depth);
        if bound <= LEAF {
            return e;
        }
        let limit = |value: f64| self.float_const(ty, value);
        let (low, high) = (limit(-f64::from(LEAF)), limit(f64::from(LEAF)));
        let least = Expr::new(ty.clone(), Kind::Pure(Pure::Fmin, vec![e, high]));
        Expr::new(ty.clone(), Kind::Pure(Pure::Fmax, vec![least, low]))
    }

    fn float_const(&self, ty: &Type, value: f64) -> Expr {
        let scalar = ty.element();
        let bits = crate::floats::exact(scalar, value).unwrap_or(0);
        Expr::number(scalar, bits).cast(ty)
    }

    /// A float, and what it is at most.
    fn float_bounded(&mut self, ty: &Type, depth: usize) -> (Expr, u32) {
        if depth == 0 {
            return self.float_leaf(ty);
        }
        let (a, m) = self.float_bounded(ty, depth - 1);
        let one = |f, a: Expr| Expr::new(a.ty.clone(), Kind::Pure(f, vec![a]));
        let choice = self.below(10);
        if choice < 5 {
            let (b, n) = self.float_bounded(ty, depth - 1);
            let op = self.pick(&[Binary::Add, Binary::Sub, Binary::Mul]);
            let bound = if op == Binary::Mul { m * n } else { m + n };
            if bound <= MOST {
                return (Expr::binary(op, a, b), bound);
            }
            return (a, m);
        }
        match choice {
            5 => {
                let (b, n) = self.float_leaf(ty);
                let (c, o) = self.float_leaf(ty);
                if m * n + o > MOST {
                    return (a, m);
                }
                let f = self.pick(&[Pure::Fma, Pure::Mad]);
                (
                    Expr::new(ty.clone(), Kind::Pure(f, vec![a, b, c])),
                    m * n + o,
                )
            }
            6 => (one(Pure::Fabs, a), m),
            7 => {
                // A half is exact, too.
                let half = self.float_const(ty, 0.5);
                let f = self.pick(&[Pure::Floor, Pure::Ceil, Pure::Trunc, Pure::Rint]);
                (one(f, Expr::binary(Binary::Mul, a, half)), m)
            }
            8 if ty.is_scalar() => {
                let test = self.test(depth - 1);
                let (b, n) = self.float_bounded(ty, depth - 1);
                let kind = Kind::Choice(Box::new(test), Box::new(a), Box::new(b));
                (Expr::new(ty.clone(), kind), m.max(n))
            }
            _ => (
                Expr::new(ty.clone(), Kind::Unary(Unary::Neg, Box::new(a))),
                m,
            ),
        }
    }

    fn float_leaf(&mut self, ty: &Type) -> (Expr, u32) {
        if self.percent(55) {
            for _ in 0..4 {
                if let Some(place) = self.some_place(false) {
                    if place.ty.element().is_float() {
                        let e = place.load();
                        return (self.convert(e, ty), LEAF);
                    }
                }
            }
        }
        if self.percent(40) {
            let value = self.below(2 * LEAF as usize) as f64 - f64::from(LEAF);
            return (self.float_const(ty, value), LEAF);
        }
        let e = self.int(Scalar::Int, 1);
        let small = Expr::binary(Binary::And, e, Expr::int(i64::from(LEAF) - 1));
        (small.to(ty.element()).cast(ty), LEAF)
    }

    /// A float as an integer of a type.
    pub(super) fn float_to_int(&mut self, e: Expr, scalar: Scalar) -> Expr {
        let whole = Expr::new(Type::scalar(Scalar::Int), Kind::Cast(Box::new(e)));
        whole.to(scalar)
    }
}
