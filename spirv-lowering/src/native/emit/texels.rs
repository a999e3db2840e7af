//! Images: texels are read and written by the runtime's functions.

use super::slots::Lanes;
use super::{Context, Emitter};
use crate::error::{LowerError, Result};
use crate::ir::entity::Inst;
use crate::ir::op::Op;
use crate::native::layout;
use crate::native::llvm::{LlvmType, Operand};

impl Emitter<'_> {
    /// Emits reads or writes of texels as calls of the runtime's functions.
    pub(super) fn texel(&mut self, inst: Inst, cx: &Context) -> Result<()> {
        let func = self.func;
        let data = &func.insts[inst];
        let lanes = self.shape.lanes;
        let bindings = self.launch_field(layout::BINDINGS, LlvmType::PTR);
        let descriptor = |this: &mut Self, binding: u32| {
            let offset = u64::from(binding) * u64::from(layout::DESCRIPTOR);
            this.fixed(&bindings, offset)
        };
        let bits = match &cx.mask {
            None => Operand::i64(u64::MAX >> (64 - lanes)),
            Some(_) => {
                let bits = self.mask_bits(&cx.mask);
                self.llvm.widened(&bits, LlvmType::I64)
            }
        };
        let (name, mut args) = match data.op {
            Op::TexelFetch(slot) | Op::TexelLoad(slot) => {
                let d = descriptor(self, slot.binding);
                ("pumice_texel_load", vec![d])
            }
            Op::TexelStore(slot) => {
                let d = descriptor(self, slot.binding);
                ("pumice_texel_store", vec![d])
            }
            Op::TexelFilter { image, sampler } => {
                let (i, s) = (descriptor(self, image.binding), descriptor(self, sampler));
                ("pumice_texel_filter", vec![i, s])
            }
            _ => return Err(LowerError::internal("not a texel")),
        };
        args.extend([Operand::i32(lanes), bits]);
        let words = self.vec(LlvmType::I32);
        let mut operands = data.args.iter();
        for _ in 0..3 {
            let Some(&value) = operands.next() else {
                return Err(LowerError::internal("coordinates of a texel"));
            };
            let place = self.llvm.array(1, words);
            let vector = self.vector(value, cx)?;
            self.llvm.store(&vector, &place, 64);
            args.push(place);
        }
        let texels = self.llvm.array(4, words);
        let component =
            |this: &mut Self, i: usize| this.bytes_after(&texels, i as u64 * u64::from(lanes) * 4);
        for (i, &value) in operands.enumerate() {
            let vector = self.vector(value, cx)?;
            let at = component(self, i);
            self.llvm.store(&vector, &at, 4);
        }
        args.push(texels.clone());
        let args: Vec<&Operand> = args.iter().collect();
        self.llvm.call_void(format_args!("{name}"), &args);
        for (i, &result) in data.results.iter().enumerate() {
            let vec = self.vec(self.ty(result));
            let at = component(self, i);
            let loaded = self.llvm.load(vec, &at, 4);
            self.define(result, Lanes::each(loaded), cx);
        }
        Ok(())
    }
}
