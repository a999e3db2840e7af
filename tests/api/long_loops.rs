//! Loops that run for long. Some drivers count iterations and abandon a work-item's loops: lavapipe before Mesa 25.

use pumice_tests::Setup;

#[test]
fn many_iterations() {
    let setup = Setup::new();
    let kernel = setup.kernel_of(
        "kernel void k(global const int *a, global int *p, int n) {
            int i, s = 0;
            for (i = 0; i < n; i++) {
                s += a[i & 7];
                if (s == -1) break;
            }
            p[get_global_id(0) * 2] = s;
            p[get_global_id(0) * 2 + 1] = i;
        }",
        "k",
    );
    let ones = setup.buffer_of(&[1i32; 8]);
    let result = setup.buffer_of(&[0i32; 16]);
    for n in [0, 1, 5, 15, 16, 17, 65_535, 65_536, 400_001] {
        kernel.set_buffer(0, &ones).set_buffer(1, &result).set(2, n);
        setup.run(&kernel, &[8], None);
        assert_eq!(setup.read::<i32>(&result, 16), [n; 16], "{n} iterations");
    }
}

#[test]
fn nested_with_barrier() {
    let setup = Setup::new();
    let kernel = setup.kernel_of(
        "kernel void k(global int *p, int n, int m) {
            local int t[8];
            int id = get_local_id(0), s = 0;
            t[id] = 0;
            for (int i = 0; i < n; i++) {
                for (int j = 0; j < m; j++) {
                    if (j % 3 == id) continue;
                    s += j ^ i;
                }
                barrier(CLK_LOCAL_MEM_FENCE);
                t[(id + 1) % 8] += s;
                barrier(CLK_LOCAL_MEM_FENCE);
            }
            p[id] = t[id];
        }",
        "k",
    );
    let (n, m) = (1000, 301);
    let result = setup.buffer_of(&[0i32; 8]);
    kernel.set_buffer(0, &result).set(1, n).set(2, m);
    setup.run(&kernel, &[8], Some(&[8]));
    let mut expected = [0i32; 8];
    for id in 0..8i32 {
        let (mut s, mut t) = (0i32, 0i32);
        for i in 0..n {
            for j in (0..m).filter(|j| j % 3 != id) {
                s = s.wrapping_add(j ^ i);
            }
            t = t.wrapping_add(s);
        }
        expected[(id as usize + 1) % 8] = t;
    }
    assert_eq!(setup.read::<i32>(&result, 8), expected);
}

#[test]
fn many_barriers() {
    let setup = Setup::new();
    let kernel = setup.kernel_of(
        "kernel void k(global int *p, int n) {
            local int t[16];
            int id = get_local_id(0);
            t[id] = id;
            barrier(CLK_LOCAL_MEM_FENCE);
            for (int i = 0; i < n; i++) {
                int v = t[(id + 1) % 16];
                barrier(CLK_LOCAL_MEM_FENCE);
                t[id] = v;
                barrier(CLK_LOCAL_MEM_FENCE);
            }
            p[id] = t[id];
        }",
        "k",
    );
    let n = 90_001;
    let result = setup.buffer_of(&[0i32; 16]);
    kernel.set_buffer(0, &result).set(1, n);
    setup.run(&kernel, &[16], Some(&[16]));
    let expected: Vec<i32> = (0..16).map(|id| (id + n) % 16).collect();
    assert_eq!(setup.read::<i32>(&result, 16), expected);
}

/// A loop with accesses to memory in a kernel that has a barrier and many more of them.
#[test]
fn many_accesses_and_a_barrier() {
    let setup = Setup::new();
    let stores = "q[id] = id; ".repeat(256);
    let kernel = setup.kernel_of(
        &format!(
            "kernel void k(global volatile int *q, global const int *a, global long *p, int n) {{
                local int t[8];
                int id = get_local_id(0);
                t[id] = id;
                {stores}
                barrier(CLK_LOCAL_MEM_FENCE);
                long s = t[7 - id];
                for (int i = 0; i < n; i++) s += a[i & 15] ^ a[(i * 7 + id) & 15];
                p[id] = s;
            }}"
        ),
        "k",
    );
    let a: Vec<i32> = (0..16).map(|i| i * i * 31 + 5).collect();
    let n = 150_001;
    let (unused, input) = (setup.buffer_of(&[0i32; 8]), setup.buffer_of(&a));
    let result = setup.buffer_of(&[0i64; 8]);
    kernel.set_buffer(0, &unused).set_buffer(1, &input);
    kernel.set_buffer(2, &result).set(3, n);
    setup.run(&kernel, &[8], Some(&[8]));
    let expected: Vec<i64> = (0..8i32)
        .map(|id| {
            let terms = (0..n).map(|i| a[(i & 15) as usize] ^ a[((i * 7 + id) & 15) as usize]);
            i64::from(7 - id) + terms.map(i64::from).sum::<i64>()
        })
        .collect();
    assert_eq!(setup.read::<i64>(&result, 8), expected);
}

#[test]
fn millions_of_iterations() {
    let setup = Setup::new();
    let kernel = setup.kernel_of(
        "kernel void k(global const int *a, global long *p, int n, int stop) {
            long s = 0;
            int i = 0, last = get_global_id(0);
            while (true) {
                int v = a[i & 1023];
                s += v ^ last;
                last = v;
                if (s == stop || i == n) break;
                i++;
            }
            p[get_global_id(0) * 2] = s;
            long t = 0;
            for (int j = 0; j < n; j++) t += (j ^ (int)s) & a[j & 1023];
            p[get_global_id(0) * 2 + 1] = t;
        }",
        "k",
    );
    let a: Vec<i32> = (0..1024).map(|i| (i * 7919) % 1013).collect();
    let input = setup.buffer_of(&a);
    for (items, n) in [(1usize, 1_000_000i32), (1, 9_000_000), (13, 2_500_000)] {
        let result = setup.buffer_of(&vec![0i64; items * 2]);
        kernel.set_buffer(0, &input).set_buffer(1, &result);
        kernel.set(2, n).set(3, -1i32);
        setup.run(&kernel, &[items], None);
        let expected: Vec<i64> = (0..items as i32)
            .flat_map(|id| {
                let (mut s, mut last) = (0i64, id);
                for i in 0..=n {
                    let v = a[i as usize & 1023];
                    s += i64::from(v ^ last);
                    last = v;
                }
                let t = (0..n)
                    .map(|j| i64::from((j ^ s as i32) & a[j as usize & 1023]))
                    .sum();
                [s, t]
            })
            .collect();
        assert_eq!(
            setup.read::<i64>(&result, items * 2),
            expected,
            "{items} {n}"
        );
    }
}

#[test]
fn long_loops_that_differ() {
    let setup = Setup::new();
    let kernel = setup.kernel_of(
        "kernel void k(global uint *p, uint n) {
            uint id = get_global_id(0), x = id + 1, rounds = 0;
            bool odd = false;
            float f = 0;
            for (uint i = 0; i < n * (id % 3); i++) {
                uint y = x;
                while (y > 100) { y = y / 3; rounds++; }
                x = x * 1664525 + 1013904223 + y;
                odd = odd != ((x & 1) != 0);
                f = f * 0.5f + y;
            }
            if (id % 3 == 2)
                for (uint i = 0; i < n; i++) x ^= x << 13, x ^= x >> 17, x ^= x << 5;
            p[id * 3] = odd ? x : ~x;
            p[id * 3 + 1] = rounds;
            p[id * 3 + 2] = as_uint(f);
        }",
        "k",
    );
    let (items, n) = (50u32, 100_000u32);
    let result = setup.buffer_of(&vec![0u32; items as usize * 3]);
    kernel.set_buffer(0, &result).set(1, n);
    setup.run(&kernel, &[items as usize], None);
    let expected: Vec<u32> = (0..items)
        .flat_map(|id| {
            let (mut x, mut rounds, mut odd, mut f) = (id + 1, 0u32, false, 0f32);
            for _ in 0..n * (id % 3) {
                let mut y = x;
                while y > 100 {
                    y /= 3;
                    rounds += 1;
                }
                x = x
                    .wrapping_mul(1664525)
                    .wrapping_add(1013904223)
                    .wrapping_add(y);
                odd ^= x & 1 != 0;
                f = f * 0.5 + y as f32;
            }
            if id % 3 == 2 {
                for _ in 0..n {
                    x ^= x << 13;
                    x ^= x >> 17;
                    x ^= x << 5;
                }
            }
            [if odd { x } else { !x }, rounds, f.to_bits()]
        })
        .collect();
    assert_eq!(setup.read::<u32>(&result, items as usize * 3), expected);
}

#[test]
fn inner_loops_that_run_long() {
    let setup = Setup::new();
    let kernel = setup.kernel_of(
        "kernel void k(global const uint *a, global ulong *p, uint times, uint m, uint n) {
            uint id = get_global_id(0), size = get_global_size(0);
            for (uint t = 0; t < times; t++) {
                ulong all = t;
                uint seed = a[t & 15] + id;
                for (uint i = id; i < m; i += size) {
                    uint x = seed ^ i;
                    bool odd = false;
                    float f = 0;
                    for (uint j = 0; j < n; j++) {
                        uint v = a[(x + j) & 15];
                        x = (x ^ v) * 1664525 + 1013904223;
                        x ^= x >> 15;
                        odd = odd != ((x & 4) != 0);
                        f = f * 0.5f + (x & 255);
                        if ((x & 0xfffff) == 0x12345) break;
                    }
                    all = all * 31 + (odd ? x : ~x) + as_uint(f);
                    seed += x;
                }
                p[t * size + id] = all ^ seed;
            }
        }",
        "k",
    );
    let a: Vec<u32> = (0..16u32).map(|i| i.wrapping_mul(2654435761)).collect();
    let input = setup.buffer_of(&a);
    for (items, times, m, n) in [
        (1u32, 2u32, 2u32, 1_500_000u32),
        (2, 1, 541, 541),
        (5, 3, 40, 30_000),
    ] {
        let result = setup.buffer_of(&vec![0u64; (items * times) as usize]);
        kernel.set_buffer(0, &input).set_buffer(1, &result);
        kernel.set(2, times).set(3, m).set(4, n);
        setup.run(&kernel, &[items as usize], None);
        let mut expected = Vec::new();
        for t in 0..times {
            for id in 0..items {
                let (mut all, mut seed) = (u64::from(t), a[t as usize & 15].wrapping_add(id));
                for i in (id..m).step_by(items as usize) {
                    let (mut x, mut odd, mut f) = (seed ^ i, false, 0f32);
                    for j in 0..n {
                        let v = a[x.wrapping_add(j) as usize & 15];
                        x = (x ^ v).wrapping_mul(1664525).wrapping_add(1013904223);
                        x ^= x >> 15;
                        odd ^= x & 4 != 0;
                        f = f * 0.5 + (x & 255) as f32;
                        if x & 0xfffff == 0x12345 {
                            break;
                        }
                    }
                    let last = if odd { x } else { !x };
                    all = all
                        .wrapping_mul(31)
                        .wrapping_add(u64::from(last))
                        .wrapping_add(u64::from(f.to_bits()));
                    seed = seed.wrapping_add(x);
                }
                expected.push(all ^ u64::from(seed));
            }
        }
        let got = setup.read::<u64>(&result, (items * times) as usize);
        assert_eq!(got, expected, "{items} {times} {m} {n}");
    }
}

/// Groups that do not fill a driver's vectors: lanes without a work-item must not run loops, where what they load is not
/// what memory holds.
#[test]
fn loops_of_small_groups() {
    let setup = Setup::new();
    let kernel = setup.kernel_of(
        "kernel void k(global uint *out, global const uchar *in, uint count, uint none) {
            uchar bytes[512];
            for (uint i = 0; i < 512; i++) bytes[i] = in[i & 63] + i;
            // At addresses that may differ, so that each lane loads its own.
            uint step = in[8 + get_local_id(0) * none] * 64, sum = 0;
            while (count > step) {
                for (uint n = step, at = 64; n; n -= 64, at += 64)
                    for (uint i = 0; i < 64; i++) sum = rotate(sum * 5 + bytes[(at + i) & 511], 3u);
                count -= step;
            }
            for (uint at = 64; count >= 64; count -= 64, at += 64)
                for (uint i = 0; i < 64; i++) sum = rotate(sum * 5 + bytes[(at + i) & 511], 3u);
            out[get_global_id(0)] = sum;
        }",
        "k",
    );
    let input: [u8; 64] = std::array::from_fn(|i| i as u8);
    let bytes: [u8; 512] = std::array::from_fn(|i| input[i & 63].wrapping_add(i as u8));
    let from = setup.buffer_of(&input);
    for count in [1, 64, 300, 936u32] {
        let mut sum = 0u32;
        let blocks = |sum: &mut u32, bytes_in_all: usize| {
            for at in 64..64 + bytes_in_all / 64 * 64 {
                let byte = u32::from(bytes[at & 511]);
                *sum = sum.wrapping_mul(5).wrapping_add(byte).rotate_left(3);
            }
        };
        let mut left = count;
        while left > 512 {
            blocks(&mut sum, 512);
            left -= 512;
        }
        blocks(&mut sum, left as usize);
        for shape in [
            [1, 1, 1],
            [3, 1, 1],
            [8, 1, 1],
            [9, 1, 1],
            [1, 3, 1],
            [1, 1, 5],
            [2, 3, 2],
        ] {
            let items: usize = shape.iter().product();
            let to = setup.buffer_of(&vec![0u32; shape[0]]);
            kernel.set_buffer(0, &to).set_buffer(1, &from);
            kernel.set(2, count).set(3, 0u32);
            setup.run(&kernel, &shape, Some(&shape));
            let got = setup.read::<u32>(&to, shape[0]);
            assert_eq!(got, vec![sum; shape[0]], "{count}, {items} of {shape:?}");
        }
    }
}

/// A function so large, called so often, that one copy serves all calls; each of them is an iteration then.
#[test]
fn many_calls_of_a_large_function() {
    const ROUNDS: u32 = 160;
    const CALLS: u32 = 40;
    const TIMES: u32 = 3000;
    let rounds: String = (0..ROUNDS)
        .map(|r| format!("x = rotate(x * 2654435761u + {r}u, 5u) ^ y; y += x >> 3;\n"))
        .collect();
    let calls: String = (0..CALLS)
        .map(|c| format!("s = large(s, t[(i + {c}) & 7]);\n"))
        .collect();
    let source = format!(
        "uint large(uint x, uint y) __attribute__((noinline));
        uint large(uint x, uint y) {{
            {rounds}
            return x + y;
        }}
        kernel void k(global uint *out, global const uint *in) {{
            uint t[8], s = get_global_id(0);
            for (uint i = 0; i < 8; i++) t[in[i]] = in[i] * 3;
            for (uint i = 0; i < {TIMES}; i++) {{
                {calls}
                t[s & 7] += s;
            }}
            out[get_global_id(0)] = s;
        }}"
    );
    let setup = Setup::new();
    let kernel = setup.kernel_of(&source, "k");
    let input: [u32; 8] = [3, 1, 4, 0, 5, 2, 7, 6];
    let from = setup.buffer_of(&input);
    let to = setup.buffer_of(&[0u32; 8]);
    kernel.set_buffer(0, &to).set_buffer(1, &from);
    setup.run(&kernel, &[8], None);
    let large = |mut x: u32, mut y: u32| {
        for r in 0..ROUNDS {
            x = x.wrapping_mul(2_654_435_761).wrapping_add(r).rotate_left(5) ^ y;
            y = y.wrapping_add(x >> 3);
        }
        x.wrapping_add(y)
    };
    let expected: Vec<u32> = (0..8)
        .map(|id| {
            let mut t: [u32; 8] = std::array::from_fn(|i| i as u32 * 3);
            let mut s = id;
            for i in 0..TIMES {
                for c in 0..CALLS {
                    s = large(s, t[(i + c) as usize & 7]);
                }
                t[s as usize & 7] = t[s as usize & 7].wrapping_add(s);
            }
            s
        })
        .collect();
    assert_eq!(setup.read::<u32>(&to, 8), expected);
}
