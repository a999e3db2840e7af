//! Reads what a pack knows of the launch and of itself: ids, sizes, arguments.

use super::slots::Lanes;
use super::{Context, Emitter};
use crate::error::{LowerError, Result};
use crate::interface::Implicit;
use crate::ir::entity::Value;
use crate::ir::op::HwVar;
use crate::native::llvm::{LlvmType, Operand};
use crate::native::{layout, Locals, Packing};

/// Parameters of the function of a region.
pub(super) const LAUNCH: Operand = Operand::named(LlvmType::PTR, "launch");
pub(super) const LOCAL: Operand = Operand::named(LlvmType::PTR, "local");
/// The numbers of the work-group; where groups are lanes, of the first.
pub(super) const GROUP: [Operand; 3] = ids(["gx", "gy", "gz"]);
/// The local ids of lane 0; in linear packs vectors.
pub(super) const ITEM: [&str; 3] = ["x", "y", "z"];
/// The linear local id of lane 0.
pub(super) const INDEX: Operand = Operand::named(LlvmType::I32, "index");
/// The number of the pack.
pub(super) const PACK: Operand = Operand::named(LlvmType::I32, "pack");

const fn ids(names: [&'static str; 3]) -> [Operand; 3] {
    let [x, y, z] = names;
    [
        Operand::named(LlvmType::I32, x),
        Operand::named(LlvmType::I32, y),
        Operand::named(LlvmType::I32, z),
    ]
}

/// Where a kernel finds what does not stand in its code.
pub struct Launch<'a> {
    /// Where implicit arguments lie among the push constants.
    pub implicit: &'a [(Implicit, u32)],
    /// Where local variables lie.
    pub locals: &'a Locals,
}

impl Emitter<'_> {
    /// Returns a value of the push constants.
    pub(super) fn push(&mut self, offset: u32, ty: LlvmType) -> Operand {
        let block = self.launch_field(layout::PUSH, LlvmType::PTR);
        let align = 1u32 << offset.trailing_zeros().min(ty.bytes().trailing_zeros());
        self.llvm.once(|llvm| {
            let at = llvm.offset(&block, &Operand::i64(offset.into()));
            llvm.load_invariant(ty, &at, align)
        })
    }

    /// Returns a field of the launch.
    pub(super) fn launch_field(&mut self, offset: u32, ty: LlvmType) -> Operand {
        self.llvm.once(|llvm| {
            let at = llvm.offset(&LAUNCH, &Operand::i64(offset.into()));
            llvm.load_invariant(ty, &at, 4)
        })
    }

    /// Returns a field of the launch for a dimension.
    pub(super) fn launch_size(&mut self, offset: u32, dim: u8) -> Operand {
        self.launch_field(offset + 4 * u32::from(dim.min(2)), LlvmType::I32)
    }

    /// Returns the address a number of bytes after one that is the same for all packs.
    pub(super) fn fixed(&mut self, base: &Operand, bytes: u64) -> Operand {
        self.llvm
            .once(|llvm| llvm.offset(base, &Operand::i64(bytes)))
    }

    /// Emits the value of an implicit argument.
    pub(super) fn implicit(
        &mut self,
        which: Implicit,
        component: u8,
        result: Value,
        cx: &Context,
    ) -> Result<()> {
        let mut places = self.launch.implicit.iter();
        let Some(&(_, offset)) = places.find(|&&(other, _)| other == which) else {
            return Err(LowerError::internal("an implicit argument without a place"));
        };
        let value = self.push(offset + u32::from(component) * 4, self.ty(result));
        self.define(result, Lanes::Same(value), cx);
        Ok(())
    }

    /// Returns the local id of a dimension.
    pub(super) fn item(&self, dim: usize) -> Operand {
        let ty = match self.shape.packing {
            Packing::Linear => self.vec(LlvmType::I32),
            _ => LlvmType::I32,
        };
        Operand::named(ty, ITEM[dim])
    }

    /// Emits the value of a built-in variable.
    pub(super) fn hw(&mut self, var: HwVar, result: Value, cx: &Context) -> Result<()> {
        let packing = self.shape.packing;
        let dim = match var {
            HwVar::LocalInvocationId(d) | HwVar::WorkgroupId(d) => usize::from(d),
            _ => 0,
        };
        if dim > 2 {
            return Err(LowerError::internal("a dimension above 2"));
        }
        let stride_one = |this: &mut Self, first: Operand| {
            let all = this.spread(&first, 1);
            Lanes::Affine { first, all }
        };
        let lanes = match var {
            HwVar::LocalInvocationId(_) if packing == Packing::Linear => {
                Lanes::each(self.item(dim))
            }
            HwVar::LocalInvocationId(0) => stride_one(self, self.item(0)),
            HwVar::LocalInvocationId(_) => Lanes::Same(self.item(dim)),
            HwVar::WorkgroupId(0) if packing == Packing::Groups => {
                let [first, ..] = GROUP;
                stride_one(self, first)
            }
            HwVar::WorkgroupId(_) => Lanes::Same(GROUP[dim].clone()),
            HwVar::NumWorkgroups(d) => Lanes::Same(self.launch_size(layout::GROUPS, d)),
            HwVar::WorkgroupSize(d) => Lanes::Same(self.launch_size(layout::LOCAL_SIZE, d)),
            HwVar::LocalInvocationIndex => stride_one(self, INDEX),
            HwVar::SubgroupSize => Lanes::Same(Operand::i32(self.shape.lanes)),
            HwVar::SubgroupInvocationId => stride_one(self, Operand::i32(0)),
            HwVar::SubgroupId => Lanes::Same(PACK),
            HwVar::NumSubgroups => Lanes::Same(self.launch_field(layout::PACKS, LlvmType::I32)),
        };
        self.define(result, lanes, cx);
        Ok(())
    }
}
