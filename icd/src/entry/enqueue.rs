//! Enqueueing commands on buffers and kernels; markers and barriers.

use crate::abi::{self, Handle, In, Out};
use pumice_runtime::cl::{
    self, cl_bool, cl_event, cl_map_flags, cl_mem, cl_mem_migration_flags, cl_uint,
};
use pumice_runtime::command::kernel::NdRange;
use pumice_runtime::command::rect::Side;
use pumice_runtime::command::{self, buffer::Rect, Command};
use pumice_runtime::error::{err, ClError, ClResult, OrErr};
use pumice_runtime::handle::Ref;
use pumice_runtime::object::callback::Callback;
use pumice_runtime::object::kernel::Kernel;
use pumice_runtime::object::mem::Mem;
use pumice_runtime::queue::Queue;
use std::ffi::c_void;
use std::sync::Arc;

/// The last arguments of all enqueues: the wait list, and the place for the event.
pub struct Tail {
    pub count: cl_uint,
    pub list: In<cl_event>,
    pub event: Out<cl_event>,
}

impl Tail {
    #[inline]
    pub fn submit(self, queue: &Ref<Queue>, command: Command, blocking: bool) -> ClResult {
        let waits = abi::wait_list(self.count, self.list)?;
        let event = queue.enqueue(command, &waits, blocking, !self.event.is_null())?;
        abi::publish_event(self.event, event);
        Ok(())
    }
}

#[allow(clippy::too_many_arguments)]
pub fn read_buffer(
    queue: Handle,
    buffer: Handle,
    blocking: cl_bool,
    offset: usize,
    size: usize,
    ptr: Handle,
    count: cl_uint,
    list: In<cl_event>,
    event: Out<cl_event>,
) -> ClResult {
    let queue = queue.object::<Queue>()?;
    let mem = buffer.object::<Mem>()?;
    let command = abi::read_buffer(&queue.target, mem, offset, size, ptr)?;
    Tail { count, list, event }.submit(&queue, command, blocking != 0)
}

#[allow(clippy::too_many_arguments)]
pub fn write_buffer(
    queue: Handle,
    buffer: Handle,
    blocking: cl_bool,
    offset: usize,
    size: usize,
    ptr: In<c_void>,
    count: cl_uint,
    list: In<cl_event>,
    event: Out<cl_event>,
) -> ClResult {
    let queue = queue.object::<Queue>()?;
    let mem = buffer.object::<Mem>()?;
    let command = abi::write_buffer(&queue.target, mem, offset, size, ptr)?;
    Tail { count, list, event }.submit(&queue, command, blocking != 0)
}

#[allow(clippy::too_many_arguments)]
pub fn copy_buffer(
    queue: Handle,
    src: Handle,
    dst: Handle,
    src_offset: usize,
    dst_offset: usize,
    size: usize,
    count: cl_uint,
    list: In<cl_event>,
    event: Out<cl_event>,
) -> ClResult {
    let queue = queue.object::<Queue>()?;
    let (src, dst) = (src.object::<Mem>()?, dst.object::<Mem>()?);
    let command = command::buffer::copy(&queue.target, &src, &dst, src_offset, dst_offset, size)?;
    Tail { count, list, event }.submit(&queue, command, false)
}

pub fn side(origin: In<usize>, row_pitch: usize, slice_pitch: usize) -> ClResult<Side> {
    Ok(Side {
        origin: abi::triple(origin, cl::CL_INVALID_VALUE)?,
        row_pitch,
        slice_pitch,
    })
}

#[allow(clippy::too_many_arguments)]
pub fn read_buffer_rect(
    queue: Handle,
    buffer: Handle,
    blocking: cl_bool,
    buffer_origin: In<usize>,
    host_origin: In<usize>,
    region: In<usize>,
    buffer_row_pitch: usize,
    buffer_slice_pitch: usize,
    host_row_pitch: usize,
    host_slice_pitch: usize,
    ptr: Handle,
    count: cl_uint,
    list: In<cl_event>,
    event: Out<cl_event>,
) -> ClResult {
    let queue = queue.object::<Queue>()?;
    let mem = buffer.object::<Mem>()?;
    let rect = Rect {
        buffer: side(buffer_origin, buffer_row_pitch, buffer_slice_pitch)?,
        other: side(host_origin, host_row_pitch, host_slice_pitch)?,
        region: abi::triple(region, cl::CL_INVALID_VALUE)?,
    };
    let command = abi::read_rect(&queue.target, &mem, &rect, ptr)?;
    Tail { count, list, event }.submit(&queue, command, blocking != 0)
}

#[allow(clippy::too_many_arguments)]
pub fn write_buffer_rect(
    queue: Handle,
    buffer: Handle,
    blocking: cl_bool,
    buffer_origin: In<usize>,
    host_origin: In<usize>,
    region: In<usize>,
    buffer_row_pitch: usize,
    buffer_slice_pitch: usize,
    host_row_pitch: usize,
    host_slice_pitch: usize,
    ptr: In<c_void>,
    count: cl_uint,
    list: In<cl_event>,
    event: Out<cl_event>,
) -> ClResult {
    let queue = queue.object::<Queue>()?;
    let mem = buffer.object::<Mem>()?;
    let rect = Rect {
        buffer: side(buffer_origin, buffer_row_pitch, buffer_slice_pitch)?,
        other: side(host_origin, host_row_pitch, host_slice_pitch)?,
        region: abi::triple(region, cl::CL_INVALID_VALUE)?,
    };
    let command = abi::write_rect(&queue.target, &mem, &rect, ptr)?;
    Tail { count, list, event }.submit(&queue, command, blocking != 0)
}

#[allow(clippy::too_many_arguments)]
pub fn copy_buffer_rect(
    queue: Handle,
    src: Handle,
    dst: Handle,
    src_origin: In<usize>,
    dst_origin: In<usize>,
    region: In<usize>,
    src_row_pitch: usize,
    src_slice_pitch: usize,
    dst_row_pitch: usize,
    dst_slice_pitch: usize,
    count: cl_uint,
    list: In<cl_event>,
    event: Out<cl_event>,
) -> ClResult {
    let queue = queue.object::<Queue>()?;
    let (src, dst) = (src.object::<Mem>()?, dst.object::<Mem>()?);
    let rect = Rect {
        buffer: side(src_origin, src_row_pitch, src_slice_pitch)?,
        other: side(dst_origin, dst_row_pitch, dst_slice_pitch)?,
        region: abi::triple(region, cl::CL_INVALID_VALUE)?,
    };
    let command = command::buffer::copy_rect(&queue.target, &src, &dst, &rect)?;
    Tail { count, list, event }.submit(&queue, command, false)
}

/// Returns the pattern of a fill.
pub fn pattern<'a>(pattern: In<c_void>, size: usize) -> ClResult<&'a [u8]> {
    if size == 0 || size > 128 {
        return err(cl::CL_INVALID_VALUE, format!("a pattern of {size} bytes"));
    }
    pattern
        .bytes(size)
        .or_err(cl::CL_INVALID_VALUE, "the pattern is NULL")
}

#[allow(clippy::too_many_arguments)]
pub fn fill_buffer(
    queue: Handle,
    buffer: Handle,
    pattern: In<c_void>,
    pattern_size: usize,
    offset: usize,
    size: usize,
    count: cl_uint,
    list: In<cl_event>,
    event: Out<cl_event>,
) -> ClResult {
    let queue = queue.object::<Queue>()?;
    let mem = buffer.object::<Mem>()?;
    let pattern = self::pattern(pattern, pattern_size)?;
    let command = command::buffer::fill(&queue.target, &mem, pattern, offset, size)?;
    Tail { count, list, event }.submit(&queue, command, false)
}

#[allow(clippy::too_many_arguments)]
pub fn map_buffer(
    queue: Handle,
    buffer: Handle,
    blocking: cl_bool,
    flags: cl_map_flags,
    offset: usize,
    size: usize,
    count: cl_uint,
    list: In<cl_event>,
    event: Out<cl_event>,
) -> ClResult<*mut c_void> {
    let queue = queue.object::<Queue>()?;
    let mem = buffer.object::<Mem>()?;
    // Checked before the map is entered; a queue that refuses the command undoes it.
    abi::wait_list(count, list)?;
    let (command, pointer) = command::map::map_buffer(&queue.target, &mem, flags, offset, size)?;
    Tail { count, list, event }.submit(&queue, command, blocking != 0)?;
    Ok(pointer)
}

pub fn unmap(
    queue: Handle,
    mem: Handle,
    pointer: Handle,
    count: cl_uint,
    list: In<cl_event>,
    event: Out<cl_event>,
) -> ClResult {
    let queue = queue.object::<Queue>()?;
    let mem = mem.object::<Mem>()?;
    abi::wait_list(count, list)?;
    let command = command::map::unmap(&queue.target, &mem, pointer.as_ptr())?;
    Tail { count, list, event }.submit(&queue, command, false)
}

pub fn migrate(
    queue: Handle,
    num_mems: cl_uint,
    mems: In<cl_mem>,
    flags: cl_mem_migration_flags,
    count: cl_uint,
    list: In<cl_event>,
    event: Out<cl_event>,
) -> ClResult {
    let queue = queue.object::<Queue>()?;
    let mems = abi::objects(num_mems, mems)?;
    let command = command::map::migrate(&queue.target, mems, flags)?;
    Tail { count, list, event }.submit(&queue, command, false)
}

pub fn kernel_for(queue: &Ref<Queue>, kernel: Handle) -> ClResult<Ref<Kernel>> {
    let kernel = kernel.object::<Kernel>()?;
    if !Arc::ptr_eq(&kernel.program.context, &queue.target.context) {
        return err(
            cl::CL_INVALID_CONTEXT,
            "the kernel is of another context than the queue",
        );
    }
    Ok(kernel)
}

#[allow(clippy::too_many_arguments)]
pub fn nd_range_kernel(
    queue: Handle,
    kernel: Handle,
    dims: cl_uint,
    offset: In<usize>,
    global: In<usize>,
    local: In<usize>,
    count: cl_uint,
    list: In<cl_event>,
    event: Out<cl_event>,
) -> ClResult {
    let queue = queue.object::<Queue>()?;
    let kernel = kernel_for(&queue, kernel)?;
    if dims == 0 || dims > 3 {
        return err(cl::CL_INVALID_WORK_DIMENSION, format!("{dims} dimensions"));
    }
    let (offset, global, local) = (offset.sizes(dims), global.sizes(dims), local.sizes(dims));
    let target = &queue.target;
    let range = NdRange {
        dims,
        offset: offset.as_ref().map(<[usize; 3]>::as_slice),
        global: global.as_ref().map(<[usize; 3]>::as_slice),
        local: local.as_ref().map(<[usize; 3]>::as_slice),
    };
    let kind = cl::CL_COMMAND_NDRANGE_KERNEL;
    let command = command::kernel::launch(target, &kernel, &range, kind)?;
    Tail { count, list, event }.submit(&queue, command, false)
}

pub fn task(
    queue: Handle,
    kernel: Handle,
    count: cl_uint,
    list: In<cl_event>,
    event: Out<cl_event>,
) -> ClResult {
    let queue = queue.object::<Queue>()?;
    let kernel = kernel_for(&queue, kernel)?;
    let (range, kind) = (command::kernel::task(), cl::CL_COMMAND_TASK);
    let command = command::kernel::launch(&queue.target, &kernel, &range, kind)?;
    Tail { count, list, event }.submit(&queue, command, false)
}

#[allow(clippy::too_many_arguments)]
pub fn native_kernel(
    queue: Handle,
    function: Option<unsafe extern "C" fn(*mut c_void)>,
    args: Handle,
    args_size: usize,
    num_mems: cl_uint,
    mems: In<cl_mem>,
    places: Out<*const c_void>,
    count: cl_uint,
    list: In<cl_event>,
    event: Out<cl_event>,
) -> ClResult {
    let queue = queue.object::<Queue>()?;
    let invalid = |what| ClError::new(cl::CL_INVALID_VALUE, what);
    let Some(function) = function else {
        return Err(invalid("user_func is NULL"));
    };
    if args.is_null() && (args_size > 0 || num_mems > 0) || !args.is_null() && args_size == 0 {
        return Err(invalid("args and cb_args do not fit together"));
    }
    if (num_mems == 0) != mems.is_null() || (num_mems == 0) != places.is_null() {
        return Err(invalid("mem_list and its length do not fit together"));
    }
    let objects = match num_mems {
        0 => Vec::new(),
        _ => abi::objects::<Mem>(num_mems, mems)?,
    };
    let places = places.input().array(num_mems as usize).unwrap_or_default();
    let offset = |place: *const c_void| (place as usize).wrapping_sub(args.as_ptr() as usize);
    let buffers = objects
        .into_iter()
        .zip(places.into_iter().map(offset))
        .collect();
    let bytes = args.input().bytes(args_size).unwrap_or_default().to_vec();
    let function = Callback::new(function, std::ptr::null_mut());
    let command = command::sync::native(&queue.target, function, bytes, buffers)?;
    Tail { count, list, event }.submit(&queue, command, false)
}

fn hand_over(
    queue: Handle,
    (number, mems): (cl_uint, In<cl_mem>),
    acquire: bool,
    tail: Tail,
) -> ClResult {
    let queue = queue.object::<Queue>()?;
    let mems = abi::optional_objects::<Mem>(number, mems)?.unwrap_or_default();
    let waits = abi::wait_list(tail.count, tail.list)?;
    let command = command::external::hand_over(&queue.target, mems, acquire, &waits)?;
    tail.submit(&queue, command, false)
        .map_err(ClError::of_resources)
}

/// Implements clEnqueueAcquireExternalMemObjectsKHR.
pub fn acquire_external(
    queue: Handle,
    number: cl_uint,
    mems: In<cl_mem>,
    count: cl_uint,
    list: In<cl_event>,
    event: Out<cl_event>,
) -> ClResult {
    hand_over(queue, (number, mems), true, Tail { count, list, event })
}

/// Implements clEnqueueReleaseExternalMemObjectsKHR.
pub fn release_external(
    queue: Handle,
    number: cl_uint,
    mems: In<cl_mem>,
    count: cl_uint,
    list: In<cl_event>,
    event: Out<cl_event>,
) -> ClResult {
    hand_over(queue, (number, mems), false, Tail { count, list, event })
}

pub fn marker(queue: Handle, count: cl_uint, list: In<cl_event>, event: Out<cl_event>) -> ClResult {
    let queue = queue.object::<Queue>()?;
    Tail { count, list, event }.submit(&queue, command::sync::marker(), false)
}

pub fn barrier(
    queue: Handle,
    count: cl_uint,
    list: In<cl_event>,
    event: Out<cl_event>,
) -> ClResult {
    let queue = queue.object::<Queue>()?;
    Tail { count, list, event }.submit(&queue, command::sync::barrier(), false)
}

/// Implements clEnqueueMarker, of OpenCL 1.0.
pub fn marker_old(queue: Handle, event: Out<cl_event>) -> ClResult {
    let handle = queue;
    handle.object::<Queue>()?;
    if event.is_null() {
        return err(cl::CL_INVALID_VALUE, "event is NULL");
    }
    marker(handle, 0, In::null(), event)
}

/// Implements clEnqueueWaitForEvents, of OpenCL 1.0: its errors differ from those of a wait list.
pub fn wait_for_events_old(queue: Handle, count: cl_uint, list: In<cl_event>) -> ClResult {
    let queue = queue.object::<Queue>()?;
    let waits = abi::objects(count, list)?;
    queue
        .enqueue(command::sync::barrier(), &waits, false, false)
        .map(drop)
}

/// Implements clEnqueueBarrier, of OpenCL 1.0.
pub fn barrier_old(queue: Handle) -> ClResult {
    barrier(queue, 0, In::null(), Out::null())
}
