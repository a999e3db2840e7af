//! The functions that a kernel calls. Each is made into code once, for the lanes of a mask: a parameter is a scalar if all calls
//! pass one value in all lanes, else a vector, and results are vectors.

use super::strides::Class;
use super::{Packing, Piece, Region};
use crate::error::{LowerError, Result};
use crate::ir::entity::{Block, FuncId, Inst};
use crate::ir::function::Function;
use crate::ir::module::Module;
use crate::ir::op::{HwVar, Op};
use crate::ir::types::Type;
use crate::passes::structurize;
use rustc_hash::{FxHashMap, FxHashSet};

/// A function that is called.
pub struct Callee {
    pub id: FuncId,
    pub(super) piece: Piece,
    /// For each parameter, whether it is a scalar.
    pub scalars: Vec<bool>,
    /// The parts of the position of the pack that it and those that it calls read.
    pub position: Position,
}

/// The functions that a kernel calls, callers before callees.
#[derive(Default)]
pub struct Callees {
    pub list: Vec<Callee>,
    at: FxHashMap<FuncId, usize>,
}

impl Callees {
    /// Returns how a function is called.
    pub fn get(&self, id: FuncId) -> Result<&Callee> {
        let at = self.at.get(&id);
        let found = at.and_then(|&at| self.list.get(at));
        found.ok_or_else(|| LowerError::internal("a call of an unknown function"))
    }
}

/// A set of values of which the position of a pack consists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Position(u8);

impl Position {
    pub const GROUP: [Self; 3] = [Self(1), Self(2), Self(4)];
    pub const ITEM: [Self; 3] = [Self(8), Self(16), Self(32)];
    pub const INDEX: Self = Self(64);
    pub const PACK: Self = Self(128);

    pub fn has(self, part: Self) -> bool {
        self.0 & part.0 != 0
    }

    fn of(func: &Function) -> Self {
        let mut all = Self::default();
        for (_, inst) in insts(func) {
            all.0 |= match func.insts[inst].op {
                Op::Hw(HwVar::WorkgroupId(d)) => Self::GROUP[usize::from(d.min(2))].0,
                Op::Hw(HwVar::LocalInvocationId(d)) => Self::ITEM[usize::from(d.min(2))].0,
                Op::Hw(HwVar::LocalInvocationIndex) => Self::INDEX.0,
                Op::Hw(HwVar::SubgroupId) => Self::PACK.0,
                _ => 0,
            };
        }
        all
    }
}

fn insts(func: &Function) -> impl Iterator<Item = (Block, Inst)> + '_ {
    let blocks = func.layout.iter();
    blocks.flat_map(|&block| func.blocks[block].insts.iter().map(move |&i| (block, i)))
}

fn called(func: &Function) -> impl Iterator<Item = (Block, Inst, FuncId)> + '_ {
    insts(func).filter_map(|(block, inst)| match func.insts[inst].op {
        Op::Call(id) => Some((block, inst, id)),
        _ => None,
    })
}

/// Returns the functions that others call, callers before callees.
fn order(module: &Module, pieces: &[Piece]) -> Result<Vec<FuncId>> {
    let callees = |func: &Function| -> Vec<FuncId> { called(func).map(|(.., id)| id).collect() };
    let mut stack = Vec::new();
    for piece in pieces {
        stack.push((None, callees(&piece.region.func), 0));
    }
    let (mut seen, mut active) = (FxHashSet::default(), FxHashSet::default());
    let mut post = Vec::new();
    while let Some((id, list, next)) = stack.last_mut() {
        if let Some(&callee) = list.get(*next) {
            *next += 1;
            if active.contains(&callee) {
                return Err(LowerError::unsupported("recursive calls"));
            }
            if seen.insert(callee) {
                let func = module.functions.get(callee);
                let func = func.filter(|func| func.entry().is_some());
                let func = func.ok_or_else(|| LowerError::internal("a call of nothing"))?;
                active.insert(callee);
                stack.push((Some(callee), callees(func), 0));
            }
            continue;
        }
        if let Some(id) = *id {
            active.remove(&id);
            post.push(id);
        }
        stack.pop();
    }
    post.reverse();
    Ok(post)
}

/// Returns the functions that the pieces of a kernel call. `prepared` makes of a function what code
/// is made of.
pub fn callees(
    module: &Module,
    pieces: &[Piece],
    packing: Packing,
    prepared: &dyn Fn(Function) -> Result<Function>,
) -> Result<Callees> {
    let order = order(module, pieces)?;
    let mut scalars: FxHashMap<FuncId, Vec<bool>> = FxHashMap::default();
    let mut all = Callees::default();
    for piece in pieces {
        note(piece, module, packing, &mut scalars)?;
    }
    for id in order {
        let mut func = prepared(module.functions[id].clone())?;
        structurize::run(&mut func)?;
        let mut region = Region::whole(func);
        let scalars_of = scalars.remove(&id).unwrap_or_default();
        let entry = region.func.entry();
        let params = entry.map_or(&[][..], |entry| &region.func.blocks[entry].params);
        let varying = params
            .iter()
            .zip(&scalars_of)
            .filter(|(_, &scalar)| !scalar);
        region.varying = varying.map(|(&param, _)| param).collect();
        let piece = Piece::new(region, packing)?;
        note(&piece, module, packing, &mut scalars)?;
        all.at.insert(id, all.list.len());
        all.list.push(Callee {
            id,
            position: Position::of(&piece.region.func),
            piece,
            scalars: scalars_of,
        });
    }
    for at in (0..all.list.len()).rev() {
        let mut position = all.list[at].position;
        for (.., id) in called(&all.list[at].piece.region.func) {
            position.0 |= all.get(id)?.position.0;
        }
        all.list[at].position = position;
    }
    Ok(all)
}

/// Records which parameters are scalars in the calls of a piece.
fn note(
    piece: &Piece,
    module: &Module,
    packing: Packing,
    scalars: &mut FxHashMap<FuncId, Vec<bool>>,
) -> Result<()> {
    let func = &piece.region.func;
    for (block, inst, id) in called(func) {
        let data = &func.insts[inst];
        let types = |values: &[_]| -> Vec<Type> { values.iter().map(|&v| func.ty(v)).collect() };
        let callee = &module.functions[id];
        if types(&data.args) != callee.params || types(&data.results) != callee.results {
            return Err(LowerError::internal("a call with other types"));
        }
        let of = scalars
            .entry(id)
            .or_insert_with(|| vec![true; data.args.len()]);
        for (scalar, &arg) in of.iter_mut().zip(&data.args) {
            let class = || piece.classes.class(&piece.tree, arg, block);
            *scalar &= packing == Packing::Alone || class() == Class::Uniform;
        }
    }
    Ok(())
}
