//! Copies between images and memory.

use super::image;
use crate::backend::image::ImageRegion;
use crate::backend::{DeviceImage, ImageDim};

/// Returns the pitches of a region in memory: the bytes from row to row and from slice to slice.
fn pitches(
    image: &dyn DeviceImage,
    region: &ImageRegion,
    (row_texels, slice_rows): (u32, u32),
) -> (usize, usize) {
    let or = |given: u32, packed: u32| if given == 0 { packed } else { given } as usize;
    let row = image.desc().format.bytes() * or(row_texels, region.size[0]);
    match image.desc().dim {
        // The rows of a region are layers.
        ImageDim::D1Array => (row * or(slice_rows, 1), 0),
        _ => (row, row * or(slice_rows, region.size[1])),
    }
}

/// Calls `f` with the place of each row of a region in the image and its place in memory, in bytes, and its size.
fn rows(
    image: &dyn DeviceImage,
    region: &ImageRegion,
    (row, slice): (usize, usize),
    mut f: impl FnMut(*mut u8, usize, usize),
) {
    let Ok(ours) = image::of(image) else {
        return;
    };
    let d = ours.descriptor();
    let bytes = region.size[0] as usize * d.pixel as usize;
    let [width, height, depth] = d.size.map(u64::from);
    let size = [
        width / u64::from(image.desc().format.block()),
        height,
        depth,
    ];
    let fits = |i: usize| {
        let end = u64::from(region.origin[i]) + u64::from(region.size[i]);
        end <= size[i]
    };
    if !(0..3).all(fits) {
        crate::log!(Error, "a copy beyond an image: {region:?}");
        return;
    }
    for z in 0..region.size[2] {
        for y in 0..region.size[1] {
            let at = u64::from(region.origin[0]) * u64::from(d.pixel)
                + u64::from(region.origin[1] + y) * d.row
                + u64::from(region.origin[2] + z) * d.slice;
            let memory = z as usize * slice + y as usize * row;
            f(d.texels.wrapping_add(at as usize), memory, bytes);
        }
    }
}

/// Copies between an image and memory; see `Op::CopyTexels`.
///
/// # Safety
/// The memory must have room for the region, and nothing else may access it meanwhile.
pub unsafe fn copy_texels(
    image: &dyn DeviceImage,
    region: &ImageRegion,
    memory: *mut u8,
    given: (u32, u32),
    to_image: bool,
) {
    let pitches = pitches(image, region, given);
    rows(image, region, pitches, |texels, at, bytes| {
        let row = memory.wrapping_add(at);
        let (from, to) = if to_image {
            (row, texels)
        } else {
            (texels, row)
        };
        // SAFETY: the row lies within the image; the caller vouches for the memory.
        unsafe { std::ptr::copy_nonoverlapping(from, to, bytes) };
    });
}

/// Copies between images of the same format; see `Op::ImageCopy`.
///
/// # Safety
/// Nothing else may access the images meanwhile.
pub unsafe fn image_copy(
    src: &dyn DeviceImage,
    from: [u32; 3],
    dst: &dyn DeviceImage,
    to: [u32; 3],
    size: [u32; 3],
) {
    let mut list = Vec::new();
    let source = ImageRegion { origin: from, size };
    rows(src, &source, (0, 0), |texels, _, bytes| {
        list.push((texels, bytes))
    });
    let mut list = list.into_iter();
    let target = ImageRegion { origin: to, size };
    rows(dst, &target, (0, 0), |texels, _, bytes| {
        if let Some((from, size)) = list.next() {
            // SAFETY: both rows lie within their images.
            unsafe { std::ptr::copy(from, texels, bytes.min(size)) };
        }
    });
}
