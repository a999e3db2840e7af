//! User events, failures, callbacks, and what commands wait for.

use super::*;
use std::sync::atomic::{AtomicBool, Ordering};

#[test]
fn user_events_hold_commands_and_all_after_them() {
    for flags in [0, OOO] {
        let bench = Bench::new(Reach::Hidden);
        let (one, two) = (bench.queue(flags), bench.queue(flags));
        let mem = bench.filled(&[1; 64]);
        let user = bench.user();
        let first = sent(&one, fill(&one, &mem, 2), &[&user]);
        let second = sent(&two, fill(&two, &mem, 3), &[&first]);
        let third = sent(&one, fill(&one, &mem, 4), &[&second]);
        let marker = sent(&one, sync::marker(), &[]);
        one.flush();
        two.flush();
        std::thread::sleep(Duration::from_millis(5));
        for event in [&first, &second, &third, &marker] {
            assert_eq!(event.status(), cl::CL_QUEUED as cl_int);
        }
        user.set_user_status(0).unwrap();
        assert_eq!(code(user.set_user_status(0)), cl::CL_INVALID_OPERATION);
        assert_eq!(marker.wait(), 0);
        event::wait_all(&[first, second, third]).unwrap();
        assert_eq!(contents(&two, &mem), [4; 64]);
        one.finish().unwrap();
    }
}

#[test]
fn failures_take_dependents_along() {
    let bench = Bench::new(Reach::Cached);
    let (one, two) = (bench.queue(0), bench.queue(0));
    let mem = bench.filled(&[1; 64]);
    let user = bench.user();
    let first = sent(&one, fill(&one, &mem, 2), &[&user]);
    let second = sent(&two, fill(&two, &mem, 3), &[&first]);
    let later = sent(&two, sync::marker(), &[]);
    user.set_user_status(-7).unwrap();
    assert_eq!(user.status(), -7);
    let dependency = cl::CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
    assert_eq!(first.wait(), dependency);
    assert_eq!(second.wait(), dependency);
    assert_eq!(later.wait(), 0);
    assert_eq!(code(event::wait_all(&[second.clone(), later])), dependency);
    let late = sent(&two, fill(&two, &mem, 9), &[&second]);
    assert_eq!(late.status(), dependency);
    let mut bytes = [0u8; 4];
    let command = read(&two, &mem, 0, &mut bytes);
    assert_eq!(
        code(two.enqueue(command, &[second], true, false)),
        dependency
    );
    assert_eq!(contents(&two, &mem), [1; 64]);
}

#[test]
fn a_long_chain_of_held_commands_unwinds() {
    let bench = Bench::new(Reach::Hidden);
    let cases = [
        (0, 0, 20_000),
        (-1, 0, 20_000),
        (0, OOO, 1000),
        (-1, OOO, 1000),
    ];
    for (status, flags, length) in cases {
        let (one, two) = (bench.queue(0), bench.queue(flags));
        let user = bench.user();
        let mut last = user.clone();
        for n in 0..length {
            let queue = if n % 2 == 0 { &one } else { &two };
            last = sent(queue, sync::marker(), &[&last]);
        }
        user.set_user_status(status).unwrap();
        assert_eq!(last.wait() < 0, status < 0);
    }
}

#[test]
fn a_released_user_event_fails_those_that_wait() {
    let (bench, queue) = set_up(Reach::Hidden, 0);
    let handle = bench.user().publish();
    let user = crate::handle::lookup::<Event>(handle).unwrap();
    let waiting = sent(&queue, sync::marker(), &[&user]);
    drop(user);
    event::release(handle).unwrap();
    assert!(waiting.wait() < 0);
}

#[test]
fn held_commands_keep_a_released_queue() {
    let (bench, queue) = set_up(Reach::Hidden, 0);
    let mem = bench.filled(&[1; 16]);
    let user = bench.user();
    let handle = queue.publish();
    let event = sent(&queue, fill(&queue, &mem, 2), &[&user]);
    drop(queue);
    crate::queue::release(handle).unwrap();
    user.set_user_status(0).unwrap();
    assert_eq!(event.wait(), 0);
    drop(event);
    let other = bench.queue(0);
    assert_eq!(contents(&other, &mem), [2; 16]);
    eventually("the queue is gone", || {
        crate::handle::lookup::<Queue>(handle).is_err()
    });
}

#[test]
fn callbacks_come_once_and_in_order() {
    let (bench, queue) = set_up(Reach::Hidden, 0);
    let mem = bench.buffer(64);
    let list: &'static Mutex<Vec<cl_int>> = Box::leak(Box::default());
    let note = |status| list.lock().push(status);
    let wanted = [cl::CL_COMPLETE, cl::CL_RUNNING, cl::CL_SUBMITTED].map(|n| n as cl_int);
    for held in [false, true] {
        bench.fake.stop();
        let user = bench.user();
        let wait: &[_] = if held { &[&user] } else { &[] };
        let event = sent(&queue, fill(&queue, &mem, 1), wait);
        for kind in wanted {
            on_event(&event, kind, note).unwrap();
        }
        assert_eq!(code(on_event(&event, 3, note)), cl::CL_INVALID_VALUE);
        assert!(list.lock().is_empty());
        user.set_user_status(0).unwrap();
        queue.flush();
        eventually("submitted", || list.lock().len() == 1);
        bench.fake.start();
        queue.finish().unwrap();
        eventually("complete", || list.lock().len() == 3);
        assert_eq!(std::mem::take(&mut *list.lock()), [2, 1, 0]);
        on_event(&event, 0, note).unwrap();
        assert_eq!(std::mem::take(&mut *list.lock()), [0]);
    }
    let user = bench.user();
    on_event(&user, 0, note).unwrap();
    user.set_user_status(-3).unwrap();
    assert_eq!(std::mem::take(&mut *list.lock()), [-3]);
}

/// As DPC++ does, whose callbacks free memory with clMemBlockingFreeINTEL.
#[test]
fn callbacks_may_wait_for_later_commands() {
    let bench = Bench::new(Reach::Hidden);
    let queues = [bench.queue(0), bench.queue(OOO)];
    let done = Arc::new(AtomicBool::new(false));
    let [queue, other] = &queues;
    let mem = bench.filled(&[0; 16]);
    let (mut here, mut there) = ([0; 16], [0; 16]);
    bench.fake.stop();
    let user = bench.user();
    let first = sent(queue, fill(queue, &mem, 7), &[&user]);
    let (all, finished) = (queues.clone(), done.clone());
    let finish = move |_| {
        all.iter().for_each(|queue| queue.finish().unwrap());
        finished.store(true, Ordering::SeqCst);
    };
    on_event(&first, 0, finish).unwrap();
    // Each has a part on the host, and waits for the event with the callback.
    let second = sent(other, read(other, &mem, 0, &mut there), &[&first]);
    let third = sent(queue, read(queue, &mem, 0, &mut here), &[&second]);
    user.set_user_status(0).unwrap();
    bench.fake.start();
    eventually("the callback", || done.load(Ordering::SeqCst));
    assert_eq!(third.wait(), 0);
    assert_eq!([here, there], [[7; 16]; 2]);
}

#[test]
fn out_of_order_follows_events_and_barriers() {
    let (bench, queue) = set_up(Reach::Hidden, OOO);
    let mem = bench.filled(&[0; 64]);
    // The fake device runs unordered operations last to first.
    bench.fake.stop();
    enqueue(&queue, fill(&queue, &mem, 1));
    let last = sent(&queue, fill(&queue, &mem, 2), &[]);
    bench.fake.start();
    assert_ne!(contents(&queue, &mem)[0], 2);
    last.wait();
    queue.finish().unwrap();
    let first = sent(&queue, fill(&queue, &mem, 3), &[]);
    sent(&queue, fill(&queue, &mem, 4), &[&first]);
    queue.finish().unwrap();
    assert_eq!(contents(&queue, &mem), [4; 64]);
    enqueue(&queue, fill(&queue, &mem, 5));
    enqueue(&queue, sync::barrier());
    enqueue(&queue, fill(&queue, &mem, 6));
    queue.finish().unwrap();
    assert_eq!(contents(&queue, &mem), [6; 64]);
}

#[test]
fn held_barriers_hold_what_follows_out_of_order() {
    let (bench, queue) = set_up(Reach::Hidden, OOO);
    let mem = bench.filled(&[0; 64]);
    let user = bench.user();
    sent(&queue, fill(&queue, &mem, 1), &[&user]);
    let free = sent(&queue, sync::marker(), &[]);
    enqueue(&queue, sync::barrier());
    let after = sent(&queue, fill(&queue, &mem, 2), &[]);
    queue.flush();
    std::thread::sleep(Duration::from_millis(5));
    assert!(free.status() > 0 && after.status() > 0);
    user.set_user_status(0).unwrap();
    assert_eq!(after.wait(), 0);
    queue.finish().unwrap();
    assert_eq!(free.status(), 0);
    assert_eq!(contents(&queue, &mem), [2; 64]);
}

#[test]
fn callbacks_of_an_event_that_is_found_over_meanwhile_are_not_lost() {
    let (bench, queue) = set_up(Reach::Hidden, 0);
    let mem = bench.filled(&[1; 64]);
    let list: &'static Mutex<Vec<cl_int>> = Box::leak(Box::default());
    let event = sent(&queue, fill(&queue, &mem, 2), &[]);
    queue.finish().unwrap();
    // Later work that nobody submits.
    let _later = sent(&queue, fill(&queue, &mem, 3), &[]);
    let busy = queue.state.lock();
    std::thread::scope(|scope| {
        let registers = scope.spawn(|| {
            on_event(&event, 0, |status| list.lock().push(status)).unwrap();
        });
        // It has been entered, and waits for the queue.
        std::thread::sleep(Duration::from_millis(50));
        assert_eq!(event.status(), 0);
        drop(busy);
        registers.join().unwrap();
    });
    eventually("the callback", || list.lock().as_slice() == [0]);
}

/// The bytes may be on their way when the call returns; nobody can tell, whatever the order of the queue.
#[test]
fn blocking_writes_are_over_for_what_comes_later() {
    for flags in [0, OOO] {
        let (bench, queue) = set_up(Reach::Hidden, flags);
        let mem = bench.filled(&[1; 64]);
        let other = bench.filled(&[2; 64]);
        let before = bench.fake.submits();
        let command = write(&queue, &mem, 0, &[7; 64]);
        enqueue_blocking(&queue, command);
        assert_eq!(bench.fake.submits(), before, "nothing waits");
        let copy = buffer::copy(&queue.target, &mem, &other, 0, 0, 64).unwrap();
        sent(&queue, copy, &[]).wait();
        assert_eq!(contents(&queue, &other), [7; 64]);
    }
}
