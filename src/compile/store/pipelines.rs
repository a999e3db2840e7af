//! The driver's pipeline cache on disk: one entry (kind `pipeline`) for each device and driver version. Read when the
//! first kernel of a process is loaded, written when a context goes and something new is in it.

use super::entries::{self, CacheKey};
use crate::backend::Device;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

const KIND: &str = "pipeline";

/// What the entry of each device seen by this process held when it was last read or written: by device UUID.
static KNOWN: Mutex<Option<FxHashMap<[u8; 16], blake3::Hash>>> = Mutex::new(None);

fn key(device: &dyn Device) -> CacheKey {
    let caps = device.caps();
    let mut key = CacheKey::new(KIND);
    key.part(&caps.device_uuid)
        .part(&caps.driver_uuid)
        .part(caps.driver_version.as_bytes());
    key
}

/// Gives the driver what an earlier process kept. Does something once a device and process.
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

/// Keeps what the driver has now, if it was used and something is new.
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
