//! SPV_KHR_untyped_pointers: every instruction that makes or takes such a pointer.

use super::{Data, Il};
use pumice_tests::Setup;

fn untyped(body: &str) -> Il {
    Il::new(body)
        .needs("UntypedPointersKHR SPV_KHR_untyped_pointers")
        .with(
            "%ug = OpTypeUntypedPointerKHR CrossWorkgroup
             %up = OpTypeUntypedPointerKHR Function
             %ul = OpTypeUntypedPointerKHR Workgroup
             %uc = OpTypeUntypedPointerKHR UniformConstant
             %ux = OpTypeUntypedPointerKHR Generic
             %ui = OpTypeUntypedPointerKHR Input
             %three = OpTypeArray %u32 %u32_3
             %pair = OpTypeStruct %u8 %three",
        )
}

#[test]
fn access_chains_and_variables() {
    let setup = Setup::new();
    let il = untyped(
        "%mine = OpUntypedVariableKHR %up Function %pair %start
         %n = in u32 0
         %a = OpUntypedAccessChainKHR %up %pair %mine %u32_1 %n
         %x = OpLoad %u32 %a
         out 0 u32 %x
         %b = OpUntypedInBoundsAccessChainKHR %ul %pair %shared %u32_1 %u32_2
         OpStore %b %x Aligned 4
         %y = OpLoad %u32 %b Aligned 4
         out 1 u32 %y
         %uin = OpBitcast %ug %in
         %c = OpUntypedPtrAccessChainKHR %ug %pair %uin %u64_8 %u32_1 %n
         %z = OpLoad %u32 %c
         out 2 u32 %z
         %d = OpUntypedInBoundsPtrAccessChainKHR %ug %u32 %uin %n
         %w = OpLoad %u8 %d
         out 3 u8 %w
         %e = OpUntypedInBoundsAccessChainKHR %uc %three %table %n
         %v = OpLoad %u32 %e
         out 4 u32 %v
         %typed = OpBitcast %g_u32 %d
         %u = OpLoad %u32 %typed
         out 5 u32 %u
         %f = OpUntypedPtrAccessChainKHR %ug %u8 %in %n
         %t = OpLoad %u8 %f
         out 6 u8 %t
         %g = OpLoad %ug %pointer
         %s = OpLoad %u32 %g
         out 7 u32 %s
         %h = OpUntypedAccessChainKHR %ui %u64x3 %gid %u32_0
         %r = OpLoad %u64 %h
         out 8 u64 %r",
    )
    .decorated("OpDecorate %gid BuiltIn GlobalSize")
    .with(
        "%values = OpConstantComposite %three %u32_10 %u32_20 %u32_30
         %start = OpConstantComposite %pair %u8_1 %values
         %shared = OpUntypedVariableKHR %ul Workgroup %pair
         %table = OpUntypedVariableKHR %uc UniformConstant %three %values
         %numbers = OpUntypedVariableKHR %ug CrossWorkgroup %three %values
         %second = OpSpecConstantOp %ug InBoundsAccessChain %three %numbers %u32_1
         %p_pointer = OpTypePointer CrossWorkgroup %ug
         %pointer = OpVariable %p_pointer CrossWorkgroup %second
         %gid = OpUntypedVariableKHR %ui Input %u64x3",
    );
    // Slot 1 is element 8 of 16 bytes.
    let input = Data::new()
        .put(0, &[2u32, 5, 0x0809])
        .put(1, &[0u32, 100, 200, 300]);
    // The assembler does not know the operation of the constant.
    let mut words = il.words();
    let at = (0..words.len()).find(|&at| words[at] == 7 << 16 | 52 && words[at + 3] == 66);
    words[at.expect("OpSpecConstantOp") + 3] = 4420;
    let program = super::build(&setup, &words).unwrap_or_else(|e| panic!("{e}"));
    let out = super::run_program(&setup, &program, &input, 1);
    assert_eq!([out.one::<u32>(0), out.one(1), out.one(2)], [30, 30, 300]);
    assert_eq!(out.one::<u8>(3), 9);
    assert_eq!([out.one::<u32>(4), out.one(5)], [30, 0x0809]);
    assert_eq!(out.one::<u8>(6), 0);
    assert_eq!(out.one::<u32>(7), 20);
    assert_eq!(out.one::<u64>(8), 1);
}

/// The module of `everything_that_takes_pointers`.
pub(super) fn taking_pointers() -> Il {
    untyped(
        "%uin = OpBitcast %ug %in
         %uout = OpBitcast %ug %out
         %mine = OpUntypedVariableKHR %up Function %f32
         %far = OpUntypedInBoundsPtrAccessChainKHR %ug %u8 %uout %u64_128
         OpCopyMemorySized %far %uin %u64_8 Aligned 4
         %typed = OpBitcast %g_u32 %uin
         %place = OpUntypedInBoundsPtrAccessChainKHR %ug %u8 %uout %u64_256
         OpCopyMemory %place %typed
         %same = OpPtrEqual %bool %uin %typed
         out 3 bool %same
         %other = OpPtrNotEqual %bool %place %far
         out 4 bool %other
         %diff = OpPtrDiff %u64 %place %far
         out 5 u64 %diff
         %number = OpConvertPtrToU %u64 %far
         %back = OpConvertUToPtr %ug %number
         %x = OpLoad %u32 %back
         out 6 u32 %x
         %gen = OpPtrCastToGeneric %ux %far
         %y = OpLoad %u32 %gen
         out 7 u32 %y
         %loc = OpGenericCastToPtrExplicit %ul %gen Workgroup
         %none = OpPtrEqual %bool %loc %null
         out 8 bool %none
         %old = OpAtomicIAdd %u32 %back %u32_1 %u32_0 %u32_5
         out 9 u32 %old
         %now = OpAtomicLoad %u32 %back %u32_1 %u32_0
         out 10 u32 %now
         %f = in f32 1
         %fr = OpExtInst %f32 %cl fract %f %mine
         %fl = OpLoad %f32 %mine
         out 11 f32 %fr
         out 12 f32 %fl
         %v = OpExtInst %u32x2 %cl vloadn %u64_0 %uin 2
         out 13 u32x2 %v
         %to = OpUntypedInBoundsPtrAccessChainKHR %ug %u8 %uout %u64_1792
         %st = OpExtInst %void %cl vstoren %v %u64_0 %to
         OpUntypedPrefetchKHR %uin %u32_4
         %sel = OpSelect %ug %other %uin %uout
         %head = OpCopyObject %ug %sel
         OpBranch %next
         %next = OpLabel
         %phi = OpPhi %ug %head %entry
         %z = OpLoad %u32 %phi
         out 15 u32 %z
         %called = OpFunctionCall %u32 %reader %phi
         out 16 u32 %called",
    )
    .with("%null = OpConstantNull %ul\n%reader_type = OpTypeFunction %u32 %ug")
    .calls(
        "%reader = OpFunction %u32 None %reader_type
         %rp = OpFunctionParameter %ug
         %rl = OpLabel
         %rq = OpUntypedPtrAccessChainKHR %ug %u32 %rp %u32_1
         %rv = OpLoad %u32 %rq
         OpReturnValue %rv
         OpFunctionEnd",
    )
}

#[test]
fn everything_that_takes_pointers() {
    let setup = Setup::new();
    let il = taking_pointers();
    let input = Data::new().put(0, &[7u32, 8]).put(1, &[2.75f32]);
    let out = il.run(&setup, &input);
    assert_eq!(out.get::<u32, 2>(1), [12, 8]);
    assert_eq!(out.one::<u32>(2), 7);
    assert_eq!([out.one::<u32>(3), out.one(4)], [1, 1]);
    assert_eq!(out.one::<u64>(5), 128);
    let words: Vec<u32> = (6..11).map(|i| out.one(i)).collect();
    assert_eq!(words, [7, 7, 1, 7, 12]);
    assert_eq!([out.one::<f32>(11), out.one(12)], [0.75, 2.0]);
    assert_eq!(out.get::<u32, 2>(13), [7, 8]);
    assert_eq!(out.get::<u32, 2>(14), [7, 8]);
    assert_eq!([out.one::<u32>(15), out.one(16)], [7, 8]);
}

/// Asynchronous copies give the size of an element.
#[test]
fn asynchronous_copies() {
    let setup = Setup::new();
    // Assembled as copies between typed pointers; the number of elements, 4, stands for the size of an element as well.
    let il = untyped(
        "%uin = OpBitcast %g_u32 %in
         %uout = OpBitcast %g_u32 %out
         %room = OpBitcast %l_u32 %space
         %e = OpGroupAsyncCopy %event %u32_2 %room %uin %u64_4 %u64_1 %none
         %kept = OpVariable %p_event Function
         OpStore %kept %e
         OpGroupWaitEvents %u32_2 %u32_1 %kept
         %f = OpGroupAsyncCopy %event %u32_2 %uout %room %u64_4 %u64_2 %none
         OpStore %kept %f
         OpGroupWaitEvents %u32_2 %u32_1 %kept",
    )
    .with(
        "%event = OpTypeEvent
         %none = OpConstantNull %event
         %space = OpUntypedVariableKHR %ul Workgroup %u32x4",
    );
    let typed = il.words();
    let mut words = typed[..5].to_vec();
    let mut at = 5;
    while at < typed.len() {
        let inst = &typed[at..at + (typed[at] >> 16) as usize];
        at += inst.len();
        if inst[0] & 0xffff == 259 {
            words.push(10 << 16 | 4434);
            words.extend(&inst[1..6]);
            words.push(inst[6]);
            words.extend(&inst[6..]);
        } else {
            words.extend(inst);
        }
    }
    let program = super::build(&setup, &words).expect("builds");
    let input = Data::new().put(0, &[1u32, 2, 3, 4]);
    let out = super::run_program(&setup, &program, &input, 2);
    let fill = 0xa5a5_a5a5;
    assert_eq!(out.get::<u32, 8>(0), [1, fill, 2, fill, 3, fill, 4, fill]);
}

/// Kernel arguments through untyped pointers, and their description.
#[test]
fn kernel_arguments() {
    use opencl_sys::*;
    use pumice_tests::*;
    let setup = Setup::new();
    let il = untyped("OpNop")
        .decorated("OpEntryPoint Kernel %m \"m\"\nOpDecorate %m1 FuncParamAttr NoWrite")
        .with("%m_type = OpTypeFunction %void %ug %uc %ul %u32")
        .calls(
            "%m = OpFunction %void None %m_type
             %m0 = OpFunctionParameter %ug
             %m1 = OpFunctionParameter %uc
             %m2 = OpFunctionParameter %ul
             %m3 = OpFunctionParameter %u32
             %m4 = OpLabel
             %m5 = OpUntypedPtrAccessChainKHR %uc %u32 %m1 %m3
             %m6 = OpLoad %u32 %m5
             OpStore %m2 %m6
             %m7 = OpLoad %u32 %m2
             OpStore %m0 %m7
             OpReturn
             OpFunctionEnd",
        );
    // An entry point stands before execution modes and decorations.
    let program = super::build(&setup, &il.words()).expect("builds");
    let kernel = setup.kernel(&program, "m");
    let k = kernel.0;
    let space = |i: u32| {
        info_value!(
            u32,
            clGetKernelArgInfo(k, i),
            CL_KERNEL_ARG_ADDRESS_QUALIFIER
        )
    };
    assert_eq!(
        [0, 1, 2].map(space),
        [
            CL_KERNEL_ARG_ADDRESS_GLOBAL,
            CL_KERNEL_ARG_ADDRESS_CONSTANT,
            CL_KERNEL_ARG_ADDRESS_LOCAL
        ]
    );
    let (to, from) = (setup.buffer(4), setup.buffer_of(&[3u32, 4, 5]));
    kernel
        .set_buffer(0, &to)
        .set_buffer(1, &from)
        .set_local(2, 4)
        .set(3, 2u32);
    setup.run(&kernel, &[1], None);
    assert_eq!(setup.read::<u32>(&to, 1), [5]);
}

/// An argument by value has a typed pointer, which says its size; what is done with it goes through an untyped one.
#[test]
fn arguments_by_value() {
    let setup = Setup::new();
    let kernel = |parameter: &str| {
        untyped("OpNop")
            .decorated("OpEntryPoint Kernel %m \"m\"\nOpDecorate %m1 FuncParamAttr ByVal")
            .with(&format!(
                "%p_pair = OpTypePointer Function %pair
                 %m_type = OpTypeFunction %void %g_u32 {parameter}"
            ))
            .calls(&format!(
                "%m = OpFunction %void None %m_type
                 %m0 = OpFunctionParameter %g_u32
                 %m1 = OpFunctionParameter {parameter}
                 %m2 = OpLabel
                 %p = {} %up %m1
                 %a = OpUntypedInBoundsAccessChainKHR %up %pair %p %u32_1 %u32_2
                 %x = OpLoad %u32 %a Aligned 4
                 OpStore %m0 %x Aligned 4
                 OpReturn
                 OpFunctionEnd",
                if parameter == "%up" {
                    "OpCopyObject"
                } else {
                    "OpBitcast"
                }
            ))
    };
    let il = kernel("%p_pair");
    let program =
        super::build(&setup, &il.words()).unwrap_or_else(|e| panic!("{e}\n{}", il.text()));
    let run = setup.kernel(&program, "m");
    let out = setup.buffer(4);
    run.set_buffer(0, &out).set(1, [1u32, 2, 3, 4]);
    setup.run(&run, &[1], None);
    assert_eq!(setup.read::<u32>(&out, 1), [4]);
    let log = kernel("%up").log(&setup);
    assert!(log.contains("does not say how large"), "{log}");
}
