//! The reader on small hand-written modules, and on damaged ones.

mod compilers;
mod damaged;
mod images;
#[path = "../../../tests/src/left_out.rs"]
mod left_out;
mod programs;

use left_out::left_out;
use pumice_spirv_tools::TargetEnv;
use spirv_lowering::error::LowerError;
use spirv_lowering::interface::KernelRole;
use spirv_lowering::ir::function::InstData;
use spirv_lowering::ir::module::Module;
use spirv_lowering::ir::op::Op;
use spirv_lowering::ir::verify::verify_module;
use spirv_lowering::link;
use spirv_lowering::read::{read_module, Library, ReadOptions};
use std::time::{Duration, Instant};

const LOOP: &str = include_str!("loop.spvasm");
const OPS: &str = include_str!("ops.spvasm");
const IMAGE: &str = include_str!("image.spvasm");
const EXT: &str = include_str!("ext.spvasm");
const ENQUEUE: &str = include_str!("enqueue.spvasm");

/// The SPIR-V library of libclc, where the machine has it.
const LIBCLC: &str = "/usr/lib/clc/spirv64-mesa3d-.spv";

fn assemble(text: &str) -> Vec<u32> {
    pumice_spirv_tools::assemble(TargetEnv::Universal_1_6, text).expect("the test module assembles")
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
        return left_out("no libclc");
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
        return left_out("no libclc");
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
