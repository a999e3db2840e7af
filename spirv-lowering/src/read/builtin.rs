//! Translates loads of OpenCL built-in variables.

use super::body::{bad, unsupported, Body};
use super::types::TyId;
use crate::error::Result;
use crate::ir::entity::Value;
use crate::ir::function::Values;
use crate::ir::op::{Builtin, IntCond, Op};
use crate::ir::types::Type;
use spirv::BuiltIn as B;

/// The built-in that is a component of a vector.
type Component = fn(u8) -> Builtin;

/// Returns the components of a size_t vector variable, and the value of an index out of range.
fn vector(which: u32) -> Option<(Component, u64)> {
    Some(match B::from_u32(which)? {
        B::GlobalInvocationId => (Builtin::GlobalId, 0),
        B::GlobalSize => (Builtin::GlobalSize, 1),
        B::GlobalOffset => (Builtin::GlobalOffset, 0),
        B::LocalInvocationId => (Builtin::LocalId, 0),
        B::WorkgroupSize => (Builtin::LocalSize, 1),
        B::EnqueuedWorkgroupSize => (Builtin::EnqueuedLocalSize, 1),
        B::WorkgroupId => (Builtin::GroupId, 0),
        B::NumWorkgroups => (Builtin::NumGroups, 1),
        _ => return None,
    })
}

/// Returns the built-in and the type of a variable of one component.
fn single(which: u32) -> Option<(Builtin, Type)> {
    Some(match B::from_u32(which)? {
        B::WorkDim => (Builtin::WorkDim, Type::I32),
        B::GlobalLinearId => (Builtin::GlobalLinearId, Type::I64),
        B::LocalInvocationIndex => (Builtin::LocalLinearId, Type::I64),
        B::SubgroupSize => (Builtin::SubGroupSize, Type::I32),
        B::SubgroupMaxSize => (Builtin::SubGroupMaxSize, Type::I32),
        B::NumSubgroups => (Builtin::NumSubGroups, Type::I32),
        B::NumEnqueuedSubgroups => (Builtin::NumEnqueuedSubGroups, Type::I32),
        B::SubgroupId => (Builtin::SubGroupId, Type::I32),
        B::SubgroupLocalInvocationId => (Builtin::SubGroupLocalId, Type::I32),
        _ => return None,
    })
}

/// Returns the value of a built-in vector's component that is out of range.
pub(super) fn out_of_range(which: u32) -> Option<u64> {
    vector(which).map(|v| v.1)
}

impl Body<'_, '_> {
    /// Returns all components of a built-in variable.
    pub fn builtin_components(&mut self, which: u32) -> Result<Values> {
        let key = which << 2;
        if let Some((of, _)) = vector(which) {
            return Ok((0..3u8)
                .map(|i| self.cached_builtin(key + u32::from(i), Op::Builtin(of(i)), Type::I64))
                .collect());
        }
        if let Some((builtin, ty)) = single(which) {
            return Ok([self.cached_builtin(key, Op::Builtin(builtin), ty)]
                .into_iter()
                .collect());
        }
        match B::from_u32(which) {
            Some(
                mask @ (B::SubgroupEqMask
                | B::SubgroupGeMask
                | B::SubgroupGtMask
                | B::SubgroupLeMask
                | B::SubgroupLtMask),
            ) => Ok(self.subgroup_mask(mask)),
            Some(name) => unsupported(format!("the built-in variable {name:?}")),
            None => unsupported(format!("the built-in variable {which}")),
        }
    }

    /// Computes the mask of the lanes at, before or after this one, as four words.
    fn subgroup_mask(&mut self, mask: B) -> Values {
        let lane = self
            .builtin_components(B::SubgroupLocalInvocationId as u32)
            .unwrap_or_default();
        let size = self
            .builtin_components(B::SubgroupMaxSize as u32)
            .unwrap_or_default();
        let (Some(&lane), Some(&size)) = (lane.first(), size.first()) else {
            return Values::new();
        };
        let mut out = Values::new();
        for word in 0..4u64 {
            // Bits below the lane, and below the size of the sub-group, within this word.
            let below = self.bits_below(lane, word);
            let one = self.constant(Type::I32, 1);
            let next = self.ins(Op::IAdd, &[lane, one], Type::I32);
            let upto = self.bits_below(next, word);
            let all = self.bits_below(size, word);
            let without = |b: &mut Self, v: Value| {
                let not = b.ins(Op::Not, &[v], Type::I32);
                b.ins(Op::And, &[all, not], Type::I32)
            };
            out.push(match mask {
                B::SubgroupLtMask => below,
                B::SubgroupLeMask => upto,
                B::SubgroupEqMask => self.ins(Op::Xor, &[upto, below], Type::I32),
                B::SubgroupGeMask => without(self, below),
                _ => without(self, upto),
            });
        }
        out
    }

    /// Computes word number `word` of a 128-bit mask whose first `count` bits are set.
    pub fn bits_below(&mut self, count: Value, word: u64) -> Value {
        let (first, all) = (
            self.constant(Type::I32, word * 32),
            self.constant(Type::I32, 0xffff_ffff),
        );
        let zero = self.constant(Type::I32, 0);
        let rest = self.ins(Op::ISub, &[count, first], Type::I32);
        let none = self.ins(Op::ICmp(IntCond::Sle), &[rest, zero], Type::Bool);
        let width = self.constant(Type::I32, 32);
        let full = self.ins(Op::ICmp(IntCond::Sge), &[rest, width], Type::Bool);
        let mask = self.constant(Type::I32, 31);
        let shift = self.ins(Op::And, &[rest, mask], Type::I32);
        let inverted = self.ins(Op::Shl, &[all, shift], Type::I32);
        let some = self.ins(Op::Not, &[inverted], Type::I32);
        let bits = self.select(full, all, some);
        self.select(none, zero, bits)
    }

    /// Translates a load from a built-in variable. Returns `None` if it must go through memory.
    pub fn builtin_load(
        &mut self,
        which: u32,
        offset: i64,
        index: Option<Value>,
        ty: TyId,
    ) -> Result<Option<Values>> {
        let Some((scalar, n)) = self.p.types.vector(ty) else {
            return Ok(None);
        };
        let components = self.builtin_components(which)?;
        let Some(&first) = components.first() else {
            return Ok(None);
        };
        let natural = self.f.ty(first);
        if let Some(index) = index {
            if n != 1 || scalar != natural {
                return Ok(None);
            }
            let value = self.pick(&components, index, out_of_range(which))?;
            return Ok(Some([value].into_iter().collect()));
        }
        let stride = i64::from(natural.size());
        if offset % stride != 0 || !scalar.is_int() {
            return Ok(None);
        }
        // A variable may be declared narrower or wider than it is here.
        if scalar != natural && (offset != 0 || components.len() > 1 && n == 1) {
            return Ok(None);
        }
        let mut out = Values::new();
        for i in 0..i64::from(n) {
            let value = match usize::try_from(offset / stride + i)
                .ok()
                .and_then(|i| components.get(i))
            {
                Some(&value) => value,
                None => self.undef(natural),
            };
            out.push(if scalar == natural {
                value
            } else if scalar.bits() > natural.bits() {
                self.ins(Op::ZExt, &[value], scalar)
            } else {
                self.ins(Op::Trunc, &[value], scalar)
            });
        }
        Ok(Some(out))
    }

    /// Selects a component by an index known at run time. Out of range the result is `default`, or
    /// any component.
    pub fn pick(
        &mut self,
        components: &[Value],
        index: Value,
        default: Option<u64>,
    ) -> Result<Value> {
        let Some((&first, rest)) = components.split_first() else {
            return bad("an empty vector");
        };
        let ty = self.f.ty(first);
        let index_ty = self.f.ty(index);
        if !index_ty.is_int() {
            return bad("an index that is not an integer");
        }
        if let Some(bits) = self.f.as_const(index) {
            return Ok(
                match (
                    components.get(usize::try_from(bits).unwrap_or(usize::MAX)),
                    default,
                ) {
                    (Some(&value), _) => value,
                    (None, Some(default)) => self.constant(ty, default),
                    (None, None) => self.undef(ty),
                },
            );
        }
        let mut value = match default {
            Some(bits) => {
                let default = self.constant(ty, bits);
                let zero = self.constant(index_ty, 0);
                let hit = self.ins(Op::ICmp(IntCond::Eq), &[index, zero], Type::Bool);
                self.select(hit, first, default)
            }
            None => first,
        };
        for (i, &component) in rest.iter().enumerate() {
            let number = self.constant(index_ty, i as u64 + 1);
            let hit = self.ins(Op::ICmp(IntCond::Eq), &[index, number], Type::Bool);
            value = self.select(hit, component, value);
        }
        Ok(value)
    }

    /// Copies a built-in variable to private memory, for uses of its address other than plain
    /// loads.
    pub fn builtin_memory(
        &mut self,
        which: u32,
        offset: i64,
        index: Option<Value>,
    ) -> Result<Values> {
        let components = self.builtin_components(which)?;
        let Some(&first) = components.first() else {
            return bad("an empty vector");
        };
        let ty = self.f.ty(first);
        let pointer = self.alloca(u64::from(ty.size()) * 4, 16)?;
        let mut args = vec![pointer];
        args.extend(&components);
        self.effect(
            Op::Store {
                align: ty.size(),
                volatile: false,
            },
            &args,
        );
        let mut pointer = self.offset(pointer, offset);
        if let Some(index) = index {
            pointer = self.element(pointer, index, u64::from(ty.size()))?;
        }
        Ok([pointer].into_iter().collect())
    }
}
