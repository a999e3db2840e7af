//! Memory of the host through which contents go from OpenGL to OpenCL and back, and the formats that both have.

use super::functions::{gl, Enum};
use super::{Error, Result};
use crate::backend::image::PixelFormat;
use crate::cl;
use std::alloc::{alloc_zeroed, dealloc, Layout};
use std::ptr::NonNull;

/// Bytes of the host that commands of both APIs read and write, one after the other as their events say.
pub struct HostBytes {
    pointer: NonNull<u8>,
    layout: Layout,
}

// SAFETY: the memory is accessed through its address alone, by those who keep an order.
unsafe impl Send for HostBytes {}
// SAFETY: as above.
unsafe impl Sync for HostBytes {}

impl HostBytes {
    /// Allocates so many bytes, all 0.
    pub fn new(size: usize) -> Result<Self> {
        let layout = Layout::from_size_align(size.max(1), 64).map_err(|_| Error::OutOfMemory)?;
        // SAFETY: the layout has a size.
        let pointer = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or(Error::OutOfMemory)?;
        Ok(Self { pointer, layout })
    }

    /// Returns the address of the first.
    pub fn address(&self) -> usize {
        self.pointer.as_ptr() as usize
    }

    /// Returns the number of bytes.
    pub fn size(&self) -> usize {
        self.layout.size()
    }
}

impl Drop for HostBytes {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout.
        unsafe { dealloc(self.pointer.as_ptr(), self.layout) };
    }
}

/// A format: the internal one, what OpenCL calls it, and format and type of a transfer whose bytes are those of OpenCL's pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Format {
    /// The internal format.
    pub internal: Enum,
    /// The format in OpenCL.
    pub pixel: PixelFormat,
    /// The channel data type of CL_DEPTH_STENCIL as which OpenCL knows it: its pixels are the depths.
    pub stencil: Option<cl::cl_channel_type>,
    /// The format of transfers.
    pub format: Enum,
    /// The type of transfers.
    pub data: Enum,
}

/// The table "OpenGL Internal Formats and Corresponding OpenCL Internal Formats", as far as there are the formats.
#[rustfmt::skip]
const FORMATS: &[(Enum, cl::cl_channel_order, cl::cl_channel_type, Enum, Enum)] = &[
    (gl::RGBA8, cl::CL_RGBA, cl::CL_UNORM_INT8, gl::RGBA, gl::UNSIGNED_BYTE),
    (gl::SRGB8_ALPHA8, cl::CL_sRGBA, cl::CL_UNORM_INT8, gl::RGBA, gl::UNSIGNED_BYTE),
    (gl::BGRA8_EXT, cl::CL_BGRA, cl::CL_UNORM_INT8, gl::BGRA, gl::UNSIGNED_BYTE),
    (gl::RGBA8I, cl::CL_RGBA, cl::CL_SIGNED_INT8, gl::RGBA_INTEGER, gl::BYTE),
    (gl::RGBA16I, cl::CL_RGBA, cl::CL_SIGNED_INT16, gl::RGBA_INTEGER, gl::SHORT),
    (gl::RGBA32I, cl::CL_RGBA, cl::CL_SIGNED_INT32, gl::RGBA_INTEGER, gl::INT),
    (gl::RGBA8UI, cl::CL_RGBA, cl::CL_UNSIGNED_INT8, gl::RGBA_INTEGER, gl::UNSIGNED_BYTE),
    (gl::RGBA16UI, cl::CL_RGBA, cl::CL_UNSIGNED_INT16, gl::RGBA_INTEGER, gl::UNSIGNED_SHORT),
    (gl::RGBA32UI, cl::CL_RGBA, cl::CL_UNSIGNED_INT32, gl::RGBA_INTEGER, gl::UNSIGNED_INT),
    (gl::RGBA8_SNORM, cl::CL_RGBA, cl::CL_SNORM_INT8, gl::RGBA, gl::BYTE),
    (gl::RGBA16, cl::CL_RGBA, cl::CL_UNORM_INT16, gl::RGBA, gl::UNSIGNED_SHORT),
    (gl::RGBA16_SNORM, cl::CL_RGBA, cl::CL_SNORM_INT16, gl::RGBA, gl::SHORT),
    (gl::RGBA16F, cl::CL_RGBA, cl::CL_HALF_FLOAT, gl::RGBA, gl::HALF_FLOAT),
    (gl::RGBA32F, cl::CL_RGBA, cl::CL_FLOAT, gl::RGBA, gl::FLOAT),
    (gl::R8, cl::CL_R, cl::CL_UNORM_INT8, gl::RED, gl::UNSIGNED_BYTE),
    (gl::R8_SNORM, cl::CL_R, cl::CL_SNORM_INT8, gl::RED, gl::BYTE),
    (gl::R16, cl::CL_R, cl::CL_UNORM_INT16, gl::RED, gl::UNSIGNED_SHORT),
    (gl::R16_SNORM, cl::CL_R, cl::CL_SNORM_INT16, gl::RED, gl::SHORT),
    (gl::R16F, cl::CL_R, cl::CL_HALF_FLOAT, gl::RED, gl::HALF_FLOAT),
    (gl::R32F, cl::CL_R, cl::CL_FLOAT, gl::RED, gl::FLOAT),
    (gl::R8I, cl::CL_R, cl::CL_SIGNED_INT8, gl::RED_INTEGER, gl::BYTE),
    (gl::R16I, cl::CL_R, cl::CL_SIGNED_INT16, gl::RED_INTEGER, gl::SHORT),
    (gl::R32I, cl::CL_R, cl::CL_SIGNED_INT32, gl::RED_INTEGER, gl::INT),
    (gl::R8UI, cl::CL_R, cl::CL_UNSIGNED_INT8, gl::RED_INTEGER, gl::UNSIGNED_BYTE),
    (gl::R16UI, cl::CL_R, cl::CL_UNSIGNED_INT16, gl::RED_INTEGER, gl::UNSIGNED_SHORT),
    (gl::R32UI, cl::CL_R, cl::CL_UNSIGNED_INT32, gl::RED_INTEGER, gl::UNSIGNED_INT),
    (gl::RG8, cl::CL_RG, cl::CL_UNORM_INT8, gl::RG, gl::UNSIGNED_BYTE),
    (gl::RG8_SNORM, cl::CL_RG, cl::CL_SNORM_INT8, gl::RG, gl::BYTE),
    (gl::RG16, cl::CL_RG, cl::CL_UNORM_INT16, gl::RG, gl::UNSIGNED_SHORT),
    (gl::RG16_SNORM, cl::CL_RG, cl::CL_SNORM_INT16, gl::RG, gl::SHORT),
    (gl::RG16F, cl::CL_RG, cl::CL_HALF_FLOAT, gl::RG, gl::HALF_FLOAT),
    (gl::RG32F, cl::CL_RG, cl::CL_FLOAT, gl::RG, gl::FLOAT),
    (gl::RG8I, cl::CL_RG, cl::CL_SIGNED_INT8, gl::RG_INTEGER, gl::BYTE),
    (gl::RG16I, cl::CL_RG, cl::CL_SIGNED_INT16, gl::RG_INTEGER, gl::SHORT),
    (gl::RG32I, cl::CL_RG, cl::CL_SIGNED_INT32, gl::RG_INTEGER, gl::INT),
    (gl::RG8UI, cl::CL_RG, cl::CL_UNSIGNED_INT8, gl::RG_INTEGER, gl::UNSIGNED_BYTE),
    (gl::RG16UI, cl::CL_RG, cl::CL_UNSIGNED_INT16, gl::RG_INTEGER, gl::UNSIGNED_SHORT),
    (gl::RG32UI, cl::CL_RG, cl::CL_UNSIGNED_INT32, gl::RG_INTEGER, gl::UNSIGNED_INT),
    (gl::DEPTH_COMPONENT32F, cl::CL_DEPTH, cl::CL_FLOAT, gl::DEPTH_COMPONENT, gl::FLOAT),
    (gl::DEPTH_COMPONENT16, cl::CL_DEPTH, cl::CL_UNORM_INT16, gl::DEPTH_COMPONENT, gl::UNSIGNED_SHORT),
];

impl Format {
    /// Returns the format of an internal format. One without sizes, with four channels of 8 bits, is RGBA8.
    pub fn of(internal: Enum, red: i32, alpha: i32) -> Result<Self> {
        let sized = match internal {
            gl::RGBA if red == 8 && alpha == 8 => gl::RGBA8,
            gl::BGRA if red == 8 && alpha == 8 => gl::BGRA8_EXT,
            sized => sized,
        };
        let (stencil, row) = match sized {
            gl::DEPTH24_STENCIL8 => (Some(cl::CL_UNORM_INT24), gl::DEPTH_COMPONENT32F),
            gl::DEPTH32F_STENCIL8 => (Some(cl::CL_FLOAT), gl::DEPTH_COMPONENT32F),
            sized => (None, sized),
        };
        let row = FORMATS.iter().find(|(known, ..)| *known == row);
        let &(_, order, channel, format, data) = row.ok_or(Error::NoFormat(internal))?;
        Ok(Self {
            internal: sized,
            pixel: PixelFormat {
                order,
                data: channel,
            },
            stencil,
            format,
            data,
        })
    }

    /// Returns true if it has a depth and no colour.
    pub fn is_depth(self) -> bool {
        self.format == gl::DEPTH_COMPONENT
    }
}
