//! Generates statements on addresses as integers, at the end of a kernel: pointers made of sums,
//! selections and differences of such integers, and values that replace undefined ones.
//!
//! Every fifth seed has these ([`has_these`]). They draw random numbers of their own, so that they
//! do not change the rest of a kernel.

use super::body::Body;
use crate::rng::Rng;
use spirv_lowering::ir::entity::Value;
use spirv_lowering::ir::function::{Edge, Terminator};
use spirv_lowering::ir::op::{IntCond, Op};
use spirv_lowering::ir::types::{Space, Type};

const GENERIC: Type = Type::Ptr(Space::Generic);

/// Returns true if the kernel of a seed has statements of this file.
pub(super) fn has_these(seed: u64) -> bool {
    seed % 5 == 2
}

impl Body<'_> {
    /// Generates statements on addresses.
    pub(super) fn addresses(&mut self, mut rng: Rng) {
        let private = rng.one_in(4);
        let mut targets = self.targets(false);
        targets.retain(|&at| private || self.func.ty(at) != Type::Ptr(Space::Private));
        if targets.is_empty() {
            return;
        }
        for _ in 0..1 + rng.below(5) {
            let at = rng.pick(&targets);
            match rng.below(5) {
                0 => self.defined(&mut rng, at),
                1 => self.distance(&mut rng, at),
                2 => self.way_to_one(&mut rng, at, &targets),
                _ => self.there_and_back(&mut rng, at),
            }
        }
    }

    fn load_word(&mut self, at: Value) -> Value {
        let load = Op::Load {
            align: 4,
            volatile: false,
        };
        self.op(load, &[at], Type::I32)
    }

    fn store_word(&mut self, at: Value, value: Value) {
        let store = Op::Store {
            align: 4,
            volatile: false,
        };
        self.func.append(self.block, store, [at, value], &[]);
    }

    /// Returns the address as an integer, perhaps through a generic pointer, and the type of the
    /// pointer.
    fn integer(&mut self, rng: &mut Rng, at: Value) -> (Value, Type) {
        let generic = self.func.ty(at) != GENERIC && rng.one_in(3);
        let at = match generic {
            true => self.op(Op::SpaceCast, &[at], GENERIC),
            false => at,
        };
        (self.op(Op::PtrToInt, &[at], Type::I64), self.func.ty(at))
    }

    /// Returns a pointer to `bytes` after an address, and the word there. An opaque zero may be
    /// added to it.
    fn word_after(
        &mut self,
        rng: &mut Rng,
        address: Value,
        bytes: u64,
        ty: Type,
    ) -> (Value, Value) {
        let by = self.konst(Type::I64, bytes);
        let by = match self.zero.filter(|_| rng.one_in(2)) {
            Some(zero) => self.op(Op::IAdd, &[by, zero], Type::I64),
            None => by,
        };
        let address = self.op(Op::IAdd, &[address, by], Type::I64);
        let pointer = self.op(Op::IntToPtr, &[address], ty);
        (pointer, self.load_word(pointer))
    }

    /// Changes a word of the object through its address.
    fn there_and_back(&mut self, rng: &mut Rng, at: Value) {
        let (address, ty) = self.integer(rng, at);
        let bytes = 4 * rng.below(4) as u64;
        let (pointer, word) = self.word_after(rng, address, bytes, ty);
        let by = self.konst(Type::I32, rng.bits() & 0xffff);
        let changed = self.op(Op::Xor, &[word, by], Type::I32);
        let to = match rng.one_in(2) {
            true => pointer,
            false => self.offset(at, bytes as u32),
        };
        self.store_word(to, changed);
    }

    /// Computes the distance of two places of an object, and its alignment.
    fn distance(&mut self, rng: &mut Rng, at: Value) {
        let far = self.offset(at, 4 * rng.below(4) as u32);
        let (near, far) = (
            self.op(Op::PtrToInt, &[at], Type::I64),
            self.op(Op::PtrToInt, &[far], Type::I64),
        );
        let distance = self.op(Op::ISub, &[far, near], Type::I64);
        let mask = self.konst(Type::I64, 3);
        let low = self.op(Op::And, &[near, mask], Type::I64);
        let both = self.op(Op::Or, &[distance, low], Type::I64);
        let both = self.op(Op::Trunc, &[both], Type::I32);
        let word = self.load_word(at);
        let word = self.op(Op::IAdd, &[word, both], Type::I32);
        self.store_word(at, word);
    }

    /// Returns a condition that some work-items satisfy.
    fn some(&mut self, rng: &mut Rng) -> Value {
        let index = self
            .global_index
            .unwrap_or_else(|| self.konst(Type::I64, 0));
        let mask = self.konst(Type::I64, 1 << rng.below(3));
        let bit = self.op(Op::And, &[index, mask], Type::I64);
        let zero = self.konst(Type::I64, 0);
        self.op(Op::ICmp(IntCond::Ne), &[bit, zero], Type::Bool)
    }

    /// Accesses one of two objects through its address, which a branch or a selection chooses.
    fn way_to_one(&mut self, rng: &mut Rng, at: Value, targets: &[Value]) {
        let ty = self.func.ty(at);
        let same: Vec<Value> = targets
            .iter()
            .copied()
            .filter(|&other| self.func.ty(other) == ty)
            .collect();
        let other = rng.pick(&same);
        let addresses = [at, other].map(|at| self.op(Op::PtrToInt, &[at], Type::I64));
        let which = self.some(rng);
        let address = if rng.one_in(2) {
            let [a, b] = addresses;
            self.op(Op::Select, &[which, a, b], Type::I64)
        } else {
            let (yes, done) = (self.func.add_block(), self.func.add_block());
            let address = self.func.add_param(done, Type::I64);
            let edge = |address| Edge::with(done, [address]);
            self.func.blocks[self.block].term =
                Terminator::Branch(which, Edge::new(yes), edge(addresses[1]));
            self.func.blocks[yes].term = Terminator::Jump(edge(addresses[0]));
            self.block = done;
            address
        };
        let bytes = 4 * rng.below(4) as u64;
        let (pointer, word) = self.word_after(rng, address, bytes, ty);
        let by = self.konst(Type::I32, rng.bits() & 0xff);
        let changed = self.op(Op::IAdd, &[word, by], Type::I32);
        self.store_word(pointer, changed);
    }

    /// Selects a word in place of an undefined one.
    fn defined(&mut self, rng: &mut Rng, at: Value) {
        let undefined = self.op(Op::Undef, &[], Type::I32);
        let (Some(zero), word) = (self.zero, self.load_word(at)) else {
            return;
        };
        let none = self.konst(Type::I64, 0);
        let sure = self.op(Op::ICmp(IntCond::Eq), &[zero, none], Type::Bool);
        let by = self.konst(Type::I32, rng.bits() & 0xff);
        let mixed = self.op(Op::Xor, &[undefined, by], Type::I32);
        let chosen = self.op(Op::Select, &[sure, word, mixed], Type::I32);
        let chosen = self.op(Op::IAdd, &[chosen, by], Type::I32);
        self.store_word(at, chosen);
    }
}
