//! Cache entries of kinds `spv` and `ir`: what clang made of a source, with the state of the files it included.

use super::cache::{self, Key};
use super::frontend::{Header, Language, REVISION};
use super::options::BuildOptions;
use super::toolchain::Toolchain;
use super::{parts, to_bytes, to_words};
use std::path::{Path, PathBuf};

const KIND: &str = "spv";
/// Entries with LLVM's IR of a source that was only read.
pub const READ: &str = "ir";

/// The key of a compilation: everything but the included files.
pub fn key(
    toolchain: &Toolchain,
    source: &str,
    headers: &[Header<'_>],
    options: &BuildOptions,
    language: &Language,
) -> Key {
    let mut key = Key::new(KIND);
    key.part(&REVISION.to_le_bytes());
    key.part(toolchain.identity.as_bytes());
    key.part(source.as_bytes());
    for arg in options.clang_args(language) {
        key.part(arg.as_bytes());
    }
    key.part(&[
        u8::from(options.kernel_arg_info),
        u8::from(options.whole_program),
    ]);
    if options
        .include_dirs
        .iter()
        .any(|d| Path::new(d).is_relative())
        || source.contains("include")
    {
        key.part(
            std::env::current_dir()
                .unwrap_or_default()
                .as_os_str()
                .as_encoded_bytes(),
        );
    }
    for header in headers {
        key.part(header.name.as_bytes())
            .part(header.text.as_bytes());
    }
    key
}

/// The words and the log, if the entry is there and no included file has changed.
pub fn load(key: &Key) -> Option<(Vec<u32>, String)> {
    let (words, log) = load_as(KIND, key)?;
    Some((to_words(&words)?, log))
}

/// Makes the entry.
pub fn store(key: &Key, words: &[u32], log: &str, dependencies: &[PathBuf]) {
    store_as(KIND, key, &to_bytes(words), log, dependencies);
}

/// What the compiler made and said, if the entry is there and no included file has changed.
pub fn load_as(kind: &str, key: &Key) -> Option<(Vec<u8>, String)> {
    let payload = cache::load(kind, key)?;
    let mut rest = payload.as_slice();
    let (made, log) = (parts::take(&mut rest)?, parts::take(&mut rest)?);
    while !rest.is_empty() {
        let path = std::str::from_utf8(parts::take(&mut rest)?).ok()?;
        if hash_file(Path::new(path))? != parts::take(&mut rest)? {
            return None;
        }
    }
    Some((made.to_vec(), String::from_utf8(log.to_vec()).ok()?))
}

/// Makes the entry of a kind.
pub fn store_as(kind: &str, key: &Key, made: &[u8], log: &str, dependencies: &[PathBuf]) {
    let mut payload = Vec::new();
    parts::put(&mut payload, made);
    parts::put(&mut payload, log.as_bytes());
    for path in dependencies {
        let (Some(text), Some(hash)) = (path.to_str(), hash_file(path)) else {
            return;
        };
        parts::put(&mut payload, text.as_bytes());
        parts::put(&mut payload, &hash);
    }
    cache::store(kind, key, &payload);
}

fn hash_file(path: &Path) -> Option<[u8; 32]> {
    Some(*blake3::hash(&std::fs::read(path).ok()?).as_bytes())
}
