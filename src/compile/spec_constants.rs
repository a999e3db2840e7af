//! Turns specialisation constants into plain values.
//!
//! clCompileProgram ends the time in which constants of a module can be set. Its result is linked
//! with modules whose constants may have the same numbers, so the values go into the module and the
//! numbers are removed.

use super::edit::{instruction, opcode, Change, ModuleEdit};
use rustc_hash::FxHashMap;
use spirv::{Decoration, Op};

/// Returns the module with these values of its specialisation constants (`SpecId` and
/// little-endian bytes), which then are plain constants. A truncated module stays as it is.
pub fn frozen(words: &[u32], values: &[(u32, Vec<u8>)]) -> Vec<u32> {
    let Some(mut edit) = ModuleEdit::of(words) else {
        return words.to_vec();
    };
    let mut numbers: FxHashMap<u32, u32> = FxHashMap::default();
    edit.rewrite(|_, inst| {
        let value = |id: u32| {
            let number = numbers.get(&id)?;
            values.iter().find(|v| v.0 == *number).map(|v| &v.1)
        };
        let changed = match (opcode(inst), inst) {
            (Some(Op::Decorate), &[_, target, kind, number])
                if kind == Decoration::SpecId as u32 =>
            {
                numbers.insert(target, number);
                return Some(Change::Drop);
            }
            (Some(Op::SpecConstant), &[first, ty, id, ref literal @ ..]) => {
                value(id).map(|bytes| {
                    let mut words = vec![first, ty, id];
                    let mut given = bytes.chunks(4);
                    words.extend(literal.iter().map(|&old| match given.next() {
                        Some(bytes) => bytes.iter().rev().fold(0, |w, &b| w << 8 | u32::from(b)),
                        None => old,
                    }));
                    words
                })
            }
            (Some(Op::SpecConstantTrue | Op::SpecConstantFalse), &[_, ty, id]) => {
                value(id).map(|bytes| {
                    let op = if bytes.first().is_some_and(|&b| b != 0) {
                        Op::SpecConstantTrue
                    } else {
                        Op::SpecConstantFalse
                    };
                    instruction(op, &[ty, id])
                })
            }
            _ => None,
        };
        Some(changed.map_or(Change::Keep, |inst| Change::Become(vec![inst])))
    });
    edit.words()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_go_in_and_numbers_go_away() {
        let header = [0x0723_0203, 0x1_0400, 0, 20, 0];
        let decorate = |target: u32, number: u32| [4 << 16 | 71, target, 1, number];
        let words = [
            &header[..],
            &decorate(7, 1),
            &decorate(8, 2),
            &decorate(9, 3),
            &[4 << 16 | 50, 4, 7, 5],
            &[5 << 16 | 50, 5, 8, 6, 7],
            &[3 << 16 | 48, 6, 9],
        ]
        .concat();
        let values = [
            (2, vec![1, 0, 0, 0, 2, 0, 0, 0]),
            (3, vec![0]),
            (1, vec![9]),
        ];
        let expected = [
            &header[..],
            &[4 << 16 | 50, 4, 7, 9],
            &[5 << 16 | 50, 5, 8, 1, 2],
            &[3 << 16 | 49, 6, 9],
        ]
        .concat();
        assert_eq!(frozen(&words, &values), expected);
        let plain = [&header[..], &words[17..]].concat();
        assert_eq!(frozen(&words, &[]), plain);
    }
}
