//! Work-groups of one work-item, which the CPU device runs side by side where they ask nothing of one another.

use super::*;

/// Work-groups of one work-item that note what they find in a loop, by the result of an atomic function, as password crackers do.
#[test]
fn groups_of_one_item_note_what_they_find() {
    let setup = Setup::new();
    let source = "
        kernel void f(global uint *count, global uint *list) {
            uint g = get_global_id(0);
            for (uint i = 0; i < 100; i++) {
                uint n = g * 100 + i, h = n * 0x9e3779b9u;
                if (h >> 26 != 5) continue;
                uint at = atomic_inc(count);
                if (at % 2 == 0) {
                    uint sum = 0;
                    for (uint k = 0; k <= at % 7; k++) sum += n;
                    list[2 * at] = sum;
                } else {
                    list[2 * at] = n;
                }
                list[2 * at + 1] = n;
            }
        }";
    let kernel = setup.kernel_of(source, "f");
    let groups = 77;
    let wanted: Vec<u32> = (0..100 * groups)
        .filter(|n: &u32| n.wrapping_mul(0x9e37_79b9) >> 26 == 5)
        .collect();
    let (count, list) = (setup.buffer_of(&[0u32]), setup.buffer(8 * wanted.len()));
    kernel.set_buffer(0, &count).set_buffer(1, &list);
    setup.run(&kernel, &[groups as usize], Some(&[1]));
    assert_eq!(setup.read::<u32>(&count, 1), [wanted.len() as u32]);
    let mut found = Vec::new();
    let noted = setup.read::<u32>(&list, 2 * wanted.len());
    for (at, pair) in noted.chunks(2).enumerate() {
        let turns = if at % 2 == 0 { at as u32 % 7 + 1 } else { 1 };
        assert_eq!(pair[0], pair[1].wrapping_mul(turns), "{at}");
        found.push(pair[1]);
    }
    found.sort_unstable();
    assert_eq!(found, wanted);
}

/// Work-groups of one work-item that take turns: each form of a lock must find its owner running.
#[test]
fn groups_of_one_item_lock() {
    let setup = Setup::new();
    if info_value!(u64, clGetDeviceInfo(setup.device), CL_DEVICE_TYPE) != CL_DEVICE_TYPE_CPU {
        return pumice_tests::left_out("not a processor: groups need not go on while others wait");
    }
    let source = "
        #define COUNT p[1] = p[1] + 1; mem_fence(CLK_GLOBAL_MEM_FENCE)
        kernel void spin(volatile global int *p) {
            while (atomic_cmpxchg(p, 0, 1) != 0);
            COUNT;
            atomic_xchg(p, 0);
        }
        kernel void done(volatile global int *p) {
            int done = 0;
            while (!done) {
                if (atomic_cmpxchg(p, 0, 1) == 0) {
                    COUNT;
                    atomic_xchg(p, 0);
                    done = 1;
                }
            }
        }
        kernel void again(volatile global int *p) {
            for (int i = 0; i < 3;) {
                if (atomic_cmpxchg(p, 0, 1) != 0) continue;
                COUNT;
                if (i++ == 2) break;
                atomic_xchg(p, 0);
            }
            atomic_xchg(p, 0);
        }
        kernel void kept(volatile global int *p) {
            int state[3] = {0, 0, 0};
            do {
                if (atomic_cmpxchg(p, 0, 1) == 0) state[get_global_id(0) % 3] = 1;
            } while (state[0] + state[1] + state[2] == 0);
            COUNT;
            atomic_xchg(p, 0);
        }";
    let program = setup.build(source);
    for (name, each) in [("spin", 1), ("done", 1), ("again", 3), ("kept", 1)] {
        let kernel = setup.kernel(&program, name);
        let p = setup.buffer_of(&[0i32, 0]);
        kernel.set_buffer(0, &p);
        setup.run(&kernel, &[100], Some(&[1]));
        assert_eq!(setup.read::<i32>(&p, 2), [0, 100 * each], "{name}");
    }
}

/// Local memory of a work-group of one work-item is that work-item's: arrays that are sorted and counted in, by indices from
/// memory; through a pointer to either of two; as an argument; shown to others as a number.
#[test]
fn groups_of_one_item_have_local_memory() {
    let setup = Setup::new();
    let source = "
        kernel void sorts(global const int *in, global int *out) {
            local int row[24];
            local uchar seen[8];
            local int2 ends;
            int g = get_group_id(0);
            for (int i = 0; i < 24; i++) row[i] = in[g * 24 + i];
            for (int i = 0; i < 8; i++) seen[i] = 0;
            barrier(CLK_LOCAL_MEM_FENCE);
            for (int i = 1; i < 24; i++) {
                int key = row[i], k = i - 1;
                for (; k >= 0 && row[k] > key; k--) row[k + 1] = row[k];
                row[k + 1] = key;
                seen[key & 7]++;
            }
            seen[row[0] & 7] += 100;
            barrier(CLK_LOCAL_MEM_FENCE);
            ends = (int2)(row[0], row[23]);
            for (int i = 0; i < 24; i++) out[g * 24 + i] = row[i] - ends.x + ends.y + seen[i % 8];
        }
        kernel void either(global const int *in, global int *out) {
            local int a[24], b[24];
            int g = get_group_id(0);
            local int *p = in[g * 24] & 1 ? a : b, *q = in[g * 24] & 1 ? b : a;
            for (int i = 0; i < 24; i++) { p[i] = in[g * 24 + i]; q[23 - i] = g; }
            barrier(CLK_LOCAL_MEM_FENCE);
            for (int i = 0; i < 24; i++) out[g * 24 + i] = a[i] * 3 + b[i];
        }
        kernel void given(global const int *in, global int *out, local int *row) {
            int g = get_group_id(0);
            for (int i = 0; i < 24; i++) row[23 - i] = in[g * 24 + i];
            barrier(CLK_LOCAL_MEM_FENCE);
            for (int i = 0; i < 24; i++) out[g * 24 + i] = row[i];
        }
        kernel void address_kept(global const int *in, global int *out) {
            local int row[24];
            int g = get_group_id(0);
            for (int i = 0; i < 24; i++) row[i] = in[g * 24 + i];
            barrier(CLK_LOCAL_MEM_FENCE);
            size_t first = (size_t)row;
            for (int i = 0; i < 24; i++) {
                local int *p = (local int *)(first + 4 * (23 - i));
                out[g * 24 + i] = *p + (((size_t)&row[i] - first) == 4 * i);
            }
        }
        kernel void counts(global const int *in, global int *out) {
            local int seen[24];
            int g = get_group_id(0);
            for (int i = 0; i < 24; i++) seen[i] = 0;
            barrier(CLK_LOCAL_MEM_FENCE);
            for (int i = 0; i < 24; i++) atomic_inc(&seen[(uint)in[g * 24 + i] % 24]);
            barrier(CLK_LOCAL_MEM_FENCE);
            for (int i = 0; i < 24; i++) out[g * 24 + i] = seen[i];
        }";
    let program = setup.build(source);
    let groups = 53;
    let input: Vec<i32> = (0..24 * groups)
        .map(|i: u32| (i.wrapping_mul(0x9e37_79b9) >> 9) as i32 % 1000)
        .collect();
    let sorted = |row: &[i32]| -> Vec<i32> {
        let mut sorted = row.to_vec();
        sorted.sort_unstable();
        let mut seen = [0u8; 8];
        row[1..].iter().for_each(|key| seen[*key as usize & 7] += 1);
        seen[sorted[0] as usize & 7] += 100;
        let ends = (sorted[0], sorted[23]);
        (0..24)
            .map(|i| sorted[i] - ends.0 + ends.1 + i32::from(seen[i % 8]))
            .collect()
    };
    let buffers = (setup.buffer_of(&input), setup.buffer(4 * input.len()));
    for name in ["sorts", "either", "given", "address_kept", "counts"] {
        let kernel = setup.kernel(&program, name);
        kernel.set_buffer(0, &buffers.0).set_buffer(1, &buffers.1);
        if name == "given" {
            kernel.set_local(2, 96);
        }
        setup.run(&kernel, &[groups as usize], Some(&[1]));
        let out = setup.read::<i32>(&buffers.1, input.len());
        for (g, (row, out)) in input.chunks(24).zip(out.chunks(24)).enumerate() {
            let g = g as i32;
            let wanted: Vec<i32> = match name {
                "sorts" => sorted(row),
                "either" if row[0] & 1 == 1 => row.iter().map(|x| x * 3 + g).collect(),
                "either" => row.iter().map(|x| x + 3 * g).collect(),
                "given" => row.iter().rev().copied().collect(),
                "address_kept" => row.iter().rev().map(|x| x + 1).collect(),
                _ => (0..24)
                    .map(|i| row.iter().filter(|x| **x % 24 == i).count() as i32)
                    .collect(),
            };
            assert_eq!(out, wanted, "{name}, group {g}");
        }
    }
}
