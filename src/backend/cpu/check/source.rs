//! Pieces of real memory for the interpreter, and what it changed in them.

use super::allocations::{self, Allocation, Given};
use crate::util::pages;
use spirv_lowering::interp::{Memory, Source};

/// Bytes of a piece of large memory, at a multiple of its size.
const PIECE: u64 = 64 << 10;
/// So near to memory of the application nothing is taken for other memory of it.
const NEAR: u64 = 256;
/// The same of memory of our own, which has that much room.
const ROOM: u64 = super::ROOM as u64;

/// What a launch has got so far.
pub struct Real<'a> {
    /// What the launch was given.
    given: &'a Given,
    /// Address and contents at first of each piece.
    pieces: Vec<(u64, Vec<u8>)>,
    /// Begin and end of what the application has mapped, read when first asked.
    mapped: Option<Vec<(u64, u64)>>,
}

impl<'a> Real<'a> {
    /// For a launch that was given this.
    pub fn new(given: &'a Given) -> Self {
        Self {
            given,
            pieces: Vec::new(),
            mapped: None,
        }
    }

    /// Memory of the application that no object stands for, which kernels may access too (fine-grained system SVM).
    fn system(&mut self, address: u64) -> Option<Allocation> {
        let (before, after) = allocations::around(address);
        let room = |one: &Allocation| if one.imported { NEAR } else { ROOM };
        let first = before.map_or(0, |one| (one.base + one.size).saturating_add(room(&one)));
        let last = after.map_or(u64::MAX, |one| one.base.saturating_sub(room(&one)));
        if !(first..last).contains(&address) {
            return None;
        }
        let mapped = self.mapped.get_or_insert_with(pages::readable);
        let found = { mapped.iter() }.find(|(begin, end)| (*begin..*end).contains(&address))?;
        let (begin, end) = (found.0.max(first), found.1.min(last));
        Some(Allocation {
            base: begin,
            size: end - begin,
            imported: true,
        })
    }

    fn holding(&mut self, address: u64) -> Option<Allocation> {
        match allocations::holding(address) {
            Some(whole) => self.given.around(whole, address),
            None => self.system(address),
        }
    }

    /// Writes what the interpreter has changed.
    ///
    /// # Safety
    /// The memory from which the pieces came is still there, and the launch may write it.
    pub unsafe fn put_back(self, memory: &Memory) {
        for (base, old) in self.pieces {
            let Some(new) = memory.bytes(base, old.len() as u64) else {
                continue;
            };
            for (i, (new, old)) in new.iter().zip(&old).enumerate() {
                if new != old {
                    // SAFETY: as the caller promises; each byte by itself, as others may write what is beside it.
                    unsafe { (base as *mut u8).add(i).write_volatile(*new) };
                }
            }
        }
    }
}

impl Source for Real<'_> {
    fn buffer(&mut self, address: u64) -> Option<(u64, u64)> {
        self.holding(address).map(|found| (found.base, found.size))
    }

    fn piece(&mut self, address: u64) -> Option<(u64, Vec<u8>)> {
        let found = self.holding(address)?;
        let begin = (address / PIECE * PIECE).max(found.base);
        let end = (address / PIECE * PIECE + PIECE).min(found.base + found.size);
        let mut bytes = vec![0; (end - begin) as usize];
        // SAFETY: within an allocation that the launch keeps, or within what the system says can be read.
        unsafe {
            std::ptr::copy_nonoverlapping(begin as *const u8, bytes.as_mut_ptr(), bytes.len());
        }
        self.pieces.push((begin, bytes.clone()));
        Some((begin, bytes))
    }
}
