//! Work sizes: which are refused, what work-items read of them, and kernels that cannot read them.

use super::*;

#[test]
fn wrong_work_sizes() {
    let setup = Setup::new();
    let program = setup.build(
        "kernel void f(global int *p) { p[0] = 1; }
         kernel __attribute__((reqd_work_group_size(8, 1, 1))) void fixed(global int *p) { p[0] = 1; }",
    );
    let (kernel, fixed) = (setup.kernel(&program, "f"), setup.kernel(&program, "fixed"));
    let buffer = setup.buffer(64);
    kernel.set_buffer(0, &buffer);
    fixed.set_buffer(0, &buffer);
    let go = |kernel: &Kernel,
              dims,
              offset: Option<&[usize]>,
              global: Option<&[usize]>,
              local: Option<&[usize]>| {
        let pointer = |list: Option<&[usize]>| list.map_or(null(), <[usize]>::as_ptr);
        pumice_tests::call!(clEnqueueNDRangeKernel(
            setup.queue.0,
            kernel.0,
            dims,
            pointer(offset),
            pointer(global),
            pointer(local),
            0,
            null(),
            null_mut()
        ))
    };
    let eight = [8usize; 3];
    assert_eq!(
        go(&kernel, 0, None, Some(&eight), None),
        CL_INVALID_WORK_DIMENSION
    );
    assert_eq!(
        go(&kernel, 4, None, Some(&eight), None),
        CL_INVALID_WORK_DIMENSION
    );
    let most = info_value!(
        usize,
        clGetDeviceInfo(setup.device),
        CL_DEVICE_MAX_WORK_GROUP_SIZE
    );
    assert_eq!(
        go(&kernel, 1, None, Some(&[8 * most]), Some(&[2 * most])),
        CL_INVALID_WORK_GROUP_SIZE
    );
    assert_eq!(
        go(&kernel, 1, None, Some(&eight), Some(&[0])),
        CL_INVALID_WORK_GROUP_SIZE
    );
    assert_eq!(
        go(&fixed, 1, None, Some(&eight), Some(&[4])),
        CL_INVALID_WORK_GROUP_SIZE
    );
    assert_eq!(
        go(&fixed, 1, None, Some(&[12]), Some(&[8])),
        CL_INVALID_WORK_GROUP_SIZE
    );
    let sizes = info_value!(
        [usize; 3],
        clGetDeviceInfo(setup.device),
        CL_DEVICE_MAX_WORK_ITEM_SIZES
    );
    let code = go(
        &kernel,
        3,
        None,
        Some(&[1, 1, 2 * sizes[2]]),
        Some(&[1, 1, 2 * sizes[2]]),
    );
    assert!(
        matches!(code, CL_INVALID_WORK_ITEM_SIZE | CL_INVALID_WORK_GROUP_SIZE),
        "{code}"
    );
    assert_eq!(go(&fixed, 1, None, Some(&[16]), Some(&[8])), CL_SUCCESS);
    // More work-groups than a device takes in any number of dispatches that makes sense.
    let huge = [u32::MAX as usize; 3];
    let code = go(&kernel, 3, None, Some(&huge), Some(&[1; 3]));
    assert_eq!(code, CL_OUT_OF_RESOURCES);
    ok!(clFinish(setup.queue.0));
    // Nothing to do is no error since OpenCL 2.1.
    assert_eq!(go(&kernel, 1, None, Some(&[0]), None), CL_SUCCESS);
    ok!(clFinish(setup.queue.0));
}

const IDS: &str = "
    kernel void ids(global uint *out) {
        size_t x = get_global_id(0) - get_global_offset(0);
        size_t y = get_global_id(1) - get_global_offset(1);
        size_t z = get_global_id(2) - get_global_offset(2);
        size_t at = (z * get_global_size(1) + y) * get_global_size(0) + x;
        global uint *o = out + at * 24;
        for (uint d = 0; d < 3; ++d) {
            o[d * 8 + 0] = get_global_id(d);
            o[d * 8 + 1] = get_local_id(d);
            o[d * 8 + 2] = get_group_id(d);
            o[d * 8 + 3] = get_global_size(d);
            o[d * 8 + 4] = get_local_size(d);
            o[d * 8 + 5] = get_num_groups(d);
            o[d * 8 + 6] = get_global_offset(d);
            o[d * 8 + 7] = get_enqueued_local_size(d);
        }
    }";

/// Each work-item counts itself, so that one too few, one too many and one with wrong ids all show.
const COUNT: &str = "
    kernel void count(global uint *out, uint guess) {
        size_t x = get_global_id(0) - get_global_offset(0);
        size_t y = get_global_id(1) - get_global_offset(1);
        size_t z = get_global_id(2) - get_global_offset(2);
        size_t at = (z * get_global_size(1) + y) * get_global_size(0) + x;
        uint table[8];
        for (uint i = 0; i < 8; ++i)
            table[i] = i * guess;
        atomic_add(out + at, table[at & 7] + 1);
    }";

#[test]
fn odd_sizes_where_the_grouping_does_not_show() {
    let setup = Setup::new();
    let guess = 3u32;
    for options in ["-cl-std=CL1.2", "-cl-std=CL3.0"] {
        let program = setup
            .try_build(COUNT, options)
            .unwrap_or_else(|log| panic!("{log}"));
        let kernel = setup.kernel(&program, "count");
        ok!(clSetKernelArg(kernel.0, 1, 4, (&raw const guess).cast()));
        let cases: [(u32, [usize; 3]); 11] = [
            (1, [1, 1, 1]),
            (1, [37, 1, 1]),
            (1, [251, 1, 1]),
            (1, [4099, 1, 1]),
            (2, [13, 9, 1]),
            (2, [257, 3, 1]),
            (2, [1, 511, 1]),
            (2, [64, 64, 1]),
            (3, [7, 5, 3]),
            (3, [1, 1, 97]),
            (3, [33, 17, 5]),
        ];
        for (dims, global) in cases {
            for offset in [[0, 0, 0], [11, 5, 3]] {
                let items: usize = global.iter().product();
                // A row more than is counted.
                let room = items + global[0] * global[1] + 300;
                let buffer = setup.buffer_of(&vec![0u32; room]);
                kernel.set_buffer(0, &buffer);
                ok!(clEnqueueNDRangeKernel(
                    setup.queue.0,
                    kernel.0,
                    dims,
                    offset.as_ptr(),
                    global.as_ptr(),
                    null(),
                    0,
                    null(),
                    null_mut()
                ));
                let out = setup.read::<u32>(&buffer, room);
                for (at, count) in out.iter().enumerate() {
                    let expected = if at < items {
                        (at as u32 & 7) * 3 + 1
                    } else {
                        0
                    };
                    assert_eq!(*count, expected, "{options} {global:?} {offset:?} {at}");
                }
            }
        }
    }
}

#[test]
fn group_sizes_where_the_grouping_does_not_show() {
    let setup = Setup::new();
    let kernel = setup.kernel_of(COUNT, "count");
    kernel.set(1, 3u32);
    let global = [24, 12, 10];
    let items: usize = global.iter().product();
    let sizes = |n: usize| (1..=n).filter(move |d| n.is_multiple_of(*d));
    // More sizes than a kernel is compiled for.
    for x in sizes(global[0]) {
        for (y, z) in [(1, 1), (3, 1), (12, 1), (1, 10), (2, 5), (6, 1)] {
            let buffer = setup.buffer_of(&vec![0u32; items + 300]);
            kernel.set_buffer(0, &buffer);
            setup.enqueue(&kernel, &global, Some(&[x, y, z]));
            let out = setup.read::<u32>(&buffer, items + 300);
            for (at, count) in out.iter().enumerate() {
                let expected = (at as u32 & 7) * 3 + 1;
                let expected = if at < items { expected } else { 0 };
                assert_eq!(*count, expected, "{x} {y} {z}: {at}");
            }
        }
    }
    // What is wrong stays wrong.
    let buffer = setup.buffer(4);
    kernel.set_buffer(0, &buffer);
    let wrong = |global: [usize; 3], local: [usize; 3]| {
        call!(clEnqueueNDRangeKernel(
            setup.queue.0,
            kernel.0,
            3,
            null(),
            global.as_ptr(),
            local.as_ptr(),
            0,
            null(),
            null_mut()
        ))
    };
    assert_eq!(wrong(global, [0, 1, 1]), CL_INVALID_WORK_GROUP_SIZE);
    assert_eq!(
        wrong([1 << 20, 1, 1], [1 << 20, 1, 1]),
        CL_INVALID_WORK_GROUP_SIZE
    );
}

#[test]
fn work_item_functions() {
    let setup = Setup::new();
    let program = setup
        .try_build(IDS, "-cl-std=CL3.0")
        .unwrap_or_else(|log| panic!("{log}"));
    let kernel = setup.kernel(&program, "ids");
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    /// Dimensions, global size, local size, offset.
    type Case = (usize, [usize; 3], Option<[usize; 3]>, [usize; 3]);
    let mut cases: Vec<Case> = vec![
        (1, [37, 1, 1], None, [0, 0, 0]),
        (1, [37, 1, 1], Some([8, 1, 1]), [5, 0, 0]),
        (2, [16, 8, 1], Some([4, 4, 1]), [0, 0, 0]),
        (3, [8, 6, 4], Some([4, 3, 2]), [1, 2, 3]),
        (3, [7, 5, 3], Some([4, 4, 2]), [10, 20, 30]),
        (1, [1, 1, 1], Some([1, 1, 1]), [0, 0, 0]),
        (3, [9, 9, 9], None, [0, 0, 0]),
    ];
    for _ in 0..25 {
        let dims = 1 + random.next(3);
        let mut global = [1; 3];
        let mut local = [1; 3];
        let mut offset = [0; 3];
        for d in 0..dims {
            global[d] = 1 + random.next(20);
            local[d] = 1 + random.next(global[d].min(6));
            offset[d] = random.next(100);
        }
        cases.push((dims, global, Some(local), offset));
    }
    for (dims, global, local, offset) in cases {
        let items: usize = global.iter().product();
        let buffer = setup.buffer_of(&vec![0xffff_ffffu32; items * 24]);
        kernel.set_buffer(0, &buffer);
        let local_ptr = local.as_ref().map_or(null(), |l| l.as_ptr());
        ok!(clEnqueueNDRangeKernel(
            setup.queue.0,
            kernel.0,
            dims as u32,
            offset.as_ptr(),
            global.as_ptr(),
            local_ptr,
            0,
            null(),
            null_mut()
        ));
        let out = setup.read::<u32>(&buffer, items * 24);
        for z in 0..global[2] {
            for y in 0..global[1] {
                for x in 0..global[0] {
                    let id = [x, y, z];
                    let at = (z * global[1] + y) * global[0] + x;
                    for d in 0..3 {
                        let o: Vec<usize> = out[at * 24 + d * 8..at * 24 + d * 8 + 8]
                            .iter()
                            .map(|v| *v as usize)
                            .collect();
                        let l = local.map_or(o[7], |l| l[d]);
                        let group = id[d] / l;
                        let size = l.min(global[d] - group * l);
                        let expected = [
                            id[d] + offset[d],
                            id[d] % l,
                            group,
                            global[d],
                            size,
                            global[d].div_ceil(l),
                            offset[d],
                            l,
                        ];
                        assert_eq!(
                            o, expected,
                            "global {global:?} local {local:?} offset {offset:?} at {id:?} dim {d}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn suggested_local_size() {
    let setup = Setup::new();
    let name = c"clGetKernelSuggestedLocalWorkSizeKHR";
    let address = pumice_tests::call!(clGetExtensionFunctionAddressForPlatform(
        setup.platform,
        name.as_ptr()
    ));
    assert!(!address.is_null());
    type Suggest = unsafe extern "C" fn(
        cl_command_queue,
        cl_kernel,
        cl_uint,
        *const usize,
        *const usize,
        *mut usize,
    ) -> cl_int;
    // SAFETY: the extension declares the function so.
    let suggest: Suggest = unsafe { std::mem::transmute(address) };
    let kernel = setup.kernel_of(
        "kernel void f(global int *p) { p[get_global_id(0)] = get_local_size(0); }",
        "f",
    );
    let buffer = setup.buffer(4096);
    kernel.set_buffer(0, &buffer);
    let mut local = [0usize; 3];
    let global = [1000usize];
    // SAFETY: all pointers live.
    let code = unsafe {
        suggest(
            setup.queue.0,
            kernel.0,
            1,
            null(),
            global.as_ptr(),
            local.as_mut_ptr(),
        )
    };
    assert_eq!(code, CL_SUCCESS);
    assert!(local[0] > 0 && local[1..] == [0, 0]);
    setup.run(&kernel, &global, None);
    assert_eq!(setup.read::<i32>(&buffer, 1), [local[0] as i32]);
    // SAFETY: all pointers live or null.
    let code = unsafe {
        suggest(
            setup.queue.0,
            kernel.0,
            1,
            null(),
            global.as_ptr(),
            null_mut(),
        )
    };
    assert_eq!(code, CL_INVALID_VALUE);
}

#[test]
fn tasks() {
    let setup = Setup::new();
    let kernel = setup.kernel_of(
        "kernel void f(global int *p) { p[0] += get_global_size(0) * 3; }",
        "f",
    );
    let buffer = setup.buffer_of(&[1i32]);
    kernel.set_buffer(0, &buffer);
    ok!(clEnqueueTask(
        setup.queue.0,
        kernel.0,
        0,
        null(),
        null_mut()
    ));
    assert_eq!(setup.read::<i32>(&buffer, 1), [4]);
}

/// Groups of one work-item, which a device may run side by side.
#[test]
fn groups_of_one_work_item() {
    let setup = Setup::new();
    let program = setup.build(
        "kernel void ids(global uint *out, uint width) {
             uint x = get_global_id(0), y = get_global_id(1), at = ((y - 3) * width + (x - 5)) * 6;
             uint n = 0;
             for (uint i = x; i != 1; i = i & 1 ? 3 * i + 1 : i / 2) n++;
             private uint last[8];
             for (uint i = 0; i < 8; i++) last[i] = x * i;
             barrier(CLK_LOCAL_MEM_FENCE);
             out[at] = n + last[(x + y) & 7];
             out[at + 1] = get_group_id(0) * 1000 + get_group_id(1);
             out[at + 2] = get_local_id(0) + get_local_id(1) * 7;
             out[at + 3] = get_local_size(0) + 10 * get_num_groups(0) + 10000 * get_num_groups(1);
             out[at + 4] = 3 * ((y - 3) * width + x - 5);
             out[at + 5]++;
         }
         kernel void locked(global int *lock, global int *count) {
             bool done = false;
             while (!done)
                 if (atomic_cmpxchg(lock, 0, 1) == 0) {
                     count[0] = ((volatile global int *)count)[0] + 1;
                     mem_fence(CLK_GLOBAL_MEM_FENCE);
                     atomic_xchg(lock, 0);
                     done = true;
                 }
         }
         kernel void local_memory(global uint *out, local uint *own) {
             local uint other[3];
             uint i = get_global_id(0);
             own[0] = i; other[i % 3] = i * 5;
             barrier(CLK_LOCAL_MEM_FENCE);
             out[i] = own[0] + other[i % 3];
         }",
    );
    let kernel = setup.kernel(&program, "ids");
    for (width, height) in [
        (1usize, 1usize),
        (3, 2),
        (15, 1),
        (16, 3),
        (17, 2),
        (531, 3),
    ] {
        let out = setup.buffer_of(&vec![0u32; width * height * 6]);
        kernel.set_buffer(0, &out).set(1, width as u32);
        let code = pumice_tests::call!(clEnqueueNDRangeKernel(
            setup.queue.0,
            kernel.0,
            2,
            [5usize, 3].as_ptr(),
            [width, height].as_ptr(),
            [1usize, 1].as_ptr(),
            0,
            null(),
            null_mut()
        ));
        assert_eq!(code, CL_SUCCESS);
        let got = setup.read::<u32>(&out, width * height * 6);
        for y in 0..height as u32 {
            for x in 0..width as u32 {
                let (mut n, mut i) = (0, x + 5);
                while i != 1 {
                    i = if i & 1 == 1 { 3 * i + 1 } else { i / 2 };
                    n += 1;
                }
                let linear = y * width as u32 + x;
                let want = [
                    n + (x + 5) * ((x + 5 + y + 3) & 7),
                    x * 1000 + y,
                    0,
                    1 + 10 * width as u32 + 10000 * height as u32,
                    3 * linear,
                    1,
                ];
                let at = linear as usize * 6;
                assert_eq!(got[at..at + 6], want, "{x}, {y} of {width}, {height}");
            }
        }
    }
    let kernel = setup.kernel(&program, "local_memory");
    let out = setup.buffer_of(&[0u32; 100]);
    kernel.set_buffer(0, &out).set_local(1, 4);
    setup.run(&kernel, &[100], Some(&[1]));
    let want: Vec<u32> = (0..100).map(|i| i * 6).collect();
    assert_eq!(setup.read::<u32>(&out, 100), want);
    // Groups that wait for one another must not run in step.
    let kernel = setup.kernel(&program, "locked");
    let (lock, count) = (setup.buffer_of(&[0i32]), setup.buffer_of(&[0i32]));
    kernel.set_buffer(0, &lock).set_buffer(1, &count);
    setup.run(&kernel, &[200], Some(&[1]));
    assert_eq!(setup.read::<i32>(&count, 1), [200]);
}

/// The parameters of one launch do not stay with the kernel for the next one, which differs in one of them: sizes, dimensions,
/// the offset, local memory, an argument. A launch that is refused changes nothing either.
#[test]
fn launches_that_differ_in_one_thing() {
    const WORDS: usize = 12;
    let setup = Setup::new();
    let kernel = setup.kernel_of(
        "kernel void parameters(global uint *out, local uint *room, uint length, uint number)
         {
             uint lid = get_local_id(1) * get_local_size(0) + get_local_id(0);
             uint items = get_local_size(0) * get_local_size(1);
             for (uint i = lid; i < length; i += items) room[i] = i + number;
             barrier(CLK_LOCAL_MEM_FENCE);
             atomic_inc(out + 10);
             if (lid == 0) atomic_add(out + 11, room[length - 1]);
             if (lid != 0 || get_group_id(0) != 0 || get_group_id(1) != 0) return;
             out[0] = get_work_dim();
             for (uint d = 0; d < 2; d++) {
                 out[1 + d] = get_global_size(d);
                 out[3 + d] = get_global_offset(d);
                 out[5 + d] = get_local_size(d);
                 out[7 + d] = get_num_groups(d);
             }
             out[9] = number;
         }",
        "parameters",
    );
    let out = setup.buffer(4 * WORDS);
    kernel.set_buffer(0, &out);
    // dimensions, global size, offset, local size, words of local memory, the last argument
    type Launch = (u32, [usize; 2], [usize; 2], [usize; 2], u32, u32);
    let first: Launch = (2, [16, 4], [0, 0], [8, 2], 8, 1);
    let mut launches = vec![first];
    for change in [
        |l: &mut Launch| l.0 = 1,
        |l: &mut Launch| l.1 = [32, 4],
        |l: &mut Launch| l.1 = [16, 8],
        |l: &mut Launch| l.2 = [0, 3],
        |l: &mut Launch| l.3 = [8, 1],
        |l: &mut Launch| l.3 = [4, 2],
        |l: &mut Launch| l.4 = 700,
        |l: &mut Launch| l.5 = 9,
    ] {
        let mut other = first;
        change(&mut other);
        // There, there again, and back.
        launches.extend([other, other, first]);
    }
    let mut before = None;
    for (dims, mut global, mut offset, mut local, length, number) in launches {
        setup.write(&out, &[0u32; WORDS]);
        if before != Some((length, number)) {
            kernel.set_local(1, 4 * length as usize);
            kernel.set(2, length).set(3, number);
            before = Some((length, number));
        }
        let enqueue = |local: &[usize; 2]| {
            pumice_tests::call!(clEnqueueNDRangeKernel(
                setup.queue.0,
                kernel.0,
                dims,
                offset.as_ptr(),
                global.as_ptr(),
                local.as_ptr(),
                0,
                null(),
                null_mut()
            ))
        };
        assert_eq!(enqueue(&[0, 0]), CL_INVALID_WORK_GROUP_SIZE);
        assert_eq!(enqueue(&local), CL_SUCCESS);
        if dims == 1 {
            (global[1], offset[1], local[1]) = (1, 0, 1);
        }
        let [groups_x, groups_y] = [global[0] / local[0], global[1] / local[1]];
        let groups = (groups_x * groups_y) as u32;
        let mut expected = vec![dims];
        for pair in [global, offset, local, [groups_x, groups_y]] {
            expected.extend(pair.map(|n| n as u32));
        }
        let items = (global[0] * global[1]) as u32;
        expected.extend([number, items, groups * (length - 1 + number)]);
        assert_eq!(setup.read::<u32>(&out, WORDS), expected);
    }
}
