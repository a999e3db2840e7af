//! Semaphores (cl_khr_semaphore): payloads that commands signal and wait for, again and again.
//!
//! A wait is paired with a signal when both are enqueued: it waits for the event of the signal, so it is a command like any
//! other, and the semaphore may be signalled again at once. A wait that is enqueued before its signal waits for a user event,
//! which ends as the signal does. A signal that fails makes its wait fail.
//!
//! A semaphore that is shared with other APIs or processes (cl_khr_external_semaphore) has a payload of the device besides,
//! which commands wait for and signal as well. There may be a signal that is not known here: as in Vulkan, whoever enqueues a
//! wait for it has seen to it that the signal is submitted.

use super::context::Context;
use super::device::Device;
use super::event::{Event, Readiness};
use super::external_handles::{of_handle, semaphore_kind, semaphore_names};
use super::info::{answer, Info, InfoOut, Written};
use super::properties::Form;
use crate::backend::external::{self, SemaphoreHandle};
use crate::backend::DeviceError;
use crate::cl::{
    self, cl_bool, cl_external_semaphore_handle_type_khr, cl_int, cl_semaphore_payload_khr,
    cl_semaphore_properties_khr, cl_semaphore_type_khr, cl_uint,
};
use crate::error::{ensure, err, ClError, ClResult, OrErr};
use crate::handle::{self, Body, Kind, Object, Ref};
use crate::util::lock::{rank, Mutex};
use std::collections::VecDeque;
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

/// A semaphore.
pub struct Semaphore {
    /// CL_SEMAPHORE_CONTEXT_KHR
    pub context: Ref<Context>,
    /// CL_SEMAPHORE_DEVICE_HANDLE_LIST_KHR: the devices whose queues may use it.
    pub devices: Vec<Ref<Device>>,
    /// CL_SEMAPHORE_PROPERTIES_KHR, with the closing zero.
    properties: Vec<cl_semaphore_properties_khr>,
    payload: Mutex<Payload, { rank::SEMAPHORE }>,
    shared: Option<Shared>,
}

/// The payload that others share.
struct Shared {
    payload: Arc<dyn external::Semaphore>,
    /// The kind of handle.
    kind: SemaphoreHandle,
    /// The payload came from a handle.
    imported: bool,
    /// Others may have a handle of it.
    known: AtomicBool,
}

impl Shared {
    /// Returns true if others may signal it.
    fn is_known(&self) -> bool {
        self.known.load(Ordering::Acquire)
    }
}

impl Body for Semaphore {
    const KIND: Kind = Kind::Semaphore;
}

/// The signals and waits without a partner.
#[derive(Default)]
struct Payload {
    /// The events of signals that the next waits take, oldest first. There are several where a signal is enqueued before
    /// the wait for the one before it, which is executed before it all the same.
    signals: VecDeque<Ref<Event>>,
    /// User events that the next signals settle, oldest first.
    waits: VecDeque<Ref<Event>>,
}

impl Payload {
    /// Removes signals that were executed while the semaphore was signalled.
    fn update(&mut self) {
        let mut signalled = false;
        self.signals.retain(|signal| {
            let complete = match (signal.readiness(), signal.owner()) {
                (Readiness::Done, _) => true,
                (Readiness::Recorded(place), Some(owner)) => {
                    owner.progress().timeline.has_reached(place.value)
                }
                _ => false,
            };
            !(complete && std::mem::replace(&mut signalled, complete))
        });
    }
}

/// The dependency of a wait.
pub struct Taken {
    /// The event to wait for.
    pub event: Ref<Event>,
    /// Set if it is of a signal that was enqueued already.
    signalled: bool,
}

/// The property list of a new semaphore.
#[derive(Default)]
struct Wanted {
    kind: Option<cl_semaphore_properties_khr>,
    devices: Option<Vec<cl_semaphore_properties_khr>>,
    exports: Option<Vec<cl_semaphore_properties_khr>>,
    imports: Vec<(SemaphoreHandle, cl_int)>,
}

/// Returns the form of a property of a semaphore, if it is known.
pub fn form(name: cl_semaphore_properties_khr) -> Option<Form> {
    match u32::try_from(name).ok()? {
        cl::CL_SEMAPHORE_TYPE_KHR => Some(Form::Value),
        cl::CL_SEMAPHORE_DEVICE_HANDLE_LIST_KHR => Some(Form::List),
        _ if name == cl::CL_SEMAPHORE_EXPORT_HANDLE_TYPES_KHR => Some(Form::List),
        _ => semaphore_kind(name).map(|_| Form::Value),
    }
}

impl Wanted {
    /// Reads a list whose form the C edge has checked.
    fn read(list: &[cl_semaphore_properties_khr]) -> ClResult<Self> {
        let mut wanted = Self::default();
        let mut rest = list.iter().copied();
        while let Some(name) = rest.next().filter(|name| *name != 0) {
            let is = |known: u32| name == cl_semaphore_properties_khr::from(known);
            if form(name) == Some(Form::List) {
                let values = rest.by_ref().take_while(|value| *value != 0).collect();
                match is(cl::CL_SEMAPHORE_DEVICE_HANDLE_LIST_KHR) {
                    true => wanted.devices = Some(values),
                    false => wanted.exports = Some(values),
                }
            } else if is(cl::CL_SEMAPHORE_TYPE_KHR) {
                wanted.kind = rest.next();
            } else if let (Some(kind), Some(fd)) = (semaphore_kind(name), rest.next()) {
                // A file descriptor is an `int`, whatever fills the other bits.
                wanted.imports.push((kind, fd as cl_int));
            } else {
                return err(cl::CL_INVALID_PROPERTY, "an unknown property");
            }
        }
        Ok(wanted)
    }

    /// Makes the payload that others share, if the list names one.
    fn shared(&self, devices: &[Ref<Device>]) -> ClResult<Option<Shared>> {
        if self.imports.is_empty() && self.exports.is_none() {
            return Ok(None);
        }
        ensure!(
            self.imports.len() <= 1,
            cl::CL_INVALID_PROPERTY,
            "more than one handle"
        );
        ensure!(
            self.imports.is_empty() || self.exports.is_none(),
            cl::CL_INVALID_OPERATION,
            "a semaphore with the payload of a handle cannot be exported"
        );
        let device = devices
            .first()
            .or_err(cl::CL_INVALID_DEVICE, "no device of the semaphore")?;
        let caps = device.caps();
        if let Some((kind, fd)) = self.imports.first() {
            ensure!(
                caps.semaphore_imports.contains(kind),
                cl::CL_INVALID_DEVICE,
                "the device imports no such handles"
            );
            return Ok(Some(Shared {
                payload: device
                    .backend
                    .import_semaphore(*kind, *fd)
                    .map_err(refused)?,
                kind: *kind,
                imported: true,
                known: AtomicBool::new(true),
            }));
        }
        let exports = self.exports.as_deref().unwrap_or_default();
        ensure!(
            exports.len() <= 1,
            cl::CL_INVALID_VALUE,
            "more than one type of handles to export"
        );
        let Some(name) = exports.first() else {
            return Ok(None);
        };
        let kind =
            semaphore_kind(*name).or_err(cl::CL_INVALID_PROPERTY, "an unknown handle type")?;
        ensure!(
            caps.semaphore_exports.contains(&kind),
            cl::CL_INVALID_PROPERTY,
            "the device exports no such handles"
        );
        Ok(Some(Shared {
            payload: (device.backend.create_semaphore(kind))
                .map_err(|error| ClError::from(error).of_resources())?,
            kind,
            imported: false,
            known: AtomicBool::new(false),
        }))
    }

    /// Returns the devices of the list: one, if it is given, else that of the context.
    fn devices(&self, context: &Ref<Context>) -> ClResult<Vec<Ref<Device>>> {
        let Some(list) = &self.devices else {
            ensure!(
                context.devices.len() == 1,
                cl::CL_INVALID_PROPERTY,
                "a semaphore in a context with several devices names one of them"
            );
            return Ok(context.devices.clone());
        };
        let [device] = list[..] else {
            return err(
                cl::CL_INVALID_DEVICE,
                "the list of devices has not exactly one",
            );
        };
        let device = handle::lookup::<Device>(device as usize as *const c_void)?;
        context.device_index(&device)?;
        Ok(vec![device])
    }
}

impl Semaphore {
    /// Implements clCreateSemaphoreWithPropertiesKHR. `properties` with the closing zero; empty if there are none.
    pub fn new(
        context: &Ref<Context>,
        properties: Vec<cl_semaphore_properties_khr>,
    ) -> ClResult<Ref<Self>> {
        let wanted = Wanted::read(&properties)?;
        let kind = wanted
            .kind
            .or_err(cl::CL_INVALID_VALUE, "the semaphore has no type")?;
        ensure!(
            kind == cl_semaphore_properties_khr::from(cl::CL_SEMAPHORE_TYPE_BINARY_KHR),
            cl::CL_INVALID_PROPERTY,
            "unknown semaphore type {kind:#x}"
        );
        let devices = wanted.devices(context)?;
        let shared = wanted.shared(&devices)?;
        Ok(Object::new(Self {
            context: context.clone(),
            devices,
            properties,
            payload: Mutex::default(),
            shared,
        }))
    }

    /// Fails unless queues of this device of the context may use the semaphore.
    pub fn check(&self, context: &Ref<Context>, device: &Ref<Device>) -> ClResult {
        if !Arc::ptr_eq(&self.context, context) {
            let code = match self.context.device_index(device) {
                Ok(_) => cl::CL_INVALID_CONTEXT,
                Err(_) => cl::CL_INVALID_COMMAND_QUEUE,
            };
            return err(code, "the semaphore is of another context than the queue");
        }
        ensure!(
            self.devices.iter().any(|own| Arc::ptr_eq(own, device)),
            cl::CL_INVALID_COMMAND_QUEUE,
            "the semaphore is not for the device of the queue"
        );
        Ok(())
    }

    /// Returns the payload that others share, if there is one.
    pub fn payload(&self) -> Option<Arc<dyn external::Semaphore>> {
        self.shared.as_ref().map(|shared| shared.payload.clone())
    }

    /// Takes the signal for a wait that is enqueued, or the place of the next one. None: somebody else has signalled it.
    pub fn take(&self) -> Option<Taken> {
        let mut payload = self.payload.lock();
        payload.update();
        if let Some(event) = payload.signals.pop_front() {
            let signalled = true;
            return Some(Taken { event, signalled });
        }
        if self.shared.as_ref().is_some_and(Shared::is_known) {
            return None;
        }
        let event = Event::user(self.context.clone());
        payload.waits.push_back(event.clone());
        let signalled = false;
        Some(Taken { event, signalled })
    }

    /// Undoes [`Semaphore::take`] for a wait that could not be enqueued.
    pub fn put_back(&self, taken: Taken) {
        let mut payload = self.payload.lock();
        if taken.signalled {
            payload.signals.push_front(taken.event);
        } else {
            let is_other = |wait: &Ref<Event>| !Arc::ptr_eq(wait, &taken.event);
            payload.waits.retain(is_other);
        }
    }

    /// Notes that a command with this event signals the semaphore. Returns true if a wait was there first: it depends on the
    /// command now, which nobody else may ever submit.
    pub fn signal(&self, event: &Ref<Event>) -> bool {
        let mut payload = self.payload.lock();
        let Some(wait) = payload.waits.pop_front() else {
            if self.shared.as_ref().is_some_and(Shared::is_known) {
                // Others may have waited for those before.
                payload.signals.clear();
            }
            payload.update();
            let has_failed = |signal: &Ref<Event>| signal.readiness() == Readiness::Failed;
            payload.signals.retain(|signal| !has_failed(signal));
            payload.signals.push_back(event.clone());
            return false;
        };
        drop(payload);
        event.lead(&wait);
        true
    }

    /// Fails unless the semaphore is exported by handles of this kind for a device.
    pub fn check_export(
        &self,
        device: &Ref<Device>,
        kind: cl_external_semaphore_handle_type_khr,
    ) -> ClResult {
        ensure!(
            self.devices.iter().any(|own| Arc::ptr_eq(own, device)),
            cl::CL_INVALID_DEVICE,
            "the semaphore is not for this device"
        );
        ensure!(
            self.exports().contains(&kind),
            cl::CL_INVALID_VALUE,
            "the semaphore is not exported by such handles"
        );
        Ok(())
    }

    /// Implements clGetSemaphoreHandleForTypeKHR: returns a new file descriptor, which is the application's.
    pub fn export(&self) -> ClResult<cl_int> {
        let shared = self.shared.as_ref();
        let shared = shared.or_err(cl::CL_INVALID_VALUE, "the semaphore is not exported")?;
        if shared.kind == SemaphoreHandle::OpaqueFd {
            let fd = shared.payload.export(shared.kind)?;
            shared.known.store(true, Ordering::Release);
            return Ok(fd);
        }
        // A copy of the payload has the effect of a wait, and Vulkan wants the signal submitted.
        let taken = self.payload.lock().signals.pop_front();
        let signal = taken.or_err(cl::CL_INVALID_OPERATION, "the semaphore is not signalled")?;
        let fd = match signal.status() {
            status if status < 0 => err(cl::CL_INVALID_OPERATION, "its signal has failed"),
            status if status == cl::CL_QUEUED as cl_int => err(
                cl::CL_INVALID_OPERATION,
                "its signal waits for what is not submitted",
            ),
            _ => shared.payload.export(shared.kind).map_err(Into::into),
        };
        if fd.is_err() {
            self.payload.lock().signals.push_front(signal);
        }
        fd
    }

    /// Implements clReImportSemaphoreSyncFdKHR.
    pub fn import_sync_fd(&self, fd: cl_int) -> ClResult {
        let shared = self.shared.as_ref();
        let shared = shared
            .filter(|shared| shared.imported && shared.kind == SemaphoreHandle::SyncFd)
            .or_err(
                cl::CL_INVALID_SEMAPHORE_KHR,
                "the semaphore was not made of a sync file",
            )?;
        let imported = shared.payload.import_sync_fd(fd);
        imported.map_err(refused)
    }

    /// Returns CL_SEMAPHORE_EXPORT_HANDLE_TYPES_KHR.
    fn exports(&self) -> Vec<cl_external_semaphore_handle_type_khr> {
        let shared = self.shared.iter().filter(|shared| !shared.imported);
        shared
            .flat_map(|shared| semaphore_names(&[shared.kind]))
            .collect()
    }

    /// Returns CL_SEMAPHORE_PAYLOAD_KHR. As with an event, asking submits the signal.
    fn value(&self) -> cl_semaphore_payload_khr {
        let signal = self.payload.lock().signals.front().cloned();
        let complete = |event: Ref<Event>| event.status() == cl::CL_COMPLETE as cl::cl_int;
        signal.is_some_and(complete).into()
    }
}

/// Returns the error for a handle that the driver refuses.
fn refused(error: DeviceError) -> ClError {
    of_handle(error).of_resources()
}

impl Drop for Semaphore {
    fn drop(&mut self) {
        // Nobody can signal it any more.
        for wait in std::mem::take(&mut self.payload.get_mut().waits) {
            wait.settle(cl::CL_INVALID_SEMAPHORE_KHR).run();
        }
    }
}

impl Info for Ref<Semaphore> {
    fn query(&self, param: cl_uint, out: InfoOut<'_>) -> ClResult<Written> {
        if cl_semaphore_properties_khr::from(param) == cl::CL_SEMAPHORE_EXPORT_HANDLE_TYPES_KHR {
            return out.write(self.exports().as_slice());
        }
        answer! { param, out;
            CL_SEMAPHORE_CONTEXT_KHR => &self.context,
            CL_SEMAPHORE_REFERENCE_COUNT_KHR => self.api_refs(),
            CL_SEMAPHORE_PROPERTIES_KHR => &self.properties,
            CL_SEMAPHORE_TYPE_KHR => cl::CL_SEMAPHORE_TYPE_BINARY_KHR as cl_semaphore_type_khr,
            CL_SEMAPHORE_PAYLOAD_KHR => self.value(),
            CL_SEMAPHORE_DEVICE_HANDLE_LIST_KHR => &self.devices,
            CL_SEMAPHORE_EXPORTABLE_KHR => cl_bool::from(!self.exports().is_empty()),
        }
    }
}
