//! Finds what lies between a branch and the points where its paths join: the blocks that only some
//! paths reach, and the blocks where differing paths meet.

use super::cfg::Cfg;
use crate::ir::entity::{Block, SecondaryMap};
use std::collections::BTreeMap;

/// The paths from a branch, as far as they differ. A path ends at a back edge of a loop around the
/// branch.
pub struct Joins {
    /// Marks the blocks that some paths reach and others need not.
    between: SecondaryMap<Block, bool>,
    /// The blocks reached by paths that have nothing in common after the branch.
    blocks: Vec<Block>,
}

impl Joins {
    /// Follows the paths from the end of a block of a reducible graph.
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

    /// Returns true if not every path reaches that block.
    pub fn between(&self, block: Block) -> bool {
        self.between[block]
    }

    /// Returns the blocks where differing paths join.
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }
}

/// The state of following the paths, block by block in reverse postorder.
struct Ways<'a> {
    cfg: &'a Cfg,
    from: Block,
    /// For each block, the last block that all paths to it have in common.
    common: SecondaryMap<Block, Option<Block>>,
    /// The blocks that paths have reached and that are not yet followed, by their reverse
    /// postorder.
    open: BTreeMap<usize, Block>,
    /// Set once a path has ended.
    ended: bool,
    joins: Joins,
}

impl Ways<'_> {
    fn meet(&mut self, block: Block) {
        if !self.joins.blocks.contains(&block) {
            self.joins.blocks.push(block);
        }
    }

    /// Follows an edge by paths whose last common block is `label`.
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

    /// Returns the blocks between and the joins of the branch at the end of block 1.
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

    /// Checks a loop on one side of the branch, whose header one path reaches.
    #[test]
    fn loops_on_a_side() {
        let edges: &[(u32, &[u32])] = &[(1, &[2, 3]), (2, &[2, 3]), (3, &[])];
        assert_eq!(of(edges), (vec![2], vec![3]));
    }

    /// Checks a branch whose sides both go back to the header of the loop around it.
    #[test]
    fn ways_back_to_the_head() {
        let edges: &[(u32, &[u32])] = &[(1, &[2, 3]), (2, &[1]), (3, &[1, 4]), (4, &[])];
        assert_eq!(of(edges), (vec![2, 3, 4], vec![1]));
        // One of them leaves the loop instead.
        let edges: &[(u32, &[u32])] = &[(1, &[1, 2]), (2, &[1, 3]), (3, &[])];
        assert_eq!(of(edges), (vec![2, 3], vec![1]));
    }
}
