//! Computes 64-bit values in 32 bits where only their low half is used.
//!
//! The low half of a sum, product, bitwise operation or left shift depends on the low halves of its
//! operands alone; selections and block parameters pass it on. So a value needs its high half only
//! if a use does: every use except a truncation (`trunc`, a mask that is 0 above, a left shift by
//! 32 or more) and those operations whose own high half is not needed. The source compiler widens a
//! `uint` that counts or indexes to such a value, and truncates it in each use.
//!
//! A value whose high half is not needed becomes an `i32` in place; its operands are truncated
//! where they are wider. The truncations become nothing, or an extension of the `i32`. An induction
//! variable whose limit is compared in 64 bits stays as wide, unless its values are known to fit,
//! which `narrow_params` handles.

use crate::ir::entity::{Block, Inst, SecondaryMap, Value};
use crate::ir::function::{Function, Terminator, ValueDef};
use crate::ir::op::Op;
use crate::ir::subst::Subst;
use crate::ir::types::Type;

/// The way in which an instruction uses its 64-bit operands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    /// Uses their low halves alone.
    Cuts,
    /// Computes the low half of its result from their low halves.
    HandsOn,
    /// Uses all of their bits.
    Whole,
}

/// Runs the pass. Returns true if the function changed.
pub fn run(func: &mut Function) -> bool {
    if func.structure.is_some() || !func.values.values().any(|v| v.ty == Type::I64) {
        return false;
    }
    let whole = wanted_whole(func);
    let mut narrow: SecondaryMap<Value, bool> = SecondaryMap::new();
    let mut any = false;
    for (i, &block) in func.layout.iter().enumerate() {
        let params = func.blocks[block].params.iter().filter(|_| i > 0);
        let results = (func.blocks[block].insts.iter())
            .filter(|&&inst| use_of(func, inst) == Use::HandsOn)
            .map(|&inst| &func.insts[inst].results[0]);
        for &value in params.chain(results) {
            if func.ty(value) == Type::I64 && !whole[value] {
                narrow[value] = true;
                any = true;
            }
        }
    }
    if !any {
        return false;
    }
    let values: Vec<Value> = func.values.keys().filter(|&v| narrow[v]).collect();
    for value in values {
        func.values[value].ty = Type::I32;
    }
    let mut this = Narrower {
        func,
        narrow,
        subst: Subst::new(),
        out: Vec::new(),
    };
    for block in this.func.layout.clone() {
        this.block(block);
    }
    let mut subst = this.subst;
    subst.apply(func);
    true
}

/// Returns the values whose high half is needed.
fn wanted_whole(func: &Function) -> SecondaryMap<Value, bool> {
    let mut whole: SecondaryMap<Value, bool> = SecondaryMap::new();
    let mut work = Vec::new();
    let mut want = |value: Value, work: &mut Vec<Value>| {
        if func.ty(value) == Type::I64 && !std::mem::replace(&mut whole[value], true) {
            work.push(value);
        }
    };
    // What is handed on to each parameter.
    let mut arguments: SecondaryMap<Value, Vec<Value>> = SecondaryMap::new();
    for &block in &func.layout {
        for &inst in &func.blocks[block].insts {
            if use_of(func, inst) == Use::Whole {
                func.insts[inst]
                    .args
                    .iter()
                    .for_each(|&v| want(v, &mut work));
            }
        }
        match &func.blocks[block].term {
            Terminator::Switch(value, ..) => want(*value, &mut work),
            Terminator::Return(values) => values.iter().for_each(|&v| want(v, &mut work)),
            _ => {}
        }
        for target in func.blocks[block].term.targets() {
            let params = &func.blocks[target.block].params;
            for (&param, &arg) in params.iter().zip(&target.args) {
                if func.ty(param) == Type::I64 {
                    arguments[param].push(arg);
                }
            }
        }
    }
    while let Some(value) = work.pop() {
        match func.values[value].def {
            ValueDef::Param(..) => arguments[value].iter().for_each(|&v| want(v, &mut work)),
            ValueDef::Result(inst, _) if use_of(func, inst) == Use::HandsOn => {
                func.insts[inst]
                    .args
                    .iter()
                    .for_each(|&v| want(v, &mut work));
            }
            ValueDef::Result(..) => {}
        }
    }
    whole
}

/// Returns how much of its 64-bit operands an instruction uses.
fn use_of(func: &Function, inst: Inst) -> Use {
    let data = &func.insts[inst];
    let result = match data.results[..] {
        [result] => func.ty(result),
        _ => return Use::Whole,
    };
    match data.op {
        Op::Trunc => Use::Cuts,
        Op::And if result == Type::I64 && data.args.iter().any(|&v| is_low(func, v)) => Use::Cuts,
        Op::Shl if result == Type::I64 => match func.as_const(data.args[1]) {
            Some(0..=31) => Use::HandsOn,
            Some(32..=63) => Use::Cuts,
            _ => Use::Whole,
        },
        Op::IAdd | Op::ISub | Op::IMul | Op::INeg | Op::And | Op::Or | Op::Xor | Op::Not
            if result == Type::I64 =>
        {
            Use::HandsOn
        }
        Op::Select if result == Type::I64 => Use::HandsOn,
        _ => Use::Whole,
    }
}

/// Returns true if the high half of a value is zero.
fn is_low(func: &Function, value: Value) -> bool {
    if let Some(bits) = func.as_const(value) {
        return bits >> 32 == 0;
    }
    func.def_inst(value)
        .is_some_and(|inst| func.insts[inst].op == Op::ZExt)
}

struct Narrower<'f> {
    func: &'f mut Function,
    /// The values that have become `i32`.
    narrow: SecondaryMap<Value, bool>,
    subst: Subst,
    out: Vec<Inst>,
}

impl Narrower<'_> {
    fn block(&mut self, block: Block) {
        for inst in std::mem::take(&mut self.func.blocks[block].insts) {
            self.inst(inst);
        }
        let mut term = std::mem::take(&mut self.func.blocks[block].term);
        for target in term.targets_mut() {
            for (i, arg) in target.args.iter_mut().enumerate() {
                if self.narrow[self.func.blocks[target.block].params[i]] {
                    *arg = self.low(*arg);
                }
            }
        }
        self.func.blocks[block].term = term;
        self.func.blocks[block].insts = std::mem::take(&mut self.out);
    }

    fn inst(&mut self, inst: Inst) {
        let data = &self.func.insts[inst];
        let (op, line) = (data.op, data.line);
        let takes_narrow = data.args.iter().any(|&v| self.narrow[v]);
        let result = data.results.first().copied();
        match (op, result) {
            (Op::Trunc, Some(result)) if takes_narrow && self.func.ty(result) == Type::I32 => {
                self.subst.set(result, data.args[0]);
                return;
            }
            (_, Some(result)) if self.narrow[result] => {
                for i in 0..self.func.insts[inst].args.len() {
                    let arg = self.func.insts[inst].args[i];
                    if self.func.ty(arg) != Type::Bool {
                        self.func.insts[inst].args[i] = self.low(arg);
                    }
                }
            }
            (Op::And, Some(_)) if takes_narrow => {
                let args = [data.args[0], data.args[1]].map(|v| self.low(v));
                let low = self.emit(Op::And, &args, Type::I32, line);
                let data = &mut self.func.insts[inst];
                data.op = Op::ZExt;
                data.args = [low].into_iter().collect();
            }
            (Op::Shl, Some(_)) if takes_narrow => {
                let value = data.args[0];
                let wide = self.emit(Op::ZExt, &[value], Type::I64, line);
                self.func.insts[inst].args[0] = wide;
            }
            _ => {}
        }
        self.out.push(inst);
    }

    fn emit(&mut self, op: Op, args: &[Value], ty: Type, line: u32) -> Value {
        let inst = self.func.make_inst(op, args.iter().copied(), &[ty]);
        self.func.insts[inst].line = line;
        self.out.push(inst);
        self.func.insts[inst].results[0]
    }

    /// Returns the low half of a value.
    fn low(&mut self, value: Value) -> Value {
        if self.func.ty(value) != Type::I64 {
            return value;
        }
        let made = self.func.def_inst(value).map(|inst| &self.func.insts[inst]);
        let (op, from) = match made.map(|data| (data.op, data.args.first().copied())) {
            Some((Op::Const(bits), _)) => (Op::Const(bits & Type::I32.mask()), None),
            Some((Op::Undef, _)) => (Op::Undef, None),
            Some((Op::ZExt | Op::SExt, Some(x))) if self.func.ty(x) == Type::I32 => return x,
            Some((op @ (Op::ZExt | Op::SExt), from)) => (op, from),
            _ => (Op::Trunc, Some(value)),
        };
        self.emit(op, from.as_slice(), Type::I32, 0)
    }
}
