//! Chooses the members of a kernel's push-constant block.
//!
//! Where the target has [`LongWords`](crate::quirks::CodeQuirk::LongWords), a 64-bit value is one
//! member, so that the driver sees one load. An address made of two halves is not seen to be
//! uniform by such a driver, and accesses through it then extract it from a vector for each lane.
//! Where a kernel also reads the same bytes in another way, and for other targets, they are 32-bit
//! words, for which compilers generate shorter code.

use super::writer::Id;
use crate::interface::{Implicit, KernelInterface};
use crate::ir::function::Function;
use crate::ir::op::Op;
use crate::ir::types::Type;
use rustc_hash::FxHashMap;

/// The block and its members.
pub(super) struct PushBlock {
    /// The byte offset and type of each member, in order.
    pub(super) members: Vec<(u32, Type)>,
    /// The variable, once a member was read.
    pub(super) variable: Option<Id>,
    /// The members that were loaded in the prologue, by offset.
    pub(super) loaded: FxHashMap<u32, Id>,
}

impl PushBlock {
    /// Chooses the members for a kernel. `long`: 64-bit members are allowed.
    pub(super) fn new(func: &Function, interface: &KernelInterface, long: bool) -> Self {
        let words = interface.push_size.div_ceil(4);
        // Halves of 64-bit values, and words that are read by themselves.
        let mut half = vec![false; words as usize];
        let mut alone = half.clone();
        let mut reads = |offset: u32, ty: Type| {
            let long = ty.size() == 8 && offset % 8 == 0;
            let marks = if long { &mut half } else { &mut alone };
            let all = offset / 4..(offset + ty.size()).div_ceil(4);
            for word in all {
                if let Some(mark) = marks.get_mut(word as usize) {
                    *mark = true;
                }
            }
        };
        let implicit = |which| interface.implicit.iter().find(|(i, _)| *i == which);
        if let (true, Some(&(_, at))) = (interface.args_in_buffer, implicit(Implicit::ArgBuffer)) {
            reads(at, Type::I64);
        }
        let insts = func.layout_insts();
        for data in insts.map(|&inst| &func.insts[inst]) {
            let Some(ty) = data.results.first().map(|&v| func.ty(v)) else {
                continue;
            };
            match data.op {
                Op::ArgLoad(offset) if !interface.args_in_buffer => {
                    let count = data.results.len() as u32;
                    (0..count).for_each(|i| reads(offset + i * ty.size(), ty));
                }
                Op::Implicit(which, component) => {
                    if let Some(&(_, at)) = implicit(which) {
                        reads(at + u32::from(component) * ty.size(), ty);
                    }
                }
                _ => {}
            }
        }
        let mut members = Vec::new();
        let mut word = 0;
        while word < words {
            let pair = word as usize..word as usize + 2;
            let long = long
                && word % 2 == 0
                && half.get(pair.clone()) == Some(&[true, true])
                && alone.get(pair) == Some(&[false, false]);
            members.push((word * 4, if long { Type::I64 } else { Type::I32 }));
            word += if long { 2 } else { 1 };
        }
        Self {
            members,
            variable: None,
            loaded: FxHashMap::default(),
        }
    }

    /// Returns true if there is a 64-bit member at an offset.
    pub(super) fn is_long(&self, offset: u32) -> bool {
        self.members.binary_search(&(offset, Type::I64)).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::parse::parse_module;

    fn members(body: &str, interface: &KernelInterface) -> Vec<(u32, u32)> {
        let text = format!("func fn0 \"k\" () -> () {{\nblock0:\n{body}  return\n}}\n");
        let module = parse_module(&text).unwrap();
        let func = module.functions.values().next().unwrap();
        let block = PushBlock::new(func, interface, true);
        let sizes = block.members.iter().map(|&(at, ty)| (at, ty.size()));
        sizes.collect()
    }

    #[test]
    fn values_of_64_bits_are_one_member() {
        let interface = KernelInterface {
            push_size: 28,
            ..KernelInterface::default()
        };
        // A word of which nothing is read in front, one behind.
        let body = "  v0 = arg_load.8 : i64\n  v1 = arg_load.16 : f64\n";
        let whole = [(0, 4), (4, 4), (8, 8), (16, 8), (24, 4)];
        assert_eq!(members(body, &interface), whole);
        // Half of one is read as well, and one does not begin where 64 bits do.
        let body = "  v0 = arg_load.8 : i64\n  v1 = arg_load.12 : i32\n  v2 = arg_load.20 : i64\n";
        let words: Vec<(u32, u32)> = (0..7).map(|i| (i * 4, 4)).collect();
        assert_eq!(members(body, &interface), words);
    }

    #[test]
    fn of_arguments_in_memory_the_address_is_one() {
        let interface = KernelInterface {
            push_size: 16,
            args_in_buffer: true,
            implicit: vec![(Implicit::ArgBuffer, 8)],
            ..KernelInterface::default()
        };
        let body = "  v0 = arg_load.0 : i64\n  v1 = arg_load.4 : i32\n";
        assert_eq!(members(body, &interface), [(0, 4), (4, 4), (8, 8)]);
    }
}
