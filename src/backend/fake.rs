//! A device in host memory, for the tests of the runtime.
//!
//! Each stream has a thread that carries batches out in order. The device can be stopped and started, so that tests
//! see work that is under way. Unordered operations between two barriers run last to first: whoever relies on an order
//! that was not asked for is found out. Dispatches write down what they were given.

use super::{
    BufferCopy, Caps, Code, Device, DeviceError, MachineCode, Memory, Op, OrderRule, Pipeline,
    Placement, Point, ProfileSlot, Replay, ReplayKind, Result, SharedKind, Slice, Stream,
    StreamDesc, SvmCaps, Timeline, Times,
};
use parking_lot::{Condvar, Mutex};
use spirv_lowering::interface::KernelInterface;
use spirv_lowering::target::Target;
use std::any::Any;
use std::cell::UnsafeCell;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
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

/// The arguments of a dispatch.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Launched {
    pub local: [u32; 3],
    pub groups: [u32; 3],
    pub push: Vec<u8>,
}

/// Whether batches run.
struct Gate {
    open: bool,
    /// So many do though it is closed.
    passes: usize,
}

type Failure = Box<dyn FnOnce() -> DeviceError + Send>;

fn may_fail(next: &Mutex<Option<Failure>>) -> Result {
    let failure = next.lock().take();
    failure.map_or(Ok(()), |failure| Err(failure()))
}

struct Shared {
    gate: Mutex<Gate>,
    changed: Condvar,
    /// How the next allocation fails.
    allocation: Mutex<Option<Failure>>,
    /// How the next load of code fails.
    load: Mutex<Option<Failure>>,
    /// Timeline values that streams have to wait for.
    waits: AtomicUsize,
    /// Slots whose times were asked for.
    timed: AtomicUsize,
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
    /// How memory can be given another device's address.
    kinds: Mutex<Vec<ReplayKind>>,
    /// So many addresses of others are refused first.
    refusals: Mutex<usize>,
}

impl FakeDevice {
    /// Creates a device whose memory the host reaches as the arguments say.
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
            subgroup_sizes: vec![8],
            least_subgroup: 8,
            mem_base_align: 128,
            svm: SvmCaps {
                coarse: true,
                fine: reach == Reach::Cached,
                ..SvmCaps::default()
            },
            fast_copies: true,
            ..Caps::default()
        };
        let shared = Shared {
            gate: Mutex::new(Gate {
                open: true,
                passes: 0,
            }),
            changed: Condvar::new(),
            allocation: Mutex::default(),
            load: Mutex::default(),
            waits: AtomicUsize::new(0),
            timed: AtomicUsize::new(0),
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
            kinds: Mutex::new(vec![
                ReplayKind::Whole,
                ReplayKind::Pieces,
                ReplayKind::Host,
            ]),
            refusals: Mutex::new(0),
        })
    }

    /// Makes replays of other devices' addresses succeed by these kinds alone, and the first
    /// `refusals` of them fail.
    pub fn replay_by(&self, kinds: &[ReplayKind], refusals: usize) {
        *self.kinds.lock() = kinds.to_vec();
        *self.refusals.lock() = refusals;
    }

    /// Stops the device before the next batch.
    pub fn stop(&self) {
        let mut gate = self.shared.gate.lock();
        (gate.open, gate.passes) = (false, 0);
    }

    /// Lets a number of batches run although the device is stopped.
    pub fn let_through(&self, count: usize) {
        self.shared.gate.lock().passes += count;
        self.shared.changed.notify_all();
    }

    /// Starts the device again.
    pub fn start(&self) {
        self.shared.gate.lock().open = true;
        self.shared.changed.notify_all();
    }

    /// Makes the next `count` submissions fail.
    pub fn fail_submits(&self, count: usize) {
        self.shared.fail_submits.store(count, Ordering::SeqCst);
    }

    /// Makes the next allocation fail, with the error that `how` returns.
    pub fn fail_allocation(&self, how: impl FnOnce() -> DeviceError + Send + 'static) {
        *self.shared.allocation.lock() = Some(Box::new(how));
    }

    /// Makes the next load of code fail, with the error that `how` returns.
    pub fn fail_load(&self, how: impl FnOnce() -> DeviceError + Send + 'static) {
        *self.shared.load.lock() = Some(Box::new(how));
    }

    /// Returns the number of timeline values that streams had to wait for so far.
    pub fn waits(&self) -> usize {
        self.shared.waits.load(Ordering::SeqCst)
    }

    /// Returns the number of slots whose times have been queried.
    pub fn timed(&self) -> usize {
        self.shared.timed.load(Ordering::SeqCst)
    }

    /// Returns the number of submissions so far.
    pub fn submits(&self) -> usize {
        self.shared.submits.load(Ordering::SeqCst)
    }

    /// Takes the list of dispatches so far.
    pub fn launched(&self) -> Vec<Launched> {
        std::mem::take(&mut self.shared.launched.lock())
    }
}

type Bytes = Arc<[UnsafeCell<u8>]>;

fn bytes(size: u64, value: u8) -> Bytes {
    let bytes: Arc<[u8]> = vec![value; size as usize].into();
    // SAFETY: nobody else has the bytes, and a cell of a byte is laid out as the byte is.
    unsafe { Arc::from_raw(Arc::into_raw(bytes) as *const [UnsafeCell<u8>]) }
}

struct FakeMemory {
    /// Where the bytes are.
    base: *mut u8,
    size: u64,
    address: u64,
    mapped: bool,
    cached: bool,
    /// The bytes, and the host's own at the memory's address, where they are ours.
    _kept: [Option<Bytes>; 2],
    _whole: Option<Arc<dyn Memory>>,
}

// SAFETY: the bytes are accessed through raw pointers alone, by whoever the tests have made sure is alone.
unsafe impl Send for FakeMemory {}
// SAFETY: as above.
unsafe impl Sync for FakeMemory {}

impl FakeMemory {
    /// Creates memory of the device's bytes. Its address is that of the host's pages, if there are
    /// any.
    fn new(bytes: Bytes, pages: Option<Bytes>, mapped: bool, cached: bool) -> Self {
        Self {
            base: bytes.as_ptr() as *mut u8,
            size: bytes.len() as u64,
            address: pages.as_ref().unwrap_or(&bytes).as_ptr() as u64,
            mapped,
            cached,
            _kept: [Some(bytes), pages],
            _whole: None,
        }
    }

    fn pointer(&self) -> *mut u8 {
        self.base
    }
}

impl Memory for FakeMemory {
    fn address(&self) -> u64 {
        self.address
    }
    fn size(&self) -> u64 {
        self.size
    }
    fn mapped(&self) -> Option<NonNull<u8>> {
        NonNull::new(self.base).filter(|_| self.mapped)
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
                let bytes = pattern.repeat(dst.size as usize / pattern.len());
                // SAFETY: as above.
                unsafe {
                    std::ptr::copy_nonoverlapping(
                        bytes.as_ptr(),
                        at(dst, 0, bytes.len() as u64),
                        bytes.len(),
                    );
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
            let mut gate = shared.gate.lock();
            while !gate.open && gate.passes == 0 {
                shared.changed.wait(&mut gate);
            }
            gate.passes = gate.passes.saturating_sub(1);
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
    fn recorded_value(&self) -> u64 {
        self.submitted + u64::from(self.length > 0)
    }
    fn end_command(&mut self, _observed: &mut dyn FnMut() -> bool) {}
    fn open_len(&self) -> usize {
        self.length
    }
    fn wait_for(&mut self, point: &Point) {
        self.shared.waits.fetch_add(1, Ordering::SeqCst);
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
            Op::CopyTexels { .. } | Op::ImageCopy { .. } => {
                return Err(DeviceError::Unsupported("images".into()))
            }
            Op::Call { .. } => return Err(DeviceError::Unsupported("native kernels".into())),
            Op::Sequence(_) => return Err(DeviceError::Unsupported("recorded sequences".into())),
            Op::Handover { .. } | Op::Marker | Op::Keep(_) => Step::Nothing,
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
        self.shared.timed.fetch_add(1, Ordering::SeqCst);
        // Deliberately wild, to see that order is restored.
        Ok(Times {
            start: slot.0,
            end: slot.0 / 2,
        })
    }
    fn discard_times(&mut self, _: ProfileSlot) {}
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
        _groups: u64,
    ) -> Result<Arc<dyn Pipeline>> {
        Ok(Arc::new(FakePipeline { local: local_size }))
    }
    fn specialised(&self) -> usize {
        0
    }
    fn costly(&self) -> bool {
        false
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
        may_fail(&self.shared.allocation)?;
        let (mapped, cached) = match placement {
            Placement::Device | Placement::DeviceMapped => {
                (self.reach != Reach::Hidden, self.reach == Reach::Cached)
            }
            Placement::HostWrite => (true, false),
            Placement::HostRead => (true, true),
        };
        let memory = FakeMemory::new(bytes(size, 0xcd), None, mapped, cached);
        Ok(Arc::new(memory))
    }
    fn allocate_shared(&self, size: u64, _align: u64, kind: SharedKind) -> Result<Arc<dyn Memory>> {
        let fine = kind == SharedKind::Fine || self.reach == Reach::Cached;
        let pages = (!fine).then(|| bytes(size, 0));
        let memory = FakeMemory::new(bytes(size, 0), pages, fine, fine);
        Ok(Arc::new(memory))
    }
    fn place(
        &self,
        size: u64,
        kind: ReplayKind,
        like: Option<&Replay>,
    ) -> Result<(Arc<dyn Memory>, Replay)> {
        static NEXT: AtomicU64 = AtomicU64::new(0x5c00_0000_0000);
        if !self.kinds.lock().contains(&kind) {
            return Err(DeviceError::Unsupported(format!("{kind:?}")));
        }
        let address = match like {
            None => NEXT.fetch_add(size, Ordering::Relaxed),
            Some(like) => {
                let mut refusals = self.refusals.lock();
                if *refusals > 0 {
                    *refusals -= 1;
                    return Err(DeviceError::OutOfDeviceMemory { size });
                }
                like.buffer
            }
        };
        let kept = (kind == ReplayKind::Whole).then(|| bytes(size, 0));
        let memory = FakeMemory {
            base: kept
                .as_ref()
                .map_or(std::ptr::null_mut(), |b| b.as_ptr() as *mut u8),
            size,
            address,
            mapped: false,
            cached: false,
            _kept: [kept, None],
            _whole: None,
        };
        let replay = Replay {
            kind,
            size,
            buffer: address,
            memory: 0,
        };
        Ok((Arc::new(memory), replay))
    }
    unsafe fn back(
        &self,
        placed: &Arc<dyn Memory>,
        host: Option<NonNull<u8>>,
    ) -> Result<Arc<dyn Memory>> {
        let ours: &FakeMemory = placed.as_any().downcast_ref().expect("fake memory");
        if !ours.base.is_null() {
            return Ok(placed.clone());
        }
        let kept = host.is_none().then(|| bytes(ours.size, 0));
        let base = match (&kept, host) {
            (Some(bytes), _) => bytes.as_ptr() as *mut u8,
            (None, host) => host.map_or(std::ptr::null_mut(), NonNull::as_ptr),
        };
        Ok(Arc::new(FakeMemory {
            base,
            size: ours.size,
            address: ours.address,
            mapped: host.is_some(),
            cached: host.is_some(),
            _kept: [kept, None],
            _whole: Some(placed.clone()),
        }))
    }
    fn part(&self, whole: &Arc<dyn Memory>, offset: u64, size: u64) -> Result<Arc<dyn Memory>> {
        let ours: &FakeMemory = whole.as_any().downcast_ref().expect("fake memory");
        assert!(offset + size <= ours.size, "a part beyond the whole");
        Ok(Arc::new(FakeMemory {
            base: ours.base.wrapping_add(offset as usize),
            size,
            address: ours.address + offset,
            mapped: ours.mapped,
            cached: ours.cached,
            _kept: [None, None],
            _whole: Some(whole.clone()),
        }))
    }
    unsafe fn import_host(&self, _pointer: NonNull<u8>, _size: u64) -> Result<Arc<dyn Memory>> {
        Err(DeviceError::Unsupported("import".into()))
    }
    fn load(&self, _code: MachineCode<'_>, interface: &KernelInterface) -> Result<Arc<dyn Code>> {
        may_fail(&self.shared.load)?;
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
