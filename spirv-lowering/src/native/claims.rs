//! Collects the claims of the vectoriser and of other analyses, in a form that the interpreter
//! checks.

use super::strides::{Class, Reach};
use super::tree::Tree;
use super::{calls, regions, strides, Packing, Piece, Region};
use crate::analysis::waits::{self, Looking};
use crate::claims::{Bound, Claim, Claims};
use crate::error::{LowerError, Result};
use crate::ir::entity::Block;
use crate::ir::module::Module;
use crate::ir::op::Op;
use crate::passes::claims::bound;

fn of_data(class: Class) -> Option<Claim> {
    match class {
        Class::Uniform => Some(Claim::Same),
        Class::Affine(stride) => Some(Claim::Stride(stride)),
        Class::Varying => None,
    }
}

/// Returns the claims of a kernel, piece by piece, then those of the functions that it calls:
/// `module` holds it as its only kernel.
pub fn claims(module: &Module, packing: Packing) -> Result<Vec<Claims>> {
    let none = || LowerError::internal("no kernel");
    let kernel = module.kernels.first().ok_or_else(none)?;
    let func = module.functions.get(kernel.func).ok_or_else(none)?;
    let regions = regions::split(func, packing)?;
    let pieces = regions
        .into_iter()
        .map(|region| Piece::new(region, packing));
    let pieces = pieces.collect::<Result<Vec<Piece>>>()?;
    let callees = calls::callees(module, &pieces, packing, &Ok)?;
    let mut pieces: Vec<Claims> = pieces.into_iter().map(of).collect();
    match &mut pieces[..] {
        // Structured control flow has the values and loops of before, but passes values through more
        // blocks than the analyses follow.
        [whole] => bound(whole, func, module),
        pieces => pieces.iter_mut().for_each(|piece| {
            let func = piece.func.clone();
            bound(piece, &func, module);
        }),
    }
    for callee in callees.list {
        let mut claims = of(callee.piece);
        claims.callee = Some(callee.id);
        if let Some(func) = module.functions.get(callee.id) {
            bound(&mut claims, func, module);
        }
        pieces.push(claims);
    }
    Ok(pieces)
}

fn of(piece: Piece) -> Claims {
    let Piece {
        region,
        tree,
        classes,
    } = piece;
    let Region { func, uniform, .. } = region;
    let mut claims = Claims::new(func);
    let func = &claims.func;
    // The interpreter runs work-items one after the other: where they wait for one another, lanes that
    // it compares read what others have changed in between, and do not run together.
    let waits = waits::may_wait(func, &Looking::default());
    for value in func.values.keys().filter(|_| !waits) {
        claims.data[value] = of_data(classes.of(value));
    }
    for &block in &func.layout {
        claims.loops[block] = loops(&tree, block);
        let mut uses = Vec::new();
        for &inst in &func.blocks[block].insts {
            let data = &func.insts[inst];
            uses.extend(&data.args);
            let Some(&first) = data.args.first() else {
                continue;
            };
            match data.op {
                Op::ZExt | Op::SExt if strides::is_id(func, first) => {
                    let bound = (Bound::AtMost(i32::MAX as u64), "native::strides");
                    claims.bounds.entry(first).or_default().push(bound);
                }
                Op::VarStore(var) if uniform[var] => {
                    let class = classes.class(&tree, data.args[1], block);
                    let claim = of_data(class).unwrap_or(Claim::Same);
                    claims.slots.insert(inst, claim);
                }
                Op::Load { .. }
                | Op::Store { .. }
                | Op::AtomicLoad { .. }
                | Op::AtomicStore { .. }
                | Op::AtomicRmw { .. }
                | Op::AtomicCmpXchg { .. } => {
                    let claim = match classes.reach(&tree, first, block) {
                        Reach::Same => Claim::Same,
                        Reach::Strided(stride) => Claim::Stride(stride),
                        Reach::Scattered => continue,
                    };
                    claims.reach.insert(inst, claim);
                }
                _ => {}
            }
        }
        func.blocks[block]
            .term
            .for_each_use(|value| uses.push(value));
        for value in uses {
            if classes.escapes_to(&tree, value, block) {
                claims.escapes.insert((block, value));
            }
        }
    }
    claims
}

fn loops(tree: &Tree, block: Block) -> Vec<Block> {
    let mut around = Vec::new();
    let mut at = tree.home[block];
    while let Some(id) = at {
        let construct = tree.constructs[id];
        if construct.is_loop {
            around.push(construct.block);
        }
        at = construct.parent;
    }
    around.reverse();
    around
}
