//! The contract of a queue as figures: events, commands that wait for the host, transfers beside kernels.

use super::work::{expect, uncounted, Figure, Ready, Rig, SOURCE, UNCOUNTED};
use pumice_tests::client::{Buffer, Context, Event, Kernel, Queue, Result};
use std::time::{Duration, Instant};

/// Each launch has an event, which is released when the next one has its own.
pub fn launches_with_events(rig: &Rig) -> Result<Option<Ready>> {
    let (context, queue) = rig.open()?;
    let program = context.program(SOURCE, "")?;
    let buffer = context.buffer(4096)?;
    let kernel = program.kernel("nothing")?;
    kernel.arg_buffer(0, &buffer)?;
    Ok(Some(Ready {
        run: Box::new(move |n| {
            let _keep = (&context, &buffer);
            for _ in 0..n {
                let mut _last = None;
                for _ in 0..1000 {
                    _last = Some(queue.launch_after(&kernel, &[1], &[1], &[])?);
                }
                queue.finish()?;
            }
            Ok(())
        }),
        figure: Figure::Micros(1000.0),
    }))
}

/// A kernel of one group that takes so many seconds or more: its number of rounds.
fn rounds_for(queue: &Queue, kernel: &Kernel, seconds: f64) -> Result<u32> {
    let mut rounds = 16u32;
    let time = |rounds: u32| -> Result<f64> {
        kernel.arg(2, rounds)?;
        let start = Instant::now();
        queue.launch(kernel, &[64], &[64])?;
        queue.finish()?;
        Ok(start.elapsed().as_secs_f64())
    };
    // The first launch makes the kernel's code.
    time(rounds)?;
    loop {
        let took = time(rounds)?;
        if took > seconds || rounds > 1 << 26 {
            return Ok(rounds);
        }
        rounds *= if took < seconds / 8.0 { 4 } else { 2 };
    }
}

/// How long a thread is awake before it submits: a processor that has slept for 20 ms takes 40 us
/// longer for that on an H200, whatever the driver.
const AWAKE: Duration = Duration::from_micros(300);

/// From the flush of a short kernel and a long one to the return of a wait for the short one.
pub fn event_before_a_long_kernel(rig: &Rig) -> Result<Option<Ready>> {
    let (context, queue) = rig.open()?;
    let program = context.program(SOURCE, "")?;
    let (few, many) = (context.buffer(4096)?, context.buffer(4096)?);
    queue.write(&few, &[0i32; 1024])?;
    queue.write(&many, &[0i32; 1024])?;
    let (short, long) = (program.kernel("bump")?, program.kernel("grind")?);
    short.arg_buffer(0, &few)?;
    long.arg_buffer(0, &many)?.arg(1, 1024u32)?;
    rounds_for(&queue, &long, 0.02)?;
    Ok(Some(Ready {
        run: Box::new(move |n| {
            let _keep = (&context, &few, &many);
            for _ in 0..n {
                let event = uncounted(|| -> Result<Event> {
                    let event = queue.launch_after(&short, &[64], &[64], &[])?;
                    queue.launch(&long, &[64], &[64])?;
                    Ok(event)
                })?;
                queue.flush()?;
                event.wait()?;
                uncounted(|| -> Result<()> {
                    queue.finish()?;
                    let begun = Instant::now();
                    while begun.elapsed() < AWAKE {
                        std::hint::spin_loop();
                    }
                    Ok(())
                })?;
            }
            Ok(())
        }),
        figure: Figure::Micros(1.0),
    }))
}

/// So many launches of an out-of-order queue wait for one user event.
pub fn held(rig: &Rig, count: usize) -> Result<Option<Ready>> {
    let context = rig.device.context()?;
    let queue = context.out_of_order()?;
    let program = context.program(SOURCE, "")?;
    let buffer = context.buffer(4096)?;
    let kernel = program.kernel("nothing")?;
    kernel.arg_buffer(0, &buffer)?;
    Ok(Some(Ready {
        run: Box::new(move |n| {
            let _keep = &buffer;
            for _ in 0..n {
                let gate = context.user_event()?;
                for _ in 0..count {
                    queue.launch_after(&kernel, &[1], &[1], &[&gate])?;
                }
                gate.complete()?;
                queue.finish()?;
            }
            Ok(())
        }),
        figure: Figure::Micros(count as f64),
    }))
}

/// Bytes of a part.
const PART: usize = 16 << 20;
/// The first elements of a part, which the kernel works on: few, as a processor that reads what
/// another one wrote takes longer than the kernels alone do, and how much depends on the machine.
const WORKED: usize = 1 << 12;
/// Parts that go through the device, and buffers that they take turns in.
const PARTS: usize = 24;
const BUFFERS: usize = 3;

/// Queues, kernels and memory to send parts through.
struct Pipeline {
    _context: Context,
    queues: [Queue; 3],
    buffers: Vec<(Buffer, Kernel)>,
    input: Vec<u32>,
    output: Vec<Vec<u32>>,
}

impl Pipeline {
    fn new(rig: &Rig) -> Result<Self> {
        let context = rig.device.context()?;
        let program = context.program(SOURCE, "")?;
        let queues = [context.queue()?, context.queue()?, context.queue()?];
        let mut buffers = Vec::new();
        for _ in 0..BUFFERS {
            let (buffer, kernel) = (context.buffer(PART)?, program.kernel("grind")?);
            kernel.arg_buffer(0, &buffer)?.arg(1, WORKED as u32)?;
            buffers.push((buffer, kernel));
        }
        Ok(Self {
            _context: context,
            queues,
            buffers,
            input: (0..PART as u32 / 4).collect(),
            output: vec![vec![0; PART / 4]; BUFFERS],
        })
    }

    /// How long the kernels alone take, one after the other: all work on one buffer, as a driver may run kernels of several
    /// at the same time.
    fn kernels(&self) -> Result<f64> {
        let start = Instant::now();
        let (_, kernel) = &self.buffers[0];
        for _ in 0..PARTS {
            self.queues[1].launch(kernel, &[64], &[64])?;
        }
        self.queues[1].finish()?;
        Ok(start.elapsed().as_secs_f64())
    }

    /// How long the transfers alone take, one after the other.
    fn transfers(&mut self) -> Result<f64> {
        let start = Instant::now();
        for part in 0..PARTS {
            let at = part % BUFFERS;
            self.queues[0].write(&self.buffers[at].0, &self.input)?;
            self.queues[0].read(&self.buffers[at].0, &mut self.output[at])?;
        }
        Ok(start.elapsed().as_secs_f64())
    }

    /// Sends all parts through: each is written, worked on and read in queues of their own.
    fn run(&mut self) -> Result<()> {
        let [up, work, down] = &self.queues;
        let mut read: Vec<Option<Event>> = (0..BUFFERS).map(|_| None).collect();
        for part in 0..PARTS {
            let at = part % BUFFERS;
            let (buffer, kernel) = &self.buffers[at];
            let free: Vec<&Event> = read[at].iter().collect();
            // SAFETY: input and output live until all queues have finished, below, and the output of a part is read after the
            // one before it.
            unsafe {
                let written = up.start_write(buffer, &self.input, &free)?;
                up.flush()?;
                let done = work.launch_after(kernel, &[64], &[64], &[&written])?;
                work.flush()?;
                read[at] = Some(down.start_read(buffer, &mut self.output[at], &[&done])?);
                down.flush()?;
            }
        }
        [up, work, down].into_iter().try_for_each(Queue::finish)
    }
}

/// How much of the time that kernels alone take, which is more than that of the transfers, goes by when parts are written,
/// worked on and read: 1 where all transfers are hidden.
pub fn double_buffering(rig: &Rig) -> Result<Option<Ready>> {
    let mut pipeline = Pipeline::new(rig)?;
    pipeline.transfers()?;
    let transfers = pipeline.transfers()?;
    // Kernels take twice as long as transfers.
    let (_, kernel) = &pipeline.buffers[0];
    let seconds = 2.0 * transfers / PARTS as f64;
    let rounds = rounds_for(&pipeline.queues[1], kernel, seconds)?;
    for (_, kernel) in &pipeline.buffers {
        kernel.arg(2, rounds)?;
    }
    pipeline.run()?;
    let grind = |at: usize| {
        let times = match at / 64 % 64 {
            _ if at >= WORKED => 0,
            0 => rounds,
            _ => 1,
        };
        (0..times).fold(at as u32, |value, _| {
            value.wrapping_mul(1_664_525).wrapping_add(1_013_904_223)
        })
    };
    for output in &pipeline.output {
        let mut samples = output.iter().enumerate().step_by(4001);
        expect(samples.all(|(at, &value)| value == grind(at)), "a part")?;
    }
    Ok(Some(Ready {
        run: Box::new(move |n| {
            let mut left_out = 0.0;
            for _ in 0..n {
                // In turns, as the clock of a processor changes with what it did before.
                let ideal = pipeline.kernels()?;
                let start = Instant::now();
                pipeline.run()?;
                let took = start.elapsed().as_secs_f64();
                // An operation counts as the times that the kernels alone take, in place of seconds.
                left_out += ideal + took - took / ideal;
            }
            UNCOUNTED.set(left_out);
            Ok(())
        }),
        figure: Figure::Giga(1e9, "of-ideal"),
    }))
}
