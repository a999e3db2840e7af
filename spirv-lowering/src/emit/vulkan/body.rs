//! Emits the function: blocks, terminators, arithmetic. Memory and collective operations are in
//! files of their own.

use super::writer::{push, Id, Writer};
use crate::error::{LowerError, Result};
use crate::interface::KernelInterface;
use crate::ir::entity::{Block, Inst, SecondaryMap, Value, Var};
use crate::ir::function::{FpFlags, Function, Merge, Storage, Terminator, ValueDef};
use crate::ir::op::{FloatCond, HwVar, IntCond, NativeFn, Op, Rounding};
use crate::ir::types::Type;
use crate::quirks::CodeQuirk;
use crate::target::Target;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use spirv::{
    BuiltIn, Capability, Decoration, GlslStd450Op as Glsl, LoopControl, Op as S, SelectionControl,
    StorageClass,
};

/// The state of the walk.
pub struct Emitter<'a> {
    pub(super) func: &'a Function,
    pub(super) interface: &'a KernelInterface,
    pub(super) target: &'a Target,
    pub(super) w: Writer,
    /// The `OpVariable`s of the function.
    pub(super) vars: Vec<u32>,
    /// Loads of push constants and inputs, at the start of the entry block.
    pub(super) prologue: Vec<u32>,
    /// The other instructions.
    pub(super) code: Vec<u32>,
    values: SecondaryMap<Value, Id>,
    labels: SecondaryMap<Block, Id>,
    pub(super) var_ids: SecondaryMap<Var, Id>,
    pub(super) push_block: super::push_block::PushBlock,
    inputs: FxHashMap<(u32, u32), Id>,
    local_size: [Id; 3],
    /// The predecessors of each block, once each, with the arguments they pass.
    preds: SecondaryMap<Block, Vec<(Block, usize)>>,
}

impl<'a> Emitter<'a> {
    /// Begins a function whose kernel has this interface.
    pub fn new(func: &'a Function, interface: &'a KernelInterface, target: &'a Target) -> Self {
        Self {
            func,
            interface,
            target,
            w: Writer::new(target),
            vars: Vec::new(),
            prologue: Vec::new(),
            code: Vec::new(),
            values: SecondaryMap::new(),
            labels: SecondaryMap::new(),
            var_ids: SecondaryMap::new(),
            push_block: super::push_block::PushBlock::new(
                func,
                interface,
                target.quirks.has(CodeQuirk::LongWords),
            ),
            inputs: FxHashMap::default(),
            local_size: [0; 3],
            preds: SecondaryMap::new(),
        }
    }

    /// Emits the module. Returns its words.
    pub fn run(mut self) -> Result<Vec<u32>> {
        let entry = self
            .func
            .entry()
            .ok_or_else(|| LowerError::internal("a kernel without a body"))?;
        if !self.func.blocks[entry].params.is_empty() {
            return Err(LowerError::internal("kernel parameters were not lowered"));
        }
        if !self.func.results.is_empty() {
            return Err(LowerError::internal("a kernel with results"));
        }
        let required = self.interface.attributes.required_work_group_size;
        self.local_size = self
            .w
            .workgroup_size(required.unwrap_or([1, 1, 1]), self.interface.uses_subgroups);
        for &block in &self.func.layout {
            self.labels[block] = self.w.id();
        }
        for &block in &self.func.layout {
            for (i, target) in self.func.blocks[block]
                .term
                .targets()
                .into_iter()
                .enumerate()
            {
                if self.labels[target.block] == 0 {
                    return Err(LowerError::internal(format!(
                        "{block} jumps to {} outside the layout",
                        target.block
                    )));
                }
                let preds = &mut self.preds[target.block];
                match preds.last() {
                    Some(&(last, at)) if last == block => {
                        let first = self.func.blocks[block].term.targets()[at].args.clone();
                        if first != target.args {
                            return Err(LowerError::internal(format!(
                                "{block} jumps to {} with different arguments",
                                target.block
                            )));
                        }
                    }
                    _ => preds.push((block, i)),
                }
            }
        }
        if !self.preds[entry].is_empty() {
            return Err(LowerError::internal("the entry block is a jump target"));
        }
        let keys: Vec<_> = self.func.vars.keys().collect();
        for var in keys {
            self.declare_var(var)?;
        }

        let func = self.func;
        for &block in &func.layout {
            if block != entry {
                let label = self.labels[block];
                push(&mut self.code, S::Label, &[label]);
            }
            self.params(block)?;
            for &inst in &func.blocks[block].insts {
                self.inst(inst)?;
            }
            self.terminator(block)?;
        }

        if !self.target.int64 && self.w.has(Capability::Int64) {
            return Err(LowerError::internal("a value of 64 bits is left"));
        }
        let void = self.w.void();
        let function_type = self.w.function_type(void);
        let main = self.w.id();
        let mut function =
            Vec::with_capacity(self.code.len() + self.prologue.len() + self.vars.len() + 16);
        push(&mut function, S::Function, &[void, main, 0, function_type]);
        push(&mut function, S::Label, &[self.labels[entry]]);
        function.extend_from_slice(&self.vars);
        function.extend_from_slice(&self.prologue);
        function.extend_from_slice(&self.code);
        push(&mut function, S::FunctionEnd, &[]);
        Ok(self.w.finish(main, &function, self.target, required))
    }

    fn declare_var(&mut self, var: Var) -> Result<()> {
        let data = &self.func.vars[var];
        if data.elem == Type::Bool || data.elem.is_ptr() || data.elem == Type::Handle {
            return Err(LowerError::internal(format!(
                "{var} has elements of type {:?}",
                data.elem
            )));
        }
        let elem = self.w.vec(data.elem, data.lanes);
        let size = data.elem_size();
        let mut len = self.w.u32(if data.len.spec.is_empty() {
            data.len.fixed.max(1)
        } else {
            data.len.fixed
        });
        for &spec_id in &data.len.spec {
            let spec = self.w.spec(spec_id, 16);
            let count = if size == 1 {
                spec
            } else {
                let size = self.w.u32(size);
                self.w.spec_op(S::UDiv, spec, size)
            };
            len = self.w.spec_op(S::IAdd, len, count);
        }
        let id = match data.storage {
            Storage::Workgroup => {
                let explicit = data.alias.is_some();
                let array = self.w.array(elem, len, explicit.then_some(size));
                let ty = if explicit {
                    self.w.cap(Capability::WorkgroupMemoryExplicitLayoutKHR);
                    self.w.extension("SPV_KHR_workgroup_memory_explicit_layout");
                    match size {
                        1 => self
                            .w
                            .cap(Capability::WorkgroupMemoryExplicitLayout8BitAccessKHR),
                        2 => self
                            .w
                            .cap(Capability::WorkgroupMemoryExplicitLayout16BitAccessKHR),
                        _ => {}
                    }
                    self.w.block_struct(array)
                } else {
                    array
                };
                let pointer = self.w.pointer(StorageClass::Workgroup, ty);
                let id = self.w.global_var(StorageClass::Workgroup, pointer);
                if explicit {
                    self.w.decorate(id, Decoration::Aliased, &[]);
                }
                id
            }
            Storage::Function => {
                if !data.len.spec.is_empty() {
                    return Err(LowerError::internal("a private array of variable size"));
                }
                let array = self.w.array(elem, len, None);
                let pointer = self.w.pointer(StorageClass::Function, array);
                let id = self.w.id();
                push(
                    &mut self.vars,
                    S::Variable,
                    &[pointer, id, StorageClass::Function as u32],
                );
                id
            }
        };
        self.var_ids[var] = id;
        Ok(())
    }

    /// Returns the id of a value. A constant has the id of its declaration, and a cast without code
    /// that of its operand.
    pub(super) fn value(&mut self, value: Value) -> Id {
        let mut v = value;
        loop {
            if self.values[v] != 0 {
                return self.values[v];
            }
            let ValueDef::Result(inst, _) = self.func.values[v].def else {
                break;
            };
            let data = &self.func.insts[inst];
            match data.op {
                // In memory alone, so that there are no constants.
                Op::Const(bits) if self.is_foreign(v) => {
                    let (ty, word) = (self.w.ty(self.func.ty(v)), self.w.u32(bits as u32));
                    return self.op(S::UConvert, ty, &[word]);
                }
                Op::Const(bits) => {
                    let id = self.w.constant(self.func.ty(v), bits);
                    self.values[v] = id;
                    return id;
                }
                Op::Undef => {
                    let id = self.w.undef(self.func.ty(v));
                    self.values[v] = id;
                    return id;
                }
                Op::PtrToInt | Op::IntToPtr | Op::SpaceCast => v = data.args[0],
                Op::Bitcast if self.same_type(self.func.ty(data.args[0]), self.func.ty(v)) => {
                    v = data.args[0]
                }
                _ => break,
            }
        }
        let id = self.w.id();
        self.values[v] = id;
        id
    }

    /// Returns true for an integer that the target does not compute with.
    fn is_foreign(&self, value: Value) -> bool {
        !self.target.small_ints && matches!(self.func.ty(value), Type::I8 | Type::I16)
    }

    fn same_type(&self, a: Type, b: Type) -> bool {
        a == b || (a.bits() == b.bits() && !a.is_float() && !b.is_float())
    }

    /// Makes `id` the id of a result that has none yet.
    pub(super) fn define(&mut self, value: Value, id: Id) {
        if self.values[value] == 0 {
            self.values[value] = id;
        } else {
            let ty = self.w.ty(self.func.ty(value));
            let wanted = self.values[value];
            push(&mut self.code, S::CopyObject, &[ty, wanted, id]);
        }
    }

    fn label(&self, block: Block) -> Id {
        self.labels[block]
    }

    fn params(&mut self, block: Block) -> Result<()> {
        let func = self.func;
        for (i, &param) in func.blocks[block].params.iter().enumerate() {
            let ty = self.w.ty(func.ty(param));
            let id = self.value(param);
            if self.preds[block].is_empty() {
                push(&mut self.code, S::Undef, &[ty, id]);
                continue;
            }
            let mut words = vec![ty, id];
            for k in 0..self.preds[block].len() {
                let (pred, at) = self.preds[block][k];
                let targets = func.blocks[pred].term.targets();
                let arg = targets.get(at).and_then(|t| t.args.get(i)).copied();
                let arg = arg.ok_or_else(|| {
                    LowerError::internal(format!("{pred} passes too few arguments to {block}"))
                })?;
                words.push(self.value(arg));
                words.push(self.label(pred));
            }
            push(&mut self.code, S::Phi, &words);
        }
        Ok(())
    }

    fn terminator(&mut self, block: Block) -> Result<()> {
        let func = self.func;
        let term = &func.blocks[block].term;
        let merge = func.structure.as_ref().and_then(|s| s.merges[block]);
        if merge.is_none()
            && func.structure.is_none()
            && !matches!(
                term,
                Terminator::Jump(_) | Terminator::Return(_) | Terminator::Unreachable
            )
        {
            return Err(LowerError::internal("control flow is not structured"));
        }
        match merge {
            Some(Merge::Selection { merge }) => {
                let label = self.label(merge);
                push(
                    &mut self.code,
                    S::SelectionMerge,
                    &[label, SelectionControl::NONE.bits()],
                );
            }
            Some(Merge::Loop { merge, cont }) => {
                let operands = [
                    self.label(merge),
                    self.label(cont),
                    LoopControl::NONE.bits(),
                ];
                push(&mut self.code, S::LoopMerge, &operands);
            }
            None => {}
        }
        match term {
            Terminator::Jump(target) => {
                let label = self.label(target.block);
                push(&mut self.code, S::Branch, &[label]);
            }
            Terminator::Branch(cond, a, b) => {
                let operands = [self.value(*cond), self.label(a.block), self.label(b.block)];
                push(&mut self.code, S::BranchConditional, &operands);
            }
            Terminator::Switch(value, cases, default) => {
                let wide = func.ty(*value).bits() == 64;
                let mut words = vec![self.value(*value), self.label(default.block)];
                for (bits, target) in cases {
                    words.push(*bits as u32);
                    if wide {
                        words.push((*bits >> 32) as u32);
                    }
                    words.push(self.label(target.block));
                }
                push(&mut self.code, S::Switch, &words);
            }
            Terminator::Return(_) => push(&mut self.code, S::Return, &[]),
            Terminator::Unreachable => push(&mut self.code, S::Unreachable, &[]),
        }
        Ok(())
    }

    // --- instructions

    /// Emits an instruction with a result into the current block.
    pub(super) fn op(&mut self, op: S, ty: Id, operands: &[u32]) -> Id {
        let id = self.w.id();
        self.op_to(op, ty, id, operands);
        id
    }

    /// Emits an instruction whose result has this id.
    pub(super) fn op_to(&mut self, op: S, ty: Id, id: Id, operands: &[u32]) {
        let mut words: SmallVec<[u32; 8]> = SmallVec::new();
        words.push(ty);
        words.push(id);
        words.extend_from_slice(operands);
        push(&mut self.code, op, &words);
    }

    fn glsl_to(&mut self, which: Glsl, ty: Id, id: Id, operands: &[u32]) {
        let set = self.w.glsl();
        let mut words: SmallVec<[u32; 8]> = SmallVec::from_slice(&[ty, id, set, which as u32]);
        words.extend_from_slice(operands);
        push(&mut self.code, S::ExtInst, &words);
    }

    fn glsl(&mut self, which: Glsl, ty: Id, operands: &[u32]) -> Id {
        let id = self.w.id();
        self.glsl_to(which, ty, id, operands);
        id
    }

    /// Returns the error about an instruction that the target does not have.
    pub(super) fn unsupported(&self, inst: Inst) -> LowerError {
        LowerError::internal(format!(
            "{inst}: {:?} cannot be emitted",
            self.func.insts[inst].op
        ))
    }

    /// Returns a component of a built-in input variable, loaded in the prologue.
    pub(super) fn input(&mut self, which: BuiltIn, lanes: u32, component: u32) -> Id {
        if let Some(&id) = self.inputs.get(&(which as u32, component)) {
            return id;
        }
        let whole = match self.inputs.get(&(which as u32, u32::MAX)) {
            Some(&id) => id,
            None => {
                let var = self.w.builtin(which, lanes);
                let ty = self.w.vec(Type::I32, lanes);
                let id = self.w.id();
                push(&mut self.prologue, S::Load, &[ty, id, var]);
                self.inputs.insert((which as u32, u32::MAX), id);
                id
            }
        };
        let id = if lanes == 1 {
            whole
        } else {
            let ty = self.w.ty(Type::I32);
            let id = self.w.id();
            push(
                &mut self.prologue,
                S::CompositeExtract,
                &[ty, id, whole, component],
            );
            id
        };
        self.inputs.insert((which as u32, component), id);
        id
    }

    fn inst(&mut self, inst: Inst) -> Result<()> {
        let func = self.func;
        let data = &func.insts[inst];
        match data.op {
            Op::Const(_) | Op::Undef | Op::PtrToInt | Op::IntToPtr | Op::SpaceCast => return Ok(()),
            Op::Bitcast => {
                let (from, to) = (func.ty(data.args[0]), func.ty(data.results[0]));
                if self.same_type(from, to) {
                    return Ok(());
                }
            }
            Op::Join => {
                let (low, high) = (self.value(data.args[0]), self.value(data.args[1]));
                let id = self.value(data.results[0]);
                let pair = self.w.vec(Type::I32, 2);
                if func.ty(data.results[0]).is_ptr() {
                    self.op_to(S::CompositeConstruct, pair, id, &[low, high]);
                } else {
                    let words = self.op(S::CompositeConstruct, pair, &[low, high]);
                    let ty = self.w.ty(Type::F64);
                    self.op_to(S::Bitcast, ty, id, &[words]);
                }
                return Ok(());
            }
            Op::Low | Op::High => {
                let (from, id) = (self.value(data.args[0]), self.value(data.results[0]));
                let (pair, word) = (self.w.vec(Type::I32, 2), self.w.ty(Type::I32));
                let words = self.op(S::Bitcast, pair, &[from]);
                let half = u32::from(data.op == Op::High);
                self.op_to(S::CompositeExtract, word, id, &[words, half]);
                return Ok(());
            }
            Op::UnpackHalf => {
                let (word, id) = (self.value(data.args[0]), self.value(data.results[0]));
                let (pair, float) = (self.w.vec(Type::F32, 2), self.w.ty(Type::F32));
                self.w.converts_halves();
                let both = self.glsl(Glsl::UnpackHalf2x16, pair, &[word]);
                self.op_to(S::CompositeExtract, float, id, &[both, 0]);
                return Ok(());
            }
            Op::PackHalf => {
                let (float, id) = (self.value(data.args[0]), self.value(data.results[0]));
                let (pair, word) = (self.w.vec(Type::F32, 2), self.w.ty(Type::I32));
                self.w.converts_halves();
                let zero = self.w.constant(Type::F32, 0);
                let both = self.op(S::CompositeConstruct, pair, &[float, zero]);
                self.glsl_to(Glsl::PackHalf2x16, word, id, &[both]);
                return Ok(());
            }
            Op::Hw(var) => return self.hw(var, data.results[0]),
            Op::Load { .. }
            | Op::Store { .. }
            | Op::AtomicLoad { .. }
            | Op::AtomicStore { .. }
            | Op::AtomicRmw { .. }
            | Op::AtomicCmpXchg { .. }
            | Op::VarLoad(_)
            | Op::VarStore(_)
            | Op::VarRmw { .. }
            | Op::VarCmpXchg { .. }
            | Op::VarAtomicLoad { .. }
            | Op::VarAtomicStore { .. }
            | Op::Barrier { .. }
            | Op::Fence { .. }
            | Op::Implicit(..)
            | Op::ArgLoad(_)
            | Op::SpecSize(_) => return self.memory(inst),
            Op::TexelFetch(_) | Op::TexelLoad(_) | Op::TexelStore(_) => return self.image(inst),
            Op::TexelFilter { image, sampler } => return self.filter(inst, image, sampler),
            Op::SDot4 | Op::UDot4 | Op::SUDot4 => return self.dot4(inst),
            Op::Group(op, scope) => return self.group(inst, op, scope),
            Op::Clock(scope) => return self.clock(inst, scope),
            _ => {}
        }
        let Some(&result) = data.results.first() else {
            return Err(self.unsupported(inst));
        };
        let kind = func.ty(result);
        let args: SmallVec<[Id; 4]> = data.args.iter().map(|&v| self.value(v)).collect();
        let arg_kind = data.args.first().map_or(kind, |&v| func.ty(v));
        let id = self.value(result);
        let ty = self.w.ty(kind);
        self.arith(inst, id, ty, kind, &args, arg_kind)
    }

    fn arith(
        &mut self,
        inst: Inst,
        id: Id,
        ty: Id,
        kind: Type,
        a: &[Id],
        from: Type,
    ) -> Result<()> {
        let data = &self.func.insts[inst];
        let logical = kind == Type::Bool;
        let simple = match data.op {
            Op::IAdd | Op::PtrAdd => S::IAdd,
            Op::ISub => S::ISub,
            Op::IMul => S::IMul,
            Op::SDiv => S::SDiv,
            Op::UDiv => S::UDiv,
            Op::URem => S::UMod,
            Op::And if logical => S::LogicalAnd,
            Op::Or if logical => S::LogicalOr,
            Op::Xor if logical => S::LogicalNotEqual,
            Op::Not if logical => S::LogicalNot,
            Op::And => S::BitwiseAnd,
            Op::Or => S::BitwiseOr,
            Op::Xor => S::BitwiseXor,
            Op::Not => S::Not,
            Op::Shl => S::ShiftLeftLogical,
            Op::LShr => S::ShiftRightLogical,
            Op::AShr => S::ShiftRightArithmetic,
            Op::INeg => S::SNegate,
            Op::Popcount if kind == Type::I32 => S::BitCount,
            Op::BitReverse if kind == Type::I32 => S::BitReverse,
            Op::FAdd => S::FAdd,
            Op::FSub => S::FSub,
            Op::FMul => S::FMul,
            Op::FDiv => S::FDiv,
            Op::FRem => S::FRem,
            Op::FNeg => S::FNegate,
            Op::ICmp(cond) => {
                int_cond(cond, from == Type::Bool).ok_or_else(|| self.unsupported(inst))?
            }
            Op::Select => S::Select,
            Op::ZExt if from != Type::Bool => S::UConvert,
            Op::SExt if from != Type::Bool => S::SConvert,
            Op::Trunc => S::UConvert,
            Op::FConv(Rounding::Rte) => S::FConvert,
            // Widening is exact whatever the mode says.
            Op::FConv(_) if kind.bits() > from.bits() => S::FConvert,
            Op::SToF(Rounding::Rte) => S::ConvertSToF,
            Op::UToF(Rounding::Rte) => S::ConvertUToF,
            Op::FToS {
                rounding: Rounding::Rtz,
                sat: false,
            } => S::ConvertFToS,
            Op::FToU {
                rounding: Rounding::Rtz,
                sat: false,
            } => S::ConvertFToU,
            Op::Bitcast => S::Bitcast,
            _ => S::Nop,
        };
        if let (Op::SRem, &[x, y]) = (&data.op, a) {
            // Vulkan leaves OpSRem undefined for negative operands; NVIDIA's driver divides without signs.
            let quotient = self.op(S::SDiv, ty, &[x, y]);
            let product = self.op(S::IMul, ty, &[quotient, y]);
            self.op_to(S::ISub, ty, id, &[x, product]);
            return Ok(());
        }
        if simple != S::Nop {
            self.op_to(simple, ty, id, a);
            // What may be contracted is by now. A driver left free would not only contract: it takes the decoration's
            // absence for leave to rearrange, and p - (p + s) loses what s was to tell.
            if matches!(
                simple,
                S::FAdd | S::FSub | S::FMul | S::FDiv | S::FRem | S::FNegate
            ) && !data.fp.has(FpFlags::REASSOC)
            {
                self.w.decorate(id, Decoration::NoContraction, &[]);
            }
            return Ok(());
        }
        let glsl = match data.op {
            Op::SMin => Glsl::SMin,
            Op::SMax => Glsl::SMax,
            Op::UMin => Glsl::UMin,
            Op::UMax => Glsl::UMax,
            Op::FAbs => Glsl::FAbs,
            Op::FMin => Glsl::NMin,
            Op::FMax => Glsl::NMax,
            Op::Fma => Glsl::Fma,
            Op::FSqrt => Glsl::Sqrt,
            Op::FFloor => Glsl::Floor,
            Op::FCeil => Glsl::Ceil,
            Op::FTrunc => Glsl::Trunc,
            Op::FRoundEven => Glsl::RoundEven,
            Op::FNative(NativeFn::Sqrt) => Glsl::Sqrt,
            Op::FNative(NativeFn::Rsqrt) => Glsl::InverseSqrt,
            Op::FNative(NativeFn::Fma) => Glsl::Fma,
            Op::FNative(f) if kind != Type::F64 => match f {
                NativeFn::Sin => Glsl::Sin,
                NativeFn::Cos => Glsl::Cos,
                NativeFn::Exp2 => Glsl::Exp2,
                NativeFn::Log2 => Glsl::Log2,
                _ => Glsl::Pow,
            },
            _ => return self.composed(inst, id, ty, kind, a, from),
        };
        self.glsl_to(glsl, ty, id, a);
        if data.op == Op::Fma && !data.fp.has(FpFlags::REASSOC) {
            self.w.decorate(id, Decoration::NoContraction, &[]);
        }
        Ok(())
    }

    /// Emits an operation that takes more than one instruction.
    fn composed(
        &mut self,
        inst: Inst,
        id: Id,
        ty: Id,
        kind: Type,
        a: &[Id],
        from: Type,
    ) -> Result<()> {
        let bool_ty = self.w.ty(Type::Bool);
        match self.func.insts[inst].op {
            Op::ZExt | Op::SExt => {
                let one = self.w.constant(
                    kind,
                    if matches!(self.func.insts[inst].op, Op::SExt) {
                        u64::MAX
                    } else {
                        1
                    },
                );
                let zero = self.w.constant(kind, 0);
                self.op_to(S::Select, ty, id, &[a[0], one, zero]);
            }
            Op::Clz if kind == Type::I32 => {
                let msb = self.glsl(Glsl::FindUMsb, ty, a);
                let top = self.w.u32(31);
                self.op_to(S::ISub, ty, id, &[top, msb]);
            }
            Op::Ctz if kind == Type::I32 => {
                let lsb = self.glsl(Glsl::FindILsb, ty, a);
                let width = self.w.u32(32);
                self.glsl_to(Glsl::UMin, ty, id, &[lsb, width]);
            }
            Op::SMulHi | Op::UMulHi if kind == Type::I32 => {
                let pair = self.w.pair_struct(ty);
                let signed = matches!(self.func.insts[inst].op, Op::SMulHi);
                let op = if signed {
                    S::SMulExtended
                } else {
                    S::UMulExtended
                };
                let both = self.op(op, pair, a);
                self.op_to(S::CompositeExtract, ty, id, &[both, 1]);
            }
            Op::FCopySign => {
                let int = kind.as_int().ok_or_else(|| self.unsupported(inst))?;
                let int_ty = self.w.ty(int);
                let sign = 1u64 << (kind.bits() - 1);
                let (keep, take) = (self.w.constant(int, !sign), self.w.constant(int, sign));
                let x = self.op(S::Bitcast, int_ty, &[a[0]]);
                let y = self.op(S::Bitcast, int_ty, &[a[1]]);
                let x = self.op(S::BitwiseAnd, int_ty, &[x, keep]);
                let y = self.op(S::BitwiseAnd, int_ty, &[y, take]);
                let bits = self.op(S::BitwiseOr, int_ty, &[x, y]);
                self.op_to(S::Bitcast, ty, id, &[bits]);
            }
            Op::FCmp(cond) => {
                if !from.is_float() {
                    return Err(self.unsupported(inst));
                }
                let op = match cond {
                    FloatCond::Oeq => S::FOrdEqual,
                    FloatCond::One => S::FOrdNotEqual,
                    FloatCond::Olt => S::FOrdLessThan,
                    FloatCond::Ole => S::FOrdLessThanEqual,
                    FloatCond::Ogt => S::FOrdGreaterThan,
                    FloatCond::Oge => S::FOrdGreaterThanEqual,
                    FloatCond::Ueq => S::FUnordEqual,
                    FloatCond::Une => S::FUnordNotEqual,
                    FloatCond::Ult => S::FUnordLessThan,
                    FloatCond::Ule => S::FUnordLessThanEqual,
                    FloatCond::Ugt => S::FUnordGreaterThan,
                    FloatCond::Uge => S::FUnordGreaterThanEqual,
                    FloatCond::Ord | FloatCond::Uno => {
                        // OpOrdered and OpUnordered need the Kernel capability.
                        let ordered = cond == FloatCond::Ord;
                        if a[0] == a[1] && !ordered {
                            self.op_to(S::IsNan, bool_ty, id, &[a[0]]);
                            return Ok(());
                        }
                        let mut nan = self.op(S::IsNan, bool_ty, &[a[0]]);
                        if a[0] != a[1] {
                            let other = self.op(S::IsNan, bool_ty, &[a[1]]);
                            if !ordered {
                                self.op_to(S::LogicalOr, bool_ty, id, &[nan, other]);
                                return Ok(());
                            }
                            nan = self.op(S::LogicalOr, bool_ty, &[nan, other]);
                        }
                        self.op_to(S::LogicalNot, bool_ty, id, &[nan]);
                        return Ok(());
                    }
                };
                self.op_to(op, bool_ty, id, a);
            }
            _ => return Err(self.unsupported(inst)),
        }
        Ok(())
    }

    fn hw(&mut self, var: HwVar, result: Value) -> Result<()> {
        let id = match var {
            HwVar::LocalInvocationId(i) => self.input(BuiltIn::LocalInvocationId, 3, i.into()),
            HwVar::WorkgroupId(i) => self.input(BuiltIn::WorkgroupId, 3, i.into()),
            HwVar::NumWorkgroups(i) => self.input(BuiltIn::NumWorkgroups, 3, i.into()),
            HwVar::WorkgroupSize(i) => self.local_size.get(usize::from(i)).copied().unwrap_or(0),
            HwVar::LocalInvocationIndex => self.input(BuiltIn::LocalInvocationIndex, 1, 0),
            HwVar::SubgroupSize => self.subgroup_input(BuiltIn::SubgroupSize),
            HwVar::SubgroupInvocationId => self.subgroup_input(BuiltIn::SubgroupLocalInvocationId),
            HwVar::SubgroupId => self.subgroup_input(BuiltIn::SubgroupId),
            HwVar::NumSubgroups => self.subgroup_input(BuiltIn::NumSubgroups),
        };
        if let HwVar::LocalInvocationId(i)
        | HwVar::WorkgroupId(i)
        | HwVar::NumWorkgroups(i)
        | HwVar::WorkgroupSize(i) = var
        {
            if i > 2 {
                return Err(LowerError::internal("a dimension above 2"));
            }
        }
        self.define(result, id);
        Ok(())
    }

    /// Returns the value of a built-in variable of sub-groups.
    pub(super) fn subgroup_input(&mut self, which: BuiltIn) -> Id {
        self.w.cap(Capability::GroupNonUniform);
        self.input(which, 1, 0)
    }
}

fn int_cond(cond: IntCond, logical: bool) -> Option<S> {
    Some(match (cond, logical) {
        (IntCond::Eq, true) => S::LogicalEqual,
        (IntCond::Ne, true) => S::LogicalNotEqual,
        (_, true) => return None,
        (IntCond::Eq, _) => S::IEqual,
        (IntCond::Ne, _) => S::INotEqual,
        (IntCond::Slt, _) => S::SLessThan,
        (IntCond::Sle, _) => S::SLessThanEqual,
        (IntCond::Sgt, _) => S::SGreaterThan,
        (IntCond::Sge, _) => S::SGreaterThanEqual,
        (IntCond::Ult, _) => S::ULessThan,
        (IntCond::Ule, _) => S::ULessThanEqual,
        (IntCond::Ugt, _) => S::UGreaterThan,
        (IntCond::Uge, _) => S::UGreaterThanEqual,
    })
}
