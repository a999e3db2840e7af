//! A program over the API, as data: memories, queues, and actions that one thread makes one after the other.
//!
//! Places in memory are counted from the start of the memory, whatever names them: a memory object (a buffer, a
//! sub-buffer or an image) or a pointer. [`crate::text`] prints programs, [`crate::parse`] reads them.

use std::ops::Range;

/// How a buffer comes by its contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
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
    /// Shared by host and device.
    Shared,
}

/// The kind of a memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Memory of the application, that devices do not reach.
    Plain,
    /// Memory of the application as shared virtual memory.
    System,
    /// A buffer with memory of its own.
    Buffer(Origin),
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

impl Kind {
    /// Returns true if it has a memory object.
    pub fn is_object(self) -> bool {
        self.is_buffer() || self.pitch().is_some()
    }

    /// Returns true if it has a memory object of type buffer.
    pub fn is_buffer(self) -> bool {
        matches!(
            self,
            Self::Buffer(_) | Self::UseHost(_) | Self::SvmBuffer { .. }
        )
    }

    /// Returns the bytes of a row, of an image.
    pub fn pitch(self) -> Option<usize> {
        match self {
            Self::Image(pitch) => Some(pitch),
            _ => None,
        }
    }

    /// Kernels and fills take its address.
    pub fn has_address(self) -> bool {
        self.is_svm() || matches!(self, Self::Usm(_) | Self::System)
    }

    /// Returns true if it comes from clSVMAlloc.
    pub fn is_svm(self) -> bool {
        matches!(self, Self::Svm { .. } | Self::SvmBuffer { .. })
    }

    /// Returns true if it is unified shared memory.
    pub fn is_usm(self) -> bool {
        matches!(self, Self::Usm(_))
    }

    /// The host uses it without a map.
    pub fn is_open(self) -> bool {
        self.is_fine() || matches!(self, Self::Plain | Self::Usm(Usm::Host | Usm::Shared))
    }

    /// Returns true if concurrent users share it byte by byte.
    pub fn is_fine(self) -> bool {
        matches!(
            self,
            Self::System | Self::Svm { fine: true } | Self::SvmBuffer { fine: true, .. }
        )
    }
}

/// A memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Memory {
    /// The kind.
    pub kind: Kind,
    /// Its size in bytes.
    pub size: usize,
    /// The ranges of its memory objects: first all of it, then sub-buffers. Empty without a memory
    /// object.
    pub views: Vec<Range<usize>>,
    /// Number of the device that unified shared memory belongs to.
    pub device: usize,
    /// Its memory objects are made by an action.
    pub late: bool,
}

/// A queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Queue {
    /// Number of its device in the context.
    pub device: usize,
    /// Without CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE.
    pub in_order: bool,
    /// With CL_QUEUE_PROFILING_ENABLE.
    pub profiling: bool,
    /// Set if an action creates it.
    pub late: bool,
}

/// A command buffer, which an action creates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recording {
    /// Numbers of its queues, each once.
    pub queues: Vec<usize>,
    /// With CL_COMMAND_BUFFER_SIMULTANEOUS_USE_KHR.
    pub simultaneous: bool,
    /// With CL_COMMAND_BUFFER_MUTABLE_KHR.
    pub mutable: bool,
    /// A copy of this command buffer (clRemapCommandBufferKHR), which keeps the order of its commands: each goes to the queue of
    /// its queue's number, or to the only one.
    pub from: Option<usize>,
}

/// How a kernel does its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Manner {
    /// Prints the value to add and the first word that it writes.
    pub prints: bool,
    /// Leaves its writes and lines to a child kernel.
    pub enqueues: bool,
}

/// A wrong call for a command buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Misuse {
    /// An enqueue and an update before it is finalized.
    Unfinalized,
    /// A command that waits for a sync point which does not exist.
    Point,
    /// A command, and another end of the recording, after it is finalized.
    Finalized,
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

/// The operands of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operand {
    /// A memory object.
    Object(Side),
    /// A pointer.
    Pointer(Place),
    /// A number that the kernel makes a pointer of.
    Number(Place),
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

/// Where the actions that follow are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Thread {
    /// In a new thread, which ends after them.
    Fresh,
    /// In the destructor of a thread-local variable of a thread that ends.
    Local,
    /// In the destructor of a key of a thread that ends.
    Key,
}

/// The work of an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// clEnqueueReadBuffer, clEnqueueReadBufferRect, clEnqueueReadImage: the object, where to, rows (first: the object's).
    Read(Side, Place, Shape),
    /// clEnqueueWriteBuffer, clEnqueueWriteBufferRect, clEnqueueWriteImage: the object, where from, rows.
    Write(Side, Place, Shape),
    /// The copies between memory objects: source, destination, rows.
    Copy(Side, Side, Shape),
    /// clEnqueueFillBuffer, clEnqueueFillImage: bytes and pattern.
    Fill(Side, usize, Vec<u8>),
    /// clEnqueueSVMMemcpy (false), clEnqueueMemcpyINTEL (true): destination, source, bytes.
    Memcpy(Place, Place, usize, bool),
    /// clEnqueueSVMMemFill, clEnqueueMemFillINTEL: bytes and pattern.
    MemFill(Place, usize, Vec<u8>),
    /// clEnqueueMapBuffer, clEnqueueMapImage: bytes.
    Map(Side, usize, MapHow),
    /// clEnqueueSVMMap: bytes.
    SvmMap(Place, usize, MapHow),
    /// clEnqueueUnmapMemObject, clEnqueueSVMUnmap of what that action mapped.
    Unmap(usize),
    /// A kernel: `dst[i] = src[i] * FACTOR + add`, after so many turns of a loop.
    Kernel {
        /// Where to.
        dst: Operand,
        /// Where from.
        src: Operand,
        /// Work-items.
        words: usize,
        /// The value to add.
        add: u32,
        /// Turns of the loop.
        spins: usize,
        /// How.
        manner: Manner,
    },
    /// clEnqueueMarkerWithWaitList.
    Marker,
    /// clEnqueueBarrierWithWaitList.
    Barrier,
    /// clEnqueueMigrateMemObjects, clEnqueueSVMMigrateMem, clEnqueueMigrateMemINTEL: to the host?
    Migrate(usize, bool),
    /// clEnqueueSVMFree.
    Free(usize),
    /// The late memory objects of a memory are made.
    Create(usize),
    /// The memory objects of a memory are released.
    Release(usize),
    /// The late queue with this number is made.
    NewQueue(usize),
    /// This queue is released.
    EndQueue(usize),
    /// A user event that another thread sets after so many microseconds.
    Gate(u64),
    /// The same, set to an error: what waits for it fails.
    Refuse(u64),
    /// A gate: a user event that the program sets later.
    Hold,
    /// A gate: a kernel that waits for a flag. If true, the device runs nothing beside it.
    GateKernel(bool),
    /// A gate: a native kernel that waits for a flag.
    GateNative,
    /// Checks what must have happened while the gates are closed, and opens the gate of this
    /// action.
    Open(usize),
    /// A kernel whose launch fails, as it needs more memory than the process may have.
    Doomed,
    /// Creates a command buffer, anew or as a copy.
    Begin(usize),
    /// clFinalizeCommandBufferKHR.
    Finalize(usize),
    /// clEnqueueCommandBufferKHR.
    Replay {
        /// The command buffer.
        of: usize,
        /// The queues that it runs on, as many as it was created with.
        queues: Vec<usize>,
        /// The call names no queues: they are those that it was created with.
        own: bool,
    },
    /// clUpdateMutableCommandsKHR: the recorded kernel of that action has other operands and another size from now on.
    Update {
        /// The action that recorded it.
        of: usize,
        /// The copy that it is changed in; none: the command buffer that it was recorded in.
        copy: Option<usize>,
        /// Where to.
        dst: Operand,
        /// Where from.
        src: Operand,
        /// Work-items.
        words: usize,
        /// The value to add.
        add: u32,
    },
    /// Releases a command buffer.
    Discard(usize),
    /// A call for a command buffer that has to fail.
    Misuse(usize, Misuse),
    /// clEnqueueSignalSemaphoresKHR.
    Signal(Vec<usize>),
    /// clEnqueueWaitSemaphoresKHR.
    Await(Vec<usize>),
    /// The actions that follow are made in another thread. The one that made those before ends.
    Thread(Thread),
    /// The host writes bytes, made of a number, through a pointer.
    Store(Place, usize, u32),
    /// The host reads bytes through a pointer and compares them.
    Check(Place, usize),
    /// clFlush of a queue.
    Flush(usize),
    /// clFinish of a queue.
    Finish(usize),
    /// clWaitForEvents for an action.
    Wait(usize),
    /// The host sleeps for so many microseconds.
    Sleep(u64),
}

impl What {
    /// Returns true if it is enqueued or recorded.
    pub fn is_command(&self) -> bool {
        use What::*;
        !matches!(
            self,
            Create(_)
                | Begin(_)
                | Finalize(_)
                | Update { .. }
                | Discard(_)
                | Misuse(..)
                | Release(_)
                | NewQueue(_)
                | EndQueue(_)
                | Gate(_)
                | Refuse(_)
                | Hold
                | Open(_)
                | Thread(_)
                | Store(..)
                | Check(..)
                | Flush(_)
                | Finish(_)
                | Wait(_)
                | Sleep(_)
        )
    }

    /// Returns true if it waits until the program opens it.
    pub fn is_gate(&self) -> bool {
        matches!(self, Self::Hold) || self.is_gate_of_device()
    }

    /// The same, and occupies a device meanwhile.
    pub fn is_gate_of_device(&self) -> bool {
        matches!(self, Self::GateKernel(_) | Self::GateNative)
    }

    /// The call has a flag for it.
    pub fn can_block(&self) -> bool {
        use What::*;
        matches!(
            self,
            Read(..) | Write(..) | Memcpy(..) | Map(..) | SvmMap(..)
        )
    }
}

/// An action with how it is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramAction {
    /// The work.
    pub what: What,
    /// Number of the queue, where it is a command.
    pub queue: usize,
    /// Actions whose events are in the wait list.
    pub waits: Vec<usize>,
    /// The call blocks.
    pub blocking: bool,
    /// The event is wanted even if nobody waits for it.
    pub event: bool,
    /// The event has a callback.
    pub callback: bool,
    /// The command buffer that the command is recorded in, in place of being enqueued. Then it waits for sync points.
    pub recording: Option<usize>,
}

impl ProgramAction {
    /// With nothing special.
    pub fn new(what: What, queue: usize) -> Self {
        Self {
            what,
            queue,
            waits: Vec::new(),
            blocking: false,
            event: false,
            callback: false,
            recording: None,
        }
    }

    /// Returns true if it is enqueued, and has an event.
    pub fn is_command(&self) -> bool {
        self.recording.is_none() && self.what.is_command()
    }

    /// The queues that it is enqueued in.
    pub fn lanes(&self) -> &[usize] {
        match &self.what {
            _ if !self.is_command() => &[],
            What::Replay { queues, .. } => queues,
            _ => std::slice::from_ref(&self.queue),
        }
    }

    /// Creates an action of the host alone.
    pub fn host(what: What) -> Self {
        Self::new(what, 0)
    }
}

/// How host and device share memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    /// Not at all, but by maps.
    Nothing,
    /// In allocations.
    Allocated,
    /// Kernels may follow pointers into any memory.
    Followed,
}

/// A program.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Program {
    /// The seed that it was generated from.
    pub seed: u64,
    /// Set if it holds a driver to all promises ([`crate::gates`]).
    pub strict: bool,
    /// The memories.
    pub memories: Vec<Memory>,
    /// The queues.
    pub queues: Vec<Queue>,
    /// The command buffers.
    pub recordings: Vec<Recording>,
    /// The semaphores: numbers of their devices.
    pub semaphores: Vec<usize>,
    /// The actions.
    pub actions: Vec<ProgramAction>,
}

impl Program {
    /// Somebody waits for the event of this action, or it is wanted anyway.
    pub fn needs_event(&self, index: usize) -> bool {
        let own = &self.actions[index];
        // The queue of a replay may be released.
        let ended = |queue: &usize| {
            let mut before = self.actions[..index].iter();
            before.any(|one| one.what == What::EndQueue(*queue))
        };
        let unseen = matches!(own.what, What::Replay { .. }) && own.lanes().iter().any(ended);
        unseen
            || own.event
            || own.callback
            || self.actions[index + 1..].iter().any(|action| {
                action.recording.is_none() && action.waits.contains(&index)
                    || matches!(action.what, What::Wait(of) if of == index)
            })
    }

    /// An action that comes next fails, or its event does: something in its wait list has failed. Then it has no effect, unless
    /// it is a replay whose own command fails ([`Program::breaks`]).
    pub fn would_fail(&self, action: &ProgramAction) -> bool {
        self.would_fail_at(self.actions.len(), action)
    }

    /// The same of an action behind so many.
    pub fn would_fail_at(&self, at: usize, action: &ProgramAction) -> bool {
        self.fails_by_waits(at, action)
            || self.breaks(action)
            || action.recording.is_none() && matches!(action.what, What::Refuse(_) | What::Doomed)
    }

    /// Something that it waits for fails.
    pub fn fails_by_waits(&self, at: usize, action: &ProgramAction) -> bool {
        let fails = |of: usize| {
            self.actions
                .get(of)
                .is_some_and(|one| self.would_fail_at(of, one))
        };
        action.recording.is_none() && self.dependencies(at, action).any(fails)
    }

    /// Some action is such a one.
    pub fn has(&self, fits: impl Fn(&What) -> bool) -> bool {
        self.actions.iter().any(|action| fits(&action.what))
    }

    /// The action fails.
    pub fn fails(&self, index: usize) -> bool {
        self.would_fail_at(index, &self.actions[index])
    }

    /// How host and device share memory in it.
    pub fn sharing(&self) -> Sharing {
        let number = |operand: &Operand| matches!(operand, Operand::Number(_));
        let follows = |action: &ProgramAction| match &action.what {
            What::Kernel { dst, src, .. } => number(dst) || number(src),
            _ => false,
        };
        let any = |fits: &dyn Fn(Kind) -> bool| self.memories.iter().any(|one| fits(one.kind));
        if any(&|kind| kind == Kind::System) || self.actions.iter().any(follows) {
            Sharing::Followed
        } else if any(&Kind::has_address) || self.has(|what| matches!(what, What::GateKernel(_))) {
            Sharing::Allocated
        } else {
            Sharing::Nothing
        }
    }

    /// The memory, range and flags of a map.
    pub fn mapped(&self, map: usize) -> Option<(usize, Range<usize>, MapHow)> {
        match self.actions.get(map)?.what {
            What::Map(side, size, how) => Some((side.memory, side.at..side.at + size, how)),
            What::SvmMap(place, size, how) => Some((place.memory, place.at..place.at + size, how)),
            _ => None,
        }
    }
}

/// The factor of kernels.
pub const FACTOR: u32 = 1_664_525;

/// The limit of actions: what comes before an action is a set of bits.
pub const MOST: usize = 120;
