//! Commands that wait for semaphores and signal them: markers, whose events do the work (`object::semaphore`). Where others
//! share a semaphore, the device waits for its payload, or signals it, too.

use super::Queue;
use crate::cl;
use crate::command::{Command, Work};
use crate::error::{ensure, ClError, ClResult};
use crate::handle::{Object, Ref};
use crate::object::event::{Event, Readiness};
use crate::object::semaphore::Semaphore;
use smallvec::SmallVec;
use std::sync::Arc;

/// Returns the work on the payloads of those that are shared.
fn work(semaphores: &[&Ref<Semaphore>], signal: bool) -> Work {
    let list: SmallVec<_> = semaphores.iter().filter_map(|one| one.payload()).collect();
    match list.is_empty() {
        true => Work::Marker,
        false => Work::Semaphores { list, signal },
    }
}

/// Different semaphores.
type Distinct<'a> = SmallVec<[&'a Ref<Semaphore>; 2]>;

impl Object<Queue> {
    /// Checks what both commands have in common. Returns the semaphores, each once.
    fn check_semaphores<'a>(
        &self,
        semaphores: &'a [Ref<Semaphore>],
        wait: &[Ref<Event>],
    ) -> ClResult<Distinct<'a>> {
        let target = &self.target;
        let mut distinct = Distinct::new();
        for semaphore in semaphores {
            semaphore.check(&target.context, &target.device)?;
            if !distinct.iter().any(|known| Arc::ptr_eq(known, semaphore)) {
                distinct.push(semaphore);
            }
        }
        for event in wait {
            ensure!(
                Arc::ptr_eq(&event.context, &target.context),
                cl::CL_INVALID_CONTEXT,
                "an event of the wait list is of another context than the queue"
            );
            ensure!(
                event.readiness() != Readiness::Failed,
                cl::CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST,
                "an event of the wait list has failed"
            );
        }
        Ok(distinct)
    }

    /// Implements clEnqueueWaitSemaphoresKHR.
    pub fn wait_semaphores(
        self: &Arc<Self>,
        semaphores: &[Ref<Semaphore>],
        wait: &[Ref<Event>],
        want_event: bool,
    ) -> ClResult<Option<Ref<Event>>> {
        let semaphores = self.check_semaphores(semaphores, wait)?;
        let taken: SmallVec<[_; 2]> = semaphores.iter().map(|one| one.take()).collect();
        let signals = taken.iter().flatten().map(|taken| taken.event.clone());
        let wait: SmallVec<[_; 4]> = wait.iter().cloned().chain(signals).collect();
        let command = Command::new(cl::CL_COMMAND_SEMAPHORE_WAIT_KHR, work(&semaphores, false));
        let result = self.enqueue(command, &wait, false, want_event);
        let result = result.map_err(ClError::of_resources);
        if result.is_err() {
            for (semaphore, taken) in semaphores.iter().zip(taken) {
                taken
                    .into_iter()
                    .for_each(|taken| semaphore.put_back(taken));
            }
        }
        result
    }

    /// Implements clEnqueueSignalSemaphoresKHR.
    pub fn signal_semaphores(
        self: &Arc<Self>,
        semaphores: &[Ref<Semaphore>],
        wait: &[Ref<Event>],
        want_event: bool,
    ) -> ClResult<Option<Ref<Event>>> {
        let semaphores = self.check_semaphores(semaphores, wait)?;
        let work = work(&semaphores, true);
        let command = Command::new(cl::CL_COMMAND_SEMAPHORE_SIGNAL_KHR, work);
        let event = self.enqueue(command, wait, false, true);
        let event = event.map_err(ClError::of_resources)?;
        let mut awaited = false;
        for (semaphore, event) in semaphores.iter().zip(event.iter().cycle()) {
            awaited |= semaphore.signal(event);
        }
        if awaited {
            self.flush();
        }
        Ok(event.filter(|_| want_event))
    }
}
