//! SPIR-V as bytes and as words, and how a step of a build fails.

use spirv_lowering::encode::bytes_to_words;
pub use spirv_lowering::encode::words_to_bytes as to_bytes;
use std::sync::Arc;

/// A SPIR-V module, shared by the programs that it is linked into.
pub type SpirvModule = Arc<Vec<u32>>;

/// A step that failed: what the build log says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildFailure(pub String);

/// SPIR-V words of a byte string, in either byte order. None: not SPIR-V.
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
