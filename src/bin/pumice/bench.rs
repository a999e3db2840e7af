//! `pumice bench`: what a device does, in some twelve rows and less than twenty seconds, beside what is known of others. Results
//! are checked. It goes through the runtime as calls do, without an OpenCL loader; `ci/bench` compares drivers.

use clap::{Arg, ArgMatches, Command};
use pumice_runtime::cl;
use pumice_runtime::command::{self, buffer};
use pumice_runtime::error::ClResult;
use pumice_runtime::handle::Ref;
use pumice_runtime::object::context::Context;
use pumice_runtime::object::device::Device;
use pumice_runtime::object::kernel::Kernel;
use pumice_runtime::object::mem::Mem;
use pumice_runtime::object::platform::Platform;
use pumice_runtime::object::program::{self, Program};
use pumice_runtime::queue::Queue;
use std::time::{Duration, Instant};

/// Bytes of a small transfer.
const SMALL: usize = 4096;
/// Work-items of the arithmetic, and steps of each, with two operations on four numbers.
const ITEMS: usize = 1 << 18;
const STEPS: usize = 256;

const SOURCE: &str = "
kernel void empty(global int *p) { }
kernel void triad(global float4 *a, global const float4 *b, global const float4 *c) {
    size_t i = get_global_id(0);
    a[i] = b[i] + 3.0f * c[i];
}
kernel void multiply_add(global float *out, float a, float b) {
    float4 x = (float4)(get_local_id(0), 1, 2, 3), y = x + 1, z = x + 2, w = x + 3;
    for (int i = 0; i < STEPS; i += 4) { x = x * a + b; y = y * a + b; z = z * a + b; w = w * a + b; }
    float4 s = x + y + z + w;
    out[get_global_id(0)] = s.x + s.y + s.z + s.w;
}
kernel void sines(global float *out, float a) {
    float x = a + get_local_id(0), s = 0;
    for (int i = 0; i < STEPS; i++) { s += sin(x); x += 0.1f; }
    out[get_global_id(0)] = s;
}
#ifdef DOUBLES
kernel void multiply_add_double(global float *out, float af, float bf) {
    double a = af, b = bf;
    double4 x = (double4)(get_local_id(0), 1, 2, 3), y = x + 1, z = x + 2, w = x + 3;
    for (int i = 0; i < STEPS; i += 4) { x = x * a + b; y = y * a + b; z = z * a + b; w = w * a + b; }
    double4 s = x + y + z + w;
    out[get_global_id(0)] = (float)(s.x + s.y + s.z + s.w);
}
#endif
";

/// The known figures of a row: of a processor with two cores and AVX-512 (docs/performance.md), and
/// of an NVIDIA H200 with NVIDIA's own OpenCL.
struct Row {
    name: &'static str,
    unit: &'static str,
    processor: Option<f64>,
    h200: Option<f64>,
}

const fn row(
    name: &'static str,
    unit: &'static str,
    processor: Option<f64>,
    h200: Option<f64>,
) -> Row {
    Row {
        name,
        unit,
        processor,
        h200,
    }
}

const LAUNCH: Row = row("launch and finish", "us", Some(1.91), Some(8.0));
const LAUNCHES: Row = row("launches back to back", "us", Some(1.28), Some(3.1));
const WRITE_SMALL: Row = row("write 4 KiB", "us", Some(0.28), Some(6.0));
const READ_SMALL: Row = row("read 4 KiB", "us", Some(0.27), Some(7.0));
const WRITE: Row = row("write 64 MiB", "GB/s", Some(24.1), Some(10.0));
const READ: Row = row("read 64 MiB", "GB/s", Some(24.6), Some(20.0));
const COPY: Row = row("copy on the device", "GB/s", Some(49.8), Some(4100.0));
const TRIAD: Row = row("triad, float4", "GB/s", Some(49.7), Some(4361.0));
const FLOATS: Row = row("multiply-add, float", "GFLOP/s", Some(194.0), None);
const DOUBLES: Row = row("multiply-add, double", "GFLOP/s", Some(162.0), None);
const SINES: Row = row("sin, float", "Gop/s", None, None);
const BUILD: Row = row("build and run, new source", "ms", Some(57.1), Some(55.0));

/// Returns the arguments of the command.
pub fn command() -> Command {
    Command::new("bench")
        .about("Measures a device in some seconds, beside what is known of others")
        .arg(
            Arg::new("device")
                .long("device")
                .value_name("NUMBER")
                .value_parser(clap::value_parser!(usize))
                .default_value("0")
                .help("This device, counted as `pumice info` does"),
        )
        .arg(
            Arg::new("milliseconds")
                .long("milliseconds")
                .value_name("NUMBER")
                .value_parser(clap::value_parser!(u64))
                .default_value("600")
                .help("Measure each figure for so long"),
        )
}

/// Measures and prints.
pub fn bench(matches: &ArgMatches) -> Result<(), String> {
    let index = matches.get_one::<usize>("device").copied().unwrap_or(0);
    let platform = Platform::open();
    let Some(device) = platform.devices.get(index) else {
        return Err(format!("there is no device {index}; see `pumice info`"));
    };
    let span = matches.get_one::<u64>("milliseconds").copied();
    let span = Duration::from_millis(span.unwrap_or(600));
    let began = Instant::now();
    super::print(|out| {
        writeln!(out, "{}", device.caps().name)?;
        let (first, second, third) = ("this device", "2 cores, AVX-512", "H200, NVIDIA's own");
        writeln!(out, "{:27}{first:>18}{second:>18}{third:>20}", "")
    })?;
    let mut wrong = Vec::new();
    let rig = Rig::new(device, span).map_err(|error| error.to_string())?;
    for (row, measure) in ROWS {
        if row.name == DOUBLES.name && !device.caps().fp64 {
            continue;
        }
        let shown = match measure(&rig) {
            Ok(Some(figure)) => format!("{} {}", digits(figure), row.unit),
            Ok(None) => {
                wrong.push(row.name);
                "wrong".to_owned()
            }
            Err(error) => {
                wrong.push(row.name);
                error.to_string()
            }
        };
        let known = |figure: Option<f64>| {
            figure.map_or("-".to_owned(), |f| format!("{} {}", digits(f), row.unit))
        };
        super::print(|out| {
            let (processor, h200) = (known(row.processor), known(row.h200));
            writeln!(out, "{:27}{shown:>18}{processor:>18}{h200:>20}", row.name)
        })?;
    }
    super::print(|out| writeln!(out, "{:.1} s", began.elapsed().as_secs_f64()))?;
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(format!("no figure for: {}", wrong.join(", "))),
    }
}

/// Formats a figure with three significant digits.
fn digits(figure: f64) -> String {
    match figure {
        f if f < 1.0 => format!("{f:.3}"),
        f if f < 10.0 => format!("{f:.2}"),
        f if f < 100.0 => format!("{f:.1}"),
        f => format!("{f:.0}"),
    }
}

/// None: the result is wrong.
type Measured = ClResult<Option<f64>>;
type Measure = fn(&Rig) -> Measured;

const ROWS: &[(Row, Measure)] = &[
    (LAUNCH, |rig| {
        rig.microseconds(|| {
            rig.launch("empty", &[&rig.a], &[], 1)?;
            rig.queue.finish()
        })
    }),
    (LAUNCHES, |rig| {
        let batch = || {
            for _ in 0..1000 {
                rig.launch("empty", &[&rig.a], &[], 1)?;
            }
            rig.queue.finish()
        };
        Ok(rig.microseconds(batch)?.map(|time| time / 1000.0))
    }),
    (WRITE_SMALL, |rig| rig.microseconds(|| rig.write(SMALL))),
    (READ_SMALL, |rig| {
        rig.microseconds(|| rig.read(SMALL).map(drop))
    }),
    (WRITE, |rig| rig.rate(rig.size, || rig.write(rig.size))),
    (READ, |rig| {
        let right = rig.read(rig.size)? == rig.host;
        let figure = rig.rate(rig.size, || rig.read_into_place())?;
        Ok(figure.filter(|_| right))
    }),
    (COPY, |rig| {
        rig.rate(2 * rig.size, || {
            let target = &rig.queue.target;
            let copy = buffer::copy(target, &rig.a, &rig.b, 0, 0, rig.size)?;
            rig.queue.enqueue(copy, &[], false, false)?;
            rig.queue.finish()
        })
    }),
    (TRIAD, |rig| {
        let items = rig.size / 16;
        let figure = rig.rate(3 * rig.size, || {
            rig.launch("triad", &[&rig.c, &rig.a, &rig.b], &[], items)?;
            rig.queue.finish()
        })?;
        // `b` was copied from `a`.
        let sums = rig.floats(&rig.c, 1024)?;
        let right = sums.iter().zip(rig.host.chunks(4)).all(|(sum, bytes)| {
            let value = f32::from_le_bytes(bytes.try_into().unwrap_or_default());
            *sum == value + 3.0 * value
        });
        Ok(figure.filter(|_| right))
    }),
    (FLOATS, |rig| rig.arithmetic("multiply_add")),
    (DOUBLES, |rig| rig.arithmetic("multiply_add_double")),
    (SINES, |rig| {
        let figure = rig.rate(ITEMS * STEPS, || {
            rig.launch("sines", &[&rig.c], &[0.5], ITEMS)?;
            rig.queue.finish()
        })?;
        let mut sum = 0.0;
        let mut x = 0.5f32;
        for _ in 0..STEPS {
            sum += f64::from(x).sin();
            x += 0.1;
        }
        let first = f64::from(rig.floats(&rig.c, 1)?[0]);
        Ok(figure.filter(|_| (first - sum).abs() < 0.01))
    }),
    (BUILD, |rig| {
        let began = Instant::now();
        let rounds = 5;
        for round in 0..rounds {
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
            let number = now.map_or(0, |now| now.subsec_nanos());
            let source = format!(
                "kernel void k(global int *p) {{ p[get_global_id(0)] = {number} + {round}; }}"
            );
            let program = program::with_source(&rig.context, source);
            program.build(None, "", None)?;
            rig.run(&program.create_kernel("k")?, &[&rig.c], &[], 64)?;
            rig.queue.finish()?;
        }
        Ok(Some(
            began.elapsed().as_secs_f64() * 1e3 / f64::from(rounds),
        ))
    }),
];

/// The objects of a measurement.
struct Rig {
    context: Ref<Context>,
    queue: Ref<Queue>,
    program: Ref<Program>,
    a: Ref<Mem>,
    b: Ref<Mem>,
    c: Ref<Mem>,
    size: usize,
    /// The contents of `a`.
    host: Vec<u8>,
    /// How long a row is measured.
    span: Duration,
}

impl Rig {
    fn new(device: &Ref<Device>, span: Duration) -> ClResult<Self> {
        let context = Context::new(vec![device.clone()], Vec::new(), None, std::ptr::null_mut())?;
        let queue = Queue::new(&context, device, Vec::new())?;
        let program = program::with_source(&context, SOURCE.to_owned());
        let doubles = if device.caps().fp64 { "-DDOUBLES" } else { "" };
        program.build(None, &format!("-DSTEPS={STEPS} {doubles}"), None)?;
        let size = 64 << 20;
        let buffer = || {
            let flags = cl::CL_MEM_READ_WRITE;
            // SAFETY: no host pointer.
            unsafe { Mem::buffer(&context, Vec::new(), flags, size, std::ptr::null_mut()) }
        };
        let (a, b, c) = (buffer()?, buffer()?, buffer()?);
        let numbers = (0..size as u32 / 4).map(|i| (i % 1000) as f32);
        let host = numbers.flat_map(f32::to_le_bytes).collect();
        Ok(Self {
            context,
            queue,
            program,
            a,
            b,
            c,
            size,
            host,
            span,
        })
    }

    fn launch(&self, name: &str, buffers: &[&Ref<Mem>], numbers: &[f32], items: usize) -> ClResult {
        thread_local! {
            static LAST: std::cell::RefCell<Option<(String, Ref<Kernel>)>> = const { std::cell::RefCell::new(None) };
        }
        let known = LAST.with_borrow(|last| match last {
            Some((known, kernel)) if known == name => Some(kernel.clone()),
            _ => None,
        });
        let kernel = match known {
            Some(kernel) => kernel,
            None => {
                let kernel = self.program.create_kernel(name)?;
                LAST.set(Some((name.to_owned(), kernel.clone())));
                kernel
            }
        };
        self.run(&kernel, buffers, numbers, items)
    }

    fn run(
        &self,
        kernel: &Ref<Kernel>,
        buffers: &[&Ref<Mem>],
        numbers: &[f32],
        items: usize,
    ) -> ClResult {
        let mut index = 0;
        for mem in buffers {
            let handle = mem.handle() as usize;
            kernel.set_arg(index, size_of::<usize>(), Some(&handle.to_ne_bytes()))?;
            index += 1;
        }
        for number in numbers {
            kernel.set_arg(index, 4, Some(&number.to_ne_bytes()))?;
            index += 1;
        }
        let target = &self.queue.target;
        let range = command::kernel::NdRange {
            dims: 1,
            offset: None,
            global: Some(&[items]),
            local: None,
        };
        let kind = cl::CL_COMMAND_NDRANGE_KERNEL;
        let command = command::kernel::launch(target, kernel, &range, kind)?;
        self.queue.enqueue(command, &[], false, false)?;
        Ok(())
    }

    fn write(&self, size: usize) -> ClResult {
        let target = &self.queue.target;
        let from = self.host.as_ptr().cast();
        // SAFETY: `host` has more bytes, and outlives the command, which is waited for.
        let write = unsafe { buffer::write(target, self.a.clone(), 0, size, from) }?;
        self.queue.enqueue(write, &[], true, false)?;
        self.queue.finish()
    }

    fn read_to(&self, mem: &Ref<Mem>, to: &mut [u8]) -> ClResult {
        let target = &self.queue.target;
        // SAFETY: the slice is that long, and outlives the command, which is waited for.
        let read =
            unsafe { buffer::read(target, mem.clone(), 0, to.len(), to.as_mut_ptr().cast()) }?;
        self.queue.enqueue(read, &[], true, false)?;
        Ok(())
    }

    fn read(&self, size: usize) -> ClResult<Vec<u8>> {
        let mut bytes = vec![0; size];
        self.read_to(&self.a, &mut bytes)?;
        Ok(bytes)
    }

    /// Reads all of `a` into memory that was touched before.
    fn read_into_place(&self) -> ClResult {
        thread_local! {
            static PLACE: std::cell::RefCell<Vec<u8>> = const { std::cell::RefCell::new(Vec::new()) };
        }
        PLACE.with_borrow_mut(|place| {
            place.resize(self.size, 0);
            self.read_to(&self.a, place)
        })
    }

    fn floats(&self, mem: &Ref<Mem>, count: usize) -> ClResult<Vec<f32>> {
        let mut bytes = vec![0; count * 4];
        self.read_to(mem, &mut bytes)?;
        let words = bytes.chunks_exact(4);
        Ok(words
            .map(|word| f32::from_le_bytes(word.try_into().unwrap_or_default()))
            .collect())
    }

    /// Returns the shortest time of an action, in seconds, after it was done twice.
    fn time(&self, action: impl Fn() -> ClResult) -> ClResult<f64> {
        for _ in 0..2 {
            action()?;
        }
        let began = Instant::now();
        let mut best = f64::MAX;
        let mut rounds = 0;
        while rounds < 3 || began.elapsed() < self.span {
            // Short actions are measured together: reading the clock takes time too.
            let turn = Instant::now();
            let mut count = 0;
            while count == 0 || turn.elapsed() < Duration::from_millis(2) {
                action()?;
                count += 1;
            }
            best = best.min(turn.elapsed().as_secs_f64() / f64::from(count));
            rounds += 1;
            if began.elapsed() > 4 * self.span {
                break;
            }
        }
        Ok(best)
    }

    fn microseconds(&self, action: impl Fn() -> ClResult) -> Measured {
        Ok(Some(self.time(action)? * 1e6))
    }

    /// Measures `action`, which handles `amount` units, in billions of units a second.
    fn rate(&self, amount: usize, action: impl Fn() -> ClResult) -> Measured {
        Ok(Some(amount as f64 / self.time(action)? / 1e9))
    }

    fn arithmetic(&self, name: &str) -> Measured {
        // Four numbers a step, each multiplied and added to.
        let figure = self.rate(ITEMS * STEPS * 8, || {
            self.launch(name, &[&self.c], &[0.5, 1.0], ITEMS)?;
            self.queue.finish()
        })?;
        // x / 2 + 1 comes to 2, whatever it began with: sixteen of them.
        let right = self
            .floats(&self.c, 64)?
            .iter()
            .all(|sum| (sum - 32.0).abs() < 1e-3);
        Ok(figure.filter(|_| right))
    }
}
