//! Work-items whose ways part: what those that come to one place have of values, and who takes part in collective functions
//! there. On the CPU device with vectors of every width.

use pumice_tests::sys::*;
use pumice_tests::{good_child, info_text, info_value, job, ok, Setup};
use std::ptr::{null, null_mut};

/// Runs a test of this file as a child for every width of vectors; on other devices here.
fn at_all_widths(name: &str, test: fn()) {
    if job().is_some() {
        return;
    }
    let setup = Setup::new();
    let device = info_text!(clGetDeviceInfo(setup.device), CL_DEVICE_NAME);
    let kind = info_value!(u64, clGetDeviceInfo(setup.device), CL_DEVICE_TYPE);
    if kind != CL_DEVICE_TYPE_CPU || device.contains("llvmpipe") {
        return test();
    }
    for width in ["128", "256", "512"] {
        let output = good_child(
            &format!("divergence::{name}"),
            "run",
            &[("PUMICE_CPU_WIDTH", width)],
        );
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains("1 passed"), "{text}");
    }
}

/// Declares tests and the children that they are.
macro_rules! tests {
    ($($(#[$doc:meta])* $child:ident: $name:ident;)*) => {$(
        $(#[$doc])*
        #[test]
        fn $name() {
            at_all_widths(stringify!($child), inner::$name);
        }

        /// Not a test of its own: the child of the one before.
        #[test]
        fn $child() {
            if job().is_some() {
                inner::$name();
            }
        }
    )*};
}

tests! {
    /// LLVM makes such a switch of `x == 0 || x == 3 || x == 7`, too.
    cases_child: cases_that_share_a_target_are_one_arm;
    /// A serial loop within what a leaking loop has left behind.
    serial_child: a_serial_loop_reads_what_its_lane_wrote;
    /// Neighbours of 32 bits that wrap around, as data of 64 bits.
    extended_child: extended_values_are_those_of_each_lane;
    sums_child: sums_of_ids_wrap_around;
    /// Each level doubled what its body is, as often as it has labels.
    nested_child: nested_switches_are_compiled_once;
}

mod inner {
    use super::*;

    const ITEMS: usize = 64;

    pub fn cases_that_share_a_target_are_one_arm() {
        let setup = Setup::new();
        if !crate::collectives::has_subgroups(&setup) {
            return pumice_tests::left_out("the device has no sub-groups");
        }
        let of: Vec<i32> = (0..ITEMS).map(|i| [0, 3, 0, 0, 7, 3][i % 6]).collect();
        let bodies = [
            "work_group_reduce_add(1)",
            "work_group_scan_inclusive_add(1)",
            "work_group_broadcast(g, 1)",
            "work_group_all(l != 1)",
            "work_group_any(l == 1)",
        ];
        let ways = [
            "if (a[g] == 0 || a[g] == 3 || a[g] == 7) out[g] = BODY;",
            "switch (a[g]) { case 0: case 3: case 7: out[g] = BODY; break; case 9: out[g] = -1; }",
            "switch (a[g]) { case 9: out[g] = -1; break; case 3: case 7: default: out[g] = BODY; }",
        ];
        let mut source = String::new();
        for (way, text) in ways.iter().enumerate() {
            for (number, body) in bodies.iter().enumerate() {
                let text = text.replace("BODY", body);
                source += &format!(
                    "kernel void f{way}{number}(global const int *a, global int *out) {{
                        int g = get_global_id(0), l = get_local_id(0);
                        {text}
                     }}\n"
                );
            }
        }
        for options in ["-cl-std=CL3.0", "-cl-std=CL3.0 -cl-opt-disable"] {
            let program = setup.try_build(&source, options).expect("it builds");
            for (way, number) in (0..ways.len() * bodies.len()).map(|n| (n % 3, n / 3)) {
                let kernel = setup.kernel(&program, &format!("f{way}{number}"));
                let (a, out) = (setup.buffer_of(&of), setup.buffer(4 * ITEMS));
                kernel.set_buffer(0, &a).set_buffer(1, &out);
                setup.run(&kernel, &[ITEMS], Some(&[32]));
                let expected: Vec<i32> = (0..ITEMS as i32)
                    .map(|i| match number {
                        0 => 32,
                        1 => i % 32 + 1,
                        2 => i / 32 * 32 + 1,
                        3 => 0,
                        _ => 1,
                    })
                    .collect();
                let what = format!("{} {} {options}", ways[way], bodies[number]);
                assert_eq!(setup.read::<i32>(&out, ITEMS), expected, "{what}");
            }
        }
    }

    pub fn a_serial_loop_reads_what_its_lane_wrote() {
        const N: usize = 33;
        const TABLE: [u32; 16] = [
            1,
            3,
            4_110_059_054,
            2,
            7,
            5,
            4,
            7,
            3_845_957_513,
            6,
            982_098_769,
            3_984_600_215,
            2,
            3_776_544_626,
            6,
            6,
        ];
        let table: Vec<String> = TABLE.iter().map(u32::to_string).collect();
        let source = format!(
            "constant uint table[16] = {{{}}};
             kernel void f(global ulong *out, global const uint *in, global uint *buf, uint n) {{
                uint gid = get_global_id(0), lid = get_local_id(0);
                ulong v1 = gid, v0 = in[gid & 255], v2 = in[(gid + n) & 255];
                global uint *b = buf + gid * 16;
                if (in[gid & 255] <= (n | lid)) {{
                    for (int i = 0; i < 4; i++) {{
                        int f = 20;
                        do {{ v1 ^= table[in[12] & 15]; b[(v2 ^ v0) & 15] += n; }}
                        while (--f > 0 && (in[lid & 255] & 3) != 0);
                    }}
                }}
                out[gid] = v0 + v1 * 3 + v2 * 7;
             }}",
            table.join(", ")
        );
        let n = 3usize;
        let mut state = 5u32;
        let input: Vec<u32> = (0..256)
            .map(|i| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                if i < 40 {
                    (state >> 16) % 20
                } else {
                    state
                }
            })
            .collect();
        let expected: Vec<u64> = (0..N)
            .map(|g| {
                let (mut v1, v0, v2) = (g as u64, u64::from(input[g]), u64::from(input[g + n]));
                if input[g] as usize <= (n | g) {
                    let times = 4 * if input[g] & 3 == 0 { 1 } else { 20 };
                    for _ in 0..times {
                        v1 ^= u64::from(TABLE[input[12] as usize & 15]);
                    }
                }
                let sum = v0.wrapping_add(v1.wrapping_mul(3));
                sum.wrapping_add(v2.wrapping_mul(7))
            })
            .collect();
        let setup = Setup::new();
        let program = setup.build(&source);
        let kernel = setup.kernel(&program, "f");
        let (out, input) = (setup.buffer(8 * N), setup.buffer_of(&input));
        let buf = setup.buffer_of(&[0u32; 16 * N]);
        kernel
            .set_buffer(0, &out)
            .set_buffer(1, &input)
            .set_buffer(2, &buf)
            .set(3, n as u32);
        setup.run(&kernel, &[N], Some(&[N]));
        assert_eq!(setup.read::<u64>(&out, N), expected);
    }

    /// Each of these is what it is by itself as data, a comparison and an operand, and round a loop.
    pub fn extended_values_are_those_of_each_lane() {
        let source = "
            kernel void sum(global ulong *out, int n) {
                uint g = get_global_id(0);
                ulong s = 0, k = (uint)(g - 2u);
                for (int i = 0; i < n; i++, k++) s = s * 3 + k;
                out[g] = s;
            }
            kernel void signs(global ulong *out, int n) {
                uint g = get_global_id(0);
                long s = 0, k = (int)(g + 0x7ffffffeu);
                for (int i = 0; i < n; i++, k += 5) s += k < 0 ? 1000 - k : k;
                out[g] = s;
            }
            kernel void backwards(global ulong *out, int n) {
                uint g = get_global_id(0);
                ulong s = 0;
                for (ulong k = (uint)(3u - g); n > 0; n--, k -= 7) s ^= k * k;
                out[g] = s;
            }";
        let setup = Setup::new();
        let program = setup.build(source);
        for name in ["sum", "signs", "backwards"] {
            let kernel = setup.kernel(&program, name);
            let out = setup.buffer(8 * ITEMS);
            kernel.set_buffer(0, &out).set(1, 3i32);
            setup.run(&kernel, &[ITEMS], None);
            let expected: Vec<u64> = (0..ITEMS as u32)
                .map(|g| {
                    let mut s = 0u64;
                    for i in 0..3u64 {
                        s = match name {
                            "sum" => {
                                let k = u64::from(g.wrapping_sub(2)) + i;
                                s.wrapping_mul(3).wrapping_add(k)
                            }
                            "signs" => {
                                let k =
                                    i64::from(g.wrapping_add(0x7fff_fffe) as i32) + 5 * i as i64;
                                let term = if k < 0 { 1000 - k } else { k };
                                s.wrapping_add(term as u64)
                            }
                            _ => {
                                let k = u64::from(3u32.wrapping_sub(g)).wrapping_sub(7 * i);
                                s ^ k.wrapping_mul(k)
                            }
                        };
                    }
                    s
                })
                .collect();
            assert_eq!(setup.read::<u64>(&out, ITEMS), expected, "{name}");
        }
    }

    /// An id is less than 2^31, what is added to it is not.
    pub fn sums_of_ids_wrap_around() {
        let source = "
            kernel void plain(global ulong *out) {
                size_t at = get_global_id(0) - get_global_offset(0);
                out[at] = (uint)get_global_id(0);
            }
            kernel void negative(global ulong *out) {
                size_t at = get_global_id(0) - get_global_offset(0);
                out[at] = (long)(int)get_global_id(0);
            }
            kernel void twice(global ulong *out) {
                size_t at = get_global_id(0) - get_global_offset(0);
                out[at] = (uint)(get_global_id(0) + get_global_offset(0));
            }";
        let setup = Setup::new();
        let program = setup.build(source);
        for offset in [
            0usize,
            (1 << 30) - 5,
            (1 << 31) - 70,
            (1 << 31) - 5,
            (1 << 31) + 3,
            (1 << 32) - 7,
        ] {
            for name in ["plain", "negative", "twice"] {
                let kernel = setup.kernel(&program, name);
                let out = setup.buffer(8 * ITEMS);
                kernel.set_buffer(0, &out);
                ok!(clEnqueueNDRangeKernel(
                    setup.queue.0,
                    kernel.0,
                    1,
                    [offset].as_ptr(),
                    [ITEMS].as_ptr(),
                    null(),
                    0,
                    null(),
                    null_mut()
                ));
                let expected: Vec<u64> = (0..ITEMS)
                    .map(|i| {
                        let id = (offset + i) as u32;
                        match name {
                            "plain" => id.into(),
                            "negative" => i64::from(id as i32) as u64,
                            _ => id.wrapping_add(offset as u32).into(),
                        }
                    })
                    .collect();
                assert_eq!(
                    setup.read::<u64>(&out, ITEMS),
                    expected,
                    "{name} at {offset:#x}"
                );
            }
        }
    }

    pub fn nested_switches_are_compiled_once() {
        const LEVELS: usize = 4;
        let labels: String = (0..10)
            .map(|label| format!("case {}: ", 3 * label))
            .collect();
        let mut body = "out[g] += 1000;".to_owned();
        for level in 0..LEVELS {
            body = format!("switch (a[g * {LEVELS} + {level}]) {{ {labels} out[g] += {}; {body} break; case 1: out[g] += 7; }}", 1 << level);
        }
        let source = format!(
            "kernel void f(global const int *a, global int *out) {{ int g = get_global_id(0); {body} }}"
        );
        let setup = Setup::new();
        let start = std::time::Instant::now();
        let program = setup.build(&source);
        let kernel = setup.kernel(&program, "f");
        let of: Vec<i32> = (0..LEVELS * ITEMS).map(|i| (i * i % 31) as i32).collect();
        let (a, out) = (setup.buffer_of(&of), setup.buffer_of(&[0i32; ITEMS]));
        kernel.set_buffer(0, &a).set_buffer(1, &out);
        setup.run(&kernel, &[ITEMS], None);
        let expected: Vec<i32> = (0..ITEMS)
            .map(|g| {
                let mut sum = 0;
                for level in (0..LEVELS).rev() {
                    match of[g * LEVELS + level] {
                        1 => return sum + 7,
                        x if x % 3 == 0 && x < 30 => sum += 1 << level,
                        _ => return sum,
                    }
                }
                sum + 1000
            })
            .collect();
        assert_eq!(setup.read::<i32>(&out, ITEMS), expected);
        // 0.2 s on one idle processor; it was 9 s.
        assert!(start.elapsed().as_secs_f64() < 4.0, "{:?}", start.elapsed());
    }
}
