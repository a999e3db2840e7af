//! Prints how drivers with several cards handle one address on all of them. Run by hand: `cargo
//! test --release -p pumice --lib several_cards -- --ignored --nocapture`.

use super::*;
use crate::backend::mirror::Mirror;
use crate::backend::vulkan::logical::LogicalDevice;
use crate::backend::vulkan::memory::USAGE;
use crate::backend::{Replay, ReplayKind, SharedKind};
use crate::util::address::{Reservation, PAGE};
use ash::vk;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

fn cards() -> Vec<Arc<VulkanDevice>> {
    let instance = match Instance::new(true) {
        Ok(instance) => Arc::new(instance),
        Err(error) => {
            println!("no Vulkan: {error}");
            return Vec::new();
        }
    };
    // SAFETY: the instance lives.
    match unsafe { instance.raw.enumerate_physical_device_groups_len() } {
        Ok(groups) => println!("{groups} device groups"),
        Err(error) => println!("no device groups: {error:?}"),
    }
    let all = adapter::enumerate(&instance).into_iter();
    all.map(|adapter| Arc::new(VulkanDevice::new(Arc::new(adapter))))
        .collect()
}

fn logical(card: &VulkanDevice) -> &Arc<LogicalDevice> {
    card.logical().expect("a device")
}

fn backend(card: &Arc<VulkanDevice>) -> Arc<dyn Device> {
    card.clone()
}

fn size_text(size: u64) -> String {
    match size {
        size if size >= GIB => format!("{} GiB", size / GIB),
        size if size >= MIB => format!("{} MiB", size / MIB),
        size => format!("{} KiB", size / KIB),
    }
}

fn host_free(address: u64, size: u64) -> &'static str {
    match Reservation::at(address, size.next_multiple_of(PAGE)) {
        Some(_) => "free on the host",
        None => "TAKEN on the host",
    }
}

/// Returns one attempt on two cards, in words.
fn again(
    from: &VulkanDevice,
    to: &VulkanDevice,
    size: u64,
    kind: ReplayKind,
    shift: u64,
) -> String {
    let (own, replay) = match from.place(size, kind, None) {
        Ok(placed) => placed,
        Err(error) => return format!("no address at first: {error}"),
    };
    let moved = Replay {
        buffer: replay.buffer.wrapping_add(shift),
        memory: if replay.memory == 0 {
            0
        } else {
            replay.memory.wrapping_add(shift)
        },
        ..replay
    };
    let wanted = own.address().wrapping_add(shift);
    let host = host_free(wanted, size);
    let numbers = format!(
        "{:#x} (buffer {:#x}, memory {:#x}; {host})",
        own.address(),
        replay.buffer,
        replay.memory
    );
    match to.place(size, kind, Some(&moved)) {
        Ok((other, _)) if other.address() == wanted => format!("SAME {wanted:#x} of {numbers}"),
        Ok((other, _)) => format!(
            "other: {:#x}, wanted {wanted:#x} of {numbers}",
            other.address()
        ),
        Err(error) => format!("refused: {error}, wanted {wanted:#x} of {numbers}"),
    }
}

/// Allocates memory as `again` with `ReplayKind::Whole`, but not as the buffer's dedicated
/// allocation, and of any memory type. Returns the address, the opaque numbers and the handles of a
/// raw buffer and its memory.
fn undedicated(
    device: &LogicalDevice,
    size: u64,
    index: u32,
    like: Option<(u64, u64)>,
) -> Result<(u64, (u64, u64), vk::Buffer, vk::DeviceMemory), vk::Result> {
    let (buffer_address, memory_address) = like.unwrap_or((0, 0));
    let raw = &device.raw;
    let mut opaque =
        vk::BufferOpaqueCaptureAddressCreateInfo::default().opaque_capture_address(buffer_address);
    let info = vk::BufferCreateInfo::default()
        .flags(vk::BufferCreateFlags::DEVICE_ADDRESS_CAPTURE_REPLAY)
        .size(size)
        .usage(USAGE)
        .push_next(&mut opaque);
    // SAFETY: a probe: the handles are made here, used as Vulkan asks, and destroyed by the caller.
    unsafe {
        let buffer = raw.create_buffer(&info, None)?;
        let needs = raw.get_buffer_memory_requirements(buffer);
        if needs.memory_type_bits & (1 << index) == 0 {
            raw.destroy_buffer(buffer, None);
            return Err(vk::Result::ERROR_FEATURE_NOT_PRESENT);
        }
        let mut opaque = vk::MemoryOpaqueCaptureAddressAllocateInfo::default()
            .opaque_capture_address(memory_address);
        let mut flags = vk::MemoryAllocateFlagsInfo::default().flags(
            vk::MemoryAllocateFlags::DEVICE_ADDRESS
                | vk::MemoryAllocateFlags::DEVICE_ADDRESS_CAPTURE_REPLAY,
        );
        let info = vk::MemoryAllocateInfo::default()
            .allocation_size(needs.size)
            .memory_type_index(index)
            .push_next(&mut opaque)
            .push_next(&mut flags);
        let memory = raw
            .allocate_memory(&info, None)
            .inspect_err(|_| raw.destroy_buffer(buffer, None))?;
        if let Err(error) = raw.bind_buffer_memory(buffer, memory, 0) {
            raw.destroy_buffer(buffer, None);
            raw.free_memory(memory, None);
            return Err(error);
        }
        let about = vk::BufferDeviceAddressInfo::default().buffer(buffer);
        let of_memory = vk::DeviceMemoryOpaqueCaptureAddressInfo::default().memory(memory);
        let numbers = (
            raw.get_buffer_opaque_capture_address(&about),
            raw.get_device_memory_opaque_capture_address(&of_memory),
        );
        Ok((
            raw.get_buffer_device_address(&about),
            numbers,
            buffer,
            memory,
        ))
    }
}

fn destroy(device: &LogicalDevice, buffer: vk::Buffer, memory: vk::DeviceMemory) {
    // SAFETY: made by `undedicated`, never used.
    unsafe {
        device.raw.destroy_buffer(buffer, None);
        device.raw.free_memory(memory, None);
    }
}

fn undedicated_again(from: &LogicalDevice, to: &LogicalDevice, size: u64, index: u32) -> String {
    let (address, numbers, buffer, memory) = match undedicated(from, size, index, None) {
        Ok(made) => made,
        Err(error) => return format!("no address at first: {error:?}"),
    };
    let result = match undedicated(to, size, index, Some(numbers)) {
        Ok((other, _, buffer, memory)) => {
            destroy(to, buffer, memory);
            let word = if other == address { "SAME" } else { "other" };
            format!("{word} {other:#x}, wanted {address:#x}")
        }
        Err(error) => format!("refused: {error:?}, wanted {address:#x}"),
    };
    destroy(from, buffer, memory);
    result
}

/// Checks plain allocations in the same order on two cards.
fn plain(a: &VulkanDevice, b: &VulkanDevice) {
    let mut kept = Vec::new();
    let mut equal = 0;
    let sizes = [
        64 * KIB,
        MIB,
        4 * MIB,
        33 * MIB,
        33 * MIB,
        64 * MIB,
        256 * MIB,
        6 * GIB,
    ];
    for size in sizes {
        for placement in [Placement::Device, Placement::HostRead] {
            let (Ok(one), Ok(two)) = (a.allocate(size, placement), b.allocate(size, placement))
            else {
                continue;
            };
            let (x, y) = (one.address(), two.address());
            equal += usize::from(x == y);
            println!("  {} {placement:?}: {x:#x} {y:#x}", size_text(size));
            kept.push((one, two));
        }
    }
    println!("  {equal} of {} equal", kept.len());
}

/// Checks one range of host memory imported on two cards.
fn imported(a: &VulkanDevice, b: &VulkanDevice) {
    let size = 4 * MIB;
    let Some(pages) = Reservation::at(0x5b00_0000_0000, size) else {
        println!("  the range is taken");
        return;
    };
    let pointer = pages.pointer().expect("not null");
    let mut held = Vec::new();
    for (name, card) in [("first", a), ("second", b)] {
        // SAFETY: the pages outlive the memories below.
        match unsafe { card.import_host(pointer, size) } {
            Ok(memory) => {
                let same = if memory.address() == pointer.as_ptr() as u64 {
                    " (the host's)"
                } else {
                    ""
                };
                println!("  {name}: {:#x}{same}", memory.address());
                held.push(memory);
            }
            Err(error) => println!("  {name}: {error}"),
        }
    }
    drop(held);
    drop(pages);
}

/// Allocates as contexts do, writes with each card and reads the contents. Returns a line of text.
fn mirrored(cards: &[Arc<VulkanDevice>], size: u64, kind: SharedKind) -> String {
    let backends: Vec<Arc<dyn Device>> = cards.iter().map(backend).collect();
    let mirror = Mirror::default();
    let memories = match mirror.allocate(&backends, size, 256, kind) {
        Ok(memories) => memories,
        Err(error) => return format!("NO: {error}"),
    };
    let address = memories[0].address();
    assert!(memories.iter().all(|memory| memory.address() == address));
    let mut speeds = Vec::new();
    for (number, (card, memory)) in cards.iter().zip(&memories).enumerate() {
        let mut stream = card.create_stream(StreamDesc::default()).expect("a stream");
        let dst = all(memory);
        for round in 0..2 {
            let start = Instant::now();
            let pattern = [number as u8 + 1 + 16 * round; 16];
            stream
                .record(
                    Op::Fill {
                        dst: &dst,
                        pattern: &pattern,
                    },
                    OrderRule::InOrder,
                    false,
                )
                .expect("fill");
            run(&mut stream);
            if round == 1 {
                speeds.push(size as f64 / start.elapsed().as_secs_f64() / 1e9);
            }
        }
    }
    let mut seen = Vec::new();
    for (card, memory) in cards.iter().zip(&memories) {
        let back = card.allocate(4096, Placement::HostRead).expect("staging");
        let mut stream = card.create_stream(StreamDesc::default()).expect("a stream");
        let (src, dst) = (slice(memory, size - 4096, 4096), all(&back));
        let region = BufferCopy::linear(0, 0, 4096);
        stream
            .record(
                Op::Copy {
                    src: &src,
                    dst: &dst,
                    region,
                },
                OrderRule::InOrder,
                false,
            )
            .expect("copy");
        run(&mut stream);
        seen.push(bytes_of(&back)[17]);
    }
    // SAFETY: the host has pages there.
    let host = unsafe {
        (address as *const u8)
            .add(size as usize - 1)
            .read_volatile()
    };
    let last = cards.len() as u8 + 16;
    let right = match kind {
        SharedKind::Fine => host == last && seen.iter().all(|byte| *byte == last),
        SharedKind::Coarse => host == 0 && seen.iter().zip(17..).all(|(byte, want)| *byte == want),
    };
    let word = if right { "WORKS" } else { "WRONG CONTENTS" };
    format!(
        "{word} at {address:#x}, devices see {seen:?}, the host {host}; fills {speeds:.0?} GB/s"
    )
}

#[test]
#[ignore = "prints what several cards can do"]
fn addresses_can_be_replayed() {
    let all_cards = cards();
    for (number, card) in all_cards.iter().enumerate() {
        let adapter = &logical(card).adapter;
        println!(
            "card {number}: {}, driver {}, replay {}, sparse {}, import align {}, placed maps {}, host addresses {}",
            adapter.caps.name,
            adapter.caps.driver_version,
            adapter.replays_addresses,
            size_text(adapter.max_sparse),
            adapter.caps.host_import_align,
            adapter.placed_map_align,
            adapter.host_addresses,
        );
    }
    // Software drivers need none of this.
    let cards: Vec<_> = all_cards
        .into_iter()
        .filter(|card| logical(card).adapter.replays_addresses)
        .collect();
    let Some(a) = cards.first() else {
        println!("no card gives addresses again");
        return;
    };
    // With one card all is tried on it, to see what the driver does at all.
    let b = cards.get(1).unwrap_or(a);
    println!("plain allocations, first and second card:");
    plain(a, b);
    println!("one range of host memory imported on both:");
    imported(a, b);
    let ways = [ReplayKind::Whole, ReplayKind::Pieces, ReplayKind::Host];
    let sizes = [
        64 * KIB,
        2 * MIB,
        4 * MIB,
        32 * MIB,
        256 * MIB,
        GIB,
        3 * GIB,
        6 * GIB,
    ];
    let try_sizes = |name: &str, from: &VulkanDevice, to: &VulkanDevice| {
        println!("{name}:");
        for way in ways {
            for size in sizes {
                let text = again(from, to, size, way, 0);
                println!("  {way:?} {}: {text}", size_text(size));
            }
        }
        let types = logical(from).adapter.memory.memory_types_as_slice();
        for (index, kind) in (0..).zip(types) {
            let text = undedicated_again(logical(from), logical(to), 32 * MIB, index);
            println!(
                "  not dedicated, type {index} {:?}: {text}",
                kind.property_flags
            );
        }
    };
    if !Arc::ptr_eq(a, b) {
        try_sizes("first to second", a, b);
        try_sizes("second to first", b, a);
    }
    println!("eight blocks held at a time, first to second:");
    for way in [ReplayKind::Whole, ReplayKind::Pieces] {
        let mut held = Vec::new();
        let mut same = 0;
        for _ in 0..8 {
            let Ok((own, replay)) = a.place(32 * MIB, way, None) else {
                break;
            };
            if let Ok((other, _)) = b.place(32 * MIB, way, Some(&replay)) {
                same += usize::from(other.address() == own.address());
                held.push(other);
            }
            held.push(own);
        }
        println!("  {way:?}: {same} of 8");
    }
    println!("as contexts do it:");
    for kind in [SharedKind::Coarse, SharedKind::Fine] {
        for size in [64 * KIB, 24 * MIB, 512 * MIB, 2 * GIB, 6 * GIB] {
            println!(
                "  {kind:?} {}: {}",
                size_text(size),
                mirrored(&cards, size, kind)
            );
        }
    }
    println!("given again on the same card after it was freed:");
    for way in [ReplayKind::Whole, ReplayKind::Pieces, ReplayKind::Host] {
        let text = match a.place(32 * MIB, way, None) {
            Ok((memory, replay)) => {
                let address = memory.address();
                drop(memory);
                match a.place(32 * MIB, way, Some(&replay)) {
                    Ok((memory, _)) if memory.address() == address => "same".to_owned(),
                    Ok((memory, _)) => format!("other: {:#x} for {address:#x}", memory.address()),
                    Err(error) => format!("refused: {error}"),
                }
            }
            Err(error) => error.to_string(),
        };
        println!("  {way:?}: {text}");
    }
    println!("addresses moved by us:");
    for (name, from, to) in [("first to first", a, a), ("first to second", a, b)] {
        for way in ways {
            for shift in [64 * MIB, 64 * GIB] {
                let text = again(from, to, 32 * MIB, way, shift);
                println!("  {name}, {way:?}, by {}: {text}", size_text(shift));
            }
        }
    }
    // The address is in use: an honest driver refuses.
    try_sizes("first to first", a, a);
    println!("{} messages of the validation layer", validation_messages());
}
