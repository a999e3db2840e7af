//! Pixels that share bytes: RAW10 and RAW12 (cl_ext_image_raw10_raw12).

use super::*;

/// Channel type, pixels of a block and its bytes, low bits of a pixel.
const RAW: [(u32, usize, usize, u32); 2] = [
    (CL_UNSIGNED_INT_RAW10_EXT, 4, 5, 2),
    (CL_UNSIGNED_INT_RAW12_EXT, 2, 3, 4),
];

fn format(data: u32) -> cl_image_format {
    cl_image_format {
        image_channel_order: CL_R,
        image_channel_data_type: data,
    }
}

/// A pixel of a row, from the tables of the extension.
fn pixel(row: &[u8], x: usize, (_, pixels, bytes, low): (u32, usize, usize, u32)) -> u32 {
    let block = &row[x / pixels * bytes..][..bytes];
    let place = x % pixels;
    let shared = u32::from(block[pixels]) >> (place as u32 * low) & ((1 << low) - 1);
    u32::from(block[place]) << low | shared
}

/// Whether the device has them. One that has not refuses them.
fn has_raw(setup: &Setup) -> bool {
    let has = setup.has_extension("cl_ext_image_raw10_raw12");
    let program = "#ifdef __opencl_c_ext_image_raw10_raw12
        kernel void with(global uint *to) { *to = CLK_UNSIGNED_INT_RAW10_EXT; }
        #else
        kernel void without(global uint *to) { *to = 0; }
        #endif";
    let program = setup
        .try_build(program, "-cl-std=CL3.0")
        .expect("a program");
    setup.kernel(&program, if has { "with" } else { "without" });
    if !has && setup.has_images() {
        let plane = desc(CL_MEM_OBJECT_IMAGE2D, [8, 8, 1]);
        let code = refused(
            setup,
            CL_MEM_READ_ONLY,
            &format(RAW[0].0),
            &plane,
            null_mut(),
        );
        assert_eq!(code, code_name(CL_IMAGE_FORMAT_NOT_SUPPORTED));
    }
    has
}

const KERNELS: &str = "
    kernel void plane(read_only image2d_t from, global uint4 *to) {
        int2 at = (int2)(get_global_id(0), get_global_id(1));
        to[at.x + at.y * get_image_width(from)] = read_imageui(from, at);
    }
    kernel void line(read_only image1d_t from, global uint4 *to) {
        to[get_global_id(0)] = read_imageui(from, (int)get_global_id(0));
    }
    kernel void texels(read_only image1d_buffer_t from, global uint4 *to) {
        to[get_global_id(0)] = read_imageui(from, (int)get_global_id(0));
    }
    kernel void lines(read_only image1d_array_t from, global uint4 *to) {
        int2 at = (int2)(get_global_id(0), get_global_id(1));
        to[at.x + at.y * get_image_width(from)] = read_imageui(from, at);
    }
    kernel void planes(read_only image2d_array_t from, global uint4 *to) {
        int4 at = (int4)(get_global_id(0), get_global_id(1), get_global_id(2), 0);
        to[at.x + (at.y + at.z * get_image_height(from)) * get_image_width(from)] = read_imageui(from, at);
    }
    constant sampler_t border = CLK_ADDRESS_CLAMP | CLK_FILTER_NEAREST | CLK_NORMALIZED_COORDS_FALSE;
    constant sampler_t whole = CLK_ADDRESS_REPEAT | CLK_FILTER_NEAREST | CLK_NORMALIZED_COORDS_TRUE;
    kernel void about(read_only image2d_t from, global uint4 *to) {
        to[0] = (uint4)(get_image_width(from), get_image_height(from),
                        get_image_channel_data_type(from), get_image_channel_order(from));
        to[1] = read_imageui(from, border, (float2)(-1.5f, 0.5f));
        to[2] = read_imageui(from, border, (float2)(get_image_width(from) - 0.5f, 0.5f));
        to[3] = read_imageui(from, whole, (float2)(1 + 1.5f / get_image_width(from), 0));
    }";

/// Reads every pixel of an image in a kernel, row after row.
fn seen(
    setup: &Setup,
    program: &pumice_tests::Program,
    name: &str,
    of: &Buffer,
    size: [usize; 3],
) -> Vec<u32> {
    let count = size.iter().product::<usize>();
    let to = setup.buffer(count * 16);
    let kernel = setup.kernel(program, name);
    kernel.set_buffer(0, of).set_buffer(1, &to);
    setup.run(&kernel, &size, None);
    let texels = setup.read::<[u32; 4]>(&to, count);
    texels
        .iter()
        .map(|&[value, g, b, a]| {
            assert_eq!([g, b, a], [0, 0, 1]);
            value
        })
        .collect()
}

#[test]
fn raw_pixels_are_read_by_kernels() {
    let setup = Setup::new();
    if !has_raw(&setup) {
        return pumice_tests::left_out("no cl_ext_image_raw10_raw12");
    }
    let program = setup.build(KERNELS);
    for raw in RAW {
        let (data, pixels, bytes, _) = raw;
        let names = ["line", "lines", "plane", "planes"];
        for (name, (kind, [_, h, d])) in names.iter().zip(KINDS) {
            let size = [36, h, d];
            let row = size[0] / pixels * bytes;
            let stored = random(row * h * d);
            // What a kernel reads is what each way of storing it gives.
            let plain = desc(kind, size);
            let written = image(&setup, CL_MEM_READ_ONLY, &format(data), &plain, null_mut());
            write(&setup, &written, [0; 3], size, (0, 0), &stored);
            let mut copied = stored.clone();
            let flags = CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR;
            let host = copied.as_mut_ptr().cast();
            let copied = image(&setup, flags, &format(data), &plain, host);
            let buffer = setup.buffer_of(&stored);
            let mut over = plain;
            over.buffer = buffer.0;
            let over = image(&setup, CL_MEM_READ_ONLY, &format(data), &over, null_mut());
            let wanted: Vec<u32> = stored
                .chunks(row)
                .flat_map(|row| (0..size[0]).map(move |x| pixel(row, x, raw)))
                .collect();
            for image in [&written, &copied, &over] {
                assert_eq!(seen(&setup, &program, name, image, size), wanted, "{name}");
                let back = read(&setup, image, [0; 3], size, (0, 0), stored.len());
                assert_eq!(back, stored, "{name}");
                let width = info_value!(usize, clGetImageInfo(image.0), CL_IMAGE_WIDTH);
                let pitch = info_value!(usize, clGetImageInfo(image.0), CL_IMAGE_ROW_PITCH);
                assert_eq!((width, pitch), (size[0], row));
            }
        }
        // A buffer as a line of texels.
        let stored = random(100 * bytes);
        let buffer = setup.buffer_of(&stored);
        let count = 100 * pixels;
        let mut line = desc(CL_MEM_OBJECT_IMAGE1D_BUFFER, [count, 0, 0]);
        line.buffer = buffer.0;
        let line = image(&setup, CL_MEM_READ_ONLY, &format(data), &line, null_mut());
        let wanted: Vec<u32> = (0..count).map(|x| pixel(&stored, x, raw)).collect();
        assert_eq!(
            seen(&setup, &program, "texels", &line, [count, 1, 1]),
            wanted
        );
        // Rows further apart than they are long, by what is no multiple of anything.
        let pitch = 9 * bytes + 2;
        let mut plane = desc(CL_MEM_OBJECT_IMAGE2D, [9 * pixels, 6, 1]);
        plane.buffer = buffer.0;
        plane.image_row_pitch = pitch;
        let plane = image(&setup, CL_MEM_READ_ONLY, &format(data), &plane, null_mut());
        let wanted: Vec<u32> = (0..6)
            .flat_map(|y| (0..9 * pixels).map(move |x| (x, y)))
            .map(|(x, y)| pixel(&stored[y * pitch..], x, raw))
            .collect();
        let size = [9 * pixels, 6, 1];
        assert_eq!(seen(&setup, &program, "plane", &plane, size), wanted);
        // Queries and samplers.
        let to = setup.buffer(64);
        let kernel = setup.kernel(&program, "about");
        kernel.set_buffer(0, &plane).set_buffer(1, &to);
        setup.run(&kernel, &[1], None);
        let got = setup.read::<[u32; 4]>(&to, 4);
        assert_eq!(got[0], [size[0] as u32, 6, data, CL_R]);
        assert_eq!(got[1], [0, 0, 0, 1]);
        assert_eq!(got[2], [wanted[size[0] - 1], 0, 0, 1]);
        assert_eq!(got[3], [wanted[1], 0, 0, 1]);
    }
}

#[test]
fn raw_pixels_are_moved_by_whole_blocks() {
    let setup = Setup::new();
    if !has_raw(&setup) {
        return pumice_tests::left_out("no cl_ext_image_raw10_raw12");
    }
    for (data, pixels, bytes, low) in RAW {
        let (size, blocks) = ([10 * pixels, 5, 1], 10);
        let plane = desc(CL_MEM_OBJECT_IMAGE2D, size);
        let make = || image(&setup, CL_MEM_READ_ONLY, &format(data), &plane, null_mut());
        let (one, other) = (make(), make());
        let mut stored = random(blocks * bytes * 5);
        write(&setup, &one, [0; 3], size, (0, 0), &stored);
        let (origin, some) = ([3 * pixels, 1, 0], [4 * pixels, 3, 1]);
        let inner = part(&stored, [blocks, 5, 1], bytes, [3, 1, 0], [4, 3, 1]);
        assert_eq!(read(&setup, &one, origin, some, (0, 0), inner.len()), inner);
        // A pitch that is no multiple of a block.
        let pitch = 4 * bytes + 1;
        let got = read(&setup, &one, origin, some, (pitch, 0), 3 * pitch);
        for (row, wanted) in got.chunks(pitch).zip(inner.chunks(4 * bytes)) {
            assert_eq!(row[..4 * bytes], *wanted);
            assert_eq!(row[4 * bytes], 0xee, "between the rows");
        }
        // Copies to an image and a buffer, and back from there.
        write(&setup, &other, [0; 3], size, (0, 0), &vec![0; stored.len()]);
        let none = null_mut();
        let to = [pixels, 2, 0];
        ok!(clEnqueueCopyImage(
            setup.queue.0,
            one.0,
            other.0,
            origin.as_ptr(),
            to.as_ptr(),
            some.as_ptr(),
            0,
            null(),
            none
        ));
        assert_eq!(read(&setup, &other, to, some, (0, 0), inner.len()), inner);
        let buffer = setup.buffer(inner.len() + 1);
        ok!(clEnqueueCopyImageToBuffer(
            setup.queue.0,
            one.0,
            buffer.0,
            origin.as_ptr(),
            some.as_ptr(),
            1,
            0,
            null(),
            none
        ));
        assert_eq!(setup.read::<u8>(&buffer, inner.len() + 1)[1..], inner);
        ok!(clEnqueueCopyBufferToImage(
            setup.queue.0,
            buffer.0,
            other.0,
            1,
            [0usize; 3].as_ptr(),
            some.as_ptr(),
            0,
            null(),
            none
        ));
        let back = read(&setup, &other, [0; 3], some, (0, 0), inner.len());
        assert_eq!(back, inner);
        // A fill, of a value that is larger than any.
        let most = (1u32 << (8 + low)) - 1;
        for value in [most - 2, most + 7] {
            let colour = [value, 5, 6, 7];
            ok!(clEnqueueFillImage(
                setup.queue.0,
                one.0,
                colour.as_ptr().cast(),
                origin.as_ptr(),
                some.as_ptr(),
                0,
                null(),
                none
            ));
            let got = read(&setup, &one, origin, some, (0, 0), inner.len());
            let format = (data, pixels, bytes, low);
            for row in got.chunks(4 * bytes) {
                for x in 0..some[0] {
                    assert_eq!(pixel(row, x, format), value.min(most), "{x}");
                }
            }
        }
        // Beside the fill nothing is changed; a map shows it all and writes it back.
        let (mut pitch, mut code) = (0, 0);
        let pointer = call!(clEnqueueMapImage(
            setup.queue.0,
            one.0,
            CL_TRUE,
            CL_MAP_READ | CL_MAP_WRITE,
            [0usize; 3].as_ptr(),
            size.as_ptr(),
            &mut pitch,
            null_mut(),
            0,
            null(),
            null_mut(),
            &mut code
        ));
        assert_eq!(code, 0);
        for (y, row) in stored.chunks_mut(blocks * bytes).enumerate() {
            // SAFETY: the map has these rows.
            let shown = unsafe {
                std::slice::from_raw_parts_mut(pointer.cast::<u8>().add(y * pitch), row.len())
            };
            for (x, (byte, wanted)) in shown.iter_mut().zip(row).enumerate() {
                let filled = (1..4).contains(&y) && (3..7).contains(&(x / bytes));
                assert!(filled || byte == wanted, "{x} {y}");
                *byte = byte.wrapping_mul(3);
                *wanted = *byte;
            }
        }
        ok!(clEnqueueUnmapMemObject(
            setup.queue.0,
            one.0,
            pointer,
            0,
            null(),
            null_mut()
        ));
        let back = read(&setup, &one, [0; 3], size, (0, 0), stored.len());
        assert_eq!(back, stored);
        // What cuts through a block.
        for (x, width) in [(1, pixels), (0, pixels - 1), (pixels, pixels + 1)] {
            let mut room = vec![0u8; stored.len()];
            let code = call!(clEnqueueReadImage(
                setup.queue.0,
                one.0,
                CL_TRUE,
                [x, 0, 0].as_ptr(),
                [width, 1, 1].as_ptr(),
                0,
                0,
                room.as_mut_ptr().cast(),
                0,
                null(),
                null_mut()
            ));
            assert_eq!(code, CL_INVALID_VALUE, "{x} {width}");
        }
    }
}

#[test]
fn raw_images_are_planes_of_one_channel_for_reading() {
    let setup = Setup::new();
    if !has_raw(&setup) {
        return pumice_tests::left_out("no cl_ext_image_raw10_raw12");
    }
    let of = |flags, order, data, width| {
        let format = cl_image_format {
            image_channel_order: order,
            image_channel_data_type: data,
        };
        let plane = desc(CL_MEM_OBJECT_IMAGE2D, [width, 8, 1]);
        refused(&setup, flags, &format, &plane, null_mut())
    };
    let widest = info_value!(
        usize,
        clGetDeviceInfo(setup.device),
        CL_DEVICE_IMAGE2D_MAX_WIDTH
    );
    for (data, pixels, ..) in RAW {
        let wrong = code_name(CL_INVALID_IMAGE_FORMAT_DESCRIPTOR);
        for order in [CL_A, CL_RG, CL_RGB, CL_RGBA, CL_INTENSITY, CL_DEPTH, CL_Rx] {
            assert_eq!(of(CL_MEM_READ_ONLY, order, data, 8), wrong, "{order:#x}");
        }
        for flags in [0, CL_MEM_WRITE_ONLY, CL_MEM_KERNEL_READ_AND_WRITE] {
            let code = of(flags, CL_R, data, 8);
            assert_eq!(code, code_name(CL_IMAGE_FORMAT_NOT_SUPPORTED), "{flags}");
        }
        let mut bytes = vec![0u8; 64 * 64];
        let mut other = |flags, kind, size| {
            let host = match flags & CL_MEM_USE_HOST_PTR {
                0 => null_mut(),
                _ => bytes.as_mut_ptr().cast(),
            };
            refused(&setup, flags, &format(data), &desc(kind, size), host)
        };
        let immutable = CL_MEM_IMMUTABLE_EXT | CL_MEM_USE_HOST_PTR;
        for (flags, kind, size) in [
            (CL_MEM_READ_ONLY, CL_MEM_OBJECT_IMAGE3D, [8, 8, 8]),
            (immutable, CL_MEM_OBJECT_IMAGE2D, [8, 8, 1]),
        ] {
            let code = other(flags, kind, size);
            assert_eq!(code, code_name(CL_IMAGE_FORMAT_NOT_SUPPORTED), "{flags}");
        }
        for width in 1..9 {
            let code = match width % pixels {
                0 => 0,
                _ => CL_INVALID_IMAGE_DESCRIPTOR,
            };
            assert_eq!(of(CL_MEM_READ_ONLY, CL_R, data, width), code_name(code));
        }
        // Widths are of pixels, not of blocks.
        assert_eq!(of(CL_MEM_READ_ONLY, CL_R, data, widest), code_name(0));
        let code = of(CL_MEM_READ_ONLY, CL_R, data, widest + pixels);
        assert_eq!(code, code_name(CL_INVALID_IMAGE_SIZE));
    }
}
