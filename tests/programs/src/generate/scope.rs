//! Variables in scope: numbers, arrays, pointers, structs.

use super::Gen;
use crate::ast::*;
use crate::types::{Scalar, Space, Struct, Type};

/// Something with numbers in it.
#[derive(Debug, Clone)]
pub struct Source {
    /// The place, or for a pointer that of its target's first element.
    pub at: At,
    /// May be written.
    pub write: bool,
    /// The same for all work-items of a group.
    pub uniform: bool,
}

/// The form of a source.
#[derive(Debug, Clone)]
pub enum At {
    /// A place of any type that is not a pointer.
    Place(Place),
    /// A pointer to so many elements, a power of two.
    Pointer(Expr, usize),
}

/// All that is in scope.
#[derive(Debug, Clone, Default)]
pub struct Scope {
    pub sources: Vec<Source>,
}

impl Gen {
    /// Brings a place into scope.
    pub(super) fn know(&mut self, place: Place, write: bool, uniform: bool) {
        let at = At::Place(place);
        self.names.sources.push(Source { at, write, uniform });
    }

    /// Brings a pointer to so many elements into scope.
    pub(super) fn know_pointer(&mut self, pointer: Expr, count: usize, write: bool) {
        let at = At::Pointer(pointer, count);
        self.names.sources.push(Source {
            at,
            write,
            uniform: false,
        });
    }

    /// An index below a power of two.
    pub(super) fn index(&mut self, count: usize) -> Expr {
        if count == 1 || self.nest > 1 || self.percent(25) {
            let at = self.below(count);
            return Expr::int(at as i64);
        }
        let depth = self.below(2);
        let bits = i64::from(count.ilog2());
        match self.below(8) {
            // Around the middle, narrowed by shifts or by a type.
            0 => {
                let e = if self.percent(60) {
                    self.affine(Scalar::Int)
                } else {
                    self.int(Scalar::Int, depth)
                };
                let up = Expr::binary(Binary::Shl, e, Expr::int(32 - bits));
                let narrow = Expr::binary(Binary::Shr, up, Expr::int(32 - bits));
                Expr::binary(Binary::Add, Expr::int(count as i64 / 2), narrow)
            }
            1 if bits >= 8 => {
                let e = self.affine(Scalar::Char);
                Expr::binary(Binary::Add, Expr::int(count as i64 / 2), e)
            }
            1 => {
                let e = self.int(Scalar::Uint, depth);
                Expr::binary(Binary::Shr, e, Expr::int(32 - bits))
            }
            2 => {
                let scalar = self.pick(&[Scalar::Uint, Scalar::Ulong]);
                let e = self.int(scalar, depth);
                Expr::binary(Binary::Rem, e, Expr::number(scalar, count as u64))
            }
            3 | 4 => {
                let scalar = self.pick(&[Scalar::Int, Scalar::Uint, Scalar::Ulong]);
                let e = self.affine(scalar);
                Expr::binary(Binary::And, e, Expr::number(scalar, count as u64 - 1))
            }
            _ => {
                let scalar = self.pick(&[
                    Scalar::Int,
                    Scalar::Uint,
                    Scalar::Uint,
                    Scalar::Ulong,
                    Scalar::Uchar,
                ]);
                let e = self.int(scalar, depth);
                Expr::binary(Binary::And, e, Expr::number(scalar, count as u64 - 1))
            }
        }
    }

    /// A number's place in some source, if there is one; to be written or read.
    pub(super) fn some_place(&mut self, write: bool) -> Option<Place> {
        self.nest += 1;
        let place = self.some_place_in(write);
        self.nest -= 1;
        place
    }

    fn some_place_in(&mut self, write: bool) -> Option<Place> {
        let fits = |source: &&Source| !write || source.write && !source.uniform;
        let sources: Vec<Source> = self.names.sources.iter().filter(fits).cloned().collect();
        if sources.is_empty() {
            return None;
        }
        // Later ones are likelier.
        let from = if self.percent(60) {
            sources.len() * 2 / 3
        } else {
            0
        };
        let at = from + self.below(sources.len() - from);
        let source = &sources[at];
        let place = match &source.at {
            At::Place(place) => place.clone(),
            At::Pointer(pointer, count) => {
                let index = self.index(*count);
                pointer.clone().moved(index).deref()
            }
        };
        self.into_number(place, write)
    }

    /// A number in a place.
    pub(super) fn into_number(&mut self, mut place: Place, write: bool) -> Option<Place> {
        loop {
            place = match &place.ty {
                Type::Num(_, 1) => return Some(place),
                Type::Num(scalar, lanes) if write && self.percent(50) => {
                    let (scalar, lanes) = (*scalar, *lanes);
                    let count = self.pick(&[1, 1, 2]).min(lanes);
                    let first = self.below(usize::from(lanes)) as u8;
                    let list: Vec<u8> = (0..count)
                        .map(|i| (first + i * (lanes / 2)) % lanes)
                        .collect();
                    let kind = PlaceKind::Lanes(Box::new(place), list);
                    return Some(Place {
                        ty: Type::Num(scalar, count),
                        kind,
                    });
                }
                Type::Num(..) => return Some(place),
                Type::Array(_, count) => {
                    let index = self.index(*count);
                    place.index(index)
                }
                Type::Struct(index) => {
                    let Struct { fields, .. } = &self.program.structs[*index];
                    let field = self.rng.below(fields.len());
                    place.field(field, &self.program.structs)
                }
                _ => return None,
            };
        }
    }

    /// The same value for all work-items of a group.
    pub(super) fn uniform_int(&mut self, depth: usize) -> Expr {
        if depth > 0 && self.percent(60) {
            let op = self.pick(&[
                Binary::Add,
                Binary::Xor,
                Binary::And,
                Binary::Mul,
                Binary::Sub,
            ]);
            let a = self.uniform_int(depth - 1);
            let b = self.uniform_int(depth - 1);
            return Expr::binary(op, a, b);
        }
        let sources = self.names.sources.iter().filter(|source| source.uniform);
        let places: Vec<Place> = sources
            .filter_map(|source| match &source.at {
                At::Place(place) if place.ty.is_scalar() && !place.ty.element().is_float() => {
                    Some(place.clone())
                }
                At::Pointer(pointer, count) => {
                    let at = (*count as i64) / 3;
                    Some(pointer.clone().moved(Expr::int(at)).deref())
                }
                At::Place(_) => None,
            })
            .filter(|place| place.ty.is_scalar() && !place.ty.element().is_float())
            .collect();
        if !places.is_empty() && self.percent(65) {
            let place = self.pick(&places);
            return place.load().to(Scalar::Uint);
        }
        if self.in_kernel && self.percent(40) {
            let dim = self.below(3) as u8;
            let query = self.pick(&[
                Query::GroupId,
                Query::NumGroups,
                Query::LocalSize,
                Query::GlobalSize,
            ]);
            return Expr::query(query, dim).to(Scalar::Uint);
        }
        let value = self.below(40) as u64;
        Expr::number(Scalar::Uint, value)
    }

    /// A pointer to at least so many elements of a number type: the type, the pointer, how many.
    pub(super) fn some_pointer(&mut self, write: bool) -> Option<(Expr, usize)> {
        let fits = |source: &&Source| !write || source.write;
        let mut list = Vec::new();
        for source in self.names.sources.iter().filter(fits) {
            match &source.at {
                At::Pointer(pointer, count) => list.push((pointer.clone(), *count)),
                At::Place(place) => {
                    if let (Type::Array(element, count), Some(space)) =
                        (&place.ty, self.space(place))
                    {
                        if !matches!(**element, Type::Array(..) | Type::Pointer(..))
                            && !source.uniform
                        {
                            let first = place.clone().index(Expr::int(0));
                            list.push((first.address(space), *count));
                        }
                    }
                }
            }
        }
        if list.is_empty() {
            return None;
        }
        let (pointer, mut count) = self.pick(&list);
        // Part of it.
        if count >= 4 && self.percent(40) {
            count /= 2;
            let by = self.index(count);
            return Some((pointer.moved(by), count));
        }
        Some((pointer, count))
    }

    /// Where a place is.
    pub(super) fn space(&self, place: &Place) -> Option<Space> {
        match &place.kind {
            PlaceKind::Var(var) => Some(self.vars[*var].space),
            PlaceKind::Global(index) => Some(self.program.globals[*index].space),
            PlaceKind::Field(of, _) | PlaceKind::Index(of, _) => self.space(of),
            PlaceKind::Deref(pointer) => match &pointer.ty {
                Type::Pointer(space, _) => Some(*space),
                _ => None,
            },
            PlaceKind::Lanes(..) => None,
        }
    }
}
