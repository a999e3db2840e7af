//! What all threads share: the context, queues, buffers, and the record of who used which bytes of a buffer.
//!
//! # The model
//! Every buffer has its contents as a sequential execution would leave them, and a log of the accesses that may still be
//! under way. A thread that enqueues a command locks the buffers it touches, makes the command wait for every logged
//! access that conflicts, enqueues it, and carries its effect out on the model at once. So the order in which
//! the locks are taken is the sequential order, and every event graph that results is a legal one.

use crate::picture::Picture;
use crate::rng::Rng;
use pumice_tests::sys::*;
use pumice_tests::{call, code_name, create, info_text, info_value, ok};
use std::alloc::Layout;
use std::ffi::{c_char, c_void};
use std::ops::Range;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// A function for the context's error reports.
pub type Report = Option<unsafe extern "C" fn(*const c_char, *const c_void, usize, *mut c_void)>;

static CLOCK: AtomicU64 = AtomicU64::new(1);

/// The order of calls, over all threads.
pub fn tick() -> u64 {
    CLOCK.fetch_add(1, Ordering::SeqCst)
}

/// A lock whose holder did not fail (a failure ends the process).
pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no thread has failed")
}

/// A queue.
pub struct Lane {
    /// The handle.
    pub id: cl_command_queue,
    /// Commands run in the order of their enqueueing.
    pub in_order: bool,
    /// Its events have times.
    pub profiling: bool,
    /// The latest barrier without a wait list: when its enqueueing began and when it ended.
    barrier: Mutex<Option<(u64, u64)>>,
}

// SAFETY: OpenCL handles may be used from every thread.
unsafe impl Send for Lane {}
// SAFETY: as above.
unsafe impl Sync for Lane {}

impl Drop for Lane {
    fn drop(&mut self) {
        ok!(clReleaseCommandQueue(self.id));
    }
}

impl Lane {
    /// A queue of one of the devices, with random properties.
    pub fn new(world: &World, rng: &mut Rng) -> Arc<Self> {
        let (in_order, profiling) = (rng.percent(50), rng.percent(30));
        let mut bits = 0;
        if !in_order {
            bits |= CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
        }
        if profiling {
            bits |= CL_QUEUE_PROFILING_ENABLE;
        }
        let list = [cl_queue_properties::from(CL_QUEUE_PROPERTIES), bits, 0];
        Arc::new(Self {
            id: create!(clCreateCommandQueueWithProperties(
                world.context,
                *rng.pick(&world.devices),
                list.as_ptr()
            )),
            in_order,
            profiling,
            barrier: Mutex::default(),
        })
    }

    /// A barrier that all later commands wait for.
    pub fn barrier(&self) {
        let begin = tick();
        ok!(clEnqueueBarrierWithWaitList(self.id, 0, null(), null_mut()));
        *lock(&self.barrier) = Some((begin, tick()));
    }

    /// A command enqueued from `begin` on comes after a node without waiting for its event.
    fn orders(self: &Arc<Self>, node: &Node, begin: u64) -> bool {
        if node.is_complete() {
            return true;
        }
        let Some(lane) = &node.lane else { return false };
        Arc::ptr_eq(lane, self)
            && (self.in_order
                || lock(&self.barrier).is_some_and(|(from, to)| node.end < from && to < begin))
    }
}

/// A command that was enqueued, or a user event.
pub struct Node {
    /// Its queue, none for a user event.
    pub lane: Option<Arc<Lane>>,
    /// Its event, if one was asked for.
    pub event: Option<cl_event>,
    /// What it is.
    pub name: &'static str,
    /// When its enqueueing had ended.
    pub end: u64,
    /// It is not carried out, because something it waits for fails.
    pub fails: bool,
    complete: AtomicBool,
}

// SAFETY: OpenCL handles may be used from every thread.
unsafe impl Send for Node {}
// SAFETY: as above.
unsafe impl Sync for Node {}

impl Drop for Node {
    fn drop(&mut self) {
        if let Some(event) = self.event {
            ok!(clReleaseEvent(event));
        }
    }
}

impl Node {
    /// Of a command just enqueued.
    pub fn new(
        name: &'static str,
        lane: Option<Arc<Lane>>,
        event: Option<cl_event>,
        fails: bool,
    ) -> Arc<Self> {
        Arc::new(Self {
            lane,
            event,
            name,
            end: tick(),
            fails,
            complete: AtomicBool::new(false),
        })
    }

    /// It is known to be over.
    pub fn is_complete(&self) -> bool {
        self.complete.load(Ordering::Acquire)
    }

    /// Somebody has seen that it is over.
    pub fn set_complete(&self) {
        self.complete.store(true, Ordering::Release);
    }

    /// Asks whether it is over.
    pub fn poll(&self) -> bool {
        if self.is_complete() {
            return true;
        }
        let Some(event) = self.event else {
            return false;
        };
        let status = info_value!(
            i32,
            clGetEventInfo(event),
            CL_EVENT_COMMAND_EXECUTION_STATUS
        );
        if status > CL_COMPLETE {
            return false;
        }
        self.check_status(status);
        self.set_complete();
        true
    }

    fn check_status(&self, status: cl_int) {
        assert_eq!(
            status < 0,
            self.fails,
            "{} ended with {}",
            self.name,
            code_name(status)
        );
    }

    /// An event that comes after it: its own, or that of a marker in its queue. True: to be released.
    fn event_after(&self) -> (cl_event, bool) {
        if let Some(event) = self.event {
            return (event, false);
        }
        let lane = self.lane.as_ref().expect("user events have events");
        let mut event = null_mut();
        ok!(clEnqueueMarkerWithWaitList(lane.id, 0, null(), &mut event));
        (event, true)
    }

    /// Waits until it is over, in one of the ways that there are.
    pub fn finish(&self, rng: &mut Rng) {
        if self.is_complete() {
            return;
        }
        match (self.event, &self.lane, rng.below(4)) {
            (Some(event), _, 0 | 1) => {
                let code = call!(clWaitForEvents(1, &event));
                let expected = if self.fails {
                    CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST
                } else {
                    0
                };
                assert_eq!(
                    code,
                    expected,
                    "waiting for {}: {}",
                    self.name,
                    code_name(code)
                );
            }
            (Some(_), lane, 2) => {
                if let Some(lane) = lane {
                    ok!(clFlush(lane.id));
                }
                while !self.poll() {
                    std::thread::yield_now();
                }
            }
            (_, Some(lane), 3) => {
                let mut event = null_mut();
                ok!(clEnqueueMarkerWithWaitList(lane.id, 0, null(), &mut event));
                ok!(clWaitForEvents(1, &event));
                ok!(clReleaseEvent(event));
            }
            (_, Some(lane), _) => ok!(clFinish(lane.id)),
            (Some(event), None, _) => {
                call!(clWaitForEvents(1, &event));
            }
            (None, None, _) => {}
        }
        if let Some(event) = self.event {
            let status = info_value!(
                i32,
                clGetEventInfo(event),
                CL_EVENT_COMMAND_EXECUTION_STATUS
            );
            assert!(status <= CL_COMPLETE, "{} is not over: {status}", self.name);
            self.check_status(status);
            if let (Some(lane), false) = (&self.lane, self.fails) {
                if lane.profiling && rng.percent(30) {
                    self.check_times(event);
                }
            }
        }
        self.set_complete();
    }

    fn check_times(&self, event: cl_event) {
        let names = [
            CL_PROFILING_COMMAND_QUEUED,
            CL_PROFILING_COMMAND_SUBMIT,
            CL_PROFILING_COMMAND_START,
            CL_PROFILING_COMMAND_END,
            CL_PROFILING_COMMAND_COMPLETE,
        ];
        let times = names.map(|name| info_value!(cl_ulong, clGetEventProfilingInfo(event), name));
        assert!(times.is_sorted(), "times of {}: {times:?}", self.name);
    }
}

/// A part of a buffer that is mapped.
pub struct Mapped {
    /// Which map.
    pub id: u64,
    /// The bytes.
    pub range: Range<usize>,
    /// For writing.
    pub write: bool,
}

struct Access {
    range: Range<usize>,
    write: bool,
    node: Arc<Node>,
}

/// What a buffer's lock protects.
pub struct Contents {
    /// The bytes after all that was enqueued.
    pub bytes: Vec<u8>,
    /// What is mapped.
    pub mapped: Vec<Mapped>,
    log: Vec<Access>,
}

/// A view of a buffer: the buffer itself or a sub-buffer.
#[derive(Clone, Copy)]
pub struct View {
    /// The handle.
    pub mem: cl_mem,
    /// Where it begins in the buffer.
    pub origin: usize,
    /// Its size.
    pub size: usize,
}

/// A buffer with some sub-buffers, and images over it; or an image alone.
pub struct Buf {
    views: Vec<View>,
    /// The images.
    pub pictures: Vec<Picture>,
    /// The application's memory (CL_MEM_USE_HOST_PTR), 0: none.
    pub host: usize,
    /// The model.
    pub contents: Mutex<Contents>,
}

// SAFETY: OpenCL handles may be used from every thread.
unsafe impl Send for Buf {}
// SAFETY: as above.
unsafe impl Sync for Buf {}

/// Blocks of host memory that buffers still use.
pub static HOST_BLOCKS: AtomicUsize = AtomicUsize::new(0);

struct HostBlock(*mut u8, Layout);

extern "C" fn free_host(_: cl_mem, data: *mut c_void) {
    // SAFETY: the box that `Buf::new` has given to this callback, which is called once.
    let block = unsafe { Box::from_raw(data.cast::<HostBlock>()) };
    // SAFETY: allocated there with this layout, and the buffer is gone.
    unsafe { std::alloc::dealloc(block.0, block.1) };
    HOST_BLOCKS.fetch_sub(1, Ordering::SeqCst);
}

impl Buf {
    /// A buffer of a random size and kind.
    pub fn new(world: &World, rng: &mut Rng) -> Arc<Self> {
        let size = match rng.below(10) {
            0..=4 => 4096 * (1 + rng.below(8)),
            5..=7 => 1024 * (1 + rng.below(256)),
            8 => 4 * (256 + rng.below(16384)),
            _ => 300_000 + 4 * rng.below(100_000),
        };
        let bytes = rng.bytes(size);
        let mut host = 0;
        let kind = rng.below(4);
        let flags = [
            CL_MEM_COPY_HOST_PTR,
            CL_MEM_COPY_HOST_PTR | CL_MEM_ALLOC_HOST_PTR,
            CL_MEM_USE_HOST_PTR,
            0,
        ][kind];
        let align = if rng.percent(50) { 4096 } else { 64 };
        let layout = Layout::from_size_align(size, align).expect("a layout");
        let pointer = match kind {
            2 => {
                // SAFETY: the size is not zero; the block is filled before it is used.
                let block = unsafe {
                    let block = std::alloc::alloc(layout);
                    std::ptr::copy_nonoverlapping(bytes.as_ptr(), block, size);
                    block
                };
                host = block as usize;
                block.cast()
            }
            3 => null_mut(),
            _ => bytes.as_ptr().cast_mut().cast(),
        };
        let access = *rng.pick(&[CL_MEM_READ_WRITE, 0]);
        let mem = create!(clCreateBuffer(world.context, access | flags, size, pointer));
        if host != 0 {
            HOST_BLOCKS.fetch_add(1, Ordering::SeqCst);
            let block = Box::into_raw(Box::new(HostBlock(host as *mut u8, layout)));
            ok!(clSetMemObjectDestructorCallback(
                mem,
                Some(free_host),
                block.cast()
            ));
        }
        let mut views = vec![View {
            mem,
            origin: 0,
            size,
        }];
        for _ in 0..rng.below(4) {
            let origin = rng.below(size.div_ceil(world.align)) * world.align;
            let sub = 4 * (1 + rng.below((size - origin) / 4));
            let region = cl_buffer_region { origin, size: sub };
            let mem = create!(clCreateSubBuffer(
                mem,
                0,
                CL_BUFFER_CREATE_TYPE_REGION,
                (&raw const region).cast()
            ));
            views.push(View {
                mem,
                origin,
                size: sub,
            });
        }
        let mut pictures = Vec::new();
        if world.images {
            for _ in 0..rng.below(4) {
                let view = *rng.pick(&views);
                pictures.extend(Picture::over(world, view, rng));
            }
        }
        let buffer = Arc::new(Self {
            views,
            pictures,
            host,
            contents: Mutex::new(Contents {
                bytes,
                mapped: Vec::new(),
                log: Vec::new(),
            }),
        });
        if kind == 3 {
            let contents = lock(&buffer.contents);
            ok!(clEnqueueWriteBuffer(
                world.filler,
                mem,
                CL_TRUE,
                0,
                size,
                contents.bytes.as_ptr().cast(),
                0,
                null(),
                null_mut()
            ));
        }
        buffer
    }

    /// An image with texels of its own.
    pub fn image(world: &World, rng: &mut Rng) -> Arc<Self> {
        let (picture, bytes) = Picture::own(world, rng);
        Arc::new(Self {
            views: Vec::new(),
            pictures: vec![picture],
            host: 0,
            contents: Mutex::new(Contents {
                bytes,
                mapped: Vec::new(),
                log: Vec::new(),
            }),
        })
    }

    /// The buffer or one of its sub-buffers.
    pub fn view(&self, rng: &mut Rng) -> View {
        *rng.pick(&self.views)
    }
}

impl Drop for Buf {
    fn drop(&mut self) {
        // The buffer itself goes first: its sub-buffers and images keep it alive.
        for view in &self.views {
            ok!(clReleaseMemObject(view.mem));
        }
        for picture in &self.pictures {
            ok!(clReleaseMemObject(picture.mem));
        }
    }
}

/// Bytes that a command uses.
pub struct Use {
    /// The buffer.
    pub buffer: Arc<Buf>,
    /// Bytes of the buffer (not of the view).
    pub range: Range<usize>,
    /// It changes them.
    pub write: bool,
    /// The map that this use belongs to, which does not stand in its way. 0: none.
    pub map: u64,
}

impl Use {
    /// It reads them.
    pub fn read(buffer: &Arc<Buf>, range: Range<usize>) -> Self {
        Self {
            buffer: buffer.clone(),
            range,
            write: false,
            map: 0,
        }
    }

    /// It writes them.
    pub fn write(buffer: &Arc<Buf>, range: Range<usize>) -> Self {
        Self {
            write: true,
            ..Self::read(buffer, range)
        }
    }
}

/// The models of the buffers that a command uses, locked.
pub struct Locked<'a> {
    guards: Vec<(*const Buf, MutexGuard<'a, Contents>)>,
}

impl Locked<'_> {
    /// The contents of a buffer.
    pub fn of(&mut self, buffer: &Arc<Buf>) -> &mut Contents {
        let place = Arc::as_ptr(buffer);
        let found = self.guards.iter_mut().find(|(at, _)| *at == place);
        &mut found.expect("the buffer is among those used").1
    }
}

fn overlap(a: &Range<usize>, b: &Range<usize>) -> bool {
    a.start < b.end && b.start < a.end
}

/// How a command is enqueued.
pub struct Plan<'a> {
    /// What it is.
    pub name: &'static str,
    /// Where.
    pub lane: &'a Arc<Lane>,
    /// The bytes it touches.
    pub uses: &'a [Use],
    /// What else it waits for.
    pub after: &'a [Arc<Node>],
    /// The caller waits.
    pub blocking: bool,
    /// An event is asked for.
    pub want_event: bool,
}

/// What became of a command.
pub enum Outcome {
    /// Something that it needs is mapped: not enqueued.
    Skipped,
    /// It was refused, as it had to be: it is blocking and waits for what fails.
    Refused,
    /// Enqueued.
    Enqueued(Arc<Node>),
}

impl Plan<'_> {
    /// Enqueues the command with all that it must wait for and carries out its effect on the model.
    pub fn enqueue(
        &self,
        rng: &mut Rng,
        call: impl FnOnce(cl_uint, *const cl_event, *mut cl_event) -> cl_int,
        effect: impl FnOnce(&mut Locked<'_>),
    ) -> Outcome {
        let mut buffers: Vec<&Arc<Buf>> = self.uses.iter().map(|one| &one.buffer).collect();
        buffers.sort_by_key(|buffer| Arc::as_ptr(buffer) as usize);
        buffers.dedup_by(|a, b| Arc::ptr_eq(a, b));
        let mut locked = Locked {
            guards: buffers
                .into_iter()
                .map(|buffer| (Arc::as_ptr(buffer), lock(&buffer.contents)))
                .collect(),
        };
        let begin = tick();
        let mut before: Vec<Arc<Node>> = Vec::new();
        for one in self.uses {
            let contents = locked.of(&one.buffer);
            let in_the_way = |mapped: &Mapped| {
                mapped.id != one.map
                    && (mapped.write || one.write)
                    && overlap(&mapped.range, &one.range)
            };
            if contents.mapped.iter().any(in_the_way) {
                return Outcome::Skipped;
            }
            for access in &contents.log {
                if (access.write || one.write) && overlap(&access.range, &one.range) {
                    before.push(access.node.clone());
                }
            }
        }
        let mut events: Vec<cl_event> = Vec::new();
        let mut markers: Vec<cl_event> = Vec::new();
        for node in &before {
            // A wait that the queue's order makes needless does no harm either.
            if self.lane.orders(node, begin) && !(node.event.is_some() && rng.percent(10)) {
                continue;
            }
            let (event, marker) = node.event_after();
            if !events.contains(&event) {
                events.push(event);
            }
            if marker {
                markers.push(event);
            }
        }
        events.extend(self.after.iter().filter_map(|node| node.event));
        let fails = self.after.iter().any(|node| node.fails);
        let list = if events.is_empty() {
            null()
        } else {
            events.as_ptr()
        };
        let mut event = null_mut();
        let place = if self.want_event {
            &raw mut event
        } else {
            null_mut()
        };
        let code = call(events.len() as cl_uint, list, place);
        for marker in markers {
            ok!(clReleaseEvent(marker));
        }
        if fails && self.blocking {
            assert!(code < 0, "{} waits for what fails and succeeded", self.name);
            return Outcome::Refused;
        }
        assert_eq!(code, 0, "{}: {}", self.name, code_name(code));
        let made = self.want_event.then_some(event);
        let node = Node::new(self.name, Some(self.lane.clone()), made, fails);
        // A blocking write may only have taken the data over.
        if self.blocking && !self.name.starts_with("write") {
            node.set_complete();
        }
        if !fails {
            effect(&mut locked);
            for one in self.uses {
                let contents = locked.of(&one.buffer);
                if one.write {
                    let covers = |a: &Access| {
                        one.range.start <= a.range.start && a.range.end <= one.range.end
                    };
                    contents.log.retain(|access| !covers(access));
                }
                if contents.log.len() > 24 {
                    contents.log.retain(|access| !access.node.poll());
                }
                contents.log.push(Access {
                    range: one.range.clone(),
                    write: one.write,
                    node: node.clone(),
                });
            }
        }
        Outcome::Enqueued(node)
    }
}

/// What all threads share.
pub struct World {
    /// The context.
    pub context: cl_context,
    /// Its devices.
    pub devices: Vec<cl_device_id>,
    /// Alignment of sub-buffers.
    pub align: usize,
    /// A queue for initial contents.
    pub filler: cl_command_queue,
    /// The devices have images of every type, over buffers as well, and kernels may write them.
    pub images: bool,
}

// SAFETY: OpenCL handles may be used from every thread.
unsafe impl Send for World {}
// SAFETY: as above.
unsafe impl Sync for World {}

impl World {
    /// A context of so many devices at most, 0: of all.
    pub fn new(most: usize, report: Report) -> Self {
        let mut platform = null_mut();
        ok!(clGetPlatformIDs(1, &mut platform, null_mut()));
        let (all, mut count) = (CL_DEVICE_TYPE_ALL, 0);
        ok!(clGetDeviceIDs(platform, all, 0, null_mut(), &mut count));
        let mut devices = vec![null_mut(); count as usize];
        ok!(clGetDeviceIDs(
            platform,
            all,
            count,
            devices.as_mut_ptr(),
            null_mut()
        ));
        if most > 0 {
            devices.truncate(most);
        }
        let context = create!(clCreateContext(
            null(),
            devices.len() as cl_uint,
            devices.as_ptr(),
            report,
            null_mut()
        ));
        let align = |&device: &cl_device_id| {
            info_value!(
                cl_uint,
                clGetDeviceInfo(device),
                CL_DEVICE_MEM_BASE_ADDR_ALIGN
            ) as usize
                / 8
        };
        let images = |&device: &cl_device_id| {
            let extensions = info_text!(clGetDeviceInfo(device), CL_DEVICE_EXTENSIONS);
            ["cl_khr_3d_image_writes", "cl_ext_image_from_buffer"]
                .iter()
                .all(|name| extensions.split(' ').any(|one| one == *name))
        };
        Self {
            context,
            align: devices.iter().map(align).fold(4, usize::max),
            filler: create!(clCreateCommandQueueWithProperties(
                context,
                devices[0],
                null()
            )),
            images: devices.iter().all(images),
            devices,
        }
    }
}

impl World {
    /// The context has several devices.
    pub fn several(&self) -> bool {
        self.devices.len() > 1
    }
}

impl Drop for World {
    fn drop(&mut self) {
        ok!(clReleaseCommandQueue(self.filler));
        ok!(clReleaseContext(self.context));
    }
}
