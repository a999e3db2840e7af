//! SPIR-V that uses SPV_KHR_float_controls2 without declaring its capability, as LLVM's SPIR-V target writes it.

use spirv::Op;
use spirv_lowering::insts::{insts, string_words, HEADER_WORDS};

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
    let name = string_words(EXTENSION.as_bytes());
    for inst in insts(words) {
        let inst = inst?;
        match (inst.op(), inst.operands()) {
            (Some(Op::Function), _) => break,
            (Some(Op::Capability), [FLOAT_CONTROLS_2]) => return None,
            (Some(Op::Capability), _) => capabilities_end = inst.end(),
            (Some(Op::Extension), operands) => extension |= operands == name,
            (Some(Op::ExecutionModeId), [_, FP_FAST_MATH_DEFAULT, ..]) => uses = true,
            (Some(Op::Decorate), [_, FP_FAST_MATH_MODE, mode]) => uses |= mode & NEW_MODES != 0,
            _ => {}
        }
    }
    if !uses {
        return None;
    }
    let mut copy = words.get(..capabilities_end)?.to_vec();
    copy.extend([2 << 16 | Op::Capability as u32, FLOAT_CONTROLS_2]);
    if !extension {
        copy.push((name.len() as u32 + 1) << 16 | Op::Extension as u32);
        copy.extend(name);
    }
    copy.extend_from_slice(words.get(capabilities_end..)?);
    Some(copy)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(body: &[u32]) -> Vec<u32> {
        // Magic, 1.4, generator, bound, schema; Kernel, Addresses; the memory model.
        let mut words = vec![0x0723_0203, 0x0001_0400, 0, 9, 0];
        words.extend([
            2 << 16 | Op::Capability as u32,
            6,
            2 << 16 | Op::Capability as u32,
            4,
        ]);
        words.extend([3 << 16 | 14, 2, 2]);
        words.extend(body);
        words
    }

    #[test]
    fn only_what_uses_it_is_changed() {
        assert_eq!(declared(&module(&[])), None);
        assert_eq!(
            declared(&module(&[
                4 << 16 | Op::Decorate as u32,
                3,
                FP_FAST_MATH_MODE,
                1
            ])),
            None
        );
        assert_eq!(declared(&[1, 2, 3]), None);
        assert_eq!(
            declared(&module(&[0])),
            None,
            "an instruction without length"
        );
        let uses = module(&[
            4 << 16 | Op::Decorate as u32,
            3,
            FP_FAST_MATH_MODE,
            0x1_0000,
        ]);
        let changed = declared(&uses).expect("a copy");
        assert_eq!(
            changed.get(9..11),
            Some([2 << 16 | Op::Capability as u32, FLOAT_CONTROLS_2].as_slice())
        );
        assert_eq!(changed.get(11), Some(&(7 << 16 | Op::Extension as u32)));
        assert_eq!(changed.len(), uses.len() + 9);
        assert_eq!(declared(&changed), None);
    }
}
