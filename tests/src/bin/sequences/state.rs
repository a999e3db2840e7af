//! What a run has: objects by kind, each with the references that are the program's, memory of its own, and what numbers mean.

use opencl_sys as sys;
use pumice_tests::{call, code_name};
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::ptr::null_mut;

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
}

/// An object that lives: its handle, and the program's references.
#[derive(Debug, Clone, Copy)]
pub struct Object {
    /// Its handle.
    pub handle: *mut c_void,
    /// References that are to be given back.
    pub count: u32,
}

/// See the module.
pub struct State {
    /// The platform.
    pub platform: sys::cl_platform_id,
    /// The device.
    pub device: sys::cl_device_id,
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
    released: usize,
    memory: Vec<u64>,
    /// Calls that succeeded.
    pub good: u32,
    /// What must not be, in words.
    pub wrong: Vec<String>,
}

/// Errors that the specification names outside of an entry point's list: in what it says of its arguments.
const BESIDES: &str = "clCreateImage CL_INVALID_IMAGE_DESCRIPTOR";

/// Which errors an entry point may give.
fn listed(name: &str) -> impl Iterator<Item = &'static str> + '_ {
    let all = include_str!("../../../errors/specification.txt").lines();
    let all = all.chain(BESIDES.lines());
    all.filter_map(move |line| {
        let mut words = line.split(' ');
        (words.next() == Some(name)).then(|| words.next()).flatten()
    })
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
            objects: BTreeMap::new(),
            gone: Vec::new(),
            waiting: Vec::new(),
            maps: Vec::new(),
            shared: Vec::new(),
            context_of: BTreeMap::new(),
            released: 0,
            memory: vec![0; ROOM / 8],
            good: 0,
            wrong: Vec::new(),
        }
    }

    /// Memory for calls. What commands that are under way do with it nobody looks at.
    pub fn memory(&mut self) -> *mut c_void {
        self.memory.as_mut_ptr().cast()
    }

    /// The same with zeros at its beginning.
    pub fn zeros(&mut self) -> *mut c_void {
        self.memory[..1024].fill(0);
        self.memory()
    }

    /// Objects of a kind that live.
    pub fn all(&self, kind: Kind) -> &[Object] {
        self.objects.get(&kind).map_or(&[], Vec::as_slice)
    }

    /// A handle: mostly of an object of that kind, at times of another kind, of what is gone, or none.
    pub fn pick(&self, kind: Kind, number: u32) -> *mut c_void {
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

    /// What a call that returns a code gave.
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

    /// What a call that makes an object gave.
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
            self.gone.retain(|old| *old != handle);
            let list = self.objects.entry(kind).or_default();
            list.push(Object { handle, count: 1 });
        }
        good
    }

    /// What a command gave: its code, and its event if there is one.
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
        let list = self.objects.entry(kind).or_default();
        let Some(at) = list.iter().position(|object| object.handle == handle) else {
            return;
        };
        if more {
            list[at].count += 1;
            return;
        }
        list[at].count -= 1;
        if list[at].count == 0 {
            list.remove(at);
            self.released += usize::from(kind == Kind::Queue);
            self.shared.retain(|(.., context)| *context != handle);
            self.gone.push(handle);
            self.maps.retain(|map| !map.contains(&handle));
        }
    }

    /// How many queues the program has released.
    pub fn released_queues(&self) -> usize {
        self.released
    }

    /// References of the program to an object.
    pub fn references(&self, kind: Kind, handle: *mut c_void) -> u32 {
        let mut list = self.all(kind).iter();
        list.find(|object| object.handle == handle)
            .map_or(0, |object| object.count)
    }

    /// Before what waits: nothing may wait for the program.
    pub fn settle(&mut self) {
        for event in std::mem::take(&mut self.waiting) {
            let code = call!(clSetUserEventStatus(event, sys::CL_COMPLETE));
            if code != sys::CL_SUCCESS {
                self.wrong
                    .push(format!("an event that waits: {}", code_name(code)));
            }
        }
    }

    /// The references that objects tell of are the program's; afterwards all are given back, and a context that is made then works.
    pub fn end(mut self) -> Vec<String> {
        self.settle();
        macro_rules! kinds {
            ($($kind:ident $ask:ident $param:ident $release:ident;)*) => { $(
                for object in self.all(Kind::$kind).to_vec() {
                    let mut count = 0u32;
                    let place = (&raw mut count).cast();
                    let code = call!($ask(object.handle, sys::$param, 4, place, null_mut()));
                    if code != sys::CL_SUCCESS || count != object.count {
                        let what = stringify!($kind);
                        self.wrong.push(format!("{what}: {} and {count} references, not {}", code_name(code), object.count));
                    }
                }
            )* $(
                for object in self.all(Kind::$kind).to_vec() {
                    for _ in 0..object.count {
                        let code = call!($release(object.handle));
                        if code != sys::CL_SUCCESS {
                            self.wrong.push(format!("{}: {}", stringify!($release), code_name(code)));
                        }
                    }
                }
            )* };
        }
        for queue in self.all(Kind::Queue).to_vec() {
            let code = call!(clFinish(queue.handle));
            self.code("clFinish", code);
        }
        if self.released == 0 {
            for (start, _, context) in std::mem::take(&mut self.shared) {
                call!(clSVMFree(context, start));
            }
        }
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
        // Commands of queues that the program has released may be under way.
        std::mem::forget(self.memory);
        self.wrong
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
