//! Generates private arrays that loops of constant trip counts index.
//!
//! Only every sixth seed has these ([`has_these`]), so that kernels of seeds that are recorded
//! elsewhere stay as they are.

use super::body::Body;
use spirv_lowering::ir::entity::Value;
use spirv_lowering::ir::function::{Edge, Terminator};
use spirv_lowering::ir::op::{IntCond, Op};
use spirv_lowering::ir::types::Type;

/// Returns true if the kernel of a seed has statements of this file.
pub(super) fn has_these(seed: u64) -> bool {
    seed % 6 == 2
}

/// An array whose length is a power of two.
#[derive(Clone, Copy)]
struct PrivateArray {
    at: Value,
    elem: Type,
    len: u32,
}

impl Body<'_> {
    /// Generates an array, loops that read and write it, and values from it.
    pub fn array_loop(&mut self) {
        let types = [Type::I8, Type::I32, Type::I32, Type::I64, Type::F32];
        let elem = self.gen.rng.pick(&types);
        let len = self.gen.rng.pick(&[2, 4, 8]);
        let at = self.alloca(len * elem.size(), elem.size());
        let array = PrivateArray { at, elem, len };
        for i in 0..len {
            let value = self.constant(elem);
            let to = self.offset(at, i * elem.size());
            self.put(to, &[value], elem.size());
        }
        self.walk(array, &mut Vec::new());
        for i in 0..len {
            if self.one_in(3) {
                let from = self.offset(at, i * elem.size());
                let value = self.get(from, elem, elem.size());
                self.know(value, elem, false);
            }
        }
    }

    /// Generates a loop within others that count `counters`.
    fn walk(&mut self, array: PrivateArray, counters: &mut Vec<Value>) {
        let start = self.below(4) as u64;
        let trips = 1 + self.below(if counters.is_empty() { 9 } else { 4 }) as u64;
        let first = self.konst(Type::I64, start);
        let bound = match counters.last() {
            Some(&outer) if self.one_in(2) => outer,
            _ => self.opaque_rarely(start + trips),
        };
        let sum = self.value(array.elem);
        let [header, inside, latch, exit] = [(); 4].map(|()| self.func.add_block());
        let enter = |block, args: &[Value]| Edge::with(block, args.iter().copied());
        self.func.blocks[self.block].term =
            Terminator::Jump(enter(header, &[first, sum, array.at]));
        let i = self.func.add_param(header, Type::I64);
        let sum = self.func.add_param(header, array.elem);
        let pointer = self.func.ty(array.at);
        let walking = self.func.add_param(header, pointer);
        let left = self.func.add_param(exit, array.elem);
        let last = self.func.add_param(exit, Type::I64);
        let known = self.known.len();
        self.know(sum, array.elem, false);
        self.block = header;
        let goes_on = self.op(Op::ICmp(IntCond::Ult), &[i, bound], Type::Bool);
        self.func.blocks[header].term =
            Terminator::Branch(goes_on, Edge::new(inside), enter(exit, &[sum, i]));
        self.block = inside;
        counters.push(i);
        let (divergent, in_step) = (self.divergent, self.one_in(4));
        self.divergent = true;
        let stays_inside = counters.len() == 1 && trips <= array.len.into();
        let from = match in_step && stays_inside {
            true => walking,
            false => self.element(array, counters),
        };
        let found = self.get(from, array.elem, array.elem.size());
        self.know(found, array.elem, false);
        match self.below(4) {
            0 if counters.len() < 3 => self.walk(array, counters),
            1 => self.nested(),
            _ => {}
        }
        let next_sum = self.value(array.elem);
        if self.one_in(3) {
            let leaves = self.condition(false);
            let stay = self.func.add_block();
            self.func.blocks[self.block].term =
                Terminator::Branch(leaves, enter(exit, &[next_sum, i]), Edge::new(stay));
            self.block = stay;
        }
        if self.one_in(2) {
            let value = self.value(array.elem);
            let to = self.element(array, counters);
            self.put(to, &[value], array.elem.size());
        }
        self.func.blocks[self.block].term = Terminator::Jump(Edge::new(latch));
        self.block = latch;
        let one = self.konst(Type::I64, 1);
        let next = self.op(Op::IAdd, &[i, one], Type::I64);
        let walked = self.offset(walking, array.elem.size());
        self.func.blocks[latch].term = Terminator::Jump(enter(header, &[next, next_sum, walked]));
        self.divergent = divergent;
        counters.pop();
        self.known.truncate(known);
        self.block = exit;
        self.know(left, array.elem, false);
        if self.one_in(4) {
            // What was counted decides after the loop, too.
            let from = self.element(array, &[last]);
            let value = self.get(from, array.elem, array.elem.size());
            self.know(value, array.elem, false);
        }
    }

    /// Returns a constant of 64 bits, now and then one that is not known as such.
    fn opaque_rarely(&mut self, bits: u64) -> Value {
        match self.one_in(6) {
            true => self.opaque(Type::I64, bits),
            false => self.konst(Type::I64, bits),
        }
    }

    /// Computes the address of an element that counters choose, seldom other values.
    fn element(&mut self, array: PrivateArray, counters: &[Value]) -> Value {
        let mut index = self.konst(Type::I64, 0);
        for &counter in counters {
            let factor = self.below(4) as u64;
            let factor = self.konst(Type::I64, factor);
            let part = self.op(Op::IMul, &[counter, factor], Type::I64);
            index = self.op(Op::IAdd, &[index, part], Type::I64);
        }
        if self.one_in(24) {
            index = self.value(Type::I64);
        }
        let mask = self.konst(Type::I64, u64::from(array.len - 1));
        let index = self.op(Op::And, &[index, mask], Type::I64);
        self.indexed(array.at, index, array.elem.size())
    }
}
