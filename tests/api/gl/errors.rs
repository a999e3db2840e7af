//! Wrong use: the errors of the specification.

use super::world::*;
use pumice_tests::sys::*;
use pumice_tests::{info_value, Buffer, Setup};
use std::ptr::{null, null_mut};

const GL: cl_context_properties = CL_GL_CONTEXT_KHR as cl_context_properties;
const EGL: cl_context_properties = CL_EGL_DISPLAY_KHR as cl_context_properties;
const GLX: cl_context_properties = CL_GLX_DISPLAY_KHR as cl_context_properties;

#[test]
fn contexts() {
    let Some(world) = World::new(OPENGL_API) else {
        return;
    };
    let [_, context, _, display, _] = world.properties();
    let user_sync = CL_CONTEXT_INTEROP_USER_SYNC as cl_context_properties;
    let cgl = CL_CGL_SHAREGROUP_KHR as cl_context_properties;
    let wgl = CL_WGL_HDC_KHR as cl_context_properties;
    let no_group = CL_INVALID_GL_SHAREGROUP_REFERENCE_KHR;
    #[rustfmt::skip]
    let all: &[(&[cl_context_properties], cl_int)] = &[
        (&[GL, context, EGL, display, 0], 0),
        (&[EGL, display, GL, context, GLX, 0, 0], 0),
        (&[GL, 0, EGL, 0, 0], 0),
        (&[GL, context, 0], no_group),
        (&[EGL, display, 0], no_group),
        (&[GL, context + 8, EGL, display, 0], no_group),
        (&[GL, context, EGL, display + 8, 0], no_group),
        (&[GL, context, EGL, display, GLX, display, 0], CL_INVALID_OPERATION),
        (&[GL, context, EGL, display, cgl, display, 0], CL_INVALID_OPERATION),
        (&[GL, context, wgl, display, 0], CL_INVALID_OPERATION),
        (&[cgl, context, 0], CL_INVALID_OPERATION),
        (&[GL, context, EGL, display, user_sync, 1, 0], CL_INVALID_PROPERTY),
        (&[GL, context, GL, context, EGL, display, 0], CL_INVALID_PROPERTY),
    ];
    for (properties, code) in all {
        assert_eq!(context_code(properties), *code, "{properties:x?}");
    }
    // A context that is gone.
    let gone = world.properties();
    drop(world);
    assert_eq!(context_code(&gone), no_group);
}

#[test]
fn devices_of_a_context() {
    let Some(world) = World::new(OPENGL_API) else {
        return;
    };
    let sharing = world.setup();
    let platform = [
        CL_CONTEXT_PLATFORM as cl_context_properties,
        sharing.setup.platform as cl_context_properties,
    ];
    // The loader needs it to find the driver.
    let with_platform = |rest: &[cl_context_properties]| [&platform, rest].concat();
    let properties = with_platform(&world.properties());
    let ask = |what, room: usize| {
        let (mut devices, mut size) = (vec![null_mut::<std::ffi::c_void>(); 32], 0);
        let place = devices.as_mut_ptr().cast();
        let code = cl!(
            sharing,
            context_info(properties.as_ptr(), what, room * 8, place, &mut size)
        );
        devices.truncate(size / 8);
        (code, devices)
    };
    let (code, current) = ask(CL_CURRENT_DEVICE_FOR_GL_CONTEXT_KHR, 32);
    assert_eq!((code, current.len()), (0, 1));
    let (code, all) = ask(CL_DEVICES_FOR_GL_CONTEXT_KHR, 32);
    assert_eq!(code, 0);
    assert_eq!(all[0], current[0]);
    assert!(all.contains(&sharing.setup.device));
    assert_eq!(ask(CL_DEVICES_FOR_GL_CONTEXT_KHR, 0).0, CL_INVALID_VALUE);
    assert_eq!(ask(CL_GL_TEXTURE_TARGET, 32).0, CL_INVALID_VALUE);
    let mut size = 0;
    let mut info = |list: &[cl_context_properties]| {
        let (what, list) = (CL_DEVICES_FOR_GL_CONTEXT_KHR, with_platform(list));
        cl!(
            sharing,
            context_info(list.as_ptr(), what, 0, null_mut(), &mut size)
        )
    };
    assert_eq!(info(&world.properties()), 0);
    assert_eq!(info(&[0]), CL_INVALID_GL_SHAREGROUP_REFERENCE_KHR);
    assert_eq!(
        info(&[GL, 0x10, EGL, 0x20, 0]),
        CL_INVALID_GL_SHAREGROUP_REFERENCE_KHR
    );
    assert_eq!(info(&[0x7777, 1, 0]), CL_INVALID_VALUE);
}

#[test]
fn objects() {
    let Some(world) = World::new(OPENGL_API) else {
        return;
    };
    let sharing = world.setup();
    let gl = &world.gl;
    let buffer = world.new_buffer(&[1; 64]);
    let texture = world.new_texture(TEXTURE_2D, [8, 8, 1], RGBA8, None);
    let (mut empty, mut bare, mut blank) = (0, 0, 0);
    gl!(gl, GenBuffers(1, &mut empty));
    gl!(gl, BindBuffer(ARRAY_BUFFER, empty));
    gl!(gl, GenTextures(1, &mut bare));
    gl!(gl, BindTexture(TEXTURE_2D, bare));
    gl!(gl, GenRenderbuffers(1, &mut blank));
    gl!(gl, BindRenderbuffer(RENDERBUFFER, blank));
    let flags = CL_MEM_READ_WRITE;
    let code = |made: Result<Buffer, cl_int>| made.map(drop).err().unwrap_or(0);

    assert_eq!(code(sharing.buffer(flags, buffer)), 0);
    assert_eq!(code(sharing.buffer(flags, 0)), CL_INVALID_GL_OBJECT);
    assert_eq!(code(sharing.buffer(flags, 4711)), CL_INVALID_GL_OBJECT);
    assert_eq!(code(sharing.buffer(flags, empty)), CL_INVALID_GL_OBJECT);
    assert_eq!(
        code(sharing.buffer(CL_MEM_COPY_HOST_PTR, buffer)),
        CL_INVALID_VALUE
    );
    assert_eq!(
        code(sharing.buffer(CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY, buffer)),
        CL_INVALID_VALUE
    );

    assert_eq!(code(sharing.texture(TEXTURE_2D, 0, texture)), 0);
    assert_eq!(
        code(sharing.texture(TEXTURE_2D, 0, 0)),
        CL_INVALID_GL_OBJECT
    );
    assert_eq!(
        code(sharing.texture(TEXTURE_2D, 0, 4711)),
        CL_INVALID_GL_OBJECT
    );
    assert_eq!(
        code(sharing.texture(TEXTURE_2D, 0, bare)),
        CL_INVALID_GL_OBJECT
    );
    assert_eq!(
        code(sharing.texture(TEXTURE_3D, 0, texture)),
        CL_INVALID_GL_OBJECT
    );
    assert_eq!(
        code(sharing.texture(0x8515, 0, texture)),
        CL_INVALID_GL_OBJECT
    );
    assert_eq!(code(sharing.texture(0x8513, 0, texture)), CL_INVALID_VALUE);
    assert_eq!(
        code(sharing.texture(ARRAY_BUFFER, 0, texture)),
        CL_INVALID_VALUE
    );
    assert_eq!(
        code(sharing.texture(TEXTURE_2D, -1, texture)),
        CL_INVALID_MIP_LEVEL
    );
    assert_eq!(
        code(sharing.texture(TEXTURE_2D, 3, texture)),
        CL_INVALID_MIP_LEVEL
    );
    assert_eq!(
        code(sharing.texture(TEXTURE_2D, 3000, texture)),
        CL_INVALID_MIP_LEVEL
    );
    // An internal format of three channels is not in the table.
    let three = world.new_texture(TEXTURE_2D, [8, 8, 1], (0x8051, 0x1907, 0x1401), None);
    assert_eq!(
        code(sharing.texture(TEXTURE_2D, 0, three)),
        CL_INVALID_IMAGE_FORMAT_DESCRIPTOR
    );

    assert_eq!(code(sharing.renderbuffer(0)), CL_INVALID_GL_OBJECT);
    assert_eq!(code(sharing.renderbuffer(blank)), CL_INVALID_GL_OBJECT);
    gl!(
        gl,
        RenderbufferStorageMultisample(RENDERBUFFER, 4, 0x8058, 8, 8)
    );
    world.check();
    assert_eq!(code(sharing.renderbuffer(blank)), CL_INVALID_OPERATION);

    // A context without OpenGL.
    let alone = Sharing::new(&[0], 0);
    assert_eq!(code(alone.buffer(flags, buffer)), CL_INVALID_CONTEXT);
    assert_eq!(
        code(alone.texture(TEXTURE_2D, 0, texture)),
        CL_INVALID_CONTEXT
    );
    assert_eq!(code(alone.renderbuffer(1)), CL_INVALID_CONTEXT);
    assert_eq!(
        alone.hand_over(true, &[], &[]).map(drop),
        Err(CL_INVALID_VALUE)
    );
}

#[test]
fn queries() {
    let Some(world) = World::new(OPENGL_API) else {
        return;
    };
    let sharing = world.setup();
    let buffer = world.new_buffer(&[1; 64]);
    let mem = sharing.buffer(CL_MEM_READ_WRITE, buffer).expect("a buffer");
    let plain = sharing.setup.buffer(64);
    let (mut kind, mut name) = (0, 0);
    assert_eq!(cl!(sharing, object_info(mem.0, &mut kind, &mut name)), 0);
    assert_eq!((kind, name), (CL_GL_OBJECT_BUFFER, buffer));
    assert_eq!(cl!(sharing, object_info(mem.0, null_mut(), null_mut())), 0);
    assert_eq!(
        cl!(sharing, object_info(plain.0, &mut kind, &mut name)),
        CL_INVALID_GL_OBJECT
    );
    assert_eq!(
        cl!(sharing, object_info(null_mut(), &mut kind, &mut name)),
        CL_INVALID_MEM_OBJECT
    );
    let info = |mem: cl_mem, what| {
        let mut value = 0u32;
        cl!(
            sharing,
            texture_info(mem, what, 4, (&raw mut value).cast(), null_mut())
        )
    };
    assert_eq!(info(mem.0, CL_GL_TEXTURE_TARGET), CL_INVALID_GL_OBJECT);
    let texture = world.new_texture(TEXTURE_2D, [8, 8, 1], RGBA8, None);
    let image = sharing.texture(TEXTURE_2D, 0, texture).expect("an image");
    assert_eq!(info(image.0, CL_GL_TEXTURE_TARGET), 0);
    assert_eq!(info(image.0, CL_GL_OBJECT_BUFFER), CL_INVALID_VALUE);
    let mut short = 0u16;
    let place = (&raw mut short).cast();
    let code = cl!(
        sharing,
        texture_info(image.0, CL_GL_TEXTURE_TARGET, 2, place, null_mut())
    );
    assert_eq!(code, CL_INVALID_VALUE);
}

#[test]
fn commands() {
    let Some(world) = World::new(OPENGL_API) else {
        return;
    };
    let (sharing, other) = (world.setup(), world.setup());
    let name = world.new_buffer(&[1; 64]);
    let mem = sharing.buffer(CL_MEM_READ_WRITE, name).expect("a buffer");
    let foreign = other.buffer(CL_MEM_READ_WRITE, name).expect("a buffer");
    let plain = sharing.setup.buffer(64);
    for acquire in [true, false] {
        let code = |list: &[cl_mem]| sharing.hand_over(acquire, list, &[]).map(drop).err();
        assert_eq!(code(&[plain.0]), Some(CL_INVALID_GL_OBJECT));
        assert_eq!(code(&[mem.0, plain.0]), Some(CL_INVALID_GL_OBJECT));
        assert_eq!(code(&[null_mut()]), Some(CL_INVALID_MEM_OBJECT));
        assert_eq!(code(&[foreign.0]), Some(CL_INVALID_CONTEXT));
        // An empty list that is no null pointer.
        assert_eq!(code(&[]), Some(CL_INVALID_VALUE));
    }
    let queue = sharing.queue();
    let none = |count| {
        cl!(
            sharing,
            acquire(queue, count, null(), 0, null(), null_mut())
        )
    };
    assert_eq!([none(0), none(1)], [0, CL_INVALID_VALUE]);
    let code = cl!(
        sharing,
        acquire(null_mut(), 1, &mem.0, 0, null(), null_mut())
    );
    assert_eq!(code, CL_INVALID_COMMAND_QUEUE);
    let code = cl!(sharing, acquire(queue, 1, &mem.0, 1, null(), null_mut()));
    assert_eq!(code, CL_INVALID_EVENT_WAIT_LIST);
    let code = cl!(
        sharing,
        acquire_images(queue, 1, &mem.0, 0, null(), null_mut())
    );
    assert_eq!(code, cl_egl::CL_INVALID_EGL_OBJECT_KHR);
    let event = sharing.hand_over(true, &[mem.0], &[]).expect("an acquire");
    let kind = |event: &pumice_tests::Event| {
        info_value!(u32, clGetEventInfo(event.0), CL_EVENT_COMMAND_TYPE)
    };
    assert_eq!(kind(&event), CL_COMMAND_ACQUIRE_GL_OBJECTS);
    let event = sharing.hand_over(false, &[mem.0], &[]).expect("a release");
    assert_eq!(kind(&event), CL_COMMAND_RELEASE_GL_OBJECTS);
}

/// An object that OpenGL has deleted, or given other storage: the command fails, and everything else goes on.
#[test]
fn objects_that_are_gone() {
    let Some(world) = World::new(OPENGL_API) else {
        return;
    };
    let sharing = world.setup();
    let gl = &world.gl;
    let kept = world.new_buffer(&[3; 64]);
    let other = sharing.buffer(CL_MEM_READ_WRITE, kept).expect("a buffer");
    let buffer = world.new_buffer(&[1; 64]);
    let texture = world.new_texture(TEXTURE_2D, [8, 8, 1], RGBA8, None);
    let mems = [
        sharing.buffer(CL_MEM_READ_WRITE, buffer).expect("a buffer"),
        sharing.texture(TEXTURE_2D, 0, texture).expect("an image"),
    ];
    let larger = world.new_texture(TEXTURE_2D, [8, 8, 1], RGBA8, None);
    let changed = sharing.texture(TEXTURE_2D, 0, larger).expect("an image");
    gl!(gl, DeleteBuffers(1, &buffer));
    gl!(gl, DeleteTextures(1, &texture));
    gl!(gl, BindTexture(TEXTURE_2D, larger));
    gl!(
        gl,
        TexImage2D(TEXTURE_2D, 0, 0x8058, 512, 512, 0, 0x1908, 0x1401, null())
    );
    gl!(gl, Finish());
    for mem in mems.iter().chain([&changed]) {
        for acquire in [true, false] {
            let event = sharing
                .hand_over(acquire, &[mem.0], &[])
                .expect("a command");
            assert_eq!(event.wait(), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
            assert!(event.status() < 0);
        }
    }
    sharing.acquire(&other);
    assert_eq!(sharing.setup.read::<u8>(&other, 64), [3; 64]);
    sharing.release(&other);
    sharing.finish();
}

/// A wait list that fails: nothing waits for ever.
#[test]
fn waits_that_fail() {
    let Some(world) = World::new(OPENGL_API) else {
        return;
    };
    let sharing = world.setup();
    let name = world.new_buffer(&[1; 64]);
    let mem = sharing.buffer(CL_MEM_READ_WRITE, name).expect("a buffer");
    for acquire in [true, false] {
        let gate = pumice_tests::Event::user(&sharing.setup.context);
        let event = sharing
            .hand_over(acquire, &[mem.0], &[gate.0])
            .expect("a command");
        gate.finish(-5);
        assert_eq!(event.wait(), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
        assert_eq!(event.status(), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
    }
    sharing.acquire(&mem);
    assert_eq!(sharing.setup.read::<u8>(&mem, 64), [1; 64]);
}

#[test]
fn extensions_are_reported_where_they_work() {
    let setup = Setup::new();
    // SAFETY: libraries of the system.
    let has = |name| unsafe { libloading::Library::new(name) }.is_ok();
    let egl = has("libEGL.so.1");
    let any = egl || has("libGLX.so.0") || has("libGL.so.1");
    for (name, expected) in [
        ("cl_khr_gl_sharing", any),
        ("cl_khr_gl_event", any),
        ("cl_khr_gl_depth_images", any),
        ("cl_khr_egl_image", egl),
        ("cl_khr_egl_event", egl),
        ("cl_khr_gl_msaa_sharing", false),
    ] {
        assert_eq!(setup.has_extension(name), expected, "{name}");
        let source =
            format!("kernel void k(global int *p) {{ *p = 0; }}\n#ifndef {name}\n#error\n#endif");
        assert_eq!(setup.try_build(&source, "").is_ok(), expected, "{name}");
    }
}

/// Objects, queue and context go in any order, and that of OpenGL before them.
#[test]
fn ends_in_any_order() {
    for order in 0..3 {
        let Some(world) = World::new(OPENGL_API) else {
            return;
        };
        let sharing = world.setup();
        let name = world.new_texture(TEXTURE_2D, [8, 8, 1], RGBA8, None);
        let mem = sharing.texture(TEXTURE_2D, 0, name).expect("an image");
        sharing.acquire(&mem);
        match order {
            0 => drop((mem, sharing, world)),
            1 => drop((sharing, mem, world)),
            _ => drop((world, mem, sharing)),
        }
    }
}
