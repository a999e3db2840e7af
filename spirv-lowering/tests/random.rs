//! Random functions keep their meaning: each is interpreted before and after every optimisation, on several inputs,
//! and must return the same values and leave the same bytes in memory.
//!
//! The functions have arbitrary control flow (irreducible too, bounded by a counter), keep all state in allocas of
//! several kinds (scalars, a structure accessed with various widths, an array indexed at run time) and in a global
//! buffer, and call one another.

use spirv_lowering::ir::entity::{Block, Entity, FuncId, PrimaryMap, Value};
use spirv_lowering::ir::fold::fold;
use spirv_lowering::ir::function::{Function, Linkage, Target, Terminator, Values};
use spirv_lowering::ir::module::Module;
use spirv_lowering::ir::op::{FloatCond, IntCond, Op, Rounding};
use spirv_lowering::ir::parse::parse_module;
use spirv_lowering::ir::types::{Space, Type};
use spirv_lowering::ir::verify::verify_module;
use spirv_lowering::passes;

const GLOBAL: u64 = 0x1000;
const GLOBAL_SIZE: u64 = 64;
const MEMORY: usize = 0x20000;

struct Machine<'a> {
    module: &'a Module,
    memory: Vec<u8>,
    top: u64,
    /// A NaN was seen: its sign and payload are free, and may show in memory.
    nan: bool,
}

impl Machine<'_> {
    fn read(&self, address: u64, size: u32) -> u64 {
        let at = address as usize;
        let mut bytes = [0; 8];
        bytes[..size as usize].copy_from_slice(&self.memory[at..at + size as usize]);
        u64::from_le_bytes(bytes)
    }

    fn write(&mut self, address: u64, size: u32, bits: u64) {
        let at = address as usize;
        self.memory[at..at + size as usize].copy_from_slice(&bits.to_le_bytes()[..size as usize]);
    }

    fn call(&mut self, id: FuncId, args: &[u64]) -> Vec<u64> {
        let func = &self.module.functions[id];
        let saved = self.top;
        let mut values = vec![0u64; func.values.len()];
        let mut block = func.entry().unwrap();
        for (&param, &arg) in func.blocks[block].params.iter().zip(args) {
            values[param.index()] = arg;
        }
        loop {
            for &inst in &func.blocks[block].insts {
                let data = &func.insts[inst];
                let args: Vec<u64> = data.args.iter().map(|v| values[v.index()]).collect();
                let mut results = vec![0u64; data.results.len()];
                match data.op {
                    Op::Const(bits) => results[0] = bits,
                    Op::Undef => {}
                    Op::Alloca { size, align } => {
                        let align = u64::from(align);
                        self.top = self.top.div_ceil(align) * align;
                        results[0] = self.top;
                        self.top += u64::from(size);
                    }
                    Op::Load { .. } => {
                        let mut at = args[0];
                        for (slot, &value) in results.iter_mut().zip(&data.results) {
                            let size = func.ty(value).size();
                            *slot = self.read(at, size);
                            at += u64::from(size);
                        }
                    }
                    Op::Store { .. } => {
                        let mut at = args[0];
                        for (&bits, &value) in args[1..].iter().zip(&data.args[1..]) {
                            let size = func.ty(value).size();
                            self.write(at, size, bits);
                            at += u64::from(size);
                        }
                    }
                    Op::MemCopy { size, .. } => {
                        let (to, from) = (args[0] as usize, args[1] as usize);
                        self.memory.copy_within(from..from + size as usize, to);
                    }
                    Op::SpaceCast => results[0] = args[0],
                    Op::Call(callee) => results = self.call(callee, &args),
                    op => {
                        let types: Vec<Type> = data.args.iter().map(|&v| func.ty(v)).collect();
                        let ty = func.ty(data.results[0]);
                        results[0] = fold(op, data.fp, &types, &args, ty).unwrap_or(0);
                    }
                }
                for (&value, &bits) in data.results.iter().zip(&results) {
                    let is_float = func.ty(value) == Type::F32;
                    self.nan |= is_float && f32::from_bits(bits as u32).is_nan();
                    values[value.index()] = bits;
                }
            }
            let go = |t: &Target, values: &mut Vec<u64>| {
                let args: Vec<u64> = t.args.iter().map(|v| values[v.index()]).collect();
                for (&param, &bits) in func.blocks[t.block].params.iter().zip(&args) {
                    values[param.index()] = bits;
                }
                t.block
            };
            block = match &func.blocks[block].term {
                Terminator::Jump(t) => go(t, &mut values),
                Terminator::Branch(c, a, b) => {
                    let t = if values[c.index()] != 0 { a } else { b };
                    go(t, &mut values)
                }
                Terminator::Switch(v, cases, default) => {
                    let bits = values[v.index()];
                    let case = cases.iter().find(|(k, _)| *k == bits);
                    go(case.map_or(default, |c| &c.1), &mut values)
                }
                Terminator::Return(list) => {
                    self.top = saved;
                    return list.iter().map(|v| values[v.index()]).collect();
                }
                Terminator::Unreachable => panic!("unreachable was reached"),
            };
        }
    }
}

/// Results of fn0 and the contents of the buffer.
type Outcome = (Vec<u64>, Vec<u8>);

/// The outcome, none if a NaN was involved.
fn run(module: &Module, seed: u64) -> Option<Outcome> {
    let mut machine = Machine {
        module,
        memory: vec![0xaa; MEMORY],
        top: 0x2000,
        nan: false,
    };
    let mut random = Random(seed | 1);
    for i in 0..GLOBAL_SIZE {
        machine.memory[(GLOBAL + i) as usize] = random.next() as u8;
    }
    let args = [GLOBAL, random.next() & 0xffff_ffff, random.next() % 16];
    let results = machine.call(FuncId::new(0), &args);
    let memory = machine.memory[GLOBAL as usize..(GLOBAL + GLOBAL_SIZE) as usize].to_vec();
    (!machine.nan).then_some((results, memory))
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 8
    }
    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
    fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }
}

const PRIVATE: Type = Type::Ptr(Space::Private);

struct Generator<'a> {
    rng: &'a mut Random,
    func: Function,
    block: Block,
    /// Scalar variables.
    vars: Vec<(Value, Type)>,
    /// Two structures of 16 bytes, an array of 8 ints, the buffer.
    structs: [Value; 2],
    array: Value,
    buffer: Value,
    callees: Vec<FuncId>,
}

impl Generator<'_> {
    fn op(&mut self, op: Op, args: &[Value], ty: Type) -> Value {
        self.func.append1(self.block, op, args.iter().copied(), ty)
    }

    fn constant(&mut self, ty: Type) -> Value {
        let bits = match self.rng.below(5) {
            0 => 0,
            1 => 1,
            2 => u64::MAX,
            3 => 1 << self.rng.below(64),
            _ => self.rng.next(),
        };
        let bits = match ty {
            Type::F32 => u64::from((self.rng.below(9) as f32 * 0.5 - 2.0).to_bits()),
            _ => bits,
        };
        self.func.append_const(self.block, ty, bits)
    }

    fn load(&mut self, pointer: Value, ty: Type) -> Value {
        let volatile = self.rng.below(8) == 0;
        self.op(Op::Load { align: 1, volatile }, &[pointer], ty)
    }

    fn store(&mut self, pointer: Value, values: &[Value]) {
        let op = Op::Store {
            align: 1,
            volatile: self.rng.below(8) == 0,
        };
        let args = [pointer].into_iter().chain(values.iter().copied());
        self.func.append(self.block, op, args, &[]);
    }

    fn offset(&mut self, base: Value, offset: u64) -> Value {
        if self.rng.below(4) == 0 && offset > 0 {
            let half = self.offset(base, offset / 2);
            let k = self
                .func
                .append_const(self.block, Type::I64, offset - offset / 2);
            let ty = self.func.ty(half);
            return self.op(Op::PtrAdd, &[half, k], ty);
        }
        let ty = self.func.ty(base);
        let k = self.func.append_const(self.block, Type::I64, offset);
        let pointer = self.op(Op::PtrAdd, &[base, k], ty);
        if self.rng.below(6) == 0 {
            return self.op(Op::SpaceCast, &[pointer], Type::Ptr(Space::Generic));
        }
        pointer
    }

    /// A place in memory that holds a value of the type.
    fn place(&mut self, ty: Type) -> Value {
        let size = u64::from(ty.size());
        match self.rng.below(4) {
            0 => {
                let base = self.rng.pick(&self.structs.clone());
                let unaligned = self.rng.below(16 - size as usize + 1) as u64;
                let natural = unaligned / size * size;
                let offset = if self.rng.below(3) == 0 {
                    unaligned
                } else {
                    natural
                };
                self.offset(base, offset)
            }
            1 => {
                let index = self.value(Type::I64);
                let three = self.func.append_const(self.block, Type::I64, 24);
                let masked = self.op(Op::And, &[index, three], Type::I64);
                self.op(Op::PtrAdd, &[self.array, masked], PRIVATE)
            }
            2 => {
                let index = self.value(Type::I64);
                let mask = self.func.append_const(self.block, Type::I64, 48);
                let masked = self.op(Op::And, &[index, mask], Type::I64);
                let base = self.op(Op::PtrAdd, &[self.buffer, masked], Type::Ptr(Space::Global));
                let offset = self.rng.below(8) as u64;
                self.offset(base, offset)
            }
            _ => {
                let offset = self.rng.below(GLOBAL_SIZE as usize - 8) as u64;
                self.offset(self.buffer, offset)
            }
        }
    }

    fn value(&mut self, ty: Type) -> Value {
        self.value_of_depth(ty, 2)
    }

    fn value_of_depth(&mut self, ty: Type, depth: usize) -> Value {
        let choice = if depth == 0 {
            self.rng.below(4)
        } else {
            self.rng.below(12)
        };
        if ty == Type::Bool {
            if choice == 0 {
                return self.constant(ty);
            }
            let of = self.rng.pick(&[Type::I8, Type::I32, Type::I64, Type::F32]);
            let a = self.value_of_depth(of, depth.saturating_sub(1));
            let b = self.value_of_depth(of, depth.saturating_sub(1));
            let op = if of == Type::F32 {
                use FloatCond::*;
                Op::FCmp(self.rng.pick(&[Oeq, Olt, Oge, Une, Ult, Uge, Ord]))
            } else {
                use IntCond::*;
                Op::ICmp(
                    self.rng
                        .pick(&[Eq, Ne, Slt, Sle, Sgt, Sge, Ult, Ule, Ugt, Uge]),
                )
            };
            let value = self.op(op, &[a, b], Type::Bool);
            return if choice > 8 {
                self.op(Op::Not, &[value], Type::Bool)
            } else {
                value
            };
        }
        match choice {
            0 => self.constant(ty),
            1 | 2 => {
                let same: Vec<Value> = self
                    .vars
                    .iter()
                    .filter(|v| v.1 == ty)
                    .map(|v| v.0)
                    .collect();
                let var = self.rng.pick(&same);
                self.load(var, ty)
            }
            3 => {
                let place = self.place_shallow(ty);
                self.load(place, ty)
            }
            4 => {
                let c = self.value_of_depth(Type::Bool, depth - 1);
                let a = self.value_of_depth(ty, depth - 1);
                let b = self.value_of_depth(ty, depth - 1);
                self.op(Op::Select, &[c, a, b], ty)
            }
            5 | 6 if ty == Type::F32 => {
                let a = self.value_of_depth(Type::I32, depth - 1);
                let op = self.rng.pick(&[
                    Op::Bitcast,
                    Op::SToF(Rounding::Rte),
                    Op::UToF(Rounding::Rtz),
                ]);
                self.op(op, &[a], ty)
            }
            5 | 6 => {
                let from = self
                    .rng
                    .pick(&[Type::Bool, Type::I8, Type::I16, Type::I32, Type::I64]);
                if from == ty || from == Type::I16 {
                    return self.value_of_depth(ty, depth - 1);
                }
                let a = self.value_of_depth(from, depth - 1);
                let op = if from != Type::Bool && from.bits() > ty.bits() {
                    Op::Trunc
                } else {
                    self.rng.pick(&[Op::ZExt, Op::SExt])
                };
                self.op(op, &[a], ty)
            }
            _ if ty == Type::F32 => {
                let a = self.value_of_depth(ty, depth - 1);
                let b = self.value_of_depth(ty, depth - 1);
                let op = self.rng.pick(&[
                    Op::FAdd,
                    Op::FSub,
                    Op::FMul,
                    Op::FDiv,
                    Op::FMin,
                    Op::FCopySign,
                ]);
                let value = self.op(op, &[a, b], ty);
                if choice > 10 {
                    self.op(Op::FNeg, &[value], ty)
                } else {
                    value
                }
            }
            7 => {
                let a = self.value_of_depth(ty, depth - 1);
                let op = self
                    .rng
                    .pick(&[Op::Not, Op::INeg, Op::Clz, Op::Popcount, Op::BitReverse]);
                self.op(op, &[a], ty)
            }
            _ => {
                use Op::*;
                let a = self.value_of_depth(ty, depth - 1);
                let b = if self.rng.below(2) == 0 {
                    self.constant(ty)
                } else {
                    self.value_of_depth(ty, depth - 1)
                };
                let op = self.rng.pick(&[
                    IAdd, IAdd, ISub, IMul, UDiv, SDiv, URem, SRem, And, Or, Xor, Shl, LShr, AShr,
                    SMin, UMax, UMulHi,
                ]);
                self.op(op, &[a, b], ty)
            }
        }
    }

    /// A place without further nesting.
    fn place_shallow(&mut self, ty: Type) -> Value {
        let size = u64::from(ty.size());
        let base = self
            .rng
            .pick(&[self.structs[0], self.structs[1], self.array, self.buffer]);
        let offset = self.rng.below(16 / size as usize) as u64 * size;
        self.offset(base, offset)
    }

    fn any_type(&mut self) -> Type {
        self.rng
            .pick(&[Type::I8, Type::I32, Type::I32, Type::I64, Type::F32])
    }

    fn statement(&mut self) {
        match self.rng.below(8) {
            0..=2 => {
                let (var, ty) = self.rng.pick(&self.vars.clone());
                let value = self.value(ty);
                self.store(var, &[value]);
            }
            3 | 4 => {
                let ty = self.any_type();
                let value = self.value(ty);
                let place = self.place(ty);
                self.store(place, &[value]);
            }
            5 => {
                // Lanes.
                let base = self
                    .rng
                    .pick(&[self.structs[0], self.structs[1], self.buffer]);
                let values = [0; 4].map(|_| self.value_of_depth(Type::I32, 1));
                self.store(base, &values);
            }
            6 => {
                let places = [self.structs[0], self.structs[1], self.array, self.buffer];
                let to = self.rng.pick(&places);
                let from = self.rng.pick(&places);
                if to != from {
                    let size = self.rng.pick(&[3, 4, 8, 12, 16]);
                    let offset = self.rng.below((16 - size as usize) + 1) as u64;
                    let to = self.offset(to, offset);
                    let from = self.offset(from, 16 - size - offset.min(16 - size));
                    self.func
                        .append(self.block, Op::MemCopy { size, align: 1 }, [to, from], &[]);
                }
            }
            _ => {
                if self.callees.is_empty() {
                    return;
                }
                let callee = self.rng.pick(&self.callees.clone());
                let a = self.value(Type::I32);
                let b = self.value(Type::I64);
                let args = [self.buffer, a, b];
                let call =
                    self.func
                        .append(self.block, Op::Call(callee), args, &[Type::I32, Type::F32]);
                let results = self.func.insts[call].results.clone();
                for (result, ty) in results.into_iter().zip([Type::I32, Type::F32]) {
                    let same: Vec<Value> = self
                        .vars
                        .iter()
                        .filter(|v| v.1 == ty)
                        .map(|v| v.0)
                        .collect();
                    let var = self.rng.pick(&same);
                    self.store(var, &[result]);
                }
            }
        }
    }
}

fn random_function(rng: &mut Random, name: &str, callees: Vec<FuncId>) -> Function {
    let buffer_ty = Type::Ptr(Space::Global);
    let mut func = Function {
        name: name.into(),
        linkage: Linkage::Internal,
        params: vec![buffer_ty, Type::I32, Type::I64],
        results: vec![Type::I32, Type::F32],
        ..Function::default()
    };
    let entry = func.add_block();
    let buffer = func.add_param(entry, buffer_ty);
    let x = func.add_param(entry, Type::I32);
    let y = func.add_param(entry, Type::I64);
    let mut alloca = |size| func.append1(entry, Op::Alloca { size, align: 8 }, [], PRIVATE);
    let counter = alloca(4);
    let structs = [alloca(16), alloca(16)];
    let array = alloca(40);
    let vars: Vec<(Value, Type)> = [Type::I32, Type::I32, Type::I64, Type::F32, Type::I8]
        .into_iter()
        .map(|ty| (alloca(ty.size()), ty))
        .collect();
    let mut g = Generator {
        rng,
        func,
        block: entry,
        vars,
        structs,
        array,
        buffer,
        callees,
    };
    // Everything is initialised: what is undefined may differ.
    let zero = g.func.append_const(entry, Type::I32, 0);
    let wide = g.func.append_const(entry, Type::I64, 0x0123_4567_89ab_cdef);
    let float = g.func.append_const(entry, Type::F32, 0x3fc0_0000);
    let byte = g.func.append_const(entry, Type::I8, 0x81);
    let init = [x, zero, y, float, byte];
    for (i, value) in init.into_iter().enumerate() {
        let var = g.vars[i].0;
        g.store(var, &[value]);
    }
    for base in structs {
        g.store(base, &[wide, y]);
    }
    g.store(array, &[wide, y, wide, y, wide]);
    g.store(counter, &[zero]);

    let blocks: Vec<Block> = (0..2 + g.rng.below(7))
        .map(|_| g.func.add_block())
        .collect();
    let exit = g.func.add_block();
    g.func.blocks[entry].term = Terminator::Jump(Target::new(blocks[0]));
    for &block in &blocks {
        g.block = block;
        for _ in 0..g.rng.below(4) {
            g.statement();
        }
        let count = g.op(
            Op::Load {
                align: 4,
                volatile: false,
            },
            &[counter],
            Type::I32,
        );
        let one = g.func.append_const(block, Type::I32, 1);
        let next = g.op(Op::IAdd, &[count, one], Type::I32);
        g.store(counter, &[next]);
        let limit = g.func.append_const(block, Type::I32, 12);
        let goes_on = g.op(Op::ICmp(IntCond::Slt), &[next, limit], Type::Bool);
        let go = g.func.add_block();
        g.func.blocks[block].term = Terminator::Branch(goes_on, Target::new(go), Target::new(exit));
        g.block = go;
        let mut target = || {
            let n = g.rng.below(blocks.len() + 1);
            Target::new(blocks.get(n).copied().unwrap_or(exit))
        };
        let (a, b, c) = (target(), target(), target());
        g.func.blocks[go].term = match g.rng.below(4) {
            0 => Terminator::Jump(a),
            1 => {
                let v = g.value(Type::I32);
                let k = g.func.append_const(go, Type::I32, 3);
                let v = g.op(Op::And, &[v, k], Type::I32);
                Terminator::Switch(v, vec![(0, a), (2, b)], c)
            }
            _ => {
                let v = g.value(Type::Bool);
                Terminator::Branch(v, a, b)
            }
        };
    }
    g.block = exit;
    let a = g.value(Type::I32);
    let b = g.value(Type::F32);
    g.func.blocks[exit].term = Terminator::Return(Values::from_slice(&[a, b]));
    g.func
}

fn random_module(seed: u64) -> Module {
    let mut rng = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut functions = PrimaryMap::new();
    let calls = |list: &[usize]| list.iter().map(|&i| FuncId::new(i)).collect();
    functions.push(random_function(&mut rng, "k", calls(&[1, 2])));
    functions.push(random_function(&mut rng, "f", calls(&[2])));
    functions.push(random_function(&mut rng, "g", calls(&[])));
    Module {
        functions,
        ..Module::default()
    }
}

type Pass = (&'static str, fn(&mut Function) -> bool);

const PASSES: [Pass; 7] = [
    ("simplify_cfg", passes::simplify_cfg::run),
    ("const_fold", passes::const_fold::run),
    ("sroa", passes::sroa::run),
    ("mem2reg", passes::mem2reg::run),
    ("narrow_params", passes::narrow_params::run),
    ("cse", passes::cse::run),
    ("dce", passes::dce::run),
];

fn check(module: &Module, expect: &[Option<Outcome>], what: &str, before: &Module) {
    if let Err(e) = verify_module(module) {
        panic!("{what}: {e}\nbefore:\n{before}\nafter:\n{module}");
    }
    for (seed, expect) in expect.iter().enumerate() {
        if expect.is_none() {
            continue;
        }
        // Integers moved as floats may look like NaN.
        let got = run(module, seed as u64 * 77 + 5);
        if got.is_some() && got != *expect {
            panic!("{what}, input {seed}: {got:x?} instead of {expect:x?}\nbefore:\n{before}\nafter:\n{module}");
        }
    }
}

fn fuzz(seeds: std::ops::Range<u64>) {
    let mut useful = 0;
    let count = seeds.end - seeds.start;
    for seed in seeds {
        let mut module = random_module(seed);
        let expect: Vec<_> = (0..6).map(|i| run(&module, i * 77 + 5)).collect();
        useful += expect.iter().filter(|e| e.is_some()).count() as u64;
        check(&module, &expect, &format!("seed {seed}, input"), &module);
        let text = module.to_string();
        let again = parse_module(&text).unwrap();
        assert_eq!(again.to_string(), text);
        check(&again, &expect, &format!("seed {seed}, text"), &module);

        let mut order = Random(seed + 99);
        if order.below(2) == 0 {
            let before = module.clone();
            passes::inline::run(&mut module, FuncId::new(0)).unwrap();
            check(&module, &expect, &format!("seed {seed}, inline"), &before);
        }
        for step in 0..16 {
            // Random order first, then the usual one.
            let (name, pass) = if step < 7 {
                order.pick(&PASSES)
            } else {
                PASSES[step % 7]
            };
            let before = module.clone();
            for (_, func) in module.functions.iter_mut() {
                pass(func);
            }
            check(
                &module,
                &expect,
                &format!("seed {seed}, step {step}, {name}"),
                &before,
            );
        }
        let before = module.clone();
        passes::inline::run(&mut module, FuncId::new(0)).unwrap();
        let func = &mut module.functions[FuncId::new(0)];
        passes::clean(func);
        check(
            &module,
            &expect,
            &format!("seed {seed}, inline and optimize"),
            &before,
        );
    }
    assert!(
        useful > count,
        "only {useful} of {} runs without NaN",
        count * 6
    );
}

#[test]
fn optimisations_keep_the_meaning() {
    let count = std::env::var("FUZZ")
        .ok()
        .and_then(|v| v.parse().ok())
        .unwrap_or(150);
    let start = std::env::var("FUZZ_START")
        .ok()
        .and_then(|v| v.parse().ok())
        .unwrap_or(1);
    fuzz(start..start + count);
}

/// The text of all golden cases.
fn cases() -> Vec<String> {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut paths = Vec::new();
    for folder in std::fs::read_dir(root).unwrap() {
        for file in std::fs::read_dir(folder.unwrap().path()).unwrap() {
            paths.push(file.unwrap().path());
        }
    }
    paths.sort();
    let texts = paths.iter().filter_map(|p| std::fs::read_to_string(p).ok());
    texts.collect()
}

fn mutate(rng: &mut Random, text: &str) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for _ in 0..1 + rng.below(3) {
        let (i, j) = (rng.below(lines.len()), rng.below(lines.len()));
        match rng.below(4) {
            0 => lines.swap(i, j),
            1 => {
                let line = lines[j].clone();
                lines.insert(i, line);
            }
            2 if lines.len() > 2 => {
                lines.remove(i);
            }
            _ => {
                // One word for another of the text.
                let words: Vec<&str> = lines[j].split(' ').collect();
                let new = rng.pick(&words).to_owned();
                let mut words: Vec<&str> = lines[i].split(' ').collect();
                let at = rng.below(words.len());
                words[at] = &new;
                lines[i] = words.join(" ");
            }
        }
    }
    lines.join("\n")
}

#[test]
fn mutated_text_is_refused_or_survives_the_passes() {
    let cases = cases();
    let mut rng = Random(0x1234_5678_9abc_def1);
    let count = std::env::var("FUZZ")
        .ok()
        .and_then(|v| v.parse().ok())
        .unwrap_or(3000);
    let mut valid = 0;
    for _ in 0..count {
        let case = rng.below(cases.len());
        let text = mutate(&mut rng, &cases[case]);
        let Ok(mut module) = parse_module(&text) else {
            continue;
        };
        if verify_module(&module).is_err() {
            continue;
        }
        valid += 1;
        for (_, func) in module.functions.iter_mut() {
            if func.layout.is_empty() {
                continue;
            }
            for (name, pass) in PASSES {
                pass(func);
                if let Err(e) = spirv_lowering::ir::verify::verify_standalone(func) {
                    panic!("after {name}: {e}\n{text}");
                }
            }
        }
        if let Some(first) = module.functions.keys().next() {
            let _ = passes::inline::run(&mut module, first);
            verify_module(&module).unwrap_or_else(|e| panic!("after inline: {e}\n{text}"));
        }
    }
    assert!(valid * 50 > count, "{valid} of {count}");
}
