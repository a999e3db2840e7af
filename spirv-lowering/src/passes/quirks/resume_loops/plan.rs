//! Which loops can be gone on with, and how far a dispatch runs.

use crate::analysis::iterations;
use crate::analysis::loops::{Loop, LoopForest, LoopId};
use crate::ir::entity::Block;
use crate::ir::function::Function;
use rustc_hash::FxHashMap;

/// Loops that can be gone on with, at most.
const MAX_LOOPS: usize = 4;
/// Work-items that a driver may count together.
const LANES: u64 = 8;

/// The loops to change, with the places of their checks.
pub(super) struct Plan {
    /// Headers of the loops that can be gone on with; outer before inner ones.
    pub(super) headers: Vec<Block>,
    /// For each of them, which one of them is around it.
    pub(super) parents: Vec<Option<usize>>,
    /// The weight of an iteration of each loop that may run for long, by header.
    pub(super) counts: FxHashMap<Block, u64>,
    /// A work-item stops when it has counted more than this.
    pub(super) limit: u64,
    /// The same for one that is alone.
    pub(super) limit_alone: u64,
}

impl Plan {
    /// Returns the plan for the outermost loops alone, or for inner ones, too.
    pub(super) fn new(
        func: &Function,
        forest: &LoopForest,
        limit: u32,
        inner: bool,
    ) -> Option<Self> {
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

    /// Returns the loop directly inside of `outer` that is a given loop or contains it.
    pub(super) fn towards(&self, outer: usize, loop_: usize) -> Option<usize> {
        let mut at = loop_;
        loop {
            let parent = self.parents.get(at).copied().flatten()?;
            if parent == outer {
                return Some(at);
            }
            at = parent;
        }
    }

    /// Returns the outermost loop around a loop, if there is one.
    pub(super) fn outermost(&self, loop_: usize) -> Option<usize> {
        let mut around = None;
        while let Some(parent) = self.parents.get(around.unwrap_or(loop_)).copied().flatten() {
            around = Some(parent);
        }
        around
    }
}
