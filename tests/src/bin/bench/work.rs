//! The workloads. Each sets itself up on a device, shows that its result is right, and can then be
//! run any number of times.

use super::replays::{self, Part};
use super::{alone, builds, compute, contract, functions, numeric};
use opencl_sys as sys;
use pumice_tests::client::{problem, Buffer, Context, Device, Event, Queue, Result};

/// Small kernels, most of them for the workloads of this file.
pub const SOURCE: &str = include_str!("bench.cl");

/// The figure that `--check` compares with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Must be faster by the launch factor.
    Launch,
    /// Must not be slower.
    Throughput,
    /// Printed only.
    Info,
}

/// How the seconds of one operation become a figure.
#[derive(Debug, Clone, Copy)]
pub enum Figure {
    /// Microseconds for each of so many parts of an operation; less is better.
    Micros(f64),
    /// Milliseconds; less is better.
    Millis,
    /// So many units of work an operation, in 10^9 a second; more is better.
    Giga(f64, &'static str),
}

impl Figure {
    /// The figure.
    pub fn of(self, seconds: f64) -> f64 {
        match self {
            Self::Micros(parts) => seconds * 1e6 / parts,
            Self::Millis => seconds * 1e3,
            Self::Giga(units, _) => units / seconds / 1e9,
        }
    }

    /// Its unit.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Micros(_) => "us",
            Self::Millis => "ms",
            Self::Giga(_, unit) => unit,
        }
    }

    /// Whether a smaller one is better.
    pub fn less_is_better(self) -> bool {
        !matches!(self, Self::Giga(..))
    }
}

thread_local! {
    /// Seconds of this turn that do not count.
    pub static UNCOUNTED: std::cell::Cell<f64> = const { std::cell::Cell::new(0.0) };
}

/// Does something whose time does not count.
pub fn uncounted<R>(run: impl FnOnce() -> R) -> R {
    let start = std::time::Instant::now();
    let result = run();
    UNCOUNTED.set(UNCOUNTED.get() + start.elapsed().as_secs_f64());
    result
}

/// A workload that is set up: runs `n` operations to their end.
pub struct Ready {
    /// Runs that many operations; everything is done when it returns.
    pub run: Box<dyn FnMut(usize) -> Result<()>>,
    /// The meaning of an operation's time.
    pub figure: Figure,
}

/// A workload.
pub struct Workload {
    /// Its name.
    pub name: &'static str,
    /// How it is judged.
    pub class: Class,
    /// Sets it up. Ok(None): the device cannot do it.
    pub set_up: fn(&Rig) -> Result<Option<Ready>>,
}

/// A device with a context, made for each workload afresh.
pub struct Rig {
    /// The device.
    pub device: Device,
    /// Sizes for a large device.
    pub large: bool,
}

impl Rig {
    /// A size for small devices, or for large ones.
    pub fn pick(&self, small: usize, large: usize) -> usize {
        if self.large {
            large
        } else {
            small
        }
    }

    /// A context with a queue.
    pub fn open(&self) -> Result<(Context, Queue)> {
        let context = self.device.context()?;
        let queue = context.queue()?;
        Ok((context, queue))
    }

    /// Asked of the device, not of the kernel: rusticl 22.3 says less for a kernel than it can.
    pub fn takes_groups_of_256(&self) -> Result<bool> {
        Ok(self
            .device
            .value::<u64>(sys::CL_DEVICE_MAX_WORK_GROUP_SIZE)?
            >= 256)
    }

    /// Options to build with.
    pub fn options(&self) -> &'static str {
        if self.device.has_fp64() {
            "-DWITH_FP64"
        } else {
            ""
        }
    }
}

macro_rules! workloads {
    ($($name:literal $class:ident $function:expr;)*) => {
        /// All of them, in the order of the table.
        pub const WORKLOADS: &[Workload] = &[
            $(Workload { name: $name, class: Class::$class, set_up: $function },)*
        ];
    };
}

workloads! {
    "launch and finish"          Launch     launch_finish;
    "launches back to back"      Launch     launches;
    "dependent launches"         Info       dependent_launches;
    "event chain, two queues"    Info       event_chain;
    "launches, each with an event" Info     contract::launches_with_events;
    "event before a long kernel" Info       contract::event_before_a_long_kernel;
    "held commands, 1,000"       Info       |rig| contract::held(rig, 1000);
    "held commands, 10,000"      Info       |rig| contract::held(rig, 10_000);
    "held commands, 100,000"     Info       |rig| contract::held(rig, 100_000);
    "held commands, 1,000,000"   Info       |rig| contract::held(rig, 1_000_000);
    "1,000 launches, until done" Info       |rig| replays::launches(rig, false, Part::All);
    "1,000 launches, the calls"  Info       |rig| replays::launches(rig, false, Part::Calls);
    "1,000 replayed, until done" Info       |rig| replays::launches(rig, true, Part::All);
    "1,000 replayed, the calls"  Info       |rig| replays::launches(rig, true, Part::Calls);
    "double buffering"           Info       contract::double_buffering;
    "write 4 KiB"                Info       |rig| transfer(rig, 4096, true);
    "read 4 KiB"                 Info       |rig| transfer(rig, 4096, false);
    "write 64 MiB"               Throughput |rig| transfer(rig, 64 << 20, true);
    "read 64 MiB"                Throughput |rig| transfer(rig, 64 << 20, false);
    "copy buffer"                Throughput copy;
    "fill buffer"                Throughput fill;
    "triad, float"               Throughput |rig| triad(rig, 1);
    "triad, float4"              Throughput |rig| triad(rig, 4);
    "SGEMM, register-blocked"    Throughput sgemm;
    "SGEMM, naive"               Throughput numeric::gemm;
    "transposition, local tile"  Throughput numeric::transpose;
    "sparse matrix by vector"    Throughput numeric::sparse;
    "radix sort"                 Throughput numeric::sort;
    "FFT of 1024 points"         Throughput numeric::fft;
    "loops of different lengths" Throughput numeric::collatz;
    "multiply-add, float"        Throughput |rig| chains::<f32>(rig, "chains_float");
    "multiply-add, double"       Throughput |rig| chains::<f64>(rig, "chains_double");
    "multiply-add, int"          Throughput |rig| chains::<u32>(rig, "chains_int");
    "reduction, local memory"    Throughput reduction;
    "bytes in, bytes out"        Throughput compute::bytes;
    "reduction, 64 groups"       Throughput compute::tree;
    "N-body, local tile"         Throughput compute::bodies;
    "Mandelbrot, float"          Throughput |rig| compute::mandelbrot::<f32>(rig, "mandelbrot_float");
    "Mandelbrot, double"         Throughput |rig| compute::mandelbrot::<f64>(rig, "mandelbrot_double");
    "histogram, local memory"    Throughput compute::histogram;
    "sin, float"                 Throughput |rig| functions::function::<f32>(rig, "sin");
    "cos, float"                 Throughput |rig| functions::function::<f32>(rig, "cos");
    "exp, float"                 Throughput |rig| functions::function::<f32>(rig, "exp");
    "log, float"                 Throughput |rig| functions::function::<f32>(rig, "log");
    "pow, float"                 Throughput |rig| functions::function::<f32>(rig, "pow");
    "tanh, float"                Throughput |rig| functions::function::<f32>(rig, "tanh");
    "erf, float"                 Throughput |rig| functions::function::<f32>(rig, "erf");
    "sin, double"                Throughput |rig| functions::function::<f64>(rig, "sin");
    "cos, double"                Throughput |rig| functions::function::<f64>(rig, "cos");
    "exp, double"                Throughput |rig| functions::function::<f64>(rig, "exp");
    "log, double"                Throughput |rig| functions::function::<f64>(rig, "log");
    "pow, double"                Throughput |rig| functions::function::<f64>(rig, "pow");
    "tanh, double"               Throughput |rig| functions::function::<f64>(rig, "tanh");
    "erf, double"                Throughput |rig| functions::function::<f64>(rig, "erf");
    "SHA-256"                    Throughput compute::sha256;
    "convolution of an image"    Throughput compute::convolve;
    "search, groups of one"      Throughput alone::search;
    "sort, groups of one"        Throughput alone::sort;
    "atomic add, one counter"    Throughput |rig| atomics(rig, 1);
    "atomic add, 256 counters"   Throughput |rig| atomics(rig, 256);
    "build and run, new source"  Info       |rig| builds::small(rig, true);
    "build and run, known source" Info      |rig| builds::small(rig, false);
    "build and run, large calls" Info       builds::large;
}

/// An error unless the result is right.
pub fn expect(right: bool, what: &'static str) -> Result<()> {
    if right {
        Ok(())
    } else {
        Err(problem("checking the result", format!("{what} is wrong")))
    }
}

fn launch_finish(rig: &Rig) -> Result<Option<Ready>> {
    let (context, queue) = rig.open()?;
    let program = context.program(SOURCE, "")?;
    let buffer = context.buffer(4096)?;
    let kernel = program.kernel("nothing")?;
    kernel.arg_buffer(0, &buffer)?;
    Ok(Some(Ready {
        run: Box::new(move |n| {
            let _keep = (&context, &buffer);
            for _ in 0..n {
                queue.launch(&kernel, &[1], &[1])?;
                queue.finish()?;
            }
            Ok(())
        }),
        figure: Figure::Micros(1.0),
    }))
}

fn launches(rig: &Rig) -> Result<Option<Ready>> {
    let (context, queue) = rig.open()?;
    let program = context.program(SOURCE, "")?;
    let buffer = context.buffer(4096)?;
    let kernel = program.kernel("nothing")?;
    kernel.arg_buffer(0, &buffer)?;
    Ok(Some(Ready {
        run: Box::new(move |n| {
            let _keep = (&context, &buffer);
            for _ in 0..n {
                for _ in 0..1000 {
                    queue.launch(&kernel, &[1], &[1])?;
                }
                queue.finish()?;
            }
            Ok(())
        }),
        figure: Figure::Micros(1000.0),
    }))
}

fn dependent_launches(rig: &Rig) -> Result<Option<Ready>> {
    let (context, queue) = rig.open()?;
    let program = context.program(SOURCE, "")?;
    let buffer = context.buffer(256)?;
    queue.write(&buffer, &[0i32; 64])?;
    let kernel = program.kernel("bump")?;
    kernel.arg_buffer(0, &buffer)?;
    let mut total = 0;
    Ok(Some(Ready {
        run: Box::new(move |n| {
            let _keep = &context;
            for _ in 0..n {
                for _ in 0..1000 {
                    queue.launch(&kernel, &[64], &[64])?;
                }
                queue.finish()?;
            }
            total += 1000 * n as i32;
            let counts: Vec<i32> = queue.read_vec(&buffer, 64)?;
            expect(counts.iter().all(|&c| c == total), "the number of launches")
        }),
        figure: Figure::Micros(1000.0),
    }))
}

fn event_chain(rig: &Rig) -> Result<Option<Ready>> {
    let (context, first) = rig.open()?;
    let second = context.queue()?;
    let program = context.program(SOURCE, "")?;
    let buffer = context.buffer(256)?;
    first.write(&buffer, &[0i32; 64])?;
    let kernel = program.kernel("bump")?;
    kernel.arg_buffer(0, &buffer)?;
    let mut total = 0;
    const LINKS: usize = 200;
    Ok(Some(Ready {
        run: Box::new(move |n| {
            let _keep = &context;
            for _ in 0..n {
                let mut last: Option<Event> = None;
                for link in 0..LINKS {
                    let queue = if link % 2 == 0 { &first } else { &second };
                    let after: Vec<&Event> = last.iter().collect();
                    let event = queue.launch_after(&kernel, &[64], &[64], &after)?;
                    // An event that another queue waits for must have been flushed.
                    queue.flush()?;
                    last = Some(event);
                }
                if let Some(event) = last {
                    event.wait()?;
                }
            }
            total += (LINKS * n) as i32;
            let counts: Vec<i32> = second.read_vec(&buffer, 64)?;
            expect(counts.iter().all(|&c| c == total), "the number of launches")
        }),
        figure: Figure::Micros(LINKS as f64),
    }))
}

fn transfer(rig: &Rig, bytes: usize, write: bool) -> Result<Option<Ready>> {
    let (context, queue) = rig.open()?;
    let buffer = context.buffer(bytes)?;
    let mut data: Vec<u32> = (0..bytes as u32 / 4)
        .map(|i| i.wrapping_mul(2_654_435_761))
        .collect();
    queue.write(&buffer, &data)?;
    let back: Vec<u32> = queue.read_vec(&buffer, data.len())?;
    expect(back == data, "what was written and read")?;
    Ok(Some(Ready {
        run: Box::new(move |n| {
            let _keep = &context;
            for _ in 0..n {
                if write {
                    queue.write(&buffer, &data)?;
                } else {
                    queue.read(&buffer, &mut data)?;
                }
            }
            Ok(())
        }),
        figure: if bytes < 1 << 20 {
            Figure::Micros(1.0)
        } else {
            Figure::Giga(bytes as f64, "GB/s")
        },
    }))
}

fn copy(rig: &Rig) -> Result<Option<Ready>> {
    let (context, queue) = rig.open()?;
    let bytes = rig.pick(64 << 20, 1 << 30);
    let (from, to) = (context.buffer(bytes)?, context.buffer(bytes)?);
    queue.fill(&from, 0x0102_0304u32, bytes)?;
    queue.fill(&to, 0u32, bytes)?;
    queue.write(&from, &[1u32, 2, 3, 4])?;
    queue.copy(&from, &to, bytes)?;
    let back: Vec<u32> = queue.read_vec(&to, bytes / 4)?;
    let (head, tail) = back.split_at(4);
    expect(
        head == [1, 2, 3, 4] && tail.iter().all(|&x| x == 0x0102_0304),
        "the copy",
    )?;
    Ok(Some(Ready {
        run: Box::new(move |n| {
            let _keep = &context;
            for _ in 0..n {
                queue.copy(&from, &to, bytes)?;
            }
            queue.finish()
        }),
        figure: Figure::Giga(2.0 * bytes as f64, "GB/s"),
    }))
}

fn fill(rig: &Rig) -> Result<Option<Ready>> {
    let (context, queue) = rig.open()?;
    let bytes = rig.pick(64 << 20, 1 << 30);
    let buffer = context.buffer(bytes)?;
    queue.fill(&buffer, [1u32, 2, 3, 4], bytes)?;
    let back: Vec<[u32; 4]> = queue.read_vec(&buffer, bytes / 16)?;
    expect(back.iter().all(|&x| x == [1, 2, 3, 4]), "the fill")?;
    Ok(Some(Ready {
        run: Box::new(move |n| {
            let _keep = &context;
            for _ in 0..n {
                queue.fill(&buffer, 7u32, bytes)?;
            }
            queue.finish()
        }),
        figure: Figure::Giga(bytes as f64, "GB/s"),
    }))
}

fn triad(rig: &Rig, width: usize) -> Result<Option<Ready>> {
    let (context, queue) = rig.open()?;
    let bytes = rig.pick(32 << 20, 1 << 30);
    let count = bytes / 4;
    let buffers: Vec<Buffer> = (0..3)
        .map(|_| context.buffer(bytes))
        .collect::<Result<_>>()?;
    let program = context.program(SOURCE, "")?;
    let kernel = program.kernel(if width == 4 { "triad4" } else { "triad" })?;
    for (i, buffer) in (0..).zip(&buffers) {
        kernel.arg_buffer(i, buffer)?;
    }
    kernel.arg(3, 3.0f32)?;
    let [a, b, c] = &buffers[..] else {
        return Err(problem("setting up", "three buffers"));
    };
    queue.fill(a, 0.0f32, bytes)?;
    let data: Vec<f32> = (0..count).map(|i| (i % 1000) as f32).collect();
    queue.write(b, &data)?;
    queue.fill(c, 2.0f32, bytes)?;
    queue.launch(&kernel, &[count / width], &[64])?;
    let back: Vec<f32> = queue.read_vec(a, count)?;
    expect(
        back.iter().zip(&data).all(|(&got, &b)| got == b + 6.0),
        "the triad",
    )?;
    Ok(Some(Ready {
        run: Box::new(move |n| {
            let _keep = (&context, &buffers);
            for _ in 0..n {
                queue.launch(&kernel, &[count / width], &[64])?;
            }
            queue.finish()
        }),
        figure: Figure::Giga(3.0 * bytes as f64, "GB/s"),
    }))
}

fn sgemm(rig: &Rig) -> Result<Option<Ready>> {
    let (context, queue) = rig.open()?;
    let n = rig.pick(512, 4096);
    let bytes = n * n * 4;
    let program = context.program(SOURCE, "")?;
    let kernel = program.kernel("sgemm")?;
    if !rig.takes_groups_of_256()? {
        return Ok(None);
    }
    let buffers: Vec<Buffer> = (0..3)
        .map(|_| context.buffer(bytes))
        .collect::<Result<_>>()?;
    for (i, buffer) in (0..).zip(&buffers) {
        kernel.arg_buffer(i, buffer)?;
    }
    kernel.arg(3, n as i32)?;
    let [a, b, c] = &buffers[..] else {
        return Err(problem("setting up", "three buffers"));
    };
    let number = |i: usize, salt: usize| ((i * 7919 + salt) % 251) as f32 / 125.0 - 1.0;
    let left: Vec<f32> = (0..n * n).map(|i| number(i, 3)).collect();
    let right: Vec<f32> = (0..n * n).map(|i| number(i, 101)).collect();
    queue.write(a, &left)?;
    queue.write(b, &right)?;
    queue.fill(c, f32::NAN, bytes)?;
    let global = [n / 4, n / 4];
    queue.launch(&kernel, &global, &[16, 16])?;
    let back: Vec<f32> = queue.read_vec(c, n * n)?;
    for sample in 0..400 {
        let (row, column) = ((sample * 131) % n, (sample * 197 + 5) % n);
        let (mut sum, mut size) = (0.0f64, 0.0f64);
        for (k, &x) in left.iter().skip(row * n).take(n).enumerate() {
            let product = f64::from(x) * f64::from(right[k * n + column]);
            sum += product;
            size += product.abs();
        }
        let got = f64::from(back[row * n + column]);
        expect((got - sum).abs() <= 1e-5 * size, "the matrix product")?;
    }
    expect(back.iter().all(|x| x.is_finite()), "the matrix product")?;
    Ok(Some(Ready {
        run: Box::new(move |times| {
            let _keep = (&context, &buffers);
            for _ in 0..times {
                queue.launch(&kernel, &global, &[16, 16])?;
            }
            queue.finish()
        }),
        figure: Figure::Giga(2.0 * (n as f64).powi(3), "GFLOP/s"),
    }))
}

/// A number that `chains_*` computes with.
trait Chain: pumice_tests::client::Plain + PartialEq {
    /// One step, and the sum of the four chains that start at `i`.
    fn result(i: usize) -> Self;
    /// The unit of the figure.
    const UNIT: &'static str;
}

macro_rules! float_chain {
    ($type:ty) => {
        impl Chain for $type {
            // x/2 + 3 tends to 6 and gets there exactly, fused or not, once the difference is rounded away.
            fn result(_: usize) -> Self {
                24.0
            }
            const UNIT: &'static str = "GFLOP/s";
        }
    };
}
float_chain!(f32);
float_chain!(f64);

impl Chain for u32 {
    fn result(i: usize) -> Self {
        (0..4u32)
            .map(|lane| {
                (0..256).fold(i as u32 + lane, |x, _| {
                    x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223)
                })
            })
            .fold(0, u32::wrapping_add)
    }
    const UNIT: &'static str = "GOP/s";
}

fn chains<T: Chain>(rig: &Rig, name: &str) -> Result<Option<Ready>> {
    if name == "chains_double" && !rig.device.has_fp64() {
        return Ok(None);
    }
    let (context, queue) = rig.open()?;
    let program = context.program(SOURCE, rig.options())?;
    let kernel = program.kernel(name)?;
    let count = rig.pick(1 << 16, 1 << 23);
    let buffer = context.buffer(count * size_of::<T>())?;
    kernel.arg_buffer(0, &buffer)?;
    queue.fill(&buffer, T::default(), count * size_of::<T>())?;
    queue.launch(&kernel, &[count], &[64])?;
    let back: Vec<T> = queue.read_vec(&buffer, count)?;
    expect(
        (0..count).step_by(61).all(|i| back[i] == T::result(i)),
        "the multiply-add",
    )?;
    Ok(Some(Ready {
        run: Box::new(move |n| {
            let _keep = (&context, &buffer);
            for _ in 0..n {
                queue.launch(&kernel, &[count], &[64])?;
            }
            queue.finish()
        }),
        figure: Figure::Giga(2048.0 * count as f64, T::UNIT),
    }))
}

fn reduction(rig: &Rig) -> Result<Option<Ready>> {
    let (context, queue) = rig.open()?;
    let program = context.program(SOURCE, "")?;
    let kernel = program.kernel("reduce")?;
    if !rig.takes_groups_of_256()? {
        return Ok(None);
    }
    let groups = rig.pick(2048, 65536);
    let count = groups * 4096;
    let input = context.buffer(count * 4)?;
    let output = context.buffer(groups * 4)?;
    let data: Vec<u32> = (0..count as u32)
        .map(|i| i.wrapping_mul(0x9e37_79b1))
        .collect();
    queue.write(&input, &data)?;
    kernel.arg_buffer(0, &input)?.arg_buffer(1, &output)?;
    queue.launch(&kernel, &[groups * 256], &[256])?;
    let back: Vec<u32> = queue.read_vec(&output, groups)?;
    let right = data
        .chunks(4096)
        .map(|part| part.iter().fold(0u32, |sum, &x| sum.wrapping_add(x)));
    expect(right.eq(back), "the sums")?;
    Ok(Some(Ready {
        run: Box::new(move |n| {
            let _keep = (&context, &input, &output);
            for _ in 0..n {
                queue.launch(&kernel, &[groups * 256], &[256])?;
            }
            queue.finish()
        }),
        figure: Figure::Giga(4.0 * count as f64, "GB/s"),
    }))
}

fn atomics(rig: &Rig, counters: usize) -> Result<Option<Ready>> {
    let (context, queue) = rig.open()?;
    let program = context.program(SOURCE, "")?;
    let kernel = program.kernel("contend")?;
    let count = rig.pick(1 << 18, 1 << 24);
    let buffer = context.buffer(counters * 4)?;
    kernel.arg_buffer(0, &buffer)?.arg(1, counters as i32 - 1)?;
    queue.fill(&buffer, 0i32, counters * 4)?;
    queue.launch(&kernel, &[count], &[64])?;
    let back: Vec<i32> = queue.read_vec(&buffer, counters)?;
    expect(
        back.iter().all(|&x| x as usize == count / counters),
        "the counters",
    )?;
    Ok(Some(Ready {
        run: Box::new(move |n| {
            let _keep = (&context, &buffer);
            for _ in 0..n {
                queue.launch(&kernel, &[count], &[64])?;
            }
            queue.finish()
        }),
        figure: Figure::Giga(count as f64, "Gop/s"),
    }))
}

/// Returns the heading of the table for a device.
pub fn describe(device: &Device) -> Result<String> {
    Ok(format!(
        "{} ({})",
        device.name(),
        device.text(sys::CL_DEVICE_VERSION)?.trim()
    ))
}

/// Whether a device can take the large sizes.
pub fn is_large(device: &Device) -> bool {
    let memory = device
        .value::<u64>(sys::CL_DEVICE_GLOBAL_MEM_SIZE)
        .unwrap_or(0);
    let kind = device.value::<u64>(sys::CL_DEVICE_TYPE).unwrap_or(0);
    memory >= 8 << 30 && kind & sys::CL_DEVICE_TYPE_CPU == 0
}
