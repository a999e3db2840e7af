//! Cache entries of kinds `spv` and `ir`: what clang made of a source, with the state of the files around it.

use super::entries::{self, Key};
use super::sections;
use super::surroundings::Surroundings;
use crate::compile::clang::toolchain::Toolchain;
use crate::compile::clang::{FilesRead, Header, REVISION};
use crate::compile::language::Language;
use crate::compile::options::BuildOptions;

/// Entries with the SPIR-V of a source.
pub const COMPILED: &str = "spv";
/// Entries with LLVM's IR of a source that was only read.
pub const READ: &str = "ir";

/// A source, with all that decides what becomes of it but the files that it includes.
#[derive(Clone, Copy)]
pub struct Source<'a> {
    /// The compiler.
    pub toolchain: &'a Toolchain,
    /// Its text.
    pub text: &'a str,
    /// Those that the application gave.
    pub headers: &'a [Header<'a>],
    /// Those that it is compiled with.
    pub options: &'a BuildOptions,
    /// What the device offers.
    pub language: &'a Language,
}

impl Source<'_> {
    /// Names it.
    pub fn key(&self) -> Key {
        let mut key = Key::new(COMPILED);
        key.part(&REVISION.to_le_bytes());
        key.part(self.toolchain.identity.as_bytes());
        key.part(self.text.as_bytes());
        for arg in self.options.clang_args(self.language) {
            key.part(arg.as_bytes());
        }
        key.part(&[
            u8::from(self.options.kernel_arg_info),
            u8::from(self.options.whole_program),
        ]);
        for header in self.headers {
            key.part(header.name.as_bytes())
                .part(header.text.as_bytes());
        }
        key
    }

    /// Makes the entry of a kind, if it can be told when it will hold no longer.
    pub fn store(&self, kind: &str, key: &Key, made: &[u8], log: &str, read: &FilesRead) {
        let headers = self.headers.iter().map(|header| header.text);
        let defines = self.options.defines.iter().map(String::as_str);
        let texts: Vec<&str> = [self.text]
            .into_iter()
            .chain(headers)
            .chain(defines)
            .collect();
        let surroundings =
            Surroundings::now(&read.files, &self.options.include_dirs, &texts, read.begun);
        let Some(surroundings) = surroundings else {
            return;
        };
        let mut payload = Vec::new();
        sections::put(&mut payload, made);
        sections::put(&mut payload, log.as_bytes());
        surroundings.put(&mut payload);
        entries::store(kind, key, &payload);
    }
}

/// What the compiler made and said, if the entry is there and nothing around the source has changed.
pub fn load(kind: &str, key: &Key) -> Option<(Vec<u8>, String)> {
    let payload = entries::load(kind, key)?;
    let mut rest = payload.as_slice();
    let (made, log) = (sections::take(&mut rest)?, sections::take(&mut rest)?);
    if !Surroundings::take(&mut rest)?.hold() {
        return None;
    }
    Some((made.to_vec(), String::from_utf8(log.to_vec()).ok()?))
}
