//! Images and samplers of a device: what they are made from, what kernels see of them, and the regions of transfers.
//!
//! An [`DeviceImage`] is either texels of its own, in an order that only the device knows, or a view of memory as texels
//! (`ImageDim::Buffer`). Coordinates are those of OpenCL: the layer of an array is the coordinate after the pixel's.

use crate::cl::{self, cl_channel_order, cl_channel_type};
pub use spirv_lowering::interface::ImageDim;
use std::any::Any;
use std::sync::Arc;

/// Channel order and channel data type of a pixel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PixelFormat {
    /// CL_R, CL_RGBA, ...
    pub order: cl_channel_order,
    /// CL_UNORM_INT8, CL_FLOAT, ...
    pub data: cl_channel_type,
}

impl PixelFormat {
    /// Returns the number of stored channels, or 0 if the order is not one of the specification.
    pub fn channels(self) -> usize {
        match self.order {
            cl::CL_R
            | cl::CL_A
            | cl::CL_INTENSITY
            | cl::CL_LUMINANCE
            | cl::CL_DEPTH
            | cl::CL_Rx => 1,
            cl::CL_RG | cl::CL_RA | cl::CL_RGx => 2,
            cl::CL_RGB | cl::CL_RGBx | cl::CL_sRGB => 3,
            cl::CL_RGBA
            | cl::CL_BGRA
            | cl::CL_ARGB
            | cl::CL_ABGR
            | cl::CL_sRGBA
            | cl::CL_sBGRA
            | cl::CL_sRGBx => 4,
            _ => 0,
        }
    }

    /// Returns the number of pixels of a block. A block is one pixel, except where several share
    /// bytes: those of RAW10 and RAW12 (cl_ext_image_raw10_raw12). Images are whole blocks wide,
    /// and transfers move nothing smaller.
    pub fn block(self) -> u32 {
        match self.data {
            cl::CL_UNSIGNED_INT_RAW10_EXT => 4,
            cl::CL_UNSIGNED_INT_RAW12_EXT => 2,
            _ => 1,
        }
    }

    /// Returns the bytes of a block, 0 where the format is none of the specification.
    pub fn bytes(self) -> usize {
        let channel = match self.data {
            cl::CL_UNSIGNED_INT_RAW10_EXT if self.order == cl::CL_R => return 5,
            cl::CL_UNSIGNED_INT_RAW12_EXT if self.order == cl::CL_R => return 3,
            cl::CL_UNORM_SHORT_565 | cl::CL_UNORM_SHORT_555 => return 2,
            cl::CL_UNORM_INT_101010 | cl::CL_UNORM_INT_101010_2 => return 4,
            cl::CL_SNORM_INT8 | cl::CL_UNORM_INT8 | cl::CL_SIGNED_INT8 | cl::CL_UNSIGNED_INT8 => 1,
            cl::CL_SNORM_INT16
            | cl::CL_UNORM_INT16
            | cl::CL_SIGNED_INT16
            | cl::CL_UNSIGNED_INT16
            | cl::CL_HALF_FLOAT => 2,
            cl::CL_SIGNED_INT32 | cl::CL_UNSIGNED_INT32 | cl::CL_FLOAT => 4,
            _ => 0,
        };
        channel * self.channels()
    }

    /// Returns CL_IMAGE_ELEMENT_SIZE. For pixels that share bytes it counts those that contain bits
    /// of a pixel, as the conformance tests expect.
    pub fn element_size(self) -> usize {
        if self.block() > 1 {
            2
        } else {
            self.bytes()
        }
    }

    /// Returns true if a pixel of three channels is one number.
    pub fn is_packed(self) -> bool {
        matches!(
            self.data,
            cl::CL_UNORM_SHORT_565 | cl::CL_UNORM_SHORT_555 | cl::CL_UNORM_INT_101010
        )
    }

    /// Returns true if channels are bytes.
    pub fn has_bytes(self) -> bool {
        matches!(
            self.data,
            cl::CL_UNORM_INT8 | cl::CL_SNORM_INT8 | cl::CL_SIGNED_INT8 | cl::CL_UNSIGNED_INT8
        )
    }

    /// Returns true if channels are stored separately and read as floating-point numbers.
    pub fn has_fractions(self) -> bool {
        matches!(
            self.data,
            cl::CL_UNORM_INT8
                | cl::CL_UNORM_INT16
                | cl::CL_SNORM_INT8
                | cl::CL_SNORM_INT16
                | cl::CL_HALF_FLOAT
                | cl::CL_FLOAT
        )
    }

    /// Returns every order with every type that devices of ours may have, the usual ones first;
    /// many of them are no formats. Not CL_Rx, CL_RGx and CL_RGBx: the specification and its
    /// conformance tests differ in their border colour.
    pub fn candidates() -> impl Iterator<Item = Self> {
        const ORDERS: [cl_channel_order; 14] = [
            cl::CL_RGBA,
            cl::CL_R,
            cl::CL_RG,
            cl::CL_BGRA,
            cl::CL_sRGBA,
            cl::CL_DEPTH,
            cl::CL_sBGRA,
            cl::CL_A,
            cl::CL_RA,
            cl::CL_RGB,
            cl::CL_ARGB,
            cl::CL_ABGR,
            cl::CL_INTENSITY,
            cl::CL_LUMINANCE,
        ];
        const TYPES: [cl_channel_type; 18] = [
            cl::CL_UNORM_INT8,
            cl::CL_UNORM_INT16,
            cl::CL_SNORM_INT8,
            cl::CL_SNORM_INT16,
            cl::CL_SIGNED_INT8,
            cl::CL_SIGNED_INT16,
            cl::CL_SIGNED_INT32,
            cl::CL_UNSIGNED_INT8,
            cl::CL_UNSIGNED_INT16,
            cl::CL_UNSIGNED_INT32,
            cl::CL_HALF_FLOAT,
            cl::CL_FLOAT,
            cl::CL_UNORM_SHORT_565,
            cl::CL_UNORM_SHORT_555,
            cl::CL_UNORM_INT_101010,
            cl::CL_UNORM_INT_101010_2,
            cl::CL_UNSIGNED_INT_RAW10_EXT,
            cl::CL_UNSIGNED_INT_RAW12_EXT,
        ];
        let of = |order| TYPES.into_iter().map(move |data| Self { order, data });
        ORDERS.into_iter().flat_map(of)
    }

    /// Returns the format of unsigned integers that has pixels of the same size, by which kernels access their bits, or
    /// `None` where pixels share bytes.
    pub fn raw(self) -> Option<Self> {
        let (order, data) = match self.bytes() {
            1 => (cl::CL_R, cl::CL_UNSIGNED_INT8),
            2 => (cl::CL_R, cl::CL_UNSIGNED_INT16),
            4 => (cl::CL_R, cl::CL_UNSIGNED_INT32),
            8 => (cl::CL_RG, cl::CL_UNSIGNED_INT32),
            16 => (cl::CL_RGBA, cl::CL_UNSIGNED_INT32),
            _ => return None,
        };
        Some(Self { order, data })
    }

    /// Returns true if pixels beyond the edge are transparent, where a sampler has a border.
    pub fn has_alpha(self) -> bool {
        matches!(
            self.order,
            cl::CL_A
                | cl::CL_INTENSITY
                | cl::CL_Rx
                | cl::CL_RA
                | cl::CL_RGx
                | cl::CL_RGBx
                | cl::CL_sRGBx
                | cl::CL_ARGB
                | cl::CL_ABGR
                | cl::CL_BGRA
                | cl::CL_RGBA
                | cl::CL_sRGBA
                | cl::CL_sBGRA
        )
    }

    /// Returns true if channels are stored with the sRGB transfer function.
    pub fn is_srgb(self) -> bool {
        matches!(
            self.order,
            cl::CL_sRGB | cl::CL_sRGBA | cl::CL_sBGRA | cl::CL_sRGBx
        )
    }
}

/// The accesses that kernels may make to images of a format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ImageAccess {
    /// Read them, with samplers too.
    pub read: bool,
    /// Write them.
    pub write: bool,
    /// Read and write them in one kernel.
    pub read_write: bool,
}

/// A format that the device has.
#[derive(Debug, Clone, Copy)]
pub struct Support {
    /// The format.
    pub format: PixelFormat,
    /// For each of [`ImageDim::ALL`].
    pub dims: [ImageAccess; 6],
}

impl Support {
    /// Returns the accesses to images of one geometry.
    pub fn access(&self, dim: ImageDim) -> ImageAccess {
        let place = ImageDim::ALL.iter().position(|known| *known == dim);
        place
            .and_then(|place| self.dims.get(place))
            .copied()
            .unwrap_or_default()
    }
}

/// Images that a kernel may read on any device, however many it could.
pub const MOST_SAMPLED: u32 = 256;
/// Images that a kernel may write.
pub const MOST_STORAGE: u32 = 128;
/// Samplers that a kernel may use.
pub const MOST_SAMPLERS: u32 = 64;

/// Limits of images, zero where there are none.
#[derive(Debug, Clone, Copy, Default)]
#[allow(missing_docs)]
pub struct ImageLimits {
    pub max_1d: u32,
    pub max_2d: u32,
    pub max_3d: u32,
    pub max_layers: u32,
    /// Pixels of an image over a buffer.
    pub max_texels: u32,
    /// Images a kernel may read.
    pub max_sampled: u32,
    /// Images a kernel may write.
    pub max_storage: u32,
    pub max_samplers: u32,
    /// Alignment in bytes of an image over a buffer.
    pub buffer_align: u32,
    /// Storage images need no format in the shader to be written; to be read.
    pub write_any: bool,
    #[allow(missing_docs)]
    pub read_any: bool,
    /// Channels of 5 and 6 bits are read as OpenCL wants them (within half a step of 16 bits).
    pub exact_short: bool,
    /// Pixels that share bytes can be read: RAW10 and RAW12.
    pub raw: bool,
    /// Kernels can write images of sRGB formats.
    pub srgb_writes: bool,
}

impl ImageLimits {
    /// Returns true if all formats that the full profile requires of a device with images are
    /// supported.
    pub fn full_profile(&self) -> bool {
        self.max_2d.min(self.max_1d) >= 16384
            && self.max_3d >= 2048
            && self.max_layers >= 2048
            && self.max_texels >= 65536
            && self.max_sampled >= 128
            && self.max_storage >= 64
            && self.max_samplers >= 16
            && self.write_any
    }
}

/// The description of an image to be created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct ImageDesc {
    pub dim: ImageDim,
    pub format: PixelFormat,
    /// In blocks ([`PixelFormat::block`]), as the first coordinate of regions.
    pub width: u32,
    pub height: u32,
    pub depth: u32,
    pub layers: u32,
}

impl ImageDesc {
    /// Returns the number of pixels of a row, which is the width for applications and kernels.
    pub fn pixels(&self) -> u32 {
        self.width.saturating_mul(self.format.block())
    }
}

/// Texels that the device can address.
pub trait DeviceImage: Send + Sync {
    /// Returns the description of the image.
    fn desc(&self) -> &ImageDesc;
    /// Returns the image as `Any`, for its back end to downcast.
    fn as_any(&self) -> &dyn Any;
}

/// A box of an image, in OpenCL's coordinates, the first of them in blocks. The size counts layers too and has no zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageRegion {
    /// First block.
    pub origin: [u32; 3],
    /// Blocks.
    pub size: [u32; 3],
}

impl ImageRegion {
    /// Returns true if the boxes have a block in common.
    pub fn overlaps(&self, other: &Self) -> bool {
        (0..3).all(|axis| {
            let (a, b) = (self.origin[axis], other.origin[axis]);
            a < b + other.size[axis] && b < a + self.size[axis]
        })
    }
}

/// A resource at a binding of descriptor set 0.
#[derive(Clone)]
pub enum Resource {
    /// To be read through a sampled image.
    Sampled(Arc<dyn DeviceImage>),
    /// To be read and written as a storage image.
    Storage(Arc<dyn DeviceImage>),
    /// A sampler with this property word (`spirv_lowering::interface::sampler`).
    Sampler(u32),
}

/// A resource in its place.
#[derive(Clone)]
pub struct Binding {
    /// Binding number in set 0.
    pub binding: u32,
    /// The resource.
    pub resource: Resource,
    /// The kernel may write it.
    pub write: bool,
}
