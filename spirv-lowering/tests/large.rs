//! Large functions take time near linear: each shape is optimised at one size and at four times the size. The bound
//! is generous (a machine may be busy); `LARGE=100000 cargo test --test large -- --nocapture`
//! shows the times by pass for another size.

use spirv_lowering::analysis::control_flow::Analyses;
use spirv_lowering::ir::entity::{Block, Value};
use spirv_lowering::ir::function::{Edge, Function, Terminator, Values};
use spirv_lowering::ir::op::{IntCond, Op};
use spirv_lowering::ir::types::{Space, Type};
use spirv_lowering::ir::verify::verify_standalone;
use spirv_lowering::passes;
use std::time::{Duration, Instant};

const LOAD: Op = Op::Load {
    align: 4,
    volatile: false,
};
const STORE: Op = Op::Store {
    align: 4,
    volatile: false,
};

struct Shape {
    func: Function,
    buffer: Value,
    n: Value,
    vars: Vec<Value>,
    block: Block,
}

impl Shape {
    fn new(vars: usize) -> Self {
        let buffer_ty = Type::Ptr(Space::Global);
        let mut func = Function {
            params: vec![buffer_ty, Type::I32],
            ..Function::default()
        };
        let block = func.add_block();
        let buffer = func.add_param(block, buffer_ty);
        let n = func.add_param(block, Type::I32);
        let alloca = Op::Alloca { size: 4, align: 4 };
        let vars: Vec<Value> = (0..vars)
            .map(|_| func.append1(block, alloca, [], Type::Ptr(Space::Private)))
            .collect();
        for &var in &vars {
            func.append(block, STORE, [var, n], &[]);
        }
        Self {
            func,
            buffer,
            n,
            vars,
            block,
        }
    }

    /// var[i] = var[i] * 5 + var[j]
    fn update(&mut self, i: usize) {
        let (a, b) = (
            self.vars[i % self.vars.len()],
            self.vars[(i * 7 + 3) % self.vars.len()],
        );
        let (f, block) = (&mut self.func, self.block);
        let x = f.append1(block, LOAD, [a], Type::I32);
        let y = f.append1(block, LOAD, [b], Type::I32);
        let k = f.append_const(block, Type::I32, 5);
        let p = f.append1(block, Op::IMul, [x, k], Type::I32);
        let s = f.append1(block, Op::IAdd, [p, y], Type::I32);
        f.append(block, STORE, [a, s], &[]);
    }

    fn go_to_new(&mut self) {
        let next = self.func.add_block();
        self.func.blocks[self.block].term = Terminator::Jump(Edge::new(next));
        self.block = next;
    }

    fn condition(&mut self, i: usize) -> Value {
        let var = self.vars[i % self.vars.len()];
        let x = self.func.append1(self.block, LOAD, [var], Type::I32);
        self.func
            .append1(self.block, Op::ICmp(IntCond::Slt), [x, self.n], Type::Bool)
    }

    fn finish(mut self) -> Function {
        for &var in &self.vars {
            let x = self.func.append1(self.block, LOAD, [var], Type::I32);
            self.func.append(self.block, STORE, [self.buffer, x], &[]);
        }
        self.func.blocks[self.block].term = Terminator::Return(Values::new());
        self.func
    }
}

/// One block.
fn straight(n: usize) -> Function {
    let mut s = Shape::new(64);
    (0..n).for_each(|i| s.update(i));
    s.finish()
}

/// One `if` after the other.
fn diamonds(n: usize) -> Function {
    let mut s = Shape::new(32);
    for i in 0..n / 4 {
        let c = s.condition(i);
        let head = s.block;
        let (then, join) = (s.func.add_block(), s.func.add_block());
        s.func.blocks[head].term = Terminator::Branch(c, Edge::new(then), Edge::new(join));
        s.block = then;
        (0..4).for_each(|k| s.update(i * 3 + k));
        s.func.append(s.block, STORE, [s.buffer, s.n], &[]);
        s.func.blocks[then].term = Terminator::Jump(Edge::new(join));
        s.block = join;
    }
    s.finish()
}

/// Loops in one another.
fn nest(n: usize) -> Function {
    let mut s = Shape::new(4);
    let mut heads = Vec::new();
    for i in 0..n / 16 {
        s.go_to_new();
        heads.push(s.block);
        s.update(i);
    }
    for (i, &head) in heads.iter().enumerate().rev() {
        s.update(i);
        let c = s.condition(i);
        let next = s.func.add_block();
        s.func.blocks[s.block].term = Terminator::Branch(c, Edge::new(head), Edge::new(next));
        s.block = next;
    }
    s.finish()
}

/// A switch with many cases that all go to one place.
fn switch(n: usize) -> Function {
    let mut s = Shape::new(16);
    let head = s.block;
    let join = s.func.add_block();
    let mut cases = Vec::new();
    for i in 0..n / 8 {
        s.block = s.func.add_block();
        cases.push((i as u64, Edge::new(s.block)));
        (0..4).for_each(|k| s.update(i + k));
        s.func.append(s.block, STORE, [s.buffer, s.n], &[]);
        s.func.blocks[s.block].term = Terminator::Jump(Edge::new(join));
    }
    s.func.blocks[head].term = Terminator::Switch(s.n, cases, Edge::new(join));
    s.block = join;
    s.finish()
}

fn optimise(mut func: Function, times: &mut Vec<(&'static str, Duration)>) {
    let mut analyses = Analyses::default();
    for pass in passes::CLEAN_UP.iter().chain(passes::CLEAN_UP) {
        let start = Instant::now();
        (pass.run)(&mut func, &mut analyses);
        times.push((pass.name, start.elapsed()));
    }
    let start = Instant::now();
    verify_standalone(&func).unwrap();
    times.push(("verify", start.elapsed()));
}

#[test]
fn time_is_near_linear() {
    let shapes: [(&str, fn(usize) -> Function); 4] = [
        ("straight", straight),
        ("diamonds", diamonds),
        ("nest", nest),
        ("switch", switch),
    ];
    let size = std::env::var("LARGE").ok().and_then(|v| v.parse().ok());
    let size: usize = size.unwrap_or(4000);
    for (name, shape) in shapes {
        let mut totals = Vec::new();
        for n in [size, 4 * size] {
            let mut times = Vec::new();
            optimise(shape(n), &mut times);
            let total: Duration = times.iter().map(|t| t.1).sum();
            println!("{name} {n}: {total:?}");
            for (pass, time) in times.iter().filter(|t| t.1 * 20 > total) {
                println!("    {pass} {time:?}");
            }
            totals.push(total);
        }
        let floor = Duration::from_millis(20);
        assert!(
            totals[1] < (totals[0].max(floor)) * 16,
            "{name}: {totals:?}"
        );
    }
}
