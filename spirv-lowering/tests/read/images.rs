//! Images and pipes.

use super::*;
use spirv_lowering::ir::types::Space;

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

/// A pipe of the module's own, reached directly, and through a structure in constant memory.
#[test]
fn pipe_storage() {
    let text = PIPE
        .replace(
            "OpCapability Pipes",
            "OpCapability Pipes\nOpCapability PipeStorage",
        )
        .replace(
            "%fn = OpTypeFunction",
            "%ps = OpTypePipeStorage
             %mine = OpConstantPipeStorage %ps 8 4 5
             %pair = OpTypeStruct %u32 %ps
             %init = OpConstantComposite %pair %c1 %mine
             %p_pair = OpTypePointer UniformConstant %pair
             %p_ps = OpTypePointer UniformConstant %ps
             %held = OpVariable %p_pair UniformConstant %init
             %fn = OpTypeFunction",
        )
        .replace(
            "%m = OpGetMax",
            "%x = OpCreatePipeFromPipeStorage %writer %mine
             %y = OpWritePipe %u32 %x %p %c8 %c4
             %at = OpAccessChain %p_ps %held %c1
             %there = OpLoad %ps %at
             %z = OpCreatePipeFromPipeStorage %reader %there
             %w = OpReadPipe %u32 %z %p %c8 %c4
             %m = OpGetMax",
        );
    let module = read(&text);
    expect(&module, &["load.align8"]);
    let mut globals = module.globals.iter().map(|(_, global)| global);
    // 1152 bytes, and a ring of eight places for five packets.
    let pipe = globals.find(|global| global.size == 1152 + 64);
    let pipe = pipe.unwrap_or_else(|| panic!("no pipe in {module}"));
    assert_eq!((pipe.space, pipe.align), (Some(Space::Global), 128));
    let bytes = pipe.init.as_deref().unwrap_or_default();
    assert_eq!(bytes.len() as u64, pipe.size);
    assert_eq!(&bytes[..12], [8, 0, 0, 0, 5, 0, 0, 0, 7, 0, 0, 0]);
    let held = module.globals.iter().find(|(_, global)| global.size == 16);
    let relocs = held.map_or(0, |(_, held)| held.relocs.len());
    assert_eq!(relocs, 1, "{module}");
    for (from, to, what) in [
        ("%ps 8 4 5", "%ps 8 4 1073741825", "one of 1073741825"),
        ("%ps 8 4 5", "%ps 4294967295 4 1024", "one of 1024"),
        // Each of them would do.
        (
            "%pair =",
            "%b = OpConstantPipeStorage %ps 1024 4 32768
             %c = OpConstantPipeStorage %ps 1024 4 32768
             %pair =",
            "one of 32768",
        ),
        (
            "OpConstantPipeStorage %ps",
            "OpConstantPipeStorage %u32",
            "not that of pipe storage",
        ),
        (
            "%writer %mine",
            "%writer %c1",
            "OpCreatePipeFromPipeStorage",
        ),
    ] {
        let changed = text.replace(from, to);
        assert_ne!(changed, text, "{from}");
        let error = read_error(&changed);
        assert!(error.contains(what), "{to}: {error}");
    }
}

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
