//! The images beside a buffer that kernels are shown in place of its bytes: one for each queue.
//!
//! A launch fills its image from the buffer and may write it. Launches of several queues may use one memory object at the
//! same time, with no event between them, as long as none writes what another uses; so they must not share the image.

use crate::backend;
use crate::error::ClResult;
use crate::util::lock::{rank, Mutex};
use std::sync::{Arc, Weak};

/// The identity of a queue: those that keep a weak reference can tell whether it is still there.
pub type Identity = Arc<()>;

/// The images of one memory object.
#[derive(Default)]
pub struct QueueImages {
    made: Mutex<Vec<(Weak<()>, Arc<dyn backend::DeviceImage>)>, { rank::SHADOWS }>,
}

impl QueueImages {
    /// Returns the image of a queue, made if need be. Drops the images of queues that are gone.
    pub fn of(
        &self,
        queue: &Identity,
        make: impl FnOnce() -> ClResult<Arc<dyn backend::DeviceImage>>,
    ) -> ClResult<Arc<dyn backend::DeviceImage>> {
        let mut made = self.made.lock();
        let known = made
            .iter()
            .find(|(of, _)| of.as_ptr() == Arc::as_ptr(queue));
        if let Some((_, image)) = known {
            return Ok(image.clone());
        }
        made.retain(|(of, _)| of.strong_count() > 0);
        let image = make()?;
        made.push((Arc::downgrade(queue), image.clone()));
        Ok(image)
    }
}
