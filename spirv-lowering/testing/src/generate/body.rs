//! The body of a function that is being generated: the available values, and the choice of
//! statements.

use super::{Callee, Gen, Kind, OUT_BYTES, SCALARS, SLOT_BYTES};
use spirv_lowering::ir::entity::{Block, Entity, FuncId, GlobalId, Value};
use spirv_lowering::ir::function::{FpFlags, Function, Linkage, Terminator};
use spirv_lowering::ir::module::{KernelParam, ParamKind};
use spirv_lowering::ir::op::{Builtin, GroupArith, GroupOp, Op, Scope};
use spirv_lowering::ir::types::{Space, Type};

/// An SSA value that can be used from here on.
#[derive(Clone, Copy)]
pub(super) struct KnownValue {
    pub value: Value,
    pub ty: Type,
    pub uniform: bool,
}

/// A scalar variable.
#[derive(Clone, Copy)]
pub(super) struct Variable {
    pub at: Value,
    pub ty: Type,
    pub uniform: bool,
}

/// Memory to load from, and perhaps to store to.
#[derive(Clone, Copy)]
pub(super) struct Object {
    pub at: Value,
    pub size: u32,
    pub align: u32,
    pub writable: bool,
    /// Set if all work-items find the same value there.
    pub uniform: bool,
}

/// An array of vectors in local memory, two for each work-item.
#[derive(Clone, Copy)]
pub(super) struct Tile {
    pub id: GlobalId,
    pub ty: Type,
    pub lanes: usize,
    /// Set if components are also stored by themselves.
    pub parts: bool,
}

/// A function under construction.
pub(super) struct Body<'g> {
    pub gen: &'g mut Gen,
    pub func: Function,
    pub block: Block,
    pub known: Vec<KnownValue>,
    pub variables: Vec<Variable>,
    pub objects: Vec<Object>,
    /// Slots that hold pointers to objects of at least 16 bytes, aligned to 4.
    pub pointers: Vec<(Value, Space)>,
    /// The slots of the work-group in local memory: base, and index of the own slot.
    pub locals: Vec<Value>,
    /// The images among the arguments.
    pub handles: Vec<Value>,
    /// Global memory: the counters that all work-items share, and the buffer with a slot for each.
    pub counters: Option<Value>,
    pub share: Option<Value>,
    /// A null pointer into global memory, and a zero, both opaque.
    pub null: Option<Value>,
    pub zero: Option<Value>,
    pub local_index: Option<Value>,
    pub local_items: Option<Value>,
    pub global_index: Option<Value>,
    /// Set where some work-items of the group may be elsewhere.
    pub divergent: bool,
    pub depth: usize,
    /// The array of vectors, once there is one.
    pub tile: Option<Tile>,
    /// The number of statements that may still be generated.
    pub budget: usize,
    pub is_kernel: bool,
    /// Set if collective operations are allowed.
    pub collective: bool,
}

impl<'g> Body<'g> {
    fn new(gen: &'g mut Gen) -> Self {
        let mut func = Function::default();
        let block = func.add_block();
        let budget = 4 + gen.rng.below(16);
        Self {
            gen,
            func,
            block,
            known: Vec::new(),
            variables: Vec::new(),
            objects: Vec::new(),
            pointers: Vec::new(),
            locals: Vec::new(),
            handles: Vec::new(),
            counters: None,
            share: None,
            null: None,
            zero: None,
            local_index: None,
            local_items: None,
            tile: None,
            global_index: None,
            divergent: false,
            depth: 0,
            budget,
            is_kernel: false,
            collective: false,
        }
    }

    pub fn op(&mut self, op: Op, args: &[Value], ty: Type) -> Value {
        self.func.append1(self.block, op, args.iter().copied(), ty)
    }

    pub fn op_fp(&mut self, op: Op, args: &[Value], ty: Type, fp: u8) -> Value {
        let value = self.op(op, args, ty);
        if let Some(inst) = self.func.def_inst(value) {
            self.func.insts[inst].fp = FpFlags(fp);
        }
        value
    }

    pub fn konst(&mut self, ty: Type, bits: u64) -> Value {
        self.func.append_const(self.block, ty, bits)
    }

    pub fn below(&mut self, n: usize) -> usize {
        self.gen.rng.below(n)
    }

    pub fn one_in(&mut self, n: usize) -> bool {
        self.gen.rng.one_in(n)
    }

    /// Computes `base + index * stride`, with `index` of 64 bits.
    pub fn indexed(&mut self, base: Value, index: Value, stride: u32) -> Value {
        let stride = self.konst(Type::I64, stride.into());
        let by = self.op(Op::IMul, &[index, stride], Type::I64);
        let ty = self.func.ty(base);
        self.op(Op::PtrAdd, &[base, by], ty)
    }

    pub fn offset(&mut self, base: Value, by: u32) -> Value {
        let by = self.konst(Type::I64, by.into());
        let ty = self.func.ty(base);
        self.op(Op::PtrAdd, &[base, by], ty)
    }

    pub fn alloca(&mut self, size: u32, align: u32) -> Value {
        // Allocas stand in the entry block.
        let op = Op::Alloca { size, align };
        let inst = self.func.make_inst(op, [], &[Type::Ptr(Space::Private)]);
        if let Some(entry) = self.func.entry() {
            self.func.blocks[entry].insts.insert(0, inst);
        }
        self.func.insts[inst].results[0]
    }

    /// Adds the variables and objects that every function has. `source` is an address of
    /// `source_size` readable bytes.
    fn common(&mut self, source: Value, source_size: u32) {
        for _ in 0..2 + self.below(6) {
            let ty = self.gen.rng.pick(&SCALARS);
            let uniform = self.is_kernel && self.one_in(3);
            self.add_variable(ty, uniform);
        }
        for _ in 0..1 + self.below(2) {
            let (size, align) =
                self.gen
                    .rng
                    .pick(&[(16, 8), (16, 4), (32, 16), (24, 8), (64, 4), (40, 8)]);
            let at = self.alloca(size, align);
            // Filled from the source, by a copy or by stores.
            let whole = size.min(source_size);
            if self.one_in(2) {
                self.func.append(
                    self.block,
                    Op::MemCopy {
                        size: whole.into(),
                        align: 1,
                    },
                    [at, source],
                    &[],
                );
            } else {
                for i in 0..whole / 4 {
                    let from = self.offset(source, i * 4);
                    let value = self.op(
                        Op::Load {
                            align: 1,
                            volatile: false,
                        },
                        &[from],
                        Type::I32,
                    );
                    let to = self.offset(at, i * 4);
                    self.put(to, &[value], 4);
                }
            }
            for i in whole / 4..size / 4 {
                let value = self.konst(Type::I32, u64::from(i) * 77);
                let to = self.offset(at, i * 4);
                self.put(to, &[value], 4);
            }
            self.objects.push(Object {
                at,
                size,
                align,
                writable: true,
                uniform: false,
            });
        }
        let pointers = if self.gen.sharable { 0 } else { self.below(3) };
        for _ in 0..pointers {
            let space = self.gen.rng.pick(&[Space::Private, Space::Generic]);
            let at = self.alloca(8, 8);
            self.point_anywhere(at, space);
            self.pointers.push((at, space));
        }
    }

    pub fn put(&mut self, at: Value, values: &[Value], align: u32) {
        let volatile = self.one_in(24);
        self.func.append(
            self.block,
            Op::Store { align, volatile },
            [at].into_iter().chain(values.iter().copied()),
            &[],
        );
    }

    fn add_variable(&mut self, ty: Type, uniform: bool) {
        let at = self.alloca(ty.size(), ty.size());
        let value = self.constant(ty);
        self.put(at, &[value], ty.size());
        self.variables.push(Variable { at, ty, uniform });
    }

    /// Generates a function to call: its parameters are scalars, a pointer to 16 private bytes,
    /// perhaps a generic one.
    pub fn function(gen: &mut Gen, index: usize) -> Callee {
        let mut body = Body::new(gen);
        body.divergent = true;
        body.collective = body.gen.kind == Kind::Collective && body.one_in(3);
        let mut params = Vec::new();
        for _ in 0..1 + body.below(3) {
            params.push(body.gen.rng.pick(&SCALARS));
        }
        params.push(Type::Ptr(Space::Private));
        if !body.gen.sharable && body.one_in(2) {
            params.push(Type::Ptr(Space::Generic));
        }
        let endless = !body.collective && body.one_in(if body.gen.sharable { 3 } else { 8 });
        let block = body.block;
        let mut source = None;
        for &ty in &params {
            let value = body.func.add_param(block, ty);
            match ty {
                Type::Ptr(space) => {
                    body.objects.push(Object {
                        at: value,
                        size: 16,
                        align: 4,
                        writable: true,
                        uniform: false,
                    });
                    if space == Space::Private {
                        source = Some(value);
                    }
                }
                ty => body.known.push(KnownValue {
                    value,
                    ty,
                    uniform: false,
                }),
            }
        }
        if let Some(source) = source {
            body.common(source, 16);
        }
        let collective = body.collective;
        if collective {
            // Where all work-items are.
            let x = body.value(Type::I32);
            let op = Op::Group(GroupOp::Reduce(GroupArith::IAdd), Scope::WorkGroup);
            let sum = body.op(op, &[x], Type::I32);
            body.known.push(KnownValue {
                value: sum,
                ty: Type::I32,
                uniform: true,
            });
        }
        body.budget = 2 + body.below(6);
        body.statements();
        let count = body.below(3);
        let mut results = Vec::new();
        let mut values = Vec::new();
        for _ in 0..count {
            let ty = body.gen.rng.pick(&SCALARS);
            results.push(ty);
            values.push(body.value(ty));
        }
        if endless {
            body.go_round();
        } else {
            let values = values.into_iter().collect();
            body.func.blocks[body.block].term = Terminator::Return(values);
        }
        body.func.params.clone_from(&params);
        body.func.results.clone_from(&results);
        body.func.name = format!("f{index}");
        body.func.linkage = Linkage::Internal;
        let id = FuncId::new(body.gen.module.functions.len());
        let func = body.func;
        gen.module.functions.push(func);
        Callee {
            id,
            params,
            results,
            collective,
            endless,
        }
    }

    /// Begins the kernel.
    pub fn kernel(gen: &'g mut Gen, params: &[KernelParam]) -> Self {
        let mut body = Body::new(gen);
        body.is_kernel = true;
        let block = body.block;
        let mut types = Vec::new();
        let mut pointers = Vec::new();
        for (i, param) in params.iter().enumerate() {
            match param.kind {
                ParamKind::Value { ty, count, .. } => {
                    for _ in 0..count {
                        let value = body.func.add_param(block, ty);
                        types.push(ty);
                        if i == 6 {
                            body.zero = Some(value);
                        } else {
                            body.known.push(KnownValue {
                                value,
                                ty,
                                uniform: true,
                            });
                        }
                    }
                }
                ParamKind::ByVal { size, align } => {
                    let ty = Type::Ptr(Space::Private);
                    types.push(ty);
                    let at = body.func.add_param(block, ty);
                    body.objects.push(Object {
                        at,
                        size,
                        align,
                        writable: false,
                        uniform: true,
                    });
                    if body.one_in(4) {
                        if let Some(object) = body.objects.last_mut() {
                            object.writable = true;
                            object.uniform = false;
                        }
                    }
                }
                ParamKind::Pointer(space) => {
                    types.push(Type::Ptr(space));
                    let value = body.func.add_param(block, Type::Ptr(space));
                    match space {
                        Space::Local => body.locals.push(value),
                        _ => pointers.push(value),
                    }
                }
                ParamKind::Image { .. } => {
                    types.push(Type::Handle);
                    let value = body.func.add_param(block, Type::Handle);
                    body.handles.push(value);
                }
                ParamKind::Sampler | ParamKind::Pipe | ParamKind::Queue => {}
            }
        }
        body.func.params = types;
        let global_index = body.op(Op::Builtin(Builtin::GlobalLinearId), &[], Type::I64);
        body.global_index = Some(global_index);
        if let [out, input, constant, counters, share, null] = pointers[..] {
            let own = body.indexed(out, global_index, OUT_BYTES);
            let object = |at, size, align, writable, uniform| Object {
                at,
                size,
                align,
                writable,
                uniform,
            };
            body.objects.push(object(own, 64, 128, true, false));
            body.objects
                .push(object(input, super::IN_BYTES, 128, false, true));
            body.objects.push(object(constant, 64, 128, false, true));
            body.counters = Some(counters);
            body.share = Some(share);
            body.null = Some(null);
            let own = body.indexed(share, global_index, SLOT_BYTES);
            body.objects.push(object(own, SLOT_BYTES, 32, true, false));
            for (id, space) in body.gen.tables.clone() {
                let at = body.op(Op::GlobalAddr(id), &[], Type::Ptr(space));
                body.objects.push(object(at, 64, 16, false, true));
            }
            if body.gen.kind != Kind::Plain {
                let index = body.op(Op::Builtin(Builtin::LocalLinearId), &[], Type::I64);
                body.local_index = Some(index);
                let mut items = body.konst(Type::I64, 1);
                for dim in 0..3 {
                    let size = body.op(Op::Builtin(Builtin::LocalSize(dim)), &[], Type::I64);
                    items = body.op(Op::IMul, &[items, size], Type::I64);
                }
                body.local_items = Some(items);
                if let Some(id) = body.gen.local {
                    let at = body.op(Op::GlobalAddr(id), &[], Type::Ptr(Space::Local));
                    body.locals.push(at);
                }
                for base in body.locals.clone() {
                    let own = body.indexed(base, index, SLOT_BYTES);
                    for i in 0..SLOT_BYTES / 4 {
                        let from = body.offset(input, i * 4);
                        let value = body.get(from, Type::I32, 4);
                        let to = body.offset(own, i * 4);
                        body.put(to, &[value], 4);
                    }
                    body.objects.push(object(own, SLOT_BYTES, 16, true, false));
                }
            }
            body.common(input, super::IN_BYTES);
        }
        body
    }

    /// Generates the statements of the kernel, and the stores of its results to `out`.
    pub fn fill_kernel(&mut self) {
        self.budget = 4 + self.below(24);
        self.statements();
        // Out of what all the rest writes to.
        let Some(out) = self.func.entry().and_then(|entry| {
            let params = &self.func.blocks[entry].params;
            params.first().copied()
        }) else {
            return;
        };
        let Some(index) = self.global_index else {
            return;
        };
        let own = self.indexed(out, index, OUT_BYTES);
        let mut at = 64;
        for variable in self.variables.clone() {
            let size = variable.ty.size();
            let value = self.get(variable.at, variable.ty, size);
            let place = self.offset(own, at);
            self.put(place, &[value], size);
            at += 8;
        }
        for known in self.known.clone().into_iter().rev().take(8) {
            let value = if known.ty == Type::Bool {
                self.op(Op::ZExt, &[known.value], Type::I32)
            } else {
                known.value
            };
            let size = self.func.ty(value).size();
            let place = self.offset(own, at);
            self.put(place, &[value], size);
            at += 8;
        }
        for object in self.objects.clone() {
            let space = self.func.ty(object.at).space();
            let mut i = 0;
            while matches!(space, Some(Space::Private | Space::Local)) && i + 4 <= object.size {
                if at + 4 > OUT_BYTES {
                    break;
                }
                let from = self.offset(object.at, i);
                let value = self.get(from, Type::I32, object.align.min(4));
                let place = self.offset(own, at);
                self.put(place, &[value], 4);
                at += 4;
                i += 4;
            }
        }
    }

    /// Ends a kernel.
    pub fn end(&mut self) {
        self.func.blocks[self.block].term = Terminator::Return(Default::default());
    }

    pub fn finish(self) -> Function {
        self.func
    }

    /// Generates statements until the budget is used up.
    pub fn statements(&mut self) {
        while self.budget > 0 {
            self.budget -= 1;
            self.statement();
        }
    }

    /// Generates a few statements of a nested block.
    pub fn nested(&mut self) {
        let mine = (1 + self.below(3)).min(self.budget);
        self.budget -= mine;
        let rest = std::mem::replace(&mut self.budget, mine);
        self.depth += 1;
        let known = self.known.len();
        self.statements();
        self.known.truncate(known);
        self.depth -= 1;
        self.budget = rest;
    }

    fn statement(&mut self) {
        let uniform = !self.divergent && self.gen.kind != Kind::Plain && self.is_kernel;
        if uniform && self.one_in(4) {
            return self.meeting();
        }
        let nest = self.depth < 3;
        if nest && self.gen.sharable && self.one_in(8) {
            return match self.below(3) {
                0 => self.never(),
                _ => self.call(),
            };
        }
        if self.gen.wide && self.one_in(5) {
            return self.wide(nest);
        }
        if nest && self.gen.arrays && self.one_in(6) {
            return self.array_loop();
        }
        match self.below(31) {
            0..=5 => self.assign(),
            6..=8 => self.store_somewhere(),
            9 => self.keep(),
            10..=11 if nest => self.branch(),
            12 if nest && self.one_in(2) => self.if_chain(),
            12 if nest => self.diamond(),
            13..=15 if nest => self.counted_loop(),
            16 if nest => self.bounded_loop(),
            17 if nest => self.switch(),
            18 if nest && self.depth < 2 => self.tangle(),
            19..=20 => self.call(),
            21 => self.vector(),
            22 => self.copy(),
            23 => self.repoint(),
            24 if !self.gen.sharable => self.generic(),
            25 if !self.gen.sharable => self.union(),
            26 => self.own_atomic(),
            27 if self.is_kernel => self.shared_atomic(),
            28 if self.is_kernel && self.one_in(4) => self.printf(),
            29 if nest => self.never(),
            _ => self.assign(),
        }
    }
}
