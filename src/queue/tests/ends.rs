//! Tests of objects, measured commands, failing maps and references that end while a command is pending.

use super::*;
use crate::backend::DeviceError;
use crate::handle::{self, Object};
use crate::object::program;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

static GONE: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" fn gone(_: *mut c_void, _: *mut c_void) {
    GONE.fetch_add(1, Ordering::SeqCst);
}

/// Returns the threads of this process that free objects.
fn freeing() -> usize {
    let Ok(threads) = std::fs::read_dir("/proc/self/task") else {
        return 0;
    };
    let named = |thread: &std::fs::DirEntry| {
        let name = std::fs::read_to_string(thread.path().join("comm"));
        name.is_ok_and(|name| name.trim() == "pumice-free")
    };
    threads.flatten().filter(named).count()
}

/// Without an end, the thread would stay for two seconds: hundreds of them in a program that makes queues all the time.
#[test]
fn the_host_thread_ends_with_its_queue() {
    let (_bench, queue) = set_up(Reach::Cached, 0);
    let executor = Arc::downgrade(queue.state.lock().executor());
    executor.upgrade().unwrap().start().unwrap();
    assert!(executor.strong_count() > 1);
    drop(queue);
    let began = Instant::now();
    eventually("the thread ends", || executor.strong_count() == 0);
    assert!(began.elapsed() < Duration::from_millis(1500));
}

#[test]
fn one_thread_ends_all_objects() {
    let bench = Bench::new(Reach::Cached);
    let (queue, idle) = (bench.queue(0), bench.queue(0));
    let mem = bench.filled(&[1; 64]);
    bench.fake.stop();
    enqueue(&queue, fill(&queue, &mem, 2));
    queue.flush();
    for _ in 0..100 {
        let one = bench.buffer(16);
        one.add_destructor(Callback::new(gone, std::ptr::null_mut()));
        drop(one);
    }
    assert!(freeing() <= 1);
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(GONE.load(Ordering::SeqCst), 0);
    bench.fake.start();
    eventually("all are told", || GONE.load(Ordering::SeqCst) == 100);
    eventually("the thread ends", || freeing() == 0);
    idle.finish().unwrap();
}

#[test]
fn measured_commands_whose_events_are_gone_are_forgotten() {
    let (bench, queue) = set_up(Reach::Hidden, PROFILING);
    let mem = bench.filled(&[1; 64]);
    for _ in 0..100 {
        drop(sent(&queue, fill(&queue, &mem, 2), &[]));
        contents(&queue, &mem);
    }
    let left = queue.unwanted.lock().len();
    assert!(left < 4, "{left} are left");
    // A driver may wait for other commands when it is asked.
    assert_eq!(bench.fake.timed(), 0);
}

#[test]
fn callbacks_do_not_wait_for_later_commands() {
    let (bench, queue) = set_up(Reach::Hidden, 0);
    let mem = bench.filled(&[1; 64]);
    let seen = Arc::new(AtomicU64::new(0));
    bench.fake.stop();
    let first = sent(&queue, fill(&queue, &mem, 2), &[]);
    queue.flush();
    sent(&queue, fill(&queue, &mem, 3), &[]);
    let mut bytes = [0; 64];
    // The host thread has something to do at the end.
    let last = sent(&queue, read(&queue, &mem, 0, &mut bytes), &[]);
    queue.flush();
    std::thread::sleep(Duration::from_millis(10));
    let (after, progress) = (seen.clone(), queue.progress.clone());
    let look = move |_| after.store(progress.timeline.completed().unwrap(), Ordering::SeqCst);
    on_event(&first, 0, look).unwrap();
    bench.fake.let_through(1);
    eventually("the callback comes", || seen.load(Ordering::SeqCst) > 0);
    assert_eq!(seen.load(Ordering::SeqCst), 1);
    bench.fake.start();
    assert_eq!(last.wait(), 0);
    assert_eq!(bytes, [3; 64]);
}

#[test]
fn a_map_that_fails_takes_no_other_along() {
    for reach in ALL {
        let (bench, queue) = set_up(reach, OOO);
        let mem = bench.filled(&[1; 64]);
        let user = bench.user();
        let map = |flags, size, wait: &[&Ref<Event>]| {
            let (command, pointer) = map(&queue, &mem, flags, 0..size);
            (sent(&queue, command, wait), pointer)
        };
        let (failing, pointer) = map(cl::CL_MAP_READ, 64, &[&user]);
        let (standing, same) = map(cl::CL_MAP_WRITE, 32, &[]);
        assert_eq!((standing.wait(), same), (0, pointer));
        user.set_user_status(-5).unwrap();
        assert!(failing.wait() < 0);
        assert_eq!(mem.map_count(), 1);
        // SAFETY: mapped for 32 bytes.
        unsafe { std::ptr::write_bytes(pointer as *mut u8, 7, 32) };
        let command = unmap(&queue, &mem, pointer.cast());
        assert_eq!(sent(&queue, command, &[]).wait(), 0);
        assert_eq!(mem.map_count(), 0);
        let mut expected = [1; 64];
        expected[..32].fill(7);
        assert_eq!(contents(&queue, &mem), expected, "{reach:?}");
    }
}

/// The device has done it, and the host has seen that: nothing is left to wait for, but to make what was written visible.
#[test]
fn what_other_queues_have_done_is_made_visible() {
    let bench = Bench::new(Reach::Hidden);
    let (one, two) = (bench.queue(0), bench.queue(0));
    let mem = bench.filled(&[1; 64]);
    let done = sent(&one, fill(&one, &mem, 2), &[]);
    one.flush();
    eventually("the fill is done", || one.progress.timeline.has_reached(1));
    assert!(matches!(done.readiness(), Readiness::Recorded(_)));
    let before = bench.fake.waits();
    sent(&two, fill(&two, &mem, 3), &[&done]);
    assert_eq!(bench.fake.waits(), before + 1);
    assert_eq!(contents(&two, &mem), [3; 64]);
}

unsafe extern "C" fn set_argument(_: *mut c_void, kernel: *mut c_void) {
    let kernel = handle::lookup::<crate::object::kernel::Kernel>(kernel).unwrap();
    kernel.set_arg(1, 4, Some(&[1, 2, 3, 4])).unwrap();
    GONE_LAST.fetch_add(1, Ordering::SeqCst);
}

static GONE_LAST: AtomicUsize = AtomicUsize::new(0);

/// A launch that fails holds the last reference to its argument, whose destructor callback sets arguments.
#[test]
fn memory_does_not_go_under_the_lock_of_the_arguments() {
    let fakes = [(); 2].map(|()| FakeDevice::new(Reach::Cached));
    let devices = fakes.clone().map(|fake| Device::for_tests(fake));
    let context = Context::new(devices.to_vec(), vec![], None, std::ptr::null_mut()).unwrap();
    let source = "kernel void k(global int *p, int n) { p[0] = n; }";
    let program = program::with_source(&context, source.into());
    program.build(None, "", None).unwrap();
    let kernel = program.create_kernel("k").unwrap();
    let mem = buffer_in(&context, 64);
    let data = Object::handle(&kernel);
    mem.add_destructor(Callback::new(set_argument, data));
    let handle = mem.publish();
    drop(mem);
    let bytes = (handle as usize).to_ne_bytes();
    kernel.set_arg(0, 8, Some(&bytes)).unwrap();
    kernel.set_arg(1, 4, Some(&[0; 4])).unwrap();
    let address = handle as usize;
    fakes[0].fail_allocation(move || {
        handle::release::<Mem>(address as *const c_void).unwrap();
        DeviceError::OutOfDeviceMemory { size: 64 }
    });
    let (kernel, device) = (kernel.clone(), devices[0].clone());
    let launch =
        std::thread::spawn(move || kernel.snapshot(&device, &Arc::new(()), false).is_err());
    eventually("the callback comes", || {
        GONE_LAST.load(Ordering::SeqCst) == 1
    });
    assert!(launch.join().unwrap());
}

/// A barrier is over when the host's parts of what is before it are.
#[test]
fn barriers_wait_for_what_the_host_has_yet_to_do() {
    let (bench, queue) = set_up(Reach::Hidden, OOO);
    let mem = bench.filled(&[5; 64]);
    let gate = Arc::new(Mutex::new(()));
    let closed = gate.lock();
    // Keeps the host thread.
    let first = sent(&queue, fill(&queue, &mem, 7), &[]);
    let hold_up = gate.clone();
    on_event(&first, 0, move |_| drop(hold_up.lock())).unwrap();
    let mut bytes = [0u8; 64];
    let command = read(&queue, &mem, 0, &mut bytes);
    sent(&queue, command, &[&first]);
    let barrier = sent(&queue, sync::barrier(), &[]);
    queue.flush();
    std::thread::sleep(Duration::from_millis(20));
    assert_ne!(barrier.status(), 0);
    drop(closed);
    assert_eq!(barrier.wait(), 0);
    assert_eq!(bytes, [7; 64]);
}

struct Falls;

impl crate::object::mem::host_work::HostWork for Falls {
    fn run(&self) {
        panic!("as the test wants");
    }
}

/// A task of the host thread that panics fails with its event; who waits wakes, and the queue goes on.
#[test]
fn a_task_that_panics() {
    let (bench, queue) = set_up(Reach::Hidden, 0);
    let mem = bench.filled(&[1; 64]);
    bench.fake.stop();
    let before = sent(&queue, fill(&queue, &mem, 2), &[]);
    let falls = Command::new(
        cl::CL_COMMAND_SVM_FREE,
        crate::command::Work::Host(Arc::new(Falls)),
    );
    let failed = sent(&queue, falls, &[]);
    let after = sent(&queue, fill(&queue, &mem, 3), &[]);
    bench.fake.start();
    queue.finish().unwrap();
    assert_eq!(failed.status(), cl::CL_OUT_OF_RESOURCES);
    assert_eq!(before.status(), cl::CL_COMPLETE as cl_int);
    assert_eq!(after.status(), cl::CL_COMPLETE as cl_int);
    assert_eq!(contents(&queue, &mem), [3; 64]);
}
