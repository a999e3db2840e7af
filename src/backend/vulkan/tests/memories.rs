//! Memory: placements, large pages, memory of the application, and more than one allocation holds.

use super::*;

#[test]
fn memory_of_every_placement() {
    let _silence = Silence::new();
    let Some(device) = device(false) else { return };
    for placement in [
        Placement::Device,
        Placement::DeviceMapped,
        Placement::HostWrite,
        Placement::HostRead,
    ] {
        for size in [1u64, 3, 256, 4097, 1 << 20, 40 << 20] {
            let memory = device.allocate(size, placement).expect("allocate");
            assert_eq!(memory.size(), size);
            assert_eq!(memory.address() % 256, 0);
            assert!(placement == Placement::Device || memory.mapped().is_some());
            if memory.mapped().is_some() {
                put(&memory, &vec![7; size as usize]);
            }
        }
    }
    assert!(device.allocate(1 << 50, Placement::Device).is_err());
    let limit = device.caps().max_alloc_size;
    // More than the heap holds: an error, and nothing is left behind.
    let mut held = Vec::new();
    while let Ok(memory) = device.allocate(limit, Placement::Device) {
        held.push(memory);
        if held.len() > 4 {
            break;
        }
    }
    drop(held);
    device
        .allocate(1 << 20, Placement::Device)
        .expect("memory again");
}

/// Software drivers' memory asks for large pages: the kernel notes "hg" on its mapping. On Windows they are a privilege.
#[cfg(not(windows))]
#[test]
fn large_pages() {
    let _silence = Silence::new();
    let Some(device) = device(false) else { return };
    if !device.logical().expect("a device").adapter.host_addresses {
        return left_out("the device's memory is not the host's");
    }
    if !std::path::Path::new("/sys/kernel/mm/transparent_hugepage").exists() {
        return left_out("no large pages");
    }
    let memory = device
        .allocate(40 << 20, Placement::Device)
        .expect("allocate");
    let middle = memory.address() + (20 << 20);
    let maps = std::fs::read_to_string("/proc/self/smaps").expect("this process");
    let mut inside = false;
    let mut found = false;
    for line in maps.lines() {
        let range = line.split(' ').next().and_then(|r| r.split_once('-'));
        let parse = |text: &str| u64::from_str_radix(text, 16).ok();
        if let Some((begin, end)) = range.and_then(|(b, e)| Some((parse(b)?, parse(e)?))) {
            inside = (begin..end).contains(&middle);
        }
        found |= inside && line.starts_with("VmFlags:") && line.contains(" hg");
    }
    assert!(found);
}

#[test]
fn host_memory_in_place() {
    let _silence = Silence::new();
    let Some(device) = device(false) else { return };
    if device.caps().host_import_align == 0 {
        left_out("no host import");
        return;
    }
    let mut block = vec![0u128; 4096];
    let pointer = NonNull::new(block.as_mut_ptr().cast::<u8>()).expect("not null");
    // SAFETY: the block outlives the memory and the work on it.
    let memory = unsafe { device.import_host(pointer, 65536) }.expect("import");
    let mut stream = device.create_stream(StreamDesc::default()).expect("stream");
    let fill = Op::Fill {
        dst: &slice(&memory, 48, 4096),
        pattern: &[9],
    };
    stream
        .record(fill, OrderRule::InOrder, false)
        .expect("record");
    run(&mut stream);
    drop((stream, memory));
    assert!(block[..3].iter().all(|v| *v == 0));
    assert!(block[3..3 + 256]
        .iter()
        .all(|v| *v == u128::from_ne_bytes([9; 16])));
    assert!(block[3 + 256..].iter().all(|v| *v == 0));
}

#[test]
fn memory_above_the_limit_of_one_allocation() {
    let _silence = Silence::new();
    let Some(device) = device(true) else { return };
    let size = 5 << 30;
    if device.caps().max_alloc_size < size {
        left_out("no sparse binding, or not that much memory");
        return;
    }
    let mut stream = device.create_stream(StreamDesc::default()).expect("stream");
    let memory = device.allocate(size, Placement::Device).expect("allocate");
    let back = device
        .allocate(4096, Placement::HostRead)
        .expect("allocate");
    for pattern in [&[7u8][..], &noise(16)] {
        let fill = Op::Fill {
            dst: &all(&memory),
            pattern,
        };
        stream
            .record(fill, OrderRule::InOrder, false)
            .expect("record");
        // Across the seam of two pieces, and at the end.
        for offset in [0, (1 << 30) - 2048, (4 << 30) - 2048, size - 4096] {
            let region = BufferCopy::linear(offset, 0, 4096);
            let copy = Op::Copy {
                src: &all(&memory),
                dst: &all(&back),
                region,
            };
            stream
                .record(copy, OrderRule::InOrder, false)
                .expect("record");
            run(&mut stream);
            let want: Vec<u8> = pattern.iter().copied().cycle().take(4096).collect();
            assert!(bytes_of(&back) == want, "at {offset}");
        }
    }
}

/// The bits of texels are one image, however many launches access blocks of them; other formats are images of their own.
#[test]
fn images_of_bits_are_made_once() {
    use crate::backend::image::ImageDim;
    use crate::backend::{ImageDesc, PixelFormat};
    use crate::cl;
    let _silence = Silence::new();
    let Some(device) = device(false) else { return };
    let format = |order, data| PixelFormat { order, data };
    let desc = ImageDesc {
        dim: ImageDim::D2,
        format: format(cl::CL_RGBA, cl::CL_UNORM_INT8),
        width: 5,
        height: 3,
        depth: 1,
        layers: 1,
    };
    let image = device.create_image(&desc).expect("an image");
    let raw = desc.format.raw().expect("a format of integers");
    let alias = |format| device.alias_image(&image, format).expect("an alias");
    assert!(Arc::ptr_eq(&alias(raw), &alias(raw)));
    assert_eq!(alias(raw).desc().format, raw);
    let shared = format(cl::CL_sRGBA, cl::CL_UNORM_INT8);
    assert_eq!(alias(shared).desc().format, shared);
}
