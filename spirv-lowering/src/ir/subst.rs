//! Replaces values by others: replacements are collected first and applied to a whole function at
//! once.

use super::entity::{Entity, Value};
use super::function::Function;

/// A set of replacements. Chains are followed.
#[derive(Debug, Clone, Default)]
pub struct Subst {
    /// The replacement's index plus one, or 0 for none.
    to: Vec<u32>,
    count: usize,
}

impl Subst {
    /// Creates an empty set.
    pub fn new() -> Self {
        Self::default()
    }
    /// Replaces uses of `from` by `to`. Replacing a value by itself, also through a chain, does
    /// nothing.
    pub fn set(&mut self, from: Value, to: Value) {
        let to = self.get(to);
        if from == to {
            return;
        }
        let i = from.index();
        if i >= self.to.len() {
            self.to.resize(i + 1, 0);
        }
        self.to[i] = to.index() as u32 + 1;
        self.count += 1;
    }
    /// Returns the value that replaces `value`, or `value` itself.
    pub fn get(&mut self, value: Value) -> Value {
        let next = |s: &Self, v: usize| match s.to.get(v) {
            Some(&n) if n != 0 => Some(n as usize - 1),
            _ => None,
        };
        let mut root = value.index();
        let Some(first) = next(self, root) else {
            return value;
        };
        root = first;
        while let Some(n) = next(self, root) {
            root = n;
        }
        let mut at = value.index();
        while let Some(n) = next(self, at) {
            self.to[at] = root as u32 + 1;
            at = n;
        }
        Value::new(root)
    }
    /// Returns true if there are no replacements.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
    /// Rewrites all uses in the function.
    pub fn apply(&mut self, func: &mut Function) {
        if !self.is_empty() {
            func.map_uses(|v| self.get(v));
        }
    }
}
