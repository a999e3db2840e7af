//! Textual KIR. `Display` of [`Module`] and [`Function`] is complete and deterministic: blocks are numbered in layout
//! order and values in the order in which they are printed, so that the text does not depend on how a pass got there.
//! [`raw`] keeps the numbers of the data structure instead, for use beside verifier messages. `parse` reads it back.
//!
//! Uses of blocks that are not in the layout and of values that no printed instruction defines are broken IR; they
//! print as `block?N` and `v?N`.

use super::entity::{Block, Entity, FuncId, Inst, SecondaryMap, Value};
use super::fold::sext;
use super::function::{Edge, FpFlags, Function, Linkage, Merge, Storage, Terminator};
use super::module::{EntryPoint, Global, KernelParam, Module, ParamKind, PrintfArg};
use super::names::{op_text, Name};
use super::op::Op;
use super::types::Type;
use crate::interface::{AccessQualifier, AddressQualifier, ImageDim, KernelRole};
use std::fmt::{self, Display, Formatter, Write};

impl Display for Type {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Display for Op {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&op_text(*self))
    }
}

pub(crate) const FP_FLAGS: [(u8, &str); 6] = [
    (FpFlags::NNAN, "nnan"),
    (FpFlags::NINF, "ninf"),
    (FpFlags::NSZ, "nsz"),
    (FpFlags::ARCP, "arcp"),
    (FpFlags::CONTRACT, "contract"),
    (FpFlags::REASSOC, "reassoc"),
];

impl Name for Linkage {
    const NAMES: &'static [(Self, &'static str)] = &[
        (Linkage::Internal, "internal"),
        (Linkage::Export, "export"),
        (Linkage::Import, "import"),
        (Linkage::LinkOnce, "linkonce"),
    ];
}

impl Name for ImageDim {
    const NAMES: &'static [(Self, &'static str)] = &[
        (Self::D1, "1d"),
        (Self::D1Array, "1d_array"),
        (Self::Buffer, "1d_buffer"),
        (Self::D2, "2d"),
        (Self::D2Array, "2d_array"),
        (Self::D3, "3d"),
    ];
}

impl Name for AddressQualifier {
    const NAMES: &'static [(Self, &'static str)] = &[
        (AddressQualifier::Global, "global"),
        (AddressQualifier::Local, "local"),
        (AddressQualifier::Constant, "constant"),
        (AddressQualifier::Private, "private"),
    ];
}

impl Name for AccessQualifier {
    const NAMES: &'static [(Self, &'static str)] = &[
        (AccessQualifier::None, "none"),
        (AccessQualifier::ReadOnly, "read_only"),
        (AccessQualifier::WriteOnly, "write_only"),
        (AccessQualifier::ReadWrite, "read_write"),
    ];
}

/// A quoted string: printable ASCII as it is, other bytes as `\hh`.
struct Quoted<'a>(&'a [u8]);

impl Display for Quoted<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for &byte in self.0 {
            match byte {
                b'"' | b'\\' | 0..=0x1f | 0x7f.. => write!(f, "\\{byte:02x}")?,
                _ => f.write_char(byte as char)?,
            }
        }
        f.write_char('"')
    }
}

/// Writes items separated by commas.
fn list<T>(
    f: &mut Formatter<'_>,
    items: impl IntoIterator<Item = T>,
    mut item: impl FnMut(&mut Formatter<'_>, T) -> fmt::Result,
) -> fmt::Result {
    for (i, x) in items.into_iter().enumerate() {
        if i > 0 {
            f.write_str(", ")?;
        }
        item(f, x)?;
    }
    Ok(())
}

/// Names of the blocks and values of one function. 0: not numbered; otherwise the number plus one.
struct Names {
    blocks: SecondaryMap<Block, u32>,
    values: SecondaryMap<Value, u32>,
}

impl Names {
    fn dense(func: &Function) -> Self {
        let mut names = Self {
            blocks: SecondaryMap::new(),
            values: SecondaryMap::new(),
        };
        let mut next = 0;
        for (i, &block) in func.layout.iter().enumerate() {
            names.blocks[block] = i as u32 + 1;
            let Some(data) = func.blocks.get(block) else {
                continue;
            };
            let results = data
                .insts
                .iter()
                .filter_map(|&i| func.insts.get(i))
                .flat_map(|i| i.results.iter());
            for &value in data.params.iter().chain(results) {
                if names.values[value] == 0 {
                    next += 1;
                    names.values[value] = next;
                }
            }
        }
        names
    }

    fn raw(func: &Function) -> Self {
        let mut names = Self::dense(func);
        for &block in &func.layout {
            names.blocks[block] = block.index() as u32 + 1;
        }
        for value in func.values.keys() {
            if names.values[value] != 0 {
                names.values[value] = value.index() as u32 + 1;
            }
        }
        names
    }

    fn value(&self, f: &mut Formatter<'_>, value: Value) -> fmt::Result {
        match self.values[value] {
            0 => write!(f, "v?{}", value.index()),
            n => write!(f, "v{}", n - 1),
        }
    }

    fn block(&self, f: &mut Formatter<'_>, block: Block) -> fmt::Result {
        match self.blocks[block] {
            0 => write!(f, "block?{}", block.index()),
            n => write!(f, "block{}", n - 1),
        }
    }

    fn target(&self, f: &mut Formatter<'_>, target: &Edge) -> fmt::Result {
        self.block(f, target.block)?;
        if !target.args.is_empty() {
            f.write_char('(')?;
            list(f, &target.args, |f, &v| self.value(f, v))?;
            f.write_char(')')?;
        }
        Ok(())
    }
}

fn float_comment(ty: Type, bits: u64) -> Option<String> {
    match ty {
        Type::F32 => Some(format!("{:?}", f32::from_bits(bits as u32))),
        Type::F64 => Some(format!("{:?}", f64::from_bits(bits))),
        _ => None,
    }
}

fn write_inst(f: &mut Formatter<'_>, func: &Function, names: &Names, inst: Inst) -> fmt::Result {
    let Some(data) = func.insts.get(inst) else {
        return write!(f, "?{inst}");
    };
    if !data.results.is_empty() {
        list(f, &data.results, |f, &v| names.value(f, v))?;
        f.write_str(" = ")?;
    }
    f.write_str(&op_text(data.op))?;
    if data.fp.0 != 0 {
        f.write_char('[')?;
        list(
            f,
            FP_FLAGS.iter().filter(|(bit, _)| data.fp.has(*bit)),
            |f, (_, name)| f.write_str(name),
        )?;
        f.write_char(']')?;
    }
    let result = data
        .results
        .first()
        .and_then(|&v| func.values.get(v))
        .map(|v| v.ty);
    let mut comment = None;
    match (data.op, result) {
        (Op::Const(bits), Some(ty)) if ty.is_float() => {
            write!(f, " {bits:#x}")?;
            comment = float_comment(ty, bits);
        }
        (Op::Const(bits), Some(ty)) if ty.is_int() => {
            write!(f, " {}", sext(ty, bits))?;
        }
        (Op::Const(bits), _) => write!(f, " {bits}")?,
        (Op::GlobalAddr(g), _) => write!(f, " {g}")?,
        _ => {}
    }
    if !data.args.is_empty() {
        f.write_char(' ')?;
        list(f, &data.args, |f, &v| names.value(f, v))?;
    }
    if !data.results.is_empty() {
        f.write_str(" : ")?;
        list(f, &data.results, |f, &v| match func.values.get(v) {
            Some(data) => write!(f, "{}", data.ty),
            None => f.write_str("?"),
        })?;
    }
    if data.line != 0 {
        write!(f, " @{}", data.line)?;
    }
    if let Some(comment) = comment {
        write!(f, " ; {comment}")?;
    }
    Ok(())
}

fn write_term(f: &mut Formatter<'_>, names: &Names, term: &Terminator) -> fmt::Result {
    match term {
        Terminator::Jump(t) => {
            f.write_str("jump ")?;
            names.target(f, t)
        }
        Terminator::Branch(v, a, b) => {
            f.write_str("br ")?;
            names.value(f, *v)?;
            f.write_str(", ")?;
            names.target(f, a)?;
            f.write_str(", ")?;
            names.target(f, b)
        }
        Terminator::Switch(v, cases, default) => {
            f.write_str("switch ")?;
            names.value(f, *v)?;
            f.write_str(", [")?;
            list(f, cases, |f, (value, target)| {
                write!(f, "{value}: ")?;
                names.target(f, target)
            })?;
            f.write_str("], ")?;
            names.target(f, default)
        }
        Terminator::Return(values) => {
            f.write_str("return")?;
            if !values.is_empty() {
                f.write_char(' ')?;
            }
            list(f, values, |f, &v| names.value(f, v))
        }
        Terminator::Unreachable => f.write_str("unreachable"),
    }
}

fn write_function(
    f: &mut Formatter<'_>,
    id: Option<FuncId>,
    func: &Function,
    names: &Names,
) -> fmt::Result {
    write!(
        f,
        "func {} {}",
        id.unwrap_or(FuncId::new(0)),
        Quoted(func.name.as_bytes())
    )?;
    if func.linkage != Linkage::Internal {
        write!(f, " {}", func.linkage.name())?;
    }
    f.write_str(" (")?;
    list(f, &func.params, |f, t| write!(f, "{t}"))?;
    f.write_str(") -> (")?;
    list(f, &func.results, |f, t| write!(f, "{t}"))?;
    f.write_char(')')?;
    if func.structure.is_some() {
        f.write_str(" structured")?;
    }
    if func.layout.is_empty() && func.vars.is_empty() {
        return f.write_str("\n");
    }
    f.write_str(" {\n")?;
    for (var, data) in func.vars.iter() {
        let storage = match data.storage {
            Storage::Workgroup => "workgroup",
            Storage::Function => "function",
        };
        let volatile = if data.volatile { "volatile " } else { "" };
        write!(f, "  {var} = {storage} {volatile}{}", data.elem)?;
        if data.lanes != 1 {
            write!(f, " by {}", data.lanes)?;
        }
        write!(f, " [{}", data.len.fixed)?;
        for spec in &data.len.spec {
            write!(f, ", spec {spec}")?;
        }
        f.write_char(']')?;
        if let Some(alias) = data.alias {
            write!(f, " alias {alias}")?;
        }
        f.write_char('\n')?;
    }
    for &block in &func.layout {
        let Some(data) = func.blocks.get(block) else {
            writeln!(f, "?{block}:")?;
            continue;
        };
        names.block(f, block)?;
        if !data.params.is_empty() {
            f.write_char('(')?;
            list(f, &data.params, |f, &v| {
                names.value(f, v)?;
                match func.values.get(v) {
                    Some(data) => write!(f, ": {}", data.ty),
                    None => f.write_str(": ?"),
                }
            })?;
            f.write_char(')')?;
        }
        f.write_char(':')?;
        match func.structure.as_ref().and_then(|s| s.merges[block]) {
            None => {}
            Some(Merge::Selection { merge }) => {
                f.write_str(" selection ")?;
                names.block(f, merge)?;
            }
            Some(Merge::Loop { merge, cont }) => {
                f.write_str(" loop ")?;
                names.block(f, merge)?;
                f.write_str(", ")?;
                names.block(f, cont)?;
            }
        }
        f.write_char('\n')?;
        for &inst in &data.insts {
            f.write_str("  ")?;
            write_inst(f, func, names, inst)?;
            f.write_char('\n')?;
        }
        f.write_str("  ")?;
        write_term(f, names, &data.term)?;
        f.write_char('\n')?;
    }
    f.write_str("}\n")
}

fn write_global(f: &mut Formatter<'_>, global: &Global) -> fmt::Result {
    f.write_str(&Quoted(global.name.as_bytes()).to_string())?;
    if global.linkage != Linkage::Internal {
        write!(f, " {}", global.linkage.name())?;
    }
    write!(
        f,
        " {} size {} align {}",
        global.space.map_or("none", Name::name),
        global.size,
        global.align
    )?;
    if let Some(init) = &global.init {
        f.write_str(" init x\"")?;
        for byte in init {
            write!(f, "{byte:02x}")?;
        }
        f.write_char('"')?;
    }
    if !global.relocs.is_empty() {
        f.write_str(" reloc [")?;
        list(f, &global.relocs, |f, r| {
            write!(f, "{}: {} {}", r.offset, r.target, r.addend as i64)
        })?;
        f.write_char(']')?;
    }
    f.write_char('\n')
}

fn write_kernel_param(f: &mut Formatter<'_>, param: &KernelParam) -> fmt::Result {
    match param.kind {
        ParamKind::Value { ty, count, size } => write!(f, "value {ty} count {count} size {size}")?,
        ParamKind::ByVal { size, align } => write!(f, "byval size {size} align {align}")?,
        ParamKind::Pointer(space) => write!(f, "pointer {}", space.name())?,
        ParamKind::Image { dim, depth } => {
            let word = if depth { "depth_image" } else { "image" };
            write!(f, "{word} {}", dim.name())?;
        }
        ParamKind::Sampler => f.write_str("sampler")?,
        ParamKind::Pipe => f.write_str("pipe")?,
        ParamKind::Queue => f.write_str("queue")?,
    }
    write!(
        f,
        " {} {} {} {}",
        Quoted(param.name.as_bytes()),
        Quoted(param.type_name.as_bytes()),
        param.address.name(),
        param.access.name()
    )?;
    for (set, word) in [
        (param.is_const, "const"),
        (param.is_restrict, "restrict"),
        (param.is_volatile, "volatile"),
    ] {
        if set {
            write!(f, " {word}")?;
        }
    }
    if let Some(size) = param.max_size {
        write!(f, " max_size {size}")?;
    }
    Ok(())
}

fn write_kernel(f: &mut Formatter<'_>, kernel: &EntryPoint) -> fmt::Result {
    write!(
        f,
        "kernel {} {}",
        Quoted(kernel.name.as_bytes()),
        kernel.func
    )?;
    if kernel.contraction_off {
        f.write_str(" contraction_off")?;
    }
    let a = &kernel.attributes;
    f.write_str(match a.role {
        KernelRole::Ordinary => "",
        KernelRole::Initializer => " initializer",
        KernelRole::Finalizer => " finalizer",
        KernelRole::Block => " block",
    })?;
    for (word, size) in [
        ("reqd", a.required_work_group_size),
        ("hint", a.work_group_size_hint),
    ] {
        if let Some([x, y, z]) = size {
            write!(f, " {word} {x} {y} {z}")?;
        }
    }
    if let Some(hint) = &a.vec_type_hint {
        write!(f, " vec_type_hint {}", Quoted(hint.as_bytes()))?;
    }
    if let Some(size) = a.required_sub_group_size {
        write!(f, " sub_group_size {size}")?;
    }
    if let Some(count) = a.required_sub_groups {
        write!(f, " sub_groups {count}")?;
    }
    if a.zero_local {
        f.write_str(" zero_local")?;
    }
    if kernel.params.is_empty() {
        return f.write_str(" {}\n");
    }
    f.write_str(" {\n")?;
    for param in &kernel.params {
        f.write_str("  ")?;
        write_kernel_param(f, param)?;
        f.write_char('\n')?;
    }
    f.write_str("}\n")
}

impl Display for Function {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write_function(f, None, self, &Names::dense(self))
    }
}

impl Display for Module {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (id, global) in self.globals.iter() {
            write!(f, "global {id} ")?;
            write_global(f, global)?;
        }
        for (i, site) in self.printfs.iter().enumerate() {
            write!(f, "printf {i} {} [", Quoted(&site.format))?;
            list(f, &site.args, |f, arg| match arg {
                PrintfArg::Value { ty, lanes } => write!(f, "{ty} {lanes}"),
                PrintfArg::Text(text) => write!(f, "{}", Quoted(text)),
                PrintfArg::String => f.write_str("string"),
            })?;
            f.write_str("]\n")?;
        }
        for kernel in &self.kernels {
            write_kernel(f, kernel)?;
        }
        for (id, func) in self.functions.iter() {
            write_function(f, Some(id), func, &Names::dense(func))?;
        }
        Ok(())
    }
}

/// Displays a function with the numbers that blocks and values have in the data structure.
pub fn raw(func: &Function) -> impl Display + '_ {
    struct Raw<'a>(&'a Function);
    impl Display for Raw<'_> {
        fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
            write_function(f, None, self.0, &Names::raw(self.0))
        }
    }
    Raw(func)
}

/// Displays one instruction with the numbers of the data structure, for messages.
pub fn raw_inst(func: &Function, inst: Inst) -> impl Display + '_ {
    struct RawInst<'a>(&'a Function, Inst);
    impl Display for RawInst<'_> {
        fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
            let Some(data) = self.0.insts.get(self.1) else {
                return write!(f, "?{}", self.1);
            };
            let mut names = Names {
                blocks: SecondaryMap::new(),
                values: SecondaryMap::new(),
            };
            for &v in data.args.iter().chain(&data.results) {
                names.values[v] = v.index() as u32 + 1;
            }
            write_inst(f, self.0, &names, self.1)
        }
    }
    RawInst(func, inst)
}
