//! Launches: the dispatches that they become, and the implicit values of the kernel.

use super::*;
use crate::command::kernel::LaunchPlan;
use crate::object::launch::Rules;

fn interface(implicit: &[(Implicit, u32)], push_size: u32) -> KernelInterface {
    KernelInterface {
        name: "k".into(),
        implicit: implicit.to_vec(),
        push_size,
        ..Default::default()
    }
}

fn launch(bench: &Bench, interface: &KernelInterface, args: &[u8]) -> Box<KernelLaunch> {
    let code = crate::backend::MachineCode::Spirv(&[]);
    let code = bench.fake.load(code, interface).unwrap();
    let mut launch = KernelLaunch::new(code, Rules::default(), false);
    launch.args[..args.len()].copy_from_slice(args);
    launch
}

fn over(queue: &Ref<Queue>, launch: Box<KernelLaunch>, range: &NdRange<'_>) -> Command {
    let plan = nd_range(&queue.target, launch, range, cl::CL_COMMAND_NDRANGE_KERNEL);
    plan.and_then(LaunchPlan::make_pipelines).unwrap()
}

fn line(global: &[usize; 1]) -> NdRange<'_> {
    NdRange {
        dims: 1,
        offset: None,
        global: Some(global),
        local: None,
    }
}

#[test]
fn launches_are_cut_into_dispatches_that_know_their_place() {
    let (bench, queue) = set_up(Reach::Cached, 0);
    let implicit = [
        (Implicit::GroupOffset, 0),
        (Implicit::GlobalBase, 12),
        (Implicit::WorkDim, 24),
    ];
    let face = interface(&implicit, 32);
    let mut args = vec![0; 32];
    args[28..].copy_from_slice(&77u32.to_le_bytes());
    let range = NdRange {
        dims: 2,
        offset: Some(&[100, 200]),
        global: Some(&[20, 9]),
        local: Some(&[8, 4]),
    };
    enqueue(&queue, over(&queue, launch(&bench, &face, &args), &range));
    queue.finish().unwrap();
    let expect = |local: [u32; 3], groups: [u32; 3], first: [u32; 3]| {
        let words = [
            first[0],
            first[1],
            0,
            100 + first[0] * 8,
            200 + first[1] * 4,
            0,
            2,
            77,
        ];
        Launched {
            local,
            groups,
            push: words.iter().flat_map(|w| w.to_le_bytes()).collect(),
        }
    };
    assert_eq!(
        bench.fake.launched(),
        [
            expect([8, 4, 1], [2, 2, 1], [0, 0, 0]),
            expect([4, 4, 1], [1, 2, 1], [2, 0, 0]),
            expect([8, 1, 1], [2, 1, 1], [0, 2, 0]),
            expect([4, 1, 1], [1, 1, 1], [2, 2, 0]),
        ]
    );
    // Nothing to do is done, with an event.
    let nothing = over(&queue, launch(&bench, &face, &[]), &line(&[0]));
    let event = sent(&queue, nothing, &[]);
    assert_eq!(event.wait(), 0);
    assert_eq!(event.command_type, cl::CL_COMMAND_NDRANGE_KERNEL);
    assert!(bench.fake.launched().is_empty());
}

#[test]
fn arguments_that_do_not_fit_lie_in_a_buffer() {
    let (bench, queue) = set_up(Reach::Hidden, 0);
    let mut face = interface(&[(Implicit::ArgBuffer, 0)], 8);
    face.args_in_buffer = true;
    face.arg_buffer_size = 300;
    let args: Vec<u8> = (0..300u32).map(|n| n as u8).collect();
    let command = over(&queue, launch(&bench, &face, &args), &line(&[4]));
    enqueue(&queue, command);
    queue.finish().unwrap();
    let push = bench.fake.launched().remove(0).push;
    let address = u64::from_le_bytes(push.try_into().unwrap());
    // SAFETY: the argument pool of the queue still has it.
    let passed = unsafe { std::slice::from_raw_parts(address as *const u8, 300) };
    assert_eq!(passed, args);
}

/// A kernel of another queue that writes to memory of the host, a barrier that waits for it, a write of what it wrote.
#[test]
fn writes_after_a_barrier_read_what_it_waited_for() {
    for flags in [0, OOO] {
        let bench = Bench::new(Reach::Hidden);
        let (one, two) = (bench.queue(0), bench.queue(flags));
        let mem = bench.filled(&[1; 64]);
        let mut source = vec![2u8; 64];
        bench.fake.stop();
        let mut kernel = launch(&bench, &interface(&[], 0), &[]);
        kernel.host_memory = true;
        let written = sent(&one, over(&one, kernel, &line(&[8])), &[]);
        sent(&two, sync::barrier(), &[&written]);
        let event = sent(&two, write(&two, &mem, 0, &source), &[]);
        // In place of the kernel.
        source.fill(9);
        bench.fake.start();
        assert_eq!(event.wait(), 0);
        assert_eq!(contents(&two, &mem), [9; 64]);
    }
}
