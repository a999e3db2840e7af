//! Pending commands: kept as data until all that they wait for is on a timeline of this device.
//!
//! Each counts what it waits for: events that have to be recorded or done, a place that the queue has to reach, earlier
//! pending commands. Whatever happens lowers the count once, and a command without a count is looked at again (`pump`). So an
//! operation on n pending commands costs no more than its own dependencies, and a lookup by number.
//!
//! In an in-order queue only the first pending command is looked at: all others come after it.

use super::host::{Migration, Outcome};
use crate::backend::ProfileSlot;
use crate::command::{Command, Work};
use crate::handle::Ref;
use crate::object::event::Event;
use crate::object::mem::map;
use smallvec::SmallVec;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// The profiled operations of a command.
pub type Slots = SmallVec<[ProfileSlot; 2]>;

/// Undoes the preparation of a command that will not run: a map is removed, an unmap leaves the map
/// as it is.
pub(super) fn refuse(command: &Command) {
    match &command.work {
        Work::Map { mem, mapping } => map::remove(mem, mapping),
        Work::Unmap { mem, mapping } => map::reopen(mem, mapping),
        _ => {}
    }
}

/// The parts of a replay that are encoded.
#[derive(Clone)]
pub struct Begun {
    /// The value of the timeline at which they are complete: the rest fails with them.
    pub value: u64,
    /// How the host's parts have ended, if there were any.
    pub outcome: Option<Arc<Outcome>>,
}

/// A command that is not on the timeline yet.
pub struct Pending {
    /// The command.
    pub command: Command,
    /// The events that it waits for: its wait list, then perhaps a barrier.
    pub deps: SmallVec<[Ref<Event>; 4]>,
    /// How many of them are of the wait list.
    pub listed: usize,
    /// Its event, whether the application has it or not.
    pub event: Ref<Event>,
    /// The contents that are, or were, migrated for it.
    pub migration: Option<Arc<Migration>>,
    /// The number of parts of its transfer that are recorded.
    pub parts: usize,
    /// The profiled operations of the parts.
    pub slots: Slots,
    /// The parts of a replay that are recorded.
    pub begun: Option<Begun>,
}

/// The number of commands for which an empty list keeps its memory.
const FEW: usize = 64;

/// A place in the list of pending commands.
enum Slot {
    /// A command that waits.
    Waiting(Box<Pending>),
    /// A command that is being encoded.
    Encoding,
    /// A command that is not pending any more.
    Removed,
}

/// A numbered place.
struct PendingEntry {
    number: u64,
    /// The number of things that the command still waits for: it is looked at when that is zero.
    /// Here, as a command is looked at long after it was enqueued, and is in no cache then.
    count: usize,
    slot: Slot,
}

/// Commands by number, in their order. Those that are removed leave a slot until there are more of
/// these than commands.
#[derive(Default)]
struct CommandList {
    entries: VecDeque<PendingEntry>,
    /// The number of entries that are not of removed commands.
    len: usize,
}

impl CommandList {
    /// Adds a command, whose number is higher than that of all others.
    fn push(&mut self, number: u64, count: usize, pending: Box<Pending>) {
        self.entries.push_back(PendingEntry {
            number,
            count,
            slot: Slot::Waiting(pending),
        });
        self.len += 1;
    }

    fn get_mut(&mut self, number: u64) -> Option<&mut PendingEntry> {
        let first = self.entries.front()?.number;
        // Where there are no gaps.
        let guess = usize::try_from(number.checked_sub(first)?).ok()?;
        let at = match self.entries.get(guess) {
            Some(entry) if entry.number == number => guess,
            _ => {
                let found = self.entries.binary_search_by_key(&number, |e| e.number);
                found.ok()?
            }
        };
        let entry = self.entries.get_mut(at)?;
        (!matches!(entry.slot, Slot::Removed)).then_some(entry)
    }

    fn remove(&mut self, number: u64) {
        let Some(entry) = self.get_mut(number) else {
            return;
        };
        entry.slot = Slot::Removed;
        self.len -= 1;
        let removed = |entry: &PendingEntry| matches!(entry.slot, Slot::Removed);
        while self.entries.front().is_some_and(removed) {
            self.entries.pop_front();
        }
        if self.entries.is_empty() {
            self.entries.shrink_to(FEW);
        } else if self.entries.len() > 2 * self.len + FEW {
            self.entries.retain(|entry| !removed(entry));
        }
    }

    /// Returns the first command. It is never one that was removed.
    fn first(&self) -> Option<&PendingEntry> {
        self.entries.front()
    }
}

/// The pending commands of a queue, in the order in which they were enqueued.
#[derive(Default)]
pub struct PendingCommands {
    list: CommandList,
    /// The number of the last one.
    last: u64,
    /// The commands to look at, of an out-of-order queue.
    ready: VecDeque<u64>,
    /// Markers and barriers without a wait list, of an out-of-order queue, that wait for all earlier ones.
    after_all: VecDeque<u64>,
    /// A barrier among them, which every later command waits for.
    barrier: Option<(u64, Ref<Event>)>,
    /// The commands that wait for a host task, by its number.
    for_host: BTreeMap<u64, SmallVec<[u64; 1]>>,
}

impl PendingCommands {
    /// Returns the number of commands.
    pub fn len(&self) -> usize {
        self.list.len
    }

    /// Returns true if no commands are pending.
    pub fn is_empty(&self) -> bool {
        self.list.len == 0
    }

    /// Returns the numbers of all commands.
    pub fn numbers(&self) -> Vec<u64> {
        self.list.entries.iter().map(|entry| entry.number).collect()
    }

    /// Adds a command that waits for `count` things. `after_all`: and for all that are here. Returns
    /// its number.
    pub fn add(&mut self, pending: Box<Pending>, mut count: usize, after_all: bool) -> u64 {
        self.last += 1;
        let number = self.last;
        if after_all && !self.is_empty() {
            count += 1;
            self.after_all.push_back(number);
        }
        if count == 0 {
            self.ready.push_back(number);
        }
        self.list.push(number, count, pending);
        number
    }

    /// Returns the next command to check.
    pub fn candidate(&mut self, in_order: bool) -> Option<u64> {
        if in_order {
            self.ready.clear();
            let ready = |first: &PendingEntry| {
                let waits = matches!(first.slot, Slot::Waiting(_));
                (waits && first.count == 0).then_some(first.number)
            };
            return self.list.first().and_then(ready);
        }
        let next = self.ready.pop_front();
        if next.is_none() {
            self.ready.shrink_to(FEW);
        }
        next
    }

    /// Marks a command to be looked at once more.
    pub fn look_again(&mut self, number: u64) {
        self.ready.push_back(number);
    }

    /// Makes a command wait for `count` more things.
    pub fn wait_for(&mut self, number: u64, count: usize) {
        if let Some(entry) = self.list.get_mut(number) {
            entry.count += count;
        }
    }

    /// Records that a dependency of a command is met.
    pub fn met(&mut self, number: u64) {
        let Some(entry) = self.list.get_mut(number) else {
            return;
        };
        entry.count = entry.count.saturating_sub(1);
        if entry.count == 0 {
            self.ready.push_back(number);
        }
    }

    /// Returns the event of the barrier that later commands wait for.
    pub fn barrier(&self) -> Option<&Ref<Event>> {
        self.barrier.as_ref().map(|(_, event)| event)
    }

    /// Makes every later command wait for this one.
    pub fn set_barrier(&mut self, number: u64, event: Ref<Event>) {
        self.barrier = Some((number, event));
    }

    /// Makes a command wait for a host task; [`PendingCommands::host_done`] ends that.
    pub fn wait_for_host(&mut self, number: u64, seq: u64) {
        self.for_host.entry(seq).or_default().push(number);
    }

    /// Ends the waits for host tasks up to this one. Returns true if commands wait for later ones.
    pub fn host_done(&mut self, seq: u64) -> bool {
        while let Some(entry) = self.for_host.first_entry().filter(|e| *e.key() <= seq) {
            for number in entry.remove() {
                self.met(number);
            }
        }
        !self.for_host.is_empty()
    }

    /// Takes a command to encode it. It still counts as pending, until it is put back or removed.
    pub fn take(&mut self, number: u64) -> Option<Box<Pending>> {
        let slot = &mut self.list.get_mut(number)?.slot;
        match std::mem::replace(slot, Slot::Encoding) {
            Slot::Waiting(pending) => Some(pending),
            other => {
                *slot = other;
                None
            }
        }
    }

    /// Puts back a command that was taken.
    pub fn put_back(&mut self, number: u64, pending: Box<Pending>) {
        if let Some(entry) = self.list.get_mut(number) {
            entry.slot = Slot::Waiting(pending);
        }
    }

    /// Removes a command that was taken.
    pub fn remove(&mut self, number: u64) {
        self.list.remove(number);
        if self.barrier.as_ref().is_some_and(|(own, _)| *own == number) {
            self.barrier = None;
        }
        let first = self.list.first().map(|first| first.number);
        if let Some(next) = first.filter(|first| self.after_all.front() == Some(first)) {
            self.after_all.pop_front();
            self.met(next);
        }
    }
}
