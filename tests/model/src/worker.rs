//! The other end of a process that runs programs: starts it, asks it, and notices when it ends or hangs.

use crate::child::{self, Setting};
use crate::program::Program;
use crate::world::Caps;
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The outcome of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The result is what the model expects.
    Same,
    /// Something else.
    Differs(String),
    /// The process ended.
    Crash(String),
    /// The process gave no answer in time.
    Hang,
}

impl Outcome {
    /// The two are of one sort, whatever differs.
    pub fn is_like(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

/// A process.
struct Process {
    child: Child,
    /// None once it is to end.
    input: Option<ChildStdin>,
    answers: Receiver<String>,
    /// The last lines of its error output.
    errors: Arc<Mutex<VecDeque<String>>>,
}

/// Runs programs, in one process after the other.
pub struct Worker {
    setting: Setting,
    patience: Duration,
    process: Option<Process>,
    /// The abilities of the devices.
    pub caps: Caps,
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may be over already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends what comes line by line.
fn listen(from: impl Read + Send + 'static, mut to: impl FnMut(String) -> bool + Send + 'static) {
    std::thread::spawn(move || {
        for line in BufReader::new(from).lines() {
            if !line.is_ok_and(&mut to) {
                break;
            }
        }
    });
}

/// Returns the threads of a process: the name of each, the kernel's function that it waits in, and its system call.
fn threads(process: u32) -> std::io::Result<Vec<String>> {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task"))?;
    let line = |task: std::io::Result<std::fs::DirEntry>| -> std::io::Result<String> {
        let path = task?.path();
        let read = |name| std::fs::read_to_string(path.join(name));
        let of = |name| read(name).unwrap_or_else(|error| error.to_string());
        Ok(format!(
            "{} in {}, call {}",
            of("comm").trim(),
            of("wchan"),
            of("syscall").trim()
        ))
    };
    tasks.map(line).collect()
}

impl Process {
    fn start(setting: Setting) -> std::io::Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg(child::ARGUMENT)
            .args(setting.to_words())
            // Messages of the validation layer are wanted only where somebody asks for it.
            .env(
                "PUMICE_VALIDATION",
                std::env::var_os("PUMICE_VALIDATION").unwrap_or_else(|| "0".into()),
            )
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let missing = || std::io::Error::other("no pipe");
        let input = child.stdin.take().ok_or_else(missing)?;
        let output = child.stdout.take().ok_or_else(missing)?;
        let other = child.stderr.take().ok_or_else(missing)?;
        let (sender, answers) = channel();
        listen(output, move |line| sender.send(line).is_ok());
        let errors = Arc::new(Mutex::new(VecDeque::new()));
        let last = errors.clone();
        listen(other, move |line| {
            let Ok(mut last) = last.lock() else {
                return false;
            };
            last.push_back(line);
            if last.len() > 8 {
                last.pop_front();
            }
            true
        });
        Ok(Self {
            child,
            input: Some(input),
            answers,
            errors,
        })
    }

    /// How it ended.
    fn end(mut self) -> String {
        let status = self.child.wait().map(|status| status.to_string());
        // Its last words are on their way.
        std::thread::sleep(Duration::from_millis(20));
        let errors = self
            .errors
            .lock()
            .map(|last| last.iter().cloned().collect::<Vec<_>>());
        format!(
            "{}: {}",
            status.unwrap_or_default(),
            errors.unwrap_or_default().join(" | ")
        )
    }
}

impl Worker {
    /// With a process in this setting, which answers in time or hangs.
    pub fn new(setting: Setting, patience: Duration) -> Result<Self, String> {
        let mut worker = Self {
            setting,
            patience,
            process: None,
            caps: Caps::default(),
        };
        worker.start()?;
        Ok(worker)
    }

    fn start(&mut self) -> Result<(), String> {
        let process = Process::start(self.setting).map_err(|error| error.to_string())?;
        // The kernels are built first, which takes what it takes.
        match process.answers.recv_timeout(self.patience * 4) {
            Ok(line) => {
                self.caps = Caps::from_line(&line).ok_or(line)?;
                self.process = Some(process);
                Ok(())
            }
            Err(RecvTimeoutError::Timeout) => Err("the process does not begin".to_owned()),
            Err(RecvTimeoutError::Disconnected) => Err(process.end()),
        }
    }

    /// Ends the process, as a program ends. An error where it does not end well.
    pub fn close(mut self) -> Result<(), String> {
        let Some(mut process) = self.process.take() else {
            return Ok(());
        };
        process.input = None;
        let began = Instant::now();
        while began.elapsed() < self.patience {
            match process.child.try_wait() {
                Ok(Some(status)) if status.success() => return Ok(()),
                Ok(Some(_)) => return Err(process.end()),
                Ok(None) => std::thread::sleep(Duration::from_millis(5)),
                Err(error) => return Err(error.to_string()),
            }
        }
        Err(format!(
            "the process does not end; its threads: {}",
            threads(process.child.id()).unwrap_or_default().join(", ")
        ))
    }

    /// Runs a program once.
    pub fn run(&mut self, program: &Program) -> Result<Outcome, String> {
        if self.process.is_none() {
            self.start()?;
        }
        let Some(mut process) = self.process.take() else {
            return Err("no process".to_owned());
        };
        let ended = || std::io::Error::other("the process was told to end");
        let sent = process.input.as_mut().ok_or_else(ended).and_then(|input| {
            writeln!(input, "{program}go")?;
            input.flush()
        });
        let answer = match sent {
            Ok(()) => process.answers.recv_timeout(self.patience),
            Err(_) => Err(RecvTimeoutError::Disconnected),
        };
        Ok(match answer {
            Ok(line) => {
                self.process = Some(process);
                match line.strip_prefix("differs ") {
                    Some(what) => Outcome::Differs(what.to_owned()),
                    None => Outcome::Same,
                }
            }
            Err(RecvTimeoutError::Timeout) => Outcome::Hang,
            Err(RecvTimeoutError::Disconnected) => Outcome::Crash(process.end()),
        })
    }
}
