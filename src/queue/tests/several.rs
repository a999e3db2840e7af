//! Several devices in a context: contents follow the commands that use them, range by range, and shared virtual memory
//! lies at one address.

use super::*;
use crate::backend::ReplayKind;
use crate::command::svm;
use crate::object::svm::{alloc, free};

struct Pair {
    fakes: [Arc<FakeDevice>; 2],
    context: Ref<Context>,
    queues: [Ref<Queue>; 2],
}

impl Pair {
    fn new(reach: Reach) -> Self {
        let fakes = [FakeDevice::new(reach), FakeDevice::new(reach)];
        let devices = fakes.clone().map(|fake| Device::for_tests(fake));
        let context = Context::new(devices.to_vec(), vec![], None, std::ptr::null_mut()).unwrap();
        let queues = devices.map(|device| Queue::with_flags(&context, &device, 0).unwrap());
        Self {
            fakes,
            context,
            queues,
        }
    }

    fn buffer(&self, size: usize) -> Ref<Mem> {
        buffer_in(&self.context, size)
    }

    /// Runs a command on a device, and waits for both.
    fn run(&self, queue: &Ref<Queue>, command: Command) {
        enqueue(queue, command);
        self.finish();
    }

    fn finish(&self) {
        for queue in &self.queues {
            queue.finish().unwrap();
        }
    }
}

#[test]
fn sub_buffers_are_written_by_two_devices_at_a_time() {
    for reach in ALL {
        let pair = Pair::new(reach);
        let [one, two] = &pair.queues;
        let buffer = pair.buffer(1024);
        pair.run(one, fill(one, &buffer, 9));
        let halves = [0, 512].map(|origin| Mem::sub_buffer(&buffer, 0, origin, 512).unwrap());
        // Neither has begun when the other is enqueued.
        pair.fakes[0].stop();
        pair.fakes[1].stop();
        for (queue, byte, half) in [(one, 1, &halves[0]), (two, 2, &halves[1])] {
            let command = buffer::fill(&queue.target, half, &[byte], 0, 256);
            enqueue(queue, command.unwrap());
            queue.flush();
        }
        pair.fakes[0].start();
        pair.fakes[1].start();
        pair.finish();
        let mut expected = [9u8; 1024];
        expected[..256].fill(1);
        expected[512..768].fill(2);
        for queue in &pair.queues {
            assert_eq!(contents(queue, &buffer), expected, "{reach:?}");
        }
    }
}

#[test]
fn copies_read_what_the_other_device_wrote() {
    let pair = Pair::new(Reach::Hidden);
    let [one, two] = &pair.queues;
    let (a, b) = (pair.buffer(300), pair.buffer(300));
    let bytes: Vec<u8> = (0..=255).chain(0..44).collect();
    enqueue(one, write(one, &a, 0, &bytes));
    pair.run(two, fill(two, &b, 5));
    let copy = buffer::copy(&two.target, &a, &b, 10, 20, 100).unwrap();
    pair.run(two, copy);
    let mut expected = vec![5; 300];
    expected[20..120].copy_from_slice(&bytes[10..110]);
    assert_eq!(contents(one, &b), expected);
    assert_eq!(contents(two, &a), bytes);
}

#[test]
fn migration_brings_contents_or_leaves_them() {
    let pair = Pair::new(Reach::Hidden);
    let [one, two] = &pair.queues;
    let buffer = pair.buffer(64);
    pair.run(one, fill(one, &buffer, 3));
    let list = || vec![buffer.clone()];
    let command = map::migrate(&two.target, list(), 0).unwrap();
    pair.run(two, command);
    assert_eq!(contents(two, &buffer), [3; 64]);
    let undefined = cl::CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED;
    let host = cl::CL_MIGRATE_MEM_OBJECT_HOST;
    pair.run(one, fill(one, &buffer, 4));
    for flags in [host, host | undefined] {
        let command = map::migrate(&two.target, list(), flags).unwrap();
        pair.run(two, command);
        assert_eq!(contents(one, &buffer), [4; 64]);
    }
    let command = map::migrate(&two.target, list(), undefined).unwrap();
    pair.run(two, command);
    // Whatever they are, they are the same for both now, and what is written holds.
    assert_eq!(contents(one, &buffer), contents(two, &buffer));
    enqueue(two, write(two, &buffer, 8, &[7; 8]));
    pair.finish();
    assert_eq!(contents(one, &buffer)[8..16], [7; 8]);
    assert_eq!(
        code(map::migrate(&two.target, list(), 1 << 9)),
        cl::CL_INVALID_VALUE
    );
}

/// A device and its sub-devices have one allocation of a memory object, whichever uses it first.
#[test]
fn sub_devices_share_their_memory() {
    let fakes = [(); 4].map(|()| FakeDevice::new(Reach::Hidden));
    let [whole, part, other_part, other] = fakes.clone();
    let whole = Device::for_tests(whole);
    let part = Object::new(Device::part(&whole, part, vec![]));
    let within = Object::new(Device::part(&part, other_part, vec![]));
    let other = Device::for_tests(other);
    let devices = vec![part.clone(), other.clone(), whole.clone(), within.clone()];
    let context = Context::new(devices, vec![], None, std::ptr::null_mut()).unwrap();
    assert_eq!(context.memories.count(), 2);
    let buffer = buffer_in(&context, 64);
    let at = |device: &Ref<Device>| buffer.device_address(device).unwrap();
    assert_eq!(at(&within), at(&whole));
    assert_eq!(at(&part), at(&whole));
    assert_ne!(at(&other), at(&whole));
}

#[test]
fn shared_virtual_memory_is_at_one_address() {
    let ways: [&[ReplayKind]; 2] = [&[ReplayKind::Whole], &[ReplayKind::Pieces]];
    for (ways, refusals) in ways.into_iter().flat_map(|ways| [(ways, 0), (ways, 3)]) {
        let pair = Pair::new(Reach::Hidden);
        pair.fakes[1].replay_by(ways, refusals);
        let one = alloc(&pair.context, 0, 1000, 0).unwrap();
        let two = alloc(&pair.context, 0, 1000, 4096).unwrap();
        assert!(two.address.is_multiple_of(4096));
        assert!(two.address.abs_diff(one.address) >= 1000);
        let mem = &one.mem;
        for device in &pair.context.devices {
            assert_eq!(mem.device_address(device).unwrap(), one.address as u64);
        }
        let at = |offset: usize| (one.address + offset) as *mut u8;
        // SAFETY: the allocation.
        let command = unsafe { svm::svm_fill(&pair.queues[0].target, at(0).cast(), &[5], 1000) };
        pair.run(&pair.queues[0], command.unwrap());
        // Each device in turn sees, and changes, what the other left.
        for round in 0..6u8 {
            let queue = &pair.queues[usize::from(round) % 2];
            let flags = cl::CL_MAP_READ | cl::CL_MAP_WRITE;
            let command = svm::map(&queue.target, flags, at(8).cast(), 16).unwrap();
            enqueue_blocking(queue, command);
            // SAFETY: mapped.
            unsafe {
                let expected = if round == 0 { 5 } else { 10 * round };
                assert_eq!(at(9).read(), expected);
                assert_eq!(at(10).read(), 5);
                at(9).write(10 * (round + 1));
            }
            let command = svm::unmap(&queue.target, at(8).cast()).unwrap();
            enqueue(queue, command);
            queue.finish().unwrap();
        }
        let mut expected = [5; 1000];
        expected[9] = 60;
        for queue in &pair.queues {
            assert_eq!(contents(queue, mem), expected);
        }
        let (first, second) = (one.address, two.address);
        drop((one, two));
        free(&pair.context, first);
        free(&pair.context, second);
        // The block is gone and its place on the host free.
        eventually("the range is given back", || {
            crate::util::address::Reservation::at(first as u64, 4096).is_some()
        });
    }
}

#[test]
fn fine_grained_memory_is_the_hosts() {
    let pair = Pair::new(Reach::Cached);
    let flags = cl::CL_MEM_SVM_FINE_GRAIN_BUFFER;
    let one = alloc(&pair.context, flags, 4096, 0).unwrap();
    let at = one.address as *mut u8;
    for (on, queue) in pair.queues.iter().enumerate() {
        // SAFETY: the allocation.
        let command = unsafe { svm::svm_fill(&queue.target, at.cast(), &[on as u8 + 7], 100) };
        pair.run(queue, command.unwrap());
        // SAFETY: the host's own memory; nothing writes it now.
        unsafe {
            assert_eq!(at.add(99).read(), on as u8 + 7);
            at.add(100).write(on as u8 + 50);
        }
        assert_eq!(
            contents(&pair.queues[1 - on], &one.mem)[99..101],
            [on as u8 + 7, on as u8 + 50]
        );
    }
    let address = one.address;
    drop(one);
    free(&pair.context, address);
    pair.fakes[1].replay_by(&[ReplayKind::Whole, ReplayKind::Pieces], 0);
    let other = Context::new(
        pair.context.devices.to_vec(),
        vec![],
        None,
        std::ptr::null_mut(),
    )
    .unwrap();
    assert!(alloc(&other, flags, 4096, 0).is_err());
    assert!(alloc(&other, 0, 4096, 0).is_ok());
}

#[test]
fn no_address_in_common_is_an_error() {
    let pair = Pair::new(Reach::Hidden);
    let refuse = |count: usize| {
        for fake in &pair.fakes {
            fake.replay_by(&[ReplayKind::Whole, ReplayKind::Pieces], count);
        }
    };
    refuse(usize::MAX);
    assert!(code(alloc(&pair.context, 0, 64, 0)) < 0);
    // Later allocations do not try it all again.
    refuse(0);
    assert!(code(alloc(&pair.context, 0, 64, 0)) < 0);
}
