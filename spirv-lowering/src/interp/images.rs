//! The interface to images that the caller of the interpreter stores and converts.

/// An image as a kernel sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct View {
    /// Texels in x, y, z; the layers of an array stand after the last coordinate of a texel.
    pub size: [u32; 3],
    /// The number of coordinates in use.
    pub coordinates: u8,
    /// Bytes of a texel.
    pub texel: u32,
    /// Which of the four components the format stores.
    pub stored: [bool; 4],
}

impl View {
    /// Returns the coordinates of a texel, with 0 for those not in use, or `None` outside of the
    /// image.
    pub fn inside(&self, at: [i32; 3]) -> Option<[u32; 3]> {
        let mut inside = [0; 3];
        let counted = inside.iter_mut().zip(at).zip(self.size);
        for ((inside, at), size) in counted.take(self.coordinates.into()) {
            *inside = u32::try_from(at).ok().filter(|&at| at < size)?;
        }
        Some(inside)
    }
}

/// The images of a launch, by binding. Coordinates are those that [`View::inside`] returns.
pub trait Images {
    /// Returns the image at a binding, or `None` if there is none.
    fn view(&self, binding: u32) -> Option<View>;
    /// Returns an address that identifies a texel: equal in images that share memory.
    fn address(&self, binding: u32, at: [u32; 3]) -> u64;
    /// Returns the components of a texel.
    fn load(&mut self, binding: u32, at: [u32; 3]) -> [u32; 4];
    /// Writes a texel. Returns true if that changed it.
    fn store(&mut self, binding: u32, at: [u32; 3], components: [u32; 4]) -> bool;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_coordinates_that_count_are_looked_at() {
        let flat = View {
            size: [4, 3, 1],
            coordinates: 2,
            ..View::default()
        };
        assert_eq!(flat.inside([3, 2, 77]), Some([3, 2, 0]));
        assert_eq!(flat.inside([4, 2, 0]), None);
        assert_eq!(flat.inside([0, -1, 0]), None);
        assert_eq!(flat.inside([i32::MAX, i32::MIN, 0]), None);
    }
}
