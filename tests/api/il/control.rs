//! Blocks, branches, loops, phi nodes, functions.

use super::{Data, Il};
use pumice_tests::{call, Setup};

/// Switches by 8, 16 and 64 bits, with targets that several literals share.
#[test]
fn switches() {
    let setup = Setup::new();
    let mut body = String::new();
    for (i, (ty, literals)) in [
        ("u8", ["255", "3", "4"]),
        ("u16", ["65535", "3", "4"]),
        ("u64", ["18446744073709551615", "4294967296", "4"]),
    ]
    .iter()
    .enumerate()
    {
        let [a, b, c] = literals;
        body += &format!(
            "%v{i} = in {ty} {i}
             OpSelectionMerge %end{i} None
             OpSwitch %v{i} %other{i} {a} %a{i} {b} %b{i} {c} %b{i}
             %a{i} = OpLabel
             OpBranch %b{i}
             %b{i} = OpLabel
             %r{i} = OpPhi %u32 %u32_1 %before{i} %u32_2 %a{i}
             OpBranch %end{i}
             %other{i} = OpLabel
             OpBranch %end{i}
             %end{i} = OpLabel
             %s{i} = OpPhi %u32 %r{i} %b{i} %u32_9 %other{i}
             out {i} u32 %s{i}\n"
        );
        let before = if i == 0 {
            "entry".to_owned()
        } else {
            format!("end{}", i - 1)
        };
        body = body.replace(&format!("%before{i}"), &format!("%{before}"));
    }
    let il = Il::new(&body);
    for (values, expected) in [
        ((0xffu8, 3u16, 4u64), [2u32, 1, 1]),
        ((3, 0xffff, 1 << 32), [1, 2, 1]),
        ((7, 9, u64::MAX), [9, 9, 2]),
        ((4, 4, 5), [1, 1, 9]),
    ] {
        let input = Data::new()
            .put(0, &[values.0])
            .put(1, &[values.1])
            .put(2, &[values.2]);
        let out = il.run(&setup, &input);
        let got: [u32; 3] = std::array::from_fn(|i| out.one(i));
        assert_eq!(got, expected, "{values:?}");
    }
}

/// The module of `phi_nodes`.
pub(super) fn phis() -> Il {
    Il::new(
        "%n = in u32 0
         %src = OpBitcast %g_u32 %in
         OpBranch %head
         %head = OpLabel
         %i = OpPhi %u32 %u32_0 %entry %next %again
         %s = OpPhi %pair %start %entry %t %again
         %p = OpPhi %g_u32 %src %entry %q %again
         %a = OpPhi %u32 %u32_1 %entry %b %again
         %b = OpPhi %u32 %u32_2 %entry %a %again
         %v = OpPhi %u32x2 %zero %entry %w %again
         %more = OpULessThan %bool %i %n
         OpBranchConditional %more %again %done
         %again = OpLabel
         %x = OpLoad %u32 %p
         %q = OpInBoundsPtrAccessChain %g_u32 %p %u32_1
         %old = OpCompositeExtract %u32 %s 0
         %sum = OpIAdd %u32 %old %x
         %half = OpCompositeInsert %pair %sum %s 0
         %t = OpCompositeInsert %pair %v %half 1
         %w = OpCompositeConstruct %u32x2 %sum %i
         %next = OpIAdd %u32 %i %u32_1
         OpBranch %head
         %done = OpLabel
         %r = OpCompositeExtract %u32 %s 0
         out 0 u32 %r
         %u = OpCompositeExtract %u32x2 %s 1
         out 1 u32x2 %u
         out 2 u32 %a
         out 3 u32 %b",
    )
    .with(
        "%pair = OpTypeStruct %u32 %u32x2
         %start = OpConstantNull %pair
         %zero = OpUndef %u32x2",
    )
}

/// Phi nodes of structures, vectors and pointers, in a loop without merge instruction; and one of each other's values.
#[test]
fn phi_nodes() {
    let setup = Setup::new();
    let il = phis();
    let out = il.run(&setup, &Data::new().put(0, &[5u32, 10, 20, 30, 40]));
    assert_eq!(out.one::<u32>(0), 105);
    assert_eq!(out.get::<u32, 2>(1), [65, 3]);
    assert_eq!([out.one::<u32>(2), out.one::<u32>(3)], [2, 1]);
}

/// Loops with two entries, merges in places that mean nothing to a kernel, blocks that nothing reaches.
#[test]
fn unstructured() {
    let setup = Setup::new();
    let il = Il::new(
        "%n = in u32 0
         %odd = OpBitwiseAnd %u32 %n %u32_1
         %is = OpINotEqual %bool %odd %u32_0
         OpBranchConditional %is %left %right
         %left = OpLabel
         %i = OpPhi %u32 %u32_0 %entry %j2 %right
         %i2 = OpIAdd %u32 %i %u32_1
         %lmore = OpULessThan %bool %i2 %n
         OpBranchConditional %lmore %right %end
         %right = OpLabel
         %j = OpPhi %u32 %u32_100 %entry %i2 %left
         %j2 = OpIAdd %u32 %j %u32_2
         %rmore = OpULessThan %bool %j2 %n
         OpBranchConditional %rmore %left %end
         %end = OpLabel
         %r = OpPhi %u32 %i2 %left %j2 %right
         out 0 u32 %r",
    );
    for n in [5u32, 4, 7, 1, 2] {
        let out = il.run(&setup, &Data::new().put(0, &[n]));
        let (mut left, mut i, mut j) = (n % 2 != 0, 0, 100);
        let want = loop {
            if left {
                i += 1;
                if i >= n {
                    break i;
                }
                j = i;
            } else {
                j += 2;
                if j >= n {
                    break j;
                }
                i = j;
            }
            left = !left;
        };
        assert_eq!(out.one::<u32>(0), want, "{n}");
    }
    let il = Il::new(
        "%n = in u32 0
         OpBranch %head
         %dead = OpLabel
         %dx = OpIAdd %u32 %n %u32_1
         OpBranch %after
         %head = OpLabel
         %i = OpPhi %u32 %u32_0 %entry %i2 %latch
         OpLoopMerge %after %latch Unroll
         OpBranch %test
         %test = OpLabel
         %c = OpULessThan %bool %i %n
         OpSelectionMerge %latch DontFlatten
         OpBranchConditional %c %latch %after 3 1
         %latch = OpLabel
         %i2 = OpIAdd %u32 %i %u32_3
         OpBranch %head
         %after = OpLabel
         %r = OpPhi %u32 %i %test %dx %dead
         OpNoLine
         out 0 u32 %r
         OpBranchConditional %false %never %last
         %never = OpLabel
         OpUnreachable
         %last = OpLabel",
    )
    .with("%false = OpConstantFalse %bool");
    let out = il.run(&setup, &Data::new().put(0, &[7u32]));
    assert_eq!(out.one::<u32>(0), 9);
}

/// The module of `functions`.
pub(super) fn calling() -> Il {
    Il::new(
        "%x = in u32 0
         %s = OpCompositeConstruct %pair %x %u32_7
         %t = OpFunctionCall %pair %swap %s
         %a = OpCompositeExtract %u32 %t 0
         %b = OpCompositeExtract %u32 %t 1
         out 0 u32 %a
         out 1 u32 %b
         %mine = OpVariable %p_u32 Function %u32_3
         %r = OpFunctionCall %void %bump %mine
         %q = OpFunctionCall %p_u32 %same %mine
         %c = OpLoad %u32 %q
         out 2 u32 %c
         %nothing = OpFunctionCall %u32x2 %exits %x
         out 3 u32x2 %nothing",
    )
    .with(
        "%pair = OpTypeStruct %u32 %u32
         %swap_type = OpTypeFunction %pair %pair
         %bump_type = OpTypeFunction %void %p_u32
         %same_type = OpTypeFunction %p_u32 %p_u32
         %exits_type = OpTypeFunction %u32x2 %u32",
    )
    .calls(
        "%swap = OpFunction %pair Const|Inline %swap_type
         %sp = OpFunctionParameter %pair
         %sl = OpLabel
         %s0 = OpCompositeExtract %u32 %sp 0
         %s1 = OpCompositeExtract %u32 %sp 1
         %s2 = OpCompositeConstruct %pair %s1 %s0
         OpReturnValue %s2
         OpFunctionEnd
         %bump = OpFunction %void DontInline %bump_type
         %bp = OpFunctionParameter %p_u32
         %bl = OpLabel
         %b0 = OpLoad %u32 %bp
         %b1 = OpIMul %u32 %b0 %b0
         OpStore %bp %b1
         OpReturn
         OpFunctionEnd
         %same = OpFunction %p_u32 Pure %same_type
         %xp = OpFunctionParameter %p_u32
         %xl = OpLabel
         OpReturnValue %xp
         OpFunctionEnd
         %exits = OpFunction %u32x2 None %exits_type
         %ep = OpFunctionParameter %u32
         %el = OpLabel
         %ec = OpUGreaterThan %bool %ep %u32_10
         OpBranchConditional %ec %big %small
         %big = OpLabel
         %ev = OpCompositeConstruct %u32x2 %ep %u32_1
         OpReturnValue %ev
         %small = OpLabel
         %ew = OpCompositeConstruct %u32x2 %u32_0 %ep
         OpReturnValue %ew
         OpFunctionEnd",
    )
}

/// Blocks in an order that no module may have and llvm-spirv writes.
#[test]
fn blocks_before_their_dominators() {
    let setup = Setup::new();
    let il = Il::new(
        "%n = in u32 0
         OpBranch %head
         %done = OpLabel
         %twice = OpIMul %u32 %sum %u32_2
         out 0 u32 %twice
         OpBranch %last
         %body = OpLabel
         %sum = OpPhi %u32 %u32_0 %head %next %body
         %i = OpPhi %u32 %n %head %less %body
         %next = OpIAdd %u32 %sum %i
         %less = OpISub %u32 %i %u32_1
         %more = OpINotEqual %bool %less %u32_0
         OpBranchConditional %more %body %done
         %head = OpLabel
         OpBranch %body
         %last = OpLabel",
    );
    let out = il.run(&setup, &Data::new().put(0, &[4u32]));
    assert_eq!(out.one::<u32>(0), 18);
    // What is wrong otherwise stays wrong.
    let wrong = Il::new(
        "OpBranch %one
         %two = OpLabel
         %x = OpIAdd %u32 %y %u32_1
         OpBranch %end
         %one = OpLabel
         OpBranchConditional %yes %two %three
         %three = OpLabel
         %y = OpIAdd %u32 %u32_2 %u32_1
         OpBranch %end
         %end = OpLabel",
    )
    .with("%yes = OpConstantTrue %bool");
    let error = super::create(&setup, &wrong.words()).expect_err("refused");
    assert!(error.starts_with("CL_INVALID_VALUE"), "{error}");
}

/// Functions with structures and pointers as parameters and results, called before they are defined.
#[test]
fn functions() {
    let setup = Setup::new();
    let il = calling();
    let out = il.run(&setup, &Data::new().put(0, &[41u32]));
    let got: [u32; 3] = std::array::from_fn(|i| out.one(i));
    assert_eq!(got, [7, 41, 9]);
    assert_eq!(out.get::<u32, 2>(3), [41, 1]);
}

/// Execution modes, by literals and by constants.
#[test]
fn work_group_sizes() {
    use opencl_sys::*;
    use pumice_tests::{info_value, ok};
    use std::ptr::{null, null_mut};
    let setup = Setup::new();
    let of = |il: &Il| {
        let program = super::build(&setup, &il.words()).expect("builds");
        let kernel = setup.kernel(&program, "k");
        let (k, device) = (kernel.0, setup.device);
        info_value!(
            [usize; 3],
            clGetKernelWorkGroupInfo(k, device),
            CL_KERNEL_COMPILE_WORK_GROUP_SIZE
        )
    };
    assert_eq!(of(&Il::new("OpNop")), [0; 3]);
    let literal = Il::new("OpNop").decorated("OpExecutionMode %k LocalSize 4 2 1");
    assert_eq!(of(&literal), [4, 2, 1]);
    let by_id = Il::new("OpNop")
        .decorated("OpExecutionModeId %k LocalSizeId %u32_8 %u32_2 %s\nOpDecorate %s SpecId 3")
        .with("%s = OpSpecConstant %u32 2\n%used = OpConstantComposite %u32x2 %u32_8 %u32_2");
    assert_eq!(of(&by_id), [8, 2, 2]);
    let hints = Il::new("out 0 u32 %u32_1").decorated(
        "OpExecutionMode %k LocalSizeHint 4 4 4
         OpExecutionMode %k VecTypeHint 262149
         OpExecutionMode %k ContractionOff",
    );
    assert_eq!(of(&hints), [0; 3]);
    assert_eq!(hints.run(&setup, &Data::new()).one::<u32>(0), 1);
    // The size that the module asks for is the only one.
    let program = super::build(&setup, &literal.words()).expect("builds");
    let kernel = setup.kernel(&program, "k");
    let buffer = setup.buffer(4);
    kernel.set_buffer(0, &buffer).set_buffer(1, &buffer);
    let enqueue = |local: [usize; 3]| {
        call!(clEnqueueNDRangeKernel(
            setup.queue.0,
            kernel.0,
            3,
            null(),
            [8usize, 2, 1].as_ptr(),
            local.as_ptr(),
            0,
            null(),
            null_mut()
        ))
    };
    assert_eq!(enqueue([4, 2, 1]), 0);
    assert_eq!(enqueue([2, 2, 1]), CL_INVALID_WORK_GROUP_SIZE);
    ok!(clFinish(setup.queue.0));
}
