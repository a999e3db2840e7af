//! The images of a memory object in the memories of its context, and which of them have its newest rows.
//!
//! Contents move between memories by whole rows (see [`Contents`], whose units are rows here, those of one slice or layer
//! after those of the one before): two devices may write halves of one image, and one that reads a few rows does not
//! need all.

use super::coherence::{Contents, Initial, Rows, Touch};
use super::description::extent;
use super::transfer;
use crate::backend::image::ImageRegion;
use crate::backend::{self, ImageDesc};
use crate::cl;
use crate::error::{ensure, ClResult};
use crate::object::memories::{Memories, MemoryIndex, PerMemory};
use std::ops::Range;
use std::sync::Arc;

/// The images of a memory object in the memories of its context. An image made from an image shares them.
pub struct Texels {
    desc: ImageDesc,
    pub(super) images: PerMemory<Arc<dyn backend::DeviceImage>>,
    /// Set if they are memory of others, which one memory of the context has.
    imported: bool,
    /// Where there are several memories.
    contents: Option<Contents>,
}

/// Returns the rows of a box, slice by slice.
fn rows(at: &ImageRegion, height: u32) -> impl Iterator<Item = Rows> {
    let ([_, y, z], [_, rows, slices]) = (at.origin.map(u64::from), at.size.map(u64::from));
    let height = u64::from(height);
    let (first, each, count) = if rows == height {
        (z * height, rows * slices, 1)
    } else {
        (z * height + y, rows, slices)
    };
    (0..count).map(move |slice| {
        let begin = first + slice * height;
        Rows::from(begin..begin + each)
    })
}

/// Returns the boxes that rows of an image of that width and height make up, in their order.
fn boxes(mut range: Range<u64>, width: u32, height: u32) -> Vec<ImageRegion> {
    let mut all = Vec::new();
    let height = u64::from(height.max(1));
    while range.start < range.end {
        let (z, y) = (range.start / height, range.start % height);
        let left = range.end - range.start;
        let (rows, slices) = if y == 0 && left >= height {
            (height, left / height)
        } else {
            (left.min(height - y), 1)
        };
        // Extents of images are 32 bits wide.
        all.push(ImageRegion {
            origin: [0, y as u32, z as u32],
            size: [width, rows as u32, slices as u32],
        });
        range.start += rows * slices;
    }
    all
}

impl Texels {
    /// Returns the images of an object that is in no memory yet. `initial`: its initial contents, packed, where they are kept.
    pub(super) fn new(all: &Memories, desc: ImageDesc, initial: Initial) -> Arc<Self> {
        let [_, height, depth] = extent(&desc).map(u64::from);
        let new = || Contents::new(height * depth, initial);
        Arc::new(Self {
            desc,
            images: PerMemory::new(all),
            imported: false,
            contents: all.are_several().then(new),
        })
    }

    /// Returns images of others: what each memory of the context has.
    pub(super) fn imported(
        desc: ImageDesc,
        images: Vec<Option<Arc<dyn backend::DeviceImage>>>,
    ) -> Arc<Self> {
        Arc::new(Self {
            desc,
            images: images.into_iter().collect(),
            imported: true,
            contents: None,
        })
    }

    /// Returns the image in a memory of the context, made if need be.
    pub(super) fn on(
        &self,
        all: &Memories,
        memory: MemoryIndex,
    ) -> ClResult<&Arc<dyn backend::DeviceImage>> {
        self.images.get_or_make(memory, || {
            ensure!(
                !self.imported,
                cl::CL_INVALID_DEVICE,
                "the device does not share this image"
            );
            Ok(all.device(memory)?.backend.create_image(&self.desc)?)
        })
    }

    /// Returns the work on the rows of a box if this is the work on the box.
    fn touch_of_rows(&self, at: &ImageRegion, touch: Touch) -> Touch {
        match touch {
            Touch::Overwrite if at.size[0] != extent(&self.desc)[0] => Touch::Modify,
            touch => touch,
        }
    }

    /// Returns true if [`Texels::prepare`] has nothing to copy and nothing to wait for.
    pub(super) fn is_prepared(&self, memory: MemoryIndex, at: &ImageRegion, touch: Touch) -> bool {
        let Some(contents) = &self.contents else {
            return true;
        };
        let touch = self.touch_of_rows(at, touch);
        contents.is_prepared(rows(at, extent(&self.desc)[1]), memory, touch)
    }

    /// Makes the rows of a box in a memory the newest ([`Contents::prepare`]). Free in contexts with one memory.
    pub(super) fn prepare(
        &self,
        all: &Memories,
        memory: MemoryIndex,
        at: &ImageRegion,
        touch: Touch,
    ) -> ClResult {
        let Some(contents) = &self.contents else {
            return Ok(());
        };
        let image = self.on(all, memory)?;
        let touch = self.touch_of_rows(at, touch);
        let parts = rows(at, extent(&self.desc)[1]);
        contents.prepare(parts, memory, touch, |range, source, initial| {
            self.migrate(all, memory, image, range, source, initial)
        })
    }

    /// Copies rows to the image in a memory, from one where they are up to date, or else from the
    /// host.
    fn migrate(
        &self,
        all: &Memories,
        memory: MemoryIndex,
        image: &Arc<dyn backend::DeviceImage>,
        range: Range<u64>,
        source: Option<MemoryIndex>,
        initial: &Initial,
    ) -> ClResult {
        let target = all.device(memory)?;
        let [width, height, _] = extent(&self.desc);
        let row = u64::from(width) * self.desc.format.bytes() as u64;
        let mut at = (range.start * row) as usize;
        for part in boxes(range, width, height) {
            if let Some(source) = source {
                if let Some(current) = self.images.get(source)? {
                    let bytes = transfer::image_bytes(all.device(source)?, current, &part)?;
                    transfer::fill_image(target, image, &part, &bytes)?;
                }
            } else if let Initial::Bytes(host) = initial {
                let size = transfer::volume(part.size, self.desc.format.bytes()) as usize;
                let bytes = host.get(at..at + size).unwrap_or_default();
                transfer::fill_image(target, image, &part, bytes)?;
                at += size;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn region(origin: [u32; 3], size: [u32; 3]) -> ImageRegion {
        ImageRegion { origin, size }
    }

    #[test]
    fn rows_of_boxes() {
        let of = |origin, size| {
            let rows = rows(&region(origin, size), 5);
            rows.map(|rows| (rows.first, rows.first + rows.bytes))
                .collect::<Vec<_>>()
        };
        assert_eq!(of([1, 2, 0], [3, 2, 1]), [(2, 4)]);
        assert_eq!(of([0, 0, 1], [9, 5, 2]), [(5, 15)]);
        assert_eq!(of([0, 3, 1], [9, 2, 2]), [(8, 10), (13, 15)]);
    }

    #[test]
    fn boxes_cover_their_rows_once() {
        for (height, slices) in [(1u32, 1u32), (5, 1), (5, 4), (1, 7)] {
            let total = u64::from(height * slices);
            for begin in 0..total {
                for end in begin..=total {
                    let mut next = begin;
                    for part in boxes(begin..end, 3, height) {
                        for rows in rows(&part, height) {
                            assert_eq!(rows.first, next);
                            next += rows.bytes;
                        }
                    }
                    assert_eq!(next, end);
                }
            }
        }
    }
}
