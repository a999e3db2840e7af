//! Generic pointers with unknown bits. A pointer may be null or an address, without its being known
//! which, while its address space is known.

use super::scalar::Scalar;
use crate::ir::types::{Space, Type};
use crate::passes::lower_generic_ptr::{TAG_LOCAL, TAG_PRIVATE};

/// The bits of a generic pointer that name the space.
const TAGS: u64 = TAG_LOCAL | TAG_PRIVATE;

/// Returns the tag bits of generic pointers into a space. Null pointers and those into global and
/// constant memory have none.
fn tag(space: Space) -> u64 {
    match space {
        Space::Local => TAG_LOCAL,
        Space::Private => TAG_PRIVATE,
        _ => 0,
    }
}

/// Casts a pointer to another space. The result is null if it does not point there.
pub fn cast(pointer: Scalar, from: Space, to: Space) -> Scalar {
    let near = |space| matches!(space, Space::Global | Space::Constant);
    let null = Scalar::known(0);
    let Scalar { bits, unknown } = pointer;
    match (from, to) {
        (from, to) if from == to || near(from) && near(to) => pointer,
        (from, Space::Generic) => {
            let may_be_null = bits & !unknown == 0;
            Scalar {
                bits: if bits == 0 { 0 } else { bits | tag(from) },
                unknown: match may_be_null && unknown != 0 {
                    true => unknown | tag(from),
                    false => unknown,
                },
            }
        }
        (Space::Generic, to) if (bits ^ tag(to)) & TAGS & !unknown != 0 => null,
        (Space::Generic, _) if unknown & TAGS == 0 => Scalar {
            bits: bits & !TAGS,
            unknown,
        },
        // That pointer or null.
        (Space::Generic, to) => Scalar {
            bits: match bits & TAGS == tag(to) {
                true => bits & !TAGS,
                false => 0,
            },
            unknown: (bits | unknown) & !TAGS,
        },
        _ => null,
    }
}

/// Returns the memory that a known pointer points into, and the address there.
pub fn place(space: Space, bits: u64) -> (Space, u64) {
    match (space, bits & TAGS) {
        (Space::Generic, TAG_LOCAL) => (Space::Local, bits & !TAGS),
        (Space::Generic, TAG_PRIVATE) => (Space::Private, bits & !TAGS),
        (Space::Generic, _) => (Space::Global, bits),
        (space, _) => (space, bits),
    }
}

/// Returns a Bool: whether a pointer in space `own` points into `space`. A null pointer may give
/// either.
pub fn is_in(pointer: Scalar, own: Option<Space>, space: Space) -> Scalar {
    if pointer.bits == 0 || !pointer.is_known() {
        return Scalar::unknown(Type::Bool, pointer.bits);
    }
    let holds = match (own, space) {
        (Some(Space::Generic) | None, Space::Local | Space::Private) => {
            pointer.bits & TAGS == tag(space)
        }
        (Some(Space::Generic) | None, _) => !matches!(pointer.bits & TAGS, TAG_LOCAL | TAG_PRIVATE),
        (Some(own), space) => own == space,
    };
    Scalar::known(holds.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: u64 = 0x1200;

    /// Returns a value that is either null or `bits`, unknown which.
    fn maybe(bits: u64) -> Scalar {
        Scalar {
            bits,
            unknown: AT | bits,
        }
    }

    #[test]
    fn what_may_be_null_has_a_space() {
        for from in [Space::Global, Space::Local, Space::Private] {
            for pointer in [maybe(AT), maybe(0)] {
                let generic = cast(pointer, from, Space::Generic);
                assert_eq!(generic.unknown, AT | tag(from));
                assert_eq!(cast(generic, Space::Generic, from), pointer);
                let others = [Space::Local, Space::Private];
                for to in others.into_iter().filter(|&to| to != from) {
                    let other = cast(generic, Space::Generic, to);
                    assert!(other.allows(Scalar::known(0)));
                    // What is not marked is known to be elsewhere.
                    assert!(from != Space::Global || other == Scalar::known(0));
                }
            }
        }
    }

    #[test]
    fn an_unknown_space_is_that_pointer_or_null() {
        let either = Scalar {
            bits: AT | TAG_LOCAL,
            unknown: TAGS,
        };
        let local = cast(either, Space::Generic, Space::Local);
        assert_eq!((local.bits, local.unknown), (AT, AT));
        let private = cast(either, Space::Generic, Space::Private);
        assert_eq!((private.bits, private.unknown), (0, AT));
    }

    #[test]
    fn known_ones_come_back() {
        for space in [Space::Global, Space::Local, Space::Private] {
            for bits in [0, AT] {
                let pointer = Scalar::known(bits);
                let generic = cast(pointer, space, Space::Generic);
                assert_eq!(cast(generic, Space::Generic, space), pointer);
                if bits != 0 {
                    let inside = is_in(generic, Some(Space::Generic), space);
                    assert_eq!(inside, Scalar::known(1));
                }
            }
        }
    }
}
