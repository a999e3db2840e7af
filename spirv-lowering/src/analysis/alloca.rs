//! Finds the pointers that are constant offsets from an alloca, and the allocas that are used
//! through such pointers alone.

use super::cfg::Cfg;
use crate::ir::entity::{Inst, SecondaryMap, Value};
use crate::ir::function::Function;
use crate::ir::op::Op;
use crate::ir::types::Space;

/// Maps each pointer to the alloca that it is derived from, through constant offsets and casts to
/// generic and back.
#[derive(Debug, Clone)]
pub struct Addresses {
    /// The position of the alloca in `allocas` plus one, or 0 for a pointer not derived from one.
    root: SecondaryMap<Value, u32>,
    offset: SecondaryMap<Value, u64>,
    /// The allocas of reachable blocks.
    pub allocas: Vec<Inst>,
    /// Marks the allocas, by position, that have a use other than loads, stores and (if allowed)
    /// copies at constant offsets. Volatile accesses count as plain ones, because private memory is
    /// not observable.
    pub rejected: Vec<bool>,
}

impl Addresses {
    /// Analyses all reachable code. `copies` permits `mem_copy` as a use.
    pub fn new(func: &Function, cfg: &Cfg, copies: bool) -> Self {
        let mut this = Self {
            root: SecondaryMap::new(),
            offset: SecondaryMap::new(),
            allocas: Vec::new(),
            rejected: Vec::new(),
        };
        // In reverse postorder definitions come before uses, block parameters aside.
        for &block in cfg.rpo() {
            for &inst in &func.blocks[block].insts {
                this.inst(func, inst, copies);
            }
            func.blocks[block].term.for_each_use(|v| this.reject(v));
        }
        this
    }

    /// Rejects the alloca that a pointer is derived from.
    pub fn reject(&mut self, value: Value) {
        if let Some(slot) = (self.root[value] as usize).checked_sub(1) {
            self.rejected[slot] = true;
        }
    }

    fn inst(&mut self, func: &Function, inst: Inst, copies: bool) {
        let data = &func.insts[inst];
        let result = data.results.first().copied();
        let address = data.args.first().copied();
        match (data.op, result, address) {
            (Op::Alloca { .. }, Some(result), _) => {
                self.allocas.push(inst);
                self.rejected.push(false);
                self.root[result] = self.allocas.len() as u32;
                self.offset[result] = 0;
            }
            (Op::PtrAdd, Some(result), Some(base)) if self.root[base] != 0 => {
                match data.args.get(1).and_then(|&o| func.as_const(o)) {
                    Some(offset) => {
                        self.root[result] = self.root[base];
                        self.offset[result] = self.offset[base].wrapping_add(offset);
                    }
                    None => self.reject(base),
                }
            }
            (Op::SpaceCast, Some(result), Some(base))
                if self.root[base] != 0
                    && matches!(
                        func.ty(result).space(),
                        Some(Space::Generic | Space::Private)
                    ) =>
            {
                self.root[result] = self.root[base];
                self.offset[result] = self.offset[base];
            }
            (Op::Load { .. }, ..) => {}
            (Op::Store { .. }, ..) => {
                data.args.iter().skip(1).for_each(|&v| self.reject(v));
            }
            (Op::MemCopy { .. }, ..) if copies => {}
            _ => data.args.iter().for_each(|&v| self.reject(v)),
        }
    }

    /// Returns the position of the alloca and the offset in it, unless the alloca is rejected.
    pub fn alloca(&self, pointer: Value) -> Option<(usize, u64)> {
        let root = (self.root[pointer] as usize).checked_sub(1)?;
        (!self.rejected[root]).then(|| (root, self.offset[pointer]))
    }
}
