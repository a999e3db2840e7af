//! Preserves truncations that LLVM's SPIR-V target loses: an extension of a truncation becomes a
//! copy of the wider value, under the type of the narrower one.
//!
//! GlobalISel's legalizer merges conversions of integers that follow one another, and the target
//! gives the remaining truncation the type of its operand. Its users then compute with the wider
//! value, and a store of it writes 8 bytes in place of 4. LLVM's passes leave few such pairs;
//! without them they are common.

/// Returns LLVM's textual form with an operation after each conversion of integers, which keeps the
/// legalizer from merging it with another one: `or` with zero, which the lowering folds.
pub fn with_separators(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 16);
    for line in text.split_inclusive('\n') {
        match separated(line) {
            Some(lines) => out += &lines,
            None => out += line,
        }
    }
    out
}

/// Returns the lines that replace a conversion of integers, or `None` for other lines.
fn separated(line: &str) -> Option<String> {
    let (name, conversion) = line.strip_prefix("  %")?.split_once(" = ")?;
    let (operation, _) = conversion.split_once(' ')?;
    if !matches!(operation, "trunc" | "zext" | "sext") {
        return None;
    }
    let (_, result) = conversion.rsplit_once(" to ")?;
    let ty = result.trim_end().split(", !").next()?;
    let location = result.trim_end().strip_prefix(ty)?;
    // A name of another kind than the compiler's own: it gives no number to what has a name.
    let converted = format!("%\"converted {}\"", name.trim_matches('"'));
    Some(format!(
        "  {converted} = {conversion}  %{name} = or {ty} {converted}, zeroinitializer{location}\n"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversions_are_separated() {
        let text = "  %a = load i64, ptr %p, align 8\n  %conv = trunc i64 %a to i16\n  \
                    %7 = zext nneg <2 x i16> %b to <2 x i32>, !dbg !12\n  %\"x y\" = sext i8 %c to i64\n  \
                    %d = bitcast i32 %a to float\n  ret void\n";
        let expected =
            "  %a = load i64, ptr %p, align 8\n  %\"converted conv\" = trunc i64 %a to i16\n  \
             %conv = or i16 %\"converted conv\", zeroinitializer\n  \
             %\"converted 7\" = zext nneg <2 x i16> %b to <2 x i32>, !dbg !12\n  \
             %7 = or <2 x i32> %\"converted 7\", zeroinitializer, !dbg !12\n  \
             %\"converted x y\" = sext i8 %c to i64\n  \
             %\"x y\" = or i64 %\"converted x y\", zeroinitializer\n  \
             %d = bitcast i32 %a to float\n  ret void\n";
        assert_eq!(with_separators(text), expected);
    }
}
