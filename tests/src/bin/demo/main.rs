//! The demo: renders a picture through the ordinary OpenCL loader and writes a PNG.
//!
//! ```text
//! demo [--driver LIBRARY_OR_ICD] [--device N] [--size WxH] [--samples N] [--seconds S] [--out FILE]
//! ```
//! The driver is `libpumice.so` beside the program, alone, unless `--driver` names another or `OCL_ICD_VENDORS` is set.
//! Without `--samples` (and `--size`) the time of a strip of the picture decides how much is done in `--seconds`.

use pumice_tests::client::loader::{built_driver, vendors_directory};
use pumice_tests::client::{devices, problem, Buffer, Context, Kernel, Queue, Result};
use pumice_tests::Scratch;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const SOURCE: &str = include_str!("demo.cl");
/// As in the kernel source.
const BLUR_RADIUS: usize = 40;
const BLUR_GROUP: usize = 64;

struct Options {
    driver: Option<PathBuf>,
    device: usize,
    size: Option<(usize, usize)>,
    samples: Option<u32>,
    seconds: f64,
    out: PathBuf,
}

fn main() -> std::process::ExitCode {
    let result = options()
        .map_err(|note| problem("reading the command line", note))
        .and_then(|options| run(&options));
    match result {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("demo: {error}");
            std::process::ExitCode::FAILURE
        }
    }
}

fn options() -> std::result::Result<Options, String> {
    let mut options = Options {
        driver: None,
        device: 0,
        size: None,
        samples: None,
        seconds: 10.0,
        out: PathBuf::from("target/demo.png"),
    };
    let mut args = std::env::args().skip(1);
    while let Some(name) = args.next() {
        let value = args
            .next()
            .ok_or_else(|| format!("{name} needs a value, or is not an option"))?;
        let wrong = || format!("{name} {value} makes no sense");
        match name.as_str() {
            "--driver" => options.driver = Some(value.into()),
            "--device" => options.device = value.parse().map_err(|_| wrong())?,
            "--samples" => options.samples = Some(value.parse().map_err(|_| wrong())?),
            "--seconds" => options.seconds = value.parse().map_err(|_| wrong())?,
            "--out" => options.out = value.into(),
            "--size" => {
                let (w, h) = value.split_once('x').ok_or_else(wrong)?;
                let size = (
                    w.parse().map_err(|_| wrong())?,
                    h.parse().map_err(|_| wrong())?,
                );
                // The glow is computed on squares of four by four pixels.
                if size.0 % 4 != 0 || size.1 % 4 != 0 || size.0 * size.1 == 0 {
                    return Err(wrong());
                }
                options.size = Some(size);
            }
            _ => return Err(format!("{name} is not an option")),
        }
    }
    Ok(options)
}

/// Makes the loader see one driver only. What it reads for that lives as long as the result.
fn choose_driver(options: &Options) -> std::result::Result<Option<Scratch>, String> {
    let driver = match &options.driver {
        Some(driver) => driver.clone(),
        None if std::env::var_os("OCL_ICD_VENDORS").is_some() => return Ok(None),
        None => built_driver()?,
    };
    let place = Scratch::new("demo").map_err(|error| error.to_string())?;
    let directory = vendors_directory(&place, &driver)?;
    std::env::set_var("OCL_ICD_VENDORS", directory);
    std::env::remove_var("OCL_ICD_FILENAMES");
    Ok(Some(place))
}

/// Everything that rendering needs, for one picture size.
struct Scene {
    width: usize,
    height: usize,
    render: Kernel,
    bright: Kernel,
    blur: Kernel,
    develop: Kernel,
    sums: Buffer,
    glow: [Buffer; 2],
    image: Buffer,
}

impl Scene {
    fn new(context: &Context, kernels: [Kernel; 4], size: (usize, usize)) -> Result<Self> {
        let (width, height) = size;
        let [render, bright, blur, develop] = kernels;
        let small = (width / 4) * (height / 4) * 16;
        Ok(Self {
            width,
            height,
            render,
            bright,
            blur,
            develop,
            sums: context.buffer(width * height * 16)?,
            glow: [context.buffer(small)?, context.buffer(small)?],
            image: context.buffer(width * height * 4)?,
        })
    }

    /// One sample for each pixel of some rows.
    fn render(&self, queue: &Queue, first_row: usize, rows: usize, sample: u32) -> Result<()> {
        self.render
            .arg_buffer(0, &self.sums)?
            .arg(1, self.width as i32)?
            .arg(2, self.height as i32)?
            .arg(3, first_row as i32)?
            .arg(4, sample)?;
        let global = [self.width.next_multiple_of(8), rows.next_multiple_of(4)];
        queue.launch(&self.render, &global, &[8, 4])
    }

    /// Glow, tone curve, bytes.
    fn develop(&self, queue: &Queue, samples: u32) -> Result<()> {
        let (sw, sh) = (self.width / 4, self.height / 4);
        let scale = 1.0 / samples as f32;
        self.bright
            .arg_buffer(0, &self.sums)?
            .arg_buffer(1, &self.glow[0])?
            .arg(2, self.width as i32)?
            .arg(3, sw as i32)?
            .arg(4, sh as i32)?
            .arg(5, scale)?;
        queue.launch(&self.bright, &[sw, sh], &[])?;
        for (from, to, w, h) in [(0, 1, sw, sh), (1, 0, sh, sw)] {
            self.blur
                .arg_buffer(0, &self.glow[from])?
                .arg_buffer(1, &self.glow[to])?
                .arg(2, w as i32)?
                .arg(3, h as i32)?
                .arg_local(4, (BLUR_GROUP + 2 * BLUR_RADIUS) * 16)?;
            let global = [w.next_multiple_of(BLUR_GROUP), h];
            queue.launch(&self.blur, &global, &[BLUR_GROUP, 1])?;
        }
        self.develop
            .arg_buffer(0, &self.sums)?
            .arg_buffer(1, &self.glow[0])?
            .arg_buffer(2, &self.image)?
            .arg(3, self.width as i32)?
            .arg(4, self.height as i32)?
            .arg(5, scale)?;
        queue.launch(&self.develop, &[self.width, self.height], &[])
    }
}

fn timed(work: impl FnOnce() -> Result<()>) -> Result<Duration> {
    let start = Instant::now();
    work()?;
    Ok(start.elapsed())
}

fn run(options: &Options) -> Result<()> {
    let _place = choose_driver(options).map_err(|note| problem("choosing the driver", note))?;
    let device = *devices()?
        .get(options.device)
        .ok_or_else(|| problem("finding a device", format!("no device {}", options.device)))?;
    println!(
        "device   {}\ndriver   {} ({})",
        device.name(),
        device.text(opencl_sys::CL_DRIVER_VERSION)?,
        device.text(opencl_sys::CL_DEVICE_VERSION)?
    );
    let context = device.context()?;
    let queue = context.queue()?;

    let mut program = None;
    let build = timed(|| {
        program = Some(context.program(SOURCE, "-cl-std=CL1.2 -cl-mad-enable")?);
        Ok(())
    })?;
    println!("build    {:.2} s", build.as_secs_f64());
    let program = program.ok_or_else(|| problem("building", "no program"))?;
    let kernels = || -> Result<[Kernel; 4]> {
        Ok([
            program.kernel("render")?,
            program.kernel("bright")?,
            program.kernel("blur")?,
            program.kernel("develop")?,
        ])
    };

    // A strip through the middle tells the speed; its first launch pays for what the driver does at first use.
    let mut size = options.size.unwrap_or((1280, 720));
    let mut scene = Scene::new(&context, kernels()?, size)?;
    let strip = size.1 / 16;
    let first = timed(|| {
        scene.render(&queue, size.1 / 2, strip, 0)?;
        queue.finish()
    })?;
    println!(
        "first    {:.2} s for a strip of the picture",
        first.as_secs_f64()
    );
    let strip_time = timed(|| {
        scene.render(&queue, size.1 / 2, strip, 0)?;
        queue.finish()
    })?;
    // The strip is the dearest part of the picture: most of the rest is sky and water.
    let estimate = strip_time.as_secs_f64() * 16.0 * 0.6;
    if options.size.is_none() && options.samples.is_none() && estimate > options.seconds * 1.5 {
        size = if estimate > options.seconds * 4.0 {
            (640, 360)
        } else {
            (960, 540)
        };
        scene = Scene::new(&context, kernels()?, size)?;
    }
    let share = (size.0 * size.1) as f64 / (1280.0 * 720.0);
    let samples = options.samples.unwrap_or_else(|| {
        let fitting = options.seconds / (estimate * share).max(1e-6);
        (fitting as u32).clamp(1, 64)
    });

    let start = Instant::now();
    for sample in 0..samples.max(1) {
        scene.render(&queue, 0, size.1, sample)?;
        queue.flush()?;
    }
    queue.finish()?;
    let marching = start.elapsed().as_secs_f64();
    scene.develop(&queue, samples.max(1))?;
    let pixels: Vec<[u8; 4]> = queue.read_vec(&scene.image, size.0 * size.1)?;
    let frame = start.elapsed().as_secs_f64();
    let sums: Vec<[f32; 4]> = queue.read_vec(&scene.sums, size.0 * size.1)?;
    let rays: f64 = sums.iter().map(|sum| f64::from(sum[3])).sum();
    println!(
        "picture  {} x {}, {} sample{} a pixel\nframe    {:.3} s ({:.3} s tracing, {:.4} s glow, tone curve and reading back)\n\
         speed    {:.2} Mrays/s (each ray some tens of evaluations of the distance field)",
        size.0,
        size.1,
        samples,
        if samples == 1 { "" } else { "s" },
        frame,
        marching,
        frame - marching,
        rays / marching / 1e6
    );
    check(&pixels, &sums)?;
    write_png(&options.out, size, &pixels)?;
    println!("wrote    {}", options.out.display());
    Ok(())
}

/// A picture that is blank or has holes is a failure, not a picture.
fn check(pixels: &[[u8; 4]], sums: &[[f32; 4]]) -> Result<()> {
    if sums.iter().flatten().any(|value| !value.is_finite()) {
        return Err(problem(
            "rendering",
            "there are values that are not numbers",
        ));
    }
    if sums.iter().any(|sum| sum[3] < 1.0) {
        return Err(problem(
            "rendering",
            "there are pixels that were not computed",
        ));
    }
    let mut levels = [0usize; 256];
    for pixel in pixels {
        levels[usize::from(pixel[1])] += 1;
    }
    let used = levels.iter().filter(|&&count| count > 0).count();
    if used < 64 || pixels.iter().any(|pixel| pixel[3] != 255) {
        return Err(problem("rendering", format!("only {used} levels of green")));
    }
    Ok(())
}

fn write_png(path: &Path, size: (usize, usize), pixels: &[[u8; 4]]) -> Result<()> {
    let write = || -> std::result::Result<(), Box<dyn std::error::Error>> {
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        let file = std::io::BufWriter::new(std::fs::File::create(path)?);
        let mut encoder = png::Encoder::new(file, size.0 as u32, size.1 as u32);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        let rgb: Vec<u8> = pixels.iter().flat_map(|p| [p[0], p[1], p[2]]).collect();
        let mut writer = encoder.write_header()?;
        writer.write_image_data(&rgb)?;
        writer.finish()?;
        Ok(())
    };
    write().map_err(|error| problem("writing the picture", error.to_string()))
}
