//! Dominator and post-dominator trees (semi-NCA), dominance frontiers.
//!
//! Only reachable blocks are in the trees. The post-dominator tree hangs from a virtual exit below all returns;
//! where a part of the graph never reaches one (endless loops), its last block in reverse postorder is taken to
//! leave to the virtual exit too, so that every reachable block is in the tree.

use super::cfg::Cfg;
use crate::ir::entity::{Block, Entity, SecondaryMap};

const NONE: u32 = u32::MAX;

/// A dominator or post-dominator tree.
#[derive(Debug, Clone)]
pub struct DomTree {
    idom: SecondaryMap<Block, Option<Block>>,
    /// The position in `order` plus one; 0 for blocks that are not in the tree.
    first: SecondaryMap<Block, u32>,
    /// The position plus one of the last block of the subtree.
    last: SecondaryMap<Block, u32>,
    depth: SecondaryMap<Block, u32>,
    order: Vec<Block>,
    child_start: Vec<u32>,
    children: Vec<Block>,
}

/// Computes the immediate dominators of nodes `0..n` with the root 0, by preorder number: semi-NCA
/// on explicit stacks.
fn semi_nca(n: usize, succs: &dyn Fn(usize, &mut Vec<usize>)) -> Vec<u32> {
    // Depth-first preorder.
    let mut number = vec![NONE; n];
    let mut node = Vec::with_capacity(n);
    let mut parent: Vec<u32> = Vec::with_capacity(n);
    let mut edges: Vec<(u32, u32)> = Vec::new();
    let mut stack = vec![(0usize, 0u32)];
    let mut scratch = Vec::new();
    while let Some((v, from)) = stack.pop() {
        if number[v] != NONE {
            continue;
        }
        let me = node.len() as u32;
        number[v] = me;
        node.push(v);
        parent.push(from);
        scratch.clear();
        succs(v, &mut scratch);
        for &s in scratch.iter().rev() {
            edges.push((me, s as u32));
            if number[s] == NONE {
                stack.push((s, me));
            }
        }
    }
    let count = node.len();
    let mut start = vec![0u32; count + 1];
    for &(_, to) in &edges {
        start[number[to as usize] as usize + 1] += 1;
    }
    for i in 0..count {
        start[i + 1] += start[i];
    }
    let mut fill = start.clone();
    let mut preds = vec![0u32; edges.len()];
    for &(from, to) in &edges {
        let slot = &mut fill[number[to as usize] as usize];
        preds[*slot as usize] = from;
        *slot += 1;
    }

    let mut idom = parent.clone();
    let mut ancestor = parent;
    let mut semi: Vec<u32> = (0..count as u32).collect();
    let mut label: Vec<u32> = (0..count as u32).collect();
    let mut path: Vec<u32> = Vec::new();
    for i in (1..count).rev() {
        let linked = i as u32 + 1;
        let mut best = ancestor[i];
        for &pred in &preds[start[i] as usize..start[i + 1] as usize] {
            let mut v = pred as usize;
            if ancestor[v] >= linked {
                path.clear();
                while ancestor[v] >= linked {
                    path.push(v as u32);
                    v = ancestor[v] as usize;
                }
                let mut above = v;
                while let Some(p) = path.pop() {
                    let p = p as usize;
                    ancestor[p] = ancestor[above];
                    if semi[label[above] as usize] < semi[label[p] as usize] {
                        label[p] = label[above];
                    }
                    above = p;
                }
                v = pred as usize;
            }
            best = best.min(semi[label[v] as usize]);
        }
        semi[i] = best;
    }
    for i in 1..count {
        let mut d = idom[i];
        while d > semi[i] {
            d = idom[d as usize];
        }
        idom[i] = d;
    }
    // Back from preorder numbers to nodes.
    let mut result = vec![NONE; n];
    for i in 1..count {
        result[node[i]] = node[idom[i] as usize] as u32;
    }
    result
}

impl DomTree {
    /// Computes the dominator tree.
    pub fn new(cfg: &Cfg) -> Self {
        let rpo = cfg.rpo();
        let index = |b: Block| cfg.rpo_index(b).unwrap_or(0);
        let idom = semi_nca(rpo.len(), &|v, out| {
            out.extend(cfg.succs(rpo[v]).iter().map(|&s| index(s)));
        });
        Self::build(rpo, |i| match idom[i] {
            NONE => None,
            d => Some(d as usize),
        })
    }

    /// Computes the post-dominator tree. Blocks whose immediate post-dominator is the virtual exit
    /// have none.
    pub fn new_post(cfg: &Cfg) -> Self {
        let rpo = cfg.rpo();
        let n = rpo.len();
        let index = |b: Block| cfg.rpo_index(b).unwrap_or(0);
        // Node 0 is the virtual exit, node i + 1 is rpo[i]. Exits: blocks without successors, then one block for each
        // part that does not reach those.
        let mut exits: Vec<usize> = Vec::new();
        let mut seen = vec![false; n];
        let mut stack = Vec::new();
        let mut visit = |root: usize, exits: &mut Vec<usize>| {
            if seen[root] {
                return;
            }
            exits.push(root + 1);
            seen[root] = true;
            stack.push(root);
            while let Some(v) = stack.pop() {
                for &p in cfg.preds(rpo[v]) {
                    let p = index(p);
                    if !seen[p] {
                        seen[p] = true;
                        stack.push(p);
                    }
                }
            }
        };
        for (i, &block) in rpo.iter().enumerate() {
            if cfg.succs(block).is_empty() {
                visit(i, &mut exits);
            }
        }
        for i in (0..n).rev() {
            visit(i, &mut exits);
        }
        let idom = semi_nca(n + 1, &|v, out| {
            if v == 0 {
                out.extend(&exits);
            } else {
                out.extend(cfg.preds(rpo[v - 1]).iter().map(|&p| index(p) + 1));
            }
        });
        Self::build(rpo, |i| match idom[i + 1] {
            NONE | 0 => None,
            d => Some(d as usize - 1),
        })
    }

    fn build(rpo: &[Block], parent: impl Fn(usize) -> Option<usize>) -> Self {
        let n = rpo.len();
        let mut idom = SecondaryMap::new();
        // Children lists over rpo positions; roots under position n.
        let slots = rpo.iter().map(|b| b.index() + 1).max().unwrap_or(0);
        let mut child_start = vec![0u32; slots + 2];
        for (i, &block) in rpo.iter().enumerate() {
            let p = parent(i).map(|p| rpo[p]);
            idom[block] = p;
            let slot = p.map_or(slots, Block::index);
            child_start[slot + 1] += 1;
        }
        for i in 0..=slots {
            child_start[i + 1] += child_start[i];
        }
        let mut fill = child_start.clone();
        let mut children = vec![Block::new(0); n];
        for &block in rpo {
            let slot = idom[block].map_or(slots, Block::index);
            children[fill[slot] as usize] = block;
            fill[slot] += 1;
        }
        let mut tree = Self {
            idom,
            first: SecondaryMap::new(),
            last: SecondaryMap::new(),
            depth: SecondaryMap::new(),
            order: Vec::with_capacity(n),
            child_start,
            children,
        };
        let roots = tree.child_start[slots] as usize..tree.child_start[slots + 1] as usize;
        let mut stack: Vec<(Block, bool)> =
            roots.rev().map(|i| (tree.children[i], false)).collect();
        while let Some((block, done)) = stack.pop() {
            if done {
                tree.last[block] = tree.order.len() as u32;
                continue;
            }
            tree.order.push(block);
            tree.first[block] = tree.order.len() as u32;
            tree.depth[block] = tree.idom[block].map_or(0, |p| tree.depth[p] + 1);
            stack.push((block, true));
            for i in (0..tree.children(block).len()).rev() {
                stack.push((tree.children(block)[i], false));
            }
        }
        tree
    }

    /// Returns the immediate (post-)dominator, or `None` for a root or an unreachable block.
    pub fn idom(&self, block: Block) -> Option<Block> {
        self.idom[block]
    }
    /// Returns the blocks that a block immediately (post-)dominates, in reverse postorder of the
    /// graph.
    pub fn children(&self, block: Block) -> &[Block] {
        let i = block.index();
        match (self.child_start.get(i), self.child_start.get(i + 1)) {
            // The last pair holds the roots.
            (Some(&a), Some(&b)) if i + 2 < self.child_start.len() => {
                &self.children[a as usize..b as usize]
            }
            _ => &[],
        }
    }
    /// Returns true if `a` is `b` or (post-)dominates it; false if one of them is not in the tree.
    pub fn dominates(&self, a: Block, b: Block) -> bool {
        let (first, last) = (self.first[a], self.last[a]);
        first != 0 && first <= self.first[b] && self.first[b] <= last
    }
    /// Returns true if `a` (post-)dominates `b` and is not `b`.
    pub fn strictly_dominates(&self, a: Block, b: Block) -> bool {
        a != b && self.dominates(a, b)
    }
    /// Returns true if the block is in the tree.
    pub fn contains(&self, block: Block) -> bool {
        self.first[block] != 0
    }
    /// Returns all blocks, parents before children.
    pub fn preorder(&self) -> &[Block] {
        &self.order
    }
    /// Returns the distance of a block from its root.
    pub fn depth(&self, block: Block) -> u32 {
        self.depth[block]
    }
    /// Returns the nearest common ancestor of two blocks.
    pub fn common(&self, a: Block, b: Block) -> Option<Block> {
        let (mut a, mut b) = (a, b);
        while a != b {
            if self.depth[a] < self.depth[b] {
                std::mem::swap(&mut a, &mut b);
            }
            a = self.idom[a]?;
        }
        Some(a)
    }

    /// Computes the dominance frontiers: for each block those that it does not strictly dominate
    /// though it dominates a predecessor of theirs. Valid for a dominator tree only.
    pub fn frontiers(&self, cfg: &Cfg) -> SecondaryMap<Block, Vec<Block>> {
        let mut frontiers: SecondaryMap<Block, Vec<Block>> = SecondaryMap::new();
        for &block in cfg.rpo() {
            let stop = self.idom[block];
            if cfg.preds(block).len() < 2 && stop.is_some() {
                continue;
            }
            for &pred in cfg.preds(block) {
                let mut at = Some(pred);
                while at != stop {
                    let Some(b) = at else { break };
                    let list = &mut frontiers[b];
                    // Everything above was done by an earlier predecessor.
                    if list.last() == Some(&block) {
                        break;
                    }
                    list.push(block);
                    at = self.idom[b];
                }
            }
        }
        frontiers
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::function::{Edge, Function, Terminator};
    use crate::ir::types::Type;

    fn graph(edges: &[&[usize]]) -> Function {
        let mut func = Function::default();
        let blocks: Vec<Block> = edges.iter().map(|_| func.add_block()).collect();
        for (i, succs) in edges.iter().enumerate() {
            let t = |n: usize| Edge::new(blocks[n]);
            func.blocks[blocks[i]].term = match **succs {
                [] => Terminator::Return(Default::default()),
                [a] => Terminator::Jump(t(a)),
                [a, ref rest @ ..] => {
                    let v = func.append_const(blocks[i], Type::I32, 0);
                    let cases = rest.iter().enumerate().map(|(k, &n)| (k as u64, t(n)));
                    Terminator::Switch(v, cases.collect(), t(a))
                }
            };
        }
        func
    }

    /// Computes dominance by removal: `a` dominates `b` if `b` cannot be reached without it.
    fn slow_dominates(edges: &[&[usize]], a: usize, b: usize) -> bool {
        let mut seen = vec![false; edges.len()];
        let mut stack = if a == 0 { vec![] } else { vec![0] };
        while let Some(v) = stack.pop() {
            if !std::mem::replace(&mut seen[v], true) {
                stack.extend(edges[v].iter().filter(|&&s| s != a));
            }
        }
        !seen[b]
    }

    #[test]
    fn agrees_with_the_definition_on_random_graphs() {
        let mut state = 1u32;
        let mut random = move |n: usize| {
            state = state.wrapping_mul(1664525).wrapping_add(1013904223);
            (state >> 8) as usize % n
        };
        for _ in 0..300 {
            let n = 2 + random(12);
            let edges: Vec<Vec<usize>> = (0..n)
                .map(|_| (0..random(4)).map(|_| 1 + random(n - 1)).collect())
                .collect();
            let edges: Vec<&[usize]> = edges.iter().map(|e| &e[..]).collect();
            let func = graph(&edges);
            let cfg = Cfg::new(&func);
            let dom = DomTree::new(&cfg);
            let post = DomTree::new_post(&cfg);
            for a in 0..n {
                for b in 0..n {
                    let (x, y) = (Block::new(a), Block::new(b));
                    if !cfg.is_reachable(x) || !cfg.is_reachable(y) {
                        assert!(!dom.dominates(x, y));
                        continue;
                    }
                    assert_eq!(dom.dominates(x, y), slow_dominates(&edges, a, b));
                }
            }
            let frontiers = dom.frontiers(&cfg);
            for &a in cfg.rpo() {
                let mut expect: Vec<Block> = cfg
                    .rpo()
                    .iter()
                    .copied()
                    .filter(|&b| {
                        !dom.strictly_dominates(a, b)
                            && cfg.preds(b).iter().any(|&p| dom.dominates(a, p))
                    })
                    .collect();
                let mut got = frontiers[a].clone();
                expect.sort();
                got.sort();
                assert_eq!(got, expect);
                assert!(post.contains(a));
                if let Some(p) = post.idom(a) {
                    assert!(post.strictly_dominates(p, a));
                }
            }
        }
    }

    #[test]
    fn post_dominators_of_a_diamond_and_an_endless_loop() {
        let func = graph(&[&[1, 2], &[3], &[3], &[]]);
        let b = Block::new;
        let post = DomTree::new_post(&Cfg::new(&func));
        assert_eq!(post.idom(b(0)), Some(b(3)));
        assert_eq!(post.idom(b(1)), Some(b(3)));
        assert_eq!(post.idom(b(3)), None);
        let func = graph(&[&[1, 2], &[1], &[]]);
        let post = DomTree::new_post(&Cfg::new(&func));
        assert_eq!(post.idom(b(0)), None);
        assert!(post.contains(b(1)));
    }
}
