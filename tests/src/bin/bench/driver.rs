//! The process of one driver, as the parent sees it: commands go in, answers come out.

use crate::work::Figure;
use crate::{decode, Options};
use pumice_tests::client::loader::vendors_directory;
use pumice_tests::client::{problem, Result};
use pumice_tests::Scratch;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// A driver in a process of its own.
pub struct Driver {
    process: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    pub heading: String,
    /// A GPU with memory for large sizes.
    pub large: bool,
    /// Its vendors file and its caches, which go after the process.
    _place: Scratch,
}

impl Driver {
    /// Its process, which has chosen its device.
    pub fn start(library: &Path, label: &str, options: &Options) -> Result<Self> {
        let place = Scratch::new(&format!("bench-{label}"))
            .map_err(|error| problem("making a directory", error.to_string()))?;
        let vendors = vendors_directory(&place, library)
            .map_err(|note| problem("choosing the driver", note))?;
        let program = std::env::current_exe().map_err(|e| problem("starting", e.to_string()))?;
        let mut command = Command::new(program);
        if options.cpu {
            command.arg("--cpu");
        }
        command
            .args(["--child", "--seconds", &options.seconds.to_string()])
            .args(["--device", &options.device.to_string()])
            .env("OCL_ICD_VENDORS", vendors)
            .env_remove("OCL_ICD_FILENAMES")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        // Caches of this run only, so that "new" and "known" mean what they say.
        for (name, folder) in [
            ("PUMICE_CACHE_DIR", "pumice"),
            ("MESA_SHADER_CACHE_DIR", "mesa"),
            ("POCL_CACHE_DIR", "pocl"),
            ("CUDA_CACHE_PATH", "nvidia"),
        ] {
            let folder = place.join(folder);
            // A driver that cannot have its cache says so itself.
            let _ = std::fs::create_dir_all(&folder);
            command.env(name, folder);
        }
        if std::env::var_os("RUSTICL_ENABLE").is_none() {
            command.env("RUSTICL_ENABLE", "llvmpipe");
        }
        let mut process = command
            .spawn()
            .map_err(|e| problem("starting", e.to_string()))?;
        let input = process.stdin.take();
        let output = process
            .stdout
            .take()
            .ok_or_else(|| problem("starting", "no pipe"))?;
        let mut driver = Self {
            process,
            input,
            output: BufReader::new(output),
            heading: String::new(),
            large: false,
            _place: place,
        };
        let hello = driver.ask("hello").map_err(|mut error| {
            error.note = format!("{}: {}", library.display(), error.note);
            error
        })?;
        let (large, heading) = hello.split_once(' ').unwrap_or(("false", ""));
        driver.large = large == "true";
        driver.heading = heading.to_owned();
        Ok(driver)
    }

    /// Did the driver end its process? Some do so instead of returning errors.
    pub fn is_gone(&mut self) -> bool {
        !matches!(self.process.try_wait(), Ok(None))
    }

    /// The rest of an answer that begins with "ok".
    fn ask(&mut self, command: &str) -> Result<String> {
        let gone = |what: &str| problem("asking a driver", format!("its process {what}"));
        let input = self
            .input
            .as_mut()
            .ok_or_else(|| gone("takes no commands"))?;
        writeln!(input, "{command}").map_err(|_| gone("is gone"))?;
        input.flush().map_err(|_| gone("is gone"))?;
        let mut line = String::new();
        match self.output.read_line(&mut line) {
            Ok(count) if count > 0 => {}
            _ => {
                let status = self.process.wait().map(|s| s.to_string());
                return Err(gone(&format!("ended: {}", status.unwrap_or_default())));
            }
        }
        let line = line.trim_end();
        match line.strip_prefix("ok") {
            Some(rest) => Ok(rest.trim_start().to_owned()),
            None => Err(problem(
                "the driver",
                line.trim_start_matches("fail ").to_owned(),
            )),
        }
    }

    /// Prepares a workload, and tells what its figure is.
    pub fn set_up(&mut self, number: usize, large: bool) -> Result<Figure> {
        let answer = self.ask(&format!("set-up {number} {large}"))?;
        let (kind, amount) = answer.split_once(' ').unwrap_or_default();
        amount
            .parse()
            .ok()
            .and_then(|amount| decode(kind, amount))
            .ok_or_else(|| problem("setting up", answer))
    }

    /// Seconds that one turn took, by pieces of work.
    pub fn run(&mut self) -> Result<f64> {
        let answer = self.ask("run")?;
        answer.parse().map_err(|_| problem("measuring", answer))
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // End of input ends the child; one that hangs in a driver is killed.
        self.input = None;
        for _ in 0..50 {
            if !matches!(self.process.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
