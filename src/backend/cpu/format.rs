//! Formats of images in software: which there are, how channels are stored, and which component each becomes.

use crate::backend::image::{ImageAccess, PixelFormat, Support};
use crate::backend::ImageDim;
use crate::cl;
use spirv_lowering::native::TexelStorage;

/// How a channel, or a packed pixel, is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum Channel {
    Unorm8,
    Unorm16,
    Snorm8,
    Snorm16,
    Signed8,
    Signed16,
    Signed32,
    Unsigned8,
    Unsigned16,
    Unsigned32,
    Half,
    Float,
    Srgb8,
    Packed565,
    Packed555,
    Packed101010,
    Packed1010102,
    /// Four pixels in five bytes, see `super::raw`.
    Raw10,
    /// Two pixels in three bytes.
    Raw12,
}

/// Instead of a channel: 0, 1.
pub const ZERO: u8 = 4;
/// See [`ZERO`].
pub const ONE: u8 = 5;

/// How pixels of a format are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Layout {
    /// Each channel.
    pub channel: Channel,
    /// How many are stored.
    pub channels: u8,
    /// For each component the channel that it is read from, [`ZERO`] or [`ONE`].
    pub components: [u8; 4],
    /// For each channel the component that is written to it.
    pub stored: [u8; 4],
}

impl Layout {
    /// Returns how the code of kernels accesses such pixels.
    pub fn storage(&self) -> TexelStorage {
        let bytes = match self.channel {
            Channel::Unorm8 | Channel::Signed8 | Channel::Unsigned8 => true,
            Channel::Float | Channel::Signed32 | Channel::Unsigned32 => false,
            _ => return TexelStorage::Called,
        };
        match (bytes, self.channels, self.components) {
            (true, 4, _) => TexelStorage::Bytes4,
            (true, 1, [0, ZERO, ZERO, ONE]) => TexelStorage::Byte,
            (false, 4, [0, 1, 2, 3]) => TexelStorage::Words4,
            (false, 1, [0, ZERO, ZERO, ONE]) => TexelStorage::Word,
            _ => TexelStorage::Called,
        }
    }
}

/// Returns the layout of a format; None: there are no images of it.
pub fn layout(format: PixelFormat) -> Option<Layout> {
    let channel = match format.data {
        cl::CL_UNORM_INT8 if format.is_srgb() => Channel::Srgb8,
        _ if format.is_srgb() => return None,
        cl::CL_UNORM_INT8 => Channel::Unorm8,
        cl::CL_UNORM_INT16 => Channel::Unorm16,
        cl::CL_SNORM_INT8 => Channel::Snorm8,
        cl::CL_SNORM_INT16 => Channel::Snorm16,
        cl::CL_SIGNED_INT8 => Channel::Signed8,
        cl::CL_SIGNED_INT16 => Channel::Signed16,
        cl::CL_SIGNED_INT32 => Channel::Signed32,
        cl::CL_UNSIGNED_INT8 => Channel::Unsigned8,
        cl::CL_UNSIGNED_INT16 => Channel::Unsigned16,
        cl::CL_UNSIGNED_INT32 => Channel::Unsigned32,
        cl::CL_HALF_FLOAT => Channel::Half,
        cl::CL_FLOAT => Channel::Float,
        cl::CL_UNORM_SHORT_565 => Channel::Packed565,
        cl::CL_UNORM_SHORT_555 => Channel::Packed555,
        cl::CL_UNORM_INT_101010 => Channel::Packed101010,
        cl::CL_UNORM_INT_101010_2 => Channel::Packed1010102,
        cl::CL_UNSIGNED_INT_RAW10_EXT => Channel::Raw10,
        cl::CL_UNSIGNED_INT_RAW12_EXT => Channel::Raw12,
        _ => return None,
    };
    let (packed, bytes, fraction) = (
        format.is_packed(),
        format.has_bytes(),
        format.has_fractions(),
    );
    let raw = format.block() > 1;
    let plain = !packed && !raw && channel != Channel::Packed1010102;
    let (channels, components, stored): (u8, [u8; 4], [u8; 4]) = match format.order {
        cl::CL_R if plain || raw => (1, [0, ZERO, ZERO, ONE], [0, 0, 0, 0]),
        cl::CL_DEPTH if matches!(channel, Channel::Unorm16 | Channel::Float) => {
            (1, [0, ZERO, ZERO, ONE], [0, 0, 0, 0])
        }
        cl::CL_A if plain => (1, [ZERO, ZERO, ZERO, 0], [3, 0, 0, 0]),
        cl::CL_INTENSITY if fraction => (1, [0, 0, 0, 0], [0, 0, 0, 0]),
        cl::CL_LUMINANCE if fraction => (1, [0, 0, 0, ONE], [0, 0, 0, 0]),
        cl::CL_RG if plain => (2, [0, 1, ZERO, ONE], [0, 1, 0, 0]),
        cl::CL_RA if plain => (2, [0, ZERO, ZERO, 1], [0, 3, 0, 0]),
        cl::CL_RGB if packed => (3, [0, 1, 2, ONE], [0, 1, 2, 0]),
        cl::CL_RGBA if !packed && !raw => (4, [0, 1, 2, 3], [0, 1, 2, 3]),
        cl::CL_sRGBA => (4, [0, 1, 2, 3], [0, 1, 2, 3]),
        cl::CL_sBGRA => (4, [2, 1, 0, 3], [2, 1, 0, 3]),
        cl::CL_BGRA if bytes => (4, [2, 1, 0, 3], [2, 1, 0, 3]),
        cl::CL_ARGB if bytes => (4, [1, 2, 3, 0], [3, 0, 1, 2]),
        cl::CL_ABGR if bytes => (4, [3, 2, 1, 0], [3, 2, 1, 0]),
        _ => return None,
    };
    Some(Layout {
        channel,
        channels,
        components,
        stored,
    })
}

/// Returns the accesses that kernels may make to images of a format and geometry.
fn access(format: PixelFormat, dim: ImageDim) -> ImageAccess {
    let depth = format.order == cl::CL_DEPTH;
    let flat = matches!(dim, ImageDim::D2 | ImageDim::D2Array);
    // Work-items that write pixels beside one another would write the same bytes. Sensors make planes of them, no volumes.
    let shared = format.block() > 1;
    if (depth && !flat)
        || (format.is_srgb() && dim == ImageDim::Buffer)
        || (shared && dim == ImageDim::D3)
    {
        return ImageAccess::default();
    }
    ImageAccess {
        read: true,
        write: !shared,
        read_write: !format.is_srgb() && !shared && !depth,
    }
}

/// Returns every format, the usual ones first.
pub fn all() -> Vec<Support> {
    PixelFormat::candidates()
        .filter(|&format| layout(format).is_some() && format.bytes() > 0)
        .map(|format| Support {
            format,
            dims: ImageDim::ALL.map(|dim| access(format, dim)),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks for the formats that section 5.3.1.2 of the specification requires of devices with
    /// images: for reading or writing, then for kernels that do both.
    #[test]
    fn required_formats_are_there() {
        let all = all();
        let access = |order, data, dim| {
            let format = PixelFormat { order, data };
            let found = all.iter().find(|support| support.format == format);
            found.map_or(ImageAccess::default(), |support| support.access(dim))
        };
        let plain = [
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
        ];
        for order in [cl::CL_R, cl::CL_RG, cl::CL_RGBA] {
            for data in plain {
                for dim in ImageDim::ALL {
                    let can = access(order, data, dim);
                    assert!(
                        can.read && can.write && can.read_write,
                        "{order:#x} {data:#x}"
                    );
                }
            }
        }
        for data in [cl::CL_UNORM_INT16, cl::CL_FLOAT] {
            let can = access(cl::CL_DEPTH, data, ImageDim::D2);
            assert!(can.read && can.write && !can.read_write);
            assert!(!access(cl::CL_DEPTH, data, ImageDim::D3).read);
        }
        let can = access(cl::CL_sRGBA, cl::CL_UNORM_INT8, ImageDim::D3);
        assert!(can.read && can.write && !can.read_write);
        let can = access(cl::CL_BGRA, cl::CL_UNORM_INT8, ImageDim::D2);
        assert!(can.read && can.write);
    }

    /// Each channel is read as the component that is written to it, and a pixel has as many bytes as its channels.
    #[test]
    fn layouts_agree_with_themselves() {
        for Support { format, .. } in all() {
            let layout = layout(format).expect("a layout");
            let channels = usize::from(layout.channels);
            assert_eq!(channels, format.channels(), "{format:?}");
            for channel in 0..channels {
                let component = usize::from(layout.stored[channel]);
                let read = usize::from(layout.components[component]);
                assert_eq!(read, channel, "{format:?}");
            }
            let alpha = layout.components[3] != ONE;
            assert_eq!(alpha, format.has_alpha(), "{format:?}");
        }
        let wrong = |order, data| layout(PixelFormat { order, data }).is_none();
        assert!(wrong(cl::CL_RGB, cl::CL_UNORM_INT8) && wrong(cl::CL_RGBA, cl::CL_UNORM_SHORT_565));
        assert!(wrong(cl::CL_BGRA, cl::CL_FLOAT) && wrong(cl::CL_INTENSITY, cl::CL_SIGNED_INT8));
        assert!(wrong(cl::CL_sRGBA, cl::CL_FLOAT) && wrong(0, cl::CL_FLOAT));
    }
}
