//! Modules that are linked, and kernels that are called for the program as a whole.

use super::*;

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
