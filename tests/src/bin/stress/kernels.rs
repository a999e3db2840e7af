//! The kernels, and what each does to the model.

use crate::world::World;
use pumice_tests::rng::Rng;
use pumice_tests::sys::*;
use pumice_tests::{call, code_name, create, info_text, ok};
use std::ffi::{c_void, CString};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

/// Programs that differ in a constant.
pub const VARIANTS: u32 = 6;

const SOURCE: &str = r#"
struct pair { uint a; uint b; };
kernel void mix(global uint *dst, uint to, const global uint *src, uint from, struct pair p)
{
    size_t i = get_global_id(0) - get_global_offset(0);
    dst[to + i] = dst[to + i] * p.a + src[from + i] * p.b + VARIANT;
}
kernel void sums(global uint *dst, uint to, const global uint *src, uint from, local uint *tmp)
{
    uint l = get_local_id(0), n = get_local_size(0);
    tmp[l] = src[from + get_global_id(0)] + VARIANT;
    barrier(CLK_LOCAL_MEM_FENCE);
    uint sum = 0;
    for (uint i = 0; i < n; i++) sum = sum * 3 + tmp[i];
    barrier(CLK_LOCAL_MEM_FENCE);
    tmp[n - 1 - l] = sum + l;
    barrier(CLK_LOCAL_MEM_FENCE);
    dst[to + get_global_id(0)] = tmp[l];
}
kernel void count(volatile global uint *dst, uint to, uint slots, const global uint *src, uint from)
{
    uint v = src[from + get_global_id(0)];
    atomic_add(&dst[to + v % slots], v + VARIANT);
}
#ifdef ROUND
constant uint number_of_round = ROUND;
kernel void say(uint number)
{
    printf("%u said %u of %s in %u\n", (uint)get_global_id(0), number, "stress", number_of_round);
}
#endif
#ifdef SVM
kernel void reach(global uint *dst, uint to, ulong address, struct pair p)
{
    size_t i = get_global_id(0) - get_global_offset(0);
    const global uint *src = (const global uint *)address;
    dst[to + i] = dst[to + i] * p.a + src[i] * p.b + VARIANT;
}
#endif
#ifdef IMAGES
#define PICTURE(NAME, TYPE, AT)                                                                  \
    kernel void paint_##NAME(write_only TYPE im, const global uint *src, uint from)              \
    {                                                                                            \
        int4 at = (int4)(get_global_id(0), get_global_id(1), get_global_id(2), 0);               \
        uint i = (at.z * get_global_size(1) + at.y) * get_global_size(0) + at.x;                 \
        if (i % 2) write_imageui(im, AT, (uint4)(src[from + i] * 5 + VARIANT));                  \
    }                                                                                            \
    kernel void look_##NAME(read_only TYPE im, global uint *dst, uint to)                        \
    {                                                                                            \
        int4 at = (int4)(get_global_id(0), get_global_id(1), get_global_id(2), 0);               \
        uint i = (at.z * get_global_size(1) + at.y) * get_global_size(0) + at.x;                 \
        dst[to + i] = read_imageui(im, AT).x * 3 + VARIANT;                                      \
    }
PICTURE(1, image1d_t, at.x)
PICTURE(1a, image1d_array_t, at.xy)
PICTURE(2, image2d_t, at.xy)
PICTURE(2a, image2d_array_t, at)
PICTURE(3, image3d_t, at)
#endif
"#;

/// A built program of one variant.
pub struct Program {
    id: cl_program,
    /// The constant.
    pub variant: u32,
}

// SAFETY: OpenCL handles may be used from every thread.
unsafe impl Send for Program {}
// SAFETY: as above.
unsafe impl Sync for Program {}

impl Drop for Program {
    fn drop(&mut self) {
        ok!(clReleaseProgram(self.id));
    }
}

/// Asynchronous builds that have not called back.
pub static BUILDS: AtomicUsize = AtomicUsize::new(0);

extern "C" fn built(_: cl_program, data: *mut c_void) {
    BUILDS.fetch_sub(1, Ordering::SeqCst);
    // SAFETY: the reference count that `Program::new` has given to this callback, which is called once.
    let done = unsafe { Arc::from_raw(data.cast_const().cast::<AtomicUsize>()) };
    done.store(1, Ordering::Release);
}

impl Program {
    /// Builds one, in one of several ways.
    pub fn new(world: &World, rng: &mut Rng) -> Arc<Self> {
        let variant = rng.below(VARIANTS as usize) as u32;
        let (mut text, length) = (SOURCE.as_ptr().cast(), SOURCE.len());
        let mut id = create!(clCreateProgramWithSource(
            world.context,
            1,
            &mut text,
            &length
        ));
        let images = if world.images { " -DIMAGES" } else { "" };
        let svm = if world.svm.is_empty() { "" } else { " -DSVM" };
        let round = match world.number {
            Some(number) => format!(" -DROUND={number}"),
            None => String::new(),
        };
        let options = format!("-cl-std=CL3.0 -DVARIANT={variant}{images}{svm}{round}");
        let options = CString::new(options).expect("options");
        let (devices, device) = (world.devices.len() as cl_uint, world.devices.as_ptr());
        let code = match rng.below(4) {
            0 => {
                let done = Arc::new(AtomicUsize::new(0));
                BUILDS.fetch_add(1, Ordering::SeqCst);
                let data = Arc::into_raw(done.clone()).cast_mut().cast();
                let code = call!(clBuildProgram(
                    id,
                    devices,
                    device,
                    options.as_ptr(),
                    Some(built),
                    data
                ));
                while done.load(Ordering::Acquire) == 0 {
                    std::thread::yield_now();
                }
                code
            }
            1 => {
                ok!(clCompileProgram(
                    id,
                    devices,
                    device,
                    options.as_ptr(),
                    0,
                    null(),
                    null_mut(),
                    None,
                    null_mut()
                ));
                let linked = create!(clLinkProgram(
                    world.context,
                    devices,
                    device,
                    null(),
                    1,
                    &id,
                    None,
                    null_mut()
                ));
                ok!(clReleaseProgram(id));
                id = linked;
                0
            }
            _ => call!(clBuildProgram(
                id,
                devices,
                device,
                options.as_ptr(),
                None,
                null_mut()
            )),
        };
        if code != 0 {
            for &device in &world.devices {
                let log = info_text!(clGetProgramBuildInfo(id, device), CL_PROGRAM_BUILD_LOG);
                eprintln!("{log}");
            }
            panic!("a build failed with {}", code_name(code));
        }
        Arc::new(Self { id, variant })
    }

    /// One of its kernels.
    pub fn kernel(self: &Arc<Self>, name: &str) -> Kernel {
        let name = CString::new(name).expect("a name");
        Kernel {
            id: create!(clCreateKernel(self.id, name.as_ptr())),
            variant: self.variant,
        }
    }
}

/// A kernel of one thread.
pub struct Kernel {
    /// The handle.
    pub id: cl_kernel,
    /// The constant of its program.
    pub variant: u32,
}

// SAFETY: OpenCL handles may be used from every thread.
unsafe impl Send for Kernel {}

impl Drop for Kernel {
    fn drop(&mut self) {
        ok!(clReleaseKernel(self.id));
    }
}

impl Kernel {
    /// Another with the same arguments.
    pub fn copy(&self) -> Self {
        Self {
            id: create!(clCloneKernel(self.id)),
            variant: self.variant,
        }
    }

    /// Sets an argument.
    pub fn set<T: Copy>(&self, index: cl_uint, value: T) -> &Self {
        ok!(clSetKernelArg(
            self.id,
            index,
            size_of::<T>(),
            (&raw const value).cast()
        ));
        self
    }

    /// Sets an argument that is a pointer.
    pub fn set_pointer(&self, index: cl_uint, address: usize) -> &Self {
        let pointer = address as *const c_void;
        ok!(clSetKernelArgSVMPointer(self.id, index, pointer));
        self
    }

    /// Adds an allocation that the kernel accesses without an argument.
    pub fn reaches(&self, address: usize) -> &Self {
        ok!(clSetKernelExecInfo(
            self.id,
            CL_KERNEL_EXEC_INFO_SVM_PTRS,
            size_of::<usize>(),
            (&raw const address).cast()
        ));
        self
    }

    /// Sets a local argument.
    pub fn set_local(&self, index: cl_uint, bytes: usize) -> &Self {
        ok!(clSetKernelArg(self.id, index, bytes, null()));
        self
    }
}

fn word(bytes: &[u8], index: usize) -> u32 {
    let at = index * 4;
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn set_word(bytes: &mut [u8], index: usize, value: u32) {
    bytes[index * 4..index * 4 + 4].copy_from_slice(&value.to_le_bytes());
}

/// Computes the result of `mix` and `reach`: `dst` and `src` are the ranges used.
pub fn mix(dst: &mut [u8], src: &[u8], a: u32, b: u32, variant: u32) {
    for i in 0..dst.len() / 4 {
        let value = word(dst, i)
            .wrapping_mul(a)
            .wrapping_add(word(src, i).wrapping_mul(b))
            .wrapping_add(variant);
        set_word(dst, i, value);
    }
}

/// Computes the result of `sums` with work-groups of `local`.
pub fn sums(dst: &mut [u8], src: &[u8], local: usize, variant: u32) {
    let total = src.len() / 4;
    for first in (0..total).step_by(local) {
        let n = local.min(total - first);
        let sum = (0..n).fold(0u32, |sum, i| {
            sum.wrapping_mul(3)
                .wrapping_add(word(src, first + i).wrapping_add(variant))
        });
        for l in 0..n {
            set_word(dst, first + n - 1 - l, sum.wrapping_add(l as u32));
        }
    }
}

/// Computes the result of `count`.
pub fn count(dst: &mut [u8], src: &[u8], variant: u32) {
    let slots = dst.len() / 4;
    for i in 0..src.len() / 4 {
        let value = word(src, i);
        let slot = value as usize % slots;
        let sum = word(dst, slot).wrapping_add(value.wrapping_add(variant));
        set_word(dst, slot, sum);
    }
}

/// Computes the result of the kernels that write images: `src` and `dst` are as many texels.
pub fn paint(dst: &mut [u8], src: &[u8], variant: u32) {
    for i in (1..dst.len() / 4).step_by(2) {
        let value = word(src, i).wrapping_mul(5).wrapping_add(variant);
        set_word(dst, i, value);
    }
}

/// Computes the result of the kernels that read images.
pub fn look(dst: &mut [u8], src: &[u8], variant: u32) {
    for i in 0..dst.len() / 4 {
        let value = word(src, i).wrapping_mul(3).wrapping_add(variant);
        set_word(dst, i, value);
    }
}
