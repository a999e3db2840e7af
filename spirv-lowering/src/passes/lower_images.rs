//! Images by handle become images by descriptor.
//!
//! Runs on an inlined function whose parameters are still the kernel's: every image is one of them. Each image argument
//! gets a binding for each way in which it is reached, in the order of the arguments:
//! - *sampled*: what read-only images are read through;
//! - *storage*: what is written through, and what read_write images are read through where the target can load from an
//!   image without knowing its format. Where it cannot, they are read as sampled images. Drivers take what they fetch
//!   from a sampled image for constant and make one fetch of two at the same place; so that a read sees what the
//!   work-item wrote since the one before, each gets coordinates that only it has (a zero is added that is not known
//!   until run time).
//!
//! Where the device filters, each sampler gets a binding after those of the images.
//!
//! Queries and sampler words stay for `lower_args`.

use crate::edit::rewrite::{rewrite, Action, Rewriter};
use crate::error::{LowerError, Result};
use crate::interface::{AccessQualifier, ImageDim, SamplerBinding, SamplerSource};
use crate::ir::entity::{SecondaryMap, Value};
use crate::ir::function::Function;
use crate::ir::module::{Kernel, ParamKind};
use crate::ir::op::{HwVar, ImageSlot, Op, Texel};
use crate::ir::types::Type;
use crate::target::Target;

/// The bindings of an image argument.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Bindings {
    /// As in [`crate::interface::ImageArg::sampled`].
    pub sampled: Option<u32>,
    /// As in [`crate::interface::ImageArg::storage`].
    pub storage: Option<u32>,
}

/// All bindings of a kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Descriptors {
    /// Those of each argument.
    pub args: Vec<Bindings>,
    /// Samplers.
    pub samplers: Vec<SamplerBinding>,
}

/// An image argument while the pass runs.
#[derive(Clone, Copy)]
struct Image {
    /// Number of the argument.
    arg: usize,
    dim: ImageDim,
    read_write: bool,
}

/// What an operation reaches its image through.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DescriptorKind {
    Sampled,
    Storage,
}

/// First shift of the number of a work-group in the third dimension that leaves nothing of it: drivers that cannot load
/// without a format have no more than 65535 there.
const FIRST_SHIFT: u32 = 16;

/// Runs the pass.
pub fn run(func: &mut Function, kernel: &Kernel, target: &Target) -> Result<Descriptors> {
    let mut bindings = vec![Bindings::default(); kernel.params.len()];
    let mut samplers: Vec<SamplerBinding> = Vec::new();
    let Some(entry) = func.entry() else {
        return Ok(Descriptors::default());
    };
    let mut images: SecondaryMap<Value, Option<Image>> = SecondaryMap::new();
    let mut sampler_args: SecondaryMap<Value, Option<u32>> = SecondaryMap::new();
    let mut first = 0;
    for (arg, param) in kernel.params.iter().enumerate() {
        if let (ParamKind::Sampler, Some(&value)) =
            (param.kind, func.blocks[entry].params.get(first))
        {
            sampler_args[value] = Some(arg as u32);
        }
        if let (ParamKind::Image { dim, .. }, Some(&value)) =
            (param.kind, func.blocks[entry].params.get(first))
        {
            images[value] = Some(Image {
                arg,
                dim,
                read_write: param.access == AccessQualifier::ReadWrite,
            });
        }
        first += param.kind.values();
    }
    let kind = |op: Op, image: Image| match op {
        Op::ImageWrite(_) => DescriptorKind::Storage,
        Op::ImageFilter => DescriptorKind::Sampled,
        _ if image.read_write && target.storage_image_read => DescriptorKind::Storage,
        _ => DescriptorKind::Sampled,
    };

    let mut uses = vec![(false, false); kernel.params.len()];
    for &block in &func.layout {
        for &inst in &func.blocks[block].insts {
            let data = &func.insts[inst];
            if matches!(
                data.op,
                Op::ImageRead(_) | Op::ImageWrite(_) | Op::ImageFilter
            ) {
                let image = image_of(&images, data.args.first())?;
                match kind(data.op, image) {
                    DescriptorKind::Sampled => uses[image.arg].0 = true,
                    DescriptorKind::Storage => uses[image.arg].1 = true,
                }
            }
        }
    }
    let mut next = 0;
    let mut binding = |used: bool| {
        used.then(|| {
            next += 1;
            next - 1
        })
    };
    for (slot, (sampled, storage)) in bindings.iter_mut().zip(uses) {
        slot.sampled = binding(sampled);
        slot.storage = binding(storage);
    }

    let mut reads = 0;
    rewrite(func, |r, inst| {
        let data = r.data(inst);
        let texel = match data.op {
            Op::ImageRead(texel) | Op::ImageWrite(texel) => texel,
            Op::ImageFilter => Texel::Float,
            _ => return Ok(Action::Keep),
        };
        let image = image_of(&images, data.args.first())?;
        let kind = kind(data.op, image);
        let binding = match kind {
            DescriptorKind::Sampled => bindings[image.arg].sampled,
            DescriptorKind::Storage => bindings[image.arg].storage,
        };
        let slot = ImageSlot {
            binding: binding.ok_or_else(|| LowerError::internal("an image without binding"))?,
            dim: image.dim,
            texel,
        };
        let mut args = data.args[1..].to_vec();
        if data.op == Op::ImageFilter {
            let source = sampler_of(r.func, &sampler_args, args.remove(0))?;
            let sampler = match samplers.iter().find(|s| s.source == source) {
                Some(sampler) => sampler.binding,
                None => {
                    let binding = next + samplers.len() as u32;
                    samplers.push(SamplerBinding { binding, source });
                    binding
                }
            };
            let op = Op::TexelFilter {
                image: slot,
                sampler,
            };
            let values = r.many(op, args, &[Type::F32; 4]);
            for (&old, new) in data.results.iter().zip(values) {
                r.replace(old, new);
            }
            return Ok(Action::Remove);
        }
        if let Op::ImageWrite(_) = data.op {
            r.inst(Op::TexelStore(slot), args, &[]);
            return Ok(Action::Remove);
        }
        let op = match kind {
            DescriptorKind::Storage => Op::TexelLoad(slot),
            DescriptorKind::Sampled => Op::TexelFetch(slot),
        };
        if image.read_write && kind == DescriptorKind::Sampled {
            args[0] = opaque(r, args[0], reads);
            reads += 1;
        }
        let values = r.many(op, args, &[texel.component(); 4]);
        for (&old, new) in data.results.iter().zip(values) {
            r.replace(old, new);
        }
        Ok(Action::Remove)
    })?;
    Ok(Descriptors {
        args: bindings,
        samplers,
    })
}

/// Where a sampler comes from.
fn sampler_of(
    func: &Function,
    args: &SecondaryMap<Value, Option<u32>>,
    value: Value,
) -> Result<SamplerSource> {
    match (args[value], func.as_const(value)) {
        (Some(arg), _) => Ok(SamplerSource::Arg(arg)),
        (None, Some(word)) => Ok(SamplerSource::Literal(word as u32)),
        _ => Err(LowerError::unsupported(
            "a sampler that is not known before run time",
        )),
    }
}

fn image_of(images: &SecondaryMap<Value, Option<Image>>, value: Option<&Value>) -> Result<Image> {
    value
        .and_then(|&v| images[v])
        .ok_or_else(|| LowerError::unsupported("an image that is not known before run time"))
}

/// The value, plus a zero that the driver does not know to be one. `number`: of the read in the kernel.
fn opaque(r: &mut Rewriter, value: Value, number: u32) -> Value {
    let group = r.op(Op::Hw(HwVar::WorkgroupId(2)), [], Type::I32);
    let shift = FIRST_SHIFT + number % (32 - FIRST_SHIFT);
    let zero = r.with_const(Op::LShr, group, shift.into());
    r.same(Op::IAdd, [value, zero])
}
