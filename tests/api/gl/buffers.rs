//! Buffers of OpenGL.

use super::world::*;
use pumice_tests::sys::*;
use pumice_tests::{ok, Event};
use std::ptr::{null, null_mut};

const ADD: &str = "kernel void add(global uint *p, uint n) { p[get_global_id(0)] += n; }";

fn words(bytes: &[u8]) -> Vec<u32> {
    bytes
        .as_chunks()
        .0
        .iter()
        .map(|word| u32::from_ne_bytes(*word))
        .collect()
}

#[test]
fn contents_go_to_kernels_and_back() {
    let Some(world) = World::new(OPENGL_API) else {
        return;
    };
    let sharing = world.setup();
    let kernel = sharing.setup.kernel_of(ADD, "add");
    for (round, count) in [1usize, 1000, 300_000].into_iter().enumerate() {
        let bytes = noise(count * 4, round as u32);
        let name = world.new_buffer(&bytes);
        let mem = sharing.buffer(CL_MEM_READ_WRITE, name).expect("a buffer");
        let mut expected = words(&bytes);
        for add in [1u32, 77] {
            sharing.acquire(&mem);
            kernel.set_buffer(0, &mem).set(1, add);
            sharing.setup.enqueue(&kernel, &[count], None);
            sharing.release(&mem);
            sharing.finish();
            expected
                .iter_mut()
                .for_each(|word| *word = word.wrapping_add(add));
            assert_eq!(words(&world.buffer_bytes(name, count * 4)), expected);
            // What OpenGL writes then is what the next round sees.
            let bytes = noise(count * 4, 9 + add);
            expected = words(&bytes);
            gl!(world.gl, BindBuffer(ARRAY_BUFFER, name));
            gl!(
                world.gl,
                BufferData(
                    ARRAY_BUFFER,
                    bytes.len() as isize,
                    bytes.as_ptr().cast(),
                    0x88E8
                )
            );
        }
        drop(mem);
        gl!(world.gl, DeleteBuffers(1, &name));
    }
}

/// Storage that cannot be mapped, nor written by glBufferSubData.
#[test]
fn immutable_storage_is_shared_too() {
    let Some(world) = World::new(OPENGL_API) else {
        return;
    };
    let sharing = world.setup();
    let bytes = noise(4096, 3);
    let mut name = 0;
    gl!(world.gl, GenBuffers(1, &mut name));
    gl!(world.gl, BindBuffer(ARRAY_BUFFER, name));
    gl!(
        world.gl,
        BufferStorage(ARRAY_BUFFER, 4096, bytes.as_ptr().cast(), 1)
    );
    world.check();
    let mem = sharing.buffer(CL_MEM_READ_WRITE, name).expect("a buffer");
    sharing.acquire(&mem);
    assert_eq!(sharing.setup.read::<u8>(&mem, 4096), bytes);
    let other = noise(4096, 4);
    sharing.setup.write(&mem, &other);
    sharing.release(&mem);
    sharing.finish();
    assert_eq!(world.buffer_bytes(name, 4096), other);
}

#[test]
fn several_objects_in_an_unordered_queue() {
    let Some(world) = World::new(OPENGL_API) else {
        return;
    };
    let sharing = Sharing::new(&world.properties(), CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    let kernel = sharing.setup.kernel_of(ADD, "add");
    let contents: Vec<_> = (0..5).map(|n| noise(4000, n)).collect();
    let names: Vec<_> = contents
        .iter()
        .map(|bytes| world.new_buffer(bytes))
        .collect();
    let mems: Vec<_> = (names.iter())
        .map(|name| sharing.buffer(CL_MEM_READ_WRITE, *name).expect("a buffer"))
        .collect();
    let list: Vec<_> = mems.iter().map(|mem| mem.0).collect();
    let gate = Event::user(&sharing.setup.context);
    let acquired = sharing
        .hand_over(true, &list, &[gate.0])
        .expect("an acquire");
    let mut ran = Vec::new();
    for mem in &mems {
        kernel.set_buffer(0, mem).set(1, 5u32);
        let mut event = null_mut();
        ok!(clEnqueueNDRangeKernel(
            sharing.queue(),
            kernel.0,
            1,
            null(),
            &1000,
            null(),
            1,
            &acquired.0,
            &mut event
        ));
        ran.push(Event(event));
    }
    let waits: Vec<_> = ran.iter().map(|event| event.0).collect();
    // No context is current here, so this does not wait.
    world.make_none_current();
    let released = sharing.hand_over(false, &list, &waits).expect("a release");
    assert_ne!(acquired.status(), 0);
    gate.finish(0);
    assert_eq!(released.wait(), 0);
    assert_eq!(acquired.status(), 0);
    world.make_current();
    for (name, bytes) in names.iter().zip(&contents) {
        let expected: Vec<_> = words(bytes)
            .iter()
            .map(|word| word.wrapping_add(5))
            .collect();
        assert_eq!(words(&world.buffer_bytes(*name, 4000)), expected);
    }
}

#[test]
fn kernels_see_parts_of_shared_buffers() {
    let Some(world) = World::new(OPENGL_API) else {
        return;
    };
    let sharing = world.setup();
    let kernel = sharing.setup.kernel_of(ADD, "add");
    let bytes = noise(8192, 5);
    let name = world.new_buffer(&bytes);
    let mem = sharing.buffer(CL_MEM_READ_WRITE, name).expect("a buffer");
    let region = cl_buffer_region {
        origin: 4096,
        size: 4096,
    };
    let part = pumice_tests::Buffer(pumice_tests::create!(clCreateSubBuffer(
        mem.0,
        0,
        CL_BUFFER_CREATE_TYPE_REGION,
        (&raw const region).cast()
    )));
    sharing.acquire(&mem);
    kernel.set_buffer(0, &part).set(1, 1u32);
    sharing.setup.enqueue(&kernel, &[1024], None);
    sharing.release(&mem);
    sharing.finish();
    let mut expected = words(&bytes);
    expected[1024..]
        .iter_mut()
        .for_each(|word| *word = word.wrapping_add(1));
    assert_eq!(words(&world.buffer_bytes(name, 8192)), expected);
}

/// An object that OpenCL may only read, and does, stays as it is in OpenGL.
#[test]
fn read_only_objects_are_not_written_back() {
    let Some(world) = World::new(OPENGL_API) else {
        return;
    };
    let sharing = world.setup();
    let (first, second) = (noise(100, 1), noise(100, 2));
    let name = world.new_buffer(&first);
    let mem = sharing.buffer(CL_MEM_READ_ONLY, name).expect("a buffer");
    sharing.acquire(&mem);
    assert_eq!(sharing.setup.read::<u8>(&mem, 100), first);
    sharing.release(&mem);
    sharing.finish();
    assert_eq!(world.buffer_bytes(name, 100), first);
    // A command of the host may write to it.
    sharing.acquire(&mem);
    sharing.setup.write(&mem, &second);
    sharing.release(&mem);
    sharing.finish();
    assert_eq!(world.buffer_bytes(name, 100), second);
}
