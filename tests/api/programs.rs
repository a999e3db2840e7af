//! Programs: building, logs, options, queries; separate compilation, binaries and IL in files of their own.

mod il;
pub mod separate;

use pumice_tests::sys::*;
use pumice_tests::{
    call, create, create_fails, fails, info, info_text, info_value, ok, user_data, Program, Setup,
};
use std::ffi::{c_char, c_void, CString};
use std::ptr::{null, null_mut};

const ADD: &str = "kernel void add(global int *p, int n) { p[get_global_id(0)] += n; }";

pub fn check_add(setup: &Setup, program: &Program, expected: i32) {
    let kernel = setup.kernel(program, "add");
    let buffer = setup.buffer_of(&[1i32; 16]);
    kernel.set_buffer(0, &buffer).set(1, 5i32);
    setup.run(&kernel, &[16], None);
    assert_eq!(setup.read::<i32>(&buffer, 16), [expected; 16]);
}

#[test]
fn queries() {
    let setup = Setup::new();
    let program = setup.program(ADD);
    let (p, d) = (program.0, setup.device);
    assert_eq!(
        info_value!(i32, clGetProgramBuildInfo(p, d), CL_PROGRAM_BUILD_STATUS),
        CL_BUILD_NONE
    );
    assert_eq!(
        info_value!(u32, clGetProgramBuildInfo(p, d), CL_PROGRAM_BINARY_TYPE),
        0
    );
    fails!(
        CL_INVALID_PROGRAM_EXECUTABLE,
        clGetProgramInfo(p, CL_PROGRAM_NUM_KERNELS, 0, null_mut(), null_mut())
    );
    create_fails!(
        CL_INVALID_PROGRAM_EXECUTABLE,
        clCreateKernel(p, c"add".as_ptr())
    );
    let options = c"-DX=1 -cl-mad-enable";
    ok!(clBuildProgram(
        p,
        0,
        null(),
        options.as_ptr(),
        None,
        null_mut()
    ));
    assert_eq!(
        info_value!(i32, clGetProgramBuildInfo(p, d), CL_PROGRAM_BUILD_STATUS),
        CL_BUILD_SUCCESS
    );
    assert_eq!(
        info_text!(clGetProgramBuildInfo(p, d), CL_PROGRAM_BUILD_OPTIONS),
        options.to_str().expect("ASCII")
    );
    assert_eq!(
        info_value!(u32, clGetProgramBuildInfo(p, d), CL_PROGRAM_BINARY_TYPE),
        CL_PROGRAM_BINARY_TYPE_EXECUTABLE
    );
    assert_eq!(info_text!(clGetProgramInfo(p), CL_PROGRAM_SOURCE), ADD);
    assert_eq!(
        info_value!(u32, clGetProgramInfo(p), CL_PROGRAM_REFERENCE_COUNT),
        1
    );
    assert_eq!(
        info_value!(usize, clGetProgramInfo(p), CL_PROGRAM_CONTEXT),
        setup.context.0 as usize
    );
    assert_eq!(
        info_value!(u32, clGetProgramInfo(p), CL_PROGRAM_NUM_DEVICES),
        1
    );
    assert_eq!(
        info_value!(usize, clGetProgramInfo(p), CL_PROGRAM_DEVICES),
        d as usize
    );
    assert_eq!(
        info_value!(usize, clGetProgramInfo(p), CL_PROGRAM_NUM_KERNELS),
        1
    );
    assert_eq!(
        info_text!(clGetProgramInfo(p), CL_PROGRAM_KERNEL_NAMES),
        "add"
    );
    assert!(info!(clGetProgramInfo(p), CL_PROGRAM_IL).is_empty());
    fails!(
        CL_INVALID_VALUE,
        clGetProgramInfo(p, 0x1234, 0, null_mut(), null_mut())
    );
    fails!(
        CL_INVALID_VALUE,
        clGetProgramBuildInfo(p, d, 0x1234, 0, null_mut(), null_mut())
    );
    check_add(&setup, &program, 6);
}

#[test]
fn wrong_creation_and_builds() {
    let setup = Setup::new();
    let context = setup.context.0;
    let mut text: [*const c_char; 2] = [c"kernel void f() {}".as_ptr(), null()];
    let texts = text.as_mut_ptr();
    create_fails!(
        CL_INVALID_VALUE,
        clCreateProgramWithSource(context, 0, texts, null())
    );
    create_fails!(
        CL_INVALID_VALUE,
        clCreateProgramWithSource(context, 1, null_mut(), null())
    );
    create_fails!(
        CL_INVALID_VALUE,
        clCreateProgramWithSource(context, 2, texts, null())
    );
    create_fails!(CL_INVALID_VALUE, clCreateProgramWithIL(context, null(), 8));
    create_fails!(
        CL_INVALID_VALUE,
        clCreateProgramWithIL(context, texts.cast(), 0)
    );
    create_fails!(
        CL_INVALID_VALUE,
        clCreateProgramWithIL(context, c"this is no SPIR-V.".as_ptr().cast(), 16)
    );
    create_fails!(
        CL_INVALID_VALUE,
        clCreateProgramWithBuiltInKernels(context, 1, &setup.device, c"nothing".as_ptr())
    );
    let program = setup.program(ADD);
    let (p, d) = (program.0, &setup.device);
    fails!(
        CL_INVALID_VALUE,
        clBuildProgram(p, 0, d, null(), None, null_mut())
    );
    fails!(
        CL_INVALID_VALUE,
        clBuildProgram(p, 1, null(), null(), None, null_mut())
    );
    fails!(
        CL_INVALID_VALUE,
        clBuildProgram(p, 1, d, null(), None, user_data(1))
    );
    let wrong = c"-cl-no-such-option";
    fails!(
        CL_INVALID_BUILD_OPTIONS,
        clBuildProgram(p, 1, d, wrong.as_ptr(), None, null_mut())
    );
    fails!(
        CL_INVALID_COMPILER_OPTIONS,
        clCompileProgram(
            p,
            1,
            d,
            wrong.as_ptr(),
            0,
            null(),
            null_mut(),
            None,
            null_mut()
        )
    );
    // A kernel keeps its program from being built again.
    let program = setup.build(ADD);
    let kernel = setup.kernel(&program, "add");
    fails!(
        CL_INVALID_OPERATION,
        clBuildProgram(program.0, 0, null(), null(), None, null_mut())
    );
    drop(kernel);
    program.build();
}

extern "C" fn built(_: cl_program, _: *mut c_void) {}

/// Applications give a callback and do not wait for it: UnitCL of the oneAPI construction kit, pocl's tests.
#[test]
fn a_kernel_waits_for_the_build_of_its_program() {
    let setup = Setup::new();
    for n in 0..4 {
        // No build before had this source.
        let program = setup.program(&format!("{ADD}\nconstant int not_cached = {n};"));
        ok!(clBuildProgram(
            program.0,
            0,
            null(),
            null(),
            Some(built),
            null_mut()
        ));
        check_add(&setup, &program, 6);
    }
}

#[test]
fn errors_and_warnings_are_in_the_log() {
    let setup = Setup::new();
    let program = setup.program("kernel void f(global int *p) { *p = no_such_name; }");
    fails!(
        CL_BUILD_PROGRAM_FAILURE,
        clBuildProgram(program.0, 1, &setup.device, null(), None, null_mut())
    );
    let log = setup.build_log(&program);
    assert!(
        log.contains("no_such_name") && log.contains("error"),
        "{log}"
    );
    let (p, d) = (program.0, setup.device);
    assert_eq!(
        info_value!(i32, clGetProgramBuildInfo(p, d), CL_PROGRAM_BUILD_STATUS),
        CL_BUILD_ERROR
    );
    create_fails!(
        CL_INVALID_PROGRAM_EXECUTABLE,
        clCreateKernel(p, c"f".as_ptr())
    );
    // The missing definition is found when linking.
    let log = setup
        .try_build(
            "int g(int); kernel void f(global int *p) { *p = g(1); }",
            "",
        )
        .err();
    assert!(log.as_ref().is_some_and(|log| log.contains('g')), "{log:?}");
}

#[test]
fn sources_in_pieces() {
    let setup = Setup::new();
    let pieces = [
        "kernel void add(global int *p, in",
        "t n) {XXXX",
        " p[get_global_id(0)] += n; }",
    ];
    let texts: Vec<CString> = pieces
        .iter()
        .map(|piece| CString::new(*piece).expect("text"))
        .collect();
    let mut pointers: Vec<*const c_char> = texts.iter().map(|text| text.as_ptr()).collect();
    // Up to the NUL, six bytes, up to the NUL.
    let lengths = [0usize, 6, 0];
    let program = Program(create!(clCreateProgramWithSource(
        setup.context.0,
        3,
        pointers.as_mut_ptr(),
        lengths.as_ptr()
    )));
    program.build();
    check_add(&setup, &program, 6);
}

#[test]
fn build_options() {
    let setup = Setup::new();
    let source = "
        #ifndef BASE
        #error BASE is missing
        #endif
        kernel void f(global int *p) { p[0] = BASE; p[1] = __OPENCL_C_VERSION__; p[2] = TEXT[1]; }";
    let run = |options: &str| {
        let program = setup.try_build(source, options)?;
        let kernel = setup.kernel(&program, "f");
        let buffer = setup.buffer(12);
        kernel.set_buffer(0, &buffer);
        setup.run(&kernel, &[1], None);
        Ok::<_, String>(setup.read::<i32>(&buffer, 3))
    };
    assert!(run("").is_err_and(|log| log.contains("BASE is missing")));
    assert_eq!(
        run("-D BASE=42 -DTEXT=\\\"abc\\\"").as_deref(),
        Ok(&[42, 120, i32::from(b'b')][..])
    );
    assert_eq!(
        run("-DBASE=1 -DTEXT=\\\"xyz\\\" -cl-std=CL3.0 -cl-fast-relaxed-math -w").as_deref(),
        Ok(&[1, 300, i32::from(b'y')][..])
    );
    assert_eq!(
        run("-cl-opt-disable -DBASE=2 -DTEXT=\\\"123\\\" -cl-std=CL1.1").as_deref(),
        Ok(&[2, 110, i32::from(b'2')][..])
    );
}

#[test]
fn macros_of_the_device() {
    let setup = Setup::new();
    let feature_bytes = info!(clGetDeviceInfo(setup.device), CL_DEVICE_OPENCL_C_FEATURES);
    let features: Vec<String> = feature_bytes
        .chunks(68)
        .map(|entry| {
            let name: Vec<u8> = entry[4..]
                .iter()
                .copied()
                .take_while(|byte| *byte != 0)
                .collect();
            String::from_utf8(name).expect("ASCII")
        })
        .collect();
    let names = [
        "cl_khr_fp64",
        "cl_khr_fp16",
        "cl_khr_int64_base_atomics",
        "cl_khr_3d_image_writes",
    ];
    for name in names {
        let has = setup.has_extension(name);
        let condition = if has { "ifndef" } else { "ifdef" };
        let source = format!("#{condition} {name}\n#error {name}\n#endif\nkernel void f(global int *p) {{ *p = 1; }}");
        assert!(
            setup.try_build(&source, "").is_ok(),
            "{name} should be {has}"
        );
    }
    let names = [
        "__opencl_c_int64",
        "__opencl_c_fp64",
        "__opencl_c_images",
        "__opencl_c_pipes",
        "__opencl_c_subgroups",
        "__opencl_c_generic_address_space",
        "__opencl_c_atomic_order_acq_rel",
        "__opencl_c_device_enqueue",
    ];
    for name in names {
        let has = features.iter().any(|known| known == name);
        let condition = if has { "ifndef" } else { "ifdef" };
        let source = format!("#{condition} {name}\n#error {name}\n#endif\nkernel void f(global int *p) {{ *p = 1; }}");
        let built = setup.try_build(&source, "-cl-std=CL3.0");
        assert!(built.is_ok(), "{name} should be {has}: {:?}", built.err());
    }
    let images = setup.has_images();
    let condition = if images { "ifndef" } else { "ifdef" };
    let source = format!("#{condition} __IMAGE_SUPPORT__\n#error\n#endif\nkernel void f(global int *p) {{ *p = 1; }}");
    assert!(setup.try_build(&source, "").is_ok());
}

#[test]
fn argument_information() {
    let setup = Setup::new();
    let source = "
        typedef struct { int x; } Thing;
        kernel void f(global const float *restrict in, local int4 *scratch, constant Thing *table, unsigned int n,
                      volatile global uchar *out) {
            out[0] = (uchar)(in[0] + scratch[0].x + table[0].x + n); }";
    let program = setup
        .try_build(source, "-cl-kernel-arg-info")
        .unwrap_or_else(|log| panic!("{log}"));
    let kernel = setup.kernel(&program, "f");
    let k = kernel.0;
    let expected: [(&str, &str, u32, u64); 5] = [
        ("in", "float*", CL_KERNEL_ARG_ADDRESS_GLOBAL, 0x1 | 0x2),
        ("scratch", "int4*", CL_KERNEL_ARG_ADDRESS_LOCAL, 0),
        ("table", "Thing*", CL_KERNEL_ARG_ADDRESS_CONSTANT, 0x1),
        ("n", "uint", CL_KERNEL_ARG_ADDRESS_PRIVATE, 0),
        ("out", "uchar*", CL_KERNEL_ARG_ADDRESS_GLOBAL, 0x4),
    ];
    for (index, (name, ty, space, qualifier)) in expected.into_iter().enumerate() {
        let i = index as u32;
        assert_eq!(
            info_text!(clGetKernelArgInfo(k, i), CL_KERNEL_ARG_NAME),
            name
        );
        assert_eq!(
            info_text!(clGetKernelArgInfo(k, i), CL_KERNEL_ARG_TYPE_NAME),
            ty,
            "{name}"
        );
        assert_eq!(
            info_value!(
                u32,
                clGetKernelArgInfo(k, i),
                CL_KERNEL_ARG_ADDRESS_QUALIFIER
            ),
            space,
            "{name}"
        );
        assert_eq!(
            info_value!(u64, clGetKernelArgInfo(k, i), CL_KERNEL_ARG_TYPE_QUALIFIER),
            qualifier,
            "{name}"
        );
        assert_eq!(
            info_value!(
                u32,
                clGetKernelArgInfo(k, i),
                CL_KERNEL_ARG_ACCESS_QUALIFIER
            ),
            CL_KERNEL_ARG_ACCESS_NONE
        );
    }
    fails!(
        CL_INVALID_ARG_INDEX,
        clGetKernelArgInfo(k, 5, CL_KERNEL_ARG_NAME, 0, null_mut(), null_mut())
    );
    fails!(
        CL_INVALID_VALUE,
        clGetKernelArgInfo(k, 0, 0x1234, 0, null_mut(), null_mut())
    );
}

/// `inline` is that of C99: without `static` or `extern` the compiler emits no definition of its own, so what it finds
/// too large to inline would be missing.
#[test]
fn large_inline_functions() {
    const SOURCE: &str = "
        #define A x ^= x << 13; x ^= x >> 17; x ^= x << 5; x = x * 5 + n;
        #define B A A A A A A A A
        inline uint mix(uint x, uint n) { B B B B B B return x; }
        kernel void k(global uint *p) { p[0] = mix(p[0], 1); p[1] = mix(p[1], 2); }";
    fn mix(mut x: u32, n: u32) -> u32 {
        for _ in 0..48 {
            x ^= x << 13;
            x ^= x >> 17;
            x ^= x << 5;
            x = x.wrapping_mul(5).wrapping_add(n);
        }
        x
    }
    let setup = Setup::new();
    for options in ["", "-cl-opt-disable"] {
        let program = setup.try_build(SOURCE, options).expect("builds");
        let kernel = setup.kernel(&program, "k");
        let buffer = setup.buffer_of(&[3u32, 7]);
        kernel.set_buffer(0, &buffer);
        setup.run(&kernel, &[1], None);
        assert_eq!(setup.read::<u32>(&buffer, 2), [mix(3, 1), mix(7, 2)]);
    }
}

#[test]
fn only_variables_of_the_source_take_memory() {
    let setup = Setup::new();
    let total = |source: &str| {
        let program = setup
            .try_build(source, "-cl-std=CL3.0")
            .unwrap_or_else(|log| panic!("{log}"));
        info_value!(
            usize,
            clGetProgramBuildInfo(program.0, setup.device),
            CL_PROGRAM_BUILD_GLOBAL_VARIABLE_TOTAL_SIZE
        )
    };
    assert_eq!(total("kernel void f(global int *p) { *p = 1; }"), 0);
    let two =
        "global int a = 3; global long b[4]; kernel void f(global int *p) { *p = a + (int)b[1]; }";
    assert!(total(two) >= 36);
}
