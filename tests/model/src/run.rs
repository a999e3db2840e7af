//! Runs a program: the host's actions and the order of all; the commands are in [`crate::command`].

mod closed;
mod limit;
pub mod printed;

use crate::expect::{expected, pattern, Contents, Expected};
use crate::hostile::{self, Hostile};
use crate::order::Set;
use crate::output::Output;
use crate::plan::Planner;
use crate::program::{Kind, Manner, Place, Program, What};
use crate::stage::{bytes_at, put_at, Stage};
use crate::threads;
use crate::watch::{new_flags, Key, Watch};
use crate::world::World;
use pumice_tests::process::resident;
use pumice_tests::sys::*;
use pumice_tests::{call, code_name, create, info_value, ok};
use std::collections::HashMap;
use std::ffi::c_void;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use printed::Printed;

/// For so long callbacks may be late.
const PATIENCE: Duration = Duration::from_secs(5);

/// A map that was made.
#[derive(Clone, Copy)]
pub struct Mapped {
    /// The pointer that the call returned.
    pub pointer: usize,
    /// The row pitch of an image.
    pub pitch: usize,
}

/// A program that runs.
pub struct Run<'a> {
    pub(crate) world: &'a World,
    pub(crate) program: &'a Program,
    pub(crate) stage: Stage<'a>,
    pub(crate) maps: Vec<Option<Mapped>>,
    /// The events of the actions, null where they have none.
    pub(crate) events: Vec<cl_event>,
    /// The sync points of the actions that record commands.
    pub(crate) points: Vec<cl_sync_point_khr>,
    /// The handles of those that may be updated, by command buffer and action.
    pub(crate) handles: HashMap<(usize, usize), cl_mutable_command_khr>,
    /// The calls that failed as their commands do.
    pub(crate) refused: Vec<bool>,
    expected: Expected,
    printed: Printed<'a>,
    open: Vec<usize>,
    gates: Vec<JoinHandle<()>>,
    pub(crate) callbacks: Vec<(usize, Arc<AtomicU32>)>,
    /// Markers behind all of a queue that is released.
    ends: Vec<cl_event>,
    /// The watch that opens the gates, if there are any.
    pub(crate) watch: Option<Watch>,
    /// The flags that native kernels wait for, by their actions.
    pub(crate) flags: &'static [AtomicU32],
    /// The actions so far, as the planner has them.
    planner: Planner,
    /// Memory of the process before the first gate closed.
    resident: i64,
    conduct: Conduct,
}

/// How programs are run.
#[derive(Debug, Clone, Copy)]
pub struct Conduct {
    /// So late may come what must have happened while gates are closed.
    pub grace: Duration,
    /// The state of the process.
    pub hostile: Hostile,
}

extern "C" fn called(_: cl_event, _: cl_int, data: *mut c_void) {
    // SAFETY: a counter of which one reference was given away for ever.
    let counter = unsafe { &*data.cast::<AtomicU32>() };
    counter.fetch_add(1, Ordering::SeqCst);
}

/// Sleeps, also for less than the system's sleep can do.
fn rest(micros: u64) {
    let until = Instant::now() + Duration::from_micros(micros);
    if micros > 200 {
        std::thread::sleep(Duration::from_micros(micros - 100));
    }
    while Instant::now() < until {
        std::hint::spin_loop();
    }
}

/// Runs a program. What it shows and should not: where, and what.
pub fn run(
    world: &World,
    program: &Program,
    conduct: Conduct,
    output: &mut Output,
) -> Result<(), String> {
    let has_gates = program.has(What::is_gate);
    let native = program.has(|what| *what == What::GateNative);
    if program.has(|what| matches!(what, What::GateKernel(_))) {
        world.waiting();
    }
    let plain = Manner::default();
    if program.has(|what| matches!(what, What::Kernel { manner, .. } if *manner != plain)) {
        world.mannered();
    }
    let _limit = program.has(|what| *what == What::Doomed).then(|| {
        let needed = (world.failing().group as u64) << 20;
        limit::Limit::new(needed / 2)
    });
    let hostile = conduct.hostile;
    let _floats = hostile.floats.then(|| hostile::floats(program.seed));
    let mut run = Run {
        world,
        program,
        stage: Stage::new(world, program),
        maps: vec![None; program.actions.len()],
        events: vec![null_mut(); program.actions.len()],
        points: vec![0; program.actions.len()],
        handles: HashMap::new(),
        refused: vec![false; program.actions.len()],
        expected: expected(program),
        printed: Printed::new(program, output),
        open: Vec::new(),
        gates: Vec::new(),
        callbacks: Vec::new(),
        ends: Vec::new(),
        watch: has_gates.then(|| Watch::new(conduct.grace)),
        flags: if native { new_flags() } else { &[] },
        planner: Planner::new(program),
        resident: 0,
        conduct,
    };
    let mut result = run.actions();
    let ended = run.finish();
    if let Some(late) = run.watch.take().and_then(|watch| watch.late()) {
        result = Err(late);
    }
    let result = result.and(ended).and_then(|()| run.check_last());
    let result = result.and_then(|()| run.printed.check(&run.expected.lines, Set::MAX));
    let events = run.check_events();
    let floats = match hostile.floats && program.seed % 16 == 3 {
        true => hostile::check_floats(world, program.seed),
        false => Ok(()),
    };
    let result = result.and(events).and(floats);
    match hostile::signals_taken() {
        0 => result,
        count => result.and(Err(format!("a thread of the driver took {count} signals"))),
    }
}

impl Run<'_> {
    /// The address of a place.
    pub(crate) fn address(&self, place: Place) -> usize {
        let Some((map, mapped)) = place.map.and_then(|map| Some((map, self.maps[map]?))) else {
            return self.stage.memories[place.memory].base + place.at;
        };
        let start = self
            .program
            .mapped(map)
            .map_or(0, |(_, range, _)| range.start);
        let offset = place.at - start;
        mapped.pointer
            + match self.program.memories[place.memory].kind {
                Kind::Image(pitch) => offset / pitch * mapped.pitch + offset % pitch,
                _ => offset,
            }
    }

    /// All actions, each part in its thread.
    fn actions(&mut self) -> Result<(), String> {
        let all = &self.program.actions;
        let thread = |at: usize| match all[at].what {
            What::Thread(how) => Some(how),
            _ => None,
        };
        let (mut result, mut start) = (Ok(()), 0);
        while start < all.len() {
            let later = (start + 1..all.len()).find(|&at| thread(at).is_some());
            let end = later.unwrap_or(all.len());
            let mut part = || {
                for index in start..end {
                    let seen = self.one(index);
                    result = std::mem::replace(&mut result, Ok(())).and(seen);
                }
            };
            match thread(start) {
                None => part(),
                Some(how) => {
                    let mut first = || {
                        let mut count = 0;
                        let platform = null_mut();
                        ok!(clGetPlatformIDs(0, platform, &mut count));
                    };
                    threads::run(how, start % 2 == 0, &mut first, &mut part);
                }
            }
            start = end;
        }
        result
    }

    /// One action, watched while gates are closed.
    fn one(&mut self, index: usize) -> Result<(), String> {
        if self.conduct.hostile.signals {
            hostile::block_signals((self.program.seed >> (index % 40)) & 1 == 1);
        }
        if let Some(watch) = &self.watch {
            watch.begin(index);
        }
        let result = self.action(index);
        if self.watch.is_some() {
            // The planner let the action in when the program was made.
            let _ = self.planner.add(self.program.actions[index].clone());
        }
        if let Some(watch) = &self.watch {
            watch.end();
        }
        result
    }

    fn action(&mut self, index: usize) -> Result<(), String> {
        let action = &self.program.actions[index];
        if action.what.is_gate() && self.planner.state().closed.is_empty() {
            self.resident = resident();
        }
        if !action.what.is_command() {
            let lines = &self.expected.lines;
            (self.printed.check_before(lines, index))
                .map_err(|what| format!("action {index}: {what}"))?;
        }
        match action.what {
            What::Hold => self.hold(index),
            What::Open(gate) => return self.open_gate(index, gate),
            What::Thread(_) => {}
            What::Gate(micros) => self.gate(index, micros, CL_COMPLETE),
            What::Refuse(micros) => self.gate(index, micros, -1),
            What::Store(place, size, number) => {
                // SAFETY: memory of the program, which it may write now (the planner has seen to it).
                unsafe { put_at(self.address(place), &pattern(number, size)) };
            }
            What::Check(place, size) => return self.check(index, place, size),
            What::Flush(queue) => ok!(clFlush(self.stage.queues[queue])),
            What::Finish(queue) => ok!(clFinish(self.stage.queues[queue])),
            What::Wait(of) => {
                let event = self.events[of];
                let code = call!(clWaitForEvents(1, &event));
                if code != self.code(self.program.fails(of)) {
                    return Err(format!("action {index}: it gave {}", code_name(code)));
                }
            }
            What::Sleep(micros) => rest(micros),
            What::Create(memory) => self.stage.create(memory),
            What::Release(memory) => self.stage.release(memory),
            What::NewQueue(queue) => self.stage.new_queue(queue),
            What::EndQueue(queue) => self.end_queue(queue),
            What::Begin(_)
            | What::Finalize(_)
            | What::Update { .. }
            | What::Discard(_)
            | What::Misuse(..) => {
                let result = self.call_recording(index);
                return result.map_err(|what| format!("action {index}: {what}"));
            }
            _ if action.recording.is_some() => {
                let code = self.record(index, action.recording.unwrap_or_default());
                if code != CL_SUCCESS {
                    return Err(format!("action {index}: it gave {}", code_name(code)));
                }
            }
            _ => {
                let code = self.enqueue(index);
                if code != self.code(self.program.fails(index) && action.blocking) {
                    return Err(format!("action {index}: it gave {}", code_name(code)));
                }
                self.watch(index);
                self.check_kind(index)?;
            }
        }
        self.release_semaphores(index);
        match action.what {
            _ if self.program.fails(index) => {}
            What::Map(..) | What::SvmMap(..) => self.open.push(index),
            What::Unmap(map) => self.open.retain(|open| *open != map),
            What::Free(memory) => self.stage.memories[memory].svm = None,
            _ => {}
        }
        Ok(())
    }

    /// Returns the code of a call that waits for something that fails, or does not.
    fn code(&self, fails: bool) -> cl_int {
        match fails {
            true => CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST,
            false => CL_SUCCESS,
        }
    }

    fn gate(&mut self, index: usize, micros: u64, status: cl_int) {
        let event = create!(clCreateUserEvent(self.world.context));
        self.events[index] = event;
        let number = event as usize;
        self.gates.push(std::thread::spawn(move || {
            rest(micros);
            ok!(clSetUserEventStatus(number as cl_event, status));
        }));
    }

    fn hold(&mut self, index: usize) {
        let event = create!(clCreateUserEvent(self.world.context));
        self.events[index] = event;
        if let Some(watch) = &self.watch {
            watch.close(index, Key::Event(event as usize));
        }
    }

    /// Checks what has to have happened, and opens a gate: by an action, or at the end.
    fn open_gate(&mut self, by: usize, gate: usize) -> Result<(), String> {
        if let Some(watch) = &self.watch {
            watch.end();
        }
        let result = self.check_closed(by);
        if let Some(watch) = &self.watch {
            watch.begin(by);
            watch.open(gate);
        }
        result
    }

    fn end_queue(&mut self, queue: usize) {
        let id = std::mem::replace(&mut self.stage.queues[queue], null_mut());
        let mut event = null_mut();
        ok!(clEnqueueMarkerWithWaitList(id, 0, null(), &mut event));
        self.ends.push(event);
        ok!(clReleaseCommandQueue(id));
    }

    fn watch(&mut self, index: usize) {
        if self.program.actions[index].callback && !self.events[index].is_null() {
            let counter = Arc::new(AtomicU32::new(0));
            let data = Arc::into_raw(counter.clone());
            ok!(clSetEventCallback(
                self.events[index],
                CL_COMPLETE,
                Some(called),
                data.cast_mut().cast()
            ));
            self.callbacks.push((index, counter));
        }
    }

    fn check(&self, index: usize, place: Place, size: usize) -> Result<(), String> {
        let Some(contents) = &self.expected.checks[index] else {
            return Ok(());
        };
        // SAFETY: memory of the program, which it may read now.
        let got = unsafe { bytes_at(self.address(place), size) };
        compare(&format!("action {index}"), contents, got)
    }

    /// Ends all that is under way.
    fn finish(&mut self) -> Result<(), String> {
        let mut result = Ok(());
        while let Some(&gate) = self.planner.state().closed.first() {
            let seen = self.open_gate(self.program.actions.len(), gate);
            result = result.and(seen);
            let open = crate::program::ProgramAction::host(What::Open(gate));
            if self.planner.add(open).is_err() {
                break;
            }
        }
        if let Some(watch) = &self.watch {
            watch.end();
        }
        self.end_waits();
        self.finish_all().and(result)
    }

    /// The same, where no gate is closed.
    fn finish_all(&mut self) -> Result<(), String> {
        for gate in self.gates.drain(..) {
            gate.join().map_err(|_| "a gate failed".to_owned())?;
        }
        for end in std::mem::take(&mut self.ends) {
            ok!(clWaitForEvents(1, &end));
            ok!(clReleaseEvent(end));
        }
        // In queues that are released, too.
        for (index, action) in self.program.actions.iter().enumerate() {
            if let (What::Replay { .. }, false) = (&action.what, self.events[index].is_null()) {
                call!(clWaitForEvents(1, &self.events[index]));
            }
        }
        let queues = self.stage.queues.clone();
        for queue in queues.into_iter().filter(|queue| !queue.is_null()) {
            ok!(clFinish(queue));
        }
        for map in std::mem::take(&mut self.open) {
            let Some((memory, ..)) = self.program.mapped(map) else {
                continue;
            };
            let pointer = self.maps[map].map_or(0, |mapped| mapped.pointer) as *mut c_void;
            let queue = self.stage.queues[0];
            match self.program.actions[map].what {
                What::Map(side, ..) => {
                    let object = self.stage.memories[memory].views[side.view];
                    ok!(clEnqueueUnmapMemObject(
                        queue,
                        object,
                        pointer,
                        0,
                        null(),
                        null_mut()
                    ));
                }
                _ => ok!(clEnqueueSVMUnmap(queue, pointer, 0, null(), null_mut())),
            }
        }
        ok!(clFinish(self.stage.queues[0]));
        Ok(())
    }

    /// Compares what is in the memories in the end.
    fn check_last(&self) -> Result<(), String> {
        for (index, memory) in self.program.memories.iter().enumerate() {
            let name = format!("memory {index}");
            let expected = &self.expected.last[index];
            let made = &self.stage.memories[index];
            if memory.kind.is_svm() && made.svm.is_none() {
                continue;
            }
            if memory.kind.is_open() {
                // SAFETY: memory of the program, which nothing uses any more.
                let got = unsafe { bytes_at(made.base, memory.size) };
                compare(&name, expected, got)?;
            }
            for &object in &made.views {
                let count = info_value!(cl_uint, clGetMemObjectInfo(object), CL_MEM_MAP_COUNT);
                if count != 0 {
                    return Err(format!("{name}: still mapped {count} times"));
                }
            }
            if let Some(&object) = made.views.first() {
                compare(&name, expected, &self.read(object, index))?;
            } else if !memory.kind.is_open() && memory.kind.has_address() {
                compare(&name, expected, &self.read_pointer(index))?;
            }
        }
        Ok(())
    }

    fn read(&self, object: cl_mem, index: usize) -> Vec<u8> {
        let memory = &self.program.memories[index];
        let mut bytes = vec![0u8; memory.size];
        let (queue, place) = (self.stage.queues[0], bytes.as_mut_ptr().cast());
        if let Kind::Image(pitch) = memory.kind {
            let (origin, region) = ([0; 3], [pitch / 4, memory.size / pitch, 1]);
            ok!(clEnqueueReadImage(
                queue,
                object,
                CL_TRUE,
                origin.as_ptr(),
                region.as_ptr(),
                0,
                0,
                place,
                0,
                null(),
                null_mut()
            ));
        } else {
            ok!(clEnqueueReadBuffer(
                queue,
                object,
                CL_TRUE,
                0,
                memory.size,
                place,
                0,
                null(),
                null_mut()
            ));
        }
        bytes
    }

    fn read_pointer(&self, index: usize) -> Vec<u8> {
        let memory = &self.program.memories[index];
        let mut bytes = vec![0u8; memory.size];
        let place: *mut c_void = bytes.as_mut_ptr().cast();
        let from = self.stage.memories[index].base as *const c_void;
        if memory.kind.is_usm() {
            self.read_usm(memory.device, place, from, memory.size);
        } else {
            ok!(clEnqueueSVMMemcpy(
                self.stage.queues[0],
                CL_TRUE,
                place,
                from,
                memory.size,
                0,
                null(),
                null_mut()
            ));
        }
        bytes
    }

    /// Callbacks have come once each, and events say that they are over.
    fn check_events(&mut self) -> Result<(), String> {
        let mut result = Ok(());
        let until = Instant::now() + PATIENCE;
        for (index, counter) in &self.callbacks {
            while counter.load(Ordering::SeqCst) == 0 && Instant::now() < until {
                std::thread::sleep(Duration::from_micros(50));
            }
            let count = counter.load(Ordering::SeqCst);
            if count != 1 {
                let text = format!("action {index}: {count} calls of its callback");
                result = result.and(Err(text));
            }
        }
        for (index, event) in self.events.iter().enumerate() {
            if event.is_null() {
                continue;
            }
            let event = *event;
            let param = CL_EVENT_COMMAND_EXECUTION_STATUS;
            let status = info_value!(cl_int, clGetEventInfo(event), param);
            let right = match self.program.fails(index) {
                true => status < 0,
                false => status == CL_COMPLETE,
            };
            if !right {
                let text = format!("action {index}: its event has status {status} in the end");
                result = result.and(Err(text));
            }
            ok!(clReleaseEvent(event));
        }
        result
    }
}

fn compare(place: &str, expected: &Contents, got: &[u8]) -> Result<(), String> {
    let Some(found) = expected.differs(got) else {
        return Ok(());
    };
    Err(format!(
        "{place}: {} of {} bytes differ, from {} to {}; byte {} is {:#04x}, expected {:#04x}",
        found.count,
        got.len(),
        found.at,
        found.last,
        found.at,
        found.got,
        found.expected
    ))
}
