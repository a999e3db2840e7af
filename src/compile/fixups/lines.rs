//! Source lines, which LLVM's own SPIR-V target leaves out: a call of an undefined function is
//! written into the IR before each instruction of another line than the one before it, and `OpLine`
//! replaces it in the SPIR-V.

use crate::compile::edit::{instruction, opcode, Change, ModuleEdit};
use rustc_hash::{FxHashMap, FxHashSet};
use spirv::{Decoration, Op};
use spirv_lowering::insts::string_words;

/// The name of the undefined function.
const MARK: &str = "__pumice_line";

/// Returns LLVM's textual IR after the passes, with marks.
pub fn marked(text: &str) -> String {
    let lines = lines_by_number(text);
    let mut out = String::with_capacity(text.len() * 2);
    let mut last = 0;
    for line in text.split_inclusive('\n') {
        // A block begins: nobody knows which one came before it.
        if !line.starts_with(' ') {
            last = 0;
        }
        // Values of phis come first in a block; what begins with a bracket is the end of a switch.
        let inside =
            line.starts_with("  ") && !line.starts_with("  ]") && !line.contains(" = phi ");
        let number = line.rsplit_once(", !dbg !").filter(|_| inside);
        let number = number.and_then(|(_, rest)| rest.trim_end().parse::<u32>().ok());
        if let Some(&found) = number.and_then(|number| lines.get(&number)) {
            if found != last && found != 0 {
                out += &format!("  call spir_func void @{MARK}(i32 {found})\n");
                last = found;
            }
        }
        out += line;
    }
    out += &format!("\ndeclare spir_func void @{MARK}(i32)\n");
    out
}

/// Returns the source line of each piece of metadata that is a location.
fn lines_by_number(text: &str) -> FxHashMap<u32, u32> {
    let locations = text.lines().filter_map(|line| {
        let (number, rest) = line.strip_prefix('!')?.split_once(" = ")?;
        let rest = rest.strip_prefix("distinct ").unwrap_or(rest);
        let rest = rest.strip_prefix("!DILocation(line: ")?;
        let digits = rest.split([',', ')']).next()?;
        Some((number.parse().ok()?, digits.parse().ok()?))
    });
    locations.collect()
}

/// Returns SPIR-V of marked IR, with lines in place of the marks, or `None` if it has an unexpected
/// form.
pub fn restored(words: &[u32]) -> Option<Vec<u32>> {
    let mut edit = ModuleEdit::of(words)?;
    let name = string_words(MARK.as_bytes());
    let mut marks: FxHashSet<u32> = FxHashSet::default();
    let mut constants: FxHashMap<u32, u32> = FxHashMap::default();
    for inst in &edit.insts {
        match (opcode(inst), &**inst) {
            (Some(Op::Name), &[_, id, ref rest @ ..]) if rest == name => {
                marks.insert(id);
            }
            (Some(Op::Constant), &[_, _, id, value]) => {
                constants.insert(id, value);
            }
            _ => {}
        }
    }
    if marks.is_empty() {
        return Some(words.to_vec());
    }
    let file = edit.new_id();
    // Strings stand before names.
    let at = edit.position(|op| matches!(op, Op::Name | Op::MemberName | Op::Decorate));
    edit.insert(
        at,
        [instruction(
            Op::String,
            &[&[file], &string_words(b"")[..]].concat(),
        )],
    );
    let mut dropping = false;
    edit.rewrite(|_, inst| {
        let id = |at: usize| inst.get(at).is_some_and(|id| marks.contains(id));
        let change = match opcode(inst)? {
            Op::Name if id(1) => Change::Drop,
            Op::Decorate
                if id(1) && inst.get(2) == Some(&(Decoration::LinkageAttributes as u32)) =>
            {
                Change::Drop
            }
            Op::Function if id(2) => {
                dropping = true;
                Change::Drop
            }
            Op::FunctionEnd if dropping => {
                dropping = false;
                Change::Drop
            }
            _ if dropping => Change::Drop,
            Op::FunctionCall if id(3) => {
                let line = inst.get(4).and_then(|id| constants.get(id)).copied();
                Change::Become(vec![instruction(Op::Line, &[file, line?, 0])])
            }
            _ => Change::Keep,
        };
        Some(change)
    })?;
    Some(edit.words())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::edit::tests::{inst, module, module_bound};

    #[test]
    fn marks_stand_before_other_lines() {
        let text = "define void @f() {\nentry:\n  %p = phi i32 [ 0, %a ], !dbg !4\n  %a = load i32, ptr %x, align 4, !dbg !4\n  \
                    %b = load i32, ptr %x, align 4, !dbg !4\n  store i32 1, ptr %x, align 4, !dbg !5\n  \
                    switch i32 %a, label %d [\n    i32 1, label %e\n  ], !dbg !4\nd:\n  ret void, !dbg !5\n}\n\
                    !4 = !DILocation(line: 7, column: 3, scope: !1)\n!5 = distinct !DILocation(line: 9, scope: !1)\n";
        let marked = marked(text);
        let calls: Vec<&str> = marked
            .lines()
            .zip(marked.lines().skip(1))
            .filter_map(|(mark, next)| {
                let line = mark.strip_prefix("  call spir_func void @__pumice_line(i32 ")?;
                assert!(
                    next.contains(if line == "7)" { "%a = load" } else { "!dbg !5" }),
                    "{next}"
                );
                Some(line)
            })
            .collect();
        assert_eq!(calls, ["7)", "9)", "9)"]);
    }

    #[test]
    fn lines_stand_where_marks_were() {
        let name = string_words(MARK.as_bytes());
        let named = inst(Op::Name, &[&[8], &name[..]].concat());
        let decorated = [&[8, Decoration::LinkageAttributes as u32], &name[..], &[1]].concat();
        let before = [inst(Op::Capability, &[6])];
        let inside = [inst(Op::Function, &[2, 9, 0, 3]), inst(Op::Label, &[10])];
        let marked = [
            before.to_vec(),
            vec![
                named,
                inst(Op::Decorate, &decorated),
                inst(Op::Constant, &[4, 5, 77]),
            ],
            vec![
                inst(Op::Function, &[2, 8, 0, 3]),
                inst(Op::FunctionParameter, &[4, 6]),
            ],
            vec![inst(Op::FunctionEnd, &[])],
            inside.to_vec(),
            vec![
                inst(Op::FunctionCall, &[2, 11, 8, 5]),
                inst(Op::Return, &[]),
            ],
        ]
        .concat();
        let wanted = [
            before.to_vec(),
            vec![inst(Op::String, &[90, 0]), inst(Op::Constant, &[4, 5, 77])],
            inside.to_vec(),
            vec![inst(Op::Line, &[90, 77, 0]), inst(Op::Return, &[])],
        ]
        .concat();
        assert_eq!(restored(&module(&marked)), Some(module_bound(91, &wanted)));
        assert_eq!(restored(&module(&before)), Some(module(&before)));
    }
}
