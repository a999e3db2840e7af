//! Emits reads of the argument block: values of push constants, by byte offset (see `push_block`).

use super::body::Emitter;
use super::writer::{push, Id};
use crate::error::{LowerError, Result};
use crate::interface::Implicit;
use crate::ir::types::Type;
use spirv::{Op as S, StorageClass};

impl Emitter<'_> {
    pub(super) fn implicit_offset(&self, which: Implicit) -> Result<u32> {
        let found = self.interface.implicit.iter().find(|(i, _)| *i == which);
        found.map(|&(_, offset)| offset).ok_or_else(|| {
            LowerError::internal(format!("{which:?} has no place in the argument block"))
        })
    }

    /// Returns a member of the push constants, loaded in the prologue.
    fn push_member(&mut self, offset: u32, ty: Type) -> Result<Id> {
        if let Some(&id) = self.push_block.loaded.get(&offset) {
            return Ok(id);
        }
        let members = &self.push_block.members;
        let Ok(index) = members.binary_search(&(offset, ty)) else {
            return Err(LowerError::internal(
                "an argument beyond the push constants",
            ));
        };
        let block = match self.push_block.variable {
            Some(id) => id,
            None => {
                let id = self.w.push_constants(members);
                *self.push_block.variable.insert(id)
            }
        };
        let ty = self.w.ty(ty);
        let pointer_ty = self.w.pointer(StorageClass::PushConstant, ty);
        let index = self.w.u32(index as u32);
        let pointer = self.w.id();
        push(
            &mut self.prologue,
            S::AccessChain,
            &[pointer_ty, pointer, block, index],
        );
        let id = self.w.id();
        push(&mut self.prologue, S::Load, &[ty, id, pointer]);
        self.push_block.loaded.insert(offset, id);
        Ok(id)
    }

    /// Returns the address at a byte offset of the push constants.
    pub(super) fn push_address(&mut self, offset: u32) -> Result<Id> {
        if self.target.int64 {
            return self.push_load(offset, Type::I64);
        }
        let low = self.push_load(offset, Type::I32)?;
        let high = self.push_load(offset + 4, Type::I32)?;
        let pair = self.w.vec(Type::I32, 2);
        Ok(self.op(S::CompositeConstruct, pair, &[low, high]))
    }

    /// Returns the value at a byte offset of the push constants.
    pub(super) fn push_load(&mut self, offset: u32, ty: Type) -> Result<Id> {
        let size = ty.size();
        if ty == Type::Bool || ty == Type::Handle || offset % size.min(4) != 0 {
            return Err(LowerError::internal(format!(
                "an argument of type {ty:?} at offset {offset}"
            )));
        }
        let to = self.w.ty(ty);
        if self.push_block.is_long(offset) && size == 8 {
            let id = self.push_member(offset, Type::I64)?;
            return Ok(if ty == Type::I64 {
                id
            } else {
                self.op(S::Bitcast, to, &[id])
            });
        }
        let low = self.push_member(offset & !3, Type::I32)?;
        match size {
            8 => {
                let high = self.push_member(offset + 4, Type::I32)?;
                let pair = self.w.vec(Type::I32, 2);
                let pair = self.op(S::CompositeConstruct, pair, &[low, high]);
                Ok(self.op(S::Bitcast, to, &[pair]))
            }
            4 if ty == Type::I32 => Ok(low),
            4 => Ok(self.op(S::Bitcast, to, &[low])),
            _ => {
                let mut word = low;
                let shift = offset % 4 * 8;
                if shift != 0 {
                    let (int, shift) = (self.w.ty(Type::I32), self.w.u32(shift));
                    word = self.op(S::ShiftRightLogical, int, &[word, shift]);
                }
                let narrow =
                    Type::int(size * 8).ok_or_else(|| LowerError::internal("an odd width"))?;
                let narrow_ty = self.w.ty(narrow);
                let id = self.op(S::UConvert, narrow_ty, &[word]);
                Ok(if ty == narrow {
                    id
                } else {
                    self.op(S::Bitcast, to, &[id])
                })
            }
        }
    }
}
