//! Synchronous transfers outside any queue: initial contents, and contents that move between devices.

use crate::backend::{BufferCopy, Memory, Op, OrderRule, Placement, Slice, StreamDesc};
use crate::error::ClResult;
use crate::handle::Ref;
use crate::object::device::Device;
use std::ptr::NonNull;
use std::sync::Arc;

const CHUNK: u64 = 32 << 20;

/// Copies bytes into memory of a device that no command uses meanwhile.
pub fn upload(
    device: &Ref<Device>,
    memory: &Arc<dyn Memory>,
    offset: u64,
    bytes: &[u8],
) -> ClResult {
    if let Some(pointer) = memory.mapped() {
        // SAFETY: the range lies within the memory (the caller checked sizes); nothing else uses it now.
        unsafe {
            std::ptr::copy(
                bytes.as_ptr(),
                pointer.as_ptr().add(offset as usize),
                bytes.len(),
            )
        };
        return Ok(());
    }
    chunks(
        device,
        bytes.len() as u64,
        Placement::HostWrite,
        |stream, staging, pointer, at, size| {
            // SAFETY: staging has `size` bytes at least, and so has the source from `at` on.
            unsafe {
                std::ptr::copy_nonoverlapping(
                    bytes.as_ptr().add(at as usize),
                    pointer.as_ptr(),
                    size as usize,
                )
            };
            let src = Slice {
                memory: staging.clone(),
                offset: 0,
                size,
            };
            let dst = Slice {
                memory: memory.clone(),
                offset: offset + at,
                size,
            };
            copy(stream, &src, &dst, size)
        },
    )
}

/// Copies all of one device's memory to another's. No command uses them meanwhile.
pub fn between(
    from: &Ref<Device>,
    src: &Arc<dyn Memory>,
    to: &Ref<Device>,
    dst: &Arc<dyn Memory>,
) -> ClResult {
    let size = src.size().min(dst.size());
    if let Some(pointer) = src.mapped() {
        // SAFETY: mapped memory of `size` bytes at least that nothing writes to now.
        let bytes = unsafe { std::slice::from_raw_parts(pointer.as_ptr(), size as usize) };
        return upload(to, dst, 0, bytes);
    }
    let mut at = 0;
    while at < size {
        let part = CHUNK.min(size - at);
        let staging = from.backend().allocate(part, Placement::HostRead)?;
        let mut stream = from.backend().create_stream(StreamDesc::default())?;
        let source = Slice {
            memory: src.clone(),
            offset: at,
            size: part,
        };
        let target = Slice {
            memory: staging.clone(),
            offset: 0,
            size: part,
        };
        copy(stream.as_mut(), &source, &target, part)?;
        if let Some(pointer) = staging.mapped() {
            // SAFETY: staging memory of `part` bytes; the copy into it has completed.
            let bytes = unsafe { std::slice::from_raw_parts(pointer.as_ptr(), part as usize) };
            upload(to, dst, at, bytes)?;
        }
        at += part;
    }
    Ok(())
}

fn copy(stream: &mut dyn crate::backend::Stream, src: &Slice, dst: &Slice, size: u64) -> ClResult {
    stream.record(
        Op::Copy {
            src,
            dst,
            region: BufferCopy::linear(0, 0, size),
        },
        OrderRule::InOrder,
        false,
    )?;
    let value = stream.submit(false)?;
    stream.timeline().clone().wait(value, None)?;
    stream.reclaim();
    Ok(())
}

type Step<'a> = &'a mut dyn FnMut(
    &mut dyn crate::backend::Stream,
    &Arc<dyn Memory>,
    NonNull<u8>,
    u64,
    u64,
) -> ClResult;

fn chunks(
    device: &Ref<Device>,
    size: u64,
    placement: Placement,
    mut step: impl FnMut(
        &mut dyn crate::backend::Stream,
        &Arc<dyn Memory>,
        NonNull<u8>,
        u64,
        u64,
    ) -> ClResult,
) -> ClResult {
    let step: Step<'_> = &mut step;
    let backend = device.backend();
    let staging = backend.allocate(CHUNK.min(size), placement)?;
    let Some(pointer) = staging.mapped() else {
        return crate::error::err(
            crate::cl::CL_OUT_OF_RESOURCES,
            "staging memory is not mapped",
        );
    };
    let mut stream = backend.create_stream(StreamDesc::default())?;
    let mut at = 0;
    while at < size {
        let part = CHUNK.min(size - at);
        step(stream.as_mut(), &staging, pointer, at, part)?;
        at += part;
    }
    Ok(())
}
