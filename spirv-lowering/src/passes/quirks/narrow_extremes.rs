//! Takes minima and maxima of 8- and 16-bit integers in 32 bits: NVIDIA's compiler loses iterations of loops whose trip count is
//! such a maximum.
//!
//! `const_fold` makes them narrow again: it does not run after this pass.

use crate::edit::rewrite::{rewrite, InstEdit};
use crate::error::Result;
use crate::ir::function::Function;
use crate::ir::op::Op;
use crate::ir::types::Type;
use rustc_hash::FxHashMap;

/// Runs the pass.
pub fn run(func: &mut Function) -> Result<()> {
    // The results in 32 bits, by those in fewer, and how they are extended.
    let mut wide_results = FxHashMap::default();
    rewrite(func, |r, inst| {
        let data = r.data(inst);
        if let (Op::ZExt | Op::SExt, &[value], &[result]) =
            (data.op, &data.args[..], &data.results[..])
        {
            let known = wide_results.get(&(r.resolve(value), data.op)).copied();
            return Ok(match known.filter(|_| r.func.ty(result) == Type::I32) {
                Some(wide) => r.replace_result(inst, wide),
                None => InstEdit::Keep,
            });
        }
        let &[a, b] = data.args.as_slice() else {
            return Ok(InstEdit::Keep);
        };
        let extend = match data.op {
            Op::UMin | Op::UMax => Op::ZExt,
            Op::SMin | Op::SMax => Op::SExt,
            _ => return Ok(InstEdit::Keep),
        };
        let (a, b) = (r.resolve(a), r.resolve(b));
        let ty = r.func.ty(a);
        if !matches!(ty, Type::I8 | Type::I16) {
            return Ok(InstEdit::Keep);
        }
        let wide = [a, b].map(|value| r.op(extend, [value], Type::I32));
        let wide = r.same(data.op, wide);
        let result = r.op(Op::Trunc, [wide], ty);
        wide_results.insert((result, extend), wide);
        Ok(r.replace_result(inst, result))
    })
}
