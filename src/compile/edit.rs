//! Edits SPIR-V modules: their instructions as a list, of which each is the module's own or a new
//! one.
//!
//! All changes of modules go through this. It needs only the length of an instruction, so
//! instructions that are not known stay as they are.

use rustc_hash::FxHashMap;
use spirv::Op;
use spirv_lowering::insts::{insts, string_words, HEADER_WORDS};
use std::borrow::Cow;

/// An instruction of an edited module.
pub type InstWords<'a> = Cow<'a, [u32]>;

/// The change to an instruction.
pub enum Change {
    /// Keeps it.
    Keep,
    /// Removes it.
    Drop,
    /// Replaces it by others.
    Become(Vec<Vec<u32>>),
}

/// Encodes an instruction.
pub fn instruction(op: Op, operands: &[u32]) -> Vec<u32> {
    let mut words = Vec::with_capacity(operands.len() + 1);
    words.push((operands.len() as u32 + 1) << 16 | op as u32);
    words.extend_from_slice(operands);
    words
}

/// Returns the opcode of an instruction, or `None` if it is not known.
pub fn opcode(inst: &[u32]) -> Option<Op> {
    Op::from_u32(inst.first()? & 0xffff)
}

/// A module that is being edited.
pub struct ModuleEdit<'a> {
    header: [u32; HEADER_WORDS],
    /// The instructions in order.
    pub insts: Vec<InstWords<'a>>,
    /// The types and constants that were requested, with their ids.
    values: FxHashMap<Vec<u32>, u32>,
    /// The types and constants that are new.
    new: Vec<Vec<u32>>,
}

impl<'a> ModuleEdit<'a> {
    /// Begins to edit a module. Returns `None` if it is truncated.
    pub fn of(words: &'a [u32]) -> Option<Self> {
        let header = *words.first_chunk()?;
        let list = insts(words).map(|inst| Some(Cow::Borrowed(inst?.words)));
        Some(Self {
            header,
            insts: list.collect::<Option<_>>()?,
            values: FxHashMap::default(),
            new: Vec::new(),
        })
    }

    /// Returns the edited module.
    pub fn words(mut self) -> Vec<u32> {
        let at = self.position(|op| op == Op::Function);
        let new = std::mem::take(&mut self.new);
        self.insts.splice(at..at, new.into_iter().map(Cow::Owned));
        let length: usize = self.insts.iter().map(|inst| inst.len()).sum();
        let mut out = Vec::with_capacity(HEADER_WORDS + length);
        out.extend(self.header);
        self.insts
            .iter()
            .for_each(|inst| out.extend_from_slice(inst));
        out
    }

    /// Returns the version word.
    pub fn version(&self) -> u32 {
        self.header[1]
    }

    /// Returns an unused id.
    pub fn new_id(&mut self) -> u32 {
        let id = self.header[3];
        self.header[3] = id.saturating_add(1);
        id
    }

    /// Returns the index of the first instruction that satisfies `is`, or the end if there is none.
    pub fn position(&self, is: impl Fn(Op) -> bool) -> usize {
        let found = |inst: &InstWords<'_>| opcode(inst).is_some_and(&is);
        let at = self.insts.iter().position(found);
        at.unwrap_or(self.insts.len())
    }

    /// Inserts instructions at an index.
    pub fn insert(&mut self, at: usize, insts: impl IntoIterator<Item = Vec<u32>>) {
        let at = at.min(self.insts.len());
        self.insts.splice(at..at, insts.into_iter().map(Cow::Owned));
    }

    /// Changes instructions, each seen once and in order. Returns whether any was changed, or
    /// `None` if `change` gave up.
    pub fn rewrite(
        &mut self,
        mut change: impl FnMut(&mut Self, &[u32]) -> Option<Change>,
    ) -> Option<bool> {
        let old = std::mem::take(&mut self.insts);
        let mut list = Vec::with_capacity(old.len());
        let mut changed = false;
        for inst in old {
            let what = change(self, &inst)?;
            changed |= !matches!(what, Change::Keep);
            match what {
                Change::Keep => list.push(inst),
                Change::Drop => {}
                Change::Become(others) => list.extend(others.into_iter().map(Cow::Owned)),
            }
        }
        self.insts = list;
        Some(changed)
    }

    /// Declares a capability and its extension.
    pub fn declare(&mut self, capability: Option<u32>, extension: &str) {
        let name = string_words(extension.as_bytes());
        let declared = instruction(Op::Extension, &name);
        let known = self.insts.iter().any(|inst| **inst == *declared);
        let at = self.position(|op| op != Op::Capability);
        self.insert(at, (!known).then_some(declared));
        self.insert(
            at,
            capability.map(|number| instruction(Op::Capability, &[number])),
        );
    }

    /// Records a type or constant of the module, so that [`ModuleEdit::value`] finds it.
    pub fn know(&mut self, inst: &[u32]) {
        let (key, id) = match (opcode(inst), inst) {
            (Some(Op::TypeVector | Op::TypeBool | Op::TypeInt), &[first, id, ref rest @ ..]) => {
                ([&[first], rest].concat(), id)
            }
            (Some(Op::ConstantNull), &[first, ty, id]) => (vec![first, ty], id),
            _ => return,
        };
        self.values.entry(key).or_insert(id);
    }

    /// Returns the id of a type, or of a null constant of a type, which it adds if the module has
    /// none.
    pub fn value(&mut self, op: Op, operands: &[u32]) -> u32 {
        // With the length that it has with its number.
        let first = (operands.len() as u32 + 2) << 16 | op as u32;
        let key = [&[first], operands].concat();
        if let Some(&id) = self.values.get(&key) {
            return id;
        }
        let id = self.new_id();
        let inst = match (op, operands) {
            (Op::ConstantNull, &[ty]) => vec![first, ty, id],
            _ => [&[first, id], operands].concat(),
        };
        self.new.push(inst);
        self.values.insert(key, id);
        id
    }
}

#[cfg(test)]
#[allow(missing_docs)]
pub mod tests {
    use super::*;

    pub const HEADER: [u32; 5] = [0x0723_0203, 0x1_0400, 0, 90, 0];

    pub use super::instruction as inst;

    pub fn module(insts: &[Vec<u32>]) -> Vec<u32> {
        [HEADER.to_vec(), insts.concat()].concat()
    }

    /// Returns a module of these instructions with an id bound.
    pub fn module_bound(bound: u32, insts: &[Vec<u32>]) -> Vec<u32> {
        let mut words = module(insts);
        words[3] = bound;
        words
    }

    #[test]
    fn values_are_made_once() {
        let float = inst(Op::TypeFloat, &[2, 32]);
        let vector = inst(Op::TypeVector, &[3, 2, 4]);
        let function = inst(Op::Function, &[1, 4, 0, 5]);
        let words = module(&[float.clone(), vector.clone(), function.clone()]);
        let mut edit = ModuleEdit::of(&words).unwrap();
        let changed = edit.rewrite(|edit, inst| {
            edit.know(inst);
            Some(Change::Keep)
        });
        assert_eq!(changed, Some(false));
        assert_eq!(edit.value(Op::TypeVector, &[2, 4]), 3);
        assert_eq!(edit.value(Op::TypeVector, &[2, 2]), 90);
        assert_eq!(edit.value(Op::TypeVector, &[2, 2]), 90);
        assert_eq!(edit.value(Op::ConstantNull, &[3]), 91);
        let new = [
            float,
            vector,
            inst(Op::TypeVector, &[90, 2, 2]),
            inst(Op::ConstantNull, &[3, 91]),
            function,
        ];
        assert_eq!(edit.words(), module_bound(92, &new));
        assert!(ModuleEdit::of(&words[..words.len() - 1]).is_none());
        assert!(ModuleEdit::of(&words[..4]).is_none());
    }

    #[test]
    fn declarations_come_first() {
        let capability = inst(Op::Capability, &[4]);
        let model = inst(Op::MemoryModel, &[2, 2]);
        let words = module(&[capability.clone(), model.clone()]);
        let mut edit = ModuleEdit::of(&words).unwrap();
        edit.declare(Some(7), "SPV");
        edit.declare(None, "SPV");
        let name = string_words(b"SPV");
        let new = [
            capability,
            inst(Op::Capability, &[7]),
            inst(Op::Extension, &name),
            model,
        ];
        assert_eq!(edit.words(), module(&new));
    }
}
