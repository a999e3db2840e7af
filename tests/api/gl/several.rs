//! Objects of OpenGL in a context of two devices with memories of their own.

use super::world::*;
use pumice_tests::sys::*;
use pumice_tests::{create, left_out, ok, platform, Event, Queue};
use std::ptr::{null, null_mut};

/// One device acquires a buffer and an image, the other uses and releases them.
#[test]
fn devices_share_what_one_has_acquired() {
    let Some(world) = World::new(OPENGL_API) else {
        return;
    };
    let (mut devices, mut count) = ([null_mut(); 2], 0);
    let platform = platform();
    ok!(clGetDeviceIDs(
        platform,
        CL_DEVICE_TYPE_ALL,
        2,
        devices.as_mut_ptr(),
        &mut count
    ));
    if count < 2 {
        return left_out("one device alone");
    }
    let sharing = Sharing::of_devices(&world.properties(), 0, &devices);
    let other = Queue(create!(clCreateCommandQueueWithProperties(
        sharing.setup.context.0,
        devices[1],
        null()
    )));
    let source = "
        kernel void change(global uchar *p, read_only image2d_t from, write_only image2d_t to) {
            int at = get_global_id(0);
            int2 place = (int2)(at % 64, at / 64);
            p[at] += 3;
            write_imagef(to, place, read_imagef(from, place).wzyx);
        }";
    let program = sharing.setup.program(source);
    ok!(clBuildProgram(
        program.0,
        2,
        devices.as_ptr(),
        null(),
        None,
        null_mut()
    ));
    let kernel = sharing.setup.kernel(&program, "change");
    let (bytes, pixels) = (noise(64 * 32, 1), noise(64 * 32 * 4, 2));
    let buffer = world.new_buffer(&bytes);
    let size = [64, 32, 1];
    let from = world.new_texture(TEXTURE_2D, size, RGBA8, Some(&pixels));
    let to = world.new_texture(TEXTURE_2D, size, RGBA8, None);
    let mems = [
        sharing.buffer(CL_MEM_READ_WRITE, buffer).expect("a buffer"),
        sharing.texture(TEXTURE_2D, 0, from).expect("an image"),
        sharing.texture(TEXTURE_2D, 0, to).expect("an image"),
    ];
    let list = mems.each_ref().map(|mem| mem.0);
    let acquired = sharing.hand_over(true, &list, &[]).expect("an acquire");
    for (index, mem) in mems.iter().enumerate() {
        kernel.set(index as cl_uint, mem.0);
    }
    let mut ran = null_mut();
    ok!(clEnqueueNDRangeKernel(
        other.0,
        kernel.0,
        1,
        null(),
        &(64 * 32),
        null(),
        1,
        &acquired.0,
        &mut ran
    ));
    let ran = Event(ran);
    let mut released = null_mut();
    let code = cl!(
        sharing,
        release(other.0, 3, list.as_ptr(), 1, &ran.0, &mut released)
    );
    assert_eq!(code, 0);
    assert_eq!(Event(released).wait(), 0);
    let expected: Vec<_> = bytes.iter().map(|byte| byte.wrapping_add(3)).collect();
    assert!(world.buffer_bytes(buffer, bytes.len()) == expected);
    let swapped: Vec<_> = (pixels.chunks(4))
        .flat_map(|pixel| pixel.iter().rev().copied())
        .collect();
    assert!(world.texture_bytes(TEXTURE_2D, 0, to, RGBA8, pixels.len()) == swapped);
}
