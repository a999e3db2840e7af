//! Marks of a timeline that several threads look at.

use super::super::timeline::{Mark, VulkanTimeline};
use super::*;
use crate::backend::{Throttle, Timeline};
use ash::vk;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const ROUNDS: u64 = 4000;

/// A wait for a mark ends although another thread has seen the mark first, and forgotten it: the
/// semaphore comes later, if at all.
#[test]
fn marks_that_others_see_first() {
    // Without the validation layer: the host sets an event that others look at, as devices do.
    let instance = match Instance::new(false) {
        Ok(instance) => Arc::new(instance),
        Err(error) => return left_out(&error.to_string()),
    };
    let Some(adapter) = adapter::enumerate(&instance).into_iter().next() else {
        return left_out("no Vulkan device");
    };
    let device = VulkanDevice::new(Arc::new(adapter));
    let stream = device.create_stream(StreamDesc::default()).expect("stream");
    let streams = Arc::clone(stream.timeline());
    let streams: &VulkanTimeline = (streams.as_any().downcast_ref()).expect("a Vulkan timeline");
    let timeline = VulkanTimeline::new(&streams.queues, 0, Throttle::Low).expect("timeline");
    let raw = &streams.queues.device.raw;
    // SAFETY: the device lives.
    let event = unsafe { raw.create_event(&vk::EventCreateInfo::default(), None) }.expect("event");
    let (limit, over) = (Some(Duration::from_secs(5)), AtomicBool::new(false));
    std::thread::scope(|threads| {
        threads.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                timeline.read().expect("read");
            }
        });
        for value in 1..ROUNDS {
            // SAFETY: no command uses the event, and the timeline has forgotten its mark.
            unsafe { raw.reset_event(event) }.expect("reset");
            timeline.add_marks(&[Mark { value, event }]);
            let setter = threads.spawn(move || {
                // SAFETY: the event lives, and no command uses it.
                unsafe { raw.set_event(event) }.expect("set");
            });
            let ended = timeline.wait(value, limit).expect("wait");
            setter.join().expect("no panic");
            over.store(!ended || value + 1 == ROUNDS, Ordering::Relaxed);
            assert!(ended, "{value}");
        }
    });
    // SAFETY: nothing uses it any more.
    unsafe { raw.destroy_event(event, None) };
}
