//! Synchronous transfers outside any queue: initial contents, and contents that move between memories.

use crate::backend::image::{DeviceImage, ImageRegion};
use crate::backend::staging::{self, copy, Staging, CHUNK};
use crate::backend::{Memory, Op, OrderRule, Placement, Slice};
use crate::cl;
use crate::error::{err, ClResult};
use crate::handle::Ref;
use crate::object::device::Device;
use std::ops::Range;
use std::sync::Arc;

/// Copies bytes into memory of a device that no command uses meanwhile.
pub fn upload(
    device: &Ref<Device>,
    memory: &Arc<dyn Memory>,
    offset: u64,
    bytes: &[u8],
) -> ClResult {
    staging::upload(device.backend.as_ref(), memory, offset, bytes)?;
    Ok(())
}

/// Up to this size, reading memory that the host does not cache costs less than a submission.
pub const SLOW_READ: u64 = 256;

/// Copies a range of one device's memory to the same place in another's. No command writes it meanwhile.
pub fn between(
    from: &Ref<Device>,
    src: &Arc<dyn Memory>,
    to: &Ref<Device>,
    dst: &Arc<dyn Memory>,
    range: Range<u64>,
) -> ClResult {
    let end = range.end.min(src.size()).min(dst.size());
    let size = end.saturating_sub(range.start);
    if let Some(pointer) = src.mapped() {
        if dst.mapped() == Some(pointer) {
            // The same memory of the host.
            return Ok(());
        }
        if src.host_cached() || size <= SLOW_READ {
            let first = pointer.as_ptr().wrapping_add(range.start as usize);
            // SAFETY: mapped memory that has this range and that nothing writes to now.
            let bytes = unsafe { std::slice::from_raw_parts(first, size as usize) };
            return upload(to, dst, range.start, bytes);
        }
    }
    let mut down = Staging::new(from.backend.as_ref(), CHUNK.min(size), Placement::HostRead)?;
    let mut up = match dst.mapped() {
        Some(_) => None,
        None => Some(Staging::new(
            to.backend.as_ref(),
            CHUNK.min(size),
            Placement::HostWrite,
        )?),
    };
    let mut at = range.start;
    while at < end {
        let part = CHUNK.min(end - at);
        let piece = |memory: &Arc<dyn Memory>| Slice::new(memory.clone(), at, part);
        let staged = down.slice(part);
        copy(&mut *down.stream, &piece(src), &staged, part)?;
        // SAFETY: staging memory of `part` bytes at least; the copy into it has completed.
        let bytes = unsafe { std::slice::from_raw_parts(down.pointer.as_ptr(), part as usize) };
        match &mut up {
            None => upload(to, dst, at, bytes)?,
            Some(up) => {
                // SAFETY: both are `part` bytes at least and nothing else uses them.
                unsafe {
                    crate::util::copy::copy(
                        bytes.as_ptr() as usize,
                        up.pointer.as_ptr() as usize,
                        bytes.len(),
                    )
                };
                let staged = up.slice(part);
                copy(&mut *up.stream, &staged, &piece(dst), part)?;
            }
        }
        at += part;
    }
    down.stream.give_back();
    if let Some(up) = up {
        up.stream.give_back();
    }
    Ok(())
}

/// Allocates that many bytes, or returns CL_OUT_OF_HOST_MEMORY: applications choose the size.
pub fn room(size: usize) -> ClResult<Vec<u8>> {
    let mut bytes = Vec::new();
    match bytes.try_reserve_exact(size) {
        Ok(()) => Ok(bytes),
        Err(_) => err(
            cl::CL_OUT_OF_HOST_MEMORY,
            format!("no memory for a copy of {size} bytes"),
        ),
    }
}

/// Returns the rows of an image in host memory, one after the other. `y` and `z`: bytes from one
/// second, and one third, coordinate to the next.
///
/// # Safety
/// The rows must be readable.
pub unsafe fn packed(
    base: usize,
    size: [u32; 3],
    element: usize,
    y: usize,
    z: usize,
) -> ClResult<Vec<u8>> {
    let [width, height, depth] = size.map(|n| n as usize);
    let row = width * element;
    let mut bytes = room(row * height * depth)?;
    for slice in 0..depth {
        for line in 0..height {
            let from = base.wrapping_add(slice * z + line * y) as *const u8;
            // SAFETY: the caller vouches for every row.
            bytes.extend_from_slice(unsafe { std::slice::from_raw_parts(from, row) });
        }
    }
    Ok(bytes)
}

/// Splits an image into boxes of at most `limit` bytes each (but of one row at least), in the order
/// of their bytes.
pub fn split(size: [u32; 3], element: usize, limit: u64) -> Vec<ImageRegion> {
    let [width, height, depth] = size;
    let row = (u64::from(width) * element as u64).max(1);
    let plane = row * u64::from(height);
    let (rows, slices) = match plane <= limit {
        true => (
            height.max(1),
            (limit / plane.max(1)).clamp(1, u64::from(depth.max(1))) as u32,
        ),
        false => ((limit / row).clamp(1, u64::from(height)) as u32, 1),
    };
    cut(size, rows, slices).collect()
}

/// Cuts an image into boxes of so many rows and slices at most, in the order of their bytes.
pub fn cut(
    [width, height, depth]: [u32; 3],
    rows: u32,
    slices: u32,
) -> impl Iterator<Item = ImageRegion> {
    let starts = (0..depth).step_by(slices as usize).flat_map(move |z| {
        let rows = (0..height).step_by(rows as usize);
        rows.map(move |y| (y, z))
    });
    starts.map(move |(y, z)| ImageRegion {
        origin: [0, y, z],
        size: [width, rows.min(height - y), slices.min(depth - z)],
    })
}

/// Returns the bytes of a box.
pub fn volume(size: [u32; 3], element: usize) -> u64 {
    size.iter()
        .fold(element as u64, |all, n| all.saturating_mul(u64::from(*n)))
}

/// Converts a part of a box, which counts from the box's first pixel, to coordinates of the image.
pub fn within(at: &ImageRegion, part: &ImageRegion) -> ImageRegion {
    let ([x, y, z], [px, py, pz]) = (at.origin, part.origin);
    ImageRegion {
        origin: [x + px, y + py, z + pz],
        size: part.size,
    }
}

/// Copies a box of an image through staging memory, to it or from it, in parts. `host` gets each: where it is, before the copy
/// to the image or after that from it, and its bytes.
fn copy_box(
    device: &Ref<Device>,
    image: &Arc<dyn DeviceImage>,
    whole: &ImageRegion,
    to_image: bool,
    mut host: impl FnMut(*mut u8, usize),
) -> ClResult {
    let element = image.desc().format.bytes();
    let placement = match to_image {
        true => Placement::HostWrite,
        false => Placement::HostRead,
    };
    let parts = split(whole.size, element, CHUNK);
    let largest = parts.iter().map(|part| volume(part.size, element)).max();
    let backend = device.backend.as_ref();
    let mut staging = Staging::new(backend, largest.unwrap_or(1), placement)?;
    for part in parts {
        let size = volume(part.size, element);
        if to_image {
            host(staging.pointer.as_ptr(), size as usize);
        }
        let memory = staging.slice(size);
        let op = Op::copy_packed(image, within(whole, &part), &memory, to_image);
        staging.stream.record(op, OrderRule::InOrder, false)?;
        let value = staging.stream.submit(false)?;
        staging.stream.timeline().clone().wait(value, None)?;
        staging.stream.reclaim();
        if !to_image {
            host(staging.pointer.as_ptr(), size as usize);
        }
    }
    staging.stream.give_back();
    Ok(())
}

/// Writes packed contents to a box of an image that no command uses.
pub fn fill_image(
    device: &Ref<Device>,
    image: &Arc<dyn DeviceImage>,
    whole: &ImageRegion,
    bytes: &[u8],
) -> ClResult {
    let mut rest = bytes;
    copy_box(device, image, whole, true, |to, size| {
        let (part, left) = rest.split_at(size.min(rest.len()));
        rest = left;
        // SAFETY: staging has `size` bytes at least, and the part has no more; the copy out of it before has completed.
        unsafe { std::ptr::copy_nonoverlapping(part.as_ptr(), to, part.len()) };
    })
}

/// Returns the contents of a box of an image that no command writes, packed.
pub fn image_bytes(
    device: &Ref<Device>,
    image: &Arc<dyn DeviceImage>,
    whole: &ImageRegion,
) -> ClResult<Vec<u8>> {
    let element = image.desc().format.bytes();
    let mut bytes = room(volume(whole.size, element) as usize)?;
    copy_box(device, image, whole, false, |from, size| {
        // SAFETY: staging memory of `size` bytes; the copy into it has completed.
        bytes.extend_from_slice(unsafe { std::slice::from_raw_parts(from, size) });
    })?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_memory_is_an_error() {
        assert!(room(1000).is_ok_and(|bytes| bytes.is_empty() && bytes.capacity() >= 1000));
        let code = room(isize::MAX as usize).map_err(|error| error.code);
        assert_eq!(code, Err(cl::CL_OUT_OF_HOST_MEMORY));
    }

    #[test]
    fn boxes_cover_an_image_in_order() {
        for (size, limit) in [
            ([7, 5, 3], 1 << 20),
            ([7, 5, 3], 28),
            ([7, 5, 3], 28 * 5),
            ([7, 5, 3], 28 * 11),
            ([7, 5, 3], 60),
            ([7, 5, 3], 1),
        ] {
            let mut next = 0u64;
            for part in split(size, 4, limit) {
                let [x, y, z] = part.origin.map(u64::from);
                assert_eq!(next, (z * 5 + y) * 7 + x);
                next += volume(part.size, 1);
                assert!(volume(part.size, 4) <= limit.max(28));
            }
            assert_eq!(next, 105);
        }
    }
}
