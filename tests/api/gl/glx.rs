//! A window of an X server of the test's own, with GLX.

use super::world::*;
use pumice_tests::left_out;
use pumice_tests::sys::*;
use std::ffi::{c_char, c_int, c_uint, c_ulong, CStr, CString};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::ptr::null_mut;

functions! {
    /// Functions of Xlib.
    X:
    InitThreads: fn() -> c_int;
    OpenDisplay: fn(*const c_char) -> Pointer;
    CloseDisplay: fn(Pointer) -> c_int;
    DefaultRootWindow: fn(Pointer) -> c_ulong;
    CreateColormap: fn(Pointer, c_ulong, Pointer, c_int) -> c_ulong;
    CreateWindow: fn(Pointer, c_ulong, c_int, c_int, c_uint, c_uint, c_uint, c_int, c_uint, Pointer, c_ulong, *const Attributes) -> c_ulong;
    MapWindow: fn(Pointer, c_ulong) -> c_int;
    Sync: fn(Pointer, c_int) -> c_int;
}

functions! {
    /// Functions of GLX.
    Glx:
    GetProcAddressARB: fn(*const c_char) -> Pointer;
    ChooseFBConfig: fn(Pointer, c_int, *const c_int, *mut c_int) -> *mut Pointer;
    GetVisualFromFBConfig: fn(Pointer, Pointer) -> *const VisualInfo;
    CreateNewContext: fn(Pointer, Pointer, c_int, Pointer, c_int) -> Pointer;
    MakeCurrent: fn(Pointer, c_ulong, Pointer) -> c_int;
    DestroyContext: fn(Pointer, Pointer);
    SwapBuffers: fn(Pointer, c_ulong);
}

/// The beginning of XVisualInfo.
#[repr(C)]
pub struct VisualInfo {
    visual: Pointer,
    id: c_ulong,
    screen: c_int,
    depth: c_int,
}

/// XSetWindowAttributes
#[repr(C)]
pub struct Attributes {
    background_pixmap: c_ulong,
    background_pixel: c_ulong,
    border_pixmap: c_ulong,
    border_pixel: c_ulong,
    bit_gravity: c_int,
    win_gravity: c_int,
    backing_store: c_int,
    backing_planes: c_ulong,
    backing_pixel: c_ulong,
    save_under: c_int,
    event_mask: libc::c_long,
    do_not_propagate_mask: libc::c_long,
    override_redirect: c_int,
    colormap: c_ulong,
    cursor: c_ulong,
}

/// An X server, which ends with the test.
struct Server {
    child: Child,
    display: String,
}

impl Server {
    fn new() -> Option<Self> {
        let started = Command::new("Xvfb")
            .args([
                "-displayfd",
                "1",
                "-screen",
                "0",
                "640x480x24",
                "-terminate",
                "-nolisten",
                "tcp",
            ])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let Ok(mut child) = started else {
            left_out("there is no Xvfb");
            return None;
        };
        let mut number = String::new();
        let said = child
            .stdout
            .take()
            .map(|out| BufReader::new(out).read_line(&mut number));
        let mut server = Self {
            child,
            display: format!(":{}", number.trim()),
        };
        if !matches!(said, Some(Ok(count)) if count > 0) {
            let _ = server.child.kill();
            left_out("Xvfb does not start");
            return None;
        }
        Some(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A kernel writes a texture, which is drawn in a window; what is rendered there another kernel reads.
#[test]
fn a_window() {
    let Some((x11, glx)) = symbols("libX11.so.6").zip(symbols("libGLX.so.0")) else {
        return left_out("there is no libX11.so.6 or no libGLX.so.0");
    };
    let (x11, glx) = (X::load("X", x11), Glx::load("glX", glx));
    let Some(server) = Server::new() else { return };
    gl!(x11, InitThreads());
    let name = CString::new(server.display.as_str()).expect("a name");
    let display = gl!(x11, OpenDisplay(name.as_ptr()));
    assert!(!display.is_null());
    let (wanted, mut count) = ([0x8010, 1, 5, 1, 8, 8, 9, 8, 10, 8, 0], 0);
    let configs = gl!(glx, ChooseFBConfig(display, 0, wanted.as_ptr(), &mut count));
    if configs.is_null() || count == 0 {
        return left_out("the X server has no configurations for OpenGL");
    }
    // SAFETY: a list of one at least.
    let config = unsafe { *configs };
    let visual = gl!(glx, GetVisualFromFBConfig(display, config));
    // SAFETY: a structure of Xlib.
    let (visual, depth) = unsafe { ((*visual).visual, (*visual).depth) };
    let root = gl!(x11, DefaultRootWindow(display));
    // SAFETY: numbers.
    let mut attributes: Attributes = unsafe { std::mem::zeroed() };
    attributes.colormap = gl!(x11, CreateColormap(display, root, visual, 0));
    // Colour map and colour of the border.
    let mask = 1 << 13 | 1 << 3;
    let window = gl!(
        x11,
        CreateWindow(
            display,
            root,
            0,
            0,
            64,
            48,
            0,
            depth,
            1,
            visual,
            mask,
            &attributes
        )
    );
    gl!(x11, MapWindow(display, window));
    gl!(x11, Sync(display, 0));
    let context = gl!(
        glx,
        CreateNewContext(display, config, 0x8014, null_mut(), 1)
    );
    assert!(!context.is_null());
    assert_ne!(gl!(glx, MakeCurrent(display, window, context)), 0);
    let gl = Gl::load("gl", |name| gl!(glx, GetProcAddressARB(name.as_ptr())));

    let properties = [
        CL_GL_CONTEXT_KHR as cl_context_properties,
        context as cl_context_properties,
        CL_GLX_DISPLAY_KHR as cl_context_properties,
        display as cl_context_properties,
        0,
    ];
    let sharing = Sharing::new(&properties, 0);
    let source = "
        kernel void draw(write_only image2d_t to, int seed) {
            int2 at = (int2)(get_global_id(0), get_global_id(1));
            write_imagef(to, at, (float4)(at.x * 4, at.y * 5, seed, 255) / 255.0f);
        }";
    let kernel = sharing.setup.kernel_of(source, "draw");
    let texture = gl.new_texture(TEXTURE_2D, [64, 48, 1], RGBA8, None);
    let mem = sharing.texture(TEXTURE_2D, 0, texture).expect("an image");
    let mut framebuffer = 0;
    gl!(gl, GenFramebuffers(1, &mut framebuffer));
    for seed in [3i32, 200] {
        sharing.acquire(&mem);
        kernel.set(0, mem.0).set(1, seed);
        sharing.setup.enqueue(&kernel, &[64, 48], None);
        sharing.release(&mem);
        gl!(gl, BindFramebuffer(0x8CA8, framebuffer));
        gl!(
            gl,
            FramebufferTexture2D(0x8CA8, 0x8CE0, TEXTURE_2D, texture, 0)
        );
        gl!(gl, BindFramebuffer(0x8CA9, 0));
        gl!(
            gl,
            BlitFramebuffer(0, 0, 64, 48, 0, 0, 64, 48, 0x4000, 0x2600)
        );
        gl!(gl, BindFramebuffer(0x8CA8, 0));
        let mut pixels = vec![0u8; 64 * 48 * 4];
        gl!(
            gl,
            ReadPixels(0, 0, 64, 48, 0x1908, 0x1401, pixels.as_mut_ptr().cast())
        );
        gl.check();
        gl!(glx, SwapBuffers(display, window));
        for (at, pixel) in pixels.chunks(4).enumerate() {
            let expected = [at % 64 * 4, at / 64 * 5, seed as usize].map(|n| n as u8);
            assert_eq!(pixel[..3], expected, "at {at}");
        }
    }
    // What OpenGL renders comes back.
    gl.with_framebuffer(true, texture, || {
        gl!(gl, ClearColor(1.0, 0.0, 0.2, 1.0));
        gl!(gl, Clear(0x4000));
    });
    sharing.acquire(&mem);
    assert!(
        sharing.read_image(&mem, [64, 48, 1], 64 * 48 * 4) == [255, 0, 51, 255].repeat(64 * 48)
    );
    sharing.release(&mem);
    drop((mem, sharing));
    assert_eq!(
        context_code(
            &properties[..2]
                .iter()
                .copied()
                .chain([0])
                .collect::<Vec<_>>()
        ),
        CL_INVALID_GL_SHAREGROUP_REFERENCE_KHR
    );
    gl!(glx, MakeCurrent(display, 0, null_mut()));
    gl!(glx, DestroyContext(display, context));
    gl!(x11, CloseDisplay(display));
}
