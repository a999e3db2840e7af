//! Temporary directories: for the headers that an application passes, and for arguments that are
//! too long for a command line.

use super::Header;
use crate::util::files;
use std::io::{Error, ErrorKind, Result};
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A temporary directory; removed when dropped.
pub struct Scratch {
    dir: PathBuf,
    /// The files and directories made, parents first.
    made: Vec<PathBuf>,
}

impl Scratch {
    /// Creates an empty one, in the directory that the environment names, or else in the usual one.
    pub fn new() -> Result<Self> {
        let places = [
            std::env::temp_dir(),
            "/tmp".into(),
            "/var/tmp".into(),
            "/dev/shm".into(),
        ];
        Self::in_one_of(&places)
    }

    fn in_one_of(places: &[PathBuf]) -> Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let mut last = Error::from(ErrorKind::NotFound);
        for place in places {
            // clang and its server may be elsewhere.
            let Ok(place) = std::path::absolute(place) else {
                continue;
            };
            loop {
                let number = NEXT.fetch_add(1, Ordering::Relaxed);
                let dir = place.join(format!("pumice-{}-{number}", std::process::id()));
                match std::fs::create_dir(&dir) {
                    Ok(()) => {
                        let made = Vec::new();
                        return Ok(Self { dir, made });
                    }
                    Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                    Err(error) => {
                        last = error;
                        break;
                    }
                }
            }
        }
        Err(last)
    }

    /// Creates one with these headers.
    pub fn with_headers(headers: &[Header<'_>]) -> Result<Self> {
        let mut scratch = Self::new()?;
        for header in headers {
            let relative = Path::new(header.name);
            let inside = |c| matches!(c, Component::Normal(_) | Component::CurDir);
            if !relative.components().all(inside) {
                let what = format!(
                    "header name \"{}\" leaves the include directory",
                    header.name
                );
                return Err(Error::new(ErrorKind::InvalidInput, what));
            }
            scratch.write(relative, header.text.as_bytes())?;
        }
        Ok(scratch)
    }

    /// Writes a file, with the directories in its name. Returns its path.
    pub fn write(&mut self, relative: &Path, bytes: &[u8]) -> Result<PathBuf> {
        let mut path = self.dir.clone();
        for part in relative.parent().into_iter().flat_map(Path::components) {
            path.push(part);
            self.made.push(path.clone());
        }
        std::fs::create_dir_all(&path)?;
        let file = self.dir.join(relative);
        self.made.push(file.clone());
        files::limited(|| std::fs::write(&file, bytes))?;
        Ok(file)
    }

    /// Returns the path.
    pub fn dir(&self) -> &Path {
        &self.dir
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // By name, too, which takes no file descriptor: there may be none left.
        if std::fs::remove_dir_all(&self.dir).is_err() {
            for file in self.made.iter().rev() {
                let _ = std::fs::remove_file(file).or_else(|_| std::fs::remove_dir(file));
            }
            let _ = std::fs::remove_dir(&self.dir);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_place_is_passed_over() {
        let missing = PathBuf::from("/nonexistent/pumice");
        assert!(Scratch::in_one_of(std::slice::from_ref(&missing)).is_err());
        let scratch = Scratch::in_one_of(&[missing, std::env::temp_dir()]).unwrap();
        let dir = scratch.dir().to_owned();
        assert!(dir.is_dir());
        drop(scratch);
        assert!(!dir.exists());
    }

    #[test]
    fn headers_stay_inside() {
        let header = |name| Header { name, text: "1" };
        let scratch = Scratch::with_headers(&[header("a/b.h")]).unwrap();
        assert!(scratch.dir().join("a/b.h").is_file());
        // With and without the descriptors that a look into directories takes.
        for file in scratch.made.iter().rev() {
            assert!(file.starts_with(scratch.dir()) && file.exists());
        }
        assert!(Scratch::with_headers(&[header("../b.h")]).is_err());
        assert!(Scratch::with_headers(&[header("/b.h")]).is_err());
    }
}
