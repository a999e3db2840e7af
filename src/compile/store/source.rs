//! Cache entries of kinds `spv` and `ir`: the results of clang for a source, with the state of the
//! files around it.

use super::entries::{self, CacheKey};
use super::sections;
use super::surroundings::Surroundings;
use crate::compile::clang::{ClSource, FilesRead, REVISION};

/// The kind of entries with the SPIR-V of a source.
pub const COMPILED: &str = "spv";
/// The kind of entries with LLVM's IR of a source that was only read.
pub const READ: &str = "ir";

/// Returns the cache key of a source: a digest of the compiler, the options, the text and the headers.
pub fn key(source: &ClSource<'_>) -> CacheKey {
    let mut key = CacheKey::new(COMPILED);
    key.part(&REVISION.to_le_bytes());
    key.part(source.toolchain.identity.as_bytes());
    for quirk in source.toolchain.quirks.names() {
        key.part(quirk.as_bytes());
    }
    key.part(source.text.as_bytes());
    key.part(&[source.options.language_version() as u8]);
    key.part(&source.language.identity());
    for arg in source.options.device_independent_args() {
        key.part(arg.as_bytes());
    }
    key.part(&[
        u8::from(source.options.kernel_arg_info),
        u8::from(source.options.whole_program),
    ]);
    for header in source.headers {
        key.part(header.name.as_bytes())
            .part(header.text.as_bytes());
    }
    key
}

/// Writes the entry of a kind, if its dependencies can be recorded.
pub fn store(
    source: &ClSource<'_>,
    kind: &str,
    key: &CacheKey,
    made: &[u8],
    log: &str,
    read: &FilesRead,
) {
    let headers = source.headers.iter().map(|header| header.text);
    let defines = source.options.defines.iter().map(String::as_str);
    let texts: Vec<&str> = [source.text]
        .into_iter()
        .chain(headers)
        .chain(defines)
        .collect();
    let directories = &source.options.include_dirs;
    let Some(surroundings) = Surroundings::now(&read.files, directories, &texts, read.begun) else {
        return;
    };
    let mut payload = Vec::new();
    sections::put(&mut payload, made);
    sections::put(&mut payload, log.as_bytes());
    surroundings.put(&mut payload);
    entries::store(kind, key, &payload);
}

/// Reads the result and the messages of the compiler, if the entry exists and nothing around the
/// source has changed.
pub fn load(kind: &str, key: &CacheKey) -> Option<(Vec<u8>, String)> {
    let payload = entries::load(kind, key)?;
    let mut rest = payload.as_slice();
    let (made, log) = (sections::take(&mut rest)?, sections::take(&mut rest)?);
    if !Surroundings::take(&mut rest)?.hold() {
        return None;
    }
    Some((made.to_vec(), String::from_utf8(log.to_vec()).ok()?))
}
