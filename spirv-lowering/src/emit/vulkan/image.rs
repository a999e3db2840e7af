//! Emits accesses to images.

use super::body::Emitter;
use super::writer::{push, Id};
use crate::error::Result;
use crate::interface::ImageDim;
use crate::ir::entity::{Inst, Value};
use crate::ir::op::{ImageSlot, Op, Texel};
use crate::ir::types::Type;
use spirv::{Capability, ImageOperands, Op as S};

impl Emitter<'_> {
    pub(super) fn image(&mut self, inst: Inst) -> Result<()> {
        let data = &self.func.insts[inst];
        let (slot, storage) = match data.op {
            Op::TexelFetch(slot) => (slot, false),
            Op::TexelLoad(slot) | Op::TexelStore(slot) => (slot, true),
            _ => return Err(self.unsupported(inst)),
        };
        let (var, ty) = self.w.image(slot, storage);
        let image = self.op(S::Load, ty, &[var]);
        let n = slot.dim.coordinates();
        let at = data.args.get(..n).ok_or_else(|| self.unsupported(inst))?;
        let at = self.texel_vector(at, Type::I32);
        let four = self.w.texel(slot.texel);
        match data.op {
            Op::TexelStore(_) => {
                let color = data.args.get(3..7).ok_or_else(|| self.unsupported(inst))?;
                let mut color = self.texel_vector(color, slot.texel.component());
                if slot.texel == Texel::Signed {
                    color = self.op(S::Bitcast, four, &[color]);
                }
                self.w.cap(Capability::StorageImageWriteWithoutFormat);
                let operands = ImageOperands::NON_PRIVATE_TEXEL.bits();
                push(&mut self.code, S::ImageWrite, &[image, at, color, operands]);
                return Ok(());
            }
            Op::TexelLoad(_) => {
                self.w.cap(Capability::StorageImageReadWithoutFormat);
                let operands = ImageOperands::NON_PRIVATE_TEXEL.bits();
                let read = self.op(S::ImageRead, four, &[image, at, operands]);
                self.spread(inst, slot, read);
            }
            _ if slot.dim == ImageDim::Buffer => {
                let read = self.op(S::ImageFetch, four, &[image, at]);
                self.spread(inst, slot, read);
            }
            _ => {
                let (lod, zero) = (ImageOperands::LOD.bits(), self.w.u32(0));
                let read = self.op(S::ImageFetch, four, &[image, at, lod, zero]);
                self.spread(inst, slot, read);
            }
        }
        Ok(())
    }

    /// Emits a read through a sampler.
    pub(super) fn filter(&mut self, inst: Inst, slot: ImageSlot, sampler: u32) -> Result<()> {
        let data = &self.func.insts[inst];
        let (var, image_ty) = self.w.image(slot, false);
        let image = self.op(S::Load, image_ty, &[var]);
        let (var, ty) = self.w.sampler(sampler);
        let sampler = self.op(S::Load, ty, &[var]);
        let both = self.w.sampled_image(image_ty);
        let both = self.op(S::SampledImage, both, &[image, sampler]);
        let n = slot.dim.coordinates();
        let at = data.args.get(..n).ok_or_else(|| self.unsupported(inst))?;
        let at = self.texel_vector(at, Type::F32);
        let four = self.w.texel(slot.texel);
        let (lod, zero) = (ImageOperands::LOD.bits(), self.w.constant(Type::F32, 0));
        let read = self.op(S::ImageSampleExplicitLod, four, &[both, at, lod, zero]);
        self.spread(inst, slot, read);
        Ok(())
    }

    /// Returns a vector of values, or the one value.
    fn texel_vector(&mut self, values: &[Value], ty: Type) -> Id {
        let ids: Vec<Id> = values.iter().map(|&v| self.value(v)).collect();
        match ids.as_slice() {
            &[one] => one,
            _ => {
                let ty = self.w.vec(ty, ids.len() as u32);
                self.op(S::CompositeConstruct, ty, &ids)
            }
        }
    }

    /// Makes the components of a texel the results of an instruction.
    fn spread(&mut self, inst: Inst, slot: ImageSlot, texel: Id) {
        let results = self.func.insts[inst].results.clone();
        let mut texel = texel;
        if slot.texel == Texel::Signed {
            let ty = self.w.vec(Type::I32, 4);
            texel = self.op(S::Bitcast, ty, &[texel]);
        }
        let ty = self.w.ty(slot.texel.component());
        for (i, &result) in results.iter().enumerate() {
            let id = self.value(result);
            self.op_to(S::CompositeExtract, ty, id, &[texel, i as u32]);
        }
    }
}
