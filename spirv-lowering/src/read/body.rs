//! Translates one function: blocks, values, control flow, calls. The other files of this module add instructions.

use super::output::{signature, Output};
use super::parsed::{Def, ExtSet, FuncDef, Parsed};
use super::types::{Kind, TyId};
use super::words::Instruction;
use crate::error::{LowerError, Result};
use crate::ir::entity::{Block, Entity, FuncId, Inst, Value};
use crate::ir::function::{Edge, FpFlags, Function, Linkage, Terminator, Values};
use crate::ir::op::Op;
use crate::ir::types::{Space, Type};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use spirv::{Decoration, Op as S};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The entity that an id of a function names.
pub(super) enum IdMeaning {
    /// A value: type, scalars, and the built-in vector that it holds, if any (indexing that out of
    /// range is defined).
    Value(TyId, Values, Option<u32>),
    /// A block.
    Label(Block),
    /// A pointer to built-in variable `which`, at a byte offset, or at a dynamic component.
    #[allow(missing_docs)]
    Builtin {
        ty: TyId,
        which: u32,
        offset: i64,
        index: Option<Value>,
    },
}

/// A terminator whose edges have no arguments yet.
enum End {
    Jump(u32),
    Branch(Value, u32, u32),
    Switch(Value, Vec<(u64, u32)>, u32),
    Done(Terminator),
}

/// The point where the translation of a block starts.
struct Start {
    block: Block,
    label: u32,
    /// The word after the label.
    at: usize,
    line: u32,
}

/// A phi: result lanes are block parameters from `first` on; incoming values by sorted parent label.
struct Phi {
    first: usize,
    lanes: usize,
    incoming: Vec<(u32, u32)>,
    at: usize,
}

/// The translation of one function.
pub(super) struct Body<'a, 'm> {
    pub p: &'a Parsed,
    pub out: &'a mut Output<'m>,
    pub f: Function,
    pub block: Block,
    pub(super) meanings: Vec<IdMeaning>,
    /// Position in `meanings` plus one of each id.
    pub(super) index: &'a mut Vec<u32>,
    pub(super) touched: Vec<u32>,
    /// Instructions that go to the start of the entry block.
    pub(super) prologue: Vec<Inst>,
    pub(super) consts: FxHashMap<(Type, u64), Value>,
    pub(super) undefs: FxHashMap<Type, Value>,
    pub(super) addrs: FxHashMap<(u32, i64), Value>,
    pub(super) builtins: FxHashMap<u32, Value>,
    phis: FxHashMap<Block, Vec<Phi>>,
    /// The parameters with a decoration of their alignment in bytes.
    pub(super) aligned: Vec<(Value, u32)>,
    /// The copies of memory. The flag says that the alignment may be that of the target alone.
    pub(super) copies: Vec<(Inst, bool)>,
    pub(super) line: u32,
    /// The fast-math flags of the instruction being translated.
    pub fp: FpFlags,
}

/// Reads the body of a function into the output module.
pub(super) fn read_function(
    p: &Parsed,
    out: &mut Output,
    def: &FuncDef,
    index: &mut Vec<u32>,
) -> Result<()> {
    let id = out.function(p, def.id)?;
    if !def.has_body {
        return Ok(());
    }
    let (params, results) = signature(p, def)?;
    let old = &mut out.module.functions[id];
    let f = Function {
        name: std::mem::take(&mut old.name),
        linkage: old.linkage,
        params,
        results,
        ..Function::default()
    };
    let name = f.name.clone();
    let mut body = Body {
        p,
        out,
        f,
        block: Entity::new(0),
        meanings: Vec::new(),
        index,
        touched: Vec::new(),
        prologue: Vec::new(),
        consts: FxHashMap::default(),
        undefs: FxHashMap::default(),
        addrs: FxHashMap::default(),
        builtins: FxHashMap::default(),
        phis: FxHashMap::default(),
        aligned: Vec::new(),
        copies: Vec::new(),
        line: 0,
        fp: FpFlags::default(),
    };
    let result = body.read(def).map_err(|e| e.in_function(&name));
    for id in std::mem::take(&mut body.touched) {
        body.index[id as usize] = 0;
    }
    let f = std::mem::take(&mut body.f);
    result?;
    out.module.functions[id] = f;
    Ok(())
}

/// Returns an error for invalid input.
pub(super) fn bad<T>(what: impl Into<String>) -> Result<T> {
    Err(LowerError::invalid(what))
}

/// Returns an error for a feature that is not supported.
pub(super) fn unsupported<T>(what: impl Into<String>) -> Result<T> {
    Err(LowerError::unsupported(what))
}

impl Body<'_, '_> {
    /// Translates blocks in the order of a search from the entry, with ties in the order of the
    /// text. So the dominator of a block comes before it, as the uses of values require, in
    /// whatever order a compiler wrote them. Unreachable blocks are left out.
    fn read(&mut self, def: &FuncDef) -> Result<()> {
        let starts = self.make_blocks(def)?;
        let mut found = vec![false; starts.len()];
        if let Some(entry) = found.first_mut() {
            *entry = true;
        }
        let mut waiting = BinaryHeap::from([Reverse(0)]);
        let mut ends: Vec<(Block, u32, End)> = Vec::with_capacity(starts.len());
        while let Some(Reverse(number)) = waiting.pop() {
            let Some(start) = starts.get(number) else {
                continue;
            };
            let end = self.block(start, def.end)?;
            let mut reached = |body: &Self, label: u32| -> Result<()> {
                let next = body.label(label)?.index();
                if let Some(found) = found.get_mut(next).filter(|found| !**found) {
                    *found = true;
                    waiting.push(Reverse(next));
                }
                Ok(())
            };
            match &end {
                End::Jump(to) => reached(self, *to)?,
                End::Branch(_, a, b) => {
                    reached(self, *a)?;
                    reached(self, *b)?;
                }
                End::Switch(_, cases, default) => {
                    for (_, to) in cases {
                        reached(self, *to)?;
                    }
                    reached(self, *default)?;
                }
                End::Done(_) => {}
            }
            ends.push((self.block, start.label, end));
        }
        for (block, label, end) in ends {
            self.finish_block(block, label, end)?;
        }
        self.finish()
    }

    /// Translates the instructions of one block. Returns its terminator.
    fn block(&mut self, start: &Start, limit: usize) -> Result<End> {
        self.block = start.block;
        self.line = start.line;
        let mut at = start.at;
        while at < limit {
            let inst = self.p.inst(at)?;
            at += inst.words.len() + 1;
            match inst.op {
                Some(S::Line) => self.line = inst.word(1).unwrap_or(0),
                Some(S::NoLine) => self.line = 0,
                Some(S::Nop) => {}
                Some(S::Label | S::FunctionEnd) => break,
                _ => {
                    self.fp = FpFlags::default();
                    if let Some(end) = self.inst(&inst).map_err(|e| inst.blame(e))? {
                        return Ok(end);
                    }
                }
            }
        }
        bad(format!("block %{} does not end", start.label))
    }

    /// Creates a block for each label, with parameters for its phi nodes, so that branches may go
    /// forward. Returns where they start, the entry first. Block numbers are those of this list.
    fn make_blocks(&mut self, def: &FuncDef) -> Result<Vec<Start>> {
        let mut starts: Vec<Start> = Vec::new();
        let mut parameters = Vec::new();
        let mut at = def.start;
        let mut line = 0;
        let mut open = false;
        while at < def.end {
            let inst = self.p.inst(at)?;
            at += inst.words.len() + 1;
            let outside = "it stands outside a block";
            match inst.op {
                Some(S::Function | S::FunctionEnd | S::Nop) => {}
                Some(S::FunctionParameter) => parameters.push(inst),
                Some(S::Line) => line = inst.word(1).unwrap_or(0),
                Some(S::NoLine) => line = 0,
                Some(S::Label) => {
                    if open {
                        return Err(
                            inst.blame(LowerError::invalid("the block before it does not end"))
                        );
                    }
                    open = true;
                    let label = inst.word(0)?;
                    let block = self.f.add_block();
                    self.block = block;
                    self.define(label, IdMeaning::Label(block))
                        .map_err(|e| inst.blame(e))?;
                    starts.push(Start {
                        block,
                        label,
                        at,
                        line,
                    });
                }
                _ if !open => return Err(inst.blame(LowerError::invalid(outside))),
                Some(S::Phi) => self.phi(&inst).map_err(|e| inst.blame(e))?,
                Some(
                    S::Branch
                    | S::BranchConditional
                    | S::Switch
                    | S::Return
                    | S::ReturnValue
                    | S::Unreachable
                    | S::Kill
                    | S::TerminateInvocation,
                ) => open = false,
                _ => {}
            }
        }
        if open {
            return bad("its last block does not end");
        }
        match self.f.entry() {
            Some(entry) if !self.phis.contains_key(&entry) => {
                self.block = entry;
            }
            Some(_) => return bad("the entry block has phi nodes"),
            None => return bad("there is no block"),
        }
        for (number, inst) in parameters.iter().enumerate() {
            self.parameter(def, inst, number)
                .map_err(|e| inst.blame(e))?;
        }
        Ok(starts)
    }

    fn phi(&mut self, inst: &Instruction) -> Result<()> {
        let (ty, id) = (self.p.ty(inst.word(0)?)?, inst.word(1)?);
        let block = self.block;
        let mut types = Vec::new();
        self.p.types.flatten(ty, &mut types)?;
        let first = self.f.blocks[block].params.len();
        let values: Values = types.iter().map(|&t| self.f.add_param(block, t)).collect();
        let pairs = inst.rest(2).chunks(2);
        let mut incoming = Vec::new();
        for pair in pairs {
            match pair {
                [value, parent] => incoming.push((*parent, *value)),
                _ => return bad("a value without a parent"),
            }
        }
        incoming.sort_unstable();
        let lanes = values.len();
        self.phis.entry(block).or_default().push(Phi {
            first,
            lanes,
            incoming,
            at: inst.at,
        });
        self.set(id, ty, values)
    }

    fn parameter(&mut self, def: &FuncDef, inst: &Instruction, number: usize) -> Result<()> {
        let (ty, id) = (self.p.ty(inst.word(0)?)?, inst.word(1)?);
        match &self.p.types.get(def.ty).kind {
            Kind::Function { params, .. } if params.get(number) == Some(&ty) => {}
            _ => return bad("its type is not that of the function type"),
        }
        let Some(entry) = self.f.entry() else {
            return bad("there is no block");
        };
        self.block = entry;
        if self.p.is_entry(def.id) && self.p.types.vector(ty).is_none() {
            let pointer = self.f.add_param(entry, Type::Ptr(Space::Private));
            let align = self.p.types.get(ty).align;
            let values = self.load(pointer, ty, align, false)?;
            return self.set(id, ty, values);
        }
        let mut types = Vec::new();
        self.p.types.flatten(ty, &mut types)?;
        let values: Values = types.iter().map(|&t| self.f.add_param(entry, t)).collect();
        if let (&[value], Some(align)) = (&values[..], self.p.alignment(id)) {
            self.aligned.push((value, align));
        }
        self.set(id, ty, values)
    }

    /// Adds the arguments of the edges and stores the terminator.
    fn finish_block(&mut self, block: Block, label: u32, end: End) -> Result<()> {
        // What the arguments need goes to the end of this block.
        self.block = block;
        let term = match end {
            End::Jump(to) => Terminator::Jump(self.target(label, to)?),
            End::Branch(cond, a, b) => {
                Terminator::Branch(cond, self.target(label, a)?, self.target(label, b)?)
            }
            End::Switch(value, cases, default) => {
                let default = self.target(label, default)?;
                let mut list = Vec::with_capacity(cases.len());
                for (bits, to) in cases {
                    list.push((bits, self.target(label, to)?));
                }
                Terminator::Switch(value, list, default)
            }
            End::Done(term) => term,
        };
        self.f.blocks[block].term = term;
        Ok(())
    }

    fn target(&mut self, from: u32, to: u32) -> Result<Edge> {
        let block = self.label(to)?;
        if Some(block) == self.f.entry() {
            return bad("a branch to the entry block");
        }
        let Some(phis) = self.phis.remove(&block) else {
            return Ok(Edge::new(block));
        };
        let mut args = Values::new();
        let result = phis
            .iter()
            .try_for_each(|phi| self.phi_args(phi, block, from, &mut args));
        self.phis.insert(block, phis);
        result?;
        Ok(Edge::with(block, args))
    }

    fn phi_args(&mut self, phi: &Phi, block: Block, from: u32, args: &mut Values) -> Result<()> {
        let blame = |what: String| bad(format!("OpPhi at word {}: {what}", phi.at));
        let found = phi.incoming.partition_point(|&(parent, _)| parent < from);
        let Some(&(_, value)) = phi
            .incoming
            .get(found)
            .filter(|&&(parent, _)| parent == from)
        else {
            return blame(format!("no value for the predecessor %{from}"));
        };
        let values = self.value(value)?;
        if values.len() != phi.lanes {
            return blame(format!("%{value} has the wrong type"));
        }
        for (i, &v) in values.iter().enumerate() {
            let want = self.f.blocks[block]
                .params
                .get(phi.first + i)
                .map(|&p| self.f.ty(p));
            if want != Some(self.f.ty(v)) {
                return blame(format!("%{value} has the wrong type"));
            }
            args.push(v);
        }
        Ok(())
    }

    /// Inserts the prologue and removes unreachable blocks.
    fn finish(&mut self) -> Result<()> {
        let Some(entry) = self.f.entry() else {
            return Ok(());
        };
        if self.f.blocks[entry].params.len() != self.f.params.len() {
            return bad("the entry block's parameters are not the function's");
        }
        let mut insts = std::mem::take(&mut self.prologue);
        insts.append(&mut self.f.blocks[entry].insts);
        self.f.blocks[entry].insts = insts;
        let mut seen = vec![false; self.f.blocks.len()];
        let mut work = vec![entry];
        while let Some(block) = work.pop() {
            let index = Entity::index(block);
            if !std::mem::replace(&mut seen[index], true) {
                work.extend(self.f.blocks[block].term.targets().iter().map(|t| t.block));
            }
        }
        self.f.layout.retain(|&b| seen[Entity::index(b)]);
        self.settle_copies();
        Ok(())
    }

    /// Translates an instruction inside a block. Returns the terminator, if it is one.
    fn inst(&mut self, inst: &Instruction) -> Result<Option<End>> {
        let Some(op) = inst.op else {
            return unsupported("the instruction is not known");
        };
        match op {
            S::Phi
            | S::LoopMerge
            | S::SelectionMerge
            | S::LoopControlINTEL
            | S::LifetimeStop
            | S::AssumeTrueKHR
            | S::UntypedPrefetchKHR
            | S::ModuleProcessed => {}
            S::LifetimeStart => {
                let (pointer, _) = self.pointer(inst.word(0)?)?;
                self.at_least(pointer, inst.word(1)?.into())?;
            }
            S::Branch => return Ok(Some(End::Jump(inst.word(0)?))),
            S::BranchConditional => {
                let cond = self.scalar_of(inst.word(0)?, Type::Bool)?;
                return Ok(Some(End::Branch(cond, inst.word(1)?, inst.word(2)?)));
            }
            S::Switch => return self.switch(inst).map(Some),
            S::Return => {
                if !self.f.results.is_empty() {
                    return bad("the function has a result");
                }
                return Ok(Some(End::Done(Terminator::Return(Values::new()))));
            }
            S::ReturnValue => {
                let values = self.value(inst.word(0)?)?;
                let fits = values.len() == self.f.results.len();
                if !fits
                    || !values
                        .iter()
                        .zip(&self.f.results)
                        .all(|(&v, &t)| self.f.ty(v) == t)
                {
                    return bad("the value has not the result type of the function");
                }
                return Ok(Some(End::Done(Terminator::Return(values))));
            }
            S::Unreachable => return Ok(Some(End::Done(Terminator::Unreachable))),
            S::Kill | S::TerminateInvocation | S::DemoteToHelperInvocation => {
                return unsupported("the end of a work-item other than by return")
            }
            S::FunctionCall => self.call(inst)?,
            S::ExtInst | S::ExtInstWithForwardRefsKHR => {
                match self.p.defs.get(inst.word(2)? as usize) {
                    Some(Def::ExtSet(ExtSet::OpenCl)) => {
                        if !self.odd_extended(inst)? {
                            self.opencl_std(inst)?;
                        }
                    }
                    Some(Def::ExtSet(ExtSet::NonSemantic)) => {}
                    _ => return unsupported("its instruction set is not known"),
                }
            }
            _ => self.plain(inst, op)?,
        }
        Ok(None)
    }

    /// Translates an instruction that has a value or accesses memory.
    fn plain(&mut self, inst: &Instruction, op: S) -> Result<()> {
        if self.odd_inst(inst, op)?
            || self.memory_inst(inst, op)?
            || self.arith_inst(inst, op)?
            || self.composite_inst(inst, op)?
        {
            return Ok(());
        }
        if self.sync_inst(inst, op)?
            || self.pipe_inst(inst, op)?
            || self.image_inst(inst, op)?
            || self.block_inst(inst, op)?
            || self.bfloat16_inst(inst, op)?
        {
            return Ok(());
        }
        if self.device_queue_inst(inst, op)? {
            return Ok(());
        }
        unsupported("the instruction is not known to this driver, or none of OpenCL's")
    }

    fn switch(&mut self, inst: &Instruction) -> Result<End> {
        let value = self.scalar(inst.word(0)?)?;
        let ty = self.f.ty(value);
        if !ty.is_int() {
            return bad("the selector is not an integer");
        }
        let default = inst.word(1)?;
        let wide = ty == Type::I64;
        let mut cases = Vec::new();
        let mut seen = rustc_hash::FxHashSet::default();
        for case in inst.rest(2).chunks(if wide { 3 } else { 2 }) {
            let (bits, label) = match (case, wide) {
                (&[low, high, label], true) => (u64::from(low) | u64::from(high) << 32, label),
                (&[low, label], false) => (u64::from(low), label),
                _ => return bad("a literal without a label"),
            };
            let bits = bits & ty.mask();
            if !seen.insert(bits) {
                return bad(format!("the literal {bits} stands twice"));
            }
            cases.push((bits, label));
        }
        Ok(End::Switch(value, cases, default))
    }

    fn call(&mut self, inst: &Instruction) -> Result<()> {
        let (ty, id, callee) = (self.p.ty(inst.word(0)?)?, inst.word(1)?, inst.word(2)?);
        let Some(Def::Func(index)) = self.p.defs.get(callee as usize) else {
            return bad(format!("%{callee} is not a function"));
        };
        let Some(def) = self.p.funcs.get(*index as usize) else {
            return bad("no such function");
        };
        if !def.has_body {
            if let Some((name, Linkage::Import)) = self.p.decorations.linkage(callee) {
                if self.builtin_call(&name, inst, ty, id)? {
                    return Ok(());
                }
            }
        }
        if inst.rest(3).len() != def.params.len() {
            return bad("the number of arguments is not that of the function's parameters");
        }
        let mut args: SmallVec<[Value; 8]> = SmallVec::new();
        for (&arg, &param) in inst.rest(3).iter().zip(&def.params) {
            let by_val = self.p.decorations.has(
                param,
                Decoration::FuncParamAttr,
                spirv::FunctionParameterAttribute::ByVal as u32,
            );
            let no_write = self.p.decorations.has(
                param,
                Decoration::FuncParamAttr,
                spirv::FunctionParameterAttribute::NoWrite as u32,
            );
            if by_val && !no_write {
                args.push(self.by_value_copy(arg)?);
            } else {
                args.extend(self.value(arg)?);
            }
        }
        let func: FuncId = self.out.function(self.p, callee)?;
        let (params, results) = {
            let f = &self.out.module.functions[func];
            (f.params.clone(), f.results.clone())
        };
        if params.len() != args.len() || !args.iter().zip(&params).all(|(&a, &t)| self.f.ty(a) == t)
        {
            return bad("the arguments have not the types of the function's parameters");
        }
        let values = self.ins_many(Op::Call(func), &args, &results);
        if matches!(self.p.types.get(ty).kind, Kind::Void) {
            if results.is_empty() {
                return Ok(());
            }
            return bad("the result type is not that of the function");
        }
        self.set(id, ty, values)
    }

    /// Copies the structure that a pointer argument points to, for a parameter passed by value.
    fn by_value_copy(&mut self, arg: u32) -> Result<Value> {
        let (pointer, _) = self.pointer(arg)?;
        let Kind::Pointer { pointee, .. } = self.p.types.get(self.type_of(arg)?).kind else {
            return bad("an argument passed by value is not a pointer");
        };
        if pointee == 0 {
            return Ok(pointer);
        }
        let data = self.p.types.get(self.p.ty(pointee)?);
        let copy = self.alloca(data.size, data.align)?;
        if data.size > 0 {
            self.effect(
                Op::MemCopy {
                    size: data.size,
                    align: data.align,
                },
                &[copy, pointer],
            );
        }
        Ok(copy)
    }

    // --- control flow made by translation

    /// Starts a new block without ending the current one, for expansions with loops.
    pub fn new_block(&mut self) -> Block {
        self.f.add_block()
    }

    /// Ends the current block and continues in another.
    pub fn end_block(&mut self, term: Terminator, next: Block) {
        self.f.blocks[self.block].term = term;
        self.block = next;
    }

    /// Emits a loop that runs `body(i)` for I64 `i` from `start` below `end` in steps.
    pub fn counted_loop(
        &mut self,
        start: Value,
        end: Value,
        step: Value,
        body: impl FnOnce(&mut Self, Value) -> Result<()>,
    ) -> Result<()> {
        let (head, inner, after) = (self.new_block(), self.new_block(), self.new_block());
        let i = self.f.add_param(head, Type::I64);
        let jump = |args: &[Value]| Terminator::Jump(Edge::with(head, args.iter().copied()));
        self.end_block(jump(&[start]), head);
        let more = self.ins(Op::ICmp(crate::ir::op::IntCond::Ult), &[i, end], Type::Bool);
        self.end_block(
            Terminator::Branch(more, Edge::new(inner), Edge::new(after)),
            inner,
        );
        body(self, i)?;
        let next = self.ins(Op::IAdd, &[i, step], Type::I64);
        self.end_block(jump(&[next]), after);
        Ok(())
    }
}
