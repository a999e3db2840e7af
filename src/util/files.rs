//! What is to be known of files without reading them.

use std::path::Path;
use std::time::UNIX_EPOCH;

/// Path, size and time of change of the file behind a path: enough to notice another one without reading it.
pub fn stamp(path: &Path) -> String {
    let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let (size, time) = std::fs::metadata(&real)
        .map(|m| {
            let time = m
                .modified()
                .ok()
                .and_then(|t| t.duration_since(UNIX_EPOCH).ok());
            (m.len(), time.map_or(0, |t| t.as_nanos()))
        })
        .unwrap_or_default();
    format!("{} ({size} bytes, {time})", real.display())
}
