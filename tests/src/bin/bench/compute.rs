//! Workloads of the kind that applications spend their time in.

use super::single::Bench;
use super::work::{expect, Figure, Ready, Rig};
use opencl_sys as sys;
use pumice_tests::client::Result;

const SOURCE: &str = include_str!("compute.cl");

pub fn bytes(rig: &Rig) -> Result<Option<Ready>> {
    let count = rig.pick(32 << 20, 1 << 30);
    let input: Vec<u8> = (0..count).map(|i| (i * 7 + i / 251) as u8).collect();
    let bench = Bench::new(rig, SOURCE, "bytes")?
        .with(&vec![0u8; count])?
        .with(&input)?;
    let got: Vec<u8> = bench.first((&[count], &[]), 0, count)?;
    let right = |(got, x): (&u8, &u8)| *got == x.wrapping_mul(3).wrapping_add(1);
    expect(got.iter().zip(&input).all(right), "the bytes")?;
    let figure = Figure::Giga(2.0 * count as f64, "GB/s");
    Ok(Some(bench.ready([count], None, figure)))
}

pub fn tree(rig: &Rig) -> Result<Option<Ready>> {
    if !rig.takes_groups_of_256()? {
        return Ok(None);
    }
    let (groups, each) = (64, 256 * 256);
    let input: Vec<f32> = (0..groups * each).map(|i| (i % 16) as f32).collect();
    let bench = Bench::new(rig, SOURCE, "tree")?
        .with(&input)?
        .with(&vec![0f32; groups])?;
    let global = [groups * 256];
    let got: Vec<f32> = bench.first((&global, &[256]), 1, groups)?;
    // Sums of small whole numbers are exact.
    let right = |(got, part): (&f32, &[f32])| *got == part.iter().sum::<f32>();
    expect(got.iter().zip(input.chunks(each)).all(right), "the sums")?;
    let figure = Figure::Giga(4.0 * input.len() as f64, "GB/s");
    Ok(Some(bench.ready(global, Some([256]), figure)))
}

pub fn bodies(rig: &Rig) -> Result<Option<Ready>> {
    if !rig.takes_groups_of_256()? {
        return Ok(None);
    }
    let count = rig.pick(4096, 65536);
    let place = |i: usize, salt: usize| ((i * 7919 + salt) % 1013) as f32 / 1013.0;
    let at: Vec<[f32; 4]> = (0..count)
        .map(|i| [1, 2, 3, 4].map(|k| place(i, k * 337)))
        .collect();
    let bench = Bench::new(rig, SOURCE, "bodies")?
        .with(&at)?
        .with(&vec![[0f32; 4]; count])?;
    bench.kernel.arg(2, count as u32)?;
    let got: Vec<[f32; 4]> = bench.first((&[count], &[256]), 1, count)?;
    // Sums of many numbers lose more: as many as there are, at worst.
    let tolerance = 1e-5 * (count / 4096) as f64;
    for me in (0..count).step_by(count / 16 + 1) {
        let (mut sum, mut size) = ([0f64; 3], 0f64);
        for other in &at {
            let d = [0, 1, 2].map(|k| f64::from(other[k]) - f64::from(at[me][k]));
            let r = (d[0] * d[0] + d[1] * d[1] + d[2] * d[2] + 0.01).sqrt();
            let factor = f64::from(other[3]) / (r * r * r);
            for k in 0..3 {
                sum[k] += d[k] * factor;
                size += (d[k] * factor).abs();
            }
        }
        let near = |k: usize| (f64::from(got[me][k]) - sum[k]).abs() <= tolerance * size;
        expect((0..3).all(near), "the forces")?;
    }
    let figure = Figure::Giga((count * count) as f64, "Gpairs/s");
    Ok(Some(bench.ready([count], Some([256]), figure)))
}

/// A number that the set is computed with.
pub trait Real: Copy {
    /// Iterations at a point.
    fn iterations(x: usize, y: usize, width: usize, height: usize, most: u32) -> u32;
    /// Set if the device must support doubles.
    const DOUBLE: bool;
}

macro_rules! real {
    ($type:ty, $double:literal) => {
        impl Real for $type {
            fn iterations(x: usize, y: usize, width: usize, height: usize, most: u32) -> u32 {
                let cx = x as $type * 3.0 / width as $type - 2.0;
                let cy = y as $type * 2.0 / height as $type - 1.0;
                let (mut zx, mut zy, mut n) = (0.0 as $type, 0.0 as $type, 0);
                while n < most && zx * zx + zy * zy < 4.0 {
                    (zx, zy) = (zx * zx - zy * zy + cx, 2.0 * zx * zy + cy);
                    n += 1;
                }
                n
            }
            const DOUBLE: bool = $double;
        }
    };
}
real!(f32, false);
real!(f64, true);

pub fn mandelbrot<T: Real>(rig: &Rig, name: &str) -> Result<Option<Ready>> {
    if T::DOUBLE && !rig.device.has_fp64() {
        return Ok(None);
    }
    let (width, height) = (rig.pick(768, 6144), rig.pick(512, 4096));
    let most = 200u32;
    let count = width * height;
    let bench = Bench::new(rig, SOURCE, name)?.with(&vec![0u32; count])?;
    bench.kernel.arg(1, width as u32)?.arg(2, most)?;
    let got: Vec<u32> = bench.first((&[width, height], &[]), 0, count)?;
    // A product that is fused or not decides at the edge of the set.
    let samples = (0..count).step_by(997);
    let differ = samples
        .clone()
        .filter(|&i| got[i] != T::iterations(i % width, i / width, width, height, most));
    expect(differ.count() <= samples.count() / 50, "the set")?;
    let figure = Figure::Giga(count as f64, "Gpixel/s");
    Ok(Some(bench.ready([width, height], None, figure)))
}

pub fn histogram(rig: &Rig) -> Result<Option<Ready>> {
    if !rig.takes_groups_of_256()? {
        return Ok(None);
    }
    let groups = rig.pick(512, 16384);
    let count = groups * 16384;
    let input: Vec<u8> = (0..count as u32)
        .map(|i| (i.wrapping_mul(0x9e37_79b1) >> 24) as u8)
        .collect();
    let bench = Bench::new(rig, SOURCE, "histogram")?
        .with(&input)?
        .with(&[0u32; 256])?;
    let global = [groups * 256];
    let got: Vec<u32> = bench.first((&global, &[256]), 1, 256)?;
    let mut bins = [0u32; 256];
    input.iter().for_each(|&byte| bins[usize::from(byte)] += 1);
    expect(got == bins, "the histogram")?;
    let figure = Figure::Giga(count as f64, "GB/s");
    Ok(Some(bench.ready(global, Some([256]), figure)))
}

pub fn sha256(rig: &Rig) -> Result<Option<Ready>> {
    let count = rig.pick(1 << 17, 1 << 23);
    let bench = Bench::new(rig, SOURCE, "sha256")?.with(&vec![0u32; count])?;
    let got: Vec<u32> = bench.first((&[count], &[]), 0, count)?;
    // First words of the digests of eight bytes: of the numbers 0, 1, 12345.
    let known = [(0, 0xaf55_70f5), (1, 0x7c9f_a136), (12345, 0xe154_3551)];
    expect(known.iter().all(|&(n, word)| got[n] == word), "the digest")?;
    let figure = Figure::Giga(count as f64, "Ghash/s");
    Ok(Some(bench.ready([count], None, figure)))
}

pub fn convolve(rig: &Rig) -> Result<Option<Ready>> {
    if rig
        .device
        .value::<sys::cl_bool>(sys::CL_DEVICE_IMAGE_SUPPORT)?
        == 0
    {
        return Ok(None);
    }
    let size = [rig.pick(1024, 8192), rig.pick(1024, 8192)];
    let weights: Vec<f32> = (0..25).map(|i| (1 + i % 7) as f32 / 97.0).collect();
    let mut bench = Bench::new(rig, SOURCE, "convolve")?;
    let input = bench
        .context
        .image(size[0], size[1], sys::CL_MEM_READ_ONLY)?;
    let output = bench
        .context
        .image(size[0], size[1], sys::CL_MEM_WRITE_ONLY)?;
    let texel = |i: usize| [i * 7, i * 13 + 5, i / 3, 255 - i % 256].map(|x| (x % 256) as u8);
    let data: Vec<[u8; 4]> = (0..size[0] * size[1]).map(texel).collect();
    bench.queue.write_image(&input, size, &data)?;
    bench.kernel.arg_buffer(0, &input)?.arg_buffer(1, &output)?;
    bench.buffers = vec![input, output];
    let bench = bench.with(&weights)?;
    bench.queue.launch(&bench.kernel, &size, &[])?;
    let got = bench.queue.read_image(&bench.buffers[1], size)?;
    let at = |x: usize, y: usize, dx: usize, dy: usize| {
        let clamp = |v: usize, d: usize, n: usize| (v + d).saturating_sub(2).min(n - 1);
        data[clamp(y, dy, size[1]) * size[0] + clamp(x, dx, size[0])]
    };
    for i in (0..got.len()).step_by(4099).chain([0, got.len() - 1]) {
        let (x, y) = (i % size[0], i / size[0]);
        for (channel, &got) in got[i].iter().enumerate() {
            let tap = |t: usize| f64::from(weights[t]) * f64::from(at(x, y, t % 5, t / 5)[channel]);
            let want = (0..25).map(tap).sum::<f64>().min(255.0);
            expect((f64::from(got) - want).abs() <= 1.0, "the picture")?;
        }
    }
    let figure = Figure::Giga(got.len() as f64, "Gpixel/s");
    Ok(Some(bench.ready(size, None, figure)))
}
