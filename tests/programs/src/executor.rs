//! An executor: a process on one device with vectors of one width. Starts it, asks it, notices when it ends or hangs.

use crate::case::{from_hex, Case};
use crate::child;
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The results of a case on an executor.
#[derive(Debug, Clone)]
pub enum Answer {
    Done {
        /// How long build and launch took.
        milliseconds: u64,
        /// The size of its sub-groups; 0 where it was not asked for.
        sub_group: usize,
        buffers: Vec<Vec<u8>>,
        lines: Vec<String>,
    },
    /// The device lacks what the program asks for.
    Skipped,
    /// A call failed: its error, and the build log.
    Failed(String),
    /// The process ended.
    Crash(String),
    /// There was no answer in time.
    Hang,
}

struct Process {
    child: Child,
    input: ChildStdin,
    answers: Receiver<String>,
    errors: Arc<Mutex<VecDeque<String>>>,
}

/// An executor.
pub struct Executor {
    pub name: String,
    cache: PathBuf,
    patience: Duration,
    process: Option<Process>,
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

impl Process {
    fn start(name: &str, cache: &Path) -> std::io::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        match name.strip_prefix("cpu") {
            Some(width) => command
                .env("PUMICE_DEVICES", "cpu")
                .env("PUMICE_CPU_WIDTH", width),
            None => command.env("PUMICE_DEVICES", name),
        };
        let mut child = command
            .arg(child::ARGUMENT)
            .env("PUMICE_CACHE_DIR", cache)
            .env("PUMICE_VALIDATION", "0")
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
            input,
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
        let (status, errors) = (status.unwrap_or_default(), errors.unwrap_or_default());
        format!("{status}: {}", errors.join(" | "))
    }
}

fn parse(line: &str) -> Option<Answer> {
    if let Some(why) = line.strip_prefix("failed ") {
        return Some(Answer::Failed(why.to_owned()));
    }
    if line == "skipped" {
        return Some(Answer::Skipped);
    }
    let mut parts = line.strip_prefix("done ")?.split('\t');
    let mut words = parts.next()?.split(' ');
    let milliseconds = words.next()?.parse().ok()?;
    let sub_group = words.next()?.parse().ok()?;
    let bytes = |word| from_hex(word)?.into_iter().collect::<Option<Vec<u8>>>();
    Some(Answer::Done {
        milliseconds,
        sub_group,
        buffers: words.map(bytes).collect::<Option<_>>()?,
        lines: parts.map(str::to_owned).collect(),
    })
}

impl Executor {
    /// By name: `cpu128`, `cpu256`, `cpu512`, or part of the name of a Vulkan device.
    pub fn new(name: &str, cache: &Path, patience: Duration) -> Self {
        Self {
            name: name.to_owned(),
            cache: cache.to_owned(),
            patience,
            process: None,
        }
    }

    /// Runs a case.
    pub fn run(&mut self, case: &Case) -> Result<Answer, String> {
        let mut process = match self.process.take() {
            Some(process) => process,
            None => Process::start(&self.name, &self.cache).map_err(|error| error.to_string())?,
        };
        let text = case.text();
        let sent = writeln!(process.input, "{}", text.len())
            .and_then(|()| process.input.write_all(text.as_bytes()))
            .and_then(|()| process.input.flush());
        let answer = match sent {
            Ok(()) => process.answers.recv_timeout(self.patience),
            Err(_) => Err(RecvTimeoutError::Disconnected),
        };
        match answer {
            Ok(line) => {
                self.process = Some(process);
                parse(&line).ok_or_else(|| format!("not an answer: {line}"))
            }
            Err(RecvTimeoutError::Timeout) => Ok(Answer::Hang),
            Err(RecvTimeoutError::Disconnected) => Ok(Answer::Crash(process.end())),
        }
    }
}
