//! Reads textual KIR, as `print` writes it (which is the authority on the syntax).
//!
//! Line breaks end instructions; `;` starts a comment. Names of values and blocks are numbers in any order and local
//! to a function; functions, globals and printf sites must be numbered from 0 in order of appearance. The result is
//! well formed as data (all references are in range) but not verified: see `verify`.

mod lexer;

use lexer::{error, Lexer, Token};

use crate::error::{LowerError, Result};
use crate::interface::{AccessQualifier, AddressQualifier, KernelAttributes, KernelRole};
use crate::ir::entity::{Block, Entity, FuncId, GlobalId, Inst, Value};
use crate::ir::function::{
    BlockData, Edge, FpFlags, Function, InstData, Linkage, Merge, Storage, Structure, Terminator,
    ValueData, ValueDef, Values, VarData, VarLen,
};
use crate::ir::module::{
    EntryPoint, Global, GlobalReloc, KernelParam, Module, ParamKind, PrintfArg, PrintfSite,
};
use crate::ir::names::{parse_op, Name};
use crate::ir::op::Op;
use crate::ir::print::FP_FLAGS;
use crate::ir::types::{Space, Type};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

struct Parser {
    tokens: Vec<(Token, usize)>,
    at: usize,
}

impl Parser {
    fn new(text: &str) -> Result<Self> {
        let mut lexer = Lexer {
            bytes: text.as_bytes(),
            at: 0,
            line: 1,
        };
        let mut tokens = Vec::new();
        while let Some(token) = lexer.next()? {
            tokens.push(token);
        }
        Ok(Self { tokens, at: 0 })
    }
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at).map(|t| &t.0)
    }
    fn line(&self) -> usize {
        let last = self.tokens.len().saturating_sub(1);
        self.tokens.get(self.at.min(last)).map_or(1, |t| t.1)
    }
    fn error(&self, what: impl std::fmt::Display) -> LowerError {
        error(self.line(), what)
    }
    /// Returns true if the next token is on the line of the last one.
    fn same_line(&self) -> bool {
        match (
            self.at.checked_sub(1).and_then(|i| self.tokens.get(i)),
            self.tokens.get(self.at),
        ) {
            (Some(a), Some(b)) => a.1 == b.1,
            _ => false,
        }
    }
    fn is_mark(&self, mark: char) -> bool {
        self.peek() == Some(&Token::Mark(mark))
    }
    fn eat(&mut self, mark: char) -> bool {
        let found = self.is_mark(mark);
        self.at += usize::from(found);
        found
    }
    fn expect(&mut self, mark: char) -> Result<()> {
        if self.eat(mark) {
            return Ok(());
        }
        Err(self.error(format!("expected `{mark}`")))
    }
    fn peek_word(&self) -> Option<&str> {
        match self.peek() {
            Some(Token::Word(word)) => Some(word),
            _ => None,
        }
    }
    fn eat_word(&mut self, word: &str) -> bool {
        let found = self.peek_word() == Some(word);
        self.at += usize::from(found);
        found
    }
    fn expect_word(&mut self, word: &str) -> Result<()> {
        if self.eat_word(word) {
            return Ok(());
        }
        Err(self.error(format!("expected `{word}`")))
    }
    fn word(&mut self) -> Result<String> {
        match self.peek() {
            Some(Token::Word(word)) => {
                let word = word.clone();
                self.at += 1;
                Ok(word)
            }
            _ => Err(self.error("expected a word")),
        }
    }
    fn bytes_text(&mut self) -> Result<Vec<u8>> {
        match self.peek() {
            Some(Token::Text(text)) => {
                let text = text.clone();
                self.at += 1;
                Ok(text)
            }
            _ => Err(self.error("expected a string")),
        }
    }
    fn text(&mut self) -> Result<String> {
        let line = self.line();
        String::from_utf8(self.bytes_text()?).map_err(|_| error(line, "name is not UTF-8"))
    }
    /// Parses a number, decimal (perhaps negative) or hexadecimal, as 64 bits.
    fn number(&mut self) -> Result<u64> {
        let word = self.word()?;
        let value = if let Some(hex) = word.strip_prefix("0x") {
            u64::from_str_radix(hex, 16).ok()
        } else if word.starts_with('-') {
            word.parse::<i64>().ok().map(|n| n as u64)
        } else {
            word.parse().ok()
        };
        value.ok_or_else(|| {
            self.at -= 1;
            self.error(format!("`{word}` is not a number"))
        })
    }
    fn number32(&mut self) -> Result<u32> {
        let n = self.number()?;
        u32::try_from(n).map_err(|_| self.error(format!("{n} is too large")))
    }
    fn named<T: Name>(&mut self, what: &str) -> Result<T> {
        let word = self.word()?;
        T::from_name(&word).ok_or_else(|| {
            self.at -= 1;
            self.error(format!("`{word}` is not {what}"))
        })
    }
    fn ty(&mut self) -> Result<Type> {
        self.named("a type")
    }
    fn types(&mut self) -> Result<Vec<Type>> {
        self.expect('(')?;
        let mut list = Vec::new();
        while !self.eat(')') {
            if !list.is_empty() {
                self.expect(',')?;
            }
            list.push(self.ty()?);
        }
        Ok(list)
    }
    /// Returns the number of the next word, if that is `prefix` and a number.
    fn peek_entity(&self, prefix: &str) -> Option<u32> {
        self.peek_word()?.strip_prefix(prefix)?.parse().ok()
    }
    fn entity(&mut self, prefix: &str) -> Result<u32> {
        let number = self
            .peek_entity(prefix)
            .ok_or_else(|| self.error(format!("expected `{prefix}` and a number")))?;
        self.at += 1;
        Ok(number)
    }
    fn linkage(&mut self) -> Linkage {
        match self.peek_word().and_then(Linkage::from_name) {
            Some(linkage) => {
                self.at += 1;
                linkage
            }
            None => Linkage::Internal,
        }
    }

    fn global(&mut self) -> Result<Global> {
        let mut global = Global {
            name: self.text()?,
            linkage: self.linkage(),
            ..Global::default()
        };
        if !self.eat_word("none") {
            global.space = Some(self.named::<Space>("an address space")?);
        }
        self.expect_word("size")?;
        global.size = self.number()?;
        self.expect_word("align")?;
        global.align = self.number32()?;
        if self.eat_word("init") {
            match self.peek() {
                Some(Token::Bytes(bytes)) => global.init = Some(bytes.clone()),
                _ => return Err(self.error("expected x\"...\"")),
            }
            self.at += 1;
        }
        if self.eat_word("reloc") {
            self.expect('[')?;
            while !self.eat(']') {
                if !global.relocs.is_empty() {
                    self.expect(',')?;
                }
                let offset = self.number()?;
                self.expect(':')?;
                self.expect('@')?;
                let target = GlobalId::new(self.number32()? as usize);
                let addend = self.number()?;
                global.relocs.push(GlobalReloc {
                    offset,
                    target,
                    addend,
                });
            }
        }
        Ok(global)
    }

    fn printf(&mut self) -> Result<PrintfSite> {
        let format = self.bytes_text()?;
        let mut args = Vec::new();
        self.expect('[')?;
        while !self.eat(']') {
            if !args.is_empty() {
                self.expect(',')?;
            }
            args.push(match self.peek() {
                Some(Token::Text(text)) => {
                    let text = text.clone();
                    self.at += 1;
                    PrintfArg::Text(text)
                }
                Some(Token::Word(word)) if word == "string" => {
                    self.at += 1;
                    PrintfArg::String
                }
                _ => PrintfArg::Value {
                    ty: self.ty()?,
                    lanes: self.number32()?,
                },
            });
        }
        Ok(PrintfSite { format, args })
    }

    fn kernel_param(&mut self) -> Result<KernelParam> {
        let word = self.word()?;
        let kind = match word.as_str() {
            "value" => {
                let ty = self.ty()?;
                self.expect_word("count")?;
                let count = self.number32()?;
                self.expect_word("size")?;
                let size = self.number32()?;
                ParamKind::Value { ty, count, size }
            }
            "byval" => {
                self.expect_word("size")?;
                let size = self.number32()?;
                self.expect_word("align")?;
                let align = self.number32()?;
                ParamKind::ByVal { size, align }
            }
            "pointer" => ParamKind::Pointer(self.named("an address space")?),
            "image" => ParamKind::Image {
                dim: self.named("an image geometry")?,
                depth: false,
            },
            "depth_image" => ParamKind::Image {
                dim: self.named("an image geometry")?,
                depth: true,
            },
            "sampler" => ParamKind::Sampler,
            "pipe" => ParamKind::Pipe,
            "queue" => ParamKind::Queue,
            _ => return Err(self.error(format!("`{word}` is not a kind of kernel argument"))),
        };
        let mut param = KernelParam {
            kind,
            name: self.text()?,
            type_name: self.text()?,
            address: self.named::<AddressQualifier>("an address qualifier")?,
            access: self.named::<AccessQualifier>("an access qualifier")?,
            is_const: false,
            is_restrict: false,
            is_volatile: false,
            max_size: None,
        };
        param.is_const = self.same_line() && self.eat_word("const");
        param.is_restrict = self.same_line() && self.eat_word("restrict");
        param.is_volatile = self.same_line() && self.eat_word("volatile");
        if self.same_line() && self.eat_word("max_size") {
            param.max_size = Some(self.number32()?);
        }
        Ok(param)
    }

    fn kernel(&mut self) -> Result<EntryPoint> {
        let name = self.text()?;
        let func = FuncId::new(self.entity("fn")? as usize);
        let contraction_off = self.eat_word("contraction_off");
        let mut attributes = KernelAttributes::default();
        if self.eat_word("initializer") {
            attributes.role = KernelRole::Initializer;
        } else if self.eat_word("finalizer") {
            attributes.role = KernelRole::Finalizer;
        } else if self.eat_word("block") {
            attributes.role = KernelRole::Block;
        }
        let size = |this: &mut Self| -> Result<[u32; 3]> {
            Ok([this.number32()?, this.number32()?, this.number32()?])
        };
        if self.eat_word("reqd") {
            attributes.required_work_group_size = Some(size(self)?);
        }
        if self.eat_word("hint") {
            attributes.work_group_size_hint = Some(size(self)?);
        }
        if self.eat_word("vec_type_hint") {
            attributes.vec_type_hint = Some(self.text()?);
        }
        if self.eat_word("sub_group_size") {
            attributes.required_sub_group_size = Some(self.number32()?);
        }
        if self.eat_word("sub_groups") {
            attributes.required_sub_groups = Some(self.number32()?);
        }
        attributes.zero_local = self.eat_word("zero_local");
        let mut params = Vec::new();
        self.expect('{')?;
        while !self.eat('}') {
            params.push(self.kernel_param()?);
        }
        Ok(EntryPoint {
            name,
            func,
            params,
            attributes,
            contraction_off,
        })
    }

    fn function(&mut self) -> Result<Function> {
        let name = self.text()?;
        let linkage = self.linkage();
        let params = self.types()?;
        if self.peek() != Some(&Token::Arrow) {
            return Err(self.error("expected `->`"));
        }
        self.at += 1;
        let results = self.types()?;
        let mut func = Function {
            name,
            linkage,
            params,
            results,
            ..Function::default()
        };
        if self.eat_word("structured") {
            func.structure = Some(Structure::default());
        }
        if !self.eat('{') {
            return Ok(func);
        }
        let mut body = Body {
            func,
            values: FxHashMap::default(),
            blocks: FxHashMap::default(),
            pending_values: FxHashMap::default(),
            pending_blocks: FxHashMap::default(),
        };
        while self.peek_entity("var").is_some() {
            self.var(&mut body.func)?;
        }
        while !self.eat('}') {
            self.block(&mut body)?;
        }
        if let Some((number, line)) = body.pending_values.iter().min_by_key(|(_, l)| **l) {
            return Err(error(*line, format!("v{number} is not defined")));
        }
        if let Some((number, line)) = body.pending_blocks.iter().min_by_key(|(_, l)| **l) {
            return Err(error(*line, format!("block{number} is not defined")));
        }
        Ok(body.func)
    }

    fn var(&mut self, func: &mut Function) -> Result<()> {
        let number = self.entity("var")? as usize;
        if number != func.vars.len() {
            return Err(self.error(format!("expected var{}", func.vars.len())));
        }
        self.expect('=')?;
        let storage = match self.word()?.as_str() {
            "workgroup" => Storage::Workgroup,
            "function" => Storage::Function,
            other => return Err(self.error(format!("`{other}` is not a storage class"))),
        };
        let volatile = self.eat_word("volatile");
        let elem = self.ty()?;
        let lanes = if self.eat_word("by") {
            self.number32()?
        } else {
            1
        };
        self.expect('[')?;
        let mut len = VarLen {
            fixed: self.number32()?,
            spec: Vec::new(),
        };
        while self.eat(',') {
            self.expect_word("spec")?;
            len.spec.push(self.number32()?);
        }
        self.expect(']')?;
        let alias = if self.eat_word("alias") {
            Some(self.number32()?)
        } else {
            None
        };
        func.vars.push(VarData {
            storage,
            elem,
            lanes,
            volatile,
            len,
            alias,
        });
        Ok(())
    }

    fn block(&mut self, body: &mut Body) -> Result<()> {
        let line = self.line();
        let number = self.entity("block")?;
        let block = body.block(number, line);
        if body.pending_blocks.remove(&number).is_none() {
            return Err(error(line, format!("block{number} is defined twice")));
        }
        body.func.layout.push(block);
        if self.eat('(') {
            while !self.eat(')') {
                if !body.func.blocks[block].params.is_empty() {
                    self.expect(',')?;
                }
                let number = self.entity("v")?;
                self.expect(':')?;
                let ty = self.ty()?;
                let index = body.func.blocks[block].params.len() as u32;
                let value = self.define(body, number, ty, ValueDef::Param(block, index))?;
                body.func.blocks[block].params.push(value);
            }
        }
        self.expect(':')?;
        let merge = if self.same_line() && self.eat_word("selection") {
            let line = self.line();
            Some(Merge::Selection {
                merge: body.block(self.entity("block")?, line),
            })
        } else if self.same_line() && self.eat_word("loop") {
            let line = self.line();
            let merge = body.block(self.entity("block")?, line);
            self.expect(',')?;
            let cont = body.block(self.entity("block")?, line);
            Some(Merge::Loop { merge, cont })
        } else {
            None
        };
        if let (Some(merge), Some(structure)) = (merge, &mut body.func.structure) {
            structure.merges[block] = Some(merge);
        } else if merge.is_some() {
            return Err(self.error("merge in a function that is not `structured`"));
        }
        loop {
            if let Some(term) = self.terminator(body)? {
                body.func.blocks[block].term = term;
                return Ok(());
            }
            let inst = self.inst(body)?;
            body.func.blocks[block].insts.push(inst);
        }
    }

    fn define(&mut self, body: &mut Body, number: u32, ty: Type, def: ValueDef) -> Result<Value> {
        let line = self.line();
        let value = body.value(number, line);
        if body.pending_values.remove(&number).is_none() {
            return Err(error(line, format!("v{number} is defined twice")));
        }
        body.func.values[value] = ValueData { ty, def };
        Ok(value)
    }

    fn value(&mut self, body: &mut Body) -> Result<Value> {
        let line = self.line();
        let number = self.entity("v")?;
        Ok(body.value(number, line))
    }

    fn target(&mut self, body: &mut Body) -> Result<Edge> {
        let line = self.line();
        let number = self.entity("block")?;
        let mut target = Edge::new(body.block(number, line));
        if self.same_line() && self.eat('(') {
            while !self.eat(')') {
                if !target.args.is_empty() {
                    self.expect(',')?;
                }
                target.args.push(self.value(body)?);
            }
        }
        Ok(target)
    }

    fn terminator(&mut self, body: &mut Body) -> Result<Option<Terminator>> {
        let Some(word) = self.peek_word() else {
            return Err(self.error("expected an instruction"));
        };
        let term = match word {
            "jump" => {
                self.at += 1;
                Terminator::Jump(self.target(body)?)
            }
            "br" => {
                self.at += 1;
                let cond = self.value(body)?;
                self.expect(',')?;
                let a = self.target(body)?;
                self.expect(',')?;
                Terminator::Branch(cond, a, self.target(body)?)
            }
            "switch" => {
                self.at += 1;
                let value = self.value(body)?;
                self.expect(',')?;
                self.expect('[')?;
                let mut cases = Vec::new();
                while !self.eat(']') {
                    if !cases.is_empty() {
                        self.expect(',')?;
                    }
                    let bits = self.number()?;
                    self.expect(':')?;
                    cases.push((bits, self.target(body)?));
                }
                self.expect(',')?;
                Terminator::Switch(value, cases, self.target(body)?)
            }
            "return" => {
                self.at += 1;
                let mut values = Values::new();
                if self.same_line() {
                    values.push(self.value(body)?);
                    while self.eat(',') {
                        values.push(self.value(body)?);
                    }
                }
                Terminator::Return(values)
            }
            "unreachable" => {
                self.at += 1;
                Terminator::Unreachable
            }
            _ => return Ok(None),
        };
        Ok(Some(term))
    }

    fn inst(&mut self, body: &mut Body) -> Result<Inst> {
        let mut names = Vec::new();
        if self.peek_entity("v").is_some() {
            loop {
                names.push(self.entity("v")?);
                if !self.eat(',') {
                    break;
                }
            }
            self.expect('=')?;
        }
        let word = self.word()?;
        let Some(mut op) = parse_op(&word) else {
            self.at -= 1;
            return Err(self.error(format!("`{word}` is not an operation")));
        };
        let mut fp = FpFlags::default();
        if self.same_line() && self.eat('[') {
            while !self.eat(']') {
                if fp.0 != 0 {
                    self.expect(',')?;
                }
                let word = self.word()?;
                match FP_FLAGS.iter().find(|(_, name)| *name == word) {
                    Some((bit, _)) => fp.0 |= bit,
                    None => return Err(self.error(format!("`{word}` is not a flag"))),
                }
            }
        }
        match &mut op {
            Op::Const(bits) => *bits = self.number()?,
            Op::GlobalAddr(id) => {
                self.expect('@')?;
                *id = GlobalId::new(self.number32()? as usize);
            }
            _ => {}
        }
        let mut args = Values::new();
        if self.same_line() && self.peek_word().is_some() {
            args.push(self.value(body)?);
            while self.eat(',') {
                args.push(self.value(body)?);
            }
        }
        let inst = Inst::new(body.func.insts.len());
        body.func.insts.push(InstData {
            op,
            args,
            results: SmallVec::new(),
            fp,
            line: 0,
        });
        if !names.is_empty() {
            self.expect(':')?;
        }
        for (i, number) in names.into_iter().enumerate() {
            if i > 0 {
                self.expect(',')?;
            }
            let ty = self.ty()?;
            let value = self.define(body, number, ty, ValueDef::Result(inst, i as u32))?;
            body.func.insts[inst].results.push(value);
            if let Op::Const(bits) = &mut body.func.insts[inst].op {
                *bits &= ty.mask();
            }
        }
        if self.same_line() && self.eat('@') {
            body.func.insts[inst].line = self.number32()?;
        }
        Ok(inst)
    }
}

/// A function being read.
struct Body {
    func: Function,
    values: FxHashMap<u32, Value>,
    blocks: FxHashMap<u32, Block>,
    /// The values mentioned and not yet defined, with the line of the first mention.
    pending_values: FxHashMap<u32, usize>,
    pending_blocks: FxHashMap<u32, usize>,
}

impl Body {
    fn value(&mut self, number: u32, line: usize) -> Value {
        let Self {
            func,
            values,
            pending_values,
            ..
        } = self;
        *values.entry(number).or_insert_with(|| {
            pending_values.insert(number, line);
            func.values.push(ValueData {
                ty: Type::Bool,
                def: ValueDef::Param(Block::new(0), 0),
            })
        })
    }
    fn block(&mut self, number: u32, line: usize) -> Block {
        let Self {
            func,
            blocks,
            pending_blocks,
            ..
        } = self;
        *blocks.entry(number).or_insert_with(|| {
            pending_blocks.insert(number, line);
            func.blocks.push(BlockData::default())
        })
    }
}

/// Reads a module.
pub fn parse_module(text: &str) -> Result<Module> {
    let mut parser = Parser::new(text)?;
    let mut module = Module::default();
    while parser.peek().is_some() {
        let word = parser.word()?;
        match word.as_str() {
            "global" => {
                parser.expect('@')?;
                let id = parser.number32()? as usize;
                if id != module.globals.len() {
                    return Err(parser.error(format!("expected @{}", module.globals.len())));
                }
                let global = parser.global()?;
                module.globals.push(global);
            }
            "printf" => {
                let id = parser.number32()? as usize;
                if id != module.printfs.len() {
                    return Err(parser.error(format!("expected {}", module.printfs.len())));
                }
                let site = parser.printf()?;
                module.printfs.push(site);
            }
            "kernel" => {
                let kernel = parser.kernel()?;
                module.kernels.push(kernel);
            }
            "func" => {
                let id = parser.entity("fn")? as usize;
                if id != module.functions.len() {
                    return Err(parser.error(format!("expected fn{}", module.functions.len())));
                }
                let func = parser.function()?;
                let (name, linkage) = (func.name.clone(), func.linkage);
                let id = module.functions.push(func);
                if linkage != Linkage::Internal {
                    module.by_name.insert(name, id);
                }
            }
            _ => {
                parser.at -= 1;
                return Err(parser.error(format!(
                    "expected `global`, `printf`, `kernel` or `func`, found `{word}`"
                )));
            }
        }
    }
    for (_, func) in module.functions.iter() {
        let bad = func.insts.values().find_map(|inst| match inst.op {
            Op::Call(id) if module.functions.get(id).is_none() => Some(id.to_string()),
            Op::GlobalAddr(id) if module.globals.get(id).is_none() => Some(id.to_string()),
            _ => None,
        });
        if let Some(bad) = bad {
            return Err(
                LowerError::invalid(format!("{bad} is not defined")).in_function(&func.name)
            );
        }
    }
    for kernel in &module.kernels {
        if module.functions.get(kernel.func).is_none() {
            return Err(LowerError::invalid(format!(
                "{} is not defined",
                kernel.func
            )));
        }
    }
    let targets = module.globals.values().flat_map(|g| &g.relocs);
    for reloc in targets {
        if module.globals.get(reloc.target).is_none() {
            return Err(LowerError::invalid(format!(
                "{} is not defined",
                reloc.target
            )));
        }
    }
    Ok(module)
}

/// Reads a single function. It may refer to entities of a module that is not there.
pub fn parse_function(text: &str) -> Result<Function> {
    let mut parser = Parser::new(text)?;
    parser.expect_word("func")?;
    parser.entity("fn")?;
    let func = parser.function()?;
    match parser.peek() {
        None => Ok(func),
        Some(_) => Err(parser.error("text after the function")),
    }
}

#[cfg(test)]
mod tests;
