//! What a lowered kernel asks of the runtime: the contract between generated code and dispatch.
//!
//! # Argument block
//! Every kernel reads one block of bytes, the *argument block*: first the implicit arguments it uses, then the
//! explicit ones, each at the offset recorded here. When the block fits [`KernelInterface::push_size`] bytes of push
//! constants it is pushed whole; otherwise [`KernelInterface::args_in_buffer`] is set, the push constants hold only
//! the implicit arguments (among them [`Implicit::ArgBuffer`], the device address of a buffer), and the explicit
//! arguments lie in that buffer at their offsets (which then count from the start of the buffer).
//!
//! # Specialisation constants
//! 0, 1, 2: work-group size x, y, z (32-bit unsigned). Local-memory arguments: one 32-bit constant each, their size
//! in bytes rounded up to [`LOCAL_ARG_ALIGN`], with the id recorded in [`ArgKind::Local`].

/// Specialisation constant ids of the work-group size.
pub const SPEC_LOCAL_SIZE: [u32; 3] = [0, 1, 2];
/// First specialisation constant id for the sizes of local-memory arguments.
pub const SPEC_FIRST_LOCAL_ARG: u32 = 16;

/// Alignment of local-memory arguments in bytes: that of the largest type of OpenCL C, double16.
pub const LOCAL_ARG_ALIGN: u32 = 128;

/// A value that the runtime supplies with every dispatch, if the kernel asks for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Implicit {
    /// u64: device address of the buffer with the explicit arguments.
    ArgBuffer,
    /// u64: device address of the program-scope variables.
    ProgramGlobals,
    /// u64: device address of the printf buffer (layout in `passes::lower_printf`).
    PrintfBuffer,
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
    /// u32: get_work_dim.
    WorkDim,
}

impl Implicit {
    /// All of them, in the order in which they are laid out.
    pub const ALL: [Self; 10] = [
        Self::ArgBuffer,
        Self::ProgramGlobals,
        Self::PrintfBuffer,
        Self::GlobalOffset,
        Self::GlobalSize,
        Self::NumGroups,
        Self::EnqueuedLocalSize,
        Self::GroupOffset,
        Self::GlobalBase,
        Self::WorkDim,
    ];

    /// Size in bytes.
    pub fn size(self) -> u32 {
        match self {
            Self::ArgBuffer | Self::ProgramGlobals | Self::PrintfBuffer => 8,
            Self::WorkDim => 4,
            _ => 12,
        }
    }
}

/// What kind of thing an explicit kernel argument is and where it goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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
        /// `constant` rather than `global`.
        constant: bool,
    },
    /// A `local` pointer: the runtime supplies a size through a specialisation constant.
    Local {
        /// Specialisation constant id.
        spec_id: u32,
    },
    /// An image (not lowered yet).
    Image,
    /// A sampler (not lowered yet).
    Sampler,
}

/// CL_KERNEL_ARG_ADDRESS_QUALIFIER.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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

/// One explicit kernel argument: placement and what clGetKernelArgInfo tells of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Arg {
    /// Placement; None where the kernel has not been lowered yet or never reads the argument's block.
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
}

/// Attributes of a kernel function.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct KernelAttributes {
    /// reqd_work_group_size
    pub required_work_group_size: Option<[u32; 3]>,
    /// work_group_size_hint
    pub work_group_size_hint: Option<[u32; 3]>,
    /// vec_type_hint, as OpenCL C spells the type.
    pub vec_type_hint: Option<String>,
    /// intel_reqd_sub_group_size
    pub required_sub_group_size: Option<u32>,
}

/// Everything the runtime must know of one lowered kernel.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct KernelInterface {
    /// Kernel (entry point) name.
    pub name: String,
    /// Explicit arguments in order.
    pub args: Vec<Arg>,
    /// Implicit arguments that the kernel reads, with their push-constant offsets.
    pub implicit: Vec<(Implicit, u32)>,
    /// Bytes of push constants.
    pub push_size: u32,
    /// Explicit arguments lie in a buffer (see the module description) of `arg_buffer_size` bytes.
    pub args_in_buffer: bool,
    /// Size of that buffer, 0 where there is none.
    pub arg_buffer_size: u32,
    /// Static local memory, in bytes (local arguments not included).
    pub local_size: u32,
    /// Private memory of a work-item, in bytes, that was not promoted to registers.
    pub private_size: u32,
    /// Attributes for clGetKernelInfo and clGetKernelWorkGroupInfo.
    pub attributes: KernelAttributes,
    /// The kernel calls printf.
    pub uses_printf: bool,
    /// The kernel uses work-group barriers.
    pub uses_barrier: bool,
    /// The kernel uses sub-group operations or built-ins.
    pub uses_subgroups: bool,
    /// The kernel may write to memory through pointers it did not get as arguments (pointers loaded from memory):
    /// hazards cannot be derived from its arguments.
    pub uses_indirect_pointers: bool,
    /// For each explicit argument: the memory behind it may be read (bit 0) or written (bit 1) by the kernel.
    pub arg_access: Vec<u8>,
}

/// A pointer inside the initial data of the program-scope variables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Relocation {
    /// Where the 8-byte pointer is stored, from the start of the data.
    pub offset: u64,
    /// What it points to, from the start of the data: the device address of the data is added.
    pub target: u64,
}

/// The program-scope variables and constants of a program: one buffer a program and device.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct ProgramGlobals {
    /// Initial contents. Empty when there are none.
    pub data: Vec<u8>,
    /// Pointers within the data that need the buffer's address added.
    pub relocations: Vec<Relocation>,
    /// CL_PROGRAM_BUILD_GLOBAL_VARIABLE_TOTAL_SIZE: bytes of `global` (writable) variables.
    pub writable_size: u64,
}
