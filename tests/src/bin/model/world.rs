//! What all programs share: the context, its devices and what these can do, the kernel, functions of extensions.

use pumice_tests::sys::*;
use pumice_tests::{call, create, info_text, info_value, ok, platform};
use std::ffi::{c_void, CStr};
use std::ptr::{null, null_mut};

/// What the devices of the context have in common.
#[derive(Debug, Clone, Copy)]
pub struct Abilities {
    /// How many devices.
    pub devices: usize,
    /// Coarse-grained shared virtual memory.
    pub coarse: bool,
    /// Fine-grained shared virtual memory.
    pub fine: bool,
    /// Unified shared memory: of the host, of a device, of both.
    pub usm: [bool; 3],
    /// Images.
    pub images: bool,
    /// Alignment of sub-buffers in bytes.
    pub align: usize,
}

/// The context and all that programs use of it.
pub struct World {
    /// The context.
    pub context: cl_context,
    /// Its devices.
    pub devices: Vec<cl_device_id>,
    /// What they can do.
    pub abilities: Abilities,
    /// The kernel of [`crate::program::What::Kernel`].
    pub kernel: cl_kernel,
    /// An in-order queue on the first device, for what comes before and after programs.
    pub queue: cl_command_queue,
    platform: cl_platform_id,
}

const SOURCE: &CStr = c"
kernel void work(global uint *dst, global const uint *src, uint dst_at, uint src_at, uint add, uint spins, uint m, uint b) {
    uint x = get_global_id(0);
    uint a = x | 1u;
    for (uint i = 0; i < spins; i++) a = a * m + b;
    // m is odd, b is even: a is odd, which the compiler does not know.
    dst[dst_at + x] = src[src_at + x] * 1664525u + add + ((a & 1u) - 1u);
}
";

impl World {
    /// A context of so many devices, as far as there are so many.
    pub fn new(most: usize) -> Self {
        let platform = platform();
        let (all, mut count) = (CL_DEVICE_TYPE_ALL, 0);
        ok!(clGetDeviceIDs(platform, all, 0, null_mut(), &mut count));
        let mut devices = vec![null_mut(); count as usize];
        let list = devices.as_mut_ptr();
        ok!(clGetDeviceIDs(platform, all, count, list, null_mut()));
        devices.truncate(most);
        let context = create!(clCreateContext(
            null(),
            devices.len() as cl_uint,
            devices.as_ptr(),
            None,
            null_mut()
        ));
        let program = create!(clCreateProgramWithSource(
            context,
            1,
            &mut SOURCE.as_ptr(),
            null()
        ));
        ok!(clBuildProgram(
            program,
            0,
            null(),
            c"".as_ptr(),
            None,
            null_mut()
        ));
        let kernel = create!(clCreateKernel(program, c"work".as_ptr()));
        ok!(clReleaseProgram(program));
        let abilities = abilities(context, &devices);
        Self {
            context,
            abilities,
            kernel,
            queue: create!(clCreateCommandQueue(context, devices[0], 0)),
            devices,
            platform,
        }
    }

    /// A function of an extension.
    pub fn function<F: Copy>(&self, name: &CStr) -> F {
        let address = call!(clGetExtensionFunctionAddressForPlatform(
            self.platform,
            name.as_ptr()
        ));
        assert!(!address.is_null(), "{name:?}");
        assert_eq!(size_of::<F>(), size_of::<*mut c_void>());
        // SAFETY: the types of the headers are optional function pointers.
        unsafe { (&raw const address).cast::<F>().read() }
    }
}

fn abilities(context: cl_context, devices: &[cl_device_id]) -> Abilities {
    let extension = |name: &str| {
        devices.iter().all(|&device| {
            let names = info_text!(clGetDeviceInfo(device), CL_DEVICE_EXTENSIONS);
            names.split(' ').any(|known| known == name)
        })
    };
    let svm = |wanted: cl_bitfield, flags: cl_svm_mem_flags| {
        let has = |&device: &cl_device_id| {
            let bits = info_value!(
                cl_bitfield,
                clGetDeviceInfo(device),
                CL_DEVICE_SVM_CAPABILITIES
            );
            bits & wanted != 0
        };
        // Devices of one context need not have an address in common.
        devices.iter().all(has) && {
            let pointer = call!(clSVMAlloc(context, flags, 64, 0));
            call!(clSVMFree(context, pointer));
            !pointer.is_null()
        }
    };
    let usm = |param| {
        extension("cl_intel_unified_shared_memory")
            && devices
                .iter()
                .all(|&device| info_value!(cl_bitfield, clGetDeviceInfo(device), param) & 1 != 0)
    };
    let align = |&device: &cl_device_id| {
        let bits = info_value!(
            cl_uint,
            clGetDeviceInfo(device),
            CL_DEVICE_MEM_BASE_ADDR_ALIGN
        );
        bits as usize / 8
    };
    let images = |&device: &cl_device_id| {
        info_value!(cl_bool, clGetDeviceInfo(device), CL_DEVICE_IMAGE_SUPPORT) != 0
    };
    Abilities {
        devices: devices.len(),
        coarse: svm(CL_DEVICE_SVM_COARSE_GRAIN_BUFFER, CL_MEM_READ_WRITE),
        fine: svm(
            CL_DEVICE_SVM_FINE_GRAIN_BUFFER,
            CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER,
        ),
        usm: [
            usm(CL_DEVICE_HOST_MEM_CAPABILITIES_INTEL),
            usm(CL_DEVICE_DEVICE_MEM_CAPABILITIES_INTEL),
            usm(CL_DEVICE_SINGLE_DEVICE_SHARED_MEM_CAPABILITIES_INTEL),
        ],
        images: devices.iter().all(images),
        align: devices.iter().map(align).fold(4, usize::max),
    }
}
