//! Substitutes for instructions that the compiled-in validator does not know. It sees others with
//! the same results, so that their uses are checked; the reader alone checks the instructions
//! themselves. Nothing else that is validated differs from what is read.
//!
//! Of SPV_KHR_untyped_pointers: OpUntypedGroupAsyncCopyKHR, which came to the extension later,
//! access chains as constants, and `vloadn` and `vstoren` with untyped pointers. Of
//! SPV_INTEL_function_pointers, of which the reader accepts only what no kernel uses: pointers to
//! functions, which here point to the return type, and constant ones, which are null. Of pipe
//! storage: the constants, which the validator knows inside of functions alone. They are null, so
//! their type is an empty structure.

use crate::compile::edit::{instruction, opcode, Change, ModuleEdit};
use crate::quirks::{Quirk, Quirks};
use rustc_hash::FxHashMap;
use spirv::{Capability, Op, OpenclStd100Op as Cl};

/// Returns a copy of the module in which instructions that the validator does not know, by some
/// quirks, are replaced. Returns `None` if there are none.
pub fn replaced(words: &[u32], quirks: Quirks) -> Option<Vec<u32>> {
    let (mut untyped, mut set) = (false, 0);
    let knows_functions = !quirks.has(Quirk::FunctionPointers);
    let knows_storage = !quirks.has(Quirk::PipeStorage);
    // Function types, by what they return.
    let mut functions: FxHashMap<u32, u32> = FxHashMap::default();
    let mut edit = ModuleEdit::of(words)?;
    let changed = edit.rewrite(|_, inst| {
        let instead = match (opcode(inst)?, inst) {
            (Op::Capability, &[_, name]) => {
                untyped |= name == Capability::UntypedPointersKHR as u32
                    && quirks.has(Quirk::UntypedPointers);
                return Some(Change::Keep);
            }
            (Op::ExtInstImport, &[_, id, ref name @ ..]) => {
                if name.first() == Some(&u32::from_le_bytes(*b"Open")) && name.len() == 3 {
                    set = id;
                }
                return Some(Change::Keep);
            }
            (Op::TypeFunction, &[_, id, result, ..]) => {
                functions.insert(id, result);
                return Some(Change::Keep);
            }
            (Op::TypePointer | Op::ConstantFunctionPointerINTEL, _) if knows_functions => {
                return Some(Change::Keep)
            }
            (Op::TypePipeStorage | Op::ConstantPipeStorage, _) if knows_storage => {
                return Some(Change::Keep)
            }
            (Op::TypePointer, &[_, id, class, pointee]) => match functions.get(&pointee) {
                Some(&result) => instruction(Op::TypePointer, &[id, class, result]),
                None => return Some(Change::Keep),
            },
            // The function comes later, which the validator does not expect.
            (Op::ConstantFunctionPointerINTEL, &[_, ty, id, _]) => {
                instruction(Op::ConstantNull, &[ty, id])
            }
            (Op::TypePipeStorage, &[_, id]) => instruction(Op::TypeStruct, &[id]),
            (Op::ConstantPipeStorage, &[_, ty, id, ..]) => instruction(Op::ConstantNull, &[ty, id]),
            _ if !untyped => return Some(Change::Keep),
            (Op::UntypedGroupAsyncCopyKHR, &[_, ty, id, _, _, _, _, _, _, event, ..]) => {
                instruction(Op::CopyObject, &[ty, id, event])
            }
            (Op::SpecConstantOp, &[_, ty, id, op, ..]) if is_untyped_chain(op) => {
                instruction(Op::ConstantNull, &[ty, id])
            }
            (Op::ExtInst, &[_, ty, id, from, number, ..]) if from == set => {
                match Cl::from_u32(number) {
                    Some(Cl::vloadn) => instruction(Op::Undef, &[ty, id]),
                    Some(Cl::vstoren) => return Some(Change::Drop),
                    _ => return Some(Change::Keep),
                }
            }
            _ => return Some(Change::Keep),
        };
        Some(Change::Become(vec![instead]))
    })?;
    changed.then(|| edit.words())
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
    use crate::quirks::Vendor;

    const HEADER: [u32; 5] = [0x0723_0203, 0x1_0400, 0, 20, 0];
    const UNTYPED: [u32; 2] = [2 << 16 | 17, 4473];
    const NOP: [u32; 1] = [1 << 16];

    fn by_all(words: &[u32]) -> Option<Vec<u32>> {
        replaced(words, Quirks::of(Vendor::Producer, [0; 3]))
    }

    #[test]
    fn copies_of_the_event() {
        let inst = [10 << 16 | 4434, 1, 2, 3, 4, 5, 6, 7, 8, 9];
        let words = [&HEADER[..], &UNTYPED, &NOP, &inst, &NOP].concat();
        let copy = [4 << 16 | 83, 1, 2, 9];
        let expected = [&HEADER[..], &UNTYPED, &NOP, &copy, &NOP].concat();
        assert_eq!(by_all(&words), Some(expected));
        assert_eq!(by_all(&[&HEADER[..], &UNTYPED, &NOP].concat()), None);
        assert_eq!(by_all(&[&HEADER[..], &NOP, &inst].concat()), None);
        assert_eq!(by_all(&words[..words.len() - 3]), None);
        assert_eq!(by_all(&[&HEADER[..], &[0]].concat()), None);
    }

    #[test]
    fn constant_access_chains() {
        let chain = [7 << 16 | 52, 1, 2, 4420, 3, 4, 5];
        let words = [&HEADER[..], &UNTYPED, &chain, &NOP].concat();
        let null = [3 << 16 | 46, 1, 2];
        let expected = [&HEADER[..], &UNTYPED, &null, &NOP].concat();
        assert_eq!(by_all(&words), Some(expected));
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
        assert_eq!(by_all(&words), Some(expected));
        let typed = [&HEADER[..], &import, &load, &store, &other].concat();
        assert_eq!(by_all(&typed), None);
    }

    #[test]
    fn pointers_to_functions() {
        use crate::compile::edit::tests::{inst, module};
        let function = inst(Op::TypeFunction, &[3, 2]);
        let all = |pointer: u32, constant: Vec<u32>| {
            let pointer = inst(Op::TypePointer, &[4, 5, pointer]);
            module(&[function.clone(), pointer, constant])
        };
        let constant = inst(Op::ConstantFunctionPointerINTEL, &[4, 6, 9]);
        let expected = all(2, inst(Op::ConstantNull, &[4, 6]));
        assert_eq!(by_all(&all(3, constant)), Some(expected.clone()));
        assert_eq!(by_all(&expected), None);
    }

    #[test]
    fn constant_pipe_storage() {
        use crate::compile::edit::tests::{inst, module};
        let words = module(&[
            inst(Op::TypePipeStorage, &[3]),
            inst(Op::ConstantPipeStorage, &[3, 4, 8, 8, 5]),
        ]);
        let expected = module(&[inst(Op::TypeStruct, &[3]), inst(Op::ConstantNull, &[3, 4])]);
        assert_eq!(by_all(&words), Some(expected));
    }
}
