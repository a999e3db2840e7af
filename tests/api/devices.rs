//! Platform and device queries: every parameter, sizes, consistency.

use pumice_tests::sys::cl_icd::*;
use pumice_tests::sys::*;
use pumice_tests::{
    call, create, create_fails, ext, fails, info, info_text, info_value, ok, Queue, Setup,
};
use std::ffi::{c_void, CStr};
use std::ptr::{null, null_mut};

fn platform() -> cl_platform_id {
    let mut platform = null_mut();
    ok!(clGetPlatformIDs(1, &mut platform, null_mut()));
    platform
}

/// Splits `cl_name_version` lists.
fn name_versions(bytes: &[u8]) -> Vec<(String, u32)> {
    assert_eq!(bytes.len() % 68, 0, "cl_name_version has 68 bytes");
    bytes
        .chunks(68)
        .map(|entry| {
            let (version, name) = entry.split_at(4);
            let name = CStr::from_bytes_until_nul(name).expect("a NUL in the name");
            let version = u32::from_ne_bytes(version.try_into().expect("four bytes"));
            (name.to_str().expect("ASCII").to_owned(), version)
        })
        .collect()
}

#[test]
fn platform_queries() {
    let platform = platform();
    assert_eq!(
        info_text!(clGetPlatformInfo(platform), CL_PLATFORM_PROFILE),
        "FULL_PROFILE"
    );
    let version = info_text!(clGetPlatformInfo(platform), CL_PLATFORM_VERSION);
    let number = version.strip_prefix("OpenCL ").expect("OpenCL <version>");
    let number = number.split(' ').next().expect("a version");
    let (major, minor) = number.split_once('.').expect("major.minor");
    let numeric = info_value!(
        u32,
        clGetPlatformInfo(platform),
        CL_PLATFORM_NUMERIC_VERSION
    );
    assert_eq!(
        (major.parse(), minor.parse()),
        (Ok(numeric >> 22), Ok(numeric >> 12 & 0x3ff))
    );
    assert!(!info_text!(clGetPlatformInfo(platform), CL_PLATFORM_NAME).is_empty());
    assert!(!info_text!(clGetPlatformInfo(platform), CL_PLATFORM_VENDOR).is_empty());
    assert_eq!(
        info_text!(clGetPlatformInfo(platform), CL_PLATFORM_ICD_SUFFIX_KHR),
        "PUMICE"
    );
    let resolution = info_value!(
        u64,
        clGetPlatformInfo(platform),
        CL_PLATFORM_HOST_TIMER_RESOLUTION
    );
    // A tick of the performance counter: mostly 100 ns.
    let possible = if cfg!(windows) { 1..=1000 } else { 1..=1 };
    assert!(possible.contains(&resolution), "{resolution} ns");
    let names = info_text!(clGetPlatformInfo(platform), CL_PLATFORM_EXTENSIONS);
    let versioned = name_versions(&info!(
        clGetPlatformInfo(platform),
        CL_PLATFORM_EXTENSIONS_WITH_VERSION
    ));
    let listed: Vec<_> = versioned.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names.split(' ').collect::<Vec<_>>(), listed);
    assert!(listed.contains(&"cl_khr_icd"));
    fails!(
        CL_INVALID_VALUE,
        clGetPlatformInfo(platform, 0x1234, 0, null_mut(), null_mut())
    );
}

#[test]
fn a_short_buffer_is_refused_and_left_alone() {
    let platform = platform();
    let mut size = 0usize;
    let mut text = [0xaau8; 4];
    fails!(
        CL_INVALID_VALUE,
        clGetPlatformInfo(
            platform,
            CL_PLATFORM_PROFILE,
            4,
            text.as_mut_ptr().cast(),
            &mut size
        )
    );
    assert_eq!(text, [0xaa; 4]);
    // Nothing asked for is no error.
    ok!(clGetPlatformInfo(
        platform,
        CL_PLATFORM_PROFILE,
        0,
        null_mut(),
        null_mut()
    ));
}

#[test]
fn platform_ids() {
    let mut count = 0;
    ok!(clGetPlatformIDs(0, null_mut(), &mut count));
    assert_eq!(count, 1);
    let mut platform = null_mut();
    fails!(
        CL_INVALID_VALUE,
        clGetPlatformIDs(0, &mut platform, null_mut())
    );
    fails!(
        CL_INVALID_VALUE,
        clGetPlatformIDs(0, null_mut(), null_mut())
    );
}

#[test]
fn device_types() {
    let platform = platform();
    let count = |mask| {
        let mut count = 77;
        match call!(clGetDeviceIDs(platform, mask, 0, null_mut(), &mut count)) {
            CL_SUCCESS => count,
            CL_DEVICE_NOT_FOUND => 0,
            other => panic!("clGetDeviceIDs({mask:#x}) returned {other}"),
        }
    };
    let all = count(CL_DEVICE_TYPE_ALL);
    assert!(all > 0, "no device to test");
    let sum =
        count(CL_DEVICE_TYPE_CPU) + count(CL_DEVICE_TYPE_GPU) + count(CL_DEVICE_TYPE_ACCELERATOR);
    assert_eq!(all, sum);
    assert_eq!(count(CL_DEVICE_TYPE_DEFAULT), 1);
    assert_eq!(
        count(CL_DEVICE_TYPE_CPU | CL_DEVICE_TYPE_GPU | CL_DEVICE_TYPE_ACCELERATOR),
        all
    );
    let mut device = null_mut();
    fails!(
        CL_DEVICE_NOT_FOUND,
        clGetDeviceIDs(platform, CL_DEVICE_TYPE_CUSTOM, 1, &mut device, null_mut())
    );
    fails!(
        CL_INVALID_DEVICE_TYPE,
        clGetDeviceIDs(platform, 0, 1, &mut device, null_mut())
    );
    fails!(
        CL_INVALID_DEVICE_TYPE,
        clGetDeviceIDs(platform, 1 << 20, 1, &mut device, null_mut())
    );
    fails!(
        CL_INVALID_VALUE,
        clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, &mut device, null_mut())
    );
    fails!(
        CL_INVALID_VALUE,
        clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, null_mut(), null_mut())
    );
}

/// Every parameter with the size of its answer; 0: any size.
const PARAMETERS: &[(cl_device_info, usize)] = &[
    (CL_DEVICE_TYPE, 8),
    (CL_DEVICE_VENDOR_ID, 4),
    (CL_DEVICE_MAX_COMPUTE_UNITS, 4),
    (CL_DEVICE_MAX_WORK_ITEM_DIMENSIONS, 4),
    (CL_DEVICE_MAX_WORK_ITEM_SIZES, 24),
    (CL_DEVICE_MAX_WORK_GROUP_SIZE, 8),
    (CL_DEVICE_PREFERRED_VECTOR_WIDTH_CHAR, 4),
    (CL_DEVICE_PREFERRED_VECTOR_WIDTH_SHORT, 4),
    (CL_DEVICE_PREFERRED_VECTOR_WIDTH_INT, 4),
    (CL_DEVICE_PREFERRED_VECTOR_WIDTH_LONG, 4),
    (CL_DEVICE_PREFERRED_VECTOR_WIDTH_FLOAT, 4),
    (CL_DEVICE_PREFERRED_VECTOR_WIDTH_DOUBLE, 4),
    (CL_DEVICE_PREFERRED_VECTOR_WIDTH_HALF, 4),
    (CL_DEVICE_NATIVE_VECTOR_WIDTH_CHAR, 4),
    (CL_DEVICE_NATIVE_VECTOR_WIDTH_SHORT, 4),
    (CL_DEVICE_NATIVE_VECTOR_WIDTH_INT, 4),
    (CL_DEVICE_NATIVE_VECTOR_WIDTH_LONG, 4),
    (CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT, 4),
    (CL_DEVICE_NATIVE_VECTOR_WIDTH_DOUBLE, 4),
    (CL_DEVICE_NATIVE_VECTOR_WIDTH_HALF, 4),
    (CL_DEVICE_MAX_CLOCK_FREQUENCY, 4),
    (CL_DEVICE_ADDRESS_BITS, 4),
    (CL_DEVICE_MAX_MEM_ALLOC_SIZE, 8),
    (CL_DEVICE_IMAGE_SUPPORT, 4),
    (CL_DEVICE_MAX_READ_IMAGE_ARGS, 4),
    (CL_DEVICE_MAX_WRITE_IMAGE_ARGS, 4),
    (CL_DEVICE_MAX_READ_WRITE_IMAGE_ARGS, 4),
    (CL_DEVICE_IL_VERSION, 0),
    (CL_DEVICE_ILS_WITH_VERSION, 0),
    (CL_DEVICE_IMAGE2D_MAX_WIDTH, 8),
    (CL_DEVICE_IMAGE2D_MAX_HEIGHT, 8),
    (CL_DEVICE_IMAGE3D_MAX_WIDTH, 8),
    (CL_DEVICE_IMAGE3D_MAX_HEIGHT, 8),
    (CL_DEVICE_IMAGE3D_MAX_DEPTH, 8),
    (CL_DEVICE_IMAGE_MAX_BUFFER_SIZE, 8),
    (CL_DEVICE_IMAGE_MAX_ARRAY_SIZE, 8),
    (CL_DEVICE_MAX_SAMPLERS, 4),
    (CL_DEVICE_IMAGE_PITCH_ALIGNMENT, 4),
    (CL_DEVICE_IMAGE_BASE_ADDRESS_ALIGNMENT, 4),
    (CL_DEVICE_MAX_PIPE_ARGS, 4),
    (CL_DEVICE_PIPE_MAX_ACTIVE_RESERVATIONS, 4),
    (CL_DEVICE_PIPE_MAX_PACKET_SIZE, 4),
    (CL_DEVICE_MAX_PARAMETER_SIZE, 8),
    (CL_DEVICE_MEM_BASE_ADDR_ALIGN, 4),
    (CL_DEVICE_MIN_DATA_TYPE_ALIGN_SIZE, 4),
    (CL_DEVICE_SINGLE_FP_CONFIG, 8),
    (CL_DEVICE_DOUBLE_FP_CONFIG, 8),
    (CL_DEVICE_HALF_FP_CONFIG, 8),
    (CL_DEVICE_GLOBAL_MEM_CACHE_TYPE, 4),
    (CL_DEVICE_GLOBAL_MEM_CACHELINE_SIZE, 4),
    (CL_DEVICE_GLOBAL_MEM_CACHE_SIZE, 8),
    (CL_DEVICE_GLOBAL_MEM_SIZE, 8),
    (CL_DEVICE_MAX_CONSTANT_BUFFER_SIZE, 8),
    (CL_DEVICE_MAX_CONSTANT_ARGS, 4),
    (CL_DEVICE_MAX_GLOBAL_VARIABLE_SIZE, 8),
    (CL_DEVICE_GLOBAL_VARIABLE_PREFERRED_TOTAL_SIZE, 8),
    (CL_DEVICE_LOCAL_MEM_TYPE, 4),
    (CL_DEVICE_LOCAL_MEM_SIZE, 8),
    (CL_DEVICE_ERROR_CORRECTION_SUPPORT, 4),
    (CL_DEVICE_HOST_UNIFIED_MEMORY, 4),
    (CL_DEVICE_PROFILING_TIMER_RESOLUTION, 8),
    (CL_DEVICE_ENDIAN_LITTLE, 4),
    (CL_DEVICE_AVAILABLE, 4),
    (CL_DEVICE_COMPILER_AVAILABLE, 4),
    (CL_DEVICE_LINKER_AVAILABLE, 4),
    (CL_DEVICE_EXECUTION_CAPABILITIES, 8),
    (CL_DEVICE_QUEUE_ON_HOST_PROPERTIES, 8),
    (CL_DEVICE_QUEUE_ON_DEVICE_PROPERTIES, 8),
    (CL_DEVICE_QUEUE_ON_DEVICE_PREFERRED_SIZE, 4),
    (CL_DEVICE_QUEUE_ON_DEVICE_MAX_SIZE, 4),
    (CL_DEVICE_MAX_ON_DEVICE_QUEUES, 4),
    (CL_DEVICE_MAX_ON_DEVICE_EVENTS, 4),
    (CL_DEVICE_BUILT_IN_KERNELS, 0),
    (CL_DEVICE_BUILT_IN_KERNELS_WITH_VERSION, 0),
    (CL_DEVICE_PLATFORM, 8),
    (CL_DEVICE_NAME, 0),
    (CL_DEVICE_VENDOR, 0),
    (CL_DRIVER_VERSION, 0),
    (CL_DEVICE_PROFILE, 0),
    (CL_DEVICE_VERSION, 0),
    (CL_DEVICE_NUMERIC_VERSION, 4),
    (CL_DEVICE_OPENCL_C_VERSION, 0),
    (CL_DEVICE_OPENCL_C_ALL_VERSIONS, 0),
    (CL_DEVICE_OPENCL_C_FEATURES, 0),
    (CL_DEVICE_EXTENSIONS, 0),
    (CL_DEVICE_EXTENSIONS_WITH_VERSION, 0),
    (CL_DEVICE_PRINTF_BUFFER_SIZE, 8),
    (CL_DEVICE_PREFERRED_INTEROP_USER_SYNC, 4),
    (CL_DEVICE_PARENT_DEVICE, 8),
    (CL_DEVICE_PARTITION_MAX_SUB_DEVICES, 4),
    (CL_DEVICE_PARTITION_PROPERTIES, 0),
    (CL_DEVICE_PARTITION_AFFINITY_DOMAIN, 8),
    (CL_DEVICE_PARTITION_TYPE, 8),
    (CL_DEVICE_REFERENCE_COUNT, 4),
    (CL_DEVICE_SVM_CAPABILITIES, 8),
    (CL_DEVICE_SVM_TYPE_CAPABILITIES_KHR, 0),
    (CL_DEVICE_PREFERRED_PLATFORM_ATOMIC_ALIGNMENT, 4),
    (CL_DEVICE_PREFERRED_GLOBAL_ATOMIC_ALIGNMENT, 4),
    (CL_DEVICE_PREFERRED_LOCAL_ATOMIC_ALIGNMENT, 4),
    (CL_DEVICE_MAX_NUM_SUB_GROUPS, 4),
    (CL_DEVICE_SUB_GROUP_INDEPENDENT_FORWARD_PROGRESS, 4),
    (CL_DEVICE_ATOMIC_MEMORY_CAPABILITIES, 8),
    (CL_DEVICE_ATOMIC_FENCE_CAPABILITIES, 8),
    (CL_DEVICE_NON_UNIFORM_WORK_GROUP_SUPPORT, 4),
    (CL_DEVICE_WORK_GROUP_COLLECTIVE_FUNCTIONS_SUPPORT, 4),
    (CL_DEVICE_GENERIC_ADDRESS_SPACE_SUPPORT, 4),
    (CL_DEVICE_DEVICE_ENQUEUE_CAPABILITIES, 8),
    (CL_DEVICE_PIPE_SUPPORT, 4),
    (CL_DEVICE_PREFERRED_WORK_GROUP_SIZE_MULTIPLE, 8),
    (CL_DEVICE_LATEST_CONFORMANCE_VERSION_PASSED, 0),
    (CL_DEVICE_UUID, 16),
    (CL_DRIVER_UUID, 16),
    (CL_DEVICE_LUID_VALID, 4),
    (CL_DEVICE_LUID, 8),
    (CL_DEVICE_NODE_MASK, 4),
];

#[test]
fn every_device_parameter_answers() {
    let setup = Setup::new();
    for &(param, size) in PARAMETERS {
        let bytes = info!(clGetDeviceInfo(setup.device), param);
        assert!(
            size == 0 || bytes.len() == size,
            "parameter {param:#x} has {} bytes",
            bytes.len()
        );
        if bytes.len() > 1 {
            let mut short = vec![0u8; bytes.len() - 1];
            let (size, place) = (short.len(), short.as_mut_ptr().cast());
            fails!(
                CL_INVALID_VALUE,
                clGetDeviceInfo(setup.device, param, size, place, null_mut())
            );
        }
    }
    fails!(
        CL_INVALID_VALUE,
        clGetDeviceInfo(setup.device, 0x1fff, 0, null_mut(), null_mut())
    );
}

#[test]
fn minimums_of_the_full_profile() {
    let device = Setup::new().device;
    macro_rules! at_least {
        ($type:ty, $param:ident, $least:expr) => {
            let value = info_value!($type, clGetDeviceInfo(device), $param);
            assert!(value >= $least, "{} is {value}", stringify!($param));
        };
    }
    at_least!(u32, CL_DEVICE_MAX_COMPUTE_UNITS, 1);
    // Programs take a device of no clock for one that does not work.
    at_least!(u32, CL_DEVICE_MAX_CLOCK_FREQUENCY, 1);
    at_least!(u32, CL_DEVICE_MAX_WORK_ITEM_DIMENSIONS, 3);
    at_least!(usize, CL_DEVICE_MAX_WORK_GROUP_SIZE, 1);
    at_least!(usize, CL_DEVICE_MAX_PARAMETER_SIZE, 1024);
    at_least!(u64, CL_DEVICE_MAX_CONSTANT_BUFFER_SIZE, 64 << 10);
    at_least!(u32, CL_DEVICE_MAX_CONSTANT_ARGS, 8);
    at_least!(u64, CL_DEVICE_LOCAL_MEM_SIZE, 32 << 10);
    at_least!(usize, CL_DEVICE_PRINTF_BUFFER_SIZE, 1 << 20);
    at_least!(usize, CL_DEVICE_PREFERRED_WORK_GROUP_SIZE_MULTIPLE, 1);
    at_least!(u32, CL_DEVICE_MEM_BASE_ADDR_ALIGN, 1024);
    let global = info_value!(u64, clGetDeviceInfo(device), CL_DEVICE_GLOBAL_MEM_SIZE);
    let most = info_value!(u64, clGetDeviceInfo(device), CL_DEVICE_MAX_MEM_ALLOC_SIZE);
    assert!(
        most >= (global / 4).clamp(32 << 20, 1 << 30),
        "{most} of {global}"
    );
    assert!(most <= global);
    let single = info_value!(u64, clGetDeviceInfo(device), CL_DEVICE_SINGLE_FP_CONFIG);
    let least = CL_FP_ROUND_TO_NEAREST | CL_FP_INF_NAN;
    assert_eq!(single & least, least);
    let memory = info_value!(
        u64,
        clGetDeviceInfo(device),
        CL_DEVICE_ATOMIC_MEMORY_CAPABILITIES
    );
    let fence = info_value!(
        u64,
        clGetDeviceInfo(device),
        CL_DEVICE_ATOMIC_FENCE_CAPABILITIES
    );
    let least = CL_DEVICE_ATOMIC_ORDER_RELAXED | CL_DEVICE_ATOMIC_SCOPE_WORK_GROUP;
    assert_eq!(memory & least, least);
    let least = least | CL_DEVICE_ATOMIC_ORDER_ACQ_REL;
    assert_eq!(fence & least, least);
    let sizes = info_value!(
        [usize; 3],
        clGetDeviceInfo(device),
        CL_DEVICE_MAX_WORK_ITEM_SIZES
    );
    assert!(sizes.iter().all(|size| *size >= 1), "{sizes:?}");
    assert_eq!(
        info_value!(u32, clGetDeviceInfo(device), CL_DEVICE_REFERENCE_COUNT),
        1
    );
    ok!(clRetainDevice(device));
    ok!(clReleaseDevice(device));
    assert_eq!(
        info_value!(u32, clGetDeviceInfo(device), CL_DEVICE_REFERENCE_COUNT),
        1
    );
}

#[test]
fn lists_agree() {
    let setup = Setup::new();
    let device = setup.device;
    let extensions = info_text!(clGetDeviceInfo(device), CL_DEVICE_EXTENSIONS);
    let versioned = name_versions(&info!(
        clGetDeviceInfo(device),
        CL_DEVICE_EXTENSIONS_WITH_VERSION
    ));
    let listed: Vec<_> = versioned.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(extensions.split(' ').collect::<Vec<_>>(), listed);
    for needed in [
        "cl_khr_byte_addressable_store",
        "cl_khr_global_int32_base_atomics",
        "cl_khr_global_int32_extended_atomics",
        "cl_khr_local_int32_base_atomics",
        "cl_khr_local_int32_extended_atomics",
    ] {
        assert!(listed.contains(&needed), "{needed} is required");
    }
    let features = name_versions(&info!(clGetDeviceInfo(device), CL_DEVICE_OPENCL_C_FEATURES));
    let feature = |name: &str| features.iter().any(|(known, _)| known == name);
    assert!(feature("__opencl_c_int64"));
    let fp64 = info_value!(u64, clGetDeviceInfo(device), CL_DEVICE_DOUBLE_FP_CONFIG) != 0;
    assert_eq!(feature("__opencl_c_fp64"), fp64);
    assert_eq!(listed.contains(&"cl_khr_fp64"), fp64);
    let images = info_value!(u32, clGetDeviceInfo(device), CL_DEVICE_IMAGE_SUPPORT) != 0;
    assert_eq!(feature("__opencl_c_images"), images);
    let pipes = info_value!(u32, clGetDeviceInfo(device), CL_DEVICE_PIPE_SUPPORT) != 0;
    assert_eq!(feature("__opencl_c_pipes"), pipes);
    let versions = name_versions(&info!(
        clGetDeviceInfo(device),
        CL_DEVICE_OPENCL_C_ALL_VERSIONS
    ));
    for version in [(1, 0), (1, 1), (1, 2), (3, 0)] {
        let wanted = ("OpenCL C".to_owned(), version.0 << 22 | version.1 << 12);
        assert!(versions.contains(&wanted), "{wanted:?}");
    }
    let ils = info_text!(clGetDeviceInfo(device), CL_DEVICE_IL_VERSION);
    let versioned = name_versions(&info!(clGetDeviceInfo(device), CL_DEVICE_ILS_WITH_VERSION));
    let spelled: Vec<_> = versioned
        .iter()
        .map(|(name, version)| format!("{name}_{}.{}", version >> 22, version >> 12 & 0x3ff))
        .collect();
    assert_eq!(ils, spelled.join(" "));
    if listed.contains(&"cl_khr_spirv_queries") {
        let numbers = info!(clGetDeviceInfo(device), CL_DEVICE_SPIRV_CAPABILITIES);
        let numbers: Vec<u32> = numbers
            .chunks(4)
            .map(|bytes| u32::from_ne_bytes(bytes.try_into().expect("four bytes")))
            .collect();
        // Addresses, Kernel, Vector16, Int64.
        for needed in [4, 6, 7, 11] {
            assert!(numbers.contains(&needed), "capability {needed}");
        }
        assert_eq!(numbers.contains(&10), fp64, "Float64");
        let sets = info!(
            clGetDeviceInfo(device),
            CL_DEVICE_SPIRV_EXTENDED_INSTRUCTION_SETS
        );
        let names: Vec<&CStr> = sets
            .chunks(size_of::<usize>())
            .map(|bytes| {
                let address = usize::from_ne_bytes(bytes.try_into().expect("a pointer"));
                // SAFETY: the driver gives the addresses of strings that live as long as it does.
                unsafe { CStr::from_ptr(address as *const std::ffi::c_char) }
            })
            .collect();
        assert!(names.contains(&c"OpenCL.std"), "{names:?}");
    }
    let platform = info_value!(usize, clGetDeviceInfo(device), CL_DEVICE_PLATFORM);
    assert_eq!(platform, setup.platform as usize);
}

#[test]
fn timers_advance_in_step() {
    let setup = Setup::new();
    let (mut device, mut host, mut later) = (0, 0, 0);
    ok!(clGetDeviceAndHostTimer(
        setup.device,
        &mut device,
        &mut host
    ));
    ok!(clGetHostTimer(setup.device, &mut later));
    assert!(device > 0 && later >= host && host > 0);
    fails!(CL_INVALID_VALUE, clGetHostTimer(setup.device, null_mut()));
    fails!(
        CL_INVALID_VALUE,
        clGetDeviceAndHostTimer(setup.device, null_mut(), &mut host)
    );
}

#[test]
fn functions_are_found_by_name() {
    let platform = platform();
    let find = |name: &CStr| {
        call!(clGetExtensionFunctionAddressForPlatform(
            platform,
            name.as_ptr()
        ))
    };
    assert!(!find(c"clCreateProgramWithILKHR").is_null());
    assert!(!find(c"clGetKernelSuggestedLocalWorkSizeKHR").is_null());
    assert!(!find(c"clCreateCommandQueueWithPropertiesKHR").is_null());
    assert!(find(c"clDoesNotExist").is_null());
}

/// Memory and semaphores of other APIs are there where the device has them; elsewhere nothing says that they are, and what
/// names them is refused.
#[test]
fn external_handles_are_refused() {
    let setup = Setup::new();
    let has = |wanted: &str| setup.has_extension(wanted);
    let (mut word, mut size) = (0u64, 0);
    let place: *mut u64 = &mut word;
    for (extension, param) in [
        (
            "cl_khr_external_memory",
            CL_DEVICE_EXTERNAL_MEMORY_IMPORT_HANDLE_TYPES_KHR,
        ),
        (
            "cl_khr_external_semaphore",
            CL_DEVICE_SEMAPHORE_IMPORT_HANDLE_TYPES_KHR,
        ),
        (
            "cl_khr_external_semaphore",
            CL_DEVICE_SEMAPHORE_EXPORT_HANDLE_TYPES_KHR,
        ),
    ] {
        if !has(extension) {
            fails!(
                CL_INVALID_VALUE,
                clGetDeviceInfo(setup.device, param, 8, place.cast(), &mut size)
            );
        }
    }
    for (extension, kind) in [
        (
            "cl_khr_external_memory_opaque_fd",
            CL_EXTERNAL_MEMORY_HANDLE_OPAQUE_FD_KHR,
        ),
        (
            "cl_khr_external_memory_dma_buf",
            CL_EXTERNAL_MEMORY_HANDLE_DMA_BUF_KHR,
        ),
        ("", CL_EXTERNAL_MEMORY_HANDLE_OPAQUE_WIN32_KHR),
        ("", CL_EXTERNAL_MEMORY_HANDLE_OPAQUE_WIN32_KMT_KHR),
    ] {
        if !has(extension) {
            let list = [u64::from(kind), 0, 0];
            create_fails!(
                CL_INVALID_PROPERTY,
                clCreateBufferWithProperties(setup.context.0, list.as_ptr(), 0, 64, null_mut())
            );
        }
    }
}

/// The loader's data of the platform is that of its devices and of all objects made later (cl_khr_icd 2.0). In a process of its
/// own, as the loader of this one may have data of its own.
#[test]
fn objects_carry_the_data_of_the_loader() {
    if !pumice_tests::is_alone("devices::objects_carry_the_data_of_the_loader") {
        return;
    }
    let setup = Setup::new();
    let name = c"clIcdSetPlatformDispatchDataKHR".as_ptr();
    let set = call!(clGetExtensionFunctionAddressForPlatform(
        setup.platform,
        name
    ));
    if set.is_null() {
        return pumice_tests::left_out("the loader does not show its own functions");
    }
    // SAFETY: the second word of every handle is the loader's.
    let data = |handle: *mut c_void| unsafe { *handle.cast::<usize>().add(1) };
    let before = data(setup.platform);
    let value = if before == 0 { 0x1230 } else { before };
    let set = |platform| {
        ext!(
            setup,
            clIcdSetPlatformDispatchDataKHR:
                clIcdSetPlatformDispatchDataKHR_t(platform, value as *mut c_void)
        )
    };
    assert_eq!(set(null_mut()), CL_INVALID_PLATFORM);
    assert_eq!(set(setup.platform), CL_SUCCESS);
    let buffer = setup.buffer(4);
    let queue = Queue(create!(clCreateCommandQueueWithProperties(
        setup.context.0,
        setup.device,
        null()
    )));
    for handle in [setup.platform, setup.device, buffer.0, queue.0] {
        assert_eq!(data(handle), value);
    }
    assert_eq!(data(setup.context.0), before);
    let address = |platform, name: &CStr| {
        ext!(
            setup,
            clIcdGetFunctionAddressForPlatformKHR:
                clIcdGetFunctionAddressForPlatformKHR_t(platform, name.as_ptr())
        )
    };
    assert!(!address(setup.platform, c"clCreateBuffer").is_null());
    assert!(!address(setup.platform, c"clSVMAllocWithPropertiesKHR").is_null());
    assert!(address(setup.platform, c"clNoSuchFunction").is_null());
    assert!(address(setup.device.cast(), c"clCreateBuffer").is_null());
}

/// The loader of the machine may not know the newest functions; the driver's own table does.
#[test]
fn the_dispatch_table_is_complete() {
    let platform = platform();
    // SAFETY: the first word of every handle points to the dispatch table.
    let table = unsafe { *platform.cast::<*const usize>() };
    let words = size_of::<cl_icd_dispatch>() / size_of::<usize>();
    for slot in 0..words {
        // SAFETY: the table has as many words.
        assert_ne!(unsafe { *table.add(slot) }, 0, "slot {slot}");
    }
}
