//! bfloat16: SPV_INTEL_bfloat16_conversion and SPV_KHR_bfloat16.

use super::*;
use crate::bfloat16::nearest;

/// The instructions of SPV_INTEL_bfloat16_conversion.
#[test]
fn of_integers() {
    let setup = Setup::new();
    let il = Il::new(
        "%a = in f32x4 0
         %bits = OpConvertFToBF16INTEL %u16x4 %a
         out 0 u16x4 %bits
         %b = OpConvertBF16ToFINTEL %f32x4 %bits
         out 1 f32x4 %b",
    )
    .needs("BFloat16ConversionINTEL SPV_INTEL_bfloat16_conversion");
    let a = [1.0f32, -2718.75, 1e-40, f32::MAX];
    let out = il.run(&setup, &Data::new().put(0, &a));
    let bits = a.map(nearest);
    assert_eq!(out.get::<u16, 4>(0), bits);
    let floats = bits.map(|bits| u32::from(bits) << 16);
    assert_eq!(out.get::<u32, 4>(1), floats);
}

/// The type of SPV_KHR_bfloat16: constants, memory, selections, conversions from and to other types, dot products.
/// (The assembler takes the constant for a half, whose bits are those of 3.140625.)
#[test]
fn as_a_type() {
    let setup = Setup::new();
    let il = Il::new(
        "%from = OpBitcast %g_bfx4 %in
         %v = OpLoad %bfx4 %from Aligned 8
         %f = OpFConvert %f32x4 %v
         out 0 f32x4 %f
         %i = OpConvertFToS %u32x4 %v
         out 1 u32x4 %i
         %dot = OpDot %bf %v %v
         %sum = OpFConvert %f32 %dot
         out 2 f32 %sum
         %n = in u32 1
         %from_int = OpConvertSToF %bf %n
         %x = in f32 2
         %from_float = OpFConvert %bf %x
         %less = OpSLessThan %bool %n %u32_0
         %chosen = OpSelect %bf %less %from_int %from_float
         %pair = OpCompositeConstruct %bfx4 %from_int %from_float %chosen %pi
         %slot = OpInBoundsPtrAccessChain %g_u8 %out %u64_384
         %to = OpBitcast %g_bfx4 %slot
         OpStore %to %pair Aligned 8",
    )
    .needs("BFloat16TypeKHR BFloat16DotProductKHR SPV_KHR_bfloat16")
    .with(
        "%bf = OpTypeFloat 16 BFloat16KHR
         %bfx4 = OpTypeVector %bf 4
         %g_bfx4 = OpTypePointer CrossWorkgroup %bfx4
         %pi = OpConstant %bf 2.142578125",
    );
    let v = [1.0f32, -2.5, 0.0078125, 1000.0];
    let input = Data::new()
        .put(0, &v.map(nearest))
        .put(1, &[-16_777_217i32])
        .put(2, &[f32::MAX]);
    let out = il.run(&setup, &input);
    assert_eq!(out.get::<f32, 4>(0), v);
    assert_eq!(out.get::<i32, 4>(1), [1, -2, 0, 1000]);
    let dot: f32 = v.iter().map(|x| x * x).sum();
    assert_eq!(out.one::<f32>(2).to_bits() >> 16, nearest(dot).into());
    let int = nearest(-16_777_217.0);
    assert_eq!(
        out.get::<u16, 4>(3),
        [int, nearest(f32::MAX), int, nearest(3.140625)]
    );
}
