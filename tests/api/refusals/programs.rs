//! Programs, kernels, arguments, launches.

use super::Seen;
use pumice_tests::sys::*;
use pumice_tests::{call, info_value, ok, user_data, Setup};
use std::ffi::c_void;
use std::ptr::{null, null_mut};

const KERNELS: &str = "
    kernel void plain(global int *p, int n, local int *l) { l[0] = n; p[0] = l[0]; }
    kernel __attribute__((reqd_work_group_size(4, 2, 1))) void fixed(global int *p) { p[get_local_id(0)] = 1; }";

#[test]
fn programs_and_kernels() {
    let setup = Setup::new();
    let other = Setup::new();
    let mut seen = Seen::default();
    let (c, q, d) = (setup.context.0, setup.queue.0, setup.device);
    let (n, e) = (null(), null_mut());
    let value = CL_INVALID_VALUE;
    let none = null_mut::<c_void>();
    let source = setup.program(KERNELS);
    let s = source.0;
    let far = user_data(1);
    makes_none!(
        seen,
        "not built",
        CL_INVALID_PROGRAM_EXECUTABLE,
        clCreateKernel(s, c"plain".as_ptr())
    );
    let device = d;
    gives!(
        seen,
        "no list",
        value,
        clBuildProgram(s, 1, null(), null(), None, none)
    );
    gives!(
        seen,
        "an empty list",
        value,
        clBuildProgram(s, 0, &device, null(), None, none)
    );
    gives!(
        seen,
        "data for no function",
        value,
        clBuildProgram(s, 1, &device, null(), None, far)
    );
    gives!(
        seen,
        "no device",
        CL_INVALID_DEVICE,
        clBuildProgram(s, 1, &none, null(), None, none)
    );
    gives!(
        seen,
        "options",
        CL_INVALID_BUILD_OPTIONS,
        clBuildProgram(s, 1, &device, c"-fno-such-thing".as_ptr(), None, none)
    );
    gives!(
        seen,
        "no list",
        value,
        clCompileProgram(s, 1, null(), null(), 0, null(), null_mut(), None, none)
    );
    gives!(
        seen,
        "data for no function",
        value,
        clCompileProgram(s, 1, &device, null(), 0, null(), null_mut(), None, far)
    );
    gives!(
        seen,
        "headers without names",
        value,
        clCompileProgram(s, 1, &device, null(), 1, &s, null_mut(), None, none)
    );
    let name = c"a.h".as_ptr();
    let mut names = [name];
    gives!(
        seen,
        "names without headers",
        value,
        clCompileProgram(
            s,
            1,
            &device,
            null(),
            0,
            null(),
            names.as_mut_ptr(),
            None,
            none
        )
    );
    gives!(
        seen,
        "options",
        CL_INVALID_COMPILER_OPTIONS,
        clCompileProgram(
            s,
            1,
            &device,
            c"-fno-such-thing".as_ptr(),
            0,
            null(),
            null_mut(),
            None,
            none
        )
    );
    let strange = other.program(" ");
    gives!(
        seen,
        "headers of another context",
        CL_INVALID_CONTEXT,
        clCompileProgram(
            s,
            1,
            &device,
            null(),
            1,
            &strange.0,
            names.as_mut_ptr(),
            None,
            none
        )
    );
    makes_none!(
        seen,
        "nothing",
        value,
        clLinkProgram(c, 1, &device, null(), 0, null(), None, none)
    );
    makes_none!(
        seen,
        "no list",
        value,
        clLinkProgram(c, 1, &device, null(), 1, null(), None, none)
    );
    makes_none!(
        seen,
        "no program",
        CL_INVALID_PROGRAM,
        clLinkProgram(c, 1, &device, null(), 1, &none, None, none)
    );
    makes_none!(
        seen,
        "of another context",
        CL_INVALID_CONTEXT,
        clLinkProgram(c, 1, &device, null(), 1, &strange.0, None, none)
    );
    makes_none!(
        seen,
        "not compiled",
        CL_INVALID_OPERATION,
        clLinkProgram(c, 1, &device, null(), 1, &s, None, none)
    );
    makes_none!(
        seen,
        "data for no function",
        value,
        clLinkProgram(c, 1, &device, null(), 1, &s, None, far)
    );
    makes_none!(
        seen,
        "an empty device list",
        value,
        clLinkProgram(c, 0, &device, null(), 1, &s, None, none)
    );
    makes_none!(
        seen,
        "no device",
        CL_INVALID_DEVICE,
        clLinkProgram(c, 1, &none, null(), 1, &s, None, none)
    );
    ok!(clCompileProgram(
        s,
        1,
        &device,
        null(),
        0,
        null(),
        null_mut(),
        None,
        none
    ));
    makes_none!(
        seen,
        "options",
        CL_INVALID_LINKER_OPTIONS,
        clLinkProgram(
            c,
            1,
            &device,
            c"-fno-such-thing".as_ptr(),
            1,
            &s,
            None,
            none
        )
    );
    let constant = 1u32;
    let v = (&raw const constant).cast::<c_void>();
    gives!(
        seen,
        "of source",
        CL_INVALID_PROGRAM,
        clSetProgramSpecializationConstant(s, 0, 4, v)
    );
    makes_none!(seen, "nothing", value, clCreateProgramWithIL(c, null(), 16));
    makes_none!(seen, "nothing", value, clCreateProgramWithIL(c, v, 0));
    makes_none!(seen, "no SPIR-V", value, clCreateProgramWithIL(c, v, 4));
    makes_none!(
        seen,
        "no name",
        value,
        clCreateProgramWithBuiltInKernels(c, 1, &device, null())
    );
    makes_none!(
        seen,
        "unknown",
        value,
        clCreateProgramWithBuiltInKernels(c, 1, &device, c"x".as_ptr())
    );
    makes_none!(
        seen,
        "no devices",
        value,
        clCreateProgramWithBuiltInKernels(c, 0, &device, c"x".as_ptr())
    );
    let built = setup.build(KERNELS);
    let kernel = setup.kernel(&built, "plain");
    let fixed = setup.kernel(&built, "fixed");
    let (b, k) = (built.0, kernel.0);
    gives!(
        seen,
        "with kernels",
        CL_INVALID_OPERATION,
        clBuildProgram(b, 1, &device, null(), None, none)
    );
    gives!(
        seen,
        "with kernels",
        CL_INVALID_OPERATION,
        clCompileProgram(b, 1, &device, null(), 0, null(), null_mut(), None, none)
    );
    makes_none!(
        seen,
        "unknown",
        CL_INVALID_KERNEL_NAME,
        clCreateKernel(b, c"none".as_ptr())
    );
    makes_none!(seen, "no name", value, clCreateKernel(b, null()));
    let mut room = null_mut();
    gives!(
        seen,
        "no room",
        value,
        clCreateKernelsInProgram(b, 1, &mut room, null_mut())
    );
    makes_none!(
        seen,
        "no kernel",
        CL_INVALID_KERNEL,
        clCloneKernel(null_mut())
    );
    makes_none!(seen, "a program", CL_INVALID_KERNEL, clCloneKernel(b));
    // Arguments.
    let buffer = setup.buffer(64);
    let p = (&raw const buffer.0).cast::<c_void>();
    gives!(
        seen,
        "index",
        CL_INVALID_ARG_INDEX,
        clSetKernelArg(k, 3, 8, p)
    );
    gives!(
        seen,
        "size",
        CL_INVALID_ARG_SIZE,
        clSetKernelArg(k, 0, 4, p)
    );
    gives!(
        seen,
        "size",
        CL_INVALID_ARG_SIZE,
        clSetKernelArg(k, 1, 8, v)
    );
    gives!(
        seen,
        "no value",
        CL_INVALID_ARG_VALUE,
        clSetKernelArg(k, 1, 4, null())
    );
    gives!(
        seen,
        "a value of local memory",
        CL_INVALID_ARG_VALUE,
        clSetKernelArg(k, 2, 4, v)
    );
    let queue = (&raw const q).cast::<c_void>();
    gives!(
        seen,
        "a queue",
        CL_INVALID_MEM_OBJECT,
        clSetKernelArg(k, 0, 8, queue)
    );
    let one = 1usize;
    gives!(
        seen,
        "no arguments",
        CL_INVALID_KERNEL_ARGS,
        clEnqueueNDRangeKernel(q, k, 1, null(), &one, null(), 0, n, e)
    );
    gives!(
        seen,
        "no arguments",
        CL_INVALID_KERNEL_ARGS,
        clEnqueueTask(q, k, 0, n, e)
    );
    kernel.set_buffer(0, &buffer).set(1, 5i32).set_local(2, 64);
    fixed.set_buffer(0, &buffer);
    let other_queue = other.queue.0;
    gives!(
        seen,
        "of another context",
        CL_INVALID_CONTEXT,
        clEnqueueNDRangeKernel(other_queue, k, 1, null(), &one, null(), 0, n, e)
    );
    let (most, two) = ([usize::MAX; 3], [4usize, 4, 1]);
    gives!(
        seen,
        "dimensions",
        CL_INVALID_WORK_DIMENSION,
        clEnqueueNDRangeKernel(q, k, 4, null(), two.as_ptr(), null(), 0, n, e)
    );
    gives!(
        seen,
        "offset",
        CL_INVALID_GLOBAL_OFFSET,
        clEnqueueNDRangeKernel(q, k, 1, most.as_ptr(), &one, null(), 0, n, e)
    );
    gives!(
        seen,
        "size",
        // Every size_t is a size, but so many work-items take more dispatches than one command may have.
        CL_OUT_OF_RESOURCES,
        clEnqueueNDRangeKernel(q, k, 1, null(), most.as_ptr(), null(), 0, n, e)
    );
    let group = CL_INVALID_WORK_GROUP_SIZE;
    let f = fixed.0;
    gives!(
        seen,
        "not what is required",
        group,
        clEnqueueNDRangeKernel(q, f, 2, null(), two.as_ptr(), two.as_ptr(), 0, n, e)
    );
    gives!(
        seen,
        "not what is required",
        group,
        clEnqueueTask(q, f, 0, n, e)
    );
    let zero = [0usize; 3];
    gives!(
        seen,
        "zero",
        group,
        clEnqueueNDRangeKernel(q, k, 1, null(), &one, zero.as_ptr(), 0, n, e)
    );
    gives!(
        seen,
        "overflow",
        group,
        clEnqueueNDRangeKernel(q, k, 3, null(), two.as_ptr(), most.as_ptr(), 0, n, e)
    );
    // Questions.
    let mut answer = [0usize; 4];
    let r = answer.as_mut_ptr().cast::<c_void>();
    gives!(
        seen,
        "unknown",
        value,
        clGetKernelWorkGroupInfo(k, d, 0x1, 8, r, null_mut())
    );
    gives!(
        seen,
        "no room",
        value,
        clGetKernelWorkGroupInfo(k, d, CL_KERNEL_WORK_GROUP_SIZE, 4, r, null_mut())
    );
    gives!(
        seen,
        "of a kernel",
        value,
        clGetKernelWorkGroupInfo(k, d, CL_KERNEL_GLOBAL_WORK_SIZE, 24, r, null_mut())
    );
    gives!(
        seen,
        "no device",
        CL_INVALID_DEVICE,
        clGetKernelWorkGroupInfo(k, q, CL_KERNEL_WORK_GROUP_SIZE, 8, r, null_mut())
    );
    let text = setup
        .try_build(KERNELS, "-cl-kernel-arg-info")
        .unwrap_or_else(|log| panic!("{log}"));
    let told = setup.kernel(&text, "plain");
    gives!(
        seen,
        "index",
        CL_INVALID_ARG_INDEX,
        clGetKernelArgInfo(told.0, 9, CL_KERNEL_ARG_NAME, 0, null_mut(), null_mut())
    );
    gives!(
        seen,
        "unknown",
        value,
        clGetKernelArgInfo(told.0, 0, 0x1, 0, null_mut(), null_mut())
    );
    let sub_groups = info_value!(u32, clGetDeviceInfo(d), CL_DEVICE_MAX_NUM_SUB_GROUPS);
    if sub_groups > 0 {
        let shape = [8usize];
        let i = shape.as_ptr().cast::<c_void>();
        let count = CL_KERNEL_MAX_SUB_GROUP_SIZE_FOR_NDRANGE;
        gives!(
            seen,
            "unknown",
            value,
            clGetKernelSubGroupInfo(k, d, 0x1, 8, i, 8, r, null_mut())
        );
        gives!(
            seen,
            "no input",
            value,
            clGetKernelSubGroupInfo(k, d, count, 8, null(), 8, r, null_mut())
        );
        gives!(
            seen,
            "odd input",
            value,
            clGetKernelSubGroupInfo(k, d, count, 7, i, 8, r, null_mut())
        );
        gives!(
            seen,
            "no room",
            value,
            clGetKernelSubGroupInfo(k, d, count, 8, i, 4, r, null_mut())
        );
        gives!(
            seen,
            "no device",
            CL_INVALID_DEVICE,
            clGetKernelSubGroupInfo(k, q, count, 8, i, 8, r, null_mut())
        );
        gives!(
            seen,
            "no kernel",
            CL_INVALID_KERNEL,
            clGetKernelSubGroupInfo(b, d, count, 8, i, 8, r, null_mut())
        );
    }
    // What a kernel is told.
    gives!(seen, "unknown", value, clSetKernelExecInfo(k, 0x1, 8, p));
    let svm = info_value!(u64, clGetDeviceInfo(d), CL_DEVICE_SVM_CAPABILITIES);
    let (list, system) = (
        CL_KERNEL_EXEC_INFO_SVM_PTRS,
        CL_KERNEL_EXEC_INFO_SVM_FINE_GRAIN_SYSTEM,
    );
    if svm == 0 {
        gives!(
            seen,
            "no SVM",
            CL_INVALID_OPERATION,
            clSetKernelExecInfo(k, list, 8, p)
        );
        gives!(
            seen,
            "no SVM",
            CL_INVALID_OPERATION,
            clSetKernelArgSVMPointer(k, 0, null())
        );
    } else {
        gives!(
            seen,
            "no list",
            value,
            clSetKernelExecInfo(k, list, 8, null())
        );
        gives!(seen, "odd size", value, clSetKernelExecInfo(k, list, 7, p));
        gives!(
            seen,
            "odd size",
            value,
            clSetKernelExecInfo(k, system, 3, v)
        );
        gives!(
            seen,
            "no value",
            value,
            clSetKernelExecInfo(k, system, 4, null())
        );
        gives!(
            seen,
            "index",
            CL_INVALID_ARG_INDEX,
            clSetKernelArgSVMPointer(k, 7, null())
        );
        gives!(
            seen,
            "no pointer",
            CL_INVALID_ARG_VALUE,
            clSetKernelArgSVMPointer(k, 1, null())
        );
    }
    ok!(clFinish(q));
}
