//! Restores SSA form after control flow was changed: where a definition no longer dominates a use,
//! block parameters carry the value there. On paths that bypass the definition they are undefined.

use crate::analysis::cfg::Cfg;
use crate::analysis::dom::DomTree;
use crate::ir::entity::{Block, Inst, SecondaryMap, Value};
use crate::ir::function::{Edge, Function, ValueDef};
use crate::ir::op::Op;
use crate::ir::types::Type;
use rustc_hash::{FxHashMap, FxHashSet};

/// A place that uses a value.
#[derive(Clone, Copy)]
enum Use {
    Inst(Block, Inst),
    Term(Block),
}

/// Runs the pass. All blocks of the layout must be reachable.
pub fn run(func: &mut Function) {
    let mut home: SecondaryMap<Inst, Option<Block>> = SecondaryMap::new();
    for &block in &func.layout {
        for &inst in &func.blocks[block].insts {
            home[inst] = Some(block);
        }
    }
    let cfg = Cfg::new(func);
    let dom = DomTree::new(&cfg);
    let def_block = |func: &Function, value: Value| match func.values[value].def {
        ValueDef::Result(inst, _) => home[inst],
        ValueDef::Param(block, _) => Some(block),
    };
    let mut broken: Vec<Value> = Vec::new();
    let mut uses: FxHashMap<Value, Vec<Use>> = FxHashMap::default();
    let mut note = |func: &Function, value: Value, at: Block, place: Use| {
        if let Some(def) = def_block(func, value) {
            if def != at && !dom.dominates(def, at) {
                let list = uses.entry(value).or_default();
                if list.is_empty() {
                    broken.push(value);
                }
                list.push(place);
            }
        }
    };
    for &block in cfg.rpo() {
        for &inst in &func.blocks[block].insts {
            for &arg in &func.insts[inst].args {
                note(func, arg, block, Use::Inst(block, inst));
            }
        }
        func.blocks[block]
            .term
            .for_each_use(|v| note(func, v, block, Use::Term(block)));
    }
    if broken.is_empty() {
        return;
    }
    let frontiers = dom.frontiers(&cfg);
    let mut undefs = FxHashMap::default();
    for value in broken {
        let Some(def) = def_block(func, value) else {
            continue;
        };
        let places = uses.remove(&value).unwrap_or_default();
        let defs = [(def, value)];
        rebuild(func, &cfg, &dom, &frontiers, &mut undefs, &defs, &places);
    }
}

/// Makes values of the entry block reach the uses of others. In each pair the first value is one
/// whose definition may be gone or may be on some paths only, and the second is a value of the
/// entry block that replaces it there. Each use gets the value that reaches it. All blocks of the
/// layout must be reachable.
pub fn bring_in(func: &mut Function, pairs: &[(Value, Value)]) {
    let Some(entry) = func.entry() else { return };
    let wanted: FxHashSet<Value> = pairs.iter().map(|&(old, _)| old).collect();
    let mut home: FxHashMap<Value, Block> = FxHashMap::default();
    for &block in &func.layout {
        let data = &func.blocks[block];
        home.extend(data.params.iter().map(|&p| (p, block)));
        for &inst in &data.insts {
            for &result in &func.insts[inst].results {
                home.insert(result, block);
            }
        }
    }
    let mut uses = uses_where(func, |value, block| {
        wanted.contains(&value) && home.get(&value) != Some(&block)
    });
    if uses.is_empty() {
        return;
    }
    let cfg = Cfg::new(func);
    let dom = DomTree::new(&cfg);
    let frontiers = dom.frontiers(&cfg);
    let mut undefs = FxHashMap::default();
    for &(old, new) in pairs {
        let Some(places) = uses.remove(&old) else {
            continue;
        };
        // The one that uses name comes first.
        let mut defs: Vec<(Block, Value)> = Vec::new();
        match home.get(&old) {
            Some(&block) => defs.extend([(block, old), (entry, new)]),
            None => defs.push((entry, old)),
        }
        if defs.len() == 1 {
            replace(func, &places, old, new);
            continue;
        }
        rebuild(func, &cfg, &dom, &frontiers, &mut undefs, &defs, &places);
    }
}

fn replace(func: &mut Function, places: &[Use], old: Value, new: Value) {
    for &place in places {
        match place {
            Use::Inst(_, inst) => {
                let args = func.insts[inst].args.iter_mut();
                args.filter(|v| **v == old).for_each(|v| *v = new);
            }
            Use::Term(block) => {
                func.blocks[block]
                    .term
                    .map_uses(|v| if v == old { new } else { v });
            }
        }
    }
}

/// Merges the definitions of some blocks and of their copies. A group is a value defined in one of
/// the `original` blocks, first, and its copies, each with the block that defines it. Each use of
/// the value outside the original blocks gets the one that reaches it. All blocks of the layout
/// must be reachable.
pub fn join_copies(func: &mut Function, original: &[Block], groups: &[Vec<(Block, Value)>]) {
    let inside: FxHashSet<Block> = original.iter().copied().collect();
    let wanted: FxHashSet<Value> = groups
        .iter()
        .filter_map(|g| g.first().map(|&(_, v)| v))
        .collect();
    let uses = uses_where(func, |value, block| {
        wanted.contains(&value) && !inside.contains(&block)
    });
    if uses.is_empty() {
        return;
    }
    rebuild_groups(func, groups, uses);
}

/// Merges several definitions of values. A group is a value, first, and what it becomes later, each
/// with the block that defines it, at most one a block. Each use outside the block that defines the
/// value itself gets the one that reaches the beginning of its block. All blocks of the layout must
/// be reachable.
pub fn redefine(func: &mut Function, groups: &[Vec<(Block, Value)>]) {
    let first = groups.iter().filter_map(|g| g.first());
    let home: FxHashMap<Value, Block> = first.map(|&(block, value)| (value, block)).collect();
    let uses = uses_where(func, |value, block| {
        home.get(&value).is_some_and(|&home| home != block)
    });
    rebuild_groups(func, groups, uses);
}

/// Returns the uses of values for which `wanted` holds in the block of the use.
fn uses_where(
    func: &Function,
    wanted: impl Fn(Value, Block) -> bool,
) -> FxHashMap<Value, Vec<Use>> {
    let mut uses: FxHashMap<Value, Vec<Use>> = FxHashMap::default();
    for &block in &func.layout {
        let mut note = |value: Value, place: Use| {
            if wanted(value, block) {
                uses.entry(value).or_default().push(place);
            }
        };
        for &inst in &func.blocks[block].insts {
            for &arg in &func.insts[inst].args {
                note(arg, Use::Inst(block, inst));
            }
        }
        func.blocks[block]
            .term
            .for_each_use(|v| note(v, Use::Term(block)));
    }
    uses
}

fn rebuild_groups(
    func: &mut Function,
    groups: &[Vec<(Block, Value)>],
    mut uses: FxHashMap<Value, Vec<Use>>,
) {
    let cfg = Cfg::new(func);
    let dom = DomTree::new(&cfg);
    let frontiers = dom.frontiers(&cfg);
    let mut undefs = FxHashMap::default();
    for defs in groups {
        let places = defs.first().and_then(|(_, value)| uses.remove(value));
        if let Some(places) = places {
            rebuild(func, &cfg, &dom, &frontiers, &mut undefs, defs, &places);
        }
    }
}

/// Replaces uses of a value by the definition that reaches them. The first of `defs` is the value
/// that they use.
fn rebuild(
    func: &mut Function,
    cfg: &Cfg,
    dom: &DomTree,
    frontiers: &SecondaryMap<Block, Vec<Block>>,
    undefs: &mut FxHashMap<Type, Value>,
    defs: &[(Block, Value)],
    places: &[Use],
) {
    let Some(&(_, value)) = defs.first() else {
        return;
    };
    let defs: FxHashMap<Block, Value> = defs.iter().copied().collect();
    let mut joins: FxHashSet<Block> = FxHashSet::default();
    let mut work: Vec<Block> = defs.keys().copied().collect();
    while let Some(block) = work.pop() {
        for &join in &frontiers[block] {
            if !defs.contains_key(&join) && joins.insert(join) {
                work.push(join);
            }
        }
    }
    let mut reader = Reader {
        ty: func.ty(value),
        defs,
        joins,
        params: FxHashMap::default(),
        todo: Vec::new(),
    };
    for &place in places {
        match place {
            Use::Inst(block, inst) => {
                let new = reader.at_start(func, dom, undefs, block);
                func.insts[inst]
                    .args
                    .iter_mut()
                    .filter(|v| **v == value)
                    .for_each(|v| *v = new);
            }
            Use::Term(block) => {
                let new = reader.at_start(func, dom, undefs, block);
                func.blocks[block]
                    .term
                    .map_uses(|v| if v == value { new } else { v });
            }
        }
    }
    while let Some(block) = reader.todo.pop() {
        let mut seen = FxHashSet::default();
        for &pred in cfg.preds(block) {
            if !seen.insert(pred) {
                continue;
            }
            let arg = reader.at_end(func, dom, undefs, pred);
            let mut term = std::mem::take(&mut func.blocks[pred].term);
            for Edge { block: to, args } in term.targets_mut() {
                if *to == block {
                    args.push(arg);
                }
            }
            func.blocks[pred].term = term;
        }
    }
}

struct Reader {
    ty: Type,
    /// The blocks with a definition, each with that definition.
    defs: FxHashMap<Block, Value>,
    joins: FxHashSet<Block>,
    params: FxHashMap<Block, Value>,
    /// The blocks whose new parameter still needs its arguments.
    todo: Vec<Block>,
}

impl Reader {
    fn at_end(
        &mut self,
        func: &mut Function,
        dom: &DomTree,
        undefs: &mut FxHashMap<Type, Value>,
        block: Block,
    ) -> Value {
        match self.defs.get(&block) {
            Some(&value) => value,
            None => self.at_start(func, dom, undefs, block),
        }
    }

    fn at_start(
        &mut self,
        func: &mut Function,
        dom: &DomTree,
        undefs: &mut FxHashMap<Type, Value>,
        block: Block,
    ) -> Value {
        let ty = self.ty;
        let mut at = block;
        loop {
            if self.joins.contains(&at) {
                if let Some(&param) = self.params.get(&at) {
                    return param;
                }
                let param = func.add_param(at, ty);
                self.params.insert(at, param);
                self.todo.push(at);
                return param;
            }
            match dom.idom(at) {
                Some(up) => match self.defs.get(&up) {
                    Some(&value) => return value,
                    None => at = up,
                },
                None => {
                    return *undefs.entry(ty).or_insert_with(|| {
                        let inst = func.make_inst(Op::Undef, [], &[ty]);
                        if let Some(entry) = func.entry() {
                            func.blocks[entry].insts.insert(0, inst);
                        }
                        func.insts[inst].results[0]
                    });
                }
            }
        }
    }
}
