//! Sharing with OpenGL and EGL: cl_khr_gl_sharing, cl_khr_gl_event, cl_khr_egl_image, cl_khr_egl_event.

mod buffers;
mod egl;
mod ends;
mod errors;
mod events;
mod glx;
mod several;
mod textures;
mod world;
