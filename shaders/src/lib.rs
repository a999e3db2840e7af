//! Shaders and library code of Pumice, as data.

/// libclc's library of OpenCL built-in functions, in OpenCL SPIR-V: little-endian words.
pub const LIBCLC: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libclc.spv"));

/// Our own library, which comes before libclc's: what that lacks or has for other devices. From `builtins/*.cl`.
pub const BUILTINS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/builtins.spv"));
