//! Property lists: names, each with a value, up to a zero.

use crate::cl::cl_int;
use crate::error::{ensure, err, ClResult};
use std::fmt::LowerHex;

/// The form of a property in a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// One value follows the name.
    Value,
    /// Values up to a zero follow the name.
    List,
}

/// Returns the properties of a list. The C edge has brought it to its form; that a name is given twice is the error `twice`.
pub fn pairs<T: Copy + Default + PartialEq + LowerHex>(
    list: &[T],
    twice: cl_int,
) -> ClResult<Vec<(T, T)>> {
    let mut pairs: Vec<(T, T)> = Vec::new();
    for &[name, value] in list.as_chunks().0 {
        if name == T::default() {
            break;
        }
        let new = pairs.iter().all(|(known, _)| *known != name);
        ensure!(new, twice, "property {name:#x} is given twice");
        pairs.push((name, value));
    }
    Ok(pairs)
}

/// Returns the error for a property that is not known.
pub fn unsupported<T>(of: &str, name: impl LowerHex, code: cl_int) -> ClResult<T> {
    err(code, format!("{of} property {name:#x} is not supported"))
}
