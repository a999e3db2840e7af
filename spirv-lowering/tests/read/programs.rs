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
