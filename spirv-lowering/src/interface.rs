//! The contract between generated code and dispatch: what a lowered kernel needs from the runtime.
//!
//! # Argument block
//!
//! Every kernel reads one block of bytes, the *argument block*: first the implicit arguments it
//! uses, then the explicit ones, each at the offset recorded here. When the block fits
//! [`KernelInterface::push_size`] bytes of push constants it is pushed whole; otherwise
//! [`KernelInterface::args_in_buffer`] is set, the push constants hold only the implicit arguments
//! (among them [`Implicit::ArgBuffer`], the device address of a buffer), and the explicit arguments
//! lie in that buffer at their offsets (which then count from the start of the buffer).
//!
//! # Specialisation constants
//!
//! 0, 1, 2: work-group size x, y, z (32-bit unsigned). 3, where [`KernelInterface::guarded`]:
//! work-items beyond [`Implicit::GlobalEnd`] end at once (0: there are none). Local-memory arguments:
//! one 32-bit constant each, their size in bytes rounded up to [`LOCAL_ARG_ALIGN`], with the id
//! recorded in [`ArgKind::Local`].
//!
//! # Images and samplers
//!
//! Descriptors are in set 0, each at a binding of its own, all images in layout GENERAL. An image
//! argument has a binding for each way in which the kernel accesses it ([`ImageArg`]), and a block
//! of [`ImageInfo`] among the arguments. A sampler argument is a word of properties ([`sampler`])
//! among the arguments; where the kernel lets the device filter, [`KernelInterface::samplers`] also
//! asks for sampler descriptors, which are always of normalised coordinates.

use borsh::{BorshDeserialize, BorshSerialize};

/// The specialisation constant ids of the work-group size.
pub const SPEC_LOCAL_SIZE: [u32; 3] = [0, 1, 2];
/// The specialisation constant id of the test for work-items beyond the ND-range: 0 (off) or 1.
pub const SPEC_GUARD: u32 = 3;
/// The first specialisation constant id for the sizes of local-memory arguments.
pub const SPEC_FIRST_LOCAL_ARG: u32 = 16;

/// The alignment of local-memory arguments in bytes: that of the largest type of OpenCL C,
/// double16.
pub const LOCAL_ARG_ALIGN: u32 = 128;

/// A value that the runtime supplies with every dispatch, if the kernel uses it.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, BorshSerialize, BorshDeserialize,
)]
pub enum Implicit {
    /// u64: device address of the buffer with the explicit arguments.
    ArgBuffer,
    /// u64: device address of the program-scope variables.
    ProgramGlobals,
    /// u64: device address of the printf buffer (layout in `passes::lower_printf`).
    PrintfBuffer,
    /// u64: device address of the state for launches that enqueue kernels (layout in
    /// [`crate::device_queue`]).
    EnqueueState,
    /// u32 x 3: get_global_offset.
    GlobalOffset,
    /// u32 x 3: get_global_size.
    GlobalSize,
    /// u32 x 3: get_num_groups, of the whole ND-range and not of this dispatch.
    NumGroups,
    /// u32 x 3: get_enqueued_local_size.
    EnqueuedLocalSize,
    /// u32 x 3: number of the first work-group of this dispatch (an ND-range may need several dispatches).
    GroupOffset,
    /// u32 x 3: global id of the first work-item of this dispatch, global offset included.
    GlobalBase,
    /// u32 x 3: one past the last global id of the ND-range.
    GlobalEnd,
    /// u32: get_work_dim.
    WorkDim,
    /// u32 x 3: the upper halves of get_global_offset, like those below for launches beyond 32 bits
    /// (`passes::wide_range`).
    GlobalOffsetHigh,
    /// u32 x 3: the upper halves of get_global_size.
    GlobalSizeHigh,
    /// u32 x 3: the upper halves of the number of the first work-group of this dispatch.
    GroupOffsetHigh,
}

impl Implicit {
    /// All implicit arguments, in the order in which they are laid out.
    pub const ALL: [Self; 15] = [
        Self::ArgBuffer,
        Self::ProgramGlobals,
        Self::PrintfBuffer,
        Self::EnqueueState,
        Self::GlobalOffset,
        Self::GlobalSize,
        Self::NumGroups,
        Self::EnqueuedLocalSize,
        Self::GroupOffset,
        Self::GlobalBase,
        Self::GlobalEnd,
        Self::WorkDim,
        Self::GlobalOffsetHigh,
        Self::GlobalSizeHigh,
        Self::GroupOffsetHigh,
    ];

    /// Returns the size in bytes.
    pub fn size(self) -> u32 {
        match self {
            Self::ArgBuffer | Self::ProgramGlobals | Self::PrintfBuffer | Self::EnqueueState => 8,
            Self::WorkDim => 4,
            _ => 12,
        }
    }

    /// Returns true for a device address.
    pub fn is_address(self) -> bool {
        self.size() == 8
    }
}

/// The kind of an explicit kernel argument, with its place in the argument block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, BorshSerialize, BorshDeserialize)]
pub enum ArgKind {
    /// A value of `size` bytes (scalar, vector, structure) copied to `offset` of the argument block.
    Value {
        /// Offset in the argument block.
        offset: u32,
        /// Bytes that clSetKernelArg must supply.
        size: u32,
    },
    /// A `global` or `constant` pointer: its 8-byte device address goes to `offset`.
    Buffer {
        /// Offset in the argument block.
        offset: u32,
        /// Set for `constant`, clear for `global`.
        constant: bool,
    },
    /// A `local` pointer: the runtime supplies a size through a specialisation constant.
    Local {
        /// Specialisation constant id.
        spec_id: u32,
    },
    /// An image.
    Image(ImageArg),
    /// A sampler.
    Sampler {
        /// The place of its property word (see [`sampler`]) in the argument block, or `None` if the
        /// kernel never reads it.
        offset: Option<u32>,
    },
    /// A pipe: the 8-byte device address of its bytes (see [`crate::pipe`]) goes to `offset`.
    Pipe {
        /// Offset in the argument block.
        offset: u32,
    },
    /// A device queue: the 8-byte device address of its memory (see [`crate::device_queue`]) goes to `offset`.
    Queue {
        /// Offset in the argument block.
        offset: u32,
    },
    /// An image that a block captured, which is no argument of its own. The 8 bytes from byte `at`
    /// of the captures on hold its number, as an argument of the kernel that the application
    /// launched, counted from 1. Captured images follow all other arguments.
    Captured {
        /// The offset in the captures.
        at: u32,
        /// Its descriptors, and the place of its properties.
        image: ImageArg,
    },
}

impl ArgKind {
    /// Returns the image, if it is one.
    pub fn image(&self) -> Option<&ImageArg> {
        match self {
            Self::Image(image) | Self::Captured { image, .. } => Some(image),
            _ => None,
        }
    }
}

/// The geometry of an image type of OpenCL C.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, BorshSerialize, BorshDeserialize)]
pub enum ImageDim {
    /// image1d_t
    D1,
    /// image1d_array_t
    D1Array,
    /// image1d_buffer_t: its descriptors are texel buffers.
    Buffer,
    /// image2d_t, image2d_depth_t
    D2,
    /// image2d_array_t, image2d_array_depth_t
    D2Array,
    /// image3d_t
    D3,
}

impl ImageDim {
    /// Every geometry.
    pub const ALL: [Self; 6] = [
        Self::D1,
        Self::D1Array,
        Self::Buffer,
        Self::D2,
        Self::D2Array,
        Self::D3,
    ];

    /// Returns the number of coordinates, that of the layer included.
    pub fn coordinates(self) -> usize {
        match self {
            Self::D1 | Self::Buffer => 1,
            Self::D1Array | Self::D2 => 2,
            Self::D2Array | Self::D3 => 3,
        }
    }
}

/// The bindings of an image, one for each way in which the kernel accesses it. Those of an image of
/// [`ImageDim::Buffer`] are texel buffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, BorshSerialize, BorshDeserialize)]
pub struct ImageBindings {
    /// A SAMPLED_IMAGE descriptor, for reads.
    pub sampled: Option<u32>,
    /// A STORAGE_IMAGE descriptor, for writes, and for reads of a read_write image.
    pub storage: Option<u32>,
    /// A SAMPLED_IMAGE descriptor of the same texels as one unsigned integer each, for reads of
    /// their bits.
    pub raw_sampled: Option<u32>,
    /// A STORAGE_IMAGE descriptor of them, for writes of their bits, and for reads of a read_write
    /// image.
    pub raw_storage: Option<u32>,
}

impl ImageBindings {
    /// Returns all of them, in the order of the fields.
    pub fn list_mut(&mut self) -> [&mut Option<u32>; 4] {
        [
            &mut self.sampled,
            &mut self.storage,
            &mut self.raw_sampled,
            &mut self.raw_storage,
        ]
    }

    /// Returns the bindings that there are.
    pub fn all(mut self) -> impl Iterator<Item = u32> {
        self.list_mut()
            .map(|binding| *binding)
            .into_iter()
            .flatten()
    }
}

/// An image argument: its descriptors, and the place of its properties.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, BorshSerialize, BorshDeserialize)]
pub struct ImageArg {
    /// Geometry.
    pub dim: ImageDim,
    /// An `image*_depth_t`.
    pub depth: bool,
    /// The bindings of its descriptors.
    pub bindings: ImageBindings,
    /// Offset of an [`ImageInfo`] in the argument block, if the kernel needs it.
    pub info: Option<u32>,
}

impl ImageArg {
    /// Creates an image argument that the kernel never accesses.
    pub fn unused(dim: ImageDim, depth: bool) -> Self {
        Self {
            dim,
            depth,
            bindings: ImageBindings::default(),
            info: None,
        }
    }
}

/// The properties of an image that a kernel can query but its descriptor does not have: eight
/// 32-bit words in the argument block, 4-byte aligned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub struct ImageInfo {
    /// get_image_width, in pixels.
    pub width: u32,
    /// get_image_height, in pixels; 1 where the image has none.
    pub height: u32,
    /// get_image_depth, in pixels; 1 where the image has none.
    pub depth: u32,
    /// get_image_array_size; 1 where the image has none.
    pub array_size: u32,
    /// get_image_channel_data_type: the cl_channel_type.
    pub channel_data_type: u32,
    /// get_image_channel_order: the cl_channel_order.
    pub channel_order: u32,
    /// get_image_num_mip_levels; 1 where the image has none.
    pub mip_levels: u32,
    /// Bit 0: the alpha of the border colour, which is 0 for orders with an alpha channel and 1
    /// otherwise. From bit 8 on: the bytes of a texel.
    pub flags: u32,
}

/// The property word of a sampler: the values that OpenCL C's `CLK_*` constants have in clang.
#[allow(missing_docs)]
pub mod sampler {
    pub const NORMALIZED_COORDS: u32 = 1;
    pub const ADDRESS_MASK: u32 = 0xe;
    pub const ADDRESS_NONE: u32 = 0;
    pub const ADDRESS_CLAMP_TO_EDGE: u32 = 2;
    pub const ADDRESS_CLAMP: u32 = 4;
    pub const ADDRESS_REPEAT: u32 = 6;
    pub const ADDRESS_MIRRORED_REPEAT: u32 = 8;
    pub const FILTER_NEAREST: u32 = 0x10;
    pub const FILTER_LINEAR: u32 = 0x20;
    /// All bits that a property may have.
    pub const MASK: u32 = NORMALIZED_COORDS | ADDRESS_MASK | FILTER_NEAREST | FILTER_LINEAR;
}

/// A SAMPLER descriptor: normalised coordinates, addressing and filter as the property word says, transparent black border.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, BorshSerialize, BorshDeserialize)]
pub struct SamplerBinding {
    /// Binding in set 0.
    pub binding: u32,
    /// The source of its properties.
    pub source: SamplerSource,
}

/// The source of a sampler's properties.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, BorshSerialize, BorshDeserialize)]
pub enum SamplerSource {
    /// The sampler argument of this index.
    Arg(u32),
    /// A sampler in the program, with this property word.
    Literal(u32),
    /// A sampler that a block captured, whose property word is at this offset of the captures.
    Captured(u32),
}

/// CL_KERNEL_ARG_ADDRESS_QUALIFIER.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, BorshSerialize, BorshDeserialize)]
pub enum AddressQualifier {
    /// CL_KERNEL_ARG_ADDRESS_GLOBAL
    Global,
    /// CL_KERNEL_ARG_ADDRESS_LOCAL
    Local,
    /// CL_KERNEL_ARG_ADDRESS_CONSTANT
    Constant,
    /// CL_KERNEL_ARG_ADDRESS_PRIVATE
    Private,
}

/// CL_KERNEL_ARG_ACCESS_QUALIFIER.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, BorshSerialize, BorshDeserialize)]
pub enum AccessQualifier {
    /// CL_KERNEL_ARG_ACCESS_NONE
    None,
    /// CL_KERNEL_ARG_ACCESS_READ_ONLY
    ReadOnly,
    /// CL_KERNEL_ARG_ACCESS_WRITE_ONLY
    WriteOnly,
    /// CL_KERNEL_ARG_ACCESS_READ_WRITE
    ReadWrite,
}

/// One explicit kernel argument: its place, and the answers of clGetKernelArgInfo.
#[derive(Debug, Clone, PartialEq, Eq, Hash, BorshSerialize, BorshDeserialize)]
pub struct Arg {
    /// The place, or `None` if the kernel has not been lowered yet or never reads the argument.
    pub kind: ArgKind,
    /// Name, empty where the module has none.
    pub name: String,
    /// Type name as OpenCL C spells it, empty where the module has none.
    pub type_name: String,
    /// Address space.
    pub address: AddressQualifier,
    /// Access qualifier of images and pipes.
    pub access: AccessQualifier,
    /// CL_KERNEL_ARG_TYPE_CONST
    pub is_const: bool,
    /// CL_KERNEL_ARG_TYPE_RESTRICT
    pub is_restrict: bool,
    /// CL_KERNEL_ARG_TYPE_VOLATILE
    pub is_volatile: bool,
    /// Bytes that the memory of a pointer may have at most (SPIR-V decoration MaxByteOffset).
    pub max_size: Option<u32>,
}

/// The caller of a kernel (SPIR-V execution modes Initializer and Finalizer).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, BorshSerialize, BorshDeserialize)]
pub enum KernelRole {
    /// Launched by the application.
    #[default]
    Ordinary,
    /// Launched by the runtime, before any other kernel of the program runs on a device. It has no
    /// parameters.
    Initializer,
    /// Launched by the runtime, after all other kernels of the program on a device. It has no
    /// parameters.
    Finalizer,
    /// Launched by the runtime for a kernel that enqueued it: a block. Its first parameter is the
    /// address of its captures, the others are sizes of local memory.
    Block,
}

/// Attributes of a kernel function.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, BorshSerialize, BorshDeserialize)]
pub struct KernelAttributes {
    /// The caller.
    pub role: KernelRole,
    /// reqd_work_group_size
    pub required_work_group_size: Option<[u32; 3]>,
    /// work_group_size_hint
    pub work_group_size_hint: Option<[u32; 3]>,
    /// vec_type_hint, as OpenCL C spells the type.
    pub vec_type_hint: Option<String>,
    /// intel_reqd_sub_group_size
    pub required_sub_group_size: Option<u32>,
    /// The number of sub-groups that a work-group must have (SPIR-V's SubgroupsPerWorkgroup).
    pub required_sub_groups: Option<u32>,
    /// Set if local memory is zero when a work-group begins. Kernels for Vulkan see to it
    /// themselves, for those for processors it is the caller's to do.
    pub zero_local: bool,
}

impl KernelAttributes {
    /// Returns the number of work-items of a sub-group: the kernel's, or else `usual`, the
    /// device's.
    pub fn sub_group_size(&self, usual: u32) -> u32 {
        self.required_sub_group_size.unwrap_or(usual).max(1)
    }
}

/// The properties of a lowered kernel that the runtime needs.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, BorshSerialize, BorshDeserialize)]
pub struct KernelInterface {
    /// Kernel (entry point) name.
    pub name: String,
    /// Explicit arguments in order.
    pub args: Vec<Arg>,
    /// Implicit arguments that the kernel reads, with their push-constant offsets.
    pub implicit: Vec<(Implicit, u32)>,
    /// Bytes of push constants.
    pub push_size: u32,
    /// Set if explicit arguments lie in a buffer of `arg_buffer_size` bytes (see the module
    /// description).
    pub args_in_buffer: bool,
    /// The size of that buffer in bytes, or 0 without one.
    pub arg_buffer_size: u32,
    /// Static local memory, in bytes (local arguments not included).
    pub local_size: u32,
    /// Private memory of a work-item, in bytes, that was not promoted to registers.
    pub private_size: u32,
    /// Attributes for clGetKernelInfo and clGetKernelWorkGroupInfo.
    pub attributes: KernelAttributes,
    /// Set if the kernel calls printf.
    pub uses_printf: bool,
    /// The most instructions of this representation that a work-item executes, or `u32::MAX` for a
    /// kernel with loops or calls.
    pub instruction_bound: u32,
    /// Set if the kernel uses sub-group operations or built-ins.
    pub uses_subgroups: bool,
    /// The work-items of a pack of a kernel for processors, which is a sub-group where its
    /// work-items look at one another. 0 for Vulkan.
    pub lanes: u32,
    /// Set if the kernel does not depend on how its work-items are grouped, and has the test of
    /// [`SPEC_GUARD`].
    pub guarded: bool,
    /// Set if a work-item may wait for what others do
    /// ([`may_wait`](crate::analysis::waits::may_wait)). Then a work-group size that the
    /// application gives must not be changed, as work-items of one sub-group may run in step.
    pub waits: bool,
    /// Set if the kernel may write to memory through pointers that are not its arguments (pointers
    /// loaded from memory): hazards cannot be derived from its arguments.
    pub uses_indirect_pointers: bool,
    /// Sampler descriptors. Those of images stand with the arguments.
    pub samplers: Vec<SamplerBinding>,
    /// For each explicit argument, what a launch may do with the memory behind it.
    pub arg_access: Vec<Access>,
}

/// The accesses that a launch may make to the memory behind an argument of its kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, BorshSerialize, BorshDeserialize)]
pub struct Access(u8);

impl Access {
    /// The bit for reads by the kernel.
    pub const READ: u8 = 1;
    /// The bit for writes by the kernel.
    pub const WRITE: u8 = 2;
    /// The bit for what blocks that the kernel enqueues may do with an image.
    pub const PASS_ON: u8 = 4;

    /// Reads and writes by the kernel.
    pub const ANY: Self = Self(Self::READ | Self::WRITE);

    /// Decodes an access from its bits.
    pub fn from_bits(bits: u8) -> Self {
        Self(bits)
    }

    /// Returns the bits, as for [`Access::from_bits`].
    pub fn bits(self) -> u8 {
        self.0
    }

    /// Returns true if the kernel may write it.
    pub fn writes(self) -> bool {
        self.0 & Self::WRITE != 0
    }

    /// Returns true if the kernel, or a kernel that it enqueues, may write it.
    pub fn leads_to_writes(self) -> bool {
        self.0 & (Self::WRITE | Self::PASS_ON) != 0
    }
}

impl KernelInterface {
    /// Returns the accesses that a launch may make to the memory that an argument refers to.
    pub fn access(&self, arg: usize) -> Access {
        self.arg_access.get(arg).copied().unwrap_or(Access::ANY)
    }

    /// Returns true if the kernel enqueues others, or uses events and queues of the device.
    pub fn enqueues(&self) -> bool {
        self.implicit
            .iter()
            .any(|(which, _)| *which == Implicit::EnqueueState)
    }
}

/// A pointer inside the initial data of the program-scope variables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, BorshSerialize, BorshDeserialize)]
pub struct Relocation {
    /// The offset of the 8-byte pointer from the start of the data.
    pub offset: u64,
    /// The offset that it points to, from the start of the data; the device address of the data is
    /// added.
    pub target: u64,
}

/// The program-scope variables and constants of a program: one buffer a program and device.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, BorshSerialize, BorshDeserialize)]
pub struct ProgramGlobals {
    /// Initial contents. Empty when there are none.
    pub data: Vec<u8>,
    /// Pointers within the data that need the buffer's address added.
    pub relocations: Vec<Relocation>,
    /// CL_PROGRAM_BUILD_GLOBAL_VARIABLE_TOTAL_SIZE: bytes of `global` (writable) variables.
    pub writable_size: u64,
}
