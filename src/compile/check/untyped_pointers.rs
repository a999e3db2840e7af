//! What SPV_KHR_untyped_pointers allows and the validator that is compiled in refuses: OpUntypedGroupAsyncCopyKHR, which came
//! to the extension later, access chains as constants, and `vloadn` and `vstoren` with untyped pointers.
//!
//! The validator sees other instructions with the same results instead, so that what uses those is checked; the operands
//! are checked where the instructions are read.

use spirv::{Capability, Op, OpenclStd100Op as Cl};
use spirv_lowering::insts::insts;

/// A copy of the module for the validator, if the module has such an instruction.
pub fn replaced(words: &[u32]) -> Option<Vec<u32>> {
    let mut copy: Option<Vec<u32>> = None;
    let (mut untyped, mut set) = (false, 0);
    for inst in insts(words) {
        let inst = inst?;
        let instead = match (inst.op()?, inst.words) {
            (Op::Capability, &[_, name]) => {
                untyped |= name == Capability::UntypedPointersKHR as u32;
                None
            }
            (Op::ExtInstImport, &[_, id, ref name @ ..]) => {
                if name.first() == Some(&u32::from_le_bytes(*b"Open")) && name.len() == 3 {
                    set = id;
                }
                None
            }
            _ if !untyped => return None,
            (Op::UntypedGroupAsyncCopyKHR, &[_, ty, id, _, _, _, _, _, _, event, ..]) => {
                Some(vec![4 << 16 | Op::CopyObject as u32, ty, id, event])
            }
            (Op::SpecConstantOp, &[_, ty, id, op, ..]) if is_untyped_chain(op) => {
                Some(vec![3 << 16 | Op::ConstantNull as u32, ty, id])
            }
            (Op::ExtInst, &[_, ty, id, from, number, ..]) if from == set => {
                match Cl::from_u32(number) {
                    Some(Cl::vloadn) => Some(vec![3 << 16 | Op::Undef as u32, ty, id]),
                    Some(Cl::vstoren) => Some(Vec::new()),
                    _ => None,
                }
            }
            _ => None,
        };
        match (instead, &mut copy) {
            (Some(instead), _) => copy
                .get_or_insert_with(|| words[..inst.at].to_vec())
                .extend(instead),
            (None, Some(copy)) => copy.extend_from_slice(inst.words),
            (None, None) => {}
        }
    }
    copy
}

fn is_untyped_chain(op: u32) -> bool {
    matches!(
        Op::from_u32(op),
        Some(
            Op::UntypedAccessChainKHR
                | Op::UntypedInBoundsAccessChainKHR
                | Op::UntypedPtrAccessChainKHR
                | Op::UntypedInBoundsPtrAccessChainKHR
        )
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: [u32; 5] = [0x0723_0203, 0x1_0400, 0, 20, 0];
    const UNTYPED: [u32; 2] = [2 << 16 | 17, 4473];
    const NOP: [u32; 1] = [1 << 16];

    #[test]
    fn copies_of_the_event() {
        let inst = [10 << 16 | 4434, 1, 2, 3, 4, 5, 6, 7, 8, 9];
        let words = [&HEADER[..], &UNTYPED, &NOP, &inst, &NOP].concat();
        let copy = [4 << 16 | 83, 1, 2, 9];
        let expected = [&HEADER[..], &UNTYPED, &NOP, &copy, &NOP].concat();
        assert_eq!(replaced(&words), Some(expected));
        assert_eq!(replaced(&[&HEADER[..], &UNTYPED, &NOP].concat()), None);
        assert_eq!(replaced(&[&HEADER[..], &NOP, &inst].concat()), None);
        assert_eq!(replaced(&words[..words.len() - 3]), None);
        assert_eq!(replaced(&[&HEADER[..], &[0]].concat()), None);
    }

    #[test]
    fn constant_access_chains() {
        let chain = [7 << 16 | 52, 1, 2, 4420, 3, 4, 5];
        let words = [&HEADER[..], &UNTYPED, &chain, &NOP].concat();
        let null = [3 << 16 | 46, 1, 2];
        let expected = [&HEADER[..], &UNTYPED, &null, &NOP].concat();
        assert_eq!(replaced(&words), Some(expected));
    }

    #[test]
    fn vectors_through_untyped_pointers() {
        let name = [b"Open", b"CL.s", b"td\0\0"].map(|b| u32::from_le_bytes(*b));
        let import = [&[5 << 16 | 11, 1][..], &name].concat();
        let load = [8 << 16 | 12, 2, 3, 1, 171, 5, 6, 4];
        let store = [8 << 16 | 12, 7, 8, 1, 172, 3, 5, 6];
        let other = [6 << 16 | 12, 2, 9, 1, 14, 3];
        let words = [&HEADER[..], &UNTYPED, &import, &load, &store, &other].concat();
        let undef = [3 << 16 | 1, 2, 3];
        let expected = [&HEADER[..], &UNTYPED, &import, &undef, &other].concat();
        assert_eq!(replaced(&words), Some(expected));
        let typed = [&HEADER[..], &import, &load, &store, &other].concat();
        assert_eq!(replaced(&typed), None);
    }
}
