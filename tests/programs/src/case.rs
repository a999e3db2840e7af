//! A case: a program as text, what it is run on, and what it has to leave behind. Kept in files, and given to the process
//! that runs it, in one form: OpenCL C with a head of comments.

use crate::ast::{Arg, ImageData, Program, Range};
use crate::interpret::Results;
use crate::print;
use crate::types::Scalar;
use std::fmt::Write;

/// The expected results in sub-groups of so many work-items; 0: of any size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expected {
    pub sub_group: usize,
    pub buffers: Vec<Vec<Option<u8>>>,
    pub lines: Vec<String>,
}

/// An argument of the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CaseArg {
    Buffer(Vec<u8>),
    Local(usize),
    Value(Vec<u8>),
    Image(ImageData),
    Pipe(usize),
}

/// A case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Case {
    pub options: String,
    pub range: Range,
    pub args: Vec<CaseArg>,
    /// The size of sub-groups is asked for, and matters.
    pub sub_groups: bool,
    /// The size that is asked for; 0: none. A device without it is passed over.
    pub sub_group_size: usize,
    pub expected: Vec<Expected>,
    pub source: String,
}

impl Expected {
    /// Returns the results of the interpreter.
    pub fn new(sub_group: usize, results: Results) -> Self {
        Self {
            sub_group,
            buffers: results.buffers,
            lines: results.lines,
        }
    }

    /// How other results differ from this.
    pub fn difference(&self, buffers: &[Vec<u8>], lines: &[String]) -> Option<String> {
        for (number, (ours, theirs)) in self.buffers.iter().zip(buffers).enumerate() {
            let differs = |&i: &usize| ours[i].is_some_and(|byte| theirs.get(i) != Some(&byte));
            let mut wrong = (0..ours.len()).filter(differs);
            if let Some(at) = wrong.next() {
                let at = at & !7;
                let word = |get: &dyn Fn(usize) -> u8| {
                    let end = (at + 8).min(ours.len());
                    (at..end)
                        .rev()
                        .fold(0, |word, i| word << 8 | u64::from(get(i)))
                };
                let expected = word(&|i| ours[i].unwrap_or(0));
                let actual = word(&|i| theirs.get(i).copied().unwrap_or(0));
                return Some(format!(
                    "buffer {number}, byte {at}: {actual:#x}, expected {expected:#x}; {} more bytes",
                    wrong.count()
                ));
            }
        }
        if self.lines != lines {
            let missing = self.lines.iter().find(|line| !lines.contains(line));
            let extra = lines.iter().find(|line| !self.lines.contains(line));
            return Some(format!(
                "{} lines printed, expected {}; missing {missing:?}, not expected {extra:?}",
                lines.len(),
                self.lines.len()
            ));
        }
        None
    }
}

/// The types of image channels.
pub const CHANNELS: [Scalar; 7] = [
    Scalar::Char,
    Scalar::Uchar,
    Scalar::Short,
    Scalar::Ushort,
    Scalar::Int,
    Scalar::Uint,
    Scalar::Float,
];

/// Bytes as hexadecimal digits.
pub fn hex(bytes: impl Iterator<Item = Option<u8>>) -> String {
    let mut text = String::new();
    for byte in bytes {
        match byte {
            Some(byte) => _ = write!(text, "{byte:02x}"),
            None => text.push_str("??"),
        }
    }
    text
}

/// The bytes of hexadecimal digits.
pub fn from_hex(text: &str) -> Option<Vec<Option<u8>>> {
    let digit = |d: u8| char::from(d).to_digit(16).map(|d| d as u8);
    let byte = |pair: &[u8]| match pair {
        b"??" => Some(None),
        [a, b] => Some(Some(digit(*a)? << 4 | digit(*b)?)),
        _ => None,
    };
    text.as_bytes().chunks(2).map(byte).collect()
}

fn bytes(text: &str) -> Option<Vec<u8>> {
    from_hex(text)?.into_iter().collect()
}

impl Case {
    /// Returns the case of a program, without expected results.
    pub fn new(program: &Program) -> Self {
        let arg = |arg: &Arg| match arg {
            Arg::Buffer(bytes) => CaseArg::Buffer(bytes.clone()),
            Arg::Local(size) => CaseArg::Local(*size),
            Arg::Image(image) => CaseArg::Image(image.clone()),
            Arg::Pipe(count) => CaseArg::Pipe(*count),
            Arg::Value(scalar, bits) => {
                CaseArg::Value(bits.to_le_bytes()[..scalar.bytes()].to_vec())
            }
        };
        Self {
            options: program.options.clone(),
            range: program.range.clone(),
            args: program.args.iter().map(arg).collect(),
            sub_groups: program.sub_groups,
            sub_group_size: program.sub_group_size,
            expected: Vec::new(),
            source: print::source(program),
        }
    }

    /// As text.
    pub fn text(&self) -> String {
        let mut out = format!(
            "//! options {}\n//! range {}",
            self.options, self.range.dims
        );
        let Range {
            global,
            local,
            offset,
            ..
        } = self.range;
        for number in [global, local, offset].concat() {
            let _ = write!(out, " {number}");
        }
        out.push('\n');
        if self.sub_groups {
            let _ = writeln!(out, "//! sub-groups {}", self.sub_group_size);
        }
        for arg in &self.args {
            let plain = |bytes: &Vec<u8>| hex(bytes.iter().map(|&byte| Some(byte)));
            let _ = match arg {
                CaseArg::Buffer(bytes) => writeln!(out, "//! buffer {}", plain(bytes)),
                CaseArg::Value(bytes) => writeln!(out, "//! value {}", plain(bytes)),
                CaseArg::Local(size) => writeln!(out, "//! local {size}"),
                CaseArg::Pipe(count) => writeln!(out, "//! pipe {count}"),
                CaseArg::Image(ImageData {
                    channel,
                    channels,
                    width,
                    height,
                    bytes,
                }) => writeln!(
                    out,
                    "//! image {} {channels} {width} {height} {}",
                    channel.name(),
                    plain(bytes)
                ),
            };
        }
        for expected in &self.expected {
            let _ = writeln!(out, "//! expect {}", expected.sub_group);
            for buffer in &expected.buffers {
                let _ = writeln!(out, "//! result {}", hex(buffer.iter().copied()));
            }
            for line in &expected.lines {
                let _ = writeln!(out, "//! line {line}");
            }
        }
        out + &self.source
    }

    /// From text.
    pub fn parse(text: &str) -> Option<Self> {
        let mut case = Self {
            options: String::new(),
            range: Range {
                dims: 1,
                global: [1; 3],
                local: [1; 3],
                offset: [0; 3],
            },
            args: Vec::new(),
            sub_groups: false,
            sub_group_size: 0,
            expected: Vec::new(),
            source: String::new(),
        };
        for line in text.lines() {
            let Some(head) = line.strip_prefix("//! ") else {
                case.source.push_str(line);
                case.source.push('\n');
                continue;
            };
            let (word, rest) = head.split_once(' ').unwrap_or((head, ""));
            match word {
                "options" => case.options = rest.to_owned(),
                "range" => {
                    let numbers: Vec<u64> =
                        rest.split(' ').filter_map(|n| n.parse().ok()).collect();
                    let three = |at: usize| numbers.get(at..at + 3)?.try_into().ok();
                    let dims = *numbers.first()? as usize;
                    let (global, local, offset) = (three(1)?, three(4)?, three(7)?);
                    case.range = Range {
                        dims,
                        global,
                        local,
                        offset,
                    };
                }
                "sub-groups" => {
                    case.sub_groups = true;
                    case.sub_group_size = rest.parse().ok()?;
                }
                "image" => {
                    let words: Vec<&str> = rest.split(' ').collect();
                    let &[name, channels, width, height, data] = words.as_slice() else {
                        return None;
                    };
                    case.args.push(CaseArg::Image(ImageData {
                        channel: CHANNELS
                            .into_iter()
                            .find(|channel| channel.name() == name)?,
                        channels: channels.parse().ok()?,
                        width: width.parse().ok()?,
                        height: height.parse().ok()?,
                        bytes: bytes(data)?,
                    }));
                }
                "buffer" => case.args.push(CaseArg::Buffer(bytes(rest)?)),
                "value" => case.args.push(CaseArg::Value(bytes(rest)?)),
                "pipe" => case.args.push(CaseArg::Pipe(rest.parse().ok()?)),
                "local" => case.args.push(CaseArg::Local(rest.parse().ok()?)),
                "expect" => case.expected.push(Expected {
                    sub_group: rest.parse().ok()?,
                    buffers: Vec::new(),
                    lines: Vec::new(),
                }),
                "result" => case.expected.last_mut()?.buffers.push(from_hex(rest)?),
                "line" => case.expected.last_mut()?.lines.push(rest.to_owned()),
                // What is said of it.
                _ => {}
            }
        }
        Some(case)
    }
}
