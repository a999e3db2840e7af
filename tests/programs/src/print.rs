//! A syntax tree as OpenCL C.

use crate::ast::*;
use crate::floats;
use crate::names;
use crate::types::{sign_extend, Scalar, Space, Struct, Type};
use std::fmt::Write;

/// Functions that divide before they know whether they may: then the result, which is unspecified, is another.
pub const QUOTIENT: &str = "\
#define QUOTIENT(T, SPECIFIED) \\
    T __attribute__((overloadable)) quotient(T a, T b, T c) { T q = a / b; return SPECIFIED ? q : c; }
QUOTIENT(int, (b != 0 && (b != -1 || a != INT_MIN)))
QUOTIENT(uint, b)
QUOTIENT(long, (b != 0 && (b != -1 || a != LONG_MIN)))
QUOTIENT(ulong, b)
";

/// The source of a program.
pub fn source(program: &Program) -> String {
    let text = declarations(program);
    match text.contains("quotient(") {
        true => format!("{QUOTIENT}{text}"),
        false => text,
    }
}

fn declarations(program: &Program) -> String {
    let mut out = String::new();
    for line in &program.pragmas {
        out.push_str(line);
        out.push('\n');
    }
    for (index, Struct { fields, union }) in program.structs.iter().enumerate() {
        let word = if *union { "union" } else { "struct" };
        let _ = write!(out, "typedef {word} {{ ");
        for (field, ty) in fields.iter().enumerate() {
            let _ = write!(out, "{}; ", declarator(ty, &format!("f{field}")));
        }
        let _ = writeln!(out, "}} S{index};");
    }
    for (index, global) in program.globals.iter().enumerate() {
        let name = declarator(&global.ty, &format!("g{index}"));
        let mut values = global.init.iter();
        let init = initializer(&global.ty, program, &mut || {
            let value = values.next().copied().unwrap_or(0);
            move |scalar| literal(scalar, value)
        });
        let align = aligned(global.align);
        let _ = writeln!(out, "{}{name}{align} = {init};", global.space.qualifier());
    }
    for index in 0..program.functions.len() {
        function(program, index, &mut out);
    }
    out
}

/// `type name`
fn declarator(ty: &Type, name: &str) -> String {
    match ty {
        Type::Array(element, count) => declarator(element, &format!("{name}[{count}]")),
        Type::Pointer(space, target) => {
            format!("{}{} *{name}", space.qualifier(), type_name(target))
        }
        other => format!("{} {name}", type_name(other)),
    }
}

fn type_name(ty: &Type) -> String {
    match ty {
        Type::Void => "void".to_owned(),
        Type::Num(scalar, 1) => scalar.name().to_owned(),
        Type::Num(scalar, lanes) => format!("{}{lanes}", scalar.name()),
        Type::Struct(index) => format!("S{index}"),
        Type::Array(..) => unreachable!("no array type is named"),
        Type::Image(_, false) => "read_only image2d_t".to_owned(),
        Type::Image(_, true) => "write_only image2d_t".to_owned(),
        Type::Pipe => "read_only pipe uint".to_owned(),
        Type::Pointer(space, target) => format!("{}{} *", space.qualifier(), type_name(target)),
    }
}

/// The attribute of a variable that asks for an alignment.
fn aligned(align: usize) -> String {
    match align {
        0 => String::new(),
        align => format!(" __attribute__((aligned({align})))"),
    }
}

/// A value of a scalar type.
fn literal(scalar: Scalar, bits: u64) -> String {
    let bits = bits & scalar.mask();
    match scalar {
        Scalar::Int => match sign_extend(bits, 32) {
            value if value == i64::from(i32::MIN) => "(int)0x80000000u".to_owned(),
            value if value < 0 => format!("({value})"),
            value => format!("{value}"),
        },
        Scalar::Uint => format!("{bits}u"),
        Scalar::Long if bits == 1 << 63 => "(long)0x8000000000000000UL".to_owned(),
        Scalar::Long => format!("({}L)", bits as i64),
        Scalar::Ulong => format!("{bits}UL"),
        Scalar::Char | Scalar::Short => {
            format!("({})({})", scalar.name(), sign_extend(bits, scalar.bits()))
        }
        Scalar::Uchar | Scalar::Ushort => format!("({}){bits}", scalar.name()),
        Scalar::Half => format!("(half)({:?}f)", floats::value(scalar, bits)),
        Scalar::Float => format!("({:?}f)", floats::value(scalar, bits)),
        Scalar::Double => format!("({:?})", floats::value(scalar, bits)),
    }
}

/// The initialiser of a type; `next` gives the text of each scalar in turn, once its type is known.
fn initializer<F: FnOnce(Scalar) -> String>(
    ty: &Type,
    program: &Program,
    next: &mut impl FnMut() -> F,
) -> String {
    let list = |types: Vec<&Type>, next: &mut _| {
        let parts: Vec<_> = types
            .iter()
            .map(|ty| initializer(ty, program, next))
            .collect();
        format!("{{ {} }}", parts.join(", "))
    };
    match ty {
        Type::Num(scalar, 1) => next()(*scalar),
        Type::Num(scalar, lanes) => {
            let parts: Vec<_> = (0..*lanes).map(|_| next()(*scalar)).collect();
            format!("({})({})", type_name(ty), parts.join(", "))
        }
        Type::Array(element, count) => list(vec![element; *count], next),
        Type::Struct(index) => {
            let Struct { fields, union } = &program.structs[*index];
            let count = if *union { 1 } else { fields.len() };
            list(fields.iter().take(count).collect(), next)
        }
        Type::Pointer(..) => next()(Scalar::Ulong),
        Type::Void | Type::Image(..) | Type::Pipe => {
            unreachable!("initialised by an expression")
        }
    }
}

fn function(program: &Program, index: usize, out: &mut String) {
    let function = &program.functions[index];
    let is_kernel = index + 1 == program.functions.len();
    if is_kernel {
        let _ = write!(out, "{}kernel ", program.attributes);
    } else if function.noinline {
        out.push_str("__attribute__((noinline)) ");
    }
    let params: Vec<_> = function
        .params
        .iter()
        .map(|&var| {
            let Var { ty, volatile, .. } = &function.vars[var];
            let volatile = if *volatile { "volatile " } else { "" };
            format!("{volatile}{}", declarator(ty, &format!("v{var}")))
        })
        .collect();
    let name = if is_kernel {
        "k".to_owned()
    } else {
        format!("h{index}")
    };
    let (result, params) = (type_name(&function.result), params.join(", "));
    let _ = match function.block {
        true => writeln!(
            out,
            "constant {result} (^{name})({params}) = ^({params})\n{{"
        ),
        false => writeln!(out, "{result} {name}({params})\n{{"),
    };
    let mut printer = Printer {
        program,
        function,
        out,
        depth: 1,
    };
    for (var, declared) in function.vars.iter().enumerate() {
        let used = || names::mentions_var(function, var);
        if declared.space == Space::Local && !function.params.contains(&var) && used() {
            let text = declarator(&declared.ty, &format!("v{var}"));
            printer.line(&format!("local {text}{};", aligned(declared.align)));
        }
    }
    printer.block(&function.body);
    out.push_str(if function.block { "};\n" } else { "}\n" });
}

struct Printer<'p> {
    program: &'p Program,
    function: &'p Function,
    out: &'p mut String,
    depth: usize,
}

impl Printer<'_> {
    fn line(&mut self, text: &str) {
        let _ = writeln!(self.out, "{:1$}{text}", "", self.depth * 4);
    }

    fn block(&mut self, block: &[Stmt]) {
        for stmt in block {
            self.stmt(stmt);
        }
    }

    fn body(&mut self, block: &[Stmt]) {
        self.depth += 1;
        self.block(block);
        self.depth -= 1;
    }

    /// A statement without its semicolon, as it may stand in the head of a loop.
    fn head(&self, stmt: &Stmt) -> String {
        match stmt {
            Stmt::Declare(var, values) => {
                let Var { ty, volatile, .. } = &self.function.vars[*var];
                let volatile = if *volatile { "volatile " } else { "" };
                let align = aligned(self.function.vars[*var].align);
                let text = format!("{volatile}{}{align}", declarator(ty, &format!("v{var}")));
                match values.as_slice() {
                    [] => text,
                    [value] if value.ty == *ty => format!("{text} = {}", expr(value)),
                    values => {
                        let mut rest = values.iter();
                        let init = initializer(ty, self.program, &mut || {
                            let value = rest.next();
                            move |scalar| value.map_or_else(|| literal(scalar, 0), expr)
                        });
                        format!("{text} = {init}")
                    }
                }
            }
            Stmt::Assign(at, None, value) => format!("{} = {}", place(at), expr(value)),
            Stmt::Assign(at, Some(op), value) => {
                format!("{} {}= {}", place(at), op.text(), expr(value))
            }
            Stmt::Expr(value) => expr(value),
            Stmt::Vstore(value, at) => {
                format!(
                    "vstore{}({}, 0, {})",
                    value.ty.lanes(),
                    expr(value),
                    expr(at)
                )
            }
            Stmt::WriteImage(image, x, y, texel) => {
                let suffix = image_suffix(texel.ty.element());
                let (x, y, texel) = (expr(x), expr(y), expr(texel));
                format!("write_image{suffix}(v{image}, (int2)({x}, {y}), {texel})")
            }
            Stmt::Break => "break".to_owned(),
            Stmt::Continue => "continue".to_owned(),
            Stmt::Goto(label) => format!("goto l{label}"),
            Stmt::Return(None) => "return".to_owned(),
            Stmt::Return(Some(value)) => format!("return {}", expr(value)),
            Stmt::Barrier => "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)".to_owned(),
            Stmt::Printf(texts, values) => {
                let mut format = texts[0].clone();
                let mut rest = String::new();
                for (value, text) in values.iter().zip(&texts[1..]) {
                    let long = value.ty.element().bits() == 64;
                    let letter = if value.ty.element().is_signed() {
                        "d"
                    } else {
                        "u"
                    };
                    let _ = write!(format, "%{}{letter}{text}", if long { "l" } else { "" });
                    let _ = write!(rest, ", {}", expr(value));
                }
                format!("printf(\"{format}\\n\"{rest})")
            }
            _ => unreachable!("not in a head"),
        }
    }

    fn stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::If(test, then, other) => {
                self.line(&format!("if ({}) {{", expr(test)));
                self.body(then);
                if !other.is_empty() {
                    self.line("} else {");
                    self.body(other);
                }
                self.line("}");
            }
            Stmt::For(init, test, step, body) => {
                let (init, step) = (self.head(init), self.head(step));
                self.line(&format!("for ({init}; {}; {step}) {{", expr(test)));
                self.body(body);
                self.line("}");
            }
            Stmt::While(test, body) => {
                self.line(&format!("while ({}) {{", expr(test)));
                self.body(body);
                self.line("}");
            }
            Stmt::DoWhile(body, test) => {
                self.line("do {");
                self.body(body);
                self.line(&format!("}} while ({});", expr(test)));
            }
            Stmt::Switch(value, arms) => {
                self.line(&format!("switch ({}) {{", expr(value)));
                for arm in arms {
                    let mut labels = String::new();
                    for label in &arm.labels {
                        match label {
                            Some(bits) => {
                                let text = literal(value.ty.element(), *bits);
                                let _ = write!(labels, "case {text}: ");
                            }
                            None => labels.push_str("default: "),
                        }
                    }
                    self.line(&format!("{labels}{{"));
                    self.body(&arm.body);
                    self.line("}");
                }
                self.line("}");
            }
            Stmt::AsyncCopy(to, from, count, stride) => {
                let (to, from) = (expr(to), expr(from));
                let call = match stride {
                    1 => format!("async_work_group_copy({to}, {from}, {count}, (event_t)0)"),
                    _ => format!(
                        "async_work_group_strided_copy({to}, {from}, {count}, {stride}, (event_t)0)"
                    ),
                };
                self.line("{");
                self.line(&format!("    event_t e = {call};"));
                self.line("    wait_group_events(1, &e);");
                self.line("}");
            }
            Stmt::ReadPipe(pipe, counter) => {
                self.line("{");
                self.line("    uint packet = 0u;");
                let add = format!("atomic_add({}, packet);", expr(counter));
                self.line(&format!("    if (read_pipe(v{pipe}, &packet) == 0) {add}"));
                self.line("}");
            }
            Stmt::Locked(lock, cell, value) => {
                let (lock, cell) = (expr(lock), expr(cell));
                self.line("{");
                self.line(&format!("    uint value = {};", expr(value)));
                self.line("    bool done = false;");
                self.line("    while (!done) {");
                self.line(&format!(
                    "        if (atomic_cmpxchg({lock}, 0u, 1u) == 0u) {{"
                ));
                self.line("            mem_fence(CLK_GLOBAL_MEM_FENCE);");
                self.line(&format!("            {cell}[0] += value;"));
                self.line("            mem_fence(CLK_GLOBAL_MEM_FENCE);");
                self.line(&format!("            atomic_xchg({lock}, 0u);"));
                self.line("            done = true;");
                self.line("        }");
                self.line("    }");
                self.line("}");
            }
            Stmt::Enqueue(function, args, count) => {
                self.line("{");
                self.depth += 1;
                let mut names = Vec::new();
                for (number, arg) in args.iter().enumerate() {
                    let text = declarator(&arg.ty, &format!("c{number}"));
                    self.line(&format!("{text} = {};", expr(arg)));
                    names.push(format!("c{number}, "));
                }
                let call = format!("h{function}({}(uint)get_global_id(0));", names.concat());
                self.line(&format!("ndrange_t range = ndrange_1D({count});"));
                self.line("queue_t queue = get_default_queue();");
                self.line(&format!(
                    "enqueue_kernel(queue, CLK_ENQUEUE_FLAGS_WAIT_KERNEL, range, ^{{ {call} }});"
                ));
                self.depth -= 1;
                self.line("}");
            }
            Stmt::Label(label) => self.line(&format!("l{label}:;")),
            Stmt::Block(block) => {
                self.line("{");
                self.body(block);
                self.line("}");
            }
            other => {
                let text = self.head(other);
                self.line(&format!("{text};"));
            }
        }
    }
}

/// The end of the names of functions on images of such numbers.
fn image_suffix(scalar: Scalar) -> &'static str {
    match scalar {
        Scalar::Uint => "ui",
        Scalar::Int => "i",
        _ => "f",
    }
}

const LANES: &[u8; 16] = b"0123456789abcdef";

/// The selector of lanes.
fn lanes(list: &[u8], of: usize) -> String {
    if of <= 4 {
        return list
            .iter()
            .map(|&l| char::from(b"xyzw"[usize::from(l)]))
            .collect();
    }
    let digits = list.iter().map(|&l| char::from(LANES[usize::from(l)]));
    format!("s{}", digits.collect::<String>())
}

fn place(at: &Place) -> String {
    match &at.kind {
        PlaceKind::Var(var) => format!("v{var}"),
        PlaceKind::Global(index) => format!("g{index}"),
        PlaceKind::Field(of, field) => match &of.kind {
            PlaceKind::Deref(pointer) => format!("{}->f{field}", expr(pointer)),
            _ => format!("{}.f{field}", place(of)),
        },
        PlaceKind::Index(of, index) => format!("{}[{}]", place(of), expr(index)),
        PlaceKind::Deref(pointer) => match &pointer.kind {
            Kind::Move(base, index) => format!("{}[{}]", expr(base), expr(index)),
            _ => format!("(*{})", expr(pointer)),
        },
        PlaceKind::Lanes(of, list) => format!("{}.{}", place(of), lanes(list, of.ty.lanes())),
    }
}

fn list(values: &[Expr]) -> String {
    let texts: Vec<_> = values.iter().map(expr).collect();
    texts.join(", ")
}

fn expr(e: &Expr) -> String {
    match &e.kind {
        Kind::Const(_) if matches!(e.ty, Type::Pointer(..)) => format!("(({})0)", type_name(&e.ty)),
        Kind::Const(bits) => literal(e.ty.element(), *bits),
        Kind::Misaligned(at, align) => {
            format!("low_bits((ulong)&{}, {}UL)", place(at), align - 1)
        }
        Kind::Load(at) => place(at),
        Kind::Address(at) => match &at.kind {
            PlaceKind::Index(of, index) => format!("(&{}[{}])", place(of), expr(index)),
            _ => format!("(&{})", place(at)),
        },
        Kind::Unary(op, a) => {
            let op = match op {
                Unary::Neg => "-",
                Unary::Not => "~",
                Unary::Zero => "!",
            };
            format!("({op}{})", expr(a))
        }
        Kind::Binary(op, a, b) => format!("({} {} {})", expr(a), op.text(), expr(b)),
        Kind::Choice(test, a, b) => format!("({} ? {} : {})", expr(test), expr(a), expr(b)),
        Kind::Cast(a) => {
            // In parentheses, as `(uint4)(p)[0]` begins with a vector of p.
            let a = match &a.kind {
                Kind::Load(_) | Kind::Lanes(..) => format!("({})", expr(a)),
                _ => expr(a),
            };
            format!("(({}){a})", type_name(&e.ty))
        }
        Kind::Convert(a, sat) => {
            let sat = if *sat { "_sat" } else { "" };
            format!("convert_{}{sat}({})", type_name(&e.ty), expr(a))
        }
        Kind::As(a) => format!("as_{}({})", type_name(&e.ty), expr(a)),
        Kind::Build(parts) => format!("(({})({}))", type_name(&e.ty), list(parts)),
        Kind::Lanes(of, l) => format!("{}.{}", expr(of), lanes(l, of.ty.lanes())),
        Kind::Pure(f, args) => format!("{}({})", f.name(), list(args)),
        Kind::Call(f, args) => format!("h{f}({})", list(args)),
        Kind::Query(q, dim) => {
            let dim = if q.signature().1 {
                dim.to_string()
            } else {
                String::new()
            };
            format!("{}({dim})", q.name())
        }
        Kind::Move(base, index) => format!("({} + {})", expr(base), expr(index)),
        Kind::Collective(scope, what, args) => {
            let scope = match scope {
                Scope::WorkGroup => "work_group",
                Scope::SubGroup => "sub_group",
            };
            let lanes = if *what == Collect::Ballot { ".x" } else { "" };
            format!("{scope}_{}({}){lanes}", what.name(), list(args))
        }
        Kind::ReadImage(image, x, y, sampler) => {
            let suffix = image_suffix(e.ty.element());
            let sampler = if *sampler { "sampler, " } else { "" };
            format!(
                "read_image{suffix}(v{image}, {sampler}(int2)({}, {}))",
                expr(x),
                expr(y)
            )
        }
        Kind::Atomic(op, true, args) => {
            let Type::Pointer(space, target) = &args[0].ty else {
                unreachable!("a pointer")
            };
            let name = match op {
                Atomic::Xchg => "exchange".to_owned(),
                other => format!("fetch_{}", other.name()),
            };
            let scope = if *space == Space::Local {
                "work_group"
            } else {
                "device"
            };
            format!(
                "atomic_{name}_explicit((volatile {}atomic_{} *){}, {}, memory_order_relaxed, memory_scope_{scope})",
                space.qualifier(),
                target.element().name(),
                expr(&args[0]),
                expr(&args[1])
            )
        }
        Kind::Atomic(op, false, args) => {
            // The functions for 64 bits have names of their own.
            let Type::Pointer(_, target) = &args[0].ty else {
                unreachable!("a pointer")
            };
            let prefix = if target.element().bits() == 64 {
                "atom"
            } else {
                "atomic"
            };
            format!("{prefix}_{}({})", op.name(), list(args))
        }
        Kind::Vload(at) => format!("vload{}(0, {})", e.ty.lanes(), expr(at)),
    }
}
