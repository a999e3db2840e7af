//! The functions of OpenGL that are used and its constants, with the names of the specification.

use std::ffi::{c_char, c_void, CStr};

/// GLenum
pub type Enum = u32;
/// GLint
pub type Int = i32;
/// GLuint
pub type Uint = u32;
/// GLsync
pub type Sync = *const c_void;

macro_rules! functions {
    ($($name:ident: fn($($arg:ty),*) $(-> $ret:ty)?;)*) => {
        /// The functions of a context; `None`: there is none of this name.
        #[allow(non_snake_case, missing_docs)]
        pub struct Functions {
            $(pub $name: Option<unsafe extern "system" fn($($arg),*) $(-> $ret)?>,)*
        }

        impl Functions {
            /// Looks all functions up.
            ///
            /// # Safety
            /// `address` must return null or the function of the name that it is given.
            pub unsafe fn load(address: impl Fn(&CStr) -> *const c_void) -> Self {
                Self {
                    $($name: {
                        let name = concat!("gl", stringify!($name), "\0");
                        let found = CStr::from_bytes_with_nul(name.as_bytes())
                            .map_or(std::ptr::null(), &address);
                        // SAFETY: the caller vouches that it is null, which is `None`, or the function of this name,
                        // which has this type.
                        unsafe {
                            std::mem::transmute::<
                                *const c_void,
                                Option<unsafe extern "system" fn($($arg),*) $(-> $ret)?>,
                            >(found)
                        }
                    },)*
                }
            }
        }
    };
}

functions! {
    GetError: fn() -> Enum;
    GetString: fn(Enum) -> *const c_char;
    GetStringi: fn(Enum, Uint) -> *const c_char;
    GetIntegerv: fn(Enum, *mut Int);
    GetUnsignedBytevEXT: fn(Enum, *mut u8);
    GetUnsignedBytei_vEXT: fn(Enum, Uint, *mut u8);
    Flush: fn();
    Finish: fn();
    PixelStorei: fn(Enum, Int);

    IsBuffer: fn(Uint) -> u8;
    GenBuffers: fn(Int, *mut Uint);
    DeleteBuffers: fn(Int, *const Uint);
    BindBuffer: fn(Enum, Uint);
    BufferData: fn(Enum, isize, *const c_void, Enum);
    GetBufferParameteri64v: fn(Enum, Enum, *mut i64);
    CopyBufferSubData: fn(Enum, Enum, isize, isize, isize);
    MapBufferRange: fn(Enum, isize, isize, u32) -> *mut c_void;
    UnmapBuffer: fn(Enum) -> u8;

    IsTexture: fn(Uint) -> u8;
    GenTextures: fn(Int, *mut Uint);
    DeleteTextures: fn(Int, *const Uint);
    BindTexture: fn(Enum, Uint);
    GetTexParameteriv: fn(Enum, Enum, *mut Int);
    GetTexLevelParameteriv: fn(Enum, Int, Enum, *mut Int);
    GetTexImage: fn(Enum, Int, Enum, Enum, *mut c_void);
    TexStorage2D: fn(Enum, Int, Enum, Int, Int);
    TexSubImage1D: fn(Enum, Int, Int, Int, Enum, Enum, *const c_void);
    TexSubImage2D: fn(Enum, Int, Int, Int, Int, Int, Enum, Enum, *const c_void);
    TexSubImage3D: fn(Enum, Int, Int, Int, Int, Int, Int, Int, Enum, Enum, *const c_void);
    EGLImageTargetTexture2DOES: fn(Enum, *const c_void);

    IsRenderbuffer: fn(Uint) -> u8;
    BindRenderbuffer: fn(Enum, Uint);
    GetRenderbufferParameteriv: fn(Enum, Enum, *mut Int);
    GenFramebuffers: fn(Int, *mut Uint);
    DeleteFramebuffers: fn(Int, *const Uint);
    BindFramebuffer: fn(Enum, Uint);
    FramebufferTexture2D: fn(Enum, Enum, Enum, Uint, Int);
    FramebufferTextureLayer: fn(Enum, Enum, Uint, Int, Int);
    FramebufferRenderbuffer: fn(Enum, Enum, Enum, Uint);
    CheckFramebufferStatus: fn(Enum) -> Enum;
    ReadBuffer: fn(Enum);
    DrawBuffers: fn(Int, *const Enum);
    ReadPixels: fn(Int, Int, Int, Int, Enum, Enum, *mut c_void);
    BlitFramebuffer: fn(Int, Int, Int, Int, Int, Int, Int, Int, u32, Enum);

    FenceSync: fn(Enum, u32) -> Sync;
    IsSync: fn(Sync) -> u8;
    WaitSync: fn(Sync, u32, u64);
    ClientWaitSync: fn(Sync, u32, u64) -> Enum;
    DeleteSync: fn(Sync);
}

macro_rules! constants {
    ($($name:ident = $value:literal;)*) => {
        $(pub const $name: Enum = $value;)*
    };
}

/// The constants, without the prefix `GL_`.
#[allow(missing_docs)]
pub mod gl {
    use super::Enum;

    constants! {
        INVALID_OPERATION = 0x0502;
        OUT_OF_MEMORY = 0x0505;
        BYTE = 0x1400;
        UNSIGNED_BYTE = 0x1401;
        SHORT = 0x1402;
        UNSIGNED_SHORT = 0x1403;
        INT = 0x1404;
        UNSIGNED_INT = 0x1405;
        FLOAT = 0x1406;
        HALF_FLOAT = 0x140B;
        PACK_ALIGNMENT = 0x0D05;
        UNPACK_ALIGNMENT = 0x0CF5;
        COLOR = 0x1800;
        DEPTH_COMPONENT = 0x1902;
        RED = 0x1903;
        RGBA = 0x1908;
        BGRA = 0x80E1;
        RG = 0x8227;
        RG_INTEGER = 0x8228;
        RED_INTEGER = 0x8D94;
        RGBA_INTEGER = 0x8D99;
        NEAREST = 0x2600;
        RENDERER = 0x1F01;
        VERSION = 0x1F02;
        EXTENSIONS = 0x1F03;
        NUM_EXTENSIONS = 0x821D;
        MAJOR_VERSION = 0x821B;
        MINOR_VERSION = 0x821C;
        DEVICE_UUID_EXT = 0x9597;
        NUM_DEVICE_UUIDS_EXT = 0x9596;

        BUFFER_SIZE = 0x8764;
        COPY_READ_BUFFER = 0x8F36;
        COPY_WRITE_BUFFER = 0x8F37;
        STREAM_DRAW = 0x88E0;
        STREAM_READ = 0x88E1;
        MAP_READ_BIT = 1;

        TEXTURE_1D = 0x0DE0;
        TEXTURE_2D = 0x0DE1;
        TEXTURE_3D = 0x806F;
        TEXTURE_RECTANGLE = 0x84F5;
        TEXTURE_CUBE_MAP = 0x8513;
        TEXTURE_CUBE_MAP_POSITIVE_X = 0x8515;
        TEXTURE_CUBE_MAP_NEGATIVE_Z = 0x851A;
        TEXTURE_1D_ARRAY = 0x8C18;
        TEXTURE_2D_ARRAY = 0x8C1A;
        TEXTURE_BUFFER = 0x8C2A;
        TEXTURE_WIDTH = 0x1000;
        TEXTURE_HEIGHT = 0x1001;
        TEXTURE_INTERNAL_FORMAT = 0x1003;
        TEXTURE_BORDER = 0x1005;
        TEXTURE_DEPTH = 0x8071;
        TEXTURE_RED_SIZE = 0x805C;
        TEXTURE_ALPHA_SIZE = 0x805F;
        TEXTURE_BASE_LEVEL = 0x813C;
        TEXTURE_MAX_LEVEL = 0x813D;
        TEXTURE_BUFFER_DATA_STORE_BINDING = 0x8C2D;
        TEXTURE_BUFFER_OFFSET = 0x919D;
        TEXTURE_BUFFER_SIZE = 0x919E;

        RENDERBUFFER = 0x8D41;
        RENDERBUFFER_WIDTH = 0x8D42;
        RENDERBUFFER_HEIGHT = 0x8D43;
        RENDERBUFFER_INTERNAL_FORMAT = 0x8D44;
        RENDERBUFFER_RED_SIZE = 0x8D50;
        RENDERBUFFER_ALPHA_SIZE = 0x8D53;
        RENDERBUFFER_SAMPLES = 0x8CAB;
        READ_FRAMEBUFFER = 0x8CA8;
        DRAW_FRAMEBUFFER = 0x8CA9;
        FRAMEBUFFER_COMPLETE = 0x8CD5;
        COLOR_ATTACHMENT0 = 0x8CE0;
        DEPTH_ATTACHMENT = 0x8D00;
        COLOR_BUFFER_BIT = 0x4000;
        DEPTH_BUFFER_BIT = 0x0100;

        SYNC_GPU_COMMANDS_COMPLETE = 0x9117;
        ALREADY_SIGNALED = 0x911A;
        CONDITION_SATISFIED = 0x911C;
        TIMEOUT_EXPIRED = 0x911B;

        RGBA8 = 0x8058;
        RGBA16 = 0x805B;
        SRGB8_ALPHA8 = 0x8C43;
        RGBA32F = 0x8814;
        RGBA16F = 0x881A;
        RGBA32UI = 0x8D70;
        RGBA16UI = 0x8D76;
        RGBA8UI = 0x8D7C;
        RGBA32I = 0x8D82;
        RGBA16I = 0x8D88;
        RGBA8I = 0x8D8E;
        RGBA8_SNORM = 0x8F97;
        RGBA16_SNORM = 0x8F9B;
        BGRA8_EXT = 0x93A1;
        R8 = 0x8229;
        R16 = 0x822A;
        RG8 = 0x822B;
        RG16 = 0x822C;
        R16F = 0x822D;
        R32F = 0x822E;
        RG16F = 0x822F;
        RG32F = 0x8230;
        R8I = 0x8231;
        R8UI = 0x8232;
        R16I = 0x8233;
        R16UI = 0x8234;
        R32I = 0x8235;
        R32UI = 0x8236;
        RG8I = 0x8237;
        RG8UI = 0x8238;
        RG16I = 0x8239;
        RG16UI = 0x823A;
        RG32I = 0x823B;
        RG32UI = 0x823C;
        R8_SNORM = 0x8F94;
        RG8_SNORM = 0x8F95;
        R16_SNORM = 0x8F98;
        RG16_SNORM = 0x8F99;
        DEPTH_COMPONENT16 = 0x81A5;
        DEPTH_COMPONENT32F = 0x8CAC;
        DEPTH24_STENCIL8 = 0x88F0;
        DEPTH32F_STENCIL8 = 0x8CAD;
    }
}

/// Calls a function of a context: fails with [`super::Error::Refused`] where there is none.
macro_rules! call {
    ($functions:expr, $name:ident($($arg:expr),* $(,)?)) => {
        match $functions.$name {
            // SAFETY: the context is current in this thread, and the arguments are as the specification of the function
            // asks: pointers lead to as much room as it reads or writes.
            Some(function) => unsafe { function($($arg),*) },
            None => return Err($crate::backend::gl::Error::Refused(concat!("no gl", stringify!($name)))),
        }
    };
}
pub(super) use call;
