//! Command buffers: what is recorded, enqueued and updated; and semaphores.

use super::{command, Call, Record};
use crate::program::{Misuse, Operand, ProgramAction, What};
use crate::run::Run;
use pumice_tests::sys::*;
use pumice_tests::{code_name, create, ext, info_value, ok};
use std::ffi::c_void;
use std::ptr::{null, null_mut};

/// Kernels that are updated get other arguments and another size.
const UPDATABLE: [cl_command_properties_khr; 3] = [
    CL_MUTABLE_DISPATCH_UPDATABLE_FIELDS_KHR,
    CL_MUTABLE_DISPATCH_GLOBAL_SIZE_KHR | CL_MUTABLE_DISPATCH_ARGUMENTS_KHR,
    0,
];

fn expect(what: &str, code: cl_int, wanted: cl_int) -> Result<(), String> {
    match code == wanted {
        true => Ok(()),
        false => Err(format!(
            "{what} of a command buffer gave {}, not {}",
            code_name(code),
            code_name(wanted)
        )),
    }
}

impl Run<'_> {
    /// Records the command of an action. Its result.
    pub(crate) fn record(&mut self, index: usize, of: usize) -> cl_int {
        let program = self.program;
        let action = &program.actions[index];
        let list: Vec<cl_sync_point_khr> = action.waits.iter().map(|&of| self.points[of]).collect();
        // The only queue may be left out.
        let unnamed = program.recordings[of].queues.len() == 1 && index % 2 == 0;
        let queue = match unnamed {
            true => null_mut(),
            false => self.stage.queues[action.queue],
        };
        let (mut point, mut handle) = (0, null_mut());
        let mut call = self.recorded_in(of, queue, &list, &mut point);
        let launch = matches!(action.what, What::Kernel { .. } | What::Doomed);
        if let (Some(record), true) = (&mut call.record, launch && program.recordings[of].mutable) {
            (record.properties, record.handle) = (UPDATABLE.as_ptr(), &raw mut handle);
        }
        let code = self.command(call, index);
        self.points[index] = point;
        if !handle.is_null() {
            self.handles.insert((of, index), handle);
        }
        code
    }

    /// The call that records a command in a command buffer, behind sync points.
    fn recorded_in(
        &self,
        of: usize,
        queue: cl_command_queue,
        list: &[cl_sync_point_khr],
        point: &mut cl_sync_point_khr,
    ) -> Call {
        Call {
            queue,
            blocking: CL_FALSE,
            count: list.len() as cl_uint,
            list: null(),
            event: null_mut(),
            record: Some(Record {
                buffer: self.stage.recordings[of],
                properties: null(),
                list: match list.is_empty() {
                    true => null(),
                    false => list.as_ptr(),
                },
                point,
                handle: null_mut(),
            }),
        }
    }

    /// Enqueues a command buffer.
    pub(super) fn replay(&self, call: Call, action: &ProgramAction) -> cl_int {
        let What::Replay { of, queues, own } = &action.what else {
            return CL_INVALID_OPERATION;
        };
        let mut queues: Vec<_> = queues.iter().map(|&at| self.stage.queues[at]).collect();
        let (count, list) = match own {
            true => (0, null_mut()),
            false => (queues.len() as cl_uint, queues.as_mut_ptr()),
        };
        let code = ext!(
            self.world,
            clEnqueueCommandBufferKHR: clEnqueueCommandBufferKHR_fn(
                count, list, self.stage.recordings[*of], call.count, call.list, call.event
            )
        );
        match self.program.breaks(action) {
            true => self.failed(call, code),
            false => code,
        }
    }

    /// Makes a call for a command buffer that enqueues nothing, and checks the state afterwards.
    pub(crate) fn call_recording(&mut self, index: usize) -> Result<(), String> {
        let action = &self.program.actions[index];
        let (of, state) = match &action.what {
            What::Begin(of) => {
                self.begin(*of, index);
                let state = match self.program.finalized(*of, index + 1) {
                    true => CL_COMMAND_BUFFER_STATE_EXECUTABLE_KHR,
                    false => CL_COMMAND_BUFFER_STATE_RECORDING_KHR,
                };
                (*of, state)
            }
            What::Finalize(of) => {
                expect("finalizing", self.finalize(*of), 0)?;
                (*of, CL_COMMAND_BUFFER_STATE_EXECUTABLE_KHR)
            }
            What::Update { .. } => {
                let recording = self.program.updated(&action.what).unwrap_or_default();
                expect("an update", self.update(index, recording, &action.what), 0)?;
                (recording, CL_COMMAND_BUFFER_STATE_EXECUTABLE_KHR)
            }
            What::Misuse(of, how) => {
                self.misuse(index, *of, *how)?;
                let state = match how {
                    Misuse::Finalized => CL_COMMAND_BUFFER_STATE_EXECUTABLE_KHR,
                    _ => CL_COMMAND_BUFFER_STATE_RECORDING_KHR,
                };
                (*of, state)
            }
            What::Discard(of) => {
                let id = self.stage.recordings[*of];
                let code =
                    ext!(self.world, clRetainCommandBufferKHR: clRetainCommandBufferKHR_fn(id));
                expect("retaining", code, 0)?;
                let references = self.about(*of, CL_COMMAND_BUFFER_REFERENCE_COUNT_KHR);
                let code =
                    ext!(self.world, clReleaseCommandBufferKHR: clReleaseCommandBufferKHR_fn(id));
                expect("releasing", code, 0)?;
                self.stage.discard(*of);
                return match references {
                    2 => Ok(()),
                    other => Err(format!("a command buffer has {other} references, not 2")),
                };
            }
            _ => return Ok(()),
        };
        let queues = self.program.recordings[of].queues.len() as u32;
        let seen = [
            CL_COMMAND_BUFFER_STATE_KHR,
            CL_COMMAND_BUFFER_NUM_QUEUES_KHR,
            CL_COMMAND_BUFFER_REFERENCE_COUNT_KHR,
        ]
        .map(|param| self.about(of, param));
        match seen == [state, queues, 1] {
            true => Ok(()),
            false => Err(format!(
                "a command buffer has state, queues and references {seen:?}, not {:?}",
                [state, queues, 1]
            )),
        }
    }

    /// Creates a command buffer, or a copy of another one with the handles of its commands.
    fn begin(&mut self, of: usize, index: usize) {
        let Some((from, _)) = self.program.source(of) else {
            return self.stage.begin(of);
        };
        let commands = self.program.recorded(from.0, index).into_iter();
        let known = commands.filter_map(|(at, _)| Some((at, *self.handles.get(&(from.0, at))?)));
        let (actions, handles): (Vec<usize>, Vec<_>) = known.unzip();
        let made = self.stage.remap(of, from.0, &handles);
        let places = actions.into_iter().map(|at| (of, at));
        self.handles.extend(places.zip(made));
    }

    fn about(&self, of: usize, param: cl_command_buffer_info_khr) -> cl_uint {
        let mut value: cl_uint = 0;
        let (id, place) = (self.stage.recordings[of], (&raw mut value).cast());
        let code = ext!(
            self.world,
            clGetCommandBufferInfoKHR: clGetCommandBufferInfoKHR_fn(id, param, 4, place, null_mut())
        );
        assert_eq!(code, 0, "clGetCommandBufferInfoKHR");
        value
    }

    fn finalize(&self, of: usize) -> cl_int {
        let id = self.stage.recordings[of];
        ext!(self.world, clFinalizeCommandBufferKHR: clFinalizeCommandBufferKHR_fn(id))
    }

    /// Calls that have to fail.
    fn misuse(&self, index: usize, of: usize, how: Misuse) -> Result<(), String> {
        let id = self.stage.recordings[of];
        let (mut point, bad) = (0, self.program.recorded(of, index).len() as u32 + 1);
        let queue = match self.program.recordings[of].queues.len() {
            1 => null_mut(),
            _ => self.stage.own_queue(of),
        };
        match how {
            Misuse::Unfinalized => {
                let code = ext!(
                    self.world,
                    clEnqueueCommandBufferKHR: clEnqueueCommandBufferKHR_fn(
                        0, null_mut(), id, 0, null(), null_mut()
                    )
                );
                expect("enqueueing", code, CL_INVALID_OPERATION)?;
                let nothing = ext!(
                    self.world,
                    clUpdateMutableCommandsKHR: clUpdateMutableCommandsKHR_fn(
                        id, 0, null(), null_mut()
                    )
                );
                expect("an update", nothing, CL_INVALID_OPERATION)
            }
            Misuse::Point => {
                let code = self.barrier(self.recorded_in(of, queue, &[bad], &mut point));
                expect("recording", code, CL_INVALID_SYNC_POINT_WAIT_LIST_KHR)
            }
            Misuse::Finalized => {
                let code = self.barrier(self.recorded_in(of, queue, &[], &mut point));
                expect("recording", code, CL_INVALID_OPERATION)?;
                expect("finalizing", self.finalize(of), CL_INVALID_OPERATION)
            }
        }
    }

    /// Updates a kernel, by what is not as it was.
    fn update(&self, index: usize, recording: usize, what: &What) -> cl_int {
        let What::Update {
            of,
            dst,
            src,
            words,
            add,
            ..
        } = what
        else {
            return CL_INVALID_OPERATION;
        };
        fn argument<T>(index: cl_uint, value: &T) -> cl_mutable_dispatch_arg_khr {
            cl_mutable_dispatch_arg_khr {
                arg_index: index,
                arg_size: size_of::<T>(),
                arg_value: (&raw const *value).cast(),
            }
        }
        let commands = self.program.recorded(recording, index);
        let before = commands.iter().find(|(at, _)| at == of);
        let Some(What::Kernel {
            dst: to,
            src: from,
            words: size,
            add: number,
            ..
        }) = before.map(|(_, command)| &command.what)
        else {
            return CL_INVALID_OPERATION;
        };
        let sides = [*dst, *src].map(|operand| match operand {
            Operand::Object(side) => (self.object(side), self.numbers(operand)),
            _ => (null_mut(), self.numbers(operand)),
        });
        let (mut args, mut pointers) = (Vec::new(), Vec::new());
        if add != number {
            args.push(argument(6, add));
        }
        for (number, (operand, old)) in [(dst, to), (src, from)].into_iter().enumerate() {
            if operand == old {
                continue;
            }
            let (first, (object, numbers)) = (3 * number as cl_uint, &sides[number]);
            match operand {
                Operand::Pointer(place) => pointers.push(cl_mutable_dispatch_arg_khr {
                    arg_index: first,
                    arg_size: 0,
                    arg_value: self.pointer(*place),
                }),
                _ => args.push(argument(first, object)),
            }
            args.push(argument(first + 1, &numbers[0]));
            args.push(argument(first + 2, &numbers[1]));
        }
        let list = |args: &[cl_mutable_dispatch_arg_khr]| match args.is_empty() {
            true => null(),
            false => args.as_ptr(),
        };
        let config = cl_mutable_dispatch_config_khr {
            command: self.handles[&(recording, *of)],
            num_args: args.len() as cl_uint,
            num_svm_args: pointers.len() as cl_uint,
            num_exec_infos: 0,
            work_dim: 1,
            arg_list: list(&args),
            arg_svm_list: list(&pointers),
            exec_info_list: null(),
            global_work_offset: null(),
            global_work_size: match words == size {
                true => null(),
                false => words,
            },
            local_work_size: null(),
        };
        let kind = CL_STRUCTURE_TYPE_MUTABLE_DISPATCH_CONFIG_KHR;
        let mut list: *const c_void = (&raw const config).cast();
        ext!(
            self.world,
            clUpdateMutableCommandsKHR: clUpdateMutableCommandsKHR_fn(
                self.stage.recordings[recording], 1, &kind, &mut list
            )
        )
    }

    /// Enqueues a signal of semaphores, or a wait for them. Where something that it waits for has failed already the call may
    /// fail; a user event stands for the command then.
    pub(super) fn semaphores(
        &mut self,
        call: Call,
        index: usize,
        semaphores: &[usize],
        signal: bool,
    ) -> cl_int {
        let program = self.program;
        let refused = |of: &usize| {
            !signal
                && program
                    .signal(*of, index)
                    .is_some_and(|at| self.refused[at])
        };
        let (gone, there): (Vec<usize>, Vec<usize>) = semaphores.iter().partition(|of| refused(of));
        let list: Vec<_> = there.iter().map(|&of| self.stage.semaphores[of]).collect();
        let (number, place) = (list.len() as cl_uint, list.as_ptr());
        let code = match signal {
            _ if there.is_empty() => CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST,
            true => command!(
                self,
                call,
                clEnqueueSignalSemaphoresKHR: clEnqueueSignalSemaphoresKHR_fn(number, place, null())
            ),
            false => command!(
                self,
                call,
                clEnqueueWaitSemaphoresKHR: clEnqueueWaitSemaphoresKHR_fn(number, place, null())
            ),
        };
        let failed = CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
        if program.fails(index) && (code == failed || !gone.is_empty()) {
            self.refused[index] = code == failed;
            if !call.event.is_null() {
                // SAFETY: a place of the caller.
                let made = unsafe { *call.event };
                if !made.is_null() {
                    ok!(clReleaseEvent(made));
                }
            }
            return self.failed(call, CL_OUT_OF_RESOURCES);
        }
        code
    }

    /// Checks what an event says of its command.
    pub(crate) fn check_kind(&self, index: usize) -> Result<(), String> {
        let event = self.events[index];
        let action = &self.program.actions[index];
        let wanted = match action.what {
            What::Replay { .. } => CL_COMMAND_COMMAND_BUFFER_KHR,
            What::Signal(_) => CL_COMMAND_SEMAPHORE_SIGNAL_KHR,
            What::Await(_) => CL_COMMAND_SEMAPHORE_WAIT_KHR,
            _ => return Ok(()),
        };
        if event.is_null() || self.program.fails(index) {
            return Ok(());
        }
        let kind = info_value!(cl_uint, clGetEventInfo(event), CL_EVENT_COMMAND_TYPE);
        match kind == wanted {
            true => Ok(()),
            false => Err(format!(
                "action {index}: its event is of a command {kind:#x}"
            )),
        }
    }

    /// Releases the semaphores that are not used any more, where the seed has it: commands may still wait.
    pub(crate) fn release_semaphores(&mut self, index: usize) {
        let program = self.program;
        for of in 0..program.semaphores.len() {
            let last = program.last_use(of, usize::MAX).map(|(at, _)| at);
            let waits = program.waiter(of, usize::MAX).is_some();
            if last == Some(index) && !waits && program.seed >> of & 1 == 1 {
                self.stage.release_semaphore(of);
            }
        }
    }

    /// Signals what is waited for still, in queues of its own.
    pub(crate) fn end_waits(&self) {
        let program = self.program;
        let awaited = |of: &usize| program.waiter(*of, usize::MAX).is_some();
        for of in (0..program.semaphores.len()).filter(awaited) {
            let device = self.world.devices[program.semaphores[of]];
            let context = self.world.context;
            let queue = create!(clCreateCommandQueueWithProperties(context, device, null()));
            let semaphore = self.stage.semaphores[of];
            let code = ext!(
                self.world,
                clEnqueueSignalSemaphoresKHR: clEnqueueSignalSemaphoresKHR_fn(
                    queue, 1, &semaphore, null(), 0, null(), null_mut()
                )
            );
            assert_eq!(code, 0, "clEnqueueSignalSemaphoresKHR");
            ok!(clReleaseCommandQueue(queue));
        }
    }

    /// The payload of a semaphore.
    pub(crate) fn payload(&self, of: usize) -> cl_semaphore_payload_khr {
        let (mut value, id): (cl_semaphore_payload_khr, _) = (7, self.stage.semaphores[of]);
        let (param, place) = (CL_SEMAPHORE_PAYLOAD_KHR, (&raw mut value).cast());
        let code = ext!(
            self.world,
            clGetSemaphoreInfoKHR: clGetSemaphoreInfoKHR_fn(id, param, 8, place, null_mut())
        );
        assert_eq!(code, 0, "clGetSemaphoreInfoKHR");
        value
    }

    /// Where a call fails as its command does, a user event that has failed stands for the command.
    pub(super) fn failed(&self, call: Call, code: cl_int) -> cl_int {
        match code {
            CL_MEM_OBJECT_ALLOCATION_FAILURE | CL_OUT_OF_RESOURCES | CL_OUT_OF_HOST_MEMORY => {
                if !call.event.is_null() {
                    let event = create!(clCreateUserEvent(self.world.context));
                    ok!(clSetUserEventStatus(event, code));
                    // SAFETY: a place of the caller.
                    unsafe { *call.event = event };
                }
                CL_SUCCESS
            }
            code => code,
        }
    }
}
