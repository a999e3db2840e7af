//! A device in host memory, for the tests of the runtime.
//!
//! Each stream has a thread that carries batches out in order. The device can be stopped and started, so that tests
//! see work that is under way. Unordered operations between two barriers run last to first: whoever relies on an order
//! that was not asked for is found out. Dispatches write down what they were given.

use super::{
    BufferCopy, Caps, Code, Device, DeviceError, Memory, Op, OrderRule, Pipeline, Placement, Point,
    ProfileSlot, Result, SharedKind, Slice, Stream, StreamDesc, SvmCaps, Timeline, Times,
};
use parking_lot::{Condvar, Mutex};
use spirv_lowering::interface::KernelInterface;
use spirv_lowering::target::Target;
use std::any::Any;
use std::cell::UnsafeCell;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{mpsc, Arc};
use std::time::Duration;

/// How memory of a device can be reached by the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Mapped and fast to read.
    Cached,
    /// Mapped, slow to read.
    Uncached,
    /// Not mapped.
    Hidden,
}

/// What a dispatch was given.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Launched {
    pub local: [u32; 3],
    pub groups: [u32; 3],
    pub push: Vec<u8>,
}

struct Shared {
    running: Mutex<bool>,
    changed: Condvar,
    fail_submits: AtomicUsize,
    submits: AtomicUsize,
    launched: Mutex<Vec<Launched>>,
    lost: AtomicBool,
}

/// The device.
pub struct FakeDevice {
    caps: Caps,
    target: Target,
    reach: Reach,
    shared: Arc<Shared>,
}

impl FakeDevice {
    /// A device whose memory the host reaches as told.
    pub fn new(reach: Reach) -> Arc<Self> {
        let caps = Caps {
            name: "fake".into(),
            global_mem_size: 1 << 30,
            max_alloc_size: 1 << 28,
            local_mem_size: 32 << 10,
            max_work_group_size: 256,
            max_work_item_sizes: [256, 256, 64],
            max_group_count: [1024; 3],
            subgroup_size: 8,
            mem_base_align: 128,
            svm: SvmCaps {
                coarse: true,
                fine: reach == Reach::Cached,
                ..SvmCaps::default()
            },
            ..Caps::default()
        };
        let shared = Shared {
            running: Mutex::new(true),
            changed: Condvar::new(),
            fail_submits: AtomicUsize::new(0),
            submits: AtomicUsize::new(0),
            launched: Mutex::default(),
            lost: AtomicBool::new(false),
        };
        Arc::new(Self {
            caps,
            target: Target::full(),
            reach,
            shared: Arc::new(shared),
        })
    }

    /// Work stops before the next batch.
    pub fn stop(&self) {
        *self.shared.running.lock() = false;
    }

    /// Work goes on.
    pub fn start(&self) {
        *self.shared.running.lock() = true;
        self.shared.changed.notify_all();
    }

    /// The next `count` submissions fail.
    pub fn fail_submits(&self, count: usize) {
        self.shared.fail_submits.store(count, Ordering::SeqCst);
    }

    /// Number of submissions so far.
    pub fn submits(&self) -> usize {
        self.shared.submits.load(Ordering::SeqCst)
    }

    /// Takes the list of dispatches so far.
    pub fn launched(&self) -> Vec<Launched> {
        std::mem::take(&mut self.shared.launched.lock())
    }
}

struct FakeMemory {
    bytes: Box<[UnsafeCell<u8>]>,
    /// The host's own bytes, at the memory's address.
    pages: Option<Box<[UnsafeCell<u8>]>>,
    mapped: bool,
    cached: bool,
}

// SAFETY: the bytes are accessed through raw pointers alone, by whoever the tests have made sure is alone.
unsafe impl Send for FakeMemory {}
// SAFETY: as above.
unsafe impl Sync for FakeMemory {}

impl FakeMemory {
    fn pointer(&self) -> *mut u8 {
        self.bytes.as_ptr() as *mut u8
    }
}

impl Memory for FakeMemory {
    fn address(&self) -> u64 {
        match &self.pages {
            Some(pages) => pages.as_ptr() as u64,
            None => self.pointer() as u64,
        }
    }
    fn size(&self) -> u64 {
        self.bytes.len() as u64
    }
    fn mapped(&self) -> Option<NonNull<u8>> {
        if self.mapped {
            NonNull::new(self.pointer())
        } else {
            None
        }
    }
    fn host_cached(&self) -> bool {
        self.cached
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

struct FakeTimeline {
    value: Mutex<u64>,
    changed: Condvar,
}

impl Timeline for FakeTimeline {
    fn completed(&self) -> Result<u64> {
        Ok(*self.value.lock())
    }
    fn wait(&self, value: u64, timeout: Option<Duration>) -> Result<bool> {
        let mut now = self.value.lock();
        while *now < value {
            match timeout {
                Some(time) => {
                    if self.changed.wait_for(&mut now, time).timed_out() {
                        return Ok(*now >= value);
                    }
                }
                None => self.changed.wait(&mut now),
            }
        }
        Ok(true)
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

enum Step {
    Copy(Slice, Slice, BufferCopy),
    Fill(Slice, Vec<u8>),
    Update(Slice, Vec<u8>),
    Launch(Launched),
    Barrier,
    Nothing,
}

fn at(slice: &Slice, offset: u64, size: u64) -> *mut u8 {
    assert!(offset + size <= slice.size, "access beyond the slice");
    assert!(
        slice.offset + slice.size <= slice.memory.size(),
        "slice beyond the memory"
    );
    let memory: &FakeMemory = slice.memory.as_any().downcast_ref().expect("fake memory");
    memory
        .pointer()
        .wrapping_add((slice.offset + offset) as usize)
}

impl Step {
    fn run(&self, shared: &Shared) {
        match self {
            Self::Copy(src, dst, r) => {
                for slice in 0..r.slices {
                    for row in 0..r.rows {
                        let from = r.src_offset + slice * r.src_slice_pitch + row * r.src_row_pitch;
                        let to = r.dst_offset + slice * r.dst_slice_pitch + row * r.dst_row_pitch;
                        // SAFETY: `at` has checked that both rows lie within memory that the slices keep alive.
                        unsafe {
                            std::ptr::copy(
                                at(src, from, r.bytes),
                                at(dst, to, r.bytes),
                                r.bytes as usize,
                            )
                        };
                    }
                }
            }
            Self::Fill(dst, pattern) => {
                let length = pattern.len() as u64;
                for index in 0..dst.size / length {
                    // SAFETY: as above.
                    unsafe {
                        std::ptr::copy_nonoverlapping(
                            pattern.as_ptr(),
                            at(dst, index * length, length),
                            pattern.len(),
                        );
                    }
                }
            }
            Self::Update(dst, data) => {
                // SAFETY: as above.
                unsafe {
                    std::ptr::copy_nonoverlapping(
                        data.as_ptr(),
                        at(dst, 0, data.len() as u64),
                        data.len(),
                    )
                };
            }
            Self::Launch(launched) => shared.launched.lock().push(launched.clone()),
            Self::Barrier | Self::Nothing => {}
        }
    }
}

#[derive(Default)]
struct Batch {
    steps: Vec<Step>,
    unordered: bool,
    waits: Vec<Point>,
    value: u64,
}

struct FakeStream {
    shared: Arc<Shared>,
    timeline: Arc<dyn Timeline>,
    open: Batch,
    length: usize,
    submitted: u64,
    sender: Option<mpsc::Sender<Batch>>,
    slots: u64,
    thread: Option<std::thread::JoinHandle<()>>,
}

fn work(batches: &mpsc::Receiver<Batch>, timeline: &FakeTimeline, shared: &Shared) {
    for batch in batches {
        for point in &batch.waits {
            let _ = point.timeline.wait(point.value, None);
        }
        {
            let mut running = shared.running.lock();
            while !*running {
                shared.changed.wait(&mut running);
            }
        }
        for group in batch.steps.split(|step| matches!(step, Step::Barrier)) {
            if batch.unordered {
                group.iter().rev().for_each(|step| step.run(shared));
            } else {
                group.iter().for_each(|step| step.run(shared));
            }
        }
        *timeline.value.lock() = batch.value;
        timeline.changed.notify_all();
    }
}

impl Stream for FakeStream {
    fn timeline(&self) -> &Arc<dyn Timeline> {
        &self.timeline
    }
    fn open_value(&self) -> u64 {
        self.submitted + 1
    }
    fn open_len(&self) -> usize {
        self.length
    }
    fn wait_for(&mut self, point: &Point) {
        self.open.waits.push(point.clone());
    }
    fn record(
        &mut self,
        op: Op<'_>,
        order: OrderRule,
        profile: bool,
    ) -> Result<Option<ProfileSlot>> {
        self.open.unordered |= order == OrderRule::Unordered;
        let step = match op {
            // Nothing runs here, so nothing asks for it.
            Op::DispatchIndirect { .. } => return Ok(None),
            Op::Dispatch {
                pipeline,
                groups,
                push,
                ..
            } => {
                let local = pipeline
                    .as_any()
                    .downcast_ref::<FakePipeline>()
                    .map_or([0; 3], |p| p.local);
                Step::Launch(Launched {
                    local,
                    groups,
                    push: push.to_vec(),
                })
            }
            Op::Copy { src, dst, region } => Step::Copy(src.clone(), dst.clone(), region),
            Op::Fill { dst, pattern } => Step::Fill(dst.clone(), pattern.to_vec()),
            Op::Update { dst, data } => Step::Update(dst.clone(), data.to_vec()),
            Op::ImageToMemory { .. } | Op::MemoryToImage { .. } | Op::ImageCopy { .. } => {
                return Err(DeviceError::Unsupported("images".into()))
            }
            Op::Marker | Op::Keep(_) => Step::Nothing,
        };
        self.open.steps.push(step);
        self.length += 1;
        self.slots += 1;
        Ok(profile.then_some(ProfileSlot(self.slots)))
    }
    fn barrier(&mut self) -> Result {
        self.open.steps.push(Step::Barrier);
        Ok(())
    }
    fn submit(&mut self, force: bool) -> Result<u64> {
        if self.length == 0 && !force {
            return Ok(self.submitted);
        }
        let mut batch = std::mem::take(&mut self.open);
        self.length = 0;
        let failing = self.shared.fail_submits.load(Ordering::SeqCst);
        if failing > 0 {
            self.shared
                .fail_submits
                .store(failing - 1, Ordering::SeqCst);
            return Err(DeviceError::Driver {
                call: "submit",
                code: "told to fail".into(),
            });
        }
        if self.shared.lost.load(Ordering::SeqCst) {
            return Err(DeviceError::Lost);
        }
        self.shared.submits.fetch_add(1, Ordering::SeqCst);
        self.submitted += 1;
        batch.value = self.submitted;
        if let Some(sender) = &self.sender {
            let _ = sender.send(batch);
        }
        Ok(self.submitted)
    }
    fn reclaim(&mut self) {}
    fn take_times(&mut self, slot: ProfileSlot) -> Result<Times> {
        // Deliberately wild, to see that order is restored.
        Ok(Times {
            start: slot.0,
            end: slot.0 / 2,
        })
    }
}

impl Drop for FakeStream {
    fn drop(&mut self) {
        self.sender = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct FakePipeline {
    local: [u32; 3],
}

impl Pipeline for FakePipeline {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

struct FakeCode {
    interface: KernelInterface,
}

impl Code for FakeCode {
    fn interface(&self) -> &KernelInterface {
        &self.interface
    }
    fn specialise(
        &self,
        local_size: [u32; 3],
        _local_args: &[(u32, u32)],
    ) -> Result<Arc<dyn Pipeline>> {
        Ok(Arc::new(FakePipeline { local: local_size }))
    }
    fn max_work_group_size(&self) -> u32 {
        256
    }
}

impl Device for FakeDevice {
    fn caps(&self) -> &Caps {
        &self.caps
    }
    fn target(&self) -> &Target {
        &self.target
    }
    fn allocate(&self, size: u64, placement: Placement) -> Result<Arc<dyn Memory>> {
        let (mapped, cached) = match placement {
            Placement::Device | Placement::DeviceMapped => {
                (self.reach != Reach::Hidden, self.reach == Reach::Cached)
            }
            Placement::HostWrite => (true, false),
            Placement::HostRead => (true, true),
        };
        let bytes = (0..size).map(|_| UnsafeCell::new(0xcd)).collect();
        Ok(Arc::new(FakeMemory {
            bytes,
            pages: None,
            mapped,
            cached,
        }))
    }
    fn allocate_shared(&self, size: u64, _align: u64, kind: SharedKind) -> Result<Arc<dyn Memory>> {
        let zeros = || (0..size).map(|_| UnsafeCell::new(0)).collect();
        let fine = kind == SharedKind::Fine || self.reach == Reach::Cached;
        Ok(Arc::new(FakeMemory {
            bytes: zeros(),
            pages: (!fine).then(zeros),
            mapped: fine,
            cached: fine,
        }))
    }
    unsafe fn import_host(&self, _pointer: NonNull<u8>, _size: u64) -> Result<Arc<dyn Memory>> {
        Err(DeviceError::Unsupported("import".into()))
    }
    fn load(&self, _words: &[u32], interface: &KernelInterface) -> Result<Arc<dyn Code>> {
        Ok(Arc::new(FakeCode {
            interface: interface.clone(),
        }))
    }
    fn create_stream(&self, _desc: StreamDesc) -> Result<Box<dyn Stream>> {
        let (sender, receiver) = mpsc::channel();
        let timeline = Arc::new(FakeTimeline {
            value: Mutex::new(0),
            changed: Condvar::new(),
        });
        let (on_thread, shared) = (timeline.clone(), self.shared.clone());
        let thread = std::thread::spawn(move || work(&receiver, &on_thread, &shared));
        Ok(Box::new(FakeStream {
            shared: self.shared.clone(),
            timeline,
            open: Batch::default(),
            length: 0,
            submitted: 0,
            sender: Some(sender),
            slots: 0,
            thread: Some(thread),
        }))
    }
    fn timestamps(&self) -> Result<(u64, u64)> {
        Ok((0, 0))
    }
    fn pipeline_cache(&self) -> Vec<u8> {
        Vec::new()
    }
    fn load_pipeline_cache(&self, _data: &[u8]) {}
}
