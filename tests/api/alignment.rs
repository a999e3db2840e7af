//! Alignments that a program asks for are given, in every address space.

use pumice_tests::sys::*;
use pumice_tests::{info_value, Setup};

#[test]
fn variables_have_the_requested_alignment() {
    let setup = Setup::new();
    for align in [128u64, 1024, 4096] {
        let source = format!(
            "typedef struct {{ char c; int x[3]; }} __attribute__((aligned({align}))) S;
             global char before; global S shared; global char between; global int number __attribute__((aligned({align})));
             constant S table[2] = {{ {{ 1, {{ 2, 3, 4 }} }}, {{ 5, {{ 6, 7, 8 }} }} }};
             kernel void program_scope(global ulong *o, int n) {{
                 before = between = n; shared.x[n] = n; number = n;
                 o[0] = (ulong)&shared; o[1] = (ulong)&number; o[2] = (ulong)&table[n]; o[3] = shared.x[1] + number + table[n].x[2];
             }}
             kernel void private_memory(global ulong *o, int n) {{
                 char before[3]; S s; char between[5]; int t[4] __attribute__((aligned({align})));
                 uint pair[2] __attribute__((aligned({align}))) = {{ n, n }};
                 for (int i = 0; i < 3; i++) {{ s.x[i] = n + i; before[i] = n; between[i] = n; t[i] = n; }}
                 o += get_global_id(0) * 4;
                 o[0] = (ulong)&s; o[1] = (ulong)t; o[2] = (ulong)pair;
                 o[3] = s.x[n % 3] + before[n % 3] + between[n % 3] + t[n % 3] + 5;
             }}
             kernel void local_memory(global ulong *o, int n) {{
                 local char before[3]; local S s; local char between[5]; local int t[4] __attribute__((aligned({align})));
                 for (int i = 0; i < 3; i++) {{ s.x[i] = n + i; before[i] = n; between[i] = n; t[i] = n; }}
                 o[0] = (ulong)&s; o[1] = (ulong)t; o[2] = 0; o[3] = s.x[n % 3] + before[n % 3] + between[n % 3] + t[n % 3] + 5;
             }}"
        );
        for options in ["-cl-std=CL3.0", "-cl-std=CL3.0 -cl-opt-disable"] {
            let built = setup.try_build(&source, options);
            let program = built.unwrap_or_else(|log| panic!("{align} {options}: {log}"));
            for name in ["program_scope", "private_memory", "local_memory"] {
                let kernel = setup.kernel(&program, name);
                let items = if name == "private_memory" { 40 } else { 1 };
                let out = setup.buffer_of(&vec![0u64; 4 * items]);
                kernel.set_buffer(0, &out).set(1, 1i32);
                setup.run(&kernel, &[items], None);
                for got in setup.read::<u64>(&out, 4 * items).chunks(4) {
                    let what = format!("{name} {align} {options}: {got:x?}");
                    assert!(
                        got[..3].iter().all(|address| address % align == 0),
                        "{what}"
                    );
                    assert_eq!(got[3], 10, "{what}");
                }
            }
        }
    }
}

/// A program chooses its blocks by it: on the processor as much as Intel's runtime for it has.
#[test]
fn local_memory_is_as_large_as_it_says() {
    let setup = Setup::new();
    let bytes = info_value!(u64, clGetDeviceInfo(setup.device), CL_DEVICE_LOCAL_MEM_SIZE);
    let kind = info_value!(u64, clGetDeviceInfo(setup.device), CL_DEVICE_TYPE);
    let native = info_value!(
        u64,
        clGetDeviceInfo(setup.device),
        CL_DEVICE_EXECUTION_CAPABILITIES
    ) & CL_EXEC_NATIVE_KERNEL;
    if kind & CL_DEVICE_TYPE_CPU != 0 && native != 0 {
        assert!(bytes >= 256 << 10, "{bytes}");
    }
    let kernel = setup.kernel_of(
        "kernel void k(global uint *o, local uint *all, uint n) {
             for (uint i = get_local_id(0); i < n; i += get_local_size(0)) all[i] = i * 3;
             barrier(CLK_LOCAL_MEM_FENCE);
             uint sum = 0;
             for (uint i = get_local_id(0); i < n; i += get_local_size(0)) sum += all[n - 1 - i] ^ i;
             o[get_local_id(0)] = sum;
         }",
        "k",
    );
    let (items, words) = (32usize, bytes as u32 / 4);
    let out = setup.buffer_of(&vec![0u32; items]);
    kernel.set_buffer(0, &out);
    kernel.set_local(1, bytes as usize);
    kernel.set(2, words);
    setup.enqueue(&kernel, &[items], Some(&[items]));
    let expected: Vec<u32> = (0..items as u32)
        .map(|item| {
            let own = (item..words).step_by(items);
            own.fold(0u32, |sum, i| {
                sum.wrapping_add(((words - 1 - i).wrapping_mul(3)) ^ i)
            })
        })
        .collect();
    assert_eq!(setup.read::<u32>(&out, items), expected);
}
