//! Checking a module: what an application gives is read by nobody before it was found valid here.

pub mod capabilities;

mod alias_hints;
mod float_controls;
mod repairs;
mod stand_ins;

use super::edit::ModuleEdit;
use pumice_spirv_tools::TargetEnv;
use spirv_lowering::error::LowerError;
use spirv_lowering::{Program, ReadOptions};

/// Checks a SPIR-V module by the rules of SPIR-V itself (not those of an environment), and gives what is to be read of it from
/// now on: the very words that were found valid. `Err`: what is wrong.
///
/// What compilers get wrong and nobody minds is put right in them: LLVM's SPIR-V target uses SPV_KHR_float_controls2 without
/// declaring its capability (`float_controls`), hints of SPV_INTEL_memory_access_aliasing stand where the validator wants none
/// (`alias_hints`), and where the module is not valid even so, there is a table of more (`repairs`). Only of instructions that
/// the validator does not know it sees others (`stand_ins`).
///
/// Our reader goes first: on some of what it refuses SPIRV-Tools end the process. What it does not support is not looked
/// at further, since no build of it succeeds but by other values of constants, and then the reader judges again.
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

/// The module with its capabilities declared, and without hints. None: cut short.
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

/// Checks lowered code by the rules of Vulkan 1.2, local-size constants left as they are. `Err`: what is wrong.
pub fn validate_vulkan(words: &[u32]) -> Result<(), String> {
    pumice_spirv_tools::validate(TargetEnv::Vulkan_1_2, words)
}
