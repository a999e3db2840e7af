//! Removes the hints of SPV_INTEL_memory_access_aliasing that accesses do not alias. The reader
//! ignores them, and the validator that is compiled in requires their declarations in blocks, where
//! no compiler writes them. So both get the module without the hints.

use crate::compile::edit::{instruction, opcode, Change, ModuleEdit};
use spirv::{Capability, Decoration, MemoryAccess, Op};

/// Removes the hints, if the module declares that it has some. Returns `None` if an access is
/// truncated.
pub fn remove(edit: &mut ModuleEdit<'_>) -> Option<()> {
    let declared = instruction(
        Op::Capability,
        &[Capability::MemoryAccessAliasingINTEL as u32],
    );
    if !edit.insts.iter().any(|inst| **inst == *declared) {
        return Some(());
    }
    edit.rewrite(|_, inst| {
        let memory_operands = match (opcode(inst), inst) {
            (
                Some(
                    Op::AliasDomainDeclINTEL
                    | Op::AliasScopeDeclINTEL
                    | Op::AliasScopeListDeclINTEL,
                ),
                _,
            ) => return Some(Change::Drop),
            (Some(Op::DecorateId), &[_, _, decoration, ..])
                if decoration == Decoration::AliasScopeINTEL as u32
                    || decoration == Decoration::NoAliasINTEL as u32 =>
            {
                return Some(Change::Drop)
            }
            (Some(Op::Load | Op::CopyMemorySized), _) => 4,
            (Some(Op::Store | Op::CopyMemory), _) => 3,
            _ => return Some(Change::Keep),
        };
        Some(Change::Become(vec![plain_access(inst, memory_operands)?]))
    })
    .map(drop)
}

/// Returns an instruction whose memory operands start at `at`, without the hints. Returns `None` if
/// one is truncated.
fn plain_access(inst: &[u32], at: usize) -> Option<Vec<u32>> {
    let hints = (MemoryAccess::ALIAS_SCOPE_INTEL_MASK | MemoryAccess::NO_ALIAS_INTEL_MASK).bits();
    let followed = MemoryAccess::ALIGNED
        | MemoryAccess::MAKE_POINTER_AVAILABLE
        | MemoryAccess::MAKE_POINTER_VISIBLE;
    let mut out = inst.get(..at.min(inst.len()))?.to_vec();
    let mut rest = inst.get(at..).unwrap_or_default();
    while let Some((&mask, operands)) = rest.split_first() {
        // Operands stand in the order of their bits; those of the hints are the last ones.
        let kept = (mask & followed.bits()).count_ones() as usize;
        let left_out = (mask & hints).count_ones() as usize;
        out.push(mask & !hints);
        out.extend_from_slice(operands.get(..kept)?);
        rest = operands.get(kept + left_out..)?;
    }
    let length = out.len() as u32;
    let first = out.first_mut()?;
    *first = length << 16 | *first & 0xffff;
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::edit::tests::{inst, module};

    fn without(words: &[u32]) -> Option<Vec<u32>> {
        let mut edit = ModuleEdit::of(words)?;
        remove(&mut edit)?;
        Some(edit.words())
    }

    #[test]
    fn declarations_and_operands_are_left_out() {
        let capability = inst(Op::Capability, &[5910]);
        let model = inst(Op::MemoryModel, &[2, 2]);
        let declarations = [
            inst(Op::AliasDomainDeclINTEL, &[10]),
            inst(Op::AliasScopeDeclINTEL, &[11, 10]),
            inst(Op::AliasScopeListDeclINTEL, &[12, 11]),
            inst(Op::DecorateId, &[30, 5914, 12]),
            inst(Op::DecorateId, &[30, 5915, 12]),
        ]
        .concat();
        let other = inst(Op::DecorateId, &[30, 44, 13]);
        let accesses = |hints: u32, last: &[u32]| {
            let with = |op: Op, operands: &[u32]| inst(op, &[operands, last].concat());
            [
                with(Op::Load, &[1, 2, 3, 0x2 | hints, 8]),
                with(Op::Store, &[3, 4, 0x1 | hints]),
                with(Op::CopyMemorySized, &[3, 4, 5, 0x2, 4, 0x2 | hints, 8]),
                inst(Op::Load, &[1, 6, 3]),
                inst(Op::CopyMemory, &[3, 4]),
            ]
            .concat()
        };
        let written = module(&[
            capability.clone(),
            model.clone(),
            declarations,
            other.clone(),
            accesses(0x3_0000, &[12, 12]),
            accesses(0x2_0000, &[12]),
        ]);
        let plain = accesses(0, &[]);
        let expected = module(&[capability, model.clone(), other, plain.clone(), plain]);
        assert_eq!(without(&written), Some(expected));
        let none = module(&[model]);
        assert_eq!(without(&none), Some(none));
        assert_eq!(without(&written[..written.len() - 1]), None);
    }

    #[test]
    fn cut_operands_are_refused() {
        let capability = inst(Op::Capability, &[5910]);
        let load = inst(Op::Load, &[1, 2, 3, 0x2_0002, 8]);
        assert_eq!(without(&module(&[capability, load])), None);
    }
}
