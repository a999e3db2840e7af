//! Passes values of a loop through the parameters of the block after it. On the affected driver,
//! lanes of a vector that have left a loop run along with those that iterate, and a value that is
//! no parameter is computed for them again in each iteration, so that after the loop it belongs to
//! an iteration which was not theirs. The argument of a parameter is written only for the lanes
//! that take the edge.
//!
//! Mesa removes a parameter to which every edge passes the same value. So a loop that may have one
//! ([`may_be_congruent`]) gets a further exit, at its head, which no work-item ever takes and which
//! passes zeros. So does a loop that stores to a private array which is read after it, as Mesa
//! makes values of elements that it can distinguish. Parameters of headers need nothing, nor do
//! values without operands, nor loops with a uniform exit ([`uniform_exits`]), those with barriers
//! among them: NIR unrolls such loops, which a further exit would prevent.

use crate::analysis::cfg::Cfg;
use crate::analysis::congruent::may_be_congruent;
use crate::analysis::dom::DomTree;
use crate::analysis::uniform_exits;
use crate::ir::entity::{Block, Inst, SecondaryMap, Value, Var};
use crate::ir::function::{Edge, Function, Merge, Storage, Terminator, ValueDef, Values};
use crate::ir::op::{Effect, HwVar, IntCond, Op};
use crate::ir::types::Type;
use rustc_hash::{FxHashMap, FxHashSet};

/// More values than these are not compared with one another.
const MOST: usize = 64;

/// Runs the pass, on structured control flow. Returns whether anything changed.
pub fn run(func: &mut Function) -> bool {
    let Some((mut results, cfg)) = Results::find(func) else {
        return false;
    };
    // Inner loops stand behind outer ones.
    for at in (0..results.loops.len()).rev() {
        results.bring_out(func, &cfg, at);
    }
    if results.left.is_empty() {
        return false;
    }
    results.rename(func);
    results.leave(func);
    true
}

/// A loop.
struct Loop {
    header: Block,
    merge: Block,
    /// The blocks that lead to the one behind it.
    preds: Vec<Block>,
    /// The innermost one around it.
    parent: Option<usize>,
    /// All its work-items leave it together.
    uniform_exit: bool,
    /// The values that are defined in it and used outside of the innermost loop of their
    /// definition.
    crossing: Vec<Value>,
    /// The values that are stored to private arrays in it, except in inner loops that have a
    /// further exit.
    stored: Vec<(Var, Value)>,
}

struct Results {
    loops: Vec<Loop>,
    /// The innermost loop of each block.
    of: SecondaryMap<Block, Option<usize>>,
    /// The innermost loop that a value is defined in.
    home: SecondaryMap<Value, Option<usize>>,
    /// The blocks that read a private array.
    readers: FxHashMap<Var, Vec<Block>>,
    /// The blocks that use a value outside of that loop.
    users: FxHashMap<Value, Vec<Block>>,
    /// Values that are right behind loops: parameters that stay parameters, and those without operands.
    safe: FxHashSet<Value>,
    /// The parameter behind a loop that stands for a value.
    brought: FxHashMap<(usize, Value), Value>,
    /// The loops with a further exit.
    left: Vec<usize>,
}

impl Results {
    /// None: there are no loops.
    fn find(func: &Function) -> Option<(Self, Cfg)> {
        let structure = func.structure.as_ref()?;
        let merge_of = |block: Block| match structure.merges[block] {
            Some(Merge::Loop { merge, .. }) => Some(merge),
            _ => None,
        };
        if !func.layout.iter().any(|&block| merge_of(block).is_some()) {
            return None;
        }
        let cfg = Cfg::new(func);
        let dom = DomTree::new(&cfg);
        let uniform = uniform_exits::headers(func, &cfg, &dom);
        let mut this = Self {
            loops: Vec::new(),
            of: SecondaryMap::new(),
            home: SecondaryMap::new(),
            readers: FxHashMap::default(),
            users: FxHashMap::default(),
            safe: FxHashSet::default(),
            brought: FxHashMap::default(),
            left: Vec::new(),
        };
        for &block in cfg.rpo() {
            let up = dom.idom(block);
            // Of what dominates a block, only headers and merge blocks change the loop.
            let mut of = up.and_then(|up| this.of[up]);
            while let Some(l) = of.filter(|&l| dom.dominates(this.loops[l].merge, block)) {
                of = this.loops[l].parent;
            }
            if let Some(merge) = merge_of(block) {
                let mut preds = cfg.preds(merge).to_vec();
                preds.sort_unstable();
                preds.dedup();
                this.loops.push(Loop {
                    header: block,
                    merge,
                    preds,
                    parent: of,
                    uniform_exit: uniform.contains(&block),
                    crossing: Vec::new(),
                    stored: Vec::new(),
                });
                of = Some(this.loops.len() - 1);
                this.safe.extend(func.blocks[block].params.iter().copied());
            }
            this.of[block] = of;
        }
        this.definitions(func, &cfg);
        this.uses(func, &cfg);
        Some((this, cfg))
    }

    fn definitions(&mut self, func: &Function, cfg: &Cfg) {
        for &block in cfg.rpo() {
            let home = self.of[block];
            let data = &func.blocks[block];
            for &param in &data.params {
                self.home[param] = home;
            }
            for &inst in &data.insts {
                let data = &func.insts[inst];
                for &result in &data.results {
                    self.home[result] = home;
                }
                if data.args.is_empty() && data.op.effect() == Effect::Pure {
                    self.safe.extend(data.results.iter().copied());
                }
                match data.op {
                    Op::Barrier { .. } => {
                        let mut at = home;
                        while let Some(l) = at {
                            self.loops[l].uniform_exit = true;
                            at = self.loops[l].parent;
                        }
                    }
                    Op::VarLoad(var) => {
                        let readers = self.readers.entry(var).or_default();
                        if readers.last() != Some(&block) {
                            readers.push(block);
                        }
                    }
                    Op::VarStore(var) if func.vars[var].storage == Storage::Function => {
                        if let Some(l) = home {
                            let values = data.args[1..].iter().map(|&value| (var, value));
                            self.loops[l].stored.extend(values);
                        }
                    }
                    _ => {}
                }
            }
        }
    }

    fn uses(&mut self, func: &Function, cfg: &Cfg) {
        for &block in cfg.rpo() {
            let mut note = |value: Value| {
                let Some(l) = self.home[value] else {
                    return;
                };
                if !self.contains(l, block) {
                    let users = self.users.entry(value).or_default();
                    if users.is_empty() {
                        self.loops[l].crossing.push(value);
                    }
                    if users.last() != Some(&block) {
                        users.push(block);
                    }
                }
            };
            for &inst in &func.blocks[block].insts {
                func.insts[inst].args.iter().for_each(|&v| note(v));
            }
            func.blocks[block].term.for_each_use(note);
        }
    }

    fn contains(&self, l: usize, block: Block) -> bool {
        let mut at = self.of[block];
        // Loops that are inside others have greater numbers.
        while let Some(inner) = at.filter(|&inner| inner > l) {
            at = self.loops[inner].parent;
        }
        at == Some(l)
    }

    /// Returns the value that replaces `value` in a block.
    fn name(&self, mut value: Value, block: Block) -> Value {
        let mut at = self.home[value];
        while let Some(l) = at.filter(|&l| !self.contains(l, block)) {
            value = self.brought.get(&(l, value)).copied().unwrap_or(value);
            at = self.loops[l].parent;
        }
        value
    }

    /// Gives the block behind a loop a parameter for each value of the loop that is used there or further on, if one is wrong
    /// without. What leaves the loop around it as well is left to that.
    fn bring_out(&mut self, func: &mut Function, cfg: &Cfg, at: usize) {
        let crossing = std::mem::take(&mut self.loops[at].crossing);
        let preds = std::mem::take(&mut self.loops[at].preds);
        let Loop {
            header,
            merge,
            parent,
            uniform_exit,
            ..
        } = self.loops[at];
        let wrong_edge = self.wrong_edge(func, cfg, at, &preds);
        let stored = std::mem::take(&mut self.loops[at].stored);
        let needed = wrong_edge
            || crossing.iter().any(|v| !self.safe.contains(v))
            || self.wrong_store(at, &stored);
        let leaves = needed && !uniform_exit && !preds.is_empty();
        for value in crossing {
            let users = self.users.remove(&value).unwrap_or_default();
            let mut name = value;
            // The header's own parameters reach the block behind, by whichever exit.
            if leaves && !func.blocks[header].params.contains(&value) {
                name = func.add_param(merge, func.ty(value));
                for &pred in &preds {
                    for target in func.blocks[pred].term.targets_mut() {
                        if target.block == merge {
                            target.args.push(value);
                        }
                    }
                }
                self.brought.insert((at, value), name);
                self.home[name] = parent;
                self.safe.insert(name);
            }
            if let Some(up) = parent {
                let outside: Vec<Block> = (users.into_iter())
                    .filter(|&b| !self.contains(up, b))
                    .collect();
                if !outside.is_empty() {
                    self.loops[up].crossing.push(name);
                    self.users.insert(name, outside);
                }
            }
        }
        if leaves {
            self.safe.extend(func.blocks[merge].params.iter().copied());
            self.left.push(at);
        } else if let Some(up) = parent {
            self.loops[up].stored.extend(stored);
        }
    }

    /// Returns true if a loop stores what is wrong behind it to an array that is read there.
    fn wrong_store(&self, at: usize, stored: &[(Var, Value)]) -> bool {
        let wrong = stored.iter().filter(|(_, v)| !self.safe.contains(v));
        let vars: FxHashSet<Var> = wrong.map(|&(var, _)| var).collect();
        let mut readers = vars
            .iter()
            .filter_map(|var| self.readers.get(var))
            .flatten();
        readers.any(|&block| !self.contains(at, block))
    }

    /// Returns true if a parameter of the block behind a loop is none to Mesa, and what it stands
    /// for wrong there.
    fn wrong_edge(&self, func: &Function, cfg: &Cfg, at: usize, preds: &[Block]) -> bool {
        let Loop { header, merge, .. } = self.loops[at];
        (0..func.blocks[merge].params.len()).any(|i| {
            let wrong = |value: Value| {
                let inside =
                    self.home[value].is_some_and(|l| self.contains(at, self.loops[l].header));
                inside && !self.safe.contains(&value)
            };
            // By one way out: it is what that brings, which may be chosen without a branch.
            if let &[pred] = preds {
                let targets = func.blocks[pred].term.targets();
                let mut args = targets.iter().filter(|t| t.block == merge);
                return args.any(|t| wrong(self.name(t.args[i], pred)));
            }
            let mut brought = Vec::new();
            let mut seen = FxHashSet::default();
            for &pred in preds {
                let edge = (pred, merge, i);
                self.bring(func, cfg, edge, header, &mut seen, &mut brought);
            }
            // Ways that Mesa finds out to be never taken may leave one alone of two.
            let several = (3..=MOST).contains(&brought.len());
            let mut pairs = (brought.iter().enumerate())
                .flat_map(|(n, &a)| brought[..n].iter().map(move |&b| (a, b)));
            let distinct = several && pairs.all(|(a, b)| !may_be_congruent(func, a, b));
            !distinct && brought.iter().any(|&v| wrong(v))
        })
    }

    /// Collects what the edges from one block to another bring to a parameter, by way of the parameters of blocks in the loop.
    fn bring(
        &self,
        func: &Function,
        cfg: &Cfg,
        (from, to, index): (Block, Block, usize),
        header: Block,
        seen: &mut FxHashSet<Value>,
        brought: &mut Vec<Value>,
    ) {
        for target in func.blocks[from].term.targets() {
            let arg = target.args.get(index).filter(|_| target.block == to);
            let Some(value) = arg.map(|&arg| self.name(arg, from)) else {
                continue;
            };
            if !seen.insert(value) {
                continue;
            }
            match func.values[value].def {
                ValueDef::Param(block, index)
                    if !self.safe.contains(&value) && self.of[block] == self.of[header] =>
                {
                    for &pred in cfg.preds(block) {
                        let edge = (pred, block, index as usize);
                        self.bring(func, cfg, edge, header, seen, brought);
                    }
                }
                _ => brought.push(value),
            }
        }
    }

    /// Uses behind loops are of the parameters.
    fn rename(&self, func: &mut Function) {
        for block in func.layout.clone() {
            for inst in func.blocks[block].insts.clone() {
                for arg in &mut func.insts[inst].args {
                    *arg = self.name(*arg, block);
                }
            }
            let mut term = std::mem::take(&mut func.blocks[block].term);
            term.map_uses(|v| self.name(v, block));
            func.blocks[block].term = term;
        }
    }

    /// The further exits.
    fn leave(&self, func: &mut Function) {
        let Some(entry) = func.entry() else { return };
        let mut start: Vec<Inst> = Vec::new();
        let mut make = |func: &mut Function, op: Op, args: &[Value], ty: Type| {
            let inst = func.make_inst(op, Values::from_slice(args), &[ty]);
            start.push(inst);
            func.insts[inst].results[0]
        };
        let mut zeros: FxHashMap<Type, Value> = FxHashMap::default();
        let mut zero = |func: &mut Function, ty: Type| {
            let op = if ty == Type::Handle {
                Op::Undef
            } else {
                Op::Const(0)
            };
            *zeros.entry(ty).or_insert_with(|| make(func, op, &[], ty))
        };
        let none = zero(func, Type::I32);
        let mut exits: Vec<(Block, Edge)> = Vec::new();
        for &l in &self.left {
            let Loop { header, merge, .. } = self.loops[l];
            let types: Vec<Type> = (func.blocks[merge].params.iter())
                .map(|&p| func.ty(p))
                .collect();
            let args = types.into_iter().map(|ty| zero(func, ty)).collect();
            exits.push((header, Edge { block: merge, args }));
        }
        let groups = make(func, Op::Hw(HwVar::NumWorkgroups(0)), &[], Type::I32);
        let never = make(func, Op::ICmp(IntCond::Eq), &[groups, none], Type::Bool);
        func.blocks[entry].insts.splice(0..0, start);
        let mut bodies: FxHashMap<Block, Block> = FxHashMap::default();
        for (header, exit) in exits {
            // What the header does comes behind it.
            let body = func.add_block();
            func.layout.pop();
            func.blocks[body].insts = std::mem::take(&mut func.blocks[header].insts);
            func.blocks[body].term = std::mem::take(&mut func.blocks[header].term);
            func.blocks[header].term = Terminator::Branch(never, exit, Edge::new(body));
            bodies.insert(header, body);
        }
        let with_body = |&block: &Block| [Some(block), bodies.get(&block).copied()];
        func.layout = func.layout.iter().flat_map(with_body).flatten().collect();
    }
}
