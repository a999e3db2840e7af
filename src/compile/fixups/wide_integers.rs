//! Finds integers of more than 64 bits, which LLVM makes of loop counters and nothing can execute.

use spirv::Op;
use spirv_lowering::insts::insts;

/// Returns true if the module has integers of more than 64 bits. LLVM computes the value of a
/// variable after a loop with one bit more than it has.
pub fn present(words: &[u32]) -> bool {
    for inst in insts(words) {
        let Some(inst) = inst else {
            return false;
        };
        match (inst.op(), inst.operands()) {
            (Some(Op::TypeInt), &[_, width, ..]) if width > 64 => return true,
            (Some(Op::Function), _) => return false,
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_integers_are_found() {
        let module = |width| [0x0723_0203, 0x10400, 0, 9, 0, 4 << 16 | 21, 1, width, 0];
        assert!(present(&module(65)));
        assert!(!present(&module(64)) && !present(&module(33)));
    }
}
