//! Walks the words of a SPIR-V module: header, byte order, instruction framing, literal strings.

use crate::error::{LowerError, Result};
use crate::insts::frame;
use spirv::Op;

/// Largest id bound accepted: the universal limit of the SPIR-V specification.
const MAX_BOUND: u32 = 0x40_0000;

/// One instruction.
#[derive(Clone, Copy)]
pub(super) struct Instruction<'a> {
    /// Opcode as in the file.
    pub code: u16,
    /// The opcode, if this crate's grammar knows it.
    pub op: Option<Op>,
    /// Everything after the first word.
    pub words: &'a [u32],
    /// Index of the first word.
    pub at: usize,
}

impl Instruction<'_> {
    /// Returns operand word number `i`.
    pub fn word(&self, i: usize) -> Result<u32> {
        self.words
            .get(i)
            .copied()
            .ok_or_else(|| LowerError::invalid(format!("operand {i} is missing")))
    }
    /// Returns the operand words from number `i` on.
    pub fn rest(&self, i: usize) -> &[u32] {
        self.words.get(i..).unwrap_or(&[])
    }
    /// Returns the literal string that starts at operand word `i`, and the number of the word after
    /// it.
    pub fn string(&self, i: usize) -> Result<(String, usize)> {
        let bytes = string_bytes(self.rest(i))
            .ok_or_else(|| LowerError::invalid("a literal string does not end"))?;
        Ok((
            String::from_utf8_lossy(&bytes).into_owned(),
            i + bytes.len() / 4 + 1,
        ))
    }
    /// Returns the instruction's name for messages.
    pub fn name(&self) -> String {
        match self.op {
            Some(op) => format!("Op{op:?}"),
            None => format!("opcode {}", self.code),
        }
    }
    /// Prepends the name of the instruction to the reason of an error.
    pub fn blame(&self, error: LowerError) -> LowerError {
        let tag = |what: String| format!("{} at word {}: {what}", self.name(), self.at);
        match error {
            LowerError::InvalidInput { function, what } => LowerError::InvalidInput {
                function,
                what: tag(what),
            },
            LowerError::Unsupported { function, what } => LowerError::Unsupported {
                function,
                what: tag(what),
            },
            other => other,
        }
    }
}

/// Returns the bytes of a literal string, without its terminating zero.
fn string_bytes(words: &[u32]) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    for word in words {
        for byte in word.to_le_bytes() {
            if byte == 0 {
                return Some(bytes);
            }
            bytes.push(byte);
        }
    }
    None
}

/// Returns the instruction at word `at`.
pub(super) fn inst_at(words: &[u32], at: usize) -> Result<Instruction<'_>> {
    let first = *words
        .get(at)
        .ok_or_else(|| LowerError::invalid(format!("the module ends before word {at}")))?;
    let code = first as u16;
    let body = frame(words, at).and_then(|inst| inst.get(1..));
    let body = body.ok_or_else(|| {
        let what = match first >> 16 {
            0 => "has length zero",
            _ => "goes past the end of the module",
        };
        LowerError::invalid(format!(
            "the instruction at word {at} (opcode {code}) {what}"
        ))
    })?;
    Ok(Instruction {
        code,
        op: Op::from_u32(u32::from(code)),
        words: body,
        at,
    })
}

/// Checks the header. Returns the words in host order and the id bound.
pub(super) fn check_header(words: &[u32]) -> Result<(Vec<u32>, u32)> {
    let magic = words.first().copied().unwrap_or(0);
    let words = if magic == spirv::MAGIC_NUMBER {
        words.to_vec()
    } else if magic == spirv::MAGIC_NUMBER.swap_bytes() {
        words.iter().map(|w| w.swap_bytes()).collect()
    } else {
        return Err(LowerError::invalid(
            "the first word is not SPIR-V's magic number",
        ));
    };
    let [_, version, _, bound, _, ..] = words[..] else {
        return Err(LowerError::invalid("the header is truncated"));
    };
    if !(0x1_0000..=0x1_06ff).contains(&version) {
        let (major, minor) = (version >> 16, version >> 8 & 0xff);
        return Err(LowerError::unsupported(format!(
            "SPIR-V version {major}.{minor}"
        )));
    }
    if bound > MAX_BOUND {
        return Err(LowerError::invalid(format!(
            "the id bound {bound} is above the limit of {MAX_BOUND}"
        )));
    }
    Ok((words, bound))
}
