//! Device queues: what kernels enqueue runs, once, with what it was given, when it may; errors; and the queues themselves.

mod images;
mod kernels;
mod queues;
mod samples;

use pumice_tests::sys::*;
use pumice_tests::{call, create, info_value, ok, Buffer, Kernel, Program, Queue, Setup};
use std::ptr::{null, null_mut};

const KERNELS: &str = include_str!("kernels.cl");

/// A program, and a device that has device queues, of which one is the default.
struct OnDevice {
    setup: Setup,
    program: Program,
    queue: Queue,
}

/// A list of properties of a device queue, with `bits` besides those that all have; of `size` bytes, 0: not said.
fn properties(bits: cl_command_queue_properties, size: u32) -> Vec<cl_queue_properties> {
    let all = CL_QUEUE_ON_DEVICE | CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE | bits;
    let mut list = vec![CL_QUEUE_PROPERTIES as cl_queue_properties, all];
    if size > 0 {
        list.extend([CL_QUEUE_SIZE as cl_queue_properties, size.into()]);
    }
    list.push(0);
    list
}

fn device_queue(setup: &Setup, bits: cl_command_queue_properties, size: u32) -> Queue {
    let list = properties(bits, size);
    Queue(create!(clCreateCommandQueueWithProperties(
        setup.context.0,
        setup.device,
        list.as_ptr()
    )))
}

/// A set-up whose device has device queues.
fn able(properties: cl_command_queue_properties) -> Option<Setup> {
    let setup = Setup::with_queue(properties);
    let device = setup.device;
    let able = info_value!(
        u64,
        clGetDeviceInfo(device),
        CL_DEVICE_DEVICE_ENQUEUE_CAPABILITIES
    );
    if able == 0 {
        pumice_tests::left_out("the device has no device queues");
        return None;
    }
    Some(setup)
}

fn on_device(source: &str, options: &str, size: u32) -> Option<OnDevice> {
    let setup = able(0)?;
    let queue = device_queue(&setup, CL_QUEUE_ON_DEVICE_DEFAULT, size);
    let options = format!("-cl-std=CL3.0 {options}");
    let program = setup
        .try_build(source, &options)
        .unwrap_or_else(|log| panic!("{log}"));
    Some(OnDevice {
        setup,
        program,
        queue,
    })
}

impl OnDevice {
    /// A kernel whose first argument is the queue.
    fn kernel(&self, name: &str) -> Kernel {
        let kernel = self.setup.kernel(&self.program, name);
        kernel.set(0, self.queue.0 as usize);
        kernel
    }

    /// Runs a kernel with the queue, words and more arguments on one work-item, and gives the words.
    fn words(&self, name: &str, count: usize, more: impl FnOnce(&Kernel)) -> Vec<i32> {
        let buffer = self.setup.buffer_of(&vec![0i32; count]);
        let kernel = self.kernel(name);
        kernel.set_buffer(1, &buffer);
        more(&kernel);
        self.setup.run(&kernel, &[1], None);
        self.setup.read(&buffer, count)
    }

    fn enqueue_on(&self, queue: &Queue, kernel: &Kernel, event: Option<&mut cl_event>) {
        let event = event.map_or(null_mut(), |event| event as *mut _);
        ok!(clEnqueueNDRangeKernel(
            queue.0,
            kernel.0,
            1,
            null(),
            &1,
            null(),
            0,
            null(),
            event
        ));
    }

    fn buffer(&self, words: &[i32]) -> Buffer {
        self.setup.buffer_of(words)
    }
}

/// The status of an event now.
fn status(event: cl_event) -> cl_int {
    info_value!(
        cl_int,
        clGetEventInfo(event),
        CL_EVENT_COMMAND_EXECUTION_STATUS
    )
}

/// Waits for an event and releases it.
fn over(event: cl_event) -> cl_int {
    call!(clWaitForEvents(1, &event));
    let status = status(event);
    ok!(clReleaseEvent(event));
    status
}
