//! Chooses kernels: what they write and read, and how long they take.

use super::Chooser;
use crate::generate::weighted;
use crate::program::{Manner, Operand, Place, What};

/// Sides of kernels.
#[derive(Clone, Copy)]
enum Use {
    Object(usize, usize),
    Pointer(usize),
    Number(usize),
}

impl Chooser<'_> {
    /// A side of a kernel.
    fn operand(&mut self) -> Option<Use> {
        if self.rng.percent(50) {
            if let Some((memory, view)) = self.object(|_| true) {
                return Some(Use::Object(memory, view));
            }
        }
        let memory = self.address()?;
        Some(match self.rng.percent(80) {
            true => Use::Pointer(memory),
            false => Use::Number(memory),
        })
    }

    fn room(&self, operand: Use) -> usize {
        match operand {
            Use::Object(memory, view) => self.view((memory, view)).len(),
            Use::Pointer(memory) | Use::Number(memory) => self.memory(memory).size,
        }
    }

    fn put(&mut self, operand: Use, size: usize) -> Operand {
        let room = self.room(operand);
        let place = |memory, at| Place {
            memory,
            at,
            map: None,
        };
        match operand {
            Use::Object(memory, view) => {
                let pitch = self.memory(memory).kind.pitch();
                let at = self.spot(room, size, pitch.unwrap_or(4));
                Operand::Object(self.side((memory, view), at))
            }
            Use::Pointer(memory) => Operand::Pointer(place(memory, self.spot(room, size, 4))),
            Use::Number(memory) => Operand::Number(place(memory, self.spot(room, size, 4))),
        }
    }

    pub(super) fn kernel(&mut self) -> Option<What> {
        let dst = self.operand()?;
        let same = self.rng.percent(35);
        let src = if same { dst } else { self.operand()? };
        let mut step = 4;
        for side in [dst, src] {
            if let Use::Object(memory, _) = side {
                step = step.max(self.memory(memory).kind.pitch().unwrap_or(4));
            }
        }
        let size = self.size(self.room(dst).min(self.room(src)), step);
        if size == 0 {
            return None;
        }
        let to = self.put(dst, size);
        let from = if same { to } else { self.put(src, size) };
        let words = size / 4;
        let work = weighted(self.rng, &[(45, 0), (12, 19), (18, 21), (15, 23), (5, 24)])?;
        let spins = match work {
            0 => 0,
            power => ((1usize << power) / words.max(8)).min(100_000),
        };
        let manner = match self.scope.with("replays") {
            true => Manner {
                prints: self.rng.percent(20),
                enqueues: self.scope.caps.children && self.rng.percent(15),
            },
            false => Manner::default(),
        };
        Some(What::Kernel {
            dst: to,
            src: from,
            words,
            add: self.rng.bits() as u32,
            spins,
            manner: if step == 4 { manner } else { Manner::default() },
        })
    }
}
