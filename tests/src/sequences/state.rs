//! The state of a run: objects by kind, each with the references that are the program's, memory of its own, and what numbers mean.
//!
//! The threads of a program have a [`State`] each, with one table of objects. Nobody holds it in a call that may wait.

use super::calls::{recorded, semaphores};
use crate::{call, code_name};
use opencl_sys as sys;
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Bytes of memory that calls read and write.
pub const ROOM: usize = 4 << 20;

/// Kinds of objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A context.
    Context,
    /// A queue of the host.
    Queue,
    /// A buffer, image or pipe.
    Mem,
    /// A sampler.
    Sampler,
    /// A program.
    Program,
    /// A kernel.
    Kernel,
    /// An event.
    Event,
    /// A command buffer.
    CommandBuffer,
    /// A semaphore.
    Semaphore,
}

/// An object that lives: its handle, and the program's references.
#[derive(Debug, Clone, Copy)]
pub struct Object {
    /// Its handle.
    pub handle: *mut c_void,
    /// References that are to be given back. Where several threads count it may be below zero for a moment: one may count a
    /// release before another counts the retain.
    pub count: i32,
}

/// The state that all threads of a program share.
#[derive(Default)]
pub struct Table {
    objects: BTreeMap<Kind, Vec<Object>>,
    /// Handles of what is gone, and user events that were set.
    gone: Vec<*mut c_void>,
    /// User events that wait for their status.
    pub waiting: Vec<*mut c_void>,
    /// Places that memory objects are mapped to: queue, object, place.
    pub maps: Vec<[*mut c_void; 3]>,
    /// Shared virtual memory: where, how much, and of which context.
    pub shared: Vec<(*mut c_void, usize, *mut c_void)>,
    /// The contexts of queues.
    pub context_of: BTreeMap<*mut c_void, *mut c_void>,
    /// Queues that were released: their commands may be under way.
    pub released: usize,
    /// The results of threads that have ended: the calls that succeeded, and the problems.
    left: (u32, Vec<String>),
}

// SAFETY: the pointers are the driver's names for things, which any thread may tell it; none is read through.
unsafe impl Send for Table {}

impl Table {
    /// Objects of a kind that live.
    pub fn all(&self, kind: Kind) -> &[Object] {
        self.objects.get(&kind).map_or(&[], Vec::as_slice)
    }

    fn pick(&self, kind: Kind, number: u32) -> *mut c_void {
        let of = |list: &[Object], at: u32| {
            let at = at as usize % list.len().max(1);
            list.get(at).map_or(null_mut(), |object| object.handle)
        };
        match number % 32 {
            29 => {
                let kinds: Vec<&Vec<Object>> = self.objects.values().collect();
                let at = (number / 32) as usize % kinds.len().max(1);
                kinds
                    .get(at)
                    .map_or(null_mut(), |list| of(list, number / 64))
            }
            30 => {
                let at = (number / 32) as usize % self.gone.len().max(1);
                self.gone.get(at).copied().unwrap_or(null_mut())
            }
            31 => null_mut(),
            low => of(self.all(kind), low),
        }
    }

    /// A reference of the program's more, or less.
    fn counted(&mut self, kind: Kind, handle: *mut c_void, change: i32) {
        let list = self.objects.entry(kind).or_default();
        let at = list.iter().position(|object| object.handle == handle);
        let at = at.unwrap_or_else(|| {
            list.push(Object { handle, count: 0 });
            list.len() - 1
        });
        list[at].count += change;
        if change > 0 {
            self.gone.retain(|old| *old != handle);
        }
        if list[at].count == 0 {
            list.remove(at);
            self.released += usize::from(kind == Kind::Queue);
            self.shared.retain(|(.., context)| *context != handle);
            self.gone.push(handle);
            self.maps.retain(|map| !map.contains(&handle));
        }
    }

    /// References of the program to an object.
    pub fn references(&self, kind: Kind, handle: *mut c_void) -> i32 {
        let mut list = self.all(kind).iter();
        list.find(|object| object.handle == handle)
            .map_or(0, |object| object.count)
    }
}

/// See the module.
pub struct State {
    /// The platform.
    pub platform: sys::cl_platform_id,
    /// The device.
    pub device: sys::cl_device_id,
    table: Arc<Mutex<Table>>,
    /// Whether there are several threads.
    pub threaded: bool,
    /// A place for the answers of queries.
    answers: Vec<u64>,
    /// Calls that succeeded.
    pub good: u32,
    /// The problems, in words.
    pub wrong: Vec<String>,
}

// SAFETY: as for the table.
unsafe impl Send for State {}

/// Errors that the specification names outside of an entry point's list: in what it says of its arguments.
const BESIDES: &str = "clCreateImage CL_INVALID_IMAGE_DESCRIPTOR";

/// Errors of calls on semaphores.
const OF_SEMAPHORES: &str = "\
clCreateSemaphoreWithPropertiesKHR CL_INVALID_CONTEXT
clCreateSemaphoreWithPropertiesKHR CL_INVALID_PROPERTY
clCreateSemaphoreWithPropertiesKHR CL_INVALID_DEVICE
clCreateSemaphoreWithPropertiesKHR CL_INVALID_VALUE
clRetainSemaphoreKHR CL_INVALID_SEMAPHORE_KHR
clReleaseSemaphoreKHR CL_INVALID_SEMAPHORE_KHR
clGetSemaphoreInfoKHR CL_INVALID_SEMAPHORE_KHR
clGetSemaphoreInfoKHR CL_INVALID_VALUE
clEnqueueSignalSemaphoresKHR CL_INVALID_COMMAND_QUEUE
clEnqueueSignalSemaphoresKHR CL_INVALID_SEMAPHORE_KHR
clEnqueueSignalSemaphoresKHR CL_INVALID_CONTEXT
clEnqueueSignalSemaphoresKHR CL_INVALID_VALUE
clEnqueueSignalSemaphoresKHR CL_INVALID_EVENT_WAIT_LIST
clEnqueueSignalSemaphoresKHR CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST
clEnqueueWaitSemaphoresKHR CL_INVALID_COMMAND_QUEUE
clEnqueueWaitSemaphoresKHR CL_INVALID_SEMAPHORE_KHR
clEnqueueWaitSemaphoresKHR CL_INVALID_CONTEXT
clEnqueueWaitSemaphoresKHR CL_INVALID_VALUE
clEnqueueWaitSemaphoresKHR CL_INVALID_EVENT_WAIT_LIST
clEnqueueWaitSemaphoresKHR CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST";

/// Calls on command buffers: each has the errors of another entry point, and others.
const RECORDED: [(&str, &str, &[&str]); 10] = [
    (
        "clCreateCommandBufferKHR",
        "clFlush",
        &["CL_INVALID_CONTEXT", "CL_INVALID_VALUE"],
    ),
    ("clRetainCommandBufferKHR", "", &[]),
    ("clReleaseCommandBufferKHR", "", &[]),
    ("clFinalizeCommandBufferKHR", "", &["CL_INVALID_OPERATION"]),
    (
        "clEnqueueCommandBufferKHR",
        "clEnqueueMarkerWithWaitList",
        &[
            "CL_INVALID_OPERATION",
            "CL_INVALID_VALUE",
            "CL_INVALID_DEVICE",
        ],
    ),
    ("clGetCommandBufferInfoKHR", "", &["CL_INVALID_VALUE"]),
    (
        "clCommandCopyBufferKHR",
        "clEnqueueCopyBuffer",
        &["CL_INVALID_OPERATION"],
    ),
    (
        "clCommandFillBufferKHR",
        "clEnqueueFillBuffer",
        &["CL_INVALID_OPERATION"],
    ),
    (
        "clCommandFillImageKHR",
        "clEnqueueFillImage",
        &["CL_INVALID_OPERATION"],
    ),
    (
        "clCommandNDRangeKernelKHR",
        "clEnqueueNDRangeKernel",
        &["CL_INVALID_OPERATION", "CL_INVALID_VALUE"],
    ),
];

/// The errors that all of these have.
const OF_RECORDED: [&str; 4] = [
    "CL_INVALID_COMMAND_BUFFER_KHR",
    "CL_INVALID_SYNC_POINT_WAIT_LIST_KHR",
    "CL_OUT_OF_RESOURCES",
    "CL_OUT_OF_HOST_MEMORY",
];

/// Which errors an entry point may give.
pub(super) fn listed(name: &str) -> impl Iterator<Item = &'static str> + '_ {
    let recorded = RECORDED.iter().find(|(known, ..)| *known == name);
    let of = recorded.map_or(name, |(_, of, _)| of);
    let all = include_str!("../../errors/specification.txt").lines();
    let all = all.chain(BESIDES.lines()).chain(OF_SEMAPHORES.lines());
    let all = all.filter_map(move |line| {
        let mut words = line.split(' ');
        (words.next() == Some(of)).then(|| words.next()).flatten()
    });
    let own = recorded.map_or(&[][..], |(.., own)| own).iter();
    let common = OF_RECORDED.iter().filter(move |_| recorded.is_some());
    all.chain(own.copied()).chain(common.copied())
}

impl State {
    /// With nothing but a device.
    pub fn new() -> Self {
        let (mut platform, mut device) = (null_mut(), null_mut());
        call!(clGetPlatformIDs(1, &mut platform, null_mut()));
        let all = sys::CL_DEVICE_TYPE_ALL;
        call!(clGetDeviceIDs(platform, all, 1, &mut device, null_mut()));
        Self {
            platform,
            device,
            table: Arc::default(),
            threaded: false,
            answers: Vec::new(),
            good: 0,
            wrong: Vec::new(),
        }
    }

    /// Notes that there are several threads from now on.
    pub fn set_threaded(&mut self) {
        self.threaded = true;
    }

    /// Creates the state of another thread.
    pub fn other(&self) -> Self {
        Self {
            table: self.table.clone(),
            answers: Vec::new(),
            good: 0,
            wrong: Vec::new(),
            ..*self
        }
    }

    /// A thread is over.
    pub fn leave(mut self) {
        let mut wrong = std::mem::take(&mut self.wrong);
        let mut table = self.table();
        table.left.0 += self.good;
        table.left.1.append(&mut wrong);
    }

    /// Locks the state of all threads, which must not stay locked in a call that may wait.
    pub fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Memory for calls: the process's, since commands may be under way when a program is over. What they do with it nobody looks at.
    pub fn memory(&self) -> *mut c_void {
        static MEMORY: OnceLock<usize> = OnceLock::new();
        let memory = || Box::leak(vec![0u64; ROOM / 8].into_boxed_slice()).as_mut_ptr() as usize;
        *MEMORY.get_or_init(memory) as *mut c_void
    }

    /// Memory that no command uses, with zeros in it.
    pub fn zeros(&mut self) -> *mut c_void {
        self.answers.clear();
        self.answers.resize(1024, 0);
        self.answers.as_mut_ptr().cast()
    }

    /// Objects of a kind that live.
    pub fn all(&self, kind: Kind) -> Vec<Object> {
        self.table().all(kind).to_vec()
    }

    /// A handle: mostly of an object of that kind, at times of another kind, of what is gone, or none.
    pub fn pick(&self, kind: Kind, number: u32) -> *mut c_void {
        self.table().pick(kind, number)
    }

    /// Records the result of a call that returns a code.
    pub fn code(&mut self, name: &str, code: i32) -> bool {
        if code == sys::CL_SUCCESS {
            self.good += 1;
            return true;
        }
        let text = code_name(code);
        if !listed(name).any(|known| known == text) {
            self.wrong
                .push(format!("{name} gives {text}, which it does not list"));
        }
        false
    }

    /// Records the result of a call that makes an object.
    pub fn made(&mut self, name: &str, kind: Kind, handle: *mut c_void, code: i32) -> bool {
        let good = self.code(name, code);
        if good == handle.is_null() {
            self.wrong.push(format!(
                "{name} gives {} and {} object",
                code_name(code),
                if handle.is_null() { "no" } else { "an" }
            ));
        }
        if good && !handle.is_null() {
            self.table().counted(kind, handle, 1);
        }
        good
    }

    /// Makes a user event. Nobody sees it before it is known to be waited for.
    pub fn user_event(&mut self, context: sys::cl_context) {
        let (made, code) = {
            let mut table = self.table();
            let mut code = 1;
            let made = call!(clCreateUserEvent(context, &mut code));
            if code == sys::CL_SUCCESS {
                table.waiting.push(made);
            }
            (made, code)
        };
        self.made("clCreateUserEvent", Kind::Event, made, code);
    }

    /// Records the result of a command: its code, and its event if there is one.
    pub fn enqueued(&mut self, name: &str, code: i32, event: *mut c_void) {
        if self.code(name, code) {
            if !event.is_null() {
                self.made(name, Kind::Event, event, code);
            }
        } else if !event.is_null() {
            self.wrong.push(format!("{name} fails and gives an event"));
        }
    }

    /// A reference of the program's more, or less.
    pub fn counted(&mut self, kind: Kind, handle: *mut c_void, more: bool) {
        let change = if more { 1 } else { -1 };
        self.table().counted(kind, handle, change);
    }

    /// Before what waits: nothing may wait for the program.
    pub fn settle(&mut self) {
        let waiting = std::mem::take(&mut self.table().waiting);
        for event in waiting {
            let code = call!(clSetUserEventStatus(event, sys::CL_COMPLETE));
            // Another thread may have set it or given it back.
            if code != sys::CL_SUCCESS && !self.threaded {
                self.wrong
                    .push(format!("an event that waits: {}", code_name(code)));
            }
        }
    }

    /// The references that objects tell of are the program's; afterwards all are given back, and a context that is made then works.
    /// How many calls succeeded, and what must not be.
    pub fn end(mut self) -> (u32, Vec<String>) {
        self.settle();
        let (good, mut wrong) = std::mem::take(&mut self.table().left);
        self.good += good;
        self.wrong.append(&mut wrong);
        macro_rules! kinds {
            ($($kind:ident $ask:ident $param:ident $release:ident;)*) => { $(
                for object in self.all(Kind::$kind) {
                    let mut count = 0u32;
                    let place = (&raw mut count).cast();
                    let code = call!($ask(object.handle, sys::$param, 4, place, null_mut()));
                    if code != sys::CL_SUCCESS || i64::from(count) != i64::from(object.count) {
                        let what = stringify!($kind);
                        self.wrong.push(format!("{what}: {} and {count} references, not {}", code_name(code), object.count));
                    }
                }
            )* $(
                for object in self.all(Kind::$kind) {
                    for _ in 0..object.count {
                        let code = call!($release(object.handle));
                        if code != sys::CL_SUCCESS {
                            self.wrong.push(format!("{}: {}", stringify!($release), code_name(code)));
                        }
                    }
                }
            )* };
        }
        for queue in self.all(Kind::Queue) {
            let code = call!(clFinish(queue.handle));
            self.code("clFinish", code);
        }
        let shared = {
            let mut table = self.table();
            match table.released {
                0 => std::mem::take(&mut table.shared),
                _ => Vec::new(),
            }
        };
        for (start, _, context) in shared {
            call!(clSVMFree(context, start));
        }
        recorded::end(&mut self);
        semaphores::end(&mut self);
        kinds! {
            Kernel clGetKernelInfo CL_KERNEL_REFERENCE_COUNT clReleaseKernel;
            Program clGetProgramInfo CL_PROGRAM_REFERENCE_COUNT clReleaseProgram;
            Event clGetEventInfo CL_EVENT_REFERENCE_COUNT clReleaseEvent;
            Sampler clGetSamplerInfo CL_SAMPLER_REFERENCE_COUNT clReleaseSampler;
            Mem clGetMemObjectInfo CL_MEM_REFERENCE_COUNT clReleaseMemObject;
            Queue clGetCommandQueueInfo CL_QUEUE_REFERENCE_COUNT clReleaseCommandQueue;
            Context clGetContextInfo CL_CONTEXT_REFERENCE_COUNT clReleaseContext;
        }
        self.probe();
        (self.good, self.wrong)
    }

    /// A context made now works.
    fn probe(&mut self) {
        let mut codes = [1; 5];
        let device = self.device;
        let (null, none) = (std::ptr::null(), null_mut());
        let context = call!(clCreateContext(null, 1, &device, None, none, &mut codes[0]));
        let queue = call!(clCreateCommandQueueWithProperties(
            context,
            device,
            std::ptr::null(),
            &mut codes[1]
        ));
        let buffer = call!(clCreateBuffer(context, 0, 64, none, &mut codes[2]));
        let (pattern, mut seen) = (0x1234_5678u32, [0u32; 16]);
        codes[3] = call!(clEnqueueFillBuffer(
            queue,
            buffer,
            (&raw const pattern).cast(),
            4,
            0,
            64,
            0,
            std::ptr::null(),
            null_mut()
        ));
        codes[4] = call!(clEnqueueReadBuffer(
            queue,
            buffer,
            sys::CL_TRUE,
            0,
            64,
            seen.as_mut_ptr().cast(),
            0,
            std::ptr::null(),
            null_mut()
        ));
        if codes != [0; 5] || seen != [pattern; 16] {
            self.wrong
                .push(format!("afterwards a new context does not work: {codes:?}"));
        }
        call!(clReleaseMemObject(buffer));
        call!(clReleaseCommandQueue(queue));
        call!(clReleaseContext(context));
    }
}
