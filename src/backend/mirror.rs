//! Memory that several devices and the host have at one address: shared virtual memory of contexts with several cards.
//!
//! One device chooses an address, the host reserves it, and the other devices are asked to give it too ([`Device::place`]);
//! whoever refuses, the next device chooses. What was refused is held meanwhile, so that no address comes twice.
//! [`SharedKind::Coarse`] memory is each device's own, and the host's pages are a further copy: the caller moves contents.
//! [`SharedKind::Fine`] memory is the host's pages, which all devices see.
//!
//! Blocks are dealt out in ranges, as those of a single device. A block lives as long as one of its ranges does.

use super::owned_memory::with_owner;
use super::{Device, DeviceError, Memory, Replay, ReplayKind, Result, SharedKind};
use crate::util::address::{Reservation, PAGE};
use crate::util::lock::{rank, Mutex};
use crate::util::ranges::Ranges;
use std::sync::{Arc, Weak};

/// Size of a block in bytes, at least.
const BLOCK: u64 = 32 << 20;

/// Blocks are whole large pages of the host or the device.
const UNIT: u64 = 64 << 10;

/// How many addresses are tried.
const TRIES: usize = 16;

/// From this size on, addresses are sought without memory behind them: what is refused would take too much.
const LARGE: u64 = 1 << 30;

/// The same range on several devices.
struct Block {
    devices: Vec<Arc<dyn Device>>,
    /// One of each device.
    memories: Vec<Arc<dyn Memory>>,
    kind: SharedKind,
    base: u64,
    free: Mutex<Ranges, { rank::MIRROR_RANGES }>,
    /// The host's. Goes after the memories that may lie in it.
    _pages: Reservation,
}

/// The blocks of a context.
#[derive(Default)]
pub struct Mirror {
    state: Mutex<MirrorState, { rank::MIRROR }>,
}

/// The blocks that have been reserved, and the kinds of replay that do not work.
#[derive(Default)]
struct MirrorState {
    blocks: Vec<Weak<Block>>,
    /// The kinds of replay that have failed.
    hopeless: Vec<ReplayKind>,
}

/// A range of a block.
struct Lease {
    block: Arc<Block>,
    begin: u64,
    size: u64,
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.block.free.lock().give(self.begin, self.size);
    }
}

impl Mirror {
    /// Allocates memory of `size` bytes on each of the devices, at one address that is a multiple
    /// of `align` (a power of two).
    pub fn allocate(
        &self,
        devices: &[Arc<dyn Device>],
        size: u64,
        align: u64,
        kind: SharedKind,
    ) -> Result<Vec<Arc<dyn Memory>>> {
        let driver =
            |device: &Arc<dyn Device>| (device.caps().vendor_id, device.caps().driver_uuid);
        let first = devices.first().map(driver);
        if devices.iter().any(|device| Some(driver(device)) != first) {
            return Err(DeviceError::Unsupported(
                "one address on devices of different drivers".to_owned(),
            ));
        }
        let align = align.max(256);
        let size = size
            .checked_next_multiple_of(256)
            .ok_or(DeviceError::OutOfHostMemory)?;
        let mut state = self.state.lock();
        state.blocks.retain(|block| block.strong_count() > 0);
        let fits = |block: &Arc<Block>| {
            let mut pairs = block.devices.iter().zip(devices);
            block.kind == kind
                && block.devices.len() == devices.len()
                && pairs.all(|(one, other)| Arc::ptr_eq(one, other))
        };
        for block in state.blocks.iter().filter_map(Weak::upgrade).filter(fits) {
            if let Some(memories) = lease(&block, size, align)? {
                return Ok(memories);
            }
        }
        // Blocks begin at pages; what asks for more gets room to move.
        let wanted = size
            .checked_add(align.saturating_sub(PAGE))
            .and_then(|size| size.max(BLOCK).checked_next_multiple_of(UNIT))
            .ok_or(DeviceError::OutOfHostMemory)?;
        let block = Arc::new(state.new_block(devices, wanted, kind)?);
        state.blocks.push(Arc::downgrade(&block));
        lease(&block, size, align)?.ok_or(DeviceError::OutOfDeviceMemory { size })
    }
}

/// Returns a range of a block, if it has one.
fn lease(block: &Arc<Block>, size: u64, align: u64) -> Result<Option<Vec<Arc<dyn Memory>>>> {
    let Some(begin) = block.free.lock().take(block.base, size, align) else {
        return Ok(None);
    };
    let lease = Arc::new(Lease {
        block: block.clone(),
        begin,
        size,
    });
    let part = |(device, whole): (&Arc<dyn Device>, &Arc<dyn Memory>)| {
        let memory = device.part(whole, begin, size)?;
        // Each keeps its range of the block.
        Ok(with_owner(memory, lease.clone()))
    };
    let pairs = block.devices.iter().zip(&block.memories);
    pairs.map(part).collect::<Result<_>>().map(Some)
}

impl MirrorState {
    fn new_block(
        &mut self,
        devices: &[Arc<dyn Device>],
        size: u64,
        kind: SharedKind,
    ) -> Result<Block> {
        let attempts: &[ReplayKind] = match kind {
            SharedKind::Fine => &[ReplayKind::Host],
            SharedKind::Coarse if size < LARGE => &[ReplayKind::Whole, ReplayKind::Pieces],
            SharedKind::Coarse => &[ReplayKind::Pieces, ReplayKind::Whole],
        };
        let mut last =
            DeviceError::Unsupported("one address on several devices, as tried before".to_owned());
        for by in attempts {
            if self.hopeless.contains(by) {
                continue;
            }
            match meet(devices, size, *by).and_then(|met| met.back(devices, *by, kind)) {
                Ok(block) => {
                    crate::log!(Debug, "{size} bytes at {:#x} by {by:?}", block.base);
                    return Ok(block);
                }
                Err(error) => {
                    crate::log!(Info, "one address on several devices by {by:?}: {error}");
                    // Of a smaller size there may be enough.
                    if !matches!(
                        error,
                        DeviceError::OutOfDeviceMemory { .. } | DeviceError::OutOfHostMemory
                    ) {
                        self.hopeless.push(*by);
                    }
                    last = error;
                }
            }
        }
        Err(last)
    }
}

/// An address that all have.
struct Met {
    /// One of each device.
    placed: Vec<Arc<dyn Memory>>,
    pages: Reservation,
    base: u64,
    size: u64,
}

/// Finds an address that all devices and the host have.
fn meet(devices: &[Arc<dyn Device>], size: u64, kind: ReplayKind) -> Result<Met> {
    let mut rejected: Vec<Arc<dyn Memory>> = Vec::new();
    let mut last = DeviceError::Unsupported("one address on several devices".to_owned());
    for turn in 0..TRIES {
        let Some((chooser, first)) = devices
            .get(turn % devices.len().max(1))
            .map(|device| (turn % devices.len(), device))
        else {
            break;
        };
        let (own, replay) = match first.place(size, kind, None) {
            Ok(placed) => placed,
            Err(error) if rejected.is_empty() => return Err(error),
            // What was rejected may be in its way.
            Err(_) => break,
        };
        let base = own.address();
        let Some(pages) = Reservation::at(base, size) else {
            last = DeviceError::Unsupported("addresses that are free on the host".to_owned());
            rejected.push(own);
            continue;
        };
        match follow(devices, chooser, own, &replay) {
            Ok(placed) => {
                return Ok(Met {
                    placed,
                    pages,
                    base,
                    size,
                })
            }
            Err((made, error)) => {
                rejected.extend(made);
                last = match error {
                    DeviceError::Lost => return Err(error),
                    // Some drivers call an address that is taken so.
                    DeviceError::OutOfDeviceMemory { .. } => {
                        DeviceError::Unsupported("another device's addresses".to_owned())
                    }
                    error => error,
                };
            }
        }
    }
    Err(last)
}

/// Requests the address that one device has chosen from the other devices. On failure returns the
/// memories made so far, to be held.
fn follow(
    devices: &[Arc<dyn Device>],
    chooser: usize,
    own: Arc<dyn Memory>,
    replay: &Replay,
) -> std::result::Result<Vec<Arc<dyn Memory>>, (Vec<Arc<dyn Memory>>, DeviceError)> {
    let base = own.address();
    let mut made = Vec::with_capacity(devices.len());
    for (index, device) in devices.iter().enumerate() {
        if index == chooser {
            made.push(own.clone());
            continue;
        }
        let refused = match device.place(replay.size, replay.kind, Some(replay)) {
            Ok((memory, _)) if memory.address() == base => {
                made.push(memory);
                continue;
            }
            Ok((memory, _)) => {
                let other = memory.address();
                made.push(memory);
                DeviceError::Unsupported(format!("address {base:#x} (it gave {other:#x})"))
            }
            Err(error) => error,
        };
        made.push(own);
        return Err((made, refused));
    }
    Ok(made)
}

impl Met {
    /// Binds memory to the reserved addresses.
    fn back(self, devices: &[Arc<dyn Device>], by: ReplayKind, kind: SharedKind) -> Result<Block> {
        let host = match by {
            ReplayKind::Host => self.pages.pointer(),
            ReplayKind::Whole | ReplayKind::Pieces => None,
        };
        let mut memories = Vec::with_capacity(devices.len());
        for (device, placed) in devices.iter().zip(&self.placed) {
            // SAFETY: the block keeps the pages longer than the memories, and parts of these keep the block.
            memories.push(unsafe { device.back(placed, host) }?);
        }
        Ok(Block {
            devices: devices.to_vec(),
            memories,
            kind,
            base: self.base,
            free: Mutex::new(Ranges::whole(self.size)),
            _pages: self.pages,
        })
    }
}
