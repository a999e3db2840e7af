//! Timestamp queries: two a profiled operation, in pools that grow by need and are used again.

use super::logical::LogicalDevice;
use crate::backend::{DeviceError, ProfileSlot, Result};
use ash::vk;
use std::collections::VecDeque;

/// Operations a query pool serves.
const SLOTS: u32 = 128;

/// The queries of one stream.
#[derive(Default)]
pub struct Queries {
    /// The stream was made with profiling, and the queue has timestamps.
    enabled: bool,
    pools: Vec<vk::QueryPool>,
    free: Vec<u64>,
    /// Queries that nobody reads any more, with the value of the batch that may still have them in use.
    used: VecDeque<(u64, u64)>,
}

/// Two queries taken for an operation.
pub struct QueryPair {
    /// The slot of the layers above.
    pub name: ProfileSlot,
    pool: vk::QueryPool,
    first: u32,
}

impl Queries {
    /// Queries for a stream. Pools are made when first needed.
    pub fn new(enabled: bool) -> Self {
        Self {
            enabled,
            ..Self::default()
        }
    }

    fn locate(&self, name: ProfileSlot) -> Option<QueryPair> {
        let (pool, index) = (name.0 / u64::from(SLOTS), name.0 % u64::from(SLOTS));
        Some(QueryPair {
            name,
            pool: *self.pools.get(usize::try_from(pool).ok()?)?,
            first: index as u32 * 2,
        })
    }

    /// Returns two free queries, reset, or `None` without profiling.
    pub fn acquire(&mut self, device: &LogicalDevice) -> Result<Option<QueryPair>> {
        if !self.enabled {
            return Ok(None);
        }
        if self.free.is_empty() {
            let info = vk::QueryPoolCreateInfo::default()
                .query_type(vk::QueryType::TIMESTAMP)
                .query_count(SLOTS * 2);
            // SAFETY: the device lives; the queue family has timestamps.
            let pool = unsafe { device.raw.create_query_pool(&info, None) }
                .map_err(|result| device.failed("vkCreateQueryPool", result))?;
            // SAFETY: hostQueryReset is enabled; the pool was never used.
            unsafe { device.raw.reset_query_pool(pool, 0, SLOTS * 2) };
            let base = self.pools.len() as u64 * u64::from(SLOTS);
            self.pools.push(pool);
            self.free.extend((base..base + u64::from(SLOTS)).rev());
        }
        Ok(self
            .free
            .pop()
            .and_then(|name| self.locate(ProfileSlot(name))))
    }

    /// Returns the two readings of the device's timer; the queries are free again when the batch
    /// with this value, or one before it, is complete.
    pub fn take(
        &mut self,
        device: &LogicalDevice,
        name: ProfileSlot,
        value: u64,
    ) -> Result<(u64, u64)> {
        let slot = self
            .locate(name)
            .ok_or_else(|| DeviceError::Unsupported("profiling is off".to_owned()))?;
        let mut readings = [0u64; 2];
        // The event of a command within a batch may be set a moment before its times are there.
        // SAFETY: the slot's two queries belong to the pool; they are written by work that has completed.
        let result = unsafe {
            device.raw.get_query_pool_results(
                slot.pool,
                slot.first,
                &mut readings,
                vk::QueryResultFlags::TYPE_64 | vk::QueryResultFlags::WAIT,
            )
        };
        result.map_err(|result| device.failed("vkGetQueryPoolResults", result))?;
        self.discard(name, value);
        Ok((readings[0], readings[1]))
    }

    /// Frees the two queries of a completed operation, as [`Queries::take`] does.
    pub fn discard(&mut self, name: ProfileSlot, value: u64) {
        self.used.push_back((value, name.0));
    }

    /// Resets queries that are used no more, as batches are complete as far as `complete` says.
    pub fn recycle(&mut self, device: &LogicalDevice, complete: impl Fn(u64) -> bool) {
        while let Some((_, name)) = self.used.front().copied().filter(|one| complete(one.0)) {
            self.used.pop_front();
            if let Some(slot) = self.locate(ProfileSlot(name)) {
                // SAFETY: hostQueryReset is enabled; no pending work uses the two queries.
                unsafe { device.raw.reset_query_pool(slot.pool, slot.first, 2) };
                self.free.push(name);
            }
        }
    }

    /// Destroys the pools.
    pub fn destroy(&mut self, device: &LogicalDevice) {
        for pool in self.pools.drain(..) {
            // SAFETY: the stream has waited for its last batch; destroyed once.
            unsafe { device.raw.destroy_query_pool(pool, None) };
        }
    }
}

impl QueryPair {
    /// Records a timestamp before an operation.
    pub fn write_start(&self, device: &LogicalDevice, commands: vk::CommandBuffer) {
        // SAFETY: the command buffer is being recorded by this thread; the query is reset and its own.
        unsafe {
            device.raw.cmd_write_timestamp(
                commands,
                vk::PipelineStageFlags::TOP_OF_PIPE,
                self.pool,
                self.first,
            );
        }
    }

    /// Records a timestamp after an operation.
    pub fn write_end(&self, device: &LogicalDevice, commands: vk::CommandBuffer) {
        // SAFETY: the command buffer is being recorded by this thread; the query is reset and its own.
        unsafe {
            let bottom = vk::PipelineStageFlags::BOTTOM_OF_PIPE;
            device
                .raw
                .cmd_write_timestamp(commands, bottom, self.pool, self.first + 1);
        }
    }
}
