//! Translates construction, extraction and shuffles of vectors and aggregates, copies and bit
//! casts.

use super::body::{bad, Body, IdMeaning};
use super::parsed::Def;
use super::types::{Kind, TyId};
use super::words::Instruction;
use crate::error::{LowerError, Result};
use crate::ir::entity::Value;
use crate::ir::function::Values;
use crate::ir::op::{IntCond, Op};
use crate::ir::types::Type;
use spirv::Op as S;

impl Body<'_, '_> {
    /// Reads an instruction on vectors and aggregates. Returns false for others.
    pub(super) fn composite_inst(&mut self, inst: &Instruction, op: S) -> Result<bool> {
        match op {
            S::Undef => {
                let (ty, id) = self.result(inst)?;
                let mut types = Vec::new();
                self.p.types.flatten(ty, &mut types)?;
                let values = types.into_iter().map(|t| self.undef(t)).collect();
                self.set(id, ty, values)?;
            }
            S::CompositeConstruct => {
                let (ty, id) = self.result(inst)?;
                let mut values = Values::new();
                for &part in inst.rest(2) {
                    values.extend(self.value(part)?);
                    if values.len() as u64 > super::types::MAX_LANES {
                        return bad("it has too many parts");
                    }
                }
                self.set(id, ty, values)?;
            }
            S::CompositeExtract => {
                let (ty, id) = self.result(inst)?;
                let from = inst.word(2)?;
                let from_ty = self.type_of(from)?;
                let (part, first) = self.p.walk(from_ty, inst.rest(3))?;
                let (first, n) = (first as usize, self.p.types.get(part).lanes as usize);
                let values = self.value(from)?;
                let values = values
                    .get(first..first + n)
                    .ok_or_else(|| LowerError::invalid("no such part"))?;
                let values = values.iter().copied().collect();
                self.set(id, ty, values)?;
            }
            S::CompositeInsert => {
                let (ty, id) = self.result(inst)?;
                let (part_ty, first) = self.p.walk(ty, inst.rest(4))?;
                let part = self.value(inst.word(2)?)?;
                let mut values = self.value(inst.word(3)?)?;
                if part.len() as u64 != self.p.types.get(part_ty).lanes {
                    return bad("the part has the wrong type");
                }
                let target = values.get_mut(first as usize..first as usize + part.len());
                target
                    .ok_or_else(|| LowerError::invalid("no such part"))?
                    .copy_from_slice(&part);
                self.set(id, ty, values)?;
            }
            S::VectorShuffle => {
                let (ty, id) = self.result(inst)?;
                let (scalar, _) = self.vector_of(ty)?;
                let mut both = self.value(inst.word(2)?)?;
                both.extend(self.value(inst.word(3)?)?);
                let mut values = Values::new();
                for &index in inst.rest(4) {
                    values.push(match both.get(index as usize) {
                        Some(&value) => value,
                        None if index == u32::MAX => self.undef(scalar),
                        None => return bad(format!("there is no component {index}")),
                    });
                }
                self.set(id, ty, values)?;
            }
            S::VectorExtractDynamic => {
                let (ty, id) = self.result(inst)?;
                let vector = inst.word(2)?;
                let builtin = match self.meaning(vector) {
                    Some(IdMeaning::Value(_, _, Some(which))) => {
                        super::builtin::out_of_range(*which)
                    }
                    _ => None,
                };
                let (values, _) = self.uniform(vector)?;
                let index = self.scalar(inst.word(3)?)?;
                let value = self.pick(&values, index, builtin)?;
                self.set(id, ty, [value].into_iter().collect())?;
            }
            S::VectorInsertDynamic => {
                let (ty, id) = self.result(inst)?;
                let (values, scalar) = self.uniform(inst.word(2)?)?;
                let part = self.scalar_of(inst.word(3)?, scalar)?;
                let index = self.scalar(inst.word(4)?)?;
                let index_ty = self.f.ty(index);
                if !index_ty.is_int() {
                    return bad("an index that is not an integer");
                }
                let mut out = Values::new();
                for (i, v) in values.into_iter().enumerate() {
                    let number = self.constant(index_ty, i as u64);
                    let hit = self.ins(Op::ICmp(IntCond::Eq), &[index, number], Type::Bool);
                    out.push(self.select(hit, part, v));
                }
                self.set(id, ty, out)?;
            }
            S::CopyObject | S::CopyLogical => {
                let (ty, id) = self.result(inst)?;
                self.copy(id, ty, inst.word(2)?)?;
            }
            S::ExpectKHR => {
                let (ty, id) = self.result(inst)?;
                self.copy(id, ty, inst.word(2)?)?;
            }
            S::Bitcast => {
                let (ty, id) = self.result(inst)?;
                let from = inst.word(2)?;
                let to_pointer = matches!(self.p.types.get(ty).kind, Kind::Pointer { .. });
                if to_pointer && self.is_builtin_ptr(from) {
                    return self.copy(id, ty, from).map(|()| true);
                }
                let values = self.value(from)?;
                if let (true, &[pointer]) = (to_pointer, values.as_slice()) {
                    if let Ok(data) = self.pointee(ty) {
                        self.at_least(pointer, self.p.types.get(data).size)?;
                    }
                }
                let values = self.bitcast(&values, ty)?;
                self.set(id, ty, values)?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn is_builtin_ptr(&self, id: u32) -> bool {
        match self.meaning(id) {
            Some(meaning) => matches!(meaning, IdMeaning::Builtin { .. }),
            None => match self.p.defs.get(id as usize) {
                Some(Def::Var(index)) => self
                    .p
                    .vars
                    .get(*index as usize)
                    .is_some_and(|v| v.builtin.is_some()),
                _ => false,
            },
        }
    }

    /// Defines an id as the value of another id (whose pointee types may differ).
    fn copy(&mut self, id: u32, ty: TyId, from: u32) -> Result<()> {
        match self.meaning(from) {
            Some(&IdMeaning::Builtin {
                which,
                offset,
                index,
                ..
            }) => {
                return self.set_builtin_ptr(id, ty, which, offset, index);
            }
            Some(&IdMeaning::Value(_, ref values, Some(which))) => {
                let values = values.clone();
                return self.set_builtin(id, ty, values, which);
            }
            Some(_) => {}
            None => {
                if let Some(Def::Var(index)) = self.p.defs.get(from as usize) {
                    if let Some(which) = self.p.vars.get(*index as usize).and_then(|v| v.builtin) {
                        return self.set_builtin_ptr(id, ty, which, 0, None);
                    }
                }
            }
        }
        let values = self.value(from)?;
        self.set(id, ty, values)
    }

    /// Reinterprets scalars as a scalar or vector type of the same size.
    pub fn bitcast(&mut self, values: &[Value], ty: TyId) -> Result<Values> {
        let (to, n) = self.vector_of(ty)?;
        let Some(&first) = values.first() else {
            return bad("an empty value");
        };
        let from = self.f.ty(first);
        if values.iter().any(|&v| self.f.ty(v) != from) {
            return bad("a bit cast of a structure");
        }
        if from.size() as usize * values.len() != to.size() as usize * n {
            return bad("a bit cast between types of different size");
        }
        if from == to {
            return Ok(values.iter().copied().collect());
        }
        if values.len() == n {
            let mut out = Values::new();
            for &v in values {
                out.push(self.cast_scalar(v, to)?);
            }
            return Ok(out);
        }
        let (Some(from_int), Some(to_int)) = (from.as_int(), to.as_int()) else {
            return bad("a bit cast of Bool");
        };
        let mut ints = Values::new();
        for &v in values {
            ints.push(self.cast_scalar(v, from_int)?);
        }
        let mut out = Values::new();
        if from_int.size() > to_int.size() {
            for v in ints {
                for i in 0..from_int.size() / to_int.size() {
                    let shift = self.constant(from_int, u64::from(i * to_int.bits()));
                    let part = if i == 0 {
                        v
                    } else {
                        self.ins(Op::LShr, &[v, shift], from_int)
                    };
                    out.push(self.ins(Op::Trunc, &[part], to_int));
                }
            }
        } else {
            for parts in ints.chunks((to_int.size() / from_int.size()) as usize) {
                let mut value = None;
                for (i, &part) in parts.iter().enumerate() {
                    let mut wide = self.ins(Op::ZExt, &[part], to_int);
                    if i > 0 {
                        let shift = self.constant(to_int, i as u64 * u64::from(from_int.bits()));
                        wide = self.ins(Op::Shl, &[wide, shift], to_int);
                    }
                    value = Some(match value {
                        Some(v) => self.ins(Op::Or, &[v, wide], to_int),
                        None => wide,
                    });
                }
                out.extend(value);
            }
        }
        let mut result = Values::new();
        for v in out {
            result.push(self.cast_scalar(v, to)?);
        }
        Ok(result)
    }

    /// Reinterprets one scalar as another type of the same width.
    pub fn cast_scalar(&mut self, v: Value, to: Type) -> Result<Value> {
        let from = self.f.ty(v);
        Ok(match (from, to) {
            _ if from == to => v,
            (Type::Ptr(_), Type::Ptr(_)) => self.ins(Op::SpaceCast, &[v], to),
            (Type::Ptr(_), Type::I64) => self.ins(Op::PtrToInt, &[v], to),
            (Type::I64, Type::Ptr(_)) => self.ins(Op::IntToPtr, &[v], to),
            (Type::Ptr(_) | Type::Handle | Type::Bool, _)
            | (_, Type::Ptr(_) | Type::Handle | Type::Bool) => {
                return bad("a bit cast between types that have no bits in common");
            }
            _ if from.size() == to.size() => self.ins(Op::Bitcast, &[v], to),
            _ => return bad("a bit cast between types of different size"),
        })
    }
}
