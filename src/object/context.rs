//! A context: devices, the properties it was made with, where errors are reported.
//!
//! Properties are kept verbatim (with the closing zero) for CL_CONTEXT_PROPERTIES. The context knows its queues weakly,
//! so that memory which dies while commands still use it can be cleaned up when those have finished.

use super::addresses::{Addressed, Allocations};
use super::callback::{run_destructors, Callback, Destructors, ErrorFn, ObjectFn};
use super::context_properties;
use super::device::{of_device, place_of, Device};
use super::device_side::DeviceSide;
use super::mem::reach::{HostBacking, Reachable};
use super::memories::{Memories, MemoryIndex};
use super::progress::ContextQueue;
use super::sharing::Sharing;
use crate::backend::mirror::Mirror;
use crate::cl::{self, cl_context_properties};
use crate::compile::printf::Output;
use crate::compile::store::pipelines;
use crate::error::{ensure, ClResult};
use crate::handle::{Body, Kind, Object, Ref};
use crate::util::lock::{rank, Mutex};
use spirv_lowering::options::ZeroedMemory;
use std::ffi::c_void;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};

/// A context.
pub struct Context {
    /// The devices of the context, each once.
    pub devices: Vec<Ref<Device>>,
    /// The memories of the context.
    pub memories: Memories,
    /// CL_CONTEXT_PROPERTIES.
    pub properties: Vec<cl_context_properties>,
    /// Contexts of OpenGL that it shares objects with.
    pub sharing: Sharing,
    /// The memory that kernels find zeroed (cl_khr_initialize_memory).
    pub zeroed: ZeroedMemory,
    /// The destination of what kernels print.
    pub output: Arc<Output>,
    /// Set if it can be terminated (cl_khr_terminate_context).
    pub terminable: bool,
    terminated: AtomicBool,
    notify: Option<Callback<ErrorFn>>,
    destructors: Destructors,
    queues: Mutex<Vec<Weak<dyn ContextQueue>>, { rank::CONTEXT_QUEUES }>,
    /// The memory with an address that the application has.
    pub allocations: Allocations,
    /// The shared virtual memory that several devices have at one address.
    pub(super) mirror: Mirror,
    /// The buffers whose device addresses the application has queried.
    pub addressed: Addressed,
    /// The memory of the host that devices access besides allocations.
    pub(crate) reachable: Reachable,
    follows_pointers: AtomicBool,
    /// Held by each event that the application has yet to end.
    pub(super) awaited: Arc<()>,
    /// For kernels that enqueue others, one a device; made when it is first needed.
    on_device: Vec<OnceLock<Arc<DeviceSide>>>,
    handle: usize,
}

impl Body for Context {
    const KIND: Kind = Kind::Context;
}

impl Context {
    /// Creates a context. `properties` is the application's list with its closing zero, or empty where it gave none.
    /// `user_data` is that of `notify` and of the function that receives what kernels print.
    pub fn new(
        devices: Vec<Ref<Device>>,
        properties: Vec<cl_context_properties>,
        notify: Option<ErrorFn>,
        user_data: *mut c_void,
    ) -> ClResult<Ref<Self>> {
        let named = context_properties::parse(&properties, cl::CL_INVALID_PROPERTY)?;
        let print = Callback::at(named.print, user_data);
        let notify = match print {
            Some(_) => notify.map(|notify| Callback::new(notify, user_data)),
            None => Callback::optional(notify, user_data)?,
        };
        let write = print.map(|print| Box::new(move |text: &[u8], last| print.call(text, last)));
        let output = Output::new(write.map(|write| write as _), named.print_size);
        ensure!(
            !devices.is_empty(),
            cl::CL_INVALID_VALUE,
            "a context needs a device"
        );
        let mut unique: Vec<Ref<Device>> = Vec::with_capacity(devices.len());
        for device in devices {
            if !unique.iter().any(|known| Arc::ptr_eq(known, &device)) {
                unique.push(device);
            }
        }
        ensure!(
            !unique.iter().any(|device| device.backend.is_lost()),
            cl::CL_DEVICE_NOT_AVAILABLE,
            "the device was lost"
        );
        ensure!(
            !named.terminable || unique.iter().all(|device| device.caps().terminable),
            cl::CL_INVALID_PROPERTY,
            "a device of the context cannot terminate it"
        );
        let sharing = Sharing::new(named.gl)?;
        Ok(Object::new_cyclic(|me| Self {
            sharing,
            zeroed: named.zeroed,
            output: Arc::new(output),
            terminable: named.terminable,
            terminated: AtomicBool::new(false),
            on_device: unique.iter().map(|_| OnceLock::new()).collect(),
            memories: Memories::new(&unique),
            devices: unique,
            properties,
            notify,
            destructors: Destructors::default(),
            queues: Mutex::default(),
            allocations: Allocations::default(),
            mirror: Mirror::default(),
            addressed: Addressed::default(),
            reachable: Reachable::default(),
            follows_pointers: AtomicBool::new(false),
            awaited: Arc::default(),
            handle: me.as_ptr() as usize,
        }))
    }

    /// Implements clTerminateContextKHR.
    pub fn terminate(&self) -> ClResult {
        ensure!(
            self.terminable,
            cl::CL_INVALID_OPERATION,
            "the context was created without CL_CONTEXT_TERMINATE_KHR"
        );
        // Nothing is enqueued from here on, but by threads that are at it.
        ensure!(
            !self.terminated.swap(true, Ordering::SeqCst),
            cl::CL_CONTEXT_TERMINATED_KHR,
            "the context has been terminated already"
        );
        self.queues().iter().for_each(|queue| queue.terminate());
        if let Some(notify) = &self.notify {
            notify.call("the context was terminated");
        }
        Ok(())
    }

    /// Returns true if the context was terminated.
    #[inline]
    pub fn is_terminated(&self) -> bool {
        self.terminated.load(Ordering::SeqCst)
    }

    /// Returns CL_CONTEXT_TERMINATED_KHR if the context was terminated.
    #[inline]
    pub fn ensure_works(&self) -> ClResult {
        ensure!(
            !self.is_terminated(),
            cl::CL_CONTEXT_TERMINATED_KHR,
            "the context was terminated"
        );
        Ok(())
    }

    /// Returns the state that kernels which enqueue others share on the device of that number.
    pub fn on_device(&self, index: usize) -> ClResult<&Arc<DeviceSide>> {
        let slot = of_device(&self.on_device, index)?;
        if let Some(known) = slot.get() {
            return Ok(known);
        }
        // Two threads may make one each: the second goes.
        let made = Arc::new(DeviceSide::new(
            of_device(&self.devices, index)?.backend.as_ref(),
        )?);
        Ok(slot.get_or_init(|| made))
    }

    /// Returns the device-side state of a device, if the context has had a kernel or queue that
    /// needs it.
    pub fn created_on_device(&self, index: usize) -> Option<&Arc<DeviceSide>> {
        self.on_device.get(index)?.get()
    }

    /// Returns the memory of a device of the context.
    pub fn memory_of(&self, device: &Ref<Device>) -> ClResult<MemoryIndex> {
        self.memories.of(self.device_index(device)?)
    }

    /// Returns the memories of the devices for which `able` returns true.
    pub(super) fn memories_of(&self, able: impl Fn(&Ref<Device>) -> bool) -> Vec<MemoryIndex> {
        let devices = self.devices.iter().filter(|device| able(device));
        let mut found: Vec<_> = devices.filter_map(|d| self.memory_of(d).ok()).collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Returns true if there is, or was, memory for which [`Context::host_backing`] returns a backing.
    #[inline]
    pub(crate) fn has_host_backing(&self) -> bool {
        self.allocations.any() || !self.reachable.is_empty()
    }

    /// Returns the backing of a range of addresses of the host, for devices with this memory.
    pub fn host_backing(&self, memory: MemoryIndex, range: &Range<usize>) -> HostBacking {
        match self.allocations.host_backing(memory, range) {
            HostBacking::Host => self.reachable.find(memory, range),
            found => found,
        }
    }

    /// Returns true if there is, or was, memory through which the host may see the writes of a
    /// device without a command.
    pub(crate) fn host_sees_devices(&self) -> bool {
        self.follows_pointers.load(Ordering::SeqCst) || self.has_host_backing()
    }

    /// Returns true if there are events that the application has yet to end, so that a thread of the application which waits for
    /// a command may wait for itself.
    pub(crate) fn awaits_application(&self) -> bool {
        Arc::strong_count(&self.awaited) > 1
    }

    /// Records the launch of a kernel that may access any memory of the host.
    pub(crate) fn note_pointers_followed(&self) {
        if !self.follows_pointers.load(Ordering::Relaxed) {
            self.follows_pointers.store(true, Ordering::SeqCst);
        }
    }

    /// Returns true if a kernel that may access any host memory may be pending in one of the
    /// context's queues.
    pub(crate) fn pointers_are_followed(&self) -> bool {
        self.follows_pointers.load(Ordering::SeqCst)
            && self
                .queues()
                .iter()
                .any(|queue| queue.progress().follows_pointers())
    }

    /// Returns the place of a device among those of the context.
    pub fn device_index(&self, device: &Ref<Device>) -> ClResult<usize> {
        place_of(device, &self.devices, "context")
    }

    /// Implements clSetContextDestructorCallback.
    pub fn add_destructor(&self, callback: Callback<ObjectFn>) {
        self.destructors.lock().push(callback);
    }

    /// Reports an error that no call returns, to the log and to the application's callback. Not to be called with
    /// locks held.
    pub fn report(&self, message: &str) {
        crate::log!(Error, "{message}");
        if let Some(notify) = &self.notify {
            notify.call(message);
        }
    }

    /// Makes a queue known.
    pub(crate) fn add_queue(&self, queue: Weak<dyn ContextQueue>) {
        let mut queues = self.queues.lock();
        queues.retain(|known| known.strong_count() > 0);
        queues.push(queue);
    }

    /// Returns true if there is more than one queue.
    pub(crate) fn has_other_queues(&self) -> bool {
        self.queues
            .lock()
            .iter()
            .filter(|known| known.strong_count() > 0)
            .count()
            > 1
    }

    /// Returns the queues that are alive.
    pub(crate) fn queues(&self) -> Vec<Arc<dyn ContextQueue>> {
        self.queues
            .lock()
            .iter()
            .filter_map(Weak::upgrade)
            .collect()
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        for device in &self.devices {
            pipelines::keep(device.backend.as_ref());
        }
        run_destructors(std::mem::take(self.destructors.get_mut()), self.handle);
    }
}
