//! Compares what was exchanged as bits. LLVM's SPIR-V target makes OpIEqual of two floats of
//! `atomic_compare_exchange_strong` on an `atomic_float`, to see whether it was exchanged.

use crate::compile::edit::{instruction, opcode, Change, ModuleEdit};
use rustc_hash::FxHashMap;
use spirv::Op;

/// Returns the module with comparisons of integers, or `None` if it is truncated or has no
/// exchanges of floats.
pub fn compared_as_bits(words: &[u32]) -> Option<Vec<u32>> {
    let exchanges = [Op::AtomicCompareExchange, Op::AtomicCompareExchangeWeak];
    let first = exchanges.map(|op| instruction(op, &[0; 8])[0]);
    if !words.iter().any(|word| first.contains(word)) {
        return None;
    }
    let mut edit = ModuleEdit::of(words)?;
    let mut floats: FxHashMap<u32, u32> = FxHashMap::default();
    let mut exchanged: FxHashMap<u32, u32> = FxHashMap::default();
    let changed = edit.rewrite(|edit, inst| {
        edit.know(inst);
        let change = match (opcode(inst), inst) {
            (Some(Op::TypeFloat), &[_, id, bits, ..]) => {
                floats.insert(id, bits);
                Change::Keep
            }
            (Some(op), &[_, ty, id, ..]) if exchanges.contains(&op) => {
                if let Some(&bits) = floats.get(&ty) {
                    exchanged.insert(id, bits);
                }
                Change::Keep
            }
            (Some(Op::IEqual), &[_, ty, id, found, expected]) => match exchanged.get(&found) {
                Some(&bits) => {
                    let integer = edit.value(Op::TypeInt, &[bits, 0]);
                    let [a, b] = [edit.new_id(), edit.new_id()];
                    Change::Become(vec![
                        instruction(Op::Bitcast, &[integer, a, found]),
                        instruction(Op::Bitcast, &[integer, b, expected]),
                        instruction(Op::IEqual, &[ty, id, a, b]),
                    ])
                }
                None => Change::Keep,
            },
            _ => Change::Keep,
        };
        Some(change)
    })?;
    changed.then(|| edit.words())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::edit::tests::{inst, module, module_bound};

    #[test]
    fn bits_are_compared() {
        let types = [
            inst(Op::TypeInt, &[2, 32, 0]),
            inst(Op::TypeFloat, &[3, 32]),
            inst(Op::TypeBool, &[4]),
        ]
        .concat();
        let exchange = |ty: u32| inst(Op::AtomicCompareExchange, &[ty, 20, 8, 9, 9, 9, 10, 11]);
        let equal = inst(Op::IEqual, &[4, 21, 20, 11]);
        let written = module(&[types.clone(), exchange(3), equal.clone()]);
        let expected = [
            inst(Op::Bitcast, &[2, 90, 20]),
            inst(Op::Bitcast, &[2, 91, 11]),
            inst(Op::IEqual, &[4, 21, 90, 91]),
        ];
        let expected = module_bound(92, &[types.clone(), exchange(3), expected.concat()]);
        assert_eq!(compared_as_bits(&written), Some(expected));
        let integers = module(&[types, exchange(2), equal]);
        assert_eq!(compared_as_bits(&integers), None);
    }
}
