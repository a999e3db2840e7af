//! Maps, and what blocking calls wait for, by how the host reaches the memory.

use super::*;

#[test]
fn maps() {
    for reach in ALL {
        let (bench, queue) = set_up(reach, 0);
        let mem = bench.filled(&(0..64).collect::<Vec<u8>>());
        let seen = mapped(&queue, &mem, cl::CL_MAP_READ, 8..24);
        assert_eq!(seen, (8..24).collect::<Vec<u8>>());
        // An overlapping map lies at the same place.
        let flags = cl::CL_MAP_WRITE;
        let other = mapped(&queue, &mem, flags, 10..14);
        assert_eq!(other.as_ptr() as usize, seen.as_ptr() as usize + 2);
        assert_eq!(mem.map_count(), 2);
        let again = map::map_buffer(&queue.target, &mem, flags, 13, 4);
        assert_eq!(code(again), cl::CL_INVALID_OPERATION);
        other.fill(99);
        let unmapped = map::unmap(&queue.target, &mem, 5 as *mut c_void);
        assert_eq!(code(unmapped), cl::CL_INVALID_VALUE);
        enqueue(&queue, unmap(&queue, &mem, other.as_ptr()));
        enqueue(&queue, unmap(&queue, &mem, seen.as_ptr()));
        assert_eq!(mem.map_count(), 0);
        let mut expected: Vec<u8> = (0..64).collect();
        expected[10..14].fill(99);
        assert_eq!(contents(&queue, &mem), expected);
        let all = mapped(&queue, &mem, cl::CL_MAP_WRITE_INVALIDATE_REGION, 0..64);
        all.fill(1);
        assert_eq!(
            sent(&queue, unmap(&queue, &mem, all.as_ptr()), &[]).wait(),
            0
        );
        assert_eq!(contents(&queue, &mem), [1; 64]);
    }
}

/// While nothing is under way, small maps of memory that the host reaches need no submission, whether it caches it or not.
#[test]
fn small_maps_of_idle_memory() {
    for reach in [Reach::Cached, Reach::Uncached] {
        let (bench, queue) = set_up(reach, 0);
        let mem = bench.filled(&(0..200).collect::<Vec<u8>>());
        let before = bench.fake.submits();
        let seen = mapped(&queue, &mem, cl::CL_MAP_WRITE, 5..155);
        assert_eq!(seen, (5..155).collect::<Vec<u8>>());
        seen.fill(9);
        enqueue(&queue, unmap(&queue, &mem, seen.as_ptr()));
        let mut expected: Vec<u8> = (0..200).collect();
        expected[5..155].fill(9);
        assert_eq!(contents(&queue, &mem), expected);
        assert_eq!(bench.fake.submits(), before, "{reach:?}");
        // After a command they are in its batch: one submission for both.
        enqueue(&queue, fill(&queue, &mem, 3));
        assert_eq!(mapped(&queue, &mem, cl::CL_MAP_READ, 0..200), [3; 200]);
        assert_eq!(bench.fake.submits(), before + 1, "{reach:?}");
    }
}

/// Blocking maps and reads of memory that the host reaches wait themselves, for commands before and for other queues: there
/// is no batch for them alone.
#[test]
fn blocking_maps_and_reads_submit_nothing() {
    for flags in [0, PROFILING] {
        let bench = Bench::new(Reach::Cached);
        let (one, two) = (bench.queue(flags), bench.queue(flags));
        let mem = bench.filled(&[0; 64]);
        let map = |queue: &Ref<Queue>, wait: &[Ref<Event>]| {
            let (command, pointer) = map(queue, &mem, cl::CL_MAP_READ, 0..64);
            queue.enqueue(command, wait, true, true).unwrap();
            // SAFETY: mapped for 64 bytes.
            let seen = unsafe { std::slice::from_raw_parts(pointer as *const u8, 64) }.to_vec();
            enqueue(queue, unmap(queue, &mem, pointer.cast()));
            seen
        };
        for round in 1..5u8 {
            let before = bench.fake.submits();
            let event = sent(&one, fill(&one, &mem, round), &[]);
            one.flush();
            let queue = if round % 2 == 0 { &one } else { &two };
            assert_eq!(map(queue, std::slice::from_ref(&event)), [round; 64]);
            let mut bytes = [0; 64];
            let command = read(queue, &mem, 0, &mut bytes);
            queue.enqueue(command, &[event], true, false).unwrap();
            assert_eq!(bytes, [round; 64]);
            assert_eq!(bench.fake.submits(), before + 1, "round {round}, {flags}");
        }
    }
}

/// Bytes that a blocking write has left to the device come before all that a queue does which is made later, even if the device has
/// nothing to do for it.
#[test]
fn maps_of_new_queues_wait_for_left_writes() {
    for flags in [0, OOO, PROFILING] {
        let bench = Bench::new(Reach::Cached);
        let one = bench.queue(0);
        let mem = bench.filled(&[0; 64]);
        bench.fake.stop();
        enqueue(&one, fill(&one, &mem, 1));
        enqueue_blocking(&one, write(&one, &mem, 0, &[2; 64]));
        let two = bench.queue(flags);
        let (command, pointer) = map(&two, &mem, cl::CL_MAP_WRITE, 0..64);
        let mapped = sent(&two, command, &[]);
        two.flush();
        std::thread::sleep(Duration::from_millis(10));
        assert!(!matches!(mapped.readiness(), Readiness::Done), "{flags}");
        bench.fake.start();
        assert_eq!(mapped.wait(), 0);
        // SAFETY: mapped for 64 bytes.
        let seen = unsafe { std::slice::from_raw_parts(pointer as *const u8, 64) };
        assert_eq!(seen, [2; 64], "{flags}");
    }
}

/// A blocking write returns when its source is free. Where somebody could tell, by an event or from another queue, it is
/// over by then: applications read the times of such events at once, and use what is written in other queues.
#[test]
fn blocking_writes_are_over_where_that_shows() {
    let bench = Bench::new(Reach::Hidden);
    let one = bench.queue(0);
    let (mem, other) = (bench.filled(&[0; 64]), bench.filled(&[0; 64]));
    let write_one = |byte, event| {
        let bytes = [byte; 64];
        let command = write(&one, &mem, 0, &bytes);
        one.enqueue(command, &[], true, event).unwrap()
    };
    let before = bench.fake.submits();
    assert!(write_one(1, false).is_none());
    assert_eq!(bench.fake.submits(), before, "nobody can tell");
    let event = write_one(2, true).unwrap();
    assert!(matches!(event.readiness(), Readiness::Done));
    let two = bench.queue(0);
    let before = bench.fake.submits();
    write_one(3, false);
    assert_eq!(bench.fake.submits(), before + 1);
    assert_eq!(contents(&two, &mem), [3; 64]);
    assert_eq!(contents(&two, &other), [0; 64]);
    drop(two);
    let before = bench.fake.submits();
    write_one(4, false);
    assert_eq!(bench.fake.submits(), before, "the other queue is gone");
    assert_eq!(contents(&one, &mem), [4; 64]);
}

#[test]
fn maps_of_application_memory_derive_from_it() {
    for reach in ALL {
        let (bench, queue) = set_up(reach, 0);
        let mut host = vec![3u8; 512];
        let base = host.as_mut_ptr();
        let flags = cl::CL_MEM_USE_HOST_PTR;
        // SAFETY: the vector outlives the buffer's use.
        let mem = unsafe { Mem::buffer(&bench.context, vec![], flags, 512, base.cast()) }.unwrap();
        let sub = Mem::sub_buffer(&mem, 0, 128, 64).unwrap();
        assert_eq!(sub.host_ptr() as usize, base as usize + 128);
        enqueue(&queue, fill(&queue, &sub, 7));
        let flags = cl::CL_MAP_READ | cl::CL_MAP_WRITE;
        let (command, pointer) = map(&queue, &sub, flags, 4..12);
        assert_eq!(pointer as usize, base as usize + 132);
        assert_eq!(sent(&queue, command, &[]).wait(), 0);
        // SAFETY: mapped for 8 bytes, in the vector.
        unsafe {
            assert_eq!(*(pointer as *const u8), 7);
            *(pointer as *mut u8) = 8;
        }
        enqueue(&queue, unmap(&queue, &sub, pointer.cast()));
        let mut expected = vec![3u8; 512];
        expected[128..192].fill(7);
        expected[132] = 8;
        assert_eq!(contents(&queue, &mem), expected);
        queue.finish().unwrap();
    }
}

/// An unmap that waits does not end the map yet: commands that come later may still use its pointer.
#[test]
fn maps_last_until_their_unmap_may_be_done() {
    for status in [0, -1] {
        let bench = Bench::new(Reach::Hidden);
        let (one, two) = (bench.queue(0), bench.queue(0));
        let mem = bench.filled(&[1; 64]);
        let other = bench.filled(&[0; 64]);
        let user = bench.user();
        bench.fake.stop();
        let (command, pointer) = map(&two, &mem, cl::CL_MAP_READ, 0..64);
        sent(&two, command, &[]);
        let unmap = unmap(&one, &mem, pointer.cast());
        let unmapped = sent(&one, unmap, &[&user]);
        // SAFETY: mapped for 64 bytes.
        let source = unsafe { std::slice::from_raw_parts(pointer as *const u8, 64) };
        let written = sent(&two, write(&two, &other, 0, source), &[]);
        bench.fake.start();
        assert_eq!(written.wait(), 0);
        user.set_user_status(status).unwrap();
        assert_eq!(unmapped.wait() < 0, status < 0);
        assert_eq!(contents(&two, &other), [1; 64]);
        assert_eq!(mem.map_count() > 0, status < 0);
    }
}

/// An unmap ends the map that is there, not one with the same pointer that may never come to be.
#[test]
fn unmaps_are_of_maps_that_are_there() {
    let (bench, queue) = set_up(Reach::Hidden, 0);
    let mem = bench.filled(&[1; 64]);
    let user = bench.user();
    let bytes = mapped(&queue, &mem, cl::CL_MAP_WRITE, 0..64);
    bytes.fill(7);
    let (command, again) = map(&queue, &mem, cl::CL_MAP_READ, 0..64);
    assert_eq!(bytes.as_ptr(), again.cast());
    let failed = sent(&queue, command, &[&user]);
    let unmapped = sent(&queue, unmap(&queue, &mem, bytes.as_ptr()), &[]);
    user.set_user_status(-1).unwrap();
    assert!(failed.wait() < 0);
    assert_eq!(unmapped.wait(), 0);
    assert_eq!(mem.map_count(), 0);
    assert_eq!(contents(&queue, &mem), [7; 64]);
}

/// An unmap that fails leaves no map whose command failed before it. One that does not fail ends the map that is there,
/// even if all with that pointer were pending when it was enqueued.
#[test]
fn maps_that_fail_are_not_unmapped() {
    let bench = Bench::new(Reach::Hidden);
    let (one, two) = (bench.queue(0), bench.queue(OOO));
    let mem = bench.filled(&[1; 64]);
    let orders = [[0, 1], [1, 0]];
    let failures = [[true, true], [false, true], [true, false]];
    for (order, fails) in orders.iter().flat_map(|o| failures.map(|f| (o, f))) {
        let users = [(); 2].map(|()| bench.user());
        let map = |user| {
            let (command, pointer) = map(&two, &mem, cl::CL_MAP_READ, 0..64);
            (sent(&two, command, &[user]), pointer)
        };
        let ((first, pointer), (second, again)) = (map(&users[0]), map(&users[1]));
        assert_eq!(pointer, again);
        let unmap = unmap(&one, &mem, pointer.cast());
        let there = if fails[0] { &second } else { &first };
        let unmapped = sent(&one, unmap, &[there]);
        assert_eq!(mem.map_count(), 1);
        for &number in order {
            let status = if fails[number] { -1 } else { 0 };
            users[number].set_user_status(status).unwrap();
        }
        assert_eq!(first.wait() < 0, fails[0]);
        assert_eq!(second.wait() < 0, fails[1]);
        assert_eq!(unmapped.wait() < 0, fails[0] && fails[1]);
        assert_eq!(mem.map_count(), 0, "{fails:?} {order:?}");
    }
}

/// An unmap that waits for its map ends that one, though its queue looks at it before, while a thread
/// enqueues a later map with the same pointer.
#[test]
fn unmaps_wait_for_their_own_maps() {
    let bench = Bench::new(Reach::Hidden);
    let (one, two) = (bench.queue(0), bench.queue(OOO));
    let bytes: Vec<u8> = (1..=64).collect();
    let (mem, other) = (bench.filled(&bytes), bench.filled(&[0; 8]));
    let (first, second) = (bench.user(), bench.user());
    let before = sent(&one, fill(&one, &other, 5), &[&first]);
    let (command, pointer) = map(&two, &mem, cl::CL_MAP_WRITE, 0..40);
    let mapped = sent(&two, command, &[&before, &second]);
    let unmapped = unmap(&one, &mem, pointer.cast());
    let unmapped = sent(&one, unmapped, &[&mapped]);
    let (command, again) = map(&two, &mem, cl::CL_MAP_WRITE, 0..64);
    assert_eq!(pointer, again);
    first.set_user_status(0).unwrap();
    assert_eq!(before.wait(), 0);
    second.set_user_status(0).unwrap();
    assert_eq!(mapped.wait(), 0);
    let last = sent(&two, command, &[&unmapped]);
    assert_eq!((unmapped.wait(), last.wait()), (0, 0));
    // SAFETY: mapped for 64 bytes.
    let seen = unsafe { std::slice::from_raw_parts(again as *const u8, 64) };
    assert_eq!(seen, bytes);
    assert_eq!(sent(&one, unmap(&one, &mem, again.cast()), &[]).wait(), 0);
    assert_eq!(mem.map_count(), 0);
    assert_eq!(contents(&one, &mem), bytes);
}
