//! ND-ranges beyond 2^32 work-items in a dimension, in size and in offset.

use super::*;
use pumice_tests::{ext, Program};

/// Writes all that a work-item can ask of its place, 24 numbers for each, at its linear id.
const PLACES: &str = "
    global int seen = 0;
    kernel void places(global ulong *out, int room) {
        size_t at = get_global_linear_id();
        atomic_inc((volatile global int *)&seen);
        if (at >= (size_t)room) return;
        global ulong *o = out + at * 24;
        for (uint d = 0; d < 3; d++) {
            o[d] = get_global_id(d); o[3 + d] = get_global_size(d); o[6 + d] = get_global_offset(d);
            o[9 + d] = get_group_id(d); o[12 + d] = get_num_groups(d); o[15 + d] = get_local_id(d);
            o[18 + d] = get_local_size(d);
        }
        o[21] = get_work_dim(); o[22] = get_local_linear_id(); o[23] = get_enqueued_local_size(0);
    }
    kernel void count(global int *out) { out[0] = seen; }
    kernel void sums(global ulong *out, local ulong *all) {
        size_t l = get_local_id(0), n = get_local_size(0);
        all[l] = get_global_id(0);
        barrier(CLK_LOCAL_MEM_FENCE);
        ulong sum = 0;
        for (size_t i = 0; i < n; i++) sum += all[i] - get_global_offset(0);
        out[get_global_id(0) - get_global_offset(0)] = sum;
    }
    kernel void far(global ulong *out, ulong wanted) {
        if (get_global_id(0) == wanted) {
            out[0] += 1; out[1] = get_global_linear_id(); out[2] = get_group_id(0); out[3] = get_num_groups(0);
            out[4] = get_global_size(0); out[5] = get_local_id(0);
        }
    }";

fn enqueue(
    setup: &Setup,
    kernel: &Kernel,
    offset: Option<&[usize]>,
    global: &[usize],
    local: Option<&[usize]>,
) -> cl_int {
    let at = |sizes: Option<&[usize]>| sizes.map_or(null(), <[usize]>::as_ptr);
    call!(clEnqueueNDRangeKernel(
        setup.queue.0,
        kernel.0,
        global.len() as u32,
        at(offset),
        global.as_ptr(),
        at(local),
        0,
        null(),
        null_mut()
    ))
}

/// Returns what the work-items of a small range must have written.
fn places(offset: [usize; 3], global: [usize; 3], local: [usize; 3], dims: usize) -> Vec<u64> {
    let mut all = Vec::new();
    for z in 0..global[2] {
        for y in 0..global[1] {
            for x in 0..global[0] {
                let at = [x, y, z];
                let each = |f: &dyn Fn(usize) -> usize| [0, 1, 2].map(|d| f(d) as u64);
                let size = |d: usize| local[d].min(global[d] - at[d] / local[d] * local[d]);
                all.extend(each(&|d| offset[d] + at[d]));
                all.extend(each(&|d| global[d]));
                all.extend(each(&|d| offset[d]));
                all.extend(each(&|d| at[d] / local[d]));
                all.extend(each(&|d| global[d].div_ceil(local[d])));
                all.extend(each(&|d| at[d] % local[d]));
                all.extend(each(&size));
                let id = |d: usize| at[d] % local[d];
                let linear = (id(2) * size(1) + id(1)) * size(0) + id(0);
                all.extend([dims as u64, linear as u64, local[0] as u64]);
            }
        }
    }
    all
}

fn check_places(setup: &Setup, program: &Program) {
    let kernel = setup.kernel(program, "places");
    let out = setup.buffer(120 * 24 * 8);
    let mut total = 0;
    let edge = 1usize << 32;
    for (offset, global, local, dims) in [
        ([0, 0, 0], [40, 1, 1], [8, 1, 1], 1),
        ([edge + 5, 0, 0], [40, 1, 1], [8, 1, 1], 1),
        ([edge - 8, 0, 0], [43, 1, 1], [8, 1, 1], 1),
        ([usize::MAX - 43, 0, 0], [43, 1, 1], [8, 1, 1], 1),
        ([3, (1 << 40) + 1, edge - 2], [5, 6, 4], [2, 4, 2], 3),
        ([usize::MAX - 9, 7, 0], [8, 9, 1], [4, 2, 1], 2),
    ] {
        let items = global.iter().product::<usize>();
        let zeros = vec![0u64; items * 24];
        setup.write(&out, &zeros);
        kernel.set_buffer(0, &out).set(1, items as cl_int);
        let (at, local_size) = (&offset[..dims], &local[..dims]);
        let code = enqueue(setup, &kernel, Some(at), &global[..dims], Some(local_size));
        assert_eq!(code, 0, "{offset:?} {global:?}");
        let read: Vec<u64> = setup.read(&out, items * 24);
        assert_eq!(read, places(offset, global, local, dims), "{offset:?}");
        total += items as i32;
    }
    // Program-scope variables are the same, whatever form of the kernel uses them.
    let count = setup.kernel(program, "count");
    count.set_buffer(0, &out);
    setup.run(&count, &[1], None);
    assert_eq!(setup.read::<i32>(&out, 1), [total]);
}

#[test]
fn offsets_beyond_32_bits() {
    let setup = Setup::new();
    let program = setup.try_build(PLACES, "-cl-std=CL3.0").unwrap();
    check_places(&setup, &program);
    let sums = setup.kernel(&program, "sums");
    let out = setup.buffer(64 * 8);
    sums.set_buffer(0, &out).set_local(1, 16 * 8);
    let offset = [(1usize << 35) - 24];
    assert_eq!(enqueue(&setup, &sums, Some(&offset), &[64], Some(&[16])), 0);
    let expected: Vec<u64> = (0..64u64)
        .map(|i| (i / 16 * 16..i / 16 * 16 + 16).sum())
        .collect();
    assert_eq!(setup.read::<u64>(&out, 64), expected);
    // A size is suggested there, too.
    let mut size = [0usize];
    type Suggest = Option<
        unsafe extern "C" fn(
            cl_command_queue,
            cl_kernel,
            cl_uint,
            *const usize,
            *const usize,
            *mut usize,
        ) -> cl_int,
    >;
    let code = ext!(
        setup,
        clGetKernelSuggestedLocalWorkSizeKHR: Suggest(
            setup.queue.0,
            sums.0,
            1,
            offset.as_ptr(),
            [1usize << 34].as_ptr(),
            size.as_mut_ptr()
        )
    );
    assert_eq!(code, 0);
    assert!(size[0] >= 1 && (1usize << 34) % size[0] == 0, "{size:?}");
}

#[test]
fn offsets_beyond_32_bits_of_a_binary() {
    let setup = Setup::new();
    let program = setup.try_build(PLACES, "-cl-std=CL3.0").unwrap();
    let size = info_value!(usize, clGetProgramInfo(program.0), CL_PROGRAM_BINARY_SIZES);
    let mut binary = vec![0u8; size];
    let mut place = [binary.as_mut_ptr()];
    ok!(clGetProgramInfo(
        program.0,
        CL_PROGRAM_BINARIES,
        size_of::<*mut u8>(),
        place.as_mut_ptr().cast(),
        null_mut()
    ));
    let (mut status, mut code) = (1, 1);
    let again = call!(clCreateProgramWithBinary(
        setup.context.0,
        1,
        &setup.device,
        &size,
        &mut binary.as_ptr(),
        &mut status,
        &mut code
    ));
    assert_eq!((status, code), (0, 0));
    let again = Program(again);
    again.build();
    check_places(&setup, &again);
}

/// All work-items of a range run, each once; a processor does so in a second or two, a software driver would in minutes.
#[test]
fn sizes_beyond_32_bits() {
    let setup = Setup::new();
    let device = setup.device;
    let capabilities = info_value!(
        u64,
        clGetDeviceInfo(device),
        CL_DEVICE_EXECUTION_CAPABILITIES
    );
    if capabilities & CL_EXEC_NATIVE_KERNEL == 0 {
        return pumice_tests::left_out("2^32 work-items, on all but the CPU device");
    }
    let program = setup.try_build(PLACES, "-cl-std=CL3.0").unwrap();
    let kernel = setup.kernel(&program, "far");
    let out = setup.buffer(6 * 8);
    let (size, group) = ((1usize << 32) + 4096, 4096);
    for wanted in [0, size - 1, 1 << 32] {
        setup.write(&out, &[0u64; 6]);
        kernel.set_buffer(0, &out).set(1, wanted as u64);
        assert_eq!(enqueue(&setup, &kernel, None, &[size], Some(&[group])), 0);
        let expected = [
            1,
            wanted,
            wanted / group,
            size / group,
            size,
            wanted % group,
        ];
        assert_eq!(setup.read::<u64>(&out, 6), expected.map(|n| n as u64));
    }
}

#[test]
fn sizes_beyond_what_anybody_waits_for() {
    let setup = Setup::new();
    let program = setup.try_build(PLACES, "-cl-std=CL3.0").unwrap();
    let kernel = setup.kernel(&program, "far");
    let out = setup.buffer(6 * 8);
    kernel.set_buffer(0, &out).set(1, 0u64);
    let most = [usize::MAX, usize::MAX];
    assert_eq!(
        enqueue(&setup, &kernel, None, &most, Some(&[1, 1])),
        CL_OUT_OF_RESOURCES
    );
    assert_eq!(
        enqueue(&setup, &kernel, Some(&[1]), &most[..1], None),
        CL_INVALID_GLOBAL_OFFSET
    );
    // Nothing to do, wherever it begins.
    assert_eq!(enqueue(&setup, &kernel, Some(&most[..1]), &[0], None), 0);
    ok!(clFinish(setup.queue.0));
}
