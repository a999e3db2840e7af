//! From program text or SPIR-V to loaded kernels. Knows devices of the back end, but no OpenCL objects.
//!
//! ```text
//! OpenCL C --frontend--> SPIR-V --read--> object --link--> executable --lower--> Vulkan SPIR-V --load--> Code
//!              (cache "spv")                       (cache "vk": all kernels of an executable)
//! ```

pub mod binary;
pub mod cache;
pub mod capabilities;
pub mod executable;
pub mod frontend;
pub mod options;
pub mod pipeline_cache;
pub mod spec_constants;
pub mod toolchain;
pub mod unit;

mod alias_hints;
mod arg_info;
mod child;
mod float_controls;
mod group_functions;
mod internal;
mod left_out;
pub mod library;
mod lower;
mod own_target;
mod parts;
mod prelude;
mod server;
mod source_cache;
mod tolerance;
mod validator_gaps;

pub use executable::Executable;
pub use frontend::{Header, Language};
pub use options::{BuildOptions, Stage};
pub use unit::Unit;

use spirv_lowering::error::LowerError;
use spirv_lowering::{Program, ReadOptions};
use std::sync::Arc;

/// A SPIR-V module, shared by the programs that it is linked into.
pub type Module = Arc<Vec<u32>>;

/// A step that failed: what the build log says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure(pub String);

/// Ends the compiler that waits for the next source. Jobs that it has go on.
pub fn unload() {
    server::unload();
}

/// Compiles OpenCL C. The log holds warnings also when it succeeds.
pub fn compile_source(
    source: &str,
    headers: &[Header<'_>],
    options: &BuildOptions,
    language: &Language,
) -> (Option<Module>, String) {
    let Some(toolchain) = toolchain::get() else {
        let log = "no OpenCL C compiler was found: install clang 20 or newer (Debian package clang-22), or clang-15 \
                   with llvm-spirv-15, or set PUMICE_CLANG\n";
        return (None, log.into());
    };
    let key = source_cache::key(toolchain, source, headers, options, language);
    if let Some((words, log)) = source_cache::load(&key) {
        return (Some(Arc::new(words)), log);
    }
    let compiled = frontend::compile(toolchain, source, headers, options, language);
    if let (Some(words), Some(dependencies)) = (&compiled.words, &compiled.dependencies) {
        source_cache::store(&key, words, &compiled.log, dependencies);
    }
    if let (Some(dir), Some(words)) = (&crate::util::config::get().dump, &compiled.words) {
        dump(dir, source, words);
    }
    (compiled.words.map(Arc::new), compiled.log)
}

/// PUMICE_DUMP: the source and its SPIR-V, named by the hash of the latter.
fn dump(dir: &std::path::Path, source: &str, words: &[u32]) {
    let bytes = to_bytes(words);
    let name = blake3::hash(&bytes).to_hex();
    let name = &name.as_str()[..16];
    let written = std::fs::create_dir_all(dir)
        .and_then(|()| std::fs::write(dir.join(format!("{name}.cl")), source))
        .and_then(|()| std::fs::write(dir.join(format!("{name}.spv")), &bytes));
    if let Err(error) = written {
        crate::log!(
            Warn,
            "PUMICE_DUMP: cannot write to {}: {error}",
            dir.display()
        );
    }
}

/// SPIR-V words of a byte string, in either byte order. None: not SPIR-V.
pub fn to_words(bytes: &[u8]) -> Option<Vec<u32>> {
    const MAGIC: u32 = 0x0723_0203;
    if bytes.len() < 20 || bytes.len() % 4 != 0 {
        return None;
    }
    let words = bytes
        .chunks_exact(4)
        .map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]]));
    match u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) {
        MAGIC => Some(words.collect()),
        first if first.swap_bytes() == MAGIC => Some(words.map(u32::swap_bytes).collect()),
        _ => None,
    }
}

/// The bytes of words, little-endian.
pub fn to_bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|w| w.to_le_bytes()).collect()
}

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
    let known = validator_gaps::replaced(words);
    let words = known.as_deref().unwrap_or(words);
    let plain = alias_hints::without(words);
    let words = plain.as_deref().unwrap_or(words);
    let check = |words: &[u32]| {
        use spirv_tools::val::Validator;
        spirv_tools::val::create(Some(spirv_tools::TargetEnv::Universal_1_6))
            .validate(words, None)
            .map_err(|error| error.to_string())
    };
    check(words).or_else(|error| match tolerance::corrected(words) {
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
