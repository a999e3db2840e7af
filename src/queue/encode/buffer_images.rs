//! Images over buffers in kernels: the image of the device beside the buffer gets the buffer's texels before a launch, and
//! the buffer gets back what the kernel wrote. Nothing else than texels is written, whatever lies between the rows.

use super::recorder::Recorder;
use crate::backend::image::{ImageDim, ImageRegion};
use crate::backend::Op;
use crate::error::ClResult;
use crate::object::launch::KernelLaunch;
use crate::object::mem::image::{Backing, MemImage};
use crate::object::mem::queue_images::Identity;
use crate::object::mem::transfer::cut;
use crate::object::memories::MemoryIndex;
use smallvec::SmallVec;

/// A part of an image over a buffer that one operation copies.
struct ShownPart {
    region: ImageRegion,
    /// First byte in the buffer, and how many from there.
    offset: u64,
    bytes: u64,
    pitches: (u32, u32),
}

/// Returns all of an image over a buffer: at once, slice by slice, or row by row, where these are
/// further apart than one operation can express (Vulkan: 2 GiB).
fn shown_parts(image: &MemImage) -> SmallVec<[ShownPart; 1]> {
    let [width, height, depth] = image.extent();
    let (row_pitch, slice_pitch) = (image.row_pitch, image.slice_pitch);
    let row_bytes = u64::from(width) * image.element() as u64;
    let (y_step, z_step) = image.steps(row_pitch, slice_pitch);
    let (y_step, z_step) = (y_step as u64, z_step as u64);
    let at = |y: u32, z: u32| u64::from(y) * y_step + u64::from(z) * z_step;
    // And of whole blocks, which is how one operation says it.
    let whole = row_pitch.is_multiple_of(image.element().max(1));
    let near = |pitch: u64| i32::try_from(pitch).is_ok() && whole;
    // What one operation copies: so many rows of so many slices.
    let (rows, slices) = match (near(y_step), near(z_step)) {
        (true, true) => (height, depth),
        (true, false) => (height, 1),
        _ => (1, 1),
    };
    // Layers of a one-dimensional array count in the second coordinate.
    let layered = match image.desc.dim {
        ImageDim::D1Array => rows > 1,
        _ => slices > 1,
    };
    let row_texels = match (rows, slices) {
        (1, 1) => 0,
        _ => (row_pitch / image.element().max(1)) as u32,
    };
    let slice_rows = match layered {
        true => (slice_pitch / row_pitch.max(1)) as u32,
        false => 0,
    };
    let part = |region: ImageRegion| ShownPart {
        offset: at(region.origin[1], region.origin[2]),
        bytes: at(rows - 1, slices - 1) + row_bytes,
        pitches: (row_texels, slice_rows),
        region,
    };
    cut(image.extent(), rows, slices).map(part).collect()
}

/// Copies the buffers' texels to the images beside them, before a launch, or (`back`) what the kernel wrote back to the
/// buffers. `memory`: that of the device; `queue`: whose images.
pub(super) fn copy_shown_images(
    to: &mut impl Recorder,
    memory: MemoryIndex,
    queue: &Identity,
    kernel: &KernelLaunch,
    back: bool,
) -> ClResult {
    let mut any = false;
    for (mem, access) in &kernel.images {
        let image = mem.image()?;
        if image.backing != Backing::Rows || (back && !access.writes()) {
            continue;
        }
        if !any {
            // Earlier launches may still use the image.
            to.barrier()?;
        }
        any = true;
        let texels = mem.shown(memory, queue)?;
        for part in shown_parts(image) {
            let op = Op::CopyTexels {
                image: &texels,
                region: part.region,
                memory: &mem.slice(memory, part.offset, part.bytes)?,
                pitches: part.pitches,
                to_image: !back,
            };
            to.record(op, false)?;
        }
    }
    if any && !back {
        to.barrier()?;
    }
    Ok(())
}
