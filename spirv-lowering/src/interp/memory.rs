//! Byte-addressed memory of one space: regions with gaps between them.

use super::error::{Error, Fault};
use super::scalar::Scalar;
use crate::ir::module::Module;
use crate::passes::lower_globals;
use std::cell::Cell;

/// The fewest free bytes after each region.
const GAP: u64 = 32;
/// The highest alignment of a region's address.
const MOST_ALIGN: u64 = 4096;

/// A variable or buffer: bytes, and which bits of them are unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Region {
    /// Address of the first byte.
    pub base: u64,
    /// Contents.
    pub bytes: Vec<u8>,
    /// Set where a bit is unknown: never written, or written with an unknown value.
    pub unknown: Vec<u8>,
    /// Set if a store to it is an error.
    pub read_only: bool,
}

impl Region {
    /// Creates a region of known bytes.
    pub fn known(base: u64, bytes: Vec<u8>) -> Self {
        Self {
            base,
            unknown: vec![0; bytes.len()],
            bytes,
            read_only: false,
        }
    }
    /// Creates a region that was never written, filled with noise.
    pub fn fresh(base: u64, size: u64, noise: u64) -> Self {
        let mut noise = noise | 1;
        let bytes = (0..size)
            .map(|_| {
                noise = noise
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                (noise >> 56) as u8
            })
            .collect();
        Self {
            base,
            bytes,
            unknown: vec![0xff; size as usize],
            read_only: false,
        }
    }
    fn covers(&self, address: u64, size: u64) -> bool {
        let at = address.wrapping_sub(self.base);
        at <= self.bytes.len() as u64 && size <= self.bytes.len() as u64 - at
    }
    /// Returns the value of up to 8 bytes at an offset.
    pub fn read(&self, offset: usize, size: usize) -> Option<Scalar> {
        let mut bits = [0; 8];
        let mut unknown = [0; 8];
        let range = offset..offset.checked_add(size)?;
        bits.get_mut(..size)?
            .copy_from_slice(self.bytes.get(range.clone())?);
        unknown
            .get_mut(..size)?
            .copy_from_slice(self.unknown.get(range)?);
        Some(Scalar {
            bits: u64::from_le_bytes(bits),
            unknown: u64::from_le_bytes(unknown),
        })
    }
    /// Writes up to 8 bytes at an offset.
    pub fn write(&mut self, offset: usize, size: usize, value: Scalar) -> Option<()> {
        let range = offset..offset.checked_add(size)?;
        self.bytes
            .get_mut(range.clone())?
            .copy_from_slice(value.bits.to_le_bytes().get(..size)?);
        self.unknown
            .get_mut(range)?
            .copy_from_slice(value.unknown.to_le_bytes().get(..size)?);
        Some(())
    }
}

/// The source of memory that a run copies when it is first accessed.
pub trait Source {
    /// Returns the address and size of the buffer that contains an address.
    fn buffer(&mut self, address: u64) -> Option<(u64, u64)>;
    /// Returns the address and contents of the piece of that buffer which contains the address.
    /// Pieces do not overlap.
    fn piece(&mut self, address: u64) -> Option<(u64, Vec<u8>)>;
    /// Returns the value at an address, if others have changed it since the run copied or last
    /// exchanged it.
    fn refresh(&mut self, address: u64, size: u32) -> Option<u64>;
    /// Replaces the value at an address, atomically. Returns false and changes nothing if others
    /// have changed it since the run copied it.
    fn exchange(&mut self, address: u64, size: u32, new: u64) -> bool;
}

/// The address of memory that work-items have of their own. Nothing else lies there.
pub(super) const OWN: u64 = 1 << 60;

/// The memory of one space.
#[derive(Debug, Clone, Default)]
pub struct Memory {
    /// The regions, ordered by address.
    regions: Vec<Region>,
    /// The region found last.
    last: Cell<usize>,
    /// The address of the program-scope variables.
    globals: Option<u64>,
}

impl Memory {
    /// Creates an empty memory.
    pub fn new() -> Self {
        Self::default()
    }

    fn place(&self, align: u64) -> u64 {
        let align = align.clamp(1, MOST_ALIGN).next_power_of_two();
        let end = match self.regions.last() {
            Some(last) => last.base + last.bytes.len() as u64 + GAP,
            None => 0x1_0000,
        };
        // No better aligned than asked for.
        let base = end.next_multiple_of(align);
        if base & align == 0 {
            base + align
        } else {
            base
        }
    }

    /// Adds a buffer with known contents and returns its address.
    pub fn add(&mut self, bytes: Vec<u8>, align: u64) -> u64 {
        let base = self.place(align);
        self.regions.push(Region::known(base, bytes));
        base
    }

    /// Adds a buffer with known contents at an address. It must not overlap another region.
    pub fn add_at(&mut self, base: u64, bytes: Vec<u8>) {
        let at = self.regions.partition_point(|r| r.base < base);
        self.regions.insert(at, Region::known(base, bytes));
    }

    /// Merges the region at an address with the next one, if they are adjacent.
    pub fn join(&mut self, address: u64) {
        let next = self.regions.partition_point(|r| r.base <= address);
        let Some(first) = next.checked_sub(1).and_then(|i| self.regions.get(i)) else {
            return;
        };
        let end = first.base + first.bytes.len() as u64;
        if self
            .regions
            .get(next)
            .is_none_or(|second| second.base != end)
        {
            return;
        }
        let second = self.regions.remove(next);
        if let Some(first) = self.regions.get_mut(next - 1) {
            first.bytes.extend(second.bytes);
            first.unknown.extend(second.unknown);
        }
        self.last.set(0);
    }

    /// Returns bytes of one region, or `None` if they are not within one.
    pub fn bytes(&self, address: u64, size: u64) -> Option<&[u8]> {
        let region = self.regions.get(self.find(address, size).ok()?)?;
        let at = (address - region.base) as usize;
        region.bytes.get(at..at + size as usize)
    }

    /// Adds unknown bytes to each region up to the end of its last word.
    pub(super) fn fill_words(&mut self) {
        for region in &mut self.regions {
            let whole = region.bytes.len().next_multiple_of(4);
            region.bytes.resize(whole, 0x5a);
            region.unknown.resize(whole, 0xff);
        }
    }

    /// Adds a variable that was never written.
    pub fn add_fresh(&mut self, size: u64, align: u64, noise: u64) -> u64 {
        let base = self.place(align);
        self.regions.push(Region::fresh(base, size, noise));
        base
    }

    /// Adds the memory that the work-items of a group have of their own, if it is not there.
    pub(super) fn add_own(&mut self, size: u64, noise: u64) {
        if self.check(OWN, size).is_err() {
            self.regions.retain(|region| region.base < OWN);
            self.regions.push(Region::fresh(OWN, size, noise));
        }
    }

    /// Adds the program-scope variables of a module, laid out as the compiler lays them out.
    pub fn add_globals(&mut self, module: &Module) -> Result<(), Error> {
        let globals = lower_globals::contents(module).map_err(|e| Error::invalid(e.to_string()))?;
        if globals.data.is_empty() {
            return Ok(());
        }
        let base = self.add(globals.data, 128);
        for reloc in globals.relocations {
            let value = Scalar::known(base.wrapping_add(reloc.target));
            self.write(base.wrapping_add(reloc.offset), 8, value)
                .map_err(|fault| Error::invalid(format!("a relocation: {fault}")))?;
        }
        self.globals = Some(base);
        Ok(())
    }

    /// Returns the address of the program-scope variables.
    pub fn globals(&self) -> Option<u64> {
        self.globals
    }

    /// Returns all regions, by address.
    pub fn regions(&self) -> &[Region] {
        &self.regions
    }

    /// Returns the region that begins at an address.
    pub fn region(&self, base: u64) -> Option<&Region> {
        self.regions.iter().find(|r| r.base == base)
    }

    /// Removes all regions but the first `count`.
    pub(super) fn truncate(&mut self, count: usize) {
        self.regions.truncate(count);
    }

    fn find(&self, address: u64, size: u64) -> Result<usize, Fault> {
        let last = self.last.get();
        if self
            .regions
            .get(last)
            .is_some_and(|r| r.covers(address, size) && size != 0)
        {
            return Ok(last);
        }
        let next = self.regions.partition_point(|r| r.base <= address);
        let found = next
            .checked_sub(1)
            .filter(|&i| self.regions.get(i).is_some_and(|r| r.covers(address, size)))
            .ok_or(Fault::Outside { address, size })?;
        self.last.set(found);
        Ok(found)
    }

    /// Checks that one region contains all of the bytes.
    pub fn check(&self, address: u64, size: u64) -> Result<(), Fault> {
        self.find(address, size).map(|_| ())
    }

    /// Reads up to 8 bytes.
    pub fn read(&self, address: u64, size: u32) -> Result<Scalar, Fault> {
        let outside = Fault::Outside {
            address,
            size: size.into(),
        };
        let region = self.find(address, size.into())?;
        let region = self.regions.get(region).ok_or(outside)?;
        region
            .read((address - region.base) as usize, size as usize)
            .ok_or(outside)
    }

    /// Writes up to 8 bytes.
    pub fn write(&mut self, address: u64, size: u32, value: Scalar) -> Result<(), Fault> {
        let outside = Fault::Outside {
            address,
            size: size.into(),
        };
        let region = self.find(address, size.into())?;
        let region = self.regions.get_mut(region).ok_or(outside)?;
        if region.read_only {
            return Err(Fault::ReadOnly { address });
        }
        region
            .write((address - region.base) as usize, size as usize, value)
            .ok_or(outside)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_and_unknown_bytes() {
        let mut memory = Memory::new();
        let a = memory.add(vec![1, 2, 3, 4], 4);
        let b = memory.add_fresh(8, 16, 7);
        assert_eq!(a % 8, 4);
        assert_eq!(b % 32, 16);
        assert_eq!(memory.read(a, 4), Ok(Scalar::known(0x0403_0201)));
        assert!(memory.read(a + 1, 4).is_err());
        assert!(memory.read(a - 1, 1).is_err());
        memory.write(b + 2, 2, Scalar::known(0xffff)).unwrap();
        assert_eq!(memory.read(b, 4).unwrap().unknown, 0x0000_ffff);
    }
}
