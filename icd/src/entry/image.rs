//! Images: creation, queries, and the commands on them.

use super::enqueue::Tail;
use crate::abi::{self, Handle, In, Out};
use pumice_runtime::cl::{
    self, cl_bool, cl_event, cl_image_desc, cl_image_format, cl_image_info,
    cl_image_requirements_info_ext, cl_map_flags, cl_mem_flags, cl_mem_object_type,
    cl_mem_properties, cl_uint,
};
use pumice_runtime::command::{self, image::Box3};
use pumice_runtime::error::{err, ClResult, OrErr};
use pumice_runtime::handle::Ref;
use pumice_runtime::object::context::Context;
use pumice_runtime::object::mem::description::Description;
use pumice_runtime::object::mem::external;
use pumice_runtime::object::mem::image::supported_formats;
use pumice_runtime::object::mem::requirements::image_requirements;
use pumice_runtime::object::mem::{pixel, Mem};
use pumice_runtime::queue::Queue;
use std::ffi::c_void;

/// Returns the description in a cl_image_desc, and its `mem_object`.
fn description(desc: &cl_image_desc) -> ClResult<(Description, Option<Ref<Mem>>)> {
    let parent = match desc.buffer.is_null() {
        true => None,
        false => Some(abi::object::<Mem>(desc.buffer).or_else(|_| {
            err(
                cl::CL_INVALID_IMAGE_DESCRIPTOR,
                "mem_object is no memory object",
            )
        })?),
    };
    let wanted = Description {
        kind: desc.image_type,
        width: desc.image_width,
        height: desc.image_height,
        depth: desc.image_depth,
        array_size: desc.image_array_size,
        row_pitch: desc.image_row_pitch,
        slice_pitch: desc.image_slice_pitch,
        mip_levels: desc.num_mip_levels,
        samples: desc.num_samples,
    };
    Ok((wanted, parent))
}

fn make(
    context: Handle,
    properties: Vec<cl_mem_properties>,
    flags: cl_mem_flags,
    format: In<cl_image_format>,
    desc: In<cl_image_desc>,
    host_ptr: Handle,
) -> ClResult<*mut c_void> {
    let context = context.context()?;
    let Some(format) = format.get() else {
        return err(
            cl::CL_INVALID_IMAGE_FORMAT_DESCRIPTOR,
            "image_format is NULL",
        );
    };
    let Some(desc) = desc.get() else {
        return err(cl::CL_INVALID_IMAGE_DESCRIPTOR, "image_desc is NULL");
    };
    let (wanted, parent) = description(&desc)?;
    abi::publish(abi::image(
        &context,
        properties,
        flags,
        &format,
        &wanted,
        parent.as_ref(),
        host_ptr,
    ))
}

pub fn create(
    context: Handle,
    flags: cl_mem_flags,
    format: In<cl_image_format>,
    desc: In<cl_image_desc>,
    host_ptr: Handle,
) -> ClResult<*mut c_void> {
    make(context, Vec::new(), flags, format, desc, host_ptr)
}

pub fn create_with_properties(
    context: Handle,
    properties: In<cl_mem_properties>,
    flags: cl_mem_flags,
    format: In<cl_image_format>,
    desc: In<cl_image_desc>,
    host_ptr: Handle,
) -> ClResult<*mut c_void> {
    let properties = abi::formed_properties(properties, external::form)?;
    make(context, properties, flags, format, desc, host_ptr)
}

/// Creates an image for the calls of OpenCL 1.1, whose errors for the extents differ.
fn make_old(
    context: Handle,
    flags: cl_mem_flags,
    format: In<cl_image_format>,
    wanted: Description,
    host_ptr: Handle,
) -> ClResult<*mut c_void> {
    let context = context.context()?;
    let Some(format) = format.get() else {
        return err(
            cl::CL_INVALID_IMAGE_FORMAT_DESCRIPTOR,
            "image_format is NULL",
        );
    };
    let made = abi::image(
        &context,
        Vec::new(),
        flags,
        &format,
        &wanted,
        None,
        host_ptr,
    );
    abi::publish(made.map_err(|mut error| {
        if error.code == cl::CL_INVALID_IMAGE_DESCRIPTOR {
            error.code = cl::CL_INVALID_IMAGE_SIZE;
        }
        error
    }))
}

pub fn create_2d(
    context: Handle,
    flags: cl_mem_flags,
    format: In<cl_image_format>,
    width: usize,
    height: usize,
    row_pitch: usize,
    host_ptr: Handle,
) -> ClResult<*mut c_void> {
    let wanted = Description {
        kind: cl::CL_MEM_OBJECT_IMAGE2D,
        width,
        height,
        depth: 0,
        array_size: 0,
        row_pitch,
        slice_pitch: 0,
        mip_levels: 0,
        samples: 0,
    };
    make_old(context, flags, format, wanted, host_ptr)
}

#[allow(clippy::too_many_arguments)]
pub fn create_3d(
    context: Handle,
    flags: cl_mem_flags,
    format: In<cl_image_format>,
    width: usize,
    height: usize,
    depth: usize,
    row_pitch: usize,
    slice_pitch: usize,
    host_ptr: Handle,
) -> ClResult<*mut c_void> {
    if depth == 1 {
        context.context()?;
        return err(cl::CL_INVALID_IMAGE_SIZE, "image_depth is 1");
    }
    let wanted = Description {
        kind: cl::CL_MEM_OBJECT_IMAGE3D,
        width,
        height,
        depth,
        array_size: 0,
        row_pitch,
        slice_pitch,
        mip_levels: 0,
        samples: 0,
    };
    make_old(context, flags, format, wanted, host_ptr)
}

pub fn get_supported_formats(
    context: Handle,
    flags: cl_mem_flags,
    image_type: cl_mem_object_type,
    entries: cl_uint,
    formats: Out<cl_image_format>,
    count: Out<cl_uint>,
) -> ClResult {
    let context = context.object::<Context>()?;
    let found = supported_formats(&context, flags, image_type)?;
    if entries == 0 && !formats.is_null() {
        return err(cl::CL_INVALID_VALUE, "num_entries is 0");
    }
    formats.set_all(found.iter().copied().take(entries as usize));
    count.set(found.len() as cl_uint);
    Ok(())
}

#[allow(clippy::too_many_arguments)]
pub fn get_requirements(
    context: Handle,
    properties: In<cl_mem_properties>,
    flags: cl_mem_flags,
    format: In<cl_image_format>,
    desc: In<cl_image_desc>,
    param: cl_image_requirements_info_ext,
    size: usize,
    value: Out<c_void>,
    size_ret: Out<usize>,
) -> ClResult {
    let context = context.object::<Context>()?;
    let properties = abi::properties(properties).unwrap_or_default();
    let desc = desc.get().map(|desc| description(&desc)).transpose()?;
    let wanted = desc.map(|(wanted, _)| wanted);
    let out = abi::info(size, value, size_ret);
    let format = format.get();
    image_requirements(
        &context,
        &properties,
        flags,
        format.as_ref(),
        wanted.as_ref(),
        param,
        out,
    )
    .map(drop)
}

pub fn get_info(
    image: Handle,
    param: cl_image_info,
    size: usize,
    value: Out<c_void>,
    size_ret: Out<usize>,
) -> ClResult {
    image
        .object::<Mem>()?
        .image_info(param, abi::info(size, value, size_ret))
        .map(drop)
}

pub fn region(origin: In<usize>, size: In<usize>) -> ClResult<Box3> {
    Ok(Box3 {
        origin: abi::triple(origin, cl::CL_INVALID_VALUE)?,
        size: abi::triple(size, cl::CL_INVALID_VALUE)?,
    })
}

fn objects(queue: Handle, image: Handle) -> ClResult<(Ref<Queue>, Ref<Mem>)> {
    let (queue, mem) = (queue.object::<Queue>()?, image.object::<Mem>()?);
    mem.image()?;
    Ok((queue, mem))
}

#[allow(clippy::too_many_arguments)]
pub fn enqueue_read(
    queue: Handle,
    image: Handle,
    blocking: cl_bool,
    origin: In<usize>,
    size: In<usize>,
    row_pitch: usize,
    slice_pitch: usize,
    ptr: Handle,
    count: cl_uint,
    list: In<cl_event>,
    event: Out<cl_event>,
) -> ClResult {
    let (queue, mem) = objects(queue, image)?;
    let region = region(origin, size)?;
    let pitches = (row_pitch, slice_pitch);
    let command = abi::read_image(&queue.target, &mem, region, pitches, ptr)?;
    Tail { count, list, event }.submit(&queue, command, blocking != 0)
}

#[allow(clippy::too_many_arguments)]
pub fn enqueue_write(
    queue: Handle,
    image: Handle,
    blocking: cl_bool,
    origin: In<usize>,
    size: In<usize>,
    row_pitch: usize,
    slice_pitch: usize,
    ptr: In<c_void>,
    count: cl_uint,
    list: In<cl_event>,
    event: Out<cl_event>,
) -> ClResult {
    let (queue, mem) = objects(queue, image)?;
    let region = region(origin, size)?;
    let pitches = (row_pitch, slice_pitch);
    let command = abi::write_image(&queue.target, &mem, region, pitches, ptr)?;
    Tail { count, list, event }.submit(&queue, command, blocking != 0)
}

#[allow(clippy::too_many_arguments)]
pub fn enqueue_copy(
    queue: Handle,
    src: Handle,
    dst: Handle,
    src_origin: In<usize>,
    dst_origin: In<usize>,
    size: In<usize>,
    count: cl_uint,
    list: In<cl_event>,
    event: Out<cl_event>,
) -> ClResult {
    let (queue, src) = objects(queue, src)?;
    let dst = dst.object::<Mem>()?;
    let (from, to) = (region(src_origin, size)?, region(dst_origin, size)?);
    let command =
        command::image::copy(&queue.target, &src, &dst, from.origin, to.origin, from.size)?;
    Tail { count, list, event }.submit(&queue, command, false)
}

#[allow(clippy::too_many_arguments)]
pub fn enqueue_copy_to_buffer(
    queue: Handle,
    src: Handle,
    dst: Handle,
    origin: In<usize>,
    size: In<usize>,
    offset: usize,
    count: cl_uint,
    list: In<cl_event>,
    event: Out<cl_event>,
) -> ClResult {
    let (queue, src) = objects(queue, src)?;
    let dst = dst.object::<Mem>()?;
    let region = region(origin, size)?;
    let command = command::image::copy_to_buffer(&queue.target, &src, &dst, region, offset)?;
    Tail { count, list, event }.submit(&queue, command, false)
}

#[allow(clippy::too_many_arguments)]
pub fn enqueue_copy_from_buffer(
    queue: Handle,
    src: Handle,
    dst: Handle,
    offset: usize,
    origin: In<usize>,
    size: In<usize>,
    count: cl_uint,
    list: In<cl_event>,
    event: Out<cl_event>,
) -> ClResult {
    let (queue, dst) = objects(queue, dst)?;
    let src = src.object::<Mem>()?;
    let region = region(origin, size)?;
    let command = command::image::copy_from_buffer(&queue.target, &src, &dst, offset, region)?;
    Tail { count, list, event }.submit(&queue, command, false)
}

#[allow(clippy::too_many_arguments)]
pub fn enqueue_map(
    queue: Handle,
    image: Handle,
    blocking: cl_bool,
    flags: cl_map_flags,
    origin: In<usize>,
    size: In<usize>,
    row_pitch: Out<usize>,
    slice_pitch: Out<usize>,
    count: cl_uint,
    list: In<cl_event>,
    event: Out<cl_event>,
) -> ClResult<*mut c_void> {
    let (queue, mem) = objects(queue, image)?;
    let region = region(origin, size)?;
    let slices = mem.image()?.slice_pitch != 0;
    if row_pitch.is_null() || (slices && slice_pitch.is_null()) {
        // What the image does not allow comes first.
        command::check_map_access(&mem, flags)?;
        return err(cl::CL_INVALID_VALUE, "a place for a pitch is NULL");
    }
    // Checked before the map is entered; a queue that refuses the command undoes it.
    abi::wait_list(count, list)?;
    let (command, mapped) = command::image::map(&queue.target, &mem, flags, region)?;
    Tail { count, list, event }.submit(&queue, command, blocking != 0)?;
    row_pitch.set(mapped.row_pitch);
    slice_pitch.set(mapped.slice_pitch);
    Ok(mapped.pointer)
}

/// Returns the colour of a fill.
pub fn colour<'a>(mem: &Ref<Mem>, colour: In<c_void>) -> ClResult<&'a [u8]> {
    let bytes = pixel::colour_bytes(mem.image()?.desc.format);
    colour
        .bytes(bytes)
        .or_err(cl::CL_INVALID_VALUE, "fill_color is NULL")
}

#[allow(clippy::too_many_arguments)]
pub fn enqueue_fill(
    queue: Handle,
    image: Handle,
    colour: In<c_void>,
    origin: In<usize>,
    size: In<usize>,
    count: cl_uint,
    list: In<cl_event>,
    event: Out<cl_event>,
) -> ClResult {
    let (queue, mem) = objects(queue, image)?;
    let colour = self::colour(&mem, colour)?;
    let region = region(origin, size)?;
    let command = command::image::fill(&queue.target, &mem, colour, region)?;
    Tail { count, list, event }.submit(&queue, command, false)
}
