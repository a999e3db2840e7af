//! The memory of a work-group, and the arrays of a lowered kernel.

use super::error::Error;
use super::launch::Machine;
use super::memory::{Memory, Region};
use crate::ir::entity::GlobalId;
use crate::ir::function::{Function, Storage};
use rustc_hash::FxHashMap;

/// The most bytes that the arrays of a work-group or a work-item may have.
pub(super) const MOST_BYTES: u64 = 64 << 20;

/// The memory of a work-group.
pub(super) struct Local {
    pub memory: Memory,
    pub globals: FxHashMap<GlobalId, u64>,
    /// The arrays in Workgroup storage, indexed by [`Arrays::of`].
    pub arrays: Vec<Region>,
}

impl Local {
    /// Returns the address of a local variable.
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
        let address = self.add(machine, size, align);
        self.globals.insert(id, address);
        Ok(address)
    }

    /// Adds memory: zeros for a kernel that finds them, else memory that was never written.
    pub fn add(&mut self, machine: &mut Machine, size: u64, align: u64) -> u64 {
        let kernel = machine.module.kernels.first();
        match kernel.is_some_and(|kernel| kernel.attributes.zero_local) {
            true => self.memory.add(vec![0; size as usize], align),
            false => self.memory.add_fresh(size, align, machine.noise()),
        }
    }
}

/// Maps array variables to regions: variables that overlay one another share one.
pub(super) struct Arrays {
    /// For each variable, its region.
    pub of: Vec<usize>,
    /// For each variable, its elements.
    pub len: Vec<u64>,
    /// The storage and the bytes of each region.
    sizes: Vec<(Storage, u64)>,
}

impl Arrays {
    pub fn new(func: &Function, specs: &FxHashMap<u32, u32>) -> Result<Self, Error> {
        let mut arrays = Self {
            of: Vec::new(),
            len: Vec::new(),
            sizes: Vec::new(),
        };
        let mut overlays: FxHashMap<(Storage, u32), usize> = FxHashMap::default();
        for var in func.vars.values() {
            let elem = u64::from(var.elem_size());
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

    /// Creates the regions of one storage; those of the other are empty.
    pub fn make(&self, storage: Storage, noise: u64) -> Vec<Region> {
        let size = |&(of, size): &(Storage, u64)| if of == storage { size } else { 0 };
        let sizes = self.sizes.iter().map(size);
        sizes.map(|size| Region::fresh(0, size, noise)).collect()
    }
}
