//! Chooses the next action of a program. What it chooses need not be legal: the planner says so, and another is chosen.

mod copies;
mod kernels;
mod recorded;

use crate::generate::{weighted, Scope};
use crate::plan::Planner;
use crate::program::{
    Kind, MapHow, Memory, Operand, Place, Program, ProgramAction, Side, Thread, What,
};
use crate::valid::Phase;
use pumice_tests::rng::Rng;
use std::ops::Range;

/// Chooses actions.
pub struct Chooser<'a> {
    /// Chance.
    pub rng: &'a mut Rng,
    /// The program so far.
    pub planner: &'a Planner,
    /// The choices.
    pub scope: &'a Scope,
    /// The memory that was written last.
    pub hot: Option<usize>,
}

/// Bytes that a pointer leads to.
#[derive(Clone, Copy)]
struct Span {
    memory: usize,
    map: Option<usize>,
    start: usize,
    end: usize,
}

impl Span {
    fn size(&self) -> usize {
        self.end - self.start
    }

    fn place(&self, at: usize) -> Place {
        Place {
            memory: self.memory,
            at: self.start + at,
            map: self.map,
        }
    }
}

type Choice<'a> = fn(&mut Chooser<'a>) -> Option<What>;

impl<'a> Chooser<'a> {
    fn program(&self) -> &'a Program {
        self.planner.program()
    }

    fn memory(&self, index: usize) -> &'a Memory {
        &self.program().memories[index]
    }

    /// The bytes that an action writes, of which memory and where.
    pub fn written(action: &ProgramAction) -> Option<(usize, usize, usize)> {
        let operand = |operand: &Operand| match operand {
            Operand::Object(side) => (side.memory, side.at),
            Operand::Pointer(place) | Operand::Number(place) => (place.memory, place.at),
        };
        Some(match &action.what {
            What::Read(_, place, shape) => (place.memory, place.at, shape.span(shape.second)),
            What::Write(side, _, shape) => (side.memory, side.at, shape.span(shape.first)),
            What::Copy(_, side, shape) => (side.memory, side.at, shape.span(shape.second)),
            What::Memcpy(place, _, size, _) => (place.memory, place.at, *size),
            What::MemFill(place, size, _) | What::Store(place, size, _) => {
                (place.memory, place.at, *size)
            }
            What::Fill(side, size, _) => (side.memory, side.at, *size),
            What::Kernel { dst, words, .. } => {
                let (memory, at) = operand(dst);
                (memory, at, words * 4)
            }
            _ => return None,
        })
    }

    /// The next action.
    pub fn action(&mut self) -> Option<ProgramAction> {
        let open = !self.planner.state().open.is_empty();
        // What is made behind a call that blocks shows whether all was over.
        let last = self.program().actions.last();
        let blocked = last.is_some_and(|action| action.blocking);
        let closed = !self.planner.state().closed.is_empty();
        let if_ = |name: &str, weight: usize| if self.scope.with(name) { weight } else { 0 };
        let replays = &self.planner.state().recordings;
        let if_phase = |phase: Phase, weight: usize| match replays.contains(&phase) {
            true => weight,
            false => 0,
        };
        let semaphores = !self.program().semaphores.is_empty();
        let list: [(usize, Choice<'a>); 35] = [
            (26, Self::kernel),
            (13, Self::read),
            (15, Self::write),
            (8, Self::copy),
            (4, Self::fill),
            (19, Self::memcpy),
            (4, Self::mem_fill),
            (10, Self::map),
            (if open { 9 } else { 0 }, Self::unmap),
            (8, Self::store),
            (10, Self::check),
            (2, |_| Some(What::Marker)),
            (2, |_| Some(What::Barrier)),
            (3, Self::migrate),
            (if blocked { 60 } else { 16 }, Self::create),
            (2, Self::release),
            (2, Self::free),
            (3, Self::gate),
            (2, |own| own.queue().map(What::Flush)),
            (2, |own| own.queue().map(What::Finish)),
            (4, Self::wait),
            (4, |own| Some(What::Sleep(10 + own.rng.below(290) as u64))),
            (if_("gates", 5), |_| Some(What::Hold)),
            (if_("gates", 7), Self::gate_kernel),
            (if_("gates", 4), |_| Some(What::GateNative)),
            (if closed { 8 } else { 0 }, Self::open),
            (if_("failures", 6), Self::doomed),
            (if_("threads", 8), Self::thread),
            (if_phase(Phase::New, 40), Self::begin),
            (if_phase(Phase::Recording, 50), Self::finalize),
            (if_phase(Phase::Finalized, 90), Self::replay),
            (if_phase(Phase::Finalized, 35), Self::update),
            (if_phase(Phase::Finalized, 5), Self::discard),
            (if replays.is_empty() { 0 } else { 3 }, Self::misuse),
            (if semaphores { 18 } else { 0 }, Self::semaphores),
        ];
        let choice = match replays.contains(&Phase::Recording) && self.rng.percent(60) {
            true => weighted(self.rng, &recorded::choices()),
            false => weighted(self.rng, &list),
        };
        let what = choice?(self)?;
        let mut action = ProgramAction::host(what);
        if action.what.is_command() {
            action.queue = match &action.what {
                What::Replay { queues, .. } => *queues.first()?,
                _ => self.queue()?,
            };
            action.blocking = action.what.can_block() && self.rng.percent(35);
            action.event = self.rng.percent(20);
            action.callback = self.rng.percent(7);
            if self.rng.percent(18) {
                action.waits.extend(self.event());
            }
            let bit = 1u128.checked_shl(self.program().queues[action.queue].device as u32);
            let is_in = |set: u128| bit.is_some_and(|bit| set & bit != 0);
            match &mut action.what {
                What::GateKernel(alone) => *alone = !is_in(self.scope.caps.beside),
                What::GateNative if !is_in(self.scope.caps.native) => return None,
                What::GateNative
                    if !is_in(self.scope.caps.beside) && !self.scope.with("strict") =>
                {
                    return None;
                }
                _ => {}
            }
            // What must have happened is seen by events.
            if self.scope.with("gates") && self.rng.percent(50) {
                action.event = true;
                action.callback |= self.rng.percent(30);
            }
            self.record(&mut action);
        }
        Some(action)
    }

    fn queue(&mut self) -> Option<usize> {
        let there = self.planner.state().queues.iter().enumerate();
        let list: Vec<usize> = there
            .filter(|(_, there)| **there)
            .map(|(at, _)| at)
            .collect();
        // The queues that were made last have done least.
        let late = list
            .iter()
            .copied()
            .filter(|&at| self.program().queues[at].late);
        let late = late.max().filter(|_| self.rng.percent(40));
        late.or_else(|| (!list.is_empty()).then(|| *self.rng.pick(&list)))
    }

    /// An event, preferably of a gate.
    fn event(&mut self) -> Option<usize> {
        let actions = &self.program().actions;
        let mut list: Vec<usize> = (0..actions.len())
            .filter(|&at| actions[at].is_command())
            .collect();
        let gate = |at: &usize| {
            let what = &actions[*at].what;
            let fails = matches!(what, What::Gate(_) | What::Refuse(_) | What::Doomed);
            actions[*at].recording.is_none() && (fails || what.is_gate())
        };
        let gates: Vec<usize> = (0..actions.len()).filter(gate).collect();
        if !gates.is_empty() && self.rng.percent(70) {
            list = gates;
        }
        (!list.is_empty()).then(|| *self.rng.pick(&list))
    }

    fn wait(&mut self) -> Option<What> {
        self.event().map(What::Wait)
    }

    fn gate(&mut self) -> Option<What> {
        let time = 50 + self.rng.below(2000) as u64;
        Some(match self.rng.percent(25) {
            true => What::Refuse(time),
            false => What::Gate(time),
        })
    }

    fn gate_kernel(&mut self) -> Option<What> {
        self.scope.caps.gates.then_some(What::GateKernel(false))
    }

    fn open(&mut self) -> Option<What> {
        Some(What::Open(*self.rng.pick(&self.planner.state().closed)))
    }

    fn doomed(&mut self) -> Option<What> {
        self.scope.caps.doomed.then_some(What::Doomed)
    }

    fn thread(&mut self) -> Option<What> {
        let how = [Thread::Fresh, Thread::Local, Thread::Key];
        Some(What::Thread(*self.rng.pick(&how)))
    }

    /// One of some things that belong to memories: rather of the one that was written last.
    fn pick<T: Copy>(&mut self, list: &[T], of: impl Fn(&T) -> usize) -> Option<T> {
        let hot: Vec<T> = list
            .iter()
            .copied()
            .filter(|one| Some(of(one)) == self.hot)
            .collect();
        if !hot.is_empty() && self.rng.percent(50) {
            return Some(*self.rng.pick(&hot));
        }
        (!list.is_empty()).then(|| *self.rng.pick(list))
    }

    /// A memory object: memory and number.
    fn object(&mut self, fits: impl Fn(Kind) -> bool) -> Option<(usize, usize)> {
        let mut list = Vec::new();
        for (index, memory) in self.program().memories.iter().enumerate() {
            if self.planner.state().objects[index] && fits(memory.kind) {
                list.extend((0..memory.views.len()).map(|view| (index, view)));
                list.push((index, 0));
            }
        }
        self.pick(&list, |one| one.0)
    }

    /// Memory that the host may use now.
    fn host(&mut self, write: bool) -> Option<Span> {
        let state = self.planner.state();
        let mut list = Vec::new();
        for (index, memory) in self.program().memories.iter().enumerate() {
            if state.memories[index] && memory.kind.is_open() {
                let weight = if memory.kind == Kind::Plain { 1 } else { 3 };
                let span = Span {
                    memory: index,
                    map: None,
                    start: 0,
                    end: memory.size,
                };
                list.extend([span].repeat(weight));
            }
        }
        for &map in &state.open {
            let Some((memory, range, how)) = self.program().mapped(map) else {
                continue;
            };
            if (how == MapHow::Read && write) || (how == MapHow::Invalidate && !write) {
                continue;
            }
            let pitch = self.memory(memory).kind.pitch().unwrap_or(usize::MAX);
            let span = Span {
                memory,
                map: Some(map),
                start: range.start,
                end: range.end.min(range.start.saturating_add(pitch)),
            };
            list.extend([span; 5]);
        }
        self.pick(&list, |span| span.memory)
    }

    /// Memory that commands and kernels follow pointers into.
    fn address(&mut self) -> Option<usize> {
        let memories = self.program().memories.iter().enumerate();
        let there = self.planner.state();
        let list: Vec<usize> = memories
            .filter(|(at, memory)| memory.kind.has_address() && there.memories[*at])
            .map(|(at, _)| at)
            .collect();
        self.pick(&list, |at| *at)
    }

    /// A size within a limit: often all.
    fn size(&mut self, most: usize, step: usize) -> usize {
        let units = most / step;
        if units == 0 || self.rng.percent(60) {
            return units * step;
        }
        (1 + self.rng.below(units)) * step
    }

    /// Where so many bytes go in so many.
    fn spot(&mut self, all: usize, size: usize, step: usize) -> usize {
        match self.rng.percent(40) {
            true => 0,
            false => self.rng.below((all - size) / step + 1) * step,
        }
    }

    fn side(&self, object: (usize, usize), at: usize) -> Side {
        let view = &self.memory(object.0).views[object.1];
        Side {
            memory: object.0,
            view: object.1,
            at: view.start + at,
        }
    }

    fn view(&self, object: (usize, usize)) -> Range<usize> {
        self.memory(object.0).views[object.1].clone()
    }

    fn map(&mut self) -> Option<What> {
        let how = [
            (4, MapHow::Read),
            (5, MapHow::Write),
            (2, MapHow::Invalidate),
        ];
        let how = weighted(self.rng, &how)?;
        if self.rng.percent(30) {
            let memory = self.address()?;
            let of = self.memory(memory);
            let size = self.size(of.size, 4);
            let at = self.spot(of.size, size, 4);
            let place = Place {
                memory,
                at,
                map: None,
            };
            return of.kind.is_svm().then_some(What::SvmMap(place, size, how));
        }
        let object = self.object(|_| true)?;
        let all = self.view(object).len();
        let step = self.memory(object.0).kind.pitch().unwrap_or(4);
        let size = self.size(all, step);
        let at = self.spot(all, size, step);
        (size > 0).then(|| What::Map(self.side(object, at), size, how))
    }

    fn unmap(&mut self) -> Option<What> {
        let open = &self.planner.state().open;
        Some(What::Unmap(*self.rng.pick(open)))
    }

    fn store(&mut self) -> Option<What> {
        let host = self.host(true)?;
        let size = self.size(host.size(), 4);
        let at = self.spot(host.size(), size, 4);
        let number = self.rng.bits() as u32;
        (size > 0).then(|| What::Store(host.place(at), size, number))
    }

    fn check(&mut self) -> Option<What> {
        let host = self.host(false)?;
        Some(What::Check(host.place(0), host.size()))
    }

    fn migrate(&mut self) -> Option<What> {
        let all = self.program().memories.len();
        Some(What::Migrate(self.rng.below(all), self.rng.percent(50)))
    }

    /// Whatever is yet to be made.
    fn create(&mut self) -> Option<What> {
        let (program, state) = (self.program(), self.planner.state());
        let memories = program.memories.iter().enumerate();
        let mut list: Vec<What> = memories
            .filter(|(at, memory)| memory.late && !state.objects[*at])
            .map(|(at, _)| What::Create(at))
            .collect();
        let queues = program.queues.iter().enumerate();
        list.extend(
            queues
                .filter(|(at, queue)| queue.late && !state.queues[*at])
                .map(|(at, _)| What::NewQueue(at)),
        );
        (!list.is_empty()).then(|| self.rng.pick(&list).clone())
    }

    fn release(&mut self) -> Option<What> {
        if self.rng.percent(30) {
            return self.queue().filter(|queue| *queue > 0).map(What::EndQueue);
        }
        self.object(|_| true)
            .map(|(memory, _)| What::Release(memory))
    }

    fn free(&mut self) -> Option<What> {
        self.address().map(What::Free)
    }
}
