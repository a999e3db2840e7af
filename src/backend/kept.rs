//! Memory that keeps something else alive: the block it is a part of, the owner of the bytes.

use super::Memory;
use std::any::Any;
use std::ptr::NonNull;
use std::sync::Arc;

/// Memory, and what must live as long.
struct Kept<K> {
    memory: Arc<dyn Memory>,
    _keeps: K,
}

/// `memory`, which keeps `other`.
pub fn keep<K: Send + Sync + 'static>(memory: Arc<dyn Memory>, other: K) -> Arc<dyn Memory> {
    Arc::new(Kept {
        memory,
        _keeps: other,
    })
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
