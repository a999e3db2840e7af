//! Code for a stack machine, made of a syntax tree. Work-items stop anywhere in it, which a walk over the tree could not.

use crate::ast::*;
use crate::types::{offset, size, Scalar, Space, Type};
use std::collections::HashMap;

/// An instruction. Operands are on the stack, the last one on top.
#[derive(Debug, Clone)]
pub enum Op {
    Const(u64),
    /// The address of a variable of the function, of the group, of the program.
    Var(usize),
    Local(usize),
    Global(usize),
    Offset(usize),
    /// Pointer, index: an element of so many bytes.
    Index(usize, Scalar),
    Load(Type),
    /// Pointer, value.
    Store(Type),
    /// Pointer, value: some lanes of a vector.
    StoreLanes(Scalar, Vec<u8>),
    /// Makes a variable anew, without a value.
    Fresh(usize),
    Copy,
    Pop,
    Unary(Unary, Scalar, bool),
    Binary(Binary, Scalar, bool),
    Convert(Scalar, Scalar, bool),
    As(Scalar, Scalar, usize),
    Splat(usize),
    Build(usize),
    Lanes(Vec<u8>),
    /// A function of so many operands; the type of the last one.
    Pure(Pure, Type, usize, Type),
    Query(Query, u8),
    Jump(usize),
    /// Jumps if the scalar on top is zero.
    Unless(usize, Scalar),
    Switch(Vec<(u64, usize)>, usize),
    /// A function, its first instruction known in the end.
    Call(usize),
    Return,
    Barrier,
    Collective(Scope, Collect, Scalar, usize),
    Atomic(Atomic, Scalar),
    Vload(Scalar, usize),
    /// Pointer, value.
    Vstore(Scalar),
    Printf(Vec<String>, Vec<Scalar>),
    /// The next packet of the pipe.
    Packet,
    /// x, y: of the argument of this number. The texel, of such numbers.
    ReadImage(usize, Scalar, bool),
    /// x, y, texel.
    WriteImage(usize, Scalar),
    /// Target, source: so many elements of so many bytes, so far apart in the source.
    AsyncCopy(usize, usize, usize),
    /// Operands of a function that runs later, for so many work-items.
    Enqueue(usize, usize, usize),
}

impl Op {
    /// Returns true if all work-items of a group come to it.
    pub fn is_for_all(&self) -> bool {
        matches!(
            self,
            Self::Barrier | Self::AsyncCopy(..) | Self::Collective(Scope::WorkGroup, ..)
        )
    }
}

/// The code of a function.
#[derive(Debug, Default)]
pub struct FunctionCode {
    pub start: usize,
    /// Sizes of its private variables; 0 for those of the group.
    pub vars: Vec<usize>,
    pub params: Vec<(usize, Type)>,
}

/// The code of a program.
#[derive(Debug, Default)]
pub struct Code {
    pub ops: Vec<Op>,
    pub functions: Vec<FunctionCode>,
}

/// Where jumps out of a statement go.
#[derive(Default)]
struct Exits {
    breaks: Vec<usize>,
    /// None: of a switch, whose `continue` is that of the loop around it.
    continues: Option<Vec<usize>>,
}

struct Compiler<'p> {
    program: &'p Program,
    function: &'p Function,
    ops: Vec<Op>,
    exits: Vec<Exits>,
    labels: HashMap<usize, usize>,
    gotos: Vec<(usize, usize)>,
}

/// The code of a program.
pub fn compile(program: &Program) -> Code {
    let mut code = Code::default();
    for function in &program.functions {
        let mut compiler = Compiler {
            program,
            function,
            ops: std::mem::take(&mut code.ops),
            exits: Vec::new(),
            labels: HashMap::new(),
            gotos: Vec::new(),
        };
        let start = compiler.ops.len();
        compiler.block(&function.body);
        compiler.ops.push(Op::Return);
        for (at, label) in std::mem::take(&mut compiler.gotos) {
            // A label that a smaller program has lost ends the function.
            let target = compiler.labels.get(&label).copied();
            compiler.ops[at] = target.map_or(Op::Return, Op::Jump);
        }
        code.ops = compiler.ops;
        let vars = function.vars.iter();
        let bytes = |var: &Var| match var.space {
            Space::Local => 0,
            _ => size(&var.ty, &program.structs),
        };
        code.functions.push(FunctionCode {
            start,
            vars: vars.map(bytes).collect(),
            params: function
                .params
                .iter()
                .map(|&var| (var, function.vars[var].ty.clone()))
                .collect(),
        });
    }
    code
}

impl Compiler<'_> {
    fn emit(&mut self, op: Op) -> usize {
        self.ops.push(op);
        self.ops.len() - 1
    }

    fn here(&self) -> usize {
        self.ops.len()
    }

    /// Lets a jump lead here.
    fn land(&mut self, at: usize) {
        let here = self.here();
        match &mut self.ops[at] {
            Op::Jump(to) | Op::Unless(to, _) => *to = here,
            _ => {}
        }
    }

    /// The number of the argument that a parameter of the kernel is set to.
    fn arg(&self, var: usize) -> usize {
        self.function
            .params
            .iter()
            .position(|&param| param == var)
            .unwrap_or(0)
    }

    fn size(&self, ty: &Type) -> usize {
        size(ty, &self.program.structs)
    }

    fn place(&mut self, place: &Place) {
        match &place.kind {
            PlaceKind::Var(var) => {
                let local = self.function.vars[*var].space == Space::Local;
                self.emit(if local {
                    Op::Local(*var)
                } else {
                    Op::Var(*var)
                });
            }
            PlaceKind::Global(index) => {
                self.emit(Op::Global(*index));
            }
            PlaceKind::Field(of, field) => {
                self.place(of);
                if let Type::Struct(index) = of.ty {
                    let bytes = offset(index, *field, &self.program.structs);
                    self.emit(Op::Offset(bytes));
                }
            }
            PlaceKind::Index(of, index) => {
                self.place(of);
                self.expr(index);
                let bytes = self.size(&place.ty);
                self.emit(Op::Index(bytes, index.ty.element()));
            }
            PlaceKind::Deref(pointer) => self.expr(pointer),
            // Stores know them.
            PlaceKind::Lanes(of, _) => self.place(of),
        }
    }

    fn store(&mut self, place: &Place) {
        match &place.kind {
            PlaceKind::Lanes(_, lanes) => {
                self.emit(Op::StoreLanes(place.ty.element(), lanes.clone()));
            }
            _ => {
                self.emit(Op::Store(place.ty.clone()));
            }
        }
    }

    fn load(&mut self, place: &Place) {
        self.place(place);
        match &place.kind {
            PlaceKind::Lanes(of, lanes) => {
                self.emit(Op::Load(of.ty.clone()));
                self.emit(Op::Lanes(lanes.clone()));
            }
            _ => {
                self.emit(Op::Load(place.ty.clone()));
            }
        }
    }

    /// Converts what is on top.
    fn convert(&mut self, from: &Type, to: &Type, sat: bool) {
        if let (Type::Num(a, _), Type::Num(b, _)) = (from, to) {
            if a != b {
                self.emit(Op::Convert(*a, *b, sat));
            }
            if to.lanes() > from.lanes() {
                self.emit(Op::Splat(to.lanes()));
            }
        }
    }

    /// An operator on what is on the stack, `a`, and an operand.
    fn operator(&mut self, op: Binary, a: &Type, b: &Expr) -> Type {
        let shift = matches!(op, Binary::Shl | Binary::Shr);
        let (common, ty) = if a.is_vector() {
            (a.clone(), a.clone())
        } else if shift {
            let promoted = Type::scalar(a.element().promoted());
            (promoted.clone(), promoted)
        } else {
            let common = Type::scalar(a.element().common(b.ty.element()));
            (common.clone(), common)
        };
        self.convert(a, &common, false);
        self.expr(b);
        if shift {
            // Only the low bits count.
            if b.ty.element() != common.element() {
                self.emit(Op::Convert(b.ty.element(), common.element(), false));
            }
            if common.lanes() > b.ty.lanes() {
                self.emit(Op::Splat(common.lanes()));
            }
        } else {
            self.convert(&b.ty, &common, false);
        }
        let vector = common.is_vector();
        self.emit(Op::Binary(op, common.element(), vector));
        match op.is_test() {
            true if vector => Type::Num(common.element().signed(), common.lanes() as u8),
            true => Type::scalar(Scalar::Int),
            false => ty,
        }
    }

    /// `a ? b : c`, where each part is code.
    fn branch(
        &mut self,
        test: Scalar,
        then: impl FnOnce(&mut Self),
        other: impl FnOnce(&mut Self),
    ) {
        let unless = self.emit(Op::Unless(0, test));
        then(self);
        let over = self.emit(Op::Jump(0));
        self.land(unless);
        other(self);
        self.land(over);
    }

    fn expr(&mut self, e: &Expr) {
        match &e.kind {
            Kind::Const(bits) => {
                self.emit(Op::Const(*bits));
            }
            Kind::Misaligned(..) => _ = self.emit(Op::Const(0)),
            Kind::Load(place) => self.load(place),
            Kind::Address(place) => self.place(place),
            Kind::Unary(op, a) => {
                self.expr(a);
                let scalar = a.ty.element();
                let promoted = if a.ty.is_vector() || *op == Unary::Zero {
                    scalar
                } else {
                    scalar.promoted()
                };
                if promoted != scalar {
                    self.emit(Op::Convert(scalar, promoted, false));
                }
                self.emit(Op::Unary(*op, promoted, a.ty.is_vector()));
            }
            Kind::Binary(op @ (Binary::Both | Binary::Either), a, b) if a.ty.is_scalar() => {
                let both = *op == Binary::Both;
                self.expr(a);
                let rest = |c: &mut Self| {
                    c.expr(b);
                    c.branch(
                        b.ty.element(),
                        |c| _ = c.emit(Op::Const(1)),
                        |c| _ = c.emit(Op::Const(0)),
                    );
                };
                let known = |c: &mut Self| _ = c.emit(Op::Const(u64::from(!both)));
                if both {
                    self.branch(a.ty.element(), rest, known);
                } else {
                    self.branch(a.ty.element(), known, rest);
                }
            }
            Kind::Binary(op, a, b) => {
                self.expr(a);
                self.operator(*op, &a.ty, b);
            }
            Kind::Choice(test, a, b) => {
                self.expr(test);
                self.branch(
                    test.ty.element(),
                    |c| {
                        c.expr(a);
                        c.convert(&a.ty, &e.ty, false);
                    },
                    |c| {
                        c.expr(b);
                        c.convert(&b.ty, &e.ty, false);
                    },
                );
            }
            Kind::Cast(a) => {
                self.expr(a);
                self.convert(&a.ty, &e.ty, false);
            }
            Kind::Convert(a, sat) => {
                self.expr(a);
                self.convert(&a.ty, &e.ty, *sat);
            }
            Kind::As(a) => {
                self.expr(a);
                self.emit(Op::As(a.ty.element(), e.ty.element(), e.ty.lanes()));
            }
            Kind::Build(parts) => {
                for part in parts {
                    self.expr(part);
                }
                self.emit(Op::Build(parts.len()));
            }
            Kind::Lanes(of, lanes) => {
                self.expr(of);
                self.emit(Op::Lanes(lanes.clone()));
            }
            Kind::Pure(f, args) => {
                for arg in args {
                    self.expr(arg);
                }
                let last = &args[args.len() - 1].ty;
                let first = args[0].ty.clone();
                self.emit(Op::Pure(*f, first, args.len(), last.clone()));
            }
            Kind::Call(f, args) => {
                for arg in args {
                    self.expr(arg);
                }
                self.emit(Op::Call(*f));
            }
            Kind::Query(query, dim) => {
                self.emit(Op::Query(*query, *dim));
            }
            Kind::Move(base, index) => {
                self.expr(base);
                self.expr(index);
                if let Type::Pointer(_, target) = &base.ty {
                    let bytes = self.size(target);
                    self.emit(Op::Index(bytes, index.ty.element()));
                }
            }
            Kind::Collective(scope, what, args) => {
                for arg in args {
                    self.expr(arg);
                }
                let scalar = args[0].ty.element();
                self.emit(Op::Collective(*scope, *what, scalar, args.len()));
            }
            Kind::ReadImage(image, x, y, sampler) => {
                self.emit(Op::Var(*image));
                self.expr(x);
                self.expr(y);
                let arg = self.arg(*image);
                self.emit(Op::ReadImage(arg, e.ty.element(), *sampler));
            }
            Kind::Atomic(op, _, args) => {
                for arg in args {
                    self.expr(arg);
                }
                self.emit(Op::Atomic(*op, e.ty.element()));
            }
            Kind::Vload(pointer) => {
                self.expr(pointer);
                self.emit(Op::Vload(e.ty.element(), e.ty.lanes()));
            }
        }
    }

    fn block(&mut self, block: &[Stmt]) {
        for stmt in block {
            self.stmt(stmt);
        }
    }

    /// A condition: the jump that is taken where it does not hold.
    fn unless(&mut self, test: &Expr) -> usize {
        self.expr(test);
        self.emit(Op::Unless(0, test.ty.element()))
    }

    /// The body of a loop; where `continue` leads is what comes then.
    fn looped(&mut self, body: &[Stmt]) -> Exits {
        self.exits.push(Exits {
            breaks: Vec::new(),
            continues: Some(Vec::new()),
        });
        self.block(body);
        let exits = self.exits.pop().unwrap_or_default();
        for &at in exits.continues.iter().flatten() {
            self.land(at);
        }
        exits
    }

    fn leave(&mut self, exits: Exits) {
        for at in exits.breaks {
            self.land(at);
        }
    }

    fn declare(&mut self, var: usize, values: &[Expr]) {
        self.emit(Op::Fresh(var));
        let ty = self.function.vars[var].ty.clone();
        match values {
            [] => {}
            [value] if value.ty == ty => {
                self.emit(Op::Var(var));
                self.expr(value);
                self.emit(Op::Store(ty));
            }
            values => {
                let mut list = Vec::new();
                crate::types::scalars(&ty, &self.program.structs, 0, &mut list);
                for (i, (at, scalar)) in list.into_iter().enumerate() {
                    self.emit(Op::Var(var));
                    self.emit(Op::Offset(at));
                    match values.get(i) {
                        Some(value) => {
                            self.expr(value);
                            self.convert(&value.ty, &Type::scalar(scalar), false);
                        }
                        None => _ = self.emit(Op::Const(0)),
                    }
                    self.emit(Op::Store(Type::scalar(scalar)));
                }
            }
        }
    }

    fn stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Declare(var, values) => self.declare(*var, values),
            Stmt::Assign(at, op, value) => {
                self.place(at);
                if let Some(op) = op {
                    self.load(at);
                    let ty = self.operator(*op, &at.ty, value);
                    self.convert(&ty, &at.ty, false);
                } else {
                    self.expr(value);
                    self.convert(&value.ty, &at.ty, false);
                }
                self.store(at);
            }
            Stmt::Expr(value) => {
                self.expr(value);
                if value.ty != Type::Void {
                    self.emit(Op::Pop);
                }
            }
            Stmt::If(test, then, other) => {
                self.expr(test);
                self.branch(test.ty.element(), |c| c.block(then), |c| c.block(other));
            }
            Stmt::For(init, test, step, body) => {
                self.stmt(init);
                let start = self.here();
                let out = self.unless(test);
                let exits = self.looped(body);
                self.stmt(step);
                self.emit(Op::Jump(start));
                self.land(out);
                self.leave(exits);
            }
            Stmt::While(test, body) => {
                let start = self.here();
                let out = self.unless(test);
                let exits = self.looped(body);
                self.emit(Op::Jump(start));
                self.land(out);
                self.leave(exits);
            }
            Stmt::DoWhile(body, test) => {
                let start = self.here();
                let exits = self.looped(body);
                let out = self.unless(test);
                self.emit(Op::Jump(start));
                self.land(out);
                self.leave(exits);
            }
            Stmt::Switch(value, arms) => {
                self.expr(value);
                let scalar = value.ty.element();
                if scalar != scalar.promoted() {
                    self.emit(Op::Convert(scalar, scalar.promoted(), false));
                }
                let at = self.emit(Op::Pop);
                self.exits.push(Exits::default());
                let (mut cases, mut default) = (Vec::new(), None);
                for arm in arms {
                    let here = self.here();
                    for label in &arm.labels {
                        match label {
                            Some(bits) => cases.push((*bits, here)),
                            None => default = Some(here),
                        }
                    }
                    self.block(&arm.body);
                }
                let end = self.here();
                self.ops[at] = Op::Switch(cases, default.unwrap_or(end));
                let exits = self.exits.pop().unwrap_or_default();
                self.leave(exits);
            }
            Stmt::Break => {
                let at = self.emit(Op::Jump(0));
                if let Some(exits) = self.exits.last_mut() {
                    exits.breaks.push(at);
                }
            }
            Stmt::Continue => {
                let at = self.emit(Op::Jump(0));
                let mut loops = self.exits.iter_mut().rev();
                if let Some(list) = loops.find_map(|exits| exits.continues.as_mut()) {
                    list.push(at);
                }
            }
            Stmt::Label(label) => _ = self.labels.insert(*label, self.ops.len()),
            Stmt::Goto(label) => {
                let at = self.emit(Op::Jump(0));
                self.gotos.push((at, *label));
            }
            Stmt::Return(None) => _ = self.emit(Op::Return),
            Stmt::Return(Some(value)) => {
                self.expr(value);
                let result = self.function.result.clone();
                self.convert(&value.ty, &result, false);
                self.emit(Op::Return);
            }
            Stmt::Barrier => _ = self.emit(Op::Barrier),
            Stmt::Vstore(value, at) => {
                self.expr(at);
                self.expr(value);
                self.emit(Op::Vstore(value.ty.element()));
            }
            Stmt::WriteImage(image, x, y, texel) => {
                self.emit(Op::Var(*image));
                self.expr(x);
                self.expr(y);
                self.expr(texel);
                let arg = self.arg(*image);
                self.emit(Op::WriteImage(arg, texel.ty.element()));
            }
            Stmt::AsyncCopy(to, from, count, stride) => {
                self.expr(to);
                self.expr(from);
                let bytes = match &to.ty {
                    Type::Pointer(_, target) => self.size(target),
                    _ => 0,
                };
                self.emit(Op::AsyncCopy(bytes, *count, *stride));
            }
            Stmt::ReadPipe(_, counter) => {
                self.expr(counter);
                self.emit(Op::Packet);
                self.emit(Op::Atomic(Atomic::Add, Scalar::Uint));
                self.emit(Op::Pop);
            }
            // In turn, in whatever order.
            Stmt::Locked(_, cell, value) => {
                self.expr(cell);
                self.expr(value);
                self.emit(Op::Atomic(Atomic::Add, Scalar::Uint));
                self.emit(Op::Pop);
            }
            Stmt::Enqueue(function, args, count) => {
                for arg in args {
                    self.expr(arg);
                }
                self.emit(Op::Enqueue(*function, args.len(), *count));
            }
            Stmt::Printf(texts, values) => {
                for value in values {
                    self.expr(value);
                }
                let types = values.iter().map(|value| value.ty.element()).collect();
                self.emit(Op::Printf(texts.clone(), types));
            }
            Stmt::Block(block) => self.block(block),
        }
    }
}
