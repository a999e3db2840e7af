//! Copies of command buffers for other queues (clRemapCommandBufferKHR).

use super::{CommandBuffer, MutableCommand, RecordedCommand, Source};
use crate::cl;
use crate::command::Command;
use crate::error::{ensure, err, ClResult};
use crate::handle::{Object, Ref};
use crate::queue::Queue;
use std::sync::Arc;

/// Makes a command for the queue of a number, or where it may be of any for the first that can run it, from there on.
fn command_for(
    source: &Source,
    queues: &[Ref<Queue>],
    number: usize,
    any: bool,
) -> ClResult<(usize, Option<Command>)> {
    let first = number % queues.len();
    let made = source.command(&queues[first].target);
    if !any || made.is_ok() {
        return Ok((first, made?));
    }
    let others = (1..queues.len()).map(|more| (first + more) % queues.len());
    for other in others {
        if let Ok(command) = source.command(&queues[other].target) {
            return Ok((other, command));
        }
    }
    Ok((first, made?))
}

impl Object<CommandBuffer> {
    /// Implements clRemapCommandBufferKHR. Returns the copy, and those of its handles that correspond to `handles`. With
    /// `automatic` a command keeps its queue's number, modulo that of the new queues, unless another can run it alone.
    pub fn remap(
        self: &Arc<Self>,
        automatic: bool,
        queues: Vec<Ref<Queue>>,
        handles: &[Ref<MutableCommand>],
    ) -> ClResult<(Ref<CommandBuffer>, Vec<Ref<MutableCommand>>)> {
        ensure!(
            automatic || queues.len() == self.queues.len(),
            cl::CL_INVALID_VALUE,
            "the command buffer has {} queues",
            self.queues.len()
        );
        ensure!(
            (queues.iter()).all(|queue| Arc::ptr_eq(&queue.target.context, self.context())),
            cl::CL_INVALID_CONTEXT,
            "a queue is of another context than the command buffer"
        );
        if !handles.iter().all(|handle| handle.is_of(self)) {
            return err(
                cl::CL_INVALID_VALUE,
                "a handle is not of the command buffer",
            );
        }
        let copy = CommandBuffer::new(queues, self.properties.clone())?;
        let mut made = Vec::with_capacity(handles.len());
        {
            let (sources, finalized): (Vec<(usize, Source)>, bool) = {
                let state = self.state.lock();
                let entries = state.entries.iter();
                let sources = entries.map(|entry| (entry.queue, entry.source.clone()));
                (sources.collect(), state.finalized)
            };
            let mut entries = Vec::with_capacity(sources.len());
            for (number, source) in sources {
                let (queue, command) = command_for(&source, &copy.queues, number, automatic)?;
                entries.push(RecordedCommand {
                    queue,
                    source,
                    command: command.map(Arc::new),
                    handle: None,
                });
            }
            let mut state = copy.state.lock();
            (state.entries, state.finalized) = (entries, finalized);
            for handle in handles {
                let Some(entry) = state.entries.get_mut(handle.at) else {
                    return err(cl::CL_INVALID_VALUE, "a handle is not valid");
                };
                let new = || handle.copy_for(&copy);
                made.push(entry.handle.get_or_insert_with(new).clone());
            }
        }
        copy.prepare();
        Ok((copy, made))
    }
}
