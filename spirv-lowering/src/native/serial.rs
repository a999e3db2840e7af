//! Loops that run for one lane after the other.
//!
//! Where lanes leave a loop at different times and most of its memory accesses are gathers, vectors win nothing: a gather
//! takes as long as as many loads, and lanes that are done wait for the last one. Such a loop is written as code of one
//! lane, within a loop over those that run.

use super::classes::inside;
use super::emitter::{Context, Emitter};
use super::flow::is_slow;
use super::slots::{Lanes, Slot};
use super::strides::{Class, Reach};
use super::text::scalar;
use super::tree::{Chain, Item, Loop};
use crate::error::Result;
use crate::ir::entity::Value;
use crate::ir::function::Terminator;
use crate::ir::op::{Effect, Op};
use crate::ir::types::Type;
use rustc_hash::FxHashSet;

/// What passes between the lanes' loop and what is around it.
pub struct Plan {
    /// Values of before, which differ between lanes.
    ins: Vec<Value>,
    /// Values of the loop that are used after it.
    outs: Vec<Value>,
    /// No other loop is within, and few instructions.
    is_short: bool,
}

/// Gathers and scatters that a loop has at least.
const FEWEST: usize = 2;
/// For each of them as many other instructions at most.
const BESIDE: usize = 3;
/// Bytes of a vector, at most, of which lanes are chosen rather than stored: two registers, of the largest.
const MOST_CHOSEN: u32 = 128;
/// Numbers of hints begin here.
const FIRST_HINT: usize = 10;
/// Iterations that LLVM writes out one after the other. As many as it would take by itself cost short loops more, in what
/// is left over, than they save.
const UNROLLED: usize = 4;
/// Instructions of a loop, at most, for which that is worth its code.
const SHORT: usize = 24;

fn has_loop(chain: &Chain) -> bool {
    chain.items.iter().any(|item| match item {
        Item::Loop(_) => true,
        Item::Select(select) => select.arms.iter().any(|arm| has_loop(&arm.body)),
        _ => false,
    })
}

impl Emitter<'_> {
    /// How to write a loop so, if that is right and worth it.
    pub fn plan(&self, l: &Loop) -> Option<Plan> {
        let (func, tree, id) = (self.func, self.tree, l.construct);
        if self.is_alone() || !self.classes.is_leaking(id) || tree.edges_in[l.merge] == 0 {
            return None;
        }
        let within = |block| inside(tree, tree.home[block], id);
        let header = tree.constructs[id].block;
        let (mut own, mut ins) = (FxHashSet::<Value>::default(), Vec::<Value>::new());
        let (mut apart, mut beside) = (0, 0);
        let mut count = 0;
        for &block in func.layout.iter().filter(|&&block| within(block)) {
            own.extend(&func.blocks[block].params);
            count += func.blocks[block].insts.len();
            for &inst in &func.blocks[block].insts {
                let data = &func.insts[inst];
                own.extend(&data.results);
                ins.extend(&data.args);
                let uniform = data
                    .results
                    .iter()
                    .all(|&r| self.classes.of(r) == Class::Uniform);
                match data.op {
                    Op::Hw(_) if !uniform => return None,
                    Op::Load {
                        volatile: false, ..
                    }
                    | Op::Store {
                        volatile: false, ..
                    } => {
                        let values = match data.results.is_empty() {
                            true => data.args.get(1..)?,
                            false => &data.results,
                        };
                        let size: u32 = values.iter().map(|&v| func.ty(v).size()).sum();
                        match self.classes.reach(tree, *data.args.first()?, block) {
                            Reach::Same => beside += 1,
                            Reach::Strided(stride) if stride == i64::from(size) => beside += 1,
                            _ => apart += values.len(),
                        }
                    }
                    Op::Const(_) | Op::Undef | Op::PtrAdd | Op::ZExt | Op::SExt => {}
                    op if op.effect() != Effect::Pure => return None,
                    _ if uniform => {}
                    op if is_slow(op) => beside += 8,
                    _ => beside += 1,
                }
            }
            let term = &func.blocks[block].term;
            term.for_each_use(|value| ins.push(value));
            let leaves = |to| !within(to) && to != l.merge;
            if matches!(term, Terminator::Return(_) | Terminator::Unreachable)
                || term.targets().iter().any(|target| leaves(target.block))
            {
                return None;
            }
        }
        if apart < FEWEST || beside > BESIDE * apart {
            return None;
        }
        let mut seen = FxHashSet::default();
        ins.retain(|&value| {
            !own.contains(&value)
                && func.as_const(value).is_none()
                && self.classes.class(tree, value, header) != Class::Uniform
                && seen.insert(value)
        });
        let (mut outs, mut seen) = (Vec::new(), FxHashSet::default());
        let mut note = |value: Value| {
            if own.contains(&value) && func.as_const(value).is_none() && seen.insert(value) {
                outs.push(value);
            }
        };
        for &block in func.layout.iter().filter(|&&block| !within(block)) {
            for &inst in &func.blocks[block].insts {
                func.insts[inst].args.iter().for_each(|&value| note(value));
            }
            func.blocks[block].term.for_each_use(&mut note);
        }
        // Masks have no elements in memory.
        let fits = |&value: &Value| {
            func.ty(value) != Type::Bool && self.classes.of(value) == Class::Varying
        };
        let merge = &func.blocks[l.merge].params;
        (outs.iter().all(fits) && merge.iter().all(fits)).then_some(Plan {
            ins,
            outs,
            is_short: count <= SHORT && !has_loop(&l.body) && !has_loop(&l.latch),
        })
    }

    /// Writes a loop so.
    pub fn one_by_one(&mut self, l: &Loop, plan: &Plan, cx: Context) -> Result<Option<Context>> {
        let (func, n) = (self.func, self.lanes);
        let mut vectors = Vec::new();
        for &value in &plan.ins {
            let vector = self.vector(value, &cx)?;
            vectors.push((value, self.in_memory(func.ty(value), &vector)));
        }
        let header = self.tree.constructs[l.construct].block;
        let mut first = Vec::new();
        for &param in &func.blocks[header].params {
            let one = match self.take_param(param) {
                Lanes::Same(scalar) => Err(scalar),
                Lanes::Affine { all, .. } | Lanes::Each { all, .. } => {
                    Ok(self.in_memory(func.ty(param), &all))
                }
            };
            first.push((param, one));
        }
        let merge = &func.blocks[l.merge].params;
        // Where the lanes' results come together.
        let after: Vec<(Value, Slot)> = merge
            .iter()
            .map(|&param| (param, self.take_param_slot(param)))
            .collect();
        let left: Vec<(Value, Slot)> = plan
            .outs
            .iter()
            .map(|&value| (value, self.slot_of_each(func.ty(value))))
            .collect();

        let [head, body, end] = [(); 3].map(|()| self.text.label());
        let bits = self.mask_bits(&cx.mask);
        let rest = self.alloca(&format!("i{n}"));
        self.text
            .line(&format!("store i{n} {bits}, ptr {rest}, align 64"));
        self.text.jump(&head);
        self.text.begin(&head);
        let bits = self.text.def(&format!("load i{n}, ptr {rest}, align 64"));
        let more = self.text.def(&format!("icmp ne i{n} {bits}, 0"));
        self.text.branch(&more, &body, &end);
        self.text.begin(&body);
        self.declare(format!("declare i{n} @llvm.cttz.i{n}(i{n}, i1)"));
        let lane = self
            .text
            .def(&format!("call i{n} @llvm.cttz.i{n}(i{n} {bits}, i1 true)"));
        let lane = match n {
            64 => lane,
            _ => self.text.def(&format!("zext i{n} {lane} to i64")),
        };
        let less = self.text.def(&format!("sub i{n} {bits}, 1"));
        let less = self.text.def(&format!("and i{n} {less}, {bits}"));
        self.text
            .line(&format!("store i{n} {less}, ptr {rest}, align 64"));

        let mut inner = self.begin_alone(&lane, &cx);
        for (param, one) in first {
            let one = match one {
                Ok(vector) => self.of_lane(func.ty(param), &vector, &lane),
                Err(scalar) => scalar,
            };
            self.begin_param(param, &one);
        }
        let mut ins = Vec::new();
        for (value, vector) in vectors {
            ins.push((value, self.of_lane(func.ty(value), &vector, &lane)));
        }
        let replaced = self.replace(ins, &inner);
        self.hint = plan.is_short.then(|| (l.construct, self.loop_hint()));
        let done = self.repeat(l, inner.clone())?;
        self.hint = None;
        if let Some(done) = done {
            inner = done;
        }
        inner.block = l.merge;
        for (param, into) in &after {
            let from = self.take_param_slot(*param);
            let ty = func.ty(*param);
            let element = scalar(ty);
            let value = self
                .text
                .def(&format!("load {element}, ptr {}, align 64", from.address()));
            self.put(ty, &value, into, &lane);
        }
        for (value, into) in &left {
            let one = self.scalar(*value, &inner)?;
            self.put(func.ty(*value), &one, into, &lane);
        }
        self.text.jump(&head);
        self.restore(replaced);
        self.end_alone();
        for (param, slot) in after {
            self.set_param_slot(param, slot);
        }
        for (value, slot) in left {
            self.set_slot(value, slot);
        }
        self.text.begin(&end);
        Ok(Some(cx))
    }

    /// The name of what LLVM is told of a loop.
    pub fn loop_hint(&mut self) -> String {
        let count = format!("!1 = !{{!\"llvm.loop.unroll.count\", i32 {UNROLLED}}}");
        self.declare(count);
        // A name of its own: each adds a line.
        let name = format!("!{}", FIRST_HINT + self.declared.len());
        self.declare(format!("{name} = distinct !{{{name}, !1}}"));
        name
    }

    /// Puts the element of a lane where the vector of all lies. As a choice of lanes the vector stays in registers: what is
    /// stored in pieces and loaded as a whole waits until all pieces have left the processor's queue of stores.
    fn put(&mut self, ty: Type, value: &str, into: &Slot, lane: &str) {
        let into = into.address();
        let element = scalar(ty);
        if self.lanes * ty.size() > MOST_CHOSEN {
            let at = self
                .text
                .def(&format!("getelementptr {element}, ptr {into}, i64 {lane}"));
            self.text
                .line(&format!("store {element} {value}, ptr {at}"));
            return;
        }
        let (vec, numbers, mask) = (self.vec(ty), self.vec(Type::I32), self.mask_type());
        let lane = self.text.def(&format!("trunc i64 {lane} to i32"));
        let lane = self.splat(Type::I32, &lane);
        let own = self.lanes_const(Type::I32, |lane| lane);
        let is = self.text.def(&format!("icmp eq {numbers} {lane}, {own}"));
        let all = self.splat(ty, value);
        let old = self.text.def(&format!("load {vec}, ptr {into}, align 64"));
        let new = self
            .text
            .def(&format!("select {mask} {is}, {vec} {all}, {vec} {old}"));
        self.store_slot(into, &vec, &new, &None);
    }
}

#[cfg(test)]
mod tests {
    use crate::native::text_of;

    /// A row of a sparse matrix, of integers, without its factors.
    fn row(ty: &str) -> String {
        format!(
            "func fn0 \"f\" () -> () {{
block0:
  v0 = hw.local_invocation_id.0 : i32
  v1 = const 0 : {ty}
  v2 = const 1 : i32
  v3 = const 2 : i64
  v4 = arg_load.0 : i64
  v5 = int_to_ptr v4 : ptr.global
  v6 = zext v0 : i64
  v7 = shl v6, v3 : i64
  v8 = ptr_add v5, v7 : ptr.global
  v9 = load.align4 v8 : i32
  jump block1(v9, v1)
block1(v10: i32, v11: {ty}):
  v12 = zext v10 : i64
  v13 = shl v12, v3 : i64
  v14 = ptr_add v5, v13 : ptr.global
  v15 = load.align4 v14 : i32
  v16 = zext v15 : i64
  v17 = shl v16, v3 : i64
  v18 = ptr_add v5, v17 : ptr.global
  v19 = load.align4 v18 : {ty}
  v20 = iadd v11, v19 : {ty}
  v21 = iadd v10, v2 : i32
  v22 = icmp.ult v21, v15 : bool
  br v22, block1(v21, v20), block2(v20)
block2(v23: {ty}):
  store.align4 v8, v23
  return
}}
"
        )
    }

    #[test]
    fn results_of_lanes_are_chosen_where_two_registers_hold_them() {
        for (ty, lanes, chosen) in [("i32", 16, true), ("i64", 16, true), ("i64", 32, false)] {
            let text = text_of(&row(ty), lanes);
            let choice = format!("<{lanes} x {ty}> %");
            let found = text
                .lines()
                .any(|line| line.contains("select <") && line.contains(&choice));
            assert_eq!(found, chosen, "{text}");
            // Short, and with no loop within: LLVM is told how often to write it out.
            assert_eq!(text.matches(", !llvm.loop !").count(), 1, "{text}");
            assert!(
                text.contains("!1 = !{!\"llvm.loop.unroll.count\", i32 4}"),
                "{text}"
            );
        }
    }
}
