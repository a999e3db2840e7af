//! Tests of forms that compilers write and the specification does not have or leaves open.

use super::*;

/// Tests calls by name, in which compilers preserve the signedness of integers.
#[test]
fn builtins_by_name() {
    let text = "OpCapability Addresses
        OpCapability Kernel
        OpCapability Linkage
        OpCapability Int8
        OpMemoryModel Physical64 OpenCL
        OpEntryPoint Kernel %k \"k\"
        OpDecorate %sat LinkageAttributes \"_Z16convert_char_sati\" Import
        OpDecorate %satu LinkageAttributes \"_Z16convert_char_satj\" Import
        OpDecorate %max LinkageAttributes \"_Z10atomic_maxPU3AS1Vjj\" Import
        OpDecorate %fence LinkageAttributes \"_Z9mem_fencej\" Import
        %void = OpTypeVoid
        %u8 = OpTypeInt 8 0
        %u32 = OpTypeInt 32 0
        %c1 = OpConstant %u32 1
        %p = OpTypePointer CrossWorkgroup %u32
        %cfn = OpTypeFunction %u8 %u32
        %mfn = OpTypeFunction %u32 %p %u32
        %ffn = OpTypeFunction %void %u32
        %kfn = OpTypeFunction %void %p
        %sat = OpFunction %u8 None %cfn
        %s1 = OpFunctionParameter %u32
        OpFunctionEnd
        %satu = OpFunction %u8 None %cfn
        %s2 = OpFunctionParameter %u32
        OpFunctionEnd
        %max = OpFunction %u32 None %mfn
        %m1 = OpFunctionParameter %p
        %m2 = OpFunctionParameter %u32
        OpFunctionEnd
        %fence = OpFunction %void None %ffn
        %f1 = OpFunctionParameter %u32
        OpFunctionEnd
        %k = OpFunction %void None %kfn
        %a = OpFunctionParameter %p
        %l = OpLabel
        %v = OpLoad %u32 %a
        %w = OpFunctionCall %u8 %sat %v
        %x = OpFunctionCall %u8 %satu %v
        %y = OpFunctionCall %u32 %max %a %v
        %z = OpFunctionCall %void %fence %c1
        OpReturn
        OpFunctionEnd";
    let module = read(text);
    expect(
        &module,
        &[
            "smax",
            "smin",
            "umin",
            "atomic_rmw.umax.device.relaxed",
            "fence",
        ],
    );
    assert!(!module.to_string().contains("call"));
}

/// Returns the values that a kernel stores, in order, as far as constant folding computes them.
fn stored(text: &str) -> Vec<u64> {
    let mut module = read(text);
    let id = module.kernels[0].func;
    let func = &mut module.functions[id];
    while spirv_lowering::passes::const_fold::run(func, &mut Default::default()) {}
    let entry = func.entry().expect("an entry");
    let insts = func.blocks[entry].insts.iter().map(|&i| &func.insts[i]);
    let stores = insts.filter(|data| matches!(data.op, Op::Store { .. }));
    let bits = |data: &InstData| func.as_const(data.args[1]).expect("a constant");
    stores.map(bits).collect()
}

#[test]
fn integers_of_odd_widths() {
    let (a, b) = (0x1_8765_4321_u64, 0x0_fedc_ba98_u64);
    let mask = (1u64 << 33) - 1;
    let (product, minus) = (a.wrapping_mul(b) & mask, b.wrapping_neg() & mask);
    let signed = |x: u64| ((x << 31) as i64) >> 31;
    // An instruction that gives 33 bits, extended by the second one, and the 64 bits.
    let cases: &[(&str, &str, u64)] = &[
        ("OpIMul %i33 %a %b", "U", product),
        ("OpShiftRightLogical %i33 %a %one", "U", a >> 1),
        ("OpIAdd %i33 %a %b", "U", (a + b) & mask),
        ("OpISub %i33 %b %a", "U", b.wrapping_sub(a) & mask),
        ("OpSNegate %i33 %b", "U", minus),
        ("OpSNegate %i33 %b", "S", signed(minus) as u64),
        ("OpNot %i33 %b", "U", !b & mask),
        ("OpUDiv %i33 %a %three", "U", a / 3),
        ("OpSDiv %i33 %a %three", "S", (signed(a) / 3) as u64),
        ("OpSRem %i33 %a %three", "S", (signed(a) % 3) as u64),
        ("OpSMod %i33 %a %three", "S", signed(a).rem_euclid(3) as u64),
        ("OpShiftLeftLogical %i33 %a %three", "U", a << 3 & mask),
        (
            "OpShiftRightArithmetic %i33 %a %three",
            "U",
            (signed(a) >> 3) as u64 & mask,
        ),
        ("OpBitReverse %i33 %a", "U", a.reverse_bits() >> 31),
        ("OpBitCount %i33 %a", "U", a.count_ones().into()),
        ("OpUConvert %i33 %big", "U", 0x1_0000_0007),
        ("OpSConvert %i33 %byte", "U", 0x1_ffff_fff0),
        ("OpConvertFToS %i33 %float", "S", -5i64 as u64),
        ("OpExtInst %i33 %cl s_min %a %b", "U", a),
        ("OpExtInst %i33 %cl u_min %a %b", "U", b),
        ("OpExtInst %i33 %cl s_abs %a", "U", a.wrapping_neg() & mask),
        ("OpExtInst %i33 %cl clz %b", "U", 1),
        ("OpExtInst %i33 %cl ctz %zero", "U", 33),
        ("OpExtInst %i33 %cl ctz %b", "U", 3),
        ("OpExtInst %i33 %cl popcount %b", "U", b.count_ones().into()),
        ("OpExtInst %i33 %cl u_add_sat %a %b", "U", mask),
        ("OpExtInst %i33 %cl s_sub_sat %a %b", "U", 1 << 32),
        ("OpSelect %i33 %negative %a %b", "U", a),
        ("OpSelect %i33 %below %a %b", "U", b),
        ("OpUndef %i33", "U", 0),
    ];
    let mut body = "%negative = OpSLessThan %bool %a %zero\n\
                    %below = OpULessThan %bool %a %b\n"
        .to_owned();
    let mut expected = Vec::new();
    for (i, (inst, sign, bits)) in cases.iter().enumerate() {
        body += &format!("%v{i} = {inst}\n%w{i} = Op{sign}Convert %u64 %v{i}\nOpStore %q %w{i}\n");
        expected.push(*bits);
    }
    // Truths, and three bytes, as integers and back.
    body += "%mask = OpCompositeConstruct %b4 %negative %below %negative %below
             %four = OpBitcast %i4 %mask
             %not4 = OpNot %i4 %four
             %masked = OpBitcast %b4 %not4
             %second = OpCompositeExtract %bool %masked 1
             %chosen = OpSelect %u64 %second %u64_7 %u64_9
             OpStore %q %chosen
             %wide4 = OpUConvert %u64 %not4
             OpStore %q %wide4
             %i24 = OpUConvert %t24 %a
             %both = OpCompositeConstruct %t24x2 %i24 %i24
             %i48 = OpBitcast %t48 %both
             %wide48 = OpUConvert %u64 %i48
             OpStore %q %wide48
             OpStore %q24 %i24 Aligned 1";
    expected.extend([7, 0b1010, 0x6543_2165_4321, 0x21, 0x43, 0x65]);
    let body = format!(
        "%q = OpBitcast %p_u64 %p
         %q24 = OpBitcast %p_t24 %p
         {body}"
    );
    let text = kernel(&body)
        .replace(
            "OpCapability Linkage",
            "OpCapability Linkage
             OpCapability ArbitraryPrecisionIntegersINTEL",
        )
        .replace(
            "%fn = ",
            "%i33 = OpTypeInt 33 0
             %i4 = OpTypeInt 4 0
             %t24 = OpTypeInt 24 0
             %t48 = OpTypeInt 48 0
             %t24x2 = OpTypeVector %t24 2
             %b4 = OpTypeVector %bool 4
             %p_u64 = OpTypePointer CrossWorkgroup %u64
             %p_t24 = OpTypePointer CrossWorkgroup %t24
             %a = OpConstant %i33 0x187654321
             %b = OpConstant %i33 0x0fedcba98
             %zero = OpConstant %i33 0
             %one = OpConstant %i33 1
             %three = OpConstant %i33 3
             %big = OpConstant %u64 0x700000100000007
             %byte = OpConstant %u8 0xf0
             %float = OpConstant %f32 -5.5
             %u64_7 = OpConstant %u64 7
             %u64_9 = OpConstant %u64 9
             %fn = ",
        );
    assert_eq!(stored(&text), expected);
    let error = read_error(&kernel("").replace("%fn = ", "%i65 = OpTypeInt 65 0\n%fn = "));
    assert!(error.contains("65-bit integers"), "{error}");
}

/// LLVM's SPIR-V target may declare an array of pointers as one: markers of its lifetime and casts tell the size.
#[test]
fn variables_that_are_larger_than_their_type() {
    let declared = |body: &str| {
        let text = kernel(&format!("%v = OpVariable %p_ptr Function\n{body}")).replace(
            "%fn = ",
            "%p_u8 = OpTypePointer Function %u8
             %p_ptr = OpTypePointer Function %p_u8
             %c3 = OpConstant %u32 3
             %three = OpTypeArray %p_u8 %c3
             %p_three = OpTypePointer Function %three
             %fn = ",
        );
        read(&text).to_string()
    };
    for (body, size) in [
        ("%b = OpBitcast %p_u8 %v", 8),
        ("%b = OpBitcast %p_u8 %v\nOpLifetimeStart %b 40", 40),
        ("%b = OpBitcast %p_u8 %v\nOpLifetimeStart %b 4", 8),
        ("%b = OpBitcast %p_three %v", 24),
    ] {
        let text = declared(body);
        assert!(
            text.contains(&format!("alloca.size{size}.")),
            "{body}: {text}"
        );
    }
}

/// LLVM's SPIR-V target gives a copy the alignment of what is written; what is read may have less.
#[test]
fn copies_from_less_aligned_memory() {
    let copied = |source: &str, generator: u32| {
        let text = kernel(&format!(
            "%to = OpVariable %p_array Function
             %other = OpVariable %p_array Function
             %wide = OpUConvert %u64 %n
             %rows = OpIMul %u64 %wide %c44
             %pairs = OpShiftLeftLogical %u64 %wide %c1
             %bytes = OpBitcast %g_u8 %p
             {source}
             OpCopyMemorySized %to %from %c40 Aligned 8"
        ))
        .replace(
            "%void = OpTypeVoid",
            "OpDecorate %p Alignment 4
             %void = OpTypeVoid",
        )
        .replace(
            "%fn = ",
            "%g_u8 = OpTypePointer CrossWorkgroup %u8
             %c40 = OpConstant %u64 40
             %c41 = OpConstant %u64 41
             %c44 = OpConstant %u64 44
             %c8 = OpConstant %u32 8
             %array = OpTypeArray %u64 %c8
             %p_array = OpTypePointer Function %array
             %fn = ",
        );
        let mut words = assemble(&text);
        words[2] = generator << 16;
        let text = read_words(&words).to_string();
        let copy = text.lines().find(|line| line.contains("mem_copy"));
        let align = copy.and_then(|line| line.split("align").nth(1));
        let align = align.and_then(|rest| rest.split(' ').next());
        align.and_then(|bytes| bytes.parse::<u32>().ok())
    };
    let at = |index: &str| format!("%from = OpPtrAccessChain %g_u8 %bytes {index}");
    for (source, bytes) in [
        ("%from = OpBitcast %g_u8 %p".to_owned(), 4),
        (at("%rows"), 4),
        (at("%c40"), 4),
        (at("%pairs"), 2),
        (at("%wide"), 1),
        (at("%c41"), 1),
    ] {
        assert_eq!(copied(&source, 43), Some(bytes), "{source}");
        // By the specification the operand is for both sides.
        assert_eq!(copied(&source, 6), Some(8), "{source}");
    }
    // Variables are ours to place.
    let other = "%from = OpCopyObject %p_array %other";
    assert_eq!([43, 6].map(|from| copied(other, from)), [Some(16); 2]);
}
