//! Objects of OpenGL: what they are, and their contents from and to memory of the host.
//!
//! An object is described anew before each transfer: the application may have deleted it, or given it other storage,
//! which is undefined but may not end the program.
//!
//! Buffers are copied by way of a buffer of our own, whatever their usage and maps are. Textures are read by glGetTexImage,
//! where there is that, otherwise as attachments of a framebuffer, layer by layer, as are renderbuffers; they are written by
//! glTexSubImage. A renderbuffer is written by way of a texture of our own.

use super::functions::{call, gl, Enum, Int, Uint};
use super::pixels::{Format, HostBytes};
use super::{Current, Error, Result};
use crate::backend::image::{ImageDim, PixelFormat};
use crate::backend::ImageDesc;
use std::ptr::null;

/// An image of a texture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Texture {
    /// The kind of texture, or the face of a cube.
    pub target: Enum,
    /// The mipmap level.
    pub level: Int,
    /// The name.
    pub name: Uint,
}

/// The name of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Name {
    /// A buffer.
    Buffer(Uint),
    /// An image of a texture.
    Texture(Texture),
    /// A renderbuffer.
    Renderbuffer(Uint),
}

/// The contents of an object.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Contents {
    /// Bytes of a buffer.
    Bytes {
        /// The buffer.
        buffer: Uint,
        /// The first byte.
        offset: u64,
        /// The number of bytes.
        size: u64,
        /// The pixels of a buffer texture.
        texels: Option<PixelFormat>,
    },
    /// Pixels.
    Pixels {
        /// Geometry, format and extents.
        desc: ImageDesc,
        /// The format of transfers.
        format: Format,
    },
}

/// An object and what it is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Object {
    /// Its name.
    pub name: Name,
    /// Its contents.
    pub contents: Contents,
}

impl Object {
    /// Returns the bytes of the contents in memory of the host, pixels packed.
    pub fn size(&self) -> u64 {
        match self.contents {
            Contents::Bytes { size, .. } => size,
            Contents::Pixels { desc, .. } => {
                let extents = [desc.width, desc.height, desc.depth, desc.layers];
                let bytes = desc.format.bytes() as u64;
                extents
                    .iter()
                    .fold(bytes, |all, n| all.saturating_mul(u64::from(*n)))
            }
        }
    }
}

impl Texture {
    /// Returns the geometry of its images, if the target is one of textures that can be shared.
    pub fn dim(self) -> Option<ImageDim> {
        self.geometry().ok().map(|(_, dim)| dim)
    }

    /// Returns the target that the texture is bound to, and the geometry.
    fn geometry(self) -> Result<(Enum, ImageDim)> {
        Ok(match self.target {
            gl::TEXTURE_1D => (gl::TEXTURE_1D, ImageDim::D1),
            gl::TEXTURE_1D_ARRAY => (gl::TEXTURE_1D_ARRAY, ImageDim::D1Array),
            gl::TEXTURE_2D => (gl::TEXTURE_2D, ImageDim::D2),
            gl::TEXTURE_RECTANGLE => (gl::TEXTURE_RECTANGLE, ImageDim::D2),
            gl::TEXTURE_CUBE_MAP_POSITIVE_X..=gl::TEXTURE_CUBE_MAP_NEGATIVE_Z => {
                (gl::TEXTURE_CUBE_MAP, ImageDim::D2)
            }
            gl::TEXTURE_2D_ARRAY => (gl::TEXTURE_2D_ARRAY, ImageDim::D2Array),
            gl::TEXTURE_3D => (gl::TEXTURE_3D, ImageDim::D3),
            gl::TEXTURE_BUFFER => (gl::TEXTURE_BUFFER, ImageDim::Buffer),
            _ => return Err(Error::NoTarget),
        })
    }
}

/// The images of a framebuffer that are read one by one.
#[derive(Clone, Copy)]
enum Attached {
    Texture(Texture, ImageDim),
    Renderbuffer(Uint),
}

impl Current {
    /// Returns what an object is.
    pub fn describe(&self, name: Name) -> Result<Object> {
        self.clear_errors();
        let contents = match name {
            Name::Buffer(name) => self.buffer(name)?,
            Name::Texture(texture) => self.texture(texture)?,
            Name::Renderbuffer(name) => self.renderbuffer(name)?,
        };
        let object = Object { name, contents };
        self.check("a query")?;
        if let Contents::Pixels { desc, format } = contents {
            if let Some(attached) = self.attached(&object, desc.dim) {
                self.probe(attached, format)?;
            }
        }
        Ok(object)
    }

    fn buffer(&self, name: Uint) -> Result<Contents> {
        let functions = &self.functions;
        if call!(functions, IsBuffer(name)) == 0 {
            return Err(Error::NoObject);
        }
        call!(functions, BindBuffer(gl::COPY_READ_BUFFER, name));
        let mut size = 0;
        call!(
            functions,
            GetBufferParameteri64v(gl::COPY_READ_BUFFER, gl::BUFFER_SIZE, &mut size)
        );
        call!(functions, BindBuffer(gl::COPY_READ_BUFFER, 0));
        match u64::try_from(size) {
            Ok(size) if size > 0 => Ok(Contents::Bytes {
                buffer: name,
                offset: 0,
                size,
                texels: None,
            }),
            _ => Err(Error::NoObject),
        }
    }

    fn texture(&self, texture: Texture) -> Result<Contents> {
        let functions = &self.functions;
        let (target, dim) = texture.geometry()?;
        if texture.level < 0 {
            return Err(Error::NoLevel);
        }
        if call!(functions, IsTexture(texture.name)) == 0 {
            return Err(Error::NoObject);
        }
        call!(functions, BindTexture(target, texture.name));
        // It is another kind of texture, or there is no such kind here.
        if self.clear_errors() != 0 {
            return Err(Error::NoObject);
        }
        let found = match dim {
            ImageDim::Buffer => self.buffer_texture(texture),
            _ => self.image_of(texture, target, dim),
        };
        call!(functions, BindTexture(target, 0));
        found
    }

    fn level_parameter(&self, target: Enum, level: Int, name: Enum) -> Result<Int> {
        let mut value = 0;
        call!(
            self.functions,
            GetTexLevelParameteriv(target, level, name, &mut value)
        );
        Ok(value)
    }

    /// Describes an image of the texture that is bound.
    fn image_of(&self, texture: Texture, target: Enum, dim: ImageDim) -> Result<Contents> {
        let level = texture.level;
        let get = |name| self.level_parameter(texture.target, level, name);
        let parameter = |name| {
            let mut value = 0;
            call!(self.functions, GetTexParameteriv(target, name, &mut value));
            Ok(value)
        };
        let [first, last] = [
            parameter(gl::TEXTURE_BASE_LEVEL)?,
            parameter(gl::TEXTURE_MAX_LEVEL)?,
        ];
        if level < first || level > last {
            return Err(Error::NoLevel);
        }
        let [width, height, depth] = [
            get(gl::TEXTURE_WIDTH)?,
            get(gl::TEXTURE_HEIGHT)?,
            get(gl::TEXTURE_DEPTH)?,
        ];
        if self.clear_errors() != 0 {
            return Err(Error::NoLevel);
        }
        if width <= 0 || height <= 0 {
            // Of a texture that has images, the level is beyond the last.
            let whole = self.level_parameter(texture.target, first, gl::TEXTURE_WIDTH)?;
            return Err(match level > first && whole > 0 {
                true => Error::NoLevel,
                false => Error::NoObject,
            });
        }
        if !self.about.es && get(gl::TEXTURE_BORDER)? > 0 {
            return Err(Error::Unshared("a texture with a border"));
        }
        // Core profiles have no borders to ask for.
        self.clear_errors();
        let format = Format::of(
            get(gl::TEXTURE_INTERNAL_FORMAT)? as Enum,
            get(gl::TEXTURE_RED_SIZE)?,
            get(gl::TEXTURE_ALPHA_SIZE)?,
        )?;
        let extent = |n: Int| n.max(1) as u32;
        let (width, height, depth) = (extent(width), extent(height), extent(depth));
        let mut desc = ImageDesc {
            dim,
            format: format.pixel,
            width,
            height,
            depth: 1,
            layers: 1,
        };
        match dim {
            ImageDim::D1Array => (desc.height, desc.layers) = (1, height),
            ImageDim::D2Array => desc.layers = depth,
            ImageDim::D3 => desc.depth = depth,
            _ => {}
        }
        Ok(Contents::Pixels { desc, format })
    }

    /// Describes the buffer texture that is bound.
    fn buffer_texture(&self, texture: Texture) -> Result<Contents> {
        if texture.level != 0 {
            return Err(Error::NoLevel);
        }
        let get = |name| self.level_parameter(gl::TEXTURE_BUFFER, 0, name);
        let name = get(gl::TEXTURE_BUFFER_DATA_STORE_BINDING)? as Uint;
        let internal = get(gl::TEXTURE_INTERNAL_FORMAT)? as Enum;
        let mut range = [
            get(gl::TEXTURE_BUFFER_OFFSET)?,
            get(gl::TEXTURE_BUFFER_SIZE)?,
        ];
        // Without ranges it is all of the buffer.
        if self.clear_errors() != 0 {
            range = [0, 0];
        }
        let Contents::Bytes { size: whole, .. } = self.buffer(name)? else {
            return Err(Error::NoObject);
        };
        let pixel = Format::of(internal, 0, 0)?.pixel;
        let [offset, size] = range.map(|n| u64::try_from(n).unwrap_or(0));
        let size = match size {
            0 => whole.saturating_sub(offset),
            size => size.min(whole.saturating_sub(offset)),
        };
        let element = pixel.bytes() as u64;
        match size / element * element {
            0 => Err(Error::NoObject),
            size => Ok(Contents::Bytes {
                buffer: name,
                offset,
                size,
                texels: Some(pixel),
            }),
        }
    }

    fn renderbuffer(&self, name: Uint) -> Result<Contents> {
        let functions = &self.functions;
        if call!(functions, IsRenderbuffer(name)) == 0 {
            return Err(Error::NoObject);
        }
        call!(functions, BindRenderbuffer(gl::RENDERBUFFER, name));
        let get = |name| {
            let mut value = 0;
            call!(
                functions,
                GetRenderbufferParameteriv(gl::RENDERBUFFER, name, &mut value)
            );
            Ok(value)
        };
        let [width, height, samples] = [
            get(gl::RENDERBUFFER_WIDTH)?,
            get(gl::RENDERBUFFER_HEIGHT)?,
            get(gl::RENDERBUFFER_SAMPLES)?,
        ];
        let internal = get(gl::RENDERBUFFER_INTERNAL_FORMAT)? as Enum;
        let bits = [
            get(gl::RENDERBUFFER_RED_SIZE)?,
            get(gl::RENDERBUFFER_ALPHA_SIZE)?,
        ];
        call!(functions, BindRenderbuffer(gl::RENDERBUFFER, 0));
        if width <= 0 || height <= 0 {
            return Err(Error::NoObject);
        }
        if samples > 0 {
            return Err(Error::Unshared("a renderbuffer with samples"));
        }
        let format = Format::of(internal, bits[0], bits[1])?;
        // "can only be created using the clCreateFromGLTexture API"
        if format.stencil.is_some() {
            return Err(Error::NoFormat(internal));
        }
        let desc = ImageDesc {
            dim: ImageDim::D2,
            format: format.pixel,
            width: width as u32,
            height: height as u32,
            depth: 1,
            layers: 1,
        };
        Ok(Contents::Pixels { desc, format })
    }

    /// Returns the images that are read as attachments, if glGetTexImage does not do it.
    fn attached(&self, object: &Object, dim: ImageDim) -> Option<Attached> {
        match object.name {
            Name::Renderbuffer(name) => Some(Attached::Renderbuffer(name)),
            Name::Texture(texture) if self.about.es => Some(Attached::Texture(texture, dim)),
            _ => None,
        }
    }

    /// Fails with [`Error::NoObject`] if an object is no longer what it was.
    fn check_same(&self, object: &Object) -> Result {
        match self.describe(object.name) {
            Ok(now) if now == *object => Ok(()),
            _ => Err(Error::NoObject),
        }
    }

    /// Reads the contents of an object into memory of the host, which has that size.
    pub fn read(&self, object: &Object, to: &HostBytes) -> Result {
        self.check_same(object)?;
        if object.size() > to.size() as u64 {
            return Err(Error::NoObject);
        }
        match object.contents {
            Contents::Bytes {
                buffer,
                offset,
                size,
                ..
            } => self.read_buffer(buffer, offset, size, to),
            Contents::Pixels { desc, format } => {
                match (self.attached(object, desc.dim), object.name) {
                    (Some(attached), _) => self.read_attached(attached, &desc, format, to),
                    (None, Name::Texture(texture)) => self.read_texture(texture, format, to),
                    _ => Err(Error::NoObject),
                }
            }
        }?;
        self.check("reading")
    }

    /// Writes the contents of an object from memory of the host, which has that size, and waits until they are there.
    pub fn write(&self, object: &Object, from: &HostBytes) -> Result {
        self.check_same(object)?;
        if object.size() > from.size() as u64 {
            return Err(Error::NoObject);
        }
        match (object.contents, object.name) {
            (
                Contents::Bytes {
                    buffer,
                    offset,
                    size,
                    ..
                },
                _,
            ) => self.write_buffer(buffer, offset, size, from),
            (Contents::Pixels { desc, format }, Name::Renderbuffer(name)) => {
                self.write_renderbuffer(name, &desc, format, from)
            }
            (Contents::Pixels { desc, format }, Name::Texture(texture)) => {
                self.write_texture(texture, &desc, format, from)
            }
            (Contents::Pixels { .. }, Name::Buffer(_)) => Err(Error::NoObject),
        }?;
        call!(self.functions, Finish());
        self.check("writing")
    }

    /// Runs `work` with a buffer of our own, filled or not, bound to GL_COPY_WRITE_BUFFER, and another one to
    /// GL_COPY_READ_BUFFER.
    fn beside_buffer(
        &self,
        buffer: Uint,
        size: u64,
        contents: Option<&HostBytes>,
        work: impl FnOnce() -> Result,
    ) -> Result {
        let functions = &self.functions;
        let size = isize::try_from(size).map_err(|_| Error::OutOfMemory)?;
        let mut own = 0;
        call!(functions, GenBuffers(1, &mut own));
        call!(functions, BindBuffer(gl::COPY_WRITE_BUFFER, own));
        call!(functions, BindBuffer(gl::COPY_READ_BUFFER, buffer));
        let (data, usage) = match contents {
            Some(bytes) => (bytes.address() as *const _, gl::STREAM_DRAW),
            None => (null(), gl::STREAM_READ),
        };
        call!(
            functions,
            BufferData(gl::COPY_WRITE_BUFFER, size, data, usage)
        );
        let done = self.check("a buffer").and_then(|()| work());
        call!(functions, BindBuffer(gl::COPY_READ_BUFFER, 0));
        call!(functions, BindBuffer(gl::COPY_WRITE_BUFFER, 0));
        call!(functions, DeleteBuffers(1, &own));
        done
    }

    fn read_buffer(&self, buffer: Uint, offset: u64, size: u64, to: &HostBytes) -> Result {
        let functions = &self.functions;
        self.beside_buffer(buffer, size, None, || {
            let (read, write) = (gl::COPY_READ_BUFFER, gl::COPY_WRITE_BUFFER);
            let (at, size) = (offset as isize, size as isize);
            call!(functions, CopyBufferSubData(read, write, at, 0, size));
            self.check("a copy of a buffer")?;
            let mapped = call!(functions, MapBufferRange(write, 0, size, gl::MAP_READ_BIT));
            if mapped.is_null() {
                return Err(Error::Refused("a map of a buffer"));
            }
            // SAFETY: so many bytes are mapped, and there are so many at the destination, which is memory of ours.
            unsafe {
                crate::util::copy::copy(mapped as usize, to.address(), size as usize);
            }
            call!(functions, UnmapBuffer(write));
            Ok(())
        })
    }

    fn write_buffer(&self, buffer: Uint, offset: u64, size: u64, from: &HostBytes) -> Result {
        self.beside_buffer(buffer, size, Some(from), || {
            let (own, theirs) = (gl::COPY_WRITE_BUFFER, gl::COPY_READ_BUFFER);
            let (at, size) = (offset as isize, size as isize);
            call!(self.functions, CopyBufferSubData(own, theirs, 0, at, size));
            Ok(())
        })
    }

    fn read_texture(&self, texture: Texture, format: Format, to: &HostBytes) -> Result {
        let (target, _) = texture.geometry()?;
        let functions = &self.functions;
        call!(functions, BindTexture(target, texture.name));
        call!(
            functions,
            GetTexImage(
                texture.target,
                texture.level,
                format.format,
                format.data,
                to.address() as *mut _,
            )
        );
        call!(functions, BindTexture(target, 0));
        Ok(())
    }

    fn write_texture(
        &self,
        texture: Texture,
        desc: &ImageDesc,
        format: Format,
        from: &HostBytes,
    ) -> Result {
        let (bound, dim) = texture.geometry()?;
        let functions = &self.functions;
        call!(functions, BindTexture(bound, texture.name));
        let (target, level) = (texture.target, texture.level);
        let [w, h, d, layers] =
            [desc.width, desc.height, desc.depth, desc.layers].map(|n| n as Int);
        let (layout, data) = (format.format, format.data);
        let bytes = from.address() as *const _;
        match dim {
            ImageDim::D1 => {
                call!(
                    functions,
                    TexSubImage1D(target, level, 0, w, layout, data, bytes)
                )
            }
            ImageDim::D1Array => call!(
                functions,
                TexSubImage2D(target, level, 0, 0, w, layers, layout, data, bytes)
            ),
            ImageDim::D2 => call!(
                functions,
                TexSubImage2D(target, level, 0, 0, w, h, layout, data, bytes)
            ),
            ImageDim::D2Array | ImageDim::D3 => call!(
                functions,
                TexSubImage3D(
                    target,
                    level,
                    0,
                    0,
                    0,
                    w,
                    h,
                    d.max(layers),
                    layout,
                    data,
                    bytes
                )
            ),
            ImageDim::Buffer => return Err(Error::NoTarget),
        }
        call!(functions, BindTexture(bound, 0));
        Ok(())
    }

    /// Runs `work` with framebuffers of our own bound, one to read from and one to draw to.
    fn with_framebuffers(&self, work: impl FnOnce() -> Result) -> Result {
        let functions = &self.functions;
        let mut own = [0; 2];
        call!(functions, GenFramebuffers(2, own.as_mut_ptr()));
        call!(functions, BindFramebuffer(gl::READ_FRAMEBUFFER, own[0]));
        call!(functions, BindFramebuffer(gl::DRAW_FRAMEBUFFER, own[1]));
        let done = work();
        call!(functions, BindFramebuffer(gl::READ_FRAMEBUFFER, 0));
        call!(functions, BindFramebuffer(gl::DRAW_FRAMEBUFFER, 0));
        call!(functions, DeleteFramebuffers(2, own.as_ptr()));
        done
    }

    /// Attaches one layer to a framebuffer.
    fn attach(&self, to: Enum, attached: Attached, layer: Int, format: Format) -> Result {
        let functions = &self.functions;
        let point = match format.is_depth() {
            true => gl::DEPTH_ATTACHMENT,
            false => gl::COLOR_ATTACHMENT0,
        };
        match attached {
            Attached::Renderbuffer(name) => call!(
                functions,
                FramebufferRenderbuffer(to, point, gl::RENDERBUFFER, name)
            ),
            Attached::Texture(
                Texture {
                    target,
                    level,
                    name,
                },
                ImageDim::D2,
            ) => {
                call!(
                    functions,
                    FramebufferTexture2D(to, point, target, name, level)
                )
            }
            Attached::Texture(Texture { level, name, .. }, _) => {
                call!(
                    functions,
                    FramebufferTextureLayer(to, point, name, level, layer)
                )
            }
        }
        let selected = match format.is_depth() {
            true => 0,
            false => gl::COLOR_ATTACHMENT0,
        };
        match to {
            gl::READ_FRAMEBUFFER => call!(functions, ReadBuffer(selected)),
            _ => call!(functions, DrawBuffers(1, &selected)),
        }
        if call!(functions, CheckFramebufferStatus(to)) != gl::FRAMEBUFFER_COMPLETE {
            return Err(Error::NoFormat(format.internal));
        }
        Ok(())
    }

    /// Fails with [`Error::NoFormat`] unless the first pixel can be read as an attachment.
    fn probe(&self, attached: Attached, format: Format) -> Result {
        let mut pixel = [0u32; 4];
        let read = self.with_framebuffers(|| {
            self.attach(gl::READ_FRAMEBUFFER, attached, 0, format)?;
            call!(
                self.functions,
                ReadPixels(
                    0,
                    0,
                    1,
                    1,
                    format.format,
                    format.data,
                    pixel.as_mut_ptr().cast()
                )
            );
            Ok(())
        });
        read.and_then(|()| self.check("reading a pixel"))
            .map_err(|_| Error::NoFormat(format.internal))
    }

    fn read_attached(
        &self,
        attached: Attached,
        desc: &ImageDesc,
        format: Format,
        to: &HostBytes,
    ) -> Result {
        let (width, height) = (desc.width as Int, desc.height as Int);
        let layer_bytes = desc.width as usize * desc.height as usize * desc.format.bytes();
        self.with_framebuffers(|| {
            for layer in 0..desc.depth.max(desc.layers) as usize {
                self.attach(gl::READ_FRAMEBUFFER, attached, layer as Int, format)?;
                let place = (to.address() + layer * layer_bytes) as *mut _;
                call!(
                    self.functions,
                    ReadPixels(0, 0, width, height, format.format, format.data, place)
                );
            }
            Ok(())
        })
    }

    fn write_renderbuffer(
        &self,
        name: Uint,
        desc: &ImageDesc,
        format: Format,
        from: &HostBytes,
    ) -> Result {
        let functions = &self.functions;
        let (width, height) = (desc.width as Int, desc.height as Int);
        let mut own = Texture {
            target: gl::TEXTURE_2D,
            level: 0,
            name: 0,
        };
        call!(functions, GenTextures(1, &mut own.name));
        call!(functions, BindTexture(own.target, own.name));
        call!(
            functions,
            TexStorage2D(own.target, 1, format.internal, width, height)
        );
        call!(functions, BindTexture(own.target, 0));
        let written = (self.write_texture(own, desc, format, from))
            .and_then(|()| self.check("a texture for a renderbuffer"))
            .and_then(|()| {
                self.with_framebuffers(|| {
                    let texture = Attached::Texture(own, ImageDim::D2);
                    self.attach(gl::READ_FRAMEBUFFER, texture, 0, format)?;
                    let theirs = Attached::Renderbuffer(name);
                    self.attach(gl::DRAW_FRAMEBUFFER, theirs, 0, format)?;
                    let mask = match format.is_depth() {
                        true => gl::DEPTH_BUFFER_BIT,
                        false => gl::COLOR_BUFFER_BIT,
                    };
                    call!(
                        functions,
                        BlitFramebuffer(
                            0,
                            0,
                            width,
                            height,
                            0,
                            0,
                            width,
                            height,
                            mask,
                            gl::NEAREST,
                        )
                    );
                    Ok(())
                })
            });
        call!(functions, DeleteTextures(1, &own.name));
        written
    }
}
