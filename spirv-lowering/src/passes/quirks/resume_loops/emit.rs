//! Appending to a block under construction, and values in memory: in records, and in private variables that are promoted again
//! at once.

use crate::ir::entity::{Block, Inst, Value};
use crate::ir::function::{Function, Values};
use crate::ir::op::{IntCond, Op};
use crate::ir::types::{Space, Type};

/// Returns the form in which a value is stored; None where it cannot be.
pub(super) fn stored(ty: Type) -> Option<Type> {
    match ty {
        Type::Bool => Some(Type::I32),
        Type::Ptr(Space::Global | Space::Constant) => Some(Type::I64),
        Type::Ptr(_) | Type::Handle => None,
        other => Some(other),
    }
}

/// Appends instructions to a block under construction.
pub(super) struct Emit<'f> {
    pub(super) func: &'f mut Function,
    pub(super) out: Vec<Inst>,
}

impl<'f> Emit<'f> {
    pub(super) fn new(func: &'f mut Function) -> Self {
        let out = Vec::new();
        Self { func, out }
    }
    pub(super) fn op(&mut self, op: Op, args: &[Value], ty: Type) -> Value {
        let inst = self.func.make_inst(op, args.iter().copied(), &[ty]);
        self.out.push(inst);
        self.func.insts[inst].results[0]
    }
    pub(super) fn konst(&mut self, ty: Type, bits: u64) -> Value {
        self.op(Op::Const(bits & ty.mask()), &[], ty)
    }
    pub(super) fn load(&mut self, at: Value, ty: Type) -> Value {
        let align = 8;
        let volatile = false;
        self.op(Op::Load { align, volatile }, &[at], ty)
    }
    pub(super) fn store(&mut self, at: Value, value: Value) {
        let (align, volatile) = (8, false);
        let op = Op::Store { align, volatile };
        let inst = self.func.make_inst(op, [at, value], &[]);
        self.out.push(inst);
    }
    pub(super) fn load_word(&mut self, at: Value) -> Value {
        let (align, volatile) = (4, false);
        self.op(Op::Load { align, volatile }, &[at], Type::I32)
    }
    pub(super) fn store_word(&mut self, at: Value, value: Value) {
        let (align, volatile) = (4, false);
        let op = Op::Store { align, volatile };
        let inst = self.func.make_inst(op, [at, value], &[]);
        self.out.push(inst);
    }
    pub(super) fn pack(&mut self, value: Value) -> Value {
        match self.func.ty(value) {
            Type::Bool => self.op(Op::ZExt, &[value], Type::I32),
            Type::Ptr(_) => self.op(Op::PtrToInt, &[value], Type::I64),
            _ => value,
        }
    }
    pub(super) fn unpack(&mut self, value: Value, ty: Type) -> Value {
        match ty {
            Type::Bool => {
                let zero = self.konst(Type::I32, 0);
                self.op(Op::ICmp(IntCond::Ne), &[value, zero], Type::Bool)
            }
            Type::Ptr(_) => self.op(Op::IntToPtr, &[value], ty),
            _ => value,
        }
    }
    /// Returns the values of no meaning, for parameters that are not looked at.
    pub(super) fn any(&mut self, types: &[Type]) -> Values {
        types
            .iter()
            .map(|&ty| {
                let zero = self.konst(stored(ty).unwrap_or(ty), 0);
                self.unpack(zero, ty)
            })
            .collect()
    }
    pub(super) fn at(&mut self, base: Value, offset: u64) -> Value {
        let ty = self.func.ty(base);
        let offset = self.konst(Type::I64, offset);
        self.op(Op::PtrAdd, &[base, offset], ty)
    }
    pub(super) fn finish(self, block: Block) {
        self.func.blocks[block].insts.extend(self.out);
    }
}

/// Returns a private variable, to be promoted again at once.
pub(super) fn variable(func: &mut Function, first: Block) -> Value {
    let op = Op::Alloca { size: 8, align: 8 };
    let inst = func.make_inst(op, [], &[Type::Ptr(Space::Private)]);
    func.blocks[first].insts.push(inst);
    func.insts[inst].results[0]
}
