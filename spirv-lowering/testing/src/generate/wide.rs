//! Generates what source compilers make of 32-bit indices, which they count in 64 bits and truncate
//! in each use, and of vectors in local memory, which are accessed as a whole.
//!
//! Only every fourth seed has these ([`has_these`]), so that kernels of seeds that are recorded
//! elsewhere stay as they are.

use super::body::{Body, KnownValue, Tile};
use super::MOST_ITEMS;
use spirv_lowering::ir::entity::Value;
use spirv_lowering::ir::function::{Edge, Terminator};
use spirv_lowering::ir::module::Global;
use spirv_lowering::ir::op::{IntCond, Op};
use spirv_lowering::ir::types::{Space, Type};

/// Returns true if the kernel of a seed has statements of this file.
pub(super) fn has_these(seed: u64) -> bool {
    seed % 4 == 3
}

impl Body<'_> {
    /// Generates one of the statements of this file.
    pub fn wide(&mut self, nest: bool) {
        let loops = nest && self.one_in(2);
        match self.local_index {
            Some(index) if !loops => self.tile(index),
            _ if nest => self.widened_loop(),
            _ => self.assign(),
        }
    }

    /// Generates a loop that counts in 64 bits up to a 32-bit number, or down to zero.
    fn widened_loop(&mut self) {
        let step = self.gen.rng.pick(&[1u64, 1, 1, 2, 5]);
        let count = self.below(10) as u64;
        let by_order = self.one_in(3);
        let down = !by_order && self.one_in(5);
        let known = self.one_in(3);
        // Below the end at first, or else not: where nothing sees to that before the loop, it has to be.
        let guarded = !by_order && (count == 0 || self.one_in(2));
        let number = if known {
            self.konst(Type::I32, count * step)
        } else {
            self.opaque(Type::I32, count * step)
        };
        let wide = self.op(Op::ZExt, &[number], Type::I64);
        let zero = self.konst(Type::I64, 0);
        let (start, end, by) = if down {
            (wide, zero, step.wrapping_neg())
        } else {
            (zero, wide, step)
        };
        let sum_ty = self.gen.rng.pick(&[Type::I32, Type::I64, Type::I64]);
        let sum = self.value(sum_ty);
        let (header, exit) = (self.func.add_block(), self.func.add_block());
        let to = |block, args: &[Value]| Edge::with(block, args.iter().copied());
        if guarded {
            let none = self.konst(Type::I32, 0);
            let cond = self.gen.rng.pick(&[IntCond::Eq, IntCond::Ne, IntCond::Sgt]);
            let test = self.op(Op::ICmp(cond), &[number, none], Type::Bool);
            let (go, leave) = (to(header, &[start, sum]), to(exit, &[zero, sum]));
            self.func.blocks[self.block].term = match cond {
                IntCond::Eq => Terminator::Branch(test, leave, go),
                _ => Terminator::Branch(test, go, leave),
            };
        } else {
            self.func.blocks[self.block].term = Terminator::Jump(to(header, &[start, sum]));
        }
        let at = self.func.add_param(header, Type::I64);
        let sum = self.func.add_param(header, sum_ty);
        let last = self.func.add_param(exit, Type::I64);
        let total = self.func.add_param(exit, sum_ty);
        let known = self.known.len();
        self.know(at, Type::I64, true);
        self.know(sum, sum_ty, false);
        self.block = header;
        let test_first = by_order && self.one_in(2);
        if test_first {
            let body = self.func.add_block();
            let goes_on = self.op(Op::ICmp(IntCond::Ult), &[at, end], Type::Bool);
            self.func.blocks[header].term =
                Terminator::Branch(goes_on, Edge::new(body), to(exit, &[at, sum]));
            self.block = body;
        }
        for _ in 0..1 + self.below(3) {
            let index = self.cut_index(at);
            self.know(index, Type::I64, false);
        }
        if self.one_in(2) {
            self.nested();
        }
        let index = self.cut_index(at);
        let new = match sum_ty {
            Type::I64 => self.op(Op::IAdd, &[sum, index], Type::I64),
            _ => {
                let low = self.op(Op::Trunc, &[index], Type::I32);
                self.op(Op::Xor, &[sum, low], Type::I32)
            }
        };
        if self.gen.kind == super::Kind::Plain && self.one_in(4) {
            let stop = self.condition(false);
            let stay = self.func.add_block();
            self.func.blocks[self.block].term =
                Terminator::Branch(stop, to(exit, &[at, sum]), Edge::new(stay));
            self.block = stay;
        }
        let by = self.konst(Type::I64, by);
        let next = self.op(Op::IAdd, &[at, by], Type::I64);
        let again = to(header, &[next, new]);
        let done = to(exit, &[if self.one_in(2) { at } else { next }, new]);
        self.func.blocks[self.block].term = if test_first {
            Terminator::Jump(again)
        } else if by_order {
            let goes_on = self.op(Op::ICmp(IntCond::Ult), &[next, end], Type::Bool);
            Terminator::Branch(goes_on, again, done)
        } else {
            let ends = self.op(Op::ICmp(IntCond::Eq), &[next, end], Type::Bool);
            Terminator::Branch(ends, done, again)
        };
        self.known.truncate(known);
        self.block = exit;
        self.know(last, Type::I64, false);
        self.know(total, sum_ty, false);
    }

    pub fn know(&mut self, value: Value, ty: Type, uniform: bool) {
        self.known.push(KnownValue { value, ty, uniform });
    }

    /// Generates 64-bit arithmetic on a counter, truncated to 32 bits as a source compiler does.
    fn cut_index(&mut self, at: Value) -> Value {
        let long = Type::I64;
        let mut x = at;
        for _ in 0..1 + self.below(3) {
            let other = match self.below(4) {
                0 => self.value(long),
                1 => {
                    let bits = self
                        .gen
                        .rng
                        .pick(&[1, 256, u64::MAX, 1 << 31, u64::MAX << 32 | 7]);
                    self.konst(long, bits)
                }
                _ => {
                    let low = self.value(Type::I32);
                    let op = self.gen.rng.pick(&[Op::ZExt, Op::ZExt, Op::SExt]);
                    self.op(op, &[low], long)
                }
            };
            let op = self
                .gen
                .rng
                .pick(&[Op::IAdd, Op::IAdd, Op::ISub, Op::IMul, Op::Xor, Op::Or]);
            x = match self.below(8) {
                0 => {
                    let by = self.below(40) as u64;
                    let by = self.konst(long, by);
                    self.op(Op::Shl, &[x, by], long)
                }
                1 => self.op(Op::INeg, &[x], long),
                2 => {
                    let c = self.condition(false);
                    self.op(Op::Select, &[c, x, other], long)
                }
                3 => self.op(Op::And, &[x, other], long),
                _ => self.op(op, &[x, other], long),
            };
        }
        match self.below(6) {
            0 => {
                let low = self.op(Op::Trunc, &[x], Type::I32);
                let op = self.gen.rng.pick(&[Op::ZExt, Op::SExt]);
                self.op(op, &[low], long)
            }
            1 => {
                let by = self.konst(long, 32);
                let high = self.op(Op::Shl, &[x, by], long);
                let by = self.gen.rng.pick(&[30, 32, 32, 33]);
                let by = self.konst(long, by);
                self.op(Op::AShr, &[high, by], long)
            }
            2 => {
                let mask = self.gen.rng.pick(&[0xff, 0xffff_fffc, 0x1_ffff_ffff]);
                let mask = self.konst(long, mask);
                self.op(Op::And, &[x, mask], long)
            }
            3 => x,
            _ => {
                let mask = self.konst(long, u32::MAX.into());
                self.op(Op::And, &[x, mask], long)
            }
        }
    }

    /// Stores a vector to the work-item's own place in an array that is accessed by vectors, and
    /// loads it again.
    fn tile(&mut self, index: Value) {
        let tile = match self.tile {
            Some(tile) => tile,
            None => self.new_tile(),
        };
        self.tile = Some(tile);
        let size = tile.ty.size() * tile.lanes as u32;
        let base = self.op(Op::GlobalAddr(tile.id), &[], Type::Ptr(Space::Local));
        let own = self.indexed(base, index, 2 * size);
        let values: Vec<Value> = (0..tile.lanes).map(|_| self.plain(tile.ty)).collect();
        let by = self.below(2) as u32 * size;
        let at = self.offset(own, by);
        self.put(at, &values, size);
        if tile.parts && self.one_in(2) {
            let value = self.plain(tile.ty);
            let lane = self.below(tile.lanes) as u32;
            let part = self.offset(at, lane * tile.ty.size());
            self.put(part, &[value], tile.ty.size());
        }
        if self.one_in(3) {
            self.assign();
        }
        let other = self.one_in(4);
        let ty = match tile.ty.as_int() {
            Some(int) if other => int,
            _ => tile.ty,
        };
        let op = Op::Load {
            align: size,
            volatile: false,
        };
        let inst = (self.func).append(self.block, op, [at], &vec![ty; tile.lanes]);
        for value in self.func.insts[inst].results.clone() {
            self.know(value, ty, false);
        }
    }

    fn new_tile(&mut self) -> Tile {
        let types = [
            Type::F32,
            Type::F32,
            Type::I32,
            Type::I64,
            Type::F64,
            Type::I16,
        ];
        let ty = self.gen.rng.pick(&types);
        let lanes = match ty.size() {
            8 => 2,
            _ => self.gen.rng.pick(&[2, 4, 4]),
        };
        let size = u64::from(ty.size()) * lanes as u64;
        let id = self.gen.module.globals.push(Global {
            space: Some(Space::Local),
            size: u64::from(2 * MOST_ITEMS) * size,
            align: size as u32,
            ..Default::default()
        });
        let parts = self.one_in(5);
        Tile {
            id,
            ty,
            lanes,
            parts,
        }
    }
}
