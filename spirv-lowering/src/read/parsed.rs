//! The module-level part of a SPIR-V module: names, decorations, types, constants, variables, and where each
//! function lies. Function bodies are read later, one by one ([`super::body`]).

use super::decorations::{Deco, Decorations};
use super::types::{Kind, Opaque, TyId, Types};
use super::words::{check_header, inst_at, Instruction};
use super::ReadOptions;
use crate::error::{LowerError, Result};
use crate::ir::function::FpFlags;
use crate::ir::types::{Space, Type};
use rustc_hash::FxHashMap;
use spirv::{Decoration, FPEncoding, Op, StorageClass};
use std::sync::Arc;

/// One scalar of a constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lane {
    /// Zero-extended bits.
    Bits(u64),
    /// Any value.
    Undef,
    /// The address of a module-scope variable, or of a pipe's bytes (by SPIR-V id) plus bytes; as a pointer, or as an integer.
    #[allow(missing_docs)]
    Addr { var: u32, addend: i64 },
}

/// The entity that an id of module scope names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Def {
    /// Nothing, or something local to a function.
    #[default]
    None,
    Type(TyId),
    /// Index into [`Parsed::consts`].
    Const(u32),
    /// Index into [`Parsed::vars`].
    Var(u32),
    /// Index into [`Parsed::funcs`].
    Func(u32),
    ExtSet(ExtSet),
    /// Known but not needed.
    Ignored,
}

/// An imported instruction set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ExtSet {
    OpenCl,
    /// Debug information and other sets without meaning for execution.
    NonSemantic,
    Unknown,
}

/// A constant: the word of its instruction, its type, and its value if that is a list of scalars
/// computed already.
#[derive(Debug, Clone)]
pub(super) struct ConstDef {
    pub at: usize,
    pub op: Op,
    pub ty: TyId,
    /// The result of a specialisation-constant operation.
    pub value: Option<std::result::Result<Vec<Lane>, String>>,
}

/// A module-scope variable.
#[derive(Debug, Clone, Copy)]
pub(super) struct VarDef {
    pub id: u32,
    pub ty: TyId,
    /// Type of what it holds.
    pub data: TyId,
    /// Id of the initialiser or 0.
    pub init: u32,
    /// SPIR-V built-in number.
    pub builtin: Option<u32>,
    pub space: Space,
}

/// A function.
#[derive(Debug, Clone)]
pub(super) struct FuncDef {
    pub id: u32,
    pub ret: TyId,
    pub ty: TyId,
    /// Ids of the parameters.
    pub params: Vec<u32>,
    /// Word of OpFunction.
    pub start: usize,
    /// Word after OpFunctionEnd.
    pub end: usize,
    pub has_body: bool,
}

/// An entry point.
#[derive(Debug, Clone)]
pub(super) struct EntryDef {
    pub func: u32,
    pub name: String,
}

/// A module whose function bodies have not been read.
#[derive(Debug, Default)]
pub(super) struct Parsed {
    pub words: Arc<Vec<u32>>,
    pub bound: u32,
    /// Set if LLVM's own SPIR-V target wrote the module, some habits of which need interpretation.
    pub llvm_backend: bool,
    pub defs: Vec<Def>,
    pub types: Types,
    pub consts: Vec<ConstDef>,
    pub vars: Vec<VarDef>,
    pub funcs: Vec<FuncDef>,
    pub entries: Vec<EntryDef>,
    /// Maps a function to the number of its entry point.
    pub entry_of: FxHashMap<u32, u32>,
    /// Word of the mode number in each execution mode instruction, and the function's id.
    pub modes: Vec<(u32, usize)>,
    /// OpString: id and text.
    pub strings: Vec<(u32, String)>,
    names: FxHashMap<u32, usize>,
    pub decorations: Decorations,
    spec_values: FxHashMap<u32, Vec<u8>>,
    /// The fast-math flags of instructions without a decoration.
    pub default_fp: FpFlags,
}

impl Parsed {
    /// Parses everything of module scope.
    pub fn new(words: &[u32], options: &ReadOptions) -> Result<Self> {
        let (words, bound) = check_header(words)?;
        let words = Arc::new(words);
        let mut p = Self {
            bound,
            decorations: Decorations::new(Arc::clone(&words)),
            llvm_backend: words.get(2).is_some_and(|w| w >> 16 == 43),
            defs: vec![Def::None; bound as usize],
            spec_values: options.spec_constants.iter().cloned().collect(),
            words,
            ..Self::default()
        };
        p.scan()?;
        p.default_fp = p.find_default_fp(options);
        Ok(p)
    }

    fn scan(&mut self) -> Result<()> {
        let words = Arc::clone(&self.words);
        let mut at = 5;
        let mut groups = Vec::new();
        let mut decorated = false;
        let mut function: Option<FuncDef> = None;
        while at < words.len() {
            let inst = inst_at(&words, at)?;
            at += inst.words.len() + 1;
            if let Some(f) = &mut function {
                match inst.op {
                    Some(Op::FunctionEnd) => {
                        f.end = at;
                        self.funcs.extend(function.take());
                    }
                    Some(Op::FunctionParameter) => {
                        f.params.push(inst.word(1).map_err(|e| inst.blame(e))?)
                    }
                    Some(Op::Label) => f.has_body = true,
                    Some(Op::Function) => {
                        return Err(
                            inst.blame(LowerError::invalid("a function begins inside another"))
                        )
                    }
                    _ => {}
                }
                continue;
            }
            if !decorated
                && !matches!(inst.op, Some(Op::Decorate | Op::MemberDecorate))
                && is_type(inst.op)
            {
                self.decorations.sort(&groups);
                decorated = true;
            }
            if inst.op == Some(Op::Function) {
                if !decorated {
                    self.decorations.sort(&groups);
                    decorated = true;
                }
                function = Some(self.function(&inst).map_err(|e| inst.blame(e))?);
                continue;
            }
            if inst.op == Some(Op::GroupDecorate) {
                groups.push(inst.words);
                continue;
            }
            self.global_inst(&inst).map_err(|e| inst.blame(e))?;
        }
        match function {
            Some(f) => Err(LowerError::invalid(format!(
                "the function %{} does not end",
                f.id
            ))),
            None => Ok(()),
        }
    }

    fn define(&mut self, id: u32, def: Def) -> Result<()> {
        let bound = self.bound;
        let slot = self
            .defs
            .get_mut(id as usize)
            .filter(|_| id != 0)
            .ok_or_else(|| {
                LowerError::invalid(format!("the id %{id} is not below the bound {bound}"))
            })?;
        if *slot != Def::None {
            return Err(LowerError::invalid(format!(
                "the id %{id} is defined twice"
            )));
        }
        *slot = def;
        Ok(())
    }

    fn global_inst(&mut self, inst: &Instruction) -> Result<()> {
        let Some(op) = inst.op else {
            return Err(LowerError::unsupported("the instruction is not known"));
        };
        match op {
            Op::ExtInstImport => {
                let (name, _) = inst.string(1)?;
                let set = if name == "OpenCL.std" {
                    ExtSet::OpenCl
                } else if name.starts_with("NonSemantic.")
                    || name.contains("Debug")
                    || name.contains("debug")
                {
                    ExtSet::NonSemantic
                } else {
                    ExtSet::Unknown
                };
                self.define(inst.word(0)?, Def::ExtSet(set))
            }
            Op::MemoryModel => match (inst.word(0)?, inst.word(1)?) {
                (2, 2) => Ok(()),
                (1, _) => Err(LowerError::unsupported(
                    "32-bit addresses (compile for spir64 or spirv64)",
                )),
                (a, m) => Err(LowerError::unsupported(format!(
                    "addressing model {a} with memory model {m}"
                ))),
            },
            Op::EntryPoint => {
                if inst.word(0)? != spirv::ExecutionModel::Kernel as u32 {
                    return Err(LowerError::unsupported(
                        "an entry point that is not a kernel",
                    ));
                }
                let (name, _) = inst.string(2)?;
                self.entry_of
                    .entry(inst.word(1)?)
                    .or_insert(self.entries.len() as u32);
                self.entries.push(EntryDef {
                    func: inst.word(1)?,
                    name,
                });
                Ok(())
            }
            Op::ExecutionMode | Op::ExecutionModeId => {
                inst.word(1)?;
                self.modes.push((inst.word(0)?, inst.at));
                Ok(())
            }
            Op::String => {
                let (text, _) = inst.string(1)?;
                self.strings.push((inst.word(0)?, text));
                self.define(inst.word(0)?, Def::Ignored)
            }
            Op::Name => {
                self.names.insert(inst.word(0)?, inst.at);
                Ok(())
            }
            Op::Decorate | Op::DecorateId | Op::DecorateString => {
                self.decorations.push(Deco {
                    target: inst.word(0)?,
                    kind: inst.word(1)?,
                    at: (inst.at + 3) as u32,
                    len: inst.words.len() as u32 - 2,
                });
                Ok(())
            }
            Op::Variable | Op::UntypedVariableKHR => self.variable(inst, op),
            op if is_type(Some(op)) => self.add_type(inst, op),
            op if is_const(op) => {
                let ty = self.ty(inst.word(0)?)?;
                let is_storage =
                    matches!(self.types.get(ty).kind, Kind::Opaque(Opaque::PipeStorage));
                if op == Op::ConstantPipeStorage && !is_storage {
                    return Err(LowerError::invalid("its type is not that of pipe storage"));
                }
                let index = self.consts.len() as u32;
                let mut def = ConstDef {
                    at: inst.at,
                    op,
                    ty,
                    value: None,
                };
                if op == Op::SpecConstantOp {
                    def.value = Some(match self.eval_spec_op(inst, ty) {
                        Ok(lanes) => Ok(lanes),
                        Err(LowerError::Unsupported { what, .. }) => Err(what),
                        Err(e) => return Err(e),
                    });
                } else if !matches!(self.types.get(ty).kind, Kind::Scalar(_)) || op == Op::Undef {
                    // Looked at where it is used.
                } else {
                    self.scalar_bits(&def)?;
                }
                self.consts.push(def);
                self.define(inst.word(1)?, Def::Const(index))
            }
            // Members of structures may name the pointer before what it points to is known; OpTypePointer adds that.
            Op::TypeForwardPointer => {
                let id = inst.word(0)?;
                let kind = Kind::Pointer {
                    space: space_of(inst.word(1)?)?,
                    pointee: 0,
                };
                let ty = self.types.add(id, kind, false)?;
                self.define(id, Def::Type(ty))
            }
            Op::DecorationGroup => self.define(inst.word(0)?, Def::Ignored),
            Op::AliasDomainDeclINTEL | Op::AliasScopeDeclINTEL | Op::AliasScopeListDeclINTEL => {
                self.define(inst.word(0)?, Def::Ignored)
            }
            Op::ExtInst | Op::ExtInstWithForwardRefsKHR => {
                let set = self
                    .defs
                    .get(inst.word(2)? as usize)
                    .copied()
                    .unwrap_or_default();
                match set {
                    Def::ExtSet(ExtSet::NonSemantic) => self.define(inst.word(1)?, Def::Ignored),
                    _ => Err(LowerError::invalid(
                        "an extended instruction outside a function",
                    )),
                }
            }
            Op::Capability
            | Op::Extension
            | Op::Source
            | Op::SourceContinued
            | Op::SourceExtension
            | Op::MemberName
            | Op::Line
            | Op::NoLine
            | Op::ModuleProcessed
            | Op::MemberDecorate
            | Op::MemberDecorateString
            | Op::GroupMemberDecorate
            | Op::Nop
            | Op::ConstantCompositeContinuedINTEL
            | Op::SpecConstantCompositeContinuedINTEL
            | Op::TypeStructContinuedINTEL => Ok(()),
            Op::AsmTargetINTEL | Op::AsmINTEL => Err(LowerError::unsupported("inline assembly")),
            _ => Err(LowerError::invalid(
                "this instruction may not stand outside a function",
            )),
        }
    }

    fn function(&mut self, inst: &Instruction) -> Result<FuncDef> {
        let (ret, id, ty) = (
            self.ty(inst.word(0)?)?,
            inst.word(1)?,
            self.ty(inst.word(3)?)?,
        );
        match &self.types.get(ty).kind {
            Kind::Function { ret: r, .. } if *r == ret => {}
            _ => return Err(LowerError::invalid("its function type does not fit")),
        }
        let def = Def::Func(self.funcs.len() as u32);
        self.define(id, def)?;
        Ok(FuncDef {
            id,
            ret,
            ty,
            params: Vec::new(),
            start: inst.at,
            end: inst.at,
            has_body: false,
        })
    }

    /// Returns the type that an id names.
    pub fn ty(&self, id: u32) -> Result<TyId> {
        match self.defs.get(id as usize) {
            Some(Def::Type(ty)) => Ok(*ty),
            _ => Err(LowerError::invalid(format!("%{id} is not a type"))),
        }
    }

    fn add_type(&mut self, inst: &Instruction, op: Op) -> Result<()> {
        let words = Arc::clone(&self.words);
        let id = inst.word(0)?;
        let kind = match op {
            Op::TypeVoid => Kind::Void,
            Op::TypeBool => Kind::Scalar(Type::Bool),
            Op::TypeInt => {
                let bits = inst.word(1)?;
                let held = match bits {
                    2..=64 => Type::int(bits.next_power_of_two().max(8)),
                    _ => None,
                };
                Kind::Scalar(
                    held.ok_or_else(|| LowerError::unsupported(format!("{bits}-bit integers")))?,
                )
            }
            Op::TypeFloat => {
                let bits = inst.word(1)?;
                Kind::Scalar(match inst.word(2).map(FPEncoding::from_u32) {
                    Err(_) => Type::float(bits)
                        .ok_or_else(|| LowerError::unsupported(format!("{bits}-bit floats")))?,
                    Ok(Some(FPEncoding::BFloat16KHR)) if bits == 16 => Type::I16,
                    Ok(_) => {
                        return Err(LowerError::unsupported("the encoding of a float type"));
                    }
                })
            }
            Op::TypeVector => Kind::Vector {
                elem: self.ty(inst.word(1)?)?,
                n: inst.word(2)?,
            },
            Op::TypeArray => {
                let elem = self.ty(inst.word(1)?)?;
                let len = inst.word(2)?;
                let len = self.const_u64(len).ok_or_else(|| {
                    LowerError::invalid(format!("the length %{len} is not an integer constant"))
                })?;
                Kind::Array { elem, len }
            }
            Op::TypeStruct => {
                let mut members = inst
                    .rest(1)
                    .iter()
                    .map(|&m| self.ty(m))
                    .collect::<Result<Vec<_>>>()?;
                let mut next = inst.at + inst.words.len() + 1;
                while let Ok(more) = inst_at(&words, next) {
                    if more.op != Some(Op::TypeStructContinuedINTEL) {
                        break;
                    }
                    for &m in more.words {
                        members.push(self.ty(m)?);
                    }
                    next += more.words.len() + 1;
                }
                Kind::Struct {
                    members,
                    offsets: Vec::new(),
                    lanes: Vec::new(),
                }
            }
            // Of functions: harmless where nothing is done with it.
            Op::TypePointer if inst.word(1)? == StorageClass::CodeSectionINTEL as u32 => {
                Kind::Opaque(Opaque::Other)
            }
            Op::TypePointer | Op::TypeUntypedPointerKHR => {
                let class = inst.word(1)?;
                let pointee = if op == Op::TypePointer {
                    inst.word(2)?
                } else {
                    0
                };
                Kind::Pointer {
                    space: space_of(class)?,
                    pointee,
                }
            }
            Op::TypeFunction => Kind::Function {
                ret: self.ty(inst.word(1)?)?,
                params: inst
                    .rest(2)
                    .iter()
                    .map(|&m| self.ty(m))
                    .collect::<Result<Vec<_>>>()?,
            },
            Op::TypeImage => {
                let sampled = self.ty(inst.word(1)?)?;
                if !matches!(self.types.get(sampled).kind, Kind::Void) {
                    return Err(LowerError::invalid(
                        "the sampled type of an image is void in OpenCL",
                    ));
                }
                if inst.word(6)? != 0 || inst.word(7)? != spirv::ImageFormat::Unknown as u32 {
                    return Err(LowerError::invalid(
                        "the format of an image is not known before run time in OpenCL",
                    ));
                }
                Kind::Opaque(Opaque::Image {
                    dim: inst.word(2)?,
                    depth: inst.word(3)? == 1,
                    arrayed: inst.word(4)? == 1,
                    multisampled: inst.word(5)? == 1,
                    access: inst.word(8).unwrap_or(0),
                })
            }
            // An image and a sampler: two handles.
            Op::TypeSampledImage => {
                let image = self.ty(inst.word(1)?)?;
                if !matches!(
                    self.types.get(image).kind,
                    Kind::Opaque(Opaque::Image { .. })
                ) {
                    return Err(LowerError::invalid("its operand is not an image type"));
                }
                Kind::Struct {
                    members: vec![image, image],
                    offsets: Vec::new(),
                    lanes: Vec::new(),
                }
            }
            Op::TypeSampler => Kind::Opaque(Opaque::Sampler),
            Op::TypeEvent => Kind::Opaque(Opaque::Event),
            Op::TypePipe => Kind::Opaque(Opaque::Pipe {
                access: inst.word(1)?,
            }),
            // Kernels may keep them in memory. Their bits: [`crate::pipe`].
            Op::TypeReserveId => Kind::Scalar(Type::I64),
            Op::TypeQueue => Kind::Opaque(Opaque::Queue),
            Op::TypeDeviceEvent => Kind::Opaque(Opaque::DeviceEvent),
            Op::TypePipeStorage => Kind::Opaque(Opaque::PipeStorage),
            Op::TypeOpaque | Op::TypeNamedBarrier => Kind::Opaque(Opaque::Other),
            _ => return Err(LowerError::unsupported("no type of OpenCL kernels")),
        };
        if let (&Kind::Pointer { space, pointee }, Ok(ty)) = (&kind, self.ty(id)) {
            return self.types.complete(ty, space, pointee);
        }
        let packed = self.decorations.get(id, Decoration::CPacked).is_some();
        let ty = self.types.add(id, kind, packed)?;
        if let (Op::TypeInt, Some(held)) = (op, self.types.scalar(ty)) {
            let width = inst.word(1)?;
            if width != held.bits() {
                self.types.set_odd(ty, width);
            }
        }
        if let (Op::TypeFloat, Some(Type::I16)) = (op, self.types.scalar(ty)) {
            self.types.set_bfloat(ty);
        }
        self.define(id, Def::Type(ty))
    }

    fn variable(&mut self, inst: &Instruction, op: Op) -> Result<()> {
        let (ty, id, class) = (self.ty(inst.word(0)?)?, inst.word(1)?, inst.word(2)?);
        let Kind::Pointer { space, pointee, .. } = self.types.get(ty).kind else {
            return Err(LowerError::invalid("its type is not a pointer"));
        };
        // LLVM's lists of what `__attribute__((used))` keeps: nothing but a note for linkers.
        if let Some(("llvm.used" | "llvm.compiler.used", _)) = self
            .decorations
            .linkage(id)
            .as_ref()
            .map(|(name, l)| (name.as_str(), l))
        {
            return self.define(id, Def::Ignored);
        }
        if space_of(class)? != space {
            return Err(LowerError::invalid(
                "its storage class is not that of its type",
            ));
        }
        let (data, init) = if op == Op::Variable {
            (self.ty(pointee)?, inst.word(3).unwrap_or(0))
        } else {
            (self.ty(inst.word(3)?)?, inst.word(4).unwrap_or(0))
        };
        let builtin = self.decorations.word(id, Decoration::BuiltIn);
        if builtin.is_none() && !matches!(space, Space::Global | Space::Constant | Space::Local) {
            return Err(LowerError::invalid(format!(
                "a variable of module scope in storage class {class}"
            )));
        }
        let index = self.vars.len() as u32;
        self.vars.push(VarDef {
            id,
            ty,
            data,
            init,
            builtin,
            space,
        });
        self.define(id, Def::Var(index))
    }

    /// Returns the instruction at a word.
    pub fn inst(&self, at: usize) -> Result<Instruction<'_>> {
        inst_at(&self.words, at)
    }

    /// Returns a hash of the module, by which it differs from others.
    pub fn hash(&self) -> u64 {
        use std::hash::Hasher;
        let mut hasher = rustc_hash::FxHasher::default();
        self.words.iter().for_each(|&word| hasher.write_u32(word));
        hasher.finish()
    }

    /// Returns the alignment of a variable by its decorations, a power of two.
    pub fn alignment(&self, id: u32) -> Option<u32> {
        self.word_or_const(id, Decoration::Alignment, Decoration::AlignmentId)
            .filter(|a| a.is_power_of_two())
    }

    /// Returns the bytes that may be accessed through a pointer by its decorations.
    pub fn max_byte_offset(&self, id: u32) -> Option<u32> {
        self.word_or_const(id, Decoration::MaxByteOffset, Decoration::MaxByteOffsetId)
    }

    /// Returns the operand of a decoration of an id, or the constant that another one names.
    fn word_or_const(&self, id: u32, literal: Decoration, by_id: Decoration) -> Option<u32> {
        match self.decorations.word(id, literal) {
            Some(word) => Some(word),
            None => u32::try_from(self.const_u64(self.decorations.word(id, by_id)?)?).ok(),
        }
    }

    /// Returns the name of an id (OpName), or an empty string.
    pub fn name(&self, id: u32) -> String {
        let name = self
            .names
            .get(&id)
            .and_then(|&at| self.inst(at).ok()?.string(1).ok());
        name.map(|n| n.0).unwrap_or_default()
    }

    /// Returns the value that the application gave for a specialisation constant.
    pub fn spec_value(&self, spec_id: u32) -> Option<u64> {
        let bytes = self.spec_values.get(&spec_id)?;
        Some(
            bytes
                .iter()
                .take(8)
                .rev()
                .fold(0, |acc, &b| acc << 8 | u64::from(b)),
        )
    }

    fn find_default_fp(&self, options: &ReadOptions) -> FpFlags {
        let mode = |at: usize| self.inst(at).ok().and_then(|i| i.word(1).ok());
        let mut flags: Option<u8> = None;
        for &(_, at) in &self.modes {
            match mode(at) {
                Some(m) if m == spirv::ExecutionMode::ContractionOff as u32 => {
                    return FpFlags::default()
                }
                Some(m) if m == spirv::ExecutionMode::FPFastMathDefault as u32 => {
                    let id = self.inst(at).ok().and_then(|i| i.word(3).ok()).unwrap_or(0);
                    let mask = self.const_u64(id).unwrap_or(0);
                    flags = Some(flags.unwrap_or(FpFlags::FAST) & fp_flags(mask as u32).0);
                }
                _ => {}
            }
        }
        match flags {
            Some(flags) => FpFlags(flags),
            None if options.library => FpFlags::default(),
            None => FpFlags(FpFlags::CONTRACT),
        }
    }
}

/// Converts SPIR-V fast-math bits.
pub(super) fn fp_flags(mask: u32) -> FpFlags {
    let mut flags = (mask & 15) as u8;
    if mask & 0x10 != 0 {
        flags |= FpFlags::FAST;
    }
    if mask & 0x5_0000 != 0 {
        flags |= FpFlags::CONTRACT;
    }
    if mask & 0x6_0000 != 0 {
        flags |= FpFlags::REASSOC;
    }
    FpFlags(flags)
}

/// Returns the address space of a storage class.
pub(super) fn space_of(class: u32) -> Result<Space> {
    Ok(match class {
        0 => Space::Constant,
        4 => Space::Local,
        5 | 5936 | 5937 => Space::Global,
        1 | 6 | 7 => Space::Private,
        8 => Space::Generic,
        _ => return Err(LowerError::unsupported(format!("storage class {class}"))),
    })
}

fn is_type(op: Option<Op>) -> bool {
    op.is_some_and(|op| {
        let code = op as u32;
        ((19..=38).contains(&code)
            || matches!(
                op,
                Op::TypePipeStorage | Op::TypeNamedBarrier | Op::TypeUntypedPointerKHR
            ))
            && op != Op::TypeForwardPointer
    })
}

fn is_const(op: Op) -> bool {
    use Op::*;
    matches!(
        op,
        ConstantTrue
            | ConstantFalse
            | Constant
            | ConstantComposite
            | ConstantSampler
            | ConstantNull
            | SpecConstantTrue
            | SpecConstantFalse
            | SpecConstant
            | SpecConstantComposite
            | SpecConstantOp
            | Undef
            | ConstantPipeStorage
            | ConstantFunctionPointerINTEL
    )
}
