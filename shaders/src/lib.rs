//! Shaders and library code of Pumice, as data.

/// libclc's library of OpenCL built-in functions, in OpenCL SPIR-V: little-endian words.
pub const LIBCLC: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libclc.spv"));

/// Our own library, which comes before libclc's: what that lacks or has for other devices. From `builtins/*.cl`.
pub const BUILTINS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/builtins.spv"));
/// Utility shaders in Vulkan SPIR-V, as bytes in little-endian order. Made from `util/*.wgsl` at build time.
pub mod util {
    /// Entry points `copy16`, `copy4`: buffer to buffer.
    pub const COPY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/copy.spv"));
    /// Entry point `fill16`: a pattern into a buffer.
    pub const FILL: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/fill.spv"));
    /// Entry point `rect4`: a box of rows, buffer to buffer.
    pub const RECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/rect.spv"));
}
