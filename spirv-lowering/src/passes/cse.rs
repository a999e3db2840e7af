//! Removes repeated work: value numbering of pure operations over the dominator tree, and forwarding of loads and
//! stores to later loads of the same memory.
//!
//! Memory is followed along chains of blocks with a single predecessor. An address is a base value and a constant
//! offset; addresses with one base overlap or not by their offsets, addresses with different bases may be the same
//! unless they belong to different address spaces or to private memory whose address is not otherwise known.
//! Barriers, atomics and fences end all knowledge but that of such private memory. Loads from constant memory are
//! pure.

use crate::analysis::cfg::Cfg;
use crate::analysis::control_flow::Analyses;
use crate::claims::alias_set;
use crate::ir::entity::{Block, Entity, Inst, SecondaryMap, Value};
use crate::ir::function::{Function, Values};
use crate::ir::op::{Effect, Op, Scope};
use crate::ir::reinterpret::reinterpret;
use crate::ir::subst::Subst;
use crate::ir::types::{Space, Type};
use rustc_hash::{FxHashMap, FxHasher};
use smallvec::SmallVec;
use std::hash::{Hash, Hasher};

/// The pure computations that dominate the current position: a hash table whose entries are removed
/// in the reverse order of their addition.
struct Table {
    /// First instruction of each chain plus one.
    buckets: Vec<u32>,
    /// Next of the chain plus one.
    next: Vec<u32>,
    added: Vec<(u32, Inst)>,
}

impl Table {
    fn new(func: &Function) -> Self {
        Self {
            buckets: vec![0; func.insts.len().next_power_of_two()],
            next: vec![0; func.insts.len()],
            added: Vec::new(),
        }
    }

    /// Returns an instruction that computes the same, or adds this one and returns `None`.
    fn find_or_add(&mut self, func: &Function, inst: Inst) -> Option<Inst> {
        let data = &func.insts[inst];
        let mut hasher = FxHasher::default();
        (data.op, data.fp).hash(&mut hasher);
        for &arg in &data.args {
            hasher.write_u32(arg.index() as u32);
        }
        for &result in &data.results {
            func.ty(result).hash(&mut hasher);
        }
        let hash = hasher.finish();
        let bucket = ((hash ^ hash >> 32) as usize) & (self.buckets.len() - 1);
        let mut at = self.buckets[bucket];
        while let Some(i) = at.checked_sub(1) {
            let other = Inst::new(i as usize);
            let found = &func.insts[other];
            if found.op == data.op
                && found.fp == data.fp
                && found.args == data.args
                && found.results.len() == data.results.len()
                && (found.results.iter().zip(&data.results))
                    .all(|(&a, &b)| func.ty(a) == func.ty(b))
            {
                return Some(other);
            }
            at = self.next[i as usize];
        }
        self.next[inst.index()] = self.buckets[bucket];
        self.buckets[bucket] = inst.index() as u32 + 1;
        self.added.push((bucket as u32, inst));
        None
    }

    fn undo(&mut self, len: usize) {
        for (bucket, inst) in self.added.drain(len..).rev() {
            self.buckets[bucket as usize] = self.next[inst.index()];
        }
    }
}

/// Runs the pass. Returns true if the function changed.
pub fn run(func: &mut Function, analyses: &mut Analyses) -> bool {
    let Some(entry) = func.entry() else {
        return false;
    };
    let flow = analyses.control_flow(func);
    let (cfg, dom) = (&flow.cfg, flow.dom());
    let mut memory = Memory::new(func, cfg);
    let mut subst = Subst::new();
    let mut table = Table::new(func);

    enum Visit {
        Enter(Block),
        Leave(usize, Mark),
    }
    let mut stack = vec![Visit::Enter(entry)];
    while let Some(step) = stack.pop() {
        let block = match step {
            Visit::Leave(len, mark) => {
                table.undo(len);
                memory.undo(mark);
                continue;
            }
            Visit::Enter(block) => block,
        };
        stack.push(Visit::Leave(table.added.len(), memory.mark()));
        if cfg.single_pred(block).is_none() || cfg.single_pred(block) != dom.idom(block) {
            memory.forget_all();
        }
        let insts = std::mem::take(&mut func.blocks[block].insts);
        let mut out = Vec::with_capacity(insts.len());
        for inst in insts {
            let data = &mut func.insts[inst];
            data.args.iter_mut().for_each(|v| *v = subst.get(*v));
            if is_pure(func, inst) {
                let data = &mut func.insts[inst];
                if data.op.is_commutative() && data.args.len() == 2 && data.args[0] > data.args[1] {
                    // A constant stays second.
                    let second = data.args[1];
                    if func.as_const(second).is_none() {
                        func.insts[inst].args.swap(0, 1);
                    }
                }
                match table.find_or_add(func, inst) {
                    Some(old) => {
                        for i in 0..func.insts[inst].results.len() {
                            let (from, to) =
                                (func.insts[inst].results[i], func.insts[old].results[i]);
                            subst.set(from, to);
                        }
                    }
                    None => out.push(inst),
                }
                continue;
            }
            if !memory.visit(func, inst, &mut out, &mut subst) {
                out.push(inst);
            }
        }
        func.blocks[block].insts = out;
        func.blocks[block].term.map_uses(|v| subst.get(v));
        stack.extend(dom.children(block).iter().map(|&b| Visit::Enter(b)));
    }
    let changed = !subst.is_empty();
    subst.apply(func);
    changed
}

fn is_pure(func: &Function, inst: Inst) -> bool {
    let data = &func.insts[inst];
    match data.op {
        Op::Alloca { .. } => false,
        Op::Load {
            volatile: false, ..
        } => data
            .args
            .first()
            .is_some_and(|&p| func.ty(p) == Type::Ptr(Space::Constant)),
        op => op.effect() == Effect::Pure && !data.results.is_empty(),
    }
}

/// A set of addresses that never overlap those of another class.
type Class = u32;
const GLOBAL: Class = 0;
const LOCAL: Class = 1;
const PRIVATE: Class = 2;
/// The first of the classes of single allocas.
const ALLOCA: Class = 3;
/// Stands for all bases of a class, when all of it is overwritten.
const NO_BASE: u32 = u32::MAX;

/// A known value of memory at an address.
#[derive(Clone, Copy)]
struct AvailableValue {
    offset: i64,
    value: Value,
    epoch: u32,
}

/// The last write to a class through one base, and the last before that through another.
#[derive(Clone, Copy, Default)]
struct Kill {
    base: u32,
    epoch: u32,
    other: u32,
}

enum Undo {
    Entries((Value, i64), SmallVec<[AvailableValue; 2]>),
    Kill(Class, Kill),
}

struct Mark {
    log: usize,
    floor: u32,
}

/// The classes of addresses.
struct Classes {
    /// The number plus one of the alloca that a private pointer is derived from, if its address
    /// does not escape.
    private: SecondaryMap<Value, u32>,
    /// The number of allocas.
    allocas: usize,
}

impl Classes {
    fn of(&self, func: &Function, base: Value) -> SmallVec<[Class; 3]> {
        match self.private[base] {
            0 => {}
            n => return SmallVec::from_slice(&[ALLOCA + n - 1]),
        }
        SmallVec::from_slice(match func.ty(base).space() {
            Some(Space::Global | Space::Constant) => &[GLOBAL],
            Some(Space::Local) => &[LOCAL],
            Some(Space::Private) => &[PRIVATE],
            Some(Space::Generic) | None => &[GLOBAL, LOCAL, PRIVATE],
        })
    }
}

/// Returns the alias sets of the memory at an address, as a bit each: the pass takes those of
/// different sets for disjoint.
pub fn alias_sets(func: &Function) -> impl Fn(Value) -> u64 + use<'_> {
    let classes = unescaped(func, &Cfg::new(func));
    move |address| {
        let classes = classes.of(func, address).into_iter();
        classes.fold(0, |sets, class| sets | alias_set(class))
    }
}

struct Memory {
    /// By base and offset / 8.
    entries: FxHashMap<(Value, i64), SmallVec<[AvailableValue; 2]>>,
    kills: Vec<Kill>,
    /// The first epoch whose entries are valid on the path to the current block.
    floor: u32,
    epoch: u32,
    log: Vec<Undo>,
    classes: Classes,
}

impl Memory {
    fn new(func: &Function, cfg: &Cfg) -> Self {
        let classes = unescaped(func, cfg);
        Self {
            entries: FxHashMap::default(),
            kills: vec![Kill::default(); ALLOCA as usize + classes.allocas],
            floor: 0,
            epoch: 1,
            log: Vec::new(),
            classes,
        }
    }

    fn mark(&self) -> Mark {
        Mark {
            log: self.log.len(),
            floor: self.floor,
        }
    }

    fn undo(&mut self, mark: Mark) {
        for undo in self.log.drain(mark.log..).rev() {
            match undo {
                Undo::Entries(key, list) => {
                    self.entries.insert(key, list);
                }
                Undo::Kill(class, kill) => self.kills[class as usize] = kill,
            }
        }
        self.floor = mark.floor;
    }

    fn forget_all(&mut self) {
        self.epoch += 1;
        self.floor = self.epoch;
    }

    fn kill(&mut self, class: Class, base: u32) {
        let old = self.kills[class as usize];
        self.log.push(Undo::Kill(class, old));
        self.epoch += 1;
        let other = if old.base == base && base != NO_BASE {
            old.other
        } else if base == NO_BASE {
            self.epoch
        } else {
            old.epoch
        };
        self.kills[class as usize] = Kill {
            base,
            epoch: self.epoch,
            other,
        };
    }

    /// Invalidates the entries of memory that other work-items may have changed.
    fn synchronise(&mut self) {
        for class in [GLOBAL, LOCAL, PRIVATE] {
            self.kill(class, NO_BASE);
        }
    }

    fn is_valid(&self, func: &Function, base: Value, entry: &AvailableValue) -> bool {
        entry.epoch >= self.floor
            && self.classes.of(func, base).iter().all(|&class| {
                let kill = self.kills[class as usize];
                let limit = if kill.base == base.index() as u32 {
                    kill.other
                } else {
                    kill.epoch
                };
                entry.epoch >= limit
            })
    }

    fn set(&mut self, base: Value, offset: i64, value: Value) {
        let key = (base, offset >> 3);
        let epoch = self.epoch;
        let list = self.entries.entry(key).or_default();
        self.log.push(Undo::Entries(key, list.clone()));
        list.retain(|e| e.offset != offset);
        if list.len() >= 8 {
            list.remove(0);
        }
        list.push(AvailableValue {
            offset,
            value,
            epoch,
        });
    }

    /// Invalidates the entries of one base that overlap these bytes.
    fn overwrite(&mut self, func: &Function, base: Value, offset: i64, size: i64) {
        let granules = (offset.wrapping_sub(7) >> 3)..=(offset.wrapping_add(size - 1) >> 3);
        for granule in granules {
            let key = (base, granule);
            let Some(list) = self.entries.get_mut(&key) else {
                continue;
            };
            let overlaps = |e: &AvailableValue| {
                e.offset < offset.wrapping_add(size)
                    && offset < e.offset.wrapping_add(func.ty(e.value).size().into())
            };
            if list.iter().any(overlaps) {
                self.log.push(Undo::Entries(key, list.clone()));
                list.retain(|e| !overlaps(e));
            }
        }
    }

    fn get(&self, func: &Function, base: Value, offset: i64, ty: Type) -> Option<Value> {
        let list = self.entries.get(&(base, offset >> 3))?;
        let entry = list
            .iter()
            .find(|e| e.offset == offset && func.ty(e.value).size() == ty.size())?;
        let found = func.ty(entry.value);
        let fits = found == ty || found != Type::Handle && ty != Type::Handle;
        (fits && self.is_valid(func, base, entry)).then_some(entry.value)
    }

    /// Processes a memory operation. Returns true if it is replaced.
    fn visit(
        &mut self,
        func: &mut Function,
        inst: Inst,
        out: &mut Vec<Inst>,
        subst: &mut Subst,
    ) -> bool {
        let data = &func.insts[inst];
        match data.op {
            Op::Load {
                volatile: false, ..
            } => {
                let (base, start) = base_of(func, data.args[0]);
                let lanes = data.results.clone();
                let mut known = Values::new();
                let mut offset = start;
                for &lane in &lanes {
                    let ty = func.ty(lane);
                    known.extend(self.get(func, base, offset, ty));
                    offset = offset.wrapping_add(ty.size().into());
                }
                if known.len() == lanes.len() {
                    for (&lane, &value) in lanes.iter().zip(&known) {
                        let ty = func.ty(lane);
                        let value = reinterpret(func, out, value, ty);
                        subst.set(lane, value);
                    }
                    return true;
                }
                let mut offset = start;
                for &lane in &lanes {
                    self.set(base, offset, lane);
                    offset = offset.wrapping_add(func.ty(lane).size().into());
                }
            }
            Op::Store { volatile, .. } => {
                let (base, mut offset) = base_of(func, data.args[0]);
                let size: u32 = data.args[1..].iter().map(|&v| func.ty(v).size()).sum();
                for class in self.classes.of(func, base) {
                    self.kill(class, base.index() as u32);
                }
                self.overwrite(func, base, offset, size.into());
                if volatile {
                    return false;
                }
                for &value in &data.args[1..] {
                    self.set(base, offset, value);
                    offset = offset.wrapping_add(func.ty(value).size().into());
                }
            }
            Op::MemCopy { .. } => {
                let (base, _) = base_of(func, data.args[0]);
                for class in self.classes.of(func, base) {
                    self.kill(class, NO_BASE);
                }
            }
            Op::Load { .. } | Op::Group(_, Scope::SubGroup) | Op::VarLoad(_) | Op::VarStore(_) => {}
            op => match op.effect() {
                Effect::Pure | Effect::Read => {}
                Effect::Write | Effect::Convergent => self.synchronise(),
            },
        }
        false
    }
}

/// Returns an address as a base and a constant offset.
fn base_of(func: &Function, pointer: Value) -> (Value, i64) {
    let mut base = pointer;
    let mut offset = 0i64;
    while let Some(inst) = func.def_inst(base) {
        let data = &func.insts[inst];
        match (data.op, &data.args[..]) {
            (Op::PtrAdd, &[p, o]) => match func.as_const(o) {
                Some(c) => {
                    offset = offset.wrapping_add(c as i64);
                    base = p;
                }
                None => break,
            },
            _ => break,
        }
    }
    (base, offset)
}

/// Finds the allocas whose address is used by loads, stores and copies alone. Returns for each
/// pointer derived from one, by any offset, its number plus one.
fn unescaped(func: &Function, cfg: &Cfg) -> Classes {
    let mut root: SecondaryMap<Value, u32> = SecondaryMap::new();
    let mut escaped: Vec<bool> = Vec::new();
    for &block in cfg.rpo() {
        for &inst in &func.blocks[block].insts {
            let data = &func.insts[inst];
            let result = data.results.first().copied();
            match (data.op, result) {
                (Op::Alloca { .. }, Some(result)) => {
                    escaped.push(false);
                    root[result] = escaped.len() as u32;
                    continue;
                }
                (Op::PtrAdd, Some(result)) => {
                    if let Some(&base) = data.args.first() {
                        if root[base] != 0 {
                            root[result] = root[base];
                        }
                    }
                    continue;
                }
                _ => {}
            }
            let harmless = match data.op {
                Op::Load { .. } | Op::Store { .. } => 1,
                Op::MemCopy { .. } => 2,
                _ => 0,
            };
            for &arg in data.args.iter().skip(harmless) {
                if root[arg] != 0 {
                    escaped[root[arg] as usize - 1] = true;
                }
            }
        }
        func.blocks[block].term.for_each_use(|v| {
            if root[v] != 0 {
                escaped[root[v] as usize - 1] = true;
            }
        });
    }
    for value in func.values.keys() {
        if root[value] != 0 && escaped[root[value] as usize - 1] {
            root[value] = 0;
        }
    }
    Classes {
        private: root,
        allocas: escaped.len(),
    }
}
