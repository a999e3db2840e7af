//! Compact, versioned byte encodings of what crosses process boundaries: [`Lowered`], [`KernelInterface`],
//! [`ProgramGlobals`], printf sites. Used by the disk cache and by program binaries.
//!
//! # Format
//! Four bytes magic, one byte version, then the fields in order: integers little-endian of fixed width, lists and
//! strings with a u32 count before them, options with a byte 0 or 1. Decoding never panics and never allocates more
//! than the input is long: a count is checked against the bytes that are left.

use crate::interface::*;
use crate::ir::module::{PrintfArg, PrintfSite};
use crate::ir::types::{Space, Type};
use crate::pipeline::Lowered;

/// The reason why bytes could not be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The bytes are no encoding of this kind, or of another version.
    #[error("wrong magic number or version")]
    Header,
    /// The bytes end too early, or some are left over.
    #[error("wrong length")]
    Length,
    /// A field holds a value that it cannot have.
    #[error("damaged field")]
    Field,
}

type Decoded<T> = Result<T, DecodeError>;

const VERSION: u8 = 12;

struct Writer(Vec<u8>);

impl Writer {
    fn new(magic: &[u8; 4]) -> Self {
        let mut bytes = magic.to_vec();
        bytes.push(VERSION);
        Self(bytes)
    }
    fn u8(&mut self, v: u8) {
        self.0.push(v);
    }
    fn bool(&mut self, v: bool) {
        self.u8(v.into());
    }
    fn u32(&mut self, v: u32) {
        self.0.extend_from_slice(&v.to_le_bytes());
    }
    fn u64(&mut self, v: u64) {
        self.0.extend_from_slice(&v.to_le_bytes());
    }
    fn bytes(&mut self, v: &[u8]) {
        self.u32(v.len() as u32);
        self.0.extend_from_slice(v);
    }
    fn words(&mut self, words: &[u32]) {
        self.u32(words.len() as u32);
        self.0.extend_from_slice(&words_to_bytes(words));
    }
    fn list<T>(&mut self, items: &[T], mut f: impl FnMut(&mut Self, &T)) {
        self.u32(items.len() as u32);
        items.iter().for_each(|item| f(self, item));
    }
    fn option<T>(&mut self, item: &Option<T>, f: impl FnOnce(&mut Self, &T)) {
        self.bool(item.is_some());
        if let Some(item) = item {
            f(self, item);
        }
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn new(bytes: &'a [u8], magic: &[u8; 4]) -> Decoded<Self> {
        match bytes.split_at_checked(5) {
            Some((head, rest)) if head[..4] == magic[..] && head[4] == VERSION => Ok(Self(rest)),
            _ => Err(DecodeError::Header),
        }
    }
    fn end(&self) -> Decoded<()> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err(DecodeError::Length)
        }
    }
    fn take(&mut self, n: usize) -> Decoded<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(n).ok_or(DecodeError::Length)?;
        self.0 = rest;
        Ok(head)
    }
    fn array<const N: usize>(&mut self) -> Decoded<[u8; N]> {
        self.take(N)?.try_into().map_err(|_| DecodeError::Length)
    }
    fn u8(&mut self) -> Decoded<u8> {
        Ok(self.array::<1>()?[0])
    }
    fn bool(&mut self) -> Decoded<bool> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(DecodeError::Field),
        }
    }
    fn u32(&mut self) -> Decoded<u32> {
        Ok(u32::from_le_bytes(self.array()?))
    }
    fn u64(&mut self) -> Decoded<u64> {
        Ok(u64::from_le_bytes(self.array()?))
    }
    fn bytes(&mut self) -> Decoded<Vec<u8>> {
        let n = self.u32()? as usize;
        Ok(self.take(n)?.to_vec())
    }
    fn words(&mut self) -> Decoded<Vec<u32>> {
        let n = self.u32()? as usize;
        let bytes = self.take(n.checked_mul(4).ok_or(DecodeError::Length)?)?;
        Ok(bytes_to_words(bytes))
    }
    fn string(&mut self) -> Decoded<String> {
        String::from_utf8(self.bytes()?).map_err(|_| DecodeError::Field)
    }
    /// Decodes a list whose items take at least `least` bytes each.
    fn list<T>(
        &mut self,
        least: usize,
        mut f: impl FnMut(&mut Self) -> Decoded<T>,
    ) -> Decoded<Vec<T>> {
        let n = self.u32()? as usize;
        if n.checked_mul(least.max(1))
            .is_none_or(|bytes| bytes > self.0.len())
        {
            return Err(DecodeError::Length);
        }
        (0..n).map(|_| f(self)).collect()
    }
    fn option<T>(&mut self, f: impl FnOnce(&mut Self) -> Decoded<T>) -> Decoded<Option<T>> {
        Ok(if self.bool()? { Some(f(self)?) } else { None })
    }
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

fn address_code(v: AddressQualifier) -> u8 {
    match v {
        AddressQualifier::Global => 0,
        AddressQualifier::Local => 1,
        AddressQualifier::Constant => 2,
        AddressQualifier::Private => 3,
    }
}

fn address_from(code: u8) -> Decoded<AddressQualifier> {
    Ok(match code {
        0 => AddressQualifier::Global,
        1 => AddressQualifier::Local,
        2 => AddressQualifier::Constant,
        3 => AddressQualifier::Private,
        _ => return Err(DecodeError::Field),
    })
}

fn access_code(v: AccessQualifier) -> u8 {
    match v {
        AccessQualifier::None => 0,
        AccessQualifier::ReadOnly => 1,
        AccessQualifier::WriteOnly => 2,
        AccessQualifier::ReadWrite => 3,
    }
}

fn access_from(code: u8) -> Decoded<AccessQualifier> {
    Ok(match code {
        0 => AccessQualifier::None,
        1 => AccessQualifier::ReadOnly,
        2 => AccessQualifier::WriteOnly,
        3 => AccessQualifier::ReadWrite,
        _ => return Err(DecodeError::Field),
    })
}

fn dim_code(v: ImageDim) -> u8 {
    match v {
        ImageDim::D1 => 0,
        ImageDim::D1Array => 1,
        ImageDim::Buffer => 2,
        ImageDim::D2 => 3,
        ImageDim::D2Array => 4,
        ImageDim::D3 => 5,
    }
}

fn dim_from(code: u8) -> Decoded<ImageDim> {
    Ok(match code {
        0 => ImageDim::D1,
        1 => ImageDim::D1Array,
        2 => ImageDim::Buffer,
        3 => ImageDim::D2,
        4 => ImageDim::D2Array,
        5 => ImageDim::D3,
        _ => return Err(DecodeError::Field),
    })
}

fn type_code(ty: Type) -> u8 {
    match ty {
        Type::Bool => 0,
        Type::I8 => 1,
        Type::I16 => 2,
        Type::I32 => 3,
        Type::I64 => 4,
        Type::F16 => 5,
        Type::F32 => 6,
        Type::F64 => 7,
        Type::Handle => 8,
        Type::Ptr(Space::Global) => 9,
        Type::Ptr(Space::Constant) => 10,
        Type::Ptr(Space::Local) => 11,
        Type::Ptr(Space::Private) => 12,
        Type::Ptr(Space::Generic) => 13,
    }
}

fn type_from(code: u8) -> Decoded<Type> {
    Ok(match code {
        0 => Type::Bool,
        1 => Type::I8,
        2 => Type::I16,
        3 => Type::I32,
        4 => Type::I64,
        5 => Type::F16,
        6 => Type::F32,
        7 => Type::F64,
        8 => Type::Handle,
        9 => Type::Ptr(Space::Global),
        10 => Type::Ptr(Space::Constant),
        11 => Type::Ptr(Space::Local),
        12 => Type::Ptr(Space::Private),
        13 => Type::Ptr(Space::Generic),
        _ => return Err(DecodeError::Field),
    })
}

fn write_image(w: &mut Writer, image: &ImageArg) {
    w.u8(dim_code(image.dim));
    w.bool(image.depth);
    let mut bindings = image.bindings;
    for place in bindings.list_mut() {
        w.option(place, |w, &v| w.u32(v));
    }
    w.option(&image.info, |w, &v| w.u32(v));
}

fn read_image(r: &mut Reader) -> Decoded<ImageArg> {
    let mut image = ImageArg::unused(dim_from(r.u8()?)?, r.bool()?);
    for place in image.bindings.list_mut() {
        *place = r.option(Reader::u32)?;
    }
    image.info = r.option(Reader::u32)?;
    Ok(image)
}

fn write_arg(w: &mut Writer, arg: &Arg) {
    match arg.kind {
        ArgKind::Value { offset, size } => {
            w.u8(0);
            w.u32(offset);
            w.u32(size);
        }
        ArgKind::Buffer { offset, constant } => {
            w.u8(1);
            w.u32(offset);
            w.bool(constant);
        }
        ArgKind::Local { spec_id } => {
            w.u8(2);
            w.u32(spec_id);
        }
        ArgKind::Image(image) => {
            w.u8(3);
            write_image(w, &image);
        }
        ArgKind::Captured { at, image } => {
            w.u8(7);
            w.u32(at);
            write_image(w, &image);
        }
        ArgKind::Sampler { offset } => {
            w.u8(4);
            w.option(&offset, |w, &v| w.u32(v));
        }
        ArgKind::Pipe { offset } => {
            w.u8(5);
            w.u32(offset);
        }
        ArgKind::Queue { offset } => {
            w.u8(6);
            w.u32(offset);
        }
    }
    w.bytes(arg.name.as_bytes());
    w.bytes(arg.type_name.as_bytes());
    w.u8(address_code(arg.address));
    w.u8(access_code(arg.access));
    w.u8(u8::from(arg.is_const) | u8::from(arg.is_restrict) << 1 | u8::from(arg.is_volatile) << 2);
    w.option(&arg.max_size, |w, &v| w.u32(v));
}

fn read_arg(r: &mut Reader) -> Decoded<Arg> {
    let kind = match r.u8()? {
        0 => ArgKind::Value {
            offset: r.u32()?,
            size: r.u32()?,
        },
        1 => ArgKind::Buffer {
            offset: r.u32()?,
            constant: r.bool()?,
        },
        2 => ArgKind::Local { spec_id: r.u32()? },
        3 => ArgKind::Image(read_image(r)?),
        4 => ArgKind::Sampler {
            offset: r.option(Reader::u32)?,
        },
        5 => ArgKind::Pipe { offset: r.u32()? },
        6 => ArgKind::Queue { offset: r.u32()? },
        7 => ArgKind::Captured {
            at: r.u32()?,
            image: read_image(r)?,
        },
        _ => return Err(DecodeError::Field),
    };
    let name = r.string()?;
    let type_name = r.string()?;
    let address = address_from(r.u8()?)?;
    let access = access_from(r.u8()?)?;
    let flags = r.u8()?;
    if flags > 7 {
        return Err(DecodeError::Field);
    }
    Ok(Arg {
        kind,
        name,
        type_name,
        address,
        access,
        is_const: flags & 1 != 0,
        is_restrict: flags & 2 != 0,
        is_volatile: flags & 4 != 0,
        max_size: r.option(Reader::u32)?,
    })
}

fn write_attributes(w: &mut Writer, a: &KernelAttributes) {
    let size = |w: &mut Writer, v: &[u32; 3]| v.iter().for_each(|&v| w.u32(v));
    w.u8(match a.role {
        KernelRole::Ordinary => 0,
        KernelRole::Initializer => 1,
        KernelRole::Finalizer => 2,
        KernelRole::Block => 3,
    });
    w.option(&a.required_work_group_size, size);
    w.option(&a.work_group_size_hint, size);
    w.option(&a.vec_type_hint, |w, v| w.bytes(v.as_bytes()));
    w.option(&a.required_sub_group_size, |w, &v| w.u32(v));
    w.option(&a.required_sub_groups, |w, &v| w.u32(v));
    w.u8(a.zero_local.into());
}

fn read_attributes(r: &mut Reader) -> Decoded<KernelAttributes> {
    let size = |r: &mut Reader| Ok([r.u32()?, r.u32()?, r.u32()?]);
    Ok(KernelAttributes {
        role: match r.u8()? {
            0 => KernelRole::Ordinary,
            1 => KernelRole::Initializer,
            2 => KernelRole::Finalizer,
            3 => KernelRole::Block,
            _ => return Err(DecodeError::Field),
        },
        required_work_group_size: r.option(size)?,
        work_group_size_hint: r.option(size)?,
        vec_type_hint: r.option(|r| r.string())?,
        required_sub_group_size: r.option(|r| r.u32())?,
        required_sub_groups: r.option(|r| r.u32())?,
        zero_local: r.u8()? != 0,
    })
}

fn write_interface(w: &mut Writer, i: &KernelInterface) {
    w.bytes(i.name.as_bytes());
    w.list(&i.args, write_arg);
    w.list(&i.implicit, |w, &(implicit, offset)| {
        let code = Implicit::ALL
            .iter()
            .position(|&other| other == implicit)
            .unwrap_or(usize::MAX);
        w.u8(code as u8);
        w.u32(offset);
    });
    for v in [
        i.push_size,
        i.arg_buffer_size,
        i.local_size,
        i.private_size,
        i.instruction_bound,
        i.lanes,
    ] {
        w.u32(v);
    }
    write_attributes(w, &i.attributes);
    for v in [
        i.args_in_buffer,
        i.uses_printf,
        i.uses_subgroups,
        i.guarded,
        i.waits,
        i.uses_indirect_pointers,
    ] {
        w.bool(v);
    }
    w.list(&i.samplers, |w, sampler| {
        w.u32(sampler.binding);
        let (code, value) = match sampler.source {
            SamplerSource::Arg(index) => (0, index),
            SamplerSource::Literal(properties) => (1, properties),
            SamplerSource::Captured(at) => (2, at),
        };
        w.u8(code);
        w.u32(value);
    });
    let access: Vec<u8> = i.arg_access.iter().map(|access| access.bits()).collect();
    w.bytes(&access);
}

fn read_interface(r: &mut Reader) -> Decoded<KernelInterface> {
    let name = r.string()?;
    let args = r.list(12, read_arg)?;
    let implicit = r.list(5, |r| {
        let code = usize::from(r.u8()?);
        Ok((
            *Implicit::ALL.get(code).ok_or(DecodeError::Field)?,
            r.u32()?,
        ))
    })?;
    let [push_size, arg_buffer_size, local_size, private_size, instruction_bound, lanes] =
        [r.u32()?, r.u32()?, r.u32()?, r.u32()?, r.u32()?, r.u32()?];
    let attributes = read_attributes(r)?;
    let [args_in_buffer, uses_printf, uses_subgroups, guarded, waits, uses_indirect_pointers] = [
        r.bool()?,
        r.bool()?,
        r.bool()?,
        r.bool()?,
        r.bool()?,
        r.bool()?,
    ];
    let samplers = r.list(9, |r| {
        Ok(SamplerBinding {
            binding: r.u32()?,
            source: match r.u8()? {
                0 => SamplerSource::Arg(r.u32()?),
                1 => SamplerSource::Literal(r.u32()?),
                2 => SamplerSource::Captured(r.u32()?),
                _ => return Err(DecodeError::Field),
            },
        })
    })?;
    let arg_access: Vec<Access> = r.bytes()?.into_iter().map(Access::from_bits).collect();
    if arg_access.len() != args.len() {
        return Err(DecodeError::Field);
    }
    Ok(KernelInterface {
        name,
        args,
        implicit,
        push_size,
        args_in_buffer,
        arg_buffer_size,
        local_size,
        private_size,
        attributes,
        uses_printf,
        instruction_bound,
        uses_subgroups,
        lanes,
        guarded,
        waits,
        uses_indirect_pointers,
        samplers,
        arg_access,
    })
}

fn write_sites(w: &mut Writer, sites: &[PrintfSite]) {
    w.list(sites, |w, site| {
        w.bytes(&site.format);
        w.list(&site.args, |w, arg| match arg {
            PrintfArg::Value { ty, lanes } => {
                w.u8(0);
                w.u8(type_code(*ty));
                w.u32(*lanes);
            }
            PrintfArg::Text(text) => {
                w.u8(1);
                w.bytes(text);
            }
            PrintfArg::String => w.u8(2),
        });
    });
}

fn read_sites(r: &mut Reader) -> Decoded<Vec<PrintfSite>> {
    r.list(8, |r| {
        let format = r.bytes()?;
        let args = r.list(5, |r| match r.u8()? {
            0 => {
                let ty = type_from(r.u8()?)?;
                let lanes = r.u32()?;
                if !(1..=16).contains(&lanes) {
                    return Err(DecodeError::Field);
                }
                Ok(PrintfArg::Value { ty, lanes })
            }
            1 => Ok(PrintfArg::Text(r.bytes()?)),
            2 => Ok(PrintfArg::String),
            _ => Err(DecodeError::Field),
        })?;
        Ok(PrintfSite { format, args })
    })
}

impl KernelInterface {
    const MAGIC: &'static [u8; 4] = b"PuKI";
    /// Encodes the interface.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut w = Writer::new(Self::MAGIC);
        write_interface(&mut w, self);
        w.0
    }
    /// Decodes an interface.
    pub fn from_bytes(bytes: &[u8]) -> Decoded<Self> {
        let mut r = Reader::new(bytes, Self::MAGIC)?;
        let interface = read_interface(&mut r)?;
        r.end()?;
        Ok(interface)
    }
}

impl ProgramGlobals {
    const MAGIC: &'static [u8; 4] = b"PuPG";
    /// Encodes the variables.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut w = Writer::new(Self::MAGIC);
        w.bytes(&self.data);
        w.list(&self.relocations, |w, r| {
            w.u64(r.offset);
            w.u64(r.target);
        });
        w.u64(self.writable_size);
        w.0
    }
    /// Decodes the variables. Every relocation is within the data.
    pub fn from_bytes(bytes: &[u8]) -> Decoded<Self> {
        let mut r = Reader::new(bytes, Self::MAGIC)?;
        let data = r.bytes()?;
        let relocations = r.list(16, |r| {
            let relocation = Relocation {
                offset: r.u64()?,
                target: r.u64()?,
            };
            let size = data.len() as u64;
            if relocation
                .offset
                .checked_add(8)
                .is_none_or(|end| end > size)
                || relocation.target > size
            {
                return Err(DecodeError::Field);
            }
            Ok(relocation)
        })?;
        let writable_size = r.u64()?;
        r.end()?;
        Ok(Self {
            data,
            relocations,
            writable_size,
        })
    }
}

impl Lowered {
    const MAGIC: &'static [u8; 4] = b"PuLo";
    /// Encodes the kernel.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut w = Writer::new(Self::MAGIC);
        write_interface(&mut w, &self.interface);
        write_sites(&mut w, &self.printfs);
        w.words(&self.words);
        w.bytes(self.kir.as_bytes());
        w.0
    }
    /// Decodes a kernel. It does not check whether the words are valid SPIR-V.
    pub fn from_bytes(bytes: &[u8]) -> Decoded<Self> {
        let mut r = Reader::new(bytes, Self::MAGIC)?;
        let interface = read_interface(&mut r)?;
        let printfs = read_sites(&mut r)?;
        let words = r.words()?;
        let kir = String::from_utf8(r.bytes()?.to_vec()).map_err(|_| DecodeError::Field)?;
        r.end()?;
        Ok(Self {
            words,
            kir,
            interface,
            printfs,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
