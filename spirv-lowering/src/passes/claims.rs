//! Collects the claims of the analyses that passes rely on, in a form that the interpreter checks:
//! those that stay true in what back ends get.

use super::narrow_params;
use crate::analysis::alignment::Alignments;
use crate::analysis::control_flow::ControlFlow;
use crate::analysis::iterations;
use crate::analysis::narrow_induction;
use crate::claims::{Bound, Claims};
use crate::ir::function::Function;
use crate::ir::module::Module;

/// The highest value of 32 bits.
const LOW: u64 = u32::MAX as u64;

/// Adds the claims about values of each work-item, and about loops.
pub fn bound(claims: &mut Claims, func: &Function, module: &Module) {
    let Claims {
        bounds, repeats, ..
    } = claims;
    let flow = ControlFlow::new(func);
    let mut claim = |value, bound, analysis| {
        if func.as_const(value).is_none() {
            bounds.entry(value).or_default().push((bound, analysis));
        }
    };
    let aligned = |id| module.globals.get(id).map_or(1, |global| global.align);
    let alignments = Alignments::new(func, &[], aligned);
    for &block in flow.cfg.rpo() {
        let insts = &func.blocks[block].insts;
        let results = insts.iter().flat_map(|&inst| &func.insts[inst].results);
        for &value in func.blocks[block].params.iter().chain(results) {
            let of = alignments.of(value);
            if of > 1 {
                claim(value, Bound::Multiple(of), "analysis::alignment");
            }
        }
    }
    for counter in narrow_induction::within_32_bits(func, &flow) {
        let results = &func.insts[counter.next].results;
        for &value in results.iter().chain([&counter.param]) {
            claim(value, Bound::AtMost(LOW), "analysis::narrow_induction");
        }
    }
    let [zero, sign] = narrow_params::narrow(func, &flow);
    for (values, bound) in [(zero, Bound::AtMost(LOW)), (sign, Bound::SignExtended)] {
        for value in values {
            claim(value, bound, "passes::narrow_params");
        }
    }
    let forest = flow.loops();
    for lp in forest.loops.values().filter(|_| forest.is_reducible()) {
        if let Some(most) = iterations::trips(func, lp) {
            repeats.insert(lp.header, most);
        }
    }
}
