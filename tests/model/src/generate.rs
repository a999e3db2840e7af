//! Makes programs: memories and queues by chance, then actions one by one, each as the planner allows ([`crate::choose`]).
//!
//! What goes wrong in a driver goes wrong where few things meet often, so there are few memories, and actions prefer what
//! was written last, and memory that host and device both reach.

use crate::choose::Chooser;
use crate::plan::{Mending, Planner};
use crate::program::{
    Kind, Memory, Origin, Place, Program, ProgramAction, Queue, Recording, Shape, Side, Usm, What,
};
use crate::world::Caps;
use pumice_tests::rng::Rng;

/// The scope of a generator.
#[derive(Debug, Clone, Default)]
pub struct Scope {
    /// The abilities of the devices.
    pub caps: Caps,
    /// Names of kinds of memory and of actions that are left out; `out-of-order` is one of queues.
    pub without: Vec<String>,
    /// The features that programs only have on request: `gates`, `failures`, `threads`, `strict`,
    /// `large`, `replays`, `semaphores`.
    pub with: Vec<String>,
}

impl Scope {
    /// A name is asked for.
    pub fn with(&self, name: &str) -> bool {
        self.with.iter().any(|with| with == name)
    }

    /// A number of a device; with many, often one of those whose numbers differ by 64.
    fn device(&self, rng: &mut Rng) -> usize {
        let devices = self.caps.devices.max(1);
        let far = *rng.pick(&[0, 64, 128]);
        match devices > 64 && rng.percent(60) {
            true if far < devices => far,
            _ => rng.below(devices),
        }
    }

    /// A name is not left out.
    pub fn has(&self, name: &str) -> bool {
        let name = name.split('+').next().unwrap_or(name);
        !self.without.iter().any(|out| out == name)
    }
}

/// One of some things, each with a weight.
pub fn weighted<T: Copy>(rng: &mut Rng, list: &[(usize, T)]) -> Option<T> {
    let total: usize = list.iter().map(|(weight, _)| weight).sum();
    if total == 0 {
        return None;
    }
    let mut at = rng.below(total);
    for (weight, thing) in list {
        if at < *weight {
            return Some(*thing);
        }
        at -= weight;
    }
    None
}

const SIZES: [usize; 8] = [
    64,
    1024,
    4096,
    16 << 10,
    48 << 10,
    64 << 10,
    128 << 10,
    256 << 10,
];

/// More than what a driver copies for a call that does not block.
const LARGE: usize = 24 << 20;

/// The relation of the memory of host and device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// Nothing: memory of the application, buffers and images of their own.
    Separate,
    /// Anything.
    Shared,
}

fn kind(rng: &mut Rng, scope: &Scope, mode: Mode) -> Kind {
    let Caps {
        coarse,
        fine,
        system,
        usm,
        images,
        align,
        ..
    } = scope.caps;
    let if_ = |there: bool, weight: usize| if there { weight } else { 0 };
    let lead = *rng.pick(&[0, 0, 0, 4096, align, 3 * align]);
    let offset = *rng.pick(&[0, 0, 0, 64, 4, 1000]);
    let mut list = vec![
        (10, Kind::Plain),
        (if_(system, 6), Kind::System),
        (12, Kind::Buffer(Origin::Written)),
        (6, Kind::Buffer(Origin::Copied)),
        (6, Kind::Buffer(Origin::CopiedAlloc)),
        (10, Kind::UseHost(offset)),
        (if_(fine, 14), Kind::Svm { fine: true }),
        (if_(coarse, 9), Kind::Svm { fine: false }),
        (if_(fine, 8), Kind::SvmBuffer { fine: true, lead }),
        (if_(coarse, 6), Kind::SvmBuffer { fine: false, lead }),
        (if_(usm[0], 5), Kind::Usm(Usm::Host)),
        (if_(usm[1], 4), Kind::Usm(Usm::Device)),
        (if_(usm[2], 5), Kind::Usm(Usm::Shared)),
        (if_(images, 8), Kind::Image(*rng.pick(&[64, 256, 1024]))),
    ];
    let fits = |kind: Kind| {
        mode == Mode::Shared || matches!(kind, Kind::Plain | Kind::Buffer(_) | Kind::Image(_))
    };
    list.retain(|(_, kind)| fits(*kind) && scope.has(&kind.to_string()));
    weighted(rng, &list).unwrap_or(Kind::Plain)
}

/// Sub-buffers begin where the devices can.
fn parts(rng: &mut Rng, size: usize, align: usize) -> Vec<std::ops::Range<usize>> {
    let whole = 0..size;
    let mut list = vec![whole];
    while list.len() < 3 && rng.percent(30) {
        let start = rng.below(size.div_ceil(align)) * align;
        let most = (size - start) / 4;
        let length = if rng.percent(50) {
            most
        } else {
            1 + rng.below(most)
        };
        list.push(start..start + length * 4);
    }
    list
}

fn memory(rng: &mut Rng, scope: &Scope, kind: Kind, usual: usize) -> Memory {
    let mut size = match rng.percent(75) {
        true => usual,
        false => *rng.pick(&SIZES),
    };
    if let Kind::Image(pitch) = kind {
        size = (size / pitch).clamp(1, 256) * pitch;
    }
    let late = matches!(
        kind,
        Kind::Buffer(Origin::Copied | Origin::CopiedAlloc)
            | Kind::UseHost(_)
            | Kind::SvmBuffer { .. }
            | Kind::Image(_)
    ) && rng.percent(12);
    let whole = 0..size;
    let views = match kind {
        _ if kind.is_buffer() => parts(rng, size, scope.caps.align),
        Kind::Image(_) => vec![whole],
        _ => Vec::new(),
    };
    Memory {
        kind,
        size,
        views,
        device: scope.device(rng),
        late,
    }
}

fn queue(rng: &mut Rng, scope: &Scope, first: bool) -> Queue {
    Queue {
        device: scope.device(rng),
        in_order: rng.percent(65) || !scope.has("out-of-order"),
        profiling: rng.percent(20),
        late: !first && rng.percent(35),
    }
}

/// A command buffer of one of the queues, or of several.
fn recording(rng: &mut Rng, scope: &Scope, queues: usize) -> Recording {
    let several = queues > 1 && scope.caps.several && rng.percent(25);
    let first = rng.below(queues);
    let count = if several { 2 } else { 1 };
    Recording {
        queues: (0..count).map(|at| (first + at) % queues).collect(),
        simultaneous: rng.percent(50),
        mutable: scope.caps.mutable && rng.percent(60),
        from: None,
    }
}

/// A copy of one of the command buffers, for other queues, or for a single one.
fn copy(rng: &mut Rng, program: &Program) -> Recording {
    let (from, queues) = (rng.below(program.recordings.len()), program.queues.len());
    let of = &program.recordings[from];
    let others = if rng.percent(20) {
        0
    } else {
        1 + rng.below(queues.max(2) - 1)
    };
    let first = (of.queues[0] + others) % queues;
    let count = if rng.percent(30) { 1 } else { of.queues.len() };
    Recording {
        queues: (0..count).map(|at| (first + at) % queues).collect(),
        from: Some(from),
        ..of.clone()
    }
}

/// Ways in which what is missing is waited for.
pub fn mending(rng: &mut Rng) -> Mending {
    let list = [
        (60, Mending::Event),
        (8, Mending::Marker),
        (20, Mending::Barrier),
        (8, Mending::Finish),
        (12, Mending::Host),
    ];
    weighted(rng, &list).unwrap_or(Mending::Event)
}

/// Whoever waited looks at once: the host, or another queue, which may be one that has just been made. What cannot be, as the
/// planner has it, is left out.
fn look(planner: &mut Planner, rng: &mut Rng, written: (usize, usize, usize)) {
    let (memory, at, size) = written;
    let place = |memory, at| Place {
        memory,
        at,
        map: None,
    };
    if planner.program().memories[memory].kind.is_open() {
        if rng.percent(70) {
            let _ = planner.add(ProgramAction::host(What::Check(place(memory, at), size)));
        }
        return;
    }
    let mut memories = planner.program().memories.iter();
    let to = memories.position(|one| one.kind == Kind::Plain);
    let Some(to) = to.filter(|_| rng.percent(30)) else {
        return;
    };
    let late =
        |(at, queue): (usize, &Queue)| (queue.late && !planner.state().queues[at]).then_some(at);
    let queue = planner.program().queues.iter().enumerate().find_map(late);
    if let Some(queue) = queue {
        let _ = planner.add(ProgramAction::host(What::NewQueue(queue)));
    }
    let queue = queue.unwrap_or(rng.below(planner.program().queues.len()));
    let of = &planner.program().memories[memory];
    let left = of.kind.pitch().map_or(size, |pitch| pitch - at % pitch);
    let size = size.min(left).min(planner.program().memories[to].size);
    let side = Side {
        memory,
        view: 0,
        at,
    };
    let mut read = ProgramAction::new(What::Read(side, place(to, 0), Shape::line(size)), queue);
    read.blocking = true;
    if planner.mend(read, |_| Mending::Host).is_ok() {
        let _ = planner.add(ProgramAction::host(What::Check(place(to, 0), size)));
    }
}

/// The program of a seed.
pub fn generate(seed: u64, scope: &Scope) -> Program {
    let mut rng = Rng::new(seed, 0);
    let mut usual = *rng.pick(&SIZES);
    if scope.with("large") && rng.percent(25) {
        usual = LARGE;
    }
    let mut program = Program {
        seed,
        strict: scope.with("strict"),
        ..Program::default()
    };
    let mode = match rng.percent(25) {
        true => Mode::Separate,
        false => Mode::Shared,
    };
    let queues = *rng.pick(&[1, 1, 1, 1, 1, 2, 2, 2, 3, 3]);
    for index in 0..queues {
        let made = queue(&mut rng, scope, index == 0);
        program.queues.push(made);
    }
    for index in 0..3 + rng.below(3) {
        let kind = match index {
            0 if rng.percent(70) => Kind::Plain,
            1 if rng.percent(60) => Kind::Buffer(Origin::Written),
            _ => kind(&mut rng, scope, mode),
        };
        program.memories.push(memory(&mut rng, scope, kind, usual));
    }
    let mut wanted = 3 + rng.below(14);
    if scope.with("replays") && scope.caps.replays && rng.percent(80) {
        for _ in 0..*rng.pick(&[1, 1, 1, 2]) {
            let made = recording(&mut rng, scope, program.queues.len());
            program.recordings.push(made);
        }
        while scope.caps.several && program.recordings.len() < 4 && rng.percent(45) {
            if program.queues.len() == 1 {
                let made = queue(&mut rng, scope, true);
                program.queues.push(made);
            }
            let made = copy(&mut rng, &program);
            program.recordings.push(made);
        }
        wanted += 8 + rng.below(12);
    }
    if scope.with("semaphores") && scope.caps.semaphores && rng.percent(60) {
        for _ in 0..*rng.pick(&[1, 1, 2]) {
            program.semaphores.push(rng.pick(&program.queues).device);
        }
        wanted += rng.below(6);
    }
    let mut planner = Planner::new(&program);
    let mut hot = None;
    for _ in 0..wanted * 6 {
        if planner.program().actions.len() >= wanted {
            break;
        }
        let mut chooser = Chooser {
            rng: &mut rng,
            planner: &planner,
            scope,
            hot,
        };
        let Some(action) = chooser.action() else {
            continue;
        };
        if !scope.has(action.what.verb()) {
            continue;
        }
        let written = Chooser::written(&action);
        let blocking = action.blocking;
        if planner.mend(action, |_| mending(&mut rng)).is_err() {
            continue;
        }
        hot = written.map(|(memory, ..)| memory).or(hot);
        if let (true, Some(written)) = (blocking, written) {
            look(&mut planner, &mut rng, written);
        }
    }
    planner.program().clone()
}
