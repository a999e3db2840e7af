//! Gives a second way out to loops that are left from a branch alone.
//!
//! Since Mesa 25 llvmpipe jumps over branches that no work-item of a vector takes. If the only way out of a loop is in one, what
//! it computes may be used after the loop, by NIR's choice, too (its elimination of common subexpressions): then the LLVM IR
//! that llvmpipe makes is invalid, and the process ends or results are wrong. With a way out that no work-item takes, from the
//! header, the branch does not dominate what comes after the loop, and values get there by phi nodes.

use crate::analysis::cfg::Cfg;
use crate::analysis::dom::DomTree;
use crate::edit::opaque::zero_by_number;
use crate::edit::repair_ssa;
use crate::edit::rewrite::at_start;
use crate::ir::entity::{Block, Value};
use crate::ir::function::{Edge, Function, Merge, Terminator, Values};
use crate::ir::op::{IntCond, Op};
use crate::ir::types::Type;
use rustc_hash::{FxHashMap, FxHashSet};
use std::mem::take;

/// Runs the pass, after `structurize`. Returns true if anything changed.
pub fn run(func: &mut Function) -> bool {
    let Some(structure) = &func.structure else {
        return false;
    };
    let cfg = Cfg::new(func);
    let dom = DomTree::new(&cfg);
    let mut loops: Vec<(Block, Block)> = Vec::new();
    for &header in dom.preorder() {
        let Some(Merge::Loop { merge, cont }) = structure.merges[header] else {
            continue;
        };
        let jumps = matches!(func.blocks[header].term, Terminator::Jump(_));
        // NIR puts a continue construct that several blocks lead to in a branch at the beginning of the loop.
        let leaves_from_branch = dom.idom(merge).is_some_and(|from| {
            if dom.dominates(cont, from) {
                cfg.preds(cont).len() > 1
            } else {
                !dom.dominates(from, cont)
            }
        });
        if jumps && leaves_from_branch {
            loops.push((header, merge));
        }
    }
    if loops.is_empty() {
        return false;
    }
    let mut definitions: FxHashMap<Value, Block> = FxHashMap::default();
    for &block in dom.preorder() {
        let data = &func.blocks[block];
        let results = data
            .insts
            .iter()
            .flat_map(|&inst| &func.insts[inst].results);
        definitions.extend(
            data.params
                .iter()
                .chain(results)
                .map(|&value| (value, block)),
        );
    }
    let is_inside = |&(header, merge): &(Block, Block), block: Block| {
        block != header && dom.dominates(header, block) && !dom.dominates(merge, block)
    };
    let is_lost = |value: Value, at: Block| {
        definitions.get(&value).is_some_and(|&home| {
            let mut loops = loops.iter();
            loops.any(|l| is_inside(l, home) && !is_inside(l, at))
        })
    };
    remake_joins(func, is_lost);
    let mut lost: Vec<Value> = Vec::new();
    let mut seen: FxHashSet<Value> = FxHashSet::default();
    for &block in &func.layout {
        let mut note = |value| {
            if is_lost(value, block) && seen.insert(value) {
                lost.push(value);
            }
        };
        let data = &func.blocks[block];
        let args = data.insts.iter().flat_map(|&inst| &func.insts[inst].args);
        args.for_each(|&arg| note(arg));
        data.term.for_each_use(note);
    }

    let params = loops.iter().flat_map(|l| &func.blocks[l.1].params);
    let types: Vec<Type> = params.chain(&lost).map(|&value| func.ty(value)).collect();
    let mut zeros: FxHashMap<Type, Value> = FxHashMap::default();
    // One for each loop: in an inner loop NIR would know that of the outer one.
    let mut never: Vec<Value> = Vec::new();
    at_start(func, |r| {
        for number in 0..loops.len() {
            let zero = zero_by_number(r, number as u64);
            never.push(r.icmp_const(IntCond::Ne, zero, 0));
        }
        for ty in types {
            zeros.entry(ty).or_insert_with(|| match ty {
                Type::Ptr(_) => {
                    let zero = r.konst(Type::I64, 0);
                    r.op(Op::IntToPtr, [zero], ty)
                }
                _ => r.konst(ty, 0),
            });
        }
    });
    for ((header, merge), never) in loops.into_iter().zip(never) {
        let Terminator::Jump(body) = func.blocks[header].term.clone() else {
            continue;
        };
        let params = func.blocks[merge].params.iter();
        let args: Values = params.map(|&param| zeros[&func.ty(param)]).collect();
        func.blocks[header].term = Terminator::Branch(never, Edge::with(merge, args), body);
    }
    let pairs = lost.iter().map(|&value| (value, zeros[&func.ty(value)]));
    let pairs: Vec<(Value, Value)> = pairs.collect();
    repair_ssa::bring_in(func, &pairs);
    true
}

/// Makes addresses of two words again where they are used, since no block has parameters of them.
fn remake_joins(func: &mut Function, is_lost: impl Fn(Value, Block) -> bool) {
    for block in func.layout.clone() {
        let mut made: FxHashMap<Value, Value> = FxHashMap::default();
        let insts = take(&mut func.blocks[block].insts);
        for &inst in &insts {
            for at in 0..func.insts[inst].args.len() {
                let arg = func.insts[inst].args[at];
                let def = func.def_inst(arg).map(|def| &func.insts[def]);
                let Some(join) = def.filter(|def| def.op == Op::Join) else {
                    continue;
                };
                if is_lost(arg, block) {
                    let (words, ty) = (join.args.clone(), func.ty(arg));
                    let again = *made
                        .entry(arg)
                        .or_insert_with(|| func.append1(block, Op::Join, words, ty));
                    func.insts[inst].args[at] = again;
                }
            }
        }
        func.blocks[block].insts.extend(insts);
    }
}
