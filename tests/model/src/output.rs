//! The standard output of a process that runs programs: a file, where what kernels print is read again.

use pumice_tests::process::replace_output;
use pumice_tests::Scratch;
use std::fs::File;
use std::io::{Read, Result};

/// The output.
pub struct Output {
    file: File,
    /// The beginning of a line that has not ended.
    rest: String,
}

impl Output {
    /// Puts a file in the place of standard output. Returns the former one, too.
    pub fn capture() -> Result<(Self, File)> {
        let place = Scratch::new("model")?;
        let path = place.join("output");
        let write = File::options().create(true).append(true).open(&path)?;
        let file = File::open(&path)?;
        let rest = String::new();
        Ok((Self { file, rest }, replace_output(write)))
    }

    /// The lines that have come since this was called last.
    pub fn take(&mut self) -> Vec<String> {
        self.file
            .read_to_string(&mut self.rest)
            .expect("the output");
        let end = self.rest.rfind('\n').map_or(0, |at| at + 1);
        let lines = self.rest.drain(..end).collect::<String>();
        lines.lines().map(str::to_owned).collect()
    }
}
