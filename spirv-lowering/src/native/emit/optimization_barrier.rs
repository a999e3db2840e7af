//! Optimization barriers: values through which LLVM does not look, so that it does not make one instruction of several.
//!
//! `x & M | y & !M` for a constant M is one instruction of AVX-512 (vpternlog), and so is its merge with x or y under a mask
//! of lanes. LLVM before 23 has the operands of the second in a wrong order where the one merged with is not the first. The
//! runtime's table of quirks knows for which compilers this is needed.
//!
//! An integer made of a mask of AVX-512, or of one lane of it, is the mask in a general register; as a half it is the mask in
//! a register of vectors, for which LLVM has no instruction.

use super::Emitter;
use crate::ir::entity::Value;
use crate::ir::function::Function;
use crate::ir::op::Op;
use crate::native::llvm::{Cast, LlvmType, Operand};
use crate::native::Packing;
use crate::quirks::CodeQuirk;

/// Casts that are looked through.
const CASTS: usize = 3;

/// Returns the operation that defines a value, and its operands, looking through casts.
fn definition(func: &Function, mut value: Value) -> Option<(Op, &[Value])> {
    for _ in 0..CASTS {
        let data = &func.insts[func.def_inst(value)?];
        match data.op {
            Op::ZExt | Op::SExt | Op::Trunc | Op::Bitcast => value = *data.args.first()?,
            op => return Some((op, &data.args)),
        }
    }
    None
}

/// Returns true if a value is a mask in LLVM's analysis: some of its bits are known.
fn is_part(func: &Function, value: Value) -> bool {
    let widened = func.def_inst(value).map(|inst| func.insts[inst].op) == Some(Op::ZExt);
    widened
        || definition(func, value).is_some_and(|(op, args)| {
            matches!(op, Op::And | Op::Or | Op::Shl | Op::LShr)
                && args.iter().any(|&arg| func.as_const(arg).is_some())
        })
}

/// Returns true if a value may consist of bits of two others, chosen by a constant.
fn is_bit_choice(func: &Function, value: Value) -> bool {
    definition(func, value).is_some_and(|(op, args)| {
        matches!(op, Op::Or | Op::Xor | Op::And | Op::IAdd)
            && args.iter().any(|&arg| is_part(func, arg))
    })
}

impl Emitter<'_> {
    /// Returns the vector of a value that is to be merged with another under a mask. It passes an
    /// optimization barrier where LLVM must not fuse the merge with the operation that defines the
    /// value.
    pub(super) fn fenced(&mut self, value: Value, vector: Operand) -> Operand {
        let ty = vector.ty();
        let integer = ty.is_int() && ty.element() != LlvmType::BIT;
        let merges = self.shape.quirks.has(CodeQuirk::MergedBits)
            && self.shape.width >= 16
            && self.shape.packing != Packing::Alone;
        if !merges || !integer || !is_bit_choice(self.func, value) {
            return vector;
        }
        if ty.size() % 32 != 0 {
            return vector;
        }
        let floats = LlvmType::FLOAT.vector(ty.size() / 32);
        let before = self.llvm.cast(Cast::Bitcast, &vector, floats);
        let fenced = self.llvm.intrinsic("arithmetic.fence", &[&before]);
        self.llvm.cast(Cast::Bitcast, &fenced, ty)
    }
}
