//! Extensions whose allocations are addresses: cl_intel_unified_shared_memory, cl_ext_buffer_device_address.

use pumice_tests::sys::*;
use pumice_tests::{call, create_fails, ext, fails, info, info_value, ok, Buffer, Setup};
use std::ffi::c_void;
use std::ptr::{null, null_mut};

/// The kinds of allocation.
const KINDS: [u32; 3] = [
    CL_MEM_TYPE_HOST_INTEL,
    CL_MEM_TYPE_DEVICE_INTEL,
    CL_MEM_TYPE_SHARED_INTEL,
];

fn alloc(
    setup: &Setup,
    kind: u32,
    properties: &[u64],
    size: usize,
    align: u32,
) -> (*mut c_void, i32) {
    let mut code = 1;
    let (context, device) = (setup.context.0, setup.device);
    let list = if properties.is_empty() {
        null()
    } else {
        properties.as_ptr()
    };
    let made = match kind {
        CL_MEM_TYPE_HOST_INTEL => ext!(
            setup,
            clHostMemAllocINTEL: clHostMemAllocINTEL_t(context, list, size, align, &mut code)
        ),
        CL_MEM_TYPE_DEVICE_INTEL => ext!(
            setup,
            clDeviceMemAllocINTEL: clDeviceMemAllocINTEL_t(context, device, list, size, align, &mut code)
        ),
        _ => ext!(
            setup,
            clSharedMemAllocINTEL: clSharedMemAllocINTEL_t(context, device, list, size, align, &mut code)
        ),
    };
    assert_eq!(made.is_null(), code != 0);
    (made, code)
}

fn free(setup: &Setup, pointer: *mut c_void) -> i32 {
    ext!(setup, clMemFreeINTEL: clMemFreeINTEL_t(setup.context.0, pointer))
}

fn alloc_info<const N: usize>(setup: &Setup, pointer: *const c_void, param: u32) -> [u8; N] {
    let (mut bytes, mut size) = ([0u8; N], 0);
    let place = bytes.as_mut_ptr().cast();
    let code = ext!(
        setup,
        clGetMemAllocInfoINTEL: clGetMemAllocInfoINTEL_t(
            setup.context.0, pointer, param, N, place, &mut size
        )
    );
    assert_eq!((code, size), (0, N));
    bytes
}

fn memcpy(setup: &Setup, dst: *mut c_void, src: *const c_void, size: usize) {
    let queue = setup.queue.0;
    let code = ext!(
        setup,
        clEnqueueMemcpyINTEL: clEnqueueMemcpyINTEL_t(queue, 1, dst, src, size, 0, null(), null_mut())
    );
    assert_eq!(code, 0);
}

#[test]
fn unified_memory_of_each_kind() {
    let setup = Setup::new();
    if !setup.has_extension("cl_intel_unified_shared_memory") {
        return pumice_tests::left_out("no cl_intel_unified_shared_memory");
    }
    let caps = |param| info_value!(u64, clGetDeviceInfo(setup.device), param);
    assert!(caps(CL_DEVICE_HOST_MEM_CAPABILITIES_INTEL) & 1 != 0);
    assert!(caps(CL_DEVICE_DEVICE_MEM_CAPABILITIES_INTEL) & 1 != 0);
    assert!(caps(CL_DEVICE_SINGLE_DEVICE_SHARED_MEM_CAPABILITIES_INTEL) & 1 != 0);
    caps(CL_DEVICE_CROSS_DEVICE_SHARED_MEM_CAPABILITIES_INTEL);
    caps(CL_DEVICE_SHARED_SYSTEM_MEM_CAPABILITIES_INTEL);
    let kernel = setup.kernel_of(
        "kernel void f(global uint *p) { p[get_global_id(0)] += get_global_id(0); }",
        "f",
    );
    let queue = setup.queue.0;
    for kind in KINDS {
        let (pointer, code) = alloc(&setup, kind, &[], 4000, 64);
        assert_eq!(code, 0);
        assert!((pointer as usize).is_multiple_of(64));
        let middle = pointer.wrapping_byte_add(2000);
        assert_eq!(
            alloc_info(&setup, middle, CL_MEM_ALLOC_TYPE_INTEL),
            kind.to_ne_bytes()
        );
        let base = (pointer as usize).to_ne_bytes();
        assert_eq!(
            alloc_info(&setup, middle, CL_MEM_ALLOC_BASE_PTR_INTEL),
            base
        );
        assert_eq!(
            alloc_info(&setup, pointer, CL_MEM_ALLOC_SIZE_INTEL),
            4000usize.to_ne_bytes()
        );
        let device = if kind == CL_MEM_TYPE_HOST_INTEL {
            0
        } else {
            setup.device as usize
        };
        assert_eq!(
            alloc_info(&setup, pointer, CL_MEM_ALLOC_DEVICE_INTEL),
            device.to_ne_bytes()
        );
        let flags = CL_MEM_ALLOC_FLAGS_INTEL as u32;
        assert_eq!(alloc_info(&setup, pointer, flags), 0u64.to_ne_bytes());

        let three = 3u32;
        let pattern = (&raw const three).cast();
        let code = ext!(
            &setup,
            clEnqueueMemFillINTEL: clEnqueueMemFillINTEL_t(
                queue, pointer, pattern, 4, 4000, 0, null(), null_mut()
            )
        );
        assert_eq!(code, 0);
        let code = ext!(
            &setup,
            clEnqueueMigrateMemINTEL: clEnqueueMigrateMemINTEL_t(
                queue, pointer, 4000, 0, 0, null(), null_mut()
            )
        );
        assert_eq!(code, 0);
        let code = ext!(
            &setup,
            clEnqueueMemAdviseINTEL: clEnqueueMemAdviseINTEL_t(
                queue, pointer, 4000, 0, 0, null(), null_mut()
            )
        );
        assert_eq!(code, 0);
        let code = ext!(
            &setup,
            clSetKernelArgMemPointerINTEL: clSetKernelArgMemPointerINTEL_t(
                kernel.0, 0, pointer.wrapping_byte_add(400)
            )
        );
        assert_eq!(code, 0);
        setup.run(&kernel, &[900], None);
        let mut words = vec![0u32; 1000];
        memcpy(&setup, words.as_mut_ptr().cast(), pointer, 4000);
        assert!(words[..100].iter().all(|word| *word == 3));
        assert!((3..).zip(&words[100..]).all(|(n, word)| *word == n));
        if kind != CL_MEM_TYPE_DEVICE_INTEL {
            // SAFETY: the host's memory, and the device is done with it.
            let seen = unsafe { std::slice::from_raw_parts(pointer.cast::<u32>(), 1000) };
            assert_eq!(seen, words);
        }
        assert_eq!(free(&setup, middle), CL_INVALID_VALUE);
        setup.enqueue(&kernel, &[900], None);
        let blocking = ext!(
            &setup,
            clMemBlockingFreeINTEL: clMemBlockingFreeINTEL_t(setup.context.0, pointer)
        );
        assert_eq!(blocking, 0);
        let unknown = CL_MEM_TYPE_UNKNOWN_INTEL.to_ne_bytes();
        assert_eq!(
            alloc_info(&setup, pointer, CL_MEM_ALLOC_TYPE_INTEL),
            unknown
        );
    }
    assert_eq!(free(&setup, null_mut()), 0);
}

#[test]
fn unified_memory_is_checked() {
    let setup = Setup::new();
    if !setup.has_extension("cl_intel_unified_shared_memory") {
        return pumice_tests::left_out("no cl_intel_unified_shared_memory");
    }
    for kind in KINDS {
        let code = |properties: &[u64], size, align| {
            let (pointer, code) = alloc(&setup, kind, properties, size, align);
            assert_eq!(free(&setup, pointer), 0);
            code
        };
        assert_eq!(code(&[], 0, 0), CL_INVALID_BUFFER_SIZE);
        assert_eq!(code(&[], usize::MAX / 2, 0), CL_INVALID_BUFFER_SIZE);
        assert_eq!(code(&[], 64, 3), CL_INVALID_VALUE);
        assert_eq!(code(&[], 64, 1 << 20), CL_INVALID_VALUE);
        assert_eq!(code(&[0x1234, 1, 0], 64, 0), CL_INVALID_PROPERTY);
        assert_eq!(
            code(&[CL_MEM_ALLOC_FLAGS_INTEL, 1 << 20, 0], 64, 0),
            CL_INVALID_PROPERTY
        );
        let combined = CL_MEM_ALLOC_WRITE_COMBINED_INTEL;
        assert_eq!(code(&[CL_MEM_ALLOC_FLAGS_INTEL, combined, 0], 64, 0), 0);
        let placed = CL_MEM_ALLOC_INITIAL_PLACEMENT_DEVICE_INTEL;
        let shared = kind == CL_MEM_TYPE_SHARED_INTEL;
        let expected = if shared { 0 } else { CL_INVALID_PROPERTY };
        assert_eq!(
            code(&[CL_MEM_ALLOC_FLAGS_INTEL, placed, 0], 64, 0),
            expected
        );
        let both = placed | CL_MEM_ALLOC_INITIAL_PLACEMENT_HOST_INTEL;
        assert_eq!(
            code(&[CL_MEM_ALLOC_FLAGS_INTEL, both, 0], 64, 0),
            CL_INVALID_PROPERTY
        );
    }
    let svm = call!(clSVMAlloc(setup.context.0, 0, 64, 0));
    assert_eq!(free(&setup, svm), CL_INVALID_VALUE);
    call!(clSVMFree(setup.context.0, svm));
}

#[test]
fn unified_memory_through_pointers_in_memory() {
    let setup = Setup::new();
    if !setup.has_extension("cl_intel_unified_shared_memory") {
        return pumice_tests::left_out("no cl_intel_unified_shared_memory");
    }
    let kernel = setup.kernel_of(
        "kernel void f(global ulong *list) { *(global uint *)list[get_global_id(0)] = get_global_id(0) + 1; }",
        "f",
    );
    let made: Vec<_> = KINDS.map(|kind| alloc(&setup, kind, &[], 4, 0).0).to_vec();
    let addresses: Vec<u64> = made.iter().map(|pointer| *pointer as u64).collect();
    let list = setup.buffer_of(&addresses);
    kernel.set_buffer(0, &list);
    let on: cl_bool = CL_TRUE;
    for param in [
        CL_KERNEL_EXEC_INFO_INDIRECT_HOST_ACCESS_INTEL,
        CL_KERNEL_EXEC_INFO_INDIRECT_DEVICE_ACCESS_INTEL,
        CL_KERNEL_EXEC_INFO_INDIRECT_SHARED_ACCESS_INTEL,
    ] {
        ok!(clSetKernelExecInfo(
            kernel.0,
            param,
            4,
            (&raw const on).cast()
        ));
        fails!(
            CL_INVALID_VALUE,
            clSetKernelExecInfo(kernel.0, param, 2, (&raw const on).cast())
        );
    }
    let (size, place) = (size_of_val(made.as_slice()), made.as_ptr().cast());
    ok!(clSetKernelExecInfo(
        kernel.0,
        CL_KERNEL_EXEC_INFO_USM_PTRS_INTEL,
        size,
        place
    ));
    setup.enqueue(&kernel, &[3], None);
    for (index, pointer) in made.iter().enumerate() {
        let mut word = 0u32;
        memcpy(&setup, (&raw mut word).cast(), *pointer, 4);
        assert_eq!(word, index as u32 + 1);
        assert_eq!(free(&setup, *pointer), 0);
    }
}

fn addressed(setup: &Setup, size: usize) -> (Buffer, u64) {
    let properties = [CL_MEM_DEVICE_PRIVATE_ADDRESS_EXT, 1, 0];
    let buffer = Buffer(pumice_tests::create!(clCreateBufferWithProperties(
        setup.context.0,
        properties.as_ptr(),
        CL_MEM_READ_WRITE,
        size,
        null_mut()
    )));
    let address = info_value!(u64, clGetMemObjectInfo(buffer.0), CL_MEM_DEVICE_ADDRESS_EXT);
    assert_ne!(address, 0);
    (buffer, address)
}

#[test]
fn buffers_tell_their_device_addresses() {
    let setup = Setup::new();
    assert!(setup.has_extension("cl_ext_buffer_device_address"));
    let set = |kernel: cl_kernel, index, address| {
        ext!(
            &setup,
            clSetKernelArgDevicePointerEXT: clSetKernelArgDevicePointerEXT_t(kernel, index, address)
        )
    };
    let (a, at_a) = addressed(&setup, 4096);
    let (b, at_b) = addressed(&setup, 4096);
    let kernel = setup.kernel_of(
        "kernel void f(global uint *p, global ulong *q, local int *l)
         { uint i = get_global_id(0); p[i] = i; *(global uint *)q[i] = i + 100; }",
        "f",
    );
    setup.write(&a, &[0u32; 1024]);
    setup.write(&b, &[0u32; 1024]);
    let targets: Vec<u64> = (0..10).map(|n| at_b + n * 8).collect();
    let list = setup.buffer_of(&targets);
    assert_eq!(set(kernel.0, 0, at_a + 40), 0);
    kernel.set_buffer(1, &list).set_local(2, 4);
    let (size, place) = (size_of_val(&at_b), (&raw const at_b).cast());
    ok!(clSetKernelExecInfo(
        kernel.0,
        CL_KERNEL_EXEC_INFO_DEVICE_PTRS_EXT,
        size,
        place
    ));
    setup.enqueue(&kernel, &[10], None);
    let seen = setup.read::<u32>(&a, 30);
    let expected: Vec<u32> = (0..30)
        .map(|n: u32| if (10..20).contains(&n) { n - 10 } else { 0 })
        .collect();
    assert_eq!(seen, expected);
    let seen = setup.read::<u32>(&b, 20);
    assert!((0..)
        .zip(seen.chunks(2))
        .all(|(n, pair)| pair == [n + 100, 0]));
    assert_eq!(set(kernel.0, 0, 0), 0);
    assert_eq!(set(kernel.0, 2, at_a), CL_INVALID_ARG_INDEX);
    assert_eq!(set(kernel.0, 3, at_a), CL_INVALID_ARG_INDEX);
    assert_eq!(set(null_mut(), 0, at_a), CL_INVALID_KERNEL);

    let plain = setup.buffer(64);
    fails!(
        CL_INVALID_OPERATION,
        clGetMemObjectInfo(
            plain.0,
            CL_MEM_DEVICE_ADDRESS_EXT,
            8,
            null_mut(),
            null_mut()
        )
    );
    let listed = info!(clGetMemObjectInfo(a.0), CL_MEM_PROPERTIES);
    assert_eq!(listed.len(), 24);
    let twice = [
        CL_MEM_DEVICE_PRIVATE_ADDRESS_EXT,
        1,
        CL_MEM_DEVICE_PRIVATE_ADDRESS_EXT,
        1,
        0,
    ];
    let context = setup.context.0;
    create_fails!(
        CL_INVALID_PROPERTY,
        clCreateBufferWithProperties(context, twice.as_ptr(), 0, 64, null_mut())
    );
    create_fails!(
        CL_INVALID_PROPERTY,
        clCreateBufferWithProperties(context, [0x1234, 1, 0].as_ptr(), 0, 64, null_mut())
    );
}
