//! The kernels loaded last: an application that builds a program again (each frame, each test) finds its pipelines made.
//!
//! A driver's pipeline cache saves it the same work only where the driver has one that does: llvmpipe compiles a compute
//! pipeline anew each time it is made.

use super::pipeline::VulkanCode;
use crate::backend::{Code, Result};
use crate::util::lock::{rank, Mutex};
use spirv_lowering::interface::KernelInterface;
use std::collections::VecDeque;
use std::sync::Arc;

/// Kernels that are kept.
const MOST: usize = 32;

/// Larger kernels are not kept, in words of SPIR-V.
const MOST_WORDS: usize = 1 << 16;

/// A loaded kernel and the words that it was loaded from.
struct CachedCode {
    words: Box<[u32]>,
    code: Arc<VulkanCode>,
}

/// The kernels loaded last, the latest one first.
#[derive(Default)]
pub struct LoadedCode(Mutex<VecDeque<CachedCode>, { rank::LOADED_CODE }>);

impl LoadedCode {
    /// Returns the cached kernel with these words and this interface, or else the one that `load` makes of them.
    pub fn find_or(
        &self,
        words: &[u32],
        interface: &KernelInterface,
        load: impl FnOnce() -> Result<VulkanCode>,
    ) -> Result<Arc<VulkanCode>> {
        let same =
            |entry: &CachedCode| *entry.words == *words && entry.code.interface() == interface;
        {
            let mut list = self.0.lock();
            let found = list.iter().position(same).and_then(|at| list.remove(at));
            if let Some(entry) = found {
                let code = Arc::clone(&entry.code);
                list.push_front(entry);
                return Ok(code);
            }
        }
        let code = Arc::new(load()?);
        if words.len() <= MOST_WORDS {
            let entry = CachedCode {
                words: words.into(),
                code: Arc::clone(&code),
            };
            let dropped = {
                let mut list = self.0.lock();
                list.push_front(entry);
                let keep = list.len().min(MOST);
                list.split_off(keep)
            };
            // Destroys pipelines: not under the lock.
            drop(dropped);
        }
        Ok(code)
    }
}
