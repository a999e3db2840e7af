//! How often each value is used.

use crate::ir::entity::{SecondaryMap, Value};
use crate::ir::function::Function;

/// Number of uses of every value, by instructions and terminators of the blocks in the layout.
pub fn use_counts(func: &Function) -> SecondaryMap<Value, u32> {
    let mut counts = SecondaryMap::new();
    for &block in &func.layout {
        for &inst in &func.blocks[block].insts {
            for &arg in &func.insts[inst].args {
                counts[arg] += 1;
            }
        }
        func.blocks[block].term.for_each_use(|v| counts[v] += 1);
    }
    counts
}
