//! Validates modules. Nothing reads a module of an application before it has passed here.

pub mod capabilities;

mod alias_hints;
mod float_controls;
mod repairs;
mod stand_ins;

use super::edit::ModuleEdit;
use pumice_spirv_tools::TargetEnv;
use spirv_lowering::error::LowerError;
use spirv_lowering::{Program, ReadOptions};

/// Validates a SPIR-V module by the rules of SPIR-V itself (not those of an environment), and
/// returns the words to be read from now on: exactly those that were validated.
///
/// Harmless errors of compilers are repaired in them. LLVM's SPIR-V target uses
/// SPV_KHR_float_controls2 without declaring its capability (`float_controls`), and hints of
/// SPV_INTEL_memory_access_aliasing are where the validator allows none (`alias_hints`). If the
/// module is not valid even so, a table of further repairs is applied (`repairs`). The validator
/// sees substitutes of instructions that it does not know (`stand_ins`).
///
/// The reader goes first, because SPIRV-Tools ends the process on some of the input that it
/// refuses. A module that the reader does not support is not validated, since no build of it
/// succeeds except with other values of constants, and then the reader checks it again.
///
/// # Errors
///
/// Returns the reason for the build log.
pub fn checked(words: &[u32]) -> Result<Vec<u32>, String> {
    match Program::read(words, &ReadOptions::default()) {
        Ok(_) | Err(LowerError::Undefined { .. }) => {}
        Err(error @ LowerError::InvalidInput { .. }) => {
            let text = error.to_string();
            let what = text.strip_prefix("invalid SPIR-V").unwrap_or(&text);
            return Err(what.trim_start_matches([':', ' ']).to_owned());
        }
        Err(LowerError::Unsupported { .. } | LowerError::Internal { .. }) => {
            return Ok(words.to_vec())
        }
    }
    let harmless = harmless(words).unwrap_or_else(|| words.to_vec());
    let Err(error) = validated(&harmless) else {
        return Ok(harmless);
    };
    let repaired = repairs::repaired(&harmless).filter(|repaired| *repaired != harmless);
    match repaired {
        Some(repaired) if validated(&repaired).is_ok() => Ok(repaired),
        _ => Err(error),
    }
}

/// Returns the module with its capabilities declared, and without hints, or `None` if it is
/// truncated.
fn harmless(words: &[u32]) -> Option<Vec<u32>> {
    let mut edit = ModuleEdit::of(words)?;
    float_controls::declare(&mut edit);
    alias_hints::remove(&mut edit)?;
    Some(edit.words())
}

fn validated(words: &[u32]) -> Result<(), String> {
    let shown = stand_ins::replaced(words);
    let shown = shown.as_deref().unwrap_or(words);
    pumice_spirv_tools::validate(TargetEnv::Universal_1_6, shown)
}

/// Validates lowered code by the rules of Vulkan 1.2, with local-size constants unchanged. An error
/// holds the reason.
pub fn validate_vulkan(words: &[u32]) -> Result<(), String> {
    pumice_spirv_tools::validate(TargetEnv::Vulkan_1_2, words)
}
