//! The costs of pending commands: random shapes, each with some commands and with four times as many.
//!
//! A shape is a unit of a few commands that is repeated, each unit with events of those before it, behind gates that are
//! opened when all is enqueued. Every operation on pending commands costs the same however many there are, so four times as
//! many may take about four times as long, and a bounded number of bytes each. A shape for which that does not hold, twice, is
//! a finding. Each runs in a process of its own.

use crate::world::{Which, World};
use pumice_tests::process::resident;
use pumice_tests::rng::Rng;
use pumice_tests::sys::*;
use pumice_tests::{call, create, finished, ok};
use std::fmt::{Display, Formatter};
use std::process::Command as Process;
use std::ptr::{null, null_mut};
use std::time::{Duration, Instant};

/// The argument that makes the process one that runs a shape.
pub const ARGUMENT: &str = "--cost-child";

/// Units of the smaller run. The larger one has four times as many.
const UNITS: usize = 1500;
/// Times below are not judged.
const SHORT: Duration = Duration::from_millis(500);
/// Four times as many may take so many times as long: 4 is linear, 16 is a square.
const RATIO: f64 = 9.0;
/// Bytes that a pending command may take.
const BYTES: i64 = 16 << 10;

/// The kind of a command.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Kernel,
    Marker,
    Barrier,
    Fill,
    Write,
}

/// The wait list of a command.
#[derive(Debug, Clone, Copy)]
enum Wait {
    /// The gate of all.
    Gate,
    /// A gate of its own.
    Own,
    /// The last command of the unit so many before.
    Before(usize),
    /// The last commands of so many units before.
    Several(usize),
}

/// A command of a unit.
#[derive(Debug, Clone)]
struct Part {
    kind: Kind,
    /// Which queue; None: they take turns.
    queue: Option<usize>,
    waits: Vec<Wait>,
}

/// A shape.
#[derive(Debug, Clone)]
struct Shape {
    /// Queues: in order?
    queues: Vec<bool>,
    unit: Vec<Part>,
    /// The first command of all waits for the gate.
    first: bool,
    /// A last command waits for all events, so many at most.
    last: bool,
    /// Gates are opened in reverse.
    reverse: bool,
}

impl Display for Shape {
    fn fmt(&self, out: &mut Formatter<'_>) -> std::fmt::Result {
        for (index, in_order) in self.queues.iter().enumerate() {
            let order = if *in_order {
                "in-order"
            } else {
                "out-of-order"
            };
            writeln!(out, "    queue {index} {order}")?;
        }
        let (first, last, reverse) = (self.first, self.last, self.reverse);
        writeln!(out, "    first {first} last {last} reverse {reverse}")?;
        let mut unit = self.unit.iter();
        unit.try_for_each(|part| writeln!(out, "    {part:?}"))
    }
}

fn shape(seed: u64) -> Shape {
    let mut rng = Rng::new(seed, 0);
    let queues: Vec<bool> = (0..1 + rng.below(3)).map(|_| rng.percent(40)).collect();
    let part = |rng: &mut Rng| {
        let kind = match rng.below(10) {
            0..=4 => Kind::Kernel,
            5 => Kind::Marker,
            6 => Kind::Barrier,
            7 => Kind::Fill,
            _ => Kind::Write,
        };
        let waits = (0..rng.below(3)).map(|_| match rng.below(8) {
            0..=1 => Wait::Gate,
            2..=3 => Wait::Own,
            4 => Wait::Several(8),
            5 => Wait::Before(1 + rng.below(64)),
            _ => Wait::Before(1),
        });
        let waits = waits.collect();
        let queue = (!rng.percent(30)).then(|| rng.below(queues.len()));
        Part { kind, queue, waits }
    };
    Shape {
        unit: (0..1 + rng.below(2)).map(|_| part(&mut rng)).collect(),
        first: rng.percent(60),
        last: rng.percent(25),
        reverse: rng.percent(50),
        queues,
    }
}

/// Queues and what commands work on.
struct Ground<'a> {
    world: &'a World,
    queues: Vec<cl_command_queue>,
    kernel: cl_kernel,
    buffer: cl_mem,
    bytes: [u8; 64],
}

/// The cost of a run.
struct Cost {
    time: Duration,
    commands: usize,
    bytes: i64,
}

impl Ground<'_> {
    fn enqueue(&self, kind: Kind, queue: cl_command_queue, list: &[cl_event]) -> cl_event {
        let (count, mut event) = (list.len() as cl_uint, null_mut());
        let list = if list.is_empty() {
            null()
        } else {
            list.as_ptr()
        };
        let bytes = self.bytes.as_ptr().cast();
        let (buffer, to) = (self.buffer, &mut event);
        let code = match kind {
            Kind::Kernel => call!(clEnqueueNDRangeKernel(
                queue,
                self.kernel,
                1,
                null(),
                &1,
                null(),
                count,
                list,
                to
            )),
            Kind::Marker => call!(clEnqueueMarkerWithWaitList(queue, count, list, to)),
            Kind::Barrier => call!(clEnqueueBarrierWithWaitList(queue, count, list, to)),
            Kind::Fill => call!(clEnqueueFillBuffer(
                queue, buffer, bytes, 4, 0, 64, count, list, to
            )),
            Kind::Write => call!(clEnqueueWriteBuffer(
                queue, buffer, CL_FALSE, 0, 64, bytes, count, list, to
            )),
        };
        assert_eq!(code, 0, "{kind:?}");
        event
    }

    fn run(&self, shape: &Shape, units: usize) -> Cost {
        let gate = create!(clCreateUserEvent(self.world.context));
        let (mut gates, mut last, mut all) = (vec![gate], Vec::new(), Vec::new());
        let before = resident();
        let begin = Instant::now();
        for unit in 0..units {
            for (at, part) in shape.unit.iter().enumerate() {
                let mut list = Vec::new();
                if shape.first && unit == 0 && at == 0 {
                    list.push(gate);
                }
                for wait in &part.waits {
                    match *wait {
                        Wait::Gate => list.push(gate),
                        Wait::Own => {
                            gates.push(create!(clCreateUserEvent(self.world.context)));
                            list.extend(gates.last());
                        }
                        Wait::Before(back) => {
                            let of = last.len().checked_sub(back).and_then(|at| last.get(at));
                            list.extend(of);
                        }
                        Wait::Several(count) => {
                            list.extend(&last[last.len().saturating_sub(count)..]);
                        }
                    }
                }
                let queue = part.queue.unwrap_or(unit % self.queues.len());
                all.push(self.enqueue(part.kind, self.queues[queue], &list));
            }
            last.extend(all.last());
        }
        if shape.last {
            all.push(self.enqueue(Kind::Marker, self.queues[0], &last));
        }
        let bytes = resident() - before;
        if shape.reverse {
            gates.reverse();
        }
        for gate in &gates {
            ok!(clSetUserEventStatus(*gate, CL_COMPLETE));
        }
        for queue in &self.queues {
            ok!(clFinish(*queue));
        }
        let commands = all.len();
        for event in all.into_iter().chain(gates) {
            ok!(clReleaseEvent(event));
        }
        Cost {
            time: begin.elapsed(),
            commands,
            bytes,
        }
    }
}

/// Runs the shape of a seed, in a process of its own. Some words about what is wrong.
pub fn child(which: Which, seed: u64) -> Result<(), String> {
    let world = World::new(which);
    let shape = shape(seed);
    let queue = |in_order: &bool| {
        let flags = match in_order {
            true => 0,
            false => CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE,
        };
        let list = [cl_queue_properties::from(CL_QUEUE_PROPERTIES), flags, 0];
        let (context, device) = (world.context, world.devices[0]);
        create!(clCreateCommandQueueWithProperties(
            context,
            device,
            list.as_ptr()
        ))
    };
    let waiting = world.waiting();
    // The flag is open: the kernel ends at once.
    ok!(clSetKernelArgSVMPointer(
        waiting.kernel,
        0,
        waiting.flags as *const _
    ));
    let (context, flags) = (world.context, CL_MEM_READ_WRITE);
    let ground = Ground {
        world: &world,
        queues: shape.queues.iter().map(queue).collect(),
        kernel: waiting.kernel,
        buffer: create!(clCreateBuffer(context, flags, 4096, null_mut())),
        bytes: [7; 64],
    };
    ground.run(&shape, 100);
    let mut said = Ok(());
    for _ in 0..2 {
        let (few, many) = (ground.run(&shape, UNITS), ground.run(&shape, 4 * UNITS));
        let ratio = many.time.as_secs_f64() / few.time.as_secs_f64().max(1e-6);
        let each = many.bytes / many.commands as i64;
        let text = format!(
            "{} commands take {:?}, {} take {:?}, {ratio:.1} times as long; {each} bytes each",
            few.commands, few.time, many.commands, many.time
        );
        println!("{text}");
        if (many.time < SHORT || ratio < RATIO) && each < BYTES {
            return Ok(());
        }
        said = Err(text);
    }
    said
}

/// Runs shapes one after the other for so long, or so many. How many were found wanting.
pub fn run(
    which: Which,
    first: u64,
    programs: u64,
    time: Duration,
    patience: Duration,
) -> Result<usize, String> {
    let (begin, mut found, mut shapes) = (Instant::now(), 0, 0);
    while shapes < programs && begin.elapsed() < time {
        let seed = first.wrapping_add(shapes);
        shapes += 1;
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let words = [which.most, which.parts].map(|number| number.to_string());
        let mut process = Process::new(program);
        process.arg(ARGUMENT).args(words).arg(seed.to_string());
        process.env("PUMICE_VALIDATION", "0");
        let output = finished(&mut process, patience);
        let said = match &output {
            None => "it does not end".to_owned(),
            Some(output) if output.status.success() => continue,
            Some(output) => {
                let text =
                    [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
                format!("{}: {}{}", output.status, text[0], text[1])
            }
        };
        found += 1;
        println!(
            "shape {shapes} (--cost --seed {seed} --programs 1): {said}\n{}",
            shape(seed)
        );
    }
    println!("model: {shapes} shapes, {found} findings, --cost --seed {first}");
    Ok(found)
}
