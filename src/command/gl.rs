//! Commands that take memory objects over from OpenGL and EGL and hand them back: transfers between an object and its memory
//! of the host, and the work of the thread that has the context (`backend::gl`) on the other side of that.

use super::{image, Command, HostSide, QueueTarget, Work};
use crate::backend::BufferCopy;
use crate::cl::{self, cl_command_type, cl_int};
use crate::error::{ensure, ClError, ClResult};
use crate::handle::Ref;
use crate::object::event::Event;
use crate::object::mem::gl::Shared;
use crate::object::mem::host_work::HostWork;
use crate::object::mem::Mem;
use parking_lot::Mutex;
use std::sync::Arc;

/// The command of the application.
#[derive(Debug, Clone, Copy)]
pub struct HandOver {
    /// Set if the objects are acquired, not released.
    pub acquire: bool,
    /// The objects are images of EGL.
    pub egl: bool,
}

impl HandOver {
    /// Returns CL_EVENT_COMMAND_TYPE of its event.
    pub fn kind(self) -> cl_command_type {
        match (self.acquire, self.egl) {
            (true, false) => cl::CL_COMMAND_ACQUIRE_GL_OBJECTS,
            (false, false) => cl::CL_COMMAND_RELEASE_GL_OBJECTS,
            (true, true) => cl::CL_COMMAND_ACQUIRE_EGL_OBJECTS_KHR,
            (false, true) => cl::CL_COMMAND_RELEASE_EGL_OBJECTS_KHR,
        }
    }

    /// Checks that an object of its list is shared, and of the context of the queue.
    pub fn check(self, target: &QueueTarget, mem: &Ref<Mem>) -> ClResult {
        mem.shared_with(self.egl)?;
        ensure!(
            Arc::ptr_eq(&mem.context, &target.context),
            cl::CL_INVALID_CONTEXT,
            "the memory object is of another context than the queue"
        );
        Ok(())
    }

    /// Returns the transfer of all of an object from its memory of the host, or to it when it is released.
    pub fn transfer(self, target: &QueueTarget, mem: &Ref<Mem>) -> ClResult<Command> {
        let base = mem.shared_with(self.egl)?.bytes()?.address();
        if mem.has_texels() {
            return image::whole(target, mem, base, self.acquire, self.kind());
        }
        let region = BufferCopy::linear(0, 0, mem.size as u64);
        let (mem, host) = (mem.clone(), HostSide::private(base));
        let work = Work::Transfer {
            mem,
            host,
            region,
            write: self.acquire,
        };
        Ok(Command::new(self.kind(), work))
    }

    /// Returns the command that has OpenGL read an object into its memory of the host, or write it from there. It is over
    /// at once: `done` ends when that is done.
    pub fn by_gl(self, mem: &Ref<Mem>, done: &Ref<Event>) -> Command {
        let work = ByGl(Mutex::new(Some(Transfer {
            mem: mem.clone(),
            acquire: self.acquire,
            done: Outcome(done.clone()),
        })));
        Command::new(self.kind(), Work::Host(Arc::new(work)))
    }

    /// Returns the command with which all is over, and until which the objects live.
    pub fn end(self, list: Vec<Ref<Mem>>) -> Command {
        let work = match list.is_empty() {
            true => Work::Marker,
            false => Work::Host(Arc::new(Lived(list))),
        };
        Command::new(self.kind(), work)
    }
}

/// Objects that live until a command is over.
struct Lived(#[allow(dead_code)] Vec<Ref<Mem>>);

impl HostWork for Lived {
    fn run(&self) {}
}

/// An event that ends with a failure unless it is given a status.
struct Outcome(Ref<Event>);

impl Drop for Outcome {
    fn drop(&mut self) {
        self.0.settle(cl::CL_OUT_OF_RESOURCES).run();
    }
}

/// A transfer between an object of OpenGL and memory of the host.
struct Transfer {
    mem: Ref<Mem>,
    acquire: bool,
    done: Outcome,
}

/// Gives a transfer to the thread that has the context.
struct ByGl(Mutex<Option<Transfer>>);

impl ByGl {
    fn give(&self, fails: bool) {
        let Some(transfer) = self.0.lock().take() else {
            return;
        };
        let Some(gl) = (transfer.mem.any_shared()).map(|shared| shared.gl.clone()) else {
            return;
        };
        gl.post(move |current| {
            let Transfer { mem, acquire, done } = transfer;
            let run = |shared: &Shared| -> ClResult {
                let bytes = shared.bytes()?;
                let result = match acquire {
                    true => current.read(&shared.object, bytes),
                    false => current.write(&shared.object, bytes),
                };
                result.map_err(|error| shared.error(error))
            };
            let result = mem.any_shared().filter(|_| !fails).map(run);
            current.notify(move || {
                let status = match result {
                    Some(Ok(())) => cl::CL_COMPLETE as cl_int,
                    Some(Err(ClError { code, what })) => {
                        mem.context.report(&format!("{what} ({code})"));
                        code
                    }
                    None => cl::CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST,
                };
                // Before whoever waits for the event goes on.
                drop(mem);
                done.0.settle(status).run();
            });
        });
    }
}

impl HostWork for ByGl {
    fn run(&self) {
        self.give(false);
    }
}

impl Drop for ByGl {
    /// Ends the event of a transfer that will not be. By the thread of the context: locks may be held here.
    fn drop(&mut self) {
        self.give(true);
    }
}
