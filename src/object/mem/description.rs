//! The description of an image that is to be made: cl_image_format and cl_image_desc against the rules of the specification (section 5.3.1,
//! "Image Format Descriptor" and "Image Descriptor") and what the devices have.

use crate::backend::image::{ImageDim, ImageLimits, Support};
use crate::backend::{ImageDesc, PixelFormat};
use crate::cl::{self, cl_image_format, cl_mem_flags, cl_mem_object_type, cl_uint};
use crate::error::{ensure, err, ClError, ClResult};
use crate::object::context::Context;
use crate::object::device::Device;

/// cl_image_desc, as far as it is used.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub struct Description {
    pub kind: cl_mem_object_type,
    pub width: usize,
    pub height: usize,
    pub depth: usize,
    pub array_size: usize,
    pub row_pitch: usize,
    pub slice_pitch: usize,
    pub mip_levels: cl_uint,
    pub samples: cl_uint,
}

/// The geometries that have a height.
pub(super) const WITH_HEIGHT: [ImageDim; 3] = [ImageDim::D2, ImageDim::D2Array, ImageDim::D3];
/// The geometries that have layers.
pub(super) const ARRAYS: [ImageDim; 2] = [ImageDim::D1Array, ImageDim::D2Array];

/// Returns the geometry of a memory object type.
pub fn dim_of(kind: cl_mem_object_type) -> Option<ImageDim> {
    Some(match kind {
        cl::CL_MEM_OBJECT_IMAGE1D => ImageDim::D1,
        cl::CL_MEM_OBJECT_IMAGE1D_ARRAY => ImageDim::D1Array,
        cl::CL_MEM_OBJECT_IMAGE1D_BUFFER => ImageDim::Buffer,
        cl::CL_MEM_OBJECT_IMAGE2D => ImageDim::D2,
        cl::CL_MEM_OBJECT_IMAGE2D_ARRAY => ImageDim::D2Array,
        cl::CL_MEM_OBJECT_IMAGE3D => ImageDim::D3,
        _ => return None,
    })
}

/// Returns true if a pixel format with this support may be that of images of this geometry with
/// these flags.
pub(super) fn allows(support: &Support, dim: ImageDim, flags: cl_mem_flags) -> bool {
    let access = support.access(dim);
    // Pixels that share bytes are made with CL_MEM_READ_ONLY alone.
    if flags & cl::CL_MEM_IMMUTABLE_EXT != 0 && support.format.block() > 1 {
        return false;
    }
    let needs_both = flags & cl::CL_MEM_KERNEL_READ_AND_WRITE != 0;
    if needs_both && !access.read_write {
        return false;
    }
    if flags & (cl::CL_MEM_READ_ONLY | cl::CL_MEM_IMMUTABLE_EXT) != 0 {
        access.read
    } else {
        // Read-write means: by some kernels, and written by others.
        access.read && access.write
    }
}

/// Returns true if a device has images of this format and geometry with these flags.
pub(super) fn supports(device: &Device, desc: &ImageDesc, flags: cl_mem_flags) -> bool {
    let found = device
        .backend
        .image_formats()
        .iter()
        .find(|support| support.format == desc.format);
    device.features.images && found.is_some_and(|found| allows(found, desc.dim, flags))
}

/// Returns the largest extents of a geometry: width, height, depth and layers; 1 for those that it
/// does not have.
pub(super) fn largest(limits: &ImageLimits, dim: ImageDim) -> [u32; 4] {
    let line = limits.max_2d.min(limits.max_1d);
    match dim {
        ImageDim::D1 => [line, 1, 1, 1],
        ImageDim::D1Array => [line, 1, 1, limits.max_layers],
        ImageDim::Buffer => [limits.max_texels, 1, 1, 1],
        ImageDim::D2 => [limits.max_2d, limits.max_2d, 1, 1],
        ImageDim::D2Array => [limits.max_2d, limits.max_2d, 1, limits.max_layers],
        ImageDim::D3 => [limits.max_3d, limits.max_3d, limits.max_3d, 1],
    }
}

/// Returns true if a device has images as large as this.
pub(super) fn fits(device: &Device, desc: &ImageDesc) -> bool {
    let extents = [desc.pixels(), desc.height, desc.depth, desc.layers];
    let blocks = [desc.width, desc.height, desc.depth, desc.layers];
    let limits = largest(&device.caps().images, desc.dim);
    let within = extents.iter().zip(&limits).all(|(n, most)| n <= most);
    let bytes = blocks
        .iter()
        .try_fold(desc.format.bytes() as u64, |all, n| {
            all.checked_mul(u64::from(*n))
        });
    device.features.images
        && within
        && bytes.is_some_and(|bytes| bytes <= device.caps().max_alloc_size)
}

/// Returns CL_INVALID_IMAGE_DESCRIPTOR.
pub(super) fn bad<T>(what: &'static str) -> ClResult<T> {
    err(cl::CL_INVALID_IMAGE_DESCRIPTOR, what)
}

/// Checks a format against the tables of the specification.
pub(super) fn check_format(format: &cl_image_format) -> ClResult<PixelFormat> {
    let pixel = PixelFormat {
        order: format.image_channel_order,
        data: format.image_channel_data_type,
    };
    let (packed, bytes, fraction) = (pixel.is_packed(), pixel.has_bytes(), pixel.has_fractions());
    let allowed = match pixel.order {
        cl::CL_INTENSITY | cl::CL_LUMINANCE => fraction,
        cl::CL_RGB | cl::CL_RGBx => packed,
        cl::CL_ARGB | cl::CL_BGRA | cl::CL_ABGR => bytes,
        cl::CL_DEPTH => matches!(pixel.data, cl::CL_UNORM_INT16 | cl::CL_FLOAT),
        cl::CL_sRGB | cl::CL_sRGBA | cl::CL_sBGRA | cl::CL_sRGBx => pixel.data == cl::CL_UNORM_INT8,
        cl::CL_R if pixel.block() > 1 => true,
        _ => !packed && (pixel.data != cl::CL_UNORM_INT_101010_2 || pixel.order == cl::CL_RGBA),
    };
    ensure!(
        pixel.bytes() > 0 && allowed,
        cl::CL_INVALID_IMAGE_FORMAT_DESCRIPTOR,
        "channel order {:#x} with type {:#x}",
        pixel.order,
        pixel.data
    );
    Ok(pixel)
}

/// Returns the extents in the specification's coordinates, the first in blocks.
pub(super) fn extent(desc: &ImageDesc) -> [u32; 3] {
    match desc.dim {
        ImageDim::D1 | ImageDim::Buffer => [desc.width, 1, 1],
        ImageDim::D1Array => [desc.width, desc.layers, 1],
        ImageDim::D2 => [desc.width, desc.height, 1],
        ImageDim::D2Array => [desc.width, desc.height, desc.layers],
        ImageDim::D3 => [desc.width, desc.height, desc.depth],
    }
}

/// Returns the bytes from one second, and one third, coordinate to the next, with these pitches.
pub(super) fn steps(dim: ImageDim, row_pitch: usize, slice_pitch: usize) -> (usize, usize) {
    if dim == ImageDim::D1Array {
        (slice_pitch, slice_pitch)
    } else {
        (row_pitch, slice_pitch)
    }
}

/// The source of the texels of an image that is to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// Nothing: they are undefined.
    Nothing,
    /// `host_ptr`.
    Host,
    /// A buffer (cl_khr_image2d_from_buffer, cl_ext_image_from_buffer; 1D image buffers).
    Buffer,
    /// Another image.
    Image,
    /// Memory of others, with rows one after the other.
    Linear,
}

/// Extents and pitches that were checked.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout {
    pub desc: ImageDesc,
    /// Bytes from row to row in host memory or the buffer.
    pub row_pitch: usize,
    /// Bytes from slice to slice or layer to layer; 0 where there are none.
    pub slice_pitch: usize,
}

impl Layout {
    /// Checks extents and pitches as far as they do not depend on a device.
    pub fn new(format: PixelFormat, wanted: &Description, source: Source) -> ClResult<Self> {
        let Some(dim) = dim_of(wanted.kind) else {
            return bad("image_type is no image type");
        };
        if wanted.mip_levels != 0 || wanted.samples != 0 {
            return bad("num_mip_levels and num_samples must be 0");
        }
        match (dim, source) {
            (ImageDim::Buffer, Source::Buffer) => {}
            (ImageDim::Buffer, _) => return bad("a 1D image buffer is made from a buffer"),
            (ImageDim::D2, Source::Image) => {}
            (_, Source::Image) => return bad("only a 2D image is made from an image"),
            _ => {}
        }
        let mut desc = ImageDesc {
            dim,
            format,
            width: 1,
            height: 1,
            depth: 1,
            layers: 1,
        };
        let size = |value: usize| -> ClResult<u32> {
            ensure!(value != 0, cl::CL_INVALID_IMAGE_SIZE, "an extent is 0");
            u32::try_from(value)
                .map_err(|_| ClError::new(cl::CL_INVALID_IMAGE_SIZE, "an extent is too large"))
        };
        let block = format.block();
        // cl_ext_image_raw10_raw12: "The image width must be a multiple of 4" with RAW10, of 2 with RAW12.
        if !size(wanted.width)?.is_multiple_of(block) {
            return bad("image_width is no multiple of the pixels that share bytes");
        }
        desc.width = size(wanted.width / block as usize)?;
        if WITH_HEIGHT.contains(&dim) {
            desc.height = size(wanted.height)?;
        }
        if dim == ImageDim::D3 {
            desc.depth = size(wanted.depth)?;
        }
        if ARRAYS.contains(&dim) {
            desc.layers = size(wanted.array_size)?;
        }
        let (row_pitch, slice_pitch) = pitches(&desc, wanted, source)?;
        Ok(Self {
            desc,
            row_pitch,
            slice_pitch,
        })
    }

    /// Returns the bytes from the first texel to the end of the last: the last row need not be as
    /// long as the pitch. None: more than can be counted.
    pub fn span(&self) -> Option<usize> {
        let [width, height, depth] = extent(&self.desc).map(|n| n as usize);
        let (y, z) = steps(self.desc.dim, self.row_pitch, self.slice_pitch);
        let last_row = (height - 1).checked_mul(y)?;
        let last_slice = (depth - 1).checked_mul(z)?;
        width
            .checked_mul(self.desc.format.bytes())?
            .checked_add(last_row)?
            .checked_add(last_slice)
    }
}

/// Returns the pitches, with 0 filled in.
fn pitches(desc: &ImageDesc, wanted: &Description, source: Source) -> ClResult<(usize, usize)> {
    let element = desc.format.bytes();
    let tight = (desc.width as usize).saturating_mul(element);
    if desc.dim == ImageDim::Buffer {
        return Ok((tight, 0));
    }
    let from_buffer = source == Source::Buffer;
    let pitched = from_buffer || matches!(source, Source::Host | Source::Linear);
    if !pitched && (wanted.row_pitch != 0 || wanted.slice_pitch != 0) {
        return bad("pitches without host_ptr");
    }
    // Of images made from buffers the alignments are requirements that can be asked for, with an error of their own.
    let misaligned = |what| {
        let code = match from_buffer {
            true => cl::CL_INVALID_IMAGE_FORMAT_DESCRIPTOR,
            false => cl::CL_INVALID_IMAGE_DESCRIPTOR,
        };
        err(code, what)
    };
    let mut row_pitch = tight;
    if wanted.row_pitch != 0 {
        if wanted.row_pitch < tight {
            return bad("image_row_pitch is too small");
        }
        // Pixels that share bytes have no size that a pitch could be a multiple of.
        if desc.format.block() == 1 && !wanted.row_pitch.is_multiple_of(element) {
            return misaligned("image_row_pitch is no multiple of the pixel size");
        }
        row_pitch = wanted.row_pitch;
    }
    let rows = match desc.dim {
        ImageDim::D2Array | ImageDim::D3 => wanted.height,
        ImageDim::D1Array => 1,
        _ => return Ok((row_pitch, 0)),
    };
    let mut slice_pitch = row_pitch.saturating_mul(rows);
    if wanted.slice_pitch != 0 {
        if wanted.slice_pitch < slice_pitch {
            return bad("image_slice_pitch is too small");
        }
        if !wanted.slice_pitch.is_multiple_of(row_pitch) {
            return misaligned("image_slice_pitch is no multiple of the row pitch");
        }
        slice_pitch = wanted.slice_pitch;
    }
    Ok((row_pitch, slice_pitch))
}

/// Fails with CL_INVALID_OPERATION unless a device of the context supports images.
pub fn check_images(context: &Context) -> ClResult {
    ensure!(
        context.devices.iter().any(|device| device.features.images),
        cl::CL_INVALID_OPERATION,
        "no device of the context supports images"
    );
    Ok(())
}

/// Checks that a device of the context supports the image.
pub(super) fn check_devices(context: &Context, desc: &ImageDesc, flags: cl_mem_flags) -> ClResult {
    ensure!(
        context.devices.iter().any(|device| fits(device, desc)),
        cl::CL_INVALID_IMAGE_SIZE,
        "larger than every device of the context allows"
    );
    ensure!(
        context
            .devices
            .iter()
            .any(|device| supports(device, desc, flags)),
        cl::CL_IMAGE_FORMAT_NOT_SUPPORTED,
        "no device of the context has this format for such an image"
    );
    Ok(())
}
