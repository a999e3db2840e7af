//! Generates control flow: branches, loops, switches, tangles, calls.

use super::body::{Body, KnownValue};
use super::SCALARS;
use spirv_lowering::ir::entity::{Block, Value};
use spirv_lowering::ir::fold::{fold, int_compare};
use spirv_lowering::ir::function::{Edge, FpFlags, Terminator};
use spirv_lowering::ir::op::{Builtin, IntCond, Op};
use spirv_lowering::ir::types::{Space, Type};

/// The most iterations of a counted loop.
const MOST_ITERATIONS: usize = 24;

impl Body<'_> {
    fn jump(&mut self, to: Block, args: &[Value]) {
        self.func.blocks[self.block].term = Terminator::Jump(Edge::with(to, args.iter().copied()));
    }

    /// Generates statements in a block of their own; `divergent` says that only some work-items run
    /// it.
    fn inside(&mut self, divergent: bool, fill: impl FnOnce(&mut Self)) {
        let before = self.divergent;
        self.divergent |= divergent;
        let known = self.known.len();
        fill(self);
        self.known.truncate(known);
        self.divergent = before;
    }

    /// Returns a condition, and whether it is uniform.
    fn choice(&mut self) -> (Value, bool) {
        let uniform = !self.divergent && self.one_in(2);
        (self.condition(uniform), uniform)
    }

    /// Generates an if, with or without else, and the value of a join.
    pub fn branch(&mut self) {
        let (condition, uniform) = self.choice();
        let both = self.one_in(2);
        let ty = self.gen.rng.pick(&SCALARS);
        let joined = self.one_in(2);
        let (yes, no, done) = (
            self.func.add_block(),
            self.func.add_block(),
            self.func.add_block(),
        );
        self.func.blocks[self.block].term =
            Terminator::Branch(condition, Edge::new(yes), Edge::new(no));
        let join = joined.then(|| self.func.add_param(done, ty));
        for (arm, filled) in [(yes, true), (no, both)] {
            self.block = arm;
            self.inside(!uniform, |body| {
                if filled {
                    body.nested();
                }
                let args = joined.then(|| body.value(ty));
                body.jump(done, args.as_slice());
            });
        }
        self.block = done;
        if let Some(value) = join {
            self.known.push(KnownValue {
                value,
                ty,
                uniform: false,
            });
        }
    }

    /// Generates arms that only compute, from one another's values too.
    pub fn diamond(&mut self) {
        let (condition, _) = self.choice();
        let ty = self.gen.rng.pick(&SCALARS);
        let count = 1 + self.below(3);
        let (yes, no, done) = (
            self.func.add_block(),
            self.func.add_block(),
            self.func.add_block(),
        );
        self.func.blocks[self.block].term =
            Terminator::Branch(condition, Edge::new(yes), Edge::new(no));
        let joins: Vec<Value> = (0..count).map(|_| self.func.add_param(done, ty)).collect();
        for arm in [yes, no] {
            self.block = arm;
            self.inside(true, |body| {
                let args: Vec<Value> = (0..count)
                    .map(|_| match body.below(3) {
                        0 => body.constant(ty),
                        _ => body.value(ty),
                    })
                    .collect();
                body.jump(done, &args);
            });
        }
        self.block = done;
        self.known.extend(joins.into_iter().map(|value| KnownValue {
            value,
            ty,
            uniform: false,
        }));
    }

    /// Generates consecutive branches, each with an arm that leads to the join of all.
    pub fn if_chain(&mut self) {
        let ty = self.gen.rng.pick(&SCALARS);
        let done = self.func.add_block();
        let join = self.one_in(2).then(|| self.func.add_param(done, ty));
        let known = self.known.len();
        let divergent = std::mem::replace(&mut self.divergent, true);
        for _ in 0..2 + self.below(3) {
            if self.one_in(3) {
                // Straight there.
                let value = join.map(|_| self.value(ty));
                let c = self.condition(false);
                let next = self.func.add_block();
                let there = Edge::with(done, value);
                self.func.blocks[self.block].term = Terminator::Branch(c, there, Edge::new(next));
                self.block = next;
                continue;
            }
            let c = self.condition(false);
            let (arm, next) = (self.func.add_block(), self.func.add_block());
            let (yes, no) = if self.one_in(2) {
                (arm, next)
            } else {
                (next, arm)
            };
            self.func.blocks[self.block].term =
                Terminator::Branch(c, Edge::new(yes), Edge::new(no));
            self.block = arm;
            self.inside(true, |body| {
                match body.below(4) {
                    0 => body.store_somewhere(),
                    1 => body.assign(),
                    _ => {}
                }
                let value = join.map(|_| match body.below(3) {
                    0 => body.constant(ty),
                    _ => body.value(ty),
                });
                body.jump(done, value.as_slice());
            });
            self.block = next;
            if self.one_in(3) {
                self.store_somewhere();
            }
        }
        let value = join.map(|_| self.value(ty));
        self.jump(done, value.as_slice());
        self.divergent = divergent;
        self.known.truncate(known);
        self.block = done;
        self.known.extend(join.map(|value| KnownValue {
            value,
            ty,
            uniform: false,
        }));
    }

    /// Generates a loop over a counter that may step over its limit and wrap around.
    pub fn counted_loop(&mut self) {
        let Some(counter) = self.counter() else {
            return self.assign();
        };
        let ty = counter.ty;
        let uniform = true;
        let start = self.opaque(ty, counter.start);
        let bound = self.opaque(ty, counter.bound);
        let step = self.opaque(ty, counter.step);
        // A value that goes round.
        let sum_ty = self.gen.rng.pick(&SCALARS);
        let sum = self.value(sum_ty);
        let (header, body_block, exit) = (
            self.func.add_block(),
            self.func.add_block(),
            self.func.add_block(),
        );
        self.jump(header, &[start, sum]);
        let i = self.func.add_param(header, ty);
        let sum = self.func.add_param(header, sum_ty);
        let known = self.known.len();
        let leave = self.func.add_param(exit, sum_ty);
        self.known.push(KnownValue {
            value: i,
            ty,
            uniform,
        });
        self.known.push(KnownValue {
            value: sum,
            ty: sum_ty,
            uniform: false,
        });
        self.block = header;
        let next_of = |body: &mut Self| body.op(counter.op, &[i, step], ty);
        if counter.test_first {
            let goes_on = self.op(Op::ICmp(counter.cond), &[i, bound], Type::Bool);
            self.func.blocks[header].term =
                Terminator::Branch(goes_on, Edge::new(body_block), Edge::with(exit, [sum]));
        } else {
            self.jump(body_block, &[]);
        }
        self.block = body_block;
        let mut breaks = false;
        self.inside(false, |body| {
            body.nested();
            if body.divergent && body.one_in(3)
                || body.gen.kind == super::Kind::Plain && body.one_in(4)
            {
                // break
                breaks = true;
                let c = body.condition(false);
                let stay = body.func.add_block();
                body.func.blocks[body.block].term =
                    Terminator::Branch(c, Edge::with(exit, [sum]), Edge::new(stay));
                body.block = stay;
            }
            let new = body.value(sum_ty);
            let next = next_of(body);
            if counter.test_first {
                body.jump(header, &[next, new]);
            } else {
                let goes_on = body.op(Op::ICmp(counter.cond), &[next, bound], Type::Bool);
                body.func.blocks[body.block].term = Terminator::Branch(
                    goes_on,
                    Edge {
                        block: header,
                        args: [next, new].into_iter().collect(),
                    },
                    Edge::with(exit, [new]),
                );
            }
        });
        self.known.truncate(known);
        self.block = exit;
        self.known.push(KnownValue {
            value: leave,
            ty: sum_ty,
            uniform: false,
        });
    }

    /// Returns the constants of a counter that reaches its limit.
    fn counter(&mut self) -> Option<Counter> {
        for _ in 0..40 {
            let ty = self
                .gen
                .rng
                .pick(&[Type::I8, Type::I16, Type::I32, Type::I32, Type::I64]);
            let mask = ty.mask();
            let near = |rng: &mut super::Rng| {
                let small = rng.below(12) as u64;
                let at = rng.pick(&[0, 0, 0, mask, mask >> 1, (mask >> 1) + 1]);
                match rng.below(2) {
                    0 => at.wrapping_add(small) & mask,
                    _ => at.wrapping_sub(small) & mask,
                }
            };
            let rng = &mut self.gen.rng;
            let (start, bound) = (near(rng), near(rng));
            let step = match rng.below(6) {
                0 => mask,
                1 => mask - 1,
                2 => rng.below(60) as u64,
                3 => near(rng),
                _ => 1 + rng.below(4) as u64,
            };
            let counter = Counter {
                ty,
                start,
                bound,
                step,
                op: rng.pick(&[Op::IAdd, Op::IAdd, Op::IAdd, Op::ISub, Op::IMul, Op::LShr]),
                cond: rng.pick(&[
                    IntCond::Ne,
                    IntCond::Slt,
                    IntCond::Sle,
                    IntCond::Sgt,
                    IntCond::Sge,
                    IntCond::Ult,
                    IntCond::Ule,
                    IntCond::Ugt,
                    IntCond::Uge,
                ]),
                test_first: rng.one_in(2),
            };
            if counter.ends() {
                return Some(counter);
            }
        }
        None
    }

    /// Generates a loop whose exit depends on values, but that has a bound.
    pub fn bounded_loop(&mut self) {
        let fuel = self.alloca(4, 4);
        let most = 1 + self.below(12) as u64;
        let most = self.konst(Type::I32, most);
        self.put(fuel, &[most], 4);
        let (header, body_block, exit) = (
            self.func.add_block(),
            self.func.add_block(),
            self.func.add_block(),
        );
        self.jump(header, &[]);
        self.block = header;
        self.inside(true, |body| {
            let c = body.condition(false);
            let left = body.burn(fuel);
            let goes_on = body.op(Op::And, &[c, left], Type::Bool);
            body.func.blocks[body.block].term =
                Terminator::Branch(goes_on, Edge::new(body_block), Edge::new(exit));
            body.block = body_block;
            body.nested();
            if body.one_in(3) {
                // continue
                let c = body.condition(false);
                let stay = body.func.add_block();
                body.func.blocks[body.block].term =
                    Terminator::Branch(c, Edge::new(header), Edge::new(stay));
                body.block = stay;
                body.nested();
            }
            body.jump(header, &[]);
        });
        self.block = exit;
    }

    /// Decrements a counter. Returns a Bool: whether it was positive.
    fn burn(&mut self, fuel: Value) -> Value {
        let left = self.get(fuel, Type::I32, 4);
        let one = self.konst(Type::I32, 1);
        let less = self.op(Op::ISub, &[left, one], Type::I32);
        self.put(fuel, &[less], 4);
        let zero = self.konst(Type::I32, 0);
        self.op(Op::ICmp(IntCond::Sgt), &[left, zero], Type::Bool)
    }

    pub fn switch(&mut self) {
        let uniform = !self.divergent && self.one_in(2);
        let ty = self
            .gen
            .rng
            .pick(&[Type::I8, Type::I16, Type::I32, Type::I64]);
        let mut value = if uniform {
            self.uniform(ty)
        } else {
            self.value(ty)
        };
        if self.one_in(2) {
            let mask = self.konst(ty, 7);
            value = self.op(Op::And, &[value, mask], ty);
        }
        let count = 1 + self.below(4);
        let done = self.func.add_block();
        let arms: Vec<Block> = (0..=count).map(|_| self.func.add_block()).collect();
        let mut cases: Vec<(u64, Edge)> = Vec::new();
        let of = |body: &mut Self, i: usize| {
            // Some arms are shared, some cases lead straight out.
            let at = match body.below(6) {
                0 => done,
                1 => arms[body.below(arms.len())],
                _ => arms[i],
            };
            Edge::new(at)
        };
        for i in 0..count {
            let bits = match self.below(4) {
                0 => self.gen.rng.bits() & ty.mask(),
                _ => self.below(9) as u64,
            };
            if cases.iter().all(|(other, _)| *other != bits) {
                let target = of(self, i);
                cases.push((bits, target));
            }
        }
        let default = of(self, count);
        self.func.blocks[self.block].term = Terminator::Switch(value, cases, default);
        for (i, &arm) in arms.iter().enumerate() {
            self.block = arm;
            let next = arms.get(i + 1).copied();
            self.inside(!uniform, |body| {
                body.nested();
                // Through to the next one.
                let to = next.filter(|_| body.one_in(4)).unwrap_or(done);
                body.jump(to, &[]);
            });
        }
        self.block = done;
    }

    /// Generates blocks that jump anywhere among themselves, as long as there is fuel.
    pub fn tangle(&mut self) {
        let fuel = self.alloca(4, 4);
        let most = 4 + self.below(20) as u64;
        let most = self.konst(Type::I32, most);
        self.put(fuel, &[most], 4);
        let count = 2 + self.below(4);
        let done = self.func.add_block();
        let blocks: Vec<Block> = (0..count).map(|_| self.func.add_block()).collect();
        let c = self.condition(false);
        let (a, b) = (blocks[self.below(count)], blocks[self.below(count)]);
        self.func.blocks[self.block].term = Terminator::Branch(c, Edge::new(a), Edge::new(b));
        for &block in &blocks {
            self.block = block;
            self.inside(true, |body| {
                for _ in 0..1 + body.below(2) {
                    match body.below(3) {
                        0 => body.store_somewhere(),
                        _ => body.assign(),
                    }
                }
                let left = body.burn(fuel);
                let choose = body.func.add_block();
                body.func.blocks[body.block].term =
                    Terminator::Branch(left, Edge::new(choose), Edge::new(done));
                body.block = choose;
                let mut target = || Edge::new(blocks[body.gen.rng.below(count)]);
                let (a, b) = (target(), target());
                let c = body.condition(false);
                body.func.blocks[body.block].term = Terminator::Branch(c, a, b);
            });
        }
        self.block = done;
    }

    /// Generates a call of a function.
    pub fn call(&mut self) {
        let meet = !self.divergent && self.is_kernel;
        let callees: Vec<_> = self.gen.callees.clone();
        let fit = |c: &&super::Callee| (meet || !c.collective) && !c.endless;
        let fitting: Vec<_> = callees.iter().filter(fit).collect();
        if fitting.is_empty() {
            return self.assign();
        }
        let callee = fitting[self.below(fitting.len())].clone();
        // From several places, more often than not.
        self.call_of(&callee);
        if self.one_in(2) {
            self.assign();
            self.call_of(&callee);
        }
    }

    /// Generates code that is never executed, which the passes cannot know: it may call functions
    /// that do not return.
    pub fn never(&mut self) {
        // Who runs is one of some.
        let size = self.op(Op::Builtin(Builtin::GlobalSize(0)), &[], Type::I64);
        let none = self.konst(Type::I64, 0);
        let is_none = self.op(Op::ICmp(IntCond::Eq), &[size, none], Type::Bool);
        let (arm, done) = (self.func.add_block(), self.func.add_block());
        self.func.blocks[self.block].term =
            Terminator::Branch(is_none, Edge::new(arm), Edge::new(done));
        self.block = arm;
        self.inside(true, |body| {
            let callees = body.gen.callees.clone();
            let endless: Vec<_> = callees.iter().filter(|c| c.endless).collect();
            for _ in 0..1 + body.below(2) {
                if !endless.is_empty() && !body.one_in(4) {
                    let callee = endless[body.below(endless.len())];
                    body.call_of(callee);
                }
                body.nested();
                body.call();
                body.nested();
            }
            body.jump(done, &[]);
        });
        self.block = done;
    }

    /// Ends a function that does not return.
    pub fn go_round(&mut self) {
        let header = self.func.add_block();
        self.jump(header, &[]);
        self.block = header;
        self.inside(true, |body| {
            body.nested();
            body.jump(header, &[]);
        });
    }

    fn call_of(&mut self, callee: &super::Callee) {
        let mut args = Vec::new();
        for &ty in &callee.params {
            args.push(match ty {
                Type::Ptr(Space::Generic) => {
                    let at = match self.objects_for_calls() {
                        Some(at) => at,
                        None => self.by_value(),
                    };
                    match self.func.ty(at) {
                        Type::Ptr(Space::Generic) => at,
                        _ => self.op(Op::SpaceCast, &[at], Type::Ptr(Space::Generic)),
                    }
                }
                Type::Ptr(_) => match self.private_object() {
                    Some(at) if self.one_in(2) => at,
                    _ => self.by_value(),
                },
                ty => self.value(ty),
            });
        }
        let inst = self
            .func
            .append(self.block, Op::Call(callee.id), args, &callee.results);
        for (i, &ty) in callee.results.iter().enumerate() {
            let value = self.func.insts[inst].results[i];
            self.known.push(KnownValue {
                value,
                ty,
                uniform: false,
            });
        }
    }

    fn objects_for_calls(&mut self) -> Option<Value> {
        let fitting: Vec<Value> = self
            .objects
            .iter()
            .filter(|o| o.size >= 16 && o.align >= 4 && o.writable)
            .filter(|o| self.func.ty(o.at) != Type::Ptr(Space::Constant))
            .map(|o| o.at)
            .collect();
        (!fitting.is_empty()).then(|| self.gen.rng.pick(&fitting))
    }
}

/// The constants of a loop's counter.
struct Counter {
    ty: Type,
    start: u64,
    bound: u64,
    step: u64,
    op: Op,
    cond: IntCond,
    test_first: bool,
}

impl Counter {
    fn ends(&self) -> bool {
        let mut i = self.start;
        for round in 0..MOST_ITERATIONS {
            if (self.test_first || round > 0) && !int_compare(self.cond, self.ty, i, self.bound) {
                return true;
            }
            if self.op == Op::LShr && self.step >= self.ty.bits().into() {
                return false;
            }
            let types = [self.ty; 2];
            match fold(
                self.op,
                FpFlags::default(),
                &types,
                &[i, self.step],
                self.ty,
            ) {
                Some(next) => i = next,
                None => return false,
            }
        }
        false
    }
}
