//! SPIR-V as bytes and as words, and the failure of a build step.

use spirv_lowering::encode::bytes_to_words;
pub use spirv_lowering::encode::words_to_bytes as to_bytes;
use std::sync::Arc;

/// A SPIR-V module, shared by the programs that it is linked into.
pub type SpirvModule = Arc<Vec<u32>>;

/// A failed build step, with the text of the build log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildFailure(pub String);

/// Returns the SPIR-V words of a byte string, in either byte order, or `None` if it is no SPIR-V.
pub fn to_words(bytes: &[u8]) -> Option<Vec<u32>> {
    const MAGIC: u32 = 0x0723_0203;
    if bytes.len() < 20 || bytes.len() % 4 != 0 {
        return None;
    }
    let mut words = bytes_to_words(bytes);
    match words[0] {
        MAGIC => {}
        first if first.swap_bytes() == MAGIC => {
            words.iter_mut().for_each(|word| *word = word.swap_bytes());
        }
        _ => return None,
    }
    Some(words)
}
