//! The times of a device event, written to where a kernel wants them (`capture_event_profiling_info`): by the host where it has
//! that memory at the same address, else by a kernel of our own.

use super::{Code, Device, DeviceError, MachineCode, Op, OrderRule, Pipeline, Result, Stream};
use parking_lot::Mutex;
use smallvec::SmallVec;
use spirv_lowering::interface::ArgKind;
use spirv_lowering::ir::parse::parse_module;
use spirv_lowering::target::Target;
use spirv_lowering::{Lowered, Options, Program};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

/// The kernel.
const KERNEL: &str = "kernel \"write_times\" fn0 reqd 1 1 1 {
  value i64 count 1 size 8 \"to\" \"ulong\" private none
  value i64 count 1 size 8 \"first\" \"ulong\" private none
  value i64 count 1 size 8 \"second\" \"ulong\" private none
}
func fn0 \"write_times\" (i64, i64, i64) -> () {
block0(v0: i64, v1: i64, v2: i64):
  v3 = int_to_ptr v0 : ptr.global
  store.align8 v3, v1, v2
  return
}
";

struct Made {
    code: Arc<dyn Code>,
    pipeline: Arc<dyn Pipeline>,
}

/// Writes times on one device.
#[derive(Default)]
pub struct EventTimes {
    /// The kernel, once it was wanted.
    made: Mutex<Option<Made>>,
}

impl EventTimes {
    /// Writes the times of an event to an address that a kernel gave, from now on in the order of the stream or at once. False:
    /// nothing can be there. True: it is written, or recorded and to be ordered by a barrier.
    pub fn write(
        &self,
        device: &dyn Device,
        stream: &mut dyn Stream,
        address: u64,
        times: [u64; 2],
    ) -> Result<bool> {
        if address == 0 || address % 8 != 0 {
            return Ok(false);
        }
        if device.caps().svm.system {
            for (number, time) in times.into_iter().enumerate() {
                let place = address as usize + 8 * number;
                // SAFETY: the kernel vouches for the memory, as for what it writes itself; device and host share addresses.
                unsafe { AtomicU64::from_ptr(place as *mut u64) }.store(time, Ordering::Relaxed);
            }
            return Ok(true);
        }
        let mut slot = self.made.lock();
        let made = match slot.as_ref() {
            Some(made) => made,
            None => slot.insert(make(device)?),
        };
        let interface = made.code.interface();
        let mut push: SmallVec<[u8; 64]> = SmallVec::from_elem(0, interface.push_size as usize);
        let values = [address, times[0], times[1]];
        for (arg, value) in interface.args.iter().zip(values) {
            if let ArgKind::Value { offset, .. } = arg.kind {
                let at = offset as usize;
                if let Some(place) = push.get_mut(at..at + 8) {
                    place.copy_from_slice(&value.to_ne_bytes());
                }
            }
        }
        let op = Op::Dispatch {
            pipeline: &made.pipeline,
            groups: [1; 3],
            push: &push,
            uses: &[],
            bindings: &[],
            touches_anything: true,
        };
        stream.record(op, OrderRule::Unordered, false)?;
        Ok(true)
    }
}

fn lowered(target: &Target) -> Result<Lowered> {
    let failed = |what: String| DeviceError::Unsupported(format!("times of events: {what}"));
    let module = parse_module(KERNEL).map_err(|error| failed(error.to_string()))?;
    let lowered = Program::from_module(module)
        .lower("write_times", target, &mut Options::default())
        .map_err(|error| failed(error.to_string()))?;
    let interface = &lowered.interface;
    if interface.args_in_buffer || !interface.implicit.is_empty() {
        return Err(failed("the kernel wants more than arguments".to_owned()));
    }
    Ok(lowered)
}

fn make(device: &dyn Device) -> Result<Made> {
    let lowered = lowered(device.target())?;
    let code = device.load(MachineCode::Spirv(&lowered.words), &lowered.interface)?;
    let pipeline = code.specialise([1; 3], &[], 1)?;
    Ok(Made { code, pipeline })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_gets_its_arguments_alone() {
        for target in [Target::full(), Target::lavapipe()] {
            let lowered = lowered(&target).unwrap();
            assert_eq!(lowered.interface.push_size, 24);
            assert!(!lowered.words.is_empty());
        }
    }
}
