//! Pools of mapped memory from which commands take short-lived pieces: staging up and down, argument buffers.
//!
//! A piece is free again when the batch that uses it has completed and no host task holds it. Chunks are bumped through
//! and reused whole, so taking a piece is an addition in nearly all cases. A pool has a limit: beyond it whoever wants a piece
//! learns when to come again.

use crate::backend::{self, Memory, Placement, Slice, Timeline};
use crate::cl;
use crate::error::{err, ClResult, OrErr};
use crate::queue::hazards::QueuePosition;
use std::sync::Arc;

/// The limit of a pool that has none.
pub const UNBOUNDED: u64 = u64::MAX;
/// Free chunks that such a pool keeps in all, in bytes.
const KEEP: u64 = 16 << 20;
const ALIGN: u64 = 256;

struct Chunk {
    memory: Arc<dyn Memory>,
    pointer: usize,
    used: u64,
    /// Timeline value after which the device no longer uses it.
    until: u64,
    /// The last host task that uses it.
    seq: u64,
    users: Arc<()>,
}

/// The outcome of a step that needs staging memory: its result, or when the queue has to be where before there may be some.
pub type Staged<T> = ClResult<Result<T, QueuePosition>>;

/// A piece of mapped memory.
pub struct Piece {
    /// The memory it lies in.
    pub memory: Arc<dyn Memory>,
    /// Where it begins.
    pub offset: u64,
    /// The same for the host.
    pub pointer: usize,
    /// Bytes.
    pub size: u64,
    _user: Arc<()>,
}

impl Piece {
    /// Returns the memory as a slice for operations.
    pub fn slice(&self) -> Slice {
        Slice::new(self.memory.clone(), self.offset, self.size)
    }

    /// Writes bytes to the beginning of the suballocation, as many as fit.
    pub fn write(&self, bytes: &[u8]) {
        let count = bytes.len().min(self.size as usize);
        // SAFETY: the piece is mapped, that large, and nobody else's.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.pointer as *mut u8, count);
        }
    }

    /// Returns the device address.
    pub fn address(&self) -> u64 {
        self.memory.address() + self.offset
    }
}

/// A pool.
pub struct Pool {
    placement: Placement,
    least: u64,
    limit: u64,
    chunks: Vec<Chunk>,
    current: usize,
}

impl Pool {
    /// Creates an empty pool that allocates at least `least` bytes at a time, and no more than `limit` in all, but for one chunk;
    /// nothing with a limit of 0.
    pub fn new(placement: Placement, least: u64, limit: u64) -> Self {
        Self {
            placement,
            least,
            limit,
            chunks: Vec::new(),
            current: 0,
        }
    }

    /// Returns true if nothing was ever taken.
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// Takes a piece from a pool without limit, as [`Pool::take`] does.
    pub fn take_any(
        &mut self,
        device: &Arc<dyn backend::Device>,
        size: u64,
        value: u64,
        timeline: &dyn Timeline,
    ) -> ClResult<Piece> {
        let taken = self.take(device, size, value, timeline)?;
        taken.or_else(|_| err(cl::CL_OUT_OF_RESOURCES, "no memory for arguments"))
    }

    /// Takes a piece for the batch with value `value` of a timeline.
    pub fn take(
        &mut self,
        device: &Arc<dyn backend::Device>,
        size: u64,
        value: u64,
        timeline: &dyn Timeline,
    ) -> Staged<Piece> {
        let wanted = size.next_multiple_of(ALIGN);
        let fits = |chunk: &Chunk| chunk.memory.size() - chunk.used >= wanted;
        if !self.chunks.get(self.current).is_some_and(fits) {
            match self.find(device, wanted, timeline.completed().unwrap_or(0))? {
                Ok(found) => self.current = found,
                Err(place) => return Ok(Err(place)),
            }
        }
        let chunk = (self.chunks.get_mut(self.current))
            .or_err(cl::CL_OUT_OF_RESOURCES, "no staging memory")?;
        let offset = chunk.used;
        chunk.used += wanted;
        chunk.until = chunk.until.max(value);
        Ok(Ok(Piece {
            memory: chunk.memory.clone(),
            offset,
            pointer: chunk.pointer + offset as usize,
            size,
            _user: chunk.users.clone(),
        }))
    }

    /// Records the host task that uses a suballocation.
    pub fn set_task(&mut self, piece: &Piece, seq: u64) {
        let same = |chunk: &&mut Chunk| Arc::ptr_eq(&chunk.memory, &piece.memory);
        if let Some(chunk) = self.chunks.iter_mut().find(same) {
            chunk.seq = seq;
        }
    }

    fn find(
        &mut self,
        device: &Arc<dyn backend::Device>,
        wanted: u64,
        completed: u64,
    ) -> Staged<usize> {
        let free = |chunk: &Chunk| chunk.until <= completed && Arc::strong_count(&chunk.users) == 1;
        let most = self.limit.min(KEEP);
        let mut kept = 0;
        self.chunks.retain(|chunk| {
            kept += chunk.memory.size();
            kept <= most || !free(chunk)
        });
        let best = self
            .chunks
            .iter()
            .enumerate()
            .filter(|(_, chunk)| free(chunk) && chunk.memory.size() >= wanted)
            .min_by_key(|(_, chunk)| chunk.memory.size());
        if let Some((index, _)) = best {
            if let Some(chunk) = self.chunks.get_mut(index) {
                chunk.used = 0;
            }
            return Ok(Ok(index));
        }
        // Free ones that are too small give way.
        let size = wanted.max(self.least).next_power_of_two();
        let sum = |chunks: &[Chunk]| chunks.iter().map(|chunk| chunk.memory.size()).sum::<u64>();
        if sum(&self.chunks).saturating_add(size) > self.limit {
            self.chunks.retain(|chunk| !free(chunk));
        }
        let used = sum(&self.chunks);
        if (used > 0 || self.limit == 0) && used.saturating_add(size) > self.limit {
            let oldest = self.chunks.iter().min_by_key(|chunk| chunk.until);
            let place = oldest.map_or_else(QueuePosition::default, |chunk| QueuePosition {
                value: chunk.until,
                host_seq: chunk.seq,
            });
            return Ok(Err(place));
        }
        let memory = device.allocate(size, self.placement)?;
        let pointer =
            (memory.mapped()).or_err(cl::CL_OUT_OF_RESOURCES, "staging memory is not mapped")?;
        let pointer = pointer.as_ptr() as usize;
        self.chunks.push(Chunk {
            memory,
            pointer,
            used: 0,
            until: 0,
            seq: 0,
            users: Arc::new(()),
        });
        Ok(Ok(self.chunks.len() - 1))
    }
}
