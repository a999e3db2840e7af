//! Images of every type over buffers with pitches of their own (cl_ext_image_from_buffer).

use super::*;

/// Four unsigned bytes a pixel.
const BYTES4: cl_image_format = cl_image_format {
    image_channel_order: CL_RGBA,
    image_channel_data_type: CL_UNSIGNED_INT8,
};

/// An image over a buffer, and where its texels lie.
struct Over {
    image: Buffer,
    /// Bytes from one second, and one third, coordinate to the next.
    steps: (usize, usize),
}

impl Over {
    /// Over a buffer, with two pixels between rows and a row between slices.
    fn new(setup: &Setup, buffer: &Buffer, kind: cl_mem_object_type, size: [usize; 3]) -> Self {
        let mut desc = desc(kind, size);
        desc.buffer = buffer.0;
        let row = (size[0] + 2) * 4;
        let steps = match kind {
            CL_MEM_OBJECT_IMAGE1D_ARRAY => (row * 2, row * 2),
            CL_MEM_OBJECT_IMAGE2D_ARRAY | CL_MEM_OBJECT_IMAGE3D => (row, row * (size[1] + 1)),
            _ => (row, row * size[1]),
        };
        desc.image_row_pitch = row;
        desc.image_slice_pitch = match kind {
            CL_MEM_OBJECT_IMAGE1D | CL_MEM_OBJECT_IMAGE2D => 0,
            _ => steps.1,
        };
        Self {
            image: image(setup, 0, &BYTES4, &desc, null_mut()),
            steps,
        }
    }

    /// First bytes of the rows of a box, in the buffer.
    fn rows(&self, [x, y, z]: [usize; 3], [_, h, d]: [usize; 3]) -> Vec<usize> {
        let all = (z..z + d).flat_map(|z| (y..y + h).map(move |y| (y, z)));
        all.map(|(y, z)| z * self.steps.1 + y * self.steps.0 + x * 4)
            .collect()
    }

    /// The bytes of a box, packed.
    fn packed(&self, data: &[u8], origin: [usize; 3], size: [usize; 3]) -> Vec<u8> {
        let rows = self.rows(origin, size);
        rows.iter()
            .flat_map(|at| data[*at..at + size[0] * 4].to_vec())
            .collect()
    }

    /// Packed bytes into a box.
    fn place(&self, data: &mut [u8], origin: [usize; 3], size: [usize; 3], packed: &[u8]) {
        let rows = self.rows(origin, size);
        for (at, row) in rows.iter().zip(packed.chunks(size[0] * 4)) {
            data[*at..at + row.len()].copy_from_slice(row);
        }
    }
}

/// An inner box of an image.
fn inner(size: [usize; 3]) -> ([usize; 3], [usize; 3]) {
    let origin = size.map(|n| usize::from(n > 2));
    let inner = [0, 1, 2].map(|axis| size[axis] - 2 * origin[axis]);
    (origin, inner)
}

const BYTES: usize = 16384;

#[test]
fn hosts_see_the_bytes_of_the_buffer() {
    let setup = Setup::new();
    if !setup.has_images() {
        return pumice_tests::left_out("no images");
    }
    for (kind, size) in KINDS {
        let mut data = random(BYTES);
        let buffer = setup.buffer_of(&data);
        let over = Over::new(&setup, &buffer, kind, size);
        let (origin, part) = inner(size);
        let bytes = part.iter().product::<usize>() * 4;
        let got = read(&setup, &over.image, origin, part, (0, 0), bytes);
        assert_eq!(got, over.packed(&data, origin, part), "read {kind:#x}");
        let new = random(bytes + 1)[1..].to_vec();
        write(&setup, &over.image, origin, part, (0, 0), &new);
        over.place(&mut data, origin, part, &new);
        assert!(setup.read::<u8>(&buffer, BYTES) == data, "write {kind:#x}");
        // Between such an image and one of the device's own, both ways.
        let own = image(&setup, 0, &BYTES4, &desc(kind, size), null_mut());
        let copy = |from: &Buffer, to: &Buffer, origin: [usize; 3], part: [usize; 3]| {
            ok!(clEnqueueCopyImage(
                setup.queue.0,
                from.0,
                to.0,
                origin.as_ptr(),
                origin.as_ptr(),
                part.as_ptr(),
                0,
                null(),
                null_mut()
            ));
        };
        copy(&over.image, &own, [0; 3], size);
        let all = size.iter().product::<usize>() * 4;
        let got = read(&setup, &own, [0; 3], size, (0, 0), all);
        assert_eq!(got, over.packed(&data, [0; 3], size), "copy {kind:#x}");
        let new = random(all + 2)[2..].to_vec();
        write(&setup, &own, [0; 3], size, (0, 0), &new);
        copy(&own, &over.image, origin, part);
        let target = setup.buffer(BYTES);
        let other = Over::new(&setup, &target, kind, size);
        copy(&over.image, &other.image, origin, part);
        let packed: Vec<u8> = {
            let mut whole = vec![0; BYTES];
            over.place(&mut whole, [0; 3], size, &new);
            over.packed(&whole, origin, part)
        };
        over.place(&mut data, origin, part, &packed);
        assert!(setup.read::<u8>(&buffer, BYTES) == data, "back {kind:#x}");
        let got = read(&setup, &other.image, origin, part, (0, 0), bytes);
        assert_eq!(got, packed, "over both {kind:#x}");
        // A fill leaves what lies between the rows as it was.
        ok!(clEnqueueFillImage(
            setup.queue.0,
            over.image.0,
            [1u32, 2, 3, 4].as_ptr().cast(),
            origin.as_ptr(),
            part.as_ptr(),
            0,
            null(),
            null_mut()
        ));
        over.place(&mut data, origin, part, &[1, 2, 3, 4].repeat(bytes / 4));
        assert!(setup.read::<u8>(&buffer, BYTES) == data, "fill {kind:#x}");
        // And a map shows rows where it says they are.
        let (mut row, mut slice) = (0, 0);
        let mapped = create!(clEnqueueMapImage(
            setup.queue.0,
            over.image.0,
            CL_TRUE,
            CL_MAP_READ | CL_MAP_WRITE,
            origin.as_ptr(),
            part.as_ptr(),
            &mut row,
            &mut slice,
            0,
            null(),
            null_mut()
        ));
        let step = match kind {
            CL_MEM_OBJECT_IMAGE1D_ARRAY => slice,
            _ => row,
        };
        for z in 0..part[2] {
            for y in 0..part[1] {
                let at = mapped.cast::<u8>().wrapping_add(z * slice + y * step);
                // SAFETY: the region is mapped with these pitches.
                let bytes = unsafe { std::slice::from_raw_parts_mut(at, part[0] * 4) };
                assert_eq!(bytes, [1, 2, 3, 4].repeat(part[0]), "map {kind:#x}");
                bytes.fill(9);
            }
        }
        ok!(clEnqueueUnmapMemObject(
            setup.queue.0,
            over.image.0,
            mapped,
            0,
            null(),
            null_mut()
        ));
        over.place(&mut data, origin, part, &vec![9; bytes]);
        assert!(setup.read::<u8>(&buffer, BYTES) == data, "unmap {kind:#x}");
    }
}

/// The type in OpenCL C and its coordinate.
fn in_kernels(kind: cl_mem_object_type) -> (&'static str, &'static str) {
    match kind {
        CL_MEM_OBJECT_IMAGE1D => ("image1d_t", "at.x"),
        CL_MEM_OBJECT_IMAGE1D_ARRAY => ("image1d_array_t", "at.xy"),
        CL_MEM_OBJECT_IMAGE2D => ("image2d_t", "at.xy"),
        CL_MEM_OBJECT_IMAGE2D_ARRAY => ("image2d_array_t", "at"),
        _ => ("image3d_t", "at"),
    }
}

/// A kernel `get` that reads all texels, and a kernel `put` that writes those for which `written` holds.
fn kernels_of(kind: cl_mem_object_type, written: &str) -> String {
    let (name, at) = in_kernels(kind);
    format!(
        "kernel void get(read_only {name} im, global uchar4 *out) {{
             int4 at = (int4)(get_global_id(0), get_global_id(1), get_global_id(2), 0);
             uint4 texel = read_imageui(im, {at});
             out[(at.z * get_global_size(1) + at.y) * get_global_size(0) + at.x] = convert_uchar4(texel); }}
         kernel void put(write_only {name} im) {{
             int4 at = (int4)(get_global_id(0), get_global_id(1), get_global_id(2), 0);
             if ({written})
                 write_imageui(im, {at}, (uint4)(at.x, at.y, at.z, 77)); }}"
    )
}

#[test]
fn kernels_see_the_bytes_of_the_buffer() {
    let setup = Setup::new();
    if !setup.has_images() {
        return pumice_tests::left_out("no images");
    }
    // What the bytes of a buffer come from: its own memory, memory of the application at an odd address, another
    // buffer.
    for source in 0..3 {
        for (kind, size) in KINDS {
            let mut data = random(BYTES);
            let mut host = random(BYTES + 1);
            host[1..].copy_from_slice(&data);
            let parent = setup.buffer_of(&[vec![0; 4096], data.clone()].concat());
            let region = cl_buffer_region {
                origin: 4096,
                size: BYTES,
            };
            let buffer = match source {
                0 => setup.buffer_of(&data),
                1 => Buffer(create!(clCreateBuffer(
                    setup.context.0,
                    CL_MEM_USE_HOST_PTR,
                    BYTES,
                    host[1..].as_mut_ptr().cast()
                ))),
                _ => Buffer(create!(clCreateSubBuffer(
                    parent.0,
                    CL_MEM_READ_WRITE,
                    CL_BUFFER_CREATE_TYPE_REGION,
                    (&raw const region).cast()
                ))),
            };
            let over = Over::new(&setup, &buffer, kind, size);
            let (name, _) = in_kernels(kind);
            let program = setup.build(&kernels_of(kind, "(at.x + at.y + at.z) % 2"));
            let out = setup.buffer(size.iter().product::<usize>() * 4);
            let get = setup.kernel(&program, "get");
            get.set_buffer(0, &over.image).set_buffer(1, &out);
            let put = setup.kernel(&program, "put");
            put.set_buffer(0, &over.image);
            for round in 0..2 {
                setup.run(&get, &size, None);
                let got: Vec<u8> = setup.read(&out, size.iter().product::<usize>() * 4);
                assert!(
                    got == over.packed(&data, [0; 3], size),
                    "{name}, source {source}, round {round}"
                );
                // Texels that the kernel does not write, and what lies between rows, stay.
                setup.run(&put, &size, None);
                for z in 0..size[2] {
                    for y in 0..size[1] {
                        for x in (0..size[0]).filter(|x| (x + y + z) % 2 == 1) {
                            over.place(
                                &mut data,
                                [x, y, z],
                                [1; 3],
                                &[x as u8, y as u8, z as u8, 77],
                            );
                        }
                    }
                }
                // What commands on the buffer do is seen by the image afterwards.
                let got: Vec<u8> = setup.read(&buffer, BYTES);
                assert!(got == data, "{name} wrote, source {source}, round {round}");
                data[..64].copy_from_slice(&random(64));
                ok!(clEnqueueWriteBuffer(
                    setup.queue.0,
                    buffer.0,
                    CL_TRUE,
                    0,
                    64,
                    data.as_ptr().cast(),
                    0,
                    null(),
                    null_mut()
                ));
            }
        }
    }
}

#[test]
fn images_that_a_buffer_cannot_hold_are_refused() {
    let setup = Setup::new();
    if !setup.has_images() {
        return pumice_tests::left_out("no images");
    }
    let buffer = setup.buffer(BYTES);
    let refusal = |kind, size, row, slice| {
        let mut desc = desc(kind, size);
        desc.buffer = buffer.0;
        (desc.image_row_pitch, desc.image_slice_pitch) = (row, slice);
        refused(&setup, 0, &BYTES4, &desc, null_mut())
    };
    let (line, lines) = (CL_MEM_OBJECT_IMAGE1D, CL_MEM_OBJECT_IMAGE1D_ARRAY);
    let (plane, planes) = (CL_MEM_OBJECT_IMAGE2D, CL_MEM_OBJECT_IMAGE2D_ARRAY);
    let solid = CL_MEM_OBJECT_IMAGE3D;
    let huge = usize::MAX / 8 * 4;
    for (kind, size, row, slice, code) in [
        (line, [4096, 1, 1], 0, 0, 0),
        (line, [4097, 1, 1], 0, 0, CL_INVALID_IMAGE_SIZE),
        (lines, [1024, 4, 1], 0, 0, 0),
        (lines, [1024, 5, 1], 0, 0, CL_INVALID_IMAGE_SIZE),
        (lines, [1024, 2, 1], 0, 12288, 0),
        (lines, [1024, 3, 1], 0, 8192, CL_INVALID_IMAGE_SIZE),
        (plane, [64, 64, 1], 0, 0, 0),
        (plane, [64, 65, 1], 0, 0, CL_INVALID_IMAGE_SIZE),
        // The last row need not be as long as the pitch.
        (plane, [64, 16, 1], 1072, 0, 0),
        (plane, [64, 16, 1], 1088, 0, CL_INVALID_IMAGE_SIZE),
        (planes, [16, 16, 16], 0, 0, 0),
        (planes, [16, 16, 17], 0, 0, CL_INVALID_IMAGE_SIZE),
        (solid, [16, 16, 16], 0, 0, 0),
        (solid, [16, 16, 8], 0, 2048, 0),
        (solid, [16, 16, 16], 68, 0, CL_INVALID_IMAGE_SIZE),
        // Sums that no integer holds.
        (plane, [4, 2, 1], huge, 0, CL_INVALID_IMAGE_SIZE),
        (plane, [4, 8, 1], huge, 0, CL_INVALID_IMAGE_SIZE),
        (lines, [4, 2, 1], huge, huge, CL_INVALID_IMAGE_SIZE),
        (solid, [4, 1, 9], huge, huge, CL_INVALID_IMAGE_SIZE),
        // Pitches that are too small, or aligned badly.
        (plane, [16, 2, 1], 60, 0, CL_INVALID_IMAGE_DESCRIPTOR),
        (solid, [16, 2, 2], 64, 64, CL_INVALID_IMAGE_DESCRIPTOR),
        (plane, [16, 2, 1], 66, 0, CL_INVALID_IMAGE_FORMAT_DESCRIPTOR),
        (lines, [16, 2, 1], 66, 0, CL_INVALID_IMAGE_FORMAT_DESCRIPTOR),
        (solid, [4, 2, 2], 16, 36, CL_INVALID_IMAGE_FORMAT_DESCRIPTOR),
    ] {
        let got = refusal(kind, size, row, slice);
        assert_eq!(got, code_name(code), "{kind:#x} {size:?} {row} {slice}");
    }
    // Images are views of images only if both are two-dimensional.
    let own = image(&setup, 0, &BYTES4, &desc(solid, [4; 3]), null_mut());
    let mut view = desc(solid, [4; 3]);
    view.buffer = own.0;
    let got = refused(&setup, 0, &BYTES4, &view, null_mut());
    assert_eq!(got, code_name(CL_INVALID_IMAGE_DESCRIPTOR));
}

#[test]
fn large_row_and_slice_pitches() {
    let setup = Setup::new();
    if !setup.has_images() {
        return pumice_tests::left_out("no images");
    }
    // More than Vulkan's copies can say of one row, or one slice.
    const FAR: usize = 1 << 31;
    for (kind, size, row, slice) in [
        (CL_MEM_OBJECT_IMAGE1D_ARRAY, [5, 2, 1], 32, FAR),
        (CL_MEM_OBJECT_IMAGE2D, [5, 2, 1], FAR, 0),
        (CL_MEM_OBJECT_IMAGE2D_ARRAY, [5, 3, 2], 32, FAR),
        (CL_MEM_OBJECT_IMAGE3D, [5, 3, 2], 32, FAR),
        (CL_MEM_OBJECT_IMAGE3D, [5, 1, 2], 32, 96),
    ] {
        let mut code = 0;
        let buffer = Buffer(call!(clCreateBuffer(
            setup.context.0,
            CL_MEM_READ_WRITE,
            FAR + 128,
            null_mut(),
            &mut code
        )));
        if code != 0 {
            return pumice_tests::left_out("no buffer so large");
        }
        let mut desc = desc(kind, size);
        desc.buffer = buffer.0;
        (desc.image_row_pitch, desc.image_slice_pitch) = (row, slice);
        let mem = image(&setup, 0, &BYTES4, &desc, null_mut());
        let texels = size.iter().product::<usize>();
        let data = random(texels * 4);
        write(&setup, &mem, [0; 3], size, (0, 0), &data);
        let (name, _) = in_kernels(kind);
        let program = setup.build(&kernels_of(kind, "true"));
        let out = setup.buffer(texels * 4);
        let get = setup.kernel(&program, "get");
        get.set_buffer(0, &mem).set_buffer(1, &out);
        setup.run(&get, &size, None);
        assert_eq!(setup.read::<u8>(&out, texels * 4), data, "{name}");
        let put = setup.kernel(&program, "put");
        put.set_buffer(0, &mem);
        setup.run(&put, &size, None);
        let got = read(&setup, &mem, [0; 3], size, (0, 0), texels * 4);
        let mut want = Vec::new();
        for i in 0..texels {
            want.extend([
                i % size[0],
                i / size[0] % size[1],
                i / size[0] / size[1],
                77,
            ]);
        }
        assert!(got.iter().map(|b| usize::from(*b)).eq(want), "{name}");
    }
}
