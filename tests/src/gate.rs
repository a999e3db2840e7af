//! Gates: kernels that wait until the program opens them, and calls that must return while one is closed.

use crate::{call, create, info_value, ok, Event, Kernel, Program, Queue, Setup};
use opencl_sys::*;
use std::cell::RefCell;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

/// The source of a kernel that waits for a flag in shared virtual memory.
pub const GATE: &str = "
kernel void gate(global atomic_int *flag) {
    while (atomic_load_explicit(flag, memory_order_acquire, memory_scope_all_svm_devices) == 0) {}
}";

/// Options to build [`GATE`] with.
pub const GATE_OPTIONS: &str = "-cl-std=CL2.0";

/// How long what must happen may take, on a machine that is busy with other tests.
pub const GRACE: Duration = Duration::from_secs(10);

/// A flag in fine-grained shared virtual memory, and a kernel that waits for it. Opens when it is dropped, so that a test
/// that fails does not hang.
pub struct Gate<'a> {
    setup: &'a Setup,
    flag: &'a AtomicU32,
    kernel: Kernel,
    _program: Program,
    /// The launches that wait for the flag.
    launches: RefCell<Vec<Event>>,
}

/// Returns true if kernels and the host can use atomics on the same memory at the same time.
pub fn has_gates(setup: &Setup) -> bool {
    let needed = CL_DEVICE_SVM_FINE_GRAIN_BUFFER | CL_DEVICE_SVM_ATOMICS;
    let param = CL_DEVICE_SVM_CAPABILITIES;
    info_value!(u64, clGetDeviceInfo(setup.device), param) & needed == needed
}

/// Returns true if the device runs native kernels, which of ours the CPU device alone does.
pub fn runs_native_kernels(setup: &Setup) -> bool {
    let capabilities = info_value!(
        u64,
        clGetDeviceInfo(setup.device),
        CL_DEVICE_EXECUTION_CAPABILITIES
    );
    capabilities & CL_EXEC_NATIVE_KERNEL != 0
}

/// Returns true as soon as a condition holds, and false if it does not within [`GRACE`].
pub fn soon(condition: impl Fn() -> bool) -> bool {
    let end = Instant::now() + GRACE;
    while Instant::now() < end {
        if condition() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    condition()
}

/// A value that another thread uses while this one waits for it.
struct Moved<T>(T);

// SAFETY: handles of OpenCL may be used from every thread, and tests share nothing else that is bound to one.
unsafe impl<T> Send for Moved<T> {}

impl<T> Moved<T> {
    fn inside(self) -> T {
        self.0
    }
}

/// Runs what must return soon. `rescue` is run where it does not, and makes it return.
#[track_caller]
pub fn returns<R>(what: &str, rescue: impl FnOnce(), run: impl FnOnce() -> R) -> R {
    let (done, ended) = channel();
    let moved = Moved(run);
    let (result, in_time) = std::thread::scope(|scope| {
        let thread = scope.spawn(move || {
            let result = Moved(catch_unwind(AssertUnwindSafe(moved.inside())));
            let _ = done.send(());
            result
        });
        let in_time = ended.recv_timeout(GRACE).is_ok();
        if !in_time {
            rescue();
        }
        let result = thread.join().expect("it catches panics");
        (result.inside(), in_time)
    });
    assert!(in_time, "{what} did not return within {GRACE:?}");
    result.unwrap_or_else(|panic| resume_unwind(panic))
}

impl<'a> Gate<'a> {
    /// A gate that is closed. None: the device has no atomics that the host takes part in.
    pub fn new(setup: &'a Setup) -> Option<Self> {
        if !has_gates(setup) {
            return None;
        }
        let flags = CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER | CL_MEM_SVM_ATOMICS;
        let memory: *mut u32 = call!(clSVMAlloc(setup.context.0, flags, 64, 0)).cast();
        assert!(!memory.is_null(), "fine-grained memory with atomics");
        // SAFETY: memory of 64 bytes at an address of such alignment, which is freed when the gate is dropped.
        let flag = unsafe {
            memory.write(1);
            AtomicU32::from_ptr(memory)
        };
        let program = setup
            .try_build(GATE, GATE_OPTIONS)
            .expect("a kernel that waits");
        let kernel = setup.kernel(&program, "gate");
        ok!(clSetKernelArgSVMPointer(kernel.0, 0, memory.cast()));
        // Once with the gate open, so that nothing is compiled behind a closed one.
        setup.run(&kernel, &[1], None);
        flag.store(0, Ordering::SeqCst);
        Some(Self {
            setup,
            flag,
            kernel,
            _program: program,
            launches: RefCell::default(),
        })
    }

    /// Enqueues a kernel that waits until the gate opens. Its event.
    pub fn enqueue(&self, queue: &Queue) -> cl_event {
        let mut event = null_mut();
        ok!(clEnqueueNDRangeKernel(
            queue.0,
            self.kernel.0,
            1,
            null(),
            [1].as_ptr(),
            null(),
            0,
            null(),
            &mut event
        ));
        self.launches.borrow_mut().push(Event(event));
        event
    }

    /// Returns true if the program has not opened the gate, and no kernel has passed it.
    pub fn is_closed(&self) -> bool {
        let launches = self.launches.borrow();
        let waits = |launch: &Event| launch.status() > CL_COMPLETE;
        self.flag.load(Ordering::SeqCst) == 0 && launches.iter().all(waits)
    }

    /// The flag: 0 while the gate is closed.
    pub fn flag(&self) -> &'a AtomicU32 {
        self.flag
    }

    /// Opens the gate.
    pub fn open(&self) {
        self.flag.store(1, Ordering::SeqCst);
    }

    /// Runs what must return while the gate is closed.
    #[track_caller]
    pub fn returns<R>(&self, what: &str, run: impl FnOnce() -> R) -> R {
        let flag = self.flag;
        returns(what, || flag.store(1, Ordering::SeqCst), run)
    }
}

impl Drop for Gate<'_> {
    fn drop(&mut self) {
        self.open();
        for launch in self.launches.borrow().iter() {
            launch.wait();
        }
        let memory: *const AtomicU32 = self.flag;
        call!(clSVMFree(self.setup.context.0, memory.cast_mut().cast()));
    }
}

/// A user event that a test opens, at the latest when it is dropped.
pub struct Held {
    /// The event.
    pub event: Event,
    open: std::sync::atomic::AtomicBool,
}

impl Held {
    /// A gate that is closed.
    pub fn new(setup: &Setup) -> Self {
        Self {
            event: Event(create!(clCreateUserEvent(setup.context.0))),
            open: false.into(),
        }
    }

    /// Opens the gate.
    pub fn open(&self) {
        if !self.open.swap(true, Ordering::SeqCst) {
            ok!(clSetUserEventStatus(self.event.0, CL_COMPLETE));
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if !self.open.swap(true, Ordering::SeqCst) {
            call!(clSetUserEventStatus(self.event.0, CL_COMPLETE));
        }
    }
}
