//! The dispatches of a launch: what memory they use, which implicit values they get, and how they follow one another. The same for launches
//! of the application's (`launch.rs`) and those that kernels enqueue (`device_enqueue.rs`).

use super::buffer_images::copy_shown_images;
use super::recorder::Recorder;
use crate::backend::{Op, Slice, Use};
use crate::command::Launch;
use crate::compile::implicit::ImplicitValues;
use crate::error::ClResult;
use crate::object::mem::queue_images::Identity;
use crate::object::memories::MemoryIndex;
use crate::queue::host::print_buffers::PrintBuffer;
use smallvec::SmallVec;

/// Memory that operations use.
pub(in crate::queue) type Uses = SmallVec<[Use; 8]>;

/// Records the dispatches of a launch on a device with this memory, for the queue of that identity. They use `uses` in
/// addition to their own memory. `enqueue`:
/// the address of the launch's device-queue state, or 0. Returns the printf buffer, if the kernel
/// prints.
pub(in crate::queue) fn record_launch(
    to: &mut impl Recorder,
    launch: &Launch,
    (memory, queue): (MemoryIndex, &Identity),
    uses: &mut Uses,
    enqueue: u64,
) -> ClResult<Option<PrintBuffer>> {
    let kernel = &launch.kernel;
    if !kernel.images.is_empty() {
        copy_shown_images(to, memory, queue, kernel, false)?;
    }
    let interface = kernel.code.interface();
    if let Some(globals) = &kernel.globals {
        let slice = Slice::new(globals.clone(), 0, globals.size());
        uses.push(Use { slice, write: true });
    }
    let mut push: SmallVec<[u8; 256]> = SmallVec::new();
    let mut arguments = 0;
    if interface.args_in_buffer {
        let size = u64::from(interface.arg_buffer_size)
            .max(kernel.args.len() as u64)
            .max(8);
        let piece = to.room(size)?;
        piece.write(&kernel.args);
        arguments = piece.address();
    } else {
        push.extend_from_slice(&kernel.args);
    }
    push.resize(interface.push_size as usize, 0);
    let print = match (&kernel.printf, interface.uses_printf) {
        (Some(sites), true) => {
            let buffer = to.print_buffer(sites)?;
            let slice = buffer.slice();
            uses.push(Use { slice, write: true });
            Some(buffer)
        }
        _ => None,
    };
    let mut implicit = ImplicitValues {
        arguments,
        globals: kernel.globals.as_ref().map_or(0, |memory| memory.address()),
        printf: print.as_ref().map_or(0, PrintBuffer::address),
        enqueue,
        dims: launch.grid.dims,
        offset: launch.grid.offset,
        global: launch.grid.global,
        local: launch.grid.local,
        groups: launch.grid.groups,
        first_group: [0; 3],
    };
    let last = launch.grid.dispatches.len().saturating_sub(1);
    for (number, dispatch) in launch.grid.dispatches.iter().enumerate() {
        implicit.first_group = dispatch.first_group;
        implicit.write(interface, &mut push);
        let op = Op::Dispatch {
            pipeline: &dispatch.pipeline,
            groups: dispatch.groups,
            push: &push,
            uses,
            bindings: &kernel.bindings,
            touches_anything: kernel.touches_anything,
        };
        to.record(op, number == 0 || number == last)?;
    }
    if !kernel.images.is_empty() {
        copy_shown_images(to, memory, queue, kernel, true)?;
    }
    Ok(print)
}
