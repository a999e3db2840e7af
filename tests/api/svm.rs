//! Shared virtual memory: allocation, commands on pointers, kernels that follow them.

mod commands;
mod objects;

use pumice_tests::sys::*;
use pumice_tests::{call, create, create_fails, fails, info_value, ok, Buffer, Event, Setup};
use std::ffi::c_void;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Software drivers have as much as they say; of a GPU it may be in use.
#[test]
fn the_largest_allocation() {
    let setup = Setup::new();
    let size = info_value!(
        cl_ulong,
        clGetDeviceInfo(setup.device),
        CL_DEVICE_MAX_MEM_ALLOC_SIZE
    );
    let kind = info_value!(
        cl_device_type,
        clGetDeviceInfo(setup.device),
        CL_DEVICE_TYPE
    );
    let pointer = call!(clSVMAlloc(setup.context.0, 0, size as usize, 0));
    assert!(!pointer.is_null() || kind == CL_DEVICE_TYPE_GPU);
    call!(clSVMFree(setup.context.0, pointer));
    assert!(call!(clSVMAlloc(setup.context.0, 0, size as usize + 1, 0)).is_null());
}

/// An allocation of 32-bit words.
struct Shared<'a> {
    setup: &'a Setup,
    pointer: *mut u32,
    words: usize,
}

impl<'a> Shared<'a> {
    fn new(setup: &'a Setup, words: usize) -> Self {
        Self::with(setup, words, CL_MEM_READ_WRITE)
    }

    fn with(setup: &'a Setup, words: usize, flags: cl_svm_mem_flags) -> Self {
        let pointer = call!(clSVMAlloc(setup.context.0, flags, words * 4, 0));
        assert!(!pointer.is_null());
        assert!((pointer as usize).is_multiple_of(128));
        Self {
            setup,
            pointer: pointer.cast(),
            words,
        }
    }

    fn at(&self, index: usize) -> *mut c_void {
        self.pointer.wrapping_add(index).cast()
    }

    #[expect(
        clippy::mut_from_ref,
        reason = "the memory is the device's, as mapped memory of any buffer"
    )]
    fn map(&self, flags: cl_map_flags) -> &mut [u32] {
        let queue = self.setup.queue.0;
        let size = self.words * 4;
        ok!(clEnqueueSVMMap(
            queue,
            CL_TRUE,
            flags,
            self.at(0),
            size,
            0,
            null(),
            null_mut()
        ));
        // SAFETY: mapped, and the tests do not use it while the device does.
        unsafe { std::slice::from_raw_parts_mut(self.pointer, self.words) }
    }

    fn unmap(&self) {
        ok!(clEnqueueSVMUnmap(
            self.setup.queue.0,
            self.at(0),
            0,
            null(),
            null_mut()
        ));
    }

    /// Its contents, through a map.
    fn read(&self) -> Vec<u32> {
        let words = self.map(CL_MAP_READ).to_vec();
        self.unmap();
        words
    }

    fn write(&self, words: &[u32]) {
        self.map(CL_MAP_WRITE_INVALIDATE_REGION)[..words.len()].copy_from_slice(words);
        self.unmap();
    }
}

impl Drop for Shared<'_> {
    fn drop(&mut self) {
        call!(clFinish(self.setup.queue.0));
        call!(clSVMFree(self.setup.context.0, self.at(0)));
    }
}

fn capabilities(setup: &Setup) -> u64 {
    info_value!(
        u64,
        clGetDeviceInfo(setup.device),
        CL_DEVICE_SVM_CAPABILITIES
    )
}

/// A setup, where the device has shared virtual memory.
fn setup() -> Option<Setup> {
    let setup = Setup::new();
    if capabilities(&setup) == 0 {
        pumice_tests::left_out("no shared virtual memory");
        return None;
    }
    Some(setup)
}

fn memcpy(setup: &Setup, blocking: bool, dst: *mut c_void, src: *const c_void, size: usize) {
    let queue = setup.queue.0;
    ok!(clEnqueueSVMMemcpy(
        queue,
        blocking.into(),
        dst,
        src,
        size,
        0,
        null(),
        null_mut()
    ));
}

#[test]
fn allocations_are_checked() {
    let Some(setup) = setup() else { return };
    let context = setup.context.0;
    let none = |flags, size, align| {
        let made = call!(clSVMAlloc(context, flags, size, align));
        call!(clSVMFree(context, made));
        made.is_null()
    };
    assert!(none(CL_MEM_READ_WRITE, 0, 0));
    assert!(none(CL_MEM_READ_WRITE | CL_MEM_READ_ONLY, 64, 0));
    assert!(none(CL_MEM_SVM_ATOMICS, 64, 0), "atomics need fine grain");
    assert!(none(CL_MEM_USE_HOST_PTR, 64, 0));
    assert!(none(CL_MEM_READ_WRITE, 64, 3));
    assert!(none(CL_MEM_READ_WRITE, 64, 1 << 31));
    assert!(none(CL_MEM_READ_WRITE, usize::MAX, 0));
    let largest = info_value!(
        u64,
        clGetDeviceInfo(setup.device),
        CL_DEVICE_MAX_MEM_ALLOC_SIZE
    );
    assert!(none(CL_MEM_READ_WRITE, largest as usize + 1, 0));
    let fine = capabilities(&setup) & CL_DEVICE_SVM_FINE_GRAIN_BUFFER != 0;
    assert_eq!(none(CL_MEM_SVM_FINE_GRAIN_BUFFER, 64, 0), !fine);
    let atomics = capabilities(&setup) & CL_DEVICE_SVM_ATOMICS != 0;
    let both = CL_MEM_SVM_FINE_GRAIN_BUFFER | CL_MEM_SVM_ATOMICS;
    assert_eq!(none(both, 64, 0), !atomics);
    for align in [1u32, 16, 64, 128, 4096] {
        let made = call!(clSVMAlloc(context, 0, 100, align));
        assert!((made as usize).is_multiple_of(align as usize) && !made.is_null());
        call!(clSVMFree(context, made));
    }
    call!(clSVMFree(context, null_mut()));
}

#[test]
fn arguments_point_anywhere_into_an_allocation() {
    let Some(setup) = setup() else { return };
    let kernel = setup.kernel_of(
        "kernel void f(global uint *p, constant uint *c, local uint *l, uint n)
         { l[0] = n; p[get_global_id(0)] = c[get_global_id(0)] + l[0]; }",
        "f",
    );
    let (a, b) = (Shared::new(&setup, 64), Shared::new(&setup, 64));
    a.write(&[7; 64]);
    b.write(&(0..64).collect::<Vec<u32>>());
    ok!(clSetKernelArgSVMPointer(kernel.0, 0, a.at(10)));
    ok!(clSetKernelArgSVMPointer(kernel.0, 1, b.at(3)));
    kernel.set_local(2, 4).set(3, 100u32);
    setup.run(&kernel, &[5], None);
    let mut expected = vec![7; 64];
    expected[10..15].copy_from_slice(&[103, 104, 105, 106, 107]);
    assert_eq!(a.read(), expected);
    fails!(
        CL_INVALID_ARG_INDEX,
        clSetKernelArgSVMPointer(kernel.0, 4, a.at(0))
    );
    fails!(
        CL_INVALID_ARG_VALUE,
        clSetKernelArgSVMPointer(kernel.0, 2, a.at(0))
    );
    fails!(
        CL_INVALID_ARG_VALUE,
        clSetKernelArgSVMPointer(kernel.0, 3, a.at(0))
    );
    ok!(clSetKernelArgSVMPointer(kernel.0, 0, null()));
}

#[test]
fn kernels_follow_pointers_in_memory() {
    let Some(setup) = setup() else { return };
    let source = "
        typedef struct node { uint value; global struct node *next; global uint *elsewhere; } node;
        kernel void walk(global node *first, global uint *sum)
        {
            for (global node *n = first; n; n = n->next) {
                *sum += n->value + *n->elsewhere;
                *n->elsewhere = 1000 + n->value;
            }
        }";
    let kernel = setup.kernel_of(source, "walk");
    let (nodes, far) = (Shared::new(&setup, 6 * 4), Shared::new(&setup, 16));
    let sum = setup.buffer_of(&[0u32]);
    far.write(&(0..16).map(|n| n * 10).collect::<Vec<u32>>());
    {
        // value, padding, next, elsewhere: six words a node
        let words = nodes.map(CL_MAP_WRITE);
        for (index, node) in words.chunks_mut(6).enumerate() {
            let next = if index == 3 {
                0
            } else {
                nodes.at((index + 1) * 6) as u64
            };
            let elsewhere = far.at(index * 2) as u64;
            node[0] = index as u32 + 1;
            for (place, address) in [(2, next), (4, elsewhere)] {
                node[place] = address as u32;
                node[place + 1] = (address >> 32) as u32;
            }
        }
        nodes.unmap();
    }
    ok!(clSetKernelArgSVMPointer(kernel.0, 0, nodes.at(0)));
    kernel.set_buffer(1, &sum);
    let reached = [far.at(5)];
    let (size, list) = (size_of_val(&reached), reached.as_ptr().cast());
    ok!(clSetKernelExecInfo(
        kernel.0,
        CL_KERNEL_EXEC_INFO_SVM_PTRS,
        size,
        list
    ));
    setup.enqueue(&kernel, &[1], None);
    // In order behind the kernel, without anything that names `far` as its argument.
    let mut words = [0u32; 16];
    memcpy(&setup, false, words.as_mut_ptr().cast(), far.at(0), 64);
    ok!(clFinish(setup.queue.0));
    assert_eq!(setup.read::<u32>(&sum, 1), [10 + 20 + 40 + 60]);
    let mut expected: Vec<u32> = (0..16).map(|n| n * 10).collect();
    for n in 0..4 {
        expected[n * 2] = 1001 + n as u32;
    }
    assert_eq!(words.as_slice(), expected);

    ok!(clSetKernelExecInfo(
        kernel.0,
        CL_KERNEL_EXEC_INFO_SVM_PTRS,
        0,
        null()
    ));
    fails!(
        CL_INVALID_VALUE,
        clSetKernelExecInfo(kernel.0, CL_KERNEL_EXEC_INFO_SVM_PTRS, 8, null())
    );
    fails!(
        CL_INVALID_VALUE,
        clSetKernelExecInfo(kernel.0, CL_KERNEL_EXEC_INFO_SVM_PTRS, 7, list)
    );
    fails!(
        CL_INVALID_VALUE,
        clSetKernelExecInfo(kernel.0, 0x1234, size, list)
    );
    let system = capabilities(&setup) & CL_DEVICE_SVM_FINE_GRAIN_SYSTEM != 0;
    let yes: cl_bool = CL_TRUE;
    let code = call!(clSetKernelExecInfo(
        kernel.0,
        CL_KERNEL_EXEC_INFO_SVM_FINE_GRAIN_SYSTEM,
        4,
        (&raw const yes).cast()
    ));
    assert_eq!(
        code,
        if system {
            CL_SUCCESS
        } else {
            CL_INVALID_OPERATION
        }
    );
}

#[test]
fn fine_grained_memory_needs_no_maps() {
    let setup = Setup::new();
    if capabilities(&setup) & CL_DEVICE_SVM_FINE_GRAIN_BUFFER == 0 {
        return pumice_tests::left_out("no fine-grained buffers");
    }
    let a = Shared::with(
        &setup,
        1024,
        CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER,
    );
    // SAFETY: the device is idle whenever this is used.
    let words = unsafe { std::slice::from_raw_parts_mut(a.pointer, 1024) };
    let kernel = setup.kernel_of(
        "kernel void f(global uint *p) { p[get_global_id(0)] = p[get_global_id(0)] * 3 + 1; }",
        "f",
    );
    ok!(clSetKernelArgSVMPointer(kernel.0, 0, a.at(0)));
    for round in 0..20u32 {
        for (index, word) in words.iter_mut().enumerate() {
            *word = index as u32 + round;
        }
        setup.run(&kernel, &[1024], None);
        assert!((0..)
            .zip(words.iter())
            .all(|(n, word)| *word == (n + round) * 3 + 1));
    }
}

#[test]
fn memory_of_the_system_is_shared_where_the_device_says_so() {
    let setup = Setup::new();
    if capabilities(&setup) & CL_DEVICE_SVM_FINE_GRAIN_SYSTEM == 0 {
        return pumice_tests::left_out("no fine-grained memory of the system");
    }
    let kernel = setup.kernel_of(
        "kernel void f(global uint *p, global uint *q) { q[get_global_id(0)] += p[get_global_id(0)] * 2; }",
        "f",
    );
    let source: Vec<u32> = (0..5000).collect();
    let mut target = vec![1u32; 5000];
    ok!(clSetKernelArgSVMPointer(
        kernel.0,
        0,
        source.as_ptr().cast()
    ));
    ok!(clSetKernelArgSVMPointer(
        kernel.0,
        1,
        target.as_mut_ptr().cast()
    ));
    let zeros = vec![0u32; 5000];
    let place: *mut c_void = target.as_mut_ptr().cast();
    // What the host copies and what the device computes keep their order.
    for _ in 0..10 {
        memcpy(&setup, false, place, zeros.as_ptr().cast(), 20000);
        setup.enqueue(&kernel, &[5000], None);
        setup.enqueue(&kernel, &[5000], None);
    }
    let mut copy = vec![0u32; 5000];
    memcpy(&setup, true, copy.as_mut_ptr().cast(), place, 20000);
    assert!((0..).zip(&copy).all(|(n, word)| *word == n * 4));
    assert_eq!(copy, target);
}

static GONE: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" fn gone(_context: cl_context, _data: *mut c_void) {
    GONE.fetch_add(1, Ordering::SeqCst);
}

#[test]
fn a_context_takes_forgotten_allocations_along() {
    let Some(setup) = setup() else { return };
    let device = setup.device;
    let context: cl_context = create!(clCreateContext(null(), 1, &device, None, null_mut()));
    ok!(clSetContextDestructorCallback(
        context,
        Some(gone),
        null_mut()
    ));
    assert!(!call!(clSVMAlloc(context, 0, 4096, 0)).is_null());
    assert!(!call!(clSVMAlloc(context, 0, 64, 0)).is_null());
    ok!(clReleaseContext(context));
    assert_eq!(GONE.load(Ordering::SeqCst), 1);
}
