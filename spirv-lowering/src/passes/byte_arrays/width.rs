//! Chooses the element width of an array whose accesses do not agree.
//!
//! With narrow elements a wide access is several, put together; with wide ones a narrow store loads
//! the element, replaces a part and stores it. Which is cheaper depends on how often each occurs: a
//! buffer that is filled and read by words, with single bytes put into it, is best kept as words.

/// The cost of a memory access, in operations on values.
const MEMORY: u64 = 6;

/// The factor of the cost of 64-bit operations.
const LONG: u64 = 3;

/// The factor of the cost of a loop's body, and the deepest nesting that counts.
const LOOP: u64 = 8;
const DEEPEST: u32 = 4;

/// The costs of a class's accesses with elements of 1, 2, 4 and 8 bytes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Costs([u64; 4]);

impl Costs {
    /// Adds an access of `lanes` values of `size` bytes each at addresses that are multiples of `unit`, in `depth` loops.
    pub fn add(&mut self, store: bool, lanes: u32, size: u32, unit: u32, depth: u32) {
        let often = LOOP.pow(depth.min(DEEPEST)) * u64::from(lanes);
        for (cost, width) in self.0.iter_mut().zip([1, 2, 4, 8]) {
            let piece = unit.min(width).min(size).max(1);
            let pieces = u64::from(size / piece);
            let operation = if width == 8 { LONG } else { 1 };
            let each = match (piece == width, store) {
                (true, _) => MEMORY,
                (false, false) => MEMORY + 2 * operation,
                (false, true) => 2 * MEMORY + 5 * operation,
            };
            let long = if size == 8 { LONG } else { 1 };
            let join = (pieces - 1) * 2 * long;
            *cost = cost.saturating_add((pieces * each + join).saturating_mul(often));
        }
    }

    /// Returns the width in bytes that costs least, the narrower of equals.
    pub fn cheapest(&self) -> u32 {
        let widths = [1, 2, 4, 8];
        let best = self.0.iter().zip(widths).min_by_key(|(&cost, _)| cost);
        best.map_or(1, |(_, width)| width)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_accessed_as_such_stay_bytes() {
        let mut costs = Costs::default();
        costs.add(false, 1, 1, 1, 2);
        costs.add(true, 1, 1, 1, 2);
        // Filled once, as words.
        costs.add(true, 16, 4, 4, 0);
        assert_eq!(costs.cheapest(), 1);
    }

    #[test]
    fn a_buffer_with_single_bytes_put_into_it_is_words() {
        let mut costs = Costs::default();
        // Copied in and out by 64 bits, 64 bytes stored in between, all in one loop.
        costs.add(true, 16, 8, 8, 1);
        costs.add(false, 16, 8, 8, 1);
        costs.add(true, 64, 1, 1, 1);
        assert_eq!(costs.cheapest(), 4);
        // Without the bytes.
        let mut costs = Costs::default();
        costs.add(true, 16, 8, 8, 1);
        costs.add(false, 16, 4, 4, 0);
        assert_eq!(costs.cheapest(), 8);
    }

    #[test]
    fn alignment_limits_the_pieces() {
        let mut costs = Costs::default();
        costs.add(false, 4, 4, 1, 0);
        assert_eq!(costs.cheapest(), 1);
    }
}
