//! Finds the pointers that are constant offsets from an alloca, and the allocas that are used
//! through such pointers alone.

use super::cfg::Cfg;
use crate::ir::entity::{Block, Inst, SecondaryMap, Value};
use crate::ir::function::{Function, Terminator};
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
    /// If offsets may be variable: the offsets that are not constant, and the pointers that are
    /// block parameters, each with the position of its alloca.
    pub variable: Vec<(usize, Value)>,
    keeps_variable: bool,
}

impl Addresses {
    /// Analyses all reachable code. `copies` permits `mem_copy` as a use.
    pub fn new(func: &Function, cfg: &Cfg, copies: bool) -> Self {
        Self::analyse(func, cfg, copies, false)
    }

    /// Analyses all reachable code. Permits copies, offsets that are not constant, and pointers into
    /// one alloca as block parameters. The offsets are not computed.
    pub fn with_variable_offsets(func: &Function, cfg: &Cfg) -> Self {
        Self::analyse(func, cfg, true, true)
    }

    fn analyse(func: &Function, cfg: &Cfg, copies: bool, keeps_variable: bool) -> Self {
        let mut this = Self {
            root: SecondaryMap::new(),
            offset: SecondaryMap::new(),
            allocas: Vec::new(),
            rejected: Vec::new(),
            variable: Vec::new(),
            keeps_variable,
        };
        // In reverse postorder definitions come before uses, block parameters aside.
        for &block in cfg.rpo() {
            for &inst in &func.blocks[block].insts {
                this.inst(func, inst, copies);
            }
            if keeps_variable {
                this.enter_params(func, cfg, block);
            } else {
                func.blocks[block].term.for_each_use(|v| this.reject(v));
            }
        }
        if keeps_variable {
            this.check_params(func, cfg);
        }
        this
    }

    /// Derives the parameters of the blocks after one from the arguments.
    fn enter_params(&mut self, func: &Function, cfg: &Cfg, block: Block) {
        for edge in func.blocks[block].term.targets() {
            let is_later = cfg.rpo_index(edge.block) > cfg.rpo_index(block);
            for (&arg, &param) in edge.args.iter().zip(&func.blocks[edge.block].params) {
                if let (Some(root), 0, true) = (self.root_of(arg), self.root[param], is_later) {
                    self.root[param] = self.root[arg];
                    self.variable.push((root, param));
                }
            }
        }
    }

    /// Rejects the allocas that are not in all arguments of a parameter.
    fn check_params(&mut self, func: &Function, cfg: &Cfg) {
        for &block in cfg.rpo() {
            let term = &func.blocks[block].term;
            if let Terminator::Return(values) = term {
                values.iter().for_each(|&v| self.reject(v));
            }
            for edge in term.targets() {
                for (&arg, &param) in edge.args.iter().zip(&func.blocks[edge.block].params) {
                    if self.root[arg] != self.root[param] {
                        self.reject(arg);
                        self.reject(param);
                    }
                }
            }
        }
    }

    /// Returns the position of the alloca that a pointer is derived from.
    pub fn root_of(&self, pointer: Value) -> Option<usize> {
        (self.root[pointer] as usize).checked_sub(1)
    }

    /// Rejects the alloca that a pointer is derived from.
    pub fn reject(&mut self, value: Value) {
        if let Some(slot) = self.root_of(value) {
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
                    None if self.keeps_variable => {
                        self.root[result] = self.root[base];
                        let root = self.root_of(base).into_iter();
                        self.variable.extend(root.zip(data.args.get(1).copied()));
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
        let root = self.root_of(pointer)?;
        (!self.rejected[root]).then(|| (root, self.offset[pointer]))
    }
}
