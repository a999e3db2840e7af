//! Pipes that a module declares: OpConstantPipeStorage, which no OpenCL C has.

use super::{build, run_program, Data, Il};
use pumice_tests::*;

/// Storage for five packets of eight bytes, named by two variables: one in constant memory, one that kernels may write.
fn module(body: &str) -> Il {
    Il::new(body).needs("Pipes PipeStorage").with(
        "%reader = OpTypePipe ReadOnly
         %writer = OpTypePipe WriteOnly
         %ps = OpTypePipeStorage
         %mine = OpConstantPipeStorage %ps 8 8 5
         %other = OpConstantPipeStorage %ps 4 4 3
         %pair = OpTypeStruct %u32 %ps %ps
         %init = OpConstantComposite %pair %u32_1 %other %mine
         %c_pair = OpTypePointer UniformConstant %pair
         %c_ps = OpTypePointer UniformConstant %ps
         %held = OpVariable %c_pair UniformConstant %init
         %g_ps = OpTypePointer CrossWorkgroup %ps
         %changed = OpVariable %g_ps CrossWorkgroup %mine",
    )
}

/// Checks that packets written in one launch are read in later ones, however the storage is named;
/// that it holds as many as declared, and each program has its own.
#[test]
fn packets_stay_between_launches() {
    let setup = Setup::new();
    let il = module(
        "%to = OpCreatePipeFromPipeStorage %writer %mine
         %gin = OpBitcast %g_u64 %in
         %w = OpWritePipe %u32 %to %gin %u32_8 %u32_8
         out 0 u32 %w
         %at = OpInBoundsAccessChain %c_ps %held %u32_2
         %again = OpLoad %ps %at Aligned 8
         %from = OpCreatePipeFromPipeStorage %reader %again
         %n = OpGetNumPipePackets %u32 %from %u32_8 %u32_8
         %m = OpGetMaxPipePackets %u32 %from %u32_8 %u32_8
         out 1 u32 %n
         out 2 u32 %m
         %third = OpLoad %ps %changed Aligned 8
         %also = OpCreatePipeFromPipeStorage %reader %third
         %even = OpIEqual %bool %n %u32_5
         OpSelectionMerge %done None
         OpBranchConditional %even %reads %done
         %reads = OpLabel
         %gout = OpBitcast %g_u64 %out
         %slot = OpPtrAccessChain %g_u64 %gout %u64_48
         %r = OpReadPipe %u32 %also %slot %u32_8 %u32_8
         OpBranch %done
         %done = OpLabel
         %o = OpInBoundsAccessChain %c_ps %held %u32_1
         %small = OpLoad %ps %o Aligned 8
         %three = OpCreatePipeFromPipeStorage %reader %small
         %most = OpGetMaxPipePackets %u32 %three %u32_4 %u32_4
         %none = OpGetNumPipePackets %u32 %three %u32_4 %u32_4
         out 4 u32 %most
         out 5 u32 %none",
    );
    let words = il.words();
    let programs = [0, 1].map(|_| build(&setup, &words).unwrap_or_else(|log| panic!("{log}")));
    for program in &programs {
        // Full at the fifth, where one is taken out each time: so none is ever refused.
        for number in 1..=9u64 {
            let mut data = Data::new();
            data.0[..8].copy_from_slice(&(number << 32 | 7).to_le_bytes());
            let got = run_program(&setup, program, &data, 1);
            let word = |slot: usize| {
                let at = slot * super::SLOT;
                u32::from_le_bytes(got.0[at..at + 4].try_into().expect("four bytes"))
            };
            assert_eq!(word(0), 0, "packet {number} is written");
            assert_eq!(word(1) as u64, number.min(5));
            assert_eq!(word(2), 5);
            assert_eq!([word(4), word(5)], [3, 0]);
            if number >= 5 {
                let bytes = got.0[3 * super::SLOT..][..8].try_into();
                let packet = u64::from_le_bytes(bytes.expect("eight bytes"));
                assert_eq!(packet, (number - 4) << 32 | 7);
            }
        }
    }
}

/// Work-items of several groups share one, and what does not fit fails.
#[test]
fn work_items_share_one() {
    let setup = Setup::new();
    let il = module(
        "%to = OpCreatePipeFromPipeStorage %writer %mine
         %gin = OpBitcast %g_u64 %in
         %w = OpWritePipe %u32 %to %gin %u32_8 %u32_8
         %gid = OpLoad %u64x3 %ids Aligned 32
         %i = OpCompositeExtract %u64 %gid 0
         %gout = OpBitcast %g_u32 %out
         %p = OpPtrAccessChain %g_u32 %gout %i
         OpStore %p %w Aligned 4",
    )
    .decorated("OpDecorate %ids BuiltIn GlobalInvocationId\nOpDecorate %ids Constant")
    .with("%ids = OpVariable %i_u64x3 Input");
    let got = il.run_size(&setup, &Data::new(), 64);
    let codes = got.0[..256].chunks_exact(4);
    let written = codes.filter(|code| **code == [0; 4]).count();
    assert_eq!(written, 5);
}

/// More than a program may hold.
#[test]
fn too_large() {
    let setup = Setup::new();
    let il = module("OpNop").with("%vast = OpConstantPipeStorage %ps 1024 8 1048576");
    let log = il.log(&setup);
    assert!(log.contains("one of 1048576 packets"), "{log}");
}
