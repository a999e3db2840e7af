//! Atomic operations whose work-items meet in one place, in several, or in none, as shows when they run: an executor may do
//! those that meet at once.

use pumice_tests::Setup;

const COUNT: usize = 1000;
const PLACES: usize = 64;

/// An operation: its name, its initial value, and its reference.
type Operation = (&'static str, i32, fn(i32, i32) -> i32);

const OPERATIONS: [Operation; 10] = [
    ("atomic_add", 7, |a, b| a.wrapping_add(b)),
    ("atomic_sub", 7, |a, b| a.wrapping_sub(b)),
    ("atomic_and", -1, |a, b| a & b),
    ("atomic_or", 0, |a, b| a | b),
    ("atomic_xor", 0x1234, |a, b| a ^ b),
    ("atomic_min", i32::MAX, |a, b| a.min(b)),
    ("atomic_max", i32::MIN, |a, b| a.max(b)),
    ("atomic_min", -1, |a, b| (a as u32).min(b as u32) as i32),
    ("atomic_max", 0, |a, b| (a as u32).max(b as u32) as i32),
    ("atomic_xchg", 9, |_, b| b),
];

/// The places of the work-items: one, others now and then, two, all kinds.
fn places(way: usize, i: usize) -> usize {
    match way {
        0 => 5,
        1 => 5 + usize::from(i % 37 == 0),
        2 => i / 3 % 2,
        3 => i * 7 % PLACES,
        _ => i / 100,
    }
}

#[test]
fn work_items_that_meet() {
    let setup = Setup::new();
    let mut source = String::new();
    for (number, (name, _, _)) in OPERATIONS.iter().enumerate() {
        let ty = if matches!(number, 7 | 8) {
            "uint"
        } else {
            "int"
        };
        source += &format!(
            "kernel void f{number}(global {ty} *at, global const int *place, global const {ty} *value, global {ty} *found) {{
                size_t i = get_global_id(0);
                if (place[i] >= 0) found[i] = {name}(&at[place[i]], value[i]);
             }}
             kernel void g{number}(global {ty} *at, global const int *place, global const {ty} *value, global {ty} *found) {{
                size_t i = get_global_id(0);
                if (place[i] >= 0) {name}(&at[place[i]], value[i]);
             }}\n"
        );
    }
    let program = setup.build(&source);
    let values: Vec<i32> = (0..COUNT as i32)
        .map(|i| i.wrapping_mul(0x9e37_79b9_u32 as i32) >> (i % 20))
        .collect();
    for (number, &(name, start, combine)) in OPERATIONS.iter().enumerate() {
        for (way, left_out) in (0..10).map(|n| (n / 2, n % 2 == 1)) {
            let place: Vec<i32> = (0..COUNT)
                .map(|i| match left_out && i % 5 == 1 {
                    true => -1,
                    false => places(way, i) as i32,
                })
                .collect();
            for kernel in [format!("f{number}"), format!("g{number}")] {
                let what = format!("{name}, {kernel}, way {way}, {left_out}");
                let at = setup.buffer_of(&[start; PLACES]);
                let (place_of, value_of) = (setup.buffer_of(&place), setup.buffer_of(&values));
                let found = setup.buffer(4 * COUNT);
                let run = setup.kernel(&program, &kernel);
                run.set_buffer(0, &at)
                    .set_buffer(1, &place_of)
                    .set_buffer(2, &value_of)
                    .set_buffer(3, &found);
                setup.run(&run, &[COUNT], None);
                let at = setup.read::<i32>(&at, PLACES);
                let found = setup.read::<i32>(&found, COUNT);
                for (number, &end) in at.iter().enumerate() {
                    let here = || (0..COUNT).filter(|&i| place[i] == number as i32);
                    if name != "atomic_xchg" {
                        let all = here().fold(start, |all, i| combine(all, values[i]));
                        assert_eq!(end, all, "{what}: place {number}");
                    }
                    if kernel.starts_with('f') {
                        // Each found what another left, or the first value; the end is what is left over.
                        let mut left: Vec<i32> =
                            here().map(|i| combine(found[i], values[i])).collect();
                        left.push(start);
                        let mut seen: Vec<i32> = here().map(|i| found[i]).collect();
                        seen.push(end);
                        left.sort_unstable();
                        seen.sort_unstable();
                        assert_eq!(left, seen, "{what}: place {number}");
                    }
                }
            }
        }
    }
}
