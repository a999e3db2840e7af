//! PUMICE_CHECK, in child processes on the CPU device: what is found, where, and that nothing is found where nothing is wrong.

use pumice_tests::sys::*;
use pumice_tests::{create, good_child, job, ok, Buffer, Setup};
use std::ptr::{null, null_mut};

const SOURCE: &str = include_str!("checks.cl");
/// Work-items of each launch, in groups of 64.
const ITEMS: usize = 128;

/// Runs a kernel in a process that checks; what that says.
fn check(kernel: &str, checks: &str) -> String {
    child("checks::inner", kernel, checks)
}

fn child(test: &str, kernel: &str, checks: &str) -> String {
    let variables = [("PUMICE_DEVICES", "cpu"), ("PUMICE_CHECK", checks)];
    let output = good_child(test, kernel, &variables);
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Not a test of its own: the child of the others.
#[test]
fn inner() {
    let Some(name) = job() else {
        return;
    };
    let setup = Setup::new();
    let options = if name == "without_lines" {
        "-cl-std=CL3.0"
    } else {
        "-cl-std=CL3.0 -g"
    };
    let program = setup.try_build(SOURCE, options).expect("a program");
    let kernel = setup.kernel(
        &program,
        if name == "without_lines" {
            "outside"
        } else {
            &name
        },
    );
    let data = setup.buffer_of(&[0i32; ITEMS + 1]);
    let large = setup.buffer(ITEMS * 8 + 8);
    let exact = setup.buffer_of(&[5i32; ITEMS]);
    match &*name {
        "outside" | "without_lines" => kernel.set_buffer(0, &exact).set(1, 1000i32),
        "behind" => kernel.set_buffer(0, &exact).set_buffer(1, &data),
        "before" | "constants" => kernel.set_buffer(0, &exact),
        "null_pointer" => kernel.set_buffer(0, &exact).set(1, 0u64),
        "misaligned" => kernel.set_buffer(0, &large),
        "local_outside" => kernel.set_buffer(0, &data).set_local(1, 64 * 4),
        "private_unwritten" => kernel.set_buffer(0, &exact).set(1, 3i32),
        "right" => {
            let pairs = setup.buffer(ITEMS * 8);
            let flag = setup.buffer_of(&[0i32]);
            kernel
                .set_buffer(0, &data)
                .set_buffer(1, &pairs)
                .set_buffer(2, &flag)
                .set_local(3, 64 * 4);
            setup.run(&kernel, &[ITEMS], Some(&[64]));
            assert_eq!(setup.read::<i32>(&flag, 1), [7]);
            let pairs: Vec<i32> = setup.read(&pairs, ITEMS * 2);
            assert!((0..ITEMS).all(|g| pairs[2 * g + 1] == g as i32));
            let data: Vec<i32> = setup.read(&data, ITEMS + 1);
            assert_eq!(data[0], 2 * (0..64).sum::<i32>());
            assert_eq!((data[1], data[2], data[64]), (3, 3, 1));
            return;
        }
        _ => kernel.set_buffer(0, &data),
    };
    setup.run(&kernel, &[ITEMS], Some(&[64]));
    // What is wrong has had no effect elsewhere.
    if name == "behind" {
        let out: Vec<i32> = setup.read(&data, ITEMS);
        assert!(out[..ITEMS - 1].iter().all(|&v| v == 5));
    }
}

/// The line of a kernel's mark, from 1.
fn line(kernel: &str) -> usize {
    let mark = format!("// {kernel}");
    let at = SOURCE.lines().position(|line| line.ends_with(&mark));
    at.expect("a mark") + 1
}

/// The one finding names kernel, line and all of the words.
fn finds(kernel: &str, words: &[&str]) {
    found_once(&check(kernel, "memory,race,barrier"), kernel, words);
}

/// The text has one finding, which names kernel, line and all of the words.
fn found_once(text: &str, kernel: &str, words: &[&str]) {
    let found: Vec<&str> = text
        .lines()
        .filter(|line| line.contains("check:"))
        .collect();
    let place = format!("kernel {kernel}, line ");
    let mark = format!("line {}", line(kernel));
    let [one] = found[..] else {
        panic!("{kernel}: {text}");
    };
    for word in [place.as_str(), &mark].iter().chain(words) {
        assert!(one.contains(word), "{kernel}: no `{word}` in: {one}");
    }
}

#[test]
fn memory() {
    finds(
        "outside",
        &[
            "write outside",
            "4 bytes",
            "of 512 bytes",
            "; work-item (0, 0, 0)",
            "128 times",
        ],
    );
    finds(
        "behind",
        &[
            "read outside",
            "0 bytes behind the end of the buffer of 512",
            "work-item (127, 0, 0) (local (63, 0, 0) of group (1, 0, 0))",
        ],
    );
    finds(
        "before",
        &["write outside", "4 bytes before the buffer of 512"],
    );
    finds(
        "null_pointer",
        &["read outside", "null pointer", "work-item (5, 0, 0)"],
    );
    finds(
        "misaligned",
        &["not aligned to 4 bytes", "byte 1 of the buffer"],
    );
    finds(
        "local_outside",
        &["write outside", "local address", "work-item (63, 0, 0)"],
    );
    finds("local_unwritten", &["never written", "global address"]);
    finds("private_unwritten", &["never written"]);
    finds("scalar_unwritten", &["never written", "128 times"]);
    finds("pointee_unwritten", &["never written"]);
    finds("member_unwritten", &["never written"]);
    finds("constants", &["read outside", "work-item (0, 0, 0)"]);
}

/// Two-dimensional or an array, of 128 x 2 texels or of 8 x 2 texels in 4 layers.
fn image(setup: &Setup, layers: usize) -> Buffer {
    let desc = cl_image_desc {
        image_type: match layers {
            0 => CL_MEM_OBJECT_IMAGE2D,
            _ => CL_MEM_OBJECT_IMAGE2D_ARRAY,
        },
        image_width: if layers == 0 { ITEMS } else { 8 },
        image_height: 2,
        image_depth: 1,
        image_array_size: layers,
        image_row_pitch: 0,
        image_slice_pitch: 0,
        num_mip_levels: 0,
        num_samples: 0,
        buffer: null_mut(),
    };
    let format = cl_image_format {
        image_channel_order: CL_RGBA,
        image_channel_data_type: CL_FLOAT,
    };
    let texels = vec![1f32; ITEMS * 2 * 4];
    Buffer(create!(clCreateImage(
        setup.context.0,
        CL_MEM_COPY_HOST_PTR,
        &format,
        &desc,
        texels.as_ptr().cast_mut().cast()
    )))
}

/// Not a test of its own: the child of those of images and sub-buffers.
#[test]
fn images_inner() {
    let Some(name) = job() else {
        return;
    };
    let setup = Setup::new();
    let options = "-cl-std=CL3.0 -g -cl-kernel-arg-info";
    let program = setup.try_build(SOURCE, options).expect("a program");
    let kernel_name = name.split('.').next().unwrap_or_default();
    let kernel = setup.kernel(&program, kernel_name);
    let data = setup.buffer_of(&[0i32; 2 * ITEMS]);
    let sampler = |addressing| {
        create!(clCreateSampler(
            setup.context.0,
            CL_FALSE,
            addressing,
            CL_FILTER_LINEAR
        ))
    };
    let part = |offset: usize, size: usize| {
        let region = cl_buffer_region {
            origin: 4 * offset,
            size: 4 * size,
        };
        let region = (&raw const region).cast();
        let kind = CL_BUFFER_CREATE_TYPE_REGION;
        Buffer(create!(clCreateSubBuffer(data.0, 0, kind, region)))
    };
    let (flat, other, layers) = (image(&setup, 0), image(&setup, 0), image(&setup, 4));
    let parts = [part(0, 32), part(64, 64), part(128, 32)];
    match &*name {
        "image_layers" => kernel.set_buffer(0, &layers),
        "image_write" | "image_race" => kernel.set_buffer(0, &flat),
        "image_unwritten" => kernel.set_buffer(0, &flat).set(1, 3i32),
        "image_sampler" => kernel
            .set_buffer(0, &flat)
            .set_buffer(1, &data)
            .set(2, sampler(CL_ADDRESS_NONE)),
        "image_right" => kernel
            .set_buffer(0, &flat)
            .set_buffer(1, &other)
            .set_buffer(2, &data)
            .set(3, sampler(CL_ADDRESS_CLAMP_TO_EDGE)),
        "sub_before" => kernel.set_buffer(0, &parts[1]),
        "sub_buffer.two" => kernel.set_buffer(0, &parts[0]).set_buffer(1, &parts[2]),
        "sub_buffer.whole" => kernel.set_buffer(0, &parts[0]).set_buffer(1, &data),
        _ => kernel.set_buffer(0, &flat).set_buffer(1, &data),
    };
    setup.run(&kernel, &[ITEMS], Some(&[64]));
    let read: Vec<i32> = setup.read(&data, 2 * ITEMS);
    match &*name {
        "image_right" => {
            let mirrored = |i: usize| (i / 64 * 64 + 63 - i % 64) as i32;
            assert!((0..ITEMS).all(|i| read[i] == mirrored(i)));
            let mut texels = vec![0f32; 4 * ITEMS * 2];
            ok!(clEnqueueReadImage(
                setup.queue.0,
                flat.0,
                CL_TRUE,
                [0; 3].as_ptr(),
                [ITEMS, 2, 1].as_ptr(),
                0,
                0,
                texels.as_mut_ptr().cast(),
                0,
                null(),
                null_mut()
            ));
            assert!((0..ITEMS).all(|i| texels[4 * i] == i as f32));
            assert_eq!(texels[4 * ITEMS], ITEMS as f32);
        }
        // What is wrong has had no effect elsewhere.
        "sub_buffer.two" | "sub_before" => assert!(read.iter().all(|&v| v == 0)),
        _ => {}
    }
}

/// As [`finds`], of the kernels with images; the name of the kernel may be followed by a point and a way to launch it.
fn finds_in_image(launch: &str, words: &[&str]) {
    let kernel = launch.split('.').next().unwrap_or_default();
    let text = child("checks::images_inner", launch, "memory,race,barrier");
    found_once(&text, kernel, words);
}

#[test]
fn images() {
    finds_in_image(
        "image_write",
        &[
            "write outside of an image: texel (128, 1); the image of 128 x 2 texels that is argument 0, im",
            "work-item (127, 0, 0)",
        ],
    );
    finds_in_image(
        "image_read",
        &["read outside of an image: texel (0, -1)", "128 times"],
    );
    finds_in_image(
        "image_none",
        &["texel (128, 0)", "work-item (64, 0, 0)", "64 times"],
    );
    finds_in_image(
        "image_none_float",
        &["texel (-1, 0)", "work-item (0, 0, 0)"],
    );
    finds_in_image("image_sampler", &["texel (0, 2)"]);
    finds_in_image("image_layers", &["texel (0, 0, 4)", "of 8 x 2 x 4 texels"]);
    finds_in_image(
        "image_race",
        &[
            "data race: write of texel (0, 0)",
            "(1, 0, 0)",
            "and (0, 0, 0)",
        ],
    );
    finds_in_image(
        "image_fence",
        &["data race: read of texel", "argument 0, im"],
    );
    finds_in_image("image_unwritten", &["never written", "texel (3, 0)"]);
    let right = child("checks::images_inner", "image_right", "memory,race,barrier");
    assert_eq!(right, "");
}

#[test]
fn sub_buffers() {
    finds_in_image(
        "sub_buffer.two",
        &["148 bytes behind the end of the sub-buffer of 128 bytes at byte 0 of the buffer of 1024 bytes"],
    );
    finds_in_image(
        "sub_before",
        &["8 bytes before the sub-buffer of 256 bytes at byte 256"],
    );
    let text = child(
        "checks::images_inner",
        "sub_buffer.whole",
        "memory,race,barrier",
    );
    assert_eq!(text, "");
}

#[test]
fn races() {
    finds("local_race", &["data race", "local address", "work-item"]);
    finds(
        "group_race",
        &["data race", "work-item (64, 0, 0)", "and (0, 0, 0)"],
    );
    finds("wrong_fence", &["data race", "global address"]);
}

/// Release and acquire order, in their scope.
#[test]
fn releases() {
    for kernel in ["last_group", "handed_over", "handed_over_by_fences"] {
        assert_eq!(check(kernel, "memory,race,barrier"), "", "{kernel}");
    }
    for kernel in ["last_group_relaxed", "last_group_narrow"] {
        finds(
            kernel,
            &["data race", "global address", "which nothing orders"],
        );
    }
    finds("handed_over_relaxed", &["data race", "local address"]);
}

/// Launches of several queues that change a word atomically lose no change of one another's.
#[test]
fn atomics() {
    assert_eq!(child("checks::atomics_inner", "atomics", "memory,race"), "");
}

/// Not a test of its own: the child of the one above.
#[test]
fn atomics_inner() {
    if job().is_none() {
        return;
    }
    let setup = Setup::new();
    let source =
        "kernel void add(global int *p) { for (int i = 0; i < 20; i++) atomic_inc(p); p[1 + get_global_id(0)] = 3; }";
    let program = setup.build(source);
    let mut words = [0i32; 1001];
    let host = words.as_mut_ptr();
    let buffer = Buffer(create!(clCreateBuffer(
        setup.context.0,
        CL_MEM_USE_HOST_PTR,
        size_of_val(&words),
        host.cast()
    )));
    let queues = [setup.new_queue(0), setup.new_queue(0)];
    let kernels = queues.each_ref().map(|_| setup.kernel(&program, "add"));
    for _ in 0..4 {
        for (queue, kernel) in queues.iter().zip(&kernels) {
            kernel.set_buffer(0, &buffer);
            queue.enqueue(kernel, &[1000], None);
            ok!(clFlush(queue.0));
        }
    }
    queues.iter().for_each(|queue| ok!(clFinish(queue.0)));
    let words: Vec<i32> = setup.read(&buffer, 1001);
    assert_eq!(words[0], 2 * 4 * 1000 * 20);
    assert!(words[1..].iter().all(|&word| word == 3));
}

#[test]
fn barriers() {
    finds("divergent", &["do not come to a barrier together"]);
}

#[test]
fn only_what_is_asked_for() {
    assert!(!check("local_race", "memory,barrier").contains("check:"));
    assert!(!check("local_unwritten", "race").contains("check:"));
    assert!(!check("divergent", "memory").contains("check:"));
    assert!(check("without_lines", "memory").contains("a build with -g tells the line"));
}

#[test]
fn nothing_where_nothing_is_wrong() {
    assert_eq!(check("right", "memory,race,barrier"), "");
    // Runs it in pieces between barriers, with what lives across them in variables.
    assert_eq!(check("right", "claims"), "");
}

/// Memory of the application that no object stands for (fine-grained system SVM) is no fault; what lies behind an imported
/// buffer is one, read and written.
#[test]
fn system_memory() {
    let text = child("checks::system_inner", "system", "memory,race,barrier");
    assert!(
        !text.contains("work-item (0,") && text.lines().count() == 2,
        "{text}"
    );
    assert!(
        text.contains("0 bytes behind the end of the buffer of 256 bytes"),
        "{text}"
    );
}

/// Not a test of its own: the child of the one above.
#[test]
fn system_inner() {
    if job().is_none() {
        return;
    }
    let setup = Setup::new();
    let program = setup.build(
        "kernel void sum(global int *p, global const int *q) {
            p[get_global_id(0)] += q[get_global_id(0)];
        }",
    );
    let kernel = setup.kernel(&program, "sum");
    let mut own = vec![1i32; ITEMS];
    let other = vec![2i32; ITEMS];
    ok!(clSetKernelArgSVMPointer(
        kernel.0,
        0,
        own.as_mut_ptr().cast()
    ));
    ok!(clSetKernelArgSVMPointer(kernel.0, 1, other.as_ptr().cast()));
    setup.run(&kernel, &[ITEMS], None);
    assert!(own.iter().all(|&value| value == 3));
    // 64 of its words are a buffer's.
    let flags = CL_MEM_USE_HOST_PTR;
    let host = own.as_mut_ptr().cast();
    let buffer = Buffer(create!(clCreateBuffer(setup.context.0, flags, 256, host)));
    kernel.set_buffer(0, &buffer);
    setup.run(&kernel, &[65], Some(&[65]));
}
