//! Device queues, device events, and what a launch knows of them: bytes that the runtime makes, and generated code reads and
//! writes (`builtins/enqueue.cl` of the shaders, which has the same layout and says how).
//!
//! A kernel that enqueues writes a *record* into the memory of a queue. The runtime takes the records when the launch has
//! ended, and launches what they say. All numbers are little-endian, all places are bytes.
//!
//! Device and host need not exclude each other in atomic operations on one word, nor see each other's words in the order in
//! which they were written. So what is added to has one side that writes it, and while a kernel runs the runtime believes no
//! more of its records than what has a check.
//!
//! **A queue** ([`queue`]): 0 u32 bytes of the ring less one (a power of two less one); 4 u32 the most bytes of records that
//! may be in it, waiting ones included; 8 u64 address of the ring; 64 u32 *tail*; 128 u32 *head*; 132 u32 bytes of the
//! records that the runtime has taken and not launched. Head and tail count modulo 2^32; only kernels move the tail, only the
//! runtime the head and the last word.
//!
//! **A record** ([`record`]): lies in one piece of the ring; where it does not fit before its end there is padding.
//!
//! **An event** ([`event`]): 64 bytes. A `clk_event_t` is its address, and 0 is none. It is free where kernels have as many
//! references as the runtime has given back.
//!
//! **The events of a device** ([`events`]): 0 u32 how many (a power of two), 64 u32 where the next search for a free one
//! begins, 128 the events.
//!
//! **What a launch knows** ([`state`]), behind [`Implicit::EnqueueState`](crate::interface::Implicit::EnqueueState).

/// The memory of a queue.
pub mod queue {
    /// Bytes of the ring less one.
    pub const LAST: usize = 0;
    /// The most bytes of records.
    pub const LIMIT: usize = 4;
    /// The address of the ring.
    pub const RING: usize = 8;
    /// The offset of the next record.
    pub const TAIL: usize = 64;
    /// The offset of the first record that the runtime has not taken.
    pub const HEAD: usize = 128;
    /// The bytes of taken records that wait.
    pub const WAITING: usize = 132;
    /// The bytes of these fields.
    pub const SIZE: usize = 192;

    /// Returns the bytes of the ring of a queue for `limit` bytes of records. A record of any size
    /// fits beside the padding.
    pub fn ring(limit: u32) -> u32 {
        limit.max(1024).next_power_of_two().saturating_mul(2)
    }

    /// The largest argument of [`ring`].
    pub const MOST: u32 = 1 << 28;
}

/// A record.
pub mod record {
    /// u32: bytes, a multiple of 16.
    pub const SIZE: usize = 0;
    /// u32: one of the kinds below, plus the record's place as head and tail count; written last.
    pub const KIND: usize = 4;
    /// u32: [`check`] of kind and size, and of the number of the launch.
    pub const CHECK: usize = 8;
    /// u32: kernel_enqueue_flags_t.
    pub const FLAGS: usize = 12;
    /// u64: the number of the launch. Padding has none, and its check is that of 0.
    pub const LAUNCH: usize = 16;
    /// u64: [`super::block_number`] of the block.
    pub const BLOCK: usize = 24;
    /// u64 x 9: offset, global size, local size (all 0: not given). Of a capture: the address to write to.
    pub const RANGE: usize = 32;
    /// u64: the event, 0: none.
    pub const EVENT: usize = 104;
    /// u32: events of the wait list.
    pub const WAITS: usize = 112;
    /// u32: bytes captured by the block.
    pub const CAPTURED: usize = 116;
    /// u32: arguments in local memory.
    pub const LOCALS: usize = 120;
    /// u32: dimensions of the ND-range.
    pub const DIMS: usize = 124;
    /// The wait list, 64 bits each; the sizes of local memory, 32 bits each; from a multiple of 16
    /// on the captures.
    pub const BODY: usize = 128;

    /// A kernel.
    pub const KERNEL: u32 = 1;
    /// A marker.
    pub const MARKER: u32 = 2;
    /// Requests that the times of the event are written.
    pub const CAPTURE: u32 = 3;
    /// Padding.
    pub const PADDING: u32 = 4;

    /// Computes a check that these words belong to one record, and none of them to older contents.
    pub fn check(kind: u32, size: u32, launch: u64) -> u32 {
        kind ^ size.wrapping_mul(0x85eb_ca6b)
            ^ (launch as u32).wrapping_mul(0xc2b2_ae35)
            ^ ((launch >> 32) as u32).wrapping_mul(0x27d4_eb2f)
    }

    /// Returns the offset of the captures.
    pub fn captured(waits: usize, locals: usize) -> usize {
        (BODY + 8 * waits + 4 * locals).next_multiple_of(16)
    }
}

/// An event.
pub mod event {
    /// u32: references as kernels count them: with those of the runtime, and those that it has given back.
    pub const REFERENCES: usize = 0;
    /// i32: execution status.
    pub const STATUS: usize = 4;
    /// u32: one of the two below.
    pub const KIND: usize = 8;
    /// u32: references that the runtime has given back, modulo 2^32.
    pub const RELEASED: usize = 12;
    /// u64 x 2: end less start, complete less start, in nanoseconds, once it is complete.
    pub const TIMES: usize = 16;
    /// u64: the queue.
    pub const QUEUE: usize = 32;
    /// Bytes of an event.
    pub const SIZE: usize = 64;

    /// create_user_event
    pub const USER: u32 = 1;
    /// The event of a command.
    pub const COMMAND: u32 = 2;
}

/// The events of a device.
pub mod events {
    /// The number of events.
    pub const COUNT: usize = 0;
    /// The index where the next search begins.
    pub const NEXT: usize = 64;
    /// The first event.
    pub const FIRST: usize = 128;
}

/// The data that a launch passes to kernels which enqueue.
pub mod state {
    /// u64: the default queue, 0: none.
    pub const DEFAULT_QUEUE: usize = 0;
    /// u64: the events.
    pub const EVENTS: usize = 8;
    /// u64: the number of the launch.
    pub const LAUNCH: usize = 16;
    /// u32: the bits below.
    pub const FLAGS: usize = 24;
    /// u32: work-items of a group at most.
    pub const MAX_GROUP: usize = 28;
    /// u32: entries of the table.
    pub const BLOCKS: usize = 32;
    /// Three u32: work-items of a group along each dimension at most.
    pub const MAX_ITEMS: usize = 40;
    /// The table of blocks: u64 number, u32 most work-items of a group, u32 preferred multiple of a
    /// group's size, u32 work-items of a sub-group, u32 unused.
    pub const TABLE: usize = 64;
    /// The bytes of an entry.
    pub const ENTRY: usize = 24;

    /// The program was built with `-g`: errors are precise.
    pub const PRECISE: u32 = 1;
    /// The program was built with `-cl-uniform-work-group-size`.
    pub const UNIFORM: u32 = 2;
}

/// Returns the number that identifies a block in records, from the name of its kernel.
pub fn block_number(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_fit_their_rings() {
        assert_eq!(queue::ring(1), 2048);
        assert_eq!(queue::ring(65536), 131_072);
        assert_eq!(queue::ring(65537), 262_144);
        assert_eq!(record::captured(0, 0), 128);
        assert_eq!(record::captured(1, 1), 144);
        assert_eq!(record::captured(2, 1), 160);
        assert_ne!(block_number("a"), block_number("b"));
    }
}
