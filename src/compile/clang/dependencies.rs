//! The files that a compilation read, as clang reports them: a make rule on its output, before or
//! after the result.

use crate::util::files;
use std::path::PathBuf;

/// The target of the rule.
const NAME: &str = "pumice-dependencies";

/// The arguments that request the rule, system headers included.
pub const ARGUMENTS: [&str; 5] = ["-dependency-file", "-", "-sys-header-deps", "-MT", NAME];

/// Removes the rule from the output. Returns `None` if there is none, or a name in it cannot be
/// parsed.
pub fn taken_from(output: &mut Vec<u8>) -> Option<Vec<PathBuf>> {
    let mark = format!("{NAME}:").into_bytes();
    let at = if output.starts_with(&mark) {
        0
    } else {
        output.windows(mark.len()).rposition(|part| part == mark)?
    };
    let mut files = Vec::new();
    let mut name = Vec::new();
    let mut understood = true;
    let mut rest = output.get(at + mark.len()..)?.iter().copied();
    let mut length = mark.len();
    while let Some(byte) = rest.next() {
        length += 1;
        let mut next = || {
            length += 1;
            rest.next()
        };
        match byte {
            b'\n' => break,
            b' ' => files.push(std::mem::take(&mut name)),
            b'\\' => match next() {
                // The rule goes on in the next line.
                Some(b'\n') => {}
                Some(escaped @ (b' ' | b'#')) => name.push(escaped),
                // Stands for itself, as clang writes it between the parts of a path.
                Some(other) if cfg!(windows) => name.extend([b'\\', other]),
                _ => understood = false,
            },
            b'$' => match next() {
                Some(b'$') => name.push(b'$'),
                _ => understood = false,
            },
            byte => name.push(byte),
        }
    }
    files.push(name);
    output.drain(at..at + length);
    let files = files.into_iter().filter(|name| !name.is_empty());
    let files: Option<Vec<_>> = files.map(|name| files::path_of(&name)).collect();
    files.filter(|_| understood)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_before_and_after() {
        let rule = "pumice-dependencies: /lib/base.h i/x.h \\\n  i/a\\ b\\#$$.h \\\n  last\n";
        let names = ["/lib/base.h", "i/x.h", "i/a b#$.h", "last"].map(PathBuf::from);
        for (before, after) in [("", "object\n"), ("object", ""), ("", "")] {
            let mut output = format!("{before}{rule}{after}").into_bytes();
            assert_eq!(taken_from(&mut output).as_deref(), Some(&names[..]));
            assert_eq!(output, format!("{before}{after}").into_bytes());
        }
        let mut output = b"object".to_vec();
        assert_eq!(taken_from(&mut output), None);
        assert_eq!(output, b"object");
        // Not understood, but taken out all the same.
        let mut output = b"objectpumice-dependencies: a\\b $x\n".to_vec();
        assert_eq!(taken_from(&mut output), None);
        assert_eq!(output, b"object");
    }
}
