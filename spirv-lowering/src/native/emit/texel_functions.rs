//! The functions that read and write the texels of an image for all lanes of a pack.
//!
//! They access common formats themselves ([`TexelStorage`]), a row of consecutive texels at once; for others they call the
//! runtime. Conversions are those of the OpenCL specification, section 8.3, correctly rounded.

use crate::ir::function::FpFlags;
use crate::ir::op::{FloatCond, IntCond, Texel};
use crate::native::layout;
use crate::native::llvm::{Binary, Builder, Cast, LlvmType, Operand};
use crate::native::TexelStorage;

const IMAGE: Operand = Operand::named(LlvmType::PTR, "image");
/// Where the components are: of all lanes the first, then the second and so on.
const TEXELS: Operand = Operand::named(LlvmType::PTR, "texels");
const COORDINATES: [&str; 3] = ["x", "y", "z"];
const ACTIVE: &str = "active";

/// The bits of 1.0 as a float.
const ONE: u32 = 1f32.to_bits();
/// The bits of 255.0 as a float.
const MOST: u32 = 255f32.to_bits();

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    Load,
    Store,
}

/// A function for one kind of access.
#[derive(Debug, Clone, Copy)]
pub(super) struct TexelFunction {
    pub access: Access,
    /// The coordinates that say where a texel is.
    pub coordinates: usize,
    pub texel: Texel,
    pub lanes: u32,
    /// The processor has fused multiply-adds.
    pub fused: bool,
}

/// The places of the texels of all lanes.
struct Places {
    /// Lanes that are active and whose texel lies within the image.
    inside: Operand,
    /// The address of the first texel of the image.
    base: Operand,
    /// The offset of each lane's texel in bytes; 0 where it is not inside.
    offsets: Operand,
    /// All lanes are inside, and their texels follow one another.
    row: Operand,
}

impl TexelFunction {
    /// Returns the function's name.
    pub fn name(&self) -> String {
        let access = match self.access {
            Access::Load => "load",
            Access::Store => "store",
        };
        let texel = match self.texel {
            Texel::Float => "float",
            Texel::Signed => "signed",
            Texel::Unsigned | Texel::Raw => "unsigned",
        };
        format!("texel_{access}_{texel}_{}", self.coordinates)
    }

    /// Builds the function's body. Returns its head.
    pub fn build(&self, llvm: &mut Builder<'_>) -> String {
        let places = self.places(llvm);
        let kind = self.field(llvm, LlvmType::int(8), layout::TEXEL_STORAGE);
        let other = llvm.label();
        let stored = [
            TexelStorage::Byte,
            TexelStorage::Bytes4,
            TexelStorage::Word,
            TexelStorage::Words4,
        ];
        let arms = stored.map(|storage| (storage, llvm.label()));
        let cases = arms.map(|(storage, label)| (storage as u64, label));
        llvm.switch(&kind, &cases, other);
        for (storage, label) in arms {
            llvm.begin(label);
            match self.access {
                Access::Load => self.load(llvm, storage, &places),
                Access::Store => self.store(llvm, storage, &places),
            }
            llvm.ret(None);
        }
        llvm.begin(other);
        self.call(llvm);
        llvm.ret(None);
        let (vec, mask) = (self.vec(LlvmType::I32), self.vec(LlvmType::BIT));
        let [x, y, z] = COORDINATES;
        format!(
            "define internal void @{}(ptr {IMAGE}, {mask} %{ACTIVE}, {vec} %{x}, {vec} %{y}, {vec} %{z}, ptr {TEXELS}) #1",
            self.name(),
        )
    }

    fn vec(&self, ty: LlvmType) -> LlvmType {
        ty.vector(self.lanes)
    }

    fn splat(&self, llvm: &mut Builder<'_>, value: &Operand) -> Operand {
        llvm.splat(value, self.lanes)
    }

    /// Returns a constant in all lanes.
    fn all(&self, bits: u32) -> Operand {
        Operand::constant(self.vec(LlvmType::I32), bits.into())
    }

    fn all_float(&self, bits: u32) -> Operand {
        Operand::constant(self.vec(LlvmType::FLOAT), bits.into())
    }

    /// Loads a field of the descriptor.
    fn field(&self, llvm: &mut Builder<'_>, ty: LlvmType, offset: u32) -> Operand {
        let at = llvm.offset(&IMAGE, &Operand::i64(offset.into()));
        llvm.load(ty, &at, ty.bytes())
    }

    /// Returns true if all lanes of a mask are set.
    fn every(&self, llvm: &mut Builder<'_>, mask: &Operand) -> Operand {
        let bits = LlvmType::int(self.lanes);
        let mask = llvm.cast(Cast::Bitcast, mask, bits);
        llvm.icmp(IntCond::Eq, &mask, &Operand::constant(bits, u64::MAX))
    }

    fn places(&self, llvm: &mut Builder<'_>) -> Places {
        let vec = self.vec(LlvmType::I32);
        let mut inside = Operand::named(self.vec(LlvmType::BIT), ACTIVE);
        let mut follow = inside.clone();
        let mut offsets = self.all(0);
        let units = [
            (LlvmType::I32, layout::TEXEL_BYTES),
            (LlvmType::I64, layout::ROW_BYTES),
            (LlvmType::I64, layout::SLICE_BYTES),
        ];
        for (i, (ty, unit)) in units.into_iter().enumerate().take(self.coordinates) {
            let at = Operand::named(vec, COORDINATES[i]);
            let size = self.field(llvm, LlvmType::I32, layout::IMAGE_SIZE + 4 * i as u32);
            let size = self.splat(llvm, &size);
            let within = llvm.icmp(IntCond::Ult, &at, &size);
            inside = llvm.and(&inside, &within);

            let first = llvm.extract(&at, &Operand::i64(0));
            let mut expected = self.splat(llvm, &first);
            if i == 0 {
                expected = llvm.add(&expected, &Operand::of_lanes(vec, |lane| lane));
            }
            let follows = llvm.icmp(IntCond::Eq, &at, &expected);
            follow = llvm.and(&follow, &follows);

            let mut bytes = self.field(llvm, ty, unit);
            if ty != LlvmType::I32 {
                // Images that are accessed here have less than 2^31 bytes.
                bytes = llvm.cast(Cast::Trunc, &bytes, LlvmType::I32);
            }
            let bytes = self.splat(llvm, &bytes);
            let offset = llvm.mul(&at, &bytes);
            offsets = llvm.add(&offsets, &offset);
        }
        let offsets = llvm.select(&inside, &offsets, &self.all(0));
        let row = llvm.and(&inside, &follow);
        Places {
            row: self.every(llvm, &row),
            base: self.field(llvm, LlvmType::PTR, layout::TEXELS),
            inside,
            offsets,
        }
    }

    /// Returns the address of the first lane's texel.
    fn first(&self, llvm: &mut Builder<'_>, places: &Places) -> Operand {
        let offset = llvm.extract(&places.offsets, &Operand::i64(0));
        let offset = llvm.cast(Cast::ZExt, &offset, LlvmType::I64);
        llvm.offset(&places.base, &offset)
    }

    /// Returns the address of a number of each lane's texel.
    fn each(&self, llvm: &mut Builder<'_>, places: &Places, bytes: u32) -> Operand {
        let offsets = llvm.cast(Cast::ZExt, &places.offsets, self.vec(LlvmType::I64));
        let at = llvm.offset(&places.base, &offsets);
        match bytes {
            0 => at,
            _ => llvm.offset(&at, &Operand::i64(bytes.into())),
        }
    }

    /// Calls the runtime.
    fn call(&self, llvm: &mut Builder<'_>) {
        let bits = LlvmType::int(self.lanes);
        let active = Operand::named(self.vec(LlvmType::BIT), ACTIVE);
        let active = llvm.cast(Cast::Bitcast, &active, bits);
        let active = llvm.widened(&active, LlvmType::I64);
        let vec = self.vec(LlvmType::I32);
        let [x, y, z] = COORDINATES.map(|name| {
            let place = llvm.array(1, vec);
            llvm.store(&Operand::named(vec, name), &place, 64);
            place
        });
        let name = match self.access {
            Access::Load => "pumice_texel_load",
            Access::Store => "pumice_texel_store",
        };
        let lanes = Operand::i32(self.lanes);
        llvm.call_void(
            format_args!("{name}"),
            &[&IMAGE, &lanes, &active, &x, &y, &z, &TEXELS],
        );
    }

    /// Returns the address of a component of all lanes.
    fn component(&self, llvm: &mut Builder<'_>, number: u64) -> Operand {
        let bytes = self.vec(LlvmType::I32).bytes();
        llvm.offset(&TEXELS, &Operand::i64(number * u64::from(bytes)))
    }

    /// Returns for each component by how many bits it is shifted in a word of four bytes.
    fn shifts(&self, llvm: &mut Builder<'_>) -> [Operand; 4] {
        [0, 1, 2, 3].map(|i| {
            let channel = self.field(llvm, LlvmType::int(8), layout::COMPONENTS + i);
            let channel = llvm.cast(Cast::ZExt, &channel, LlvmType::I32);
            let shift = llvm.mul(&channel, &Operand::i32(8));
            self.splat(llvm, &shift)
        })
    }

    /// Loads the numbers of all lanes' texels, of which each has `count`.
    fn load_stored(
        &self,
        llvm: &mut Builder<'_>,
        (ty, count): (LlvmType, u32),
        places: &Places,
    ) -> Vec<Operand> {
        let [row, each, done] = [(); 3].map(|()| llvm.label());
        llvm.branch(&places.row, row, each);

        llvm.begin(row);
        let at = self.first(llvm, places);
        let wide = ty.vector(self.lanes * count);
        let loaded = llvm.load(wide, &at, 1);
        let in_row = llvm.deinterleave(loaded, count);
        llvm.jump(done);

        llvm.begin(each);
        let vec = self.vec(ty);
        let all = Operand::constant(self.vec(LlvmType::BIT), u64::MAX);
        let gathered: Vec<Operand> = (0..count)
            .map(|i| {
                let at = self.each(llvm, places, i * ty.bytes());
                let name = format!("llvm.masked.gather.{}.{}", vec.suffix(), at.ty().suffix());
                let args = [&at, &Operand::i32(1), &all, &Operand::poison(vec)];
                llvm.call(format_args!("{name}"), vec, &args)
            })
            .collect();
        llvm.jump(done);

        llvm.begin(done);
        in_row
            .iter()
            .zip(&gathered)
            .map(|(in_row, gathered)| llvm.phi(vec, &[(in_row, row), (gathered, each)]))
            .collect()
    }

    /// Returns bytes as floats between 0 and 1.
    fn fractions(&self, llvm: &mut Builder<'_>, bytes: &Operand) -> Operand {
        let (fp, most) = (FpFlags::default(), self.all_float(MOST));
        let value = llvm.cast(Cast::SiToFp, bytes, self.vec(LlvmType::FLOAT));
        let quotient = match self.fused {
            false => llvm.binary(Binary::FDiv, &value, &most),
            true => {
                let by = self.all_float((1.0 / 255f32).to_bits());
                let near = llvm.binary(Binary::FMul, &value, &by);
                let less = llvm.fneg(fp, &near);
                let rest = llvm.intrinsic("fma", &[&less, &most, &value]);
                llvm.intrinsic("fma", &[&rest, &by, &near])
            }
        };
        llvm.cast(Cast::Bitcast, &quotient, self.vec(LlvmType::I32))
    }

    /// Returns what a kernel sees of bytes that are shifted to the left.
    fn of_bytes(&self, llvm: &mut Builder<'_>, word: &Operand, shift: &Operand) -> Operand {
        let moved = llvm.binary(Binary::LShr, word, shift);
        match self.texel {
            Texel::Signed => {
                let high = llvm.binary(Binary::Shl, &moved, &self.all(24));
                llvm.binary(Binary::AShr, &high, &self.all(24))
            }
            Texel::Unsigned | Texel::Raw => llvm.and(&moved, &self.all(255)),
            Texel::Float => {
                let byte = llvm.and(&moved, &self.all(255));
                self.fractions(llvm, &byte)
            }
        }
    }

    fn load(&self, llvm: &mut Builder<'_>, storage: TexelStorage, places: &Places) {
        let unit = match self.texel {
            Texel::Float => ONE,
            _ => 1,
        };
        let stored = match storage {
            TexelStorage::Byte => (LlvmType::int(8), 1),
            TexelStorage::Words4 => (LlvmType::I32, 4),
            _ => (LlvmType::I32, 1),
        };
        let mut seen = self.load_stored(llvm, stored, places);
        match storage {
            TexelStorage::Byte => {
                let word = llvm.cast(Cast::ZExt, &seen[0], self.vec(LlvmType::I32));
                seen = vec![self.of_bytes(llvm, &word, &self.all(0))];
            }
            TexelStorage::Bytes4 => {
                let shifts = self.shifts(llvm);
                let word = seen.remove(0);
                seen = shifts
                    .iter()
                    .map(|shift| self.of_bytes(llvm, &word, shift))
                    .collect();
            }
            _ => {}
        }
        if seen.len() == 1 {
            seen.extend([0, 0, unit].map(|bits| self.all(bits)));
        }
        let opaque = self.field(llvm, LlvmType::int(8), layout::OPAQUE_BORDER);
        let opaque = llvm.icmp(
            IntCond::Ne,
            &opaque,
            &Operand::constant(LlvmType::int(8), 0),
        );
        let border = llvm.select(&opaque, &Operand::i32(unit), &Operand::i32(0));
        let border = self.splat(llvm, &border);
        for (i, value) in seen.iter().enumerate() {
            let outside = if i == 3 { border.clone() } else { self.all(0) };
            let value = llvm.select(&places.inside, value, &outside);
            let at = self.component(llvm, i as u64);
            llvm.store(&value, &at, 4);
        }
    }

    /// Returns the byte that is stored for a component, in all lanes.
    fn to_byte(&self, llvm: &mut Builder<'_>, value: &Operand) -> Operand {
        match self.texel {
            Texel::Signed => {
                let value = llvm.intrinsic("smax", &[value, &self.all(-128i32 as u32)]);
                let value = llvm.intrinsic("smin", &[&value, &self.all(127)]);
                llvm.and(&value, &self.all(255))
            }
            Texel::Unsigned | Texel::Raw => llvm.intrinsic("umin", &[value, &self.all(255)]),
            Texel::Float => {
                let fp = FpFlags::default();
                let (none, one) = (self.all_float(0), self.all_float(ONE));
                let value = llvm.cast(Cast::Bitcast, value, self.vec(LlvmType::FLOAT));
                // NaN becomes 0.
                let some = llvm.fcmp(FloatCond::Ogt, fp, &value, &none);
                let value = llvm.select(&some, &value, &none);
                let less = llvm.fcmp(FloatCond::Olt, fp, &value, &one);
                let value = llvm.select(&less, &value, &one);
                let doubles = self.vec(LlvmType::DOUBLE);
                let number = |value: f64| Operand::constant(doubles, value.to_bits());
                let wide = llvm.cast(Cast::FpExt, &value, doubles);
                let scaled = llvm.binary(Binary::FMul, &wide, &number(255.0));
                // The product is exact. Added to 2^52 it is rounded to the nearest integer, in the lowest bits.
                let rounded = llvm.binary(Binary::FAdd, &scaled, &number((1u64 << 52) as f64));
                let bits = llvm.cast(Cast::Bitcast, &rounded, self.vec(LlvmType::I64));
                let low = llvm.cast(Cast::Trunc, &bits, self.vec(LlvmType::I32));
                llvm.and(&low, &self.all(255))
            }
        }
    }

    fn store(&self, llvm: &mut Builder<'_>, storage: TexelStorage, places: &Places) {
        let vec = self.vec(LlvmType::I32);
        let count = match storage {
            TexelStorage::Byte | TexelStorage::Word => 1,
            _ => 4,
        };
        let mut values: Vec<Operand> = (0..count)
            .map(|i| {
                let at = self.component(llvm, i);
                llvm.load(vec, &at, 4)
            })
            .collect();
        match storage {
            TexelStorage::Byte => {
                let byte = self.to_byte(llvm, &values[0]);
                values = vec![llvm.cast(Cast::Trunc, &byte, self.vec(LlvmType::int(8)))];
            }
            TexelStorage::Bytes4 => {
                let shifts = self.shifts(llvm);
                let mut word = self.all(0);
                for (value, shift) in values.iter().zip(&shifts) {
                    let byte = self.to_byte(llvm, value);
                    let moved = llvm.binary(Binary::Shl, &byte, shift);
                    word = llvm.or(&word, &moved);
                }
                values = vec![word];
            }
            _ => {}
        }
        let [row, each, done] = [(); 3].map(|()| llvm.label());
        llvm.branch(&places.row, row, each);
        llvm.begin(row);
        let at = self.first(llvm, places);
        let all = llvm.interleave(&values);
        llvm.store(&all, &at, 1);
        llvm.jump(done);

        llvm.begin(each);
        for (i, value) in values.iter().enumerate() {
            let at = self.each(llvm, places, i as u32 * 4);
            let (ty, ptrs) = (value.ty().suffix(), at.ty().suffix());
            let name = format!("llvm.masked.scatter.{ty}.{ptrs}");
            let args = [value, &at, &Operand::i32(1), &places.inside];
            llvm.call_void(format_args!("{name}"), &args);
        }
        llvm.jump(done);
        llvm.begin(done);
    }
}
