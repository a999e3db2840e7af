//! Makes a program that shows a fault as small as it gets: tries edits as long as one helps.

use crate::ast::*;
use crate::names;
use crate::types::{Scalar, Type};

/// A change of a program at one of its places, by the number of the place.
#[derive(Debug, Clone, Copy)]
enum Edit {
    /// Takes statements out of a block: the block, the first, how many.
    Remove(usize, usize, usize),
    /// Puts a statement's parts in its place: the block, the statement, which part.
    Flatten(usize, usize, usize),
    /// Takes an arm or a label out of a switch.
    Arm(usize, usize, usize),
    /// Makes all values of a declaration or assignment zero: the block, the statement.
    Quiet(usize, usize),
    /// Takes out a line before the program.
    Pragma(usize),
    /// Makes an expression a constant, or one of its operands.
    Constant(usize, u64),
    Operand(usize, usize),
    /// Makes the ND-range smaller.
    Range(usize),
    /// Takes out an option.
    Option(usize),
    /// Takes out a function, which then nobody calls.
    Function(usize),
    /// Takes out a parameter that is not used: the function, which one.
    Param(usize, usize),
    /// Makes a buffer shorter, or all zeros.
    Buffer(usize, bool),
    /// Takes out a table.
    Global(usize),
    /// Takes out the last struct.
    Struct,
}

/// Visits the blocks of a program.
fn blocks<'p>(program: &'p mut Program, visit: &mut dyn FnMut(&mut Block)) {
    fn inside(block: &mut Block, visit: &mut dyn FnMut(&mut Block)) {
        visit(block);
        for stmt in block {
            match stmt {
                Stmt::If(_, a, b) => {
                    inside(a, visit);
                    inside(b, visit);
                }
                Stmt::For(_, _, _, body)
                | Stmt::While(_, body)
                | Stmt::DoWhile(body, _)
                | Stmt::Block(body) => inside(body, visit),
                Stmt::Switch(_, arms) => {
                    for arm in arms {
                        inside(&mut arm.body, visit);
                    }
                }
                _ => {}
            }
        }
    }
    for function in &mut program.functions {
        inside(&mut function.body, visit);
    }
}

/// Visits the expressions of a program, each before its operands.
fn exprs(program: &mut Program, visit: &mut dyn FnMut(&mut Expr)) {
    fn place(at: &mut Place, visit: &mut dyn FnMut(&mut Expr)) {
        match &mut at.kind {
            PlaceKind::Var(_) | PlaceKind::Global(_) => {}
            PlaceKind::Field(of, _) | PlaceKind::Lanes(of, _) => place(of, visit),
            PlaceKind::Index(of, index) => {
                place(of, visit);
                expr(index, visit);
            }
            PlaceKind::Deref(pointer) => expr(pointer, visit),
        }
    }
    fn expr(e: &mut Expr, visit: &mut dyn FnMut(&mut Expr)) {
        visit(e);
        match &mut e.kind {
            Kind::Const(_) | Kind::Query(..) => {}
            Kind::Load(at) | Kind::Address(at) | Kind::Misaligned(at, _) => place(at, visit),
            Kind::Unary(_, a)
            | Kind::Cast(a)
            | Kind::Convert(a, _)
            | Kind::As(a)
            | Kind::Lanes(a, _)
            | Kind::Vload(a) => expr(a, visit),
            Kind::Binary(_, a, b) | Kind::Move(a, b) | Kind::ReadImage(_, a, b, _) => {
                expr(a, visit);
                expr(b, visit);
            }
            Kind::Choice(a, b, c) => {
                expr(a, visit);
                expr(b, visit);
                expr(c, visit);
            }
            Kind::Build(list)
            | Kind::Pure(_, list)
            | Kind::Call(_, list)
            | Kind::Collective(_, _, list)
            | Kind::Atomic(_, _, list) => list.iter_mut().for_each(|e| expr(e, visit)),
        }
    }
    fn stmt(s: &mut Stmt, visit: &mut dyn FnMut(&mut Expr)) {
        match s {
            Stmt::Declare(_, values) | Stmt::Printf(_, values) | Stmt::Enqueue(_, values, _) => {
                values.iter_mut().for_each(|e| expr(e, visit));
            }
            Stmt::Assign(at, _, value) => {
                place(at, visit);
                expr(value, visit);
            }
            Stmt::Expr(e) | Stmt::Return(Some(e)) | Stmt::ReadPipe(_, e) => expr(e, visit),
            Stmt::If(e, _, _) | Stmt::While(e, _) | Stmt::DoWhile(_, e) | Stmt::Switch(e, _) => {
                expr(e, visit);
            }
            Stmt::For(init, e, step, _) => {
                stmt(init, visit);
                expr(e, visit);
                stmt(step, visit);
            }
            Stmt::WriteImage(_, x, y, texel) => {
                [x, y, texel].into_iter().for_each(|e| expr(e, visit));
            }
            // The lock and its cell stay two.
            Stmt::Locked(_, _, value) => expr(value, visit),
            Stmt::Vstore(value, at) | Stmt::AsyncCopy(value, at, ..) => {
                expr(value, visit);
                expr(at, visit);
            }
            _ => {}
        }
    }
    blocks(program, &mut |block| {
        block.iter_mut().for_each(|s| stmt(s, visit))
    });
}

/// The operands of an expression.
fn operands(e: &Expr) -> Vec<&Expr> {
    match &e.kind {
        Kind::Unary(_, a)
        | Kind::Cast(a)
        | Kind::Convert(a, _)
        | Kind::As(a)
        | Kind::Lanes(a, _) => {
            vec![a]
        }
        Kind::Binary(_, a, b) | Kind::Move(a, b) => vec![a, b],
        Kind::Choice(a, b, c) => vec![b, c, a],
        Kind::Build(list)
        | Kind::Pure(_, list)
        | Kind::Call(_, list)
        | Kind::Collective(_, _, list) => list.iter().collect(),
        _ => Vec::new(),
    }
}

/// All edits, those that take most out first.
fn edits(program: &Program) -> Vec<Edit> {
    let mut copy = program.clone();
    let mut list: Vec<Edit> = (0..12).map(Edit::Range).collect();
    list.extend((1..program.options.split(' ').count()).map(Edit::Option));
    list.extend((0..program.pragmas.len()).map(Edit::Pragma));
    list.extend((0..program.functions.len() - 1).map(Edit::Function));
    for (index, function) in program.functions.iter().enumerate() {
        list.extend(
            (0..function.params.len())
                .rev()
                .map(|param| Edit::Param(index, param)),
        );
    }
    for arg in 0..program.args.len() {
        list.extend([Edit::Buffer(arg, false), Edit::Buffer(arg, true)]);
    }
    list.extend((0..program.globals.len()).map(Edit::Global));
    if !program.structs.is_empty() {
        list.push(Edit::Struct);
    }
    let (mut number, mut small, mut flat) = (0, Vec::new(), Vec::new());
    blocks(&mut copy, &mut |block| {
        let len = block.len();
        let mut part = len;
        while part > 1 {
            let starts = (0..len).step_by(part).rev();
            list.extend(starts.map(|first| Edit::Remove(number, first, part)));
            part /= 2;
        }
        for (at, stmt) in block.iter().enumerate() {
            if matches!(stmt, Stmt::Declare(..) | Stmt::Assign(..)) {
                flat.push(Edit::Quiet(number, at));
            }
        }
        small.extend((0..len).rev().map(|first| Edit::Remove(number, first, 1)));
        for (at, stmt) in block.iter().enumerate() {
            let parts = match stmt {
                Stmt::If(..) => 2,
                Stmt::For(..) | Stmt::While(..) | Stmt::DoWhile(..) | Stmt::Block(_) => 1,
                Stmt::Switch(_, arms) => arms.len(),
                _ => 0,
            };
            flat.extend((0..parts).map(|part| Edit::Flatten(number, at, part)));
            if let Stmt::Switch(_, arms) = stmt {
                let labels: usize = arms.iter().map(|arm| arm.labels.len()).sum();
                flat.extend((0..labels + arms.len()).map(|which| Edit::Arm(number, at, which)));
            }
        }
        number += 1;
    });
    list.extend(small);
    list.extend(flat);
    let mut number = 0;
    exprs(&mut copy, &mut |e| {
        let count = operands(e).len();
        list.extend((0..count).map(|which| Edit::Operand(number, which)));
        if matches!(e.ty, Type::Num(..)) && !matches!(e.kind, Kind::Const(0)) {
            list.push(Edit::Constant(number, 0));
            if !matches!(e.kind, Kind::Const(1)) {
                list.push(Edit::Constant(number, 1));
            }
        }
        number += 1;
    });
    list
}

/// The program after an edit, if that changes it into one that has its names in order.
fn apply(program: &Program, edit: Edit) -> Option<Program> {
    let mut new = program.clone();
    let mut done = false;
    let block_edit =
        |new: &mut Program, which: usize, change: &mut dyn FnMut(&mut Block) -> bool| {
            let (mut number, mut done) = (0, false);
            blocks(new, &mut |block| {
                if number == which && !done {
                    // Blocks inside are numbered anew.
                    done = change(block);
                    number = usize::MAX / 2;
                }
                number += 1;
            });
            done
        };
    match edit {
        Edit::Remove(block, first, count) => {
            done = block_edit(&mut new, block, &mut |block| {
                let end = (first + count).min(block.len());
                first < end && block.drain(first..end).count() > 0
            });
        }
        Edit::Flatten(block, at, part) => {
            done = block_edit(&mut new, block, &mut |block| {
                let inner = match block.get(at).cloned() {
                    Some(Stmt::If(_, then, other)) => [then, other][part].clone(),
                    Some(Stmt::For(init, _, _, body)) => {
                        let mut all = vec![*init];
                        all.extend(body);
                        all
                    }
                    Some(Stmt::While(_, body) | Stmt::DoWhile(body, _) | Stmt::Block(body)) => body,
                    Some(Stmt::Switch(_, arms)) if part < arms.len() => {
                        let mut body = arms[part].body.clone();
                        if matches!(body.last(), Some(Stmt::Break)) {
                            body.pop();
                        }
                        body
                    }
                    _ => return false,
                };
                block.splice(at..=at, inner);
                true
            });
        }
        Edit::Quiet(block, at) => {
            done = block_edit(&mut new, block, &mut |block| {
                let zero = |e: &mut Expr| {
                    let known = matches!(e.kind, Kind::Const(_)) || !matches!(e.ty, Type::Num(..));
                    if !known {
                        *e = Expr::number(e.ty.element(), 0).cast(&e.ty);
                    }
                    !known
                };
                match block.get_mut(at) {
                    Some(Stmt::Declare(_, values)) => {
                        values
                            .iter_mut()
                            .filter_map(|e| zero(e).then_some(()))
                            .count()
                            > 0
                    }
                    Some(Stmt::Assign(_, _, value)) => zero(value),
                    _ => false,
                }
            });
        }
        Edit::Pragma(which) => {
            let line = new.pragmas.remove(which);
            let text = format!("{:?}", new.functions);
            let used = line.contains("low_bits") && text.contains("Misaligned")
                || line.contains("fill(") && text.contains("Pipe")
                || line.contains("sampler_t") && text.contains("ReadImage");
            done = !used;
        }
        Edit::Arm(block, at, which) => {
            done = block_edit(&mut new, block, &mut |block| {
                let Some(Stmt::Switch(_, arms)) = block.get_mut(at) else {
                    return false;
                };
                if which < arms.len() {
                    arms.remove(which);
                    return !arms.is_empty();
                }
                let mut left = which - arms.len();
                for arm in arms {
                    if left < arm.labels.len() {
                        arm.labels.remove(left);
                        return !arm.labels.is_empty();
                    }
                    left -= arm.labels.len();
                }
                false
            });
        }
        Edit::Constant(which, value) => {
            let mut number = 0;
            exprs(&mut new, &mut |e| {
                if number == which && !done {
                    let scalar = e.ty.element();
                    let bits = if value == 0 { Some(0) } else { one(scalar) };
                    if let Some(bits) = bits {
                        *e = Expr::number(scalar, bits).cast(&e.ty);
                        done = true;
                    }
                }
                number += 1;
            });
        }
        Edit::Operand(which, operand) => {
            let mut number = 0;
            exprs(&mut new, &mut |e| {
                if number == which && !done {
                    let found = operands(e).get(operand).map(|&e| e.clone());
                    if let Some(found) = found {
                        let same = found.ty == e.ty;
                        let scalars = found.ty.is_scalar() && e.ty.is_scalar();
                        if same || scalars && !matches!(e.kind, Kind::Cast(_)) {
                            *e = found.cast(&e.ty);
                            done = true;
                        }
                    }
                }
                number += 1;
            });
        }
        Edit::Range(which) => {
            let (dim, how) = (which % 3, which / 3);
            let Range {
                global,
                local,
                offset,
                ..
            } = &mut new.range;
            let before = (*global, *local, *offset);
            match how {
                0 => (global[dim], local[dim], offset[dim]) = (1, 1, 0),
                1 => offset[dim] = 0,
                2 => global[dim] = local[dim],
                _ => {
                    local[dim] = (local[dim] / 2).max(1);
                    global[dim] = (global[dim] / 2).max(local[dim]);
                }
            }
            done = before != (*global, *local, *offset);
        }
        Edit::Option(which) => {
            let mut words: Vec<&str> = program.options.split(' ').collect();
            if which < words.len() {
                words.remove(which);
                new.options = words.join(" ");
                done = true;
            }
        }
        Edit::Function(which) => {
            if which + 1 < new.functions.len() {
                new.functions.remove(which);
                done = true;
                blocks(&mut new, &mut |block| {
                    block.retain(|stmt| !matches!(stmt, Stmt::Enqueue(f, ..) if *f == which));
                    for stmt in block {
                        if let Stmt::Enqueue(f, ..) = stmt {
                            *f -= usize::from(*f > which);
                        }
                    }
                });
                exprs(&mut new, &mut |e| {
                    if let Kind::Call(f, _) = &mut e.kind {
                        if *f == which {
                            *e = Expr::number(e.ty.element(), 0).cast(&e.ty);
                        } else if *f > which {
                            *f -= 1;
                        }
                    }
                });
            }
        }
        Edit::Param(function, param) => {
            let list = &mut new.functions[function].params;
            let var = *list.get(param)?;
            list.remove(param);
            if names::mentions_var(&new.functions[function], var) {
                return None;
            }
            if function + 1 == new.functions.len() {
                new.args.remove(param);
            }
            let enqueued = format!("{:?}", new.functions).contains(&format!("Enqueue({function},"));
            exprs(&mut new, &mut |e| {
                if let Kind::Call(f, args) = &mut e.kind {
                    if *f == function {
                        args.remove(param);
                    }
                }
            });
            done = !enqueued;
        }
        Edit::Buffer(which, zero) => {
            if let Arg::Buffer(bytes) = &mut new.args[which] {
                if zero {
                    done = bytes.iter().any(|&byte| byte != 0);
                    bytes.fill(0);
                } else if bytes.len() >= 32 {
                    bytes.truncate(bytes.len() / 32 * 16);
                    done = true;
                }
            }
        }
        Edit::Global(which) => {
            if which < new.globals.len() && !names::mentions_global(program, which) {
                names::drop_global(&mut new, which);
                done = true;
            }
        }
        Edit::Struct => {
            let last = new.structs.len().checked_sub(1)?;
            done = !names::mentions_struct(program, last);
            new.structs.pop();
        }
    }
    (done && names::in_order(&new)).then_some(new)
}

/// One, of a type of numbers.
fn one(scalar: Scalar) -> Option<u64> {
    if scalar.is_float() {
        return crate::floats::exact(scalar, 1.0);
    }
    Some(1)
}

/// The smallest program found for which `shows` holds, after so many tries.
pub fn shrink(
    program: Program,
    tries: usize,
    shows: &mut dyn FnMut(&Program) -> Result<bool, String>,
) -> Result<Program, String> {
    let (mut best, mut tried, mut at, mut idle) = (program, 0, 0, 0);
    let mut list = edits(&best);
    while idle < list.len() && tried < tries {
        let edit = list[at % list.len()];
        at += 1;
        idle += 1;
        let Some(next) = apply(&best, edit) else {
            continue;
        };
        tried += 1;
        if shows(&next)? {
            best = next;
            let before = list.len();
            list = edits(&best);
            at = (at % before).saturating_sub(1).min(list.len());
            idle = 0;
        }
    }
    Ok(best)
}
