//! Whether the names of a program are in order, as OpenCL C asks for: declared where they are used, labels that are there.

use crate::ast::*;
use crate::types::Type;
use std::collections::HashSet;

/// The statements around a statement.
#[derive(Clone, Copy, Default)]
struct Around {
    breaks: bool,
    continues: bool,
}

struct Check<'p> {
    program: &'p Program,
    function: &'p Function,
    known: Vec<usize>,
    labels: HashSet<usize>,
    gotos: HashSet<usize>,
    fine: bool,
}

/// Returns true if all names are declared where they are used, and every jump has its target.
pub fn in_order(program: &Program) -> bool {
    program.functions.iter().all(|function| {
        let mut check = Check {
            program,
            function,
            known: function.params.clone(),
            labels: HashSet::new(),
            gotos: HashSet::new(),
            fine: true,
        };
        let locals = function.vars.iter().enumerate();
        let local =
            |(i, var): (usize, &Var)| (var.space == crate::types::Space::Local).then_some(i);
        check.known.extend(locals.filter_map(local));
        check.block(&function.body, Around::default());
        let returns = function.result == Type::Void || ends(&function.body);
        check.fine && returns && check.gotos.is_subset(&check.labels)
    })
}

/// Returns true if a function's body ends by returning.
fn ends(body: &[Stmt]) -> bool {
    matches!(body.last(), Some(Stmt::Return(Some(_))))
}

impl Check<'_> {
    fn block(&mut self, block: &[Stmt], around: Around) {
        let known = self.known.len();
        for stmt in block {
            self.stmt(stmt, around);
        }
        self.known.truncate(known);
    }

    fn stmt(&mut self, stmt: &Stmt, around: Around) {
        let looped = Around {
            breaks: true,
            continues: true,
        };
        match stmt {
            Stmt::Declare(var, values) => {
                values.iter().for_each(|e| self.expr(e));
                self.known.push(*var);
            }
            Stmt::Printf(_, values) => values.iter().for_each(|e| self.expr(e)),
            Stmt::Assign(at, _, value) => {
                self.place(at);
                self.expr(value);
            }
            Stmt::Expr(e) | Stmt::Return(Some(e)) => self.expr(e),
            Stmt::If(e, a, b) => {
                self.expr(e);
                self.block(a, around);
                self.block(b, around);
            }
            Stmt::For(init, e, step, body) => {
                let known = self.known.len();
                self.stmt(init, around);
                self.expr(e);
                self.stmt(step, around);
                self.block(body, looped);
                self.known.truncate(known);
            }
            Stmt::While(e, body) | Stmt::DoWhile(body, e) => {
                self.expr(e);
                self.block(body, looped);
            }
            Stmt::Switch(e, arms) => {
                self.expr(e);
                for arm in arms {
                    self.block(
                        &arm.body,
                        Around {
                            breaks: true,
                            ..around
                        },
                    );
                }
            }
            Stmt::Block(body) => self.block(body, around),
            Stmt::Break => self.fine &= around.breaks,
            Stmt::Continue => self.fine &= around.continues,
            Stmt::Label(label) => self.fine &= self.labels.insert(*label),
            Stmt::Goto(label) => _ = self.gotos.insert(*label),
            Stmt::WriteImage(image, x, y, texel) => {
                self.fine &= self.known.contains(image);
                [x, y, texel].into_iter().for_each(|e| self.expr(e));
            }
            Stmt::Enqueue(_, args, _) => args.iter().for_each(|e| self.expr(e)),
            Stmt::ReadPipe(pipe, counter) => {
                self.fine &= self.known.contains(pipe);
                self.expr(counter);
            }
            Stmt::Locked(lock, cell, value) => {
                [lock, cell, value].into_iter().for_each(|e| self.expr(e));
            }
            Stmt::Vstore(value, at) | Stmt::AsyncCopy(value, at, ..) => {
                self.expr(value);
                self.expr(at);
            }
            Stmt::Return(None) | Stmt::Barrier => {}
        }
    }

    fn place(&mut self, at: &Place) {
        match &at.kind {
            PlaceKind::Var(var) => {
                let same = self.function.vars.get(*var).is_some();
                self.fine &= same && self.known.contains(var);
            }
            PlaceKind::Global(index) => self.fine &= *index < self.program.globals.len(),
            PlaceKind::Field(of, _) | PlaceKind::Lanes(of, _) => self.place(of),
            PlaceKind::Index(of, index) => {
                self.place(of);
                self.expr(index);
            }
            PlaceKind::Deref(pointer) => self.expr(pointer),
        }
    }

    fn expr(&mut self, e: &Expr) {
        match &e.kind {
            Kind::Const(_) | Kind::Query(..) => {}
            Kind::Load(at) | Kind::Address(at) | Kind::Misaligned(at, _) => self.place(at),
            Kind::Unary(_, a)
            | Kind::Cast(a)
            | Kind::Convert(a, _)
            | Kind::As(a)
            | Kind::Lanes(a, _)
            | Kind::Vload(a) => self.expr(a),
            Kind::ReadImage(image, a, b, _) => {
                self.fine &= self.known.contains(image);
                self.expr(a);
                self.expr(b);
            }
            Kind::Binary(_, a, b) | Kind::Move(a, b) => {
                self.expr(a);
                self.expr(b);
            }
            Kind::Choice(a, b, c) => [a, b, c].into_iter().for_each(|e| self.expr(e)),
            Kind::Build(list)
            | Kind::Pure(_, list)
            | Kind::Call(_, list)
            | Kind::Collective(_, _, list)
            | Kind::Atomic(_, _, list) => list.iter().for_each(|e| self.expr(e)),
        }
    }
}

/// Returns true if a variable of a function is used.
pub fn mentions_var(function: &Function, which: usize) -> bool {
    let text = format!("{:?}", function.body);
    let parts = ["Var(", "Declare(", "ReadImage(", "WriteImage(", "ReadPipe("];
    parts.iter().any(|part| {
        let mut rest = text.as_str();
        while let Some(at) = rest.find(part) {
            rest = &rest[at + part.len()..];
            let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(0);
            if rest[..digits].parse() == Ok(which) {
                return true;
            }
        }
        false
    })
}

/// Returns true if a variable of the program is used.
pub fn mentions_global(program: &Program, which: usize) -> bool {
    // With one table less, those that use the last ones are not in order.
    format!("{:?}", program.functions).contains(&format!("Global({which})"))
}

/// Takes out a variable that is not used.
pub fn drop_global(program: &mut Program, which: usize) {
    // Others keep their numbers: it becomes as small as it can be.
    if which + 1 == program.globals.len() {
        program.globals.pop();
        return;
    }
    program.globals[which] = Global {
        ty: Type::scalar(crate::types::Scalar::Int),
        space: crate::types::Space::Constant,
        init: vec![0],
        align: 0,
    };
}

/// Returns true if a struct is used.
pub fn mentions_struct(program: &Program, which: usize) -> bool {
    format!(
        "{:?}",
        (&program.functions, &program.globals, &program.structs)
    )
    .contains(&format!("Struct({which})"))
}

/// Returns true if a program has kernels that enqueue others.
pub fn enqueues(program: &Program) -> bool {
    format!("{:?}", program.functions).contains("Enqueue(")
}
