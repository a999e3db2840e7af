//! Which values the work-items of a pack have in common, and where their ways part.
//!
//! A value is *uniform* if all work-items that are active where it is defined have the same, *affine* if that of lane n is
//! that of lane 0 plus n times a constant, else *varying*. Affine values whose type is wider than that in which they were
//! computed are *loose*: they are affine for lanes between which the narrow one does not wrap around, which are all that
//! can reach memory by them (an object would have to be larger than the narrow type can say).
//!
//! An edge is *soft* if only some of the work-items that run together take it: control goes on with the others, and those
//! wait where it leads. A loop *leaks* if it loses work-items by soft edges while others go on.

use super::tree::{Chain, ConstructId, Edge, Item, JumpTarget, JumpTargetKind, Tree};
use super::Packing;
use crate::ir::entity::{Block, Inst, SecondaryMap, Value, Var};
use crate::ir::fold::sext;
use crate::ir::function::{Function, Terminator};
use crate::ir::op::{Effect, GroupOp, HwVar, Op};
use crate::ir::types::Type;
use rustc_hash::{FxHashMap, FxHashSet};

/// See the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs)]
pub enum Class {
    /// Nothing is known yet.
    #[default]
    Unknown,
    Uniform,
    Affine {
        stride: i64,
        loose: bool,
    },
    Varying,
}

impl Class {
    fn meet(self, other: Self) -> Self {
        match (self, other) {
            (Self::Unknown, c) | (c, Self::Unknown) => c,
            (Self::Uniform, Self::Uniform) => Self::Uniform,
            // Between blocks the first active lane counts: what it says is affine for the others.
            (Self::Affine { stride: a, .. }, Self::Affine { stride: b, .. }) if a == b => {
                Self::Affine {
                    stride: a,
                    loose: false,
                }
            }
            _ => Self::Varying,
        }
    }

    /// The difference between neighbours, 0 for uniform ones.
    fn stride(self) -> Option<(i64, bool)> {
        match self {
            Self::Uniform => Some((0, false)),
            Self::Affine { stride, loose } => Some((stride, loose)),
            _ => None,
        }
    }
}

/// What is found out.
pub struct Classes {
    values: SecondaryMap<Value, Class>,
    /// The innermost construct around the definition of each value; None too for what is the same everywhere.
    homes: SecondaryMap<Value, Option<ConstructId>>,
    /// Values that are used outside of a leaking loop that defines them: each lane has that of its last iteration.
    pub escaping: FxHashSet<Value>,
    divergent: Vec<bool>,
    soft: FxHashSet<(Block, usize)>,
    soft_returns: FxHashSet<Block>,
    /// For each construct: some edge within it is soft and leads out of it.
    lossy: Vec<bool>,
    /// For each loop: some edge within it is soft and leads to its merge block or out of it.
    leaking: Vec<bool>,
    /// For each loop: an edge back to its header is soft.
    parting: Vec<bool>,
    joins: FxHashSet<Block>,
}

/// An edge to a place, or a return (None), and the innermost construct that it leaves from.
struct Leaving {
    edge: Edge,
    from: Option<ConstructId>,
    place: Option<JumpTarget>,
}

impl Classes {
    /// Those of one lane: nothing differs from it. `constructs`: how many there are.
    pub fn of_one_lane(constructs: usize) -> Self {
        Self {
            values: SecondaryMap::new(),
            homes: SecondaryMap::new(),
            escaping: FxHashSet::default(),
            divergent: vec![false; constructs],
            soft: FxHashSet::default(),
            soft_returns: FxHashSet::default(),
            lossy: vec![false; constructs],
            leaking: vec![false; constructs],
            parting: vec![false; constructs],
            joins: FxHashSet::default(),
        }
    }

    /// Computes them. `uniform`: variables that have one element for all lanes.
    pub fn new(
        func: &Function,
        tree: &Tree,
        packing: Packing,
        uniform: &SecondaryMap<Var, bool>,
    ) -> Self {
        let mut leaving = Vec::new();
        collect(&tree.root, None, &mut leaving);
        let mut this = Self::of_one_lane(tree.constructs.len());
        let mut edges: FxHashMap<Block, Vec<(Block, usize)>> = FxHashMap::default();
        for &block in &func.layout {
            for &param in &func.blocks[block].params {
                this.homes[param] = tree.home[block];
            }
            for &inst in &func.blocks[block].insts {
                if !is_invariant(func.insts[inst].op) {
                    for &result in &func.insts[inst].results {
                        this.homes[result] = tree.home[block];
                    }
                }
            }
            for (i, target) in func.blocks[block].term.targets().iter().enumerate() {
                edges.entry(target.block).or_default().push((block, i));
            }
        }
        let mut places: FxHashMap<Block, JumpTarget> = FxHashMap::default();
        for l in &leaving {
            if let Some(place) = l.place {
                places.insert(l.edge.to, place);
            }
        }
        if let Some(entry) = func.entry() {
            for &param in &func.blocks[entry].params {
                this.values[param] = Class::Uniform;
            }
        }
        loop {
            let mut changed = false;
            for &block in &func.layout {
                changed |= this.params(func, tree, block, &edges, &places);
                for &inst in &func.blocks[block].insts {
                    let class = this.instruction(func, tree, (block, inst), packing, uniform);
                    for &result in &func.insts[inst].results {
                        changed |= this.set(result, class);
                    }
                }
            }
            changed |= this.control(func, tree, &leaving);
            changed |= this.escapes(func, tree);
            if !changed {
                return this;
            }
        }
    }

    fn set(&mut self, value: Value, class: Class) -> bool {
        let old = self.values[value];
        // Only downwards, so that this ends.
        let new = match (old, class) {
            (Class::Varying, _) => Class::Varying,
            (Class::Unknown, c) => c,
            (o, Class::Unknown) => o,
            (o, c) if o == c => o,
            (
                Class::Affine { stride: a, .. },
                Class::Affine {
                    stride: b,
                    loose: true,
                },
            ) if a == b => Class::Affine {
                stride: a,
                loose: true,
            },
            (
                Class::Affine {
                    stride: a,
                    loose: true,
                },
                Class::Affine { stride: b, .. },
            ) if a == b => old,
            _ => Class::Varying,
        };
        self.values[value] = new;
        new != old
    }

    /// The class of a value where it is defined.
    pub fn of(&self, value: Value) -> Class {
        match self.values[value] {
            Class::Unknown => Class::Uniform,
            class => class,
        }
    }

    /// Is the value used in a block outside of a leaking loop that defines it?
    pub fn escapes_to(&self, tree: &Tree, value: Value, at: Block) -> bool {
        let mut from = self.homes[value];
        while let Some(id) = from {
            if self.leaking[id] && !inside(tree, tree.home[at], id) {
                return true;
            }
            from = tree.constructs[id].parent;
        }
        false
    }

    /// The class that a value has for those who use it in a block.
    fn seen(&self, tree: &Tree, value: Value, at: Block) -> Class {
        match self.values[value] {
            Class::Unknown => Class::Unknown,
            _ if self.escapes_to(tree, value, at) => Class::Varying,
            class => class,
        }
    }

    /// Does the branch that heads a selection part the lanes?
    pub fn is_divergent(&self, id: ConstructId) -> bool {
        self.divergent[id]
    }
    /// Is the edge soft?
    pub fn is_soft(&self, edge: &Edge) -> bool {
        self.soft.contains(&(edge.from, edge.index))
    }
    /// Is the return at the end of a block soft?
    pub fn is_soft_return(&self, block: Block) -> bool {
        self.soft_returns.contains(&block)
    }
    /// Can lanes enter the construct and not get to its merge block?
    pub fn is_lossy(&self, id: ConstructId) -> bool {
        self.lossy[id]
    }
    /// Can lanes leave the loop while others go on in it?
    pub fn is_leaking(&self, id: ConstructId) -> bool {
        self.leaking[id]
    }
    /// Does control go on to others after lanes went back to the header of the loop?
    pub fn goes_back_softly(&self, id: ConstructId) -> bool {
        self.parting[id]
    }
    /// Do lanes come to a block on different ways?
    pub fn is_join(&self, block: Block) -> bool {
        self.joins.contains(&block)
    }

    fn params(
        &mut self,
        func: &Function,
        tree: &Tree,
        block: Block,
        edges: &FxHashMap<Block, Vec<(Block, usize)>>,
        places: &FxHashMap<Block, JumpTarget>,
    ) -> bool {
        let Some(edges) = edges.get(&block) else {
            return false;
        };
        let place = places.get(&block);
        let soft = edges.iter().any(|e| self.soft.contains(e));
        let apart = match place.map(|p| (p.kind, tree.constructs[p.construct].is_loop)) {
            Some((JumpTargetKind::Merge, true)) => soft,
            Some((JumpTargetKind::Merge, false)) => {
                let own = place.is_some_and(|p| self.divergent[p.construct]);
                (soft || own) && edges.len() > 1
            }
            Some((JumpTargetKind::Continue, _)) => soft && edges.len() > 1,
            _ => false,
        };
        let mut changed = apart && self.joins.insert(block);
        let after_loop = matches!(place, Some(p) if p.kind == JumpTargetKind::Merge && tree.constructs[p.construct].is_loop);
        for (i, &param) in func.blocks[block].params.iter().enumerate() {
            let args: Vec<Value> = edges
                .iter()
                .filter_map(|&(from, index)| {
                    let targets = func.blocks[from].term.targets();
                    targets.get(index).and_then(|t| t.args.get(i)).copied()
                })
                .collect();
            let same = args.windows(2).all(|w| w[0] == w[1]);
            let class = if apart && (after_loop || !same) {
                Class::Varying
            } else {
                args.iter()
                    .zip(edges)
                    .fold(Class::Unknown, |c, (&a, &(from, _))| {
                        c.meet(self.seen(tree, a, from))
                    })
            };
            let class = match class {
                // One base in a register stands for integers and pointers alone.
                Class::Affine { .. } if !may_be_affine(func.ty(param)) => Class::Varying,
                Class::Affine { stride, .. } => Class::Affine {
                    stride,
                    loose: false,
                },
                c => c,
            };
            changed |= self.set(param, class);
        }
        changed
    }

    fn instruction(
        &self,
        func: &Function,
        tree: &Tree,
        (block, inst): (Block, Inst),
        packing: Packing,
        uniform: &SecondaryMap<Var, bool>,
    ) -> Class {
        let data = &func.insts[inst];
        let args = || data.args.iter().map(|&v| self.seen(tree, v, block));
        let all_uniform = || -> Class {
            let mut any_unknown = false;
            for class in args() {
                match class {
                    Class::Uniform => {}
                    Class::Unknown => any_unknown = true,
                    _ => return Class::Varying,
                }
            }
            if any_unknown {
                Class::Unknown
            } else {
                Class::Uniform
            }
        };
        match data.op {
            Op::Const(_) | Op::Undef | Op::GlobalAddr(_) => Class::Uniform,
            Op::Implicit(..) | Op::ArgLoad(_) | Op::SpecSize(_) | Op::Clock(_) => Class::Uniform,
            Op::Hw(var) => hw_class(var, packing),
            Op::Load {
                volatile: false, ..
            } => match all_uniform() {
                Class::Uniform => Class::Uniform,
                c => c,
            },
            Op::VarLoad(var) => {
                if uniform[var] {
                    Class::Uniform
                } else {
                    Class::Varying
                }
            }
            Op::Group(
                GroupOp::All
                | GroupOp::Any
                | GroupOp::AllEqual
                | GroupOp::Ballot
                | GroupOp::Reduce(_),
                _,
            ) => Class::Uniform,
            op if op.effect() == Effect::Pure => {
                let class = all_uniform();
                if class != Class::Varying {
                    return class;
                }
                let args: Vec<Class> = args().collect();
                affine(func, data.op, &data.args, &data.results, &args)
            }
            _ => Class::Varying,
        }
    }

    fn control(&mut self, func: &Function, tree: &Tree, leaving: &[Leaving]) -> bool {
        let mut changed = false;
        for (id, construct) in tree.constructs.iter().enumerate() {
            if construct.is_loop || self.divergent[id] {
                continue;
            }
            let cond = match &func.blocks[construct.block].term {
                Terminator::Branch(v, ..) | Terminator::Switch(v, ..) => *v,
                _ => continue,
            };
            let class = self.seen(tree, cond, construct.block);
            if !matches!(class, Class::Uniform | Class::Unknown) {
                self.divergent[id] = true;
                changed = true;
            }
        }
        loop {
            let mut again = false;
            // Places where lanes wait, as far as is known.
            let waiting: FxHashSet<JumpTarget> = leaving
                .iter()
                .filter(|l| self.soft.contains(&(l.edge.from, l.edge.index)))
                .filter_map(|l| l.place)
                .collect();
            let waits = |construct, kind| waiting.contains(&JumpTarget { construct, kind });
            let mut found = Vec::new();
            for l in leaving {
                let known = match l.place {
                    Some(_) => self.soft.contains(&(l.edge.from, l.edge.index)),
                    None => self.soft_returns.contains(&l.edge.from),
                };
                if known {
                    continue;
                }
                let mut soft = false;
                let mut at = l.from;
                while let Some(id) = at {
                    let here = tree.constructs[id];
                    if l.place.is_some_and(|p| p.construct == id) {
                        let kind = l.place.map(|p| p.kind);
                        soft |= if here.is_loop {
                            kind == Some(JumpTargetKind::Merge)
                                && waits(id, JumpTargetKind::Continue)
                        } else {
                            self.divergent[id]
                        };
                        break;
                    }
                    soft |= waits(id, JumpTargetKind::Merge)
                        || if here.is_loop {
                            waits(id, JumpTargetKind::Continue)
                        } else {
                            self.divergent[id]
                        };
                    at = here.parent;
                }
                if soft {
                    found.push(l);
                }
            }
            for l in found {
                again = true;
                match l.place {
                    Some(_) => self.soft.insert((l.edge.from, l.edge.index)),
                    None => self.soft_returns.insert(l.edge.from),
                };
                if let Some(place) = l.place.filter(|p| p.kind == JumpTargetKind::Header) {
                    self.parting[place.construct] = true;
                }
                let mut at = l.from;
                while let Some(id) = at {
                    if let Some(place) = l.place.filter(|p| p.construct == id) {
                        if tree.constructs[id].is_loop && place.kind == JumpTargetKind::Merge {
                            self.leaking[id] = true;
                        }
                        break;
                    }
                    self.lossy[id] = true;
                    self.leaking[id] |= tree.constructs[id].is_loop;
                    at = tree.constructs[id].parent;
                }
            }
            changed |= again;
            if !again {
                return changed;
            }
        }
    }

    fn escapes(&mut self, func: &Function, tree: &Tree) -> bool {
        let mut changed = false;
        let mut note = |value: Value, at: Block| {
            if !self.escaping.contains(&value) && self.escapes_to(tree, value, at) {
                changed |= self.escaping.insert(value);
            }
        };
        for &block in &func.layout {
            for &inst in &func.blocks[block].insts {
                func.insts[inst].args.iter().for_each(|&v| note(v, block));
            }
            func.blocks[block].term.for_each_use(|v| note(v, block));
        }
        changed
    }
}

/// Does a construct lie in another?
pub fn inside(tree: &Tree, mut inner: Option<ConstructId>, outer: ConstructId) -> bool {
    while let Some(id) = inner {
        if id == outer {
            return true;
        }
        inner = tree.constructs[id].parent;
    }
    false
}

/// Operations that give the same wherever they stand.
pub fn is_invariant(op: Op) -> bool {
    matches!(
        op,
        Op::Const(_)
            | Op::Undef
            | Op::GlobalAddr(_)
            | Op::Implicit(..)
            | Op::ArgLoad(_)
            | Op::SpecSize(_)
            | Op::Hw(_)
    )
}

fn collect(chain: &Chain, from: Option<ConstructId>, out: &mut Vec<Leaving>) {
    for item in &chain.items {
        match item {
            Item::Code(_) | Item::Unreachable => {}
            Item::Edge(edge) => {
                if edge.place.is_some() {
                    out.push(Leaving {
                        edge: *edge,
                        from,
                        place: edge.place,
                    });
                }
            }
            Item::Return(block) => out.push(Leaving {
                edge: Edge {
                    from: *block,
                    index: 0,
                    to: *block,
                    place: None,
                },
                from,
                place: None,
            }),
            Item::Select(select) => {
                for arm in &select.arms {
                    collect(arm, Some(select.construct), out);
                }
            }
            Item::Loop(l) => {
                collect(&l.body, Some(l.construct), out);
                collect(&l.latch, Some(l.construct), out);
            }
        }
    }
}

fn hw_class(var: HwVar, packing: Packing) -> Class {
    let next = Class::Affine {
        stride: 1,
        loose: false,
    };
    match var {
        HwVar::LocalInvocationIndex | HwVar::SubgroupInvocationId => next,
        HwVar::LocalInvocationId(_) if packing == Packing::Linear => Class::Varying,
        HwVar::LocalInvocationId(0) => next,
        HwVar::WorkgroupId(0) if packing == Packing::Groups => next,
        _ => Class::Uniform,
    }
}

fn may_be_affine(ty: Type) -> bool {
    ty.is_int() || ty.is_ptr()
}

/// The most that lanes may be apart.
const WIDEST: i64 = 1 << 62;

fn affine(func: &Function, op: Op, args: &[Value], results: &[Value], classes: &[Class]) -> Class {
    let Some(&result) = results.first() else {
        return Class::Varying;
    };
    if classes.contains(&Class::Unknown) {
        return Class::Unknown;
    }
    if !may_be_affine(func.ty(result)) {
        return Class::Varying;
    }
    let constant = |i: usize| {
        let value = *args.get(i)?;
        let bits = func.as_const(value)?;
        Some(sext(func.ty(value), bits))
    };
    let stride = |i: usize| classes.get(i).and_then(|c| c.stride());
    let found = (|| match op {
        Op::IAdd | Op::PtrAdd => {
            let ((a, x), (b, y)) = (stride(0)?, stride(1)?);
            Some((a.checked_add(b)?, x | y))
        }
        Op::ISub => {
            let ((a, x), (b, y)) = (stride(0)?, stride(1)?);
            Some((a.checked_sub(b)?, x | y))
        }
        Op::INeg => stride(0).map(|(a, x)| (-a, x)),
        Op::IMul => {
            let ((a, x), by) = match (constant(0), constant(1)) {
                (_, Some(by)) => (stride(0)?, by),
                (Some(by), _) => (stride(1)?, by),
                _ => return None,
            };
            Some((a.checked_mul(by)?, x))
        }
        Op::Shl => {
            let by = constant(1).filter(|by| (0..62).contains(by))?;
            let (a, x) = stride(0)?;
            Some((a.checked_mul(1 << by)?, x))
        }
        // The lower bits alone, extended again.
        Op::AShr | Op::LShr => {
            let by = constant(1).filter(|by| (0..=32).contains(by))?;
            let shifted = &func.insts[func.def_inst(args[0])?];
            let before = shifted.args.get(1).and_then(|&v| func.as_const(v));
            if shifted.op != Op::Shl || before != Some(by as u64) {
                return None;
            }
            let (a, _) = stride(0)?;
            Some((a >> by, true))
        }
        Op::And if constant(1) == Some(0xffff_ffff) => stride(0).map(|(a, _)| (a, true)),
        Op::ZExt | Op::SExt if func.ty(args[0]) != Type::Bool => {
            let (a, x) = stride(0)?;
            Some((a, x || !is_identity(func, args[0])))
        }
        Op::Trunc => {
            let (a, x) = stride(0)?;
            let bits = func.ty(result).bits();
            if bits < 32 {
                return None;
            }
            Some((a, x))
        }
        Op::PtrToInt | Op::IntToPtr | Op::SpaceCast => stride(0),
        Op::Bitcast if may_be_affine(func.ty(args[0])) => stride(0),
        _ => None,
    })();
    match found {
        Some((0, false)) => Class::Uniform,
        Some((stride, loose)) if stride != 0 && stride.abs() <= WIDEST => {
            Class::Affine { stride, loose }
        }
        _ => Class::Varying,
    }
}

/// An id of a work-item: within 32 bits for all that there are.
fn is_identity(func: &Function, value: Value) -> bool {
    let Some(inst) = func.def_inst(value) else {
        return false;
    };
    let data = &func.insts[inst];
    match data.op {
        Op::Hw(_) | Op::Implicit(..) => true,
        Op::IAdd => data.args.iter().all(|&a| is_identity(func, a)),
        Op::IMul => data.args.iter().all(|&a| {
            func.def_inst(a).is_some_and(|i| {
                matches!(
                    func.insts[i].op,
                    Op::Hw(HwVar::WorkgroupId(_) | HwVar::WorkgroupSize(_))
                )
            })
        }),
        _ => false,
    }
}
