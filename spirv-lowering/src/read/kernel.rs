//! Reads kernels: entry points, their source-level arguments, execution modes.

use super::output::Output;
use super::parsed::{FuncDef, Parsed};
use super::types::{Kind, Opaque, TyId};
use crate::error::{LowerError, Result};
use crate::interface::{AccessQualifier, AddressQualifier, KernelAttributes, KernelRole};
use crate::ir::module::{EntryPoint, KernelParam, ParamKind};
use crate::ir::types::{Space, Type};
use rustc_hash::FxHashMap;
use spirv::{Decoration, ExecutionMode as Mode, FunctionParameterAttribute as Attr};

/// Argument strings that compilers leave in OpString: kind and kernel name to one text an argument.
struct ArgTexts<'p>(FxHashMap<(&'p str, &'p str), Vec<&'p str>>);

impl<'p> ArgTexts<'p> {
    fn new(p: &'p Parsed) -> Self {
        let mut map = FxHashMap::default();
        for (_, text) in &p.strings {
            let mut parts = text.splitn(3, '.');
            if let (Some(kind), Some(kernel), Some(list)) =
                (parts.next(), parts.next(), parts.next())
            {
                if kind.starts_with("kernel_arg_") || kind == "kernel_vec_type_hint" {
                    map.insert(
                        (kind, kernel),
                        list.trim_end_matches(',').split(',').collect(),
                    );
                }
            }
        }
        Self(map)
    }

    fn get(&self, kind: &str, kernel: &str, arg: usize) -> Option<&'p str> {
        self.0.get(&(kind, kernel))?.get(arg).copied()
    }
}

/// Adds a kernel for each entry point.
pub(super) fn read_kernels(p: &Parsed, out: &mut Output) -> Result<()> {
    let texts = ArgTexts::new(p);
    let mut modes: FxHashMap<u32, Vec<usize>> = FxHashMap::default();
    for &(func, at) in &p.modes {
        modes.entry(func).or_default().push(at);
    }
    let mut names = rustc_hash::FxHashSet::default();
    for entry in &p.entries {
        let bad =
            |what: &str| LowerError::invalid(format!("the entry point `{}`: {what}", entry.name));
        if super::block::is_block_entry(p, &entry.name, entry.func) {
            continue;
        }
        if !names.insert(entry.name.as_str()) {
            return Err(bad("the name stands twice"));
        }
        let def = match p.defs.get(entry.func as usize) {
            Some(super::parsed::Def::Func(index)) => p.funcs.get(*index as usize),
            _ => None,
        };
        let def = def
            .filter(|d| d.has_body)
            .ok_or_else(|| bad("it names no function with a body"))?;
        if !matches!(p.types.get(def.ret).kind, Kind::Void) {
            return Err(bad("a kernel returns nothing"));
        }
        let func = out.function(p, def.id)?;
        let mut params = Vec::new();
        for index in 0..def.params.len() {
            params.push(
                param(p, def, index, &entry.name, &texts)
                    .map_err(|e| e.in_function(&entry.name))?,
            );
        }
        let modes = modes
            .get(&entry.func)
            .map(Vec::as_slice)
            .unwrap_or_default();
        let (mut attributes, contraction_off) = attributes(p, modes)?;
        if attributes.role != KernelRole::Ordinary && !params.is_empty() {
            return Err(bad("an initializer or finalizer has no parameters"));
        }
        // The execution mode does not know unsigned types.
        if let Some(hint) = texts.get("kernel_vec_type_hint", &entry.name, 0) {
            attributes.vec_type_hint = Some(hint.to_owned());
        }
        out.module.kernels.push(EntryPoint {
            name: entry.name.clone(),
            func,
            params,
            attributes,
            contraction_off,
        });
    }
    Ok(())
}

fn attributes(p: &Parsed, modes: &[usize]) -> Result<(KernelAttributes, bool)> {
    let mut attributes = KernelAttributes::default();
    let mut contraction_off = false;
    for &at in modes {
        let inst = p.inst(at)?;
        let words = inst.rest(2);
        let literal = |i: usize| words.get(i).copied().unwrap_or(1);
        let constant = |i: usize| words.get(i).and_then(|&id| p.const_u64(id)).unwrap_or(1) as u32;
        match Mode::from_u32(inst.word(1)?) {
            Some(Mode::LocalSize) => {
                attributes.required_work_group_size = Some([literal(0), literal(1), literal(2)]);
            }
            Some(Mode::LocalSizeId) => {
                attributes.required_work_group_size = Some([constant(0), constant(1), constant(2)]);
            }
            Some(Mode::LocalSizeHint) => {
                attributes.work_group_size_hint = Some([literal(0), literal(1), literal(2)]);
            }
            Some(Mode::LocalSizeHintId) => {
                attributes.work_group_size_hint = Some([constant(0), constant(1), constant(2)]);
            }
            Some(Mode::VecTypeHint) => {
                let word = inst.word(2)?;
                let scalar = match word & 0xffff {
                    0 => "char",
                    1 => "short",
                    2 => "int",
                    3 => "long",
                    4 => "half",
                    5 => "float",
                    _ => "double",
                };
                let n = word >> 16;
                attributes.vec_type_hint = Some(if n > 1 {
                    format!("{scalar}{n}")
                } else {
                    scalar.to_owned()
                });
            }
            Some(Mode::SubgroupSize) => attributes.required_sub_group_size = Some(inst.word(2)?),
            Some(Mode::SubgroupsPerWorkgroup) => {
                attributes.required_sub_groups = Some(inst.word(2)?);
            }
            Some(Mode::SubgroupsPerWorkgroupId) => {
                attributes.required_sub_groups = Some(constant(0));
            }
            Some(Mode::ContractionOff) => contraction_off = true,
            Some(mode @ (Mode::Initializer | Mode::Finalizer)) => {
                let role = match mode {
                    Mode::Initializer => KernelRole::Initializer,
                    _ => KernelRole::Finalizer,
                };
                if attributes.role != KernelRole::Ordinary && attributes.role != role {
                    return Err(inst.blame(LowerError::invalid(
                        "an entry point is both Initializer and Finalizer",
                    )));
                }
                attributes.role = role;
            }
            _ => {}
        }
    }
    Ok((attributes, contraction_off))
}

fn param(
    p: &Parsed,
    def: &FuncDef,
    index: usize,
    kernel: &str,
    texts: &ArgTexts,
) -> Result<KernelParam> {
    let Kind::Function { params, .. } = &p.types.get(def.ty).kind else {
        return Err(LowerError::invalid("no function type"));
    };
    let (Some(&ty), Some(&id)) = (params.get(index), def.params.get(index)) else {
        return Err(LowerError::invalid("too few parameters"));
    };
    let t = p.types.get(ty);
    let has = |attr: Attr| {
        p.decorations
            .has(id, Decoration::FuncParamAttr, attr as u32)
    };
    let mut access = AccessQualifier::None;
    let mut address = AddressQualifier::Private;
    let mut type_name = type_name(p, ty, 0);
    let kind = match &t.kind {
        Kind::Pointer {
            space: Space::Private,
            pointee,
            ..
        } => {
            if *pointee == 0 {
                return Err(LowerError::unsupported(
                    "an argument by value through an untyped pointer, which does not say how large it is",
                ));
            }
            let data = p.types.get(p.ty(*pointee)?);
            type_name = self::type_name(p, p.ty(*pointee)?, 0);
            ParamKind::ByVal {
                size: to_u32(data.size)?,
                align: data.align,
            }
        }
        Kind::Pointer { space, .. } => {
            address = match space {
                Space::Global => AddressQualifier::Global,
                Space::Constant => AddressQualifier::Constant,
                Space::Local => AddressQualifier::Local,
                _ => {
                    return Err(LowerError::unsupported(
                        "a generic pointer as kernel argument",
                    ))
                }
            };
            ParamKind::Pointer(*space)
        }
        Kind::Opaque(Opaque::Image {
            access: qualifier,
            dim,
            arrayed,
            depth,
            multisampled: false,
        }) => {
            let dim = super::image::geometry(*dim, *arrayed)?;
            access = super::image::qualifier(*qualifier);
            address = AddressQualifier::Global;
            ParamKind::Image { dim, depth: *depth }
        }
        Kind::Opaque(Opaque::Sampler) => ParamKind::Sampler,
        Kind::Opaque(Opaque::Pipe { access: qualifier }) => {
            access = match qualifier {
                0 => AccessQualifier::ReadOnly,
                1 => AccessQualifier::WriteOnly,
                _ => return Err(LowerError::invalid("a pipe that is both read and written")),
            };
            address = AddressQualifier::Global;
            ParamKind::Pipe
        }
        Kind::Opaque(Opaque::Queue) => {
            address = AddressQualifier::Private;
            ParamKind::Queue
        }
        Kind::Opaque(_) => return Err(LowerError::unsupported("an opaque kernel argument")),
        _ => match p.types.vector(ty) {
            Some((Type::Bool, _)) => {
                return Err(LowerError::invalid("a kernel argument of type Bool"))
            }
            Some((scalar, count)) => ParamKind::Value {
                ty: scalar,
                count,
                size: to_u32(t.size)?,
            },
            None => ParamKind::ByVal {
                size: to_u32(t.size)?,
                align: t.align,
            },
        },
    };
    let pointer = matches!(kind, ParamKind::Pointer(_));
    let mut is_const = pointer && (has(Attr::NoWrite) || address == AddressQualifier::Constant);
    let mut is_restrict = pointer && has(Attr::NoAlias);
    let mut is_volatile = pointer && p.decorations.get(id, Decoration::Volatile).is_some();
    if let Some(text) = texts.get("kernel_arg_type", kernel, index) {
        type_name = text.to_owned();
    }
    if let Some(text) = texts.get("kernel_arg_type_qual", kernel, index) {
        let has = |word: &str| text.split_whitespace().any(|w| w == word);
        (is_const, is_restrict, is_volatile) = (has("const"), has("restrict"), has("volatile"));
    }
    let name = match texts.get("kernel_arg_name", kernel, index) {
        Some(name) => name.to_owned(),
        None => p.name(id),
    };
    Ok(KernelParam {
        kind,
        name,
        type_name,
        address,
        access,
        is_const,
        is_restrict,
        is_volatile,
        max_size: p.max_byte_offset(id).filter(|_| pointer),
    })
}

fn to_u32(size: u64) -> Result<u32> {
    u32::try_from(size)
        .map_err(|_| LowerError::unsupported(format!("a kernel argument of {size} bytes")))
}

/// Returns a type as OpenCL C might spell it. Integers count as signed, because SPIR-V does not
/// say.
fn type_name(p: &Parsed, ty: TyId, depth: u32) -> String {
    let t = p.types.get(ty);
    match &t.kind {
        Kind::Void => "void".to_owned(),
        Kind::Scalar(scalar) => scalar_name(*scalar).to_owned(),
        Kind::Vector { elem, n } => match p.types.scalar(*elem) {
            Some(scalar) => format!("{}{n}", scalar_name(scalar)),
            None => String::new(),
        },
        Kind::Array { elem, len } if depth < 4 => {
            format!("{}[{len}]", type_name(p, *elem, depth + 1))
        }
        Kind::Struct { .. } => {
            let name = p.name(t.id);
            name.strip_prefix("struct.")
                .map(str::to_owned)
                .unwrap_or(name)
        }
        Kind::Pointer { pointee, .. } if depth < 4 => match p.ty(*pointee) {
            Ok(inner) => format!("{}*", type_name(p, inner, depth + 1)),
            Err(_) => "void*".to_owned(),
        },
        Kind::Opaque(Opaque::Image {
            dim,
            arrayed,
            depth,
            multisampled,
            ..
        }) => {
            let base = match dim {
                0 => "image1d",
                1 => "image2d",
                2 => "image3d",
                5 => "image1d_buffer",
                _ => "image",
            };
            let part = |on: &bool, text: &'static str| if *on { text } else { "" };
            let (array, ms, depth) = (
                part(arrayed, "_array"),
                part(multisampled, "_msaa"),
                part(depth, "_depth"),
            );
            format!("{base}{array}{ms}{depth}_t")
        }
        Kind::Opaque(Opaque::Sampler) => "sampler_t".to_owned(),
        Kind::Opaque(Opaque::Event) => "event_t".to_owned(),
        Kind::Opaque(Opaque::Queue) => "queue_t".to_owned(),
        Kind::Opaque(Opaque::DeviceEvent) => "clk_event_t".to_owned(),
        _ => String::new(),
    }
}

fn scalar_name(ty: Type) -> &'static str {
    match ty {
        Type::Bool => "bool",
        Type::I8 => "char",
        Type::I16 => "short",
        Type::I32 => "int",
        Type::I64 => "long",
        Type::F16 => "half",
        Type::F32 => "float",
        Type::F64 => "double",
        Type::Ptr(_) | Type::Handle => "void*",
    }
}
