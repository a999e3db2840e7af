//! The properties of a device that the compiler uses: its features, its quirks, and the
//! measurements of its arithmetic.

use super::features::Features;
use super::probe::{Answers, Arithmetic};
use super::properties::Properties;
use crate::quirks::{Quirk, Quirks};
use ash::vk;
use spirv_lowering::quirks::CodeQuirk;
use spirv_lowering::target::{FloatCaps, Target};

fn float_caps(
    supported: bool,
    known: Arithmetic,
    preserve: bool,
    flush: bool,
    special: bool,
    rte: bool,
) -> FloatCaps {
    if !supported {
        return FloatCaps::NONE;
    }
    FloatCaps {
        supported,
        fused_fma: known.fused_fma,
        exact_div: known.exact_div,
        exact_sqrt: known.exact_sqrt,
        denormals: known.denormals,
        denorm_preserve: preserve,
        denorm_flush: flush,
        signed_zero_inf_nan: special,
        rte,
    }
}

/// Returns the properties that the compiler uses. `subgroup_size`: 0 where it varies.
pub fn of(
    features: &Features,
    reported: &Properties,
    quirks: Quirks,
    limits: &vk::PhysicalDeviceLimits,
    answers: &Answers,
    subgroup_size: u32,
) -> Target {
    let v12 = &reported.v12;
    let on = |flag: vk::Bool32| flag == vk::TRUE;
    let small_ints = on(features.core.shader_int16) && on(features.v12.shader_int8);
    let storage8 = on(features.v12.storage_buffer8_bit_access);
    let storage16 = on(features.v11.storage_buffer16_bit_access);
    let fp16 = on(features.v12.shader_float16) && small_ints && storage16;
    let int64 = on(features.core.shader_int64);
    let fp64 = on(features.core.shader_float64);
    // Where widths may not differ in a mode, a mode counts only if all widths in question have it.
    let independent =
        |which: vk::ShaderFloatControlsIndependence, modes: [vk::Bool32; 3]| -> [bool; 3] {
            let [half, single, double] = modes.map(on);
            let (half_ok, double_ok) = (half || !fp16, double || !fp64);
            match which {
                vk::ShaderFloatControlsIndependence::ALL => [half, single, double],
                vk::ShaderFloatControlsIndependence::TYPE_32_ONLY => {
                    [half && double_ok, single, double && half_ok]
                }
                _ => {
                    let all = half_ok && single && double_ok;
                    [half && all, single && all, double && all]
                }
            }
        };
    let denorm = v12.denorm_behavior_independence;
    let rounding = v12.rounding_mode_independence;
    let preserve = independent(
        denorm,
        [
            v12.shader_denorm_preserve_float16,
            v12.shader_denorm_preserve_float32,
            v12.shader_denorm_preserve_float64,
        ],
    );
    let mut flush = independent(
        denorm,
        [
            v12.shader_denorm_flush_to_zero_float16,
            v12.shader_denorm_flush_to_zero_float32,
            v12.shader_denorm_flush_to_zero_float64,
        ],
    );
    // One mode for all widths: flushing in some of them would stand beside preserving in others.
    if denorm == vk::ShaderFloatControlsIndependence::NONE && preserve.contains(&true) {
        flush = [false; 3];
    }
    let rte = independent(
        rounding,
        [
            v12.shader_rounding_mode_rte_float16,
            v12.shader_rounding_mode_rte_float32,
            v12.shader_rounding_mode_rte_float64,
        ],
    );
    let special = [
        v12.shader_signed_zero_inf_nan_preserve_float16,
        v12.shader_signed_zero_inf_nan_preserve_float32,
        v12.shader_signed_zero_inf_nan_preserve_float64,
    ]
    .map(on);
    let workgroup = &features.workgroup;
    Target {
        address_bits: 64,
        max_push_constants: limits.max_push_constants_size,
        max_local_memory: limits.max_compute_shared_memory_size,
        fp16: match fp16 {
            true => float_caps(
                fp16,
                answers.fp16,
                preserve[0],
                flush[0],
                special[0],
                rte[0],
            ),
            // The modes hold for conversions of halves in words.
            false => FloatCaps {
                denorm_preserve: preserve[0],
                signed_zero_inf_nan: special[0],
                rte: rte[0],
                ..FloatCaps::NONE
            },
        },
        unpacks_halves: preserve[0] || answers.unpack_half,
        packs_halves: preserve[0] && rte[0] || answers.pack_half,
        fp32: float_caps(
            true,
            answers.fp32,
            preserve[1],
            flush[1],
            special[1],
            rte[1] && !quirks.has(Quirk::RoundingMode),
        ),
        fp64: float_caps(
            fp64,
            answers.fp64,
            preserve[2],
            flush[2],
            special[2],
            rte[2],
        ),
        good_exp2: answers.exp2,
        good_log2: answers.log2,
        small_ints,
        storage8,
        storage16,
        int64,
        int64_atomics_global: int64 && on(features.v12.shader_buffer_int64_atomics),
        int64_atomics_local: int64 && on(features.v12.shader_shared_int64_atomics),
        float32_atomic_add_global: on(features.atomic_float.shader_buffer_float32_atomic_add),
        float32_atomic_add_local: on(features.atomic_float.shader_shared_float32_atomic_add),
        workgroup_explicit_layout: on(workgroup.workgroup_memory_explicit_layout)
            && on(workgroup.workgroup_memory_explicit_layout8_bit_access)
            && on(workgroup.workgroup_memory_explicit_layout16_bit_access),
        memory_model_device_scope: on(features.v12.vulkan_memory_model_device_scope),
        device_filters: crate::util::config::get().device_filters,
        checks_images: false,
        storage_image_read: on(features.core.shader_storage_image_read_without_format),
        dot_4x8: reported.dot_4x8(features),
        subgroup_ops: reported.subgroup_ops(),
        subgroup_size,
        subgroup_extended_types: int64
            && small_ints
            && storage8
            && storage16
            && on(features.v12.shader_subgroup_extended_types),
        maximal_reconvergence: on(features.reconvergence.shader_maximal_reconvergence),
        clock_device: int64 && on(features.clock.shader_device_clock),
        clock_subgroup: int64 && on(features.clock.shader_subgroup_clock),
        quirks: match int64 {
            true => quirks.of_code(),
            false => quirks.of_code().without(CodeQuirk::LongWords),
        },
        wide_range: false,
        native: false,
    }
}
