//! The output of a compiler, up to a bound: unbounded output would exhaust the application's
//! memory.

/// The most bytes of a module or an object. More than any program needs; a compiler that prints
/// more does not stop.
const OUTPUT: usize = 256 << 20;
/// The most bytes of diagnostics that are kept.
const DIAGNOSTICS: usize = 16 << 20;

/// The bytes received through a pipe.
#[derive(Debug)]
pub struct Printed {
    bytes: Vec<u8>,
    most: usize,
    more: bool,
    /// Set if truncated output is useless.
    whole: bool,
}

impl Printed {
    fn up_to(most: usize, whole: bool) -> Self {
        Self {
            bytes: Vec::new(),
            most,
            more: false,
            whole,
        }
    }

    /// Creates the buffer for standard output.
    pub fn output() -> Self {
        Self::up_to(OUTPUT, true)
    }

    /// Creates the buffer for standard error.
    pub fn diagnostics() -> Self {
        Self::up_to(DIAGNOSTICS, false)
    }

    /// Appends received bytes.
    pub fn add(&mut self, bytes: &[u8]) {
        let room = self.most - self.bytes.len();
        self.more |= bytes.len() > room;
        self.bytes
            .extend(bytes.get(..room).unwrap_or(bytes).iter().copied());
    }

    /// Returns true if output was cut off that is useless in part.
    pub fn is_too_much(&self) -> bool {
        self.more && self.whole
    }

    /// Returns the bytes received, up to the bound.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Converts the buffer to its bytes.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Converts the buffer to text.
    pub fn into_text(self) -> String {
        let mut text = String::from_utf8_lossy(self.bytes()).into_owned();
        if self.more {
            text += "\n(further messages of the compiler were left out)\n";
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_there_is_no_room_for_is_left_out() {
        let mut printed = Printed::up_to(5, false);
        for part in [&b"abc"[..], b"", b"de", b"f", b"g"] {
            printed.add(part);
            assert!(!printed.is_too_much());
        }
        assert!(printed.into_text().starts_with("abcde\n("));
        let mut printed = Printed::up_to(4, true);
        printed.add(b"abcd");
        assert!(!printed.is_too_much());
        printed.add(b"ef");
        assert!(printed.is_too_much());
        assert_eq!(printed.into_bytes(), b"abcd");
    }
}
