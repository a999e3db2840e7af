//! Contexts of OpenGL for tests: EGL without a window (Mesa's surfaceless platform), GLX with an X server of the test's own, and
//! contexts of OpenCL that share with them.

use libloading::Library;
use pumice_tests::sys::*;
use pumice_tests::{
    call, create, first_device, left_out, ok, platform, Buffer, Context, Event, Queue, Setup,
};
use std::ffi::{c_char, c_int, c_uint, c_void, CStr, CString};
use std::ops::Deref;
use std::ptr::{null, null_mut};
use std::sync::OnceLock;

pub type Pointer = *mut c_void;

/// A table of functions of a library.
macro_rules! functions {
    ($(#[$doc:meta])* $all:ident: $($name:ident: fn($($arg:ty),*) $(-> $ret:ty)?;)*) => {
        $(#[$doc])*
        #[allow(non_snake_case)]
        pub struct $all {
            $(pub $name: unsafe extern "C" fn($($arg),*) $(-> $ret)?,)*
        }

        impl $all {
            /// Looks the functions up; a missing one is null, and not to be called.
            pub fn load(prefix: &str, address: impl Fn(&CStr) -> Pointer) -> Self {
                Self {
                    $($name: {
                        let name = CString::new(format!("{prefix}{}", stringify!($name))).unwrap();
                        let found = address(&name);
                        assert!(!found.is_null(), "{name:?}");
                        // SAFETY: the function of this name has this type.
                        unsafe { std::mem::transmute::<Pointer, unsafe extern "C" fn($($arg),*) $(-> $ret)?>(found) }
                    },)*
                }
            }
        }
    };
}
pub(crate) use functions;

functions! {
    /// Functions of EGL.
    Egl:
    GetProcAddress: fn(*const c_char) -> Pointer;
    GetPlatformDisplay: fn(c_uint, Pointer, *const isize) -> Pointer;
    Initialize: fn(Pointer, *mut c_int, *mut c_int) -> c_uint;
    BindAPI: fn(c_uint) -> c_uint;
    ChooseConfig: fn(Pointer, *const c_int, *mut Pointer, c_int, *mut c_int) -> c_uint;
    CreateContext: fn(Pointer, Pointer, Pointer, *const c_int) -> Pointer;
    DestroyContext: fn(Pointer, Pointer) -> c_uint;
    MakeCurrent: fn(Pointer, Pointer, Pointer, Pointer) -> c_uint;
    CreateImage: fn(Pointer, Pointer, c_uint, Pointer, *const isize) -> Pointer;
    DestroyImage: fn(Pointer, Pointer) -> c_uint;
    CreateSync: fn(Pointer, c_uint, *const isize) -> Pointer;
    DestroySync: fn(Pointer, Pointer) -> c_uint;
}

functions! {
    /// Functions of OpenGL.
    Gl:
    GetError: fn() -> c_uint;
    Finish: fn();
    PixelStorei: fn(c_uint, c_int);
    ClearColor: fn(f32, f32, f32, f32);
    Clear: fn(c_uint);
    GenBuffers: fn(c_int, *mut c_uint);
    DeleteBuffers: fn(c_int, *const c_uint);
    BindBuffer: fn(c_uint, c_uint);
    BufferData: fn(c_uint, isize, *const c_void, c_uint);
    BufferStorage: fn(c_uint, isize, *const c_void, c_uint);
    MapBufferRange: fn(c_uint, isize, isize, c_uint) -> Pointer;
    UnmapBuffer: fn(c_uint) -> u8;
    GenTextures: fn(c_int, *mut c_uint);
    DeleteTextures: fn(c_int, *const c_uint);
    BindTexture: fn(c_uint, c_uint);
    TexParameteri: fn(c_uint, c_uint, c_int);
    TexBuffer: fn(c_uint, c_uint, c_uint);
    TexImage1D: fn(c_uint, c_int, c_int, c_int, c_int, c_uint, c_uint, *const c_void);
    TexImage2D: fn(c_uint, c_int, c_int, c_int, c_int, c_int, c_uint, c_uint, *const c_void);
    TexImage3D: fn(c_uint, c_int, c_int, c_int, c_int, c_int, c_int, c_uint, c_uint, *const c_void);
    GetTexImage: fn(c_uint, c_int, c_uint, c_uint, *mut c_void);
    GenRenderbuffers: fn(c_int, *mut c_uint);
    DeleteRenderbuffers: fn(c_int, *const c_uint);
    BindRenderbuffer: fn(c_uint, c_uint);
    RenderbufferStorage: fn(c_uint, c_uint, c_int, c_int);
    RenderbufferStorageMultisample: fn(c_uint, c_int, c_uint, c_int, c_int);
    GenFramebuffers: fn(c_int, *mut c_uint);
    DeleteFramebuffers: fn(c_int, *const c_uint);
    BindFramebuffer: fn(c_uint, c_uint);
    FramebufferTexture2D: fn(c_uint, c_uint, c_uint, c_uint, c_int);
    FramebufferRenderbuffer: fn(c_uint, c_uint, c_uint, c_uint);
    BlitFramebuffer: fn(c_int, c_int, c_int, c_int, c_int, c_int, c_int, c_int, c_uint, c_uint);
    ReadPixels: fn(c_int, c_int, c_int, c_int, c_uint, c_uint, *mut c_void);
    FenceSync: fn(c_uint, c_uint) -> Pointer;
    DeleteSync: fn(Pointer);
}

/// The symbols of a library of the system, or nothing where it is missing.
pub fn symbols(name: &str) -> Option<impl Fn(&CStr) -> Pointer> {
    // SAFETY: a library of the system.
    let library: &Library = Box::leak(Box::new(unsafe { Library::new(name) }.ok()?));
    Some(|name: &CStr| {
        // SAFETY: an address, whatever it is of.
        let found = unsafe { library.get::<Pointer>(name.to_bytes_with_nul()) };
        found.map_or(null_mut(), |found| *found)
    })
}

/// The library, or nothing where it is missing.
fn egl() -> Option<&'static Egl> {
    static LOADED: OnceLock<Option<Egl>> = OnceLock::new();
    let load = || Some(Egl::load("egl", symbols("libEGL.so.1")?));
    LOADED.get_or_init(load).as_ref()
}

/// Calls a function of OpenGL or EGL.
macro_rules! gl {
    ($functions:expr, $name:ident($($arg:expr),* $(,)?)) => {{
        #[allow(unused_unsafe, clippy::macro_metavars_in_unsafe)]
        // SAFETY: pointers lead to as much as the function reads or writes.
        unsafe { ($functions.$name)($($arg),*) }
    }};
}
pub(crate) use gl;

const EGL_NONE: c_int = 0x3038;
const PLATFORM_SURFACELESS: c_uint = 0x31DD;
pub const OPENGL_API: c_uint = 0x30A2;
pub const OPENGL_ES_API: c_uint = 0x30A0;

/// A context of OpenGL that is current in this thread.
pub struct World {
    pub egl: &'static Egl,
    pub display: Pointer,
    pub context: Pointer,
    pub gl: Gl,
}

impl World {
    /// A context of OpenGL without a window. None: it is left out, as there is no EGL for it.
    #[track_caller]
    pub fn new(api: c_uint) -> Option<Self> {
        Self::shared(api, null_mut())
    }

    /// One in the share group of another.
    #[track_caller]
    pub fn shared(api: c_uint, other: Pointer) -> Option<Self> {
        let Some(egl) = egl() else {
            left_out("there is no libEGL.so.1");
            return None;
        };
        let display = gl!(
            egl,
            GetPlatformDisplay(PLATFORM_SURFACELESS, null_mut(), null())
        );
        let usable =
            !display.is_null() && gl!(egl, Initialize(display, null_mut(), null_mut())) != 0;
        if !usable {
            left_out("EGL has no displays without a window system");
            return None;
        }
        gl!(egl, BindAPI(api));
        let (kind, version) = match api {
            OPENGL_API => (8, [EGL_NONE; 3]),
            _ => (0x40, [0x3098, 3, EGL_NONE]),
        };
        let (mut config, mut count) = (null_mut(), 0);
        let wanted = [0x3040, kind, 0x3033, 0, EGL_NONE];
        gl!(
            egl,
            ChooseConfig(display, wanted.as_ptr(), &mut config, 1, &mut count)
        );
        let context = gl!(egl, CreateContext(display, config, other, version.as_ptr()));
        if context.is_null() {
            left_out("EGL makes no context of OpenGL");
            return None;
        }
        let gl = Gl::load("gl", |name| gl!(egl, GetProcAddress(name.as_ptr())));
        let world = Self {
            egl,
            display,
            context,
            gl,
        };
        world.make_current();
        gl!(world.gl, PixelStorei(0x0D05, 1));
        gl!(world.gl, PixelStorei(0x0CF5, 1));
        Some(world)
    }

    /// Makes the context current in this thread.
    pub fn make_current(&self) {
        let current = gl!(
            self.egl,
            MakeCurrent(self.display, null_mut(), null_mut(), self.context)
        );
        assert_ne!(current, 0);
    }

    /// Makes no context current in this thread.
    pub fn make_none_current(&self) {
        gl!(
            self.egl,
            MakeCurrent(self.display, null_mut(), null_mut(), null_mut())
        );
    }

    /// The properties of a context of OpenCL that shares with it.
    pub fn properties(&self) -> [cl_context_properties; 5] {
        [
            CL_GL_CONTEXT_KHR as cl_context_properties,
            self.context as cl_context_properties,
            CL_EGL_DISPLAY_KHR as cl_context_properties,
            self.display as cl_context_properties,
            0,
        ]
    }

    /// A context of OpenCL that shares with it.
    pub fn setup(&self) -> Sharing {
        Sharing::new(&self.properties(), 0)
    }
}

impl Deref for World {
    type Target = Gl;

    fn deref(&self) -> &Gl {
        &self.gl
    }
}

impl Gl {
    pub fn check(&self) {
        assert_eq!(gl!(self, GetError()), 0);
    }

    pub fn new_buffer(&self, bytes: &[u8]) -> u32 {
        let mut name = 0;
        gl!(self, GenBuffers(1, &mut name));
        gl!(self, BindBuffer(ARRAY_BUFFER, name));
        gl!(
            self,
            BufferData(
                ARRAY_BUFFER,
                bytes.len() as isize,
                bytes.as_ptr().cast(),
                0x88E8
            )
        );
        gl!(self, BindBuffer(ARRAY_BUFFER, 0));
        self.check();
        name
    }

    pub fn buffer_bytes(&self, name: u32, size: usize) -> Vec<u8> {
        gl!(self, BindBuffer(ARRAY_BUFFER, name));
        let mapped = gl!(self, MapBufferRange(ARRAY_BUFFER, 0, size as isize, 1));
        assert!(!mapped.is_null());
        // SAFETY: so much is mapped.
        let bytes = unsafe { std::slice::from_raw_parts(mapped.cast::<u8>(), size) }.to_vec();
        gl!(self, UnmapBuffer(ARRAY_BUFFER));
        gl!(self, BindBuffer(ARRAY_BUFFER, 0));
        self.check();
        bytes
    }

    /// A texture with one level of that target, size, internal format, format and type.
    pub fn new_texture(
        &self,
        target: u32,
        size: [usize; 3],
        (internal, format, data): (u32, u32, u32),
        bytes: Option<&[u8]>,
    ) -> u32 {
        let gl = self;
        let mut name = 0;
        let bound = bound_target(target);
        gl!(gl, GenTextures(1, &mut name));
        gl!(gl, BindTexture(bound, name));
        let [w, h, d] = size.map(|n| n as c_int);
        let (inner, bytes) = (
            internal as c_int,
            bytes.map_or(null(), |bytes| bytes.as_ptr().cast()),
        );
        match target {
            TEXTURE_1D => gl!(gl, TexImage1D(target, 0, inner, w, 0, format, data, bytes)),
            TEXTURE_2D_ARRAY | TEXTURE_3D => {
                gl!(
                    gl,
                    TexImage3D(target, 0, inner, w, h, d, 0, format, data, bytes)
                )
            }
            _ => gl!(
                gl,
                TexImage2D(target, 0, inner, w, h, 0, format, data, bytes)
            ),
        }
        gl!(gl, TexParameteri(bound, 0x2801, 0x2600));
        gl!(gl, TexParameteri(bound, 0x2800, 0x2600));
        gl!(gl, BindTexture(bound, 0));
        self.check();
        name
    }

    pub fn texture_bytes(
        &self,
        target: u32,
        level: i32,
        name: u32,
        (_, format, data): (u32, u32, u32),
        size: usize,
    ) -> Vec<u8> {
        let mut bytes = vec![0xAAu8; size];
        let gl = self;
        gl!(gl, BindTexture(bound_target(target), name));
        gl!(
            gl,
            GetTexImage(target, level, format, data, bytes.as_mut_ptr().cast())
        );
        gl!(gl, BindTexture(bound_target(target), 0));
        self.check();
        bytes
    }

    /// The pixels of what is attached to a framebuffer: a texture, or a renderbuffer.
    pub fn attached_bytes(
        &self,
        texture: bool,
        name: u32,
        size: [usize; 2],
        format: (u32, u32),
        bytes: usize,
    ) -> Vec<u8> {
        let gl = self;
        self.with_framebuffer(texture, name, || {
            let mut pixels = vec![0xAAu8; bytes];
            let [w, h] = size.map(|n| n as c_int);
            gl!(
                gl,
                ReadPixels(0, 0, w, h, format.0, format.1, pixels.as_mut_ptr().cast())
            );
            pixels
        })
    }

    /// Runs something with a texture or a renderbuffer attached to a framebuffer.
    pub fn with_framebuffer<T>(&self, texture: bool, name: u32, work: impl FnOnce() -> T) -> T {
        let gl = self;
        let mut framebuffer = 0;
        gl!(gl, GenFramebuffers(1, &mut framebuffer));
        gl!(gl, BindFramebuffer(0x8D40, framebuffer));
        match texture {
            true => gl!(
                gl,
                FramebufferTexture2D(0x8D40, 0x8CE0, TEXTURE_2D, name, 0)
            ),
            false => gl!(
                gl,
                FramebufferRenderbuffer(0x8D40, 0x8CE0, RENDERBUFFER, name)
            ),
        }
        let result = work();
        gl!(gl, BindFramebuffer(0x8D40, 0));
        gl!(gl, DeleteFramebuffers(1, &framebuffer));
        self.check();
        result
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.make_none_current();
        gl!(self.egl, DestroyContext(self.display, self.context));
    }
}

pub fn bound_target(target: u32) -> u32 {
    match target {
        0x8515..=0x851A => 0x8513,
        target => target,
    }
}

pub const ARRAY_BUFFER: u32 = 0x8892;
pub const TEXTURE_1D: u32 = 0x0DE0;
pub const TEXTURE_2D: u32 = 0x0DE1;
pub const TEXTURE_3D: u32 = 0x806F;
pub const TEXTURE_1D_ARRAY: u32 = 0x8C18;
pub const TEXTURE_2D_ARRAY: u32 = 0x8C1A;
pub const TEXTURE_BUFFER: u32 = 0x8C2A;
pub const RENDERBUFFER: u32 = 0x8D41;
pub const RGBA8: (u32, u32, u32) = (0x8058, 0x1908, 0x1401);

/// A context of OpenCL that shares, with the functions of the extensions.
pub struct Sharing {
    pub setup: Setup,
    pub from_buffer: clCreateFromGLBuffer_t,
    pub from_texture: clCreateFromGLTexture_t,
    pub from_texture_2d: clCreateFromGLTexture2D_t,
    pub from_texture_3d: clCreateFromGLTexture3D_t,
    pub from_renderbuffer: clCreateFromGLRenderbuffer_t,
    pub object_info: clGetGLObjectInfo_t,
    pub texture_info: clGetGLTextureInfo_t,
    pub acquire: clEnqueueAcquireGLObjects_t,
    pub release: clEnqueueReleaseGLObjects_t,
    pub event_from_sync: clCreateEventFromGLsyncKHR_t,
    pub context_info: clGetGLContextInfoKHR_t,
    pub from_image: cl_egl::clCreateFromEGLImageKHR_t,
    pub acquire_images: cl_egl::clEnqueueAcquireEGLObjectsKHR_t,
    pub release_images: cl_egl::clEnqueueReleaseEGLObjectsKHR_t,
    pub event_from_egl_sync: cl_egl::clCreateEventFromEGLSyncKHR_t,
}

/// Calls a function of [`Sharing`].
macro_rules! cl {
    ($sharing:expr, $name:ident($($arg:expr),* $(,)?)) => {{
        let function = $sharing.$name.expect("a function");
        #[allow(unused_unsafe, clippy::macro_metavars_in_unsafe)]
        // SAFETY: pointers are as the function asks; what else is wrong the driver refuses.
        unsafe { function($($arg),*) }
    }};
}
pub(crate) use cl;

impl Sharing {
    pub fn new(properties: &[cl_context_properties], queue: cl_command_queue_properties) -> Self {
        Self::of_devices(properties, queue, &[first_device()])
    }

    /// One of several devices, with a queue on the first.
    pub fn of_devices(
        properties: &[cl_context_properties],
        queue: cl_command_queue_properties,
        devices: &[cl_device_id],
    ) -> Self {
        let (platform, device) = (platform(), devices[0]);
        let context = Context(create!(clCreateContext(
            properties.as_ptr(),
            devices.len() as cl_uint,
            devices.as_ptr(),
            None,
            null_mut()
        )));
        let list = [cl_queue_properties::from(CL_QUEUE_PROPERTIES), queue, 0];
        let queue = Queue(create!(clCreateCommandQueueWithProperties(
            context.0,
            device,
            list.as_ptr()
        )));
        let setup = Setup {
            platform,
            device,
            queue,
            context,
        };
        Self {
            from_buffer: setup.function(c"clCreateFromGLBuffer"),
            from_texture: setup.function(c"clCreateFromGLTexture"),
            from_texture_2d: setup.function(c"clCreateFromGLTexture2D"),
            from_texture_3d: setup.function(c"clCreateFromGLTexture3D"),
            from_renderbuffer: setup.function(c"clCreateFromGLRenderbuffer"),
            object_info: setup.function(c"clGetGLObjectInfo"),
            texture_info: setup.function(c"clGetGLTextureInfo"),
            acquire: setup.function(c"clEnqueueAcquireGLObjects"),
            release: setup.function(c"clEnqueueReleaseGLObjects"),
            event_from_sync: setup.function(c"clCreateEventFromGLsyncKHR"),
            context_info: setup.function(c"clGetGLContextInfoKHR"),
            from_image: setup.function(c"clCreateFromEGLImageKHR"),
            acquire_images: setup.function(c"clEnqueueAcquireEGLObjectsKHR"),
            release_images: setup.function(c"clEnqueueReleaseEGLObjectsKHR"),
            event_from_egl_sync: setup.function(c"clCreateEventFromEGLSyncKHR"),
            setup,
        }
    }

    pub fn queue(&self) -> cl_command_queue {
        self.setup.queue.0
    }

    pub fn finish(&self) {
        ok!(clFinish(self.queue()));
    }

    /// A memory object made from a buffer, or the error.
    pub fn buffer(&self, flags: cl_mem_flags, name: u32) -> Result<Buffer, cl_int> {
        let mut code = 1;
        made(
            cl!(
                self,
                from_buffer(self.setup.context.0, flags, name, &mut code)
            ),
            code,
        )
    }

    /// A memory object made from a texture, or the error.
    pub fn texture(&self, target: u32, level: i32, name: u32) -> Result<Buffer, cl_int> {
        self.texture_for(CL_MEM_READ_WRITE, target, level, name)
    }

    /// The same with these flags.
    pub fn texture_for(
        &self,
        flags: cl_mem_flags,
        target: u32,
        level: i32,
        name: u32,
    ) -> Result<Buffer, cl_int> {
        let mut code = 1;
        let context = self.setup.context.0;
        let mem = cl!(
            self,
            from_texture(context, flags, target, level, name, &mut code)
        );
        made(mem, code)
    }

    /// A memory object made from a renderbuffer, or the error.
    pub fn renderbuffer(&self, name: u32) -> Result<Buffer, cl_int> {
        let mut code = 1;
        made(
            cl!(
                self,
                from_renderbuffer(self.setup.context.0, CL_MEM_READ_WRITE, name, &mut code)
            ),
            code,
        )
    }

    /// A memory object made from an image of EGL, or the error.
    pub fn image(&self, world: &World, image: Pointer) -> Result<Buffer, cl_int> {
        let mut code = 1;
        let context = self.setup.context.0;
        let flags = CL_MEM_READ_WRITE;
        made(
            cl!(
                self,
                from_image(context, world.display, image, flags, null(), &mut code)
            ),
            code,
        )
    }

    /// Acquires objects, or releases them. Returns the code and the event.
    pub fn hand_over(
        &self,
        acquire: bool,
        list: &[cl_mem],
        wait: &[cl_event],
    ) -> Result<Event, cl_int> {
        let (events, event_count) = (
            if wait.is_empty() {
                null()
            } else {
                wait.as_ptr()
            },
            wait.len() as cl_uint,
        );
        let mut event = null_mut();
        let (queue, count) = (self.queue(), list.len() as cl_uint);
        let code = match acquire {
            true => cl!(
                self,
                acquire(queue, count, list.as_ptr(), event_count, events, &mut event)
            ),
            false => cl!(
                self,
                release(queue, count, list.as_ptr(), event_count, events, &mut event)
            ),
        };
        match code {
            0 => Ok(Event(event)),
            code => Err(code),
        }
    }

    pub fn acquire(&self, mem: &Buffer) {
        self.hand_over(true, &[mem.0], &[]).expect("an acquire");
    }

    pub fn release(&self, mem: &Buffer) {
        self.hand_over(false, &[mem.0], &[]).expect("a release");
    }

    pub fn read_image(&self, mem: &Buffer, size: [usize; 3], bytes: usize) -> Vec<u8> {
        let mut pixels = vec![0u8; bytes];
        ok!(clEnqueueReadImage(
            self.queue(),
            mem.0,
            CL_TRUE,
            [0usize; 3].as_ptr(),
            size.as_ptr(),
            0,
            0,
            pixels.as_mut_ptr().cast(),
            0,
            null(),
            null_mut()
        ));
        pixels
    }

    pub fn write_image(&self, mem: &Buffer, size: [usize; 3], pixels: &[u8]) {
        ok!(clEnqueueWriteImage(
            self.queue(),
            mem.0,
            CL_FALSE,
            [0usize; 3].as_ptr(),
            size.as_ptr(),
            0,
            0,
            pixels.as_ptr().cast(),
            0,
            null(),
            null_mut()
        ));
    }
}

fn made(mem: cl_mem, code: cl_int) -> Result<Buffer, cl_int> {
    assert_eq!(mem.is_null(), code != 0, "{code}");
    match code {
        0 => Ok(Buffer(mem)),
        code => Err(code),
    }
}

/// The code of creating a context with these properties.
pub fn context_code(properties: &[cl_context_properties]) -> cl_int {
    let device = first_device();
    let mut code = 1;
    let context = call!(clCreateContext(
        properties.as_ptr(),
        1,
        &device,
        None,
        null_mut(),
        &mut code
    ));
    if !context.is_null() {
        drop(Context(context));
    }
    code
}

/// Bytes by chance.
pub fn noise(size: usize, seed: u32) -> Vec<u8> {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(12345);
    let next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    std::iter::repeat_with(next).take(size).collect()
}
