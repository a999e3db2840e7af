//! Handing memory objects over from and to others that share their memory (cl_khr_external_memory).

use super::{Command, QueueTarget, Work};
use crate::cl;
use crate::error::{ensure, ClResult};
use crate::handle::Ref;
use crate::object::event::{Event, Readiness};
use crate::object::mem::Mem;

/// Implements clEnqueueAcquireExternalMemObjectsKHR, or (without `acquire`) clEnqueueReleaseExternalMemObjectsKHR.
pub fn hand_over(
    target: &QueueTarget,
    list: Vec<Ref<Mem>>,
    acquire: bool,
    wait: &[Ref<Event>],
) -> ClResult<Command> {
    for mem in &list {
        mem.check_external(&target.context, &target.device)?;
    }
    ensure!(
        wait.iter()
            .all(|event| event.readiness() != Readiness::Failed),
        cl::CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST,
        "an event of the wait list has failed"
    );
    let kind = match acquire {
        true => cl::CL_COMMAND_ACQUIRE_EXTERNAL_MEM_OBJECTS_KHR,
        false => cl::CL_COMMAND_RELEASE_EXTERNAL_MEM_OBJECTS_KHR,
    };
    let work = match list.is_empty() {
        true => Work::Marker,
        false => Work::Handover { list, acquire },
    };
    Ok(Command::new(kind, work))
}
