//! Counts the uses of values.

use crate::ir::entity::{SecondaryMap, Value};
use crate::ir::function::Function;

/// Returns the number of uses of each value, by instructions and terminators of the blocks in the
/// layout.
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
