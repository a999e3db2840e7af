//! Build options one by one, and what kernels tell of their declaration.

use pumice_tests::sys::*;
use pumice_tests::{info_text, Setup};

/// Every option of the specification (OpenCL API, 5.8.6) builds alone, and the result works.
#[test]
fn every_option_builds() {
    let setup = Setup::new();
    let source = "kernel void f(global float *p) { p[0] = p[0] * 2.0f + 1.0f; }";
    for option in [
        "-D X",
        "-DX=1",
        "-I /tmp",
        "-I/tmp",
        "-cl-single-precision-constant",
        "-cl-denorms-are-zero",
        "-cl-fp32-correctly-rounded-divide-sqrt",
        "-cl-opt-disable",
        "-cl-strict-aliasing",
        "-cl-mad-enable",
        "-cl-no-signed-zeros",
        "-cl-unsafe-math-optimizations",
        "-cl-finite-math-only",
        "-cl-fast-relaxed-math",
        "-cl-uniform-work-group-size",
        "-cl-no-subgroup-ifp",
        "-w",
        "-Werror",
        "-cl-std=CL1.1",
        "-cl-std=CL1.2",
        "-cl-std=CL2.0",
        "-cl-std=CL3.0",
        "-cl-kernel-arg-info",
        "-g",
    ] {
        for options in [option.to_owned(), format!("-cl-std=CL3.0 {option}")] {
            if options.matches("-cl-std").count() > 1 {
                continue;
            }
            let program = match setup.try_build(source, &options) {
                Ok(program) => program,
                // A version that the device does not list.
                Err(_) if option == "-cl-std=CL2.0" => continue,
                Err(log) => panic!("{options}: {log}"),
            };
            let kernel = setup.kernel(&program, "f");
            let buffer = setup.buffer_of(&[3f32]);
            kernel.set_buffer(0, &buffer);
            setup.run(&kernel, &[1], None);
            assert_eq!(setup.read::<f32>(&buffer, 1), [7.0], "{options}");
        }
    }
}

/// CL_KERNEL_ATTRIBUTES as the source has them: unsigned types too, for which SPIR-V has no word.
#[test]
fn attributes_of_kernels() {
    let setup = Setup::new();
    for hint in [
        "uint4", "int4", "float2", "uchar16", "ulong", "short3", "half8",
    ] {
        let source = format!(
            "kernel __attribute__((vec_type_hint({hint}))) __attribute__((work_group_size_hint(8, 4, 2))) void f() {{}}
             kernel __attribute__((reqd_work_group_size(4, 1, 1))) void g() {{}}"
        );
        let program = setup.build(&source);
        let attributes = |name: &str| {
            info_text!(
                clGetKernelInfo(setup.kernel(&program, name).0),
                CL_KERNEL_ATTRIBUTES
            )
        };
        let f = attributes("f");
        assert!(f.contains(&format!("vec_type_hint({hint})")), "{f}");
        assert!(f.contains("work_group_size_hint(8,4,2)"), "{f}");
        assert_eq!(attributes("g"), "reqd_work_group_size(4,1,1)");
    }
}
