//! Alignments that LLVM's SPIR-V target cuts. Those of accesses through null pointers, which LLVM
//! takes to be aligned to 2^32 bytes, are cut to 32 bits: 0 is written. Those of variables in
//! private memory are cut to 8 bits with a sign: of 128 bytes 2^32 - 128 is written, of more 0.

use crate::compile::edit::{instruction, opcode, Change, ModuleEdit};
use rustc_hash::FxHashSet;
use spirv::{Decoration, MemoryAccess, Op, StorageClass};

/// The largest alignment of a variable.
const MOST: u32 = 4096;

/// An alignment of 128 bytes, cut to 8 bits and extended with its sign.
const CUT_128: u32 = -128i32 as u32;

/// Returns the module without cut alignments, or `None` if it is truncated. Where 0 is written, an
/// access gets the alignment of its type, and a variable the largest that there is.
pub fn made_up(words: &[u32]) -> Option<Vec<u32>> {
    let mut edit = ModuleEdit::of(words)?;
    let private = |inst: &[u32]| match (opcode(inst), inst) {
        (Some(Op::Variable), &[_, _, id, class, ..]) => {
            (class == StorageClass::Function as u32).then_some(id)
        }
        _ => None,
    };
    let variables: FxHashSet<u32> = edit.insts.iter().filter_map(|inst| private(inst)).collect();
    edit.rewrite(|_, inst| {
        let made = match (opcode(inst), inst) {
            (Some(Op::Decorate), &[_, id, decoration, cut @ (0 | CUT_128)])
                if decoration == Decoration::Alignment as u32 && variables.contains(&id) =>
            {
                let bytes = if cut == 0 { MOST } else { 128 };
                Some(instruction(Op::Decorate, &[id, decoration, bytes]))
            }
            _ => aligned(inst),
        };
        Some(made.map_or(Change::Keep, |inst| Change::Become(vec![inst])))
    })?;
    Some(edit.words())
}

/// Returns an access without its alignments of zero. Returns `None` if it has none.
fn aligned(inst: &[u32]) -> Option<Vec<u32>> {
    // Before the memory operands stand its length and what it accesses.
    let mut at = match opcode(inst)? {
        Op::Store | Op::CopyMemory => 3,
        Op::Load | Op::CopyMemorySized => 4,
        _ => return None,
    };
    let mut out = inst.to_vec();
    // A copy may have one set for what it writes and one for what it reads.
    while let Some(&mask) = out.get(at) {
        let flags = MemoryAccess::from_bits(mask)?;
        if flags.contains(MemoryAccess::ALIGNED) && out.get(at + 1) == Some(&0) {
            out.remove(at + 1);
            *out.get_mut(at)? = (flags - MemoryAccess::ALIGNED).bits();
        }
        let rest = MemoryAccess::from_bits(*out.get(at)?)?;
        let operands = MemoryAccess::ALIGNED
            | MemoryAccess::MAKE_POINTER_AVAILABLE
            | MemoryAccess::MAKE_POINTER_VISIBLE
            | MemoryAccess::ALIAS_SCOPE_INTEL_MASK
            | MemoryAccess::NO_ALIAS_INTEL_MASK;
        at += 1 + (rest & operands).bits().count_ones() as usize;
    }
    let length = out.len() as u32;
    let first = out.first_mut()?;
    *first = length << 16 | *first & 0xffff;
    (out != inst).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::edit::tests::{inst, module};

    #[test]
    fn cut_alignments_go() {
        let alignment = Decoration::Alignment as u32;
        let right = [
            inst(Op::Decorate, &[8, alignment, 16]),
            inst(Op::Decorate, &[3, alignment, 0]),
            inst(Op::Load, &[1, 2, 3, 2, 4]),
            inst(Op::Store, &[3, 2]),
            inst(Op::Store, &[3, 2, 1]),
            inst(Op::IAdd, &[1, 2, 3, 2, 0]),
        ];
        let variable = |id| inst(Op::Variable, &[1, id, StorageClass::Function as u32]);
        let wrong = [
            variable(9),
            variable(10),
            inst(Op::Decorate, &[9, alignment, 0]),
            inst(Op::Decorate, &[10, alignment, 0xffff_ff80]),
            inst(Op::Load, &[1, 2, 3, 2, 0]),
            inst(Op::Store, &[3, 2, 3, 0]),
            inst(Op::CopyMemorySized, &[3, 4, 5, 2, 0, 3, 0]),
        ];
        let repaired = [
            variable(9),
            variable(10),
            inst(Op::Decorate, &[9, alignment, MOST]),
            inst(Op::Decorate, &[10, alignment, 128]),
            inst(Op::Load, &[1, 2, 3, 0]),
            inst(Op::Store, &[3, 2, 1]),
            inst(Op::CopyMemorySized, &[3, 4, 5, 0, 1]),
        ];
        let written = module(&[right.to_vec(), wrong.to_vec()].concat());
        let expected = module(&[right.to_vec(), repaired.to_vec()].concat());
        assert_eq!(made_up(&written), Some(expected));
        assert_eq!(made_up(&written[..written.len() - 1]), None);
    }
}
