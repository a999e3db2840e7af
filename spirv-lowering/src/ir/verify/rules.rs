//! The rules of KIR's stages: what no longer occurs in a function once a pass has run.

use crate::ir::function::Function;
use crate::ir::op::{Op, Scope};
use crate::ir::print::raw_inst;
use crate::ir::types::{Space, Type};

/// A property that a pass establishes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// There are no calls.
    NoCalls,
    /// No pointer is generic.
    NoGenericPointers,
    /// Texels are read and written by descriptor.
    NoImageAccess,
    /// Properties of images and samplers are arguments.
    NoImageQueries,
    /// There is no printf.
    NoPrintf,
    /// No collective operation has the scope of a work-group.
    NoWorkGroupOperations,
    /// Built-in variables are those of Vulkan.
    NoBuiltins,
    /// Only addresses of local variables are taken.
    NoProgramVariables,
    /// The kernel has no parameters but pointers to local memory.
    NoArguments,
    /// There is no `mem_copy`.
    NoMemCopy,
    /// Local memory is arrays.
    NoLocalPointers,
    /// Private memory is arrays.
    NoPrivatePointers,
    /// Integers of 8 and 16 bits are what is loaded and stored, and no more.
    NoInt16,
    /// Integers have at most 32 bits, and pointers are made of two of them.
    NoInt64,
    /// Control flow is structured.
    Structured,
}

impl Rule {
    /// Checks the rule. Returns where it does not hold.
    pub fn check(&self, func: &Function) -> Result<(), String> {
        match self {
            Self::Structured => match func.structure {
                Some(_) => Ok(()),
                None => Err("the function is not structured".into()),
            },
            Self::NoArguments => {
                let local = |ty: &Type| *ty == Type::Ptr(Space::Local);
                match func.params.iter().all(local) {
                    true => Ok(()),
                    false => Err("there are parameters".into()),
                }
            }
            _ => self.check_instructions(func),
        }
    }

    fn check_instructions(&self, func: &Function) -> Result<(), String> {
        for &block in &func.layout {
            let data = &func.blocks[block];
            for &param in &data.params {
                let small = matches!(func.ty(param), Type::I8 | Type::I16);
                if self.forbids_value(func.ty(param)) || *self == Self::NoInt16 && small {
                    return Err(format!("{self:?}: {param} is a {:?}", func.ty(param)));
                }
            }
            for &inst in &data.insts {
                let data = &func.insts[inst];
                let results = || data.results.iter().map(|&value| func.ty(value));
                if self.forbids(data.op, results().next())
                    || results().any(|ty| self.forbids_value(ty))
                {
                    return Err(format!("{self:?}: {}", raw_inst(func, inst)));
                }
            }
        }
        Ok(())
    }

    fn forbids_value(&self, ty: Type) -> bool {
        match self {
            Self::NoGenericPointers => ty == Type::Ptr(Space::Generic),
            Self::NoLocalPointers => ty == Type::Ptr(Space::Local),
            Self::NoPrivatePointers => ty == Type::Ptr(Space::Private),
            Self::NoInt64 => ty == Type::I64,
            _ => false,
        }
    }

    fn forbids(&self, op: Op, result: Option<Type>) -> bool {
        match self {
            Self::NoCalls => matches!(op, Op::Call(_)),
            Self::NoImageAccess => {
                matches!(
                    op,
                    Op::ImageRead(_) | Op::ImageWrite(_) | Op::ImageFilter | Op::ImageNumber
                )
            }
            Self::NoImageQueries => {
                matches!(
                    op,
                    Op::ImageQuery(_) | Op::SamplerWord | Op::ImageAt(_) | Op::SamplerAt
                )
            }
            Self::NoPrintf => matches!(op, Op::Printf(_)),
            Self::NoWorkGroupOperations => matches!(op, Op::Group(_, Scope::WorkGroup)),
            Self::NoBuiltins => matches!(op, Op::Builtin(_)),
            Self::NoProgramVariables => {
                matches!(op, Op::GlobalAddr(_)) && result != Some(Type::Ptr(Space::Local))
            }
            Self::NoMemCopy => matches!(op, Op::MemCopy { .. }),
            Self::NoInt16 => {
                matches!(result, Some(Type::I8 | Type::I16))
                    && !matches!(op, Op::Load { .. } | Op::Trunc | Op::Const(_))
            }
            // What is made of several blocks may have no definition on some way to it.
            Self::NoInt64 => {
                let made = matches!(op, Op::Join | Op::Const(_) | Op::Undef);
                result.is_some_and(Type::is_ptr) && !made
            }
            Self::NoGenericPointers | Self::NoLocalPointers | Self::NoPrivatePointers => false,
            Self::NoArguments | Self::Structured => false,
        }
    }
}
