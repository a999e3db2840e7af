//! Several queues, and copies for other queues: cl_khr_command_buffer_multi_device.

use super::*;

/// Commands of two queues, each after the one before, and one event for all of them.
#[test]
fn commands_of_two_queues() {
    let setup = Setup::with_queue(CL_QUEUE_PROFILING_ENABLE);
    let order = CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE | CL_QUEUE_PROFILING_ENABLE;
    let (first, second) = (&setup.queue, &setup.new_queue(order));
    let kernel = setup.kernel_of(BUMP, "bump");
    let buffer = setup.buffer_of(&[0u32; 64]);
    kernel.set_buffer(0, &buffer);
    let recording = Recording::of(&[first, second], 0);
    let id = recording.id;
    let nobody = null_mut();
    let code = cb!(
        recording,
        barrier(id, nobody, null(), 0, null(), nobody.cast(), nobody.cast())
    );
    assert_eq!(code, CL_INVALID_COMMAND_QUEUE);
    let filled = recording.fill_in(first, &buffer, 7, 256);
    let mut last = recording.launch_in(second, &kernel, 64, &[filled]);
    for queue in [second, first, first, second, first] {
        last = recording.launch_in(queue, &kernel, 64, &[last]);
    }
    recording.finalize();
    let count = u32::from_ne_bytes(
        recording
            .info(CL_COMMAND_BUFFER_NUM_QUEUES_KHR)
            .try_into()
            .expect("a word"),
    );
    assert_eq!(count, 2);
    let list = recording.info(CL_COMMAND_BUFFER_QUEUES_KHR);
    assert_eq!(list.len(), 2 * size_of::<usize>());
    let mut queues = [first.0, second.0];
    for substitute in [false, true] {
        let (number, list) = match substitute {
            true => (2, queues.as_mut_ptr()),
            false => (0, null_mut()),
        };
        let gate = Event(create!(clCreateUserEvent(setup.context.0)));
        let mut event = null_mut();
        good(cb!(
            recording,
            enqueue(number, list, id, 1, &gate.0, &mut event)
        ));
        let event = Event(event);
        let queue = info_value!(*mut c_void, clGetEventInfo(event.0), CL_EVENT_COMMAND_QUEUE);
        assert!(queue.is_null());
        let param = CL_EVENT_COMMAND_EXECUTION_STATUS;
        let status = info_value!(i32, clGetEventInfo(event.0), param);
        assert_eq!(status, CL_QUEUED as cl_int);
        ok!(clSetUserEventStatus(gate.0, 0));
        ok!(clWaitForEvents(1, &event.0));
        assert_eq!(setup.read::<u32>(&buffer, 64), [13; 64]);
        let times = [
            CL_PROFILING_COMMAND_QUEUED,
            CL_PROFILING_COMMAND_SUBMIT,
            CL_PROFILING_COMMAND_START,
            CL_PROFILING_COMMAND_END,
            CL_PROFILING_COMMAND_COMPLETE,
        ]
        .map(|name| info_value!(u64, clGetEventProfilingInfo(event.0), name));
        assert!(times.is_sorted(), "{times:?}");
    }
    let code = cb!(
        recording,
        enqueue(1, queues.as_mut_ptr(), id, 0, null(), null_mut())
    );
    assert_eq!(code, CL_INVALID_VALUE);
    // What they wait for fails, and so do all of them.
    let gate = Event(create!(clCreateUserEvent(setup.context.0)));
    let event = recording.replay_event(None, &[gate.0]);
    ok!(clSetUserEventStatus(gate.0, -7));
    let failed = CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
    assert_eq!(call!(clWaitForEvents(1, &event.0)), failed);
}

/// The place of a copy: its queues, and handles of the original with room for its own.
struct Copy<'a> {
    automatic: bool,
    queues: &'a [cl_command_queue],
    handles: &'a [cl_mutable_command_khr],
}

impl Recording {
    /// A copy for other queues.
    pub fn copy_for(&self, queues: &[&Queue]) -> Self {
        let queues: Vec<cl_command_queue> = queues.iter().map(|queue| queue.0).collect();
        let copy = Copy {
            automatic: false,
            queues: &queues,
            handles: &[],
        };
        self.remap(&copy).expect("a copy").0
    }

    fn remap(&self, copy: &Copy<'_>) -> Result<(Self, Vec<cl_mutable_command_khr>), cl_int> {
        let mut code = 1;
        let mut made = vec![null_mut(); copy.handles.len()];
        let (handles, places) = match made.is_empty() {
            true => (null(), null_mut()),
            false => (copy.handles.as_ptr(), made.as_mut_ptr()),
        };
        let id = cb!(
            self,
            remap(
                self.id,
                copy.automatic.into(),
                copy.queues.len() as u32,
                copy.queues.as_ptr(),
                made.len() as u32,
                handles,
                places,
                &mut code
            )
        );
        assert_eq!(id.is_null(), code != 0);
        let functions = Functions::new();
        match code {
            0 => Ok((Self { functions, id }, made)),
            code => Err(code),
        }
    }
}

/// Copies run on the queues that they are made for, and know nothing of later updates of the original.
#[test]
fn copies() {
    let setup = Setup::new();
    let other = setup.new_queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    let kernel = setup.kernel_of(BUMP, "add");
    let buffer = setup.buffer_of(&[0u32; 1]);
    kernel.set_buffer(0, &buffer).set(1, 5u32);
    let bits = CL_COMMAND_BUFFER_MUTABLE_KHR;
    let recording = Recording::with(&setup, &setup.queue, bits);
    let mut command = null_mut();
    good(recording.try_launch(&kernel, &[2], &[], null(), null_mut(), &mut command));
    recording.launch(&kernel, &[1], &[]);
    let copy = |automatic, queues: &[cl_command_queue], handles: &[cl_mutable_command_khr]| {
        recording.remap(&Copy {
            automatic,
            queues,
            handles,
        })
    };
    let (before, _) = copy(false, &[other.0], &[]).expect("a copy");
    assert_eq!(before.state(), CL_COMMAND_BUFFER_STATE_RECORDING_KHR);
    before.launch(&kernel, &[1], &[2]);
    before.finalize();
    recording.finalize();
    let (late, handles) = copy(true, &[other.0, setup.queue.0], &[command]).expect("a copy");
    assert_eq!(late.state(), CL_COMMAND_BUFFER_STATE_EXECUTABLE_KHR);
    assert_ne!(handles, [command]);
    // 5 of each work-item, but for 7 of two in the original.
    let value = 7u32;
    let arg = cl_mutable_dispatch_arg_khr {
        arg_index: 1,
        arg_size: 4,
        arg_value: (&raw const value).cast(),
    };
    let config = cl_mutable_dispatch_config_khr {
        command,
        num_args: 1,
        num_svm_args: 0,
        num_exec_infos: 0,
        work_dim: 0,
        arg_list: &arg,
        arg_svm_list: null(),
        exec_info_list: null(),
        global_work_offset: null(),
        global_work_size: null(),
        local_work_size: null(),
    };
    let kind = CL_STRUCTURE_TYPE_MUTABLE_DISPATCH_CONFIG_KHR;
    let mut list: *const c_void = (&raw const config).cast();
    good(cb!(recording, update(recording.id, 1, &kind, &mut list)));
    // The handle of the one is none of the other's.
    let code = cb!(late, update(late.id, 1, &kind, &mut list));
    assert_eq!(code, CL_INVALID_MUTABLE_COMMAND_KHR);
    for (which, want) in [(&recording, 19), (&before, 20), (&late, 15)] {
        setup.write(&buffer, &[0u32]);
        let event = which.replay_event(None, &[]);
        ok!(clWaitForEvents(1, &event.0));
        assert_eq!(setup.read::<u32>(&buffer, 1), [want]);
    }
    let far = Setup::new();
    let code = |made: Result<_, cl_int>| made.err();
    assert_eq!(
        code(copy(false, &[far.queue.0], &[])),
        Some(CL_INVALID_CONTEXT)
    );
    assert_eq!(code(copy(false, &[], &[])), Some(CL_INVALID_VALUE));
    let two = [other.0, setup.queue.0];
    assert_eq!(code(copy(false, &two, &[])), Some(CL_INVALID_VALUE));
    assert_eq!(
        code(copy(false, &[null_mut()], &[])),
        Some(CL_INVALID_COMMAND_QUEUE)
    );
    assert_eq!(
        code(copy(false, &[other.0], &handles)),
        Some(CL_INVALID_VALUE)
    );
    assert_eq!(
        code(copy(false, &[other.0], &[null_mut()])),
        Some(CL_INVALID_VALUE)
    );
}
