//! Reads the text of programs ([`crate::text`] has the form).

use crate::program::{
    Kind, Manner, MapHow, Memory, Misuse, Operand, Origin, Place, Program, ProgramAction, Queue,
    Recording, Shape, Side, Thread, Usm, What,
};
use std::iter::Peekable;
use std::ops::Range;
use std::str::{FromStr, SplitWhitespace};

/// The words of a line.
struct Words<'a> {
    words: Peekable<SplitWhitespace<'a>>,
}

impl<'a> Words<'a> {
    fn new(line: &'a str) -> Self {
        Self {
            words: line.split_whitespace().peekable(),
        }
    }

    fn next(&mut self) -> Option<&'a str> {
        self.words.next()
    }

    fn number<T: FromStr>(&mut self) -> Option<T> {
        self.next()?.parse().ok()
    }

    /// A word, and a number behind it.
    fn named<T: FromStr>(&mut self, name: &str) -> Option<T> {
        (self.next()? == name).then(|| self.number())?
    }

    /// Takes the next word if it is this.
    fn has(&mut self, name: &str) -> bool {
        self.words.next_if_eq(&name).is_some()
    }

    /// The number behind the next word, if that is this. None: there is no number.
    fn option(&mut self, name: &str) -> Option<Option<usize>> {
        match self.has(name) {
            true => self.number().map(Some),
            false => Some(None),
        }
    }

    fn side(&mut self) -> Option<Side> {
        side(self.next()?)
    }

    fn place(&mut self) -> Option<Place> {
        place(self.next()?)
    }

    fn operand(&mut self) -> Option<Operand> {
        let word = self.next()?;
        if let Some(rest) = word.strip_prefix('*') {
            return place(rest).map(Operand::Number);
        }
        let object = side(word).map(Operand::Object);
        object.or_else(|| place(word).map(Operand::Pointer))
    }

    fn shape(&mut self) -> Option<Shape> {
        let word = self.next()?;
        let Some((row, rest)) = word.split_once('x') else {
            return word.parse().ok().map(Shape::line);
        };
        let mut rest = rest.split(':').map(|word| word.parse().ok());
        Some(Shape {
            row: row.parse().ok()?,
            rows: rest.next()??,
            first: rest.next()??,
            second: rest.next()??,
        })
    }

    fn bytes(&mut self) -> Option<Vec<u8>> {
        let word = self.next()?;
        let digits = (0..word.len()).step_by(2).map(|at| word.get(at..at + 2));
        digits
            .map(|pair| u8::from_str_radix(pair?, 16).ok())
            .collect()
    }

    /// Numbers with commas between.
    fn list(&mut self) -> Option<Vec<usize>> {
        let list = self.next()?.split(',');
        list.map(|one| one.parse().ok()).collect()
    }

    fn how(&mut self) -> Option<MapHow> {
        Some(match self.next()? {
            "read" => MapHow::Read,
            "write" => MapHow::Write,
            "invalidate" => MapHow::Invalidate,
            _ => return None,
        })
    }
}

fn side(word: &str) -> Option<Side> {
    let (memory, rest) = word.strip_prefix('m')?.split_once('/')?;
    let (view, at) = rest.split_once('@')?;
    Some(Side {
        memory: memory.parse().ok()?,
        view: view.parse().ok()?,
        at: at.parse().ok()?,
    })
}

fn place(word: &str) -> Option<Place> {
    let (memory, rest) = word.strip_prefix('m')?.split_once('@')?;
    let (at, map) = match rest.split_once('^') {
        Some((at, map)) => (at, Some(map.parse().ok()?)),
        None => (rest, None),
    };
    Some(Place {
        memory: memory.parse().ok()?,
        at: at.parse().ok()?,
        map,
    })
}

fn kind(word: &str) -> Option<Kind> {
    let (name, number) = word.split_once('+').unwrap_or((word, "0"));
    let number: usize = number.parse().ok()?;
    Some(match name {
        "plain" => Kind::Plain,
        "system" => Kind::System,
        "buffer" => Kind::Buffer(Origin::Written),
        "copied" => Kind::Buffer(Origin::Copied),
        "copied-alloc" => Kind::Buffer(Origin::CopiedAlloc),
        "use-host" => Kind::UseHost(number),
        "svm-fine" => Kind::Svm { fine: true },
        "svm-coarse" => Kind::Svm { fine: false },
        "buffer-svm-fine" => Kind::SvmBuffer {
            fine: true,
            lead: number,
        },
        "buffer-svm-coarse" => Kind::SvmBuffer {
            fine: false,
            lead: number,
        },
        "usm-host" => Kind::Usm(Usm::Host),
        "usm-device" => Kind::Usm(Usm::Device),
        "usm-shared" => Kind::Usm(Usm::Shared),
        "image" => Kind::Image(number),
        _ => return None,
    })
}

fn memory(words: &mut Words<'_>) -> Option<Memory> {
    let (kind, size) = (kind(words.next()?)?, words.number()?);
    let device = words.named("device")?;
    let late = words.has("late");
    words.has("views").then_some(())?;
    let mut views: Vec<Range<usize>> = Vec::new();
    while let Some(word) = words.next() {
        let (start, end) = word.split_once("..")?;
        views.push(start.parse().ok()?..end.parse().ok()?);
    }
    Some(Memory {
        kind,
        size,
        views,
        device,
        late,
    })
}

fn queue(words: &mut Words<'_>) -> Option<Queue> {
    let in_order = words.next()? == "in-order";
    Some(Queue {
        in_order,
        device: words.named("device")?,
        profiling: words.has("profiling"),
        late: words.has("late"),
    })
}

fn recording(words: &mut Words<'_>) -> Option<Recording> {
    words.has("queues").then_some(())?;
    Some(Recording {
        queues: words.list()?,
        simultaneous: words.has("simultaneous"),
        mutable: words.has("mutable"),
        from: words.option("from")?,
    })
}

fn what(words: &mut Words<'_>) -> Option<What> {
    Some(match words.next()? {
        "read" => What::Read(words.side()?, words.place()?, words.shape()?),
        "write" => What::Write(words.side()?, words.place()?, words.shape()?),
        "copy" => What::Copy(words.side()?, words.side()?, words.shape()?),
        "fill" => What::Fill(words.side()?, words.number()?, words.bytes()?),
        "svm-memcpy" => What::Memcpy(words.place()?, words.place()?, words.number()?, false),
        "usm-memcpy" => What::Memcpy(words.place()?, words.place()?, words.number()?, true),
        "memfill" => What::MemFill(words.place()?, words.number()?, words.bytes()?),
        "map" => What::Map(words.side()?, words.number()?, words.how()?),
        "svm-map" => What::SvmMap(words.place()?, words.number()?, words.how()?),
        "unmap" => What::Unmap(words.number()?),
        "kernel" => What::Kernel {
            dst: words.operand()?,
            src: words.operand()?,
            words: words.named("words")?,
            add: words.named("add")?,
            spins: words.named("spins")?,
            manner: Manner {
                prints: words.has("prints"),
                enqueues: words.has("enqueues"),
            },
        },
        "marker" => What::Marker,
        "barrier" => What::Barrier,
        "migrate" => What::Migrate(words.number()?, false),
        "migrate-host" => What::Migrate(words.number()?, true),
        "free" => What::Free(words.number()?),
        "create" => What::Create(words.number()?),
        "release" => What::Release(words.number()?),
        "new-queue" => What::NewQueue(words.number()?),
        "end-queue" => What::EndQueue(words.number()?),
        "gate" => What::Gate(words.number()?),
        "refuse" => What::Refuse(words.number()?),
        "hold" => What::Hold,
        "gate-kernel" => What::GateKernel(false),
        "gate-kernel-alone" => What::GateKernel(true),
        "gate-native" => What::GateNative,
        "open" => What::Open(words.number()?),
        "doomed" => What::Doomed,
        "begin" => What::Begin(words.number()?),
        "finalize" => What::Finalize(words.number()?),
        "replay" => What::Replay {
            of: words.number()?,
            own: words.has("own") || !words.has("queues"),
            queues: words.list()?,
        },
        "update" => What::Update {
            of: words.number()?,
            dst: words.operand()?,
            src: words.operand()?,
            words: words.named("words")?,
            add: words.named("add")?,
            copy: words.option("copy")?,
        },
        "discard" => What::Discard(words.number()?),
        "misuse-unfinalized" => What::Misuse(words.number()?, Misuse::Unfinalized),
        "misuse-point" => What::Misuse(words.number()?, Misuse::Point),
        "misuse-finalized" => What::Misuse(words.number()?, Misuse::Finalized),
        "signal" => What::Signal(words.list()?),
        "await" => What::Await(words.list()?),
        "thread" => What::Thread(Thread::Fresh),
        "thread-local" => What::Thread(Thread::Local),
        "thread-key" => What::Thread(Thread::Key),
        "store" => What::Store(words.place()?, words.number()?, words.number()?),
        "check" => What::Check(words.place()?, words.number()?),
        "flush" => What::Flush(words.number()?),
        "finish" => What::Finish(words.number()?),
        "wait" => What::Wait(words.number()?),
        "sleep" => What::Sleep(words.number()?),
        _ => return None,
    })
}

fn action(line: &str) -> Option<ProgramAction> {
    let mut words = Words::new(line);
    words.next()?;
    let number = |word: &&str| word.strip_prefix('q').and_then(|rest| rest.parse().ok());
    let queue = words.words.peek().and_then(number);
    if queue.is_some() {
        words.next();
    }
    let recording = match words.has("record") {
        true => Some(words.number()?),
        false => None,
    };
    let mut action = ProgramAction::new(what(&mut words)?, queue.unwrap_or(0));
    action.recording = recording;
    if words.has("after") {
        action.waits = words.list()?;
    }
    action.blocking = words.has("blocking");
    action.event = words.has("event");
    action.callback = words.has("callback");
    words.next().is_none().then_some(action)
}

/// The program that a text describes, or the line that is not understood.
pub fn program(text: &str) -> Result<Program, String> {
    let mut program = Program::default();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let mut words = Words::new(line);
        let read = match words.next() {
            Some("seed") => words.number().map(|seed| program.seed = seed),
            Some("strict") => {
                program.strict = true;
                Some(())
            }
            Some("memory") => {
                words.next();
                memory(&mut words).map(|memory| program.memories.push(memory))
            }
            Some("queue") => {
                words.next();
                queue(&mut words).map(|queue| program.queues.push(queue))
            }
            Some("recording") => {
                words.next();
                recording(&mut words).map(|recording| program.recordings.push(recording))
            }
            Some("semaphore") => {
                words.next();
                let device = words.named("device");
                device.map(|device| program.semaphores.push(device))
            }
            _ => action(line).map(|action| program.actions.push(action)),
        };
        read.ok_or_else(|| line.to_owned())?;
    }
    Ok(program)
}
