//! The compile cache on disk, safe for many processes at once.
//!
//! Entries are files named by the hash of everything that decides their contents, each with a magic word, the hash of its name
//! and its payload, and the payload: a damaged, truncated or foreign file, or that of another entry, is a miss. Files appear by rename, so a reader sees all of one
//! or none. The directory is kept under a size limit by removing the entries used longest ago.
//!
//! | kind | holds | made in |
//! |---|---|---|
//! | `spv` | OpenCL SPIR-V of a source (any device) | `compile/mod.rs` |
//! | `ir` | LLVM's IR of a source that was only read | `linkable.rs` |
//! | `unit` | the SPIR-V of a source that was read first | `linkable.rs` |
//! | `vk` | the kernels of an executable, lowered for a device | `executable.rs` |
//! | `clang` | what clang tells of the machine | `native.rs` |
//! | `native` | object files of kernels for the processor | `native.rs` |
//! | `pipeline` | the Vulkan driver's own cache | `pipelines.rs` |

use crate::compile::words::to_bytes;
use crate::util::{config, file_state, files, library};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

/// The kinds of entries, which are folders of the cache.
pub const KINDS: [&str; 7] = ["spv", "ir", "unit", "vk", "clang", "native", "pipeline"];
const MAGIC: [u8; 8] = *b"PUMICEc2";
/// The most bytes of the cache.
const LIMIT: u64 = 512 << 20;
/// The time within which the time of last use is not written again.
const FRESH: Duration = Duration::from_secs(3600);

/// A key: the hash of all that decides an entry's contents. Sections are length-prefixed, so they
/// cannot run together.
pub struct CacheKey(blake3::Hasher);

impl CacheKey {
    /// Creates a key for entries of one kind. The build of this library is part of every key.
    pub fn new(kind: &str) -> Self {
        let mut key = Self(blake3::Hasher::new());
        key.part(kind.as_bytes());
        key.part(build_id().as_bytes());
        key
    }
    /// Adds a part.
    pub fn part(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.update(&(bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
        self
    }
    /// Adds words.
    pub fn words(&mut self, words: &[u32]) -> &mut Self {
        self.part(&to_bytes(words))
    }
    /// Returns the file name.
    pub fn name(&self) -> String {
        self.0.finalize().to_hex().to_string()
    }
}

/// Returns an identifier of this build of the library, so that entries of other builds are not
/// found. If the build is unknown, it identifies this process.
fn build_id() -> &'static str {
    static ID: OnceLock<String> = OnceLock::new();
    ID.get_or_init(|| {
        let file = library::own_path().unwrap_or_default();
        let file = files::stamp(&file).unwrap_or_else(|error| {
            let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
            let now = now.map_or(0, |time| time.as_nanos());
            format!("{error} {} {now}", std::process::id())
        });
        format!("{} {file}", env!("CARGO_PKG_VERSION"))
    })
}

fn directory(kind: &str) -> Option<PathBuf> {
    Some(config::get().cache_dir.as_ref()?.join(kind))
}

/// Reads the payload of an entry.
pub fn load(kind: &str, key: &CacheKey) -> Option<Vec<u8>> {
    let path = directory(kind)?.join(key.name());
    let (payload, used) = read_entry(&path)?;
    touch(&path, used);
    Some(payload)
}

/// Writes an entry. Failures are silent: it is only a cache.
pub fn store(kind: &str, key: &CacheKey, payload: &[u8]) {
    let Some(dir) = directory(kind) else { return };
    if let Err(error) = write_entry(&dir, &key.name(), payload) {
        crate::log!(Debug, "cache: cannot write to {}: {error}", dir.display());
    }
}

/// Returns the checksum of an entry of that name. Names have one length, so they do not run into
/// the payload.
fn checksum(name: &[u8], payload: &[u8]) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    hasher.update(name).update(payload);
    hasher.finalize()
}

/// Returns the payload of an entry, and the time of its last use, if that is known.
fn read_entry(path: &Path) -> Option<(Vec<u8>, Option<SystemTime>)> {
    let mut file = file_state::open(path).ok()?;
    let about = file.metadata().ok()?;
    if !about.is_file() || about.len() > LIMIT {
        return None;
    }
    let mut data = vec![0; about.len() as usize];
    file.read_exact(&mut data).ok()?;
    let rest = data.strip_prefix(&MAGIC)?;
    let (hash, payload) = rest.split_first_chunk::<32>()?;
    if checksum(path.file_name()?.as_encoded_bytes(), payload).as_bytes() != hash {
        let _ = std::fs::remove_file(path);
        return None;
    }
    data.drain(..MAGIC.len() + 32);
    Some((data, about.modified().ok()))
}

fn write_entry(dir: &Path, name: &str, payload: &[u8]) -> std::io::Result<()> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    std::fs::create_dir_all(dir)?;
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let temporary = dir.join(format!(".{}-{number}", std::process::id()));
    let mut data = Vec::with_capacity(MAGIC.len() + 32 + payload.len());
    data.extend_from_slice(&MAGIC);
    data.extend_from_slice(checksum(name.as_bytes(), payload).as_bytes());
    data.extend_from_slice(payload);
    let written = files::limited(|| std::fs::write(&temporary, &data))
        .and_then(|()| std::fs::rename(&temporary, dir.join(name)));
    if written.is_err() {
        let _ = std::fs::remove_file(&temporary);
        return written;
    }
    // Looking at thousands of files takes as long as a compilation: one entry in 64 does, whichever process makes it.
    if number.wrapping_add(u64::from(std::process::id())) % 64 == 0 {
        trim(dir);
    }
    Ok(())
}

/// Marks an entry as used, at most once an hour.
fn touch(path: &Path, used: Option<SystemTime>) {
    let now = SystemTime::now();
    let age = used.and_then(|used| now.duration_since(used).ok());
    if age.is_some_and(|age| age <= FRESH) {
        return;
    }
    if let Ok(file) = File::options().write(true).open(path) {
        let _ = file.set_modified(now);
    }
}

/// Removes the entries used longest ago until three quarters of the limit are left.
fn trim(dir: &Path) {
    let Ok(entries) = std::fs::read_dir(dir) else {
        return;
    };
    let mut files: Vec<(SystemTime, u64, PathBuf)> = entries
        .flatten()
        .filter_map(|e| {
            let meta = e.metadata().ok()?;
            Some((meta.modified().ok()?, meta.len(), e.path()))
        })
        .collect();
    let mut total: u64 = files.iter().map(|f| f.1).sum();
    if total <= LIMIT {
        return;
    }
    files.sort();
    for (_, size, path) in files {
        if total <= LIMIT / 4 * 3 {
            break;
        }
        let _ = std::fs::remove_file(path);
        total -= size;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damage_is_a_miss() {
        let dir = std::env::temp_dir().join(format!("pumice-cache-test-{}", std::process::id()));
        let payload = |path: &Path| read_entry(path).map(|(payload, _)| payload);
        write_entry(&dir, "a", b"payload").unwrap();
        let path = dir.join("a");
        assert_eq!(payload(&path).as_deref(), Some(&b"payload"[..]));
        let mut bytes = std::fs::read(&path).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(payload(&path), None);
        write_entry(&dir, "a", b"payload").unwrap();
        let bytes = std::fs::read(&path).unwrap();
        for length in 0..bytes.len() {
            std::fs::write(&path, &bytes[..length]).unwrap();
            assert_eq!(payload(&path), None, "cut to {length}");
        }
        // Whole, but that of another.
        write_entry(&dir, "b", b"payload").unwrap();
        std::fs::rename(dir.join("b"), &path).unwrap();
        assert_eq!(payload(&path), None);
        // Larger than the whole cache.
        std::fs::write(&path, &bytes).unwrap();
        let file = File::options().write(true).open(&path).unwrap();
        file.set_len(LIMIT + 1).unwrap();
        drop(file);
        assert_eq!(payload(&path), None);
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn use_is_remembered_by_the_hour() {
        let dir = std::env::temp_dir().join(format!("pumice-cache-used-{}", std::process::id()));
        write_entry(&dir, "a", b"payload").unwrap();
        let path = dir.join("a");
        let modified = || std::fs::metadata(&path).unwrap().modified().unwrap();
        let age = |age: Duration| {
            let file = File::options().write(true).open(&path).unwrap();
            file.set_modified(SystemTime::now() - age).unwrap();
            let before = modified();
            let (_, used) = read_entry(&path).unwrap();
            touch(&path, used);
            modified() > before
        };
        assert!(!age(FRESH / 2), "a short while ago");
        assert!(age(FRESH * 2), "long ago");
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn key_parts_are_delimited() {
        let name = |parts: &[&str]| {
            let mut key = CacheKey::new("t");
            parts.iter().for_each(|p| {
                key.part(p.as_bytes());
            });
            key.name()
        };
        assert_ne!(name(&["ab", "c"]), name(&["a", "bc"]));
        assert_eq!(name(&["ab", "c"]), name(&["ab", "c"]));
    }
}
