//! Validates modules. Nothing reads a module of an application before it has passed here.

pub mod capabilities;

mod alias_hints;
mod float_controls;
mod repairs;
mod stand_ins;

use super::edit::ModuleEdit;
use crate::quirks::{Quirk, Quirks, Vendor};
use pumice_spirv_tools::TargetEnv;
use spirv_lowering::error::LowerError;
use spirv_lowering::{Program, ReadOptions};

/// Validates a SPIR-V module by the rules of SPIR-V itself (not those of an environment), and
/// returns the words to be read from now on: exactly those that were validated.
///
/// Harmless errors of compilers are repaired in them, which are rows of the table of quirks
/// ([`Vendor::Producer`]): capabilities that are not declared (`float_controls`), hints where the
/// validator allows none (`alias_hints`), and, if the module is not valid even so, all others
/// (`repairs`). The validator sees substitutes of instructions that it does not know (`stand_ins`).
///
/// The reader goes first, because SPIRV-Tools ends the process on some of the input that it
/// refuses. A module that the reader does not support is not validated, since no build of it
/// succeeds except with other values of constants, and then the reader checks it again.
///
/// # Errors
///
/// Returns the reason for the build log.
pub fn checked(words: &[u32]) -> Result<Vec<u32>, String> {
    match Program::read(words, &ReadOptions::default()) {
        Ok(_) | Err(LowerError::Undefined { .. }) => {}
        Err(error @ LowerError::InvalidInput { .. }) => {
            let text = error.to_string();
            let what = text.strip_prefix("invalid SPIR-V").unwrap_or(&text);
            return Err(what.trim_start_matches([':', ' ']).to_owned());
        }
        Err(LowerError::Unsupported { .. } | LowerError::Internal { .. }) => {
            return Ok(words.to_vec())
        }
    }
    let quirks = Quirks::of(Vendor::Producer, [0; 3]);
    valid(words, quirks)
}

/// Returns the module without what is wrong by some quirks, if it is valid then.
fn valid(words: &[u32], quirks: Quirks) -> Result<Vec<u32>, String> {
    let harmless = harmless(words, quirks).unwrap_or_else(|| words.to_vec());
    let Err(error) = validated(&harmless, quirks) else {
        return Ok(harmless);
    };
    let repaired = repairs::repaired(&harmless, quirks).filter(|repaired| *repaired != harmless);
    match repaired {
        Some(repaired) if validated(&repaired, quirks).is_ok() => Ok(repaired),
        _ => Err(error),
    }
}

/// Returns the module with its capabilities declared, and without hints, or `None` if it is
/// truncated.
fn harmless(words: &[u32], quirks: Quirks) -> Option<Vec<u32>> {
    let mut edit = ModuleEdit::of(words)?;
    if quirks.has(Quirk::UndeclaredModes) {
        float_controls::declare(&mut edit);
    }
    if quirks.has(Quirk::AliasHints) {
        alias_hints::remove(&mut edit)?;
    }
    Some(edit.words())
}

fn validated(words: &[u32], quirks: Quirks) -> Result<(), String> {
    let shown = stand_ins::replaced(words, quirks);
    let shown = shown.as_deref().unwrap_or(words);
    pumice_spirv_tools::validate(TargetEnv::Universal_1_6, shown)
}

/// Validates lowered code by the rules of Vulkan 1.2, with local-size constants unchanged. An error
/// holds the reason.
pub fn validate_vulkan(words: &[u32]) -> Result<(), String> {
    pumice_spirv_tools::validate(TargetEnv::Vulkan_1_2, words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quirks::table;
    use std::path::Path;

    /// Each row of the table about compilers of modules has a module that such a compiler wrote. It
    /// is valid by all rows, and not without that one.
    #[test]
    fn each_row_makes_a_sample_valid() {
        let all = Quirks::of(Vendor::Producer, [0; 3]);
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/compile/check/samples");
        let rows: Vec<_> = table().filter(|row| all.has(row.quirk)).collect();
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), rows.len());
        for row in rows {
            let path = folder.join(format!("{}.spvasm", row.quirk.name()));
            let text = std::fs::read_to_string(path).unwrap();
            let version = match text.split_whitespace().nth(2) {
                Some("1.0") => TargetEnv::Universal_1_0,
                Some("1.1") => TargetEnv::Universal_1_1,
                _ => TargetEnv::Universal_1_4,
            };
            let words = pumice_spirv_tools::assemble(version, &text).unwrap();
            valid(&words, all).unwrap_or_else(|error| panic!("{}: {error}", row.quirk.name()));
            assert!(
                valid(&words, all.without(row.quirk)).is_err(),
                "{}",
                row.quirk.name()
            );
            let program = Program::read(&checked(&words).unwrap(), &ReadOptions::default());
            assert!(program.is_ok(), "{}: {program:?}", row.quirk.name());
        }
    }
}
