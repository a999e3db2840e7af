//! Kernels that kernels enqueue: from a record of a device queue to what a launch needs, and what kernels may ask of blocks.

use super::args::check_image_type;
use super::snapshot::put;
use crate::cl;
use crate::compile::{Executable, LoweredKernel};
use crate::error::{err, ClResult, OrErr};
use crate::handle::Ref;
use crate::object::device::Device;
use crate::object::launch::{Enqueues, KernelLaunch};
use crate::object::mem::queue_images::Identity;
use crate::object::mem::Mem;
use spirv_lowering::device_queue::state;
use spirv_lowering::interface::{sampler, ArgKind, SamplerSource, LOCAL_ARG_ALIGN};
use std::sync::Arc;

/// The block that a record launches.
pub struct BlockLaunch<'a> {
    /// The number of the block.
    pub number: u64,
    /// The address of what it captured.
    pub captured: &'a [u8],
    /// The device address of a copy of that.
    pub address: u64,
    /// Sizes of local memory, in bytes.
    pub locals: &'a [u32],
    /// Set if it is to go beyond 2^32 work-items in a dimension.
    pub wide: bool,
}

impl Enqueues {
    fn find(executable: &Executable, number: u64) -> ClResult<&LoweredKernel> {
        let mut blocks = executable.blocks().iter();
        let found = blocks.find(|block| block.number == number);
        found.or_err(
            cl::CL_INVALID_KERNEL,
            "a record names no block of its program",
        )
    }

    /// Returns a launch of a block. `tree`: the identity of the launch tree, which orders its
    /// launches as a queue orders those of the application.
    pub fn launch(
        self: &Arc<Self>,
        device: &Ref<Device>,
        tree: &Identity,
        child: &BlockLaunch<'_>,
    ) -> ClResult<Box<KernelLaunch>> {
        let wide = child.wide;
        let executable = match wide {
            false => self.executable.as_ref(),
            true => self.executable.wide()?,
        };
        let block = Self::find(executable, child.number)?;
        let interface = &block.lowered.interface;
        let sites = &block.lowered.printfs;
        let mut launch = KernelLaunch::new(executable.block_code(block)?, self.rules, wide);
        launch.globals = self.globals.clone();
        launch.printf = (!sites.is_empty()).then(|| Arc::new(sites.clone()));
        launch.touches_anything = true;
        launch.host_memory = device.caps().svm.system;
        launch.enqueues = interface.enqueues().then(|| self.clone());
        let mut locals = child.locals.iter();
        for (arg, &access) in interface.args.iter().zip(&interface.arg_access) {
            match arg.kind {
                ArgKind::Buffer { offset, .. } => {
                    put(&mut launch.args, offset, &child.address.to_ne_bytes());
                }
                ArgKind::Local { spec_id } => {
                    let size = locals.next().copied().filter(|size| *size > 0);
                    let size = size.and_then(|size| size.checked_next_multiple_of(LOCAL_ARG_ALIGN));
                    let size = size.or_err(
                        cl::CL_INVALID_ARG_SIZE,
                        "a block lacks a size of local memory",
                    )?;
                    launch.local_args.push((spec_id, size));
                }
                ArgKind::Captured { at, image } => {
                    let mem = self.captured_image(child.captured, at).or_err(
                        cl::CL_INVALID_ARG_VALUE,
                        "a block captured an image that the launch does not have",
                    )?;
                    check_image_type(mem, &image, arg.access)?;
                    launch.images.push((mem.clone(), access));
                    launch.show_image(device, tree, &image, mem, access)?;
                }
                _ => return err(cl::CL_INVALID_KERNEL, "a block with another argument"),
            }
        }
        launch.bind_samplers(&interface.samplers, |source| match source {
            SamplerSource::Literal(word) => Ok(word),
            SamplerSource::Captured(at) => captured_sampler(child.captured, at)
                .or_err(cl::CL_INVALID_ARG_VALUE, "a block captured no sampler"),
            SamplerSource::Arg(_) => err(cl::CL_INVALID_KERNEL, "a block with a sampler argument"),
        })?;
        Ok(launch)
    }

    /// Returns the image whose number is at an offset of a block's captures.
    fn captured_image(&self, captured: &[u8], at: u32) -> Option<&Ref<Mem>> {
        let (number, _) = captured.get(at as usize..)?.split_first_chunk()?;
        let index = u64::from_le_bytes(*number).checked_sub(1)?;
        self.images.get(usize::try_from(index).ok()?)?.as_ref()
    }

    /// Returns the device-queue state of a launch as its kernels read it, with the address of the
    /// default queue.
    pub fn state(&self, device: &Device, default: u64, launch: u64) -> Vec<u8> {
        let mut bytes = self.table.get_or_init(|| self.table(device)).clone();
        put_long(&mut bytes, state::DEFAULT_QUEUE, default);
        put_long(&mut bytes, state::LAUNCH, launch);
        bytes
    }

    /// Returns the part of the device-queue state that is the same for all launches.
    fn table(&self, device: &Device) -> Vec<u8> {
        let caps = device.backend.caps();
        let blocks = self.executable.blocks();
        let mut bytes = vec![0; state::TABLE + blocks.len() * state::ENTRY];
        let mut long = |at: usize, value: u64| put_long(&mut bytes, at, value);
        long(state::EVENTS, self.on_device.events.address());
        let flag = |on: bool, bit: u32| if on { bit } else { 0 };
        let flags =
            flag(self.rules.precise, state::PRECISE) | flag(self.rules.uniform, state::UNIFORM);
        let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        long(state::FLAGS, pair(flags, caps.max_work_group_size));
        long(state::BLOCKS, blocks.len() as u64);
        let [x, y, z] = caps.max_work_item_sizes;
        long(state::MAX_ITEMS, pair(x, y));
        long(state::MAX_ITEMS + 8, z.into());
        for (index, block) in blocks.iter().enumerate() {
            let at = state::TABLE + index * state::ENTRY;
            let attributes = &block.lowered.interface.attributes;
            let lanes = attributes.sub_group_size(caps.subgroup_size);
            // What cannot be loaded cannot be launched either.
            let most = self.executable.block_code(block).map_or(0, |code| {
                code.max_work_group_size().min(caps.max_work_group_size)
            });
            long(at, block.number);
            long(at + 8, pair(most, caps.hardware_subgroup(lanes)));
            long(at + 16, lanes.into());
        }
        bytes
    }
}

/// Returns the properties of the sampler whose number is at an offset of a block's captures. A
/// kernel may have written anything there: bits of no property are ignored.
fn captured_sampler(captured: &[u8], at: u32) -> Option<u32> {
    let (word, _) = captured.get(at as usize..)?.split_first_chunk()?;
    Some(u32::from_le_bytes(*word) & sampler::MASK)
}

fn put_long(bytes: &mut [u8], at: usize, value: u64) {
    put(bytes, at as u32, &value.to_le_bytes());
}
