//! The device that the layers above hold. It creates its VkDevice, and what belongs to it, at first
//! use, since that costs 130 to 360 ms on some drivers and many programs only query the list of
//! devices.

use super::adapter::Adapter;
use super::batch::Tools;
use super::clock::Clock;
use super::exit::{self, Busy};
use super::format;
use super::heap::Heaps;
use super::image::{self, Images, VulkanImage};
use super::import;
use super::loaded::LoadedCode;
use super::logical::LogicalDevice;
use super::memory;
use super::pipeline::{Pipelines, VulkanCode};
use super::probe;
use super::queue::Queues;
use super::replay;
use super::semaphore::VulkanSemaphore;
use super::shared;
use super::stream::{sample_clock, VulkanStream};
use super::svm::SharedHeap;
use super::utility::Utilities;
use crate::backend::external::{MemoryHandle, Semaphore, SemaphoreHandle};
use crate::backend::{
    Caps, Code, Device, DeviceError, DeviceImage, ImageDesc, MachineCode, Memory, PixelFormat,
    Placement, Replay, ReplayKind, Result, SharedKind, Slice, Stream, StreamDesc, Support,
};
use crate::util::lock::{rank, Mutex};
use ash::vk;
use spirv_lowering::interface::KernelInterface;
use spirv_lowering::target::Target;
use std::ptr::NonNull;
use std::sync::{Arc, OnceLock, Weak};

/// Streams that are kept. Transfers of more threads at a time make some of their own.
const MOST_SPARE: usize = 4;

/// A device as the layers above see it.
pub struct VulkanDevice {
    adapter: Arc<Adapter>,
    opened: OnceLock<Opened>,
    opening: Mutex<(), { rank::DEVICE_OPENING }>,
    /// A pipeline cache given before the device was made.
    unopened_cache: Mutex<Vec<u8>, { rank::CACHE_OF_UNOPENED }>,
    /// The target with measured arithmetic, where the driver is not known.
    measured: OnceLock<Target>,
    formats: OnceLock<Vec<Support>>,
    loaded: LoadedCode,
    /// Streams without work.
    spare: parking_lot::Mutex<Vec<Box<dyn Stream>>>,
}

/// The VkDevice and what its users share.
struct Opened {
    heaps: Arc<Heaps>,
    shared_heap: SharedHeap,
    pipelines: Arc<Pipelines>,
    images: Arc<Images>,
    tools: Arc<Tools>,
    clock: Arc<Clock>,
}

impl Opened {
    fn new(adapter: &Arc<Adapter>, unopened_cache: &[u8]) -> Result<Self> {
        let device = LogicalDevice::new(adapter)?;
        let queues = Arc::new(Queues::new(&device));
        let heaps = Arc::new(Heaps::new(&queues)?);
        let pipelines = Arc::new(Pipelines::new(&queues, unopened_cache)?);
        let images = Arc::new(Images::new(&heaps));
        let utilities = Utilities::new(&pipelines);
        crate::log!(
            Debug,
            "{}: device made, {} queues",
            adapter.caps.name,
            queues.len()
        );
        Ok(Self {
            tools: Arc::new(Tools::new(&heaps, &images, utilities)),
            shared_heap: SharedHeap::new(&heaps),
            clock: Arc::new(Clock::new(&device)),
            heaps,
            pipelines,
            images,
        })
    }

    /// Makes the end of the process wait for the device's work, if that runs in this process.
    fn register(&self) {
        let queues = &self.heaps.queues;
        let local = queues.device.adapter.properties.device_type == vk::PhysicalDeviceType::CPU;
        let work: Weak<dyn Busy> = Arc::downgrade(queues) as Weak<dyn Busy>;
        exit::register(local.then_some(work));
    }
}

impl VulkanDevice {
    /// Creates a device that makes its VkDevice later.
    pub fn new(adapter: Arc<Adapter>) -> Self {
        Self {
            adapter,
            opened: OnceLock::new(),
            opening: Mutex::new(()),
            unopened_cache: Mutex::new(Vec::new()),
            loaded: LoadedCode::default(),
            spare: parking_lot::Mutex::default(),
            measured: OnceLock::new(),
            formats: OnceLock::new(),
        }
    }

    /// Returns the VkDevice and what goes with it, made now if it was not before.
    fn opened(&self) -> Result<&Opened> {
        if let Some(opened) = self.opened.get() {
            return Ok(opened);
        }
        let _one_at_a_time = self.opening.lock();
        if let Some(opened) = self.opened.get() {
            return Ok(opened);
        }
        let cache = std::mem::take(&mut *self.unopened_cache.lock());
        let opened = Opened::new(&self.adapter, &cache)?;
        opened.register();
        Ok(self.opened.get_or_init(|| opened))
    }

    fn heaps(&self) -> Result<&Arc<Heaps>> {
        Ok(&self.opened()?.heaps)
    }

    /// Returns the VkDevice.
    #[cfg(test)]
    pub fn logical(&self) -> Result<&Arc<LogicalDevice>> {
        Ok(&self.heaps()?.device)
    }

    /// Returns the queues of the device.
    #[cfg(test)]
    pub fn queues(&self) -> Result<&Queues> {
        Ok(&self.heaps()?.queues)
    }

    /// Returns a stream, as its own type.
    #[cfg(test)]
    pub fn stream(&self) -> Result<VulkanStream> {
        let opened = self.opened()?;
        VulkanStream::new(&opened.tools, &opened.clock, StreamDesc::default())
    }

    fn writable(&self, desc: &ImageDesc) -> bool {
        self.image_formats()
            .iter()
            .find(|known| known.format == desc.format)
            .is_some_and(|known| known.access(desc.dim).write)
    }
}

impl Device for VulkanDevice {
    fn caps(&self) -> &Caps {
        &self.adapter.caps
    }

    fn is_lost(&self) -> bool {
        let opened = self.opened.get();
        opened.is_some_and(|opened| opened.heaps.device.is_lost())
    }

    fn target(&self) -> &Target {
        if !self.adapter.measure {
            return &self.adapter.target;
        }
        self.measured.get_or_init(|| {
            let answers = probe::cached(self);
            let mut target = self.adapter.target.clone();
            for (caps, answer) in [
                (&mut target.fp16, answers.fp16),
                (&mut target.fp32, answers.fp32),
                (&mut target.fp64, answers.fp64),
            ] {
                caps.fused_fma = caps.supported && answer.fused_fma;
                caps.exact_div = caps.supported && answer.exact_div;
                caps.exact_sqrt = caps.supported && answer.exact_sqrt;
                caps.denormals = caps.supported && answer.denormals;
            }
            (target.good_exp2, target.good_log2) = (answers.exp2, answers.log2);
            target.unpacks_halves |= answers.unpack_half;
            target.packs_halves |= answers.pack_half;
            target
        })
    }

    fn allocate(&self, size: u64, placement: Placement) -> Result<Arc<dyn Memory>> {
        Ok(memory::allocate(self.heaps()?, size, placement)?)
    }

    fn import_memory(&self, kind: MemoryHandle, fd: i32, size: u64) -> Result<Arc<dyn Memory>> {
        Ok(Arc::new(shared::import_memory(
            self.heaps()?,
            kind,
            fd,
            size,
        )?))
    }

    fn import_image(&self, fd: i32, desc: &ImageDesc) -> Result<Arc<dyn DeviceImage>> {
        let writable = self.writable(desc);
        Ok(Arc::new(self.opened()?.images.import(fd, desc, writable)?))
    }

    fn create_semaphore(&self, export: SemaphoreHandle) -> Result<Arc<dyn Semaphore>> {
        let device = &self.heaps()?.device;
        Ok(Arc::new(VulkanSemaphore::new(device, Some(export))?))
    }

    fn import_semaphore(&self, kind: SemaphoreHandle, fd: i32) -> Result<Arc<dyn Semaphore>> {
        let device = &self.heaps()?.device;
        Ok(Arc::new(VulkanSemaphore::import(device, kind, fd)?))
    }

    fn allocate_shared(&self, size: u64, align: u64, kind: SharedKind) -> Result<Arc<dyn Memory>> {
        Ok(self.opened()?.shared_heap.allocate(size, align, kind)?)
    }

    unsafe fn import_host(&self, pointer: NonNull<u8>, size: u64) -> Result<Arc<dyn Memory>> {
        // SAFETY: the caller's promise is passed on.
        Ok(unsafe { import::import_host(self.heaps()?, pointer, size)? })
    }

    fn place(
        &self,
        size: u64,
        kind: ReplayKind,
        like: Option<&Replay>,
    ) -> Result<(Arc<dyn Memory>, Replay)> {
        let (memory, replay) = replay::place(self.heaps()?, size, kind, like)?;
        Ok((Arc::new(memory), replay))
    }

    unsafe fn back(
        &self,
        placed: &Arc<dyn Memory>,
        host: Option<NonNull<u8>>,
    ) -> Result<Arc<dyn Memory>> {
        // SAFETY: the caller's promise is passed on.
        Ok(unsafe { replay::back(self.heaps()?, placed, host)? })
    }

    fn part(&self, whole: &Arc<dyn Memory>, offset: u64, size: u64) -> Result<Arc<dyn Memory>> {
        replay::part(whole, offset, size)
    }

    fn image_formats(&self) -> &[Support] {
        self.formats
            .get_or_init(|| format::supported(&self.adapter))
    }

    fn create_image(&self, desc: &ImageDesc) -> Result<Arc<dyn DeviceImage>> {
        let writable = self.writable(desc);
        Ok(Arc::new(self.opened()?.images.create(desc, writable)?))
    }

    fn alias_image(
        &self,
        of: &Arc<dyn DeviceImage>,
        format: PixelFormat,
    ) -> Result<Arc<dyn DeviceImage>> {
        let of = VulkanImage::of(&**of)?;
        let desc = ImageDesc {
            format,
            ..*of.desc()
        };
        Ok(image::alias(of, format, self.writable(&desc))?)
    }

    fn texel_buffer(&self, slice: &Slice, format: PixelFormat) -> Result<Arc<dyn DeviceImage>> {
        Ok(Arc::new(image::texel_buffer(
            &self.heaps()?.device,
            slice,
            format,
        )?))
    }

    fn load(&self, code: MachineCode<'_>, interface: &KernelInterface) -> Result<Arc<dyn Code>> {
        let MachineCode::Spirv(words) = code else {
            return Err(DeviceError::Unsupported("code for processors".to_owned()));
        };
        let pipelines = &self.opened()?.pipelines;
        let load = || VulkanCode::new(pipelines, words, interface);
        Ok(self.loaded.find_or(words, interface, load)?)
    }

    fn create_stream(&self, desc: StreamDesc) -> Result<Box<dyn Stream>> {
        let opened = self.opened()?;
        let stream = VulkanStream::new(&opened.tools, &opened.clock, desc)?;
        Ok(Box::new(stream))
    }

    fn spare_stream(&self) -> Result<Box<dyn Stream>> {
        let kept = self.spare.lock().pop();
        kept.map_or_else(|| self.create_stream(StreamDesc::default()), Ok)
    }

    fn keep_stream(&self, stream: Box<dyn Stream>) {
        let mut spare = self.spare.lock();
        if spare.len() < MOST_SPARE {
            spare.push(stream);
        }
    }

    fn timestamps(&self) -> Result<(u64, u64)> {
        let Opened { tools, clock, .. } = self.opened()?;
        clock.now(|| sample_clock(tools, clock))
    }

    fn pipeline_cache(&self) -> Vec<u8> {
        match self.opened.get() {
            Some(opened) => opened.pipelines.cache_data(),
            None => self.unopened_cache.lock().clone(),
        }
    }

    fn load_pipeline_cache(&self, data: &[u8]) {
        if !Pipelines::cache_fits(&self.adapter, data) {
            return;
        }
        match self.opened.get() {
            Some(opened) => opened.pipelines.merge_cache(data),
            None => *self.unopened_cache.lock() = data.to_vec(),
        }
    }
}
