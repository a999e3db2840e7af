//! SPIR-V that uses SPV_KHR_float_controls2 without declaring its capability, as LLVM's SPIR-V target writes it.

const HEADER_WORDS: usize = 5;
const OP_EXTENSION: u32 = 10;
const OP_CAPABILITY: u32 = 17;
const OP_DECORATE: u32 = 71;
const OP_FUNCTION: u32 = 54;
const OP_EXECUTION_MODE_ID: u32 = 331;
const FP_FAST_MATH_MODE: u32 = 40;
const FP_FAST_MATH_DEFAULT: u32 = 6028;
const FLOAT_CONTROLS_2: u32 = 6029;
/// AllowContract, AllowReassoc, AllowTransform.
const NEW_MODES: u32 = 0x7_0000;
const EXTENSION: &str = "SPV_KHR_float_controls2";

/// A copy that declares capability and extension, if the module uses what belongs to them and lacks the capability.
pub fn declared(words: &[u32]) -> Option<Vec<u32>> {
    let (mut uses, mut extension) = (false, false);
    let mut capabilities_end = HEADER_WORDS;
    let mut at = HEADER_WORDS;
    while let Some(&first) = words.get(at) {
        let (length, op) = ((first >> 16) as usize, first & 0xffff);
        let operands = words.get(at + 1..at + length.max(1))?;
        match (op, operands) {
            (OP_FUNCTION, _) => break,
            (OP_CAPABILITY, [FLOAT_CONTROLS_2]) => return None,
            (OP_CAPABILITY, _) => capabilities_end = at + length,
            (OP_EXTENSION, name) => extension |= text(name) == EXTENSION.as_bytes(),
            (OP_EXECUTION_MODE_ID, [_, FP_FAST_MATH_DEFAULT, ..]) => uses = true,
            (OP_DECORATE, [_, FP_FAST_MATH_MODE, mode]) => uses |= mode & NEW_MODES != 0,
            _ => {}
        }
        if length == 0 {
            return None;
        }
        at += length;
    }
    if !uses {
        return None;
    }
    let mut copy = words.get(..capabilities_end)?.to_vec();
    copy.extend([2 << 16 | OP_CAPABILITY, FLOAT_CONTROLS_2]);
    if !extension {
        let name: Vec<u32> = EXTENSION
            .as_bytes()
            .chunks(4)
            .map(|part| {
                part.iter()
                    .rev()
                    .fold(0, |word, &byte| word << 8 | u32::from(byte))
            })
            // The name fills its words: one more for the zero that ends it.
            .chain((EXTENSION.len() % 4 == 0).then_some(0))
            .collect();
        copy.push(((name.len() as u32 + 1) << 16) | OP_EXTENSION);
        copy.extend(name);
    }
    copy.extend_from_slice(words.get(capabilities_end..)?);
    Some(copy)
}

/// The bytes of a literal string, without the zeros at its end.
fn text(words: &[u32]) -> Vec<u8> {
    let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    while bytes.last() == Some(&0) {
        bytes.pop();
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(body: &[u32]) -> Vec<u32> {
        // Magic, 1.4, generator, bound, schema; Kernel, Addresses; the memory model.
        let mut words = vec![0x0723_0203, 0x0001_0400, 0, 9, 0];
        words.extend([2 << 16 | OP_CAPABILITY, 6, 2 << 16 | OP_CAPABILITY, 4]);
        words.extend([3 << 16 | 14, 2, 2]);
        words.extend(body);
        words
    }

    #[test]
    fn only_what_uses_it_is_changed() {
        assert_eq!(declared(&module(&[])), None);
        assert_eq!(
            declared(&module(&[4 << 16 | OP_DECORATE, 3, FP_FAST_MATH_MODE, 1])),
            None
        );
        assert_eq!(declared(&[1, 2, 3]), None);
        assert_eq!(
            declared(&module(&[0])),
            None,
            "an instruction without length"
        );
        let uses = module(&[4 << 16 | OP_DECORATE, 3, FP_FAST_MATH_MODE, 0x1_0000]);
        let changed = declared(&uses).expect("a copy");
        assert_eq!(
            changed.get(9..11),
            Some([2 << 16 | OP_CAPABILITY, FLOAT_CONTROLS_2].as_slice())
        );
        assert_eq!(changed.get(11), Some(&(7 << 16 | OP_EXTENSION)));
        assert_eq!(changed.len(), uses.len() + 9);
        assert_eq!(declared(&changed), None);
    }
}
