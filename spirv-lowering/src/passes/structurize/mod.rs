//! Any control-flow graph to the structured control flow of SPIR-V.
//!
//! Sets [`Function::structure`] and the order of the layout. No instruction is ever duplicated (only bare returns
//! are); where structure lacks a path, a selector parameter carries the choice through a dispatch (see `flow`).
//!
//! # Steps
//! 1. Each target of a switch gets one label. Returns are unified into one bare block; the graph is made reducible.
//! 2. Loops become canonical, inner ones first: a preheader; a header that does nothing but enter the body; one
//!    latch, the continue target, that does nothing but jump back; one merge block. A loop with several exit targets
//!    first takes in those exit blocks that lead to a common place anyway (the `found = 1; break;` of a source
//!    loop), unless they hold barriers; what is left shares a dispatch as merge block.
//! 3. SSA form is repaired.
//! 4. What is left in a loop body (inner loops count as one node) is acyclic. It is walked up its dominator tree. The
//!    blocks that a branch dominates and that have one predecessor are its *arms*; those with several are *joins*.
//!    Each arm, structured already, has at most one exit: a jump, or a dispatch when it has several targets. All
//!    exits of all arms meet in the merge block: the first join itself if it is the only target. Otherwise a
//!    dispatch, after which the joins follow in order, each guarded by a test of the selector.
//!
//!    The latch and the merge block of the innermost loop and the return block are *free* targets: they can be
//!    reached by a jump from any depth. They are used that way only where a dispatch would be needed otherwise, since
//!    work-items that meet again early stay together.
//!
//! Definitions keep dominating their uses in step 4: a join is only entered from blocks below its dominator, and its
//! arguments travel through the dispatches.

mod loops;
mod make_reducible;
mod regions;
pub(super) mod switches;

use loops::Loops;
use regions::Regions;

use crate::edit::flow::{drop_unreachable, Edit};
use crate::edit::repair_ssa;
use crate::error::Result;
use crate::ir::entity::{Block, SecondaryMap};
use crate::ir::function::{Edge, Function, Merge, Structure, Terminator, Values};
use crate::ir::types::Type;

/// Runs the pass.
pub fn run(func: &mut Function) -> Result<()> {
    func.structure = None;
    let Some(entry) = func.entry() else {
        return Ok(());
    };
    drop_unreachable(func);
    let entry = fresh_entry(func, entry);
    switches::run(func);

    let mut edit = Edit::new(func, entry);
    for block in edit.func.layout.clone() {
        edit.split_duplicates(block);
    }
    let exit = unify_returns(&mut edit);
    drop_unreachable(edit.func);
    make_reducible::run(&mut edit);
    drop_unreachable(edit.func);
    let mut loops = Loops::find(&edit);
    loops.canonicalize(&mut edit, exit)?;
    edit.finish();
    drop_unreachable(func);
    repair_ssa::run(func);

    let mut edit = Edit::new(func, entry);
    let merges = Regions::new(&mut edit, &loops, exit).run()?;
    if let Some(exit) = exit {
        fold_return(&mut edit, exit);
    }
    edit.finish();
    func.layout = order(func, &merges);
    func.structure = Some(Structure { merges });
    Ok(())
}

/// Adds an entry block if the entry is a jump target.
fn fresh_entry(func: &mut Function, old: Block) -> Block {
    let targeted = func
        .layout
        .iter()
        .any(|&b| func.blocks[b].term.targets().iter().any(|t| t.block == old));
    if !targeted {
        return old;
    }
    let new = func.add_block();
    let types: Vec<Type> = func.blocks[old]
        .params
        .iter()
        .map(|&p| func.ty(p))
        .collect();
    let args: Values = types
        .into_iter()
        .map(|ty| func.add_param(new, ty))
        .collect();
    func.blocks[new].term = Terminator::Jump(Edge::with(old, args));
    func.layout.pop();
    func.layout.insert(0, new);
    new
}

/// Makes all returns jumps to one block with nothing but a return.
fn unify_returns(edit: &mut Edit) -> Option<Block> {
    let returns: Vec<Block> = edit
        .func
        .layout
        .iter()
        .copied()
        .filter(|&b| matches!(edit.func.blocks[b].term, Terminator::Return(_)))
        .collect();
    if returns.is_empty() {
        return None;
    }
    let exit = edit.func.add_block();
    let types = edit.func.results.clone();
    let params: Values = types
        .into_iter()
        .map(|ty| edit.func.add_param(exit, ty))
        .collect();
    edit.set_term(exit, Terminator::Return(params));
    for block in returns {
        if let Terminator::Return(args) = edit.func.blocks[block].term.clone() {
            edit.set_term(block, Terminator::Jump(Edge::with(exit, args)));
        }
    }
    Some(exit)
}

/// Moves the return back to its predecessor if there is only one.
fn fold_return(edit: &mut Edit, exit: Block) {
    if edit.edges_in[exit] != 1 {
        return;
    }
    for block in edit.func.layout.clone() {
        if let Terminator::Jump(target) = edit.func.blocks[block].term.clone() {
            if target.block == exit {
                edit.set_term(block, Terminator::Return(target.args));
                return;
            }
        }
    }
}

/// Computes reverse postorder with merge blocks and continue targets after the blocks of their
/// constructs.
fn order(func: &Function, merges: &SecondaryMap<Block, Option<Merge>>) -> Vec<Block> {
    let Some(entry) = func.entry() else {
        return Vec::new();
    };
    let mut seen: SecondaryMap<Block, bool> = SecondaryMap::new();
    let mut post = Vec::with_capacity(func.layout.len());
    let next = |block: Block| -> Vec<Block> {
        // Popped from the end: the merge block is visited first and so comes last.
        let mut list: Vec<Block> = func.blocks[block]
            .term
            .targets()
            .iter()
            .map(|t| t.block)
            .collect();
        match merges[block] {
            Some(Merge::Selection { merge }) => list.push(merge),
            Some(Merge::Loop { merge, cont }) => list.extend([cont, merge]),
            None => {}
        }
        list
    };
    seen[entry] = true;
    let mut walk = vec![(entry, next(entry))];
    while let Some((block, rest)) = walk.last_mut() {
        match rest.pop() {
            Some(s) if seen[s] => {}
            Some(s) => {
                seen[s] = true;
                let list = next(s);
                walk.push((s, list));
            }
            None => {
                post.push(*block);
                walk.pop();
            }
        }
    }
    post.reverse();
    post
}
