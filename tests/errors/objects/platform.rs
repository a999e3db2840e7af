//! Platforms, devices, contexts, queues, events: what makes them and is told to them.

use crate::table::Table;
use crate::world::World;
use pumice_tests::call;
use pumice_tests::sys::*;
use std::ffi::c_void;
use std::ptr::{null, null_mut};

pub fn rows(t: &mut Table) {
    rows! { t, w;
        clGetPlatformIDs {
            CL_INVALID_VALUE "no room" = call!(clGetPlatformIDs(0, w.place().cast(), null_mut()));
            CL_INVALID_VALUE "nothing is asked" = call!(clGetPlatformIDs(0, null_mut(), null_mut()));
            CL_PLATFORM_NOT_FOUND_KHR "no platform" => never "Pumice has one as soon as its library is loaded";
        }
        clIcdGetPlatformIDsKHR {
            CL_PLATFORM_NOT_FOUND_KHR "no platform" => never "Pumice has one as soon as its library is loaded";
        }
        clGetDeviceIDs {
            CL_INVALID_PLATFORM "not a platform" = call!(clGetDeviceIDs(w.user.0, CL_DEVICE_TYPE_ALL, 1, w.place().cast(), null_mut()));
            CL_INVALID_DEVICE_TYPE "not a type" = call!(clGetDeviceIDs(w.s.platform, 0, 1, w.place().cast(), null_mut()));
            CL_INVALID_VALUE "no room" = call!(clGetDeviceIDs(w.s.platform, CL_DEVICE_TYPE_ALL, 0, w.place().cast(), null_mut()));
            CL_INVALID_VALUE "nothing is asked" = call!(clGetDeviceIDs(w.s.platform, CL_DEVICE_TYPE_ALL, 0, null_mut(), null_mut()));
            CL_DEVICE_NOT_FOUND "an accelerator" =
                call!(clGetDeviceIDs(w.s.platform, CL_DEVICE_TYPE_ACCELERATOR, 1, w.place().cast(), null_mut()));
        }
        clGetDeviceAndHostTimer {
            CL_INVALID_DEVICE "not a device" = w.bad(|d| call!(clGetDeviceAndHostTimer(d, w.place().cast(), w.place().cast())));
            CL_INVALID_VALUE "no place for the host's" = call!(clGetDeviceAndHostTimer(w.s.device, w.place().cast(), null_mut()));
            CL_INVALID_VALUE "no place for the device's" = call!(clGetDeviceAndHostTimer(w.s.device, null_mut(), w.place().cast()));
            CL_INVALID_OPERATION "no timers that agree" => never "the devices here have them";
        }
        clGetHostTimer {
            CL_INVALID_DEVICE "not a device" = w.bad(|d| call!(clGetHostTimer(d, w.place().cast())));
            CL_INVALID_VALUE "no place" = call!(clGetHostTimer(w.s.device, null_mut()));
            CL_INVALID_OPERATION "no timers that agree" => never "the devices here have them";
        }
        clCreateSubDevices {
            CL_INVALID_DEVICE "not a device" = w.bad(|d|
                call!(clCreateSubDevices(d, [CL_DEVICE_PARTITION_EQUALLY, 1, 0].as_ptr(), 1, w.place().cast(), null_mut())));
            CL_INVALID_VALUE "no way to part" = [partition(w, &[0x1234, 1, 0], 1), partition(w, &[0], 1)];
        }
        clCreateContext {
            CL_INVALID_VALUE "no devices" = makes!(w, clCreateContext(null(), 1, null(), None, null_mut()));
            CL_INVALID_VALUE "none of them" = makes!(w, clCreateContext(null(), 0, &w.s.device, None, null_mut()));
            CL_INVALID_VALUE "user data, no function" = makes!(w, clCreateContext(null(), 1, &w.s.device, None, w.place()));
            CL_INVALID_DEVICE "not a device" = makes!(w, clCreateContext(null(), 2, [w.s.device, w.user.0].as_ptr(), None, null_mut()));
            CL_INVALID_PLATFORM "not a platform" = makes!(w, clCreateContext([CL_CONTEXT_PLATFORM, w.user.0.addr() as isize, 0].as_ptr(), 1,
                &w.s.device, None, null_mut()));
            CL_INVALID_PLATFORM "none can be chosen" => never "there is one: Pumice's";
            CL_INVALID_PROPERTY "not a property" = makes!(w, clCreateContext([0x1234, 1, 0].as_ptr(), 1, &w.s.device, None, null_mut()));
            CL_INVALID_PROPERTY "not a value" = makes!(w, clCreateContext([CL_CONTEXT_INTEROP_USER_SYNC, 7, 0].as_ptr(), 1, &w.s.device, None,
                null_mut()));
            CL_INVALID_PROPERTY "twice" = makes!(w, clCreateContext([CL_CONTEXT_INTEROP_USER_SYNC, 0, CL_CONTEXT_INTEROP_USER_SYNC, 0, 0]
                .as_ptr(), 1, &w.s.device, None, null_mut()));
            CL_DEVICE_NOT_AVAILABLE "a lost device" => never "needs a device that is lost: the fault runner's";
        }
        clCreateContextFromType {
            CL_INVALID_VALUE "user data, no function" = makes!(w, clCreateContextFromType(null(), CL_DEVICE_TYPE_ALL, None, w.place()));
            CL_INVALID_DEVICE_TYPE "not a type" = makes!(w, clCreateContextFromType(null(), 0, None, null_mut()));
            CL_DEVICE_NOT_FOUND "an accelerator" = makes!(w, clCreateContextFromType(null(), CL_DEVICE_TYPE_ACCELERATOR, None, null_mut()));
            CL_INVALID_PLATFORM "none can be chosen" => never "there is one: Pumice's";
            CL_DEVICE_NOT_AVAILABLE "a lost device" => never "needs a device that is lost: the fault runner's";
            CL_INVALID_PROPERTY "not a property" = makes!(w, clCreateContextFromType(
                [CL_CONTEXT_PLATFORM, w.s.platform.addr() as isize, 0x1234, 1, 0].as_ptr(), CL_DEVICE_TYPE_ALL, None, null_mut()));
        }
        clSetContextDestructorCallback {
            CL_INVALID_VALUE "no function" = call!(clSetContextDestructorCallback(w.s.context.0, None, null_mut()));
            CL_INVALID_CONTEXT "not a context" = w.bad(|c| call!(clSetContextDestructorCallback(c, Some(nothing_of_context), null_mut())));
        }
        clCreateCommandQueue {
            CL_INVALID_CONTEXT "not a context" = w.bad(|c| makes!(w, clCreateCommandQueue(c, w.s.device, 0)));
            CL_INVALID_DEVICE "not a device" = w.bad(|d| makes!(w, clCreateCommandQueue(w.s.context.0, d, 0)));
            CL_INVALID_DEVICE "a device of another context" => never "contexts here have the only device";
            CL_INVALID_VALUE "properties" = makes!(w, clCreateCommandQueue(w.s.context.0, w.s.device, 1 << 9));
        }
        clCreateCommandQueueWithProperties {
            CL_INVALID_CONTEXT "not a context" = w.bad(|c| makes!(w, clCreateCommandQueueWithProperties(c, w.s.device, null())));
            CL_INVALID_DEVICE "not a device" = w.bad(|d| makes!(w, clCreateCommandQueueWithProperties(w.s.context.0, d, null())));
            CL_INVALID_DEVICE "a device of another context" => never "contexts here have the only device";
            CL_INVALID_VALUE "properties" = [[0x1234, 1, 0], [u64::from(CL_QUEUE_PROPERTIES), 1 << 9, 0]].map(|list|
                makes!(w, clCreateCommandQueueWithProperties(w.s.context.0, w.s.device, list.as_ptr())));
        }
        clCreateUserEvent {
            CL_INVALID_CONTEXT "not a context" = w.bad(|c| makes!(w, clCreateUserEvent(c)));
        }
        clSetUserEventStatus {
            CL_INVALID_EVENT "not a user event" = w.bad_event(|e| call!(clSetUserEventStatus(e, CL_COMPLETE)));
            CL_INVALID_VALUE "neither complete nor negative" = call!(clSetUserEventStatus(w.user.0, CL_RUNNING));
            CL_INVALID_OPERATION "for the second time" = call!(clSetUserEventStatus(w.failed.0, CL_COMPLETE));
        }
        clSetEventCallback {
            CL_INVALID_EVENT "not an event" = w.bad_event(|e| call!(clSetEventCallback(e, CL_COMPLETE, Some(nothing_of_event), null_mut())));
            CL_INVALID_VALUE "no function" = call!(clSetEventCallback(w.user.0, CL_COMPLETE, None, null_mut()));
            CL_INVALID_VALUE "not such a status" = call!(clSetEventCallback(w.user.0, CL_QUEUED as cl_int, Some(nothing_of_event),
                null_mut()));
        }
        clWaitForEvents {
            CL_INVALID_VALUE "nothing to wait for" = [call!(clWaitForEvents(0, &w.failed.0)), call!(clWaitForEvents(1, null()))];
            CL_INVALID_EVENT "not an event" = call!(clWaitForEvents(2, [w.failed.0, w.b.0].as_ptr()));
            CL_INVALID_CONTEXT "two contexts" = call!(clWaitForEvents(2, [w.user.0, w.user_foreign.0].as_ptr()));
            CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST "one that failed" = call!(clWaitForEvents(1, &w.failed.0));
        }
        clSetDefaultDeviceCommandQueue {
            CL_INVALID_CONTEXT "not a context" = w.bad(|c| call!(clSetDefaultDeviceCommandQueue(c, w.s.device, w.s.queue.0)));
            CL_INVALID_DEVICE "not a device" = w.bad(|d| call!(clSetDefaultDeviceCommandQueue(w.s.context.0, d, w.s.queue.0)));
            CL_INVALID_DEVICE "a device of another context" => never "contexts here have the only device";
        }
    }
}

fn partition(w: &World, list: &[isize], n: cl_uint) -> cl_int {
    call!(clCreateSubDevices(
        w.s.device,
        list.as_ptr(),
        n,
        w.place().cast(),
        null_mut()
    ))
}

extern "C" fn nothing_of_event(_: cl_event, _: cl_int, _: *mut c_void) {}

extern "C" fn nothing_of_context(_: *mut c_void, _: *mut c_void) {}
