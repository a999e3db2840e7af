//! Replaces loads from constant program-scope variables by what is there.
//!
//! LLVM folds such loads itself, but not what other passes make constant (`unroll_loops`: the rounds of a hash read their numbers
//! from a table), and its SPIR-V target fills memory by copies from a variable of zeros, which would be loads for every work-item.

use super::expand_memcopy;
use crate::analysis::cfg::Cfg;
use crate::edit::rewrite::{rewrite, InstEdit};
use crate::error::Result;
use crate::ir::entity::{GlobalId, Inst, PrimaryMap, SecondaryMap, Value};
use crate::ir::function::Function;
use crate::ir::module::Global;
use crate::ir::op::Op;
use crate::ir::types::Type;
use smallvec::SmallVec;

/// A place in a variable.
#[derive(Debug, Clone, Copy)]
struct Place {
    global: GlobalId,
    /// The offset in bytes, if it is known.
    offset: Option<u64>,
}

/// The constant variables of a module.
struct Constants<'a> {
    globals: &'a PrimaryMap<GlobalId, Global>,
    places: SecondaryMap<Value, Option<Place>>,
}

impl<'a> Constants<'a> {
    /// Finds the pointers into constant variables, if there are any.
    fn new(func: &Function, globals: &'a PrimaryMap<GlobalId, Global>) -> Option<Self> {
        // Of a large module most kernels reach few variables: only those are looked at.
        let is_constant = |id| globals.get(id).is_some_and(Global::is_constant);
        let mut places: SecondaryMap<Value, Option<Place>> = SecondaryMap::new();
        let mut any = false;
        for &block in Cfg::new(func).rpo() {
            for &inst in &func.blocks[block].insts {
                let data = &func.insts[inst];
                let place = match (data.op, &data.args[..]) {
                    (Op::GlobalAddr(global), _) if is_constant(global) => Some(Place {
                        global,
                        offset: Some(0),
                    }),
                    (Op::SpaceCast, &[base]) => places[base],
                    (Op::PtrAdd, &[base, by]) => places[base].map(|base| {
                        let by = func.as_const(by);
                        let offset = base.offset.zip(by).map(|(a, b)| a.wrapping_add(b));
                        Place { offset, ..base }
                    }),
                    _ => None,
                };
                for &result in data.results.iter().filter(|_| place.is_some()) {
                    places[result] = place;
                    any = true;
                }
            }
        }
        any.then_some(Self { globals, places })
    }

    /// Returns true if all bytes of the variable into which the pointer points are zero.
    fn are_zero(&self, from: Value) -> bool {
        self.places[from].is_some_and(|place| self.globals[place.global].is_zero())
    }

    /// Returns the bits of what an instruction loads, if it is a load from a constant variable whose results are known.
    fn loaded(&self, func: &Function, inst: Inst) -> Option<SmallVec<[u64; 4]>> {
        let data = &func.insts[inst];
        let Op::Load {
            volatile: false, ..
        } = data.op
        else {
            return None;
        };
        let place = self.places[*data.args.first()?]?;
        let global = &self.globals[place.global];
        let mut offset = place.offset;
        let bits = data.results.iter().map(|&result| {
            let ty = func.ty(result);
            if matches!(ty, Type::Bool | Type::Ptr(_) | Type::Handle) {
                return None;
            }
            if global.is_zero() {
                return Some(0);
            }
            let first = usize::try_from(offset?).ok()?;
            let end = first.checked_add(ty.size() as usize)?;
            offset = Some(end as u64);
            let mut bits = [0; 8];
            bits[..end - first].copy_from_slice(global.init.as_ref()?.get(first..end)?);
            Some(u64::from_le_bytes(bits))
        });
        bits.collect()
    }
}

/// Returns the results of loads that the pass replaces, and their bits.
pub fn known(func: &Function, globals: &PrimaryMap<GlobalId, Global>) -> Vec<(Value, u64)> {
    let Some(constants) = Constants::new(func, globals) else {
        return Vec::new();
    };
    let loads = func.layout_insts().filter_map(|&inst| {
        let results = func.insts[inst].results.iter().copied();
        Some(results.zip(constants.loaded(func, inst)?))
    });
    loads.flatten().collect()
}

/// Runs the pass. `globals`: the module's variables. Returns true if anything changed.
pub fn run(func: &mut Function, globals: &PrimaryMap<GlobalId, Global>) -> Result<bool> {
    let Some(constants) = Constants::new(func, globals) else {
        return Ok(false);
    };
    let mut changed = false;
    rewrite(func, |r, inst| {
        let data = r.data(inst);
        if let (Op::MemCopy { size, align }, &[to, from]) = (data.op, data.args.as_slice()) {
            if !constants.are_zero(from) {
                return Ok(InstEdit::Keep);
            }
            expand_memcopy::copy(r, to, None, size, align);
        } else {
            let Some(bits) = constants.loaded(r.func, inst) else {
                return Ok(InstEdit::Keep);
            };
            let results = data.results.clone();
            for (result, bits) in results.into_iter().zip(bits) {
                let constant = r.konst(r.func.ty(result), bits);
                r.replace(result, constant);
            }
        }
        changed = true;
        Ok(InstEdit::Remove)
    })?;
    Ok(changed)
}
