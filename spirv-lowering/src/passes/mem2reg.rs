//! Promotes private memory to SSA values.
//!
//! An alloca is promotable when its address, through constant offsets and casts to generic, is used
//! by loads and stores alone (volatile or not, because private memory is not observable). The lanes
//! of those accesses divide it into slots (byte ranges); every two slots must be equal or disjoint.
//! A slot accessed with several types of its width has the most frequent one, or an integer instead
//! of a float; the others are converted by `bitcast` and pointer conversions at the access.
//!
//! Block parameters are placed at iterated dominance frontiers of the stores, where the slot is
//! live. Loads that no store reaches become `undef`, or zero where the function's memory is
//! ([`Function::zeroed`]). Unreachable blocks are dropped first.

use crate::analysis::alloca::Addresses;
use crate::analysis::cfg::{remove_unreachable, Cfg};
use crate::analysis::control_flow::Analyses;
use crate::analysis::dom::DomTree;
use crate::ir::entity::{Block, Entity, Inst, SecondaryMap, Value};
use crate::ir::function::Function;
use crate::ir::op::Op;
use crate::ir::reinterpret::reinterpret;
use crate::ir::subst::Subst;
use crate::ir::types::Type;
use rustc_hash::{FxHashMap, FxHashSet};

/// The most slots of an alloca that is promoted.
const MAX_SLOTS: usize = 1024;

const NONE: u32 = u32::MAX;

/// A promoted byte range.
struct Slot {
    ty: Type,
    stores: Vec<Block>,
    /// The blocks that load it before they store it.
    exposed: Vec<Block>,
    last_store: Option<Block>,
    last_exposed: Option<Block>,
}

/// Runs the pass. Returns true if the function changed.
pub fn run(func: &mut Function, analyses: &mut Analyses) -> bool {
    let Some(entry) = func.entry() else {
        return false;
    };
    let has_alloca = func.blocks[entry]
        .insts
        .iter()
        .any(|&i| matches!(func.insts[i].op, Op::Alloca { .. }));
    if !has_alloca || func.structure.is_some() {
        return false;
    }
    let flow = analyses.control_flow(func);
    let cfg = &flow.cfg;
    let mut changed = remove_unreachable(func, cfg);
    let mut addresses = Addresses::new(func, cfg, false);
    let mut plan = PromotedSlots::new(func, cfg, &addresses);
    if func.keeps_unwritten {
        let unwritten = plan.perhaps_unwritten(cfg);
        if !unwritten.is_empty() {
            for root in unwritten {
                addresses.rejected[root] = true;
            }
            plan = PromotedSlots::new(func, cfg, &addresses);
        }
    }
    if plan.slots.is_empty() && !plan.any {
        return changed;
    }
    changed = true;
    let placed = place_params(func, cfg, flow.dom(), &mut plan);
    rename(func, flow.dom(), &addresses, &plan, &placed);
    changed
}

/// The slots of the allocas that are promoted.
struct PromotedSlots {
    slots: Vec<Slot>,
    /// Maps alloca and offset to the slot.
    by_offset: FxHashMap<(u32, u64), u32>,
    promoted: Vec<bool>,
    any: bool,
}

/// Returns the address of an access, whether it stores, and its lanes.
fn access(func: &Function, inst: Inst) -> Option<(Value, bool, &[Value])> {
    let data = &func.insts[inst];
    let address = *data.args.first()?;
    match data.op {
        Op::Load { .. } => Some((address, false, &data.results)),
        Op::Store { .. } => Some((address, true, &data.args[1..])),
        _ => None,
    }
}

impl PromotedSlots {
    fn new(func: &Function, cfg: &Cfg, addresses: &Addresses) -> Self {
        // (offset, type) -> count, for each alloca.
        let mut counts: Vec<FxHashMap<(u64, Type), u32>> =
            vec![FxHashMap::default(); addresses.allocas.len()];
        for &block in cfg.rpo() {
            for &inst in &func.blocks[block].insts {
                let Some((address, _, lanes)) = access(func, inst) else {
                    continue;
                };
                let Some((root, mut offset)) = addresses.alloca(address) else {
                    continue;
                };
                for &lane in lanes {
                    let ty = func.ty(lane);
                    *counts[root].entry((offset, ty)).or_default() += 1;
                    offset = offset.wrapping_add(ty.size().into());
                }
            }
        }
        let mut plan = Self {
            slots: Vec::new(),
            by_offset: FxHashMap::default(),
            promoted: vec![false; addresses.allocas.len()],
            any: false,
        };
        for (root, counts) in counts.into_iter().enumerate() {
            if addresses.rejected[root] {
                continue;
            }
            let Op::Alloca { size, .. } = func.insts[addresses.allocas[root]].op else {
                continue;
            };
            let mut ranges: Vec<(u64, Type, u32)> =
                counts.into_iter().map(|((o, t), n)| (o, t, n)).collect();
            ranges.sort_unstable_by_key(|&(o, t, n)| (o, t.size(), std::cmp::Reverse(n), t));
            let mut slots: Vec<(u64, Type)> = Vec::new();
            let fits = ranges.iter().all(|&(offset, ty, _)| {
                let end = offset.checked_add(ty.size().into());
                if end.is_none_or(|end| end > size.into()) || ty == Type::Bool {
                    return false;
                }
                match slots.last_mut() {
                    Some((o, t)) if *o == offset => {
                        let fits = t.size() == ty.size()
                            && (*t == ty || *t != Type::Handle && ty != Type::Handle);
                        // Bits that need not be a number travel as an integer.
                        if let Some(int) = t.as_int().filter(|_| *t != ty && t.is_float()) {
                            *t = int;
                        }
                        fits
                    }
                    Some((o, t)) if *o + u64::from(t.size()) > offset => false,
                    _ => {
                        slots.push((offset, ty));
                        true
                    }
                }
            });
            if !fits || slots.len() > MAX_SLOTS {
                continue;
            }
            plan.promoted[root] = true;
            plan.any = true;
            for (offset, ty) in slots {
                plan.by_offset
                    .insert((root as u32, offset), plan.slots.len() as u32);
                plan.slots.push(Slot {
                    ty,
                    stores: Vec::new(),
                    exposed: Vec::new(),
                    last_store: None,
                    last_exposed: None,
                });
            }
        }
        // Where each slot is stored, and loaded before it is stored.
        for &block in cfg.rpo() {
            for &inst in &func.blocks[block].insts {
                let Some((address, is_store, lanes)) = access(func, inst) else {
                    continue;
                };
                let Some((root, mut offset)) = addresses.alloca(address) else {
                    continue;
                };
                if !plan.promoted[root] {
                    continue;
                }
                for &lane in lanes {
                    let slot = plan.by_offset.get(&(root as u32, offset)).copied();
                    offset = offset.wrapping_add(func.ty(lane).size().into());
                    let Some(slot) = slot.map(|s| &mut plan.slots[s as usize]) else {
                        continue;
                    };
                    if is_store {
                        if slot.last_store != Some(block) {
                            slot.stores.push(block);
                            slot.last_store = Some(block);
                        }
                    } else if slot.last_store != Some(block) && slot.last_exposed != Some(block) {
                        slot.exposed.push(block);
                        slot.last_exposed = Some(block);
                    }
                }
            }
        }
        plan
    }
}

impl PromotedSlots {
    /// Returns the allocas of which a part may be read before it is written: those with a slot that is live into the entry.
    fn perhaps_unwritten(&self, cfg: &Cfg) -> Vec<usize> {
        let entry = cfg.rpo().first().copied();
        let live_into_entry = |slot: &Slot| {
            let (mut seen, mut work) = (FxHashSet::default(), slot.exposed.clone());
            while let Some(block) = work.pop() {
                if Some(block) == entry {
                    return true;
                }
                if seen.insert(block) {
                    let preds = cfg.preds(block).iter().copied();
                    work.extend(preds.filter(|pred| !slot.stores.contains(pred)));
                }
            }
            false
        };
        let slots = self.by_offset.iter();
        let mut roots: Vec<usize> = slots
            .filter(|(_, slot)| live_into_entry(&self.slots[**slot as usize]))
            .map(|((root, _), _)| *root as usize)
            .collect();
        roots.sort_unstable();
        roots.dedup();
        roots
    }
}

/// Adds the block parameters. Returns for each block the slots that have one, with the parameter.
fn place_params(
    func: &mut Function,
    cfg: &Cfg,
    dom: &DomTree,
    plan: &mut PromotedSlots,
) -> SecondaryMap<Block, Vec<(u32, Value)>> {
    let mut placed: SecondaryMap<Block, Vec<(u32, Value)>> = SecondaryMap::new();
    if cfg.len() < 2 {
        return placed;
    }
    let frontiers = dom.frontiers(cfg);
    // Marks by slot number, so that they need no clearing.
    let mut live: Vec<u32> = vec![NONE; func.blocks.len()];
    let mut stored: Vec<u32> = vec![NONE; func.blocks.len()];
    let mut has_param: Vec<u32> = vec![NONE; func.blocks.len()];
    let mut work: Vec<Block> = Vec::new();
    for number in 0..plan.slots.len() as u32 {
        let slot = &plan.slots[number as usize];
        if slot.exposed.is_empty() {
            continue;
        }
        for &block in &slot.stores {
            stored[block.index()] = number;
        }
        // Blocks into which the slot is live.
        work.extend(&slot.exposed);
        while let Some(block) = work.pop() {
            if live[block.index()] == number {
                continue;
            }
            live[block.index()] = number;
            for &pred in cfg.preds(block) {
                if stored[pred.index()] != number && live[pred.index()] != number {
                    work.push(pred);
                }
            }
        }
        work.extend(&slot.stores);
        while let Some(block) = work.pop() {
            for &join in &frontiers[block] {
                let i = join.index();
                if live[i] != number || has_param[i] == number {
                    continue;
                }
                has_param[i] = number;
                let param = func.add_param(join, slot.ty);
                placed[join].push((number, param));
                if stored[i] != number {
                    work.push(join);
                }
            }
        }
    }
    placed
}

/// Replaces loads and stores by values, in one walk down the dominator tree.
fn rename(
    func: &mut Function,
    dom: &DomTree,
    addresses: &Addresses,
    plan: &PromotedSlots,
    placed: &SecondaryMap<Block, Vec<(u32, Value)>>,
) {
    enum Visit {
        Enter(Block),
        /// Undoes the changes beyond this length of the log.
        Leave(usize),
    }
    let Some(entry) = func.entry() else { return };
    let mut subst = Subst::new();
    let mut current: Vec<Option<Value>> = vec![None; plan.slots.len()];
    let mut log: Vec<(u32, Option<Value>)> = Vec::new();
    let mut undefs: FxHashMap<Type, Inst> = FxHashMap::default();
    let unwritten = match func.zeroed {
        true => Op::Const(0),
        false => Op::Undef,
    };
    let mut undef = |func: &mut Function, ty: Type| {
        let inst = *undefs
            .entry(ty)
            .or_insert_with(|| func.make_inst(unwritten, [], &[ty]));
        func.insts[inst].results[0]
    };
    let mut stack = vec![Visit::Enter(entry)];
    while let Some(step) = stack.pop() {
        let block = match step {
            Visit::Leave(len) => {
                for (slot, old) in log.drain(len..).rev() {
                    current[slot as usize] = old;
                }
                continue;
            }
            Visit::Enter(block) => block,
        };
        stack.push(Visit::Leave(log.len()));
        let mut set = |current: &mut Vec<Option<Value>>, slot: u32, value: Value| {
            log.push((slot, current[slot as usize]));
            current[slot as usize] = Some(value);
        };
        for &(slot, param) in &placed[block] {
            set(&mut current, slot, param);
        }
        let insts = std::mem::take(&mut func.blocks[block].insts);
        let mut out = Vec::with_capacity(insts.len());
        for inst in insts {
            // Addresses of promoted allocas go away.
            let derived = func.insts[inst]
                .results
                .first()
                .and_then(|&r| addresses.alloca(r));
            if derived.is_some_and(|(root, _)| plan.promoted[root]) {
                continue;
            }
            let found = access(func, inst).and_then(|(address, is_store, lanes)| {
                let (root, offset) = addresses.alloca(address)?;
                plan.promoted[root].then(|| (root, offset, is_store, lanes.to_vec()))
            });
            let Some((root, mut offset, is_store, lanes)) = found else {
                out.push(inst);
                continue;
            };
            for lane in lanes {
                let ty = func.ty(lane);
                let slot = plan.by_offset.get(&(root as u32, offset)).copied();
                offset = offset.wrapping_add(ty.size().into());
                let Some(slot) = slot else { continue };
                let slot_ty = plan.slots[slot as usize].ty;
                if is_store {
                    let lane = subst.get(lane);
                    let value = reinterpret(func, &mut out, lane, slot_ty);
                    set(&mut current, slot, value);
                } else {
                    let value = match current[slot as usize] {
                        Some(value) => reinterpret(func, &mut out, value, ty),
                        None => undef(func, ty),
                    };
                    subst.set(lane, value);
                }
            }
        }
        func.blocks[block].insts = out;
        let mut term = std::mem::take(&mut func.blocks[block].term);
        for target in term.targets_mut() {
            for &(slot, _) in &placed[target.block] {
                let value = match current[slot as usize] {
                    Some(value) => value,
                    None => undef(func, plan.slots[slot as usize].ty),
                };
                target.args.push(value);
            }
        }
        func.blocks[block].term = term;
        stack.extend(dom.children(block).iter().map(|&b| Visit::Enter(b)));
    }
    let mut made: Vec<Inst> = undefs.into_values().collect();
    made.sort();
    func.blocks[entry].insts.splice(0..0, made);
    subst.apply(func);
}
