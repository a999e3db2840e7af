//! The values of a function's ids, and the instructions and constants that translation adds.

use super::body::{bad, unsupported, Body, IdMeaning};
use super::parsed::Lane;
use super::parsed::{fp_flags, Def};
use super::types::TyId;
use crate::error::{LowerError, Result};
use crate::ir::entity::{Block, Value};
use crate::ir::function::{FpFlags, Values};
use crate::ir::module::least_alignment;
use crate::ir::op::Op;
use crate::ir::types::{Space, Type};
use smallvec::SmallVec;
use spirv::Decoration;

/// Returns the size of a variable inside a function.
fn variable_size(size: u64) -> Result<u32> {
    u32::try_from(size).or_else(|_| unsupported(format!("a variable of {size} bytes")))
}

impl Body<'_, '_> {
    /// Gives an id its meaning. Returns an error if it has one.
    pub(super) fn define(&mut self, id: u32, meaning: IdMeaning) -> Result<()> {
        let p = self.p;
        match (p.defs.get(id as usize), self.index.get_mut(id as usize)) {
            (Some(Def::None), Some(entry)) if *entry == 0 && id != 0 => {
                self.meanings.push(meaning);
                *entry = self.meanings.len() as u32;
                self.touched.push(id);
                Ok(())
            }
            (Some(_), Some(_)) => bad(format!("the id %{id} is defined twice")),
            _ => bad(format!("the id %{id} is not below the bound {}", p.bound)),
        }
    }

    /// Returns the meaning of an id, if it has one.
    pub fn meaning(&self, id: u32) -> Option<&IdMeaning> {
        let index = *self.index.get(id as usize)?;
        self.meanings.get((index as usize).checked_sub(1)?)
    }

    /// Sets the value of an id, after comparing the scalars with the declared type.
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
        self.define(id, IdMeaning::Value(ty, values, None))
    }

    /// Sets the value of an id to (part of) a built-in variable.
    pub fn set_builtin(&mut self, id: u32, ty: TyId, values: Values, which: u32) -> Result<()> {
        self.set(id, ty, values)?;
        if let Some(IdMeaning::Value(_, _, builtin)) = self.meanings.last_mut() {
            *builtin = Some(which);
        }
        Ok(())
    }

    /// Makes an id a pointer to a built-in variable.
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
            IdMeaning::Builtin {
                ty,
                which,
                offset,
                index,
            },
        )
    }

    /// Returns the block of a label.
    pub fn label(&self, id: u32) -> Result<Block> {
        match self.meaning(id) {
            Some(IdMeaning::Label(block)) => Ok(*block),
            _ => bad(format!("%{id} is not a block of this function")),
        }
    }

    /// Returns the type of a value, constant or variable.
    pub fn type_of(&self, id: u32) -> Result<TyId> {
        match self.meaning(id) {
            Some(IdMeaning::Value(ty, ..) | IdMeaning::Builtin { ty, .. }) => Ok(*ty),
            Some(IdMeaning::Label(_)) => bad(format!("%{id} is a block")),
            None => self
                .p
                .const_ty(id)
                .ok_or_else(|| LowerError::invalid(format!("%{id} is not a value defined before"))),
        }
    }

    /// Returns the scalars of a value.
    pub fn value(&mut self, id: u32) -> Result<Values> {
        match self.meaning(id) {
            Some(IdMeaning::Value(_, values, _)) => return Ok(values.clone()),
            Some(&IdMeaning::Builtin {
                which,
                offset,
                index,
                ..
            }) => return self.builtin_memory(which, offset, index),
            Some(IdMeaning::Label(_)) => return bad(format!("%{id} is a block")),
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
            self.meanings
                .push(IdMeaning::Value(ty, values.clone(), None));
            *entry = self.meanings.len() as u32;
            self.touched.push(id);
        }
        Ok(values)
    }

    /// Returns a value, which must be one scalar.
    pub fn scalar(&mut self, id: u32) -> Result<Value> {
        match self.value(id)?.as_slice() {
            [value] => Ok(*value),
            _ => bad(format!("%{id} is not a scalar")),
        }
    }

    /// Returns a value, which must be one scalar of type `ty`.
    pub fn scalar_of(&mut self, id: u32, ty: Type) -> Result<Value> {
        let value = self.scalar(id)?;
        if self.f.ty(value) == ty {
            Ok(value)
        } else {
            bad(format!("%{id} has the wrong type"))
        }
    }

    /// Returns a value, which must have `n` scalars, all of type `ty`.
    pub fn lanes(&mut self, id: u32, ty: Type, n: usize) -> Result<Values> {
        let values = self.value(id)?;
        if values.len() == n && values.iter().all(|&v| self.f.ty(v) == ty) {
            Ok(values)
        } else {
            bad(format!("%{id} has the wrong type"))
        }
    }

    /// Returns a value, which must have one or more scalars of one type, and that type.
    pub fn uniform(&mut self, id: u32) -> Result<(Values, Type)> {
        let values = self.value(id)?;
        match values.first().map(|&v| self.f.ty(v)) {
            Some(ty) if values.iter().all(|&v| self.f.ty(v) == ty) => Ok((values, ty)),
            _ => bad(format!("%{id} is not a scalar or vector")),
        }
    }

    /// Returns a value, which must be a pointer, and its space.
    pub fn pointer(&mut self, id: u32) -> Result<(Value, Space)> {
        let value = self.scalar(id)?;
        match self.f.ty(value).space() {
            Some(space) => Ok((value, space)),
            None => bad(format!("%{id} is not a pointer")),
        }
    }

    /// Returns the bits of an integer operand that is constant.
    pub fn const_bits(&mut self, id: u32) -> Option<u64> {
        if let Some(bits) = self.p.const_u64(id) {
            return Some(bits);
        }
        match self.meaning(id) {
            Some(IdMeaning::Value(_, values, _)) => match values.as_slice() {
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
                    // `(uint)&variable` outside of every function.
                    Type::I8 | Type::I16 | Type::I32 => {
                        let whole = self.prologue(Op::PtrToInt, [value], Type::I64);
                        Ok(self.prologue(Op::Trunc, [whole], ty))
                    }
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

    /// Returns a constant, which it adds to the prologue.
    pub fn constant(&mut self, ty: Type, bits: u64) -> Value {
        let bits = bits & ty.mask();
        if let Some(&value) = self.consts.get(&(ty, bits)) {
            return value;
        }
        let value = self.prologue(Op::Const(bits), [], ty);
        self.consts.insert((ty, bits), value);
        value
    }

    /// Returns an undefined value.
    pub fn undef(&mut self, ty: Type) -> Value {
        if let Some(&value) = self.undefs.get(&ty) {
            return value;
        }
        let value = self.prologue(Op::Undef, [], ty);
        self.undefs.insert(ty, value);
        value
    }

    /// Returns a constant of a float type.
    pub fn float(&mut self, ty: Type, value: f64) -> Value {
        let bits = match ty {
            Type::F64 => value.to_bits(),
            Type::F32 => u64::from((value as f32).to_bits()),
            _ => u64::from(half_bits(value as f32)),
        };
        self.constant(ty, bits)
    }

    /// Returns a built-in variable's value, computed once at the start of the function.
    pub fn cached_builtin(&mut self, key: u32, op: Op, ty: Type) -> Value {
        if let Some(&value) = self.builtins.get(&key) {
            return value;
        }
        let value = self.prologue(op, [], ty);
        self.builtins.insert(key, value);
        value
    }

    /// Appends an instruction with one result, and returns that.
    pub fn ins(&mut self, op: Op, args: &[Value], ty: Type) -> Value {
        let inst = self.f.append(self.block, op, args.iter().copied(), &[ty]);
        let data = &mut self.f.insts[inst];
        data.line = self.line;
        data.fp = self.fp;
        data.results[0]
    }

    /// Appends an instruction with any number of results, and returns them.
    pub fn ins_many(&mut self, op: Op, args: &[Value], results: &[Type]) -> Values {
        let inst = self.f.append(self.block, op, args.iter().copied(), results);
        self.f.insts[inst].line = self.line;
        self.f.insts[inst].results.iter().copied().collect()
    }

    /// Appends an instruction without result.
    pub fn effect(&mut self, op: Op, args: &[Value]) {
        self.ins_many(op, args, &[]);
    }

    /// Selects scalar by scalar.
    pub fn select(&mut self, cond: Value, a: Value, b: Value) -> Value {
        let ty = self.f.ty(a);
        self.ins(Op::Select, &[cond, a, b], ty)
    }

    /// Adds a constant number of bytes to a pointer.
    pub fn offset(&mut self, pointer: Value, bytes: i64) -> Value {
        if bytes == 0 {
            return pointer;
        }
        let ty = self.f.ty(pointer);
        let bytes = self.constant(Type::I64, bytes as u64);
        self.ins(Op::PtrAdd, &[pointer, bytes], ty)
    }

    /// Allocates private memory of the function.
    pub fn alloca(&mut self, size: u64, align: u32) -> Result<Value> {
        let align = align.max(least_alignment(size));
        let size = variable_size(size)?;
        Ok(self.prologue(Op::Alloca { size, align }, [], Type::Ptr(Space::Private)))
    }

    /// Enlarges the variable that `pointer` is the beginning of to at least `size` bytes. LLVM's
    /// own SPIR-V target gives an array of pointers the type of its first element when a variable's
    /// address is stored to that, and only lifetime markers and casts show the true size.
    pub fn at_least(&mut self, pointer: Value, size: u64) -> Result<()> {
        let Some(inst) = self.f.def_inst(pointer) else {
            return Ok(());
        };
        if let Op::Alloca { size: known, .. } = &mut self.f.insts[inst].op {
            if u64::from(*known) < size {
                *known = variable_size(size)?;
            }
        }
        Ok(())
    }

    /// Calls a function by name, which it declares where needed.
    pub fn call_name(&mut self, name: &str, args: &[Value], results: &[Type]) -> Result<Values> {
        let params: SmallVec<[Type; 8]> = args.iter().map(|&v| self.f.ty(v)).collect();
        let func = self.out.import(name, &params, results)?;
        Ok(self.ins_many(Op::Call(func), args, results))
    }

    /// Returns the fast-math flags of a floating-point instruction.
    pub fn fp_of(&self, id: u32) -> FpFlags {
        let mut flags = self.p.default_fp;
        for d in self.p.decorations.of(id) {
            if d.kind == Decoration::FPFastMathMode as u32 && d.len > 0 {
                flags = fp_flags(self.p.words.get(d.at as usize).copied().unwrap_or(0));
            } else if d.kind == Decoration::NoContraction as u32 {
                return FpFlags(flags.0 & !FpFlags::CONTRACT);
            }
        }
        flags
    }
}

/// Returns the bits of the half nearest to a value.
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
