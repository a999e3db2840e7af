//! The driver's pipeline cache on disk: one entry (kind `pipeline`) for each device and driver
//! version. It is read when the first kernel of a process is loaded, and written when a context is
//! destroyed and the cache has changed.

use super::entries::{self, CacheKey};
use crate::backend::Device;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

const KIND: &str = "pipeline";

/// The hash of each device's entry when this process last read or wrote it, by device UUID.
static KNOWN: Mutex<Option<FxHashMap<[u8; 16], blake3::Hash>>> = Mutex::new(None);

fn key(device: &dyn Device) -> CacheKey {
    let caps = device.caps();
    let mut key = CacheKey::new(KIND);
    key.part(&caps.device_uuid)
        .part(&caps.driver_uuid)
        .part(caps.driver_version.as_bytes());
    key
}

/// Passes the entry of an earlier process to the driver, once for each device and process.
pub fn restore(device: &dyn Device) {
    let mut known = KNOWN.lock();
    let known = known.get_or_insert_default();
    if known.contains_key(&device.caps().device_uuid) {
        return;
    }
    let data = entries::load(KIND, &key(device)).unwrap_or_default();
    if !data.is_empty() {
        device.load_pipeline_cache(&data);
    }
    known.insert(device.caps().device_uuid, blake3::hash(&data));
}

/// Writes the driver's cache, if it was used and has changed.
pub fn keep(device: &dyn Device) {
    let mut known = KNOWN.lock();
    let Some(last) = known
        .as_mut()
        .and_then(|k| k.get_mut(&device.caps().device_uuid))
    else {
        return;
    };
    let data = device.pipeline_cache();
    let hash = blake3::hash(&data);
    if !data.is_empty() && hash != *last {
        entries::store(KIND, &key(device), &data);
        *last = hash;
    }
}
