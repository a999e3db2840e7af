//! Narrows 64-bit block parameters to 32 bits where nothing is lost: induction variables that the
//! source compiler widened.
//!
//! Either every argument is the extension of a narrower value (or a constant that fits, or such a
//! parameter), or the parameter is the induction variable of a loop whose exit keeps it within 32
//! bits (`analysis::narrow_induction`). The parameter becomes an `i32`, extended again at the start
//! of its block, and so does the next value of an induction variable; arguments are truncated at the jump.
//! `const_fold` removes what that makes redundant. `narrow_uses` narrows parameters of which only
//! the low half is used.

use crate::analysis::control_flow::{Analyses, ControlFlow};
use crate::analysis::narrow_induction::{self, InductionVariable};
use crate::ir::entity::{Block, Inst, SecondaryMap, Value};
use crate::ir::function::{Function, ValueDef};
use crate::ir::op::Op;
use crate::ir::subst::Subst;
use crate::ir::types::Type;

/// The assumptions about a parameter; both hold until refuted.
#[derive(Clone, Copy, PartialEq, Default)]
struct ParamFacts {
    candidate: bool,
    /// Set if the high half is proven to be zero, whatever the arguments look like.
    induction: bool,
    /// The high half is zero.
    zero_high: bool,
    /// The high half is the sign of the low one.
    sign_high: bool,
}

/// Returns the 64-bit parameters whose high half is zero, and those whose high half is the sign of
/// the low one.
pub fn narrow(func: &Function, flow: &ControlFlow) -> [Vec<Value>; 2] {
    let Some((known, _)) = facts(func, flow) else {
        return [Vec::new(), Vec::new()];
    };
    let all = |holds: fn(&ParamFacts) -> bool| {
        let values = func.values.keys();
        let values = values.filter(|&v| known[v].candidate && holds(&known[v]));
        values.collect()
    };
    [all(|facts| facts.zero_high), all(|facts| facts.sign_high)]
}

/// Returns what is known of the 64-bit parameters, and the induction variables among them; `None` if
/// there are no such parameters.
fn facts(
    func: &Function,
    flow: &ControlFlow,
) -> Option<(SecondaryMap<Value, ParamFacts>, Vec<InductionVariable>)> {
    let mut known: SecondaryMap<Value, ParamFacts> = SecondaryMap::new();
    let mut any = false;
    for &block in flow.cfg.rpo().iter().skip(1) {
        for &param in &func.blocks[block].params {
            if func.ty(param) == Type::I64 {
                known[param] = ParamFacts {
                    candidate: true,
                    induction: false,
                    zero_high: true,
                    sign_high: true,
                };
                any = true;
            }
        }
    }
    if !any {
        return None;
    }
    let variables = narrow_induction::within_32_bits(func, flow);
    for variable in &variables {
        known[variable.param] = ParamFacts {
            induction: true,
            sign_high: false,
            ..known[variable.param]
        };
    }
    // Refute through the jumps until nothing changes; each round refutes something or is the last.
    loop {
        let mut changed = false;
        for &block in flow.cfg.rpo() {
            for target in func.blocks[block].term.targets() {
                let params = &func.blocks[target.block].params;
                for (&param, &arg) in params.iter().zip(&target.args) {
                    if !known[param].candidate || known[param].induction {
                        continue;
                    }
                    let (zero, sign) = match known[arg] {
                        k if k.candidate => (k.zero_high, k.sign_high),
                        _ => high_half(func, arg),
                    };
                    let mut new = known[param];
                    new.zero_high &= zero;
                    new.sign_high &= sign;
                    changed |= new != known[param];
                    known[param] = new;
                }
            }
        }
        if !changed {
            return Some((known, variables));
        }
    }
}

/// Runs the pass. Returns true if the function changed.
pub fn run(func: &mut Function, analyses: &mut Analyses) -> bool {
    if func.structure.is_some() {
        return false;
    }
    let flow = analyses.control_flow(func);
    let Some((known, variables)) = facts(func, &flow) else {
        return false;
    };
    let narrows = |k: ParamFacts| k.candidate && (k.zero_high || k.sign_high);
    let mut subst = Subst::new();
    let mut changed = false;
    for &block in flow.cfg.rpo().iter().skip(1) {
        let mut head: Vec<Inst> = Vec::new();
        for i in 0..func.blocks[block].params.len() {
            let param = func.blocks[block].params[i];
            let k = known[param];
            if !narrows(k) {
                continue;
            }
            changed = true;
            let op = if k.zero_high { Op::ZExt } else { Op::SExt };
            let narrow = func.values.push(crate::ir::function::ValueData {
                ty: Type::I32,
                def: ValueDef::Param(block, i as u32),
            });
            func.blocks[block].params[i] = narrow;
            let inst = func.make_inst(op, [narrow], &[Type::I64]);
            subst.set(param, func.insts[inst].results[0]);
            head.push(inst);
        }
        func.blocks[block].insts.splice(0..0, head);
    }
    if !changed {
        return false;
    }
    for variable in &variables {
        step_in_32_bits(func, variable, &mut subst);
    }
    for &block in flow.cfg.rpo() {
        cut_arguments(func, block);
    }
    subst.apply(func);
    true
}

/// Computes the next value of an induction variable from its 32 bits. The variable keeps the name
/// of the parameter that it had before.
fn step_in_32_bits(func: &mut Function, variable: &InductionVariable, subst: &mut Subst) {
    let wide = subst.get(variable.param);
    let Some(narrow) = (func.def_inst(wide)).and_then(|i| func.insts[i].args.first().copied())
    else {
        return;
    };
    let step = func.append_const(variable.block, Type::I32, variable.step);
    let next = func.append1(variable.block, Op::IAdd, [narrow, step], Type::I32);
    // The two stand before the sum, which becomes their extension.
    let insts = &mut func.blocks[variable.block].insts;
    let made = insts.split_off(insts.len() - 2);
    let at = insts.iter().position(|&i| i == variable.next).unwrap_or(0);
    insts.splice(at..at, made);
    let data = &mut func.insts[variable.next];
    data.op = Op::ZExt;
    data.args = [next].into_iter().collect();
}

/// Returns two flags: the high half of a value is known to be zero, and it is known to be the sign
/// of the low half.
fn high_half(func: &Function, value: Value) -> (bool, bool) {
    if let Some(bits) = func.as_const(value) {
        return (bits >> 32 == 0, bits as i32 as i64 as u64 == bits);
    }
    let Some(inst) = func.def_inst(value) else {
        return (false, false);
    };
    let data = &func.insts[inst];
    match (data.op, data.args.first()) {
        (Op::Undef, _) => (true, true),
        (Op::ZExt, Some(&x)) => (true, func.ty(x).bits() < 32),
        (Op::SExt, Some(_)) => (false, true),
        _ => (false, false),
    }
}

/// Truncates the arguments whose parameter became an `i32`.
fn cut_arguments(func: &mut Function, block: Block) {
    let mut term = std::mem::take(&mut func.blocks[block].term);
    for target in term.targets_mut() {
        for (i, arg) in target.args.iter_mut().enumerate() {
            let param = func.blocks[target.block].params[i];
            if func.ty(param) == Type::I32 && func.ty(*arg) == Type::I64 {
                *arg = func.append1(block, Op::Trunc, [*arg], Type::I32);
            }
        }
    }
    func.blocks[block].term = term;
}
