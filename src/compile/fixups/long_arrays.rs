//! Finds arrays of 2^32 elements or more: LLVM's SPIR-V target writes their length in 32 bits, and
//! silently drops the rest. Strides of structures that have such an array are wrong, too. The
//! module does not show it, but LLVM's IR has the type.

use rustc_hash::FxHashSet;
use spirv::Op;
use spirv_lowering::insts::insts;

/// Returns the length of an array in LLVM's textual IR that is too long.
pub fn in_ir(ir: &str) -> Option<u64> {
    // Quotes within strings are written as numbers.
    for text in ir.split('"').step_by(2) {
        for (at, _) in text.match_indices('[') {
            let rest = text.get(at + 1..).unwrap_or_default();
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            let (length, after) = rest.split_at(digits);
            if !after.starts_with(" x ") {
                continue;
            }
            if let Ok(length) = length.parse::<u64>() {
                if u32::try_from(length).is_err() {
                    return Some(length);
                }
            }
        }
    }
    None
}

/// Returns true if sources probably have such an array: between brackets there is a 64-bit
/// constant, or the name of a macro or an enumerator that has one. It does not find a length made
/// of `sizeof` or of a cast alone, nor one that a macro with parameters puts between brackets.
pub fn likely<'a>(texts: impl Iterator<Item = &'a str> + Clone) -> bool {
    let is_constant = |token: Token<'_>| matches!(token, Token::Word(word) if is_long(word));
    if !texts.clone().any(|text| tokens(text).any(is_constant)) {
        return false;
    }
    let mut names = FxHashSet::default();
    // Once more for what is defined by something that comes later.
    for text in texts.clone().chain(texts.clone()) {
        note_names(text, &mut names);
    }
    texts
        .into_iter()
        .any(|text| has_between_brackets(text, &names))
}

/// A token of a source.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Token<'a> {
    /// A name, a keyword or a number.
    Word(&'a str),
    /// The end of a line that is not continued.
    End,
    /// Anything else that is no blank.
    Sign(char),
}

fn tokens(text: &str) -> impl Iterator<Item = Token<'_>> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut rest = text;
    let mut continued = false;
    std::iter::from_fn(move || loop {
        let first = rest.chars().next()?;
        let length = match is_word(first) {
            true => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
            false => first.len_utf8(),
        };
        let (token, after) = rest.split_at(length);
        rest = after;
        let goes_on = std::mem::replace(&mut continued, first == '\\');
        match first {
            '\n' if goes_on => {}
            '\n' => return Some(Token::End),
            // Between a backslash and the end of its line.
            _ if first.is_whitespace() => continued = goes_on,
            _ if is_word(first) => return Some(Token::Word(token)),
            _ => return Some(Token::Sign(first)),
        }
    })
}

/// Records the macros, enumerators and variables whose value is a constant of 64 bits, or one of
/// the names.
fn note_names<'a>(text: &'a str, names: &mut FxHashSet<&'a str>) {
    let (mut line_begins, mut directive) = (true, false);
    // What a directive defines, or what stands before `=`.
    let mut given: Option<&str> = None;
    let mut last: Option<&str> = None;
    for token in tokens(text) {
        match token {
            Token::End => {
                if directive {
                    given = None;
                }
                directive = false;
            }
            Token::Sign('#') if line_begins => (directive, given, last) = (true, None, None),
            Token::Word(word) => {
                if directive && given.is_none() && last == Some("define") {
                    given = Some(word);
                } else if is_long(word) || names.contains(word) {
                    names.extend(given);
                }
                last = Some(word);
            }
            Token::Sign('=') if !directive => {
                given = last.filter(|w| !w.starts_with(|c: char| c.is_ascii_digit()))
            }
            Token::Sign(',' | ';' | '{' | '}') if !directive => given = None,
            Token::Sign(_) => {}
        }
        line_begins = token == Token::End;
        if let Token::Sign(_) = token {
            last = None;
        }
    }
}

fn has_between_brackets(text: &str, names: &FxHashSet<&str>) -> bool {
    let mut depth = 0u32;
    tokens(text).any(|token| {
        match token {
            Token::Sign('[') => depth += 1,
            Token::Sign(']') => depth = depth.saturating_sub(1),
            Token::Word(word) => return depth > 0 && (is_long(word) || names.contains(word)),
            Token::End | Token::Sign(_) => {}
        }
        false
    })
}

/// Returns true for an integer constant of 64 bits.
fn is_long(token: &str) -> bool {
    if !token.starts_with(|c: char| c.is_ascii_digit()) {
        return false;
    }
    let number = token.trim_end_matches(['u', 'U', 'l', 'L']);
    let (digits, radix) = match number.get(..2) {
        Some("0x" | "0X") => (number.get(2..), 16),
        Some("0b" | "0B") => (number.get(2..), 2),
        _ => (Some(number), 10),
    };
    let Ok(value) = u64::from_str_radix(digits.unwrap_or_default(), radix) else {
        return false;
    };
    let suffix = token.get(number.len()..).unwrap_or_default();
    let signed = radix == 10 && suffix.is_empty() && i32::try_from(value).is_err();
    suffix.contains(['l', 'L']) || signed || u32::try_from(value).is_err()
}

/// Returns true if a module has array types.
pub fn has_arrays(words: &[u32]) -> bool {
    insts(words)
        .map_while(|inst| inst)
        .take_while(|inst| inst.op() != Some(Op::Function))
        .any(|inst| inst.op() == Some(Op::TypeArray))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_in_ir() {
        let long = "%s = type { [4294967312 x i8], i32 }";
        assert_eq!(in_ir(long), Some(4_294_967_312));
        let nested = "@a = global [3 x [4294967296 x <4 x float>]] undef\n";
        assert_eq!(in_ir(nested), Some(4_294_967_296));
        let short = "@a = global [4294967295 x i8] c\"[4294967312 x i8]\"\n%b = alloca [65536 x [65536 x i8]]";
        assert_eq!(in_ir(short), None);
        assert_eq!(
            in_ir("switch i32 %x, label %y [\n i32 1, label %z\n]"),
            None
        );
    }

    #[test]
    fn constants_of_64_bits() {
        for long in [
            "int x[1UL << 32];",
            "x[4294967312]",
            "x[0x100000000]",
            "x[3000000000*2]",
            "x[2][1l]",
            "#define N 0x100000000\nchar x[N];",
            "#define N \\\n (1UL << 33)\n#define M (N + 1)\nchar x[M];",
            "# define M (N + 1)\n#define N 1UL\nchar x[M];",
            "enum { A, N = 1UL << 33, B };\nchar x[B + N];",
        ] {
            assert!(likely([long].into_iter()), "{long}");
        }
        assert!(likely(["#define N (1UL << 32)", "char x[N];"].into_iter()));
        for short in [
            "x[1 << 31]",
            "x[0xffffffff]",
            "x[4294967295u]",
            "x[1.0e10]",
            "x[a1L]",
            "x[2147483647]",
            "x[0x1f]",
            "constant ulong k[80] = { 0x428a2f98d728ae22UL };",
            "p[get_global_id(0)] ^= 0x428a2f98d728ae22UL;",
            "#define INIT 0x6a09e667f3bcc908UL\nulong h[8]; h[0] = INIT;",
        ] {
            assert!(!likely([short].into_iter()), "{short}");
        }
    }

    #[test]
    fn arrays_in_modules() {
        let module = |op: u32| [0x0723_0203, 0x10400, 0, 9, 0, 4 << 16 | op, 1, 2, 3];
        assert!(has_arrays(&module(Op::TypeArray as u32)));
        assert!(!has_arrays(&module(Op::TypeInt as u32)));
    }
}
