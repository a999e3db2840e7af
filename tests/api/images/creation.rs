//! Formats, creation and its errors, host memory of images, and samplers.

use super::*;

#[test]
fn required_formats_are_there_and_can_be_made() {
    let setup = Setup::new();
    if !setup.has_images() {
        return pumice_tests::left_out("no images");
    }
    let list = |flags, kind| supported(&setup, flags, kind);
    let has = |list: &[cl_image_format], order: u32, data: u32| {
        list.iter().any(|format| {
            (format.image_channel_order, format.image_channel_data_type) == (order, data)
        })
    };
    let types = [
        CL_UNORM_INT8,
        CL_UNORM_INT16,
        CL_SNORM_INT8,
        CL_SNORM_INT16,
        CL_SIGNED_INT8,
        CL_SIGNED_INT16,
        CL_SIGNED_INT32,
        CL_UNSIGNED_INT8,
        CL_UNSIGNED_INT16,
        CL_UNSIGNED_INT32,
        CL_HALF_FLOAT,
        CL_FLOAT,
    ];
    for (kind, size) in KINDS {
        for flags in [CL_MEM_READ_ONLY, CL_MEM_WRITE_ONLY, CL_MEM_READ_WRITE] {
            let list = list(flags, kind);
            for order in [CL_R, CL_RG, CL_RGBA] {
                for data in types {
                    assert!(has(&list, order, data), "{kind:#x} {order:#x} {data:#x}");
                }
            }
            assert!(has(&list, CL_BGRA, CL_UNORM_INT8));
            for format in &list {
                // Pixels that share bytes want a width of their own: `raw` has them.
                let raw = [CL_UNSIGNED_INT_RAW10_EXT, CL_UNSIGNED_INT_RAW12_EXT];
                if raw.contains(&format.image_channel_data_type) {
                    continue;
                }
                image(&setup, flags, format, &desc(kind, size), null_mut());
            }
        }
        assert!(has(&list(CL_MEM_READ_ONLY, kind), CL_sRGBA, CL_UNORM_INT8));
        let both = list(CL_MEM_KERNEL_READ_AND_WRITE, kind);
        for order in [CL_R, CL_RGBA] {
            for data in [
                CL_UNORM_INT8,
                CL_SIGNED_INT32,
                CL_UNSIGNED_INT16,
                CL_HALF_FLOAT,
                CL_FLOAT,
            ] {
                assert!(has(&both, order, data));
            }
        }
    }
    assert!(has(
        &list(CL_MEM_READ_ONLY, CL_MEM_OBJECT_IMAGE2D),
        CL_DEPTH,
        CL_FLOAT
    ));
    assert!(!has(
        &list(CL_MEM_READ_ONLY, CL_MEM_OBJECT_IMAGE3D),
        CL_DEPTH,
        CL_FLOAT
    ));
    assert!(has(
        &list(0, CL_MEM_OBJECT_IMAGE1D_BUFFER),
        CL_RGBA,
        CL_FLOAT
    ));
    let kind = call!(clGetSupportedImageFormats(
        setup.context.0,
        0,
        CL_MEM_OBJECT_BUFFER,
        0,
        null_mut(),
        null_mut()
    ));
    assert_eq!(kind, CL_INVALID_VALUE);
}

#[test]
fn errors_of_creation() {
    let setup = Setup::new();
    if !setup.has_images() {
        return pumice_tests::left_out("no images");
    }
    let good = desc(CL_MEM_OBJECT_IMAGE2D, [8, 8, 0]);
    let mut bytes = [0u8; 1024];
    let host: *mut c_void = bytes.as_mut_ptr().cast();
    let no_host = null_mut();
    let expect = |code: cl_int, flags, format: &_, desc: &_, host| {
        assert_eq!(refused(&setup, flags, format, desc, host), code_name(code));
    };
    expect(0, 0, &RGBA8, &good, no_host);
    expect(
        CL_INVALID_HOST_PTR,
        CL_MEM_COPY_HOST_PTR,
        &RGBA8,
        &good,
        no_host,
    );
    expect(CL_INVALID_HOST_PTR, 0, &RGBA8, &good, host);
    expect(
        CL_INVALID_VALUE,
        CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY,
        &RGBA8,
        &good,
        no_host,
    );
    let format = |order, data| cl_image_format {
        image_channel_order: order,
        image_channel_data_type: data,
    };
    for (order, data) in [
        (0, CL_FLOAT),
        (CL_RGBA, 0),
        (CL_RGBA, CL_UNORM_SHORT_565),
        (CL_RGB, CL_FLOAT),
        (CL_BGRA, CL_FLOAT),
        (CL_LUMINANCE, CL_SIGNED_INT8),
        (CL_DEPTH, CL_UNORM_INT8),
    ] {
        expect(
            CL_INVALID_IMAGE_FORMAT_DESCRIPTOR,
            0,
            &format(order, data),
            &good,
            no_host,
        );
    }
    let depth = format(CL_DEPTH, CL_FLOAT);
    let solid = desc(CL_MEM_OBJECT_IMAGE3D, [4, 4, 4]);
    expect(CL_IMAGE_FORMAT_NOT_SUPPORTED, 0, &depth, &solid, no_host);
    let srgb = format(CL_sRGBA, CL_UNORM_INT8);
    expect(0, CL_MEM_READ_ONLY, &srgb, &good, no_host);
    let writes = match setup.has_extension("cl_khr_srgb_image_writes") {
        true => 0,
        false => CL_IMAGE_FORMAT_NOT_SUPPORTED,
    };
    expect(writes, CL_MEM_WRITE_ONLY, &srgb, &good, no_host);
    expect(
        CL_IMAGE_FORMAT_NOT_SUPPORTED,
        CL_MEM_KERNEL_READ_AND_WRITE,
        &srgb,
        &good,
        no_host,
    );
    let invalid = CL_INVALID_IMAGE_DESCRIPTOR;
    expect(
        invalid,
        0,
        &RGBA8,
        &desc(CL_MEM_OBJECT_BUFFER, [8, 8, 0]),
        no_host,
    );
    expect(
        invalid,
        0,
        &RGBA8,
        &desc(CL_MEM_OBJECT_IMAGE1D_BUFFER, [8, 0, 0]),
        no_host,
    );
    let changed = |change: &dyn Fn(&mut cl_image_desc)| {
        let mut desc = good;
        change(&mut desc);
        desc
    };
    let copy = CL_MEM_COPY_HOST_PTR;
    expect(
        invalid,
        0,
        &RGBA8,
        &changed(&|d| d.image_row_pitch = 64),
        no_host,
    );
    expect(0, copy, &RGBA8, &changed(&|d| d.image_row_pitch = 64), host);
    expect(
        invalid,
        copy,
        &RGBA8,
        &changed(&|d| d.image_row_pitch = 28),
        host,
    );
    expect(
        invalid,
        copy,
        &RGBA8,
        &changed(&|d| d.image_row_pitch = 34),
        host,
    );
    expect(
        invalid,
        0,
        &RGBA8,
        &changed(&|d| d.num_mip_levels = 1),
        no_host,
    );
    expect(
        invalid,
        0,
        &RGBA8,
        &changed(&|d| d.num_samples = 1),
        no_host,
    );
    let width = info_value!(
        usize,
        clGetDeviceInfo(setup.device),
        CL_DEVICE_IMAGE2D_MAX_WIDTH
    );
    for (kind, size) in [
        (CL_MEM_OBJECT_IMAGE2D, [width + 1, 1, 0]),
        (CL_MEM_OBJECT_IMAGE1D, [0, 8, 8]),
        (CL_MEM_OBJECT_IMAGE2D, [0, 8, 0]),
        (CL_MEM_OBJECT_IMAGE2D, [8, 0, 0]),
        (CL_MEM_OBJECT_IMAGE3D, [8, 8, 0]),
        (CL_MEM_OBJECT_IMAGE1D_ARRAY, [8, 0, 0]),
        (CL_MEM_OBJECT_IMAGE2D_ARRAY, [8, 8, 0]),
    ] {
        expect(CL_INVALID_IMAGE_SIZE, 0, &RGBA8, &desc(kind, size), no_host);
    }
    let buffer = setup.buffer(64);
    let code = call!(clGetImageInfo(
        buffer.0,
        CL_IMAGE_WIDTH,
        0,
        null_mut(),
        null_mut()
    ));
    assert_eq!(code, CL_INVALID_MEM_OBJECT);
}

#[test]
fn host_memory_of_images_is_copied_or_used() {
    let setup = Setup::new();
    if !setup.has_images() {
        return pumice_tests::left_out("no images");
    }
    let (row, slice, size) = (24usize, 24 * 5, [4usize, 3, 2]);
    let mut host = random(slice * 2);
    let mut about = desc(CL_MEM_OBJECT_IMAGE3D, size);
    (about.image_row_pitch, about.image_slice_pitch) = (row, slice);
    let packed: Vec<u8> = (0..6)
        .flat_map(|line| {
            let at = line / 3 * slice + line % 3 * row;
            host[at..at + 16].to_vec()
        })
        .collect();
    let pointer = host.as_mut_ptr().cast();
    let copied = image(&setup, CL_MEM_COPY_HOST_PTR, &RGBA8, &about, pointer);
    assert_eq!(read(&setup, &copied, [0; 3], size, (0, 0), 96), packed);
    let used = image(&setup, CL_MEM_USE_HOST_PTR, &RGBA8, &about, pointer);
    assert_eq!(read(&setup, &used, [0; 3], size, (0, 0), 96), packed);
    assert_eq!(
        info_value!(usize, clGetImageInfo(used.0), CL_IMAGE_ROW_PITCH),
        row
    );
    assert_eq!(
        info_value!(usize, clGetImageInfo(used.0), CL_IMAGE_SLICE_PITCH),
        slice
    );
    write(&setup, &used, [1, 1, 1], [1, 1, 1], (0, 0), &[9, 8, 7, 6]);
    // A map of such an image leads into the application's memory.
    let (mut row_out, mut slice_out, mut code) = (0, 0, 0);
    let mapped = call!(clEnqueueMapImage(
        setup.queue.0,
        used.0,
        CL_TRUE,
        CL_MAP_READ,
        [1usize, 1, 1].as_ptr(),
        [2usize, 2, 1].as_ptr(),
        &mut row_out,
        &mut slice_out,
        0,
        null(),
        null_mut(),
        &mut code
    ));
    assert_eq!((code, row_out, slice_out), (0, row, slice));
    let at = slice + row + 4;
    assert_eq!(mapped as usize, host.as_ptr() as usize + at);
    assert_eq!(host[at..at + 4], [9, 8, 7, 6]);
    ok!(clEnqueueUnmapMemObject(
        setup.queue.0,
        used.0,
        mapped,
        0,
        null(),
        null_mut()
    ));
    ok!(clFinish(setup.queue.0));
}

#[test]
fn samplers_tell_what_they_are() {
    let setup = Setup::new();
    if !setup.has_images() {
        return pumice_tests::left_out("no images");
    }
    let list = [
        cl_sampler_properties::from(CL_SAMPLER_NORMALIZED_COORDS),
        0,
        cl_sampler_properties::from(CL_SAMPLER_FILTER_MODE),
        CL_FILTER_LINEAR.into(),
        0,
    ];
    let sampler = create!(clCreateSamplerWithProperties(
        setup.context.0,
        list.as_ptr()
    ));
    let value = |name| info_value!(u32, clGetSamplerInfo(sampler), name);
    assert_eq!(value(CL_SAMPLER_NORMALIZED_COORDS), 0);
    assert_eq!(value(CL_SAMPLER_ADDRESSING_MODE), CL_ADDRESS_CLAMP);
    assert_eq!(value(CL_SAMPLER_FILTER_MODE), CL_FILTER_LINEAR);
    assert_eq!(value(CL_SAMPLER_REFERENCE_COUNT), 1);
    ok!(clRetainSampler(sampler));
    assert_eq!(value(CL_SAMPLER_REFERENCE_COUNT), 2);
    ok!(clReleaseSampler(sampler));
    ok!(clReleaseSampler(sampler));
    assert_eq!(call!(clReleaseSampler(sampler)), CL_INVALID_SAMPLER);
    let refused = |list: &[cl_sampler_properties]| {
        let mut code = 0;
        call!(clCreateSamplerWithProperties(
            setup.context.0,
            list.as_ptr(),
            &mut code
        ));
        code
    };
    let name = cl_sampler_properties::from(CL_SAMPLER_ADDRESSING_MODE);
    assert_eq!(refused(&[name, 1, 0]), CL_INVALID_VALUE);
    assert_eq!(
        refused(&[
            name,
            CL_ADDRESS_CLAMP.into(),
            name,
            CL_ADDRESS_CLAMP.into(),
            0
        ]),
        CL_INVALID_VALUE
    );
    assert_eq!(refused(&[7, 1, 0]), CL_INVALID_VALUE);
}
