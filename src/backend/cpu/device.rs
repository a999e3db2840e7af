//! The device.

use super::check;
use super::code::CpuCode;
use super::format;
use super::image::CpuImage;
use super::machine::Machine;
use super::memory::{self, CpuMemory};
use super::pool::Pool;
use super::stream::CpuStream;
use crate::backend::caps::DeviceKind;
use crate::backend::external::MemoryHandle;
use crate::backend::processors::Processor;
use crate::backend::{
    Caps, Code, Device, DeviceError, DeviceImage, ImageDesc, MachineCode, Memory, PixelFormat,
    Placement, Result, SharedKind, Slice, Stream, StreamDesc, Support, SvmCaps,
};
use crate::util::monotonic_ns;
use spirv_lowering::interface::KernelInterface;
use spirv_lowering::target::Target;
use std::ptr::NonNull;
use std::sync::Arc;

/// Bytes of local memory of a work-group: as many as Intel's runtime for processors has, by which programs choose their blocks.
const LOCAL_MEMORY: u64 = 256 << 10;
/// Work-items of a work-group at most.
const MOST_ITEMS: u32 = 4096;

/// Work-items of a pack, and so of a sub-group, that a kernel can ask for.
const SUB_GROUP_SIZES: [u32; 5] = [4, 8, 16, 32, 64];

/// The processor as a device.
pub struct CpuDevice {
    caps: Caps,
    target: Target,
    formats: Vec<Support>,
    pool: Arc<Pool>,
    processors: Vec<Processor>,
}

impl CpuDevice {
    /// Creates the device of this machine.
    pub fn new(machine: &Machine) -> Self {
        let lanes = machine.lanes();
        let target = Target {
            max_local_memory: LOCAL_MEMORY as u32,
            checks_images: crate::util::config::get().check.memory,
            ..Target::processor(lanes)
        };
        let caps = Caps {
            images: CpuImage::limits(),
            name: machine.name.clone(),
            vendor: machine.vendor.clone(),
            vendor_id: machine.vendor_id,
            driver_version: env!("CARGO_PKG_VERSION").to_owned(),
            device_uuid: uuid(&["device", &machine.name]),
            driver_uuid: uuid(&["driver", env!("CARGO_PKG_VERSION"), &machine.features]),
            luid: None,
            node_mask: 0,
            pci: None,
            kind: DeviceKind::Cpu,
            unified_memory: true,
            global_mem_size: machine.memory,
            max_alloc_size: (machine.memory / 4 * 3).max(machine.memory.min(1 << 30)) & !0xfff,
            local_mem_size: LOCAL_MEMORY,
            local_mem_dedicated: false,
            max_work_group_size: MOST_ITEMS,
            max_work_item_sizes: [MOST_ITEMS; 3],
            max_group_count: [u32::MAX, 65535, 65535],
            compute_units: machine.cores as u32,
            max_clock_mhz: machine.clock_mhz,
            subgroup_size: lanes,
            subgroup_sizes: SUB_GROUP_SIZES.to_vec(),
            least_subgroup: SUB_GROUP_SIZES[0],
            subgroup_ops: target.subgroup_ops,
            max_subgroups: MOST_ITEMS,
            independent_subgroups: false,
            fp16: true,
            fp64: true,
            int64_atomics: true,
            int64_atomics_local: true,
            timer_resolution_ns: 1,
            mem_base_align: memory::ALIGNMENT as u32,
            host_import_align: 1,
            svm: SvmCaps {
                coarse: true,
                fine: true,
                atomics: true,
                system: true,
            },
            // What is interpreted changes memory when it is over.
            ordered_writes: !check::on(),
            global_cache_size: machine.cache,
            global_cacheline: 64,
            quirks: Vec::new(),
            rows_are_vectors: false,
            fast_copies: false,
            native_kernels: true,
            terminable: true,
            memory_imports: match cfg!(target_os = "linux") {
                true => vec![MemoryHandle::DmaBuf],
                false => Vec::new(),
            },
            semaphore_imports: Vec::new(),
            semaphore_exports: Vec::new(),
        };
        Self {
            caps,
            target,
            formats: format::all(),
            pool: Pool::new(machine.cores),
            processors: machine.processors.clone(),
        }
    }
}

impl Drop for CpuDevice {
    fn drop(&mut self) {
        self.pool.close();
    }
}

fn uuid(parts: &[&str]) -> [u8; 16] {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(part.as_bytes()).update(&[0]);
    }
    let mut uuid = [0; 16];
    uuid.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    uuid
}

impl Device for CpuDevice {
    fn caps(&self) -> &Caps {
        &self.caps
    }

    fn target(&self) -> &Target {
        &self.target
    }

    fn allocate(&self, size: u64, _placement: Placement) -> Result<Arc<dyn Memory>> {
        Ok(Arc::new(CpuMemory::new(size, 1)?))
    }

    fn allocate_shared(&self, size: u64, align: u64, _kind: SharedKind) -> Result<Arc<dyn Memory>> {
        Ok(Arc::new(CpuMemory::new(size, align)?))
    }

    unsafe fn import_host(&self, pointer: NonNull<u8>, size: u64) -> Result<Arc<dyn Memory>> {
        // SAFETY: as the caller promises.
        Ok(Arc::new(unsafe { CpuMemory::import(pointer, size) }))
    }

    #[cfg(target_os = "linux")]
    fn import_memory(&self, _kind: MemoryHandle, fd: i32, size: u64) -> Result<Arc<dyn Memory>> {
        Ok(Arc::new(CpuMemory::map(fd, size)?))
    }

    fn host_memory(&self, address: usize, size: u64) -> Option<Arc<dyn Memory>> {
        let pointer = NonNull::new(address as *mut u8)?;
        // SAFETY: used by operations alone, and as long as whoever records them vouches for it.
        Some(Arc::new(unsafe { CpuMemory::import(pointer, size) }))
    }

    fn part(&self, whole: &Arc<dyn Memory>, offset: u64, size: u64) -> Result<Arc<dyn Memory>> {
        Ok(Arc::new(CpuMemory::part(whole, offset, size)?))
    }

    fn image_formats(&self) -> &[Support] {
        &self.formats
    }

    fn create_image(&self, desc: &ImageDesc) -> Result<Arc<dyn DeviceImage>> {
        CpuImage::create(desc)
    }

    fn alias_image(
        &self,
        image: &Arc<dyn DeviceImage>,
        format: PixelFormat,
    ) -> Result<Arc<dyn DeviceImage>> {
        CpuImage::alias(image, format)
    }

    fn texel_buffer(&self, slice: &Slice, format: PixelFormat) -> Result<Arc<dyn DeviceImage>> {
        CpuImage::over(slice, format)
    }

    fn processors(&self) -> &[Processor] {
        &self.processors
    }

    fn sub_device(&self, numbers: &[u32]) -> Result<Arc<dyn Device>> {
        let mut caps = self.caps.clone();
        caps.compute_units = numbers.len() as u32;
        let known = |processor: &&Processor| numbers.contains(&processor.number);
        Ok(Arc::new(Self {
            caps,
            target: self.target.clone(),
            formats: self.formats.clone(),
            pool: Pool::of_processors(numbers),
            processors: self.processors.iter().filter(known).cloned().collect(),
        }))
    }

    fn load(&self, code: MachineCode<'_>, interface: &KernelInterface) -> Result<Arc<dyn Code>> {
        let MachineCode::Native(native) = code else {
            return Err(DeviceError::Unsupported("SPIR-V of Vulkan".to_owned()));
        };
        Ok(Arc::new(CpuCode::new(native, interface, MOST_ITEMS)))
    }

    fn create_stream(&self, desc: StreamDesc) -> Result<Box<dyn Stream>> {
        Ok(Box::new(CpuStream::new(&self.pool, desc)))
    }

    fn timestamps(&self) -> Result<(u64, u64)> {
        let now = monotonic_ns();
        Ok((now, now))
    }

    fn pipeline_cache(&self) -> Vec<u8> {
        Vec::new()
    }

    fn load_pipeline_cache(&self, _data: &[u8]) {}
}
