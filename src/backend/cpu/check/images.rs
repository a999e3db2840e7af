//! The images of a launch for the interpreter: those that the code of the kernel would read and write.

use crate::backend::cpu::image::Descriptor;
use crate::backend::cpu::raw;
use crate::backend::cpu::texel::{pumice_texel_load, pumice_texel_store};
use spirv_lowering::interp::{Images, View};

/// Bytes of a texel at most.
const MOST_BYTES: usize = 16;

/// The descriptors of a launch, by binding.
pub struct Bound<'a> {
    descriptors: &'a [Descriptor],
}

impl<'a> Bound<'a> {
    /// Collects the images that descriptors refer to.
    ///
    /// # Safety
    /// They live as long as this, and the launch may read and write them.
    pub unsafe fn new(descriptors: &'a [Descriptor]) -> Self {
        Self { descriptors }
    }

    fn get(&self, binding: u32) -> Option<&'a Descriptor> {
        let found = self.descriptors.get(binding as usize)?;
        (!found.texels.is_null()).then_some(found)
    }

    /// Returns the bytes of a texel, those that there are not zero.
    fn bytes(&self, binding: u32, at: [u32; 3]) -> [u8; MOST_BYTES] {
        let mut bytes = [0; MOST_BYTES];
        if let Some(d) = self.get(binding) {
            let size = (d.pixel as usize).min(MOST_BYTES);
            // SAFETY: the coordinates are those of a texel of the image, which lives.
            unsafe {
                std::ptr::copy_nonoverlapping(place(d, at), bytes.as_mut_ptr(), size);
            }
        }
        bytes
    }
}

/// Returns where a texel is.
fn place(d: &Descriptor, at: [u32; 3]) -> *mut u8 {
    let [_, y, z] = at.map(u64::from);
    let offset = raw::block_offset(d, at[0]) + y * d.row + z * d.slice;
    d.texels.wrapping_add(offset as usize)
}

impl Images for Bound<'_> {
    fn view(&self, binding: u32) -> Option<View> {
        let d = self.get(binding)?;
        let mut stored = [false; 4];
        let channels = usize::from(d.layout.channels).min(4);
        for component in &d.layout.stored[..channels] {
            stored[usize::from(component & 3)] = true;
        }
        Some(View {
            size: d.size,
            coordinates: 1 + u8::from(d.row != 0) + u8::from(d.slice != 0),
            texel: d.pixel,
            stored,
        })
    }

    fn address(&self, binding: u32, at: [u32; 3]) -> u64 {
        self.get(binding).map_or(0, |d| place(d, at) as u64)
    }

    fn load(&mut self, binding: u32, at: [u32; 3]) -> [u32; 4] {
        let mut out = [0; 4];
        if let Some(d) = self.get(binding) {
            let [x, y, z] = at.map(|c| c as i32);
            // SAFETY: the image lives; one lane has one number of each coordinate, and four components.
            unsafe { pumice_texel_load(d, 1, 1, &x, &y, &z, out.as_mut_ptr()) };
        }
        out
    }

    fn store(&mut self, binding: u32, at: [u32; 3], components: [u32; 4]) -> bool {
        let old = self.bytes(binding, at);
        if let Some(d) = self.get(binding) {
            let [x, y, z] = at.map(|c| c as i32);
            // SAFETY: as for the load, and the launch may write the image.
            unsafe { pumice_texel_store(d, 1, 1, &x, &y, &z, components.as_ptr()) };
        }
        self.bytes(binding, at) != old
    }
}
