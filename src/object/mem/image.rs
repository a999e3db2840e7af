//! Images: what an application knows of them, and where their texels are.
//!
//! Texels lie in an image of the device's own, one for each device that uses it, unless the image is made from a
//! buffer: then the buffer's bytes are the texels. A one-dimensional one is shown to kernels as it is; a
//! two-dimensional one has an image beside it, which commands fill before a kernel and empty after.
//!
//! Coordinates are those of the specification: layers of an array count in the coordinate after the pixel's.

use super::buffer::{check_flags, check_host_ptr, check_properties};
use super::coherence::Touch;
use super::store::Store;
use super::texels::Texels;
use super::{transfer, Mem};
use crate::backend::image::{Access, ImageDim, ImageRegion};
use crate::backend::{self, ImageDesc, PixelFormat};
use crate::cl::{
    self, cl_image_format, cl_image_info, cl_mem_flags, cl_mem_object_type, cl_mem_properties,
    cl_uint,
};
use crate::error::{err, ClError, ClResult};
use crate::handle::{Object, Ref};
use crate::object::context::Context;
use crate::object::device::Device;
use crate::object::info::{unknown, InfoOut, Written};
use parking_lot::Mutex;
use std::ffi::c_void;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// CL_DEVICE_IMAGE_PITCH_ALIGNMENT, in pixels.
pub const PITCH_ALIGNMENT: u32 = 1;
/// CL_DEVICE_IMAGE_BASE_ADDRESS_ALIGNMENT, in pixels.
pub const BASE_ALIGNMENT: u32 = 1;

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

/// What the texels are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backing {
    /// An image of the device.
    Own,
    /// A buffer, shown to kernels as it is.
    Texels,
    /// A buffer with rows `row_pitch` bytes apart, shown to kernels as an image beside it.
    Rows,
}

/// The part of a memory object that images alone have.
pub struct Image {
    desc: ImageDesc,
    backing: Backing,
    element: usize,
    row_pitch: usize,
    slice_pitch: usize,
    texels: Arc<Texels>,
    /// Views of the texels in another format than theirs.
    aliases: Option<Box<[OnceLock<Arc<dyn backend::Image>>]>>,
}

/// Geometry of a memory object type.
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

/// Whether images with these flags may be of a format that has this access.
fn allows(access: Access, flags: cl_mem_flags) -> bool {
    let needs_both = flags & cl::CL_MEM_KERNEL_READ_AND_WRITE != 0;
    if needs_both && !access.read_write {
        return false;
    }
    if flags & cl::CL_MEM_READ_ONLY != 0 {
        access.read
    } else {
        // Read-write means: by some kernels, and written by others.
        access.read && access.write
    }
}

/// clGetSupportedImageFormats: formats that any device of the context has, those that all have first.
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
    for device in context.devices() {
        if !device.features().images {
            continue;
        }
        for support in device.backend().image_formats() {
            if allows(support.access(dim), flags) && !list.contains(&support.format) {
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

fn supports(device: &Device, desc: &ImageDesc, flags: cl_mem_flags) -> bool {
    let found = device
        .backend()
        .image_formats()
        .iter()
        .find(|support| support.format == desc.format);
    device.features().images && found.is_some_and(|found| allows(found.access(desc.dim), flags))
}

fn fits(device: &Device, desc: &ImageDesc) -> bool {
    let limits = &device.caps().images;
    let within = match desc.dim {
        ImageDim::D1 => desc.width <= limits.max_2d.min(limits.max_1d),
        ImageDim::D1Array => {
            desc.width <= limits.max_2d.min(limits.max_1d) && desc.layers <= limits.max_layers
        }
        ImageDim::Buffer => desc.width <= limits.max_texels,
        ImageDim::D2 => desc.width.max(desc.height) <= limits.max_2d,
        ImageDim::D2Array => {
            desc.width.max(desc.height) <= limits.max_2d && desc.layers <= limits.max_layers
        }
        ImageDim::D3 => desc.width.max(desc.height).max(desc.depth) <= limits.max_3d,
    };
    let bytes = [desc.width, desc.height, desc.depth, desc.layers]
        .iter()
        .try_fold(desc.format.bytes() as u64, |all, n| {
            all.checked_mul(u64::from(*n))
        });
    device.features().images
        && within
        && bytes.is_some_and(|bytes| bytes <= device.caps().max_alloc_size)
}

fn bad<T>(what: &'static str) -> ClResult<T> {
    err(cl::CL_INVALID_IMAGE_DESCRIPTOR, what)
}

/// Checks a format against the tables of the specification.
fn check_format(format: &cl_image_format) -> ClResult<PixelFormat> {
    let pixel = PixelFormat {
        order: format.image_channel_order,
        data: format.image_channel_data_type,
    };
    let invalid = || {
        err(
            cl::CL_INVALID_IMAGE_FORMAT_DESCRIPTOR,
            format!(
                "channel order {:#x} with type {:#x}",
                pixel.order, pixel.data
            ),
        )
    };
    let packed = matches!(
        pixel.data,
        cl::CL_UNORM_SHORT_565 | cl::CL_UNORM_SHORT_555 | cl::CL_UNORM_INT_101010
    );
    let fraction = matches!(
        pixel.data,
        cl::CL_UNORM_INT8
            | cl::CL_UNORM_INT16
            | cl::CL_SNORM_INT8
            | cl::CL_SNORM_INT16
            | cl::CL_HALF_FLOAT
            | cl::CL_FLOAT
    );
    let bytes = matches!(
        pixel.data,
        cl::CL_UNORM_INT8 | cl::CL_SNORM_INT8 | cl::CL_SIGNED_INT8 | cl::CL_UNSIGNED_INT8
    );
    let together = match pixel.order {
        cl::CL_INTENSITY | cl::CL_LUMINANCE => fraction,
        cl::CL_RGB | cl::CL_RGBx => packed,
        cl::CL_ARGB | cl::CL_BGRA | cl::CL_ABGR => bytes,
        cl::CL_DEPTH => matches!(pixel.data, cl::CL_UNORM_INT16 | cl::CL_FLOAT),
        cl::CL_sRGB | cl::CL_sRGBA | cl::CL_sBGRA | cl::CL_sRGBx => pixel.data == cl::CL_UNORM_INT8,
        _ => !packed && (pixel.data != cl::CL_UNORM_INT_101010_2 || pixel.order == cl::CL_RGBA),
    };
    if pixel.bytes() == 0 || !together {
        return invalid();
    }
    Ok(pixel)
}

impl Image {
    /// Geometry, format, extents.
    pub fn desc(&self) -> &ImageDesc {
        &self.desc
    }

    /// What the texels are.
    pub fn backing(&self) -> Backing {
        self.backing
    }

    /// Bytes of a pixel.
    pub fn element(&self) -> usize {
        self.element
    }

    /// Bytes from row to row, in host memory or the buffer it was made from.
    pub fn row_pitch(&self) -> usize {
        self.row_pitch
    }

    /// Bytes from slice to slice or layer to layer; 0 where there are none.
    pub fn slice_pitch(&self) -> usize {
        self.slice_pitch
    }

    /// The same texels as another's.
    pub fn shares(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.texels, &other.texels)
    }

    /// Extents in the specification's coordinates, none of them 0.
    pub fn extent(&self) -> [u32; 3] {
        extent(&self.desc)
    }

    /// Bytes from one second, and one third, coordinate to the next, with these pitches.
    pub fn steps(&self, row_pitch: usize, slice_pitch: usize) -> (usize, usize) {
        if self.desc.dim == ImageDim::D1Array {
            (slice_pitch, slice_pitch)
        } else {
            (row_pitch, slice_pitch)
        }
    }

    /// The pitches, with 0 filled in, of `size` pixels in host memory.
    pub fn pitches(&self, size: [u32; 3], row_pitch: usize, slice_pitch: usize) -> (usize, usize) {
        let [width, height, _] = size.map(|n| n as usize);
        let row = if row_pitch == 0 {
            width * self.element
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
}

/// Extents in the specification's coordinates.
pub(super) fn extent(desc: &ImageDesc) -> [u32; 3] {
    match desc.dim {
        ImageDim::D1 | ImageDim::Buffer => [desc.width, 1, 1],
        ImageDim::D1Array => [desc.width, desc.layers, 1],
        ImageDim::D2 => [desc.width, desc.height, 1],
        ImageDim::D2Array => [desc.width, desc.height, desc.layers],
        ImageDim::D3 => [desc.width, desc.height, desc.depth],
    }
}

/// Extents and pitches that were checked.
struct Checked {
    desc: ImageDesc,
    row_pitch: usize,
    slice_pitch: usize,
}

fn check_description(
    context: &Context,
    format: PixelFormat,
    wanted: &Description,
    flags: cl_mem_flags,
    parent: Option<&Ref<Mem>>,
    has_host_ptr: bool,
) -> ClResult<Checked> {
    let Some(dim) = dim_of(wanted.kind) else {
        return bad("image_type is no image type");
    };
    if wanted.mip_levels != 0 || wanted.samples != 0 {
        return bad("num_mip_levels and num_samples must be 0");
    }
    match (dim, parent) {
        (ImageDim::Buffer, Some(parent)) if parent.is_buffer() => {}
        (ImageDim::Buffer, _) => return bad("a 1D image buffer is made from a buffer"),
        (ImageDim::D2, Some(_)) | (_, None) => {}
        _ => return bad("mem_object is for 1D image buffers and 2D images"),
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
        if value == 0 {
            return bad("an extent is 0");
        }
        u32::try_from(value)
            .map_err(|_| ClError::new(cl::CL_INVALID_IMAGE_SIZE, "an extent is too large"))
    };
    desc.width = size(wanted.width)?;
    if matches!(dim, ImageDim::D2 | ImageDim::D2Array | ImageDim::D3) {
        desc.height = size(wanted.height)?;
    }
    if dim == ImageDim::D3 {
        desc.depth = size(wanted.depth)?;
    }
    if matches!(dim, ImageDim::D1Array | ImageDim::D2Array) {
        desc.layers = size(wanted.array_size)?;
    }
    let element = format.bytes();
    let tight = wanted.width.saturating_mul(element);
    let from_buffer = parent.is_some_and(|parent| parent.is_buffer());
    let pitched = has_host_ptr || (from_buffer && dim == ImageDim::D2);
    if !pitched && (wanted.row_pitch != 0 || wanted.slice_pitch != 0) && dim != ImageDim::Buffer {
        return bad("pitches without host_ptr");
    }
    let mut row_pitch = tight;
    if pitched && wanted.row_pitch != 0 {
        if wanted.row_pitch < tight || !wanted.row_pitch.is_multiple_of(element) {
            return bad("image_row_pitch is too small or no multiple of the pixel size");
        }
        row_pitch = wanted.row_pitch;
    }
    let rows = match dim {
        ImageDim::D2Array | ImageDim::D3 => wanted.height,
        ImageDim::D1Array => 1,
        _ => 0,
    };
    let mut slice_pitch = row_pitch.saturating_mul(rows);
    if pitched && wanted.slice_pitch != 0 && rows > 0 {
        if wanted.slice_pitch < slice_pitch || !wanted.slice_pitch.is_multiple_of(row_pitch) {
            return bad("image_slice_pitch is too small or no multiple of the row pitch");
        }
        slice_pitch = wanted.slice_pitch;
    }
    if !context.devices().iter().any(|device| fits(device, &desc)) {
        return err(
            cl::CL_INVALID_IMAGE_SIZE,
            "larger than every device of the context allows",
        );
    }
    if !context
        .devices()
        .iter()
        .any(|device| supports(device, &desc, flags))
    {
        return err(
            cl::CL_IMAGE_FORMAT_NOT_SUPPORTED,
            "no device of the context has this format for such an image",
        );
    }
    Ok(Checked {
        desc,
        row_pitch,
        slice_pitch,
    })
}

/// The flags of an image made from another memory object.
fn inherit(parent: cl_mem_flags, flags: cl_mem_flags) -> ClResult<cl_mem_flags> {
    super::buffer::sub_buffer_flags(parent, flags)
}

impl Mem {
    /// The part that images alone have. CL_INVALID_MEM_OBJECT for others.
    pub fn image(&self) -> ClResult<&Image> {
        match &self.image {
            Some(image) => Ok(image),
            None => err(cl::CL_INVALID_MEM_OBJECT, "not an image"),
        }
    }

    /// clCreateImage, clCreateImageWithProperties. `parent` is `mem_object` of the description.
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
        check_properties(&properties)?;
        if !context.devices().iter().any(|d| d.features().images) {
            return err(
                cl::CL_INVALID_OPERATION,
                "no device of the context supports images",
            );
        }
        let format = check_format(format)?;
        let flags = match parent {
            Some(parent) => {
                if !Arc::ptr_eq(parent.context(), context) {
                    return bad("mem_object is of another context");
                }
                if !host_ptr.is_null() {
                    return err(cl::CL_INVALID_HOST_PTR, "host_ptr with mem_object");
                }
                inherit(parent.flags, flags)?
            }
            None => check_flags(flags)?,
        };
        if parent.is_none() {
            check_host_ptr(flags, host_ptr)?;
        }
        let checked =
            check_description(context, format, wanted, flags, parent, !host_ptr.is_null())?;
        let desc = checked.desc;
        match parent {
            Some(parent) if parent.is_buffer() => {
                Self::image_of_buffer(parent, properties, flags, wanted.kind, &checked)
            }
            Some(parent) => Self::image_of_image(parent, properties, flags, &checked),
            None => {
                let used = if flags & cl::CL_MEM_USE_HOST_PTR != 0 {
                    host_ptr as usize
                } else {
                    0
                };
                let element = format.bytes();
                let image = Image {
                    desc,
                    backing: Backing::Own,
                    element,
                    row_pitch: checked.row_pitch,
                    slice_pitch: checked.slice_pitch,
                    texels: Texels::new(0, desc, None),
                    aliases: None,
                };
                let initial = (!host_ptr.is_null()).then(|| {
                    let (y, z) = image.steps(image.row_pitch, image.slice_pitch);
                    // SAFETY: the caller vouches for an image of these extents and pitches.
                    unsafe { transfer::packed(host_ptr as usize, extent(&desc), element, y, z) }
                });
                let devices = context.devices().len();
                let image = Image {
                    texels: Texels::new(devices, desc, initial.clone().filter(|_| devices > 1)),
                    ..image
                };
                if let (1, Some(device)) = (devices, context.devices().first()) {
                    let texels = image.texels.on(context, 0)?;
                    if let Some(bytes) = initial {
                        let all = ImageRegion {
                            origin: [0; 3],
                            size: extent(&desc),
                        };
                        transfer::fill_image(device, texels, &all, &bytes)?;
                    }
                }
                let [_, height, depth] = extent(&desc).map(|n| n as usize);
                let size = match desc.dim {
                    ImageDim::D1 | ImageDim::Buffer => image.row_pitch,
                    ImageDim::D1Array => image.slice_pitch * height,
                    ImageDim::D2 => image.row_pitch * height,
                    ImageDim::D2Array | ImageDim::D3 => image.slice_pitch * depth,
                };
                Ok(Object::new_cyclic(|me| {
                    Self::of_image(
                        me.as_ptr() as usize,
                        context,
                        wanted.kind,
                        flags,
                        properties,
                        (size, used),
                        (None, Store::absent()),
                        image,
                    )
                }))
            }
        }
    }

    #[allow(clippy::too_many_arguments)]
    fn of_image(
        handle: usize,
        context: &Ref<Context>,
        object_type: cl_mem_object_type,
        flags: cl_mem_flags,
        properties: Vec<cl_mem_properties>,
        (size, host_ptr): (usize, usize),
        (parent, store): (Option<Ref<Mem>>, Arc<Store>),
        image: Image,
    ) -> Self {
        let origin = match &parent {
            Some(parent) if parent.is_buffer() => parent.origin,
            _ => 0,
        };
        Self {
            context: context.clone(),
            object_type,
            flags,
            size,
            host_ptr,
            properties,
            parent,
            origin,
            store,
            image: Some(Box::new(image)),
            mappings: Mutex::default(),
            destructors: Mutex::default(),
            handle,
        }
    }

    fn image_of_buffer(
        buffer: &Ref<Mem>,
        properties: Vec<cl_mem_properties>,
        flags: cl_mem_flags,
        kind: cl_mem_object_type,
        checked: &Checked,
    ) -> ClResult<Ref<Self>> {
        let desc = checked.desc;
        let element = desc.format.bytes();
        let size = checked.row_pitch * desc.height as usize;
        // The last row need not be as long as the pitch.
        let needed = size - checked.row_pitch + desc.width as usize * element;
        if needed > buffer.size {
            return bad("the image is larger than its buffer");
        }
        let texels = desc.dim == ImageDim::Buffer;
        let image = Image {
            desc,
            backing: if texels {
                Backing::Texels
            } else {
                Backing::Rows
            },
            element,
            row_pitch: checked.row_pitch,
            slice_pitch: 0,
            texels: Texels::new(buffer.context.devices().len(), desc, None),
            aliases: None,
        };
        let store = (Some(buffer.clone()), Arc::clone(&buffer.store));
        Ok(Object::new_cyclic(|me| {
            Self::of_image(
                me.as_ptr() as usize,
                &buffer.context,
                kind,
                flags,
                properties,
                (needed, buffer.host_ptr),
                store,
                image,
            )
        }))
    }

    /// Only another view of the same texels: sRGB or not, depth or one channel.
    fn image_of_image(
        parent: &Ref<Mem>,
        properties: Vec<cl_mem_properties>,
        flags: cl_mem_flags,
        checked: &Checked,
    ) -> ClResult<Ref<Self>> {
        let Some(of) = &parent.image else {
            return bad("mem_object is neither buffer nor image");
        };
        let (desc, base) = (checked.desc, of.desc);
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
        if !compatible {
            return err(
                cl::CL_INVALID_IMAGE_FORMAT_DESCRIPTOR,
                "the format does not go with that of the image it is made from",
            );
        }
        if of.backing != Backing::Own {
            return bad("the image it is made from is made from a buffer");
        }
        let devices = parent.context.devices().len();
        let image = Image {
            desc,
            backing: Backing::Own,
            element: of.element,
            row_pitch: of.row_pitch,
            slice_pitch: of.slice_pitch,
            texels: Arc::clone(&of.texels),
            aliases: Some((0..devices).map(|_| OnceLock::new()).collect()),
        };
        let about = (Some(parent.clone()), Store::absent());
        Ok(Object::new_cyclic(|me| {
            Self::of_image(
                me.as_ptr() as usize,
                &parent.context,
                parent.object_type,
                flags,
                properties,
                (parent.size, parent.host_ptr),
                about,
                image,
            )
        }))
    }

    /// The texels on a device of the context, made if need be.
    pub fn texels(&self, device: usize) -> ClResult<Arc<dyn backend::Image>> {
        let image = self.image()?;
        let missing = || ClError::new(cl::CL_INVALID_DEVICE, "no such device in the context");
        let target = self.context.devices().get(device).ok_or_else(missing)?;
        if image.backing == Backing::Texels {
            let cell = image.texels.images.get(device).ok_or_else(missing)?;
            if let Some(made) = cell.get() {
                return Ok(made.clone());
            }
            let bytes = image.desc.width as usize * image.element;
            let slice = self.slice(device, 0, bytes as u64)?;
            let made = target.backend().texel_buffer(&slice, image.desc.format)?;
            return Ok(cell.get_or_init(|| made).clone());
        }
        let texels = image.texels.on(&self.context, device)?;
        let Some(aliases) = &image.aliases else {
            return Ok(texels.clone());
        };
        let cell = aliases.get(device).ok_or_else(missing)?;
        if let Some(made) = cell.get() {
            return Ok(made.clone());
        }
        let made = target.backend().alias_image(texels, image.desc.format)?;
        Ok(cell.get_or_init(|| made).clone())
    }

    /// As [`Store::prepare`], for all of any kind of memory object.
    pub fn prepare(&self, device: usize, write: bool) -> ClResult {
        let touch = if write { Touch::Modify } else { Touch::Read };
        self.prepare_part(device, 0..self.size as u64, touch)
    }

    /// As [`Store::prepare`], for bytes that count from the start of the object, or all of an image.
    pub fn prepare_part(&self, device: usize, range: Range<u64>, touch: Touch) -> ClResult {
        match &self.image {
            Some(image) if image.backing == Backing::Own => {
                let all = ImageRegion {
                    origin: [0; 3],
                    size: image.extent(),
                };
                image.texels.prepare(&self.context, device, &all, touch)
            }
            _ => self.prepare_bytes(device, range, touch),
        }
    }

    /// The same for a box of an image that has texels of its own; all of one that is made from a buffer.
    pub fn prepare_box(&self, device: usize, at: &ImageRegion, touch: Touch) -> ClResult {
        match &self.image {
            Some(image) if image.backing == Backing::Own => {
                image.texels.prepare(&self.context, device, at, touch)
            }
            _ => self.prepare(device, touch != Touch::Read),
        }
    }

    /// Whether images of this format and geometry work on a device, with the flags of this one.
    pub fn check_image(&self, device: &Device) -> ClResult {
        let image = self.image()?;
        if self.context.devices().len() == 1 {
            // It would not have been made.
            return Ok(());
        }
        if !fits(device, &image.desc) {
            return err(
                cl::CL_INVALID_IMAGE_SIZE,
                "the image is larger than the device allows",
            );
        }
        if !supports(device, &image.desc, self.flags) {
            return err(
                cl::CL_IMAGE_FORMAT_NOT_SUPPORTED,
                "the device does not have the image's format",
            );
        }
        Ok(())
    }

    /// clGetImageInfo.
    pub fn image_info(&self, param: cl_image_info, out: InfoOut<'_>) -> ClResult<Written> {
        let image = self.image()?;
        let desc = &image.desc;
        let only = |dims: &[ImageDim], value: u32| -> usize {
            if dims.contains(&desc.dim) {
                value as usize
            } else {
                0
            }
        };
        match param {
            cl::CL_IMAGE_FORMAT => out.write(cl_image_format {
                image_channel_order: desc.format.order,
                image_channel_data_type: desc.format.data,
            }),
            cl::CL_IMAGE_ELEMENT_SIZE => out.write(image.element),
            cl::CL_IMAGE_ROW_PITCH => out.write(image.row_pitch),
            cl::CL_IMAGE_SLICE_PITCH => out.write(image.slice_pitch),
            cl::CL_IMAGE_WIDTH => out.write(desc.width as usize),
            cl::CL_IMAGE_HEIGHT => out.write(only(
                &[ImageDim::D2, ImageDim::D2Array, ImageDim::D3],
                desc.height,
            )),
            cl::CL_IMAGE_DEPTH => out.write(only(&[ImageDim::D3], desc.depth)),
            cl::CL_IMAGE_ARRAY_SIZE => {
                out.write(only(&[ImageDim::D1Array, ImageDim::D2Array], desc.layers))
            }
            cl::CL_IMAGE_BUFFER => {
                out.write(self.parent.clone().filter(|parent| parent.is_buffer()))
            }
            cl::CL_IMAGE_NUM_MIP_LEVELS | cl::CL_IMAGE_NUM_SAMPLES => out.write(0u32),
            _ => unknown(param),
        }
    }
}
