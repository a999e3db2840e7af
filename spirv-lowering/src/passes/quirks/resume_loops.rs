//! Lets long loops go on in a further dispatch, for drivers that abandon a work-item's loops after some number of
//! iterations (see `unroll_loops`, which runs before and makes each of them count for more).
//!
//! Loops that may run for long count what the driver counts. Shortly before its limit a work-item stores what
//! it needs to go on to a record of its own in memory, asks for another dispatch, and returns. The runtime has recorded
//! further dispatches of the same kernel behind the first one, with a number of work-groups in memory that is zero
//! unless one was asked for. All start with a look at the record. Its first word: 0 if the work-item is finished, 1 if it
//! is to begin, 2 or more for the loop to go on with; the second: the number of the dispatch.
//!
//! ```text
//! first: on = the specialisation constant says so; on ? again : start
//! again: what does the record say? finished / start / go on with loop 1 / 2 / ...
//! check of each loop, before its header: count > limit ? save : header
//! ```
//!
//! A loop inside others is gone on with by way of their headers, so that no loop has a second entry: before the check of
//! a loop that has others inside stands a look at the way to go, which leads past its body to the next one.
//!
//! All of it stands under a specialisation constant, for launches that are too large to run so long.
//!
//! Left alone: kernels with barriers or other operations of the group, local memory or arrays in private memory, and
//! loops with too much to store. Where that holds of the inner loops alone, or there are too many of them, the outermost
//! ones are gone on with, and an inner one that runs up to the limit within one of their iterations is cut short.

use super::unroll_loops::weight;
use crate::analysis::cfg::Cfg;
use crate::analysis::dom::DomTree;
use crate::analysis::iterations;
use crate::analysis::loops::{Loop, LoopForest, LoopId};
use crate::interface::{Implicit, KernelInterface, RESUME_HEADER, SPEC_RESUME};
use crate::ir::entity::{Block, Inst, SecondaryMap, Value};
use crate::ir::function::{Edge, Function, Terminator, Values};
use crate::ir::op::{Effect, HwVar, IntCond, Op};
use crate::ir::types::{Space, Type};
use crate::passes::{dce, mem2reg};
use crate::target::Target;
use rustc_hash::{FxHashMap, FxHashSet};

/// Loops that can be gone on with, at most.
const MAX_LOOPS: usize = 4;
/// Values that a work-item stores, at most.
const MAX_VALUES: usize = 32;
/// Instructions of a function that the pass looks at, at most.
const FUNCTION_BUDGET: usize = 8192;
/// Work-items that a driver may count together.
const LANES: u64 = 8;

/// Runs the pass. Returns whether anything changed; the interface then says what the runtime has to supply.
pub fn run(func: &mut Function, interface: &mut KernelInterface, target: &Target) -> bool {
    let push = interface.push_size.next_multiple_of(8);
    if target.loop_limit == 0
        || push + Implicit::ResumeState.size() + Implicit::ResumeGroups.size()
            > target.max_push_constants
        || !is_plain(func)
    {
        return false;
    }
    let cfg = Cfg::new(func);
    let dom = DomTree::new(&cfg);
    let forest = LoopForest::new(&cfg, &dom);
    if !forest.irreducible.is_empty() {
        return false;
    }
    let done = [true, false].into_iter().find_map(|inner| {
        let plan = Plan::new(func, &forest, target.loop_limit, inner)?;
        let mut rewritten = func.clone();
        let bytes = transform(&mut rewritten, &plan)?;
        Some((rewritten, bytes))
    });
    let Some((rewritten, bytes)) = done else {
        return false;
    };
    *func = rewritten;
    mem2reg::run(func);
    dce::run(func);
    interface.implicit.push((Implicit::ResumeState, push));
    let round = push + Implicit::ResumeState.size();
    interface.implicit.push((Implicit::ResumeGroups, round));
    interface.push_size = round + Implicit::ResumeGroups.size();
    interface.resume_bytes = bytes;
    true
}

/// Whether a work-item's state is its values and nothing else.
fn is_plain(func: &Function) -> bool {
    let Some(entry) = func.entry() else {
        return false;
    };
    let alone = |&block: &Block| {
        func.blocks[block].insts.iter().all(|&i| {
            let op = func.insts[i].op;
            op.effect() != Effect::Convergent && !matches!(op, Op::Alloca { .. })
        })
    };
    func.vars.is_empty()
        && func.params.is_empty()
        && func.blocks[entry].params.is_empty()
        && weight(func, &func.layout) <= FUNCTION_BUDGET
        && func.layout.iter().all(alone)
}

/// What is to be done.
struct Plan {
    /// Headers of the loops that can be gone on with; outer before inner ones.
    headers: Vec<Block>,
    /// For each of them, which one of them is around it.
    parents: Vec<Option<usize>>,
    /// What an iteration of a loop that may run for long counts, by header.
    counts: FxHashMap<Block, u64>,
    /// A work-item stops when it has counted more than this.
    limit: u64,
    /// The same for one that is alone.
    limit_alone: u64,
}

impl Plan {
    /// The plan for the outermost loops alone, or for inner ones, too.
    fn new(func: &Function, forest: &LoopForest, limit: u32, inner: bool) -> Option<Self> {
        let long = |id: LoopId| iterations::over_kernel(func, forest, id) > u64::from(limit / 16);
        let mut headers: Vec<Block> = Vec::new();
        let mut parents: Vec<Option<usize>> = Vec::new();
        let mut counts: FxHashMap<Block, u64> = FxHashMap::default();
        for (_, lp) in forest.loops.iter().filter(|(id, _)| long(*id)) {
            counts.insert(lp.header, 1);
            let mut nest = vec![lp.header];
            let mut at = lp.parent;
            while let Some(parent) = at {
                nest.push(forest.loops[parent].header);
                at = forest.loops[parent].parent;
            }
            let mut parent = None;
            let depth = if inner { nest.len() } else { 1 };
            for &header in nest.iter().rev().take(depth) {
                let known = headers.iter().position(|&h| h == header);
                parent = Some(known.unwrap_or_else(|| {
                    headers.push(header);
                    parents.push(parent);
                    headers.len() - 1
                }));
            }
        }
        if headers.is_empty() || headers.len() > MAX_LOOPS {
            return None;
        }
        for &header in &headers {
            counts.entry(header).or_insert(1);
        }
        // Short loops count where they are: inside of the next long one, or before all.
        let mut fixed = 0u64;
        for (id, lp) in forest.loops.iter() {
            if counts.contains_key(&lp.header) {
                continue;
            }
            let mut around: Vec<&Loop> = vec![lp];
            let mut at = lp.parent;
            let mut into = None;
            while let Some(parent) = at {
                let parent = &forest.loops[parent];
                if counts.contains_key(&parent.header) {
                    into = Some(parent.header);
                    break;
                }
                around.push(parent);
                at = parent.parent;
            }
            let all = iterations::over_kernel(func, forest, id);
            match into {
                // Bounded by what the loop may run in all, if that is known; else it would have been a long one.
                Some(header) => {
                    let each = iterations::within(func, &around);
                    let count = counts.entry(header).or_insert(1);
                    *count = count.saturating_add(each);
                }
                None => fixed = fixed.saturating_add(all),
            }
        }
        // One loop alone is counted exactly: the driver's count is that of the work-item that runs longest. Of several,
        // or inner ones, work-items may take turns at running longest.
        let share = (counts.len() as u64).min(LANES);
        let alone = u64::from(limit).saturating_sub(fixed + 64);
        let most = counts.values().copied().max().unwrap_or(1);
        let limit = (alone / share).checked_sub(most)?;
        // Each dispatch gets at least one iteration further.
        (limit >= most).then_some(Self {
            headers,
            parents,
            counts,
            limit,
            limit_alone: alone - most,
        })
    }

    /// Of the loops directly inside of a loop, the one that is a given loop or has it inside.
    fn towards(&self, outer: usize, loop_: usize) -> Option<usize> {
        let mut at = loop_;
        loop {
            let parent = self.parents.get(at).copied().flatten()?;
            if parent == outer {
                return Some(at);
            }
            at = parent;
        }
    }

    /// The outermost loop around a loop, if there is one.
    fn outermost(&self, loop_: usize) -> Option<usize> {
        let mut around = None;
        while let Some(parent) = self.parents.get(around.unwrap_or(loop_)).copied().flatten() {
            around = Some(parent);
        }
        around
    }
}

/// The values that are needed from the beginning of a block on, its parameters excepted.
fn live_at(func: &Function, at: &[Block]) -> Vec<FxHashSet<Value>> {
    let cfg = Cfg::new(func);
    let mut live: SecondaryMap<Block, FxHashSet<Value>> = SecondaryMap::new();
    loop {
        let mut changed = false;
        for &block in cfg.rpo().iter().rev() {
            let data = &func.blocks[block];
            let mut set = FxHashSet::default();
            for &next in cfg.succs(block) {
                set.extend(live[next].iter().copied());
            }
            data.term.for_each_use(|v| {
                set.insert(v);
            });
            for &inst in data.insts.iter().rev() {
                for result in &func.insts[inst].results {
                    set.remove(result);
                }
                set.extend(func.insts[inst].args.iter().copied());
            }
            for param in &data.params {
                set.remove(param);
            }
            if set.len() != live[block].len() {
                live[block] = set;
                changed = true;
            }
        }
        if !changed {
            return at.iter().map(|&b| live[b].clone()).collect();
        }
    }
}

/// The form in which a value is stored; None where it cannot be.
fn stored(ty: Type) -> Option<Type> {
    match ty {
        Type::Bool => Some(Type::I32),
        Type::Ptr(Space::Global | Space::Constant) => Some(Type::I64),
        Type::Ptr(_) | Type::Handle => None,
        other => Some(other),
    }
}

/// Appends instructions to a block under construction.
struct Emit<'f> {
    func: &'f mut Function,
    out: Vec<Inst>,
}

impl Emit<'_> {
    fn op(&mut self, op: Op, args: &[Value], ty: Type) -> Value {
        let inst = self.func.make_inst(op, args.iter().copied(), &[ty]);
        self.out.push(inst);
        self.func.insts[inst].results[0]
    }
    fn konst(&mut self, ty: Type, bits: u64) -> Value {
        self.op(Op::Const(bits & ty.mask()), &[], ty)
    }
    fn load(&mut self, at: Value, ty: Type) -> Value {
        let align = 8;
        let volatile = false;
        self.op(Op::Load { align, volatile }, &[at], ty)
    }
    fn store(&mut self, at: Value, value: Value) {
        let (align, volatile) = (8, false);
        let op = Op::Store { align, volatile };
        let inst = self.func.make_inst(op, [at, value], &[]);
        self.out.push(inst);
    }
    fn load_word(&mut self, at: Value) -> Value {
        let (align, volatile) = (4, false);
        self.op(Op::Load { align, volatile }, &[at], Type::I32)
    }
    fn store_word(&mut self, at: Value, value: Value) {
        let (align, volatile) = (4, false);
        let op = Op::Store { align, volatile };
        let inst = self.func.make_inst(op, [at, value], &[]);
        self.out.push(inst);
    }
    fn pack(&mut self, value: Value) -> Value {
        match self.func.ty(value) {
            Type::Bool => self.op(Op::ZExt, &[value], Type::I32),
            Type::Ptr(_) => self.op(Op::PtrToInt, &[value], Type::I64),
            _ => value,
        }
    }
    fn unpack(&mut self, value: Value, ty: Type) -> Value {
        match ty {
            Type::Bool => {
                let zero = self.konst(Type::I32, 0);
                self.op(Op::ICmp(IntCond::Ne), &[value, zero], Type::Bool)
            }
            Type::Ptr(_) => self.op(Op::IntToPtr, &[value], ty),
            _ => value,
        }
    }
    /// Values of no meaning, for parameters that are not looked at.
    fn any(&mut self, types: &[Type]) -> Values {
        types
            .iter()
            .map(|&ty| {
                let zero = self.konst(stored(ty).unwrap_or(ty), 0);
                self.unpack(zero, ty)
            })
            .collect()
    }
    fn at(&mut self, base: Value, offset: u64) -> Value {
        let ty = self.func.ty(base);
        let offset = self.konst(Type::I64, offset);
        self.op(Op::PtrAdd, &[base, offset], ty)
    }
    fn finish(self, block: Block) {
        self.func.blocks[block].insts.extend(self.out);
    }
}

/// A private variable, to be promoted again at once.
fn variable(func: &mut Function, first: Block) -> Value {
    let op = Op::Alloca { size: 8, align: 8 };
    let inst = func.make_inst(op, [], &[Type::Ptr(Space::Private)]);
    func.blocks[first].insts.push(inst);
    func.insts[inst].results[0]
}

/// Moves a value's computation, as far as it depends on nothing but itself, to the first block.
fn hoist(
    func: &mut Function,
    value: Value,
    first: Block,
    home: &mut FxHashMap<Inst, Block>,
) -> bool {
    fn movable(
        func: &Function,
        value: Value,
        first: Block,
        home: &FxHashMap<Inst, Block>,
        depth: u32,
    ) -> bool {
        let Some(inst) = func.def_inst(value) else {
            return false;
        };
        let data = &func.insts[inst];
        home.get(&inst) == Some(&first)
            || (depth < 16
                && data.op.effect() == Effect::Pure
                && data
                    .args
                    .iter()
                    .all(|&arg| movable(func, arg, first, home, depth + 1)))
    }
    fn moved(func: &mut Function, value: Value, first: Block, home: &mut FxHashMap<Inst, Block>) {
        let Some(inst) = func.def_inst(value) else {
            return;
        };
        let Some(block) = home.insert(inst, first).filter(|&block| block != first) else {
            return;
        };
        for arg in func.insts[inst].args.clone() {
            moved(func, arg, first, home);
        }
        func.blocks[block].insts.retain(|&i| i != inst);
        func.blocks[first].insts.push(inst);
    }
    let can = movable(func, value, first, home, 0);
    if can {
        moved(func, value, first, home);
    }
    can
}

/// Keeps values in variables: a store after each definition, a load before each use.
fn demote(func: &mut Function, variables: &FxHashMap<Value, Value>, except: Block) {
    for block in func.layout.clone() {
        if block == except {
            continue;
        }
        let insts = std::mem::take(&mut func.blocks[block].insts);
        let params = func.blocks[block].params.clone();
        let mut e = Emit {
            func,
            out: Vec::with_capacity(insts.len()),
        };
        let put = |e: &mut Emit, value: Value| {
            if let Some(&variable) = variables.get(&value) {
                let packed = e.pack(value);
                e.store(variable, packed);
            }
        };
        let get = |e: &mut Emit, value: Value| match variables.get(&value) {
            Some(&variable) => {
                let ty = e.func.ty(value);
                let loaded = e.load(variable, stored(ty).unwrap_or(ty));
                e.unpack(loaded, ty)
            }
            None => value,
        };
        for param in params {
            put(&mut e, param);
        }
        for inst in insts {
            let args: Values = e.func.insts[inst].args.clone();
            let args: Values = args.into_iter().map(|v| get(&mut e, v)).collect();
            e.func.insts[inst].args = args;
            e.out.push(inst);
            for result in e.func.insts[inst].results.clone() {
                put(&mut e, result);
            }
        }
        let mut term = std::mem::take(&mut e.func.blocks[block].term);
        term.map_uses(|v| get(&mut e, v));
        e.func.blocks[block].term = term;
        e.finish(block);
    }
}

/// How a work-item that goes on with an inner loop finds there, through the headers of the loops around it.
struct Route {
    /// The variable that says which loop to go to, as a record's first word does; 0 if there is none to go to.
    to: Value,
    /// For each loop inside others, the variables with what its parameters shall be.
    params: Vec<Vec<Value>>,
}

impl Route {
    /// Makes the variables, if there are inner loops to go on with.
    fn new(func: &mut Function, plan: &Plan, first: Block, types: &[Vec<Type>]) -> Option<Self> {
        plan.parents.iter().any(Option::is_some).then(|| Self {
            to: variable(func, first),
            params: plan
                .parents
                .iter()
                .zip(types)
                .map(|(parent, types)| {
                    let inner = if parent.is_some() { types.len() } else { 0 };
                    (0..inner).map(|_| variable(func, first)).collect()
                })
                .collect(),
        })
    }

    /// Puts the looks at the way before the checks of loops that have others inside.
    fn lead(&self, func: &mut Function, plan: &Plan, checks: &[Block], types: &[Vec<Type>]) {
        for (outer, &check) in checks.iter().enumerate() {
            let inside: Vec<(usize, usize)> = (0..checks.len())
                .filter_map(|inner| Some((inner, plan.towards(outer, inner)?)))
                .collect();
            if inside.is_empty() {
                continue;
            }
            let look = func.add_block();
            let params: Values = types[outer]
                .iter()
                .map(|&ty| func.add_param(look, ty))
                .collect();
            for block in func.layout.clone() {
                for target in func.blocks[block].term.targets_mut() {
                    if target.block == check {
                        target.block = look;
                    }
                }
            }
            let mut cases = Vec::new();
            for (inner, next) in inside {
                let step = func.add_block();
                let mut e = Emit {
                    func,
                    out: Vec::new(),
                };
                let args = if inner == next {
                    let none = e.konst(Type::I32, 0);
                    e.store(self.to, none);
                    let params = self.params[inner].iter().zip(&types[inner]);
                    params
                        .map(|(&variable, &ty)| {
                            let loaded = e.load(variable, stored(ty).unwrap_or(ty));
                            e.unpack(loaded, ty)
                        })
                        .collect()
                } else {
                    e.any(&types[next])
                };
                e.finish(step);
                func.blocks[step].term = Terminator::Jump(Edge {
                    block: checks[next],
                    args,
                });
                cases.push((inner as u64 + 2, Edge::new(step)));
            }
            let mut e = Emit {
                func,
                out: Vec::new(),
            };
            let to = e.load(self.to, Type::I32);
            e.finish(look);
            let on = Edge {
                block: check,
                args: params,
            };
            func.blocks[look].term = Terminator::Switch(to, cases, on);
        }
    }
}

/// Does it. Returns the bytes of a work-item's record, or nothing where the loops need too much.
fn transform(func: &mut Function, plan: &Plan) -> Option<u32> {
    let start = func.entry()?;
    let first = func.add_block();
    func.layout.pop();
    func.layout.insert(0, first);

    // A block before each header, which all edges to the header pass.
    let mut checks = Vec::new();
    for &header in &plan.headers {
        let check = func.add_block();
        let types: Vec<Type> = func.blocks[header]
            .params
            .iter()
            .map(|&v| func.ty(v))
            .collect();
        for block in func.layout.clone() {
            for target in func.blocks[block].term.targets_mut() {
                if target.block == header {
                    target.block = check;
                }
            }
        }
        let params: Values = types
            .into_iter()
            .map(|ty| func.add_param(check, ty))
            .collect();
        func.blocks[check].term = Terminator::Jump(Edge {
            block: header,
            args: params,
        });
        checks.push(check);
    }
    // The loop may be the first block.
    let start = plan
        .headers
        .iter()
        .position(|&header| header == start)
        .map_or(start, |i| checks[i]);
    func.blocks[first].term = Terminator::Jump(Edge::new(start));

    // What each loop needs. What can be computed anew is, in the first block.
    let mut home: FxHashMap<Inst, Block> = FxHashMap::default();
    for &block in &func.layout {
        home.extend(func.blocks[block].insts.iter().map(|&inst| (inst, block)));
    }
    let live = live_at(func, &checks);
    let mut variables: FxHashMap<Value, Value> = FxHashMap::default();
    let mut needs: Vec<Vec<Value>> = Vec::new();
    let mut most = 0;
    for (set, &check) in live.iter().zip(&checks) {
        let mut set: Vec<Value> = set.iter().copied().collect();
        set.sort_unstable();
        let mut kept = Vec::new();
        for value in set {
            if !hoist(func, value, first, &mut home) {
                stored(func.ty(value))?;
                kept.push(value);
            }
        }
        let params = &func.blocks[check].params;
        if params.iter().any(|&v| stored(func.ty(v)).is_none()) {
            return None;
        }
        needs.push(kept);
    }
    // What one loop could not have moved may have been moved for another.
    for (kept, &check) in needs.iter_mut().zip(&checks) {
        let moved = |v: Value| {
            let inst = func.def_inst(v);
            inst.and_then(|inst| home.get(&inst)) == Some(&first)
        };
        kept.retain(|&v| !moved(v));
        most = most.max(kept.len() + func.blocks[check].params.len());
    }
    if most > MAX_VALUES {
        return None;
    }
    for &value in needs.iter().flatten() {
        variables
            .entry(value)
            .or_insert_with(|| variable(func, first));
    }
    demote(func, &variables, first);
    let record_bytes = 8 + 8 * most as u64;
    let counter = variable(func, first);
    let types: Vec<Vec<Type>> = checks
        .iter()
        .map(|&check| {
            let params = func.blocks[check].params.iter();
            params.map(|&v| func.ty(v)).collect()
        })
        .collect();
    let way = Route::new(func, plan, first, &types);

    // The first block: where the record is, and whether to begin or to go on.
    let again = func.add_block();
    let over = func.add_block();
    func.blocks[over].term = Terminator::Return(Values::new());
    let mut e = Emit {
        func,
        out: Vec::new(),
    };
    let zero = e.konst(Type::I32, 0);
    e.store(counter, zero);
    if let Some(way) = &way {
        e.store(way.to, zero);
    }
    let spec = e.op(Op::SpecSize(SPEC_RESUME), &[], Type::I32);
    let is = |e: &mut Emit, value| {
        let value = e.konst(Type::I32, value);
        e.op(Op::ICmp(IntCond::Eq), &[spec, value], Type::Bool)
    };
    let (shared, alone) = (is(&mut e, 1), is(&mut e, 2));
    let on = e.op(Op::Or, &[shared, alone], Type::Bool);
    let state = e.op(Op::Implicit(Implicit::ResumeState, 0), &[], Type::I64);
    let [width, height] =
        [0, 1].map(|dim| e.op(Op::Implicit(Implicit::ResumeGroups, dim), &[], Type::I32));
    let mut number = e.op(Op::Hw(HwVar::WorkgroupId(2)), &[], Type::I32);
    for (dim, count) in [(1, height), (0, width)] {
        let id = e.op(Op::Hw(HwVar::WorkgroupId(dim)), &[], Type::I32);
        number = e.op(Op::IMul, &[number, count], Type::I32);
        number = e.op(Op::IAdd, &[number, id], Type::I32);
    }
    for dim in 0..3 {
        let size = e.op(Op::Hw(HwVar::WorkgroupSize(dim)), &[], Type::I32);
        number = e.op(Op::IMul, &[number, size], Type::I32);
    }
    let index = e.op(Op::Hw(HwVar::LocalInvocationIndex), &[], Type::I32);
    number = e.op(Op::IAdd, &[number, index], Type::I32);
    let number = e.op(Op::ZExt, &[number], Type::I64);
    let stride = e.konst(Type::I64, record_bytes);
    let offset = e.op(Op::IMul, &[number, stride], Type::I64);
    let head = e.konst(Type::I64, RESUME_HEADER.into());
    let offset = e.op(Op::IAdd, &[offset, head], Type::I64);
    let record = e.op(Op::IAdd, &[state, offset], Type::I64);
    let record = e.op(Op::IntToPtr, &[record], Type::Ptr(Space::Global));
    let never = e.konst(Type::I32, u64::from(u32::MAX));
    let limit = e.konst(Type::I32, plan.limit);
    let limit = e.op(Op::Select, &[shared, limit, never], Type::I32);
    let limit_alone = e.konst(Type::I32, plan.limit_alone);
    let limit = e.op(Op::Select, &[alone, limit_alone, limit], Type::I32);
    e.finish(first);
    func.blocks[first].term = Terminator::Branch(on, Edge::new(again), Edge::new(start));

    let mut cases = vec![(1, Edge::new(start))];
    let mut e = Emit {
        func,
        out: Vec::new(),
    };
    let status = e.load(record, Type::I32);
    let none = e.konst(Type::I32, 0);
    e.store(record, none);
    e.finish(again);

    for (number, (&check, kept)) in checks.iter().zip(&needs).enumerate() {
        let code = number as u64 + 2;
        let params = func.blocks[check].params.clone();
        let restore = func.add_block();
        cases.push((code, Edge::new(restore)));
        let mut e = Emit {
            func,
            out: Vec::new(),
        };
        let mut place = 8;
        for &value in kept {
            let ty = e.func.ty(value);
            let ty = stored(ty).unwrap_or(ty);
            let at = e.at(record, place);
            let loaded = e.load(at, ty);
            e.store(variables[&value], loaded);
            place += 8;
        }
        let mut loaded = Vec::new();
        for &ty in &types[number] {
            let at = e.at(record, place);
            loaded.push(e.load(at, stored(ty).unwrap_or(ty)));
            place += 8;
        }
        let edge = match (plan.outermost(number), &way) {
            (Some(outer), Some(way)) => {
                for (&value, &variable) in loaded.iter().zip(&way.params[number]) {
                    e.store(variable, value);
                }
                let to = e.konst(Type::I32, code);
                e.store(way.to, to);
                let args = e.any(&types[outer]);
                let block = checks[outer];
                Edge { block, args }
            }
            _ => {
                let loaded = loaded.into_iter().zip(&types[number]);
                let args = loaded.map(|(value, &ty)| e.unpack(value, ty)).collect();
                Edge { block: check, args }
            }
        };
        e.finish(restore);
        func.blocks[restore].term = Terminator::Jump(edge);

        let save = func.add_block();
        let mut e = Emit {
            func,
            out: Vec::new(),
        };
        let mut place = 8;
        let variable = |value: &Value| variables[value];
        for (value, variable) in kept.iter().map(|v| (*v, Some(variable(v)))).chain(
            // Parameters of the check are at hand, and in a variable only if another loop needs them.
            params.iter().map(|&p| (p, None)),
        ) {
            let ty = e.func.ty(value);
            let packed = match variable {
                Some(variable) => e.load(variable, stored(ty).unwrap_or(ty)),
                None => e.pack(value),
            };
            let at = e.at(record, place);
            e.store(at, packed);
            place += 8;
        }
        let status = e.konst(Type::I32, code);
        e.store(record, status);
        let round_at = e.at(record, 4);
        let round = e.load_word(round_at);
        let one = e.konst(Type::I32, 1);
        let next = e.op(Op::IAdd, &[round, one], Type::I32);
        e.store_word(round_at, next);
        let next = e.op(Op::ZExt, &[next], Type::I64);
        let size = e.konst(Type::I64, 16);
        let next = e.op(Op::IMul, &[next, size], Type::I64);
        let next = e.op(Op::IAdd, &[state, next], Type::I64);
        let next = e.op(Op::IntToPtr, &[next], Type::Ptr(Space::Global));
        e.store(next, width);
        e.finish(save);
        func.blocks[save].term = Terminator::Return(Values::new());

        let Terminator::Jump(on) = std::mem::take(&mut func.blocks[check].term) else {
            return None;
        };
        let mut e = Emit {
            func,
            out: Vec::new(),
        };
        let count = tick(&mut e, counter, plan.counts.get(&plan.headers[number]));
        let far = e.op(Op::ICmp(IntCond::Ugt), &[count, limit], Type::Bool);
        e.finish(check);
        func.blocks[check].term = Terminator::Branch(far, Edge::new(save), on);
    }
    func.blocks[again].term = Terminator::Switch(status, cases, Edge::new(over));
    if let Some(way) = &way {
        way.lead(func, plan, &checks, &types);
    }

    // Long loops inside count, too.
    for (&header, count) in &plan.counts {
        if plan.headers.contains(&header) {
            continue;
        }
        let insts = std::mem::take(&mut func.blocks[header].insts);
        let mut e = Emit {
            func,
            out: Vec::new(),
        };
        tick(&mut e, counter, Some(count));
        e.out.extend(insts);
        e.finish(header);
    }
    u32::try_from(record_bytes).ok()
}

/// Adds to the counter.
fn tick(e: &mut Emit, counter: Value, by: Option<&u64>) -> Value {
    let count = e.load(counter, Type::I32);
    let by = e.konst(Type::I32, by.copied().unwrap_or(1));
    let count = e.op(Op::IAdd, &[count, by], Type::I32);
    e.store(counter, count);
    count
}
