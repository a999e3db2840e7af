//! Kernel arguments, and how they arrive in the parameters of a function.

use super::error::Error;
use super::pictures::Picture;
use super::scalar::Scalar;
use crate::interface::LOCAL_ARG_ALIGN;
use crate::ir::function::Function;
use crate::ir::module::{EntryPoint, ParamKind};
use crate::ir::types::Space;

/// The value of a kernel argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Arg {
    /// The bytes of a scalar, vector or structure.
    Value(Vec<u8>),
    /// An address in global memory, or null.
    Pointer(u64),
    /// A pointer to local memory, by the number of bytes to allocate.
    Local(u64),
    /// An image.
    Image(Picture),
    /// An image or sampler without contents: using it is an error.
    Handle,
}

impl Arg {
    /// Returns the bytes of an argument in the argument block.
    pub(super) fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Value(bytes) => bytes.clone(),
            Self::Pointer(address) => address.to_le_bytes().to_vec(),
            Self::Local(_) | Self::Image(_) | Self::Handle => Vec::new(),
        }
    }
}

/// The value that a parameter of the entry block has in each work-item.
#[derive(Debug, Clone)]
pub(super) enum Bound {
    /// A value.
    Value(Scalar),
    /// The address of that many bytes of the work-group's local memory.
    Local(u64),
    /// The address of a copy of these bytes in private memory, with this alignment.
    Copy(Vec<u8>, u64),
}

/// Returns the number of parameters that an argument takes.
fn width(kind: ParamKind) -> usize {
    match kind {
        ParamKind::Value { count, .. } => count as usize,
        _ => 1,
    }
}

/// Rounds up the bytes of a local argument whose size is a specialisation constant.
pub(super) fn rounded(bytes: u64) -> u64 {
    bytes.div_ceil(LOCAL_ARG_ALIGN.into()) * u64::from(LOCAL_ARG_ALIGN)
}

/// Returns the values of the parameters of a kernel's function: all of them, or only the pointers
/// to local memory once the other arguments are read from the argument block.
pub(super) fn bind(
    func: &Function,
    kernel: &EntryPoint,
    args: &[Arg],
) -> Result<Vec<Bound>, Error> {
    if args.len() != kernel.params.len() {
        return Err(Error::invalid(format!(
            "{} arguments for the {} of the kernel",
            args.len(),
            kernel.params.len()
        )));
    }
    let all: usize = kernel.params.iter().map(|p| width(p.kind)).sum();
    let is_local = |kind: &ParamKind| matches!(kind, ParamKind::Pointer(Space::Local));
    let local = kernel.params.iter().filter(|p| is_local(&p.kind)).count();
    let only_local = func.params.len() != all;
    if only_local && func.params.len() != local && !func.params.is_empty() {
        return Err(Error::invalid("parameters that belong to no argument"));
    }
    let mut bound = Vec::new();
    if func.params.is_empty() {
        return Ok(bound);
    }
    for (index, (param, arg)) in kernel.params.iter().zip(args).enumerate() {
        if only_local && !is_local(&param.kind) {
            continue;
        }
        match (param.kind, arg) {
            (ParamKind::Value { ty, count, .. }, Arg::Value(bytes)) => {
                let size = ty.size() as usize;
                for i in 0..count as usize {
                    let part = bytes.get(i * size..(i + 1) * size);
                    let part = part.ok_or_else(|| Error::invalid("an argument is too short"))?;
                    let bits = part
                        .iter()
                        .rev()
                        .fold(0, |bits, &byte| bits << 8 | u64::from(byte));
                    bound.push(Bound::Value(Scalar::known(bits)));
                }
            }
            (ParamKind::ByVal { size, align }, Arg::Value(bytes)) => {
                if bytes.len() != size as usize {
                    return Err(Error::invalid("a structure of another size"));
                }
                bound.push(Bound::Copy(bytes.clone(), align.into()));
            }
            (ParamKind::Pointer(Space::Local), &Arg::Local(size)) => {
                bound.push(Bound::Local(size));
            }
            (
                ParamKind::Pointer(_) | ParamKind::Pipe | ParamKind::Queue,
                &Arg::Pointer(address),
            ) => {
                bound.push(Bound::Value(Scalar::known(address)));
            }
            (ParamKind::Image { dim, .. }, Arg::Image(picture)) if dim == picture.dim => {
                bound.push(Bound::Value(Scalar::known(index as u64 + 1)));
            }
            (ParamKind::Image { .. } | ParamKind::Sampler, Arg::Handle) => {
                bound.push(Bound::Value(Scalar::known(0)));
            }
            _ => return Err(Error::invalid("an argument of another kind")),
        }
    }
    Ok(bound)
}
