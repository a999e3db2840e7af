//! The state that the kernels of a context which enqueue others share on a device: the memory of queues and events, and the
//! readers of the records that a launch has left.
//!
//! Kernels write records into the memory of queues (`backend/device_queue.rs`). [`DeviceSide::collect`] finds them
//! and gives each to the *tree* it belongs to: a launch of the application's with all that it has enqueued, directly
//! and not. `queue/device_enqueue.rs` launches what they say. The queues as objects stand above, in `device_queue.rs`.

use crate::backend::device_events::EventsMemory;
use crate::backend::device_queue::{Found, QueueMemory};
use crate::backend::event_times::EventTimes;
use crate::backend::{Device, Point};
use crate::cl::{self, cl_command_queue_properties};
use crate::error::ClResult;
use crate::util::lock::{rank, Mutex};
use parking_lot::Condvar;
use rustc_hash::FxHashMap;
use std::any::Any;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// CL_DEVICE_QUEUE_ON_DEVICE_PREFERRED_SIZE, in bytes.
pub const PREFERRED_SIZE: u32 = 4 << 20;
/// CL_DEVICE_QUEUE_ON_DEVICE_MAX_SIZE, in bytes.
pub const MAX_SIZE: u32 = 32 << 20;
/// CL_DEVICE_MAX_ON_DEVICE_QUEUES. Nothing keeps applications from making more but memory.
pub const MAX_QUEUES: u32 = 64;
/// CL_DEVICE_MAX_ON_DEVICE_EVENTS
pub const MAX_EVENTS: u32 = 16 << 10;
/// CL_DEVICE_QUEUE_ON_DEVICE_PROPERTIES
pub const PROPERTIES: cl_command_queue_properties =
    cl::CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE | cl::CL_QUEUE_PROFILING_ENABLE;

/// Records for a tree, with the queues that they lie in.
#[derive(Default)]
pub struct Inbox(Mutex<Vec<(Found, Arc<QueueMemory>)>, { rank::TREE_INBOX }>);

impl Inbox {
    /// Takes the records that have arrived.
    pub fn take(&self) -> Vec<(Found, Arc<QueueMemory>)> {
        std::mem::take(&mut self.0.lock())
    }
}

/// A record that is being written, and holds up what lies behind it.
pub struct Stuck {
    queue: Arc<QueueMemory>,
    position: u32,
}

impl Stuck {
    /// Skips the record, which will never be complete.
    pub fn skip(&self) {
        self.queue.skip(self.position);
    }
}

impl PartialEq for Stuck {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.queue, &other.queue) && self.position == other.position
    }
}

/// Launches that may write records, as long as it lives.
pub struct UnderWay(Arc<DeviceSide>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.under_way.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The state that kernels of a context which enqueue others share on a device.
pub struct DeviceSide {
    /// The device events.
    pub events: EventsMemory,
    /// The writer of times of events, where kernels want them.
    pub times: EventTimes,
    queues: parking_lot::Mutex<Vec<Weak<QueueMemory>>>,
    /// The default queue, which knows what it is: it stands above.
    pub(super) default: parking_lot::Mutex<Option<Weak<dyn Any + Send + Sync>>>,
    trees: Mutex<FxHashMap<u32, Arc<Inbox>>, { rank::LAUNCH_TREES }>,
    next: AtomicU64,
    /// How many [`UnderWay`] there are.
    under_way: AtomicU32,
    /// How many trees are over, and where the streams that they ran on had come to.
    trees_over: AtomicU64,
    last_points: parking_lot::Mutex<Vec<Point>>,
    /// How many launches have ended whose kernels could set events.
    ended: parking_lot::Mutex<u64>,
    changed: Condvar,
}

impl DeviceSide {
    /// Creates the state without any queue.
    pub fn new(device: &dyn Device) -> ClResult<Self> {
        Ok(Self {
            events: EventsMemory::new(device, MAX_EVENTS)?,
            times: EventTimes::default(),
            queues: Default::default(),
            default: Default::default(),
            trees: Mutex::default(),
            next: AtomicU64::new(0),
            under_way: AtomicU32::new(0),
            trees_over: AtomicU64::new(0),
            last_points: Default::default(),
            ended: Default::default(),
            changed: Condvar::new(),
        })
    }

    /// Adds the memory of a queue.
    pub(super) fn add(&self, memory: &Arc<QueueMemory>) {
        let mut queues = self.queues.lock();
        queues.retain(|known| known.strong_count() > 0);
        queues.push(Arc::downgrade(memory));
    }

    /// Returns all queues. A launch keeps them: kernels may have found any of them in memory.
    pub fn queues(&self) -> Vec<Arc<QueueMemory>> {
        self.queues
            .lock()
            .iter()
            .filter_map(Weak::upgrade)
            .collect()
    }

    /// Creates a launch tree. Returns its number and the inbox that its records go to until
    /// [`DeviceSide::forget`].
    pub fn tree(&self) -> (u32, Arc<Inbox>) {
        let mut trees = self.trees.lock();
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed) as u32;
            if let std::collections::hash_map::Entry::Vacant(free) = trees.entry(number) {
                return (number, free.insert(Arc::default()).clone());
            }
        }
    }

    /// Removes a launch tree that is complete.
    pub fn forget(&self, number: u32) {
        self.trees.lock().remove(&number);
    }

    /// Registers a launch that may write records.
    pub fn under_way(self: &Arc<Self>) -> UnderWay {
        self.under_way.fetch_add(1, Ordering::AcqRel);
        UnderWay(self.clone())
    }

    /// Returns true if all launches that may write records have ended.
    pub fn all_ended(&self) -> bool {
        self.under_way.load(Ordering::Acquire) == 0
    }

    /// Finds all records of these queues and passes them to their trees. The number of a launch has
    /// that of its tree in the upper half. Returns the first record that is still being written,
    /// after which there may be more.
    pub fn collect(&self, queues: &[Arc<QueueMemory>]) -> Option<Stuck> {
        let mut stuck = None;
        for queue in queues {
            // Dropping them takes the lock that is held while they are found.
            let mut unclaimed = Vec::new();
            let place = queue.find(|found| {
                // Held meanwhile: a tree that is forgotten looks into its inbox once more.
                let trees = self.trees.lock();
                match trees.get(&((found.launch >> 32) as u32)) {
                    Some(tree) => tree.0.lock().push((found, queue.clone())),
                    None => unclaimed.push(found),
                }
            });
            for found in unclaimed {
                crate::log!(Error, "a record in a device queue is of no launch");
                queue.forget(found);
            }
            let held = |position| Stuck {
                queue: queue.clone(),
                position,
            };
            stuck = stuck.or(place.map(held));
        }
        stuck
    }

    /// Records that a launch tree is complete, at this point.
    pub fn note_tree(&self, point: Point) {
        let mut points = self.last_points.lock();
        points.retain(|known| !Arc::ptr_eq(&known.timeline, &point.timeline));
        points.push(point);
        self.trees_over.fetch_add(1, Ordering::Release);
    }

    /// Returns the number of launch trees that are complete.
    pub fn trees_over(&self) -> u64 {
        self.trees_over.load(Ordering::Acquire)
    }

    /// Returns the points at which launch trees were complete, with all that their kernels wrote
    /// before.
    pub fn last_points(&self) -> Vec<Point> {
        self.last_points.lock().clone()
    }

    /// Records that kernels which could set events have ended.
    pub fn note_ended(&self) {
        *self.ended.lock() += 1;
        self.changed.notify_all();
    }

    /// Returns the number of calls of [`DeviceSide::note_ended`].
    pub fn ended(&self) -> u64 {
        *self.ended.lock()
    }

    /// Waits until [`DeviceSide::ended`] exceeds `known`, for 5 ms at most.
    pub fn wait_ended(&self, known: u64) {
        let mut ended = self.ended.lock();
        if *ended == known {
            self.changed.wait_for(&mut ended, Duration::from_millis(5));
        }
    }
}
