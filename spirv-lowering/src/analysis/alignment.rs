//! Computes the alignment of addresses from the arithmetic that makes them.

use super::cfg::Cfg;
use crate::ir::entity::{Block, GlobalId, SecondaryMap, Value};
use crate::ir::function::Function;
use crate::ir::op::Op;

/// Alignments are known up to two to this power, 4096 bytes.
const MOST: u8 = 12;

/// The alignment of memory of a work-item's own, in bytes.
const OWN_ALIGN: u32 = 64;

/// Maps each integer and pointer to the number of its low bits that are always zero.
#[derive(Debug, Clone)]
pub struct Alignments {
    zeros: SecondaryMap<Value, u8>,
    /// Trusts what accesses claim of pointers that are loaded, converted from integers, returned or
    /// passed: they count as fully aligned.
    trusting: bool,
}

fn zeros_of(bytes: u64) -> u8 {
    bytes.trailing_zeros().min(MOST.into()) as u8
}

impl Alignments {
    /// Analyses all reachable code. `given` holds the alignments in bytes of the entry's
    /// parameters, and `global` returns that of a module-level variable.
    pub fn new(func: &Function, given: &[(Value, u32)], global: impl Fn(GlobalId) -> u32) -> Self {
        let mut this = Self {
            zeros: SecondaryMap::with_default(MOST),
            trusting: false,
        };
        for &param in func.entry().map_or(&[][..], |e| &func.blocks[e].params) {
            let known = given.iter().find(|(value, _)| *value == param);
            this.zeros[param] = known.map_or(0, |&(_, bytes)| zeros_of(bytes.into()));
        }
        this.run(func, global);
        this
    }

    /// Analyses offsets alone: pointers count as fully aligned, so that only added offsets lower
    /// the alignment that an access claims.
    pub fn of_offsets(func: &Function) -> Self {
        let mut this = Self {
            zeros: SecondaryMap::with_default(MOST),
            trusting: true,
        };
        for &param in func.entry().map_or(&[][..], |e| &func.blocks[e].params) {
            if !func.ty(param).is_ptr() {
                this.zeros[param] = 0;
            }
        }
        this.run(func, |_| 1 << MOST);
        this
    }

    /// Runs to a fixed point: block parameters start at the highest alignment and fall to the least
    /// of the arguments that edges pass.
    fn run(&mut self, func: &Function, global: impl Fn(GlobalId) -> u32) {
        let cfg = Cfg::new(func);
        loop {
            let mut changed = false;
            for &block in cfg.rpo() {
                changed |= self.block(func, block, &global);
            }
            if !changed {
                return;
            }
        }
    }

    /// Returns a power of two in bytes that `address` is a multiple of.
    pub fn of(&self, address: Value) -> u32 {
        1 << self.zeros[address]
    }

    fn block(&mut self, func: &Function, block: Block, global: &impl Fn(GlobalId) -> u32) -> bool {
        let mut changed = false;
        for &inst in &func.blocks[block].insts {
            let data = &func.insts[inst];
            let zeros = self.result(func, data.op, &data.args, global);
            for &result in &data.results {
                let zeros = match zeros {
                    Some(zeros) => zeros,
                    None if self.trusting && func.ty(result).is_ptr() => MOST,
                    None => 0,
                };
                changed |= self.lower(result, zeros);
            }
        }
        for target in func.blocks[block].term.targets() {
            let params = &func.blocks[target.block].params;
            for (&param, &arg) in params.iter().zip(&target.args) {
                changed |= self.lower(param, self.zeros[arg]);
            }
        }
        changed
    }

    fn lower(&mut self, value: Value, zeros: u8) -> bool {
        let less = zeros < self.zeros[value];
        if less {
            self.zeros[value] = zeros;
        }
        less
    }

    /// Returns the number of low zero bits of an instruction's result, or `None` where its operands
    /// do not bound it.
    fn result(
        &self,
        func: &Function,
        op: Op,
        args: &[Value],
        global: &impl Fn(GlobalId) -> u32,
    ) -> Option<u8> {
        let least = |args: &[Value]| args.iter().map(|&a| self.zeros[a]).min().unwrap_or(0);
        Some(match op {
            Op::Const(value) => zeros_of(value),
            Op::Alloca { align, .. } => zeros_of(align.into()),
            Op::Own { offset, size } => zeros_of((offset | size | OWN_ALIGN).into()),
            Op::GlobalAddr(id) => zeros_of(global(id).into()),
            Op::PtrAdd | Op::IAdd | Op::ISub | Op::Or | Op::Xor => least(args),
            Op::And => args.iter().map(|&a| self.zeros[a]).max().unwrap_or(0),
            Op::IMul => args.iter().map(|&a| self.zeros[a]).sum::<u8>().min(MOST),
            Op::Shl => match args {
                &[value, by] => {
                    let by = func.as_const(by).unwrap_or(0).min(MOST.into()) as u8;
                    (self.zeros[value] + by).min(MOST)
                }
                _ => 0,
            },
            Op::IntToPtr if self.trusting => return None,
            Op::Select => least(args.get(1..).unwrap_or_default()),
            Op::UMin | Op::UMax | Op::SMin | Op::SMax => least(args),
            Op::ZExt | Op::SExt | Op::Trunc | Op::PtrToInt | Op::IntToPtr | Op::SpaceCast => {
                least(args)
            }
            _ => return None,
        })
    }
}
