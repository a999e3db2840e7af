//! The contents of memory objects that a command reads and writes.

use super::Work;
use crate::backend::BufferCopy;
use crate::error::ClResult;
use crate::handle::Ref;
use crate::object::mem::coherence::{Part, Rows, Touch};
use crate::object::mem::map::Mapping;
use crate::object::mem::transfer::volume;
use crate::object::mem::Mem;
use crate::object::memories::MemoryIndex;

/// Returns the rows that a region is read from.
fn source(region: &BufferCopy) -> Part {
    Part::Rows(Rows {
        first: region.src_offset,
        bytes: region.bytes,
        rows: region.rows,
        row_pitch: region.src_row_pitch,
        slices: region.slices,
        slice_pitch: region.src_slice_pitch,
    })
}

/// Returns the rows that a region is written to.
fn destination(region: &BufferCopy) -> Part {
    source(&region.reversed())
}

/// Returns the mapped memory.
fn mapped(mapping: &Mapping) -> Part {
    match &mapping.image {
        Some(image) => Part::Box(image.at),
        None => {
            let first = mapping.offset as u64;
            Part::Bytes(first..first + mapping.size as u64)
        }
    }
}

/// A function that takes a part of a memory object and a use of it.
type Each<'a> = dyn FnMut(&Ref<Mem>, &Part, Touch) -> ClResult + 'a;

impl Work {
    /// Calls `each` with the parts of memory objects that must be in the memory of the command's
    /// device, and with the command's use of them. Stops at an error.
    pub fn contents(&self, mut each: impl FnMut(&Ref<Mem>, &Part, Touch) -> ClResult) -> ClResult {
        let packed = |image: &Ref<Mem>, size, offset: u64| -> ClResult<Part> {
            let total = volume(size, image.image()?.element());
            Ok(Part::Bytes(offset..offset + total))
        };
        let transferred = |write: &bool| match write {
            false => Touch::Read,
            true => Touch::Overwrite,
        };
        match self {
            Self::Transfer {
                mem, region, write, ..
            } => each(mem, &source(region), transferred(write)),
            Self::Copy { src, dst, region } => {
                each(src, &source(region), Touch::Read)?;
                each(dst, &destination(region), Touch::Overwrite)
            }
            Self::Fill {
                mem, offset, size, ..
            } => each(
                mem,
                &Part::Bytes(*offset..*offset + *size),
                Touch::Overwrite,
            ),
            Self::TransferImage { mem, at, write, .. } => {
                each(mem, &Part::Box(*at), transferred(write))
            }
            Self::FillImage { mem, at, .. } => each(mem, &Part::Box(*at), Touch::Overwrite),
            Self::CopyImage { src, dst, from, to } => {
                each(src, &Part::Box(*from), Touch::Read)?;
                each(dst, &Part::Box(*to), Touch::Overwrite)
            }
            Self::CopyTexels {
                image,
                at,
                buffer,
                offset,
                to_image,
            } => {
                let texels = (image, Part::Box(*at));
                let bytes = (buffer, packed(image, at.size, *offset)?);
                let (src, dst) = match to_image {
                    false => (texels, bytes),
                    true => (bytes, texels),
                };
                each(src.0, &src.1, Touch::Read)?;
                each(dst.0, &dst.1, Touch::Overwrite)
            }
            Self::Map { mem, mapping } if mapping.copies_in() => {
                each(mem, &mapped(mapping), Touch::Read)
            }
            Self::Unmap { mem, mapping } if mapping.copies_out() => {
                each(mem, &mapped(mapping), Touch::Overwrite)
            }
            Self::Migrate {
                parts,
                touch: Some(touch),
            } => (parts.iter())
                .try_for_each(|(mem, range)| each(mem, &Part::Bytes(range.clone()), *touch)),
            Self::Native(kernel) => {
                (kernel.buffers.iter()).try_for_each(|mem| each(mem, &Part::All, Touch::Modify))
            }
            Self::Replay(replay) => (replay.commands.iter())
                .try_for_each(|command| command.work.contents(&mut each as &mut Each<'_>)),
            Self::Launch(launch) => {
                let touch = |writes| if writes { Touch::Modify } else { Touch::Read };
                for (mem, access) in &launch.kernel.buffers {
                    each(mem, &Part::All, touch(access.writes()))?;
                }
                for (mem, access) in &launch.kernel.images {
                    each(mem, &Part::All, touch(access.leads_to_writes()))?;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Makes the contents that the command uses up to date in a memory of the context, before it is
    /// encoded for a device with that memory. Waits for devices where contents must be copied.
    pub fn prepare(&self, memory: MemoryIndex) -> ClResult {
        self.contents(|mem, part, touch| mem.prepare(memory, part, touch))
    }

    /// Returns true if [`Work::prepare`] has nothing to copy and nothing to wait for.
    pub fn is_prepared(&self, memory: MemoryIndex) -> bool {
        let mut prepared = true;
        let looked = self.contents(|mem, part, touch| {
            prepared &= mem.is_prepared(memory, part, touch);
            Ok(())
        });
        // An error is found when it is encoded.
        prepared || looked.is_err()
    }
}
