//! Every function of sub-groups in kernels that require a size of them (cl_intel_required_subgroup_size), which may be
//! emulated: where all work-items are, and where some lanes or some sub-groups are, against values computed here.

use super::collectives::{build, has_subgroups, sub_group_query};
use pumice_tests::sys::*;
use pumice_tests::{info, Setup};
use std::fmt::Write;

/// Returns CL_DEVICE_SUB_GROUP_SIZES_INTEL.
pub fn sizes(setup: &Setup) -> Vec<usize> {
    const DEVICE_SUB_GROUP_SIZES: cl_uint = 0x4108;
    let sizes = info!(clGetDeviceInfo(setup.device), DEVICE_SUB_GROUP_SIZES);
    let word = |bytes: &[u8]| usize::from_ne_bytes(bytes.try_into().expect("a size"));
    sizes.chunks(size_of::<usize>()).map(word).collect()
}

/// Local sizes: whole sub-groups, one work-item, odd sizes, planes and boxes.
const SHAPES: [[usize; 3]; 7] = [
    [64, 1, 1],
    [1, 1, 1],
    [7, 1, 1],
    [100, 1, 1],
    [37, 2, 1],
    [3, 5, 1],
    [5, 3, 7],
];

/// The conditions under which work-items call the functions, by `lane` and `group`.
const FLOWS: [(&str, fn(usize, usize) -> bool); 7] = [
    ("all", |_, _| true),
    ("odd lanes", |lane, _| lane % 2 == 1),
    ("every third lane", |lane, _| lane % 3 == 0),
    ("lanes but the first", |lane, _| lane != 0),
    ("odd sub-groups", |_, group| group % 2 == 1),
    ("every third sub-group", |_, group| group % 3 == 0),
    ("some of some", |lane, group| (lane + group) % 3 == 1),
];
const CONDITIONS: &str = "flow == 0 || flow == 1 && lane % 2 == 1 || flow == 2 && lane % 3 == 0 || flow == 3 && lane != 0
     || flow == 4 && group % 2 == 1 || flow == 5 && group % 3 == 0 || flow == 6 && (lane + group) % 3 == 1";

/// A work-item in its sub-group.
struct View {
    size: usize,
    /// The lanes that call the function, and the value of each lane.
    active: Vec<usize>,
    values: Vec<i64>,
    lane: usize,
}

impl View {
    /// Returns the value of a lane, if it is active.
    fn of(&self, lane: usize) -> Option<i64> {
        self.active.contains(&lane).then(|| self.values[lane])
    }
    fn own(&self) -> i64 {
        self.values[self.lane]
    }
    fn fold(&self, takes: impl Fn(usize) -> bool, start: i64, f: fn(i64, i64) -> i64) -> i64 {
        let lanes = self.active.iter().copied().filter(|&lane| takes(lane));
        lanes.map(|lane| self.values[lane]).fold(start, f)
    }
    fn all(&self, start: i64, f: fn(i64, i64) -> i64) -> i64 {
        self.fold(|_| true, start, f)
    }
    fn up_to(&self, start: i64, f: fn(i64, i64) -> i64) -> i64 {
        self.fold(|lane| lane <= self.lane, start, f)
    }
    fn before(&self, start: i64, f: fn(i64, i64) -> i64) -> i64 {
        self.fold(|lane| lane < self.lane, start, f)
    }
    fn cluster(&self, n: usize, start: i64, f: fn(i64, i64) -> i64) -> i64 {
        self.fold(|lane| lane / n == self.lane / n, start, f)
    }
    /// Returns the lanes with odd values, as bits.
    fn odd(&self) -> u64 {
        let odd = |lane: &&usize| self.values[**lane] & 1 == 1;
        self.active.iter().filter(odd).map(|lane| 1 << lane).sum()
    }
    /// Returns the bits of lanes below a number.
    fn below(&self, lane: usize) -> u64 {
        ((1u128 << lane) - 1) as u64
    }
}

/// An expression of OpenCL C, and its value as a `long` if it has one.
type Function = (&'static str, fn(&View) -> Option<i64>);

/// Functions that any work-items may call. `x` is the value of the work-item.
#[rustfmt::skip]
const FUNCTIONS: &[Function] = &[
    ("sub_group_elect()", |v| Some((v.active[0] == v.lane).into())),
    ("!!sub_group_non_uniform_all(x != 3)", |v| Some(v.active.iter().all(|&l| v.values[l] != 3).into())),
    ("!!sub_group_non_uniform_any(x == 3)", |v| Some(v.active.iter().any(|&l| v.values[l] == 3).into())),
    ("!!sub_group_non_uniform_all_equal(x & 8)", |v| {
        Some(v.active.iter().all(|&l| v.values[l] & 8 == v.own() & 8).into())
    }),
    ("!!sub_group_non_uniform_all_equal((float)(x >> 4))", |v| {
        Some(v.active.iter().all(|&l| v.values[l] >> 4 == v.own() >> 4).into())
    }),
    ("as_long(sub_group_ballot(x & 1).xy)", |v| Some(v.odd() as i64)),
    ("as_long(sub_group_ballot(x & 1).zw)", |_| Some(0)),
    ("sub_group_inverse_ballot((uint4)(0x5a5a5a5a, 0xa5a5a5a5, 0, 0)) != 0", |v| {
        Some((0xa5a5_a5a5_5a5a_5a5au64 >> v.lane & 1) as i64)
    }),
    ("sub_group_ballot_bit_extract((uint4)(0x5a5a5a5a, 0xa5a5a5a5, 0, 0), size - 1 - lane) != 0", |v| {
        Some((0xa5a5_a5a5_5a5a_5a5au64 >> (v.size - 1 - v.lane) & 1) as i64)
    }),
    ("sub_group_ballot_bit_count((uint4)(0x77777777, 0x33333333, 9, 9))", |v| {
        Some((0x3333_3333_7777_7777 & v.below(v.size)).count_ones().into())
    }),
    ("sub_group_ballot_inclusive_scan((uint4)(0x77777777, 0x33333333, 9, 9))", |v| {
        Some((0x3333_3333_7777_7777 & v.below(v.lane + 1)).count_ones().into())
    }),
    ("sub_group_ballot_exclusive_scan((uint4)(0x77777777, 0x33333333, 9, 9))", |v| {
        Some((0x3333_3333_7777_7777 & v.below(v.lane)).count_ones().into())
    }),
    ("sub_group_ballot_find_lsb((uint4)(4, 4, 4, 4))", |v| (v.size > 2).then_some(2)),
    ("sub_group_ballot_find_msb((uint4)(9, 9, 9, 9))", |v| Some(if v.size > 32 { 35 } else { 3 })),
    ("as_long(get_sub_group_eq_mask().xy)", |v| Some((1u64 << v.lane) as i64)),
    ("as_long(get_sub_group_ge_mask().xy)", |v| Some((v.below(v.size) & !v.below(v.lane)) as i64)),
    ("as_long(get_sub_group_gt_mask().xy)", |v| Some((v.below(v.size) & !v.below(v.lane + 1)) as i64)),
    ("as_long(get_sub_group_le_mask().xy)", |v| Some(v.below(v.lane + 1) as i64)),
    ("as_long(get_sub_group_lt_mask().xy)", |v| Some(v.below(v.lane) as i64)),
    ("sub_group_broadcast_first(x)", |v| v.of(v.active[0])),
    ("sub_group_non_uniform_broadcast((long)x << 40 | x, 3)", |v| v.of(3).map(|x| x << 40 | x)),
    ("sub_group_shuffle(x, (lane * 3 + 1) % size)", |v| v.of((v.lane * 3 + 1) % v.size)),
    ("sub_group_shuffle((char)x, (lane * 3 + 1) % size)", |v| v.of((v.lane * 3 + 1) % v.size)),
    ("(long)sub_group_shuffle((float)x, (lane * 5 + 2) % size)", |v| v.of((v.lane * 5 + 2) % v.size)),
    ("sub_group_shuffle_xor((short)x, 1)", |v| v.of(v.lane ^ 1)),
    ("sub_group_shuffle_xor(x, size - 1)", |v| v.of(v.lane ^ (v.size - 1))),
    ("sub_group_shuffle_up(x, 1)", |v| v.lane.checked_sub(1).and_then(|lane| v.of(lane))),
    ("sub_group_shuffle_up((long)x, 3)", |v| v.lane.checked_sub(3).and_then(|lane| v.of(lane))),
    ("sub_group_shuffle_down(x, 2)", |v| v.of(v.lane + 2)),
    ("sub_group_rotate(x, 3)", |v| v.of((v.lane + 3) % v.size)),
    ("sub_group_rotate((ushort)x, -1)", |v| v.of((v.lane + v.size - 1) % v.size)),
    ("sub_group_clustered_rotate(x, 1, 4)", |v| v.of(v.lane / 4 * 4 + (v.lane + 1) % 4)),
    ("sub_group_non_uniform_reduce_add(x)", |v| Some(v.all(0, |a, b| a + b))),
    ("sub_group_non_uniform_reduce_add((char)(x * 3))", |v| Some(v.all(0, |a, b| a + b * 3) as i8 as i64)),
    ("sub_group_non_uniform_reduce_add((long)x << 33)", |v| Some(v.all(0, |a, b| a + b) << 33)),
    ("(long)sub_group_non_uniform_reduce_add((float)x)", |v| Some(v.all(0, |a, b| a + b))),
    ("sub_group_non_uniform_reduce_mul(x * 2 + 1)", |v| {
        Some(v.all(1, |a, b| a.wrapping_mul(b * 2 + 1)) as i32 as i64)
    }),
    ("sub_group_non_uniform_reduce_min((short)-x)", |v| Some(v.all(999, |a, b| a.min(-b)))),
    ("(long)sub_group_non_uniform_reduce_min((float)x)", |v| Some(v.all(999, i64::min))),
    ("sub_group_non_uniform_reduce_max((ulong)x)", |v| Some(v.all(0, i64::max))),
    ("sub_group_non_uniform_reduce_and(x | 16)", |v| Some(v.all(-1, |a, b| a & (b | 16)))),
    ("sub_group_non_uniform_reduce_or((uchar)x)", |v| Some(v.all(0, |a, b| a | b))),
    ("sub_group_non_uniform_reduce_xor((long)x)", |v| Some(v.all(0, |a, b| a ^ b))),
    ("!!sub_group_non_uniform_reduce_logical_and(x != 3)", |v| {
        Some(v.all(1, |a, b| a & i64::from(b != 3)))
    }),
    ("!!sub_group_non_uniform_reduce_logical_xor(x & 1)", |v| Some((v.odd().count_ones() & 1).into())),
    ("sub_group_non_uniform_scan_inclusive_add(x)", |v| Some(v.up_to(0, |a, b| a + b))),
    ("(long)sub_group_non_uniform_scan_inclusive_add((float)x)", |v| Some(v.up_to(0, |a, b| a + b))),
    ("sub_group_non_uniform_scan_inclusive_max((char)x)", |v| Some(v.up_to(0, i64::max))),
    ("sub_group_non_uniform_scan_inclusive_mul((long)x * 2 + 1)", |v| {
        Some(v.up_to(1, |a, b| a.wrapping_mul(b * 2 + 1)))
    }),
    ("!!sub_group_non_uniform_scan_inclusive_logical_or(x == 3)", |v| {
        Some(v.up_to(0, |a, b| a | i64::from(b == 3)))
    }),
    ("sub_group_non_uniform_scan_exclusive_add((long)x)", |v| Some(v.before(0, |a, b| a + b))),
    ("sub_group_non_uniform_scan_exclusive_min((ushort)x)", |v| Some(v.before(0xffff, i64::min))),
    ("sub_group_non_uniform_scan_exclusive_or(x)", |v| Some(v.before(0, |a, b| a | b))),
    ("sub_group_non_uniform_scan_exclusive_and((uchar)x)", |v| Some(v.before(0xff, |a, b| a & b))),
    ("!!sub_group_non_uniform_scan_exclusive_logical_xor(x & 1)", |v| {
        Some(((v.odd() & v.below(v.lane)).count_ones() & 1).into())
    }),
    ("sub_group_clustered_reduce_add(x, 2)", |v| Some(v.cluster(2, 0, |a, b| a + b))),
    ("sub_group_clustered_reduce_max((short)x, 4)", |v| Some(v.cluster(4, 0, i64::max))),
    ("sub_group_clustered_reduce_xor((long)x, 1)", |v| Some(v.own())),
    ("!!sub_group_clustered_reduce_logical_or(x == 3, 4)", |v| {
        Some(v.cluster(4, 0, |a, b| a | i64::from(b == 3)))
    }),
];

/// Functions that all work-items of a sub-group call, or none.
#[rustfmt::skip]
const UNIFORM: &[Function] = &[
    ("!!sub_group_all(x != 3)", |v| Some(v.active.iter().all(|&l| v.values[l] != 3).into())),
    ("!!sub_group_any(x == 3)", |v| Some(v.active.iter().any(|&l| v.values[l] == 3).into())),
    ("sub_group_broadcast(x, get_sub_group_size() - 1)", |v| v.of(v.values.len() - 1)),
    ("sub_group_reduce_add(x)", |v| Some(v.all(0, |a, b| a + b))),
    ("(long)sub_group_reduce_max((float)x)", |v| Some(v.all(0, i64::max))),
    ("sub_group_scan_inclusive_min((long)x)", |v| Some(v.up_to(999, i64::min))),
    ("sub_group_scan_exclusive_add((uint)x)", |v| Some(v.before(0, |a, b| a + b))),
    ("get_sub_group_size()", |v| Some(v.values.len() as i64)),
    ("get_max_sub_group_size()", |v| Some(v.size as i64)),
];

/// The functions of one kernel: drivers take long for many.
const BATCH: usize = 12;

fn kernel(size: usize, functions: &[&Function]) -> String {
    let mut body = String::new();
    for (k, (code, _)) in functions.iter().enumerate() {
        writeln!(body, "out[{k}] = {code};").unwrap();
    }
    format!(
        "__attribute__((intel_reqd_sub_group_size({size})))
         kernel void f(global const int *in, global long *out, int flow) {{
             size_t at = get_global_id(0) + get_global_size(0) * (get_global_id(1) + get_global_size(1) * get_global_id(2));
             int x = in[at];
             out += at * {BATCH};
             const uint lane = get_sub_group_local_id(), group = get_sub_group_id(), size = {size};
             if ({CONDITIONS}) {{
                 {body}
             }}
         }}"
    )
}

/// A value that no function has.
const UNTOUCHED: i64 = i64::MIN + 1;

fn check(setup: &Setup, size: usize, functions: &[&Function], flows: &[usize]) {
    let program = build(setup, &kernel(size, functions));
    let kernel = setup.kernel(&program, "f");
    for (turn, shape) in SHAPES.iter().enumerate() {
        let items: usize = shape.iter().product();
        let input: Vec<i32> = (0..items as i32).map(|i| (i * 37 + 11) % 23).collect();
        let source = setup.buffer_of(&input);
        for &flow in flows {
            // All of them in the largest groups.
            if items < 64 && (turn + flow) % 3 != 0 {
                continue;
            }
            let out = setup.buffer_of(&vec![UNTOUCHED; items * BATCH]);
            kernel
                .set_buffer(0, &source)
                .set_buffer(1, &out)
                .set(2, flow as i32);
            setup.run(&kernel, shape, Some(shape));
            let got = setup.read::<i64>(&out, items * BATCH);
            let (name, calls) = FLOWS[flow];
            for (item, got) in got.chunks(BATCH).enumerate() {
                let (group, lane) = (item / size, item % size);
                let first = group * size;
                let values = &input[first..items.min(first + size)];
                let lanes = 0..values.len();
                let view = View {
                    size,
                    active: lanes.filter(|&lane| calls(lane, group)).collect(),
                    values: values.iter().map(|&x| x.into()).collect(),
                    lane,
                };
                for ((code, expected), &got) in functions.iter().zip(got) {
                    let expected = match calls(lane, group) {
                        true => expected(&view),
                        false => Some(UNTOUCHED),
                    };
                    assert!(
                        expected.is_none_or(|expected| got == expected),
                        "{code} of {name}, sub-groups of {size}, {shape:?}, work-item {item}: {got} in place of {expected:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn functions_of_required_sizes() {
    let setup = Setup::new();
    if !has_subgroups(&setup) {
        return pumice_tests::left_out("the device has no sub-groups");
    }
    for size in sizes(&setup) {
        // A ballot is compared as one `ulong`.
        if size > 64 {
            continue;
        }
        let all: Vec<&Function> = FUNCTIONS.iter().collect();
        for functions in all.chunks(BATCH) {
            check(&setup, size, functions, &[0, 1, 2, 3, 4, 5, 6]);
        }
        let uniform: Vec<&Function> = UNIFORM.iter().collect();
        check(&setup, size, &uniform, &[0, 4, 5]);
    }
}

/// Sub-groups that go different ways, or round a loop as often as their number says, exchange values through local memory
/// between barriers of their own.
#[test]
fn barriers_of_required_sizes() {
    let setup = Setup::new();
    if !has_subgroups(&setup) {
        return pumice_tests::left_out("the device has no sub-groups");
    }
    for size in sizes(&setup) {
        let program = build(
            &setup,
            &format!(
                "__attribute__((intel_reqd_sub_group_size({size})))
                 kernel void f(global int *out) {{
                     local int data[128];
                     int lid = get_local_id(0), lane = get_sub_group_local_id(), sum = 0;
                     int mirror = lid - lane + get_sub_group_size() - 1 - lane;
                     for (uint i = 0; i <= get_sub_group_id(); i++) {{
                         if (lane & 1) data[lid] = lid + (int)i; else data[lid] = lid * 3 - (int)i;
                         sub_group_barrier(CLK_LOCAL_MEM_FENCE);
                         sum += data[mirror];
                         sub_group_barrier(CLK_LOCAL_MEM_FENCE, memory_scope_sub_group);
                     }}
                     if (get_sub_group_id() % 2) {{
                         data[lid] = sum;
                         sub_group_barrier(CLK_LOCAL_MEM_FENCE);
                         sum = data[mirror] * 5;
                     }}
                     out[get_global_id(0)] = sum;
                 }}"
            ),
        );
        let kernel = setup.kernel(&program, "f");
        for local in [128, 90, 37] {
            let out = setup.buffer(2 * local * 4);
            kernel.set_buffer(0, &out);
            setup.run(&kernel, &[2 * local], Some(&[local]));
            let sum_of = |lid: usize| -> i32 {
                let (first, lane) = (lid / size * size, lid % size);
                let other = (first + size).min(local) - 1 - lane;
                let value = |i: i32| match (other - first) & 1 {
                    1 => other as i32 + i,
                    _ => other as i32 * 3 - i,
                };
                (0..=(lid / size) as i32).map(value).sum()
            };
            for (item, got) in setup.read::<i32>(&out, 2 * local).into_iter().enumerate() {
                let lid = item % local;
                let (first, lane) = (lid / size * size, lid % size);
                let mirror = (first + size).min(local) - 1 - lane;
                let expected = match lid / size % 2 {
                    1 => sum_of(mirror) * 5,
                    _ => sum_of(lid),
                };
                assert_eq!(got, expected, "work-item {item} of {local} by {size}");
            }
        }
    }
}

/// Work-group functions, queries, and the choice of a size in kernels that require a size of sub-groups.
#[test]
fn work_groups_of_required_sizes() {
    let setup = Setup::new();
    if !has_subgroups(&setup) {
        return pumice_tests::left_out("the device has no sub-groups");
    }
    for size in sizes(&setup) {
        let program = build(
            &setup,
            &format!(
                "__attribute__((intel_reqd_sub_group_size({size})))
                 kernel void f(global uint *out) {{
                     uint lid = get_local_linear_id();
                     out += get_global_id(0) * 8;
                     out[0] = work_group_reduce_add(lid);
                     out[1] = work_group_scan_exclusive_add(lid);
                     out[2] = work_group_broadcast(lid, 5);
                     out[3] = get_num_sub_groups();
                     out[4] = get_enqueued_num_sub_groups();
                     out[5] = get_sub_group_id();
                     out[6] = get_sub_group_size();
                     out[7] = work_group_any(sub_group_reduce_add(lid) == 6);
                 }}"
            ),
        );
        let kernel = setup.kernel(&program, "f");
        // 70 is no multiple of 32, so the last group is smaller.
        let (items, local) = (70, 32);
        let out = setup.buffer(items * 8 * 4);
        kernel.set_buffer(0, &out);
        setup.run(&kernel, &[items], Some(&[local]));
        for (item, got) in setup.read::<u32>(&out, items * 8).chunks(8).enumerate() {
            let (lid, group) = (item % local, item / local);
            let many = local.min(items - group * local);
            let first = lid / size * size;
            let part = size.min(many - first);
            let any = (0..many.div_ceil(size)).any(|part| {
                let lanes = part * size..many.min(part * size + size);
                lanes.sum::<usize>() == 6
            });
            let expected = [
                (0..many).sum(),
                (0..lid).sum(),
                5,
                many.div_ceil(size),
                local.div_ceil(size),
                lid / size,
                part,
                usize::from(any),
            ];
            let expected = expected.map(|value| value as u32);
            assert_eq!(got, expected, "work-item {item} by {size}");
        }
        let query = |param, sizes: &[usize]| sub_group_query(kernel.0, setup.device, param, sizes);
        let count = query(CL_KERNEL_SUB_GROUP_COUNT_FOR_NDRANGE, &[100]);
        assert_eq!(count, 100usize.div_ceil(size));
        let most = query(CL_KERNEL_MAX_NUM_SUB_GROUPS, &[]);
        let device = pumice_tests::info_value!(
            u32,
            clGetDeviceInfo(setup.device),
            CL_DEVICE_MAX_NUM_SUB_GROUPS
        );
        assert!((2..=device as usize).contains(&most), "{most} of {device}");
        assert_eq!(
            query(CL_KERNEL_LOCAL_SIZE_FOR_SUB_GROUP_COUNT, &[2]),
            2 * size
        );
    }
}
