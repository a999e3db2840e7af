//! One order for host and device: when the host's part of a command may touch memory that devices reach, and when the
//! device may touch memory that the host has yet to read or write.
//!
//! A command has up to three parts, each with a time of its own:
//!
//! | part | who | when |
//! |---|---|---|
//! | early | the thread that encodes it | at once |
//! | device | the stream | in the order of the stream and its semaphores |
//! | late | the host thread of the queue | when the timeline is at the command's value |
//!
//! What comes before a command is: what its wait list names; in an in-order queue all that was recorded; else all before
//! the last barrier. Between parts of two commands, of which the first comes before the second:
//!
//! | first | second | what keeps the order |
//! |---|---|---|
//! | device | device | barriers of the stream, semaphores |
//! | device | late | the late part waits for the timeline |
//! | device | early | [`QueueState::is_behind`]: where devices reach the memory the command is held until all before is done |
//! | late | late | the host thread does one after the other; events of others count as done only then |
//! | late | device, early | [`QueueState::meets_host_tasks`]: where ranges meet the command is held until the task is done |
//! | early | any | it is over |
//!
//! Where the host side of a command is memory that the device has too, the device does the work and there is neither an
//! early nor a late part (`HostSide::visible`): nothing is held. Commands that touch memory of the device alone ask
//! nothing of this file but whether there are host tasks, a comparison of two numbers.

use super::host_tasks::QueuePosition;
use super::state::QueueState;
use crate::command::access::{Early, Ranges};
use crate::command::Work;
use crate::object::context::Context;

impl QueueState {
    /// A host task was made, which touches these ranges of memory (`shared`: which devices reach). Gives its number.
    pub fn new_host_task(&mut self, ranges: Ranges, shared: bool) -> u64 {
        self.host.add(self.progress.host_done(), ranges, shared)
    }

    /// Work touches memory that host tasks of this queue have yet to touch.
    pub fn meets_host_tasks(&self, work: &Work) -> bool {
        let done = self.progress.host_done();
        self.host.meet(done, work) || self.host.follows_launches(done, self.in_order(), work)
    }

    /// All that comes before a command must be done before it is encoded: its early part reads memory that devices reach.
    pub fn follows_all(&self, context: &Context, work: &Work) -> bool {
        match work.early() {
            Early::Nothing => false,
            Early::Shared => true,
            Early::Host => context.pointers_are_followed(),
        }
    }

    /// The place that must be reached before a command whose early part follows all that is recorded before it.
    /// `None`: it is reached.
    pub fn is_behind(&self) -> Option<QueuePosition> {
        let place = match self.in_order() {
            true => QueuePosition {
                value: self.value(),
                host_seq: self.host.posted,
            },
            false => self.barrier_place,
        };
        let reached = self.progress.host_done() >= place.host_seq
            && self
                .progress
                .timeline
                .completed()
                .is_ok_and(|now| now >= place.value);
        (!reached).then_some(place)
    }
}
