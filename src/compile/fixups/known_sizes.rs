//! LLVM knows of some pointers how many bytes are there at least: of references, and of arrays with
//! `static`. SPIR-V cannot say that, so that its targets write MaxByteOffset, which says how many
//! there are at most, and refuses larger memory for an argument.

use crate::compile::edit::{opcode, Change, ModuleEdit};
use spirv::{Decoration, Op};
use spirv_lowering::insts::insts;

/// Returns the module without greatest sizes, or `None` if it has none or is truncated.
pub fn not_claimed(words: &[u32]) -> Option<Vec<u32>> {
    let claims = |inst: &[u32]| {
        opcode(inst) == Some(Op::Decorate)
            && inst.get(2) == Some(&(Decoration::MaxByteOffset as u32))
    };
    // Decorations stand before functions.
    let mut before = insts(words)
        .map_while(|inst| Some(inst?.words))
        .take_while(|inst| opcode(inst) != Some(Op::Function));
    if !before.any(claims) {
        return None;
    }
    let mut edit = ModuleEdit::of(words)?;
    edit.rewrite(|_, inst| {
        Some(match claims(inst) {
            true => Change::Drop,
            false => Change::Keep,
        })
    })?;
    Some(edit.words())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::edit::tests::{inst, module};

    #[test]
    fn no_greatest_size_is_left() {
        let most = inst(Op::Decorate, &[7, Decoration::MaxByteOffset as u32, 16]);
        let other = inst(Op::Decorate, &[7, Decoration::Alignment as u32, 16]);
        let written = module(&[most, other.clone()]);
        let expected = module(&[other]);
        assert_eq!(not_claimed(&written), Some(expected.clone()));
        assert_eq!(not_claimed(&expected), None);
        assert_eq!(not_claimed(&written[..written.len() - 1]), None);
    }
}
