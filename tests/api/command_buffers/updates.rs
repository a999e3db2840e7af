//! Updates: cl_khr_command_buffer_mutable_dispatch.

use super::*;

/// A description of an update that changes nothing.
fn nothing(command: cl_mutable_command_khr) -> cl_mutable_dispatch_config_khr {
    cl_mutable_dispatch_config_khr {
        command,
        num_args: 0,
        num_svm_args: 0,
        num_exec_infos: 0,
        work_dim: 0,
        arg_list: null(),
        arg_svm_list: null(),
        exec_info_list: null(),
        global_work_offset: null(),
        global_work_size: null(),
        local_work_size: null(),
    }
}

fn arg<T>(index: u32, value: &T) -> cl_mutable_dispatch_arg_khr {
    cl_mutable_dispatch_arg_khr {
        arg_index: index,
        arg_size: size_of::<T>(),
        arg_value: (&raw const *value).cast(),
    }
}

impl Recording {
    fn update(&self, configs: &[cl_mutable_dispatch_config_khr]) -> cl_int {
        let types = vec![CL_STRUCTURE_TYPE_MUTABLE_DISPATCH_CONFIG_KHR; configs.len()];
        let mut list: Vec<*const c_void> = configs
            .iter()
            .map(|config| (&raw const *config).cast())
            .collect();
        let count = configs.len() as u32;
        cb!(
            self,
            update(self.id, count, types.as_ptr(), list.as_mut_ptr())
        )
    }

    fn command(&self, command: cl_mutable_command_khr, param: u32) -> Vec<u8> {
        let mut size = 0;
        good(cb!(
            self,
            command_info(command, param, 0, null_mut(), &mut size)
        ));
        let mut bytes = vec![0u8; size];
        let place = bytes.as_mut_ptr().cast();
        good(cb!(
            self,
            command_info(command, param, size, place, null_mut())
        ));
        bytes
    }

    fn sizes(&self, command: cl_mutable_command_khr, param: u32) -> Vec<usize> {
        let bytes = self.command(command, param);
        bytes
            .as_chunks()
            .0
            .iter()
            .map(|word| usize::from_ne_bytes(*word))
            .collect()
    }
}

struct World {
    recording: Recording,
    kernel: Kernel,
    from: Buffer,
    to: Buffer,
    command: cl_mutable_command_khr,
}

/// `to = 2 * from`, over the first 32 of 64 work-items.
fn world(setup: &Setup, fields: Option<cl_mutable_dispatch_fields_khr>) -> World {
    let kernel = setup.kernel_of(BUMP, "scale");
    let from = setup.buffer_of(&(0..64u32).collect::<Vec<_>>());
    let to = setup.buffer_of(&[0u32; 64]);
    kernel.set_buffer(0, &from).set_buffer(1, &to).set(2, 2u32);
    let bits = CL_COMMAND_BUFFER_MUTABLE_KHR | CL_COMMAND_BUFFER_SIMULTANEOUS_USE_KHR;
    let recording = Recording::with(setup, &setup.queue, bits);
    let mut command = null_mut();
    let properties = fields.map(|fields| [CL_MUTABLE_DISPATCH_UPDATABLE_FIELDS_KHR, fields, 0]);
    let list = properties.as_ref().map_or(null(), |list| list.as_ptr());
    good(recording.try_launch(&kernel, &[32], &[], list, null_mut(), &mut command));
    recording.finalize();
    World {
        recording,
        kernel,
        from,
        to,
        command,
    }
}

#[test]
fn arguments_and_sizes() {
    let setup = Setup::new();
    let w = world(&setup, None);
    let read = || {
        let got = setup.read::<u32>(&w.to, 64);
        setup.write(&w.to, &[0u32; 64]);
        got
    };
    let want = |range: std::ops::Range<u32>, factor: u32, more: u32| -> Vec<u32> {
        let at = |n| {
            if range.contains(&n) {
                n * factor + more
            } else {
                0
            }
        };
        (0..64).map(at).collect()
    };
    w.recording.replay();
    assert_eq!(read(), want(0..32, 2, 0));
    // The kernel itself is another's.
    w.kernel.set(2, 9u32);
    w.recording.replay();
    assert_eq!(read(), want(0..32, 2, 0));
    let five = 5u32;
    let args = [arg(2, &five)];
    let mut config = nothing(w.command);
    (config.num_args, config.arg_list) = (1, args.as_ptr());
    good(w.recording.update(&[config]));
    w.recording.replay();
    assert_eq!(read(), want(0..32, 5, 0));
    let (offset, size, group) = ([16usize], [24usize], [8usize]);
    let mut config = nothing(w.command);
    config.work_dim = 1;
    config.global_work_offset = offset.as_ptr();
    config.global_work_size = size.as_ptr();
    config.local_work_size = group.as_ptr();
    good(w.recording.update(&[config]));
    w.recording.replay();
    assert_eq!(read(), want(16..40, 5, 16));
    let sizes = |param| w.recording.sizes(w.command, param);
    assert_eq!(sizes(CL_MUTABLE_DISPATCH_GLOBAL_WORK_OFFSET_KHR), [16]);
    assert_eq!(sizes(CL_MUTABLE_DISPATCH_GLOBAL_WORK_SIZE_KHR), [24]);
    assert_eq!(sizes(CL_MUTABLE_DISPATCH_LOCAL_WORK_SIZE_KHR), [8]);
    assert_eq!(sizes(CL_MUTABLE_DISPATCH_KERNEL_KHR), [w.kernel.0 as usize]);
    assert_eq!(
        sizes(CL_MUTABLE_COMMAND_COMMAND_QUEUE_KHR),
        [setup.queue.0 as usize]
    );
    assert_eq!(
        sizes(CL_MUTABLE_COMMAND_COMMAND_BUFFER_KHR),
        [w.recording.id as usize]
    );
    let none = CL_MUTABLE_COMMAND_PROPERTIES_ARRAY_KHR;
    assert!(w.recording.command(w.command, none).is_empty());
    // Two updates of one command: the later holds.
    let (three, four) = (3u32, 4u32);
    let lists = [[arg(2, &three)], [arg(2, &four)]];
    let configs = lists.each_ref().map(|list| cl_mutable_dispatch_config_khr {
        num_args: 1,
        arg_list: list.as_ptr(),
        ..nothing(w.command)
    });
    good(w.recording.update(&configs));
    w.recording.replay();
    assert_eq!(read(), want(16..40, 4, 16));
}

/// Replays that are under way keep what they were enqueued with.
#[test]
fn updates_between_replays() {
    let setup = Setup::new();
    let w = world(&setup, None);
    let gate = Event(create!(clCreateUserEvent(setup.context.0)));
    let outputs: Vec<Buffer> = (0..5).map(|_| setup.buffer_of(&[0u32; 64])).collect();
    for (n, output) in outputs.iter().enumerate() {
        let factor = n as u32 + 1;
        let args = [arg(1, &output.0), arg(2, &factor)];
        let mut config = nothing(w.command);
        (config.num_args, config.arg_list) = (2, args.as_ptr());
        good(w.recording.update(&[config]));
        let waits = if n == 0 { vec![gate.0] } else { Vec::new() };
        good(w.recording.enqueue(None, &waits, null_mut()));
    }
    ok!(clSetUserEventStatus(gate.0, 0));
    ok!(clFinish(setup.queue.0));
    for (output, factor) in outputs.iter().zip(1..) {
        let got = setup.read::<u32>(output, 64);
        assert!((0..32).all(|at| got[at] == at as u32 * factor), "{factor}");
    }
}

/// Arguments may come after the end of the recording.
#[test]
fn arguments_to_come() {
    let setup = Setup::new();
    let kernel = setup.kernel_of(BUMP, "bump");
    let buffer = setup.buffer_of(&[0u32; 64]);
    let recording = Recording::with(&setup, &setup.queue, CL_COMMAND_BUFFER_MUTABLE_KHR);
    let fields = CL_MUTABLE_DISPATCH_ARGUMENTS_KHR;
    let properties = [CL_MUTABLE_DISPATCH_UPDATABLE_FIELDS_KHR, fields, 0];
    let mut command = null_mut();
    let list = properties.as_ptr();
    good(recording.try_launch(&kernel, &[64], &[], list, null_mut(), &mut command));
    recording.finalize();
    assert_eq!(recording.state(), CL_COMMAND_BUFFER_STATE_FINALIZED_KHR);
    assert_eq!(
        recording.enqueue(None, &[], null_mut()),
        CL_INVALID_OPERATION
    );
    let args = [arg(0, &buffer.0)];
    let mut config = nothing(command);
    (config.num_args, config.arg_list) = (1, args.as_ptr());
    good(recording.update(&[config]));
    assert_eq!(recording.state(), CL_COMMAND_BUFFER_STATE_EXECUTABLE_KHR);
    recording.replay();
    assert_eq!(setup.read::<u32>(&buffer, 64), [1; 64]);
}

#[test]
fn errors() {
    let setup = Setup::new();
    let fields = CL_MUTABLE_DISPATCH_ARGUMENTS_KHR | CL_MUTABLE_DISPATCH_GLOBAL_SIZE_KHR;
    let w = world(&setup, Some(fields));
    let fixed = world(&setup, Some(CL_MUTABLE_DISPATCH_LOCAL_SIZE_KHR));
    let update = |w: &World, change: &dyn Fn(&mut cl_mutable_dispatch_config_khr)| {
        let mut config = nothing(w.command);
        change(&mut config);
        w.recording.update(&[config])
    };
    let (size, five, long) = ([16usize, 1], 5u32, 5u64);
    let (good_args, bad_args, far_args) = ([arg(2, &five)], [arg(2, &long)], [arg(9, &five)]);
    assert_eq!(update(&w, &|_| {}), 0);
    let operation = CL_INVALID_OPERATION;
    assert_eq!(
        update(&w, &|c| c.global_work_offset = size.as_ptr()),
        operation
    );
    assert_eq!(
        update(&w, &|c| c.local_work_size = size.as_ptr()),
        operation
    );
    assert_eq!(
        update(&fixed, &|c| c.global_work_size = size.as_ptr()),
        operation
    );
    assert_eq!(update(&w, &|c| c.work_dim = 2), operation);
    let args = |list: &[cl_mutable_dispatch_arg_khr; 1]| {
        let list = list.as_ptr();
        move |c: &mut cl_mutable_dispatch_config_khr| (c.num_args, c.arg_list) = (1, list)
    };
    assert_eq!(update(&fixed, &args(&good_args)), operation);
    assert_eq!(update(&w, &args(&bad_args)), CL_INVALID_ARG_SIZE);
    assert_eq!(update(&w, &args(&far_args)), CL_INVALID_ARG_INDEX);
    assert_eq!(update(&w, &|c| c.num_args = 1), CL_INVALID_VALUE);
    assert_eq!(
        update(&w, &|c| c.arg_list = good_args.as_ptr()),
        CL_INVALID_VALUE
    );
    assert_eq!(update(&w, &|c| c.num_svm_args = 1), CL_INVALID_VALUE);
    assert_eq!(update(&w, &|c| c.num_exec_infos = 1), CL_INVALID_VALUE);
    assert_eq!(
        update(&w, &|c| c.command = 0x1234 as _),
        CL_INVALID_MUTABLE_COMMAND_KHR
    );
    let foreign = fixed.command;
    assert_eq!(
        update(&w, &|c| c.command = foreign),
        CL_INVALID_MUTABLE_COMMAND_KHR
    );
    // All, or nothing.
    let mut configs = [nothing(w.command), nothing(w.command)];
    args(&good_args)(&mut configs[0]);
    args(&bad_args)(&mut configs[1]);
    assert_eq!(w.recording.update(&configs), CL_INVALID_ARG_SIZE);
    w.recording.replay();
    assert_eq!(setup.read::<u32>(&w.to, 32)[31], 62);
    let all = &w.recording;
    let (kind, config) = (
        CL_STRUCTURE_TYPE_MUTABLE_DISPATCH_CONFIG_KHR,
        nothing(w.command),
    );
    let mut list: *const c_void = (&raw const config).cast();
    let call = |count, types: *const u32, list| cb!(all, update(all.id, count, types, list));
    assert_eq!(call(1, null(), &mut list), CL_INVALID_VALUE);
    assert_eq!(call(1, &kind, null_mut()), CL_INVALID_VALUE);
    assert_eq!(call(0, &kind, null_mut()), CL_INVALID_VALUE);
    assert_eq!(call(1, &77, &mut list), CL_INVALID_VALUE);
    assert_eq!(call(1, &kind, &mut null()), CL_INVALID_VALUE);
    assert_eq!(call(0, null(), null_mut()), 0);
    // One that is not mutable, and one that is not finalized.
    let plain = Recording::new(&setup);
    assert_eq!(
        cb!(plain, update(plain.id, 0, null(), null_mut())),
        operation
    );
    plain.finalize();
    assert_eq!(
        cb!(plain, update(plain.id, 0, null(), null_mut())),
        operation
    );
    // The handle goes with the command buffer.
    let (command, functions) = (w.command, fixed.recording);
    drop(w.recording);
    let param = CL_MUTABLE_DISPATCH_DIMENSIONS_KHR;
    let code = cb!(
        functions,
        command_info(command, param, 0, null_mut(), null_mut())
    );
    assert_eq!(code, CL_INVALID_MUTABLE_COMMAND_KHR);
    let _ = w.from;
}

/// A launch of a large graph is updated, and all others stay.
#[test]
fn one_of_many() {
    let setup = Setup::new();
    let kernel = setup.kernel_of(BUMP, "add");
    let buffer = setup.buffer_of(&[0u32; 1]);
    let recording = Recording::with(&setup, &setup.queue, CL_COMMAND_BUFFER_MUTABLE_KHR);
    let mut commands = Vec::new();
    for n in 0..300u32 {
        kernel.set_buffer(0, &buffer).set(1, n);
        let mut command = null_mut();
        good(recording.try_launch(&kernel, &[1], &[], null(), null_mut(), &mut command));
        commands.push(command);
    }
    recording.finalize();
    let mut sum: u32 = (0..300).sum();
    for n in [0usize, 150, 299] {
        let value = 1000 * n as u32;
        let args = [arg(1, &value)];
        let mut config = nothing(commands[n]);
        (config.num_args, config.arg_list) = (1, args.as_ptr());
        good(recording.update(&[config]));
        sum += value - n as u32;
        setup.write(&buffer, &[0u32]);
        recording.replay();
        assert_eq!(setup.read::<u32>(&buffer, 1), [sum]);
    }
}
