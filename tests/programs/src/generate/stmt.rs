//! Statements that change values: declarations, assignments, calls, copies.

use super::scope::At;
use super::Gen;
use crate::ast::*;
use crate::types::{scalars, Scalar, Space, Type};
use std::rc::Rc;

impl Gen {
    /// A block of at most so many statements, in a scope of its own.
    pub(super) fn block(&mut self, most: usize) -> Block {
        let known = self.names.sources.len();
        let mut block = Block::new();
        let count = 1 + self.below(most);
        self.depth += 1;
        for _ in 0..count {
            if self.budget == 0 {
                break;
            }
            self.budget -= 1;
            self.stmt(&mut block);
        }
        self.depth -= 1;
        self.names.sources.truncate(known);
        block
    }

    fn stmt(&mut self, block: &mut Block) {
        let deep = self.depth >= self.style.depth;
        let choice = self.below(100);
        if self.uniform && self.style.sync && choice < 12 {
            return self.synchronise(block);
        }
        match choice {
            0..=14 => self.declare(block),
            15..=34 => self.assign(block),
            35..=44 => self.mix(block),
            45..=49 => self.call(block),
            50 | 51 => self.vector_memory(block),
            52 if self.may("null") => self.perhaps_null(block),
            53 if self.may("alignment") => self.alignment(block),
            52 | 53 => self.assign(block),
            54..=57 => self.copy_struct(block),
            60..=66 if self.children.is_some() && self.enqueued.is_some() => self.enqueue(block),
            58 if self.lock.is_some() => self.locked(block),
            58..=62 if !self.counters.is_empty() => self.count(block),
            63 if self.texture.is_some() => self.image(block),
            64..=66 if self.texture.is_some() && self.percent(60) => self.image(block),
            64..=66 if self.style.printf && self.in_kernel => self.print(block),
            67..=75 if self.uniform && self.style.sync => self.synchronise(block),
            76..=79 if self.uniform && self.style.sync => self.synchronise(block),
            _ if deep => self.assign(block),
            _ => self.flow(block),
        }
    }

    /// Values for all scalars of a type.
    fn values(&mut self, ty: &Type) -> Vec<Expr> {
        let mut list = Vec::new();
        scalars(ty, &self.program.structs.clone(), 0, &mut list);
        let value = |(_, scalar): (usize, Scalar)| self.number(&Type::scalar(scalar), 1);
        list.into_iter().map(value).collect()
    }

    /// Declares a variable with a value.
    fn declare(&mut self, block: &mut Block) {
        match self.below(10) {
            0 | 1 => {
                // An array.
                let element = match self.below(6) {
                    0 if !self.program.structs.is_empty() => self.struct_type(),
                    1 => self.num_type(),
                    _ => Type::scalar(self.scalar_type()),
                };
                let count = self.pick(&[2usize, 4, 4, 8]);
                let large = !element.is_scalar() && count > 4;
                let ty = Type::Array(Rc::new(element), if large { 4 } else { count });
                self.declared(block, ty);
            }
            2 if !self.program.structs.is_empty() => {
                let ty = self.struct_type();
                self.declared(block, ty);
            }
            3 | 4 => self.pointer(block),
            _ => {
                let ty = self.num_type();
                let depth = 1 + self.below(2);
                let value = self.number(&ty, depth);
                let var = self.var(ty.clone(), Space::Private);
                self.vars[var].volatile = self.percent(3) && ty.is_scalar();
                block.push(Stmt::Declare(var, vec![value]));
                let place = self.place_of(var);
                self.know(place, true, false);
            }
        }
    }

    /// A pointer that may be null, followed where it is not.
    fn perhaps_null(&mut self, block: &mut Block) {
        let Some((first, count)) = self.some_pointer(true) else {
            return;
        };
        let Type::Pointer(space, target) = first.ty.clone() else {
            return;
        };
        let generic = self.style.standard >= 20 && space != Space::Constant && self.percent(60);
        let space = if generic { Space::Generic } else { space };
        let ty = Type::Pointer(space, target);
        let first = first.cast(&ty);
        let null = Expr::new(ty.clone(), Kind::Const(0));
        let var = self.var(ty.clone(), Space::Private);
        let never = self.percent(30);
        if never || self.percent(40) {
            block.push(Stmt::Declare(var, vec![null.clone()]));
            let set = Stmt::Assign(self.place_of(var), None, first);
            let test = self.test(1);
            if !never {
                block.push(Stmt::If(test, vec![set], Vec::new()));
            }
        } else {
            let test = self.test(1);
            let kind = Kind::Choice(Box::new(test), Box::new(first), Box::new(null.clone()));
            block.push(Stmt::Declare(var, vec![Expr::new(ty, kind)]));
        }
        let known = self.names.sources.len();
        let pointer = self.get(var);
        self.know_pointer(pointer.clone(), count, true);
        let mut then = Vec::new();
        let at = pointer.clone().moved(Expr::int(0)).deref();
        if let Some(place) = self.into_number(at, true) {
            let value = self.number(&place.ty.clone(), 1);
            then.push(Stmt::Assign(place, None, value));
        }
        self.assign(&mut then);
        self.names.sources.truncate(known);
        // No compiler knows that the item is not that large.
        let test = match self.item {
            Some(item) if never => {
                let large = Expr::number(Scalar::Ulong, 1 << 40);
                Expr::binary(Binary::Eq, self.get(item), large)
            }
            _ => Expr::binary(Binary::Ne, pointer, null),
        };
        block.push(Stmt::If(test, then, Vec::new()));
    }

    /// The address of a variable for which an alignment is asked.
    fn alignment(&mut self, block: &mut Block) {
        let place = match self.below(3) {
            0 => {
                let tables = 0..self.program.globals.len();
                let found = tables
                    .rev()
                    .find(|&index| self.program.globals[index].align > 0);
                let Some(index) = found else {
                    return self.assign(block);
                };
                let ty = self.program.globals[index].ty.clone();
                Place {
                    ty,
                    kind: PlaceKind::Global(index),
                }
            }
            _ => {
                let ty = self.num_type();
                let ty = Type::Array(Rc::new(ty), 2);
                let values = self.values(&ty);
                let var = self.var(ty, Space::Private);
                let natural = crate::types::layout(&self.vars[var].ty, &self.program.structs).1;
                self.vars[var].align = (1 << (3 + self.below(7))).max(natural);
                block.push(Stmt::Declare(var, values));
                let place = self.place_of(var);
                self.know(place.clone(), true, false);
                place
            }
        };
        let align = match place.kind {
            PlaceKind::Var(var) => self.vars[var].align,
            PlaceKind::Global(index) => self.program.globals[index].align,
            _ => return,
        };
        let first = place.index(Expr::int(0));
        self.mix_low_bits(block, first, align);
    }

    /// Mixes those bits of an address into the result that its alignment makes zero.
    pub(super) fn mix_low_bits(&mut self, block: &mut Block, first: Place, align: usize) {
        let low = Kind::Misaligned(Box::new(first), align);
        // A function, as compilers know that these bits are zero.
        let helper = "__attribute__((noinline)) ulong low_bits(ulong address, ulong mask) { return address & mask; }";
        if !self.program.pragmas.iter().any(|line| line == helper) {
            self.program.pragmas.push(helper.to_owned());
        }
        self.mix_value(block, Expr::new(Type::scalar(Scalar::Ulong), low));
    }

    pub(super) fn struct_type(&mut self) -> Type {
        Type::Struct(self.rng.below(self.program.structs.len()))
    }

    fn declared(&mut self, block: &mut Block, ty: Type) {
        let values = self.values(&ty);
        let var = self.var(ty, Space::Private);
        block.push(Stmt::Declare(var, values));
        let place = self.place_of(var);
        self.know(place, true, false);
    }

    /// Declares a pointer into something that is in scope; a generic one to one of two things.
    fn pointer(&mut self, block: &mut Block) {
        let Some((first, count)) = self.some_pointer(true) else {
            return;
        };
        let Type::Pointer(space, target) = first.ty.clone() else {
            return;
        };
        let generic = self.style.standard >= 20 && space != Space::Constant && self.percent(40);
        let mut most = count;
        let (ty, value) = if generic {
            let ty = Type::Pointer(Space::Generic, target.clone());
            let mut value = first.cast(&ty);
            for _ in 0..6 {
                let Some((second, other)) = self.some_pointer(true) else {
                    break;
                };
                let same = matches!(&second.ty, Type::Pointer(s, t) if *t == target && *s != Space::Constant);
                if same {
                    most = count.min(other);
                    let test = self.test(1);
                    let kind =
                        Kind::Choice(Box::new(test), Box::new(second.cast(&ty)), Box::new(value));
                    value = Expr::new(ty.clone(), kind);
                    break;
                }
            }
            (ty, value)
        } else {
            (first.ty.clone(), first)
        };
        // One of an array of pointers, or alone.
        let mut values = vec![value];
        if self.percent(25) {
            for _ in 0..8 {
                let Some((second, other)) = self.some_pointer(true) else {
                    break;
                };
                if second.ty == ty {
                    values.push(second);
                    most = most.min(other);
                    break;
                }
            }
        }
        let pointer = if values.len() == 2 {
            let var = self.var(Type::Array(Rc::new(ty), 2), Space::Private);
            block.push(Stmt::Declare(var, values));
            let which = self.int(Scalar::Uint, 1);
            let which = Expr::binary(Binary::And, which, Expr::number(Scalar::Uint, 1));
            self.place_of(var).index(which).load()
        } else {
            let var = self.var(ty, Space::Private);
            block.push(Stmt::Declare(var, values));
            self.get(var)
        };
        self.know_pointer(pointer, most, true);
    }

    /// Assigns to something that is in scope.
    pub(super) fn assign(&mut self, block: &mut Block) {
        let Some(place) = self.some_place(true) else {
            return self.mix(block);
        };
        let ty = place.ty.clone();
        let depth = 1 + self.below(3);
        let scalar = ty.element();
        // Compound ones where nothing can overflow.
        let unsigned = !scalar.is_float() && !scalar.is_signed() && scalar.bits() >= 32;
        if unsigned && self.percent(35) {
            let op = self.pick(&[
                Binary::Add,
                Binary::Xor,
                Binary::Sub,
                Binary::Mul,
                Binary::And,
                Binary::Or,
            ]);
            let value = self.number(&ty, depth);
            block.push(Stmt::Assign(place, Some(op), value));
            return;
        }
        let value = self.number(&ty, depth);
        block.push(Stmt::Assign(place, None, value));
    }

    /// Mixes a value into the result.
    pub(super) fn mix(&mut self, block: &mut Block) {
        let depth = 1 + self.below(2);
        let value = self.int(Scalar::Ulong, depth);
        self.mix_value(block, value);
    }

    /// Mixes this value into the result.
    pub(super) fn mix_value(&mut self, block: &mut Block, value: Expr) {
        let hash = self.get(self.hash);
        let factor = Expr::number(Scalar::Ulong, 31);
        let scaled = Expr::binary(Binary::Mul, hash, factor);
        let sum = Expr::binary(Binary::Add, scaled, value.to(Scalar::Ulong));
        let place = self.place_of(self.hash);
        block.push(Stmt::Assign(place, None, sum));
    }

    /// Calls a function made before.
    fn call(&mut self, block: &mut Block) {
        let made = self.program.functions.len();
        if made == 0 {
            return self.assign(block);
        }
        let which = self.below(made);
        if self.program.functions[which].result == Type::Void {
            return self.assign(block);
        }
        let function = self.program.functions[which].clone();
        let for_all = self.for_all.iter().find(|(f, _)| *f == which).copied();
        if for_all.is_some() && !self.uniform {
            return self.assign(block);
        }
        let mut args = Vec::new();
        for (position, &param) in function.params.iter().enumerate() {
            let ty = &function.vars[param].ty;
            if for_all.is_some_and(|(_, uniform)| uniform == position) {
                args.push(self.uniform_int(1).cast(ty));
                continue;
            }
            match ty {
                Type::Num(..) => args.push(self.number(ty, 1)),
                Type::Struct(_) => {
                    let Some(place) = self.whole(ty) else {
                        return self.assign(block);
                    };
                    args.push(place.load());
                }
                Type::Pointer(space, target) => {
                    let mut found = None;
                    for _ in 0..12 {
                        let Some((pointer, count)) = self.some_pointer(true) else {
                            break;
                        };
                        let Type::Pointer(s, t) = &pointer.ty else {
                            break;
                        };
                        let generic = *space == Space::Generic && *s != Space::Constant;
                        if t == target && count >= 2 && (s == space || generic) {
                            found = Some(pointer.cast(ty));
                            break;
                        }
                    }
                    let Some(pointer) = found else {
                        return self.assign(block);
                    };
                    args.push(pointer);
                }
                _ => return self.assign(block),
            }
        }
        let call = Expr::new(function.result.clone(), Kind::Call(which, args));
        match &function.result {
            Type::Void => block.push(Stmt::Expr(call)),
            Type::Num(..) => {
                let var = self.var(function.result.clone(), Space::Private);
                block.push(Stmt::Declare(var, vec![call]));
                let place = self.place_of(var);
                self.know(place, true, false);
            }
            _ => {
                let var = self.var(function.result.clone(), Space::Private);
                block.push(Stmt::Declare(var, vec![call]));
                let place = self.place_of(var);
                self.know(place, true, false);
            }
        }
    }

    /// A place of exactly a type.
    fn whole(&mut self, ty: &Type) -> Option<Place> {
        let mut list = Vec::new();
        for source in self.names.sources.clone() {
            match source.at {
                At::Place(place) if place.ty == *ty => list.push(place),
                At::Place(place) => {
                    if let Type::Array(element, count) = &place.ty {
                        if **element == *ty {
                            let index = self.index(*count);
                            list.push(place.clone().index(index));
                        }
                    }
                }
                At::Pointer(pointer, count) => {
                    if matches!(&pointer.ty, Type::Pointer(_, target) if **target == *ty) {
                        let index = self.index(count);
                        list.push(pointer.moved(index).deref());
                    }
                }
            }
        }
        if list.is_empty() {
            return None;
        }
        Some(self.pick(&list))
    }

    /// Copies a struct.
    fn copy_struct(&mut self, block: &mut Block) {
        if self.program.structs.is_empty() {
            return self.assign(block);
        }
        let ty = self.struct_type();
        let Some(from) = self.whole(&ty) else {
            return self.assign(block);
        };
        if self.percent(50) {
            for source in self.names.sources.clone().iter().rev() {
                let At::Place(place) = &source.at else {
                    continue;
                };
                if source.write && !source.uniform && place.ty == ty {
                    block.push(Stmt::Assign(place.clone(), None, from.load()));
                    return;
                }
            }
        }
        let var = self.var(ty, Space::Private);
        block.push(Stmt::Declare(var, vec![from.load()]));
        let place = self.place_of(var);
        self.know(place, true, false);
    }

    /// `vloadN` or `vstoreN` on an array of scalars.
    fn vector_memory(&mut self, block: &mut Block) {
        let write = self.percent(50);
        let Some((pointer, count)) = self.some_pointer(write) else {
            return self.assign(block);
        };
        let Type::Pointer(space, target) = pointer.ty.clone() else {
            return;
        };
        let fits = target.is_scalar() && count >= 2 && (target.element() != Scalar::Half);
        if !fits || space == Space::Constant && write {
            return self.assign(block);
        }
        let list: Vec<u8> = [2u8, 3, 4, 8, 16]
            .into_iter()
            .filter(|&n| usize::from(n) <= count)
            .collect();
        let lanes = self.pick(&list);
        let ty = Type::Num(target.element(), lanes);
        // As far as that leaves room.
        let room = count - usize::from(lanes);
        let by = if room > 0 {
            Expr::int(self.below(room + 1) as i64)
        } else {
            Expr::int(0)
        };
        let at = pointer.moved(by);
        if write {
            let value = self.number(&ty, 1);
            block.push(Stmt::Vstore(value, at));
        } else {
            let value = Expr::new(ty.clone(), Kind::Vload(Box::new(at)));
            let var = self.var(ty, Space::Private);
            block.push(Stmt::Declare(var, vec![value]));
            let place = self.place_of(var);
            self.know(place, true, false);
        }
    }

    /// Changes a counter that work-items share, by functions whose order does not matter.
    fn count(&mut self, block: &mut Block) {
        if self.percent(35) {
            return self.own_atomic(block);
        }
        let pointer = self.pick(&self.counters.clone());
        let Type::Pointer(_, target) = pointer.ty.clone() else {
            return;
        };
        let scalar = target.element();
        // One function each, so that the order does not matter.
        let ops = [
            Atomic::Add,
            Atomic::Xor,
            Atomic::Max,
            Atomic::Or,
            Atomic::Min,
            Atomic::And,
            Atomic::Sub,
            Atomic::Add,
        ];
        let which = self.below(8);
        let value = self.int(scalar, 1);
        let at = pointer.moved(Expr::int(which as i64));
        let c11 = self.style.standard >= 20 && self.percent(50);
        let kind = Kind::Atomic(ops[which], c11, vec![at, value]);
        block.push(Stmt::Expr(Expr::new(Type::scalar(scalar), kind)));
    }

    /// An atomic function on memory of the work-item's own, whose result is known.
    fn own_atomic(&mut self, block: &mut Block) {
        for _ in 0..5 {
            let Some((pointer, _)) = self.some_pointer(true) else {
                return;
            };
            let Type::Pointer(space, target) = pointer.ty.clone() else {
                return;
            };
            let fits = matches!(*target, Type::Num(Scalar::Int | Scalar::Uint, 1));
            if !fits || !matches!(space, Space::Global | Space::Local) {
                continue;
            }
            let scalar = target.element();
            let op = self.pick(&[
                Atomic::Add,
                Atomic::Xchg,
                Atomic::Cmpxchg,
                Atomic::Max,
                Atomic::Xor,
            ]);
            let mut args = vec![pointer, self.int(scalar, 1)];
            if op == Atomic::Cmpxchg {
                args.push(self.int(scalar, 1));
            }
            let c11 = self.style.standard >= 20 && op != Atomic::Cmpxchg && self.percent(50);
            let ty = Type::scalar(scalar);
            let var = self.var(ty.clone(), Space::Private);
            block.push(Stmt::Declare(
                var,
                vec![Expr::new(ty, Kind::Atomic(op, c11, args))],
            ));
            let place = self.place_of(var);
            self.know(place, true, false);
            return;
        }
    }

    /// Adds to a cell under the lock.
    fn locked(&mut self, block: &mut Block) {
        let value = self.int(Scalar::Uint, 1);
        let Some(lock) = self.lock.clone() else {
            return;
        };
        let cell = lock.clone().moved(Expr::int(1));
        block.push(Stmt::Locked(lock, cell, value));
    }

    /// Reads or writes a texel.
    fn image(&mut self, block: &mut Block) {
        if !self.in_kernel {
            return self.assign(block);
        }
        if self.percent(35) {
            let (Some((var, image)), Some(item)) = (self.target.clone(), self.item) else {
                return;
            };
            let item = self.get(item).to(Scalar::Int);
            let x = Expr::binary(Binary::And, item.clone(), Expr::int(15));
            let y = Expr::binary(Binary::Shr, item, Expr::int(4));
            let Type::Image(scalar, _) = self.vars[var].ty else {
                return;
            };
            let ty = Type::Num(scalar, 4);
            let mut texel = self.number(&ty, 1);
            if !scalar.is_float() && image.channel.bits() < 32 {
                // What the channel has.
                let most = if scalar.is_signed() {
                    image.channel.mask() >> 1
                } else {
                    image.channel.mask()
                };
                let mask = Expr::number(scalar, most).cast(&ty);
                texel = Expr::binary(Binary::And, texel, mask);
            }
            block.push(Stmt::WriteImage(var, x, y, texel));
            return;
        }
        let Some((var, image)) = self.texture.clone() else {
            return;
        };
        let Type::Image(scalar, _) = self.vars[var].ty else {
            return;
        };
        let sampler = self.percent(50);
        let (x, y) = if sampler {
            let (x, y) = (self.int(Scalar::Int, 1), self.int(Scalar::Int, 1));
            let few = |e| Expr::binary(Binary::Rem, e, Expr::int(30));
            (few(x), few(y))
        } else {
            let (x, y) = (self.int(Scalar::Int, 1), self.int(Scalar::Int, 1));
            let within = |e, size: usize| Expr::binary(Binary::And, e, Expr::int(size as i64 - 1));
            (within(x, image.width), within(y, image.height))
        };
        let ty = Type::Num(scalar, 4);
        let kind = Kind::ReadImage(var, Box::new(x), Box::new(y), sampler);
        let to = self.var(ty.clone(), Space::Private);
        block.push(Stmt::Declare(to, vec![Expr::new(ty, kind)]));
        let place = self.place_of(to);
        self.know(place, true, false);
    }

    /// Enqueues a function as a kernel, once.
    fn enqueue(&mut self, block: &mut Block) {
        if !self.in_kernel || self.loops > 0 || self.depth > 3 {
            return self.assign(block);
        }
        let (Some(function), Some((pointer, count)), Some(item)) =
            (self.enqueued.take(), self.children.clone(), self.item)
        else {
            return;
        };
        let param = self.program.functions[function].params[1];
        let ty = self.program.functions[function].vars[param].ty.clone();
        let number = self.number(&ty, 1);
        let few = Expr::binary(Binary::And, self.get(item), Expr::number(Scalar::Ulong, 15));
        let test = Expr::binary(Binary::Eq, few, Expr::number(Scalar::Ulong, 3));
        let stmt = Stmt::Enqueue(function, vec![pointer, number], count);
        block.push(Stmt::If(test, vec![stmt], Vec::new()));
    }

    /// Prints some numbers.
    fn print(&mut self, block: &mut Block) {
        let texts = ["a ", " b ", ":", " c"];
        let count = 1 + self.below(3);
        let mut values = Vec::new();
        for _ in 0..count {
            let scalar = self.pick(&[Scalar::Int, Scalar::Uint, Scalar::Long, Scalar::Ulong]);
            values.push(self.int(scalar, 1));
        }
        let texts = texts
            .iter()
            .take(count + 1)
            .map(|&text| text.to_owned())
            .collect();
        let print = Stmt::Printf(texts, values);
        // Not all work-items print.
        let id = self.int(Scalar::Uint, 0);
        let few = Expr::binary(Binary::And, id, Expr::number(Scalar::Uint, 31));
        let test = Expr::binary(Binary::Eq, few, Expr::number(Scalar::Uint, 5));
        block.push(Stmt::If(test, vec![print], Vec::new()));
    }
}
