//! Lowers dot products of four bytes each, packed into words, to plain arithmetic where the target
//! has no fast instruction.

use crate::edit::rewrite::{rewrite, InstEdit, Rewriter};
use crate::error::Result;
use crate::ir::entity::Value;
use crate::ir::function::Function;
use crate::ir::op::Op;
use crate::ir::types::Type;
use crate::target::Target;

/// Extracts byte `index` of a word, extended.
fn byte(r: &mut Rewriter, word: Value, index: u64, signed: bool) -> Value {
    if signed {
        let top = r.with_const(Op::Shl, word, 24 - index * 8);
        r.with_const(Op::AShr, top, 24)
    } else {
        let low = r.with_const(Op::LShr, word, index * 8);
        r.with_const(Op::And, low, 0xff)
    }
}

/// Runs the pass.
pub fn run(func: &mut Function, target: &Target) -> Result<()> {
    rewrite(func, |r, inst| {
        let data = r.data(inst);
        let (kind, a_signed, b_signed) = match data.op {
            Op::SDot4 => (0, true, true),
            Op::UDot4 => (1, false, false),
            Op::SUDot4 => (2, true, false),
            _ => return Ok(InstEdit::Keep),
        };
        let &[a, b] = data.args.as_slice() else {
            return Ok(InstEdit::Keep);
        };
        if target.dot_4x8.get(kind) == Some(&true) {
            return Ok(InstEdit::Keep);
        }
        let (a, b) = (r.resolve(a), r.resolve(b));
        let mut sum = r.konst(Type::I32, 0);
        for index in 0..4 {
            let (x, y) = (byte(r, a, index, a_signed), byte(r, b, index, b_signed));
            let product = r.same(Op::IMul, [x, y]);
            sum = r.same(Op::IAdd, [sum, product]);
        }
        Ok(r.replace_result(inst, sum))
    })
}
