//! Shared virtual memory of several devices.

use super::*;

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
            pumice_tests::left_out(&format!("no address in common (flags {flags:#x})"));
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
