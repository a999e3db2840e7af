//! Declares the capability of SPV_KHR_float_controls2 in modules that use the extension without it,
//! as LLVM's SPIR-V target writes them.

use crate::compile::edit::{opcode, ModuleEdit};
use spirv::Op;

const FP_FAST_MATH_MODE: u32 = 40;
const FP_FAST_MATH_DEFAULT: u32 = 6028;
const FLOAT_CONTROLS_2: u32 = 6029;
/// The modes AllowContract, AllowReassoc and AllowTransform.
const NEW_MODES: u32 = 0x7_0000;
const EXTENSION: &str = "SPV_KHR_float_controls2";

/// Declares the capability and the extension, if the module uses them and lacks the capability.
pub fn declare(edit: &mut ModuleEdit<'_>) {
    let mut uses = false;
    for inst in &edit.insts {
        match (opcode(inst), inst.get(1..).unwrap_or_default()) {
            (Some(Op::Function), _) => break,
            (Some(Op::Capability), [FLOAT_CONTROLS_2]) => return,
            (Some(Op::ExecutionModeId), [_, FP_FAST_MATH_DEFAULT, ..]) => uses = true,
            (Some(Op::Decorate), [_, FP_FAST_MATH_MODE, mode]) => uses |= mode & NEW_MODES != 0,
            _ => {}
        }
    }
    if uses {
        edit.declare(Some(FLOAT_CONTROLS_2), EXTENSION);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::edit::tests::{inst, module};
    use spirv_lowering::insts::string_words;

    fn declared(words: &[u32]) -> Vec<u32> {
        let mut edit = ModuleEdit::of(words).unwrap();
        declare(&mut edit);
        edit.words()
    }

    #[test]
    fn only_what_uses_it_is_changed() {
        let head = [inst(Op::Capability, &[6]), inst(Op::Capability, &[4])].concat();
        let model = inst(Op::MemoryModel, &[2, 2]);
        let old = inst(Op::Decorate, &[3, FP_FAST_MATH_MODE, 1]);
        let new = inst(Op::Decorate, &[3, FP_FAST_MATH_MODE, 0x1_0000]);
        let by_default = inst(Op::ExecutionModeId, &[3, FP_FAST_MATH_DEFAULT, 4, 5]);
        for body in [model.clone(), old] {
            let words = module(&[head.clone(), model.clone(), body]);
            assert_eq!(declared(&words), words);
        }
        for body in [new, by_default] {
            let words = module(&[head.clone(), model.clone(), body.clone()]);
            let added = [
                inst(Op::Capability, &[FLOAT_CONTROLS_2]),
                inst(Op::Extension, &string_words(EXTENSION.as_bytes())),
            ]
            .concat();
            let expected = module(&[head.clone(), added, model.clone(), body]);
            assert_eq!(declared(&words), expected);
            assert_eq!(declared(&expected), expected);
        }
    }
}
