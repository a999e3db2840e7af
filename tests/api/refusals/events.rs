//! Events, markers, barriers, queues.

use super::Seen;
use pumice_tests::sys::*;
use pumice_tests::{call, info_value, ok, Event, Setup};
use std::ffi::c_void;
use std::ptr::{null, null_mut};

#[test]
fn events_and_queues() {
    let setup = Setup::new();
    let other = Setup::new();
    let mut seen = Seen::default();
    let (c, q, d) = (setup.context.0, setup.queue.0, setup.device);
    let (n, e) = (null(), null_mut());
    let value = CL_INVALID_VALUE;
    let event = Event::user(&setup.context);
    let foreign = Event::user(&other.context);
    gives!(
        seen,
        "running",
        value,
        clSetUserEventStatus(event.0, CL_RUNNING)
    );
    gives!(
        seen,
        "queued",
        value,
        clSetUserEventStatus(event.0, CL_QUEUED)
    );
    let pair = [event.0, foreign.0];
    gives!(
        seen,
        "two contexts",
        CL_INVALID_CONTEXT,
        clWaitForEvents(2, pair.as_ptr())
    );
    gives!(seen, "none", value, clWaitForEvents(0, pair.as_ptr()));
    gives!(seen, "no list", value, clWaitForEvents(1, null()));
    gives!(
        seen,
        "no function",
        value,
        clSetEventCallback(event.0, CL_COMPLETE, None, null_mut())
    );
    extern "C" fn done(_: cl_event, _: cl_int, _: *mut c_void) {}
    gives!(
        seen,
        "queued",
        value,
        clSetEventCallback(event.0, CL_QUEUED, Some(done), null_mut())
    );
    gives!(
        seen,
        "no status",
        value,
        clSetEventCallback(event.0, 7, Some(done), null_mut())
    );
    let mut time = 0u64;
    let t = (&raw mut time).cast::<c_void>();
    gives!(
        seen,
        "of a user event",
        CL_PROFILING_INFO_NOT_AVAILABLE,
        clGetEventProfilingInfo(event.0, CL_PROFILING_COMMAND_START, 8, t, null_mut())
    );
    gives!(
        seen,
        "unknown",
        value,
        clGetEventInfo(event.0, 0x1234, 0, null_mut(), null_mut())
    );
    event.finish(CL_COMPLETE);
    gives!(
        seen,
        "again",
        CL_INVALID_OPERATION,
        clSetUserEventStatus(event.0, CL_COMPLETE)
    );
    let mut marker = null_mut();
    ok!(clEnqueueMarkerWithWaitList(q, 0, n, &mut marker));
    let marker = Event(marker);
    gives!(
        seen,
        "not a user's",
        CL_INVALID_EVENT,
        clSetUserEventStatus(marker.0, CL_COMPLETE)
    );
    gives!(
        seen,
        "no profiling",
        CL_PROFILING_INFO_NOT_AVAILABLE,
        clGetEventProfilingInfo(marker.0, CL_PROFILING_COMMAND_START, 8, t, null_mut())
    );
    gives!(
        seen,
        "of another context",
        CL_INVALID_CONTEXT,
        clEnqueueMarkerWithWaitList(q, 1, &foreign.0, e)
    );
    gives!(
        seen,
        "of another context",
        CL_INVALID_CONTEXT,
        clEnqueueBarrierWithWaitList(q, 1, &foreign.0, e)
    );
    gives!(
        seen,
        "no list",
        CL_INVALID_EVENT_WAIT_LIST,
        clEnqueueBarrierWithWaitList(q, 1, n, e)
    );
    gives!(
        seen,
        "a queue",
        CL_INVALID_EVENT_WAIT_LIST,
        clEnqueueMarkerWithWaitList(q, 1, &q, e)
    );
    gives!(seen, "no event", value, clEnqueueMarker(q, null_mut()));
    foreign.finish(CL_COMPLETE);
    makes_none!(
        seen,
        "no device",
        CL_INVALID_DEVICE,
        clCreateCommandQueueWithProperties(c, null_mut(), null())
    );
    makes_none!(
        seen,
        "no context",
        CL_INVALID_CONTEXT,
        clCreateCommandQueueWithProperties(null_mut(), d, null())
    );
    let lists: [[cl_queue_properties; 3]; 2] =
        [[0x1234, 1, 0], [CL_QUEUE_PROPERTIES.into(), 1 << 40, 0]];
    for list in &lists {
        makes_none!(
            seen,
            format!("{list:x?}"),
            value,
            clCreateCommandQueueWithProperties(c, d, list.as_ptr())
        );
    }
    // Larger than any can be, where there are some.
    let device_queue: [cl_queue_properties; 5] = [
        CL_QUEUE_PROPERTIES.into(),
        CL_QUEUE_ON_DEVICE | CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE,
        CL_QUEUE_SIZE.into(),
        u32::MAX.into(),
        0,
    ];
    let able = info_value!(
        u64,
        clGetDeviceInfo(d),
        CL_DEVICE_DEVICE_ENQUEUE_CAPABILITIES
    ) != 0;
    makes_none!(
        seen,
        "on the device",
        CL_INVALID_QUEUE_PROPERTIES,
        clCreateCommandQueueWithProperties(c, d, device_queue.as_ptr())
    );
    gives!(
        seen,
        "on the device",
        match able {
            true => CL_INVALID_COMMAND_QUEUE,
            false => CL_INVALID_OPERATION,
        },
        clSetDefaultDeviceCommandQueue(c, d, q)
    );
    let mut size = 0u32;
    gives!(
        seen,
        "size",
        CL_INVALID_COMMAND_QUEUE,
        clGetCommandQueueInfo(q, CL_QUEUE_SIZE, 4, (&raw mut size).cast(), null_mut())
    );
}
