//! The objects that all programs of a process share: the context with its devices, their abilities,
//! and the kernels.

use crate::program::{Manner, MOST};
use pumice_tests::gate::{GATE, GATE_OPTIONS};
use pumice_tests::sys::*;
use pumice_tests::{call, create, info_text, info_value, ok};
use std::cell::OnceCell;
use std::collections::HashMap;
use std::ffi::{c_char, c_void, CStr, CString};
use std::ptr::{null, null_mut};

/// The abilities that the devices of the context have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Caps {
    /// Devices of the context.
    pub devices: usize,
    /// Alignment of sub-buffers.
    pub align: usize,
    /// Coarse-grained shared virtual memory.
    pub coarse: bool,
    /// Fine-grained shared virtual memory.
    pub fine: bool,
    /// Shared virtual memory of the system.
    pub system: bool,
    /// cl_intel_unified_shared_memory: of the host, of a device, of both.
    pub usm: [bool; 3],
    /// Images.
    pub images: bool,
    /// Kernels that wait for a flag: fine-grained memory with atomics.
    pub gates: bool,
    /// Devices that run native kernels, as bits.
    pub native: u128,
    /// Devices that run other commands beside a kernel that waits, as bits.
    pub beside: u128,
    /// Launches fail for want of memory.
    pub doomed: bool,
    /// Command buffers, with simultaneous use.
    pub replays: bool,
    /// Command buffers that are updated.
    pub mutable: bool,
    /// Command buffers of several queues.
    pub several: bool,
    /// Semaphores.
    pub semaphores: bool,
    /// Kernels that enqueue kernels.
    pub children: bool,
}

impl Caps {
    /// As numbers in one line.
    pub fn to_line(self) -> String {
        let flags = [
            self.coarse,
            self.fine,
            self.system,
            self.usm[0],
            self.usm[1],
            self.usm[2],
            self.images,
            self.gates,
            self.doomed,
            self.replays,
            self.mutable,
            self.several,
            self.semaphores,
            self.children,
        ];
        let flags = flags.map(|flag| if flag { "1" } else { "0" }).join(" ");
        let (devices, align) = (self.devices, self.align);
        format!("{devices} {align} {flags} {} {}", self.native, self.beside)
    }

    /// From such a line.
    pub fn from_line(line: &str) -> Option<Self> {
        let numbers: Option<Vec<u128>> = line
            .split_whitespace()
            .map(|word| word.parse().ok())
            .collect();
        let &[devices, align, coarse, fine, system, host, device, shared, images, gates, doomed, replays, mutable, several, semaphores, children, native, beside] =
            numbers?.as_slice()
        else {
            return None;
        };
        Some(Self {
            devices: devices as usize,
            align: align as usize,
            coarse: coarse == 1,
            fine: fine == 1,
            system: system == 1,
            usm: [host == 1, device == 1, shared == 1],
            images: images == 1,
            gates: gates == 1,
            native,
            beside,
            doomed: doomed == 1,
            replays: replays == 1,
            mutable: mutable == 1,
            several: several == 1,
            semaphores: semaphores == 1,
            children: children == 1,
        })
    }
}

/// The context, the devices, the kernels.
pub struct World {
    /// The platform.
    pub platform: cl_platform_id,
    /// The context.
    pub context: cl_context,
    /// Its devices.
    pub devices: Vec<cl_device_id>,
    program: cl_program,
    kernels: HashMap<&'static str, cl_kernel>,
    waiting: OnceCell<Waiting>,
    failing: OnceCell<Failing>,
    mannered: OnceCell<Mannered>,
    /// The devices are sub-devices, which go with the context.
    parts: bool,
}

/// A kernel that waits for a flag, and flags for it.
pub struct Waiting {
    program: cl_program,
    /// Its argument is a flag.
    pub kernel: cl_kernel,
    /// Flags, 64 bytes apart.
    pub flags: usize,
}

/// Kernels that print, or enqueue others.
pub struct Mannered {
    program: cl_program,
    kernels: HashMap<String, cl_kernel>,
    /// The queues of the devices for what kernels enqueue.
    queues: Vec<cl_command_queue>,
}

/// A kernel whose work-groups need more memory than there is.
pub struct Failing {
    program: cl_program,
    buffer: cl_mem,
    /// All its arguments are set.
    pub kernel: cl_kernel,
    /// Work-items of a group.
    pub group: usize,
}

/// A side of a kernel: a pointer, a number that becomes one, an image.
const SIDES: &str = "
#define P_DST global uint *d
#define P_PUT(v) d[dy + x + z] = v
#define P_SRC global const uint *s
#define P_GET s[sy + x + z]
#define N_DST ulong d
#define N_PUT(v) ((global uint *)d)[dy + x + z] = v
#define N_SRC ulong s
#define N_GET ((global const uint *)s)[sy + x + z]
#define I_DST write_only image2d_t d
#define I_PUT(v) write_imageui(d, (int2)((x + z) % dw, dy + x / dw), (uint4)(v, 0, 0, 1))
#define I_SRC read_only image2d_t s
#define I_GET read_imageui(s, (int2)((x + z) % sw, sy + x / sw)).x
";

/// Nothing is read or written before the loop is over: `z` is 0, and only it knows.
const BODY: &str = "
kernel void NAME(A_DST, uint dw, uint dy, B_SRC, uint sw, uint sy, uint add, uint n) {
    uint x = get_global_id(0), a = x;
    for (uint i = 0; i < n; i++) a = a * 1664525u + 1013904223u;
    uint z = (a == 0x12345u) & (n == 0xffffffffu);
    OPEN
    uint v = B_GET * 1664525u + add;
    A_PUT(v);
    PRINT
    CLOSE
}
";

/// As many work-items of a child kernel.
const OPEN: &str = "
    if (x == 0) enqueue_kernel(
        get_default_queue(), CLK_ENQUEUE_FLAGS_NO_WAIT, ndrange_1D(get_global_size(0)), ^{
    uint x = get_global_id(0);";

const PRINT: &str = "if (x == 0) printf(\"%u %u\\n\", add, v);";

fn has(device: cl_device_id, extension: &str) -> bool {
    let all = info_text!(clGetDeviceInfo(device), CL_DEVICE_EXTENSIONS);
    all.split(' ').any(|name| name == extension)
}

/// The devices of a context.
#[derive(Debug, Clone, Copy)]
pub struct Which {
    /// So many of the platform's at most, 0: all.
    pub most: usize,
    /// So many sub-devices of the first one, of a unit each, in place of it; 0: none.
    pub parts: usize,
}

/// Returns the abilities that the devices have in common.
pub fn caps(which: Which) -> Caps {
    let (_, devices, context) = new_context(which);
    let caps = common(context, &devices);
    ok!(clReleaseContext(context));
    release(which, &devices);
    caps
}

fn release(which: Which, devices: &[cl_device_id]) {
    for device in &devices[..which.parts.min(devices.len())] {
        ok!(clReleaseDevice(*device));
    }
}

/// Sub-devices of a unit each. Partitioned again and again, as a device may have few units.
fn parts(device: cl_device_id, count: usize) -> Vec<cl_device_id> {
    let mut list = Vec::new();
    let by = [
        CL_DEVICE_PARTITION_EQUALLY as cl_device_partition_property,
        1,
        0,
    ];
    while list.len() < count {
        let mut made = 0;
        ok!(clCreateSubDevices(
            device,
            by.as_ptr(),
            0,
            null_mut(),
            &mut made
        ));
        let mut some = vec![null_mut(); made as usize];
        let place = some.as_mut_ptr();
        ok!(clCreateSubDevices(
            device,
            by.as_ptr(),
            made,
            place,
            null_mut()
        ));
        list.extend(some);
    }
    for device in list.split_off(count) {
        ok!(clReleaseDevice(device));
    }
    list
}

fn new_context(which: Which) -> (cl_platform_id, Vec<cl_device_id>, cl_context) {
    let most = which.most;
    let platform = pumice_tests::platform();
    let (all, mut count) = (CL_DEVICE_TYPE_ALL, 0);
    ok!(clGetDeviceIDs(platform, all, 0, null_mut(), &mut count));
    let mut devices = vec![null_mut(); count as usize];
    let list = devices.as_mut_ptr();
    ok!(clGetDeviceIDs(platform, all, count, list, null_mut()));
    if most > 0 {
        devices.truncate(most);
    }
    if which.parts > 0 {
        let first = devices.remove(0);
        devices.splice(0..0, parts(first, which.parts));
    }
    let (count, list) = (devices.len() as cl_uint, devices.as_ptr());
    let context = create!(clCreateContext(null(), count, list, None, null_mut()));
    (platform, devices, context)
}

fn has_images(devices: &[cl_device_id]) -> bool {
    let param = CL_DEVICE_IMAGE_SUPPORT;
    let image = |&device: &cl_device_id| info_value!(cl_uint, clGetDeviceInfo(device), param) == 1;
    devices.iter().all(image)
}

fn common(context: cl_context, devices: &[cl_device_id]) -> Caps {
    let all = |holds: &dyn Fn(cl_device_id) -> bool| devices.iter().all(|device| holds(*device));
    let svm = |bit: cl_bitfield| {
        all(&|device| {
            let param = CL_DEVICE_SVM_CAPABILITIES;
            info_value!(cl_bitfield, clGetDeviceInfo(device), param) & bit != 0
        })
    };
    // Devices of one context need not have an address in common.
    let given = |flags: cl_svm_mem_flags| {
        let pointer = call!(clSVMAlloc(context, flags, 64, 0));
        call!(clSVMFree(context, pointer));
        !pointer.is_null()
    };
    let align = |&device: &cl_device_id| {
        let param = CL_DEVICE_MEM_BASE_ADDR_ALIGN;
        info_value!(cl_uint, clGetDeviceInfo(device), param) as usize / 8
    };
    let extension = |name: &str| all(&|device| has(device, name));
    let usm = extension("cl_intel_unified_shared_memory");
    let usm = [
        CL_DEVICE_HOST_MEM_CAPABILITIES_INTEL,
        CL_DEVICE_DEVICE_MEM_CAPABILITIES_INTEL,
        CL_DEVICE_SINGLE_DEVICE_SHARED_MEM_CAPABILITIES_INTEL,
    ]
    .map(|param| {
        usm && all(&|device| info_value!(cl_bitfield, clGetDeviceInfo(device), param) & 1 != 0)
    });
    Caps {
        devices: devices.len(),
        align: devices.iter().map(align).fold(4, usize::max),
        coarse: svm(CL_DEVICE_SVM_COARSE_GRAIN_BUFFER) && given(CL_MEM_READ_WRITE),
        fine: svm(CL_DEVICE_SVM_FINE_GRAIN_BUFFER)
            && given(CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER),
        system: svm(CL_DEVICE_SVM_FINE_GRAIN_SYSTEM),
        usm,
        images: has_images(devices),
        gates: svm(CL_DEVICE_SVM_ATOMICS) && given(FLAGS),
        native: bits(devices, runs_native_kernels),
        beside: bits(devices, |device| {
            let param = CL_DEVICE_MAX_COMPUTE_UNITS;
            let units = info_value!(cl_uint, clGetDeviceInfo(device), param);
            runs_native_kernels(device) && units > 1
        }),
        // Whose kernels have their private memory from the process.
        doomed: cfg!(target_os = "linux") && all(&runs_native_kernels),
        replays: extension("cl_khr_command_buffer"),
        mutable: extension("cl_khr_command_buffer_mutable_dispatch"),
        several: extension("cl_khr_command_buffer_multi_device"),
        semaphores: extension("cl_khr_semaphore"),
        children: all(&runs_children),
    }
}

const FLAGS: cl_svm_mem_flags =
    CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER | CL_MEM_SVM_ATOMICS;

/// The devices of which something holds, of the first 128.
fn bits(devices: &[cl_device_id], holds: impl Fn(cl_device_id) -> bool) -> u128 {
    let first = devices.iter().take(128).enumerate();
    first.fold(0, |set, (at, device)| {
        set | u128::from(holds(*device)) << at
    })
}

/// The CPU device does.
fn runs_native_kernels(device: cl_device_id) -> bool {
    let param = CL_DEVICE_EXECUTION_CAPABILITIES;
    info_value!(cl_bitfield, clGetDeviceInfo(device), param) & CL_EXEC_NATIVE_KERNEL != 0
}

/// Kernels enqueue others on it.
fn runs_children(device: cl_device_id) -> bool {
    let param = CL_DEVICE_DEVICE_ENQUEUE_CAPABILITIES;
    let bits = info_value!(cl_bitfield, clGetDeviceInfo(device), param);
    bits & CL_DEVICE_QUEUE_SUPPORTED != 0
}

const NAMES: [&str; 9] = ["PP", "PN", "PI", "NP", "NN", "NI", "IP", "IN", "II"];

fn build(context: cl_context, devices: &[cl_device_id], images: bool) -> cl_program {
    let names = NAMES.iter().filter(|name| images || !name.contains('I'));
    let bodies = names.map(|name| body(name, Manner::default()));
    let source = SIDES.to_owned() + &bodies.collect::<String>();
    built(context, devices, &source, c"")
}

/// The name of the kernel for sides in a manner.
fn kernel_name(sides: &str, manner: Manner) -> String {
    format!("{sides}{manner}").replace(' ', "_")
}

fn body(sides: &str, manner: Manner) -> String {
    let body = BODY.replace("A_", &format!("{}_", &sides[..1]));
    let body = body.replace("B_", &format!("{}_", &sides[1..]));
    let body = body.replace("NAME", &kernel_name(sides, manner));
    let part = |there: bool, text: &'static str| if there { text } else { "" };
    let body = body.replace("OPEN", part(manner.enqueues, OPEN));
    let body = body.replace("CLOSE", part(manner.enqueues, "});"));
    body.replace("PRINT", part(manner.prints, PRINT))
}

/// The sides and manners of the kernels that print, or enqueue others where the devices can.
fn manners(devices: &[cl_device_id]) -> impl Iterator<Item = (&'static str, Manner)> {
    let children = devices.iter().all(|&device| runs_children(device));
    let manner = |number: usize| Manner {
        prints: number & 1 == 1,
        enqueues: number & 2 == 2,
    };
    let count = if children { 4 } else { 2 };
    let names = NAMES.into_iter().filter(|name| !name.contains('I'));
    names.flat_map(move |name| (1..count).map(move |number| (name, manner(number))))
}

fn built(
    context: cl_context,
    devices: &[cl_device_id],
    source: &str,
    options: &CStr,
) -> cl_program {
    let (mut text, length): (*const c_char, _) = (source.as_ptr().cast(), source.len());
    let program = create!(clCreateProgramWithSource(context, 1, &mut text, &length));
    ok!(clBuildProgram(
        program,
        devices.len() as cl_uint,
        devices.as_ptr(),
        options.as_ptr(),
        None,
        null_mut()
    ));
    program
}

fn new_kernel(program: cl_program, name: &str) -> cl_kernel {
    let name = CString::new(name).unwrap_or_default();
    create!(clCreateKernel(program, name.as_ptr()))
}

const FAILING: &str = "kernel void large(global int *x) {
    int p[262144];
    for (int i = 0; i < 262144; i++) p[i] = i + get_local_id(0);
    barrier(CLK_GLOBAL_MEM_FENCE);
    int s = 0;
    for (int i = 0; i < 262144; i += 7) s += p[(i * x[0]) % 262144];
    barrier(CLK_GLOBAL_MEM_FENCE);
    x[get_global_id(0)] = s;
}";

impl World {
    /// A context of some devices.
    pub fn new(which: Which) -> Self {
        let (platform, devices, context) = new_context(which);
        let images = has_images(&devices);
        let program = build(context, &devices, images);
        let mut world = Self {
            platform,
            context,
            devices,
            program,
            kernels: HashMap::new(),
            waiting: OnceCell::new(),
            failing: OnceCell::new(),
            mannered: OnceCell::new(),
            parts: which.parts > 0,
        };
        for name in NAMES
            .into_iter()
            .filter(|name| images || !name.contains('I'))
        {
            let kernel = world.new_kernel(name, Manner::default());
            world.kernels.insert(name, kernel);
        }
        world
    }

    /// A kernel of this name that nobody else uses.
    pub fn new_kernel(&self, sides: &str, manner: Manner) -> cl_kernel {
        let program = match manner == Manner::default() {
            true => self.program,
            false => self.mannered().program,
        };
        new_kernel(program, &kernel_name(sides, manner))
    }

    /// The kernel of this name that all launches share.
    pub fn kernel(&self, sides: &str, manner: Manner) -> Option<cl_kernel> {
        match manner == Manner::default() {
            true => self.kernels.get(sides).copied(),
            false => (self.mannered().kernels)
                .get(&kernel_name(sides, manner))
                .copied(),
        }
    }

    /// The kernels that print, or enqueue others.
    pub fn mannered(&self) -> &Mannered {
        self.mannered.get_or_init(|| {
            let bodies = manners(&self.devices).map(|(sides, manner)| body(sides, manner));
            let source = SIDES.to_owned() + &bodies.collect::<String>();
            let program = built(self.context, &self.devices, &source, c"-cl-std=CL3.0");
            let names = manners(&self.devices).map(|(sides, manner)| kernel_name(sides, manner));
            let flags = CL_QUEUE_ON_DEVICE
                | CL_QUEUE_ON_DEVICE_DEFAULT
                | CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
            let list = [cl_queue_properties::from(CL_QUEUE_PROPERTIES), flags, 0];
            let (context, list) = (self.context, list.as_ptr());
            let devices = self.devices.iter().filter(|device| runs_children(**device));
            let queue =
                |&device: &_| create!(clCreateCommandQueueWithProperties(context, device, list));
            Mannered {
                program,
                kernels: names
                    .map(|name| (name.clone(), new_kernel(program, &name)))
                    .collect(),
                queues: devices.map(queue).collect(),
            }
        })
    }

    /// The kernel that waits for a flag. It has run on all devices.
    pub fn waiting(&self) -> &Waiting {
        self.waiting.get_or_init(|| {
            let options = CString::new(GATE_OPTIONS).unwrap_or_default();
            let program = built(self.context, &self.devices, GATE, &options);
            let kernel = create!(clCreateKernel(program, c"gate".as_ptr()));
            let flags = call!(clSVMAlloc(self.context, FLAGS, 64 * MOST, 0));
            assert!(!flags.is_null(), "memory for flags");
            // SAFETY: memory of that size, which nothing uses yet.
            unsafe { flags.cast::<u8>().write_bytes(0xff, 64 * MOST) };
            ok!(clSetKernelArgSVMPointer(kernel, 0, flags));
            self.run_everywhere(kernel, 1, 1);
            Waiting {
                program,
                kernel,
                flags: flags as usize,
            }
        })
    }

    /// The kernel that needs much memory. It has run on all devices in groups of one.
    pub fn failing(&self) -> &Failing {
        self.failing.get_or_init(|| {
            let program = built(self.context, &self.devices, FAILING, c"");
            let kernel = create!(clCreateKernel(program, c"large".as_ptr()));
            let (context, flags) = (self.context, CL_MEM_READ_WRITE);
            let buffer = create!(clCreateBuffer(context, flags, 1 << 16, null_mut()));
            let (size, value) = (size_of::<cl_mem>(), (&raw const buffer).cast());
            ok!(clSetKernelArg(kernel, 0, size, value));
            let of = |&device: &cl_device_id| {
                let param = CL_KERNEL_WORK_GROUP_SIZE;
                info_value!(usize, clGetKernelWorkGroupInfo(kernel, device), param)
            };
            let group = self.devices.iter().map(of).min().unwrap_or(1);
            self.run_everywhere(kernel, 1, 1);
            Failing {
                program,
                buffer,
                kernel,
                group,
            }
        })
    }

    fn run_everywhere(&self, kernel: cl_kernel, global: usize, local: usize) {
        for &device in &self.devices {
            let context = self.context;
            let queue = create!(clCreateCommandQueueWithProperties(context, device, null()));
            ok!(clEnqueueNDRangeKernel(
                queue,
                kernel,
                1,
                null(),
                &global,
                &local,
                0,
                null(),
                null_mut()
            ));
            ok!(clFinish(queue));
            ok!(clReleaseCommandQueue(queue));
        }
    }

    /// A function of an extension.
    pub fn function<F: Copy>(&self, name: &CStr) -> F {
        let address: *mut c_void = call!(clGetExtensionFunctionAddressForPlatform(
            self.platform,
            name.as_ptr()
        ));
        assert!(!address.is_null(), "{name:?}");
        assert_eq!(size_of::<F>(), size_of::<*mut c_void>());
        // SAFETY: the types of the headers are optional function pointers.
        unsafe { (&raw const address).cast::<F>().read() }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        for kernel in self.kernels.values() {
            ok!(clReleaseKernel(*kernel));
        }
        if let Some(waiting) = self.waiting.take() {
            ok!(clReleaseKernel(waiting.kernel));
            ok!(clReleaseProgram(waiting.program));
            call!(clSVMFree(self.context, waiting.flags as *mut c_void));
        }
        if let Some(failing) = self.failing.take() {
            ok!(clReleaseKernel(failing.kernel));
            ok!(clReleaseProgram(failing.program));
            ok!(clReleaseMemObject(failing.buffer));
        }
        if let Some(mannered) = self.mannered.take() {
            for kernel in mannered.kernels.into_values() {
                ok!(clReleaseKernel(kernel));
            }
            ok!(clReleaseProgram(mannered.program));
            for queue in mannered.queues {
                ok!(clReleaseCommandQueue(queue));
            }
        }
        ok!(clReleaseProgram(self.program));
        ok!(clReleaseContext(self.context));
        if self.parts {
            // Of devices that are no sub-devices nothing is released.
            for device in &self.devices {
                call!(clReleaseDevice(*device));
            }
        }
    }
}
