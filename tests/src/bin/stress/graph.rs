//! The graph of commands: queues, and what was enqueued, with the order that is between them.

use crate::world::{lock, World};
use pumice_tests::rng::Rng;
use pumice_tests::sys::*;
use pumice_tests::{call, code_name, create, info_value, ok};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

static CLOCK: AtomicU64 = AtomicU64::new(1);

/// The order of calls, over all threads.
pub fn tick() -> u64 {
    CLOCK.fetch_add(1, Ordering::SeqCst)
}

/// A queue.
pub struct Lane {
    /// The handle.
    pub id: cl_command_queue,
    /// Commands run in the order of their enqueueing.
    pub in_order: bool,
    /// Its events have times.
    pub profiling: bool,
    /// The latest barrier without a wait list: when its enqueueing began and when it ended.
    barrier: Mutex<Option<(u64, u64)>>,
}

// SAFETY: OpenCL handles may be used from every thread.
unsafe impl Send for Lane {}
// SAFETY: as above.
unsafe impl Sync for Lane {}

impl Drop for Lane {
    fn drop(&mut self) {
        ok!(clReleaseCommandQueue(self.id));
    }
}

impl Lane {
    /// A queue of one of the devices, with random properties.
    pub fn new(world: &World, rng: &mut Rng) -> Arc<Self> {
        let (in_order, profiling) = (rng.percent(50), rng.percent(30));
        let mut bits = 0;
        if !in_order {
            bits |= CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
        }
        if profiling {
            bits |= CL_QUEUE_PROFILING_ENABLE;
        }
        let list = [cl_queue_properties::from(CL_QUEUE_PROPERTIES), bits, 0];
        Arc::new(Self {
            id: create!(clCreateCommandQueueWithProperties(
                world.context,
                *rng.pick(&world.devices),
                list.as_ptr()
            )),
            in_order,
            profiling,
            barrier: Mutex::default(),
        })
    }

    /// A barrier that all later commands wait for.
    pub fn barrier(&self) {
        let begin = tick();
        ok!(clEnqueueBarrierWithWaitList(self.id, 0, null(), null_mut()));
        *lock(&self.barrier) = Some((begin, tick()));
    }

    /// A command enqueued from `begin` on comes after a node without waiting for its event.
    pub fn orders(self: &Arc<Self>, node: &Node, begin: u64) -> bool {
        if node.is_complete() {
            return true;
        }
        let Some(lane) = &node.lane else { return false };
        Arc::ptr_eq(lane, self)
            && (self.in_order
                || lock(&self.barrier).is_some_and(|(from, to)| node.end < from && to < begin))
    }
}

/// A command that was enqueued, or a user event.
pub struct Node {
    /// Its queue, none for a user event.
    pub lane: Option<Arc<Lane>>,
    /// Its event, if one was asked for.
    pub event: Option<cl_event>,
    /// The kind of command.
    pub name: &'static str,
    /// When its enqueueing had ended.
    pub end: u64,
    /// Set if it is not executed, because a dependency fails.
    pub fails: bool,
    complete: AtomicBool,
}

// SAFETY: OpenCL handles may be used from every thread.
unsafe impl Send for Node {}
// SAFETY: as above.
unsafe impl Sync for Node {}

impl Drop for Node {
    fn drop(&mut self) {
        if let Some(event) = self.event {
            ok!(clReleaseEvent(event));
        }
    }
}

impl Node {
    /// Creates the node of a command that was just enqueued.
    pub fn new(
        name: &'static str,
        lane: Option<Arc<Lane>>,
        event: Option<cl_event>,
        fails: bool,
    ) -> Arc<Self> {
        Arc::new(Self {
            lane,
            event,
            name,
            end: tick(),
            fails,
            complete: AtomicBool::new(false),
        })
    }

    /// Returns true if it is known to be complete.
    pub fn is_complete(&self) -> bool {
        self.complete.load(Ordering::Acquire)
    }

    /// Somebody has seen that it is over.
    pub fn set_complete(&self) {
        self.complete.store(true, Ordering::Release);
    }

    /// Asks whether it is over.
    pub fn poll(&self) -> bool {
        if self.is_complete() {
            return true;
        }
        let Some(event) = self.event else {
            return false;
        };
        let status = info_value!(
            i32,
            clGetEventInfo(event),
            CL_EVENT_COMMAND_EXECUTION_STATUS
        );
        if status > CL_COMPLETE {
            return false;
        }
        self.check_status(status);
        self.set_complete();
        true
    }

    fn check_status(&self, status: cl_int) {
        assert_eq!(
            status < 0,
            self.fails,
            "{} ended with {}",
            self.name,
            code_name(status)
        );
    }

    /// An event that comes after it: its own, or that of a marker in its queue. True: to be released.
    pub fn event_after(&self) -> (cl_event, bool) {
        if let Some(event) = self.event {
            return (event, false);
        }
        let lane = self.lane.as_ref().expect("user events have events");
        let mut event = null_mut();
        ok!(clEnqueueMarkerWithWaitList(lane.id, 0, null(), &mut event));
        (event, true)
    }

    /// Waits until it is over, in one of the ways that there are.
    pub fn finish(&self, rng: &mut Rng) {
        if self.is_complete() {
            return;
        }
        match (self.event, &self.lane, rng.below(4)) {
            (Some(event), _, 0 | 1) => {
                let code = call!(clWaitForEvents(1, &event));
                let expected = if self.fails {
                    CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST
                } else {
                    0
                };
                assert_eq!(
                    code,
                    expected,
                    "waiting for {}: {}",
                    self.name,
                    code_name(code)
                );
            }
            (Some(_), lane, 2) => {
                if let Some(lane) = lane {
                    ok!(clFlush(lane.id));
                }
                while !self.poll() {
                    std::thread::yield_now();
                }
            }
            (_, Some(lane), 3) => {
                let mut event = null_mut();
                ok!(clEnqueueMarkerWithWaitList(lane.id, 0, null(), &mut event));
                ok!(clWaitForEvents(1, &event));
                ok!(clReleaseEvent(event));
            }
            (_, Some(lane), _) => ok!(clFinish(lane.id)),
            (Some(event), None, _) => {
                call!(clWaitForEvents(1, &event));
            }
            (None, None, _) => {}
        }
        if let Some(event) = self.event {
            let status = info_value!(
                i32,
                clGetEventInfo(event),
                CL_EVENT_COMMAND_EXECUTION_STATUS
            );
            assert!(status <= CL_COMPLETE, "{} is not over: {status}", self.name);
            self.check_status(status);
            if let (Some(lane), false) = (&self.lane, self.fails) {
                if lane.profiling && rng.percent(30) {
                    self.check_times(event);
                }
            }
        }
        self.set_complete();
    }

    fn check_times(&self, event: cl_event) {
        let names = [
            CL_PROFILING_COMMAND_QUEUED,
            CL_PROFILING_COMMAND_SUBMIT,
            CL_PROFILING_COMMAND_START,
            CL_PROFILING_COMMAND_END,
            CL_PROFILING_COMMAND_COMPLETE,
        ];
        let times = names.map(|name| info_value!(cl_ulong, clGetEventProfilingInfo(event), name));
        assert!(times.is_sorted(), "times of {}: {times:?}", self.name);
    }
}
