//! The module under construction: sections, ids, and types and constants without duplicates.

use crate::interface::ImageDim;
use crate::ir::op::{ImageSlot, Texel};
use crate::ir::types::Type;
use crate::target::{FloatCaps, Target};
use rustc_hash::FxHashMap;
use spirv::{BuiltIn, Capability, Decoration, Dim, ExecutionMode, ImageFormat, Op, StorageClass};
use std::collections::BTreeSet;

/// A SPIR-V id.
pub type Id = u32;

/// Appends one instruction to a word list.
pub fn push(out: &mut Vec<u32>, op: Op, operands: &[u32]) {
    out.push(((operands.len() as u32 + 1) << 16) | op as u32);
    out.extend_from_slice(operands);
}

/// Returns a string as SPIR-V encodes it.
fn text(s: &str) -> Vec<u32> {
    let mut bytes = s.as_bytes().to_vec();
    bytes.push(0);
    while bytes.len() % 4 != 0 {
        bytes.push(0);
    }
    bytes
        .chunks_exact(4)
        .map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]]))
        .collect()
}

/// All sections but the function.
pub struct Writer {
    next: Id,
    caps: BTreeSet<u32>,
    extensions: BTreeSet<&'static str>,
    glsl: Option<Id>,
    decorations: Vec<u32>,
    globals: Vec<u32>,
    interface: Vec<Id>,
    unique: FxHashMap<(u32, Vec<u32>), Id>,
    builtins: FxHashMap<u32, Id>,
    floats: [bool; 3],
    converges: bool,
    /// The target has 64-bit integers.
    int64: bool,
    /// The target computes with integers of 8 and 16 bits.
    small_ints: bool,
}

impl Writer {
    /// Begins a module for the target.
    pub fn new(target: &Target) -> Self {
        let mut writer = Self {
            next: 1,
            caps: BTreeSet::new(),
            extensions: BTreeSet::new(),
            glsl: None,
            decorations: Vec::new(),
            globals: Vec::new(),
            interface: Vec::new(),
            unique: FxHashMap::default(),
            builtins: FxHashMap::default(),
            floats: [false; 3],
            converges: false,
            int64: target.int64,
            small_ints: target.small_ints,
        };
        for cap in [
            Capability::Shader,
            Capability::PhysicalStorageBufferAddresses,
            Capability::VulkanMemoryModel,
        ] {
            writer.cap(cap);
        }
        // Whether or not the kernel has some.
        if target.int64 {
            writer.cap(Capability::Int64);
        }
        writer
    }

    /// Returns a new id.
    pub fn id(&mut self) -> Id {
        self.next += 1;
        self.next - 1
    }

    /// Declares a capability.
    pub fn cap(&mut self, cap: Capability) {
        self.caps.insert(cap as u32);
    }

    /// Declares that there is arithmetic on a small integer, which may also be for memory alone.
    fn small_cap(&mut self, cap: Capability) {
        if self.small_ints {
            self.cap(cap);
        }
    }

    /// Returns true if the capability is declared.
    pub fn has(&self, cap: Capability) -> bool {
        self.caps.contains(&(cap as u32))
    }

    /// Declares an extension.
    pub fn extension(&mut self, name: &'static str) {
        self.extensions.insert(name);
    }

    /// Returns the id of the imported set GLSL.std.450.
    pub fn glsl(&mut self) -> Id {
        match self.glsl {
            Some(id) => id,
            None => {
                let id = self.id();
                *self.glsl.insert(id)
            }
        }
    }

    /// Makes the modes of 16-bit floats hold for conversions that have no value of that type.
    pub fn converts_halves(&mut self) {
        self.floats[0] = true;
    }

    /// Decorates an id.
    pub fn decorate(&mut self, id: Id, decoration: Decoration, operands: &[u32]) {
        let mut words = vec![id, decoration as u32];
        words.extend_from_slice(operands);
        push(&mut self.decorations, Op::Decorate, &words);
    }

    fn member_offset(&mut self, id: Id, member: u32, offset: u32) {
        push(
            &mut self.decorations,
            Op::MemberDecorate,
            &[id, member, Decoration::Offset as u32, offset],
        );
    }

    /// Returns the id of a type (result id first), which is declared once.
    fn unique_type(&mut self, op: Op, operands: &[u32]) -> Id {
        if let Some(&id) = self.unique.get(&(op as u32, operands.to_vec())) {
            return id;
        }
        let id = self.id();
        let mut words = vec![id];
        words.extend_from_slice(operands);
        push(&mut self.globals, op, &words);
        self.unique.insert((op as u32, operands.to_vec()), id);
        id
    }

    /// Returns the id of a constant (type, result id, operands), which is declared once.
    fn unique_const(&mut self, op: Op, ty: Id, operands: &[u32]) -> Id {
        let mut key = vec![ty];
        key.extend_from_slice(operands);
        if let Some(&id) = self.unique.get(&(op as u32, key.clone())) {
            return id;
        }
        let id = self.id();
        let mut words = vec![ty, id];
        words.extend_from_slice(operands);
        push(&mut self.globals, op, &words);
        self.unique.insert((op as u32, key), id);
        id
    }

    pub fn void(&mut self) -> Id {
        self.unique_type(Op::TypeVoid, &[])
    }

    pub fn function_type(&mut self, result: Id) -> Id {
        self.unique_type(Op::TypeFunction, &[result])
    }

    /// Returns the type of a value; pointers and handles are 64-bit integers, pointers on targets
    /// without those two words.
    pub fn ty(&mut self, ty: Type) -> Id {
        match ty {
            Type::Bool => self.unique_type(Op::TypeBool, &[]),
            Type::I8 => {
                self.small_cap(Capability::Int8);
                self.unique_type(Op::TypeInt, &[8, 0])
            }
            Type::I16 => {
                self.small_cap(Capability::Int16);
                self.unique_type(Op::TypeInt, &[16, 0])
            }
            Type::I32 => self.unique_type(Op::TypeInt, &[32, 0]),
            Type::Ptr(_) if !self.int64 => self.vec(Type::I32, 2),
            Type::I64 | Type::Ptr(_) | Type::Handle => {
                self.cap(Capability::Int64);
                self.unique_type(Op::TypeInt, &[64, 0])
            }
            Type::F16 => {
                self.cap(Capability::Float16);
                self.floats[0] = true;
                self.unique_type(Op::TypeFloat, &[16])
            }
            Type::F32 => {
                self.floats[1] = true;
                self.unique_type(Op::TypeFloat, &[32])
            }
            Type::F64 => {
                self.cap(Capability::Float64);
                self.floats[2] = true;
                self.unique_type(Op::TypeFloat, &[64])
            }
        }
    }

    /// Returns the type of a vector, or the scalar type of one lane.
    pub fn vec(&mut self, ty: Type, lanes: u32) -> Id {
        let scalar = self.ty(ty);
        if lanes == 1 {
            scalar
        } else {
            self.unique_type(Op::TypeVector, &[scalar, lanes])
        }
    }

    /// Returns the type of a structure of two members of a type.
    pub fn pair_struct(&mut self, ty: Id) -> Id {
        self.unique_type(Op::TypeStruct, &[ty, ty])
    }

    /// Returns the type of a pointer.
    pub fn pointer(&mut self, class: StorageClass, ty: Id) -> Id {
        self.unique_type(Op::TypePointer, &[class as u32, ty])
    }

    /// Returns a constant of a KIR type from its bits.
    pub fn constant(&mut self, ty: Type, bits: u64) -> Id {
        let id = self.ty(ty);
        let bits = bits & ty.mask();
        match ty {
            Type::Bool if bits == 0 => self.unique_const(Op::ConstantFalse, id, &[]),
            Type::Bool => self.unique_const(Op::ConstantTrue, id, &[]),
            Type::Ptr(_) if !self.int64 => {
                let words = [bits, bits >> 32].map(|word| self.u32(word as u32));
                self.unique_const(Op::ConstantComposite, id, &words)
            }
            _ if ty.bits() == 64 => {
                self.unique_const(Op::Constant, id, &[bits as u32, (bits >> 32) as u32])
            }
            _ => self.unique_const(Op::Constant, id, &[bits as u32]),
        }
    }

    /// Returns a constant of 32 bits.
    pub fn u32(&mut self, value: u32) -> Id {
        self.constant(Type::I32, value.into())
    }

    /// Returns an undefined value of a type.
    pub fn undef(&mut self, ty: Type) -> Id {
        let id = self.ty(ty);
        self.unique_const(Op::Undef, id, &[])
    }

    /// Returns a 32-bit specialisation constant.
    pub fn spec(&mut self, spec_id: u32, default: u32) -> Id {
        let ty = self.ty(Type::I32);
        let key = (Op::SpecConstant as u32, vec![spec_id]);
        if let Some(&id) = self.unique.get(&key) {
            return id;
        }
        let id = self.id();
        push(&mut self.globals, Op::SpecConstant, &[ty, id, default]);
        self.decorate(id, Decoration::SpecId, &[spec_id]);
        self.unique.insert(key, id);
        id
    }

    /// Returns a 32-bit operation on constants.
    pub fn spec_op(&mut self, op: Op, a: Id, b: Id) -> Id {
        let ty = self.ty(Type::I32);
        self.unique_const(Op::SpecConstantOp, ty, &[op as u32, a, b])
    }

    /// Returns the work-group size as specialisation constants: its three components. `linear`:
    /// Vulkan's work-group is a row of as many work-items.
    pub fn workgroup_size(&mut self, default: [u32; 3], linear: bool) -> [Id; 3] {
        let parts = [0, 1, 2].map(|i| self.spec(crate::interface::SPEC_LOCAL_SIZE[i], default[i]));
        let size = if linear {
            let plane = self.spec_op(Op::IMul, parts[0], parts[1]);
            let one = self.u32(1);
            [self.spec_op(Op::IMul, plane, parts[2]), one, one]
        } else {
            parts
        };
        let ty = self.vec(Type::I32, 3);
        if !self
            .unique
            .contains_key(&(Op::SpecConstantComposite as u32, vec![]))
        {
            let id = self.id();
            push(
                &mut self.globals,
                Op::SpecConstantComposite,
                &[ty, id, size[0], size[1], size[2]],
            );
            self.decorate(id, Decoration::BuiltIn, &[BuiltIn::WorkgroupSize as u32]);
            self.unique
                .insert((Op::SpecConstantComposite as u32, vec![]), id);
        }
        parts
    }

    /// Adds a variable of module scope. Returns its id.
    pub fn global_var(&mut self, class: StorageClass, pointer: Id) -> Id {
        let id = self.id();
        push(
            &mut self.globals,
            Op::Variable,
            &[pointer, id, class as u32],
        );
        self.interface.push(id);
        id
    }

    /// Returns the type of a texel.
    pub fn texel(&mut self, texel: Texel) -> Id {
        let component = self.component(texel);
        self.unique_type(Op::TypeVector, &[component, 4])
    }

    fn component(&mut self, texel: Texel) -> Id {
        match texel {
            Texel::Signed => self.unique_type(Op::TypeInt, &[32, 1]),
            other => self.ty(other.component()),
        }
    }

    /// Returns the variable of an image and its type (that of the image, not of the pointer).
    pub fn image(&mut self, slot: ImageSlot, storage: bool) -> (Id, Id) {
        let (dim, arrayed) = dimensions(slot.dim);
        let cap = match (dim, storage) {
            (Dim::DimBuffer, false) => Some(Capability::SampledBuffer),
            (Dim::DimBuffer, true) => Some(Capability::ImageBuffer),
            (Dim::Dim1D, false) => Some(Capability::Sampled1D),
            (Dim::Dim1D, true) => Some(Capability::Image1D),
            _ => None,
        };
        if let Some(cap) = cap {
            self.cap(cap);
        }
        let component = self.component(slot.texel);
        let (sampled, format) = (1 + u32::from(storage), ImageFormat::Unknown as u32);
        let operands = [
            component,
            dim as u32,
            0,
            u32::from(arrayed),
            0,
            sampled,
            format,
        ];
        let ty = self.unique_type(Op::TypeImage, &operands);
        let key = (Op::Variable as u32, vec![slot.binding, ty]);
        if let Some(&var) = self.unique.get(&key) {
            return (var, ty);
        }
        let pointer = self.pointer(StorageClass::UniformConstant, ty);
        let var = self.global_var(StorageClass::UniformConstant, pointer);
        self.decorate(var, Decoration::DescriptorSet, &[0]);
        self.decorate(var, Decoration::Binding, &[slot.binding]);
        if storage {
            // The same image may be there as floats and integers, and as several arguments.
            self.decorate(var, Decoration::Aliased, &[]);
        }
        self.unique.insert(key, var);
        (var, ty)
    }

    /// Returns the type of an image with a sampler.
    pub fn sampled_image(&mut self, image: Id) -> Id {
        self.unique_type(Op::TypeSampledImage, &[image])
    }

    /// Returns the variable of a sampler and its type.
    pub fn sampler(&mut self, binding: u32) -> (Id, Id) {
        let ty = self.unique_type(Op::TypeSampler, &[]);
        let key = (Op::Variable as u32, vec![binding, ty]);
        if let Some(&var) = self.unique.get(&key) {
            return (var, ty);
        }
        let pointer = self.pointer(StorageClass::UniformConstant, ty);
        let var = self.global_var(StorageClass::UniformConstant, pointer);
        self.decorate(var, Decoration::DescriptorSet, &[0]);
        self.decorate(var, Decoration::Binding, &[binding]);
        self.unique.insert(key, var);
        (var, ty)
    }

    /// Returns an input variable with a built-in decoration.
    pub fn builtin(&mut self, which: BuiltIn, lanes: u32) -> Id {
        if let Some(&id) = self.builtins.get(&(which as u32)) {
            return id;
        }
        let ty = self.vec(Type::I32, lanes);
        let pointer = self.pointer(StorageClass::Input, ty);
        let id = self.global_var(StorageClass::Input, pointer);
        self.decorate(id, Decoration::BuiltIn, &[which as u32]);
        self.builtins.insert(which as u32, id);
        id
    }

    /// Returns the push-constant block, with members at byte offsets.
    pub fn push_constants(&mut self, members: &[(u32, Type)]) -> Id {
        let types: Vec<Id> = members.iter().map(|&(_, ty)| self.ty(ty)).collect();
        let block = self.id();
        let mut words = vec![block];
        words.extend(types);
        push(&mut self.globals, Op::TypeStruct, &words);
        self.decorate(block, Decoration::Block, &[]);
        for (i, &(offset, _)) in members.iter().enumerate() {
            self.member_offset(block, i as u32, offset);
        }
        let pointer = self.pointer(StorageClass::PushConstant, block);
        self.global_var(StorageClass::PushConstant, pointer)
    }

    /// Returns a `Block` with one member at offset 0.
    pub fn block_struct(&mut self, member: Id) -> Id {
        let id = self.id();
        push(&mut self.globals, Op::TypeStruct, &[id, member]);
        self.decorate(id, Decoration::Block, &[]);
        self.member_offset(id, 0, 0);
        id
    }

    /// Returns an array type of its own (not shared), with a stride if it has an explicit layout.
    pub fn array(&mut self, elem: Id, len: Id, stride: Option<u32>) -> Id {
        if let Some(stride) = stride {
            let id = self.id();
            push(&mut self.globals, Op::TypeArray, &[id, elem, len]);
            self.decorate(id, Decoration::ArrayStride, &[stride]);
            id
        } else {
            self.unique_type(Op::TypeArray, &[elem, len])
        }
    }

    /// Notes that work-items which have parted must meet again where the source has them meet.
    pub fn converge(&mut self) {
        self.converges = true;
    }

    /// Assembles the module.
    pub fn finish(
        mut self,
        main: Id,
        function: &[u32],
        target: &Target,
        required_size: Option<[u32; 3]>,
    ) -> Vec<u32> {
        let mut modes = Vec::new();
        let size = required_size.unwrap_or([1, 1, 1]);
        push(
            &mut modes,
            Op::ExecutionMode,
            &[
                main,
                ExecutionMode::LocalSize as u32,
                size[0],
                size[1],
                size[2],
            ],
        );
        if self.converges && target.maximal_reconvergence {
            self.extension("SPV_KHR_maximal_reconvergence");
            let mode = ExecutionMode::MaximallyReconvergesKHR as u32;
            push(&mut modes, Op::ExecutionMode, &[main, mode]);
        }
        let caps: [(FloatCaps, u32); 3] = [(target.fp16, 16), (target.fp32, 32), (target.fp64, 64)];
        for ((float, bits), used) in caps.into_iter().zip(self.floats) {
            if !used {
                continue;
            }
            for (on, cap, mode) in [
                (
                    float.denorm_preserve,
                    Capability::DenormPreserve,
                    ExecutionMode::DenormPreserve,
                ),
                (
                    float.denorm_flush && !float.denorm_preserve,
                    Capability::DenormFlushToZero,
                    ExecutionMode::DenormFlushToZero,
                ),
                (
                    float.signed_zero_inf_nan,
                    Capability::SignedZeroInfNanPreserve,
                    ExecutionMode::SignedZeroInfNanPreserve,
                ),
                (
                    float.rte,
                    Capability::RoundingModeRTE,
                    ExecutionMode::RoundingModeRTE,
                ),
            ] {
                if on {
                    self.cap(cap);
                    push(&mut modes, Op::ExecutionMode, &[main, mode as u32, bits]);
                }
            }
        }

        let mut out = vec![spirv::MAGIC_NUMBER, 0x0001_0500, 0, self.next, 0];
        for &cap in &self.caps {
            push(&mut out, Op::Capability, &[cap]);
        }
        for name in &self.extensions {
            push(&mut out, Op::Extension, &text(name));
        }
        if let Some(id) = self.glsl {
            let mut words = vec![id];
            words.extend(text("GLSL.std.450"));
            push(&mut out, Op::ExtInstImport, &words);
        }
        push(
            &mut out,
            Op::MemoryModel,
            &[
                spirv::AddressingModel::PhysicalStorageBuffer64 as u32,
                spirv::MemoryModel::Vulkan as u32,
            ],
        );
        let mut entry = vec![spirv::ExecutionModel::GLCompute as u32, main];
        entry.extend(text("main"));
        entry.extend_from_slice(&self.interface);
        push(&mut out, Op::EntryPoint, &entry);
        out.extend_from_slice(&modes);
        out.extend_from_slice(&self.decorations);
        out.extend_from_slice(&self.globals);
        out.extend_from_slice(function);
        out
    }
}

/// Returns the dimensionality, and whether there are layers.
pub(super) fn dimensions(dim: ImageDim) -> (Dim, bool) {
    match dim {
        ImageDim::D1 => (Dim::Dim1D, false),
        ImageDim::D1Array => (Dim::Dim1D, true),
        ImageDim::Buffer => (Dim::DimBuffer, false),
        ImageDim::D2 => (Dim::Dim2D, false),
        ImageDim::D2Array => (Dim::Dim2D, true),
        ImageDim::D3 => (Dim::Dim3D, false),
    }
}
