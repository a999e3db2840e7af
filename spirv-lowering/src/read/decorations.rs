//! The decorations of a module, by the id that they decorate.

use super::words::Instruction;
use crate::ir::function::Linkage;
use rustc_hash::FxHashMap;
use spirv::Decoration;
use std::sync::Arc;

/// A decoration: kind and word range of its operands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deco {
    pub target: u32,
    pub kind: u32,
    pub at: u32,
    pub len: u32,
}

/// All decorations of a module.
#[derive(Debug, Default)]
pub(super) struct Decorations {
    /// The module's words.
    words: Arc<Vec<u32>>,
    all: Vec<Deco>,
    /// The position of an id's first decoration, and their number.
    index: FxHashMap<u32, (u32, u32)>,
}

impl Decorations {
    /// Creates an empty set.
    pub fn new(words: Arc<Vec<u32>>) -> Self {
        Self {
            words,
            ..Self::default()
        }
    }

    /// Adds a decoration before [`Self::sort`].
    pub fn push(&mut self, decoration: Deco) {
        self.all.push(decoration);
    }

    /// Sorts the decorations by their targets, when all have been added. A group's decorations
    /// become those of its targets; `groups` holds the operands of each OpGroupDecorate.
    pub fn sort(&mut self, groups: &[&[u32]]) {
        self.all.sort_by_key(|d| d.target);
        if !groups.is_empty() {
            let mut more = Vec::new();
            for words in groups {
                let Some((group, targets)) = words.split_first() else {
                    continue;
                };
                let first = self.all.partition_point(|d| d.target < *group);
                let of_group = self.all[first..].iter().take_while(|d| d.target == *group);
                let of_group: Vec<Deco> = of_group.take(64).copied().collect();
                for &target in targets.iter() {
                    more.extend(of_group.iter().map(|d| Deco { target, ..*d }));
                }
            }
            self.all.extend(more);
            self.all.sort_by_key(|d| d.target);
        }
        let mut start = 0;
        while let Some(first) = self.all.get(start) {
            let len = self.all[start..]
                .iter()
                .take_while(|d| d.target == first.target)
                .count();
            self.index.insert(first.target, (start as u32, len as u32));
            start += len;
        }
    }

    /// Returns the decorations of an id.
    pub fn of(&self, id: u32) -> &[Deco] {
        match self.index.get(&id) {
            Some(&(start, len)) => &self.all[start as usize..(start + len) as usize],
            None => &[],
        }
    }

    /// Returns a decoration of an id.
    pub fn get(&self, id: u32, kind: Decoration) -> Option<Deco> {
        self.of(id).iter().find(|d| d.kind == kind as u32).copied()
    }

    /// Returns the first operand of a decoration of an id.
    pub fn word(&self, id: u32, kind: Decoration) -> Option<u32> {
        self.get(id, kind)
            .filter(|d| d.len > 0)
            .and_then(|d| self.words.get(d.at as usize).copied())
    }

    /// Returns true if the id has that decoration with that first operand.
    pub fn has(&self, id: u32, kind: Decoration, operand: u32) -> bool {
        self.of(id).iter().any(|d| {
            d.kind == kind as u32 && self.words.get(d.at as usize).copied() == Some(operand)
        })
    }

    /// Returns the name and linkage of an id (LinkageAttributes).
    pub fn linkage(&self, id: u32) -> Option<(String, Linkage)> {
        let d = self.get(id, Decoration::LinkageAttributes)?;
        let words = self.words.get(d.at as usize..(d.at + d.len) as usize)?;
        let inst = Instruction {
            code: 0,
            op: None,
            words,
            at: 0,
        };
        let (name, next) = inst.string(0).ok()?;
        Some((
            name,
            match inst.word(next).ok()? {
                0 => Linkage::Export,
                1 => Linkage::Import,
                2 => Linkage::LinkOnce,
                _ => return None,
            },
        ))
    }
}
