//! The accesses of a command to the host's memory, and who makes them: the input of the queue's `hazards`.

use super::{HostSide, Work};
use crate::handle::Ref;
use crate::object::mem::Mem;
use smallvec::SmallVec;
use std::ops::Range;

/// Ranges of addresses of the host.
pub type Ranges = SmallVec<[Range<usize>; 4]>;

/// The memory that the thread which encodes a command reads itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SourceCopy {
    /// Nothing: the device, or a host task, has all the work.
    None,
    /// Memory that no device reaches, as far as is known.
    Host,
    /// Memory that devices reach.
    Shared,
}

/// The memory that a command touches while tasks of the host thread are under way.
pub enum HostAccess {
    /// These ranges.
    Ranges(Ranges),
    /// Memory that devices reach, any of it.
    Shared,
    /// Any memory.
    Anything,
}

impl Work {
    /// Returns the memory that the thread which encodes it reads.
    pub fn source_copy(&self) -> SourceCopy {
        let of = |host: &HostSide| match (host.visible.is_some(), host.shared) {
            (true, _) => SourceCopy::None,
            (false, true) => SourceCopy::Shared,
            (false, false) => SourceCopy::Host,
        };
        match self {
            Self::Transfer { host, write, .. } | Self::TransferImage { host, write, .. }
                if *write =>
            {
                of(host)
            }
            // The shadow, unless the device reads that itself. Where there are several memories it does not, though commands
            // of the processor may write there.
            Self::Unmap { mem, mapping } if mapping.copies_out() => {
                match mem.context.memories.are_several() {
                    true => SourceCopy::Shared,
                    false => SourceCopy::Host,
                }
            }
            Self::Replay(replay) => replay.source_copy,
            _ => SourceCopy::None,
        }
    }

    /// Returns true if a launch that may touch memory of the host that is no memory object.
    pub fn follows_pointers(&self) -> bool {
        match self {
            Self::Launch(launch) => launch.kernel.host_memory,
            Self::Replay(replay) => {
                let mut commands = replay.commands.iter();
                commands.any(|command| command.work.follows_pointers())
            }
            _ => false,
        }
    }

    /// Returns true if only commands of the same queue can observe whether the command is complete:
    /// a write to memory that the host does not reach. Such a command may be left to the device
    /// although the caller waits for it.
    pub fn is_hidden(&self) -> bool {
        match self {
            Self::Transfer {
                mem, host, write, ..
            }
            | Self::TransferImage {
                mem, host, write, ..
            } => *write && mem.host_range().is_none() && host.visible.is_none(),
            _ => false,
        }
    }

    /// Returns the host memory that the command touches, whether the device or the host does.
    pub fn host_access(&self) -> HostAccess {
        let mut ranges = Ranges::new();
        let add = |ranges: &mut Ranges, mem: &Ref<Mem>| ranges.extend(mem.host_range());
        match self {
            Self::Transfer {
                mem, host, region, ..
            }
            | Self::TransferImage {
                mem,
                host,
                rows: region,
                ..
            } => {
                add(&mut ranges, mem);
                ranges.push(host.range(region));
            }
            Self::Copy { src, dst, .. } | Self::CopyImage { src, dst, .. } => {
                add(&mut ranges, src);
                add(&mut ranges, dst);
            }
            Self::CopyTexels { image, buffer, .. } => {
                add(&mut ranges, image);
                add(&mut ranges, buffer);
            }
            Self::Fill { mem, .. } | Self::FillImage { mem, .. } => add(&mut ranges, mem),
            Self::Map { mem, mapping } | Self::Unmap { mem, mapping } => {
                add(&mut ranges, mem);
                ranges.push(mapping.range());
            }
            Self::Migrate { parts, .. } => parts.iter().for_each(|(mem, _)| add(&mut ranges, mem)),
            Self::Host(work) => ranges.extend(work.touches()),
            Self::Launch(launch) => {
                let kernel = &launch.kernel;
                if kernel.host_memory {
                    return HostAccess::Anything;
                }
                if kernel.touches_anything {
                    return HostAccess::Shared;
                }
                let all = kernel.buffers.iter().chain(&kernel.images);
                all.for_each(|(mem, _)| add(&mut ranges, mem));
            }
            Self::Replay(replay) => {
                let mut shared = false;
                for command in &replay.commands {
                    match command.work.host_access() {
                        HostAccess::Ranges(some) => ranges.extend(some),
                        HostAccess::Shared => shared = true,
                        HostAccess::Anything => return HostAccess::Anything,
                    }
                }
                if shared {
                    // With ranges that are perhaps not shared, there is nothing less.
                    return match ranges.is_empty() {
                        true => HostAccess::Shared,
                        false => HostAccess::Anything,
                    };
                }
            }
            // Its arguments may lead anywhere.
            Self::Native(_) => return HostAccess::Anything,
            // Others may reach what devices do.
            Self::Handover { .. } | Self::Semaphores { .. } => return HostAccess::Shared,
            Self::Marker | Self::Barrier => {}
        }
        HostAccess::Ranges(ranges)
    }
}
