//! The bytes of a pipe: what the runtime makes, and generated code reads and writes (`builtins/pipe.cl` of the shaders,
//! which says how).
//!
//! | bytes | what |
//! |---|---|
//! | 0 | u32: size of a packet in bytes |
//! | 4 | u32: most packets that it holds |
//! | 8 | u32: number of the last place of the ring |
//! | 128, 256, 384, 512 | u32: packets taken, done, open, and room for more, at the end that is written |
//! | 640, 768, 896, 1024 | u32: the same at the end that is read |
//! | 1152 | the ring: as many places as the power of two from the most packets on |
//!
//! A reservation (`reserve_id_t`) is 64 bits: the number of its first packet in the low half, how many it has in the high
//! half. It is valid where those are at least one and less than 2^31; CLK_NULL_RESERVE_ID, all bits set, is not.

/// The alignment of a pipe's bytes, which suffices for every type of OpenCL C.
pub const ALIGN: u32 = 128;
/// The offset of the packets in bytes. They are aligned for every type of OpenCL C.
pub const HEADER_BYTES: u32 = 1152;
/// The offset of the room left for writing, which is all of it in an empty pipe.
const WRITE_ROOM: usize = 512;
/// The most packets that a pipe may hold: counters of packets are compared by their difference.
pub const MOST_PACKETS: u32 = 1 << 30;

/// Returns the bytes of a pipe, or `None` if it would hold more than [`MOST_PACKETS`].
pub fn size(packet_size: u32, max_packets: u32) -> Option<u64> {
    let places = places(max_packets)?;
    Some(u64::from(HEADER_BYTES) + u64::from(places) * u64::from(packet_size))
}

/// Returns the first bytes of an empty pipe; the rest may be anything. Returns `None` as [`size`]
/// does.
pub fn header(packet_size: u32, max_packets: u32) -> Option<[u8; HEADER_BYTES as usize]> {
    let mut bytes = [0; HEADER_BYTES as usize];
    let words = [packet_size, max_packets, places(max_packets)? - 1];
    for (place, word) in bytes.chunks_exact_mut(4).zip(words) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    if let Some(room) = bytes.get_mut(WRITE_ROOM..WRITE_ROOM + 4) {
        room.copy_from_slice(&max_packets.to_le_bytes());
    }
    Some(bytes)
}

fn places(max_packets: u32) -> Option<u32> {
    (max_packets <= MOST_PACKETS).then(|| max_packets.next_power_of_two())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rings_are_powers_of_two() {
        assert_eq!(size(4, 1), Some(1156));
        assert_eq!(size(8, 5), Some(1152 + 64));
        assert_eq!(size(1, MOST_PACKETS), Some(1152 + (1 << 30)));
        assert_eq!(size(1, MOST_PACKETS + 1), None);
        let header = header(8, 5).unwrap_or([0xff; HEADER_BYTES as usize]);
        assert_eq!(&header[..12], [8, 0, 0, 0, 5, 0, 0, 0, 7, 0, 0, 0]);
        assert_eq!(header[WRITE_ROOM], 5);
        let set = header.iter().filter(|&&byte| byte != 0).count();
        assert_eq!(set, 4);
    }
}
