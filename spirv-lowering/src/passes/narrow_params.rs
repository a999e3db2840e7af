//! Narrows 64-bit block parameters to 32 bits where nothing is lost: loop counters that the source compiler widened.
//!
//! Either only the low half is ever looked at (every use cuts or masks it, or passes it to such a parameter), or
//! every argument is the extension of a narrower value (or a constant that is, or such a parameter). The parameter
//! becomes an `i32`, extended again at the start of its block; arguments are cut at the jump. `const_fold` removes
//! what that makes redundant.

use crate::analysis::cfg::Cfg;
use crate::ir::entity::{Block, Inst, SecondaryMap, Value};
use crate::ir::function::{Function, ValueDef};
use crate::ir::op::Op;
use crate::ir::subst::Subst;
use crate::ir::types::Type;

/// What is known of a parameter so far; both hold until refuted.
#[derive(Clone, Copy, PartialEq, Default)]
struct Known {
    candidate: bool,
    /// Only the low half is used.
    low_only: bool,
    /// The high half is zero.
    zero_high: bool,
    /// The high half is the sign of the low one.
    sign_high: bool,
}

/// Runs the pass. True if the function changed.
pub fn run(func: &mut Function) -> bool {
    if func.structure.is_some() {
        return false;
    }
    let cfg = Cfg::new(func);
    let mut known: SecondaryMap<Value, Known> = SecondaryMap::new();
    let mut any = false;
    for &block in cfg.rpo().iter().skip(1) {
        for &param in &func.blocks[block].params {
            if func.ty(param) == Type::I64 {
                known[param] = Known {
                    candidate: true,
                    low_only: true,
                    zero_high: true,
                    sign_high: true,
                };
                any = true;
            }
        }
    }
    if !any {
        return false;
    }
    // Uses by instructions are final; those by jumps depend on the parameters they feed.
    for &block in &func.layout {
        for &inst in &func.blocks[block].insts {
            let data = &func.insts[inst];
            let cuts = match data.op {
                Op::Trunc => true,
                Op::And => data
                    .args
                    .iter()
                    .any(|&v| func.as_const(v).is_some_and(|k| k >> 32 == 0)),
                _ => false,
            };
            if !cuts {
                for &arg in data.args.iter().filter(|&&v| func.ty(v) == Type::I64) {
                    known[arg].low_only = false;
                }
            }
        }
        let data = &func.blocks[block];
        match &data.term {
            crate::ir::function::Terminator::Switch(v, ..) => known[*v].low_only = false,
            crate::ir::function::Terminator::Return(values) => {
                values.iter().for_each(|&v| known[v].low_only = false);
            }
            _ => {}
        }
    }
    // Refute through the jumps until nothing changes; each round refutes something or is the last.
    loop {
        let mut changed = false;
        for &block in cfg.rpo() {
            for target in func.blocks[block].term.targets() {
                let params = &func.blocks[target.block].params;
                for (&param, &arg) in params.iter().zip(&target.args) {
                    if !known[param].candidate {
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
                    if known[arg].candidate && known[arg].low_only && !known[param].low_only {
                        known[arg].low_only = false;
                        changed = true;
                    }
                }
            }
        }
        if !changed {
            break;
        }
    }

    let narrows = |k: Known| k.candidate && (k.low_only || k.zero_high || k.sign_high);
    let mut subst = Subst::new();
    let mut changed = false;
    for &block in cfg.rpo().iter().skip(1) {
        let mut head: Vec<Inst> = Vec::new();
        for i in 0..func.blocks[block].params.len() {
            let param = func.blocks[block].params[i];
            let k = known[param];
            if !narrows(k) {
                continue;
            }
            changed = true;
            let op = if k.zero_high || !k.sign_high {
                Op::ZExt
            } else {
                Op::SExt
            };
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
    for &block in cfg.rpo() {
        cut_arguments(func, block);
    }
    subst.apply(func);
    true
}

/// Whether the high half of a value is known to be zero, and whether it is known to be the sign of the low half.
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
