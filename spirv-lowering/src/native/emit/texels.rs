//! Images: texels of common formats are read and written by functions of the kernel's module, others by the runtime's.

use super::slots::Lanes;
use super::texel_functions::{Access, TexelFunction};
use super::{Context, Emitter};
use crate::error::{LowerError, Result};
use crate::ir::entity::Inst;
use crate::ir::op::Op;
use crate::native::layout;
use crate::native::llvm::LlvmType;

impl Emitter<'_> {
    /// Emits reads or writes of texels.
    pub(super) fn texel(&mut self, inst: Inst, cx: &Context) -> Result<()> {
        let data = &self.func.insts[inst];
        let (slot, access) = match data.op {
            Op::TexelFetch(slot) | Op::TexelLoad(slot) => (slot, Access::Load),
            Op::TexelStore(slot) => (slot, Access::Store),
            _ => return Err(LowerError::internal("not a texel")),
        };
        let function = TexelFunction {
            access,
            coordinates: slot.dim.coordinates(),
            texel: slot.texel,
            lanes: self.shape.lanes,
            fused: self.shape.width >= 8,
        };
        let bindings = self.launch_field(layout::BINDINGS, LlvmType::PTR);
        let offset = u64::from(slot.binding) * u64::from(layout::DESCRIPTOR);
        let image = self.fixed(&bindings, offset);
        let mut args = vec![image, self.mask_vector(&cx.mask)];
        let (at, written) = data
            .args
            .split_at_checked(3)
            .ok_or_else(|| LowerError::internal("coordinates of a texel"))?;
        for &value in at {
            args.push(self.vector(value, cx)?);
        }
        let words = self.vec(LlvmType::I32);
        let texels = self.llvm.array(4, words);
        let component = |this: &mut Self, i: usize| {
            this.bytes_after(&texels, i as u64 * u64::from(words.bytes()))
        };
        for (i, &value) in written.iter().enumerate() {
            let vector = self.vector(value, cx)?;
            let at = component(self, i);
            self.llvm.store(&vector, &at, 4);
        }
        args.push(texels.clone());
        let name = function.name();
        self.llvm.define(&name, |llvm| function.build(llvm));
        self.llvm.call_own_void(format_args!("{name}"), &args);
        for (i, &result) in data.results.iter().enumerate() {
            let vec = self.vec(self.ty(result));
            let at = component(self, i);
            let loaded = self.llvm.load(vec, &at, 4);
            self.define(result, Lanes::each(loaded), cx);
        }
        Ok(())
    }
}
