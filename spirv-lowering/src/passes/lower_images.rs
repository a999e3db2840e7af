//! Lowers images by handle to images by descriptor.
//!
//! Runs on an inlined function whose parameters are still the kernel's: every image is one of them,
//! or one that a block captured. The captures of a block hold the numbers of images
//! ([`Op::ImageNumber`]) at constant offsets, and each that is used is one image more, after the
//! arguments; for samplers they hold the property words. Each image gets a binding for each way in
//! which it is accessed, in that order:
//!
//! - *sampled*: for reads of read-only images;
//! - *storage*: for writes, and for reads of read_write images where the target can load from an
//!   image without knowing its format. Where it cannot, they are read as sampled images. Drivers
//!   take what they fetch from a sampled image for constant and make one fetch of two at the same
//!   place; so that a read sees what the work-item wrote since the one before, each gets distinct
//!   coordinates (an opaque zero is added).
//!
//! Accesses to the bits of texels ([`Texel::Raw`]) have bindings of their own, sampled and storage: the same texels as
//! unsigned integers.
//!
//! Where the device filters, each sampler gets a binding after those of the images.
//!
//! Queries and sampler words stay for `lower_args`.

use crate::analysis::arg_access::{READ, WRITE};
use crate::edit::rewrite::{rewrite, InstEdit, Rewriter};
use crate::error::{LowerError, Result};
use crate::interface::{
    AccessQualifier, ImageBindings, ImageDim, KernelRole, SamplerBinding, SamplerSource,
};
use crate::ir::entity::{SecondaryMap, Value};
use crate::ir::function::Function;
use crate::ir::module::{EntryPoint, ParamKind};
use crate::ir::op::{HwVar, ImageSlot, ImageType, Op, Texel};
use crate::ir::types::Type;
use crate::target::Target;

/// An image that a block captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Captured {
    /// The offset of its number in the captures.
    pub at: u32,
    /// Its type.
    pub ty: ImageType,
    /// The access, as [`READ`] and [`WRITE`].
    pub access: u8,
}

/// All bindings of a kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Descriptors {
    /// The bindings of each argument, then of each captured image.
    pub args: Vec<ImageBindings>,
    /// Images that the block captured.
    pub captured: Vec<Captured>,
    /// Samplers.
    pub samplers: Vec<SamplerBinding>,
}

/// An image while the pass runs.
#[derive(Clone, Copy)]
struct LoweredImage {
    /// The number of the argument; captured images follow.
    arg: usize,
    dim: ImageDim,
    read_write: bool,
}

/// The kind of descriptor through which an operation accesses its image.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DescriptorKind {
    Sampled,
    Storage,
}

/// Returns the binding of an image for accesses through a kind of descriptor.
fn binding_of(
    bindings: &mut ImageBindings,
    kind: DescriptorKind,
    texel: Texel,
) -> &mut Option<u32> {
    match (kind, texel == Texel::Raw) {
        (DescriptorKind::Sampled, false) => &mut bindings.sampled,
        (DescriptorKind::Storage, false) => &mut bindings.storage,
        (DescriptorKind::Sampled, true) => &mut bindings.raw_sampled,
        (DescriptorKind::Storage, true) => &mut bindings.raw_storage,
    }
}

/// The first shift that makes the number of a work-group in the third dimension 0: drivers that
/// cannot load without a format allow at most 65535 there.
const FIRST_SHIFT: u32 = 16;

/// The most definitions that are followed: in unreachable blocks they may be cyclic.
const MOST_STEPS: usize = 64;

/// Runs the pass.
pub fn run(func: &mut Function, kernel: &EntryPoint, target: &Target) -> Result<Descriptors> {
    let mut samplers: Vec<SamplerBinding> = Vec::new();
    let Some(entry) = func.entry() else {
        return Ok(Descriptors::default());
    };
    let mut images: SecondaryMap<Value, Option<LoweredImage>> = SecondaryMap::new();
    let mut sampler_args: SecondaryMap<Value, Option<u32>> = SecondaryMap::new();
    let mut handles: Vec<Option<Value>> = Vec::with_capacity(kernel.params.len());
    let mut first = 0;
    for (arg, param) in kernel.params.iter().enumerate() {
        handles.push(func.blocks[entry].params.get(first).copied());
        if let (ParamKind::Sampler, Some(&value)) =
            (param.kind, func.blocks[entry].params.get(first))
        {
            sampler_args[value] = Some(arg as u32);
        }
        if let (ParamKind::Image { dim, .. }, Some(&value)) =
            (param.kind, func.blocks[entry].params.get(first))
        {
            images[value] = Some(LoweredImage {
                arg,
                dim,
                read_write: param.access == AccessQualifier::ReadWrite,
            });
        }
        first += param.kind.values();
    }
    let mut captured: Vec<Captured> = Vec::new();
    let block = match kernel.attributes.role {
        KernelRole::Block => func.blocks[entry].params.first().copied(),
        _ => None,
    };
    if let Some(base) = block {
        let arguments = kernel.params.len();
        for &block in &func.layout {
            for &inst in &func.blocks[block].insts {
                let data = &func.insts[inst];
                let (Op::ImageAt(ty), &[number], &[result]) =
                    (data.op, &data.args[..], &data.results[..])
                else {
                    continue;
                };
                let Some(at) = offset_in(func, base, number) else {
                    continue;
                };
                let access = 0;
                let index = match captured.iter().position(|c| (c.at, c.ty) == (at, ty)) {
                    Some(index) => index,
                    None => {
                        captured.push(Captured { at, ty, access });
                        captured.len() - 1
                    }
                };
                images[result] = Some(LoweredImage {
                    arg: arguments + index,
                    dim: ty.dim,
                    read_write: ty.access == AccessQualifier::ReadWrite,
                });
            }
        }
    }
    follow_numbers(func, &mut images);
    let arguments = kernel.params.len();
    let all = arguments + captured.len();
    let mut bindings = vec![ImageBindings::default(); all];
    let kind = |op: Op, image: LoweredImage| match op {
        Op::ImageWrite(_) => DescriptorKind::Storage,
        Op::ImageFilter => DescriptorKind::Sampled,
        _ if image.read_write && target.storage_image_read => DescriptorKind::Storage,
        _ => DescriptorKind::Sampled,
    };

    for &block in &func.layout {
        for &inst in &func.blocks[block].insts {
            let data = &func.insts[inst];
            if let Some(texel) = texel_of(data.op) {
                let image = image_of(&images, data.args.first())?;
                if let Some(c) = image.arg.checked_sub(arguments) {
                    captured[c].access |= match data.op {
                        Op::ImageWrite(_) => WRITE,
                        _ => READ,
                    };
                }
                // Numbered below.
                *binding_of(&mut bindings[image.arg], kind(data.op, image), texel) = Some(0);
            }
        }
    }
    let mut next = 0;
    for of in &mut bindings {
        for number in of.list_mut().into_iter().flatten() {
            *number = next;
            next += 1;
        }
    }

    let mut reads = 0;
    rewrite(func, |r, inst| {
        let data = r.data(inst);
        let texel = match data.op {
            Op::ImageRead(texel) | Op::ImageWrite(texel) => texel,
            Op::ImageFilter => Texel::Float,
            Op::ImageNumber => {
                let image = image_of(&images, data.args.first())?;
                let number = match number_of(r.func, data.args[0]) {
                    Some(number) => number,
                    None => r.konst(Type::I64, image.arg as u64 + 1),
                };
                return Ok(r.replace_result(inst, number));
            }
            Op::ImageQuery(_) => {
                // What `lower_args` finds again, whatever happens to the number meanwhile.
                let image = image_of(&images, data.args.first())?;
                let handle = match image.arg.checked_sub(arguments) {
                    None if handles[image.arg] == data.args.first().copied() => {
                        return Ok(InstEdit::Keep)
                    }
                    None => handles[image.arg].unwrap_or(data.args[0]),
                    Some(c) => {
                        let number = r.konst(Type::I64, c as u64);
                        r.op(Op::ImageAt(captured[c].ty), [number], Type::Handle)
                    }
                };
                let value = r.op(data.op, [handle], Type::I32);
                return Ok(r.replace_result(inst, value));
            }
            Op::SamplerWord => {
                let Some(number) = sampler_number(r.func, data.args[0]) else {
                    return Ok(InstEdit::Keep);
                };
                let word = r.op(Op::Trunc, [number], Type::I32);
                return Ok(r.replace_result(inst, word));
            }
            _ => return Ok(InstEdit::Keep),
        };
        let image = image_of(&images, data.args.first())?;
        let kind = kind(data.op, image);
        let binding = *binding_of(&mut bindings[image.arg], kind, texel);
        let texel = match texel {
            Texel::Raw => Texel::Unsigned,
            other => other,
        };
        let slot = ImageSlot {
            binding: binding.ok_or_else(|| LowerError::internal("an image without binding"))?,
            dim: image.dim,
            texel,
        };
        let mut args = data.args[1..].to_vec();
        if data.op == Op::ImageFilter {
            let source = sampler_of(r.func, &sampler_args, block, args.remove(0))?;
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
            return Ok(InstEdit::Remove);
        }
        if let Op::ImageWrite(_) = data.op {
            r.inst(Op::TexelStore(slot), args, &[]);
            return Ok(InstEdit::Remove);
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
        Ok(InstEdit::Remove)
    })?;
    Ok(Descriptors {
        args: bindings,
        captured,
        samplers,
    })
}

/// Returns the type of the texels that an operation accesses by handle.
fn texel_of(op: Op) -> Option<Texel> {
    match op {
        Op::ImageRead(texel) | Op::ImageWrite(texel) => Some(texel),
        Op::ImageFilter => Some(Texel::Float),
        _ => None,
    }
}

/// Returns the offset of an integer that is loaded from memory at `base`, if that is known.
fn offset_in(func: &Function, base: Value, loaded: Value) -> Option<u32> {
    let load = &func.insts[func.def_inst(loaded)?];
    let Op::Load { .. } = load.op else {
        return None;
    };
    let before = load.results.iter().take_while(|&&value| value != loaded);
    let mut offset: u64 = before.map(|&value| u64::from(func.ty(value).size())).sum();
    let mut pointer = *load.args.first()?;
    for _ in 0..MOST_STEPS {
        if pointer == base {
            return u32::try_from(offset).ok();
        }
        let data = &func.insts[func.def_inst(pointer)?];
        match (data.op, &data.args[..]) {
            (Op::SpaceCast, &[from]) => pointer = from,
            (Op::PtrAdd, &[from, by]) => {
                offset = offset.wrapping_add(func.as_const(by)?);
                pointer = from;
            }
            _ => return None,
        }
    }
    None
}

/// Returns the number that an image was made from.
fn number_of(func: &Function, mut image: Value) -> Option<Value> {
    for _ in 0..MOST_STEPS {
        let data = &func.insts[func.def_inst(image)?];
        let (Op::ImageAt(_), &[number]) = (data.op, &data.args[..]) else {
            return None;
        };
        match func.def_inst(number).map(|inst| &func.insts[inst]) {
            Some(from) if from.op == Op::ImageNumber => image = from.args[0],
            _ => return Some(number),
        }
    }
    None
}

/// Replaces an image made from the number of an image by that image, where no pass has done so.
fn follow_numbers(func: &Function, images: &mut SecondaryMap<Value, Option<LoweredImage>>) {
    let mut changed = true;
    while changed {
        changed = false;
        for &block in &func.layout {
            for &inst in &func.blocks[block].insts {
                let data = &func.insts[inst];
                let (Op::ImageAt(_), &[number], &[result]) =
                    (data.op, &data.args[..], &data.results[..])
                else {
                    continue;
                };
                let from = func.def_inst(number).map(|inst| &func.insts[inst]);
                let known = from
                    .filter(|from| from.op == Op::ImageNumber)
                    .and_then(|from| images[from.args[0]]);
                if known.is_some() && images[result].is_none() {
                    images[result] = known;
                    changed = true;
                }
            }
        }
    }
}

/// Returns the source of a sampler. `block`: the address of the block's captures.
fn sampler_of(
    func: &Function,
    args: &SecondaryMap<Value, Option<u32>>,
    block: Option<Value>,
    mut sampler: Value,
) -> Result<SamplerSource> {
    let unknown = || LowerError::unsupported("a sampler that is not known before run time");
    for _ in 0..MOST_STEPS {
        if let Some(arg) = args[sampler] {
            return Ok(SamplerSource::Arg(arg));
        }
        if let Some(word) = func.as_const(sampler) {
            return Ok(SamplerSource::Literal(word as u32));
        }
        let number = sampler_number(func, sampler).ok_or_else(unknown)?;
        let word = widened(func, number);
        if let Some(word) = func.as_const(word) {
            return Ok(SamplerSource::Literal(word as u32));
        }
        if let Some(at) = block.and_then(|base| offset_in(func, base, word)) {
            return Ok(SamplerSource::Captured(at));
        }
        let from = func.def_inst(word).map(|inst| &func.insts[inst]);
        match from.map(|from| (from.op, &from.args[..])) {
            Some((Op::SamplerWord, &[of])) => sampler = of,
            _ => return Err(unknown()),
        }
    }
    Err(unknown())
}

/// Returns the number that a sampler was made from.
fn sampler_number(func: &Function, sampler: Value) -> Option<Value> {
    let data = &func.insts[func.def_inst(sampler)?];
    match (data.op, &data.args[..]) {
        (Op::SamplerAt, &[number]) => Some(number),
        _ => None,
    }
}

/// Returns the number of a sampler before it was extended or truncated.
fn widened(func: &Function, mut number: Value) -> Value {
    for _ in 0..MOST_STEPS {
        let from = func.def_inst(number).map(|inst| &func.insts[inst]);
        match from.map(|from| (from.op, &from.args[..])) {
            Some((Op::ZExt | Op::Trunc, &[of])) => number = of,
            _ => break,
        }
    }
    number
}

fn image_of(
    images: &SecondaryMap<Value, Option<LoweredImage>>,
    value: Option<&Value>,
) -> Result<LoweredImage> {
    value
        .and_then(|&v| images[v])
        .ok_or_else(|| LowerError::unsupported("an image that is not known before run time"))
}

/// Adds an opaque zero to a value. `number`: of the read in the kernel.
fn opaque(r: &mut Rewriter, value: Value, number: u32) -> Value {
    let group = r.op(Op::Hw(HwVar::WorkgroupId(2)), [], Type::I32);
    let shift = FIRST_SHIFT + number % (32 - FIRST_SHIFT);
    let zero = r.with_const(Op::LShr, group, shift.into());
    r.same(Op::IAdd, [value, zero])
}
