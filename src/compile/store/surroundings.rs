//! The dependencies of a compilation besides its source: the files that it read, and the places
//! where it looked for them in vain.
//!
//! The compiler reports the files that it read (`clang/dependencies.rs`), not where it looked. But
//! it looks for a name in directories one after the other: that of the including file, then those
//! of the options. So whatever part of a file's path can have been its name may have been looked
//! for in each directory that is known, and no such file may appear there. `__has_include` looks
//! for files that are not read, and clang 22 takes a missing file for an empty one in `#embed`: a
//! text with those words is not cached, and neither is one that names the time.
//!
//! Only regular files are read, and none that was changed since the compilation began. A file is
//! not hashed again in this process while device, inode, size and time of change are the same.

use super::sections;
use crate::util::file_state::{self, change_time, Identity};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The size in bytes above which files are not read.
const MOST_BYTES: u64 = 256 << 20;
/// The most places that are watched.
const MOST_PLACES: usize = 20_000;
/// The resolution of the times of files.
const STEP: Duration = Duration::from_millis(10);

/// The macros whose value depends on when a text is compiled, or when its file was changed.
const TIMES: [&str; 3] = ["__TIME__", "__DATE__", "__TIMESTAMP__"];

/// The headers that clang includes by itself; it looks for them in the given directories first.
const OWN_HEADERS: [&str; 2] = ["opencl-c-base.h", "opencl-c.h"];

/// Files with the hashes of their contents, and names without a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Surroundings {
    /// The directory in which the names are relative, or empty if there are none.
    directory: PathBuf,
    files: Vec<(PathBuf, [u8; 32])>,
    absent: Vec<PathBuf>,
}

impl Surroundings {
    /// Records the present state. Returns `None` if it cannot be read, or has changed since the
    /// compilation began.
    pub fn now(
        files: &[PathBuf],
        directories: &[String],
        texts: &[&str],
        begun: SystemTime,
    ) -> Option<Self> {
        if texts.iter().any(|text| depends_on_more(text.as_bytes())) {
            return None;
        }
        let mut known = Vec::with_capacity(files.len());
        for file in files {
            let (bytes, changed) = contents(file)?;
            if changed + STEP >= begun || depends_on_more(&bytes) {
                return None;
            }
            known.push((file.clone(), *blake3::hash(&bytes).as_bytes()));
        }
        let mut absent = Vec::new();
        for place in places(files, directories)? {
            match changed(&place) {
                None => absent.push(place),
                // It may have come after the compiler looked.
                Some(changed) if changed + STEP >= begun => return None,
                Some(_) => {}
            }
        }
        let relative = |path: &PathBuf| path.is_relative();
        let here = files.iter().any(relative) || absent.iter().any(relative);
        let directory = if here {
            std::env::current_dir().ok()?
        } else {
            PathBuf::new()
        };
        Some(Self {
            directory,
            files: known,
            absent,
        })
    }

    /// Returns true if the state is still the same.
    pub fn hold(&self) -> bool {
        let here = self.directory.as_os_str().is_empty()
            || std::env::current_dir().is_ok_and(|here| here == self.directory);
        let same = |(path, hash): &(PathBuf, [u8; 32])| hash_of(path) == Some(*hash);
        here && self.files.iter().all(same) && self.absent.iter().all(|p| changed(p).is_none())
    }

    /// Appends the state to an entry.
    pub fn put(&self, out: &mut Vec<u8>) {
        let path = |path: &Path, out: &mut Vec<u8>| {
            sections::put(out, path.as_os_str().as_encoded_bytes())
        };
        path(&self.directory, out);
        sections::put(out, &(self.files.len() as u64).to_le_bytes());
        for (file, hash) in &self.files {
            path(file, out);
            sections::put(out, hash);
        }
        self.absent.iter().for_each(|place| path(place, out));
    }

    /// Decodes the result of [`Self::put`] from the rest of an entry.
    pub fn take(rest: &mut &[u8]) -> Option<Self> {
        let path = crate::util::files::path_of;
        let directory = path(sections::take(rest)?)?;
        let count = u64::from_le_bytes(sections::take(rest)?.try_into().ok()?);
        let mut files = Vec::new();
        for _ in 0..count {
            let file = path(sections::take(rest)?)?;
            files.push((file, sections::take(rest)?.try_into().ok()?));
        }
        let mut absent = Vec::new();
        while !rest.is_empty() {
            absent.push(path(sections::take(rest)?)?);
        }
        Some(Self {
            directory,
            files,
            absent,
        })
    }
}

/// Returns the places where files may have been looked for before they were found, or `None` if
/// there are too many.
fn places(files: &[PathBuf], directories: &[String]) -> Option<BTreeSet<PathBuf>> {
    let given: BTreeSet<&Path> = directories.iter().map(Path::new).collect();
    let mut all = given.clone();
    let is_own = |file: &Path| OWN_HEADERS.iter().any(|own| file.ends_with(own));
    let parents = files.iter().filter(|file| !is_own(file));
    all.extend(parents.filter_map(|file| file.parent()));
    // That of the source.
    all.insert(Path::new(""));
    let mut found = BTreeSet::new();
    for file in files {
        if is_own(file) {
            let name = file.file_name()?;
            found.extend(given.iter().map(|dir| dir.join(name)));
            continue;
        }
        let mut parts = file.components();
        loop {
            // With the first part it is a name in the directory of the source.
            let name = parts.as_path();
            if name.as_os_str().is_empty() {
                break;
            }
            if name.is_relative() {
                found.extend(all.iter().map(|dir| dir.join(name)));
            }
            parts.next();
            if found.len() > MOST_PLACES {
                return None;
            }
        }
    }
    Some(found)
}

/// Returns true if a text may depend on more than the files that it reads: on missing files, or on
/// the time.
fn depends_on_more(text: &[u8]) -> bool {
    let has = |text: &[u8], word: &str| text.windows(word.len()).any(|w| w == word.as_bytes());
    let asks = |line: &[u8]| {
        let marks = ["#", "%:", "??="];
        let directive = marks.iter().any(|mark| has(line, mark));
        has(line, "__has_include")
            || TIMES.iter().any(|time| has(line, time))
            || directive && (has(line, "embed") || has(line, "__has"))
    };
    let continued = has(text, "\\") || has(text, "??/");
    let words = ["__has", "embed"].iter().chain(&TIMES);
    if !continued && !words.into_iter().any(|word| has(text, word)) {
        return false;
    }
    joined(text).split(|&byte| byte == b'\n').any(asks)
}

/// Returns the text with its continued lines joined: a backslash (or its trigraph) and blanks
/// before the end of a line.
fn joined(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&first, tail)) = rest.split_first() {
        let mark = match rest {
            [b'\\', ..] => 1,
            [b'?', b'?', b'/', ..] => 3,
            _ => 0,
        };
        let after = rest.get(mark..).unwrap_or_default();
        let blanks = after.iter().take_while(|b| b" \t\r\x0b\x0c".contains(b));
        let end = blanks.count();
        if mark > 0 && after.get(end) == Some(&b'\n') {
            rest = after.get(end + 1..).unwrap_or_default();
        } else {
            out.push(first);
            rest = tail;
        }
    }
    out
}

/// Returns the time of the last change of a file, or `None` if there is none.
fn changed(path: &Path) -> Option<SystemTime> {
    // A link that leads nowhere is nothing to the compiler either.
    std::fs::metadata(path).ok().map(|file| change_time(&file))
}

/// The most hashes that are remembered.
const MOST_HASHES: usize = 4096;

static HASHES: Mutex<Option<FxHashMap<Identity, [u8; 32]>>> = Mutex::new(None);

/// Returns the hash of a regular file's contents.
fn hash_of(path: &Path) -> Option<[u8; 32]> {
    let now = SystemTime::now();
    let before = std::fs::metadata(path).ok().filter(|file| file.is_file())?;
    let before = file_state::identity(path, &before)?;
    if let Some(known) = HASHES.lock().as_ref().and_then(|all| all.get(&before)) {
        return Some(*known);
    }
    let (bytes, changed) = contents(path)?;
    let hash = *blake3::hash(&bytes).as_bytes();
    // Another change in the same step of time would go unnoticed. If the file is another one by now, it was changed.
    if changed == before.3 && changed + STEP < now {
        let mut hashes = HASHES.lock();
        let all = hashes.get_or_insert_default();
        if all.len() >= MOST_HASHES {
            all.clear();
        }
        all.insert(before, hash);
    }
    Some(hash)
}

/// Returns a regular file's contents, and the time of its last change.
fn contents(path: &Path) -> Option<(Vec<u8>, SystemTime)> {
    // A pipe would wait for somebody to write.
    let file = file_state::open(path).ok()?;
    let metadata = file.metadata().ok()?;
    if !metadata.is_file() || metadata.len() > MOST_BYTES {
        return None;
    }
    let mut bytes = Vec::with_capacity(metadata.len() as usize);
    let limit = MOST_BYTES + 1;
    file.take(limit).read_to_end(&mut bytes).ok()?;
    ((bytes.len() as u64) < limit).then(|| (bytes, change_time(&metadata)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::UNIX_EPOCH;

    #[test]
    fn words_that_ask_for_more() {
        for text in [
            "#if __has_include(<a.h>)",
            "#if __has_inc\\\nlude(<a.h>)",
            "#if __has_inc\\ \t\r\nlude(<a.h>)",
            "#if __has_??/\ninclude(<a.h>)",
            "#if __has_embed(\"a\")",
            "x\n # emb\\\ned \"a\"",
            "%:embed \"a\"",
            "#define A(x) __has_ ## x",
            "char t[] = __TIME__;",
            "char t[] = __DA\\\nTE__;",
            "// __TIMESTAMP__",
        ] {
            assert!(depends_on_more(text.as_bytes()), "{text}");
        }
        for text in [
            "",
            "#include <a.h>",
            "__kernel \\\n x ??",
            "has_include",
            "// embedded",
        ] {
            assert!(!depends_on_more(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn every_directory_may_have_been_searched() {
        let files = ["/r/opencl-c-base.h", "inc/sub/x.h", "/abs/y.h"].map(PathBuf::from);
        let places = places(&files, &["first".into(), "inc".into()]).unwrap();
        for place in [
            "first/opencl-c-base.h",
            "first/sub/x.h",
            "first/x.h",
            "sub/x.h",
            "x.h",
            "/abs/x.h",
            "inc/sub/y.h",
            "first/abs/y.h",
        ] {
            assert!(places.contains(Path::new(place)), "{place}");
        }
        // What depends on nothing but the compiler's own header holds everywhere.
        let alone = super::places(&files[..1], &[]).unwrap();
        assert!(alone.is_empty());
    }

    #[test]
    fn changes_are_seen() {
        let dir = std::env::temp_dir().join(format!("pumice-around-{}", std::process::id()));
        let (first, second) = (dir.join("first"), dir.join("second"));
        std::fs::create_dir_all(&first).unwrap();
        std::fs::create_dir_all(&second).unwrap();
        let header = second.join("x.h");
        std::fs::write(&header, "1").unwrap();
        let dirs = [&first, &second].map(|dir| dir.to_str().unwrap().to_owned());
        let later = SystemTime::now() + Duration::from_secs(1);
        let now = |begun| Surroundings::now(std::slice::from_ref(&header), &dirs, &[], begun);
        // Changed while it was compiled.
        assert_eq!(now(UNIX_EPOCH), None);
        let seen = now(later).unwrap();
        assert!(seen.hold());
        let mut bytes = Vec::new();
        seen.put(&mut bytes);
        assert_eq!(
            Surroundings::take(&mut bytes.as_slice()),
            Some(seen.clone())
        );
        std::fs::write(&header, "2").unwrap();
        assert!(!seen.hold());
        std::fs::write(&header, "1").unwrap();
        assert!(seen.hold());
        std::fs::write(first.join("x.h"), "1").unwrap();
        assert!(!seen.hold());
        std::fs::remove_dir_all(&dir).unwrap();
        assert!(!seen.hold());
    }

    /// Checks that a remembered hash is forgotten with the next change of the file, even one of the
    /// same size.
    #[test]
    fn hashes_are_those_of_the_contents() {
        let file = std::env::temp_dir().join(format!("pumice-hash-{}", std::process::id()));
        let other = file.with_extension("other");
        let (first, second) = (blake3::hash(b"first"), blake3::hash(b"other"));
        for (text, hash) in [("first", first), ("other", second), ("first", first)] {
            std::fs::write(&file, text).unwrap();
            assert_eq!(hash_of(&file), Some(*hash.as_bytes()));
            std::thread::sleep(2 * STEP);
            // Now it is remembered.
            for _ in 0..2 {
                assert_eq!(hash_of(&file), Some(*hash.as_bytes()));
            }
        }
        let known = file_state::identity(&file, &std::fs::metadata(&file).unwrap()).unwrap();
        assert!(HASHES.lock().as_ref().unwrap().contains_key(&known));
        // Another file in its place.
        std::fs::write(&other, "other").unwrap();
        std::fs::rename(&other, &file).unwrap();
        assert_eq!(hash_of(&file), Some(*second.as_bytes()));
        std::fs::remove_file(&file).unwrap();
        assert_eq!(hash_of(&file), None);
    }

    #[test]
    fn what_is_no_regular_file_is_not_read() {
        assert!(contents(Path::new("/dev/zero")).is_none());
        assert!(hash_of(Path::new("/dev/zero")).is_none());
        assert!(contents(Path::new("/dev")).is_none());
        let pipe = std::env::temp_dir().join(format!("pumice-pipe-{}", std::process::id()));
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        if made.is_ok_and(|status| status.success()) {
            assert!(contents(&pipe).is_none());
            std::fs::remove_file(&pipe).unwrap();
        }
    }
}
