//! Loops that run for one lane after the other.
//!
//! Where lanes leave a loop at different times and most of its memory accesses are gathers, vectors win nothing: a gather
//! takes as long as as many loads, and lanes that are done wait for the last one. Such a loop is written as code of one
//! lane, within a loop over those that run.

use super::flow::is_slow;
use super::slots::{Lanes, Slot};
use super::{Context, Emitter};
use crate::error::Result;
use crate::ir::entity::Value;
use crate::ir::function::Terminator;
use crate::ir::op::{Effect, IntCond, Op};
use crate::ir::types::Type;
use crate::native::classes::inside;
use crate::native::llvm::{Cast, LlvmType, LoopHint, Operand};
use crate::native::strides::{Class, Reach};
use crate::native::tree::{Chain, Item, LoopConstruct};
use rustc_hash::FxHashSet;

/// The values that pass between the lanes' loop and what is around it.
pub struct SerialPlan {
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
    /// Returns how to emit a loop for one lane after the other. Returns `None` where that is
    /// impossible or does not pay.
    pub(super) fn plan(&self, l: &LoopConstruct) -> Option<SerialPlan> {
        let (func, tree, id) = (self.func, self.tree, l.construct);
        if self.is_alone() || !self.classes.is_leaking(id) || tree.edges_in[l.merge] == 0 {
            return None;
        }
        let within = |block| inside(tree, tree.home[block], id);
        let header = tree.constructs[id].block;
        let (mut own, mut ins) = (FxHashSet::<Value>::default(), Vec::<Value>::new());
        let (mut scattered, mut beside) = (0, 0);
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
                            _ => scattered += values.len(),
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
        if scattered < FEWEST || beside > BESIDE * scattered {
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
        (outs.iter().all(fits) && merge.iter().all(fits)).then_some(SerialPlan {
            ins,
            outs,
            is_short: count <= SHORT && !has_loop(&l.body) && !has_loop(&l.latch),
        })
    }

    /// Emits a loop for one lane after the other.
    pub(super) fn one_by_one(
        &mut self,
        l: &LoopConstruct,
        plan: &SerialPlan,
        cx: Context,
    ) -> Result<Option<Context>> {
        let func = self.func;
        let mut vectors = Vec::new();
        for &value in &plan.ins {
            let vector = self.vector(value, &cx)?;
            vectors.push((value, self.in_memory(vector)));
        }
        let header = self.tree.constructs[l.construct].block;
        let mut first = Vec::new();
        for &param in &func.blocks[header].params {
            let one = match self.take_param(param) {
                Lanes::Same(scalar) => Err(scalar),
                Lanes::Affine { all, .. } | Lanes::Each { all, .. } => Ok(self.in_memory(all)),
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
            .map(|&value| (value, self.slot_of_each(self.ty(value))))
            .collect();

        let [head, body, end] = [(); 3].map(|()| self.llvm.label());
        let bits = self.mask_bits(&cx.mask);
        let ty = bits.ty();
        let rest = self.llvm.slot(ty);
        self.llvm.put(&bits, &rest);
        self.llvm.jump(head);
        self.llvm.begin(head);
        let bits = self.llvm.get(&rest);
        let none = Operand::constant(ty, 0);
        let more = self.llvm.icmp(IntCond::Ne, &bits, &none);
        self.llvm.branch(&more, body, end);
        self.llvm.begin(body);
        let lane = self.first_of_bits(&bits);
        let less = self.llvm.sub(&bits, &Operand::constant(ty, 1));
        let less = self.llvm.and(&less, &bits);
        self.llvm.put(&less, &rest);

        let mut inner = self.begin_alone(&lane, &cx);
        for (param, one) in first {
            let one = match one {
                Ok(vector) => self.of_lane(&vector, &lane),
                Err(scalar) => scalar,
            };
            self.begin_param(param, &one);
        }
        let mut ins = Vec::new();
        for (value, vector) in vectors {
            ins.push((value, self.of_lane(&vector, &lane)));
        }
        let replaced = self.replace(ins, &inner);
        let hint = plan.is_short.then(|| (l.construct, self.loop_hint()));
        self.flow.set_hint(hint);
        let done = self.repeat(l, inner.clone())?;
        self.flow.set_hint(None);
        if let Some(done) = done {
            inner = done;
        }
        inner.block = l.merge;
        for (param, into) in &after {
            let from = self.take_param_slot(*param);
            let value = self.llvm.get(from.place());
            self.put(&value, into, &lane);
        }
        for (value, into) in &left {
            let one = self.scalar(*value, &inner)?;
            self.put(&one, into, &lane);
        }
        self.llvm.jump(head);
        self.restore(replaced);
        self.end_alone();
        for (param, slot) in after {
            self.set_param_slot(param, slot);
        }
        for (value, slot) in left {
            self.set_slot(value, slot);
        }
        self.llvm.begin(end);
        Ok(Some(cx))
    }

    /// Returns the metadata for a short loop.
    pub(super) fn loop_hint(&mut self) -> LoopHint {
        self.llvm.unrolled(UNROLLED)
    }

    /// Inserts the element of a lane into a vector in a slot. Small vectors stay in registers, by a
    /// selection of lanes: a load of a whole vector that was stored in pieces would wait until the
    /// processor has written all of them.
    fn put(&mut self, value: &Operand, into: &Slot, lane: &Operand) {
        let into = into.place();
        if into.ty().bytes() > MOST_CHOSEN {
            return self.llvm.put_element(value, into, lane);
        }
        let lane = self.llvm.cast(Cast::Trunc, lane, LlvmType::I32);
        let lane = self.splat(&lane);
        let own = self.lane_numbers();
        let is = self.llvm.icmp(IntCond::Eq, &lane, &own);
        let all = self.splat(value);
        let old = self.llvm.get(into);
        let new = self.llvm.select(&is, &all, &old);
        self.llvm.put(&new, into);
    }
}

#[cfg(test)]
mod tests {
    use crate::native::text_of;

    /// Returns a row of a sparse matrix, of integers, without its factors.
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
            // Short, and with no loop within: LLVM's hint says how often to write it out.
            assert_eq!(text.matches(", !llvm.loop !").count(), 1, "{text}");
            assert!(
                text.contains("!1 = !{!\"llvm.loop.unroll.count\", i32 4}"),
                "{text}"
            );
        }
    }
}
