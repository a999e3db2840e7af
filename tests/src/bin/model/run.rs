//! A program, run: every action made as an application makes it, and what can be seen compared with the model.

mod commands;

use crate::contents::{Contents, Difference};
use crate::objects::{bytes, Object};
use crate::program::{Action, Program, What};
use crate::world::World;
use pumice_tests::sys::*;
use pumice_tests::{create, ok};
use std::ffi::c_void;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

/// What a run has shown to be wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// Bytes, seen by this action or, without one, at the end.
    Bytes(Option<usize>, Difference),
    /// The event of this action ended with this status.
    Status(usize, cl_int),
    /// So many callbacks did not come.
    Callbacks(usize),
    /// A callback came with another status than CL_COMPLETE, or once more.
    Called,
}

/// A user event and when it is to be set.
pub struct Gate {
    event: cl_event,
    due: Instant,
}

// SAFETY: OpenCL handles may be used from every thread.
unsafe impl Send for Gate {}

impl Gate {
    /// Waits for its time, and sets it.
    pub fn open(self) {
        std::thread::sleep(self.due.saturating_duration_since(Instant::now()));
        ok!(clSetUserEventStatus(self.event, 0));
        ok!(clReleaseEvent(self.event));
    }
}

/// Callbacks still to come.
static CALLBACKS: AtomicUsize = AtomicUsize::new(0);
/// Those that came as they should not.
static ASTRAY: AtomicUsize = AtomicUsize::new(0);

extern "C" fn called(_: cl_event, status: cl_int, mark: *mut c_void) {
    // SAFETY: the mark of one callback, leaked.
    let mark = unsafe { &*mark.cast::<AtomicUsize>() };
    if status != 0 || mark.fetch_add(1, Ordering::SeqCst) != 0 {
        ASTRAY.fetch_add(1, Ordering::SeqCst);
    }
    CALLBACKS.fetch_sub(1, Ordering::SeqCst);
}

/// A program that runs.
pub struct Run<'a> {
    world: &'a World,
    program: &'a Program,
    queues: Vec<cl_command_queue>,
    objects: Vec<Object>,
    /// Of each action.
    events: Vec<cl_event>,
    /// Pointers of maps, of each action.
    maps: Vec<usize>,
    contents: Contents,
    gates: &'a Sender<Gate>,
}

fn queue(world: &World, program: &Program, index: usize) -> cl_command_queue {
    let plan = &program.queues[index];
    let mut bits = 0;
    if !plan.in_order {
        bits |= CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
    }
    if plan.profiling {
        bits |= CL_QUEUE_PROFILING_ENABLE;
    }
    create!(clCreateCommandQueue(
        world.context,
        world.devices[plan.device],
        bits
    ))
}

/// Runs a program. Gates are opened by whoever receives them.
pub fn run(world: &World, program: &Program, gates: &Sender<Gate>) -> Option<Fault> {
    let queues: Vec<_> = (0..program.first_queues)
        .map(|index| queue(world, program, index))
        .collect();
    let objects = (0..program.memories.len())
        .map(|index| Object::new(world, program, index))
        .collect();
    ok!(clFinish(world.queue));
    let mut run = Run {
        world,
        program,
        queues,
        objects,
        events: vec![null_mut(); program.actions.len()],
        maps: vec![0; program.actions.len()],
        contents: Contents::new(program),
        gates,
    };
    let mut fault = None;
    for number in 0..program.actions.len() {
        fault = fault.or(run.step(number));
    }
    let end = run.finish(fault.is_some());
    fault.or(end)
}

impl Run<'_> {
    fn step(&mut self, number: usize) -> Option<Fault> {
        let program = self.program;
        let action = &program.actions[number];
        self.contents.step(program, number);
        match &action.what {
            What::Gate(delay) => {
                let event = create!(clCreateUserEvent(self.world.context));
                ok!(clRetainEvent(event));
                let due = Instant::now() + Duration::from_micros(*delay);
                self.gates
                    .send(Gate { event, due })
                    .expect("somebody opens them");
                self.events[number] = event;
            }
            What::Store(place, size, byte) => {
                let address = self.pointer(place) as *mut u8;
                // SAFETY: the program has the right to, by its own account of what is mapped and over.
                unsafe { std::ptr::write_bytes(address, *byte, *size) };
            }
            What::Check(place, size) => {
                // SAFETY: as above.
                let got = unsafe { bytes(self.pointer(place) as usize, *size) };
                let range = place.at..place.at + size;
                let wrong = self.contents.compare(place.memory, range, got);
                return wrong.map(|wrong| Fault::Bytes(Some(number), wrong));
            }
            What::Flush => ok!(clFlush(self.queues[action.queue])),
            What::Finish => ok!(clFinish(self.queues[action.queue])),
            What::Wait(other) => ok!(clWaitForEvents(1, &self.events[*other])),
            What::Sleep(time) => std::thread::sleep(Duration::from_micros(*time)),
            What::NewQueue => {
                let index = self.queues.len();
                self.queues.push(queue(self.world, program, index));
            }
            What::Release(memory) => self.objects[*memory].release(),
            _ => self.command(number, action),
        }
        None
    }

    fn command(&mut self, number: usize, action: &Action) {
        let waits: Vec<cl_event> = action.waits.iter().map(|wait| self.events[*wait]).collect();
        let named = self
            .program
            .actions
            .iter()
            .any(|other| other.waits.contains(&number) || other.what == What::Wait(number));
        let mut event = null_mut();
        let list = commands::Wait {
            count: waits.len() as cl_uint,
            list: if waits.is_empty() {
                null()
            } else {
                waits.as_ptr()
            },
            event: if named || action.event || action.callback {
                &mut event
            } else {
                null_mut()
            },
        };
        self.enqueue(number, action, &list);
        self.events[number] = event;
        if action.callback {
            CALLBACKS.fetch_add(1, Ordering::SeqCst);
            let mark: &'static AtomicUsize = Box::leak(Box::default());
            let mark = (mark as *const AtomicUsize).cast_mut().cast();
            ok!(clSetEventCallback(
                event,
                CL_COMPLETE as cl_int,
                Some(called),
                mark
            ));
        }
    }

    /// All queues finish, everything is compared, everything is let go.
    fn finish(mut self, known: bool) -> Option<Fault> {
        for queue in &self.queues {
            ok!(clFinish(*queue));
        }
        // Gates that nobody waited for.
        for (action, event) in self.program.actions.iter().zip(&self.events) {
            if matches!(action.what, What::Gate(_)) {
                ok!(clWaitForEvents(1, event));
            }
        }
        self.unmap_all();
        let mut fault = self.statuses();
        for (index, memory) in self.program.memories.iter().enumerate() {
            let freed = |action: &Action| matches!(action.what, What::Free(m) | What::Release(m) if m == index);
            if known || self.program.actions.iter().any(freed) {
                continue;
            }
            let got = self.objects[index].read(self.world, memory.size);
            let wrong = self.contents.compare(index, 0..memory.size, &got);
            fault = fault.or(wrong.map(|wrong| Fault::Bytes(None, wrong)));
        }
        ok!(clFinish(self.world.queue));
        for object in self.objects.drain(..) {
            object.end(self.world);
        }
        for event in self.events.iter().filter(|event| !event.is_null()) {
            ok!(clReleaseEvent(*event));
        }
        for queue in &self.queues {
            ok!(clReleaseCommandQueue(*queue));
        }
        fault.or_else(callbacks)
    }

    /// All commands have succeeded.
    fn statuses(&self) -> Option<Fault> {
        for (number, event) in self.events.iter().enumerate() {
            if event.is_null() {
                continue;
            }
            let status = pumice_tests::info_value!(
                cl_int,
                clGetEventInfo(*event),
                CL_EVENT_COMMAND_EXECUTION_STATUS
            );
            if status != 0 {
                return Some(Fault::Status(number, status));
            }
        }
        None
    }
}

/// All callbacks have come, each once.
fn callbacks() -> Option<Fault> {
    let patience = Instant::now() + Duration::from_secs(10);
    while CALLBACKS.load(Ordering::SeqCst) > 0 && Instant::now() < patience {
        std::thread::sleep(Duration::from_micros(20));
    }
    match CALLBACKS.swap(0, Ordering::SeqCst) {
        0 => (ASTRAY.swap(0, Ordering::SeqCst) > 0).then_some(Fault::Called),
        missing => Some(Fault::Callbacks(missing)),
    }
}
