//! Makes a whole program of a module in LLVM's textual IR: functions become internal, and those
//! that no kernel reaches are removed.
//!
//! OpenCL C functions are external unless they say `static`, so that a compiler has to keep all of
//! them, optimised and translated, although only kernels of the same source can call them once it
//! is built and not compiled for linking. A program that includes a library of functions consists
//! mostly of such.
//!
//! LLVM would remove the unused ones too, but only after it has read them, which takes most of the
//! time: a file of hashcat uses 22 of its 197 functions. Text that is not understood here stays: a
//! function becomes internal only if the whole beginning of its first line is known, and is removed
//! only if no text refers to it but that of such functions.

use std::collections::{HashMap, HashSet};

/// The words that may be between `define` and the calling convention of a function that becomes
/// internal. Others say visibility or linkage that is not understood here, and such a function is
/// left as it is.
const BEFORE: [&str; 3] = ["internal", "dso_local", "available_externally"];

/// Returns the module without the lists of what `__attribute__((used))` keeps: no linker reads
/// them, and LLVM's SPIR-V target fails on those that name variables in constant memory.
pub fn without_used_lists(ir: &str) -> String {
    ir.split_inclusive('\n')
        .filter(|line| {
            !["@llvm.used = ", "@llvm.compiler.used = "]
                .iter()
                .any(|l| line.starts_with(l))
        })
        .collect()
}

/// Returns the module with its functions internal, and without unused ones. Kernels, declarations
/// and variables stay, and so do functions whose names are in `keep`.
pub fn with_internal_functions(ir: &str, keep: &HashSet<String>) -> String {
    let items = items(ir, keep);
    let by_name: HashMap<&str, usize> = items
        .iter()
        .enumerate()
        .filter_map(|(index, item)| Some((item.name?, index)))
        .collect();
    // The search starts from all text that stays whatever happens.
    let mut used: Vec<bool> = items.iter().map(|item| item.name.is_none()).collect();
    let mut reached: Vec<usize> = (0..items.len()).filter(|&index| used[index]).collect();
    while let Some(index) = reached.pop() {
        for name in names(items[index].text) {
            if let Some(&other) = by_name.get(name) {
                if !std::mem::replace(&mut used[other], true) {
                    reached.push(other);
                }
            }
        }
    }
    let mut out = String::new();
    for (item, used) in items.iter().zip(used) {
        if used {
            out.push_str(item.prefix);
            out.push_str(item.text);
        }
    }
    out
}

/// A part of the module: a function that is or becomes internal, or anything else.
struct Item<'a> {
    /// The text that precedes it in the result.
    prefix: &'static str,
    /// The text, of a function from after its linkage on.
    text: &'a str,
    /// The name of a function.
    name: Option<&'a str>,
}

/// Returns the names of all functions that a module defines or declares.
pub fn function_names(ir: &str) -> impl Iterator<Item = &str> {
    ir.lines()
        .filter(|line| line.starts_with("define ") || line.starts_with("declare "))
        .filter_map(|line| names(line).next())
}

/// Splits the module into functions and the text between them.
fn items<'a>(ir: &'a str, keep: &HashSet<String>) -> Vec<Item<'a>> {
    let mut items = Vec::new();
    // Where the text that belongs to no item yet begins.
    let mut begin = 0;
    let mut at = 0;
    while let Some(line) = ir.get(at..).and_then(|r| r.split_inclusive('\n').next()) {
        let function = after_linkage(line).and_then(|text| Some((text, names(text).next()?)));
        let Some((text, name)) = function.filter(|(_, name)| !keep.contains(*name)) else {
            at += line.len();
            continue;
        };
        // The body ends with the first line that is a brace and nothing else.
        let start = at + line.len() - text.len();
        let rest = &ir[start..];
        let length = rest.find("\n}\n").map_or(rest.len(), |end| end + 3);
        items.push(Item {
            prefix: "",
            text: &ir[begin..at],
            name: None,
        });
        items.push(Item {
            prefix: "define internal ",
            text: &rest[..length],
            name: Some(name),
        });
        at = start + length;
        begin = at;
    }
    items.push(Item {
        prefix: "",
        text: &ir[begin..],
        name: None,
    });
    items
}

/// Returns what follows the linkage in the definition of a function that is to be internal.
fn after_linkage(line: &str) -> Option<&str> {
    let mut rest = line.strip_prefix("define ")?;
    loop {
        if rest.starts_with("spir_func ") {
            return Some(rest);
        }
        rest = BEFORE
            .iter()
            .find_map(|word| rest.strip_prefix(word)?.strip_prefix(' '))?;
    }
}

/// Returns the global names in a text, with their quotes if they have some, and whatever follows an
/// at-sign elsewhere.
pub(super) fn names(text: &str) -> impl Iterator<Item = &str> {
    text.split('@').skip(1).map(|after| {
        let bytes = after.as_bytes();
        let end = if bytes.first() == Some(&b'"') {
            bytes
                .iter()
                .skip(1)
                .position(|&b| b == b'"')
                .map(|at| at + 2)
        } else {
            bytes
                .iter()
                .position(|&b| !(b.is_ascii_alphanumeric() || b"._$-".contains(&b)))
        };
        &after[..end.unwrap_or(after.len())]
    })
}

#[cfg(test)]
mod tests {
    use super::{function_names, with_internal_functions};
    use std::collections::HashSet;

    fn alone(ir: &str) -> String {
        with_internal_functions(ir, &HashSet::new())
    }

    #[test]
    fn what_others_know_stays() {
        let ir = "define spir_func void @a() {\n  call void @b()\n}\n\
                  define spir_func void @b() {\n  ret\n}\n\
                  define spir_func void @c() {\n  ret\n}\n\
                  declare void @d()\n";
        assert_eq!(function_names(ir).collect::<Vec<_>>(), ["a", "b", "c", "d"]);
        let kept = with_internal_functions(ir, &HashSet::from(["a".to_owned(), "d".to_owned()]));
        let expected = "define spir_func void @a() {\n  call void @b()\n}\n\
                        define internal spir_func void @b() {\n  ret\n}\n\
                        declare void @d()\n";
        assert_eq!(kept, expected);
    }

    #[test]
    fn functions_become_internal() {
        for (before, after) in [
            (
                "define spir_func i32 @a",
                "define internal spir_func i32 @a",
            ),
            (
                "define dso_local spir_func void @a",
                "define internal spir_func void @a",
            ),
            (
                "define available_externally spir_func void @a",
                "define internal spir_func void @a",
            ),
            (
                "define internal spir_func void @a",
                "define internal spir_func void @a",
            ),
            (
                "define hidden spir_func void @a",
                "define hidden spir_func void @a",
            ),
            (
                "define dso_local spir_kernel void @a",
                "define dso_local spir_kernel void @a",
            ),
            ("declare spir_func void @a", "declare spir_func void @a"),
        ] {
            let module = |head: &str| {
                format!("@s = constant ptr @a\n\n{head}() #0 {{\n  ret\n}}\n\n!0 = !{{}}\n")
            };
            assert_eq!(alone(&module(before)), module(after));
        }
        for text in ["", "define spir_func ", "x\ndefine hidden", "}\n"] {
            assert_eq!(alone(text), text);
        }
    }

    #[test]
    fn unused_functions_go() {
        let function = |name: &str, body: &str| {
            format!("; Function\ndefine internal spir_func void @{name}(ptr %p) {{\n  {body}\n}}\n")
        };
        let kernel = "define spir_kernel void @k() {\n  call spir_func void @b()\n}\n";
        let kept = [
            function("\"a b\"", "ret"),
            function("b", "call spir_func void @\"a b\"()"),
            kernel.to_owned(),
            "@table = constant [1 x ptr] [ptr @c.1]\n".to_owned(),
            function("c.1", "call spir_func void @c.1()"),
        ];
        let unused = [
            function("d", "call spir_func void @e()"),
            function("e", "call spir_func void @d(ptr @b)"),
            function("c", "ret"),
        ];
        let ir = [&kept[..2], &unused[..2], &kept[2..], &unused[2..]]
            .concat()
            .concat();
        // The comments before functions stay.
        let expected = [
            &kept[..2],
            &["; Function\n".repeat(2)],
            &kept[2..],
            &["; Function\n".into()],
        ]
        .concat()
        .concat();
        assert_eq!(alone(&ir), expected);
    }

    /// Checks that a function whose end is missing takes the rest of the text.
    #[test]
    fn cut_off() {
        let ir = "define spir_func void @a() {\n  ret\n";
        assert_eq!(alone(ir), "");
        let ir = format!("@x = global ptr @a\n{ir}");
        assert!(alone(&ir).contains("define internal spir_func void @a() {\n  ret\n"));
    }
}
