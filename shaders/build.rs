//! Compiles the built-in library (`builtins/*.cl`) and the utility shaders (`util/*.wgsl`) to SPIR-V. Nothing
//! generated is checked in.

#[path = "build/builtins.rs"]
mod builtins;
#[path = "build/util.rs"]
mod util;

use std::path::PathBuf;

type Error = Box<dyn std::error::Error>;

fn main() -> Result<(), Error> {
    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?);
    util::build(&out)?;
    builtins::build(&out)
}
