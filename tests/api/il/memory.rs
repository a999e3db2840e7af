//! Pointers, copies, atomics, variables.

use super::{Data, Il};
use pumice_tests::sys::*;
use pumice_tests::{call, info_value, ok, Setup};
use std::ptr::{null, null_mut};

#[test]
fn sizes_and_pointers() {
    let setup = Setup::new();
    let il = Il::new(
        "%sp = OpBitcast %g_pair %in
         %size = OpSizeOf %u32 %sp
         out 0 u32 %size
         %small = OpSizeOf %u8 %in
         out 1 u8 %small
         %long = OpSizeOf %u64 %v3
         out 2 u64 %long
         %p = OpBitcast %g_u32 %in
         %q = OpPtrAccessChain %g_u32 %p %u64_5
         %r = OpInBoundsPtrAccessChain %g_u32 %q %m1
         %diff = OpPtrDiff %u64 %r %q
         %many = OpPtrDiff %u32 %q %p
         out 3 u64 %diff
         out 4 u32 %many
         %same = OpPtrEqual %bool %p %q
         %other = OpPtrNotEqual %bool %p %q
         out 5 bool %same
         out 6 bool %other
         %number = OpConvertPtrToU %u64 %p
         %more = OpIAdd %u64 %number %u64_20
         %back = OpConvertUToPtr %g_u32 %more
         %equal = OpPtrEqual %bool %back %q
         out 7 bool %equal
         %null = OpPtrEqual %bool %p %nothing
         out 8 bool %null
         %low = OpConvertPtrToU %u32 %p
         %cut = OpUConvert %u32 %number
         %halves = OpIEqual %bool %low %cut
         out 9 bool %halves",
    )
    .with(
        "%pair = OpTypeStruct %u8 %u32x3
         %m1 = OpConstant %u32 0xffffffff
         %nothing = OpConstantNull %g_u32
         %v3 = OpVariable %g_f32x3 CrossWorkgroup",
    );
    let out = il.run(&setup, &Data::new());
    assert_eq!(out.one::<u32>(0), 32);
    assert_eq!(out.one::<u8>(1), 1);
    assert_eq!(out.one::<u64>(2), 16);
    assert_eq!(out.one::<i64>(3), -1);
    assert_eq!(out.one::<u32>(4), 5);
    let flags: Vec<u32> = (5..10).map(|i| out.one(i)).collect();
    assert_eq!(flags, [0, 1, 1, 0, 1]);
}

/// SPV_INTEL_memory_access_aliasing, as SYCL compilers write it: declarations among the decorations, hints at accesses.
#[test]
fn aliasing_hints() {
    let setup = Setup::new();
    let il = Il::new(
        "%from = OpBitcast %g_u32 %in
         %to = OpBitcast %g_u32 %out
         %x = OpLoad %u32 %from Aligned|NoAliasINTELMask 4 %list
         OpStore %to %x Aligned|AliasScopeINTELMask 4 %list",
    )
    .needs("MemoryAccessAliasingINTEL SPV_INTEL_memory_access_aliasing")
    .decorated(
        "%domain = OpAliasDomainDeclINTEL
         %scope = OpAliasScopeDeclINTEL %domain
         %list = OpAliasScopeListDeclINTEL %scope",
    );
    let out = il.run(&setup, &Data::new().put(0, &[77u32]));
    assert_eq!(out.one::<u32>(0), 77);
}

/// The module of `copies`.
pub(super) fn copying() -> Il {
    Il::new(
        "%src = OpBitcast %g_thing %in
         %mine = OpVariable %p_thing Function
         %other = OpVariable %p_thing Function
         OpLifetimeStart %other 0
         OpCopyMemory %mine %src
         OpCopyMemory %other %mine Volatile|Aligned 4
         %n = in u32 2
         %at = OpInBoundsAccessChain %p_u32 %mine %u32_1 %n
         %x = OpLoad %u32 %at Aligned|Nontemporal 4
         out 0 u32 %x
         %inner = OpAccessChain %p_u8 %other %u32_2 %u64_1
         OpStore %inner %u8_77 Volatile
         %whole = OpLoad %thing %other
         %arr = OpCompositeExtract %four %whole 1
         %y = OpCompositeExtract %u32 %arr 2
         out 1 u32 %y
         %changed = OpCompositeInsert %thing %x %whole 1 3
         %dst = OpBitcast %g_thing %out
         %to = OpInBoundsPtrAccessChain %g_thing %dst %u64_8
         OpStore %to %changed
         %copied = OpCopyObject %thing %changed
         %z = OpCompositeExtract %u8 %copied 2 1
         out 3 u8 %z
         %bytes = OpBitcast %p_u8 %mine
         %far = OpInBoundsPtrAccessChain %g_u8 %out %u64_512
         OpCopyMemorySized %far %bytes %u64_12 Aligned 4
         %len = in u64 3
         %dyn = OpInBoundsPtrAccessChain %g_u8 %out %u64_640
         OpCopyMemorySized %dyn %in %len
         OpLifetimeStop %other 0",
    )
    .with(
        "%four = OpTypeArray %u32 %u32_4
         %small = OpTypeVector %u8 4
         %thing = OpTypeStruct %u64 %four %small",
    )
}

/// Structures, arrays and vectors through access chains, copies of all kinds.
#[test]
fn copies() {
    let setup = Setup::new();
    let il = copying();
    // 8 + 16 + 4 bytes, and 4 of padding.
    let mut input = Data::new().put(0, &[1u64]).put(2, &[1u32]).put(3, &[7u64]);
    for (i, n) in [11u32, 22, 33, 44, 0x0403_0201].into_iter().enumerate() {
        input.0[8 + i * 4..12 + i * 4].copy_from_slice(&n.to_le_bytes());
    }
    let out = il.run(&setup, &input);
    assert_eq!(out.one::<u32>(0), 22);
    assert_eq!(out.one::<u32>(1), 33);
    assert_eq!(out.get::<u32, 7>(2), [1, 0, 11, 22, 33, 22, 0x0403_4d01]);
    assert_eq!(out.one::<u8>(3), 77);
    assert_eq!(out.get::<u32, 3>(4), [1, 0, 11]);
    assert_eq!(out.get::<u8, 8>(5), [1, 0, 0, 0, 0, 0, 0, 0xa5]);
}

/// OpCopyLogical between structures that differ in name only.
#[test]
fn logical_copies() {
    let setup = Setup::new();
    let il = Il::new(
        "%src = OpBitcast %g_first %in
         %value = OpLoad %first %src
         %same = OpCopyLogical %second %value
         %x = OpCompositeExtract %u32 %same 1 1
         out 0 u32 %x
         %picked = OpSelect %second %yes %same %none
         %y = OpCompositeExtract %f32 %picked 0
         out 1 f32 %y",
    )
    .with(
        "%two = OpTypeStruct %u32 %u32
         %pair = OpTypeStruct %u32 %u32
         %first = OpTypeStruct %f32 %two
         %second = OpTypeStruct %f32 %pair
         %none = OpConstantNull %second
         %yes = OpConstantTrue %bool",
    );
    let mut input = Data::new().put(0, &[1.5f32]);
    input.0[8..12].copy_from_slice(&9u32.to_le_bytes());
    let out = il.run(&setup, &input);
    assert_eq!(out.one::<u32>(0), 9);
    assert_eq!(out.one::<f32>(1), 1.5);
}

/// The module of `generic_pointers`.
pub(super) fn generic() -> Il {
    Il::new(
        "%mine = OpVariable %p_u32 Function %u32_5
         OpStore %shared %u32_6
         %gin = OpBitcast %g_u32 %in
         %a = OpPtrCastToGeneric %x_u32 %gin
         %b = OpPtrCastToGeneric %x_u32 %shared
         %c = OpPtrCastToGeneric %x_u32 %mine
         %which = in u32 1
         %is0 = OpIEqual %bool %which %u32_0
         %is1 = OpIEqual %bool %which %u32_1
         %bc = OpSelect %x_u32 %is1 %b %c
         %any = OpSelect %x_u32 %is0 %a %bc
         %v = OpLoad %u32 %any Aligned 4
         out 0 u32 %v
         %g = OpGenericCastToPtrExplicit %g_u32 %any CrossWorkgroup
         %l = OpGenericCastToPtrExplicit %l_u32 %any Workgroup
         %p = OpGenericCastToPtrExplicit %p_u32 %any Function
         %gn = OpPtrNotEqual %bool %g %gnull
         %ln = OpPtrNotEqual %bool %l %lnull
         %pn = OpPtrNotEqual %bool %p %pnull
         out 1 bool %gn
         out 2 bool %ln
         out 3 bool %pn
         %sem = OpGenericPtrMemSemantics %u32 %any
         out 4 u32 %sem
         %back = OpGenericCastToPtr %g_u32 %a
         %w = OpLoad %u32 %back
         out 5 u32 %w",
    )
    .with(
        "%shared = OpVariable %l_u32 Workgroup
         %gnull = OpConstantNull %g_u32
         %lnull = OpConstantNull %l_u32
         %pnull = OpConstantNull %p_u32",
    )
}

#[test]
fn generic_pointers() {
    let setup = Setup::new();
    let il = generic();
    for (which, expected) in [
        (0u32, [4u32, 1, 0, 0, 0x200]),
        (1, [6, 0, 1, 0, 0x100]),
        (2, [5, 0, 0, 1, 0]),
    ] {
        let input = Data::new().put(0, &[4u32]).put(1, &[which]);
        let out = il.run(&setup, &input);
        let got: [u32; 5] = std::array::from_fn(|i| out.one(i));
        assert_eq!(got, expected, "space {which}");
        assert_eq!(out.one::<u32>(5), 4);
    }
}

#[test]
fn atomics() {
    let setup = Setup::new();
    let mut body = "%p = OpBitcast %g_u32 %out
         %q = OpInBoundsPtrAccessChain %g_u32 %p %u64_32
         OpAtomicStore %p %device %none %u32_40\n"
        .to_owned();
    let ops = [
        "OpAtomicIIncrement",
        "OpAtomicIDecrement",
        "OpAtomicIAdd",
        "OpAtomicISub",
        "OpAtomicSMin",
        "OpAtomicSMax",
        "OpAtomicUMin",
        "OpAtomicUMax",
        "OpAtomicAnd",
        "OpAtomicOr",
        "OpAtomicXor",
        "OpAtomicExchange",
    ];
    for (i, op) in ops.iter().enumerate() {
        let value = if i < 2 { "" } else { "%minus3" };
        let slot = i + 2;
        body += &format!("%o{i} = {op} %u32 %p %device %none {value}\nout {slot} u32 %o{i}\n");
    }
    body += "%e = OpAtomicCompareExchange %u32 %p %device %acq_rel %acquire %u32_9 %minus3
         out 14 u32 %e
         %w = OpAtomicCompareExchange %u32 %p %device %seq %seq %u32_8 %u32_77
         out 15 u32 %w
         %l = OpAtomicLoad %u32 %p %device %acquire
         out 16 u32 %l
         OpAtomicFlagClear %q %device %release
         %f1 = OpAtomicFlagTestAndSet %bool %q %device %acq_rel
         %f2 = OpAtomicFlagTestAndSet %bool %q %device %acq_rel
         out 17 bool %f1
         out 18 bool %f2
         OpMemoryBarrier %device %both
         OpControlBarrier %group %group %both";
    let il = Il::new(&body).with(
        "%device = OpConstant %u32 1
         %group = OpConstant %u32 2
         %none = OpConstant %u32 0
         %acquire = OpConstant %u32 2
         %release = OpConstant %u32 4
         %acq_rel = OpConstant %u32 8
         %seq = OpConstant %u32 16
         %both = OpConstant %u32 0x308
         %minus3 = OpConstant %u32 0xfffffffd",
    );
    let out = il.run(&setup, &Data::new());
    let m3 = 0xffff_fffdu32;
    let mut value = 40u32;
    let steps: [fn(u32) -> u32; 12] = [
        |v| v + 1,
        |v| v - 1,
        |v| v.wrapping_sub(3),
        |v| v.wrapping_add(3),
        |v| (v as i32).min(-3) as u32,
        |v| (v as i32).max(-3) as u32,
        |v| v.min(0xffff_fffd),
        |v| v.max(0xffff_fffd),
        |v| v & 0xffff_fffd,
        |v| v | 0xffff_fffd,
        |v| v ^ 0xffff_fffd,
        |_| 0xffff_fffd,
    ];
    for (i, step) in steps.iter().enumerate() {
        assert_eq!(out.one::<u32>(i + 2), value, "{}", ops[i]);
        value = step(value);
    }
    assert_eq!(value, m3);
    let rest: Vec<u32> = (14..19).map(|i| out.one(i)).collect();
    assert_eq!(rest, [m3, 9, 9, 0, 1]);
    assert_eq!(out.one::<u32>(0), 9);
}

#[test]
fn float_atomics() {
    let setup = Setup::new();
    let il = Il::new(
        "%p = OpBitcast %g_f32 %out
         OpAtomicStore %p %device %none %two
         %a = OpAtomicFAddEXT %f32 %p %device %none %half
         %b = OpAtomicFMinEXT %f32 %p %device %none %half
         %c = OpAtomicFMaxEXT %f32 %p %device %none %two
         %d = OpAtomicExchange %f32 %p %device %none %half
         %e = OpAtomicLoad %f32 %p %device %none
         out 1 f32 %a
         out 2 f32 %b
         out 3 f32 %c
         out 4 f32 %d
         out 5 f32 %e",
    )
    .needs("AtomicFloat32AddEXT AtomicFloat32MinMaxEXT SPV_EXT_shader_atomic_float_add SPV_EXT_shader_atomic_float_min_max")
    .with(
        "%device = OpConstant %u32 1
         %none = OpConstant %u32 0
         %two = OpConstant %f32 2
         %half = OpConstant %f32 0.5",
    );
    let out = il.run(&setup, &Data::new());
    let got: Vec<f32> = (1..6).map(|i| out.one(i)).collect();
    assert_eq!(got, [2.0, 2.5, 0.5, 2.0, 0.5]);
}

/// The module of `program_scope_variables`.
pub(super) fn variables() -> Il {
    Il::new(
        "%node = OpLoad %g_u32 %link
         %x = OpLoad %u32 %node
         out 0 u32 %x
         %sp = OpInBoundsAccessChain %c_g_u32 %table %u32_1 %u32_1
         %second = OpLoad %g_u32 %sp Aligned 1
         OpStore %second %u32_50
         %el = OpInBoundsAccessChain %g_u32 %numbers %u32_2
         %y = OpLoad %u32 %el
         out 1 u32 %y
         %n = in u32 0
         %dyn = OpInBoundsAccessChain %c_u32 %table %u32_2 %n
         %z = OpLoad %u32 %dyn
         out 2 u32 %z
         %number = OpConvertPtrToU %u64 %aligned
         %low = OpBitwiseAnd %u64 %number %u64_255
         out 3 u64 %low
         %boolean = OpLoad %bool %flag
         out 4 bool %boolean
         %w = OpLoad %u64 %address
         %here = OpConvertPtrToU %u64 %el
         %eq = OpIEqual %bool %w %here
         out 5 bool %eq
         %cell = OpLoad %f32 %cleared
         out 6 f32 %cell",
    )
    .decorated(
        "OpDecorate %aligned Alignment 256
         OpDecorate %packed CPacked
         OpDecorate %numbers LinkageAttributes \"numbers\" Export",
    )
    .with(
        "%three = OpTypeArray %u32 %u32_3
         %init = OpConstantComposite %three %u32_10 %u32_20 %u32_30
         %g_three = OpTypePointer CrossWorkgroup %three
         %numbers = OpVariable %g_three CrossWorkgroup %init
         %second_at = OpSpecConstantOp %g_u32 InBoundsAccessChain %numbers %u32_1
         %third_at = OpSpecConstantOp %g_u32 InBoundsPtrAccessChain %second_at %u32_1
         %p_link = OpTypePointer CrossWorkgroup %g_u32
         %link = OpVariable %p_link CrossWorkgroup %second_at
         %packed = OpTypeStruct %u8 %g_u32
         %entry0 = OpConstantComposite %packed %u8_1 %third_at
         %all = OpTypeStruct %u8 %packed %three
         %all_init = OpConstantComposite %all %u8_9 %entry0 %init
         %p_all = OpTypePointer UniformConstant %all
         %table = OpVariable %p_all UniformConstant %all_init
         %aligned = OpVariable %g_u8 CrossWorkgroup
         %true = OpConstantTrue %bool
         %flag = OpVariable %g_bool CrossWorkgroup %true
         %as_number = OpSpecConstantOp %u64 ConvertPtrToU %third_at
         %address = OpVariable %g_u64 CrossWorkgroup %as_number
         %none = OpConstantNull %f32
         %cleared = OpVariable %g_f32 CrossWorkgroup %none",
    )
}

/// Program-scope variables: initial values that point to each other, all alignments, constant tables.
#[test]
fn program_scope_variables() {
    let setup = Setup::new();
    let il = variables();
    let out = il.run(&setup, &Data::new().put(0, &[2u32]));
    assert_eq!(out.one::<u32>(0), 20);
    assert_eq!(out.one::<u32>(1), 50);
    assert_eq!(out.one::<u32>(2), 30);
    assert_eq!(out.one::<u64>(3), 0);
    assert_eq!(out.one::<u32>(4), 1);
    assert_eq!(out.one::<u32>(5), 1);
    assert_eq!(out.one::<f32>(6), 0.0);
}

/// A private array with an initial value too large to be handled scalar by scalar.
#[test]
fn large_private_initialisers() {
    let setup = Setup::new();
    let values: Vec<String> = (0..1000).map(|i| format!("%u32_{i}")).collect();
    let il = Il::new(
        "%a = OpVariable %p_big Function %init
         %z = OpVariable %p_big Function %zero
         %n = in u32 0
         %p = OpInBoundsAccessChain %p_u32 %a %u32_3 %n
         %x = OpLoad %u32 %p
         out 0 u32 %x
         %q = OpInBoundsAccessChain %p_u32 %z %u32_3 %n
         %y = OpLoad %u32 %q
         out 1 u32 %y",
    )
    .with(&format!(
        "%part = OpTypeArray %u32 %u32_1000
         %big = OpTypeArray %part %u32_5
         %zero = OpConstantNull %big
         %thousand = OpConstantComposite %part {}
         %init = OpConstantComposite %big %thousand %thousand %thousand %thousand %thousand",
        values.join(" ")
    ));
    let input = Data::new().put(0, &[777u32]);
    // 40 KB a work-item are more than the driver of some GPUs has room for, which shows when the kernel is compiled there.
    let kind = info_value!(u64, clGetDeviceInfo(setup.device), CL_DEVICE_TYPE);
    if kind == CL_DEVICE_TYPE_GPU && il.launch(&setup, &input) == CL_OUT_OF_RESOURCES {
        return pumice_tests::left_out("the device has no room for these arrays");
    }
    let out = il.run(&setup, &input);
    assert_eq!(out.one::<u32>(0), 777);
    assert_eq!(out.one::<u32>(1), 0);
}

/// The module of `builtin_variables`.
pub(super) fn builtins() -> Il {
    Il::new(
        "%all = OpLoad %u64x3 %gid
         %x = OpCompositeExtract %u64 %all 0
         %first = OpIEqual %bool %x %u64_0
         OpSelectionMerge %done None
         OpBranchConditional %first %go %done
         %go = OpLabel
         %xp = OpInBoundsAccessChain %i_u64 %size %u32_0
         %n = OpLoad %u64 %xp
         out 0 u64 %n
         %d = in u32 0
         %dp = OpInBoundsAccessChain %i_u64 %size %d
         %dv = OpLoad %u64 %dp
         out 1 u64 %dv
         %dim = OpLoad %u32 %workdim
         out 2 u32 %dim
         %mine = OpVariable %p_u64x3 Function
         OpBranch %more
         %more = OpLabel
         %pick = OpPhi %i_u64x3 %size %go
         OpCopyMemory %mine %pick
         %yp = OpInBoundsAccessChain %p_u64 %mine %u32_0
         %y = OpLoad %u64 %yp
         out 3 u64 %y
         OpBranch %done
         %done = OpLabel",
    )
    .decorated(
        "OpDecorate %gid BuiltIn GlobalInvocationId
         OpDecorate %size BuiltIn GlobalSize
         OpDecorate %workdim BuiltIn WorkDim
         OpDecorate %gid Constant
         OpDecorate %gid LinkageAttributes \"__spirv_BuiltInGlobalInvocationId\" Import",
    )
    .with(
        "%gid = OpVariable %i_u64x3 Input
         %size = OpVariable %i_u64x3 Input
         %workdim = OpVariable %i_u32 Input",
    )
}

/// Built-in variables by all ways to look at them.
#[test]
fn builtin_variables() {
    let setup = Setup::new();
    let il = builtins();
    let out = il.run_size(&setup, &Data::new().put(0, &[1u32]), 4);
    assert_eq!(out.one::<u64>(0), 4);
    assert_eq!(out.one::<u64>(1), 1);
    assert_eq!(out.one::<u32>(2), 1);
    assert_eq!(out.one::<u64>(3), 4);
}

/// OpenCL C's functions of work-items under their mangled names, as Julia's compiler leaves them.
#[test]
fn work_item_functions() {
    let setup = Setup::new();
    let il = Il::new(
        "%d = in u32 0
         %n = OpFunctionCall %u64 %sizes %d
         out 0 u64 %n
         %none = OpFunctionCall %u64 %sizes %u32_7
         out 1 u64 %none
         %dim = OpFunctionCall %u32 %dims
         out 2 u32 %dim
         %group = OpFunctionCall %u64 %groups %u32_0
         out 3 u64 %group",
    )
    .decorated(
        "OpDecorate %sizes LinkageAttributes \"_Z15get_global_sizej\" Import
         OpDecorate %dims LinkageAttributes \"_Z12get_work_dimv\" Import
         OpDecorate %groups LinkageAttributes \"_Z12get_group_idj\" Import",
    )
    .with(
        "%of_dim = OpTypeFunction %u64 %u32
         %of_none = OpTypeFunction %u32",
    )
    .imports(
        "%sizes = OpFunction %u64 None %of_dim
         %sizes_d = OpFunctionParameter %u32
         OpFunctionEnd
         %groups = OpFunction %u64 None %of_dim
         %groups_d = OpFunctionParameter %u32
         OpFunctionEnd
         %dims = OpFunction %u32 None %of_none
         OpFunctionEnd",
    );
    let out = il.run(&setup, &Data::new().put(0, &[0u32]));
    assert_eq!(out.one::<u64>(0), 1);
    assert_eq!(out.one::<u64>(1), 1);
    assert_eq!(out.one::<u32>(2), 1);
    assert_eq!(out.one::<u64>(3), 0);
}

/// Kernel arguments by value: structures, pointers to structures, vectors, small and large scalars.
#[test]
fn arguments_by_value() {
    let setup = Setup::new();
    let il = Il::new("OpNop")
        .decorated("OpEntryPoint Kernel %m \"m\"\nOpDecorate %m2 FuncParamAttr ByVal")
        .with(
            "%pair = OpTypeStruct %u8 %u64
             %p_pair = OpTypePointer Function %pair
             %m_type = OpTypeFunction %void %g_u64 %pair %p_pair %u8x3 %f64 %u16 %f16",
        )
        .calls(
            "%m = OpFunction %void None %m_type
             %m0 = OpFunctionParameter %g_u64
             %m1 = OpFunctionParameter %pair
             %m2 = OpFunctionParameter %p_pair
             %m3 = OpFunctionParameter %u8x3
             %m4 = OpFunctionParameter %f64
             %m5 = OpFunctionParameter %u16
             %m6 = OpFunctionParameter %f16
             %m7 = OpLabel
             %a = OpCompositeExtract %u64 %m1 1
             %bp = OpInBoundsAccessChain %p_u64 %m2 %u32_1
             %b = OpLoad %u64 %bp
             %c8 = OpCompositeExtract %u8 %m3 2
             %c = OpUConvert %u64 %c8
             %d = OpConvertFToS %u64 %m4
             %e = OpSConvert %u64 %m5
             %f = OpConvertFToS %u64 %m6
             OpStore %m0 %a
             %p1 = OpInBoundsPtrAccessChain %g_u64 %m0 %u64_1
             OpStore %p1 %b
             %p2 = OpInBoundsPtrAccessChain %g_u64 %m0 %u64_2
             OpStore %p2 %c
             %p3 = OpInBoundsPtrAccessChain %g_u64 %m0 %u64_3
             OpStore %p3 %d
             %p4 = OpInBoundsPtrAccessChain %g_u64 %m0 %u64_4
             OpStore %p4 %e
             %p5 = OpInBoundsPtrAccessChain %g_u64 %m0 %u64_5
             OpStore %p5 %f
             OpReturn
             OpFunctionEnd",
        )
        .needs("Float16");
    if il.lacks_floats(&setup) {
        return;
    }
    let program =
        super::build(&setup, &il.words()).unwrap_or_else(|e| panic!("{e}\n{}", il.text()));
    let kernel = setup.kernel(&program, "m");
    let out = setup.buffer(48);
    kernel.set_buffer(0, &out);
    kernel.set(1, [1u64, 1 << 40]).set(2, [2u64, 1 << 41]);
    kernel.set(3, [7u8, 8, 9, 0]).set(4, -3.5f64);
    kernel.set(5, -2i16 as u16).set(6, 0x4500u16);
    setup.run(&kernel, &[1], None);
    let minus = |n: i64| n as u64;
    assert_eq!(
        setup.read::<u64>(&out, 6),
        [1 << 40, 1 << 41, 9, minus(-3), minus(-2), 5]
    );
}

/// LLVM's lists of what `__attribute__((used))` keeps hold pointers to functions, which are never called. Modules as clang
/// writes them, with the storage class of functions and without.
#[test]
fn lists_of_used_functions() {
    let setup = Setup::new();
    let list = "%f_list = OpTypeArray %p_f %u32_2
         %g_list = OpTypePointer CrossWorkgroup %f_list
         %null = OpConstantNull %p_f";
    let plain = "%f = OpTypeFunction %void %g_u8
         %p_f = OpTypePointer Function %f";
    let variable = "%members = OpConstantComposite %f_list %null %cast
         %list = OpVariable %g_list CrossWorkgroup %members";
    let copy = "%x = in u32 0\nout 0 u32 %x";
    let il = Il::new(copy)
        .needs("Linkage")
        .decorated("OpDecorate %list LinkageAttributes \"llvm.used\" Export")
        .with(plain)
        .with(list)
        .with("%cast = OpSpecConstantOp %p_f Bitcast %null")
        .with(variable);
    let input = Data::new().put(0, &[77u32]);
    assert_eq!(il.run(&setup, &input).one::<u32>(0), 77);
    let code = "%f = OpTypeFunction %void %g_u8
         %p_code = OpTypePointer CodeSectionINTEL %f
         %p_f = OpTypePointer CodeSectionINTEL %u8";
    let il = Il::new(copy)
        .needs("Linkage FunctionPointersINTEL SPV_INTEL_function_pointers")
        .decorated("OpDecorate %list LinkageAttributes \"llvm.compiler.used\" Export")
        .with(code)
        .with(list)
        .with("%pointer = OpConstantFunctionPointerINTEL %p_code %k")
        .with("%cast = OpSpecConstantOp %p_f Bitcast %pointer")
        .with(variable);
    assert_eq!(il.run(&setup, &input).one::<u32>(0), 77);
}

/// Memory for a pointer with MaxByteOffset has no more bytes, whether a literal, a constant or a specialised one says how many.
#[test]
fn arguments_of_limited_size() {
    let setup = Setup::new();
    let text = r#"
        OpCapability Addresses
        OpCapability Kernel
        OpMemoryModel Physical64 OpenCL
        OpEntryPoint Kernel %k "k"
        OpDecorate %most SpecId 3
        OpDecorate %out MaxByteOffset 16
        OpDecorateId %in MaxByteOffsetId %u32_12
        OpDecorateId %scratch MaxByteOffsetId %most
        %u32 = OpTypeInt 32 0
        %u32_12 = OpConstant %u32 12
        %most = OpSpecConstant %u32 256
        %void = OpTypeVoid
        %g_u32 = OpTypePointer CrossWorkgroup %u32
        %l_u32 = OpTypePointer Workgroup %u32
        %type = OpTypeFunction %void %g_u32 %g_u32 %l_u32
        %k = OpFunction %void None %type
        %out = OpFunctionParameter %g_u32
        %in = OpFunctionParameter %g_u32
        %scratch = OpFunctionParameter %l_u32
        %entry = OpLabel
        %value = OpLoad %u32 %in Aligned 4
        OpStore %scratch %value Aligned 4
        %same = OpLoad %u32 %scratch Aligned 4
        OpStore %out %same Aligned 4
        OpReturn
        OpFunctionEnd"#;
    let words = super::assemble(text);
    let program = super::create(&setup, &words).unwrap_or_else(|e| panic!("{e}"));
    for most in [256, 32u32] {
        if most != 256 {
            let value = (&raw const most).cast();
            ok!(clSetProgramSpecializationConstant(program.0, 3, 4, value));
        }
        let device = &setup.device;
        ok!(clBuildProgram(
            program.0,
            1,
            device,
            null(),
            None,
            null_mut()
        ));
        let kernel = setup.kernel(&program, "k");
        let set = |index, bytes: usize| {
            let buffer = setup.buffer(bytes);
            let mem = (&raw const buffer.0).cast();
            (call!(clSetKernelArg(kernel.0, index, 8, mem)), buffer)
        };
        let local = |bytes| call!(clSetKernelArg(kernel.0, 2, bytes, null()));
        let none: cl_mem = null_mut();
        let none = (&raw const none).cast();
        assert_eq!(call!(clSetKernelArg(kernel.0, 0, 8, none)), CL_SUCCESS);
        assert_eq!(set(0, 17).0, CL_MAX_SIZE_RESTRICTION_EXCEEDED);
        assert_eq!(set(1, 13).0, CL_MAX_SIZE_RESTRICTION_EXCEEDED);
        assert_eq!(local(most as usize + 1), CL_MAX_SIZE_RESTRICTION_EXCEEDED);
        let ((code0, out), (code1, input)) = (set(0, 16), set(1, 12));
        assert_eq!((code0, code1, local(most as usize)), (0, 0, 0));
        setup.write(&input, &[most, 0, 0]);
        setup.run(&kernel, &[1], None);
        assert_eq!(setup.read::<u32>(&out, 1), [most]);
    }
}
