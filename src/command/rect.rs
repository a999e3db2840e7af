//! Rectangular regions: pitches, bounds, overlap.

use crate::backend::BufferCopy;
use crate::cl;
use crate::error::{err, ClError, ClResult};

/// One side of a rectangular transfer. Pitches of 0 stand for tightly packed.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs)]
pub struct Side {
    pub origin: [usize; 3],
    pub row_pitch: usize,
    pub slice_pitch: usize,
}

/// A side with its pitches filled in.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs)]
pub struct Placed {
    /// First byte.
    pub offset: u64,
    /// One past the last byte.
    pub end: u64,
    pub row_pitch: u64,
    pub slice_pitch: u64,
}

fn invalid<T>(what: &'static str) -> ClResult<T> {
    err(cl::CL_INVALID_VALUE, what)
}

/// Checks pitches and computes where the region begins and ends.
pub fn place(side: &Side, region: [usize; 3]) -> ClResult<Placed> {
    if region.contains(&0) {
        return invalid("an element of the region is zero");
    }
    let overflow = || ClError::new(cl::CL_INVALID_VALUE, "the region is out of bounds");
    let [width, height, depth] = region.map(|n| n as u64);
    let row_pitch = if side.row_pitch == 0 {
        width
    } else {
        side.row_pitch as u64
    };
    if row_pitch < width {
        return invalid("the row pitch is smaller than a row");
    }
    let plane = height.checked_mul(row_pitch).ok_or_else(overflow)?;
    let slice_pitch = if side.slice_pitch == 0 {
        plane
    } else {
        side.slice_pitch as u64
    };
    if slice_pitch < plane {
        return invalid("the slice pitch is smaller than a slice");
    }
    if slice_pitch % row_pitch != 0 {
        return invalid("the slice pitch is not a multiple of the row pitch");
    }
    let [x, y, z] = side.origin.map(|n| n as u64);
    let offset = (|| {
        z.checked_mul(slice_pitch)?
            .checked_add(y.checked_mul(row_pitch)?)?
            .checked_add(x)
    })()
    .ok_or_else(overflow)?;
    let end = (|| {
        let slices = (depth - 1).checked_mul(slice_pitch)?;
        let rows = (height - 1).checked_mul(row_pitch)?;
        offset
            .checked_add(slices)?
            .checked_add(rows)?
            .checked_add(width)
    })()
    .ok_or_else(overflow)?;
    Ok(Placed {
        offset,
        end,
        row_pitch,
        slice_pitch,
    })
}

/// Returns the region between two sides.
pub fn region(src: &Placed, dst: &Placed, region: [usize; 3]) -> BufferCopy {
    let [bytes, rows, slices] = region.map(|n| n as u64);
    let copy = BufferCopy {
        src_offset: src.offset,
        dst_offset: dst.offset,
        bytes,
        rows,
        slices,
        src_row_pitch: src.row_pitch,
        src_slice_pitch: src.slice_pitch,
        dst_row_pitch: dst.row_pitch,
        dst_slice_pitch: dst.slice_pitch,
    };
    simplify(copy)
}

/// Joins rows and slices that follow each other without a gap on both sides.
pub fn simplify(mut copy: BufferCopy) -> BufferCopy {
    if copy.rows > 1 && copy.src_row_pitch == copy.bytes && copy.dst_row_pitch == copy.bytes {
        copy.bytes *= copy.rows;
        copy.rows = 1;
        copy.src_row_pitch = copy.bytes;
        copy.dst_row_pitch = copy.bytes;
    }
    if copy.rows == 1 && copy.slices > 1 {
        // Slices of one row each are rows.
        copy.rows = copy.slices;
        copy.slices = 1;
        copy.src_row_pitch = copy.src_slice_pitch;
        copy.dst_row_pitch = copy.dst_slice_pitch;
        return simplify(copy);
    }
    if copy.rows == 1 {
        copy.src_row_pitch = copy.bytes;
        copy.dst_row_pitch = copy.bytes;
    }
    if copy.slices == 1 {
        copy.src_slice_pitch = copy.rows * copy.src_row_pitch;
        copy.dst_slice_pitch = copy.rows * copy.dst_row_pitch;
    }
    copy
}

/// Returns true if two regions of the same shape and pitches in the same memory have a byte in
/// common, `src` and `dst` being the offsets of their first bytes.
pub fn overlaps(src: u64, dst: u64, size: [usize; 3], row_pitch: u64, slice_pitch: u64) -> bool {
    let (low, high) = if src <= dst { (src, dst) } else { (dst, src) };
    let distance = high - low;
    let [width, height, depth] = size.map(|n| n as u64);
    // A byte is common where distance = dz * slice_pitch + dy * row_pitch + dx with |dx| < width, |dy| < height,
    // |dz| < depth. Rows and slices do not interleave (the pitches are no smaller than what they hold), so only the
    // nearest multiples can do.
    let reaches = |rest: u64| {
        // rest >= 0 within a plane, or the distance back from the next one.
        let dy = rest / row_pitch;
        let dx = rest % row_pitch;
        (dx < width && dy < height) || (row_pitch - dx < width && dy + 1 < height)
    };
    let dz = distance / slice_pitch;
    let rest = distance % slice_pitch;
    (dz < depth && reaches(rest)) || (dz + 1 < depth && reaches(slice_pitch - rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pitches_and_bounds() {
        let side = Side {
            origin: [1, 2, 3],
            row_pitch: 10,
            slice_pitch: 100,
        };
        let placed = place(&side, [4, 5, 6]).unwrap();
        assert_eq!((placed.offset, placed.end), (321, 321 + 500 + 40 + 4));
        let packed = place(
            &Side {
                origin: [0, 0, 1],
                row_pitch: 0,
                slice_pitch: 0,
            },
            [4, 5, 6],
        )
        .unwrap();
        assert_eq!(
            (packed.row_pitch, packed.slice_pitch, packed.offset),
            (4, 20, 20)
        );
        for (row, slice) in [(3, 0), (10, 40), (10, 55)] {
            assert!(place(
                &Side {
                    origin: [0; 3],
                    row_pitch: row,
                    slice_pitch: slice
                },
                [4, 5, 6]
            )
            .is_err());
        }
        assert!(place(
            &Side {
                origin: [usize::MAX, 1, 1],
                row_pitch: 0,
                slice_pitch: 0
            },
            [4, 5, 6]
        )
        .is_err());
        assert!(place(&side, [4, 0, 6]).is_err());
    }

    #[test]
    fn overlap_agrees_with_enumeration() {
        let (row, slice) = (7u64, 28u64);
        for size in [[3, 2, 2], [7, 1, 1], [2, 4, 1], [5, 3, 2], [7, 4, 2]] {
            let cells = |base: u64| {
                let [w, h, d] = size.map(|n| n as u64);
                let mut all = std::collections::BTreeSet::new();
                for z in 0..d {
                    for y in 0..h {
                        for x in 0..w {
                            all.insert(base + z * slice + y * row + x);
                        }
                    }
                }
                all
            };
            for src in 0..40 {
                for dst in 0..120 {
                    let expected = !cells(src).is_disjoint(&cells(dst));
                    assert_eq!(
                        overlaps(src, dst, size, row, slice),
                        expected,
                        "{size:?} {src} {dst}"
                    );
                }
            }
        }
    }

    #[test]
    fn tight_regions_become_linear() {
        let side = Side {
            origin: [0; 3],
            row_pitch: 0,
            slice_pitch: 0,
        };
        let placed = place(&side, [4, 5, 6]).unwrap();
        assert_eq!(
            region(&placed, &placed, [4, 5, 6]),
            BufferCopy::linear(0, 0, 120)
        );
    }
}
