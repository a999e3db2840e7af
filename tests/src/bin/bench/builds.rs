//! How long it takes from a source to its first result.

use super::work::{expect, Figure, Ready, Rig, SOURCE};
use pumice_tests::client::{Buffer, Context, Queue, Result};
use std::fmt::Write;
use std::time::Instant;

/// A number that no earlier run had, and no earlier call.
struct Nonce {
    salt: u64,
    started: Instant,
}

impl Nonce {
    fn new() -> Self {
        let salt = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .map_or(0, |time| time.as_nanos() as u64);
        Self {
            salt,
            started: Instant::now(),
        }
    }

    fn next(&self) -> u64 {
        self.salt ^ (self.started.elapsed().as_nanos() as u64).rotate_left(40)
    }
}

/// Builds a source and runs a kernel of it on a buffer of 256 bytes, which then holds so many `value`s of 32 bits.
fn step(
    (context, queue): (&Context, &Queue),
    buffer: &Buffer,
    (source, kernel): (&str, &str),
    value: u32,
) -> Result<()> {
    let program = context.program(source, "")?;
    let kernel = program.kernel(kernel)?;
    queue.fill(buffer, 0i32, 256)?;
    kernel.arg_buffer(0, buffer)?;
    queue.launch(&kernel, &[64], &[64])?;
    let back: Vec<u32> = queue.read_vec(buffer, 64)?;
    expect(back.iter().all(|&x| x == value), "the new program")
}

/// Small kernels, and what they call: each time with a constant that no cache knows, or always the same.
pub fn small(rig: &Rig, new: bool) -> Result<Option<Ready>> {
    let (context, queue) = rig.open()?;
    let buffer = context.buffer(256)?;
    let nonce = Nonce::new();
    let unique = move || {
        let nonce = nonce.next();
        format!(
            "{SOURCE}\n__kernel void salt(__global ulong *p) {{ p[get_global_id(0)] ^= {nonce}ul; }}\n"
        )
    };
    let known = unique();
    step((&context, &queue), &buffer, (&known, "bump"), 1)?;
    Ok(Some(Ready {
        run: Box::new(move |n| {
            for _ in 0..n {
                let fresh = new.then(&unique);
                let source = fresh.as_deref().unwrap_or(&known);
                step((&context, &queue), &buffer, (source, "bump"), 1)?;
            }
            Ok(())
        }),
        figure: Figure::Millis,
    }))
}

/// A kernel that calls a function of a thousand operations from a hundred places, each time with another constant: whoever
/// copies the function to each has a hundred thousand operations in a row.
pub fn large(rig: &Rig) -> Result<Option<Ready>> {
    const ROUNDS: u32 = 200;
    const CALLS: u32 = 100;
    let (context, queue) = rig.open()?;
    let buffer = context.buffer(256)?;
    let nonce = Nonce::new();
    let build = move || {
        let add = nonce.next() as u32;
        let mut source = String::from(
            "uint large(uint x, uint y) __attribute__((noinline));\nuint large(uint x, uint y) {\n",
        );
        for round in 0..ROUNDS {
            let _ = writeln!(
                source,
                "x = rotate(x * 2654435761u + {round}u, 5u) ^ y; y += x >> 3;"
            );
        }
        let _ = writeln!(
            source,
            "return x + y;\n}}\n__kernel void calls(__global uint *p) {{\nuint i = get_global_id(0), s = p[i] + {add}u;"
        );
        for call in 0..CALLS {
            let _ = writeln!(source, "s = large(s, p[i] + {call}u);");
        }
        source += "p[i] = s;\n}\n";
        let value = (0..CALLS).fold(add, |mut x, mut y| {
            for round in 0..ROUNDS {
                let product = x.wrapping_mul(2_654_435_761).wrapping_add(round);
                x = product.rotate_left(5) ^ y;
                y = y.wrapping_add(x >> 3);
            }
            x.wrapping_add(y)
        });
        step((&context, &queue), &buffer, (&source, "calls"), value)
    };
    build()?;
    Ok(Some(Ready {
        run: Box::new(move |n| (0..n).try_for_each(|_| build())),
        figure: Figure::Millis,
    }))
}
