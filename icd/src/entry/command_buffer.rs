//! Command buffers.

use super::{enqueue, image};
use crate::abi::{self, Handle, In, Out};
use pumice_runtime::cl::{
    self, cl_bool, cl_command_buffer_info_khr, cl_command_buffer_properties_khr,
    cl_command_buffer_update_type_khr, cl_command_properties_khr, cl_command_queue, cl_event,
    cl_mutable_command_info_khr, cl_mutable_command_khr, cl_sync_point_khr, cl_uint,
};
use pumice_runtime::command::buffer::Rect;
use pumice_runtime::command::{self, Command, QueueTarget};
use pumice_runtime::command_buffer::{property_bits, CommandBuffer, Dispatch, MutableCommand};
use pumice_runtime::error::{ensure, err, ClResult};
use pumice_runtime::handle::{self, Object, Ref};
use pumice_runtime::object::info::Info;
use pumice_runtime::object::mem::Mem;
use pumice_runtime::queue::Queue;
use smallvec::SmallVec;
use std::ffi::c_void;
use std::sync::Arc;

/// A pattern or colour that a command keeps.
type Bytes = SmallVec<[u8; 16]>;

pub fn create(
    count: cl_uint,
    queues: In<cl_command_queue>,
    properties: In<cl_command_buffer_properties_khr>,
) -> ClResult<*mut c_void> {
    let queues = abi::objects::<Queue>(count, queues)?;
    (queues.iter()).try_for_each(|queue| queue.target.context.ensure_works())?;
    let properties = abi::properties(properties).unwrap_or_default();
    abi::publish(CommandBuffer::new(queues, properties))
}

pub fn retain(buffer: Handle) -> ClResult {
    handle::retain::<CommandBuffer>(buffer.as_ptr())
}

pub fn release(buffer: Handle) -> ClResult {
    handle::release::<CommandBuffer>(buffer.as_ptr())
}

pub fn finalize(buffer: Handle) -> ClResult {
    buffer.object::<CommandBuffer>()?.finalize()
}

pub fn enqueue(
    num_queues: cl_uint,
    queues: Out<cl_command_queue>,
    buffer: Handle,
    count: cl_uint,
    list: In<cl_event>,
    event: Out<cl_event>,
) -> ClResult {
    let buffer = buffer.object::<CommandBuffer>()?;
    let queues = abi::optional_objects::<Queue>(num_queues, queues.input())?;
    let waits = abi::wait_list(count, list)?;
    let made = buffer.enqueue(queues.as_deref(), &waits, !event.is_null())?;
    abi::publish_event(event, made);
    Ok(())
}

#[allow(clippy::too_many_arguments)]
pub fn remap(
    buffer: Handle,
    automatic: cl_bool,
    num_queues: cl_uint,
    queues: In<cl_command_queue>,
    num_handles: cl_uint,
    handles: In<cl_mutable_command_khr>,
    handles_ret: Out<cl_mutable_command_khr>,
) -> ClResult<*mut c_void> {
    let buffer = buffer.object::<CommandBuffer>()?;
    let queues = abi::objects::<Queue>(num_queues, queues)?;
    (queues.iter()).try_for_each(|queue| queue.target.context.ensure_works())?;
    ensure!(
        (num_handles == 0) == handles.is_null() && handles.is_null() == handles_ret.is_null(),
        cl::CL_INVALID_VALUE,
        "the handles and their number do not fit together"
    );
    let handles = handles.array(num_handles as usize).unwrap_or_default();
    let handles: Vec<_> = (handles.into_iter())
        .map(abi::object::<MutableCommand>)
        .collect::<ClResult<_>>()
        .or_else(|_| err(cl::CL_INVALID_VALUE, "a handle is not valid"))?;
    let (copy, made) = buffer.remap(automatic != 0, queues, &handles)?;
    handles_ret.set_all(made.iter().map(Object::handle));
    abi::publish(Ok(copy))
}

pub fn get_info(
    buffer: Handle,
    param: cl_command_buffer_info_khr,
    size: usize,
    value: Out<c_void>,
    size_ret: Out<usize>,
) -> ClResult {
    let buffer = buffer.object::<CommandBuffer>()?;
    buffer
        .query(param, abi::info(size, value, size_ret))
        .map(drop)
}

/// The arguments that every call which records a command has: the first ones, and the last.
struct Place {
    buffer: Handle,
    queue: Handle,
    properties: In<cl_command_properties_khr>,
    count: cl_uint,
    list: In<cl_sync_point_khr>,
    point: Out<cl_sync_point_khr>,
    handle: Out<cl_mutable_command_khr>,
}

impl Place {
    /// Returns the command buffer and the number of the queue, once what all these calls have in common is checked.
    fn check(&self) -> ClResult<(Ref<CommandBuffer>, usize)> {
        let buffer = self.buffer.object::<CommandBuffer>()?;
        let queue = match self.queue.is_null() {
            true => None,
            false => Some(self.queue.object::<Queue>()?),
        };
        let queue = buffer.queue_number(queue.as_ref())?;
        ensure!(
            (self.count == 0) == self.list.is_null(),
            cl::CL_INVALID_SYNC_POINT_WAIT_LIST_KHR,
            "the wait list and its length do not fit together"
        );
        let waits = self.list.array(self.count as usize).unwrap_or_default();
        buffer.check_record(&waits)?;
        Ok((buffer, queue))
    }

    /// Records a command, which has no properties, and no handle.
    fn record(
        self,
        recipe: impl Fn(&QueueTarget) -> ClResult<Command> + Send + Sync + 'static,
    ) -> ClResult {
        let (buffer, queue) = self.check()?;
        ensure!(
            self.properties.get().is_none_or(|first| first == 0),
            cl::CL_INVALID_VALUE,
            "the command has no properties"
        );
        ensure!(
            self.handle.is_null(),
            cl::CL_INVALID_VALUE,
            "the command cannot be updated"
        );
        self.point.set(buffer.record(queue, Arc::new(recipe))?);
        Ok(())
    }
}

/// An entry point that records a command: its arguments between the common ones, and its body.
macro_rules! records {
    ($($name:ident($($arg:ident: $type:ty),*) $place:ident => $body:block)*) => { $(
        #[allow(clippy::too_many_arguments)]
        pub fn $name(
            buffer: Handle,
            queue: Handle,
            properties: In<cl_command_properties_khr>,
            $($arg: $type,)*
            count: cl_uint,
            list: In<cl_sync_point_khr>,
            point: Out<cl_sync_point_khr>,
            handle: Out<cl_mutable_command_khr>,
        ) -> ClResult {
            let $place = Place { buffer, queue, properties, count, list, point, handle };
            $place.check()?;
            $body
        }
    )* };
}

records! {
    barrier() place => {
        place.record(|_| Ok(command::sync::barrier()))
    }

    copy_buffer(src: Handle, dst: Handle, src_offset: usize, dst_offset: usize, size: usize) place => {
        let (src, dst) = (src.object::<Mem>()?, dst.object::<Mem>()?);
        place.record(move |target| {
            command::buffer::copy(target, &src, &dst, src_offset, dst_offset, size)
        })
    }

    copy_buffer_rect(
        src: Handle,
        dst: Handle,
        src_origin: In<usize>,
        dst_origin: In<usize>,
        region: In<usize>,
        src_row_pitch: usize,
        src_slice_pitch: usize,
        dst_row_pitch: usize,
        dst_slice_pitch: usize
    ) place => {
        let (src, dst) = (src.object::<Mem>()?, dst.object::<Mem>()?);
        let rect = Rect {
            buffer: enqueue::side(src_origin, src_row_pitch, src_slice_pitch)?,
            other: enqueue::side(dst_origin, dst_row_pitch, dst_slice_pitch)?,
            region: abi::triple(region, cl::CL_INVALID_VALUE)?,
        };
        place.record(move |target| command::buffer::copy_rect(target, &src, &dst, &rect))
    }

    fill_buffer(
        mem: Handle,
        pattern: In<c_void>,
        pattern_size: usize,
        offset: usize,
        size: usize
    ) place => {
        let mem = mem.object::<Mem>()?;
        let pattern: Bytes = enqueue::pattern(pattern, pattern_size)?.into();
        place.record(move |target| command::buffer::fill(target, &mem, &pattern, offset, size))
    }

    copy_image(
        src: Handle,
        dst: Handle,
        src_origin: In<usize>,
        dst_origin: In<usize>,
        size: In<usize>
    ) place => {
        let (src, dst) = (src.object::<Mem>()?, dst.object::<Mem>()?);
        src.image()?;
        let from = image::region(src_origin, size)?;
        let to = image::region(dst_origin, size)?;
        place.record(move |target| {
            command::image::copy(target, &src, &dst, from.origin, to.origin, from.size)
        })
    }

    fill_image(
        mem: Handle,
        colour: In<c_void>,
        origin: In<usize>,
        size: In<usize>
    ) place => {
        let mem = mem.object::<Mem>()?;
        let colour: Bytes = image::colour(&mem, colour)?.into();
        let region = image::region(origin, size)?;
        place.record(move |target| command::image::fill(target, &mem, &colour, region))
    }

    copy_image_to_buffer(
        src: Handle,
        dst: Handle,
        origin: In<usize>,
        size: In<usize>,
        offset: usize
    ) place => {
        let (src, dst) = (src.object::<Mem>()?, dst.object::<Mem>()?);
        src.image()?;
        let region = image::region(origin, size)?;
        place.record(move |target| {
            command::image::copy_to_buffer(target, &src, &dst, region, offset)
        })
    }

    copy_buffer_to_image(
        src: Handle,
        dst: Handle,
        offset: usize,
        origin: In<usize>,
        size: In<usize>
    ) place => {
        let (src, dst) = (src.object::<Mem>()?, dst.object::<Mem>()?);
        dst.image()?;
        let region = image::region(origin, size)?;
        place.record(move |target| {
            command::image::copy_from_buffer(target, &src, &dst, offset, region)
        })
    }

    svm_memcpy(dst: Handle, src: In<c_void>, size: usize) place => {
        place.record(abi::svm_memcpy_recipe(dst, src, size))
    }

    svm_fill(pointer: Handle, pattern: In<c_void>, pattern_size: usize, size: usize) place => {
        let pattern = super::svm::pattern(pattern, pattern_size)?;
        place.record(abi::svm_fill_recipe(pointer, pattern, size))
    }

    nd_range_kernel(
        kernel: Handle,
        dims: cl_uint,
        offset: In<usize>,
        global: In<usize>,
        local: In<usize>
    ) place => {
        let (buffer, queue) = place.check()?;
        let kernel = enqueue::kernel_for(&buffer.queues[queue], kernel)?;
        ensure!(
            (1..=3).contains(&dims),
            cl::CL_INVALID_WORK_DIMENSION,
            "{dims} dimensions"
        );
        let sizes = [offset, global, local].map(|list| list.sizes(dims));
        let dispatch = Dispatch::new(&kernel, dims, sizes);
        let properties = abi::known_properties(place.properties, property_bits)?;
        let want_handle = !place.handle.is_null();
        let (point, made) = buffer.record_dispatch(queue, dispatch, properties, want_handle)?;
        place.point.set(point);
        if let Some(made) = made {
            place.handle.set(Object::handle(&made));
        }
        Ok(())
    }
}

pub fn update(
    buffer: Handle,
    count: cl_uint,
    types: In<cl_command_buffer_update_type_khr>,
    configs: Out<*const c_void>,
) -> ClResult {
    let buffer = buffer.object::<CommandBuffer>()?;
    buffer.check_update()?;
    let empty = count == 0;
    ensure!(
        empty == types.is_null() && empty == configs.is_null(),
        cl::CL_INVALID_VALUE,
        "a list of updates and its length do not fit together"
    );
    let types = types.array(count as usize).unwrap_or_default();
    ensure!(
        types
            .iter()
            .all(|kind| *kind == cl::CL_STRUCTURE_TYPE_MUTABLE_DISPATCH_CONFIG_KHR),
        cl::CL_INVALID_VALUE,
        "an unknown type of update"
    );
    let configs = configs.input().array(count as usize).unwrap_or_default();
    let updates = configs.into_iter().map(abi::dispatch_update);
    buffer.update(&updates.collect::<ClResult<Vec<_>>>()?)
}

pub fn get_mutable_info(
    command: Handle,
    param: cl_mutable_command_info_khr,
    size: usize,
    value: Out<c_void>,
    size_ret: Out<usize>,
) -> ClResult {
    let command = command.object::<MutableCommand>()?;
    command
        .query(param, abi::info(size, value, size_ret))
        .map(drop)
}
