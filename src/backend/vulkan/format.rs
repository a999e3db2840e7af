//! Formats of images: which VkFormat stores which channel order and type, with which swizzle it is read, and what of
//! that the device can do.
//!
//! Orders that Vulkan lacks are stored as the order it has with as many channels, and read through a swizzle. Storage
//! images and texel buffers have no swizzle, so such formats are read-only, and not for buffers. The orders with an `x`,
//! all optional, are not offered: by the specification their border is transparent, by the conformance tests opaque.

use super::adapter::Adapter;
use crate::backend::image::{ImageAccess, ImageDim, PixelFormat, Support};
use crate::cl;
use ash::vk;

/// How pixels of a format lie in Vulkan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stored {
    /// The format of views.
    pub view: vk::Format,
    /// The format of the image: another than `view` where images of both may share texels.
    pub image: vk::Format,
    /// How channels are read.
    pub swizzle: [vk::ComponentSwizzle; 4],
}

impl Stored {
    /// Returns true if the format has the channels in Vulkan's order.
    pub fn is_plain(&self) -> bool {
        self.swizzle == PLAIN
    }

    /// Returns the swizzle as Vulkan wants it.
    pub fn mapping(&self) -> vk::ComponentMapping {
        let [r, g, b, a] = self.swizzle;
        vk::ComponentMapping { r, g, b, a }
    }
}

use vk::ComponentSwizzle as S;
use vk::Format as F;

const PLAIN: [S; 4] = [S::IDENTITY; 4];

/// Returns the formats with 1, 2 and 4 channels of a type.
fn channels(data: u32) -> Option<[F; 3]> {
    Some(match data {
        cl::CL_UNORM_INT8 => [F::R8_UNORM, F::R8G8_UNORM, F::R8G8B8A8_UNORM],
        cl::CL_SNORM_INT8 => [F::R8_SNORM, F::R8G8_SNORM, F::R8G8B8A8_SNORM],
        cl::CL_SIGNED_INT8 => [F::R8_SINT, F::R8G8_SINT, F::R8G8B8A8_SINT],
        cl::CL_UNSIGNED_INT8 => [F::R8_UINT, F::R8G8_UINT, F::R8G8B8A8_UINT],
        cl::CL_UNORM_INT16 => [F::R16_UNORM, F::R16G16_UNORM, F::R16G16B16A16_UNORM],
        cl::CL_SNORM_INT16 => [F::R16_SNORM, F::R16G16_SNORM, F::R16G16B16A16_SNORM],
        cl::CL_SIGNED_INT16 => [F::R16_SINT, F::R16G16_SINT, F::R16G16B16A16_SINT],
        cl::CL_UNSIGNED_INT16 => [F::R16_UINT, F::R16G16_UINT, F::R16G16B16A16_UINT],
        cl::CL_SIGNED_INT32 => [F::R32_SINT, F::R32G32_SINT, F::R32G32B32A32_SINT],
        cl::CL_UNSIGNED_INT32 => [F::R32_UINT, F::R32G32_UINT, F::R32G32B32A32_UINT],
        cl::CL_HALF_FLOAT => [F::R16_SFLOAT, F::R16G16_SFLOAT, F::R16G16B16A16_SFLOAT],
        cl::CL_FLOAT => [F::R32_SFLOAT, F::R32G32_SFLOAT, F::R32G32B32A32_SFLOAT],
        _ => return None,
    })
}

/// Returns the storage of a format, or `None` if it is not supported.
pub fn stored(format: PixelFormat) -> Option<Stored> {
    let data = format.data;
    let opaque = [S::IDENTITY, S::IDENTITY, S::IDENTITY, S::ONE];
    let with = |view: F, swizzle: [S; 4]| {
        Some(Stored {
            view,
            image: match view {
                F::R8G8B8A8_SRGB => F::R8G8B8A8_UNORM,
                F::B8G8R8A8_SRGB => F::B8G8R8A8_UNORM,
                other => other,
            },
            swizzle,
        })
    };
    match (format.order, data) {
        (cl::CL_RGB, cl::CL_UNORM_SHORT_565) => return with(F::R5G6B5_UNORM_PACK16, PLAIN),
        (cl::CL_RGB, cl::CL_UNORM_SHORT_555) => return with(F::A1R5G5B5_UNORM_PACK16, opaque),
        (cl::CL_RGB, cl::CL_UNORM_INT_101010) => return with(F::A2R10G10B10_UNORM_PACK32, opaque),
        (cl::CL_BGRA, cl::CL_UNORM_INT8) => return with(F::B8G8R8A8_UNORM, PLAIN),
        (cl::CL_sRGBA, cl::CL_UNORM_INT8) => return with(F::R8G8B8A8_SRGB, PLAIN),
        (cl::CL_sBGRA, cl::CL_UNORM_INT8) => return with(F::B8G8R8A8_SRGB, PLAIN),
        (cl::CL_DEPTH, cl::CL_UNORM_INT16) => return with(F::R16_UNORM, PLAIN),
        (cl::CL_DEPTH, cl::CL_FLOAT) => return with(F::R32_SFLOAT, PLAIN),
        _ => {}
    }
    let [one, two, four] = channels(data)?;
    let (bytes, fraction) = (format.has_bytes(), format.has_fractions());
    match format.order {
        cl::CL_R => with(one, PLAIN),
        cl::CL_A => with(one, [S::ZERO, S::ZERO, S::ZERO, S::R]),
        cl::CL_INTENSITY if fraction => with(one, [S::R; 4]),
        cl::CL_LUMINANCE if fraction => with(one, [S::R, S::R, S::R, S::ONE]),
        cl::CL_RG => with(two, PLAIN),
        cl::CL_RA => with(two, [S::R, S::ZERO, S::ZERO, S::G]),
        cl::CL_RGBA => with(four, PLAIN),
        cl::CL_BGRA if bytes => with(four, [S::B, S::G, S::R, S::A]),
        cl::CL_ARGB if bytes => with(four, [S::G, S::B, S::A, S::R]),
        cl::CL_ABGR if bytes => with(four, [S::A, S::B, S::G, S::R]),
        _ => None,
    }
}

/// Returns the type of a VkImage.
pub fn image_type(dim: ImageDim) -> vk::ImageType {
    match dim {
        ImageDim::D1 | ImageDim::D1Array | ImageDim::Buffer => vk::ImageType::TYPE_1D,
        ImageDim::D2 | ImageDim::D2Array => vk::ImageType::TYPE_2D,
        ImageDim::D3 => vk::ImageType::TYPE_3D,
    }
}

const SHARED: [F; 2] = [F::R8G8B8A8_UNORM, F::B8G8R8A8_UNORM];

/// Returns the flags an image of this format is made with.
pub fn create_flags(format: F) -> vk::ImageCreateFlags {
    if SHARED.contains(&format) {
        // May be viewed as sRGB, which cannot be written.
        vk::ImageCreateFlags::MUTABLE_FORMAT | vk::ImageCreateFlags::EXTENDED_USAGE
    } else {
        vk::ImageCreateFlags::empty()
    }
}

/// Returns the flags of an image whose pixels kernels may access as unsigned integers, as those of 1, 2 and 4 bytes:
/// functions of sub-groups do that (cl_intel_subgroups). The texels of others lie as their format alone has them.
pub fn raw_flags(format: PixelFormat) -> vk::ImageCreateFlags {
    match format.bytes() {
        1 | 2 | 4 => vk::ImageCreateFlags::MUTABLE_FORMAT | vk::ImageCreateFlags::EXTENDED_USAGE,
        _ => vk::ImageCreateFlags::empty(),
    }
}

/// Returns the formats of the views of an image that was made for several.
pub fn views(format: PixelFormat, image: F) -> Vec<F> {
    let mut views = vec![image];
    let raw = format.raw().and_then(stored).map(|raw| raw.view);
    views.extend(raw.filter(|&raw| raw != image));
    match image {
        F::R8G8B8A8_UNORM => views.push(F::R8G8B8A8_SRGB),
        F::B8G8R8A8_UNORM => views.push(F::B8G8R8A8_SRGB),
        _ => {}
    }
    views
}

/// Returns the usage of an image.
pub fn usage(write: bool) -> vk::ImageUsageFlags {
    let plain = vk::ImageUsageFlags::SAMPLED
        | vk::ImageUsageFlags::TRANSFER_SRC
        | vk::ImageUsageFlags::TRANSFER_DST;
    if write {
        plain | vk::ImageUsageFlags::STORAGE
    } else {
        plain
    }
}

/// Returns the abilities of the device for every format, without those that it cannot read.
pub fn supported(adapter: &Adapter) -> Vec<Support> {
    let limits = &adapter.caps.images;
    if limits.max_2d == 0 {
        return Vec::new();
    }
    let instance = &adapter.instance.raw;
    let properties = |format: F| {
        // SAFETY: the device belongs to the instance.
        unsafe { instance.get_physical_device_format_properties(adapter.raw, format) }
    };
    let mut list = Vec::new();
    for format in PixelFormat::candidates() {
        let Some(stored) = stored(format) else {
            continue;
        };
        let short = [cl::CL_UNORM_SHORT_565, cl::CL_UNORM_SHORT_555].contains(&format.data);
        if short && !limits.exact_short {
            continue;
        }
        let (views, image) = (properties(stored.view), properties(stored.image));
        let has = |features: vk::FormatFeatureFlags, wanted| features.contains(wanted);
        use vk::FormatFeatureFlags as P;
        let transfers = P::TRANSFER_SRC | P::TRANSFER_DST;
        let filtered = P::SAMPLED_IMAGE_FILTER_LINEAR;
        let integer = matches!(
            format.data,
            cl::CL_SIGNED_INT8
                | cl::CL_SIGNED_INT16
                | cl::CL_SIGNED_INT32
                | cl::CL_UNSIGNED_INT8
                | cl::CL_UNSIGNED_INT16
                | cl::CL_UNSIGNED_INT32
        );
        let tiled = views.optimal_tiling_features;
        let read = has(tiled, P::SAMPLED_IMAGE)
            && (integer || has(tiled, filtered))
            && has(image.optimal_tiling_features, transfers);
        let plain = stored.is_plain() && !format.is_srgb();
        let write = plain && limits.write_any && has(tiled, P::STORAGE_IMAGE);
        let texels = views.buffer_features;
        let depth = format.order == cl::CL_DEPTH;
        let dims = ImageDim::ALL.map(|dim| {
            if depth && !matches!(dim, ImageDim::D2 | ImageDim::D2Array) {
                return ImageAccess::default();
            }
            if dim == ImageDim::Buffer {
                let read = plain && has(texels, P::UNIFORM_TEXEL_BUFFER);
                let write = read && limits.write_any && has(texels, P::STORAGE_TEXEL_BUFFER);
                return ImageAccess {
                    read,
                    write,
                    read_write: write,
                };
            }
            let possible = |write: bool| {
                // SAFETY: the device belongs to the instance.
                unsafe {
                    instance.get_physical_device_image_format_properties(
                        adapter.raw,
                        stored.image,
                        image_type(dim),
                        vk::ImageTiling::OPTIMAL,
                        usage(write),
                        create_flags(stored.image) | raw_flags(format),
                    )
                }
                .is_ok()
            };
            let read = read && possible(false);
            let write = read && write && possible(true);
            ImageAccess {
                read,
                write,
                read_write: write,
            }
        });
        if dims.iter().any(|access| access.read) {
            list.push(Support { format, dims });
        }
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_formats_have_the_size_of_their_pixels() {
        let mut known = 0;
        for format in PixelFormat::candidates() {
            let Some(stored) = stored(format) else {
                continue;
            };
            known += 1;
            assert!(format.bytes() > 0, "{format:?}");
            if stored.view == F::R8G8B8A8_SRGB {
                assert_eq!(stored.image, F::R8G8B8A8_UNORM);
            }
        }
        // R, RG, RGBA of twelve types each, and more.
        assert!(known > 36 + 24);
    }

    #[test]
    fn swizzles_put_alpha_where_it_belongs() {
        let argb = stored(PixelFormat {
            order: cl::CL_ARGB,
            data: cl::CL_UNORM_INT8,
        });
        assert_eq!(argb.map(|s| s.swizzle), Some([S::G, S::B, S::A, S::R]));
        let bgra = stored(PixelFormat {
            order: cl::CL_BGRA,
            data: cl::CL_UNORM_INT8,
        });
        assert_eq!(bgra.map(|s| s.is_plain()), Some(true));
    }
}
