//! Images and pipes.

use super::*;

#[test]
fn images() {
    let module = read(IMAGE);
    expect(
        &module,
        &[
            "image 2d_array \"a\"",
            "const 33 : handle",
            "sampler_word",
            "image_read.int",
            "image_query.array_size",
            "image_query.data_type",
            "const 4304 : i32",
        ],
    );
    let call = |name: &str| module.by_name.contains_key(name);
    assert!(call("pumice_sample_2d_array_f") && call("pumice_sample_int_2d_array_u"));
    assert!(call("pumice_write_u"));
    for (from, to, what) in [
        (
            "%void 2D 0 1 0 0 Unknown ReadOnly",
            "%float 2D 0 1 0 0 Unknown ReadOnly",
            "sampled type",
        ),
        (
            "%void 2D 0 1 0 0 Unknown ReadOnly",
            "%void 2D 0 1 0 0 Rgba8 ReadOnly",
            "format",
        ),
        (
            "%void 2D 0 1 0 0 Unknown ReadOnly",
            "%void Cube 0 1 0 0 Unknown ReadOnly",
            "geometry",
        ),
        (
            "%void 2D 0 1 0 0 Unknown ReadOnly",
            "%void 2D 0 1 1 0 Unknown ReadOnly",
            "samples",
        ),
        (
            "OpSampledImage %sampled %a %lit",
            "OpSampledImage %sampled %a %a",
            "not a sampler",
        ),
        (
            "OpImageRead %v4uint %a %c4 SignExtend",
            "OpImageRead %v4uint %lit %c4 SignExtend",
            "not an image",
        ),
        (
            "OpImageRead %v4uint %a %c4 SignExtend",
            "OpImageRead %v4uint %a %f4",
            "integer coordinates",
        ),
        (
            "OpImageRead %v4uint %a %c4 SignExtend",
            "OpImageRead %v4uint %a %i0",
            "not a coordinate",
        ),
    ] {
        let text = IMAGE.replace(from, to);
        assert_ne!(text, IMAGE, "{from}");
        let error = read_error(&text);
        assert!(error.contains(what), "{to}: {error}");
    }
}

const PIPE: &str = "OpCapability Addresses
     OpCapability Kernel
     OpCapability Int64
     OpCapability Pipes
     OpMemoryModel Physical64 OpenCL
     OpEntryPoint Kernel %k \"k\"
     OpName %in \"in\"
     %void = OpTypeVoid
     %bool = OpTypeBool
     %u32 = OpTypeInt 32 0
     %c0 = OpConstant %u32 0
     %c1 = OpConstant %u32 1
     %c2 = OpConstant %u32 2
     %c3 = OpConstant %u32 3
     %c4 = OpConstant %u32 4
     %c8 = OpConstant %u32 8
     %id = OpTypeReserveId
     %reader = OpTypePipe ReadOnly
     %writer = OpTypePipe WriteOnly
     %p_u32 = OpTypePointer CrossWorkgroup %u32
     %p_id = OpTypePointer Function %id
     %none = OpConstantNull %id
     %fn = OpTypeFunction %void %reader %writer %p_u32
     %k = OpFunction %void None %fn
     %in = OpFunctionParameter %reader
     %out = OpFunctionParameter %writer
     %p = OpFunctionParameter %p_u32
     %entry = OpLabel
     %kept = OpVariable %p_id Function %none
     %a = OpReadPipe %u32 %in %p %c8 %c4
     %b = OpReserveWritePipePackets %id %out %c3 %c8 %c4
     OpStore %kept %b
     %valid = OpIsValidReserveId %bool %b
     %c = OpReservedWritePipe %u32 %out %b %c2 %p %c8 %c4
     OpCommitWritePipe %out %b %c8 %c4
     %d = OpGroupReserveReadPipePackets %id %c2 %in %c1 %c8 %c4
     OpGroupCommitReadPipe %c2 %in %d %c8 %c4
     %e = OpGroupReserveWritePipePackets %id %c3 %out %c1 %c8 %c4
     OpGroupCommitWritePipe %c3 %out %e %c8 %c4
     %n = OpGetNumPipePackets %u32 %in %c8 %c4
     %m = OpGetMaxPipePackets %u32 %out %c8 %c4
     OpReturn
     OpFunctionEnd";

#[test]
fn pipes() {
    let module = read(PIPE);
    expect(
        &module,
        &[
            "pipe \"in\" \"\" global read_only",
            "pipe \"\" \"\" global write_only",
            "mem_copy.size8.align4",
            "barrier.work_group.work_group.acq_rel.gl",
            "barrier.sub_group.sub_group.acq_rel.gl",
            "group.sub_group.broadcast",
            "local_linear_id",
            "sub_group_local_id",
        ],
    );
    for end in ["read", "write"] {
        for what in ["reserve", "commit"] {
            let name = format!("__pumice_pipe_{what}_{end}");
            assert!(module.by_name.contains_key(&name), "{name}");
        }
    }
    // The number of a place, not its alignment, and that of a packed type.
    let text = module.to_string();
    assert_eq!(text.matches("mem_copy").count(), 2, "{text}");
    let packed = PIPE.replace("%p %c8 %c4", "%p %c3 %c2");
    expect(&read(&packed), &["mem_copy.size3.align1"]);
    for (from, to, what) in [
        (
            "OpReadPipe %u32 %in %p %c8",
            "OpReadPipe %u32 %c1 %p %c8",
            "OpReadPipe",
        ),
        (
            "OpIsValidReserveId %bool %b",
            "OpIsValidReserveId %bool %a",
            "OpIsValidReserveId",
        ),
        (
            "OpGroupReserveReadPipePackets %id %c2",
            "OpGroupReserveReadPipePackets %id %c1",
            "a group operation of that scope",
        ),
        (
            "OpReadPipe %u32 %in %p %c8",
            "OpReadPipe %id %in %p %c8",
            "OpReadPipe",
        ),
    ] {
        let text = PIPE.replace(from, to);
        assert_ne!(text, PIPE, "{from}");
        let error = read_error(&text);
        assert!(error.contains(what), "{to}: {error}");
    }
}
