//! Copies, fills and updates of buffers: which command or utility shader does which part.
//!
//! Where the device cannot run the utility shaders ([`super::utility`]), the transfer commands do everything.
//!
//! | operation | parts |
//! |---|---|
//! | copy, linear | shader in 16- or 4-byte units for large, equally aligned ranges where that is faster; ends and all else vkCmdCopyBuffer |
//! | copy, box | shader in 4-byte units for many rows; else vkCmdCopyBuffer with a region a row |
//! | fill, 4-byte period | vkCmdFillBuffer; unaligned ends from staging |
//! | fill, longer period | shader in 16-byte units; ends inline; small ones inline as a whole |
//! | update | vkCmdUpdateBuffer, or staging where unaligned |

use super::batch::Batch;
use super::logical::LogicalDevice;
use super::memory::VulkanMemory;
use super::utility::Shader;
use crate::backend::{BufferCopy, DeviceError, Result, Slice};
use ash::vk;

/// Largest vkCmdUpdateBuffer.
const UPDATE: u64 = 65536;
/// Regions of one vkCmdCopyBuffer.
const REGIONS: usize = 1024;
/// Units that a work-group of the linear shaders handles.
const TILE: u64 = 1024;
/// Boxes with fewer rows than this go row by row.
const BOX_ROWS: u64 = 8;

/// A place in a buffer.
#[derive(Clone, Copy)]
struct Place {
    buffer: vk::Buffer,
    offset: u64,
}

impl Place {
    fn new(memory: &VulkanMemory, offset: u64) -> Self {
        Self {
            buffer: memory.buffer,
            offset: memory.offset + offset,
        }
    }

    fn at(self, bytes: u64) -> Self {
        Self {
            offset: self.offset + bytes,
            ..self
        }
    }
}

/// Returns the descriptor to push for a binding, and the units from its start to the place.
fn bind(
    device: &LogicalDevice,
    place: Place,
    bytes: u64,
    unit: u64,
) -> (vk::DescriptorBufferInfo, u32) {
    let align = device
        .adapter
        .properties
        .limits
        .min_storage_buffer_offset_alignment
        .max(16);
    let start = place.offset - place.offset % align;
    let skip = place.offset - start;
    let info = vk::DescriptorBufferInfo {
        buffer: place.buffer,
        offset: start,
        range: skip + bytes,
    };
    (info, (skip / unit) as u32)
}

/// Returns the bytes that one dispatch of a linear shader can cover.
fn reach(device: &LogicalDevice, unit: u64) -> u64 {
    let limits = &device.adapter.properties.limits;
    let align = limits.min_storage_buffer_offset_alignment.max(16);
    let range = u64::from(limits.max_storage_buffer_range).saturating_sub(align);
    let groups = u64::from(limits.max_compute_work_group_count[0]) * TILE * unit;
    // 32-bit indices of units, with room for the skip.
    range.min(groups).min(1 << 31) / (TILE * unit) * (TILE * unit)
}

impl Batch {
    fn shader(
        &mut self,
        (pipeline, layout): (vk::Pipeline, vk::PipelineLayout),
        bindings: [vk::DescriptorBufferInfo; 2],
        push: &[u32],
        groups: [u32; 3],
    ) {
        let Some(table) = self.tools.device.push_descriptor.as_ref() else {
            return;
        };
        let write = |index: usize| {
            vk::WriteDescriptorSet::default()
                .dst_binding(index as u32)
                .descriptor_type(vk::DescriptorType::STORAGE_BUFFER)
                .buffer_info(&bindings[index..=index])
        };
        let writes = [write(0), write(1)];
        let mut bytes = [0u8; 32];
        for (place, word) in bytes.chunks_exact_mut(4).zip(push) {
            place.copy_from_slice(&word.to_ne_bytes());
        }
        let (point, raw) = (vk::PipelineBindPoint::COMPUTE, &self.tools.device.raw);
        // SAFETY: the command buffer is being recorded by this thread; pipeline and layout belong together; the bound
        // ranges lie within their buffers and the device's limits.
        unsafe {
            raw.cmd_bind_pipeline(self.commands, point, pipeline);
            table.cmd_push_descriptor_set(self.commands, point, layout, 0, &writes);
            let used = bytes.get(..push.len() * 4).unwrap_or(&bytes);
            raw.cmd_push_constants(
                self.commands,
                layout,
                vk::ShaderStageFlags::COMPUTE,
                0,
                used,
            );
            raw.cmd_dispatch(self.commands, groups[0], groups[1], groups[2]);
        }
        self.bound = pipeline;
        self.bound_set = vk::DescriptorSet::null();
    }

    fn copy_regions(&mut self, src: vk::Buffer, dst: vk::Buffer, regions: &[vk::BufferCopy]) {
        if !regions.is_empty() {
            // SAFETY: the command buffer is being recorded by this thread; ranges lie within the buffers.
            unsafe {
                self.tools
                    .device
                    .raw
                    .cmd_copy_buffer(self.commands, src, dst, regions)
            };
        }
    }

    fn copy_plain(&mut self, src: Place, dst: Place, size: u64) {
        if size > 0 {
            let region = vk::BufferCopy {
                src_offset: src.offset,
                dst_offset: dst.offset,
                size,
            };
            self.copy_regions(src.buffer, dst.buffer, &[region]);
        }
    }

    /// Records a copy of contiguous bytes.
    fn copy_linear(&mut self, src: Place, dst: Place, size: u64) {
        let unit = match src.offset ^ dst.offset {
            difference if difference % 16 == 0 => 16,
            difference if difference % 4 == 0 => 4,
            _ => return self.copy_plain(src, dst, size),
        };
        let shader = if unit == 16 {
            Shader::Copy16
        } else {
            Shader::Copy4
        };
        let pipeline = if size >= self.tools.device.adapter.tuning.compute_copy_from {
            self.tools.utilities.get(shader)
        } else {
            None
        };
        let Some(pipeline) = pipeline else {
            return self.copy_plain(src, dst, size);
        };
        let head = src.offset.wrapping_neg() % unit;
        let body = (size - head) / unit * unit;
        self.copy_plain(src, dst, head);
        let most = reach(&self.tools.device, unit);
        let mut done = 0;
        while done < body {
            let bytes = (body - done).min(most);
            let (source, first) = bind(&self.tools.device, src.at(head + done), bytes, unit);
            let (target, to) = bind(&self.tools.device, dst.at(head + done), bytes, unit);
            let groups = [(bytes / unit).div_ceil(TILE) as u32, 1, 1];
            self.shader(
                pipeline,
                [source, target],
                &[first, to, (bytes / unit) as u32],
                groups,
            );
            done += bytes;
        }
        self.copy_plain(src.at(head + body), dst.at(head + body), size - head - body);
    }

    /// Returns true if a box by the shader, if it can do it.
    fn copy_box(&mut self, src: Place, dst: Place, region: &BufferCopy) -> bool {
        let (rows, slices) = (region.rows, region.slices);
        let limits = &self.tools.device.adapter.properties.limits;
        let most = limits.max_compute_work_group_count;
        let alignment = src.offset
            | dst.offset
            | region.bytes
            | region.src_row_pitch
            | region.dst_row_pitch
            | if slices > 1 {
                region.src_slice_pitch | region.dst_slice_pitch
            } else {
                0
            };
        let extent = |row_pitch, slice_pitch| {
            (slices - 1) * slice_pitch + (rows - 1) * row_pitch + region.bytes
        };
        let src_bytes = extent(region.src_row_pitch, region.src_slice_pitch);
        let dst_bytes = extent(region.dst_row_pitch, region.dst_slice_pitch);
        let range = u64::from(limits.max_storage_buffer_range).saturating_sub(256);
        let (groups_x, groups_y) = ((region.bytes / 4).div_ceil(64), rows.div_ceil(4));
        let fits = alignment.is_multiple_of(4)
            && src_bytes.max(dst_bytes) <= range
            && groups_x <= u64::from(most[0])
            && groups_y <= u64::from(most[1])
            && slices <= u64::from(most[2]);
        if !fits || rows * slices < BOX_ROWS {
            return false;
        }
        let Some(pipeline) = self.tools.utilities.get(Shader::Rect4) else {
            return false;
        };
        let (source, from) = bind(&self.tools.device, src, src_bytes, 4);
        let (target, to) = bind(&self.tools.device, dst, dst_bytes, 4);
        // All of these were checked to be below the range of a binding, or are not used.
        let units = |bytes: u64| (bytes / 4) as u32;
        let push = [
            from,
            to,
            units(region.bytes),
            rows as u32,
            units(region.src_row_pitch),
            units(region.src_slice_pitch),
            units(region.dst_row_pitch),
            units(region.dst_slice_pitch),
        ];
        self.shader(
            pipeline,
            [source, target],
            &push,
            [groups_x as u32, groups_y as u32, slices as u32],
        );
        true
    }

    /// Records a copy of one range or of a box.
    pub fn copy(&mut self, src: &Slice, dst: &Slice, region: &BufferCopy) -> Result {
        let mut box_ = *region;
        if box_.bytes == 0 || box_.rows == 0 || box_.slices == 0 {
            return Ok(());
        }
        // Rows without gaps between them are one row, slices likewise.
        if box_.rows > 1 && box_.src_row_pitch == box_.bytes && box_.dst_row_pitch == box_.bytes {
            box_.bytes *= box_.rows;
            box_.rows = 1;
        }
        if box_.rows == 1 && box_.slices > 1 {
            // Slices of one row each are rows.
            box_.rows = box_.slices;
            box_.slices = 1;
            box_.src_row_pitch = box_.src_slice_pitch;
            box_.dst_row_pitch = box_.dst_slice_pitch;
            if box_.src_row_pitch == box_.bytes && box_.dst_row_pitch == box_.bytes {
                box_.bytes *= box_.rows;
                box_.rows = 1;
            }
        }
        let from = Place::new(
            VulkanMemory::of(&*src.memory)?,
            src.offset + box_.src_offset,
        );
        let to = Place::new(
            VulkanMemory::of(&*dst.memory)?,
            dst.offset + box_.dst_offset,
        );
        if box_.rows == 1 && box_.slices == 1 {
            self.copy_linear(from, to, box_.bytes);
            return Ok(());
        }
        if self.copy_box(from, to, &box_) {
            return Ok(());
        }
        let mut regions = std::mem::take(&mut self.regions);
        for slice in 0..box_.slices {
            for row in 0..box_.rows {
                regions.push(vk::BufferCopy {
                    src_offset: from.offset
                        + slice * box_.src_slice_pitch
                        + row * box_.src_row_pitch,
                    dst_offset: to.offset + slice * box_.dst_slice_pitch + row * box_.dst_row_pitch,
                    size: box_.bytes,
                });
                if regions.len() == REGIONS {
                    self.copy_regions(from.buffer, to.buffer, &regions);
                    regions.clear();
                }
            }
        }
        self.copy_regions(from.buffer, to.buffer, &regions);
        regions.clear();
        self.regions = regions;
        Ok(())
    }

    /// Records an update with bytes that are stored in the batch, of any length.
    fn write(&mut self, dst: Place, data: &[u8]) -> Result {
        let mut done = 0u64;
        for part in data.chunks(UPDATE as usize) {
            let to = dst.at(done);
            if to.offset.is_multiple_of(4) && part.len().is_multiple_of(4) {
                // SAFETY: the command buffer is being recorded by this thread; place and size are multiples of 4 and
                // the size is within the command's limit.
                unsafe {
                    self.tools.device.raw.cmd_update_buffer(
                        self.commands,
                        to.buffer,
                        to.offset,
                        part,
                    )
                };
            } else {
                let (buffer, offset) = self.stage(part)?;
                self.copy_plain(Place { buffer, offset }, to, part.len() as u64);
            }
            done += part.len() as u64;
        }
        Ok(())
    }

    /// Records `Op::Update`.
    pub fn update(&mut self, dst: &Slice, data: &[u8]) -> Result {
        let place = Place::new(VulkanMemory::of(&*dst.memory)?, dst.offset);
        self.write(place, data)
    }

    /// Records `Op::Fill`.
    pub fn fill(&mut self, dst: &Slice, pattern: &[u8]) -> Result {
        let place = Place::new(VulkanMemory::of(&*dst.memory)?, dst.offset);
        let size = dst.size;
        if size == 0 {
            return Ok(());
        }
        let Some(first) = pattern.first() else {
            return Err(DeviceError::Unsupported("an empty fill pattern".to_owned()));
        };
        // The shortest period of 1, 2, 4 ... bytes.
        let mut period = pattern.len();
        while period > 1
            && period.is_multiple_of(2)
            && pattern[..period / 2] == pattern[period / 2..period]
        {
            period /= 2;
        }
        let repeat = |length: usize| -> Vec<u8> {
            pattern[..period]
                .iter()
                .copied()
                .cycle()
                .take(length)
                .collect()
        };
        if period <= 4 {
            let mut word = [*first; 4];
            word.iter_mut()
                .zip(pattern[..period].iter().cycle())
                .for_each(|(to, from)| *to = *from);
            // The ends are shorter than 4 bytes, and both begin at a multiple of the period.
            let head = (place.offset.wrapping_neg() % 4).min(size);
            let body = (size - head) / 4 * 4;
            let tail = size - head - body;
            if head > 0 {
                self.write(place, &word[..head as usize])?;
            }
            if body > 0 {
                // SAFETY: the command buffer is being recorded by this thread; offset and size are multiples of 4.
                unsafe {
                    self.tools.device.raw.cmd_fill_buffer(
                        self.commands,
                        place.buffer,
                        place.offset + head,
                        body,
                        u32::from_ne_bytes(word),
                    );
                }
            }
            if tail > 0 {
                // After `head` bytes the pattern stands at `head` modulo its period, which is 0 unless the place was
                // aligned less than the pattern is long.
                let start = (head + body) as usize % period;
                let rest: Vec<u8> = pattern[..period]
                    .iter()
                    .copied()
                    .cycle()
                    .skip(start)
                    .take(tail as usize)
                    .collect();
                self.write(place.at(head + body), &rest)?;
            }
            return Ok(());
        }
        if size <= 16384 {
            return self.write(place, &repeat(size as usize));
        }
        let head = place.offset.wrapping_neg() % 16;
        if let (Some(pipeline), true) = (
            self.tools.utilities.get(Shader::Fill16),
            head.is_multiple_of(period as u64),
        ) {
            let body = (size - head) / 16 * 16;
            let tail = size - head - body;
            self.write(place, &repeat(head as usize))?;
            let block = period.max(16);
            let (buffer, offset) = self.stage(&repeat(block))?;
            let (source, first) = bind(
                &self.tools.device,
                Place { buffer, offset },
                block as u64,
                16,
            );
            let most = reach(&self.tools.device, 16);
            let mut done = 0;
            while done < body {
                let bytes = (body - done).min(most);
                let (target, to) = bind(&self.tools.device, place.at(head + done), bytes, 16);
                let units = (bytes / 16) as u32;
                let groups = [(bytes / 16).div_ceil(TILE) as u32, 1, 1];
                self.shader(
                    pipeline,
                    [source, target],
                    &[first, to, units, block as u32 / 16 - 1],
                    groups,
                );
                done += bytes;
            }
            let start = (body % period as u64) as usize;
            let rest: Vec<u8> = pattern[..period]
                .iter()
                .copied()
                .cycle()
                .skip(start)
                .take(tail as usize)
                .collect();
            return self.write(place.at(head + body), &rest);
        }
        // No shader: copies of one staged piece, a multiple of the period.
        let piece = UPDATE as usize / period * period;
        let (buffer, offset) = self.stage(&repeat(piece))?;
        let mut regions = std::mem::take(&mut self.regions);
        let mut done = 0;
        while done < size {
            let bytes = (size - done).min(piece as u64);
            regions.push(vk::BufferCopy {
                src_offset: offset,
                dst_offset: place.offset + done,
                size: bytes,
            });
            if regions.len() == REGIONS {
                self.copy_regions(buffer, place.buffer, &regions);
                regions.clear();
            }
            done += bytes;
        }
        self.copy_regions(buffer, place.buffer, &regions);
        regions.clear();
        self.regions = regions;
        Ok(())
    }
}
