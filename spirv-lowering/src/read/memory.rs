//! Translates memory instructions: variables, access chains, loads, stores, copies, pointer
//! conversions.

use super::body::{bad, Body, IdMeaning};
use super::parsed::Def;
use super::types::{Kind, TyId};
use super::words::Instruction;
use crate::analysis::alignment::Alignments;
use crate::error::{LowerError, Result};
use crate::ir::entity::Value;
use crate::ir::function::Values;
use crate::ir::op::{IntCond, Op};
use crate::ir::types::{Space, Type};
use spirv::{Decoration, Op as S};

/// Memory operands of a load, store or copy.
struct MemoryOperands {
    volatile: bool,
    align: Option<u32>,
    /// Word after them.
    next: usize,
}

fn access(inst: &Instruction, at: usize) -> Result<MemoryOperands> {
    let Some(&mask) = inst.words.get(at) else {
        return Ok(MemoryOperands {
            volatile: false,
            align: None,
            next: at,
        });
    };
    let mut next = at + 1;
    let mut align = None;
    if mask & 2 != 0 {
        let bytes = inst.word(next)?;
        if !bytes.is_power_of_two() {
            return bad(format!("an alignment of {bytes}"));
        }
        align = Some(bytes.min(4096));
        next += 1;
    }
    next += (mask & 0x3_0018).count_ones() as usize;
    Ok(MemoryOperands {
        volatile: mask & 1 != 0,
        align,
        next,
    })
}

/// Returns the alignment of an offset in memory that is aligned to `base`.
fn align_at(base: u32, offset: u64) -> u32 {
    let low = offset & offset.wrapping_neg();
    if low == 0 || low >= u64::from(base) {
        base
    } else {
        low as u32
    }
}

impl Body<'_, '_> {
    /// Loads a value of any type.
    pub fn load(&mut self, pointer: Value, ty: TyId, align: u32, volatile: bool) -> Result<Values> {
        if let Some(image) = self.image_type(ty)? {
            let number = self.ins(Op::Load { align, volatile }, &[pointer], Type::I64);
            let image = self.ins(Op::ImageAt(image), &[number], Type::Handle);
            return Ok([image].into_iter().collect());
        }
        if self.is_sampler(ty) {
            let number = self.ins(Op::Load { align, volatile }, &[pointer], Type::I64);
            let sampler = self.ins(Op::SamplerAt, &[number], Type::Handle);
            return Ok([sampler].into_iter().collect());
        }
        let mut out = Values::new();
        for leaf in self.p.types.leaves(ty)? {
            let address = self.offset(pointer, leaf.offset as i64);
            let align = align_at(align, leaf.offset);
            let memory = if leaf.ty == Type::Bool {
                Type::I8
            } else {
                leaf.ty
            };
            let types = vec![memory; leaf.n as usize];
            let values = self.ins_many(Op::Load { align, volatile }, &[address], &types);
            for value in values {
                out.push(if leaf.ty == Type::Bool {
                    self.to_bool(value)
                } else {
                    value
                });
            }
        }
        Ok(out)
    }

    /// Stores a value of any type.
    pub fn store(
        &mut self,
        pointer: Value,
        ty: TyId,
        values: &[Value],
        align: u32,
        volatile: bool,
    ) -> Result<()> {
        if let (Some(_), &[image]) = (self.image_type(ty)?, values) {
            if self.f.ty(image) != Type::Handle {
                return bad("the value has the wrong type");
            }
            let number = self.ins(Op::ImageNumber, &[image], Type::I64);
            self.effect(Op::Store { align, volatile }, &[pointer, number]);
            return Ok(());
        }
        if let (true, &[sampler]) = (self.is_sampler(ty), values) {
            if self.f.ty(sampler) != Type::Handle {
                return bad("the value has the wrong type");
            }
            let word = self.ins(Op::SamplerWord, &[sampler], Type::I32);
            let number = self.ins(Op::ZExt, &[word], Type::I64);
            self.effect(Op::Store { align, volatile }, &[pointer, number]);
            return Ok(());
        }
        let mut values = values.iter();
        for leaf in self.p.types.leaves(ty)? {
            let address = self.offset(pointer, leaf.offset as i64);
            let align = align_at(align, leaf.offset);
            let mut args = vec![address];
            for _ in 0..leaf.n {
                let Some(&value) = values.next() else {
                    return bad("the value has too few scalars");
                };
                if self.f.ty(value) != leaf.ty {
                    return bad("the value has the wrong type");
                }
                args.push(if leaf.ty == Type::Bool {
                    self.ins(Op::ZExt, &[value], Type::I8)
                } else {
                    value
                });
            }
            self.effect(Op::Store { align, volatile }, &args);
        }
        Ok(())
    }

    /// Converts an integer to Bool.
    pub fn to_bool(&mut self, value: Value) -> Value {
        let zero = self.constant(self.f.ty(value), 0);
        self.ins(Op::ICmp(IntCond::Ne), &[value, zero], Type::Bool)
    }

    /// Converts any integer to I64.
    pub fn to_i64(&mut self, value: Value, signed: bool) -> Result<Value> {
        match self.f.ty(value) {
            Type::I64 => Ok(value),
            ty if ty.is_int() => match self.f.as_const(value) {
                Some(bits) if signed => {
                    Ok(self.constant(Type::I64, super::consts::sext(bits, ty.bits()) as u64))
                }
                Some(bits) => Ok(self.constant(Type::I64, bits)),
                None => Ok(self.ins(
                    if signed { Op::SExt } else { Op::ZExt },
                    &[value],
                    Type::I64,
                )),
            },
            _ => bad("an index that is not an integer"),
        }
    }

    /// Computes `base + index * stride`.
    pub fn element(&mut self, base: Value, index: Value, stride: u64) -> Result<Value> {
        let index = self.to_i64(index, true)?;
        if let Some(bits) = self.f.as_const(index) {
            return Ok(self.offset(base, (bits as i64).wrapping_mul(stride as i64)));
        }
        let bytes = if stride == 1 {
            index
        } else {
            let stride = self.constant(Type::I64, stride);
            self.ins(Op::IMul, &[index, stride], Type::I64)
        };
        let ty = self.f.ty(base);
        Ok(self.ins(Op::PtrAdd, &[base, bytes], ty))
    }

    /// Returns the pointee of a typed pointer.
    pub fn pointee(&self, ty: TyId) -> Result<TyId> {
        match self.p.types.get(ty).kind {
            Kind::Pointer { pointee, .. } if pointee != 0 => self.p.ty(pointee),
            Kind::Pointer { .. } => bad("an untyped pointer where a type is needed"),
            _ => bad("not a pointer"),
        }
    }

    /// Returns the built-in variable that an id points to, the byte offset in it, and the dynamic
    /// component.
    fn builtin_ptr(&self, id: u32) -> Option<(u32, i64, Option<Value>)> {
        match self.meaning(id) {
            Some(&IdMeaning::Builtin {
                which,
                offset,
                index,
                ..
            }) => Some((which, offset, index)),
            Some(_) => None,
            None => match self.p.defs.get(id as usize) {
                Some(Def::Var(index)) => {
                    Some((self.p.vars.get(*index as usize)?.builtin?, 0, None))
                }
                _ => None,
            },
        }
    }

    /// Reads an instruction that accesses memory. Returns false for others.
    pub(super) fn memory_inst(&mut self, inst: &Instruction, op: S) -> Result<bool> {
        match op {
            S::Load => {
                let (ty, id, from) = (self.p.ty(inst.word(0)?)?, inst.word(1)?, inst.word(2)?);
                if let Some((which, offset, index)) = self.builtin_ptr(from) {
                    if let Some(values) = self.builtin_load(which, offset, index, ty)? {
                        self.set_builtin(id, ty, values, which)?;
                        return Ok(true);
                    }
                }
                let access = access(inst, 3)?;
                let (pointer, _) = self.pointer(from)?;
                let align = access.align.unwrap_or(self.p.types.get(ty).align);
                let volatile =
                    access.volatile || self.p.decorations.get(from, Decoration::Volatile).is_some();
                let values = self.load(pointer, ty, align, volatile)?;
                self.set(id, ty, values)?;
            }
            S::Store => {
                let (to, value) = (inst.word(0)?, inst.word(1)?);
                let access = access(inst, 2)?;
                let (pointer, _) = self.pointer(to)?;
                let ty = self.type_of(value)?;
                let values = self.value(value)?;
                let align = access.align.unwrap_or(self.p.types.get(ty).align);
                let volatile =
                    access.volatile || self.p.decorations.get(to, Decoration::Volatile).is_some();
                self.store(pointer, ty, &values, align, volatile)?;
            }
            S::Variable | S::UntypedVariableKHR => self.local_variable(inst, op)?,
            S::AccessChain
            | S::InBoundsAccessChain
            | S::PtrAccessChain
            | S::InBoundsPtrAccessChain
            | S::UntypedAccessChainKHR
            | S::UntypedInBoundsAccessChainKHR
            | S::UntypedPtrAccessChainKHR
            | S::UntypedInBoundsPtrAccessChainKHR => self.access_chain(inst, op)?,
            S::CopyMemory => {
                let (to_id, from_id) = (inst.word(0)?, inst.word(1)?);
                let (to, _) = self.pointer(to_id)?;
                let from_ty = self.type_of(from_id)?;
                let data = self
                    .pointee(from_ty)
                    .or_else(|_| self.pointee(self.type_of(to_id)?))?;
                let (size, natural) = (self.p.types.get(data).size, self.p.types.get(data).align);
                let (from, _) = self.pointer(from_id)?;
                let (align, doubtful) = self.copy_access(inst, 2, natural)?;
                if size > 0 {
                    self.copy_bytes(to, from, size, align, doubtful);
                }
            }
            S::CopyMemorySized => {
                let (to, _) = self.pointer(inst.word(0)?)?;
                let (from, _) = self.pointer(inst.word(1)?)?;
                let (align, doubtful) = self.copy_access(inst, 3, 1)?;
                match self.const_bits(inst.word(2)?) {
                    Some(0) => {}
                    Some(size) => self.copy_bytes(to, from, size, align, doubtful),
                    None => {
                        let size = self.scalar(inst.word(2)?)?;
                        let size = self.to_i64(size, false)?;
                        self.copy_loop(to, from, size)?;
                    }
                }
            }
            S::ConvertPtrToU => {
                let (ty, id) = (self.p.ty(inst.word(0)?)?, inst.word(1)?);
                let (pointer, _) = self.pointer(inst.word(2)?)?;
                let value = self.ins(Op::PtrToInt, &[pointer], Type::I64);
                let value = match self.p.types.scalar(ty) {
                    Some(Type::I64) => value,
                    Some(t) if t.is_int() => self.ins(Op::Trunc, &[value], t),
                    _ => return bad("the result is not an integer"),
                };
                self.set(id, ty, [value].into_iter().collect())?;
            }
            S::ConvertUToPtr => {
                let (ty, id) = (self.p.ty(inst.word(0)?)?, inst.word(1)?);
                let Some(result @ Type::Ptr(_)) = self.p.types.scalar(ty) else {
                    return bad("the result is not a pointer");
                };
                let value = self.scalar(inst.word(2)?)?;
                let value = self.to_i64(value, false)?;
                let value = self.ins(Op::IntToPtr, &[value], result);
                self.set(id, ty, [value].into_iter().collect())?;
            }
            S::PtrCastToGeneric | S::GenericCastToPtr | S::GenericCastToPtrExplicit => {
                let (ty, id) = (self.p.ty(inst.word(0)?)?, inst.word(1)?);
                let values = self.value(inst.word(2)?)?;
                let Some((result @ Type::Ptr(_), _)) = self.p.types.vector(ty) else {
                    return bad("the result is not a pointer");
                };
                let mut out = Values::new();
                for value in values {
                    out.push(self.space_cast(value, result)?);
                }
                self.set(id, ty, out)?;
            }
            S::GenericPtrMemSemantics => {
                let (ty, id) = (self.p.ty(inst.word(0)?)?, inst.word(1)?);
                let (pointer, space) = self.pointer(inst.word(2)?)?;
                let (local, global) = (0x100, 0x200);
                let value = match space {
                    Space::Generic => {
                        let is_local = self.ins(Op::PtrIsIn(Space::Local), &[pointer], Type::Bool);
                        let is_global =
                            self.ins(Op::PtrIsIn(Space::Global), &[pointer], Type::Bool);
                        let zero = self.constant(Type::I32, 0);
                        let (l, g) = (
                            self.constant(Type::I32, local),
                            self.constant(Type::I32, global),
                        );
                        let rest = self.select(is_global, g, zero);
                        self.select(is_local, l, rest)
                    }
                    Space::Local => self.constant(Type::I32, local),
                    Space::Global => self.constant(Type::I32, global),
                    _ => self.constant(Type::I32, 0),
                };
                self.set(id, ty, [value].into_iter().collect())?;
            }
            S::PtrEqual | S::PtrNotEqual => {
                let (ty, id) = (self.p.ty(inst.word(0)?)?, inst.word(1)?);
                let cond = if op == S::PtrEqual {
                    IntCond::Eq
                } else {
                    IntCond::Ne
                };
                let (a, b) = self.pointer_pair(inst.word(2)?, inst.word(3)?)?;
                let value = self.ins(Op::ICmp(cond), &[a, b], Type::Bool);
                self.set(id, ty, [value].into_iter().collect())?;
            }
            S::SizeOf => {
                let (ty, id) = (self.p.ty(inst.word(0)?)?, inst.word(1)?);
                let data = self.pointee(self.type_of(inst.word(2)?)?)?;
                let Some(scalar) = self.p.types.scalar(ty).filter(|t| t.is_int()) else {
                    return bad("the result is not an integer");
                };
                let size = self.constant(scalar, self.p.types.get(data).size);
                self.set(id, ty, [size].into_iter().collect())?;
            }
            S::PtrDiff => {
                let (ty, id) = (self.p.ty(inst.word(0)?)?, inst.word(1)?);
                // Between untyped pointers the unit is a byte.
                let stride = match self.p.types.get(self.type_of(inst.word(2)?)?).kind {
                    Kind::Pointer { pointee: 0, .. } => 1,
                    Kind::Pointer { pointee, .. } => self.p.types.get(self.p.ty(pointee)?).size,
                    _ => return bad("an operand is not a pointer"),
                };
                let (a, b) = self.pointer_pair(inst.word(2)?, inst.word(3)?)?;
                let a = self.ins(Op::PtrToInt, &[a], Type::I64);
                let b = self.ins(Op::PtrToInt, &[b], Type::I64);
                let mut value = self.ins(Op::ISub, &[a, b], Type::I64);
                if stride > 1 {
                    let stride = self.constant(Type::I64, stride);
                    value = self.ins(Op::SDiv, &[value, stride], Type::I64);
                }
                match self.p.types.scalar(ty) {
                    Some(Type::I64) => {}
                    Some(t) if t.is_int() => value = self.ins(Op::Trunc, &[value], t),
                    _ => return bad("the result is not an integer"),
                }
                self.set(id, ty, [value].into_iter().collect())?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Returns two pointers, which must be into the same space.
    pub fn pointer_pair(&mut self, a: u32, b: u32) -> Result<(Value, Value)> {
        let (a, b) = (self.pointer(a)?.0, self.pointer(b)?.0);
        if self.f.ty(a) != self.f.ty(b) {
            return bad("pointers of different storage classes");
        }
        Ok((a, b))
    }

    /// Casts a pointer to another space.
    pub fn space_cast(&mut self, value: Value, to: Type) -> Result<Value> {
        match self.f.ty(value) {
            from if from == to => Ok(value),
            Type::Ptr(_) => Ok(self.ins(Op::SpaceCast, &[value], to)),
            _ => bad("the operand is not a pointer"),
        }
    }

    /// Copies memory. `doubtful`: the alignment may be valid for the target alone.
    fn copy_bytes(&mut self, to: Value, from: Value, size: u64, align: u32, doubtful: bool) {
        self.effect(Op::MemCopy { size, align }, &[to, from]);
        let inst = self.f.blocks[self.block].insts.last();
        self.copies.extend(inst.map(|&inst| (inst, doubtful)));
    }

    /// Raises the alignment of copies to that of their addresses, and lowers doubtful ones to that
    /// of their source.
    pub(super) fn settle_copies(&mut self) {
        if self.copies.is_empty() {
            return;
        }
        let globals = &self.out.module.globals;
        let known = Alignments::new(&self.f, &self.aligned, |id| globals[id].placement());
        for &(inst, doubtful) in &self.copies {
            let data = &mut self.f.insts[inst];
            if let (Op::MemCopy { align, .. }, &[to, from]) = (&mut data.op, &data.args[..]) {
                let (to, from) = (known.of(to), known.of(from));
                let stated = if doubtful { from.min(*align) } else { *align };
                *align = stated.max(to.min(from));
            }
        }
    }

    /// Returns the alignment by the memory operands of a copy, one set or two, and whether it may
    /// be that of the target alone.
    pub fn copy_access(
        &mut self,
        inst: &Instruction,
        at: usize,
        natural: u32,
    ) -> Result<(u32, bool)> {
        let first = access(inst, at)?;
        let second = access(inst, first.next)?;
        let align = match (first.align, second.align) {
            (Some(a), Some(b)) => a.min(b),
            // One set of operands is for both sides; of two sets, one without alignment says nothing.
            (Some(a), None) if second.next == first.next => a,
            (Some(a), None) | (None, Some(a)) => a.min(natural),
            (None, None) => natural,
        };
        // LLVM's SPIR-V target writes that of the target, where the source may have less.
        let doubtful = self.p.llvm_backend && second.align.is_none();
        Ok((align, doubtful))
    }

    /// Copies a number of bytes known at run time.
    pub fn copy_loop(&mut self, to: Value, from: Value, size: Value) -> Result<()> {
        let (zero, one) = (self.constant(Type::I64, 0), self.constant(Type::I64, 1));
        self.counted_loop(zero, size, one, |b, i| {
            let source = b.element(from, i, 1)?;
            let value = b.ins(
                Op::Load {
                    align: 1,
                    volatile: false,
                },
                &[source],
                Type::I8,
            );
            let target = b.element(to, i, 1)?;
            b.effect(
                Op::Store {
                    align: 1,
                    volatile: false,
                },
                &[target, value],
            );
            Ok(())
        })
    }

    fn local_variable(&mut self, inst: &Instruction, op: S) -> Result<()> {
        let (ty, id, class) = (self.p.ty(inst.word(0)?)?, inst.word(1)?, inst.word(2)?);
        if class != spirv::StorageClass::Function as u32 {
            return bad(format!(
                "a variable of storage class {class} inside a function"
            ));
        }
        if self.p.types.scalar(ty) != Some(Type::Ptr(Space::Private)) {
            return bad("its type is not a pointer to Function storage");
        }
        let (data, init) = if op == S::Variable {
            (self.pointee(ty)?, inst.words.get(3).copied())
        } else {
            (self.p.ty(inst.word(3)?)?, inst.words.get(4).copied())
        };
        let (size, natural) = (self.p.types.get(data).size, self.p.types.get(data).align);
        let align = self.p.alignment(id).unwrap_or(1);
        let align = align.clamp(natural, 4096.max(natural));
        let pointer = self.alloca(size, align)?;
        if let Some(init) = init.filter(|&i| i != 0) {
            if self.p.types.get(data).lanes <= super::types::MAX_LANES {
                let values = self.value(init)?;
                self.store(pointer, data, &values, align, false)?;
            } else {
                let table = self.out.table(self.p, init, data)?;
                let space = Type::Ptr(Space::Constant);
                let from = self.prologue(Op::GlobalAddr(table), [], space);
                let align = natural;
                self.effect(Op::MemCopy { size, align }, &[pointer, from]);
            }
        }
        self.set(id, ty, [pointer].into_iter().collect())
    }

    fn access_chain(&mut self, inst: &Instruction, op: S) -> Result<()> {
        let (result, id) = (self.p.ty(inst.word(0)?)?, inst.word(1)?);
        let untyped = matches!(
            op,
            S::UntypedAccessChainKHR
                | S::UntypedInBoundsAccessChainKHR
                | S::UntypedPtrAccessChainKHR
                | S::UntypedInBoundsPtrAccessChainKHR
        );
        let element = matches!(
            op,
            S::PtrAccessChain
                | S::InBoundsPtrAccessChain
                | S::UntypedPtrAccessChainKHR
                | S::UntypedInBoundsPtrAccessChainKHR
        );
        let base_at = 2 + usize::from(untyped);
        let base_id = inst.word(base_at)?;
        let mut ty = if untyped {
            self.p.ty(inst.word(2)?)?
        } else {
            self.pointee(self.type_of(base_id)?)?
        };
        let indices = inst.rest(base_at + 1);
        if let Some((which, offset, None)) = self.builtin_ptr(base_id) {
            if let Some((offset, index)) = self.builtin_chain(ty, indices, element, offset)? {
                return self.set_builtin_ptr(id, result, which, offset, index);
            }
        }
        let (mut pointer, _) = self.pointer(base_id)?;
        let mut fixed = 0i64;
        for (i, &index) in indices.iter().enumerate() {
            let (next, stride) = if i == 0 && element {
                (ty, self.p.types.get(ty).size)
            } else {
                match &self.p.types.get(ty).kind {
                    Kind::Struct { .. } => {
                        let number = self.const_bits(index).ok_or_else(|| {
                            LowerError::invalid(format!(
                                "the index %{index} into a structure is not constant"
                            ))
                        })?;
                        let (next, bytes) = self.p.step(ty, number as i64)?;
                        fixed = fixed.wrapping_add(bytes);
                        ty = next;
                        continue;
                    }
                    Kind::Vector { elem, .. } | Kind::Array { elem, .. } => {
                        (*elem, self.p.types.get(*elem).size)
                    }
                    _ => return bad("an index into a type without parts"),
                }
            };
            ty = next;
            if let Some(bits) = self.p.const_i64(index) {
                fixed = fixed.wrapping_add(bits.wrapping_mul(stride as i64));
                continue;
            }
            let index = self.scalar(index)?;
            pointer = self.element(pointer, index, stride)?;
        }
        let value = self.offset(pointer, fixed);
        self.set(id, result, [value].into_iter().collect())
    }

    /// Follows an access chain on a built-in variable. Returns the byte offset and the dynamic
    /// component, or `None` if there is more to it.
    fn builtin_chain(
        &mut self,
        ty: TyId,
        indices: &[u32],
        element: bool,
        start: i64,
    ) -> Result<Option<(i64, Option<Value>)>> {
        let mut offset = start;
        let mut ty = ty;
        for (i, &index) in indices.iter().enumerate() {
            match self.p.const_i64(index) {
                Some(n) if i == 0 && element => {
                    offset = offset.wrapping_add(n.wrapping_mul(self.p.types.get(ty).size as i64));
                }
                Some(n) => {
                    let (next, bytes) = self.p.step(ty, n)?;
                    offset = offset.wrapping_add(bytes);
                    ty = next;
                }
                None if i + 1 == indices.len() && offset == 0 => {
                    let stride = match self.p.types.get(ty).kind {
                        _ if i == 0 && element => self.p.types.get(ty).size,
                        Kind::Vector { elem, .. } => self.p.types.get(elem).size,
                        _ => return Ok(None),
                    };
                    if stride != 8 {
                        return Ok(None);
                    }
                    return Ok(Some((0, Some(self.scalar(index)?))));
                }
                None => return Ok(None),
            }
        }
        Ok(Some((offset, None)))
    }
}
