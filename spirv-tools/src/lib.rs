// SPDX-License-Identifier: MIT OR Apache-2.0
//! The validator and the assembler of SPIRV-Tools (`spirv-tools/libspirv.h`), compiled in by the build script.

use std::ffi::CStr;
use std::ptr::{null_mut, NonNull};
use std::slice;

use spirv_tools_sys::diagnostics::{self, Diagnostic};
use spirv_tools_sys::shared::{self, Binary, SpirvResult, ToolContext};
use spirv_tools_sys::{assembler, val};

pub use spirv_tools_sys::shared::TargetEnv;

/// Checks a module by the rules of SPIR-V and of the environment. `Err`: what is wrong, and where.
pub fn validate(environment: TargetEnv, words: &[u32]) -> Result<(), String> {
    check(environment, words, false)
}

/// The same, with the layout of blocks that VK_EXT_scalar_block_layout allows.
pub fn validate_with_scalar_blocks(environment: TargetEnv, words: &[u32]) -> Result<(), String> {
    check(environment, words, true)
}

extern "C" {
    /// Sets whether diagnostics name values as the module does.
    #[link_name = "spvValidatorOptionsSetFriendlyNames"]
    fn validator_options_set_friendly_names(options: *mut val::ValidatorOptions, value: bool);
}

fn check(environment: TargetEnv, words: &[u32], scalar_blocks: bool) -> Result<(), String> {
    // The validator makes the names whether or not something is wrong, in time quadratic in how many
    // values have the same one.
    check_with(environment, words, scalar_blocks, false)
        .or_else(|_| check_with(environment, words, scalar_blocks, true))
}

fn check_with(
    environment: TargetEnv,
    words: &[u32],
    scalar_blocks: bool,
    names: bool,
) -> Result<(), String> {
    let context = Context::new(environment)?;
    let mut diagnostic = CallDiagnostic::nothing();
    let binary = Binary {
        code: words.as_ptr(),
        size: words.len(),
    };
    // SAFETY: the context is alive, the binary describes `words`, `diagnostic` takes a diagnostic; the options are made here, given to
    // one call, and destroyed.
    let result = unsafe {
        let options = val::validator_options_create();
        val::validator_options_set_scalar_block_layout(options, scalar_blocks);
        validator_options_set_friendly_names(options, names);
        let context = context.0.as_ptr();
        let result = val::validate_with_options(context, options, &binary, &mut diagnostic.0);
        val::validator_options_destroy(options);
        result
    };
    diagnostic.of(result)
}

/// The words of a module written as text, of the environment's version of SPIR-V. `Err`: what is wrong, and where.
pub fn assemble(environment: TargetEnv, text: &str) -> Result<Vec<u32>, String> {
    let context = Context::new(environment)?;
    let mut diagnostic = CallDiagnostic::nothing();
    let mut binary: *mut Binary = null_mut();
    // SAFETY: the context is alive, the text has this length, `binary` and `diagnostic` take what the call makes.
    let result = unsafe {
        assembler::assemble(
            context.0.as_ptr(),
            text.as_ptr().cast(),
            text.len(),
            0,
            &mut binary,
            &mut diagnostic.0,
        )
    };
    let words = if binary.is_null() {
        Vec::new()
    } else {
        // SAFETY: the call made a binary of `size` words, which is destroyed once, after they are copied.
        unsafe {
            let words = slice::from_raw_parts((*binary).code, (*binary).size).to_vec();
            shared::binary_destroy(binary);
            words
        }
    };
    diagnostic.of(result).map(|()| words)
}

/// An `spv_context`.
struct Context(NonNull<ToolContext>);

impl Context {
    fn new(environment: TargetEnv) -> Result<Self, String> {
        // SAFETY: no arguments but an environment, which the library knows or answers with null.
        let context = unsafe { shared::context_create(environment) };
        NonNull::new(context)
            .map(Self)
            .ok_or_else(|| format!("SPIRV-Tools do not know {environment}"))
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: made by `context_create`, destroyed once.
        unsafe { shared::context_destroy(self.0.as_ptr()) }
    }
}

/// The diagnostic of a call, or null.
struct CallDiagnostic(*mut Diagnostic);

impl CallDiagnostic {
    fn nothing() -> Self {
        Self(null_mut())
    }

    fn of(self, result: SpirvResult) -> Result<(), String> {
        if result == SpirvResult::Success {
            return Ok(());
        }
        // SAFETY: null, or a diagnostic that the call made, whose text ends with a zero.
        let diagnostic = unsafe { self.0.as_ref() }.map(|diagnostic| unsafe {
            let text = CStr::from_ptr(diagnostic.error).to_string_lossy();
            format!(
                "error:{}:{} - {text}",
                diagnostic.position.line, diagnostic.position.column
            )
        });
        Err(diagnostic.unwrap_or_else(|| format!("error: {result}")))
    }
}

impl Drop for CallDiagnostic {
    fn drop(&mut self) {
        // SAFETY: null, which is let be, or made by a call, destroyed once.
        unsafe { diagnostics::diagnostic_destroy(self.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHADER: &str = "OpCapability Shader
        OpMemoryModel Logical GLSL450
        OpEntryPoint GLCompute %main \"main\"
        OpExecutionMode %main LocalSize 1 1 1
        %void = OpTypeVoid
        %function = OpTypeFunction %void
        %main = OpFunction %void None %function
        %entry = OpLabel
        OpReturn
        OpFunctionEnd";

    #[test]
    fn text_becomes_a_valid_module() {
        let words = assemble(TargetEnv::Vulkan_1_2, SHADER).unwrap();
        assert_eq!(words[..2], [0x0723_0203, 0x0001_0500]);
        assert_eq!(validate(TargetEnv::Vulkan_1_2, &words), Ok(()));
        assert_eq!(
            validate_with_scalar_blocks(TargetEnv::Vulkan_1_2, &words),
            Ok(())
        );
    }

    #[test]
    fn what_is_wrong_is_said() {
        let error = assemble(TargetEnv::Vulkan_1_2, "OpCapability\nOpNothing").unwrap_err();
        assert!(error.starts_with("error:1:0 - Expected operand"), "{error}");
        let words = assemble(TargetEnv::Vulkan_1_2, &SHADER.replace("Shader", "Kernel")).unwrap();
        let error = validate(TargetEnv::Vulkan_1_2, &words).unwrap_err();
        assert!(
            error.contains("Capability Kernel is not allowed by Vulkan 1.2"),
            "{error}"
        );
        assert_eq!(
            validate_with_scalar_blocks(TargetEnv::Vulkan_1_2, &words),
            Err(error)
        );
        let named = SHADER
            .replace("%void =", "OpName %main \"begin\"\n%void =")
            .replace("OpReturn\n", "OpReturnValue %main\n");
        let words = assemble(TargetEnv::Vulkan_1_2, &named).unwrap();
        let error = validate(TargetEnv::Vulkan_1_2, &words).unwrap_err();
        assert!(error.contains("[%begin]"), "{error}");
        assert!(validate(TargetEnv::Vulkan_1_2, &[]).is_err());
    }
}
