//! Generates image accesses, at the end of a kernel: it reads texels that were written before the
//! launch and its own ones, writes its own, and queries properties.
//!
//! Every seventh seed has these ([`has_these`]). They draw random numbers of their own, so that
//! they do not change the rest of a kernel.

use super::body::Body;
use super::{param, CaseArg, Gen};
use crate::rng::Rng;
use spirv_lowering::interface::{AccessQualifier, AddressQualifier, ImageDim};
use spirv_lowering::interp::TEXEL_BYTES;
use spirv_lowering::ir::entity::Value;
use spirv_lowering::ir::function::{Edge, Terminator};
use spirv_lowering::ir::module::{KernelParam, ParamKind};
use spirv_lowering::ir::op::{Fences, ImageProperty, IntCond, Op, Order, Scope, Texel};
use spirv_lowering::ir::types::Type;

/// The most images of a kernel.
const MOST: usize = 4;
/// The texels along each coordinate of a read-only image: powers of two.
const READ_SIZE: [u32; 3] = [8, 4, 2];

/// Returns true if the kernel of a seed has statements of this file.
pub(super) fn has_these(seed: u64) -> bool {
    seed % 7 == 3
}

/// An image argument.
#[derive(Debug, Clone, Copy)]
pub(super) struct GeneratedImage {
    dim: ImageDim,
    access: AccessQualifier,
    texel: Texel,
    size: [u32; 3],
}

/// Chooses the images of a kernel, of which at least one can be written.
pub(super) fn choose(rng: &mut Rng, items: u32) -> Vec<GeneratedImage> {
    let count = 1 + rng.below(MOST);
    (0..count)
        .map(|i| {
            let dim = rng.pick(&ImageDim::ALL);
            let access = match rng.below(3) {
                0 if i > 0 => AccessQualifier::ReadOnly,
                1 => AccessQualifier::WriteOnly,
                _ => AccessQualifier::ReadWrite,
            };
            let texel = rng.pick(&[Texel::Unsigned, Texel::Signed, Texel::Float]);
            let size = match (access, dim.coordinates()) {
                (AccessQualifier::ReadOnly, 1) => [READ_SIZE[0], 1, 1],
                (AccessQualifier::ReadOnly, 2) => [READ_SIZE[0], READ_SIZE[1], 1],
                (AccessQualifier::ReadOnly, _) => READ_SIZE,
                // A texel for each work-item, and perhaps a few more.
                (_, 1) => [items, 1, 1],
                (_, 2) => [8, items.div_ceil(8), 1],
                _ => [4, 2, items.div_ceil(8)],
            };
            GeneratedImage {
                dim,
                access,
                texel,
                size,
            }
        })
        .collect()
}

/// The parameters, arguments and buffers of a kernel.
type Lists<'l> = (
    &'l mut Vec<KernelParam>,
    &'l mut Vec<CaseArg>,
    &'l mut Vec<Vec<u8>>,
);

/// Adds the images to the parameters, arguments and buffers of a kernel.
pub(super) fn add(
    g: &mut Gen,
    rng: &mut Rng,
    images: &[GeneratedImage],
    (params, args, buffers): Lists,
) {
    // The numbers of the texels do not come out of those of the rest.
    let own = std::mem::replace(&mut g.rng, rng.clone());
    for image in images {
        let &GeneratedImage { dim, size, .. } = image;
        let kind = ParamKind::Image { dim, depth: false };
        params.push(KernelParam {
            access: image.access,
            ..param(kind, AddressQualifier::Global)
        });
        args.push(CaseArg::Image {
            buffer: buffers.len(),
            dim,
            size,
        });
        buffers.push(g.bytes(size.iter().product::<u32>() * TEXEL_BYTES));
    }
    *rng = std::mem::replace(&mut g.rng, own);
}

/// The statements that are being generated.
struct Statements<'b, 'g> {
    body: &'b mut Body<'g>,
    rng: Rng,
    images: Vec<(GeneratedImage, Value)>,
    /// The index of the work-item, and the sum of what has been read, both I32.
    index: Value,
    sum: Value,
}

impl Body<'_> {
    /// Generates statements on images.
    pub(super) fn images(&mut self, rng: Rng, images: &[GeneratedImage]) {
        let Some(index) = self.global_index else {
            return;
        };
        let index = self.op(Op::Trunc, &[index], Type::I32);
        let both = images.iter().copied().zip(self.handles.clone());
        let mut statements = Statements {
            images: both.collect(),
            body: self,
            rng,
            index,
            sum: index,
        };
        for _ in 0..2 + statements.rng.below(7) {
            statements.statement();
        }
        // The first can be written.
        if let Some(&first) = statements.images.first() {
            statements.write(first);
        }
    }
}

impl Statements<'_, '_> {
    fn konst(&mut self, bits: u32) -> Value {
        self.body.konst(Type::I32, bits.into())
    }

    fn op(&mut self, op: Op, args: &[Value]) -> Value {
        self.body.op(op, args, Type::I32)
    }

    fn statement(&mut self) {
        let (image, handle) = self.rng.pick(&self.images.clone());
        match self.rng.below(7) {
            0 => {
                let property = self.rng.pick(&ImageProperty::ALL);
                let value = self.op(Op::ImageQuery(property), &[handle]);
                self.sum = self.op(Op::IAdd, &[self.sum, value]);
            }
            1 => {
                let fences = Fences {
                    image: true,
                    global: false,
                    local: false,
                };
                let fence = Op::Fence {
                    mem: Scope::WorkItem,
                    order: Order::AcqRel,
                    fences,
                };
                self.body.func.append(self.body.block, fence, [], &[]);
            }
            2 => self.repeated((image, handle)),
            3 => self.perhaps((image, handle)),
            _ => self.access((image, handle)),
        }
    }

    /// Generates a read or a write.
    fn access(&mut self, (image, handle): (GeneratedImage, Value)) {
        match image.access {
            AccessQualifier::ReadOnly => {
                let by = 1 + self.rng.below(9) as u32;
                let by = self.konst(by);
                let place = self.op(Op::IMul, &[self.index, by]);
                self.read_at((image, handle), place);
            }
            AccessQualifier::ReadWrite if self.rng.one_in(2) => {
                let at = self.own(&image);
                self.read((image, handle), at);
            }
            _ => self.write((image, handle)),
        }
    }

    /// Returns the coordinates of the work-item's own texel.
    fn own(&mut self, image: &GeneratedImage) -> [Value; 3] {
        let mut rest = self.index;
        let count = image.dim.coordinates();
        [0, 1, 2].map(|i| {
            if i >= count {
                // Does not count.
                return self.sum;
            }
            let size = self.konst(image.size[i]);
            let at = match i + 1 == count {
                true => rest,
                false => self.op(Op::URem, &[rest, size]),
            };
            rest = self.op(Op::UDiv, &[rest, size]);
            at
        })
    }

    /// Reads a texel of a read-only image, at coordinates from the bits of a number.
    fn read_at(&mut self, (image, handle): (GeneratedImage, Value), place: Value) {
        let mut rest = place;
        let at = image.size.map(|size| {
            let mask = self.konst(size - 1);
            let at = self.op(Op::And, &[rest, mask]);
            let by = self.konst(size.trailing_zeros());
            rest = self.op(Op::LShr, &[rest, by]);
            at
        });
        self.read((image, handle), at);
    }

    fn read(&mut self, (image, handle): (GeneratedImage, Value), at: [Value; 3]) {
        let [x, y, z] = at;
        let ty = image.texel.component();
        let inst = self.body.func.append(
            self.body.block,
            Op::ImageRead(image.texel),
            [handle, x, y, z],
            &[ty; 4],
        );
        let components = self.body.func.insts[inst].results.clone();
        for component in components {
            let bits = match image.texel {
                Texel::Float => self.op(Op::Bitcast, &[component]),
                _ => component,
            };
            let op = self.rng.pick(&[Op::IAdd, Op::Xor, Op::IMul, Op::Or]);
            self.sum = self.op(op, &[self.sum, bits]);
        }
    }

    fn write(&mut self, (image, handle): (GeneratedImage, Value)) {
        let at = self.own(&image);
        let components = [0, 1, 2, 3].map(|i| {
            let by = self.konst(i * 0x0101_0101);
            let bits = self.op(Op::Xor, &[self.sum, by]);
            match image.texel {
                Texel::Float => self.body.op(Op::Bitcast, &[bits], Type::F32),
                _ => bits,
            }
        });
        let operands = [handle].into_iter().chain(at).chain(components);
        let op = Op::ImageWrite(image.texel);
        self.body.func.append(self.body.block, op, operands, &[]);
    }

    /// Generates a loop around an access.
    fn repeated(&mut self, image: (GeneratedImage, Value)) {
        let func = &mut self.body.func;
        let (header, inside, after) = (func.add_block(), func.add_block(), func.add_block());
        let counter = func.add_param(header, Type::I32);
        let sum = func.add_param(header, Type::I32);
        let zero = self.konst(0);
        let edge = |block, args: &[Value]| Edge::with(block, args.iter().copied());
        let before = self.body.block;
        self.body.func.blocks[before].term = Terminator::Jump(edge(header, &[zero, self.sum]));
        self.body.block = header;
        let count = 1 + self.rng.below(5) as u32;
        let count = self.konst(count);
        let go = Op::ICmp(IntCond::Ult);
        let go = self.body.op(go, &[counter, count], Type::Bool);
        self.body.func.blocks[header].term =
            Terminator::Branch(go, Edge::new(inside), Edge::new(after));
        self.body.block = inside;
        self.sum = sum;
        if image.0.access == AccessQualifier::ReadOnly {
            let place = self.op(Op::IAdd, &[self.index, counter]);
            self.read_at(image, place);
        } else {
            self.access(image);
        }
        let one = self.konst(1);
        let next = self.op(Op::IAdd, &[counter, one]);
        let last = self.body.block;
        self.body.func.blocks[last].term = Terminator::Jump(edge(header, &[next, self.sum]));
        self.body.block = after;
        self.sum = sum;
    }

    /// Generates an access of some of the work-items.
    fn perhaps(&mut self, image: (GeneratedImage, Value)) {
        let func = &mut self.body.func;
        let (yes, done) = (func.add_block(), func.add_block());
        let sum = func.add_param(done, Type::I32);
        let bit = self.rng.below(4);
        let mask = self.konst(1 << bit);
        let bit = self.op(Op::And, &[self.index, mask]);
        let go = Op::ICmp(IntCond::Ne);
        let zero = self.konst(0);
        let go = self.body.op(go, &[bit, zero], Type::Bool);
        let edge = |value| Edge::with(done, [value]);
        let before = self.body.block;
        self.body.func.blocks[before].term = Terminator::Branch(go, Edge::new(yes), edge(self.sum));
        self.body.block = yes;
        self.access(image);
        let last = self.body.block;
        self.body.func.blocks[last].term = Terminator::Jump(edge(self.sum));
        self.body.block = done;
        self.sum = sum;
    }
}
