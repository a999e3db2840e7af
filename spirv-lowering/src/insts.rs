//! Walks the instructions of a SPIR-V module, and writes literal strings. It handles the framing
//! alone; the words must be in the host's byte order.

use spirv::Op;

/// The words before the first instruction.
pub const HEADER_WORDS: usize = 5;

/// The words of one instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The number of its first word in the module.
    pub at: usize,
    /// Its words, the first of which holds opcode and length.
    pub words: &'a [u32],
}

impl<'a> Frame<'a> {
    /// Returns the opcode, if it is known.
    pub fn op(&self) -> Option<Op> {
        Op::from_u32(self.words.first()? & 0xffff)
    }
    /// Returns everything after the first word.
    pub fn operands(&self) -> &'a [u32] {
        self.words.get(1..).unwrap_or(&[])
    }
    /// Returns the number of the word after the instruction.
    pub fn end(&self) -> usize {
        self.at + self.words.len()
    }
}

/// Returns the words of the instruction at word `at`, or `None` if there is none, its length is
/// zero, or it goes past the end.
pub fn frame(words: &[u32], at: usize) -> Option<&[u32]> {
    let length = (words.get(at)? >> 16) as usize;
    words
        .get(at..at.checked_add(length)?)
        .filter(|inst| !inst.is_empty())
}

/// Returns the instructions after the header. A last item of `None` says that the words from there
/// on are no instructions.
pub fn insts(words: &[u32]) -> impl Iterator<Item = Option<Frame<'_>>> {
    let mut at = HEADER_WORDS;
    std::iter::from_fn(move || {
        if at >= words.len() {
            return None;
        }
        let inst = frame(words, at).map(|words| Frame { at, words });
        at = inst.map_or(words.len(), |inst| inst.end());
        Some(inst)
    })
}

/// Encodes a literal string: its bytes, four to a word, with at least one zero after them.
pub fn string_words(text: &[u8]) -> Vec<u32> {
    let byte = |at: usize| u32::from(text.get(at).copied().unwrap_or(0));
    let word = |at: usize| byte(at) | byte(at + 1) << 8 | byte(at + 2) << 16 | byte(at + 3) << 24;
    (0..text.len() / 4 + 1)
        .map(|number| word(number * 4))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: [u32; 5] = [0x0723_0203, 0x1_0000, 0, 1, 0];

    #[test]
    fn walks_to_the_end_or_to_what_is_none() {
        let module = [&HEADER[..], &[1 << 16, 3 << 16 | 5, 7, 8]].concat();
        let all: Vec<_> = insts(&module).collect();
        let [Some(nop), Some(name)] = all[..] else {
            panic!("{all:?}")
        };
        assert_eq!(
            (nop.op(), nop.operands(), nop.end()),
            (Some(Op::Nop), &[][..], 6)
        );
        assert_eq!(
            (name.op(), name.operands(), name.at),
            (Some(Op::Name), &[7, 8][..], 6)
        );
        let short: Vec<_> = insts(&module[..8]).collect();
        assert_eq!(short, [Some(nop), None]);
        let lengthless = [&HEADER[..], &[5, 1 << 16]].concat();
        assert_eq!(insts(&lengthless).collect::<Vec<_>>(), [None]);
        assert_eq!(insts(&[1, 2]).count(), 0);
    }

    #[test]
    fn strings_end_with_a_zero() {
        assert_eq!(string_words(b""), [0]);
        assert_eq!(string_words(b"abc"), [0x0063_6261]);
        assert_eq!(string_words(b"abcde"), [0x6463_6261, 0x65]);
        assert_eq!(string_words(b"abcd"), [0x6463_6261, 0]);
    }
}
