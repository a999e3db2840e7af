//! Tests of a lost device: nothing waits, nothing is submitted, everything can be released.

use super::super::timeline::VulkanTimeline;
use super::*;
use crate::backend::DeviceError;
use std::time::Duration;

#[test]
fn a_lost_device_is_not_waited_for() {
    let _silence = Silence::new();
    let Some(device) = device(false) else { return };
    let kernel = add_kernel(&device);
    let memory = device
        .allocate(1 << 16, Placement::HostRead)
        .expect("allocate");
    let mut stream = device.create_stream(StreamDesc::default()).expect("stream");
    let add = Op::Dispatch {
        pipeline: &kernel,
        groups: [64, 1, 1],
        push: &push(
            memory.address(),
            memory.address(),
            memory.address(),
            1 << 14,
        ),
        uses: &[used(&memory, true)],
        bindings: &[],
        touches_anything: false,
    };
    stream
        .record(add, OrderRule::InOrder, false)
        .expect("record");
    let value = stream.submit(false).expect("submit");
    let timeline = Arc::clone(stream.timeline());
    assert_eq!(timeline.wait(value, None).ok(), Some(true));

    let logical = device.logical().expect("device");
    let ours: &VulkanTimeline = timeline.as_any().downcast_ref().expect("a Vulkan timeline");
    let long_ago = || {
        Instant::now()
            .checked_sub(Duration::from_secs(9))
            .expect("a time")
    };
    let mut looked = long_ago();
    let queues = device.queues().expect("device");
    queues.submit_nothing(0).expect("nothing is submitted");
    ours.look_for_loss(&mut looked).expect("the device works");
    assert!(looked.elapsed() < Duration::from_secs(5), "it has looked");

    logical.noted(DeviceError::Lost);
    assert!(logical.is_lost());
    let lost = |result| matches!(result, Err(DeviceError::Lost));
    assert!(lost(ours.look_for_loss(&mut long_ago())));
    let fill = Op::Fill {
        dst: &all(&memory),
        pattern: &[0; 4],
    };
    let recorded = stream.record(fill, OrderRule::InOrder, false);
    assert!(lost(
        recorded.and_then(|_| stream.submit(false)).map(|_| ())
    ));
    assert_eq!(
        timeline.wait(value, None).ok(),
        Some(true),
        "what was done is done"
    );
}
