//! Guards integer divisions that have no result.
//!
//! OpenCL C has an unspecified result for them (section 6.4 of its specification, "Arithmetic Operators"), LLVM undefined
//! behaviour: of `q = i / n; n ? q : 5` its passes make `i / n`, and a store after `i / 0` vanishes. So it is with the least
//! integer divided by -1. The divisor becomes 1 then.

use std::fmt::Write as _;

/// Returns true if a source may divide integers by what is not a literal: it has an operator of division outside of comments
/// and strings, or includes files.
pub fn likely(source: &str) -> bool {
    let bytes = source.as_bytes();
    let mut at = 0;
    let skip = |from: usize, end: &str| {
        source[from..]
            .find(end)
            .map_or(bytes.len(), |n| from + n + end.len())
    };
    while at < bytes.len() {
        at = match &bytes[at..] {
            [b'/', b'/', ..] => skip(at, "\n"),
            [b'/', b'*', ..] => skip(at + 2, "*/"),
            [b'/' | b'%', rest @ ..] if is_by_literal(rest) => at + 1,
            [b'/', ..] if ends_with_float(&bytes[..at]) => at + 1,
            [b'/' | b'%', ..] => return true,
            [b'"', rest @ ..] => at + 1 + length_of_string(rest),
            _ => at + 1,
        };
    }
    source.contains("include") || source.contains("import")
}

/// Returns true if a text begins with a number other than 0, which is the divisor: after `/=` only if nothing follows it.
fn is_by_literal(text: &[u8]) -> bool {
    let assigns = text.first() == Some(&b'=');
    let text = text[usize::from(assigns)..].trim_ascii_start();
    let length = text.iter().take_while(|&&byte| is_of_literal(byte)).count();
    let (literal, rest) = text.split_at(length);
    let is_number = literal.first().is_some_and(u8::is_ascii_digit);
    // The digits of hexadecimal numbers among them; `0u` and the like have none.
    let digits = literal.strip_prefix(b"0x").unwrap_or(literal);
    let is_zero = !digits.iter().any(|byte| (b'1'..=b'9').contains(byte));
    let ends = matches!(rest.trim_ascii_start().first(), Some(b';' | b')' | b','));
    is_number && !is_zero && (!assigns || ends)
}

/// Returns true if a text ends with a literal of a floating-point type.
fn ends_with_float(text: &[u8]) -> bool {
    let text = text.trim_ascii_end();
    let length = text
        .iter()
        .rev()
        .take_while(|&&byte| is_of_literal(byte))
        .count();
    let literal = &text[text.len() - length..];
    literal
        .first()
        .is_some_and(|&byte| byte == b'.' || byte.is_ascii_digit())
        && literal.contains(&b'.')
}

fn is_of_literal(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'.' || byte == b'_'
}

/// Returns the number of bytes to the end of a string literal, or of its line.
fn length_of_string(text: &[u8]) -> usize {
    let mut escaped = false;
    let end = text.iter().position(|&byte| {
        let ends = byte == b'\n' || byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    });
    end.map_or(text.len(), |end| end + 1)
}

/// Returns LLVM's textual form, before its passes, with divisions that all have a result.
pub fn guarded(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 64);
    for line in text.split_inclusive('\n') {
        match guarded_line(line) {
            Some(lines) => out += &lines,
            None => out += line,
        }
    }
    out
}

/// Returns the lines that replace an integer division that may have no result, or `None` for other lines.
fn guarded_line(line: &str) -> Option<String> {
    let (given, division) = line.strip_prefix("  %")?.split_once(" = ")?;
    let (op, rest) = division.split_once(' ')?;
    if !matches!(op, "sdiv" | "udiv" | "srem" | "urem") {
        return None;
    }
    let exact = if rest.starts_with("exact ") {
        "exact "
    } else {
        ""
    };
    let rest = rest[exact.len()..].trim_end();
    let (operation, location) = rest.split_at(rest.find(", !").unwrap_or(rest.len()));
    let ty = match operation.starts_with('<') {
        true => operation.split_inclusive('>').next()?,
        false => operation.split_once(' ')?.0,
    };
    let vector = match ty.strip_prefix('<') {
        Some(vector) => {
            let (count, element) = vector.strip_suffix('>')?.split_once(" x ")?;
            Some((count.parse::<usize>().ok()?, element))
        }
        None => None,
    };
    // The dividend may be a vector of constants, which has commas.
    let (dividend, divisor) = operands(operation.strip_prefix(ty)?.trim_start())?;
    let constant = divisor.parse::<i128>().ok();
    if constant.is_some_and(|divisor| divisor != 0 && divisor != -1) {
        return None;
    }
    let splat = |number: &str| match vector {
        Some((count, element)) => {
            let elements = vec![format!("{element} {number}"); count];
            format!("<{}>", elements.join(", "))
        }
        None => number.to_string(),
    };
    let truth = vector.map_or("i1".to_string(), |(count, _)| format!("<{count} x i1>"));
    let name = given.trim_matches('"');
    let value = |what: &str| format!("%\"{what} {name}\"");
    let mut lines = String::new();
    let mut emit = |what: &str, instruction: String| {
        let _ = writeln!(lines, "  {} = {instruction}{location}", value(what));
        value(what)
    };
    let mut bad = emit("zero", format!("icmp eq {ty} {divisor}, {}", splat("0")));
    if op.starts_with('s') {
        let bits: u32 = vector.map_or(ty, |(_, element)| element)[1..]
            .parse()
            .ok()?;
        let least = splat(&(-1i128 << (bits - 1)).to_string());
        let is_least = emit("least", format!("icmp eq {ty} {dividend}, {least}"));
        let minus_one = emit(
            "minus one",
            format!("icmp eq {ty} {divisor}, {}", splat("-1")),
        );
        let overflows = emit("overflow", format!("and {truth} {is_least}, {minus_one}"));
        bad = emit("unspecified", format!("or {truth} {bad}, {overflows}"));
    }
    let one = splat("1");
    let by = emit(
        "divisor",
        format!("select {truth} {bad}, {ty} {one}, {ty} {divisor}"),
    );
    let _ = writeln!(
        lines,
        "  %{given} = {op} {exact}{ty} {dividend}, {by}{location}"
    );
    Some(lines)
}

/// Splits the operands of an instruction at the comma that is in no brackets.
fn operands(text: &str) -> Option<(&str, &str)> {
    let mut depth = 0;
    let comma = text.bytes().position(|byte| {
        match byte {
            b'<' | b'(' => depth += 1,
            b'>' | b')' => depth -= 1,
            _ => {}
        }
        byte == b',' && depth == 0
    })?;
    Some((&text[..comma], text[comma + 1..].trim_start()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn divisions_have_results() {
        let text = "  %div = udiv i32 %0, %1, !dbg !7\n  ret void\n";
        let expected = "  %\"zero div\" = icmp eq i32 %1, 0, !dbg !7\n  \
             %\"divisor div\" = select i1 %\"zero div\", i32 1, i32 %1, !dbg !7\n  \
             %div = udiv i32 %0, %\"divisor div\", !dbg !7\n  ret void\n";
        assert_eq!(guarded(text), expected);
        let text = "  %4 = srem <2 x i8> <i8 7, i8 9>, %3\n";
        let expected = "  %\"zero 4\" = icmp eq <2 x i8> %3, <i8 0, i8 0>\n  \
             %\"least 4\" = icmp eq <2 x i8> <i8 7, i8 9>, <i8 -128, i8 -128>\n  \
             %\"minus one 4\" = icmp eq <2 x i8> %3, <i8 -1, i8 -1>\n  \
             %\"overflow 4\" = and <2 x i1> %\"least 4\", %\"minus one 4\"\n  \
             %\"unspecified 4\" = or <2 x i1> %\"zero 4\", %\"overflow 4\"\n  \
             %\"divisor 4\" = select <2 x i1> %\"unspecified 4\", <2 x i8> <i8 1, i8 1>, <2 x i8> %3\n  \
             %4 = srem <2 x i8> <i8 7, i8 9>, %\"divisor 4\"\n";
        assert_eq!(guarded(text), expected);
        let exact = guarded("  %x = sdiv exact i64 %a, 0\n");
        assert!(exact.ends_with("\n  %x = sdiv exact i64 %a, %\"divisor x\"\n"));
        for other in [
            "  %x = sdiv i32 %a, 7\n",
            "  %x = srem i32 %a, -3, !dbg !3\n",
            "  %x = fdiv float %a, %b\n",
        ] {
            assert_eq!(guarded(other), other);
        }
    }

    #[test]
    fn operators_of_division() {
        for source in [
            "a / b",
            "a /= b",
            "x % y",
            "\"\\\"\" % y",
            "#include <a.h>",
            "x / 0",
            "x % 0u",
            "x / 0x0",
            "x /= 2 - 2;",
            "x %= 3 + n;",
            "1 / x",
            "a[1] / x",
        ] {
            assert!(likely(source), "{source}");
        }
        for source in [
            "// a / b",
            "/* a % b */ c",
            "printf(\"%d / 3\\n\", x)",
            "a + b",
        ] {
            assert!(!likely(source), "{source}");
        }
    }
}
