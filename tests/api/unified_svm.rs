//! cl_khr_unified_svm: types, allocations, what is known of a pointer, suggestions.

use pumice_tests::sys::*;
use pumice_tests::{call, ext, info, info_value, left_out, ok, Setup};
use std::ffi::c_void;
use std::ptr::{null, null_mut};

fn setup() -> Option<Setup> {
    let setup = Setup::new();
    if setup.has_extension("cl_khr_unified_svm") {
        return Some(setup);
    }
    left_out("no cl_khr_unified_svm");
    None
}

fn words(bytes: &[u8]) -> Vec<u64> {
    let words = bytes.as_chunks().0.iter();
    words.map(|word| u64::from_ne_bytes(*word)).collect()
}

/// The types of the platform, and the same of the device.
fn types(setup: &Setup) -> (Vec<u64>, Vec<u64>) {
    let platform = info_value!(
        cl_platform_id,
        clGetDeviceInfo(setup.device),
        CL_DEVICE_PLATFORM
    );
    let all = info!(
        clGetPlatformInfo(platform),
        CL_PLATFORM_SVM_TYPE_CAPABILITIES_KHR
    );
    let own = info!(
        clGetDeviceInfo(setup.device),
        CL_DEVICE_SVM_TYPE_CAPABILITIES_KHR
    );
    (words(&all), words(&own))
}

fn alloc(setup: &Setup, properties: &[u64], index: u32, size: usize) -> (*mut c_void, i32) {
    let mut code = 1;
    let list = match properties {
        [] => null(),
        list => list.as_ptr(),
    };
    let made = ext!(
        setup,
        clSVMAllocWithPropertiesKHR: clSVMAllocWithPropertiesKHR_t(
            setup.context.0, list, index, size, &mut code
        )
    );
    assert_eq!(made.is_null(), code != 0 || size == 0);
    (made, code)
}

fn free(setup: &Setup, properties: &[u64], flags: u64, pointer: *mut c_void) -> i32 {
    let list = properties.as_ptr();
    ext!(
        setup,
        clSVMFreeWithPropertiesKHR: clSVMFreeWithPropertiesKHR_t(
            setup.context.0, list, flags, pointer
        )
    )
}

fn pointer_info(
    setup: &Setup,
    device: cl_device_id,
    pointer: *const c_void,
    param: u32,
) -> Result<Vec<u8>, i32> {
    let (mut bytes, mut size) = ([0u8; 64], 0);
    let code = ext!(
        setup,
        clGetSVMPointerInfoKHR: clGetSVMPointerInfoKHR_t(
            setup.context.0, device, pointer, param, bytes.len(), bytes.as_mut_ptr().cast(), &mut size
        )
    );
    match code {
        CL_SUCCESS => Ok(bytes[..size].to_vec()),
        code => Err(code),
    }
}

fn suggested(setup: &Setup, required: u64, desired: u64, list: &[u64], size: usize) -> (u32, i32) {
    let mut index = 77;
    let list = if list.is_empty() {
        null()
    } else {
        list.as_ptr()
    };
    let code = ext!(
        setup,
        clGetSVMSuggestedTypeIndexKHR: clGetSVMSuggestedTypeIndexKHR_t(
            setup.context.0, required, desired, list, size, &mut index
        )
    );
    (index, code)
}

fn memcpy(setup: &Setup, dst: *mut c_void, src: *const c_void, size: usize) {
    let queue = setup.queue.0;
    ok!(clEnqueueSVMMemcpy(
        queue,
        1,
        dst,
        src,
        size,
        0,
        null(),
        null_mut()
    ));
}

#[test]
fn types_of_platform_and_device_agree() {
    let Some(setup) = setup() else { return };
    let (platform, device) = types(&setup);
    assert_eq!(platform.len(), device.len());
    assert!(
        device.iter().filter(|bits| **bits != 0).count() >= 5,
        "{device:x?}"
    );
    for (all, own) in platform.iter().zip(&device) {
        assert!(
            *all != 0 && (*own == 0 || all & own == *all),
            "{all:x} {own:x}"
        );
    }
    let svm = info_value!(
        u64,
        clGetDeviceInfo(setup.device),
        CL_DEVICE_SVM_CAPABILITIES
    );
    let has = |of: u64| device.iter().any(|bits| bits & of == of);
    assert!(has(CL_SVM_TYPE_MACRO_COARSE_GRAIN_BUFFER_KHR));
    assert!(has(CL_SVM_TYPE_MACRO_FINE_GRAIN_BUFFER_KHR));
    assert!(has(CL_SVM_TYPE_MACRO_DEVICE_KHR));
    assert!(has(CL_SVM_TYPE_MACRO_HOST_KHR));
    assert!(has(CL_SVM_TYPE_MACRO_SINGLE_DEVICE_SHARED_KHR));
    assert_eq!(
        has(CL_SVM_CAPABILITY_SYSTEM_ALLOCATED_KHR),
        svm & CL_DEVICE_SVM_FINE_GRAIN_SYSTEM != 0
    );
}

/// Memory of each type is used as its capabilities say, and its pointers tell what it is.
#[test]
fn memory_of_every_type() {
    const COUNT: usize = 1000;
    let Some(setup) = setup() else { return };
    let direct = "kernel void f(global uint *p) { p[get_global_id(0)] += get_global_id(0); }";
    let direct = setup.kernel_of(direct, "f");
    let through = "struct s { global uint *p; };
        kernel void f(global struct s *s) { s->p[get_global_id(0)] *= 2; }";
    let through = setup.kernel_of(through, "f");
    let (platform, device) = types(&setup);
    for (index, bits) in device
        .into_iter()
        .enumerate()
        .filter(|(_, bits)| *bits != 0)
    {
        let has = |bit| bits & bit != 0;
        let access = CL_SVM_ALLOC_ACCESS_DEVICE_NOREAD_KHR;
        let list = [
            CL_SVM_ALLOC_ALIGNMENT_KHR,
            4096,
            CL_SVM_ALLOC_ACCESS_FLAGS_KHR,
            access,
            CL_SVM_ALLOC_ASSOCIATED_DEVICE_HANDLE_KHR,
            setup.device as u64,
            0,
        ];
        let (pointer, code) = alloc(&setup, &list, index as u32, 4 * COUNT);
        assert_eq!((code, pointer as usize % 4096), (0, 0), "type {index}");
        let middle = pointer.wrapping_byte_add(1000);
        let answer =
            |device, param| pointer_info(&setup, device, middle, param).expect("an answer");
        for asked in [setup.device, null_mut()] {
            let number = (index as u32).to_ne_bytes();
            assert_eq!(answer(asked, CL_SVM_INFO_TYPE_INDEX_KHR), number);
            let base = (pointer as usize).to_ne_bytes();
            assert_eq!(answer(asked, CL_SVM_INFO_BASE_PTR_KHR), base);
            assert_eq!(
                answer(asked, CL_SVM_INFO_SIZE_KHR),
                (4 * COUNT).to_ne_bytes()
            );
            assert_eq!(
                answer(asked, CL_SVM_INFO_ACCESS_FLAGS_KHR),
                access.to_ne_bytes()
            );
            assert_eq!(words(&answer(asked, CL_SVM_INFO_PROPERTIES_KHR)), list);
            let device = (setup.device as usize).to_ne_bytes();
            assert_eq!(
                answer(asked, CL_SVM_INFO_ASSOCIATED_DEVICE_HANDLE_KHR),
                device
            );
        }
        let can = words(&answer(setup.device, CL_SVM_INFO_CAPABILITIES_KHR))[0];
        assert_eq!(can, bits);
        let all = words(&answer(null_mut(), CL_SVM_INFO_CAPABILITIES_KHR))[0];
        assert_eq!(all & platform[index], platform[index]);

        let mut values: Vec<u32> = (5..5 + COUNT as u32).collect();
        memcpy(&setup, pointer, values.as_ptr().cast(), 4 * COUNT);
        ok!(clSetKernelArgSVMPointer(direct.0, 0, pointer));
        setup.run(&direct, &[COUNT], None);
        for (id, value) in values.iter_mut().enumerate() {
            *value += id as u32;
        }
        if has(CL_SVM_CAPABILITY_INDIRECT_ACCESS_KHR) {
            let on: cl_bool = 1;
            ok!(clSetKernelExecInfo(
                through.0,
                CL_KERNEL_EXEC_INFO_SVM_INDIRECT_ACCESS_KHR,
                size_of::<cl_bool>(),
                (&raw const on).cast()
            ));
        } else {
            ok!(clSetKernelExecInfo(
                through.0,
                CL_KERNEL_EXEC_INFO_SVM_PTRS,
                size_of::<*mut c_void>(),
                (&raw const pointer).cast()
            ));
        }
        let place = setup.buffer_of(&[pointer as usize]);
        through.set_buffer(0, &place);
        setup.run(&through, &[COUNT], None);
        values.iter_mut().for_each(|value| *value *= 2);
        if has(CL_SVM_CAPABILITY_HOST_READ_KHR) && has(CL_SVM_CAPABILITY_HOST_WRITE_KHR) {
            // SAFETY: the host may use memory of this type, and nothing else does now.
            let own = unsafe { std::slice::from_raw_parts_mut(pointer.cast::<u32>(), COUNT) };
            assert_eq!(own, values, "type {index}");
            own[7] = 1;
            values[7] = 1;
        }
        if has(CL_SVM_CAPABILITY_HOST_MAP_KHR) {
            let queue = setup.queue.0;
            let (flags, none) = (CL_MAP_READ | CL_MAP_WRITE, null_mut());
            ok!(clEnqueueSVMMap(
                queue,
                1,
                flags,
                pointer,
                4 * COUNT,
                0,
                null(),
                none
            ));
            // SAFETY: mapped.
            let own = unsafe { std::slice::from_raw_parts_mut(pointer.cast::<u32>(), COUNT) };
            assert_eq!(own, values, "type {index}");
            own[9] = 3;
            values[9] = 3;
            ok!(clEnqueueSVMUnmap(queue, pointer, 0, null(), none));
        }
        let mut read = vec![0u32; COUNT];
        memcpy(&setup, read.as_mut_ptr().cast(), pointer, 4 * COUNT);
        assert_eq!(read, values, "type {index}");
        assert_eq!(free(&setup, &[0], 0, pointer), CL_SUCCESS);
        let gone = pointer_info(&setup, null_mut(), pointer, CL_SVM_INFO_TYPE_INDEX_KHR);
        assert_eq!(gone, Ok(u32::MAX.to_ne_bytes().to_vec()));
    }
}

/// Allocations of clSVMAlloc have a type too; other pointers have none.
#[test]
fn pointers_of_other_functions() {
    let Some(setup) = setup() else { return };
    let (platform, _) = types(&setup);
    let coarse = platform
        .iter()
        .position(|bits| *bits == CL_SVM_TYPE_MACRO_COARSE_GRAIN_BUFFER_KHR)
        .expect("a type") as u32;
    let pointer = call!(clSVMAlloc(setup.context.0, CL_MEM_READ_WRITE, 100, 0));
    let answer = |pointer, param| pointer_info(&setup, setup.device, pointer, param);
    assert_eq!(
        answer(pointer, CL_SVM_INFO_TYPE_INDEX_KHR),
        Ok(coarse.to_ne_bytes().to_vec())
    );
    assert_eq!(answer(pointer, CL_SVM_INFO_PROPERTIES_KHR), Ok(Vec::new()));
    assert_eq!(free(&setup, &[0], 0, pointer), CL_SUCCESS);
    let own = 5u64;
    let own: *const c_void = (&raw const own).cast();
    for (param, bytes) in [
        (CL_SVM_INFO_TYPE_INDEX_KHR, vec![255; 4]),
        (CL_SVM_INFO_CAPABILITIES_KHR, vec![0; 8]),
        (CL_SVM_INFO_PROPERTIES_KHR, Vec::new()),
        (CL_SVM_INFO_ACCESS_FLAGS_KHR, vec![0; 8]),
        (CL_SVM_INFO_BASE_PTR_KHR, vec![0; 8]),
        (CL_SVM_INFO_SIZE_KHR, vec![0; 8]),
        (CL_SVM_INFO_ASSOCIATED_DEVICE_HANDLE_KHR, vec![0; 8]),
    ] {
        assert_eq!(answer(own, param), Ok(bytes), "{param:#x}");
    }
}

#[test]
fn suggestions() {
    let Some(setup) = setup() else { return };
    let (_, device) = types(&setup);
    let associated = [
        CL_SVM_ALLOC_ASSOCIATED_DEVICE_HANDLE_KHR,
        setup.device as u64,
        0,
    ];
    for list in [&[][..], &associated] {
        for (index, bits) in device.iter().enumerate().filter(|(_, bits)| **bits != 0) {
            let (found, code) = suggested(&setup, *bits, 0, list, 4096);
            assert_eq!(code, CL_SUCCESS);
            let found = device[found as usize];
            assert_eq!(found & bits, *bits, "type {index}");
        }
        let system = CL_SVM_CAPABILITY_SYSTEM_ALLOCATED_KHR;
        for desired in [
            CL_SVM_CAPABILITY_HOST_OWNED_KHR,
            CL_SVM_CAPABILITY_DEVICE_OWNED_KHR,
            CL_SVM_CAPABILITY_HOST_MAP_KHR,
            CL_SVM_CAPABILITY_CONCURRENT_ACCESS_KHR | system,
        ] {
            let required = CL_SVM_CAPABILITY_DEVICE_READ_KHR;
            let (found, code) = suggested(&setup, required, desired, list, 4096);
            assert_eq!(code, CL_SUCCESS);
            let found = device[found as usize];
            let most = device.iter().filter(|bits| **bits & system == 0);
            let most = most.map(|bits| (bits & desired).count_ones()).max();
            assert_eq!(Some((found & desired).count_ones()), most);
            assert_eq!(found & system, 0);
        }
        // No type is both.
        let both = CL_SVM_CAPABILITY_HOST_OWNED_KHR | CL_SVM_CAPABILITY_DEVICE_OWNED_KHR;
        assert_eq!(suggested(&setup, both, 0, list, 1), (u32::MAX, CL_SUCCESS));
        assert_eq!(
            suggested(&setup, 1 << 40, 0, list, 1),
            (u32::MAX, CL_SUCCESS)
        );
        assert_eq!(
            suggested(&setup, 0, 0, list, usize::MAX),
            (u32::MAX, CL_SUCCESS)
        );
    }
}

#[test]
fn wrong_use() {
    let Some(setup) = setup() else { return };
    let (platform, device) = types(&setup);
    let number = |of: u64| {
        device
            .iter()
            .position(|bits| bits & of == of)
            .expect("a type") as u32
    };
    let (host, own) = (
        number(CL_SVM_TYPE_MACRO_HOST_KHR),
        number(CL_SVM_TYPE_MACRO_DEVICE_KHR),
    );
    let error = |properties: &[u64], index, size| alloc(&setup, properties, index, size).1;
    assert_eq!(error(&[], platform.len() as u32, 4), CL_INVALID_VALUE);
    assert_eq!(error(&[], own, 4), CL_INVALID_DEVICE);
    assert_eq!(error(&[], host, usize::MAX / 2), CL_INVALID_BUFFER_SIZE);
    let handle = CL_SVM_ALLOC_ASSOCIATED_DEVICE_HANDLE_KHR;
    assert_eq!(error(&[handle, 8, 0], own, 4), CL_INVALID_DEVICE);
    for list in [
        [CL_SVM_ALLOC_ALIGNMENT_KHR, 3, 0, 0, 0],
        [CL_SVM_ALLOC_ACCESS_FLAGS_KHR, 1 << 30, 0, 0, 0],
        [0x7777, 1, 0, 0, 0],
        [
            CL_SVM_ALLOC_ALIGNMENT_KHR,
            4,
            CL_SVM_ALLOC_ALIGNMENT_KHR,
            4,
            0,
        ],
    ] {
        assert_eq!(error(&list, host, 4), CL_INVALID_PROPERTY, "{list:x?}");
        let (_, code) = suggested(&setup, 0, 0, &list, 4);
        assert_eq!(code, CL_INVALID_PROPERTY);
    }
    let (pointer, code) = alloc(&setup, &[0], host, 64);
    assert_eq!(code, CL_SUCCESS);
    assert_eq!(free(&setup, &[1, 1, 0], 0, pointer), CL_INVALID_PROPERTY);
    assert_eq!(free(&setup, &[0], 1, pointer), CL_INVALID_VALUE);
    let inside = pointer.wrapping_byte_add(4);
    assert_eq!(free(&setup, &[0], 0, inside), CL_INVALID_VALUE);
    assert_eq!(
        pointer_info(&setup, null_mut(), pointer, 1),
        Err(CL_INVALID_VALUE)
    );
    let none = 8 as cl_device_id;
    let answer = pointer_info(&setup, none, pointer, CL_SVM_INFO_SIZE_KHR);
    assert_eq!(answer, Err(CL_INVALID_DEVICE));
    assert_eq!(free(&setup, &[0], 0, pointer), CL_SUCCESS);
    assert_eq!(free(&setup, &[0], 0, null_mut()), CL_SUCCESS);
}

/// Commands on empty ranges do nothing, wherever these are.
#[test]
fn empty_ranges() {
    let Some(setup) = setup() else { return };
    let queue = setup.queue.0;
    let associated = [
        CL_SVM_ALLOC_ASSOCIATED_DEVICE_HANDLE_KHR,
        setup.device as u64,
        0,
    ];
    let (pointer, code) = alloc(&setup, &associated, 0, 0);
    assert_eq!((pointer.is_null(), code), (true, CL_SUCCESS));
    let mut value = 5u32;
    let place: *mut c_void = (&raw mut value).cast();
    let (no, none) = (null(), null_mut());
    for nowhere in [null_mut(), 0xdead_beef_0000usize as *mut c_void] {
        ok!(clEnqueueSVMMemcpy(queue, 1, nowhere, place, 0, 0, no, none));
        ok!(clEnqueueSVMMemcpy(queue, 1, place, nowhere, 0, 0, no, none));
        ok!(clEnqueueSVMMemFill(
            queue, nowhere, place, 4, 0, 0, no, none
        ));
        let (mut list, sizes) = ([nowhere.cast_const()], [0]);
        let list = list.as_mut_ptr();
        ok!(clEnqueueSVMMigrateMem(
            queue,
            1,
            list,
            sizes.as_ptr(),
            0,
            0,
            no,
            none
        ));
        ok!(clEnqueueSVMMigrateMem(
            queue,
            1,
            list,
            null(),
            0,
            0,
            no,
            none
        ));
    }
    assert_eq!(value, 5);
}
