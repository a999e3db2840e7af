//! Queues on a fake device: order, held commands, failures, callbacks, maps.

mod ends;
mod events;
mod launches;
mod maps;
mod replays;
mod several;
mod svm;

use super::{create, Created, Queue};
use crate::backend::fake::{FakeDevice, Launched, Reach};
use crate::backend::Device as _;
use crate::cl::{self, cl_int};
use crate::command::kernel::{nd_range, KernelLaunch, NdRange};
use crate::command::rect::Side;
use crate::command::{buffer, map, sync, Command};
use crate::error::ClResult;
use crate::handle::{Object, Ref};
use crate::object::callback::{Callback, EventFn};
use crate::object::context::Context;
use crate::object::device::Device;
use crate::object::event::{self, Event, Readiness};
use crate::object::mem::Mem;
use parking_lot::Mutex;
use spirv_lowering::interface::{Implicit, KernelInterface};
use std::ffi::c_void;
use std::ops::Range;
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
        let context =
            Context::new(vec![device.clone()], vec![], None, std::ptr::null_mut()).unwrap();
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
        buffer_in(&self.context, size)
    }

    fn filled(&self, bytes: &[u8]) -> Ref<Mem> {
        filled_in(&self.context, bytes)
    }

    fn user(&self) -> Ref<Event> {
        Event::user(self.context.clone())
    }
}

fn set_up(reach: Reach, flags: u64) -> (Bench, Ref<Queue>) {
    let bench = Bench::new(reach);
    let queue = bench.queue(flags);
    (bench, queue)
}

fn buffer_in(context: &Ref<Context>, size: usize) -> Ref<Mem> {
    // SAFETY: no host pointer.
    unsafe { Mem::buffer(context, vec![], 0, size, std::ptr::null_mut()) }.unwrap()
}

fn filled_in(context: &Ref<Context>, bytes: &[u8]) -> Ref<Mem> {
    let (flags, pointer) = (cl::CL_MEM_COPY_HOST_PTR, bytes.as_ptr() as *mut c_void);
    // SAFETY: the slice is readable for its length.
    unsafe { Mem::buffer(context, vec![], flags, bytes.len(), pointer) }.unwrap()
}

fn write(queue: &Ref<Queue>, mem: &Ref<Mem>, offset: usize, bytes: &[u8]) -> Command {
    let (mem, pointer) = (mem.clone(), bytes.as_ptr().cast());
    // SAFETY: the tests keep the bytes until the command is over.
    unsafe { buffer::write(&queue.target, mem, offset, bytes.len(), pointer) }.unwrap()
}

fn read(queue: &Ref<Queue>, mem: &Ref<Mem>, offset: usize, bytes: &mut [u8]) -> Command {
    let (mem, pointer) = (mem.clone(), bytes.as_mut_ptr().cast());
    // SAFETY: the tests keep the bytes until the command is over.
    unsafe { buffer::read(&queue.target, mem, offset, bytes.len(), pointer) }.unwrap()
}

fn contents(queue: &Ref<Queue>, mem: &Ref<Mem>) -> Vec<u8> {
    let mut bytes = vec![0; mem.size];
    let command = read(queue, mem, 0, &mut bytes);
    enqueue_blocking(queue, command);
    bytes
}

fn fill(queue: &Ref<Queue>, mem: &Ref<Mem>, byte: u8) -> Command {
    buffer::fill(&queue.target, mem, &[byte], 0, mem.size).unwrap()
}

/// Returns a map of bytes of a buffer, and its pointer.
fn map(
    queue: &Ref<Queue>,
    mem: &Ref<Mem>,
    flags: cl::cl_map_flags,
    range: Range<usize>,
) -> (Command, *mut c_void) {
    map::map_buffer(&queue.target, mem, flags, range.start, range.len()).unwrap()
}

/// Maps bytes of a buffer, and waits for that.
fn mapped<'a>(
    queue: &Ref<Queue>,
    mem: &Ref<Mem>,
    flags: cl::cl_map_flags,
    range: Range<usize>,
) -> &'a mut [u8] {
    let (command, pointer) = map(queue, mem, flags, range.clone());
    enqueue_blocking(queue, command);
    // SAFETY: mapped, and used until it is unmapped.
    unsafe { std::slice::from_raw_parts_mut(pointer.cast(), range.len()) }
}

/// Returns the unmap of what begins there.
fn unmap(queue: &Ref<Queue>, mem: &Ref<Mem>, pointer: *const u8) -> Command {
    map::unmap(&queue.target, mem, pointer as *mut c_void).unwrap()
}

/// Enqueues a command that does not block, without an event.
fn enqueue(queue: &Ref<Queue>, command: Command) {
    queue.enqueue(command, &[], false, false).unwrap();
}

/// Enqueues a command, and waits for it.
fn enqueue_blocking(queue: &Ref<Queue>, command: Command) {
    queue.enqueue(command, &[], true, false).unwrap();
}

/// Enqueues a command that does not block. Returns its event.
fn sent(queue: &Ref<Queue>, command: Command, wait: &[&Ref<Event>]) -> Ref<Event> {
    let wait: Vec<_> = wait.iter().copied().cloned().collect();
    let event = queue.enqueue(command, &wait, false, true).unwrap();
    event.unwrap()
}

unsafe extern "C" fn call(_: *mut c_void, status: cl_int, notify: *mut c_void) {
    // SAFETY: what `on_event` passes, which stays.
    let notify = unsafe { &*(notify as *const Box<dyn Fn(cl_int)>) };
    notify(status);
}

/// Calls a function when an event has come to a status.
fn on_event(event: &Ref<Event>, status: cl_int, notify: impl Fn(cl_int) + 'static) -> ClResult {
    let notify: Box<Box<dyn Fn(cl_int)>> = Box::new(Box::new(notify));
    let callback = Callback::new(call as EventFn, Box::into_raw(notify).cast());
    event.set_callback(status, callback)
}

fn eventually(what: &str, mut check: impl FnMut() -> bool) {
    let start = Instant::now();
    while !check() {
        assert!(start.elapsed() < Duration::from_secs(10), "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn code<T>(result: ClResult<T>) -> cl_int {
    result.err().map_or(0, |error| error.code)
}

#[test]
fn transfers_and_fills_arrive() {
    for reach in ALL {
        for flags in [0, PROFILING] {
            let (bench, queue) = set_up(reach, flags);
            let data: Vec<u8> = (0..100_000u32).map(|n| (n * 7 % 251) as u8).collect();
            let a = bench.buffer(data.len());
            let b = bench.filled(&data);
            assert_eq!(contents(&queue, &b), data, "{reach:?}");
            enqueue_blocking(&queue, write(&queue, &a, 0, &data));
            enqueue(&queue, fill(&queue, &b, 9));
            let copy = buffer::copy(&queue.target, &a, &b, 10, 20, 1000).unwrap();
            enqueue(&queue, copy);
            // Small and large ones behind work that is under way.
            enqueue(&queue, write(&queue, &b, 5, &[1, 2, 3]));
            let mut expected = vec![9; data.len()];
            expected[20..1020].copy_from_slice(&data[10..1010]);
            expected[5..8].copy_from_slice(&[1, 2, 3]);
            assert_eq!(contents(&queue, &b), expected);
            assert_eq!(contents(&queue, &a), data);
            enqueue(&queue, fill(&queue, &a, 0));
            enqueue(&queue, write(&queue, &a, 0, &data));
            assert_eq!(contents(&queue, &a), data);
        }
    }
}

#[test]
fn large_transfers_go_in_chunks() {
    for reach in ALL {
        let (bench, queue) = set_up(reach, 0);
        let period: Vec<u8> = (0..759).map(|n| (n / 3) as u8).collect();
        let data = period.repeat((35 << 20) / 759 + 1);
        let mem = bench.buffer(data.len());
        enqueue(&queue, fill(&queue, &mem, 1));
        enqueue(&queue, write(&queue, &mem, 0, &data));
        assert!(contents(&queue, &mem) == data);
    }
}

#[test]
fn rectangles() {
    for reach in ALL {
        let (bench, queue) = set_up(reach, 0);
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
        // HostBacking something, so that staging is used.
        enqueue(&queue, fill(&queue, &mem, 0));
        // SAFETY: the host side lies within the vector.
        let command =
            unsafe { buffer::write_rect(&queue.target, &mem, &rect, host.as_ptr().cast()) }
                .unwrap();
        enqueue(&queue, command);
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
            unsafe { buffer::read_rect(&queue.target, &mem, &rect, back.as_mut_ptr().cast()) }
                .unwrap();
        assert_eq!(sent(&queue, command, &[]).wait(), 0);
        assert_eq!(back, [0, 0, 3, 4, 0, 0, 7, 8, 0, 0, 11, 12, 0, 0, 0, 0]);
    }
}

#[test]
fn reads_do_not_block_and_are_ordered_with_writes_of_the_same_memory() {
    for reach in ALL {
        let (bench, queue) = set_up(reach, 0);
        let a = bench.filled(&[5; 1000]);
        let b = bench.buffer(1000);
        bench.fake.stop();
        enqueue(&queue, fill(&queue, &a, 6));
        let mut host = vec![0u8; 1000];
        let command = read(&queue, &a, 0, &mut host);
        let first = sent(&queue, command, &[]);
        enqueue(&queue, fill(&queue, &a, 7));
        let second = sent(&queue, write(&queue, &b, 0, &host), &[]);
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
fn submissions_that_fail_fail_their_events_and_no_others() {
    let (bench, queue) = set_up(Reach::Hidden, 0);
    let mem = bench.filled(&[1; 64]);
    bench.fake.fail_submits(1);
    let lost = sent(&queue, fill(&queue, &mem, 2), &[]);
    let mut bytes = vec![0u8; 64];
    let command = read(&queue, &mem, 0, &mut bytes);
    let unread = sent(&queue, command, &[]);
    assert_eq!(lost.wait(), cl::CL_OUT_OF_RESOURCES);
    assert_eq!(unread.wait(), cl::CL_OUT_OF_RESOURCES);
    let next = sent(&queue, fill(&queue, &mem, 3), &[]);
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
        let wait: Vec<_> = last.iter().collect();
        last = Some(sent(queue, fill(queue, &mem, n), &wait));
    }
    // Nothing was held back: all is with the device.
    assert_eq!(two.progress.pending(), 0);
    bench.fake.start();
    assert_eq!(last.unwrap().wait(), 0);
    assert_eq!(contents(&two, &mem), [19; 64]);
}

#[test]
fn profiling_times_are_in_order() {
    for reach in ALL {
        let (bench, queue) = set_up(reach, PROFILING);
        let mem = bench.filled(&[1; 1000]);
        let mut bytes = vec![0u8; 1000];
        let commands = [
            fill(&queue, &mem, 3),
            write(&queue, &mem, 0, &[1, 2, 3]),
            sync::marker(),
            read(&queue, &mem, 0, &mut bytes),
        ];
        for command in commands {
            let event = sent(&queue, command, &[]);
            let first = event.profiling(cl::CL_PROFILING_COMMAND_END);
            assert!(first.is_ok() || code(first) == cl::CL_PROFILING_INFO_NOT_AVAILABLE);
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
        let event = sent(&plain, sync::marker(), &[]);
        assert_eq!(
            code(event.profiling(cl::CL_PROFILING_COMMAND_END)),
            cl::CL_PROFILING_INFO_NOT_AVAILABLE
        );
    }
}

#[test]
fn full_batches_are_submitted_by_themselves() {
    let (bench, queue) = set_up(Reach::Hidden, 0);
    let mem = bench.buffer(64);
    bench.fake.stop();
    let before = bench.fake.submits();
    for n in 0..1000u32 {
        enqueue(&queue, fill(&queue, &mem, n as u8));
    }
    let submits = bench.fake.submits() - before;
    assert!((2..10).contains(&submits), "{submits}");
    bench.fake.start();
    queue.finish().unwrap();
}

/// A device that has nothing to do is woken by the first small commands, and not by each few of them.
#[test]
fn small_commands_seldom_wake_the_device() {
    let (bench, queue) = set_up(Reach::Hidden, 0);
    let mem = bench.buffer(64);
    let before = bench.fake.submits();
    let begun = std::time::Instant::now();
    for n in 0..1000u32 {
        enqueue(&queue, fill(&queue, &mem, n as u8));
        if n == 20 {
            assert_eq!(bench.fake.submits(), before + 1);
        }
    }
    let intervals = begun.elapsed().as_micros() / 100;
    let submits = bench.fake.submits() - before;
    assert!(submits as u128 <= 1 + 4 + intervals, "{submits}");
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
    let (bench, queue) = set_up(Reach::Hidden, 0);
    let list: &'static Mutex<Vec<usize>> = Box::leak(Box::default());
    let mem = bench.buffer(64);
    mem.add_destructor(Callback::new(gone as _, list as *const _ as *mut c_void));
    bench.fake.stop();
    enqueue(&queue, fill(&queue, &mem, 1));
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
    let context = Context::new(devices.clone(), vec![], None, std::ptr::null_mut()).unwrap();
    let one = Queue::with_flags(&context, &devices[0], 0).unwrap();
    let two = Queue::with_flags(&context, &devices[1], 0).unwrap();
    let mem = filled_in(&context, &[5; 64]);
    assert_eq!(contents(&one, &mem), [5; 64]);
    assert_eq!(contents(&two, &mem), [5; 64]);
    let first = sent(&one, fill(&one, &mem, 6), &[]);
    let half = buffer::fill(&two.target, &mem, &[7], 0, 32).unwrap();
    let second = sent(&two, half, &[&first]);
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
        (queue.properties, &queue.list[..]),
        (OOO | PROFILING, &list[..])
    );
    assert_eq!(code(make(&[name, 1 << 20, 0])), cl::CL_INVALID_VALUE);
    assert_eq!(code(make(&[0x9999, 1, 0])), cl::CL_INVALID_VALUE);
    // A device queue is made by `create`, and is out of order.
    let on_device = |bits| {
        let list = vec![name, cl::CL_QUEUE_ON_DEVICE | bits, 0];
        create(&bench.context, &bench.device, list)
    };
    assert!(matches!(on_device(OOO), Ok(Created::Device(_))));
    assert_eq!(code(on_device(0)), cl::CL_INVALID_VALUE);
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
        let (bench, queue) = set_up(Reach::Uncached, flags);
        std::thread::scope(|scope| {
            for thread in 0..4u8 {
                let (bench, queue) = (&bench, &queue);
                scope.spawn(move || {
                    let mem = bench.buffer(5000);
                    for round in 0..100u8 {
                        let byte = thread ^ round;
                        let user = bench.user();
                        let wait: &[_] = if round % 7 == 0 { &[&user] } else { &[] };
                        let event = sent(queue, fill(queue, &mem, byte), wait);
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
