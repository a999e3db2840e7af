//! LLVM's IR: types, operands, and a builder of functions that checks the operands of each instruction. Nothing else writes IR.
//!
//! An instruction whose operands do not fit is an error that the builder keeps: the kernel is not built.

mod builder;
mod operand;
#[cfg(test)]
mod tests;

pub use builder::{Builder, Declarations, LoopHint, Order};
pub use operand::{Label, LlvmType, Operand, StackSlot};

/// Declares operations with the words of LLVM for them.
macro_rules! operations {
    ($($(#[$doc:meta])* $name:ident { $($variant:ident = $word:literal,)* })*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[allow(missing_docs)]
        pub enum $name { $($variant,)* }

        impl $name {
            fn word(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }
        }
    )*};
}

operations! {
    /// An operation on two operands of one type, which the result has too.
    Binary {
        Add = "add", Sub = "sub", Mul = "mul",
        SDiv = "sdiv", UDiv = "udiv", SRem = "srem", URem = "urem",
        Shl = "shl", LShr = "lshr", AShr = "ashr",
        And = "and", Or = "or", Xor = "xor",
        FAdd = "fadd", FSub = "fsub", FMul = "fmul", FDiv = "fdiv", FRem = "frem",
    }
    /// A conversion.
    Cast {
        Trunc = "trunc", ZExt = "zext", SExt = "sext",
        FpTrunc = "fptrunc", FpExt = "fpext",
        FpToSi = "fptosi", FpToUi = "fptoui", SiToFp = "sitofp", UiToFp = "uitofp",
        PtrToInt = "ptrtoint", IntToPtr = "inttoptr", Bitcast = "bitcast",
    }
    /// An atomic operation that reads and writes.
    Rmw {
        Xchg = "xchg", Add = "add", Sub = "sub", And = "and", Or = "or", Xor = "xor",
        Min = "min", Max = "max", UMin = "umin", UMax = "umax",
        FAdd = "fadd", FMin = "fmin", FMax = "fmax",
    }
}

impl Binary {
    fn is_float(self) -> bool {
        matches!(
            self,
            Self::FAdd | Self::FSub | Self::FMul | Self::FDiv | Self::FRem
        )
    }

    /// Returns true for a division of integers, which has no behaviour for some operands.
    fn divides(self) -> bool {
        matches!(self, Self::SDiv | Self::UDiv | Self::SRem | Self::URem)
    }
}

impl Cast {
    /// Returns true if the cast converts one type to the other.
    fn converts(self, from: LlvmType, to: LlvmType) -> bool {
        let (a, b) = (from.element(), to.element());
        let (narrows, widens) = (a.bits() > b.bits(), a.bits() < b.bits());
        let fits = match self {
            Self::Trunc => a.is_int() && b.is_int() && narrows,
            Self::ZExt | Self::SExt => a.is_int() && b.is_int() && widens,
            Self::FpTrunc => a.is_float() && b.is_float() && narrows,
            Self::FpExt => a.is_float() && b.is_float() && widens,
            Self::FpToSi | Self::FpToUi => a.is_float() && b.is_int(),
            Self::SiToFp | Self::UiToFp => a.is_int() && b.is_float(),
            Self::PtrToInt => a == LlvmType::PTR && b.is_int(),
            Self::IntToPtr => a.is_int() && b == LlvmType::PTR,
            // Of vectors with other elements, too.
            Self::Bitcast => {
                let ptr = a == LlvmType::PTR || b == LlvmType::PTR;
                return !ptr && from.size() == to.size();
            }
        };
        fits && from.lanes() == to.lanes()
    }
}
