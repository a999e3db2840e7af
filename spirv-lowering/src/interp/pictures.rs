//! Images whose texels are memory of the run, four words each, in order. Their contents are
//! compared like any memory, unknown bits included.

use crate::interface::ImageDim;
use crate::ir::op::ImageProperty;

/// Bytes of a texel.
pub const TEXEL_BYTES: u32 = 16;

/// An image of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Picture {
    /// The address of the texels in global memory.
    pub at: u64,
    /// Its geometry.
    pub dim: ImageDim,
    /// The texels along each coordinate; layers follow the last coordinate in use.
    pub size: [u32; 3],
}

impl Picture {
    /// Returns the address of a texel, or `None` outside of the image.
    pub fn address(&self, at: [u32; 3]) -> Option<u64> {
        let counted = at.iter().zip(self.size).take(self.dim.coordinates());
        let mut index = 0;
        for (&at, size) in counted.rev() {
            if at >= size {
                return None;
            }
            index = index * u64::from(size) + u64::from(at);
        }
        Some(self.at + index * u64::from(TEXEL_BYTES))
    }

    /// Returns a property of the image that a kernel can query.
    pub fn property(&self, property: ImageProperty) -> u32 {
        use ImageDim::{D1Array, D2Array, D2, D3};
        let [width, second, third] = self.size;
        match (property, self.dim) {
            (ImageProperty::Width, _) => width,
            (ImageProperty::Height, D2 | D2Array | D3) => second,
            (ImageProperty::Depth, D3) => third,
            (ImageProperty::ArraySize, D1Array) => second,
            (ImageProperty::ArraySize, D2Array) => third,
            (ImageProperty::Height | ImageProperty::Depth | ImageProperty::ArraySize, _) => 1,
            // Nothing goes by the rest here.
            (other, _) => 0x1000 + other.offset(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texels_lie_in_rows_and_layers() {
        let picture = Picture {
            at: 64,
            dim: ImageDim::D2Array,
            size: [4, 3, 2],
        };
        assert_eq!(picture.address([3, 2, 1]), Some(64 + 16 * 23));
        assert_eq!(picture.address([4, 0, 0]), None);
        assert_eq!(picture.property(ImageProperty::ArraySize), 2);
        assert_eq!(picture.property(ImageProperty::Depth), 1);
        let flat = Picture {
            dim: ImageDim::D1,
            ..picture
        };
        // What no coordinate counts of is not looked at.
        assert_eq!(flat.address([3, 77, 77]), Some(64 + 48));
    }
}
