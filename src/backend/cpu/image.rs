//! Images: rows of pixels in memory, of their own or of a buffer.

use super::format::{self, Layout};
use super::memory::{self, CpuMemory};
use crate::backend::image::{ImageLimits, MOST_SAMPLED, MOST_SAMPLERS, MOST_STORAGE};
use crate::backend::{
    DeviceError, DeviceImage, ImageDesc, ImageDim, Memory, PixelFormat, Result, Slice,
};
use spirv_lowering::native::TexelStorage;
use std::any::Any;
use std::sync::Arc;

/// The description of an image that kernels and copies use.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub struct Descriptor {
    /// The first pixel.
    pub texels: *mut u8,
    /// How many there are in x, y, z; the layers of an array stand after the last coordinate of a pixel.
    pub size: [u32; 3],
    /// Bytes of a pixel, or of the block of pixels that share bytes.
    pub pixel: u32,
    /// Bytes from a row (or layer of a row) to the next; 0: there is no y.
    pub row: u64,
    /// The same of slices and layers; 0: there is no z.
    pub slice: u64,
    /// How pixels are stored.
    pub layout: Layout,
    /// Pixels beyond the edge are opaque.
    pub opaque_border: bool,
    /// How the code of kernels accesses pixels; of images of 2^31 bytes and more by calls.
    pub storage: TexelStorage,
}

// SAFETY: a plain description; who may access the texels when is the runtime's order of commands.
unsafe impl Send for Descriptor {}
// SAFETY: as above.
unsafe impl Sync for Descriptor {}

impl Default for Descriptor {
    fn default() -> Self {
        Self {
            texels: std::ptr::null_mut(),
            size: [0; 3],
            pixel: 0,
            row: 0,
            slice: 0,
            layout: Layout {
                channel: format::Channel::Unorm8,
                channels: 0,
                components: [0; 4],
                stored: [0; 4],
            },
            opaque_border: false,
            storage: TexelStorage::Called,
        }
    }
}

/// An image.
pub struct CpuImage {
    desc: ImageDesc,
    layout: Layout,
    texels: *mut u8,
    /// Where the texels are.
    _memory: Arc<dyn Memory>,
}

// SAFETY: texels are accessed through raw pointers alone, in the runtime's order of commands.
unsafe impl Send for CpuImage {}
// SAFETY: as above.
unsafe impl Sync for CpuImage {}

fn layout_of(format: PixelFormat) -> Result<Layout> {
    format::layout(format).ok_or_else(|| DeviceError::Unsupported(format!("{format:?}")))
}

/// Downcasts an image to one of this back end.
pub fn of(image: &dyn DeviceImage) -> Result<&CpuImage> {
    let ours = image.as_any().downcast_ref();
    ours.ok_or_else(|| DeviceError::Unsupported("an image of another device".to_owned()))
}

/// Returns the size in x (blocks), y, z, and in which of y and z there is more than one.
fn sides(desc: &ImageDesc) -> ([u32; 3], bool, bool) {
    let [w, h, d, l] = [desc.width, desc.height, desc.depth, desc.layers].map(|n| n.max(1));
    match desc.dim {
        ImageDim::D1 | ImageDim::Buffer => ([w, 1, 1], false, false),
        ImageDim::D1Array => ([w, l, 1], true, false),
        ImageDim::D2 => ([w, h, 1], true, false),
        ImageDim::D2Array => ([w, h, l], true, true),
        ImageDim::D3 => ([w, h, d], true, true),
    }
}

impl CpuImage {
    /// Returns the limits of images.
    pub fn limits() -> ImageLimits {
        ImageLimits {
            max_1d: 16384,
            max_2d: 16384,
            max_3d: 2048,
            max_layers: 2048,
            max_texels: 1 << 30,
            max_sampled: MOST_SAMPLED,
            max_storage: MOST_STORAGE,
            max_samplers: MOST_SAMPLERS,
            buffer_align: 64,
            write_any: true,
            read_any: true,
            exact_short: true,
            raw: true,
            srgb_writes: true,
        }
    }

    /// Creates an image, filled with zeros or undefined.
    pub fn create(desc: &ImageDesc) -> Result<Arc<dyn DeviceImage>> {
        let layout = layout_of(desc.format)?;
        let ([w, h, d], ..) = sides(desc);
        let size = u128::from(w) * u128::from(h) * u128::from(d) * desc.format.bytes() as u128;
        let size = u64::try_from(size).unwrap_or(u64::MAX);
        let memory = CpuMemory::new(size, 1)?;
        Ok(Arc::new(Self {
            desc: *desc,
            layout,
            texels: memory.pointer(),
            _memory: Arc::new(memory),
        }))
    }

    /// Returns the texels of an image with another format.
    pub fn alias(
        image: &Arc<dyn DeviceImage>,
        format: PixelFormat,
    ) -> Result<Arc<dyn DeviceImage>> {
        let ours = of(image.as_ref())?;
        if ours.desc.format.bytes() != format.bytes() {
            return Err(DeviceError::Unsupported(format!("{format:?}")));
        }
        Ok(Arc::new(Self {
            desc: ImageDesc {
                format,
                ..ours.desc
            },
            layout: layout_of(format)?,
            texels: ours.texels,
            _memory: ours._memory.clone(),
        }))
    }

    /// Creates a one-dimensional image over memory.
    pub fn over(slice: &Slice, format: PixelFormat) -> Result<Arc<dyn DeviceImage>> {
        let layout = layout_of(format)?;
        let texels = slice.size / format.bytes().max(1) as u64;
        let base = memory::of(slice.memory.as_ref())?.pointer();
        Ok(Arc::new(Self {
            desc: ImageDesc {
                dim: ImageDim::Buffer,
                format,
                width: u32::try_from(texels).unwrap_or(u32::MAX),
                height: 1,
                depth: 1,
                layers: 1,
            },
            layout,
            texels: base.wrapping_add(slice.offset as usize),
            _memory: slice.memory.clone(),
        }))
    }

    /// Returns the description that kernels use.
    pub fn descriptor(&self) -> Descriptor {
        let (size, has_y, has_z) = sides(&self.desc);
        let pixel = self.desc.format.bytes() as u64;
        let row = pixel * u64::from(size[0]);
        let slice = row * u64::from(size[1]);
        let storage = match slice * u64::from(size[2]) {
            1..0x8000_0000 => self.layout.storage(),
            _ => TexelStorage::Called,
        };
        // Kernels count pixels.
        let size = [self.desc.pixels(), size[1], size[2]];
        Descriptor {
            texels: self.texels,
            size,
            pixel: pixel as u32,
            row: if has_y { row } else { 0 },
            slice: if has_z { slice } else { 0 },
            layout: self.layout,
            opaque_border: !self.desc.format.has_alpha(),
            storage,
        }
    }
}

impl DeviceImage for CpuImage {
    fn desc(&self) -> &ImageDesc {
        &self.desc
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cl;

    const RGBA8: PixelFormat = PixelFormat {
        order: cl::CL_RGBA,
        data: cl::CL_UNORM_INT8,
    };

    fn desc(dim: ImageDim) -> ImageDesc {
        ImageDesc {
            dim,
            format: RGBA8,
            width: 7,
            height: 5,
            depth: 3,
            layers: 2,
        }
    }

    /// Layers stand after the last coordinate that a pixel has.
    #[test]
    fn descriptors_of_each_geometry() {
        for (dim, size, row, slice) in [
            (ImageDim::D1, [7, 1, 1], 0, 0),
            (ImageDim::Buffer, [7, 1, 1], 0, 0),
            (ImageDim::D1Array, [7, 2, 1], 28, 0),
            (ImageDim::D2, [7, 5, 1], 28, 0),
            (ImageDim::D2Array, [7, 5, 2], 28, 140),
            (ImageDim::D3, [7, 5, 3], 28, 140),
        ] {
            let image = CpuImage::create(&desc(dim)).expect("an image");
            let d = of(image.as_ref()).expect("ours").descriptor();
            assert_eq!((d.size, d.row, d.slice, d.pixel), (size, row, slice, 4));
            assert!(!d.opaque_border);
        }
    }

    #[test]
    fn aliases_show_the_same_texels() {
        let image = CpuImage::create(&desc(ImageDim::D2)).expect("an image");
        let srgb = PixelFormat {
            order: cl::CL_sRGBA,
            data: cl::CL_UNORM_INT8,
        };
        let alias = CpuImage::alias(&image, srgb).expect("an alias");
        let texels =
            |image: &Arc<dyn DeviceImage>| of(image.as_ref()).expect("ours").descriptor().texels;
        assert_eq!(texels(&alias), texels(&image));
        assert_eq!(alias.desc().format, srgb);
        let wide = PixelFormat {
            data: cl::CL_FLOAT,
            ..RGBA8
        };
        assert!(CpuImage::alias(&image, wide).is_err());
    }

    #[test]
    fn over_a_part_of_memory() {
        let memory: Arc<dyn Memory> = Arc::new(CpuMemory::new(256, 1).expect("memory"));
        let slice = Slice::new(memory.clone(), 64, 43);
        let image = CpuImage::over(&slice, RGBA8).expect("an image");
        let d = of(image.as_ref()).expect("ours").descriptor();
        // What is no whole texel is none.
        assert_eq!(d.size, [10, 1, 1]);
        assert_eq!(d.texels as u64, memory.address() + 64);
    }

    #[test]
    fn too_large_or_of_no_format() {
        let huge = ImageDesc {
            width: u32::MAX,
            height: u32::MAX,
            depth: u32::MAX,
            ..desc(ImageDim::D3)
        };
        assert!(CpuImage::create(&huge).is_err());
        let none = ImageDesc {
            format: PixelFormat { order: 0, data: 0 },
            ..desc(ImageDim::D2)
        };
        assert!(CpuImage::create(&none).is_err());
    }
}
