//! Keeps the variables of a module that has no function, which LLVM's own SPIR-V target leaves
//! out.
//!
//! A function named after one of the variables stands beside them, so that no two modules that can
//! be linked have the same.

use spirv::Op;
use spirv_lowering::insts::insts;

/// Returns true for a module without functions, whose variables may be lost.
pub fn perhaps_lost(words: &[u32]) -> bool {
    !insts(words)
        .flatten()
        .any(|inst| inst.op() == Some(Op::Function))
}

/// Returns a module in LLVM's textual IR with a function, if it has none but has variables that
/// others see.
pub fn with_function(ir: &str) -> String {
    if ir.lines().any(|line| line.starts_with("define ")) {
        return ir.to_owned();
    }
    let variable = ir.lines().find_map(|line| {
        let (name, rest) = line.strip_prefix('@')?.split_once(" = ")?;
        let hidden = ["private ", "internal "]
            .iter()
            .any(|word| rest.starts_with(word));
        (!hidden && !name.starts_with(['"', '.']) && !name.starts_with("llvm.")).then_some(name)
    });
    match variable {
        Some(name) => format!("{ir}\ndefine spir_func void @{name}.beside() {{\n  ret void\n}}\n"),
        None => ir.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_variable() {
        let ir =
            "@s = internal constant i32 1\n@e = local_unnamed_addr addrspace(2) constant i32 42\n";
        assert!(with_function(ir).ends_with("@e.beside() {\n  ret void\n}\n"));
        let hidden = "@s = internal constant i32 1\n";
        assert_eq!(with_function(hidden), hidden);
    }
}
