//! Images: calls that may not block, and memory of the application that nothing may write.

use pumice_tests::gate::{runs_native_kernels, Gate};
use pumice_tests::sys::*;
use pumice_tests::{create, left_out, ok, Buffer, Setup};
use std::ffi::c_void;
use std::ptr::{null, null_mut};

const FORMAT: cl_image_format = cl_image_format {
    image_channel_order: CL_RGBA,
    image_channel_data_type: CL_UNSIGNED_INT8,
};

/// A two-dimensional image.
fn image(setup: &Setup, flags: cl_mem_flags, size: [usize; 2], host: *mut c_void) -> Buffer {
    // SAFETY: a description of numbers and pointers, which zeros are.
    let mut description: cl_image_desc = unsafe { std::mem::zeroed() };
    description.image_type = CL_MEM_OBJECT_IMAGE2D;
    [description.image_width, description.image_height] = size;
    Buffer(create!(clCreateImage(
        setup.context.0,
        flags,
        &FORMAT,
        &description,
        host
    )))
}

/// Reads a whole image and waits.
fn read(setup: &Setup, image: &Buffer, [width, height]: [usize; 2]) -> Vec<u8> {
    let mut bytes = vec![0u8; width * height * 4];
    ok!(clEnqueueReadImage(
        setup.queue.0,
        image.0,
        1,
        [0; 3].as_ptr(),
        [width, height, 1].as_ptr(),
        0,
        0,
        bytes.as_mut_ptr().cast(),
        0,
        null(),
        null_mut()
    ));
    bytes
}

/// Transfers that do not block, larger than any staging memory, behind a command that waits for the host.
#[test]
fn transfers_of_images_return_at_once() {
    const SIZE: [usize; 2] = [4096, 2048];
    let setup = Setup::new();
    if !setup.has_images() {
        return left_out("no images");
    }
    let Some(gate) = Gate::new(&setup) else {
        return left_out("no fine-grained atomics");
    };
    let (queue, image) = (setup.queue.0, image(&setup, 0, SIZE, null_mut()));
    let input: Vec<u8> = (0..SIZE[0] * SIZE[1] * 4).map(|at| at as u8).collect();
    let mut output = vec![0u8; input.len()];
    let (origin, region) = ([0usize; 3], [SIZE[0], SIZE[1], 1]);
    gate.enqueue(&setup.queue);
    let (source, target) = (input.as_ptr().cast(), output.as_mut_ptr().cast());
    gate.returns("a call that does not block", || {
        let (count, list, event) = (0, null(), null_mut());
        let (origin, region) = (origin.as_ptr(), region.as_ptr());
        ok!(clEnqueueWriteImage(
            queue, image.0, 0, origin, region, 0, 0, source, count, list, event
        ));
        ok!(clEnqueueReadImage(
            queue, image.0, 0, origin, region, 0, 0, target, count, list, event
        ));
        ok!(clFlush(queue));
    });
    assert!(gate.is_closed());
    gate.open();
    ok!(clFinish(queue));
    assert!(output == input);
}

/// An image with contents is made while a command of the context waits for the host. On a Vulkan device a submission brings
/// the contents into the image, which is behind that command where the device has one queue.
#[test]
fn images_with_contents_are_made_at_once() {
    const SIZE: [usize; 2] = [64, 64];
    let setup = Setup::new();
    if !setup.has_images() {
        return left_out("no images");
    }
    if !runs_native_kernels(&setup) {
        return left_out("a device that runs one command after the other");
    }
    let Some(gate) = Gate::new(&setup) else {
        return left_out("no fine-grained atomics");
    };
    let mut input: Vec<u8> = (0..SIZE[0] * SIZE[1] * 4).map(|at| at as u8).collect();
    gate.enqueue(&setup.queue);
    ok!(clFlush(setup.queue.0));
    let host = input.as_mut_ptr().cast();
    let image = gate.returns("clCreateImage", || {
        image(&setup, CL_MEM_COPY_HOST_PTR, SIZE, host)
    });
    assert!(gate.is_closed());
    gate.open();
    assert!(read(&setup, &image, SIZE) == input);
}

/// Memory of the application that nothing has written is not written back when its image is mapped.
#[test]
#[cfg(target_os = "linux")]
fn images_of_read_only_memory_are_mapped() {
    const SIZE: [usize; 2] = [64, 64];
    const BYTES: usize = SIZE[0] * SIZE[1] * 4;
    let setup = Setup::new();
    if !setup.has_images() {
        return left_out("no images");
    }
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: new memory, which is unmapped at the end.
    let memory = unsafe { libc::mmap(null_mut(), BYTES, protection, flags, -1, 0) };
    assert_ne!(memory, libc::MAP_FAILED);
    let expected: Vec<u8> = (0..BYTES).map(|at| (at * 7) as u8).collect();
    // SAFETY: so many bytes are there, for this test alone.
    unsafe { std::slice::from_raw_parts_mut(memory.cast::<u8>(), BYTES) }
        .copy_from_slice(&expected);
    // SAFETY: the memory from above, which nothing writes from here on.
    assert_eq!(unsafe { libc::mprotect(memory, BYTES, libc::PROT_READ) }, 0);
    let image = image(&setup, CL_MEM_USE_HOST_PTR | CL_MEM_READ_ONLY, SIZE, memory);
    assert!(read(&setup, &image, SIZE) == expected);
    let mut pitch = 0;
    let mapped = create!(clEnqueueMapImage(
        setup.queue.0,
        image.0,
        1,
        CL_MAP_READ,
        [0; 3].as_ptr(),
        [SIZE[0], SIZE[1], 1].as_ptr(),
        &mut pitch,
        null_mut(),
        0,
        null(),
        null_mut()
    ));
    assert_eq!((mapped, pitch), (memory, SIZE[0] * 4));
    // SAFETY: mapped for reading.
    assert!(unsafe { std::slice::from_raw_parts(mapped as *const u8, BYTES) } == expected);
    ok!(clEnqueueUnmapMemObject(
        setup.queue.0,
        image.0,
        mapped,
        0,
        null(),
        null_mut()
    ));
    ok!(clFinish(setup.queue.0));
    drop(image);
    drop(setup);
    // SAFETY: nothing uses it any more.
    unsafe { libc::munmap(memory, BYTES) };
}
