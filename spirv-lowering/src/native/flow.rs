//! Control flow with masks: walks the tree of a region and writes its blocks.
//!
//! The mask says which lanes run; None: all. Code runs only while some lane does, but for arms so small that skipping them
//! costs more than running them without lanes.

use super::emitter::{Context, Emitter, Mask, Open};
use super::strides::Class;
use super::text::{constant, scalar};
use super::tree::{Chain, ConstructId, Edge, Item, JumpTarget, JumpTargetKind, Loop, Select};
use crate::error::{LowerError, Result};
use crate::ir::entity::{Block, Value};
use crate::ir::function::Terminator;
use crate::ir::op::{Effect, Op};
use crate::ir::types::Type;
use std::fmt::Write as _;

/// Instructions that an arm may have to be run without asking whether there are lanes for it.
const SMALL: usize = 6;
/// Values that no lane has, which may be merged into others without asking.
const MOST_BLENDS: usize = 2;

fn at(kind: JumpTargetKind) -> usize {
    match kind {
        JumpTargetKind::Merge => 0,
        JumpTargetKind::Continue => 1,
        JumpTargetKind::Header => 2,
    }
}

impl Emitter<'_> {
    /// Writes the whole region; control is at `mask` when it begins and at `done` when it ends.
    pub fn region(&mut self, mask: Mask, done: &str) -> Result<()> {
        let Some(entry) = self.func.entry() else {
            return Err(LowerError::internal("a region without blocks"));
        };
        self.done = done.to_owned();
        let cx = Context {
            mask,
            some: true,
            chain: 0,
            end: done.to_owned(),
            block: entry,
        };
        let tree = self.tree;
        self.chain(&tree.root, cx)
    }

    fn chain(&mut self, chain: &Chain, mut cx: Context) -> Result<()> {
        for (i, item) in chain.items.iter().enumerate() {
            match item {
                Item::Code(block) => {
                    cx.block = *block;
                    self.read_params(*block, &cx);
                    self.code(*block, &mut cx)?;
                }
                Item::Edge(edge) => {
                    cx.block = edge.from;
                    self.edge(edge, &cx)?;
                    if edge.place.is_some() {
                        return Ok(());
                    }
                }
                Item::Return(block) => {
                    cx.block = *block;
                    self.leave(*block, &cx)?;
                    return Ok(());
                }
                Item::Unreachable => {
                    let end = cx.end.clone();
                    self.text.jump(&end);
                    return Ok(());
                }
                Item::Select(select) => {
                    let leaves = self.just_leaves(&chain.items[i + 1..]);
                    match self.select(select, cx, leaves)? {
                        Some(next) => cx = next,
                        None => return Ok(()),
                    }
                }
                Item::Loop(l) => {
                    let next = match self.plan(l) {
                        Some(plan) => self.one_by_one(l, &plan, cx)?,
                        None => self.repeat(l, cx)?,
                    };
                    match next {
                        Some(next) => cx = next,
                        None => return Ok(()),
                    }
                }
            }
        }
        // The last arm of a block without a way on.
        let end = cx.end.clone();
        self.text.jump(&end);
        Ok(())
    }

    fn code(&mut self, block: Block, cx: &mut Context) -> Result<()> {
        let func = self.func;
        for &inst in &func.blocks[block].insts {
            self.instruction(inst, cx)?;
        }
        Ok(())
    }

    fn edge(&mut self, edge: &Edge, cx: &Context) -> Result<()> {
        self.assign(edge, cx)?;
        let Some(JumpTarget { construct, kind }) = edge.place else {
            return Ok(());
        };
        let open = self.open[construct].clone();
        if kind == JumpTargetKind::Header {
            if let Some(running) = &open.running {
                let mask = self.mask_vector(&cx.mask);
                let ty = self.mask_type();
                self.store_slot(running, &ty, &mask, &None);
            }
        } else if let Some(slot) = &open.arrivals[at(kind)] {
            let ty = self.mask_type();
            let old = self.text.def(&format!("load {ty}, ptr {slot}, align 64"));
            let mask = self.mask_vector(&cx.mask);
            let sum = self.text.def(&format!("or {ty} {old}, {mask}"));
            self.store_slot(slot, &ty, &sum, &None);
            if let Some(flag) = open
                .some_continue
                .filter(|_| kind == JumpTargetKind::Continue)
            {
                let some = if cx.some {
                    "true".to_owned()
                } else {
                    let any = self.any(&mask);
                    let old = self.text.def(&format!("load i1, ptr {flag}, align 64"));
                    self.text.def(&format!("or i1 {old}, {any}"))
                };
                self.store_slot(&flag, "i1", &some, &None);
            }
        }
        if self.classes.is_soft(edge) {
            self.text.jump(&cx.end);
        } else {
            let label = open.labels[at(kind)]
                .clone()
                .ok_or_else(|| LowerError::internal("an edge to a place that is closed"))?;
            match &self.hint {
                Some((of, hint)) if kind == JumpTargetKind::Header && *of == construct => self
                    .text
                    .line(&format!("br label %{label}, !llvm.loop {hint}")),
                _ => self.text.jump(&label),
            }
        }
        Ok(())
    }

    fn leave(&mut self, block: Block, cx: &Context) -> Result<()> {
        if let (Terminator::Return(values), Some(next)) =
            (&self.func.blocks[block].term, self.next.clone())
        {
            if let Some(&value) = values.first() {
                let scalar = self.scalar(value, cx)?;
                self.text
                    .line(&format!("store i32 {scalar}, ptr {next}, align 4"));
            }
        }
        if self.classes.is_soft_return(block) {
            self.text.jump(&cx.end);
        } else {
            let done = self.done.clone();
            self.text.jump(&done);
        }
        Ok(())
    }

    /// A slot for lanes, empty.
    fn lanes_slot(&mut self) -> String {
        let ty = self.mask_type();
        let slot = self.alloca(&ty);
        self.store_slot(&slot, &ty, "zeroinitializer", &None);
        slot
    }

    /// Begins the block at a label with the lanes that have come there. `gathered`: the slot that counts them, or all of
    /// `mask` are there. `leaves`: see [`Self::just_leaves`].
    fn meet(&mut self, label: &str, gathered: Option<&str>, leaves: bool, cx: &Context) -> Context {
        self.text.begin(label);
        let mut next = cx.clone();
        if let Some(slot) = gathered {
            let ty = self.mask_type();
            let mask = self.text.def(&format!("load {ty}, ptr {slot}, align 64"));
            if leaves {
                next.mask = Some(mask);
                next.some = false;
                return next;
            }
            let any = self.any(&mask);
            let on = self.text.label();
            self.text.branch(&any, &on, &cx.end);
            self.text.begin(&on);
            next.mask = Some(mask);
            next.some = true;
        }
        next
    }

    /// Does a chain go on with next to nothing, and then lanes leave for a place where others wait? That is quicker done
    /// for no lane than asked for each time: in a loop, a branch that is told wrong whenever some lane leaves.
    fn just_leaves(&self, items: &[Item]) -> bool {
        let Some((Item::Edge(last), before)) = items.split_last() else {
            return false;
        };
        let params = &self.func.blocks[last.to].params;
        // Values that all lanes have in common would be those of no lane.
        last.place.is_some_and(|p| p.kind == JumpTargetKind::Merge)
            && self.classes.is_soft(last)
            && params.len() <= MOST_BLENDS
            && params
                .iter()
                .all(|&param| self.classes.of(param) == Class::Varying)
            && before
                .iter()
                .all(|item| !matches!(item, Item::Edge(edge) if edge.place.is_some()))
            && self.are_small(before)
    }

    fn select(
        &mut self,
        select: &Select,
        mut cx: Context,
        leaves: bool,
    ) -> Result<Option<Context>> {
        cx.block = select.block;
        let id = select.construct;
        let merge = self.text.label();
        let gathers = self.classes.is_lossy(id) && select.merge.is_some();
        let arrival = gathers.then(|| self.lanes_slot());
        self.open[id] = Open {
            labels: [Some(merge.clone()), None, None],
            arrivals: [arrival.clone(), None, None],
            ..Open::default()
        };
        // Lanes that leave go on with what comes after, or with nothing.
        let end = if select.merge.is_some() {
            merge.clone()
        } else {
            cx.end.clone()
        };
        if self.classes.is_divergent(id) {
            self.parted(select, &cx, &end)?;
        } else {
            self.together(select, &cx, &end)?;
        }
        if select.merge.is_none() {
            return Ok(None);
        }
        Ok(Some(self.meet(&merge, arrival.as_deref(), leaves, &cx)))
    }

    /// All lanes take the same arm.
    fn together(&mut self, select: &Select, cx: &Context, end: &str) -> Result<()> {
        let func = self.func;
        let labels: Vec<String> = select.arms.iter().map(|_| self.text.label()).collect();
        // The label of each target.
        let mut to = vec![""; func.blocks[select.block].term.targets().len()];
        for (arm, label) in select.arms.iter().zip(&labels) {
            arm.targets.iter().for_each(|&target| to[target] = label);
        }
        match &func.blocks[select.block].term {
            Terminator::Branch(cond, ..) => {
                let cond = self.scalar(*cond, cx)?;
                self.text.branch(&cond, to[0], to[1]);
            }
            Terminator::Switch(value, cases, _) => {
                let ty = func.ty(*value);
                let scalar_type = scalar(ty);
                let on = self.scalar(*value, cx)?;
                let default = to[cases.len()];
                let mut line = format!("switch {scalar_type} {on}, label %{default} [");
                for ((bits, _), label) in cases.iter().zip(&to) {
                    let _ = write!(
                        line,
                        " {scalar_type} {}, label %{label}",
                        constant(ty, *bits)
                    );
                }
                line.push_str(" ]");
                self.text.line(&line);
            }
            _ => return Err(LowerError::internal("a selection without a branch")),
        }
        for (arm, label) in select.arms.iter().zip(&labels) {
            self.text.begin(label);
            let chain = self.places.new_chain(cx.chain);
            let inner = Context {
                chain,
                end: end.to_owned(),
                ..cx.clone()
            };
            self.chain(&arm.body, inner)?;
        }
        Ok(())
    }

    /// Each lane takes its own arm, one arm after the other.
    fn parted(&mut self, select: &Select, cx: &Context, end: &str) -> Result<()> {
        let func = self.func;
        let ty = self.mask_type();
        let mut masks = Vec::new();
        match &func.blocks[select.block].term {
            _ if select.arms.len() == 1 => masks.push(self.mask_vector(&cx.mask)),
            Terminator::Branch(cond, ..) => {
                let wide = self.is_wide_comparison(*cond);
                let cond = self.vector(*cond, cx)?;
                let taken = self.and(&cx.mask, &cond);
                // What is left of the mask, or lanes for which the opposite holds: LLVM compares a second time for that.
                // Comparing is as quick as any operation on masks, but not where it takes several registers.
                let not = if wide {
                    let mask = self.mask_vector(&cx.mask);
                    self.text.def(&format!("xor {ty} {mask}, {taken}"))
                } else {
                    let all = self.splat_const(Type::Bool, 1);
                    let not = self.text.def(&format!("xor {ty} {cond}, {all}"));
                    self.and(&cx.mask, &not)
                };
                masks.push(taken);
                masks.push(not);
            }
            Terminator::Switch(value, cases, _) => {
                let value_type = func.ty(*value);
                let vec = self.vec(value_type);
                let on = self.vector(*value, cx)?;
                let all = self.splat_const(Type::Bool, 1);
                let mut rest = self.mask_vector(&cx.mask);
                for arm in &select.arms {
                    // The default's lanes are those of no other arm.
                    if arm.targets.contains(&cases.len()) {
                        masks.push(String::new());
                        continue;
                    }
                    let mut taken: Option<String> = None;
                    for &target in &arm.targets {
                        let case = self.splat_const(value_type, cases[target].0);
                        let is = self.text.def(&format!("icmp eq {vec} {on}, {case}"));
                        let not = self.text.def(&format!("xor {ty} {is}, {all}"));
                        rest = self.text.def(&format!("and {ty} {rest}, {not}"));
                        taken = Some(match taken {
                            Some(before) => self.text.def(&format!("or {ty} {before}, {is}")),
                            None => is,
                        });
                    }
                    masks.push(self.and(&cx.mask, &taken.unwrap_or_default()));
                }
                for mask in masks.iter_mut().filter(|mask| mask.is_empty()) {
                    mask.clone_from(&rest);
                }
            }
            _ => return Err(LowerError::internal("a selection without a branch")),
        }
        let count = select.arms.len();
        for (i, (arm, mask)) in select.arms.iter().zip(masks).enumerate() {
            let after = if i + 1 == count {
                end.to_owned()
            } else {
                self.text.label()
            };
            let chain = self.places.new_chain(cx.chain);
            let small = self.are_small(&arm.body.items);
            let inner = Context {
                mask: Some(mask.clone()),
                some: !small,
                chain,
                end: after.clone(),
                ..cx.clone()
            };
            if !small {
                let any = self.any(&mask);
                let label = self.text.label();
                self.text.branch(&any, &label, &after);
                self.text.begin(&label);
            }
            self.chain(&arm.body, inner)?;
            if i + 1 < count {
                self.text.begin(&after);
            }
        }
        Ok(())
    }

    /// Is it a comparison of numbers of more than 32 bits? Packs are as wide as vectors of those are.
    fn is_wide_comparison(&self, cond: Value) -> bool {
        let Some(inst) = self.func.def_inst(cond) else {
            return false;
        };
        let data = &self.func.insts[inst];
        matches!(data.op, Op::ICmp(_) | Op::FCmp(_))
            && data
                .args
                .first()
                .is_some_and(|&arg| self.func.ty(arg).size() > 4)
    }

    /// Nothing in it needs a lane to run, and it is quicker run than skipped.
    fn are_small(&self, items: &[Item]) -> bool {
        let mut count = 0;
        for item in items {
            match item {
                Item::Code(block) => {
                    for &inst in &self.func.blocks[*block].insts {
                        let op = self.func.insts[inst].op;
                        if op.effect() != Effect::Pure || is_slow(op) {
                            return false;
                        }
                        count += usize::from(!matches!(op, Op::Const(_)));
                    }
                }
                // Lanes that leave a loop do not come back: worth asking.
                Item::Edge(edge) => {
                    if edge.place.is_some_and(|p| p.kind == JumpTargetKind::Header) {
                        return false;
                    }
                }
                _ => return false,
            }
        }
        count <= SMALL
    }

    /// At the head of a loop: has the parameters of blocks within it be anything. Each iteration gives them anew, before they
    /// are read; what they were would be kept in registers from one iteration to the next.
    fn forget_params(&mut self, id: ConstructId) {
        let (func, tree) = (self.func, self.tree);
        for &block in &func.layout {
            let mut around = tree.home[block];
            while let Some(other) = around.filter(|&other| !tree.constructs[other].is_loop) {
                around = tree.constructs[other].parent;
            }
            if around != Some(id) || block == tree.constructs[id].block || tree.edges_in[block] == 0
            {
                continue;
            }
            for &param in &func.blocks[block].params {
                self.forget_param(param);
            }
        }
    }

    /// Writes a loop.
    pub fn repeat(&mut self, l: &Loop, cx: Context) -> Result<Option<Context>> {
        let id = l.construct;
        // Lanes that go on wait for those that leave at the same branch.
        let gather = self.classes.goes_back_softly(id);
        let leaks = self.classes.is_leaking(id) || gather;
        let header = self.text.label();
        let cont = self.text.label();
        let merge = self.text.label();
        let ty = self.mask_type();
        let reached = self.tree.edges_in[l.merge] > 0;
        let gathered = (self.classes.is_lossy(id) && reached).then(|| self.lanes_slot());
        let running = leaks.then(|| {
            let slot = self.alloca(&ty);
            let mask = self.mask_vector(&cx.mask);
            self.store_slot(&slot, &ty, &mask, &None);
            slot
        });
        let continuing = leaks.then(|| self.alloca(&ty));
        let some_continue = leaks.then(|| self.alloca("i1"));
        self.open[id] = Open {
            labels: [
                Some(merge.clone()),
                Some(cont.clone()),
                Some(header.clone()),
            ],
            arrivals: [gathered.clone(), continuing.clone(), None],
            some_continue: some_continue.clone(),
            running: running.clone(),
        };
        self.text.jump(&header);
        self.text.begin(&header);
        // What is within does not dominate what comes after: the text may leave from anywhere.
        let chain = self.places.new_chain(cx.chain);
        let mut inner = cx.clone();
        inner.chain = chain;
        inner.end = cont.clone();
        if let Some(running) = &running {
            let mask = self
                .text
                .def(&format!("load {ty}, ptr {running}, align 64"));
            inner.mask = Some(mask);
        }
        if let (Some(continuing), Some(some)) = (&continuing, &some_continue) {
            self.store_slot(continuing, &ty, "zeroinitializer", &None);
            self.store_slot(some, "i1", "false", &None);
            self.forget_params(id);
        }
        self.chain(&l.body, inner.clone())?;
        self.text.begin(&cont);
        let gone = if reached {
            merge.clone()
        } else {
            cx.end.clone()
        };
        let mut latch = inner;
        latch.end = gone.clone();
        // The text may come here from anywhere in the body.
        latch.chain = self.places.new_chain(cx.chain);
        if let (Some(continuing), Some(some)) = (&continuing, &some_continue) {
            let mask = self
                .text
                .def(&format!("load {ty}, ptr {continuing}, align 64"));
            let any = self.text.def(&format!("load i1, ptr {some}, align 64"));
            let on = self.text.label();
            self.text.branch(&any, &on, &gone);
            self.text.begin(&on);
            latch.mask = Some(mask);
            latch.some = true;
        }
        if l.latch.items.is_empty() {
            self.text.jump(&gone);
        } else if let Some(running) = running.filter(|_| gather) {
            let again = self.text.label();
            latch.end = again.clone();
            self.store_slot(&running, &ty, "zeroinitializer", &None);
            self.chain(&l.latch, latch)?;
            self.text.begin(&again);
            let mask = self
                .text
                .def(&format!("load {ty}, ptr {running}, align 64"));
            let any = self.any(&mask);
            self.text.branch(&any, &header, &gone);
        } else {
            self.chain(&l.latch, latch)?;
        }
        if !reached {
            return Ok(None);
        }
        Ok(Some(self.meet(&merge, gathered.as_deref(), false, &cx)))
    }
}

/// Takes so long that it is worth a branch to leave it out.
pub fn is_slow(op: Op) -> bool {
    matches!(
        op,
        Op::SDiv | Op::UDiv | Op::SRem | Op::URem | Op::FRem | Op::FDiv | Op::FSqrt
    )
}

#[cfg(test)]
mod tests {
    use crate::native::text_of;

    /// A loop that each work-item leaves when its number has become small, with how often that took.
    fn leaving(ty: &str) -> String {
        let begin = match ty {
            "i64" => "zext v0 : i64",
            _ => "imul v0, v0 : i32",
        };
        LEAVING.replace("NUMBER", ty).replace("BEGIN", begin)
    }

    const LEAVING: &str = "func fn0 \"f\" () -> () {
block0:
  v0 = hw.local_invocation_id.0 : i32
  v1 = const 0 : i32
  v2 = const 1 : i32
  v3 = const 3 : NUMBER
  v18 = BEGIN
  v4 = arg_load.0 : i64
  v5 = int_to_ptr v4 : ptr.global
  v6 = arg_load.8 : i32
  jump block1(v18, v1)
block1(v7: NUMBER, v8: i32):
  v9 = udiv v7, v3 : NUMBER
  v10 = icmp.ult v9, v3 : bool
  br v10, block3(v8), block2
block2:
  v11 = iadd v8, v2 : i32
  v12 = icmp.eq v11, v6 : bool
  br v12, block3(v6), block1(v9, v11)
block3(v13: i32):
  v14 = zext v0 : i64
  v15 = const 2 : i64
  v16 = shl v14, v15 : i64
  v17 = ptr_add v5, v16 : ptr.global
  store.align4 v17, v13
  return
}
";

    #[test]
    fn a_loop_asks_once_an_iteration_whether_lanes_are_left() {
        for ty in ["i32", "i64"] {
            let text = text_of(&leaving(ty), 16);
            assert_eq!(text.matches("icmp ne i16").count(), 1, "{text}");
            assert_eq!(text.matches("store i1 true").count(), 1, "{text}");
        }
    }

    #[test]
    fn wide_numbers_are_compared_once() {
        let opposite = |ty| text_of(&leaving(ty), 16).contains(", <i1 true, i1 true,");
        assert!(!opposite("i64"));
        assert!(opposite("i32"));
    }

    /// Cases with one target are one arm: its code stands there once, however many labels it has, at any depth.
    #[test]
    fn cases_with_one_target_are_written_once() {
        let stores = |levels: u32, ids: &str| {
            let mut text = format!(
                "func fn0 \"f\" () -> () {{
block0:
  v0 = {ids} : i32
  v1 = arg_load.0 : i64
  v2 = int_to_ptr v1 : ptr.global
  jump block1
"
            );
            for level in 1..=levels {
                let (next, last) = (level + 1, levels + 1);
                text += &format!(
                    "block{level}:
  switch v0, [0: block{next}, 3: block{next}, 7: block{next}, 9: block{last}], block{last}
"
                );
            }
            text += &format!(
                "block{}:\n  store.align4 v2, v0\n  return\n}}\n",
                levels + 1
            );
            text_of(&text, 16).matches("store i32 %").count()
        };
        for ids in ["hw.local_invocation_id.0", "arg_load.8"] {
            assert_eq!([1, 2, 6].map(|levels| stores(levels, ids)), [1; 3]);
        }
    }

    #[test]
    fn values_of_an_iteration_are_forgotten_in_the_next() {
        let text = text_of(&leaving("i64"), 16);
        assert!(text.contains("store <16 x i64> undef"), "{text}");
        assert!(text.contains("store i32 undef"), "{text}");
    }
}
