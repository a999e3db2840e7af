//! Programs from SPIR-V.

use super::*;

#[test]
fn il_programs() {
    let setup = Setup::new();
    if info_text!(clGetDeviceInfo(setup.device), CL_DEVICE_IL_VERSION).is_empty() {
        return pumice_tests::left_out("the device takes no SPIR-V");
    }
    let Ok(words) = assemble(IL) else {
        return pumice_tests::left_out("no spirv-as");
    };
    let program = Program(create!(clCreateProgramWithIL(
        setup.context.0,
        words.as_ptr().cast(),
        words.len()
    )));
    assert_eq!(info!(clGetProgramInfo(program.0), CL_PROGRAM_IL), words);
    let three = 3u32;
    let value = (&raw const three).cast();
    fails!(
        CL_INVALID_SPEC_ID,
        clSetProgramSpecializationConstant(program.0, 99, 4, value)
    );
    fails!(
        CL_INVALID_VALUE,
        clSetProgramSpecializationConstant(program.0, 7, 8, value)
    );
    fails!(
        CL_INVALID_VALUE,
        clSetProgramSpecializationConstant(program.0, 7, 4, null())
    );
    let run = || {
        program.build();
        let kernel = setup.kernel(&program, "store");
        let buffer = setup.buffer(4);
        kernel.set_buffer(0, &buffer);
        setup.run(&kernel, &[1], None);
        setup.read::<u32>(&buffer, 1)[0]
    };
    assert_eq!(run(), 41);
    ok!(clSetProgramSpecializationConstant(program.0, 7, 4, value));
    assert_eq!(run(), 3);
    // Every version that the device names, and none beyond.
    let versions = info_text!(clGetDeviceInfo(setup.device), CL_DEVICE_IL_VERSION);
    for minor in 0..=6u8 {
        if !versions
            .split(' ')
            .any(|v| v == format!("SPIR-V_1.{minor}"))
        {
            continue;
        }
        let mut words = words.clone();
        words[5] = minor;
        let program = Program(create!(clCreateProgramWithIL(
            setup.context.0,
            words.as_ptr().cast(),
            words.len()
        )));
        program.build();
        setup.kernel(&program, "store");
    }
    // Cut or damaged modules are refused when they are given or when they are built, never a crash.
    for cut in [4usize, 20, words.len() / 2 / 4 * 4, words.len() - 4] {
        let mut code = 0;
        let made = call!(clCreateProgramWithIL(
            setup.context.0,
            words.as_ptr().cast(),
            cut,
            &mut code
        ));
        assert!(made.is_null() && code == CL_INVALID_VALUE, "{cut} bytes");
    }
}

/// A module with untyped pointers, put together here: assemblers are often too old for it.
#[test]
fn untyped_pointers() {
    let setup = Setup::new();
    let device = setup.device;
    let extensions = info!(clGetDeviceInfo(device), CL_DEVICE_SPIRV_EXTENSIONS);
    if extensions.is_empty() {
        return pumice_tests::left_out("no extensions of SPIR-V");
    }
    let text = |name: &str| {
        let mut bytes = name.as_bytes().to_vec();
        bytes.resize(name.len() / 4 * 4 + 4, 0);
        bytes
            .chunks(4)
            .map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]]))
            .collect::<Vec<u32>>()
    };
    let mut words = vec![0x0723_0203, 0x0001_0400, 0, 16, 0];
    let mut inst = |op: u32, operands: &[u32]| {
        words.push((operands.len() as u32 + 1) << 16 | op);
        words.extend(operands);
    };
    let (uint, void, pointer, function, one, kernel) = (1, 2, 3, 4, 5, 6);
    let cross_workgroup = 5;
    inst(17, &[4]); // OpCapability Addresses
    inst(17, &[6]); // Kernel
    inst(17, &[4473]); // UntypedPointersKHR
    inst(10, &text("SPV_KHR_untyped_pointers"));
    inst(14, &[2, 2]); // OpMemoryModel Physical64 OpenCL
    inst(15, &[&[6, kernel][..], &text("f")].concat()); // OpEntryPoint Kernel
    inst(21, &[uint, 32, 0]); // OpTypeInt
    inst(19, &[void]); // OpTypeVoid
    inst(4417, &[pointer, cross_workgroup]); // OpTypeUntypedPointerKHR
    inst(33, &[function, void, pointer]); // OpTypeFunction
    inst(43, &[uint, one, 1]); // OpConstant
    inst(54, &[void, kernel, 0, function]); // OpFunction
    inst(55, &[pointer, 7]); // OpFunctionParameter
    inst(248, &[8]); // OpLabel
    inst(4424, &[pointer, 9, uint, 7, one]); // OpUntypedInBoundsPtrAccessChainKHR
    inst(61, &[uint, 10, 9, 2, 4]); // OpLoad Aligned 4
    inst(128, &[uint, 11, 10, one]); // OpIAdd
    inst(62, &[7, 11, 2, 4]); // OpStore Aligned 4
    inst(253, &[]); // OpReturn
    inst(56, &[]); // OpFunctionEnd
    let program = Program(create!(clCreateProgramWithIL(
        setup.context.0,
        words.as_ptr().cast(),
        words.len() * 4
    )));
    program.build();
    let kernel = setup.kernel(&program, "f");
    let buffer = setup.buffer_of(&[0u32, 41]);
    kernel.set_buffer(0, &buffer);
    setup.run(&kernel, &[1], None);
    assert_eq!(setup.read::<u32>(&buffer, 2), [42, 41]);
}

const IL: &str = r#"
    OpCapability Addresses
    OpCapability Kernel
    OpMemoryModel Physical64 OpenCL
    OpEntryPoint Kernel %store "store"
    OpDecorate %value SpecId 7
    %u32 = OpTypeInt 32 0
    %void = OpTypeVoid
    %pointer = OpTypePointer CrossWorkgroup %u32
    %type = OpTypeFunction %void %pointer
    %value = OpSpecConstant %u32 41
    %store = OpFunction %void None %type
    %out = OpFunctionParameter %pointer
    %entry = OpLabel
    OpStore %out %value Aligned 4
    OpReturn
    OpFunctionEnd
"#;

fn assemble(text: &str) -> std::io::Result<Vec<u8>> {
    let directory = std::env::temp_dir();
    let stem = format!(
        "pumice-tests-{}-{:?}",
        std::process::id(),
        std::thread::current().id()
    );
    let (from, to) = (
        directory.join(format!("{stem}.spvasm")),
        directory.join(format!("{stem}.spv")),
    );
    std::fs::write(&from, text)?;
    let status = std::process::Command::new("spirv-as")
        .args(["--target-env", "spv1.0", "-o"])
        .arg(&to)
        .arg(&from)
        .status()?;
    assert!(status.success());
    let words = std::fs::read(&to);
    let _ = std::fs::remove_file(from);
    let _ = std::fs::remove_file(to);
    words
}
