//! Finds 64-bit induction variables that 32 bits are enough for, because the exit of their loop
//! keeps them and their next values below 2^32.

use super::cfg::Cfg;
use super::control_flow::ControlFlow;
use super::dom::DomTree;
use super::iterations::trips;
use super::loops::Loop;
use crate::ir::entity::{Block, Inst, Value};
use crate::ir::function::{Function, Terminator, ValueDef};
use crate::ir::op::{IntCond, Op};
use crate::ir::types::Type;

/// An induction variable: a parameter of a loop header that grows by a constant in each iteration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InductionVariable {
    /// The parameter.
    pub param: Value,
    /// The instruction that computes the next value, and its block.
    pub next: Inst,
    #[allow(missing_docs)]
    pub block: Block,
    /// The constant added in each iteration, in two's complement.
    pub step: u64,
}

/// The highest value below 2^32.
const LOW: u64 = u32::MAX as u64;

/// Returns the 64-bit induction variables of which all values and next values are below 2^32.
pub fn within_32_bits(func: &Function, flow: &ControlFlow) -> Vec<InductionVariable> {
    let cfg = &flow.cfg;
    let mut found = Vec::new();
    let long = |block: &Block| {
        let params = &func.blocks[*block].params;
        cfg.preds(*block).len() > 1 && params.iter().any(|&v| func.ty(v) == Type::I64)
    };
    if !cfg.rpo().iter().any(long) {
        return found;
    }
    for lp in flow.loops().loops.values() {
        let [latch] = lp.latches[..] else { continue };
        if Some(lp.header) == func.entry() || !long(&lp.header) {
            continue;
        }
        let this = Examined {
            func,
            cfg,
            dom: flow.dom(),
            lp,
            latch,
        };
        for index in 0..func.blocks[lp.header].params.len() {
            if let Some((variable, starts)) = this.variable(index) {
                if this.ends_by_number(&variable, &starts) || this.ends_by_test(&variable, &starts)
                {
                    found.push(variable);
                }
            }
        }
    }
    found
}

/// A loop with one latch.
struct Examined<'f> {
    func: &'f Function,
    cfg: &'f Cfg,
    dom: &'f DomTree,
    lp: &'f Loop,
    latch: Block,
}

impl Examined<'_> {
    fn is_inside(&self, block: Block) -> bool {
        self.lp.blocks.contains(&block)
    }

    /// Returns a header parameter as an induction variable, with the constants that it starts from.
    fn variable(&self, index: usize) -> Option<(InductionVariable, Vec<u64>)> {
        let func = self.func;
        let param = func.blocks[self.lp.header].params[index];
        if func.ty(param) != Type::I64 {
            return None;
        }
        let (mut next, mut starts) = (None, Vec::new());
        for &pred in self.cfg.preds(self.lp.header) {
            for target in func.blocks[pred].term.targets() {
                if target.block != self.lp.header {
                    continue;
                }
                let arg = *target.args.get(index)?;
                if pred != self.latch {
                    starts.push(func.as_const(arg)?);
                } else if *next.get_or_insert(arg) != arg {
                    return None;
                }
            }
        }
        let next = func.def_inst(next?)?;
        let (Op::IAdd, &[base, step]) = (func.insts[next].op, &func.insts[next].args[..]) else {
            return None;
        };
        let mut blocks = self.lp.blocks.iter().copied();
        let block = blocks.find(|&b| func.blocks[b].insts.contains(&next))?;
        let variable = InductionVariable {
            param,
            next,
            block,
            step: func.as_const(step)?,
        };
        (base == param).then_some((variable, starts))
    }

    /// Returns true if the trip count is known and keeps all values below 2^32.
    fn ends_by_number(&self, variable: &InductionVariable, starts: &[u64]) -> bool {
        let Some(n) = trips(self.func, self.lp) else {
            return false;
        };
        let way = i128::from(variable.step as i64) * i128::from(n);
        let fits = |at: i128| (0..=i128::from(LOW)).contains(&at);
        let starts = starts.iter().map(|&s| i128::from(s as i64));
        starts.into_iter().all(|s| fits(s) && fits(s + way))
    }

    /// Returns true if an exit in the header or the latch is taken before the variable has passed a
    /// value below 2^32.
    fn ends_by_test(&self, variable: &InductionVariable, starts: &[u64]) -> bool {
        [self.lp.header, self.latch]
            .into_iter()
            .any(|block| self.test_bounds(block, variable, starts) == Some(true))
    }

    fn test_bounds(
        &self,
        block: Block,
        variable: &InductionVariable,
        starts: &[u64],
    ) -> Option<bool> {
        let func = self.func;
        let Terminator::Branch(cond, yes, no) = &func.blocks[block].term else {
            return None;
        };
        let stays_if = match (self.is_inside(yes.block), self.is_inside(no.block)) {
            (true, false) => true,
            (false, true) => false,
            _ => return None,
        };
        let test = &func.insts[func.def_inst(*cond)?];
        let (Op::ICmp(kind), &[at, end]) = (test.op, &test.args[..]) else {
            return None;
        };
        let most = self.most(end)?;
        let step = variable.step;
        let first = *starts.iter().max()?;
        if step == 0 || step > LOW || first > LOW - step {
            return Some(false);
        }
        let of_next = func.def_inst(at) == Some(variable.next);
        if !of_next && at != variable.param {
            return None;
        }
        // The highest value of the variable when the next one is computed. Where the variable itself is tested that may be one step
        // further, unless the next value is computed only after the test.
        let tested_first = of_next || (block == self.lp.header && variable.block != block);
        let last = if tested_first {
            most.checked_sub(1)
        } else {
            (most + step).checked_sub(1)
        };
        Some(match (kind, stays_if) {
            // It goes on from values below the end alone.
            (IntCond::Ult, true) | (IntCond::Uge, false) => {
                last.is_none_or(|last| last <= LOW - step)
            }
            // It meets the end, one step after the other, if it starts before.
            (IntCond::Ne, true) | (IntCond::Eq, false) => {
                let before = first + u64::from(of_next);
                step == 1
                    && last.is_none_or(|last| last < LOW || tested_first)
                    && self.is_outside(end)
                    && (before == 0 || self.is_at_least(end, before))
            }
            _ => false,
        })
    }

    /// Returns an upper bound of a value that is below 2^32.
    fn most(&self, value: Value) -> Option<u64> {
        if let Some(bits) = self.func.as_const(value) {
            return (bits <= LOW).then_some(bits);
        }
        self.low(value).map(|low| self.func.ty(low).mask())
    }

    /// Returns the operand that a value zero-extends from 32 bits or fewer.
    fn low(&self, value: Value) -> Option<Value> {
        let data = &self.func.insts[self.func.def_inst(value)?];
        let low = *data.args.first()?;
        (data.op == Op::ZExt && self.func.ty(low) != Type::Bool).then_some(low)
    }

    /// Returns true if the value is loop-invariant.
    fn is_outside(&self, value: Value) -> bool {
        match self.func.values[value].def {
            ValueDef::Param(block, _) => !self.is_inside(block),
            ValueDef::Result(inst, _) => {
                (self.lp.blocks.iter()).all(|&block| !self.func.blocks[block].insts.contains(&inst))
            }
        }
    }

    /// Returns true if a value is at least `number` wherever the loop is entered: it is such a
    /// constant, or a dominating branch ensures it.
    fn is_at_least(&self, value: Value, number: u64) -> bool {
        if let Some(bits) = self.func.as_const(value) {
            return bits >= number;
        }
        let low = self.low(value);
        let mut at = self.lp.header;
        while let Some(above) = self.dom.idom(at) {
            // The only way from there to here.
            let mut ways = self.cfg.preds(at).iter();
            let only = ways.all(|&p| p == above || (at == self.lp.header && p == self.latch));
            if let (true, Terminator::Branch(cond, yes, no)) = (only, &self.func.blocks[above].term)
            {
                if yes.block != no.block {
                    let sees = self.func.def_inst(*cond).map(|inst| &self.func.insts[inst]);
                    if let Some((Op::ICmp(kind), &[x, k])) = sees.map(|d| (d.op, &d.args[..])) {
                        let known = (Some(x) == low || x == value)
                            .then(|| self.func.as_const(k))
                            .flatten();
                        let bits = self.func.ty(x).bits();
                        if known.is_some_and(|k| least(kind, yes.block == at, k, bits) >= number) {
                            return true;
                        }
                    }
                }
            }
            at = above;
        }
        false
    }
}

/// Returns the least unsigned value that satisfies a comparison with a constant of `bits` bits, as
/// far as the comparison bounds it.
fn least(kind: IntCond, holds: bool, k: u64, bits: u32) -> u64 {
    use IntCond::*;
    let positive = k >> (bits - 1) == 0;
    match (kind, holds) {
        (Eq, true) | (Ne, false) | (Uge, true) | (Ult, false) => k,
        (Ne, true) | (Eq, false) => u64::from(k == 0),
        (Ugt, true) | (Ule, false) => k.saturating_add(1),
        // Values that are no less than one that is not negative are not either.
        (Sge, true) | (Slt, false) if positive => k,
        (Sgt, true) | (Sle, false) if positive => k + 1,
        _ => 0,
    }
}
