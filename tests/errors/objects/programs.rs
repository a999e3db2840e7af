//! Programs and kernels: the calls that create, build and change them.

use crate::table::{Table, NOT_HERE};
use crate::world::World;
use pumice_tests::sys::*;
use pumice_tests::{call, ext, info_value};
use std::ffi::c_void;
use std::ptr::{null, null_mut};

pub fn rows(t: &mut Table) {
    rows! { t, w;
        clCreateProgramWithSource {
            CL_INVALID_CONTEXT "not a context" = w.bad(|c|
                makes!(w, clCreateProgramWithSource(c, 1, [c"".as_ptr()].as_mut_ptr(), null())));
            CL_INVALID_VALUE "no strings" = [makes!(w, clCreateProgramWithSource(w.s.context.0, 0, [c"".as_ptr()].as_mut_ptr(), null())),
                makes!(w, clCreateProgramWithSource(w.s.context.0, 1, null_mut(), null())),
                makes!(w, clCreateProgramWithSource(w.s.context.0, 1, [null()].as_mut_ptr(), null()))];
            CL_INVALID_VALUE "a string that is none" = makes!(w, clCreateProgramWithSource(w.s.context.0, 2,
                [c"".as_ptr(), null()].as_mut_ptr(), null()));
        }
        clCreateProgramWithBinary {
            CL_INVALID_VALUE "no devices" = [with_binary(w, 0, &w.s.device, b"x"), with_binary(w, 1, null(), b"x")];
            CL_INVALID_VALUE "an empty binary" = with_binary(w, 1, &w.s.device, b"");
            CL_INVALID_DEVICE "not a device" = with_binary(w, 1, &w.user.0, b"x");
            CL_INVALID_BINARY "not a binary" = with_binary(w, 1, &w.s.device, b"not a binary");
            CL_INVALID_CONTEXT "not a context" = w.bad(|c| { let (length, mut at) = (1, b"x".as_ptr());
                makes!(w, clCreateProgramWithBinary(c, 1, &w.s.device, &length, &mut at, null_mut())) });
            CL_INVALID_VALUE "no lengths, or no binaries" = { let (length, mut at) = (1, b"x".as_ptr());
                [makes!(w, clCreateProgramWithBinary(w.s.context.0, 1, &w.s.device, null(), &mut at, null_mut())),
                makes!(w, clCreateProgramWithBinary(w.s.context.0, 1, &w.s.device, &length, null_mut(), null_mut())),
                makes!(w, clCreateProgramWithBinary(w.s.context.0, 1, &w.s.device, &length, [null()].as_mut_ptr(), null_mut()))] };
        }
        clCreateProgramWithIL {
            CL_INVALID_CONTEXT "not a context" = w.bad(|c| makes!(w, clCreateProgramWithIL(c, w.place(), 20)));
            CL_INVALID_VALUE "nothing" = [makes!(w, clCreateProgramWithIL(w.s.context.0, null(), 20)),
                makes!(w, clCreateProgramWithIL(w.s.context.0, w.place(), 0))];
            CL_INVALID_VALUE "not SPIR-V" = makes!(w, clCreateProgramWithIL(w.s.context.0, w.place(), 20));
            CL_INVALID_OPERATION "no intermediate language" => never "the devices here have it";
            CL_INVALID_VALUE "of no length" = makes!(w, clCreateProgramWithIL(w.s.context.0, w.place(), 0));
        }
        clCreateProgramWithBuiltInKernels {
            CL_INVALID_VALUE "no names" = makes!(w, clCreateProgramWithBuiltInKernels(w.s.context.0, 1, &w.s.device, null()));
            CL_INVALID_VALUE "names that are none" =
                makes!(w, clCreateProgramWithBuiltInKernels(w.s.context.0, 1, &w.s.device, c"none".as_ptr()));
            CL_INVALID_CONTEXT "not a context" = w.bad(|c| makes!(w, clCreateProgramWithBuiltInKernels(c, 1, &w.s.device, c"none".as_ptr())));
            CL_INVALID_DEVICE "not a device" =
                makes!(w, clCreateProgramWithBuiltInKernels(w.s.context.0, 1, &w.user.0, c"none".as_ptr()));
            CL_INVALID_VALUE "no devices" = makes!(w, clCreateProgramWithBuiltInKernels(w.s.context.0, 0, &w.s.device, c"none".as_ptr()));
        }
        clBuildProgram {
            CL_INVALID_PROGRAM "not a program" = w.bad(|p| call!(clBuildProgram(p, 0, null(), null(), None, null_mut())));
            CL_INVALID_VALUE "devices without a list" = [call!(clBuildProgram(w.unbuilt.0, 1, null(), null(), None, null_mut())),
                call!(clBuildProgram(w.unbuilt.0, 0, &w.s.device, null(), None, null_mut()))];
            CL_INVALID_VALUE "user data, no function" = call!(clBuildProgram(w.unbuilt.0, 0, null(), null(), None, w.place()));
            CL_INVALID_DEVICE "not a device" = call!(clBuildProgram(w.unbuilt.0, 1, &w.user.0, null(), None, null_mut()));
            CL_INVALID_OPERATION "there are kernels" = call!(clBuildProgram(w.program.0, 0, null(), null(), None, null_mut()));
            CL_INVALID_BUILD_OPTIONS "an option that is none" = build(w, "kernel void k() {}", c"-no-such-option");
            CL_BUILD_PROGRAM_FAILURE "not OpenCL C" = build(w, "no such thing", c"");
            CL_COMPILER_NOT_AVAILABLE "no compiler" => never "needs a machine without clang";
            CL_INVALID_BINARY "no valid binary" => never "binaries are looked at when the program is made";
            CL_INVALID_OPERATION "a build is under way" = under_way(w, |p| call!(clBuildProgram(p, 0, null(), null(), None, null_mut())));
            CL_INVALID_OPERATION "a program that was linked" =
                call!(clBuildProgram(w.linked.0, 0, null(), null(), None, null_mut()));
            CL_INVALID_VALUE "a list without a count" = call!(clBuildProgram(w.unbuilt.0, 0, &w.s.device, null(), None, null_mut()));
        }
        clCompileProgram {
            CL_INVALID_PROGRAM "not a program" = w.bad(|p|
                call!(clCompileProgram(p, 0, null(), null(), 0, null(), null_mut(), None, null_mut())));
            CL_INVALID_VALUE "devices without a list" =
                call!(clCompileProgram(w.unbuilt.0, 1, null(), null(), 0, null(), null_mut(), None, null_mut()));
            CL_INVALID_VALUE "headers without a count" =
                call!(clCompileProgram(w.unbuilt.0, 0, null(), null(), 0, &w.unbuilt.0, null_mut(), None, null_mut()));
            CL_INVALID_VALUE "user data, no function" =
                call!(clCompileProgram(w.unbuilt.0, 0, null(), null(), 0, null(), null_mut(), None, w.place()));
            CL_INVALID_DEVICE "not a device" =
                call!(clCompileProgram(w.unbuilt.0, 1, &w.user.0, null(), 0, null(), null_mut(), None, null_mut()));
            CL_INVALID_OPERATION "there are kernels" =
                call!(clCompileProgram(w.program.0, 0, null(), null(), 0, null(), null_mut(), None, null_mut()));
            CL_COMPILER_NOT_AVAILABLE "no compiler" => never "needs a machine without clang";
            CL_COMPILE_PROGRAM_FAILURE "not OpenCL C" = compile(w, "no such thing", c"");
            CL_INVALID_COMPILER_OPTIONS "an option that is none" = compile(w, "kernel void k() {}", c"-no-such-option");
            CL_INVALID_CONTEXT "a header of another context" = headers(w, &[w.u_foreign.0], &[c"a.h".as_ptr()], 1);
            CL_INVALID_OPERATION "a build is under way" = under_way(w, |p|
                call!(clCompileProgram(p, 0, null(), null(), 0, null(), null_mut(), None, null_mut())));
            CL_INVALID_OPERATION "a program that was linked" =
                call!(clCompileProgram(w.linked.0, 0, null(), null(), 0, null(), null_mut(), None, null_mut()));
            CL_INVALID_OPERATION "not made with IL" => never "part of the sentence before";
            CL_INVALID_OPERATION "not made with source" => never "part of the sentence before";
            CL_INVALID_VALUE "a list without a count" =
                call!(clCompileProgram(w.unbuilt.0, 0, &w.s.device, null(), 0, null(), null_mut(), None, null_mut()));
            CL_INVALID_VALUE "a count without headers" = headers(w, &[], &[], 1);
            CL_INVALID_VALUE "headers without names, and names without headers" = [headers(w, &[w.unbuilt.0], &[], 1),
                headers(w, &[], &[c"a.h".as_ptr()], 1), headers(w, &[], &[c"a.h".as_ptr()], 0)];
        }
        clLinkProgram {
            CL_INVALID_VALUE "no programs" =
                makes!(w, clLinkProgram(w.s.context.0, 0, null(), null(), 0, null(), None, null_mut()));
            CL_INVALID_VALUE "user data, no function" =
                makes!(w, clLinkProgram(w.s.context.0, 0, null(), null(), 1, &w.unbuilt.0, None, w.place()));
            CL_INVALID_PROGRAM "not a program" = makes!(w, clLinkProgram(w.s.context.0, 0, null(), null(), 1, &w.user.0, None, null_mut()));
            CL_INVALID_DEVICE "not a device" =
                makes!(w, clLinkProgram(w.s.context.0, 1, &w.user.0, null(), 1, &w.unbuilt.0, None, null_mut()));
            CL_LINKER_NOT_AVAILABLE "no linker" => never "the linker is part of the library";
            CL_INVALID_CONTEXT "not a context" = w.bad(|c| makes!(w, clLinkProgram(c, 0, null(), null(), 1, &w.unbuilt.0, None, null_mut())));
            CL_INVALID_CONTEXT "a program of another context" =
                makes!(w, clLinkProgram(w.s.context.0, 0, null(), null(), 1, &w.u_foreign.0, None, null_mut()));
            CL_INVALID_LINKER_OPTIONS "an option that is none" =
                makes!(w, clLinkProgram(w.s.context.0, 0, null(), c"-no-such-option".as_ptr(), 1, &w.compiled.0, None, null_mut()));
            CL_INVALID_OPERATION "not compiled" =
                makes!(w, clLinkProgram(w.s.context.0, 0, null(), null(), 1, &w.unbuilt.0, None, null_mut()));
            CL_INVALID_OPERATION "a build is under way" = under_way(w, |p|
                makes!(w, clLinkProgram(w.s.context.0, 0, null(), null(), 1, &p, None, null_mut())));
            CL_INVALID_VALUE "devices without a list" =
                makes!(w, clLinkProgram(w.s.context.0, 1, null(), null(), 1, &w.compiled.0, None, null_mut()));
            CL_INVALID_VALUE "a list without a count" =
                makes!(w, clLinkProgram(w.s.context.0, 0, &w.s.device, null(), 1, &w.compiled.0, None, null_mut()));
            CL_INVALID_VALUE "programs without a count" =
                makes!(w, clLinkProgram(w.s.context.0, 0, null(), null(), 0, &w.compiled.0, None, null_mut()));
            CL_INVALID_VALUE "a count without programs" =
                makes!(w, clLinkProgram(w.s.context.0, 0, null(), null(), 1, null(), None, null_mut()));
            CL_LINK_PROGRAM_FAILURE "a function that is nowhere" = w.unlinkable();
        }
        clUnloadPlatformCompiler {
            CL_INVALID_PLATFORM "not a platform" = call!(clUnloadPlatformCompiler(w.user.0));
        }
        clSetProgramReleaseCallback {
            CL_INVALID_VALUE "no function" => never "the operation is refused before: no device has destructors";
            CL_INVALID_PROGRAM "not a program" = w.bad(|p| call!(clSetProgramReleaseCallback(p, Some(nothing_of_context), null_mut())));
            CL_INVALID_OPERATION "no device has destructors" =
                call!(clSetProgramReleaseCallback(w.program.0, Some(nothing_of_context), null_mut()));
        }
        clGetProgramInfo {
            CL_INVALID_PROGRAM_EXECUTABLE "nothing is built" = [CL_PROGRAM_NUM_KERNELS, CL_PROGRAM_KERNEL_NAMES]
                .map(|n| call!(clGetProgramInfo(w.unbuilt.0, n, 64, w.place(), w.size())));
        }
        clGetProgramBuildInfo {
            CL_INVALID_DEVICE "not a device of the program" = w.bad(|d|
                call!(clGetProgramBuildInfo(w.program.0, d, CL_PROGRAM_BUILD_STATUS, 4, w.place(), w.size())));
        }
        clCreateKernel {
            CL_INVALID_PROGRAM "not a program" = w.bad(|p| makes!(w, clCreateKernel(p, c"plain".as_ptr())));
            CL_INVALID_PROGRAM_EXECUTABLE "nothing is built" = makes!(w, clCreateKernel(w.unbuilt.0, c"plain".as_ptr()));
            CL_INVALID_KERNEL_NAME "no such kernel" = makes!(w, clCreateKernel(w.program.0, c"none".as_ptr()));
            CL_INVALID_VALUE "no name" = makes!(w, clCreateKernel(w.program.0, null()));
            CL_INVALID_KERNEL_DEFINITION "two devices, two signatures" => never "contexts here have one device";
        }
        clCreateKernelsInProgram {
            CL_INVALID_PROGRAM "not a program" = w.bad(|p| call!(clCreateKernelsInProgram(p, 8, w.place().cast(), null_mut())));
            CL_INVALID_PROGRAM_EXECUTABLE "nothing is built" =
                call!(clCreateKernelsInProgram(w.unbuilt.0, 8, w.place().cast(), null_mut()));
            CL_INVALID_VALUE "no room for all" = call!(clCreateKernelsInProgram(w.program.0, 1, w.place().cast(), null_mut()));
        }
        clCloneKernel {
            CL_INVALID_KERNEL "not a kernel" = w.bad(|k| makes!(w, clCloneKernel(k)));
        }
        clSetKernelArg {
            CL_INVALID_KERNEL "not a kernel" = w.bad(|k| set(w, k, 1, 4, w.place()));
            CL_INVALID_ARG_INDEX "none of so many" = set(w, w.kernel.0, 3, 4, w.place());
            CL_INVALID_MEM_OBJECT "not a buffer" = set(w, w.kernel.0, 0, 8, (&raw const w.user.0).cast());
            CL_INVALID_MEM_OBJECT "an image for a buffer" = set(w, w.kernel.0, 0, 8, (&raw const w.i.0).cast());
            CL_INVALID_MEM_OBJECT "a buffer for an image" = set(w, w.pictures.0, 0, 8, (&raw const w.b.0).cast());
            CL_INVALID_ARG_SIZE "of a buffer" = set(w, w.kernel.0, 0, 4, (&raw const w.b.0).cast());
            CL_INVALID_ARG_SIZE "of a sampler" = set(w, w.pictures.0, 2, 4, (&raw const w.sampler).cast());
            CL_INVALID_ARG_SIZE "of a number" = [0, 2, 8].map(|size| set(w, w.kernel.0, 1, size, w.place()));
            CL_INVALID_ARG_SIZE "of local memory" => never "an error before OpenCL 3.1 only";
            CL_INVALID_ARG_VALUE "an image that is only written, to read" = set(w, w.pictures.0, 0, 8, (&raw const w.i_write.0).cast());
            CL_INVALID_ARG_VALUE "an image that is only read, to write" =
                [&w.i_read.0, &w.i_immutable.0].map(|i| set(w, w.pictures.0, 1, 8, (&raw const *i).cast()));
            CL_INVALID_SAMPLER "not a sampler" = set(w, w.pictures.0, 2, 8, (&raw const w.b.0).cast());
            CL_INVALID_MEM_OBJECT "no object where only one will do" = set(w, w.pictures.0, 0, 8, null());
            CL_INVALID_ARG_SIZE "of a device queue" = w.if_queue_argument(|k| set(w, k, 0, 4, (&raw const w.s.queue.0).cast()));
            CL_INVALID_CONTEXT "an object of another context" = [(&w.kernel, &w.foreign), (&w.pictures, &w.i_foreign)]
                .map(|(k, m)| set(w, k.0, 0, 8, (&raw const m.0).cast()));
            CL_INVALID_CONTEXT "a sampler of another context" = set(w, w.pictures.0, 2, 8, (&raw const w.sampler_foreign).cast());
            CL_INVALID_DEVICE_QUEUE "a queue of the host" = w.if_queue_argument(|k| set(w, k, 0, 8, (&raw const w.s.queue.0).cast()));
            CL_MAX_SIZE_RESTRICTION_EXCEEDED "larger than the argument may be" =
                [set(w, w.bounded.0, 0, 8, (&raw const w.b.0).cast()), set(w, w.bounded.0, 1, 9, null())];
            CL_INVALID_ARG_VALUE "no value, or one of local memory" = [set(w, w.kernel.0, 1, 4, null()), set(w, w.kernel.0, 2, 4, w.place())];
        }
        clSetKernelArgSVMPointer {
            CL_INVALID_KERNEL "not a kernel" = w.bad(|k| call!(clSetKernelArgSVMPointer(k, 0, w.svm)));
            CL_INVALID_ARG_INDEX "none of so many" = call!(clSetKernelArgSVMPointer(w.kernel.0, 3, w.svm));
            CL_INVALID_OPERATION "no shared virtual memory" => never "the devices here have it";
            CL_INVALID_ARG_VALUE "not an address" = call!(clSetKernelArgSVMPointer(w.kernel.0, 1, w.svm));
            CL_INVALID_ARG_VALUE "for a number" = call!(clSetKernelArgSVMPointer(w.kernel.0, 1, null()));
        }
        clSetKernelExecInfo {
            CL_INVALID_KERNEL "not a kernel" = w.bad(|k| call!(clSetKernelExecInfo(k, CL_KERNEL_EXEC_INFO_SVM_PTRS, 8,
                (&raw const w.svm).cast())));
            CL_INVALID_VALUE "a name that is none" = call!(clSetKernelExecInfo(w.kernel.0, 0xfff1, 8, (&raw const w.svm).cast()));
            CL_INVALID_VALUE "of no such size" = [3, 9].map(|size| call!(clSetKernelExecInfo(w.kernel.0, CL_KERNEL_EXEC_INFO_SVM_PTRS, size,
                (&raw const w.svm).cast())));
            CL_INVALID_OPERATION "no shared virtual memory" => never "the devices here have it";
            CL_INVALID_OPERATION "no memory of the system" = if_no_system(w, || call!(clSetKernelExecInfo(w.kernel.0,
                CL_KERNEL_EXEC_INFO_SVM_FINE_GRAIN_SYSTEM, 4, (&raw const YES).cast())));
            CL_INVALID_OPERATION "no addresses of buffers" => never "the devices here have them";
            CL_INVALID_OPERATION "no unified shared memory" => never "the devices here have it";
            CL_INVALID_OPERATION "no allocations of the host" => never "the devices here have them";
            CL_INVALID_OPERATION "no allocations of the device" => never "the devices here have them";
            CL_INVALID_OPERATION "no shared allocations" => never "the devices here have them";
            CL_INVALID_VALUE "no list" = call!(clSetKernelExecInfo(w.kernel.0, CL_KERNEL_EXEC_INFO_SVM_PTRS, 8, null()));
            CL_INVALID_VALUE "no value, or of no such size" = [(3, (&raw const YES).cast()), (4, null())].map(|(size, value)|
                call!(clSetKernelExecInfo(w.kernel.0, CL_KERNEL_EXEC_INFO_SVM_FINE_GRAIN_SYSTEM, size, value)));
        }
        clGetKernelArgInfo {
            CL_KERNEL_ARG_INFO_NOT_AVAILABLE "built without" =
                call!(clGetKernelArgInfo(w.bare.0, 0, CL_KERNEL_ARG_NAME, 64, w.place(), w.size()));
            CL_INVALID_ARG_INDEX "none of so many" = call!(clGetKernelArgInfo(w.kernel.0, 3, CL_KERNEL_ARG_NAME, 64, w.place(), w.size()));
        }
        clGetKernelWorkGroupInfo {
            CL_INVALID_DEVICE "not a device of the kernel" =
                call!(clGetKernelWorkGroupInfo(w.kernel.0, w.user.0, CL_KERNEL_WORK_GROUP_SIZE, 8, w.place(), w.size()));
            CL_INVALID_VALUE "the global size of a kernel that is not built in" =
                call!(clGetKernelWorkGroupInfo(w.kernel.0, w.s.device, CL_KERNEL_GLOBAL_WORK_SIZE, 24, w.place(), w.size()));
        }
        clGetKernelSubGroupInfo {
            CL_INVALID_DEVICE "not a device of the kernel" =
                call!(clGetKernelSubGroupInfo(w.kernel.0, w.user.0, CL_KERNEL_MAX_NUM_SUB_GROUPS, 0, null(), 8, w.place(), w.size()));
            CL_INVALID_VALUE "no input" = call!(clGetKernelSubGroupInfo(w.kernel.0, w.s.device,
                CL_KERNEL_MAX_SUB_GROUP_SIZE_FOR_NDRANGE, 8, null(), 8, w.place(), w.size()));
        }
        clSetProgramSpecializationConstant {
            CL_INVALID_PROGRAM "not a program, or one of source" = { let ask = |p|
                call!(clSetProgramSpecializationConstant(p, 0, 4, w.place()));
                let mut all = w.bad(ask); all.push(ask(w.unbuilt.0)); all };
            CL_COMPILER_NOT_AVAILABLE "no compiler" => never "needs a machine without clang";
            CL_INVALID_OPERATION "no intermediate language" => never "the devices here have it";
            CL_INVALID_PROGRAM "a language without such constants" => never "there is one language, SPIR-V";
            CL_INVALID_SPEC_ID "not a constant" = specialise(w, 99, 4, w.place());
            CL_INVALID_VALUE "of another size" = [0, 1, 8].map(|size| specialise(w, 7, size, w.place()));
            CL_INVALID_VALUE "no value" = specialise(w, 7, 4, null());
        }
        clCreateProgramWithILKHR {
            CL_INVALID_CONTEXT "not a context" = w.bad(|c| with_il(w, c, w.place(), 20));
            CL_INVALID_VALUE "nothing" = with_il(w, w.s.context.0, null(), 20);
            CL_INVALID_VALUE "of no length" = with_il(w, w.s.context.0, w.place(), 0);
            CL_INVALID_VALUE "not SPIR-V" = with_il(w, w.s.context.0, w.place(), 20);
            CL_INVALID_OPERATION "no intermediate language" => never "the devices here have it";
        }
    }
}

fn set(w: &World, kernel: cl_kernel, index: cl_uint, size: usize, value: *const c_void) -> cl_int {
    let _ = w;
    call!(clSetKernelArg(kernel, index, size, value))
}

fn with_binary(w: &World, n: cl_uint, devices: *const cl_device_id, bytes: &[u8]) -> cl_int {
    let (length, mut at) = (bytes.len(), bytes.as_ptr());
    makes!(
        w,
        clCreateProgramWithBinary(w.s.context.0, n, devices, &length, &mut at, null_mut())
    )
}

/// Builds a program of its own, which may end up as a program whose build failed.
fn build(w: &World, source: &str, options: &std::ffi::CStr) -> cl_int {
    let program = w.s.program(source);
    call!(clBuildProgram(
        program.0,
        0,
        null(),
        options.as_ptr(),
        None,
        null_mut()
    ))
}

/// Compiles a program of its own.
fn compile(w: &World, source: &str, options: &std::ffi::CStr) -> cl_int {
    let program = w.s.program(source);
    call!(clCompileProgram(
        program.0,
        0,
        null(),
        options.as_ptr(),
        0,
        null(),
        null_mut(),
        None,
        null_mut()
    ))
}

extern "C" fn nothing_of_context(_: *mut c_void, _: *mut c_void) {}

static YES: cl_bool = CL_TRUE;

/// Compiles with headers.
fn headers(
    w: &World,
    programs: &[cl_program],
    names: &[*const std::ffi::c_char],
    n: cl_uint,
) -> cl_int {
    let list = |length: usize, at: *const c_void| if length == 0 { null() } else { at };
    let programs = list(programs.len(), programs.as_ptr().cast());
    let names = list(names.len(), names.as_ptr().cast()).cast_mut();
    call!(clCompileProgram(
        w.unbuilt.0,
        0,
        null(),
        null(),
        n,
        programs.cast(),
        names.cast(),
        None,
        null_mut()
    ))
}

/// A call on a program while it is being built in another thread.
fn under_way(w: &World, call: impl Fn(cl_program) -> cl_int) -> cl_int {
    w.while_building(call)
}

fn with_il(w: &World, c: cl_context, il: *const c_void, length: usize) -> cl_int {
    let mut code = 1;
    let made =
        ext!(w.s, clCreateProgramWithILKHR: clCreateProgramWithILKHR_t(c, il, length, &mut code));
    w.made(!made.is_null());
    code
}

fn specialise(w: &World, id: cl_uint, size: usize, value: *const c_void) -> cl_int {
    call!(clSetProgramSpecializationConstant(w.il.0, id, size, value))
}

/// Where kernels cannot reach any memory of the system.
fn if_no_system(w: &World, call: impl Fn() -> cl_int) -> cl_int {
    let kinds = info_value!(u64, clGetDeviceInfo(w.s.device), CL_DEVICE_SVM_CAPABILITIES);
    match kinds & CL_DEVICE_SVM_FINE_GRAIN_SYSTEM {
        0 => call(),
        _ => NOT_HERE,
    }
}
