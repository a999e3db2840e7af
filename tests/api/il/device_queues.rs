//! Device queues in modules by hand: what compilers do not write.

use super::{Data, Il};
use pumice_tests::sys::*;
use pumice_tests::*;

/// The device has device queues.
pub fn able(setup: &Setup) -> bool {
    let able = info_value!(
        u64,
        clGetDeviceInfo(setup.device),
        CL_DEVICE_DEVICE_ENQUEUE_CAPABILITIES
    );
    able != 0
}

/// A default queue for a set-up that can have one.
fn with_queue() -> Option<(Setup, Queue)> {
    let setup = Setup::new();
    if !able(&setup) {
        left_out("the device has no device queues");
        return None;
    }
    let all =
        CL_QUEUE_ON_DEVICE | CL_QUEUE_ON_DEVICE_DEFAULT | CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
    let list = [CL_QUEUE_PROPERTIES as cl_queue_properties, all, 0];
    let queue = create!(clCreateCommandQueueWithProperties(
        setup.context.0,
        setup.device,
        list.as_ptr()
    ));
    Some((setup, Queue(queue)))
}

const TYPES: &str = "%queue = OpTypeQueue
    %device_event = OpTypeDeviceEvent
    %p_event = OpTypePointer Function %device_event
    %no_events = OpConstantNull %p_event
    %null = OpConstantNull %p_u8
    %sizes = OpTypeArray %u64 %u32_3
    %range = OpTypeStruct %u32 %sizes %sizes %sizes
    %gid = OpVariable %i_u64x3 Input
    %block_type = OpTypeFunction %void %g_u8
    %local_block_type = OpTypeFunction %void %x_u8 %l_u8";

/// Writes the ids of its work-items behind the pointer that it was given by value.
const BLOCK: &str = "%block = OpFunction %void None %block_type
    %captured = OpFunctionParameter %g_u8
    %b0 = OpLabel
    %b1 = OpBitcast %g_u64 %captured
    %b2 = OpLoad %u64 %b1 Aligned 8
    %b3 = OpConvertUToPtr %g_u32 %b2
    %b4 = OpLoad %u64x3 %gid Aligned 32
    %b5 = OpCompositeExtract %u64 %b4 0
    %b6 = OpPtrAccessChain %g_u32 %b3 %b5
    %b7 = OpUConvert %u32 %b5
    OpStore %b6 %b7 Aligned 4
    OpReturn
    OpFunctionEnd
    %local_block = OpFunction %void None %local_block_type
    %c0 = OpFunctionParameter %x_u8
    %c1 = OpFunctionParameter %l_u8
    %c2 = OpLabel
    %c3 = OpBitcast %l_u32 %c1
    OpStore %c3 %u32_7 Aligned 4
    OpReturn
    OpFunctionEnd";

fn module(body: &str) -> Il {
    Il::new(body)
        .needs("DeviceEnqueue")
        .decorated("OpDecorate %gid BuiltIn GlobalInvocationId\nOpDecorate %gid Constant")
        .with(TYPES)
        // Before the kernel: SPIRV-Tools want it there.
        .imports(BLOCK)
}

/// A function that is no entry point, takes a global pointer, and a range by value; local memory by a number.
#[test]
fn functions_are_enqueued() {
    let Some((setup, _queue)) = with_queue() else {
        return;
    };
    let il = module(
        "%captured_u64 = OpVariable %p_u64 Function
         %there = OpConvertPtrToU %u64 %out
         OpStore %captured_u64 %there Aligned 8
         %bytes = OpBitcast %p_u8 %captured_u64
         %q = OpGetDefaultQueue %queue
         %nd = OpBuildNDRange %range %u64_5 %u64_0 %u64_0
         %one = OpEnqueueKernel %u32 %q %u32_0 %nd %u32_0 %no_events %no_events %block %bytes %u32_8 %u32_8
         %generic = OpPtrCastToGeneric %x_u8 %bytes
         %two = OpEnqueueKernel %u32 %q %u32_1 %nd %u32_0 %no_events %no_events %local_block %generic %u32_8 %u32_8 %u32_64
         %both = OpBitwiseOr %u32 %one %two
         out 1 u32 %both",
    );
    let result = il.run(&setup, &Data::new());
    assert_eq!(result.get::<u32, 5>(0), [0, 1, 2, 3, 4]);
    assert_eq!(result.one::<u32>(1), 0);
}

#[test]
fn questions_about_sub_groups() {
    let Some((setup, _queue)) = with_queue() else {
        return;
    };
    if !crate::collectives::has_subgroups(&setup) {
        return left_out("the device has no sub-groups");
    }
    let il = module(
        "%most = OpGetKernelMaxNumSubgroups %u32 %block %null %u32_8 %u32_8
         out 0 u32 %most
         %size = OpGetKernelLocalSizeForSubgroupCount %u32 %u32_2 %block %null %u32_8 %u32_8
         out 1 u32 %size
         %far = OpGetKernelLocalSizeForSubgroupCount %u32 %u32_100000 %block %null %u32_8 %u32_8
         out 2 u32 %far
         %group = OpGetKernelWorkGroupSize %u32 %block %null %u32_8 %u32_8
         out 3 u32 %group
         %multiple = OpGetKernelPreferredWorkGroupSizeMultiple %u32 %block %null %u32_8 %u32_8
         out 4 u32 %multiple",
    )
    .needs("SubgroupDispatch");
    let result = il.run(&setup, &Data::new());
    let [most, size, far, group, multiple] = [0, 1, 2, 3, 4].map(|slot| result.one::<u32>(slot));
    assert_eq!(size, 2 * multiple);
    assert_eq!(most, group / multiple);
    assert_eq!(far, 0);
}
