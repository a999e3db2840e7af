//! Translates one function: blocks, values, control flow, calls. The other files of this module add instructions.

use super::consts::Lane;
use super::output::{signature, Output};
use super::parsed::{fp_flags, Def, ExtSet, FuncDef, Parsed};
use super::types::{Kind, TyId};
use super::words::Inst;
use crate::error::{LowerError, Result};
use crate::ir::entity::{Block, FuncId, Inst as InstId, Value};
use crate::ir::function::{FpFlags, Function, Linkage, Target, Terminator, Values};
use crate::ir::op::Op;
use crate::ir::types::{Space, Type};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use spirv::{Decoration, Op as S};

/// What an id of a function names.
pub(super) enum Slot {
    /// A value: type, scalars, the built-in vector it is (indexing out of range has a meaning there).
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

/// A terminator whose targets' arguments are not known yet.
enum End {
    Jump(u32),
    Branch(Value, u32, u32),
    Switch(Value, Vec<(u64, u32)>, u32),
    Done(Terminator),
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
    slots: Vec<Slot>,
    /// Slot number plus one of each id.
    index: &'a mut Vec<u32>,
    touched: Vec<u32>,
    /// Instructions that go to the start of the entry block.
    prologue: Vec<InstId>,
    consts: FxHashMap<(Type, u64), Value>,
    undefs: FxHashMap<Type, Value>,
    addrs: FxHashMap<(u32, i64), Value>,
    builtins: FxHashMap<u32, Value>,
    phis: FxHashMap<Block, Vec<Phi>>,
    line: u32,
    /// Freedoms of the instruction being translated.
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
        block: crate::ir::entity::Entity::new(0),
        slots: Vec::new(),
        index,
        touched: Vec::new(),
        prologue: Vec::new(),
        consts: FxHashMap::default(),
        undefs: FxHashMap::default(),
        addrs: FxHashMap::default(),
        builtins: FxHashMap::default(),
        phis: FxHashMap::default(),
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

/// An invalid-input error.
pub(super) fn bad<T>(what: impl Into<String>) -> Result<T> {
    Err(LowerError::invalid(what))
}

/// An unsupported-feature error.
pub(super) fn unsupported<T>(what: impl Into<String>) -> Result<T> {
    Err(LowerError::unsupported(what))
}

impl Body<'_, '_> {
    fn read(&mut self, def: &FuncDef) -> Result<()> {
        let labels = self.make_blocks(def)?;
        let mut ends: Vec<(Block, u32, End)> = Vec::with_capacity(labels);
        let mut at = def.start;
        let mut label = 0;
        let mut open = false;
        let mut params = 0;
        while at < def.end {
            let inst = self.p.inst(at)?;
            at += inst.words.len() + 1;
            match inst.op {
                Some(S::Function | S::FunctionEnd) => {}
                Some(S::FunctionParameter) => {
                    self.parameter(def, &inst, params)
                        .map_err(|e| inst.blame(e))?;
                    params += 1;
                }
                Some(S::Label) => {
                    label = inst.word(0)?;
                    if open {
                        return Err(
                            inst.blame(LowerError::invalid("the block before it does not end"))
                        );
                    }
                    open = true;
                    self.block = self.label(label)?;
                }
                Some(S::Line) => self.line = inst.word(1).unwrap_or(0),
                Some(S::NoLine) => self.line = 0,
                Some(S::Nop) => {}
                _ if !open => {
                    return Err(inst.blame(LowerError::invalid("an instruction outside a block")))
                }
                _ => {
                    self.fp = FpFlags::default();
                    if let Some(end) = self.inst(&inst).map_err(|e| inst.blame(e))? {
                        ends.push((self.block, label, end));
                        open = false;
                    }
                }
            }
        }
        if open {
            return bad("its last block does not end");
        }
        for (block, label, end) in ends {
            self.finish_block(block, label, end)?;
        }
        self.finish()
    }

    /// Makes a block for each label, with parameters for its phi nodes, so that branches may go forward.
    fn make_blocks(&mut self, def: &FuncDef) -> Result<usize> {
        let mut at = def.start;
        let mut count = 0;
        while at < def.end {
            let inst = self.p.inst(at)?;
            at += inst.words.len() + 1;
            if inst.op == Some(S::Label) {
                let block = self.f.add_block();
                self.block = block;
                self.define(inst.word(0)?, Slot::Label(block))
                    .map_err(|e| inst.blame(e))?;
                count += 1;
            } else if inst.op == Some(S::Phi) {
                if count == 0 {
                    return Err(inst.blame(LowerError::invalid("it stands outside a block")));
                }
                self.phi(&inst).map_err(|e| inst.blame(e))?;
            }
        }
        match self.f.entry() {
            Some(entry) if !self.phis.contains_key(&entry) => {
                self.block = entry;
                Ok(count)
            }
            Some(_) => bad("the entry block has phi nodes"),
            None => bad("there is no block"),
        }
    }

    fn phi(&mut self, inst: &Inst) -> Result<()> {
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

    fn parameter(&mut self, def: &FuncDef, inst: &Inst, number: usize) -> Result<()> {
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
        let values = types.iter().map(|&t| self.f.add_param(entry, t)).collect();
        self.set(id, ty, values)
    }

    /// Adds targets' arguments and stores the terminator.
    fn finish_block(&mut self, block: Block, label: u32, end: End) -> Result<()> {
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

    fn target(&mut self, from: u32, to: u32) -> Result<Target> {
        let block = self.label(to)?;
        if Some(block) == self.f.entry() {
            return bad("a branch to the entry block");
        }
        let Some(phis) = self.phis.remove(&block) else {
            return Ok(Target::new(block));
        };
        let mut args = Values::new();
        let result = phis
            .iter()
            .try_for_each(|phi| self.phi_args(phi, block, from, &mut args));
        self.phis.insert(block, phis);
        result?;
        Ok(Target { block, args })
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

    /// Puts the prologue in place and drops blocks that control cannot reach.
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
            let index = crate::ir::entity::Entity::index(block);
            if !std::mem::replace(&mut seen[index], true) {
                work.extend(self.f.blocks[block].term.targets().iter().map(|t| t.block));
            }
        }
        self.f
            .layout
            .retain(|&b| seen[crate::ir::entity::Entity::index(b)]);
        Ok(())
    }

    // --- ids

    fn define(&mut self, id: u32, slot: Slot) -> Result<()> {
        let p = self.p;
        match (p.defs.get(id as usize), self.index.get_mut(id as usize)) {
            (Some(Def::None), Some(entry)) if *entry == 0 && id != 0 => {
                self.slots.push(slot);
                *entry = self.slots.len() as u32;
                self.touched.push(id);
                Ok(())
            }
            (Some(_), Some(_)) => bad(format!("the id %{id} is defined twice")),
            _ => bad(format!("the id %{id} is not below the bound {}", p.bound)),
        }
    }

    pub fn slot(&self, id: u32) -> Option<&Slot> {
        let index = *self.index.get(id as usize)?;
        self.slots.get((index as usize).checked_sub(1)?)
    }

    /// Gives an id its value, after comparing the scalars with the declared type.
    pub fn set(&mut self, id: u32, ty: TyId, values: Values) -> Result<()> {
        let fits = match self.p.types.vector(ty) {
            Some((scalar, n)) => {
                values.len() == n as usize && values.iter().all(|&v| self.f.ty(v) == scalar)
            }
            None => {
                let mut types = Vec::new();
                self.p.types.flatten(ty, &mut types)?;
                types.len() == values.len()
                    && types.iter().zip(&values).all(|(&t, &v)| t == self.f.ty(v))
            }
        };
        if !fits {
            return bad("its operands do not fit its result type");
        }
        self.define(id, Slot::Value(ty, values, None))
    }

    /// Gives an id the value of (part of) a built-in variable.
    pub fn set_builtin(&mut self, id: u32, ty: TyId, values: Values, which: u32) -> Result<()> {
        self.set(id, ty, values)?;
        if let Some(Slot::Value(_, _, builtin)) = self.slots.last_mut() {
            *builtin = Some(which);
        }
        Ok(())
    }

    /// Gives an id a pointer to a built-in variable.
    pub fn set_builtin_ptr(
        &mut self,
        id: u32,
        ty: TyId,
        which: u32,
        offset: i64,
        index: Option<Value>,
    ) -> Result<()> {
        self.define(
            id,
            Slot::Builtin {
                ty,
                which,
                offset,
                index,
            },
        )
    }

    pub fn label(&self, id: u32) -> Result<Block> {
        match self.slot(id) {
            Some(Slot::Label(block)) => Ok(*block),
            _ => bad(format!("%{id} is not a block of this function")),
        }
    }

    /// The type of a value, constant or variable.
    pub fn type_of(&self, id: u32) -> Result<TyId> {
        match self.slot(id) {
            Some(Slot::Value(ty, ..) | Slot::Builtin { ty, .. }) => Ok(*ty),
            Some(Slot::Label(_)) => bad(format!("%{id} is a block")),
            None => self
                .p
                .const_ty(id)
                .ok_or_else(|| LowerError::invalid(format!("%{id} is not a value defined before"))),
        }
    }

    /// The scalars of a value.
    pub fn value(&mut self, id: u32) -> Result<Values> {
        match self.slot(id) {
            Some(Slot::Value(_, values, _)) => return Ok(values.clone()),
            Some(&Slot::Builtin {
                which,
                offset,
                index,
                ..
            }) => return self.builtin_memory(which, offset, index),
            Some(Slot::Label(_)) => return bad(format!("%{id} is a block")),
            None => {}
        }
        match self.p.defs.get(id as usize) {
            Some(Def::Const(_)) => {}
            Some(Def::Var(index)) => {
                if let Some(which) = self.p.vars.get(*index as usize).and_then(|v| v.builtin) {
                    return self.builtin_memory(which, 0, None);
                }
            }
            Some(Def::Func(_)) => return unsupported("function pointers"),
            _ => return bad(format!("%{id} is not a value defined before")),
        }
        let Some(ty) = self.p.const_ty(id) else {
            return bad(format!("%{id} is not a value"));
        };
        let mut lanes = Vec::new();
        self.p.const_lanes(id, &mut lanes)?;
        let mut types = Vec::new();
        self.p.types.flatten(ty, &mut types)?;
        let mut values = Values::with_capacity(lanes.len());
        for (lane, ty) in lanes.into_iter().zip(types) {
            values.push(self.const_lane(lane, ty)?);
        }
        if let Some(entry) = self.index.get_mut(id as usize) {
            self.slots.push(Slot::Value(ty, values.clone(), None));
            *entry = self.slots.len() as u32;
            self.touched.push(id);
        }
        Ok(values)
    }

    /// A value that must be one scalar.
    pub fn scalar(&mut self, id: u32) -> Result<Value> {
        match self.value(id)?.as_slice() {
            [value] => Ok(*value),
            _ => bad(format!("%{id} is not a scalar")),
        }
    }

    /// A value that must be one scalar of a type.
    pub fn scalar_of(&mut self, id: u32, ty: Type) -> Result<Value> {
        let value = self.scalar(id)?;
        if self.f.ty(value) == ty {
            Ok(value)
        } else {
            bad(format!("%{id} has the wrong type"))
        }
    }

    /// A value that must have `n` scalars, all of one type.
    pub fn lanes(&mut self, id: u32, ty: Type, n: usize) -> Result<Values> {
        let values = self.value(id)?;
        if values.len() == n && values.iter().all(|&v| self.f.ty(v) == ty) {
            Ok(values)
        } else {
            bad(format!("%{id} has the wrong type"))
        }
    }

    /// A value that must have one or more scalars, all of one type.
    pub fn uniform(&mut self, id: u32) -> Result<(Values, Type)> {
        let values = self.value(id)?;
        match values.first().map(|&v| self.f.ty(v)) {
            Some(ty) if values.iter().all(|&v| self.f.ty(v) == ty) => Ok((values, ty)),
            _ => bad(format!("%{id} is not a scalar or vector")),
        }
    }

    /// A pointer.
    pub fn pointer(&mut self, id: u32) -> Result<(Value, Space)> {
        let value = self.scalar(id)?;
        match self.f.ty(value).space() {
            Some(space) => Ok((value, space)),
            None => bad(format!("%{id} is not a pointer")),
        }
    }

    /// The bits of an integer operand known now.
    pub fn known(&mut self, id: u32) -> Option<u64> {
        if let Some(bits) = self.p.const_u64(id) {
            return Some(bits);
        }
        match self.slot(id) {
            Some(Slot::Value(_, values, _)) => match values.as_slice() {
                [value] => self.f.as_const(*value),
                _ => None,
            },
            _ => None,
        }
    }

    // --- building

    fn const_lane(&mut self, lane: Lane, ty: Type) -> Result<Value> {
        match lane {
            Lane::Bits(bits) => Ok(self.constant(ty, bits)),
            Lane::Undef => Ok(self.undef(ty)),
            Lane::Addr { var, addend } => {
                let global = self.out.global(self.p, var)?;
                let space = self.out.module.globals[global]
                    .space
                    .unwrap_or(Space::Global);
                let pointer = Type::Ptr(space);
                let mut value = match self.addrs.get(&(var, 0)) {
                    Some(&value) => value,
                    None => {
                        let value = self.prologue(Op::GlobalAddr(global), [], pointer);
                        self.addrs.insert((var, 0), value);
                        value
                    }
                };
                if addend != 0 {
                    value = match self.addrs.get(&(var, addend)) {
                        Some(&value) => value,
                        None => {
                            let offset = self.constant(Type::I64, addend as u64);
                            let sum = self.prologue(Op::PtrAdd, [value, offset], pointer);
                            self.addrs.insert((var, addend), sum);
                            sum
                        }
                    };
                }
                match ty {
                    _ if ty == pointer => Ok(value),
                    Type::Ptr(_) => Ok(self.prologue(Op::SpaceCast, [value], ty)),
                    Type::I64 => Ok(self.prologue(Op::PtrToInt, [value], ty)),
                    _ => bad("the address of a variable as a value of another type"),
                }
            }
        }
    }

    /// Adds an instruction to the start of the function.
    pub fn prologue(&mut self, op: Op, args: impl IntoIterator<Item = Value>, ty: Type) -> Value {
        let inst = self.f.make_inst(op, args, &[ty]);
        self.prologue.push(inst);
        self.f.insts[inst].results[0]
    }

    /// A constant.
    pub fn constant(&mut self, ty: Type, bits: u64) -> Value {
        let bits = bits & ty.mask();
        if let Some(&value) = self.consts.get(&(ty, bits)) {
            return value;
        }
        let value = self.prologue(Op::Const(bits), [], ty);
        self.consts.insert((ty, bits), value);
        value
    }

    /// Any value.
    pub fn undef(&mut self, ty: Type) -> Value {
        if let Some(&value) = self.undefs.get(&ty) {
            return value;
        }
        let value = self.prologue(Op::Undef, [], ty);
        self.undefs.insert(ty, value);
        value
    }

    /// A float constant.
    pub fn float(&mut self, ty: Type, value: f64) -> Value {
        let bits = match ty {
            Type::F64 => value.to_bits(),
            Type::F32 => u64::from((value as f32).to_bits()),
            _ => u64::from(half_bits(value as f32)),
        };
        self.constant(ty, bits)
    }

    /// A built-in variable's value, computed once at the start of the function.
    pub fn cached_builtin(&mut self, key: u32, op: Op, ty: Type) -> Value {
        if let Some(&value) = self.builtins.get(&key) {
            return value;
        }
        let value = self.prologue(op, [], ty);
        self.builtins.insert(key, value);
        value
    }

    /// An instruction with one result.
    pub fn ins(&mut self, op: Op, args: &[Value], ty: Type) -> Value {
        let inst = self.f.append(self.block, op, args.iter().copied(), &[ty]);
        let data = &mut self.f.insts[inst];
        data.line = self.line;
        data.fp = self.fp;
        data.results[0]
    }

    /// An instruction with any number of results.
    pub fn ins_many(&mut self, op: Op, args: &[Value], results: &[Type]) -> Values {
        let inst = self.f.append(self.block, op, args.iter().copied(), results);
        self.f.insts[inst].line = self.line;
        self.f.insts[inst].results.iter().copied().collect()
    }

    /// An instruction without result.
    pub fn effect(&mut self, op: Op, args: &[Value]) {
        self.ins_many(op, args, &[]);
    }

    /// Selects, per scalar.
    pub fn select(&mut self, cond: Value, a: Value, b: Value) -> Value {
        let ty = self.f.ty(a);
        self.ins(Op::Select, &[cond, a, b], ty)
    }

    /// A pointer plus bytes known now.
    pub fn offset(&mut self, pointer: Value, bytes: i64) -> Value {
        if bytes == 0 {
            return pointer;
        }
        let ty = self.f.ty(pointer);
        let bytes = self.constant(Type::I64, bytes as u64);
        self.ins(Op::PtrAdd, &[pointer, bytes], ty)
    }

    /// Private memory of the function.
    pub fn alloca(&mut self, size: u64, align: u32) -> Result<Value> {
        let Ok(size) = u32::try_from(size) else {
            return unsupported(format!("a variable of {size} bytes"));
        };
        Ok(self.prologue(Op::Alloca { size, align }, [], Type::Ptr(Space::Private)))
    }

    /// Calls a function by name, declaring it where needed.
    pub fn call_name(&mut self, name: &str, args: &[Value], results: &[Type]) -> Result<Values> {
        let params: SmallVec<[Type; 8]> = args.iter().map(|&v| self.f.ty(v)).collect();
        let func = self.out.import(name, &params, results)?;
        Ok(self.ins_many(Op::Call(func), args, results))
    }

    /// The freedoms of a floating-point instruction.
    pub fn fp_of(&self, id: u32) -> FpFlags {
        let mut flags = self.p.default_fp;
        for d in self.p.decos(id) {
            if d.kind == Decoration::FPFastMathMode as u32 && d.len > 0 {
                flags = fp_flags(self.p.words.get(d.at as usize).copied().unwrap_or(0));
            } else if d.kind == Decoration::NoContraction as u32 {
                return FpFlags(flags.0 & !FpFlags::CONTRACT);
            }
        }
        flags
    }

    // --- control flow and calls

    /// Translates an instruction inside a block; the end of the block, if it is one.
    fn inst(&mut self, inst: &Inst) -> Result<Option<End>> {
        let Some(op) = inst.op else {
            return unsupported("an instruction that is not known");
        };
        match op {
            S::Phi
            | S::LoopMerge
            | S::SelectionMerge
            | S::LoopControlINTEL
            | S::LifetimeStart
            | S::LifetimeStop
            | S::AssumeTrueKHR
            | S::UntypedPrefetchKHR
            | S::ModuleProcessed => {}
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
            S::ExtInst => match self.p.defs.get(inst.word(2)? as usize) {
                Some(Def::ExtSet(ExtSet::OpenCl)) => self.opencl_std(inst)?,
                Some(Def::ExtSet(ExtSet::NonSemantic)) => {}
                _ => return unsupported("an instruction of a set that is not known"),
            },
            _ => self.plain(inst, op)?,
        }
        Ok(None)
    }

    /// Instructions that give a value or touch memory.
    fn plain(&mut self, inst: &Inst, op: S) -> Result<()> {
        if self.memory_inst(inst, op)?
            || self.arith_inst(inst, op)?
            || self.composite_inst(inst, op)?
        {
            return Ok(());
        }
        if self.sync_inst(inst, op)? {
            return Ok(());
        }
        unsupported("this instruction")
    }

    fn switch(&mut self, inst: &Inst) -> Result<End> {
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

    fn call(&mut self, inst: &Inst) -> Result<()> {
        let (ty, id, callee) = (self.p.ty(inst.word(0)?)?, inst.word(1)?, inst.word(2)?);
        let Some(Def::Func(index)) = self.p.defs.get(callee as usize) else {
            return bad(format!("%{callee} is not a function"));
        };
        let Some(def) = self.p.funcs.get(*index as usize) else {
            return bad("no such function");
        };
        if !def.has_body {
            if let Some((name, Linkage::Import)) = self.p.linkage(callee) {
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
            let by_val = self.p.has_deco(
                param,
                Decoration::FuncParamAttr,
                spirv::FunctionParameterAttribute::ByVal as u32,
            );
            let no_write = self.p.has_deco(
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

    /// A copy of what a pointer argument points to, for a parameter passed by value.
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

    /// A new block after the current one; continues there. For expansions with loops.
    pub fn new_block(&mut self) -> Block {
        self.f.add_block()
    }

    /// Ends the current block and continues in another.
    pub fn end_block(&mut self, term: Terminator, next: Block) {
        self.f.blocks[self.block].term = term;
        self.block = next;
    }

    /// A loop that runs `body(i)` for I64 `i` from `start` below `end` in steps.
    pub fn counted_loop(
        &mut self,
        start: Value,
        end: Value,
        step: Value,
        body: impl FnOnce(&mut Self, Value) -> Result<()>,
    ) -> Result<()> {
        let (head, inner, after) = (self.new_block(), self.new_block(), self.new_block());
        let i = self.f.add_param(head, Type::I64);
        let jump = |args: &[Value]| {
            Terminator::Jump(Target {
                block: head,
                args: args.iter().copied().collect(),
            })
        };
        self.end_block(jump(&[start]), head);
        let more = self.ins(Op::ICmp(crate::ir::op::IntCond::Ult), &[i, end], Type::Bool);
        self.end_block(
            Terminator::Branch(more, Target::new(inner), Target::new(after)),
            inner,
        );
        body(self, i)?;
        let next = self.ins(Op::IAdd, &[i, step], Type::I64);
        self.end_block(jump(&[next]), after);
        Ok(())
    }
}

/// Bits of the half nearest to a value.
pub(super) fn half_bits(value: f32) -> u16 {
    let bits = value.to_bits();
    let sign = (bits >> 16 & 0x8000) as u16;
    // Round to nearest even at the ten fraction bits that a half has.
    let rounded = (bits & 0x7fff_ffff) + 0xfff + (bits >> 13 & 1);
    let exp = (rounded >> 23) as i32 - 127 + 15;
    let frac = (rounded >> 13 & 0x3ff) as u16;
    match exp {
        _ if value == 0.0 => sign,
        31.. => sign | 0x7c00,
        1.. => sign | (exp as u16) << 10 | frac,
        _ => sign | (frac | 0x400).checked_shr((1 - exp) as u32).unwrap_or(0),
    }
}
