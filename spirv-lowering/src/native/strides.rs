//! The stride of a value from lane to lane of a pack, and what an operation makes of operands of which that is known.

use crate::interface::Implicit;
use crate::ir::entity::Value;
use crate::ir::fold::sext;
use crate::ir::function::Function;
use crate::ir::op::{HwVar, Op};
use crate::ir::types::Type;

/// The values of the lanes of a pack, as data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// All have the same.
    Uniform,
    /// Each has so much more than the one before.
    Affine(i64),
    /// Each has its own.
    Varying,
}

/// How the places lie that the lanes of a pack reach by a value as an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// All reach the same place.
    Same,
    /// Each reaches so many bytes beyond the one before.
    Strided(i64),
    /// Each reaches its own.
    Scattered,
}

/// The knowledge of a value, from much to little.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Found {
    /// Nothing yet.
    #[default]
    Unknown,
    Uniform,
    /// As data, and so as an address.
    Affine(i64),
    /// As an address alone.
    Strided(i64),
    Varying,
}

impl Found {
    /// Returns what holds of a value that is the one or the other.
    pub fn meet(self, other: Self) -> Self {
        match (self, other) {
            (Self::Unknown, found) | (found, Self::Unknown) => found,
            (a, b) if a == b => a,
            (Self::Affine(a) | Self::Strided(a), Self::Affine(b) | Self::Strided(b)) if a == b => {
                Self::Strided(a)
            }
            _ => Self::Varying,
        }
    }

    /// Returns the difference between neighbours, 0 for uniform ones, and whether it is one of
    /// addresses alone.
    pub fn stride(self) -> Option<(i64, bool)> {
        match self {
            Self::Uniform => Some((0, false)),
            Self::Affine(stride) => Some((stride, false)),
            Self::Strided(stride) => Some((stride, true)),
            _ => None,
        }
    }

    /// Returns the class of a value with this stride.
    pub fn class(self) -> Class {
        match self {
            Self::Unknown | Self::Uniform => Class::Uniform,
            Self::Affine(stride) => Class::Affine(stride),
            Self::Strided(_) | Self::Varying => Class::Varying,
        }
    }

    /// Returns how far the lanes of a value with this stride lie apart.
    pub fn reach(self) -> Reach {
        match self {
            Self::Unknown | Self::Uniform => Reach::Same,
            Self::Affine(stride) | Self::Strided(stride) => Reach::Strided(stride),
            Self::Varying => Reach::Scattered,
        }
    }
}

fn may_be_affine(ty: Type) -> bool {
    ty.is_int() || ty.is_ptr()
}

/// The most that lanes may be apart.
const WIDEST: i64 = 1 << 62;

/// Bits in which addresses of one object do not wrap around.
const OBJECT_BITS: u32 = 32;

/// Returns the stride of the result of an operation, by those of its operands.
pub fn affine(
    func: &Function,
    op: Op,
    args: &[Value],
    results: &[Value],
    found: &[Found],
) -> Found {
    let Some(&result) = results.first() else {
        return Found::Varying;
    };
    if found.contains(&Found::Unknown) {
        return Found::Unknown;
    }
    let ty = func.ty(result);
    if !may_be_affine(ty) {
        return Found::Varying;
    }
    let constant = |i: usize| {
        let value = *args.get(i)?;
        let bits = func.as_const(value)?;
        Some(sext(func.ty(value), bits))
    };
    let stride = |i: usize| found.get(i).and_then(|f| f.stride());
    // The stride, and whether it is one of addresses alone.
    let stride = (|| match op {
        Op::IAdd | Op::PtrAdd => {
            let ((a, x), (b, y)) = (stride(0)?, stride(1)?);
            Some((a.checked_add(b)?, x | y))
        }
        Op::ISub => {
            let ((a, x), (b, y)) = (stride(0)?, stride(1)?);
            Some((a.checked_sub(b)?, x | y))
        }
        Op::INeg => stride(0).map(|(a, x)| (-a, x)),
        Op::IMul => {
            let ((a, x), by) = match (constant(0), constant(1)) {
                (_, Some(by)) => (stride(0)?, by),
                (Some(by), _) => (stride(1)?, by),
                _ => return None,
            };
            Some((a.checked_mul(by)?, x))
        }
        Op::Shl => {
            let by = constant(1).filter(|by| (0..62).contains(by))?;
            let (a, x) = stride(0)?;
            Some((a.checked_mul(1 << by)?, x))
        }
        // The lower bits alone, extended again.
        Op::AShr | Op::LShr => {
            let by = constant(1).filter(|&by| by >= 0)?;
            let shifted = &func.insts[func.def_inst(args[0])?];
            let before = shifted.args.get(1).and_then(|&v| func.as_const(v));
            let left = i64::from(ty.bits()) - by;
            if shifted.op != Op::Shl || before != Some(by as u64) || left < OBJECT_BITS.into() {
                return None;
            }
            let (a, _) = stride(0)?;
            Some((a >> by, true))
        }
        Op::And if constant(1) == Some(0xffff_ffff) => stride(0).map(|(a, _)| (a, true)),
        Op::ZExt | Op::SExt if func.ty(args[0]).bits() >= OBJECT_BITS => {
            let (a, x) = stride(0)?;
            Some((a, x || !is_id(func, args[0])))
        }
        Op::Trunc if ty.bits() >= OBJECT_BITS => stride(0),
        Op::PtrToInt | Op::IntToPtr | Op::SpaceCast => stride(0),
        Op::Bitcast if may_be_affine(func.ty(args[0])) => stride(0),
        _ => None,
    })();
    let Some((stride, of_addresses)) = stride.filter(|(a, _)| a.abs() <= WIDEST) else {
        return Found::Varying;
    };
    // Modulo what the type holds.
    match (sext(ty, stride as u64), of_addresses) {
        (0, false) => Found::Uniform,
        (0, true) => Found::Varying,
        (stride, false) => Found::Affine(stride),
        (stride, true) => Found::Strided(stride),
    }
}

/// Returns true if a value is an id of a work-item or work-group in some dimension, or a part of
/// the sum of one. In kernels that are not lowered for wide ranges ids are less than 2^31, so that
/// neighbours do not wrap around and either extension is one.
pub fn is_id(func: &Function, value: Value) -> bool {
    let mut parts = Vec::new();
    if !id_parts(func, value, &mut parts) {
        return false;
    }
    let within = |whole: &[Part]| {
        (0..3).any(|d| {
            let inside = |&(part, dim): &(Part, u8)| dim == d && whole.contains(&part);
            parts.iter().all(inside)
        })
    };
    let distinct = parts
        .iter()
        .enumerate()
        .all(|(i, part)| !parts[..i].contains(part));
    let ids: [&[Part]; 3] = [
        &[Part::FirstItem, Part::LocalId, Part::GlobalBase],
        // Where work-groups are one work-item, and less than that elsewhere.
        &[Part::Group, Part::LocalId, Part::GlobalBase],
        &[Part::Group, Part::GroupOffset],
    ];
    parts.len() == 1 || distinct && ids.into_iter().any(within)
}

/// A term of an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// Number of the work-group times its size.
    FirstItem,
    LocalId,
    GlobalBase,
    Group,
    GroupOffset,
    /// Linear ids and ids of lanes: never added to another.
    Whole,
}

/// Adds the terms of a sum to `parts`. Returns false if one of them is no part of an id.
fn id_parts(func: &Function, value: Value, parts: &mut Vec<(Part, u8)>) -> bool {
    let Some(inst) = func.def_inst(value).filter(|_| parts.len() < 4) else {
        return false;
    };
    let data = &func.insts[inst];
    let hw = |i: usize| {
        let inst = func.def_inst(*data.args.get(i)?)?;
        match func.insts[inst].op {
            Op::Hw(var) => Some(var),
            _ => None,
        }
    };
    parts.push(match data.op {
        Op::Hw(HwVar::LocalInvocationId(d)) => (Part::LocalId, d),
        Op::Hw(HwVar::WorkgroupId(d)) => (Part::Group, d),
        Op::Hw(HwVar::LocalInvocationIndex | HwVar::SubgroupInvocationId) => (Part::Whole, 0),
        Op::Implicit(Implicit::GlobalBase, d) => (Part::GlobalBase, d),
        Op::Implicit(Implicit::GroupOffset, d) => (Part::GroupOffset, d),
        Op::IMul => match (hw(0), hw(1)) {
            (Some(HwVar::WorkgroupId(a)), Some(HwVar::WorkgroupSize(b)))
            | (Some(HwVar::WorkgroupSize(b)), Some(HwVar::WorkgroupId(a)))
                if a == b =>
            {
                (Part::FirstItem, a)
            }
            _ => return false,
        },
        Op::IAdd => return data.args.iter().all(|&a| id_parts(func, a, parts)),
        _ => return false,
    });
    true
}
