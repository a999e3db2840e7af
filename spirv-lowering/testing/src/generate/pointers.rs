//! Generates pointers as data: in slots, into several spaces, null, next to integers.

use super::body::{Body, KnownValue, Object};
use spirv_lowering::ir::entity::Value;
use spirv_lowering::ir::function::{Edge, Terminator};
use spirv_lowering::ir::op::{IntCond, Op};
use spirv_lowering::ir::types::{Space, Type};

const GENERIC: Type = Type::Ptr(Space::Generic);

impl Body<'_> {
    /// Returns objects of at least 16 writable bytes aligned to 4.
    pub(super) fn targets(&self, private: bool) -> Vec<Value> {
        self.objects
            .iter()
            .filter(|o| o.size >= 16 && o.align >= 4 && o.writable)
            .filter(|o| match self.func.ty(o.at) {
                Type::Ptr(Space::Private) => true,
                Type::Ptr(Space::Global | Space::Local | Space::Generic) => !private,
                _ => false,
            })
            .map(|o: &Object| o.at)
            .collect()
    }

    /// Returns a pointer into local or private memory.
    fn near(&mut self) -> Option<Value> {
        let mut targets = self.targets(false);
        targets.retain(|&at| matches!(self.func.ty(at), Type::Ptr(Space::Private | Space::Local)));
        (!targets.is_empty()).then(|| self.gen.rng.pick(&targets))
    }

    fn generic_to(&mut self, at: Value) -> Value {
        if self.func.ty(at) == GENERIC {
            return at;
        }
        self.op(Op::SpaceCast, &[at], GENERIC)
    }

    /// Returns a pointer of a space to some object.
    fn pointer(&mut self, space: Space) -> Option<Value> {
        let targets = self.targets(space == Space::Private);
        if targets.is_empty() {
            return None;
        }
        let a = self.gen.rng.pick(&targets);
        let b = self.gen.rng.pick(&targets);
        let (a, b) = match space {
            Space::Generic => (self.generic_to(a), self.generic_to(b)),
            _ => (a, b),
        };
        if self.one_in(2) {
            return Some(a);
        }
        let c = self.condition(false);
        Some(self.op(Op::Select, &[c, a, b], Type::Ptr(space)))
    }

    /// Stores a pointer to some object to a slot.
    pub fn point_anywhere(&mut self, slot: Value, space: Space) {
        match self.pointer(space) {
            Some(at) => self.put(slot, &[at], 8),
            None => {
                // There are always objects in private memory.
                let at = self.alloca(16, 4);
                let zero = self.konst(Type::I32, 0);
                self.put(at, &[zero; 4], 4);
                let at = match space {
                    Space::Generic => self.generic_to(at),
                    _ => at,
                };
                self.put(slot, &[at], 8);
            }
        }
    }

    pub fn repoint(&mut self) {
        if self.pointers.is_empty() {
            return self.assign();
        }
        let (slot, space) = self.gen.rng.pick(&self.pointers.clone());
        self.point_anywhere(slot, space);
    }

    /// Generates statements under a condition.
    fn guarded(&mut self, condition: Value, then: impl FnOnce(&mut Self)) {
        let (inside, after) = (self.func.add_block(), self.func.add_block());
        self.func.blocks[self.block].term =
            Terminator::Branch(condition, Edge::new(inside), Edge::new(after));
        self.block = inside;
        let known = self.known.len();
        let divergent = std::mem::replace(&mut self.divergent, true);
        then(self);
        self.divergent = divergent;
        self.known.truncate(known);
        self.func.blocks[self.block].term = Terminator::Jump(Edge::new(after));
        self.block = after;
    }

    /// Generates a generic pointer that may be null, queries about its space, and accesses through
    /// it.
    pub fn generic(&mut self) {
        let Some(mut at) = self.pointer(Space::Generic) else {
            return;
        };
        let nullable = self.one_in(2);
        if let (true, true, Some(near)) = (nullable, self.one_in(2), self.near()) {
            // Null where that is not seen, before it is made generic.
            let ty = self.func.ty(near);
            let c = self.condition(false);
            let null = self.konst(ty, 0);
            let either = self.op(Op::Select, &[c, near, null], ty);
            let other = self.generic_to(either);
            let c = self.condition(false);
            at = self.op(Op::Select, &[c, at, other], GENERIC);
        } else if nullable {
            let null = match self.null.filter(|_| self.gen.rng.one_in(2)) {
                Some(null) => self.generic_to(null),
                None => match self.below(3) {
                    0 => {
                        let null = self.konst(Type::Ptr(Space::Private), 0);
                        self.generic_to(null)
                    }
                    1 if self.gen.kind != super::Kind::Plain => {
                        let null = self.konst(Type::Ptr(Space::Local), 0);
                        self.generic_to(null)
                    }
                    _ => self.konst(GENERIC, 0),
                },
            };
            let c = self.condition(false);
            at = self.op(Op::Select, &[c, at, null], GENERIC);
            if self.one_in(2) {
                // By way of memory.
                let slot = self.alloca(8, 8);
                self.put(slot, &[at], 8);
                at = self.get(slot, GENERIC, 8);
            }
        }
        if self.one_in(3) {
            // What it is, by a cast.
            let space = self
                .gen
                .rng
                .pick(&[Space::Private, Space::Local, Space::Global]);
            let ty = Type::Ptr(space);
            let near = self.op(Op::SpaceCast, &[at], ty);
            let null = self.konst(ty, 0);
            let is = self.op(Op::ICmp(IntCond::Ne), &[near, null], Type::Bool);
            self.known.push(KnownValue {
                value: is,
                ty: Type::Bool,
                uniform: false,
            });
            let value = self.value(Type::I32);
            let store = self.one_in(2);
            self.guarded(is, |body| {
                if store {
                    body.put(near, &[value], 4);
                } else {
                    let loaded = body.get(near, Type::I32, 4);
                    let variables = body.variables.clone();
                    let fit = variables.iter().find(|v| v.ty == Type::I32 && !v.uniform);
                    if let Some(variable) = fit {
                        body.put(variable.at, &[loaded], 4);
                    }
                }
            });
            return;
        }
        let null = self.konst(GENERIC, 0);
        let there = self.op(Op::ICmp(IntCond::Ne), &[at, null], Type::Bool);
        if nullable {
            self.known.push(KnownValue {
                value: there,
                ty: Type::Bool,
                uniform: false,
            });
        }
        self.guarded(there, |body| {
            if body.one_in(3) {
                let space = body
                    .gen
                    .rng
                    .pick(&[Space::Private, Space::Local, Space::Global]);
                let is = body.op(Op::PtrIsIn(space), &[at], Type::Bool);
                let is = body.op(Op::ZExt, &[is], Type::I32);
                body.put(at, &[is], 4);
                return;
            }
            let value = body.value(Type::I32);
            let by = body.below(4) as u32 * 4;
            let at = body.offset(at, by);
            body.put(at, &[value], 4);
        });
    }

    /// Generates a union of a pointer and an integer that holds an integer.
    pub fn union(&mut self) {
        let mut spaces = vec![Space::Private, Space::Global];
        if self.gen.kind != super::Kind::Plain {
            spaces.push(Space::Local);
        }
        let space = self.gen.rng.pick(&spaces);
        let ty = Type::Ptr(space);
        let (a, b) = (self.alloca(8, 8), self.alloca(8, 8));
        let data = self.value(Type::I64);
        self.put(a, &[data], 8);
        // Sometimes it does hold a pointer, or the other slot does.
        if let (Some(at), true) = (self.private_object(), space == Space::Private) {
            if self.one_in(2) {
                self.put(b, &[at], 8);
            }
        }
        let moved = self.get(a, ty, 8);
        if self.one_in(3) {
            let c = self.condition(false);
            let other = self.konst(ty, 0);
            let moved = self.op(Op::Select, &[c, moved, other], ty);
            self.put(b, &[moved], 8);
        } else {
            self.put(b, &[moved], 8);
        }
        let value = self.get(b, Type::I64, 8);
        self.known.push(KnownValue {
            value,
            ty: Type::I64,
            uniform: false,
        });
    }
}
