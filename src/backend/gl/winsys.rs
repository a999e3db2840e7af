//! EGL and GLX: finding the application's context, and making one of our own in its share group.
//!
//! The libraries are those that the application uses, found by name at run time and left loaded.

use super::functions::Functions;
use super::{Error, Result, Source};
use libloading::Library;
use parking_lot::Mutex;
use std::ffi::{c_char, c_int, c_uint, c_ulong, c_void};
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::thread::ThreadId;

type Pointer = *mut c_void;

macro_rules! library {
    ($library:ident, $from:expr; $($field:ident $name:literal: fn($($arg:ty),*) -> $ret:ty;)*) => {
        /// The functions of the library.
        pub struct $library {
            $($field: unsafe extern "C" fn($($arg),*) -> $ret,)*
        }

        impl $library {
            /// Returns the library, loaded at the first call.
            fn get() -> Option<&'static Self> {
                static LOADED: OnceLock<Option<$library>> = OnceLock::new();
                LOADED.get_or_init(Self::load).as_ref()
            }

            fn load() -> Option<Self> {
                // SAFETY: the initialisers of the library run, as in any program that uses it.
                let library = $from.into_iter().find_map(|name: &str| unsafe { Library::new(name) }.ok())?;
                let library: &'static Library = Box::leak(Box::new(library));
                Some(Self {
                    // SAFETY: functions of this name have this type, and the library stays.
                    $($field: *unsafe { library.get($name) }.ok()?,)*
                })
            }
        }
    };
}

library! { Egl, ["libEGL.so.1"];
    get_proc_address b"eglGetProcAddress": fn(*const c_char) -> Pointer;
    get_error b"eglGetError": fn() -> c_int;
    query_context b"eglQueryContext": fn(Pointer, Pointer, c_int, *mut c_int) -> c_uint;
    choose_config b"eglChooseConfig": fn(Pointer, *const c_int, *mut Pointer, c_int, *mut c_int) -> c_uint;
    bind_api b"eglBindAPI": fn(c_uint) -> c_uint;
    create_context b"eglCreateContext": fn(Pointer, Pointer, Pointer, *const c_int) -> Pointer;
    destroy_context b"eglDestroyContext": fn(Pointer, Pointer) -> c_uint;
    create_pbuffer b"eglCreatePbufferSurface": fn(Pointer, Pointer, *const c_int) -> Pointer;
    destroy_surface b"eglDestroySurface": fn(Pointer, Pointer) -> c_uint;
    make_current b"eglMakeCurrent": fn(Pointer, Pointer, Pointer, Pointer) -> c_uint;
    current_context b"eglGetCurrentContext": fn() -> Pointer;
    release_thread b"eglReleaseThread": fn() -> c_uint;
    wait_sync b"eglWaitSync": fn(Pointer, Pointer, c_int) -> c_uint;
    sync_attribute b"eglGetSyncAttrib": fn(Pointer, Pointer, c_int, *mut isize) -> c_uint;
}

library! { Glx, ["libGLX.so.0", "libGL.so.1"];
    get_proc_address b"glXGetProcAddressARB": fn(*const c_char) -> Pointer;
    query_context b"glXQueryContext": fn(Pointer, Pointer, c_int, *mut c_int) -> c_int;
    choose_config b"glXChooseFBConfig": fn(Pointer, c_int, *const c_int, *mut c_int) -> *mut Pointer;
    create_context b"glXCreateNewContext": fn(Pointer, Pointer, c_int, Pointer, c_int) -> Pointer;
    destroy_context b"glXDestroyContext": fn(Pointer, Pointer) -> ();
    create_pbuffer b"glXCreatePbuffer": fn(Pointer, Pointer, *const c_int) -> c_ulong;
    destroy_pbuffer b"glXDestroyPbuffer": fn(Pointer, c_ulong) -> ();
    make_current b"glXMakeContextCurrent": fn(Pointer, c_ulong, c_ulong, Pointer) -> c_int;
    current_context b"glXGetCurrentContext": fn() -> Pointer;
    is_direct b"glXIsDirect": fn(Pointer, Pointer) -> c_int;
}

library! { X11, ["libX11.so.6"];
    free b"XFree": fn(Pointer) -> c_int;
    add_extension b"XAddExtension": fn(Pointer) -> *const c_int;
    on_close b"XESetCloseDisplay": fn(Pointer, c_int, Option<unsafe extern "C" fn(Pointer, *const c_int) -> c_int>) -> Pointer;
}

/// Returns true if there is a library for contexts of OpenGL.
pub fn is_there() -> bool {
    has_egl() || Glx::get().is_some()
}

/// Returns true if there is EGL.
pub fn has_egl() -> bool {
    Egl::get().is_some()
}

/// A context that is current in a thread of ours.
pub enum Own {
    /// One of EGL: display, context and surface (or null).
    Egl(&'static Egl, Pointer, Pointer, Pointer),
    /// One of GLX: display, context and pixel buffer (or 0).
    Glx(&'static Glx, Pointer, Pointer, c_ulong),
}

/// A display of X, and what ends the context that a thread of ours has on it.
struct OnDisplay {
    display: usize,
    thread: ThreadId,
    end: Box<dyn Fn() + Send>,
}

/// The contexts of GLX.
static ON_DISPLAYS: Mutex<Vec<OnDisplay>> = Mutex::new(Vec::new());
/// The displays whose end is watched.
static WATCHED: Mutex<Vec<usize>> = Mutex::new(Vec::new());

/// Makes Xlib call `end`, which waits until the context of this thread is destroyed, before its display is closed. It is no longer
/// called once the context is destroyed.
pub fn end_before_display(source: Source, end: impl Fn() + Send + 'static) {
    let (Source::Glx { display, .. }, Some(x11)) = (source, X11::get()) else {
        return;
    };
    ON_DISPLAYS.lock().push(OnDisplay {
        display,
        thread: std::thread::current().id(),
        end: Box::new(end),
    });
    let mut watched = WATCHED.lock();
    if watched.contains(&display) {
        return;
    }
    // SAFETY: a display, as the application's context is on it. Xlib calls its extensions before it closes one, those that
    // came last first: ours before GLX.
    unsafe {
        let codes = (x11.add_extension)(display as Pointer);
        if !codes.is_null() {
            (x11.on_close)(display as Pointer, *codes, Some(closes));
            watched.push(display);
        }
    }
}

/// Ends the contexts on a display that is being closed.
unsafe extern "C" fn closes(display: Pointer, _: *const c_int) -> c_int {
    let display = display as usize;
    WATCHED.lock().retain(|known| *known != display);
    let mut ends = Vec::new();
    ON_DISPLAYS.lock().retain_mut(|context| {
        let stays = context.display != display;
        if !stays {
            ends.push(std::mem::replace(&mut context.end, Box::new(|| {})));
        }
        stays
    });
    ends.iter().for_each(|end| end());
    0
}

const EGL_NONE: c_int = 0x3038;
const EGL_WIDTH: c_int = 0x3057;
const EGL_HEIGHT: c_int = 0x3056;
const EGL_CONFIG_ID: c_int = 0x3028;
const EGL_CONTEXT_CLIENT_TYPE: c_int = 0x3097;
const EGL_CONTEXT_CLIENT_VERSION: c_int = 0x3098;
const EGL_RENDERABLE_TYPE: c_int = 0x3040;
const EGL_OPENGL_ES2_BIT: c_int = 4;
const EGL_OPENGL_ES_API: c_int = 0x30A0;
const EGL_OPENGL_API: c_int = 0x30A2;
const EGL_SYNC_TYPE: c_int = 0x30F7;
const EGL_SYNC_FENCE: isize = 0x30F9;

const GLX_FBCONFIG_ID: c_int = 0x8013;
const GLX_SCREEN: c_int = 0x800C;
const GLX_RGBA_TYPE: c_int = 0x8014;
const GLX_PBUFFER_WIDTH: c_int = 0x8041;
const GLX_PBUFFER_HEIGHT: c_int = 0x8040;

/// Returns the context that is current in the calling thread, by the same library as the source.
pub fn current(source: Source) -> usize {
    let current = match source {
        // SAFETY: there are no arguments.
        Source::Egl { .. } => Egl::get().map(|egl| unsafe { (egl.current_context)() }),
        // SAFETY: there are no arguments.
        Source::Glx { .. } => Glx::get().map(|glx| unsafe { (glx.current_context)() }),
    };
    current.map_or(0, |context| context as usize)
}

/// Returns the functions for a context of the application's that is current in the calling thread.
pub fn functions(source: Source) -> Option<&'static Functions> {
    static OF_EGL: OnceLock<Functions> = OnceLock::new();
    static OF_GLX: OnceLock<Functions> = OnceLock::new();
    Some(match source {
        Source::Egl { .. } => {
            let egl = Egl::get()?;
            OF_EGL.get_or_init(|| egl.functions())
        }
        Source::Glx { .. } => {
            let glx = Glx::get()?;
            OF_GLX.get_or_init(|| glx.functions())
        }
    })
}

/// Makes what the context of this thread is given from now on come after a fence of EGL.
pub fn wait_sync(display: usize, sync: usize) -> Result {
    let egl = Egl::get().ok_or(Error::NoLibrary)?;
    let (display, sync) = (display as Pointer, sync as Pointer);
    let mut kind = 0;
    // SAFETY: EGL knows its sync objects; room for one number.
    let known = unsafe { (egl.sync_attribute)(display, sync, EGL_SYNC_TYPE, &mut kind) };
    if known == 0 || kind != EGL_SYNC_FENCE {
        return Err(Error::NoObject);
    }
    // SAFETY: a sync object of the display.
    match unsafe { (egl.wait_sync)(display, sync, 0) } {
        0 => Err(Error::Refused("a wait for a fence of EGL")),
        _ => Ok(()),
    }
}

impl Egl {
    fn functions(&self) -> Functions {
        // SAFETY: EGL returns functions by their names.
        unsafe { Functions::load(|name| (self.get_proc_address)(name.as_ptr()).cast_const()) }
    }
}

impl Glx {
    fn functions(&self) -> Functions {
        // SAFETY: GLX returns functions by their names.
        unsafe { Functions::load(|name| (self.get_proc_address)(name.as_ptr()).cast_const()) }
    }
}

impl Own {
    /// Makes a context in the share group of the application's, or without one, and makes it current in this thread. Returns
    /// it with its functions.
    pub fn new(source: Source) -> Result<(Self, Functions)> {
        match source {
            Source::Egl { display, context } => {
                let egl = Egl::get().ok_or(Error::NoLibrary)?;
                let own = Self::of_egl(egl, display as Pointer, context as Pointer)?;
                Ok((own, egl.functions()))
            }
            Source::Glx { display, context } => {
                let glx = Glx::get().ok_or(Error::NoLibrary)?;
                let own = Self::of_glx(glx, display as Pointer, context as Pointer)?;
                Ok((own, glx.functions()))
            }
        }
    }

    fn of_egl(egl: &'static Egl, display: Pointer, shared: Pointer) -> Result<Self> {
        let query = |name| {
            let mut value = 0;
            // SAFETY: EGL knows its displays and contexts, and `value` has room for one number.
            let found = unsafe { (egl.query_context)(display, shared, name, &mut value) };
            (found != 0).then_some(value)
        };
        let (api, filter) = match shared.is_null() {
            true => (
                EGL_OPENGL_ES_API,
                [EGL_RENDERABLE_TYPE, EGL_OPENGL_ES2_BIT, EGL_NONE],
            ),
            false => {
                let api = query(EGL_CONTEXT_CLIENT_TYPE).ok_or(Error::NoContext)?;
                let id = query(EGL_CONFIG_ID).ok_or(Error::NoContext)?;
                (api, [EGL_CONFIG_ID, id, EGL_NONE])
            }
        };
        if api != EGL_OPENGL_API && api != EGL_OPENGL_ES_API {
            return Err(Error::NoContext);
        }
        let (mut config, mut count) = (null_mut(), 0);
        // SAFETY: a list that ends, and room for one configuration. Without any it stays null: a context without one.
        let chosen =
            unsafe { (egl.choose_config)(display, filter.as_ptr(), &mut config, 1, &mut count) };
        if chosen == 0 || count == 0 {
            config = null_mut();
        }
        let attributes = match api {
            EGL_OPENGL_ES_API => [EGL_CONTEXT_CLIENT_VERSION, 3, EGL_NONE],
            _ => [EGL_NONE; 3],
        };
        // SAFETY: what is bound is so for this thread, which is ours; EGL checks the rest.
        let context = unsafe {
            (egl.bind_api)(api as c_uint);
            (egl.create_context)(display, config, shared, attributes.as_ptr())
        };
        if context.is_null() {
            // SAFETY: there are no arguments.
            let code = unsafe { (egl.get_error)() };
            crate::log!(Debug, "no context in the share group: EGL error {code:#x}");
            return Err(Error::NoContext);
        }
        let mut own = Self::Egl(egl, display, context, null_mut());
        // SAFETY: a context of ours, which is current nowhere.
        let bare = unsafe { (egl.make_current)(display, null_mut(), null_mut(), context) };
        if bare == 0 {
            let size = [EGL_WIDTH, 1, EGL_HEIGHT, 1, EGL_NONE];
            // SAFETY: a list that ends; EGL checks the rest.
            let surface = unsafe { (egl.create_pbuffer)(display, config, size.as_ptr()) };
            own = Self::Egl(egl, display, context, surface);
            // SAFETY: as above, with a surface of ours.
            if unsafe { (egl.make_current)(display, surface, surface, context) } == 0 {
                own.destroy();
                return Err(Error::NoContext);
            }
        }
        Ok(own)
    }

    fn of_glx(glx: &'static Glx, display: Pointer, shared: Pointer) -> Result<Self> {
        if shared.is_null() {
            return Err(Error::NoContext);
        }
        // SAFETY: the application vouches for display and context, as the specification asks: GLX cannot tell.
        if unsafe { (glx.is_direct)(display, shared) } == 0 {
            return Err(Error::NoContext);
        }
        let query = |name| {
            let mut value = 0;
            // SAFETY: as above, with room for one number.
            let code = unsafe { (glx.query_context)(display, shared, name, &mut value) };
            (code == 0).then_some(value)
        };
        let id = query(GLX_FBCONFIG_ID).ok_or(Error::NoContext)?;
        let screen = query(GLX_SCREEN).unwrap_or(0);
        let (wanted, mut count) = ([GLX_FBCONFIG_ID, id, 0], 0);
        // SAFETY: a list that ends, and room for a number.
        let found = unsafe { (glx.choose_config)(display, screen, wanted.as_ptr(), &mut count) };
        if found.is_null() {
            return Err(Error::NoContext);
        }
        // SAFETY: a list of one configuration at least, which Xlib has allocated.
        let config = unsafe {
            let first = *found;
            if let Some(x11) = X11::get() {
                (x11.free)(found.cast());
            }
            first
        };
        // SAFETY: a configuration of the application's context, with which it shares.
        let context = unsafe { (glx.create_context)(display, config, GLX_RGBA_TYPE, shared, 1) };
        if context.is_null() {
            return Err(Error::NoContext);
        }
        let mut own = Self::Glx(glx, display, context, 0);
        // SAFETY: a context of ours, which is current nowhere.
        if unsafe { (glx.make_current)(display, 0, 0, context) } == 0 {
            let size = [GLX_PBUFFER_WIDTH, 1, GLX_PBUFFER_HEIGHT, 1, 0];
            // SAFETY: a list that ends.
            let buffer = unsafe { (glx.create_pbuffer)(display, config, size.as_ptr()) };
            own = Self::Glx(glx, display, context, buffer);
            // SAFETY: as above, with a pixel buffer of ours.
            if unsafe { (glx.make_current)(display, buffer, buffer, context) } == 0 {
                own.destroy();
                return Err(Error::NoContext);
            }
        }
        Ok(own)
    }

    /// Destroys the context, in the thread in which it was made.
    pub fn destroy(self) {
        let own = std::thread::current().id();
        ON_DISPLAYS.lock().retain(|context| context.thread != own);
        match self {
            // SAFETY: a context and a surface of ours, of which nothing is left when they are no longer current.
            Self::Egl(egl, display, context, surface) => unsafe {
                (egl.make_current)(display, null_mut(), null_mut(), null_mut());
                if !surface.is_null() {
                    (egl.destroy_surface)(display, surface);
                }
                (egl.destroy_context)(display, context);
                (egl.release_thread)();
            },
            // SAFETY: as above.
            Self::Glx(glx, display, context, buffer) => unsafe {
                (glx.make_current)(display, 0, 0, null_mut());
                if buffer != 0 {
                    (glx.destroy_pbuffer)(display, buffer);
                }
                (glx.destroy_context)(display, context);
            },
        }
    }
}
