//! Fills, copies and updates, by transfer commands and by shaders.

use super::*;

#[test]
fn fills_by_transfer() {
    fills(false);
}

#[test]
fn fills_by_shader() {
    fills(true);
}

fn fills(shaders: bool) {
    let _silence = Silence::new();
    let Some(device) = device(shaders) else {
        return;
    };
    let mut stream = device.create_stream(StreamDesc::default()).expect("stream");
    let memory = device
        .allocate(100_000, Placement::HostRead)
        .expect("allocate");
    let data = noise(128);
    for log in 0..8 {
        let length = 1usize << log;
        for (offset, units) in [
            (0, 1),
            (1, 1),
            (3, 5),
            (1, 700 >> log),
            (5, 70_000 >> log),
            (2, 17),
        ] {
            let (offset, size) = (offset * length, units.max(1) * length);
            for pattern in [&data[..length], &vec![data[0]; length]] {
                put(&memory, &[0; 100_000]);
                let dst = slice(&memory, offset as u64, size as u64);
                stream
                    .record(Op::Fill { dst: &dst, pattern }, OrderRule::InOrder, false)
                    .expect("record");
                run(&mut stream);
                let mut want = vec![0; 100_000];
                for (at, byte) in want[offset..offset + size].iter_mut().enumerate() {
                    *byte = pattern[at % length];
                }
                assert!(
                    bytes_of(&memory) == want,
                    "pattern of {length} at {offset}, {size} bytes"
                );
            }
        }
    }
}

fn copies(shader_copies: bool) {
    let _silence = Silence::new();
    let Some(device) = device(shader_copies) else {
        return;
    };
    let mut stream = device.create_stream(StreamDesc::default()).expect("stream");
    let data = noise(300_000);
    let src = device
        .allocate(300_000, Placement::HostWrite)
        .expect("allocate");
    let dst = device
        .allocate(300_000, Placement::HostRead)
        .expect("allocate");
    put(&src, &data);
    for (from, to, size) in [
        (0, 0, 300_000),
        (1, 0, 777),
        (16, 32, 4096),
        (20, 36, 4096 + 7),
        (4, 8, 100_000),
        (7, 23, 150_001),
        (3, 5, 1),
        (15, 31, 90),
        (48, 16, 65536),
    ] {
        put(&dst, &[0; 300_000]);
        let region = BufferCopy::linear(from as u64, to as u64, size as u64);
        let op = Op::Copy {
            src: &all(&src),
            dst: &all(&dst),
            region,
        };
        stream
            .record(op, OrderRule::InOrder, false)
            .expect("record");
        run(&mut stream);
        let mut want = vec![0; 300_000];
        want[to..to + size].copy_from_slice(&data[from..from + size]);
        assert!(bytes_of(&dst) == want, "{size} bytes from {from} to {to}");
    }
    for (bytes, rows, slices, src_row, src_slice, dst_row, dst_slice) in [
        (10u64, 5u64, 3u64, 33u64, 33 * 6u64, 21u64, 21 * 7u64),
        (64, 40, 5, 128, 128 * 41, 64, 64 * 40),
        (64, 40, 5, 64, 64 * 40, 64, 64 * 40),
        (64, 40, 5, 64, 64 * 50, 96, 96 * 45),
        (128, 1, 9, 128, 512, 128, 256),
        (400, 100, 2, 500, 50_000, 404, 40_404),
        (1, 300, 4, 3, 900, 2, 600),
    ] {
        put(&dst, &[0; 300_000]);
        let region = BufferCopy {
            src_offset: 8,
            dst_offset: 12,
            bytes,
            rows,
            slices,
            src_row_pitch: src_row,
            src_slice_pitch: src_slice,
            dst_row_pitch: dst_row,
            dst_slice_pitch: dst_slice,
        };
        let op = Op::Copy {
            src: &slice(&src, 4, 200_000),
            dst: &slice(&dst, 4, 200_000),
            region,
        };
        stream
            .record(op, OrderRule::InOrder, false)
            .expect("record");
        run(&mut stream);
        let mut want = vec![0; 300_000];
        for z in 0..slices {
            for y in 0..rows {
                let from = (12 + z * src_slice + y * src_row) as usize;
                let to = (16 + z * dst_slice + y * dst_row) as usize;
                want[to..to + bytes as usize].copy_from_slice(&data[from..from + bytes as usize]);
            }
        }
        assert!(bytes_of(&dst) == want, "box {region:?}");
    }
}

#[test]
fn copies_by_transfer() {
    copies(false);
}

#[test]
fn copies_by_shader() {
    copies(true);
}

#[test]
fn updates_of_any_alignment() {
    let _silence = Silence::new();
    let Some(device) = device(false) else { return };
    let mut stream = device.create_stream(StreamDesc::default()).expect("stream");
    let memory = device
        .allocate(80_000, Placement::HostRead)
        .expect("allocate");
    let data = noise(65536);
    for (offset, size) in [(0, 4), (1, 1), (3, 10), (8, 65536), (5, 65536), (4, 7)] {
        put(&memory, &[0; 80_000]);
        let op = Op::Update {
            dst: &slice(&memory, offset, size),
            data: &data[..size as usize],
        };
        stream
            .record(op, OrderRule::InOrder, false)
            .expect("record");
        run(&mut stream);
        let mut want = vec![0; 80_000];
        want[offset as usize..(offset + size) as usize].copy_from_slice(&data[..size as usize]);
        assert!(bytes_of(&memory) == want, "{size} bytes at {offset}");
    }
}
