//! The built-in function library, indexed once a process.

use spirv_lowering::BuiltinLibrary;
use std::sync::OnceLock;

/// Returns the library of libclc and Pumice's own functions. An error says that they could not be
/// read, which is a defect of this build.
pub fn get() -> Result<&'static BuiltinLibrary, &'static str> {
    static LIBRARY: OnceLock<Result<BuiltinLibrary, String>> = OnceLock::new();
    LIBRARY
        .get_or_init(|| {
            let words = |bytes: &[u8]| super::words::to_words(bytes).unwrap_or_default();
            BuiltinLibrary::new(
                &words(pumice_shaders::LIBCLC),
                &words(pumice_shaders::BUILTINS),
            )
            .map_err(|e| e.to_string())
        })
        .as_ref()
        .map_err(String::as_str)
}
