//! The objects that calls are tried on: of all kinds, made once, with a check that a failed call
//! left them unchanged.

use pumice_spirv_tools::TargetEnv;
use pumice_tests::sys::*;
use pumice_tests::{call, create, info_value, ok, Buffer, Event, Kernel, Program, Queue, Setup};
use std::cell::{Cell, RefCell, UnsafeCell};
use std::ffi::c_void;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, Ordering};

const SOURCE: &str = "
kernel void plain(global int *p, int n, local int *l) { p[get_global_id(0)] = n; }
kernel __attribute__((reqd_work_group_size(4, 1, 1))) void four(global int *p) { p[get_global_id(0)] = 1; }
kernel void pictures(read_only image2d_t a, write_only image2d_t b, sampler_t s) {
    write_imageui(b, (int2)(0, 0), read_imageui(a, s, (int2)(0, 0)));
}
";

/// The contents of a place for results before a call.
const SENTINEL: u8 = 0xa5;

/// The objects.
pub struct World {
    pub s: Setup,
    /// The objects of another context of the same device.
    pub other: Setup,
    pub timed: Queue,
    /// 4096 bytes, and two parts of it that overlap.
    pub b: Buffer,
    pub part: Buffer,
    pub part2: Buffer,
    pub b2: Buffer,
    pub foreign: Buffer,
    pub host_read: Buffer,
    pub host_write: Buffer,
    pub host_none: Buffer,
    pub immutable: Buffer,
    /// 8 x 8, CL_RGBA, CL_UNSIGNED_INT8; the last but one in another format, the last of three dimensions.
    pub i: Buffer,
    pub i2: Buffer,
    pub i_foreign: Buffer,
    pub i_host_read: Buffer,
    pub i_host_write: Buffer,
    pub i_host_none: Buffer,
    pub i_immutable: Buffer,
    pub i_red: Buffer,
    pub i3: Buffer,
    pub i_read: Buffer,
    pub i_write: Buffer,
    pub sampler: cl_sampler,
    pub sampler_foreign: cl_sampler,
    pub program: Program,
    pub unbuilt: Program,
    pub kernel: Kernel,
    pub unset: Kernel,
    pub four: Kernel,
    pub pictures: Kernel,
    /// Built without -cl-kernel-arg-info.
    pub bare: Kernel,
    pub user: Event,
    pub user_foreign: Event,
    pub failed: Event,
    pub svm: *mut c_void,
    /// Only read, and only written, by kernels; a line of texels over `b2`.
    pub b_read: Buffer,
    pub b_write: Buffer,
    pub i_line: Buffer,
    pub pipe: Buffer,
    /// A program of the other context, not built.
    pub u_foreign: Program,
    pub compiled: Program,
    pub linked: Program,
    /// SPIR-V with a constant 7 that can be set.
    pub il: Program,
    /// Work-groups of it must have two sub-groups.
    pub two_sub_groups: Kernel,
    /// A kernel with at most 8 bytes of global, and of local memory.
    pub bounded: Kernel,
    /// Events of commands that have completed, in a queue that measures and in one that does not.
    pub measured: Event,
    pub unmeasured: Event,
    place: UnsafeCell<[u8; 4096]>,
    event: UnsafeCell<cl_event>,
    size: UnsafeCell<usize>,
    wrong: RefCell<Vec<String>>,
    probes: Cell<u32>,
    probe: Buffer,
}

/// The state that must not change: reference counts.
#[derive(PartialEq, Debug)]
pub struct Counts(Vec<u32>);

fn image(s: &Setup, flags: cl_mem_flags, order: cl_uint, depth: usize) -> Buffer {
    let format = cl_image_format {
        image_channel_order: order,
        image_channel_data_type: CL_UNSIGNED_INT8,
    };
    let desc = description(8, 8, depth);
    let data = [0u8; 1024];
    let data = if flags & CL_MEM_COPY_HOST_PTR == 0 {
        null_mut()
    } else {
        data.as_ptr().cast_mut().cast()
    };
    Buffer(create!(clCreateImage(
        s.context.0,
        flags,
        &format,
        &desc,
        data
    )))
}

/// An image of two or three dimensions.
pub fn description(width: usize, height: usize, depth: usize) -> cl_image_desc {
    // SAFETY: numbers and pointers, which may be zero.
    let mut desc: cl_image_desc = unsafe { std::mem::zeroed() };
    desc.image_type = if depth == 0 {
        CL_MEM_OBJECT_IMAGE2D
    } else {
        CL_MEM_OBJECT_IMAGE3D
    };
    (desc.image_width, desc.image_height, desc.image_depth) = (width, height, depth);
    desc
}

fn buffer(s: &Setup, flags: cl_mem_flags) -> Buffer {
    let data = [1u8; 4096];
    let data = data.as_ptr().cast_mut().cast();
    let flags = flags | CL_MEM_COPY_HOST_PTR;
    Buffer(create!(clCreateBuffer(s.context.0, flags, 4096, data)))
}

/// Texels in a row over a buffer.
fn line(s: &Setup, over: &Buffer) -> Buffer {
    let format = cl_image_format {
        image_channel_order: CL_RGBA,
        image_channel_data_type: CL_UNSIGNED_INT8,
    };
    let mut desc = description(8, 0, 0);
    desc.image_type = CL_MEM_OBJECT_IMAGE1D_BUFFER;
    desc.buffer = over.0;
    Buffer(create!(clCreateImage(
        s.context.0,
        0,
        &format,
        &desc,
        null_mut()
    )))
}

/// The event of a command that is complete.
fn marked(queue: &Queue) -> Event {
    let mut event = null_mut();
    ok!(clEnqueueMarkerWithWaitList(queue.0, 0, null(), &mut event));
    ok!(clWaitForEvents(1, &event));
    Event(event)
}

/// A program that is compiled, not linked.
fn compiled(s: &Setup, source: &str) -> Program {
    let program = s.program(source);
    ok!(clCompileProgram(
        program.0,
        0,
        null(),
        null(),
        0,
        null(),
        null_mut(),
        None,
        null_mut()
    ));
    program
}

fn with_il(s: &Setup, text: &str) -> Program {
    let words = pumice_spirv_tools::assemble(TargetEnv::Universal_1_4, text).expect("SPIR-V");
    Program(create!(clCreateProgramWithIL(
        s.context.0,
        words.as_ptr().cast(),
        size_of_val(words.as_slice())
    )))
}

const IL: &str = r#"
    OpCapability Addresses
    OpCapability Kernel
    OpCapability SubgroupDispatch
    OpMemoryModel Physical64 OpenCL
    OpEntryPoint Kernel %pair "pair"
    OpEntryPoint Kernel %bounded "bounded"
    OpExecutionMode %pair SubgroupsPerWorkgroup 2
    OpDecorate %value SpecId 7
    OpDecorate %first MaxByteOffset 8
    OpDecorate %second MaxByteOffset 8
    %u32 = OpTypeInt 32 0
    %void = OpTypeVoid
    %pointer = OpTypePointer CrossWorkgroup %u32
    %type = OpTypeFunction %void %pointer
    %local = OpTypePointer Workgroup %u32
    %bounded_type = OpTypeFunction %void %pointer %local
    %value = OpSpecConstant %u32 41
    %pair = OpFunction %void None %type
    %out = OpFunctionParameter %pointer
    %entry = OpLabel
    OpStore %out %value Aligned 4
    OpReturn
    OpFunctionEnd
    %bounded = OpFunction %void None %bounded_type
    %first = OpFunctionParameter %pointer
    %second = OpFunctionParameter %local
    %bounded_entry = OpLabel
    OpReturn
    OpFunctionEnd
"#;

impl World {
    pub fn new() -> Self {
        let (s, other) = (Setup::new(), Setup::new());
        let b = buffer(&s, 0);
        let part = |origin| {
            let region = cl_buffer_region { origin, size: 1024 };
            let region = (&raw const region).cast();
            let kind = CL_BUFFER_CREATE_TYPE_REGION;
            Buffer(create!(clCreateSubBuffer(b.0, 0, kind, region)))
        };
        let program = s
            .try_build(SOURCE, "-cl-kernel-arg-info")
            .unwrap_or_else(|log| panic!("{log}"));
        let kernel = s.kernel(&program, "plain");
        kernel.set_buffer(0, &b).set(1, 1i32).set_local(2, 4);
        let four = s.kernel(&program, "four");
        four.set_buffer(0, &b);
        let failed = Event::user(&s.context);
        failed.finish(-7);
        let immutable = CL_MEM_IMMUTABLE_EXT | CL_MEM_COPY_HOST_PTR;
        let timed = s.new_queue(CL_QUEUE_PROFILING_ENABLE);
        let b2 = buffer(&s, 0);
        let compiled = compiled(
            &s,
            "int value(int a) { return a; } kernel void k(global int *p) { *p = value(1); }",
        );
        let il = with_il(&s, IL);
        ok!(clBuildProgram(il.0, 0, null(), null(), None, null_mut()));
        let two_sub_groups = s.kernel(&il, "pair");
        two_sub_groups.set_buffer(0, &b);
        let bounded = s.kernel(&il, "bounded");
        let rgba = CL_RGBA;
        Self {
            b_read: buffer(&s, CL_MEM_READ_ONLY),
            b_write: buffer(&s, CL_MEM_WRITE_ONLY),
            i_line: line(&s, &b2),
            pipe: Buffer(create!(clCreatePipe(s.context.0, 0, 4, 16, null()))),
            u_foreign: other.program(SOURCE),
            linked: Program(create!(clLinkProgram(
                s.context.0,
                0,
                null(),
                null(),
                1,
                &compiled.0,
                None,
                null_mut()
            ))),
            compiled,
            il,
            two_sub_groups,
            bounded,
            measured: marked(&timed),
            unmeasured: marked(&s.queue),
            timed,
            part: part(0),
            part2: part(512),
            b2,
            foreign: buffer(&other, 0),
            host_read: buffer(&s, CL_MEM_HOST_READ_ONLY),
            host_write: buffer(&s, CL_MEM_HOST_WRITE_ONLY),
            host_none: buffer(&s, CL_MEM_HOST_NO_ACCESS),
            immutable: buffer(&s, CL_MEM_IMMUTABLE_EXT),
            i: image(&s, 0, rgba, 0),
            i2: image(&s, 0, rgba, 0),
            i_foreign: image(&other, 0, rgba, 0),
            i_host_read: image(&s, CL_MEM_HOST_READ_ONLY, rgba, 0),
            i_host_write: image(&s, CL_MEM_HOST_WRITE_ONLY, rgba, 0),
            i_host_none: image(&s, CL_MEM_HOST_NO_ACCESS, rgba, 0),
            i_immutable: image(&s, immutable, rgba, 0),
            i_red: image(&s, 0, CL_R, 0),
            i3: image(&s, 0, rgba, 4),
            i_read: image(&s, CL_MEM_READ_ONLY, rgba, 0),
            i_write: image(&s, CL_MEM_WRITE_ONLY, rgba, 0),
            sampler: create!(clCreateSampler(
                s.context.0,
                CL_FALSE,
                CL_ADDRESS_CLAMP,
                CL_FILTER_NEAREST
            )),
            sampler_foreign: create!(clCreateSampler(
                other.context.0,
                CL_FALSE,
                CL_ADDRESS_CLAMP,
                CL_FILTER_NEAREST
            )),
            unbuilt: s.program(SOURCE),
            unset: s.kernel(&program, "plain"),
            pictures: s.kernel(&program, "pictures"),
            bare: s.kernel_of("kernel void k(int n) {}", "k"),
            user: Event::user(&s.context),
            user_foreign: Event::user(&other.context),
            svm: call!(clSVMAlloc(s.context.0, CL_MEM_READ_WRITE, 4096, 0)),
            place: UnsafeCell::new([SENTINEL; 4096]),
            event: UnsafeCell::new(null_mut()),
            size: UnsafeCell::new(0x77),
            wrong: RefCell::default(),
            probes: Cell::new(0),
            probe: s.buffer(4),
            b,
            program,
            kernel,
            four,
            failed,
            other,
            s,
        }
    }

    /// A handle that is none, and one of another kind.
    pub fn bad(&self, call: impl Fn(*mut c_void) -> cl_int) -> Vec<cl_int> {
        vec![call(null_mut()), call(self.other_kind())]
    }

    /// A handle of a kind that no call takes beside others' (a user event); for events, see [`World::bad_event`].
    fn other_kind(&self) -> *mut c_void {
        self.user.0
    }

    /// As [`World::bad`], where an event is asked for.
    pub fn bad_event(&self, call: impl Fn(*mut c_void) -> cl_int) -> Vec<cl_int> {
        vec![call(null_mut()), call(self.b.0)]
    }

    /// Where results would go: must stay as it is.
    pub fn place(&self) -> *mut c_void {
        self.place.get().cast()
    }

    /// Where an event would go: must stay as it is.
    pub fn event(&self) -> *mut cl_event {
        self.event.get()
    }

    /// Where a size would go: must stay as it is.
    pub fn size(&self) -> *mut usize {
        self.size.get()
    }

    /// Whether the call before gave a size is left open by the specification.
    pub fn size_is_open(&self) {
        // SAFETY: no call runs, and nothing else refers to it.
        unsafe { *self.size.get() = 0x77 };
    }

    /// Notes that a call made an object, if it did.
    pub fn made(&self, made: bool) {
        if made {
            self.wrong.borrow_mut().push("made an object".into());
        }
    }

    /// Kernels may enqueue kernels.
    pub fn has_device_queues(&self) -> bool {
        let device = self.s.device;
        info_value!(u32, clGetDeviceInfo(device), CL_DEVICE_MAX_ON_DEVICE_QUEUES) > 0
    }

    /// A call on a kernel whose argument is a device queue, where there are such queues.
    pub fn if_queue_argument(&self, call: impl Fn(cl_kernel) -> cl_int) -> cl_int {
        if !self.has_device_queues() {
            return crate::table::NOT_HERE;
        }
        let source = "kernel void k(queue_t q, global int *p) { *p = 1; }";
        let program = self.s.try_build(source, "-cl-std=CL3.0");
        let program = program.unwrap_or_else(|log| panic!("{log}"));
        call(self.s.kernel(&program, "k").0)
    }

    /// A call on a program while it is being built.
    pub fn while_building(&self, call: impl Fn(cl_program) -> cl_int) -> cl_int {
        extern "C" fn built(_: cl_program, over: *mut c_void) {
            // SAFETY: what the call below gave, which waits for it.
            unsafe { &*over.cast::<AtomicBool>() }.store(true, Ordering::SeqCst);
        }
        // No cache knows it, so it takes a while.
        let now = std::time::SystemTime::now();
        let program = self
            .s
            .program(&format!("// {now:?}, {}\n{SOURCE}", std::process::id()));
        let over = AtomicBool::new(false);
        let data = (&raw const over).cast_mut().cast();
        ok!(clBuildProgram(
            program.0,
            0,
            null(),
            null(),
            Some(built),
            data
        ));
        let code = call(program.0);
        while !over.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
        code
    }

    /// A link that fails, which may leave a program for its log.
    pub fn unlinkable(&self) -> cl_int {
        let source = "int nowhere(int a); kernel void k(global int *p) { *p = nowhere(1); }";
        let (program, mut code) = (compiled(&self.s, source), 1);
        let made = Program(call!(clLinkProgram(
            self.s.context.0,
            0,
            null(),
            null(),
            1,
            &program.0,
            None,
            null_mut(),
            &mut code
        )));
        drop(made);
        code
    }

    /// Reference counts now.
    pub fn counts(&self) -> Counts {
        let mut all = Vec::new();
        macro_rules! count {
            ($ask:ident, $param:ident: $($object:expr),*) => { $( all.push(info_value!(u32, $ask($object), $param)); )* };
        }
        count!(clGetContextInfo, CL_CONTEXT_REFERENCE_COUNT: self.s.context.0, self.other.context.0);
        count!(clGetCommandQueueInfo, CL_QUEUE_REFERENCE_COUNT: self.s.queue.0, self.other.queue.0, self.timed.0);
        count!(clGetMemObjectInfo, CL_MEM_REFERENCE_COUNT: self.b.0, self.part.0, self.b2.0, self.foreign.0, self.i.0,
            self.i2.0, self.host_none.0, self.immutable.0);
        count!(clGetMemObjectInfo, CL_MEM_MAP_COUNT: self.b.0, self.i.0);
        count!(clGetSamplerInfo, CL_SAMPLER_REFERENCE_COUNT: self.sampler);
        count!(clGetProgramInfo, CL_PROGRAM_REFERENCE_COUNT: self.program.0, self.unbuilt.0);
        count!(clGetKernelInfo, CL_KERNEL_REFERENCE_COUNT: self.kernel.0, self.unset.0);
        count!(clGetEventInfo, CL_EVENT_REFERENCE_COUNT: self.user.0, self.failed.0, self.user_foreign.0);
        Counts(all)
    }

    /// Returns what is wrong after a call that failed.
    pub fn check(&self, before: &Counts) -> Vec<String> {
        let mut wrong = std::mem::take(&mut *self.wrong.borrow_mut());
        let after = self.counts();
        if after != *before {
            wrong.push(format!(
                "reference counts: {before:?} before, {after:?} after"
            ));
        }
        // SAFETY: no call runs, and nothing else refers to these.
        let (place, event, size) =
            unsafe { (&mut *self.place.get(), *self.event.get(), *self.size.get()) };
        if place.iter().any(|byte| *byte != SENTINEL) {
            wrong.push("wrote results".into());
            place.fill(SENTINEL);
        }
        if !event.is_null() {
            wrong.push("gave an event".into());
        }
        if size != 0x77 {
            wrong.push("gave a size".into());
        }
        // SAFETY: as above.
        unsafe {
            *self.event.get() = null_mut();
            *self.size.get() = 0x77;
        }
        self.next_command(&mut wrong);
        wrong
    }

    /// The queue goes on working, and the buffer holds what it held.
    fn next_command(&self, wrong: &mut Vec<String>) {
        let number = self.probes.get() + 1;
        self.probes.set(number);
        let pattern = (&raw const number).cast();
        let (q, n, e) = (self.s.queue.0, null(), null_mut());
        ok!(clEnqueueFillBuffer(
            q,
            self.probe.0,
            pattern,
            4,
            0,
            4,
            0,
            n,
            e
        ));
        if self.s.read::<u32>(&self.probe, 1) != [number] {
            wrong.push("the next command did nothing".into());
        }
        if self.s.read::<u8>(&self.b, 4096) != [1; 4096] {
            wrong.push("the buffer changed".into());
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.user.finish(CL_COMPLETE);
        self.user_foreign.finish(CL_COMPLETE);
        call!(clReleaseSampler(self.sampler));
        call!(clReleaseSampler(self.sampler_foreign));
        if !self.svm.is_null() {
            call!(clSVMFree(self.s.context.0, self.svm));
        }
    }
}
