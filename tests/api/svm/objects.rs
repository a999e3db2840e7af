//! Memory objects over allocations: buffers, sub-buffers, images.

use super::*;

#[test]
fn buffers_are_made_of_allocations() {
    let Some(setup) = setup() else { return };
    let a = Shared::new(&setup, 64);
    a.write(&(0..64).collect::<Vec<u32>>());
    let flags = CL_MEM_USE_HOST_PTR;
    let buffer = Buffer(create!(clCreateBuffer(
        setup.context.0,
        flags,
        128,
        a.at(32)
    )));
    let query = |mem: &Buffer| info_value!(u32, clGetMemObjectInfo(mem.0), CL_MEM_USES_SVM_POINTER);
    assert_eq!(query(&buffer), CL_TRUE);
    assert_eq!(
        info_value!(usize, clGetMemObjectInfo(buffer.0), CL_MEM_HOST_PTR),
        a.at(32) as usize
    );
    assert_eq!(
        setup.read::<u32>(&buffer, 32),
        (32..64).collect::<Vec<u32>>()
    );
    setup.write(&buffer, &[9u32; 4]);
    assert_eq!(a.read()[30..38], [30, 31, 9, 9, 9, 9, 36, 37]);
    create_fails!(
        CL_INVALID_BUFFER_SIZE,
        clCreateBuffer(setup.context.0, flags, 132, a.at(32))
    );
    let kernel = setup.kernel_of(
        "kernel void add(global uint *a, global uint *b) { a[get_global_id(0)] += b[get_global_id(0)]; }",
        "add",
    );
    // The same bytes by both ways.
    kernel.set_buffer(0, &buffer);
    ok!(clSetKernelArgSVMPointer(kernel.0, 1, a.at(32)));
    setup.enqueue(&kernel, &[4], None);
    setup.enqueue(&kernel, &[4], None);
    assert_eq!(a.read()[32..36], [36; 4]);
    assert_eq!(query(&setup.buffer(64)), CL_FALSE);
}

#[test]
fn sub_buffers_count_from_their_buffer() {
    let Some(setup) = setup() else { return };
    // A page for the buffer to begin at, then one that is aligned for no sub-buffer.
    for begin in [1024, 9] {
        let a = Shared::new(&setup, 4096);
        a.write(&[0; 4096]);
        let flags = CL_MEM_USE_HOST_PTR;
        let context = setup.context.0;
        let buffer = Buffer(create!(clCreateBuffer(context, flags, 8192, a.at(begin))));
        let region = cl_buffer_region {
            origin: 1024,
            size: 2048,
        };
        let sub = Buffer(create!(clCreateSubBuffer(
            buffer.0,
            0,
            CL_BUFFER_CREATE_TYPE_REGION,
            (&raw const region).cast()
        )));
        let offset = |mem: &Buffer| info_value!(usize, clGetMemObjectInfo(mem.0), CL_MEM_OFFSET);
        assert_eq!((offset(&buffer), offset(&sub)), (0, 1024));
        assert_eq!(
            info_value!(usize, clGetMemObjectInfo(sub.0), CL_MEM_HOST_PTR),
            a.at(begin + 256) as usize
        );
        setup.write(&sub, &[7u32; 4]);
        let kernel = setup.kernel_of("kernel void one(global uint *a) { a[4] = 1; }", "one");
        kernel.set_buffer(0, &sub);
        setup.enqueue(&kernel, &[1], None);
        let first = begin + 256;
        assert_eq!(a.read()[first - 1..first + 6], [0, 7, 7, 7, 7, 1, 0]);
        let mapped = create!(clEnqueueMapBuffer(
            setup.queue.0,
            sub.0,
            CL_TRUE,
            CL_MAP_READ,
            64,
            64,
            0,
            null(),
            null_mut()
        ));
        assert_eq!(mapped, a.at(first + 16));
        ok!(clEnqueueUnmapMemObject(
            setup.queue.0,
            sub.0,
            mapped,
            0,
            null(),
            null_mut()
        ));
        ok!(clFinish(setup.queue.0));
    }
}

#[test]
fn images_of_buffers_over_shared_memory() {
    let Some(setup) = setup() else { return };
    if !setup.has_images() {
        return pumice_tests::left_out("no images");
    }
    let a = Shared::new(&setup, 4096);
    a.write(&(0..4096).collect::<Vec<u32>>());
    let context = setup.context.0;
    let flags = CL_MEM_USE_HOST_PTR;
    let buffer = Buffer(create!(clCreateBuffer(context, flags, 8192, a.at(1024))));
    let region = cl_buffer_region {
        origin: 4096,
        size: 4096,
    };
    let sub = Buffer(create!(clCreateSubBuffer(
        buffer.0,
        0,
        CL_BUFFER_CREATE_TYPE_REGION,
        (&raw const region).cast()
    )));
    let format = cl_image_format {
        image_channel_order: CL_R,
        image_channel_data_type: CL_UNSIGNED_INT32,
    };
    for (kind, name, at) in [
        (
            CL_MEM_OBJECT_IMAGE2D,
            "image2d_t",
            "(int2)(get_global_id(0), 0)",
        ),
        (
            CL_MEM_OBJECT_IMAGE1D_BUFFER,
            "image1d_buffer_t",
            "(int)get_global_id(0)",
        ),
    ] {
        // SAFETY: zeros are a description that says nothing.
        let mut desc: cl_image_desc = unsafe { std::mem::zeroed() };
        (desc.image_type, desc.image_width, desc.image_height) = (kind, 64, 1);
        desc.buffer = sub.0;
        let image = Buffer(create!(clCreateImage(
            context,
            0,
            &raw const format,
            &raw const desc,
            null_mut()
        )));
        assert_eq!(
            info_value!(usize, clGetMemObjectInfo(image.0), CL_MEM_OFFSET),
            0
        );
        let kernel = setup.kernel_of(
            &format!(
                "kernel void get(read_only {name} i, global uint *o)
                 {{ o[get_global_id(0)] = read_imageui(i, {at}).x; }}"
            ),
            "get",
        );
        let out = setup.buffer(256);
        kernel.set_buffer(0, &image).set_buffer(1, &out);
        setup.run(&kernel, &[64], None);
        assert_eq!(
            setup.read::<u32>(&out, 64),
            (2048..2112).collect::<Vec<u32>>(),
            "{name}"
        );
    }
}
