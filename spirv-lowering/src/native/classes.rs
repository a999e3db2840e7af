//! Which values the work-items of a pack have in common, and where their ways part.
//!
//! A value has two classes, for the two ways of using it, and neither can be used as the other.
//!
//! - As data ([`Class`]) it is *uniform* if all work-items that are active where it is defined have the same, *affine* if that
//!   of lane n is that of lane 0 plus n times a constant, modulo 2 to the power of its bits, else *varying*.
//! - As an address ([`Reach`]) it is *strided* if that holds of the lanes that reach memory by it. This is more than
//!   the first: a value that was extended from 32 bits in which neighbours wrap around is not affine, but an object
//!   that lanes on both sides of the wrap reach would have to be larger than 32 bits can say.
//!
//! An edge is *soft* if only some of the work-items that run together take it: control goes on with the others, and those
//! wait where it leads. A loop *leaks* if it loses work-items by soft edges while others go on.

use super::strides::{affine, Class, Found, Reach};
use super::tree::{distinct, Chain, ConstructId, Edge, Item, JumpTarget, JumpTargetKind, Tree};
use super::{Packing, Region};
use crate::ir::entity::{Block, Inst, SecondaryMap, Value, Var};
use crate::ir::function::{Function, Terminator};
use crate::ir::op::{Effect, GroupOp, HwVar, Op};
use rustc_hash::{FxHashMap, FxHashSet};

/// The classes of a function's values, and where its lanes diverge.
pub struct Classes {
    values: SecondaryMap<Value, Found>,
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
struct ConstructExit {
    edge: Edge,
    from: Option<ConstructId>,
    place: Option<JumpTarget>,
}

impl Classes {
    /// Returns the classes for packs of one lane, in which nothing diverges. `constructs`: the
    /// number of constructs.
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

    /// Computes the classes of the values of a region.
    pub fn new(region: &Region, tree: &Tree, packing: Packing) -> Self {
        let Region {
            func,
            uniform,
            varying,
        } = region;
        let mut exits = Vec::new();
        collect(&tree.root, None, &mut exits);
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
            for (targets, to) in distinct(&func.blocks[block].term) {
                edges.entry(to).or_default().push((block, targets[0]));
            }
        }
        let mut places: FxHashMap<Block, JumpTarget> = FxHashMap::default();
        for l in &exits {
            if let Some(place) = l.place {
                places.insert(l.edge.to, place);
            }
        }
        if let Some(entry) = func.entry() {
            for &param in &func.blocks[entry].params {
                this.values[param] = match varying.contains(&param) {
                    true => Found::Varying,
                    false => Found::Uniform,
                };
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
            changed |= this.control(func, tree, &exits);
            changed |= this.escapes(func, tree);
            if !changed {
                return this;
            }
        }
    }

    fn set(&mut self, value: Value, found: Found) -> bool {
        let old = self.values[value];
        // Only downwards, so that this ends.
        let new = old.meet(found);
        self.values[value] = new;
        new != old
    }

    /// Returns the class of a value as data, where it is defined.
    pub fn of(&self, value: Value) -> Class {
        self.values[value].class()
    }

    /// Returns the class that a value has as data for its uses in a block.
    pub fn class(&self, tree: &Tree, value: Value, at: Block) -> Class {
        self.seen(tree, value, at).class()
    }

    /// Returns the class that a value has as an address for its uses in a block.
    pub fn reach(&self, tree: &Tree, value: Value, at: Block) -> Reach {
        self.seen(tree, value, at).reach()
    }

    /// Returns true if the block is outside of a leaking loop that defines the value.
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

    /// Returns both classes of a value for its uses in a block.
    fn seen(&self, tree: &Tree, value: Value, at: Block) -> Found {
        match self.values[value] {
            Found::Unknown => Found::Unknown,
            _ if self.escapes_to(tree, value, at) => Found::Varying,
            found => found,
        }
    }

    /// Returns true if the branch that heads a selection is divergent.
    pub fn is_divergent(&self, id: ConstructId) -> bool {
        self.divergent[id]
    }
    /// Returns true if the edge is soft.
    pub fn is_soft(&self, edge: &Edge) -> bool {
        self.soft.contains(&(edge.from, edge.index))
    }
    /// Returns true if the return at the end of a block is soft.
    pub fn is_soft_return(&self, block: Block) -> bool {
        self.soft_returns.contains(&block)
    }
    /// Returns true if lanes that enter the construct may not reach its merge block.
    pub fn is_lossy(&self, id: ConstructId) -> bool {
        self.lossy[id]
    }
    /// Returns true if lanes may leave the loop while others iterate.
    pub fn is_leaking(&self, id: ConstructId) -> bool {
        self.leaking[id]
    }
    /// Returns true if control continues with other lanes after some have taken a back edge of the
    /// loop.
    pub fn goes_back_softly(&self, id: ConstructId) -> bool {
        self.parting[id]
    }
    /// Returns true if lanes reach a block on different paths.
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
        let divergent = match place.map(|p| (p.kind, tree.constructs[p.construct].is_loop)) {
            Some((JumpTargetKind::Merge, true)) => soft,
            Some((JumpTargetKind::Merge, false)) => {
                let own = place.is_some_and(|p| self.divergent[p.construct]);
                (soft || own) && edges.len() > 1
            }
            Some((JumpTargetKind::Continue, _)) => soft && edges.len() > 1,
            _ => false,
        };
        let mut changed = divergent && self.joins.insert(block);
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
            let found = if divergent && (after_loop || !same) {
                Found::Varying
            } else {
                args.iter()
                    .zip(edges)
                    .fold(Found::Unknown, |c, (&a, &(from, _))| {
                        c.meet(self.seen(tree, a, from))
                    })
            };
            changed |= self.set(param, found);
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
    ) -> Found {
        let data = &func.insts[inst];
        let args = || data.args.iter().map(|&v| self.seen(tree, v, block));
        let all_uniform = || -> Found {
            let mut any_unknown = false;
            for class in args() {
                match class {
                    Found::Uniform => {}
                    Found::Unknown => any_unknown = true,
                    _ => return Found::Varying,
                }
            }
            if any_unknown {
                Found::Unknown
            } else {
                Found::Uniform
            }
        };
        match data.op {
            Op::Const(_) | Op::Undef | Op::GlobalAddr(_) => Found::Uniform,
            Op::Implicit(..) | Op::ArgLoad(_) | Op::SpecSize(_) | Op::Clock(_) => Found::Uniform,
            Op::Hw(var) => hw_class(var, packing),
            Op::Own { size, .. } => Found::Affine(size.into()),
            Op::Load {
                volatile: false, ..
            } => all_uniform(),
            Op::VarLoad(var) => {
                if uniform[var] {
                    Found::Uniform
                } else {
                    Found::Varying
                }
            }
            Op::Group(
                GroupOp::All
                | GroupOp::Any
                | GroupOp::AllEqual
                | GroupOp::Ballot
                | GroupOp::Reduce(_),
                _,
            ) => Found::Uniform,
            op if op.effect() == Effect::Pure => {
                let class = all_uniform();
                if class != Found::Varying {
                    return class;
                }
                let args: Vec<Found> = args().collect();
                affine(func, data.op, &data.args, &data.results, &args)
            }
            _ => Found::Varying,
        }
    }

    fn control(&mut self, func: &Function, tree: &Tree, exits: &[ConstructExit]) -> bool {
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
            if !matches!(class, Found::Uniform | Found::Unknown) {
                self.divergent[id] = true;
                changed = true;
            }
        }
        loop {
            let mut again = false;
            // Places where lanes wait, as far as is known.
            let waiting: FxHashSet<JumpTarget> = exits
                .iter()
                .filter(|l| self.soft.contains(&(l.edge.from, l.edge.index)))
                .filter_map(|l| l.place)
                .collect();
            let waits = |construct, kind| waiting.contains(&JumpTarget { construct, kind });
            let mut found = Vec::new();
            for l in exits {
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

/// Returns true if a construct is within another, or is that one.
pub fn inside(tree: &Tree, mut inner: Option<ConstructId>, outer: ConstructId) -> bool {
    while let Some(id) = inner {
        if id == outer {
            return true;
        }
        inner = tree.constructs[id].parent;
    }
    false
}

/// Returns true if an operation has the same result wherever it is executed.
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
            | Op::Own { .. }
    )
}

fn collect(chain: &Chain, from: Option<ConstructId>, out: &mut Vec<ConstructExit>) {
    for item in &chain.items {
        match item {
            Item::Code(_) | Item::Unreachable => {}
            Item::Edge(edge) => {
                if edge.place.is_some() {
                    out.push(ConstructExit {
                        edge: *edge,
                        from,
                        place: edge.place,
                    });
                }
            }
            Item::Return(block) => out.push(ConstructExit {
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
                    collect(&arm.body, Some(select.construct), out);
                }
            }
            Item::Loop(l) => {
                collect(&l.body, Some(l.construct), out);
                collect(&l.latch, Some(l.construct), out);
            }
        }
    }
}

fn hw_class(var: HwVar, packing: Packing) -> Found {
    match var {
        HwVar::LocalInvocationIndex | HwVar::SubgroupInvocationId => Found::Affine(1),
        HwVar::LocalInvocationId(_) if packing == Packing::Linear => Found::Varying,
        HwVar::LocalInvocationId(0) => Found::Affine(1),
        HwVar::WorkgroupId(0) if packing == Packing::Groups => Found::Affine(1),
        _ => Found::Uniform,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::entity::Entity;
    use crate::ir::parse::parse_function;
    use crate::native::regions;

    /// Returns the classes of the values of a function, by their numbers.
    fn classes(text: &str, values: &[u32]) -> Vec<(Class, Reach)> {
        let func = parse_function(text).unwrap();
        let region = regions::split(&func, Packing::Rows).unwrap().remove(0);
        let tree = Tree::new(&region.func).unwrap();
        let found = Classes::new(&region, &tree, Packing::Rows);
        let of = |&number: &u32| {
            let value = Value::new(number as usize);
            (found.of(value), found.values[value].reach())
        };
        values.iter().map(of).collect()
    }

    /// An extended sum may wrap around between lanes: it has a stride as an address alone, also as a parameter of a block.
    #[test]
    fn extended_values_are_affine_as_addresses_alone() {
        let text = "func fn0 \"f\" () -> () {
block0:
  v0 = hw.local_invocation_id.0 : i32
  v1 = arg_load.0 : i32
  v2 = iadd v0, v1 : i32
  v3 = zext v0 : i64
  v4 = zext v2 : i64
  v5 = const 1 : i64
  v6 = const 24 : i32
  v7 = shl v0, v6 : i32
  v8 = ashr v7, v6 : i32
  jump block1(v3, v4)
block1(v9: i64, v10: i64):
  v11 = iadd v9, v5 : i64
  v12 = iadd v10, v5 : i64
  v13 = icmp.eq v1, v6 : bool
  br v13, block1(v11, v12), block2
block2:
  return
}
";
        let affine = (Class::Affine(1), Reach::Strided(1));
        let address = (Class::Varying, Reach::Strided(1));
        let neither = (Class::Varying, Reach::Scattered);
        let found = classes(text, &[2, 3, 4, 8]);
        assert_eq!(found, [affine, affine, address, neither]);
        let found: Vec<_> = classes(text, &(9..30).collect::<Vec<_>>());
        assert!(
            found.contains(&affine) && found.contains(&address),
            "{found:?}"
        );
        assert!(!found.contains(&neither), "{found:?}");
    }

    /// Sums of ids are ids only where they are those of one dimension, each once.
    #[test]
    fn ids_are_sums_of_their_parts() {
        let extended = |second: &str, third: &str| {
            let text = format!(
                "func fn0 \"f\" () -> () {{
block0:
  v0 = hw.local_invocation_id.0 : i32
  v1 = hw.workgroup_id.0 : i32
  v2 = hw.workgroup_size.0 : i32
  v3 = imul v1, v2 : i32
  v4 = {second} : i32
  v5 = iadd v0, v4 : i32
  v6 = {third} : i32
  v7 = iadd v5, v6 : i32
  v8 = sext v7 : i64
  return
}}
"
            );
            classes(&text, &[8])[0].0
        };
        let base = "implicit.global_base.0";
        assert_eq!(extended("imul v1, v2", base), Class::Affine(1));
        assert_eq!(
            extended("imul v1, v2", "implicit.global_size.0"),
            Class::Varying
        );
        assert_eq!(
            extended("imul v1, v2", "implicit.global_base.1"),
            Class::Varying
        );
        assert_eq!(extended(base, base), Class::Varying);
    }
}
