//! Command buffers and semaphores.

use super::{is_legal, program, promises_of, refused};
use crate::expect::{expected, initial};
use crate::order::Set;
use crate::parse;
use crate::plan::{Planner, Refusal};
use crate::program::{Program, FACTOR};
use crate::run::printed::check;

const RECORDINGS: &str = "
    recording 0 queues 0
    recording 1 queues 1 simultaneous mutable
    recording 2 queues 0,2
    recording 3 queues 2 simultaneous mutable from 1
    recording 4 queues 0 from 2
    semaphore 0 device 0
    semaphore 1 device 0
";

fn text(actions: &str) -> String {
    format!("{RECORDINGS}{actions}")
}

fn fill(index: usize, recording: usize, queue: usize, at: usize) -> String {
    format!("{index} q{queue} record {recording} fill m1/0@{at} 4 ab\n")
}

fn is_invalid(actions: &str, index: usize) {
    let verdict = refused(&text(actions));
    let invalid = matches!(verdict, (at, Refusal::Invalid(_)) if at == index);
    assert!(invalid, "{actions}: {verdict:?}");
}

#[test]
fn a_command_buffer_is_recorded_once_and_replayed() {
    let begun = format!("0 begin 0\n{}", fill(1, 0, 0, 0));
    let whole = format!("{begun}2 finalize 0\n3 q0 replay 0 own 0\n");
    for more in [
        "4 q0 replay 0 queues 0 after 3 event",
        "4 q2 replay 0 queues 2 after 3 callback",
        "4 misuse-finalized 0\n5 discard 0",
        "4 release 1\n5 wait 3\n6 q0 replay 0 own 0",
    ] {
        is_legal(more, &text(&format!("{whole}{more}")));
    }
    is_invalid(&fill(0, 0, 0, 0), 0);
    is_invalid(&format!("{begun}2 begin 0"), 2);
    is_invalid(&format!("{begun}2 q0 replay 0 own 0"), 2);
    is_invalid(&format!("{begun}2 update 1 m1/0@0 m1/0@0 words 1 add 1"), 2);
    is_invalid(&format!("{whole}{}", fill(4, 0, 0, 0)), 4);
    is_invalid(&format!("{whole}4 finalize 0"), 4);
    is_invalid(&format!("{whole}4 q2 replay 0 own 2"), 4);
    is_invalid(&format!("{whole}4 discard 0\n5 q0 replay 0 own 0"), 5);
    is_invalid("0 begin 0\n1 q0 record 0 read m1/0@0 m0@0 4", 1);
    is_invalid("0 begin 0\n1 q0 record 0 fill m1/0@0 4 ab event", 1);
    is_invalid("0 begin 0\n1 q1 record 0 fill m1/0@0 4 ab", 1);
    // Memory objects that are arguments of kernels, and pointers, are not kept.
    let kernel = "0 begin 0\n1 q0 record 0 kernel m1/0@0 m3@0 words 1 add 1 spins 0\n";
    is_invalid(&format!("{kernel}2 release 1"), 2);
    is_invalid(&format!("{kernel}2 q0 free 3"), 2);
    is_legal(
        "released",
        &text(&format!("{kernel}2 discard 0\n3 release 1")),
    );
}

#[test]
fn sync_points_order_recorded_commands() {
    let first = format!("0 begin 1\n{}", fill(1, 1, 1, 0));
    assert_eq!(
        refused(&text(&format!("{first}{}", fill(2, 1, 1, 0)))),
        (2, Refusal::Race(1))
    );
    for more in [
        "2 q1 record 1 fill m1/0@0 4 cd after 1",
        "2 q1 record 1 barrier\n3 q1 record 1 fill m1/0@0 4 cd",
        "2 q1 record 1 fill m1/0@4 4 cd",
    ] {
        is_legal(more, &text(&format!("{first}{more}")));
    }
    // Sync points are those of the same command buffer.
    is_invalid(
        &format!("{first}2 q1 barrier\n3 q1 record 1 barrier after 2"),
        3,
    );
    // In order, and from queue to queue.
    is_legal(
        "in order",
        &text(&format!(
            "0 begin 0\n{}{}",
            fill(1, 0, 0, 0),
            fill(2, 0, 0, 0)
        )),
    );
    let two = format!("0 begin 2\n{}", fill(1, 2, 0, 0));
    assert_eq!(
        refused(&text(&format!("{two}{}", fill(2, 2, 2, 0)))),
        (2, Refusal::Race(1))
    );
}

#[test]
fn replays_are_ordered_as_their_commands_need_it() {
    let whole = format!(
        "0 begin 1\n{}2 finalize 1\n3 q1 replay 1 own 1\n",
        fill(1, 1, 1, 0)
    );
    for action in [
        "4 q1 replay 1 own 1",
        "4 q0 write m1/0@0 m0@0 4",
        "4 q1 fill m1/0@2 4 ab",
    ] {
        let verdict = refused(&text(&format!("{whole}{action}")));
        assert_eq!(verdict, (4, Refusal::Race(3)), "{action}");
        is_legal(action, &text(&format!("{whole}{action} after 3")));
    }
    is_legal(
        "other bytes",
        &text(&format!("{whole}4 q1 fill m1/0@4 4 ab")),
    );
    // Without simultaneous use, not even with nothing in common.
    let empty = "0 begin 0\n1 finalize 0\n2 q1 replay 0 queues 0\n".replace("q1", "q0");
    let verdict = refused(&text(&format!("{empty}3 q2 replay 0 queues 2")));
    assert_eq!(verdict, (3, Refusal::Race(2)));
    // Only its event says that all of one on two queues is over.
    let two = format!(
        "0 begin 2\n{}2 finalize 2\n3 q0 replay 2 own 0,2\n",
        fill(1, 2, 0, 0)
    );
    let read = |how: &str| text(&format!("{two}{how}"));
    let verdict = refused(&read("4 finish 0\n5 finish 2\n6 q0 read m1/0@0 m0@0 4"));
    assert_eq!(verdict, (6, Refusal::Race(3)));
    is_legal("its event", &read("4 q0 read m1/0@0 m0@0 4 after 3"));
}

#[test]
fn an_update_is_for_later_replays() {
    let program = program(&text(
        "0 begin 1
         1 q1 record 1 kernel m1/0@0 m1/0@0 words 1 add 7 spins 0
         2 finalize 1
         3 q1 replay 1 own 1
         4 update 1 m1/0@4 m1/0@0 words 1 add 9
         5 q1 replay 1 own 1 after 3
         6 q1 replay 1 own 1 after 5",
    ));
    assert!(Planner::check(&program).is_ok());
    let step = |word: u32, add: u32| word.wrapping_mul(FACTOR).wrapping_add(add);
    let word = u32::from_le_bytes(initial(1, 4096)[..4].try_into().expect("a word"));
    let last = &expected(&program).last[1].bytes;
    assert_eq!(last[..4], step(word, 7).to_le_bytes());
    assert_eq!(last[4..8], step(step(word, 7), 9).to_le_bytes());
    // The commands must not race with one another then.
    let two = "0 begin 1
         1 q1 record 1 kernel m1/0@0 m1/0@0 words 1 add 7 spins 0
         2 q1 record 1 kernel m2/0@0 m2/0@0 words 1 add 7 spins 0
         3 finalize 1\n";
    is_invalid(&format!("{two}4 update 2 m1/0@0 m1/0@0 words 1 add 9"), 4);
    is_invalid(&format!("{two}4 update 2 m8/0@0 m2/0@0 words 16 add 9"), 4);
    is_legal(
        "apart",
        &text(&format!("{two}4 update 2 m5/0@0 m2/0@0 words 1 add 9")),
    );
}

#[test]
fn a_replay_fails_as_a_whole() {
    let program = program(&text(
        "0 begin 1
         1 q1 record 1 fill m1/0@0 4 ab
         2 q1 record 1 doomed
         3 finalize 1
         4 q1 replay 1 own 1
         5 q1 fill m2/0@0 4 ab after 4
         6 q1 fill m1/0@8 4 ab",
    ));
    assert!(Planner::check(&program).is_ok());
    let fails: Vec<bool> = (0..7).map(|index| program.fails(index)).collect();
    assert_eq!(fails, [false, false, false, false, true, true, false]);
    let last = expected(&program).last;
    assert_eq!(last[1].known[..12], [0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1]);
    assert_eq!(last[2].bytes[..], initial(2, 4096));
}

#[test]
fn semaphores_order_and_fail_as_events_do() {
    let kernel = "0 q0 kernel m3@0 m3@0 words 16 add 7 spins 0\n1 q0 signal 0\n";
    let read = "q2 write m1/0@0 m3@0 64";
    is_legal("ordered", &text(&format!("{kernel}2 q2 await 0\n3 {read}")));
    let verdict = refused(&text(&format!("{kernel}2 {read}")));
    assert_eq!(verdict, (2, Refusal::Race(0)));
    // Out of order: the event of the wait.
    let wait = format!("{kernel}2 q1 await 0\n3 q1 write m1/0@0 m3@0 64");
    assert_eq!(refused(&text(&wait)), (3, Refusal::Race(0)));
    is_legal("after", &text(&format!("{wait} after 2")));
    // Each in its turn.
    is_invalid(&format!("{kernel}2 q0 signal 0,1"), 2);
    let again = format!("{kernel}2 q2 await 0\n3 q1 signal 0");
    assert_eq!(refused(&text(&again)), (3, Refusal::Race(2)));
    is_legal("after", &text(&format!("{again} after 2\n4 q2 await 0")));
    let program: Program = program(&text(
        "0 refuse 5\n1 q0 signal 0 after 0\n2 q2 await 0\n3 q0 signal 0\n4 q2 await 0\n5 q1 marker after 4",
    ));
    let fails: Vec<bool> = (0..6).map(|index| program.fails(index)).collect();
    assert_eq!(fails, [true, true, true, false, false, false]);
}

#[test]
fn gates_hold_up_replays_and_semaphores() {
    let recorded = format!("0 begin 1\n{}2 finalize 1\n", fill(1, 1, 1, 0));
    let gate = "3 hold\n4 q0 marker after 3\n5 q0 replay 1 queues 0\n6 q1 replay 1 own 1\n";
    let all = format!(
        "{recorded}{}",
        gate.replace("q0 replay 1 queues 0", "q0 fill m2/0@0 4 ab")
    );
    let more = "7 q0 signal 0\n8 q2 await 0\n9 q2 fill m5/0@0 4 ab\n10 q1 fill m9/0@0 4 ab";
    assert_eq!(
        promises_of(&text(&format!("{all}{more}"))),
        "pppsssp".to_owned() + "sssp"
    );
    // On two queues, behind what both are behind.
    let two = "0 begin 2\n1 finalize 2\n2 hold\n3 q0 marker after 2\n4 q0 replay 2 own 0,2\n5 q2 fill m1/0@0 4 ab";
    assert_eq!(promises_of(&text(two)), "ppss--");
}

#[test]
fn recorded_actions_can_be_printed_and_read() {
    let actions = "0 begin 1
1 q1 record 1 kernel m1/0@0 m1/0@0 words 1 add 7 spins 0
2 q1 record 1 barrier after 1
3 misuse-unfinalized 1
4 misuse-point 1
5 finalize 1
6 update 1 m1/0@4 m1/0@0 words 2 add 9
7 q1 replay 1 queues 1 event
8 q1 signal 0,1 after 7
9 q1 await 1
10 begin 3
11 q2 kernel m1/0@0 m1/0@0 words 1 add 7 spins 0 prints enqueues
12 update 1 m1/0@4 m1/0@0 words 2 add 9 copy 3
13 discard 1
";
    let program = program(&text(actions));
    let printed = program.to_string();
    assert!(printed.ends_with(actions), "{printed}");
    assert_eq!(parse::program(&printed).as_ref(), Ok(&program));
}

#[test]
fn a_wait_may_come_before_its_signal() {
    let wait = "0 q0 await 0\n1 q0 fill m1/0@0 4 ab\n2 q2 fill m2/0@0 4 ab\n";
    assert_eq!(promises_of(&text(wait)), "ssp");
    assert_eq!(promises_of(&text(&format!("{wait}3 q2 signal 0"))), "pppp");
    let gate = "3 hold\n4 q2 signal 0 after 3";
    assert_eq!(promises_of(&text(&format!("{wait}{gate}"))), "sspss");
    for last in ["3 wait 1", "3 q0 signal 0", "3 q1 signal 0 after 1"] {
        assert_eq!(
            refused(&text(&format!("{wait}{last}"))),
            (3, Refusal::Closed),
            "{last}"
        );
    }
    is_legal(
        "signalled",
        &text(&format!("{wait}3 q2 signal 0\n4 wait 1")),
    );
    is_invalid(&format!("{wait}3 q2 await 0"), 3);
    is_invalid(&format!("{wait}3 refuse 5\n4 q2 signal 0 after 3"), 4);
    // What is behind the wait is behind what is before the signal.
    let all = "0 q1 await 0\n1 q2 fill m1/0@0 4 ab\n2 q2 signal 0\n3 q1 fill m1/0@0 4 cd after 0";
    is_legal("ordered", &text(all));
}

#[test]
fn a_copy_is_a_command_buffer_of_its_own() {
    let whole = "0 begin 1
1 q1 record 1 kernel m1/0@0 m1/0@0 words 1 add 7 spins 0
";
    let late = format!("{whole}2 finalize 1\n3 begin 3\n");
    let program = program(&text(&format!(
        "{late}4 update 1 m1/0@4 m1/0@0 words 1 add 9
         5 q2 replay 3 own 2
         6 q1 replay 1 own 1 after 5
         7 update 1 m1/0@0 m1/0@0 words 1 add 1 copy 3
         8 discard 1
         9 q2 replay 3 own 2 after 6"
    )));
    assert_eq!(Planner::check(&program).map(|_| ()), Ok(()));
    let step = |word: u32, add: u32| word.wrapping_mul(FACTOR).wrapping_add(add);
    let word = u32::from_le_bytes(initial(1, 4096)[..4].try_into().expect("a word"));
    let last = &expected(&program).last[1].bytes;
    let first = step(word, 7);
    assert_eq!(last[..4], step(first, 1).to_le_bytes());
    assert_eq!(last[4..8], step(first, 9).to_le_bytes());
    // In the state of the other, with its order, but for sync points.
    is_invalid(&format!("{late}4 finalize 3"), 4);
    let begun = format!("{whole}2 begin 3\n");
    is_legal(
        "begun",
        &text(&format!("{begun}3 finalize 3\n4 q2 replay 3 own 2")),
    );
    is_invalid(&format!("{begun}3 q2 replay 3 own 2"), 3);
    is_invalid(&format!("{begun}3 q2 record 3 barrier after 1"), 3);
    is_legal(
        "in order",
        &text(&format!("{begun}3 q2 record 3 fill m1/0@0 4 ab")),
    );
    is_invalid("0 begin 3", 0);
    // What it records uses memory, too.
    is_invalid(&format!("{late}4 discard 1\n5 release 1"), 5);
    // Several queues become one.
    let two = format!(
        "0 begin 2\n{}2 q2 record 2 fill m2/0@0 4 ab\n",
        fill(1, 2, 0, 0)
    );
    let one = format!("{two}3 begin 4\n4 finalize 4\n5 q0 replay 4 own 0");
    is_legal("one", &text(&one));
}

#[test]
fn lines_come_once_for_each_run_and_in_order() {
    let kernel = |at: usize, add: u32| {
        format!("q1 record 1 kernel m1/0@{at} m1/0@{at} words 1 add {add} spins 0 prints\n")
    };
    let program = program(&text(&format!(
        "0 begin 1\n1 {}2 {}3 finalize 1
         4 q1 replay 1 own 1
         5 q1 replay 1 own 1 after 4",
        kernel(0, 7),
        kernel(4, 8)
    )));
    let planner = Planner::check(&program).expect("legal");
    let lines = expected(&program).lines;
    let texts = lines
        .iter()
        .map(|line| format!("{} {}", line.name, line.value.unwrap_or(0)));
    let texts: Vec<String> = texts.collect();
    assert_eq!(texts.len(), 4);
    let seen = |order: &[usize], over| {
        let list: Vec<String> = order.iter().map(|&at| texts[at].clone()).collect();
        check(&planner, &lines, &list, over).is_ok()
    };
    for right in [[0, 1, 2, 3], [1, 0, 2, 3], [1, 0, 3, 2]] {
        assert!(seen(&right, Set::MAX), "{right:?}");
    }
    for wrong in [[0, 2, 1, 3], [2, 3, 0, 1], [0, 1, 2, 2]] {
        assert!(!seen(&wrong, Set::MAX), "{wrong:?}");
    }
    assert!(!seen(&[0, 1, 2], Set::MAX) && !seen(&[0, 1, 2, 3, 3], Set::MAX));
    assert!(seen(&[0, 1, 2], 1 << 4) && !seen(&[0], 1 << 4));
}
