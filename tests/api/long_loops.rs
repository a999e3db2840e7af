//! Loops that run for long. Some drivers count iterations and abandon a work-item's loops (see `unroll_loops`).

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
