//! Fences of OpenGL and EGL as events.

use super::world::*;
use pumice_tests::sys::*;
use pumice_tests::{call, code_name, info_value, Buffer, Event};
use std::ptr::null_mut;

const FENCE: u32 = 0x9117;

#[test]
fn fences_of_opengl() {
    let Some(world) = World::new(OPENGL_API) else {
        return;
    };
    let sharing = world.setup();
    let context = sharing.setup.context.0;
    let bytes = noise(256, 1);
    let name = world.new_buffer(&[0; 256]);
    let mem = sharing.buffer(CL_MEM_READ_WRITE, name).expect("a buffer");
    gl!(world.gl, BindBuffer(ARRAY_BUFFER, name));
    gl!(
        world.gl,
        BufferData(ARRAY_BUFFER, 256, bytes.as_ptr().cast(), 0x88E8)
    );
    let sync = gl!(world.gl, FenceSync(FENCE, 0));
    let mut code = 1;
    let event = Event(cl!(sharing, event_from_sync(context, sync, &mut code)));
    assert_eq!(code, 0);
    // The event does not need it any longer.
    gl!(world.gl, DeleteSync(sync));
    assert_eq!(
        info_value!(u32, clGetEventInfo(event.0), CL_EVENT_COMMAND_TYPE),
        CL_COMMAND_GL_FENCE_SYNC_OBJECT_KHR
    );
    assert_eq!(
        info_value!(usize, clGetEventInfo(event.0), CL_EVENT_COMMAND_QUEUE),
        0
    );
    assert!([CL_SUBMITTED, 0].contains(&event.status()));
    assert_eq!(
        code_name(call!(clSetUserEventStatus(event.0, 0))),
        "CL_INVALID_EVENT"
    );
    let acquired = sharing
        .hand_over(true, &[mem.0], &[event.0])
        .expect("an acquire");
    assert_eq!(acquired.wait(), 0);
    assert_eq!(event.wait(), 0);
    assert_eq!(event.status(), 0);
    assert_eq!(sharing.setup.read::<u8>(&mem, 256), bytes);
    // "Passing such events to any other CL API that enqueues commands will generate a CL_INVALID_EVENT error."
    let marker = call!(clEnqueueMarkerWithWaitList(
        sharing.queue(),
        1,
        &event.0,
        null_mut()
    ));
    assert_eq!(code_name(marker), "CL_INVALID_EVENT");
    drop(
        sharing
            .hand_over(false, &[mem.0], &[event.0])
            .expect("a release"),
    );
    sharing.finish();
}

#[test]
fn callbacks_of_fences_may_use_opengl() {
    extern "C" fn creates(_: cl_event, status: cl_int, data: *mut std::ffi::c_void) {
        // SAFETY: it lives until the test ends, which waits.
        let (sharing, name, done) =
            unsafe { &*data.cast::<(&Sharing, u32, std::sync::mpsc::Sender<i32>)>() };
        let made = sharing.buffer(CL_MEM_READ_WRITE, *name).map(drop);
        let _ = done.send(status + made.err().unwrap_or(0));
    }
    let Some(world) = World::new(OPENGL_API) else {
        return;
    };
    let sharing = world.setup();
    let name = world.new_buffer(&[0; 256]);
    let sync = gl!(world.gl, FenceSync(FENCE, 0));
    let mut code = 1;
    let event = Event(cl!(
        sharing,
        event_from_sync(sharing.setup.context.0, sync, &mut code)
    ));
    let (sender, done) = std::sync::mpsc::channel();
    let data = (&sharing, name, sender);
    let set = call!(clSetEventCallback(
        event.0,
        CL_COMPLETE,
        Some(creates),
        (&raw const data).cast_mut().cast()
    ));
    assert_eq!(set, 0);
    assert_eq!(done.recv_timeout(std::time::Duration::from_secs(20)), Ok(0));
    gl!(world.gl, DeleteSync(sync));
}

/// A callback of a command acquires another object, and waits for that.
#[test]
fn callbacks_of_commands_may_wait_for_others() {
    extern "C" fn acquires(_: cl_event, status: cl_int, data: *mut std::ffi::c_void) {
        // SAFETY: it lives until the test ends, which waits.
        let (sharing, mem, done) =
            unsafe { &*data.cast::<(&Sharing, &Buffer, std::sync::mpsc::Sender<i32>)>() };
        let acquired = sharing.hand_over(true, &[mem.0], &[]).expect("an acquire");
        let _ = done.send(status + acquired.wait());
    }
    let Some(world) = World::new(OPENGL_API) else {
        return;
    };
    let sharing = world.setup();
    let names = [(); 2].map(|()| world.new_buffer(&[4; 256]));
    let mems = names.map(|name| sharing.buffer(CL_MEM_READ_WRITE, name).expect("a buffer"));
    for acquire in [true, false] {
        let (sender, done) = std::sync::mpsc::channel();
        let data = (&sharing, &mems[1], sender);
        let gate = Event::user(&sharing.setup.context);
        let event = (sharing.hand_over(acquire, &[mems[0].0], &[gate.0])).expect("a command");
        let set = call!(clSetEventCallback(
            event.0,
            CL_COMPLETE,
            Some(acquires),
            (&raw const data).cast_mut().cast()
        ));
        assert_eq!(set, 0);
        gate.finish(0);
        assert_eq!(done.recv_timeout(std::time::Duration::from_secs(20)), Ok(0));
    }
}

/// A release in the thread of a context of OpenGL waits for its end, but not for the thread itself.
#[test]
fn releases_do_not_wait_for_user_events() {
    let Some(world) = World::new(OPENGL_API) else {
        return;
    };
    let sharing = world.setup();
    let name = world.new_buffer(&[4; 256]);
    let mem = sharing.buffer(CL_MEM_READ_WRITE, name).expect("a buffer");
    let bytes = noise(256, 3);
    for _ in 0..3 {
        let gate = Event::user(&sharing.setup.context);
        sharing.acquire(&mem);
        let (size, place) = (bytes.len(), bytes.as_ptr().cast());
        let written = call!(clEnqueueWriteBuffer(
            sharing.queue(),
            mem.0,
            CL_FALSE,
            0,
            size,
            place,
            1,
            &gate.0,
            null_mut()
        ));
        assert_eq!(written, 0);
        let released = sharing.hand_over(false, &[mem.0], &[]).expect("a release");
        assert_ne!(released.status(), 0);
        gate.finish(0);
        assert_eq!(released.wait(), 0);
        assert_eq!(world.buffer_bytes(name, 256), bytes);
    }
    // The gates are open: this one waits, and OpenGL sees what it has written at once.
    let other = noise(256, 4);
    sharing.acquire(&mem);
    sharing.setup.write(&mem, &other);
    let released = sharing.hand_over(false, &[mem.0], &[]).expect("a release");
    assert_eq!(released.status(), 0);
    assert_eq!(world.buffer_bytes(name, 256), other);
}

#[test]
fn wrong_fences() {
    let Some(world) = World::new(OPENGL_API) else {
        return;
    };
    let sharing = world.setup();
    let context = sharing.setup.context.0;
    let made = |context, sync: Pointer| {
        let mut code = 1;
        let event = cl!(sharing, event_from_sync(context, sync, &mut code));
        assert!(event.is_null());
        code
    };
    assert_eq!(made(context, null_mut()), CL_INVALID_GL_OBJECT);
    assert_eq!(made(context, 0x40 as Pointer), CL_INVALID_GL_OBJECT);
    let alone = Sharing::new(&[0], 0);
    assert_eq!(made(alone.setup.context.0, null_mut()), CL_INVALID_CONTEXT);
    assert_eq!(made(null_mut(), null_mut()), CL_INVALID_CONTEXT);
    let mut code = 1;
    let event = cl!(
        sharing,
        event_from_egl_sync(context, 0x40 as Pointer, world.display, &mut code)
    );
    assert!(event.is_null());
    assert_eq!(code, cl_egl::CL_INVALID_EGL_OBJECT_KHR);
}

#[test]
fn fences_of_egl() {
    let Some(world) = World::new(OPENGL_API) else {
        return;
    };
    let sharing = world.setup();
    let name = world.new_buffer(&[7; 256]);
    let mem = sharing.buffer(CL_MEM_READ_WRITE, name).expect("a buffer");
    let sync = gl!(
        world.egl,
        CreateSync(world.display, 0x30F9, std::ptr::null())
    );
    assert!(!sync.is_null());
    let mut code = 1;
    let event = Event(cl!(
        sharing,
        event_from_egl_sync(sharing.setup.context.0, sync, world.display, &mut code)
    ));
    assert_eq!(code, 0);
    gl!(world.egl, DestroySync(world.display, sync));
    assert_eq!(
        info_value!(u32, clGetEventInfo(event.0), CL_EVENT_COMMAND_TYPE),
        cl_egl::CL_COMMAND_EGL_FENCE_SYNC_OBJECT_KHR
    );
    let acquired = sharing
        .hand_over(true, &[mem.0], &[event.0])
        .expect("an acquire");
    assert_eq!(acquired.wait(), 0);
    assert_eq!(sharing.setup.read::<u8>(&mem, 256), [7; 256]);
}
