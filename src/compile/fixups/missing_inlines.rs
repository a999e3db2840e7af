//! Finds functions that a source has and its SPIR-V lacks: OpenCL C's plain `inline` is that of
//! C99, and clang emits no definition of such a function where it decides against inlining it
//! (`noinline`, or a call in a place that it considers cold).

use spirv::{Decoration, LinkageType, Op};
use spirv_lowering::insts::insts;

/// Returns true if the module imports functions that may be `inline` ones of the source.
pub fn any(words: &[u32], source: &str) -> bool {
    source.contains("inline") && imports(words).iter().any(|name| own(name, source))
}

/// Returns true if a name is one of the source's functions. Names of built-in functions are
/// mangled.
fn own(name: &str, source: &str) -> bool {
    !name.is_empty() && !name.starts_with("_Z") && source.contains(name)
}

/// Returns the names that a module imports.
fn imports(words: &[u32]) -> Vec<String> {
    let mut found = Vec::new();
    for inst in insts(words).map_while(|inst| inst) {
        match (inst.op(), inst.operands()) {
            (Some(Op::Decorate), &[_, decoration, ref name @ .., kind])
                if decoration == Decoration::LinkageAttributes as u32
                    && kind == LinkageType::Import as u32 =>
            {
                let bytes = name.iter().flat_map(|word| word.to_le_bytes());
                let bytes: Vec<u8> = bytes.take_while(|&byte| byte != 0).collect();
                found.extend(String::from_utf8(bytes));
            }
            (Some(Op::Function), _) => break,
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use spirv_lowering::insts::string_words;

    fn decorated(name: &[u8], kind: LinkageType) -> Vec<u32> {
        let mut inst = vec![0, 7, Decoration::LinkageAttributes as u32];
        inst.extend(string_words(name));
        inst.push(kind as u32);
        inst[0] = (inst.len() as u32) << 16 | Op::Decorate as u32;
        [vec![0x0723_0203, 0x1_0400, 0, 9, 0], inst].concat()
    }

    #[test]
    fn imports_of_the_source() {
        let source = "inline int half_of(int x) { return x / 2; }";
        let wanted = decorated(b"half_of", LinkageType::Import);
        assert_eq!(imports(&wanted), ["half_of"]);
        assert!(any(&wanted, source));
        assert!(!any(&wanted, "int half_of(int x);"));
        assert!(!any(&decorated(b"half_of", LinkageType::Export), source));
        assert!(!any(&decorated(b"_Z3sinf", LinkageType::Import), source));
        assert!(!any(&decorated(b"third_of", LinkageType::Import), source));
        // Cut short.
        assert!(!any(&wanted[..8], source));
    }
}
