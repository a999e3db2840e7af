//! Sources compiled by themselves and linked: those with `#include` are only read at first, and what of them is used
//! shows when they are linked.

use crate::programs::check_add;
use crate::programs::separate::binary_of;
use pumice_tests::sys::*;
use pumice_tests::{call, create, create_fails, fails, info_value, ok, Program, Setup};
use std::ffi::{c_void, CStr};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

/// Makes the driver read a source first.
const INCLUDE: &str = "#if 0\n#include \"nothing.h\"\n#endif\n";

fn compile(setup: &Setup, program: &Program) {
    ok!(clCompileProgram(
        program.0,
        1,
        &setup.device,
        null(),
        0,
        null(),
        null_mut(),
        None,
        null_mut()
    ));
}

fn compiled(setup: &Setup, source: &str) -> Program {
    let program = setup.program(&format!("{INCLUDE}{source}"));
    compile(setup, &program);
    let kind = info_value!(
        u32,
        clGetProgramBuildInfo(program.0, setup.device),
        CL_PROGRAM_BINARY_TYPE
    );
    assert_eq!(kind, CL_PROGRAM_BINARY_TYPE_COMPILED_OBJECT);
    program
}

fn link(setup: &Setup, options: &CStr, inputs: &[&Program]) -> Program {
    let inputs: Vec<_> = inputs.iter().map(|program| program.0).collect();
    Program(create!(clLinkProgram(
        setup.context.0,
        1,
        &setup.device,
        options.as_ptr(),
        inputs.len() as u32,
        inputs.as_ptr(),
        None,
        null_mut()
    )))
}

/// The error code and the log of a link that fails.
fn link_fails(setup: &Setup, inputs: &[&Program]) -> (i32, String) {
    let inputs: Vec<_> = inputs.iter().map(|program| program.0).collect();
    let mut code = 0;
    let linked = call!(clLinkProgram(
        setup.context.0,
        1,
        &setup.device,
        null(),
        inputs.len() as u32,
        inputs.as_ptr(),
        None,
        null_mut(),
        &mut code
    ));
    assert!(!linked.is_null());
    let log = setup.build_log(&Program(linked));
    (code, log)
}

const MAIN: &str = "int twice(int n);
    extern constant int offset;
    int mine(int n) { return twice(n) + offset; }
    int unused(int n) { return n; }
    kernel void add(global int *p, int n) { p[get_global_id(0)] = mine(n); }";
const LIBRARY: &str = "constant int offset = 3;
    static int mine(int n) { return n + n; }
    int unused_too(int n) { return n; }
    int twice(int n) { return mine(n); }";

#[test]
fn sources_that_are_read_first() {
    let setup = Setup::new();
    let (main, library) = (compiled(&setup, MAIN), compiled(&setup, LIBRARY));
    for inputs in [[&main, &library], [&library, &main]] {
        check_add(&setup, &link(&setup, c"", &inputs), 13);
    }
    let archive = link(&setup, c"-create-library", &[&library]);
    check_add(&setup, &link(&setup, c"", &[&main, &archive]), 13);
    // Nothing but one of them.
    let alone = compiled(
        &setup,
        "int add_up(int a, int b) { return a + b; }
         kernel void add(global int *p, int n) { p[get_global_id(0)] = add_up(n, 8); }",
    );
    check_add(&setup, &link(&setup, c"", &[&alone]), 13);
    // With one that was made into SPIR-V at once.
    let other = setup.program(&MAIN.replace("offset;\n", "offset;//\n"));
    compile(&setup, &other);
    check_add(&setup, &link(&setup, c"", &[&other, &library]), 13);
}

#[test]
fn what_does_not_link() {
    let setup = Setup::new();
    let (main, library) = (compiled(&setup, MAIN), compiled(&setup, LIBRARY));
    let (code, log) = link_fails(&setup, &[&main]);
    assert_eq!(code, CL_LINK_PROGRAM_FAILURE);
    assert!(log.contains("twice") || log.contains("offset"), "{log}");
    // The same function twice.
    let again = compiled(&setup, "int twice(int n) { return 3 * n; }");
    let (code, log) = link_fails(&setup, &[&main, &library, &again]);
    assert_eq!(code, CL_LINK_PROGRAM_FAILURE);
    assert!(log.contains("twice"), "{log}");
    // What is wrong with a source shows when it is compiled.
    let wrong = setup.program(&format!("{INCLUDE}kernel void f() {{ nothing(); }}"));
    fails!(
        CL_COMPILE_PROGRAM_FAILURE,
        clCompileProgram(
            wrong.0,
            1,
            &setup.device,
            null(),
            0,
            null(),
            null_mut(),
            None,
            null_mut()
        )
    );
    assert!(setup.build_log(&wrong).contains("nothing"));
    create_fails!(
        CL_INVALID_OPERATION,
        clLinkProgram(
            setup.context.0,
            1,
            &setup.device,
            null(),
            1,
            &wrong.0,
            None,
            null_mut()
        )
    );
}

/// A binary of a compiled source has all of its functions, whether anything uses them or not.
#[test]
fn binaries_of_what_was_read() {
    let setup = Setup::new();
    let library = compiled(&setup, LIBRARY);
    let binary = binary_of(&library);
    let (size, mut bytes) = (binary.len(), binary.as_ptr());
    let mut status = 1;
    let again = Program(create!(clCreateProgramWithBinary(
        setup.context.0,
        1,
        &setup.device,
        &size,
        &mut bytes,
        &mut status
    )));
    assert_eq!(status, CL_SUCCESS);
    let main = compiled(&setup, MAIN);
    check_add(&setup, &link(&setup, c"", &[&main, &again]), 13);
}

/// Names of arguments are those of the source.
#[test]
fn arguments_of_what_was_read() {
    let setup = Setup::new();
    let program = setup.program(&format!(
        "{INCLUDE}kernel void f(global float *some, int count) {{ some[0] = count; }}"
    ));
    ok!(clCompileProgram(
        program.0,
        1,
        &setup.device,
        c"-cl-kernel-arg-info".as_ptr(),
        0,
        null(),
        null_mut(),
        None,
        null_mut()
    ));
    let kernel = setup.kernel(&link(&setup, c"", &[&program]), "f");
    let name = pumice_tests::info_text!(clGetKernelArgInfo(kernel.0, 1), CL_KERNEL_ARG_NAME);
    assert_eq!(name, "count");
}

/// A module of variables alone, which another one uses.
#[test]
fn variables_alone() {
    let setup = Setup::new();
    let program = |source: &str| {
        let program = setup.program(source);
        compile(&setup, &program);
        program
    };
    let user = program(
        "extern constant int offset;
        extern constant int table[3];
        kernel void add(global int *p, int n) { p[get_global_id(0)] = n + offset + table[1]; }",
    );
    let offset = program("constant int offset = 3;");
    let table = program("constant int table[3] = {7, 8, 9};");
    for inputs in [[&user, &offset, &table], [&table, &offset, &user]] {
        check_add(&setup, &link(&setup, c"", &inputs), 16);
    }
}

/// References that the application has of a program, as the callback of its link sees them.
static REFERENCES: AtomicU32 = AtomicU32::new(0);

extern "C" fn linked(program: cl_program, _: *mut c_void) {
    let count = info_value!(
        cl_uint,
        clGetProgramInfo(program),
        CL_PROGRAM_REFERENCE_COUNT
    );
    // It may be released here, as clLinkProgram may have returned long ago.
    ok!(clRetainProgram(program));
    ok!(clReleaseProgram(program));
    REFERENCES.fetch_max(count, Ordering::SeqCst);
}

/// Linking is over before the call can return, in a good part of the tries.
#[test]
fn the_callback_of_a_link_finds_the_program() {
    let setup = Setup::new();
    let library = compiled(&setup, "int one(void) { return 1; }");
    for _ in 0..20 {
        REFERENCES.store(0, Ordering::SeqCst);
        let program = Program(create!(clLinkProgram(
            setup.context.0,
            1,
            &setup.device,
            c"-create-library".as_ptr(),
            1,
            &library.0,
            Some(linked),
            null_mut()
        )));
        let start = Instant::now();
        while REFERENCES.load(Ordering::SeqCst) == 0 {
            assert!(start.elapsed().as_secs() < 20, "the callback does not come");
            std::thread::yield_now();
        }
        assert_eq!(REFERENCES.load(Ordering::SeqCst), 1);
        drop(program);
    }
}
