//! clGetImageRequirementsInfoEXT: what an image would need, asked before it is made (cl_ext_image_requirements_info,
//! section 5.3.12).

use super::buffer::check_flags;
use super::description::{
    bad, check_format, check_images, dim_of, fits, largest, Description, Layout, Source, ARRAYS,
    WITH_HEIGHT,
};
use crate::backend::image::ImageDim;
use crate::backend::PixelFormat;
use crate::cl::{
    self, cl_image_format, cl_image_requirements_info_ext, cl_mem_flags, cl_mem_properties,
};
use crate::error::{err, ClError, ClResult};
use crate::object::context::Context;
use crate::object::info::{unknown, InfoOut, Written};
use crate::object::properties::unsupported;

/// Bytes of the largest pixel.
const LARGEST_PIXEL: usize = 16;

/// An extent that can be asked for, by its place among width, height, depth and layers, and the geometries that have it.
type Extent = (usize, &'static [ImageDim]);

/// Returns the extents and pitches of an image that could be created from a buffer.
fn check_layout(context: &Context, pixel: PixelFormat, wanted: &Description) -> ClResult<Layout> {
    let invalid = |error: ClError| ClError::new(cl::CL_INVALID_IMAGE_DESCRIPTOR, error.what);
    let layout = Layout::new(pixel, wanted, Source::Buffer).map_err(invalid)?;
    let found = context.devices.iter().any(|d| fits(d, &layout.desc));
    if !found {
        return bad("larger than every device of the context allows");
    }
    Ok(layout)
}

/// Returns the largest extent of images with `element` bytes for `block` pixels of a row, where
/// `given` are the other extents, 0 if not known. Where all are known their product is observed as
/// well: no object is larger than CL_DEVICE_MAX_MEM_ALLOC_SIZE.
fn most(
    context: &Context,
    (at, dims): Extent,
    dim: Option<ImageDim>,
    (block, element): (u32, usize),
    given: [usize; 4],
) -> u32 {
    let dims = match &dim {
        Some(dim) => std::slice::from_ref(dim),
        None => dims,
    };
    let on = |device: &crate::object::device::Device| {
        let least = |dim: &ImageDim| {
            let limits = largest(&device.caps().images, *dim);
            let others = (0..4).filter(|place| *place != at && limits[*place] > 1);
            // Widths are of pixels, and bytes are of blocks.
            let in_pixels = |place: usize| if place == 0 { u64::from(block) } else { 1 };
            let beside = others.fold(element as u64, |all, place| {
                let count = (given[place] as u64).div_ceil(in_pixels(place));
                all.saturating_mul(count.max(1))
            });
            let unit = in_pixels(at);
            let room = (device.caps().max_alloc_size / beside).saturating_mul(unit);
            let limit = u64::from(limits[at]) / unit * unit;
            limit.min(room) as u32
        };
        dims.iter().map(least).min().unwrap_or(0)
    };
    let devices = context.devices.iter().filter(|d| d.features.images);
    devices.map(|device| on(device)).max().unwrap_or(0)
}

/// Implements clGetImageRequirementsInfoEXT. `format` and `wanted` may be left out where the query
/// allows it: then the answer holds for all.
///
/// # Errors
/// CL_INVALID_OPERATION without a device that supports images, CL_INVALID_PROPERTY, CL_INVALID_VALUE for the flags, the
/// query or a lacking argument, CL_INVALID_IMAGE_FORMAT_DESCRIPTOR, CL_INVALID_IMAGE_DESCRIPTOR.
pub fn image_requirements(
    context: &Context,
    properties: &[cl_mem_properties],
    flags: cl_mem_flags,
    format: Option<&cl_image_format>,
    wanted: Option<&Description>,
    param: cl_image_requirements_info_ext,
    out: InfoOut<'_>,
) -> ClResult<Written> {
    const ALIGNED: [cl_image_requirements_info_ext; 3] = [
        cl::CL_IMAGE_REQUIREMENTS_BASE_ADDRESS_ALIGNMENT_EXT,
        cl::CL_IMAGE_REQUIREMENTS_ROW_PITCH_ALIGNMENT_EXT,
        cl::CL_IMAGE_REQUIREMENTS_SLICE_PITCH_ALIGNMENT_EXT,
    ];
    check_images(context)?;
    if let Some(name) = properties.first().filter(|name| **name != 0) {
        return unsupported("image", name, cl::CL_INVALID_PROPERTY);
    }
    check_flags(flags)?;
    let pixel = format.map(check_format).transpose()?;
    let element = pixel.map_or(LARGEST_PIXEL, |pixel| pixel.bytes());
    let block = pixel.map_or(1, PixelFormat::block);
    if ALIGNED.contains(&param) {
        if let Some(wanted) = wanted {
            let smallest = PixelFormat {
                order: cl::CL_R,
                data: cl::CL_UNSIGNED_INT8,
            };
            check_layout(context, pixel.unwrap_or(smallest), wanted)?;
        }
        // Copies of the texels go between a buffer and an image of the device, wherever the buffer lies.
        let align = match param {
            cl::CL_IMAGE_REQUIREMENTS_BASE_ADDRESS_ALIGNMENT_EXT => 1,
            _ if block > 1 => 1,
            _ => element.next_power_of_two(),
        };
        return out.write(align);
    }
    if param == cl::CL_IMAGE_REQUIREMENTS_SIZE_EXT {
        let (Some(pixel), Some(wanted)) = (pixel, wanted) else {
            return err(
                cl::CL_INVALID_VALUE,
                "the size needs both image_format and image_desc",
            );
        };
        let Some(size) = check_layout(context, pixel, wanted)?.span() else {
            return bad("the pitches are too large");
        };
        return out.write(size);
    }
    let extent: Extent = match param {
        cl::CL_IMAGE_REQUIREMENTS_MAX_WIDTH_EXT => (0, &ImageDim::ALL),
        cl::CL_IMAGE_REQUIREMENTS_MAX_HEIGHT_EXT => (1, &WITH_HEIGHT),
        cl::CL_IMAGE_REQUIREMENTS_MAX_DEPTH_EXT => (2, &[ImageDim::D3]),
        cl::CL_IMAGE_REQUIREMENTS_MAX_ARRAY_SIZE_EXT => (3, &ARRAYS),
        _ => return unknown(param),
    };
    let (mut dim, mut given) = (None, [0; 4]);
    if let Some(wanted) = wanted {
        dim = dim_of(wanted.kind).filter(|dim| extent.1.contains(dim));
        if dim.is_none() && wanted.kind != 0 {
            return bad("images of this type do not have what is asked for");
        }
        if wanted.mip_levels != 0 || wanted.samples != 0 {
            return bad("num_mip_levels and num_samples must be 0");
        }
        given = [wanted.width, wanted.height, wanted.depth, wanted.array_size];
    }
    out.write(most(context, extent, dim, (block, element), given))
}
