//! Loops that follow indices from memory, each work-item for its own time: sparse matrices, lists, graphs. The CPU device
//! writes such loops for one work-item after the other.

use pumice_tests::{Buffer, Setup};

const ITEMS: usize = 300;

/// Rows of 0 to 12 columns, and their columns.
fn rows() -> (Vec<u32>, Vec<u32>) {
    let (mut starts, mut columns) = (vec![0u32], Vec::new());
    let mut x = 12345u32;
    for row in 0..ITEMS {
        for _ in 0..row * 7 % 13 {
            x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            columns.push((x >> 8) % ITEMS as u32);
        }
        starts.push(columns.len() as u32);
    }
    (starts, columns)
}

fn run(setup: &Setup, source: &str, count: usize) -> Vec<u32> {
    let kernel = setup.kernel_of(source, "k");
    let (starts, columns) = rows();
    let buffers: [Buffer; 3] = [
        setup.buffer_of(&starts),
        setup.buffer_of(&columns),
        setup.buffer_of(&vec![0xdead_u32; count]),
    ];
    for (i, buffer) in buffers.iter().enumerate() {
        kernel.set_buffer(i as u32, buffer);
    }
    setup.run(&kernel, &[ITEMS], None);
    setup.read::<u32>(&buffers[2], count)
}

/// Results of several types, of the last iteration and of `break`, used after the loop.
#[test]
fn what_is_left_of_a_loop() {
    let setup = Setup::new();
    let got = run(
        &setup,
        "kernel void k(global const uint *starts, global const uint *columns, global uint *out) {
            uint row = get_global_id(0), i = starts[row], end = starts[row + 1];
            float sum = 0; ulong mix = 7; uint last = 99; short found = -1; bool ended = true;
            for (; i < end; i++) {
                uint c = columns[i], d = starts[c];
                sum += d; mix = mix * 3 + c; last = d;
                if (c % 11 == 3) { found = (short)(i - starts[row]); ended = false; break; }
            }
            out[row * 5] = (uint)sum; out[row * 5 + 1] = (uint)(mix ^ mix >> 32);
            out[row * 5 + 2] = last; out[row * 5 + 3] = found; out[row * 5 + 4] = ended;
        }",
        5 * ITEMS,
    );
    let (starts, columns) = rows();
    for row in 0..ITEMS {
        let (mut sum, mut mix, mut last, mut found) = (0u32, 7u64, 99u32, -1i32);
        let range = starts[row] as usize..starts[row + 1] as usize;
        for (n, &c) in columns[range].iter().enumerate() {
            let d = starts[c as usize];
            sum += d;
            mix = mix.wrapping_mul(3).wrapping_add(c.into());
            last = d;
            if c % 11 == 3 {
                found = n as i32;
                break;
            }
        }
        let want = [
            sum,
            (mix ^ mix >> 32) as u32,
            last,
            found as u32,
            (found < 0).into(),
        ];
        assert_eq!(got[row * 5..][..5], want, "row {row}");
    }
}

/// In a branch, in a loop that all leave at once and in one that they do not; with loops and branches of its own.
#[test]
fn loops_within_loops() {
    let setup = Setup::new();
    let got = run(
        &setup,
        "kernel void k(global const uint *starts, global const uint *columns, global uint *out) {
            uint row = get_global_id(0), sum = 0;
            for (uint round = 0; round < 3; round++) {
                uint at = row + round;
                for (uint step = 0; step < row % 4 && at < 300; step++) {
                    if (row % 3 == 1) continue;
                    for (uint i = starts[at]; i < starts[at + 1]; i++) {
                        uint c = columns[i];
                        for (uint j = starts[c]; j < starts[c + 1]; j++) {
                            uint d = columns[j];
                            if (d & 1) sum += starts[d]; else sum ^= d;
                        }
                        if (c == 7) break;
                    }
                    at += 1 + (sum & 1);
                }
            }
            out[row] = sum;
        }",
        ITEMS,
    );
    let (starts, columns) = rows();
    let list = |at: usize| &columns[starts[at] as usize..starts[at + 1] as usize];
    for (row, &got) in got.iter().enumerate() {
        let mut sum = 0u32;
        for round in 0..3 {
            let mut at = row + round;
            for _ in 0..row % 4 {
                if row % 3 == 1 || at >= ITEMS {
                    break;
                }
                for &c in list(at) {
                    for &d in list(c as usize) {
                        sum = match d & 1 {
                            1 => sum.wrapping_add(starts[d as usize]),
                            _ => sum ^ d,
                        };
                    }
                    if c == 7 {
                        break;
                    }
                }
                at += 1 + (sum & 1) as usize;
            }
        }
        assert_eq!(got, sum, "row {row}");
    }
}

/// Tests stores of a loop that other work-items do not read.
#[test]
fn stores() {
    let setup = Setup::new();
    let got = run(
        &setup,
        "kernel void k(global const uint *starts, global const uint *columns, global uint *out) {
            uint row = get_global_id(0);
            out[row * 16] = starts[row + 1] - starts[row];
            for (uint i = starts[row], n = 1; i < starts[row + 1]; i++, n++)
                out[row * 16 + n] = starts[columns[i]] + out[row * 16 + n - 1];
        }",
        16 * ITEMS,
    );
    let (starts, columns) = rows();
    for row in 0..ITEMS {
        let range = starts[row] as usize..starts[row + 1] as usize;
        let mut want = vec![range.len() as u32];
        for &c in &columns[range] {
            want.push(starts[c as usize] + want[want.len() - 1]);
        }
        assert_eq!(got[row * 16..][..want.len()], want, "row {row}");
    }
}
