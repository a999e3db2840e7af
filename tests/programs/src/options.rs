//! The command line.

use std::path::PathBuf;
use std::time::Duration;

/// The usage message.
pub const USAGE: &str = "\
programs [--seconds S] [--count N] [--workers N] [--seed X] [--executors NAMES] [--each N] [--shrink N] [--findings N]
         [--patience S] [--slow S] [--out FOLDER] [--locks] [--without NAMES] [--print] [FILE ...]

FILE ...     run these cases, as findings are written, and nothing else
--seconds    how long (default 10)
--count      how many programs (default: as many as there is time for)
--workers    how many sets of executors run programs side by side (default 1)
--seed       of the first program (default: from the clock; printed)
--executors  with commas between: cpu128, cpu256, cpu512, or part of a Vulkan device's name (default: all three, llvmpipe)
--each       on how many of them each program is run, by lot (default: all)
--shrink     programs to try in order to make a finding small (default 1500; 0: leave it as it is)
--findings   stop after so many (default 5)
--patience   seconds after which a program hangs (default 240)
--slow       milliseconds after which a build with its launch is a finding (default: never)
--out        folder for findings (default: they are printed)
--without    shapes to leave out, with commas between: labels (arms with several labels, and what becomes such),
             alignment, wrap (ids that wrap around and are widened), jumps, null, chains (of casts), sub-groups
--locks      programs may have locks, for which a work-item waits for another of its group
--print      print programs instead of running them

PUMICE_LIB names another library. Exit status 0: no findings.";

/// The options of the command line.
#[derive(Debug, Clone)]
pub struct Options {
    pub time: Duration,
    pub count: u64,
    pub workers: usize,
    pub seed: u64,
    pub executors: Vec<String>,
    pub each: usize,
    pub shrink: usize,
    pub findings: usize,
    pub patience: Duration,
    pub slow: u64,
    pub out: Option<PathBuf>,
    pub print: bool,
    pub without: Vec<String>,
    pub locks: bool,
    pub files: Vec<PathBuf>,
}

impl Options {
    /// From the arguments. None: they are not understood.
    pub fn read(mut args: impl Iterator<Item = String>) -> Option<Self> {
        let clock = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .map_or(1, |time| time.as_nanos() as u64 & 0xff_ffff);
        let mut options = Self {
            time: Duration::from_secs(10),
            count: u64::MAX,
            workers: 1,
            seed: clock << 20,
            executors: ["cpu128", "cpu256", "cpu512", "llvmpipe"]
                .map(str::to_owned)
                .to_vec(),
            each: usize::MAX,
            shrink: 1500,
            findings: 5,
            patience: Duration::from_secs(240),
            slow: u64::MAX,
            out: None,
            print: false,
            without: Vec::new(),
            locks: false,
            files: Vec::new(),
        };
        let mut timed = false;
        while let Some(name) = args.next() {
            if name == "--locks" {
                options.locks = true;
                continue;
            }
            if name == "--print" {
                options.print = true;
                continue;
            }
            if !name.starts_with("--") {
                options.files.push(name.into());
                continue;
            }
            let value = args.next()?;
            match name.as_str() {
                "--seconds" => {
                    options.time = Duration::try_from_secs_f64(value.parse().ok()?).ok()?;
                    timed = true;
                }
                "--count" => options.count = value.parse().ok()?,
                "--workers" => options.workers = value.parse::<usize>().ok()?.max(1),
                "--seed" => options.seed = value.parse().ok()?,
                "--executors" => options.executors = value.split(',').map(str::to_owned).collect(),
                "--each" => options.each = value.parse::<usize>().ok()?.max(1),
                "--shrink" => options.shrink = value.parse().ok()?,
                "--findings" => options.findings = value.parse().ok()?,
                "--patience" => options.patience = Duration::from_secs(value.parse().ok()?),
                "--without" => options.without = value.split(',').map(str::to_owned).collect(),
                "--slow" => options.slow = value.parse().ok()?,
                "--out" => options.out = Some(value.into()),
                _ => return None,
            }
        }
        if options.count != u64::MAX && !timed {
            options.time = Duration::MAX;
        }
        Some(options)
    }
}
