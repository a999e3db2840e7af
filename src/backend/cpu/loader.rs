//! Loads an object file into memory: sections next to one another, relocations applied, then made executable and no
//! longer writable.
//!
//! The objects are those that clang makes from our own text: one function of each kernel and constants, no other symbols
//! than those of [`symbols`](super::symbols). Whatever else stands in one is an error.

use super::symbols;
use crate::backend::{DeviceError, Result};
use crate::util::pages::{self, Protection};
use object::{Object as _, ObjectSection as _, ObjectSymbol as _};
use rustc_hash::FxHashMap;
use std::ptr::NonNull;

/// Bytes of a stub: a jump to an address that follows.
const STUB: usize = 16;

/// Code in memory.
#[derive(Debug)]
pub struct Loaded {
    base: NonNull<u8>,
    size: usize,
    exports: FxHashMap<String, usize>,
}

// SAFETY: the memory is not written after it was loaded.
unsafe impl Send for Loaded {}
// SAFETY: as above.
unsafe impl Sync for Loaded {}

fn bad(what: impl std::fmt::Display) -> DeviceError {
    DeviceError::Driver {
        call: "loading the code of a kernel",
        code: what.to_string(),
    }
}

/// The memory of an object file while its sections are placed and relocated.
struct ObjectImage<'a> {
    base: u64,
    bytes: &'a mut [u8],
    sections: FxHashMap<object::SectionIndex, usize>,
    /// Maps the address of an outside function to the stub that jumps to it.
    stubs: FxHashMap<u64, usize>,
    next_stub: usize,
}

impl Loaded {
    /// Loads an object file.
    pub fn new(data: &[u8]) -> Result<Self> {
        let file = object::File::parse(data).map_err(bad)?;
        let mut end = 0usize;
        let mut sections = FxHashMap::default();
        let mut relocations = 0;
        for section in file.sections() {
            let object::SectionFlags::Elf { sh_flags } = section.flags() else {
                return Err(bad("no ELF object"));
            };
            if sh_flags & u64::from(object::elf::SHF_ALLOC) == 0 || section.size() == 0 {
                continue;
            }
            if section.name() == Ok(".eh_frame") {
                continue;
            }
            relocations += section.relocations().count();
            let align = usize::try_from(section.align()).unwrap_or(1).max(1);
            if align > 4096 || section.size() > 1 << 30 {
                return Err(bad("an object that large"));
            }
            end = end.next_multiple_of(align);
            sections.insert(section.index(), end);
            end += section.size() as usize;
        }
        let stubs_at = end.next_multiple_of(STUB);
        let size = (stubs_at + relocations * STUB)
            .max(1)
            .next_multiple_of(pages::page());
        let mapped = pages::map(size, Protection::ReadWrite);
        let base = mapped.ok_or(DeviceError::OutOfHostMemory)?;
        let mut this = Self {
            base,
            size,
            exports: FxHashMap::default(),
        };
        // SAFETY: the mapping is ours, of that size and writable.
        let bytes = unsafe { std::slice::from_raw_parts_mut(base.as_ptr(), size) };
        let mut image = ObjectImage {
            base: base.as_ptr() as u64,
            bytes,
            sections,
            stubs: FxHashMap::default(),
            next_stub: stubs_at,
        };
        image.fill(&file)?;
        image.relocate(&file)?;
        for symbol in file
            .symbols()
            .filter(|s| s.is_global() && s.is_definition())
        {
            let index = symbol.section_index().ok_or_else(|| bad("a symbol"))?;
            let Some(&at) = image.sections.get(&index) else {
                continue;
            };
            let name = symbol.name().map_err(bad)?.to_owned();
            let at = at.saturating_add(symbol.address() as usize);
            if at < size {
                this.exports.insert(name, at);
            }
        }
        // SAFETY: our own mapping; nothing holds a reference into it.
        if !unsafe { pages::protect(base, size, Protection::ReadExecute) } {
            return Err(bad("the system does not let memory become executable"));
        }
        #[cfg(not(target_arch = "x86_64"))]
        {
            extern "C" {
                fn __clear_cache(begin: *mut u8, end: *mut u8);
            }
            // SAFETY: the range is our mapping.
            unsafe { __clear_cache(base.as_ptr(), base.as_ptr().add(size)) };
        }
        Ok(this)
    }

    /// Returns the address of something that the object exports, with `bytes` bytes at least.
    pub fn export(&self, name: &str, bytes: usize) -> Option<NonNull<u8>> {
        let at = *self.exports.get(name)?;
        if at.checked_add(bytes)? > self.size {
            return None;
        }
        NonNull::new(self.base.as_ptr().wrapping_add(at))
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        // SAFETY: our own mapping; whoever calls into it keeps this.
        unsafe { pages::unmap(self.base, self.size) };
    }
}

impl ObjectImage<'_> {
    fn fill(&mut self, file: &object::File<'_>) -> Result {
        for section in file.sections() {
            let Some(&at) = self.sections.get(&section.index()) else {
                continue;
            };
            let data = section.data().map_err(bad)?;
            // Sections of zeros have no data; the mapping has zeros.
            let to = self.bytes.get_mut(at..at + data.len());
            to.ok_or_else(|| bad("a section"))?.copy_from_slice(data);
        }
        Ok(())
    }

    fn target(
        &self,
        file: &object::File<'_>,
        target: object::RelocationTarget,
    ) -> Result<(u64, bool)> {
        let symbol = match target {
            object::RelocationTarget::Symbol(index) => file.symbol_by_index(index).map_err(bad)?,
            object::RelocationTarget::Section(index) => {
                let at = self.sections.get(&index).ok_or_else(|| bad("a section"))?;
                return Ok((self.base + *at as u64, false));
            }
            _ => return Err(bad("a relocation")),
        };
        if let Some(index) = symbol.section_index() {
            let at = self.sections.get(&index).ok_or_else(|| bad("a section"))?;
            return Ok((self.base + *at as u64 + symbol.address(), false));
        }
        let name = symbol.name().map_err(bad)?;
        let address = symbols::address(name)
            .ok_or_else(|| bad(format_args!("the code calls {name}, which is not known")))?;
        Ok((address as u64, true))
    }

    /// Returns the address of a stub that jumps to `address`, or with `place` that of the word
    /// which holds the address.
    fn stub(&mut self, address: u64, place: bool) -> Result<u64> {
        let at = match self.stubs.get(&address) {
            Some(&at) => at,
            None => {
                let at = self.next_stub;
                self.next_stub += STUB;
                let stub = self.bytes.get_mut(at..at + STUB);
                let stub = stub.ok_or_else(|| bad("room for jumps"))?;
                #[cfg(target_arch = "aarch64")]
                {
                    // ldr x16, 8 bytes on; br x16
                    stub[..4].copy_from_slice(&0x5800_0050u32.to_le_bytes());
                    stub[4..8].copy_from_slice(&0xd61f_0200u32.to_le_bytes());
                }
                #[cfg(not(target_arch = "aarch64"))]
                {
                    // jmp *2(%rip)
                    stub[..8].copy_from_slice(&[0xff, 0x25, 2, 0, 0, 0, 0xcc, 0xcc]);
                }
                stub[8..].copy_from_slice(&address.to_le_bytes());
                self.stubs.insert(address, at);
                at
            }
        };
        Ok(self.base + at as u64 + if place { 8 } else { 0 })
    }

    fn put(&mut self, at: usize, bytes: &[u8]) -> Result {
        let to = self.bytes.get_mut(at..at + bytes.len());
        to.ok_or_else(|| bad("a relocation out of bounds"))?
            .copy_from_slice(bytes);
        Ok(())
    }

    fn relocate(&mut self, file: &object::File<'_>) -> Result {
        for section in file.sections() {
            let Some(&start) = self.sections.get(&section.index()) else {
                continue;
            };
            for (offset, relocation) in section.relocations() {
                let at = start + usize::try_from(offset).map_err(bad)?;
                let object::RelocationFlags::Elf { r_type } = relocation.flags() else {
                    return Err(bad("no ELF object"));
                };
                let (target, outside) = self.target(file, relocation.target())?;
                self.apply(
                    file.architecture(),
                    r_type,
                    at,
                    target,
                    outside,
                    relocation.addend(),
                )?;
            }
        }
        Ok(())
    }

    fn apply(
        &mut self,
        architecture: object::Architecture,
        kind: u32,
        at: usize,
        target: u64,
        outside: bool,
        addend: i64,
    ) -> Result {
        use object::elf as e;
        let here = self.base + at as u64;
        match (architecture, kind) {
            (object::Architecture::X86_64, e::R_X86_64_64) => {
                let value = target.wrapping_add_signed(addend);
                self.put(at, &value.to_le_bytes())
            }
            (object::Architecture::X86_64, e::R_X86_64_PC32 | e::R_X86_64_PLT32) => {
                let target = if outside {
                    self.stub(target, false)?
                } else {
                    target
                };
                self.put32(at, target.wrapping_add_signed(addend).wrapping_sub(here))
            }
            (
                object::Architecture::X86_64,
                e::R_X86_64_GOTPCREL | e::R_X86_64_GOTPCRELX | e::R_X86_64_REX_GOTPCRELX,
            ) => {
                let place = self.stub(target, true)?;
                self.put32(at, place.wrapping_add_signed(addend).wrapping_sub(here))
            }
            (object::Architecture::X86_64, e::R_X86_64_PC64) => {
                let value = target.wrapping_add_signed(addend).wrapping_sub(here);
                self.put(at, &value.to_le_bytes())
            }
            (object::Architecture::Aarch64, e::R_AARCH64_ABS64) => {
                let value = target.wrapping_add_signed(addend);
                self.put(at, &value.to_le_bytes())
            }
            (object::Architecture::Aarch64, e::R_AARCH64_CALL26 | e::R_AARCH64_JUMP26) => {
                let target = if outside {
                    self.stub(target, false)?
                } else {
                    target
                };
                let by = target.wrapping_add_signed(addend).wrapping_sub(here) as i64;
                if by & 3 != 0 || !(-(1 << 27)..1 << 27).contains(&by) {
                    return Err(bad("a call too far"));
                }
                self.edit32(at, 0x03ff_ffff, (by >> 2) as u32)
            }
            (
                object::Architecture::Aarch64,
                e::R_AARCH64_ADR_PREL_PG_HI21 | e::R_AARCH64_ADR_GOT_PAGE,
            ) => {
                let target = if kind == e::R_AARCH64_ADR_GOT_PAGE {
                    self.stub(target, true)?
                } else {
                    target.wrapping_add_signed(addend)
                };
                let pages = ((target & !0xfff).wrapping_sub(here & !0xfff) as i64) >> 12;
                let pages = pages as u32;
                let bits = (pages & 3) << 29 | (pages >> 2 & 0x7_ffff) << 5;
                self.edit32(at, 3 << 29 | 0x7_ffff << 5, bits)
            }
            (object::Architecture::Aarch64, e::R_AARCH64_LD64_GOT_LO12_NC) => {
                let place = self.stub(target, true)?;
                self.low12(at, place, 3)
            }
            (
                object::Architecture::Aarch64,
                e::R_AARCH64_ADD_ABS_LO12_NC | e::R_AARCH64_LDST8_ABS_LO12_NC,
            ) => self.low12(at, target.wrapping_add_signed(addend), 0),
            (object::Architecture::Aarch64, e::R_AARCH64_LDST16_ABS_LO12_NC) => {
                self.low12(at, target.wrapping_add_signed(addend), 1)
            }
            (object::Architecture::Aarch64, e::R_AARCH64_LDST32_ABS_LO12_NC) => {
                self.low12(at, target.wrapping_add_signed(addend), 2)
            }
            (object::Architecture::Aarch64, e::R_AARCH64_LDST64_ABS_LO12_NC) => {
                self.low12(at, target.wrapping_add_signed(addend), 3)
            }
            (object::Architecture::Aarch64, e::R_AARCH64_LDST128_ABS_LO12_NC) => {
                self.low12(at, target.wrapping_add_signed(addend), 4)
            }
            _ => Err(bad(format_args!("a relocation of kind {kind}"))),
        }
    }

    fn put32(&mut self, at: usize, value: u64) -> Result {
        let value = i32::try_from(value as i64).map_err(|_| bad("an address too far"))?;
        self.put(at, &value.to_le_bytes())
    }

    /// Relocates an instruction with the lowest 12 bits of an address, in units of `1 << shift`
    /// bytes.
    fn low12(&mut self, at: usize, address: u64, shift: u32) -> Result {
        let bits = ((address & 0xfff) >> shift) as u32;
        self.edit32(at, 0xfff << 10, bits << 10)
    }

    fn edit32(&mut self, at: usize, mask: u32, bits: u32) -> Result {
        let word = self.bytes.get(at..at + 4).and_then(|b| b.try_into().ok());
        let old = u32::from_le_bytes(word.ok_or_else(|| bad("a relocation out of bounds"))?);
        self.put(at, &(old & !mask | bits & mask).to_le_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_objects_are_errors() {
        assert!(Loaded::new(b"").is_err());
        assert!(Loaded::new(&[0x7f, b'E', b'L', b'F', 2, 1, 1, 0]).is_err());
        assert!(Loaded::new(&vec![0u8; 4096]).is_err());
    }
}
