//! Platforms, devices, contexts, queues, events: the calls that create and change them.

use crate::table::{Table, NOT_HERE};
use crate::world::World;
use pumice_tests::sys::*;
use pumice_tests::{call, ext, info_value};
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
            CL_INVALID_VALUE "no room" = platforms(w, 0, w.place(), null_mut());
            CL_INVALID_VALUE "nothing is asked" = platforms(w, 0, null_mut(), null_mut());
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
            CL_INVALID_VALUE "a way that the device does not know" => never "every way is known to devices that can be parted, none to others";
            CL_INVALID_VALUE "no room for all" = partible(w, 2, || partition(w, &[CL_DEVICE_PARTITION_BY_COUNTS, 1, 1, 0, 0], 1));
            CL_DEVICE_PARTITION_FAILED "one unit each, of one" => never "needs a device of one compute unit";
            CL_INVALID_DEVICE_PARTITION_COUNT "more devices than can be" => never "as many can be as there are units: \
                the next condition holds as well";
            CL_INVALID_DEVICE_PARTITION_COUNT "more units than there are" =
                partible(w, 2, || partition(w, &[CL_DEVICE_PARTITION_BY_COUNTS, 1, units(w), 0, 0], 2));
            CL_INVALID_DEVICE_PARTITION_COUNT "fewer than none" =
                partible(w, 1, || partition(w, &[CL_DEVICE_PARTITION_BY_COUNTS, -1, 0, 0], 1));
            CL_INVALID_DEVICE_PARTITION_COUNT "more in one than there are" =
                partible(w, 1, || partition(w, &[CL_DEVICE_PARTITION_BY_COUNTS, units(w) + 1, 0, 0], 1));
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
            CL_INVALID_PLATFORM "not a platform" = from_type(w, &[CL_CONTEXT_PLATFORM, w.user.0.addr() as isize, 0]);
            CL_INVALID_PROPERTY "not a value" = from_type(w, &[CL_CONTEXT_PLATFORM, platform(w), CL_CONTEXT_INTEROP_USER_SYNC, 7, 0]);
            CL_INVALID_PROPERTY "twice" = from_type(w, &[CL_CONTEXT_PLATFORM, platform(w),
                CL_CONTEXT_INTEROP_USER_SYNC, 0, CL_CONTEXT_INTEROP_USER_SYNC, 0, 0]);
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
            CL_INVALID_QUEUE_PROPERTIES "what the device does not support" => never "the devices here have queues of all properties that \
                the call knows";
        }
        clCreateCommandQueueWithProperties {
            CL_INVALID_CONTEXT "not a context" = w.bad(|c| makes!(w, clCreateCommandQueueWithProperties(c, w.s.device, null())));
            CL_INVALID_DEVICE "not a device" = w.bad(|d| makes!(w, clCreateCommandQueueWithProperties(w.s.context.0, d, null())));
            CL_INVALID_DEVICE "a device of another context" => never "contexts here have the only device";
            CL_INVALID_VALUE "properties" = [[0x1234, 1, 0], [u64::from(CL_QUEUE_PROPERTIES), 1 << 9, 0]].map(|list|
                makes!(w, clCreateCommandQueueWithProperties(w.s.context.0, w.s.device, list.as_ptr())));
            CL_INVALID_QUEUE_PROPERTIES "what the device does not support" =
                on_device(w, false, || device_queue(w, &[u64::from(CL_QUEUE_PROPERTIES), ON_DEVICE, 0]));
            CL_INVALID_QUEUE_PROPERTIES "a device queue with a priority" = on_device(w, true, || device_queue(w,
                &[u64::from(CL_QUEUE_PROPERTIES), ON_DEVICE, CL_QUEUE_PRIORITY_KHR, u64::from(CL_QUEUE_PRIORITY_LOW_KHR), 0]));
            CL_INVALID_QUEUE_PROPERTIES "a device queue with a throttle" = on_device(w, true, || device_queue(w,
                &[u64::from(CL_QUEUE_PROPERTIES), ON_DEVICE, CL_QUEUE_THROTTLE_KHR, u64::from(CL_QUEUE_THROTTLE_LOW_KHR), 0]));
            CL_INVALID_QUEUE_PROPERTIES "a device queue larger than any can be" =
                device_queue(w, &[u64::from(CL_QUEUE_PROPERTIES), ON_DEVICE, u64::from(CL_QUEUE_SIZE), u64::from(u32::MAX), 0]);
        }
        clCreateUserEvent {
            CL_INVALID_CONTEXT "not a context" = w.bad(|c| makes!(w, clCreateUserEvent(c)));
        }
        clSetUserEventStatus {
            CL_INVALID_EVENT "not a user event" = w.bad_event(|e| call!(clSetUserEventStatus(e, CL_COMPLETE)));
            CL_INVALID_VALUE "neither complete nor negative" = call!(clSetUserEventStatus(w.user.0, CL_RUNNING));
            CL_INVALID_OPERATION "for the second time" = call!(clSetUserEventStatus(w.failed.0, CL_COMPLETE));
            CL_INVALID_EVENT "a command's event" = call!(clSetUserEventStatus(w.unmeasured.0, CL_COMPLETE));
            CL_INVALID_VALUE "queued" = call!(clSetUserEventStatus(w.user.0, CL_QUEUED));
        }
        clSetEventCallback {
            CL_INVALID_EVENT "not an event" = w.bad_event(|e| call!(clSetEventCallback(e, CL_COMPLETE, Some(nothing_of_event), null_mut())));
            CL_INVALID_VALUE "no function" = call!(clSetEventCallback(w.user.0, CL_COMPLETE, None, null_mut()));
            CL_INVALID_VALUE "not such a status" = call!(clSetEventCallback(w.user.0, CL_QUEUED as cl_int, Some(nothing_of_event),
                null_mut()));
            CL_INVALID_VALUE "not a status" = call!(clSetEventCallback(w.user.0, 7, Some(nothing_of_event), null_mut()));
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
            CL_INVALID_COMMAND_QUEUE "a queue of the host" = on_device(w, true, || {
                call!(clSetDefaultDeviceCommandQueue(w.s.context.0, w.s.device, w.s.queue.0)) });
            CL_INVALID_OPERATION "the default cannot be replaced" => never "devices here that have such queues can replace the default";
        }
        clSetCommandQueueProperty {
            CL_INVALID_COMMAND_QUEUE "not a queue" = w.bad(|q| set_property(w, q, 0));
            CL_INVALID_OPERATION "it cannot be changed" = set_property(w, w.s.queue.0, CL_QUEUE_PROFILING_ENABLE);
            CL_INVALID_VALUE "properties" => never "the operation is refused before: no device can change a queue";
            CL_INVALID_QUEUE_PROPERTIES "not supported" => never "the operation is refused before: no device can change a queue";
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

const ON_DEVICE: u64 = CL_QUEUE_ON_DEVICE | CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;

fn platforms(w: &World, n: cl_uint, list: *mut c_void, count: *mut cl_uint) -> cl_int {
    ext!(w.s, clIcdGetPlatformIDsKHR: clIcdGetPlatformIDsKHR_t(n, list.cast(), count))
}

/// Compute units of the device.
fn units(w: &World) -> isize {
    info_value!(
        u32,
        clGetDeviceInfo(w.s.device),
        CL_DEVICE_MAX_COMPUTE_UNITS
    ) as isize
}

/// Where the device can be parted, and has so many units.
fn partible(w: &World, least: isize, call: impl Fn() -> cl_int) -> cl_int {
    let most = info_value!(
        u32,
        clGetDeviceInfo(w.s.device),
        CL_DEVICE_PARTITION_MAX_SUB_DEVICES
    );
    if most < 2 || units(w) < least {
        return NOT_HERE;
    }
    call()
}

/// As a property: without it the loader looks no further.
fn platform(w: &World) -> cl_context_properties {
    w.s.platform.addr() as cl_context_properties
}

fn from_type(w: &World, list: &[cl_context_properties]) -> cl_int {
    makes!(
        w,
        clCreateContextFromType(list.as_ptr(), CL_DEVICE_TYPE_ALL, None, null_mut())
    )
}

/// Where the device has queues of its own, or has none.
fn on_device(w: &World, has: bool, call: impl Fn() -> cl_int) -> cl_int {
    if w.has_device_queues() == has {
        call()
    } else {
        NOT_HERE
    }
}

fn device_queue(w: &World, list: &[cl_queue_properties]) -> cl_int {
    makes!(
        w,
        clCreateCommandQueueWithProperties(w.s.context.0, w.s.device, list.as_ptr())
    )
}

fn set_property(w: &World, q: cl_command_queue, properties: cl_command_queue_properties) -> cl_int {
    call!(clSetCommandQueueProperty(
        q,
        properties,
        CL_TRUE,
        w.place().cast()
    ))
}
