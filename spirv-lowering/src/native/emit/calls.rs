//! Calls of functions, and the functions themselves: code for the lanes of a mask.

use super::launch::{GROUP, INDEX, ITEM, LAUNCH, LOCAL, PACK};
use super::packs::OWN;
use super::slots::Lanes;
use super::{Context, Emitter, Mask};
use crate::error::{LowerError, Result};
use crate::ir::entity::{Block, Entity, FuncId, Inst};
use crate::ir::function::Terminator;
use crate::ir::types::Type;
use crate::native::calls::{Callee, Position};
use crate::native::llvm::{Cast, Label, LlvmType, Operand, StackSlot};

const DONE: Label = Label::Word("done");
/// Where results are stored.
const RESULTS: Operand = Operand::named(LlvmType::PTR, "results");
/// The lanes that run, as bits.
const MASK: Operand = Operand::named(LlvmType::I64, "mask");
/// Alignment of results in memory.
const ALIGN: u32 = 64;

/// The results of a function that is written.
#[derive(Default)]
pub struct Results {
    slots: Vec<StackSlot>,
    /// Set if lanes return at several places.
    blends: bool,
}

impl Emitter<'_> {
    /// Returns the type of a value that passes between functions. Masks are bits.
    fn passed_type(&self, ty: Type, scalar: bool) -> LlvmType {
        match (scalar, ty) {
            (true, ty) => ty.into(),
            (false, Type::Bool) => LlvmType::I64,
            (false, ty) => self.vec(ty),
        }
    }

    fn bits_of(&mut self, mask: &Mask) -> Operand {
        let bits = self.mask_bits(mask);
        self.llvm.widened(&bits, LlvmType::I64)
    }

    fn mask_of(&mut self, bits: &Operand) -> Operand {
        let ty = self.bits_type();
        let bits = match ty == LlvmType::I64 {
            true => bits.clone(),
            false => self.llvm.cast(Cast::Trunc, bits, ty),
        };
        let mask = self.mask_type();
        self.llvm.cast(Cast::Bitcast, &bits, mask)
    }

    /// Returns what passes between functions of a value.
    fn passed(&mut self, value: Operand) -> Operand {
        match value.ty() == self.mask_type() {
            true => self.bits_of(&Some(value)),
            false => value,
        }
    }

    /// Returns the value of what has passed between functions.
    fn received(&mut self, value: Operand, ty: Type, scalar: bool) -> Lanes {
        match (scalar, ty) {
            (true, _) => Lanes::Same(value),
            (false, Type::Bool) => Lanes::each(self.mask_of(&value)),
            (false, _) => Lanes::each(value),
        }
    }

    fn is_scalar(&self) -> bool {
        self.shape.lanes == 1
    }

    /// Returns the address of each result, and the bytes of all.
    fn places(&mut self, types: &[Type], base: &Operand) -> (Vec<Operand>, u32) {
        let mut end = 0u32;
        let mut places = Vec::new();
        for &ty in types {
            places.push(self.bytes_after(base, end.into()));
            let bytes = self.passed_type(ty, self.is_scalar()).bytes();
            end += bytes.next_multiple_of(ALIGN);
        }
        (places, end)
    }

    /// Returns the parts of the position of a pack that a function asks for.
    fn position(&self, wanted: Position) -> Vec<Operand> {
        let groups = Position::GROUP.into_iter().zip(GROUP);
        let items = (0..ITEM.len()).map(|dim| (Position::ITEM[dim], self.item(dim)));
        let others = [(Position::INDEX, INDEX), (Position::PACK, PACK)];
        let all = groups.chain(items).chain(others);
        all.filter(|(part, _)| wanted.has(*part))
            .map(|(_, value)| value)
            .collect()
    }

    /// Writes a call. Some lane runs: code that may run without is pure.
    pub(super) fn call(&mut self, id: FuncId, inst: Inst, cx: &Context) -> Result<()> {
        let (func, callees) = (self.func, self.callees);
        let (data, callee) = (&func.insts[inst], callees.get(id)?);
        let types: Vec<Type> = data.results.iter().map(|&v| func.ty(v)).collect();
        let mut args = vec![LAUNCH, LOCAL, OWN];
        args.extend(self.position(callee.position));
        if !self.is_scalar() {
            args.push(self.bits_of(&cx.mask));
        }
        for (&arg, &scalar) in data.args.iter().zip(&callee.scalars) {
            let value = match scalar {
                true => self.scalar(arg, cx)?,
                false => self.vector(arg, cx)?,
            };
            args.push(if scalar { value } else { self.passed(value) });
        }
        let area = self.area();
        let (places, bytes) = self.places(&types, &area);
        self.area_bytes = self.area_bytes.max(bytes);
        if !types.is_empty() {
            args.push(area);
        }
        self.llvm
            .call_own_void(format_args!("function_{}", id.index()), &args);
        for ((&result, &ty), at) in data.results.iter().zip(&types).zip(places) {
            let scalar = self.is_scalar();
            let value = self.llvm.load(self.passed_type(ty, scalar), &at, ALIGN);
            let lanes = self.received(value, ty, scalar);
            self.define(result, lanes, cx);
        }
        Ok(())
    }

    /// Writes the function. Returns its head.
    pub(super) fn body(&mut self, callee: &Callee) -> Result<String> {
        let func = self.func;
        let Some(entry) = func.entry() else {
            return Err(LowerError::internal("a function without blocks"));
        };
        let scalar = self.is_scalar();
        let mut head = vec![LAUNCH, LOCAL, OWN];
        head.extend(self.position(callee.position));
        let mut mask = None;
        if !scalar {
            head.push(MASK);
            mask = Some(self.mask_of(&MASK));
        }
        let cx = Context {
            mask: mask.clone(),
            some: true,
            chain: 0,
            end: DONE,
            block: entry,
        };
        for (&param, &scalar) in func.blocks[entry].params.iter().zip(&callee.scalars) {
            let ty = func.ty(param);
            let name = self.llvm.forward(self.passed_type(ty, scalar));
            head.push(name.clone());
            let lanes = self.received(name, ty, scalar);
            self.define(param, lanes, &cx);
        }
        let returns = |&&block: &&_| matches!(func.blocks[block].term, Terminator::Return(_));
        self.results.blends = !scalar && func.layout.iter().filter(returns).count() > 1;
        for &ty in &func.results {
            let ty = if scalar { ty.into() } else { self.vec(ty) };
            let slot = self.llvm.slot(ty);
            self.results.slots.push(slot);
        }
        self.region(mask, DONE, None)?;
        self.llvm.begin(DONE);
        if !func.results.is_empty() {
            head.push(RESULTS);
        }
        let (places, _) = self.places(&func.results, &RESULTS);
        for (slot, at) in self.results.slots.clone().iter().zip(places) {
            let value = self.llvm.get(slot);
            let value = if scalar { value } else { self.passed(value) };
            self.llvm.store(&value, &at, ALIGN);
        }
        self.llvm.ret(None);
        let params: Vec<String> = head
            .iter()
            .map(|param| format!("{} {param}", param.ty()))
            .collect();
        let (number, params) = (callee.id.index(), params.join(", "));
        Ok(format!(
            "define internal void @function_{number}({params}) #1"
        ))
    }

    /// Stores what the active lanes return at the end of a block.
    pub(super) fn give_back(&mut self, block: Block, cx: &Context) -> Result<()> {
        let func = self.func;
        let Terminator::Return(values) = &func.blocks[block].term else {
            return Ok(());
        };
        for (&value, slot) in values.iter().zip(self.results.slots.clone()) {
            if self.is_scalar() {
                let one = self.scalar(value, cx)?;
                self.llvm.put(&one, &slot);
                continue;
            }
            let mut all = self.vector(value, cx)?;
            if let (Some(mask), true) = (&cx.mask, self.results.blends) {
                all = self.fenced(value, all);
                let old = self.llvm.get(&slot);
                all = self.llvm.select(mask, &all, &old);
            }
            self.llvm.put(&all, &slot);
        }
        Ok(())
    }
}
