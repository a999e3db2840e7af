//! The types of values and the address spaces of pointers.

use borsh::{BorshDeserialize, BorshSerialize};

/// An OpenCL address space.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, BorshSerialize, BorshDeserialize,
)]
pub enum Space {
    /// `global`: device memory by address. SPIR-V CrossWorkgroup.
    Global,
    /// `constant`: read-only device memory by address. SPIR-V UniformConstant.
    Constant,
    /// `local`: memory of a work-group. SPIR-V Workgroup.
    Local,
    /// `private`: memory of a work-item. SPIR-V Function.
    Private,
    /// Unnamed: any of global, local and private. SPIR-V Generic.
    Generic,
}

/// The type of a value. All are scalars.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, BorshSerialize, BorshDeserialize,
)]
pub enum Type {
    /// A truth value. Never in memory.
    Bool,
    /// 8-bit integer, of either signedness.
    I8,
    /// 16-bit integer.
    I16,
    /// 32-bit integer.
    I32,
    /// 64-bit integer; also `size_t`.
    I64,
    /// `half`.
    F16,
    /// `float`.
    F32,
    /// `double`.
    F64,
    /// A pointer; 8 bytes in memory.
    Ptr(Space),
    /// An opaque object passed as a kernel argument (image, sampler) or made by an async copy (event).
    Handle,
}

impl Type {
    /// Returns the size in memory in bytes; `Bool` counts as 1, `Handle` as 8.
    pub fn size(self) -> u32 {
        match self {
            Self::Bool | Self::I8 => 1,
            Self::I16 | Self::F16 => 2,
            Self::I32 | Self::F32 => 4,
            Self::I64 | Self::F64 | Self::Ptr(_) | Self::Handle => 8,
        }
    }
    /// Returns the width in bits; 1 for `Bool`.
    pub fn bits(self) -> u32 {
        if self == Self::Bool {
            1
        } else {
            self.size() * 8
        }
    }
    /// Returns true for I8 to I64.
    pub fn is_int(self) -> bool {
        matches!(self, Self::I8 | Self::I16 | Self::I32 | Self::I64)
    }
    /// Returns true for F16 to F64.
    pub fn is_float(self) -> bool {
        matches!(self, Self::F16 | Self::F32 | Self::F64)
    }
    /// Returns true for a pointer.
    pub fn is_ptr(self) -> bool {
        matches!(self, Self::Ptr(_))
    }
    /// Returns the address space of a pointer.
    pub fn space(self) -> Option<Space> {
        if let Self::Ptr(space) = self {
            Some(space)
        } else {
            None
        }
    }
    /// Returns the integer type of that many bits (8, 16, 32, 64).
    pub fn int(bits: u32) -> Option<Self> {
        Some(match bits {
            8 => Self::I8,
            16 => Self::I16,
            32 => Self::I32,
            64 => Self::I64,
            _ => return None,
        })
    }
    /// Returns the float type of that many bits (16, 32, 64).
    pub fn float(bits: u32) -> Option<Self> {
        Some(match bits {
            16 => Self::F16,
            32 => Self::F32,
            64 => Self::F64,
            _ => return None,
        })
    }
    /// Returns the integer type of the same width, which is I64 for pointers. `Bool` has none.
    pub fn as_int(self) -> Option<Self> {
        if self == Self::Bool {
            None
        } else {
            Self::int(self.bits())
        }
    }
    /// Returns the mask of the bits that a constant of this type may have set.
    pub fn mask(self) -> u64 {
        match self.bits() {
            64 => u64::MAX,
            bits => (1 << bits) - 1,
        }
    }
}
