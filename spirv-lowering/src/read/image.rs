//! Translates images and samplers: `OpImage*` instructions, and the built-in functions that
//! compilers leave as calls.
//!
//! An image or a sampler is a handle. Its geometry is known from its SPIR-V type here and from the
//! kernel's parameter later. Reads without a sampler, writes and queries become operations on the
//! handle. Reading with a sampler and writing integers (which saturates) are functions of the
//! built-in library (`pumice_sample_*`, `pumice_write_*`), which in turn call the functions of
//! [`Body::image_intrinsic`].
//!
//! The `SignExtend` and `ZeroExtend` image operands or the name of a function say whether integer
//! texels are signed; without either they count as unsigned.

use super::body::{bad, unsupported, Body};
use super::types::{Kind, Opaque, TyId};
use super::words::Instruction;
use crate::error::{LowerError, Result};
use crate::interface::{AccessQualifier, ImageDim};
use crate::ir::entity::Value;
use crate::ir::function::Values;
use crate::ir::op::{ImageProperty, ImageType, Op, Rounding, Texel};
use crate::ir::types::Type;
use spirv::{Dim, ImageOperands, Op as S};

/// The first channel data type, CL_SNORM_INT8, which SPIR-V numbers 0.
const FIRST_DATA_TYPE: u64 = 0x10d0;
/// The first channel order, CL_R, which SPIR-V numbers 0.
const FIRST_ORDER: u64 = 0x10b0;

/// Returns the geometry of an image type.
pub(super) fn geometry(dim: u32, arrayed: bool) -> Result<ImageDim> {
    Ok(match (Dim::from_u32(dim), arrayed) {
        (Some(Dim::Dim1D), false) => ImageDim::D1,
        (Some(Dim::Dim1D), true) => ImageDim::D1Array,
        (Some(Dim::DimBuffer), false) => ImageDim::Buffer,
        (Some(Dim::Dim2D), false) => ImageDim::D2,
        (Some(Dim::Dim2D), true) => ImageDim::D2Array,
        (Some(Dim::Dim3D), false) => ImageDim::D3,
        _ => return Err(LowerError::unsupported("an image of this geometry")),
    })
}

/// Returns the access qualifier of an image type.
pub(super) fn qualifier(access: u32) -> AccessQualifier {
    match access {
        0 => AccessQualifier::ReadOnly,
        1 => AccessQualifier::WriteOnly,
        _ => AccessQualifier::ReadWrite,
    }
}

/// Returns the name of a geometry in the names of library functions.
fn suffix(dim: ImageDim) -> &'static str {
    match dim {
        ImageDim::D1 | ImageDim::Buffer => "1d",
        ImageDim::D1Array => "1d_array",
        ImageDim::D2 => "2d",
        ImageDim::D2Array => "2d_array",
        ImageDim::D3 => "3d",
    }
}

fn letter(texel: Texel) -> char {
    match texel {
        Texel::Float => 'f',
        Texel::Signed => 'i',
        Texel::Unsigned => 'u',
        Texel::Raw => 'r',
    }
}

/// Returns the type of texel that a built-in function reads or writes, by what follows `read_image`
/// or `write_image` in its name.
fn texel_by_name(name: &str) -> Option<Texel> {
    Some(match name {
        "f" | "h" => Texel::Float,
        "i" => Texel::Signed,
        "ui" => Texel::Unsigned,
        _ => return None,
    })
}

/// An image operand.
#[derive(Clone, Copy)]
struct ImageOperand {
    handle: Value,
    dim: ImageDim,
}

impl Body<'_, '_> {
    /// Translates an image instruction. Returns false if it is not one.
    pub(super) fn image_inst(&mut self, inst: &Instruction, op: S) -> Result<bool> {
        match op {
            S::SampledImage => {
                let (ty, id) = (self.p.ty(inst.word(0)?)?, inst.word(1)?);
                let image = self.image(inst.word(2)?)?;
                let sampler = self.sampler(inst.word(3)?)?;
                self.set(id, ty, Values::from_slice(&[image.handle, sampler]))?;
            }
            S::Image => {
                let (ty, id) = (self.p.ty(inst.word(0)?)?, inst.word(1)?);
                let (image, _) = self.sampled_image(inst.word(2)?)?;
                self.set(id, ty, Values::from_slice(&[image.handle]))?;
            }
            S::ImageSampleExplicitLod => {
                let (ty, id) = (self.p.ty(inst.word(0)?)?, inst.word(1)?);
                let (image, sampler) = self.sampled_image(inst.word(2)?)?;
                let texel = self.texel_of(ty, inst.word(4).unwrap_or(0))?;
                let values = self.sample(image, sampler, inst.word(3)?, texel)?;
                self.set_texel(id, ty, &values)?;
            }
            S::ImageRead | S::ImageFetch => {
                let (ty, id) = (self.p.ty(inst.word(0)?)?, inst.word(1)?);
                let image = self.image(inst.word(2)?)?;
                let texel = self.texel_of(ty, inst.word(4).unwrap_or(0))?;
                let values = self.read_texel(image, inst.word(3)?, texel)?;
                self.set_texel(id, ty, &values)?;
            }
            S::ImageWrite => {
                let image = self.image(inst.word(0)?)?;
                let texel = self.texel_of(
                    self.type_of(inst.word(2)?)?,
                    inst.word(3).unwrap_or_default(),
                )?;
                self.write_texel(image, inst.word(1)?, inst.word(2)?, texel)?;
            }
            S::ImageQuerySize | S::ImageQuerySizeLod => {
                let (ty, id) = (self.p.ty(inst.word(0)?)?, inst.word(1)?);
                let image = self.image(inst.word(2)?)?;
                let sizes = self.image_sizes(image, true);
                self.set_sizes(id, ty, &sizes)?;
            }
            S::ImageQueryFormat | S::ImageQueryOrder | S::ImageQueryLevels => {
                let (ty, id) = (self.p.ty(inst.word(0)?)?, inst.word(1)?);
                let image = self.image(inst.word(2)?)?;
                let (property, first) = match op {
                    S::ImageQueryFormat => (ImageProperty::DataType, FIRST_DATA_TYPE),
                    S::ImageQueryOrder => (ImageProperty::Order, FIRST_ORDER),
                    _ => (ImageProperty::MipLevels, 0),
                };
                let mut value = self.image_property(image.handle, property);
                if first != 0 {
                    let first = self.constant(Type::I32, first);
                    value = self.ins(Op::ISub, &[value, first], Type::I32);
                }
                self.set_sizes(id, ty, &[value])?;
            }
            S::ImageSampleImplicitLod
            | S::ImageSampleDrefImplicitLod
            | S::ImageSampleDrefExplicitLod
            | S::ImageSampleProjImplicitLod
            | S::ImageSampleProjExplicitLod
            | S::ImageGather
            | S::ImageDrefGather
            | S::ImageQueryLod
            | S::ImageTexelPointer => return bad("OpenCL has no such access to images"),
            S::ImageQuerySamples => return unsupported("images of several samples a pixel"),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Translates a call of an image function of OpenCL C by name. Returns false if it is not one.
    pub(super) fn image_call(
        &mut self,
        base: &str,
        inst: &Instruction,
        ty: TyId,
        id: u32,
    ) -> Result<bool> {
        let args = inst.rest(3);
        let Some(&first) = args.first() else {
            return Ok(false);
        };
        if !matches!(self.opaque_of(first), Some(Opaque::Image { .. })) {
            return Ok(false);
        }
        if let Some(name) = base.strip_prefix("image_") {
            return self.image_intrinsic(name, args, ty, id);
        }
        if let Some(texel) = base.strip_prefix("read_image").and_then(texel_by_name) {
            let image = self.image(first)?;
            let values = match *args {
                [_, coord] => self.read_texel(image, coord, texel)?,
                [_, sampler, coord, ..] => {
                    let sampler = self.sampler(sampler)?;
                    self.sample(image, sampler, coord, texel)?
                }
                _ => return Ok(false),
            };
            self.set_texel(id, ty, &values)?;
            return Ok(true);
        }
        if let Some(texel) = base.strip_prefix("write_image").and_then(texel_by_name) {
            let &[_, coord, color] = args else {
                return unsupported("a write to a mipmap level");
            };
            let image = self.image(first)?;
            self.write_texel(image, coord, color, texel)?;
            return Ok(true);
        }
        let property = match base {
            "get_image_width" => ImageProperty::Width,
            "get_image_height" => ImageProperty::Height,
            "get_image_depth" => ImageProperty::Depth,
            "get_image_array_size" => ImageProperty::ArraySize,
            "get_image_channel_data_type" => ImageProperty::DataType,
            "get_image_channel_order" => ImageProperty::Order,
            "get_image_num_mip_levels" => ImageProperty::MipLevels,
            "get_image_dim" => {
                let image = self.image(first)?;
                let mut sizes = self.image_sizes(image, false);
                if image.dim == ImageDim::D3 {
                    let zero = self.constant(Type::I32, 0);
                    sizes.push(zero);
                }
                self.set_sizes(id, ty, &sizes)?;
                return Ok(true);
            }
            _ => return Ok(false),
        };
        let image = self.image(first)?;
        let value = self.image_property(image.handle, property);
        self.set_sizes(id, ty, &[value])?;
        Ok(true)
    }

    /// Translates an intrinsic of the built-in library. There an image of any geometry is an
    /// `image2d_t`, coordinates are x, y, z as the operations take them, and a texel is four
    /// scalars.
    fn image_intrinsic(&mut self, name: &str, args: &[u32], ty: TyId, id: u32) -> Result<bool> {
        let &[image, ref rest @ ..] = args else {
            return Ok(false);
        };
        let handle = self.scalar_of(image, Type::Handle)?;
        let texel = match name.rsplit('_').next() {
            Some("f") => Texel::Float,
            Some("i") => Texel::Signed,
            Some("r") => Texel::Raw,
            _ => Texel::Unsigned,
        };
        let mut operands = vec![handle];
        match name {
            "fetch_f" | "fetch_i" | "fetch_u" | "fetch_r" => {
                for &arg in rest {
                    operands.push(self.scalar_of(arg, Type::I32)?);
                }
                let values =
                    self.ins_many(Op::ImageRead(texel), &operands, &[texel.component(); 4]);
                self.set(id, ty, values)?;
            }
            "filter" => {
                for (i, &arg) in rest.iter().enumerate() {
                    let ty = if i == 0 { Type::Handle } else { Type::F32 };
                    operands.push(self.scalar_of(arg, ty)?);
                }
                let values = self.ins_many(Op::ImageFilter, &operands, &[Type::F32; 4]);
                self.set(id, ty, values)?;
            }
            "store_f" | "store_i" | "store_u" | "store_r" => {
                for &arg in rest {
                    operands.extend(self.value(arg)?);
                }
                self.effect(Op::ImageWrite(texel), &operands);
            }
            "info" => {
                let which = rest
                    .first()
                    .and_then(|&arg| self.const_bits(arg))
                    .and_then(|n| ImageProperty::ALL.get(usize::try_from(n).ok()?))
                    .ok_or_else(|| LowerError::invalid("an unknown property of an image"))?;
                let value = self.image_property(handle, *which);
                self.set_sizes(id, ty, &[value])?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn opaque_of(&self, id: u32) -> Option<Opaque> {
        match self.p.types.get(self.type_of(id).ok()?).kind {
            Kind::Opaque(opaque) => Some(opaque),
            _ => None,
        }
    }

    fn image(&mut self, id: u32) -> Result<ImageOperand> {
        let ty = self.type_of(id)?;
        let handle = self.scalar_of(id, Type::Handle)?;
        self.image_of(handle, ty)
    }

    fn image_of(&self, handle: Value, ty: TyId) -> Result<ImageOperand> {
        let Kind::Opaque(Opaque::Image {
            dim,
            arrayed,
            multisampled,
            ..
        }) = self.p.types.get(ty).kind
        else {
            return bad("an operand is not an image");
        };
        if multisampled {
            return unsupported("images of several samples a pixel");
        }
        let dim = geometry(dim, arrayed)?;
        Ok(ImageOperand { handle, dim })
    }

    /// Returns the type of an image, or `None` for other types. In memory an image is a number.
    pub(super) fn image_type(&self, ty: TyId) -> Result<Option<ImageType>> {
        let Kind::Opaque(Opaque::Image {
            dim,
            arrayed,
            depth,
            access,
            ..
        }) = self.p.types.get(ty).kind
        else {
            return Ok(None);
        };
        Ok(Some(ImageType {
            dim: geometry(dim, arrayed)?,
            depth,
            access: qualifier(access),
        }))
    }

    /// Returns true if a type is that of a sampler. In memory a sampler is a number, too.
    pub(super) fn is_sampler(&self, ty: TyId) -> bool {
        matches!(self.p.types.get(ty).kind, Kind::Opaque(Opaque::Sampler))
    }

    fn sampler(&mut self, id: u32) -> Result<Value> {
        match self.opaque_of(id) {
            Some(Opaque::Sampler) => self.scalar_of(id, Type::Handle),
            _ => bad(format!("%{id} is not a sampler")),
        }
    }

    fn sampled_image(&mut self, id: u32) -> Result<(ImageOperand, Value)> {
        let ty = self.type_of(id)?;
        let image_ty = match &self.p.types.get(ty).kind {
            Kind::Struct { members, .. } => members.first().copied(),
            _ => None,
        };
        let (Some(image_ty), &[image, sampler]) = (image_ty, self.value(id)?.as_slice()) else {
            return bad(format!("%{id} is not a sampled image"));
        };
        Ok((self.image_of(image, image_ty)?, sampler))
    }

    /// Returns the type of texel by which values of a type are read or written.
    fn texel_of(&self, ty: TyId, operands: u32) -> Result<Texel> {
        let (scalar, _) = self.vector_of(ty)?;
        let without = ImageOperands::BIAS
            | ImageOperands::GRAD
            | ImageOperands::CONST_OFFSET
            | ImageOperands::OFFSET
            | ImageOperands::CONST_OFFSETS
            | ImageOperands::SAMPLE
            | ImageOperands::MIN_LOD;
        let refused = ImageOperands::from_bits_truncate(operands) & without;
        if !refused.is_empty() {
            return unsupported(format!("image operands {refused:?}"));
        }
        match scalar {
            Type::F16 | Type::F32 => Ok(Texel::Float),
            Type::I32 if operands & ImageOperands::SIGN_EXTEND.bits() != 0 => Ok(Texel::Signed),
            Type::I32 => Ok(Texel::Unsigned),
            _ => bad("a texel of this type"),
        }
    }

    /// Returns three coordinates, and whether they are floats.
    fn coordinates(&mut self, image: ImageOperand, id: u32) -> Result<([Value; 3], bool)> {
        let (values, ty) = self.uniform(id)?;
        let needed = match image.dim {
            ImageDim::D1 | ImageDim::Buffer => 1,
            ImageDim::D1Array | ImageDim::D2 => 2,
            ImageDim::D2Array | ImageDim::D3 => 3,
        };
        if !matches!(ty, Type::I32 | Type::F32) || values.len() < needed {
            return bad(format!("%{id} is not a coordinate of the image"));
        }
        let zero = self.constant(ty, 0);
        let at = |i: usize| values.get(i).filter(|_| i < needed).copied();
        Ok(([0, 1, 2].map(|i| at(i).unwrap_or(zero)), ty.is_float()))
    }

    fn sample(
        &mut self,
        image: ImageOperand,
        sampler: Value,
        coord: u32,
        texel: Texel,
    ) -> Result<Values> {
        let (at, float) = self.coordinates(image, coord)?;
        let word = self.ins(Op::SamplerWord, &[sampler], Type::I32);
        let name = format!(
            "pumice_sample{}_{}_{}",
            if float { "" } else { "_int" },
            suffix(image.dim),
            letter(texel)
        );
        let mut args = vec![image.handle, word, at[0], at[1], at[2]];
        if float && texel == Texel::Float {
            args.push(sampler);
        }
        self.call_name(&name, &args, &[texel.component(); 4])
    }

    fn read_texel(&mut self, image: ImageOperand, coord: u32, texel: Texel) -> Result<Values> {
        let (at, float) = self.coordinates(image, coord)?;
        if float {
            return bad("a read without sampler has integer coordinates");
        }
        let args = [image.handle, at[0], at[1], at[2]];
        Ok(self.ins_many(Op::ImageRead(texel), &args, &[texel.component(); 4]))
    }

    fn write_texel(
        &mut self,
        image: ImageOperand,
        coord: u32,
        color: u32,
        texel: Texel,
    ) -> Result<()> {
        let (at, float) = self.coordinates(image, coord)?;
        if float {
            return bad("a write has integer coordinates");
        }
        let (color, ty) = self.uniform(color)?;
        let component = texel.component();
        let mut args = vec![image.handle, at[0], at[1], at[2]];
        for &value in color.iter().take(4) {
            args.push(if ty == Type::F16 && component == Type::F32 {
                self.ins(Op::FConv(Rounding::Rte), &[value], Type::F32)
            } else if ty == component {
                value
            } else {
                return bad("the texel has the wrong type");
            });
        }
        // A depth image takes one component.
        let zero = self.constant(component, 0);
        args.resize(8, zero);
        let name = format!("pumice_write_{}", letter(texel));
        self.call_name(&name, &args, &[])?;
        Ok(())
    }

    /// Sets the result of a texel read, with as many components of that width as its type has.
    fn set_texel(&mut self, id: u32, ty: TyId, values: &[Value]) -> Result<()> {
        let (scalar, n) = self.vector_of(ty)?;
        let mut out = Values::new();
        for &value in values.iter().take(n) {
            out.push(if scalar == Type::F16 {
                self.ins(Op::FConv(Rounding::Rte), &[value], Type::F16)
            } else {
                value
            });
        }
        self.set(id, ty, out)
    }

    fn set_sizes(&mut self, id: u32, ty: TyId, values: &[Value]) -> Result<()> {
        let (scalar, n) = self.vector_of(ty)?;
        let mut out = Values::new();
        for &value in values.iter().take(n) {
            out.push(self.resize(value, scalar, false));
        }
        self.set(id, ty, out)
    }

    fn image_property(&mut self, handle: Value, property: ImageProperty) -> Value {
        self.ins(Op::ImageQuery(property), &[handle], Type::I32)
    }

    /// Returns the sizes of an image in all dimensions, and the number of layers if `layers`.
    fn image_sizes(&mut self, image: ImageOperand, layers: bool) -> Values {
        use ImageProperty::{ArraySize, Depth, Height, Width};
        let list: &[ImageProperty] = match image.dim {
            ImageDim::D1 | ImageDim::Buffer => &[Width],
            ImageDim::D1Array => &[Width, ArraySize],
            ImageDim::D2 => &[Width, Height],
            ImageDim::D2Array => &[Width, Height, ArraySize],
            ImageDim::D3 => &[Width, Height, Depth],
        };
        list.iter()
            .filter(|&&p| layers || p != ArraySize)
            .map(|&p| self.image_property(image.handle, p))
            .collect()
    }
}
