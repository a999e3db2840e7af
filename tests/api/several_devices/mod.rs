//! Contexts with several devices. Skipped where there is one: `ci/test` offers lavapipe twice.

mod command_buffers;
mod images;
mod parts;
mod pipes;
mod programs;
mod shared_memory;

use pumice_tests::sys::*;
use pumice_tests::{
    call, create, fails, info_text, info_value, ok, platform, Buffer, Context, Event, Kernel,
    Program, Queue,
};
use std::ffi::{c_void, CStr, CString};
use std::ptr::{null, null_mut};

/// A context of two devices with a queue on each.
struct Pair {
    queues: [Queue; 2],
    devices: [cl_device_id; 2],
    context: Context,
}

fn pair() -> Option<Pair> {
    let mut devices = [null_mut(); 2];
    let mut count = 0;
    ok!(clGetDeviceIDs(
        platform(),
        CL_DEVICE_TYPE_ALL,
        2,
        devices.as_mut_ptr(),
        &mut count
    ));
    if count < 2 {
        pumice_tests::left_out("one device alone");
        return None;
    }
    let context = Context(create!(clCreateContext(
        null(),
        2,
        devices.as_ptr(),
        None,
        null_mut()
    )));
    let queue = |device| {
        Queue(create!(clCreateCommandQueueWithProperties(
            context.0,
            device,
            null()
        )))
    };
    let queues = [queue(devices[0]), queue(devices[1])];
    Some(Pair {
        queues,
        devices,
        context,
    })
}

impl Pair {
    fn buffer(&self, flags: cl_mem_flags, words: usize, host: *mut u32) -> Buffer {
        let context = self.context.0;
        Buffer(create!(clCreateBuffer(
            context,
            flags,
            words * 4,
            host.cast()
        )))
    }

    /// Built for the first `devices`.
    fn program(&self, source: &str, devices: u32) -> Program {
        self.program_with(source, devices, c"-cl-std=CL3.0")
    }

    fn program_with(&self, source: &str, devices: u32, options: &CStr) -> Program {
        let (mut text, length) = (source.as_ptr().cast(), source.len());
        let program = Program(create!(clCreateProgramWithSource(
            self.context.0,
            1,
            &mut text,
            &length
        )));
        let list = self.devices.as_ptr();
        ok!(clBuildProgram(
            program.0,
            devices,
            list,
            options.as_ptr(),
            None,
            null_mut()
        ));
        program
    }

    fn kernel(&self, program: &Program, name: &str) -> Kernel {
        let name = CString::new(name).expect("a name");
        Kernel(create!(clCreateKernel(program.0, name.as_ptr())))
    }

    fn launch(&self, on: usize, kernel: &Kernel, items: usize, wait: &[cl_event]) -> Event {
        let list = if wait.is_empty() {
            null()
        } else {
            wait.as_ptr()
        };
        let mut event = null_mut();
        ok!(clEnqueueNDRangeKernel(
            self.queues[on].0,
            kernel.0,
            1,
            null(),
            &items,
            null(),
            wait.len() as u32,
            list,
            &mut event
        ));
        Event(event)
    }

    fn read(&self, on: usize, buffer: &Buffer, words: usize, wait: &[cl_event]) -> Vec<u32> {
        let mut data = vec![0u32; words];
        let place = data.as_mut_ptr().cast();
        let list = if wait.is_empty() {
            null()
        } else {
            wait.as_ptr()
        };
        let count = wait.len() as u32;
        ok!(clEnqueueReadBuffer(
            self.queues[on].0,
            buffer.0,
            CL_TRUE,
            0,
            words * 4,
            place,
            count,
            list,
            null_mut()
        ));
        data
    }
}

const ADD: &str = "kernel void add(global uint *p, uint n) { p[get_global_id(0)] += n; }";

#[test]
fn a_buffer_goes_back_and_forth() {
    let Some(pair) = pair() else { return };
    let program = pair.program(ADD, 2);
    let kernel = pair.kernel(&program, "add");
    let mut host: Vec<u32> = (0..1000).collect();
    for flags in [CL_MEM_COPY_HOST_PTR, CL_MEM_USE_HOST_PTR] {
        let buffer = pair.buffer(flags, 1000, host.as_mut_ptr());
        kernel.set_buffer(0, &buffer);
        let mut last: Option<Event> = None;
        // Not one wait on the host: the devices wait for each other.
        for round in 0..20u32 {
            kernel.set(1, round);
            let wait: Vec<cl_event> = last.iter().map(|event| event.0).collect();
            last = Some(pair.launch(round as usize % 2, &kernel, 1000, &wait));
        }
        let wait = [last.as_ref().expect("an event").0];
        let seen = pair.read(0, &buffer, 1000, &wait);
        assert!((0..).zip(&seen).all(|(n, word)| *word == n + 190));
        // What the other device sees.
        assert_eq!(pair.read(1, &buffer, 1000, &wait), seen);
        drop(buffer);
        host = (0..1000).collect();
    }
}

#[test]
fn events_reach_across_devices() {
    let Some(pair) = pair() else { return };
    let program = pair.program(ADD, 2);
    let kernel = pair.kernel(&program, "add");
    let mut zeros = vec![0u32; 64];
    let buffer = pair.buffer(CL_MEM_COPY_HOST_PTR, 64, zeros.as_mut_ptr());
    kernel.set_buffer(0, &buffer).set(1, 1u32);
    let gate = Event::user(&pair.context);
    let first = pair.launch(0, &kernel, 64, &[gate.0]);
    let second = pair.launch(1, &kernel, 64, &[first.0]);
    let third = pair.launch(0, &kernel, 64, &[second.0, gate.0]);
    ok!(clFlush(pair.queues[0].0));
    ok!(clFlush(pair.queues[1].0));
    assert!(third.status() > CL_COMPLETE && first.status() > CL_COMPLETE);
    gate.finish(CL_COMPLETE);
    assert_eq!(third.wait(), CL_SUCCESS);
    assert_eq!(pair.read(1, &buffer, 64, &[third.0]), [3; 64]);

    let gate = Event::user(&pair.context);
    let first = pair.launch(1, &kernel, 64, &[gate.0]);
    let second = pair.launch(0, &kernel, 64, &[first.0]);
    gate.finish(-5);
    assert_eq!(second.wait(), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
    assert!(second.status() < 0 && first.status() < 0);
    assert_eq!(pair.read(0, &buffer, 64, &[]), [3; 64]);
}

#[test]
fn migration_keeps_contents_unless_undefined() {
    let Some(pair) = pair() else { return };
    let mut start: Vec<u32> = (0..64).collect();
    let buffer = pair.buffer(CL_MEM_COPY_HOST_PTR, 64, start.as_mut_ptr());
    let migrate = |on: usize, flags| {
        let mut event = null_mut();
        let queue = pair.queues[on].0;
        ok!(clEnqueueMigrateMemObjects(
            queue,
            1,
            &buffer.0,
            flags,
            0,
            null(),
            &mut event
        ));
        assert_eq!(Event(event).wait(), 0);
    };
    let undefined = CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED;
    migrate(0, 0);
    migrate(1, CL_MIGRATE_MEM_OBJECT_HOST);
    migrate(0, CL_MIGRATE_MEM_OBJECT_HOST | undefined);
    migrate(1, 0);
    for on in 0..2 {
        assert_eq!(pair.read(on, &buffer, 64, &[]), start);
    }
    // Contents are lost, and new ones hold.
    migrate(0, undefined);
    let value = 6u32;
    ok!(clEnqueueFillBuffer(
        pair.queues[0].0,
        buffer.0,
        (&raw const value).cast(),
        4,
        0,
        256,
        0,
        null(),
        null_mut()
    ));
    ok!(clFinish(pair.queues[0].0));
    assert_eq!(pair.read(1, &buffer, 64, &[]), [6; 64]);
    fails!(
        CL_INVALID_VALUE,
        clEnqueueMigrateMemObjects(
            pair.queues[0].0,
            1,
            &buffer.0,
            1 << 5,
            0,
            null(),
            null_mut()
        )
    );
}

#[test]
fn barriers_and_markers_wait_for_other_devices() {
    let Some(pair) = pair() else { return };
    let program = pair.program(ADD, 2);
    let kernel = pair.kernel(&program, "add");
    let buffer = pair.buffer(CL_MEM_COPY_HOST_PTR, 64, [0u32; 64].as_mut_ptr());
    kernel.set_buffer(0, &buffer).set(1, 1u32);
    for round in 1..4u32 {
        let gate = Event::user(&pair.context);
        let first = pair.launch(0, &kernel, 64, &[gate.0]);
        let mut events = [null_mut(); 2];
        let queue = pair.queues[1].0;
        ok!(clEnqueueBarrierWithWaitList(
            queue,
            1,
            &first.0,
            &mut events[0]
        ));
        // Behind the barrier, with no list of its own.
        let second = pair.launch(1, &kernel, 64, &[]);
        ok!(clEnqueueMarkerWithWaitList(
            pair.queues[0].0,
            1,
            &second.0,
            &mut events[1]
        ));
        let events = events.map(Event);
        for queue in &pair.queues {
            ok!(clFlush(queue.0));
        }
        assert!(events.iter().all(|event| event.status() > CL_COMPLETE));
        gate.finish(CL_COMPLETE);
        assert_eq!(events[1].wait(), 0);
        assert!(second.status() == CL_COMPLETE && events[0].status() == CL_COMPLETE);
        assert_eq!(pair.read(0, &buffer, 64, &[]), [2 * round; 64]);
    }
}
