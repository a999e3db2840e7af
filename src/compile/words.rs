//! SPIR-V as bytes and as words, and how a step of a build fails.

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
    let (words, _) = bytes.as_chunks::<4>();
    let words = words.iter().copied().map(u32::from_le_bytes);
    match u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) {
        MAGIC => Some(words.collect()),
        first if first.swap_bytes() == MAGIC => Some(words.map(u32::swap_bytes).collect()),
        _ => None,
    }
}

/// The bytes of words, little-endian.
pub fn to_bytes(words: &[u32]) -> Vec<u8> {
    let bytes: Vec<[u8; 4]> = words.iter().map(|word| word.to_le_bytes()).collect();
    bytes.into_flattened()
}
