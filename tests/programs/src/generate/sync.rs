//! Operations of a whole work-group: barriers, local memory, asynchronous copies, collective functions.

use super::Gen;
use crate::ast::*;
use crate::types::{Scalar, Space, Type};
use std::rc::Rc;

impl Gen {
    /// Something that all work-items of a group do.
    pub(super) fn synchronise(&mut self, block: &mut Block) {
        let choice = self.below(10);
        // Only kernels have local variables.
        let choice = if self.in_kernel {
            choice
        } else {
            [0, 5, 8][choice % 3]
        };
        match choice {
            0 if !self.in_kernel || self.percent(50) => block.push(Stmt::Barrier),
            0 if self.percent(50) => block.push(Stmt::Barrier),
            0 => self.copy(block),
            1 if self.counters.len() < 2 => self.local_counters(block),
            1..=4 => self.exchange(block),
            5..=7 if self.style.standard >= 20 => self.collective(Scope::WorkGroup, block),
            8 | 9 if self.style.sub_groups => self.collective(Scope::SubGroup, block),
            _ if self.in_kernel => self.exchange(block),
            _ => block.push(Stmt::Barrier),
        }
    }

    fn group_size(&self) -> usize {
        self.program.range.local.iter().product::<u64>() as usize
    }

    /// The index in the group.
    pub(super) fn local_index(&self) -> Expr {
        let query = |query, dim| Expr::query(query, dim);
        let id = |dim| query(Query::LocalId, dim);
        let size = |dim| query(Query::LocalSize, dim);
        let plane = Expr::binary(Binary::Mul, size(1), id(2));
        let row = Expr::binary(
            Binary::Mul,
            size(0),
            Expr::binary(Binary::Add, id(1), plane),
        );
        Expr::binary(Binary::Add, id(0), row).to(Scalar::Uint)
    }

    fn members(&self) -> Expr {
        let size = |dim| Expr::query(Query::LocalSize, dim);
        let rest = Expr::binary(Binary::Mul, size(1), size(2));
        Expr::binary(Binary::Mul, size(0), rest).to(Scalar::Uint)
    }

    /// Work-items write elements of local memory, and read those of others.
    fn exchange(&mut self, block: &mut Block) {
        let element = match self.below(8) {
            0 if !self.program.structs.is_empty() => self.struct_type(),
            1 | 2 => self.num_type(),
            _ => Type::scalar(self.int_type()),
        };
        let count = self.group_size();
        if crate::types::size(&element, &self.program.structs) * count > 8192 {
            block.push(Stmt::Barrier);
            return;
        }
        let ty = Type::Array(Rc::new(element.clone()), count);
        let array = self.var(ty, Space::Local);
        if self.may("alignment") && self.percent(6) {
            let natural = crate::types::layout(&element, &self.program.structs).1;
            let align = (1 << (3 + self.below(9))).max(natural);
            self.vars[array].align = align;
            let first = self.place_of(array).index(Expr::int(0));
            self.mix_low_bits(block, first, align);
        }
        let own = self.place_of(array).index(self.get(self.local_index));
        let mut list = Vec::new();
        crate::types::scalars(&element, &self.program.structs, 0, &mut list);
        match element {
            Type::Num(..) => {
                let value = self.number(&element, 2);
                block.push(Stmt::Assign(own.clone(), None, value));
            }
            Type::Struct(_) => {
                let values = list
                    .into_iter()
                    .map(|(_, scalar)| self.number(&Type::scalar(scalar), 1))
                    .collect();
                let var = self.var(element.clone(), Space::Private);
                block.push(Stmt::Declare(var, values));
                let value = self.get(var);
                block.push(Stmt::Assign(own.clone(), None, value));
            }
            _ => return,
        }
        // Its own element again, by any flow.
        if self.percent(30) && matches!(element, Type::Num(..)) {
            let value = self.number(&element, 1);
            let test = self.test(1);
            let again = Stmt::Assign(own, None, value);
            block.push(Stmt::If(test, vec![again], Vec::new()));
        }
        block.push(Stmt::Barrier);
        let known = self.names.sources.len();
        let by = self.int(Scalar::Uint, 1);
        let by = Expr::binary(Binary::And, by, Expr::number(Scalar::Uint, 63));
        let sum = Expr::binary(Binary::Add, self.get(self.local_index), by);
        let other = Expr::binary(Binary::Rem, sum, self.members());
        let index = self.var(Type::scalar(Scalar::Uint), Space::Private);
        block.push(Stmt::Declare(index, vec![other]));
        let place = self.place_of(array).index(self.get(index));
        if let Some(place) = self.into_number(place, false) {
            self.know(place.clone(), false, false);
            let value = place.load();
            let value = self.convert(value, &Type::scalar(Scalar::Ulong));
            self.mix_value(block, value);
        }
        if self.percent(40) {
            // A block that reads it, whoever goes where.
            let before = std::mem::replace(&mut self.uniform, false);
            let body = self.block(3);
            self.uniform = before;
            block.push(Stmt::Block(body));
        }
        self.names.sources.truncate(known);
        block.push(Stmt::Barrier);
    }

    /// Copies from a buffer to local memory, by all.
    fn copy(&mut self, block: &mut Block) {
        let Some(input) = self.input.clone() else {
            return;
        };
        let count = self.pick(&[8usize, 16, 32]);
        let stride = self.pick(&[1usize, 1, 1, 2, 3]);
        let uint = Type::scalar(Scalar::Uint);
        let array = self.var(Type::Array(Rc::new(uint), count), Space::Local);
        let to = self
            .place_of(array)
            .index(Expr::int(0))
            .address(Space::Local);
        let from = input.moved(Expr::int(self.below(64) as i64));
        block.push(Stmt::Barrier);
        block.push(Stmt::AsyncCopy(to, from, count, stride));
        let known = self.names.sources.len();
        let place = self.place_of(array);
        self.know(place, false, false);
        block.push(Stmt::Barrier);
        let body = self.block(3);
        block.push(Stmt::Block(body));
        self.names.sources.truncate(known);
        block.push(Stmt::Barrier);
    }

    /// Counters in local memory, which all change and then read.
    fn local_counters(&mut self, block: &mut Block) {
        let uint = Type::scalar(Scalar::Uint);
        let array = self.var(Type::Array(Rc::new(uint), 8), Space::Local);
        let place = self.place_of(array);
        let mut init = Block::new();
        for i in 0..8 {
            let value = self.constant(Scalar::Uint);
            init.push(Stmt::Assign(place.clone().index(Expr::int(i)), None, value));
        }
        let index = self.get(self.local_index);
        let first = Expr::binary(Binary::Eq, index, Expr::number(Scalar::Uint, 0));
        block.push(Stmt::If(first, init, Vec::new()));
        block.push(Stmt::Barrier);
        self.counters
            .push(place.clone().index(Expr::int(0)).address(Space::Local));
        let before = std::mem::replace(&mut self.uniform, false);
        let body = self.block(5);
        self.uniform = before;
        self.counters.pop();
        block.push(Stmt::Block(body));
        block.push(Stmt::Barrier);
        let at = self.below(8) as i64;
        let value = place.index(Expr::int(at)).load();
        self.mix_value(block, value);
        block.push(Stmt::Barrier);
    }

    /// A collective function.
    fn collective(&mut self, scope: Scope, block: &mut Block) {
        let what = self.pick(&[
            Collect::ReduceAdd,
            Collect::ReduceAdd,
            Collect::ReduceMin,
            Collect::ReduceMax,
            Collect::ScanInclusiveAdd,
            Collect::ScanExclusiveAdd,
            Collect::ScanInclusiveMax,
            Collect::ScanExclusiveMin,
            Collect::Broadcast,
            Collect::Broadcast,
            Collect::All,
            Collect::Any,
            Collect::Ballot,
        ]);
        let what = match scope {
            Scope::WorkGroup if what == Collect::Ballot => Collect::Any,
            _ => what,
        };
        let shuffle = what == Collect::Broadcast && scope == Scope::SubGroup && self.percent(60);
        let what = if shuffle { Collect::Shuffle } else { what };
        let truth = matches!(what, Collect::All | Collect::Any | Collect::Ballot);
        let scalar = match truth {
            true => Scalar::Int,
            false => self.pick(&[Scalar::Int, Scalar::Uint, Scalar::Long, Scalar::Ulong]),
        };
        let mut args = vec![match truth {
            true => self.test(1),
            false => self.int(scalar, 2),
        }];
        if shuffle {
            let from = self.int(Scalar::Uint, 1);
            let size = Expr::query(Query::SubGroupSize, 0);
            args.push(Expr::binary(Binary::Rem, from, size));
        }
        if what == Collect::Broadcast {
            match scope {
                Scope::SubGroup => args.push(Expr::number(Scalar::Uint, 0)),
                Scope::WorkGroup => {
                    for dim in 0..self.program.range.dims {
                        // Within the smallest of the groups.
                        let of = self.program.range.global[dim] % self.program.range.local[dim];
                        let least = if of == 0 {
                            self.program.range.local[dim]
                        } else {
                            of
                        };
                        let at = self.below(least as usize) as u64;
                        args.push(Expr::number(Scalar::Ulong, at));
                    }
                }
            }
        }
        let call = Expr::new(Type::scalar(scalar), Kind::Collective(scope, what, args));
        let var = self.var(Type::scalar(scalar), Space::Private);
        block.push(Stmt::Declare(var, vec![call]));
        let place = self.place_of(var);
        // Reductions are the same for all.
        let same = scope == Scope::WorkGroup
            && !matches!(
                what,
                Collect::ScanInclusiveAdd
                    | Collect::ScanExclusiveAdd
                    | Collect::ScanInclusiveMax
                    | Collect::ScanExclusiveMin
            );
        self.know(place, !same, same);
        if self.percent(60) {
            let value = self.get(var);
            self.mix_value(block, value);
        }
    }
}
