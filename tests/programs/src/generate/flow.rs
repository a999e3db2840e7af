//! Control flow: conditions, switches, loops, tangles of jumps.

use super::{Gen, THREE};
use crate::ast::*;
use crate::types::{Scalar, Space, Type};

/// Statements of a body.
const BODY: usize = 4;

impl Gen {
    pub(super) fn flow(&mut self, block: &mut Block) {
        match self.below(12) {
            0..=2 => self.condition(block),
            3 | 4 => self.switch(block),
            5..=7 => self.counted(block),
            8 | 9 => self.fuelled(block),
            10 => self.leave(block),
            _ if !self.may("jumps") => self.condition(block),
            _ => self.tangle(block),
        }
    }

    /// Makes something in flow that not all work-items of a group follow.
    fn divergent<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> T {
        let before = std::mem::replace(&mut self.uniform, false);
        let made = make(self);
        self.uniform = before;
        made
    }

    /// The element of the array whose elements are 0, 3 or 7.
    fn three(&self) -> Option<Expr> {
        let (array, item) = (self.three?, self.item?);
        Some(self.get(array).moved(self.get(item)).deref().load())
    }

    /// True for all work-items, each for a reason of its own, which no compiler knows.
    fn always(&mut self) -> Option<Expr> {
        let three = self.three()?;
        let mut test = None;
        for value in THREE {
            let is = Expr::binary(Binary::Eq, three.clone(), Expr::int(value as i64));
            test = Some(match test {
                None => is,
                Some(before) => Expr::binary(Binary::Either, before, is),
            });
        }
        test
    }

    /// The same truth value for all work-items of a group.
    pub(super) fn uniform_test(&mut self) -> Expr {
        if self.may("labels") && self.percent(30) {
            if let Some(test) = self.always() {
                return test;
            }
        }
        let e = self.uniform_int(1);
        let mask = self.pick(&[1u64, 3, 6]);
        let few = Expr::binary(Binary::And, e, Expr::number(Scalar::Uint, mask));
        let op = self.pick(&[Binary::Eq, Binary::Ne, Binary::Ne]);
        Expr::binary(op, few, Expr::number(Scalar::Uint, 0))
    }

    fn condition(&mut self, block: &mut Block) {
        if self.uniform && self.percent(40) {
            let test = self.uniform_test();
            let then = self.block(BODY);
            let other = if self.percent(30) {
                self.block(BODY)
            } else {
                Vec::new()
            };
            block.push(Stmt::If(test, then, other));
            return;
        }
        let test = self.test(2);
        let then = self.divergent(|gen| gen.block(BODY));
        let other = if self.percent(40) {
            self.divergent(|gen| gen.block(BODY))
        } else {
            Vec::new()
        };
        block.push(Stmt::If(test, then, other));
    }

    /// A switch. Arms have several labels, and may fall through.
    fn switch(&mut self, block: &mut Block) {
        let three = if self.uniform && self.may("labels") && self.percent(35) {
            self.three()
        } else {
            None
        };
        if let Some(three) = three {
            // All work-items come to one arm, by labels of their own.
            let mut labels: Vec<Option<u64>> = THREE.iter().map(|&value| Some(value)).collect();
            if self.percent(30) {
                labels.push(Some(5));
            }
            if self.percent(20) {
                labels[2] = None;
            }
            let mut body = self.in_switch(|gen| gen.block(BODY));
            body.push(Stmt::Break);
            let mut other = self.in_switch(|gen| gen.divergent(|gen| gen.block(2)));
            other.push(Stmt::Break);
            let mut arms = vec![
                Arm { labels, body },
                Arm {
                    labels: vec![Some(9)],
                    body: other,
                },
            ];
            if self.percent(50) {
                arms.swap(0, 1);
            }
            block.push(Stmt::Switch(three, arms));
            return;
        }
        let uniform = self.uniform && self.percent(40);
        let scalar = self.pick(&[
            Scalar::Int,
            Scalar::Uint,
            Scalar::Uint,
            Scalar::Uchar,
            Scalar::Long,
            Scalar::Ulong,
        ]);
        let value = if uniform {
            self.uniform_int(1).to(scalar)
        } else {
            self.int(scalar, 1)
        };
        let mask = self.pick(&[3u64, 7, 7, 15]);
        let value = Expr::binary(Binary::And, value, Expr::number(scalar, mask));
        let mut labels: Vec<u64> = (0..=mask).collect();
        // Shuffled.
        for i in (1..labels.len()).rev() {
            let j = self.below(i + 1);
            labels.swap(i, j);
        }
        labels.truncate(2 + self.rng.below(labels.len() - 1));
        let mut arms = Vec::new();
        let mut default = self.percent(60);
        while !labels.is_empty() || default {
            let most = if self.may("labels") { 3 } else { 1 };
            let count = (1 + self.below(most)).min(labels.len());
            let mut list: Vec<Option<u64>> = labels.drain(..count).map(Some).collect();
            if default && (list.is_empty() || self.percent(30)) {
                list.push(None);
                default = false;
            }
            let mut body = self.in_switch(|gen| match uniform {
                true => gen.block(3),
                false => gen.divergent(|gen| gen.block(3)),
            });
            if self.percent(75) {
                body.push(Stmt::Break);
            }
            arms.push(Arm { labels: list, body });
        }
        block.push(Stmt::Switch(value, arms));
    }

    /// `break` is not that of a loop here.
    fn in_switch<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> T {
        let before = std::mem::replace(&mut self.loops, 0);
        let made = make(self);
        self.loops = before;
        made
    }

    /// A loop's body.
    fn body(&mut self, uniform: bool) -> Block {
        self.loops += 1;
        let body = match uniform {
            true => self.block(BODY),
            false => self.divergent(|gen| gen.block(BODY)),
        };
        self.loops -= 1;
        body
    }

    /// `for (i = 0; i < n; i++)`
    fn counted(&mut self, block: &mut Block) {
        let uniform = self.uniform && self.percent(60);
        let known = self.names.sources.len();
        let scalar = self.pick(&[
            Scalar::Int,
            Scalar::Uint,
            Scalar::Int,
            Scalar::Long,
            Scalar::Ulong,
        ]);
        let least = self.below(3) as u64;
        let limit = if uniform {
            self.uniform_int(1)
        } else {
            self.int(Scalar::Uint, 1)
        };
        let mask = self.pick(&[1u64, 3, 3, 7]);
        let count = if self.percent(25) {
            Expr::number(scalar, least + 1)
        } else {
            let few = Expr::binary(Binary::And, limit, Expr::number(Scalar::Uint, mask));
            Expr::binary(Binary::Add, few, Expr::number(Scalar::Uint, least)).to(scalar)
        };
        let var = self.var(Type::scalar(scalar), Space::Private);
        let counter = self.get(var);
        let one = Expr::number(scalar, 1);
        let (first, test, op) = if self.percent(75) {
            let test = Expr::binary(Binary::Lt, counter, count);
            (Expr::number(scalar, 0), test, Binary::Add)
        } else {
            let test = Expr::binary(Binary::Gt, counter, Expr::number(scalar, 0));
            (count, test, Binary::Sub)
        };
        // Another counter that goes along.
        let along = self.percent(35).then(|| {
            let narrow = self.int_type();
            let from = self.affine(narrow);
            let wide = self.pick(&[Scalar::Ulong, Scalar::Ulong, Scalar::Uint]);
            let along = self.var(Type::scalar(wide), Space::Private);
            block.push(Stmt::Declare(along, vec![from.to(wide)]));
            along
        });
        // What a value that goes round begins with.
        if self.percent(40) {
            let ty = Type::scalar(self.int_type());
            let value = self.number(&ty, 2);
            let carried = self.var(ty, Space::Private);
            block.push(Stmt::Declare(carried, vec![value]));
            let place = self.place_of(carried);
            self.know(place, true, false);
        }
        let place = self.place_of(var);
        let step = Stmt::Assign(place.clone(), Some(op), one);
        self.know(place, false, uniform);
        let mut body = Block::new();
        if let Some(along) = along {
            let (wide, place) = (self.vars[along].ty.element(), self.place_of(along));
            let by = Expr::number(wide, 1 + self.rng.below(4) as u64);
            self.know(place.clone(), false, false);
            body = self.body(uniform);
            let value = self.get(along);
            self.mix_value(&mut body, value);
            body.push(Stmt::Assign(place, Some(Binary::Add), by));
        } else {
            body.extend(self.body(uniform));
        }
        self.names.sources.truncate(known);
        let init = Stmt::Declare(var, vec![first]);
        block.push(Stmt::For(Box::new(init), test, Box::new(step), body));
    }

    /// A `while` or `do` loop that any condition ends, or at last a counter.
    fn fuelled(&mut self, block: &mut Block) {
        let uniform = self.uniform && self.percent(50);
        let fuel = self.var(Type::scalar(Scalar::Int), Space::Private);
        let amount = 1 + self.below(9) as i64;
        block.push(Stmt::Declare(fuel, vec![Expr::int(amount)]));
        let test = if uniform {
            self.uniform_test()
        } else {
            self.test(2)
        };
        let left = Expr::binary(Binary::Gt, self.get(fuel), Expr::int(0));
        let test = if self.percent(50) {
            Expr::binary(Binary::Both, left, test)
        } else {
            Expr::binary(Binary::Both, test, left)
        };
        let burn = Stmt::Assign(self.place_of(fuel), Some(Binary::Sub), Expr::int(1));
        let mut body = self.body(uniform);
        body.insert(0, burn);
        block.push(match self.percent(50) {
            true => Stmt::While(test, body),
            false => Stmt::DoWhile(body, test),
        });
    }

    /// `break`, `continue`, or in a function `return`, on a condition.
    fn leave(&mut self, block: &mut Block) {
        let out = if self.loops > 0 {
            self.pick(&[Stmt::Break, Stmt::Break, Stmt::Continue])
        } else if !self.in_kernel && self.result.is_scalar() {
            let result = self.result.clone();
            Stmt::Return(Some(self.number(&result, 1)))
        } else {
            return self.assign(block);
        };
        let test = if self.uniform {
            self.uniform_test()
        } else {
            self.test(2)
        };
        let mut then = if self.percent(40) {
            self.block(2)
        } else {
            Vec::new()
        };
        then.push(out);
        block.push(Stmt::If(test, then, Vec::new()));
    }

    /// Blocks with jumps between them in all directions, out of loops and into them.
    fn tangle(&mut self, block: &mut Block) {
        let uniform = self.uniform && self.percent(50);
        let count = 2 + self.below(3);
        let first = self.labels;
        // After each block's label that in its loop, if it has one.
        self.labels += 2 * count + 1;
        let inner: Vec<bool> = (0..count).map(|_| self.percent(25)).collect();
        let mut targets: Vec<usize> = (0..=count).map(|part| first + 2 * part).collect();
        for (part, _) in inner.iter().enumerate().filter(|(_, &inner)| inner) {
            targets.push(first + 2 * part + 1);
        }
        let fuel = self.var(Type::scalar(Scalar::Int), Space::Private);
        let amount = 3 + self.below(12) as i64;
        block.push(Stmt::Declare(fuel, vec![Expr::int(amount)]));
        let outer = std::mem::replace(&mut self.loops, 0);
        let piece = |gen: &mut Self| match uniform {
            true => Stmt::Block(gen.block(3)),
            false => Stmt::Block(gen.divergent(|gen| gen.block(3))),
        };
        let left = |gen: &Self| Expr::binary(Binary::Gt, gen.get(fuel), Expr::int(0));
        let burn = |gen: &Self| Stmt::Assign(gen.place_of(fuel), Some(Binary::Sub), Expr::int(1));
        let test = |gen: &mut Self| match uniform {
            true => gen.uniform_test(),
            false => gen.test(1),
        };
        let jump = |gen: &mut Self| {
            let test = Expr::binary(Binary::Both, test(gen), left(gen));
            let goto = Stmt::Goto(gen.pick(&targets));
            Stmt::If(test, vec![burn(gen), goto], Vec::new())
        };
        for (part, inner) in inner.into_iter().enumerate() {
            block.push(Stmt::Label(first + 2 * part));
            let before = piece(self);
            block.push(before);
            if inner || self.percent(25) {
                let mut body = vec![burn(self)];
                if inner {
                    if self.percent(50) {
                        body.push(piece(self));
                    }
                    body.push(Stmt::Label(first + 2 * part + 1));
                    body.push(piece(self));
                }
                body.push(jump(self));
                let test = Expr::binary(Binary::Both, left(self), test(self));
                block.push(Stmt::While(test, body));
            }
            block.push(jump(self));
        }
        block.push(Stmt::Label(first + 2 * count));
        self.loops = outer;
    }
}
