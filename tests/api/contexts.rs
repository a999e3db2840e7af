//! Contexts.

use pumice_tests::sys::*;
use pumice_tests::{create, create_fails, fails, info, info_value, ok, user_data, Context, Setup};
use std::ffi::c_void;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicU32, Ordering};

#[test]
fn queries() {
    let setup = Setup::new();
    let properties = [CL_CONTEXT_PLATFORM, setup.platform as isize, 0];
    let context = Context(create!(clCreateContext(
        properties.as_ptr(),
        1,
        &setup.device,
        None,
        null_mut()
    )));
    assert_eq!(
        info_value!(u32, clGetContextInfo(context.0), CL_CONTEXT_REFERENCE_COUNT),
        1
    );
    ok!(clRetainContext(context.0));
    assert_eq!(
        info_value!(u32, clGetContextInfo(context.0), CL_CONTEXT_REFERENCE_COUNT),
        2
    );
    ok!(clReleaseContext(context.0));
    assert_eq!(
        info_value!(u32, clGetContextInfo(context.0), CL_CONTEXT_NUM_DEVICES),
        1
    );
    let device = info_value!(usize, clGetContextInfo(context.0), CL_CONTEXT_DEVICES);
    assert_eq!(device, setup.device as usize);
    let kept = info_value!(
        [isize; 3],
        clGetContextInfo(context.0),
        CL_CONTEXT_PROPERTIES
    );
    assert_eq!(kept, properties);
    assert!(info!(clGetContextInfo(setup.context.0), CL_CONTEXT_PROPERTIES).is_empty());
    fails!(
        CL_INVALID_VALUE,
        clGetContextInfo(context.0, 0x1234, 0, null_mut(), null_mut())
    );
}

#[test]
fn wrong_arguments() {
    let setup = Setup::new();
    let device = &setup.device;
    create_fails!(
        CL_INVALID_VALUE,
        clCreateContext(null(), 0, device, None, null_mut())
    );
    create_fails!(
        CL_INVALID_VALUE,
        clCreateContext(null(), 1, null(), None, null_mut())
    );
    let data = user_data(1);
    create_fails!(
        CL_INVALID_VALUE,
        clCreateContext(null(), 1, device, None, data)
    );
    let nothing = [null_mut()];
    create_fails!(
        CL_INVALID_DEVICE,
        clCreateContext(null(), 1, nothing.as_ptr(), None, null_mut())
    );
    let unknown = [0x7777isize, 1, 0];
    create_fails!(
        CL_INVALID_PROPERTY,
        clCreateContext(unknown.as_ptr(), 1, device, None, null_mut())
    );
    let platform = setup.platform as isize;
    let twice = [
        CL_CONTEXT_PLATFORM,
        platform,
        CL_CONTEXT_PLATFORM,
        platform,
        0,
    ];
    create_fails!(
        CL_INVALID_PROPERTY,
        clCreateContext(twice.as_ptr(), 1, device, None, null_mut())
    );
}

#[test]
fn from_type() {
    let setup = Setup::new();
    let properties = [CL_CONTEXT_PLATFORM, setup.platform as isize, 0];
    let types = CL_DEVICE_TYPE_DEFAULT;
    let context = Context(create!(clCreateContextFromType(
        properties.as_ptr(),
        types,
        None,
        null_mut()
    )));
    assert_eq!(
        info_value!(u32, clGetContextInfo(context.0), CL_CONTEXT_NUM_DEVICES),
        1
    );
    create_fails!(
        CL_DEVICE_NOT_FOUND,
        clCreateContextFromType(properties.as_ptr(), CL_DEVICE_TYPE_CUSTOM, None, null_mut())
    );
    create_fails!(
        CL_INVALID_DEVICE_TYPE,
        clCreateContextFromType(properties.as_ptr(), 1 << 30, None, null_mut())
    );
}

static DESTROYED: AtomicU32 = AtomicU32::new(0);

unsafe extern "C" fn destroyed(_context: cl_context, user_data: *mut c_void) {
    // In reverse order of registration.
    let place = user_data as u32;
    let _ = DESTROYED.compare_exchange(2 - place, 3 - place, Ordering::SeqCst, Ordering::SeqCst);
}

#[test]
fn destructor_callbacks_run_last_registered_first() {
    let setup = Setup::new();
    let context = Context(create!(clCreateContext(
        null(),
        1,
        &setup.device,
        None,
        null_mut()
    )));
    ok!(clSetContextDestructorCallback(
        context.0,
        Some(destroyed),
        user_data(1)
    ));
    ok!(clSetContextDestructorCallback(
        context.0,
        Some(destroyed),
        user_data(2)
    ));
    fails!(
        CL_INVALID_VALUE,
        clSetContextDestructorCallback(context.0, None, null_mut())
    );
    let buffer = create!(clCreateBuffer(context.0, CL_MEM_READ_WRITE, 64, null_mut()));
    drop(context);
    assert_eq!(
        DESTROYED.load(Ordering::SeqCst),
        0,
        "the buffer holds the context"
    );
    ok!(clReleaseMemObject(buffer));
    assert_eq!(DESTROYED.load(Ordering::SeqCst), 2);
}
