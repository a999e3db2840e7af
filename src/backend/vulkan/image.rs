//! Images as kernels and copies see them: views of texels, texel buffers, and samplers.
//!
//! An image goes to layout GENERAL before its first use ([`super::transition`]); from then on streams need no image barriers, only
//! the memory barriers that they place for buffers too. For the stream's tracker an image is a range of addresses that
//! no memory has.

use super::format::{self, Stored};
use super::heap::Heaps;
use super::logical::LogicalDevice;
use super::memory::VulkanMemory;
use super::texels::Texels;
use super::transition::Transitions;
use crate::backend::image::{ImageDim, ImageRegion};
use crate::backend::{DeviceError, DeviceImage, ImageDesc, Memory, PixelFormat, Result, Slice};
use crate::util::lock::{rank, Mutex};
use crate::util::shutdown;
use ash::vk;
use rustc_hash::FxHashMap;
use spirv_lowering::interface::sampler;
use std::any::Any;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

enum Backing {
    Image {
        texels: Arc<Texels>,
        sampled: vk::ImageView,
        /// Null where the format cannot be written.
        storage: vk::ImageView,
    },
    Buffer {
        slice: Slice,
        view: vk::BufferView,
    },
}

/// An image as kernels and copies see it.
pub struct VulkanImage {
    device: Arc<LogicalDevice>,
    desc: ImageDesc,
    stored: Stored,
    backing: Backing,
    stamp: AtomicU64,
    /// The same texels as unsigned integers, made with the first launch that accesses blocks of them.
    raw: OnceLock<Arc<Self>>,
}

impl DeviceImage for VulkanImage {
    fn desc(&self) -> &ImageDesc {
        &self.desc
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Drop for VulkanImage {
    fn drop(&mut self) {
        let raw = &self.device.raw;
        // SAFETY: streams keep an Arc until the work that uses the views has completed; destroyed once; null is fine.
        unsafe {
            match &self.backing {
                Backing::Image {
                    sampled, storage, ..
                } => {
                    raw.destroy_image_view(*sampled, None);
                    raw.destroy_image_view(*storage, None);
                }
                Backing::Buffer { view, .. } => raw.destroy_buffer_view(*view, None),
            }
        }
    }
}

/// A descriptor of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Descriptor {
    /// SAMPLED_IMAGE or STORAGE_IMAGE.
    Image(vk::ImageView),
    /// UNIFORM_TEXEL_BUFFER or STORAGE_TEXEL_BUFFER.
    Texels(vk::BufferView),
}

impl VulkanImage {
    /// Downcasts an image to one of this back end.
    pub fn of(image: &dyn DeviceImage) -> Result<&Self> {
        image
            .as_any()
            .downcast_ref()
            .ok_or_else(|| DeviceError::Unsupported("an image of another back end".to_owned()))
    }

    /// Returns true if `batch` has not taken a reference yet; marks it taken.
    pub fn first_use(&self, batch: u64) -> bool {
        if self.stamp.load(Ordering::Relaxed) == batch {
            return false;
        }
        self.stamp.store(batch, Ordering::Relaxed);
        true
    }

    /// Returns the VkImage, for copies.
    pub fn raw(&self) -> Result<vk::Image> {
        match &self.backing {
            Backing::Image { texels, .. } => Ok(texels.raw),
            Backing::Buffer { .. } => Err(DeviceError::Unsupported(
                "copies of texel buffers".to_owned(),
            )),
        }
    }

    /// Returns the descriptor for kernels.
    pub fn descriptor(&self, write: bool) -> Result<Descriptor> {
        match &self.backing {
            Backing::Image { storage, .. } if write => {
                if *storage == vk::ImageView::null() {
                    return Err(DeviceError::Unsupported(format!(
                        "writing {:?}",
                        self.desc.format
                    )));
                }
                Ok(Descriptor::Image(*storage))
            }
            Backing::Image { sampled, .. } => Ok(Descriptor::Image(*sampled)),
            Backing::Buffer { view, .. } => Ok(Descriptor::Texels(*view)),
        }
    }

    /// Returns addresses for the tracker, first and one past the last.
    pub fn range(&self) -> Result<(u64, u64)> {
        match &self.backing {
            Backing::Image { texels, .. } => Ok((texels.mark, texels.mark + 1)),
            Backing::Buffer { slice, .. } => {
                let memory = VulkanMemory::of(&*slice.memory)?;
                let begin = memory.address() + slice.offset;
                Ok((begin, begin + slice.size))
            }
        }
    }

    /// Returns the memory of an image over a buffer.
    pub fn memory(&self) -> Result<Option<&VulkanMemory>> {
        match &self.backing {
            Backing::Image { .. } => Ok(None),
            Backing::Buffer { slice, .. } => VulkanMemory::of(&*slice.memory).map(Some),
        }
    }

    /// Returns a box as Vulkan names it.
    pub fn place(
        &self,
        region: &ImageRegion,
    ) -> (vk::ImageSubresourceLayers, vk::Offset3D, vk::Extent3D) {
        let ([x, y, z], [w, h, d]) = (region.origin, region.size);
        let layers = |first, count| {
            vk::ImageSubresourceLayers::default()
                .aspect_mask(vk::ImageAspectFlags::COLOR)
                .base_array_layer(first)
                .layer_count(count)
        };
        let offset = |x: u32, y: u32, z: u32| vk::Offset3D {
            x: x as i32,
            y: y as i32,
            z: z as i32,
        };
        let extent = |width, height, depth| vk::Extent3D {
            width,
            height,
            depth,
        };
        match self.desc.dim {
            ImageDim::D1 | ImageDim::Buffer => (layers(0, 1), offset(x, 0, 0), extent(w, 1, 1)),
            ImageDim::D1Array => (layers(y, h), offset(x, 0, 0), extent(w, 1, 1)),
            ImageDim::D2 => (layers(0, 1), offset(x, y, 0), extent(w, h, 1)),
            ImageDim::D2Array => (layers(z, d), offset(x, y, 0), extent(w, h, 1)),
            ImageDim::D3 => (layers(0, 1), offset(x, y, z), extent(w, h, d)),
        }
    }
}

fn view_type(dim: ImageDim) -> vk::ImageViewType {
    match dim {
        ImageDim::D1 | ImageDim::Buffer => vk::ImageViewType::TYPE_1D,
        ImageDim::D1Array => vk::ImageViewType::TYPE_1D_ARRAY,
        ImageDim::D2 => vk::ImageViewType::TYPE_2D,
        ImageDim::D2Array => vk::ImageViewType::TYPE_2D_ARRAY,
        ImageDim::D3 => vk::ImageViewType::TYPE_3D,
    }
}

fn unknown(format: PixelFormat) -> DeviceError {
    DeviceError::Unsupported(format!("images of {format:?}"))
}

/// Returns an image of these texels.
fn view(texels: &Arc<Texels>, desc: ImageDesc, writable: bool) -> Result<VulkanImage> {
    let device = texels.device();
    let stored = format::stored(desc.format).ok_or_else(|| unknown(desc.format))?;
    let make = |write: bool| -> Result<vk::ImageView> {
        let mut usage = vk::ImageViewUsageCreateInfo::default().usage(if write {
            vk::ImageUsageFlags::STORAGE
        } else {
            vk::ImageUsageFlags::SAMPLED
        });
        let info = vk::ImageViewCreateInfo::default()
            .image(texels.raw)
            .view_type(view_type(desc.dim))
            .format(stored.view)
            .components(if write {
                vk::ComponentMapping::default()
            } else {
                stored.mapping()
            })
            .subresource_range(
                vk::ImageSubresourceRange::default()
                    .aspect_mask(vk::ImageAspectFlags::COLOR)
                    .level_count(1)
                    .layer_count(desc.layers.max(1)),
            )
            .push_next(&mut usage);
        // SAFETY: the image lives and was made for views of this format and usage.
        unsafe { device.raw.create_image_view(&info, None) }
            .map_err(|result| device.failed("vkCreateImageView", result))
    };
    let mut image = VulkanImage {
        device: Arc::clone(device),
        desc,
        stored,
        backing: Backing::Image {
            texels: Arc::clone(texels),
            sampled: vk::ImageView::null(),
            storage: vk::ImageView::null(),
        },
        stamp: AtomicU64::new(0),
        raw: OnceLock::new(),
    };
    let (read, write) = (
        make(false)?,
        if writable && texels.storage {
            make(true)
        } else {
            Ok(vk::ImageView::null())
        },
    );
    if let Backing::Image {
        sampled, storage, ..
    } = &mut image.backing
    {
        *sampled = read;
        *storage = write?;
    }
    Ok(image)
}

/// Returns the same texels with another format: of those that images share, or their bits, which are one image each time.
pub fn alias(of: &VulkanImage, format: PixelFormat, writable: bool) -> Result<Arc<VulkanImage>> {
    if let Some(raw) = of.raw.get().filter(|raw| raw.desc.format == format) {
        return Ok(raw.clone());
    }
    let stored = format::stored(format).ok_or_else(|| unknown(format))?;
    let Backing::Image { texels, .. } = &of.backing else {
        return Err(unknown(format));
    };
    let raw = of.desc.format.raw() == Some(format)
        && !format::raw_flags(of.desc.format).is_empty()
        && texels.is_own();
    if stored.image != of.stored.image && !raw {
        return Err(unknown(format));
    }
    let alias = Arc::new(view(texels, ImageDesc { format, ..of.desc }, writable)?);
    Ok(match raw {
        true => of.raw.get_or_init(|| alias).clone(),
        false => alias,
    })
}

/// Creates an image of texels over memory.
pub fn texel_buffer(
    device: &Arc<LogicalDevice>,
    slice: &Slice,
    format: PixelFormat,
) -> Result<VulkanImage> {
    let stored = format::stored(format).ok_or_else(|| unknown(format))?;
    let memory = VulkanMemory::of(&*slice.memory)?;
    let bytes = format.bytes().max(1) as u64;
    let info = vk::BufferViewCreateInfo::default()
        .buffer(memory.buffer)
        .format(stored.view)
        .offset(memory.offset + slice.offset)
        .range(slice.size / bytes * bytes);
    // SAFETY: the buffer was made for texel views; the range lies within it and within the device's limit.
    let view = unsafe { device.raw.create_buffer_view(&info, None) }
        .map_err(|result| device.failed("vkCreateBufferView", result))?;
    Ok(VulkanImage {
        device: Arc::clone(device),
        desc: ImageDesc {
            dim: ImageDim::Buffer,
            format,
            width: (slice.size / bytes) as u32,
            height: 1,
            depth: 1,
            layers: 1,
        },
        stored,
        backing: Backing::Buffer {
            slice: slice.clone(),
            view,
        },
        stamp: AtomicU64::new(0),
        raw: OnceLock::new(),
    })
}

/// The objects of a device that images share: samplers, and the transitions to their layout.
pub struct Images {
    /// The images that are not in their layout yet.
    pub transitions: Transitions,
    heaps: Arc<Heaps>,
    samplers: Mutex<FxHashMap<u32, vk::Sampler>, { rank::SAMPLERS }>,
}

impl Images {
    /// Creates the state of a device without images.
    pub fn new(heaps: &Arc<Heaps>) -> Self {
        Self {
            transitions: Transitions::default(),
            heaps: Arc::clone(heaps),
            samplers: Mutex::default(),
        }
    }

    /// Creates an image.
    pub fn create(&self, desc: &ImageDesc, writable: bool) -> Result<VulkanImage> {
        if self.heaps.device.is_lost() {
            return Err(DeviceError::Lost);
        }
        let stored = format::stored(desc.format).ok_or_else(|| unknown(desc.format))?;
        // An sRGB image may be viewed as the plain one, which can be written where its format can.
        let storage = writable || stored.view != stored.image;
        let texels = Texels::new(&self.heaps, desc, stored.image, storage)?;
        let image = view(&texels, *desc, writable)?;
        self.transitions.add(&self.heaps.device, &texels)?;
        Ok(image)
    }

    /// Creates an image on memory of an opaque handle, which others have brought to its layout.
    pub fn import(&self, fd: i32, desc: &ImageDesc, writable: bool) -> Result<VulkanImage> {
        let stored = format::stored(desc.format).ok_or_else(|| unknown(desc.format))?;
        let storage = writable || stored.view != stored.image;
        let texels = Texels::import(&self.heaps, desc, stored.image, storage, fd)?;
        view(&texels, *desc, writable)
    }

    /// Returns the sampler of a property word.
    pub fn sampler(&self, word: u32) -> Result<vk::Sampler> {
        let device = &self.heaps.device;
        let mut samplers = self.samplers.lock();
        if let Some(sampler) = samplers.get(&word) {
            return Ok(*sampler);
        }
        let mode = match word & sampler::ADDRESS_MASK {
            sampler::ADDRESS_CLAMP => vk::SamplerAddressMode::CLAMP_TO_BORDER,
            sampler::ADDRESS_REPEAT => vk::SamplerAddressMode::REPEAT,
            sampler::ADDRESS_MIRRORED_REPEAT => vk::SamplerAddressMode::MIRRORED_REPEAT,
            _ => vk::SamplerAddressMode::CLAMP_TO_EDGE,
        };
        let filter = if word & sampler::FILTER_LINEAR != 0 {
            vk::Filter::LINEAR
        } else {
            vk::Filter::NEAREST
        };
        let info = vk::SamplerCreateInfo::default()
            .mag_filter(filter)
            .min_filter(filter)
            .mipmap_mode(vk::SamplerMipmapMode::NEAREST)
            .address_mode_u(mode)
            .address_mode_v(mode)
            .address_mode_w(mode)
            .border_color(vk::BorderColor::FLOAT_TRANSPARENT_BLACK);
        // SAFETY: the device lives; no feature is needed for these values.
        let made = unsafe { device.raw.create_sampler(&info, None) }
            .map_err(|result| device.failed("vkCreateSampler", result))?;
        samplers.insert(word, made);
        Ok(made)
    }
}

impl Drop for Images {
    fn drop(&mut self) {
        if shutdown::has_begun() {
            return;
        }
        let raw = &self.heaps.device.raw;
        // SAFETY: streams hold an Arc of this, so none is left and no work is pending; each is destroyed once.
        unsafe {
            self.transitions.destroy(raw);
            for (_, sampler) in self.samplers.get_mut().drain() {
                raw.destroy_sampler(sampler, None);
            }
        }
    }
}
