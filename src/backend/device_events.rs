//! The events of a device, in memory that kernels and the runtime share. `spirv_lowering::device_queue` has the layout.

use super::words::{in_order, MainUser, Words};
use super::{Device, Result};
use parking_lot::Mutex;
use spirv_lowering::device_queue::{event, events};
use std::sync::atomic::Ordering;

/// Execution status of a command that was submitted.
const SUBMITTED: i32 = 2;

/// The events of a device.
pub struct EventsMemory {
    words: Words,
    count: u32,
    /// References that the runtime has given back: the words of that name, which only it writes.
    released: Mutex<Vec<u32>>,
}

impl EventsMemory {
    /// Creates `count` events, a power of two, all free.
    pub fn new(device: &dyn Device, count: u32) -> Result<Self> {
        let size = events::FIRST + count as usize * event::SIZE;
        let words = Words::new(device, size, MainUser::Device)?.cleared();
        words.set(events::COUNT, count);
        Ok(Self {
            words,
            count,
            released: Mutex::new(vec![0; count as usize]),
        })
    }

    /// Returns the device address.
    pub fn address(&self) -> u64 {
        self.words.memory.address()
    }

    /// Returns where an event is in the memory, if there is one at that address.
    fn place(&self, address: u64) -> Option<usize> {
        let first = self.address() + events::FIRST as u64;
        let at = address.checked_sub(first)?;
        let size = event::SIZE as u64;
        (at.is_multiple_of(size) && at / size < u64::from(self.count))
            .then(|| events::FIRST + at as usize)
    }

    /// Returns the status of an event: above 0 it is not complete, below 0 it has failed. What is
    /// no event has failed.
    pub fn status(&self, address: u64) -> i32 {
        match self.place(address) {
            Some(at) => self.words.word(at + event::STATUS).load(Ordering::Acquire) as i32,
            None => -1,
        }
    }

    /// Returns true if a kernel, and not the runtime, sets the status of an event.
    pub fn is_user(&self, address: u64) -> bool {
        self.place(address)
            .is_some_and(|at| self.words.get(at + event::KIND) == event::USER)
    }

    /// Completes the event of a command, with times in nanoseconds from its start to its end and to
    /// that of its children.
    pub fn complete(&self, address: u64, status: i32, times: [u64; 2]) {
        let Some(at) = self.place(address) else {
            return;
        };
        self.words.set_long(at + event::TIMES, times[0]);
        self.words.set_long(at + event::TIMES + 8, times[1]);
        // A kernel that finds it complete may read the times.
        in_order();
        let status = status.min(SUBMITTED) as u32;
        let place = self.words.word(at + event::STATUS);
        place.store(status, Ordering::Release);
    }

    /// Returns the times of a complete command.
    pub fn times(&self, address: u64) -> [u64; 2] {
        self.place(address).map_or([0; 2], |at| {
            [0, 8].map(|next| self.words.get_long(at + event::TIMES + next))
        })
    }

    /// Releases one reference.
    pub fn release(&self, address: u64) {
        let Some(at) = self.place(address) else {
            return;
        };
        let mut released = self.released.lock();
        let Some(count) = released.get_mut((at - events::FIRST) / event::SIZE) else {
            return;
        };
        let references = self.words.word(at + event::REFERENCES);
        // A kernel may have released too often.
        if references.load(Ordering::Acquire) != *count {
            *count = count.wrapping_add(1);
            // What was written to the event is written before another has it.
            in_order();
            let place = self.words.word(at + event::RELEASED);
            place.store(*count, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::fake::{FakeDevice, Reach};

    #[test]
    fn events_are_distinguished_from_other_memory() {
        let fake = FakeDevice::new(Reach::Cached);
        let events = EventsMemory::new(fake.as_ref(), 4).unwrap();
        let first = events.address() + events::FIRST as u64;
        assert!(events.place(first).is_some() && events.place(first + 192).is_some());
        for wrong in [0, first - 64, first + 8, first + 256] {
            assert!(events.place(wrong).is_none(), "{wrong}");
            assert!(events.status(wrong) < 0);
            events.release(wrong);
        }
        events.complete(first, 0, [3, 4]);
        assert_eq!((events.status(first), events.times(first)), (0, [3, 4]));
        let released = || events.words.get(events::FIRST + event::RELEASED);
        // Two references of a kernel's, one of which it gives back itself.
        events.words.set(events::FIRST, 2);
        events.release(first);
        events.words.set(events::FIRST, 1);
        // Free again: more is not taken.
        events.release(first);
        assert_eq!(released(), 1);
        assert_eq!(events.words.get(events::FIRST), 1);
    }
}
