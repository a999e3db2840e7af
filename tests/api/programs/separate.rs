//! Separate compilation and linking, and binaries.

use super::*;

#[test]
fn compile_and_link() {
    let setup = Setup::new();
    let d = &setup.device;
    let header = setup.program("int twice(int n);\n#define OFFSET 3\n");
    let main = setup.program(
        "#include \"lib/twice.h\"
         kernel void add(global int *p, int n) { p[get_global_id(0)] = twice(n) + OFFSET; }",
    );
    let library = setup.program("int twice(int n) { return n * 2; }");
    let mut name = c"lib/twice.h".as_ptr();
    ok!(clCompileProgram(
        main.0,
        1,
        d,
        null(),
        1,
        &header.0,
        &mut name,
        None,
        null_mut()
    ));
    ok!(clCompileProgram(
        library.0,
        1,
        d,
        null(),
        0,
        null(),
        null_mut(),
        None,
        null_mut()
    ));
    assert_eq!(
        info_value!(
            u32,
            clGetProgramBuildInfo(main.0, setup.device),
            CL_PROGRAM_BINARY_TYPE
        ),
        CL_PROGRAM_BINARY_TYPE_COMPILED_OBJECT
    );
    create_fails!(
        CL_INVALID_PROGRAM_EXECUTABLE,
        clCreateKernel(main.0, c"add".as_ptr())
    );
    let both = [main.0, library.0];
    let context = setup.context.0;
    let linked = Program(create!(clLinkProgram(
        context,
        1,
        d,
        null(),
        2,
        both.as_ptr(),
        None,
        null_mut()
    )));
    check_add(&setup, &linked, 13);
    // By way of a library.
    let options = c"-create-library";
    let archive = Program(create!(clLinkProgram(
        context,
        1,
        d,
        options.as_ptr(),
        1,
        &library.0,
        None,
        null_mut()
    )));
    assert_eq!(
        info_value!(
            u32,
            clGetProgramBuildInfo(archive.0, setup.device),
            CL_PROGRAM_BINARY_TYPE
        ),
        CL_PROGRAM_BINARY_TYPE_LIBRARY
    );
    let both = [main.0, archive.0];
    let linked = Program(create!(clLinkProgram(
        context,
        1,
        d,
        null(),
        2,
        both.as_ptr(),
        None,
        null_mut()
    )));
    check_add(&setup, &linked, 13);
    // A missing function, a missing header, wrong lists.
    let mut code = 0;
    let failed = call!(clLinkProgram(
        context,
        1,
        d,
        null(),
        1,
        &main.0,
        None,
        null_mut(),
        &mut code
    ));
    assert_eq!(code, CL_LINK_PROGRAM_FAILURE);
    if !failed.is_null() {
        let failed = Program(failed);
        assert!(setup.build_log(&failed).contains("twice"));
    }
    let alone = setup.program("#include \"nowhere.h\"\nkernel void f() {}");
    fails!(
        CL_COMPILE_PROGRAM_FAILURE,
        clCompileProgram(
            alone.0,
            1,
            d,
            null(),
            0,
            null(),
            null_mut(),
            None,
            null_mut()
        )
    );
    assert!(setup.build_log(&alone).contains("nowhere.h"));
    fails!(
        CL_INVALID_VALUE,
        clCompileProgram(
            main.0,
            1,
            d,
            null(),
            1,
            &header.0,
            null_mut(),
            None,
            null_mut()
        )
    );
    create_fails!(
        CL_INVALID_VALUE,
        clLinkProgram(context, 1, d, null(), 0, null(), None, null_mut())
    );
    let wrong = c"-cl-no-such-option";
    create_fails!(
        CL_INVALID_LINKER_OPTIONS,
        clLinkProgram(
            context,
            1,
            d,
            wrong.as_ptr(),
            1,
            &library.0,
            None,
            null_mut()
        )
    );
}

pub fn binary_of(program: &Program) -> Vec<u8> {
    let size = info_value!(usize, clGetProgramInfo(program.0), CL_PROGRAM_BINARY_SIZES);
    let mut binary = vec![0u8; size];
    let mut place = binary.as_mut_ptr();
    ok!(clGetProgramInfo(
        program.0,
        CL_PROGRAM_BINARIES,
        size_of::<usize>(),
        (&raw mut place).cast(),
        null_mut()
    ));
    binary
}

#[test]
fn binaries_make_the_round_trip() {
    let setup = Setup::new();
    let program = setup.build(ADD);
    let binary = binary_of(&program);
    assert!(!binary.is_empty());
    drop(program);
    let load = |binary: &[u8]| {
        let (length, mut place) = (binary.len(), binary.as_ptr());
        let (mut status, mut code) = (77, 77);
        let program = call!(clCreateProgramWithBinary(
            setup.context.0,
            1,
            &setup.device,
            &length,
            &mut place,
            &mut status,
            &mut code
        ));
        (program, status, code)
    };
    let (program, status, code) = load(&binary);
    assert_eq!((status, code), (CL_SUCCESS, CL_SUCCESS));
    let program = Program(program);
    program.build();
    check_add(&setup, &program, 6);
    assert_eq!(binary_of(&program), binary);
    // Damaged ones are refused: cut, empty, and with any byte changed.
    for cut in [1, binary.len() / 2, binary.len() - 1] {
        let (program, status, code) = load(&binary[..cut]);
        assert_eq!(
            (program, status, code),
            (null_mut(), CL_INVALID_BINARY, CL_INVALID_BINARY)
        );
    }
    for at in (0..binary.len()).step_by(binary.len() / 40 + 1) {
        let mut damaged = binary.clone();
        damaged[at] ^= 0x10;
        let (program, _, code) = load(&damaged);
        assert_eq!(
            (program, code),
            (null_mut(), CL_INVALID_BINARY),
            "byte {at}"
        );
    }
    let (program, status, code) = load(&[]);
    assert_eq!(
        (program, status, code),
        (null_mut(), CL_INVALID_VALUE, CL_INVALID_VALUE)
    );
    // Compiled objects travel too.
    let object = setup.program(ADD);
    ok!(clCompileProgram(
        object.0,
        1,
        &setup.device,
        null(),
        0,
        null(),
        null_mut(),
        None,
        null_mut()
    ));
    let (loaded, _, code) = load(&binary_of(&object));
    assert_eq!(code, CL_SUCCESS);
    let loaded = Program(loaded);
    let linked = Program(create!(clLinkProgram(
        setup.context.0,
        1,
        &setup.device,
        null(),
        1,
        &loaded.0,
        None,
        null_mut()
    )));
    check_add(&setup, &linked, 6);
}
