//! Programs from a seed: memories of all kinds that are used again and again by commands of all kinds, so that what one
//! leaves is what another takes.

mod actions;

use crate::build::Builder;
use crate::program::{BufferKind, Kind, Memory, Program, Queue, Usm};
use crate::world::Abilities;
use actions::Maker;
use pumice_tests::rng::Rng;

/// The program of a seed. `without`: kinds of actions and memories that are left out, by name.
pub fn generate(seed: u64, abilities: &Abilities, without: &[String]) -> Program {
    let mut rng = Rng::new(seed, 0);
    let first_queues = 1 + rng.below(3);
    let later = usize::from(rng.percent(20));
    let queues = (0..first_queues + later)
        .map(|_| Queue {
            device: rng.below(abilities.devices),
            in_order: rng.percent(60),
            profiling: rng.percent(15),
        })
        .collect();
    let mut memories = vec![memory(Kind::Plain, &mut rng, abilities)];
    for _ in 0..2 + rng.below(4) {
        let kind = kind(&mut rng, abilities, without);
        memories.push(memory(kind, &mut rng, abilities));
    }
    let program = Program {
        seed,
        memories,
        queues,
        first_queues,
        actions: Vec::new(),
    };
    let actions = 3 + rng.below(14);
    let mut maker = Maker::new(Builder::new(program), rng, without);
    maker.make(actions);
    maker.into_program()
}

fn kind(rng: &mut Rng, abilities: &Abilities, without: &[String]) -> Kind {
    let lead = abilities.align * (1 + rng.below(3));
    let kinds = [
        (true, 10, "plain", Kind::Plain),
        (true, 10, "buffer", Kind::Buffer(BufferKind::Written)),
        (true, 6, "copied", Kind::Buffer(BufferKind::Copied)),
        (true, 8, "alloc", Kind::Buffer(BufferKind::CopiedAlloc)),
        (true, 8, "host", Kind::UseHost(0)),
        (true, 4, "host", Kind::UseHost(64)),
        (abilities.coarse, 8, "coarse", Kind::Svm { fine: false }),
        (abilities.fine, 12, "fine", Kind::Svm { fine: true }),
        (
            abilities.coarse,
            5,
            "coarse buffer",
            Kind::SvmBuffer { fine: false, lead },
        ),
        (
            abilities.fine,
            6,
            "fine buffer",
            Kind::SvmBuffer { fine: true, lead },
        ),
        (abilities.usm[0], 8, "usm", Kind::Usm(Usm::Host)),
        (abilities.usm[1], 6, "usm", Kind::Usm(Usm::Device)),
        (abilities.usm[2], 8, "usm", Kind::Usm(Usm::Shared)),
        (abilities.images, 6, "image", Kind::Image(256)),
    ];
    let usable =
        |entry: &&(bool, usize, &str, Kind)| entry.0 && !without.iter().any(|name| name == entry.2);
    let total = kinds.iter().filter(usable).map(|entry| entry.1).sum();
    let mut at = rng.below(total);
    for (_, weight, _, kind) in kinds.iter().filter(usable) {
        if at < *weight {
            return *kind;
        }
        at -= weight;
    }
    Kind::Plain
}

fn memory(kind: Kind, rng: &mut Rng, abilities: &Abilities) -> Memory {
    // Below and above what the runtime takes other ways for.
    let size = match rng.below(10) {
        0 => 256 * (1 + rng.below(16)),
        1..=5 => 4096 * (1 + rng.below(4)),
        6..=8 => 4096 * (5 + rng.below(12)),
        _ => 4096 * (20 + rng.below(40)),
    };
    let size = match kind {
        Kind::Image(row) => size.min(row * 512) / row * row,
        _ => size,
    };
    let mut views = Memory::whole(size);
    if kind.is_buffer() {
        for _ in 0..rng.below(3) {
            let start = rng.below(size.div_ceil(abilities.align)) * abilities.align;
            let length = 4 * (1 + rng.below((size - start) / 4));
            views.push(start..start + length);
        }
    }
    Memory { kind, size, views }
}
