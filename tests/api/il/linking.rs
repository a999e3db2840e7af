//! Modules that are compiled apart and linked.

use super::{create, run_program, Data, Il};
use opencl_sys::*;
use pumice_tests::*;
use std::ptr::{null, null_mut};

/// clCompileProgram of IL.
fn compile(setup: &Setup, il: &Il) -> Program {
    let program = create(setup, &il.words()).unwrap_or_else(|e| panic!("{e}\n{}", il.text()));
    let code = call!(clCompileProgram(
        program.0,
        0,
        null(),
        null(),
        0,
        null(),
        null_mut(),
        None,
        null_mut()
    ));
    assert_eq!(code, 0, "{}", setup.build_log(&program));
    program
}

/// clLinkProgram: the program, or code and log.
fn link(setup: &Setup, programs: &[&Program]) -> Result<Program, String> {
    let handles: Vec<cl_program> = programs.iter().map(|p| p.0).collect();
    let mut code = 0;
    let linked = Program(call!(clLinkProgram(
        setup.context.0,
        1,
        &setup.device,
        null(),
        handles.len() as u32,
        handles.as_ptr(),
        None,
        null_mut(),
        &mut code
    )));
    match code {
        0 => Ok(linked),
        code if linked.0.is_null() => Err(code_name(code)),
        code => Err(format!("{}\n{}", code_name(code), setup.build_log(&linked))),
    }
}

/// A library without kernels: the frame of a module around these parts.
fn library(decorations: &str, rest: &str) -> Il {
    Il::new("OpNop").decorated(decorations).calls(rest)
}

const TYPES: &str = "
    %pair = OpTypeStruct %u32 %f32
    %table = OpTypeArray %u32 %u32_3
    %change_type = OpTypeFunction %pair %pair %g_u32
    %once_type = OpTypeFunction %u32 %u32
    %g_table = OpTypePointer CrossWorkgroup %table";

fn user() -> Il {
    Il::new(
        "%x = in u32 0
         %s = OpCompositeConstruct %pair %x %half
         %p = OpInBoundsAccessChain %g_u32 %shared %u32_1
         %t = OpFunctionCall %pair %change %s %p
         %a = OpCompositeExtract %u32 %t 0
         %b = OpCompositeExtract %f32 %t 1
         out 0 u32 %a
         out 1 f32 %b
         %y = OpLoad %u32 %p
         out 2 u32 %y
         %z = OpFunctionCall %u32 %once %x
         out 3 u32 %z
         %lp = OpLoad %g_u32 %link
         %l = OpLoad %u32 %lp
         out 4 u32 %l",
    )
    .needs("SPV_KHR_linkonce_odr")
    .decorated(
        "OpDecorate %shared LinkageAttributes \"shared\" Import
         OpDecorate %change LinkageAttributes \"change\" Import
         OpDecorate %once LinkageAttributes \"once\" LinkOnceODR",
    )
    .with(TYPES)
    .with(
        "%half = OpConstant %f32 0.5
         %shared = OpVariable %g_table CrossWorkgroup
         %third = OpSpecConstantOp %g_u32 InBoundsAccessChain %shared %u32_2
         %p_link = OpTypePointer CrossWorkgroup %g_u32
         %link = OpVariable %p_link CrossWorkgroup %third",
    )
    .imports(
        "%change = OpFunction %pair None %change_type
         %c0 = OpFunctionParameter %pair
         %c1 = OpFunctionParameter %g_u32
         OpFunctionEnd",
    )
    .calls(ONCE)
}

const ONCE: &str = "
    %once = OpFunction %u32 None %once_type
    %o0 = OpFunctionParameter %u32
    %o1 = OpLabel
    %o2 = OpIMul %u32 %o0 %o0
    OpReturnValue %o2
    OpFunctionEnd";

fn provider() -> Il {
    // A module of functions alone: its entry point has another name.
    let il = library(
        "OpDecorate %shared LinkageAttributes \"shared\" Export
         OpDecorate %change LinkageAttributes \"change\" Export
         OpDecorate %once LinkageAttributes \"once\" LinkOnceODR",
        "%change = OpFunction %pair None %change_type
         %c0 = OpFunctionParameter %pair
         %c1 = OpFunctionParameter %g_u32
         %c2 = OpLabel
         %c3 = OpCompositeExtract %u32 %c0 0
         %c4 = OpLoad %u32 %c1
         %c5 = OpIAdd %u32 %c3 %c4
         %c6 = OpCompositeInsert %pair %c5 %c0 0
         %c7 = OpFunctionCall %u32 %once %c4
         OpStore %c1 %c7
         OpReturnValue %c6
         OpFunctionEnd",
    )
    .needs("SPV_KHR_linkonce_odr")
    .with(TYPES)
    .with(
        "%init = OpConstantComposite %table %u32_10 %u32_20 %u32_30
         %shared = OpVariable %g_table CrossWorkgroup %init",
    );
    il.calls(ONCE)
}

/// The words of a module whose kernel is called otherwise.
fn renamed(il: &Il) -> Vec<u32> {
    super::assemble(&il.text().replace("%k \"k\"", "%k \"unused\""))
}

#[test]
fn functions_and_variables() {
    let setup = Setup::new();
    let user = compile(&setup, &user());
    let words = renamed(&provider());
    let provider = create(&setup, &words).unwrap_or_else(|e| panic!("{e}"));
    ok!(clCompileProgram(
        provider.0,
        0,
        null(),
        null(),
        0,
        null(),
        null_mut(),
        None,
        null_mut()
    ));
    for order in [[&user, &provider], [&provider, &user]] {
        let program = link(&setup, &order).expect("links");
        let out = run_program(&setup, &program, &Data::new().put(0, &[5u32]), 1);
        assert_eq!(out.one::<u32>(0), 25);
        assert_eq!(out.one::<f32>(1), 0.5);
        assert_eq!(out.one::<u32>(2), 400);
        assert_eq!(out.one::<u32>(3), 25);
        assert_eq!(out.one::<u32>(4), 30);
    }
    // What one module lacks, and what two have.
    let log = link(&setup, &[&user]).expect_err("does not link");
    assert!(
        log.contains("CL_LINK_PROGRAM_FAILURE") && log.contains("undefined symbol `"),
        "{log}"
    );
    let twice = link(&setup, &[&user, &provider, &provider]).expect_err("does not link");
    assert!(twice.contains("is defined in two modules"), "{twice}");
    let log = super::build(&setup, &self::user().words()).expect_err("does not build");
    assert!(
        log.contains("CL_BUILD_PROGRAM_FAILURE") && log.contains("undefined"),
        "{log}"
    );
}

/// The same name with two types.
#[test]
fn types_must_agree() {
    let setup = Setup::new();
    let user = compile(&setup, &user());
    let other = provider();
    let text = other.text().replace("%k \"k\"", "%k \"unused\"").replace(
        "%change_type = OpTypeFunction %pair %pair %g_u32",
        "%change_type = OpTypeFunction %pair %pair %x_u32",
    );
    let text = text
        .replace(
            "%c1 = OpFunctionParameter %g_u32",
            "%c1 = OpFunctionParameter %x_u32",
        )
        .replace(
            "%pair = OpTypeStruct",
            "%x_u32 = OpTypePointer Generic %u32\n%pair = OpTypeStruct",
        );
    let provider =
        create(&setup, &super::assemble(&text)).unwrap_or_else(|e| panic!("{e}\n{text}"));
    ok!(clCompileProgram(
        provider.0,
        0,
        null(),
        null(),
        0,
        null(),
        null_mut(),
        None,
        null_mut()
    ));
    let log = link(&setup, &[&user, &provider]).expect_err("does not link");
    assert!(
        log.contains("`change` has different types in two modules"),
        "{log}"
    );
}

/// Modules may use the same numbers for their specialisation constants: each keeps the value that was set before it was compiled.
#[test]
fn specialisation_constants() {
    let setup = Setup::new();
    let types = "%get_type = OpTypeFunction %u32";
    let user = Il::new(
        "%x = OpFunctionCall %u32 %get
         out 0 u32 %x
         out 1 u32 %n
         out 2 bool %b",
    )
    .decorated(
        "OpDecorate %get LinkageAttributes \"get\" Import
         OpDecorate %n SpecId 1
         OpDecorate %b SpecId 2",
    )
    .with(types)
    .with("%n = OpSpecConstant %u32 5\n%b = OpSpecConstantFalse %bool")
    .imports("%get = OpFunction %u32 None %get_type\nOpFunctionEnd");
    let provider = library(
        "OpDecorate %get LinkageAttributes \"get\" Export\nOpDecorate %n SpecId 1",
        "%get = OpFunction %u32 None %get_type
         %g0 = OpLabel
         OpReturnValue %n
         OpFunctionEnd",
    )
    .with(types)
    .with("%n = OpSpecConstant %u32 7");
    let first = create(&setup, &user.words()).expect("valid");
    for (id, bytes) in [(1, &50u32.to_le_bytes()[..]), (2, &[1])] {
        ok!(clSetProgramSpecializationConstant(
            first.0,
            id,
            bytes.len(),
            bytes.as_ptr().cast()
        ));
    }
    let second = create(&setup, &renamed(&provider)).expect("valid");
    for program in [&first, &second] {
        ok!(clCompileProgram(
            program.0,
            0,
            null(),
            null(),
            0,
            null(),
            null_mut(),
            None,
            null_mut()
        ));
    }
    let program = link(&setup, &[&first, &second]).expect("links");
    let out = run_program(&setup, &program, &Data::new(), 1);
    assert_eq!([out.one::<u32>(0), out.one(1), out.one(2)], [7, 50, 1]);
}

/// Kernels and functions of OpenCL C and of IL in one program.
#[test]
fn with_opencl_c() {
    let setup = Setup::new();
    let il = Il::new(
        "%x = in u32 0
         %y = OpFunctionCall %u32 %twice %x
         out 0 u32 %y",
    )
    .decorated("OpDecorate %twice LinkageAttributes \"twice\" Import")
    .with("%twice_type = OpTypeFunction %u32 %u32")
    .imports(
        "%twice = OpFunction %u32 None %twice_type
         %t0 = OpFunctionParameter %u32
         OpFunctionEnd",
    );
    let user = compile(&setup, &il);
    let source = setup.program("uint twice(uint x) { return x * 2; }");
    ok!(clCompileProgram(
        source.0,
        0,
        null(),
        null(),
        0,
        null(),
        null_mut(),
        None,
        null_mut()
    ));
    let program = link(&setup, &[&user, &source]).expect("links");
    let out = run_program(&setup, &program, &Data::new().put(0, &[21u32]), 1);
    assert_eq!(out.one::<u32>(0), 42);
}
