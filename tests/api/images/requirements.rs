//! clGetImageRequirementsInfoEXT (cl_ext_image_requirements_info).

use super::*;
use pumice_tests::ext;

/// The answer to a query, or the error.
fn ask(
    setup: &Setup,
    flags: cl_mem_flags,
    format: Option<&cl_image_format>,
    desc: Option<&cl_image_desc>,
    param: cl_image_requirements_info_ext,
) -> Result<usize, String> {
    let (mut value, mut size) = (0usize, 0);
    let code = ext!(
        setup,
        clGetImageRequirementsInfoEXT: clGetImageRequirementsInfoEXT_t(
            setup.context.0,
            null(),
            flags,
            format.map_or(null(), |format| format),
            desc.map_or(null(), |desc| desc),
            param,
            size_of::<usize>(),
            (&raw mut value).cast(),
            &mut size
        )
    );
    match code {
        0 if size == 4 || size == 8 => Ok(value),
        0 => Err(format!("{size} bytes")),
        code => Err(code_name(code)),
    }
}

const ROW: u32 = CL_IMAGE_REQUIREMENTS_ROW_PITCH_ALIGNMENT_EXT;
const SLICE: u32 = CL_IMAGE_REQUIREMENTS_SLICE_PITCH_ALIGNMENT_EXT;
const BASE: u32 = CL_IMAGE_REQUIREMENTS_BASE_ADDRESS_ALIGNMENT_EXT;
const SIZE: u32 = CL_IMAGE_REQUIREMENTS_SIZE_EXT;
const WIDTH: u32 = CL_IMAGE_REQUIREMENTS_MAX_WIDTH_EXT;
const HEIGHT: u32 = CL_IMAGE_REQUIREMENTS_MAX_HEIGHT_EXT;
const DEPTH: u32 = CL_IMAGE_REQUIREMENTS_MAX_DEPTH_EXT;
const LAYERS: u32 = CL_IMAGE_REQUIREMENTS_MAX_ARRAY_SIZE_EXT;

#[test]
fn sizes_and_alignments_make_images() {
    let setup = Setup::new();
    if !setup.has_images() {
        return pumice_tests::left_out("no images");
    }
    let rw = CL_MEM_READ_WRITE;
    for format in [R8, RGBA8, RGBA32] {
        for (kind, size) in KINDS {
            let mut desc = desc(kind, size);
            let get = |desc: &cl_image_desc, param| {
                let got = ask(&setup, rw, Some(&format), Some(desc), param);
                got.unwrap_or_else(|code| panic!("{kind:#x} {param:#x}: {code}"))
            };
            let [row, slice, base] = [ROW, SLICE, BASE].map(|param| get(&desc, param));
            for align in [row, slice, base] {
                assert!(align.is_power_of_two(), "{align}");
            }
            for pitched in [false, true] {
                if pitched {
                    // The next pitches that are allowed.
                    let element = get(&desc, SIZE) / size.iter().product::<usize>();
                    desc.image_row_pitch = (size[0] * element + 1).next_multiple_of(row);
                    if kind != CL_MEM_OBJECT_IMAGE1D && kind != CL_MEM_OBJECT_IMAGE2D {
                        desc.image_slice_pitch = desc.image_row_pitch * (size[1] + 1);
                    }
                }
                let bytes = get(&desc, SIZE);
                for less in [0, 1] {
                    let buffer = setup.buffer(bytes - less);
                    let mut over = desc;
                    over.buffer = buffer.0;
                    if less == 1 {
                        let code = refused(&setup, rw, &format, &over, null_mut());
                        assert_eq!(code, code_name(CL_INVALID_IMAGE_SIZE), "{kind:#x}");
                        continue;
                    }
                    let made = image(&setup, rw, &format, &over, null_mut());
                    let held = info_value!(usize, clGetMemObjectInfo(made.0), CL_MEM_SIZE);
                    assert_eq!(held, bytes, "{kind:#x}");
                    let pitch = info_value!(usize, clGetImageInfo(made.0), CL_IMAGE_ROW_PITCH);
                    assert!(!pitched || pitch == desc.image_row_pitch, "{kind:#x}");
                    let pitch = info_value!(usize, clGetImageInfo(made.0), CL_IMAGE_SLICE_PITCH);
                    assert!(!pitched || pitch == desc.image_slice_pitch, "{kind:#x}");
                }
            }
        }
    }
    // What suits every format.
    assert_eq!(ask(&setup, 0, None, None, ROW), Ok(16));
}

#[test]
fn largest_extents_make_images() {
    let setup = Setup::new();
    if !setup.has_images() {
        return pumice_tests::left_out("no images");
    }
    let device = |param| info_value!(usize, clGetDeviceInfo(setup.device), param);
    let get = |format, desc: &cl_image_desc, param| ask(&setup, 0, format, Some(desc), param);
    let line = desc(CL_MEM_OBJECT_IMAGE1D, [1, 1, 1]);
    let plane = desc(CL_MEM_OBJECT_IMAGE2D, [0, 1, 1]);
    let planes = desc(CL_MEM_OBJECT_IMAGE2D_ARRAY, [1, 1, 0]);
    let solid = desc(CL_MEM_OBJECT_IMAGE3D, [1, 1, 1]);
    assert_eq!(
        get(None, &plane, WIDTH),
        Ok(device(CL_DEVICE_IMAGE2D_MAX_WIDTH))
    );
    assert_eq!(
        get(None, &plane, HEIGHT),
        Ok(device(CL_DEVICE_IMAGE2D_MAX_HEIGHT))
    );
    assert_eq!(
        get(Some(&RGBA8), &solid, DEPTH),
        Ok(device(CL_DEVICE_IMAGE3D_MAX_DEPTH))
    );
    assert_eq!(
        get(Some(&RGBA8), &planes, LAYERS),
        Ok(device(CL_DEVICE_IMAGE_MAX_ARRAY_SIZE))
    );
    // One of the largest width can be made, one more pixel cannot.
    let most = get(Some(&R8), &line, WIDTH).expect("a width");
    for (width, code) in [(most, 0), (most + 1, CL_INVALID_IMAGE_SIZE)] {
        let desc = desc(CL_MEM_OBJECT_IMAGE1D, [width, 1, 1]);
        let got = refused(&setup, 0, &R8, &desc, null_mut());
        assert_eq!(got, code_name(code), "{width}");
    }
    // Of every type: the least of them all.
    let any = ask(&setup, 0, None, None, WIDTH).expect("a width");
    let least = device(CL_DEVICE_IMAGE2D_MAX_WIDTH)
        .min(device(CL_DEVICE_IMAGE3D_MAX_WIDTH))
        .min(device(CL_DEVICE_IMAGE_MAX_BUFFER_SIZE));
    assert!(any > 0 && any <= least, "{any}");
    // With the other extents the memory counts as well.
    let side = device(CL_DEVICE_IMAGE3D_MAX_WIDTH);
    let huge = desc(CL_MEM_OBJECT_IMAGE3D, [side, side, 0]);
    let depth = get(Some(&RGBA32), &huge, DEPTH).expect("a depth") as u64;
    let memory = info_value!(
        u64,
        clGetDeviceInfo(setup.device),
        CL_DEVICE_MAX_MEM_ALLOC_SIZE
    );
    assert!(depth * (side * side * 16) as u64 <= memory, "{depth}");
}

#[test]
fn wrong_questions_are_refused() {
    let setup = Setup::new();
    if !setup.has_images() {
        return pumice_tests::left_out("no images");
    }
    let good = desc(CL_MEM_OBJECT_IMAGE2D, [20, 20, 1]);
    let line = desc(CL_MEM_OBJECT_IMAGE1D, [20, 0, 0]);
    let empty = desc(CL_MEM_OBJECT_IMAGE2D, [20, 0, 0]);
    let buffer = desc(CL_MEM_OBJECT_BUFFER, [20, 20, 1]);
    let wrong = cl_image_format {
        image_channel_order: CL_INTENSITY,
        image_channel_data_type: CL_UNORM_SHORT_555,
    };
    let (value, described) = (CL_INVALID_VALUE, CL_INVALID_IMAGE_DESCRIPTOR);
    let format = CL_INVALID_IMAGE_FORMAT_DESCRIPTOR;
    let some = Some(&RGBA8);
    for (flags, pixel, desc, param, code) in [
        (0, None, Some(&good), SIZE, value),
        (0, some, None, SIZE, value),
        (0, some, Some(&good), CL_IMAGE_FORMAT, value),
        (u64::MAX, some, Some(&good), ROW, value),
        (0, Some(&wrong), Some(&good), ROW, format),
        (0, some, Some(&empty), ROW, described),
        (0, some, Some(&buffer), ROW, described),
        (0, some, Some(&line), HEIGHT, described),
        (0, some, Some(&good), DEPTH, described),
        (0, some, Some(&good), LAYERS, described),
        (0, some, Some(&buffer), WIDTH, described),
    ] {
        let got = ask(&setup, flags, pixel, desc, param);
        assert_eq!(got, Err(code_name(code)), "{param:#x}");
    }
    let call = |context, properties: *const cl_mem_properties, size| {
        let mut place = 0usize;
        ext!(
            setup,
            clGetImageRequirementsInfoEXT: clGetImageRequirementsInfoEXT_t(
                context,
                properties,
                0,
                &RGBA8,
                &good,
                ROW,
                size,
                (&raw mut place).cast(),
                null_mut()
            )
        )
    };
    assert_eq!(call(null_mut(), null(), 8), CL_INVALID_CONTEXT);
    assert_eq!(call(setup.context.0, null(), 7), CL_INVALID_VALUE);
    let odd: [cl_mem_properties; 3] = [0x1234, 1, 0];
    assert_eq!(call(setup.context.0, odd.as_ptr(), 8), CL_INVALID_PROPERTY);
}
