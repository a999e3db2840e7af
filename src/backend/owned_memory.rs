//! Memory with an owner that it keeps alive: the block it is a part of, or who has the bytes.

use super::Memory;
use std::any::Any;
use std::ptr::NonNull;
use std::sync::Arc;

/// Memory, and its owner, which must live as long.
struct OwnedMemory<K> {
    memory: Arc<dyn Memory>,
    _owner: K,
}

/// Returns `memory` in a wrapper that keeps `owner` alive.
pub fn with_owner<K: Send + Sync + 'static>(memory: Arc<dyn Memory>, owner: K) -> Arc<dyn Memory> {
    Arc::new(OwnedMemory {
        memory,
        _owner: owner,
    })
}

impl<K: Send + Sync + 'static> Memory for OwnedMemory<K> {
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
