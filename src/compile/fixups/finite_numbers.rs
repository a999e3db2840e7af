//! Removes claims of LLVM's SPIR-V target that operations which may be reassociated are also
//! finite.

use crate::compile::edit::{instruction, opcode, Change, ModuleEdit};
use spirv::{Decoration, FPFastMathMode, Op};

/// Returns the module without claims that numbers are neither NaN nor infinite, or `None` if it is
/// truncated.
pub fn not_claimed(words: &[u32]) -> Option<Vec<u32>> {
    let mut edit = ModuleEdit::of(words)?;
    edit.rewrite(|_, inst| {
        let change = match (opcode(inst), inst) {
            (Some(Op::Decorate), &[_, id, decoration, mode])
                if decoration == Decoration::FPFastMathMode as u32 =>
            {
                let mut kept = FPFastMathMode::from_bits_retain(mode);
                if kept.contains(FPFastMathMode::FAST) {
                    kept |= FPFastMathMode::NSZ | FPFastMathMode::ALLOW_RECIP;
                }
                kept -= FPFastMathMode::FAST
                    | FPFastMathMode::NOT_NAN
                    | FPFastMathMode::NOT_INF
                    // It asks for all the others.
                    | FPFastMathMode::ALLOW_TRANSFORM;
                Change::Become(vec![instruction(
                    Op::Decorate,
                    &[id, decoration, kept.bits()],
                )])
            }
            _ => Change::Keep,
        };
        Some(change)
    })?;
    Some(edit.words())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::edit::tests::{inst, module};

    #[test]
    fn numbers_may_be_infinite() {
        let mode = Decoration::FPFastMathMode as u32;
        let decorated = |mask: u32| inst(Op::Decorate, &[7, mode, mask]);
        let other = inst(Op::Decorate, &[7, Decoration::Alignment as u32, 0x1f]);
        let written = module(&[
            decorated(0x7_000f),
            decorated(0x10),
            decorated(8),
            other.clone(),
        ]);
        let expected = module(&[decorated(0x3_000c), decorated(12), decorated(8), other]);
        assert_eq!(not_claimed(&written), Some(expected));
        assert_eq!(not_claimed(&written[..written.len() - 1]), None);
    }
}
