//! A program over the API, as data: memories, queues, and actions that one thread makes one after the other.

use std::ops::Range;

/// What a memory is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Memory of the application.
    Plain,
    /// A buffer, made with these flags and initial contents.
    Buffer(BufferKind),
    /// A buffer over memory of the application, which begins so many bytes behind a page.
    UseHost(usize),
    /// Shared virtual memory.
    Svm {
        /// Fine-grained.
        fine: bool,
    },
    /// Shared virtual memory with a buffer over it.
    SvmBuffer {
        /// Fine-grained.
        fine: bool,
        /// The buffer begins so many bytes behind the allocation.
        lead: usize,
    },
    /// Unified shared memory (cl_intel_unified_shared_memory).
    Usm(Usm),
    /// An image of four bytes a texel, with rows of so many bytes.
    Image(usize),
}

/// How a buffer comes by its contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BufferKind {
    /// By a write.
    Written,
    /// CL_MEM_COPY_HOST_PTR.
    Copied,
    /// CL_MEM_COPY_HOST_PTR | CL_MEM_ALLOC_HOST_PTR.
    CopiedAlloc,
}

/// Types of unified shared memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Usm {
    /// The host's.
    Host,
    /// A device's.
    Device,
    /// Of host and device.
    Shared,
}

impl Kind {
    /// It has a memory object of type buffer.
    pub fn is_buffer(self) -> bool {
        matches!(
            self,
            Self::Buffer(_) | Self::UseHost(_) | Self::SvmBuffer { .. }
        )
    }

    /// Commands on pointers and kernels take its address.
    pub fn has_address(self) -> bool {
        matches!(
            self,
            Self::Svm { .. } | Self::SvmBuffer { .. } | Self::Usm(_)
        )
    }

    /// It is shared virtual memory.
    pub fn is_svm(self) -> bool {
        matches!(self, Self::Svm { .. } | Self::SvmBuffer { .. })
    }

    /// The host uses it without a map.
    pub fn is_open(self) -> bool {
        matches!(
            self,
            Self::Plain
                | Self::Svm { fine: true }
                | Self::SvmBuffer { fine: true, .. }
                | Self::Usm(Usm::Host | Usm::Shared)
        )
    }
}

/// A memory.
#[derive(Debug, Clone)]
pub struct Memory {
    /// What it is made of.
    pub kind: Kind,
    /// Its size in bytes.
    pub size: usize,
    /// What its memory objects cover: first all of it, then sub-buffers.
    pub views: Vec<Range<usize>>,
}

impl Memory {
    /// The views of one without sub-buffers.
    pub fn whole(size: usize) -> Vec<Range<usize>> {
        std::iter::once(0..size).collect()
    }
}

/// A queue.
#[derive(Debug, Clone, Copy)]
pub struct Queue {
    /// Number of its device in the context.
    pub device: usize,
    /// Without CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE.
    pub in_order: bool,
    /// With CL_QUEUE_PROFILING_ENABLE.
    pub profiling: bool,
}

/// A place that a command names by a memory object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Side {
    /// Which memory.
    pub memory: usize,
    /// Which of its memory objects.
    pub view: usize,
    /// Byte, from the start of the memory.
    pub at: usize,
}

/// A place that an action names by a pointer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Which memory.
    pub memory: usize,
    /// Byte, from the start of the memory.
    pub at: usize,
    /// The action that mapped it: the pointer is that of the map. None: the memory's own.
    pub map: Option<usize>,
}

/// Rows of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Bytes of a row.
    pub row: usize,
    /// Number of rows.
    pub rows: usize,
    /// From one row to the next, on the first side.
    pub first: usize,
    /// The same, on the second side.
    pub second: usize,
}

impl Shape {
    /// One row.
    pub fn line(bytes: usize) -> Self {
        Self {
            row: bytes,
            rows: 1,
            first: bytes,
            second: bytes,
        }
    }

    /// From the first byte to behind the last on a side with this pitch.
    pub fn span(&self, pitch: usize) -> usize {
        (self.rows - 1) * pitch + self.row
    }
}

/// What a kernel takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operand {
    /// A memory object.
    Object(Side),
    /// An address.
    Address(Place),
}

/// An action.
#[derive(Debug, Clone, PartialEq)]
pub enum What {
    /// clEnqueueReadBuffer, clEnqueueReadBufferRect: the object, where to, rows (first side: the object's).
    Read(Side, Place, Shape),
    /// clEnqueueWriteBuffer, clEnqueueWriteBufferRect: the object, where from, rows.
    Write(Side, Place, Shape),
    /// clEnqueueCopyBuffer, clEnqueueCopyBufferRect: source, destination, rows.
    Copy(Side, Side, Shape),
    /// clEnqueueFillBuffer: bytes and pattern.
    Fill(Side, usize, Vec<u8>),
    /// clEnqueueSVMMemcpy, clEnqueueMemcpyINTEL: destination, source, bytes.
    Memcpy(Place, Place, usize),
    /// clEnqueueSVMMemFill, clEnqueueMemFillINTEL.
    MemFill(Place, usize, Vec<u8>),
    /// clEnqueueMapBuffer, or clEnqueueSVMMap where `svm`: bytes and flags.
    Map {
        #[allow(missing_docs)]
        side: Side,
        #[allow(missing_docs)]
        size: usize,
        #[allow(missing_docs)]
        how: MapHow,
        #[allow(missing_docs)]
        svm: bool,
    },
    /// clEnqueueUnmapMemObject, clEnqueueSVMUnmap of what that action mapped.
    Unmap(usize),
    /// A kernel: `dst[i] = src[i] * FACTOR + add` for so many words, after so many turns of a loop.
    Kernel {
        #[allow(missing_docs)]
        dst: Operand,
        #[allow(missing_docs)]
        src: Operand,
        #[allow(missing_docs)]
        words: usize,
        #[allow(missing_docs)]
        add: u32,
        #[allow(missing_docs)]
        spins: usize,
    },
    /// clEnqueueReadImage of whole rows: first byte, bytes.
    ReadImage(Side, Place, usize),
    /// clEnqueueWriteImage of whole rows.
    WriteImage(Side, Place, usize),
    /// clEnqueueCopyImageToBuffer of whole rows: image, buffer, bytes.
    ImageToBuffer(Side, Side, usize),
    /// clEnqueueCopyBufferToImage of whole rows: buffer, image, bytes.
    BufferToImage(Side, Side, usize),
    /// clEnqueueFillImage of whole rows with one byte everywhere.
    FillImage(Side, usize, u8),
    /// clEnqueueMarkerWithWaitList.
    Marker,
    /// clEnqueueBarrierWithWaitList.
    Barrier,
    /// clEnqueueMigrateMemObjects, clEnqueueSVMMigrateMem.
    Migrate(usize),
    /// clEnqueueSVMFree.
    Free(usize),
    /// clReleaseMemObject, while commands may use it.
    Release(usize),
    /// A user event that another thread sets after so many microseconds.
    Gate(u64),
    /// The host writes bytes through a pointer.
    Store(Place, usize, u8),
    /// The host reads bytes through a pointer and compares them.
    Check(Place, usize),
    /// clFlush.
    Flush,
    /// clFinish.
    Finish,
    /// clWaitForEvents for an action.
    Wait(usize),
    /// The host sleeps for so many microseconds.
    Sleep(u64),
    /// From here on the queue with this number exists.
    NewQueue,
}

/// Flags of a map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MapHow {
    /// CL_MAP_READ.
    Read,
    /// CL_MAP_READ | CL_MAP_WRITE.
    Write,
    /// CL_MAP_WRITE_INVALIDATE_REGION.
    Invalidate,
}

/// An action with how it is made.
#[derive(Debug, Clone, PartialEq)]
pub struct Action {
    /// What.
    pub what: What,
    /// Number of the queue.
    pub queue: usize,
    /// Actions whose events are in the wait list.
    pub waits: Vec<usize>,
    /// The call blocks, where it can.
    pub blocking: bool,
    /// The event is wanted even if nobody waits for it.
    pub event: bool,
    /// The event has a callback.
    pub callback: bool,
}

impl Action {
    /// Of a queue, with nothing special.
    pub fn new(what: What, queue: usize) -> Self {
        Self {
            what,
            queue,
            waits: Vec::new(),
            blocking: false,
            event: false,
            callback: false,
        }
    }

    /// It is a command: it has an event.
    pub fn is_command(&self) -> bool {
        !self.is_host() && !matches!(self.what, What::Gate(_))
    }

    /// The host alone makes it.
    pub fn is_host(&self) -> bool {
        matches!(
            self.what,
            What::Store(..)
                | What::Check(..)
                | What::Flush
                | What::Finish
                | What::Wait(_)
                | What::Sleep(_)
                | What::NewQueue
                | What::Release(_)
        )
    }

    /// Commands that have a flag for it.
    pub fn can_block(&self) -> bool {
        matches!(
            self.what,
            What::Read(..)
                | What::Write(..)
                | What::Memcpy(..)
                | What::Map { .. }
                | What::ReadImage(..)
                | What::WriteImage(..)
        )
    }
}

/// A program.
#[derive(Debug, Clone)]
pub struct Program {
    /// What it was made of.
    pub seed: u64,
    /// The memories.
    pub memories: Vec<Memory>,
    /// The queues.
    pub queues: Vec<Queue>,
    /// So many of them exist from the start.
    pub first_queues: usize,
    /// The actions.
    pub actions: Vec<Action>,
}

/// The factor of kernels.
pub const FACTOR: u32 = 1_664_525;
