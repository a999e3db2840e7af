//! Recording: operations become Vulkan commands, with barriers only where memory uses conflict.
//!
//! [`Tracker`] remembers which ranges of device addresses were read and written since the last barrier. It outlives
//! batches: a barrier at the head of a batch also orders it after the batches before on the same queue.

use super::device::Shared;
use super::image;
use super::memory::VulkanMemory;
use super::pipeline::VulkanPipeline;
use super::submit::{Batch, VulkanStream};
use crate::backend::image::{ImageDim, ImageRegion, Resource};
use crate::backend::{
    Binding, BufferCopy, DeviceError, Image, Memory, Op, OrderRule, Pipeline, ProfileSlot, Result,
    Slice,
};
use ash::vk;
use smallvec::SmallVec;
use std::sync::Arc;

/// Ranges remembered before a barrier is placed for the sake of a short list.
const MOST_RANGES: usize = 48;

/// A range of device addresses that an operation reads or writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// First byte.
    pub begin: u64,
    /// One past the last byte.
    pub end: u64,
    /// Written, and perhaps read.
    pub write: bool,
}

/// The accesses of one operation.
pub type Accesses = SmallVec<[Access; 16]>;

/// What was accessed since the last barrier.
#[derive(Debug, Default)]
pub struct Tracker {
    reads: SmallVec<[(u64, u64); 16]>,
    writes: SmallVec<[(u64, u64); 16]>,
    /// Something whose accesses are not known.
    unknown: bool,
    /// Stages that were used.
    stages: vk::PipelineStageFlags,
}

fn overlaps(list: &[(u64, u64)], access: &Access) -> bool {
    list.iter()
        .any(|(begin, end)| *begin < access.end && access.begin < *end)
}

fn insert(list: &mut SmallVec<[(u64, u64); 16]>, begin: u64, end: u64) {
    for known in list.iter_mut() {
        // Touching and overlapping ranges of one kind become one.
        if known.0 <= end && begin <= known.1 {
            *known = (known.0.min(begin), known.1.max(end));
            return;
        }
    }
    list.push((begin, end));
}

impl Tracker {
    /// Nothing was accessed since the last barrier.
    pub fn is_clear(&self) -> bool {
        self.stages.is_empty()
    }

    /// Whether an operation with these accesses must not run before the ones since the last barrier have ended.
    pub fn conflicts(&self, accesses: &[Access], anything: bool) -> bool {
        if self.is_clear() {
            return false;
        }
        self.unknown
            || anything
            || self.reads.len() + self.writes.len() > MOST_RANGES
            || accesses.iter().any(|access| {
                overlaps(&self.writes, access) || (access.write && overlaps(&self.reads, access))
            })
    }

    /// Remembers an operation. Unknown accesses conflict with everything.
    pub fn add(&mut self, accesses: &[Access], unknown: bool, stages: vk::PipelineStageFlags) {
        self.stages |= stages;
        if unknown || self.unknown {
            self.unknown = true;
            return;
        }
        for access in accesses.iter().filter(|access| access.begin < access.end) {
            let list = if access.write {
                &mut self.writes
            } else {
                &mut self.reads
            };
            insert(list, access.begin, access.end);
        }
    }

    /// Forgets everything: a barrier was placed. Returns the stages that it must wait for.
    pub fn clear(&mut self) -> vk::PipelineStageFlags {
        self.reads.clear();
        self.writes.clear();
        self.unknown = false;
        std::mem::take(&mut self.stages)
    }
}

/// The stages that our commands run in.
pub const STAGES: vk::PipelineStageFlags = vk::PipelineStageFlags::from_raw(
    vk::PipelineStageFlags::COMPUTE_SHADER.as_raw() | vk::PipelineStageFlags::TRANSFER.as_raw(),
);

/// The writes of our commands.
pub const WRITES: vk::AccessFlags = vk::AccessFlags::from_raw(
    vk::AccessFlags::SHADER_WRITE.as_raw() | vk::AccessFlags::TRANSFER_WRITE.as_raw(),
);

const READS: vk::AccessFlags = vk::AccessFlags::from_raw(
    vk::AccessFlags::SHADER_READ.as_raw() | vk::AccessFlags::TRANSFER_READ.as_raw(),
);

/// Our memory behind a slice.
pub fn memory(memory: &dyn Memory) -> Result<&VulkanMemory> {
    memory
        .as_any()
        .downcast_ref()
        .ok_or_else(|| DeviceError::Unsupported("memory of another back end".to_owned()))
}

fn pipeline(pipeline: &dyn Pipeline) -> Result<&VulkanPipeline> {
    pipeline
        .as_any()
        .downcast_ref()
        .ok_or_else(|| DeviceError::Unsupported("a kernel of another back end".to_owned()))
}

/// How many work-groups a dispatch has.
enum Groups<'a> {
    Known([u32; 3]),
    InMemory(&'a Slice),
}

impl Batch {
    /// A barrier between what was recorded in `stages` and what follows.
    pub fn barrier(&self, shared: &Shared, stages: vk::PipelineStageFlags) {
        let writes = match stages {
            vk::PipelineStageFlags::COMPUTE_SHADER => vk::AccessFlags::SHADER_WRITE,
            vk::PipelineStageFlags::TRANSFER => vk::AccessFlags::TRANSFER_WRITE,
            _ => WRITES,
        };
        let barrier = [vk::MemoryBarrier::default()
            .src_access_mask(writes)
            .dst_access_mask(READS | WRITES)];
        let flags = vk::DependencyFlags::empty();
        // SAFETY: the command buffer is being recorded by this thread.
        unsafe {
            shared.raw.cmd_pipeline_barrier(
                self.commands,
                stages,
                STAGES,
                flags,
                &barrier,
                &[],
                &[],
            )
        };
    }

    /// A barrier between all that was recorded and a dispatch that takes its numbers from memory.
    pub fn indirect_barrier(&self, shared: &Shared) {
        let barrier = [vk::MemoryBarrier::default()
            .src_access_mask(WRITES)
            .dst_access_mask(READS | WRITES | vk::AccessFlags::INDIRECT_COMMAND_READ)];
        let flags = vk::DependencyFlags::empty();
        let stages = STAGES | vk::PipelineStageFlags::DRAW_INDIRECT;
        // SAFETY: the command buffer is being recorded by this thread.
        unsafe {
            shared.raw.cmd_pipeline_barrier(
                self.commands,
                STAGES,
                stages,
                flags,
                &barrier,
                &[],
                &[],
            )
        };
    }

    /// Makes all that was written visible to the host once the batch has completed.
    pub fn host_barrier(&self, shared: &Shared) {
        let barrier = [vk::MemoryBarrier::default()
            .src_access_mask(WRITES)
            .dst_access_mask(vk::AccessFlags::HOST_READ)];
        let (flags, host) = (vk::DependencyFlags::empty(), vk::PipelineStageFlags::HOST);
        // SAFETY: the command buffer is being recorded by this thread.
        unsafe {
            shared
                .raw
                .cmd_pipeline_barrier(self.commands, STAGES, host, flags, &barrier, &[], &[])
        };
    }

    fn keep_memory(&mut self, kept: &Arc<dyn Memory>, ours: &VulkanMemory) {
        if ours.first_use(self.id) {
            self.memories.push(Arc::clone(kept));
        }
    }

    /// Takes note of an access and keeps its memory alive.
    fn access(
        &mut self,
        slice: &Slice,
        begin: u64,
        end: u64,
        write: bool,
        list: &mut Accesses,
    ) -> Result {
        let ours = memory(&*slice.memory)?;
        let base = ours.address() + slice.offset;
        list.push(Access {
            begin: base + begin,
            end: base + end,
            write,
        });
        self.writes_host_memory |= write && ours.mapped().is_some();
        self.keep_memory(&slice.memory, ours);
        Ok(())
    }

    /// Takes note of an access to an image and keeps it alive.
    fn access_image(&mut self, kept: &Arc<dyn Image>, write: bool, list: &mut Accesses) -> Result {
        let ours = image::image(&**kept)?;
        let (begin, end, host) = ours.range()?;
        list.push(Access { begin, end, write });
        self.writes_host_memory |= write && host;
        if ours.first_use(self.id) {
            self.images.push(Arc::clone(kept));
        }
        Ok(())
    }

    fn dispatch(
        &mut self,
        shared: &Shared,
        pipeline: &VulkanPipeline,
        groups: Groups,
        push: &[u8],
        bindings: &[Binding],
    ) -> Result {
        let mut layout = shared.layout;
        if let Some(layouts) = &pipeline.layouts {
            layout = layouts.pipeline;
            let set = self.descriptor_set(shared, layouts, bindings)?;
            if self.bound_set != set {
                // SAFETY: the command buffer is being recorded by this thread; set and layout go together.
                unsafe {
                    shared.raw.cmd_bind_descriptor_sets(
                        self.commands,
                        vk::PipelineBindPoint::COMPUTE,
                        layout,
                        0,
                        &[set],
                        &[],
                    )
                };
                self.bound_set = set;
            }
        }
        let (raw, pipeline) = (&shared.raw, pipeline.raw);
        // SAFETY: the command buffer is being recorded by this thread; pipeline and layout belong to the device; push
        // constants are within the layout's range (checked when the kernel was loaded).
        unsafe {
            if self.bound != pipeline {
                raw.cmd_bind_pipeline(self.commands, vk::PipelineBindPoint::COMPUTE, pipeline);
                self.bound = pipeline;
            }
            if !push.is_empty() {
                raw.cmd_push_constants(
                    self.commands,
                    layout,
                    vk::ShaderStageFlags::COMPUTE,
                    0,
                    push,
                );
            }
            match groups {
                Groups::Known([x, y, z]) => raw.cmd_dispatch(self.commands, x, y, z),
                Groups::InMemory(slice) => {
                    let ours = memory(&*slice.memory)?;
                    for number in 0..slice.size / 16 {
                        self.indirect_barrier(shared);
                        let at = ours.offset + slice.offset + number * 16;
                        raw.cmd_dispatch_indirect(self.commands, ours.buffer, at);
                    }
                }
            }
        }
        Ok(())
    }

    /// Between an image and memory.
    fn copy_texels(
        &mut self,
        shared: &Shared,
        kept: &Arc<dyn Image>,
        region: &ImageRegion,
        slice: &Slice,
        (row_texels, slice_rows): (u32, u32),
        to_image: bool,
    ) -> Result {
        let (ours, bytes) = (image::image(&**kept)?, memory(&*slice.memory)?);
        let (subresource, offset, extent) = ours.place(region);
        let regions = [vk::BufferImageCopy {
            buffer_offset: bytes.offset + slice.offset,
            buffer_row_length: row_texels,
            buffer_image_height: slice_rows,
            image_subresource: subresource,
            image_offset: offset,
            image_extent: extent,
        }];
        let (raw, layout) = (ours.raw()?, vk::ImageLayout::GENERAL);
        // SAFETY: the command buffer is being recorded by this thread; the box lies within the image and the slice.
        unsafe {
            if to_image {
                shared.raw.cmd_copy_buffer_to_image(
                    self.commands,
                    bytes.buffer,
                    raw,
                    layout,
                    &regions,
                );
            } else {
                shared.raw.cmd_copy_image_to_buffer(
                    self.commands,
                    raw,
                    layout,
                    bytes.buffer,
                    &regions,
                );
            }
        }
        Ok(())
    }

    /// Between two images.
    fn copy_image(
        &mut self,
        shared: &Shared,
        (src, src_origin): (&Arc<dyn Image>, [u32; 3]),
        (dst, dst_origin): (&Arc<dyn Image>, [u32; 3]),
        size: [u32; 3],
    ) -> Result {
        let (from, to) = (image::image(&**src)?, image::image(&**dst)?);
        let place = |image: &image::VulkanImage, origin| image.place(&ImageRegion { origin, size });
        let (src_subresource, src_offset, mut extent) = place(from, src_origin);
        let (dst_subresource, dst_offset, _) = place(to, dst_origin);
        if [src, dst]
            .iter()
            .any(|image| image.desc().dim == ImageDim::D3)
        {
            // Slices of the one may be layers of the other.
            extent.depth = size[2];
        }
        let regions = [vk::ImageCopy {
            src_subresource,
            src_offset,
            dst_subresource,
            dst_offset,
            extent,
        }];
        let layout = vk::ImageLayout::GENERAL;
        // SAFETY: the command buffer is being recorded by this thread; the boxes lie within the images, which have
        // formats of one size.
        unsafe {
            shared.raw.cmd_copy_image(
                self.commands,
                from.raw()?,
                layout,
                to.raw()?,
                layout,
                &regions,
            )
        };
        Ok(())
    }
}

/// Bytes from the first to the last byte of one side of a copy.
fn extent(region: &BufferCopy, row_pitch: u64, slice_pitch: u64) -> u64 {
    region.slices.saturating_sub(1) * slice_pitch
        + region.rows.saturating_sub(1) * row_pitch
        + region.bytes
}

impl VulkanStream {
    /// See [`crate::backend::Stream::record`].
    pub(super) fn record_op(
        &mut self,
        op: Op<'_>,
        order: OrderRule,
        profile: bool,
    ) -> Result<Option<ProfileSlot>> {
        if self.shared.is_lost() {
            return Err(DeviceError::Lost);
        }
        let op = match op {
            Op::Keep(resource) => {
                self.open_batch()?.others.push(resource);
                return Ok(None);
            }
            op => op,
        };
        self.begun_batch()?;
        let Self {
            shared,
            open,
            tracker,
            acquire,
            after_own,
            queries,
            ..
        } = self;
        let batch = open.as_mut().ok_or(DeviceError::OutOfHostMemory)?;

        let mut accesses = Accesses::new();
        let mut anything = false;
        if let Op::Call { .. } = op {
            return Err(DeviceError::Unsupported("native kernels".to_owned()));
        }
        let stages = match &op {
            Op::Dispatch {
                pipeline: kept,
                uses,
                bindings,
                touches_anything,
                ..
            }
            | Op::DispatchIndirect {
                pipeline: kept,
                uses,
                bindings,
                touches_anything,
                ..
            } => {
                anything = *touches_anything;
                batch.writes_host_memory |= anything;
                for used in *uses {
                    batch.access(&used.slice, 0, used.slice.size, used.write, &mut accesses)?;
                }
                for bound in *bindings {
                    if let Resource::Sampled(image) | Resource::Storage(image) = &bound.resource {
                        batch.access_image(image, bound.write, &mut accesses)?;
                    }
                }
                if pipeline(&***kept)?.first_use(batch.id) {
                    batch.pipelines.push(Arc::clone(kept));
                }
                vk::PipelineStageFlags::COMPUTE_SHADER
            }
            Op::Copy { src, dst, region } => {
                let (from, to) = (region.src_offset, region.dst_offset);
                let from_end = from + extent(region, region.src_row_pitch, region.src_slice_pitch);
                let to_end = to + extent(region, region.dst_row_pitch, region.dst_slice_pitch);
                batch.access(src, from, from_end, false, &mut accesses)?;
                batch.access(dst, to, to_end, true, &mut accesses)?;
                // Copies and fills may use both.
                STAGES
            }
            Op::Fill { dst, .. } => {
                batch.access(dst, 0, dst.size, true, &mut accesses)?;
                STAGES
            }
            Op::Update { dst, data } => {
                batch.access(dst, 0, data.len() as u64, true, &mut accesses)?;
                vk::PipelineStageFlags::TRANSFER
            }
            Op::ImageToMemory { image, dst, .. } => {
                batch.access_image(image, false, &mut accesses)?;
                batch.access(dst, 0, dst.size, true, &mut accesses)?;
                vk::PipelineStageFlags::TRANSFER
            }
            Op::MemoryToImage { src, image, .. } => {
                batch.access(src, 0, src.size, false, &mut accesses)?;
                batch.access_image(image, true, &mut accesses)?;
                vk::PipelineStageFlags::TRANSFER
            }
            Op::ImageCopy { src, dst, .. } => {
                batch.access_image(src, false, &mut accesses)?;
                batch.access_image(dst, true, &mut accesses)?;
                vk::PipelineStageFlags::TRANSFER
            }
            Op::Call { .. } | Op::Marker | Op::Keep(_) => vk::PipelineStageFlags::empty(),
        };
        let acquired = std::mem::take(acquire);
        let waits_for_own = std::mem::take(after_own);
        let conflict = match order {
            OrderRule::InOrder => tracker.conflicts(&accesses, anything),
            OrderRule::Unordered => waits_for_own && !tracker.is_clear(),
        };
        if let Op::DispatchIndirect { .. } = &op {
            // It places its own.
            tracker.clear();
        } else if acquired || conflict {
            let earlier = tracker.clear();
            batch.barrier(shared, if acquired { STAGES } else { earlier });
        }
        tracker.add(&accesses, anything || order == OrderRule::Unordered, stages);
        batch.operations += 1;

        let slot = if profile {
            queries.acquire(shared)?
        } else {
            None
        };
        if let Some(slot) = &slot {
            slot.write_start(shared, batch.commands);
        }
        match op {
            Op::Dispatch {
                pipeline: kept,
                groups,
                push,
                bindings,
                ..
            } => {
                batch.dispatch(
                    shared,
                    pipeline(&**kept)?,
                    Groups::Known(groups),
                    push,
                    bindings,
                )?;
            }
            Op::DispatchIndirect {
                pipeline: kept,
                groups,
                push,
                bindings,
                ..
            } => {
                let groups = Groups::InMemory(groups);
                batch.dispatch(shared, pipeline(&**kept)?, groups, push, bindings)?;
            }
            Op::ImageToMemory {
                image,
                region,
                dst,
                row_texels,
                slice_rows,
            } => batch.copy_texels(shared, image, &region, dst, (row_texels, slice_rows), false)?,
            Op::MemoryToImage {
                src,
                row_texels,
                slice_rows,
                image,
                region,
            } => batch.copy_texels(shared, image, &region, src, (row_texels, slice_rows), true)?,
            Op::ImageCopy {
                src,
                src_origin,
                dst,
                dst_origin,
                size,
            } => batch.copy_image(shared, (src, src_origin), (dst, dst_origin), size)?,
            Op::Copy { src, dst, region } => batch.copy(shared, src, dst, &region)?,
            Op::Fill { dst, pattern } => batch.fill(shared, dst, pattern)?,
            Op::Update { dst, data } => batch.update(shared, dst, data)?,
            Op::Call { .. } | Op::Marker | Op::Keep(_) => {}
        }
        if let Some(slot) = &slot {
            slot.write_end(shared, batch.commands);
        }
        Ok(slot.map(|slot| slot.name))
    }

    /// See [`crate::backend::Stream::barrier`].
    pub(super) fn record_barrier(&mut self) -> Result {
        if self.tracker.is_clear() && !self.acquire {
            return Ok(());
        }
        self.begun_batch()?;
        let Self {
            shared,
            open,
            tracker,
            acquire,
            ..
        } = self;
        let earlier = tracker.clear();
        let stages = if std::mem::take(acquire) {
            STAGES
        } else {
            earlier
        };
        open.as_ref()
            .ok_or(DeviceError::OutOfHostMemory)?
            .barrier(shared, stages);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMPUTE: vk::PipelineStageFlags = vk::PipelineStageFlags::COMPUTE_SHADER;

    fn read(begin: u64, end: u64) -> Access {
        Access {
            begin,
            end,
            write: false,
        }
    }

    fn write(begin: u64, end: u64) -> Access {
        Access {
            begin,
            end,
            write: true,
        }
    }

    #[test]
    fn reads_do_not_conflict_and_writes_do() {
        let mut tracker = Tracker::default();
        assert!(
            !tracker.conflicts(&[write(0, 10)], true),
            "nothing came before"
        );
        tracker.add(&[read(0, 100)], false, COMPUTE);
        assert!(!tracker.conflicts(&[read(50, 60)], false));
        assert!(tracker.conflicts(&[write(50, 60)], false));
        assert!(
            !tracker.conflicts(&[write(100, 110)], false),
            "ranges are half open"
        );
        tracker.add(&[write(200, 300)], false, COMPUTE);
        assert!(tracker.conflicts(&[read(299, 301)], false));
        assert!(tracker.conflicts(&[], true));
        assert_eq!(tracker.clear(), COMPUTE);
        assert!(!tracker.conflicts(&[write(0, 300)], true));
    }

    #[test]
    fn the_unknown_conflicts_with_everything() {
        let mut tracker = Tracker::default();
        tracker.add(&[], true, COMPUTE);
        assert!(tracker.conflicts(&[read(1, 2)], false));
    }

    #[test]
    fn long_lists_end_in_a_barrier() {
        let mut tracker = Tracker::default();
        for at in 0..=MOST_RANGES as u64 {
            tracker.add(&[read(at * 10, at * 10 + 5)], false, COMPUTE);
        }
        assert!(tracker.conflicts(&[read(7, 8)], false));
    }

    #[test]
    fn equal_reads_are_remembered_once() {
        let mut tracker = Tracker::default();
        for _ in 0..1000 {
            tracker.add(&[read(0, 64)], false, COMPUTE);
        }
        assert!(!tracker.conflicts(&[read(0, 64)], false));
    }
}
