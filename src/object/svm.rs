//! Allocations whose address the application gets: shared virtual memory (OpenCL API specification, section 5.6).
//!
//! Each is a memory object that the application does not see, so that commands on pointers are commands on memory
//! objects: hazards, maps and lifetimes are the same. A context knows its allocations by address. Allocations hold their
//! context: it goes when they are freed.

use super::addresses::{Allocations, HostShared};
use super::callback::{Callback, FreeFn};
use super::context::Context;
use super::device::Device;
use super::mem::host_work::HostWork;
use super::mem::reach::HostBacking;
use super::mem::{same_bytes, Mem};
use super::memories::MemoryIndex;
use super::svm_types::SvmType;
use crate::backend::{Memory, SharedKind};
use crate::cl::{
    self, cl_mem_alloc_flags_intel, cl_svm_alloc_access_flags_khr, cl_svm_alloc_properties_khr,
    cl_svm_mem_flags, cl_uint,
};
use crate::error::{ensure, err, ClResult, OrErr};
use crate::handle::Ref;
use std::any::Any;
use std::ops::Range;
use std::sync::Arc;

/// Alignment in bytes when none is asked for, and the largest that devices need to have: the size of long16.
pub const DEFAULT_ALIGN: u64 = 128;

/// The largest alignment in bytes that is given.
pub const MAX_ALIGN: u64 = 1 << 21;

/// The properties that an allocation was made with.
#[derive(Clone)]
pub struct Origin {
    /// Its type.
    pub kind: SvmType,
    /// The device that it is associated with.
    pub device: Option<Ref<Device>>,
    /// CL_MEM_ALLOC_FLAGS_INTEL
    pub flags: cl_mem_alloc_flags_intel,
    /// CL_SVM_INFO_ACCESS_FLAGS_KHR
    pub access: cl_svm_alloc_access_flags_khr,
    /// CL_SVM_INFO_PROPERTIES_KHR
    pub properties: Vec<cl_svm_alloc_properties_khr>,
}

impl Origin {
    /// Returns that of an allocation without properties.
    pub(super) fn new(kind: SvmType) -> Self {
        Self {
            kind,
            device: None,
            flags: 0,
            access: 0,
            properties: Vec::new(),
        }
    }
}

/// An allocation.
pub struct Allocation {
    /// The memory object that represents the allocation.
    pub mem: Ref<Mem>,
    /// The address of the first byte.
    pub address: usize,
    /// The size in bytes.
    pub size: usize,
    /// The properties that it was made with.
    pub origin: Origin,
}

impl HostShared for Allocation {
    fn host_backing(&self, memory: MemoryIndex, range: &Range<usize>) -> HostBacking {
        let mem = &self.mem;
        let inside = self.address <= range.start && range.end <= self.address + self.size;
        if !mem.is_seen_by_host() && !mem.context.memories.are_several() {
            // The host's bytes at these addresses are its own: maps copy them.
            return HostBacking::Host;
        }
        if !inside || !mem.is_seen_by_host() {
            return HostBacking::Shared;
        }
        let (at, size) = (range.start - self.address, range.end - range.start);
        match mem.slice(memory, at as u64, size as u64) {
            Ok(slice) => HostBacking::Device(slice),
            Err(_) => HostBacking::Shared,
        }
    }
}

/// Returns an entry as an allocation, which every entry is.
fn as_allocation(entry: Arc<dyn HostShared>) -> Option<Arc<Allocation>> {
    let any: Arc<dyn Any + Send + Sync> = entry;
    any.downcast().ok()
}

impl Allocations {
    /// Returns the allocation that contains an address, and the offset of the address in it.
    pub fn find(&self, address: usize) -> Option<(Arc<Allocation>, usize)> {
        let (found, offset) = self.at(address)?;
        Some((as_allocation(found)?, offset))
    }

    /// Removes the allocation that begins at an address. It is freed when the commands that use it
    /// have finished.
    pub fn remove(&self, address: usize) -> Option<Arc<Allocation>> {
        as_allocation(self.take(address)?)
    }
}

/// Returns true if the device has shared virtual memory of any kind.
pub fn supported(device: &Device) -> bool {
    device.svm_capabilities() != 0
}

/// Fails with CL_INVALID_OPERATION where no device of the context supports shared virtual memory.
pub fn check_supported(context: &Context) -> ClResult {
    ensure!(
        context.devices.iter().any(|device| supported(device)),
        cl::CL_INVALID_OPERATION,
        "no device of the context supports shared virtual memory"
    );
    Ok(())
}

/// Checks an alignment. Returns that of the largest type for 0.
pub fn alignment(align: u64) -> ClResult<u64> {
    match align {
        0 => Ok(DEFAULT_ALIGN),
        align if align.is_power_of_two() && align <= MAX_ALIGN => Ok(align),
        _ => err(
            cl::CL_INVALID_VALUE,
            "the alignment is no power of two, or too large",
        ),
    }
}

/// Implements clSVMAlloc.
pub fn alloc(
    context: &Ref<Context>,
    flags: cl_svm_mem_flags,
    size: usize,
    align: cl_uint,
) -> ClResult<Arc<Allocation>> {
    const ACCESS: cl_svm_mem_flags =
        cl::CL_MEM_READ_WRITE | cl::CL_MEM_WRITE_ONLY | cl::CL_MEM_READ_ONLY;
    const SHARING: cl_svm_mem_flags = cl::CL_MEM_SVM_FINE_GRAIN_BUFFER | cl::CL_MEM_SVM_ATOMICS;
    check_supported(context)?;
    ensure!(
        flags & !(ACCESS | SHARING) == 0 && (flags & ACCESS).count_ones() <= 1,
        cl::CL_INVALID_VALUE,
        "the flags are not valid"
    );
    let fine = flags & cl::CL_MEM_SVM_FINE_GRAIN_BUFFER != 0;
    let atomics = flags & cl::CL_MEM_SVM_ATOMICS != 0;
    ensure!(
        !atomics || fine,
        cl::CL_INVALID_VALUE,
        "atomics without fine-grained sharing"
    );
    let lacks = |device: &Ref<Device>| {
        let bits = device.svm_capabilities();
        (fine && bits & cl::CL_DEVICE_SVM_FINE_GRAIN_BUFFER == 0)
            || (atomics && bits & cl::CL_DEVICE_SVM_ATOMICS == 0)
    };
    ensure!(
        !context.devices.iter().any(lacks),
        cl::CL_INVALID_VALUE,
        "a device of the context does not support the sharing asked for"
    );
    let sharing = context.memories_of(|device| supported(device));
    let request = Request {
        access: flags & ACCESS,
        size,
        align: alignment(u64::from(align))?,
        kind: match fine {
            true => SharedKind::Fine,
            false => SharedKind::Coarse,
        },
        origin: Origin::new(match fine {
            true => SvmType::Fine,
            false => SvmType::Coarse,
        }),
    };
    make(context, request, &sharing)
}

/// The properties of an allocation that is to be made.
pub(super) struct Request {
    /// CL_MEM_READ_WRITE and the like; 0 stands for that.
    pub access: cl_svm_mem_flags,
    pub size: usize,
    /// A power of two.
    pub align: u64,
    pub kind: SharedKind,
    pub origin: Origin,
}

/// Creates an allocation that these memories of the context have at one address.
pub(super) fn make(
    context: &Ref<Context>,
    request: Request,
    sharing: &[MemoryIndex],
) -> ClResult<Arc<Allocation>> {
    let size = request.size;
    let devices = sharing.iter().map(|at| context.memories.device(*at));
    let devices: Vec<&Ref<Device>> = devices.collect::<ClResult<_>>()?;
    let too_large = |device: &&Ref<Device>| size as u64 > device.caps().max_alloc_size;
    ensure!(
        size != 0 && !devices.iter().any(too_large),
        cl::CL_INVALID_BUFFER_SIZE,
        "the size is 0 or more than CL_DEVICE_MAX_MEM_ALLOC_SIZE"
    );
    let made = memories(context, &devices, &request)?;
    let address = made.first().map(|memory| memory.address() as usize);
    let address = address.or_err(cl::CL_INVALID_DEVICE, "no device to allocate for")?;
    let at = |memory: &Arc<dyn Memory>| memory.mapped().map(|pointer| pointer.as_ptr() as usize);
    let separate = made.len() > 1 && made.iter().any(|memory| at(memory) != Some(address));
    let mut made = made.into_iter();
    let all = context.memories.all();
    let places = all.map(|at| sharing.contains(&at).then(|| made.next()).flatten());
    let places = places.collect();
    let flags = match request.access {
        0 => cl::CL_MEM_READ_WRITE,
        access => access,
    };
    let allocation = Arc::new(Allocation {
        mem: Mem::shared(context, flags, address, size, places, separate),
        address,
        size,
        origin: request.origin,
    });
    let allocations = &context.allocations;
    allocations.insert(address, size, allocation.clone());
    Ok(allocation)
}

/// Allocates memory on each of the devices, all at one address. Devices that read the host's memory
/// by its address share the same bytes.
fn memories(
    context: &Context,
    devices: &[&Ref<Device>],
    request: &Request,
) -> ClResult<Vec<Arc<dyn Memory>>> {
    let (size, align, kind) = (request.size as u64, request.align, request.kind);
    let in_place = |device: &Ref<Device>| device.caps().svm.system;
    let all_in_place = devices.iter().all(|device| in_place(device));
    // Those that use the host's memory by its address take what the others give, or the first of them.
    let allocates = |(number, device): &(usize, &&Ref<Device>)| match all_in_place {
        true => *number == 0,
        false => !in_place(device),
    };
    let numbered = || devices.iter().enumerate();
    let own = numbered().filter(allocates);
    let own: Vec<_> = own.map(|(_, device)| device.backend.clone()).collect();
    let made = match &own[..] {
        [] => return Ok(Vec::new()),
        // What several devices are to see must be the host's.
        [device] if all_in_place && devices.len() > 1 => {
            vec![device.allocate_shared(size, align, SharedKind::Fine)?]
        }
        [device] => vec![device.allocate_shared(size, align, kind)?],
        _ => context.mirror.allocate(&own, size, align, kind)?,
    };
    let owner = made.first().cloned();
    let owner = owner.or_err(cl::CL_OUT_OF_RESOURCES, "memory of a device")?;
    let mut made = made.into_iter();
    let memory = |device: (usize, &&Ref<Device>)| match allocates(&device) {
        false => same_bytes(&owner, device.1),
        true => (made.next()).or_err(cl::CL_OUT_OF_RESOURCES, "memory of a device"),
    };
    numbered().map(memory).collect()
}

/// Frees the allocations of a context that the application has released, if no object is left that
/// could use them: they keep the context alive, and the application can no longer free them.
pub fn abandon(context: &Ref<Context>) {
    context.allocations.clear(|count| {
        let held_by_us = count + 1;
        context.api_refs() == 0 && Arc::strong_count(context) <= held_by_us
    });
}

/// Implements clSVMFree. Other pointers than those of allocations are left alone.
pub fn free(context: &Context, address: usize) {
    // Dropped without the lock.
    drop(context.allocations.remove(address));
}

/// The work of clEnqueueSVMFree when its turn comes.
pub struct Free {
    /// Where the allocations are.
    pub context: Ref<Context>,
    /// The pointers to free.
    pub pointers: Vec<usize>,
    /// The application does it, and wants to know the queue.
    pub callback: Option<(Callback<FreeFn>, usize)>,
}

impl HostWork for Free {
    fn run(&self) {
        match &self.callback {
            Some((callback, queue)) => callback.call(*queue, &self.pointers),
            None => {
                for pointer in &self.pointers {
                    free(&self.context, *pointer);
                }
            }
        }
    }
}
