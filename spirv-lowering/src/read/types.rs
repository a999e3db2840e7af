//! SPIR-V types: memory layout as OpenCL C has it, and flattening to scalars in memory order.

use crate::error::{LowerError, Result};
use crate::ir::types::{Space, Type};
use rustc_hash::{FxHashMap, FxHashSet};

/// Most scalars that a value of aggregate type may have.
pub(super) const MAX_LANES: u64 = 4096;
/// Deepest nesting of aggregate types (the universal limit of the SPIR-V specification).
const MAX_DEPTH: u32 = 255;

/// Index into [`Types`].
pub(super) type TyId = u32;

/// Opaque object types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Opaque {
    /// An image with dimension, arrayed, depth, multisampled, access qualifier.
    #[allow(missing_docs)]
    Image {
        dim: u32,
        arrayed: bool,
        depth: bool,
        multisampled: bool,
        access: u32,
    },
    /// Sampler.
    Sampler,
    /// Event.
    Event,
    /// Pipe, with its access qualifier. A value of it is the address of its bytes.
    #[allow(missing_docs)]
    Pipe { access: u32 },
    /// The storage of a pipe that the module declares. A value of it is the address of the pipe's
    /// bytes.
    PipeStorage,
    /// A device queue. A value of it is the address of its memory.
    Queue,
    /// A device event. A value of it is an integer: the address of its state, or 0. Kernels may
    /// keep them in memory.
    DeviceEvent,
    /// Anything else.
    Other,
}

/// The kind of a type.
#[derive(Debug, Clone)]
pub(super) enum Kind {
    /// No value.
    Void,
    /// Bool, integer or float.
    Scalar(Type),
    #[allow(missing_docs)]
    Vector { elem: TyId, n: u32 },
    #[allow(missing_docs)]
    Array { elem: TyId, len: u64 },
    /// Members, their byte offsets, the number of their first lane.
    #[allow(missing_docs)]
    Struct {
        members: Vec<TyId>,
        offsets: Vec<u64>,
        lanes: Vec<u64>,
    },
    /// `pointee` is a SPIR-V id, 0 for an untyped pointer.
    #[allow(missing_docs)]
    Pointer { space: Space, pointee: u32 },
    #[allow(missing_docs)]
    Function { ret: TyId, params: Vec<TyId> },
    /// An opaque object type.
    Opaque(Opaque),
}

/// A type with its layout.
#[derive(Debug, Clone)]
pub(super) struct Ty {
    /// SPIR-V id.
    pub id: u32,
    /// The kind.
    pub kind: Kind,
    /// Bytes in memory.
    pub size: u64,
    /// Alignment in memory.
    pub align: u32,
    /// Number of scalars of a value.
    pub lanes: u64,
    /// Nesting depth.
    depth: u32,
}

/// A run of scalars of one type that one load or store covers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Leaf {
    pub offset: u64,
    pub ty: Type,
    pub n: u32,
}

/// All types of a module.
#[derive(Debug, Default)]
pub(super) struct Types {
    items: Vec<Ty>,
    /// The width of integer types whose width is no power of two. See [`super::odd_int`].
    odd: FxHashMap<TyId, u32>,
    /// The float types of the encoding BFloat16KHR. See [`super::bfloat16`].
    bfloats: FxHashSet<TyId>,
}

impl Types {
    /// Returns a type.
    pub fn get(&self, ty: TyId) -> &Ty {
        &self.items[ty as usize]
    }

    /// Sets the pointee of a pointer type that OpTypeForwardPointer declared.
    pub fn complete(&mut self, ty: TyId, to: Space, pointee: u32) -> Result<()> {
        match self.items.get_mut(ty as usize).map(|item| &mut item.kind) {
            Some(Kind::Pointer { space, pointee: p }) if *space == to && *p == 0 => {
                *p = pointee;
                Ok(())
            }
            _ => Err(LowerError::invalid(
                "the id names a type already, or a pointer of another storage class",
            )),
        }
    }

    /// Adds a type and computes its layout. `packed`: a structure without padding.
    pub fn add(&mut self, id: u32, kind: Kind, packed: bool) -> Result<TyId> {
        let (mut size, mut align, mut lanes, mut depth) = (0u64, 1u32, 0u64, 0u32);
        let mut kind = kind;
        match &mut kind {
            Kind::Void | Kind::Function { .. } => {}
            Kind::Scalar(ty) => (size, align, lanes) = (ty.size().into(), ty.size(), 1),
            Kind::Pointer { .. } | Kind::Opaque(_) => (size, align, lanes) = (8, 8, 1),
            Kind::Vector { elem, n } => {
                let e = self.get(*elem);
                if self.scalar(*elem).is_none() {
                    return Err(LowerError::invalid(
                        "the component type of a vector is not scalar",
                    ));
                }
                // LLVM's target makes vectors of one component too.
                if !(1..=16).contains(n) {
                    return Err(LowerError::invalid(format!("a vector of {n} components")));
                }
                size = e.size * u64::from(n.next_power_of_two());
                (align, lanes) = (size as u32, u64::from(*n));
            }
            Kind::Array { elem, len } => {
                let e = self.get(*elem);
                self.check_data(*elem)?;
                size = e.size.saturating_mul(*len);
                lanes = e.lanes.saturating_mul(*len);
                (align, depth) = (e.align, e.depth + 1);
            }
            Kind::Struct {
                members,
                offsets,
                lanes: first,
            } => {
                for &member in members.iter() {
                    self.check_data(member)?;
                    let m = self.get(member);
                    let a = if packed { 1 } else { m.align };
                    size = size.saturating_add(u64::from(a) - 1) & !(u64::from(a) - 1);
                    offsets.push(size);
                    first.push(lanes);
                    size = size.saturating_add(m.size);
                    lanes = lanes.saturating_add(m.lanes);
                    align = align.max(a);
                    depth = depth.max(m.depth + 1);
                }
                size = size.saturating_add(u64::from(align) - 1) & !(u64::from(align) - 1);
            }
        }
        if depth > MAX_DEPTH {
            return Err(LowerError::invalid("types are nested too deeply"));
        }
        self.items.push(Ty {
            id,
            kind,
            size,
            align,
            lanes,
            depth,
        });
        Ok(self.items.len() as u32 - 1)
    }

    fn check_data(&self, ty: TyId) -> Result<()> {
        match self.get(ty).kind {
            Kind::Void | Kind::Function { .. } => Err(LowerError::invalid(
                "an aggregate has a member without size",
            )),
            _ => Ok(()),
        }
    }

    /// Returns the type of the one scalar of a value, if it has one (pointers and handles too).
    pub fn scalar(&self, ty: TyId) -> Option<Type> {
        match self.get(ty).kind {
            Kind::Scalar(t) => Some(t),
            Kind::Pointer { space, .. } => Some(Type::Ptr(space)),
            Kind::Opaque(Opaque::Pipe { .. } | Opaque::PipeStorage | Opaque::Queue) => {
                Some(Type::Ptr(Space::Global))
            }
            Kind::Opaque(Opaque::DeviceEvent) => Some(Type::I64),
            Kind::Opaque(_) => Some(Type::Handle),
            _ => None,
        }
    }

    /// Records that the integers of a type are bfloat16 values.
    pub fn set_bfloat(&mut self, ty: TyId) {
        self.bfloats.insert(ty);
    }

    /// Returns true for bfloat16 and vectors of it.
    pub fn is_bfloat(&self, ty: TyId) -> bool {
        match self.get(ty).kind {
            Kind::Vector { elem, .. } => self.bfloats.contains(&elem),
            _ => self.bfloats.contains(&ty),
        }
    }

    /// Records that an integer type has fewer bits than its scalar.
    pub fn set_odd(&mut self, ty: TyId, width: u32) {
        self.odd.insert(ty, width);
    }

    /// Returns true if the module has device queues.
    pub fn has_queues(&self) -> bool {
        let is_queue = |ty: &Ty| matches!(ty.kind, Kind::Opaque(Opaque::Queue));
        self.items.iter().any(is_queue)
    }

    /// Returns true if the module has integers of odd widths.
    pub fn has_odd(&self) -> bool {
        !self.odd.is_empty()
    }

    /// Returns the width of an integer type that is narrower than its scalar, or of the components
    /// of a vector of them.
    pub fn odd_width(&self, ty: TyId) -> Option<u32> {
        if self.odd.is_empty() {
            return None;
        }
        match self.get(ty).kind {
            Kind::Vector { elem, .. } => self.odd.get(&elem).copied(),
            _ => self.odd.get(&ty).copied(),
        }
    }

    /// Returns the scalar type and the number of components of a scalar or vector.
    pub fn vector(&self, ty: TyId) -> Option<(Type, u32)> {
        match self.get(ty).kind {
            Kind::Vector { elem, n } => Some((self.scalar(elem)?, n)),
            _ => Some((self.scalar(ty)?, 1)),
        }
    }

    /// Appends the scalar types of a value.
    pub fn flatten(&self, ty: TyId, out: &mut Vec<Type>) -> Result<()> {
        let t = self.get(ty);
        if t.lanes > MAX_LANES {
            return Err(LowerError::unsupported(format!(
                "a value of {} scalars (the limit is {MAX_LANES})",
                t.lanes
            )));
        }
        if t.lanes == 0 {
            return Ok(());
        }
        match &t.kind {
            Kind::Array { elem, len } => (0..*len).try_for_each(|_| self.flatten(*elem, out)),
            Kind::Struct { members, .. } => members.iter().try_for_each(|&m| self.flatten(m, out)),
            _ => {
                if let Some((scalar, n)) = self.vector(ty) {
                    out.extend(std::iter::repeat_n(scalar, n as usize));
                }
                Ok(())
            }
        }
    }

    /// Returns the runs of scalars in memory that make up a value, in order of lanes.
    pub fn leaves(&self, ty: TyId) -> Result<Vec<Leaf>> {
        let lanes = self.get(ty).lanes;
        if lanes > MAX_LANES {
            return Err(LowerError::unsupported(format!(
                "a value of {lanes} scalars (the limit is {MAX_LANES})"
            )));
        }
        let mut out = Vec::new();
        self.add_leaves(ty, 0, &mut out);
        Ok(out)
    }

    fn add_leaves(&self, ty: TyId, offset: u64, out: &mut Vec<Leaf>) {
        let t = self.get(ty);
        if t.lanes == 0 {
            return;
        }
        match &t.kind {
            Kind::Array { elem, len } => {
                let stride = self.get(*elem).size;
                (0..*len).for_each(|i| {
                    self.add_leaves(*elem, offset.saturating_add(i.saturating_mul(stride)), out)
                });
            }
            Kind::Struct {
                members, offsets, ..
            } => {
                members
                    .iter()
                    .zip(offsets)
                    .for_each(|(&m, o)| self.add_leaves(m, offset.saturating_add(*o), out));
            }
            _ => {
                if let Some((ty, n)) = self.vector(ty) {
                    out.push(Leaf { offset, ty, n });
                }
            }
        }
    }

    /// Returns a component of an aggregate or vector: its type and first lane.
    pub fn component(&self, ty: TyId, index: u32) -> Result<(TyId, u64)> {
        let bad = || LowerError::invalid(format!("there is no component {index}"));
        match &self.get(ty).kind {
            Kind::Vector { elem, n } if index < *n => Ok((*elem, u64::from(index))),
            Kind::Array { elem, len } if u64::from(index) < *len => {
                Ok((*elem, self.get(*elem).lanes.saturating_mul(index.into())))
            }
            Kind::Struct { members, lanes, .. } => {
                let i = index as usize;
                Ok((
                    *members.get(i).ok_or_else(bad)?,
                    *lanes.get(i).ok_or_else(bad)?,
                ))
            }
            _ => Err(bad()),
        }
    }
}
