//! The stages and accesses of commands in Vulkan's terms, and barriers between them.

use super::logical::LogicalDevice;
use ash::vk;

/// The stages that our commands run in.
pub const STAGES: vk::PipelineStageFlags = vk::PipelineStageFlags::from_raw(
    vk::PipelineStageFlags::COMPUTE_SHADER.as_raw() | vk::PipelineStageFlags::TRANSFER.as_raw(),
);

/// The writes of our commands.
const WRITES: vk::AccessFlags = vk::AccessFlags::from_raw(
    vk::AccessFlags::SHADER_WRITE.as_raw() | vk::AccessFlags::TRANSFER_WRITE.as_raw(),
);

const READS: vk::AccessFlags = vk::AccessFlags::from_raw(
    vk::AccessFlags::SHADER_READ.as_raw() | vk::AccessFlags::TRANSFER_READ.as_raw(),
);

/// Stages and accesses on one side of a barrier.
type Side = (vk::PipelineStageFlags, vk::AccessFlags);

fn record(
    device: &LogicalDevice,
    commands: vk::CommandBuffer,
    (from, written): Side,
    (to, seen): Side,
) {
    let barrier = [vk::MemoryBarrier::default()
        .src_access_mask(written)
        .dst_access_mask(seen)];
    let flags = vk::DependencyFlags::empty();
    // SAFETY: the command buffer is being recorded by this thread.
    unsafe {
        device
            .raw
            .cmd_pipeline_barrier(commands, from, to, flags, &barrier, &[], &[])
    };
}

/// Records barriers of buffers and images, between these stages.
pub fn of_resources(
    device: &LogicalDevice,
    commands: vk::CommandBuffer,
    [from, to]: [vk::PipelineStageFlags; 2],
    buffers: &[vk::BufferMemoryBarrier<'_>],
    images: &[vk::ImageMemoryBarrier<'_>],
) {
    let flags = vk::DependencyFlags::empty();
    // SAFETY: the command buffer is being recorded by this thread; the batch keeps the resources.
    unsafe {
        device
            .raw
            .cmd_pipeline_barrier(commands, from, to, flags, &[], buffers, images)
    };
}

/// Records a barrier between earlier commands in `stages` and later ones.
pub fn between(
    device: &LogicalDevice,
    commands: vk::CommandBuffer,
    stages: vk::PipelineStageFlags,
) {
    let writes = match stages {
        vk::PipelineStageFlags::COMPUTE_SHADER => vk::AccessFlags::SHADER_WRITE,
        vk::PipelineStageFlags::TRANSFER => vk::AccessFlags::TRANSFER_WRITE,
        _ => WRITES,
    };
    record(device, commands, (stages, writes), (STAGES, READS | WRITES));
}

/// Makes all that was written visible to the host once the batch has completed.
pub fn before_host(device: &LogicalDevice, commands: vk::CommandBuffer) {
    let to = (vk::PipelineStageFlags::HOST, vk::AccessFlags::HOST_READ);
    record(device, commands, (STAGES, WRITES), to);
}
