//! Translates printf: the format and most string arguments are found at compile time, the rest
//! become operands.

use super::body::{bad, unsupported, Body};
use super::words::Instruction;
use crate::error::Result;
use crate::ir::entity::Value;
use crate::ir::function::{Edge, Terminator, Values};
use crate::ir::module::{PrintfArg, PrintfSite};
use crate::ir::op::Op;
use crate::ir::strings::{constant_string, shown_string};
use crate::ir::types::Type;

fn one(value: Value) -> Values {
    [value].into_iter().collect()
}

impl Body<'_, '_> {
    /// Reads a call of printf.
    pub(super) fn printf(&mut self, inst: &Instruction) -> Result<()> {
        let (ty, id) = self.result(inst)?;
        let (format, _) = self.pointer(inst.word(4)?)?;
        let globals = &self.out.module.globals;
        let Some(format) = constant_string(&self.f, globals, format) else {
            return unsupported("a format that is not a constant string");
        };
        let strings = string_arguments(&format);
        let mut args: Vec<(PrintfArg, Values)> = Vec::new();
        for (i, &arg) in inst.rest(5).iter().enumerate() {
            let (values, scalar) = self.uniform(arg)?;
            if strings.get(i) == Some(&true) && scalar.is_ptr() {
                args.push((PrintfArg::Text(Vec::new()), values));
            } else if scalar == Type::Bool || scalar == Type::Handle {
                return unsupported("an argument of that type");
            } else if scalar.is_ptr() {
                // Of a generic one, what a cast to an integer gives.
                let values: Values = values
                    .iter()
                    .map(|&v| self.ins(Op::PtrToInt, &[v], Type::I64))
                    .collect();
                let (ty, lanes) = (Type::I64, values.len() as u32);
                args.push((PrintfArg::Value { ty, lanes }, values));
            } else {
                let lanes = values.len() as u32;
                args.push((PrintfArg::Value { ty: scalar, lanes }, values));
            }
        }
        let value = self.printf_call(&format, &args, 0)?;
        self.set(id, ty, one(value))
    }

    /// Emits a printf call; a string selected from two at run time makes two call sites.
    fn printf_call(
        &mut self,
        format: &[u8],
        args: &[(PrintfArg, Values)],
        depth: u32,
    ) -> Result<Value> {
        let (mut list, mut values) = (Vec::new(), Vec::new());
        for (i, (arg, operands)) in args.iter().enumerate() {
            let PrintfArg::Text(_) = arg else {
                list.push(arg.clone());
                values.extend(operands);
                continue;
            };
            let Some(&pointer) = operands.first() else {
                return bad("an empty argument");
            };
            let globals = &self.out.module.globals;
            if let Some(text) = shown_string(&self.f, globals, pointer) {
                list.push(PrintfArg::Text(text));
                continue;
            }
            let select = self.f.def_inst(pointer).map(|d| &self.f.insts[d]);
            let choice = match select {
                Some(data) if data.op == Op::Select && depth < 4 => match data.args.as_slice() {
                    &[c, a, b] => Some((c, a, b)),
                    _ => None,
                },
                _ => None,
            };
            if let Some(choice) = choice {
                return self.printf_choice(format, args, depth, i, choice);
            }
            // It may be known once functions are inlined.
            list.push(PrintfArg::String);
            values.push(pointer);
        }
        let number = self.out.module.printfs.len() as u32;
        self.out.module.printfs.push(PrintfSite {
            format: format.to_vec(),
            args: list,
        });
        Ok(self.ins(Op::Printf(number), &values, Type::I32))
    }

    fn printf_choice(
        &mut self,
        format: &[u8],
        args: &[(PrintfArg, Values)],
        depth: u32,
        which: usize,
        choice: (Value, Value, Value),
    ) -> Result<Value> {
        let (cond, a, b) = choice;
        let (yes, no, after) = (self.new_block(), self.new_block(), self.new_block());
        let result = self.f.add_param(after, Type::I32);
        let with = |value: Value| {
            let mut args = args.to_vec();
            if let Some(arg) = args.get_mut(which) {
                arg.1 = one(value);
            }
            args
        };
        let join = |v: Value| Terminator::Jump(Edge::with(after, [v]));
        self.end_block(Terminator::Branch(cond, Edge::new(yes), Edge::new(no)), yes);
        let value = self.printf_call(format, &with(a), depth + 1)?;
        self.end_block(join(value), no);
        let value = self.printf_call(format, &with(b), depth + 1)?;
        self.end_block(join(value), after);
        Ok(result)
    }
}

/// Returns for each argument that a format consumes whether it is a string.
fn string_arguments(format: &[u8]) -> Vec<bool> {
    let mut out = Vec::new();
    let mut bytes = format.iter().copied().peekable();
    while let Some(b) = bytes.next() {
        if b != b'%' {
            continue;
        }
        if bytes.peek() == Some(&b'%') {
            bytes.next();
            continue;
        }
        for b in bytes.by_ref() {
            if b == b'*' {
                out.push(false);
            } else if b.is_ascii_alphabetic()
                && !matches!(b, b'h' | b'l' | b'v' | b'z' | b't' | b'j' | b'L')
            {
                out.push(b == b's');
                break;
            }
        }
    }
    out
}
