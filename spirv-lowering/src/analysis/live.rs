//! Computes which values are live at the beginning of a block.

use super::cfg::Cfg;
use crate::ir::entity::{Block, SecondaryMap, Value};
use crate::ir::function::Function;
use rustc_hash::FxHashSet;

/// Returns for each reachable block the values that are live-in, its parameters excepted.
pub fn at_beginnings(func: &Function) -> SecondaryMap<Block, FxHashSet<Value>> {
    let cfg = Cfg::new(func);
    let mut live: SecondaryMap<Block, FxHashSet<Value>> = SecondaryMap::new();
    loop {
        let mut changed = false;
        for &block in cfg.rpo().iter().rev() {
            let data = &func.blocks[block];
            let mut set = FxHashSet::default();
            for &next in cfg.succs(block) {
                set.extend(live[next].iter().copied());
            }
            data.term.for_each_use(|v| {
                set.insert(v);
            });
            for &inst in data.insts.iter().rev() {
                for result in &func.insts[inst].results {
                    set.remove(result);
                }
                set.extend(func.insts[inst].args.iter().copied());
            }
            for param in &data.params {
                set.remove(param);
            }
            // Sets only grow.
            if set.len() != live[block].len() {
                live[block] = set;
                changed = true;
            }
        }
        if !changed {
            return live;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::entity::Entity;
    use crate::ir::parse::parse_module;

    #[test]
    fn of_a_loop() {
        let text = "func fn0 \"f\" (i32, i32) -> (i32) {
block0(v0: i32, v1: i32):
  v2 = iadd v0, v1 : i32
  jump block1(v0)
block1(v3: i32):
  v4 = iadd v3, v1 : i32
  v5 = icmp.ult v4, v2 : bool
  br v5, block1(v4), block2
block2:
  return v4
}
";
        let module = parse_module(text).unwrap();
        let func = module.functions.values().next().unwrap();
        let live = at_beginnings(func);
        let of = |block: usize| {
            let mut values: Vec<usize> =
                live[func.layout[block]].iter().map(|v| v.index()).collect();
            values.sort_unstable();
            values
        };
        // v1 and v2 are needed in each turn, v3 is the loop's own.
        assert_eq!(of(0), []);
        assert_eq!(of(1), [1, 2]);
        assert_eq!(of(2), [4]);
    }
}
