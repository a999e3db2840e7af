//! What the specification says of a program so far: which actions are over before another begins, what is mapped, what
//! exists. An action that the specification leaves undefined is refused; one that is defined once it comes after others is
//! told which ([`Scene::needs`]).

use crate::access::{accesses, meet, Access};
use crate::program::{Action, Kind, MapHow, Operand, Place, Program, Usm, What};

/// Actions of a program, by number.
pub type Set = u128;

/// Actions of a program at most.
pub const MOST: usize = 120;

/// The set of one.
pub fn one(action: usize) -> Set {
    1 << action
}

/// The numbers in a set.
pub fn each(set: Set) -> impl Iterator<Item = usize> {
    (0..MOST + 8).filter(move |action| set & one(*action) != 0)
}

/// Why an action is refused.
pub type Refusal = &'static str;

#[derive(Debug, Clone, Copy, Default)]
struct Line {
    /// Its commands, and what is over before them.
    all: Set,
    /// The same of its last barrier.
    barrier: Set,
}

/// A program so far.
#[derive(Debug, Clone)]
pub struct Scene {
    before: Vec<Set>,
    /// Over, and the host knows it.
    known: Set,
    log: Vec<(usize, Access)>,
    lines: Vec<Line>,
    maps: Vec<usize>,
    gone: Vec<usize>,
    queues: usize,
}

impl Scene {
    /// Before the first action.
    pub fn new(program: &Program) -> Self {
        Self {
            before: Vec::new(),
            known: 0,
            log: Vec::new(),
            lines: vec![Line::default(); program.queues.len()],
            maps: Vec::new(),
            gone: Vec::new(),
            queues: program.first_queues,
        }
    }

    /// The actions whose maps stand.
    pub fn maps(&self) -> &[usize] {
        &self.maps
    }

    /// The memory was not freed.
    pub fn is_there(&self, memory: usize) -> bool {
        !self.gone.contains(&memory)
    }

    /// Queues that exist.
    pub fn queues(&self) -> usize {
        self.queues
    }

    /// The action and all that is over before it.
    fn closed(&self, action: usize) -> Set {
        self.before[action] | one(action)
    }

    /// What is over before an action begins that is made next.
    fn before(&self, program: &Program, action: &Action) -> Set {
        if matches!(action.what, What::Gate(_)) {
            return 0;
        }
        let mut set = self.known;
        if action.is_host() {
            return set;
        }
        for wait in &action.waits {
            set |= self.closed(*wait);
        }
        let line = &self.lines[action.queue];
        let all = matches!(action.what, What::Marker | What::Barrier) && action.waits.is_empty();
        if all || program.queues[action.queue].in_order {
            set | line.all
        } else {
            set | line.barrier
        }
    }

    /// What must be over before an action, and is not. None of the actions named has another of them before it.
    pub fn needs(&self, program: &Program, action: &Action) -> Result<Set, Refusal> {
        self.check_places(program, action)?;
        let before = self.before(program, action);
        let mut missing: Set = 0;
        let all = accesses(program, action);
        for (number, access) in all.iter().enumerate() {
            let memory = &program.memories[access.memory];
            if !self.is_there(access.memory) {
                return Err("the memory is gone");
            }
            if access.range.end > memory.size || access.range.is_empty() {
                return Err("beyond the memory");
            }
            if let Some(view) = access.view {
                let view = &memory.views[view];
                if access.range.start < view.start || access.range.end > view.end {
                    return Err("beyond the memory object");
                }
            }
            let in_place = matches!(&action.what, What::Kernel { dst, src, .. } if dst == src);
            if !in_place
                && all[..number]
                    .iter()
                    .any(|other| other.conflicts(access, memory))
            {
                return Err("touches bytes twice");
            }
            self.check_maps(program, action, access)?;
            missing |= access.map.map_or(0, one);
            for (earlier, other) in &self.log {
                if other.conflicts(access, memory) {
                    missing |= one(*earlier);
                }
            }
        }
        if let What::Unmap(map) = action.what {
            if !self.maps.contains(&map) {
                return Err("not mapped");
            }
            missing |= one(map);
            for (earlier, access) in &self.log {
                if access.map == Some(map) {
                    missing |= one(*earlier);
                }
            }
        }
        missing &= !before;
        let covered = each(missing).fold(0, |set, action| set | self.before[action]);
        Ok(missing & !covered)
    }

    /// The kinds of memory suit the action.
    fn check_places(&self, program: &Program, action: &Action) -> Result<(), Refusal> {
        if !action.is_host() && !matches!(action.what, What::Gate(_)) && action.queue >= self.queues
        {
            return Err("no such queue");
        }
        let kind = |memory: usize| program.memories[memory].kind;
        let open = |place: &Place| match place.map.is_some() || kind(place.memory).is_open() {
            true => Ok(()),
            false => Err("the host has no access"),
        };
        let addressed = |place: &Place| {
            let kind = kind(place.memory);
            match place.map {
                Some(_) if kind.has_address() => Err("mapped"),
                None if kind != Kind::Plain && !kind.has_address() => Err("no address"),
                _ => Ok(()),
            }
        };
        match &action.what {
            What::Read(_, place, _)
            | What::Write(_, place, _)
            | What::ReadImage(_, place, _)
            | What::WriteImage(_, place, _)
            | What::Store(place, ..)
            | What::Check(place, _) => open(place)?,
            What::Memcpy(dst, src, _) => {
                addressed(dst)?;
                addressed(src)?;
            }
            What::MemFill(place, ..)
                if place.map.is_some() || kind(place.memory) == Kind::Plain =>
            {
                return Err("fills are of shared memory");
            }
            What::MemFill(place, ..) => addressed(place)?,
            What::Kernel { dst, src, .. } => {
                for operand in [dst, src] {
                    match operand {
                        Operand::Address(place)
                            if place.map.is_some() || !kind(place.memory).has_address() =>
                        {
                            return Err("the device has no access")
                        }
                        _ => {}
                    }
                }
            }
            What::Free(memory) | What::Release(memory) => {
                if !self.is_there(*memory) {
                    return Err("the memory is gone");
                }
                let mapped = |map: &usize| match &program.actions[*map].what {
                    What::Map { side, .. } => side.memory == *memory,
                    _ => false,
                };
                if self.maps.iter().any(mapped) {
                    return Err("mapped");
                }
            }
            _ => {}
        }
        // A device's own memory is for its queues.
        let own =
            |access: &Access| matches!(kind(access.memory), Kind::Usm(Usm::Device | Usm::Shared));
        if action.is_command()
            && program.queues[action.queue].device != 0
            && accesses(program, action).iter().any(own)
        {
            return Err("memory of another device");
        }
        Ok(())
    }

    fn check_maps(
        &self,
        program: &Program,
        action: &Action,
        access: &Access,
    ) -> Result<(), Refusal> {
        if matches!(action.what, What::Unmap(_)) {
            return Ok(());
        }
        for map in &self.maps {
            let What::Map {
                side, size, how, ..
            } = &program.actions[*map].what
            else {
                continue;
            };
            let range = side.at..side.at + size;
            if access.map == Some(*map) {
                let inside = range.start <= access.range.start && access.range.end <= range.end;
                if !inside || (access.write && *how == MapHow::Read) {
                    return Err("not what was mapped");
                }
            } else if side.memory == access.memory
                && meet(&range, &access.range)
                && (access.write || *how != MapHow::Read)
            {
                return Err("mapped");
            }
        }
        match access.map {
            Some(map) if !self.maps.contains(&map) => Err("not mapped any more"),
            _ => Ok(()),
        }
    }

    /// Takes over the action that was just added to the program, which needs nothing more.
    pub fn add(&mut self, program: &Program, number: usize) {
        let action = &program.actions[number];
        let before = self.before(program, action);
        self.before.push(before);
        let closed = before | one(number);
        match &action.what {
            What::Gate(_) => return,
            What::Finish => self.known |= self.lines[action.queue].all,
            What::Wait(other) => self.known |= self.closed(*other),
            What::NewQueue => self.queues += 1,
            What::Map { .. } => self.maps.push(number),
            What::Unmap(map) => self.maps.retain(|known| known != map),
            What::Free(memory) | What::Release(memory) => self.gone.push(*memory),
            _ => {}
        }
        if action.is_host() {
            return;
        }
        let line = &mut self.lines[action.queue];
        line.all |= closed;
        if matches!(action.what, What::Barrier) {
            line.barrier |= closed;
        }
        if action.blocking {
            self.known |= closed;
        }
        let all = accesses(program, action);
        self.log
            .extend(all.into_iter().map(|access| (number, access)));
    }
}
