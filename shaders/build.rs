//! Compiles the built-in library (`builtins/*.cl`) to SPIR-V. Nothing generated is checked in.

#[path = "build/builtins.rs"]
mod builtins;

use std::path::PathBuf;

type Error = Box<dyn std::error::Error>;

fn main() -> Result<(), Error> {
    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?);
    builtins::build(&out)
}
