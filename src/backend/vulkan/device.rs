//! The VkDevice and what all its users share: queues, allocator, pipeline layouts and cache, clock.
//!
//! [`VulkanDevice`] is what the layers above hold; it makes the VkDevice ([`Shared`]) at first use, since that costs
//! 130 to 360 ms on some drivers and many programs only look at the list of devices.

use super::adapter::{queue_class, Adapter};
use super::apart::Apart;
use super::conv::{self, During};
use super::copy::Utilities;
use super::fault::Faults;
use super::format;
use super::image::{self, Images};
use super::memory::{self, Heaps};
use super::pipeline::{PipelineCache, VulkanCode};
use super::place;
use super::probe;
use super::recent::Recent;
use super::submit::VulkanStream;
use super::svm;
use super::timeline::Retired;
use crate::backend::{
    Caps, Code, Device, DeviceError, Image, ImageDesc, MachineCode, Memory, PixelFormat, Placement,
    Replay, Result, SharedKind, Slice, Stream, StreamDesc, Support, Way,
};
use crate::util::monotonic_ns;
use ash::{ext, khr, vk};
use parking_lot::Mutex;
use spirv_lowering::interface::KernelInterface;
use spirv_lowering::target::Target;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// Streams that are kept. Transfers of more threads at a time make some of their own.
const MOST_SPARE: usize = 4;

/// A device as the layers above see it.
pub struct VulkanDevice {
    adapter: Arc<Adapter>,
    shared: OnceLock<Arc<Shared>>,
    creating: Mutex<()>,
    /// A pipeline cache given before the device was made.
    early_cache: Mutex<Vec<u8>>,
    /// The target with measured arithmetic, where the driver is not known.
    measured: OnceLock<Target>,
    formats: OnceLock<Vec<Support>>,
    recent: Recent,
    /// Streams without work.
    spare: Mutex<Vec<Box<dyn Stream>>>,
}

/// A queue of the device. The driver wants one thread at a time on it.
pub struct Queue {
    /// The handle, used under the lock only.
    pub raw: Mutex<vk::Queue>,
    class: i8,
}

/// The VkDevice and what belongs to it.
pub struct Shared {
    /// What it was made from. Also keeps the instance alive.
    pub adapter: Arc<Adapter>,
    /// The device's entry points.
    pub raw: ash::Device,
    /// VK_KHR_push_descriptor.
    pub push_descriptor: Option<khr::push_descriptor::Device>,
    /// VK_EXT_external_memory_host.
    pub external_memory_host: Option<ext::external_memory_host::Device>,
    /// VK_KHR_map_memory2, where memory can be mapped at an address of our choice.
    pub map_memory2: Option<khr::map_memory2::Device>,
    /// Queues in use.
    pub queues: Vec<Queue>,
    /// Device memory.
    pub heaps: Heaps,
    /// Memory at addresses that the host has too.
    pub shared_heap: svm::SharedHeap,
    /// The layout of every kernel: push constants and nothing else.
    pub layout: vk::PipelineLayout,
    /// The driver's cache of pipelines.
    pub pipelines: PipelineCache,
    /// Keeps submissions from the making of pipelines, where they must be.
    pub apart: Apart,
    /// Shaders of our own.
    pub utilities: Utilities,
    /// Samplers, and the setting up of images.
    pub images: Images,
    /// Maps device ticks to host time.
    pub clock: Clock,
    /// What the driver says of a loss.
    faults: Faults,
    /// Semaphores to be destroyed.
    pub retired: Retired,
    next_queue: AtomicUsize,
    next_batch: AtomicU64,
    lost: AtomicBool,
}

impl VulkanDevice {
    /// A device that makes its VkDevice later.
    pub fn new(adapter: Arc<Adapter>) -> Self {
        Self {
            adapter,
            shared: OnceLock::new(),
            creating: Mutex::new(()),
            early_cache: Mutex::new(Vec::new()),
            recent: Recent::default(),
            spare: Mutex::default(),
            measured: OnceLock::new(),
            formats: OnceLock::new(),
        }
    }

    /// The VkDevice, made now if it was not before.
    pub fn shared(&self) -> Result<&Arc<Shared>> {
        if let Some(shared) = self.shared.get() {
            return Ok(shared);
        }
        let _one_at_a_time = self.creating.lock();
        if let Some(shared) = self.shared.get() {
            return Ok(shared);
        }
        let early = std::mem::take(&mut *self.early_cache.lock());
        let shared = Shared::new(&self.adapter, &early)?;
        super::exit::register(&shared);
        Ok(self.shared.get_or_init(|| shared))
    }
}

impl VulkanDevice {
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
            target
        })
    }

    fn allocate(&self, size: u64, placement: Placement) -> Result<Arc<dyn Memory>> {
        Ok(memory::allocate(self.shared()?, size, placement)?)
    }

    fn allocate_shared(&self, size: u64, align: u64, kind: SharedKind) -> Result<Arc<dyn Memory>> {
        Ok(svm::allocate(self.shared()?, size, align, kind)?)
    }

    unsafe fn import_host(&self, pointer: NonNull<u8>, size: u64) -> Result<Arc<dyn Memory>> {
        // SAFETY: the caller's promise is passed on.
        Ok(unsafe { memory::import_host(self.shared()?, pointer, size)? })
    }

    fn place(
        &self,
        size: u64,
        way: Way,
        like: Option<&Replay>,
    ) -> Result<(Arc<dyn Memory>, Replay)> {
        let (memory, replay) = place::place(self.shared()?, size, way, like)?;
        Ok((Arc::new(memory), replay))
    }

    unsafe fn back(
        &self,
        placed: &Arc<dyn Memory>,
        host: Option<NonNull<u8>>,
    ) -> Result<Arc<dyn Memory>> {
        // SAFETY: the caller's promise is passed on.
        Ok(unsafe { place::back(self.shared()?, placed, host)? })
    }

    fn part(&self, whole: &Arc<dyn Memory>, offset: u64, size: u64) -> Result<Arc<dyn Memory>> {
        place::part(whole, offset, size)
    }

    fn image_formats(&self) -> &[Support] {
        self.formats
            .get_or_init(|| format::supported(&self.adapter))
    }

    fn create_image(&self, desc: &ImageDesc) -> Result<Arc<dyn Image>> {
        let writable = self.writable(desc);
        Ok(Arc::new(image::create(self.shared()?, desc, writable)?))
    }

    fn alias_image(&self, of: &Arc<dyn Image>, format: PixelFormat) -> Result<Arc<dyn Image>> {
        let of = image::image(&**of)?;
        let desc = ImageDesc {
            format,
            ..*of.desc()
        };
        Ok(Arc::new(image::alias(of, format, self.writable(&desc))?))
    }

    fn texel_buffer(&self, slice: &Slice, format: PixelFormat) -> Result<Arc<dyn Image>> {
        Ok(Arc::new(image::texel_buffer(
            self.shared()?,
            slice,
            format,
        )?))
    }

    fn load(&self, code: MachineCode<'_>, interface: &KernelInterface) -> Result<Arc<dyn Code>> {
        let MachineCode::Spirv(words) = code else {
            return Err(DeviceError::Unsupported("code for processors".to_owned()));
        };
        let shared = self.shared()?;
        let load = || VulkanCode::new(shared, words, interface);
        Ok(self.recent.find_or(words, interface, load)?)
    }

    fn create_stream(&self, desc: StreamDesc) -> Result<Box<dyn Stream>> {
        Ok(Box::new(VulkanStream::new(self.shared()?, desc)?))
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
        let shared = self.shared()?;
        shared.clock.now(shared)
    }

    fn pipeline_cache(&self) -> Vec<u8> {
        match self.shared.get() {
            Some(shared) => shared.pipelines.data(shared),
            None => self.early_cache.lock().clone(),
        }
    }

    fn load_pipeline_cache(&self, data: &[u8]) {
        if !PipelineCache::fits(&self.adapter, data) {
            return;
        }
        match self.shared.get() {
            Some(shared) => shared.pipelines.merge(shared, data),
            None => *self.early_cache.lock() = data.to_vec(),
        }
    }
}

impl Shared {
    fn new(adapter: &Arc<Adapter>, early_cache: &[u8]) -> Result<Arc<Self>> {
        let raw = adapter.create_device().during("vkCreateDevice")?;
        // From here on `Shared` owns the device; a failure below drops it again.
        let queues = (0..adapter.family.count)
            .map(|index| Queue {
                // SAFETY: the device was made with that many queues of the family.
                raw: Mutex::new(unsafe { raw.get_device_queue(adapter.family.index, index) }),
                class: queue_class(index, adapter.family.count),
            })
            .collect();
        let instance = &adapter.instance.raw;
        let ext = &adapter.extensions;
        let mut shared = Self {
            push_descriptor: ext
                .push_descriptor
                .then(|| khr::push_descriptor::Device::new(instance, &raw)),
            external_memory_host: ext
                .external_memory_host
                .then(|| ext::external_memory_host::Device::new(instance, &raw)),
            map_memory2: (adapter.placed_map_align > 0)
                .then(|| khr::map_memory2::Device::new(instance, &raw)),
            queues,
            heaps: Heaps::new(adapter),
            shared_heap: svm::SharedHeap::default(),
            layout: vk::PipelineLayout::null(),
            pipelines: PipelineCache::empty(),
            apart: Apart::new(adapter.tuning.pipelines_apart),
            utilities: Utilities::default(),
            images: Images::default(),
            clock: Clock::new(adapter, &raw),
            faults: Faults::new(ext, instance, &raw),
            retired: Retired::default(),
            next_queue: AtomicUsize::new(0),
            next_batch: AtomicU64::new(1),
            lost: AtomicBool::new(false),
            adapter: Arc::clone(adapter),
            raw,
        };
        shared.heaps.open(&shared.adapter, &shared.raw)?;
        shared.pipelines = PipelineCache::new(&shared.raw, early_cache)?;
        let ranges = [shared.push_range()];
        let info = vk::PipelineLayoutCreateInfo::default().push_constant_ranges(&ranges);
        // SAFETY: the device lives; the range is within the device's limit.
        shared.layout = unsafe { shared.raw.create_pipeline_layout(&info, None) }
            .during("vkCreatePipelineLayout")?;
        crate::log!(
            Debug,
            "{}: device made, {} queues",
            shared.adapter.caps.name,
            shared.queues.len()
        );
        Ok(Arc::new(shared))
    }

    /// The push constants of every kernel.
    pub fn push_range(&self) -> vk::PushConstantRange {
        vk::PushConstantRange::default()
            .stage_flags(vk::ShaderStageFlags::COMPUTE)
            .size(self.adapter.properties.limits.max_push_constants_size)
    }

    /// A queue for a new stream: the ones of its priority take turns.
    pub fn pick_queue(&self, priority: i8) -> usize {
        let class = if self.queues.iter().any(|queue| queue.class == priority) {
            priority
        } else {
            0
        };
        let turn = self.next_queue.fetch_add(1, Ordering::Relaxed);
        let matching = self
            .queues
            .iter()
            .filter(|queue| queue.class == class)
            .count()
            .max(1);
        self.queues
            .iter()
            .enumerate()
            .filter(|(_, queue)| queue.class == class)
            .nth(turn % matching)
            .map_or(0, |(index, _)| index)
    }

    /// A number for a batch that no other batch of the device has.
    pub fn new_batch_id(&self) -> u64 {
        self.next_batch.fetch_add(1, Ordering::Relaxed)
    }

    /// Takes note of a lost device and passes the error on.
    pub fn failed(&self, error: DeviceError) -> DeviceError {
        if matches!(error, DeviceError::Lost) && !self.lost.swap(true, Ordering::Relaxed) {
            let name = &self.adapter.caps.name;
            crate::log!(Error, "{name}: the device was lost");
            for line in self.faults.describe() {
                crate::log!(Error, "{name}: {line}");
            }
            if let Some(limit) = self.adapter.tuning.group_limit {
                crate::log!(
                    Error,
                    "{name}: this driver gives the device up when one work-group runs for longer than {limit:?}"
                );
            }
        }
        error
    }

    /// The device was lost: nothing on it works any more.
    pub fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Relaxed)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if crate::util::leaving::is_leaving() {
            return;
        }
        // SAFETY: streams, memories, codes and pipelines hold an Arc of this, so none is left and no work is pending;
        // each handle is destroyed once, the device last.
        unsafe {
            self.retired.destroy(&self.raw);
            self.utilities.destroy(&self.raw);
            self.images.destroy(&self.raw);
            self.raw.destroy_pipeline_layout(self.layout, None);
            self.pipelines.destroy(&self.raw);
            self.heaps.close();
            self.raw.destroy_device(None);
        }
    }
}

/// Relates the device's timestamps to the host's CLOCK_MONOTONIC.
pub struct Clock {
    calibrated: Option<ext::calibrated_timestamps::Device>,
    period: f64,
    bits: u32,
    /// A moment in both clocks: ticks, nanoseconds. None: not correlated yet.
    base: Mutex<Option<(u64, u64)>>,
}

/// How old a correlation may grow before it is taken anew: clocks drift.
const CLOCK_AGE_NS: u64 = 1_000_000_000;

impl Clock {
    fn new(adapter: &Adapter, raw: &ash::Device) -> Self {
        let instance = &adapter.instance.raw;
        let usable = adapter.extensions.calibrated_timestamps && {
            // Entry points of the extension are loaded through a handle of any device of the instance.
            let table =
                ext::calibrated_timestamps::Instance::new(&adapter.instance.entry, instance);
            // SAFETY: the device offers the extension.
            let domains =
                unsafe { table.get_physical_device_calibrateable_time_domains(adapter.raw) };
            let domains = domains.unwrap_or_default();
            domains.contains(&vk::TimeDomainEXT::DEVICE)
                && domains.contains(&vk::TimeDomainEXT::CLOCK_MONOTONIC)
        };
        Self {
            calibrated: usable.then(|| ext::calibrated_timestamps::Device::new(instance, raw)),
            period: f64::from(adapter.properties.limits.timestamp_period),
            bits: adapter.family.timestamp_bits,
            base: Mutex::new(None),
        }
    }

    /// A moment in device ticks and host nanoseconds.
    fn sample(&self, shared: &Arc<Shared>) -> Result<(u64, u64)> {
        if let Some(table) = &self.calibrated {
            let info = [
                vk::CalibratedTimestampInfoEXT::default().time_domain(vk::TimeDomainEXT::DEVICE),
                vk::CalibratedTimestampInfoEXT::default()
                    .time_domain(vk::TimeDomainEXT::CLOCK_MONOTONIC),
            ];
            // SAFETY: both domains were found to be offered.
            let (values, _) = unsafe { table.get_calibrated_timestamps(&info) }
                .during("vkGetCalibratedTimestampsEXT")?;
            if let [device, host] = values[..] {
                return Ok((device, host));
            }
        }
        super::submit::sample_clock(shared)
    }

    fn base(&self, shared: &Arc<Shared>) -> Result<(u64, u64)> {
        let now = monotonic_ns();
        let mut base = self.base.lock();
        match *base {
            // Without the extension a sample costs a submission, and is taken once.
            Some((_, host))
                if self.calibrated.is_none() || now.saturating_sub(host) < CLOCK_AGE_NS => {}
            _ => *base = Some(self.sample(shared)?),
        }
        base.ok_or(DeviceError::Lost)
    }

    /// Host nanoseconds of two readings of the device's timer, in one correlation, ordered and never 0.
    pub fn to_host(&self, shared: &Arc<Shared>, start: u64, end: u64) -> Result<(u64, u64)> {
        let (ticks, host) = self.base(shared)?;
        let convert = |reading: u64| -> u64 {
            let nanoseconds = (self.distance(ticks, reading) as f64 * self.period) as i64;
            host.saturating_add_signed(nanoseconds).max(1)
        };
        let start = convert(start);
        Ok((start, convert(end).max(start)))
    }

    /// Signed ticks from one reading to another, on a timer that wraps.
    fn distance(&self, from: u64, to: u64) -> i64 {
        let unused = 64 - self.bits.clamp(1, 64);
        ((to.wrapping_sub(from) << unused) as i64) >> unused
    }

    /// Device time, on the scale of profiled times, and host time of this moment, in nanoseconds.
    pub fn now(&self, shared: &Arc<Shared>) -> Result<(u64, u64)> {
        let (ticks, host) = self.sample(shared)?;
        Ok((self.to_host(shared, ticks, ticks)?.0, host))
    }
}

/// An error of a Vulkan call on a device, with note taken of a lost device.
pub fn failed(shared: &Shared, call: &'static str, result: vk::Result) -> DeviceError {
    shared.failed(conv::error(call, result))
}
