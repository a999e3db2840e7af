//! Writing LLVM IR: names, types, and an instruction a line.

use crate::ir::fold::sext;
use crate::ir::types::Type;
use std::fmt::Write as _;

/// The LLVM type of a value in one lane.
pub fn scalar(ty: Type) -> &'static str {
    match ty {
        Type::Bool => "i1",
        Type::I8 => "i8",
        Type::I16 => "i16",
        Type::I32 => "i32",
        Type::I64 | Type::Handle => "i64",
        Type::F16 => "half",
        Type::F32 => "float",
        Type::F64 => "double",
        Type::Ptr(_) => "ptr",
    }
}

/// The end of the name of an intrinsic for a type.
pub fn suffix(ty: Type) -> &'static str {
    match ty {
        Type::F16 => "f16",
        Type::F32 => "f32",
        Type::F64 => "f64",
        Type::Ptr(_) => "p0",
        other => scalar(other),
    }
}

/// A constant as LLVM writes it.
pub fn constant(ty: Type, bits: u64) -> String {
    match ty {
        Type::Bool => (if bits & 1 == 1 { "true" } else { "false" }).to_owned(),
        Type::F16 => format!("0xH{:04X}", bits & 0xffff),
        // Floats are written as the double of the same value; for NaN the bits are placed by hand.
        Type::F32 => format!("0x{:016X}", widened(bits as u32)),
        Type::F64 => format!("0x{bits:016X}"),
        Type::Ptr(_) if bits == 0 => "null".to_owned(),
        Type::Ptr(_) => format!("inttoptr (i64 {bits} to ptr)"),
        _ => sext(ty, bits).to_string(),
    }
}

/// The bits of a float as a double, payload of NaN included.
fn widened(bits: u32) -> u64 {
    let value = f32::from_bits(bits);
    if value.is_nan() {
        let sign = u64::from(bits >> 31) << 63;
        return sign | 0x7ff << 52 | u64::from(bits & 0x7f_ffff) << 29;
    }
    f64::from(value).to_bits()
}

/// Text of a function that grows.
#[derive(Default)]
pub struct Text {
    /// What is written so far.
    pub out: String,
    next: u32,
}

impl Text {
    /// A new name of a value.
    pub fn name(&mut self) -> String {
        self.next += 1;
        format!("%t{}", self.next)
    }
    /// A new label, without the `%`.
    pub fn label(&mut self) -> String {
        self.next += 1;
        format!("L{}", self.next)
    }
    /// A line.
    pub fn line(&mut self, text: &str) {
        let _ = writeln!(self.out, "  {text}");
    }
    /// The beginning of a block.
    pub fn begin(&mut self, label: &str) {
        let _ = writeln!(self.out, "{label}:");
    }
    /// An instruction with a result.
    pub fn def(&mut self, text: &str) -> String {
        let name = self.name();
        let _ = writeln!(self.out, "  {name} = {text}");
        name
    }
    /// A jump.
    pub fn jump(&mut self, label: &str) {
        self.line(&format!("br label %{label}"));
    }
    /// A branch.
    pub fn branch(&mut self, cond: &str, yes: &str, no: &str) {
        self.line(&format!("br i1 {cond}, label %{yes}, label %{no}"));
    }
}
