//! The parts of a large transfer between a region of rows and packed staging memory.

use crate::backend::BufferCopy;

/// Returns a region with its source packed.
pub(in crate::queue) fn from_packed(region: &BufferCopy) -> BufferCopy {
    BufferCopy {
        src_offset: 0,
        src_row_pitch: region.bytes,
        src_slice_pitch: region.bytes * region.rows,
        ..*region
    }
}

/// Returns a region with its destination packed.
pub(super) fn to_packed(region: &BufferCopy) -> BufferCopy {
    from_packed(&region.reversed()).reversed()
}

/// A region that is cut into parts of a size that is bounded.
pub(in crate::queue) struct Parts {
    region: BufferCopy,
    /// Bytes of a row, rows, and slices of a part at most. Those of a part are all of them, or one of the next.
    bytes: u64,
    rows: u64,
    slices: u64,
}

impl Parts {
    /// Cuts a region into parts of at most `chunk` bytes.
    pub fn new(region: BufferCopy, chunk: u64) -> Self {
        let bytes = region.bytes.min(chunk).max(1);
        let rows = match bytes < region.bytes {
            true => 1,
            false => (chunk / bytes).clamp(1, region.rows.max(1)),
        };
        let slices = match rows < region.rows || bytes < region.bytes {
            true => 1,
            false => (chunk / (bytes * rows)).clamp(1, region.slices.max(1)),
        };
        Self {
            region,
            bytes,
            rows,
            slices,
        }
    }

    fn counts(&self) -> [u64; 3] {
        [
            self.region.bytes.div_ceil(self.bytes),
            self.region.rows.div_ceil(self.rows),
            self.region.slices.div_ceil(self.slices),
        ]
    }

    /// Returns the parts.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = BufferCopy> + '_ {
        let count = self.counts().iter().product::<u64>() as usize;
        (0..count).map(|number| self.part(number))
    }

    fn part(&self, number: usize) -> BufferCopy {
        let [across, down, _] = self.counts();
        let number = number as u64;
        let byte = number % across * self.bytes;
        let row = number / across % down * self.rows;
        let slice = number / (across * down) * self.slices;
        let all = &self.region;
        let at = |rows: u64, slices: u64| byte + row * rows + slice * slices;
        BufferCopy {
            src_offset: all.src_offset + at(all.src_row_pitch, all.src_slice_pitch),
            dst_offset: all.dst_offset + at(all.dst_row_pitch, all.dst_slice_pitch),
            bytes: self.bytes.min(all.bytes - byte),
            rows: self.rows.min(all.rows - row),
            slices: self.slices.min(all.slices - slice),
            ..*all
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every byte is in one part, and no part is larger than it may be.
    #[test]
    fn parts_are_the_whole() {
        for (bytes, rows, slices, chunk) in [
            (1000, 1, 1, 64),
            (10, 7, 3, 64),
            (10, 2, 9, 64),
            (64, 3, 2, 64),
            (65, 3, 2, 64),
            (1, 1, 1, 64),
            (5, 4, 3, 1 << 20),
        ] {
            let region = BufferCopy {
                src_offset: 3,
                dst_offset: 5,
                bytes,
                rows,
                slices,
                src_row_pitch: bytes + 1,
                src_slice_pitch: (bytes + 1) * rows + 2,
                dst_row_pitch: bytes,
                dst_slice_pitch: bytes * rows,
            };
            let parts = Parts::new(region, chunk);
            let mut seen = vec![false; (bytes * rows * slices) as usize];
            for part in parts.iter() {
                assert!(part.bytes * part.rows * part.slices <= chunk);
                for slice in 0..part.slices {
                    for row in 0..part.rows {
                        for byte in 0..part.bytes {
                            let to = part.dst_offset - 5
                                + slice * part.dst_slice_pitch
                                + row * part.dst_row_pitch
                                + byte;
                            let (z, y, x) = (to / (bytes * rows), to / bytes % rows, to % bytes);
                            let from = part.src_offset - 3
                                + slice * part.src_slice_pitch
                                + row * part.src_row_pitch
                                + byte;
                            assert_eq!(
                                from,
                                z * region.src_slice_pitch + y * region.src_row_pitch + x
                            );
                            assert!(!std::mem::replace(&mut seen[to as usize], true));
                        }
                    }
                }
            }
            assert!(seen.iter().all(|seen| *seen));
        }
    }
}
