//! A work-group: its local memory, its work-items, and how they come together.
//!
//! All that can run do so, one after the other, until each has ended or waits. Then the collective operations of sub-groups
//! are done for those that wait at one of them; of several places it is the first in the code, so that work-items that
//! parted meet again. When nothing else is left, all have to be at the same operation of the work-group.

use super::args::Bound;
use super::collective;
use super::error::Error;
use super::item::{Item, State};
use super::launch::{Machine, Place};
use super::memory::{Memory, Region};
use super::scalar::Scalar;
use crate::ir::entity::GlobalId;
use crate::ir::function::{Function, Storage};
use crate::ir::op::{Op, Scope};
use crate::ir::types::Space;
use rustc_hash::FxHashMap;

/// Bytes that arrays of a work-group or a work-item may have.
pub(super) const MOST_BYTES: u64 = 64 << 20;

/// The memory of a work-group.
pub(super) struct Local {
    pub memory: Memory,
    pub globals: FxHashMap<GlobalId, u64>,
    /// Arrays in Workgroup storage, by [`Arrays::of`].
    pub arrays: Vec<Region>,
}

impl Local {
    /// The address of a local variable.
    pub fn global(&mut self, machine: &mut Machine, id: GlobalId) -> Result<u64, Error> {
        if let Some(&address) = self.globals.get(&id) {
            return Ok(address);
        }
        let global = machine.module.globals.get(id);
        let (size, align) = match global {
            Some(global) => (global.size, u64::from(global.align)),
            None => (machine.options.scratch, 16),
        };
        if size > MOST_BYTES {
            return Err(Error::invalid("too much local memory"));
        }
        let noise = machine.noise();
        let address = self.memory.add_fresh(size, align, noise);
        self.globals.insert(id, address);
        Ok(address)
    }
}

/// Which region an array variable is in: those that overlay one another share one.
pub(super) struct Arrays {
    /// For each variable, its region.
    pub of: Vec<usize>,
    /// For each variable, its elements.
    pub len: Vec<u64>,
    /// Bytes of each region.
    sizes: Vec<(Storage, u64)>,
}

impl Arrays {
    fn new(func: &Function, specs: &FxHashMap<u32, u32>) -> Result<Self, Error> {
        let mut arrays = Self {
            of: Vec::new(),
            len: Vec::new(),
            sizes: Vec::new(),
        };
        let mut overlays: FxHashMap<(Storage, u32), usize> = FxHashMap::default();
        for var in func.vars.values() {
            let elem = u64::from(var.elem.size());
            let mut len = u64::from(var.len.fixed);
            for id in &var.len.spec {
                let size = specs
                    .get(id)
                    .ok_or_else(|| Error::invalid("an array of unknown size"))?;
                len += u64::from(*size) / elem;
            }
            let new = arrays.sizes.len();
            let region = match var.alias {
                Some(alias) => *overlays.entry((var.storage, alias)).or_insert(new),
                None => new,
            };
            if region == new {
                arrays.sizes.push((var.storage, 0));
            }
            if let Some((_, size)) = arrays.sizes.get_mut(region) {
                *size = (*size).max(len * elem);
                if *size > MOST_BYTES {
                    return Err(Error::invalid("an array of that size"));
                }
            }
            arrays.of.push(region);
            arrays.len.push(len);
        }
        Ok(arrays)
    }

    /// New regions; those of the other storage are empty.
    fn make(&self, storage: Storage, noise: u64) -> Vec<Region> {
        let size = |&(of, size): &(Storage, u64)| if of == storage { size } else { 0 };
        let sizes = self.sizes.iter().map(size);
        sizes.map(|size| Region::fresh(0, size, noise)).collect()
    }
}

/// Where a work-item waits: a call stack of places in the code.
type Point = Vec<(usize, usize)>;

/// Runs a work-group.
pub(super) fn run(machine: &mut Machine) -> Result<(), Error> {
    let arrays = Arrays::new(machine.func, &machine.specs)?;
    let noise = machine.noise();
    let mut local = Local {
        memory: Memory::new(),
        globals: FxHashMap::default(),
        arrays: arrays.make(Storage::Workgroup, noise),
    };
    for (id, global) in machine.module.globals.iter() {
        if global.space == Some(Space::Local) {
            local.global(machine, id)?;
        }
    }
    let mut shared = Vec::new();
    for bound in machine.bound.clone() {
        shared.push(match bound {
            Bound::Local(size) if size > MOST_BYTES => {
                return Err(Error::invalid("too much local memory"));
            }
            Bound::Local(size) => {
                let noise = machine.noise();
                Some(Scalar::known(local.memory.add_fresh(size, 128, noise)))
            }
            Bound::Value(value) => Some(value),
            Bound::Copy(..) => None,
        });
    }
    let size = machine.dispatch.local;
    let mut items = Vec::new();
    for z in 0..size[2] {
        for y in 0..size[1] {
            for x in 0..size[0] {
                let place = Place {
                    id: [x, y, z],
                    index: (z * size[1] + y) * size[0] + x,
                };
                let noise = machine.noise();
                let arrays = arrays.make(Storage::Function, noise);
                items.push(Item::new(machine, place, &shared, arrays)?);
            }
        }
    }
    loop {
        let mut waiting = false;
        for item in &mut items {
            if item.state == State::Ready {
                item.run(machine, &mut local, &arrays)?;
            }
            waiting |= item.state == State::Waiting;
        }
        if !waiting {
            break;
        }
        if !sub_groups(machine, &mut items)? {
            together(machine, &mut items)?;
        }
    }
    if let Some(last) = items.pop() {
        machine.results = last.results;
    }
    Ok(())
}

/// The scope of what a work-item waits for.
fn scope(item: &Item) -> Option<Scope> {
    match item.waiting_for()?.op {
        Op::Group(_, scope) => Some(scope),
        Op::Barrier { exec, .. } => Some(exec),
        _ => None,
    }
}

fn point<'a>(machine: &mut Machine<'a>, item: &Item<'a>) -> Point {
    let frames = item.frames.iter();
    frames
        .map(|frame| (machine.order(frame.func, frame.block), frame.pc))
        .collect()
}

/// Does one operation of each sub-group that waits for some. False: none does.
fn sub_groups<'a>(machine: &mut Machine<'a>, items: &mut [Item<'a>]) -> Result<bool, Error> {
    let mut any = false;
    for lanes in items.chunks_mut(machine.options.subgroup_size as usize) {
        let mut first: Option<Point> = None;
        for item in lanes.iter() {
            if item.state == State::Waiting
                && matches!(scope(item), Some(Scope::SubGroup | Scope::WorkItem))
            {
                let here = point(machine, item);
                if first.as_ref().is_none_or(|first| here < *first) {
                    first = Some(here);
                }
            }
        }
        let Some(first) = first else { continue };
        any = true;
        let mut active: Vec<&mut Item> = Vec::new();
        for item in lanes.iter_mut() {
            if item.state == State::Waiting && point(machine, item) == first {
                active.push(item);
            }
        }
        collective::run(machine, &mut active)?;
    }
    Ok(any)
}

/// Does an operation of the whole work-group.
fn together<'a>(machine: &mut Machine<'a>, items: &mut [Item<'a>]) -> Result<(), Error> {
    let mut first: Option<Point> = None;
    for item in items.iter() {
        if item.state != State::Waiting {
            return Err(Error::Divergence(format!(
                "work-item {} has ended, others wait",
                item.place.index
            )));
        }
        let here = point(machine, item);
        match &first {
            None => first = Some(here),
            Some(first) if *first == here => {}
            Some(_) => {
                return Err(Error::Divergence(format!(
                    "work-item {} waits at {}",
                    item.place.index,
                    item.whereabouts()
                )));
            }
        }
    }
    let mut all: Vec<&mut Item> = items.iter_mut().collect();
    collective::run(machine, &mut all)
}
