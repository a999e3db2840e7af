//! Reservations: of work-items, work-groups and sub-groups, and by functions of another program.

use super::*;

/// Writes and reads by reservations, as one kind of group does; twice as often as the pipe has room for.
fn reserved(put: &str, get: &str, each: usize, group: usize) {
    let Some(on) = pipes() else { return };
    let items = 256usize;
    let count = items * each;
    let pipe = on.pipe(4, count as u32);
    let words: Vec<u32> = (0..count as u32).collect();
    let from = on.setup.buffer_of(&words);
    let into = on.setup.buffer(count * 4);
    for round in 0..3 {
        let written = on.run(put, &pipe, &from, items, group);
        assert!(
            written.iter().all(|&code| code == 0),
            "{put}, {round}: {written:?}"
        );
        assert_eq!(on.packets(&pipe) as usize, count);
        // There is no room.
        let written = on.run(put, &pipe, &from, items, group);
        assert!(
            written.iter().all(|&code| code == 1000),
            "{put}, {round}: {written:?}"
        );
        let read = on.run(get, &pipe, &into, items, group);
        assert!(
            read.iter().all(|&code| code == 0),
            "{get}, {round}: {read:?}"
        );
        assert_eq!(sorted(on.setup.read(&into, count)), words, "{get}, {round}");
        let read = on.run(get, &pipe, &into, items, group);
        assert!(
            read.iter().all(|&code| code == 1000),
            "{get}, {round}: {read:?}"
        );
        assert_eq!(on.packets(&pipe), 0);
    }
}

#[test]
fn reservations_of_work_items() {
    reserved("put_reserved", "get_reserved", 3, 64);
}

#[test]
fn reservations_of_work_groups() {
    reserved("put_group", "get_group", 1, 64);
    // What the groups of one kind wrote is read by others.
    let Some(on) = pipes() else { return };
    let pipe = on.pipe(4, 100);
    let words: Vec<u32> = (0..120).collect();
    let from = on.setup.buffer_of(&words);
    let into = on.setup.buffer(120 * 4);
    // Six groups of twenty, five of which find room.
    let written = on.run("put_group", &pipe, &from, 120, 20);
    assert_eq!(written.iter().filter(|&&code| code == 0).count(), 100);
    for group in written.chunks(20) {
        assert!(group.iter().all(|code| *code == group[0]), "{written:?}");
    }
    // Packets of a reservation are neighbours, and read from its far end here.
    let read = on.run("get_group", &pipe, &into, 100, 20);
    assert!(read.iter().all(|&code| code == 0));
    for group in on.setup.read::<u32>(&into, 100).chunks(20) {
        assert!(
            group.windows(2).all(|pair| pair[1] + 1 == pair[0]),
            "{group:?}"
        );
        assert_eq!(group[19] % 20, 0);
    }
}

#[test]
fn two_reservations_of_a_work_group() {
    let Some(on) = pipes() else { return };
    let pipe = on.pipe(4, 256);
    let words: Vec<u32> = (0..128).collect();
    let from = on.setup.buffer_of(&words);
    let written = on.run("put_group_twice", &pipe, &from, 128, 32);
    assert!(written.iter().all(|&code| code == 0), "{written:?}");
    let into = on.setup.buffer(256 * 4);
    let read = on.run("get", &pipe, &into, 256, 64);
    assert_eq!(failures(&read), 0);
    let expected = words.iter().copied().chain(1000..1128).collect();
    assert_eq!(sorted(on.setup.read(&into, 256)), sorted(expected));
}

#[test]
fn reservations_of_sub_groups() {
    let Some(on) = pipes() else { return };
    if !on.has_sub_groups() {
        return pumice_tests::left_out("the device has no sub-groups");
    }
    // Groups whose last sub-groups are not full, too.
    for group in [64, 16] {
        reserved("put_sub_group", "get_sub_group", 1, group);
    }
    let pipe = on.pipe(4, 1024);
    let words: Vec<u32> = (0..10 * 25).collect();
    let from = on.setup.buffer_of(&words);
    let into = on.setup.buffer(250 * 4);
    let written = on.run("put_sub_group", &pipe, &from, 250, 25);
    assert!(written.iter().all(|&code| code == 0), "{written:?}");
    let read = on.run("get_sub_group", &pipe, &into, 250, 25);
    assert!(read.iter().all(|&code| code == 0), "{read:?}");
    assert_eq!(sorted(on.setup.read(&into, 250)), words);
}

/// Packets can be read when all before them are committed, in whatever order that happens.
#[test]
fn commits_out_of_order() {
    let Some(on) = pipes() else { return };
    let pipe = on.pipe(4, 4);
    let seen = on.setup.buffer(8 * 4);
    let kernel = on.kernel("out_of_order");
    on.setup
        .run(kernel.set_buffer(0, &pipe).set_buffer(1, &seen), &[1], None);
    assert_eq!(on.setup.read::<u32>(&seen, 8), [0, 0, 0, 0, 4, 0, 0, 0]);
    let into = on.setup.buffer(4);
    for k in 0..4 {
        assert_eq!(on.run("get", &pipe, &into, 1, 1), [0]);
        assert_eq!(on.setup.read::<u32>(&into, 1), [100 + k]);
    }
}

/// A pipe goes to a function of another program, and both reserve as a group.
#[test]
fn linked_programs() {
    let Some(on) = pipes() else { return };
    const KERNELS: &str = "
        int fill(write_only pipe uint p, uint packet);
        kernel void put(write_only pipe uint p, global const uint *from, global int *result) {
            size_t i = get_global_id(0);
            result[i] = fill(p, from[i]);
            reserve_id_t id = work_group_reserve_write_pipe(p, get_local_size(0));
            if (is_valid_reserve_id(id)) {
                uint packet = 1000 + from[i];
                write_pipe(p, id, get_local_id(0), &packet);
                work_group_commit_write_pipe(p, id);
            }
        }";
    const FILL: &str = "
        int fill(write_only pipe uint p, uint packet) {
            reserve_id_t id = work_group_reserve_write_pipe(p, get_local_size(0));
            if (!is_valid_reserve_id(id))
                return 1000;
            int code = write_pipe(p, id, get_local_id(0), &packet);
            work_group_commit_write_pipe(p, id);
            return code;
        }";
    let parts = [KERNELS, FILL].map(|source| {
        let program = on.setup.program(source);
        ok!(clCompileProgram(
            program.0,
            1,
            &on.setup.device,
            c"-cl-std=CL3.0".as_ptr(),
            0,
            null(),
            null_mut(),
            None,
            null_mut()
        ));
        program
    });
    let handles = [parts[0].0, parts[1].0];
    let program = Program(create!(clLinkProgram(
        on.setup.context.0,
        1,
        &on.setup.device,
        null(),
        2,
        handles.as_ptr(),
        None,
        null_mut()
    )));
    let put = on.setup.kernel(&program, "put");
    let words: Vec<u32> = (0..64).collect();
    let (pipe, from) = (on.pipe(4, 128), on.setup.buffer_of(&words));
    let results = on.setup.buffer_of(&[77i32; 64]);
    put.set_buffer(0, &pipe)
        .set_buffer(1, &from)
        .set_buffer(2, &results);
    on.setup.run(&put, &[64], Some(&[32]));
    assert_eq!(on.setup.read::<i32>(&results, 64), [0; 64]);
    let into = on.setup.buffer(128 * 4);
    assert_eq!(failures(&on.run("get", &pipe, &into, 128, 64)), 0);
    let expected: Vec<u32> = words.iter().copied().chain(1000..1064).collect();
    assert_eq!(sorted(on.setup.read(&into, 128)), expected);
}
