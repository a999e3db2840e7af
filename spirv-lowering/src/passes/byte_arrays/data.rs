//! Keeps the 64 bits of pointers that may be data: those loaded or made from an integer, and stored
//! or converted back.
//!
//! A pointer is the 32-bit offset in its class, which suffices to access memory. Other 64-bit data
//! in the place of a pointer would lose its upper half. So wherever such a value may get back to
//! memory, its 64 bits take the same path beside it: through selections, additions and block
//! parameters.

use super::Lower;
use crate::ir::entity::{Block, Value};
use crate::ir::function::{ValueData, ValueDef};
use crate::ir::op::Op;
use crate::ir::types::Type;
use rustc_hash::{FxHashMap, FxHashSet};

impl Lower<'_> {
    /// Returns the pointers that a pointer is computed from, or `None` if its bits come from
    /// elsewhere.
    fn sources(&self, pointer: Value, into: &FxHashMap<Value, Vec<Value>>) -> Option<Vec<Value>> {
        match self.func.values[pointer].def {
            ValueDef::Param(block, _) if Some(block) == self.func.entry() => Some(Vec::new()),
            ValueDef::Param(..) => Some(into.get(&pointer).cloned().unwrap_or_default()),
            ValueDef::Result(inst, _) => {
                let data = &self.func.insts[inst];
                let ours = |v: &Value| self.was_ours(*v);
                match data.op {
                    Op::Const(bits) if bits > u32::MAX.into() => None,
                    Op::Alloca { .. } | Op::GlobalAddr(_) | Op::Const(_) | Op::Undef => {
                        Some(Vec::new())
                    }
                    Op::PtrAdd => Some(data.args.first().copied().into_iter().collect()),
                    Op::Select => Some(data.args.iter().skip(1).copied().collect()),
                    Op::Bitcast | Op::SpaceCast if data.args.iter().all(ours) => {
                        Some(data.args.to_vec())
                    }
                    _ => None,
                }
            }
        }
    }

    /// Finds the pointers of which all 64 bits are needed, and creates values for those.
    pub(super) fn find_data(&mut self) {
        let mut into: FxHashMap<Value, Vec<Value>> = FxHashMap::default();
        let mut wanted: Vec<Value> = Vec::new();
        for &block in &self.func.layout {
            for &inst in &self.func.blocks[block].insts {
                let data = &self.func.insts[inst];
                let from = match data.op {
                    Op::PtrAdd | Op::Select | Op::ICmp(_) => continue,
                    op if super::access::is_access(op) => 1,
                    _ => 0,
                };
                let moved = data.args.iter().skip(from).copied();
                wanted.extend(moved.filter(|&v| self.was_ours(v)));
            }
            for target in self.func.blocks[block].term.targets() {
                for (&arg, &param) in target
                    .args
                    .iter()
                    .zip(&self.func.blocks[target.block].params)
                {
                    if self.was_ours(param) {
                        into.entry(param).or_default().push(arg);
                    }
                }
            }
        }
        // Backwards from where they leave, then forwards from where data may come in.
        let mut seen: FxHashSet<Value> = FxHashSet::default();
        let mut uses: FxHashMap<Value, Vec<Value>> = FxHashMap::default();
        let mut data: Vec<Value> = Vec::new();
        while let Some(value) = wanted.pop() {
            if !seen.insert(value) {
                continue;
            }
            match self.sources(value, &into) {
                Some(sources) => {
                    for source in sources {
                        uses.entry(source).or_default().push(value);
                        wanted.push(source);
                    }
                }
                None => data.push(value),
            }
        }
        let mut kept: FxHashSet<Value> = FxHashSet::default();
        while let Some(value) = data.pop() {
            if kept.insert(value) {
                data.extend(uses.get(&value).into_iter().flatten());
            }
        }
        let mut kept: Vec<Value> = kept.into_iter().collect();
        kept.sort_unstable();
        for value in kept {
            let mut def = self.func.values[value].def;
            if let ValueDef::Param(block, _) = def {
                def = ValueDef::Param(block, self.func.blocks[block].params.len() as u32);
            }
            let ty = Type::I64;
            let bits = self.func.values.push(ValueData { ty, def });
            if let ValueDef::Param(block, _) = def {
                self.func.blocks[block].params.push(bits);
            }
            self.whole.insert(value, bits);
        }
    }

    /// Returns a pointer as a 64-bit integer: the bits that it came from, or its address.
    pub(super) fn bits(&mut self, pointer: Value) -> Value {
        match self.whole.get(&pointer) {
            Some(&bits) => bits,
            None => self.to_int(pointer, self.class_of(pointer)),
        }
    }

    /// Passes the bits of pointers to the successors of a block.
    pub(super) fn pass_data(&mut self, block: Block) {
        if self.whole.is_empty() {
            return;
        }
        let mut term = std::mem::take(&mut self.func.blocks[block].term);
        for target in term.targets_mut() {
            let params = self.func.blocks[target.block].params.clone();
            // The parameters with bits stand behind the others, in the order of those.
            let count = target.args.len();
            let pointers: FxHashMap<Value, Value> = params
                .iter()
                .take(count)
                .zip(&target.args)
                .filter_map(|(param, &arg)| Some((*self.whole.get(param)?, arg)))
                .collect();
            for param in params.iter().skip(count) {
                if let Some(&arg) = pointers.get(param) {
                    let bits = self.bits(arg);
                    target.args.push(bits);
                }
            }
        }
        self.func.blocks[block].term = term;
    }
}
