//! The back end on a real device, with the validation layer where it is installed. Skipped when there is no device.

mod loss;
mod marks;
mod measure;
mod memories;
mod several_cards;
mod transfers;

use super::adapter;
use super::device::VulkanDevice;
use super::tuning::Tuning;
use super::{instance::Instance, validation_messages};
use crate::backend::{
    BufferCopy, Device, MachineCode, Memory, Op, OrderRule, Pipeline, Placement, Point, Slice,
    Stream, StreamDesc, Use,
};
use crate::left_out::left_out;
use pumice_spirv_tools::TargetEnv;
use spirv_lowering::interface::KernelInterface;
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Instant;

/// out[i] = a[i] + b[i] over 32-bit integers, for i < n. Pushed: a, b, out (addresses), n.
const ADD: &str = r#"
    OpCapability Shader
    OpCapability Int64
    OpCapability PhysicalStorageBufferAddresses
    OpCapability VulkanMemoryModel
    OpMemoryModel PhysicalStorageBuffer64 Vulkan
    OpEntryPoint GLCompute %main "main" %id %push
    OpExecutionMode %main LocalSize 1 1 1
    OpDecorate %id BuiltIn GlobalInvocationId
    OpDecorate %size BuiltIn WorkgroupSize
    OpDecorate %sx SpecId 0
    OpDecorate %sy SpecId 1
    OpDecorate %sz SpecId 2
    OpDecorate %args Block
    OpMemberDecorate %args 0 Offset 0
    OpMemberDecorate %args 1 Offset 8
    OpMemberDecorate %args 2 Offset 16
    OpMemberDecorate %args 3 Offset 24
    %void = OpTypeVoid
    %fn = OpTypeFunction %void
    %bool = OpTypeBool
    %u32 = OpTypeInt 32 0
    %u64 = OpTypeInt 64 0
    %v3 = OpTypeVector %u32 3
    %pv3 = OpTypePointer Input %v3
    %args = OpTypeStruct %u64 %u64 %u64 %u32
    %pargs = OpTypePointer PushConstant %args
    %ppu64 = OpTypePointer PushConstant %u64
    %ppu32 = OpTypePointer PushConstant %u32
    %pp = OpTypePointer PhysicalStorageBuffer %u32
    %0 = OpConstant %u32 0
    %1 = OpConstant %u32 1
    %2 = OpConstant %u32 2
    %3 = OpConstant %u32 3
    %four = OpConstant %u64 4
    %sx = OpSpecConstant %u32 1
    %sy = OpSpecConstant %u32 1
    %sz = OpSpecConstant %u32 1
    %size = OpSpecConstantComposite %v3 %sx %sy %sz
    %id = OpVariable %pv3 Input
    %push = OpVariable %pargs PushConstant
    %main = OpFunction %void None %fn
    %entry = OpLabel
    %gid = OpLoad %v3 %id
    %i = OpCompositeExtract %u32 %gid 0
    %pn = OpAccessChain %ppu32 %push %3
    %n = OpLoad %u32 %pn
    %in = OpULessThan %bool %i %n
    OpSelectionMerge %end None
    OpBranchConditional %in %body %end
    %body = OpLabel
    %wide = OpUConvert %u64 %i
    %off = OpIMul %u64 %wide %four
    %pa = OpAccessChain %ppu64 %push %0
    %a = OpLoad %u64 %pa
    %a1 = OpIAdd %u64 %a %off
    %a2 = OpConvertUToPtr %pp %a1
    %x = OpLoad %u32 %a2 Aligned 4
    %pb = OpAccessChain %ppu64 %push %1
    %b = OpLoad %u64 %pb
    %b1 = OpIAdd %u64 %b %off
    %b2 = OpConvertUToPtr %pp %b1
    %y = OpLoad %u32 %b2 Aligned 4
    %sum = OpIAdd %u32 %x %y
    %po = OpAccessChain %ppu64 %push %2
    %o = OpLoad %u64 %po
    %o1 = OpIAdd %u64 %o %off
    %o2 = OpConvertUToPtr %pp %o1
    OpStore %o2 %sum Aligned 4
    OpBranch %end
    %end = OpLabel
    OpReturn
    OpFunctionEnd
"#;

/// Returns a device of this test's own, with its utility shaders used for nearly everything, or for
/// nothing.
#[track_caller]
pub(super) fn device(shaders: bool) -> Option<Arc<VulkanDevice>> {
    device_with(|tuning| {
        tuning.compute_copy_from = if shaders { 64 } else { u64::MAX };
    })
}

/// Returns a device of this test's own, treated as `change` says.
#[track_caller]
fn device_with(change: impl FnOnce(&mut Tuning)) -> Option<Arc<VulkanDevice>> {
    let instance = match Instance::new(true) {
        Ok(instance) => Arc::new(instance),
        Err(error) => {
            left_out(&error.to_string());
            return None;
        }
    };
    let Some(mut adapter) = adapter::enumerate(&instance).into_iter().next() else {
        left_out("no Vulkan device");
        return None;
    };
    change(&mut adapter.tuning);
    Some(Arc::new(VulkanDevice::new(Arc::new(adapter))))
}

/// Fails if the validation layer has complained.
struct Silence(u64);

impl Silence {
    fn new() -> Self {
        Self(validation_messages())
    }
}

impl Drop for Silence {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert_eq!(
                validation_messages(),
                self.0,
                "the validation layer has complained"
            );
        }
    }
}

fn interface() -> KernelInterface {
    KernelInterface {
        name: "add".to_owned(),
        push_size: 28,
        ..Default::default()
    }
}

fn add_code() -> Vec<u32> {
    pumice_spirv_tools::assemble(TargetEnv::Vulkan_1_2, ADD).expect("the test kernel assembles")
}

fn add_kernel(device: &VulkanDevice) -> Arc<dyn Pipeline> {
    let words = &add_code();
    let code = device
        .load(MachineCode::Spirv(words), &interface())
        .expect("load");
    let known = device
        .load(MachineCode::Spirv(words), &interface())
        .expect("load");
    assert!(Arc::ptr_eq(&code, &known), "the last kernels are kept");
    let larger = KernelInterface {
        push_size: 32,
        ..interface()
    };
    let other = device
        .load(MachineCode::Spirv(words), &larger)
        .expect("load");
    assert!(!Arc::ptr_eq(&code, &other), "the interface is compared");
    let pipeline = code.specialise([64, 1, 1], &[], 1).expect("specialise");
    let again = code.specialise([64, 1, 1], &[], 1).expect("specialise");
    assert!(Arc::ptr_eq(&pipeline, &again), "specialisations are cached");
    pipeline
}

fn push(a: u64, b: u64, out: u64, n: u32) -> [u8; 28] {
    let mut bytes = [0; 28];
    bytes[0..8].copy_from_slice(&a.to_ne_bytes());
    bytes[8..16].copy_from_slice(&b.to_ne_bytes());
    bytes[16..24].copy_from_slice(&out.to_ne_bytes());
    bytes[24..28].copy_from_slice(&n.to_ne_bytes());
    bytes
}

fn slice(memory: &Arc<dyn Memory>, offset: u64, size: u64) -> Slice {
    Slice::new(Arc::clone(memory), offset, size)
}

fn all(memory: &Arc<dyn Memory>) -> Slice {
    slice(memory, 0, memory.size())
}

fn used(memory: &Arc<dyn Memory>, write: bool) -> Use {
    Use {
        slice: all(memory),
        write,
    }
}

fn bytes_of(memory: &Arc<dyn Memory>) -> Vec<u8> {
    let pointer = memory.mapped().expect("mapped");
    // SAFETY: the memory is mapped and idle.
    unsafe { std::slice::from_raw_parts(pointer.as_ptr(), memory.size() as usize) }.to_vec()
}

fn put(memory: &Arc<dyn Memory>, bytes: &[u8]) {
    let pointer = memory.mapped().expect("mapped");
    assert!(bytes.len() as u64 <= memory.size());
    // SAFETY: the memory is mapped, large enough and idle.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), pointer.as_ptr(), bytes.len()) };
}

fn run(stream: &mut Box<dyn Stream>) {
    let value = stream.submit(false).expect("submit");
    assert!(stream.timeline().wait(value, None).expect("wait"));
    stream.reclaim();
}

fn noise(length: usize) -> Vec<u8> {
    let mut state = 0x2545_f491_u32;
    (0..length)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            state as u8
        })
        .collect()
}

#[test]
fn a_chain_of_dispatches_keeps_its_order() {
    let _silence = Silence::new();
    let Some(device) = device(false) else { return };
    let kernel = add_kernel(&device);
    let mut stream = device.create_stream(StreamDesc::default()).expect("stream");
    let [a, b, c] = [(); 3].map(|()| {
        device
            .allocate(4096, Placement::HostRead)
            .expect("allocate")
    });
    let ones: Vec<u8> = (0..1024u32).flat_map(|_| 1u32.to_ne_bytes()).collect();
    put(&a, &ones);
    put(&b, &ones);
    put(&c, &[0; 4096]);
    // Four thousand steps, each reading what the step before wrote.
    let (mut from, mut to) = (a, c);
    for _ in 0..4000 {
        let op = Op::Dispatch {
            pipeline: &kernel,
            groups: [16, 1, 1],
            push: &push(from.address(), b.address(), to.address(), 1024),
            uses: &[used(&from, false), used(&b, false), used(&to, true)],
            bindings: &[],
            touches_anything: false,
        };
        stream
            .record(op, OrderRule::InOrder, false)
            .expect("record");
        std::mem::swap(&mut from, &mut to);
    }
    assert_eq!(stream.open_len(), 4000);
    // The stream keeps what it uses.
    drop((b, kernel));
    run(&mut stream);
    let result = bytes_of(&from);
    assert!(result.chunks(4).all(|word| word == 4001u32.to_ne_bytes()));
}

#[test]
fn streams_wait_for_one_another() {
    let _silence = Silence::new();
    let Some(device) = device(false) else { return };
    let kernel = add_kernel(&device);
    let mut first = device.create_stream(StreamDesc::default()).expect("stream");
    let mut second = device
        .create_stream(StreamDesc {
            priority: 1,
            ..StreamDesc::default()
        })
        .expect("stream");
    let [a, b, c] = [(); 3].map(|()| {
        device
            .allocate(1 << 20, Placement::HostRead)
            .expect("allocate")
    });
    for round in 1..20u32 {
        let fill = Op::Fill {
            dst: &all(&a),
            pattern: &round.to_ne_bytes(),
        };
        first
            .record(fill, OrderRule::InOrder, false)
            .expect("record");
        let value = first.submit(false).expect("submit");
        second.wait_for(&Point {
            timeline: Arc::clone(first.timeline()),
            value,
        });
        let op = Op::Dispatch {
            pipeline: &kernel,
            groups: [4096, 1, 1],
            push: &push(a.address(), a.address(), b.address(), 1 << 18),
            uses: &[used(&a, false), used(&b, true)],
            bindings: &[],
            touches_anything: false,
        };
        second
            .record(op, OrderRule::InOrder, false)
            .expect("record");
        let value = second.submit(false).expect("submit");
        first.wait_for(&Point {
            timeline: Arc::clone(second.timeline()),
            value,
        });
        let op = Op::Copy {
            src: &all(&b),
            dst: &all(&c),
            region: BufferCopy::linear(0, 0, 1 << 20),
        };
        first.record(op, OrderRule::InOrder, false).expect("record");
        run(&mut first);
        assert!(bytes_of(&c)
            .chunks(4)
            .all(|word| word == (2 * round).to_ne_bytes()));
    }
}

/// Commands within a batch are complete one by one, each time that the events of the batch are used.
#[test]
fn commands_of_a_batch_complete_one_by_one() {
    let _silence = Silence::new();
    let Some(device) = device(false) else { return };
    let mut stream = device.create_stream(StreamDesc::default()).expect("stream");
    let memories: Vec<_> = (0..5)
        .map(|_| {
            device
                .allocate(1 << 20, Placement::HostRead)
                .expect("memory")
        })
        .collect();
    for round in 1..20u8 {
        let mut values = Vec::new();
        for memory in &memories {
            let (dst, pattern) = (&all(memory), &[round]);
            let op = Op::Fill { dst, pattern };
            stream
                .record(op, OrderRule::InOrder, false)
                .expect("record");
            values.push(stream.open_value());
            stream.end_command(&mut || true);
        }
        assert_eq!(stream.recorded_value(), values[4]);
        assert_eq!(stream.submit(false).expect("submit"), values[4]);
        let timeline = Arc::clone(stream.timeline());
        assert!(timeline.has_signal(values[4] + 1));
        for (memory, value) in memories.iter().zip(values) {
            assert!(timeline.wait(value, None).expect("wait"));
            assert!(timeline.completed().expect("completed") >= value);
            assert!(timeline.has_signal(value), "it is reached");
            let pointer = memory.mapped().expect("mapped");
            // SAFETY: the memory is mapped, and no command under way writes it.
            let bytes = unsafe { std::slice::from_raw_parts(pointer.as_ptr(), 1 << 20) };
            assert!(bytes.iter().all(|byte| *byte == round), "{round}");
        }
        stream.reclaim();
    }
}

#[test]
fn timestamps_are_ordered_and_on_the_host_clock() {
    let _silence = Silence::new();
    let Some(device) = device(false) else { return };
    let mut stream = device
        .create_stream(StreamDesc {
            profiling: true,
            ..StreamDesc::default()
        })
        .expect("stream");
    let memory = device
        .allocate(8 << 20, Placement::Device)
        .expect("allocate");
    for round in 0..3 {
        let before = crate::util::monotonic_ns();
        let mut slots = Vec::new();
        for pattern in 0..100u8 {
            let op = Op::Fill {
                dst: &all(&memory),
                pattern: &[pattern],
            };
            slots.extend(stream.record(op, OrderRule::InOrder, true).expect("record"));
        }
        slots.extend(
            stream
                .record(Op::Marker, OrderRule::InOrder, true)
                .expect("record"),
        );
        run(&mut stream);
        let after = crate::util::monotonic_ns();
        assert_eq!(slots.len(), 101);
        let mut last = 0;
        for slot in slots {
            let times = stream.take_times(slot).expect("times");
            assert!(
                times.start <= times.end && times.start >= last,
                "round {round}: {times:?} after {last}"
            );
            assert!(
                times.start + 1_000_000 > before && times.end < after + 1_000_000,
                "{before} {times:?} {after}"
            );
            last = times.start;
        }
    }
    let (device_time, host_time) = device.timestamps().expect("timestamps");
    assert!(device_time > 0 && host_time > 0);
    let mut plain = device.create_stream(StreamDesc::default()).expect("stream");
    assert_eq!(
        plain
            .record(Op::Marker, OrderRule::InOrder, true)
            .expect("record"),
        None
    );
}

#[test]
fn spare_streams_are_kept() {
    let _silence = Silence::new();
    let Some(device) = device(false) else { return };
    let first = device.spare_stream().unwrap();
    let second = device.spare_stream().unwrap();
    let timelines = [first.timeline().clone(), second.timeline().clone()];
    assert!(!Arc::ptr_eq(&timelines[0], &timelines[1]));
    device.keep_stream(first);
    let mut again = device.spare_stream().unwrap();
    assert!(Arc::ptr_eq(again.timeline(), &timelines[0]));
    // It works as before, and goes with the device.
    let memory = device.allocate(64, Placement::HostRead).unwrap();
    let fill = Op::Fill {
        dst: &all(&memory),
        pattern: &[7],
    };
    again.record(fill, OrderRule::InOrder, false).unwrap();
    run(&mut again);
    assert_eq!(bytes_of(&memory), [7; 64]);
    drop(memory);
    again.reclaim();
    device.keep_stream(again);
    device.keep_stream(second);
}

#[test]
fn values_and_empty_submissions() {
    let _silence = Silence::new();
    let Some(device) = device(false) else { return };
    let mut stream = device.create_stream(StreamDesc::default()).expect("stream");
    assert_eq!(
        stream.submit(false).expect("submit"),
        0,
        "nothing to submit"
    );
    assert_eq!(stream.open_value(), 1);
    assert_eq!(stream.submit(true).expect("submit"), 1);
    assert!(stream.timeline().wait(1, None).expect("wait"));
    assert!(!stream
        .timeline()
        .wait(2, Some(std::time::Duration::from_millis(2)))
        .expect("wait"));
    let kept: Arc<dyn std::any::Any + Send + Sync> = Arc::new(5u32);
    let weak = Arc::downgrade(&kept);
    stream
        .record(Op::Keep(kept), OrderRule::InOrder, false)
        .expect("record");
    stream
        .record(Op::Marker, OrderRule::InOrder, false)
        .expect("record");
    assert!(weak.upgrade().is_some());
    run(&mut stream);
    assert!(weak.upgrade().is_none());
    assert_eq!(stream.timeline().completed().expect("completed"), 2);
}

/// Every thread makes pipelines and runs them, on a device on which neither may happen during the other.
#[test]
fn serial_pipelines_wait_for_submissions() {
    let _silence = Silence::new();
    let Some(device) = device_with(|tuning| tuning.serial_pipelines = true) else {
        return;
    };
    let code = device
        .load(MachineCode::Spirv(&add_code()), &interface())
        .expect("load");
    std::thread::scope(|scope| {
        for thread in 0..4u32 {
            let (device, code) = (&device, &code);
            scope.spawn(move || {
                let mut stream = device.create_stream(StreamDesc::default()).expect("stream");
                let memory = device.allocate(512, Placement::HostRead).expect("allocate");
                for size in 1..=8u32 {
                    // Each makes some pipelines alone and some at the same time as another.
                    let size = size * (1 + thread / 2);
                    let kernel = code.specialise([size, 1, 1], &[], 1).expect("specialise");
                    let a: Vec<u8> = (0..64u32).flat_map(|i| (i + size).to_ne_bytes()).collect();
                    put(&memory, &a);
                    let [a, out] = [memory.address(), memory.address() + 256];
                    let op = Op::Dispatch {
                        pipeline: &kernel,
                        groups: [64u32.div_ceil(size), 1, 1],
                        push: &push(a, a, out, 64),
                        uses: &[used(&memory, true)],
                        bindings: &[],
                        touches_anything: false,
                    };
                    let recorded = stream.record(op, OrderRule::InOrder, false);
                    recorded.expect("record");
                    run(&mut stream);
                    let right: Vec<u8> = (0..64u32)
                        .flat_map(|i| (2 * (i + size)).to_ne_bytes())
                        .collect();
                    assert_eq!(bytes_of(&memory)[256..], right, "groups of {size}");
                }
            });
        }
    });
}

#[test]
fn the_pipeline_cache_survives() {
    let _silence = Silence::new();
    let Some(device) = device(false) else { return };
    add_kernel(&device);
    let data = device.pipeline_cache();
    device.load_pipeline_cache(&data);
    device.load_pipeline_cache(&data[..data.len() / 2]);
    device
        .load_pipeline_cache(b"garbage that is no cache at all, but long enough to have a header");
    let Some(other) = self::device(false) else {
        return;
    };
    other.load_pipeline_cache(&data);
    add_kernel(&other);
}

#[test]
fn known_arithmetic_is_true() {
    let _silence = Silence::new();
    let Some(device) = device(false) else { return };
    let measured = super::probe::measure(&*device).expect("measure");
    println!("{}: {measured:?}", device.caps().name);
    let target = device.target();
    for (claim, found) in [
        (target.fp16, measured.fp16),
        (target.fp32, measured.fp32),
        (target.fp64, measured.fp64),
    ] {
        assert!(!claim.fused_fma || found.fused_fma);
        assert!(!claim.exact_div || found.exact_div);
        assert!(!claim.exact_sqrt || found.exact_sqrt);
        assert!(!claim.denormals || found.denormals);
    }
    assert!(!target.good_exp2 || measured.exp2);
    assert!(!target.good_log2 || measured.log2);
    let modes = &target.fp16;
    assert!(!target.unpacks_halves || modes.denorm_preserve || measured.unpack_half);
    assert!(!target.packs_halves || modes.denorm_preserve && modes.rte || measured.pack_half);
}
