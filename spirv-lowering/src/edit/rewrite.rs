//! Rewrites a function instruction by instruction, which is what most lowering passes do.
//!
//! [`rewrite`] walks the blocks in layout order and passes every instruction to a callback, which
//! keeps it or emits others in its place through the [`Rewriter`]. The callback may end the current
//! block and continue in a new one, so control flow can be inserted anywhere; edges name blocks and
//! not predecessors, so nothing else needs repair. Replaced values are renamed everywhere when the
//! walk is over.

use crate::error::Result;
use crate::ir::entity::{Block, Inst, Value};
use crate::ir::function::{BlockData, Edge, FpFlags, Function, InstData, Terminator};
use crate::ir::op::{FloatCond, IntCond, Op};
use crate::ir::types::Type;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// The change to the current instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstEdit {
    /// Keeps it, after the emitted instructions.
    Keep,
    /// Removes it.
    Remove,
}

/// The position at which instructions are emitted.
pub struct Rewriter<'f> {
    /// The function.
    pub func: &'f mut Function,
    block: Block,
    out: Vec<Inst>,
    layout: Vec<Block>,
    replaced: FxHashMap<Value, Value>,
    fp: FpFlags,
    line: u32,
}

impl Rewriter<'_> {
    /// Emits an instruction.
    pub fn inst(
        &mut self,
        op: Op,
        args: impl IntoIterator<Item = Value>,
        results: &[Type],
    ) -> Inst {
        let inst = self.func.make_inst(op, args, results);
        self.func.insts[inst].fp = self.fp;
        self.func.insts[inst].line = self.line;
        self.out.push(inst);
        inst
    }
    /// Emits an instruction and returns all its results.
    pub fn many(
        &mut self,
        op: Op,
        args: impl IntoIterator<Item = Value>,
        results: &[Type],
    ) -> SmallVec<[Value; 2]> {
        let inst = self.inst(op, args, results);
        self.func.insts[inst].results.clone()
    }
    /// Emits an instruction with one result.
    pub fn op(&mut self, op: Op, args: impl IntoIterator<Item = Value>, ty: Type) -> Value {
        let inst = self.inst(op, args, &[ty]);
        self.func.insts[inst].results[0]
    }
    /// Emits an instruction whose result has the type of its first operand.
    pub fn same<const N: usize>(&mut self, op: Op, args: [Value; N]) -> Value {
        let ty = self.func.ty(args[0]);
        self.op(op, args, ty)
    }
    /// Emits a constant.
    pub fn konst(&mut self, ty: Type, bits: u64) -> Value {
        self.op(Op::Const(bits & ty.mask()), [], ty)
    }
    /// Emits an operation with a constant second operand.
    pub fn with_const(&mut self, op: Op, a: Value, bits: u64) -> Value {
        let b = self.konst(self.func.ty(a), bits);
        self.same(op, [a, b])
    }
    /// Emits an integer comparison.
    pub fn icmp(&mut self, cond: IntCond, a: Value, b: Value) -> Value {
        self.op(Op::ICmp(cond), [a, b], Type::Bool)
    }
    /// Emits an integer comparison with a constant.
    pub fn icmp_const(&mut self, cond: IntCond, a: Value, bits: u64) -> Value {
        let b = self.konst(self.func.ty(a), bits);
        self.icmp(cond, a, b)
    }
    /// Emits a float comparison.
    pub fn fcmp(&mut self, cond: FloatCond, a: Value, b: Value) -> Value {
        self.op(Op::FCmp(cond), [a, b], Type::Bool)
    }
    /// Emits a selection.
    pub fn select(&mut self, cond: Value, yes: Value, no: Value) -> Value {
        let ty = self.func.ty(yes);
        self.op(Op::Select, [cond, yes, no], ty)
    }
    /// Emits a pointer plus a constant number of bytes.
    pub fn offset(&mut self, pointer: Value, bytes: u64) -> Value {
        if bytes == 0 {
            return pointer;
        }
        let by = self.konst(Type::I64, bytes);
        self.same(Op::PtrAdd, [pointer, by])
    }
    /// Renames a value: every use of `old`, past and future, becomes `new`.
    pub fn replace(&mut self, old: Value, new: Value) {
        self.replaced.insert(old, new);
    }
    /// Renames the only result of an instruction and removes that.
    pub fn replace_result(&mut self, inst: Inst, new: Value) -> InstEdit {
        if let Some(&old) = self.func.insts[inst].results.first() {
            self.replace(old, new);
        }
        InstEdit::Remove
    }
    /// Returns the current name of a value.
    pub fn resolve(&self, value: Value) -> Value {
        resolve(&self.replaced, value)
    }
    /// Returns the instruction's data.
    pub fn data(&self, inst: Inst) -> InstData {
        self.func.insts[inst].clone()
    }
    /// Creates a block that is not in the layout yet, with parameters.
    pub fn new_block(&mut self, params: &[Type]) -> Block {
        let block = self.func.blocks.push(BlockData::default());
        for &ty in params {
            self.func.add_param(block, ty);
        }
        block
    }
    /// Ends the current block.
    fn end(&mut self, term: Terminator) {
        self.func.blocks[self.block].insts = std::mem::take(&mut self.out);
        self.func.blocks[self.block].term = term;
    }
    /// Ends the current block and continues in `next`.
    pub fn end_block(&mut self, term: Terminator, next: Block) {
        self.end(term);
        self.layout.push(next);
        self.block = next;
    }
    /// Ends the current block with a jump to `to` with arguments, and continues in `next`.
    pub fn jump(&mut self, to: Block, args: &[Value], next: Block) {
        let target = Edge::with(to, args.iter().copied());
        self.end_block(Terminator::Jump(target), next);
    }
    /// Returns the parameters of a block.
    pub fn params(&self, block: Block) -> Vec<Value> {
        self.func.blocks[block].params.clone()
    }
}

/// Emits code at the start of a function, after its variables, which stay in the entry block.
pub fn at_start(func: &mut Function, emit: impl FnOnce(&mut Rewriter)) {
    let Some(entry) = func.entry() else {
        return;
    };
    let insts = std::mem::take(&mut func.blocks[entry].insts);
    let term = std::mem::take(&mut func.blocks[entry].term);
    let is_variable =
        |&inst: &Inst| matches!(func.insts[inst].op, Op::Alloca { .. } | Op::Own { .. });
    let (variables, rest): (Vec<Inst>, Vec<Inst>) = insts.into_iter().partition(is_variable);
    let blocks = std::mem::take(&mut func.layout);
    let mut r = Rewriter {
        func,
        block: entry,
        out: variables,
        layout: vec![entry],
        replaced: FxHashMap::default(),
        fp: FpFlags::default(),
        line: 0,
    };
    emit(&mut r);
    r.out.extend(rest);
    r.end(term);
    r.layout.extend(blocks.into_iter().skip(1));
    let Rewriter { func, layout, .. } = r;
    func.layout = layout;
}

fn resolve(map: &FxHashMap<Value, Value>, mut value: Value) -> Value {
    // Bounded: a cycle would be a mistake of a pass, which must not hang.
    for _ in 0..1 << 16 {
        match map.get(&value) {
            Some(&next) if next != value => value = next,
            _ => break,
        }
    }
    value
}

/// Rewrites every instruction of a function. `term` receives every original terminator just before
/// it is inserted.
pub fn rewrite_with_terms(
    func: &mut Function,
    mut inst: impl FnMut(&mut Rewriter, Inst) -> Result<InstEdit>,
    mut term: impl FnMut(&mut Rewriter, &mut Terminator) -> Result<()>,
) -> Result<()> {
    let Some(entry) = func.entry() else {
        return Ok(());
    };
    let blocks = std::mem::take(&mut func.layout);
    let mut r = Rewriter {
        func,
        block: entry,
        out: Vec::new(),
        layout: Vec::with_capacity(blocks.len()),
        replaced: FxHashMap::default(),
        fp: FpFlags::default(),
        line: 0,
    };
    for block in blocks {
        r.block = block;
        r.layout.push(block);
        let insts = std::mem::take(&mut r.func.blocks[block].insts);
        let mut terminator = std::mem::take(&mut r.func.blocks[block].term);
        r.out.reserve(insts.len());
        for i in insts {
            r.fp = r.func.insts[i].fp;
            r.line = r.func.insts[i].line;
            if inst(&mut r, i)? == InstEdit::Keep {
                r.out.push(i);
            }
        }
        r.fp = FpFlags::default();
        term(&mut r, &mut terminator)?;
        r.end(terminator);
    }
    let Rewriter {
        func,
        layout,
        replaced,
        ..
    } = r;
    func.layout = layout;
    if !replaced.is_empty() {
        func.map_uses(|v| resolve(&replaced, v));
    }
    Ok(())
}

/// Rewrites every instruction of a function.
pub fn rewrite(
    func: &mut Function,
    inst: impl FnMut(&mut Rewriter, Inst) -> Result<InstEdit>,
) -> Result<()> {
    rewrite_with_terms(func, inst, |_, _| Ok(()))
}
