//! Kernel argument types for clGetKernelArgInfo. clang's SPIR-V target drops their names in OpenCL
//! C (`uint` and `int` are one SPIR-V type), but its LLVM IR keeps them as metadata. This module
//! reads them from textual IR and adds them to the module as the OpString forms that llvm-spirv
//! uses: `kernel_arg_type.NAME.T1,T2,` and `kernel_arg_type_qual.NAME.Q1,Q2,`. It also adds
//! `vec_type_hint` with an unsigned type, as `kernel_vec_type_hint.NAME.T`.

use crate::compile::edit::{instruction, ModuleEdit};
use rustc_hash::FxHashMap;
use spirv::Op;
use spirv_lowering::insts::string_words;

/// Adds the OpStrings for every kernel in `ir` (textual LLVM IR). Leaves the module unchanged if
/// the two do not match: the information is optional.
pub fn add(words: &mut Vec<u32>, ir: &str) {
    let texts = descriptions(ir);
    let Some(mut edit) = ModuleEdit::of(words).filter(|_| !texts.is_empty()) else {
        return;
    };
    let texts = texts.iter().map(|text| string_words(text.as_bytes()));
    let fitting = texts.filter(|text| text.len() < usize::from(u16::MAX) - 2);
    let strings: Vec<Vec<u32>> = fitting
        .map(|text| instruction(Op::String, &[&[edit.new_id()], &text[..]].concat()))
        .collect();
    // OpString stands after the execution modes and before names.
    let at = edit.position(|op| {
        !matches!(
            op,
            Op::Capability
                | Op::Extension
                | Op::ExtInstImport
                | Op::MemoryModel
                | Op::EntryPoint
                | Op::ExecutionMode
                | Op::ExecutionModeId
        )
    });
    edit.insert(at, strings);
    *words = edit.words();
}

/// Returns the texts of the OpStrings.
fn descriptions(ir: &str) -> Vec<String> {
    let mut nodes: FxHashMap<&str, &str> = FxHashMap::default();
    for line in ir.lines().filter(|l| l.starts_with('!')) {
        if let Some((name, body)) = line.split_once(" = !{") {
            nodes.insert(name, body.trim_end_matches('}'));
        }
    }
    let mut texts = Vec::new();
    for line in ir
        .lines()
        .filter(|l| l.starts_with("define ") && l.contains("spir_kernel"))
    {
        let Some(name) = line
            .split_once('@')
            .and_then(|(_, rest)| rest.split_once('('))
            .map(|(name, _)| name)
        else {
            continue;
        };
        let name = name.trim_matches('"');
        let node = |key: &str| {
            line.split_once(&format!("!{key} "))
                .and_then(|(_, rest)| rest.split([' ', '{']).next())
                .and_then(|node| nodes.get(node))
        };
        if let Some(hint) = node("vec_type_hint").and_then(|body| unsigned(body)) {
            texts.push(format!("kernel_vec_type_hint.{name}.{hint}"));
        }
        for key in ["kernel_arg_type", "kernel_arg_type_qual"] {
            let Some(node) = node(key) else { continue };
            let mut text = format!("{key}.{name}.");
            for item in strings_of(node) {
                text += &item;
                text.push(',');
            }
            texts.push(text);
        }
    }
    texts
}

/// Returns the type in `<4 x i32> undef, i32 0`, where the last number says that it is unsigned.
fn unsigned(body: &str) -> Option<String> {
    let (ty, signed) = body.rsplit_once(", i32 ")?;
    if signed.trim() != "0" {
        return None;
    }
    let ty = ty.rsplit_once(' ')?.0.trim_matches(['<', '>']);
    let (count, scalar) = ty.split_once(" x ").unwrap_or(("", ty));
    let scalar = match scalar {
        "i8" => "uchar",
        "i16" => "ushort",
        "i32" => "uint",
        "i64" => "ulong",
        _ => return None,
    };
    Some(format!("{scalar}{count}"))
}

/// Returns the strings of a metadata tuple body: `!"a", !"b"`.
fn strings_of(body: &str) -> Vec<String> {
    body.split("!\"")
        .skip(1)
        .map(|part| part.split('"').next().unwrap_or_default().to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const IR: &str = r#"
define dso_local spir_kernel void @f(ptr addrspace(1) align 4 %a, i32 %b) #0 !kernel_arg_addr_space !4 !kernel_arg_type !6 !kernel_arg_type_qual !7 !vec_type_hint !8 {
!4 = !{i32 1, i32 0}
!6 = !{!"uint*", !"my_t"}
!7 = !{!"const restrict", !""}
!8 = !{<2 x i8> undef, i32 0}
"#;

    #[test]
    fn takes_types_and_qualifiers() {
        assert_eq!(
            descriptions(IR),
            [
                "kernel_vec_type_hint.f.uchar2",
                "kernel_arg_type.f.uint*,my_t,",
                "kernel_arg_type_qual.f.const restrict,,"
            ]
        );
    }

    #[test]
    fn only_unsigned_hints_are_taken() {
        assert_eq!(unsigned("i64 undef, i32 0").as_deref(), Some("ulong"));
        assert_eq!(unsigned("i64 undef, i32 1"), None);
        assert_eq!(unsigned("<4 x float> undef, i32 0"), None);
    }

    #[test]
    fn strings_stand_before_the_names() {
        let capability = 2 << 16 | Op::Capability as u32;
        let name = 3 << 16 | Op::Name as u32;
        let mut words = vec![0x0723_0203, 0x10000, 0, 10, 0, capability, 4, name, 1, 0];
        add(&mut words, IR);
        assert_eq!(words[3], 13);
        assert_eq!(words[5..7], [capability, 4]);
        assert_eq!(words[7] & 0xffff, Op::String as u32);
        assert_eq!(words[words.len() - 3..], [name, 1, 0]);
    }
}
