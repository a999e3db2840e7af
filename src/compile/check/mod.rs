//! Checking a module: what an application gives is read by nobody before it was found valid here.

pub mod capabilities;

mod alias_hints;
mod compiler_habits;
mod float_controls;
mod untyped_pointers;

use spirv_lowering::error::LowerError;
use spirv_lowering::{Program, ReadOptions};

/// Checks a SPIR-V module by the rules of SPIR-V itself (not those of an environment). `Err`: what is wrong.
///
/// LLVM's SPIR-V target uses SPV_KHR_float_controls2 without declaring its capability; that much is granted here, since
/// the rest of the module is as valid with the declaration as without, and ours is the only reader. What the validator
/// that is compiled in refuses wrongly is hidden from it; what compilers get wrong and nobody minds is put right.
///
/// Our reader goes first: on some of what it refuses SPIRV-Tools end the process. What it does not support is not looked
/// at further, since no build of it succeeds but by other values of constants, and then the reader judges again.
pub fn validate(words: &[u32]) -> Result<(), String> {
    match Program::read(words, &ReadOptions::default()) {
        Ok(_) | Err(LowerError::Undefined { .. }) => {}
        Err(error @ LowerError::InvalidInput { .. }) => {
            let text = error.to_string();
            let what = text.strip_prefix("invalid SPIR-V").unwrap_or(&text);
            return Err(what.trim_start_matches([':', ' ']).to_owned());
        }
        Err(LowerError::Unsupported { .. } | LowerError::Internal { .. }) => return Ok(()),
    }
    let declared = float_controls::declared(words);
    let words = declared.as_deref().unwrap_or(words);
    let known = untyped_pointers::replaced(words);
    let words = known.as_deref().unwrap_or(words);
    let plain = alias_hints::without(words);
    let words = plain.as_deref().unwrap_or(words);
    let check = |words: &[u32]| {
        use spirv_tools::val::Validator;
        spirv_tools::val::create(Some(spirv_tools::TargetEnv::Universal_1_6))
            .validate(words, None)
            .map_err(|error| error.to_string())
    };
    check(words).or_else(|error| match compiler_habits::corrected(words) {
        Some(corrected) if corrected != words => check(&corrected),
        _ => Err(error),
    })
}

/// Checks lowered code by the rules of Vulkan 1.2, local-size constants left as they are. `Err`: what is wrong.
pub fn validate_vulkan(words: &[u32]) -> Result<(), String> {
    use spirv_tools::val::Validator;
    spirv_tools::val::create(Some(spirv_tools::TargetEnv::Vulkan_1_2))
        .validate(words, None)
        .map_err(|error| error.to_string())
}
