//! The capabilities that SPIR-V modules may declare: those that CL_DEVICE_SPIRV_CAPABILITIES
//! reports, and a few others.

use spirv::{Capability as C, Op};
use spirv_lowering::insts::insts;

/// The capabilities that are accepted but not reported, since only a part of what they allow works
/// or nothing depends on them. The reader refuses what does not work, by the name of the
/// instruction.
const TOLERATED: &[C] = &[
    C::DotProductInputAll,
    C::FloatControls2,
    // Of extensions by Intel that compilers declare freely.
    C::FPFastMathModeINTEL,
    C::FPMaxErrorINTEL,
    C::FunctionPointersINTEL,
    C::IndirectReferencesINTEL,
    C::KernelAttributesINTEL,
    C::LongCompositesINTEL,
    C::MemoryAccessAliasingINTEL,
    C::OptNoneINTEL,
    C::SubgroupBallotKHR,
    C::SubgroupShuffleINTEL,
    C::SubgroupVoteKHR,
    C::UnstructuredLoopControlsINTEL,
];

/// Refuses a module that declares a capability which is neither in `supported` (token values) nor
/// tolerated.
///
/// # Errors
///
/// Returns a line for the build log.
pub fn check(words: &[u32], supported: &[u32]) -> Result<(), String> {
    for inst in insts(words).flatten() {
        let (Some(Op::Capability), &[declared]) = (inst.op(), inst.operands()) else {
            // Capabilities come before everything else.
            return Ok(());
        };
        let tolerated = TOLERATED.iter().any(|&c| c as u32 == declared);
        if !tolerated && !supported.contains(&declared) {
            let name = match C::from_u32(declared) {
                Some(name) => format!("{name:?}"),
                None => declared.to_string(),
            };
            return Err(format!(
                "error: OpCapability {name}: the device does not support this capability\n"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_ones_are_named() {
        let module = |declared: &[u32]| {
            let mut words = vec![0x0723_0203, 0x1_0000, 0, 1, 0];
            words.extend(declared.iter().flat_map(|&c| [2 << 16 | 17, c]));
            words.extend([3 << 16 | 14, 2, 2]);
            words
        };
        assert_eq!(check(&module(&[4, 6]), &[6, 4]), Ok(()));
        let error = check(&module(&[4, 6, 17]), &[6, 4]).expect_err("Pipes");
        assert!(error.contains("OpCapability Pipes"), "{error}");
        let error = check(&module(&[99_999]), &[]).expect_err("no such thing");
        assert!(error.contains("OpCapability 99999"), "{error}");
        assert_eq!(check(&[], &[]), Ok(()));
        assert_eq!(check(&module(&[C::OptNoneINTEL as u32]), &[]), Ok(()));
    }
}
