//! Making buffers and sub-buffers: flags, sizes, host pointers, properties.

use super::external::{ExternalHandle, Properties};
use super::reach::Reach;
use super::store::Store;
use super::{address, Mem};
use crate::cl::{self, cl_int, cl_mem_flags, cl_mem_properties};
use crate::error::{ensure, err, ClResult, OrErr};
use crate::handle::Ref;
use crate::object::context::Context;
use crate::object::device::Device;
use std::ffi::c_void;
use std::sync::Arc;

const ACCESS: cl_mem_flags = cl::CL_MEM_READ_WRITE | cl::CL_MEM_WRITE_ONLY | cl::CL_MEM_READ_ONLY;
const HOST_ACCESS: cl_mem_flags =
    cl::CL_MEM_HOST_WRITE_ONLY | cl::CL_MEM_HOST_READ_ONLY | cl::CL_MEM_HOST_NO_ACCESS;
const HOST_PTR: cl_mem_flags =
    cl::CL_MEM_USE_HOST_PTR | cl::CL_MEM_ALLOC_HOST_PTR | cl::CL_MEM_COPY_HOST_PTR;
const KNOWN: cl_mem_flags =
    ACCESS | HOST_ACCESS | HOST_PTR | cl::CL_MEM_KERNEL_READ_AND_WRITE | cl::CL_MEM_IMMUTABLE_EXT;

/// Checks the combination of flags of a memory object. Returns them with the default access added.
pub fn check_flags(flags: cl_mem_flags) -> ClResult<cl_mem_flags> {
    ensure!(
        flags & !KNOWN == 0,
        cl::CL_INVALID_VALUE,
        "unknown memory flags {:#x}",
        flags & !KNOWN
    );
    ensure!(
        (flags & ACCESS).count_ones() <= 1,
        cl::CL_INVALID_VALUE,
        "more than one of READ_WRITE, READ_ONLY, WRITE_ONLY"
    );
    ensure!(
        (flags & HOST_ACCESS).count_ones() <= 1,
        cl::CL_INVALID_VALUE,
        "more than one of HOST_READ_ONLY, HOST_WRITE_ONLY, HOST_NO_ACCESS"
    );
    ensure!(
        flags & cl::CL_MEM_USE_HOST_PTR == 0
            || flags & (cl::CL_MEM_ALLOC_HOST_PTR | cl::CL_MEM_COPY_HOST_PTR) == 0,
        cl::CL_INVALID_VALUE,
        "USE_HOST_PTR goes with neither ALLOC_HOST_PTR nor COPY_HOST_PTR"
    );
    let immutable = flags & cl::CL_MEM_IMMUTABLE_EXT != 0;
    let writes = cl::CL_MEM_READ_WRITE | cl::CL_MEM_WRITE_ONLY | cl::CL_MEM_HOST_WRITE_ONLY;
    ensure!(
        !immutable || flags & writes == 0,
        cl::CL_INVALID_VALUE,
        "IMMUTABLE goes with none of READ_WRITE, WRITE_ONLY, HOST_WRITE_ONLY"
    );
    Ok(if flags & ACCESS == 0 && !immutable {
        flags | cl::CL_MEM_READ_WRITE
    } else {
        flags
    })
}

/// Checks that there is a host pointer if and only if the flags request one, and that memory which
/// can never be written has initial contents.
pub fn check_host_ptr(flags: cl_mem_flags, host_ptr: *mut c_void) -> ClResult {
    let wanted = flags & (cl::CL_MEM_USE_HOST_PTR | cl::CL_MEM_COPY_HOST_PTR) != 0;
    ensure!(
        flags & cl::CL_MEM_IMMUTABLE_EXT == 0 || wanted,
        cl::CL_INVALID_VALUE,
        "IMMUTABLE without USE_HOST_PTR or COPY_HOST_PTR"
    );
    match (wanted, host_ptr.is_null()) {
        (true, true) => err(cl::CL_INVALID_HOST_PTR, "host_ptr is null"),
        (false, false) => err(
            cl::CL_INVALID_HOST_PTR,
            "host_ptr without USE_HOST_PTR or COPY_HOST_PTR",
        ),
        _ => Ok(()),
    }
}

/// Fails with CL_INVALID_BUFFER_SIZE unless a device of the context has buffers of this size.
pub(super) fn check_fits(context: &Context, size: usize) -> ClResult {
    ensure!(size > 0, cl::CL_INVALID_BUFFER_SIZE, "the size is zero");
    let fits = |device: &Ref<Device>| size as u64 <= device.caps().max_alloc_size;
    ensure!(
        context.devices.iter().any(fits),
        cl::CL_INVALID_BUFFER_SIZE,
        "larger than CL_DEVICE_MAX_MEM_ALLOC_SIZE of every device"
    );
    Ok(())
}

impl Mem {
    /// Implements clCreateBuffer, clCreateBufferWithProperties. `properties` with the closing zero;
    /// empty if there are none.
    ///
    /// # Safety
    /// With CL_MEM_COPY_HOST_PTR, `host_ptr` must be readable for `size` bytes now; with CL_MEM_USE_HOST_PTR, readable
    /// and writable as long as the object lives.
    pub unsafe fn buffer(
        context: &Ref<Context>,
        properties: Vec<cl_mem_properties>,
        flags: cl_mem_flags,
        size: usize,
        host_ptr: *mut c_void,
    ) -> ClResult<Ref<Self>> {
        let named = Properties::read(context, &properties)?;
        address::check_properties(&named.others)?;
        let flags = check_flags(flags)?;
        check_fits(context, size)?;
        if let Some(handle) = named.external {
            handle.check(flags, host_ptr)?;
            let store = handle.store(context, size as u64, flags)?;
            return address::publish(Self::make(context, flags, store, |mem| {
                mem.properties = properties;
                mem.external = Some(handle.into_external());
            }));
        }
        check_host_ptr(flags, host_ptr)?;
        if let Some((allocation, offset)) = context.allocations.find(host_ptr as usize) {
            ensure!(
                size <= allocation.size - offset,
                cl::CL_INVALID_BUFFER_SIZE,
                "larger than the allocation that host_ptr points into"
            );
            if flags & cl::CL_MEM_USE_HOST_PTR != 0 {
                let mem = Self::over(&allocation, properties, flags, offset, size);
                return address::publish(mem);
            }
        }
        let used = if flags & cl::CL_MEM_USE_HOST_PTR != 0 {
            host_ptr as usize
        } else {
            0
        };
        let initial = (flags & cl::CL_MEM_COPY_HOST_PTR != 0).then(|| {
            // SAFETY: the caller vouches for `size` readable bytes.
            unsafe { std::slice::from_raw_parts(host_ptr as *const u8, size) }
        });
        let store = Store::new(&context.memories, size as u64, flags, used, initial)?;
        if used != 0 {
            let reach = Reach::Store(Arc::downgrade(&store));
            context.reachable.add(used..used + size, reach);
        }
        let fill = |mem: &mut Self| mem.properties = properties;
        address::publish(Self::make(context, flags, store, fill))
    }

    /// Implements clImportMemoryARM for a DMA buffer: `fd` stays the application's.
    pub fn import_dma_buf(
        context: &Ref<Context>,
        flags: cl_mem_flags,
        fd: cl_int,
        size: usize,
    ) -> ClResult<Ref<Self>> {
        let flags = check_flags(flags)?;
        check_fits(context, size)?;
        let handle = ExternalHandle::dma_buf(context, fd)?;
        let made = (handle.check(flags, std::ptr::null_mut()))
            .and_then(|()| handle.store(context, size as u64, flags));
        let store = made.inspect_err(|_| handle.close())?;
        Ok(Self::make(context, flags, store, |mem| {
            mem.external = Some(handle.into_external());
        }))
    }

    /// Implements clImportMemoryARM for memory of the host, which is used in place.
    ///
    /// # Safety
    /// `size` bytes at `address` must be readable and writable as long as the object lives.
    pub unsafe fn import_host(
        context: &Ref<Context>,
        flags: cl_mem_flags,
        address: usize,
        size: usize,
    ) -> ClResult<Ref<Self>> {
        let flags = check_flags(flags)?;
        ensure!(
            flags & HOST_PTR == 0,
            cl::CL_INVALID_VALUE,
            "imported memory with host pointer flags"
        );
        check_fits(context, size)?;
        let store = match context.memories.are_several() {
            true => None,
            false => Some(Store::new(
                &context.memories,
                size as u64,
                flags,
                address,
                None,
            )?),
        };
        let store = store.filter(|store| store.is_seen_by_host()).or_err(
            cl::CL_INVALID_OPERATION,
            "the device cannot use this memory in place",
        )?;
        let reach = Reach::Store(Arc::downgrade(&store));
        context.reachable.add(address..address + size, reach);
        Ok(Self::make(context, flags, store, |_| {}))
    }

    /// Implements clCreateSubBuffer with CL_BUFFER_CREATE_TYPE_REGION.
    pub fn sub_buffer(
        buffer: &Ref<Self>,
        flags: cl_mem_flags,
        origin: usize,
        size: usize,
    ) -> ClResult<Ref<Self>> {
        ensure!(
            buffer.is_buffer() && buffer.parent.is_none(),
            cl::CL_INVALID_MEM_OBJECT,
            "not a buffer, or a sub-buffer itself"
        );
        let flags = sub_buffer_flags(buffer.flags, flags)?;
        ensure!(size != 0, cl::CL_INVALID_BUFFER_SIZE, "the size is zero");
        ensure!(
            origin
                .checked_add(size)
                .is_some_and(|end| end <= buffer.size),
            cl::CL_INVALID_VALUE,
            "the region is out of bounds"
        );
        let aligned = |device: &Ref<crate::object::device::Device>| {
            origin.is_multiple_of(device.base_align())
        };
        ensure!(
            buffer.context.devices.iter().any(aligned),
            cl::CL_MISALIGNED_SUB_BUFFER_OFFSET,
            "the origin is aligned for no device of the context"
        );
        let store = buffer.store.clone();
        Ok(Self::make(&buffer.context, flags, store, |mem| {
            mem.size = size;
            mem.parent = Some(buffer.clone());
            mem.origin = buffer.origin + origin;
        }))
    }
}

/// Returns the flags of a sub-buffer: its own, checked against the buffer's, and inherited ones.
pub(super) fn sub_buffer_flags(
    parent: cl_mem_flags,
    flags: cl_mem_flags,
) -> ClResult<cl_mem_flags> {
    ensure!(
        flags & HOST_PTR == 0,
        cl::CL_INVALID_VALUE,
        "a sub-buffer takes no host pointer flags"
    );
    const IMMUTABLE: cl_mem_flags = cl::CL_MEM_IMMUTABLE_EXT;
    let access = flags & (ACCESS | IMMUTABLE);
    let host = flags & HOST_ACCESS;
    check_flags(flags)?;
    let read_write = cl::CL_MEM_READ_WRITE;
    let (host_read, host_write) = (cl::CL_MEM_HOST_READ_ONLY, cl::CL_MEM_HOST_WRITE_ONLY);
    let read_only = cl::CL_MEM_READ_ONLY | IMMUTABLE;
    // Flags of a buffer, each with those that want more.
    let wider = [
        (cl::CL_MEM_WRITE_ONLY, read_write | read_only),
        (read_only, read_write | cl::CL_MEM_WRITE_ONLY),
        (host_write, host_read),
        (host_read | IMMUTABLE, host_write),
        (cl::CL_MEM_HOST_NO_ACCESS, host_read | host_write),
    ];
    let widens = wider
        .iter()
        .any(|(has, wants)| parent & has != 0 && flags & wants != 0);
    ensure!(
        !widens,
        cl::CL_INVALID_VALUE,
        "the sub-buffer asks for more access than its buffer has"
    );
    let access = match access {
        0 => parent & (ACCESS | IMMUTABLE),
        access => access | (parent & IMMUTABLE),
    };
    let host = if host == 0 {
        parent & HOST_ACCESS
    } else {
        host
    };
    Ok(access | host | (parent & HOST_PTR) | ((flags | parent) & cl::CL_MEM_KERNEL_READ_AND_WRITE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_checked() {
        assert_eq!(check_flags(0).ok(), Some(cl::CL_MEM_READ_WRITE));
        assert!(check_flags(cl::CL_MEM_READ_ONLY | cl::CL_MEM_WRITE_ONLY).is_err());
        assert!(check_flags(cl::CL_MEM_USE_HOST_PTR | cl::CL_MEM_COPY_HOST_PTR).is_err());
        assert!(check_flags(cl::CL_MEM_ALLOC_HOST_PTR | cl::CL_MEM_COPY_HOST_PTR).is_ok());
        assert!(check_flags(cl::CL_MEM_HOST_NO_ACCESS | cl::CL_MEM_HOST_READ_ONLY).is_err());
        // Immutable is an access of its own: there is no default beside it.
        let immutable = cl::CL_MEM_IMMUTABLE_EXT;
        assert_eq!(check_flags(immutable).ok(), Some(immutable));
        assert!(check_flags(immutable | cl::CL_MEM_READ_ONLY).is_ok());
        assert!(check_flags(immutable | cl::CL_MEM_READ_WRITE).is_err());
        assert!(check_flags(immutable | cl::CL_MEM_HOST_WRITE_ONLY).is_err());
        assert!(check_flags(1 << 40).is_err());
    }

    #[test]
    fn sub_buffers_inherit_and_may_not_widen() {
        let parent = cl::CL_MEM_READ_ONLY | cl::CL_MEM_HOST_WRITE_ONLY | cl::CL_MEM_COPY_HOST_PTR;
        assert_eq!(sub_buffer_flags(parent, 0).ok(), Some(parent));
        assert!(sub_buffer_flags(parent, cl::CL_MEM_READ_WRITE).is_err());
        assert!(sub_buffer_flags(parent, cl::CL_MEM_HOST_READ_ONLY).is_err());
        assert!(sub_buffer_flags(parent, cl::CL_MEM_USE_HOST_PTR).is_err());
        assert_eq!(
            sub_buffer_flags(parent, cl::CL_MEM_HOST_NO_ACCESS).ok(),
            Some(cl::CL_MEM_READ_ONLY | cl::CL_MEM_HOST_NO_ACCESS | cl::CL_MEM_COPY_HOST_PTR)
        );
    }

    #[test]
    fn parts_of_what_is_immutable_are() {
        let immutable = cl::CL_MEM_IMMUTABLE_EXT;
        let parent = immutable | cl::CL_MEM_COPY_HOST_PTR;
        assert_eq!(sub_buffer_flags(parent, 0).ok(), Some(parent));
        assert_eq!(
            sub_buffer_flags(parent, cl::CL_MEM_READ_ONLY).ok(),
            Some(parent | cl::CL_MEM_READ_ONLY)
        );
        assert!(sub_buffer_flags(parent, cl::CL_MEM_READ_WRITE).is_err());
        assert!(sub_buffer_flags(parent, cl::CL_MEM_HOST_WRITE_ONLY).is_err());
        assert_eq!(
            sub_buffer_flags(cl::CL_MEM_READ_WRITE, immutable).ok(),
            Some(immutable)
        );
        assert!(sub_buffer_flags(cl::CL_MEM_WRITE_ONLY, immutable).is_err());
    }
}
