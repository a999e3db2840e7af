//! The reader on small hand-written modules, and on damaged ones.

use spirv_lowering::error::LowerError;
use spirv_lowering::interface::KernelRole;
use spirv_lowering::ir::function::InstData;
use spirv_lowering::ir::module::Module;
use spirv_lowering::ir::op::Op;
use spirv_lowering::ir::verify::verify_module;
use spirv_lowering::link;
use spirv_lowering::read::{read_module, Library, ReadOptions};
use spirv_tools::assembler::{self, Assembler};
use std::time::{Duration, Instant};

const LOOP: &str = include_str!("read/loop.spvasm");
const OPS: &str = include_str!("read/ops.spvasm");
const IMAGE: &str = include_str!("read/image.spvasm");
const EXT: &str = include_str!("read/ext.spvasm");
const ENQUEUE: &str = include_str!("read/enqueue.spvasm");

/// The SPIR-V library of libclc, where the machine has it.
const LIBCLC: &str = "/usr/lib/clc/spirv64-mesa3d-.spv";

fn assemble(text: &str) -> Vec<u32> {
    let assembler = assembler::create(Some(spirv_tools::TargetEnv::Universal_1_6));
    let options = assembler::AssemblerOptions {
        preserve_numeric_ids: false,
    };
    let binary = assembler
        .assemble(text, options)
        .expect("the test module assembles");
    let words: &[u32] = binary.as_ref();
    words.to_vec()
}

fn read_words(words: &[u32]) -> Module {
    let module = read_module(words, &ReadOptions::default()).expect("the module is read");
    verify_module(&module).expect("the module is well-formed");
    module
}

fn read(text: &str) -> Module {
    read_words(&assemble(text))
}

fn read_error(text: &str) -> String {
    let error =
        read_module(&assemble(text), &ReadOptions::default()).expect_err("the module is refused");
    assert!(!matches!(error, LowerError::Internal { .. }), "{error}");
    error.to_string()
}

/// A kernel `k(global uint* p, uint n, float f)` around some instructions.
fn kernel(body: &str) -> String {
    format!(
        "OpCapability Addresses
         OpCapability Kernel
         OpCapability Int64
         OpCapability Int16
         OpCapability Int8
         OpCapability Float64
         OpCapability Linkage
         OpCapability Vector16
         %cl = OpExtInstImport \"OpenCL.std\"
         OpMemoryModel Physical64 OpenCL
         OpEntryPoint Kernel %k \"k\"
         %void = OpTypeVoid
         %bool = OpTypeBool
         %u8 = OpTypeInt 8 0
         %u16 = OpTypeInt 16 0
         %u32 = OpTypeInt 32 0
         %u64 = OpTypeInt 64 0
         %f32 = OpTypeFloat 32
         %u2 = OpTypeVector %u32 2
         %u4 = OpTypeVector %u32 4
         %f4 = OpTypeVector %f32 4
         %c0 = OpConstant %u32 0
         %c1 = OpConstant %u32 1
         %c2 = OpConstant %u32 2
         %pair = OpTypeStruct %u32 %u32
         %p_u32 = OpTypePointer CrossWorkgroup %u32
         %fn = OpTypeFunction %void %p_u32 %u32 %f32
         %k = OpFunction %void None %fn
         %p = OpFunctionParameter %p_u32
         %n = OpFunctionParameter %u32
         %f = OpFunctionParameter %f32
         %entry = OpLabel
         {body}
         OpReturn
         OpFunctionEnd"
    )
}

#[track_caller]
fn expect(module: &Module, parts: &[&str]) {
    let text = module.to_string();
    for part in parts {
        assert!(text.contains(part), "`{part}` is not in\n{text}");
    }
}

#[test]
fn loop_with_everything() {
    let module = read(LOOP);
    expect(
        &module,
        &[
            // float3 lies at 16, and has the size of float4; the table's address is relocated.
            "reloc [0: @0 4]",
            "local size 24 align 4",
            "byval size 48 align 16 \"s\" \"S\"",
            "pointer global \"x\" \"float*\" global none const restrict",
            "builtin.global_id.0",
            "load.align16",
            "_Z3sinf",
            "barrier",
        ],
    );
    let kernel = &module.kernels[0];
    assert_eq!(kernel.attributes.required_work_group_size, Some([8, 2, 1]));
    assert_eq!(kernel.params[2].type_name, "uint");
    // get_global_id(n) for n above 2 is 0: the chain of selections starts there.
    let function = &module.functions[kernel.func];
    assert_eq!(function.layout.len(), 3);
}

#[test]
fn specialisation_constants() {
    let options = ReadOptions {
        spec_constants: vec![(7, 9u32.to_le_bytes().to_vec())],
        ..Default::default()
    };
    let module = read_module(&assemble(LOOP), &options).expect("the module is read");
    expect(&module, &["local size 40 align 4"]);
}

#[test]
fn byte_order() {
    let swapped: Vec<u32> = assemble(LOOP).iter().map(|w| w.swap_bytes()).collect();
    let module = read_module(&swapped, &ReadOptions::default()).expect("the module is read");
    assert_eq!(module.to_string(), read(LOOP).to_string());
}

#[test]
fn operations() {
    let module = read(OPS);
    let text = module.to_string();
    for op in [
        "smul_hi",
        "umul_hi",
        "srem",
        "bit_reverse",
        "popcount",
        "f_to_s",
        "u_to_f",
        "atomic_rmw",
        "atomic_cmpxchg",
    ] {
        assert!(
            text.replace('_', "").contains(&op.replace('_', "")),
            "`{op}` is not in\n{text}"
        );
    }
}

#[test]
fn extended_instructions() {
    let mut module = read(EXT);
    expect(
        &module,
        &[
            "_Z3sinf",
            "_Z5fractfPf",
            "_Z6lengthDv4_f",
            "_Z4pownfi",
            "printf 0 \"%d %s\\0a\" [i32 1, \"hi\"]",
        ],
    );
    let Ok(bytes) = std::fs::read(LIBCLC) else {
        return;
    };
    let words = bytes
        .chunks_exact(4)
        .map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]]))
        .collect();
    let library = Library::new(words).expect("libclc is indexed");
    link::resolve(&mut module, &[&library]).expect("the library links");
    verify_module(&module).expect("the module is well-formed");
    assert!(module
        .functions
        .values()
        .any(|f| f.name == "_Z3sinf" && !f.layout.is_empty()));
}

#[test]
fn whole_library() {
    let Ok(bytes) = std::fs::read(LIBCLC) else {
        return;
    };
    let words: Vec<u32> = bytes
        .chunks_exact(4)
        .map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]]))
        .collect();
    let options = ReadOptions {
        library: true,
        ..Default::default()
    };
    let module = read_module(&words, &options).expect("libclc is read");
    verify_module(&module).expect("the module is well-formed");
    assert!(module.functions.len() > 2000);
}

#[test]
fn errors_name_the_instruction() {
    let cases = [
        ("%a = OpIAdd %f32 %f %f", "OpIAdd"),
        ("%a = OpIAdd %u32 %n %f", "%"),
        ("%a = OpLoad %f32 %p", ""),
        ("%a = OpFAdd %f32 %f %n", "OpFAdd"),
        ("%a = OpCompositeExtract %u32 %n 3", "OpCompositeExtract"),
        ("%a = OpBitcast %u64 %n", "OpBitcast"),
        ("OpStore %n %f", "OpStore"),
        ("%a = OpPhi %u32 %n %entry", "entry block"),
        ("%a = OpIAdd %u32 %b %b\n%b = OpIAdd %u32 %n %n", "OpIAdd"),
        ("%a = OpExtInst %f32 %cl sin %n", "sin"),
        ("%a = OpVectorShuffle %u2 %n %n 0 7", "OpVectorShuffle"),
        ("OpBranch %entry\n%z = OpLabel", "entry block"),
    ];
    for (body, part) in cases {
        let words = assemble(&kernel(body));
        // The load of a float through a pointer to integers is wrong SPIR-V, but means something.
        let result = read_module(&words, &ReadOptions::default());
        if part.is_empty() {
            assert!(result.is_ok());
            continue;
        }
        let error = read_error(&kernel(body));
        assert!(error.contains(part), "{body}: {error}");
        assert!(error.contains("`k`"), "{body}: {error}");
    }
}

/// Sizes, differences of pointers without type, initial values too large to be scalars, constants of half precision,
/// alignments by constants; and a phi node of a built-in variable, whose copy belongs to the predecessor.
#[test]
fn less_common_instructions() {
    let text = "OpCapability Addresses
        OpCapability Kernel
        OpCapability Int64
        OpCapability Float16
        OpCapability UntypedPointersKHR
        OpExtension \"SPV_KHR_untyped_pointers\"
        OpMemoryModel Physical64 OpenCL
        OpEntryPoint Kernel %k \"k\"
        OpDecorate %gid BuiltIn GlobalInvocationId
        OpDecorateId %aligned AlignmentId %c64
        OpDecorate %aligned Volatile
        %void = OpTypeVoid
        %u32 = OpTypeInt 32 0
        %u64 = OpTypeInt 64 0
        %f16 = OpTypeFloat 16
        %v3 = OpTypeVector %u64 3
        %c64 = OpConstant %u32 64
        %c5000 = OpConstant %u32 5000
        %big = OpTypeArray %u32 %c5000
        %zero = OpConstantNull %big
        %h = OpConstant %f16 1.5
        %sum = OpSpecConstantOp %f16 FAdd %h %h
        %up = OpTypeUntypedPointerKHR CrossWorkgroup
        %p_big = OpTypePointer Function %big
        %p_h = OpTypePointer CrossWorkgroup %f16
        %i_v3 = OpTypePointer Input %v3
        %p_v3 = OpTypePointer Function %v3
        %gid = OpVariable %i_v3 Input
        %aligned = OpVariable %p_h CrossWorkgroup
        %fn = OpTypeFunction %void %up
        %k = OpFunction %void None %fn
        %p = OpFunctionParameter %up
        %entry = OpLabel
        %a = OpVariable %p_big Function %zero
        %mine = OpVariable %p_v3 Function
        %size = OpSizeOf %u32 %a
        OpStore %p %size
        %q = OpUntypedPtrAccessChainKHR %up %u32 %p %c64
        %d = OpPtrDiff %u64 %q %p
        OpStore %q %d
        OpStore %aligned %sum
        OpBranch %next
        %next = OpLabel
        %b = OpPhi %i_v3 %gid %entry
        OpCopyMemory %mine %b
        OpReturn
        OpFunctionEnd";
    let module = read(text);
    expect(
        &module,
        &[
            "const 20000 : i32",
            ": f16",
            "align 64",
            "mem_copy.size20000",
            "store.align2.volatile",
        ],
    );
    let text = module.to_string();
    assert!(!text.contains("sdiv"), "{text}");
    // The copy of the built-in variable stands before the jump that passes it on.
    let jump = text.find("jump").expect("a jump");
    assert!(text[..jump].contains("builtin.global_id.2"), "{text}");
    assert!(!text[jump..].contains("store.align8 "), "{text}");
}

/// What compilers leave as calls by name: there the signedness of integers is known.
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

#[test]
fn linking() {
    let provider = "OpCapability Addresses\nOpCapability Kernel\nOpCapability Linkage
        OpMemoryModel Physical64 OpenCL
        OpDecorate %twice LinkageAttributes \"twice\" Export
        %u32 = OpTypeInt 32 0
        %fn = OpTypeFunction %u32 %u32
        %twice = OpFunction %u32 None %fn
        %x = OpFunctionParameter %u32
        %l = OpLabel
        %y = OpIAdd %u32 %x %x
        OpReturnValue %y
        OpFunctionEnd";
    let user = "OpCapability Addresses\nOpCapability Kernel\nOpCapability Linkage
        OpMemoryModel Physical64 OpenCL
        OpEntryPoint Kernel %k \"k\"
        OpDecorate %twice LinkageAttributes \"twice\" Import
        %void = OpTypeVoid
        %u32 = OpTypeInt 32 0
        %p = OpTypePointer CrossWorkgroup %u32
        %fn = OpTypeFunction %u32 %u32
        %kfn = OpTypeFunction %void %p
        %twice = OpFunction %u32 None %fn
        %x = OpFunctionParameter %u32
        OpFunctionEnd
        %k = OpFunction %void None %kfn
        %a = OpFunctionParameter %p
        %l = OpLabel
        %v = OpLoad %u32 %a
        %w = OpFunctionCall %u32 %twice %v
        OpStore %a %w
        OpReturn
        OpFunctionEnd";
    let joined = link::link(vec![read(user), read(provider)], false).expect("the modules link");
    verify_module(&joined).expect("the module is well-formed");
    assert!(joined.functions.values().all(|f| !f.layout.is_empty()));
    let joined = link::link(vec![read(provider), read(user)], false).expect("the modules link");
    verify_module(&joined).expect("the module is well-formed");
    let error = link::link(vec![read(user)], false)
        .expect_err("`twice` is missing")
        .to_string();
    assert!(error.contains("`twice`"), "{error}");
    link::link(vec![read(user)], true).expect("it may be missing");
    let error = link::link(vec![read(provider), read(provider)], true)
        .expect_err("`twice` is there twice")
        .to_string();
    assert!(error.contains("`twice`"), "{error}");
}

#[test]
fn initializers_and_finalizers() {
    let module = |mode: &str, params: &str| {
        format!(
            "OpCapability Addresses\nOpCapability Kernel
            OpMemoryModel Physical64 OpenCL
            OpEntryPoint Kernel %k \"k\"
            OpEntryPoint Kernel %other \"other\"
            {mode}
            %void = OpTypeVoid
            %u32 = OpTypeInt 32 0
            %fn = OpTypeFunction %void {params}
            %plain = OpTypeFunction %void
            %k = OpFunction %void None %fn
            {}
            %l = OpLabel
            OpReturn
            OpFunctionEnd
            %other = OpFunction %void None %plain
            %m = OpLabel
            OpReturn
            OpFunctionEnd",
            if params.is_empty() {
                ""
            } else {
                "%x = OpFunctionParameter %u32"
            }
        )
    };
    let modes = "OpExecutionMode %k Initializer\nOpExecutionMode %other Finalizer";
    let one = read(&module(modes, ""));
    expect(
        &one,
        &[
            "kernel \"k\" fn0 initializer {",
            "kernel \"other\" fn1 finalizer {",
        ],
    );
    // Compilers give them one name in all modules: nobody asks for them by name.
    let joined = link::link(vec![one.clone(), one.clone(), one], false).expect("the modules link");
    let names: Vec<&str> = joined.kernels.iter().map(|k| k.name.as_str()).collect();
    assert_eq!(names, ["k", "other", "k.1", "other.1", "k.2", "other.2"]);
    let roles = |role| {
        joined
            .kernels
            .iter()
            .filter(|k| k.attributes.role == role)
            .count()
    };
    assert_eq!(
        (roles(KernelRole::Initializer), roles(KernelRole::Finalizer)),
        (3, 3)
    );
    let twice = "OpExecutionMode %k Initializer\nOpExecutionMode %k Initializer";
    read(&module(twice, ""));
    for (modes, params, complaint) in [
        ("OpExecutionMode %k Initializer", "%u32", "no parameters"),
        (
            "OpExecutionMode %k Initializer\nOpExecutionMode %k Finalizer",
            "",
            "both",
        ),
    ] {
        let error = read_error(&module(modes, params));
        assert!(error.contains(complaint), "{error}");
    }
}

/// A module that enqueues functions: blocks are kernels of their own, once each, under names that other modules do not have.
#[test]
fn enqueued_functions_are_kernels() {
    let of_role = |module: &Module, role| -> Vec<String> {
        let kernels = module.kernels.iter();
        let kernels = kernels.filter(|k| k.attributes.role == role);
        kernels.map(|k| k.name.clone()).collect()
    };
    let block = |name: &str| {
        let blocks = of_role(&read(ENQUEUE), KernelRole::Block);
        blocks.iter().filter(|k| k.starts_with(name)).count()
    };
    let module = read(ENQUEUE);
    expect(&module, &["queue \"q\"", "implicit.enqueue_state.0"]);
    assert_eq!(of_role(&module, KernelRole::Ordinary), ["k"]);
    assert_eq!((block("plain.block."), block("with_local.block.")), (1, 1));
    // One that no application could launch is none of its kernels.
    assert_eq!(block("entry.block."), 1);
    // Compilers export blocks, under names that other modules have too.
    let exported = "OpDecorate %entry LinkageAttributes \"__f_block_invoke_kernel\" Export\n%void = OpTypeVoid";
    let text = ENQUEUE.replace("%void = OpTypeVoid", exported).replace(
        "OpCapability Int8",
        "OpCapability Int8\nOpCapability Linkage",
    );
    let other = text.replace("%u32 64", "%u32 66").replace("\"k\"", "\"i\"");
    link::link(vec![read(&text), read(&other)], false).expect("the modules link");
    let other = ENQUEUE
        .replace("%u32 64", "%u32 65")
        .replace("\"k\"", "\"j\"");
    let joined = link::link(vec![module, read(&other)], false).expect("the modules link");
    assert_eq!(of_role(&joined, KernelRole::Block).len(), 6);
    verify_module(&joined).expect("the module is well-formed");
    for (from, to, complaint) in [
        (
            "%local_block = OpTypeFunction %void %x_u8 %l_u8",
            "%local_block = OpTypeFunction %void %x_u8 %g_u8",
            "local memory",
        ),
        (
            "%local_block = OpTypeFunction %void %x_u8 %l_u8",
            "%local_block = OpTypeFunction %void %p_u8 %l_u8",
            "of its own",
        ),
        (
            "OpBuildNDRange %range %u64_8 %u64_0 %u64_0",
            "OpBuildNDRange %range %u64_8 %two %u64_0",
            "ND-range",
        ),
    ] {
        assert!(ENQUEUE.contains(from));
        let text = ENQUEUE
            .replace(from, to)
            .replace(
                "%b1 = OpFunctionParameter %l_u8",
                &format!(
                    "%b1 = OpFunctionParameter {}",
                    if to.contains("%x_u8 %g_u8") {
                        "%g_u8"
                    } else {
                        "%l_u8"
                    }
                ),
            )
            .replace(
                "%b0 = OpFunctionParameter %x_u8",
                &format!(
                    "%b0 = OpFunctionParameter {}",
                    if to.contains("%p_u8 %l_u8") {
                        "%p_u8"
                    } else {
                        "%x_u8"
                    }
                ),
            );
        let error = read_error(&text);
        assert!(error.contains(complaint), "{error}");
    }
}

#[test]
fn truncation() {
    for text in [LOOP, OPS, EXT, ENQUEUE] {
        let words = assemble(text);
        for end in 0..words.len() {
            let _ = read_module(&words[..end], &ReadOptions::default());
        }
    }
}

#[test]
fn damage() {
    let modules: Vec<Vec<u32>> = [LOOP, OPS, EXT].iter().map(|t| assemble(t)).collect();
    let mut state = 0x2545_f491_4f6c_dd1du64;
    let mut random = |limit: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % limit.max(1) as u64) as usize
    };
    let start = Instant::now();
    let mut longest = Duration::ZERO;
    while start.elapsed() < Duration::from_secs(6) {
        let mut words = modules[random(modules.len())].clone();
        let bound = words[3] as usize;
        for _ in 0..1 + random(4) {
            let at = 3 + random(words.len() - 3);
            words[at] = match random(6) {
                0 => random(usize::MAX) as u32,
                1 => random(bound) as u32,
                2 => words[at] ^ 1 << random(32),
                3 => words[at] & 0xffff_0000 | random(500) as u32,
                4 => words[random(words.len())],
                _ => [0, 1, u32::MAX, 0x8000_0000][random(4)],
            };
        }
        let begin = Instant::now();
        if let Ok(module) = read_module(&words, &ReadOptions::default()) {
            let _ = verify_module(&module);
        }
        longest = longest.max(begin.elapsed());
    }
    assert!(longest < Duration::from_secs(2), "{longest:?}");
}

#[test]
fn nesting_and_sizes() {
    let header = "OpCapability Addresses\nOpCapability Kernel\nOpCapability Linkage\nOpMemoryModel Physical64 OpenCL
        %u32 = OpTypeInt 32 0\n%big = OpConstant %u32 4000000000\n";
    // Arrays of arrays, each of the largest length.
    let mut text = header.to_owned();
    text.push_str("%t0 = OpTypeArray %u32 %big\n");
    for i in 1..300 {
        text.push_str(&format!("%t{i} = OpTypeArray %t{} %big\n", i - 1));
    }
    assert!(read_error(&text).contains("nested"));
    // A constant whose parts are shared doubles at each level: only its size may count.
    let mut text = header.to_owned();
    text.push_str("%two = OpConstant %u32 2\n%p = OpTypePointer CrossWorkgroup %t60\n%t0 = OpTypeArray %u32 %two\n");
    text.push_str("%v0 = OpConstantComposite %t0 %two %two\n");
    for i in 1..=60 {
        let j = i - 1;
        text.push_str(&format!(
            "%t{i} = OpTypeArray %t{j} %two\n%v{i} = OpConstantComposite %t{i} %v{j} %v{j}\n"
        ));
    }
    text.push_str("%g = OpVariable %p CrossWorkgroup %v60\n");
    assert!(read_error(&text).contains("bytes"));
}

/// A loop whose blocks stand in an order in which a value is used in the text before it is defined, and a block that
/// nothing branches to, which may use anything.
#[test]
fn blocks_in_any_order() {
    let module = read(&kernel(
        "OpBranch %head
         %dead = OpLabel
         %nothing = OpIAdd %u32 %late %late
         OpBranch %end
         %tail = OpLabel
         OpStore %p %late Aligned 4
         %more = OpULessThan %bool %next %n
         OpBranchConditional %more %head %end
         %head = OpLabel
         %i = OpPhi %u32 %c0 %entry %next %tail
         %next = OpIAdd %u32 %i %c1
         OpSwitch %i %other 1 %one
         %join = OpLabel
         %late = OpIAdd %u32 %either %next
         OpBranch %tail
         %other = OpLabel
         OpBranch %join_before
         %one = OpLabel
         OpBranch %join_before
         %join_before = OpLabel
         %either = OpPhi %u32 %c1 %other %c2 %one
         OpBranch %join
         %end = OpLabel",
    ));
    let (_, f) = module.functions.iter().next().expect("a function");
    assert_eq!(f.layout.len(), 8);
    let error = read_error(&kernel(
        "OpBranchConditional %true_or_not %a %b
         %a = OpLabel
         %true_or_not = OpULessThan %bool %n %n
         OpBranch %b
         %b = OpLabel",
    ));
    assert!(error.contains("is not a value defined before"), "{error}");
}

/// What a kernel stores, in order, as far as constant folding tells.
fn stored(text: &str) -> Vec<u64> {
    let mut module = read(text);
    let id = module.kernels[0].func;
    let func = &mut module.functions[id];
    while spirv_lowering::passes::const_fold::run(func) {}
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
