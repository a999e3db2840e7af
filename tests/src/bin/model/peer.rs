//! Programs run in processes of their own, so that one that crashes or hangs is a finding and not the end. A process takes
//! names of programs, a line each, and answers each with lines that end with a dot.

use crate::edit::Name;
use crate::generate::generate;
use crate::program::Program;
use crate::run::{self, Gate};
use crate::text;
use crate::world::World;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError};
use std::time::Duration;

/// What became of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// All was right; so many actions.
    Good(usize),
    /// Something was wrong.
    Bad(String),
    /// The process ended.
    Crashed(String),
    /// There was no answer in time.
    Hung,
}

/// How processes are started.
#[derive(Debug, Clone)]
pub struct Way {
    /// Devices of the context.
    pub devices: usize,
    /// What programs are made without.
    pub without: String,
    /// How long a program may take.
    pub patience: Duration,
}

struct Process {
    child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
}

/// A process, started again when it is needed and has ended.
pub struct Peer {
    way: Way,
    process: Option<Process>,
}

impl Peer {
    /// One that is not started yet.
    pub fn new(way: Way) -> Self {
        Self { way, process: None }
    }

    fn start(way: &Way) -> std::io::Result<Process> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["--peer", &way.devices.to_string(), &way.without])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let missing = || std::io::Error::other("no pipe");
        let input = child.stdin.take().ok_or_else(missing)?;
        let output = child.stdout.take().ok_or_else(missing)?;
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Ok(Process {
            child,
            input,
            lines,
        })
    }

    /// The lines of the answer to a question.
    fn ask(&mut self, question: &str) -> Result<Vec<String>, Answer> {
        let patience = self.way.patience;
        let process = match &mut self.process {
            Some(process) => process,
            none => match Self::start(&self.way) {
                Ok(process) => none.insert(process),
                Err(error) => return Err(Answer::Crashed(error.to_string())),
            },
        };
        let mut lines = Vec::new();
        let asked = writeln!(process.input, "{question}").and_then(|()| process.input.flush());
        let failed = loop {
            if asked.is_err() {
                break RecvTimeoutError::Disconnected;
            }
            match process.lines.recv_timeout(patience) {
                Ok(line) if line == "." => return Ok(lines),
                Ok(line) => lines.push(line),
                Err(error) => break error,
            }
        };
        let answer = match failed {
            RecvTimeoutError::Timeout => Answer::Hung,
            RecvTimeoutError::Disconnected => {
                let status = process.child.wait();
                let status = status.map_or_else(|e| e.to_string(), |status| status.to_string());
                lines.push(status);
                Answer::Crashed(lines.join(" "))
            }
        };
        self.end();
        Err(answer)
    }

    /// Runs a program.
    pub fn run(&mut self, name: &Name) -> Answer {
        match self.ask(&format!("run {}", name.write())) {
            Ok(lines) => match lines.first().and_then(|line| line.split_once(' ')) {
                Some(("good", actions)) => Answer::Good(actions.parse().unwrap_or(0)),
                Some(("bad", what)) => Answer::Bad(what.to_owned()),
                _ => Answer::Crashed(lines.join(" ")),
            },
            Err(answer) => answer,
        }
    }

    /// A program in words.
    pub fn show(&mut self, name: &Name) -> Vec<String> {
        self.ask(&format!("show {}", name.write()))
            .unwrap_or_default()
    }

    /// Two names are of different programs.
    pub fn differs(&mut self, a: &Name, b: &Name) -> bool {
        self.show(a) != self.show(b)
    }

    /// Ends the process. False: it did not end well.
    pub fn end(&mut self) -> bool {
        let Some(Process {
            mut child,
            input,
            lines,
        }) = self.process.take()
        else {
            return true;
        };
        drop(input);
        for _ in 0..500 {
            match child.try_wait() {
                Ok(None) => std::thread::sleep(Duration::from_millis(10)),
                Ok(Some(status)) => {
                    drop(lines);
                    return status.success();
                }
                Err(_) => break,
            }
        }
        let _ = child.kill();
        let _ = child.wait();
        false
    }
}

/// The other side.
pub fn serve(devices: usize, without: &str) {
    let without: Vec<String> = without.split(',').map(str::to_owned).collect();
    let world = World::new(devices);
    let (gates, due) = channel::<Gate>();
    std::thread::spawn(move || {
        for gate in due {
            std::thread::spawn(move || gate.open());
        }
    });
    let made = |name: &str| -> Option<Program> {
        let name = Name::read(name)?;
        Some(name.apply(generate(name.seed, &world.abilities, &without)))
    };
    for line in std::io::stdin().lines().map_while(Result::ok) {
        let answer = match line.split_once(' ') {
            Some(("run", name)) => {
                made(name).map(|program| match run::run(&world, &program, &gates) {
                    None => format!("good {}\n", program.actions.len()),
                    Some(fault) => format!("bad {}\n", text::fault(&program, &fault)),
                })
            }
            Some(("show", name)) => made(name).map(|program| text::program(&program)),
            Some(("devices", _)) => Some(format!("{:?}\n", world.abilities)),
            _ => None,
        };
        let answer = answer.unwrap_or_else(|| "what?\n".into());
        println!("{answer}.");
        let _ = std::io::stdout().flush();
    }
}

impl Peer {
    /// What the devices can do.
    pub fn abilities(&mut self) -> String {
        self.ask("devices ?").unwrap_or_default().join(" ")
    }
}
