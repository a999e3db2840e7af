//! Optimization barriers: values through which LLVM does not look, so that it does not make one instruction of several.
//!
//! `x & M | y & !M` for a constant M is one instruction of AVX-512 (vpternlog), and so is its merge with x or y under a mask
//! of lanes. LLVM before 23 has the operands of the second in a wrong order where the one merged with is not the first. The
//! runtime's table of quirks knows for which compilers this is needed.
//!
//! An integer made of a mask of AVX-512, or of one lane of it, is the mask in a general register; as a half it is the mask in
//! a register of vectors, for which LLVM has no instruction.

use super::emitter::Emitter;
use crate::ir::entity::Value;
use crate::ir::function::Function;
use crate::ir::op::Op;
use crate::ir::types::Type;

/// Casts that are looked through.
const CASTS: usize = 3;

/// The operation that makes a value, and its operands, behind casts.
fn maker(func: &Function, mut value: Value) -> Option<(Op, &[Value])> {
    for _ in 0..CASTS {
        let data = &func.insts[func.def_inst(value)?];
        match data.op {
            Op::ZExt | Op::SExt | Op::Trunc | Op::Bitcast => value = *data.args.first()?,
            op => return Some((op, &data.args)),
        }
    }
    None
}

/// Some of its bits are known: a mask, as LLVM may see it.
fn is_part(func: &Function, value: Value) -> bool {
    let widened = func.def_inst(value).map(|inst| func.insts[inst].op) == Some(Op::ZExt);
    widened
        || maker(func, value).is_some_and(|(op, args)| {
            matches!(op, Op::And | Op::Or | Op::Shl | Op::LShr)
                && args.iter().any(|&arg| func.as_const(arg).is_some())
        })
}

/// It may be made of bits of two others, chosen by a constant.
fn is_bit_choice(func: &Function, value: Value) -> bool {
    maker(func, value).is_some_and(|(op, args)| {
        matches!(op, Op::Or | Op::Xor | Op::And | Op::IAdd)
            && args.iter().any(|&arg| is_part(func, arg))
    })
}

/// An integer out of a register of its type, whatever it was made of.
pub fn in_register(ty: &str, value: &str) -> String {
    format!("call {ty} asm \"\", \"=r,0\"({ty} {value})")
}

impl Emitter<'_> {
    /// The vector of a value that is to be merged with another under a mask, behind a barrier where it must not be melted with what made it.
    pub fn fenced(&mut self, value: Value, vector: String) -> String {
        let ty = self.func.ty(value);
        let integer = matches!(ty, Type::I8 | Type::I16 | Type::I32 | Type::I64);
        if !self.merges_apart || !integer || !is_bit_choice(self.func, value) {
            return vector;
        }
        let bits = self.lanes * ty.bits();
        if bits % 32 != 0 {
            return vector;
        }
        let (own, floats) = (self.vec(ty), format!("<{} x float>", bits / 32));
        let name = format!("llvm.arithmetic.fence.v{}f32", bits / 32);
        self.declare(format!("declare {floats} @{name}({floats})"));
        let before = self
            .text
            .def(&format!("bitcast {own} {vector} to {floats}"));
        let fenced = self
            .text
            .def(&format!("call {floats} @{name}({floats} {before})"));
        self.text
            .def(&format!("bitcast {floats} {fenced} to {own}"))
    }
}
