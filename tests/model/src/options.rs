//! The command line.

use std::time::Duration;

/// What the command line is.
pub const USAGE: &str = "\
model [--seconds S] [--programs N] [--workers N] [--devices N] [--seed X] [--only SEED] [--file PATH] [--print]
      [--repeat N] [--shrink N] [--findings N] [--patience S] [--without NAMES]

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
--without   kinds of memory, actions and out-of-order queues to leave out, as in the text of programs, with commas between

PUMICE_LIB names another library; PUMICE_VALIDATION=1 turns the validation layer on. Exit status 0: no findings.";

/// What is asked for.
#[derive(Debug, Clone)]
pub struct Options {
    /// How long.
    pub time: Duration,
    /// How many programs.
    pub programs: u64,
    /// How many processes.
    pub workers: usize,
    /// How many devices.
    pub devices: usize,
    /// Of the first program.
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
    /// What hangs.
    pub patience: Duration,
    /// What is left out.
    pub without: Vec<String>,
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
            devices: 1,
            seed: clock,
            only: None,
            file: None,
            print: false,
            repeat: 20,
            shrink: 400,
            findings: 5,
            patience: Duration::from_secs(20),
            without: Vec::new(),
        };
        let (mut args, mut timed) = (args, false);
        while let Some(name) = args.next() {
            if name == "--print" {
                options.print = true;
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
                "--devices" => options.devices = value.parse().ok()?,
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
