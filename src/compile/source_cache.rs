//! Cache entries of kind `spv`: what clang made of a source, with the state of the files it included.

use super::cache::{self, Key};
use super::frontend::{Header, Language, REVISION};
use super::options::BuildOptions;
use super::toolchain::Toolchain;
use super::{to_bytes, to_words};
use std::path::{Path, PathBuf};

const KIND: &str = "spv";

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
    let payload = cache::load(KIND, key)?;
    let mut rest = payload.as_slice();
    let count = u32::from_le_bytes(*take(&mut rest)?);
    for _ in 0..count {
        let path = String::from_utf8(take_bytes(&mut rest)?.to_vec()).ok()?;
        let hash: &[u8; 32] = take(&mut rest)?;
        if hash_file(Path::new(&path))? != *hash {
            return None;
        }
    }
    let log = String::from_utf8(take_bytes(&mut rest)?.to_vec()).ok()?;
    Some((to_words(rest)?, log))
}

/// Makes the entry.
pub fn store(key: &Key, words: &[u32], log: &str, dependencies: &[PathBuf]) {
    let mut payload = Vec::new();
    payload.extend_from_slice(&(dependencies.len() as u32).to_le_bytes());
    for path in dependencies {
        let (Some(text), Some(hash)) = (path.to_str(), hash_file(path)) else {
            return;
        };
        put_bytes(&mut payload, text.as_bytes());
        payload.extend_from_slice(&hash);
    }
    put_bytes(&mut payload, log.as_bytes());
    payload.extend_from_slice(&to_bytes(words));
    cache::store(KIND, key, &payload);
}

fn hash_file(path: &Path) -> Option<[u8; 32]> {
    Some(*blake3::hash(&std::fs::read(path).ok()?).as_bytes())
}

fn take<'a, const N: usize>(rest: &mut &'a [u8]) -> Option<&'a [u8; N]> {
    let (head, tail) = rest.split_first_chunk::<N>()?;
    *rest = tail;
    Some(head)
}

fn take_bytes<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = u32::from_le_bytes(*take(rest)?) as usize;
    let (head, tail) = rest.split_at_checked(length)?;
    *rest = tail;
    Some(head)
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    out.extend_from_slice(bytes);
}
