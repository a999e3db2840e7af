//! The claims of the vectoriser, in a form that the interpreter checks.

use super::classes::Classes;
use super::strides::{Class, Reach};
use super::tree::Tree;
use super::{regions, Packing, Region};
use crate::claims::{Claim, Claims};
use crate::error::{LowerError, Result};
use crate::ir::entity::{Block, SecondaryMap};
use crate::ir::module::Module;
use crate::ir::op::Op;
use rustc_hash::{FxHashMap, FxHashSet};

fn of_data(class: Class) -> Option<Claim> {
    match class {
        Class::Uniform => Some(Claim::Same),
        Class::Affine(stride) => Some(Claim::Stride(stride)),
        Class::Varying => None,
    }
}

/// The claims of a kernel, piece by piece: `module` holds it as its only kernel.
pub fn claims(module: &Module, packing: Packing) -> Result<Vec<Claims>> {
    let none = || LowerError::internal("no kernel");
    let kernel = module.kernels.first().ok_or_else(none)?;
    let func = module.functions.get(kernel.func).ok_or_else(none)?;
    let pieces = regions::split(func, packing)?;
    pieces.into_iter().map(|piece| of(piece, packing)).collect()
}

fn of(piece: Region, packing: Packing) -> Result<Claims> {
    let Region { func, uniform } = piece;
    let tree = Tree::new(&func)?;
    let classes = Classes::new(&func, &tree, packing, &uniform);
    let mut claims = Claims {
        data: SecondaryMap::new(),
        reach: FxHashMap::default(),
        slots: FxHashMap::default(),
        escapes: FxHashSet::default(),
        loops: SecondaryMap::new(),
        func,
    };
    let func = &claims.func;
    for value in func.values.keys() {
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
    Ok(claims)
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
