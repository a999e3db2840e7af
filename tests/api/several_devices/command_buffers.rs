//! Command buffers whose commands run on several devices, and copies from one device to the other.

use super::*;
use crate::command_buffers::{Recording, BUMP};

#[test]
fn commands_of_two_devices() {
    let Some(pair) = pair() else { return };
    let [first, second] = &pair.queues;
    let program = pair.program(BUMP, 2);
    let kernel = Kernel(create!(clCreateKernel(program.0, c"bump".as_ptr())));
    let buffer = pair.buffer(CL_MEM_READ_WRITE, 64, null_mut());
    kernel.set_buffer(0, &buffer);
    let recording = Recording::of(&[first, second], 0);
    let mut last = recording.fill_in(first, &buffer, 3, 256);
    for queue in [second, first, second, first, second] {
        last = recording.launch_in(queue, &kernel, 64, &[last]);
    }
    recording.finalize();
    // All of it on the second device.
    let both = [second, second];
    let copy = recording.copy_for(&both);
    for which in [&recording, &copy, &recording] {
        for _ in 0..2 {
            let event = which.replay_event(None, &[]);
            ok!(clWaitForEvents(1, &event.0));
            let mut got = [0u32; 64];
            ok!(clEnqueueReadBuffer(
                first.0,
                buffer.0,
                CL_TRUE,
                0,
                256,
                got.as_mut_ptr().cast(),
                0,
                null(),
                null_mut()
            ));
            assert_eq!(got, [8; 64]);
        }
    }
}
