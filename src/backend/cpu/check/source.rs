//! Pieces of real memory for the interpreter, and what it changed in them.
//!
//! What a launch writes is put back when it is over; but what it does atomically is done in real memory at once, as other
//! launches and the host may do the same.

use super::allocations::{self, Allocation, Given};
use crate::util::pages;
use spirv_lowering::interp::{Memory, Source};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering};

/// Bytes of a piece of large memory, at a multiple of its size.
const PIECE: u64 = 64 << 10;
/// So near to memory of the application nothing is taken for other memory of it.
const NEAR: u64 = 256;
/// The same of memory of our own, which has that much room.
const ROOM: u64 = super::ROOM as u64;

fn number(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    for (to, from) in word.iter_mut().zip(bytes) {
        *to = *from;
    }
    u64::from_le_bytes(word)
}

/// A word of real memory that is changed atomically.
enum Word {
    Two(&'static AtomicU16),
    Four(&'static AtomicU32),
    Eight(&'static AtomicU64),
}

impl Word {
    /// Returns the word at an address of a piece. Returns `None` if it cannot be changed as a
    /// whole.
    fn at(address: u64, size: u32) -> Option<Self> {
        if address % u64::from(size.max(1)) != 0 {
            return None;
        }
        let at = address as usize as *mut u8;
        // SAFETY: within an allocation that the launch keeps, or within what the system says can be accessed, and aligned; the
        // reference does not outlive the launch.
        unsafe {
            Some(match size {
                2 => Self::Two(AtomicU16::from_ptr(at.cast())),
                4 => Self::Four(AtomicU32::from_ptr(at.cast())),
                8 => Self::Eight(AtomicU64::from_ptr(at.cast())),
                _ => return None,
            })
        }
    }

    fn load(&self) -> u64 {
        match self {
            Self::Two(word) => word.load(Ordering::SeqCst).into(),
            Self::Four(word) => word.load(Ordering::SeqCst).into(),
            Self::Eight(word) => word.load(Ordering::SeqCst),
        }
    }

    /// Stores `new` if memory still holds `old`. Returns false otherwise.
    fn exchange(&self, old: u64, new: u64) -> bool {
        let order = Ordering::SeqCst;
        match self {
            Self::Two(word) => {
                { word.compare_exchange(old as u16, new as u16, order, order) }.is_ok()
            }
            Self::Four(word) => {
                { word.compare_exchange(old as u32, new as u32, order, order) }.is_ok()
            }
            Self::Eight(word) => word.compare_exchange(old, new, order, order).is_ok(),
        }
    }
}

/// The memory that a launch has read so far.
pub struct Real<'a> {
    /// The memory that was passed to the launch.
    given: &'a Given,
    /// Contents at first of each piece, by address; of what was done atomically, the contents then.
    pieces: BTreeMap<u64, Vec<u8>>,
    /// Begin and end of what the application has mapped, read when first asked.
    mapped: Option<Vec<(u64, u64)>>,
}

impl<'a> Real<'a> {
    /// Creates the source for a launch with these parts of memory.
    pub fn new(given: &'a Given) -> Self {
        Self {
            given,
            pieces: BTreeMap::new(),
            mapped: None,
        }
    }

    /// Returns the part of the application's memory around an address for which there is no object,
    /// and which kernels may access too (fine-grained system SVM).
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

    /// Returns the bytes of real memory at an address that was copied before.
    fn copied_bytes(&mut self, address: u64, size: u32) -> Option<&mut [u8]> {
        let (begin, bytes) = self.pieces.range_mut(..=address).next_back()?;
        let at = (address - begin) as usize;
        bytes.get_mut(at..at.checked_add(size as usize)?)
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
        self.pieces.insert(begin, bytes.clone());
        Some((begin, bytes))
    }

    fn refresh(&mut self, address: u64, size: u32) -> Option<u64> {
        let known = self.copied_bytes(address, size)?;
        let word = Word::at(address, size)?;
        let now = word.load();
        let changed = now != number(known);
        known.copy_from_slice(now.to_le_bytes().get(..size as usize)?);
        changed.then_some(now)
    }

    fn exchange(&mut self, address: u64, size: u32, new: u64) -> bool {
        let (Some(known), Some(word)) = (self.copied_bytes(address, size), Word::at(address, size))
        else {
            // Put back when the launch is over.
            return true;
        };
        if !word.exchange(number(known), new) {
            return false;
        }
        if let Some(bytes) = new.to_le_bytes().get(..size as usize) {
            known.copy_from_slice(bytes);
        }
        true
    }
}
