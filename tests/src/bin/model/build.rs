//! Programs made action by action, each defined by the specification: what an action needs to come after, it is made to
//! come after. So an edited program becomes a program again.

use crate::program::{Action, Place, Program, What};
use crate::scene::{each, Refusal, Scene, MOST};
use pumice_tests::rng::Rng;

/// A program in the making.
pub struct Builder {
    /// So far.
    pub program: Program,
    /// What is known of it.
    pub scene: Scene,
}

impl Builder {
    /// Of a program without actions.
    pub fn new(program: Program) -> Self {
        let scene = Scene::new(&program);
        Self { program, scene }
    }

    /// Adds an action and what it takes for it to be defined: events in its wait list, or waits of the host before it.
    /// Gives its number.
    pub fn push(&mut self, action: Action, rng: &mut Option<&mut Rng>) -> Result<usize, Refusal> {
        let mut action = action;
        if self.program.actions.len() + 8 >= MOST {
            return Err("enough");
        }
        let missing = self.scene.needs(&self.program, &action)?;
        let mut chance = |percent| rng.as_mut().is_some_and(|rng| rng.percent(percent));
        for earlier in each(missing) {
            let finishes = self.program.actions[earlier].is_command() && chance(25);
            if action.is_host() || chance(15) {
                let (what, queue) = match finishes {
                    true => (What::Finish, self.program.actions[earlier].queue),
                    false => (What::Wait(earlier), 0),
                };
                self.add(Action::new(what, queue));
            } else if !action.waits.contains(&earlier) {
                action.waits.push(earlier);
            }
        }
        Ok(self.add(action))
    }

    fn add(&mut self, action: Action) -> usize {
        let number = self.program.actions.len();
        self.program.actions.push(action);
        self.scene.add(&self.program, number);
        number
    }
}

/// The same program with other actions: those that are not defined any more are left out.
pub fn rebuild(program: &Program, actions: Vec<Option<Action>>) -> Program {
    let empty = Program {
        actions: Vec::new(),
        ..program.clone()
    };
    let mut builder = Builder::new(empty);
    let mut places: Vec<Option<usize>> = Vec::new();
    for action in actions {
        let renamed = action.and_then(|action| renumber(action, &places));
        let place = renamed.and_then(|action| builder.push(action, &mut None).ok());
        places.push(place);
    }
    builder.program
}

/// The action with the numbers of others as they are now. None: what it needs is not there any more.
fn renumber(action: Action, places: &[Option<usize>]) -> Option<Action> {
    let mut action = action;
    action.waits = action
        .waits
        .iter()
        .filter_map(|wait| places[*wait])
        .collect();
    let place = |place: &mut Place| {
        if let Some(map) = place.map {
            place.map = Some(places[map]?);
        }
        Some(())
    };
    match &mut action.what {
        What::Unmap(map) => *map = places[*map]?,
        What::Wait(other) => *other = places[*other]?,
        What::Read(_, at, _)
        | What::Write(_, at, _)
        | What::ReadImage(_, at, _)
        | What::WriteImage(_, at, _)
        | What::MemFill(at, ..)
        | What::Store(at, ..)
        | What::Check(at, _) => place(at)?,
        What::Memcpy(dst, src, _) => {
            place(dst)?;
            place(src)?;
        }
        _ => {}
    }
    Some(action)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::{BufferKind, Kind, MapHow, Memory, Queue, Shape, Side};

    fn memory(kind: Kind) -> Memory {
        Memory {
            kind,
            size: 4096,
            views: Memory::whole(4096),
        }
    }

    fn builder(in_order: bool) -> Builder {
        let queue = Queue {
            device: 0,
            in_order,
            profiling: false,
        };
        Builder::new(Program {
            seed: 0,
            memories: vec![
                memory(Kind::Buffer(BufferKind::Written)),
                memory(Kind::Plain),
                memory(Kind::Svm { fine: true }),
                memory(Kind::Svm { fine: false }),
            ],
            queues: vec![queue; 2],
            first_queues: 2,
            actions: Vec::new(),
        })
    }

    fn side(at: usize) -> Side {
        Side {
            memory: 0,
            view: 0,
            at,
        }
    }

    fn place(memory: usize, at: usize) -> Place {
        Place {
            memory,
            at,
            map: None,
        }
    }

    fn fill(at: usize, queue: usize) -> Action {
        Action::new(What::Fill(side(at), 1024, vec![1]), queue)
    }

    fn read(at: usize, queue: usize) -> Action {
        let what = What::Read(side(at), place(1, 0), Shape::line(1024));
        Action::new(what, queue)
    }

    #[test]
    fn queues_and_bytes_decide_what_waits() {
        let mut builder = builder(true);
        builder.push(fill(0, 0), &mut None).unwrap();
        let same = builder.push(read(0, 0), &mut None).unwrap();
        assert!(builder.program.actions[same].waits.is_empty());
        let elsewhere = builder.push(fill(2048, 1), &mut None).unwrap();
        assert!(builder.program.actions[elsewhere].waits.is_empty());
        // Reads and overwrites the same; the read comes after the fill.
        let other = builder.push(fill(512, 1), &mut None).unwrap();
        assert_eq!(builder.program.actions[other].waits, [same]);
    }

    #[test]
    fn out_of_order_all_conflicts_wait() {
        let mut builder = builder(false);
        let first = builder.push(fill(0, 0), &mut None).unwrap();
        let second = builder.push(read(0, 0), &mut None).unwrap();
        assert_eq!(builder.program.actions[second].waits, [first]);
        builder
            .push(Action::new(What::Barrier, 0), &mut None)
            .unwrap();
        let third = builder.push(fill(0, 0), &mut None).unwrap();
        assert!(builder.program.actions[third].waits.is_empty());
    }

    #[test]
    fn the_host_waits() {
        let mut builder = builder(true);
        builder.push(read(0, 0), &mut None).unwrap();
        let check = Action::new(What::Check(place(1, 0), 16), 0);
        let number = builder.push(check, &mut None).unwrap();
        assert_eq!(number, 2);
        assert_eq!(builder.program.actions[1].what, What::Wait(0));
        // A blocking command needs no wait.
        let mut blocking = read(0, 0);
        blocking.blocking = true;
        builder.push(blocking, &mut None).unwrap();
        let check = Action::new(What::Check(place(1, 0), 16), 0);
        assert_eq!(builder.push(check, &mut None), Ok(4));
    }

    #[test]
    fn maps_close_the_memory() {
        let mut builder = builder(true);
        let map = What::Map {
            side: side(0),
            size: 1024,
            how: MapHow::Write,
            svm: false,
        };
        let map = builder.push(Action::new(map, 0), &mut None).unwrap();
        assert_eq!(builder.push(fill(512, 0), &mut None), Err("mapped"));
        assert!(builder.push(fill(1024, 0), &mut None).is_ok());
        // Into the mapped memory, by another queue: after the map.
        let through = Place {
            map: Some(map),
            ..place(0, 0)
        };
        let what = What::Read(side(2048), through, Shape::line(512));
        let into = builder.push(Action::new(what, 1), &mut None).unwrap();
        assert_eq!(builder.program.actions[into].waits, [map]);
        // The unmap comes after that.
        let unmap = Action::new(What::Unmap(map), 0);
        let unmap = builder.push(unmap, &mut None).unwrap();
        assert_eq!(builder.program.actions[unmap].waits, [into]);
        let late = Action::new(What::Store(through, 16, 1), 0);
        assert_eq!(builder.push(late, &mut None), Err("not mapped any more"));
    }

    #[test]
    fn the_host_needs_a_map_of_coarse_memory() {
        let mut builder = builder(true);
        let store = |memory| Action::new(What::Store(place(memory, 0), 16, 1), 0);
        assert!(builder.push(store(2), &mut None).is_ok());
        assert_eq!(
            builder.push(store(3), &mut None),
            Err("the host has no access")
        );
    }

    #[test]
    fn what_is_left_of_a_program_is_a_program() {
        let mut builder = builder(false);
        let first = builder.push(fill(0, 0), &mut None).unwrap();
        builder.push(read(0, 0), &mut None).unwrap();
        builder.push(fill(0, 1), &mut None).unwrap();
        let program = builder.program;
        let mut actions: Vec<_> = program.actions.iter().cloned().map(Some).collect();
        actions[1] = None;
        let less = rebuild(&program, actions);
        assert_eq!(less.actions.len(), 2);
        // What the read had stood between now does itself.
        assert_eq!(less.actions[1].waits, [first]);
    }
}
