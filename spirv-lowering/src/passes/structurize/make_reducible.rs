//! Gives every cycle of the control-flow graph one entry.
//!
//! A strongly connected region that is entered at several blocks gets a new header: a dispatch (see `flow`) that all
//! jumps to those blocks go through. No code is duplicated. SSA form must be repaired afterwards (`repair_ssa`).

use crate::edit::flow::Edit;
use crate::ir::entity::{Block, SecondaryMap};
use rustc_hash::FxHashSet;

/// Runs on a function whose layout holds reachable blocks only; returns whether anything changed.
pub fn run(edit: &mut Edit) -> bool {
    let mut changed = false;
    loop {
        let bad = irreducible_regions(edit);
        if bad.is_empty() {
            return changed;
        }
        changed = true;
        for entries in bad {
            dispatch(edit, &entries);
        }
    }
}

/// Returns the entries of the outermost regions that have more than one.
fn irreducible_regions(edit: &Edit) -> Vec<Vec<Block>> {
    let func = &*edit.func;
    let mut preds: SecondaryMap<Block, Vec<Block>> = SecondaryMap::new();
    for &block in &func.layout {
        for target in func.blocks[block].term.targets() {
            preds[target.block].push(block);
        }
    }
    let mut found = Vec::new();
    // Which set a block is in now; sets shrink as headers are taken out.
    let mut set: SecondaryMap<Block, u32> = SecondaryMap::new();
    let mut next_set = 1;
    let mut marks = SecondaryMap::new();
    let mut work = vec![func.layout.clone()];
    while let Some(nodes) = work.pop() {
        let me = next_set;
        next_set += 1;
        for &block in &nodes {
            set[block] = me;
        }
        for region in components(edit, &nodes, &set, me, &mut marks) {
            let inside: u32 = next_set;
            next_set += 1;
            for &block in &region {
                set[block] = inside;
            }
            let mut entries: Vec<Block> = region
                .iter()
                .copied()
                .filter(|&b| preds[b].iter().any(|&p| set[p] != inside))
                .collect();
            match entries.len() {
                0 => {}
                1 => {
                    let header = entries[0];
                    set[header] = 0;
                    work.push(region.into_iter().filter(|&b| b != header).collect());
                }
                _ => {
                    entries.sort();
                    found.push(entries);
                }
            }
        }
    }
    found
}

/// The numbers that Tarjan's algorithm assigns to a block.
#[derive(Clone, Copy, Default)]
struct Mark {
    index: u32,
    low: u32,
    open: bool,
}

/// Returns the strongly connected components with a cycle, within the blocks of a set (Tarjan, on
/// explicit stacks).
fn components(
    edit: &Edit,
    nodes: &[Block],
    set: &SecondaryMap<Block, u32>,
    me: u32,
    marks: &mut SecondaryMap<Block, Mark>,
) -> Vec<Vec<Block>> {
    let func = &*edit.func;
    for &block in nodes {
        marks[block] = Mark::default();
    }
    let mut next = 1;
    let mut open: Vec<Block> = Vec::new();
    let mut out = Vec::new();
    for &root in nodes {
        if marks[root].index != 0 {
            continue;
        }
        let mut walk: Vec<(Block, Vec<Block>)> = Vec::new();
        let succs = |b: Block| -> Vec<Block> {
            func.blocks[b]
                .term
                .targets()
                .iter()
                .map(|t| t.block)
                .filter(|&s| set[s] == me)
                .collect()
        };
        marks[root].index = next;
        marks[root].low = next;
        next += 1;
        open.push(root);
        marks[root].open = true;
        walk.push((root, succs(root)));
        while let Some((block, rest)) = walk.last_mut() {
            let block = *block;
            if let Some(s) = rest.pop() {
                if marks[s].index == 0 {
                    marks[s].index = next;
                    marks[s].low = next;
                    next += 1;
                    open.push(s);
                    marks[s].open = true;
                    walk.push((s, succs(s)));
                } else if marks[s].open {
                    marks[block].low = marks[block].low.min(marks[s].index);
                }
                continue;
            }
            walk.pop();
            if let Some((parent, _)) = walk.last() {
                marks[*parent].low = marks[*parent].low.min(marks[block].low);
            }
            if marks[block].low == marks[block].index {
                let mut region = Vec::new();
                while let Some(top) = open.pop() {
                    marks[top].open = false;
                    region.push(top);
                    if top == block {
                        break;
                    }
                }
                let cyclic = region.len() > 1
                    || func.blocks[block]
                        .term
                        .targets()
                        .iter()
                        .any(|t| t.block == block);
                if cyclic {
                    out.push(region);
                }
            }
        }
    }
    out
}

fn dispatch(edit: &mut Edit, entries: &[Block]) {
    let wanted: FxHashSet<Block> = entries.iter().copied().collect();
    let blocks = edit.func.layout.clone();
    let header = edit.dispatch(entries);
    for block in blocks {
        edit.redirect(
            block,
            |target| wanted.contains(&target.block),
            |edit, target| edit.via(&header, target),
        );
    }
    edit.end_dispatch(&header);
}
