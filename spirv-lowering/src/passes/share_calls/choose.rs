//! Chooses the functions of which there is one copy: from the call graph below a kernel with sizes,
//! by the instructions saved.

use crate::analysis::waits::{self, Looking};
use crate::error::Result;
use crate::ir::entity::{Entity, FuncId};
use crate::ir::module::Module;
use crate::ir::op::{Effect, Op};
use crate::ir::types::{Space, Type};
use crate::passes::inline::{callees, with_body};
use rustc_hash::{FxHashMap, FxHashSet};

/// The limits that decide when functions are shared, and how. Sizes are numbers of instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The size of a kernel, as read, from which on functions are shared.
    pub budget: u64,
    /// The size beyond which inlining everything is given up, if functions can be shared.
    pub most: usize,
    /// The smallest function worth sharing, as read. A call of a shared function counts as much.
    pub min_size: u64,
    /// The size from which on a function of a large kernel stays a function though it is called once:
    /// compilers take more time for one large function than for two that are half as large.
    pub large: u64,
    /// The calls of shared functions up to which each value that lives across them has a parameter
    /// of its own: the sum of the squares of the numbers of calls of each function.
    pub calls_squared: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            budget: 60_000,
            most: 100_000,
            min_size: 600,
            large: 4_000,
            calls_squared: 40_000,
        }
    }
}

/// The instructions that are worth sharing a function in a kernel of any size.
const WORTH_A_COPY: u64 = 20_000;

/// The size of a call of a function that is kept: its operands and results pass through registers
/// and the stack.
const CALL: u64 = 60;

/// The form that one copy of a function takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Code within the kernel that its calls jump to and that jumps back.
    Shared,
    /// A function that is called.
    Called,
}

/// The call graph below a kernel with sizes.
pub(super) struct Graph {
    /// Callees before callers; the kernel last.
    pub order: Vec<FuncId>,
    own: FxHashMap<FuncId, u64>,
    calls: FxHashMap<FuncId, Vec<(FuncId, u64)>>,
    /// Functions that stay inlined.
    convergent: FxHashSet<FuncId>,
}

/// Returns true if a function with the operation cannot have that form.
fn excludes(form: Form, module: &Module, op: Op) -> bool {
    if op.effect() == Effect::Convergent || matches!(op, Op::ImageAt(_) | Op::SamplerAt) {
        return true;
    }
    // The sites of printf and the layout of local memory are those of the kernel.
    form == Form::Called
        && match op {
            Op::Printf(_) | Op::ImageNumber => true,
            Op::GlobalAddr(id) => {
                let global = module.globals.get(id);
                global.is_none_or(|global| global.space == Some(Space::Local))
            }
            _ => false,
        }
}

impl Graph {
    /// Builds the graph of the functions that a kernel reaches.
    pub fn new(module: &Module, kernel: FuncId, form: Form) -> Result<Self> {
        let mut graph = Self {
            order: Vec::new(),
            own: FxHashMap::default(),
            calls: FxHashMap::default(),
            convergent: FxHashSet::default(),
        };
        // Depth first; recursion is found by the inliner, here it must only end.
        let mut seen = FxHashSet::default();
        seen.insert(kernel);
        let mut stack = vec![(kernel, callees(module, kernel)?, 0)];
        while let Some((id, list, next)) = stack.last_mut() {
            if let Some(&callee) = list.get(*next) {
                *next += 1;
                if seen.insert(callee) {
                    let list = callees(module, callee)?;
                    stack.push((callee, list, 0));
                }
                continue;
            }
            let id = *id;
            stack.pop();
            let func = &module.functions[id];
            let generic = Type::Ptr(Space::Generic);
            let private = Type::Ptr(Space::Private);
            let unfit = match form {
                Form::Shared => func.params.contains(&Type::Handle),
                // Where a work-item may wait must be known in the kernel.
                Form::Called if waits::may_wait(func, &Looking::default()) => true,
                Form::Called => {
                    let is_unfit = |ty: &Type| *ty == generic || *ty == Type::Handle;
                    func.params.iter().any(is_unfit)
                        || func.results.iter().any(|ty| is_unfit(ty) || *ty == private)
                }
            };
            if unfit {
                graph.convergent.insert(id);
            }
            let mut own = 0;
            let mut counts: FxHashMap<FuncId, u64> = FxHashMap::default();
            for &block in &func.layout {
                own += func.blocks[block].insts.len() as u64;
                for &inst in &func.blocks[block].insts {
                    match func.insts[inst].op {
                        Op::Call(callee) => {
                            let callee = with_body(module, callee, Some(func))?;
                            *counts.entry(callee).or_default() += 1;
                            if graph.convergent.contains(&callee) {
                                graph.convergent.insert(id);
                            }
                        }
                        op if excludes(form, module, op) => {
                            graph.convergent.insert(id);
                        }
                        _ => {}
                    }
                }
            }
            let mut counts: Vec<_> = counts.into_iter().collect();
            counts.sort();
            graph.own.insert(id, own);
            graph.calls.insert(id, counts);
            graph.order.push(id);
        }
        Ok(graph)
    }

    /// Returns the size of each function with everything inlined but the shared functions, and how
    /// often each function is copied. `call`: the size of a call of a shared function.
    fn measure(
        &self,
        shared: &FxHashSet<FuncId>,
        call: u64,
    ) -> (FxHashMap<FuncId, u64>, FxHashMap<FuncId, u64>) {
        let mut size: FxHashMap<FuncId, u64> = FxHashMap::default();
        for id in &self.order {
            let mut total = self.own[id];
            for (callee, n) in &self.calls[id] {
                let inner = match shared.contains(callee) {
                    true => call,
                    false => size.get(callee).copied().unwrap_or(0),
                };
                total = total.saturating_add(inner.saturating_mul(*n));
            }
            size.insert(*id, total);
        }
        let mut copies: FxHashMap<FuncId, u64> = FxHashMap::default();
        for (i, id) in self.order.iter().rev().enumerate() {
            let mine = match (i, shared.contains(id)) {
                (0, _) | (_, true) => 1,
                _ => copies.get(id).copied().unwrap_or(0),
            };
            // For a shared function: its call sites, though it has one copy.
            for (callee, n) in &self.calls[id] {
                let entry = copies.entry(*callee).or_default();
                *entry = entry.saturating_add(mine.saturating_mul(*n));
            }
        }
        (size, copies)
    }

    /// Returns the size with everything inlined, as read.
    pub fn inlined_size(&self) -> u64 {
        let (size, _) = self.measure(&FxHashSet::default(), 0);
        self.order.last().map_or(0, |kernel| size[kernel])
    }

    /// Makes a function stay inlined.
    pub fn exclude(&mut self, id: FuncId) {
        self.convergent.insert(id);
    }

    /// Returns the functions to keep: those of some size that have several copies otherwise. What
    /// stays inlined in several places is small, so that a kernel grows with its source.
    pub fn keep(&self, limits: &Limits) -> FxHashSet<FuncId> {
        let mut kept = FxHashSet::default();
        let Some(&kernel) = self.order.last() else {
            return kept;
        };
        let mut copies: FxHashMap<FuncId, u64> = FxHashMap::default();
        for (i, id) in self.order.iter().rev().enumerate() {
            // One that is not kept has a single copy, or is small.
            let mine = match i > 0 && self.convergent.contains(id) {
                true => copies.get(id).copied().unwrap_or(0),
                false => 1,
            };
            for (callee, n) in &self.calls[id] {
                let entry = copies.entry(*callee).or_default();
                *entry = entry.saturating_add(mine.saturating_mul(*n));
            }
        }
        let mut sizes: FxHashMap<FuncId, u64> = FxHashMap::default();
        for id in &self.order {
            let calls = self.calls[id].iter();
            let size = calls.fold(self.own[id], |size, (callee, n)| {
                size.saturating_add(sizes.get(callee).unwrap_or(&CALL).saturating_mul(*n))
            });
            let several = copies.get(id).is_some_and(|&copies| copies > 1);
            let least = if several {
                limits.min_size
            } else {
                limits.large
            };
            if size >= least && *id != kernel && !self.convergent.contains(id) {
                kept.insert(*id);
            } else {
                sizes.insert(*id, size);
            }
        }
        kept
    }

    /// Returns the functions to share.
    pub fn choose(&self, limits: &Limits) -> FxHashSet<FuncId> {
        let mut shared = FxHashSet::default();
        let Some(&kernel) = self.order.last() else {
            return shared;
        };
        for _ in 0..64 {
            let (size, copies) = self.measure(&shared, limits.min_size);
            let total = size[&kernel] + shared.iter().map(|id| size[id]).sum::<u64>();
            // Values that live across calls travel through the shared code: with many calls that is most of what is left.
            let worth = match total > limits.budget {
                true => (total / 32).min(WORTH_A_COPY),
                false if shared.is_empty() => break,
                false => total / 4,
            };
            let saved = |id: &FuncId| {
                let n = copies.get(id).copied().unwrap_or(0);
                let each = size[id].saturating_sub(limits.min_size - 1);
                each.saturating_mul(n.saturating_sub(1))
            };
            let best = self
                .order
                .iter()
                .filter(|id| **id != kernel && !shared.contains(*id))
                .filter(|id| !self.convergent.contains(*id) && size[*id] >= limits.min_size)
                .max_by_key(|id| (saved(id), id.index()));
            match best {
                Some(&best) if saved(&best) > worth => shared.insert(best),
                _ => break,
            };
        }
        shared
    }
}
