//! The command line.

use crate::child::Setting;
use crate::hostile::Hostile;
use crate::run::Conduct;
use crate::world::Which;
use std::time::Duration;

/// The usage of the command line.
pub const USAGE: &str = "\
model [--seconds S] [--programs N] [--workers N] [--devices N] [--seed X] [--only SEED] [--file PATH] [--print]
      [--repeat N] [--shrink N] [--findings N] [--patience S] [--without NAMES] [--with NAMES]
      [--sub-devices N] [--grace S] [--hostile NAMES] [--cost]

--seconds   how long (default 10)
--programs  how many programs (default: as many as there is time for)
--workers   how many processes run programs (default 2)
--devices   how many of the platform's devices share the context (default 1; 0: all)
--seed      of the first program (default: from the clock; printed)
--only      run the program of this seed alone
--file      run the program in this file alone
--print     print programs instead of running them
--repeat    how often to run it, with --only or --file (default 20)
--shrink    programs to try in order to make a finding small (default 400; 0: leave it as it is)
--findings  stop after so many (default 5)
--patience  seconds after which a program hangs (default 20)
--with      what programs have only where it is asked for, with commas between: gates (commands that wait for the program),
            failures (launches that fail), threads (that end), strict (gates hold up no command of their out-of-order
            queue, and no image that is made), large (memories of 24 MiB), replays (command buffers, and kernels that print
            or enqueue others), semaphores
--sub-devices  so many sub-devices of the first device in place of it (default 0: the device)
--grace     seconds after which what must happen while gates are closed has not (default 5)
--hostile   what processes are like, with commas between: floats (floating-point modes), signals
--cost      run shapes of pending commands in place of programs, and fit what they cost
--without   kinds of memory, actions and out-of-order queues to leave out, as in the text of programs, with commas between

PUMICE_LIB names another library; PUMICE_VALIDATION=1 turns the validation layer on. Exit status 0: no findings.";

/// The options.
#[derive(Debug, Clone)]
pub struct Options {
    /// How long.
    pub time: Duration,
    /// How many programs.
    pub programs: u64,
    /// How many processes.
    pub workers: usize,
    /// On what programs run, and how.
    pub setting: Setting,
    /// The seed of the first program.
    pub seed: u64,
    /// A single program.
    pub only: Option<u64>,
    /// A single program, as text.
    pub file: Option<String>,
    /// Print programs.
    pub print: bool,
    /// How often a single program is run.
    pub repeat: usize,
    /// Programs to try in order to make a finding small.
    pub shrink: usize,
    /// So many are enough.
    pub findings: usize,
    /// The time after which a program counts as hanging.
    pub patience: Duration,
    /// The features to leave out.
    pub without: Vec<String>,
    /// Fit what pending commands cost, in place of programs.
    pub cost: bool,
    /// The features to include.
    pub with: Vec<String>,
}

impl Options {
    /// From the arguments. None: they are not understood.
    pub fn read(args: impl Iterator<Item = String>) -> Option<Self> {
        let clock = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .map_or(1, |time| time.as_nanos() as u64 & 0xffff_ffff);
        let mut options = Self {
            time: Duration::from_secs(10),
            programs: u64::MAX,
            workers: 2,
            setting: Setting {
                which: Which { most: 1, parts: 0 },
                conduct: Conduct {
                    grace: Duration::from_secs(5),
                    hostile: Hostile::default(),
                },
            },
            seed: clock,
            only: None,
            file: None,
            print: false,
            repeat: 20,
            shrink: 400,
            findings: 5,
            patience: Duration::from_secs(20),
            without: Vec::new(),
            with: Vec::new(),
            cost: false,
        };
        let (mut args, mut timed) = (args, false);
        while let Some(name) = args.next() {
            match name.as_str() {
                "--print" => options.print = true,
                "--cost" => options.cost = true,
                _ => {}
            }
            if matches!(name.as_str(), "--print" | "--cost") {
                continue;
            }
            let value = args.next()?;
            match name.as_str() {
                "--seconds" => {
                    options.time = Duration::try_from_secs_f64(value.parse().ok()?).ok()?;
                    timed = true;
                }
                "--programs" => options.programs = value.parse().ok()?,
                "--workers" => options.workers = value.parse::<usize>().ok()?.max(1),
                "--devices" => options.setting.which.most = value.parse().ok()?,
                "--sub-devices" => options.setting.which.parts = value.parse().ok()?,
                "--grace" => {
                    let seconds = value.parse().ok()?;
                    options.setting.conduct.grace = Duration::try_from_secs_f64(seconds).ok()?;
                }
                "--hostile" => options.setting.conduct.hostile = Hostile::read(&value)?,
                "--with" => options.with = value.split(',').map(str::to_owned).collect(),
                "--seed" => options.seed = value.parse().ok()?,
                "--only" => options.only = Some(value.parse().ok()?),
                "--file" => options.file = Some(value),
                "--repeat" => options.repeat = value.parse().ok()?,
                "--shrink" => options.shrink = value.parse().ok()?,
                "--findings" => options.findings = value.parse().ok()?,
                "--patience" => options.patience = Duration::from_secs(value.parse().ok()?),
                "--without" => options.without = value.split(',').map(str::to_owned).collect(),
                _ => return None,
            }
        }
        if options.programs != u64::MAX && !timed {
            options.time = Duration::MAX;
        }
        Some(options)
    }
}
