//! Constants of module scope: their scalars, their bytes in memory, specialisation-constant operations.

use super::parsed::{ConstDef, Def, Lane, Parsed};
use super::types::{Kind, TyId, MAX_LANES};
use super::words::{inst_at, Instruction};
use crate::error::{LowerError, Result};
use crate::interface::sampler;
use crate::ir::fold::fold as fold_kir;
use crate::ir::function::FpFlags;
use crate::ir::op::{FloatCond, Op as K, Rounding};
use crate::ir::types::Type;
use crate::pipe;
use spirv::{Decoration, Op};

/// A pointer within initial data: byte offset, variable by SPIR-V id, bytes added to its address.
#[derive(Debug, Clone, Copy)]
pub(super) struct InitReloc {
    pub offset: u64,
    pub var: u32,
    pub addend: i64,
}

/// Largest initialiser of one variable, and most that all pipes of a module have, in bytes.
const MAX_INIT: u64 = 64 << 20;

fn lane_error(id: u32) -> LowerError {
    LowerError::invalid(format!("%{id} is not a constant"))
}

/// Sign-extends the low `bits` of a word.
pub(super) fn sext(value: u64, bits: u32) -> i64 {
    let shift = 64 - bits.clamp(1, 64);
    ((value << shift) as i64) >> shift
}

impl Parsed {
    /// Returns the constant that an id names.
    pub fn const_def(&self, id: u32) -> Option<&ConstDef> {
        match self.defs.get(id as usize) {
            Some(Def::Const(index)) => self.consts.get(*index as usize),
            _ => None,
        }
    }

    /// Returns the bits of an integer constant, zero-extended.
    pub fn const_u64(&self, id: u32) -> Option<u64> {
        let def = self.const_def(id)?;
        if !self.types.scalar(def.ty)?.is_int() {
            return None;
        }
        match self.scalar_lane(def).ok()? {
            Lane::Bits(bits) => Some(bits),
            Lane::Undef => Some(0),
            Lane::Addr { .. } => None,
        }
    }

    /// Returns the bits of an integer constant, sign-extended.
    pub fn const_i64(&self, id: u32) -> Option<i64> {
        let ty = self.const_def(id)?.ty;
        let bits = self.types.scalar(ty)?.bits();
        let bits = self.types.odd_width(ty).unwrap_or(bits);
        Some(sext(self.const_u64(id)?, bits))
    }

    /// Returns the value of a scalar or null constant.
    fn scalar_lane(&self, def: &ConstDef) -> Result<Lane> {
        match (&def.value, def.op) {
            (Some(Ok(lanes)), _) => lanes
                .first()
                .copied()
                .ok_or_else(|| LowerError::invalid("an empty constant")),
            (Some(Err(e)), _) => Err(LowerError::unsupported(e.clone())),
            (None, Op::Undef) => Ok(Lane::Undef),
            (None, Op::ConstantNull) => Ok(Lane::Bits(0)),
            _ => Ok(Lane::Bits(self.scalar_bits(def)?)),
        }
    }

    /// Returns the bits of an instruction that makes a scalar constant.
    pub fn scalar_bits(&self, def: &ConstDef) -> Result<u64> {
        let inst = inst_at(&self.words, def.at)?;
        let ty = self
            .types
            .scalar(def.ty)
            .ok_or_else(|| LowerError::invalid("its type is not scalar"))?;
        let id = inst.word(1)?;
        let over = || {
            self.decorations
                .word(id, Decoration::SpecId)
                .and_then(|n| self.spec_value(n))
        };
        let is_bool = ty == Type::Bool;
        match def.op {
            Op::ConstantTrue if is_bool => Ok(1),
            Op::ConstantFalse if is_bool => Ok(0),
            Op::SpecConstantTrue if is_bool => Ok(over().map_or(1, |v| u64::from(v & 0xff != 0))),
            Op::SpecConstantFalse if is_bool => Ok(over().map_or(0, |v| u64::from(v & 0xff != 0))),
            Op::ConstantNull => Ok(0),
            Op::Constant | Op::SpecConstant if ty.is_int() || ty.is_float() => {
                let low = u64::from(inst.word(2)?);
                let bits = if ty.bits() == 64 {
                    low | u64::from(inst.word(3)?) << 32
                } else {
                    low
                };
                Ok(if def.op == Op::SpecConstant {
                    over().unwrap_or(bits)
                } else {
                    bits
                } & self
                    .types
                    .odd_width(def.ty)
                    .map_or(ty.mask(), |width| (1 << width) - 1))
            }
            Op::ConstantFunctionPointerINTEL => {
                Err(LowerError::unsupported("a pointer to a function"))
            }
            _ => Err(LowerError::invalid("its type does not fit")),
        }
    }

    /// Returns the specialisation constants: id and size in bytes.
    pub fn spec_constants(&self) -> Vec<(u32, u32)> {
        let mut list = Vec::new();
        for def in &self.consts {
            let id = inst_at(&self.words, def.at).and_then(|i| i.word(1));
            let spec = id
                .ok()
                .and_then(|id| self.decorations.word(id, Decoration::SpecId));
            if let Some(spec) = spec {
                list.push((spec, self.types.get(def.ty).size as u32));
            }
        }
        list
    }

    /// Returns the type of a constant or variable address.
    pub fn const_ty(&self, id: u32) -> Option<TyId> {
        match self.defs.get(id as usize) {
            Some(Def::Const(index)) => self.consts.get(*index as usize).map(|c| c.ty),
            Some(Def::Var(index)) => self.vars.get(*index as usize).map(|v| v.ty),
            _ => None,
        }
    }

    /// Appends the scalars of a constant.
    pub fn const_lanes(&self, id: u32, out: &mut Vec<Lane>) -> Result<()> {
        self.lanes_at_depth(id, None, 0, out)
    }

    fn lanes_at_depth(
        &self,
        id: u32,
        want: Option<TyId>,
        depth: u32,
        out: &mut Vec<Lane>,
    ) -> Result<()> {
        if let Some(Def::Var(index)) = self.defs.get(id as usize) {
            let var = self
                .vars
                .get(*index as usize)
                .filter(|v| v.builtin.is_none())
                .ok_or_else(|| lane_error(id))?;
            self.check_member(var.ty, want, id)?;
            out.push(Lane::Addr { var: id, addend: 0 });
            return Ok(());
        }
        let def = self.const_def(id).ok_or_else(|| lane_error(id))?;
        self.check_member(def.ty, want, id)?;
        let lanes = self.types.get(def.ty).lanes;
        if lanes > MAX_LANES {
            return Err(LowerError::unsupported(format!(
                "a constant value of {lanes} scalars"
            )));
        }
        if depth > 300 {
            return Err(LowerError::invalid("constants are nested too deeply"));
        }
        match (&def.value, def.op) {
            _ if lanes == 0 => {}
            (Some(Ok(value)), _) => out.extend_from_slice(value),
            (Some(Err(e)), _) => return Err(LowerError::unsupported(e.clone())),
            (None, Op::Undef) => {
                let odd = self.types.odd_width(def.ty).is_some();
                let lane = if odd { Lane::Bits(0) } else { Lane::Undef };
                out.extend((0..lanes).map(|_| lane));
            }
            (None, Op::ConstantSampler) => {
                out.push(Lane::Bits(sampler_word(&inst_at(&self.words, def.at)?)?));
            }
            (None, Op::ConstantNull) => out.extend((0..lanes).map(|_| Lane::Bits(0))),
            (None, Op::ConstantPipeStorage) => out.push(Lane::Addr { var: id, addend: 0 }),
            (None, Op::ConstantComposite | Op::SpecConstantComposite) => {
                let members = self.members(def)?;
                let mut total = 0;
                for (i, &member) in members.iter().enumerate() {
                    let (ty, _) = self.types.component(def.ty, i as u32)?;
                    self.lanes_at_depth(member, Some(ty), depth + 1, out)?;
                    total += self.types.get(ty).lanes;
                }
                if total != lanes {
                    return Err(LowerError::invalid(format!(
                        "the constant %{id} has too few members"
                    )));
                }
            }
            _ => out.push(Lane::Bits(self.scalar_bits(def)?)),
        }
        Ok(())
    }

    /// Checks that a member of a composite has the right shape; pointers may differ in their
    /// pointee.
    fn check_member(&self, have: TyId, want: Option<TyId>, id: u32) -> Result<()> {
        let Some(want) = want else { return Ok(()) };
        if have == want {
            return Ok(());
        }
        let (a, b) = (self.types.get(have), self.types.get(want));
        let same = match (self.types.vector(have), self.types.vector(want)) {
            (Some(x), Some(y)) => x == y,
            _ => a.size == b.size && a.lanes == b.lanes && self.same_flat(have, want),
        };
        if same {
            Ok(())
        } else {
            Err(LowerError::invalid(format!(
                "the member %{id} of a constant has the wrong type"
            )))
        }
    }

    fn same_flat(&self, a: TyId, b: TyId) -> bool {
        let (mut x, mut y) = (Vec::new(), Vec::new());
        self.types.flatten(a, &mut x).is_ok() && self.types.flatten(b, &mut y).is_ok() && x == y
    }

    /// Returns the ids of the pipes that the module declares. Returns an error if all of them are
    /// too large.
    pub fn pipes(&self) -> Result<Vec<u32>> {
        let (mut ids, mut total) = (Vec::new(), 0);
        for def in &self.consts {
            if def.op != Op::ConstantPipeStorage {
                continue;
            }
            let inst = inst_at(&self.words, def.at)?;
            let (packet, most) = (inst.word(2)?, inst.word(4)?);
            total += pipe::size(packet, most)
                .unwrap_or(u64::MAX)
                .min(MAX_INIT + 1);
            if total > MAX_INIT {
                return Err(LowerError::unsupported(format!(
                    "pipes of more than {MAX_INIT} bytes, with one of {most} packets of {packet} bytes,"
                )));
            }
            ids.push(inst.word(1)?);
        }
        Ok(ids)
    }

    /// Returns the bytes of an empty pipe that the module declares (OpConstantPipeStorage). Returns
    /// `None` if the id names something else.
    pub fn pipe_storage(&self, id: u32) -> Result<Option<Vec<u8>>> {
        let def = self.const_def(id);
        let Some(def) = def.filter(|def| def.op == Op::ConstantPipeStorage) else {
            return Ok(None);
        };
        let inst = inst_at(&self.words, def.at)?;
        let (packet, most) = (inst.word(2)?, inst.word(4)?);
        let made = pipe::size(packet, most).zip(pipe::header(packet, most));
        let Some((size, header)) = made.filter(|(size, _)| *size <= MAX_INIT) else {
            return Err(LowerError::unsupported("a pipe that is too large"));
        };
        let mut bytes = header.to_vec();
        bytes.resize(size as usize, 0);
        Ok(Some(bytes))
    }

    /// Returns the members of a composite constant, with those of the instructions that continue
    /// it.
    fn members(&self, def: &ConstDef) -> Result<Vec<u32>> {
        let inst = inst_at(&self.words, def.at)?;
        let mut members = inst.rest(2).to_vec();
        let mut next = def.at + inst.words.len() + 1;
        while let Ok(more) = inst_at(&self.words, next) {
            let more_op = [
                Op::ConstantCompositeContinuedINTEL,
                Op::SpecConstantCompositeContinuedINTEL,
            ]
            .map(Some)
            .contains(&more.op);
            if !more_op {
                break;
            }
            members.extend_from_slice(more.words);
            next += more.words.len() + 1;
        }
        Ok(members)
    }

    /// Returns the initial bytes of a variable, or `None` if all are zero.
    pub fn init_bytes(&self, init: u32, data: TyId) -> Result<Option<(Vec<u8>, Vec<InitReloc>)>> {
        if init == 0 {
            return Ok(None);
        }
        if let Some(def) = self.const_def(init) {
            if matches!(def.op, Op::ConstantNull | Op::Undef) {
                return Ok(None);
            }
        }
        let size = self.types.get(data).size;
        if size > MAX_INIT {
            return Err(LowerError::unsupported(format!(
                "an initialised variable of {size} bytes"
            )));
        }
        let mut bytes = vec![0; size as usize];
        let mut relocs = Vec::new();
        self.write_init(init, data, 0, 0, &mut bytes, &mut relocs)?;
        Ok(Some((bytes, relocs)))
    }

    fn write_init(
        &self,
        id: u32,
        ty: TyId,
        offset: u64,
        depth: u32,
        bytes: &mut [u8],
        relocs: &mut Vec<InitReloc>,
    ) -> Result<()> {
        let t = self.types.get(ty);
        if t.size == 0 {
            return Ok(());
        }
        if depth > 300 {
            return Err(LowerError::invalid("constants are nested too deeply"));
        }
        if let Some(def) = self.const_def(id) {
            if def.value.is_none() && matches!(def.op, Op::ConstantNull | Op::Undef) {
                return Ok(());
            }
            let composite = matches!(def.op, Op::ConstantComposite | Op::SpecConstantComposite);
            let element = |i: u32| -> Result<(TyId, u64)> {
                Ok(match &t.kind {
                    Kind::Struct { offsets, .. } => {
                        let (member, _) = self.types.component(ty, i)?;
                        (member, offsets.get(i as usize).copied().unwrap_or(0))
                    }
                    _ => {
                        let (elem, _) = self.types.component(ty, i)?;
                        (elem, u64::from(i) * self.types.get(elem).size)
                    }
                })
            };
            if composite && def.value.is_none() {
                for (i, &member) in self.members(def)?.iter().enumerate() {
                    let (member_ty, at) = element(i as u32)?;
                    self.write_init(member, member_ty, offset + at, depth + 1, bytes, relocs)?;
                }
                return Ok(());
            }
        }
        let mut lanes = Vec::new();
        self.lanes_at_depth(id, Some(ty), 0, &mut lanes)?;
        let mut lanes = lanes.into_iter();
        for leaf in self.types.leaves(ty)? {
            for n in 0..leaf.n {
                let size = leaf.ty.size() as usize;
                let at = offset + leaf.offset + u64::from(n) * size as u64;
                match lanes.next() {
                    Some(Lane::Bits(bits)) => {
                        let target = bytes.get_mut(at as usize..at as usize + size);
                        let target = target
                            .ok_or_else(|| LowerError::invalid("an initialiser is too large"))?;
                        target.copy_from_slice(&bits.to_le_bytes()[..size]);
                    }
                    Some(Lane::Addr { var, addend }) if size == 8 => relocs.push(InitReloc {
                        offset: at,
                        var,
                        addend,
                    }),
                    Some(Lane::Undef) => {}
                    _ => {
                        return Err(LowerError::invalid(
                            "an initialiser does not fit its variable",
                        ))
                    }
                }
            }
        }
        Ok(())
    }

    /// Evaluates an OpSpecConstantOp.
    pub fn eval_spec_op(&self, inst: &Instruction, ty: TyId) -> Result<Vec<Lane>> {
        let code = inst.word(2)?;
        let op = Op::from_u32(code)
            .ok_or_else(|| LowerError::unsupported(format!("constant operation {code}")))?;
        let operand = |i: usize| -> Result<Vec<Lane>> {
            let mut lanes = Vec::new();
            self.const_lanes(inst.word(3 + i)?, &mut lanes)?;
            Ok(lanes)
        };
        let odd = |id: &u32| self.const_ty(*id).and_then(|ty| self.types.odd_width(ty));
        if self.types.has_odd()
            && (self.types.odd_width(ty).is_some()
                || inst.rest(3).iter().any(|id| odd(id).is_some()))
        {
            return Err(LowerError::unsupported(
                "constant operations on integers of a width that is no power of two",
            ));
        }
        let out_lanes = self.types.get(ty).lanes as usize;
        let lanes = match op {
            Op::AccessChain
            | Op::InBoundsAccessChain
            | Op::PtrAccessChain
            | Op::InBoundsPtrAccessChain
            | Op::UntypedAccessChainKHR
            | Op::UntypedInBoundsAccessChainKHR
            | Op::UntypedPtrAccessChainKHR
            | Op::UntypedInBoundsPtrAccessChainKHR => vec![self.const_chain(op, inst, ty)?],
            Op::Bitcast => {
                let from = operand(0)?;
                let from_ty = self.const_ty(inst.word(3)?).ok_or_else(|| lane_error(0))?;
                self.const_bitcast(&from, from_ty, ty)?
            }
            Op::PtrCastToGeneric
            | Op::GenericCastToPtr
            | Op::GenericCastToPtrExplicit
            | Op::CopyObject
            | Op::ConvertPtrToU
            | Op::ConvertUToPtr
            | Op::CopyLogical => operand(0)?,
            Op::VectorShuffle => {
                let mut both = operand(0)?;
                both.extend(operand(1)?);
                inst.rest(5)
                    .iter()
                    .map(|&i| both.get(i as usize).copied().unwrap_or(Lane::Undef))
                    .collect()
            }
            Op::CompositeExtract => {
                let lanes = operand(0)?;
                let from = self.const_ty(inst.word(3)?).ok_or_else(|| lane_error(0))?;
                let (part, first) = self.walk(from, inst.rest(4))?;
                let end = first + self.types.get(part).lanes;
                lanes
                    .get(first as usize..end as usize)
                    .unwrap_or(&[])
                    .to_vec()
            }
            Op::CompositeInsert => {
                let (part, mut lanes) = (operand(0)?, operand(1)?);
                let (_, first) = self.walk(ty, inst.rest(5))?;
                let target = lanes.get_mut(first as usize..first as usize + part.len());
                target
                    .ok_or_else(|| LowerError::invalid("a part does not fit"))?
                    .copy_from_slice(&part);
                lanes
            }
            Op::Select if self.types.vector(ty).is_none() => {
                operand(if operand(0)?.first() == Some(&Lane::Bits(0)) {
                    2
                } else {
                    1
                })?
            }
            _ => {
                let count = inst.rest(3).len().min(3);
                let operands = (0..count).map(operand).collect::<Result<Vec<_>>>()?;
                let types = (0..count).map(|i| {
                    let ty = self
                        .const_ty(inst.word(3 + i)?)
                        .and_then(|t| self.types.vector(t));
                    ty.map(|t| t.0)
                        .ok_or_else(|| LowerError::invalid("an operand of the wrong type"))
                });
                let types = types.collect::<Result<Vec<_>>>()?;
                let (out_ty, _) = self
                    .types
                    .vector(ty)
                    .ok_or_else(|| LowerError::unsupported(format!("constant Op{op:?}")))?;
                let mut lanes = Vec::new();
                for i in 0..out_lanes {
                    // A scalar condition selects whole vectors.
                    let args: Vec<Lane> = operands
                        .iter()
                        .map(|o| {
                            if o.len() == 1 { o.first() } else { o.get(i) }
                                .copied()
                                .unwrap_or(Lane::Undef)
                        })
                        .collect();
                    lanes.push(fold(op, &args, &types, out_ty)?);
                }
                lanes
            }
        };
        if lanes.len() != out_lanes {
            return Err(LowerError::invalid("operands do not fit the result type"));
        }
        Ok(lanes)
    }

    /// Follows literal indices into a type. Returns the type of the part and its first lane.
    pub fn walk(&self, mut ty: TyId, indices: &[u32]) -> Result<(TyId, u64)> {
        let mut first = 0;
        for &index in indices {
            let (next, lane) = self.types.component(ty, index)?;
            first += lane;
            ty = next;
        }
        Ok((ty, first))
    }

    fn const_bitcast(&self, from: &[Lane], from_ty: TyId, ty: TyId) -> Result<Vec<Lane>> {
        let bad = || LowerError::invalid("a bit cast between types of different size");
        let (a, n) = self.types.vector(from_ty).ok_or_else(bad)?;
        let (b, m) = self.types.vector(ty).ok_or_else(bad)?;
        if n == m && a.size() == b.size() {
            return Ok(from.to_vec());
        }
        if a.size() * n != b.size() * m {
            return Err(bad());
        }
        let mut bytes = Vec::new();
        for lane in from {
            let Lane::Bits(bits) = lane else {
                return Err(LowerError::unsupported("a bit cast of an address"));
            };
            bytes.extend_from_slice(&bits.to_le_bytes()[..a.size() as usize]);
        }
        let lanes = bytes.chunks(b.size() as usize);
        Ok(lanes
            .map(|c| Lane::Bits(c.iter().rev().fold(0, |acc, &x| acc << 8 | u64::from(x))))
            .collect())
    }

    fn const_chain(&self, op: Op, inst: &Instruction, result: TyId) -> Result<Lane> {
        let untyped = matches!(
            op,
            Op::UntypedAccessChainKHR
                | Op::UntypedInBoundsAccessChainKHR
                | Op::UntypedPtrAccessChainKHR
                | Op::UntypedInBoundsPtrAccessChainKHR
        );
        let element = matches!(
            op,
            Op::PtrAccessChain
                | Op::InBoundsPtrAccessChain
                | Op::UntypedPtrAccessChainKHR
                | Op::UntypedInBoundsPtrAccessChainKHR
        );
        let base_at = 3 + usize::from(untyped);
        let base_id = inst.word(base_at)?;
        let mut base = Vec::new();
        self.const_lanes(base_id, &mut base)?;
        let base_ty = self.const_ty(base_id).ok_or_else(|| lane_error(base_id))?;
        let Kind::Pointer { pointee, .. } = self.types.get(base_ty).kind else {
            return Err(LowerError::invalid("the base is not a pointer"));
        };
        let mut ty = if untyped {
            self.ty(inst.word(3)?)?
        } else {
            self.ty(pointee)?
        };
        let mut indices = Vec::new();
        for &id in inst.rest(base_at + 1) {
            indices.push(
                self.const_i64(id).ok_or_else(|| {
                    LowerError::invalid(format!("the index %{id} is not constant"))
                })?,
            );
        }
        let mut indices = indices.as_slice();
        let mut offset = 0i64;
        if element {
            let (first, rest) = indices
                .split_first()
                .ok_or_else(|| LowerError::invalid("no index"))?;
            offset = first.wrapping_mul(self.types.get(ty).size as i64);
            indices = rest;
        }
        // LLVM's target writes byte offsets into objects of any type this way.
        let to_byte = match self.types.get(result).kind {
            Kind::Pointer { pointee, .. } => self
                .ty(pointee)
                .is_ok_and(|t| self.types.scalar(t) == Some(Type::I8)),
            _ => false,
        };
        if let (true, true, [bytes]) = (self.llvm_backend, to_byte, indices) {
            offset = offset.wrapping_add(*bytes);
            indices = &[];
        }
        for &index in indices {
            let (next, bytes) = self.step(ty, index)?;
            offset = offset.wrapping_add(bytes);
            ty = next;
        }
        match base.first() {
            Some(Lane::Addr { var, addend }) => Ok(Lane::Addr {
                var: *var,
                addend: addend.wrapping_add(offset),
            }),
            Some(Lane::Bits(bits)) => Ok(Lane::Bits(bits.wrapping_add(offset as u64))),
            _ => Ok(Lane::Undef),
        }
    }

    /// Takes one constant step of an access chain. Returns the type reached and the bytes skipped.
    pub fn step(&self, ty: TyId, index: i64) -> Result<(TyId, i64)> {
        match &self.types.get(ty).kind {
            Kind::Struct {
                members, offsets, ..
            } => {
                let i = usize::try_from(index).unwrap_or(usize::MAX);
                match (members.get(i), offsets.get(i)) {
                    (Some(&member), Some(&offset)) => Ok((member, offset as i64)),
                    _ => Err(LowerError::invalid(format!("there is no member {index}"))),
                }
            }
            Kind::Vector { elem, .. } | Kind::Array { elem, .. } => {
                Ok((*elem, index.wrapping_mul(self.types.get(*elem).size as i64)))
            }
            _ => Err(LowerError::invalid("an index into a type without parts")),
        }
    }
}

/// Returns the property word of a constant sampler.
fn sampler_word(inst: &Instruction) -> Result<u64> {
    let (addressing, normalized, filter) = (inst.word(2)?, inst.word(3)?, inst.word(4)?);
    if addressing > 4 || normalized > 1 || filter > 1 {
        return Err(LowerError::invalid(
            "a sampler with properties that OpenCL has not",
        ));
    }
    // Both number addressing modes in the same way.
    let filter = match filter {
        0 => sampler::FILTER_NEAREST,
        _ => sampler::FILTER_LINEAR,
    };
    Ok(u64::from(normalized | addressing << 1 | filter))
}

/// Computes a scalar operation on constants.
fn fold(op: Op, args: &[Lane], types: &[Type], out: Type) -> Result<Lane> {
    let missing = || LowerError::invalid("an operand is missing");
    let (Some(&first), Some(&ty)) = (args.first(), types.first()) else {
        return Err(missing());
    };
    // Addresses may only be added to.
    match (op, first, args.get(1)) {
        (Op::IAdd, Lane::Addr { var, addend }, Some(&Lane::Bits(b)))
        | (Op::IAdd, Lane::Bits(b), Some(&Lane::Addr { var, addend })) => {
            let addend = addend.wrapping_add(b as i64);
            return Ok(Lane::Addr { var, addend });
        }
        (Op::ISub, Lane::Addr { var, addend }, Some(&Lane::Bits(b))) => {
            let addend = addend.wrapping_sub(b as i64);
            return Ok(Lane::Addr { var, addend });
        }
        _ => {}
    }
    let mut bits = [0u64; 3];
    for (slot, lane) in bits.iter_mut().zip(args) {
        *slot = match lane {
            Lane::Bits(bits) => *bits,
            Lane::Undef => 0,
            Lane::Addr { .. } if op == Op::Select => 0,
            Lane::Addr { .. } => {
                return Err(LowerError::unsupported(format!(
                    "Op{op:?} of a constant address"
                )))
            }
        };
    }
    let [a, b, _] = bits;
    if op == Op::Select {
        return args
            .get(if a != 0 { 1 } else { 2 })
            .copied()
            .ok_or_else(missing);
    }
    let n = ty.bits();
    let (sa, sb) = (sext(a, n), sext(b, n));
    if let Some(value) = fold_float(op, [a, b], ty, out) {
        return Ok(Lane::Bits(value));
    }
    use Op::*;
    let value = match op {
        IAdd => a.wrapping_add(b),
        ISub => a.wrapping_sub(b),
        IMul => a.wrapping_mul(b),
        UDiv => a.checked_div(b).unwrap_or(0),
        UMod => a.checked_rem(b).unwrap_or(0),
        SDiv => sa.checked_div(sb).unwrap_or(0) as u64,
        SRem => sa.checked_rem(sb).unwrap_or(0) as u64,
        SMod => {
            let r = sa.checked_rem(sb).unwrap_or(0);
            (if r != 0 && (r ^ sb) < 0 {
                r.wrapping_add(sb)
            } else {
                r
            }) as u64
        }
        SNegate => a.wrapping_neg(),
        Not => !a,
        BitwiseAnd | LogicalAnd => a & b,
        BitwiseOr | LogicalOr => a | b,
        BitwiseXor | LogicalNotEqual => a ^ b,
        LogicalEqual => (a ^ b) ^ 1,
        LogicalNot => a ^ 1,
        ShiftLeftLogical => a.checked_shl(b as u32).unwrap_or(0),
        ShiftRightLogical => a.checked_shr(b as u32).unwrap_or(0),
        ShiftRightArithmetic => (sa >> b.min(63)) as u64,
        IEqual => u64::from(a == b),
        INotEqual => u64::from(a != b),
        ULessThan => u64::from(a < b),
        ULessThanEqual => u64::from(a <= b),
        UGreaterThan => u64::from(a > b),
        UGreaterThanEqual => u64::from(a >= b),
        SLessThan => u64::from(sa < sb),
        SLessThanEqual => u64::from(sa <= sb),
        SGreaterThan => u64::from(sa > sb),
        SGreaterThanEqual => u64::from(sa >= sb),
        UConvert => a,
        SConvert => sa as u64,
        _ => return Err(LowerError::unsupported(format!("constant Op{op:?}"))),
    };
    Ok(Lane::Bits(value & out.mask()))
}

/// Computes an operation on floats. Conversions out of range, which are undefined, clamp.
fn fold_float(op: Op, [a, b]: [u64; 2], ty: Type, out: Type) -> Option<u64> {
    let rounding = Rounding::Rtz;
    let near = Rounding::Rte;
    let sat = true;
    let kir = match op {
        Op::FAdd => K::FAdd,
        Op::FSub => K::FSub,
        Op::FMul => K::FMul,
        Op::FDiv => K::FDiv,
        Op::FRem => K::FRem,
        Op::FNegate => K::FNeg,
        Op::FConvert if ty == out => return Some(a),
        Op::FConvert => K::FConv(near),
        Op::ConvertSToF => K::SToF(near),
        Op::ConvertUToF => K::UToF(near),
        Op::ConvertFToS => K::FToS { rounding, sat },
        Op::ConvertFToU => K::FToU { rounding, sat },
        Op::FMod => {
            // The remainder of the sign of the divisor.
            let two = |op, x, y, out| fold_kir(op, FpFlags::default(), &[ty, ty], &[x, y], out);
            let rest = two(K::FRem, a, b, ty)?;
            let below = |x| two(K::FCmp(FloatCond::Olt), x, 0, Type::Bool);
            let some = two(K::FCmp(FloatCond::One), rest, 0, Type::Bool)?;
            return if some == 1 && below(rest)? != below(b)? {
                two(K::FAdd, rest, b, ty)
            } else {
                Some(rest)
            };
        }
        Op::QuantizeToF16 => {
            let half = fold_float(Op::FConvert, [a, 0], ty, Type::F16)?;
            return fold_float(Op::FConvert, [half, 0], Type::F16, out);
        }
        _ => return None,
    };
    fold_kir(kir, FpFlags::default(), &[ty, ty], &[a, b], out)
}
