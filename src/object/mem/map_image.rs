//! Maps of images: where the pointer leads and with which pitches. As for buffers (see `map`), the pointer is to the
//! application's own memory, to the device's if an image over a buffer lies where the host reads it fast, or to a
//! shadow, tightly packed, that belongs to this map alone.

use super::map::{check_unwritten, MappedBox, Mapping};
use super::Mem;
use crate::backend::image::{ImageDim, ImageRegion};
use crate::backend::{Placement, Slice};
use crate::cl::{self, cl_map_flags};
use crate::error::{ClError, ClResult, OrErr};
use crate::object::memories::MemoryIndex;

impl Mem {
    /// Registers a map of a box within the image, for a queue on a device with this memory.
    pub(crate) fn map_image(
        &self,
        index: MemoryIndex,
        flags: cl_map_flags,
        at: ImageRegion,
    ) -> ClResult<Mapping> {
        let image = self.image()?;
        let mut mappings = self.mappings.lock();
        check_unwritten(&mappings, flags, |m| {
            m.image.is_some_and(|other| other.at.overlaps(&at))
        })?;
        let element = image.element();
        let [width, height, depth] = at.size.map(|n| n as usize);
        let slices = image.slice_pitch != 0;
        let within = |base: usize| {
            let (y, z) = image.steps(image.row_pitch, image.slice_pitch);
            let [first_x, first_y, first_z] = at.origin.map(|n| n as usize);
            base.wrapping_add(first_z * z + first_y * y + first_x * element)
        };
        let mut mapped = MappedBox {
            at,
            row_pitch: image.row_pitch,
            slice_pitch: image.slice_pitch,
        };
        let mut mapping = Mapping::new(flags, 0, 0);
        if let Some(base) = self.base(index, &mut mapping)? {
            mapping.pointer = within(base);
        }
        if mapping.pointer == 0 {
            mapped.row_pitch = width * element;
            mapped.slice_pitch = match slices {
                true if image.desc.dim == ImageDim::D1Array => mapped.row_pitch,
                true => mapped.row_pitch * height,
                false => 0,
            };
            let target = self.context.memories.device(index)?;
            let size = (width * height * depth * element) as u64;
            let memory = target
                .backend
                .allocate(size, Placement::HostRead)
                .map_err(|error| ClError::new(cl::CL_MAP_FAILURE, error.to_string()))?;
            let base = memory
                .mapped()
                .or_err(cl::CL_MAP_FAILURE, "no memory to map to")?;
            mapping.pointer = base.as_ptr() as usize;
            mapping.shadow = Some(Slice::new(memory, 0, size));
        }
        let (y, z) = image.steps(mapped.row_pitch, mapped.slice_pitch);
        mapping.size = (depth - 1) * z + (height - 1) * y + width * element;
        mapping.image = Some(mapped);
        self.enter(&mut mappings, &mapping, index, mapping.shadow.clone());
        Ok(mapping)
    }
}
