//! Commands as plain data. The builders here check arguments against the specification and take
//! snapshots; they know contexts and devices, but no queue.
//!
//! Use: `let command = command::buffer::read(&target, ..)?; queue.enqueue(command, wait_list, blocking, want_event)?`
//! where `target` comes from `queue.target()`. A launch takes one step more, which may last
//! ([`kernel::LaunchPlan::make_pipelines`]).

pub mod access;
pub mod buffer;
pub mod contents;
pub mod external;
pub mod gl;
pub mod image;
pub mod kernel;
pub mod map;
pub mod rect;
pub mod replay;
pub mod svm;
pub mod sync;

use crate::backend::external::Semaphore;
use crate::backend::image::ImageRegion;
use crate::backend::{BufferCopy, Slice};
use crate::cl::{self, cl_command_type, cl_map_flags, cl_mem_migration_flags};
use crate::error::{ensure, err, ClResult};
use crate::handle::Ref;
use crate::object::context::Context;
use crate::object::device::Device;
use crate::object::grid::Grid;
use crate::object::launch::KernelLaunch;
use crate::object::mem::coherence::Touch;
use crate::object::mem::host_work::HostWork;
use crate::object::mem::map::Mapping;
use crate::object::mem::pixel::Pixel;
use crate::object::mem::queue_images::Identity;
use crate::object::mem::reach::HostBacking;
use crate::object::mem::Mem;
use crate::object::memories::MemoryIndex;
use crate::object::native_kernel::NativeKernel;
use replay::Replay;
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::Arc;

/// Where a command is going to run: what builders check against.
#[derive(Clone)]
pub struct QueueTarget {
    /// The queue's context.
    pub context: Ref<Context>,
    /// The queue's device.
    pub device: Ref<Device>,
    /// The device's place in the context.
    pub index: usize,
    /// The device's memory.
    pub memory: MemoryIndex,
    /// The identity of the queue.
    pub queue: Identity,
}

impl QueueTarget {
    /// Checks that the object belongs to the queue's context and begins where the device can
    /// address it.
    pub fn check(&self, mem: &Ref<Mem>) -> ClResult {
        if !Arc::ptr_eq(&mem.context, &self.context) {
            return err(
                cl::CL_INVALID_CONTEXT,
                "the memory object is of another context than the queue",
            );
        }
        mem.check_alignment(&self.device)
    }

    /// Does the same as [`QueueTarget::check`], for commands on buffers alone.
    pub fn check_buffer(&self, mem: &Ref<Mem>) -> ClResult {
        if !Arc::ptr_eq(&mem.context, &self.context) {
            return err(
                cl::CL_INVALID_CONTEXT,
                "the buffer is of another context than the queue",
            );
        }
        if !mem.is_buffer() {
            return err(
                cl::CL_INVALID_MEM_OBJECT,
                "the memory object is not a buffer",
            );
        }
        Ok(())
    }
}

/// A command.
pub struct Command {
    /// CL_COMMAND_*, for its event.
    pub kind: cl_command_type,
    /// The work.
    pub work: Work,
}

impl Command {
    /// Creates a command.
    pub fn new(kind: cl_command_type, work: Work) -> Self {
        Self { kind, work }
    }
}

/// Memory of the host that a command reads or writes.
#[derive(Clone)]
pub struct HostSide {
    /// Address that offsets count from.
    pub base: usize,
    /// Device-visible memory at the same place, if it is memory of ours: no staging is needed. Offsets count from the
    /// start of the slice as they do from `base`.
    pub visible: Option<Slice>,
    /// A device reaches the memory: what the device did before must be done before the host touches it.
    pub shared: bool,
}

impl HostSide {
    /// Describes memory that the application names in a command for this queue, which accesses the destination of a region
    /// from `base` on.
    #[inline(always)]
    pub fn of(target: &QueueTarget, base: usize, region: &BufferCopy) -> Self {
        // Written out here, where it is put into a command: parts of what comes back through memory would be waited for.
        if !target.context.has_host_backing() {
            return Self::private(base);
        }
        Self::of_backing(target, base, region.dst_offset + region.dst_span())
    }

    /// Describes memory of the host that no device reaches.
    pub fn private(base: usize) -> Self {
        Self {
            base,
            visible: None,
            shared: false,
        }
    }

    /// Creates the side of a transfer in host memory, in a context with host backings.
    #[cold]
    fn of_backing(target: &QueueTarget, base: usize, size: u64) -> Self {
        let range = base..base.wrapping_add(size as usize).max(base);
        let (visible, shared) = match target.context.host_backing(target.memory, &range) {
            HostBacking::Host => (None, false),
            HostBacking::Shared => (None, true),
            HostBacking::Device(slice) => (Some(slice), true),
        };
        Self {
            base,
            visible,
            shared,
        }
    }

    /// Returns the addresses of the destination of a region.
    pub fn range(&self, region: &BufferCopy) -> Range<usize> {
        let first = self.base.wrapping_add(region.dst_offset as usize);
        first..first.wrapping_add(region.dst_span() as usize)
    }

    /// Returns the same side without the device's view of it, so that the host copies: rows of an
    /// image, which devices copy packed only.
    pub fn by_host(self) -> Self {
        Self {
            visible: None,
            ..self
        }
    }
}

/// The work of a command.
#[allow(missing_docs)]
pub enum Work {
    /// Device memory (the source of the region, from the start of the object) to host memory, or back.
    Transfer {
        mem: Ref<Mem>,
        host: HostSide,
        region: BufferCopy,
        write: bool,
    },
    /// Device memory to device memory.
    Copy {
        src: Ref<Mem>,
        dst: Ref<Mem>,
        region: BufferCopy,
    },
    /// Repeats a pattern.
    Fill {
        mem: Ref<Mem>,
        offset: u64,
        size: u64,
        pattern: SmallVec<[u8; 16]>,
    },
    /// Image to host memory, or back.
    TransferImage {
        mem: Ref<Mem>,
        at: ImageRegion,
        host: HostSide,
        /// Packed as source, in host memory as destination.
        rows: BufferCopy,
        write: bool,
    },
    /// Image to image, boxes of one size.
    CopyImage {
        src: Ref<Mem>,
        dst: Ref<Mem>,
        from: ImageRegion,
        to: ImageRegion,
    },
    /// Image to packed bytes of a buffer, or back.
    CopyTexels {
        image: Ref<Mem>,
        at: ImageRegion,
        buffer: Ref<Mem>,
        offset: u64,
        to_image: bool,
    },
    /// Repeats a pixel.
    FillImage {
        mem: Ref<Mem>,
        at: ImageRegion,
        pixel: Pixel,
    },
    /// Makes a mapped region visible to the host.
    Map { mem: Ref<Mem>, mapping: Mapping },
    /// Ends a map.
    Unmap { mem: Ref<Mem>, mapping: Mapping },
    /// Brings objects to the device (or only tells that the host will want them).
    Migrate {
        /// Which bytes of which objects; images are brought whole.
        parts: Vec<(Ref<Mem>, Range<u64>)>,
        /// To the queue's device: `Read`, or `Overwrite` where contents need not come along. `None`: to the host.
        touch: Option<Touch>,
    },
    /// Work of the host, after everything before.
    Host(Arc<dyn HostWork>),
    /// Calls a function of the application with these buffers, on a device that does.
    Native(Arc<NativeKernel>),
    /// Runs a kernel.
    Launch(Launch),
    /// Runs recorded commands.
    Replay(Arc<Replay>),
    /// Takes objects over from others that share their memory, or hands them over.
    Handover { list: Vec<Ref<Mem>>, acquire: bool },
    /// Waits for shared semaphores, or signals them.
    Semaphores {
        list: SmallVec<[Arc<dyn Semaphore>; 1]>,
        signal: bool,
    },
    /// Nothing; completes after what it waits for.
    Marker,
    /// Nothing; everything later waits for it.
    Barrier,
}

impl Work {
    /// Returns true if it may move bytes between an object and memory of the host.
    pub fn is_transfer(&self) -> bool {
        match self {
            Self::Transfer { .. } | Self::TransferImage { .. } | Self::Unmap { .. } => true,
            Self::Map { mapping, .. } => mapping.copies_in(),
            _ => false,
        }
    }

    /// Returns a bound of the work that it is for a device, in instructions and bytes, if there is one: none for kernels with
    /// loops.
    pub fn bound(&self) -> Option<u64> {
        match self {
            Self::Transfer {
                region,
                write: true,
                ..
            }
            | Self::Copy { region, .. } => Some(region.total()),
            Self::Fill { size, .. } => Some(*size),
            Self::Launch(Launch { kernel, grid }) if kernel.enqueues.is_none() => {
                match kernel.code.interface().instruction_bound {
                    u32::MAX => None,
                    instructions => Some(grid.work_items().saturating_mul(instructions.into())),
                }
            }
            Self::Migrate { .. } | Self::Marker | Self::Barrier => Some(0),
            _ => None,
        }
    }
}

/// A kernel launch, ready to be recorded.
pub struct Launch {
    /// Kernel and arguments.
    pub kernel: Box<KernelLaunch>,
    /// Its work-groups.
    pub grid: Arc<Grid>,
}

/// Returns the touch of clEnqueueMigrateMemObjects and clEnqueueSVMMigrateMem, by their flags.
fn migration(flags: cl_mem_migration_flags) -> ClResult<Option<Touch>> {
    const KNOWN: cl_mem_migration_flags =
        cl::CL_MIGRATE_MEM_OBJECT_HOST | cl::CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED;
    if flags & !KNOWN != 0 {
        return err(cl::CL_INVALID_VALUE, "unknown migration flags");
    }
    Ok(if flags & cl::CL_MIGRATE_MEM_OBJECT_HOST != 0 {
        None
    } else if flags & cl::CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED != 0 {
        Some(Touch::Overwrite)
    } else {
        Some(Touch::Read)
    })
}

/// Fails with CL_INVALID_OPERATION unless the flags of an object let the host access it so. Notes a write.
fn check_host(mem: &Mem, reads: bool, writes: bool) -> ClResult {
    let denies = |flag| mem.flags & (flag | cl::CL_MEM_HOST_NO_ACCESS) != 0;
    ensure!(
        !(reads && denies(cl::CL_MEM_HOST_WRITE_ONLY)),
        cl::CL_INVALID_OPERATION,
        "the host may not read this memory object"
    );
    ensure!(
        !(writes && denies(cl::CL_MEM_HOST_READ_ONLY)),
        cl::CL_INVALID_OPERATION,
        "the host may not write this memory object"
    );
    if writes {
        mem.check_written()?;
    }
    Ok(())
}

/// Checks that the flags of a map are valid.
fn check_map_flags(flags: cl_map_flags) -> ClResult {
    const BOTH: cl_map_flags = cl::CL_MAP_READ | cl::CL_MAP_WRITE;
    let valid = flags & !BOTH == 0 || flags == cl::CL_MAP_WRITE_INVALIDATE_REGION;
    ensure!(valid, cl::CL_INVALID_VALUE, "the map flags are not valid");
    Ok(())
}

/// Fails with CL_INVALID_OPERATION for a map that reads or writes what the object's flags do not allow.
pub fn check_map_access(mem: &Mem, flags: cl_map_flags) -> ClResult {
    let writes = cl::CL_MAP_WRITE | cl::CL_MAP_WRITE_INVALIDATE_REGION;
    check_host(mem, flags & cl::CL_MAP_READ != 0, flags & writes != 0)
}
