//! Constants and specialisation constants.

use super::{build, create, run_program, Data, Il};
use opencl_sys::*;
use pumice_tests::*;

/// OpSpecConstantOp of every instruction that kernels may use there.
#[test]
fn operations() {
    let setup = Setup::new();
    // Result type, instruction with operands, expected bits (as many bytes as the type has).
    let cases: &[(&str, &str, u64)] = &[
        ("u32", "SNegate %five", -5i32 as u32 as u64),
        ("u32", "Not %five", !5u32 as u64),
        ("u32", "IAdd %five %minus", 2),
        ("u32", "ISub %minus %five", -8i32 as u32 as u64),
        ("u32", "IMul %five %minus", -15i32 as u32 as u64),
        ("u32", "UDiv %minus %five", (0xffff_fffdu32 / 5) as u64),
        ("u32", "SDiv %fifteen %minus", -5i32 as u32 as u64),
        ("u32", "UMod %minus %five", (0xffff_fffdu32 % 5) as u64),
        ("u32", "SRem %minus %five", -3i32 as u32 as u64),
        ("u32", "SMod %minus %five", 2),
        ("u32", "ShiftRightLogical %minus %u32_28", 15),
        (
            "u32",
            "ShiftRightArithmetic %minus %u32_1",
            -2i32 as u32 as u64,
        ),
        ("u32", "ShiftLeftLogical %five %u32_3", 40),
        ("u32", "BitwiseOr %five %u32_8", 13),
        ("u32", "BitwiseXor %five %u32_6", 3),
        ("u32", "BitwiseAnd %five %u32_6", 4),
        ("u8", "UConvert %minus", 0xfd),
        ("u64", "SConvert %minus", -3i64 as u64),
        ("u64", "UConvert %minus", 0xffff_fffd),
        ("u32", "Select %yes %five %minus", 5),
        ("u32", "Select %no %five %minus", 0xffff_fffd),
        ("bool", "LogicalOr %yes %no", 1),
        ("bool", "LogicalAnd %yes %no", 0),
        ("bool", "LogicalNot %yes", 0),
        ("bool", "LogicalEqual %yes %no", 0),
        ("bool", "LogicalNotEqual %yes %no", 1),
        ("bool", "IEqual %five %five", 1),
        ("bool", "INotEqual %five %five", 0),
        ("bool", "ULessThan %minus %five", 0),
        ("bool", "SLessThan %minus %five", 1),
        ("bool", "UGreaterThan %minus %five", 1),
        ("bool", "SGreaterThan %minus %five", 0),
        ("bool", "ULessThanEqual %five %five", 1),
        ("bool", "SLessThanEqual %five %minus", 0),
        ("bool", "UGreaterThanEqual %five %minus", 0),
        ("bool", "SGreaterThanEqual %five %minus", 1),
        ("f32", "FAdd %half %tenth", (0.5f32 + 0.1).to_bits() as u64),
        ("f32", "FSub %half %tenth", (0.5f32 - 0.1).to_bits() as u64),
        ("f32", "FMul %half %tenth", (0.5f32 * 0.1).to_bits() as u64),
        ("f32", "FDiv %half %tenth", (0.5f32 / 0.1).to_bits() as u64),
        (
            "f32",
            "FRem %mhalf %tenth",
            (-0.5f32 % 0.1).to_bits() as u64,
        ),
        (
            "f32",
            "FMod %mhalf %third",
            (-0.5f32 % 0.3 + 0.3).to_bits() as u64,
        ),
        ("f32", "FNegate %half", (-0.5f32).to_bits() as u64),
        ("f64", "FConvert %tenth", (0.1f32 as f64).to_bits()),
        ("f64", "FDiv %done %dthree", (1.0f64 / 3.0).to_bits()),
        ("f32", "FConvert %dthird", 0x3eaa_aaab),
        ("u32", "ConvertFToS %mbig", -7i32 as u32 as u64),
        ("u32", "ConvertFToU %big", 7),
        ("f32", "ConvertSToF %minus", (-3f32).to_bits() as u64),
        (
            "f32",
            "ConvertUToF %minus",
            (0xffff_fffdu32 as f32).to_bits() as u64,
        ),
        (
            "f64",
            "ConvertUToF %minus",
            (0xffff_fffdu32 as f64).to_bits(),
        ),
        ("u32", "Bitcast %half", 0.5f32.to_bits() as u64),
        ("u64", "Bitcast %vector", 5 | 0xffff_fffd << 32),
        ("u32", "CompositeExtract %vector 1", 0xffff_fffd),
        ("u32", "CompositeExtract %nested 1 0", 5),
        (
            "u32x2",
            "VectorShuffle %vector %vector 1 2",
            0xffff_fffd | 5 << 32,
        ),
        (
            "u32x2",
            "CompositeInsert %fifteen %vector 0",
            15 | 0xffff_fffd << 32,
        ),
        ("u32x2", "IAdd %vector %vector", 10 | 0xffff_fffa << 32),
        ("u32x2", "Select %yes %vector %zeros", 5 | 0xffff_fffd << 32),
    ];
    let doubles = setup.has_doubles();
    let cases: Vec<_> = cases
        .iter()
        .filter(|(ty, what, _)| doubles || *ty != "f64" && !what.contains("%d"))
        .collect();
    let mut globals = "
         %five = OpSpecConstant %u32 5
         %minus = OpSpecConstant %u32 0xfffffffd
         %fifteen = OpSpecConstant %u32 15
         %yes = OpSpecConstantTrue %bool
         %no = OpSpecConstantFalse %bool
         %half = OpSpecConstant %f32 0.5
         %mhalf = OpSpecConstant %f32 -0.5
         %tenth = OpSpecConstant %f32 0.1
         %third = OpSpecConstant %f32 0.3
         %big = OpSpecConstant %f32 7.9
         %mbig = OpSpecConstant %f32 -7.9
         %vector = OpSpecConstantComposite %u32x2 %five %minus
         %zeros = OpConstantNull %u32x2
         %nested_type = OpTypeStruct %f32 %u32x2
         %nested = OpSpecConstantComposite %nested_type %half %vector\n"
        .to_owned();
    if doubles {
        globals += "%done = OpSpecConstant %f64 1\n%dthree = OpSpecConstant %f64 3\n\
                    %dthird = OpSpecConstantOp %f64 FDiv %done %dthree\n";
    }
    let mut body = String::new();
    for (i, (ty, what, _)) in cases.iter().enumerate() {
        globals += &format!("%r{i} = OpSpecConstantOp %{ty} {what}\n");
        body += &format!("out {i} {ty} %r{i}\n");
    }
    let out = Il::new(&body).with(&globals).run(&setup, &Data::new());
    for (i, (ty, what, expected)) in cases.iter().enumerate() {
        let bits = match *ty {
            "u8" => out.one::<u8>(i).into(),
            "u32" | "f32" | "bool" => out.one::<u32>(i).into(),
            _ => out.one::<u64>(i),
        };
        assert_eq!(bits, *expected, "{ty} {what}");
    }
}

/// Tests `half`, and the widths that OpSpecConstant may have.
#[test]
fn narrow_types() {
    let setup = Setup::new();
    let il = Il::new(
        "out 0 u16 %sum_bits
         out 1 f32 %wide
         out 2 u16 %cut_bits
         out 3 u32 %whole
         out 4 u8 %byte
         out 5 u16 %from_bits
         out 6 u64 %long",
    )
    .needs("Float16")
    .decorated("OpDecorate %byte SpecId 1\nOpDecorate %long SpecId 2\nOpDecorate %h SpecId 3")
    .with(
        "%h = OpSpecConstant %f16 1.5
         %other = OpSpecConstant %f16 0.099976
         %tenth = OpSpecConstant %f32 0.1
         %sum = OpSpecConstantOp %f16 FAdd %h %other
         %sum_bits = OpSpecConstantOp %u16 Bitcast %sum
         %wide = OpSpecConstantOp %f32 FConvert %h
         %cut = OpSpecConstantOp %f16 FConvert %tenth
         %cut_bits = OpSpecConstantOp %u16 Bitcast %cut
         %whole = OpSpecConstantOp %u32 ConvertFToS %h
         %byte = OpSpecConstant %u8 200
         %number = OpSpecConstant %u32 2049
         %from = OpSpecConstantOp %f16 ConvertUToF %number
         %from_bits = OpSpecConstantOp %u16 Bitcast %from
         %long = OpSpecConstant %u64 0x123456789abcdef0",
    );
    if il.lacks_floats(&setup) {
        return;
    }
    let program = create(&setup, &il.words()).expect("valid");
    let set = |id: u32, bytes: &[u8]| {
        call!(clSetProgramSpecializationConstant(
            program.0,
            id,
            bytes.len(),
            bytes.as_ptr().cast()
        ))
    };
    let run = || {
        program.build();
        run_program(&setup, &program, &Data::new(), 1)
    };
    let out = run();
    assert_eq!(out.one::<u16>(0), 0x3e66);
    assert_eq!(out.one::<f32>(1), 1.5);
    assert_eq!(out.one::<u16>(2), 0x2e66);
    assert_eq!(out.one::<u32>(3), 1);
    assert_eq!(out.one::<u8>(4), 200);
    assert_eq!(out.one::<u16>(5), 0x6800);
    assert_eq!(out.one::<u64>(6), 0x1234_5678_9abc_def0);
    assert_eq!(set(1, &[7]), 0);
    assert_eq!(set(2, &u64::MAX.to_le_bytes()), 0);
    assert_eq!(set(3, &0x4500u16.to_le_bytes()), 0);
    assert_eq!(set(1, &[7, 0]), CL_INVALID_VALUE);
    assert_eq!(set(4, &[7]), CL_INVALID_SPEC_ID);
    let out = run();
    assert_eq!(out.one::<f32>(1), 5.0);
    assert_eq!(out.one::<u32>(3), 5);
    assert_eq!(out.one::<u8>(4), 7);
    assert_eq!(out.one::<u64>(6), u64::MAX);
}

/// A specialisation constant as the length of an array in local memory, in private memory and in an initial value.
#[test]
fn lengths() {
    let setup = Setup::new();
    let il = Il::new(
        "%size = OpSizeOf %u32 %shared
         out 0 u32 %size
         %p = OpInBoundsAccessChain %p_u32 %mine %last_at
         %q = OpInBoundsAccessChain %l_u32 %shared %last_at
         OpStore %p %u32_5
         OpStore %q %u32_6
         %x = OpLoad %u32 %p
         %y = OpLoad %u32 %q
         out 1 u32 %x
         out 2 u32 %y
         %mine = OpVariable %p_row Function",
    )
    .decorated("OpDecorate %n SpecId 10")
    .with(
        "%n = OpSpecConstant %u32 4
         %last_at = OpSpecConstantOp %u32 ISub %n %u32_1
         %row = OpTypeArray %u32 %n
         %l_row = OpTypePointer Workgroup %row
         %shared = OpVariable %l_row Workgroup",
    );
    let program = create(&setup, &il.words()).expect("valid");
    for n in [4u32, 100] {
        ok!(clSetProgramSpecializationConstant(
            program.0,
            10,
            4,
            (&raw const n).cast()
        ));
        program.build();
        let out = run_program(&setup, &program, &Data::new(), 1);
        let got: [u32; 3] = std::array::from_fn(|i| out.one(i));
        assert_eq!(got, [n * 4, 5, 6]);
    }
}

/// Constants without a value, and nulls, of all types.
#[test]
fn undefined_and_null() {
    let setup = Setup::new();
    let il = Il::new(
        "%s = OpCompositeInsert %pair %u32_4 %u 1
         %x = OpCompositeExtract %u32 %s 1
         out 0 u32 %x
         %local_undef = OpUndef %pair
         %t = OpCompositeInsert %pair %half %local_undef 0
         %y = OpCompositeExtract %f32 %t 0
         out 1 f32 %y
         %e = OpGroupAsyncCopy %event %group %l %in %u64_4 %u64_1 %no_event
         %n = OpVariable %p_event Function
         OpStore %n %e
         OpGroupWaitEvents %group %u32_1 %n
         %z = OpLoad %u8 %l
         out 2 u8 %z
         %eq = OpPtrEqual %bool %np %np
         out 3 bool %eq
         %v = OpCompositeExtract %u32 %zero 1 2
         out 4 u32 %v",
    )
    .with(
        "%pair = OpTypeStruct %f32 %u32
         %u = OpUndef %pair
         %half = OpConstant %f32 0.5
         %event = OpTypeEvent
         %no_event = OpConstantNull %event
         %group = OpConstant %u32 2
         %four = OpTypeArray %u8 %u32_4
         %l_four = OpTypePointer Workgroup %four
         %room = OpVariable %l_four Workgroup
         %l = OpSpecConstantOp %l_u8 InBoundsAccessChain %room %u32_0
         %np = OpConstantNull %x_u8
         %rows = OpTypeArray %u32x3 %u32_2
         %zero = OpConstantNull %rows",
    );
    let out = il.run(&setup, &Data::new().put(0, &[9u8]));
    assert_eq!(out.one::<u32>(0), 4);
    assert_eq!(out.one::<f32>(1), 0.5);
    assert_eq!(out.one::<u8>(2), 9);
    assert_eq!(out.one::<u32>(3), 1);
    assert_eq!(out.one::<u32>(4), 0);
}

/// Groups of decorations.
#[test]
fn decoration_groups() {
    let setup = Setup::new();
    let il = Il::new(
        "%f = in f32x2 0
         %a = OpConvertFToU %u8x2 %f
         %b = OpConvertFToU %u8x2 %f
         out 0 u8x2 %a
         out 1 u8x2 %b",
    )
    .decorated(
        "OpDecorate %sat SaturatedConversion
         OpDecorate %sat FPRoundingMode RTP
         %sat = OpDecorationGroup
         OpGroupDecorate %sat %a %b",
    );
    let program = build(&setup, &il.words()).expect("builds");
    let out = run_program(&setup, &program, &Data::new().put(0, &[1.5f32, 999.0]), 1);
    assert_eq!(out.get::<u8, 2>(0), [2, 255]);
    assert_eq!(out.get::<u8, 2>(1), [2, 255]);
}
