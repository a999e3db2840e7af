//! The actions of a program: each is thought of at random, and made if the specification defines it.

use crate::build::Builder;
use crate::program::{Action, Kind, MapHow, Operand, Place, Program, Shape, Side, What};
use pumice_tests::rng::Rng;

/// Makes actions.
pub struct Maker<'a> {
    builder: Builder,
    rng: Rng,
    without: &'a [String],
}

type Think<'a> = fn(&mut Maker<'a>) -> Option<What>;

impl<'a> Maker<'a> {
    /// For a program without actions.
    pub fn new(builder: Builder, rng: Rng, without: &'a [String]) -> Self {
        Self {
            builder,
            rng,
            without,
        }
    }

    /// The program.
    pub fn into_program(self) -> Program {
        self.builder.program
    }

    /// Makes so many actions, beside what they need.
    pub fn make(&mut self, count: usize) {
        let thoughts: [(usize, &str, Think<'a>); 24] = [
            (12, "read", Self::read),
            (14, "write", Self::write),
            (7, "copy", Self::copy),
            (5, "fill", Self::fill),
            (12, "memcpy", Self::memcpy),
            (4, "memfill", Self::mem_fill),
            (12, "map", Self::map),
            (12, "unmap", Self::unmap),
            (22, "kernel", Self::kernel),
            (5, "read image", Self::read_image),
            (5, "write image", Self::write_image),
            (3, "image to buffer", Self::image_to_buffer),
            (3, "buffer to image", Self::buffer_to_image),
            (2, "fill image", Self::fill_image),
            (3, "marker", |_| Some(What::Marker)),
            (4, "barrier", |_| Some(What::Barrier)),
            (2, "migrate", Self::migrate),
            (2, "free", Self::free),
            (3, "gate", |maker| {
                Some(What::Gate(maker.rng.below(2000) as u64))
            }),
            (8, "store", Self::store),
            (10, "check", Self::check),
            (4, "flush", |_| Some(What::Flush)),
            (2, "finish", |_| Some(What::Finish)),
            (3, "queue", Self::new_queue),
        ];
        let total = thoughts.iter().map(|(weight, ..)| weight).sum();
        let mut made = 0;
        for _ in 0..count * 20 {
            let mut at = self.rng.below(total);
            let chosen = thoughts.iter().find(|(weight, ..)| {
                let here = at < *weight;
                at = at.saturating_sub(*weight);
                here
            });
            let Some((_, name, think)) = chosen else {
                continue;
            };
            if self.without.iter().any(|out| out == name) {
                continue;
            }
            let thought = think(self);
            made += usize::from(thought.is_some_and(|what| self.push(what)));
            if made == count {
                break;
            }
            if self.rng.percent(4) {
                let time = self.rng.below(300) as u64;
                self.push(What::Sleep(time));
            }
        }
    }

    fn push(&mut self, what: What) -> bool {
        let mut action = Action::new(what, self.rng.below(self.builder.scene.queues()));
        if action.can_block() {
            action.blocking = self.rng.percent(30);
        }
        if action.is_command() {
            self.wait_for_some(&mut action);
            action.event = self.rng.percent(30);
            action.callback = self.rng.percent(6);
        }
        self.builder.push(action, &mut Some(&mut self.rng)).is_ok()
    }

    /// Events that it need not wait for.
    fn wait_for_some(&mut self, action: &mut Action) {
        for (number, earlier) in self.builder.program.actions.iter().enumerate() {
            let chance = match earlier.what {
                What::Gate(_) => 25,
                _ if earlier.is_command() => 4,
                _ => 0,
            };
            if self.rng.percent(chance) {
                action.waits.push(number);
            }
        }
    }

    /// One of the memories that are there and of these kinds.
    fn memory(&mut self, wanted: impl Fn(Kind) -> bool) -> Option<usize> {
        let (program, scene) = (&self.builder.program, &self.builder.scene);
        let all: Vec<usize> = (0..program.memories.len())
            .filter(|memory| scene.is_there(*memory) && wanted(program.memories[*memory].kind))
            .collect();
        (!all.is_empty()).then(|| *self.rng.pick(&all))
    }

    fn size(&self, memory: usize) -> usize {
        self.builder.program.memories[memory].size
    }

    /// A range within a room, on multiples of `step`: all of it, its beginning, or any.
    fn part(&mut self, room: usize, step: usize) -> (usize, usize) {
        let units = (room / step).max(1);
        let whole = units * step;
        match self.rng.below(10) {
            0..=3 => (0, whole),
            4 => (0, (units / 2).max(1) * step),
            _ => {
                let range = self.rng.range(whole, step);
                (range.start, range.len())
            }
        }
    }

    /// A step for transfers: words mostly.
    fn step(&mut self) -> usize {
        *self.rng.pick(&[4, 4, 4, 64, 1])
    }

    /// Bytes of a buffer.
    fn side(&mut self, step: usize) -> Option<(Side, usize)> {
        let memory = self.memory(Kind::is_buffer)?;
        let view = self
            .rng
            .below(self.builder.program.memories[memory].views.len());
        let range = self.builder.program.memories[memory].views[view].clone();
        let (at, size) = self.part(range.len(), step.min(range.len()));
        let side = Side {
            memory,
            view,
            at: range.start + at,
        };
        Some((side, size))
    }

    /// A pointer with room for some bytes, `size` at most: of what is mapped, or of the host's memory.
    fn place(&mut self, size: usize, step: usize, write: bool) -> Option<(Place, usize)> {
        let program = &self.builder.program;
        let usable = |map: &&usize| match &program.actions[**map].what {
            What::Map { how, .. } => !write || *how != MapHow::Read,
            _ => false,
        };
        let maps: Vec<usize> = self
            .builder
            .scene
            .maps()
            .iter()
            .filter(usable)
            .copied()
            .collect();
        if !maps.is_empty() && self.rng.percent(45) {
            let map = *self.rng.pick(&maps);
            let What::Map {
                side, size: mapped, ..
            } = self.builder.program.actions[map].what
            else {
                return None;
            };
            let (at, size) = self.within(mapped, size, step);
            let place = Place {
                memory: side.memory,
                at: side.at + at,
                map: Some(map),
            };
            return Some((place, size));
        }
        let memory = self.memory(Kind::is_open)?;
        let (at, size) = self.within(self.size(memory), size, step);
        let place = Place {
            memory,
            at,
            map: None,
        };
        Some((place, size))
    }

    /// A place for `size` bytes in a room, or as many as fit.
    fn within(&mut self, room: usize, size: usize, step: usize) -> (usize, usize) {
        let size = size.min(room);
        let free = (room - size) / step;
        let at = if self.rng.percent(50) {
            0
        } else {
            self.rng.below(free + 1) * step
        };
        (at, size)
    }

    /// An address that commands on pointers take.
    fn address(&mut self, size: usize, step: usize, write: bool) -> Option<(Place, usize)> {
        if self.rng.percent(30) {
            return self.place(size, step, write);
        }
        let memory = self.memory(Kind::has_address)?;
        let (at, size) = self.within(self.size(memory), size, step);
        let place = Place {
            memory,
            at,
            map: None,
        };
        Some((place, size))
    }

    /// Rows for a transfer of `size` bytes that begins `at` bytes behind the start of an object.
    fn shape(&mut self, at: usize, size: usize) -> Shape {
        let pitch = *self.rng.pick(&[64, 100, 256]);
        if self.rng.percent(75) || size < pitch * 2 {
            return Shape::line(size);
        }
        let row = (1 + self.rng.below(pitch)).min(pitch - at % pitch);
        Shape {
            row,
            rows: size / pitch,
            first: pitch,
            second: if self.rng.percent(50) { row } else { pitch },
        }
    }

    fn transfer(&mut self, write: bool) -> Option<(Side, Place, Shape)> {
        let step = self.step();
        let (side, size) = self.side(step)?;
        let (place, size) = self.place(size, step, write)?;
        let start = self.builder.program.memories[side.memory].views[side.view].start;
        Some((side, place, self.shape(side.at - start, size)))
    }

    fn read(&mut self) -> Option<What> {
        let (side, place, shape) = self.transfer(true)?;
        Some(What::Read(side, place, shape))
    }

    fn write(&mut self) -> Option<What> {
        let (side, place, shape) = self.transfer(false)?;
        Some(What::Write(side, place, shape))
    }

    fn copy(&mut self) -> Option<What> {
        let step = self.step();
        let (src, size) = self.side(step)?;
        let (dst, room) = self.side(step)?;
        let size = size.min(room);
        if src.memory == dst.memory {
            return Some(What::Copy(src, dst, Shape::line(size)));
        }
        let start = |side: &Side| self.builder.program.memories[side.memory].views[side.view].start;
        let (first, second) = (src.at - start(&src), dst.at - start(&dst));
        let shape = self.shape(first, size);
        let fits = shape.rows == 1 || second % shape.second + shape.row <= shape.second;
        let shape = if fits { shape } else { Shape::line(size) };
        Some(What::Copy(src, dst, shape))
    }

    fn pattern(&mut self) -> Vec<u8> {
        let size = *self.rng.pick(&[1, 2, 4, 16]);
        self.rng.bytes(size)
    }

    fn fill(&mut self) -> Option<What> {
        let pattern = self.pattern();
        let (side, size) = self.side(pattern.len())?;
        size.is_multiple_of(pattern.len())
            .then_some(What::Fill(side, size, pattern))
    }

    fn memcpy(&mut self) -> Option<What> {
        let step = self.step();
        let most = 4 * (1 + self.rng.below(16 << 10));
        let (dst, size) = self.address(most, step, true)?;
        let (src, size) = self.address(size, step, false)?;
        let (dst, src) = match self.rng.percent(50) && dst.map.is_none() && src.map.is_none() {
            true => (src, dst),
            false => (dst, src),
        };
        Some(What::Memcpy(dst, src, size))
    }

    fn mem_fill(&mut self) -> Option<What> {
        let pattern = self.pattern();
        let memory = self.memory(Kind::has_address)?;
        let (at, size) = self.part(self.size(memory), pattern.len());
        let place = Place {
            memory,
            at,
            map: None,
        };
        Some(What::MemFill(place, size, pattern))
    }

    fn map(&mut self) -> Option<What> {
        let how = *self.rng.pick(&[
            MapHow::Read,
            MapHow::Write,
            MapHow::Write,
            MapHow::Invalidate,
        ]);
        if self.rng.percent(40) {
            let memory = self.memory(Kind::is_svm)?;
            let (at, size) = self.part(self.size(memory), 4);
            let side = Side {
                memory,
                view: 0,
                at,
            };
            return Some(What::Map {
                side,
                size,
                how,
                svm: true,
            });
        }
        let (side, size) = self.side(4)?;
        Some(What::Map {
            side,
            size,
            how,
            svm: false,
        })
    }

    fn unmap(&mut self) -> Option<What> {
        let maps = self.builder.scene.maps();
        if maps.is_empty() {
            return None;
        }
        Some(What::Unmap(*self.rng.pick(maps)))
    }

    fn operand(&mut self, words: usize) -> Option<(Operand, usize)> {
        if self.rng.percent(55) {
            let (mut side, size) = self.side(4)?;
            let start = self.builder.program.memories[side.memory].views[side.view].start;
            side.at = start + (side.at - start) / 4 * 4;
            return (size >= 4).then_some((Operand::Object(side), words.min(size / 4)));
        }
        let memory = self.memory(Kind::has_address)?;
        let (at, size) = self.within(self.size(memory), words * 4, 4);
        let place = Place {
            memory,
            at: at / 4 * 4,
            map: None,
        };
        Some((Operand::Address(place), size / 4))
    }

    fn kernel(&mut self) -> Option<What> {
        let most = 1 + self.rng.below(16 << 10);
        let (dst, words) = self.operand(most)?;
        let (src, words) = match self.rng.percent(30) {
            true => (dst, words),
            false => self.operand(words)?,
        };
        let spins = match self.rng.below(10) {
            0..=3 => 0,
            4..=7 => self.rng.below(1_000_000 / words),
            _ => self.rng.below(6_000_000 / words),
        };
        Some(What::Kernel {
            dst,
            src,
            words,
            add: self.rng.word() as u32,
            spins: spins.min(60_000),
        })
    }

    /// Whole rows of an image.
    fn image(&mut self) -> Option<(Side, usize)> {
        let memory = self.memory(|kind| matches!(kind, Kind::Image(_)))?;
        let Kind::Image(row) = self.builder.program.memories[memory].kind else {
            return None;
        };
        let (at, size) = self.part(self.size(memory), row);
        let side = Side {
            memory,
            view: 0,
            at,
        };
        Some((side, size))
    }

    fn read_image(&mut self) -> Option<What> {
        let (side, size) = self.image()?;
        let (place, room) = self.place(size, 4, true)?;
        (room == size).then_some(What::ReadImage(side, place, size))
    }

    fn write_image(&mut self) -> Option<What> {
        let (side, size) = self.image()?;
        let (place, room) = self.place(size, 4, false)?;
        (room == size).then_some(What::WriteImage(side, place, size))
    }

    fn image_to_buffer(&mut self) -> Option<What> {
        let (image, size) = self.image()?;
        let (buffer, room) = self.side(4)?;
        (room >= size).then_some(What::ImageToBuffer(image, buffer, size))
    }

    fn buffer_to_image(&mut self) -> Option<What> {
        let (image, size) = self.image()?;
        let (buffer, room) = self.side(4)?;
        (room >= size).then_some(What::BufferToImage(buffer, image, size))
    }

    fn fill_image(&mut self) -> Option<What> {
        let (side, size) = self.image()?;
        Some(What::FillImage(side, size, self.rng.word() as u8))
    }

    fn migrate(&mut self) -> Option<What> {
        let moves = |kind: Kind| !matches!(kind, Kind::Plain | Kind::Usm(_));
        Some(What::Migrate(self.memory(moves)?))
    }

    fn free(&mut self) -> Option<What> {
        let memory = self
            .memory(|kind| matches!(kind, Kind::Buffer(_) | Kind::UseHost(_) | Kind::Svm { .. }))?;
        Some(match self.builder.program.memories[memory].kind.is_svm() {
            true => What::Free(memory),
            false => What::Release(memory),
        })
    }

    fn store(&mut self) -> Option<What> {
        let most = 1 + self.rng.below(64 << 10);
        let (place, size) = self.place(most, 1, true)?;
        Some(What::Store(place, size, self.rng.word() as u8))
    }

    fn check(&mut self) -> Option<What> {
        let most = 1 + self.rng.below(64 << 10);
        let (place, size) = self.place(most, 1, false)?;
        Some(What::Check(place, size))
    }

    fn new_queue(&mut self) -> Option<What> {
        let (program, scene) = (&self.builder.program, &self.builder.scene);
        (scene.queues() < program.queues.len()).then_some(What::NewQueue)
    }
}
