//! The operations of a stream, as plain data.

use super::external::SharedResource;
use super::image::{Binding, DeviceImage, ImageRegion};
use super::{Memory, Pipeline};
use std::any::Any;
use std::sync::Arc;

/// A range of a piece of memory.
#[derive(Clone)]
pub struct Slice {
    /// The memory.
    pub memory: Arc<dyn Memory>,
    /// First byte.
    pub offset: u64,
    /// Number of bytes.
    pub size: u64,
}

impl Slice {
    /// Creates a range of a piece of memory.
    pub fn new(memory: Arc<dyn Memory>, offset: u64, size: u64) -> Self {
        Self {
            memory,
            offset,
            size,
        }
    }
}

/// A use of a range of memory by an operation.
#[derive(Clone)]
pub struct Use {
    /// The range.
    pub slice: Slice,
    /// Set if it is written (and perhaps read); otherwise it is only read.
    pub write: bool,
}

/// A region of a buffer-to-buffer copy: `rows` x `slices` pieces of `bytes` each, with pitches in bytes.
/// A plain copy has one row and one slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct BufferCopy {
    pub src_offset: u64,
    pub dst_offset: u64,
    pub bytes: u64,
    pub rows: u64,
    pub slices: u64,
    pub src_row_pitch: u64,
    pub src_slice_pitch: u64,
    pub dst_row_pitch: u64,
    pub dst_slice_pitch: u64,
}

impl BufferCopy {
    /// Creates a plain copy.
    pub fn linear(src_offset: u64, dst_offset: u64, bytes: u64) -> Self {
        Self {
            src_offset,
            dst_offset,
            bytes,
            rows: 1,
            slices: 1,
            src_row_pitch: bytes,
            src_slice_pitch: bytes,
            dst_row_pitch: bytes,
            dst_slice_pitch: bytes,
        }
    }

    /// Returns the bytes that are copied.
    pub fn total(&self) -> u64 {
        self.bytes * self.rows * self.slices
    }

    /// Returns the bytes from the first to the last that is read.
    pub fn src_span(&self) -> u64 {
        self.span(self.src_row_pitch, self.src_slice_pitch)
    }

    /// Returns the bytes from the first to the last that is written.
    pub fn dst_span(&self) -> u64 {
        self.span(self.dst_row_pitch, self.dst_slice_pitch)
    }

    fn span(&self, row_pitch: u64, slice_pitch: u64) -> u64 {
        (self.slices.max(1) - 1) * slice_pitch + (self.rows.max(1) - 1) * row_pitch + self.bytes
    }

    /// Returns the copy back.
    pub fn reversed(&self) -> Self {
        Self {
            src_offset: self.dst_offset,
            dst_offset: self.src_offset,
            src_row_pitch: self.dst_row_pitch,
            src_slice_pitch: self.dst_slice_pitch,
            dst_row_pitch: self.src_row_pitch,
            dst_slice_pitch: self.src_slice_pitch,
            ..*self
        }
    }
}

/// How an operation is ordered against earlier ones of the same stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrderRule {
    /// As if it ran after all earlier ones: the stream places a barrier only where their memory uses conflict.
    InOrder,
    /// Not ordered, except by explicit `Stream::barrier`.
    Unordered,
}

/// A function of the host's that a device calls.
pub trait Call: Send + Sync {
    /// Calls the function, once.
    fn call(&self);
}

/// Operations that were recorded once ([`super::Stream::take_sequence`]) and are run as often as wanted, by any stream of
/// the device, at the same time, too.
pub trait Sequence: Send + Sync {
    /// Returns the sequence as `Any`, for its back end to downcast.
    fn as_any(&self) -> &dyn Any;
    /// Returns it as `Any`, for a batch to keep.
    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
}

/// An operation.
#[allow(missing_docs)]
pub enum Op<'a> {
    /// Runs `groups` work-groups of a specialised kernel.
    Dispatch {
        /// The kernel.
        pipeline: &'a Arc<dyn Pipeline>,
        /// Number of work-groups in each dimension (within the device's limits).
        groups: [u32; 3],
        /// Push constants, `interface.push_size` bytes.
        push: &'a [u8],
        /// Memory it may touch, as far as its arguments tell.
        uses: &'a [Use],
        /// Images and samplers, one for each binding that its interface names.
        bindings: &'a [Binding],
        /// Set if it may access any memory (pointers in memory, SVM), so that it conflicts with
        /// everything.
        touches_anything: bool,
    },
    /// Copies within device memory. Source and destination do not overlap.
    Copy {
        src: &'a Slice,
        dst: &'a Slice,
        /// Offsets count from the start of the slices.
        region: BufferCopy,
    },
    /// Fills with a pattern of 1, 2, 4, ... 128 bytes; offset and size are multiples of it.
    Fill { dst: &'a Slice, pattern: &'a [u8] },
    /// Writes bytes that travel with the batch (at most 64 KiB; any alignment).
    Update { dst: &'a Slice, data: &'a [u8] },
    /// Copies a box of an image to memory, or back.
    CopyTexels {
        image: &'a Arc<dyn DeviceImage>,
        region: ImageRegion,
        /// The offset is a multiple of the pixel size.
        memory: &'a Slice,
        /// Pixels from row to row and rows from slice to slice, or layer to layer, in memory; 0: packed.
        pitches: (u32, u32),
        /// The image is the destination.
        to_image: bool,
    },
    /// Image to image of the same format; both one-dimensional or both not. The regions do not overlap.
    ImageCopy {
        src: &'a Arc<dyn DeviceImage>,
        src_origin: [u32; 3],
        dst: &'a Arc<dyn DeviceImage>,
        dst_origin: [u32; 3],
        size: [u32; 3],
    },
    /// Calls a function of the host's in its turn (devices with [`super::Caps::native_kernels`] alone).
    Call {
        /// The function.
        work: Arc<dyn Call>,
        /// Memory that it may touch.
        uses: &'a [Use],
    },
    /// Takes over memory or an image from others that share it, or hands it over to them.
    Handover {
        /// The memory or image.
        resource: SharedResource<'a>,
        /// Others have used it; otherwise they are about to.
        acquire: bool,
    },
    /// Runs recorded operations once more. They may access any memory.
    Sequence(&'a Arc<dyn Sequence>),
    /// Nothing: only a place to take timestamps at.
    Marker,
    /// Keeps a resource alive until the batch has completed.
    Keep(Arc<dyn std::any::Any + Send + Sync>),
}

impl<'a> Op<'a> {
    /// Returns the copy of a box of an image to packed memory, or back.
    pub fn copy_packed(
        image: &'a Arc<dyn DeviceImage>,
        region: ImageRegion,
        memory: &'a Slice,
        to_image: bool,
    ) -> Self {
        let pitches = (0, 0);
        Self::CopyTexels {
            image,
            region,
            memory,
            pitches,
            to_image,
        }
    }
}
