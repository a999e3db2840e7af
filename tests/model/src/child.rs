//! The process that runs programs: text in, one line out for each.
//!
//! A driver may treat a context otherwise from the first allocation on that host and device share, or the first kernel that
//! follows pointers. So there are three contexts, and programs without such things have one where there never were any.
//!
//! It is a process of its own because a driver that crashes or hangs is a finding too. It says what the devices can do,
//! then answers each program, which ends with `go`, by `same` or `differs` and what differs.

use crate::hostile::{self, Hostile};
use crate::output::Output;
use crate::parse;
use crate::run::{run, Conduct};
use crate::world::{self, Which, World};
use std::fs::File;
use std::io::{BufRead, Write};
use std::time::Duration;

/// The argument that makes the process one.
pub const ARGUMENT: &str = "--child";

fn answer(mut out: &File, line: &str) {
    // Who does not listen any more ends the process soon.
    let _ = out.write_all(format!("{line}\n").as_bytes());
}

/// How a process runs programs.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// On what.
    pub which: Which,
    /// How.
    pub conduct: Conduct,
}

impl Setting {
    /// As arguments.
    pub fn to_words(self) -> [String; 4] {
        [
            self.which.most.to_string(),
            self.which.parts.to_string(),
            self.conduct.grace.as_millis().to_string(),
            self.conduct.hostile.to_string(),
        ]
    }

    /// From such arguments.
    pub fn from_words(mut words: impl Iterator<Item = String>) -> Option<Self> {
        let mut number = || words.next()?.parse().ok();
        let which = Which {
            most: number()?,
            parts: number()?,
        };
        let grace = Duration::from_millis(number()? as u64);
        let hostile = Hostile::read(&words.next().unwrap_or_default())?;
        Some(Self {
            which,
            conduct: Conduct { grace, hostile },
        })
    }
}

/// Runs what comes until nothing more comes.
pub fn main(setting: Setting) {
    let Setting { which, conduct } = setting;
    let default = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        default(info);
        // SAFETY: ends the process; objects of OpenCL are left as they are.
        unsafe { libc::_exit(101) };
    }));
    #[cfg(target_os = "linux")]
    // SAFETY: a plain system call: the process does not outlive the one that reads its answers.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL)
    };
    let (mut output, out) = Output::capture().expect("a file for what kernels print");
    answer(&out, &world::caps(which).to_line());
    if conduct.hostile.signals {
        hostile::begin_signals();
    }
    let mut worlds: [Option<World>; 3] = [None, None, None];
    let mut text = String::new();
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        if line != "go" {
            text.push_str(&line);
            text.push('\n');
            continue;
        }
        let messages = pumice_tests::validation_messages();
        let result = parse::program(&text).and_then(|program| {
            let world = &mut worlds[program.sharing() as usize];
            // What is made once is made in such a mode, too.
            let floats = conduct.hostile.floats;
            let _floats = floats.then(|| hostile::floats(program.seed));
            let world = world.get_or_insert_with(|| World::new(which));
            run(world, &program, conduct, &mut output)
        });
        let more = pumice_tests::validation_messages() - messages;
        match result {
            Ok(()) if more > 0 => {
                let text = format!("differs {more} messages of the validation layer");
                answer(&out, &text)
            }
            Ok(()) => answer(&out, "same"),
            Err(what) => answer(&out, &format!("differs {what}")),
        }
        text.clear();
    }
}
