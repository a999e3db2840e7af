//! Quicksort, Sierpinski's carpet and a breadth-first search that enqueue themselves, against the host's results.

use super::on_device;
use pumice_tests::rng::Rng;
use std::collections::VecDeque;

const SAMPLES: &str = include_str!("samples.cl");

#[test]
fn quicksort() {
    let Some(on) = on_device(SAMPLES, "", 4 << 20) else {
        return;
    };
    for (count, below) in [(1, 10), (1000, 7), (50_000, 1 << 30)] {
        let mut rng = Rng::new(count as u64, 1);
        let mut numbers: Vec<i32> = (0..count).map(|_| rng.below(below) as i32 - 3).collect();
        let (data, failed) = (on.buffer(&numbers), on.buffer(&[0]));
        let kernel = on.setup.kernel(&on.program, "quicksort");
        kernel
            .set_buffer(0, &data)
            .set(1, count)
            .set_buffer(2, &failed);
        on.setup.run(&kernel, &[1], None);
        numbers.sort_unstable();
        assert_eq!(on.setup.read::<i32>(&failed, 1), [0]);
        assert!(on.setup.read::<i32>(&data, numbers.len()) == numbers);
    }
}

#[test]
fn sierpinski() {
    let Some(on) = on_device(SAMPLES, "", 1 << 20) else {
        return;
    };
    let width = 243;
    let image = on.setup.buffer_of(&vec![1u8; width * width]);
    let kernel = on.setup.kernel(&on.program, "sierpinski");
    kernel.set_buffer(0, &image).set(1, width as i32);
    on.setup.run(&kernel, &[1], None);
    let is_full = |mut x: usize, mut y: usize| {
        while x > 0 || y > 0 {
            if x % 3 == 1 && y % 3 == 1 {
                return false;
            }
            (x, y) = (x / 3, y / 3);
        }
        true
    };
    let image = on.setup.read::<u8>(&image, width * width);
    for (at, &pixel) in image.iter().enumerate() {
        let (x, y) = (at % width, at / width);
        assert_eq!(pixel != 0, is_full(x, y), "{x}, {y}");
    }
}

#[test]
fn breadth_first_search() {
    let Some(on) = on_device(SAMPLES, "", 0) else {
        return;
    };
    let nodes = 3000usize;
    let mut rng = Rng::new(77, 2);
    let (mut first, mut edges) = (vec![0i32], Vec::new());
    for node in 0..nodes {
        // A long path, with short cuts here and there; the last nodes are not reached.
        if node % 7 == 0 {
            edges.push(rng.below(nodes - 10) as i32 / 3);
        }
        if node + 1 < nodes - 10 {
            edges.push(node as i32 + 1);
        }
        first.push(edges.len() as i32);
    }
    let mut expected = vec![-1i32; nodes];
    expected[0] = 0;
    let mut queue = VecDeque::from([0usize]);
    while let Some(node) = queue.pop_front() {
        for &next in &edges[first[node] as usize..first[node + 1] as usize] {
            if expected[next as usize] < 0 {
                expected[next as usize] = expected[node] + 1;
                queue.push_back(next as usize);
            }
        }
    }
    assert!(expected.iter().any(|&depth| depth > 1000));
    let mut start = vec![-1i32; nodes];
    start[0] = 0;
    let kernel = on.setup.kernel(&on.program, "search");
    let (first, edges) = (on.buffer(&first), on.buffer(&edges));
    let (distance, found) = (on.buffer(&start), on.buffer(&vec![0; nodes]));
    let counts = on.buffer(&[1, 0]);
    kernel
        .set_buffer(0, &first)
        .set_buffer(1, &edges)
        .set_buffer(2, &distance)
        .set_buffer(3, &found)
        .set_buffer(4, &counts);
    on.setup.run(&kernel, &[1], None);
    assert_eq!(on.setup.read::<i32>(&counts, 2)[1], 0);
    assert!(on.setup.read::<i32>(&distance, nodes) == expected);
}
