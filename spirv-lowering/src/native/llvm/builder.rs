//! Builds the instructions of a function.

mod memory;

use super::{Binary, Cast, Label, LlvmType, Operand};
use crate::error::{LowerError, Result};
use crate::ir::function::FpFlags;
use crate::ir::op::{FloatCond, IntCond};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::fmt::{self, Write as _};

pub use memory::Order;

/// Metadata of loops is numbered from here.
const FIRST_HINT: usize = 10;

/// Lines of a module that its functions need: declarations of intrinsics and other functions, and metadata.
#[derive(Debug, Default)]
pub struct Declarations {
    lines: BTreeSet<String>,
    /// The names of the functions among them.
    functions: BTreeSet<String>,
}

impl fmt::Display for Declarations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lines.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}

/// The number of the metadata that tells LLVM how to treat a loop.
#[derive(Debug, Clone, Copy)]
pub struct LoopHint(usize);

/// Displays a list with commas between.
struct List<I>(I);

impl<I: Iterator<Item: fmt::Display> + Clone> fmt::Display for List<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for item in self.0.clone() {
            write!(f, "{separator}{item}")?;
            separator = ", ";
        }
        Ok(())
    }
}

/// The text of a function that grows.
pub struct Builder<'a> {
    text: String,
    /// Stack slots, at the beginning of the function.
    slots: String,
    /// The address of eight zero bytes.
    zero_bytes: Option<Operand>,
    /// The address of eight bytes that nothing reads.
    ignored_bytes: Option<Operand>,
    /// Instructions that are run once, behind the stack slots.
    prologue: String,
    /// The results of the prologue, by their instructions.
    hoisted: FxHashMap<String, Operand>,
    hoists: bool,
    /// The name that the next result gets.
    result: Option<Operand>,
    names: u32,
    declarations: &'a mut Declarations,
    /// The first instruction whose operands do not fit.
    error: Option<String>,
}

macro_rules! binaries {
    ($($name:ident: $op:ident),*) => {$(
        pub fn $name(&mut self, a: &Operand, b: &Operand) -> Operand {
            self.binary(Binary::$op, a, b)
        }
    )*};
}

impl<'a> Builder<'a> {
    pub fn new(declarations: &'a mut Declarations) -> Self {
        Self {
            text: String::new(),
            slots: String::new(),
            zero_bytes: None,
            ignored_bytes: None,
            prologue: String::new(),
            hoisted: FxHashMap::default(),
            hoists: false,
            result: None,
            names: 0,
            declarations,
            error: None,
        }
    }

    /// Returns the text of the function: `head` without its braces, and the body.
    pub fn finish(self, head: &str) -> Result<String> {
        if let Some(error) = self.error {
            return Err(LowerError::internal(error));
        }
        let Self {
            slots,
            prologue,
            text,
            ..
        } = self;
        Ok(format!("{head} {{\nstart:\n{slots}{prologue}{text}}}\n"))
    }

    // --- names

    fn number(&mut self) -> u32 {
        self.names += 1;
        self.names
    }

    /// Returns a label that no block has.
    pub fn label(&mut self) -> Label {
        Label::Number(self.number())
    }

    /// Returns a name of a result to come.
    pub fn forward(&mut self, ty: LlvmType) -> Operand {
        Operand::numbered(ty, self.number())
    }

    /// Names the next result with a name that is in use already.
    pub fn named(&mut self, result: &Operand) -> &mut Self {
        self.result = Some(result.clone());
        self
    }

    /// Builds instructions that are run once, before all others of the function, for all uses of their results.
    pub fn once(&mut self, build: impl FnOnce(&mut Self) -> Operand) -> Operand {
        let outer = std::mem::replace(&mut self.hoists, true);
        let result = build(self);
        self.hoists = outer;
        result
    }

    // --- text

    fn check(&mut self, fits: bool, instruction: fmt::Arguments<'_>) {
        if !fits && self.error.is_none() {
            self.error = Some(format!("LLVM IR: {instruction}"));
        }
    }

    fn line(&mut self, fits: bool, instruction: fmt::Arguments<'_>) {
        self.check(fits, instruction);
        let _ = writeln!(self.text, "  {instruction}");
    }

    fn def(&mut self, ty: LlvmType, fits: bool, instruction: fmt::Arguments<'_>) -> Operand {
        self.check(fits, instruction);
        if self.hoists {
            let instruction = instruction.to_string();
            if let Some(result) = self.hoisted.get(&instruction) {
                return result.clone();
            }
            let result = self.forward(ty);
            let _ = writeln!(self.prologue, "  {result} = {instruction}");
            self.hoisted.insert(instruction, result.clone());
            return result;
        }
        let result = match self.result.take() {
            Some(result) => {
                self.check(result.ty() == ty, instruction);
                result
            }
            None => self.forward(ty),
        };
        let _ = writeln!(self.text, "  {result} = {instruction}");
        result
    }

    // --- blocks

    /// Begins a block.
    pub fn begin(&mut self, label: Label) {
        let _ = writeln!(self.text, "{label}:");
    }

    /// Ends the block with a jump.
    pub fn jump(&mut self, to: Label) {
        self.line(true, format_args!("br label %{to}"));
    }

    /// Jumps back to the head of a loop.
    pub fn repeat(&mut self, to: Label, hint: LoopHint) {
        self.line(true, format_args!("br label %{to}, !llvm.loop !{}", hint.0));
    }

    /// Ends the block with a branch.
    pub fn branch(&mut self, cond: &Operand, yes: Label, no: Label) {
        let fits = cond.ty() == LlvmType::BIT;
        self.line(
            fits,
            format_args!("br i1 {cond}, label %{yes}, label %{no}"),
        );
    }

    /// Branches back to the head of a loop, or on to the block after it.
    pub fn branch_back(&mut self, cond: &Operand, yes: Label, no: Label, hint: Option<LoopHint>) {
        match hint {
            Some(LoopHint(hint)) => {
                let fits = cond.ty() == LlvmType::BIT;
                let line =
                    format_args!("br i1 {cond}, label %{yes}, label %{no}, !llvm.loop !{hint}");
                self.line(fits, line);
            }
            None => self.branch(cond, yes, no),
        }
    }

    /// Branches to the label of the case that equals the operand, or to the default.
    pub fn switch(&mut self, on: &Operand, cases: &[(u64, Label)], default: Label) {
        let ty = on.ty();
        let mut line = format!("switch {}, label %{default} [", on.typed());
        for &(bits, label) in cases {
            let case = Operand::constant(ty, bits);
            let _ = write!(line, " {}, label %{label}", case.typed());
        }
        self.line(ty.is_int() && !ty.is_vector(), format_args!("{line} ]"));
    }

    /// Emits the return of the function.
    pub fn ret(&mut self, value: Option<&Operand>) {
        match value {
            Some(value) => self.line(true, format_args!("ret {}", value.typed())),
            None => self.line(true, format_args!("ret void")),
        }
    }

    /// Emits a phi node.
    pub fn phi(&mut self, ty: LlvmType, incoming: &[(&Operand, Label)]) -> Operand {
        let fits = incoming.iter().all(|(value, _)| value.ty() == ty);
        let mut line = format!("phi {ty}");
        for (i, (value, from)) in incoming.iter().enumerate() {
            let separator = if i == 0 { "" } else { "," };
            let _ = write!(line, "{separator} [ {value}, %{from} ]");
        }
        self.def(ty, fits, format_args!("{line}"))
    }

    /// Creates the metadata for a loop that is to be unrolled by a factor.
    pub fn unrolled(&mut self, times: usize) -> LoopHint {
        let lines = &mut self.declarations.lines;
        lines.insert(format!(
            "!1 = !{{!\"llvm.loop.unroll.count\", i32 {times}}}"
        ));
        // A number of its own: each adds a line.
        let number = FIRST_HINT + lines.len();
        lines.insert(format!("!{number} = distinct !{{!{number}, !1}}"));
        LoopHint(number)
    }

    // --- numbers

    binaries!(add: Add, sub: Sub, mul: Mul, and: And, or: Or, xor: Xor);

    /// Emits an operation on two operands, without flags.
    pub fn binary(&mut self, op: Binary, a: &Operand, b: &Operand) -> Operand {
        self.binary_with(op, FpFlags::default(), a, b)
    }

    /// Divides integers so that nothing traps: the result of a division by zero, and of one whose
    /// quotient overflows, is unspecified.
    ///
    /// The `undef` of a lane without a value is another number at each use, so that both operands are
    /// frozen before they are compared.
    pub fn divide(&mut self, op: Binary, a: &Operand, b: &Operand) -> Operand {
        if b.divides_all() {
            return self.binary(op, a, b);
        }
        let ty = a.ty();
        let number = |bits| Operand::constant(ty, bits);
        let b = self.freeze(b);
        let mut bad = self.icmp(IntCond::Eq, &b, &number(0));
        let mut a = a.clone();
        if matches!(op, Binary::SDiv | Binary::SRem) {
            a = self.freeze(&a);
            let minus = self.icmp(IntCond::Eq, &b, &number(u64::MAX));
            let lowest = self.icmp(IntCond::Eq, &a, &number(1 << (ty.bits() - 1)));
            let both = self.and(&minus, &lowest);
            bad = self.or(&bad, &both);
        }
        let by = self.select(&bad, &number(1), &b);
        self.emit_binary(op, FpFlags::default(), &a, &by)
    }

    /// Emits an operation that has a result for all operands; divisions of integers by what may be
    /// 0 or -1 are [`Self::divide`]'s.
    pub fn binary_with(&mut self, op: Binary, fp: FpFlags, a: &Operand, b: &Operand) -> Operand {
        let total = !op.divides() || b.divides_all();
        self.check(total, format_args!("{} by what may trap", op.word()));
        self.emit_binary(op, fp, a, b)
    }

    fn emit_binary(&mut self, op: Binary, fp: FpFlags, a: &Operand, b: &Operand) -> Operand {
        let ty = a.ty();
        let numbers = if op.is_float() {
            ty.is_float()
        } else {
            ty.is_int()
        };
        let (word, flags) = (
            op.word(),
            Flags(if op.is_float() {
                fp
            } else {
                FpFlags::default()
            }),
        );
        let fits = numbers && ty == b.ty();
        self.def(ty, fits, format_args!("{word}{flags} {ty} {a}, {b}"))
    }

    /// Emits a negation of floats.
    pub fn fneg(&mut self, fp: FpFlags, a: &Operand) -> Operand {
        let ty = a.ty();
        self.def(
            ty,
            ty.is_float(),
            format_args!("fneg{} {ty} {a}", Flags(fp)),
        )
    }

    /// Emits a comparison of integers.
    pub fn icmp(&mut self, cond: IntCond, a: &Operand, b: &Operand) -> Operand {
        let ty = a.ty();
        let fits = !ty.is_float() && ty == b.ty();
        let result = LlvmType::BIT.like(ty);
        self.def(
            result,
            fits,
            format_args!("icmp {} {ty} {a}, {b}", int_cond(cond)),
        )
    }

    /// Emits a comparison of floats.
    pub fn fcmp(&mut self, cond: FloatCond, fp: FpFlags, a: &Operand, b: &Operand) -> Operand {
        let ty = a.ty();
        let fits = ty.is_float() && ty == b.ty();
        let (flags, cond) = (Flags(fp), float_cond(cond));
        let result = LlvmType::BIT.like(ty);
        self.def(
            result,
            fits,
            format_args!("fcmp{flags} {cond} {ty} {a}, {b}"),
        )
    }

    /// Emits a conversion.
    pub fn cast(&mut self, op: Cast, value: &Operand, to: LlvmType) -> Operand {
        let fits = op.converts(value.ty(), to);
        self.def(
            to,
            fits,
            format_args!("{} {} to {to}", op.word(), value.typed()),
        )
    }

    /// Extends an unsigned integer, if the type is wider than its own.
    pub fn widened(&mut self, value: &Operand, to: LlvmType) -> Operand {
        match value.ty() == to {
            true => value.clone(),
            false => self.cast(Cast::ZExt, value, to),
        }
    }

    /// Emits a freeze: poison becomes some value.
    pub fn freeze(&mut self, value: &Operand) -> Operand {
        self.def(value.ty(), true, format_args!("freeze {}", value.typed()))
    }

    /// Emits a selection, of whole values or lane by lane.
    pub fn select(&mut self, cond: &Operand, yes: &Operand, no: &Operand) -> Operand {
        let ty = yes.ty();
        let bits = cond.ty();
        let fits = ty == no.ty() && (bits == LlvmType::BIT || bits == LlvmType::BIT.like(ty));
        let (cond, yes, no) = (cond.typed(), yes.typed(), no.typed());
        self.def(ty, fits, format_args!("select {cond}, {yes}, {no}"))
    }

    // --- vectors

    /// Emits the extraction of a lane.
    pub fn extract(&mut self, vector: &Operand, lane: &Operand) -> Operand {
        let ty = vector.ty();
        let (vector, lane) = (vector.typed(), lane.typed());
        self.def(
            ty.element(),
            ty.is_vector(),
            format_args!("extractelement {vector}, {lane}"),
        )
    }

    /// Emits the insertion of a lane.
    pub fn insert(&mut self, vector: &Operand, value: &Operand, lane: &Operand) -> Operand {
        let ty = vector.ty();
        let fits = ty.is_vector() && value.ty() == ty.element();
        let (vector, value, lane) = (vector.typed(), value.typed(), lane.typed());
        self.def(
            ty,
            fits,
            format_args!("insertelement {vector}, {value}, {lane}"),
        )
    }

    /// Selects elements of two vectors by number; the elements of `b` are numbered after those of
    /// `a`.
    pub fn shuffle(
        &mut self,
        a: &Operand,
        b: &Operand,
        order: impl Iterator<Item = u32> + Clone,
    ) -> Operand {
        let ty = a.ty();
        let lanes = order.clone().count() as u32;
        let fits =
            ty.is_vector() && ty == b.ty() && order.clone().all(|lane| lane < 2 * ty.lanes());
        let order = List(order.map(Lane));
        let (a, b) = (a.typed(), b.typed());
        self.def(
            ty.vector(lanes),
            fits,
            format_args!("shufflevector {a}, {b}, <{lanes} x i32> <{order}>"),
        )
    }

    /// Returns a scalar in all lanes.
    pub fn splat(&mut self, value: &Operand, lanes: u32) -> Operand {
        let ty = value.ty().vector(lanes);
        let poison = Operand::poison(ty);
        let one = self.insert(&poison, value, &Operand::i64(0));
        let (one, poison) = (one.typed(), poison.typed());
        self.def(
            ty,
            true,
            format_args!("shufflevector {one}, {poison}, <{lanes} x i32> zeroinitializer"),
        )
    }

    /// Returns one vector with the first elements of all vectors, then the second ones, and so on.
    pub fn interleave(&mut self, vectors: &[Operand]) -> Operand {
        let (n, lanes) = (vectors.len() as u32, vectors[0].ty().lanes());
        let mut parts = vectors.to_vec();
        // Pairs are put together until there is one; a number that is no power of two is filled up.
        while !parts.len().is_power_of_two() {
            parts.push(Operand::poison(parts[0].ty()));
        }
        while parts.len() > 1 {
            let order = 0..2 * parts[0].ty().lanes();
            parts = parts
                .chunks(2)
                .map(|pair| self.shuffle(&pair[0], &pair[1], order.clone()))
                .collect();
        }
        let all = parts.remove(0);
        if n == 1 {
            return all;
        }
        let order = (0..lanes * n).map(|i| (i % n) * lanes + i / n);
        self.shuffle(&all, &Operand::poison(all.ty()), order)
    }

    /// Takes a vector apart that [`Self::interleave`] could have made of `n`.
    pub fn deinterleave(&mut self, all: Operand, n: u32) -> Vec<Operand> {
        if n == 1 {
            return vec![all];
        }
        let lanes = all.ty().lanes() / n;
        let poison = Operand::poison(all.ty());
        (0..n)
            .map(|i| self.shuffle(&all, &poison, (0..lanes).map(|lane| lane * n + i)))
            .collect()
    }

    // --- calls

    fn declare(&mut self, result: impl fmt::Display, name: &str, args: &[&Operand]) {
        let types = List(args.iter().map(|arg| arg.ty()));
        self.declarations
            .lines
            .insert(format!("declare {result} @{name}({types})"));
    }

    /// Calls a function, which is declared with the types of the operands.
    pub fn call(
        &mut self,
        name: fmt::Arguments<'_>,
        result: LlvmType,
        args: &[&Operand],
    ) -> Operand {
        let name = name.to_string();
        self.declare(result, &name, args);
        let args = List(args.iter().map(|arg| arg.typed()));
        self.def(result, true, format_args!("call {result} @{name}({args})"))
    }

    /// Calls a function without a result.
    pub fn call_void(&mut self, name: fmt::Arguments<'_>, args: &[&Operand]) {
        let name = name.to_string();
        self.declare("void", &name, args);
        let args = List(args.iter().map(|arg| arg.typed()));
        self.line(true, format_args!("call void @{name}({args})"));
    }

    /// Calls a function of the same module.
    pub fn call_own(
        &mut self,
        name: fmt::Arguments<'_>,
        result: LlvmType,
        args: &[Operand],
    ) -> Operand {
        let args = List(args.iter().map(Operand::typed));
        self.def(result, true, format_args!("call {result} @{name}({args})"))
    }

    /// Calls a function of the same module that has no result.
    pub fn call_own_void(&mut self, name: fmt::Arguments<'_>, args: &[Operand]) {
        let args = List(args.iter().map(Operand::typed));
        self.line(true, format_args!("call void @{name}({args})"));
    }

    /// Adds a function to the module, unless one of that name is there: `build` emits its body and returns its head, without braces.
    pub fn define(&mut self, name: &str, build: impl FnOnce(&mut Builder<'_>) -> String) {
        if !self.declarations.functions.insert(name.to_owned()) {
            return;
        }
        let mut declarations = Declarations::default();
        let mut builder = Builder::new(&mut declarations);
        let head = build(&mut builder);
        match builder.finish(&head) {
            Ok(text) => {
                self.declarations.lines.extend(declarations.lines);
                self.declarations.lines.insert(text);
            }
            Err(error) => self.error = Some(error.to_string()),
        }
    }

    /// Calls an intrinsic whose operands and result have one type.
    pub fn intrinsic(&mut self, name: &str, args: &[&Operand]) -> Operand {
        let ty = args.first().map_or(LlvmType::BIT, |arg| arg.ty());
        let fits = args.iter().all(|arg| arg.ty() == ty);
        self.check(fits && !args.is_empty(), format_args!("{name}"));
        self.call(format_args!("llvm.{name}.{}", ty.suffix()), ty, args)
    }

    /// Counts zeros from an end: `ctlz` or `cttz`. `some`: there is a one.
    pub fn zeros(&mut self, name: &str, value: &Operand, some: bool) -> Operand {
        let ty = value.ty();
        self.check(ty.is_int(), format_args!("{name}"));
        self.call(
            format_args!("llvm.{name}.{}", ty.suffix()),
            ty,
            &[value, &Operand::bit(some)],
        )
    }

    /// Passes an integer through an empty assembler statement, after which LLVM has it in a general
    /// register.
    pub fn in_register(&mut self, value: &Operand) -> Operand {
        let ty = value.ty();
        let value = value.typed();
        self.def(
            ty,
            ty.is_int() && !ty.is_vector(),
            format_args!("call {ty} asm \"\", \"=r,0\"({value})"),
        )
    }
}

/// The number of an element.
struct Lane(u32);

impl fmt::Display for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "i32 {}", self.0)
    }
}

/// Floating-point flags, each after a blank.
struct Flags(FpFlags);

impl fmt::Display for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (flag, name) in [
            (FpFlags::NNAN, " nnan"),
            (FpFlags::NINF, " ninf"),
            (FpFlags::NSZ, " nsz"),
            (FpFlags::ARCP, " arcp"),
            (FpFlags::CONTRACT, " contract"),
            (FpFlags::REASSOC, " reassoc"),
        ] {
            if self.0.has(flag) {
                f.write_str(name)?;
            }
        }
        Ok(())
    }
}

fn int_cond(cond: IntCond) -> &'static str {
    match cond {
        IntCond::Eq => "eq",
        IntCond::Ne => "ne",
        IntCond::Slt => "slt",
        IntCond::Sle => "sle",
        IntCond::Sgt => "sgt",
        IntCond::Sge => "sge",
        IntCond::Ult => "ult",
        IntCond::Ule => "ule",
        IntCond::Ugt => "ugt",
        IntCond::Uge => "uge",
    }
}

fn float_cond(cond: FloatCond) -> &'static str {
    match cond {
        FloatCond::Oeq => "oeq",
        FloatCond::One => "one",
        FloatCond::Olt => "olt",
        FloatCond::Ole => "ole",
        FloatCond::Ogt => "ogt",
        FloatCond::Oge => "oge",
        FloatCond::Ord => "ord",
        FloatCond::Ueq => "ueq",
        FloatCond::Une => "une",
        FloatCond::Ult => "ult",
        FloatCond::Ule => "ule",
        FloatCond::Ugt => "ugt",
        FloatCond::Uge => "uge",
        FloatCond::Uno => "uno",
    }
}
