//! What a compiler prints, up to a bound: one that has run wild would fill the application's memory.

/// Bytes of a module or an object at most. More than any program needs; who prints more does not stop.
const OUTPUT: usize = 256 << 20;
/// Bytes of diagnostics that are kept. What comes after them is left out.
const DIAGNOSTICS: usize = 16 << 20;

/// What has come through a pipe.
#[derive(Debug)]
pub struct Printed {
    bytes: Vec<u8>,
    most: usize,
    more: bool,
    /// What is cut off is worth nothing.
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

    /// Of standard output.
    pub fn output() -> Self {
        Self::up_to(OUTPUT, true)
    }

    /// Of standard error.
    pub fn diagnostics() -> Self {
        Self::up_to(DIAGNOSTICS, false)
    }

    /// More has come.
    pub fn add(&mut self, bytes: &[u8]) {
        let room = self.most - self.bytes.len();
        self.more |= bytes.len() > room;
        self.bytes
            .extend(bytes.get(..room).unwrap_or(bytes).iter().copied());
    }

    /// There was no room for some of it, and so the rest is worth nothing.
    pub fn is_too_much(&self) -> bool {
        self.more && self.whole
    }

    /// What there was room for.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The same, to keep.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// The same as text.
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
