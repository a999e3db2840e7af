//! Times of the calls that a stream is made of. Run by hand.

use super::*;

/// Prints costs a call; run by hand with `--ignored --nocapture`, without other load.
#[test]
#[ignore = "a measurement"]
fn measure() {
    let Ok(instance) = Instance::new(false) else {
        return;
    };
    let Some(adapter) = adapter::enumerate(&Arc::new(instance)).into_iter().next() else {
        return;
    };
    let began = Instant::now();
    let device = VulkanDevice::new(Arc::new(adapter));
    let mut stream = device.create_stream(StreamDesc::default()).expect("stream");
    println!("{}: device in {:?}", device.caps().name, began.elapsed());
    let kernel = add_kernel(&device);
    let memory: Vec<_> = (0..3)
        .map(|_| device.allocate(4096, Placement::Device).expect("allocate"))
        .collect();
    let constants = push(
        memory[0].address(),
        memory[1].address(),
        memory[2].address(),
        0,
    );
    let per = |what: &str, count: u32, work: &mut dyn FnMut()| {
        work();
        let began = Instant::now();
        work();
        println!(
            "{what}: {:.3} us",
            began.elapsed().as_secs_f64() * 1e6 / f64::from(count)
        );
    };
    for (name, write) in [("without conflicts", false), ("with conflicts", true)] {
        let uses = [
            used(&memory[0], false),
            used(&memory[1], false),
            used(&memory[2], write),
        ];
        let mut record = 0.0;
        per(&format!("4000 dispatches {name}, each"), 4000, &mut || {
            let began = Instant::now();
            for _ in 0..4000 {
                let op = Op::Dispatch {
                    pipeline: &kernel,
                    groups: [1, 1, 1],
                    push: &constants,
                    uses: &uses,
                    bindings: &[],
                    touches_anything: false,
                };
                stream
                    .record(op, OrderRule::InOrder, false)
                    .expect("record");
            }
            record = began.elapsed().as_secs_f64() * 1e6 / 4000.0;
            run(&mut stream);
        });
        println!("  of which recording: {record:.3} us");
    }
    let uses = [used(&memory[2], true)];
    let dispatch = || Op::Dispatch {
        pipeline: &kernel,
        groups: [1, 1, 1],
        push: &constants,
        uses: &uses,
        bindings: &[],
        touches_anything: false,
    };
    per("dispatch, submit, wait", 2000, &mut || {
        for _ in 0..2000 {
            (stream.record(dispatch(), OrderRule::InOrder, false)).expect("record");
            run(&mut stream);
        }
    });
    let mut submitting = 0.0;
    per("dispatch, submit", 2000, &mut || {
        let began = Instant::now();
        for _ in 0..2000 {
            (stream.record(dispatch(), OrderRule::InOrder, false)).expect("record");
            stream.submit(false).expect("submit");
        }
        submitting = began.elapsed().as_secs_f64() * 1e6 / 2000.0;
        run(&mut stream);
        stream
            .timeline()
            .wait(stream.open_value() - 1, None)
            .expect("wait");
    });
    println!("  of which calling: {submitting:.3} us");
    for placement in [Placement::Device, Placement::HostWrite] {
        per(
            &format!("allocate and free 4 KiB, {placement:?}"),
            2000,
            &mut || {
                for _ in 0..2000 {
                    device.allocate(4096, placement).expect("allocate");
                }
            },
        );
    }
    let big: Vec<_> = (0..2)
        .map(|_| {
            device
                .allocate(256 << 20, Placement::Device)
                .expect("allocate")
        })
        .collect();
    let mut bandwidth = |name: &str, factor: f64, op: &dyn Fn() -> Op<'static>| {
        let mut best = f64::MAX;
        for _ in 0..5 {
            let began = Instant::now();
            stream
                .record(op(), OrderRule::InOrder, false)
                .expect("record");
            run(&mut stream);
            best = best.min(began.elapsed().as_secs_f64());
        }
        println!(
            "{name}: {:.1} GB/s",
            factor * f64::from(256 << 20) / best / 1e9
        );
    };
    let slices: &'static [Slice; 2] = Box::leak(Box::new([all(&big[0]), all(&big[1])]));
    bandwidth("copy (read + written)", 2.0, &|| Op::Copy {
        src: &slices[0],
        dst: &slices[1],
        region: BufferCopy::linear(0, 0, 256 << 20),
    });
    bandwidth("fill, 1 byte", 1.0, &|| Op::Fill {
        dst: &slices[0],
        pattern: &[3],
    });
    bandwidth("fill, 16 bytes", 1.0, &|| Op::Fill {
        dst: &slices[0],
        pattern: &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16],
    });
    // How late the end of a dispatch is seen in front of long work, by event and by semaphore.
    for observed in [false, true] {
        let mut seen: Vec<[f64; 2]> = (0..21)
            .map(|_| {
                (stream.record(dispatch(), OrderRule::InOrder, false)).expect("record");
                let value = stream.open_value();
                stream.end_command(&mut || observed);
                for _ in 0..if observed { 40 } else { 0 } {
                    let op = Op::Copy {
                        src: &slices[0],
                        dst: &slices[1],
                        region: BufferCopy::linear(0, 0, 256 << 20),
                    };
                    (stream.record(op, OrderRule::InOrder, false)).expect("record");
                }
                let began = Instant::now();
                let last = stream.submit(false).expect("submit");
                let submitted = began.elapsed().as_secs_f64() * 1e6;
                stream.timeline().wait(value, None).expect("wait");
                let ended = began.elapsed().as_secs_f64() * 1e6;
                stream.timeline().wait(last, None).expect("wait");
                [submitted, ended]
            })
            .collect();
        seen.sort_by(|a, b| a[1].total_cmp(&b[1]));
        let [submitted, ended] = seen[seen.len() / 2];
        let what = if observed {
            "event, before copies"
        } else {
            "semaphore"
        };
        println!(
            "end of a dispatch by {what}: {ended:.1} us, of which submitting {submitted:.1} us"
        );
    }
}
