//! Semaphores (cl_khr_semaphore): payloads that commands signal and wait for, again and again.
//!
//! A wait is paired with a signal when both are enqueued: it waits for the event of the signal, so it is a command like any
//! other, and the semaphore may be signalled again at once. A wait that is enqueued before its signal waits for a user event,
//! which ends as the signal does. A signal that fails makes its wait fail.

use super::context::Context;
use super::device::Device;
use super::event::{Event, Readiness};
use super::info::{answer, Info, InfoOut, Written};
use super::properties::Form;
use crate::cl::{
    self, cl_semaphore_payload_khr, cl_semaphore_properties_khr, cl_semaphore_type_khr, cl_uint,
};
use crate::error::{ensure, err, ClResult, OrErr};
use crate::handle::{self, Body, Kind, Object, Ref};
use crate::util::lock::{rank, Mutex};
use std::collections::VecDeque;
use std::ffi::c_void;
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
}

impl Body for Semaphore {
    const KIND: Kind = Kind::Semaphore;
}

/// The signals and waits without a partner.
#[derive(Default)]
struct Payload {
    /// The event of the signal that the next wait takes.
    signal: Option<Ref<Event>>,
    /// User events that the next signals settle, oldest first.
    waits: VecDeque<Ref<Event>>,
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
}

/// Returns the form of a property of a semaphore, if it is known.
pub fn form(name: cl_semaphore_properties_khr) -> Option<Form> {
    match u32::try_from(name).ok()? {
        cl::CL_SEMAPHORE_TYPE_KHR => Some(Form::Value),
        cl::CL_SEMAPHORE_DEVICE_HANDLE_LIST_KHR => Some(Form::List),
        _ => None,
    }
}

impl Wanted {
    /// Reads a list whose form the C edge has checked.
    fn read(list: &[cl_semaphore_properties_khr]) -> ClResult<Self> {
        let mut wanted = Self::default();
        let mut rest = list.iter().copied();
        while let Some(name) = rest.next().filter(|name| *name != 0) {
            match form(name) {
                Some(Form::Value) => wanted.kind = rest.next(),
                Some(Form::List) => {
                    wanted.devices = Some(rest.by_ref().take_while(|value| *value != 0).collect());
                }
                None => return err(cl::CL_INVALID_PROPERTY, "an unknown property"),
            }
        }
        Ok(wanted)
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
        Ok(Object::new(Self {
            context: context.clone(),
            devices,
            properties,
            payload: Mutex::default(),
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

    /// Takes the signal for a wait that is enqueued, or the place of the next one.
    pub fn take(&self) -> Taken {
        let mut payload = self.payload.lock();
        if let Some(event) = payload.signal.take() {
            let signalled = true;
            return Taken { event, signalled };
        }
        let event = Event::user(self.context.clone());
        payload.waits.push_back(event.clone());
        let signalled = false;
        Taken { event, signalled }
    }

    /// Undoes [`Semaphore::take`] for a wait that could not be enqueued.
    pub fn put_back(&self, taken: Taken) {
        let mut payload = self.payload.lock();
        if taken.signalled {
            payload.signal.get_or_insert(taken.event);
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
            let has_failed = |known: &Ref<Event>| known.readiness() == Readiness::Failed;
            // One that is signalled already stays so.
            if payload.signal.as_ref().is_none_or(has_failed) {
                payload.signal = Some(event.clone());
            }
            return false;
        };
        drop(payload);
        event.lead(&wait);
        true
    }

    /// Returns CL_SEMAPHORE_PAYLOAD_KHR. As with an event, asking submits the signal.
    fn value(&self) -> cl_semaphore_payload_khr {
        let signal = self.payload.lock().signal.clone();
        let complete = |event: Ref<Event>| event.status() == cl::CL_COMPLETE as cl::cl_int;
        signal.is_some_and(complete).into()
    }
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
        answer! { param, out;
            CL_SEMAPHORE_CONTEXT_KHR => &self.context,
            CL_SEMAPHORE_REFERENCE_COUNT_KHR => self.api_refs(),
            CL_SEMAPHORE_PROPERTIES_KHR => &self.properties,
            CL_SEMAPHORE_TYPE_KHR => cl::CL_SEMAPHORE_TYPE_BINARY_KHR as cl_semaphore_type_khr,
            CL_SEMAPHORE_PAYLOAD_KHR => self.value(),
            CL_SEMAPHORE_DEVICE_HANDLE_LIST_KHR => &self.devices,
        }
    }
}
