//! Contexts with several devices. Skipped where there is one: `ci/test` offers lavapipe twice.

mod images;

use pumice_tests::sys::*;
use pumice_tests::{
    call, create, fails, info_value, ok, platform, Buffer, Context, Event, Kernel, Program, Queue,
};
use std::ffi::{c_void, CString};
use std::ptr::{null, null_mut};

/// A context of two devices with a queue on each.
struct Pair {
    queues: [Queue; 2],
    devices: [cl_device_id; 2],
    context: Context,
}

fn pair() -> Option<Pair> {
    let mut devices = [null_mut(); 2];
    let mut count = 0;
    ok!(clGetDeviceIDs(
        platform(),
        CL_DEVICE_TYPE_ALL,
        2,
        devices.as_mut_ptr(),
        &mut count
    ));
    if count < 2 {
        return None;
    }
    let context = Context(create!(clCreateContext(
        null(),
        2,
        devices.as_ptr(),
        None,
        null_mut()
    )));
    let queue = |device| {
        Queue(create!(clCreateCommandQueueWithProperties(
            context.0,
            device,
            null()
        )))
    };
    let queues = [queue(devices[0]), queue(devices[1])];
    Some(Pair {
        queues,
        devices,
        context,
    })
}

impl Pair {
    fn buffer(&self, flags: cl_mem_flags, words: usize, host: *mut u32) -> Buffer {
        let context = self.context.0;
        Buffer(create!(clCreateBuffer(
            context,
            flags,
            words * 4,
            host.cast()
        )))
    }

    /// Built for the first `devices`.
    fn program(&self, source: &str, devices: u32) -> Program {
        let (mut text, length) = (source.as_ptr().cast(), source.len());
        let program = Program(create!(clCreateProgramWithSource(
            self.context.0,
            1,
            &mut text,
            &length
        )));
        let list = self.devices.as_ptr();
        ok!(clBuildProgram(
            program.0,
            devices,
            list,
            c"-cl-std=CL3.0".as_ptr(),
            None,
            null_mut()
        ));
        program
    }

    fn kernel(&self, program: &Program, name: &str) -> Kernel {
        let name = CString::new(name).expect("a name");
        Kernel(create!(clCreateKernel(program.0, name.as_ptr())))
    }

    fn launch(&self, on: usize, kernel: &Kernel, items: usize, wait: &[cl_event]) -> Event {
        let list = if wait.is_empty() {
            null()
        } else {
            wait.as_ptr()
        };
        let mut event = null_mut();
        ok!(clEnqueueNDRangeKernel(
            self.queues[on].0,
            kernel.0,
            1,
            null(),
            &items,
            null(),
            wait.len() as u32,
            list,
            &mut event
        ));
        Event(event)
    }

    fn read(&self, on: usize, buffer: &Buffer, words: usize, wait: &[cl_event]) -> Vec<u32> {
        let mut data = vec![0u32; words];
        let place = data.as_mut_ptr().cast();
        let list = if wait.is_empty() {
            null()
        } else {
            wait.as_ptr()
        };
        let count = wait.len() as u32;
        ok!(clEnqueueReadBuffer(
            self.queues[on].0,
            buffer.0,
            CL_TRUE,
            0,
            words * 4,
            place,
            count,
            list,
            null_mut()
        ));
        data
    }
}

const ADD: &str = "kernel void add(global uint *p, uint n) { p[get_global_id(0)] += n; }";

#[test]
fn a_buffer_goes_back_and_forth() {
    let Some(pair) = pair() else { return };
    let program = pair.program(ADD, 2);
    let kernel = pair.kernel(&program, "add");
    let mut host: Vec<u32> = (0..1000).collect();
    for flags in [CL_MEM_COPY_HOST_PTR, CL_MEM_USE_HOST_PTR] {
        let buffer = pair.buffer(flags, 1000, host.as_mut_ptr());
        kernel.set_buffer(0, &buffer);
        let mut last: Option<Event> = None;
        // Not one wait on the host: the devices wait for each other.
        for round in 0..20u32 {
            kernel.set(1, round);
            let wait: Vec<cl_event> = last.iter().map(|event| event.0).collect();
            last = Some(pair.launch(round as usize % 2, &kernel, 1000, &wait));
        }
        let wait = [last.as_ref().expect("an event").0];
        let seen = pair.read(0, &buffer, 1000, &wait);
        assert!((0..).zip(&seen).all(|(n, word)| *word == n + 190));
        // What the other device sees.
        assert_eq!(pair.read(1, &buffer, 1000, &wait), seen);
        drop(buffer);
        host = (0..1000).collect();
    }
}

#[test]
fn parts_written_by_two_devices_make_a_whole() {
    let Some(pair) = pair() else { return };
    let buffer = pair.buffer(CL_MEM_READ_WRITE, 1024, null_mut());
    let half = |origin: usize| {
        let region = cl_buffer_region { origin, size: 2048 };
        let place = (&raw const region).cast();
        let kind = CL_BUFFER_CREATE_TYPE_REGION;
        Buffer(create!(clCreateSubBuffer(buffer.0, 0, kind, place)))
    };
    let halves = [half(0), half(2048)];
    for (on, half) in halves.iter().enumerate() {
        let value = on as u32 + 5;
        let mut event = null_mut();
        let pattern = (&raw const value).cast();
        let queue = pair.queues[on].0;
        ok!(clEnqueueFillBuffer(
            queue,
            half.0,
            pattern,
            4,
            0,
            2048,
            0,
            null(),
            &mut event
        ));
        assert_eq!(Event(event).wait(), CL_SUCCESS);
    }
    let mut expected = vec![5u32; 1024];
    expected[512..].fill(6);
    assert_eq!(pair.read(0, &buffer, 1024, &[]), expected);

    // A map by one device of what the other wrote, and the other way round.
    let mut code = 1;
    let flags = CL_MAP_READ | CL_MAP_WRITE;
    let pointer = call!(clEnqueueMapBuffer(
        pair.queues[0].0,
        buffer.0,
        CL_TRUE,
        flags,
        2000,
        100,
        0,
        null(),
        null_mut(),
        &mut code
    ));
    assert_eq!(code, 0);
    // SAFETY: mapped.
    let mapped = unsafe { std::slice::from_raw_parts_mut(pointer.cast::<u32>(), 25) };
    assert_eq!(mapped, &expected[500..525]);
    mapped.fill(9);
    let mut event = null_mut();
    ok!(clEnqueueUnmapMemObject(
        pair.queues[0].0,
        buffer.0,
        pointer,
        0,
        null(),
        &mut event
    ));
    let event = Event(event);
    expected[500..525].fill(9);
    assert_eq!(pair.read(1, &buffer, 1024, &[event.0]), expected);
    ok!(clFinish(pair.queues[1].0));

    // Migration, and a copy whose source is on the other device.
    let other = pair.buffer(CL_MEM_READ_WRITE, 1024, null_mut());
    let queue = pair.queues[1].0;
    let list = [buffer.0, other.0];
    ok!(clEnqueueMigrateMemObjects(
        queue,
        2,
        list.as_ptr(),
        0,
        0,
        null(),
        null_mut()
    ));
    ok!(clFinish(queue));
    let queue = pair.queues[0].0;
    ok!(clEnqueueCopyBuffer(
        queue,
        buffer.0,
        other.0,
        0,
        0,
        4096,
        0,
        null(),
        null_mut()
    ));
    ok!(clFinish(queue));
    assert_eq!(pair.read(1, &other, 1024, &[]), expected);
}

#[test]
fn programs_are_built_for_each_device() {
    let Some(pair) = pair() else { return };
    let both = pair.program(ADD, 2);
    assert_eq!(
        info_value!(u32, clGetProgramInfo(both.0), CL_PROGRAM_NUM_DEVICES),
        2
    );
    let one = pair.program(ADD, 1);
    let kernel = pair.kernel(&one, "add");
    let buffer = pair.buffer(CL_MEM_READ_WRITE, 16, null_mut());
    kernel.set_buffer(0, &buffer).set(1, 1u32);
    assert_eq!(pair.launch(0, &kernel, 16, &[]).wait(), 0);
    let items = 16usize;
    fails!(
        CL_INVALID_PROGRAM_EXECUTABLE,
        clEnqueueNDRangeKernel(
            pair.queues[1].0,
            kernel.0,
            1,
            null(),
            &items,
            null(),
            0,
            null(),
            null_mut()
        )
    );
    // Variables of a program are those of a device.
    let source = "global uint count = 10; kernel void next(global uint *p) { p[0] = ++count; }";
    let program = pair.program(source, 2);
    let next = pair.kernel(&program, "next");
    next.set_buffer(0, &buffer);
    for (on, expected) in [(0, 11), (0, 12), (1, 11), (0, 13), (1, 12)] {
        let event = pair.launch(on, &next, 1, &[]);
        assert_eq!(pair.read(on, &buffer, 1, &[event.0]), [expected]);
    }
}

#[test]
fn events_reach_across_devices() {
    let Some(pair) = pair() else { return };
    let program = pair.program(ADD, 2);
    let kernel = pair.kernel(&program, "add");
    let mut zeros = vec![0u32; 64];
    let buffer = pair.buffer(CL_MEM_COPY_HOST_PTR, 64, zeros.as_mut_ptr());
    kernel.set_buffer(0, &buffer).set(1, 1u32);
    let gate = Event::user(&pair.context);
    let first = pair.launch(0, &kernel, 64, &[gate.0]);
    let second = pair.launch(1, &kernel, 64, &[first.0]);
    let third = pair.launch(0, &kernel, 64, &[second.0, gate.0]);
    ok!(clFlush(pair.queues[0].0));
    ok!(clFlush(pair.queues[1].0));
    assert!(third.status() > CL_COMPLETE && first.status() > CL_COMPLETE);
    gate.finish(CL_COMPLETE);
    assert_eq!(third.wait(), CL_SUCCESS);
    assert_eq!(pair.read(1, &buffer, 64, &[third.0]), [3; 64]);

    let gate = Event::user(&pair.context);
    let first = pair.launch(1, &kernel, 64, &[gate.0]);
    let second = pair.launch(0, &kernel, 64, &[first.0]);
    gate.finish(-5);
    assert_eq!(second.wait(), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
    assert!(second.status() < 0 && first.status() < 0);
    assert_eq!(pair.read(0, &buffer, 64, &[]), [3; 64]);
}

/// Shared virtual memory of both devices.
struct Allocation<'a> {
    pair: &'a Pair,
    pointer: *mut u32,
    words: usize,
}

impl<'a> Allocation<'a> {
    /// None where the devices cannot have one address, which they need not.
    fn new(pair: &'a Pair, flags: cl_svm_mem_flags, words: usize) -> Option<Self> {
        let svm = |device| info_value!(u64, clGetDeviceInfo(device), CL_DEVICE_SVM_CAPABILITIES);
        let pointer: *mut u32 = call!(clSVMAlloc(pair.context.0, flags, words * 4, 0)).cast();
        let system = |device| svm(device) & CL_DEVICE_SVM_FINE_GRAIN_SYSTEM != 0;
        if pair.devices.into_iter().all(system) {
            assert!(!pointer.is_null(), "both see the host's memory");
        }
        if pointer.is_null() {
            eprintln!("the devices have no address in common (flags {flags:#x})");
            return None;
        }
        Some(Self {
            pair,
            pointer,
            words,
        })
    }

    fn at(&self, word: usize) -> *mut c_void {
        self.pointer.wrapping_add(word).cast()
    }

    /// Gives `f` a range of words, mapped by a device.
    fn mapped(
        &self,
        on: usize,
        flags: cl_map_flags,
        first: usize,
        words: usize,
        f: impl FnOnce(&mut [u32]),
    ) {
        let queue = self.pair.queues[on].0;
        let pointer = self.at(first);
        ok!(clEnqueueSVMMap(
            queue,
            CL_TRUE,
            flags,
            pointer,
            words * 4,
            0,
            null(),
            null_mut()
        ));
        // SAFETY: mapped.
        f(unsafe { std::slice::from_raw_parts_mut(pointer.cast(), words) });
        ok!(clEnqueueSVMUnmap(queue, pointer, 0, null(), null_mut()));
        ok!(clFinish(queue));
    }

    fn read(&self, on: usize) -> Vec<u32> {
        let mut words = Vec::new();
        self.mapped(on, CL_MAP_READ, 0, self.words, |seen| {
            words.extend_from_slice(seen);
        });
        words
    }
}

impl Drop for Allocation<'_> {
    fn drop(&mut self) {
        call!(clSVMFree(self.pair.context.0, self.at(0)));
    }
}

#[test]
fn shared_virtual_memory_of_two_devices() {
    let Some(pair) = pair() else { return };
    let Some(shared) = Allocation::new(&pair, CL_MEM_READ_WRITE, 1024) else {
        return;
    };
    let program = pair.program(ADD, 2);
    let kernel = pair.kernel(&program, "add");
    ok!(clSetKernelArgSVMPointer(kernel.0, 0, shared.at(0)));
    let zero = 0u32;
    let pattern: *const c_void = (&raw const zero).cast();
    let mut event = null_mut();
    let queue = pair.queues[1].0;
    ok!(clEnqueueSVMMemFill(
        queue,
        shared.at(0),
        pattern,
        4,
        4096,
        0,
        null(),
        &mut event
    ));
    let mut last = Event(event);
    for round in 0..10u32 {
        kernel.set(1, round);
        last = pair.launch(round as usize % 2, &kernel, 1024, &[last.0]);
    }
    assert_eq!(last.wait(), 0);
    for on in 0..2 {
        assert_eq!(shared.read(on), [45; 1024]);
    }
    // Parts, by map, copy and fill, each on another device than the one before.
    let mut expected = vec![45u32; 1024];
    shared.mapped(1, CL_MAP_WRITE, 100, 50, |words| words.fill(7));
    expected[100..150].fill(7);
    let value = 8u32;
    let finish = |on: usize| ok!(clFinish(pair.queues[on].0));
    ok!(clEnqueueSVMMemFill(
        pair.queues[0].0,
        shared.at(140),
        (&raw const value).cast(),
        4,
        80,
        0,
        null(),
        null_mut()
    ));
    finish(0);
    expected[140..160].fill(8);
    ok!(clEnqueueSVMMemcpy(
        pair.queues[1].0,
        CL_TRUE,
        shared.at(500),
        shared.at(90),
        400,
        0,
        null(),
        null_mut()
    ));
    expected.copy_within(90..190, 500);
    shared.mapped(0, CL_MAP_WRITE_INVALIDATE_REGION, 1000, 24, |words| {
        words.fill(9);
    });
    expected[1000..].fill(9);
    let ranges = [shared.at(0).cast_const()];
    ok!(clEnqueueSVMMigrateMem(
        pair.queues[1].0,
        1,
        ranges.as_ptr().cast_mut(),
        null(),
        0,
        0,
        null(),
        null_mut()
    ));
    finish(1);
    for on in [0, 1] {
        assert_eq!(shared.read(on), expected);
    }
    // A buffer over it, and one of plain memory beside it.
    let buffer = pair.buffer(CL_MEM_USE_HOST_PTR, 1024, shared.pointer);
    assert_eq!(pair.read(0, &buffer, 1024, &[]), expected);
    kernel.set_buffer(0, &buffer).set(1, 1u32);
    assert_eq!(pair.launch(1, &kernel, 1024, &[]).wait(), 0);
    expected.iter_mut().for_each(|word| *word += 1);
    assert_eq!(pair.read(0, &buffer, 1024, &[]), expected);
    assert_eq!(shared.read(0), expected);
}

#[test]
fn two_devices_follow_the_same_pointers() {
    let Some(pair) = pair() else { return };
    // Six words a node: value, padding, next, elsewhere.
    let (Some(nodes), Some(far), Some(big)) = (
        Allocation::new(&pair, CL_MEM_READ_WRITE, 8 * 6),
        Allocation::new(&pair, CL_MEM_READ_WRITE, 64),
        Allocation::new(&pair, CL_MEM_READ_WRITE, 10 << 20),
    ) else {
        return;
    };
    let source = "
        typedef struct node { uint value; global struct node *next; global uint *elsewhere; } node;
        kernel void walk(global node *first, uint add)
        {
            for (global node *n = first; n; n = n->next) {
                n->value += add;
                *n->elsewhere = *n->elsewhere * 2 + n->value;
            }
        }
        kernel void swap(global node *first)
        {
            for (global node *n = first; n && n->next; n = n->next) {
                global uint *other = n->elsewhere;
                n->elsewhere = n->next->elsewhere;
                n->next->elsewhere = other;
            }
        }";
    let program = pair.program(source, 2);
    let (walk, swap) = (pair.kernel(&program, "walk"), pair.kernel(&program, "swap"));
    let last_big = (10 << 20) - 1;
    let place = |index: usize| match index {
        7 => big.at(last_big) as u64,
        index => far.at(index * 3) as u64,
    };
    nodes.mapped(0, CL_MAP_WRITE, 0, 48, |words| {
        for (index, node) in words.chunks_mut(6).enumerate() {
            let next = if index == 7 {
                0
            } else {
                nodes.at((index + 1) * 6) as u64
            };
            node[0] = index as u32;
            for (at, address) in [(2, next), (4, place(index))] {
                node[at] = address as u32;
                node[at + 1] = (address >> 32) as u32;
            }
        }
    });
    far.mapped(1, CL_MAP_WRITE, 0, 64, |words| words.fill(1));
    big.mapped(0, CL_MAP_WRITE, last_big, 1, |words| words[0] = 1);
    for kernel in [&walk, &swap] {
        ok!(clSetKernelArgSVMPointer(kernel.0, 0, nodes.at(0)));
        let reached = [far.at(5), big.at(9)];
        ok!(clSetKernelExecInfo(
            kernel.0,
            CL_KERNEL_EXEC_INFO_SVM_PTRS,
            size_of_val(&reached),
            reached.as_ptr().cast()
        ));
    }
    let mut values: Vec<u32> = (0..8).collect();
    let mut targets: Vec<usize> = (0..8).collect();
    let mut elsewhere = vec![1u32; 8];
    let mut last: Option<Event> = None;
    for round in 0..12u32 {
        let on = (round / 2) as usize % 2;
        let wait: Vec<cl_event> = last.iter().map(|event| event.0).collect();
        if round % 3 == 2 {
            last = Some(pair.launch(on, &swap, 1, &wait));
            for index in 0..7 {
                targets.swap(index, index + 1);
            }
        } else {
            walk.set(1, round + 1);
            last = Some(pair.launch(on, &walk, 1, &wait));
            for index in 0..8 {
                values[index] = values[index].wrapping_add(round + 1);
                let word = &mut elsewhere[targets[index]];
                *word = word.wrapping_mul(2).wrapping_add(values[index]);
            }
        }
    }
    assert_eq!(last.expect("an event").wait(), 0);
    for on in 0..2 {
        let seen: Vec<u32> = nodes.read(on).chunks(6).map(|node| node[0]).collect();
        assert_eq!(seen, values);
        let words = far.read(on);
        let mut seen: Vec<u32> = (0..7).map(|index| words[index * 3]).collect();
        big.mapped(on, CL_MAP_READ, last_big, 1, |words| seen.push(words[0]));
        assert_eq!(seen, elsewhere);
    }
}

#[test]
fn fine_grained_memory_of_two_devices() {
    let Some(pair) = pair() else { return };
    let flags = CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER;
    let Some(shared) = Allocation::new(&pair, flags, 1 << 20) else {
        return;
    };
    let words = shared.words;
    let program = pair.program(ADD, 2);
    let kernel = pair.kernel(&program, "add");
    ok!(clSetKernelArgSVMPointer(kernel.0, 0, shared.at(0)));
    kernel.set(1, 3u32);
    // SAFETY: fine-grained; no kernel runs while the test reads or writes.
    let seen = unsafe { std::slice::from_raw_parts_mut(shared.pointer, words) };
    seen.fill(5);
    for round in 1..5u32 {
        let on = round as usize % 2;
        assert_eq!(pair.launch(on, &kernel, words, &[]).wait(), 0);
        assert!(seen.iter().all(|word| *word == 5 + round * 4 - 1));
        seen.iter_mut().for_each(|word| *word += 1);
    }
    // Different halves at a time.
    let halves = [pair.kernel(&program, "add"), pair.kernel(&program, "add")];
    for (on, kernel) in halves.iter().enumerate() {
        ok!(clSetKernelArgSVMPointer(
            kernel.0,
            0,
            shared.at(on * words / 2)
        ));
        kernel.set(1, 100 * (on as u32 + 1));
    }
    let events = [0, 1].map(|on| pair.launch(on, &halves[on], words / 2, &[]));
    for (on, event) in events.iter().enumerate() {
        ok!(clFlush(pair.queues[on].0));
        assert_eq!(event.wait(), 0);
    }
    let (low, high) = seen.split_at(words / 2);
    assert!(low.iter().all(|word| *word == 121) && high.iter().all(|word| *word == 221));
}

#[test]
fn two_devices_write_parts_of_a_buffer_at_a_time() {
    let Some(pair) = pair() else { return };
    let words = 1 << 16;
    let mut zeros = vec![1u32; words];
    let program = pair.program(ADD, 2);
    for flags in [CL_MEM_COPY_HOST_PTR, CL_MEM_USE_HOST_PTR] {
        let buffer = pair.buffer(flags, words, zeros.as_mut_ptr());
        let parts: Vec<Buffer> = (0..4)
            .map(|part| {
                let region = cl_buffer_region {
                    origin: part * words,
                    size: words,
                };
                let place = (&raw const region).cast();
                let kind = CL_BUFFER_CREATE_TYPE_REGION;
                Buffer(create!(clCreateSubBuffer(buffer.0, 0, kind, place)))
            })
            .collect();
        // Nothing orders the devices.
        let mut events = Vec::new();
        for round in 0..8u32 {
            for (part, buffer) in parts.iter().enumerate() {
                let kernel = pair.kernel(&program, "add");
                kernel.set_buffer(0, buffer).set(1, round + part as u32);
                events.push(pair.launch(part % 2, &kernel, words / 4, &[]));
            }
        }
        for queue in &pair.queues {
            ok!(clFlush(queue.0));
        }
        for event in &events {
            assert_eq!(event.wait(), 0);
        }
        let expected: Vec<u32> = (0..words as u32)
            .map(|word| 1 + 28 + 8 * (word / (words as u32 / 4)))
            .collect();
        for on in [1, 0] {
            assert_eq!(pair.read(on, &buffer, words, &[]), expected);
        }
        // One is written without its parts again.
        for on in [1, 0] {
            let part = pair.read(on, &parts[2], words / 4, &[]);
            assert_eq!(part, expected[words / 2..words * 3 / 4]);
        }
        drop(parts);
        drop(buffer);
        zeros.fill(1);
    }
}

#[test]
fn rectangles_and_invalidating_maps_keep_what_is_around_them() {
    let Some(pair) = pair() else { return };
    let mut start: Vec<u32> = (0..256).collect();
    let buffer = pair.buffer(CL_MEM_COPY_HOST_PTR, 256, start.as_mut_ptr());
    let mut expected = start.clone();
    assert_eq!(pair.read(0, &buffer, 256, &[]), expected);
    // 3 rows of 2 words, 16 words apart.
    let data = [900u32, 901, 902, 903, 904, 905];
    ok!(clEnqueueWriteBufferRect(
        pair.queues[1].0,
        buffer.0,
        CL_TRUE,
        [16usize, 2, 0].as_ptr(),
        [0usize, 0, 0].as_ptr(),
        [8usize, 3, 1].as_ptr(),
        64,
        0,
        8,
        0,
        data.as_ptr().cast(),
        0,
        null(),
        null_mut()
    ));
    ok!(clFinish(pair.queues[1].0));
    for row in 0..3 {
        let at = 4 + (2 + row) * 16;
        expected[at..at + 2].copy_from_slice(&data[row * 2..row * 2 + 2]);
    }
    assert_eq!(pair.read(0, &buffer, 256, &[]), expected);
    let mut code = 1;
    let queue = pair.queues[0].0;
    let pointer = call!(clEnqueueMapBuffer(
        queue,
        buffer.0,
        CL_TRUE,
        CL_MAP_WRITE_INVALIDATE_REGION,
        40,
        80,
        0,
        null(),
        null_mut(),
        &mut code
    ));
    assert_eq!(code, 0);
    assert_eq!(
        info_value!(cl_uint, clGetMemObjectInfo(buffer.0), CL_MEM_MAP_COUNT),
        1
    );
    // SAFETY: mapped.
    unsafe { std::slice::from_raw_parts_mut(pointer.cast::<u32>(), 20) }.fill(77);
    // By the other device: a map belongs to no queue.
    let mut event = null_mut();
    ok!(clEnqueueUnmapMemObject(
        pair.queues[1].0,
        buffer.0,
        pointer,
        0,
        null(),
        &mut event
    ));
    assert_eq!(Event(event).wait(), 0);
    expected[10..30].fill(77);
    for on in 0..2 {
        assert_eq!(pair.read(on, &buffer, 256, &[]), expected);
    }
    // A rectangle read, and one copied, by the device that has them not.
    let mut seen = [0u32; 6];
    ok!(clEnqueueFillBuffer(
        queue,
        buffer.0,
        (&raw const data[0]).cast(),
        4,
        300,
        4,
        0,
        null(),
        null_mut()
    ));
    ok!(clFinish(queue));
    expected[75] = 900;
    ok!(clEnqueueReadBufferRect(
        pair.queues[1].0,
        buffer.0,
        CL_TRUE,
        [40usize, 3, 0].as_ptr(),
        [0usize, 0, 0].as_ptr(),
        [8usize, 3, 1].as_ptr(),
        64,
        0,
        8,
        0,
        seen.as_mut_ptr().cast(),
        0,
        null(),
        null_mut()
    ));
    let wanted = [58, 59, 74, 75, 90, 91].map(|word: usize| expected[word]);
    assert_eq!(seen, wanted);
}

#[test]
fn migration_keeps_contents_unless_told_otherwise() {
    let Some(pair) = pair() else { return };
    let mut start: Vec<u32> = (0..64).collect();
    let buffer = pair.buffer(CL_MEM_COPY_HOST_PTR, 64, start.as_mut_ptr());
    let migrate = |on: usize, flags| {
        let mut event = null_mut();
        let queue = pair.queues[on].0;
        ok!(clEnqueueMigrateMemObjects(
            queue,
            1,
            &buffer.0,
            flags,
            0,
            null(),
            &mut event
        ));
        assert_eq!(Event(event).wait(), 0);
    };
    let undefined = CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED;
    migrate(0, 0);
    migrate(1, CL_MIGRATE_MEM_OBJECT_HOST);
    migrate(0, CL_MIGRATE_MEM_OBJECT_HOST | undefined);
    migrate(1, 0);
    for on in 0..2 {
        assert_eq!(pair.read(on, &buffer, 64, &[]), start);
    }
    // Contents are lost, and new ones hold.
    migrate(0, undefined);
    let value = 6u32;
    ok!(clEnqueueFillBuffer(
        pair.queues[0].0,
        buffer.0,
        (&raw const value).cast(),
        4,
        0,
        256,
        0,
        null(),
        null_mut()
    ));
    ok!(clFinish(pair.queues[0].0));
    assert_eq!(pair.read(1, &buffer, 64, &[]), [6; 64]);
    fails!(
        CL_INVALID_VALUE,
        clEnqueueMigrateMemObjects(
            pair.queues[0].0,
            1,
            &buffer.0,
            1 << 5,
            0,
            null(),
            null_mut()
        )
    );
}

#[test]
fn kernels_tell_of_the_devices_they_are_built_for() {
    let Some(pair) = pair() else { return };
    let (both, one) = (pair.program(ADD, 2), pair.program(ADD, 1));
    let (every, first) = (pair.kernel(&both, "add"), pair.kernel(&one, "add"));
    let mut size = 0usize;
    let place = (&raw mut size).cast();
    for device in pair.devices {
        ok!(clGetKernelWorkGroupInfo(
            every.0,
            device,
            CL_KERNEL_WORK_GROUP_SIZE,
            size_of::<usize>(),
            place,
            null_mut()
        ));
        assert!(size > 0);
        let most = info_value!(
            usize,
            clGetDeviceInfo(device),
            CL_DEVICE_MAX_WORK_GROUP_SIZE
        );
        assert!(size <= most);
    }
    let param = CL_KERNEL_WORK_GROUP_SIZE;
    let bytes = size_of::<usize>();
    fails!(
        CL_INVALID_DEVICE,
        clGetKernelWorkGroupInfo(every.0, null_mut(), param, bytes, place, null_mut())
    );
    let device = pair.devices[1];
    fails!(
        CL_INVALID_DEVICE,
        clGetKernelWorkGroupInfo(first.0, device, param, bytes, place, null_mut())
    );
    // Only one device has it: it need not be named.
    ok!(clGetKernelWorkGroupInfo(
        first.0,
        null_mut(),
        param,
        bytes,
        place,
        null_mut()
    ));
    let status = |device| {
        let mut status: cl_build_status = 7;
        ok!(clGetProgramBuildInfo(
            one.0,
            device,
            CL_PROGRAM_BUILD_STATUS,
            size_of_val(&status),
            (&raw mut status).cast(),
            null_mut()
        ));
        status
    };
    assert_eq!(status(pair.devices[0]), CL_BUILD_SUCCESS);
    assert_eq!(status(pair.devices[1]), CL_BUILD_NONE);
}

#[test]
fn binaries_of_several_devices_load_again() {
    let Some(pair) = pair() else { return };
    let program = pair.program(ADD, 2);
    let mut sizes = [0usize; 2];
    ok!(clGetProgramInfo(
        program.0,
        CL_PROGRAM_BINARY_SIZES,
        size_of_val(&sizes),
        sizes.as_mut_ptr().cast(),
        null_mut()
    ));
    let mut binaries = sizes.map(|size| vec![0u8; size]);
    let [first, second] = &mut binaries;
    let mut places = [first.as_mut_ptr(), second.as_mut_ptr()];
    ok!(clGetProgramInfo(
        program.0,
        CL_PROGRAM_BINARIES,
        size_of_val(&places),
        places.as_mut_ptr().cast(),
        null_mut()
    ));
    // For both in the other order, and for the second alone.
    for order in [&[1usize, 0][..], &[1]] {
        let devices: Vec<_> = order.iter().map(|at| pair.devices[*at]).collect();
        let lengths: Vec<_> = order.iter().map(|at| sizes[*at]).collect();
        let data: Vec<_> = order.iter().map(|at| binaries[*at].as_ptr()).collect();
        let mut statuses = vec![9; order.len()];
        let count = order.len() as u32;
        let loaded = Program(create!(clCreateProgramWithBinary(
            pair.context.0,
            count,
            devices.as_ptr(),
            lengths.as_ptr(),
            data.as_ptr().cast_mut(),
            statuses.as_mut_ptr()
        )));
        assert!(statuses.iter().all(|status| *status == CL_SUCCESS));
        ok!(clBuildProgram(
            loaded.0,
            0,
            null(),
            null(),
            None,
            null_mut()
        ));
        let kernel = pair.kernel(&loaded, "add");
        let buffer = pair.buffer(CL_MEM_COPY_HOST_PTR, 4, [1u32, 2, 3, 4].as_mut_ptr());
        kernel.set_buffer(0, &buffer).set(1, 10u32);
        for on in order {
            assert_eq!(pair.launch(*on, &kernel, 4, &[]).wait(), 0);
        }
        let added = 10 * count;
        let expected = [1, 2, 3, 4].map(|n| n + added);
        assert_eq!(pair.read(0, &buffer, 4, &[]), expected);
    }
}

#[test]
fn barriers_and_markers_wait_for_other_devices() {
    let Some(pair) = pair() else { return };
    let program = pair.program(ADD, 2);
    let kernel = pair.kernel(&program, "add");
    let buffer = pair.buffer(CL_MEM_COPY_HOST_PTR, 64, [0u32; 64].as_mut_ptr());
    kernel.set_buffer(0, &buffer).set(1, 1u32);
    for round in 1..4u32 {
        let gate = Event::user(&pair.context);
        let first = pair.launch(0, &kernel, 64, &[gate.0]);
        let mut events = [null_mut(); 2];
        let queue = pair.queues[1].0;
        ok!(clEnqueueBarrierWithWaitList(
            queue,
            1,
            &first.0,
            &mut events[0]
        ));
        // Behind the barrier, with no list of its own.
        let second = pair.launch(1, &kernel, 64, &[]);
        ok!(clEnqueueMarkerWithWaitList(
            pair.queues[0].0,
            1,
            &second.0,
            &mut events[1]
        ));
        let events = events.map(Event);
        for queue in &pair.queues {
            ok!(clFlush(queue.0));
        }
        assert!(events.iter().all(|event| event.status() > CL_COMPLETE));
        gate.finish(CL_COMPLETE);
        assert_eq!(events[1].wait(), 0);
        assert!(second.status() == CL_COMPLETE && events[0].status() == CL_COMPLETE);
        assert_eq!(pair.read(0, &buffer, 64, &[]), [2 * round; 64]);
    }
}
