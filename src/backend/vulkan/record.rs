//! Recording: operations become Vulkan commands, with barriers only where memory uses conflict.

use super::barrier::{self, STAGES};
use super::batch::Batch;
use super::image::VulkanImage;
use super::memory::VulkanMemory;
use super::pipeline::VulkanPipeline;
use super::profile::Queries;
use super::tracker::{AccessedRange, Accesses, Order};
use crate::backend::external::SharedResource;
use crate::backend::image::{ImageDim, ImageRegion, Resource};
use crate::backend::{
    Binding, DeviceError, DeviceImage, Memory, Op, OrderRule, ProfileSlot, Result, Sequence, Slice,
};
use ash::vk;
use std::any::Any;
use std::sync::Arc;

impl Batch {
    fn keep_memory(&mut self, kept: &Arc<dyn Memory>, ours: &VulkanMemory) {
        if ours.first_use(self.id) {
            self.memories.push(Arc::clone(kept));
        }
    }

    /// Records an access and keeps its memory alive.
    fn access(
        &mut self,
        slice: &Slice,
        begin: u64,
        end: u64,
        write: bool,
        list: &mut Accesses,
    ) -> Result {
        let ours = VulkanMemory::of(&*slice.memory)?;
        let base = ours.address() + slice.offset;
        list.push(AccessedRange {
            begin: base + begin,
            end: base + end,
            write,
        });
        self.writes_host_memory |= write && ours.mapped().is_some();
        self.writes_shown_memory |= write && ours.is_shown();
        self.keep_memory(&slice.memory, ours);
        Ok(())
    }

    /// Records an access to an image and keeps the image alive.
    fn access_image(
        &mut self,
        kept: &Arc<dyn DeviceImage>,
        write: bool,
        list: &mut Accesses,
    ) -> Result {
        let ours = VulkanImage::of(&**kept)?;
        let (begin, end) = ours.range()?;
        list.push(AccessedRange { begin, end, write });
        if let (true, Some(memory)) = (write, ours.memory()?) {
            self.writes_host_memory |= memory.mapped().is_some();
            self.writes_shown_memory |= memory.is_shown();
        }
        if ours.first_use(self.id) {
            self.images.push(Arc::clone(kept));
        }
        Ok(())
    }

    fn dispatch(
        &mut self,
        pipeline: &VulkanPipeline,
        groups: [u32; 3],
        push: &[u8],
        bindings: &[Binding],
    ) -> Result {
        let layout = pipeline.layout;
        let device = &self.tools.device;
        if let Some(layouts) = &pipeline.layouts {
            let set = self
                .sets
                .with(device, &self.tools.images, layouts, bindings)?;
            if self.bound_set != set {
                // SAFETY: the command buffer is being recorded by this thread; set and layout go together.
                unsafe {
                    device.raw.cmd_bind_descriptor_sets(
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
        let (raw, pipeline) = (&device.raw, pipeline.raw);
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
            let [x, y, z] = groups;
            raw.cmd_dispatch(self.commands, x, y, z);
        }
        Ok(())
    }

    /// Records a copy between an image and memory.
    fn copy_texels(
        &mut self,
        kept: &Arc<dyn DeviceImage>,
        region: &ImageRegion,
        slice: &Slice,
        (row_texels, slice_rows): (u32, u32),
        to_image: bool,
    ) -> Result {
        let (ours, bytes) = (VulkanImage::of(&**kept)?, VulkanMemory::of(&*slice.memory)?);
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
                self.tools.device.raw.cmd_copy_buffer_to_image(
                    self.commands,
                    bytes.buffer,
                    raw,
                    layout,
                    &regions,
                );
            } else {
                self.tools.device.raw.cmd_copy_image_to_buffer(
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

    /// Records a copy between two images.
    fn copy_image(
        &mut self,
        (src, src_origin): (&Arc<dyn DeviceImage>, [u32; 3]),
        (dst, dst_origin): (&Arc<dyn DeviceImage>, [u32; 3]),
        size: [u32; 3],
    ) -> Result {
        let (from, to) = (VulkanImage::of(&**src)?, VulkanImage::of(&**dst)?);
        let place = |image: &VulkanImage, origin| image.place(&ImageRegion { origin, size });
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
            self.tools.device.raw.cmd_copy_image(
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

/// Recorded operations, in a command buffer that others execute, with all that they use.
pub struct VulkanSequence(pub Batch);

impl Sequence for VulkanSequence {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}

impl Batch {
    /// Executes the commands of a sequence, which the batch keeps.
    fn execute(&mut self, sequence: &Arc<dyn Sequence>) -> Result {
        let Some(VulkanSequence(recorded)) = sequence.as_any().downcast_ref() else {
            return Err(DeviceError::Unsupported("a foreign sequence".to_owned()));
        };
        let raw = &self.tools.device.raw;
        // SAFETY: the command buffer is being recorded by this thread; the other has been, for the same family of queues
        // and for use at the same time, and the batch keeps it.
        unsafe { raw.cmd_execute_commands(self.commands, &[recorded.commands]) };
        // What was bound is not any more.
        self.bound = vk::Pipeline::null();
        self.bound_set = vk::DescriptorSet::null();
        self.others.push(Arc::clone(sequence).into_any());
        Ok(())
    }
}

/// The accesses of an operation to memory.
struct Footprint {
    accesses: Accesses,
    /// More than those, perhaps.
    anything: bool,
    stages: vk::PipelineStageFlags,
}

impl Batch {
    /// Implements [`crate::backend::Stream::record`]. The batch has begun.
    pub fn record(
        &mut self,
        op: Op<'_>,
        rule: OrderRule,
        order: &mut Order,
        queries: Option<&mut Queries>,
    ) -> Result<Option<ProfileSlot>> {
        let Footprint {
            accesses,
            anything,
            stages,
        } = self.footprint(&op)?;
        let barrier = order.barrier_for(&accesses, anything, rule);
        if let Some(earlier) = barrier {
            self.barrier(earlier);
        }
        let unknown = anything || rule == OrderRule::Unordered;
        order.tracker.add(&accesses, unknown, stages);
        self.operations += 1;
        let slot = match queries {
            Some(queries) => queries.acquire(&self.tools.device)?,
            None => None,
        };
        if let Some(slot) = &slot {
            slot.write_start(&self.tools.device, self.commands);
        }
        self.encode(op)?;
        if let Some(slot) = &slot {
            slot.write_end(&self.tools.device, self.commands);
        }
        Ok(slot.map(|slot| slot.name))
    }

    /// Records a barrier between earlier commands in `stages` and later ones.
    pub fn barrier(&self, stages: vk::PipelineStageFlags) {
        barrier::between(&self.tools.device, self.commands, stages);
    }

    /// Returns the accesses of an operation to memory, which is kept alive from here on.
    fn footprint(&mut self, op: &Op<'_>) -> Result<Footprint> {
        let mut accesses = Accesses::new();
        let mut anything = false;
        let stages = match op {
            Op::Dispatch {
                pipeline: kept,
                uses,
                bindings,
                touches_anything,
                ..
            } => {
                anything = *touches_anything;
                self.writes_host_memory |= anything;
                self.writes_shown_memory |= anything;
                for used in *uses {
                    self.access(&used.slice, 0, used.slice.size, used.write, &mut accesses)?;
                }
                for bound in *bindings {
                    if let Resource::Sampled(image) | Resource::Storage(image) = &bound.resource {
                        self.access_image(image, bound.write, &mut accesses)?;
                    }
                }
                if VulkanPipeline::of(&***kept)?.first_use(self.id) {
                    self.pipelines.push(Arc::clone(kept));
                }
                vk::PipelineStageFlags::COMPUTE_SHADER
            }
            Op::Copy { src, dst, region } => {
                let (from, to) = (region.src_offset, region.dst_offset);
                let from_end = from + region.src_span();
                let to_end = to + region.dst_span();
                self.access(src, from, from_end, false, &mut accesses)?;
                self.access(dst, to, to_end, true, &mut accesses)?;
                // Copies and fills may use both.
                STAGES
            }
            Op::Fill { dst, .. } => {
                self.access(dst, 0, dst.size, true, &mut accesses)?;
                STAGES
            }
            Op::Update { dst, data } => {
                self.access(dst, 0, data.len() as u64, true, &mut accesses)?;
                vk::PipelineStageFlags::TRANSFER
            }
            Op::CopyTexels {
                image,
                memory,
                to_image,
                ..
            } => {
                self.access_image(image, *to_image, &mut accesses)?;
                self.access(memory, 0, memory.size, !to_image, &mut accesses)?;
                vk::PipelineStageFlags::TRANSFER
            }
            Op::ImageCopy { src, dst, .. } => {
                self.access_image(src, false, &mut accesses)?;
                self.access_image(dst, true, &mut accesses)?;
                vk::PipelineStageFlags::TRANSFER
            }
            Op::Call { .. } => {
                return Err(DeviceError::Unsupported("native kernels".to_owned()));
            }
            Op::Handover { resource, .. } => {
                match resource {
                    SharedResource::Memory(slice) => {
                        self.access(slice, 0, slice.size, true, &mut accesses)?;
                    }
                    SharedResource::Image(image) => {
                        self.access_image(image, true, &mut accesses)?
                    }
                }
                // Whoever has it next may be the host.
                self.writes_host_memory = true;
                STAGES
            }
            Op::Sequence(_) => {
                anything = true;
                self.writes_host_memory = true;
                self.writes_shown_memory = true;
                STAGES
            }
            Op::Marker | Op::Keep(_) => vk::PipelineStageFlags::empty(),
        };
        Ok(Footprint {
            accesses,
            anything,
            stages,
        })
    }

    fn encode(&mut self, op: Op<'_>) -> Result {
        match op {
            Op::Dispatch {
                pipeline: kept,
                groups,
                push,
                bindings,
                ..
            } => {
                self.dispatch(VulkanPipeline::of(&**kept)?, groups, push, bindings)?;
            }
            Op::CopyTexels {
                image,
                region,
                memory,
                pitches,
                to_image,
            } => self.copy_texels(image, &region, memory, pitches, to_image)?,
            Op::ImageCopy {
                src,
                src_origin,
                dst,
                dst_origin,
                size,
            } => self.copy_image((src, src_origin), (dst, dst_origin), size)?,
            Op::Copy { src, dst, region } => self.copy(src, dst, &region)?,
            Op::Fill { dst, pattern } => self.fill(dst, pattern)?,
            Op::Update { dst, data } => self.update(dst, data)?,
            Op::Handover { resource, acquire } => self.hand_over(resource, acquire)?,
            Op::Sequence(sequence) => self.execute(sequence)?,
            Op::Call { .. } | Op::Marker | Op::Keep(_) => {}
        }
        Ok(())
    }
}
