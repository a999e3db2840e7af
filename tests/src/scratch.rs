//! Directories for the files of one run.

use std::ops::Deref;
use std::path::{Path, PathBuf};

/// A directory of this process below the system's for temporary files. It goes with this, and all that is in it.
pub struct Scratch(PathBuf);

impl Scratch {
    /// An empty one. Of those that live at the same time each has another name.
    pub fn new(name: &str) -> std::io::Result<Self> {
        let name = format!("pumice-{name}-{}", std::process::id());
        let place = std::env::temp_dir().join(name);
        // An earlier process of this number may have been killed.
        let _ = std::fs::remove_dir_all(&place);
        std::fs::create_dir_all(&place)?;
        Ok(Self(place))
    }
}

impl Deref for Scratch {
    type Target = Path;
    fn deref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::Scratch;

    #[test]
    fn it_goes_with_what_is_in_it() {
        let scratch = Scratch::new("scratch").expect("a directory");
        let place = scratch.to_path_buf();
        std::fs::create_dir(place.join("folder")).expect("a folder");
        std::fs::write(place.join("folder/file"), "text").expect("a file");
        drop(scratch);
        assert!(!place.exists());

        // Nor is anything there that an earlier process has left.
        std::fs::create_dir(&place).expect("a directory");
        std::fs::write(place.join("old"), "text").expect("a file");
        let scratch = Scratch::new("scratch").expect("a directory");
        assert_eq!(scratch.read_dir().expect("a directory").count(), 0);
    }
}
