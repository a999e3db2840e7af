//! Control flow with masks: walks the tree of a region and writes its blocks.
//!
//! The mask says which lanes run; None: all. Code runs only while some lane does, but for arms so small that skipping them
//! costs more than running them without lanes.

use super::{Context, Emitter, Mask};
use crate::error::{LowerError, Result};
use crate::ir::entity::{Block, Value};
use crate::ir::function::Terminator;
use crate::ir::op::{Effect, IntCond, Op};
use crate::native::llvm::{Label, LlvmType, LoopHint, Operand, StackSlot};
use crate::native::strides::Class;
use crate::native::tree::{
    Chain, ConstructId, Edge, Item, JumpTarget, JumpTargetKind, LoopConstruct, Select,
};

/// Instructions that an arm may have to be run without asking whether there are lanes for it.
const SMALL: usize = 6;
/// Values that no lane has, which may be merged into others without asking.
const MOST_BLENDS: usize = 2;

/// The labels and slots of a construct that is open.
#[derive(Clone, Default)]
struct Open {
    labels: [Option<Label>; 3],
    /// Slots that gather the lanes which come to the merge block and to the continue target.
    arrivals: [Option<StackSlot>; 3],
    /// The slot that says whether some lane has come to the continue target of a loop.
    some_continue: Option<StackSlot>,
    /// The slot with the lanes that run the next iteration.
    running: Option<StackSlot>,
}

/// Where control goes.
pub struct Flow {
    open: Vec<Open>,
    /// The slot for the number of the next region.
    next: Option<StackSlot>,
    /// The end of a pack.
    done: Option<Label>,
    /// A loop, and the metadata of its back edge.
    hint: Option<(ConstructId, LoopHint)>,
}

impl Flow {
    pub fn new(constructs: usize) -> Self {
        Self {
            open: vec![Open::default(); constructs],
            next: None,
            done: None,
            hint: None,
        }
    }

    /// Sets the metadata of a loop that is written next.
    pub fn set_hint(&mut self, hint: Option<(ConstructId, LoopHint)>) {
        self.hint = hint;
    }
}

fn at(kind: JumpTargetKind) -> usize {
    match kind {
        JumpTargetKind::Merge => 0,
        JumpTargetKind::Continue => 1,
        JumpTargetKind::Header => 2,
    }
}

impl Emitter<'_> {
    /// Emits the whole region. The lanes of `mask` begin it, and control reaches `done` when it
    /// ends. `next`: the slot for the number of the region that follows.
    pub(super) fn region(
        &mut self,
        mask: Mask,
        done: Label,
        next: Option<StackSlot>,
    ) -> Result<()> {
        let Some(entry) = self.func.entry() else {
            return Err(LowerError::internal("a region without blocks"));
        };
        self.flow.done = Some(done);
        self.flow.next = next;
        let cx = Context {
            mask,
            some: true,
            chain: 0,
            end: done,
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
                    self.code(*block, &cx)?;
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
                    self.llvm.jump(cx.end);
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
        self.llvm.jump(cx.end);
        Ok(())
    }

    fn code(&mut self, block: Block, cx: &Context) -> Result<()> {
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
        let open = self.flow.open[construct].clone();
        if kind == JumpTargetKind::Header {
            if let Some(running) = &open.running {
                let mask = self.mask_vector(&cx.mask);
                self.llvm.put(&mask, running);
            }
        } else if let Some(slot) = &open.arrivals[at(kind)] {
            let old = self.llvm.get(slot);
            let mask = self.mask_vector(&cx.mask);
            let sum = self.llvm.or(&old, &mask);
            self.llvm.put(&sum, slot);
            if let Some(flag) = open
                .some_continue
                .filter(|_| kind == JumpTargetKind::Continue)
            {
                let some = if cx.some {
                    Operand::bit(true)
                } else {
                    let any = self.any(&mask);
                    let old = self.llvm.get(&flag);
                    self.llvm.or(&old, &any)
                };
                self.llvm.put(&some, &flag);
            }
        }
        if self.classes.is_soft(edge) {
            self.llvm.jump(cx.end);
            return Ok(());
        }
        let label = open.labels[at(kind)]
            .ok_or_else(|| LowerError::internal("an edge to a place that is closed"))?;
        match self.flow.hint {
            Some((of, hint)) if kind == JumpTargetKind::Header && of == construct => {
                self.llvm.repeat(label, hint);
            }
            _ => self.llvm.jump(label),
        }
        Ok(())
    }

    fn leave(&mut self, block: Block, cx: &Context) -> Result<()> {
        if let (Terminator::Return(values), Some(next)) =
            (&self.func.blocks[block].term, self.flow.next.clone())
        {
            if let Some(&value) = values.first() {
                let number = self.scalar(value, cx)?;
                self.llvm.put(&number, &next);
            }
        }
        self.give_back(block, cx)?;
        let done = self.flow.done.unwrap_or(cx.end);
        self.llvm.jump(match self.classes.is_soft_return(block) {
            true => cx.end,
            false => done,
        });
        Ok(())
    }

    /// Creates a stack slot for a mask of lanes, which starts empty.
    fn lanes_slot(&mut self) -> StackSlot {
        let ty = self.mask_type();
        let slot = self.llvm.slot(ty);
        self.llvm.put(&Operand::constant(ty, 0), &slot);
        slot
    }

    /// Begins the block at a label with the lanes that have reached it. `gathered`: the slot that
    /// counts them; otherwise all lanes of `mask` have. `leaves`: see [`Self::just_leaves`].
    fn meet(
        &mut self,
        label: Label,
        gathered: Option<&StackSlot>,
        leaves: bool,
        cx: &Context,
    ) -> Context {
        self.llvm.begin(label);
        let mut next = cx.clone();
        if let Some(slot) = gathered {
            let mask = self.llvm.get(slot);
            next.some = !leaves;
            if !leaves {
                self.unless_none(&mask, cx.end);
            }
            next.mask = Some(mask);
        }
        next
    }

    /// Branches to a label if a mask has no active lane, and continues if it has one.
    fn unless_none(&mut self, mask: &Operand, none: Label) {
        let any = self.any(mask);
        let on = self.llvm.label();
        self.llvm.branch(&any, on, none);
        self.llvm.begin(on);
    }

    /// Returns true if a chain does next to nothing before its lanes leave for a block where others
    /// wait. Running such a chain without active lanes costs less than a test for them: the branch
    /// would be mispredicted whenever a lane leaves.
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
        let merge = self.llvm.label();
        let gathers = self.classes.is_lossy(id) && select.merge.is_some();
        let arrival = gathers.then(|| self.lanes_slot());
        self.flow.open[id] = Open {
            labels: [Some(merge), None, None],
            arrivals: [arrival.clone(), None, None],
            ..Open::default()
        };
        // Lanes that leave go on with what comes after, or with nothing.
        let end = if select.merge.is_some() {
            merge
        } else {
            cx.end
        };
        if self.classes.is_divergent(id) {
            self.parted(select, &cx, end)?;
        } else {
            self.uniform(select, &cx, end)?;
        }
        if select.merge.is_none() {
            return Ok(None);
        }
        Ok(Some(self.meet(merge, arrival.as_ref(), leaves, &cx)))
    }

    /// Emits a selection of which all lanes take the same arm.
    fn uniform(&mut self, select: &Select, cx: &Context, end: Label) -> Result<()> {
        let func = self.func;
        let labels: Vec<Label> = select.arms.iter().map(|_| self.llvm.label()).collect();
        // The label of each target.
        let mut to = vec![end; func.blocks[select.block].term.targets().len()];
        for (arm, &label) in select.arms.iter().zip(&labels) {
            arm.targets.iter().for_each(|&target| to[target] = label);
        }
        match &func.blocks[select.block].term {
            Terminator::Branch(cond, ..) => {
                let cond = self.scalar(*cond, cx)?;
                self.llvm.branch(&cond, to[0], to[1]);
            }
            Terminator::Switch(value, cases, _) => {
                let on = self.scalar(*value, cx)?;
                let bits = cases.iter().map(|&(bits, _)| bits);
                let all: Vec<(u64, Label)> = bits.zip(to.iter().copied()).collect();
                self.llvm.switch(&on, &all, to[cases.len()]);
            }
            _ => return Err(LowerError::internal("a selection without a branch")),
        }
        for (arm, label) in select.arms.iter().zip(labels) {
            self.llvm.begin(label);
            let chain = self.places.new_chain(cx.chain);
            let inner = Context {
                chain,
                end,
                ..cx.clone()
            };
            self.chain(&arm.body, inner)?;
        }
        Ok(())
    }

    /// Returns the lanes that take each arm.
    fn masks(&mut self, select: &Select, cx: &Context) -> Result<Vec<Operand>> {
        let func = self.func;
        let all = self.splat_const(LlvmType::BIT, 1);
        match &func.blocks[select.block].term {
            _ if select.arms.len() == 1 => Ok(vec![self.mask_vector(&cx.mask)]),
            Terminator::Branch(cond, ..) => {
                let wide = self.is_wide_comparison(*cond);
                let cond = self.vector(*cond, cx)?;
                let taken = self.and(&cx.mask, &cond);
                // What is left of the mask, or lanes for which the opposite holds: LLVM compares a second time for that.
                // Comparing is as quick as any operation on masks, but not where it takes several registers.
                let not = if wide {
                    let mask = self.mask_vector(&cx.mask);
                    self.llvm.xor(&mask, &taken)
                } else {
                    let not = self.llvm.xor(&cond, &all);
                    self.and(&cx.mask, &not)
                };
                Ok(vec![taken, not])
            }
            Terminator::Switch(value, cases, _) => {
                let on = self.vector(*value, cx)?;
                let mut rest = self.mask_vector(&cx.mask);
                let mut masks = Vec::new();
                for arm in &select.arms {
                    // The default's lanes are those of no other arm.
                    if arm.targets.contains(&cases.len()) {
                        masks.push(None);
                        continue;
                    }
                    let mut taken: Option<Operand> = None;
                    for &target in &arm.targets {
                        let case = Operand::constant(on.ty(), cases[target].0);
                        let is = self.llvm.icmp(IntCond::Eq, &on, &case);
                        let not = self.llvm.xor(&is, &all);
                        rest = self.llvm.and(&rest, &not);
                        taken = Some(match taken {
                            Some(before) => self.llvm.or(&before, &is),
                            None => is,
                        });
                    }
                    masks.push(taken.map(|taken| self.and(&cx.mask, &taken)));
                }
                let masks = masks.into_iter();
                Ok(masks.map(|mask| mask.unwrap_or(rest.clone())).collect())
            }
            _ => Err(LowerError::internal("a selection without a branch")),
        }
    }

    /// Emits a selection of which each lane takes its own arm, one arm after the other.
    fn parted(&mut self, select: &Select, cx: &Context, end: Label) -> Result<()> {
        let masks = self.masks(select, cx)?;
        let count = select.arms.len();
        for (i, (arm, mask)) in select.arms.iter().zip(masks).enumerate() {
            let last = i + 1 == count;
            let after = if last { end } else { self.llvm.label() };
            let chain = self.places.new_chain(cx.chain);
            let small = self.are_small(&arm.body.items);
            if !small {
                self.unless_none(&mask, after);
            }
            let inner = Context {
                mask: Some(mask),
                some: !small,
                chain,
                end: after,
                ..cx.clone()
            };
            self.chain(&arm.body, inner)?;
            if !last {
                self.llvm.begin(after);
            }
        }
        Ok(())
    }

    /// Returns true if the condition is a comparison of numbers of more than 32 bits, whose vectors
    /// decide how wide packs are.
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

    /// Returns true if nothing in it needs a lane to run, and it is quicker run than skipped.
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

    /// Makes the parameters of the blocks within a loop undefined at its head. Each iteration
    /// passes them before they are read; otherwise registers would keep the old values from one
    /// iteration to the next.
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
    pub(super) fn repeat(&mut self, l: &LoopConstruct, cx: Context) -> Result<Option<Context>> {
        let id = l.construct;
        // Lanes that go on wait for those that leave at the same branch.
        let gather = self.classes.goes_back_softly(id);
        let leaks = self.classes.is_leaking(id) || gather;
        let [header, cont, merge] = [(); 3].map(|()| self.llvm.label());
        let ty = self.mask_type();
        let empty = Operand::constant(ty, 0);
        let reached = self.tree.edges_in[l.merge] > 0;
        let gathered = (self.classes.is_lossy(id) && reached).then(|| self.lanes_slot());
        let running = leaks.then(|| {
            let slot = self.llvm.slot(ty);
            let mask = self.mask_vector(&cx.mask);
            self.llvm.put(&mask, &slot);
            slot
        });
        let continuing = leaks.then(|| {
            let lanes = self.llvm.slot(ty);
            (lanes, self.llvm.slot(LlvmType::BIT))
        });
        let (lanes, some) = continuing.clone().unzip();
        self.flow.open[id] = Open {
            labels: [Some(merge), Some(cont), Some(header)],
            arrivals: [gathered.clone(), lanes, None],
            some_continue: some,
            running: running.clone(),
        };
        self.llvm.jump(header);
        self.llvm.begin(header);
        // What is within does not dominate what comes after: the text may leave from anywhere.
        let mut inner = Context {
            chain: self.places.new_chain(cx.chain),
            end: cont,
            ..cx.clone()
        };
        if let Some(running) = &running {
            inner.mask = Some(self.llvm.get(running));
        }
        if let Some((lanes, some)) = &continuing {
            self.llvm.put(&empty, lanes);
            self.llvm.put(&Operand::bit(false), some);
            self.forget_params(id);
        }
        self.chain(&l.body, inner.clone())?;
        self.llvm.begin(cont);
        let gone = if reached { merge } else { cx.end };
        let mut latch = Context {
            end: gone,
            // The text may come here from anywhere in the body.
            chain: self.places.new_chain(cx.chain),
            ..inner
        };
        if let Some((lanes, some)) = &continuing {
            latch.mask = Some(self.llvm.get(lanes));
            latch.some = true;
            let any = self.llvm.get(some);
            let on = self.llvm.label();
            self.llvm.branch(&any, on, gone);
            self.llvm.begin(on);
        }
        if l.latch.items.is_empty() {
            self.llvm.jump(gone);
        } else if let Some(running) = running.filter(|_| gather) {
            let again = self.llvm.label();
            latch.end = again;
            self.llvm.put(&empty, &running);
            self.chain(&l.latch, latch)?;
            self.llvm.begin(again);
            let mask = self.llvm.get(&running);
            let any = self.any(&mask);
            self.llvm.branch(&any, header, gone);
        } else {
            self.chain(&l.latch, latch)?;
        }
        if !reached {
            return Ok(None);
        }
        Ok(Some(self.meet(merge, gathered.as_ref(), false, &cx)))
    }
}

/// Returns true if an operation takes so long that a branch around it pays where no lane is active.
pub(super) fn is_slow(op: Op) -> bool {
    matches!(
        op,
        Op::SDiv | Op::UDiv | Op::SRem | Op::URem | Op::FRem | Op::FDiv | Op::FSqrt
    )
}

#[cfg(test)]
mod tests {
    use crate::native::text_of;

    /// Returns a loop that each work-item leaves when its number has become small, with how often
    /// that took.
    fn exiting(ty: &str) -> String {
        let begin = match ty {
            "i64" => "zext v0 : i64",
            _ => "imul v0, v0 : i32",
        };
        EXITING.replace("NUMBER", ty).replace("BEGIN", begin)
    }

    const EXITING: &str = "func fn0 \"f\" () -> () {
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
            let text = text_of(&exiting(ty), 16);
            assert_eq!(text.matches("icmp ne i16").count(), 1, "{text}");
            assert_eq!(text.matches("store i1 true").count(), 1, "{text}");
        }
    }

    #[test]
    fn wide_numbers_are_compared_once() {
        let opposite = |ty| text_of(&exiting(ty), 16).contains(", <i1 true, i1 true,");
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
        let text = text_of(&exiting("i64"), 16);
        assert!(text.contains("store <16 x i64> undef"), "{text}");
        assert!(text.contains("store i32 undef"), "{text}");
    }
}
