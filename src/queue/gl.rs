//! Acquiring and releasing objects of OpenGL and images of EGL.
//!
//! For each object there are two commands and an event that the thread of the context ends (`command::gl`): OpenGL reads the
//! object, then a transfer writes it to the device; or a transfer reads it from the device, then OpenGL writes it. A last
//! command waits for all, and its event is the application's.

use super::Queue;
use crate::backend::gl::Caller;
use crate::cl;
use crate::command::gl::HandOver;
use crate::error::{ensure, ClError, ClResult};
use crate::handle::{Object, Ref};
use crate::object::event::{Event, Readiness};
use crate::object::mem::Mem;
use smallvec::SmallVec;
use std::sync::Arc;

/// Events that a command waits for.
type Waits = SmallVec<[Ref<Event>; 4]>;

impl Object<Queue> {
    /// Implements clEnqueueAcquireGLObjects, clEnqueueReleaseGLObjects, and the same of images of EGL.
    pub fn hand_over(
        self: &Arc<Self>,
        how: HandOver,
        list: Vec<Ref<Mem>>,
        wait: &[Ref<Event>],
        want_event: bool,
    ) -> ClResult<Option<Ref<Event>>> {
        let context = &self.target.context;
        if !how.egl {
            context.sharing.gl()?;
        }
        for mem in &list {
            how.check(&self.target, mem)?;
        }
        ensure!(
            wait.iter()
                .all(|event| event.readiness() != Readiness::Failed),
            cl::CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST,
            "an event of the wait list has failed"
        );
        // "will complete before": of the context of OpenGL that is current in this thread.
        let caller = match context.sharing.gl() {
            Ok(gl) => {
                let caller = Caller::here(gl, how.acquire);
                gl.order_after_caller(&caller);
                caller
            }
            Err(_) => Caller::default(),
        };
        let blocks = caller.is_current && !how.acquire && !context.awaits_application();
        let made = self.hand_over_each(how, list, wait, want_event || blocks);
        self.flush();
        let event = made.map_err(ClError::of_resources)?;
        // "will not execute until": what that context is given after this call.
        if let (true, Some(event)) = (blocks, &event) {
            event.wait();
        }
        Ok(event.filter(|_| want_event))
    }

    fn hand_over_each(
        self: &Arc<Self>,
        how: HandOver,
        list: Vec<Ref<Mem>>,
        wait: &[Ref<Event>],
        want_event: bool,
    ) -> ClResult<Option<Ref<Event>>> {
        let mut ends: Waits = wait.into();
        for mem in &list {
            let done = Event::of_others(self.target.context.clone(), how.kind());
            if how.acquire {
                ends.extend(self.enqueue(how.by_gl(mem, &done), wait, false, true)?);
                let written = how.transfer(&self.target, mem)?;
                ends.extend(self.enqueue(written, &[done], false, true)?);
            } else if !mem.is_unchanged() {
                let read = how.transfer(&self.target, mem)?;
                let read: Waits = self.enqueue(read, wait, false, true)?.into_iter().collect();
                ends.extend(self.enqueue(how.by_gl(mem, &done), &read, false, true)?);
                ends.push(done);
            }
        }
        self.enqueue(how.end(list), &ends, false, want_event)
    }
}
