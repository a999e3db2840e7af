//! Tests of the planner, the text and the shrinking, without a device.

mod recorded;

use crate::expect::{expected, initial};
use crate::generate::{generate, Scope};
use crate::parse;
use crate::plan::{Planner, Refusal};
use crate::program::{Program, ProgramAction, What, FACTOR};
use crate::shrink::{shrink, Runs};
use crate::simpler::{apply, cost, edits};
use crate::worker::Outcome;
use crate::world::Caps;

/// Memories and queues of the small programs below.
const HEAD: &str = "
    memory 0 plain 4096 device 0 views
    memory 1 buffer 4096 device 0 views 0..4096 1024..2048
    memory 2 copied 4096 device 0 views 0..4096
    memory 3 svm-fine 4096 device 0 views
    memory 4 svm-coarse 4096 device 0 views
    memory 5 use-host+0 4096 device 0 views 0..4096
    memory 6 system 4096 device 0 views
    memory 7 usm-host 4096 device 0 views
    memory 8 image+64 4096 device 0 views 0..4096
    memory 9 buffer-svm-fine+4096 4096 device 0 views 0..4096 1024..2048
    queue 0 in-order device 0
    queue 1 out-of-order device 0
    queue 2 in-order device 0
    queue 3 in-order device 0 late
";

fn program(actions: &str) -> Program {
    parse::program(&format!("{HEAD}{actions}")).expect("a program")
}

fn is_legal(name: &str, actions: &str) {
    let verdict = Planner::check(&program(actions)).map(|_| ());
    assert_eq!(verdict, Ok(()), "{name}");
}

fn refused(actions: &str) -> (usize, Refusal) {
    Planner::check(&program(actions)).expect_err("refused")
}

fn scope() -> Scope {
    Scope {
        caps: Caps {
            devices: 2,
            align: 256,
            coarse: true,
            fine: true,
            system: true,
            usm: [true; 3],
            images: true,
            gates: true,
            native: 3,
            beside: 1,
            doomed: true,
            replays: true,
            mutable: true,
            several: true,
            semaphores: true,
            children: true,
        },
        without: Vec::new(),
        with: Vec::new(),
    }
}

fn scope_with(names: &str) -> Scope {
    Scope {
        with: names.split(' ').map(str::to_owned).collect(),
        ..scope()
    }
}

fn programs(count: u64) -> impl Iterator<Item = Program> {
    (1..=count).map(|seed| generate(seed, &scope()))
}

/// Programs with all that is asked for by name.
fn all_programs(count: u64) -> impl Iterator<Item = Program> {
    let scope = scope_with("gates failures threads replays semaphores");
    programs(count).chain((1..=count).map(move |seed| generate(seed, &scope)))
}

/// Programs that drivers got wrong, and that are right.
#[test]
fn programs_with_known_faults_are_legal() {
    for (name, actions) in [
        (
            "a read into a mapped pointer, unmap, kernel",
            "0 q0 map m1/0@0 4096 write blocking
             1 q0 kernel m2/0@0 m2/0@0 words 1024 add 7 spins 1000
             2 q0 read m2/0@0 m1@0^0 4096
             3 q0 unmap 0
             4 q0 kernel m2/0@0 m1/0@0 words 1024 add 7 spins 0",
        ),
        (
            "a write from what a kernel writes, in order",
            "0 q0 kernel m3@0 m3@0 words 1024 add 7 spins 1000
             1 q0 write m1/0@0 m3@0 4096
             2 q0 read m1/0@0 m0@0 4096 blocking
             3 check m0@0 4096",
        ),
        (
            "the same out of order, with events",
            "0 q1 kernel m3@0 m3@0 words 1024 add 7 spins 1000
             1 q1 write m1/0@0 m3@0 4096 after 0
             2 q1 read m1/0@0 m0@0 4096 after 1 blocking",
        ),
        (
            "the same in two queues",
            "0 q0 kernel m3@0 m3@0 words 1024 add 7 spins 1000
             1 q2 write m1/0@0 m3@0 4096 after 0
             2 q2 read m1/0@0 m0@0 4096 blocking",
        ),
        (
            "a read into what a kernel reads",
            "0 q0 kernel m2/0@0 m2/0@0 words 1024 add 7 spins 1000
             1 q0 read m2/0@0 m3@0 4096
             2 q0 kernel m1/0@0 m3@0 words 1024 add 7 spins 0",
        ),
        (
            "a write from a mapped pointer that waits for the map",
            "0 q0 kernel m1/0@0 m1/0@0 words 1024 add 7 spins 1000
             1 q0 map m1/0@0 4096 read after 0
             2 q0 write m2/0@0 m1@0^1 4096 after 1
             3 q0 unmap 1 after 2
             4 q0 read m2/0@0 m0@0 4096 blocking",
        ),
        (
            "rows read into a mapped sub-buffer",
            "0 q0 map m1/1@1024 1024 write blocking
             1 q0 read m2/0@0 m1@1024^0 64x16:64:64
             2 q0 unmap 0
             3 q0 copy m1/0@0 m2/0@0 4096",
        ),
        (
            "memory in use, mapped, written from by another queue",
            "0 q0 kernel m5/0@0 m5/0@0 words 1024 add 7 spins 1000
             1 q0 map m5/0@0 4096 read
             2 q2 write m1/0@0 m5@0^1 4096 after 1
             3 q0 unmap 1 after 2",
        ),
        (
            "an image written from what a kernel writes",
            "0 q0 kernel m3@0 m3@0 words 1024 add 7 spins 1000
             1 q0 write m8/0@0 m3@0 64x64:64:64
             2 q0 read m8/0@0 m0@0 64x64:64:64 blocking",
        ),
        (
            "a memcpy into a mapped pointer",
            "0 q0 map m1/0@0 4096 write blocking
             1 q0 kernel m3@0 m3@0 words 1024 add 7 spins 1000
             2 q0 svm-memcpy m1@0^0 m3@0 4096
             3 q0 unmap 0
             4 q1 copy m1/0@0 m2/0@0 4096 after 3",
        ),
        (
            "memory of the system",
            "0 q0 kernel m6@0 m6@0 words 1024 add 7 spins 1000
             1 q0 write m1/0@0 m6@0 4096
             2 q0 read m2/0@0 m6@0 4096
             3 q0 kernel m1/0@0 m6@0 words 1024 add 7 spins 0",
        ),
        (
            "coarse memory, mapped for reading and for writing",
            "0 q0 kernel m4@0 m4@0 words 1024 add 7 spins 1000
             1 q0 svm-map m4@0 4096 read
             2 q0 write m1/0@0 m4@0^1 4096 after 1
             3 q0 unmap 1 after 2
             4 q0 svm-map m4@0 4096 write blocking
             5 store m4@0^4 4096 1
             6 q0 read m2/0@0 m4@0^4 4096 event
             7 q0 unmap 4 after 6
             8 q0 kernel m1/0@0 m4@0 words 1024 add 7 spins 0",
        ),
        (
            "blocking commands, and the host at once",
            "0 q0 kernel m3@0 m3@0 words 1024 add 7 spins 1000
             1 q0 svm-memcpy m6@0 m3@0 4096 blocking
             2 check m6@0 4096
             3 q0 usm-memcpy m7@0 m0@0 4096 blocking
             4 check m7@0 4096
             5 q0 write m9/0@0 m0@0 4096 blocking
             6 check m9@0 4096",
        ),
        (
            "a queue that is made behind a blocking write",
            "0 q0 kernel m2/0@0 m2/0@0 words 1024 add 7 spins 1000
             1 q0 write m1/0@0 m0@0 4096 blocking
             2 new-queue 3
             3 q3 read m1/0@0 m0@0 4096 blocking",
        ),
        (
            "a sub-buffer over shared virtual memory",
            "0 q0 fill m9/1@1024 1024 ab
             1 finish 0
             2 check m9@0 4096",
        ),
    ] {
        is_legal(name, actions);
    }
}

#[test]
fn races_are_seen() {
    let kernel = "0 q1 kernel m3@0 m3@0 words 1024 add 7 spins 0\n";
    // Each runs beside the kernel.
    for action in [
        "1 q1 write m1/0@0 m3@0 4096",
        "1 q0 write m1/0@0 m3@4092 4",
        "1 q0 svm-memcpy m3@64 m6@0 64",
        "1 q1 memfill m3@0 16 ab",
        "1 check m3@0 4096",
        "1 store m3@0 4 1",
        "1 q1 svm-map m3@0 64 read",
        "1 q1 free 3",
    ] {
        let verdict = refused(&format!("{kernel}{action}"));
        assert_eq!(verdict, (1, Refusal::Race(0)), "{action}");
    }
    // The host waits for one of two.
    let verdict = refused(&format!(
        "{kernel}1 q0 read m1/0@0 m0@0 64\n2 wait 0\n3 check m3@0 64\n4 check m0@0 64"
    ));
    assert_eq!(verdict, (4, Refusal::Race(1)));
    // An event does not order what comes before a marker that waits for something else.
    let verdict = refused(&format!(
        "{kernel}1 q1 fill m1/0@0 64 ab\n2 q1 marker after 1\n3 q0 write m2/0@0 m3@0 64 after 2"
    ));
    assert_eq!(verdict, (3, Refusal::Race(0)));
}

#[test]
fn order_comes_from_queues_events_barriers_and_the_host() {
    let kernel = "0 q1 kernel m3@0 m3@0 words 1024 add 7 spins 0\n";
    for actions in [
        "1 q1 barrier\n2 q1 write m1/0@0 m3@0 4096",
        "1 q1 marker\n2 q0 write m1/0@0 m3@0 4096 after 1",
        "1 finish 1\n2 q0 write m1/0@0 m3@0 4096",
        "1 wait 0\n2 store m3@0 4096 1",
        "1 q0 read m1/0@0 m0@0 64 after 0\n2 q0 read m1/0@0 m0@0 64 blocking\n3 check m3@0 4096",
        "1 gate 5\n2 q1 write m1/0@0 m0@0 64 after 0,1 blocking\n3 check m3@0 4096",
    ] {
        is_legal(actions, &format!("{kernel}{actions}"));
    }
}

#[test]
fn what_is_mapped_is_left_alone() {
    for map in [
        "0 q0 map m1/0@0 64 write blocking\n",
        "0 q0 map m1/1@1024 64 write blocking\n",
    ] {
        for action in [
            "1 q0 read m1/0@2048 m0@0 64",
            "1 q0 kernel m2/0@0 m1/0@2048 words 16 add 7 spins 0",
            "1 q2 fill m1/0@4032 64 ab",
        ] {
            assert_eq!(
                refused(&format!("{map}{action}")),
                (1, Refusal::Mapped),
                "{action}"
            );
            is_legal(action, &format!("{map}1 q0 unmap 0\n2 wait 1\n{action}"));
        }
    }
    // Not before the map is over, and not with a command of the pointer under way.
    let map = "0 q0 map m1/0@0 64 read\n";
    assert_eq!(
        refused(&format!("{map}1 check m1@0^0 64")),
        (1, Refusal::Race(0))
    );
    let write = format!("{map}1 q2 write m2/0@0 m1@0^0 64 after 0\n");
    assert_eq!(
        refused(&format!("{write}2 q0 unmap 0")),
        (2, Refusal::Race(1))
    );
    is_legal("in its turn", &format!("{write}2 q0 unmap 0 after 1"));
    // The host does not see what is not open to it.
    for action in [
        "0 check m4@0 64",
        "0 store m5@0 64 1",
        "0 q0 read m1/0@0 m4@0 64",
    ] {
        assert!(
            matches!(refused(action), (0, Refusal::Invalid(_))),
            "{action}"
        );
    }
}

#[test]
fn objects_are_shared_as_a_whole_between_queues_and_with_their_parts() {
    let fill = "0 q1 fill m1/0@0 64 ab\n";
    is_legal("other bytes", &format!("{fill}1 q1 fill m1/0@64 64 ab"));
    for action in ["1 q0 fill m1/0@64 64 ab", "1 q1 fill m1/1@1024 64 ab"] {
        assert_eq!(
            refused(&format!("{fill}{action}")),
            (1, Refusal::Race(0)),
            "{action}"
        );
    }
    let kernel = "0 q1 kernel m3@0 m3@0 words 16 add 7 spins 0\n";
    is_legal(
        "other bytes",
        &format!("{kernel}1 q0 write m1/0@0 m3@64 64"),
    );
    let kernel = "0 q1 kernel m4@0 m4@0 words 16 add 7 spins 0\n";
    let verdict = refused(&format!("{kernel}1 q0 memfill m4@64 64 ab"));
    assert_eq!(verdict, (1, Refusal::Race(0)));
}

#[test]
fn the_model_does_one_action_after_the_other() {
    let program = program(
        "0 q0 fill m1/0@0 8 01000000
         1 q0 kernel m1/0@4 m1/0@0 words 1 add 7 spins 0
         2 q0 map m1/0@4092 4 invalidate
         3 q0 unmap 2
         4 q0 read m1/0@0 m0@8 8 blocking
         5 check m0@8 16",
    );
    let expected = expected(&program);
    let check = expected.checks[5].as_ref().expect("what it sees");
    assert_eq!(check.bytes[..4], 1u32.to_le_bytes());
    assert_eq!(check.bytes[4..8], FACTOR.wrapping_add(7).to_le_bytes());
    assert_eq!(check.bytes[8..], initial(0, 4096)[16..24]);
    assert_eq!(check.differs(&check.bytes), None);
    let mut other = check.bytes.clone();
    other[5] ^= 1;
    let found = check.differs(&other).expect("a difference");
    assert_eq!((found.at, found.last, found.count), (5, 5, 1));
    assert_eq!(expected.last[1].known[4088..], [1, 1, 1, 1, 0, 0, 0, 0]);
}

#[test]
fn generated_programs_are_legal_and_can_be_printed_and_read() {
    let mut waits = 0;
    for program in all_programs(400) {
        assert!(Planner::check(&program).is_ok(), "{program}");
        let text = program.to_string();
        assert_eq!(parse::program(&text).as_ref(), Ok(&program), "{text}");
        // Without what they wait for many are not legal.
        let mut bare = program.clone();
        bare.actions
            .iter_mut()
            .for_each(|action| action.waits.clear());
        waits += usize::from(matches!(Planner::check(&bare), Err((_, Refusal::Race(_)))));
    }
    assert!(waits > 100, "{waits}");
}

/// Returns the state of a program's commands before the gates are opened: promised, stuck, or
/// neither.
fn promises_of(actions: &str) -> String {
    promises_in(actions, true)
}

fn promises_in(actions: &str, strict: bool) -> String {
    let program = Program {
        strict,
        ..program(actions)
    };
    let planner = Planner::check(&program).expect("a legal program");
    let promises = planner.promises();
    let say = |index: usize| match (promises.promised(index), promises.stuck(index)) {
        (true, false) => 'p',
        (false, true) => 's',
        (false, false) => '-',
        (true, true) => panic!("action {index} is promised and stuck"),
    };
    (0..planner.program().actions.len()).map(say).collect()
}

#[test]
fn closed_gates_say_what_has_happened() {
    let fill = |index: usize, queue: usize| format!("{index} q{queue} fill m{queue}/0@0 4 ab");
    let (before, after, beside) = (fill(0, 2), fill(2, 2), fill(3, 1));
    for (gate, all) in [
        ("gate-kernel", "pssp"),
        ("gate-native", "pssp"),
        ("gate-kernel-alone", "pss-"),
    ] {
        let text = format!("{before}\n1 q2 {gate}\n{after}\n{beside}");
        assert_eq!(promises_of(&text), all, "{gate}");
        assert_eq!(promises_of(&format!("{text}\n4 open 1")), "ppppp", "{gate}");
    }
    // One that is alone on its device, but does not begin.
    let text = format!("0 hold\n1 q2 gate-kernel-alone after 0\n{after}\n{beside}");
    assert_eq!(promises_of(&text), "sssp");
    // Out of order: events, markers and barriers alone.
    let text = "0 q1 gate-kernel\n1 q1 fill m1/0@0 4 ab\n2 q1 fill m2/0@0 4 ab after 0\n3 q1 marker\n4 q1 marker after 1
         5 q1 barrier after 1\n6 q1 fill m2/0@8 4 ab\n7 q1 barrier\n8 q1 fill m2/0@16 4 ab";
    assert_eq!(promises_of(text), "spsspppss");
    let text = "0 q1 gate-kernel\n1 q1 fill m1/0@0 4 ab\n2 q0 fill m1/0@0 4 ab after 1\n3 q2 fill m2/0@8 4 ab";
    assert_eq!(
        (promises_of(text), promises_in(text, false)),
        ("sppp".into(), "s--p".into())
    );
    // What fails may be over before its queue gets there, or not.
    let text = "0 refuse 5\n1 q0 gate-kernel\n2 q0 fill m1/0@0 4 ab after 0\n3 q2 fill m1/0@0 4 ab after 0";
    assert_eq!(promises_of(text), "ps-p");
}

#[test]
fn the_host_waits_for_no_closed_gate() {
    let kernel = "0 q0 gate-kernel\n1 q1 fill m1/0@0 4 ab\n";
    let alone = "0 q0 gate-kernel-alone\n1 q1 fill m1/0@0 4 ab\n";
    let other = "2 q1 read m2/0@0 m0@0 4 blocking";
    for last in ["2 finish 0", "2 wait 0", "2 q0 read m2/0@0 m0@0 4 blocking"] {
        for gate in [kernel, alone, "0 hold\n1 q0 marker after 0\n"] {
            assert_eq!(
                refused(&format!("{gate}{last}")),
                (2, Refusal::Closed),
                "{last}"
            );
            let gates = match gate.contains("hold") {
                true => "2 open 0\n3 finish 0",
                false => "2 open 0\n3 wait 0",
            };
            is_legal(last, &format!("{gate}{gates}"));
        }
    }
    for last in ["2 finish 1", "2 wait 1", other] {
        is_legal(last, &format!("{kernel}{last}"));
        assert_eq!(
            refused(&format!("{alone}{last}")),
            (2, Refusal::Closed),
            "{last}"
        );
    }
    // A device has one gate at a time, and each is opened once.
    assert!(matches!(
        refused(&format!("{kernel}2 q1 gate-native")),
        (2, Refusal::Invalid(_))
    ));
    // An image goes with the last command that used it, which may be behind a gate that the kernel is behind too.
    let held = "0 hold\n1 q0 fill m8/0@0 64 abcdabcd after 0\n2 q0 gate-kernel-alone after 0\n";
    assert_eq!(refused(&format!("{held}3 release 8")), (3, Refusal::Closed));
    let opened = format!("{held}3 open 0\n4 open 2\n5 release 8");
    is_legal("a release", &opened);
    assert!(matches!(
        refused("0 hold\n1 open 0\n2 open 0"),
        (2, Refusal::Invalid(_))
    ));
}

#[test]
fn gates_meet_all_kinds_of_actions() {
    let scope = scope_with("gates failures threads replays semaphores");
    let (mut promised, mut stuck, mut neither) = (0, 0, 0);
    for seed in 1..=400 {
        let program = generate(seed, &scope);
        let planner = Planner::check(&program).expect("a legal program");
        let promises = planner.promises();
        for index in 0..program.actions.len() {
            match (promises.promised(index), promises.stuck(index)) {
                (true, false) => promised += 1,
                (false, true) => stuck += 1,
                (false, false) => neither += 1,
                (true, true) => panic!("{program}action {index} is promised and stuck"),
            }
        }
    }
    assert!(
        promised > 1000 && stuck > 300 && neither > 30,
        "{promised} {stuck} {neither}"
    );
}

#[test]
fn a_seed_makes_one_program() {
    assert_eq!(generate(7, &scope()), generate(7, &scope()));
    assert_ne!(generate(7, &scope()), generate(8, &scope()));
}

#[test]
fn edits_leave_programs_legal_and_make_them_simpler() {
    for program in all_programs(40) {
        for edit in edits(&program) {
            let Some(next) = apply(&program, &edit) else {
                continue;
            };
            let verdict = Planner::check(&next).map(|_| ());
            assert_eq!(verdict, Ok(()), "{edit:?} of\n{program}gives\n{next}");
            assert!(cost(&next) < cost(&program));
        }
    }
}

/// A driver that reads the source of a write before a kernel of the same program has written it.
struct Fake;

impl Runs for Fake {
    fn run(&mut self, program: &Program) -> Result<Outcome, String> {
        assert!(Planner::check(program).is_ok());
        let writes = |action: &ProgramAction, of: usize| match &action.what {
            What::Kernel { dst, .. } => {
                matches!(dst, crate::program::Operand::Pointer(place) if place.memory == of)
            }
            _ => false,
        };
        let reads_stale = |(index, action): (usize, &ProgramAction)| match &action.what {
            What::Write(_, place, _) => {
                let before = &program.actions[..index];
                before.iter().any(|one| writes(one, place.memory))
            }
            _ => false,
        };
        Ok(match program.actions.iter().enumerate().any(reads_stale) {
            true => Outcome::Differs(String::new()),
            false => Outcome::Same,
        })
    }
}

#[test]
fn shrinking_leaves_what_the_fault_needs() -> Result<(), String> {
    let mut found = 0;
    for program in programs(1000) {
        let first = Fake.run(&program)?;
        if first == Outcome::Same {
            continue;
        }
        found += 1;
        let (small, shown) = shrink(&mut Fake, program, first, 1, 1000)?;
        assert_eq!(Fake.run(&small)?, shown);
        let commands = small.actions.len();
        assert!(commands <= 4 && small.queues.len() == 1, "{small}");
        assert!(small.memories.len() <= 3, "{small}");
    }
    assert!(found > 5, "{found}");
    Ok(())
}

/// Bytes of the wrong place are never the right ones.
#[test]
fn patterns_do_not_repeat() {
    let mut seen = std::collections::HashSet::new();
    for memory in 0..8 {
        for eight in initial(memory, 4096).chunks(8) {
            assert!(seen.insert(eight.to_vec()), "memory {memory}");
        }
    }
}
