//! Functions that call functions that call functions, with arrays of their callers: on the processor large ones stay
//! functions that are called, under the mask of the lanes that call. Results are those of the same code here.

use pumice_tests::Setup;
use std::fmt::Write;

/// Levels of functions with three calls each.
const LEVELS: u32 = 4;
/// Cases of the function that all of them reach.
const CASES: u32 = 24;

fn source() -> String {
    let mut text = String::new();
    for t in 0..CASES {
        let _ = writeln!(
            text,
            "uint leaf{t}(uint *table, uint x, uint n) {{
              uint r = x ^ {t};
              for (uint i = 0; i < (n & 7); i++) {{
                r = r * {} + table[(r >> 3) & 7];
                if ((r & 0xff) == {t}) return r + i;
                table[r & 7] ^= r;
              }}
              for (int i = 0; i < 3; i++) {{ r ^= r << 13; r ^= r >> 17; r ^= r << 5; }}
              return r;
            }}",
            2 * t + 1
        );
    }
    text += "uint evaluate(uint *table, local uint *shared, global volatile uint *in, uint t, uint x, uint n, bool odd) {
        switch (t) {\n";
    for t in 0..CASES {
        let _ = writeln!(text, "case {t}: return leaf{t}(table, x, n);");
    }
    text += "}
        return odd ? x + *shared : ~atomic_or(in + get_global_id(0), 0);
    }
    uint level0(uint *table, local uint *shared, global volatile uint *in, uint x, uint n) {
        return evaluate(table, shared, in, x % 27, x, n, x & 16);
    }\n";
    for k in 1..=LEVELS {
        let below = k - 1;
        let _ = writeln!(
            text,
            "uint level{k}(uint *table, local uint *shared, global volatile uint *in, uint x, uint n) {{
              if (x % 5 == {k}) return x;
              uint a = level{below}(table, shared, in, x + {k}, n);
              uint b = level{below}(table, shared, in, a ^ x, n + 1);
              if (a & 1) b += level{below}(table, shared, in, b, a >> 7);
              return a * 3 + b;
            }}"
        );
    }
    let _ = writeln!(
        text,
        "kernel void k(global uint *o, global volatile uint *in, local uint *shared) {{
          size_t g = get_global_id(0) + get_global_id(1) * get_global_size(0);
          if (get_local_id(0) == 0 && get_local_id(1) == 0) *shared = 77;
          barrier(CLK_LOCAL_MEM_FENCE);
          uint table[8];
          for (uint i = 0; i < 8; i++) table[i] = in[g] * (i + 1);
          uint r = level{LEVELS}(table, shared, in, in[g], g);
          for (uint i = 0; i < 8; i++) r = r * 31 + table[i];
          o[g] = r;
        }}"
    );
    text
}

/// A work-item as the functions change it.
struct Item {
    table: [u32; 8],
    /// The number that `atomic_or` finds.
    own: u32,
}

impl Item {
    fn evaluate(&mut self, x: u32, n: u32) -> u32 {
        let t = x % 27;
        if t >= CASES {
            return if x & 16 != 0 {
                x.wrapping_add(77)
            } else {
                !self.own
            };
        }
        let mut r = x ^ t;
        for i in 0..n & 7 {
            r = r
                .wrapping_mul(2 * t + 1)
                .wrapping_add(self.table[(r >> 3) as usize & 7]);
            if r & 0xff == t {
                return r.wrapping_add(i);
            }
            self.table[r as usize & 7] ^= r;
        }
        for _ in 0..3 {
            r ^= r << 13;
            r ^= r >> 17;
            r ^= r << 5;
        }
        r
    }

    fn level(&mut self, k: u32, x: u32, n: u32) -> u32 {
        if k == 0 {
            return self.evaluate(x, n);
        }
        if x % 5 == k {
            return x;
        }
        let a = self.level(k - 1, x.wrapping_add(k), n);
        let mut b = self.level(k - 1, a ^ x, n.wrapping_add(1));
        if a & 1 != 0 {
            b = b.wrapping_add(self.level(k - 1, b, a >> 7));
        }
        a.wrapping_mul(3).wrapping_add(b)
    }
}

fn expected(input: &[u32], row: usize) -> Vec<u32> {
    let of = |(g, &x): (usize, &u32)| {
        let mut item = Item {
            table: [0, 1, 2, 3, 4, 5, 6, 7].map(|i| x.wrapping_mul(i + 1)),
            own: input[g % row],
        };
        let r = item.level(LEVELS, x, g as u32);
        item.table
            .iter()
            .fold(r, |r, &t| r.wrapping_mul(31).wrapping_add(t))
    };
    input.iter().enumerate().map(of).collect()
}

#[test]
fn functions_are_called_for_the_lanes_that_call() {
    let setup = Setup::new();
    if !super::compilers::is_processor(&setup) {
        return pumice_tests::left_out("a Vulkan driver, which takes minutes of these");
    }
    let program = setup.build(&source());
    for (global, local) in [
        ([256, 1], [64, 1]),
        ([91, 1], [7, 1]),
        ([40, 1], [1, 1]),
        ([15, 6], [5, 3]),
    ] {
        let count = global[0] * global[1];
        let input: Vec<u32> = (1..=count as u32)
            .map(|i| i.wrapping_mul(0x9e37_79b9) >> (i % 7))
            .collect();
        let kernel = setup.kernel(&program, "k");
        let (out, data) = (setup.buffer_of(&vec![0u32; count]), setup.buffer_of(&input));
        kernel
            .set_buffer(0, &out)
            .set_buffer(1, &data)
            .set_local(2, 4);
        setup.run(&kernel, &global, Some(&local));
        let out = setup.read::<u32>(&out, count);
        assert_eq!(out, expected(&input, global[0]), "{global:?} in {local:?}");
    }
}
