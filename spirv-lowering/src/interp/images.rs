//! Images as a run is given them: who runs a kernel stores and converts their texels.

/// An image as a kernel sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct View {
    /// Texels in x, y, z; the layers of an array stand after the last coordinate of a texel.
    pub size: [u32; 3],
    /// Coordinates that count.
    pub coordinates: u8,
    /// Bytes of a texel.
    pub texel: u32,
    /// The components that its format stores.
    pub stored: [bool; 4],
}

impl View {
    /// The coordinates of a texel, 0 for those that do not count. None: there is no such texel.
    pub fn inside(&self, at: [i32; 3]) -> Option<[u32; 3]> {
        let mut inside = [0; 3];
        let counted = inside.iter_mut().zip(at).zip(self.size);
        for ((inside, at), size) in counted.take(self.coordinates.into()) {
            *inside = u32::try_from(at).ok().filter(|&at| at < size)?;
        }
        Some(inside)
    }
}

/// The images of a launch, by binding. Coordinates are those that [`View::inside`] gives.
pub trait Images {
    /// What is bound; None: nothing.
    fn view(&self, binding: u32) -> Option<View>;
    /// The address of a texel: of images that share memory the same.
    fn address(&self, binding: u32, at: [u32; 3]) -> u64;
    /// The components of a texel.
    fn load(&mut self, binding: u32, at: [u32; 3]) -> [u32; 4];
    /// Writes a texel. Whether that changed it.
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
