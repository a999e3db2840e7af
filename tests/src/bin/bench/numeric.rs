//! Linear algebra, sorting, transforms.

use super::single::Bench;
use super::work::{expect, Figure, Ready, Rig};
use pumice_tests::client::Result;

const SOURCE: &str = include_str!("numeric.cl");

pub fn gemm(rig: &Rig) -> Result<Option<Ready>> {
    let n: usize = rig.pick(512, 2048);
    let entry = |i: usize, salt: usize| ((i * 7919 + salt) % 17) as f32 - 8.0;
    let a: Vec<f32> = (0..n * n).map(|i| entry(i, 3)).collect();
    let b: Vec<f32> = (0..n * n).map(|i| entry(i, 11)).collect();
    let bench = Bench::new(rig, SOURCE, "gemm")?
        .with(&a)?
        .with(&b)?
        .with(&vec![0f32; n * n])?;
    bench.kernel.arg(3, n as u32)?;
    let got: Vec<f32> = bench.first((&[n, n], &[]), 2, n * n)?;
    for i in (0..n * n).step_by(n * n / 64 + 1) {
        let (y, x) = (i / n, i % n);
        // Whole numbers small enough to be exact.
        let want: f32 = (0..n).map(|k| a[y * n + k] * b[k * n + x]).sum();
        expect(got[i] == want, "the product")?;
    }
    let figure = Figure::Giga(2.0 * (n * n * n) as f64, "GFLOP/s");
    Ok(Some(bench.ready([n, n], None, figure)))
}

pub fn transpose(rig: &Rig) -> Result<Option<Ready>> {
    if !rig.takes_groups_of_256()? {
        return Ok(None);
    }
    let n: usize = rig.pick(2048, 16384);
    let input: Vec<f32> = (0..n * n).map(|i| i as f32).collect();
    let bench = Bench::new(rig, SOURCE, "transpose")?
        .with(&input)?
        .with(&vec![0f32; n * n])?;
    bench.kernel.arg(2, n as u32)?;
    let (global, local) = ([n, n / 4], [32, 8]);
    let got: Vec<f32> = bench.first((&global, &local), 1, n * n)?;
    let right = |i: usize| got[i] == input[i % n * n + i / n];
    expect((0..n * n).step_by(101).all(right), "the matrix")?;
    let figure = Figure::Giga(8.0 * (n * n) as f64, "GB/s");
    Ok(Some(bench.ready(global, Some(local), figure)))
}

pub fn sparse(rig: &Rig) -> Result<Option<Ready>> {
    let rows: usize = rig.pick(1 << 17, 1 << 22);
    let mut starts = vec![0u32];
    let (mut columns, mut values) = (Vec::new(), Vec::new());
    for row in 0..rows {
        // Around the diagonal, and a few anywhere.
        for i in 0..8 + row % 9 {
            let far = (row * 2_654_435 + i * 40503) % rows;
            let near = (row + i).saturating_sub(4).min(rows - 1);
            columns.push(if i % 4 == 3 { far } else { near } as u32);
            values.push((1 + (row + i) % 5) as f32);
        }
        starts.push(columns.len() as u32);
    }
    let x: Vec<f32> = (0..rows).map(|i| (i % 13) as f32).collect();
    let bench = Bench::new(rig, SOURCE, "spmv")?
        .with(&starts)?
        .with(&columns)?
        .with(&values)?
        .with(&x)?
        .with(&vec![0f32; rows])?;
    let got: Vec<f32> = bench.first((&[rows], &[]), 4, rows)?;
    for row in (0..rows).step_by(rows / 997) {
        let all = starts[row] as usize..starts[row + 1] as usize;
        let want: f32 = all.map(|i| values[i] * x[columns[i] as usize]).sum();
        expect(got[row] == want, "the product")?;
    }
    let figure = Figure::Giga(2.0 * values.len() as f64, "GFLOP/s");
    Ok(Some(bench.ready([rows], None, figure)))
}

pub fn sort(rig: &Rig) -> Result<Option<Ready>> {
    if !rig.takes_groups_of_256()? {
        return Ok(None);
    }
    let count: usize = rig.pick(1 << 20, 1 << 24);
    let blocks = count / 1024;
    let (context, queue) = rig.open()?;
    let program = context.program(SOURCE, rig.options())?;
    let keys: Vec<u32> = (0..count as u32)
        .map(|i| i.wrapping_mul(0x9e37_79b1) ^ i >> 7)
        .collect();
    let input = context.buffer(count * 4)?;
    let buffers = [context.buffer(count * 4)?, context.buffer(count * 4)?];
    let counts = context.buffer(blocks * 64)?;
    queue.write(&input, &keys)?;
    let [tally, scan, scatter] = ["sort_count", "sort_scan", "sort_move"];
    let (tally, scan, scatter) = (
        program.kernel(tally)?,
        program.kernel(scan)?,
        program.kernel(scatter)?,
    );
    tally.arg_buffer(1, &counts)?;
    scan.arg_buffer(0, &counts)?.arg(1, (blocks * 16) as u32)?;
    scatter.arg_buffer(2, &counts)?;
    let once = move || -> Result<Vec<u32>> {
        let _keep = (&context, &program, &counts);
        queue.copy(&input, &buffers[0], count * 4)?;
        for pass in 0..8usize {
            let (from, to) = (&buffers[pass % 2], &buffers[(pass + 1) % 2]);
            let shift = 4 * pass as u32;
            tally.arg_buffer(0, from)?.arg(2, shift)?;
            queue.launch(&tally, &[blocks * 256], &[256])?;
            queue.launch(&scan, &[256], &[256])?;
            scatter
                .arg_buffer(0, from)?
                .arg_buffer(1, to)?
                .arg(3, shift)?;
            queue.launch(&scatter, &[blocks * 256], &[256])?;
        }
        queue.read_vec(&buffers[0], count)
    };
    let mut want = keys;
    want.sort_unstable();
    expect(once()? == want, "the order")?;
    Ok(Some(Ready {
        run: Box::new(move |n| {
            for _ in 0..n {
                once()?;
            }
            Ok(())
        }),
        figure: Figure::Giga(count as f64, "Gkeys/s"),
    }))
}

pub fn fft(rig: &Rig) -> Result<Option<Ready>> {
    if !rig.takes_groups_of_256()? {
        return Ok(None);
    }
    let batches: usize = rig.pick(1024, 65536);
    let turn = |k: usize| {
        let angle = -std::f64::consts::TAU * k as f64 / 1024.0;
        [angle.cos() as f32, angle.sin() as f32]
    };
    let turns: Vec<[f32; 2]> = (0..1024).map(turn).collect();
    let point = |i: usize| [((i * 31) % 64) as f32 / 64.0, ((i * 17) % 32) as f32 / 32.0];
    let input: Vec<[f32; 2]> = (0..batches * 1024).map(|i| point(i + i / 1024)).collect();
    let bench = Bench::new(rig, SOURCE, "fft")?
        .with(&input)?
        .with(&vec![[0f32; 2]; batches * 1024])?
        .with(&turns)?;
    let global = [batches * 256];
    let got: Vec<[f32; 2]> = bench.first((&global, &[256]), 1, batches * 1024)?;
    for (batch, k) in [(0, 0), (0, 1), (3, 517), (batches - 1, 1000)] {
        let mut want = [0f64; 2];
        for i in 0..1024 {
            let [x, y] = input[batch * 1024 + i].map(f64::from);
            let angle = -std::f64::consts::TAU * (i * k % 1024) as f64 / 1024.0;
            want[0] += x * angle.cos() - y * angle.sin();
            want[1] += x * angle.sin() + y * angle.cos();
        }
        let got = got[batch * 1024 + k];
        let near = |c: usize| (f64::from(got[c]) - want[c]).abs() < 2e-3;
        expect(near(0) && near(1), "the transform")?;
    }
    let figure = Figure::Giga(5.0 * 1024.0 * 10.0 * batches as f64, "GFLOP/s");
    Ok(Some(bench.ready(global, Some([256]), figure)))
}

pub fn collatz(rig: &Rig) -> Result<Option<Ready>> {
    let count: usize = rig.pick(1 << 18, 1 << 23);
    let bench = Bench::new(rig, SOURCE, "collatz")?.with(&vec![0u32; count])?;
    let got: Vec<u32> = bench.first((&[count], &[]), 0, count)?;
    for i in (0..count).step_by(count / 501) {
        let (mut n, mut steps) = (i as u32 + 1, 0);
        while n != 1 {
            n = match n & 1 {
                0 => n >> 1,
                _ => n.wrapping_mul(3).wrapping_add(1),
            };
            steps += 1;
        }
        expect(got[i] == steps, "the number of steps")?;
    }
    let all: f64 = got.iter().map(|steps| f64::from(*steps)).sum();
    let figure = Figure::Giga(all, "Gstep/s");
    Ok(Some(bench.ready([count], None, figure)))
}
