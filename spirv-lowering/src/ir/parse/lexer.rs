//! The words of textual KIR.

use crate::error::{LowerError, Result};

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    /// Letters, digits, `_`, `.`, `?` and a leading `-`.
    Word(String),
    /// A quoted string.
    Text(Vec<u8>),
    /// `x"..."`.
    Bytes(Vec<u8>),
    Mark(char),
    Arrow,
}

pub(super) struct Lexer<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) at: usize,
    pub(super) line: usize,
}

pub(super) fn error(line: usize, what: impl std::fmt::Display) -> LowerError {
    LowerError::invalid(format!("KIR text, line {line}: {what}"))
}

fn hex(byte: u8) -> Option<u8> {
    (byte as char).to_digit(16).map(|d| d as u8)
}

impl Lexer<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    pub(super) fn next(&mut self) -> Result<Option<(Token, usize)>> {
        loop {
            match self.peek() {
                None => return Ok(None),
                Some(b'\n') => {
                    self.line += 1;
                    self.at += 1;
                }
                Some(b' ' | b'\t' | b'\r') => self.at += 1,
                Some(b';') => {
                    while self.peek().is_some_and(|b| b != b'\n') {
                        self.at += 1;
                    }
                }
                Some(_) => break,
            }
        }
        let line = self.line;
        let token = match self.peek() {
            Some(b'"') => Token::Text(self.text()?),
            Some(b'x') if self.bytes.get(self.at + 1) == Some(&b'"') => {
                self.at += 1;
                Token::Bytes(self.byte_string()?)
            }
            Some(b'-') if self.bytes.get(self.at + 1) == Some(&b'>') => {
                self.at += 2;
                Token::Arrow
            }
            Some(b) if b == b'-' || b == b'_' || b.is_ascii_alphanumeric() => {
                let start = self.at;
                self.at += 1;
                while self.peek().is_some_and(|b| {
                    b == b'_' || b == b'.' || b == b'?' || b.is_ascii_alphanumeric()
                }) {
                    self.at += 1;
                }
                let word = &self.bytes[start..self.at];
                Token::Word(String::from_utf8_lossy(word).into_owned())
            }
            Some(b @ (b'(' | b')' | b'{' | b'}' | b'[' | b']' | b',' | b':' | b'=' | b'@')) => {
                self.at += 1;
                Token::Mark(b as char)
            }
            Some(b) => return Err(error(line, format!("unexpected byte {b:#04x}"))),
            None => return Ok(None),
        };
        Ok(Some((token, line)))
    }

    fn text(&mut self) -> Result<Vec<u8>> {
        self.at += 1;
        let mut out = Vec::new();
        loop {
            match self.peek() {
                None | Some(b'\n') => return Err(error(self.line, "string without end")),
                Some(b'"') => {
                    self.at += 1;
                    return Ok(out);
                }
                Some(b'\\') => {
                    let digit = |i: usize| self.bytes.get(self.at + i).and_then(|&b| hex(b));
                    let (Some(a), Some(b)) = (digit(1), digit(2)) else {
                        return Err(error(self.line, "bad escape in string"));
                    };
                    out.push(a << 4 | b);
                    self.at += 3;
                }
                Some(b) => {
                    out.push(b);
                    self.at += 1;
                }
            }
        }
    }

    fn byte_string(&mut self) -> Result<Vec<u8>> {
        self.at += 1;
        let mut out = Vec::new();
        loop {
            if self.peek() == Some(b'"') {
                self.at += 1;
                return Ok(out);
            }
            let digit = |i: usize| self.bytes.get(self.at + i).and_then(|&b| hex(b));
            let (Some(a), Some(b)) = (digit(0), digit(1)) else {
                return Err(error(self.line, "bad byte string"));
            };
            out.push(a << 4 | b);
            self.at += 2;
        }
    }
}
