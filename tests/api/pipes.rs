//! Pipes: what kernels read is what others wrote, how many packets there are, reservations, and what the API refuses.

use pumice_tests::sys::*;
use pumice_tests::{
    call, create, create_fails, fails, info, info_text, info_value, ok, Buffer, Event, Kernel,
    Program, Setup,
};
use std::ffi::c_void;
use std::ptr::{null, null_mut};

const SOURCE: &str = include_str!("pipes.cl");

/// The kernels, and a device that has pipes.
struct Pipes {
    setup: Setup,
    program: Program,
}

fn pipes() -> Option<Pipes> {
    pipes_with("-cl-std=CL3.0")
}

fn pipes_with(options: &str) -> Option<Pipes> {
    let setup = Setup::new();
    if info_value!(u32, clGetDeviceInfo(setup.device), CL_DEVICE_PIPE_SUPPORT) == 0 {
        pumice_tests::left_out("the device has no pipes");
        return None;
    }
    let program = setup
        .try_build(SOURCE, options)
        .unwrap_or_else(|log| panic!("{log}"));
    Some(Pipes { setup, program })
}

impl Pipes {
    fn kernel(&self, name: &str) -> Kernel {
        self.setup.kernel(&self.program, name)
    }

    fn pipe(&self, size: u32, most: u32) -> Buffer {
        Buffer(create!(clCreatePipe(
            self.setup.context.0,
            0,
            size,
            most,
            null()
        )))
    }

    fn has_sub_groups(&self) -> bool {
        let device = self.setup.device;
        info_value!(u32, clGetDeviceInfo(device), CL_DEVICE_MAX_NUM_SUB_GROUPS) > 0
    }

    /// Runs a kernel on a pipe, some words, and the results of the work-items, which it gives.
    fn run(
        &self,
        name: &str,
        pipe: &Buffer,
        words: &Buffer,
        items: usize,
        group: usize,
    ) -> Vec<i32> {
        let results = self.setup.buffer_of(&vec![77i32; items]);
        let kernel = self.kernel(name);
        kernel
            .set_buffer(0, pipe)
            .set_buffer(1, words)
            .set_buffer(2, &results);
        self.setup.run(&kernel, &[items], Some(&[group]));
        self.setup.read(&results, items)
    }

    /// get_pipe_num_packets, get_pipe_max_packets.
    fn counts(&self, name: &str, pipe: &Buffer) -> [u32; 2] {
        let counts = self.setup.buffer_of(&[99u32; 2]);
        let kernel = self.kernel(name);
        kernel.set_buffer(0, pipe).set_buffer(1, &counts);
        self.setup.run(&kernel, &[1], None);
        let counts = self.setup.read::<u32>(&counts, 2);
        [counts[0], counts[1]]
    }

    fn packets(&self, pipe: &Buffer) -> u32 {
        self.counts("count", pipe)[0]
    }
}

fn sorted(mut words: Vec<u32>) -> Vec<u32> {
    words.sort_unstable();
    words
}

fn failures(results: &[i32]) -> usize {
    results.iter().filter(|code| **code < 0).count()
}

/// Writes too much and reads too much, over and over, so that the ring is gone round often.
#[test]
fn overflow_and_underflow() {
    let Some(on) = pipes() else { return };
    let (items, most) = (256, 150);
    let pipe = on.pipe(4, most as u32);
    assert_eq!(on.counts("count", &pipe), [0, 150]);
    let into = on.setup.buffer(items * 4);
    assert_eq!(failures(&on.run("get", &pipe, &into, items, 64)), items);
    assert!(on
        .setup
        .read::<u32>(&into, items)
        .iter()
        .all(|&word| word == 0xdead));
    for round in 0..5u32 {
        let words: Vec<u32> = (0..items as u32).map(|i| round * 1000 + i).collect();
        let from = on.setup.buffer_of(&words);
        let written = on.run("put", &pipe, &from, items, 64);
        assert_eq!(failures(&written), items - most);
        assert!(written.iter().all(|&code| code <= 0));
        assert_eq!(on.counts("count_of_written", &pipe), [150, 150]);
        // What was written, each once.
        let expected = words.iter().zip(&written).filter(|(_, code)| **code == 0);
        let expected: Vec<u32> = expected.map(|(word, _)| *word).collect();
        let read = on.run("get", &pipe, &into, items, 64);
        assert_eq!(failures(&read), items - most);
        let got = on.setup.read::<u32>(&into, items);
        let got = got.iter().zip(&read).filter(|(_, code)| **code == 0);
        assert_eq!(sorted(got.map(|(word, _)| *word).collect()), expected);
        assert_eq!(on.packets(&pipe), 0);
    }
}

/// A packet comes out after those that went in before it.
#[test]
fn first_in_first_out() {
    let Some(on) = pipes() else { return };
    let pipe = on.pipe(4, 7);
    let from = on.setup.buffer(4);
    let into = on.setup.buffer(4);
    let (mut written, mut read) = (0u32, 0u32);
    for step in 0..60 {
        if step % 5 < 3 {
            on.setup.write(&from, &[written]);
            let full = written - read == 7;
            assert_eq!(on.run("put", &pipe, &from, 1, 1)[0] < 0, full);
            written += u32::from(!full);
        } else {
            let empty = written == read;
            assert_eq!(on.run("get", &pipe, &into, 1, 1)[0] < 0, empty);
            if !empty {
                assert_eq!(on.setup.read::<u32>(&into, 1), [read]);
                read += 1;
            }
        }
        assert_eq!(on.packets(&pipe), written - read);
    }
}

/// Through a pipe come the bytes of any type.
#[test]
fn packets_of_every_kind() {
    for options in [
        "-cl-std=CL3.0",
        "-cl-std=CL2.0",
        "-cl-std=CL3.0 -cl-opt-disable",
    ] {
        let Some(on) = pipes_with(options) else {
            return;
        };
        let sizes = on.setup.buffer(8);
        on.setup
            .run(on.kernel("sizes_of").set_buffer(0, &sizes), &[1], None);
        let sizes = on.setup.read::<u32>(&sizes, 2);
        let items = 48usize;
        for (name, size) in [
            ("uchar", 1),
            ("short3", 8),
            ("long16", 128),
            ("mixed", sizes[0]),
            ("packed", sizes[1]),
        ] {
            let bytes: Vec<u8> = (0..items * size as usize)
                .map(|i| (i * 7 / 3) as u8)
                .collect();
            let from = on.setup.buffer_of(&bytes);
            let into = on.setup.buffer_of(&vec![0u8; bytes.len()]);
            let pipe = on.pipe(size, items as u32);
            let (put, get) = (
                on.kernel(&format!("put_{name}")),
                on.kernel(&format!("get_{name}")),
            );
            put.set_buffer(0, &pipe).set_buffer(1, &from);
            get.set_buffer(0, &pipe).set_buffer(1, &into);
            on.setup.enqueue(&put, &[items], Some(&[16]));
            on.setup.run(&get, &[items], Some(&[16]));
            let packets = |bytes: &[u8]| {
                let mut packets: Vec<Vec<u8>> = bytes
                    .chunks(size as usize)
                    .map(|packet| members(name, packet))
                    .collect();
                packets.sort_unstable();
                packets
            };
            let got = on.setup.read::<u8>(&into, bytes.len());
            assert_eq!(packets(&got), packets(&bytes), "{name}, {options}");
        }
    }
}

/// A packet without what lies between and behind its members, which need not be copied.
fn members(name: &str, packet: &[u8]) -> Vec<u8> {
    match name {
        "short3" => packet[..6].to_vec(),
        "mixed" => [&packet[..1], &packet[4..8], &packet[8..14]].concat(),
        _ => packet.to_vec(),
    }
}

/// A kernel whose packets have another size than the pipe's neither reads nor writes.
#[test]
fn packets_of_another_size() {
    let Some(on) = pipes() else { return };
    let pipe = on.pipe(8, 16);
    let words = on.setup.buffer_of(&[1u32; 16]);
    assert_eq!(failures(&on.run("put", &pipe, &words, 16, 16)), 16);
    assert_eq!(failures(&on.run("get", &pipe, &words, 16, 16)), 16);
    assert_eq!(on.packets(&pipe), 0);
}

/// Writes and reads by reservations, as one kind of group does; twice as often as the pipe has room for.
fn reserved(put: &str, get: &str, each: usize, group: usize) {
    let Some(on) = pipes() else { return };
    let items = 256usize;
    let count = items * each;
    let pipe = on.pipe(4, count as u32);
    let words: Vec<u32> = (0..count as u32).collect();
    let from = on.setup.buffer_of(&words);
    let into = on.setup.buffer(count * 4);
    for round in 0..3 {
        let written = on.run(put, &pipe, &from, items, group);
        assert!(
            written.iter().all(|&code| code == 0),
            "{put}, {round}: {written:?}"
        );
        assert_eq!(on.packets(&pipe) as usize, count);
        // There is no room.
        let written = on.run(put, &pipe, &from, items, group);
        assert!(
            written.iter().all(|&code| code == 1000),
            "{put}, {round}: {written:?}"
        );
        let read = on.run(get, &pipe, &into, items, group);
        assert!(
            read.iter().all(|&code| code == 0),
            "{get}, {round}: {read:?}"
        );
        assert_eq!(sorted(on.setup.read(&into, count)), words, "{get}, {round}");
        let read = on.run(get, &pipe, &into, items, group);
        assert!(
            read.iter().all(|&code| code == 1000),
            "{get}, {round}: {read:?}"
        );
        assert_eq!(on.packets(&pipe), 0);
    }
}

#[test]
fn reservations_of_work_items() {
    reserved("put_reserved", "get_reserved", 3, 64);
}

#[test]
fn reservations_of_work_groups() {
    reserved("put_group", "get_group", 1, 64);
    // What the groups of one kind wrote is read by others.
    let Some(on) = pipes() else { return };
    let pipe = on.pipe(4, 100);
    let words: Vec<u32> = (0..120).collect();
    let from = on.setup.buffer_of(&words);
    let into = on.setup.buffer(120 * 4);
    // Six groups of twenty, five of which find room.
    let written = on.run("put_group", &pipe, &from, 120, 20);
    assert_eq!(written.iter().filter(|&&code| code == 0).count(), 100);
    for group in written.chunks(20) {
        assert!(group.iter().all(|code| *code == group[0]), "{written:?}");
    }
    // Packets of a reservation are neighbours, and read from its far end here.
    let read = on.run("get_group", &pipe, &into, 100, 20);
    assert!(read.iter().all(|&code| code == 0));
    for group in on.setup.read::<u32>(&into, 100).chunks(20) {
        assert!(
            group.windows(2).all(|pair| pair[1] + 1 == pair[0]),
            "{group:?}"
        );
        assert_eq!(group[19] % 20, 0);
    }
}

#[test]
fn two_reservations_of_a_work_group() {
    let Some(on) = pipes() else { return };
    let pipe = on.pipe(4, 256);
    let words: Vec<u32> = (0..128).collect();
    let from = on.setup.buffer_of(&words);
    let written = on.run("put_group_twice", &pipe, &from, 128, 32);
    assert!(written.iter().all(|&code| code == 0), "{written:?}");
    let into = on.setup.buffer(256 * 4);
    let read = on.run("get", &pipe, &into, 256, 64);
    assert_eq!(failures(&read), 0);
    let expected = words.iter().copied().chain(1000..1128).collect();
    assert_eq!(sorted(on.setup.read(&into, 256)), sorted(expected));
}

#[test]
fn reservations_of_sub_groups() {
    let Some(on) = pipes() else { return };
    if !on.has_sub_groups() {
        return pumice_tests::left_out("the device has no sub-groups");
    }
    // Groups whose last sub-groups are not full, too.
    for group in [64, 16] {
        reserved("put_sub_group", "get_sub_group", 1, group);
    }
    let pipe = on.pipe(4, 1024);
    let words: Vec<u32> = (0..10 * 25).collect();
    let from = on.setup.buffer_of(&words);
    let into = on.setup.buffer(250 * 4);
    let written = on.run("put_sub_group", &pipe, &from, 250, 25);
    assert!(written.iter().all(|&code| code == 0), "{written:?}");
    let read = on.run("get_sub_group", &pipe, &into, 250, 25);
    assert!(read.iter().all(|&code| code == 0), "{read:?}");
    assert_eq!(sorted(on.setup.read(&into, 250)), words);
}

/// Packets can be read when all before them are committed, in whatever order that happens.
#[test]
fn commits_out_of_order() {
    let Some(on) = pipes() else { return };
    let pipe = on.pipe(4, 4);
    let seen = on.setup.buffer(8 * 4);
    let kernel = on.kernel("out_of_order");
    on.setup
        .run(kernel.set_buffer(0, &pipe).set_buffer(1, &seen), &[1], None);
    assert_eq!(on.setup.read::<u32>(&seen, 8), [0, 0, 0, 0, 4, 0, 0, 0]);
    let into = on.setup.buffer(4);
    for k in 0..4 {
        assert_eq!(on.run("get", &pipe, &into, 1, 1), [0]);
        assert_eq!(on.setup.read::<u32>(&into, 1), [100 + k]);
    }
}

/// A pipe goes to a function of another program, and both reserve as a group.
#[test]
fn linked_programs() {
    let Some(on) = pipes() else { return };
    const KERNELS: &str = "
        int fill(write_only pipe uint p, uint packet);
        kernel void put(write_only pipe uint p, global const uint *from, global int *result) {
            size_t i = get_global_id(0);
            result[i] = fill(p, from[i]);
            reserve_id_t id = work_group_reserve_write_pipe(p, get_local_size(0));
            if (is_valid_reserve_id(id)) {
                uint packet = 1000 + from[i];
                write_pipe(p, id, get_local_id(0), &packet);
                work_group_commit_write_pipe(p, id);
            }
        }";
    const FILL: &str = "
        int fill(write_only pipe uint p, uint packet) {
            reserve_id_t id = work_group_reserve_write_pipe(p, get_local_size(0));
            if (!is_valid_reserve_id(id))
                return 1000;
            int code = write_pipe(p, id, get_local_id(0), &packet);
            work_group_commit_write_pipe(p, id);
            return code;
        }";
    let parts = [KERNELS, FILL].map(|source| {
        let program = on.setup.program(source);
        ok!(clCompileProgram(
            program.0,
            1,
            &on.setup.device,
            c"-cl-std=CL3.0".as_ptr(),
            0,
            null(),
            null_mut(),
            None,
            null_mut()
        ));
        program
    });
    let handles = [parts[0].0, parts[1].0];
    let program = Program(create!(clLinkProgram(
        on.setup.context.0,
        1,
        &on.setup.device,
        null(),
        2,
        handles.as_ptr(),
        None,
        null_mut()
    )));
    let put = on.setup.kernel(&program, "put");
    let words: Vec<u32> = (0..64).collect();
    let (pipe, from) = (on.pipe(4, 128), on.setup.buffer_of(&words));
    let results = on.setup.buffer_of(&[77i32; 64]);
    put.set_buffer(0, &pipe)
        .set_buffer(1, &from)
        .set_buffer(2, &results);
    on.setup.run(&put, &[64], Some(&[32]));
    assert_eq!(on.setup.read::<i32>(&results, 64), [0; 64]);
    let into = on.setup.buffer(128 * 4);
    assert_eq!(failures(&on.run("get", &pipe, &into, 128, 64)), 0);
    let expected: Vec<u32> = words.iter().copied().chain(1000..1064).collect();
    assert_eq!(sorted(on.setup.read(&into, 128)), expected);
}

/// A chain of kernels on two queues, which events alone hold in order.
#[test]
fn two_queues() {
    let Some(on) = pipes() else { return };
    let other = on.setup.new_queue(0);
    let items = 128usize;
    let (first, second) = (on.pipe(4, 128), on.pipe(4, 128));
    let words: Vec<u32> = (0..items as u32).collect();
    let from = on.setup.buffer_of(&words);
    let into = on.setup.buffer(items * 4);
    let results = on.setup.buffer(items * 4);
    let (put, forward, get) = (on.kernel("put"), on.kernel("forward"), on.kernel("get"));
    put.set_buffer(0, &first)
        .set_buffer(1, &from)
        .set_buffer(2, &results);
    forward
        .set_buffer(0, &first)
        .set_buffer(1, &second)
        .set_buffer(2, &results);
    get.set_buffer(0, &second)
        .set_buffer(1, &into)
        .set_buffer(2, &results);
    for _ in 0..10 {
        let mut last: Option<Event> = None;
        for (queue, kernel) in [
            (&on.setup.queue, &put),
            (&other, &forward),
            (&on.setup.queue, &get),
        ] {
            let mut event = null_mut();
            let (count, list) = match &last {
                Some(event) => (1, &raw const event.0),
                None => (0, null()),
            };
            ok!(clEnqueueNDRangeKernel(
                queue.0,
                kernel.0,
                1,
                null(),
                &items,
                null(),
                count,
                list,
                &mut event
            ));
            ok!(clFlush(queue.0));
            last = Some(Event(event));
        }
        ok!(clFinish(on.setup.queue.0));
        assert_eq!(failures(&on.setup.read::<i32>(&results, items)), 0);
        let expected: Vec<u32> = words.iter().map(|word| word + 1000).collect();
        assert_eq!(sorted(on.setup.read(&into, items)), expected);
        on.setup.write(&into, &vec![0u32; items]);
    }
}

/// A kernel that writes and one that reads, at the same time where the device does that: what comes out is in order and
/// complete, however far each of them gets.
#[test]
fn both_ends_at_once() {
    let Some(on) = pipes() else { return };
    let other = on.setup.new_queue(0);
    let (total, most, room) = (20_000u32, 30_000u32, 64);
    let pipe = on.pipe(4, room);
    let (written, read, wrong) = (
        on.setup.buffer_of(&[0u32]),
        on.setup.buffer_of(&[0u32]),
        on.setup.buffer_of(&[0u32]),
    );
    let (put, get) = (on.kernel("put_slowly"), on.kernel("get_slowly"));
    put.set_buffer(0, &pipe)
        .set(1, total)
        .set(2, most)
        .set_buffer(3, &written);
    get.set_buffer(0, &pipe)
        .set(1, total)
        .set(2, most)
        .set_buffer(3, &read)
        .set_buffer(4, &wrong);
    other.enqueue(&get, &[1], None);
    ok!(clFlush(other.0));
    on.setup.enqueue(&put, &[1], None);
    ok!(clFlush(on.setup.queue.0));
    ok!(clFinish(other.0));
    ok!(clFinish(on.setup.queue.0));
    let value = |buffer: &Buffer| on.setup.read::<u32>(buffer, 1)[0];
    let (written, read) = (value(&written), value(&read));
    assert_eq!(value(&wrong), 0);
    assert!(
        read <= written && written - read <= room,
        "{written} written, {read} read"
    );
    assert_eq!(on.packets(&pipe), written - read);
    // What is left goes on where the reader was.
    let into = on.setup.buffer(4);
    for packet in read..written {
        assert_eq!(on.run("get", &pipe, &into, 1, 1), [0]);
        assert_eq!(on.setup.read::<u32>(&into, 1), [packet]);
    }
}

/// A launch uses the pipes that were set when it was enqueued, a clone those of its original.
#[test]
fn arguments_are_kept() {
    let Some(on) = pipes() else { return };
    let (a, b) = (on.pipe(4, 8), on.pipe(4, 8));
    let from = on.setup.buffer_of(&[1u32, 2, 3]);
    let results = on.setup.buffer(3 * 4);
    let put = on.kernel("put");
    put.set_buffer(0, &a)
        .set_buffer(1, &from)
        .set_buffer(2, &results);
    let clone = Kernel(create!(clCloneKernel(put.0)));
    let gate = Event::user(&on.setup.context);
    ok!(clEnqueueNDRangeKernel(
        on.setup.queue.0,
        put.0,
        1,
        null(),
        &1usize,
        null(),
        1,
        &gate.0,
        null_mut()
    ));
    put.set_buffer(0, &b);
    gate.finish(0);
    on.setup.run(&put, &[2], None);
    assert_eq!([on.packets(&a), on.packets(&b)], [1, 2]);
    on.setup.run(&clone, &[3], None);
    assert_eq!([on.packets(&a), on.packets(&b)], [4, 2]);
    // An enqueued launch keeps the pipe when the application lets go of it.
    let gate = Event::user(&on.setup.context);
    let c = on.pipe(4, 8);
    put.set_buffer(0, &c);
    ok!(clEnqueueNDRangeKernel(
        on.setup.queue.0,
        put.0,
        1,
        null(),
        &3usize,
        null(),
        1,
        &gate.0,
        null_mut()
    ));
    drop(c);
    gate.finish(0);
    ok!(clFinish(on.setup.queue.0));
    assert_eq!(on.setup.read::<i32>(&results, 3), [0, 0, 0]);
    fails!(
        CL_INVALID_KERNEL_ARGS,
        clEnqueueNDRangeKernel(
            on.setup.queue.0,
            put.0,
            1,
            null(),
            &1usize,
            null(),
            0,
            null(),
            null_mut()
        )
    );
}

#[test]
fn information() {
    let Some(on) = pipes_with("-cl-std=CL3.0 -cl-kernel-arg-info") else {
        return;
    };
    let device = on.setup.device;
    let limit = |name| info_value!(u32, clGetDeviceInfo(device), name);
    assert!(limit(CL_DEVICE_MAX_PIPE_ARGS) >= 16);
    assert!(limit(CL_DEVICE_PIPE_MAX_ACTIVE_RESERVATIONS) >= 1);
    assert!(limit(CL_DEVICE_PIPE_MAX_PACKET_SIZE) >= 1024);
    let both = CL_MEM_READ_WRITE | CL_MEM_HOST_NO_ACCESS;
    for (flags, reported) in [
        (0, both),
        (both, both),
        (CL_MEM_HOST_NO_ACCESS, both),
        (CL_MEM_READ_WRITE, CL_MEM_READ_WRITE),
    ] {
        let pipe = Buffer(create!(clCreatePipe(
            on.setup.context.0,
            flags,
            12,
            5,
            null()
        )));
        assert_eq!(
            info_value!(u32, clGetPipeInfo(pipe.0), CL_PIPE_PACKET_SIZE),
            12
        );
        assert_eq!(
            info_value!(u32, clGetPipeInfo(pipe.0), CL_PIPE_MAX_PACKETS),
            5
        );
        assert!(info!(clGetPipeInfo(pipe.0), CL_PIPE_PROPERTIES).is_empty());
        let mem = |name| info_value!(u64, clGetMemObjectInfo(pipe.0), name);
        assert_eq!(
            info_value!(u32, clGetMemObjectInfo(pipe.0), CL_MEM_TYPE),
            CL_MEM_OBJECT_PIPE
        );
        assert_eq!(mem(CL_MEM_FLAGS), reported);
        assert!(mem(CL_MEM_SIZE) >= 60);
        assert_eq!(mem(CL_MEM_HOST_PTR), 0);
        assert_eq!(mem(CL_MEM_ASSOCIATED_MEMOBJECT), 0);
        assert_eq!(mem(CL_MEM_OFFSET), 0);
        assert_eq!(
            info_value!(u32, clGetMemObjectInfo(pipe.0), CL_MEM_USES_SVM_POINTER),
            0
        );
    }
    let forward = on.kernel("forward");
    for (index, access) in [
        (0, CL_KERNEL_ARG_ACCESS_READ_ONLY),
        (1, CL_KERNEL_ARG_ACCESS_WRITE_ONLY),
    ] {
        let of = |name| info_value!(u32, clGetKernelArgInfo(forward.0, index), name);
        assert_eq!(of(CL_KERNEL_ARG_ACCESS_QUALIFIER), access);
        assert_eq!(
            of(CL_KERNEL_ARG_ADDRESS_QUALIFIER),
            CL_KERNEL_ARG_ADDRESS_GLOBAL
        );
        assert_eq!(
            info_value!(
                u64,
                clGetKernelArgInfo(forward.0, index),
                CL_KERNEL_ARG_TYPE_QUALIFIER
            ),
            u64::from(CL_KERNEL_ARG_TYPE_PIPE)
        );
        assert_eq!(
            info_text!(
                clGetKernelArgInfo(forward.0, index),
                CL_KERNEL_ARG_TYPE_NAME
            ),
            "uint"
        );
    }
    let get = on.kernel("get");
    assert_eq!(
        info_value!(
            u64,
            clGetKernelArgInfo(get.0, 1),
            CL_KERNEL_ARG_TYPE_QUALIFIER
        ),
        0
    );
}

#[test]
fn refused_pipes() {
    let Some(on) = pipes() else { return };
    let context = on.setup.context.0;
    let limit = info_value!(
        u32,
        clGetDeviceInfo(on.setup.device),
        CL_DEVICE_PIPE_MAX_PACKET_SIZE
    );
    for flags in [
        CL_MEM_READ_ONLY,
        CL_MEM_WRITE_ONLY,
        CL_MEM_COPY_HOST_PTR,
        CL_MEM_HOST_READ_ONLY,
        CL_MEM_READ_WRITE | CL_MEM_HOST_WRITE_ONLY,
        1 << 40,
    ] {
        create_fails!(CL_INVALID_VALUE, clCreatePipe(context, flags, 4, 4, null()));
    }
    let properties: [cl_pipe_properties; 1] = [0];
    create_fails!(
        CL_INVALID_VALUE,
        clCreatePipe(context, 0, 4, 4, properties.as_ptr())
    );
    for (size, most) in [(0, 4), (4, 0), (limit + 1, 4), (u32::MAX, u32::MAX)] {
        create_fails!(
            CL_INVALID_PIPE_SIZE,
            clCreatePipe(context, 0, size, most, null())
        );
    }
    create_fails!(
        CL_MEM_OBJECT_ALLOCATION_FAILURE,
        clCreatePipe(context, 0, limit, u32::MAX, null())
    );
    create_fails!(
        CL_MEM_OBJECT_ALLOCATION_FAILURE,
        clCreatePipe(context, 0, 1, u32::MAX, null())
    );
    create_fails!(
        CL_INVALID_CONTEXT,
        clCreatePipe(null_mut(), 0, 4, 4, null())
    );
    drop(on.pipe(limit, 2));
}

#[test]
fn refused_arguments() {
    let Some(on) = pipes() else { return };
    let (pipe, buffer) = (on.pipe(4, 4), on.setup.buffer(64));
    let put = on.kernel("put");
    let handle = size_of::<*mut c_void>();
    let set = |index, size, mem: *mut c_void| {
        call!(clSetKernelArg(put.0, index, size, (&raw const mem).cast()))
    };
    assert_eq!(set(0, handle, pipe.0), CL_SUCCESS);
    assert_eq!(set(0, 4, pipe.0), CL_INVALID_ARG_SIZE);
    assert_eq!(set(0, handle, buffer.0), CL_INVALID_MEM_OBJECT);
    assert_eq!(set(0, handle, null_mut()), CL_INVALID_MEM_OBJECT);
    assert_eq!(set(0, handle, on.setup.context.0), CL_INVALID_MEM_OBJECT);
    fails!(
        CL_INVALID_MEM_OBJECT,
        clSetKernelArg(put.0, 0, handle, null())
    );
    // A pipe is no buffer.
    assert_eq!(set(1, handle, pipe.0), CL_INVALID_MEM_OBJECT);
    let elsewhere = Setup::new();
    let foreign = Buffer(create!(clCreatePipe(elsewhere.context.0, 0, 4, 4, null())));
    assert_eq!(set(0, handle, foreign.0), CL_INVALID_MEM_OBJECT);
    if info_value!(
        u64,
        clGetDeviceInfo(on.setup.device),
        CL_DEVICE_SVM_CAPABILITIES
    ) != 0
    {
        fails!(
            CL_INVALID_ARG_VALUE,
            clSetKernelArgSVMPointer(put.0, 0, null_mut())
        );
    }
}

/// Commands on memory do not reach pipes, and queries on other objects do not either.
#[test]
fn refused_commands() {
    let Some(on) = pipes() else { return };
    let (pipe, buffer) = (on.pipe(4, 16), on.setup.buffer(64));
    let q = on.setup.queue.0;
    let (n, e) = (null(), null_mut());
    let mut data = [0u32; 4];
    let at: *mut c_void = data.as_mut_ptr().cast();
    fails!(
        CL_INVALID_MEM_OBJECT,
        clEnqueueReadBuffer(q, pipe.0, 1, 0, 16, at, 0, n, e)
    );
    fails!(
        CL_INVALID_MEM_OBJECT,
        clEnqueueWriteBuffer(q, pipe.0, 1, 0, 16, at, 0, n, e)
    );
    fails!(
        CL_INVALID_MEM_OBJECT,
        clEnqueueCopyBuffer(q, pipe.0, buffer.0, 0, 0, 16, 0, n, e)
    );
    fails!(
        CL_INVALID_MEM_OBJECT,
        clEnqueueCopyBuffer(q, buffer.0, pipe.0, 0, 0, 16, 0, n, e)
    );
    fails!(
        CL_INVALID_MEM_OBJECT,
        clEnqueueFillBuffer(q, pipe.0, at, 4, 0, 16, 0, n, e)
    );
    create_fails!(
        CL_INVALID_MEM_OBJECT,
        clEnqueueMapBuffer(q, pipe.0, 1, CL_MAP_READ, 0, 16, 0, n, e)
    );
    fails!(
        CL_INVALID_VALUE,
        clEnqueueUnmapMemObject(q, pipe.0, at, 0, n, e)
    );
    let (origin, region) = ([0usize; 3], [1usize; 3]);
    fails!(
        CL_INVALID_MEM_OBJECT,
        clEnqueueReadImage(
            q,
            pipe.0,
            1,
            origin.as_ptr(),
            region.as_ptr(),
            0,
            0,
            at,
            0,
            n,
            e
        )
    );
    let part = cl_buffer_region {
        origin: 0,
        size: 16,
    };
    create_fails!(
        CL_INVALID_MEM_OBJECT,
        clCreateSubBuffer(
            pipe.0,
            0,
            CL_BUFFER_CREATE_TYPE_REGION,
            (&raw const part).cast()
        )
    );
    let value = (&raw mut data).cast();
    fails!(
        CL_INVALID_MEM_OBJECT,
        clGetImageInfo(pipe.0, CL_IMAGE_WIDTH, 8, value, null_mut())
    );
    fails!(
        CL_INVALID_MEM_OBJECT,
        clGetPipeInfo(buffer.0, CL_PIPE_PACKET_SIZE, 4, value, null_mut())
    );
    fails!(
        CL_INVALID_VALUE,
        clGetPipeInfo(pipe.0, CL_PIPE_PACKET_SIZE, 3, value, null_mut())
    );
    fails!(
        CL_INVALID_VALUE,
        clGetPipeInfo(pipe.0, CL_MEM_SIZE, 8, value, null_mut())
    );
    // Migration is for every memory object, and changes nothing.
    let words = on.setup.buffer_of(&[5u32]);
    assert_eq!(on.run("put", &pipe, &words, 1, 1), [0]);
    ok!(clEnqueueMigrateMemObjects(q, 1, &pipe.0, 0, 0, n, e));
    assert_eq!(on.packets(&pipe), 1);
}
