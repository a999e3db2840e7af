//! Unrolls loops fully where this turns private arrays into values.
//!
//! An array indexed by what a loop counts stays in memory, which drivers of GPUs hardly ever undo.
//! With every iteration written out, its indices are constants, and `mem2reg` promotes it.
//!
//! The function is evaluated abstractly: constants and the addresses of such arrays are known,
//! loops that the indices depend on are followed iteration by iteration, all else is unknown. An
//! array counts only if all of its accesses turn out to be at constant offsets, so that no code is
//! copied in vain. Exits that depend on unknown values are copied like other code.

use crate::analysis::alloca::Addresses;
use crate::analysis::cfg::{remove_unreachable, Cfg};
use crate::analysis::control_flow::{Analyses, ControlFlow};
use crate::analysis::loops::{Loop, LoopForest, LoopId};
use crate::edit::repair_ssa;
use crate::ir::compact::{compact, CopyMap};
use crate::ir::entity::{Block, Inst, SecondaryMap, Value};
use crate::ir::fold::fold;
use crate::ir::function::{Edge, Function, Terminator, ValueDef};
use crate::ir::op::{Effect, Op};
use crate::ir::types::Type;
use crate::passes::{const_fold, simplify_cfg};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

/// The most instructions that a function's loops become ([`weight`]).
const BUDGET: usize = 8000;
/// The bytes of the largest array.
const MAX_SIZE: u32 = 1024;
/// The most values that arrays become: more find no registers.
const MAX_ELEMENTS: usize = 64;
/// The most loops around one another that are unrolled.
const MAX_DEPTH: usize = 6;
/// The most arrays that are looked at.
const MAX_ARRAYS: usize = 16;

/// Runs the pass. Returns true if the function changed.
pub fn run(func: &mut Function) -> bool {
    if func.structure.is_some() || !func.layout_insts().any(|&i| is_array(func, i)) {
        return false;
    }
    let mut changed = false;
    let mut analyses = Analyses::default();
    // Outer loops first: their copies are loops with one more constant.
    for _ in 0..MAX_DEPTH {
        let flow = analyses.control_flow(func);
        let loops = choose(func, &flow);
        if loops.is_empty() {
            break;
        }
        for (lp, trips) in &loops {
            unroll(func, lp, *trips);
        }
        simplify_cfg::run(func, &mut analyses);
        const_fold::run(func, &mut analyses);
        simplify_cfg::run(func, &mut analyses);
        changed = true;
    }
    if changed {
        *func = compact(func);
    }
    changed
}

/// Returns true for an alloca of a size that may become values.
fn is_array(func: &Function, inst: Inst) -> bool {
    matches!(func.insts[inst].op, Op::Alloca { size, .. } if size <= MAX_SIZE)
}

/// Returns the outermost of the loops to unroll, each with its trip count.
fn choose(func: &mut Function, flow: &ControlFlow) -> Vec<(Loop, usize)> {
    let (cfg, forest) = (&flow.cfg, flow.loops());
    remove_unreachable(func, cfg);
    if forest.loops.is_empty() || !forest.is_reducible() {
        return Vec::new();
    }
    let addresses = Addresses::with_variable_offsets(func, cfg);
    let mut indices: Vec<Vec<Value>> = vec![Vec::new(); addresses.allocas.len()];
    for &(array, value) in &addresses.variable {
        indices[array].push(value);
    }
    let is_candidate = |&array: &usize| {
        let inst = addresses.allocas[array];
        !indices[array].is_empty() && !addresses.rejected[array] && is_array(func, inst)
    };
    let candidates: Vec<usize> = (0..indices.len()).filter(is_candidate).collect();
    let mut run = Run::new(func, cfg, forest, &addresses);
    let (mut arrays, mut selected) = (FxHashSet::default(), FxHashSet::default());
    let mut best = Vec::new();
    for array in candidates.into_iter().take(MAX_ARRAYS) {
        let loops = loops_of(func, cfg, forest, &indices[array]);
        let mut with_array = arrays.clone();
        with_array.insert(array);
        // How often they run may depend on the loops around them.
        let with_outer = (loops.iter())
            .flat_map(|&id| around(forest, Some(id)))
            .collect();
        for loops in [&loops, &with_outer] {
            let with_loops: FxHashSet<LoopId> = selected.union(loops).copied().collect();
            if !loops.iter().all(|&id| may_unroll(func, forest, loops, id)) {
                break;
            }
            if let Some(outermost) = run.function(&with_array, &with_loops) {
                (arrays, selected, best) = (with_array, with_loops, outermost);
                break;
            }
        }
    }
    let chosen = best.into_iter();
    chosen
        .map(|(id, trips)| (forest.loops[id].clone(), trips))
        .collect()
}

/// Returns the loops whose parameters some values depend on.
fn loops_of(
    func: &Function,
    cfg: &Cfg,
    forest: &LoopForest,
    indices: &[Value],
) -> FxHashSet<LoopId> {
    let mut found = FxHashSet::default();
    let mut seen: FxHashSet<Value> = FxHashSet::default();
    let mut work: Vec<Value> = indices.to_vec();
    while let Some(value) = work.pop() {
        if !seen.insert(value) {
            continue;
        }
        match func.values[value].def {
            ValueDef::Result(inst, _) => {
                let data = &func.insts[inst];
                if data.op.effect() == Effect::Pure {
                    work.extend(&data.args);
                }
            }
            ValueDef::Param(block, index) => {
                found.extend(forest.headed_by(block));
                for (pred, number) in cfg.pred_edges(block) {
                    let edge = func.blocks[pred].term.target(number);
                    work.extend(edge.and_then(|edge| edge.args.get(index as usize)));
                }
            }
        }
    }
    found
}

/// Returns a loop and those around it.
fn around(forest: &LoopForest, innermost: Option<LoopId>) -> SmallVec<[LoopId; 8]> {
    std::iter::successors(innermost, |&id| forest.loops[id].parent).collect()
}

/// Returns true if a loop is not too deep among `loops`, and nothing in it forbids copies.
fn may_unroll(func: &Function, forest: &LoopForest, loops: &FxHashSet<LoopId>, id: LoopId) -> bool {
    let outer = around(forest, Some(id)).into_iter();
    let depth = outer.filter(|id| loops.contains(id)).count();
    let blocks = forest.loops[id].blocks.iter();
    let mut insts = blocks.flat_map(|&b| &func.blocks[b].insts);
    depth <= MAX_DEPTH
        && insts.all(|&inst| {
            let op = func.insts[inst].op;
            op.effect() != Effect::Convergent && !matches!(op, Op::Alloca { .. })
        })
}

/// Returns what it takes to compile an instruction, in additions of 32 bits.
fn weight(func: &Function, inst: Inst) -> usize {
    use Op::*;
    let data = &func.insts[inst];
    let is_short = |&value: &Value| func.ty(value).size() < 4 && func.ty(value) != Type::Bool;
    match data.op {
        Const(_) | Undef => 0,
        SDiv | UDiv | SRem | URem | FRem | MemCopy { .. } | Printf(_) => 64,
        ImageRead(_) | ImageFilter | ImageWrite(_) => 64,
        op if op.is_atomic() => 64,
        // Vectors of them have many lanes on processors.
        _ if data.results.iter().any(is_short) => 3,
        _ => 1,
    }
}

/// A value that is known.
#[derive(Clone, Copy, PartialEq, Eq)]
enum KnownValue {
    /// A number.
    Bits(u64),
    /// An offset into an array.
    Within(usize, u64),
}

/// The arguments with which a block is reached.
type Arguments = SmallVec<[Option<KnownValue>; 4]>;

/// A loop that is being followed.
struct Following {
    id: LoopId,
    /// Set if this iteration, or an earlier one, may leave it.
    left: [bool; 2],
}

/// A run of a function of which little is known.
struct Run<'a> {
    func: &'a Function,
    cfg: &'a Cfg,
    forest: &'a LoopForest,
    addresses: &'a Addresses,
    /// The alloca of an instruction, by position.
    array_of: FxHashMap<Inst, usize>,
    arrays: FxHashSet<usize>,
    /// The innermost loop around a block that is followed.
    followed: SecondaryMap<Block, Option<LoopId>>,
    known: SecondaryMap<Value, Option<KnownValue>>,
    reached: SecondaryMap<Block, Option<Arguments>>,
    stack: Vec<Following>,
    /// The values that the arrays become.
    elements: FxHashSet<(usize, u64)>,
    /// The instructions in loops that are followed.
    count: usize,
    outermost: Vec<(LoopId, usize)>,
}

impl<'a> Run<'a> {
    fn new(
        func: &'a Function,
        cfg: &'a Cfg,
        forest: &'a LoopForest,
        addresses: &'a Addresses,
    ) -> Self {
        let allocas = addresses.allocas.iter().enumerate();
        Self {
            func,
            cfg,
            forest,
            addresses,
            array_of: allocas.map(|(i, &inst)| (inst, i)).collect(),
            arrays: FxHashSet::default(),
            followed: SecondaryMap::new(),
            known: SecondaryMap::new(),
            reached: SecondaryMap::new(),
            stack: Vec::new(),
            elements: FxHashSet::default(),
            count: 0,
            outermost: Vec::new(),
        }
    }

    /// Runs the function. Returns the outermost loops that are followed, with their trip counts, if
    /// all accesses to the arrays are at constant offsets and the loops are small enough.
    fn function(
        &mut self,
        arrays: &FxHashSet<usize>,
        loops: &FxHashSet<LoopId>,
    ) -> Option<Vec<(LoopId, usize)>> {
        let blocks = self.cfg.rpo();
        self.arrays.clone_from(arrays);
        self.elements.clear();
        self.known = SecondaryMap::new();
        self.reached = SecondaryMap::new();
        self.stack.clear();
        self.outermost.clear();
        self.count = 0;
        for &block in blocks {
            let around = around(self.forest, self.forest.innermost(block));
            self.followed[block] = around.into_iter().find(|id| loops.contains(id));
        }
        let &entry = blocks.first()?;
        let params = self.func.blocks[entry].params.len();
        self.reached[entry] = Some(SmallVec::from_elem(None, params));
        self.region(blocks, None)?;
        Some(std::mem::take(&mut self.outermost))
    }

    /// Runs some blocks, in reverse postorder: those of a loop, or all of the function.
    fn region(&mut self, blocks: &[Block], inside: Option<LoopId>) -> Option<()> {
        for &block in blocks {
            let followed = self.followed[block];
            if followed == inside {
                self.block(block)?;
                continue;
            }
            let Some(id) = followed.filter(|&id| self.forest.loops[id].header == block) else {
                continue;
            };
            let outer = self.forest.loops[id].parent;
            let outer = outer.and_then(|outer| self.followed[self.forest.loops[outer].header]);
            if outer == inside {
                self.follow(id)?;
            }
        }
        Some(())
    }

    /// Runs a loop until it does not go on.
    fn follow(&mut self, id: LoopId) -> Option<()> {
        let forest = self.forest;
        let lp = &forest.loops[id];
        let mut trips = 0;
        self.stack.push(Following {
            id,
            left: [false; 2],
        });
        while self.reached[lp.header].is_some() {
            if let Some(Following { left, .. }) = self.stack.last_mut() {
                *left = [false, left[0] || left[1]];
            }
            trips += 1;
            self.region(&lp.blocks, Some(id))?;
        }
        let following = self.stack.pop()?;
        if following.left[1] {
            // It may end with the values of any iteration.
            self.forget(lp);
        }
        if self.stack.is_empty() && trips > 0 {
            self.outermost.push((id, trips));
        }
        Some(())
    }

    fn forget(&mut self, lp: &Loop) {
        for &block in &lp.blocks {
            let data = &self.func.blocks[block];
            let results = data.insts.iter().flat_map(|&i| &self.func.insts[i].results);
            for &value in data.params.iter().chain(results) {
                self.known[value] = None;
            }
        }
    }

    fn block(&mut self, block: Block) -> Option<()> {
        let Some(arguments) = self.reached[block].take() else {
            return Some(());
        };
        let func = self.func;
        let data = &func.blocks[block];
        let head = self.forest.headed_by(block);
        let is_any_iteration = head.is_some() && self.followed[block] != head;
        for (&param, argument) in data.params.iter().zip(arguments) {
            self.known[param] = argument.filter(|_| !is_any_iteration);
        }
        if !self.stack.is_empty() {
            let weights = data.insts.iter().map(|&inst| weight(func, inst));
            self.count += weights.sum::<usize>() + 1;
            if self.count > BUDGET {
                return None;
            }
        }
        for &inst in &data.insts {
            self.inst(inst)?;
        }
        let bits = |value: Value| match self.known[value] {
            Some(KnownValue::Bits(bits)) => Some(bits),
            _ => None,
        };
        let taken = match &data.term {
            Terminator::Branch(cond, yes, no) => {
                bits(*cond).map(|bits| if bits != 0 { yes } else { no })
            }
            Terminator::Switch(value, cases, default) => bits(*value).map(|bits| {
                let case = cases.iter().find(|(case, _)| *case == bits);
                case.map_or(default, |(_, edge)| edge)
            }),
            _ => None,
        };
        match taken {
            Some(edge) => self.edge(block, edge),
            None => {
                for edge in data.term.targets() {
                    self.edge(block, edge);
                }
            }
        }
        Some(())
    }

    /// Reaches the target of an edge.
    fn edge(&mut self, from: Block, edge: &Edge) {
        for following in &mut self.stack {
            following.left[0] |= !self.forest.contains(following.id, edge.block);
        }
        if let Some(id) = self.forest.headed_by(edge.block) {
            let is_back = self.forest.contains(id, from);
            if is_back && self.followed[edge.block] != Some(id) {
                return;
            }
        }
        let new = edge.args.iter().map(|&arg| self.known[arg]);
        match &mut self.reached[edge.block] {
            Some(old) => {
                if !self.stack.is_empty() {
                    // Each element may have another value on each way.
                    self.count += self.elements.len();
                }
                for (old, new) in old.iter_mut().zip(new) {
                    *old = old.filter(|_| *old == new);
                }
            }
            none => *none = Some(new.collect()),
        }
    }

    /// Computes the results of an instruction. Returns `None` if it is an access to one of the arrays that stays in memory.
    fn inst(&mut self, inst: Inst) -> Option<()> {
        let data = &self.func.insts[inst];
        for &result in &data.results {
            self.known[result] = None;
        }
        let is_lost = |&arg: &Value| {
            let array = self.addresses.root_of(arg);
            self.known[arg].is_none() && array.is_some_and(|array| self.arrays.contains(&array))
        };
        if data.args.iter().any(is_lost) {
            return None;
        }
        let first = data.args.first().copied();
        match (data.op, first.and_then(|first| self.known[first])) {
            (Op::Alloca { .. }, _) => {
                let &array = self.array_of.get(&inst)?;
                if self.arrays.contains(&array) {
                    self.known[*data.results.first()?] = Some(KnownValue::Within(array, 0));
                }
            }
            (Op::PtrAdd, Some(KnownValue::Within(array, base))) => {
                let offset = self.known[*data.args.get(1)?];
                let Some(KnownValue::Bits(offset)) = offset else {
                    return None;
                };
                let at = KnownValue::Within(array, base.wrapping_add(offset));
                self.known[*data.results.first()?] = Some(at);
            }
            (Op::SpaceCast, known @ Some(KnownValue::Within(..))) => {
                self.known[*data.results.first()?] = known;
            }
            (Op::Load { .. }, Some(KnownValue::Within(array, at))) => {
                return self.access(array, at, &data.results);
            }
            (Op::Store { .. }, Some(KnownValue::Within(array, at))) => {
                return self.access(array, at, &data.args[1..]);
            }
            _ => self.compute(inst),
        }
        Some(())
    }

    /// Returns `None` if an access is partly outside an array, or one to too many elements.
    fn access(&mut self, array: usize, mut at: u64, lanes: &[Value]) -> Option<()> {
        for &lane in lanes {
            self.elements.insert((array, at));
            at = at.checked_add(self.func.ty(lane).size().into())?;
        }
        (at <= self.size(array).into() && self.elements.len() <= MAX_ELEMENTS).then_some(())
    }

    fn size(&self, array: usize) -> u32 {
        match self.func.insts[self.addresses.allocas[array]].op {
            Op::Alloca { size, .. } => size,
            _ => 0,
        }
    }

    fn compute(&mut self, inst: Inst) {
        let data = &self.func.insts[inst];
        let &[result] = data.results.as_slice() else {
            return;
        };
        if let Op::Const(bits) = data.op {
            self.known[result] = Some(KnownValue::Bits(bits));
            return;
        }
        let mut types: SmallVec<[Type; 4]> = SmallVec::new();
        let mut bits: SmallVec<[u64; 4]> = SmallVec::new();
        for &arg in &data.args {
            let Some(KnownValue::Bits(arg_bits)) = self.known[arg] else {
                return;
            };
            types.push(self.func.ty(arg));
            bits.push(arg_bits);
        }
        let folded = fold(data.op, data.fp, &types, &bits, self.func.ty(result));
        self.known[result] = folded.map(KnownValue::Bits);
    }
}

/// Replaces a loop by `trips` copies of its body; the last does not go on.
fn unroll(func: &mut Function, lp: &Loop, trips: usize) {
    let body = func.clone();
    let mut groups: Vec<Vec<(Block, Value)>> = Vec::new();
    for &block in &lp.blocks {
        let data = &body.blocks[block];
        let results = data.insts.iter().flat_map(|&i| &body.insts[i].results);
        let values = data.params.iter().chain(results);
        groups.extend(values.map(|&value| vec![(block, value)]));
    }
    let mut map = CopyMap::new(&body);
    // The blocks of the copy before that lead to its header.
    let (mut header, mut latches) = (lp.header, lp.latches.clone());
    for _ in 1..trips {
        let first = func.insts.len();
        for &from in &lp.blocks {
            let to = func.add_block();
            map.set_block(from, to);
            for &param in &body.blocks[from].params {
                let new = func.add_param(to, body.values[param].ty);
                map.set_value(param, new);
            }
            map.copy_insts(&body, from, func, to);
        }
        map.fix_operands(func, first);
        for &from in &lp.blocks {
            func.blocks[map.block(from)].term = map.term(&body.blocks[from].term);
        }
        for group in &mut groups {
            let (block, value) = group[0];
            group.push((map.block(block), map.value(value)));
        }
        let next = map.block(lp.header);
        redirect(func, &latches, header, |edge| edge.block = next);
        header = next;
        latches = lp.latches.iter().map(|&b| map.block(b)).collect();
    }
    let end = func.add_block();
    redirect(func, &latches, header, |edge| *edge = Edge::new(end));
    // What is used after the loop may come from each copy.
    repair_ssa::join_copies(func, &lp.blocks, &groups);
}

/// Changes the edges from some blocks to another.
fn redirect(func: &mut Function, from: &[Block], to: Block, change: impl Fn(&mut Edge)) {
    for &block in from {
        let mut edges = func.blocks[block].term.targets_mut();
        let edges = edges.iter_mut().filter(|edge| edge.block == to);
        edges.for_each(|edge| change(edge));
    }
}
