//! The files of `PUMICE_DUMP`: sources, SPIR-V, and lowered kernels of every build.
//!
//! A file is named by the hash of its contents, so a folder that has it has the build. Results of
//! the compile cache are written as well: a cached result whose file is missing is written, or made
//! again where its passes are wanted.

use super::words::to_bytes;
use crate::util::{config, files};
use spirv_lowering::Lowered;
use std::path::Path;

/// Returns the folder of dumps, if they are enabled.
pub fn dir() -> Option<&'static Path> {
    config::get().dump.as_deref()
}

/// Writes a file of the folder, unless it is there.
pub fn write(file: &str, bytes: &[u8]) {
    let Some(dir) = dir() else { return };
    let path = dir.join(file);
    if path.exists() {
        return;
    }
    let written = files::limited(|| {
        std::fs::create_dir_all(dir)?;
        std::fs::write(&path, bytes)
    });
    if let Err(error) = written {
        let path = path.display();
        crate::log!(Warn, "PUMICE_DUMP: cannot write {path}: {error}");
    }
}

/// Returns the start of a file name: the hash of the contents.
pub fn stem(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().as_str()[..16].to_owned()
}

/// Writes a source and its SPIR-V, named by the hash of the latter.
pub fn source(text: &str, words: &[u32]) {
    if dir().is_none() {
        return;
    }
    let bytes = to_bytes(words);
    let stem = stem(&bytes);
    write(&format!("{stem}.cl"), text.as_bytes());
    write(&format!("{stem}.spv"), &bytes);
}

/// Returns the contents of a lowered kernel's file, and the file's name.
fn kernel_file(lowered: &Lowered) -> (Vec<u8>, String) {
    let name = lowered.interface.name.replace('/', "_");
    let (bytes, kind) = match lowered.kir.is_empty() {
        true => (to_bytes(&lowered.words), "vk.spv"),
        false => (lowered.kir.clone().into_bytes(), "kir"),
    };
    let file = format!("{}.{name}.{kind}", stem(&bytes));
    (bytes, file)
}

/// Writes a lowered kernel and its interface.
pub fn kernel(lowered: &Lowered) {
    if dir().is_none() {
        return;
    }
    let (bytes, file) = kernel_file(lowered);
    let interface = Path::new(&file).with_extension("interface");
    write(&file, &bytes);
    let text = format!("{:#?}\n", lowered.interface);
    write(&interface.to_string_lossy(), text.as_bytes());
}

/// Returns true if the folder has the dump of a kernel, or dumps are not enabled.
pub fn has(lowered: &Lowered) -> bool {
    dir().is_none_or(|dir| dir.join(kernel_file(lowered).1).exists())
}
