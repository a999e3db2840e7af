//! Commands on pointers, on devices whose memory the host sees and on devices where maps copy.

use super::*;
use crate::command::svm;
use crate::object::svm::{alloc, free, Allocation};

fn fresh(bench: &Bench, size: usize) -> Arc<Allocation> {
    alloc(&bench.context, 0, size, 0).unwrap()
}

fn memcpy(queue: &Queue, dst: usize, src: usize, size: usize) -> Command {
    let (dst, src) = (dst as *mut c_void, src as *const c_void);
    // SAFETY: the tests keep both sides valid.
    unsafe { svm::svm_memcpy(&queue.target, dst, src, size) }.unwrap()
}

#[test]
fn maps_bring_the_bytes_and_take_them_back() {
    for reach in ALL {
        let (bench, queue) = set_up(reach, 0);
        let one = fresh(&bench, 64);
        let at = |offset: usize| (one.address + offset) as *mut u8;
        // SAFETY: the allocation.
        let command = unsafe { svm::svm_fill(&queue.target, at(0).cast(), &[5], 64) }.unwrap();
        enqueue(&queue, command);
        let flags = cl::CL_MAP_READ | cl::CL_MAP_WRITE;
        let command = svm::map(&queue.target, flags, at(8).cast(), 16).unwrap();
        enqueue_blocking(&queue, command);
        assert_eq!(one.mem.map_count(), 1);
        // SAFETY: mapped.
        unsafe {
            assert_eq!(at(8).read(), 5, "{reach:?}");
            assert_eq!(at(23).read(), 5);
            at(9).write(77);
        }
        let command = svm::unmap(&queue.target, at(8).cast()).unwrap();
        enqueue(&queue, command);
        assert_eq!(one.mem.map_count(), 0);
        let mut expected = [5; 64];
        expected[9] = 77;
        assert_eq!(contents(&queue, &one.mem), expected);
        // Not mapped: nothing to do.
        let command = svm::unmap(&queue.target, at(8).cast()).unwrap();
        enqueue_blocking(&queue, command);
        free(&bench.context, one.address);
        assert!(bench.context.allocations.find(one.address).is_none());
    }
}

#[test]
fn copies_between_all_kinds_of_memory_keep_their_order() {
    for reach in ALL {
        for flags in [0, PROFILING] {
            let (bench, queue) = set_up(reach, flags);
            let (a, b) = (fresh(&bench, 1000), fresh(&bench, 1000));
            let source: Vec<u8> = (0..1000u32).map(|n| (n % 251) as u8).collect();
            let (mut first, mut second) = (vec![0u8; 1000], vec![0u8; 1000]);
            bench.fake.stop();
            let base = source.as_ptr() as usize;
            let (p, q) = (first.as_mut_ptr() as usize, second.as_mut_ptr() as usize);
            for command in [
                memcpy(&queue, a.address, base, 1000),
                memcpy(&queue, b.address + 10, a.address, 500),
                memcpy(&queue, p, b.address, 600),
                memcpy(&queue, q + 100, p, 600),
                // What the copies before have left must be seen, and must have been read by them.
                memcpy(&queue, a.address + 200, q + 100, 300),
                memcpy(&queue, p, a.address, 1000),
            ] {
                enqueue(&queue, command);
            }
            queue.flush();
            bench.fake.start();
            queue.finish().unwrap();
            assert_eq!(&second[110..610], &source[..500], "{reach:?}");
            let mut expected = source.clone();
            expected[210..500].copy_from_slice(&source[..290]);
            assert_eq!(&first[..200], &source[..200]);
            assert_eq!(&first[210..], &expected[210..]);
        }
    }
}

#[test]
fn freeing_waits_for_its_turn() {
    let (bench, queue) = set_up(Reach::Hidden, 0);
    let one = fresh(&bench, 64);
    let address = one.address;
    drop(one);
    let gate = bench.user();
    let command = svm::free(&queue.target, vec![address], None).unwrap();
    let event = sent(&queue, command, &[&gate]);
    assert!(bench.context.allocations.find(address).is_some());
    gate.set_user_status(0).unwrap();
    assert_eq!(event.wait(), 0);
    assert!(bench.context.allocations.find(address).is_none());
}

#[test]
fn buffers_over_allocations_share_their_bytes() {
    for reach in ALL {
        let (bench, queue) = set_up(reach, 0);
        let one = fresh(&bench, 256);
        let make = |offset: usize, size: usize| {
            let flags = cl::CL_MEM_USE_HOST_PTR;
            let pointer = (one.address + offset) as *mut c_void;
            // SAFETY: the allocation lives long enough.
            unsafe { Mem::buffer(&bench.context, vec![], flags, size, pointer) }
        };
        assert_eq!(code(make(0, 257)), cl::CL_INVALID_BUFFER_SIZE);
        assert_eq!(code(make(128, 129)), cl::CL_INVALID_BUFFER_SIZE);
        let half = make(128, 128).unwrap();
        assert!(half.store.svm);
        assert_eq!(half.host_ptr() as usize, one.address + 128);
        enqueue(&queue, fill(&queue, &one.mem, 1));
        enqueue(&queue, fill(&queue, &half, 2));
        let mut expected = [1; 256];
        expected[128..].fill(2);
        assert_eq!(contents(&queue, &one.mem), expected);
        let seen = mapped(&queue, &half, cl::CL_MAP_READ, 4..12);
        assert_eq!(seen.as_ptr() as usize, one.address + 132);
        assert_eq!(seen, [2; 8]);
    }
}
