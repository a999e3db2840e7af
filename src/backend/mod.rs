//! The narrow waist to hardware. Knows no OpenCL object.
//!
//! A [`Device`] allocates [`Memory`], loads kernels ([`Code`]) and makes [`Stream`]s. A stream is an ordered sequence of
//! *batches*; each submitted batch is a value on the stream's [`Timeline`]. Operations are recorded straight into the
//! open batch in the caller's thread; submitting is explicit.
//!
//! # Contract
//! - The caller has validated everything that an application can get wrong (ranges, alignments, overlaps, argument
//!   sizes). The back end reports only what the caller cannot foresee: [`DeviceError`].
//! - A stream keeps every resource it was given alive until the batch that uses it has completed.
//! - A stream may only wait for points that have been *submitted* (never for one that the host or a later
//!   submission signals): so a submission can never hang on something unsubmitted.
//! - Nothing here calls back into the runtime.

pub mod caps;
pub mod cpu;
pub mod device_events;
pub mod device_queue;
pub mod event_times;
pub mod external;
#[cfg(test)]
pub mod fake;
pub mod gl;
pub mod image;
pub mod machine;
pub mod mirror;
pub mod op;
pub mod owned_memory;
pub mod processors;
pub mod spare_stream;
pub mod staging;
pub mod vulkan;
mod words;

pub use caps::{Caps, SvmCaps};
pub use image::{Binding, DeviceImage, ImageDesc, ImageDim, PixelFormat, Support};
pub use op::{BufferCopy, Call, Op, OrderRule, Sequence, Slice, Use};

use external::{MemoryHandle, Semaphore, SemaphoreHandle};
use processors::Processor;
use smallvec::SmallVec;
use spirv_lowering::interface::KernelInterface;
use spirv_lowering::native::Packing;
use std::any::Any;
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Duration;

/// The errors of devices.
#[derive(Debug, Clone, thiserror::Error)]
pub enum DeviceError {
    /// The host has no memory left.
    #[error("out of host memory")]
    OutOfHostMemory,
    /// The device has no memory left for an allocation of that size in bytes.
    #[error("out of device memory allocating {size} bytes")]
    OutOfDeviceMemory {
        /// Bytes asked for.
        size: u64,
    },
    /// The device was lost; nothing on it works any more.
    #[error("device lost")]
    Lost,
    /// A command that it waits for has failed.
    #[error("a command that this one waits for has failed")]
    WaitFailed,
    /// The commands of the stream were terminated.
    #[error("the command was terminated")]
    Terminated,
    /// The device cannot do it.
    #[error("not supported by the device: {0}")]
    Unsupported(String),
    /// Any other failure of the driver.
    #[error("{call} failed: {code}")]
    Driver {
        /// The call that failed.
        call: &'static str,
        /// The driver's code, spelled out.
        code: String,
    },
}

/// Result of a back-end call.
pub type Result<T = (), E = DeviceError> = std::result::Result<T, E>;

/// Where memory should lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// Device-local. Mapped only where that is free (unified memory, lavapipe).
    Device,
    /// Device-local and mapped where such memory exists; falls back to `HostWrite`.
    DeviceMapped,
    /// Host memory, mapped, good for writing by the host and reading by the device (staging up, arguments).
    HostWrite,
    /// Host memory, mapped and cached, good for reading by the host (staging down, maps).
    HostRead,
}

/// The kind of memory at an address of the host's (shared virtual memory).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SharedKind {
    /// Host and device see the same bytes: `mapped` is the device address.
    Fine,
    /// Either that, or (`mapped` is `None`) the bytes are the device's, and the host has plain memory of its own at the
    /// same addresses, readable and writable, to which contents are copied when they are mapped.
    Coarse,
}

/// How memory comes to lie at an address that other devices of the same driver have too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReplayKind {
    /// One allocation, whose address the driver gives and takes again (Vulkan's capture and replay).
    Whole,
    /// Addresses alone, given and taken like that; memory of the device is put there later, in pieces (sparse binding).
    Pieces,
    /// As that, but what is put there is memory of the host.
    Host,
}

/// The data that another device needs to give memory the same address. The numbers are the
/// driver's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Replay {
    /// How the memory was made.
    pub kind: ReplayKind,
    /// Its size in bytes.
    pub size: u64,
    /// The capture address of its buffer.
    pub buffer: u64,
    /// The capture address of its allocation.
    pub memory: u64,
}

/// A timeline: a counter that only grows. One a stream.
pub trait Timeline: Send + Sync {
    /// Returns the value reached, without waiting. An error means that the device was lost.
    fn completed(&self) -> Result<u64>;
    /// Returns true if a value is reached, as far as is known.
    fn has_reached(&self, value: u64) -> bool {
        self.completed().is_ok_and(|now| now >= value)
    }
    /// Returns why the command with this value, which is reached, has failed, if it has. The failure is that command's alone:
    /// the value is reached like any other.
    fn failure(&self, value: u64) -> Option<DeviceError> {
        let _ = value;
        None
    }
    /// Returns true if other streams can wait for exactly this value ([`Stream::wait_for`]).
    /// Otherwise, while it is not reached, they would wait for later commands as well.
    fn has_signal(&self, value: u64) -> bool {
        let _ = value;
        true
    }
    /// Waits until `value` is reached: polls for a short while, then blocks. False: time ran out.
    fn wait(&self, value: u64, timeout: Option<Duration>) -> Result<bool>;
    /// Ends all commands that are not complete, now and later: their values count as reached, and they have failed with
    /// [`DeviceError::Terminated`]. None begins any more. A dispatch that runs ends when its work-groups that run have, which
    /// is waited for only shortly. Of streams with [`StreamDesc::terminable`] alone.
    fn terminate(&self) {}
    /// Returns true while a dispatch that was terminated runs.
    fn runs_on(&self) -> bool {
        false
    }
    /// Returns the object for the same device's streams to downcast.
    fn as_any(&self) -> &dyn Any;
}

/// A moment on a timeline.
#[derive(Clone)]
pub struct Point {
    /// Which timeline.
    pub timeline: Arc<dyn Timeline>,
    /// When it has reached this value.
    pub value: u64,
}

/// A piece of memory that the device can address.
pub trait Memory: Send + Sync {
    /// Returns the device address of the first byte.
    fn address(&self) -> u64;
    /// Returns the size in bytes that was requested.
    fn size(&self) -> u64;
    /// Returns the host pointer to the first byte, if the memory is mapped. It stays mapped for the
    /// life of the memory, and is always coherent.
    fn mapped(&self) -> Option<NonNull<u8>>;
    /// Returns true if host reads through `mapped` are fast (cached), not only writes.
    fn host_cached(&self) -> bool;
    /// Returns the memory as `Any`, for its back end to downcast.
    fn as_any(&self) -> &dyn Any;
}

/// Code for processors, compiled when it is asked for.
pub trait NativeCode: Send + Sync {
    /// Returns the object file with the code for a packing of work-items
    /// (`spirv_lowering::native`).
    fn object(&self, packing: Packing) -> Result<Vec<u8>>;
    /// Returns true if that for `Packing::ANY_GROUP` is there, without a compiler.
    fn runs_any_group(&self) -> bool;
    /// Returns the kernel after all passes, as text.
    fn kir(&self) -> &str;
    /// Returns true if `Packing::Groups` may be used.
    fn packs_groups(&self) -> bool;
}

/// A lowered kernel as a device takes it.
pub enum MachineCode<'a> {
    /// Valid Vulkan SPIR-V.
    Spirv(&'a [u32]),
    /// For the processor.
    Native(Arc<dyn NativeCode>),
}

/// A loaded kernel, not specialised yet.
pub trait Code: Send + Sync {
    /// Returns the interface of the kernel.
    fn interface(&self) -> &KernelInterface;
    /// Returns the pipeline for a work-group size, the byte sizes of the local-memory arguments
    /// (spec id, size rounded up to 16), and a number of work-groups: the best one for many need
    /// not be the best for few. Cached: the second call with the same values is a hash look-up.
    fn specialise(
        &self,
        local_size: [u32; 3],
        local_args: &[(u32, u32)],
        groups: u64,
    ) -> Result<Arc<dyn Pipeline>>;
    /// Returns how many pipelines [`Code::specialise`] keeps.
    fn specialised(&self) -> usize;
    /// Returns true if a pipeline takes long to make, so that few of them are worth more than the
    /// best size for each launch.
    fn costly(&self) -> bool;
    /// Returns the largest work-group in work-items (register pressure included, where the driver
    /// reports it).
    fn max_work_group_size(&self) -> u32;
}

/// A specialised kernel.
pub trait Pipeline: Send + Sync {
    /// Returns the pipeline as `Any`, for its back end to downcast.
    fn as_any(&self) -> &dyn Any;
}

/// How the host waits for a stream.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Throttle {
    /// Sleeps until it is woken.
    Low,
    /// Polls for a while at first where that has helped before.
    #[default]
    Normal,
    /// Polls for a while at first, always.
    High,
}

/// How to make a stream.
#[derive(Debug, Clone, Copy, Default)]
pub struct StreamDesc {
    /// Record timestamps round every operation whose `profile` slot is wanted.
    pub profiling: bool,
    /// High (1), normal (0), low (-1) priority, where the driver has such queues.
    pub priority: i8,
    /// How the host waits for it.
    pub throttle: Throttle,
    /// Its operations become sequences ([`Stream::take_sequence`]): nothing is submitted, and nothing profiled.
    pub recorder: bool,
    /// Its commands can be terminated ([`Timeline::terminate`]), on devices with [`Caps::terminable`].
    pub terminable: bool,
}

/// Device times of a profiled operation, nanoseconds on the host's CLOCK_MONOTONIC.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Times {
    /// The device began.
    pub start: u64,
    /// The device ended.
    pub end: u64,
}

/// Names a profiled operation of a stream until its times are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ProfileSlot(pub u64);

/// An ordered sequence of commands, each of one or more operations, which are submitted in batches. Used under a lock of the
/// caller's: one thread at a time.
pub trait Stream: Send {
    /// Returns the timeline of the stream.
    fn timeline(&self) -> &Arc<dyn Timeline>;
    /// Returns the value that the timeline reaches when the open command, the operations recorded now and next, is complete.
    fn open_value(&self) -> u64;
    /// Returns the value at which all that was recorded is complete.
    fn recorded_value(&self) -> u64;
    /// Ends the open command. If `observed` returns true, its completion may be queried: it must not
    /// depend on commands recorded later, which get another value. Otherwise it may share its value
    /// with them. A stream that gives each command its value does not ask. A command of which nothing
    /// was recorded leaves the next one no failure to wait for.
    fn end_command(&mut self, observed: &mut dyn FnMut() -> bool);
    /// Makes the open command fail, if it has not begun, where the command of this stream with the
    /// value has failed.
    fn depends_on(&mut self, value: u64) {
        let _ = value;
    }
    /// Returns true if commands can fail one by one ([`Timeline::failure`]).
    fn commands_fail(&self) -> bool {
        false
    }
    /// Returns the number of operations recorded in the open batch.
    fn open_len(&self) -> usize;
    /// Makes the open command wait for this point, already submitted, of another stream of the same
    /// device or of one with the same root. It fails if the command at that point has failed.
    fn wait_for(&mut self, point: &Point);
    /// Makes what is recorded from now on wait for a shared semaphore, which somebody else has signalled or is about to. The
    /// open batch is empty.
    fn wait_semaphore(&mut self, semaphore: &Arc<dyn Semaphore>) -> Result {
        let _ = semaphore;
        Err(DeviceError::Unsupported("shared semaphores".to_owned()))
    }
    /// Makes the open batch, which is not empty and is submitted next, signal a shared semaphore.
    fn signal_semaphore(&mut self, semaphore: &Arc<dyn Semaphore>) -> Result {
        let _ = semaphore;
        Err(DeviceError::Unsupported("shared semaphores".to_owned()))
    }
    /// Records an operation. With `profile`, its start and end are measured (streams made with profiling only).
    fn record(
        &mut self,
        op: Op<'_>,
        order: OrderRule,
        profile: bool,
    ) -> Result<Option<ProfileSlot>>;
    /// Records a barrier between all earlier and all later commands.
    fn barrier(&mut self) -> Result;
    /// Returns the operations recorded since the last sequence was taken, for streams that are recorders alone.
    fn take_sequence(&mut self) -> Result<Arc<dyn Sequence>> {
        Err(DeviceError::Unsupported("recorded sequences".to_owned()))
    }
    /// Ends the open command and submits the open batch, if there is anything in it (or `force`). Returns the last submitted
    /// value.
    fn submit(&mut self, force: bool) -> Result<u64>;
    /// Frees the resources of completed batches. Cheap when there is nothing to do.
    fn reclaim(&mut self);
    /// Returns the times of a completed operation, and frees the slot.
    fn take_times(&mut self, slot: ProfileSlot) -> Result<Times>;
    /// Frees the slot of a completed operation, without asking the driver for its times: it may wait for other work.
    fn discard_times(&mut self, slot: ProfileSlot);
}

/// A device.
pub trait Device: Send + Sync {
    /// Returns the capabilities of the device.
    fn caps(&self) -> &Caps;
    /// Returns the properties that the compiler needs.
    fn target(&self) -> &spirv_lowering::target::Target;
    /// Returns true if the device was lost: nothing on it works any more, now or later.
    fn is_lost(&self) -> bool {
        false
    }
    /// Allocates memory, at least 256-byte aligned.
    fn allocate(&self, size: u64, placement: Placement) -> Result<Arc<dyn Memory>>;
    /// Creates memory of a handle ([`Caps::memory_imports`]), which is no longer the caller's on success: the first `size` bytes
    /// of what it names.
    fn import_memory(&self, kind: MemoryHandle, fd: i32, size: u64) -> Result<Arc<dyn Memory>> {
        let _ = (kind, fd, size);
        Err(DeviceError::Unsupported("shared memory".to_owned()))
    }
    /// Creates an image on memory of an opaque handle, which is no longer the caller's on success. Its texels are where this
    /// device would put those of such an image.
    fn import_image(&self, fd: i32, desc: &ImageDesc) -> Result<Arc<dyn DeviceImage>> {
        let _ = (fd, desc);
        Err(DeviceError::Unsupported("shared images".to_owned()))
    }
    /// Creates a semaphore that can be exported ([`Caps::semaphore_exports`]).
    fn create_semaphore(&self, export: SemaphoreHandle) -> Result<Arc<dyn Semaphore>> {
        let _ = export;
        Err(DeviceError::Unsupported("shared semaphores".to_owned()))
    }
    /// Creates a semaphore with the payload of a handle ([`Caps::semaphore_imports`]), which is no longer the caller's on
    /// success.
    fn import_semaphore(&self, kind: SemaphoreHandle, fd: i32) -> Result<Arc<dyn Semaphore>> {
        let _ = (kind, fd);
        Err(DeviceError::Unsupported("shared semaphores".to_owned()))
    }
    /// Allocates memory at addresses that the host has too, aligned to `align` bytes (a power of two).
    fn allocate_shared(&self, size: u64, align: u64, kind: SharedKind) -> Result<Arc<dyn Memory>> {
        let _ = (size, align, kind);
        Err(DeviceError::Unsupported("shared virtual memory".to_owned()))
    }
    /// Makes host memory of the application addressable in place (CL_MEM_USE_HOST_PTR), where alignment allows.
    ///
    /// # Safety
    /// `pointer` must be valid for reads and writes of `size` bytes as long as the memory lives.
    unsafe fn import_host(&self, pointer: NonNull<u8>, size: u64) -> Result<Arc<dyn Memory>>;
    /// Returns memory of the host, at any address, as memory of the device for operations that read or write it, if the device
    /// reaches all memory of the host. Whoever records the operations vouches for the memory until they have run.
    fn host_memory(&self, address: usize, size: u64) -> Option<Arc<dyn Memory>> {
        let _ = (address, size);
        None
    }
    /// Creates memory of `size` bytes (a multiple of 64 KiB) at an address of the driver's choice, or at that of `like`,
    /// which has the same size and kind. Only memory of [`ReplayKind::Whole`] can be used before [`Device::back`].
    fn place(
        &self,
        size: u64,
        kind: ReplayKind,
        like: Option<&Replay>,
    ) -> Result<(Arc<dyn Memory>, Replay)> {
        let _ = (size, like);
        Err(DeviceError::Unsupported(format!("memory by {kind:?}")))
    }
    /// Binds memory to the addresses of a [`Device::place`]: the device's, or with
    /// [`ReplayKind::Host`] the host's at `host`.
    ///
    /// # Safety
    /// `host` must be valid for reads and writes of the memory's size as long as what is returned lives.
    unsafe fn back(
        &self,
        placed: &Arc<dyn Memory>,
        host: Option<NonNull<u8>>,
    ) -> Result<Arc<dyn Memory>> {
        let _ = (placed, host);
        Err(DeviceError::Unsupported("memory placed before".to_owned()))
    }
    /// Returns a part of such memory, as memory of its own that keeps the whole.
    fn part(&self, whole: &Arc<dyn Memory>, offset: u64, size: u64) -> Result<Arc<dyn Memory>> {
        let _ = (whole, offset, size);
        Err(DeviceError::Unsupported("parts of memory".to_owned()))
    }
    /// Returns the formats of images. Empty: no images.
    fn image_formats(&self) -> &[Support] {
        &[]
    }
    /// Creates an image, contents undefined. The format is one of those for the geometry (not `ImageDim::Buffer`).
    fn create_image(&self, desc: &ImageDesc) -> Result<Arc<dyn DeviceImage>> {
        Err(DeviceError::Unsupported(format!("{:?}", desc.dim)))
    }
    /// Returns the same texels with another format of the same size: sRGB or not, depth or R.
    fn alias_image(
        &self,
        image: &Arc<dyn DeviceImage>,
        format: PixelFormat,
    ) -> Result<Arc<dyn DeviceImage>> {
        let _ = image;
        Err(DeviceError::Unsupported(format!("{format:?}")))
    }
    /// Creates an image of `ImageDim::Buffer` over memory, which it keeps alive.
    fn texel_buffer(&self, slice: &Slice, format: PixelFormat) -> Result<Arc<dyn DeviceImage>> {
        let _ = slice;
        Err(DeviceError::Unsupported(format!("{format:?}")))
    }
    /// Returns the processors that the device runs on, if it can be partitioned by them; otherwise
    /// none.
    fn processors(&self) -> &[Processor] {
        &[]
    }
    /// Returns a sub-device of these processors. Code that was loaded here is valid for it, and
    /// both have the same memory: each may use allocations of the other.
    fn sub_device(&self, numbers: &[u32]) -> Result<Arc<dyn Device>> {
        Err(DeviceError::Unsupported(format!(
            "a part of processors {numbers:?}"
        )))
    }
    /// Loads a lowered kernel, in the form that its target has.
    fn load(&self, code: MachineCode<'_>, interface: &KernelInterface) -> Result<Arc<dyn Code>>;
    /// Creates a stream.
    fn create_stream(&self, desc: StreamDesc) -> Result<Box<dyn Stream>>;
    /// Returns a stream as by default that has no work: one that was kept, or a new one.
    fn spare_stream(&self) -> Result<Box<dyn Stream>> {
        self.create_stream(StreamDesc::default())
    }
    /// Keeps a stream without work for the next [`Device::spare_stream`], if the device wants to.
    fn keep_stream(&self, stream: Box<dyn Stream>) {
        drop(stream);
    }
    /// Returns the device time and the host's CLOCK_MONOTONIC time of the same moment, in
    /// nanoseconds (clGetDeviceAndHostTimer).
    fn timestamps(&self) -> Result<(u64, u64)>;
    /// Returns the contents of the driver's pipeline cache, to be stored on disk.
    fn pipeline_cache(&self) -> Vec<u8>;
    /// Loads an earlier pipeline cache into the driver. Ignored when it does not fit.
    fn load_pipeline_cache(&self, data: &[u8]);
}

/// A list of resource uses, as operations carry them.
pub type Uses = SmallVec<[Use; 8]>;

/// Returns every usable device of the machine, the processor last. Where only that is `wanted` (as
/// `cpu`) Vulkan is not loaded.
pub fn enumerate(wanted: &[String]) -> Vec<Arc<dyn Device>> {
    let only_cpu = !wanted.is_empty() && wanted.iter().all(|word| word.eq_ignore_ascii_case("cpu"));
    let mut devices = if only_cpu {
        Vec::new()
    } else {
        vulkan::enumerate()
    };
    devices.push(cpu::device());
    devices
}

/// Returns true for Vulkan in software: the processor is a better device without it.
pub fn is_software_vulkan(device: &dyn Device) -> bool {
    device.caps().kind == caps::DeviceKind::Cpu && !device.target().native
}
