//! Contexts of OpenGL that end: nothing is left of them, and nothing disturbs the end of the process.

use super::world::*;
use pumice_tests::sys::*;
use pumice_tests::{good_child, job};
use std::fs::read_dir;
use std::time::Duration;

/// The work of a child.
#[test]
fn inner() {
    let Some(job) = job() else { return };
    let world = World::new(OPENGL_API).expect("a context");
    match job.as_str() {
        "exits" => {
            let sharing = world.setup();
            let name = world.new_texture(TEXTURE_2D, [512, 512, 1], RGBA8, None);
            let mem = sharing.texture(TEXTURE_2D, 0, name).expect("an image");
            for _ in 0..10 {
                sharing.acquire(&mem);
            }
            std::process::exit(0);
        }
        _ => {
            let count = |folder| read_dir(folder).map_or(0, Iterator::count);
            let counts = || (count("/proc/self/task"), count("/proc/self/fd"));
            (0..6).for_each(|_| round(&world));
            let before = counts();
            (0..20).for_each(|_| round(&world));
            // Threads end a moment after what they served.
            for _ in 0..1000 {
                let after = counts();
                if after.0 <= before.0 && after.1 <= before.1 {
                    return;
                }
                std::thread::sleep(Duration::from_millis(10));
            }
            panic!("{before:?} {:?}", counts());
        }
    }
}

/// A context with objects of each kind, used, and some that cannot be made.
fn round(world: &World) {
    let sharing = world.setup();
    let buffer = world.new_buffer(&[1; 4096]);
    let texture = world.new_texture(TEXTURE_2D, [64, 64, 1], RGBA8, None);
    let mems = [
        sharing.buffer(CL_MEM_READ_WRITE, buffer).expect("a buffer"),
        sharing.texture(TEXTURE_2D, 0, texture).expect("an image"),
    ];
    assert!(sharing.texture(TEXTURE_3D, 0, texture).is_err());
    assert!(sharing.renderbuffer(texture + 1000).is_err());
    let list = mems.each_ref().map(|mem| mem.0);
    for acquire in [true, false] {
        drop(sharing.hand_over(acquire, &list, &[]).expect("a command"));
    }
    sharing.finish();
    assert_ne!(
        context_code(&[CL_GL_CONTEXT_KHR as cl_context_properties, 1, 0]),
        0
    );
    let egl = CL_EGL_DISPLAY_KHR as cl_context_properties;
    let none = [
        CL_GL_CONTEXT_KHR as cl_context_properties,
        1,
        egl,
        world.display as isize,
        0,
    ];
    assert_eq!(context_code(&none), CL_INVALID_GL_SHAREGROUP_REFERENCE_KHR);
    drop(mems);
    gl!(world.gl, DeleteBuffers(1, &buffer));
    gl!(world.gl, DeleteTextures(1, &texture));
}

/// The process ends while objects are being copied.
#[test]
fn of_the_process() {
    if job().is_none() && World::new(OPENGL_API).is_some() {
        good_child::<&str>("gl::ends::inner", "exits", &[]);
    }
}

/// Contexts leave neither threads nor descriptors behind.
#[test]
fn of_contexts() {
    if job().is_none() && World::new(OPENGL_API).is_some() {
        good_child::<&str>("gl::ends::inner", "rounds", &[]);
    }
}
