//! Images: their shape, and where their texels lie in the model of the object that holds them.

use crate::memory::View;
use crate::world::World;
use pumice_tests::create;
use pumice_tests::rng::Rng;
use pumice_tests::sys::*;
use std::ops::Range;
use std::ptr::null_mut;

/// Bytes of a texel, which is one unsigned integer.
pub const TEXEL: usize = 4;

/// A type of image: its number, the names of the kernels that write and read it, whether it has a second and a third
/// coordinate.
type Kind = (cl_mem_object_type, &'static str, &'static str, [bool; 2]);

const KINDS: [Kind; 5] = [
    (CL_MEM_OBJECT_IMAGE1D, "paint_1", "look_1", [false, false]),
    (
        CL_MEM_OBJECT_IMAGE1D_ARRAY,
        "paint_1a",
        "look_1a",
        [true, false],
    ),
    (CL_MEM_OBJECT_IMAGE2D, "paint_2", "look_2", [true, false]),
    (
        CL_MEM_OBJECT_IMAGE2D_ARRAY,
        "paint_2a",
        "look_2a",
        [true, true],
    ),
    (CL_MEM_OBJECT_IMAGE3D, "paint_3", "look_3", [true, true]),
];

/// Kernels that see images.
pub const KERNELS: [&str; 10] = [
    "paint_1", "look_1", "paint_1a", "look_1a", "paint_2", "look_2", "paint_2a", "look_2a",
    "paint_3", "look_3",
];

/// A box of texels.
#[derive(Clone, Copy)]
pub struct Part {
    /// Its first texel.
    pub origin: [usize; 3],
    /// Its size.
    pub size: [usize; 3],
}

impl Part {
    /// How many texels.
    pub fn texels(&self) -> usize {
        self.size.iter().product()
    }
}

/// An image, of its own or over a buffer.
pub struct Picture {
    /// The handle.
    pub mem: cl_mem,
    /// The kernel that writes it.
    pub paint: &'static str,
    /// The kernel that reads it.
    pub look: &'static str,
    kind: cl_mem_object_type,
    size: [usize; 3],
    /// Where its first texel is.
    start: usize,
    /// Bytes from one second, and one third, coordinate to the next.
    steps: [usize; 2],
}

fn description((kind, .., axes): Kind, [width, height, depth]: [usize; 3]) -> cl_image_desc {
    let layers = match kind {
        CL_MEM_OBJECT_IMAGE1D_ARRAY => height,
        _ => depth,
    };
    cl_image_desc {
        image_type: kind,
        image_width: width,
        image_height: if axes[0] { height } else { 0 },
        image_depth: if axes[1] { depth } else { 0 },
        image_array_size: layers,
        image_row_pitch: 0,
        image_slice_pitch: 0,
        num_mip_levels: 0,
        num_samples: 0,
        buffer: null_mut(),
    }
}

const FORMAT: cl_image_format = cl_image_format {
    image_channel_order: CL_R,
    image_channel_data_type: CL_UNSIGNED_INT32,
};

fn shape(kind: Kind, rng: &mut Rng) -> [usize; 3] {
    let [y, z] = kind.3;
    [
        1 + rng.below(60),
        if y { 1 + rng.below(24) } else { 1 },
        if z { 1 + rng.below(6) } else { 1 },
    ]
}

impl Picture {
    /// One with texels of its own, and the bytes that they are at first.
    pub fn own(world: &World, rng: &mut Rng) -> (Self, Vec<u8>) {
        let kind = *rng.pick(&KINDS);
        let size = shape(kind, rng);
        let bytes = rng.bytes(size.iter().product::<usize>() * TEXEL);
        let desc = description(kind, size);
        let mem = create!(clCreateImage(
            world.context,
            CL_MEM_COPY_HOST_PTR,
            &FORMAT,
            &desc,
            bytes.as_ptr().cast_mut().cast()
        ));
        let row = size[0] * TEXEL;
        let picture = Self {
            mem,
            paint: kind.1,
            look: kind.2,
            kind: kind.0,
            size,
            start: 0,
            steps: [row, row * size[1]],
        };
        (picture, bytes)
    }

    /// One over a buffer or a sub-buffer, with gaps between its rows and slices.
    pub fn over(world: &World, view: View, rng: &mut Rng) -> Option<Self> {
        let kind = *rng.pick(&KINDS);
        let size = shape(kind, rng);
        let row = (size[0] + rng.below(3)) * TEXEL;
        let slice = row * (size[1] + rng.below(2));
        let mut desc = description(kind, size);
        desc.image_row_pitch = row;
        let steps = match kind.0 {
            CL_MEM_OBJECT_IMAGE1D_ARRAY => {
                desc.image_slice_pitch = row * (1 + rng.below(2));
                [desc.image_slice_pitch, 0]
            }
            CL_MEM_OBJECT_IMAGE2D_ARRAY | CL_MEM_OBJECT_IMAGE3D => {
                desc.image_slice_pitch = slice;
                [row, slice]
            }
            _ => [row, 0],
        };
        desc.buffer = view.mem;
        let mut picture = Self {
            mem: null_mut(),
            paint: kind.1,
            look: kind.2,
            kind: kind.0,
            size,
            start: view.origin,
            steps,
        };
        if picture.span(picture.all()).end > view.origin + view.size {
            return None;
        }
        picture.mem = create!(clCreateImage(world.context, 0, &FORMAT, &desc, null_mut()));
        Some(picture)
    }

    /// All of it.
    pub fn all(&self) -> Part {
        Part {
            origin: [0; 3],
            size: self.size,
        }
    }

    /// A random box.
    pub fn part(&self, rng: &mut Rng) -> Part {
        let mut part = self.all();
        if rng.percent(80) {
            for axis in 0..3 {
                let range = rng.range(self.size[axis], 1);
                (part.origin[axis], part.size[axis]) = (range.start, range.len());
            }
        }
        part
    }

    /// A box with all of the rows that it has a part of.
    pub fn rows_of(&self, mut part: Part) -> Part {
        (part.origin[0], part.size[0]) = (0, self.size[0]);
        part
    }

    fn rows(&self, part: Part) -> impl Iterator<Item = Range<usize>> + use<'_> {
        let [x, y, z] = part.origin;
        let [width, height, depth] = part.size;
        let all = (z..z + depth).flat_map(move |z| (y..y + height).map(move |y| (y, z)));
        all.map(move |(y, z)| {
            let at = self.start + z * self.steps[1] + y * self.steps[0] + x * TEXEL;
            at..at + width * TEXEL
        })
    }

    /// Where the rows of a mapped box are: behind its pointer, by the pitches given, and in the model.
    pub fn mapped(&self, part: Part, row: usize, slice: usize) -> Vec<(usize, Range<usize>)> {
        let [_, height, depth] = part.size;
        let line = match self.kind {
            CL_MEM_OBJECT_IMAGE1D_ARRAY => slice,
            _ => row,
        };
        let places = (0..depth).flat_map(|z| (0..height).map(move |y| z * slice + y * line));
        places.zip(self.rows(part)).collect()
    }

    /// From the first byte of a box to the last, in the model.
    pub fn span(&self, part: Part) -> Range<usize> {
        let [width, height, depth] = part.size;
        let [x, y, z] = part.origin;
        let start = self.start + z * self.steps[1] + y * self.steps[0] + x * TEXEL;
        let last = (depth - 1) * self.steps[1] + (height - 1) * self.steps[0];
        start..start + last + width * TEXEL
    }

    /// The texels of a box, packed.
    pub fn get(&self, bytes: &[u8], part: Part) -> Vec<u8> {
        self.rows(part)
            .flat_map(|row| &bytes[row])
            .copied()
            .collect()
    }

    /// Packed texels into a box.
    pub fn put(&self, bytes: &mut [u8], part: Part, packed: &[u8]) {
        for (row, texels) in self.rows(part).zip(packed.chunks(part.size[0] * TEXEL)) {
            bytes[row].copy_from_slice(texels);
        }
    }
}
