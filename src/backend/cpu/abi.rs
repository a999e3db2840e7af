//! The interface between the code of a kernel and the runtime; `spirv_lowering::native` implements
//! the other side.

use spirv_lowering::native::layout;
use std::mem::offset_of;

/// The arguments of a launch.
#[repr(C)]
pub struct Launch {
    /// Work-groups in each dimension.
    pub groups: [u32; 3],
    /// Work-items of a work-group in each dimension.
    pub local_size: [u32; 3],
    /// The argument block.
    pub push: *const u8,
    /// Descriptors of images, by binding.
    pub bindings: *const Descriptor,
    /// Where each argument in local memory begins: offset and size, 32 bits each.
    pub local_args: *const [u32; 2],
    /// The local ids of the work-items in the order of their linear ids: all in x, all in y, all in z.
    pub local_ids: *const u32,
    /// So many stand in each of the three.
    pub local_ids_stride: u32,
    /// Packs of a work-group.
    pub packs: u32,
    /// Bytes of a pack's frame.
    pub frame_bytes: u64,
}

const _: () = {
    assert!(offset_of!(Launch, groups) == layout::GROUPS as usize);
    assert!(offset_of!(Launch, local_size) == layout::LOCAL_SIZE as usize);
    assert!(offset_of!(Launch, push) == layout::PUSH as usize);
    assert!(offset_of!(Launch, bindings) == layout::BINDINGS as usize);
    assert!(offset_of!(Launch, local_args) == layout::LOCAL_ARGS as usize);
    assert!(offset_of!(Launch, local_ids) == layout::LOCAL_IDS as usize);
    assert!(offset_of!(Launch, local_ids_stride) == layout::LOCAL_IDS_STRIDE as usize);
    assert!(offset_of!(Launch, packs) == layout::PACKS as usize);
    assert!(offset_of!(Launch, frame_bytes) == layout::FRAME_BYTES as usize);
    assert!(std::mem::size_of::<Descriptor>() == layout::DESCRIPTOR as usize);
    assert!(offset_of!(Descriptor, texels) == layout::TEXELS as usize);
    assert!(offset_of!(Descriptor, size) == layout::IMAGE_SIZE as usize);
    assert!(offset_of!(Descriptor, pixel) == layout::TEXEL_BYTES as usize);
    assert!(offset_of!(Descriptor, row) == layout::ROW_BYTES as usize);
    assert!(offset_of!(Descriptor, slice) == layout::SLICE_BYTES as usize);
    assert!(offset_of!(Descriptor, layout.components) == layout::COMPONENTS as usize);
    assert!(offset_of!(Descriptor, opaque_border) == layout::OPAQUE_BORDER as usize);
    assert!(offset_of!(Descriptor, storage) == layout::TEXEL_STORAGE as usize);
};

pub use super::image::Descriptor;

/// Functions that kernels call. On x86-64 they have the calling convention of System V on every system, as kernels have
/// themselves: one kind of code, one loader. The rest of the program may have another (on Windows it has).
macro_rules! for_kernels {
    ($(#[$meta:meta])* $vis:vis unsafe fn $name:ident($($args:tt)*) $(-> $result:ty)? $body:block) => {
        $(#[$meta])*
        #[cfg(target_arch = "x86_64")]
        $vis unsafe extern "sysv64" fn $name($($args)*) $(-> $result)? $body
        $(#[$meta])*
        #[cfg(not(target_arch = "x86_64"))]
        $vis unsafe extern "C" fn $name($($args)*) $(-> $result)? $body
    };
    ($(#[$meta:meta])* $vis:vis fn $name:ident($($args:tt)*) $(-> $result:ty)? $body:block) => {
        $(#[$meta])*
        #[cfg(target_arch = "x86_64")]
        $vis extern "sysv64" fn $name($($args)*) $(-> $result)? $body
        $(#[$meta])*
        #[cfg(not(target_arch = "x86_64"))]
        $vis extern "C" fn $name($($args)*) $(-> $result)? $body
    };
}
pub(super) use for_kernels;

/// The code of a kernel: runs the work-groups `first .. first + count` of a launch, x fastest. `local` is the local memory
/// of a work-group, `frame` the frames of its packs; both are of the calling thread alone.
#[cfg(target_arch = "x86_64")]
pub type KernelEntry = unsafe extern "sysv64" fn(
    launch: *const Launch,
    local: *mut u8,
    frame: *mut u8,
    first: u64,
    count: u64,
);
/// The same, in the C calling convention.
#[cfg(not(target_arch = "x86_64"))]
pub type KernelEntry = unsafe extern "C" fn(
    launch: *const Launch,
    local: *mut u8,
    frame: *mut u8,
    first: u64,
    count: u64,
);

/// `pumice_info` of a loaded object.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Info {
    /// Version of the interface.
    pub version: u32,
    /// Work-items of a pack.
    pub lanes: u32,
    /// Bytes of a pack's frame.
    pub frame_bytes: u32,
    /// Bytes of local variables.
    pub local_bytes: u32,
    /// Not 0: one frame serves all packs, one after the other.
    pub shared_frame: u32,
    _later: [u32; 3],
}
