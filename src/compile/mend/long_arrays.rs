//! Arrays of 2^32 elements or more: LLVM's SPIR-V target writes how many there are in 32 bits, and drops the rest without a word.
//! Strides of structures that have such an array are wrong by it, too. Nothing in the module tells, but LLVM's IR has the type.

use spirv::Op;
use spirv_lowering::insts::insts;

/// The length of an array in LLVM's textual IR that is too long.
pub fn in_ir(ir: &str) -> Option<u64> {
    // Quotes within strings are written as numbers.
    for text in ir.split('"').step_by(2) {
        for (at, _) in text.match_indices('[') {
            let rest = text.get(at + 1..).unwrap_or_default();
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            let (length, behind) = rest.split_at(digits);
            if !behind.starts_with(" x ") {
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

/// Whether a source may well have such an array: it has a constant that is of 64 bits as it is written. One made of `sizeof` or
/// of a cast alone is not seen.
pub fn likely(source: &str) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    source
        .split(|c| !word(c))
        .filter(|token| token.starts_with(|c: char| c.is_ascii_digit()))
        .any(is_long)
}

/// An integer constant of 64 bits.
fn is_long(token: &str) -> bool {
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

/// A module has types of arrays.
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
            "1UL << 32",
            "x[4294967312]",
            "0x100000000",
            "3000000000*2",
            "1l",
        ] {
            assert!(likely(long), "{long}");
        }
        for short in [
            "1 << 31",
            "0xffffffff",
            "4294967295u",
            "1.0e10",
            "a1L",
            "2147483647",
            "0x1f",
        ] {
            assert!(!likely(short), "{short}");
        }
    }

    #[test]
    fn arrays_in_modules() {
        let module = |op: u32| [0x0723_0203, 0x10400, 0, 9, 0, 4 << 16 | op, 1, 2, 3];
        assert!(has_arrays(&module(Op::TypeArray as u32)));
        assert!(!has_arrays(&module(Op::TypeInt as u32)));
    }
}
