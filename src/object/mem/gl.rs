//! Memory objects made from objects of OpenGL and images of EGL (cl_khr_gl_sharing, cl_khr_egl_image).
//!
//! Such an object has memory of its own on the device, and memory of the host beside it. Acquiring it reads the object of
//! OpenGL into the latter and writes that to the device, releasing it goes the other way (`queue::gl`).

use super::description::{check_devices, check_images, Description, Layout, Source};
use super::image::MemImage;
use super::store::Store;
use super::Mem;
use crate::backend::gl::functions::gl;
use crate::backend::gl::{Contents, Error, Gl, HostBytes, Imported, Name, Object, Texture};
use crate::backend::image::{ImageDim, PixelFormat};
use crate::backend::ImageDesc;
use crate::cl::{self, cl_gl_object_type, cl_gl_texture_info, cl_mem_flags, cl_mem_object_type};
use crate::error::{ensure, err, ClError, ClResult, OrErr};
use crate::handle::Ref;
use crate::object::context::Context;
use crate::object::info::{answer, InfoOut, Written};
use crate::object::sharing::of_gl;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

/// The object of OpenGL that a memory object was made from, and what is kept to copy it.
pub struct Shared {
    /// The context that reads and writes it.
    pub gl: Arc<Gl>,
    /// The object.
    pub object: Object,
    /// The image of EGL that the object is a texture of.
    image: Option<Imported>,
    bytes: OnceLock<HostBytes>,
}

impl Shared {
    fn new(gl: &Arc<Gl>, name: Name) -> ClResult<Self> {
        let object = gl.run(move |current| current.describe(name));
        Ok(Self {
            gl: gl.clone(),
            object: object.map_err(|error| of_gl(error, cl::CL_INVALID_GL_OBJECT))?,
            image: None,
            bytes: OnceLock::new(),
        })
    }

    /// Returns the memory of the host that contents go through, made at the first use.
    pub fn bytes(&self) -> ClResult<&HostBytes> {
        if let Some(known) = self.bytes.get() {
            return Ok(known);
        }
        let size = usize::try_from(self.object.size()).unwrap_or(usize::MAX);
        let made = HostBytes::new(size).map_err(|error| of_gl(error, 0))?;
        Ok(self.bytes.get_or_init(|| made))
    }

    /// Returns true if it was made from an image of EGL.
    pub fn is_egl_image(&self) -> bool {
        self.image.is_some()
    }

    /// Returns the error of a transfer.
    pub fn error(&self, error: Error) -> ClError {
        let object = match self.is_egl_image() {
            true => cl::CL_INVALID_EGL_OBJECT_KHR,
            false => cl::CL_INVALID_GL_OBJECT,
        };
        of_gl(error, object)
    }
}

/// Checks the flags of a memory object that is made from one of OpenGL.
fn check_flags(flags: cl_mem_flags) -> ClResult<cl_mem_flags> {
    const KNOWN: cl_mem_flags =
        cl::CL_MEM_READ_ONLY | cl::CL_MEM_WRITE_ONLY | cl::CL_MEM_READ_WRITE;
    ensure!(
        flags & !KNOWN == 0,
        cl::CL_INVALID_VALUE,
        "flags other than those of access"
    );
    super::buffer::check_flags(flags)
}

fn object_type_of(dim: ImageDim) -> cl_mem_object_type {
    match dim {
        ImageDim::D1 => cl::CL_MEM_OBJECT_IMAGE1D,
        ImageDim::D1Array => cl::CL_MEM_OBJECT_IMAGE1D_ARRAY,
        ImageDim::Buffer => cl::CL_MEM_OBJECT_IMAGE1D_BUFFER,
        ImageDim::D2 => cl::CL_MEM_OBJECT_IMAGE2D,
        ImageDim::D2Array => cl::CL_MEM_OBJECT_IMAGE2D_ARRAY,
        ImageDim::D3 => cl::CL_MEM_OBJECT_IMAGE3D,
    }
}

/// Returns the layout of an image with this description, packed.
fn layout_of(desc: &ImageDesc, source: Source) -> ClResult<Layout> {
    let wanted = Description {
        kind: object_type_of(desc.dim),
        width: desc.width as usize,
        height: desc.height as usize,
        depth: desc.depth as usize,
        array_size: desc.layers as usize,
        row_pitch: 0,
        slice_pitch: 0,
        mip_levels: 0,
        samples: 0,
    };
    Layout::new(desc.format, &wanted, source)
}

impl Mem {
    /// Implements clCreateFromGLBuffer.
    pub fn of_gl_buffer(
        context: &Ref<Context>,
        flags: cl_mem_flags,
        buffer: u32,
    ) -> ClResult<Ref<Self>> {
        let gl = context.sharing.gl()?;
        let flags = check_flags(flags)?;
        Self::of_gl(context, flags, Shared::new(gl, Name::Buffer(buffer))?)
    }

    /// Implements clCreateFromGLTexture, and by `dims` those of 2D and 3D textures alone.
    pub fn of_gl_texture(
        context: &Ref<Context>,
        flags: cl_mem_flags,
        texture: Texture,
        dims: Option<ImageDim>,
    ) -> ClResult<Ref<Self>> {
        let gl = context.sharing.gl()?;
        let flags = check_flags(flags)?;
        check_images(context)?;
        let dim = texture.dim().or_err(
            cl::CL_INVALID_VALUE,
            "the target is none of a texture that can be shared",
        )?;
        ensure!(
            dims.is_none_or(|wanted| wanted == dim),
            cl::CL_INVALID_VALUE,
            "the target is one of textures of another geometry"
        );
        Self::of_gl(context, flags, Shared::new(gl, Name::Texture(texture))?)
    }

    /// Implements clCreateFromGLRenderbuffer.
    pub fn of_gl_renderbuffer(
        context: &Ref<Context>,
        flags: cl_mem_flags,
        name: u32,
    ) -> ClResult<Ref<Self>> {
        let gl = context.sharing.gl()?;
        let flags = check_flags(flags)?;
        check_images(context)?;
        Self::of_gl(context, flags, Shared::new(gl, Name::Renderbuffer(name))?)
    }

    /// Implements clCreateFromEGLImageKHR.
    pub fn of_egl_image(
        context: &Ref<Context>,
        display: usize,
        image: usize,
        flags: cl_mem_flags,
    ) -> ClResult<Ref<Self>> {
        let flags = check_flags(flags)?;
        check_images(context)?;
        let gl = context.sharing.of_display(display)?;
        let imported = Imported::new(&gl, image);
        let (image, object) =
            imported.map_err(|error| of_gl(error, cl::CL_INVALID_EGL_OBJECT_KHR))?;
        let shared = Shared {
            gl,
            object,
            image: Some(image),
            bytes: OnceLock::new(),
        };
        Self::of_gl(context, flags, shared)
    }

    fn of_gl(context: &Ref<Context>, flags: cl_mem_flags, shared: Shared) -> ClResult<Ref<Self>> {
        let all = &context.memories;
        match shared.object.contents {
            Contents::Bytes { size, texels, .. } => {
                let bytes = usize::try_from(size).unwrap_or(usize::MAX);
                super::buffer::check_fits(context, bytes)?;
                let layout = texels.map(|format| -> ClResult<Layout> {
                    let desc = ImageDesc {
                        dim: ImageDim::Buffer,
                        format,
                        width: u32::try_from(size / format.bytes() as u64).unwrap_or(u32::MAX),
                        height: 1,
                        depth: 1,
                        layers: 1,
                    };
                    let layout = layout_of(&desc, Source::Buffer)?;
                    check_devices(context, &desc, flags)?;
                    Ok(layout)
                });
                let layout = layout.transpose()?;
                let store = Store::new(all, size, flags, 0, None)?;
                Ok(Self::make(context, flags, store, |mem| {
                    if let Some(layout) = layout {
                        mem.object_type = cl::CL_MEM_OBJECT_IMAGE1D_BUFFER;
                        mem.image = Some(Box::new(MemImage::over(all, layout)));
                    }
                    mem.shared = Some(Box::new(shared));
                }))
            }
            Contents::Pixels { desc, format } => {
                // "but only require read support"
                ensure!(
                    format.stencil.is_none() || flags & cl::CL_MEM_READ_ONLY != 0,
                    cl::CL_INVALID_IMAGE_FORMAT_DESCRIPTOR,
                    "images of depth and stencil are read only"
                );
                let layout = layout_of(&desc, Source::Nothing)?;
                check_devices(context, &desc, flags)?;
                let (image, size) = MemImage::empty(context, layout)?;
                Ok(Self::make(context, flags, Arc::default(), |mem| {
                    mem.object_type = object_type_of(desc.dim);
                    mem.size = size;
                    mem.image = Some(Box::new(image));
                    mem.shared = Some(Box::new(shared));
                }))
            }
        }
    }

    /// Returns the channel data type of an image of the channel order CL_DEPTH_STENCIL, whose texels are the depths.
    pub fn depth_stencil(&self) -> Option<cl::cl_channel_type> {
        match self.shared.as_deref()?.object.contents {
            Contents::Pixels { format, .. } => format.stencil,
            Contents::Bytes { .. } => None,
        }
    }

    /// Returns the format of an image as the application knows it.
    pub fn format(&self) -> ClResult<PixelFormat> {
        let format = self.image()?.desc.format;
        Ok(self.depth_stencil().map_or(format, |data| PixelFormat {
            order: cl::CL_DEPTH_STENCIL,
            data,
        }))
    }

    /// Returns what it has of an object of OpenGL or an image of EGL, by `egl`. Fails if it was made from none.
    pub fn shared_with(&self, egl: bool) -> ClResult<&Shared> {
        let shared = self.shared.as_deref();
        let (code, what) = match egl {
            true => (
                cl::CL_INVALID_EGL_OBJECT_KHR,
                "the object was not made from an image of EGL",
            ),
            false => (
                cl::CL_INVALID_GL_OBJECT,
                "the object was not made from one of OpenGL",
            ),
        };
        (shared.filter(|shared| shared.is_egl_image() == egl)).or_err(code, what)
    }

    /// Returns what it has of an object of OpenGL or an image of EGL, if it was made from one.
    pub fn any_shared(&self) -> Option<&Shared> {
        self.shared.as_deref()
    }

    /// Returns true if what OpenGL has of it is the newest: nothing has written to it since it was made.
    pub fn is_unchanged(&self) -> bool {
        self.flags & cl::CL_MEM_READ_ONLY != 0 && !self.written.load(Ordering::Relaxed)
    }

    /// Implements clGetGLObjectInfo.
    pub fn gl_object(&self) -> ClResult<(cl_gl_object_type, u32)> {
        Ok(match self.shared_with(false)?.object.name {
            Name::Buffer(name) => (cl::CL_GL_OBJECT_BUFFER, name),
            Name::Renderbuffer(name) => (cl::CL_GL_OBJECT_RENDERBUFFER, name),
            Name::Texture(texture) => {
                let kind = match texture.target {
                    gl::TEXTURE_1D => cl::CL_GL_OBJECT_TEXTURE1D,
                    gl::TEXTURE_1D_ARRAY => cl::CL_GL_OBJECT_TEXTURE1D_ARRAY,
                    gl::TEXTURE_2D_ARRAY => cl::CL_GL_OBJECT_TEXTURE2D_ARRAY,
                    gl::TEXTURE_3D => cl::CL_GL_OBJECT_TEXTURE3D,
                    gl::TEXTURE_BUFFER => cl::CL_GL_OBJECT_TEXTURE_BUFFER,
                    _ => cl::CL_GL_OBJECT_TEXTURE2D,
                };
                (kind, texture.name)
            }
        })
    }

    /// Implements clGetGLTextureInfo.
    pub fn gl_texture_info(
        &self,
        param: cl_gl_texture_info,
        out: InfoOut<'_>,
    ) -> ClResult<Written> {
        let Name::Texture(texture) = self.shared_with(false)?.object.name else {
            return err(cl::CL_INVALID_GL_OBJECT, "not made from a texture");
        };
        answer! { param, out;
            CL_GL_TEXTURE_TARGET => texture.target,
            CL_GL_MIPMAP_LEVEL => texture.level,
        }
    }
}
