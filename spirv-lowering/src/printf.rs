//! Rendering of printf records on the host. The layout of the buffer is that of [`crate::passes::lower_printf`].
//!
//! The formats are those of OpenCL C: flags, width, precision, `v2` to `v16` with `hh`, `h`, `hl` and `l`, the
//! conversions `d i o u x X f F e E g G a A c s p %`, and `z`, `t`, `j`, `ll` as 64 bits. A conversion that is not
//! understood, or that lacks its argument, is printed as it stands.

use crate::ir::module::{PrintfArg, PrintfSite};
use crate::ir::strings::NULL;
use crate::ir::types::Type;
use crate::passes::lower_printf::{RecordLayout, HEADER, STRING};

/// Widths and precisions beyond this are clamped. Rust's formatter panics at larger ones: it counts the digit before the point
/// of the exponential form in 16 bits, too.
const MAX_FIELD: usize = u16::MAX as usize - 1;
/// The bytes after which text is written out.
const PIECE: usize = 64 << 10;

/// Returns the records of a printf buffer: site index and bytes of each.
pub fn records(buffer: &[u8]) -> Vec<(u32, &[u8])> {
    let word = |at: usize| {
        let bytes = buffer.get(at..at.checked_add(4)?)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?))
    };
    let mut list = Vec::new();
    let end = (word(0).unwrap_or(0) as usize).min(buffer.len());
    let mut at = HEADER as usize;
    while let (Some(site), Some(size)) = (word(at), word(at + 4)) {
        let size = size as usize;
        let Some(record) = buffer
            .get(at..at.saturating_add(size))
            .filter(|_| size >= 8 && at + size <= end)
        else {
            break;
        };
        list.push((site, record));
        at += size;
    }
    list
}

/// Renders all records of a printf buffer, in pieces: a few bytes of a record can produce a lot of
/// text. `write` receives each piece that is not empty, and true with the last.
pub fn render_all(sites: &[PrintfSite], buffer: &[u8], mut write: impl FnMut(&[u8], bool)) {
    let mut text = Vec::new();
    for (site, record) in records(buffer) {
        let Some(site) = sites.get(site as usize) else {
            continue;
        };
        let next = render(site, record);
        if text.len() >= PIECE && !next.is_empty() {
            write(&text, false);
            text.clear();
        }
        text.extend(next);
    }
    if !text.is_empty() {
        write(&text, true);
    }
}

#[derive(Debug, Clone, Default)]
struct Spec {
    left: bool,
    plus: bool,
    space: bool,
    alternate: bool,
    zero: bool,
    width: usize,
    precision: Option<usize>,
    lanes: usize,
    /// Bits of the length modifier, 0 for none.
    bits: u32,
    conversion: u8,
}

/// Parses the specification after a `%`. Returns it and the number of its bytes.
fn parse(format: &[u8]) -> Option<(Spec, usize)> {
    let mut spec = Spec {
        lanes: 1,
        ..Default::default()
    };
    let mut i = 0;
    loop {
        match format.get(i)? {
            b'-' => spec.left = true,
            b'+' => spec.plus = true,
            b' ' => spec.space = true,
            b'#' => spec.alternate = true,
            b'0' => spec.zero = true,
            _ => break,
        }
        i += 1;
    }
    let number = |i: &mut usize| {
        let mut n = 0usize;
        while let Some(d) = format.get(*i).filter(|c| c.is_ascii_digit()) {
            n = (n * 10 + usize::from(d - b'0')).min(MAX_FIELD);
            *i += 1;
        }
        n
    };
    spec.width = number(&mut i);
    if format.get(i) == Some(&b'.') {
        i += 1;
        spec.precision = Some(number(&mut i));
    }
    if format.get(i) == Some(&b'v') {
        i += 1;
        spec.lanes = number(&mut i);
        if ![2, 3, 4, 8, 16].contains(&spec.lanes) {
            return None;
        }
    }
    let rest = format.get(i..)?;
    let (bits, length) = match rest {
        [b'h', b'h', ..] => (8, 2),
        [b'h', b'l', ..] => (32, 2),
        [b'h', ..] => (16, 1),
        [b'l', b'l', ..] => (64, 2),
        [b'l' | b'z' | b't' | b'j', ..] => (64, 1),
        _ => (0, 0),
    };
    spec.bits = bits;
    i += length;
    spec.conversion = *format.get(i)?;
    b"diouxXfFeEgGaAcsp%"
        .contains(&spec.conversion)
        .then_some((spec, i + 1))
}

/// Renders one record.
pub fn render(site: &PrintfSite, record: &[u8]) -> Vec<u8> {
    let layout = RecordLayout::new(site);
    let mut args = site.args.iter().zip(layout.offsets);
    let mut text = Vec::new();
    let mut format = &site.format[..];
    while let Some(at) = format.iter().position(|&c| c == b'%') {
        text.extend_from_slice(&format[..at]);
        format = &format[at + 1..];
        let Some((spec, length)) = parse(format) else {
            text.push(b'%');
            continue;
        };
        let verbatim = &format[..length];
        format = &format[length..];
        if spec.conversion == b'%' {
            text.push(b'%');
            continue;
        }
        match args.next() {
            Some((PrintfArg::Text(string), _)) if spec.conversion == b's' => {
                string_argument(&mut text, &spec, string);
            }
            Some((PrintfArg::String, Some(offset))) if spec.conversion == b's' => {
                let bytes = record.get(offset as usize..).unwrap_or_default();
                let bytes = bytes.get(..STRING as usize).unwrap_or(bytes);
                let string = match bytes {
                    [0, 0, 0, 0, ..] => NULL,
                    _ => bytes.get(4..).unwrap_or_default(),
                };
                string_argument(&mut text, &spec, string);
            }
            Some((PrintfArg::Value { ty, lanes }, Some(offset))) => {
                let count = spec.lanes.min(*lanes as usize);
                for lane in 0..count {
                    if lane > 0 {
                        text.push(b',');
                    }
                    let size = ty.size() as usize;
                    let start = offset as usize + lane * size;
                    let mut bytes = [0; 8];
                    if let Some(value) = record.get(start..start + size) {
                        bytes[..size].copy_from_slice(value);
                    }
                    value(&mut text, &spec, *ty, u64::from_le_bytes(bytes));
                }
            }
            _ => {
                text.push(b'%');
                text.extend_from_slice(verbatim);
            }
        }
    }
    text.extend_from_slice(format);
    text
}

/// Appends a string up to its end, or as much as the precision allows.
fn string_argument(text: &mut Vec<u8>, spec: &Spec, string: &[u8]) {
    let string = string.split(|&c| c == 0).next().unwrap_or_default();
    let shown = &string[..spec.precision.unwrap_or(string.len()).min(string.len())];
    pad(text, spec, b"", shown, false);
}

fn value(text: &mut Vec<u8>, spec: &Spec, ty: Type, bits: u64) {
    match spec.conversion {
        b'c' => pad(text, spec, b"", &[as_integer(ty, bits) as u8], false),
        b's' => pad(text, spec, b"", NULL, false),
        b'p' => {
            if bits == 0 {
                pad(text, spec, b"", b"(nil)", false);
            } else {
                pad(text, spec, b"0x", format!("{bits:x}").as_bytes(), spec.zero);
            }
        }
        b'd' | b'i' | b'o' | b'u' | b'x' | b'X' => integer(text, spec, ty, bits),
        _ => float(text, spec, as_float(ty, bits)),
    }
}

fn as_float(ty: Type, bits: u64) -> f64 {
    match ty {
        Type::F16 => half_to_f64(bits as u16),
        Type::F32 => f64::from(f32::from_bits(bits as u32)),
        Type::F64 => f64::from_bits(bits),
        _ => as_integer(ty, bits) as f64,
    }
}

/// Sign-extends a value.
fn as_integer(ty: Type, bits: u64) -> i64 {
    match ty {
        Type::F16 | Type::F32 | Type::F64 => as_float(ty, bits) as i64,
        _ => {
            let shift = 64 - ty.size() * 8;
            ((bits << shift) as i64) >> shift
        }
    }
}

fn half_to_f64(bits: u16) -> f64 {
    let sign = if bits >> 15 != 0 { -1.0 } else { 1.0 };
    let exponent = i32::from(bits >> 10 & 31);
    let mantissa = f64::from(bits & 0x3ff);
    match exponent {
        0 => sign * mantissa * 2f64.powi(-24),
        31 if mantissa == 0.0 => sign * f64::INFINITY,
        31 => f64::NAN.copysign(sign),
        _ => sign * (1024.0 + mantissa) * 2f64.powi(exponent - 25),
    }
}

/// Appends prefix and body, padded to the width; `zeros` fills between the two.
fn pad(text: &mut Vec<u8>, spec: &Spec, prefix: &[u8], body: &[u8], zeros: bool) {
    let fill = spec.width.saturating_sub(prefix.len() + body.len());
    let spaces = |text: &mut Vec<u8>, n: usize| text.resize(text.len() + n, b' ');
    if !spec.left && !zeros {
        spaces(text, fill);
    }
    text.extend_from_slice(prefix);
    if !spec.left && zeros {
        text.resize(text.len() + fill, b'0');
    }
    text.extend_from_slice(body);
    if spec.left {
        spaces(text, fill);
    }
}

fn sign(spec: &Spec, negative: bool) -> &'static str {
    match (negative, spec.plus, spec.space) {
        (true, ..) => "-",
        (_, true, _) => "+",
        (_, _, true) => " ",
        _ => "",
    }
}

fn integer(text: &mut Vec<u8>, spec: &Spec, ty: Type, bits: u64) {
    // Without a length modifier a scalar is an int; a vector element is what it is.
    let width = match (spec.bits, spec.lanes) {
        (0, 1) => 32,
        (0, _) => ty.size() * 8,
        (bits, _) => bits,
    };
    let shift = 64 - width;
    let signed = (as_integer(ty, bits) << shift) >> shift;
    let (magnitude, prefix) = match spec.conversion {
        b'd' | b'i' => (signed.unsigned_abs(), sign(spec, signed < 0)),
        _ => {
            // Unsigned arguments narrower than the conversion are zero-extended.
            let narrow = if ty.is_int() { ty.mask() } else { u64::MAX };
            let magnitude = signed as u64
                & (u64::MAX >> shift)
                & if spec.lanes > 1 { narrow } else { u64::MAX };
            let prefix = match spec.conversion {
                b'x' if spec.alternate && magnitude != 0 => "0x",
                b'X' if spec.alternate && magnitude != 0 => "0X",
                _ => "",
            };
            (magnitude, prefix)
        }
    };
    let mut digits = match spec.conversion {
        b'o' => format!("{magnitude:o}"),
        b'x' => format!("{magnitude:x}"),
        b'X' => format!("{magnitude:X}"),
        _ => magnitude.to_string(),
    };
    if let Some(precision) = spec.precision {
        if precision == 0 && magnitude == 0 {
            digits.clear();
        }
        if digits.len() < precision {
            digits.insert_str(0, &"0".repeat(precision - digits.len()));
        }
    }
    if spec.conversion == b'o' && spec.alternate && !digits.starts_with('0') {
        digits.insert(0, '0');
    }
    pad(
        text,
        spec,
        prefix.as_bytes(),
        digits.as_bytes(),
        spec.zero && spec.precision.is_none(),
    );
}

fn float(text: &mut Vec<u8>, spec: &Spec, x: f64) {
    let upper = spec.conversion.is_ascii_uppercase();
    let prefix = sign(spec, x.is_sign_negative());
    if !x.is_finite() {
        let word = match (x.is_nan(), upper) {
            (true, false) => "nan",
            (true, true) => "NAN",
            (false, false) => "inf",
            (false, true) => "INF",
        };
        return pad(text, spec, prefix.as_bytes(), word.as_bytes(), false);
    }
    let x = x.abs();
    let mut prefix = prefix.to_owned();
    let mut body = match spec.conversion.to_ascii_lowercase() {
        b'f' => fixed(x, spec.precision.unwrap_or(6), spec.alternate),
        b'e' => exponential(x, spec.precision.unwrap_or(6), spec.alternate),
        b'g' => general(x, spec.precision.unwrap_or(6), spec.alternate),
        _ => {
            prefix.push_str("0x");
            hexadecimal(x, spec.precision, spec.alternate)
        }
    };
    if upper {
        body.make_ascii_uppercase();
        prefix.make_ascii_uppercase();
    }
    pad(text, spec, prefix.as_bytes(), body.as_bytes(), spec.zero);
}

fn fixed(x: f64, precision: usize, alternate: bool) -> String {
    // Four more than was asked for, of `%g`; and no number has that many digits.
    let precision = precision.min(MAX_FIELD);
    let mut s = format!("{x:.precision$}");
    if alternate && precision == 0 {
        s.push('.');
    }
    s
}

/// Returns the digits and the exponent of the exponential form.
fn scientific(x: f64, precision: usize) -> (String, i32) {
    let s = format!("{x:.precision$e}");
    match s.split_once('e') {
        Some((digits, exponent)) => (digits.to_owned(), exponent.parse().unwrap_or(0)),
        None => (s, 0),
    }
}

fn with_exponent(digits: &str, exponent: i32) -> String {
    format!(
        "{digits}e{}{:02}",
        if exponent < 0 { '-' } else { '+' },
        exponent.abs()
    )
}

fn exponential(x: f64, precision: usize, alternate: bool) -> String {
    let (mut digits, exponent) = scientific(x, precision);
    if alternate && precision == 0 {
        digits.push('.');
    }
    with_exponent(&digits, exponent)
}

fn general(x: f64, precision: usize, alternate: bool) -> String {
    let precision = precision.max(1);
    let (digits, exponent) = scientific(x, precision - 1);
    let trim = |s: String| {
        if alternate || !s.contains('.') {
            return s;
        }
        s.trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    if exponent < -4 || exponent >= precision as i32 {
        let mut digits = trim(digits);
        if alternate && !digits.contains('.') {
            digits.push('.');
        }
        with_exponent(&digits, exponent)
    } else {
        trim(fixed(
            x,
            (precision as i32 - 1 - exponent).max(0) as usize,
            alternate,
        ))
    }
}

/// Returns the formats a finite, non-negative number as `h.hhhp+d`.
fn hexadecimal(x: f64, precision: Option<usize>, alternate: bool) -> String {
    let bits = x.to_bits();
    let biased = (bits >> 52) as i32;
    let mut mantissa = bits & ((1 << 52) - 1);
    let exponent = match (biased, mantissa) {
        (0, 0) => 0,
        (0, _) => -1022,
        _ => biased - 1023,
    };
    if biased != 0 {
        mantissa |= 1 << 52;
    }
    let precision = match precision {
        Some(p) if p < 13 => {
            // Round to nearest even at that digit.
            let drop = 4 * (13 - p) as u32;
            let (half, mask) = (1u64 << (drop - 1), (1u64 << drop) - 1);
            let rest = mantissa & mask;
            mantissa &= !mask;
            if rest > half || rest == half && mantissa >> drop & 1 != 0 {
                mantissa += 1 << drop;
            }
            p
        }
        Some(p) => p,
        None if mantissa & ((1 << 52) - 1) == 0 => 0,
        None => 13 - ((mantissa & ((1 << 52) - 1)).trailing_zeros() / 4) as usize,
    };
    let mut digits = format!("{:013x}", mantissa & ((1 << 52) - 1));
    if precision > digits.len() {
        digits.push_str(&"0".repeat(precision - digits.len()));
    }
    digits.truncate(precision);
    let point = if precision > 0 || alternate { "." } else { "" };
    format!("{:x}{point}{digits}p{exponent:+}", mantissa >> 52)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(format: &str, ty: Type, values: &[u64]) -> String {
        let site = PrintfSite {
            format: format.as_bytes().to_vec(),
            args: vec![PrintfArg::Value {
                ty,
                lanes: values.len() as u32,
            }],
        };
        let layout = RecordLayout::new(&site);
        let mut record = vec![0; layout.size as usize];
        let size = ty.size() as usize;
        for (i, v) in values.iter().enumerate() {
            let at = layout.offsets[0].unwrap() as usize + i * size;
            record[at..at + size].copy_from_slice(&v.to_le_bytes()[..size]);
        }
        String::from_utf8(render(&site, &record)).unwrap()
    }
    fn f(format: &str, x: f64) -> String {
        one(format, Type::F64, &[x.to_bits()])
    }
    fn i(format: &str, x: i64) -> String {
        one(format, Type::I32, &[x as u64])
    }

    #[test]
    fn integers() {
        assert_eq!(i("[%5d]", -3), "[   -3]");
        assert_eq!(i("[%-5d]", 3), "[3    ]");
        assert_eq!(i("[%05d]", -3), "[-0003]");
        assert_eq!(i("[%+.3d]", 7), "[+007]");
        assert_eq!(i("[%.0d]", 0), "[]");
        assert_eq!(i("[%u]", -1), "[4294967295]");
        assert_eq!(i("[%#x]", 255), "[0xff]");
        assert_eq!(i("[%#X]", 255), "[0XFF]");
        assert_eq!(i("[%#o]", 8), "[010]");
        assert_eq!(i("[%08.5d]", 42), "[   00042]");
        assert_eq!(i("[%hhd]", 0x181), "[-127]");
        assert_eq!(i("[%hu]", 0x1ffff), "[65535]");
        assert_eq!(i("[%c]", 65), "[A]");
        assert_eq!(
            one("[%ld]", Type::I64, &[i64::MIN as u64]),
            "[-9223372036854775808]"
        );
        assert_eq!(one("[%lx]", Type::I64, &[u64::MAX]), "[ffffffffffffffff]");
    }

    #[test]
    fn floats() {
        assert_eq!(f("%f", 10.3456), "10.345600");
        assert_eq!(f("%.0f", 0.5), "0");
        assert_eq!(f("%#.0f", 2.5), "2.");
        assert_eq!(f("%6.2f|", 789456123.0), "789456123.00|");
        assert_eq!(f("%-10.3f|", 1.5), "1.500     |");
        assert_eq!(f("%+010.2f", -3.24159), "-000003.24");
        assert_eq!(f("%e", 0.0), "0.000000e+00");
        assert_eq!(f("%.3E", 123456.0), "1.235E+05");
        assert_eq!(f("%g", 100000.0), "100000");
        assert_eq!(f("%g", 1000000.0), "1e+06");
        assert_eq!(f("%g", 0.0001), "0.0001");
        assert_eq!(f("%g", 0.00001), "1e-05");
        assert_eq!(f("%#g", 1.0), "1.00000");
        assert_eq!(f("%.2g", 9.99), "10");
        assert_eq!(f("%f", f64::NEG_INFINITY), "-inf");
        assert_eq!(f("%08F", f64::INFINITY), "     INF");
        assert_eq!(f("%g", f64::NAN), "nan");
    }

    #[test]
    fn hexadecimal_floats() {
        assert_eq!(f("%a", 1.0), "0x1p+0");
        assert_eq!(f("%a", 0.0), "0x0p+0");
        assert_eq!(f("%a", 10.3456), "0x1.4b0f27bb2fec5p+3");
        assert_eq!(f("%.3a", 10.3456), "0x1.4b1p+3");
        assert_eq!(f("%.0a", 1.5), "0x2p+0");
        assert_eq!(f("%.0a", 2.5), "0x1p+1");
        assert_eq!(f("%10.2A|", -0.1), "-0X1.9AP-4|");
        assert_eq!(f("%a", 5e-324), "0x0.0000000000001p-1022");
    }

    #[test]
    fn vectors() {
        let bits = |x: f32| u64::from(x.to_bits());
        assert_eq!(
            one("%2.2v4hlf", Type::F32, &[1.0, 2.5, -3.0, 4.125].map(bits)),
            "1.00,2.50,-3.00,4.12"
        );
        assert_eq!(one("%v4hhd", Type::I8, &[1, 2, 0xff, 4]), "1,2,-1,4");
        assert_eq!(one("%#v2hx", Type::I16, &[0xabcd, 1]), "0xabcd,0x1");
        assert_eq!(
            one("%v3lu", Type::I64, &[1, 2, u64::MAX]),
            "1,2,18446744073709551615"
        );
        assert_eq!(
            one("%v2hf", Type::F16, &[0x3c00, 0xc000]),
            "1.000000,-2.000000"
        );
    }

    #[test]
    fn strings_and_oddities() {
        let site = PrintfSite {
            format: b"%5s|%-5.2s|100%%|%q|%s".to_vec(),
            args: vec![
                PrintfArg::Text(b"abc".to_vec()),
                PrintfArg::Text(b"xyz\0w".to_vec()),
            ],
        };
        assert_eq!(render(&site, &[0; 8]), b"  abc|xy   |100%|%q|%s");
        assert_eq!(one("%p", Type::I64, &[0xbeef]), "0xbeef");
        assert_eq!(one("%", Type::I32, &[1]), "%");
        assert_eq!(one("%d", Type::F32, &[bits(2.7)]), "2");
        fn bits(x: f32) -> u64 {
            x.to_bits().into()
        }
    }

    /// Checks that fields are no larger than what is formatted, and that no width or precision
    /// panics.
    #[test]
    fn fields_of_any_size() {
        for size in [65_530, 65_534, 65_535, 65_536, 65_540, usize::MAX] {
            for conversion in ["f", "e", "g", "#g", "a", "d", "x"] {
                let (flag, conversion) = conversion.split_at(conversion.len() - 1);
                for format in [
                    format!("%{flag}.{size}{conversion}"),
                    format!("%{flag}{size}{conversion}"),
                    format!("%{flag}{size}.{size}{conversion}"),
                ] {
                    for x in [0.0, 1e-4, 1.5e-4, 2.5, 1e300, 5e-324] {
                        let length = f(&format, x).len();
                        assert!(length <= MAX_FIELD + 400, "{format}: {length}");
                    }
                }
            }
        }
    }

    /// Checks that text is written in pieces.
    #[test]
    fn text_comes_in_pieces() {
        let site = PrintfSite {
            format: b"%65000d".to_vec(),
            args: vec![PrintfArg::Value {
                ty: Type::I32,
                lanes: 1,
            }],
        };
        let mut buffer = vec![0; 8];
        for value in 0..100u32 {
            for word in [0, 16, value, 0] {
                buffer.extend(word.to_le_bytes());
            }
        }
        let used = buffer.len() as u32;
        buffer[..4].copy_from_slice(&used.to_le_bytes());
        let (mut most, mut all) = (0, 0);
        render_all(&[site], &buffer, |text, _| {
            most = most.max(text.len());
            all += text.len();
        });
        assert_eq!(all, 100 * 65_000);
        assert!(most < 3 * PIECE, "{most}");
    }

    #[test]
    fn damaged_buffers() {
        assert!(records(&[]).is_empty());
        let mut buffer = vec![0u8; 40];
        buffer[0..4].copy_from_slice(&1000u32.to_le_bytes());
        buffer[12..16].copy_from_slice(&16u32.to_le_bytes());
        buffer[24..28].copy_from_slice(&5u32.to_le_bytes());
        buffer[28..32].copy_from_slice(&64u32.to_le_bytes());
        let list = records(&buffer);
        assert_eq!(list.len(), 1);
        assert_eq!(list[0].1.len(), 16);
    }
}
