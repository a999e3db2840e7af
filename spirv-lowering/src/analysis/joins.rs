//! What lies between the ways from a branch: the blocks that not every way comes to, and those where ways that differ meet.

use super::cfg::Cfg;
use crate::ir::entity::{Block, SecondaryMap};
use std::collections::BTreeMap;

/// The ways from a branch, as far as they differ. A way ends where it goes back to the head of a loop round the branch.
pub struct Joins {
    /// Blocks that some ways come to and others need not.
    between: SecondaryMap<Block, bool>,
    /// Blocks that are come to by ways which have nothing in common behind the branch.
    blocks: Vec<Block>,
}

impl Joins {
    /// The ways from the end of a block of a reducible graph.
    pub fn new(cfg: &Cfg, from: Block) -> Self {
        let mut ways = Ways {
            cfg,
            from,
            common: SecondaryMap::new(),
            open: BTreeMap::new(),
            ended: false,
            joins: Self {
                between: SecondaryMap::new(),
                blocks: Vec::new(),
            },
        };
        let first = cfg.succs(from);
        for &to in first {
            // Two edges to one block may bring it different values.
            if first.iter().filter(|&&other| other == to).count() > 1 {
                ways.meet(to);
            }
            ways.arrive(from, to, to);
        }
        while let Some((_, block)) = ways.open.pop_first() {
            if ways.open.is_empty() && !ways.ended {
                // All ways have come here: what is behind does not depend on the branch.
                break;
            }
            ways.joins.between[block] = true;
            let label = ways.common[block].unwrap_or(block);
            ways.ended |= cfg.succs(block).is_empty();
            for &to in cfg.succs(block) {
                ways.arrive(block, to, label);
            }
        }
        ways.joins
    }

    /// Not every way comes to that block.
    pub fn between(&self, block: Block) -> bool {
        self.between[block]
    }

    /// Where ways meet that differ.
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }
}

/// The ways while they are followed, block by block in reverse postorder.
struct Ways<'a> {
    cfg: &'a Cfg,
    from: Block,
    /// Which block all ways to a block had in common last.
    common: SecondaryMap<Block, Option<Block>>,
    /// Where ways have come to.
    open: BTreeMap<usize, Block>,
    /// Some ways have ended.
    ended: bool,
    joins: Joins,
}

impl Ways<'_> {
    fn meet(&mut self, block: Block) {
        if !self.joins.blocks.contains(&block) {
            self.joins.blocks.push(block);
        }
    }

    /// Along an edge, by ways that have had `label` in common last.
    fn arrive(&mut self, from: Block, to: Block, label: Block) {
        if self.common[to].is_some_and(|known| known != label) {
            self.meet(to);
            self.common[to] = Some(to);
        } else {
            self.common[to] = Some(label);
        }
        let at = |block: Block| self.cfg.rpo_index(block).unwrap_or(0);
        if at(to) > at(from) {
            self.open.insert(at(to), to);
        } else {
            // Not so the turns of a loop that lies between.
            self.ended |= at(to) <= at(self.from);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::parse::parse_function;

    /// Of the branch at the end of block 1: what lies between, and where ways meet.
    fn of(edges: &[(u32, &[u32])]) -> (Vec<u32>, Vec<u32>) {
        let mut text =
            "func fn0 \"f\" (bool) -> () {\nblock0(v0: bool):\n  jump block1\n".to_owned();
        for (block, to) in edges {
            text += &match to {
                [] => format!("block{block}:\n  return\n"),
                [one] => format!("block{block}:\n  jump block{one}\n"),
                more => format!(
                    "block{block}:\n  br v0, block{}, block{}\n",
                    more[0], more[1]
                ),
            };
        }
        let func = parse_function(&(text + "}\n")).expect("the text of a function");
        let cfg = Cfg::new(&func);
        let block = |number: u32| func.layout[number as usize];
        let joins = Joins::new(&cfg, block(1));
        let numbers = 0..=edges.len() as u32;
        let between = numbers.clone().filter(|&n| joins.between(block(n)));
        let met = numbers.filter(|&n| joins.blocks().contains(&block(n)));
        (between.collect(), met.collect())
    }

    #[test]
    fn sides_of_a_diamond() {
        let edges: &[(u32, &[u32])] = &[(1, &[2, 3]), (2, &[4]), (3, &[4]), (4, &[])];
        assert_eq!(of(edges), (vec![2, 3], vec![4]));
        let one: &[(u32, &[u32])] = &[(1, &[2, 3]), (2, &[3]), (3, &[])];
        assert_eq!(of(one), (vec![2], vec![3]));
        let same: &[(u32, &[u32])] = &[(1, &[2, 2]), (2, &[])];
        assert_eq!(of(same), (vec![], vec![2]));
    }

    /// A loop on one side: its head is come to by one way from the branch.
    #[test]
    fn loops_on_a_side() {
        let edges: &[(u32, &[u32])] = &[(1, &[2, 3]), (2, &[2, 3]), (3, &[])];
        assert_eq!(of(edges), (vec![2], vec![3]));
    }

    /// Both sides go back to the head of the loop that the branch is in.
    #[test]
    fn ways_back_to_the_head() {
        let edges: &[(u32, &[u32])] = &[(1, &[2, 3]), (2, &[1]), (3, &[1, 4]), (4, &[])];
        assert_eq!(of(edges), (vec![2, 3, 4], vec![1]));
        // One of them leaves the loop instead.
        let edges: &[(u32, &[u32])] = &[(1, &[1, 2]), (2, &[1, 3]), (3, &[])];
        assert_eq!(of(edges), (vec![2, 3], vec![1]));
    }
}
