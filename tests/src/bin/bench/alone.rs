//! Workloads in work-groups of one work-item.

use super::single::Bench;
use super::work::{expect, Figure, Ready, Rig};
use pumice_tests::client::Result;

const SOURCE: &str = include_str!("alone.cl");

/// Word of the digest that `search` looks at.
fn digest(key: u32) -> u32 {
    let [mut a, mut b, mut c, mut d] = [
        0x6745_2301 ^ key,
        0xefcd_ab89u32,
        0x98ba_dcfeu32,
        0x1032_5476u32,
    ];
    for round in 1..=32u32 {
        let mixed = a
            .wrapping_add((b & c) | (!b & d))
            .wrapping_add(round.wrapping_mul(0x9e37_79b9))
            .wrapping_add(key);
        (a, d, c) = (d, c, b);
        b = b.wrapping_add(mixed.rotate_left(7));
    }
    b
}

pub fn search(rig: &Rig) -> Result<Option<Ready>> {
    const MASK: u32 = 0xfff;
    let (groups, keys) = (rig.pick(4096, 1 << 16), 256u32);
    let bench = Bench::new(rig, SOURCE, "search")?.with(&[0u32; 1024])?;
    bench.kernel.arg(1, keys)?.arg(2, MASK)?;
    let got: Vec<u32> = bench.first((&[groups], &[1]), 0, 1024)?;
    let all = groups as u32 * keys;
    let wanted = (0..all).filter(|&key| digest(key) & MASK == 0).count();
    expect(got[0] as usize == wanted, "how many were found")?;
    let mut noted = got[1..].iter().take(wanted);
    expect(noted.all(|&key| digest(key) & MASK == 0), "what was found")?;
    let figure = Figure::Giga(f64::from(all), "Gkeys/s");
    Ok(Some(bench.ready([groups], Some([1]), figure)))
}

pub fn sort(rig: &Rig) -> Result<Option<Ready>> {
    let groups = rig.pick(4096, 1 << 16);
    let input: Vec<u32> = (0..64 * groups as u32)
        .map(|i| i.wrapping_mul(0x9e37_79b1).rotate_left(i % 13))
        .collect();
    let bench = Bench::new(rig, SOURCE, "sort_rows")?
        .with(&input)?
        .with(&vec![0u32; input.len()])?;
    let mut wanted = input.clone();
    wanted.chunks_mut(64).for_each(<[u32]>::sort_unstable);
    let got: Vec<u32> = bench.first((&[groups], &[1]), 1, input.len())?;
    expect(got == wanted, "the rows")?;
    let figure = Figure::Giga(input.len() as f64, "Gkeys/s");
    Ok(Some(bench.ready([groups], Some([1]), figure)))
}
