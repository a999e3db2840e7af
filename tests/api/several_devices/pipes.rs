//! Pipes in contexts of two devices: packets that one device wrote are read by the other.

use super::pair;
use pumice_tests::sys::*;
use pumice_tests::{create, info_value, Buffer};
use std::ptr::null;

#[test]
fn packets_follow() {
    let Some(pair) = pair() else { return };
    let pipes = |device| info_value!(u32, clGetDeviceInfo(device), CL_DEVICE_PIPE_SUPPORT);
    if pair.devices.iter().any(|device| pipes(*device) == 0) {
        return pumice_tests::left_out("no pipes");
    }
    let program = pair.program(
        "kernel void put(write_only pipe uint p, global const uint *from, global uint *failed) {
             failed[get_global_id(0)] = write_pipe(p, &from[get_global_id(0)]) != 0;
         }
         kernel void get(read_only pipe uint p, global uint *to, global uint *failed) {
             failed[get_global_id(0)] = read_pipe(p, &to[get_global_id(0)]) != 0;
         }",
        2,
    );
    let (put, get) = (pair.kernel(&program, "put"), pair.kernel(&program, "get"));
    let most = 200usize;
    let pipe = Buffer(create!(clCreatePipe(
        pair.context.0,
        0,
        4,
        most as u32,
        null()
    )));
    let mut words: Vec<u32> = (0..150).collect();
    let from = pair.buffer(CL_MEM_COPY_HOST_PTR, words.len(), words.as_mut_ptr());
    let into = pair.buffer(CL_MEM_READ_WRITE, 100, std::ptr::null_mut());
    let failed = pair.buffer(CL_MEM_READ_WRITE, 150, std::ptr::null_mut());
    put.set_buffer(0, &pipe)
        .set_buffer(1, &from)
        .set_buffer(2, &failed);
    get.set_buffer(0, &pipe)
        .set_buffer(1, &into)
        .set_buffer(2, &failed);
    let mut held = 0;
    // Three packets in for two out, each time by the other device, over the end of the ring and until there is no room.
    for round in 0..8 {
        let (writer, reader) = (round % 2, (round + 1) % 2);
        let written = pair.launch(writer, &put, 150, &[]);
        let refused = pair.read(writer, &failed, 150, &[written.0]);
        let refused = refused.iter().sum::<u32>() as usize;
        assert_eq!(refused, (held + 150usize).saturating_sub(most), "{round}");
        held += 150 - refused;
        let read = pair.launch(reader, &get, 100, &[written.0]);
        let missing = pair.read(reader, &failed, 100, &[read.0]);
        assert_eq!(missing.iter().sum::<u32>(), 0, "{round}");
        held -= 100;
        let got = pair.read(writer, &into, 100, &[read.0]);
        assert!(got.iter().all(|word| *word < 150), "{round}: {got:?}");
        if round == 0 {
            let mut distinct = got.clone();
            distinct.sort_unstable();
            distinct.dedup();
            assert_eq!(distinct.len(), 100, "{got:?}");
        }
    }
    let read = pair.launch(0, &get, held, &[]);
    assert_eq!(pair.read(1, &failed, held, &[read.0]), vec![0; held]);
    let read = pair.launch(1, &get, 5, &[]);
    assert_eq!(pair.read(0, &failed, 5, &[read.0]), [1; 5]);
}
