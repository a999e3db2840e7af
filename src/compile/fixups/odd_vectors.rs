//! Lengthens vectors that LLVM's SPIR-V target cannot make of integers: those of 5 to 7 and of 9 to 15 elements.
//!
//! LLVM's passes make `bitcast i48 %a to <6 x i8>` of a byte of a `short3`. The target's legalizer appends elements to the
//! vector without end, until the memory is used up. A longer integer becomes a longer vector, of which the first elements
//! are taken.

use std::fmt::Write as _;

/// The widest integer that SPIR-V has.
const MOST_BITS: u32 = 64;

/// Returns LLVM's textual form with vectors that integers of at most 64 bits become in lengths that SPIR-V has.
pub fn lengthened(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 64);
    for line in text.split_inclusive('\n') {
        match in_steps(line) {
            Some(lines) => out += &lines,
            None => out += line,
        }
    }
    out
}

/// Returns the lines that replace a cast of an integer to a vector of an odd length, or `None` for other lines.
fn in_steps(line: &str) -> Option<String> {
    let (given, cast) = line.strip_prefix("  %")?.split_once(" = bitcast i")?;
    let (integer, result) = cast.split_once(" to <")?;
    let (bits, value) = integer.split_once(' ')?;
    let (vector, location) = result.trim_end().split_once('>')?;
    let (count, element) = vector.split_once(" x i")?;
    let [bits, count, element] = [bits, count, element].map(|number| number.parse::<u32>().ok());
    let (bits, count, element) = (bits?, count?, element?);
    let length = match count {
        5..=7 => 8,
        9..=15 => 16,
        _ => return None,
    };
    // Vectors of booleans are made in another way, of which the target knows none for integers.
    let long = length * element;
    if element == 1 || long > MOST_BITS || bits >= long {
        return None;
    }
    let name = given.trim_matches('"');
    let [integer, vector] = ["long", "elements"].map(|what| format!("%\"{what} {name}\""));
    let mut lines = format!("  {integer} = zext i{bits} {value} to i{long}{location}\n");
    let _ = writeln!(
        lines,
        "  {vector} = bitcast i{long} {integer} to <{length} x i{element}>{location}"
    );
    let first = (0..count).map(|number| format!("i32 {number}"));
    let first = first.collect::<Vec<_>>().join(", ");
    let _ = writeln!(
        lines,
        "  %{given} = shufflevector <{length} x i{element}> {vector}, <{length} x i{element}> poison, <{count} x i32> <{first}>{location}"
    );
    Some(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_of_odd_lengths_are_lengthened() {
        let text = "  %7 = bitcast i48 %.in to <6 x i8>, !dbg !31\n  ret void\n";
        let expected = "  %\"long 7\" = zext i48 %.in to i64, !dbg !31\n  \
             %\"elements 7\" = bitcast i64 %\"long 7\" to <8 x i8>, !dbg !31\n  \
             %7 = shufflevector <8 x i8> %\"elements 7\", <8 x i8> poison, \
             <6 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5>, !dbg !31\n  ret void\n";
        assert_eq!(lengthened(text), expected);
        let text = "  %\"a b\" = bitcast i36 %c to <9 x i4>\n";
        assert!(
            lengthened(text).contains("\n  %\"a b\" = shufflevector <16 x i4> %\"elements a b\", ")
        );
        for other in [
            "  %a = bitcast i48 %b to <3 x i16>\n",
            "  %a = bitcast i64 %b to <8 x i8>\n",
            "  %a = bitcast i6 %b to <6 x i1>\n",
            "  %a = bitcast i96 %b to <12 x i8>\n",
            "  %a = bitcast i192 %b to <6 x i32>\n",
            "  %a = bitcast <3 x i16> %b to <6 x i8>\n",
            "  %a = bitcast <6 x i8> %b to i48\n",
            "  store <6 x i8> %a, ptr %b, align 1\n",
        ] {
            assert_eq!(lengthened(other), other);
        }
    }
}
