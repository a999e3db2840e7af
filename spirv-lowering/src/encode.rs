//! Versioned byte encodings of what crosses process boundaries: [`Lowered`], [`KernelInterface`] and
//! [`ProgramGlobals`]. Used by the disk cache and by program binaries.
//!
//! # Format
//! Four bytes magic, one byte version, then the fields as Borsh encodes them. Decoding never panics
//! and never allocates more than in proportion to the input.

use crate::interface::*;
use crate::ir::module::PrintfArg;
use crate::pipeline::Lowered;
use borsh::{BorshDeserialize, BorshSerialize};

/// The reason why bytes could not be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The bytes are no encoding of this kind, or of another version.
    #[error("wrong magic number or version")]
    Header,
    /// The bytes end too early, some are left over, or a field has a value that it cannot have.
    #[error("damaged field")]
    Field,
}

type Decoded<T> = Result<T, DecodeError>;

const VERSION: u8 = 13;

fn header(magic: &[u8; 4]) -> [u8; 5] {
    let [a, b, c, d] = *magic;
    [a, b, c, d, VERSION]
}

fn encode(magic: &[u8; 4], value: &impl BorshSerialize) -> Vec<u8> {
    let mut bytes = header(magic).to_vec();
    // The vector takes all that is written. A list of 2^32 elements is an error, and what there is
    // by then does not decode.
    let _ = value.serialize(&mut bytes);
    bytes
}

/// Decodes a value. It is damaged unless `is_sound` returns true for it.
fn decode<T: BorshDeserialize>(
    magic: &[u8; 4],
    bytes: &[u8],
    is_sound: impl FnOnce(&T) -> bool,
) -> Decoded<T> {
    let fields = bytes
        .strip_prefix(&header(magic))
        .ok_or(DecodeError::Header)?;
    let value = T::try_from_slice(fields).ok().filter(is_sound);
    value.ok_or(DecodeError::Field)
}

/// Returns the bytes of words, little-endian.
pub fn words_to_bytes(words: &[u32]) -> Vec<u8> {
    let bytes: Vec<[u8; 4]> = words.iter().map(|word| word.to_le_bytes()).collect();
    bytes.into_flattened()
}

/// Returns the words of bytes, little-endian, without the bytes after the last whole word.
pub fn bytes_to_words(bytes: &[u8]) -> Vec<u32> {
    let (words, _) = bytes.as_chunks::<4>();
    words.iter().copied().map(u32::from_le_bytes).collect()
}

impl KernelInterface {
    const MAGIC: &'static [u8; 4] = b"PuKI";

    /// Encodes the interface.
    pub fn to_bytes(&self) -> Vec<u8> {
        encode(Self::MAGIC, self)
    }

    /// Decodes an interface.
    pub fn from_bytes(bytes: &[u8]) -> Decoded<Self> {
        decode(Self::MAGIC, bytes, Self::is_sound)
    }

    /// Returns true if each argument has its accesses.
    fn is_sound(&self) -> bool {
        self.arg_access.len() == self.args.len()
    }
}

impl ProgramGlobals {
    const MAGIC: &'static [u8; 4] = b"PuPG";

    /// Encodes the variables.
    pub fn to_bytes(&self) -> Vec<u8> {
        encode(Self::MAGIC, self)
    }

    /// Decodes the variables. Every relocation is within the data.
    pub fn from_bytes(bytes: &[u8]) -> Decoded<Self> {
        decode(Self::MAGIC, bytes, |globals: &Self| {
            let size = globals.data.len() as u64;
            globals.relocations.iter().all(|r| {
                let end = r.offset.checked_add(8);
                end.is_some_and(|end| end <= size) && r.target <= size
            })
        })
    }
}

impl Lowered {
    const MAGIC: &'static [u8; 4] = b"PuLo";

    /// Encodes the kernel.
    pub fn to_bytes(&self) -> Vec<u8> {
        encode(Self::MAGIC, self)
    }

    /// Decodes a kernel. It does not check whether the words are valid SPIR-V.
    pub fn from_bytes(bytes: &[u8]) -> Decoded<Self> {
        decode(Self::MAGIC, bytes, |lowered: &Self| {
            let mut args = lowered.printfs.iter().flat_map(|site| &site.args);
            let is_vector = |arg: &PrintfArg| match arg {
                PrintfArg::Value { lanes, .. } => (1..=16).contains(lanes),
                PrintfArg::Text(_) | PrintfArg::String => true,
            };
            lowered.interface.is_sound() && args.all(is_vector)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::module::PrintfSite;
    use crate::ir::types::Type;

    fn sample() -> Lowered {
        let arg = Arg {
            kind: ArgKind::Value {
                offset: 8,
                size: 16,
            },
            name: "x".into(),
            type_name: "float4".into(),
            address: AddressQualifier::Private,
            access: AccessQualifier::None,
            is_const: true,
            is_restrict: false,
            is_volatile: true,
            max_size: Some(64),
        };
        let local = Arg {
            kind: ArgKind::Local { spec_id: 16 },
            address: AddressQualifier::Local,
            ..arg.clone()
        };
        let image = Arg {
            kind: ArgKind::Image(ImageArg {
                dim: ImageDim::D2Array,
                depth: false,
                bindings: ImageBindings {
                    sampled: Some(0),
                    raw_storage: Some(2),
                    ..ImageBindings::default()
                },
                info: Some(48),
            }),
            access: AccessQualifier::ReadOnly,
            ..arg.clone()
        };
        let sampler = Arg {
            kind: ArgKind::Sampler { offset: Some(80) },
            ..arg.clone()
        };
        let pipe = Arg {
            kind: ArgKind::Pipe { offset: 96 },
            access: AccessQualifier::WriteOnly,
            ..arg.clone()
        };
        let queue = Arg {
            kind: ArgKind::Queue { offset: 104 },
            ..arg.clone()
        };
        let captured = Arg {
            kind: ArgKind::Captured {
                at: 16,
                image: ImageArg {
                    dim: ImageDim::D3,
                    depth: true,
                    bindings: ImageBindings {
                        storage: Some(1),
                        ..ImageBindings::default()
                    },
                    info: None,
                },
            },
            ..arg.clone()
        };
        Lowered {
            words: vec![0x0723_0203, 1, 2, 3],
            kir: "func".into(),
            interface: KernelInterface {
                name: "k".into(),
                args: vec![arg, local, image, sampler, pipe, queue, captured],
                implicit: vec![(Implicit::GlobalBase, 0), (Implicit::WorkDim, 12)],
                push_size: 32,
                args_in_buffer: false,
                arg_buffer_size: 0,
                local_size: 64,
                private_size: 0,
                attributes: KernelAttributes {
                    role: KernelRole::Finalizer,
                    required_work_group_size: Some([8, 8, 1]),
                    vec_type_hint: Some("float4".into()),
                    ..Default::default()
                },
                uses_printf: true,
                instruction_bound: 70,
                uses_subgroups: false,
                lanes: 8,
                guarded: true,
                waits: true,
                uses_indirect_pointers: true,
                samplers: vec![SamplerBinding {
                    binding: 2,
                    source: SamplerSource::Arg(3),
                }],
                arg_access: [1, 3, 1, 0, 3, 0, 2].map(Access::from_bits).to_vec(),
            },
            printfs: vec![PrintfSite {
                format: b"%v4f %s\n".to_vec(),
                args: vec![
                    PrintfArg::Value {
                        ty: Type::F32,
                        lanes: 4,
                    },
                    PrintfArg::Text(b"hello".to_vec()),
                    PrintfArg::String,
                ],
            }],
        }
    }

    #[test]
    fn round_trip() {
        let lowered = sample();
        assert_eq!(Lowered::from_bytes(&lowered.to_bytes()).unwrap(), lowered);
        let interface = &lowered.interface;
        assert_eq!(
            &KernelInterface::from_bytes(&interface.to_bytes()).unwrap(),
            interface
        );
        let globals = ProgramGlobals {
            data: vec![7; 40],
            relocations: vec![Relocation {
                offset: 32,
                target: 40,
            }],
            writable_size: 8,
        };
        assert_eq!(
            ProgramGlobals::from_bytes(&globals.to_bytes()).unwrap(),
            globals
        );
        let outside = ProgramGlobals {
            relocations: vec![Relocation {
                offset: 33,
                target: 0,
            }],
            ..globals
        };
        assert_eq!(
            ProgramGlobals::from_bytes(&outside.to_bytes()),
            Err(DecodeError::Field)
        );
    }

    /// Checks that truncated or altered bytes give an error or some value, without a panic or a
    /// huge allocation.
    #[test]
    fn damage() {
        let bytes = sample().to_bytes();
        for n in 0..bytes.len() {
            assert!(Lowered::from_bytes(&bytes[..n]).is_err());
            for value in [0, 1, 0x7f, 0xff] {
                let mut copy = bytes.clone();
                copy[n] = value;
                let _ = Lowered::from_bytes(&copy);
            }
        }
    }
}
