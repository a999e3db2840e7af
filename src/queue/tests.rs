//! Queues on a fake device: order, held commands, failures, callbacks, maps.

mod launches;
mod maps;
mod several;
mod svm;

use super::Queue;
use crate::backend::fake::{FakeDevice, Launched, Reach};
use crate::backend::Device as _;
use crate::cl::{self, cl_int};
use crate::command::kernel::{nd_range, KernelLaunch, NdRange};
use crate::command::rect::Side;
use crate::command::{buffer, map, sync, Command};
use crate::handle::Ref;
use crate::object::callback::Callback;
use crate::object::context::Context;
use crate::object::device::Device;
use crate::object::event::{self, Event, Readiness};
use crate::object::mem::Mem;
use parking_lot::Mutex;
use smallvec::SmallVec;
use spirv_lowering::interface::{Implicit, KernelInterface};
use std::ffi::c_void;
use std::sync::Arc;
use std::time::{Duration, Instant};

struct Bench {
    fake: Arc<FakeDevice>,
    device: Ref<Device>,
    context: Ref<Context>,
}

const OOO: u64 = cl::CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
const PROFILING: u64 = cl::CL_QUEUE_PROFILING_ENABLE;
const ALL: [Reach; 3] = [Reach::Cached, Reach::Uncached, Reach::Hidden];

impl Bench {
    fn new(reach: Reach) -> Self {
        let fake = FakeDevice::new(reach);
        let device = Device::for_tests(fake.clone());
        let context = Context::new(vec![device.clone()], vec![], None).unwrap();
        Self {
            fake,
            device,
            context,
        }
    }

    fn queue(&self, flags: u64) -> Ref<Queue> {
        Queue::with_flags(&self.context, &self.device, flags).unwrap()
    }

    fn buffer(&self, size: usize) -> Ref<Mem> {
        // SAFETY: no host pointer.
        unsafe { Mem::buffer(&self.context, vec![], 0, size, std::ptr::null_mut()) }.unwrap()
    }

    fn filled(&self, bytes: &[u8]) -> Ref<Mem> {
        let flags = cl::CL_MEM_COPY_HOST_PTR;
        // SAFETY: the slice is readable for its length.
        unsafe {
            Mem::buffer(
                &self.context,
                vec![],
                flags,
                bytes.len(),
                bytes.as_ptr() as *mut c_void,
            )
        }
        .unwrap()
    }
}

fn write(queue: &Queue, mem: &Ref<Mem>, offset: usize, bytes: &[u8]) -> Command {
    // SAFETY: the tests keep the bytes until the command is over.
    unsafe {
        buffer::write(
            queue.target(),
            mem,
            offset,
            bytes.len(),
            bytes.as_ptr().cast(),
        )
    }
    .unwrap()
}

fn read(queue: &Queue, mem: &Ref<Mem>, offset: usize, bytes: &mut [u8]) -> Command {
    // SAFETY: the tests keep the bytes until the command is over.
    unsafe {
        buffer::read(
            queue.target(),
            mem,
            offset,
            bytes.len(),
            bytes.as_mut_ptr().cast(),
        )
    }
    .unwrap()
}

fn contents(queue: &Queue, mem: &Ref<Mem>) -> Vec<u8> {
    let mut bytes = vec![0; mem.size()];
    let command = read(queue, mem, 0, &mut bytes);
    queue.enqueue(command, &[], true, false).unwrap();
    bytes
}

fn fill(queue: &Queue, mem: &Ref<Mem>, byte: u8) -> Command {
    buffer::fill(queue.target(), mem, &[byte], 0, mem.size()).unwrap()
}

fn eventually(what: &str, mut check: impl FnMut() -> bool) {
    let start = Instant::now();
    while !check() {
        assert!(start.elapsed() < Duration::from_secs(10), "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn code<T>(result: crate::error::ClResult<T>) -> cl_int {
    result.err().map_or(0, |error| error.code)
}

#[test]
fn transfers_and_fills_arrive() {
    for reach in ALL {
        for flags in [0, PROFILING] {
            let bench = Bench::new(reach);
            let queue = bench.queue(flags);
            let data: Vec<u8> = (0..100_000u32).map(|n| (n * 7 % 251) as u8).collect();
            let a = bench.buffer(data.len());
            let b = bench.filled(&data);
            assert_eq!(contents(&queue, &b), data, "{reach:?}");
            queue
                .enqueue(write(&queue, &a, 0, &data), &[], true, false)
                .unwrap();
            queue
                .enqueue(fill(&queue, &b, 9), &[], false, false)
                .unwrap();
            let copy = buffer::copy(queue.target(), &a, &b, 10, 20, 1000).unwrap();
            queue.enqueue(copy, &[], false, false).unwrap();
            // Small and large ones behind work that is under way.
            queue
                .enqueue(write(&queue, &b, 5, &[1, 2, 3]), &[], false, false)
                .unwrap();
            let mut expected = vec![9; data.len()];
            expected[20..1020].copy_from_slice(&data[10..1010]);
            expected[5..8].copy_from_slice(&[1, 2, 3]);
            assert_eq!(contents(&queue, &b), expected);
            assert_eq!(contents(&queue, &a), data);
            queue
                .enqueue(fill(&queue, &a, 0), &[], false, false)
                .unwrap();
            queue
                .enqueue(write(&queue, &a, 0, &data), &[], false, false)
                .unwrap();
            assert_eq!(contents(&queue, &a), data);
        }
    }
}

#[test]
fn large_transfers_go_in_chunks() {
    for reach in ALL {
        let bench = Bench::new(reach);
        let queue = bench.queue(0);
        let data: Vec<u8> = (0..(35usize << 20)).map(|n| (n / 3 % 253) as u8).collect();
        let mem = bench.buffer(data.len());
        queue
            .enqueue(fill(&queue, &mem, 1), &[], false, false)
            .unwrap();
        queue
            .enqueue(write(&queue, &mem, 0, &data), &[], false, false)
            .unwrap();
        assert!(contents(&queue, &mem) == data);
    }
}

#[test]
fn rectangles() {
    for reach in ALL {
        let bench = Bench::new(reach);
        let queue = bench.queue(0);
        let mem = bench.filled(&[0; 64]);
        let host: Vec<u8> = (1..=16).collect();
        let rect = buffer::Rect {
            buffer: Side {
                origin: [1, 1, 0],
                row_pitch: 8,
                slice_pitch: 32,
            },
            other: Side {
                origin: [2, 0, 0],
                row_pitch: 4,
                slice_pitch: 0,
            },
            region: [2, 3, 1],
        };
        // Behind something, so that staging is used.
        queue
            .enqueue(fill(&queue, &mem, 0), &[], false, false)
            .unwrap();
        // SAFETY: the host side lies within the vector.
        let command =
            unsafe { buffer::write_rect(queue.target(), &mem, &rect, host.as_ptr().cast()) }
                .unwrap();
        queue.enqueue(command, &[], false, false).unwrap();
        let mut expected = vec![0; 64];
        for row in 0..3 {
            for x in 0..2 {
                expected[9 + row * 8 + x] = host[2 + row * 4 + x];
            }
        }
        assert_eq!(contents(&queue, &mem), expected);
        let mut back = vec![0u8; 16];
        // SAFETY: the host side lies within the vector.
        let command =
            unsafe { buffer::read_rect(queue.target(), &mem, &rect, back.as_mut_ptr().cast()) }
                .unwrap();
        let event = queue.enqueue(command, &[], false, true).unwrap().unwrap();
        assert_eq!(event.wait(), 0);
        assert_eq!(back, [0, 0, 3, 4, 0, 0, 7, 8, 0, 0, 11, 12, 0, 0, 0, 0]);
    }
}

#[test]
fn reads_do_not_block_and_are_ordered_with_writes_of_the_same_memory() {
    for reach in ALL {
        let bench = Bench::new(reach);
        let queue = bench.queue(0);
        let a = bench.filled(&[5; 1000]);
        let b = bench.buffer(1000);
        bench.fake.stop();
        queue
            .enqueue(fill(&queue, &a, 6), &[], false, false)
            .unwrap();
        let mut host = vec![0u8; 1000];
        let command = read(&queue, &a, 0, &mut host);
        let first = queue.enqueue(command, &[], false, true).unwrap().unwrap();
        queue
            .enqueue(fill(&queue, &a, 7), &[], false, false)
            .unwrap();
        let second = queue
            .enqueue(write(&queue, &b, 0, &host), &[], false, true)
            .unwrap()
            .unwrap();
        assert!(first.status() > 0 && second.status() > 0);
        bench.fake.start();
        assert_eq!(second.wait(), 0);
        assert_eq!(first.status(), 0);
        assert_eq!(host, [6; 1000]);
        assert_eq!(contents(&queue, &b), [6; 1000]);
        assert_eq!(contents(&queue, &a), [7; 1000]);
    }
}

#[test]
fn user_events_hold_commands_and_all_behind_them() {
    for flags in [0, OOO] {
        let bench = Bench::new(Reach::Hidden);
        let (one, two) = (bench.queue(flags), bench.queue(flags));
        let mem = bench.filled(&[1; 64]);
        let user = Event::user(bench.context.clone());
        let first = one
            .enqueue(
                fill(&one, &mem, 2),
                std::slice::from_ref(&user),
                false,
                true,
            )
            .unwrap()
            .unwrap();
        let second = two
            .enqueue(
                fill(&two, &mem, 3),
                std::slice::from_ref(&first),
                false,
                true,
            )
            .unwrap()
            .unwrap();
        let third = one
            .enqueue(
                fill(&one, &mem, 4),
                std::slice::from_ref(&second),
                false,
                true,
            )
            .unwrap()
            .unwrap();
        let marker = one
            .enqueue(sync::marker(), &[], false, true)
            .unwrap()
            .unwrap();
        one.flush().unwrap();
        two.flush().unwrap();
        std::thread::sleep(Duration::from_millis(5));
        for event in [&first, &second, &third, &marker] {
            assert_eq!(event.status(), cl::CL_QUEUED as cl_int);
        }
        user.set_user_status(0).unwrap();
        assert_eq!(code(user.set_user_status(0)), cl::CL_INVALID_OPERATION);
        assert_eq!(marker.wait(), 0);
        event::wait_all(&[first, second, third]).unwrap();
        assert_eq!(contents(&two, &mem), [4; 64]);
        one.finish().unwrap();
    }
}

#[test]
fn failures_take_dependents_along() {
    let bench = Bench::new(Reach::Cached);
    let (one, two) = (bench.queue(0), bench.queue(0));
    let mem = bench.filled(&[1; 64]);
    let user = Event::user(bench.context.clone());
    let first = one
        .enqueue(
            fill(&one, &mem, 2),
            std::slice::from_ref(&user),
            false,
            true,
        )
        .unwrap()
        .unwrap();
    let second = two
        .enqueue(
            fill(&two, &mem, 3),
            std::slice::from_ref(&first),
            false,
            true,
        )
        .unwrap()
        .unwrap();
    let behind = two
        .enqueue(sync::marker(), &[], false, true)
        .unwrap()
        .unwrap();
    user.set_user_status(-7).unwrap();
    assert_eq!(user.status(), -7);
    let dependency = cl::CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
    assert_eq!(first.wait(), dependency);
    assert_eq!(second.wait(), dependency);
    assert_eq!(behind.wait(), 0);
    assert_eq!(code(event::wait_all(&[second.clone(), behind])), dependency);
    let late = two
        .enqueue(
            fill(&two, &mem, 9),
            std::slice::from_ref(&second),
            false,
            true,
        )
        .unwrap()
        .unwrap();
    assert_eq!(late.status(), dependency);
    let mut bytes = [0u8; 4];
    let command = read(&two, &mem, 0, &mut bytes);
    assert_eq!(
        code(two.enqueue(command, &[second], true, false)),
        dependency
    );
    assert_eq!(contents(&two, &mem), [1; 64]);
}

#[test]
fn a_long_chain_of_held_commands_unwinds() {
    let bench = Bench::new(Reach::Hidden);
    let cases = [
        (0, 0, 20_000),
        (-1, 0, 20_000),
        (0, OOO, 1000),
        (-1, OOO, 1000),
    ];
    for (status, flags, length) in cases {
        let (one, two) = (bench.queue(0), bench.queue(flags));
        let user = Event::user(bench.context.clone());
        let mut last = user.clone();
        for n in 0..length {
            let queue = if n % 2 == 0 { &one } else { &two };
            last = queue
                .enqueue(sync::marker(), &[last], false, true)
                .unwrap()
                .unwrap();
        }
        user.set_user_status(status).unwrap();
        assert_eq!(last.wait() < 0, status < 0);
    }
}

#[test]
fn a_released_user_event_fails_those_that_wait() {
    let bench = Bench::new(Reach::Hidden);
    let queue = bench.queue(0);
    let handle = Event::user(bench.context.clone()).publish();
    let user = crate::handle::lookup::<Event>(handle).unwrap();
    let waiting = queue
        .enqueue(sync::marker(), std::slice::from_ref(&user), false, true)
        .unwrap()
        .unwrap();
    drop(user);
    event::release(handle).unwrap();
    assert!(waiting.wait() < 0);
}

#[test]
fn held_commands_keep_a_released_queue() {
    let bench = Bench::new(Reach::Hidden);
    let queue = bench.queue(0);
    let mem = bench.filled(&[1; 16]);
    let user = Event::user(bench.context.clone());
    let handle = queue.publish();
    let event = queue
        .enqueue(
            fill(&queue, &mem, 2),
            std::slice::from_ref(&user),
            false,
            true,
        )
        .unwrap()
        .unwrap();
    drop(queue);
    super::release(handle).unwrap();
    user.set_user_status(0).unwrap();
    assert_eq!(event.wait(), 0);
    drop(event);
    let other = bench.queue(0);
    assert_eq!(contents(&other, &mem), [2; 16]);
    eventually("the queue is gone", || {
        crate::handle::lookup::<Queue>(handle).is_err()
    });
}

unsafe extern "C" fn note(_: *mut c_void, status: cl_int, data: *mut c_void) {
    // SAFETY: the tests pass a list that outlives the callback.
    unsafe { &*(data as *const Mutex<Vec<cl_int>>) }
        .lock()
        .push(status);
}

#[test]
fn callbacks_come_once_and_in_order() {
    let bench = Bench::new(Reach::Hidden);
    let queue = bench.queue(0);
    let mem = bench.buffer(64);
    let list: &'static Mutex<Vec<cl_int>> = Box::leak(Box::default());
    let data = list as *const _ as *mut c_void;
    let wanted = [cl::CL_COMPLETE, cl::CL_RUNNING, cl::CL_SUBMITTED].map(|n| n as cl_int);
    for held in [false, true] {
        bench.fake.stop();
        let user = Event::user(bench.context.clone());
        let wait = if held { vec![user.clone()] } else { vec![] };
        let event = queue
            .enqueue(fill(&queue, &mem, 1), &wait, false, true)
            .unwrap()
            .unwrap();
        for kind in wanted {
            event
                .set_callback(kind, Callback::new(note as _, data))
                .unwrap();
        }
        assert_eq!(
            code(event.set_callback(3, Callback::new(note as _, data))),
            cl::CL_INVALID_VALUE
        );
        assert!(list.lock().is_empty());
        user.set_user_status(0).unwrap();
        queue.flush().unwrap();
        eventually("submitted", || list.lock().len() == 1);
        bench.fake.start();
        queue.finish().unwrap();
        eventually("complete", || list.lock().len() == 3);
        assert_eq!(std::mem::take(&mut *list.lock()), [2, 1, 0]);
        event
            .set_callback(0, Callback::new(note as _, data))
            .unwrap();
        assert_eq!(std::mem::take(&mut *list.lock()), [0]);
    }
    let user = Event::user(bench.context.clone());
    user.set_callback(0, Callback::new(note as _, data))
        .unwrap();
    user.set_user_status(-3).unwrap();
    assert_eq!(std::mem::take(&mut *list.lock()), [-3]);
}

#[test]
fn out_of_order_follows_events_and_barriers() {
    let bench = Bench::new(Reach::Hidden);
    let queue = bench.queue(OOO);
    let mem = bench.filled(&[0; 64]);
    // The fake device runs unordered operations last to first.
    bench.fake.stop();
    queue
        .enqueue(fill(&queue, &mem, 1), &[], false, false)
        .unwrap();
    let last = queue
        .enqueue(fill(&queue, &mem, 2), &[], false, true)
        .unwrap()
        .unwrap();
    bench.fake.start();
    assert_ne!(contents(&queue, &mem)[0], 2);
    last.wait();
    queue.finish().unwrap();
    let first = queue
        .enqueue(fill(&queue, &mem, 3), &[], false, true)
        .unwrap()
        .unwrap();
    queue
        .enqueue(fill(&queue, &mem, 4), &[first], false, false)
        .unwrap();
    queue.finish().unwrap();
    assert_eq!(contents(&queue, &mem), [4; 64]);
    queue
        .enqueue(fill(&queue, &mem, 5), &[], false, false)
        .unwrap();
    queue.enqueue(sync::barrier(), &[], false, false).unwrap();
    queue
        .enqueue(fill(&queue, &mem, 6), &[], false, false)
        .unwrap();
    queue.finish().unwrap();
    assert_eq!(contents(&queue, &mem), [6; 64]);
}

#[test]
fn held_barriers_hold_what_follows_out_of_order() {
    let bench = Bench::new(Reach::Hidden);
    let queue = bench.queue(OOO);
    let mem = bench.filled(&[0; 64]);
    let user = Event::user(bench.context.clone());
    queue
        .enqueue(
            fill(&queue, &mem, 1),
            std::slice::from_ref(&user),
            false,
            false,
        )
        .unwrap();
    let free = queue
        .enqueue(sync::marker(), &[], false, true)
        .unwrap()
        .unwrap();
    queue.enqueue(sync::barrier(), &[], false, false).unwrap();
    let after = queue
        .enqueue(fill(&queue, &mem, 2), &[], false, true)
        .unwrap()
        .unwrap();
    queue.flush().unwrap();
    std::thread::sleep(Duration::from_millis(5));
    assert!(free.status() > 0 && after.status() > 0);
    user.set_user_status(0).unwrap();
    assert_eq!(after.wait(), 0);
    queue.finish().unwrap();
    assert_eq!(free.status(), 0);
    assert_eq!(contents(&queue, &mem), [2; 64]);
}

#[test]
fn submissions_that_fail_fail_their_events_and_no_others() {
    let bench = Bench::new(Reach::Hidden);
    let queue = bench.queue(0);
    let mem = bench.filled(&[1; 64]);
    bench.fake.fail_submits(1);
    let lost = queue
        .enqueue(fill(&queue, &mem, 2), &[], false, true)
        .unwrap()
        .unwrap();
    let mut bytes = vec![0u8; 64];
    let command = read(&queue, &mem, 0, &mut bytes);
    let unread = queue.enqueue(command, &[], false, true).unwrap().unwrap();
    assert_eq!(lost.wait(), cl::CL_OUT_OF_RESOURCES);
    assert_eq!(unread.wait(), cl::CL_OUT_OF_RESOURCES);
    let next = queue
        .enqueue(fill(&queue, &mem, 3), &[], false, true)
        .unwrap()
        .unwrap();
    assert_eq!(next.wait(), 0);
    assert_eq!(contents(&queue, &mem), [3; 64]);
    queue.finish().unwrap();
}

#[test]
fn queues_wait_for_each_other_on_the_device() {
    let bench = Bench::new(Reach::Hidden);
    let (one, two) = (bench.queue(0), bench.queue(0));
    let mem = bench.filled(&[0; 64]);
    bench.fake.stop();
    let mut last: Option<Ref<Event>> = None;
    for n in 0..20u8 {
        let queue = if n % 2 == 0 { &one } else { &two };
        let wait: Vec<_> = last.iter().cloned().collect();
        last = queue
            .enqueue(fill(queue, &mem, n), &wait, false, true)
            .unwrap();
    }
    // Nothing was held back: all is with the device.
    assert_eq!(two.progress.held(), 0);
    bench.fake.start();
    assert_eq!(last.unwrap().wait(), 0);
    assert_eq!(contents(&two, &mem), [19; 64]);
}

#[test]
fn profiling_times_are_in_order() {
    for reach in ALL {
        let bench = Bench::new(reach);
        let queue = bench.queue(PROFILING);
        let mem = bench.filled(&[1; 1000]);
        let mut bytes = vec![0u8; 1000];
        let commands = [
            fill(&queue, &mem, 3),
            write(&queue, &mem, 0, &[1, 2, 3]),
            sync::marker(),
            read(&queue, &mem, 0, &mut bytes),
        ];
        for command in commands {
            let event = queue.enqueue(command, &[], false, true).unwrap().unwrap();
            let early = event.profiling(cl::CL_PROFILING_COMMAND_END);
            assert!(early.is_ok() || code(early) == cl::CL_PROFILING_INFO_NOT_AVAILABLE);
            queue.finish().unwrap();
            let times: Vec<u64> = [
                cl::CL_PROFILING_COMMAND_QUEUED,
                cl::CL_PROFILING_COMMAND_SUBMIT,
                cl::CL_PROFILING_COMMAND_START,
                cl::CL_PROFILING_COMMAND_END,
                cl::CL_PROFILING_COMMAND_COMPLETE,
            ]
            .into_iter()
            .map(|name| event.profiling(name).unwrap())
            .collect();
            assert!(times.is_sorted() && times[0] > 0, "{times:?}");
        }
        let plain = bench.queue(0);
        let event = plain
            .enqueue(sync::marker(), &[], false, true)
            .unwrap()
            .unwrap();
        assert_eq!(
            code(event.profiling(cl::CL_PROFILING_COMMAND_END)),
            cl::CL_PROFILING_INFO_NOT_AVAILABLE
        );
    }
}

#[test]
fn full_batches_are_submitted_by_themselves() {
    let bench = Bench::new(Reach::Hidden);
    let queue = bench.queue(0);
    let mem = bench.buffer(64);
    bench.fake.stop();
    let before = bench.fake.submits();
    for n in 0..1000u32 {
        queue
            .enqueue(fill(&queue, &mem, n as u8), &[], false, false)
            .unwrap();
    }
    let submits = bench.fake.submits() - before;
    assert!((2..10).contains(&submits), "{submits}");
    bench.fake.start();
    queue.finish().unwrap();
}

unsafe extern "C" fn gone(_: *mut c_void, data: *mut c_void) {
    // SAFETY: the test passes a counter that outlives the callback.
    unsafe { &*(data as *const Mutex<Vec<usize>>) }
        .lock()
        .push(0);
}

#[test]
fn memory_lives_until_the_commands_that_use_it_are_over() {
    let bench = Bench::new(Reach::Hidden);
    let queue = bench.queue(0);
    let list: &'static Mutex<Vec<usize>> = Box::leak(Box::default());
    let mem = bench.buffer(64);
    mem.add_destructor(Callback::new(gone as _, list as *const _ as *mut c_void));
    bench.fake.stop();
    queue
        .enqueue(fill(&queue, &mem, 1), &[], false, false)
        .unwrap();
    drop(mem);
    std::thread::sleep(Duration::from_millis(5));
    assert!(list.lock().is_empty());
    bench.fake.start();
    eventually("the destructor callback", || list.lock().len() == 1);
}

#[test]
fn several_devices_share_buffers() {
    let (a, b) = (
        FakeDevice::new(Reach::Hidden),
        FakeDevice::new(Reach::Cached),
    );
    let devices = vec![Device::for_tests(a), Device::for_tests(b)];
    let context = Context::new(devices.clone(), vec![], None).unwrap();
    let one = Queue::with_flags(&context, &devices[0], 0).unwrap();
    let two = Queue::with_flags(&context, &devices[1], 0).unwrap();
    let bytes = [5u8; 64];
    let flags = cl::CL_MEM_COPY_HOST_PTR;
    // SAFETY: the array is readable.
    let mem =
        unsafe { Mem::buffer(&context, vec![], flags, 64, bytes.as_ptr() as *mut c_void) }.unwrap();
    assert_eq!(contents(&one, &mem), [5; 64]);
    assert_eq!(contents(&two, &mem), [5; 64]);
    let first = one
        .enqueue(fill(&one, &mem, 6), &[], false, true)
        .unwrap()
        .unwrap();
    let half = buffer::fill(two.target(), &mem, &[7], 0, 32).unwrap();
    let second = two.enqueue(half, &[first], false, true).unwrap().unwrap();
    let mut seen = vec![0u8; 64];
    let command = read(&one, &mem, 0, &mut seen);
    one.enqueue(command, &[second], true, false).unwrap();
    assert_eq!((seen[0], seen[63]), (7, 6));
}

#[test]
fn properties_of_queues_are_checked() {
    let bench = Bench::new(Reach::Cached);
    let make = |list: &[u64]| Queue::new(&bench.context, &bench.device, list.to_vec());
    let name = u64::from(cl::CL_QUEUE_PROPERTIES);
    let list = [name, OOO | PROFILING, 0];
    let queue = make(&list).unwrap();
    assert_eq!(
        (queue.properties(), queue.property_list()),
        (OOO | PROFILING, &list[..])
    );
    assert_eq!(code(make(&[name, 1 << 20, 0])), cl::CL_INVALID_VALUE);
    assert_eq!(code(make(&[0x9999, 1, 0])), cl::CL_INVALID_VALUE);
    assert_eq!(
        code(make(&[name, cl::CL_QUEUE_ON_DEVICE | OOO, 0])),
        cl::CL_INVALID_QUEUE_PROPERTIES
    );
    assert_eq!(code(make(&[name, 0, name, 0, 0])), cl::CL_INVALID_VALUE);
    let other = Bench::new(Reach::Cached);
    assert_eq!(
        code(Queue::with_flags(&bench.context, &other.device, 0)),
        cl::CL_INVALID_DEVICE
    );
}

#[test]
fn many_threads_use_one_queue() {
    for flags in [0, OOO] {
        let bench = Bench::new(Reach::Uncached);
        let queue = bench.queue(flags);
        std::thread::scope(|scope| {
            for thread in 0..4u8 {
                let (bench, queue) = (&bench, &queue);
                scope.spawn(move || {
                    let mem = bench.buffer(5000);
                    for round in 0..100u8 {
                        let byte = thread ^ round;
                        let user = Event::user(bench.context.clone());
                        let wait = if round % 7 == 0 {
                            vec![user.clone()]
                        } else {
                            vec![]
                        };
                        let event = queue
                            .enqueue(fill(queue, &mem, byte), &wait, false, true)
                            .unwrap()
                            .unwrap();
                        user.set_user_status(0).unwrap();
                        let mut bytes = vec![0u8; 5000];
                        let command = read(queue, &mem, 0, &mut bytes);
                        let done = queue
                            .enqueue(command, &[event], round % 2 == 0, true)
                            .unwrap()
                            .unwrap();
                        assert_eq!(done.wait(), 0);
                        assert!(bytes.iter().all(|b| *b == byte));
                    }
                });
            }
        });
        queue.finish().unwrap();
    }
}
