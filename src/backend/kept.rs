//! Memory that keeps something else alive: the block it is a part of, the owner of the bytes.

use super::Memory;
use std::any::Any;
use std::ptr::NonNull;
use std::sync::Arc;

/// Memory, and what must live as long.
pub struct Kept<K> {
    memory: Arc<dyn Memory>,
    _keeps: K,
}

impl<K: Send + Sync + 'static> Kept<K> {
    /// `memory`, which keeps `keeps`.
    pub fn new(memory: Arc<dyn Memory>, keeps: K) -> Arc<dyn Memory> {
        Arc::new(Self {
            memory,
            _keeps: keeps,
        })
    }
}

impl<K: Send + Sync + 'static> Memory for Kept<K> {
    fn address(&self) -> u64 {
        self.memory.address()
    }

    fn size(&self) -> u64 {
        self.memory.size()
    }

    fn mapped(&self) -> Option<NonNull<u8>> {
        self.memory.mapped()
    }

    fn host_cached(&self) -> bool {
        self.memory.host_cached()
    }

    fn as_any(&self) -> &dyn Any {
        self.memory.as_any()
    }
}
