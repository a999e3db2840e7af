//! Images: what an application knows of them, and where their texels are.
//!
//! Texels lie in an image of the device's own, one for each device that uses it, unless the image is made from a
//! buffer: then the buffer's bytes are the texels. A 1D image buffer is shown to kernels as it is; an image of another
//! type has an image of the device beside it, which commands fill before a kernel and empty after.
//!
//! Coordinates are those of the specification: layers of an array count in the coordinate after the pixel's.

use super::buffer::{check_flags, check_host_ptr};
use super::coherence::{Initial, Rows};
use super::description::{
    allows, bad, check_devices, check_format, check_images, dim_of, extent, fits, steps, supports,
    Description, Layout, Source, ARRAYS, WITH_HEIGHT,
};
use super::external::{ExternalHandle, Properties};
use super::queue_images::{Identity, QueueImages};
use super::texels::Texels;
use super::{transfer, Mem};
use crate::backend::external::MemoryHandle;
use crate::backend::image::{ImageDim, ImageRegion};
use crate::backend::{self, ImageDesc, PixelFormat};
use crate::cl::{
    self, cl_image_format, cl_image_info, cl_mem_flags, cl_mem_object_type, cl_mem_properties,
};
use crate::error::{ensure, err, ClError, ClResult, OrErr};
use crate::handle::Ref;
use crate::object::context::Context;
use crate::object::device::Device;
use crate::object::info::{answer, InfoOut, Written};
use crate::object::memories::{Memories, MemoryIndex, PerMemory};
use std::ffi::c_void;
use std::sync::Arc;

/// The memory behind the texels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backing {
    /// An image of the device.
    Own,
    /// A buffer, shown to kernels as it is.
    Texels,
    /// A buffer with rows `row_pitch` and slices `slice_pitch` bytes apart, shown to kernels as an image beside it.
    Rows,
}

/// The part of a memory object that images alone have.
pub struct MemImage {
    /// Geometry, format and extents.
    pub desc: ImageDesc,
    /// Bytes from row to row, in host memory or the buffer it was made from.
    pub row_pitch: usize,
    /// Bytes from slice to slice or layer to layer; 0 where there are none.
    pub slice_pitch: usize,
    /// The memory behind the texels.
    pub backing: Backing,
    texels: Arc<Texels>,
    /// The images that kernels use in place of one over a buffer's rows.
    shown: QueueImages,
    /// Views of the texels in another format than theirs.
    aliases: Option<PerMemory<Arc<dyn backend::DeviceImage>>>,
}

/// Implements clGetSupportedImageFormats: formats that any device of the context has, those that
/// all have first.
pub fn supported_formats(
    context: &Context,
    flags: cl_mem_flags,
    kind: cl_mem_object_type,
) -> ClResult<Vec<cl_image_format>> {
    let flags = check_flags(flags)?;
    let Some(dim) = dim_of(kind) else {
        return err(cl::CL_INVALID_VALUE, format!("image type {kind:#x}"));
    };
    let mut list: Vec<PixelFormat> = Vec::new();
    for device in &context.devices {
        if !device.features.images {
            continue;
        }
        for support in device.backend.image_formats() {
            if allows(support, dim, flags) && !list.contains(&support.format) {
                list.push(support.format);
            }
        }
    }
    Ok(list
        .into_iter()
        .map(|format| cl_image_format {
            image_channel_order: format.order,
            image_channel_data_type: format.data,
        })
        .collect())
}

impl MemImage {
    fn new(layout: Layout, backing: Backing, texels: Arc<Texels>) -> Self {
        Self {
            desc: layout.desc,
            row_pitch: layout.row_pitch,
            slice_pitch: layout.slice_pitch,
            backing,
            texels,
            shown: QueueImages::default(),
            aliases: None,
        }
    }

    /// Returns the bytes of a block, which is a pixel with most formats ([`PixelFormat::block`]).
    pub fn element(&self) -> usize {
        self.desc.format.bytes()
    }

    /// Returns the texels.
    pub(super) fn texels(&self) -> &Texels {
        &self.texels
    }

    /// Returns a box of all of it.
    pub(super) fn whole(&self) -> ImageRegion {
        ImageRegion {
            origin: [0; 3],
            size: self.extent(),
        }
    }

    /// Returns true if the image has the same texels as another.
    pub fn shares(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.texels, &other.texels)
    }

    /// Returns the extents in the specification's coordinates, none of them 0, the first in blocks.
    pub fn extent(&self) -> [u32; 3] {
        extent(&self.desc)
    }

    /// Returns the bytes from one second, and one third, coordinate to the next, with these
    /// pitches.
    pub fn steps(&self, row_pitch: usize, slice_pitch: usize) -> (usize, usize) {
        steps(self.desc.dim, row_pitch, slice_pitch)
    }

    /// Returns the rows of a box in the buffer that the image is made from.
    pub fn rows(&self, at: &ImageRegion) -> Rows {
        let [x, y, z] = at.origin.map(u64::from);
        let [width, rows, slices] = at.size.map(u64::from);
        let (row, slice) = self.steps(self.row_pitch, self.slice_pitch);
        let (row_pitch, slice_pitch) = (row as u64, slice as u64);
        let element = self.element() as u64;
        Rows {
            first: z * slice_pitch + y * row_pitch + x * element,
            bytes: width * element,
            rows,
            row_pitch,
            slices,
            slice_pitch: if slices > 1 {
                slice_pitch
            } else {
                row_pitch * rows
            },
        }
    }

    /// Returns the pitches, with 0 filled in, of `size` pixels in host memory.
    pub fn pitches(&self, size: [u32; 3], row_pitch: usize, slice_pitch: usize) -> (usize, usize) {
        let [width, height, _] = size.map(|n| n as usize);
        let row = if row_pitch == 0 {
            width * self.element()
        } else {
            row_pitch
        };
        let slice = match self.desc.dim {
            _ if slice_pitch != 0 => slice_pitch,
            ImageDim::D1Array => row,
            _ => row * height,
        };
        (row, slice)
    }

    /// Creates an image with texels of its own, with what is behind the pointer, if it is not null, and returns it with its size.
    ///
    /// # Safety
    /// The pointer must be null, or that to an image with this layout.
    unsafe fn with_texels(
        context: &Context,
        layout: Layout,
        host_ptr: usize,
    ) -> ClResult<(Self, usize)> {
        let desc = layout.desc;
        let mut initial = None;
        if host_ptr != 0 {
            let (y, z) = steps(desc.dim, layout.row_pitch, layout.slice_pitch);
            let (size, element) = (extent(&desc), desc.format.bytes());
            // SAFETY: the caller vouches for an image of these extents and pitches.
            initial = Some(unsafe { transfer::packed(host_ptr, size, element, y, z) }?);
        }
        let all = &context.memories;
        let kept = initial.take_if(|_| all.are_several());
        let texels = Texels::new(all, desc, kept.map_or(Initial::Nothing, Initial::Bytes));
        let image = Self::new(layout, Backing::Own, texels);
        if !all.are_several() {
            let texels = image.texels.on(all, MemoryIndex::FIRST)?;
            if let Some(bytes) = initial {
                let device = all.device(MemoryIndex::FIRST)?;
                transfer::fill_image(device, texels, &image.whole(), &bytes)?;
            }
        }
        let [_, height, depth] = extent(&desc).map(|n| n as usize);
        let (pitch, count) = match desc.dim {
            ImageDim::D1 | ImageDim::Buffer => (layout.row_pitch, 1),
            ImageDim::D1Array => (layout.slice_pitch, height),
            ImageDim::D2 => (layout.row_pitch, height),
            ImageDim::D2Array | ImageDim::D3 => (layout.slice_pitch, depth),
        };
        Ok((image, pitch.saturating_mul(count)))
    }

    /// Creates an image with texels of its own, undefined, and returns it with its size.
    pub(super) fn empty(context: &Context, layout: Layout) -> ClResult<(Self, usize)> {
        // SAFETY: there is no pointer.
        unsafe { Self::with_texels(context, layout, 0) }
    }

    /// Creates an image over the bytes of a store.
    pub(super) fn over(all: &Memories, layout: Layout) -> Self {
        let backing = match layout.desc.dim {
            ImageDim::Buffer => Backing::Texels,
            _ => Backing::Rows,
        };
        let texels = Texels::new(all, layout.desc, Initial::Nothing);
        Self::new(layout, backing, texels)
    }

    /// Creates an image over a buffer, and returns it with its size.
    fn over_buffer(buffer: &Mem, layout: Layout) -> ClResult<(Self, usize)> {
        let needed = (layout.span()).filter(|span| *span <= buffer.size);
        let size = needed.or_err(
            cl::CL_INVALID_IMAGE_SIZE,
            "the image is larger than its buffer",
        )?;
        Ok((Self::over(&buffer.context.memories, layout), size))
    }

    /// Creates another view of the same texels: sRGB or not, depth or one channel.
    fn view(parent: &Mem, layout: &Layout) -> ClResult<Self> {
        let Some(of) = &parent.image else {
            return bad("mem_object is neither buffer nor image");
        };
        let (desc, base) = (layout.desc, of.desc);
        let likewise = ImageDesc {
            format: base.format,
            ..desc
        };
        if likewise != base {
            return bad("the extents differ from those of the image it is made from");
        }
        let (new, old) = (desc.format, base.format);
        let pair = |a, b| (new.order, old.order) == (a, b) || (new.order, old.order) == (b, a);
        let compatible = new.data == old.data
            && (new.order == old.order
                || pair(cl::CL_sBGRA, cl::CL_BGRA)
                || pair(cl::CL_sRGBA, cl::CL_RGBA)
                || pair(cl::CL_DEPTH, cl::CL_R));
        ensure!(
            compatible,
            cl::CL_INVALID_IMAGE_FORMAT_DESCRIPTOR,
            "the format does not go with that of the image it is made from"
        );
        if of.backing != Backing::Own {
            return bad("the image it is made from is made from a buffer");
        }
        let layout = Layout {
            desc,
            row_pitch: of.row_pitch,
            slice_pitch: of.slice_pitch,
        };
        let mut image = Self::new(layout, Backing::Own, of.texels.clone());
        image.aliases = Some(PerMemory::new(&parent.context.memories));
        Ok(image)
    }
}

/// Returns the flags of an image made from another memory object.
fn inherit(parent: cl_mem_flags, flags: cl_mem_flags) -> ClResult<cl_mem_flags> {
    ensure!(
        parent & !flags & cl::CL_MEM_IMMUTABLE_EXT == 0,
        cl::CL_INVALID_VALUE,
        "mem_object is immutable, the image is not"
    );
    super::buffer::sub_buffer_flags(parent, flags)
}

impl Mem {
    /// Returns the part that images alone have. CL_INVALID_MEM_OBJECT for others.
    pub fn image(&self) -> ClResult<&MemImage> {
        let image = self.image.as_deref();
        image.or_err(cl::CL_INVALID_MEM_OBJECT, "not an image")
    }

    /// Implements clCreateImage, clCreateImageWithProperties. `parent` is `mem_object` of the
    /// description.
    ///
    /// # Safety
    /// With CL_MEM_COPY_HOST_PTR, `host_ptr` must be readable for the size of the image now; with CL_MEM_USE_HOST_PTR,
    /// readable and writable as long as the object lives.
    pub unsafe fn create_image(
        context: &Ref<Context>,
        properties: Vec<cl_mem_properties>,
        flags: cl_mem_flags,
        format: &cl_image_format,
        wanted: &Description,
        parent: Option<&Ref<Mem>>,
        host_ptr: *mut c_void,
    ) -> ClResult<Ref<Self>> {
        let named = Properties::read(context, &properties)?;
        ensure!(
            named.others == [0],
            cl::CL_INVALID_PROPERTY,
            "a property that images do not have"
        );
        check_images(context)?;
        if let Some(handle) = named.external {
            let make = (properties, flags, host_ptr);
            return Self::external_image(context, handle, make, format, wanted, parent);
        }
        let format = check_format(format)?;
        let flags = match parent {
            Some(parent) => {
                if !Arc::ptr_eq(&parent.context, context) {
                    return bad("mem_object is of another context");
                }
                ensure!(
                    host_ptr.is_null(),
                    cl::CL_INVALID_HOST_PTR,
                    "host_ptr with mem_object"
                );
                inherit(parent.flags, flags)?
            }
            None => {
                let flags = check_flags(flags)?;
                check_host_ptr(flags, host_ptr)?;
                flags
            }
        };
        let source = match parent {
            Some(parent) if parent.is_buffer() => Source::Buffer,
            Some(_) => Source::Image,
            None if !host_ptr.is_null() => Source::Host,
            None => Source::Nothing,
        };
        let layout = Layout::new(format, wanted, source)?;
        check_devices(context, &layout.desc, flags)?;
        let (image, size) = match parent {
            Some(buffer) if buffer.is_buffer() => MemImage::over_buffer(buffer, layout)?,
            Some(image) => (MemImage::view(image, &layout)?, image.size),
            // SAFETY: the caller vouches for the pointer.
            None => unsafe { MemImage::with_texels(context, layout, host_ptr as usize) }?,
        };
        let store = match parent {
            Some(parent) if parent.is_buffer() => parent.store.clone(),
            _ => Arc::default(),
        };
        Ok(Self::make(context, flags, store, |mem| {
            mem.object_type = wanted.kind;
            mem.size = size;
            match parent {
                Some(parent) => (mem.host_ptr, mem.origin) = (parent.host_ptr, parent.origin),
                None if flags & cl::CL_MEM_USE_HOST_PTR != 0 => mem.host_ptr = host_ptr as usize,
                None => {}
            }
            mem.properties = properties;
            mem.parent = parent.cloned();
            mem.image = Some(Box::new(image));
        }))
    }

    /// Returns true if it has texels of the device's own, not bytes.
    pub fn has_texels(&self) -> bool {
        (self.image.as_ref()).is_some_and(|image| image.backing == Backing::Own)
    }

    /// Implements clCreateImageWithProperties for memory of others. What is a DMA buffer is linear, and so are its images: they
    /// are as if made from a buffer; and so is what has a pitch. What an opaque handle names is else as the device would have it.
    fn external_image(
        context: &Ref<Context>,
        handle: ExternalHandle,
        (properties, flags, host_ptr): (Vec<cl_mem_properties>, cl_mem_flags, *mut c_void),
        format: &cl_image_format,
        wanted: &Description,
        parent: Option<&Ref<Mem>>,
    ) -> ClResult<Ref<Self>> {
        let format = check_format(format)?;
        let flags = check_flags(flags)?;
        handle.check(flags, host_ptr)?;
        if parent.is_some() {
            return bad("mem_object with memory of others");
        }
        let linear = handle.kind == MemoryHandle::DmaBuf || wanted.row_pitch != 0;
        let source = match linear {
            true => Source::Linear,
            false => Source::Nothing,
        };
        let layout = Layout::new(format, wanted, source)?;
        check_devices(context, &layout.desc, flags)?;
        let size = layout.span().or_err(
            cl::CL_INVALID_IMAGE_SIZE,
            "the image is larger than can be counted",
        )?;
        let (store, image) = match linear {
            true => {
                let store = handle.store(context, size as u64, flags)?;
                (store, MemImage::over(&context.memories, layout))
            }
            false => {
                let images = handle.images(context, &layout.desc)?;
                let texels = Texels::imported(layout.desc, images);
                (Arc::default(), MemImage::new(layout, Backing::Own, texels))
            }
        };
        Ok(Self::make(context, flags, store, |mem| {
            mem.object_type = wanted.kind;
            mem.size = size;
            mem.properties = properties;
            mem.image = Some(Box::new(image));
            mem.external = Some(handle.into_external());
        }))
    }

    /// Returns the texels in a memory of the context, made if need be.
    pub fn texels(&self, memory: MemoryIndex) -> ClResult<Arc<dyn backend::DeviceImage>> {
        let image = self.image()?;
        let all = &self.context.memories;
        let (backend, format) = (&all.device(memory)?.backend, image.desc.format);
        if image.backing == Backing::Texels {
            let bytes = image.desc.width as usize * image.element();
            let slice = self.slice(memory, 0, bytes as u64)?;
            let make = || Ok(backend.texel_buffer(&slice, format)?);
            return Ok(image.texels.images.get_or_make(memory, make)?.clone());
        }
        let texels = image.texels.on(all, memory)?;
        let made = match &image.aliases {
            None => texels,
            Some(aliases) => {
                aliases.get_or_make(memory, || Ok(backend.alias_image(texels, format)?))?
            }
        };
        Ok(made.clone())
    }

    /// Returns the image for kernels of a queue on a device with this memory.
    pub fn shown(
        &self,
        memory: MemoryIndex,
        queue: &Identity,
    ) -> ClResult<Arc<dyn backend::DeviceImage>> {
        let image = self.image()?;
        if image.backing != Backing::Rows {
            return self.texels(memory);
        }
        let target = self.context.memories.device(memory)?;
        let make = || Ok(target.backend.create_image(&image.desc)?);
        image.shown.of(queue, make)
    }

    /// Returns an image that kernels use with its pixels as unsigned integers of the same size. Errors:
    /// CL_IMAGE_FORMAT_NOT_SUPPORTED for formats whose pixels share bytes, and for images of others
    /// that cannot be viewed so.
    pub fn raw_texels(
        &self,
        memory: MemoryIndex,
        shown: &Arc<dyn backend::DeviceImage>,
    ) -> ClResult<Arc<dyn backend::DeviceImage>> {
        let format = shown.desc().format.raw();
        let format = format.or_err(
            cl::CL_IMAGE_FORMAT_NOT_SUPPORTED,
            "pixels of this format cannot be accessed in blocks",
        )?;
        let device = self.context.memories.device(memory)?;
        let alias = device.backend.alias_image(shown, format);
        alias.map_err(|error| ClError::new(cl::CL_IMAGE_FORMAT_NOT_SUPPORTED, error.to_string()))
    }

    /// Checks that images of this format and geometry work on a device, with the flags of this one.
    pub fn check_image(&self, device: &Device) -> ClResult {
        let image = self.image()?;
        if !self.context.memories.are_several() {
            // It would not have been made.
            return Ok(());
        }
        ensure!(
            fits(device, &image.desc),
            cl::CL_INVALID_IMAGE_SIZE,
            "the image is larger than the device allows"
        );
        ensure!(
            supports(device, &image.desc, self.flags),
            cl::CL_IMAGE_FORMAT_NOT_SUPPORTED,
            "the device does not have the image's format"
        );
        Ok(())
    }

    /// Implements clGetImageInfo.
    pub fn image_info(&self, param: cl_image_info, out: InfoOut<'_>) -> ClResult<Written> {
        let image = self.image()?;
        let desc = &image.desc;
        let only = |has: bool, value: u32| if has { value as usize } else { 0 };
        let dim = desc.dim;
        let format = self.format()?;
        // The stencil beside a depth of 32 bits takes as much again.
        let times = match self.depth_stencil() {
            Some(cl::CL_FLOAT) => 2,
            _ => 1,
        };
        answer! { param, out;
            CL_IMAGE_FORMAT => cl_image_format {
                image_channel_order: format.order,
                image_channel_data_type: format.data,
            },
            CL_IMAGE_ELEMENT_SIZE => desc.format.element_size() * times,
            CL_IMAGE_ROW_PITCH => image.row_pitch * times,
            CL_IMAGE_SLICE_PITCH => image.slice_pitch * times,
            CL_IMAGE_WIDTH => desc.pixels() as usize,
            CL_IMAGE_HEIGHT => only(WITH_HEIGHT.contains(&dim), desc.height),
            CL_IMAGE_DEPTH => only(dim == ImageDim::D3, desc.depth),
            CL_IMAGE_ARRAY_SIZE => only(ARRAYS.contains(&dim), desc.layers),
            CL_IMAGE_BUFFER => self.parent.clone().filter(|parent| parent.is_buffer()),
            CL_IMAGE_NUM_MIP_LEVELS | CL_IMAGE_NUM_SAMPLES => 0u32,
        }
    }
}
