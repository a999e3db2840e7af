//! Streams of the runtime's own, for transfers outside every queue. A device keeps those that were given back: making one
//! takes a semaphore and command pools, half a millisecond with NVIDIA's driver and two more when they go.

use super::{Device, Result, Stream};
use std::ops::{Deref, DerefMut};

/// A pooled stream of a device. Where it is dropped instead of given back (after an error), it may have work left, and goes.
pub struct SpareStream<'a> {
    device: &'a dyn Device,
    stream: Box<dyn Stream>,
}

impl<'a> SpareStream<'a> {
    /// Creates a stream that has no other user.
    pub fn new(device: &'a dyn Device) -> Result<Self> {
        let stream = device.spare_stream()?;
        Ok(Self { device, stream })
    }

    /// Returns the stream to its device. All its work must have completed.
    pub fn give_back(mut self) {
        self.stream.reclaim();
        self.device.keep_stream(self.stream);
    }
}

impl Deref for SpareStream<'_> {
    type Target = dyn Stream;

    fn deref(&self) -> &Self::Target {
        self.stream.as_ref()
    }
}

impl DerefMut for SpareStream<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        self.stream.as_mut()
    }
}
