//! Pipes: what kernels read is what others wrote, how many packets there are, reservations, and what the API refuses.

mod refused;
mod reservations;

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
