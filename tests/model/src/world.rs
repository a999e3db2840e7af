//! What all programs of a process share: the context with its devices, what these can do, and the kernels.

use pumice_tests::sys::*;
use pumice_tests::{call, create, info_text, info_value, ok};
use std::collections::HashMap;
use std::ffi::{c_char, c_void, CStr, CString};
use std::ptr::{null, null_mut};

/// What programs may use, as the devices of the context have it in common.
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
        ];
        let flags = flags.map(|flag| if flag { "1" } else { "0" }).join(" ");
        format!("{} {} {flags}", self.devices, self.align)
    }

    /// From such a line.
    pub fn from_line(line: &str) -> Option<Self> {
        let numbers: Option<Vec<usize>> = line
            .split_whitespace()
            .map(|word| word.parse().ok())
            .collect();
        let &[devices, align, coarse, fine, system, host, device, shared, images] =
            numbers?.as_slice()
        else {
            return None;
        };
        Some(Self {
            devices,
            align,
            coarse: coarse == 1,
            fine: fine == 1,
            system: system == 1,
            usm: [host == 1, device == 1, shared == 1],
            images: images == 1,
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
    A_PUT(B_GET * 1664525u + add);
}
";

fn has(device: cl_device_id, extension: &str) -> bool {
    let all = info_text!(clGetDeviceInfo(device), CL_DEVICE_EXTENSIONS);
    all.split(' ').any(|name| name == extension)
}

/// What so many devices at most have in common, 0: all.
pub fn caps(most: usize) -> Caps {
    let (_, devices, context) = new_context(most);
    let caps = common(context, &devices);
    ok!(clReleaseContext(context));
    caps
}

fn new_context(most: usize) -> (cl_platform_id, Vec<cl_device_id>, cl_context) {
    let platform = pumice_tests::platform();
    let (all, mut count) = (CL_DEVICE_TYPE_ALL, 0);
    ok!(clGetDeviceIDs(platform, all, 0, null_mut(), &mut count));
    let mut devices = vec![null_mut(); count as usize];
    let list = devices.as_mut_ptr();
    ok!(clGetDeviceIDs(platform, all, count, list, null_mut()));
    if most > 0 {
        devices.truncate(most);
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
    let usm = all(&|device| has(device, "cl_intel_unified_shared_memory"));
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
    }
}

const NAMES: [&str; 9] = ["PP", "PN", "PI", "NP", "NN", "NI", "IP", "IN", "II"];

fn build(context: cl_context, devices: &[cl_device_id], images: bool) -> cl_program {
    let mut source = SIDES.to_owned();
    for name in NAMES.iter().filter(|name| images || !name.contains('I')) {
        let body = BODY.replace("NAME", name);
        let body = body.replace("A_", &format!("{}_", &name[..1]));
        source += &body.replace("B_", &format!("{}_", &name[1..]));
    }
    let (mut text, length): (*const c_char, _) = (source.as_ptr().cast(), source.len());
    let program = create!(clCreateProgramWithSource(context, 1, &mut text, &length));
    ok!(clBuildProgram(
        program,
        devices.len() as cl_uint,
        devices.as_ptr(),
        null(),
        None,
        null_mut()
    ));
    program
}

impl World {
    /// A context of so many devices at most, 0: of all.
    pub fn new(most: usize) -> Self {
        let (platform, devices, context) = new_context(most);
        let images = has_images(&devices);
        let program = build(context, &devices, images);
        let mut world = Self {
            platform,
            context,
            devices,
            program,
            kernels: HashMap::new(),
        };
        for name in NAMES
            .into_iter()
            .filter(|name| images || !name.contains('I'))
        {
            let kernel = world.new_kernel(name);
            world.kernels.insert(name, kernel);
        }
        world
    }

    /// A kernel of this name that nobody else uses.
    pub fn new_kernel(&self, name: &str) -> cl_kernel {
        let name = CString::new(name).unwrap_or_default();
        create!(clCreateKernel(self.program, name.as_ptr()))
    }

    /// The kernel of this name that all launches share.
    pub fn kernel(&self, name: &str) -> Option<cl_kernel> {
        self.kernels.get(name).copied()
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
        ok!(clReleaseProgram(self.program));
        ok!(clReleaseContext(self.context));
    }
}
