//! Replays on a device that records no sequences, so that every command is encoded each time.

use super::*;
use crate::command::replay::Replay;
use crate::command::Work;

fn replay_of(queue: &Ref<Queue>, commands: Vec<Command>) -> Arc<Replay> {
    let commands = commands.into_iter().map(Arc::new).collect();
    let replay = Arc::new(Replay::new(commands, usize::MAX, None));
    queue.prepare_replay(&replay);
    replay
}

fn replay(of: &Arc<Replay>) -> Command {
    Command::new(cl::CL_COMMAND_COMMAND_BUFFER_KHR, Work::Replay(of.clone()))
}

/// Bytes that come back to memory of the host are there before a later command takes it from there.
#[test]
fn host_memory_within_a_replay() {
    for reach in ALL {
        for flags in [0, OOO, PROFILING] {
            let (bench, queue) = set_up(reach, flags);
            let (a, b, c) = (bench.buffer(64), bench.buffer(64), bench.buffer(64));
            let mut host = vec![0u8; 64];
            let place = host.as_mut_ptr();
            // SAFETY: the vector lives until the queue has finished, and is not touched meanwhile.
            let (into, from) = unsafe {
                (
                    std::slice::from_raw_parts_mut(place, 64),
                    std::slice::from_raw_parts(place, 64),
                )
            };
            let copy = buffer::copy(&queue.target, &a, &b, 0, 0, 64).unwrap();
            let all = replay_of(
                &queue,
                vec![
                    fill(&queue, &a, 3),
                    copy,
                    read(&queue, &b, 0, into),
                    sync::barrier(),
                    write(&queue, &c, 0, from),
                    fill(&queue, &b, 8),
                ],
            );
            for round in 0..3 {
                let zero = sent(&queue, fill(&queue, &c, 0), &[]);
                let event = sent(&queue, replay(&all), &[&zero]);
                assert_eq!(event.wait(), 0, "{reach:?} {flags} {round}");
                assert_eq!(contents(&queue, &c), [3; 64], "{reach:?} {flags} {round}");
                assert_eq!(contents(&queue, &b), [8; 64]);
            }
            queue.finish().unwrap();
            assert_eq!(host, [3; 64]);
        }
    }
}

/// A replay that is pending does not begin, and fails as one command.
#[test]
fn pending_replays() {
    for flags in [0, OOO] {
        let (bench, queue) = set_up(Reach::Hidden, flags);
        let a = bench.filled(&[1; 16]);
        let all = replay_of(&queue, vec![fill(&queue, &a, 5), fill(&queue, &a, 6)]);
        for status in [-3, 0] {
            let gate = bench.user();
            let event = sent(&queue, replay(&all), &[&gate]);
            assert!(event.status() > 0);
            gate.set_user_status(status).unwrap();
            let (code, byte) = match status {
                0 => (0, 6),
                _ => (cl::CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, 1),
            };
            assert_eq!(event.wait(), code);
            assert_eq!(contents(&queue, &a), [byte; 16]);
        }
        // Nothing at all is done when what comes before it is.
        let last = sent(&queue, replay(&replay_of(&queue, Vec::new())), &[]);
        assert_eq!(last.wait(), 0);
    }
}
