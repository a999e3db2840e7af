//! Kernel parameters become reads of the argument block, and the argument block gets its layout.
//!
//! Runs when all implicit arguments that the kernel uses are known. The layout is that of [`crate::interface`]:
//! implicit arguments first in [`Implicit::ALL`] order, only those used; then the explicit ones in order, each at the
//! alignment of its OpenCL type. What does not fit the push constants goes to a buffer.
//!
//! - Scalars and vectors: one [`Op::ArgLoad`] (8- and 16-bit ones by the 32-bit word they lie in, since 8- and 16-bit
//!   push constants are features of their own).
//! - Pointers to global and constant memory: a 64-bit address.
//! - Structures by value: loads at constant offsets are taken from the argument block directly; if the structure is
//!   used in any other way, it is copied to private memory first.
//! - Images and samplers: their properties, where the kernel asks for them; the images themselves are descriptors
//!   (`lower_images`).
//! - Local pointers stay parameters of the function, in order; parameter number i belongs to specialisation constant
//!   `SPEC_FIRST_LOCAL_ARG + i`. All other parameters are gone.

use super::lower_images::Descriptors;
use crate::analysis::arg_access::{ArgAccess, PASS_ON};
use crate::analysis::cfg::Cfg;
use crate::analysis::waits::{self, Looking};
use crate::edit::rewrite::{InstEdit, Rewriter};
use crate::error::{LowerError, Result};
use crate::interface::{
    Access, AccessQualifier, AddressQualifier, Arg, ArgKind, ImageArg, ImageInfo, Implicit,
    KernelInterface, SPEC_FIRST_LOCAL_ARG,
};
use crate::ir::entity::{Block, SecondaryMap, Value};
use crate::ir::function::{Function, ValueDef};
use crate::ir::module::{EntryPoint, ParamKind};
use crate::ir::op::Op;
use crate::ir::types::{Space, Type};
use crate::target::Target;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// The size and alignment of the properties of an image.
const IMAGE_INFO: (u32, u32) = (size_of::<ImageInfo>() as u32, 4);

/// Returns the size and alignment of an argument in the block, or `None` if it is not there.
/// `asked`: the kernel queries properties of the image or sampler.
fn placement(kind: ParamKind, asked: bool) -> Option<(u32, u32)> {
    match kind {
        ParamKind::Value { size, .. } => Some((size, size.next_power_of_two().min(128))),
        ParamKind::ByVal { size, align } => Some((size, align.max(1).next_power_of_two().min(128))),
        ParamKind::Pointer(Space::Local) => None,
        ParamKind::Pointer(_) | ParamKind::Pipe | ParamKind::Queue => Some((8, 8)),
        ParamKind::Image { .. } if asked => Some(IMAGE_INFO),
        ParamKind::Sampler if asked => Some((4, 4)),
        ParamKind::Image { .. } | ParamKind::Sampler => None,
    }
}

/// Returns the offsets of the explicit arguments from `start` on, by their sizes and alignments,
/// and the end.
fn lay_out(places: &[Option<(u32, u32)>], start: u32) -> Result<(Vec<u32>, u32)> {
    let mut end = start;
    let mut offsets = Vec::with_capacity(places.len());
    for &place in places {
        let Some((size, align)) = place else {
            offsets.push(0);
            continue;
        };
        let offset = end.checked_next_multiple_of(align);
        let (offset, next) = offset
            .and_then(|o| Some((o, o.checked_add(size)?)))
            .filter(|&(_, next)| next <= 1 << 20)
            .ok_or_else(|| LowerError::unsupported("kernel arguments of more than 1 MiB"))?;
        offsets.push(offset);
        end = next;
    }
    Ok((offsets, end))
}

/// Returns the number of a captured image whose properties are queried.
fn captured_image(func: &Function, image: Value) -> Option<usize> {
    let data = &func.insts[func.def_inst(image)?];
    match (data.op, &data.args[..]) {
        (Op::ImageAt(_), &[number]) => usize::try_from(func.as_const(number)?).ok(),
        _ => None,
    }
}

/// Returns which captured images are queried.
fn captured_asked(func: &Function, count: usize) -> Vec<bool> {
    let mut asked = vec![false; count];
    for &block in &func.layout {
        for &inst in &func.blocks[block].insts {
            let data = &func.insts[inst];
            if let (Op::ImageQuery(_), Some(&image)) = (data.op, data.args.first()) {
                if let Some(index) = captured_image(func, image).filter(|&index| index < count) {
                    asked[index] = true;
                }
            }
        }
    }
    asked
}

fn used_values(func: &Function) -> SecondaryMap<Value, bool> {
    let mut used: SecondaryMap<Value, bool> = Default::default();
    for &block in &func.layout {
        for &inst in &func.blocks[block].insts {
            func.insts[inst].args.iter().for_each(|&v| used[v] = true);
        }
        func.blocks[block].term.for_each_use(|v| used[v] = true);
    }
    used
}

/// Returns the implicit arguments that a function uses, in their order.
pub fn used_implicits(func: &Function) -> Vec<Implicit> {
    let mut used = [false; Implicit::ALL.len()];
    for &block in &func.layout {
        for &inst in &func.blocks[block].insts {
            if let Op::Implicit(which, _) = func.insts[inst].op {
                if let Some(i) = Implicit::ALL.iter().position(|&i| i == which) {
                    used[i] = true;
                }
            }
        }
    }
    Implicit::ALL
        .into_iter()
        .zip(used)
        .filter(|(_, used)| *used)
        .map(|(i, _)| i)
        .collect()
}

fn place_implicits(implicits: &[Implicit]) -> (Vec<(Implicit, u32)>, u32) {
    let mut end = 0;
    let placed = implicits
        .iter()
        .map(|&i| {
            let offset = end;
            end += i.size();
            (i, offset)
        })
        .collect();
    (placed, end)
}

/// The storage that explicit arguments are read from.
#[derive(Clone, Copy)]
enum Source {
    /// The push-constant block.
    Push,
    /// The argument buffer.
    Buffer,
}

/// Emits the load of `count` values of a type at an offset of the argument block.
fn load(
    r: &mut Rewriter,
    source: Source,
    offset: u32,
    ty: Type,
    count: usize,
) -> SmallVec<[Value; 2]> {
    match source {
        Source::Buffer => {
            let base = r.op(Op::Implicit(Implicit::ArgBuffer, 0), [], Type::I64);
            let base = r.op(Op::IntToPtr, [base], Type::Ptr(Space::Constant));
            let at = r.offset(base, offset.into());
            let align = if offset == 0 {
                16
            } else {
                1 << offset.trailing_zeros().min(4)
            };
            let op = Op::Load {
                align,
                volatile: false,
            };
            if align >= ty.size() {
                return r.many(op, [at], &vec![ty; count]);
            }
            // A packed structure: by bytes.
            let mut results = SmallVec::new();
            for i in 0..count as u32 {
                let mut bits = r.konst(ty.as_int().unwrap_or(Type::I8), 0);
                for b in 0..ty.size() {
                    let at = r.offset(base, u64::from(offset + i * ty.size() + b));
                    let byte = r.op(
                        Op::Load {
                            align: 1,
                            volatile: false,
                        },
                        [at],
                        Type::I8,
                    );
                    bits = or_shifted(r, bits, byte, b * 8);
                }
                results.push(from_int(r, bits, ty));
            }
            results
        }
        Source::Push => {
            if ty.size() >= 4 && offset % ty.size() == 0 {
                let plain = if ty.is_ptr() || ty == Type::Handle {
                    Type::I64
                } else {
                    ty
                };
                let values = r.many(Op::ArgLoad(offset), [], &vec![plain; count]);
                return values.into_iter().map(|v| from_int(r, v, ty)).collect();
            }
            // By the 32-bit words that it lies in.
            let mut results = SmallVec::new();
            for i in 0..count as u32 {
                let start = offset + i * ty.size();
                let int = ty.as_int().unwrap_or(Type::I8);
                let mut bits = r.konst(int, 0);
                let mut at = start;
                while at < start + ty.size() {
                    let word = r.op(Op::ArgLoad(at & !3), [], Type::I32);
                    let shift = (at & 3) * 8;
                    let part = if shift == 0 {
                        word
                    } else {
                        r.with_const(Op::LShr, word, shift.into())
                    };
                    bits = or_shifted(r, bits, part, (at - start) * 8);
                    at = (at & !3) + 4;
                }
                results.push(from_int(r, bits, ty));
            }
            results
        }
    }
}

/// Computes `bits | part << shift`, with `part` extended to the width of `bits` first.
fn or_shifted(r: &mut Rewriter, bits: Value, part: Value, shift: u32) -> Value {
    let (to, from) = (r.func.ty(bits), r.func.ty(part));
    let part = match to.bits().cmp(&from.bits()) {
        std::cmp::Ordering::Less => r.op(Op::Trunc, [part], to),
        std::cmp::Ordering::Equal => part,
        std::cmp::Ordering::Greater => r.op(Op::ZExt, [part], to),
    };
    if shift == 0 && r.func.as_const(bits) == Some(0) {
        return part;
    }
    let part = if shift == 0 {
        part
    } else {
        r.with_const(Op::Shl, part, shift.into())
    };
    r.same(Op::Or, [bits, part])
}

/// Reinterprets an integer as a type of its width.
fn from_int(r: &mut Rewriter, bits: Value, ty: Type) -> Value {
    let have = r.func.ty(bits);
    if have == ty {
        bits
    } else if ty.is_ptr() {
        r.op(Op::IntToPtr, [bits], ty)
    } else {
        r.op(Op::Bitcast, [bits], ty)
    }
}

/// Returns the values that point into a structure passed by value, with their constant offsets, if
/// all their uses are loads.
fn constant_loads(func: &Function, param: Value, size: u32) -> Option<FxHashMap<Value, u32>> {
    let mut offsets = FxHashMap::default();
    offsets.insert(param, 0);
    // Definitions come before uses along the dominator tree but not in layout order: iterate until stable.
    loop {
        let before = offsets.len();
        for &block in &func.layout {
            for &inst in &func.blocks[block].insts {
                let data = &func.insts[inst];
                if let (Op::PtrAdd, [base, by], [result]) =
                    (data.op, &data.args[..], &data.results[..])
                {
                    if let Some(&offset) = offsets.get(base) {
                        let by = func.as_const(*by)?;
                        let sum = u64::from(offset).wrapping_add(by);
                        offsets.insert(*result, u32::try_from(sum).ok().filter(|&s| s <= size)?);
                    }
                }
            }
        }
        if offsets.len() == before {
            break;
        }
    }
    for &block in &func.layout {
        for &inst in &func.blocks[block].insts {
            let data = &func.insts[inst];
            for (i, arg) in data.args.iter().enumerate() {
                let Some(&offset) = offsets.get(arg) else {
                    continue;
                };
                let inside = |bytes: u64| u64::from(offset) + bytes <= u64::from(size);
                let bytes: u64 = data
                    .results
                    .iter()
                    .map(|&v| u64::from(func.ty(v).size()))
                    .sum();
                let fine = match data.op {
                    Op::PtrAdd => i == 0,
                    Op::Load { .. } => inside(bytes),
                    Op::MemCopy { size, .. } => i == 1 && size <= 256 && inside(size),
                    _ => false,
                };
                if !fine {
                    return None;
                }
            }
        }
        let mut escapes = false;
        func.blocks[block]
            .term
            .for_each_use(|v| escapes |= offsets.contains_key(&v));
        if escapes {
            return None;
        }
    }
    Some(offsets)
}

/// Copies `size` bytes of the argument block to memory.
fn copy_out(r: &mut Rewriter, source: Source, from: u32, to: Value, size: u32, align: u32) {
    let mut done = 0;
    while done < size {
        let left = size - done;
        let ty = [Type::I32, Type::I16, Type::I8]
            .into_iter()
            .find(|t| {
                // The place is aligned to no more than it says, and to no more than the offset in it.
                [from + done, align, done].iter().all(|n| n % t.size() == 0) && t.size() <= left
            })
            .unwrap_or(Type::I8);
        let value = load(r, source, from + done, ty, 1)[0];
        let at = r.offset(to, done.into());
        r.inst(
            Op::Store {
                align: ty.size(),
                volatile: false,
            },
            [at, value],
            &[],
        );
        done += ty.size();
    }
}

/// Facts about a kernel that other passes have found.
#[derive(Debug, Clone, Copy)]
pub struct Found<'a> {
    /// Computed when the parameters were still there.
    pub access: &'a ArgAccess,
    /// Made by `lower_images`.
    pub images: &'a Descriptors,
    /// The implicit arguments that functions use which the kernel calls.
    pub implicits: &'a [Implicit],
    /// The ones of them in which a work-item looks at what others have written.
    pub looking: &'a Looking,
}

/// Runs the pass and describes the kernel.
pub fn run(
    func: &mut Function,
    kernel: &EntryPoint,
    found: Found,
    target: &Target,
) -> Result<KernelInterface> {
    let Found { access, images, .. } = found;
    let expected: usize = kernel.params.iter().map(|p| p.kind.values()).sum();
    let Some(entry) = func.entry() else {
        return Err(LowerError::invalid(format!(
            "kernel `{}` has no body",
            kernel.name
        )));
    };
    let params = func.blocks[entry].params.clone();
    if expected != params.len() {
        return Err(LowerError::internal(format!(
            "kernel `{}` has {} parameters, its description {expected}",
            kernel.name,
            params.len()
        )));
    }

    // Layout.
    let used = used_values(func);
    let mut asked = Vec::with_capacity(kernel.params.len());
    let mut first = 0;
    for param in &kernel.params {
        asked.push(params.get(first).is_some_and(|&v| used[v]));
        first += param.kind.values();
    }
    let captured = captured_asked(func, images.captured.len());
    let places: Vec<Option<(u32, u32)>> = kernel
        .params
        .iter()
        .zip(&asked)
        .map(|(param, &asked)| placement(param.kind, asked))
        .chain(captured.iter().map(|&asked| asked.then_some(IMAGE_INFO)))
        .collect();
    let used_here = used_implicits(func);
    let is_used = |which: &Implicit| used_here.contains(which) || found.implicits.contains(which);
    let mut implicits: Vec<Implicit> = Implicit::ALL.into_iter().filter(is_used).collect();
    let (mut placed, mut implicit_end) = place_implicits(&implicits);
    let (mut offsets, mut end) = lay_out(&places, implicit_end)?;
    let mut source = Source::Push;
    let mut arg_buffer_size = 0;
    if end.next_multiple_of(4) > target.max_push_constants {
        source = Source::Buffer;
        if !implicits.contains(&Implicit::ArgBuffer) {
            implicits.insert(0, Implicit::ArgBuffer);
        }
        (placed, implicit_end) = place_implicits(&implicits);
        (offsets, end) = lay_out(&places, 0)?;
        arg_buffer_size = end;
    }
    let push_size = match source {
        Source::Push => end,
        Source::Buffer => implicit_end,
    }
    .next_multiple_of(4);

    // Description.
    let mut next_spec = SPEC_FIRST_LOCAL_ARG;
    let mut args = Vec::with_capacity(kernel.params.len());
    let mut arg_access = Vec::with_capacity(kernel.params.len());
    let mut first = 0;
    for (index, (param, &offset)) in kernel.params.iter().zip(&offsets).enumerate() {
        let place = asked.get(index).is_some_and(|&a| a).then_some(offset);
        let kind = match param.kind {
            ParamKind::Value { size, .. } | ParamKind::ByVal { size, .. } => {
                ArgKind::Value { offset, size }
            }
            ParamKind::Pointer(Space::Local) => {
                next_spec += 1;
                ArgKind::Local {
                    spec_id: next_spec - 1,
                }
            }
            ParamKind::Pointer(_) => ArgKind::Buffer {
                offset,
                constant: param.address == AddressQualifier::Constant,
            },
            ParamKind::Image { dim, depth } => {
                let bindings = images.args.get(index).copied().unwrap_or_default();
                ArgKind::Image(ImageArg {
                    dim,
                    depth,
                    bindings,
                    info: place,
                })
            }
            ParamKind::Sampler => ArgKind::Sampler { offset: place },
            ParamKind::Pipe => ArgKind::Pipe { offset },
            ParamKind::Queue => ArgKind::Queue { offset },
        };
        args.push(Arg {
            kind,
            name: param.name.clone(),
            type_name: param.type_name.clone(),
            address: param.address,
            access: param.access,
            is_const: param.is_const,
            is_restrict: param.is_restrict,
            is_volatile: param.is_volatile,
            max_size: param.max_size,
        });
        let is_memory = matches!(
            kind,
            ArgKind::Buffer { .. } | ArgKind::Image(_) | ArgKind::Pipe { .. }
        );
        let mut bits = match is_memory {
            true => access.params.get(first).copied().unwrap_or(3),
            false => 0,
        };
        if param.access == AccessQualifier::ReadOnly {
            // Nor can blocks write it.
            bits &= !PASS_ON;
        }
        arg_access.push(Access::from_bits(bits));
        first += param.kind.values();
    }
    let captured_offsets = offsets.get(kernel.params.len()..).unwrap_or_default();
    for (index, (image, &asked)) in images.captured.iter().zip(&captured).enumerate() {
        let bindings = images.args.get(kernel.params.len() + index).copied();
        let bindings = bindings.unwrap_or_default();
        let offset = captured_offsets.get(index).copied();
        args.push(Arg {
            kind: ArgKind::Captured {
                at: image.at,
                image: ImageArg {
                    dim: image.ty.dim,
                    depth: image.ty.depth,
                    bindings,
                    info: offset.filter(|_| asked),
                },
            },
            name: String::new(),
            type_name: String::new(),
            address: AddressQualifier::Global,
            access: image.ty.access,
            is_const: false,
            is_restrict: false,
            is_volatile: false,
            max_size: None,
        });
        arg_access.push(Access::from_bits(image.access));
    }

    // The loads, at the head of the entry block.
    let mut handles: FxHashMap<Value, u32> = FxHashMap::default();
    let mut direct: FxHashMap<Value, u32> = FxHashMap::default();
    let mut copies: Vec<(Value, u32, u32, u32)> = Vec::new();
    let mut values: Vec<(usize, u32, Type, usize)> = Vec::new();
    let mut locals = Vec::new();
    let mut first = 0;
    for (param, &offset) in kernel.params.iter().zip(&offsets) {
        let count = param.kind.values();
        let mine = &params[first..first + count];
        let is_used = mine.iter().any(|&v| used[v]);
        match param.kind {
            ParamKind::Value { ty, .. } if is_used => values.push((first, offset, ty, count)),
            ParamKind::ByVal { size, align } if is_used => {
                match constant_loads(func, mine[0], size) {
                    Some(loads) => direct.extend(loads.into_iter().map(|(v, o)| (v, offset + o))),
                    None => copies.push((mine[0], offset, size, align)),
                }
            }
            ParamKind::Pointer(Space::Local) => locals.push(mine[0]),
            ParamKind::Pipe | ParamKind::Queue if is_used => {
                values.push((first, offset, Type::Ptr(Space::Global), 1))
            }
            ParamKind::Pointer(space) if is_used => {
                values.push((first, offset, Type::Ptr(space), 1))
            }
            ParamKind::Image { .. } | ParamKind::Sampler if is_used => {
                handles.insert(mine[0], offset);
            }
            _ => {}
        }
        first += count;
    }
    let mut emit_head = |r: &mut Rewriter| {
        for &(first, offset, ty, count) in &values {
            for (i, value) in load(r, source, offset, ty, count).into_iter().enumerate() {
                r.replace(params[first + i], value);
            }
        }
        for &(param, offset, size, align) in &copies {
            let align = align.max(4);
            let copy = r.op(Op::Alloca { size, align }, [], Type::Ptr(Space::Private));
            copy_out(r, source, offset, copy, size, align);
            r.replace(param, copy);
        }
    };
    // An entry block may be empty: the terminator hook covers that.
    let head = std::cell::RefCell::new(&mut emit_head);
    let first_time = std::cell::Cell::new(true);
    let once = |r: &mut Rewriter| {
        if first_time.replace(false) {
            (head.borrow_mut())(r);
        }
    };
    crate::edit::rewrite::rewrite_with_terms(
        func,
        |r, inst| {
            once(r);
            let data = &r.func.insts[inst];
            match data.op {
                Op::Load { .. } if data.args.first().is_some_and(|a| direct.contains_key(a)) => {
                    let data = data.clone();
                    let offset = direct[&data.args[0]];
                    let ty = data.results.first().map_or(Type::I32, |&v| r.func.ty(v));
                    let loaded = load(r, source, offset, ty, data.results.len());
                    for (&old, new) in data.results.iter().zip(loaded) {
                        r.replace(old, new);
                    }
                    Ok(InstEdit::Remove)
                }
                Op::MemCopy { size, align }
                    if data.args.get(1).is_some_and(|a| direct.contains_key(a)) =>
                {
                    let data = data.clone();
                    copy_out(
                        r,
                        source,
                        direct[&data.args[1]],
                        data.args[0],
                        size as u32,
                        align,
                    );
                    Ok(InstEdit::Remove)
                }
                Op::ImageQuery(_) | Op::SamplerWord => {
                    let part = match data.op {
                        Op::ImageQuery(property) => property.offset(),
                        _ => 0,
                    };
                    let of = |&image: &Value| match handles.get(&image) {
                        Some(offset) => Some(offset),
                        None => captured_offsets.get(captured_image(r.func, image)?),
                    };
                    let offset = data.args.first().and_then(of);
                    let offset = offset.ok_or_else(|| {
                        LowerError::unsupported(
                            "an image or a sampler that is not known before run time",
                        )
                    })?;
                    let word = load(r, source, offset + part, Type::I32, 1)[0];
                    Ok(r.replace_result(inst, word))
                }
                // Whatever was done with it is done by descriptors.
                Op::ImageAt(_) | Op::SamplerAt => Ok(InstEdit::Remove),
                Op::PtrAdd if data.args.first().is_some_and(|a| direct.contains_key(a)) => {
                    Ok(InstEdit::Remove)
                }
                _ => Ok(InstEdit::Keep),
            }
        },
        |r, _| {
            once(r);
            Ok(())
        },
    )?;

    // Only the local pointers stay.
    let entry = func.entry().unwrap_or(entry);
    for (i, &local) in locals.iter().enumerate() {
        func.values[local].def = ValueDef::Param(entry, i as u32);
    }
    func.params = locals.iter().map(|&v| func.ty(v)).collect();
    func.blocks[entry].params = locals;

    let prints = |op: &Op| matches!(op, Op::Implicit(Implicit::PrintfBuffer, _));
    Ok(KernelInterface {
        name: kernel.name.clone(),
        args,
        implicit: placed,
        push_size,
        args_in_buffer: matches!(source, Source::Buffer),
        arg_buffer_size,
        local_size: 0,
        private_size: 0,
        attributes: kernel.attributes.clone(),
        uses_printf: instructions(func).any(prints),
        instruction_bound: instruction_bound(func),
        uses_subgroups: false,
        lanes: 0,
        guarded: false,
        waits: waits::may_wait(func, found.looking),
        uses_indirect_pointers: access.indirect,
        samplers: images.samplers.clone(),
        arg_access,
    })
}

fn instructions(func: &Function) -> impl Iterator<Item = &Op> {
    func.layout_insts().map(|&inst| &func.insts[inst].op)
}

/// Returns the most instructions that a work-item executes, `u32::MAX` if there are loops or calls.
fn instruction_bound(func: &Function) -> u32 {
    let cfg = Cfg::new(func);
    let position = |block| cfg.rpo_index(block);
    let retreats = |&block: &Block| {
        let mut after = cfg.succs(block).iter();
        after.any(|&next| position(next) <= position(block))
    };
    if cfg.rpo().iter().any(retreats) || instructions(func).any(|op| matches!(op, Op::Call(_))) {
        return u32::MAX;
    }
    let each = |op: &Op| match op {
        Op::MemCopy { size, .. } => 1 + size / 4,
        _ => 1,
    };
    let all: u64 = instructions(func).map(each).sum();
    u32::try_from(all).unwrap_or(u32::MAX)
}
