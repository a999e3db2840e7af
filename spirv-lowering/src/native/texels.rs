//! Images: texels are read and written by the runtime's functions.

use super::emitter::{Context, Emitter};
use super::ops::Form;
use super::slots::Lanes;
use crate::error::{LowerError, Result};
use crate::ir::entity::Inst;
use crate::ir::op::Op;

impl Emitter<'_> {
    /// Reads or writes texels by the runtime's functions.
    pub fn texel(&mut self, inst: Inst, cx: &mut Context) -> Result<()> {
        let func = self.func;
        let data = &func.insts[inst];
        let w = self.lanes;
        let bindings = self.launch_field(super::layout::BINDINGS, "ptr");
        let descriptor = |this: &mut Self, binding: u32| {
            let offset = u64::from(binding) * u64::from(super::layout::DESCRIPTOR);
            this.invariant(&format!("getelementptr i8, ptr {bindings}, i64 {offset}"))
        };
        let bits = match &cx.mask {
            None => (u64::MAX >> (64 - w)).to_string(),
            Some(_) => {
                let bits = self.mask_bits(&cx.mask);
                if w == 64 {
                    bits
                } else {
                    self.text.def(&format!("zext i{w} {bits} to i64"))
                }
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
        let memory = |this: &mut Self, n: usize| {
            let ty = format!("[{n} x <{w} x i32>]");
            this.alloca(&ty)
        };
        let mut operands = data.args.iter();
        for _ in 0..3 {
            let Some(&value) = operands.next() else {
                return Err(LowerError::internal("coordinates of a texel"));
            };
            let place = memory(self, 1);
            let vector = self.vector(value, cx)?;
            let vec = self.vec(func.ty(value));
            self.text
                .line(&format!("store {vec} {vector}, ptr {place}, align 64"));
            args.push(place);
        }
        let texels = memory(self, 4);
        for (i, &value) in operands.enumerate() {
            let vector = self.vector(value, cx)?;
            let vec = self.vec(func.ty(value));
            let at = self.behind(&texels, i as u64 * u64::from(w) * 4);
            self.text
                .line(&format!("store {vec} {vector}, ptr {at}, align 4"));
        }
        args.push(texels.clone());
        let descriptors = args.len() - 4;
        let mut types = vec!["ptr"; descriptors];
        types.extend(["i32", "i64", "ptr", "ptr", "ptr", "ptr"]);
        self.declare(format!("declare void @{name}({})", types.join(", ")));
        let mut list: Vec<String> = args[..descriptors]
            .iter()
            .map(|a| format!("ptr {a}"))
            .collect();
        list.push(format!("i32 {w}"));
        list.push(format!("i64 {bits}"));
        list.extend(args[descriptors..].iter().map(|a| format!("ptr {a}")));
        self.text
            .line(&format!("call void @{name}({})", list.join(", ")));
        for (i, &result) in data.results.iter().enumerate() {
            let vec = self.ty(Form::Vector, func.ty(result));
            let at = self.behind(&texels, i as u64 * u64::from(w) * 4);
            let loaded = self.text.def(&format!("load {vec}, ptr {at}, align 4"));
            self.define(result, Lanes::each(loaded), cx);
        }
        Ok(())
    }
}
