//! The process belongs to the application: its floating-point mode reaches no result and no cache, its threads and its own
//! end may use OpenCL to the last, and threads of the library take none of its signals and keep to none of its processors.
//!
//! Each test is a child process: this executable again, with something set that other tests must not have.

use pumice_tests::sys::*;
use pumice_tests::{
    call, good_child, info_value, job, left_out, ok, Buffer, Event, Kernel, Queue, Scratch, Setup,
};
use std::collections::BTreeMap;
use std::ffi::{c_char, c_int, c_void};
use std::path::Path;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

const DOUBLES: &str =
    "kernel void a(global int *x) { x[get_global_id(0)] = 2 * get_global_id(0); }";
const WORDS: usize = 1000;

/// The device is the processor itself, without Vulkan.
fn is_processor(setup: &Setup) -> bool {
    let kinds = info_value!(
        u64,
        clGetDeviceInfo(setup.device),
        CL_DEVICE_EXECUTION_CAPABILITIES
    );
    kinds & CL_EXEC_NATIVE_KERNEL != 0
}

/// Not a test of its own: the child of the others.
#[test]
fn inner() {
    let Some(job) = job() else { return };
    let to_do = |what: &str| job.strip_prefix(what);
    #[cfg(target_arch = "x86_64")]
    if let Some(mode) = to_do("computes ") {
        return floats::compute(mode);
    }
    if let Some(kind) = to_do("exits ") {
        exit(kind)
    } else if let Some(keeps) = to_do("starts threads ") {
        start_threads(keeps)
    } else {
        match job.as_str() {
            "ends a thread first" => end_a_thread(true),
            "ends a thread later" => end_a_thread(false),
            "runs deep" => run_deep(),
            _ => panic!("{job}"),
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod floats;

/// The objects that handlers and destructors use.
struct Work {
    setup: Setup,
    kernel: Kernel,
    buffer: Buffer,
    /// A user event that a handler sets or releases, and the command that waits for it.
    held: Option<(Event, Event)>,
}

impl Work {
    fn new() -> Self {
        let setup = Setup::new();
        let kernel = setup.kernel_of(DOUBLES, "a");
        let buffer = setup.buffer(4 * WORDS);
        kernel.set_buffer(0, &buffer);
        Self {
            setup,
            kernel,
            buffer,
            held: None,
        }
    }

    /// Enqueues the kernel, which waits for an event.
    fn after(&self, queue: &Queue, gate: &Event) -> Event {
        let mut event = null_mut();
        ok!(clEnqueueNDRangeKernel(
            queue.0,
            self.kernel.0,
            1,
            null(),
            &WORDS,
            null(),
            1,
            &gate.0,
            &mut event
        ));
        Event(event)
    }

    fn has_result(&self) -> bool {
        self.setup.read::<u32>(&self.buffer, WORDS)[1..3] == [2, 4]
    }
}

static WORK: OnceLock<Work> = OnceLock::new();
static KIND: OnceLock<String> = OnceLock::new();

/// Does what a handler of `exit` is to do, and ends the process.
fn work_at_exit() {
    let work = WORK.get().expect("set before");
    let queue = work.setup.queue.0;
    let kind = KIND.get().expect("set before");
    match (kind.trim_end_matches(" later"), &work.held) {
        ("launching", _) => {
            work.setup.enqueue(&work.kernel, &[WORDS], None);
            ok!(clFinish(queue));
            assert!(work.has_result());
        }
        ("opening", Some((gate, command))) => {
            gate.finish(CL_COMPLETE);
            ok!(clFinish(queue));
            assert_eq!(command.status(), CL_COMPLETE);
            assert!(work.has_result());
        }
        ("releasing", Some((gate, command))) => {
            ok!(clReleaseEvent(gate.0));
            assert!(command.status() < 0, "{}", command.status());
        }
        _ => panic!("{kind}"),
    }
    println!("worked at exit");
    // SAFETY: ends the process at once.
    unsafe { libc::_exit(0) };
}

extern "C" fn handler() {
    work_at_exit();
}

/// Runs after all handlers.
extern "C" fn destructor() {
    if KIND.get().is_some_and(|kind| kind.ends_with(" later")) {
        work_at_exit();
    }
}

#[used]
#[link_section = ".fini_array"]
static DESTRUCTOR: extern "C" fn() = destructor;

/// Calls `exit` with work left for its handlers. What the threads of the process have ready is used before.
fn exit(kind: &str) -> ! {
    let mut work = Work::new();
    for _ in 0..20 {
        work.setup.run(&work.kernel, &[WORDS], None);
    }
    if !kind.starts_with("launching") {
        // This thread has woken another queue, once.
        let (gate, other) = (Event::user(&work.setup.context), work.setup.new_queue(0));
        let command = work.after(&other, &gate);
        gate.finish(CL_COMPLETE);
        assert_eq!(command.wait(), CL_SUCCESS);
        let gate = Event::user(&work.setup.context);
        let command = work.after(&work.setup.queue, &gate);
        work.held = Some((gate, command));
    }
    assert!(WORK.set(work).is_ok());
    assert!(KIND.set(kind.to_owned()).is_ok());
    // SAFETY: a function of this program; `exit` takes this thread's values apart, which nothing here uses later.
    unsafe {
        if !kind.ends_with(" later") {
            libc::atexit(handler);
        }
        libc::exit(1)
    }
}

/// Handlers of `exit` work as if it had not been called: on devices of Vulkan those that are registered once there is a
/// device, on the processor destructors of the program too.
#[test]
fn work_at_exit_is_done() {
    let later: &[&str] = match is_processor(&Setup::new()) {
        true => &["", " later"],
        false => &[""],
    };
    for kind in ["launching", "opening", "releasing"] {
        for later in later {
            let job = format!("exits {kind}{later}");
            let output = good_child::<&str>("process::inner", &job, &[]);
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(text.contains("worked at exit"), "{job}: {text}");
            assert!(!String::from_utf8_lossy(&output.stderr).contains("panic"));
        }
    }
}

/// The key of what a thread has; its destructor runs once all values of Rust are gone.
static KEY: AtomicU32 = AtomicU32::new(0);
static ENDED: AtomicBool = AtomicBool::new(false);

unsafe extern "C" fn at_thread_end(queue: *mut c_void) {
    // The second round: whatever else has such destructors has had its turn.
    static ROUND: AtomicU32 = AtomicU32::new(0);
    if ROUND.fetch_add(1, Ordering::SeqCst) == 0 {
        // SAFETY: the key of this destructor.
        unsafe { libc::pthread_setspecific(KEY.load(Ordering::SeqCst), queue) };
        return;
    }
    let work = WORK.get().expect("set before");
    let queue = Queue(queue);
    // What starts threads, runs compilers and waits for both.
    let program = work.setup.build(
        "kernel void b(global int *x) { x[get_global_id(0)] = 1; } kernel void c(global int *x) {}",
    );
    let other = work.setup.kernel(&program, "b");
    other.set_buffer(0, &work.buffer);
    queue.enqueue(&other, &[WORDS], None);
    queue.enqueue(&work.kernel, &[WORDS], None);
    ok!(clFinish(queue.0));
    assert!(work.has_result());
    // Two commands that wait for one another, let go here.
    let gate = Event::user(&work.setup.context);
    let first = work.after(&queue, &gate);
    let second = work.after(&work.setup.queue, &first);
    gate.finish(CL_COMPLETE);
    assert_eq!(second.wait(), CL_SUCCESS);
    let mut words = vec![0u8; 4 * WORDS];
    ok!(clEnqueueReadBuffer(
        queue.0,
        work.buffer.0,
        CL_FALSE,
        0,
        words.len(),
        words.as_mut_ptr().cast(),
        0,
        null(),
        null_mut()
    ));
    ok!(clFinish(queue.0));
    assert_eq!(words[4], 2);
    drop(queue);
    ENDED.store(true, Ordering::SeqCst);
}

/// A thread ends whose destructors use its queue. `first`: no thread has used the device before.
fn end_a_thread(first: bool) {
    let work = Work::new();
    let queue = work.setup.new_queue(0);
    if !first {
        queue.enqueue(&work.kernel, &[WORDS], None);
        ok!(clFinish(queue.0));
    }
    assert!(WORK.set(work).is_ok());
    let mut key = 0;
    // SAFETY: a place for the key, and a function of this program.
    let made = unsafe { libc::pthread_key_create(&mut key, Some(at_thread_end)) };
    assert_eq!(made, 0);
    KEY.store(key, Ordering::SeqCst);
    std::thread::spawn(move || {
        let work = WORK.get().expect("set before");
        if !first {
            queue.enqueue(&work.kernel, &[WORDS], None);
            ok!(clFinish(queue.0));
        }
        let handle = queue.0;
        std::mem::forget(queue);
        // SAFETY: the key that was made above.
        unsafe { libc::pthread_setspecific(key, handle) };
    })
    .join()
    .expect("the thread");
    let end = Instant::now() + Duration::from_secs(60);
    while !ENDED.load(Ordering::SeqCst) {
        assert!(
            Instant::now() < end,
            "the destructor does not come to its end"
        );
        std::thread::sleep(Duration::from_millis(2));
    }
    let work = WORK.get().expect("set before");
    work.setup.run(&work.kernel, &[WORDS], None);
    assert!(work.has_result());
    println!("ended a thread");
    // SAFETY: ends the process at once.
    unsafe { libc::_exit(0) };
}

/// Destructors of a thread's values (of C++'s `thread_local`, of POSIX's keys) may build, launch and wait.
#[test]
fn threads_work_to_their_end() {
    for first in ["first", "later"] {
        let job = format!("ends a thread {first}");
        let output = good_child::<&str>("process::inner", &job, &[]);
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains("ended a thread"), "{text}");
    }
}

/// The value of a line of a file of /proc/self/task.
fn status(thread: &str, name: &str) -> String {
    let path = format!("/proc/self/task/{thread}/status");
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.map(|rest| rest.trim_start_matches(':').trim().to_owned())
        .unwrap_or_default()
}

/// Observations of a thread: how many, the signals that were blocked each time, and its last processors.
struct Seen {
    times: usize,
    name: String,
    /// The C library blocks all signals while it starts a thread or a process, so one look proves nothing.
    always_blocked: u64,
    processors: String,
}

/// How often `look_at_threads` was called.
static LOOKS: AtomicUsize = AtomicUsize::new(0);

/// Looks at the threads of the library.
fn look_at_threads(all: &mut BTreeMap<String, Seen>) {
    for entry in std::fs::read_dir("/proc/self/task")
        .expect("Linux")
        .flatten()
    {
        let thread = entry.file_name().into_string().expect("a number");
        let [name, blocked, processors] =
            ["Name", "SigBlk", "Cpus_allowed_list"].map(|line| status(&thread, line));
        if name.starts_with("pumice-") && !processors.is_empty() {
            let seen = all.entry(thread).or_insert_with(|| Seen {
                times: 0,
                name: String::new(),
                always_blocked: u64::MAX,
                processors: String::new(),
            });
            seen.always_blocked &= u64::from_str_radix(&blocked, 16).expect("a mask");
            (seen.name, seen.processors) = (name, processors);
            seen.times += 1;
        }
    }
    LOOKS.fetch_add(1, Ordering::SeqCst);
}

unsafe extern "C" fn note(_: cl_event, _: cl_int, noted: *mut c_void) {
    // SAFETY: a static value.
    unsafe { &*noted.cast::<AtomicBool>() }.store(true, Ordering::SeqCst);
}

unsafe extern "C" fn built(_: cl_program, noted: *mut c_void) {
    // The second look from now on began after this call did: it sees this thread outside of the C library.
    let looks = LOOKS.load(Ordering::SeqCst);
    eventually("looks at the threads", || {
        LOOKS.load(Ordering::SeqCst) >= looks + 2
    });
    // SAFETY: a static value.
    unsafe { &*noted.cast::<AtomicBool>() }.store(true, Ordering::SeqCst);
}

fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Keeps the calling thread to the first of the processors that it may use.
fn keep_to_one_processor() {
    // SAFETY: a set of bits, which zeros are a value of, as large as is said.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        let size = size_of_val(&set);
        assert_eq!(libc::sched_getaffinity(0, size, &mut set), 0);
        let first = (0..libc::CPU_SETSIZE as usize).find(|&number| libc::CPU_ISSET(number, &set));
        let mut one: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(first.expect("a processor"), &mut one);
        assert_eq!(libc::sched_setaffinity(0, size, &one), 0);
    }
}

/// Starts threads of every kind and looks at them. `keeps`: when the calling thread is kept to one processor.
fn start_threads(keeps: &str) {
    static NOTED: AtomicBool = AtomicBool::new(false);
    static BUILT: AtomicBool = AtomicBool::new(false);
    let allowed = status(&std::process::id().to_string(), "Cpus_allowed_list");
    let body = move || {
        if keeps == "before the device" {
            keep_to_one_processor();
        }
        let setup = Setup::new();
        if keeps == "after the device" {
            keep_to_one_processor();
        }
        let kernel = setup.kernel_of(
            "kernel void w(global float *x) { float s = x[get_global_id(0)];
                for (int i = 0; i < 300; i++) s = s * 1.01f + 0.5f; x[get_global_id(0)] = s; }",
            "w",
        );
        let buffer = setup.buffer(4 << 20);
        kernel.set_buffer(0, &buffer);
        setup.run(&kernel, &[1 << 20], None);
        let mut event = null_mut();
        ok!(clEnqueueNDRangeKernel(
            setup.queue.0,
            kernel.0,
            1,
            null(),
            &(1usize << 20),
            null(),
            0,
            null(),
            &mut event
        ));
        let event = Event(event);
        let noted = (&raw const NOTED).cast_mut().cast();
        ok!(clSetEventCallback(event.0, CL_COMPLETE, Some(note), noted));
        ok!(clFlush(setup.queue.0));
        let program = setup.program("kernel void k() {}");
        let noted = (&raw const BUILT).cast_mut().cast();
        ok!(clBuildProgram(
            program.0,
            1,
            &setup.device,
            null::<c_char>(),
            Some(built),
            noted
        ));
        // Large enough for several threads.
        setup.write(&buffer, &vec![1u8; 4 << 20]);
        let mut all = BTreeMap::new();
        eventually("the callbacks", || {
            look_at_threads(&mut all);
            NOTED.load(Ordering::SeqCst) && BUILT.load(Ordering::SeqCst)
        });
        std::thread::sleep(Duration::from_millis(20));
        look_at_threads(&mut all);
        (setup, all)
    };
    // A worker of the application comes first, or its first thread.
    let (_setup, all) = match keeps {
        "before the device" => {
            std::thread::scope(|scope| scope.spawn(body).join()).expect("a thread")
        }
        _ => body(),
    };
    // One that was seen once may have been seen as it began.
    let settled: Vec<_> = all.values().filter(|seen| seen.times > 1).collect();
    assert!(!settled.is_empty(), "no thread of the library");
    for Seen {
        name,
        always_blocked: blocked,
        processors,
        ..
    } in settled
    {
        for signal in [
            libc::SIGHUP,
            libc::SIGINT,
            libc::SIGUSR1,
            libc::SIGUSR2,
            libc::SIGTERM,
            libc::SIGALRM,
            libc::SIGCHLD,
            libc::SIGPROF,
            libc::SIGIO,
            libc::SIGRTMIN(),
        ] {
            assert_ne!(blocked >> (signal - 1) & 1, 0, "{name}: signal {signal}");
        }
        for signal in [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL] {
            assert_eq!(blocked >> (signal - 1) & 1, 0, "{name}: signal {signal}");
        }
        assert_eq!(*processors, allowed, "{name}");
    }
    println!("started threads");
    // SAFETY: ends the process at once, as this thread may be kept to a processor.
    unsafe { libc::_exit(0) };
}

/// Threads of the library have no signal of the application's, and the processors of the process.
#[test]
fn threads_leave_signals_and_processors() {
    let setup = Setup::new();
    if std::thread::available_parallelism().map_or(1, |n| n.get()) < 2 {
        return left_out("one processor");
    }
    drop(setup);
    for keeps in ["never", "before the device", "after the device"] {
        let job = format!("starts threads {keeps}");
        let output = good_child("process::inner", &job, &[("PUMICE_CACHE_DIR", "")]);
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains("started threads"), "{text}");
    }
}

/// A compiler has the signals that the application has, whichever thread starts it.
#[test]
fn compilers_take_signals() {
    use std::os::unix::fs::PermissionsExt;
    let Some(clang) = (20..=40)
        .rev()
        .map(|version| format!("/usr/bin/clang-{version}"))
        .find(|clang| Path::new(clang).exists())
    else {
        return left_out("no clang");
    };
    let place = Scratch::new("signals").expect("a directory");
    let (script, masks) = (place.join("clang"), place.join("masks"));
    let text = format!(
        "#!/bin/sh\ngrep SigBlk /proc/self/status >>{}\nexec {clang} \"$@\"\n",
        masks.display()
    );
    std::fs::write(&script, text).expect("a file");
    std::fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).expect("its mode");
    let variables = [
        ("PUMICE_CACHE_DIR", place.join("cache")),
        ("PUMICE_CLANG", script),
        ("PUMICE_CLANG_SERVER", "0".into()),
    ];
    good_child("process::inner", "starts threads never", &variables);
    let masks = std::fs::read_to_string(masks).expect("what the compilers had");
    for mask in masks.lines() {
        assert!(
            mask.ends_with(" 0000000000000000") || mask.ends_with("\t0000000000000000"),
            "{masks}"
        );
    }
    assert!(masks.lines().count() >= 2, "{masks}");
}

/// Uses so much stack.
fn deep(left: usize) -> u8 {
    let mut frame = [0u8; 64 << 10];
    let frame = std::hint::black_box(&mut frame);
    frame[left % 4096] = 1;
    if left <= frame.len() {
        return frame[0];
    }
    deep(left - frame.len()) | frame[1]
}

static DEEP_IN: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

unsafe extern "C" fn native(_: *mut c_void) {
    // Not all of the 8 MiB that threads of the C library have.
    std::hint::black_box(deep(7 << 20));
    // SAFETY: this thread's id.
    let thread = unsafe { libc::pthread_self() };
    DEEP_IN.store(thread as *mut c_void, Ordering::SeqCst);
}

fn run_deep() {
    static NOTED: AtomicBool = AtomicBool::new(false);
    let setup = Setup::new();
    for callback in [false, true] {
        DEEP_IN.store(null_mut(), Ordering::SeqCst);
        let mut event = null_mut();
        ok!(clEnqueueNativeKernel(
            setup.queue.0,
            Some(native),
            null_mut(),
            0,
            0,
            null(),
            null_mut(),
            0,
            null(),
            &mut event
        ));
        let event = Event(event);
        if callback {
            let noted = (&raw const NOTED).cast_mut().cast();
            ok!(clSetEventCallback(event.0, CL_COMPLETE, Some(note), noted));
        }
        ok!(clFlush(setup.queue.0));
        // Not waited for: that would run it here.
        eventually("the native kernel", || event.status() == CL_COMPLETE);
        // SAFETY: this thread's id.
        let here = unsafe { libc::pthread_self() } as *mut c_void;
        assert_ne!(DEEP_IN.load(Ordering::SeqCst), here);
    }
    println!("ran deep");
}

/// Native kernels have the stack of a thread of the C library.
#[test]
fn native_kernels_have_a_stack() {
    let setup = Setup::new();
    let kinds = info_value!(
        u64,
        clGetDeviceInfo(setup.device),
        CL_DEVICE_EXECUTION_CAPABILITIES
    );
    if kinds & CL_EXEC_NATIVE_KERNEL == 0 {
        return left_out("no native kernels");
    }
    let output = good_child::<&str>("process::inner", "runs deep", &[]);
    assert!(String::from_utf8_lossy(&output.stdout).contains("ran deep"));
    let _ = call!(clFinish(setup.queue.0));
}
