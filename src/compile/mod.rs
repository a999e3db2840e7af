//! From program text or SPIR-V to loaded kernels. Knows devices of the back end, but no OpenCL objects.
//!
//! ```text
//! OpenCL C --clang--> SPIR-V --read--> object --link--> executable --lower--> Vulkan SPIR-V --load--> Code
//!           (cache "spv")                      (cache "vk": all kernels of an executable)
//! ```
//!
//! | room | what happens there | may import |
//! |---|---|---|
//! | [`clang`] | running clang: command lines, the attempts, processes, the server | `fixups` |
//! | [`fixups`] | what clang gets wrong, put right before or after it | |
//! | [`check`] | checking a module before anything reads it | |
//! | [`store`] | caches on disk, program binaries | `clang` |
//!
//! Before the rooms lie what they all know ([`words`], [`edit`], [`options`], [`language`]), behind them what uses them:
//! [`linkable`], [`executable`] and this file. `ci/layering` has who may import whom as a table.

pub mod builtin_library;
pub mod check;
pub mod clang;
mod dump;
pub mod edit;
pub mod executable;
pub mod fixups;
pub mod implicit;
pub mod instance;
pub mod language;
pub mod linkable;
pub mod options;
pub mod printf;
pub mod spec_constants;
pub mod store;
pub mod words;

mod lower;
pub mod native;

pub use lower::lower;

pub use check::{checked, validate_vulkan};
pub use clang::{toolchain, unload, Header};
pub use executable::{Executable, LoweredKernel};
pub use instance::Instance;
pub use language::Language;
pub use linkable::Linkable;
pub use options::{BuildCall, BuildOptions};
pub use words::{to_bytes, to_words, BuildFailure, SpirvModule};

use clang::ClSource;
use std::sync::Arc;
use store::source;

/// Compiles OpenCL C. The log holds warnings also when it succeeds.
pub fn compile_source(
    source: &str,
    headers: &[Header<'_>],
    options: &BuildOptions,
    language: &Language,
) -> (Option<SpirvModule>, String) {
    let Some(toolchain) = toolchain::get() else {
        return (None, toolchain::missing());
    };
    let source = ClSource {
        toolchain,
        text: source,
        headers,
        options,
        language,
    };
    let key = source::key(&source);
    if let Some((bytes, log)) = source::load(source::COMPILED, &key) {
        if let Some(words) = to_words(&bytes) {
            dump::source(source.text, &words);
            return (Some(Arc::new(words)), log);
        }
    }
    let compiled = clang::compile(&source);
    if let (Some(words), Some(read)) = (&compiled.words, &compiled.read) {
        let (bytes, log) = (to_bytes(words), &compiled.log);
        source::store(&source, source::COMPILED, &key, &bytes, log, read);
    }
    if let Some(words) = &compiled.words {
        dump::source(source.text, words);
    }
    (compiled.words.map(Arc::new), compiled.log)
}
