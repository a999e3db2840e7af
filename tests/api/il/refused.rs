//! Modules that are valid and not supported: the build log names the instruction and says why.

use super::{build, Il};
use pumice_tests::*;

#[track_caller]
fn refused(setup: &Setup, il: &Il, parts: &[&str]) {
    let log = il.log(setup);
    assert!(log.contains("CL_BUILD_PROGRAM_FAILURE"), "{log}");
    for part in parts {
        assert!(log.contains(part), "no `{part}` in: {log}");
    }
}

#[test]
fn capabilities() {
    let setup = Setup::new();
    for (name, globals) in [
        ("DeviceEnqueue", "%queue = OpTypeQueue"),
        ("NamedBarrier", "%barrier = OpTypeNamedBarrier"),
        ("Matrix", "%v = OpTypeVector %f32 4\n%m = OpTypeMatrix %v 4"),
    ] {
        if name == "DeviceEnqueue" && super::device_queues::able(&setup) {
            continue;
        }
        let il = Il::new("OpNop").needs(name).with(globals);
        refused(&setup, &il, &[&format!("OpCapability {name}")]);
    }
}

#[test]
fn instructions() {
    let setup = Setup::new();
    let barrier = Il::new("OpControlBarrier %u32_1 %u32_1 %u32_520");
    refused(
        &setup,
        &barrier,
        &["`k`", "OpControlBarrier", "more than a work-group"],
    );
    let format = Il::new(
        "%p = OpBitcast %g_u8 %in
         %x = OpExtInst %u32 %cl printf %p",
    );
    assert!(build(&setup, &format.words()).is_err());
    let recursion = Il::new("%x = OpFunctionCall %u32 %f %u32_3")
        .with("%f_type = OpTypeFunction %u32 %u32")
        .calls(
            "%f = OpFunction %u32 None %f_type
             %f0 = OpFunctionParameter %u32
             %f1 = OpLabel
             %f2 = OpINotEqual %bool %f0 %u32_0
             OpBranchConditional %f2 %f3 %f4
             %f3 = OpLabel
             %f5 = OpISub %u32 %f0 %u32_1
             %f6 = OpFunctionCall %u32 %f %f5
             OpReturnValue %f6
             %f4 = OpLabel
             OpReturnValue %u32_7
             OpFunctionEnd",
        );
    refused(&setup, &recursion, &["recurs"]);
    let large = Il::new("%p = OpBitcast %g_big %in\n%x = OpLoad %big %p")
        .with("%big = OpTypeArray %u32 %u32_5000");
    refused(&setup, &large, &["OpLoad", "5000 scalars"]);
}

#[test]
fn entry_points() {
    let setup = Setup::new();
    let generic = Il::new("OpNop")
        .decorated("OpEntryPoint Kernel %m \"m\"")
        .with("%m_type = OpTypeFunction %void %x_u8")
        .calls(
            "%m = OpFunction %void None %m_type
             %m0 = OpFunctionParameter %x_u8
             %m1 = OpLabel
             OpReturn
             OpFunctionEnd",
        );
    refused(
        &setup,
        &generic,
        &["`m`", "generic pointer as kernel argument"],
    );
}

/// Addresses of 32 bits, and memory models of shaders.
#[test]
fn memory_models() {
    let setup = Setup::new();
    let text = Il::new("OpNop").text();
    let text = text.replace("Physical64 OpenCL", "Physical32 OpenCL");
    let log = build(&setup, &super::assemble(&text)).expect_err("not built");
    assert!(
        log.contains("OpMemoryModel") && log.contains("32-bit addresses"),
        "{log}"
    );
}

/// Checks queries of kernels about the sub-groups of others, which belong to enqueueing on the
/// device and are made about blocks.
#[test]
fn questions_about_kernels() {
    let setup = Setup::new();
    for (inst, operands) in [
        ("OpGetKernelMaxNumSubgroups", "%k %null %u32_4 %u32_4"),
        (
            "OpGetKernelLocalSizeForSubgroupCount",
            "%u32_4 %k %null %u32_4 %u32_4",
        ),
    ] {
        for capability in ["", "SubgroupDispatch", "DeviceEnqueue"] {
            let result = if inst.ends_with("Count") {
                "%nd"
            } else {
                "%u32"
            };
            let il = Il::new(&format!("%x = {inst} {result} {operands}"))
                .needs(capability)
                .with("%null = OpConstantNull %p_u8\n%sizes = OpTypeArray %u64 %u32_3\n%nd = OpTypeStruct %u32 %sizes %sizes %sizes");
            let log = il.log(&setup);
            let named = [
                inst,
                "OpCapability SubgroupDispatch",
                "OpCapability DeviceEnqueue",
            ];
            assert!(
                log.contains("CL_BUILD_PROGRAM_FAILURE") || log.contains("CL_INVALID_"),
                "{log}"
            );
            assert!(
                named.iter().any(|name| log.contains(name)) || log.contains("CL_INVALID_VALUE"),
                "{inst} {capability}: {log}"
            );
        }
    }
}

/// Operands of types on which SPIRV-Tools end the process: our reader looks first.
#[test]
fn operands_without_a_width() {
    let setup = Setup::new();
    for name in ["vstore_half", "vstore_half_r"] {
        let mode = if name.ends_with('r') { "RTE" } else { "" };
        let il = Il::new(&format!(
            "%h = OpBitcast %g_f16 %out
             %x = OpExtInst %void %cl {name} %in %u64_0 %h {mode}"
        ))
        .needs("Float16");
        let words = il.words();
        let mut code = 0;
        // Not `Il::log`, which asks SPIRV-Tools.
        let program = call!(clCreateProgramWithIL(
            setup.context.0,
            words.as_ptr().cast(),
            words.len() * 4,
            &mut code
        ));
        assert!(program.is_null());
        assert_eq!(code, sys::CL_INVALID_VALUE);
    }
}
